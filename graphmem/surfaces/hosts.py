"""What a host of an agent does with a memory at each moment of a session, once for all hosts.

A host says who works where (`Seat`) and what happened; it gets back what belongs in front of its model. Each act of a
moment stands for itself: where one fails, as by a memory that is busy, the others go on, and `failed` tells of it. What
a host may show is made by the briefs of the memory, which mark stored text as data.
"""

import contextlib
import datetime as dt
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from graphmem.config import Config
from graphmem.core.events import Event
from graphmem.core.injected import is_for_a_writer, without_injected
from graphmem.core.model import Brief, Part
from graphmem.core.situations import Situation
from graphmem.errors import GraphmemError, NotFound
from graphmem.late import late
from graphmem.memory import Memory

if TYPE_CHECKING:
    import getpass

    from graphmem import projects
    from graphmem.core import redaction, reminders
else:
    getpass = late("getpass")
    projects = late("graphmem.projects")
    redaction = late("graphmem.core.redaction")
    reminders = late("graphmem.core.reminders")

# Characters of what is put in front of a model: at the start of a session and of a compacted one, of each turn, of a
# tool.
STANDING, FOUND, OF_TOOL = 4000, 1000, 1000
_PROJECT_DIGITS = 6
_LETTERS_READ = 4000  # of a prompt, to find what it is about; the rest was pasted


@dataclass(frozen=True, slots=True)
class Seat:
    """Who works where. host: the program, such as 'claude-code'. session: as the host calls it. user: the person."""

    host: str
    session: str
    user: str = ""

    def channel(self, memory: Memory) -> str:
        """Return the channel: the host and the project, which two folders of one name do not share.

        >>> with Memory.open(":memory:") as memory:
        ...     Seat("opencode", "s1").channel(memory)
        'opencode'
        """
        project = memory.project
        if project is None:
            return self.host
        return f"{self.host}.{project.label}-{project.key.rpartition(':')[2][:_PROJECT_DIGITS]}"

    def situation(self, memory: Memory) -> Situation:
        """Return the situation that holds for the whole session: where, and with whom."""
        return memory.observe(source=self.channel(memory), payload=self._payload)

    @property
    def _payload(self) -> dict[str, str]:
        return {"user_id": self.user}

    def event(self, memory: Memory, text: str) -> Event:
        """Return what a turn begins with: the words of the user, here and now."""
        return Event(source=self.channel(memory), payload=self._payload, text=text, session=self.session)


@dataclass(frozen=True, slots=True)
class Moment:
    """What a moment came to. text: what belongs in front of the model, '' for nothing. failed: what did not work."""

    text: str = ""
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompted:
    """What a prompt came to.

    standing: what holds here whatever is said, the same text as long as nothing changes. found: what the words of the
    prompt call to mind besides. scene: the key of the scene that was entered, '' for none.
    """

    standing: str = ""
    found: str = ""
    scene: str = ""
    failed: tuple[str, ...] = ()


@dataclass(slots=True)
class _Trying:
    """Runs acts one after the other, each whatever became of the one before."""

    failed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        try:
            yield
        except GraphmemError as error:
            self.failed.append(f"{what}: {error}")


def user_of(folder: str) -> str:
    """Return who works in a folder: as git knows the person, else the name of the account; '' where nobody knows."""
    signs = projects.signs_of(folder, whole_repository=True) if folder else None
    return projects.git_user("" if signs is None else signs.common) or _account()


def session_started(memory: Memory, seat: Seat) -> Moment:
    """Return what a session begins with: constraints, rules of the place, the ledger, the last checkpoint."""
    return _told(functools.partial(_standing, memory, seat), "the brief")


def prompted(memory: Memory, seat: Seat, text: str) -> Prompted:
    """Run the turn that a user's words begin: enter its scene, and return what belongs beside them.

    What this memory put into the words itself, and what a writer of it is asked, is no turn of a user.
    """
    trying = _Trying()
    standing, found, scene = Brief(), Brief(), ""
    said = without_injected(text)
    if is_for_a_writer(said):
        return Prompted()
    begins = said[:_LETTERS_READ]
    with trying("the turn"), memory.turn(seat.event(memory, begins)) as turn:
        scene = turn.visit.key
        with trying("the brief"):
            standing = _standing(memory, seat)
            found = turn.recall_message(begins, budget=FOUND, told=standing)
    return Prompted(standing.text, found.text, scene, tuple(trying.failed))


def wish_of(text: str, config: Config) -> str:
    """Return the sentence of a user's words that looks like a standing setting, without secrets, '' for none.

    `stopped` wants it back. It is told apart from `prompted` since nobody waits for it: to load what finds it takes as
    long as half an answer.
    """
    said = without_injected(text)
    if not config.remind_unrecorded or is_for_a_writer(said):
        return ""
    return redaction.redact(reminders.standing_setting(said))


def tool_called(memory: Memory, seat: Seat, tool: str, text: str) -> Moment:
    """Return the rules for a tool that is about to run, and how it failed again and again. text: what it will do.

    It is told and no more: a rule forbids nothing by itself.
    """
    return _told(functools.partial(_of_tool, memory, seat, tool, text), "the rules")


def tool_failed(memory: Memory, seat: Seat, tool: str, text: str, error: str) -> Moment:
    """Take note of what a tool failed with; return a warning where it fails again and again. text: the call."""
    trying = _Trying()
    warning = ""
    if memory.config.capture_failures and not memory.config.read_only:
        with trying("the failure"):
            if memory.record_failure(tool, error).warns:
                warning = _of_tool(memory, seat, tool, text).text
    return Moment(warning, tuple(trying.failed))


