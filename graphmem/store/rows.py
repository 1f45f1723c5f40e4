"""All that a memory holds, table by table, whatever the tables are: for who carries a whole memory elsewhere.

Left out is what is derived from the rest (the text index, vectors, postings) and who is just at work.
"""

import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphmem.errors import StoreFailed
from graphmem.store.transaction import Column, Transaction

_AT_WORK = ("counters", "leases", "text_sizes")
_LEFT_OUT = (*_AT_WORK, "vectors")
_DERIVED_COLUMNS = frozenset({("scene_features", "posted")})
# Written when a memory is opened, so a new one has rows there.
_OF_OPENING = ("scope_aliases", "scopes", "active_days")
_COPY = "copy"  # the name of the lease of who copies into a memory
_VALUES = 2_000  # of a statement: a server takes one for many rows faster than many
_NUMBERS = "sqlite_sequence"  # its name in files that were exported


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, its columns that are carried, those of its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class Unfinished(NamedTuple):
    """Who copies into a memory: the digest of what comes, a token of the copy, the source as messages tell it."""

    digest: str
    token: str
    source: str


def tables(tx: Transaction) -> list[Table]:
    """Return the tables that are carried, in an order in which they can be filled while foreign keys are deferred.

    Scopes come before what would make them known; last is what tables remember of numbers, so that none is used twice.
    """
    return [*_without(tx, _LEFT_OUT), Table(_NUMBERS, ("name", "seq"), ("name",))]


def with_vectors(tx: Transaction) -> list[Table]:
    """Return the tables that are carried, in the order of `tables`, and the vectors; what is known of numbers is not.

    But for notes, which name those that superseded them, rows point at rows of tables before theirs alone.
    """
    return _without(tx, _AT_WORK)


def _without(tx: Transaction, left_out: Container[str]) -> list[Table]:
    kept = [name for name in tx.engine.tables(tx) if name not in left_out]
    found = []
    for name in sorted(kept, key=lambda name: name != "scopes"):
        columns = tx.engine.columns(tx, name)
        carried = tuple(column.name for column in columns if (name, column.name) not in _DERIVED_COLUMNS)
        found.append(Table(name, carried, key_of(columns)))
    return found


def key_of(columns: Iterable[Column]) -> tuple[str, ...]:
    """Return the columns of the primary key, in its order."""
    return tuple(column.name for column in sorted(columns, key=lambda one: one.place) if column.place)


def count(tx: Transaction, table: Table) -> int:
    """Return how many rows of a table are carried."""
    if table.name == _NUMBERS:
        return len(_numbers(tx))
    (rows,) = tx.execute(f"SELECT COUNT(*) FROM {table.name}").fetchone()
    return int(rows)


def read(tx: Transaction, table: Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table in the order of their keys."""
    if table.name == _NUMBERS:
        yield from ({"name": name, "seq": last} for name, last in _numbers(tx).items())
        return
    for row in tx.execute(f"SELECT {_named(table.columns)} FROM {table.name} ORDER BY {_named(table.key)}"):
        yield dict(zip(table.columns, row, strict=True))


def page(tx: Transaction, table: Table, after: Sequence[Any] | None, most: int) -> list[tuple[Any, ...]]:
    """Return the rows of a table behind a key, in the order of keys; None for the first ones."""
    behind = "" if after is None else f"WHERE ({_named(table.key)}) > ({', '.join('?' * len(table.key))})"
    return tx.execute(
        f"SELECT {_named(table.columns)} FROM {table.name} {behind} ORDER BY {_named(table.key)} LIMIT {most}",
        after or (),
    ).fetchall()


def last_key(tx: Transaction, table: Table) -> tuple[Any, ...] | None:
    """Return the greatest key of a table, None for an empty one."""
    backwards = ", ".join(f'"{column}" DESC' for column in table.key)
    found: tuple[Any, ...] | None = tx.execute(
        f"SELECT {_named(table.key)} FROM {table.name} ORDER BY {backwards} LIMIT 1"
    ).fetchone()
    return found


def _numbers(tx: Transaction) -> dict[str, int]:
    return {name: last for name, last in tx.engine.numbers(tx).items() if name not in _LEFT_OUT}


def _named(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def is_empty(tx: Transaction) -> bool:
    """Tell whether a memory holds no more than a new one does, with the project and session it is open for."""
    of_new = (*_OF_OPENING, _NUMBERS)
    return not any(
        tx.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone() for table in tables(tx) if table.name not in of_new
    )


def clear(tx: Transaction) -> None:
    """Remove what every new memory holds, also one of an older schema, which may lack tables."""
    there = {table.name for table in tables(tx)}
    for name in _OF_OPENING:
        if name in there:
            tx.execute(f"DELETE FROM {name}")


def insert(tx: Transaction, table: Table, row: Mapping[str, Any]) -> None:
    """Put a row in, of columns of the table. Raises RowsRefused for one that cannot be."""
    with tx.engine.attempt(tx):
        if table.name == _NUMBERS:
            tx.engine.set_number(tx, row["name"], row["seq"])
            return
        tx.execute(_insertion(table, row), tuple(row.values()))


def insert_all(tx: Transaction, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Put rows of all columns of a table in. Raises RowsRefused, after which the transaction has to be rolled back."""
    many = max(_VALUES // len(table.columns), 1)
    with tx.engine.attempt(tx):
        for start in range(0, len(rows), many):
            some = rows[start : start + many]
            tx.execute(_insertion(table, table.columns, len(some)), list(itertools.chain.from_iterable(some)))


def _insertion(table: Table, columns: Collection[str], number: int = 1) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table.name}({_named(columns)}) VALUES {', '.join([row] * number)}"


def unfinished_copy(tx: Transaction) -> Unfinished | None:
    """Return who copies into a memory, or did when it was broken off; None for a memory that is whole."""
    found = tx.execute("SELECT owner FROM leases WHERE name = ?", (_COPY,)).fetchone()
    return Unfinished(*found[0].split(" ", 2)) if found else None


def unfinished(tx: Transaction, path: str) -> StoreFailed:
    """Return what is raised where a memory is a copy that is not finished."""
    by = unfinished_copy(tx)
    source = by.source if by is not None else "elsewhere"
    return StoreFailed(
        f"{path} is a copy from {source} that is not finished: 'graphmem copy' of both again goes on with it, or name "
        "another memory"
    )


def mark_unfinished(tx: Transaction, by: Unfinished) -> None:
    """Note that a memory is being copied into, and by whom: nobody else opens it or writes from then on."""
    tx.execute(
        """INSERT INTO leases(name, owner, until) VALUES (?, ?, '9999-12-31T23:59:59.999Z')
           ON CONFLICT (name) DO UPDATE SET owner = excluded.owner""",
        (_COPY, " ".join(by)),
    )
    tx.engine.set_finished(tx, False)


def mark_finished(tx: Transaction) -> None:
    """Note that a memory is whole."""
    tx.execute("DELETE FROM leases WHERE name = ?", (_COPY,))
    tx.engine.set_finished(tx, True)
