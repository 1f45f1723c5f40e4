"""Lists of values in SQL, the bounds of a prefix, and the condition on scopes."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from graphmem.store.transaction import Transaction

_Value = TypeVar("_Value")

_AT_ONCE = 500  # in one statement
EVERY_ROW = (1 << 63) - 1  # a limit that is none


def in_list(values: Collection[_Value]) -> tuple[str, list[_Value]]:
    """Return the marks of an IN list and its values, filled up to a power of two with the last one.

    A statement then comes in few lengths, and the connection keeps each of them prepared.

    >>> in_list([7, 8, 9])
    ('?, ?, ?, ?', [7, 8, 9, 9])
    """
    filled = list(values)
    if filled:
        filled += filled[-1:] * ((1 << (len(filled) - 1).bit_length()) - len(filled))
    return ", ".join("?" * len(filled)), filled


def in_parts(values: Iterable[_Value]) -> Iterator[tuple[list[_Value], str]]:
    """Yield values in parts that one statement takes, with the marks for them.

    >>> list(in_parts([7, 8]))
    [([7, 8], '?, ?')]
    """
    every = list(values)
    for start in range(0, len(every), _AT_ONCE):
        marks, part = in_list(every[start : start + _AT_ONCE])
        yield part, marks


def rows_about(tx: "Transaction", statement: str, values: Iterable[object], *more: object) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement about values, however many there are.

    `{marks}` in the statement stands for the values, and `more` are the parameters behind them.
    """
    for part, marks in in_parts(values):
        yield from tx.execute(statement.format(marks=marks), (*part, *more)).fetchall()


def values_in_parts(rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[str, list[object]]]:
    """Yield rows in parts that one statement takes: the rows of a VALUES clause, and their parameters.

    >>> list(values_in_parts([(1, "a"), (2, "b")]))
    [('(?, ?), (?, ?)', [1, 'a', 2, 'b'])]
    """
    for part, _ in in_parts(rows):
        marks = f"({', '.join('?' * len(part[0]))})"
        yield ", ".join([marks] * len(part)), [value for row in part for value in row]


def prefix_range(prefix: str) -> tuple[str, str]:
    """Return the bounds, the second one excluded, between which the texts that begin so lie.

    >>> low, high = prefix_range("ab")
    >>> [low <= text < high for text in ("ab", "abyss", "ab字", "aa", "ac")]
    [True, True, True, False, False]
    """
    return prefix, prefix + "\U0010ffff"


def of_scopes(scopes: Sequence[str] | None, *, column: str = "r.scope") -> tuple[str, list[str]]:
    """Return the condition that a column names one of the scopes or none, and its parameters; None for all scopes.

    >>> of_scopes(["work"])
    ('AND r.scope IN (?, ?)', ['', 'work'])
    """
    if scopes is None:
        return "", []
    marks, wanted = in_list(["", *scopes])
    return f"AND {column} IN ({marks})", wanted
