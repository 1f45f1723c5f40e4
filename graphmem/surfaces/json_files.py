"""JSON files of other programs, changed in one place each: every other byte stays as it is, and what was added can be
taken out again without a trace.

What is added to a container that has items goes behind the last one, and taking it out is the reverse of that. What is
added to an empty container stands right behind its opening; a container that was made for it begins with a new line.
So it is known which containers go with their last item.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphmem.errors import InvalidInput

Path = Sequence[str | int]

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_USUAL_INDENT = "  "


@dataclass(frozen=True, slots=True)
class _Item:
    """A member of an object or an element of an array. start: of its key or itself; value, end: of its value."""

    key: str | int
    start: int
    value: int
    end: int


def parsed(text: str, place: str) -> dict[str, Any]:
    """Return the object that a file holds, an empty one for an empty file.

    Raises InvalidInput naming the place and the line of what is none.
    """
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"is no JSON at line {error.lineno}, column {error.colno}: {error.msg}; mend it, nothing was changed"
        raise InvalidInput("file", place, reason) from None
    except RecursionError:
        raise InvalidInput("file", place, "is nested too deeply; nothing was changed") from None
    if not isinstance(found, dict):
        raise InvalidInput("file", place, "holds no JSON object; mend it, nothing was changed")
    return found


def value_at(found: Any, *path: str) -> Any:
    """Return what lies at a path of names, None where nothing does.

    >>> value_at({"a": {"b": 1}}, "a", "b"), value_at({"a": 1}, "a", "b")
    (1, None)
    """
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def with_value(text: str, path: Path, value: object) -> str:
    r"""Return a text in which a value lies at a path: changed where there is one, else added behind the last item.

    The path leads through objects, which are made where they are missing, as is a file that holds nothing; it may end
    with the number of an element, at most one behind the last. Raises InvalidInput where it leads through something
    else.

    >>> print(with_value('{\n  "a": 1\n}', ["b", "c"], [True]))
    {
      "a": 1,
      "b": {
        "c": [
          true
        ]
      }
    }
    """
    if not text.strip():
        return json.dumps(_nested(path, value), ensure_ascii=False, indent=_USUAL_INDENT) + "\n"
    opening = _skipped(text, 0)
    for depth, key in enumerate(path):
        items = _items(text, opening, path[:depth])
        item = next((each for each in reversed(items) if each.key == key), None)
        if item is None:
            return _added(text, opening, items, key, _nested(path[depth + 1 :], value))
        if depth == len(path) - 1:
            return text[: item.value] + _rendered(text, value, _indent_of(text, item.start)) + text[item.end :]
        opening = item.value
    return text


def without_value(text: str, path: Path) -> str:
    r"""Return a text without what lies at a path, nor the containers that were made for it; '' where nothing is left.

    >>> text = '{\n  "a": 1\n}'
    >>> without_value(with_value(text, ["b", "c", 0], {"d": 2}), ["b", "c", 0]) == text
    True
    """
    opening = _skipped(text, 0)
    for depth, key in enumerate(path):
        items = _items(text, opening, path[:depth])
        place = next((n for n in reversed(range(len(items))) if items[n].key == key), None)
        if place is None:
            return text
        if depth == len(path) - 1:
            return _taken_out(text, opening, items, place, path)
        opening = items[place].value
    return text


def _nested(path: Path, value: object) -> object:
    for key in reversed(path):
        value = {key: value} if isinstance(key, str) else [value]
    return value


def _taken_out(text: str, opening: int, items: Sequence[_Item], place: int, path: Path) -> str:
    item = items[place]
    if place:
        return text[: items[place - 1].end] + text[item.end :]
    if len(items) > 1:
        return text[: item.start] + text[items[1].start :]
    if item.start > opening + 1:  # made for it
        return without_value(text, path[:-1]) if len(path) > 1 else ""
    return text[: opening + 1] + text[item.end :]


def _added(text: str, opening: int, items: Sequence[_Item], key: str | int, value: object) -> str:
    if not items:
        indent = _indent_of(text, opening)
        return text[: opening + 1] + _member(text, key, value, indent) + text[opening + 1 :]
    first, last = items[0], items[-1]
    gap = text[opening + 1 : first.start]
    if "\n" not in gap:
        gap = " "
    indent = _indent_of(text, first.start)
    return f"{text[: last.end]},{gap}{_member(text, key, value, indent)}{text[last.end :]}"


def _member(text: str, key: str | int, value: object, indent: str) -> str:
    rendered = _rendered(text, value, indent)
    return f"{json.dumps(key, ensure_ascii=False)}: {rendered}" if isinstance(key, str) else rendered


def _rendered(text: str, value: object, indent: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, ensure_ascii=False, indent=_unit_of(text)).split("\n")
    return f"{newline}{indent}".join(lines)


def _unit_of(text: str) -> str:
    """Return by what the file indents: what stands before its first item."""
    found = re.match(r"\s*\{[ \t]*\r?\n([ \t]+)", text)
    return found[1] if found else _USUAL_INDENT


def _indent_of(text: str, place: int) -> str:
    """Return what the line of a place begins with."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skipped(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _items(text: str, opening: int, path: Path) -> list[_Item]:
    """Return the items of the container that begins at a place."""
    if text[opening] not in "{[":
        raise InvalidInput("file", ".".join(map(str, path)), "is neither an object nor a list there; mend it")
    is_object = text[opening] == "{"
    items: list[_Item] = []
    place = _skipped(text, opening + 1)
    while text[place] not in "}]":
        start = place
        key: str | int = len(items)
        if is_object:
            key, place = _DECODER.raw_decode(text, place)
            place = _skipped(text, _skipped(text, place) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(text, place)
        items.append(_Item(key, start, place, end))
        place = _skipped(text, end)
        if text[place] == ",":
            place = _skipped(text, place + 1)
    return items
