"""For which project and session a request asks: one server serves hosts that work in several.

A `Memory` is opened for one project and one session. A few that were opened last are kept, all on the same file.
"""

import asyncio
import functools
import os
import urllib.parse
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import NamedTuple, TypeVar

from starlette.requests import Request

from graphmem.config import Config
from graphmem.core.model import Writer
from graphmem.errors import InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces.http.token import Doorkeeper
from graphmem.surfaces.keeping import Keeping

PROJECT = "Graphmem-Project"
SESSION = "Graphmem-Session"

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

    opened: opens another one, with the arguments `project`, `session`, `config` and `writer`.
    """

    def __init__(self, own: Memory, *, opened: Callable[..., Memory], keeper: Doorkeeper, threads: Executor) -> None:
        self._own = own
        self._opened = opened
        self._keeper = keeper
        self._threads = threads
        self._keeping = Keeping(self._open)

    @property
    def config(self) -> Config:
        """The settings that all of them have."""
        return self._own.config

    def with_writer(self, folder: str, writer: Writer) -> Memory:
        """Open one for a project, '' for none, with a writer of its own; it is the caller's to close."""
        return self._opened(project=folder or None, session="", config=self.config, writer=writer)

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
        if chosen is None:
            return call(self._own)
        with self._keeping.using(chosen) as memory:
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

    def _open(self, chosen: Chosen) -> Memory:
        config = self._own.config if chosen.writes else replace(self._own.config, read_only=True)
        return self._opened(project=chosen.project, session=chosen.session, config=config)

    def close(self) -> None:
        """Close all but the server's own one, after what is being done with them."""
        self._keeping.close()


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
