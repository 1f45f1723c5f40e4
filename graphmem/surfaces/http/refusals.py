"""What is answered to what cannot be done, in the form that all surfaces share."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from graphmem import log
from graphmem.errors import GraphmemError
from graphmem.surfaces import wire

JSON = "application/json"

# RFC 9110, section 15.5 and 15.6.
KINDS = {
    400: "InvalidInput",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    413: "ContentTooLarge",
    415: "UnsupportedMediaType",
    422: "SecretRefused",
    431: "HeadTooLarge",
    500: "InternalError",
    502: "WriterFailed",
    503: "StoreBusy",
}


def told(value: object) -> bytes:
    """Return a value as JSON in UTF-8.

    >>> told("\\ud800é").decode()
    '"\\\\ud800é"'
    """
    # Half of a surrogate pair has no form in UTF-8; Python escapes it as JSON does.
    return wire.to_json(value).encode("utf-8", "backslashreplace")


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to what HTTP itself refuses."""
    return Response(told(wire.refusal(KINDS[status], message)), status, headers, JSON)


async def tell_error(request: Request, error: Exception) -> Response:
    """Answer with an error of a verb."""
    assert isinstance(error, GraphmemError)
    return Response(told(wire.refusal_of(error)), wire.http_status(error), media_type=JSON)


async def tell_http_error(request: Request, error: Exception) -> Response:
    """Answer with an error of the protocol."""
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, error.detail, error.headers)


ErrorPage = Callable[[Request, HTTPException], Awaitable[Response]]


def telling_browsers(page: ErrorPage) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return what answers with an error of the protocol: on a page where a browser shows it, else as ever."""

    async def tell(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        is_shown = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")
        return await (page if is_shown else tell_http_error)(request, error)

    return tell


async def tell_failure(request: Request, error: Exception) -> Response:
    """Answer with a fault of our own, of which nothing but the log tells more."""
    log.exception("%s %s failed", request.method, request.url.path)
    return refusal(500, "graphmem failed; its log tells why")
