"""One pass of upkeep: every step finds out by reading what there is to do, and does it in short transactions.

Each transaction looks again before it changes anything, so that plans may take their time while others write. A step
that would lose too much stops before it begins. One pass is at work on a file at a time: it holds a lease.
"""

import datetime as dt
import functools
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeVar

from graphmem.config import Config
from graphmem.core.addresses import is_server
from graphmem.core.model import Arbiter, EntityReview, Provenance, SettleReport, UpkeepReport, UpkeepStep, WalState
from graphmem.core.times import days_before, utc_text
from graphmem.errors import Conflict, StoreBusy, WriterFailed
from graphmem.graph import scenes
from graphmem.records import incidents, jobs, notes, reminders
from graphmem.store.transaction import Transaction
from graphmem.upkeep import decay, merge, merge_entities, review, sweep
from graphmem.upkeep.journal import FADING, Journal

_T = TypeVar("_T")

# What no step may lose much of.
GUARDED = ("relations", "notes", "refs", "scenes")
_ALLOWED = "shrink_allowed"  # the counter that holds the last operation of a pass that might lose much
_STALE_REFS = "purge stale refs"
_LEASE = "upkeep"
# A pass renews its lease with every transaction. After one that died the next waits no longer than this; and should a
# plan take longer, two passes get in each other's way, but do no harm, since each looks again before it changes a row.
_LEASE_LASTS = dt.timedelta(minutes=1)
# Others that want to write ask for the lock again after 1, 2, 5, 10, 15, 20, 25 milliseconds and so on (SQLite's
# sqliteDefaultBusyCallback). A transaction of ten and a pause of three times as long lets them in soon; without a pause
# they hardly ever meet a moment when it is free.
_TRANSACTION = 0.010
_PAUSES = 3
_ROWS = 400
_GROUPS = 4
_LARGEST_PART = 2_000
_MOST_MERGES = 10_000
_PAGES = 16


@dataclass(frozen=True, slots=True)
class Hands:
    """What a pass works with. read, write: open a transaction; a write does not make its day a day of use.

    changed: tells indexes which scenes changed. now: UTC text. closing: whether the memory waits to be closed.
    """

    path: str
    config: Config
    now: Callable[[], str]
    read: Callable[[], AbstractContextManager[Transaction]]
    write: Callable[[], AbstractContextManager[Transaction]]
    changed: Callable[[Transaction, set[int]], None]
    review: Callable[[], EntityReview]
    settle: Callable[[Arbiter], SettleReport]
    checkpoint: Callable[[], WalState]
    quick_check: Callable[[], Sequence[str]]
    closing: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Pass:
    hands: Hands
    dry_run: bool
    allow_shrink: bool
    arbiter: Arbiter | None
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, act: Callable[[Transaction, str], _T]) -> _T:
        """Run an act in a transaction of its own, under the lease, and let others write for a while."""
        if self.hands.closing():
            raise Conflict(f"the memory {self.hands.path} is being closed: upkeep goes on with the next pass")
        with self.hands.write() as tx:
            begun = time.perf_counter()
            at = self.hands.now()
            _hold(tx, self.owner, at)
            done = act(tx, at)
        time.sleep(_PAUSES * (time.perf_counter() - begun))
        return done

    def write_in_parts(
        self, things: Sequence[_T], first: int, act: Callable[[Sequence[_T], Transaction, str], int | None]
    ) -> list[int]:
        """Run an act on parts of many things, as many at a time as a short transaction holds; return its operations.

        first: how many to begin with.
        """
        operations: list[int] = []
        done, size = 0, first
        while done < len(things):
            part = things[done : done + size]
            begun = time.perf_counter()
            operation = self.write(functools.partial(act, part))
            size = _next_size(size, (time.perf_counter() - begun) / (1 + _PAUSES))
            done += len(part)
            operations += [] if operation is None else [operation]
        return operations


