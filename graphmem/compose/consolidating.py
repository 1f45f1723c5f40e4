"""Consolidating and distilling a scope: when it is due, what is read for it, and what is to be done.

With a writer that is a job, as for a checkpoint: `begin`, the writer, outside of any transaction, and a plan that is
carried out with the end of the job. What the writer was shown is kept with its reply, so that after a crash, too,
nothing else is superseded. Without a writer the plan is made of rules, and its job is begun and done at once.
"""

import datetime as dt
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from graphmem.compose import proposing
from graphmem.compose.checkpointing import date_of, lease_of
from graphmem.config import Config
from graphmem.core import consolidating, distilling
from graphmem.core.candidates import Candidate
from graphmem.core.choices import PROCEDURES
from graphmem.core.consolidating import Ground, Plan, Stored
from graphmem.core.distilling import Said
from graphmem.core.model import Note, WriterTask
from graphmem.core.times import days_before, utc_text
from graphmem.records import drafts, gathering, jobs, notes
from graphmem.store.text_index import Vocabulary
from graphmem.store.transaction import Transaction

CONSOLIDATE, DISTILL = "consolidate", "distill"
_CAUSE = "manual"
_MOST_NOTES = 2_000  # that a writer is shown; it reads far fewer
_MOST_CHECKPOINTS = 500
_OF_WHAT_IS_TRUE = (*drafts.FACTS, *drafts.LESSONS)
_SHOWN = (*_OF_WHAT_IS_TRUE, "rule")
_DAY = dt.timedelta(days=1)
NO_LIST = "the reply holds no JSON list of conclusions"
_LEFT = "left before it was done"
_LOOKED_BACK = 30.0  # days, where distilling has no interval that says how far


