"""Notes: found, looked at, corrected, put away and decided upon."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from graphmem.core.choices import NOTE_KINDS
from graphmem.core.model import Note
from graphmem.core.model.notes import EDITABLE
from graphmem.errors import Conflict, GraphmemError, InvalidInput, SecretRefused
from graphmem.memory import Memory
from graphmem.surfaces.http.ledger import MODES, holds
from graphmem.surfaces.notes_found import notes_of
from graphmem.surfaces.panel.asking import Asked, Done, Paging, Shown
from graphmem.surfaces.wire import http_status

_PAGE = 50
_LOOKED_THROUGH = 2000  # notes: the best of those in force, and those told last of others, which no recall finds
STATUSES = ("live", "live,archived", "proposed", "archived", "superseded", "forgotten", "all")
_LISTED = ("labels", "load_when")
_NEW: dict[str, Any] = {**dict.fromkeys(EDITABLE, ""), "kind": "fact", "labels": (), "load_when": (), "pinned": False}


def notes(asked: Asked) -> Shown:
    """List notes, or those that answer a search."""
    query = asked.text("q")
    mode = asked.one_of("mode", MODES, "hybrid")
    kind = asked.one_of("kind", ("", *NOTE_KINDS), "")
    status = asked.one_of("status", STATUSES, "live")
    scope = asked.text("scope", "all") or "all"
    page = asked.whole("page", 1, low=1)
    scopes = asked.memory.scopes()
    told = {
        "chosen": {"q": query, "mode": mode, "kind": kind, "status": status, "scope": scope},
        "kinds": NOTE_KINDS,
        "statuses": STATUSES,
        "modes": MODES,
        "scopes": scopes,
        "names": {each.key: each.label for each in scopes},
        "looked_at": 0,
    }
    within = [scope]
    statuses = () if status == "all" else status.split(",")
    kinds = (kind,) if kind else ()
    if query:
        found, all_seen = _searched(asked.memory, query, mode, kinds, statuses, within)
        here = found[(page - 1) * _PAGE : page * _PAGE]
        told["looked_at"] = 0 if all_seen else _LOOKED_THROUGH
        return Shown("notes.html", {**told, "notes": here, "paging": Paging(page, _PAGE, len(found) > page * _PAGE)})
    listed = asked.memory.notes(kinds=kinds, statuses=statuses, scopes=within, limit=_PAGE + 1, skip=(page - 1) * _PAGE)
    return Shown("notes.html", {**told, "notes": listed[:_PAGE], "paging": Paging(page, _PAGE, len(listed) > _PAGE)})


def _searched(
    memory: Memory, query: str, mode: str, kinds: Collection[str], statuses: Collection[str], scopes: Sequence[str]
) -> tuple[list[Note], bool]:
    """Return the notes that answer a query: those in force as recall finds them, then others that have its words.

    And whether all notes were looked at, not the first ones alone.
    """
    found: dict[int, Note] = {}
    all_seen = True
    if not statuses or "live" in statuses:
        hits = memory.recall(query, kinds="note", mode=mode, scopes=scopes, limit=_LOOKED_THROUGH + 1)
        all_seen = len(hits) <= _LOOKED_THROUGH
        answering = notes_of(memory, hits[:_LOOKED_THROUGH], kinds=kinds, statuses=statuses)
        found = {each.id: each for _, each in answering}
    others = [status for status in STATUSES if "," not in status and status not in ("live", "all")]
    if wanted := [status for status in others if not statuses or status in statuses]:
        listed = memory.notes(kinds=kinds, statuses=wanted, scopes=scopes, limit=_LOOKED_THROUGH + 1)
        all_seen = all_seen and len(listed) <= _LOOKED_THROUGH
        for each in listed[:_LOOKED_THROUGH]:
            if each.id not in found and holds(each, query):
                found[each.id] = each
    return list(found.values()), all_seen


def note(asked: Asked) -> Shown:
    """Show one note and what was done to it."""
    return _one(asked)


def _one(asked: Asked, fields: Mapping[str, Any] | None = None, error: GraphmemError | None = None) -> Shown:
    """Show a note. fields: what was entered and cannot be kept, with the error that tells why."""
    detail = asked.memory.inspect(asked.number)
    told = {
        "detail": detail,
        "note": detail.note,
        "fields": _fields(detail.note) if fields is None else fields,
        "mark": _mark(detail.note),
        **_form_told(error),
    }
    return Shown("note.html", told, 200 if error is None else http_status(error))


def _form_told(error: GraphmemError | None) -> dict[str, Any]:
    wrong = error.argument if isinstance(error, InvalidInput | SecretRefused) else ""
    return {"kinds": NOTE_KINDS, "error": "" if error is None else str(error), "wrong": wrong}


def _fields(note: Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in EDITABLE}


def _mark(note: Note) -> str:
    """Return a mark of what a form shows, by which it is known whether the note was changed meanwhile."""
    return hashlib.sha256(repr(_fields(note)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _entered(asked: Asked) -> dict[str, Any]:
    """Return the fields of a note as a form has them."""
    entered: dict[str, Any] = {name: asked.text(name) for name in EDITABLE}
    return {**entered, **{name: asked.texts(name) for name in _LISTED}, "pinned": bool(asked.text("pinned"))}


def edit(asked: Asked) -> Done | Shown:
    """Change a note as the form says, unless somebody else did meanwhile."""
    entered = _entered(asked)
    known = asked.memory.inspect(asked.number).note
    before = _fields(known)
    changes = {name: value for name, value in entered.items() if value != before[name]}
    try:
        if asked.text("mark") != _mark(known):
            raise Conflict(
                f"note {asked.number} was changed meanwhile: what you typed is below; save it again to replace that"
            )
        report = asked.memory.edit_note(asked.number, **changes) if changes else None
    except GraphmemError as error:
        return _one(asked, entered, error)
    operation = report.operation if report else None
    return Done("edited" if operation else "unchanged", asked.number, operation=operation)


def new(asked: Asked) -> Shown:
    """Show the form of a new note."""
    return _blank(asked, _NEW)


def _blank(asked: Asked, fields: Mapping[str, Any], error: GraphmemError | None = None) -> Shown:
    told = {"fields": fields, "scopes": asked.memory.scopes(), "scope": asked.text("scope"), **_form_told(error)}
    return Shown("new.html", told, 200 if error is None else http_status(error))


def remember(asked: Asked) -> Done | Shown:
    """Write a new note, as the person who looks at the panel."""
    entered = _entered(asked)
    try:
        report = asked.memory.remember(
            entered.pop("title"), **entered, scope=asked.text("scope") or None, source="user"
        )
    except GraphmemError as error:
        return _blank(asked, _entered(asked), error)
    return Done("remembered" if report.created else "known", report.note.id, f"/notes/{report.note.id}")


def archive(asked: Asked) -> Done:
    """Put a note away."""
    asked.memory.forget(asked.number, reason=asked.text("reason"))
    return Done("archived", asked.number)


def restore(asked: Asked) -> Done:
    """Bring a note back."""
    asked.memory.restore_note(asked.number)
    return Done("restored", asked.number)


def approve(asked: Asked) -> Done:
    """Let a proposal come into force."""
    asked.memory.approve(asked.number)
    return Done("approved", asked.number)


def reject(asked: Asked) -> Done:
    """Put a proposal away."""
    asked.memory.reject(asked.number, reason=asked.text("reason"))
    return Done("rejected", asked.number)


def remove(asked: Asked) -> Done:
    """Remove a note for good, where its number was typed to confirm that."""
    typed = asked.text("typed")
    if typed != str(asked.number):
        raise InvalidInput("typed", typed, f"type the number of the note, {asked.number}, to remove it for good")
    asked.memory.forget(asked.number, hard=True)
    return Done("removed", asked.number, "/notes")
