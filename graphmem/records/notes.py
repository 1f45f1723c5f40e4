"""Notes: what was curated. Of the notes of one scope and slot one is live; a new one takes its place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphmem.config import Config
from graphmem.core.keys import entity_key, title_key
from graphmem.core.model import Note, Provenance, RecalledNote, RememberReport
from graphmem.core.model.notes import MOST_TRIGGERS
from graphmem.core.trust import is_person
from graphmem.errors import Conflict, NotFound, StoreCorrupt
from graphmem.records import provenance
from graphmem.records.drafts import Draft, as_proposal, by_key, needs_a_person
from graphmem.store import text_index
from graphmem.store.lists import in_list, in_parts, of_scopes
from graphmem.store.transaction import Transaction

_COLUMNS = (
    "n.id, n.kind, n.title, n.body, n.slot, n.summary, n.highlight, n.scope, n.status, n.pinned, n.source, n.reason, "
    "n.seen, n.created_at, n.updated_at, n.superseded_by"
)

# What helps where a note has another status than a verb wants.
_REMEDIES = {
    "live": "it is in force; 'forget' puts a note away",
    "proposed": "'approve' and 'reject' decide on it",
    "archived": "'restore_note' brings it back",
    "superseded": "to have it in force again, remember it anew",
    "forgotten": "to have it in force, remember it anew",
    "rejected": "'approve' takes that back",
}


@dataclass(frozen=True, slots=True)
class _Holder:
    """A note that has or had a slot; content: the key of its title, its body, its kind."""

    id: int
    live: bool
    content: tuple[str, str, str]


def binds(known: Note | RecalledNote, config: Config) -> bool:
    """Tell whether a note binds who reads it: a rule, a procedure, a pin, a note of a slot that is a constraint."""
    return known.pinned or needs_a_person(known.kind, known.slot, config)


def require_person(known: Note, act: Provenance, config: Config) -> None:
    """Raise Conflict where anybody but a person would change or put away what binds, or did before."""
    if not is_person(act.actor) and known.status != "proposed" and binds(known, config):
        raise Conflict(f"note {known.id} binds: a person changes it or puts it away")


# ---- writing


def remember(tx: Transaction, draft: Draft, origin: Provenance, *, at_is_given: bool = False) -> RememberReport:
    """Write a note. The same one again is seen once more; one for a slot that is taken supersedes what is there.

    One that is told for a time before that of the live note goes to its place among those that came before.
    """
    at = origin.at
    before, after = _in_slot(tx, draft, at if at_is_given else None)
    displaced = None if after or draft.decided else displaced_by(tx, draft)
    if displaced is not None:
        draft = as_proposal(draft, f"it would take the place of note {displaced}, which a person wants")
        before = None
    same = next((one for one in (before, after) if one and one.content == _content(draft)), None)
    same_id = same.id if same else _elsewhere(tx, draft)
    if same_id is not None:
        return _seen_again(tx, same_id, draft, origin)
    may_be_known = draft.binds and draft.status in ("live", "proposed") and after is None
    if (may_be_known or displaced is not None) and (met := _proposed_before(tx, draft)):
        return _propose_again(tx, met, draft, origin)
    if before and before.live:
        tx.execute("UPDATE notes SET status = 'superseded' WHERE id = ?", (before.id,))
    written = _insert(tx, draft, origin, superseded_by=after.id if after else None)
    if before:
        tx.execute("UPDATE notes SET superseded_by = ? WHERE id = ?", (written.id, before.id))
    taken = (before.id,) if before and before.live else ()
    return RememberReport(written, created=True, superseded=taken, remarks=draft.remarks_as_written)


def _insert(tx: Transaction, draft: Draft, origin: Provenance, *, superseded_by: int | None) -> Note:
    at, status = origin.at, draft.status if superseded_by is None else "superseded"
    (note_id,) = tx.execute(
        """INSERT INTO notes(scope, kind, slot, slot_key, title, title_key, body, summary, highlight, status, pinned,
                             source, reason, openly, superseded_by, created_at, updated_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (draft.scope, draft.kind, draft.slot, draft.slot_key, draft.title, title_key(draft.title), draft.body,
         draft.summary, draft.highlight, status, draft.pinned, draft.source, draft.reason, draft.openly, superseded_by,
         at, at),
    ).fetchone()  # fmt: skip
    if draft.labels:
        _label(tx, note_id, draft.labels)
    if draft.routes:
        _route(tx, note_id, draft.routes)
    provenance.begin(tx, "note", note_id, origin)
    text_index.add(tx, "note", [note_id])
    return Note(
        note_id, draft.kind, draft.title, draft.body, draft.slot, tuple(sorted(draft.labels)),
        tuple(sorted(draft.load_when)), draft.summary, draft.highlight, draft.scope, status, draft.pinned, draft.source,
        draft.reason, 1, at, at, superseded_by, origin,
    )  # fmt: skip


