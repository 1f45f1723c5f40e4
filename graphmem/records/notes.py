"""Notes: what was curated. Of the notes of one scope and slot one is live; a new one takes its place."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphmem.core.keys import clean_text, entity_key, text_list
from graphmem.core.model import Note, RememberReport
from graphmem.errors import InvalidInput
from graphmem.store import text_index
from graphmem.store.lists import in_list, of_scopes

KINDS = ("fact", "lesson", "rule", "preference", "decision", "pitfall", "checkpoint")
STATUSES = ("live", "proposed", "archived", "superseded", "forgotten")
_LONGEST_TITLE = 500
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
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Holder:
    """A note that has or had a slot; content: the key of its title, its body, its kind."""

    id: int
    live: bool
    content: tuple[str, str, str]


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
    names = [label for label in text_list(labels, "labels") if entity_key(label)]
    cleaned = {name: clean_text(value) for name, value in given.items()}
    # A scope is compared as it is given, here as everywhere.
    texts = {name: text if name == "scope" else text.strip() for name, text in cleaned.items()}
    marks = _by_key(clean_text(label).strip() for label in names)
    if not entity_key(texts["title"]):
        raise InvalidInput("title", title, "nothing that can be seen is left of it; say in one line what to remember")
    if len(texts["title"]) > _LONGEST_TITLE:
        reason = f"a title has at most {_LONGEST_TITLE} characters; put the rest into the body"
        raise InvalidInput("title", f"{title[:40]}…", reason)
    if kind not in KINDS:
        raise InvalidInput("kind", kind, f"give one of {', '.join(KINDS)}")
    if status not in STATUSES:
        raise InvalidInput("status", status, f"give one of {', '.join(STATUSES)}")
    if not isinstance(pinned, bool):
        raise InvalidInput("pinned", pinned, "give true or false")
    replaced = cleaned != given or any(clean_text(label) != label for label in names)
    remarks = ("characters that cannot be stored were replaced by U+FFFD",) if replaced else ()
    return Draft(kind, labels=tuple(marks.values()), status=status, pinned=pinned, remarks=remarks, **texts)


def _by_key(labels: Iterable[str]) -> dict[str, str]:
    """Return labels by their canonical form, the first spelling of each.

    >>> _by_key(["Redis", "redis", "缓存"])
    {'redis': 'Redis', '缓存': '缓存'}
    """
    found: dict[str, str] = {}
    for label in labels:
        found.setdefault(entity_key(label), label)
    return found


def remember(tx: sqlite3.Connection, draft: Draft, at: str, *, at_is_given: bool = False) -> RememberReport:
    """Write a note. The same one again is seen once more; one for a slot that is taken supersedes what is there.

    One that is told for a time before that of the live note goes to its place among those that came before.
    """
    before, after = _in_slot(tx, draft, at if at_is_given else None)
    same = next((one for one in (before, after) if one and one.content == _content(draft)), None)
    same_id = same.id if same else _elsewhere(tx, draft)
    if same_id is not None:
        return _seen_again(tx, same_id, draft, at)
    if before and before.live:
        tx.execute("UPDATE notes SET status = 'superseded' WHERE id = ?", (before.id,))
    (note_id,) = tx.execute(
        """INSERT INTO notes(scope, kind, slot, slot_key, title, title_key, body, status, pinned, source,
                             superseded_by, created_at, updated_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (draft.scope, draft.kind, draft.slot, entity_key(draft.slot), draft.title, entity_key(draft.title),
         draft.body, "superseded" if after else draft.status, draft.pinned, draft.source, after and after.id, at, at),
    ).fetchone()  # fmt: skip
    if before:
        tx.execute("UPDATE notes SET superseded_by = ? WHERE id = ?", (note_id, before.id))
    _label(tx, note_id, draft.labels)
    text_index.add(tx, "note", [note_id])
    taken = (before.id,) if before and before.live else ()
    return RememberReport(note(tx, note_id), created=True, superseded=taken, remarks=draft.remarks)


def _content(draft: Draft) -> tuple[str, str, str]:
    return entity_key(draft.title), draft.body, draft.kind


def _in_slot(tx: sqlite3.Connection, draft: Draft, at: str | None) -> tuple[_Holder | None, _Holder | None]:
    """Return which note held the slot of a draft at a time, None for now, and which took it after that."""
    if draft.status != "live" or not entity_key(draft.slot):
        return None, None
    columns = "SELECT id, status, created_at, title_key, body, kind FROM notes"
    row = tx.execute(
        f"{columns} WHERE scope = ? AND slot_key = ? AND status = 'live'", (draft.scope, entity_key(draft.slot))
    ).fetchone()
    after: _Holder | None = None
    while row is not None:
        holder = _Holder(row[0], row[1] == "live", row[3:])
        if at is None or row[2] <= at:
            return holder, after
        after = holder
        row = tx.execute(f"{columns} WHERE superseded_by = ?", (holder.id,)).fetchone()
    return None, after


