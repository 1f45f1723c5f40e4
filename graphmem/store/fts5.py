"""What SQLite does for the text index: an FTS5 table, which finds tokens and counts them."""

import contextlib
import json
import sqlite3
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphmem.errors import StoreCorrupt
from graphmem.store.connection import Connection
from graphmem.store.lists import in_list, prefix_range
from graphmem.store.text_index import KIND_SHIFT, LAST_PASSAGE

# FTS5 takes twice as long to read the columns of a row as SQLite does to join the table that FTS5 keeps them in.
_MATCHING = """SELECT t.rowid, c.c0, c.c1, c.c2 FROM text_index t LEFT JOIN text_index_content c ON c.id = t.rowid
               WHERE text_index MATCH ?"""
_BEST_FIRST, _LATEST_FIRST = "t.rank", "t.rowid DESC"  # the best as FTS5 sees it
# In how many passages each of a JSON list of tokens is, counted up to a number.
_COUNTED_UP_TO = """SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM text_index WHERE text_index MATCH k.value LIMIT ?))
                    FROM json_each(?) k"""
# How FTS5 numbers its pages: from the right 31 bits of the page, 5 of its height, one of its kind; segments from 1 on.
_LEAF_BITS = 31
_NO_LEAF = 0x3F
_FIRST_SEGMENT = 1 << 37
# The passages of texts, from a JSON list of the numbers of their first ones; a plain JOIN would scan the index.
_OF_TEXTS = f"""SELECT i.rowid, i.title, i.labels, i.body FROM json_each(?) k
                CROSS JOIN text_index i ON i.rowid BETWEEN k.value AND k.value + {LAST_PASSAGE}"""
# At how many segments of a level FTS5 begins to merge them, and does it at once; and at how many upkeep does. A commit
# makes one, and each look-up of a word asks all: of 10 000 texts written one by one these settings leave 6 on average
# and those of FTS5 (4, 16, 4) 14; a commit writes a seventh more rows for it.
_MERGING = {"automerge": 2, "crisismerge": 4, "usermerge": 2}


def state(tx: Connection) -> Hashable | None:
    """Return what is another value whenever a transaction sees other rows, None where it has written itself."""
    if tx.in_transaction and tx.total_changes:
        return None
    # Another connection's commit changes the one number, what this one writes the other.
    (version,) = tx.execute("PRAGMA data_version").fetchone()
    return tx, version, tx.total_changes


def frequencies(tx: Connection, tokens: Sequence[str]) -> dict[str, int]:
    """Return in how many passages tokens are, without those that are in none."""
    marks, wanted = in_list(tokens)
    return dict(tx.execute(f"SELECT term, doc FROM text_terms WHERE term IN ({marks})", wanted).fetchall())


def counted_up_to(tx: Connection, tokens: Sequence[str], most: int) -> list[int]:
    """Return in how many passages each of the tokens is, and count no further than to a number."""
    if not tokens:
        return []
    wanted = json.dumps([_quoted(token, prefix=False) for token in tokens])
    return [number for (number,) in tx.execute(_COUNTED_UP_TO, (most, wanted))]


def prefix_frequency(tx: Connection, prefix: str) -> int:
    """Return how often tokens that begin so are in passages."""
    row = tx.execute("SELECT SUM(doc) FROM text_terms WHERE term >= ? AND term < ?", prefix_range(prefix)).fetchone()
    return row[0] or 0


def spellings(tx: Connection, prefix: str, shortest: int, longest: int) -> list[str]:
    """Return the tokens of the index that begin so and are so long."""
    rows = tx.execute(
        "SELECT term FROM text_terms WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?",
        (*prefix_range(prefix), shortest, longest),
    )
    return [term for (term,) in rows]