def run(hands: Hands, *, dry_run: bool, allow_shrink: bool, arbiter: Arbiter | None) -> UpkeepReport:
    """Run a pass, or with dry_run its plans alone. Raises StoreBusy when another pass is at work on the file."""
    one = _Pass(hands, dry_run, allow_shrink, arbiter)
    if not dry_run:
        one.write(lambda tx, at: None)
    try:
        steps = tuple(step(one) for step in _STEPS)
    finally:
        if not dry_run:
            with hands.write() as tx:
                tx.execute("DELETE FROM leases WHERE name = ? AND owner = ?", (_LEASE, one.owner))
                if allow_shrink:
                    _allow(tx)
    sound = all(step.state != "stopped" for step in steps)
    return UpkeepReport(steps, ok=sound, applied=not dry_run)


def _hold(tx: Transaction, owner: str, at: str) -> None:
    """Take or renew the lease; raise StoreBusy when another has it. One that lasts too long is of another clock."""
    until = utc_text(dt.datetime.fromisoformat(at) + _LEASE_LASTS)
    held = tx.execute(
        """INSERT INTO leases(name, owner, until) VALUES (?, ?, ?)
           ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
           WHERE leases.owner = excluded.owner OR leases.until <= ? OR leases.until > excluded.until RETURNING owner""",
        (_LEASE, owner, until, at),
    ).fetchone()
    if held is None:
        (until,) = tx.execute("SELECT until FROM leases WHERE name = ?", (_LEASE,)).fetchone()
        raise StoreBusy(f"upkeep is at work on this memory elsewhere, and keeps it until {until} at most: try again")


def alarm(before: Mapping[str, int], after: Mapping[str, int], limit: float) -> str:
    """Return what would shrink by more than a share of it, or to nothing; '' when that is bearable.

    One row of several is no alarm: in a small memory it is always a great share.

    >>> alarm({"refs": 100, "scenes": 3}, {"refs": 79, "scenes": 2}, 0.2)
    'refs from 100 to 79'
    >>> alarm({"refs": 1}, {"refs": 0}, 0.2)
    'refs from 1 to 0'
    """
    lost = [
        f"{name} from {count} to {after[name]}"
        for name, count in before.items()
        if (count and not after[name]) or count - after[name] > max(1, limit * count)
    ]
    return ", ".join(lost)


def _counts(tx: Transaction) -> dict[str, int]:
    row = tx.execute(
        """SELECT (SELECT COUNT(*) FROM relations WHERE status <> 'deleted'), (SELECT COUNT(*) FROM notes),
                  (SELECT COUNT(*) FROM scene_refs), (SELECT COUNT(*) FROM scenes)"""
    ).fetchone()
    return dict(zip(GUARDED, row, strict=True))


def _step(
    one: _Pass,
    name: str,
    told: str,
    before: Mapping[str, int],
    shrinks: Mapping[str, int],
    work: Callable[[], list[int]],
) -> UpkeepStep:
    """Do the work of a step, unless it is a dry run or would lose too much."""
    after = {kind: count - shrinks.get(kind, 0) for kind, count in before.items()}
    lost = "" if one.allow_shrink or not shrinks.keys() & set(GUARDED) else _alarm_of_the_day(one, before, after)
    if lost:
        told = f"stopped before it began, since it would bring {lost} in a day: look, then allow it to shrink ({told})"
        return UpkeepStep(name, "stopped", told, before, after)
    if one.dry_run:
        return UpkeepStep(name, "would", told, before, after)
    return UpkeepStep(name, "done", told, before, after, tuple(work()))


def _alarm_of_the_day(one: _Pass, before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Raise the alarm also for what many small passes come to."""
    at = one.hands.now()
    since = days_before(at, 1)
    with one.hands.read() as tx:
        refs, scenes = tx.execute(
            f"""SELECT SUM(CAST(CASE kind WHEN '{FADING}' THEN json_extract(summary, '$.archived')
                                          WHEN '{_STALE_REFS}' THEN json_extract(summary, '$.removed')
                                          WHEN '{merge.KIND}' THEN json_extract(summary, '$.refs_folded')
                                END AS BIGINT)),
                       SUM(CAST(CASE kind WHEN '{merge.KIND}' THEN json_extract(summary, '$.merged') END AS BIGINT))
                FROM operations
                WHERE at >= ? AND undone_at IS NULL
                    AND id > COALESCE((SELECT value FROM counters WHERE name = '{_ALLOWED}'), 0)""",
            (since,),
        ).fetchone()
    lately = {"refs": refs or 0, "scenes": scenes or 0}
    guarded = {kind: count + lately.get(kind, 0) for kind, count in before.items() if kind in GUARDED}
    return alarm(guarded, after, one.hands.config.shrink_limit)


def _allow(tx: Transaction) -> None:
    """Let what was lost until now count no more."""
    tx.execute(
        """INSERT INTO counters(name, value) SELECT ?, COALESCE(MAX(id), 0) FROM operations WHERE TRUE
           ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        (_ALLOWED,),
    )


