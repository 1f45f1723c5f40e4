"""Who may write, or read: who has the token, as a program in a header or as a browser in a cookie."""

import hmac
import secrets

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

_BYTES = 32


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(_BYTES)


class Doorkeeper:
    """Knows the token of a server, and the cookie in which a browser keeps it.

    private: whether reading needs it too.
    """

    def __init__(self, token: str, port: int, *, private: bool = False) -> None:
        self._token = token.encode()
        self.private = private
        self.cookie = f"graphmem-{port}"  # a browser has one jar for all ports of a host

    def admits(self, request: Request) -> bool:
        """Tell whether a request may write.

        A cookie counts only where the browser says that the page is one of this server: pages of other servers on this
        machine get it sent along.
        """
        own_page = "origin" in request.headers or request.headers.get("sec-fetch-site") == "same-origin"
        return self._has_token(request, from_page=own_page)

    def _has_token(self, request: Request, *, from_page: bool) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme:
            return scheme.lower() == "bearer" and self._is_token(given.strip())
        return from_page and self._is_token(request.cookies.get(self.cookie, ""))

    def knows(self, request: Request) -> bool:
        """Tell whether a browser was let in, wherever its request comes from: whether to show it how to write."""
        return self._has_token(request, from_page=True)

    def require(self, request: Request) -> None:
        """Raise the HTTPException 401 where a request may not write, 403 where only its page is not known."""
        if not self.admits(request):
            raise self._refused(request, "writing")

    def require_reading(self, request: Request) -> None:
        """Raise the same where a request may not read. A page that its user opened may, by the cookie."""
        if not self.private or self.admits(request):
            return
        opened = request.method in ("GET", "HEAD") and request.headers.get("sec-fetch-site") == "none"
        if not self._has_token(request, from_page=opened):
            raise self._refused(request, "reading")

    def _refused(self, request: Request, what: str) -> HTTPException:
        if self.knows(request):
            message = (
                f"{what} with the cookie needs Origin or Sec-Fetch-Site: same-origin, and this request does not say "
                "that it comes from a page of this server; a program sends Authorization: Bearer TOKEN"
            )
            return HTTPException(403, message)
        message = f"{what} needs the token that 'graphmem serve' shows: send Authorization: Bearer TOKEN"
        return HTTPException(401, message, {"WWW-Authenticate": 'Bearer realm="graphmem"'})

    async def enter(self, request: Request) -> Response:
        """Give a browser that opened the address with the token a cookie, and show it the first page."""
        if not self._is_token(request.query_params.get("token", "")):
            message = "open the whole address that 'graphmem serve' shows; its token is a new one after each start"
            raise HTTPException(401, message, {"WWW-Authenticate": 'Bearer realm="graphmem"'})
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self.cookie, self._token.decode(), httponly=True, samesite="strict")
        return answer

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token)
