"""Checkpoints: what is new in a session is read once, by one writer, and its one reply is settled in one transaction.

A job goes through `begin` (it takes parts that no other has read), the writer, outside of any transaction, and `settle`
(checkpoint, notes and the end of the job together). Whatever ends a process in between, the next one takes the job up
where it is: with the same parts, or with the reply that is there already.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graphmem.compose import extracting, proposing
from graphmem.config import Config
from graphmem.core import checkpoints
from graphmem.core.candidates import Candidate
from graphmem.core.model import Note, Proposed, Provenance, StoredPart, WriterTask
from graphmem.core.redaction import REDACTED, redact
from graphmem.core.snippets import cut
from graphmem.core.times import utc_text
from graphmem.records import drafts, history, jobs, notes
from graphmem.store.text_index import Vocabulary
from graphmem.store.transaction import Transaction

KIND = "checkpoint"
_SHOWN_NAME = 80
# How long a writer may take, as opencode-promemory has it: 60 s and a millisecond a byte, half as much again, at the
# least three minutes.
_LEAST_LEASE = 180.0
_LEASE = 60.0
_LEASE_OF_A_BYTE = 0.001
_MARGIN = 1.5
_LEAST_DIGEST = 1000  # bytes of a digest by rules


@dataclass(frozen=True, slots=True)
class Begun:
    """A job that was taken up. reply: what a writer answered already, '' where one has to be asked.

    cut: the id of a message that was longer than a writer reads. left: parts that the job leaves for the next one.
    """

    job_id: int
    task: WriterTask
    reply: str
    cut: str
    left: int


@dataclass(frozen=True, slots=True)
class Settled:
    """What a reply came to: the checkpoint, or why it is none. What it found worth remembering. What to say of it.

    note: None without an error where there was nothing to tell.
    """

    note: Note | None
    proposed: tuple[Proposed, ...] = ()
    remarks: tuple[str, ...] = ()
    error: str = ""


def enqueue(tx: Transaction, name: str, cause: str, at: str, *, force: bool) -> str:
    """Put a checkpoint of a session into the queue; return the state of the report."""
    session = history.require_session(tx, name)
    if session.own:
        return "own"
    if force:  # who does it later has no say
        jobs.forgive(tx, session.id)
    elif session.failures >= jobs.MOST_FAILURES:
        return "suppressed"
    held = jobs.at_work(tx, KIND, session.scope, session.id)
    if held is not None:
        return "busy" if jobs.is_taken(held, at) else "queued"
    if not jobs.undigested(tx, session.id, 1):
        return "nothing"
    jobs.queue(tx, KIND, session.scope, session.id, cause, at)
    return "queued"


def begin(tx: Transaction, name: str, cause: str, owner: str, at: str, config: Config, *, force: bool) -> Begun | str:
    """Take up the job of a session, a new one where none is at work; return why there is none to do."""
    session = history.require_session(tx, name)
    if session.own:
        return "own"
    held, taken = jobs.take_up(tx, KIND, session.scope, session.id, at)
    if taken:
        return "busy"
    # Read again: a job that was given up was one more.
    if history.require_session(tx, name).failures >= jobs.MOST_FAILURES and not force:
        return "suppressed"
    parts = jobs.parts_of(tx, held.id) if held is not None else []
    if held is not None and held.state == "answered":
        task = _task(parts, "", "", at, config)
        return Begun(held.id, task, held.reply, "", jobs.count_undigested(tx, session.id))
    if not parts:
        parts = jobs.undigested(tx, session.id, config.checkpoint_input_bytes)
        is_short = cause == "idle" and jobs.count_turns(tx, session.id) < config.extract_min_turns
        if not parts or is_short:
            if held is not None:
                jobs.finish(tx, held.id, None, at)
            return "short" if parts else "nothing"
    increment = checkpoints.increment_of(parts, config.checkpoint_input_bytes, config.extract_max_messages)
    job_id = held.id if held is not None else jobs.queue(tx, KIND, session.scope, session.id, cause, at)
    jobs.take_parts(tx, job_id, [part.id for part in increment.parts])
    limit, date = config.checkpoint_output_bytes, date_of(at)
    told = checkpoints.instructions(increment, date=date, limit=limit, language=config.language)
    task = _task(increment.parts, told, increment.text, at, config)
    jobs.ask(tx, job_id, owner, lease_of(at, task, config), at)
    return Begun(job_id, task, "", increment.cut, jobs.count_undigested(tx, session.id))


def _task(parts: Sequence[StoredPart], instructions: str, text: str, at: str, config: Config) -> WriterTask:
    return WriterTask(KIND, instructions, text, tuple(parts), config.checkpoint_output_bytes, date_of(at))


def date_of(at: str) -> str:
    """Return a stored time as a writer is told it: to the second."""
    return f"{at[:19]}Z"


def lease_of(at: str, task: WriterTask, config: Config) -> str:
    """Return until when a writer may be at work on a task that it is given at a time."""
    size = len(task.text.encode())
    answers = config.writer_timeout * (1 + config.writer_max_retries)
    seconds = max(_LEAST_LEASE, _MARGIN * max(_LEASE + _LEASE_OF_A_BYTE * size, answers))
    return utc_text(dt.datetime.fromisoformat(at) + dt.timedelta(seconds=seconds))


def by_rules(task: WriterTask, config: Config) -> str:
    """Return the reply of the writer that needs no model: a tenth of what it reads, in the sentences that were said."""
    headings = len(checkpoints.render({}, date=task.date, language=config.language).encode())
    size = sum(len(part.text.encode()) for part in task.parts)
    sections = extracting.extract(task.parts, limit=min(task.limit - headings, max(_LEAST_DIGEST, size // 10)))
    found = extracting.extract_candidates(task.parts)
    return checkpoints.render(sections, date=task.date, language=config.language, candidates=found)


def settle(
    tx: Transaction, vocabulary: Vocabulary, begun: Begun, reply: str, name: str, at: str, config: Config
) -> Settled:
    """Write what a reply holds and end its job.

    A reply that is no checkpoint fails the job, and what it read is read again.
    """
    found = checkpoints.parse_reply(reply)
    said = "\n".join(part.text for part in begun.task.parts)
    if problems := checkpoints.problems_of(found.text, config.checkpoint_output_bytes, said):
        error = f"the reply is no checkpoint: {'; '.join(problems)}"
        jobs.fail(tx, begun.job_id, error, at)
        return Settled(None, error=error)
    text = redact(found.text)
    remarks = [*found.remarks, *checkpoints.warnings_of(text)]
    if text != found.text:
        remarks.append(f"secrets were replaced by {REDACTED}")
    if begun.cut:
        remarks.append(
            f"message {begun.cut!r} is longer than {config.checkpoint_input_bytes} bytes and was read in part: raise "
            "checkpoint_input_bytes, and checkpoint_output_bytes with it, to read more at once"
        )
    session = history.require_session(tx, name)
    jobs.forgive(tx, session.id)
    if checkpoints.is_empty(text) and not (found.of_project or found.of_user):
        jobs.finish(tx, begun.job_id, None, at)
        return Settled(None, remarks=tuple(remarks))
    last = begun.task.parts[-1].part if begun.task.parts else ""
    origin = Provenance(0, "remember", "agent:writer", "", name, last, "", "", at)
    note = _write(tx, text, name, session.scope, origin, config)
    proposed = [
        *_propose(tx, vocabulary, found.of_project, session.scope, origin, config),
        *_propose(tx, vocabulary, found.of_user, "", origin, config),
    ]
    notes.add_sources(tx, [one.note.id for one in proposed if one.note is not None], [note.id])
    jobs.finish(tx, begun.job_id, note.id, at)
    return Settled(note, tuple(proposed), tuple(remarks))


def _write(tx: Transaction, text: str, name: str, scope: str, origin: Provenance, config: Config) -> Note:
    shown = cut(name, _SHOWN_NAME)
    draft = drafts.check_note(
        f"Checkpoint of {shown}, {origin.at[:16].replace('T', ' ')}", body=text, kind=KIND, slot="", labels=(),
        load_when=(), summary=checkpoints.summary_of(text, drafts.LONGEST_SUMMARY), highlight="", scope=scope,
        pinned=False, status="live", source=origin.actor, reason="", config=config,
    )  # fmt: skip
    return notes.remember(tx, draft, replace(origin, reason=draft.reason)).note


def _propose(
    tx: Transaction,
    vocabulary: Vocabulary,
    candidates: Iterable[Candidate],
    scope: str,
    origin: Provenance,
    config: Config,
) -> tuple[Proposed, ...]:
    found = tuple(candidates)
    return proposing.propose(tx, vocabulary, found, lambda kind: scope, origin, config) if found else ()