def _nothing(name: str, told: str = "nothing to do") -> UpkeepStep:
    return UpkeepStep(name, "nothing", told)


def _next_size(size: int, seconds: float) -> int:
    """Return how many things fill a transaction, after one of this size took so long.

    >>> _next_size(8, 0.001), _next_size(100, 0.050), _next_size(1, 5.0)
    (16, 20, 1)
    """
    return max(1, min(2 * size, _LARGEST_PART, int(size * _TRANSACTION / max(seconds, 1e-6))))


# ---- steps


def _dedupe_scenes(one: _Pass) -> UpkeepStep:
    name, hands = "dedupe scenes", one.hands
    with hands.read() as tx:
        plan = merge.plan_dedupe(tx, hands.path)
        if not plan.groups and not plan.rewritten:
            return _nothing(name)
        before = _counts(tx)
    keys = [[twin.key for twin in group.members] for group in plan.groups] + [[old] for old, _ in plan.rewritten]

    def apply(part: Sequence[Sequence[str]], tx: Transaction, at: str) -> int | None:
        planned = merge.plan_dedupe(tx, hands.path, only=[key for group in part for key in group])
        report, changed = merge.apply_dedupe(tx, planned, at, hands.config)
        hands.changed(tx, changed)
        return report.operation

    told = f"groups of twins: {len(plan.groups)}, keys that were not canonical: {len(plan.rewritten)}"
    folded = sum(group.refs_folded for group in plan.groups)
    return _step(
        one,
        name,
        told,
        before,
        {"scenes": plan.merged, "refs": folded},
        lambda: one.write_in_parts(keys, _GROUPS, apply),
    )


def _merge_entities(one: _Pass) -> UpkeepStep:
    name, hands = "merge entities", one.hands
    with hands.read() as tx:
        pairs = merge_entities.certain_pairs(tx)
        if not pairs:
            return _nothing(name)
        before = _counts(tx)
        plans = [merge_entities.plan(tx, *pair) for pair in pairs]

    def apply(pair: tuple[int, int], tx: Transaction, at: str) -> int | None:
        return merge_entities.merge(tx, *pair, at).operation if merge_entities.is_certain(tx, *pair) else None

    def work() -> list[int]:
        done = [one.write(functools.partial(apply, pair)) for pair in pairs]
        return [operation for operation in done if operation is not None]

    shrinks = {
        "relations": sum(len(plan.folded) + len(plan.loops) for plan in plans),
        "refs": sum(plan.refs_folded for plan in plans),
    }
    return _step(one, name, f"entities under two keys: {len(pairs)}", before, shrinks, work)


def _review_entities(one: _Pass) -> UpkeepStep:
    name, hands = "review entities", one.hands
    found = hands.review()
    told = f"pairs that may be one: {len(found.pairs)}{' and more' if found.more else ''}"
    operations: list[int] = []
    state = "done"
    if one.dry_run:
        return UpkeepStep(name, "would", told) if found.pairs else _nothing(name)
    if one.arbiter is not None and found.pairs:
        try:
            settled = hands.settle(one.arbiter)
        except WriterFailed as error:
            state, told = "stopped", f"{told}; {error}"
        else:
            told += f"; the arbiter merged {settled.merged} and keeps {settled.apart} apart"
            operations += [pair.operation for pair in settled.pairs if pair.operation is not None]
    passed = one.write(_pass_round) if found.apart else None
    operations += [] if passed is None else [passed]
    return UpkeepStep(name, state, told, operations=tuple(operations)) if found.pairs or passed else _nothing(name)


def _pass_round(tx: Transaction, at: str) -> int | None:
    journal = Journal(tx)
    pairs = review.pass_round(journal)
    return journal.close("pass round", at, {"pairs": pairs}) if pairs else None


