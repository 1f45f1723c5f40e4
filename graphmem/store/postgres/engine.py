"""What PostgreSQL does in its own way: names of tables, numbers of rows, checks of the database."""

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from graphmem.errors import StoreCorrupt
from graphmem.store.schema import VERSION
from graphmem.store.scripts import script
from graphmem.store.transaction import Column, RowsRefused

if TYPE_CHECKING:
    from graphmem.store.postgres.transaction import PostgresRows, PostgresTransaction

_REFUSALS = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.ProgrammingError,
    psycopg.errors.ProgramLimitExceeded,  # a key that is too long for its index
    OverflowError,
)
_OF_THE_STORE = ("store_state", "text_index")
# Each is found by its own name: to look for all that is in a schema would read what all tenants have.
_COLUMNS = """SELECT a.attname, a.atttypid = 'text'::regtype, COALESCE(array_position(k.conkey, a.attnum), 0)
              FROM pg_attribute a LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
              WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_FOREIGN = """SELECT c.relname, p.relname,
                     (SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
                      WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey)),
                     (SELECT string_agg(format('o.%I', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
                      WHERE a.attrelid = p.oid AND a.attnum = ANY (k.confkey)),
                     (SELECT format('t.%I', a.attname) FROM pg_constraint i
                      JOIN pg_attribute a ON a.attrelid = i.conrelid AND a.attnum = i.conkey[1]
                      WHERE i.conrelid = c.oid AND i.contype = 'p' AND cardinality(i.conkey) = 1
                          AND a.atttypid = 'bigint'::regtype)
              FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
              WHERE k.contype = 'f' AND k.conrelid = to_regclass(?) ORDER BY c.relname, p.relname"""

is_remote = True

# What stands before the columns of an inner statement.
_INNER = "inner_row"
_Row = tuple[Any, ...]


def each(tx: "PostgresTransaction", statement: str, rows: Iterable[Sequence[Any]]) -> Iterator[list[_Row]]:
    """Send a statement once for each of some rows of parameters; return what each gave."""
    sent = [tx.execute(statement, row) for row in rows]
    return (one.fetchall() for one in sent)


def ahead(tx: "PostgresTransaction", statement: str, parameters: Callable[[], Sequence[Any]]) -> "PostgresRows":
    """Send a statement, whose rows may be wanted, along with others."""
    return tx.execute(statement, parameters())


def nested(
    tx: "PostgresTransaction", statement: str, parameters: Sequence[Any], inner: str, most: int
) -> Iterator[tuple[_Row, list[_Row]]]:
    """Return the rows of a statement, each with those of an inner one, all in one round trip.

    See `graphmem.store.transaction.Engine`.
    """
    return _grouped(tx.execute(_nested(statement, inner), (*parameters, most)))


@functools.cache
def _nested(statement: str, inner: str) -> str:
    of_one = f"SELECT TRUE AS {_INNER}, n.* FROM ({inner.replace('?', 'o.id')}) n"
    return f"""WITH o AS ({statement}) SELECT o.*, i.* FROM o LEFT JOIN LATERAL ({of_one}) i
               ON (SELECT COUNT(*) FROM o) < ?"""


def _grouped(rows: "PostgresRows") -> Iterator[tuple[_Row, list[_Row]]]:
    found: dict[Any, tuple[_Row, list[_Row]]] = {}
    fetched = rows.fetchall()
    width = next((place for place, column in enumerate(rows.description) if column[0] == _INNER), 0)
    for row in fetched:
        if row[0] not in found:
            found[row[0]] = row[:width], []
        if row[width]:
            found[row[0]][1].append(row[width + 1 :])
    for row, inner in found.values():
        yield row, sorted(inner)  # no join keeps an order


def tables(_tx: "PostgresTransaction") -> list[str]:
    """Return the names of the tables that are the memory's own, in the order in which they were made."""
    return [name for name in all_tables() if name not in _OF_THE_STORE]


def columns(tx: "PostgresTransaction", table: str) -> list[Column]:
    """Return the columns of a table, none for one that is not there."""
    return [Column(name, bool(is_text), place) for name, is_text, place in tx.execute(_COLUMNS, (table,))]


def numbers(tx: "PostgresTransaction") -> dict[str, int]:
    """Return the last number that each table has given to a row, which is never given again."""
    asked = [tx.execute("SELECT pg_get_serial_sequence(?, ?)", (name, column)) for name, column in numbered()]
    known = []
    for (table, _), rows in zip(numbered(), asked, strict=True):
        (sequence,) = rows.fetchone()
        known.append((table, tx.execute(f"SELECT last_value, is_called FROM {sequence}")))
    told = [(table, *rows.fetchone()) for table, rows in known]
    return {table: last for table, last, is_called in sorted(told) if is_called}


@functools.cache
def next_number(table: str) -> str:
    """Return SQL that takes the next number of a table, which is then given to no other row."""
    return f"nextval(pg_get_serial_sequence('{table}', '{dict(numbered())[table]}'))"


def set_number(tx: "PostgresTransaction", table: str, last: int) -> None:
    """Let the rows of a table be numbered from behind a number."""
    tx.execute("SELECT setval(pg_get_serial_sequence(?, ?), ?)", (table, dict(numbered())[table], last))


@functools.cache
def all_tables() -> tuple[str, ...]:
    """Return the names of the tables of a tenant, those of the store too."""
    return tuple(re.findall(r"^CREATE TABLE (\w+)", script("postgres/schema.sql"), re.MULTILINE))


@functools.cache
def numbered() -> tuple[tuple[str, str], ...]:
    """Return the tables that number their rows, and the column of the number."""
    found = re.findall(r"^CREATE TABLE (\w+)\(\n +(\w+) BIGINT GENERATED", script("postgres/schema.sql"), re.MULTILINE)
    return tuple((table, column) for table, column in found)


def set_finished(tx: "PostgresTransaction", is_finished: bool) -> None:
    """Note whether a memory is whole: the version of a copy that is not finished is below 0."""
    tx.execute("UPDATE store_state SET version = ?", (VERSION if is_finished else -VERSION,))


def defer_foreign_keys(tx: "PostgresTransaction") -> None:
    """Let rows point at nothing until the end of the transaction."""
    tx.execute("SET CONSTRAINTS ALL DEFERRED")


@contextlib.contextmanager
def attempt(tx: "PostgresTransaction") -> Iterator[None]:
    """Raise RowsRefused where a rule of the schema forbids what a block writes, of which nothing stays."""
    tx.settle()  # what was sent before is not the block's
    before, tx.prepares = tx.prepares, False
    try:
        with tx.savepoint():
            yield
            tx.settle()
    except _REFUSALS as error:
        raise RowsRefused(str(error)) from error
    finally:
        tx.prepares = before


@contextlib.contextmanager
def overwriting(_tx: "PostgresTransaction") -> Iterator[None]:
    """Do nothing: rows that were removed are overwritten after the next vacuum, which `clean` runs."""
    yield


@contextlib.contextmanager
def told_as_damage(tx: "PostgresTransaction") -> Iterator[None]:
    """Raise StoreCorrupt, in the server's words, where pages that a block reads are damaged; the rest can be read."""
    try:
        with tx.savepoint():
            yield
    except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
        raise StoreCorrupt(" ".join(str(error).split())) from error


def damage(_tx: "PostgresTransaction") -> list[str]:
    """Return nothing: pages are checked by the server (data checksums, pg_amcheck), which has its own operators."""
    return []


def orphans(tx: "PostgresTransaction") -> dict[tuple[str, str], list[int | None]]:
    """Return the rows that point at one that is gone, by their table and the other; None for a row without a number."""
    found: dict[tuple[str, str], list[int | None]] = {}
    keys = [tx.execute(_FOREIGN, (name,)) for name in tables(tx)]
    for table, parent, own, theirs, number in [key for rows in keys for key in rows]:
        matches = " AND ".join(
            f"{mine} = {other}" for mine, other in zip(own.split(", "), theirs.split(", "), strict=True)
        )
        there = " AND ".join(f"{mine} IS NOT NULL" for mine in own.split(", "))
        lost = tx.execute(
            f"""SELECT {number or "NULL"} FROM {table} t
                WHERE {there} AND NOT EXISTS (SELECT 1 FROM {parent} o WHERE {matches}) ORDER BY 1"""
        ).fetchall()
        if lost:
            found.setdefault((table, parent), []).extend(row for (row,) in lost)
    return found


def rebuild_indexes(tx: "PostgresTransaction") -> bool:
    """Make the indexes of all tables anew; return False where rows are double that must be unique."""
    try:
        with attempt(tx):
            for name in all_tables():
                tx.execute(f"REINDEX TABLE {name}")
    except RowsRefused:
        return False
    return True


def has_log(_tx: "PostgresTransaction") -> bool:
    """Tell that readers and writers do not wait for each other."""
    return True


def size(tx: "PostgresTransaction") -> int:
    """Return the bytes of the tables of a memory, with their indexes."""
    sizes = [tx.execute("SELECT pg_total_relation_size(to_regclass(?))", (name,)) for name in all_tables()]
    return sum(size.fetchone()[0] for size in sizes)
