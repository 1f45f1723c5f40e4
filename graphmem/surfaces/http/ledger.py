"""The routes of dsh-memory-ledger under their old prefix, for programs that speak them: notes by the names they had.

Its tokens and ids are ours: writing needs the token, and an id is a whole number.
"""

import functools
import ntpath
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from graphmem.config import check_count, check_flags
from graphmem.core.model import Note
from graphmem.errors import GraphmemError, InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces.http.bodies import object_of, read_body
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.http.memories import Memories
from graphmem.surfaces.http.refusals import JSON, told
from graphmem.surfaces.http.token import Doorkeeper
from graphmem.surfaces.notes_found import notes_of

MOST = 1000  # entries of one answer
_LOOKED_THROUGH = 5000  # notes of which most may be of another scope, or hold other words
MODES = ("hybrid", "keyword", "vector")
ASKED = ("q", "mode", "scope", "cwd", "archived")
_YES, _NO = ("1", "true"), ("", "0", "false")
# What is changed under an old name.
CHANGED = {"title": "title", "body": "body", "key": "slot", "tags": "labels", "pinned": "pinned", "kind": "kind",
           "reason": "reason"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an entry was told first. cwd: the folder, '' where it is not known; label: its name."""

    cwd: str
    label: str
    sessionId: str  # noqa: N815 (its name there)
    at: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A note by the names it had. key: its slot. tags: its labels. scope: 'user', or the key of another one."""

    id: int
    kind: str
    title: str
    body: str
    key: str
    tags: tuple[str, ...]
    pinned: bool
    archived: bool
    reason: str
    scope: str
    origin: Origin
    createdAt: str  # noqa: N815 (likewise)
    updatedAt: str  # noqa: N815 (likewise)


@dataclass(frozen=True, slots=True)
class Entries:
    """What was asked for: the best first where words were, else what was told last. more: whether some are left out."""

    entries: tuple[Entry, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """An entry as it is after a change; None where it was removed for good."""

    entry: Entry | None


ANSWERS = {"entries": Entries, "update_entry": Changed, "forget_entry": Changed}


class LedgerRoutes:
    """`GET ledger`, `POST update` and `POST forget` under a prefix."""

    def __init__(self, memories: Memories, *, keeper: Doorkeeper, bounds: Bounds) -> None:
        self._memories = memories
        self._keeper = keeper
        self._bounds = bounds

    def under(self, prefix: str) -> list[Route]:
        """Return the routes."""
        return [
            Route(f"{prefix}/ledger", self._list, methods=["GET"]),
            Route(f"{prefix}/update", functools.partial(self._post, update), methods=["POST"]),
            Route(f"{prefix}/forget", functools.partial(self._post, forget), methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        self._keeper.require_reading(request)
        query = _once(request.query_params.multi_items())
        folder = query.pop("cwd", "")
        found = await self._memories.run(request, lambda memory: entries(memory, **query), project=folder or None)
        return Response(told(found), media_type=JSON)

    async def _post(self, verb: Callable[[Memory, Mapping[str, Any]], Changed], request: Request) -> Response:
        self._keeper.require(request)
        body = await read_body(request, self._bounds)
        changed = await self._memories.run(request, lambda memory: verb(memory, object_of(body)))
        return Response(told(changed), media_type=JSON)


def entries(memory: Memory, *, q: str = "", mode: str = "", scope: str = "", archived: str = "") -> Entries:
    """Return notes of the user and the current project; those that hold the words of a query where there is one.

    scope: 'user', 'project' or the key of one, and only what is of that; 'all' for every one. archived: '1' for what
    was put away too, of which a query finds what has all of its words.
    """
    if mode and mode not in MODES:
        raise InvalidInput("mode", mode, f"give one of {', '.join(MODES)}")
    if archived not in (*_YES, *_NO):
        raise InvalidInput("archived", archived, "give 1 for what was put away too")
    scopes, exact = [scope] if scope else None, scope not in ("", "all")
    found: list[Note] = []
    more = False
    if q.strip():
        most = _LOOKED_THROUGH if exact else MOST
        hits = memory.recall(q, kinds="note", mode=mode or None, scopes=scopes, limit=most + 1)
        found += [note for _, note in notes_of(memory, hits[:most], scope=scope if exact else "all")]
        more = len(hits) > most
    else:
        found += memory.notes(scopes=scopes, exact=exact, limit=MOST + 1)
    if archived in _YES:
        most = _LOOKED_THROUGH if q.strip() else MOST
        away = memory.notes(statuses="archived", scopes=scopes, exact=exact, limit=most + 1)
        found += [note for note in away[:most] if holds(note, q)]
        more = more or len(away) > most
    return Entries(tuple(_entry(note) for note in found[:MOST]), more or len(found) > MOST)


def update(memory: Memory, given: Mapping[str, Any]) -> Changed:
    """Change what is given of an entry, and put it away or bring it back; all of it or nothing."""
    note_id = _id_of(given, (*CHANGED, "archived"))
    changes = {CHANGED[name]: value for name, value in given.items() if name in CHANGED}
    if "archived" in given:
        check_flags(archived=given["archived"])
    away = given.get("archived")
    known = memory.inspect(note_id).note
    reason = {"reason": given["reason"]} if "reason" in given else {}
    moves = away is not None and away != (known.status == "archived")
    if set(changes) == {"reason"} and moves:
        changes = {}  # why it is put away, or brought back
    if not changes and away is None:
        raise InvalidInput("body", dict(given), f"give at least one of {', '.join((*CHANGED, 'archived'))}")
    try:
        operation = memory.edit_note(note_id, **changes).operation if changes else None
    except InvalidInput as error:
        raise InvalidInput(_OLD_NAMES.get(error.argument, error.argument), error.value, error.reason) from None
    if moves:
        try:
            if away:
                memory.forget(note_id, **reason)
            else:
                memory.restore_note(note_id, **reason)
        except GraphmemError:
            if operation is not None:
                memory.undo(operation)
            raise
    return Changed(_entry(memory.inspect(note_id).note))


def forget(memory: Memory, given: Mapping[str, Any]) -> Changed:
    """Put an entry away, or remove it for good where `hard` is true."""
    note_id = _id_of(given, ("hard",))
    hard = given.get("hard", False)
    check_flags(hard=hard)
    memory.forget(note_id, hard=hard)
    return Changed(None if hard else _entry(memory.inspect(note_id).note))


_OLD_NAMES = {new: old for old, new in CHANGED.items()}


def _id_of(given: Mapping[str, Any], known: Sequence[str]) -> int:
    """Return the id in what was sent, which may hold what is known and nothing else."""
    for name in given:
        if name not in ("id", *known):
            raise InvalidInput(name, given[name], f"give some of {', '.join(('id', *known))}")
    found = given.get("id")
    if isinstance(found, float) and found.is_integer():  # JSON Schema has 8.0 for an integer too
        found = int(found)
    check_count("id", found, low=1)
    assert isinstance(found, int)
    return found


def _once(query: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in query:
        if name not in ASKED:
            raise InvalidInput(name, text, f"give some of {', '.join(ASKED)}")
        if name in found:
            raise InvalidInput(name, text, "give it once")
        found[name] = text
    return found


def holds(note: Note, query: str) -> bool:
    """Tell whether a note has every word of a query."""
    said = " ".join((note.title, note.body, note.slot, *note.labels)).casefold()
    return all(word in said for word in re.findall(r"\w+", query.casefold()))


def _entry(note: Note) -> Entry:
    place = note.origin.place
    name = (ntpath if "\\" in place else posixpath).basename(place.rstrip("/\\"))
    origin = Origin(place, name or place, note.origin.session, note.origin.at)
    return Entry(
        note.id, note.kind, note.title, note.body, note.slot, note.labels, note.pinned, note.status == "archived",
        note.reason, note.scope or "user", origin, note.created_at, note.updated_at,
    )  # fmt: skip