def displaced_by(tx: Transaction, draft: Draft, but: int = 0) -> int | None:
    """Return a note that binds and would not be read any more beside a draft; None where there is none.

    That is a rule or a pin of its slot or, for a draft of a project, a pin of the user's that says otherwise there.
    """
    if draft.status != "live":
        return None
    if draft.slot_key:
        row = tx.execute(
            """SELECT id FROM notes WHERE slot_key = ? AND slot_key <> '' AND scope IN (?, '') AND status = 'live'
                   AND (pinned = 1 OR (kind = 'rule' AND scope = ?)) AND id <> ?
                   AND NOT (title_key = ? AND body = ? AND kind = ?) ORDER BY scope LIMIT 1""",
            (draft.slot_key, draft.scope, draft.scope, but, *_content(draft)),
        ).fetchone()
    elif draft.scope:
        row = tx.execute(
            """SELECT id FROM notes WHERE scope = '' AND title_key = ? AND body <> ? AND slot_key = ''
                   AND status = 'live' AND pinned = 1 AND kind <> 'rule' AND id <> ? ORDER BY id LIMIT 1""",
            (title_key(draft.title), draft.body, but),
        ).fetchone()
    else:
        return None
    return None if row is None else int(row[0])


def _content(told: Note | Draft) -> tuple[str, str, str]:
    return title_key(told.title), told.body, told.kind


def _in_slot(tx: Transaction, draft: Draft, at: str | None) -> tuple[_Holder | None, _Holder | None]:
    """Return which note held the slot of a draft at a time, None for now, and which took it after that."""
    if draft.status != "live" or not draft.slot_key:
        return None, None
    columns = "SELECT id, status, created_at, title_key, body, kind FROM notes"
    row = tx.execute(
        f"{columns} WHERE scope = ? AND slot_key = ? AND slot_key <> '' AND status = 'live'",
        (draft.scope, draft.slot_key),
    ).fetchone()
    after: _Holder | None = None
    passed: set[int] = set()
    while row is not None:
        holder = _Holder(row[0], row[1] == "live", row[3:])
        if holder.id in passed:
            raise StoreCorrupt(f"note {holder.id} came before itself: 'graphmem repair' cuts the loop")
        passed.add(holder.id)
        if at is None or row[2] <= at:
            return holder, after
        after = holder
        row = tx.execute(f"{columns} WHERE superseded_by = ? ORDER BY id LIMIT 1", (holder.id,)).fetchone()
    return None, after


def _elsewhere(tx: Transaction, draft: Draft) -> int | None:
    """Return the id of the same note where no slot orders them."""
    return None if draft.status == "live" and draft.slot_key else _same(tx, draft, draft.status)


def _same(tx: Transaction, told: Note | Draft, status: str, but: int = 0) -> int | None:
    """Return the id of a note of this status that says the same about the same."""
    row = tx.execute(
        """SELECT id FROM notes WHERE scope = ? AND title_key = ? AND body = ? AND kind = ? AND slot_key = ?
               AND status = ? AND id <> ? ORDER BY id LIMIT 1""",
        (told.scope, *_content(told), entity_key(told.slot), status, but),
    ).fetchone()
    return None if row is None else int(row[0])


