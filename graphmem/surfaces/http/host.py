"""`/host/MOMENT`: what a plug-in of a host tells and asks at each moment of a session, see `moments` and `host_works`.

A telling that is told again, since its answer came too late, is not done again: it has a name of its own, `telling`, by
which its answer is found.
"""

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphmem.errors import InvalidInput
from graphmem.surfaces.http.bodies import object_of, read_body
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.http.host_works import Works
from graphmem.surfaces.http.memories import Memories
from graphmem.surfaces.http.moments import DIGESTED, MOMENTS, Answer, Told
from graphmem.surfaces.http.refusals import JSON, told
from graphmem.surfaces.http.token import Doorkeeper

_OTHERS = ("command", "fetch", "wrote")
_LONGEST_TELLING = 100
_MOST_TELLINGS = 500


class Host:
    """Answers the moments of hosts."""

    def __init__(self, memories: Memories, *, keeper: Doorkeeper, bounds: Bounds) -> None:
        self._memories = memories
        self._keeper = keeper
        self._bounds = bounds
        self._works = Works(memories)
        self._once = Once(_MOST_TELLINGS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a moment."""
        request = Request(scope, receive)
        name = request.path_params["moment"]
        if name not in (*MOMENTS, *_OTHERS):
            raise HTTPException(404, f"there is no moment {name}: {', '.join((*MOMENTS, *_OTHERS))}")
        if request.method != "POST":
            raise HTTPException(405, "a moment is told by POST", {"Allow": "POST"})
        self._keeper.require(request)
        given = Told(object_of(await read_body(request, self._bounds)))
        seat, telling = given.seat, given.text("telling")
        if len(telling) > _LONGEST_TELLING:
            raise InvalidInput("telling", telling, f"give at most {_LONGEST_TELLING} characters")
        act = functools.partial(self._answer, request, name, given)
        if telling:
            answer = await self._once((name, seat.host, seat.session, given.text("folder"), telling), act)
        else:
            answer = await act()
        await Response(told(answer), media_type=JSON)(scope, receive, send)

    def close(self) -> None:
        """Let nothing wait for a host any more."""
        self._works.close()

    async def _answer(self, request: Request, name: str, given: Told) -> Answer:
        if name == "command":
            return await self._works.command(request, given)
        if name == "fetch":
            return await self._works.fetch(given)
        if name == "wrote":
            return self._works.wrote(given)
        answer = await self._memories.run(
            request, lambda memory: MOMENTS[name](memory, given), project=given.text("folder")
        )
        if name in DIGESTED:
            self._works.digest(request, given)
        return answer


class Once:
    """Does what has a name once, and gives its answer to whoever asks again while it is among the last `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._done: OrderedDict[Hashable, asyncio.Task[Answer]] = OrderedDict()

    async def __call__(self, name: Hashable, act: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return the answer. What raises was not done, and is done when it is asked for again."""
        work = self._done.get(name)
        if work is None:
            work = self._done[name] = asyncio.ensure_future(act())
            work.add_done_callback(functools.partial(self._ended, name))
            if len(self._done) > self._most:
                self._done.popitem(last=False)
        return await asyncio.shield(work)  # it goes on where who asked has gone

    def _ended(self, name: Hashable, work: asyncio.Task[Answer]) -> None:
        if (work.cancelled() or work.exception() is not None) and self._done.get(name) is work:
            del self._done[name]
