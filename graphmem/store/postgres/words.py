"""What PostgreSQL does for the text index: a GIN index over the tokens of each passage finds and counts them.

FTS5 ranks what it finds, PostgreSQL knows no such order: so what is found is read and put in that order here, and both
stores give the same hits.
"""

import contextlib
import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphmem.store import text_index

if TYPE_CHECKING:
    from graphmem.store.postgres.transaction import PostgresTransaction

_LONGEST_LEXEME = 2046  # bytes: https://www.postgresql.org/docs/current/textsearch-limitations.html
_ROWS = "SELECT t.rowid, t.title, t.labels, t.body FROM text_index t"


def state(tx: "PostgresTransaction") -> Hashable | None:
    """Return what is another value whenever a transaction sees other rows, None where it writes itself."""
    if tx.revision is None:
        return None
    if isinstance(tx.revision, int):
        return tx.revision
    (tx.revision,) = tx.revision.fetchone()
    return tx.revision


def frequencies(tx: "PostgresTransaction", tokens: Sequence[str]) -> dict[str, int]:
    """Return in how many passages tokens are."""
    counts = [tx.execute("SELECT COUNT(*) FROM text_index WHERE words @@ ?::tsquery", (_of(one),)) for one in tokens]
    return {token: count.fetchone()[0] for token, count in zip(tokens, counts, strict=True)}


def counted_up_to(tx: "PostgresTransaction", tokens: Sequence[str], most: int) -> list[int]:
    """Return in how many passages each of the tokens is, and count no further than to a number."""
    counted = "SELECT COUNT(*) FROM (SELECT 1 FROM text_index WHERE words @@ ?::tsquery LIMIT ?) found"
    counts = [tx.execute(counted, (_of(one), most)) for one in tokens]
    return [count.fetchone()[0] for count in counts]


def prefix_frequency(tx: "PostgresTransaction", prefix: str) -> int:
    """Return how often tokens that begin so are in passages."""
    found = [holders for word, holders in _vocabulary(tx, prefix) if word.startswith(prefix)]
    return sum(found)


def spellings(tx: "PostgresTransaction", prefix: str, shortest: int, longest: int) -> list[str]:
    """Return the tokens of the index that begin so and are so long."""
    return [word for word, _ in _vocabulary(tx, prefix) if shortest <= len(word) <= longest]


def _vocabulary(tx: "PostgresTransaction", prefix: str) -> list[tuple[str, int]]:
    """Return the tokens that begin so, in their order, and in how many passages each is."""
    return tx.execute(
        """SELECT word, COUNT(*) FROM (
               SELECT unnest(tsvector_to_array(words)) AS word FROM text_index WHERE words @@ ?::tsquery) held
           WHERE starts_with(word, ?) GROUP BY word ORDER BY word COLLATE "C\"""",
        (_of(prefix, prefix=True), prefix),
    ).fetchall()


def finds(tx: "PostgresTransaction", token: str, number: int) -> bool:
    """Tell whether a row is found by a token."""
    found = tx.execute("SELECT 1 FROM text_index WHERE words @@ ?::tsquery AND rowid = ?", (_of(token), number))
    return found.fetchone() is not None


def of_texts(tx: "PostgresTransaction", firsts: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the rows of texts, given the numbers of their first passages."""
    found = [
        tx.execute(f"{_ROWS} WHERE t.rowid BETWEEN ? AND ? ORDER BY 1", (first, first + text_index.LAST_PASSAGE))
        for first in firsts
    ]
    return [row for rows in found for row in rows]


def everything(tx: "PostgresTransaction") -> Iterable[tuple[Any, ...]]:
    """Return all rows."""
    return tx.execute(f"{_ROWS} ORDER BY 1")


def holding(tx: "PostgresTransaction", tokens: Mapping[str, bool], kinds: int | None = None) -> list[tuple[Any, ...]]:
    """Return the rows that hold some of the tokens, of kinds as the bits of a number, None for all."""
    query = _expression(tokens, every=False)
    return tx.execute(f"{_ROWS} WHERE t.words @@ ?::tsquery {_within(kinds)} ORDER BY 1", (query,)).fetchall()


def best(
    tx: "PostgresTransaction", tokens: Mapping[str, bool], kinds: int, at_once: int, *, every: bool = False
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows that hold some of the tokens, or every one, some at once, the best first as FTS5 sees it."""
    query = _expression(tokens, every=every)
    # Those of other kinds as well: in how many texts a word is makes its weight.
    found = tx.execute(f"{_ROWS} WHERE t.words @@ ?::tsquery ORDER BY 1", (query,)).fetchall()
    ranked = text_index.as_fts5_ranks(tx, text_index.passages(found), tokens)
    wanted = (row for row in ranked if kinds >> (row.number >> text_index.KIND_SHIFT) & 1)
    while batch := list(itertools.islice(wanted, at_once)):
        yield list(map(tuple, batch))


def latest(
    tx: "PostgresTransaction", tokens: Mapping[str, bool], kinds: int, at_once: int, *, every: bool = False
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows that hold some of the tokens, or every one, some at once, those written last first."""
    query = _expression(tokens, every=every)
    last = 1 << 63
    while last:
        rows = tx.execute(
            f"{_ROWS} WHERE t.words @@ ?::tsquery AND t.rowid <= ? {_within(kinds)} ORDER BY t.rowid DESC LIMIT ?",
            (query, last - 1, at_once),
        ).fetchall()
        if rows:
            yield rows
        last = rows[-1][0] if len(rows) == at_once else 0


def _within(kinds: int | None) -> str:
    return "" if kinds is None else f"AND {kinds} >> (t.rowid >> {text_index.KIND_SHIFT})::integer & 1 = 1"


def _expression(tokens: Mapping[str, bool], *, every: bool) -> str:
    return (" & " if every else " | ").join(_of(token, prefix=prefix) for token, prefix in tokens.items())


def _of(token: str, *, prefix: bool = False) -> str:
    """Return what PostgreSQL looks for: a token between quotes, which stand doubled in it.

    >>> _of("it's"), _of("se", prefix=True)
    ("'it''s'", "'se':*")
    """
    cut = token.encode()[:_LONGEST_LEXEME].decode(errors="ignore")
    quoted = cut.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if prefix else f"'{quoted}'"


def clear(tx: "PostgresTransaction") -> None:
    """Make the index anew, empty."""
    tx.execute("DELETE FROM text_index")
    tx.execute("DELETE FROM text_sizes")


def optimise(_tx: "PostgresTransaction", _pages: int) -> bool:
    """Return that there is nothing to do: autovacuum merges what GIN has pending."""
    return False


def merge_segments(_tx: "PostgresTransaction") -> None:
    """Do nothing: a row that is gone leaves no token that could be looked up."""


def check_words(_tx: "PostgresTransaction") -> None:
    """Do nothing: the tokens are a column that the server makes of the texts."""


def lost_words(_tx: "PostgresTransaction") -> int:
    """Return 0, for the same reason."""
    return 0


@contextlib.contextmanager
def told_as_damage() -> Iterator[None]:
    """Raise StoreCorrupt where the tables of the index cannot be read: here they are tables like all others."""
    yield
