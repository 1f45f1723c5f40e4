"""What a transaction is to all code above the store, whatever database it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from graphmem.config import Config
    from graphmem.core import model


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""

    @property
    def description(self) -> Any:
        """A tuple for each column, the first of which is its name."""

    def fetchone(self) -> Any:
        """Return the next row as a tuple, None behind the last one."""

    def fetchmany(self, size: int = ..., /) -> list[Any]:
        """Return so many of the next rows."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def close(self) -> None:
        """Forget the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Words(Protocol):
    """What a database does for the text index: it finds tokens and counts them.

    tokens: whether each is only the beginning of one. kinds: as the bits of a number, None for all. A row is the number
    of a passage and its three columns.
    """

    def state(self, tx: Any, /) -> Hashable | None:
        """Return what is another value whenever a transaction sees other rows, None where it has written itself."""

    def frequencies(self, tx: Any, tokens: Sequence[str], /) -> dict[str, int]:
        """Return in how many passages tokens are; those that are in none may be left out."""

    def counted_up_to(self, tx: Any, tokens: Sequence[str], most: int, /) -> list[int]:
        """Return in how many passages each of the tokens is, and count no further than to a number."""

    def prefix_frequency(self, tx: Any, prefix: str, /) -> int:
        """Return how often tokens that begin so are in passages."""

    def spellings(self, tx: Any, prefix: str, shortest: int, longest: int, /) -> list[str]:
        """Return the tokens of the index that begin so and are so long."""

    def finds(self, tx: Any, token: str, number: int, /) -> bool:
        """Tell whether a row is found by a token."""

    def of_texts(self, tx: Any, firsts: Sequence[int], /) -> list[tuple[Any, ...]]:
        """Return the rows of texts, given the numbers of their first passages."""

    def everything(self, tx: Any, /) -> Iterable[tuple[Any, ...]]:
        """Return all rows."""

    def holding(self, tx: Any, tokens: Mapping[str, bool], kinds: int | None = None) -> list[tuple[Any, ...]]:
        """Return the rows that hold some of the tokens."""

    def best(
        self, tx: Any, tokens: Mapping[str, bool], kinds: int, at_once: int, *, every: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows that hold some of the tokens, or every one, some at once, the best first as FTS5 sees it."""

    def latest(
        self, tx: Any, tokens: Mapping[str, bool], kinds: int, at_once: int, *, every: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows that hold some of the tokens, or every one, some at once, those written last first."""

    def clear(self, tx: Any, /) -> None:
        """Make the index anew, empty, also where it is damaged."""

    def optimise(self, tx: Any, pages: int, /) -> bool:
        """Make the index faster, by about so many pages; return whether there was something to do."""

    def merge_segments(self, tx: Any, /) -> None:
        """Leave nothing in the index of tokens that were dropped."""

    def check_words(self, tx: Any, /) -> None:
        """Compare the words of the index with its texts; raises StoreCorrupt. It needs a write block."""

    def lost_words(self, tx: Any, /) -> int:
        """Return how many words stand in the index and are not found. Raises StoreCorrupt."""

    def told_as_damage(self) -> AbstractContextManager[None]:
        """Raise StoreCorrupt where the tables of the index cannot be read."""


class Column(NamedTuple):
    """A column: whether it holds text, and its place in the primary key, 0 for those that are not in it."""

    name: str
    is_text: bool
    place: int


class Engine(Protocol):
    """What the databases do each in their own way, besides the text index.

    is_remote: whether an answer costs a way to a server, so that what may be wanted is asked along with the rest.
    """

    is_remote: bool

    def each(self, tx: Any, statement: str, rows: Iterable[Sequence[Any]], /) -> Iterable[list[tuple[Any, ...]]]:
        """Execute a statement once for each of some rows of parameters; return what each gave.

        It is executed at once, also where what it gave comes only when it is asked for.
        """

    def ahead(self, tx: Any, statement: str, parameters: Callable[[], Sequence[Any]], /) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a statement that only reads, and that is seldom wanted.

        Where a statement costs a way to the server it goes along with others, else it is executed, and its parameters
        are worked out, when its rows are asked for. Nothing that it reads may be written in between.
        """

    def nested(
        self, tx: Any, statement: str, parameters: Sequence[Any], inner: str, most: int, /
    ) -> Iterable[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
        """Return the rows of a statement, each with those that an inner one gives for its first column, called `id`.

        Where there are as many rows as `most`, they come without the inner ones. Those come in the order of their first
        column, by which the inner statement sorts. Both are executed at once, as in `each`.
        """

    def tables(self, tx: Any, /) -> list[str]:
        """Return the names of the tables that are the memory's own, in the order in which they were made."""

    def columns(self, tx: Any, table: str, /) -> list[Column]:
        """Return the columns of a table, none for one that is not there."""

    def numbers(self, tx: Any, /) -> dict[str, int]:
        """Return the last number that each table has given to a row, which is never given again."""

    def next_number(self, table: str, /) -> str:
        """Return SQL that takes the number of a row to be: NULL where that is known no earlier than the row is made."""

    def set_number(self, tx: Any, table: str, last: int, /) -> None:
        """Let the rows of a table be numbered from behind a number."""

    def set_finished(self, tx: Any, is_finished: bool, /) -> None:
        """Note, where every opening and every writer reads it, whether a memory is whole, and no unfinished copy."""

    def defer_foreign_keys(self, tx: Any, /) -> None:
        """Let rows point at nothing until the end of the transaction."""

    def attempt(self, tx: Any, /) -> AbstractContextManager[None]:
        """Undo what a block of a transaction wrote, and raise RowsRefused, where a rule of the schema forbids it."""

    def told_as_damage(self, tx: Any, /) -> AbstractContextManager[None]:
        """Raise StoreCorrupt, in the database's own words, where what a block of a transaction reads is damaged."""

    def damage(self, tx: Any, /) -> list[str]:
        """Return what the database complains of when it checks itself, a line each."""

    def orphans(self, tx: Any, /) -> dict[tuple[str, str], list[int | None]]:
        """Return the rows that point at one that is gone, by table and the other one; None for one without number."""

    def rebuild_indexes(self, tx: Any, /) -> bool:
        """Make the indexes of all tables anew; return False where rows are double that must be unique."""

    def has_log(self, tx: Any, /) -> bool:
        """Tell whether readers and writers do not wait for each other."""

    def size(self, tx: Any, /) -> int:
        """Return the bytes of the database."""

    def overwriting(self, tx: Any, /) -> AbstractContextManager[None]:
        """Let the database overwrite what a block of a transaction removes, as far as it can."""


class RowsRefused(Exception):
    """Rows that a rule of the schema forbids; nothing of the attempt stays."""


class Transaction(Protocol):
    """Where statements are executed: SQL that SQLite and PostgreSQL share, with `?` for each parameter.

    A statement may wait until the rows of one are asked for, or the transaction ends, and fail no earlier.
    """

    @property
    def words(self) -> Words:
        """What finds words."""

    @property
    def engine(self) -> Engine:
        """What is the database's own."""

    @property
    def indexed(self) -> dict[str, set[int]] | None:
        """What was indexed in this transaction, kinds and ids, for who embeds it before the end; None for nobody."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Execute a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """Execute a statement once for each of some rows of parameters."""


class Store(Protocol):
    """An open memory, wherever it lies. Its errors are those of `graphmem.errors`, never the database's own.

    path: where it lies, as messages tell it: a file, or the address of a server without its password. With an embedder
    what is written is embedded before the end of its transaction.
    """

    path: str
    config: Config

    def write(self, *, keep: bool = True) -> AbstractContextManager[Transaction]:
        """Yield a transaction that writes; on any failure nothing of it stays. Blocks nest as savepoints.

        With keep=False nothing stays in any case: a rehearsal. Raises StoreBusy when another writer holds the lock for
        longer than the busy timeout, Conflict for any but a rehearsal where the memory is read-only.
        """

    def read(self) -> AbstractContextManager[Transaction]:
        """Yield a transaction that sees one unchanging state; inside a write block, the writer's own."""

    def require_writing(self) -> None:
        """Raise Conflict where the memory is read-only, for what does more than write and should not begin."""

    def watching(self) -> AbstractContextManager[Callable[[], bool]]:
        """Yield what tells whether anything was committed since it was asked last, by whomever. One asks at a time."""

    def sync(self) -> None:
        """Make what was committed so far outlast a power cut, also where commits are not durable each by itself."""

    def checkpoint(self) -> model.WalState:
        """Copy what the log holds into the database, where that is ours to do."""

    def quick_check(self) -> tuple[str, ...]:
        """Return what a quick check of the database complains of."""

    def clean(self) -> tuple[str, ...]:
        """Leave no trace of what was removed; return remarks on what could not be done, and why."""

    def close(self) -> None:
        """Close every connection, after the blocks that are open. Closing twice does nothing."""