def same_as(tx: Transaction, draft: Draft) -> int | None:
    """Return the id of a note that says the same about the same, whatever its status, a live one before others."""
    row = tx.execute(
        """SELECT id FROM notes WHERE scope = ? AND title_key = ? AND body = ? AND kind = ? AND slot_key = ?
           ORDER BY status = 'live' DESC, id LIMIT 1""",
        (draft.scope, *_content(draft), draft.slot_key),
    ).fetchone()
    return None if row is None else int(row[0])


def confirm(tx: Transaction, note_id: int, at: str) -> None:
    """Let a note be told last at a time, unless that was later."""
    tx.execute("UPDATE notes SET updated_at = ? WHERE id = ? AND updated_at < ?", (at, note_id, at))


def _proposed_before(tx: Transaction, draft: Draft) -> tuple[int, str] | None:
    """Return the id and status of a note of this title that was proposed, or is in force where one is proposed."""
    row = tx.execute(
        """SELECT n.id, n.status FROM notes n
           WHERE n.scope = ? AND n.title_key = ? AND n.kind = ? AND n.slot_key = ? AND CASE ?
               WHEN 'live' THEN n.status = 'proposed' AND n.body = ?
               ELSE n.status = 'live' AND (n.kind = 'rule' OR n.body = ?) OR n.status = 'forgotten' AND EXISTS (
                   SELECT 1 FROM provenance p WHERE p.kind = 'note' AND p.ref_id = n.id AND p.act = 'reject') END
           ORDER BY n.status = 'live' DESC, n.id LIMIT 1""",
        (draft.scope, title_key(draft.title), draft.kind, draft.slot_key, draft.status, draft.body, draft.body),
    ).fetchone()
    return None if row is None else (int(row[0]), str(row[1]))


def _propose_again(tx: Transaction, met: tuple[int, str], draft: Draft, origin: Provenance) -> RememberReport:
    """Let a proposal that is said again come into force, or tell why it stays as it is."""
    note_id, status = met
    if status == "proposed":
        taken = _put_in_force(tx, note(tx, note_id), replace(origin, act="approve"))
        report = _seen_again(tx, note_id, draft, origin)
        return replace(report, superseded=taken, remarks=(*report.remarks, "was proposed before and is in force now"))
    told = "is in force already" if status == "live" else "was rejected before, and is not proposed again"
    return RememberReport(note(tx, note_id), created=False, remarks=(*draft.remarks, told))


def see_again(tx: Transaction, note_id: int, at: str) -> bool:
    """Count that a note was told once more in other words; tell whether it is one that counts, live or proposed."""
    return bool(
        tx.execute(
            """UPDATE notes SET seen = seen + 1, updated_at = MAX(updated_at, ?)
               WHERE id = ? AND status IN ('live', 'proposed')""",
            (at, note_id),
        ).rowcount
    )


def _seen_again(tx: Transaction, note_id: int, draft: Draft, origin: Provenance) -> RememberReport:
    known, at = note(tx, note_id), origin.at
    if is_person(draft.source) and not is_person(known.source):
        # What a person says as well is as good as if nobody else had said it.
        tx.execute("UPDATE notes SET source = ? WHERE id = ?", (draft.source, note_id))
        provenance.add(tx, "note", note_id, origin)
    tx.execute(
        """UPDATE notes SET seen = seen + 1, pinned = MAX(pinned, ?), openly = MAX(openly, ?),
                            created_at = MIN(created_at, ?), updated_at = MAX(updated_at, ?) WHERE id = ?""",
        (draft.pinned, draft.openly and (draft.decided or not known.pinned), at, at, note_id),
    )
    routed = {entity_key(trigger) for trigger in known.load_when}
    fresh = [route for route in draft.routes if entity_key(route[0]) not in routed]
    room = MOST_TRIGGERS - len(routed)
    if len(fresh) > room:
        remark = f"a note has at most {MOST_TRIGGERS} triggers: {len(fresh) - room} were left out"
        draft = replace(draft, remarks=(*draft.remarks, remark))
    _route(tx, note_id, fresh[:room])
    named = by_key(known.labels)
    unknown = [label for label in draft.labels if entity_key(label) not in named]
    if unknown:
        _label(tx, note_id, unknown)
        text_index.replace(tx, "note", [note_id])
    return RememberReport(note(tx, note_id), created=False, remarks=draft.remarks_as_written)


