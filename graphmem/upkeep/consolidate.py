"""Carrying a plan of consolidation out: notes are written, others are superseded, nothing is deleted.

An undo archives the new notes, and those that were superseded are live again.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from graphmem.config import Config
from graphmem.core.candidates import Candidate
from graphmem.core.consolidating import CHANGES, Plan, Step
from graphmem.core.keys import entity_key
from graphmem.core.model import Conclusion, Provenance
from graphmem.core.model.notes import MOST_TRIGGERS
from graphmem.graph import scenes
from graphmem.records import drafts, gathering, notes
from graphmem.store import text_index
from graphmem.store.lists import in_list
from graphmem.store.transaction import Transaction
from graphmem.upkeep.journal import Journal, Row, rows_of
from graphmem.upkeep.loop import alarm


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done of a plan. operation: its number, None where nothing changed."""

    conclusions: tuple[Conclusion, ...]
    operation: int | None


def lost_by(tx: Transaction, plan: Plan, scope: str, config: Config) -> str:
    """Return what a plan would lose more of than a step of upkeep may; '' where that is bearable."""
    live = gathering.count_live(tx, scope)
    return alarm({"notes": live}, {"notes": live - plan.retired}, config.shrink_limit)


def taken_back(tx: Transaction, kind: str) -> frozenset[tuple[int, int]]:
    """Return which notes took in which by operations of a kind that were undone."""
    rows = tx.execute(
        """SELECT CAST(json_extract(r.after, '$.superseded_by') AS BIGINT),
                  CAST(json_extract(r.after, '$.id') AS BIGINT)
           FROM operations o JOIN operation_rows r ON r.operation_id = o.id
           WHERE o.kind = ? AND o.undone_at IS NOT NULL AND r.name = 'notes'
               AND json_extract(r.after, '$.superseded_by') IS NOT NULL""",
        (kind,),
    )
    return frozenset(rows)


def apply(tx: Transaction, plan: Plan, kind: str, scope: str, origin: Provenance, config: Config) -> Applied:
    """Carry a plan out as one operation; what is not any more as it was planned for is left for the next time."""
    journal = Journal(tx)
    done: list[Conclusion] = []
    changed = _changed(tx, plan)
    for step in plan.steps:
        shown = step.shown
        if shown.outcome not in CHANGES:
            done.append(shown)
        elif outdated := changed.intersection((shown.note_id, *shown.supersedes)):
            done.append(_left(shown, f"note {min(outdated)} was changed meanwhile"))
        elif step.candidate is not None:
            done.append(_written(journal, shown, step.candidate, scope, origin, config))
        else:
            done.append(_into_known(journal, step, origin.at))
    if not journal.images:
        return Applied(tuple(done), None)
    summary = {
        "written": sum(one.outcome in ("written", "proposed") for one in done),
        "superseded": sum(len(one.supersedes) for one in done),
        "confirmed": sum(one.outcome == "confirmed" for one in done),
    }
    operation = journal.close(kind, origin.at, {name: count for name, count in summary.items() if count})
    return Applied(tuple(done), operation)


def _changed(tx: Transaction, plan: Plan) -> set[int]:
    """Return the notes that are not as they were when the plan was made."""
    touched = {note_id for step in plan.steps for note_id in (step.shown.note_id, *step.shown.supersedes)}
    known = {note_id: at for note_id, at in plan.known.items() if note_id in touched}
    now = notes.notes(tx, list(known))
    return {
        note_id
        for note_id, at in known.items()
        if note_id not in now or (now[note_id].status, now[note_id].updated_at) != ("live", at)
    }


def _left(shown: Conclusion, reason: str) -> Conclusion:
    return replace(shown, outcome="left", reason=reason, note_id=None, supersedes=(), sources=())


