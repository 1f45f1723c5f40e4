"""What every surface but Python says: values as JSON, and refusals in one form with their codes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphmem.core.addresses import without_passwords
from graphmem.errors import (
    Conflict,
    GraphmemError,
    InvalidInput,
    NotFound,
    SecretRefused,
    StoreBusy,
    WriterFailed,
)
from graphmem.late import late

if TYPE_CHECKING:
    import binascii
    import dataclasses
    import json
else:
    binascii = late("binascii")
    dataclasses = late("dataclasses")
    json = late("json")

# The exit code of a command and the status of HTTP (RFC 9110), by the first class that fits.
_CODES: tuple[tuple[type[GraphmemError], int, int], ...] = (
    (NotFound, 3, 404),
    (StoreBusy, 4, 503),
    (InvalidInput, 1, 400),
    (SecretRefused, 1, 422),
    (Conflict, 1, 409),
    (WriterFailed, 1, 502),
    (GraphmemError, 1, 500),
)


_LONGEST_NUMBER = 18  # digits of what SQLite holds at any rate


def whole_number(text: str) -> int | None:
    """Return the number that digits tell, None for any other text and for one that nothing here can have.

    >>> whole_number("12"), whole_number("1.5"), whole_number("9" * 19)
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def exit_code(error: GraphmemError) -> int:
    """Return the exit code of a command that ends with this error.

    >>> exit_code(NotFound("note 7 is unknown"))
    3
    """
    return next(code for kind, code, _ in _CODES if isinstance(error, kind))


def http_status(error: GraphmemError) -> int:
    """Return the status of an answer that tells this error.

    >>> http_status(InvalidInput("limit", -1, "give 0 or more"))
    400
    """
    return next(status for kind, _, status in _CODES if isinstance(error, kind))


def refusal(kind: str, message: str, argument: str = "") -> dict[str, dict[str, str]]:
    """Return a refusal as it is told in JSON, by which no password of a server is told.

    argument: the one that is at fault, '' for none.

    >>> refusal("NotFound", "note 7 is unknown")
    {'error': {'type': 'NotFound', 'message': 'note 7 is unknown'}}
    """
    named = {"argument": argument} if argument else {}
    return {"error": {"type": kind, "message": without_passwords(message), **named}}


def refusal_of(error: GraphmemError) -> dict[str, dict[str, str]]:
    """Return how an error is told in JSON.

    >>> refusal_of(InvalidInput("limit", -1, "give 0 or more"))["error"]["argument"]
    'limit'
    """
    return refusal(type(error).__name__, str(error), getattr(error, "argument", ""))


def to_json(value: object, *, ascii_only: bool = False, indent: int | None = None) -> str:
    """Return a value as JSON: values of the model with their properties, bytes in Base64 (RFC 4648, section 4)."""
    return json.dumps(value, default=_plain, ensure_ascii=ascii_only, allow_nan=False, indent=indent)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in told_names(type(value))}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def told_names(kind: type) -> tuple[str, ...]:
    """Return what is told of a value: its fields, then its properties."""
    fields = [field.name for field in dataclasses.fields(kind)]
    return (*fields, *(name for name, member in vars(kind).items() if isinstance(member, property)))