def _label(tx: Transaction, note_id: int, labels: Iterable[str]) -> None:
    tx.executemany("INSERT INTO note_labels(note_id, label) VALUES (?, ?)", [(note_id, label) for label in labels])


def _route(tx: Transaction, note_id: int, routes: Iterable[tuple[str, str]]) -> None:
    tx.executemany(
        "INSERT INTO note_triggers(note_id, load_when, token) VALUES (?, ?, ?)",
        [(note_id, trigger, token) for trigger, token in routes],
    )


# ---- what a person decides


def put_away(tx: Transaction, note_id: int, act: Provenance, config: Config) -> Note:
    """Archive a note, whatever it is: it is found no more, and `restore` brings it back."""
    known = require_note(tx, note_id)
    if known.status == "archived":
        raise Conflict(f"note {note_id} is archived already: restore_note brings it back, hard=True removes it")
    require_person(known, act, config)
    if _is_rejected(tx, known):
        raise Conflict(f"note {note_id} is rejected, and stays so: 'approve' takes that back, hard=True removes it")
    return _turn(tx, known, "archived", act)


def restore(tx: Transaction, note_id: int, act: Provenance, config: Config) -> Note:
    """Bring an archived note back; raise Conflict where another one has its slot now, or says the same.

    What binds is proposed again where no person brings it back, or none ever wanted it.
    """
    known = require_note(tx, note_id)
    if known.status != "archived":
        raise _not(tx, known, "archived")
    if holder := holder_of(tx, known.scope, entity_key(known.slot), known.id):
        raise Conflict(f"note {holder} has the slot {known.slot!r} now: forget it first, or remember this one anew")
    is_free = not binds(known, config) or (is_person(act.actor) and _may_bind(tx, known, config))
    if is_free:
        require_one(tx, known, note_id)
    return _turn(tx, known, "live" if is_free else "proposed", act)


def _may_bind(tx: Transaction, known: Note, config: Config) -> bool:
    """Tell whether a note may be live: what binds, only when a person tells it as it stands, approved it or was quoted.

    That lasts until somebody else changes the note, or a person rejects it.
    """
    if is_person(known.source) or not needs_a_person(known.kind, known.slot, config):
        return True
    agreed = False
    for act in provenance.acts(tx, "note", known.id):
        if act.act == "approve" or act.quote:
            agreed = True
        elif act.act == "reject" or (act.act == "edit" and not is_person(act.actor)):
            agreed = False
    return agreed


def require_one(tx: Transaction, told: Note | Draft, but: int) -> None:
    """Raise Conflict where another live note says the same, and no slot orders them."""
    if not entity_key(told.slot) and (twin := _same(tx, told, "live", but)) is not None:
        raise Conflict(f"note {twin} says the same: keep that one, and put this one away or let it say something else")


def says_otherwise(known: Note, told: Draft) -> bool:
    """Tell whether a note would say something else, or of something else."""
    return (*_content(known), entity_key(known.slot)) != (*_content(told), told.slot_key)


def _is_rejected(tx: Transaction, known: Note) -> bool:
    return known.status == "forgotten" and any(act.act == "reject" for act in provenance.acts(tx, "note", known.id))


def _not(tx: Transaction, known: Note, wanted: str) -> Conflict:
    """Return the error for a note that has another status than is wanted, with what helps."""
    status = "rejected" if _is_rejected(tx, known) else known.status
    by = f" by note {known.superseded_by}" if status == "superseded" and known.superseded_by else ""
    return Conflict(f"note {known.id} is {status}{by}, not {wanted}: {_REMEDIES[status]}")


