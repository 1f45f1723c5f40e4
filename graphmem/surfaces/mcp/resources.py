"""What a client may read by its address: scenes and notes."""

import base64
import binascii
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

TEMPLATES: tuple[dict[str, Any], ...] = (
    {"name": "note", "uri_template": _NOTES + "{id}", "description": "Everything about a note, by its number"},
    {"name": "scene", "uri_template": _SCENES + "{key}", "description": "What a scene holds, by its key"},
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
    """Return the JSON of a note or a scene, of at most about `limit` characters. Raises InvalidInput, NotFound."""
    if uri.startswith(_NOTES):
        number = whole_number(uri.removeprefix(_NOTES))
        if number is None:
            raise InvalidInput("uri", uri, "give the number of a note")
        answer: object = memory.inspect(number)
    elif uri.startswith(_SCENES):
        key = urllib.parse.unquote(uri.removeprefix(_SCENES))
        memory.scene(key)  # a recall finds nothing in one that is unknown, and says nothing of it
        answer = memory.recall_by_scene(key, exact=True)
    else:
        raise InvalidInput("uri", uri, f"give {_NOTES} and a number, or {_SCENES} and a key")
    value, _ = next(pages_of(json.loads(to_json(answer)), limit))
    return to_json(value)


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
