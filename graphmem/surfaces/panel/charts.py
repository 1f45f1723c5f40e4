"""Numbers over days as places in a picture."""

from collections.abc import Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """A rectangle that stands on the ground line."""

    x: float
    y: float
    width: float
    height: float


def columns(values: Sequence[int], width: float, height: float) -> list[Column]:
    """Return a column for each value, the greatest as high as there is room; what is not 0 can be seen.

    >>> columns([0, 5, 10], 30, 20)
    [Column(x=0.0, y=20, width=8.0, height=0), Column(x=10.0, y=10.0, width=8.0, height=10.0), \
Column(x=20.0, y=0.0, width=8.0, height=20.0)]
    """
    most = max(values, default=0) or 1
    room = width / max(len(values), 1)
    heights = [max(height * value / most, 1.5) if value else 0 for value in values]
    return [
        Column(round(i * room, 1), round(height - high, 1), round(room * 0.8, 1), round(high, 1))
        for i, high in enumerate(heights)
    ]


def steps(values: Sequence[int], width: float, height: float) -> str:
    """Return the points of a line through values, from left to right, the greatest at the top and 0 at the ground.

    >>> steps([1, 2, 4], 20, 40)
    '0,30 10,20 20,0'
    """
    most = max(values, default=0) or 1
    room = width / max(len(values) - 1, 1)
    return " ".join(f"{i * room:.4g},{height - height * value / most:.4g}" for i, value in enumerate(values))