def approve(tx: Transaction, note_id: int, act: Provenance) -> RememberReport:
    """Let a proposal come into force, also one that was rejected; what has its slot is superseded."""
    known = require_note(tx, note_id)
    if known.status != "proposed" and not _is_rejected(tx, known):
        raise _not(tx, known, "proposed")
    require_one(tx, known, note_id)
    taken = _put_in_force(tx, known, act)
    return RememberReport(note(tx, note_id), created=False, superseded=taken)


def reject(tx: Transaction, note_id: int, act: Provenance) -> Note:
    """Put a proposal away for good: the same one is not proposed again."""
    known = require_note(tx, note_id)
    if _is_rejected(tx, known):
        raise Conflict(f"note {note_id} is rejected already: {_REMEDIES['rejected']}")
    if known.status != "proposed":
        raise _not(tx, known, "proposed")
    return _turn(tx, known, "forgotten", act)


def _put_in_force(tx: Transaction, known: Note, act: Provenance) -> tuple[int, ...]:
    holder = holder_of(tx, known.scope, entity_key(known.slot), known.id)
    if holder is not None:
        tx.execute("UPDATE notes SET status = 'superseded', superseded_by = ? WHERE id = ?", (known.id, holder))
    _turn(tx, known, "live", act)
    # It holds since now: what had the slot until then did, and no one else.
    tx.execute("UPDATE notes SET created_at = MAX(created_at, ?) WHERE id = ?", (act.at, known.id))
    return () if holder is None else (holder,)


def holder_of(tx: Transaction, scope: str, slot_key: str, but: int) -> int | None:
    """Return the live note of a slot, unless it is the one that is named; None where there is no other."""
    row = tx.execute(
        "SELECT id FROM notes WHERE scope = ? AND slot_key = ? AND slot_key <> '' AND status = 'live' AND id <> ?",
        (scope, slot_key, but),
    ).fetchone()
    return None if row is None else int(row[0])


def _turn(tx: Transaction, known: Note, status: str, act: Provenance) -> Note:
    # What comes back is replaced by nothing any more.
    successor = known.superseded_by if status == "archived" else None
    tx.execute("UPDATE notes SET status = ?, superseded_by = ? WHERE id = ?", (status, successor, known.id))
    provenance.add(tx, "note", known.id, act)
    text_index.replace(tx, "note", [known.id])
    return replace(known, status=status, superseded_by=successor)


# ---- reading


def require_note(tx: Transaction, note_id: int) -> Note:
    """Return a note; raise NotFound for an unknown id."""
    found = notes(tx, [note_id]).get(note_id)
    if found is None:
        raise NotFound(f"note {note_id}: there is none of this id; 'notes' lists the ids")
    return found


def add_sources(tx: Transaction, note_ids: Sequence[int], source_ids: Sequence[int]) -> None:
    """Note of what notes were made: of other notes, such as the checkpoint that told them."""
    tx.executemany(
        "INSERT INTO note_sources(note_id, source_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(note_id, source_id) for note_id in note_ids for source_id in source_ids if note_id != source_id],
    )


def note(tx: Transaction, note_id: int) -> Note:
    """Return a note that exists."""
    return notes(tx, [note_id])[note_id]


def notes(tx: Transaction, note_ids: Sequence[int]) -> dict[int, Note]:
    """Return notes by id; unknown ids are left out."""
    found: dict[int, Note] = {}
    for ids, marks in in_parts(note_ids):
        labels = _texts_of(tx, "note_labels", "label", ids, marks)
        triggers = _texts_of(tx, "note_triggers", "load_when", ids, marks)
        origins = provenance.origins(tx, "note", ids)
        for row in tx.execute(f"SELECT {_COLUMNS} FROM notes n WHERE n.id IN ({marks})", ids):
            note_id, pinned = row[0], bool(row[9])
            texts = (labels.get(note_id, ()), triggers.get(note_id, ()))
            origin = origins.get(note_id) or provenance.presumed(row[10], row[13])
            values: tuple[Any, ...] = (*row[:5], *texts, *row[5:9], pinned, *row[10:], origin)
            found[note_id] = Note(*values)
    return found


