"""The verbs of Memory about notes: what is remembered on purpose, what binds, and what a person decides of it."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from graphmem.arguments import checked_ids, checked_limit, checked_situation, new_keys
from graphmem.config import check_count, check_flags
from graphmem.core import model
from graphmem.core.keys import clean_text, key_list, require_texts, text_list, tool_key
from graphmem.core.situations import Situation
from graphmem.core.times import days_before
from graphmem.errors import InvalidInput
from graphmem.graph import matching
from graphmem.graph import scenes as scene_graph
from graphmem.late import late
from graphmem.maintenance import Maintenance
from graphmem.store.transaction import Transaction

if TYPE_CHECKING:
    from graphmem.compose import grounds, proposing, reminding
    from graphmem.core import candidates, choices, failures, quotes, redaction, trust
    from graphmem.core import reminders as settings
    from graphmem.records import drafts, history, incidents, inspection, notes, reminders
    from graphmem.store import text_index
    from graphmem.store.text_index import Vocabulary
    from graphmem.upkeep import edit_notes, purge
else:
    candidates = late("graphmem.core.candidates")
    choices = late("graphmem.core.choices")
    drafts = late("graphmem.records.drafts")
    edit_notes = late("graphmem.upkeep.edit_notes")
    failures = late("graphmem.core.failures")
    grounds = late("graphmem.compose.grounds")
    history = late("graphmem.records.history")
    incidents = late("graphmem.records.incidents")
    inspection = late("graphmem.records.inspection")
    notes = late("graphmem.records.notes")
    proposing = late("graphmem.compose.proposing")
    purge = late("graphmem.upkeep.purge")
    quotes = late("graphmem.core.quotes")
    redaction = late("graphmem.core.redaction")
    reminders = late("graphmem.records.reminders")
    reminding = late("graphmem.compose.reminding")
    settings = late("graphmem.core.reminders")
    text_index = late("graphmem.store.text_index")
    trust = late("graphmem.core.trust")

_NOTES_LISTED = 50
_DAYS_AT_HAND = 1 / 24  # how far back a turn may lie that is still at hand


class Curation(Maintenance):
    """The curated half of a memory."""

    @functools.cached_property
    def _vocabulary(self) -> Vocabulary:
        return text_index.Vocabulary()

    def remember(
        self,
        title: str,
        *,
        body: str = "",
        kind: str = "fact",
        slot: str = "",
        labels: str | Iterable[str] = (),
        load_when: str | Iterable[str] = (),
        summary: str = "",
        highlight: str = "",
        scope: str | None = None,
        scenes: str | Iterable[str] = (),
        pinned: bool = False,
        status: str = "live",
        reason: str = "",
        quote: str = "",
        said: str = "",
        source: str = "agent",
        session: str = "",
        message: str = "",
        place: str = "",
        at: dt.datetime | str | None = None,
    ) -> model.RememberReport:
        """Write a note: in one line what to remember, and in the body as much as is needed.

        slot: what it is about; of one scope and slot one note is live, and a new one supersedes it. labels: other names
        it is found by. load_when: what calls it to mind, at most 8: words, or features such as 'tool:shell'. scenes: it
        comes back with these. kind: fact, lesson, rule, preference, decision, pitfall, checkpoint, skill, agent or
        command. status: live, proposed, archived, superseded or forgotten; recall finds live ones, and superseded ones
        where it asks for the past. pinned: goes first where little is shown. summary: one sentence, at most 100
        characters. reason: why it is kept, a usual one of its kind when left out.

        scope: "user", "project", "session" or the key of one; without it what is learnt at work (lesson, pitfall,
        decision, checkpoint, and procedures) is of the current project where there is one, all else the user's. source:
        who says so: user, agent, tool or import, with a colon and more where that helps. session, message, place: where
        it was said, the current session and the folder of the project when left out; its origin never changes. at:
        since when it holds, now when left out; one for a time before that of the live note of its slot is superseded at
        once, so a late import changes nothing.

        A rule, a procedure (skill, agent, command), a pin and a note of a slot in `config.constraint_keys` bind
        everybody, so they are the user's: from any other source a note is proposed, and pinned by nobody, unless
        `quote` is what the user said, in `said`, the user's words of this turn, or in the mirrored `session`, where
        none is known in that in which the user spoke last, within the hour: a sentence, or a part of several words that
        the rest of it neither negates nor limits, and that has a telling word of the note. The same holds for what
        would take the place of a rule or a pin.

        The same note again, whatever its spaces and letter case, is seen once more and takes the new labels. Raises
        InvalidInput naming the argument that cannot be used, SecretRefused for a secret in any of them.

        >>> from graphmem import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     first = memory.remember("Deploy with pnpm", kind="lesson", slot="deploy", labels="部署")
        ...     second = memory.remember("Deploy with npm", kind="lesson", slot="deploy")
        ...     third = memory.remember("Never force push", kind="rule")
        >>> first.note.status, second.superseded == (first.note.id,), third.note.status
        ('live', True, 'proposed')
        """
        redaction.refuse_secrets(
            title=title, body=body, slot=slot, labels=labels, load_when=load_when, summary=summary, highlight=highlight,
            scope=scope, reason=reason, quote=quote, source=source, session=session, message=message, place=place,
        )  # fmt: skip
        keys = new_keys(scenes, "scenes")
        draft = drafts.check_note(
            title, body=body, kind=kind, slot=slot, labels=labels, load_when=load_when, summary=summary,
            highlight=highlight, scope=self._note_scope(kind, scope), pinned=pinned, status=status, source=source,
            reason=reason, config=self.config,
        )  # fmt: skip
        moment = self._at(at)
        quoted = quotes.check_quote(quote)
        if not isinstance(said, str):
            raise InvalidInput("said", said, "give the user's words of this turn as text")
        origin = self._done("remember", source, moment, reason=draft.reason, session=session, message=message,
                            place=place, quote=quoted)  # fmt: skip
        with self._writing(moment) as tx:
            backed = (
                bool(quoted)
                and quotes.is_about(quoted, "\n".join((draft.title, draft.body, draft.slot, *draft.labels)))
                and quotes.is_said(
                    quoted, (said, *history.said_by_user(tx, self._spoken_in(tx, origin.session, moment)))
                )
            )
            if quoted and not backed:
                remark = (
                    "the quote backs nothing: the user did not say so, said more, or spoke of something else; "
                    "quote all of the sentence that says it"
                )
                draft = replace(draft, remarks=(*draft.remarks, remark))
                origin = replace(origin, quote="")
            draft = drafts.ruled(replace(draft, openly=not keys), backed=backed)
            report = notes.remember(tx, draft, origin, at_is_given=at is not None)
            # Where else it binds is a person's to say as well.
            if keys and (report.created or draft.decided or not notes.binds(report.note, self.config)):
                scene_ids = scene_graph.ensure_scenes(tx, keys, moment, self.config)
                scene_graph.attach_note(tx, scene_ids, report.note.id, moment)
            resolved = incidents.resolve_by(tx, report.note, moment)
            return replace(report, resolved=resolved) if resolved else report

    def propose(
        self,
        reply: object,
        *,
        scope: str | None = None,
        source: str = "agent:extractor",
        session: str = "",
        at: dt.datetime | str | None = None,
    ) -> tuple[model.Proposed, ...]:
        """Remember what a model found worth keeping, and return what became of each, in its order.

        reply: what it said, a text or what a host gives, with a JSON array of objects: title and body, category,
        summary, highlight, loadWhen, proposeRule; see `core.candidates`. What holds no such array proposes nothing.
        What tells a secret is refused, and what repeats a note by 0.9 or more is not written but counted; a rule is
        proposed only. scope: as in `remember`.
        """
        found = candidates.parse_candidates(reply)
        origin = self._act("remember", source, self._at(at), reason="", session=session)
        if not found:
            return ()

        def scope_of(kind: str) -> str:
            return self._note_scope(kind, scope)

        with self._writing(origin.at) as tx:
            return proposing.propose(tx, self._vocabulary, found, scope_of, origin, self.config)

    def forget(
        self, note_id: int, *, hard: bool = False, reason: str = "", source: str = "user", place: str = ""
    ) -> model.ForgetReport:
        """Archive a note: it is found no more, and `restore_note` brings it back.

        hard: remove it for good, with all that tells of it; the file is then written anew, as by a purge for good.
        What binds is put away by a person. Raises NotFound for an unknown note, Conflict for one that is archived
        already or rejected, and for one that binds where the source is no person.
        """
        check_count("note_id", note_id, low=1)
        check_flags(hard=hard)
        act = self._act("forget", source, self._at(None), reason=reason, place=place)
        if not hard:
            with self._writing(act.at) as tx:
                return model.ForgetReport(note_id, notes.put_away(tx, note_id, act, self.config).title, hard=False)
        title = ""

        def plan(tx: Transaction) -> purge.Plan:
            nonlocal title
            known = notes.require_note(tx, note_id)
            notes.require_person(known, act, self.config)
            title = known.title
            return purge.plan_note(tx, note_id)

        report = self._purge(plan, "forget", hard=True)
        return model.ForgetReport(note_id, title, hard=True, remarks=report.remarks)

    def restore_note(self, note_id: int, *, reason: str = "", source: str = "user", place: str = "") -> model.Note:
        """Bring an archived note back; one that binds is proposed again unless a person brings it back.

        Raises NotFound, and Conflict where another note has its slot by now or says the same.
        """
        check_count("note_id", note_id, low=1)
        act = self._act("restore", source, self._at(None), reason=reason, place=place)
        with self._writing(act.at) as tx:
            return notes.restore(tx, note_id, act, self.config)

    def approve(self, note_id: int, *, reason: str = "", source: str = "user", place: str = "") -> model.RememberReport:
        """Let a proposal come into force, as a person's decision; what has its slot is superseded.

        It takes back that a note was rejected, too. Raises NotFound, Conflict for what is neither and where another
        note says the same, InvalidInput for a source that is no person.
        """
        check_count("note_id", note_id, low=1)
        act = self._decision("approve", source, reason=reason, place=place)
        with self._writing(act.at) as tx:
            return notes.approve(tx, note_id, act)

    def reject(self, note_id: int, *, reason: str = "", source: str = "user", place: str = "") -> model.Note:
        """Put a proposal away, as a person's decision: it is found nowhere, and the same is not proposed again.

        `approve` takes that back. Raises NotFound, Conflict for what is not proposed, InvalidInput for a source that is
        no person.
        """
        check_count("note_id", note_id, low=1)
        act = self._decision("reject", source, reason=reason, place=place)
        with self._writing(act.at) as tx:
            return notes.reject(tx, note_id, act)

    def edit_note(
        self, note_id: int, /, *, source: str = "user", session: str = "", place: str = "", **changes: Any
    ) -> model.NoteEditReport:
        """Change what is given of a note and keep all else, its origin too. `undo` reverses it.

        changes: title, body, kind, slot, labels, load_when, summary, highlight, pinned, reason. Only a person changes
        what a note says that binds, or did. Who rewrites a note becomes its source, a person or who is less trusted
        than it. Raises NotFound, InvalidInput, and Conflict where another note has the slot or says the same.
        """
        check_count("note_id", note_id, low=1)
        for name in changes:
            if name not in edit_notes.EDITABLE:
                raise InvalidInput("changes", name, f"give some of {', '.join(edit_notes.EDITABLE)}")
        redaction.refuse_secrets(**changes)
        reason = changes.get("reason", "")
        act = self._act("edit", source, self._at(None), reason=reason, session=session, place=place)
        with self._writing(act.at) as tx:
            return edit_notes.edit(tx, note_id, changes, act, self.config)

    def notes(
        self,
        *,
        kinds: str | Iterable[str] = (),
        statuses: str | Iterable[str] = "live",
        scopes: Iterable[str] | None = None,
        exact: bool = False,
        note_ids: Iterable[int] | None = None,
        limit: int | None = None,
        skip: int = 0,
    ) -> tuple[model.Note, ...]:
        """Return notes, those told last first. kinds, statuses: all when empty. limit: None for 50, 0 for none.

        exact: only what is of these scopes, without the user's own beside it. note_ids: of these alone, None for any;
        ids of no note are passed over. skip: so many of the first.
        """
        check_flags(exact=exact)
        wanted_kinds = _some_of(choices.NOTE_KINDS, text_list(kinds, "kinds"), "kinds")
        wanted = _some_of(choices.NOTE_STATUSES, text_list(statuses, "statuses"), "statuses")
        most = checked_limit(limit, default=_NOTES_LISTED)
        check_count("skip", skip)
        ids = None if note_ids is None else checked_ids("note_ids", note_ids)
        with self._store.read() as tx:
            within = self._reach(scopes) if exact else self._scopes(tx, scopes)
            return notes.list_notes(
                tx, kinds=wanted_kinds, statuses=wanted, scopes=within, exact=exact, ids=ids, limit=most, skip=skip
            )

    def ledger(self, *, scopes: Iterable[str] | None = None, limit: int | None = None) -> model.Ledger:
        """Return what holds for everybody: facts and lessons in no scene, told last first, and failures that repeat.

        limit: of facts and of lessons, each: None for 50, 0 for none.
        """
        most = checked_limit(limit, default=_NOTES_LISTED)
        with self._store.read() as tx:
            within = self._scopes(tx, scopes)
            return model.Ledger(
                grounds.of_ledger(tx, drafts.FACTS, scopes=within, limit=most),
                grounds.of_ledger(tx, drafts.LESSONS, scopes=within, limit=most),
                tuple(incidents.warnings(tx, within, self._at(None), self.config)),
            )

    @overload
    def inspect(self, note_id: int, *, scopes: Iterable[str] | None = None) -> model.NoteDetail: ...

    @overload
    def inspect(self, note_id: None = None, *, scopes: Iterable[str] | None = None) -> model.Inspection: ...

    def inspect(
        self, note_id: int | None = None, *, scopes: Iterable[str] | None = None
    ) -> model.NoteDetail | model.Inspection:
        """Return everything about a note, whatever its status; without an id, the state of all notes of some scopes.

        That is: counts, rules, proposals, triggers, what is said twice, what is stale or overridden. Raises NotFound
        for an unknown note.
        """
        if note_id is not None:
            check_count("note_id", note_id, low=1)
        text_list(() if scopes is None else scopes, "scopes")
        with self._store.read() as tx:
            if note_id is not None:
                return inspection.detail(tx, note_id)
            return inspection.inspect(tx, self._scopes(tx, scopes), self._at(None))

    def rules_for(
        self,
        situation: Situation,
        *,
        tool: str = "",
        text: str = "",
        declared: str | Iterable[str] = (),
        scopes: Iterable[str] | None = None,
    ) -> tuple[model.RecalledNote, ...]:
        """Return the rules for what is about to be done, to be shown before it is: those that fit, and no other.

        A rule fits by a scene that holds it and answers the situation, or has one of its keys or of those declared; by
        a trigger, in the features, the topics or `text`, such as the command that will run; or by its tool, when a
        label or its slot names it or stands in the text. Rules that fit everywhere are in every brief.
        """
        here = checked_situation(situation).under(self.config)
        require_texts(tool=tool, text=text)
        if tool and not tool_key(tool):
            raise InvalidInput("tool", tool, "give the name of the tool")
        if tool:
            here = here.with_tool(tool)
        keys = tuple(dict.fromkeys((*key_list(declared, "declared"), *here.declared_keys)))
        with self._store.read() as tx:
            within = self._scopes(tx, scopes)
            selection = scene_graph.chosen(tx, keys, matching.answering(tx, here) if here else [])
            found = grounds.governing(tx, here, selection, text, tool=tool, scopes=within)
        self._count_uses(one.id for one in found)
        return found

    # ---- failures

    def record_failure(
        self, tool: str, text: str, *, scope: str | None = None, at: dt.datetime | str | None = None
    ) -> model.IncidentReport:
        """Count a failure of a tool with those that look alike, in one scope; see `core.failures.signature`.

        text: what the tool said, '' for nothing. From `config.incident_threshold` on it is warned of, until a lesson or
        pitfall of that scope that names the tool resolves it; a failure after that opens it anew, with count 1. The
        `config.max_incidents` kinds seen last are kept, each for `config.incident_max_age_days`. Nothing is written
        where `config.capture_failures` is off; the report says so.

        >>> from graphmem import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     first = memory.record_failure("bash", "rm: '/tmp/a': No such file or directory")
        ...     again = memory.record_failure("bash", "rm: '/tmp/b c': No such file or directory")
        >>> first.warns, again.warns, again.incident.count
        (False, True, 2)
        """
        home = self._note_scope("lesson", scope)
        failure = failures.check_failure(tool, text)
        moment, now = self._at(at), self._at(None)
        if not self.config.capture_failures:
            return model.IncidentReport(remarks=("capture_failures is off: nothing was recorded",))
        with self._writing(moment) as tx:
            return incidents.record(tx, failure, home, moment, now=now, config=self.config)

    def incidents(
        self, *, scopes: Iterable[str] | None = None, status: str | None = "open"
    ) -> tuple[model.Incident, ...]:
        """Return failures that look alike, those seen most often and latest first. Writes nothing.

        scopes: those of these scopes and of none; None for all. status: 'open', 'resolved', None for both.
        """
        if status not in (None, *choices.INCIDENT_STATES):
            raise InvalidInput(
                "status", status, f"give {' or '.join(map(repr, choices.INCIDENT_STATES))}, None for both"
            )
        now = self._at(None)
        with self._store.read() as tx:
            return tuple(incidents.incidents(tx, self._scopes(tx, scopes), now, config=self.config, state=status))

    def forget_incident(self, incident_id: int) -> model.Incident:
        """Remove an incident for good, and return what it was: the next such failure is counted from 1.

        Raises NotFound for an unknown id.
        """
        check_count("incident_id", incident_id, low=1)
        with self._writing(self._at(None)) as tx:
            return incidents.forget(tx, incident_id)

    def remind(
        self,
        session: str = "",
        said: str | None = None,
        *,
        saved: bool = False,
        since: dt.datetime | str | None = None,
        at: dt.datetime | str | None = None,
    ) -> str:
        """Return what to tell an agent at the end of a turn in which a standing setting was told and nothing saved.

        said: the user's own words in the turn. None for those that are mirrored, of the last hour; without a session,
        of the one in which the user spoke last. saved: something was remembered in the turn. since: when it began;
        None for when mirrored words were said, and for words that were given where `saved` tells all. A note or a fact
        that was written since, in the session or in none, for the user or what is current, counts as saved. The
        reminder quotes the sentence, in `config.language`, once in a session for each sentence; '' when there is
        nothing to be reminded of, something was saved, or `config.remind_unrecorded` is off. session: '' for none.

        >>> from graphmem import Memory
        >>> with Memory.open(":memory:") as memory:
        ...     reminder = memory.remind("s1", "Thanks. From now on, answer in German.")
        ...     again = memory.remind("s1", "From now on, answer in German.")
        >>> "- From now on, answer in German." in reminder, again
        (True, '')
        """
        require_texts(session=session, **({} if said is None else {"said": said}))
        check_flags(saved=saved)
        moment = self._at(at)
        if saved or not self.config.remind_unrecorded:
            return ""
        name, begun = clean_text(session), None if since is None else self._at(since, "since")
        with self._store.read() as tx:
            scopes = self._scopes(tx, None)
            if said is None:
                name = self._spoken_in(tx, name, moment)
                sentence, told_at = _unreminded(tx, name, moment)
                begun = begun or told_at
            else:
                sentence = settings.standing_setting(clean_text(said))
            if not sentence or (begun and reminders.is_anything_saved(tx, name, begun, scopes)):
                return ""
        with self._writing(moment) as tx:
            due = reminders.claim(tx, name, sentence, moment)
        return reminding.reminder_of(sentence, self.config.language) if due else ""

    # ---- within

    def _spoken_in(self, tx: Transaction, session: str, at: str) -> str:
        """Return a session, for '' the one in which the user spoke last, '' where that was not in the last hour."""
        return session or history.speaking(tx, self._scopes(tx, None), days_before(at, _DAYS_AT_HAND))

    def _note_scope(self, kind: str, scope: str | None) -> str:
        """Return the scope of a note: what is learnt at work is of the project, what is so of the user."""
        if scope is not None:
            return self._scope(scope)
        return self._own_scope("project") if self._project is not None and kind in drafts.OF_WORK else ""

    def _act(
        self, act: str, source: str, at: str, *, reason: str, session: str = "", place: str = ""
    ) -> model.Provenance:
        """Return what is about to be done; raise SecretRefused for a secret in what is told of it."""
        redaction.refuse_secrets(source=source, reason=reason, session=session, place=place)
        return self._done(act, source, at, reason=reason, session=session, place=place)

    def _done(
        self,
        act: str,
        source: str,
        at: str,
        *,
        reason: str,
        session: str,
        place: str,
        message: str = "",
        quote: str = "",
    ) -> model.Provenance:
        """Return an act as it is kept, of texts without a secret."""
        given = {"source": source, "reason": reason, "session": session, "message": message, "place": place}
        require_texts(**given)
        texts = {name: clean_text(value).strip() for name, value in given.items()}
        place = texts["place"] or (self._project.place if self._project else "")
        conversation = texts["session"] or self._session
        return model.Provenance(
            0, act, texts["source"], place, conversation, texts["message"], quote, texts["reason"], at
        )

    def _decision(self, act: str, source: str, *, reason: str, place: str) -> model.Provenance:
        decided = self._act(act, source, self._at(None), reason=reason, place=place)
        if not trust.is_person(decided.actor):
            raise InvalidInput("source", source, "a person decides on proposals: give 'user', or 'user:' and a name")
        return decided


def _unreminded(tx: Transaction, session: str, at: str) -> tuple[str, str]:
    """Return the standing setting that was told last in a session and not reminded of, and when; '' for none."""
    for text, told_at in history.said_lately(tx, session, days_before(at, _DAYS_AT_HAND)) if session else ():
        sentence = settings.standing_setting(text)
        if sentence and not reminders.is_claimed(tx, session, sentence):
            return sentence, told_at
    return "", ""


def _some_of(known: tuple[str, ...], given: Iterable[str], argument: str) -> tuple[str, ...]:
    """Return the words that were given, all known ones where none was; raise InvalidInput for an unknown one."""
    for word in given:
        if word not in known:
            raise InvalidInput(argument, word, f"give some of {', '.join(known)}")
    return tuple(dict.fromkeys(given)) or known
