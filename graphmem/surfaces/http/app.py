"""The application: every route behind one gate."""

import contextlib
import functools
import importlib.metadata
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from graphmem.errors import GraphmemError
from graphmem.memory import Memory
from graphmem.surfaces.http.api import Api
from graphmem.surfaces.http.bounds import Bounded, Bounds, Load
from graphmem.surfaces.http.gate import Gate
from graphmem.surfaces.http.host import Host
from graphmem.surfaces.http.memories import Memories
from graphmem.surfaces.http.refusals import JSON, tell_error, tell_failure, tell_http_error, told
from graphmem.surfaces.http.token import Doorkeeper

_THREADS = 8


def create_app(
    memory: Memory,
    *,
    port: int,
    token: str,
    pages: Sequence[BaseRoute] = (),
    bounds: Bounds | None = None,
    load: Load | None = None,
    opened: Callable[..., Memory] | None = None,
) -> ASGIApp:
    """Return the ASGI application that serves a memory, which stays open after it.

    port: the one it is reached at, which every request has to name. token: what lets a program write. pages: further
    routes; `request.app.state` holds for them `keeper`, who may write, and `memories`, which runs what they do with the
    memory that is asked for: `await request.app.state.memories.run(request, call)`. bounds: what it takes of one client
    and of all. load: told of what it does. opened: opens the same file for another project, see `Memories`.
    """
    bounds = bounds or Bounds()
    keeper = Doorkeeper(token, port)
    threads = ThreadPoolExecutor(_THREADS, "graphmem-http")
    opened = opened or functools.partial(Memory.open, memory.path, create=False)
    memories = Memories(memory, opened=opened, keeper=keeper, threads=threads)

    host = Host(memories, keeper=keeper, bounds=bounds)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with contextlib.closing(memories), threads, contextlib.closing(host):
            yield

    inner = Starlette(
        routes=[
            Route("/api/{verb}", Api(memories, keeper=keeper, bounds=bounds)),
            Route("/host/{moment}", host),
            Route("/health", _health),
            Route("/enter", keeper.enter),
            *pages,
        ],
        exception_handlers={GraphmemError: tell_error, HTTPException: tell_http_error, Exception: tell_failure},
        lifespan=lifespan,
    )
    inner.router.redirect_slashes = False
    inner.state.memories, inner.state.keeper = memories, keeper
    return Gate(Bounded(inner, most=bounds.requests, load=load or Load()), port=port)


async def _health(request: Request) -> Response:
    return Response(told({"status": "ok", "version": importlib.metadata.version("graphmem")}), media_type=JSON)
