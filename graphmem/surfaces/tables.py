"""Tables and trees as lines of text: columns side by side, as wide as the room allows.

Written here and not by a package: that would take as long to load as all the rest of a command.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

_GAP = "   "
_WORD = re.compile(r"(?:\A\s+)?\S+\s*")
_UNSEEN = frozenset({"Mn", "Me", "Cf"})


def width_of(text: str) -> int:
    """Return how many places a text takes on a line.

    >>> width_of("a"), width_of("老大"), width_of("e\\u0301")
    (1, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_places, text))


def cut(text: str, width: int, mark: str = "…") -> str:
    """Return a text cut to a width, with a mark where something is left out.

    >>> cut("memory", 4), cut("老大", 3), cut("ok", 4)
    ('mem…', '老…', 'ok')
    """
    if width_of(text) <= width:
        return text
    return text[: _fitting(text, max(width - width_of(mark), 0))].rstrip() + mark


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines of a width, parted between words; words that are longer are parted too.

    >>> wrapped("a scene of memory", 7), wrapped("abcdefgh", 3)
    (['a scene', 'of', 'memory'], ['abc', 'def', 'gh'])
    """
    lines, line = [], ""
    for word in _WORD.findall(text):
        if line and width_of(line) + width_of(word.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        *full, rest = _pieces(word.rstrip(), width)
        lines += full
        line += rest + word[len(word.rstrip()) :]
    return [*lines, line.rstrip()]


def table_lines(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    room: int,
    right: Sequence[bool],
    cuts: Sequence[bool],
    rule: str = "─",
    mark: str = "…",
) -> list[str]:
    """Return a table that is at most `room` wide: the names of the columns, a rule, the rows.

    right: columns that end flush. cuts: columns that are cut to what the others leave; where there are none, the widest
    columns are wrapped.

    >>> for line in table_lines(["id", "text"], [["1", "a b"]], room=80, right=[True, False], cuts=[False, False]):
    ...     print(line)
     id   text
     ─────────
      1   a b
    """
    widths = [max(1, *map(width_of, column)) for column in zip(columns, *rows, strict=True)]
    shrinking = [place for place, cutting in enumerate(cuts) if cutting] or list(range(len(columns)))
    widths = _fitted(widths, shrinking, room - 2 - len(_GAP) * (len(columns) - 1))
    lines: list[str] = []
    for cells in (columns, *rows):
        parts = [
            [cut(cell, width, mark)] if cutting else wrapped(cell, width)
            for cell, width, cutting in zip(cells, widths, cuts, strict=True)
        ]
        lines += [_line(line, widths, right) for line in itertools.zip_longest(*parts, fillvalue="")]
        if cells is columns:
            lines.append(f" {rule * (sum(widths) + len(_GAP) * (len(widths) - 1))}")
    return lines


def tree_lines(head: str, below: Iterable[str], guides: tuple[str, str] = ("├── ", "└── ")) -> Iterator[str]:
    """Return a line, and lines below it with what leads to them.

    >>> list(tree_lines("a", ["b", "c"]))
    ['a', '├── b', '└── c']
    """
    yield head
    branches = list(below)
    for place, text in enumerate(branches, 1):
        yield guides[place == len(branches)] + text


def _places(character: str) -> int:
    if unicodedata.category(character) in _UNSEEN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitting(text: str, width: int) -> int:
    """Return how many characters fit into a width."""
    taken = 0
    for place, character in enumerate(text):
        taken += _places(character)
        if taken > width:
            return place
    return len(text)


def _pieces(word: str, width: int) -> list[str]:
    """Return a word as pieces of a width, in one pass: a text without spaces may be one word."""
    pieces, start, taken = [], 0, 0
    for place, character in enumerate(word):
        places = _places(character)
        if taken + places > width and place > start:
            pieces.append(word[start:place])
            start, taken = place, 0
        taken += places
    return [*pieces, word[start:]]


def _fitted(widths: Sequence[int], shrinking: Sequence[int], room: int) -> list[int]:
    """Return widths that fit together: the widest of those that may shrink give way first, others when they must."""
    fitted = [min(width, max(room, 1)) for width in widths]
    while sum(fitted) > room:
        wide = [place for place in shrinking if fitted[place] > 1] or [i for i, width in enumerate(fitted) if width > 1]
        if not wide:
            break
        fitted[max(wide, key=fitted.__getitem__)] -= 1
    return fitted


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, flush in zip(cells, widths, right, strict=True):
        space = " " * (width - width_of(cell))
        padded.append(space + cell if flush else cell + space)
    return f" {_GAP.join(padded)}".rstrip()
