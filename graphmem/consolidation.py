"""The verbs of Memory that let writers, or rules, work on what is remembered, and how a job of a writer is done."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from graphmem import log
from graphmem.arguments import is_blank
from graphmem.config import Config, check_flags
from graphmem.core import model
from graphmem.core.keys import clean_text
from graphmem.core.times import Clock
from graphmem.curation import Curation
from graphmem.errors import GraphmemError, InvalidInput, SecretRefused, WriterFailed, WriterUnavailable
from graphmem.late import late
from graphmem.store.transaction import Store, Transaction

if TYPE_CHECKING:
    from graphmem import writers
    from graphmem.compose import consolidating
    from graphmem.core import consolidating as plans
    from graphmem.core import embedding, redaction, snippets
    from graphmem.records import jobs
    from graphmem.upkeep import consolidate
else:
    consolidate = late("graphmem.upkeep.consolidate")
    consolidating = late("graphmem.compose.consolidating")
    embedding = late("graphmem.core.embedding")
    jobs = late("graphmem.records.jobs")
    plans = late("graphmem.core.consolidating")
    redaction = late("graphmem.core.redaction")
    snippets = late("graphmem.core.snippets")
    writers = late("graphmem.writers")

_T = TypeVar("_T")
_ERROR_KEPT = 300


class Undone(NamedTuple):
    """Why a job was not done: busy (another has it by now), gone (with its session), waiting (nobody answers) or
    failed, and why.
    """

    state: str
    error: str = ""


class Consolidation(Curation):
    """What writers make of a memory besides checkpoints: what stays true, and what is done again and again."""

    def __init__(
        self, store: Store, *, config: Config, clock: Clock, embedder: embedding.Embedder | None = None
    ) -> None:
        super().__init__(store, config=config, clock=clock, embedder=embedder)
        self._writer: model.Writer | None = None

    def consolidate(
        self, *, scope: str | None = None, force: bool = False, dry_run: bool = False, allow_shrink: bool = False
    ) -> model.ConsolidationReport:
        """Draw what stays true from the notes and checkpoints of a scope: notes, in the place of those they replace.

        A writer reads the live notes that are for everybody, those told last first, and the checkpoints that none has
        read yet, the oldest first, as many as have room in `config.checkpoint_input_bytes`. What it concludes becomes
        notes that know their sources, told as often as these together; what they replace is superseded, never deleted,
        and only what the writer was shown. What a person said or what binds is not replaced: then the new note is
        proposed, as a rule is. Without a writer rules do it: notes that say the same become one, and what checkpoints
        of two sessions say becomes a note.

        It is due every `config.dream_interval_days` for each scope, counted from the last success; force: also before,
        and after three failures in a row. scope: as in `remember`, the current project where there is one when left
        out, else the user's own. dry_run: show what would be done and write nothing; a writer is asked, which may cost,
        and the tokens are counted where `config.writer_tokens_per_day` limits them. allow_shrink: also where more than
        `config.shrink_limit` of the notes would be superseded. `undo` reverses it.

        >>> from graphmem import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     for title in ("Redis listens on 6380", "Redis is listening on 6380", "Deploy with pnpm"):
        ...         told = memory.remember(title)
        ...     report = memory.consolidate()
        ...     report.state, report.by, report.superseded, memory.consolidate().days_left
        ('revised', 'rules', (2,), 7)
        """
        return self._worked_on(
            consolidating.CONSOLIDATE, scope, force=force, dry_run=dry_run, allow_shrink=allow_shrink
        )

    def distill(
        self, *, scope: str | None = None, force: bool = False, dry_run: bool = False
    ) -> model.ConsolidationReport:
        """Propose skills, agents and commands for what was done again and again of late.

        A writer reads what users asked and which tools were called in the mirrored sessions of a scope, as much as has
        room in `config.checkpoint_input_bytes`. Without one, rules look for calls that came in the same order three
        times or more. Each is a note whose title is the name and whose body is the text of its file; it is only
        proposed, `approve` lets it come into force. What was rejected, or is there already, is not proposed again.

        It is due every `config.distill_interval_days`, which is also how far back it looks; for 0 it looks 30 days
        back. scope, force, dry_run: as in `consolidate`.

        >>> from graphmem import Memory, Part
        >>> steps = ("npm test", "git push origin main")
        >>> with Memory.open(":memory:") as memory:
        ...     for name in ("s1", "s2", "s3"):
        ...         parts = [Part(f"p{n}", tool="bash", outcome="done", text=step) for n, step in enumerate(steps)]
        ...         told = memory.mirror(name, parts)
        ...     [(one.kind, one.title, one.outcome) for one in memory.distill().conclusions]
        [('skill', 'npm-test-git-push', 'proposed')]
        """
        return self._worked_on(consolidating.DISTILL, scope, force=force, dry_run=dry_run, allow_shrink=False)

    # ---- within

    def _worked_on(
        self, kind: str, scope: str | None, *, force: bool, dry_run: bool, allow_shrink: bool
    ) -> model.ConsolidationReport:
        check_flags(force=force, dry_run=dry_run, allow_shrink=allow_shrink)
        home = self._scope("user" if self._project is None else "project") if scope is None else self._scope(scope)
        if not dry_run:
            self._store.require_writing()
        importlib.import_module("graphmem.upkeep.consolidate")  # now, and not while nobody else can write
        writer = self._named_writer()
        by = "rules" if writer is None else "writer"
        report = model.ConsolidationReport(kind, home, "unchanged", by=by, applied=not dry_run)
        at = self._at(None)
        with self._store.read() as tx:
            wait = consolidating.wait_of(tx, kind, home, at, self.config, force=force)
            left = consolidating.left_job(tx, kind, home, at)
        if left is not None and not dry_run and (wait is not None or writer is None):
            with self._writing(at) as tx:
                consolidating.end_left(tx, kind, home, at)
        if wait is not None:
            return _waiting(report, wait)
        if dry_run:
            return self._rehearsed(report, writer, at, allow_shrink=allow_shrink)
        if writer is None:
            done = self._by_rules(report, at, force=force, allow_shrink=allow_shrink)
        else:
            with jobs.owning() as owner:
                done = self._by_writer(owner, report, writer, at, force=force, allow_shrink=allow_shrink)
        if done.error:
            log.warning("%s of scope %r: %s", kind, home, done.error)
        return done

    def _rehearsed(
        self, report: model.ConsolidationReport, writer: model.Writer | None, at: str, *, allow_shrink: bool
    ) -> model.ConsolidationReport:
        if writer is None:
            plan = self._plan_by_rules(report, at)
            if plan is None:
                return replace(report, state="nothing")
        else:
            with self._store.read() as tx:
                asked = consolidating.ask(tx, report.kind, report.scope, at, self.config)
            if not asked.task.text:
                return replace(report, state="nothing")
            try:
                reply = consolidating.kept(_reply(writer, asked.task), asked.shown)
            except WriterFailed as error:
                return replace(report, state="failed", error=str(error))
            report = _with_remarks(report, asked.left)
            with self._store.read() as tx:
                plan = consolidating.settle(tx, self._vocabulary, report.kind, report.scope, reply, self.config)
            if plan is None:
                return replace(report, state="failed", error=consolidating.NO_LIST)
        with self._store.read() as tx:
            lost = consolidate.lost_by(tx, plan, report.scope, self.config)
        return _planned(report, plan, "" if allow_shrink else lost)

    def _plan_by_rules(self, report: model.ConsolidationReport, at: str) -> plans.Plan | None:
        with self._store.read() as tx:
            return consolidating.plan_by_rules(
                tx,
                self._vocabulary,
                report.kind,
                report.scope,
                at,
                self.config,
                consolidate.taken_back(tx, report.kind),
            )

    def _by_rules(
        self, report: model.ConsolidationReport, at: str, *, force: bool, allow_shrink: bool
    ) -> model.ConsolidationReport:
        # It takes long where there are many notes, and nobody could write meanwhile.
        plan = self._plan_by_rules(report, at)
        if plan is None:
            return replace(report, state="nothing")
        with self._writing(at) as tx:
            lost = "" if allow_shrink else consolidate.lost_by(tx, plan, report.scope, self.config)
            if lost:
                return _planned(report, plan, lost)
            job = consolidating.begin_by_rules(tx, report.kind, report.scope, at, self.config, force=force)
            if isinstance(job, consolidating.Wait):
                return _waiting(report, job)
            report = self._applied(tx, report, plan, at)
            jobs.finish(tx, job, None, at)
        return report

    def _by_writer(
        self,
        owner: str,
        report: model.ConsolidationReport,
        writer: model.Writer,
        at: str,
        *,
        force: bool,
        allow_shrink: bool,
    ) -> model.ConsolidationReport:
        with self._store.read() as tx:
            found = consolidating.ask_unless_answered(tx, report.kind, report.scope, at, self.config)
        with self._writing(at) as tx:
            # Who allows it to shrink has seen why it stopped, which counted as a failure.
            asked = consolidating.begin(
                tx, report.kind, report.scope, found, owner, at, self.config, force=force, again=force or allow_shrink
            )
        if isinstance(asked, consolidating.Wait):
            return _waiting(report, asked)
        told = _with_remarks(report, asked.left)

        def settle(tx: Transaction, reply: str, at: str) -> model.ConsolidationReport:
            plan = consolidating.settle(tx, self._vocabulary, report.kind, report.scope, reply, self.config)
            if plan is None:
                jobs.fail(tx, asked.job_id, consolidating.NO_LIST, at)
                return replace(told, state="failed", error=consolidating.NO_LIST)
            lost = "" if allow_shrink else consolidate.lost_by(tx, plan, report.scope, self.config)
            if lost:
                stopped = _planned(told, plan, lost)
                jobs.fail(tx, asked.job_id, stopped.error, at)
                return stopped
            done = self._applied(tx, told, plan, at)
            jobs.finish(tx, asked.job_id, None, at)
            return done

        done = self._done_by_writer(
            owner,
            asked.job_id,
            asked.task,
            asked.reply,
            settle,
            writer=writer,
            keep=lambda reply: consolidating.kept(reply, asked.shown),
        )
        return replace(told, state=done.state, error=done.error) if isinstance(done, Undone) else done

    def _applied(
        self, tx: Transaction, report: model.ConsolidationReport, plan: plans.Plan, at: str
    ) -> model.ConsolidationReport:
        origin = self._done("remember", f"agent:{report.by}", at, reason="", session="", place="")
        applied = consolidate.apply(tx, plan, report.kind, report.scope, origin, self.config)
        done = replace(plan, steps=tuple(plans.Step(one) for one in applied.conclusions))
        return replace(_planned(report, done, ""), operation=applied.operation)

    # ---- jobs of writers

    def _done_by_writer(
        self,
        owner: str,
        job_id: int,
        task: model.WriterTask,
        reply: str,
        settle: Callable[[Transaction, str, str], _T],
        *,
        writer: model.Writer,
        keep: Callable[[str], str] = str,
    ) -> _T | Undone:
        """Let a writer answer, and settle what it says, once, whatever ends the process between; tell why not.

        owner: whose job it is. reply: what it answered before, '' for nothing. settle: is given a reply and the time,
        and ends the job. keep: gives the form in which a reply is kept.
        """
        if not reply:
            try:
                reply = keep(_reply(writer, task))
            except WriterFailed as error:
                waits = isinstance(error, WriterUnavailable)
                end = jobs.put_back if waits else jobs.fail
                return self._undone(job_id, error, end, ("asked", owner), "waiting" if waits else "failed")
            at = self._at(None)
            with self._writing(at) as tx:
                if not jobs.answer(tx, job_id, owner, reply, at):
                    return _of_another(jobs.state_of(tx, job_id))
        at = self._at(None)
        try:
            with self._writing(at) as tx:
                answered = jobs.state_of(tx, job_id)
                return settle(tx, reply, at) if answered[0] == "answered" else _of_another(answered)
        except (InvalidInput, SecretRefused) as error:  # of the reply: with another one it may go well
            return self._undone(job_id, error, jobs.fail, answered)
        except GraphmemError as error:
            with contextlib.suppress(GraphmemError), self._writing(at) as tx:  # what is wrong is raised below
                jobs.count_failure(tx, job_id, _shown(error), at)
            raise

    def _undone(
        self,
        job_id: int,
        error: GraphmemError,
        end: Callable[[Transaction, int, str, str], None],
        ours: tuple[str, str],
        state: str = "failed",
    ) -> Undone:
        """End a job that is as we left it, and tell why it was not done. ours: its state and owner."""
        at, told = self._at(None), _shown(error)
        with self._writing(at) as tx:
            found = jobs.state_of(tx, job_id)
            if found != ours:
                return _of_another(found)
            end(tx, job_id, told, at)
        return Undone(state, told)

    def _named_writer(self) -> model.Writer | None:
        """Return the writer that the memory was opened with, else that of the settings, None where there is none."""
        return self._writer or writers.writer_of(self.config, self._budget, clock=self._clock)

    @functools.cached_property
    def _budget(self) -> writers.TokenBudget:
        # A dry run asks also where nothing can be written.
        return writers.OwnBudget() if self.config.read_only else jobs.Budget(self._store)


def _reply(writer: model.Writer, task: model.WriterTask) -> str:
    try:
        reply = writer(task)
    except GraphmemError:  # also of the memory, where tokens are counted: that is no failure of the writer
        raise
    except Exception as error:  # a writer is somebody else's code, and may fail in any way
        raise WriterFailed(f"the writer failed: {type(error).__name__}: {error}") from error
    if not isinstance(reply, str) or is_blank(reply):
        raise WriterFailed("the writer said nothing")
    return clean_text(reply)


def _of_another(found: tuple[str, str]) -> Undone:
    return Undone("gone" if found[0] == "gone" else "busy")


def _shown(error: Exception) -> str:
    """Return what an error says, in one line of at most 300 characters and without a secret, as it is kept."""
    return snippets.cut(redaction.redact(" ".join(clean_text(str(error)).split())), _ERROR_KEPT)


def _waiting(report: model.ConsolidationReport, wait: consolidating.Wait) -> model.ConsolidationReport:
    return replace(report, state=wait.state, due_at=wait.due_at, days_left=wait.days_left, applied=False)


def _with_remarks(report: model.ConsolidationReport, left: int) -> model.ConsolidationReport:
    if not left:
        return report
    what = "notes and checkpoints" if report.kind == consolidating.CONSOLIDATE else "runs of calls"
    remark = f"{what} that had no room: {left}; raise checkpoint_input_bytes to read more at once"
    return replace(report, remarks=(*report.remarks, remark))


def _planned(report: model.ConsolidationReport, plan: plans.Plan, lost: str) -> model.ConsolidationReport:
    """Return the report of what was or would be done; lost: why it stops, '' where it does not."""
    told = tuple(step.shown for step in plan.steps)
    changes = any(one.outcome in plans.CHANGES for one in told)
    state = "revised" if any(one.supersedes for one in told) else "appended" if changes else "unchanged"
    report = replace(report, state=state, conclusions=told, remarks=(*report.remarks, *plan.remarks))
    if not lost:
        return report
    error = f"stopped before it began, since it would bring {lost}"
    return replace(report, state="stopped", error=error, applied=False)