class Wait(NamedTuple):
    """Why nothing is done now: early, busy, suppressed or nothing. due_at, days_left: when it is due, for early."""

    state: str
    due_at: str | None = None
    days_left: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a writer is asked. job_id: 0 in a dry run. reply: what it answered before, as it is kept, '' for nothing.

    shown: the notes that it is shown, each with the time it was changed last. left: how much had no room. read_to: the
    last checkpoint that it has read with these.
    """

    task: WriterTask
    shown: Mapping[int, str]
    left: int
    read_to: int | None = None
    job_id: int = 0
    reply: str = ""


# ---- when


def wait_of(tx: Transaction, kind: str, scope: str, at: str, config: Config, *, force: bool) -> Wait | None:
    """Return why a scope is left alone for now; None where it is due."""
    days = config.dream_interval_days if kind == CONSOLIDATE else config.distill_interval_days
    last = jobs.last_done(tx, kind, scope)
    if force or last is None:
        return None
    due = dt.datetime.fromisoformat(last) + dt.timedelta(days=days)
    left = due - dt.datetime.fromisoformat(at)
    return Wait("early", utc_text(due), math.ceil(left / _DAY)) if left > dt.timedelta() else None


def begin(
    tx: Transaction,
    kind: str,
    scope: str,
    asked: Asked | None,
    owner: str,
    at: str,
    config: Config,
    *,
    force: bool,
    again: bool,
) -> Asked | Wait:
    """Take up the job of a scope, a new one where none is at work; return why there is none to do.

    asked: as `ask_unless_answered` has it; it was read before, since that takes long. again: also where it failed three
    times in a row. A job with a reply is taken up as it is. One that there is no more to do for is ended.
    """
    held, taken = jobs.take_up(tx, kind, scope, None, at)
    if taken:
        return Wait("busy")
    if held is not None and held.state == "answered":
        return Asked(_task(kind, "", "", at, config), {}, 0, job_id=held.id, reply=held.reply)
    if asked is None:  # another one has settled the reply meanwhile
        return Wait("busy")
    wait = wait_of(tx, kind, scope, at, config, force=force)
    if wait is None and not again and jobs.failed_since_done(tx, kind, scope) >= jobs.MOST_FAILURES:
        wait = Wait("suppressed")
    if wait is None and not asked.task.text:
        wait = Wait("nothing")
    if wait is not None:
        if held is not None:
            jobs.fail(tx, held.id, _LEFT, at)
        return wait
    job_id = held.id if held is not None else jobs.queue(tx, kind, scope, None, _CAUSE, at)
    jobs.ask(tx, job_id, owner, lease_of(at, asked.task, config), at)
    jobs.keep_read(tx, job_id, asked.read_to)
    return replace(asked, job_id=job_id)


def left_job(tx: Transaction, kind: str, scope: str, at: str) -> int | None:
    """Return the job of a scope whose process is gone since it asked a writer, None where there is none."""
    held = jobs.at_work(tx, kind, scope, None)
    return None if held is None or held.state != "asked" or jobs.is_taken(held, at) else held.id


def end_left(tx: Transaction, kind: str, scope: str, at: str) -> None:
    """End the job of a scope that was left, where no writer is asked again."""
    job_id = left_job(tx, kind, scope, at)
    if job_id is not None:
        jobs.fail(tx, job_id, _LEFT, at)


def begin_by_rules(tx: Transaction, kind: str, scope: str, at: str, config: Config, *, force: bool) -> int | Wait:
    """Begin the job of a scope that no writer is asked for, and return its number; or why there is none to do."""
    held, taken = jobs.take_up(tx, kind, scope, None, at)
    if taken:
        return Wait("busy")
    if wait := wait_of(tx, kind, scope, at, config, force=force):
        return wait
    job_id = held.id if held is not None else jobs.queue(tx, kind, scope, None, _CAUSE, at)
    # Rules read all of them each time; the jobs before this one may be dropped, and what writers have read with them.
    jobs.keep_read(tx, job_id, jobs.last_read(tx, kind, scope))
    return job_id


# ---- what is read


def ask_unless_answered(tx: Transaction, kind: str, scope: str, at: str, config: Config) -> Asked | None:
    """Return what a writer is asked of a scope, None where its reply waits and nothing has to be read."""
    held = jobs.at_work(tx, kind, scope, None)
    return None if held is not None and held.state == "answered" else ask(tx, kind, scope, at, config)


def ask(tx: Transaction, kind: str, scope: str, at: str, config: Config) -> Asked:
    """Return what a writer is asked of a scope; the text is '' where there is nothing to read."""
    limit, budget, language = config.checkpoint_output_bytes, config.checkpoint_input_bytes, config.language
    if kind == DISTILL:
        text, left = distilling.material_of(_said(tx, scope, at, config), budget)
        known = gathering.named(tx, scope, PROCEDURES)
        told = distilling.instructions(known, date=at, limit=limit, language=language)
        return Asked(_task(kind, told, text, at, config), {}, left)
    # What was told in some scene only is not for everybody, and what is made of it would be.
    live = gathering.live_notes(tx, scope, _SHOWN, openly=True, most=_MOST_NOTES)
    read = jobs.last_read(tx, kind, scope)
    unread = gathering.checkpoints_behind(tx, scope, read or 0, _MOST_CHECKPOINTS)
    material = consolidating.material_of(live, unread, budget)
    told = consolidating.instructions(date=at, limit=limit, language=language)
    shown = {note.id: note.updated_at for note in material.notes.values()}
    return Asked(_task(kind, told, material.text, at, config), shown, material.left, material.read_to or read)


def _said(tx: Transaction, scope: str, at: str, config: Config) -> list[Said]:
    return gathering.said_since(tx, scope, days_before(at, config.distill_interval_days or _LOOKED_BACK))


def _task(kind: str, instructions: str, text: str, at: str, config: Config) -> WriterTask:
    return WriterTask(kind, instructions, text, (), config.checkpoint_output_bytes, date_of(at))


def kept(reply: str, shown: Mapping[int, str]) -> str:
    """Return a reply as its job keeps it: with what the writer was shown."""
    return json.dumps([list(shown.items()), reply], ensure_ascii=False)


# ---- what is to be done


def settle(tx: Transaction, vocabulary: Vocabulary, kind: str, scope: str, reply: str, config: Config) -> Plan | None:
    """Return what a kept reply asks for, as things are now; None for one that holds no list."""
    items, said = json.loads(reply)
    stored = _stored(tx, vocabulary, scope)
    if kind == DISTILL:
        return distilling.plan_of_reply(said, gathering.named(tx, scope, PROCEDURES), stored)
    known = notes.notes(tx, [note_id for note_id, _ in items])
    shown = {
        note_id: known[note_id]
        for note_id, at in items
        if note_id in known and (known[note_id].status, known[note_id].updated_at) == ("live", at)
    }
    ground = Ground(_binding(shown, config), sources=gathering.sources(tx, list(shown)))
    return consolidating.plan_of_reply(said, shown, ground, stored)


def plan_by_rules(
    tx: Transaction,
    vocabulary: Vocabulary,
    kind: str,
    scope: str,
    at: str,
    config: Config,
    taken_back: frozenset[tuple[int, int]],
) -> Plan | None:
    """Return what repeats and likeness alone come to; None where there is nothing to look at."""
    stored = _stored(tx, vocabulary, scope)
    if kind == DISTILL:
        said = _said(tx, scope, at, config)
        if not any(part.tool for part in said):
            return None
        known = gathering.named(tx, scope, PROCEDURES)
        return distilling.plan_of_rules(said, known, stored, config.language)
    live = gathering.live_notes(tx, scope, _OF_WHAT_IS_TRUE)
    checkpoints = gathering.live_notes(tx, scope, ("checkpoint",), openly=True, most=_MOST_CHECKPOINTS)
    if not live and not checkpoints:
        return None
    by_id = {note.id: note for note in live}
    ground = Ground(
        _binding(by_id, config), gathering.audiences(tx, list(by_id)), gathering.sources(tx, list(by_id)), taken_back
    )
    return consolidating.plan_of_rules(live, checkpoints, ground, stored)


def _binding(known: Mapping[int, Note], config: Config) -> frozenset[int]:
    return frozenset(note_id for note_id, note in known.items() if notes.binds(note, config))


def _stored(tx: Transaction, vocabulary: Vocabulary, scope: str) -> Stored:
    def stored(candidate: Candidate) -> list[Note]:
        return proposing.alike(tx, vocabulary, candidate, scope)

    return stored
