"""Looking over notes: everything about one, or the state of all."""

import itertools
from collections.abc import Sequence
from operator import itemgetter

from graphmem.core.choices import NOTE_KINDS
from graphmem.core.model import Inspection, Note, NoteCount, NoteDetail, Route
from graphmem.core.times import days_before
from graphmem.records import notes, provenance, trees, usage
from graphmem.store.lists import of_scopes
from graphmem.store.transaction import Transaction

_STALE_DAYS = 180
_MOST_SHOWN = 100  # of what may be many


def detail(tx: Transaction, note_id: int) -> NoteDetail:
    """Return everything about a note; raise NotFound for an unknown one."""
    known = notes.require_note(tx, note_id)
    rows = tx.execute(
        """SELECT s.key FROM scene_refs ref JOIN scenes s ON s.id = ref.scene_id
           WHERE ref.kind = 'note' AND ref.ref_id = ? ORDER BY s.key""",
        (note_id,),
    )
    scenes = tuple(key for (key,) in rows)
    uses, last_used = usage.of_note(tx, note_id)
    own = tx.execute(
        """SELECT own.id FROM notes own JOIN notes n ON n.id = ?
           WHERE n.status = 'live' AND n.scope = '' AND own.status = 'live' AND own.scope <> ''
               AND own.slot_key = n.slot_key
               AND (n.slot_key <> '' OR (own.title_key = n.title_key AND own.body <> n.body))
           ORDER BY own.id LIMIT 1""",
        (note_id,),
    ).fetchone()
    acts = provenance.acts(tx, "note", note_id)
    sources = tx.execute("SELECT source_id FROM note_sources WHERE note_id = ? ORDER BY source_id", (note_id,))
    return NoteDetail(
        known,
        acts,
        _versions(tx, known),
        scenes,
        uses,
        last_used,
        None if own is None else own[0],
        tuple(source_id for (source_id,) in sources),
        source_gone=known.kind == "checkpoint" and not _is_mirrored(tx, known.origin.session),
    )


def _is_mirrored(tx: Transaction, session: str) -> bool:
    return tx.execute("SELECT 1 FROM sessions WHERE name = ?", (session,)).fetchone() is not None


def _versions(tx: Transaction, known: Note) -> tuple[Note, ...]:
    """Return what had the slot of a note before it, the latest first."""
    rows = tx.execute(
        """WITH RECURSIVE before(id, step) AS (
               SELECT id, 1 FROM notes WHERE superseded_by = ?1
               UNION ALL SELECT n.id, b.step + 1 FROM before b JOIN notes n ON n.superseded_by = b.id
               WHERE b.step < ?2)
           SELECT id FROM before GROUP BY id ORDER BY MIN(step), id LIMIT ?2""",
        (known.id, _MOST_SHOWN),
    )
    ids = [note_id for (note_id,) in rows]
    found = notes.notes(tx, ids)
    return tuple(found[note_id] for note_id in ids)


def inspect(tx: Transaction, scopes: Sequence[str] | None, at: str) -> Inspection:
    """Return the state of the notes of some scopes, None for all."""
    in_scope, parameters = of_scopes(scopes, column="n.scope")
    counts = tx.execute(
        f"""SELECT n.scope, n.kind, n.status, COUNT(*) FROM notes n WHERE TRUE {in_scope}
            GROUP BY n.scope, n.kind, n.status ORDER BY n.scope, n.kind, n.status""",
        parameters,
    )
    routes = tx.execute(
        f"""SELECT t.load_when, n.id FROM note_triggers t JOIN notes n ON n.id = t.note_id
            WHERE n.status = 'live' {in_scope} ORDER BY t.load_when, n.id""",
        parameters,
    )
    repeated = tx.execute(
        f"""SELECT n.scope, n.title_key, n.id FROM notes n WHERE n.status = 'live' {in_scope} AND EXISTS (
                SELECT 1 FROM notes o WHERE o.scope = n.scope AND o.title_key = n.title_key AND o.status = 'live'
                    AND o.id <> n.id)
            ORDER BY n.scope, n.title_key, n.id""",
        parameters,
    )
    of_own, own_parameters = of_scopes(scopes, column="own.scope")
    # From a project's own note to that of the user, in two look-ups: one for either would read all notes for each.
    pair = f"""SELECT n.id, own.id FROM notes own CROSS JOIN notes n
               WHERE own.scope <> '' AND own.status = 'live' AND n.scope = '' AND n.status = 'live' {of_own}"""
    overridden = tx.execute(
        f"""{pair} AND own.slot_key <> '' AND n.slot_key = own.slot_key AND n.slot_key <> ''
            UNION ALL {pair} AND own.slot_key = '' AND n.slot_key = '' AND n.title_key = own.title_key
                AND own.body <> n.body
            ORDER BY 1, 2 LIMIT ?""",
        (*own_parameters, *own_parameters, _MOST_SHOWN),
    )
    stale = tx.execute(
        f"""SELECT n.id FROM notes n LEFT JOIN note_usage u ON u.note_id = n.id
            WHERE n.status = 'live' AND n.pinned = 0 AND n.kind <> 'rule' {in_scope}
                AND MAX(n.updated_at, COALESCE(u.last_at, '')) < ?
            ORDER BY n.updated_at, n.id LIMIT ?""",
        (*parameters, days_before(at, _STALE_DAYS), _MOST_SHOWN),
    )
    return Inspection(
        tuple(NoteCount(*row) for row in counts),
        _listed(tx, "live", scopes),
        _listed(tx, "proposed", scopes),
        tuple(
            Route(load_when, tuple(note_id for _, note_id in rows))
            for load_when, rows in itertools.groupby(routes, key=itemgetter(0))
        ),
        tuple(tuple(note_id for *_, note_id in rows) for _, rows in itertools.groupby(repeated, key=itemgetter(0, 1))),
        tuple(note_id for (note_id,) in stale),
        tuple((user, own) for user, own in overridden),
        trees.conflicts(tx, scopes),
    )


def _listed(tx: Transaction, status: str, scopes: Sequence[str] | None) -> tuple[Note, ...]:
    """Return the rules in force, or what is proposed."""
    kinds = ("rule",) if status == "live" else NOTE_KINDS
    return notes.list_notes(tx, kinds=kinds, statuses=[status], scopes=scopes, limit=_MOST_SHOWN)