def compacting(memory: Memory, seat: Seat) -> Moment:
    """Queue a checkpoint of what would be lost, and return what outlasts it: the rules and the last checkpoint."""
    trying = _Trying()
    _enqueue(memory, seat, trying, "compaction")
    begun = session_started(memory, seat)
    return Moment(begun.text, (*trying.failed, *begun.failed))


def stopped(memory: Memory, seat: Seat, *, wish: str, since: dt.datetime | str | None = None) -> Moment:
    """Return a reminder of a wish that nobody wrote down, for the end of an agent's turn.

    wish: that of `wish_of`, since: when that was. Each wish is reminded of once in a session, and not at all where
    something was saved since, by the agent or by a writer: extraction comes first.
    """
    trying = _Trying()
    reminder = ""
    if wish and memory.config.inject and not memory.config.read_only:
        with trying("the reminder"):
            reminder = memory.remind(seat.session, wish, since=since)
    return Moment(reminder, tuple(trying.failed))


def idle(memory: Memory) -> Moment:
    """Make the checkpoints that wait, and those of sessions in which nothing is said any more. It may take long."""
    trying = _Trying()
    if not memory.config.read_only:
        with trying("the checkpoints"):
            trying.failed += (
                f"session {one.session!r}: {one.error}" for one in memory.run_jobs(idle=True) if one.error
            )
    return Moment(failed=tuple(trying.failed))


def digested(memory: Memory) -> Moment:
    """Make the checkpoints that wait of sessions of this project, by the writer that the memory was opened with."""
    trying = _Trying()
    waiting: dict[str, str] = {}
    if not memory.config.read_only:
        with trying("the checkpoints"):
            jobs = memory.jobs(states=("queued", "answered"))
            waiting = {job.session: job.cause for job in reversed(jobs) if job.kind == "checkpoint" and job.session}
    for session, cause in waiting.items():
        with trying(f"session {session!r}"):
            report = memory.checkpoint(session, cause=cause)
            if report.error:
                trying.failed.append(f"session {session!r}: {report.error}")
            if report.state == "waiting":  # nobody answers, so nobody answers the others
                break
    return Moment(failed=tuple(trying.failed))


def session_ended(memory: Memory, seat: Seat) -> Moment:
    """Queue a checkpoint of what was said in a session, which is made where enough was."""
    trying = _Trying()
    _enqueue(memory, seat, trying, "idle")
    return Moment(failed=tuple(trying.failed))


def told(memory: Memory, seat: Seat, parts: Iterable[Part]) -> Moment:
    """Mirror what was said, by whomever."""
    trying = _Trying()
    said = [replace(part, author=part.author or seat.user) if part.role == "user" else part for part in parts]
    if said and not memory.config.read_only:
        with trying("the mirror"):
            memory.mirror(seat.session, said)
    return Moment(failed=tuple(trying.failed))


def removed(memory: Memory, seat: Seat, *, messages: Iterable[str] = (), parts: Iterable[str] = ()) -> Moment:
    """Remove what the host removed from a session."""
    trying = _Trying()
    messages, parts = list(messages), list(parts)
    if (messages or parts) and not memory.config.read_only:
        with trying("the removal"), contextlib.suppress(NotFound):  # it was never mirrored
            memory.delete_parts(seat.session, parts, messages=messages)
    return Moment(failed=tuple(trying.failed))


def session_deleted(memory: Memory, seat: Seat) -> Moment:
    """Remove a session that the host removed; what was distilled of it stays."""
    trying = _Trying()
    if not memory.config.read_only:
        with trying("the removal"), contextlib.suppress(NotFound):
            memory.delete_session(seat.session)
    return Moment(failed=tuple(trying.failed))


def reminded(memory: Memory, seat: Seat) -> Moment:
    """Return a reminder of what the user wished in the turn before and nobody wrote down, see `stopped`."""
    trying = _Trying()
    reminder = ""
    if memory.config.inject and not memory.config.read_only:
        with trying("the reminder"):
            reminder = memory.remind(seat.session)
    return Moment(reminder, tuple(trying.failed))


def asked(memory: Memory, seat: Seat, query: str) -> Moment:
    """Return what a search of the user finds."""
    trying = _Trying()
    text = ""
    with trying("the search"), memory.turn(seat.event(memory, "")) as turn:
        text = turn.recall_message(query, budget=STANDING, told=Brief()).text
    return Moment(text, tuple(trying.failed))


def _standing(memory: Memory, seat: Seat) -> Brief:
    here = seat.situation(memory)
    return memory.brief(here, declared=here.declared_keys, budget=STANDING, checkpoint=seat.session)


def _of_tool(memory: Memory, seat: Seat, tool: str, text: str) -> Brief:
    here = seat.situation(memory)
    return memory.tool_brief(here, tool, text=text, declared=here.declared_keys, budget=OF_TOOL)


def _told(brief: Callable[[], Brief], what: str) -> Moment:
    trying = _Trying()
    text = ""
    with trying(what):
        text = brief().text
    return Moment(text, tuple(trying.failed))


def _enqueue(memory: Memory, seat: Seat, trying: _Trying, cause: str) -> None:
    if memory.config.read_only:
        return
    with trying("the checkpoint"), contextlib.suppress(NotFound):  # nothing was said
        memory.checkpoint(seat.session, cause=cause, wait=False)


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an id without a name, and no variable that tells one
        return ""
