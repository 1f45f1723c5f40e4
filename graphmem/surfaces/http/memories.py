"""For which project and session a request asks: one server serves hosts that work in several.

A `Memory` is opened for one project and one session. A few that were opened last are kept, all on the same file.
"""

import asyncio
import contextlib
import functools
import os
import threading
import urllib.parse
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from typing import NamedTuple, TypeVar

from starlette.requests import Request

from graphmem.errors import InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces.http.token import Doorkeeper

PROJECT = "Graphmem-Project"
SESSION = "Graphmem-Session"
# More than there are threads that use one: each has two files for each thread that reads with it.
MOST = 16

_Answer = TypeVar("_Answer")


class Chosen(NamedTuple):
    """What a request asks for. project, session: as in `Memory.open`. writes: whether it may write.

    Who may not write gets a memory that cannot, since a project that is met for the first time is noted in the file.
    """

    project: str | None
    session: str
    writes: bool


class Memories:
    """The memories of one file that are open: that of the server, and those of the projects and sessions asked for.

    opened: opens another one, with the arguments `project`, `session` and `config`.
    """

    def __init__(
        self, own: Memory, *, opened: Callable[..., Memory], keeper: Doorkeeper, threads: Executor, most: int = MOST
    ) -> None:
        self._own = own
        self._opened = opened
        self._keeper = keeper
        self._threads = threads
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Chosen, _Kept] = OrderedDict()  # the one used last at the end

    async def run(self, request: Request, call: Callable[[Memory], _Answer], *, project: str | None = None) -> _Answer:
        """Return what a call makes of the memory that a request asks for, run in a thread.

        project: a folder that goes before what the request's headers say. Raises what the call and `Memory.open` raise,
        InvalidInput for a header that cannot be used.
        """
        chosen = self._chosen(request, project)
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, functools.partial(self._run, chosen, call)
        )

    def _run(self, chosen: Chosen | None, call: Callable[[Memory], _Answer]) -> _Answer:
        with self._using(chosen) as memory:
            return call(memory)

    def _chosen(self, request: Request, folder: str | None) -> Chosen | None:
        """Return what a request asks for, None for the server's own project and session."""
        project = _said(request, PROJECT) if folder is None else folder
        session = _said(request, SESSION)
        if project is None and session is None:
            return None
        if project and not os.path.isabs(os.path.expanduser(project)):  # noqa: PTH117 (as `Memory.open` reads it)
            raise InvalidInput("project", project, "give an absolute path: a server is in no folder")
        own = self._own.project
        return Chosen(
            (None if own is None else own.place) if project is None else project or None,
            self._own.session if session is None else session,
            self._keeper.admits(request),
        )

    @contextlib.contextmanager
    def _using(self, chosen: Chosen | None) -> Iterator[Memory]:
        if chosen is None:
            yield self._own
            return
        with self._lock:
            kept = self._kept.setdefault(chosen, _Kept())
            self._kept.move_to_end(chosen)
            kept.users += 1
        try:
            with kept.opening:
                if kept.memory is None:
                    kept.memory = self._open(chosen)
            yield kept.memory
        finally:
            with self._lock:
                kept.users -= 1
                dropped = self._unneeded()
            for each in dropped:
                each.close()

    def _open(self, chosen: Chosen) -> Memory:
        config = self._own.config if chosen.writes else replace(self._own.config, read_only=True)
        return self._opened(project=chosen.project, session=chosen.session, config=config)

    def _unneeded(self) -> list[Memory]:
        """Forget those that could not be opened and the oldest ones that nobody uses; return what is to be closed."""
        dropped = []
        for chosen, kept in list(self._kept.items()):
            if not kept.users and (kept.memory is None or len(self._kept) > self._most):
                del self._kept[chosen]
                dropped += [kept.memory] if kept.memory is not None else []
        return dropped

    def close(self) -> None:
        """Close all but the server's own one, after what is being done with them."""
        with self._lock:
            kept, self._kept = self._kept, OrderedDict()
        for each in kept.values():
            if each.memory is not None:
                each.memory.close()


class _Kept:
    """A memory that is kept open. opening: held while it is opened. users: how many use it just now."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.memory: Memory | None = None
        self.users = 0


def _said(request: Request, name: str) -> str | None:
    """Return what a header says, percent-encoded UTF-8; None where it is not sent."""
    given = request.headers.getlist(name)
    if len(given) > 1:
        raise InvalidInput(name, given, "send it once")
    if not given:
        return None
    return decoded(name, given[0])


def decoded(name: str, text: str) -> str:
    """Return a text that was percent-encoded; raise InvalidInput naming the header for what is none.

    >>> decoded("Graphmem-Project", "/home/ann/%E5%B7%A5%E4%BD%9C")
    '/home/ann/工作'
    """
    remedy = "send it percent-encoded, in UTF-8"
    if not text.isascii():
        raise InvalidInput(name, text, remedy)
    try:
        return urllib.parse.unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(name, text, remedy) from None
