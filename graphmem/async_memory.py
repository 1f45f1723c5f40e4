"""AsyncMemory: the verbs of Memory as coroutines."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import os
from collections.abc import Callable, Coroutine, Generator, Iterable
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from graphmem.compose.turn import Turn
from graphmem.config import DEFAULT, Config
from graphmem.core.embedding import Embedder
from graphmem.core.events import Event, Log
from graphmem.core.model import (
    BackupReport,
    CheckReport,
    DedupeReport,
    FileState,
    ForgottenReport,
    Part,
    Project,
    RestoreReport,
    Visit,
    Writer,
)
from graphmem.core.policies import ChannelPolicy
from graphmem.core.times import Clock, system_clock
from graphmem.errors import Conflict
from graphmem.exchange.transcripts import Source
from graphmem.memory import Memory

_P = ParamSpec("_P")
_T = TypeVar("_T")

_THREADS = 8


def _in_thread(
    verb: Callable[Concatenate[Memory, _P], _T],
) -> Callable[Concatenate[AsyncMemory, _P], Coroutine[Any, Any, _T]]:
    """Return a coroutine method that runs a verb of Memory in a thread."""

    async def run(self: AsyncMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self._run(functools.partial(verb, self.memory, *args, **kwargs))

    functools.update_wrapper(run, verb)
    return run


def _without_memory(verb: Callable[_P, _T]) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Return a coroutine function that runs a verb that needs no open memory in a thread."""

    async def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.to_thread(verb, *args, **kwargs)

    functools.update_wrapper(run, verb)
    return run


