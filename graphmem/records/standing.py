"""Which notes stand: what may be shown of them, at an instant and in the scopes that are read."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from graphmem.core.keys import entity_key
from graphmem.store.lists import in_list, in_parts, of_scopes, rows_about
from graphmem.store.transaction import Transaction

_FOUND_COLUMNS = "n.id, n.kind, n.title, n.body, n.slot, n.scope, n.pinned, n.source, n.reason, n.updated_at"


class Shown(NamedTuple):
    """What is shown of a note. at: when it was changed last. place: where it was told first."""

    id: int
    text: str
    source: str
    at: str
    status: str
    pinned: bool
    reason: str
    place: str


class Found(NamedTuple):
    """What recalls look at of a note, without what few of them tell: labels, triggers, its origin."""

    id: int
    kind: str
    title: str
    body: str
    slot: str
    scope: str
    pinned: bool
    source: str
    reason: str
    updated_at: str


def shown(tx: Transaction, note_ids: Sequence[int]) -> list[Shown]:
    """Return what is shown of notes."""
    rows = rows_about(
        tx,
        """SELECT n.id, n.title, n.body, n.source, n.updated_at, n.status, n.pinned, n.reason, o.place
            FROM notes n LEFT JOIN provenance o ON o.kind = 'note' AND o.ref_id = n.id AND o.seq = 0
            WHERE n.id IN ({marks})""",
        note_ids,
    )
    return [
        Shown(note_id, f"{title}\n{body}" if body else title, source, at, status, bool(pinned), reason, place or "")
        for note_id, title, body, source, at, status, pinned, reason, place in rows
    ]


def yielding(scopes: Sequence[str] | None) -> tuple[str, list[str]]:
    """Return the condition that a note `n` gives way to none of a project that is read, and its parameters.

    A note of the user does to one of the same slot or, where neither has any, of the same title that says otherwise. A
    rule binds everywhere, so it never does.
    """
    own = [scope for scope in scopes or () if scope]
    if not own:
        return "", []
    marks, wanted = in_list(own)
    # One look-up for each way to be about the same: together in one they would read all notes of the scopes.
    same = f"SELECT 1 FROM notes own WHERE own.scope IN ({marks}) AND own.status = 'live' AND own.slot_key = n.slot_key"
    return (
        f"""AND (n.scope <> '' OR n.kind = 'rule' OR CASE n.slot_key
            WHEN '' THEN NOT EXISTS ({same} AND own.title_key = n.title_key AND own.body <> n.body)
            ELSE NOT EXISTS ({same} AND own.slot_key <> '') END)""",
        wanted * 2,
    )


def standing(
    tx: Transaction, note_ids: Sequence[int], at: str | None, scopes: Sequence[str] | None, *, past: bool
) -> dict[int, str]:
    """Return the notes that were live at an instant and, with `past`, those that were superseded by then.

    at: None for now, whatever the clock says. Each with the time it was written.
    """
    return dict(_standing(tx, "n.id, n.updated_at", note_ids, at, scopes, past=past))


def found(tx: Transaction, note_ids: Iterable[int], at: str | None, scopes: Sequence[str] | None) -> list[Found]:
    """Return those of some notes that were live at an instant, None for now."""
    return [Found._make(row) for row in _standing(tx, _FOUND_COLUMNS, note_ids, at, scopes, past=False)]


def _standing(
    tx: Transaction,
    columns: str,
    note_ids: Iterable[int],
    at: str | None,
    scopes: Sequence[str] | None,
    *,
    past: bool,
) -> Iterator[tuple[Any, ...]]:
    in_scope, parameters = of_scopes(scopes, column="+n.scope")  # by the ids: of a scope there are very many
    in_force, own = yielding(scopes)
    parameters += own
    chosen = f"FROM notes n WHERE n.id IN ({{marks}}) {in_scope} {in_force} AND n.status"
    if at is None or past:
        statuses, moments = "IN ('live', 'superseded')" if past else "= 'live'", []
    else:
        later = "(SELECT later.created_at FROM notes later WHERE later.id = n.superseded_by)"
        statuses, moments = f"IN ('live', 'superseded') AND (n.status = 'live' OR {later} > ?)", [at]
    written, bound = ("", []) if at is None else ("AND n.created_at <= ?", [at])
    asked = f"SELECT {columns} {chosen} {statuses} {written}"
    return rows_about(tx, asked, note_ids, *parameters, *moments, *bound)


def withdrawn(tx: Transaction, note_ids: Sequence[int]) -> set[int]:
    """Return those of some notes that are not live: few, so that this takes a fifth of the time of reading them all."""
    # Else SQLite looks for the rows, of which it knows that they are unique.
    asked = "SELECT id FROM notes INDEXED BY notes_withdrawn WHERE status <> 'live' AND id IN ({marks})"
    return {note_id for (note_id,) in rows_about(tx, asked, note_ids)}


def routes(tx: Transaction, tokens: Iterable[str]) -> list[tuple[int, str, str]]:
    """Return the triggers that features or words may call: the note, the trigger, what it was looked for by."""
    return [
        route
        for part, marks in in_parts(tokens)
        for route in tx.execute(
            f"SELECT note_id, load_when, token FROM note_triggers WHERE token IN ({marks}) ORDER BY note_id, load_when",
            part,
        )
    ]


def pinned(tx: Transaction) -> set[int]:
    """Return the ids of the pinned notes that are live."""
    return {note_id for (note_id,) in tx.execute("SELECT id FROM notes WHERE pinned = 1 AND status = 'live'")}


def residents(tx: Transaction, scopes: Sequence[str] | None, slots: Iterable[str], *, past: bool = False) -> set[int]:
    """Return the ids of what binds everybody: rules in force, pinned notes, and those of some slots.

    past: with those that were superseded since.
    """
    in_force = "n.status IN ('live', 'superseded')" if past else "n.status = 'live'"
    in_scope, parameters = of_scopes(scopes, column="n.scope")
    # Else SQLite reads all notes of a scope, since it takes them for as few.
    by = "" if past else "INDEXED BY notes_resident"
    query = f"SELECT n.id FROM notes n {by} WHERE {in_force} AND (n.pinned = 1 OR n.kind = 'rule') {in_scope}"
    marks, keys = in_list([entity_key(slot) for slot in slots])
    if keys:
        query += f""" UNION ALL SELECT n.id FROM notes n
                      WHERE {in_force} AND n.slot_key <> '' AND n.slot_key IN ({marks}) {in_scope}"""
        parameters += (*keys, *parameters)
    return {note_id for (note_id,) in tx.execute(query, parameters).fetchall()}


def latest(tx: Transaction, kinds: Sequence[str], scopes: Sequence[str] | None, most: int) -> list[Found]:
    """Return the live notes of some kinds that were told openly, those told last first."""
    in_force, own = yielding(scopes)
    one = f"""SELECT {_FOUND_COLUMNS} FROM notes n
        WHERE n.scope = ? AND n.kind = ? AND n.status = 'live' AND n.openly = 1 {in_force}
        ORDER BY n.updated_at DESC, n.id DESC LIMIT ?"""
    known = _scopes_of_notes(tx) if scopes is None else [*dict.fromkeys(("", *scopes))]
    # Each scope and kind comes in order, so that no more is read of it than is returned. Each is a statement of its
    # own: one that is being read is not there for a second use, and would be prepared anew.
    rows = [
        tx.execute(f"{one} -- {number}", (scope, kind, *own, most))
        for number, (scope, kind) in enumerate(itertools.product(known, kinds))
    ]
    try:
        in_order = heapq.merge(*rows, key=lambda row: (row[-1], row[0]), reverse=True)
        return list(map(Found._make, itertools.islice(in_order, most)))
    finally:
        for cursor in rows:
            cursor.close()


def _scopes_of_notes(tx: Transaction) -> list[str]:
    """Return the scopes of live notes that were told openly, each looked up behind the one before."""
    rows = tx.execute(
        """WITH RECURSIVE known(scope) AS (
               SELECT MIN(scope) FROM notes WHERE status = 'live' AND openly = 1
               UNION ALL SELECT (SELECT MIN(n.scope) FROM notes n
                                 WHERE n.status = 'live' AND n.openly = 1 AND n.scope > k.scope)
               FROM known k WHERE k.scope IS NOT NULL)
           SELECT scope FROM known WHERE scope IS NOT NULL"""
    )
    return [scope for (scope,) in rows]


def predecessors(tx: Transaction, note_ids: Sequence[int]) -> dict[int, int]:
    """Return the notes that some notes took the slot of, each with its successor."""
    return dict(rows_about(tx, "SELECT id, superseded_by FROM notes WHERE superseded_by IN ({marks})", note_ids))