def _written(
    journal: Journal, shown: Conclusion, candidate: Candidate, scope: str, origin: Provenance, config: Config
) -> Conclusion:
    """Write a new note in the place of those that it supersedes, with what they were found by and their slot."""
    tx = journal.tx
    replaced = list(notes.notes(tx, shown.supersedes).values())
    given = [trigger for trigger in candidate.load_when if drafts.token_of(trigger, config.weights)]
    triggers = drafts.by_key([*given, *(trigger for note in replaced for trigger in note.load_when)])
    draft = drafts.check_note(
        candidate.title, body=candidate.body, kind=candidate.kind,
        slot=next((note.slot for note in replaced if note.slot), ""),
        labels=drafts.by_key(label for note in replaced for label in note.labels).values(),
        load_when=list(triggers.values())[:MOST_TRIGGERS], summary=candidate.summary[: drafts.LONGEST_SUMMARY],
        highlight=candidate.highlight, scope=scope, pinned=False,
        status="proposed" if shown.outcome == "proposed" else "live", source=origin.actor,
        reason=shown.reason, config=config,
    )  # fmt: skip
    before = _rows(tx, shown.supersedes)
    _set_status(tx, shown.supersedes, "superseded")  # so that a slot is free for the new one
    report = notes.remember(tx, draft, replace(origin, reason=draft.reason))
    note_id = report.note.id
    if not report.created or report.note.status != draft.status:
        _set_status(tx, shown.supersedes, "live")
    if not report.created:
        return replace(_left(shown, "; ".join(report.remarks) or "it is known"), outcome="known", note_id=note_id)
    tx.execute("UPDATE notes SET seen = ? WHERE id = ?", (shown.seen, note_id))
    superseded = shown.supersedes if report.note.status == draft.status else ()
    if superseded:
        _take_in(journal, note_id, before, origin.at)
    (row,) = _rows(tx, (note_id,))
    journal.remember("notes", {**row, "status": "archived"}, row)
    _add_sources(journal, note_id, shown.sources)
    reason = "; ".join(filter(None, (shown.reason, *report.remarks)))
    outcome = "written" if report.note.status == "live" else "proposed"
    return replace(shown, outcome=outcome, reason=reason, note_id=note_id, supersedes=superseded)


def _into_known(journal: Journal, step: Step, at: str) -> Conclusion:
    """Let a known note take others in, with what they were found by, or note what else bears it out."""
    tx, shown = journal.tx, step.shown
    assert shown.note_id is not None
    before = _rows(tx, shown.supersedes)
    _set_status(tx, shown.supersedes, "superseded")
    (row,) = _rows(tx, (shown.note_id,))
    if before:
        known = notes.note(tx, shown.note_id)
        found = notes.notes(tx, shown.supersedes).values()
        labels = drafts.by_key(label for note in found for label in note.labels)
        for key in sorted(labels.keys() - drafts.by_key(known.labels).keys()):
            journal.insert("note_labels", {"note_id": known.id, "label": labels[key]})
        called = drafts.by_key(known.load_when)
        marks, ids = in_list(shown.supersedes)
        for trigger in rows_of(tx, "note_triggers", f"note_id IN ({marks})", ids):
            key = entity_key(trigger["load_when"])
            if key not in called and len(called) < MOST_TRIGGERS:
                called[key] = trigger["load_when"]
                journal.insert("note_triggers", {**trigger, "note_id": known.id})
        _take_in(journal, known.id, before, at)
        text_index.replace(tx, "note", [known.id])
    told = [row, *before]
    # What has a slot came when it came: notes of one slot follow each other by that.
    since = row["created_at"] if row["slot_key"] else min(each["created_at"] for each in told)
    last = max(each["updated_at"] for each in told)
    journal.update("notes", row, seen=row["seen"] + step.added, created_at=since, updated_at=last)
    _add_sources(journal, shown.note_id, shown.sources)
    return replace(shown, seen=row["seen"] + step.added)


def _rows(tx: Transaction, note_ids: Collection[int]) -> list[Row]:
    if not note_ids:
        return []
    marks, ids = in_list(note_ids)
    return rows_of(tx, "notes", f"id IN ({marks})", ids)


def _set_status(tx: Transaction, note_ids: Iterable[int], status: str) -> None:
    tx.executemany("UPDATE notes SET status = ? WHERE id = ?", [(status, note_id) for note_id in note_ids])


def _take_in(journal: Journal, note_id: int, before: Sequence[Row], at: str) -> None:
    """Let superseded notes lead to the one that took their place, which comes back with their scenes."""
    tx = journal.tx
    ids = [row["id"] for row in before]
    tx.executemany("UPDATE notes SET superseded_by = ? WHERE id = ?", [(note_id, each) for each in ids])
    for was, now in zip(before, _rows(tx, ids), strict=True):
        journal.remember("notes", was, now)
    marks, wanted = in_list(ids)
    held = tx.execute(
        f"SELECT DISTINCT scene_id FROM scene_refs WHERE kind = 'note' AND ref_id IN ({marks})", wanted
    ).fetchall()
    with journal.watching("scene_refs", "kind = 'note' AND ref_id = ?", (note_id,)):
        scenes.attach_note(tx, [scene_id for (scene_id,) in held], note_id, at)


def _add_sources(journal: Journal, note_id: int, source_ids: Iterable[int]) -> None:
    known = {row["source_id"] for row in rows_of(journal.tx, "note_sources", "note_id = ?", (note_id,))}
    for source_id in sorted({*source_ids} - known - {note_id}):
        journal.insert("note_sources", {"note_id": note_id, "source_id": source_id})