def _in_thread_of_turn(
    method: Callable[Concatenate[Turn, _P], _T],
) -> Callable[Concatenate[AsyncTurn, _P], Coroutine[Any, Any, _T]]:
    """Return a coroutine method that runs a method of Turn in a thread."""

    async def run(self: AsyncTurn, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self.memory._run(functools.partial(method, self.turn, *args, **kwargs))

    functools.update_wrapper(run, method)
    return run


class _Opening:
    """An AsyncMemory that is being opened."""

    def __init__(self, opening: Callable[[], Memory]) -> None:
        self._opening = opening
        self._opened: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def _open(self) -> AsyncMemory:
        return AsyncMemory(await asyncio.to_thread(self._opening))

    async def __aenter__(self) -> AsyncMemory:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.close()


class AsyncMemory:
    """The verbs of Memory as coroutines, run in a few threads, so that the event loop never waits for SQLite."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "graphmem")
        self._closed = False

    async def _run(self, call: Callable[[], _T]) -> _T:
        if self._closed:
            raise Conflict(f"the memory {self.memory.path} is closed: open it again")
        there = contextvars.copy_context()  # `looking` holds for the thread too
        return await asyncio.get_running_loop().run_in_executor(self._threads, there.run, call)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        config: Config = DEFAULT,
        clock: Clock = system_clock,
        create: bool = True,
        embedder: Embedder | None = None,
        project: str | os.PathLike[str] | None = None,
        session: str = "",
        writer: Writer | None = None,
    ) -> _Opening:
        """Open a memory file as `Memory.open` does: `await` it, or use it with `async with`."""
        opening = functools.partial(
            Memory.open, path, config=config, clock=clock, create=create, embedder=embedder, project=project,
            session=session, writer=writer,
        )  # fmt: skip
        return _Opening(opening)

    @property
    def path(self) -> str:
        """The absolute path of the file, or ':memory:'."""
        return self.memory.path

    @property
    def config(self) -> Config:
        """The settings of the memory."""
        return self.memory.config

    @property
    def project(self) -> Project | None:
        """The project that the memory was opened for."""
        return self.memory.project

    @property
    def session(self) -> str:
        """The name of the session that the memory was opened for, '' for none."""
        return self.memory.session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let running verbs end, then close the file."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        self.memory.close()

    @staticmethod
    async def preview_dedupe(path: str | os.PathLike[str], *, copied: bool = True) -> DedupeReport:
        """Return what a dedupe of a file would do, as `Memory.preview_dedupe` does."""
        return await asyncio.to_thread(Memory.preview_dedupe, path, copied=copied)

    @staticmethod
    async def backup_copy(src: str | os.PathLike[str], dest: str | os.PathLike[str]) -> BackupReport:
        """Copy a memory that cannot be written, as `Memory.backup_copy` does."""
        return await asyncio.to_thread(Memory.backup_copy, src, dest)

    @staticmethod
    async def restore(
        src: str | os.PathLike[str], dest: str | os.PathLike[str], *, without_payloads: bool = False
    ) -> RestoreReport:
        """Make the memory at dest anew from a backup, as `Memory.restore` does."""
        return await asyncio.to_thread(Memory.restore, src, dest, without_payloads=without_payloads)

    @staticmethod
    async def check_copy(path: str | os.PathLike[str]) -> CheckReport:
        """Look for damage in a backup, as `Memory.check_copy` does."""
        return await asyncio.to_thread(Memory.check_copy, path)

    @staticmethod
    async def file_state(path: str | os.PathLike[str]) -> FileState:
        """Return what a memory file says of itself, as `Memory.file_state` does."""
        return await asyncio.to_thread(Memory.file_state, path)

    @staticmethod
    async def verify_forgotten(path: str | os.PathLike[str], text: str, *, copied: bool = True) -> ForgottenReport:
        """Look for a text in all of a file, as `Memory.verify_forgotten` does."""
        return await asyncio.to_thread(Memory.verify_forgotten, path, text, copied=copied)

    @staticmethod
    async def read_log(path: str | os.PathLike[str], *, config: Config = DEFAULT) -> Log:
        """Return the turns of a log, as `Memory.read_log` does."""
        return await asyncio.to_thread(Memory.read_log, path, config=config)

    @staticmethod
    async def find_transcripts(
        path: str | os.PathLike[str] | None = None, *, kind: str | None = None
    ) -> tuple[Source, ...]:
        """Return what `harvest` would read, as `Memory.find_transcripts` does."""
        return await asyncio.to_thread(Memory.find_transcripts, path, kind=kind)

    @staticmethod
    async def check_source(kind: str, path: str | os.PathLike[str]) -> None:
        """Raise for a source that cannot be taken in, as `Memory.check_source` does."""
        await asyncio.to_thread(Memory.check_source, kind, path)

    @staticmethod
    async def read_turns(text: str, place: str = "turns") -> tuple[list[Part], tuple[str, ...]]:
        """Return the parts of turns as JSON Lines, as `Memory.read_turns` does."""
        return await asyncio.to_thread(Memory.read_turns, text, place)

    enter_scene = _in_thread(Memory.enter_scene)
    declare_scene = _in_thread(Memory.declare_scene)
    observe = _in_thread(Memory.observe)
    match_scenes = _in_thread(Memory.match_scenes)
    scenes = _in_thread(Memory.scenes)
    scene = _in_thread(Memory.scene)
    evidence = _in_thread(Memory.evidence)
    tag_scene = _in_thread(Memory.tag_scene)
    untag_scene = _in_thread(Memory.untag_scene)
    rename_scene = _in_thread(Memory.rename_scene)
    drop_scene = _in_thread(Memory.drop_scene)
    reset_scenes = _in_thread(Memory.reset_scenes)
    scene_health = _in_thread(Memory.scene_health)
    recall_by_scene = _in_thread(Memory.recall_by_scene)
    recall_by_situation = _in_thread(Memory.recall_by_situation)
    commit = _in_thread(Memory.commit)
    copy = staticmethod(_without_memory(Memory.copy))
    copy_tenants = staticmethod(_without_memory(Memory.copy_tenants))
    edit_relation = _in_thread(Memory.edit_relation)
    delete_relation = _in_thread(Memory.delete_relation)
    purge = _in_thread(Memory.purge)
    overview = _in_thread(Memory.overview)
    growth = _in_thread(Memory.growth)
    remember = _in_thread(Memory.remember)
    propose = _in_thread(Memory.propose)
    forget = _in_thread(Memory.forget)
    restore_note = _in_thread(Memory.restore_note)
    approve = _in_thread(Memory.approve)
    reject = _in_thread(Memory.reject)
    edit_note = _in_thread(Memory.edit_note)
    notes = _in_thread(Memory.notes)
    ledger = _in_thread(Memory.ledger)
    inspect = _in_thread(Memory.inspect)
    rules_for = _in_thread(Memory.rules_for)
    tool_brief = _in_thread(Memory.tool_brief)
    sessions = _in_thread(Memory.sessions)
    harvest = _in_thread(Memory.harvest)
    import_from = _in_thread(Memory.import_from)
    export_tree = _in_thread(Memory.export_tree)
    sync_tree = _in_thread(Memory.sync_tree)
    watch_tree = _in_thread(Memory.watch_tree)
    watch = _in_thread(Memory.watch)
    looking = _in_thread(Memory.looking)
    checkpoint = _in_thread(Memory.checkpoint)
    run_jobs = _in_thread(Memory.run_jobs)
    consolidate = _in_thread(Memory.consolidate)
    distill = _in_thread(Memory.distill)
    start_checkpoints = _in_thread(Memory.start_checkpoints)
    jobs = _in_thread(Memory.jobs)
    mirror = _in_thread(Memory.mirror)
    history = _in_thread(Memory.history)
    part = _in_thread(Memory.part)
    parts = _in_thread(Memory.parts)
    delete_parts = _in_thread(Memory.delete_parts)
    delete_session = _in_thread(Memory.delete_session)
    record_failure = _in_thread(Memory.record_failure)
    incidents = _in_thread(Memory.incidents)
    forget_incident = _in_thread(Memory.forget_incident)
    remind = _in_thread(Memory.remind)
    scopes = _in_thread(Memory.scopes)
    neighbours = _in_thread(Memory.neighbours)
    graph = _in_thread(Memory.graph)
    draw = _in_thread(Memory.draw)
    picture = _in_thread(Memory.picture)
    export_to = _in_thread(Memory.export_to)
    shortest_path = _in_thread(Memory.shortest_path)
    recall = _in_thread(Memory.recall)
    put_block = _in_thread(Memory.put_block)
    block = _in_thread(Memory.block)
    delete_block = _in_thread(Memory.delete_block)
    put_document = _in_thread(Memory.put_document)
    query_documents = _in_thread(Memory.query_documents)
    consume_document = _in_thread(Memory.consume_document)
    archive_document = _in_thread(Memory.archive_document)
    brief = _in_thread(Memory.brief)

    async def turn(
        self,
        event: Event | None,
        *,
        channel: ChannelPolicy = ChannelPolicy(),  # noqa: B008
        scopes: str | Iterable[str] | None = None,
    ) -> AsyncTurn:
        """Begin a turn, as `Memory.turn` does: `async with await memory.turn(event) as turn`."""
        began = functools.partial(self.memory.turn, event, channel=channel, scopes=scopes)
        return AsyncTurn(self, await self._run(began))

    dedupe_scenes = _in_thread(Memory.dedupe_scenes)
    upkeep = _in_thread(Memory.upkeep)
    start_upkeep = _in_thread(Memory.start_upkeep)
    merge_entities = _in_thread(Memory.merge_entities)
    review_entities = _in_thread(Memory.review_entities)
    keep_apart = _in_thread(Memory.keep_apart)
    kept_apart = _in_thread(Memory.kept_apart)
    settle_entities = _in_thread(Memory.settle_entities)
    reindex = _in_thread(Memory.reindex)
    scan_secrets = _in_thread(Memory.scan_secrets)
    embed = _in_thread(Memory.embed)
    operations = _in_thread(Memory.operations)
    undo = _in_thread(Memory.undo)
    replay = _in_thread(Memory.replay)
    backup = _in_thread(Memory.backup)
    check = _in_thread(Memory.check)
    repair = _in_thread(Memory.repair)


class AsyncTurn:
    """A `Turn` whose methods are coroutines. turn: the turn itself, for what needs no file, as its situation does."""

    def __init__(self, memory: AsyncMemory, turn: Turn) -> None:
        self.memory = memory
        self.turn = turn

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.memory._run(functools.partial(self.turn.__exit__, kind, error, trace))

    async def visit(self) -> Visit:
        """Return `Turn.visit`."""
        return await self.memory._run(lambda: self.turn.visit)

    async def read_keys(self) -> tuple[str, ...]:
        """Return `Turn.read_keys`."""
        return await self.memory._run(lambda: self.turn.read_keys)

    async def write_keys(self) -> tuple[str, ...]:
        """Return `Turn.write_keys`."""
        return await self.memory._run(lambda: self.turn.write_keys)

    tool = _in_thread_of_turn(Turn.tool)
    brief = _in_thread_of_turn(Turn.brief)
    recall = _in_thread_of_turn(Turn.recall)
    recall_message = _in_thread_of_turn(Turn.recall_message)
    commit = _in_thread_of_turn(Turn.commit)
    remember = _in_thread_of_turn(Turn.remember)
    rules_for = _in_thread_of_turn(Turn.rules_for)
    prune = _in_thread_of_turn(Turn.prune)
    reminder = _in_thread_of_turn(Turn.reminder)
