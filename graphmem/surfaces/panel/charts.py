"""Numbers over days as places in a picture."""

import datetime as dt
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


class Point(NamedTuple):
    """A place in a picture, from its left and its top."""

    x: float
    y: float


def points(days: Sequence[str], values: Sequence[int], width: float, height: float) -> list[Point]:
    """Return a point for each day (ISO 8601) and its value: by time from left to right, the greatest value at the top.

    >>> points(["2026-09-01", "2026-09-02", "2026-09-05"], [1, 2, 4], 20, 40)
    [Point(x=0.0, y=30.0), Point(x=5.0, y=20.0), Point(x=20.0, y=0.0)]
    """
    if not days:
        return []
    most = max(values) or 1
    numbers = [dt.date.fromisoformat(day).toordinal() for day in days]
    span = numbers[-1] - numbers[0] or 1
    return [
        Point(round((number - numbers[0]) / span * width, 1), round(height - height * value / most, 1))
        for number, value in zip(numbers, values, strict=True)
    ]
