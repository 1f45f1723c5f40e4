"""What a client may read by its address: scenes and notes."""

import base64
import binascii
import itertools
import json
import urllib.parse
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces.mcp.bounded import pages_of
from graphmem.surfaces.wire import to_json, whole_number

_NOTES = "graphmem://notes/"
_SCENES = "graphmem://scenes/"
_PAGE = 100
_HELD = 100  # of each kind

TEMPLATES: tuple[dict[str, Any], ...] = (
    {
        "name": "note",
        "uri_template": _NOTES + "{id}{?page}",
        "description": "Everything about a note, by its number; next, where there is more",
    },
    {
        "name": "scene",
        "uri_template": _SCENES + "{key}{?page}",
        "description": f"What a scene holds, by its key, the heaviest {_HELD} of each kind; next, where there is more",
    },
)


def listed(memory: Memory, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """Return live notes, then scenes, a hundred at a time, and the cursor of the next ones."""
    kind, start = ("notes", 0) if cursor is None else _place(cursor)
    found: list[dict[str, Any]] = []
    if kind == "notes":
        notes = memory.notes(limit=_PAGE + 1, skip=start)
        found = [
            {"uri": f"{_NOTES}{note.id}", "name": f"note {note.id}", "title": note.title, "description": note.kind}
            for note in notes[:_PAGE]
        ]
        if len(notes) > _PAGE:
            return found, _cursor("notes", start + _PAGE)
        start = 0
    room = _PAGE - len(found)
    scenes = memory.scenes(limit=room + 1, skip=start)
    found += [
        {"uri": _SCENES + urllib.parse.quote(scene.key, safe=""), "name": scene.key, "description": "scene"}
        for scene in scenes[:room]
    ]
    return found, _cursor("scenes", start + room) if len(scenes) > room else None


def read(memory: Memory, uri: str, limit: int) -> str:
    """Return the JSON of a note or a scene, of at most about `limit` characters. Raises InvalidInput, NotFound.

    Where that is not all of it, `next` is the address of the next part, and `goes_on` tells what was cut.
    """
    place, _, query = uri.partition("?")
    page = 1 if not query else whole_number(query.removeprefix("page="))
    if not page:
        raise InvalidInput("uri", uri, "give ?page= and a number from 1 on, or neither")
    if place.startswith(_NOTES):
        number = whole_number(place.removeprefix(_NOTES))
        if number is None:
            raise InvalidInput("uri", uri, "give the number of a note")
        answer: object = memory.inspect(number)
    elif place.startswith(_SCENES):
        key = urllib.parse.unquote(place.removeprefix(_SCENES))
        memory.scene(key)  # a recall finds nothing in one that is unknown, and says nothing of it
        answer = memory.recall_by_scene(key, exact=True, limit=_HELD)
    else:
        raise InvalidInput("uri", uri, f"give {_NOTES} and a number, or {_SCENES} and a key")
    parts = list(itertools.islice(pages_of(json.loads(to_json(answer)), limit), page - 1, page + 1))
    if not parts:
        raise InvalidInput("uri", uri, "there is no such page; begin without ?page=")
    value, cut = parts[0]
    more = {"next": f"{place}?page={page + 1}", "goes_on": cut} if len(parts) > 1 else {}
    return to_json({**value, **more})


def _cursor(kind: str, start: int) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{start}".encode()).decode()


def _place(cursor: str) -> tuple[str, int]:
    try:
        kind, _, start = base64.urlsafe_b64decode(cursor.encode()).decode().partition(":")
        number = whole_number(start)
        if kind in ("notes", "scenes") and number is not None:
            return kind, number
    except (binascii.Error, ValueError):
        pass
    raise InvalidInput("cursor", cursor, "it is none that was given; begin without it")
