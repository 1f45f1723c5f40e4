"""What Claude Code's hooks ask of a memory: an event in, as JSON, and the answer out, in the form of its reference.

Facts: https://code.claude.com/docs/en/hooks, and what version 2.1 sends. An answer decides nothing: it adds context,
and at the end of a turn it may once ask to go on, for a reminder. What stands in the conversation already is not added
again before it is compacted or cleared.

What was said is not mirrored event by event but harvested from the transcript that Claude Code keeps anyway, in a
process of its own behind the answer (`digest`). No event tells the ids of the transcript, so doing both would keep
everything twice; the transcript holds the words of user, agent and tools in their order, also those of which no hook
heard; and nobody waits while it is read on from where the last look ended. It is written a little late: the last words
of a turn may come with the next one, and the last of all at the end of the session.
"""

import contextlib
import datetime as dt
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphmem.errors import GraphmemError
from graphmem.late import late
from graphmem.surfaces import places
from graphmem.surfaces.opening import Session

if TYPE_CHECKING:
    import hashlib
    import json

    from graphmem.memory import Memory
    from graphmem.surfaces import hosts
else:
    hashlib = late("hashlib")
    hosts = late("graphmem.surfaces.hosts")
    json = late("json")

HOST = "claude-code"
# Behind these events somebody goes on, for a cause: with the transcript, with the words of the user.
DIGESTED = {"Stop": "turn", "PreCompact": "compaction", "SessionEnd": "end", "UserPromptSubmit": "wish"}
# Seconds for which a busy memory is waited for, and the host waits as long.
PATIENCE = 0.05
_LETTERS_OF_A_CALL = 4000
_KEPT_DAYS = 30
_LOOKS_FOR, _BETWEEN_LOOKS = 2.0, 0.02  # seconds
_COMMANDS = ("command", "file_path", "path", "pattern", "query", "url", "prompt")

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """What an event came to. answer: for standard output, None for nothing. failed: what did not work, for a log.

    looks: whether the words of the user are to be looked through for a wish, see `digest`.
    """

    answer: Answer | None = None
    failed: tuple[str, ...] = ()
    looks: bool = False


@dataclass(frozen=True, slots=True)
class _Event:
    """An event: what Claude Code told, of which nothing is relied upon. started: the folder that it was started in."""

    given: Mapping[str, Any]
    started: str = ""

    def text(self, name: str) -> str:
        """Return a text that was told, '' where it was not."""
        value = self.given.get(name)
        return value if isinstance(value, str) else ""

    @property
    def folder(self) -> str:
        """The folder of the project: where Claude Code was started, else where it is now; '' where neither is there."""
        folders = (self.started, self.text("cwd"))
        return next((each for each in folders if each and "\0" not in each and os.path.isdir(each)), "")

    @property
    def call(self) -> str:
        """What a tool is about to do: the texts it was given, those first that say what it does."""
        told = self.given.get("tool_input")
        if not isinstance(told, dict):
            return told if isinstance(told, str) else ""
        first = [told[name] for name in _COMMANDS if isinstance(told.get(name), str)]
        rest = [value for name, value in told.items() if name not in _COMMANDS and isinstance(value, str)]
        return "\n".join([*first, *rest])[:_LETTERS_OF_A_CALL]


def answered(
    name: str, given: object, *, database: str | None = None, config_file: str | None = None, started: str = ""
) -> Answered:
    """Return the answer to an event of Claude Code. given: what it wrote, whatever that is. started: in which folder.

    Raises what opening the memory raises.
    """
    event = _Event(given if isinstance(given, dict) else {}, started)
    if name not in EVENTS or not event.text("session_id").strip():
        return Answered()
    shown = Shown(event)
    if name == "SessionEnd":
        shown.forget()
    if name not in _ANSWERS:
        return Answered()
    if name == "Stop" and (event.given.get("stop_hook_active") is True or not shown.awaited_wish()):
        return Answered()
    session = _session(event, database, config_file, PATIENCE)
    with session.open(create=True) as memory:
        return _ANSWERS[name](memory, _seat(event), event, shown)


def digest(
    cause: str, given: object, *, database: str | None = None, config_file: str | None = None, started: str = ""
) -> Answered:
    """Harvest the transcript of a session, and make the checkpoints that are due. It may take long: nobody waits.

    cause: why, one of the values of DIGESTED; behind a prompt what the user wished in it is kept, and that is all.
    started: in which folder.
    """
    event = _Event(given if isinstance(given, dict) else {}, started)
    if cause == "wish":
        wish = hosts.wish_of(event.text("prompt"), _session(event, database, config_file, None).config())
        Shown(event).looked(wish, event.text("since"))
        return Answered()
    transcript = event.text("transcript_path")
    failed: list[str] = []
    with _session(event, database, config_file, None).open(create=True) as memory:
        if memory.config.read_only:
            return Answered()
        seat = _seat(event)
        if transcript and os.path.isfile(transcript):
            with _trying(failed, "the transcript"):
                failed += memory.harvest(transcript, kind="claude-code").failed
        if cause == "compaction":
            failed += hosts.compacting(memory, seat).failed
        if cause == "end":
            failed += hosts.session_ended(memory, seat).failed
        if cause != "turn":
            failed += hosts.idle(memory).failed
    return Answered(failed=tuple(failed))


@contextlib.contextmanager
def _trying(failed: list[str], what: str) -> Any:
    try:
        yield
    except GraphmemError as error:
        failed.append(f"{what}: {error}")


def _session(event: _Event, database: str | None, config_file: str | None, patience: float | None) -> Session:
    home = os.path.realpath(os.path.expanduser("~"))
    folder = "" if os.path.realpath(event.folder or home) == home else event.folder  # a home is no project
    return Session(database, config_file, os.environ.get("GRAPHMEM_PROJECT", folder), patience=patience)


