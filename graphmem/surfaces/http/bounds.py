"""How much may be asked at once, since when nobody has asked, and that nobody shall any more."""

import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.surfaces.http.refusals import refusal

EVENTS = "/events"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server takes. body: bytes of one. seconds: until one has to be here. requests: at once.

    streams: of changes, at once. poll: seconds between two looks for changes. beat: seconds of silence in a stream.
    """

    body: int = 16 << 20
    seconds: float = 10.0
    requests: int = 64
    streams: int = 32
    poll: float = 0.5
    beat: float = 15.0


class Load:
    """How many requests are being answered, and when the last one ended, by the clock of `time.monotonic`.

    is_over: whether the server ends, so that what has no end of its own has to.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.is_over = False
        self._last = time.monotonic()

    def begin(self) -> None:
        """Count a request."""
        self.requests += 1

    def end(self) -> None:
        """Count a request no more."""
        self.requests -= 1
        self._last = time.monotonic()

    def idle_for(self) -> float:
        """Return for how many seconds nothing was asked."""
        return 0.0 if self.requests else time.monotonic() - self._last


class Bounded:
    """An ASGI application before another, which takes no more requests at once than it can.

    What streams is bounded by itself, and is no use: a page that is left open keeps no server alive.
    """

    def __init__(self, inner: ASGIApp, *, most: int, load: Load) -> None:
        self._inner = inner
        self._most = most
        self._load = load

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan" or scope["path"] == EVENTS:
            await self._inner(scope, receive, send)
            return
        if self._load.requests >= self._most:
            busy = refusal(503, f"{self._most} requests are being answered; ask again", {"Retry-After": "1"})
            await busy(scope, receive, send)
            return
        self._load.begin()
        try:
            await self._inner(scope, receive, send)
        finally:
            self._load.end()