def labels_of(tx: Transaction, note_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return the labels of those notes that have any, by id."""
    found: dict[int, tuple[str, ...]] = {}
    for ids, marks in in_parts(note_ids):
        found |= _texts_of(tx, "note_labels", "label", ids, marks)
    return found


def _texts_of(
    tx: Transaction, table: str, column: str, note_ids: Sequence[int], marks: str
) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    rows = tx.execute(
        f"SELECT note_id, {column} FROM {table} WHERE note_id IN ({marks}) ORDER BY note_id, {column}", note_ids
    )
    for note_id, text in rows:
        found.setdefault(note_id, []).append(text)
    return {note_id: tuple(texts) for note_id, texts in found.items()}


def of_title(tx: Transaction, scope: str, title: str) -> list[int]:
    """Return the ids of the notes of a scope with this title, whatever their status."""
    rows = tx.execute("SELECT id FROM notes WHERE scope = ? AND title_key = ? ORDER BY id", (scope, title_key(title)))
    return [note_id for (note_id,) in rows]


def told_in(tx: Transaction, scope: str, actor: str, place: str) -> list[tuple[int, str]]:
    """Return which notes of a scope a source told or changed in a folder, and in which messages, the latest last."""
    rows = tx.execute(
        """SELECT p.ref_id, p.message FROM provenance p JOIN notes n ON n.id = p.ref_id
           WHERE p.kind = 'note' AND p.actor = ? AND p.place = ? AND n.scope = ? ORDER BY p.ref_id, p.seq""",
        (actor, place, scope),
    )
    return [(note_id, message) for note_id, message in rows]


def list_notes(
    tx: Transaction,
    *,
    kinds: Sequence[str],
    statuses: Sequence[str],
    scopes: Sequence[str] | None,
    exact: bool = False,
    ids: Sequence[int] | None = None,
    limit: int,
    skip: int = 0,
) -> tuple[Note, ...]:
    """Return notes of some kinds and statuses, those told last first. ids: of these alone, None for any.

    exact: whether the user's own are left out where their scope is not among those that are named.
    """
    if ids is not None:
        within = None if scopes is None else set(scopes) if exact else {"", *scopes}
        named = [
            each
            for each in notes(tx, ids).values()
            if each.kind in kinds and each.status in statuses and (within is None or each.scope in within)
        ]
        named.sort(key=lambda each: (each.updated_at, each.id), reverse=True)
        return tuple(named[skip : skip + limit])
    (of_kinds, kind_values), (of_statuses, status_values) = in_list(kinds), in_list(statuses)
    in_scope, scope_values = of_scopes(scopes, column="n.scope", exact=exact)
    rows = tx.execute(
        f"""SELECT n.id FROM notes n WHERE n.kind IN ({of_kinds}) AND n.status IN ({of_statuses}) {in_scope}
            ORDER BY n.updated_at DESC, n.id DESC LIMIT ? OFFSET ?""",
        (*kind_values, *status_values, *scope_values, limit, skip),
    )
    listed = [note_id for (note_id,) in rows]
    found = notes(tx, listed)
    return tuple(found[note_id] for note_id in listed)


def last_checkpoint(tx: Transaction, session: str, scopes: Sequence[str] | None) -> Note | None:
    """Return the last checkpoint of a session, where it has none the last one of scopes and of none, if any."""
    in_scope, parameters = of_scopes(scopes, column="n.scope")
    is_one = f"n.kind = 'checkpoint' AND n.status = 'live' {in_scope}"
    row = tx.execute(
        f"""SELECT n.id FROM sessions s JOIN jobs j ON j.session_id = s.id JOIN notes n ON n.id = j.note_id
            WHERE s.name = ? AND {is_one} ORDER BY n.id DESC LIMIT 1""",
        (session, *parameters),
    ).fetchone() or tx.execute(
        f"SELECT n.id FROM notes n WHERE {is_one} ORDER BY n.updated_at DESC, n.id DESC LIMIT 1", parameters
    ).fetchone()  # fmt: skip
    return None if row is None else note(tx, row[0])
