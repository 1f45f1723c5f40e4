"""The verbs of Memory about sessions: what was said, verbatim, and what is distilled of it."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmem import log
from graphmem.arguments import checked_limit, checked_situation, is_blank, refuse_secret_names
from graphmem.config import Config, check_count, check_flags, check_number
from graphmem.consolidation import Consolidation, Undone
from graphmem.core import model
from graphmem.core.keys import clean_text, require_texts, text_list
from graphmem.core.situations import Situation
from graphmem.core.times import Clock, read_time, utc_text
from graphmem.errors import Conflict, GraphmemError, InvalidInput, NotFound, SecretRefused, StoreFailed
from graphmem.late import late
from graphmem.store.transaction import Store

if TYPE_CHECKING:
    from graphmem import projects
    from graphmem.compose import checkpointing, harvesting, search
    from graphmem.compose.meaning import MeaningIndex
    from graphmem.compose.pool import Request
    from graphmem.core import choices, embedding, redaction, snippets, turns
    from graphmem.core import trust as trusts
    from graphmem.core.model import writing
    from graphmem.exchange import transcripts
    from graphmem.records import history, jobs
    from graphmem.records import scopes as scope_rows
    from graphmem.records.history import Harvested
    from graphmem.upkeep import repeating
    from graphmem.upkeep.repeating import Repeating
else:
    checkpointing = late("graphmem.compose.checkpointing")
    choices = late("graphmem.core.choices")
    embedding = late("graphmem.core.embedding")
    harvesting = late("graphmem.compose.harvesting")
    history = late("graphmem.records.history")
    jobs = late("graphmem.records.jobs")
    projects = late("graphmem.projects")
    redaction = late("graphmem.core.redaction")
    repeating = late("graphmem.upkeep.repeating")
    scope_rows = late("graphmem.records.scopes")
    search = late("graphmem.compose.search")
    snippets = late("graphmem.core.snippets")
    transcripts = late("graphmem.exchange.transcripts")
    trusts = late("graphmem.core.trust")
    turns = late("graphmem.core.turns")
    writing = late("graphmem.core.model.writing")

_LISTED = 50


class Sessions(Consolidation):
    """The sessions of a memory: the verbatim mirror, what searches in it, and what is distilled of it."""

    def __init__(
        self, store: Store, *, config: Config, clock: Clock, embedder: embedding.Embedder | None = None
    ) -> None:
        super().__init__(store, config=config, clock=clock, embedder=embedder)
        self._meanings: MeaningIndex | None = None
        self._signs: projects.Signs | None = None
        if embedder is not None:
            from graphmem.compose import meaning

            self._meanings = meaning.MeaningIndex(embedder)
        self._checkpoints: Repeating[tuple[model.CheckpointReport, ...]] | None = None

    def close(self) -> None:
        """Close the file. Closing twice does nothing; any other verb on a closed memory raises Conflict."""
        self._closing.set()
        if self._checkpoints is not None:
            self._checkpoints.stop()
        super().close()

    def mirror(
        self,
        session: str,
        parts: Iterable[model.Part],
        *,
        scope: str | None = None,
        at: dt.datetime | str | None = None,
        redact: bool | None = None,
    ) -> model.MirrorReport:
        """Keep what was said in a session, verbatim and in order, so that it can be recalled.

        Secrets are replaced first, unless `redact` says otherwise; left out, `config.redact_mirror` says so. What this
        memory put into a prompt itself is not kept. Both are told in remarks.

        Parts are known by their ids: telling one again changes what is told otherwise, keeps what is left out, and
        never moves it. New parts go behind the part they are told after, else in front of the first known one, else to
        the end. at: when it was recorded; each part may say when it was said. An empty list leaves no trace.

        scope: that of the session, taken from the first call that names one. Where none is named, a session is of the
        current project; one that was told outside of any project becomes that of the first it is told in, with its
        checkpoints and jobs.

        Raises InvalidInput naming the argument or the part that cannot be used, SecretRefused for a secret in a name,
        Conflict for a session of another scope.

        >>> from graphmem import Memory, Part
        >>> with Memory.open(":memory:") as memory:
        ...     memory.mirror("s1", [Part("m1", author="Ann", text="Lunch at noon?"), Part("m2", text="Fine.")]).added
        ...     memory.mirror("s1", [Part("m2", text="Fine!"), Part("m3", text="See you.")]).changed
        2
        1
        """
        name = _session_name(session)
        redaction.refuse_secrets(session=name, scope=scope)
        if redact is not None:
            check_flags(redact=redact)
        named = None if scope is None else self._scope(scope)
        home = "" if self._project is None else self._own_scope("project")
        screened = self.config.redact_mirror if redact is None else redact
        told, remarks = history.check_parts(parts, self.config.zone, screened=screened)
        moment = self._at(at)
        if not told:
            return model.MirrorReport(name, 0, 0, 0)
        with self._store.read() as tx:
            texts = history.unwritten(tx, name, told)
        ready = history.prepare(texts)
        with self._writing(moment) as tx:
            report = history.mirror(tx, name, told, ready, moment, scope=named, home=home)
        return replace(report, remarks=remarks)

    def delete_parts(
        self, session: str, parts: str | Iterable[str] = (), *, messages: str | Iterable[str] = ()
    ) -> model.DeletedParts:
        """Remove parts of a session for good, as its host does: those of these ids, and all of these messages.

        What was distilled of them stays. An id that is not there is passed over. Raises InvalidInput where none is
        given, NotFound for a session that is not mirrored. `purge` for good leaves no trace in the file either.
        """
        name = _session_name(session)
        names, wholes = text_list(parts, "parts"), text_list(messages, "messages")
        if not names and not wholes:
            raise InvalidInput("parts", parts, "name parts or messages; delete_session removes a whole session")
        with self._writing(self._at(None)) as tx:
            removed = history.delete_parts(
                tx, name, [clean_text(each) for each in names], [clean_text(each) for each in wholes]
            )
        return model.DeletedParts(name, removed)

    def delete_session(self, session: str) -> model.DeletedParts:
        """Remove a session with all its parts for good, as its host does; checkpoints and notes made of it stay.

        No transcript that tells of it brings it back; `mirror` does, with what is told then. Raises NotFound for a
        session that is not mirrored.
        """
        name = _session_name(session)
        with self._writing(self._at(None)) as tx:
            history.keep_out(tx, [history.require_session(tx, name).id])
            return model.DeletedParts(name, jobs.delete_session(tx, name))

    def history(
        self,
        query: str,
        *,
        session: str = "",
        scopes: Iterable[str] | None = None,
        since: dt.datetime | str | None = None,
        until: dt.datetime | str | None = None,
        floor: float | None = None,
        limit: int | None = None,
    ) -> tuple[model.PastHit, ...]:
        """Return the parts of sessions that answer a query's words, the best first, each with the place of the words.

        session: only this one. scopes: those of other projects are read only where they are named, "all" for all.
        floor: the share of the best score that a hit needs to be shown, `config.search_score_floor` when left out, 0
        for none; the best one is always shown. limit: None for 10, 0 for none. `part` returns the exact text. What was
        written since to transcripts that were harvested is mirrored first (`config.reconcile_on_search`).

        Raises InvalidInput for a query without words, NotFound for a session that is not mirrored.

        >>> from graphmem import Memory, Part
        >>> with Memory.open(":memory:") as memory:
        ...     report = memory.mirror("s1", [Part("m1", text="Lunch at noon?"), Part("m2", text="Fine.")])
        ...     [(hit.part.part, hit.snippet) for hit in memory.history("noon", limit=1)]
        [('m1', 'Lunch at noon?')]
        """
        least = self.config.search_score_floor if floor is None else floor
        check_number("floor", least, low=0.0, high=1.0)
        name = _some_session(session)
        if self.config.reconcile_on_search and not self.config.read_only:
            self._catch_up()
        with self._store.read() as tx:
            if name:
                history.require_session(tx, name)
            request = self._request(
                query, kinds="part", scopes=self._scopes(tx, scopes), since=since, until=until, limit=limit,
                session=name,
            )  # fmt: skip
            hits = search.search(
                tx, self._vocabulary, request, self.config.ranking,
                within=None, answering=(), meanings=self._meanings,
            )  # fmt: skip
            shown = hits[: snippets.above_floor([hit.score for hit in hits], least)]
            parts = history.parts_of_hosts(tx, [(hit.session, str(hit.id)) for hit in shown])
        return tuple(
            model.PastHit(part, hit.score, snippets.snippet(part.text, query))
            for part, hit in zip(parts, shown, strict=True)
        )

    def sessions(
        self, *, scopes: Iterable[str] | None = None, limit: int | None = None
    ) -> tuple[model.SessionInfo, ...]:
        """Return the sessions that are mirrored, those in which something was told last first. limit: None for 50."""
        most = checked_limit(limit, default=_LISTED)
        with self._store.read() as tx:
            return history.list_sessions(tx, self._scopes(tx, scopes), most)

    @staticmethod
    def read_turns(text: str, place: str = "turns") -> tuple[list[model.Part], tuple[str, ...]]:
        """Return the parts of turns as JSON Lines, for `mirror`, and remarks on lines that were skipped.

        Each line holds role and text and, where known, id, author, at, message, tool and outcome. A turn without an id
        has one of its line and its number, so that telling the same text again adds nothing. place: what remarks call
        the text.
        """
        if not isinstance(text, str):
            raise InvalidInput("text", text, "give a text")
        return turns.parse_turns(text, place)

    def part(self, part: int | str, *, session: str = "", scopes: Iterable[str] | None = None) -> model.StoredPart:
        """Return a part with its exact text: by its number in this memory, or by the id that its host gave it.

        session: the one it is in, needed where parts of several have that id. scopes: as in `history`. Raises NotFound,
        Conflict for a part of another project, and for an id that does not say which part is meant.
        """
        if isinstance(part, str):
            if is_blank(part):
                raise InvalidInput("part", part, "give the id of a part, or its number")
        else:
            check_count("part", part, low=1)
        wanted, name = clean_text(part) if isinstance(part, str) else part, _some_session(session)
        with self._store.read() as tx:
            return history.find_part(tx, wanted, name, self._scopes(tx, scopes))

    def parts(
        self, session: str, *, scopes: Iterable[str] | None = None, limit: int | None = None, skip: int = 0
    ) -> tuple[model.StoredPart, ...]:
        """Return the parts of a session in order, with their exact texts. limit: None for 50; skip: of the first ones.

        scopes: as in `history`. Raises NotFound for one that is not mirrored, Conflict for one of another project.
        """
        name = _session_name(session)
        most = checked_limit(limit, default=_LISTED)
        check_count("skip", skip)
        with self._store.read() as tx:
            return history.parts_of_session(tx, name, self._scopes(tx, scopes), limit=most, skip=skip)

    # ---- transcripts

    def harvest(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        kind: str | None = None,
        redact: bool | None = None,
        progress: Callable[[int, int], None] = lambda done, whole: None,
    ) -> model.HarvestReport:
        """Mirror the transcripts that other programs wrote, each from where the last harvest of it ended.

        path: a file, or a folder and all below it; None for where Claude Code and OpenCode keep theirs. kind:
        'claude-code', 'opencode', 'turns' (JSON Lines with role and text), 'chatgpt' or 'claude' (exports); recognised
        where it is left out. A session is of the project of the folder that it was in; where another project has one of
        that name, it gets a name of its own, `name@project`. redact: as in `mirror`; searches
        that go on reading keep to it. progress: is told thousandths of all sources.

        Each batch is stored with how far it was read, so that an interruption loses and repeats nothing. A line that is
        still being written is read the next time, one that is damaged is skipped, and a remark names it. What a writer
        of this memory was asked is left out. A source that cannot be read is told in the report, and the others go on.

        Raises InvalidInput for a path with nothing to read.
        """
        check_flags(**({} if redact is None else {"redact": redact}))
        self._store.require_writing()
        return self._harvested([(source, redact) for source in self.find_transcripts(path, kind=kind)], progress)

    @staticmethod
    def find_transcripts(
        path: str | os.PathLike[str] | None = None, *, kind: str | None = None
    ) -> tuple[transcripts.Source, ...]:
        """Return what `harvest` would read, each with its kind and its path. Raises InvalidInput where nothing is."""
        return transcripts.find_sources(path, kind) if path is not None else transcripts.usual_sources(kind)

    def _harvested(
        self, sources: Sequence[tuple[transcripts.Source, bool | None]], progress: Callable[[int, int], None]
    ) -> model.HarvestReport:
        """Read sources, each with whether its secrets are replaced."""
        tally = harvesting.Tally()
        scopes: dict[str, str] = {"": ""}
        unchanged: list[Harvested] = []
        for number, (source, redact) in enumerate(sources):
            with self._store.read() as tx:
                cursor = history.cursor_of(tx, source.path, source.kind)
            look = history.Harvested(source.path, source.kind, redact, self._at(None))
            reading, before = harvesting.Reading(look, is_new=not cursor), tally.news
            for batch in self._batches(source, cursor, tally):
                for heard in batch.heard:
                    if heard.project not in scopes:
                        scopes[heard.project] = self._scope_of_folder(heard.project, tally)
                self._store_batch(reading, batch, scopes, tally)
                progress(1000 * number + 1000 * batch.done // max(1, batch.whole), 1000 * len(sources))
            for remark in reading.remarks:
                tally.remark(remark)
            if tally.news == before and not redaction.find_secrets(source.path):
                unchanged.append(look)
            progress(1000 * (number + 1), 1000 * len(sources))
        if unchanged:
            with self._store.write() as tx:
                history.note_looks(tx, unchanged)
        return tally.report(len(sources))

    @staticmethod
    def _batches(source: transcripts.Source, cursor: str, tally: harvesting.Tally) -> Iterator[transcripts.Batch]:
        """Yield what is new in a source, and note when it cannot be read on."""
        try:
            for batch in transcripts.read_source(source, cursor):
                tally.news += 1
                yield batch
        except (InvalidInput, StoreFailed) as error:
            tally.fail(source.path, error)

    def _scope_of_folder(self, folder: str, tally: harvesting.Tally) -> str:
        if not self.config.project_memory:
            return ""
        signs = projects.signs_of(folder, whole_repository=self.config.project_identity == "repository")
        try:
            return self._known_project(signs).project.key
        except SecretRefused as error:
            tally.remark(f"{error}; its sessions are of no project")
            return ""

    def _store_batch(
        self,
        reading: harvesting.Reading,
        batch: transcripts.Batch,
        scopes: Mapping[str, str],
        tally: harvesting.Tally,
    ) -> None:
        look = reading.look
        screened = self.config.redact_mirror if look.redact is None else look.redact
        remarks = list(batch.remarks)
        ready = []
        for heard in batch.heard:
            session = clean_text(heard.session)
            if kind := redaction.find_secrets(session):
                remarks.append(f"{look.path}: a session whose name holds a secret ({kind[0].kind}) is left out")
            else:
                ready.append((heard, session, *harvesting.check(heard.parts, self.config.zone, screened=screened)))
        keeps_cursor, keeps_path = (not redaction.find_secrets(text) for text in (batch.cursor, look.path))
        if not (keeps_cursor and keeps_path):
            remarks.append(f"{look.path}: its path or the names in it hold a secret, so each harvest reads it anew")
        with self._store.read() as tx:
            texts = [
                text
                for heard, session, told, _ in ready
                for text in history.unwritten(tx, history.place_of(tx, session, scopes[heard.project]).name, told)
            ]
        prepared = history.prepare(texts)
        at = self._at(None)
        reports = []
        with self._writing(at) as tx:
            for heard, session, told, said in ready:
                home = scopes[heard.project]
                name, removed = history.place_of(tx, session, home)
                if removed:
                    remarks.append(f"session {name!r} was removed here and is left out; mirror takes it up again")
                    continue
                if told:
                    reading.meet(tx, name, told)
                    reports.append(history.mirror(tx, name, told, prepared, at, scope=None, home=home))
                if name != session:
                    remarks.append(f"session {session!r} is not of {heard.project}, whose own is {name!r}")
                remarks += (f"{name}: {each}" for each in said)
            if keeps_path and keeps_cursor:
                history.keep_cursor(tx, look, batch.cursor)
            elif keeps_path:
                history.note_looks(tx, [look])
        tally.own += batch.own
        for remark in remarks:
            tally.remark(remark)
        for report in reports:
            tally.add(report)

    def _catch_up(self) -> None:
        """Harvest what has been written since to the transcripts that were harvested before."""
        with self._store.read() as tx:
            known = history.harvested(tx)
        grown = [
            (source, redact)
            for path, kind, redact, at in known
            if transcripts.is_newer(source := transcripts.Source(kind, path), dt.datetime.fromisoformat(at))
        ]
        if not grown:
            return
        try:
            report = self._harvested(grown, lambda done, whole: None)
        except GraphmemError as error:
            log.warning("the transcripts were not read before this search: %s", error)
            return
        for failure in report.failed:
            log.warning("%s", failure)

    # ---- checkpoints

    def checkpoint(
        self,
        session: str,
        *,
        cause: str = "manual",
        wait: bool = True,
        force: bool = False,
        progress: Callable[[int, int], None] = lambda done, parts: None,
    ) -> model.CheckpointReport:
        """Digest what is new in a session into checkpoints: notes with what was done, decided, found out and left open.

        A writer reads it, as much at a time as `config.checkpoint_input_bytes`: the one that the memory was opened
        with, that of the settings, else rules that need no model. What it found worth remembering becomes notes, as by
        `propose`; what it claims to be a rule is proposed only. Each part is read once, whatever ends a process; a part
        that changed is read again.

        cause: 'manual', 'idle' (nothing is done for fewer turns than `config.extract_min_turns`) or 'compaction'. wait:
        False puts it into the queue, for `run_jobs`. force: also where it failed three times in a row. progress: is
        told how many parts are done, and how many there are.

        A writer that fails, or replies with what is no checkpoint, is told in the report; what it read is read again
        the next time. Raises NotFound for a session that is not mirrored, InvalidInput for an unknown cause, and what
        the store raises where nothing can be written: the reply waits then, and is kept the next time.
        """
        name = _session_name(session)
        if cause not in choices.CHECKPOINT_CAUSES:
            raise InvalidInput("cause", cause, f"give one of {', '.join(choices.CHECKPOINT_CAUSES)}")
        check_flags(wait=wait, force=force)
        if not wait:
            at = self._at(None)
            with self._writing(at) as tx:
                return model.CheckpointReport(name, checkpointing.enqueue(tx, name, cause, at, force=force))
        with jobs.owning() as owner:
            return self._digested(name, cause, owner, force=force, progress=progress)

    def _digested(
        self, name: str, cause: str, owner: str, *, force: bool, progress: Callable[[int, int], None]
    ) -> model.CheckpointReport:
        done = model.CheckpointReport(name, "nothing")
        writer = self._named_writer()
        read = 0
        while True:
            at = self._at(None)
            with self._writing(at) as tx:
                begun = checkpointing.begin(tx, name, cause, owner, at, self.config, force=force)
            if isinstance(begun, str):
                if begun == "suppressed":
                    log.debug("checkpoint of session %r: it failed too often in a row and is left alone", name)
                return done if done.state != "nothing" else replace(done, state=begun)
            if writer is None:  # rules read the parts themselves, however long
                begun = replace(begun, cut="")
            progress(read, read + len(begun.task.parts) + begun.left)
            done = self._written(begun, done, owner, writer)
            if done.state not in ("written", "empty"):
                log.debug("checkpoint of session %r: %s", name, done.error or done.state)
                return done
            read += len(begun.task.parts)
            progress(read, read + begun.left)
            if not begun.left or begun.cut:
                return done

    def _written(
        self, begun: checkpointing.Begun, done: model.CheckpointReport, owner: str, writer: model.Writer | None
    ) -> model.CheckpointReport:
        """Let a writer answer, rules where there is none, and settle what it says; return what was done with that."""
        settled = self._done_by_writer(
            owner,
            begun.job_id,
            begun.task,
            begun.reply,
            lambda tx, reply, at: checkpointing.settle(
                tx, self._vocabulary, begun, reply, done.session, at, self.config
            ),
            writer=writer or functools.partial(checkpointing.by_rules, config=self.config),
        )
        if isinstance(settled, Undone):
            left = begun.left + len(begun.task.parts)
            return replace(done, state=settled.state, error=settled.error, left=left)
        if settled.error:
            return replace(done, state="failed", error=settled.error, left=begun.left + len(begun.task.parts))
        noted = () if settled.note is None else (settled.note,)
        return replace(
            done,
            state="written" if done.notes or noted else "empty",
            notes=(*done.notes, *noted),
            proposed=(*done.proposed, *settled.proposed),
            remarks=(*done.remarks, *settled.remarks),
            left=begun.left,
        )

    def run_jobs(
        self, *, idle: bool = False, progress: Callable[[int, int], None] = lambda done, sessions: None
    ) -> tuple[model.CheckpointReport, ...]:
        """Make the checkpoints that are queued, and those that a process left when it ended; return what each came to.

        idle: sessions too in which nothing was said for `config.idle_checkpoint_after` seconds. progress: is told how
        many sessions are done, and how many there are. Where nobody answers, the others are left for the next time.
        """
        check_flags(idle=idle)
        self._store.require_writing()
        at = self._at(None)
        before = utc_text(dt.datetime.fromisoformat(at) - dt.timedelta(seconds=self.config.idle_checkpoint_after))
        with self._store.read() as tx:
            waiting = jobs.waiting(tx, checkpointing.KIND, at)
            silent = jobs.idle_sessions(tx, before, self.config.extract_min_turns) if idle else []
        causes = {**dict.fromkeys(silent, "idle"), **waiting}
        reports: list[model.CheckpointReport] = []
        for done, (session, cause) in enumerate(causes.items()):
            progress(done, len(causes))
            try:
                reports.append(self.checkpoint(session, cause=cause))
            except NotFound:  # removed since
                reports.append(model.CheckpointReport(session, "gone"))
            except GraphmemError as error:
                reports.append(model.CheckpointReport(session, "failed", error=str(error)))
            if reports[-1].state == "waiting":  # nobody answers, so nobody answers the others
                break
        progress(len(causes), len(causes))
        return tuple(reports)

    def start_checkpoints(
        self, *, report: Callable[[tuple[model.CheckpointReport, ...]], None] = lambda reports: None
    ) -> None:
        """Run `run_jobs(idle=True)` every `config.idle_check_every` seconds in a thread, until the memory is closed.

        report is called with what each round did; one that fails is logged and tried again at its time. Raises Conflict
        when it runs already or the memory is read-only.
        """
        self._store.require_writing()
        if self._closing.is_set():
            raise Conflict(f"the memory {self.path} is closed: open it again")
        if self._checkpoints is not None:
            raise Conflict("checkpoints are made already: that ends when the memory is closed")

        def work() -> tuple[model.CheckpointReport, ...]:
            reports = self.run_jobs(idle=True)
            for one in reports:
                if one.error:
                    log.warning("checkpoint of session %r: %s", one.session, one.error)
            return reports

        self._checkpoints = repeating.Repeating(work, self.config.idle_check_every, report)

    def jobs(
        self,
        *,
        session: str = "",
        states: str | Iterable[str] = (),
        scopes: Iterable[str] | None = None,
        limit: int | None = None,
    ) -> tuple[model.Job, ...]:
        """Return jobs, the latest first: what is to be written, is being written, and was. Writes nothing.

        session: '' for all. states: queued, asked, answered, done and failed, all when empty. limit: None for 50.
        """
        name = _some_session(session)
        wanted = text_list(states, "states")
        for state in wanted:
            if state not in writing.JOB_STATES:
                raise InvalidInput("states", state, f"give some of {', '.join(writing.JOB_STATES)}")
        most = checked_limit(limit, default=_LISTED)
        with self._store.read() as tx:
            within = self._scopes(tx, scopes)
            return jobs.list_jobs(tx, session=name, states=wanted, scopes=within, limit=most)

    # ---- within

    def _settle_in(self, signs: projects.Signs | None, session: str) -> None:
        """Look up the project and the session that the memory is opened for, and note what is new of them."""
        self._signs = signs
        if signs is not None:
            found = self._known_project(signs)
            self._project = found.project
            for remark in found.project.remarks:
                log.warning("%s", remark)
        self._session = session
        if session and not self.config.read_only:
            key, parent = scope_rows.SESSION_PREFIX + session, self._own_scope("project") if self._project else ""
            with self._store.read() as tx:
                is_known = scope_rows.knows_session(tx, key)
            if not is_known:
                refuse_secret_names("session", [session])
            if not is_known and self.config.project_memory:
                at = self._at(None)
                with self._store.write() as tx:
                    scope_rows.store_session(tx, key, parent, at)

    def _settle_again(self) -> None:
        """Look up project and session anew, after what is known of them was replaced."""
        self._settle_in(self._signs, self._session)

    def _known_project(self, signs: projects.Signs) -> scope_rows.Found:
        """Return the project that a folder is, which is stored when it is new or has moved."""
        with self._store.read() as tx:
            found = scope_rows.find_project(tx, signs)
        if not found.is_stored and not self.config.read_only:  # what is stored was looked at when it came
            refuse_secret_names("project", [found.project.place, *(value for _, value in found.unknown)])
            at = self._at(None)
            with self._store.write() as tx:
                found = scope_rows.find_project(tx, signs)  # another process may have been first
                scope_rows.store_project(tx, found, at)
        return found

    def _request(
        self,
        query: str,
        *,
        kinds: str | Iterable[str] | None,
        limit: int | None,
        situation: Situation | None = None,
        scopes: Sequence[str] | None = None,
        since: dt.datetime | str | None = None,
        until: dt.datetime | str | None = None,
        as_of: dt.datetime | str | None = None,
        mode: str | None = None,
        precise: bool = False,
        trust: str | None = None,
        explain: bool = False,
        session: str = "",
    ) -> Request:
        # Search and what it knows of words take 35 ms to import: only the verbs that search pay it.
        from graphmem.compose import pool, search

        require_texts(query=query)
        now = self._clock()
        first, end = self._given(since, "since"), self._given(until, "until")
        if first and end and end <= first:
            raise InvalidInput("until", until, f"not later than since ({first}): nothing lies between")
        return pool.Request(
            text=clean_text(query),
            kinds=pool.checked_kinds(kinds),
            scopes=scopes,
            since=first,
            until=end,
            as_of=self._given(as_of, "as_of"),
            now=now.astimezone(self.config.zone),
            mode=pool.checked_mode(self.config.search_mode if mode is None else mode),
            precise=precise,
            limit=checked_limit(limit, default=search.DEFAULT_LIMIT),
            explain=explain,
            trust=trusts.checked_trust(trust),
            situation=None if situation is None else checked_situation(situation).under(self.config),
            session=session,
        )

    def _given(self, time: dt.datetime | str | None, argument: str) -> str | None:
        """Return a bound of time as stored; a bare date is the beginning of that day where the memory is."""
        if time is None:
            return None
        if isinstance(time, str):
            with contextlib.suppress(ValueError):  # no bare date
                time = dt.datetime.combine(dt.date.fromisoformat(time.strip()), dt.time())
        return utc_text(read_time(time, self.config.zone, argument=argument))


def _some_session(session: object) -> str:
    """Return the name of a session as it is stored, '' for none."""
    return "" if session == "" else _session_name(session)


def _session_name(session: object) -> str:
    """Return the name of a session as it is stored; raise InvalidInput for what is none."""
    if not isinstance(session, str) or is_blank(session):
        raise InvalidInput("session", session, "give the session a name")
    return clean_text(session)
