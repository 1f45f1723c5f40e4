"""What was sent: a JSON object within limits, or the parameters of a query."""

import asyncio
import json
import math
from collections.abc import Iterable
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from graphmem.errors import InvalidInput
from graphmem.surfaces.http.bounds import Bounds
from graphmem.surfaces.http.refusals import JSON
from graphmem.surfaces.verbs import Verb, item_of, members_of

_DEEPEST = 64
_HANG_UP = {"Connection": "close"}  # what is left of the body is not read


FORM = "application/x-www-form-urlencoded"


async def read_body(request: Request, bounds: Bounds, *, kind: str = JSON) -> bytes:
    """Return the body of a request. Raises HTTPException for what is of another kind, too large or too slow."""
    if not _is(kind, request.headers):
        raise HTTPException(415, f"send it in UTF-8, with Content-Type: {kind}", _HANG_UP)
    too_large = HTTPException(413, f"send at most {bounds.body} bytes", _HANG_UP)
    length = request.headers.get("content-length", "0")
    if len(length) > len(str(bounds.body)) or int(length) > bounds.body:  # digits alone, as the server has looked
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(bounds.seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > bounds.body:
                    raise too_large
    except TimeoutError:
        raise HTTPException(408, f"send the body within {bounds.seconds:g} seconds", _HANG_UP) from None
    except ClientDisconnect:
        raise HTTPException(400, "the body broke off", _HANG_UP) from None
    return bytes(body)


def _is(wanted: str, headers: Headers) -> bool:
    kind, *parameters = (part.strip().lower() for part in headers.get("content-type", "").split(";"))
    charsets = (parameter.replace('"', "") for parameter in parameters if parameter.startswith("charset="))
    plain = headers.get("content-encoding", "identity").lower() == "identity"
    return plain and kind == wanted and all(name in ("charset=utf-8", "charset=utf8") for name in charsets)


def object_of(body: bytes) -> dict[str, Any]:
    """Return the object of a body in JSON. Raises InvalidInput for anything else.

    >>> object_of(b'{"limit": 5}')
    {'limit': 5}
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("body", _shown(body[error.start :]), f"is no UTF-8 at byte {error.start}") from None
    found = json_of("body", text)
    if not isinstance(found, dict):
        raise InvalidInput("body", text, "give an object that holds the arguments by name")
    return found


def json_of(name: str, text: str) -> object:
    """Return the value of a JSON text (RFC 8259); raise InvalidInput naming where it stood.

    What JSON leaves open is refused: a name that stands twice in an object, numbers that are none or have no end, more
    than 64 levels.

    >>> json_of("limit", "1e999")
    Traceback (most recent call last):
    graphmem.errors.InvalidInput: limit = '1e999': is no JSON: 1e999 is no number that fits
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        deep = True
    except ValueError as error:
        raise InvalidInput(name, _shown(text), f"is no JSON: {error}") from None
    else:
        deep = _is_deep(found)
    if deep:
        raise InvalidInput(name, _shown(text), f"give at most {_DEEPEST} levels")
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in an object")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is no number that fits")
    return number


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        if not level:
            return False
        level = [inner for each in level for inner in _inside(each)]
    return bool(level)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _shown(given: str | bytes) -> str | bytes:
    """Return the beginning, all that a message shows."""
    return given[:120]


def arguments_of(verb: Verb, query: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return the arguments that the parameters of a query name.

    What a verb takes as text is that text; all else is JSON: `limit=5`, `situation={"chan":"qq"}`. What takes several
    may be named several times. Only a body can say null where a text may be given. Raises InvalidInput naming the
    argument.
    """
    found: dict[str, object] = {}
    for name, text in query:
        argument = verb.arguments.get(name)
        kind = None if argument is None else argument.annotation
        item = item_of(kind)
        value = text if str in (*members_of(kind), item) or kind is None else json_of(name, text)
        if name not in found:
            found[name] = value
        elif item is None:
            raise InvalidInput(name, text, "give it once")
        else:
            before = found[name]
            found[name] = [*(before if isinstance(before, list) else [before]), value]
    return found
