"""Notes: what was curated. Of the notes of one scope and slot one is live; a new one takes its place."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphmem.core.keys import clean_text, entity_key, text_list
from graphmem.core.model import Note, RememberReport, Standing
from graphmem.errors import InvalidInput
from graphmem.store import text_index
from graphmem.store.text_index import Tokens

KINDS = ("fact", "lesson", "rule", "preference", "decision", "pitfall", "checkpoint")
STATUSES = ("live", "proposed", "archived", "superseded", "forgotten")
# A superseded note is found by a question about the past; the others are not found at all.
_INDEXED = ("live", "superseded")
_COLUMNS = "id, kind, title, body, slot, scope, status, pinned, source, seen, created_at, updated_at, superseded_by"


@dataclass(frozen=True, slots=True)
class Draft:
    """A note that may be written: texts cleaned, words chosen from the known ones."""

    kind: str
    title: str
    body: str
    slot: str
    labels: tuple[str, ...]
    scope: str
    status: str
    pinned: bool
    source: str
    tokens: Tokens
    remarks: tuple[str, ...]


def check_note(
    title: str,
    *,
    body: str,
    kind: str,
    slot: str,
    labels: Iterable[str],
    scope: str,
    pinned: bool,
    status: str,
    source: str,
) -> Draft:
    """Return a note that may be written; raise InvalidInput naming the argument for one that may not."""
    given = {"title": title, "body": body, "slot": slot, "scope": scope, "source": source}
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidInput(name, value, "give a text")
    texts = {name: clean_text(value).strip() for name, value in given.items()}
    marks = tuple(dict.fromkeys(clean_text(label).strip() for label in text_list(labels, "labels") if label.strip()))
    if not entity_key(texts["title"]):
        raise InvalidInput("title", title, "nothing that can be seen is left of it; say in one line what to remember")
    if kind not in KINDS:
        raise InvalidInput("kind", kind, f"give one of {', '.join(KINDS)}")
    if status not in STATUSES:
        raise InvalidInput("status", status, f"give one of {', '.join(STATUSES)}")
    if not isinstance(pinned, bool):
        raise InvalidInput("pinned", pinned, "give true or false")
    replaced = any("\ufffd" in texts[name] and "\ufffd" not in value for name, value in given.items())
    remarks = ("characters that cannot be stored were replaced by U+FFFD",) if replaced else ()
    tokens = text_index.tokens(title=f"{texts['title']}\n{texts['slot']}", labels="\n".join(marks), body=texts["body"])
    return Draft(kind, labels=marks, status=status, pinned=pinned, tokens=tokens, remarks=remarks, **texts)


def remember(tx: sqlite3.Connection, draft: Draft, at: str) -> RememberReport:
    """Write a note. The same one again is only seen once more; one for a slot that is taken supersedes what is there."""
    same = tx.execute(
        """SELECT id FROM notes WHERE scope = ? AND title_key = ? AND slot_key = ? AND body = ? AND kind = ?
               AND status = ? ORDER BY id LIMIT 1""",
        (draft.scope, entity_key(draft.title), entity_key(draft.slot), draft.body, draft.kind, draft.status),
    ).fetchone()
    if same is not None:
        tx.execute(
            "UPDATE notes SET seen = seen + 1, pinned = MAX(pinned, ?), updated_at = MAX(updated_at, ?) WHERE id = ?",
            (draft.pinned, at, same[0]),
        )
        return RememberReport(note(tx, same[0]), created=False, remarks=draft.remarks)
    taken: list[int] = []
    if draft.status == "live" and entity_key(draft.slot):
        rows = tx.execute(
            """UPDATE notes SET status = 'superseded', updated_at = MAX(updated_at, ?)
               WHERE scope = ? AND slot_key = ? AND status = 'live' RETURNING id""",
            (at, draft.scope, entity_key(draft.slot)),
        )
        taken = [note_id for (note_id,) in rows.fetchall()]
    (note_id,) = tx.execute(
        """INSERT INTO notes(scope, kind, slot, slot_key, title, title_key, body, status, pinned, source,
                             created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (draft.scope, draft.kind, draft.slot, entity_key(draft.slot), draft.title, entity_key(draft.title),
         draft.body, draft.status, draft.pinned, draft.source, at, at),
    ).fetchone()  # fmt: skip
    tx.executemany("UPDATE notes SET superseded_by = ? WHERE id = ?", [(note_id, old) for old in taken])
    tx.executemany(
        "INSERT INTO note_labels(note_id, label) VALUES (?, ?)", [(note_id, label) for label in draft.labels]
    )
    if draft.status in _INDEXED:
        text_index.put(tx, "note", [(note_id, draft.tokens)])
    return RememberReport(note(tx, note_id), created=True, superseded=tuple(taken), remarks=draft.remarks)


def note(tx: sqlite3.Connection, note_id: int) -> Note:
    """Return a note that exists."""
    return notes(tx, [note_id])[note_id]


def notes(tx: sqlite3.Connection, note_ids: Sequence[int]) -> dict[int, Note]:
    """Return notes by id; unknown ids are left out."""
    marks = ", ".join("?" * len(note_ids))
    labels: dict[int, list[str]] = {}
    for note_id, label in tx.execute(
        f"SELECT note_id, label FROM note_labels WHERE note_id IN ({marks}) ORDER BY note_id, label", note_ids
    ):
        labels.setdefault(note_id, []).append(label)
    found: dict[int, Note] = {}
    for row in tx.execute(f"SELECT {_COLUMNS} FROM notes WHERE id IN ({marks})", note_ids):
        note_id, kind, title, body, slot, scope, status, pinned, *others = row
        own = tuple(labels.get(note_id, ()))
        found[note_id] = Note(note_id, kind, title, body, slot, own, scope, status, bool(pinned), *others)
    return found


def standing(
    tx: sqlite3.Connection, note_ids: Sequence[int], at: str, scopes: Sequence[str] | None, *, past: bool
) -> dict[int, Standing]:
    """Return the notes that were live at an instant and, with `past`, those that were superseded by then."""
    in_scope = "" if scopes is None else f"AND n.scope IN ({', '.join(['?'] * (len(scopes) + 1))})"
    rows = tx.execute(
        f"""SELECT n.id, n.updated_at, n.status = 'live' OR later.created_at > ? AS current
            FROM notes n LEFT JOIN notes later ON later.id = n.superseded_by
            WHERE n.id IN ({", ".join("?" * len(note_ids))}) AND n.created_at <= ? AND n.status IN ('live', 'superseded')
                AND (current OR ?) {in_scope}""",
        (at, *note_ids, at, past, *([] if scopes is None else ["", *scopes])),
    )
    return {note_id: Standing(told_at, bool(current)) for note_id, told_at, current in rows}


def predecessors(tx: sqlite3.Connection, note_ids: Sequence[int]) -> dict[int, int]:
    """Return the notes that some notes took the slot of, each with its successor."""
    rows = tx.execute(
        f"SELECT id, superseded_by FROM notes WHERE superseded_by IN ({', '.join('?' * len(note_ids))})", note_ids
    )
    return dict(rows.fetchall())
