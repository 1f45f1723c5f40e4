"""`/api/VERB`: each verb with its arguments in JSON."""

import functools
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphmem.errors import InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces.http.bodies import arguments_of, object_of, read_body
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.http.memories import Memories
from graphmem.surfaces.http.refusals import JSON, told
from graphmem.surfaces.http.token import Doorkeeper
from graphmem.surfaces.verbs import Verb, verb_of

_READING = ("GET", "HEAD", "POST")
_CHANGING = ("POST",)


class Api:
    """Calls verbs of the memory that a request asks for."""

    def __init__(self, memories: Memories, *, keeper: Doorkeeper, bounds: Bounds) -> None:
        self._memories = memories
        self._keeper = keeper
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
        else:
            self._keeper.require_reading(request)
        if request.method == "POST":
            call = functools.partial(_posted, verb, await read_body(request, self._bounds))
        else:
            call = functools.partial(_queried, verb, request.query_params.multi_items())
        answer = await self._memories.run(request, call)
        await Response(answer, media_type=JSON)(scope, receive, send)


def _posted(verb: Verb, body: bytes, memory: Memory) -> bytes:
    return told(verb(memory, object_of(body)))


def _queried(verb: Verb, query: Iterable[tuple[str, str]], memory: Memory) -> bytes:
    return told(verb(memory, arguments_of(verb, query)))


def methods_of(verb: Verb) -> tuple[str, ...]:
    """Return the methods by which a verb is asked."""
    return _CHANGING if verb.changes else _READING


def _verb(name: str) -> Verb:
    try:
        return verb_of(name)
    except InvalidInput as error:
        raise HTTPException(404, str(error)) from None
