"""How much may be asked at once, and since when nobody has asked."""

import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from graphmem.surfaces.http.refusals import refusal


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server takes. body: bytes of one. seconds: until one has to be here. requests: at once."""

    body: int = 16 << 20
    seconds: float = 10.0
    requests: int = 64


class Load:
    """How many requests are being answered, and when the last one ended, by the clock of `time.monotonic`."""

    def __init__(self) -> None:
        self.requests = 0
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
    """An ASGI application before another, which takes no more requests at once than it can."""

    def __init__(self, inner: ASGIApp, *, most: int, load: Load) -> None:
        self._inner = inner
        self._most = most
        self._load = load

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
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
