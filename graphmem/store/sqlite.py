"""What SQLite does in its own way: names of tables, numbers of rows, checks of the file."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from graphmem.errors import StoreCorrupt
from graphmem.store.connection import Connection
from graphmem.store.database import primary_code
from graphmem.store.schema import VERSION
from graphmem.store.transaction import Column, RowsRefused

is_remote = False

_MOST_LINES = 100

_Row = tuple[Any, ...]


def each(tx: Connection, statement: str, rows: Iterable[Sequence[Any]]) -> list[list[_Row]]:
    """Execute a statement once for each of some rows of parameters; return what each gave."""
    return [tx.execute(statement, row).fetchall() for row in rows]


def ahead(tx: Connection, statement: str, parameters: Callable[[], Sequence[Any]]) -> Iterator[_Row]:
    """Return the rows of a statement, which is executed when they are wanted: nothing is far away."""
    yield from tx.execute(statement, parameters())


def nested(
    tx: Connection, statement: str, parameters: Sequence[Any], inner: str, most: int
) -> list[tuple[_Row, list[_Row]]]:
    """Return the rows of a statement, each with those of an inner one; see `graphmem.store.transaction.Engine`."""
    rows = tx.execute(statement, parameters).fetchall()
    if len(rows) >= most:
        return [(row, []) for row in rows]
    return [(row, tx.execute(inner, row[:1]).fetchall()) for row in rows]


def tables(tx: Connection) -> list[str]:
    """Return the names of the tables that are the memory's own, in the order in which they were made."""
    names = [name for (name,) in tx.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]
    return [name for name in names if not name.startswith(("sqlite_", "_sqlite", "text_index", "text_terms"))]


def columns(tx: Connection, table: str) -> list[Column]:
    """Return the columns of a table, none for one that is not there."""
    told = tx.execute("SELECT name, type, pk FROM pragma_table_info(?)", (table,))
    return [Column(name, kind == "TEXT", place) for name, kind, place in told]


def numbers(tx: Connection) -> dict[str, int]:
    """Return the last number that each table has given to a row, which is never given again."""
    return dict(tx.execute("SELECT name, seq FROM sqlite_sequence ORDER BY name").fetchall())


def next_number(_table: str) -> str:
    """Return what stands in a statement for the number of a row to be, which is known when the row is made."""
    return "NULL"


def set_number(tx: Connection, table: str, last: int) -> None:
    """Let the rows of a table be numbered from behind a number."""
    tx.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))  # the rows that were put in made one
    tx.execute("INSERT INTO sqlite_sequence(name, seq) VALUES (?, ?)", (table, last))


def set_finished(tx: Connection, is_finished: bool) -> None:
    """Note whether a memory is whole: the version of a copy that is not finished is below 0."""
    tx.execute(f"PRAGMA user_version = {VERSION if is_finished else -VERSION}")


def defer_foreign_keys(tx: Connection) -> None:
    """Let rows point at nothing until the end of the transaction."""
    tx.execute("PRAGMA defer_foreign_keys = ON")


@contextlib.contextmanager
def attempt(tx: Connection) -> Iterator[None]:
    """Raise RowsRefused where a rule of the schema forbids the one statement of a block, of which nothing stays."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, OverflowError) as error:
        raise RowsRefused(str(error)) from error


@contextlib.contextmanager
def overwriting(tx: Connection) -> Iterator[None]:
    """Let SQLite overwrite what a block of a transaction removes."""
    (before,) = tx.execute("PRAGMA secure_delete").fetchone()
    tx.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        tx.execute(f"PRAGMA secure_delete = {before}")


@contextlib.contextmanager
def told_as_damage(tx: Connection) -> Iterator[None]:
    """Raise StoreCorrupt, in SQLite's words, where pages that a block reads are damaged."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if primary_code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        raise StoreCorrupt(str(error)) from error


def damage(tx: Connection) -> list[str]:
    """Return what the integrity check complains of, a line each."""
    lines = [line for (line,) in tx.execute(f"PRAGMA integrity_check({_MOST_LINES})")]
    return [] if lines == ["ok"] else lines


def orphans(tx: Connection) -> dict[tuple[str, str], list[int | None]]:
    """Return the rows that point at one that is gone, by their table and the other; None for a row without a number."""
    found: dict[tuple[str, str], list[int | None]] = {}
    for table, row, parent, _ in tx.execute("PRAGMA foreign_key_check"):
        found.setdefault((table, parent), []).append(row)
    return found


def rebuild_indexes(tx: Connection) -> bool:
    """Make the indexes of all tables anew; return False where rows are double that must be unique."""
    try:
        tx.execute("REINDEX")
    except sqlite3.IntegrityError:
        return False
    return True


def has_log(tx: Connection) -> bool:
    """Tell whether the file is in write-ahead mode, in which readers and writers do not wait for each other."""
    return bool(tx.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def size(tx: Connection) -> int:
    """Return the bytes of the database, as its pages are."""
    (size,) = tx.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    return int(size)
