"""Who may ask at all: programs of this machine, and pages that this server gave out.

A page of any site can make a browser send requests to loopback; by DNS rebinding it can even read what is answered. So
the server must be named as it is named here, and a page that says where it comes from must come from here.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphmem.surfaces.http.refusals import refusal

NAMES = ("localhost", "127.0.0.1", "[::1]")
LONGEST_HEAD = 16 << 10  # bytes of a request before its body
_PORT_OF_HTTP = 80
_OWN_SITES = ("same-origin", "none")

# No page of this server needs more, but for what it allows itself.
_PROTECTED = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Gate:
    """An ASGI application before another: what may not ask gets 403, whatever it asks for."""

    def __init__(self, inner: ASGIApp, *, port: int) -> None:
        self._inner = inner
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":  # nobody here speaks by web socket
            await send({"type": "websocket.close", "code": 1008})
            return

        async def protect(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _PROTECTED.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._inner
        if _size_of(scope) > LONGEST_HEAD:
            answer = refusal(431, f"send at most {LONGEST_HEAD} bytes before the body", {"Connection": "close"})
        elif reason := refused(Headers(scope=scope), self._port):
            answer = refusal(403, reason)
        await answer(scope, receive, protect)


def _size_of(scope: Scope) -> int:
    """Return how many bytes the head of a request has, but for its marks.

    The server looks at what is not all there yet alone: a head that comes at once may be of any size.
    """
    asked = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    return asked + sum(len(name) + len(value) for name, value in scope["headers"])


def refused(headers: Headers, port: int) -> str:
    """Return why a request with these headers may not ask, '' where it may.

    >>> refused(Headers({"host": "LOCALHOST:8000"}), 8000)
    ''
    >>> refused(Headers({"host": "[::1]:8000", "origin": "http://localhost:8000"}), 8000)
    'Origin is not http://[::1]:8000: another page asks'
    """
    places = [f"{name}:{port}" for name in NAMES] + (list(NAMES) if port == _PORT_OF_HTTP else [])
    hosts = [host.lower() for host in headers.getlist("host")]
    if len(hosts) != 1 or hosts[0] not in places:
        return f"Host is none of {', '.join(places)}"
    if any(origin.lower() != f"http://{hosts[0]}" for origin in headers.getlist("origin")):
        return f"Origin is not http://{hosts[0]}: another page asks"
    if any(site.lower() not in _OWN_SITES for site in headers.getlist("sec-fetch-site")):
        return "Sec-Fetch-Site tells that another page asks"
    return ""