def _elsewhere(tx: sqlite3.Connection, draft: Draft) -> int | None:
    """Return the id of the same note where no slot orders them."""
    if draft.status == "live" and entity_key(draft.slot):
        return None
    row = tx.execute(
        """SELECT id FROM notes WHERE scope = ? AND title_key = ? AND body = ? AND kind = ? AND slot_key = ?
               AND status = ? ORDER BY id LIMIT 1""",
        (draft.scope, *_content(draft), entity_key(draft.slot), draft.status),
    ).fetchone()
    return None if row is None else int(row[0])


def _seen_again(tx: sqlite3.Connection, note_id: int, draft: Draft, at: str) -> RememberReport:
    tx.execute(
        """UPDATE notes SET seen = seen + 1, pinned = MAX(pinned, ?), created_at = MIN(created_at, ?),
                            updated_at = MAX(updated_at, ?) WHERE id = ?""",
        (draft.pinned, at, at, note_id),
    )
    known = _by_key(note(tx, note_id).labels)
    unknown = [label for label in draft.labels if entity_key(label) not in known]
    if unknown:
        _label(tx, note_id, unknown)
        text_index.replace(tx, "note", [note_id])
    return RememberReport(note(tx, note_id), created=False, remarks=draft.remarks)


def _label(tx: sqlite3.Connection, note_id: int, labels: Iterable[str]) -> None:
    tx.executemany("INSERT INTO note_labels(note_id, label) VALUES (?, ?)", [(note_id, label) for label in labels])


def note(tx: sqlite3.Connection, note_id: int) -> Note:
    """Return a note that exists."""
    return notes(tx, [note_id])[note_id]


def notes(tx: sqlite3.Connection, note_ids: Sequence[int]) -> dict[int, Note]:
    """Return notes by id; unknown ids are left out."""
    marks, ids = in_list(note_ids)
    labels: dict[int, list[str]] = {}
    for note_id, label in tx.execute(
        f"SELECT note_id, label FROM note_labels WHERE note_id IN ({marks}) ORDER BY note_id, label", ids
    ):
        labels.setdefault(note_id, []).append(label)
    found: dict[int, Note] = {}
    for row in tx.execute(f"SELECT {_COLUMNS} FROM notes WHERE id IN ({marks})", ids):
        note_id, kind, title, body, slot, scope, status, pinned, *others = row
        own = tuple(labels.get(note_id, ()))
        found[note_id] = Note(note_id, kind, title, body, slot, own, scope, status, bool(pinned), *others)
    return found


def shown(tx: sqlite3.Connection, note_ids: Sequence[int]) -> list[tuple[int, str, str, str, str, bool]]:
    """Return of notes what is shown: id, text, source, time of the last change, status, whether it is pinned."""
    marks, ids = in_list(note_ids)
    rows = tx.execute(
        f"SELECT id, title, body, source, updated_at, status, pinned FROM notes WHERE id IN ({marks})", ids
    )
    return [
        (note_id, f"{title}\n{body}" if body else title, source, at, status, bool(pinned))
        for note_id, title, body, source, at, status, pinned in rows.fetchall()
    ]


def standing(
    tx: sqlite3.Connection, note_ids: Sequence[int], at: str | None, scopes: Sequence[str] | None, *, past: bool
) -> dict[int, str]:
    """Return the notes that were live at an instant and, with `past`, those that were superseded by then.

    at: None for now, whatever the clock says. Each with the time it was written.
    """
    marks, ids = in_list(note_ids)
    in_scope, parameters = of_scopes(scopes, column="n.scope")
    chosen = f"FROM notes n WHERE n.id IN ({marks}) {in_scope} AND n.status"
    if at is None or past:
        statuses, moments = "IN ('live', 'superseded')" if past else "= 'live'", []
    else:
        later = "(SELECT later.created_at FROM notes later WHERE later.id = n.superseded_by)"
        statuses, moments = f"IN ('live', 'superseded') AND (n.status = 'live' OR {later} > ?)", [at]
    written, bound = ("", []) if at is None else ("AND n.created_at <= ?", [at])
    rows = tx.execute(f"SELECT n.id, n.updated_at {chosen} {statuses} {written}", (*ids, *parameters, *moments, *bound))
    return dict(rows.fetchall())


def withdrawn(tx: sqlite3.Connection, note_ids: Sequence[int]) -> set[int]:
    """Return those of some notes that are not live: few, so that this takes a fifth of the time of reading them all."""
    marks, ids = in_list(note_ids)
    # Else SQLite looks for the rows, of which it knows that they are unique.
    rows = tx.execute(
        f"SELECT id FROM notes INDEXED BY notes_withdrawn WHERE status <> 'live' AND id IN ({marks})", ids
    )
    return {note_id for (note_id,) in rows.fetchall()}


def pinned(tx: sqlite3.Connection) -> set[int]:
    """Return the ids of the pinned notes that are live."""
    return {note_id for (note_id,) in tx.execute("SELECT id FROM notes WHERE pinned = 1 AND status = 'live'")}


def predecessors(tx: sqlite3.Connection, note_ids: Sequence[int]) -> dict[int, int]:
    """Return the notes that some notes took the slot of, each with its successor."""
    marks, ids = in_list(note_ids)
    rows = tx.execute(f"SELECT id, superseded_by FROM notes WHERE superseded_by IN ({marks})", ids)
    return dict(rows.fetchall())
