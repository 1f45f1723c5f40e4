"""What a host asks for and what takes long: commands, the checkpoints that wait, what its model writes of them.

It goes on behind the answer.
"""

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.requests import Request

from graphmem import log
from graphmem.core.model import ConsolidationReport
from graphmem.errors import GraphmemError, InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces import hosts
from graphmem.surfaces.hosts import Moment
from graphmem.surfaces.http.host_writer import HostWriter
from graphmem.surfaces.http.memories import Memories
from graphmem.surfaces.http.moments import Answer, Told

# Seconds for which a command waits for what it began; it goes on behind that.
_AT_ONCE = 2.0
_LOOKS, _BETWEEN_LOOKS = 40, 0.05  # seconds


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


class Works:
    """What goes on for hosts."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._works: set[asyncio.Task[Any]] = set()
        self._writers: dict[str, HostWriter] = {}  # by the folder of the project, whose words no other one gets
        self._digesting: set[str | None] = (
            set()
        )  # folders of projects; None: all of them, by the writer of the settings

    def close(self) -> None:
        """Let nothing wait for a host any more."""
        for writer in self._writers.values():
            writer.close()

    async def command(self, request: Request, given: Told) -> Answer:
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

    def digest(self, request: Request, given: Told) -> None:
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

    def wrote(self, given: Told) -> Answer:
        """Take what the model of a host wrote."""
        return {"taken": self._writer(given).bring(given.text("id"), given.text("text"), given.text("error"))}

    def _writer(self, given: Told) -> HostWriter:
        return self._writers.setdefault(given.text("folder"), HostWriter(self._memories.config.writer_timeout))

    async def fetch(self, given: Told) -> Answer:
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