def _decay(one: _Pass) -> UpkeepStep:
    name, hands = "decay", one.hands
    with hands.read() as tx:
        plan = decay.plan_decay(tx, hands.config)
        if not plan.fading:
            return _nothing(name)

    def apply(part: Sequence[tuple[int, decay.Fading]], tx: Transaction, at: str) -> int | None:
        return decay.apply_decay(tx, part, hands.config, at)

    def work() -> list[int]:
        operations = one.write_in_parts(plan.fading, _ROWS, apply)
        one.write(lambda tx, at: sweep.trim_days(tx, at, hands.config.journal_days))
        return operations

    told = f"refs that fade: {len(plan.fading)}, of them archived: {plan.archived}"
    return _step(one, name, told, {"refs": plan.refs}, {"refs": plan.archived}, work)


def _expire_evidence(one: _Pass) -> UpkeepStep:
    with one.hands.read() as tx:
        litter = sweep.find_expired(tx, one.hands.now(), one.hands.config.evidence_days)
    days = one.hands.config.evidence_days
    return _sweep(one, "expire evidence", litter, f"labels not met for {days:g} days: {len(litter.ids)}")


def _expire_incidents(one: _Pass) -> UpkeepStep:
    days = one.hands.config.incident_max_age_days
    told = f"kinds of failure not seen for {days:g} days"
    count = functools.partial(incidents.count_expired, days=days)
    return _expire(one, "expire incidents", told, count, functools.partial(incidents.drop_expired, days=days))


def _expire_reminders(one: _Pass) -> UpkeepStep:
    return _expire(one, "expire reminders", "reminders of sessions long ago", reminders.count_old, reminders.drop_old)


def _expire(
    one: _Pass, name: str, told: str, count: Callable[[Transaction, str], int], drop: Callable[[Transaction, str], None]
) -> UpkeepStep:
    """Drop what no undo brings back and no guard counts."""
    with one.hands.read() as tx:
        old = count(tx, one.hands.now())
    if not old:
        return _nothing(name)
    if one.dry_run:
        return UpkeepStep(name, "would", f"{told}: {old}")
    one.write(drop)
    return UpkeepStep(name, "done", f"{told}: {old}")


def _expire_sessions(one: _Pass) -> UpkeepStep:
    name, config = "expire sessions", one.hands.config
    now, days = one.hands.now(), config.retention_days
    if not days:
        return _nothing(name)
    with one.hands.read() as tx:
        if not sweep.is_due(tx, name, now, config.retention_check_every_days):
            return _nothing(name, "looked at already")
        sessions, checkpoints = sweep.old_sessions(tx, now, days), sweep.old_checkpoints(tx, now, days, config)
        before = _counts(tx)

    def drop(part: Sequence[str], tx: Transaction, at: str) -> None:
        for session in sweep.old_sessions(tx, now, days, among=part):
            jobs.delete_session(tx, session)

    def archive(part: Sequence[int], tx: Transaction, at: str) -> None:
        act = Provenance(0, "forget", "agent:upkeep", "", "", "", "", f"older than {days:g} days", at)
        for note_id in sweep.old_checkpoints(tx, now, days, config, among=part):
            notes.put_away(tx, note_id, act, config)

    def work() -> list[int]:
        one.write_in_parts(sessions, _GROUPS, drop)
        one.write_in_parts(checkpoints, _ROWS, archive)
        one.write(lambda tx, at: sweep.mark_done(tx, name, at))
        return []

    if not sessions and not checkpoints:
        if not one.dry_run:
            work()
        return _nothing(name)
    told = f"sessions older than {days:g} days: {len(sessions)}, checkpoints: {len(checkpoints)}"
    return _step(one, name, told, before, {"notes": len(checkpoints)}, work)


def _drop_jobs(one: _Pass) -> UpkeepStep:
    days = one.hands.config.journal_days
    count = functools.partial(jobs.count_old, days=days)
    return _expire(one, "drop jobs", f"jobs that ended over {days:g} days ago", count,
                   functools.partial(jobs.drop_old, days=days))  # fmt: skip


