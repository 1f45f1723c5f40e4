"""Editing one note: what is given changes, all else stays, its origin too. `undo` reverses it."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from graphmem.config import Config
from graphmem.core.keys import entity_key, title_key
from graphmem.core.model import Note, NoteEditReport, Provenance
from graphmem.core.trust import class_of
from graphmem.errors import Conflict, InvalidInput
from graphmem.records import notes, provenance
from graphmem.store import text_index
from graphmem.upkeep.journal import Journal, rows_of

EDITABLE = ("title", "body", "kind", "slot", "labels", "load_when", "summary", "highlight", "pinned", "reason")
# What an agent may change of a note that binds: how it is found and why it is kept, not what it says.
_HARMLESS = {"labels", "load_when", "summary", "reason"}
_COLUMNS = ("title", "body", "kind", "slot", "summary", "highlight", "pinned", "reason")


def edit(
    tx: sqlite3.Connection, note_id: int, changes: Mapping[str, Any], act: Provenance, config: Config
) -> NoteEditReport:
    """Change a note; the report tells how it is now.

    Raises NotFound for an unknown note, InvalidInput for what no note can have, Conflict where another note has the
    slot, and where an agent would change what only a person may.
    """
    if not changes:
        raise InvalidInput("changes", None, f"give at least one of {', '.join(EDITABLE)}")
    known = notes.require_note(tx, note_id)
    draft = notes.check_note(
        **{name: getattr(known, name) for name in (*EDITABLE, "scope", "source")} | dict(changes),
        status=known.status,
        config=config,
    )
    if class_of(act.actor) != "user" and not _HARMLESS.issuperset(changes) and _binds(known, draft, config):
        raise Conflict(f"note {note_id} binds, or would: a person changes it; remember the new one to propose it")
    if draft.status == "live" and (holder := notes.holder_of(tx, known.scope, draft.slot_key, note_id)):
        raise Conflict(f"note {holder} has the slot {draft.slot!r}: forget it first, or choose another slot")
    journal = Journal(tx)
    (row,) = rows_of(tx, "notes", "id = ?", (note_id,))
    keys = {"title_key": title_key(draft.title), "slot_key": draft.slot_key}
    values = {column: getattr(draft, column) for column in _COLUMNS} | {"pinned": int(draft.pinned)} | keys
    if any(row[column] != value for column, value in values.items()):
        journal.update("notes", row, **values, updated_at=max(row["updated_at"], act.at))
    _exchange(journal, "note_labels", note_id, [{"label": label} for label in draft.labels])
    triggers = [{"load_when": trigger, "token": notes.token_of(trigger)} for trigger in draft.load_when]
    _exchange(journal, "note_triggers", note_id, triggers)
    if not journal.images:
        return NoteEditReport(known, None)
    provenance.add(tx, "note", note_id, act)
    text_index.replace(tx, "note", [note_id])
    return NoteEditReport(notes.note(tx, note_id), journal.close("edit note", act.at, {"note": note_id}))


def _binds(known: Note, draft: notes.Draft, config: Config) -> bool:
    """Tell whether a note binds everybody who reads it, before a change or behind it."""
    if draft.pinned or known.pinned:
        return True
    was_constraint = entity_key(known.slot) in map(entity_key, config.constraint_keys)
    return known.status == "live" and (draft.binds or known.kind == "rule" or was_constraint)


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
