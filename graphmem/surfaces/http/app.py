"""The application: every route behind one gate."""

import asyncio
import contextlib
import functools
import importlib.metadata
import os
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.errors import GraphmemError
from graphmem.memory import Memory
from graphmem.surfaces.http.api import Api
from graphmem.surfaces.http.bounds import EVENTS, Bounded, Bounds, Load
from graphmem.surfaces.http.events import Changes
from graphmem.surfaces.http.gate import Gate
from graphmem.surfaces.http.host import Host
from graphmem.surfaces.http.ledger import LedgerRoutes
from graphmem.surfaces.http.memories import Memories
from graphmem.surfaces.http.refusals import (
    JSON,
    ErrorPage,
    tell_error,
    tell_failure,
    tell_http_error,
    telling_browsers,
    told,
)
from graphmem.surfaces.http.token import Doorkeeper

_THREADS = 8


def create_app(
    memory: Memory,
    *,
    port: int,
    token: str,
    pages: Sequence[BaseRoute] = (),
    error_page: ErrorPage | None = None,
    bounds: Bounds | None = None,
    load: Load | None = None,
    private: bool = False,
    opened: Callable[..., Memory] | None = None,
) -> ASGIApp:
    """Return the ASGI application that serves a memory, which stays open after it.

    port: the one it is reached at, which every request has to name. token: what lets a program write. pages: what
    people look at, served where `config.ui` is set; `request.app.state` holds for them `keeper`, who may write, and
    `memories`, which runs what they do with the memory that is asked for:
    `await request.app.state.memories.run(request, call)`. error_page: what a browser is shown where HTTP refuses.
    bounds: what it takes of one client and of all. load: told of what it does. private: reading needs the token too.
    opened: opens the same file for another project, see `Memories`.
    """
    bounds, load = bounds or Bounds(), load or Load()
    keeper = Doorkeeper(token, port, private=private)
    threads = ThreadPoolExecutor(_THREADS, "graphmem-http")
    opened = opened or functools.partial(Memory.open, memory.path, create=False)
    memories = Memories(memory, opened=opened, keeper=keeper, threads=threads)

    host = Host(memories, keeper=keeper, bounds=bounds)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with contextlib.closing(memories), threads, contextlib.closing(host):
            yield

    prefix = memory.config.route_prefix if memory.config.ui else ""
    routes: list[BaseRoute] = [
        Route("/api/{verb}", Api(memories, keeper=keeper, bounds=bounds)),
        Route("/host/{moment}", host),
        Route("/health", _health),
        Route("/enter", keeper.enter),
        Route(EVENTS, Changes(memory, keeper=keeper, threads=threads, bounds=bounds, load=load)),
        Route("/openapi.json", Document(keeper, threads, prefix=prefix)),
    ]
    if memory.config.ui:
        routes += [*LedgerRoutes(memories, keeper=keeper, bounds=bounds).under(prefix), *pages]
    refused = telling_browsers(error_page) if memory.config.ui and error_page else tell_http_error
    inner = Starlette(
        routes=routes,
        exception_handlers={GraphmemError: tell_error, HTTPException: refused, Exception: tell_failure},
        lifespan=lifespan,
    )
    inner.router.redirect_slashes = False
    inner.state.memories, inner.state.keeper = memories, keeper
    return Gate(Bounded(inner, most=bounds.requests, load=load), port=port)


async def _health(request: Request) -> Response:
    health = {"status": "ok", "version": importlib.metadata.version("graphmem"), "pid": os.getpid()}
    return Response(told(health), media_type=JSON)


class Document:
    """`/openapi.json`, made when it is asked for first: the shapes of all answers take a while."""

    def __init__(self, keeper: Doorkeeper, threads: Executor, *, prefix: str) -> None:
        self._keeper = keeper
        self._threads = threads
        self._prefix = prefix
        self._made: asyncio.Future[bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the document."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, "the document is asked for by GET", {"Allow": "GET, HEAD"})
        if self._made is None:
            self._made = asyncio.get_running_loop().run_in_executor(self._threads, self._make)
        await Response(await asyncio.shield(self._made), media_type=JSON)(scope, receive, send)

    def _make(self) -> bytes:
        from graphmem.surfaces.http.openapi import document

        return document(cookie=self._keeper.cookie, private=self._keeper.private, prefix=self._prefix)
