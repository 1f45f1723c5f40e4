"""`/events`: server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) on changes.

They say that something changed, not what: whoever shows some of the memory asks for it again. One task looks for all.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator
from concurrent.futures import Executor

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from graphmem import log
from graphmem.errors import GraphmemError
from graphmem.memory import Memory
from graphmem.surfaces.http.bounds import Bounds, Load
from graphmem.surfaces.http.token import Doorkeeper

_RETRY = 2000  # milliseconds until a browser that was cut off asks again


class Changes:
    """Tells clients of changes: `hello` at the start, `change` after each, also for one that was missed meanwhile.

    The id of an event counts changes since the server was started, behind a name of this run of it.
    """

    def __init__(self, memory: Memory, *, keeper: Doorkeeper, threads: Executor, bounds: Bounds, load: Load) -> None:
        self._memory = memory
        self._keeper = keeper
        self._threads = threads
        self._bounds = bounds
        self._load = load
        self._run = secrets.token_hex(4)
        self._changes = 0
        self._listeners = 0
        self._watching = False
        self._task: asyncio.Task[None] | None = None  # which nobody else holds
        self._news = asyncio.Condition()  # of a change, and of the end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a stream that ends with the server or the client."""
        request = Request(scope, receive)
        if request.method != "GET":
            raise HTTPException(405, "events are asked for by GET", {"Allow": "GET"})
        self._keeper.require_reading(request)
        if self._listeners >= self._bounds.streams:
            raise HTTPException(503, f"{self._listeners} listen already; ask again", {"Retry-After": "5"})
        self._listeners += 1
        try:
            told = self._told(request.headers.get("last-event-id", ""))
            await StreamingResponse(told, media_type="text/event-stream")(scope, receive, send)
        finally:
            self._listeners -= 1

    async def _told(self, last: str) -> AsyncIterator[str]:
        """Yield the stream for a client that has met the event of an id last, '' for none."""
        await self._begin()
        yield f"retry: {_RETRY}\n{self._event('change' if last and last != self._id() else 'hello')}"
        seen = self._changes
        while True:
            try:
                async with asyncio.timeout(self._bounds.beat):
                    await self._news_since(seen)
            except TimeoutError:
                yield ":\n\n"
                continue
            if not self._watching:
                return
            seen = self._changes
            yield self._event("change")

    async def _news_since(self, seen: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self._changes != seen or not self._watching)

    def _event(self, name: str) -> str:
        return f"id: {self._id()}\nevent: {name}\ndata: {json.dumps({'changes': self._changes})}\n\n"

    def _id(self) -> str:
        return f"{self._run}-{self._changes}"

    async def _begin(self) -> None:
        """Look for changes from now on, where nobody does yet."""
        if not self._watching:
            self._watching = True
            self._task = asyncio.create_task(self._watch())
        await self._news_since(0)

    async def _watch(self) -> None:
        """Look for changes until nobody listens, the server ends or the memory cannot be read."""
        loop = asyncio.get_running_loop()
        try:
            with contextlib.ExitStack() as stack:
                is_changed = await loop.run_in_executor(self._threads, stack.enter_context, self._memory.watch())
                await self._tell()  # what changed while nobody looked is not known
                while True:
                    await asyncio.sleep(self._bounds.poll)
                    if not self._listeners or self._load.is_over:
                        return
                    if await loop.run_in_executor(self._threads, is_changed):
                        await self._tell()
        except GraphmemError as error:
            log.warning("changes cannot be told: %s", error)
        finally:
            self._watching = False
            async with self._news:
                self._news.notify_all()

    async def _tell(self) -> None:
        async with self._news:
            self._changes += 1
            self._news.notify_all()
