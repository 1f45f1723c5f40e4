"""JSON files of other programs, changed in one place each: every other byte stays as it is, and what was added can be
taken out again without a trace.

What is added to a container that has items goes behind the last one, and taking it out is the reverse of that. What is
added to an empty container stands right behind its opening; a container that was made for it begins with a new line.
So it is known which containers go with their last item. A file that was made ends with a new line; what is put into a
file that holds nothing ends without one, and behind the blanks that were there.

Comments, and commas behind a last item, may be there, as some programs allow; what is added goes behind the comment
that ends the line of the item before it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphmem.errors import InvalidInput

Path = Sequence[str | int]

_BLANK = re.compile(r"[ \t\r\n]*")
_TEXT = r'"(?:[^"\\\n]|\\.)*+"'
_COMMENT = re.compile(rf"{_TEXT}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*+[\]}}])")
_BESIDE = re.compile(r"(?:[ \t]*/\*(?:[^*\n]|\*(?!/))*+\*/)*+(?:[ \t]*//[^\r\n]*)?")
_DECODER = json.JSONDecoder()
_USUAL_INDENT = "  "


@dataclass(frozen=True, slots=True)
class _Item:
    """A member of an object or an element of an array.

    start: of its key or itself; value, end: of its value; comma: of the comma behind it, None where there is none.
    """

    key: str | int
    start: int
    value: int
    end: int
    comma: int | None

    @property
    def all(self) -> int:
        """Where it ends with its comma."""
        return self.end if self.comma is None else self.comma + 1


def parsed(text: str | None, place: str, *, comments: bool = False) -> dict[str, Any]:
    """Return the object that a file holds, an empty one for a file that holds nothing and for None, a missing file.

    comments: whether its program allows them, and commas behind a last item. Raises InvalidInput naming the place and
    the line of what is none.

    >>> parsed('{"a": [1, 2,], // "b"\\n}', "file", comments=True)
    {'a': [1, 2]}
    """
    if text is None or not text.strip():
        return {}
    try:
        found = json.loads(_strict(_bare(text)) if comments else text)
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


def with_value(text: str | None, path: Path, value: object) -> str:
    r"""Return a text in which a value lies at a path: changed where there is one, else added behind the last item.

    text: None for a missing file, which is made. The path leads through objects, which are made where they are missing,
    as is that of a file that holds nothing; it may end with the number of an element, at most one behind the last.
    Raises InvalidInput where it leads through something else.

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
    if text is None or not text.strip():
        made = json.dumps(_nested(path, value), ensure_ascii=False, indent=_USUAL_INDENT)
        return f"{made}\n" if text is None else text + made
    bare = _bare(text)
    opening = _skipped(bare, 0)
    for depth, key in enumerate(path):
        items = _items(bare, opening, path[:depth])
        item = next((each for each in reversed(items) if each.key == key), None)
        if item is None:
            return _added(text, opening, items, key, _nested(path[depth + 1 :], value))
        if depth == len(path) - 1:
            return text[: item.value] + _rendered(text, value, _indent_of(text, item.start)) + text[item.end :]
        opening = item.value
    return text


def without_value(text: str, path: Path) -> str | None:
    r"""Return a text without what lies at a path, nor the containers that were made for it; None for a file, too.

    >>> text = '{\n  "a": 1\n}'
    >>> without_value(with_value(text, ["b", "c", 0], {"d": 2}), ["b", "c", 0]) == text
    True
    """
    bare = _bare(text)
    opening = _skipped(bare, 0)
    for depth, key in enumerate(path):
        items = _items(bare, opening, path[:depth])
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


def _bare(text: str) -> str:
    """Return a text with blanks in the place of comments."""
    if "/" not in text:
        return text
    return _COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else re.sub(r"[^\r\n]", " ", found[0]), text)


def _strict(bare: str) -> str:
    """Return a text without commas behind last items, all else in its place."""
    return _LAST_COMMA.sub(lambda found: " " if found[0] == "," else found[0], bare)


def _taken_out(text: str, opening: int, items: Sequence[_Item], place: int, path: Path) -> str | None:
    item = items[place]
    if place:
        before = items[place - 1]
        comma, border = before.all - 1, _border(text, before)
        if item.comma is None:  # it was the last one, and the comma before it came with it
            return text[:comma] + text[comma + 1 : border] + text[item.end :]
        return text[:border] + text[item.all :]
    if len(items) > 1:
        return text[: item.start] + text[_skipped(text, item.all) :]
    if item.start > opening + 1:  # made for it
        return without_value(text, path[:-1]) if len(path) > 1 else _without_object(text, opening)
    return text[: opening + 1] + text[item.all :]


def _without_object(text: str, opening: int) -> str | None:
    """Return what stands around the object of a file, None for a file that was made for it."""
    ending = text[_DECODER.raw_decode(_strict(_bare(text)), opening)[1] :]
    return None if opening == 0 and ending and not ending.strip() else text[:opening] + ending


def _added(text: str, opening: int, items: Sequence[_Item], key: str | int, value: object) -> str:
    if not items:
        indent = _indent_of(text, opening)
        return text[: opening + 1] + _member(text, key, value, indent) + text[opening + 1 :]
    first, last = items[0], items[-1]
    indent, border = _indent_of(text, first.start), _border(text, last)
    beside = text[last.all : border]
    is_long = "\n" in text[opening : first.start] or "//" in beside
    member = (f"{_newline(text)}{indent}" if is_long else " ") + _member(text, key, value, indent)
    if last.comma is None:
        return f"{text[: last.end]},{beside}{member}{text[border:]}"
    return f"{text[:border]}{member},{text[border:]}"


def _border(text: str, item: _Item) -> int:
    """Return where an item ends with its comma and the comments on its line."""
    found = _BESIDE.match(text, item.all)
    return found.end() if found else item.all


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _member(text: str, key: str | int, value: object, indent: str) -> str:
    rendered = _rendered(text, value, indent)
    return f"{json.dumps(key, ensure_ascii=False)}: {rendered}" if isinstance(key, str) else rendered


def _rendered(text: str, value: object, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_unit_of(text)).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _unit_of(text: str) -> str:
    """Return by what the file indents: what stands before its first item."""
    found = re.match(r"\s*\{[ \t]*\r?\n(?:[ \t]*\r?\n)*([ \t]+)\S", _bare(text))
    return found[1] if found else _USUAL_INDENT


def _indent_of(text: str, place: int) -> str:
    """Return what the line of a place begins with."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skipped(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _items(bare: str, opening: int, path: Path) -> list[_Item]:
    """Return the items of the container that begins at a place."""
    if bare[opening] not in "{[":
        raise InvalidInput("file", ".".join(map(str, path)), "is neither an object nor a list there; mend it")
    strict = _strict(bare)
    is_object = bare[opening] == "{"
    items: list[_Item] = []
    place = _skipped(bare, opening + 1)
    while bare[place] not in "}]":
        start = place
        key: str | int = len(items)
        if is_object:
            key, place = _DECODER.raw_decode(strict, place)
            place = _skipped(bare, _skipped(bare, place) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(strict, place)
        comma = _skipped(bare, end)
        has_comma = bare[comma] == ","
        items.append(_Item(key, start, place, end, comma if has_comma else None))
        place = _skipped(bare, comma + 1) if has_comma else comma
    return items
