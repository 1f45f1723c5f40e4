"""Sessions and their parts. See `graphmem.core.model`."""

import datetime as dt
from dataclasses import dataclass, field

from graphmem.core.times import read_time
from graphmem.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a session, verbatim: a message, or what a tool answered.

    id: what its host calls it, unique within the session. at: when it was said, None where that is unknown.
    """

    id: str
    author: str = field(default="", kw_only=True)
    role: str = field(default="", kw_only=True)
    text: str = field(kw_only=True)
    at: dt.datetime | str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("id", "author", "role", "text"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(name, getattr(self, name), "give a text")
        if not self.id.strip():
            raise InvalidInput("id", self.id, "give each part an id, so that telling it twice changes nothing")
        if self.at is not None:
            read_time(self.at, dt.UTC)


@dataclass(frozen=True, slots=True)
class MirrorReport:
    """What mirroring came to: new parts, parts told otherwise than before, parts that were known."""

    session: str
    added: int
    changed: int
    known: int
    remarks: tuple[str, ...] = ()