def of_texts(tx: Connection, firsts: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the rows of texts, given the numbers of their first passages."""
    return tx.execute(_OF_TEXTS, (json.dumps(firsts),)).fetchall()


def everything(tx: Connection) -> Iterable[tuple[Any, ...]]:
    """Return all rows."""
    return tx.execute("SELECT id, c0, c1, c2 FROM text_index_content ORDER BY id")


def holding(tx: Connection, tokens: Mapping[str, bool], kinds: int | None = None) -> list[tuple[Any, ...]]:
    """Return the rows that hold some of the tokens, of kinds as the bits of a number, None for all."""
    return tx.execute(f"{_MATCHING} {_within(kinds)}", (_expression(tokens),)).fetchall()


def best(
    tx: Connection, tokens: Mapping[str, bool], kinds: int, at_once: int, *, every: bool = False
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows that hold some of the tokens, or every one, some at once, the best first as FTS5 sees it."""
    return _matching(tx, _expression(tokens, every=every), kinds, at_once, _BEST_FIRST)


def latest(
    tx: Connection, tokens: Mapping[str, bool], kinds: int, at_once: int, *, every: bool = False
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows that hold some of the tokens, or every one, some at once, those written last first."""
    return _matching(tx, _expression(tokens, every=every), kinds, at_once, _LATEST_FIRST)


def finds(tx: Connection, token: str, number: int) -> bool:
    """Tell whether a row is found by a token."""
    found = tx.execute(
        "SELECT 1 FROM text_index WHERE text_index MATCH ? AND rowid = ?", (_quoted(token, prefix=False), number)
    )
    return found.fetchone() is not None


def _matching(tx: Connection, expression: str, kinds: int, at_once: int, order: str) -> Iterator[list[tuple[Any, ...]]]:
    rows = tx.execute(f"{_MATCHING} {_within(kinds)} ORDER BY {order}", (expression,))
    while batch := rows.fetchmany(at_once):
        yield batch


def _within(kinds: int | None) -> str:
    """Return the condition that a passage is one of some kinds."""
    if kinds is None:
        return ""
    if kinds & (kinds - 1) == 0:
        code = kinds.bit_length() - 1
        return f"AND t.rowid BETWEEN {code << KIND_SHIFT} AND {((code + 1) << KIND_SHIFT) - 1}"
    # Bits of a number: SQLite would run the whole query once for each of several ranges, and make a table of a list.
    return f"AND {kinds} >> (t.rowid >> {KIND_SHIFT}) & 1"


def _expression(tokens: Mapping[str, bool], *, every: bool = False) -> str:
    """Return what FTS5 looks for; tokens: whether each is only the beginning of one."""
    return (" AND " if every else " OR ").join(_quoted(token, prefix=prefix) for token, prefix in tokens.items())


def _quoted(token: str, *, prefix: bool) -> str:
    doubled = token.replace('"', '""')
    return f'"{doubled}" *' if prefix else f'"{doubled}"'


def optimise(tx: Connection, pages: int) -> bool:
    """Merge about so many pages of FTS5's segments into larger ones; return whether there was something to merge."""
    before = tx.total_changes
    tx.execute("INSERT INTO text_index(text_index, rank) VALUES ('merge', ?)", (pages,))
    # https://www.sqlite.org/fts5.html#the_merge_command: a change or none besides its own tells that it is done.
    return tx.total_changes - before >= 2


def merge_segments(tx: Connection) -> None:
    """Make one segment of all, without the terms of what was dropped: FTS5 keeps those until it merges."""
    tx.execute("INSERT INTO text_index(text_index) VALUES ('optimize')")


def lost_words(tx: Connection) -> int:
    """Return how many words stand in the index and are not found in all places by a look-up. Raises StoreCorrupt."""
    with told_as_damage():
        (lost,) = tx.execute(
            """SELECT COUNT(*) FROM text_terms a
               WHERE a.doc <> COALESCE((SELECT b.doc FROM text_terms b WHERE b.term = a.term), 0)"""
        ).fetchone()
    return int(lost)


def check_words(tx: Connection) -> None:
    """Let FTS5 compare its words with the texts it holds; raises StoreCorrupt. It needs a write block."""
    with told_as_damage():
        tx.execute("INSERT INTO text_index(text_index) VALUES ('integrity-check')")
        # A connection that has it open does not look at this row again, and the next one could not open the table.
        if not tx.execute("SELECT 1 FROM text_index_config WHERE k = 'version'").fetchone():
            raise StoreCorrupt("its version is missing")


@contextlib.contextmanager
def told_as_damage() -> Iterator[None]:
    """Raise StoreCorrupt where FTS5 cannot read its tables."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        # SQLITE_ERROR: FTS5 finds a table of its own missing, or without what it needs.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            raise
        raise StoreCorrupt(str(error)) from error


def clear(tx: Connection) -> None:
    """Make the index anew, empty: it heals also where FTS5 finds its own tables damaged."""
    tx.execute("DROP TABLE IF EXISTS text_terms")
    try:
        tx.execute("DROP TABLE IF EXISTS text_index")
    except sqlite3.DatabaseError:
        _cut_out(tx)
    create(tx)
    tx.execute("DELETE FROM text_sizes")


def _cut_out(tx: Connection) -> None:
    """Remove a table that FTS5 can no longer open, and so not drop, from the schema, with what it was stored in."""
    tx.execute("PRAGMA writable_schema = ON")
    try:
        tx.execute("DELETE FROM sqlite_master WHERE name = 'text_index'")
    finally:
        tx.execute("PRAGMA writable_schema = RESET")
    for part in ("data", "idx", "content", "docsize", "config"):
        tx.execute(f"DROP TABLE IF EXISTS text_index_{part}")


def create(tx: Connection) -> None:
    """Make the tables of FTS5. It only parts tokens at spaces: they are made in Python."""
    marks = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum() and chr(code) not in "'\"")
    tx.execute(
        f"""CREATE VIRTUAL TABLE text_index USING fts5(
                title, labels, body, tokenize = "ascii tokenchars '{marks}''""'")"""
    )
    for setting, value in _MERGING.items():
        tx.execute("INSERT INTO text_index(text_index, rank) VALUES (?, ?)", (setting, value))
    tx.execute("CREATE VIRTUAL TABLE text_terms USING fts5vocab(text_index, row)")


def dead_terms(tx: Connection, tokens: Iterable[str]) -> list[str]:
    """Return the tokens that no passage holds and that a segment of FTS5 still does: those of what was dropped."""
    dead = [token for token in tokens if not tx.execute("SELECT 1 FROM text_terms WHERE term = ?", (token,)).fetchone()]
    written: set[bytes] = set()
    if dead:
        for number, page in tx.execute("SELECT id, block FROM text_index_data WHERE id > ?", (_FIRST_SEGMENT,)):
            if not number >> _LEAF_BITS & _NO_LEAF:
                written.update(_terms_of(page))
    return [token for token in dead if b"0" + token.encode() in written]


def _terms_of(page: bytes) -> Iterator[bytes]:
    """Yield the terms of a leaf of a segment; see "FILE FORMAT" in ext/fts5/fts5_index.c of SQLite.

    Two numbers of two bytes each, the second of which tells where the content ends; behind it the places of the terms,
    each told from the one before. A term but the first begins with how many bytes it shares with the one before.
    """
    end = int.from_bytes(page[2:4], "big")
    place, footer, term = 0, end, b""
    while footer < len(page):
        step, footer = _varint(page, footer)
        at, shared = place + step, 0
        if place:
            shared, at = _varint(page, at)
        length, at = _varint(page, at)
        term = term[:shared] + page[at : at + length]
        place += step
        yield term


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """Return a number of SQLite's variable length below 2 ** 56, and where the next one begins.

    >>> _varint(bytes([0x81, 0x00]), 0)
    (128, 2)
    """
    number = 0
    while page[at] & 0x80:
        number = number << 7 | page[at] & 0x7F
        at += 1
    return number << 7 | page[at], at + 1