def _note_strengths(one: _Pass) -> UpkeepStep:
    name = "note strengths"
    with one.hands.read() as tx:
        changed = scenes.changed_strengths(tx)
    if not changed:
        return _nothing(name)

    def note(part: Sequence[int], tx: Transaction, at: str) -> None:
        scenes.note_strengths(tx, part, at)

    told = f"scenes whose strength changed: {len(changed)}"
    return _step(one, name, told, {}, {}, lambda: one.write_in_parts(changed, _ROWS, note))


def _purge_refs(one: _Pass) -> UpkeepStep:
    with one.hands.read() as tx:
        litter = sweep.find_litter(tx, "scene_refs")
    return _sweep(one, _STALE_REFS, litter, f"refs to what is gone: {len(litter.ids)}")


def _purge_orphans(one: _Pass, table: str) -> UpkeepStep:
    with one.hands.read() as tx:
        litter = sweep.find_litter(tx, table)
    return _sweep(one, f"purge {table}", litter, f"{table} of no fact: {len(litter.ids)}")


def _sweep(one: _Pass, name: str, litter: sweep.Litter, told: str) -> UpkeepStep:
    if not litter.ids:
        return _nothing(name)

    def remove(ids: Sequence[int | str], tx: Transaction, at: str) -> int | None:
        return sweep.remove(tx, litter, ids, name, at)

    kind = _KINDS[litter.table]
    work = functools.partial(one.write_in_parts, litter.ids, _ROWS, remove)
    return _step(one, name, told, {kind: litter.total}, {kind: len(litter.ids)}, work)


def _drop_journal(one: _Pass) -> UpkeepStep:
    name, days = "drop journal", one.hands.config.journal_days
    with one.hands.read() as tx:
        old = sweep.old_operations(tx, one.hands.now(), days)
        (total,) = tx.execute("SELECT COUNT(*) FROM operations").fetchone()
    if not old:
        return _nothing(name)

    def drop(ids: Sequence[int], tx: Transaction, at: str) -> int:
        return sweep.drop_old(tx, ids, at)

    told = f"operations older than {days:g} days: {len(old)}"
    return _step(
        one, name, told, {"operations": total}, {"operations": len(old)}, lambda: one.write_in_parts(old, _GROUPS, drop)
    )


def _optimise_text_index(one: _Pass) -> UpkeepStep:
    name = "optimise text index"
    if one.dry_run:
        return UpkeepStep(name, "would", "its segments, where there are many")
    merged = 0
    while merged < _MOST_MERGES and one.write(lambda tx, at: tx.words.optimise(tx, _PAGES)):
        merged += 1
    return UpkeepStep(name, "done", f"parts merged: {merged}") if merged else _nothing(name)


def _checkpoint(one: _Pass) -> UpkeepStep:
    name = "checkpoint"
    if is_server(one.hands.path):
        return UpkeepStep(name, "would" if one.dry_run else "done", "nothing: the server sees to its own log")
    if one.dry_run:
        return UpkeepStep(name, "would", "the write-ahead log copied into the file")
    wal = one.hands.checkpoint()
    told = f"pages of the write-ahead log in the file: {wal.copied} of {wal.frames}, its size: {wal.size} bytes"
    if wal.copied < wal.frames:
        told += "; a long reader keeps the rest, the next pass tries again"
    return UpkeepStep(name, "done", told)


def _quick_check(one: _Pass) -> UpkeepStep:
    problems = one.hands.quick_check()
    if problems:
        return UpkeepStep("quick check", "stopped", f"the memory is damaged: {problems[0]}; restore a backup")
    return UpkeepStep("quick check", "done", "the memory is sound")


_KINDS = {
    "scene_refs": "refs",
    "sentences": "sentences",
    "entities": "entities",
    "situation_evidence": "labels",
}
_STEPS: tuple[Callable[[_Pass], UpkeepStep], ...] = (
    _dedupe_scenes,
    _merge_entities,
    _review_entities,
    _decay,
    _expire_evidence,
    _expire_incidents,
    _expire_reminders,
    _expire_sessions,
    _drop_jobs,
    _note_strengths,
    _purge_refs,
    functools.partial(_purge_orphans, table="sentences"),
    functools.partial(_purge_orphans, table="entities"),
    _drop_journal,
    _optimise_text_index,
    _checkpoint,
    _quick_check,
)