def _seat(event: _Event) -> "hosts.Seat":
    return hosts.Seat(HOST, event.text("session_id"), hosts.user_of(event.folder))


# ---- what each event is answered


def _session_start(memory: "Memory", seat: "hosts.Seat", event: _Event, shown: "Shown") -> Answered:
    if event.text("source") != "resume":  # what was shown is not in the conversation (any more)
        wish, since = shown.wish, shown.since
        shown.forget()
        if event.text("source") == "compact" and wish and since:
            shown.keep_wish(wish, since)
    moment = hosts.session_started(memory, seat)
    return Answered(_context("SessionStart", shown.fresh(moment.text)), moment.failed)


def _prompt(memory: "Memory", seat: "hosts.Seat", event: _Event, shown: "Shown") -> Answered:
    prompted = hosts.prompted(memory, seat, event.text("prompt"))
    looks = memory.config.remind_unrecorded
    if looks:
        shown.look()
    context = _context("UserPromptSubmit", shown.fresh(prompted.standing, prompted.found))
    return Answered(context, prompted.failed, looks)


def _before_tool(memory: "Memory", seat: "hosts.Seat", event: _Event, shown: "Shown") -> Answered:
    if not event.text("tool_name").strip():
        return Answered()
    moment = hosts.tool_called(memory, seat, event.text("tool_name"), event.call)
    return Answered(_context("PreToolUse", shown.fresh(moment.text)), moment.failed)


def _after_failure(memory: "Memory", seat: "hosts.Seat", event: _Event, shown: "Shown") -> Answered:
    # What the user stopped did not fail.
    if event.given.get("is_interrupt") is True or not event.text("tool_name").strip():
        return Answered()
    moment = hosts.tool_failed(memory, seat, event.text("tool_name"), event.call, event.text("error"))
    return Answered(_context("PostToolUseFailure", shown.fresh(moment.text)), moment.failed)


def _stop(memory: "Memory", seat: "hosts.Seat", event: _Event, shown: "Shown") -> Answered:
    moment = hosts.stopped(memory, seat, wish=shown.wish, since=shown.since)
    if not moment.failed:  # else the next turn reminds of it
        shown.keep_wish("", "")
    # Not as context, which versions before do not take at the end of a turn.
    return Answered({"decision": "block", "reason": moment.text} if moment.text else None, moment.failed)


def _context(event: str, text: str) -> Answer | None:
    if not text:
        return None
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}, "suppressOutput": True}


_ANSWERS: Mapping[str, Callable[["Memory", "hosts.Seat", _Event, "Shown"], Answered]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _before_tool,
    "PostToolUseFailure": _after_failure,
    "Stop": _stop,
}
# Those that Claude Code is to call. PreCompact takes no context: what outlasts it is told at the next SessionStart.
EVENTS = (*_ANSWERS, "PreCompact", "SessionEnd")


# ---- what is kept between two events


class Shown:
    """What a conversation has been shown, and the wish that waits for the end of its turn; in a file for each.

    A line of its file says one thing, so that events at the same time take nothing from each other. Whatever is wrong
    with the file, something is shown again.
    """

    def __init__(self, event: _Event) -> None:
        names = "\0".join((event.text("session_id"), event.text("agent_id")))
        self._folder = f"{places.state_folder()}{os.sep}{HOST}"
        self._file = f"{self._folder}{os.sep}{_digest(names)}"
        self._seen: set[str] = set()
        self.wish = ""
        self.since: str | None = None
        self._is_looking = False
        self._read()

    def _read(self) -> None:
        for line in self._lines():
            kind, _, told = line.partition(" ")
            if kind == "shown":
                self._seen.add(told)
            elif kind in ("looks", "looked"):
                self._is_looking = kind == "looks"
            elif kind == "wish":
                with contextlib.suppress(ValueError, TypeError):
                    self.wish, self.since = map(str, json.loads(told))

    def fresh(self, *texts: str) -> str:
        """Return those texts that the conversation does not hold, as one."""
        new = [text for text in texts if text and _digest(text) not in self._seen]
        for text in new:
            self._seen.add(_digest(text))
            self._add(f"shown {_digest(text)}")
        return "\n".join(new)

    def look(self) -> None:
        """Note that somebody looks for a wish, behind the answer."""
        self._add("looks")

    def looked(self, wish: str, since: str) -> None:
        """Keep what was found; where that is none, a wish that waits goes on waiting."""
        if wish:
            self.keep_wish(wish, since)
        self._add("looked")

    def awaited_wish(self) -> str:
        """Return the wish that is kept; where somebody still looks for one, as in a turn of no time, wait a little."""
        until = time.monotonic() + _LOOKS_FOR
        while self._is_looking and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS)
            self._read()
        return self.wish

    def keep_wish(self, wish: str, since: str) -> None:
        """Keep a wish until the end of the turn, '' for none any more."""
        self.wish, self.since = wish, since
        self._add(f"wish {json.dumps([wish, since])}")

    def forget(self) -> None:
        """Begin anew, and drop what conversations of long ago have left."""
        self._seen, self.wish, self.since, self._is_looking = set(), "", None, False
        with contextlib.suppress(OSError):
            os.unlink(self._file)
        oldest = dt.datetime.now().timestamp() - _KEPT_DAYS * 86400  # noqa: DTZ005 (the clock of the file system)
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)

    def _lines(self) -> list[str]:
        try:
            with open(self._file, encoding="utf-8") as file:
                return file.read().splitlines()
        except (OSError, ValueError):
            return []

    def _add(self, line: str) -> None:
        with contextlib.suppress(OSError):
            places.make_state_folder(HOST)
            with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
                file.write(f"{line}\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
