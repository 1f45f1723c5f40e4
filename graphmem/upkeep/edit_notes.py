"""Editing one note: what is given changes, all else stays, its origin too. `undo` reverses it."""

from collections.abc import Mapping
from typing import Any

from graphmem.config import Config
from graphmem.core.keys import title_key
from graphmem.core.model import Note, NoteEditReport, Provenance
from graphmem.core.model.notes import EDITABLE as EDITABLE
from graphmem.core.trust import class_of, is_person, suffices
from graphmem.errors import Conflict, InvalidInput
from graphmem.records import drafts, notes, provenance
from graphmem.store import text_index
from graphmem.store.transaction import Transaction
from graphmem.upkeep.journal import Journal, rows_of

# What an agent may change of a note that binds: how it is found and why it is kept, not what it says.
_HARMLESS = {"labels", "load_when", "summary", "reason"}
_COLUMNS = ("title", "body", "kind", "slot", "summary", "highlight", "pinned", "reason")


def edit(tx: Transaction, note_id: int, changes: Mapping[str, Any], act: Provenance, config: Config) -> NoteEditReport:
    """Change a note; the report tells how it is now.

    Raises NotFound for an unknown note, InvalidInput for what no note can have, Conflict where another note has the
    slot, and where an agent would change what only a person may.
    """
    if not changes:
        raise InvalidInput("changes", None, f"give at least one of {', '.join(EDITABLE)}")
    known = notes.require_note(tx, note_id)
    draft = drafts.check_note(
        **{name: getattr(known, name) for name in (*EDITABLE, "scope", "source")} | dict(changes),
        status=known.status,
        config=config,
    )
    is_free = is_person(act.actor) or _HARMLESS.issuperset(changes)
    if not is_free and (_binds(known, draft, config) or notes.displaced_by(tx, draft, note_id) is not None):
        raise Conflict(f"note {note_id} binds, or would: a person changes it; remember the new one to propose it")
    if draft.status == "live" and (holder := notes.holder_of(tx, known.scope, draft.slot_key, note_id)):
        raise Conflict(f"note {holder} has the slot {draft.slot!r}: forget it first, or choose another slot")
    if draft.status == "live" and notes.says_otherwise(known, draft):
        notes.require_one(tx, draft, note_id)
    journal = Journal(tx)
    (row,) = rows_of(tx, "notes", "id = ?", (note_id,))
    keys = {"title_key": title_key(draft.title), "slot_key": draft.slot_key}
    values = {column: getattr(draft, column) for column in _COLUMNS} | {"pinned": int(draft.pinned)} | keys
    if _tells(act.actor, known, draft, changes):
        # What it says now is as good as who says so; its origin tells who said what was there before.
        values["source"] = act.actor
    if any(row[column] != value for column, value in values.items()):
        journal.update("notes", row, **values, updated_at=max(row["updated_at"], act.at))
    _exchange(journal, "note_labels", note_id, [{"label": label} for label in draft.labels])
    triggers = [{"load_when": trigger, "token": token} for trigger, token in draft.routes]
    _exchange(journal, "note_triggers", note_id, triggers)
    if not journal.images:
        return NoteEditReport(known, None)
    provenance.add(tx, "note", note_id, act)
    text_index.replace(tx, "note", [note_id])
    return NoteEditReport(notes.note(tx, note_id), journal.close("edit note", act.at, {"note": note_id}))


def _binds(known: Note, draft: drafts.Draft, config: Config) -> bool:
    """Tell whether a note binds everybody who reads it, or did or may again, before a change or behind it."""
    if draft.pinned or known.pinned:
        return True
    return known.status != "proposed" and (draft.binds or notes.binds(known, config))


def _tells(actor: str, known: Note, draft: drafts.Draft, changes: Mapping[str, Any]) -> bool:
    """Tell whether who changes a note is its source from then on: who is less trusted, or a person in other words."""
    if not is_person(actor):
        return not _HARMLESS.issuperset(changes) and not suffices(actor, class_of(known.source))
    said = ("title", "body", "kind", "slot") if draft.binds else ("title", "body")
    return not is_person(known.source) and any(getattr(draft, name) != getattr(known, name) for name in said)


def _exchange(journal: Journal, table: str, note_id: int, wanted: list[dict[str, str]]) -> None:
    """Make the rows of a note in a table those that are wanted."""
    wanted_rows = [{"note_id": note_id, **row} for row in wanted]
    stored = rows_of(journal.tx, table, "note_id = ?", (note_id,))
    for row in stored:
        if row not in wanted_rows:
            journal.delete(table, row)
    for row in wanted_rows:
        if row not in stored:
            journal.insert(table, row)
