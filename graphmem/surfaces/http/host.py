"""`/host/MOMENT`: what a plug-in of a host tells and asks at each moment of a session, see `surfaces/hosts.py`.

A request names the host, the session and the folder of its project; the answer is a small object whose texts belong in
front of the model. What may take long goes on behind the answer.
"""

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphmem import log
from graphmem.core.model import ConsolidationReport, Part
from graphmem.errors import GraphmemError, InvalidInput
from graphmem.exchange.formats import opencode
from graphmem.exchange.formats.blocks import asked as call_of
from graphmem.memory import Memory
from graphmem.surfaces import hosts
from graphmem.surfaces.hosts import Moment, Seat
from graphmem.surfaces.http.bodies import object_of, read_body
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.http.host_writer import HostWriter
from graphmem.surfaces.http.memories import Memories
from graphmem.surfaces.http.refusals import JSON, told
from graphmem.surfaces.http.token import Doorkeeper

# Seconds for which a command waits for what it began; it goes on behind that.
_AT_ONCE = 2.0
_LOOKS, _BETWEEN_LOOKS = 40, 0.05  # seconds


class Told:
    """What a request tells, of which each value is looked at when it is used."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def text(self, name: str, *, needed: bool = False) -> str:
        """Return a text, '' where none is told. Raises InvalidInput for what is none, or is needed and empty."""
        value = self._given.get(name)
        if value is None:
            value = ""
        if not isinstance(value, str):
            raise InvalidInput(name, value, "give a text")
        if needed and not value.strip():
            raise InvalidInput(name, value, "give one that is not empty")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        value = self._given.get(name) or []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InvalidInput(name, value, "give a list of texts")
        return value

    def parts(self) -> list[Part]:
        """Return what was said: `said` is a list of objects, each with a message and a part as the host has them."""
        said = self._given.get("said") or []
        if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
            raise InvalidInput("said", said, "give a list of objects with message and part")
        child = self._given.get("child") is True
        found = (opencode.part_of(each.get("message"), each.get("part"), child=child) for each in said)
        return [part for part in found if part is not None]

    @property
    def writes(self) -> bool:
        """Whether the host lets its model write checkpoints, see `HostWriter`."""
        return self._given.get("writes") is True

    @property
    def call(self) -> str:
        """What a tool was given, as a text."""
        return call_of(self._given.get("input"))

    @functools.cached_property
    def seat(self) -> Seat:
        """Who works where."""
        user = hosts.user_of(self.text("folder"))
        return Seat(self.text("host", needed=True), self.text("session", needed=True), user)


# ---- what each moment is answered

Answer = dict[str, Any]


def _start(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.session_started(memory, given.seat))


def _prompt(memory: Memory, given: Told) -> Answer:
    """Answer what a user said. The reminder is of the turn before, so it comes ahead of what this one mirrors."""
    reminder = hosts.reminded(memory, given.seat)
    prompted = hosts.prompted(memory, given.seat, given.text("text"))
    mirrored = hosts.told(memory, given.seat, given.parts())
    wish = hosts.wish_of(given.text("text"), memory.config)
    answer = {**asdict(prompted), "wish": wish, "reminder": reminder.text}
    return {**answer, "failed": [*reminder.failed, *prompted.failed, *mirrored.failed]}


def _tool(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.tool_called(memory, given.seat, given.text("tool", needed=True), given.call))


def _failure(memory: Memory, given: Told) -> Answer:
    tool, error = given.text("tool", needed=True), given.text("error", needed=True)
    return _answer(hosts.tool_answered(memory, given.seat, tool, given.call, error=error))


def _said(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.told(memory, given.seat, given.parts()))


def _removed(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.removed(memory, given.seat, messages=given.texts("messages"), parts=given.texts("parts")))


def _deleted(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.session_deleted(memory, given.seat))


def _compact(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.compacting(memory, given.seat))


def _stop(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.stopped(memory, given.seat, wish=given.text("wish"), since=given.text("since") or None))


def _end(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.session_ended(memory, given.seat))


def _search(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.asked(memory, given.seat, given.text("text")))


def _nothing(memory: Memory, given: Told) -> Answer:
    return {}


def _answer(moment: Moment) -> Answer:
    return asdict(moment)


_MOMENTS: Mapping[str, Callable[[Memory, Told], Answer]] = {
    "start": _start,
    "prompt": _prompt,
    "tool": _tool,
    "failure": _failure,
    "said": _said,
    "removed": _removed,
    "deleted": _deleted,
    "compact": _compact,
    "stop": _stop,
    "end": _end,
    "idle": _nothing,
    "search": _search,
}
_OTHERS = ("command", "fetch", "wrote")
# After these the checkpoints that wait are made, behind the answer.
_DIGESTED = ("compact", "end", "idle")


# ---- commands, of which the user waits to hear


def _checkpoint(memory: Memory, given: Told) -> str:
    report = memory.checkpoint(given.seat.session)
    counted = f"notes: {len(report.notes)}, proposed: {len(report.proposed)}" if report.state == "written" else ""
    return _line(f"checkpoint: {report.state}", counted, report.error)


def _dream(memory: Memory, given: Told) -> str:
    report = memory.consolidate()
    return _worked(
        report, f"dream: {report.state}; new notes: {len(report.conclusions)}, replaced: {len(report.superseded)}"
    )


def _distill(memory: Memory, given: Told) -> str:
    report = memory.distill()
    approved = "the user approves them with 'graphmem approve NUMBER'"
    return _worked(report, f"distill: {report.state}; proposed: {len(report.conclusions)} ({approved})")


_COMMANDS: Mapping[str, Callable[[Memory, Told], str]] = {
    "checkpoint": _checkpoint,
    "dream": _dream,
    "distill": _distill,
}


def _worked(report: ConsolidationReport, line: str) -> str:
    if report.state == "early":
        days = f"{report.days_left} day{'' if report.days_left == 1 else 's'}"
        return f"It was done recently; it is due again in about {days}."
    return _line(line, report.error)


def _line(*told: str) -> str:
    return "; ".join(each for each in told if each)


class Host:
    """Answers the moments of hosts."""

    def __init__(self, memories: Memories, *, keeper: Doorkeeper, bounds: Bounds) -> None:
        self._memories = memories
        self._keeper = keeper
        self._bounds = bounds
        self._works: set[asyncio.Task[Any]] = set()
        self._writers: dict[str, HostWriter] = {}  # by the folder of the project, whose words no other one gets
        self._digesting: set[str | None] = (
            set()
        )  # folders of projects; None: all of them, by the writer of the settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a moment."""
        request = Request(scope, receive)
        name = request.path_params["moment"]
        if name not in (*_MOMENTS, *_OTHERS):
            raise HTTPException(404, f"there is no moment {name}: {', '.join((*_MOMENTS, *_OTHERS))}")
        if request.method != "POST":
            raise HTTPException(405, "a moment is told by POST", {"Allow": "POST"})
        self._keeper.require(request)
        given = Told(object_of(await read_body(request, self._bounds)))
        _ = given.seat
        if name == "command":
            answer = await self._command(request, given)
        elif name == "fetch":
            answer = await self._fetch(given)
        elif name == "wrote":
            answer = {"taken": self._writer(given).bring(given.text("id"), given.text("text"), given.text("error"))}
        else:
            answer = await self._memories.run(
                request, lambda memory: _MOMENTS[name](memory, given), project=given.text("folder")
            )
            if name in _DIGESTED:
                self._digest(request, given)
        await Response(told(answer), media_type=JSON)(scope, receive, send)

    def close(self) -> None:
        """Let nothing wait for a host any more."""
        for writer in self._writers.values():
            writer.close()

    async def _command(self, request: Request, given: Told) -> Answer:
        """Begin what a command asks for, and tell what came of it where that is known at once."""
        name = given.text("command")
        if name not in _COMMANDS:
            raise InvalidInput("command", name, f"give one of {', '.join(_COMMANDS)}")
        work = self._begin(request, given, lambda memory: _COMMANDS[name](memory, given))
        done, _ = await asyncio.wait([work], timeout=_AT_ONCE)
        if not done:
            return {"text": f"{name}: at work on it, the memory goes on with it by itself", "failed": []}
        try:
            return {"text": work.result(), "failed": []}
        except GraphmemError as error:
            return {"text": f"{name}: {error}", "failed": [str(error)]}

    def _digest(self, request: Request, given: Told) -> None:
        """Make the checkpoints that wait; one round at a time is enough, each looks at all sessions of its projects."""
        config = self._memories.config
        by_host = given.writes and not (config.writer_command or config.writer_url)
        projects = given.text("folder") if by_host else None
        if projects in self._digesting:
            return
        self._digesting.add(projects)
        if by_host:
            work = self._keep(asyncio.ensure_future(asyncio.to_thread(self._digest_by_host, given)))
        else:
            work = self._begin(request, given, hosts.idle)
        work.add_done_callback(functools.partial(self._digested, projects))

    def _digest_by_host(self, given: Told) -> Moment:
        with self._memories.with_writer(given.text("folder"), self._writer(given)) as memory:
            return hosts.digested(memory)

    def _writer(self, given: Told) -> HostWriter:
        return self._writers.setdefault(given.text("folder"), HostWriter(self._memories.config.writer_timeout))

    async def _fetch(self, given: Told) -> Answer:
        """Return what is to be written, waiting a little where a digest has just begun."""
        for _ in range(_LOOKS):
            found, prompt = self._writer(given).fetch()
            if found:
                return {"id": found, "prompt": prompt}
            if given.text("folder") not in self._digesting:
                break
            await asyncio.sleep(_BETWEEN_LOOKS)
        return {"id": "", "prompt": ""}

    def _digested(self, projects: str | None, work: asyncio.Task[Any]) -> None:
        self._digesting.discard(projects)
        if not work.cancelled() and work.exception() is None:
            _warn(work.result().failed)

    def _begin(self, request: Request, given: Told, call: Callable[[Memory], Any]) -> asyncio.Task[Any]:
        return self._keep(asyncio.ensure_future(self._memories.run(request, call, project=given.text("folder"))))

    def _keep(self, work: asyncio.Task[Any]) -> asyncio.Task[Any]:
        self._works.add(work)  # a task that nobody holds may be dropped while it works
        work.add_done_callback(self._ended)
        return work

    def _ended(self, work: asyncio.Task[Any]) -> None:
        self._works.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            _warn([str(error)])


def _warn(failed: Iterable[str]) -> None:
    for each in failed:
        log.warning("behind an answer to a host: %s", each)
