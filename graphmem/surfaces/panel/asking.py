"""What a page is asked for, and what it answers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.datastructures import ImmutableMultiDict

from graphmem.errors import InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces.wire import whole_number

_HIGHEST = 10**9
Given = ImmutableMultiDict[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a page. here: path and query. number: the one in its path, 0 without one.

    given: what the query or, where something is to be done, the form holds. may_write: the browser has the token.
    """

    memory: Memory
    here: str
    given: Given
    number: int = 0
    may_write: bool = False

    def text(self, name: str, default: str = "") -> str:
        """Return a text without space around it; a text area sends its lines with CRLF."""
        return self.given.get(name, default).replace("\r\n", "\n").strip()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return what a field lists, one to a line."""
        return tuple(line.strip() for line in self.text(name).split("\n") if line.strip())

    def whole(self, name: str, default: int, *, low: int = 0, high: int = _HIGHEST) -> int:
        """Return a whole number. Raises InvalidInput for anything else."""
        text = self.text(name)
        if not text:
            return default
        number = whole_number(text)
        if number is None or not low <= number <= high:
            raise InvalidInput(name, text, f"give a whole number from {low} to {high}")
        return number

    def one_of(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of the choices. Raises InvalidInput for anything else."""
        text = self.text(name) or default
        if text not in choices:
            raise InvalidInput(name, text, f"give one of {', '.join(filter(None, choices))}")
        return text


@dataclass(frozen=True, slots=True)
class Shown:
    """A page that is shown: its template, and what that tells."""

    template: str
    told: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, told on the page that is shown next: a text of the catalogue, and a number in it.

    to: the path of that page, '' for the one that the form came from. operation: its number, for undo.
    """

    outcome: str
    number: int = 0
    to: str = ""
    operation: int | None = None


class Paging(NamedTuple):
    """A part of a list. page: its number from 1. more: there is another one behind it."""

    page: int
    size: int
    more: bool


def own_path(text: str) -> str:
    """Return a path of this server, '/' for anything that leads elsewhere.

    >>> own_path("/notes?page=2"), own_path("//evil.example"), own_path("/\\\\evil.example"), own_path("https://x")
    ('/notes?page=2', '/', '/', '/')
    """
    is_own = text.startswith("/") and text[1:2] not in ("/", "\\") and text.isprintable()
    return text if is_own else "/"
