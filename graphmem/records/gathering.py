"""What consolidating and distilling read of one scope: its notes, what they were made of, and the calls of tools."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from graphmem.core.distilling import Said
from graphmem.core.model import Note
from graphmem.records.notes import notes
from graphmem.store.lists import EVERY_ROW, in_list, in_parts
from graphmem.store.transaction import Transaction

_CALL_SHOWN = 4_000  # characters of a call: what it was given comes first


def live_notes(
    tx: Transaction, scope: str, kinds: Sequence[str], *, openly: bool = False, most: int = EVERY_ROW
) -> list[Note]:
    """Return the live notes of exactly this scope, those told last first. openly: only those that are for everybody."""
    marks, wanted = in_list(kinds)
    rows = tx.execute(
        f"""SELECT id FROM notes WHERE scope = ? AND kind IN ({marks}) AND status = 'live' AND openly >= ?
            ORDER BY updated_at DESC, id DESC LIMIT ?""",
        (scope, *wanted, openly, most),
    )
    return _in_order(tx, rows)


def checkpoints_behind(tx: Transaction, scope: str, note_id: int, most: int) -> list[Note]:
    """Return the live checkpoints of exactly this scope that are for everybody and came after a note, oldest first."""
    rows = tx.execute(
        """SELECT id FROM notes WHERE scope = ? AND kind = 'checkpoint' AND status = 'live' AND openly = 1 AND id > ?
           ORDER BY id LIMIT ?""",
        (scope, note_id, most),
    )
    return _in_order(tx, rows)


def _in_order(tx: Transaction, rows: Iterable[tuple[int]]) -> list[Note]:
    ids = [note_id for (note_id,) in rows]
    found = notes(tx, ids)
    return [found[note_id] for note_id in ids]


def count_live(tx: Transaction, scope: str) -> int:
    """Return how many live notes a scope has, without its checkpoints."""
    (count,) = tx.execute(
        "SELECT COUNT(*) FROM notes WHERE scope = ? AND status = 'live' AND kind <> 'checkpoint'", (scope,)
    ).fetchone()
    return int(count)


def audiences(tx: Transaction, note_ids: Sequence[int]) -> dict[int, frozenset[int] | None]:
    """Return in which scenes notes were told, None for a note that is for everybody."""
    found: dict[int, frozenset[int] | None] = {}
    for ids, marks in in_parts(note_ids):
        scenes: dict[int, set[int]] = defaultdict(set)
        for note_id, scene_id in tx.execute(
            f"SELECT ref_id, scene_id FROM scene_refs WHERE kind = 'note' AND ref_id IN ({marks})", ids
        ):
            scenes[note_id].add(scene_id)
        for note_id, openly in tx.execute(f"SELECT id, openly FROM notes WHERE id IN ({marks})", ids):
            found[note_id] = None if openly else frozenset(scenes[note_id])
    return found


def sources(tx: Transaction, note_ids: Sequence[int]) -> dict[int, frozenset[int]]:
    """Return what notes were made of, as far as they were made of notes."""
    found: dict[int, set[int]] = defaultdict(set)
    for ids, marks in in_parts(note_ids):
        for note_id, source_id in tx.execute(
            f"SELECT note_id, source_id FROM note_sources WHERE note_id IN ({marks})", ids
        ):
            found[note_id].add(source_id)
    return {note_id: frozenset(ids) for note_id, ids in found.items()}


def named(tx: Transaction, scope: str, kinds: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return the notes of some kinds by their titles, whatever their status: the id and the status of the latest."""
    marks, wanted = in_list(kinds)
    rows = tx.execute(
        f"SELECT title, id, status FROM notes WHERE scope = ? AND kind IN ({marks}) ORDER BY id", (scope, *wanted)
    )
    return {title: (note_id, status) for title, note_id, status in rows}


def said_since(tx: Transaction, scope: str, since: str) -> list[Said]:
    """Return what tools did since a time in the sessions of exactly this scope, and where their users spoke, in order.

    Calls that failed, or of which nobody knows, are left out, and so are the sessions of writers.
    """
    rows = tx.execute(
        f"""SELECT s.name, p.role, p.tool, substr(p.text, 1, {_CALL_SHOWN}), COALESCE(p.at, p.recorded_at) AS said_at
            FROM sessions s JOIN parts p ON p.session_id = s.id
            WHERE s.scope = ? AND s.own = 0 AND (p.role = 'user' OR (p.tool <> '' AND p.outcome = 'done'))
                AND COALESCE(p.at, p.recorded_at) >= ?
            ORDER BY s.id, p.seq""",
        (scope, since),
    )
    return [Said(*row) for row in rows]
