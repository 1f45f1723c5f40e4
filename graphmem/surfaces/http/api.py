"""`/api/VERB`: each verb with its arguments in JSON."""

import asyncio
import functools
from collections.abc import Iterable
from concurrent.futures import Executor

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphmem.errors import InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces.http.bodies import arguments_of, object_of, read_body
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.http.refusals import JSON, told
from graphmem.surfaces.http.token import Doorkeeper
from graphmem.surfaces.verbs import Verb, verb_of

_READING = ("GET", "HEAD", "POST")
_CHANGING = ("POST",)


class Api:
    """Calls verbs of a memory in threads, since each waits for the disk."""

    def __init__(self, memory: Memory, *, keeper: Doorkeeper, threads: Executor, bounds: Bounds) -> None:
        self._memory = memory
        self._keeper = keeper
        self._threads = threads
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a verb."""
        request = Request(scope, receive)
        verb = _verb(request.path_params["verb"])
        allowed = methods_of(verb)
        if request.method not in allowed:
            raise HTTPException(405, f"{verb.name} is asked by {', '.join(allowed)}", {"Allow": ", ".join(allowed)})
        if verb.changes:
            self._keeper.require(request)
        if request.method == "POST":
            call = functools.partial(self._posted, verb, await read_body(request, self._bounds))
        else:
            call = functools.partial(self._queried, verb, request.query_params.multi_items())
        answer = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        await Response(answer, media_type=JSON)(scope, receive, send)

    def _posted(self, verb: Verb, body: bytes) -> bytes:
        return told(verb(self._memory, object_of(body)))

    def _queried(self, verb: Verb, query: Iterable[tuple[str, str]]) -> bytes:
        return told(verb(self._memory, arguments_of(verb, query)))


def methods_of(verb: Verb) -> tuple[str, ...]:
    """Return the methods by which a verb is asked."""
    return _CHANGING if verb.changes else _READING


def _verb(name: str) -> Verb:
    try:
        return verb_of(name)
    except InvalidInput as error:
        raise HTTPException(404, str(error)) from None
