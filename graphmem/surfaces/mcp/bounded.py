"""Long answers in pages, each of the form of the whole: what a reply shows, and what it keeps for the next."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.surfaces.wire import to_json, whole_number

Json = Any
_Part = tuple[Json, tuple[str, ...]]

LIMIT = 20_000  # characters of JSON; Claude Code warns of answers beyond 10 000 tokens
_KEPT = 32  # answers whose rest waits to be asked for
# Of the limit, what one text, and one list within an item, may take of a page.
_SHARE_OF_TEXT = 4
_SHARE_OF_LIST = 100


@dataclass(frozen=True, slots=True)
class Page:
    """A part of an answer. cursor: what the next one is asked for with, '' where there is none.

    cut: where texts and lists go on in the pages after, as in 'note.body'.
    """

    value: Json
    cursor: str = ""
    cut: tuple[str, ...] = ()


class Pages:
    """Cuts answers into pages and keeps the latest ones that have several."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, tuple[object, Sequence[_Part]]] = OrderedDict()
        self._lock = threading.Lock()

    def first(self, asked: object, answer: Json) -> Page:
        """Return the first page of an answer; asked: what it answers, which has to be asked again with the cursor."""
        parts = tuple(pages_of(answer, self._limit))
        name = secrets.token_hex(6)
        if len(parts) > 1:
            with self._lock:
                self._kept[name] = (asked, parts)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return _page(name, parts, 0)

    def next(self, asked: object, cursor: object) -> Page:
        """Return the page of a cursor, as often as it is asked for. Raises InvalidInput for an unknown one."""
        name, _, place = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
        number = whole_number(place)
        with self._lock:
            known = self._kept.get(name)
        if known is None or number is None or number >= len(known[1]):
            raise InvalidInput("cursor", cursor, "nothing is kept for it; ask again without it")
        if known[0] != asked:
            raise InvalidInput("cursor", cursor, "it goes on with another question; ask that again, with its arguments")
        return _page(name, known[1], number)


def _page(name: str, parts: Sequence[_Part], number: int) -> Page:
    value, cut = parts[number]
    return Page(value, f"{name}.{number + 1}" if number + 1 < len(parts) else "", cut)


def pages_of(answer: Json, limit: int) -> Iterator[_Part]:
    """Yield an answer in parts of about `limit` characters of JSON, each with the places where it goes on.

    A list, and each list in an object, goes on with its next items; what else an object holds is in every part. Texts
    and inner lists that are too long are told piece by piece: when all items were shown, those come again that have
    another piece.

    >>> [part for part, _ in pages_of({"id": 1, "notes": ["a" * 40, "b" * 40, "c"]}, 100)]  # doctest: +ELLIPSIS
    [{'id': 1, 'notes': ['aaa...', 'bbb...', 'c']}, {'id': 1, 'notes': ['aaa...
    """
    named = answer if isinstance(answer, dict) else {"": answer}
    lists = {name: value for name, value in named.items() if isinstance(value, list)}
    fixed = {name: value for name, value in named.items() if name not in lists}
    items = [(name, number, item) for name, value in lists.items() for number, item in enumerate(value)]
    piece, turn = _Piece(max(1, limit // _SHARE_OF_TEXT), max(1, limit // _SHARE_OF_LIST)), 0
    while True:
        told = piece.of(fixed, turn)
        room = limit - len(to_json(told.value))
        shown: dict[str, list[Json]] = {name: [] for name in lists}
        cut, used, is_any = list(told.cut), 0, False
        goes_on = bool(told.cut)
        for name, number, item in items:
            one = piece.of(item, turn)
            if turn and not one.is_there:
                continue
            length = len(to_json(one.value)) + 2
            if is_any and used + length > room:
                yield _joined(answer, told.value, shown), tuple(cut)
                shown, cut, used = {name: [] for name in lists}, list(told.cut), 0
            shown[name].append(one.value)
            cut += [_path(name, str(number), path) for path in one.cut]
            goes_on = goes_on or bool(one.cut)
            used, is_any = used + length, True
        if is_any or told.is_there or not turn:
            yield _joined(answer, told.value, shown), tuple(cut)
        if not goes_on:
            return
        turn += 1


def _joined(answer: Json, fixed: Mapping[str, Json], shown: Mapping[str, list[Json]]) -> Json:
    if not isinstance(answer, dict):
        return shown[""] if "" in shown else fixed[""]
    return {name: shown[name] if name in shown else fixed[name] for name in answer}


def _path(*names: str) -> str:
    return ".".join(name for name in names if name)


@dataclass(frozen=True, slots=True)
class _Told:
    """A piece of a value. is_there: some of it is told in this turn. cut: what of it goes on."""

    value: Json
    is_there: bool
    cut: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """How much of a value is told in a turn: characters of each text, items of each list of short values in it."""

    characters: int
    items: int

    def of(self, value: Json, turn: int) -> _Told:
        cut: list[str] = []
        is_there = False

        def told(part: Json, path: str) -> Json:
            nonlocal is_there
            most = self._most(part)
            if most is not None and len(part) > most:
                start = turn * most
                is_there = is_there or start < len(part)
                if start + most < len(part):
                    cut.append(path)
                return part[start : start + most]
            if isinstance(part, dict):
                return {name: told(one, _path(path, name)) for name, one in part.items()}
            if isinstance(part, list):
                return [told(one, _path(path, str(number))) for number, one in enumerate(part)]
            return part

        return _Told(told(value, ""), is_there, tuple(cut))

    def _most(self, part: Json) -> int | None:
        """Return how much of a text, or of a list of short values, is told in a turn; None for another value."""
        if isinstance(part, str):
            return self.characters
        if isinstance(part, list) and not any(
            isinstance(one, dict | list) or (isinstance(one, str) and len(one) > self.characters) for one in part
        ):
            return self.items
        return None
