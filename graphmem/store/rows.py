"""All that a memory holds, table by table, whatever the tables are: for who carries a whole memory elsewhere.

Left out is what is derived from the rest (the text index, vectors, postings) and who is just at work.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LEFT_OUT = ("counters", "leases", "text_sizes", "vectors")
_DERIVED_COLUMNS = frozenset({("scene_features", "posted")})
# Written when a memory is opened, so a new one has rows there.
_OF_OPENING = ("scope_aliases", "scopes", "active_days")
_SEQUENCES = "sqlite_sequence"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, its columns that are carried, those of its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def tables(tx: sqlite3.Connection) -> list[Table]:
    """Return the tables that are carried, in an order in which they can be filled while foreign keys are deferred.

    Scopes come before what would make them known; last is what SQLite keeps of numbers, so that none is used twice.
    """
    names = [name for (name,) in tx.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]
    kept = [name for name in names if name not in _LEFT_OUT and not name.startswith(("sqlite_", "_sqlite", "text_"))]
    found = []
    for name in sorted(kept, key=lambda name: name != "scopes"):
        columns = tx.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        key = sorted((place, column) for column, place in columns if place)
        carried = tuple(column for column, _ in columns if (name, column) not in _DERIVED_COLUMNS)
        found.append(Table(name, carried, tuple(column for _, column in key)))
    return [*found, Table(_SEQUENCES, ("name", "seq"), ("name",))]


def count(tx: sqlite3.Connection, table: Table) -> int:
    """Return how many rows of a table are carried."""
    condition, left_out = _carried(table)
    (rows,) = tx.execute(f"SELECT COUNT(*) FROM {table.name}{condition}", left_out).fetchone()
    return int(rows)


def read(tx: sqlite3.Connection, table: Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table in the order of their keys."""
    condition, left_out = _carried(table)
    statement = f"SELECT {_named(table.columns)} FROM {table.name}{condition} ORDER BY {_named(table.key)}"
    for row in tx.execute(statement, left_out):
        yield dict(zip(table.columns, row, strict=True))


def _carried(table: Table) -> tuple[str, tuple[str, ...]]:
    if table.name != _SEQUENCES:
        return "", ()
    return f" WHERE name NOT IN ({', '.join('?' * len(_LEFT_OUT))})", _LEFT_OUT


def _named(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def is_empty(tx: sqlite3.Connection) -> bool:
    """Tell whether a memory holds no more than a new one does, with the project and session it is open for."""
    of_new = (*_OF_OPENING, _SEQUENCES)
    return not any(
        tx.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone() for table in tables(tx) if table.name not in of_new
    )


def clear(tx: sqlite3.Connection) -> None:
    """Remove what every new memory holds, also one of an older schema, which may lack tables."""
    there = {table.name for table in tables(tx)}
    for name in (*_OF_OPENING, _SEQUENCES):
        if name in there:
            tx.execute(f"DELETE FROM {name}")


def insert(tx: sqlite3.Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Put a row in, of columns of the table. Raises what sqlite3 does for one that cannot be."""
    if table.name == _SEQUENCES:  # the rows that were put in have made one already
        tx.execute(f"DELETE FROM {_SEQUENCES} WHERE name = ?", (row.get("name"),))
    marks = ", ".join("?" * len(row))
    tx.execute(f"INSERT INTO {table.name}({_named(row)}) VALUES ({marks})", tuple(row.values()))
