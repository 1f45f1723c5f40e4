"""Sessions and their parts, notes. See `graphmem.core.model`."""

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


@dataclass(frozen=True, slots=True)
class Note:
    """A curated memory: a fact, a lesson, a rule. slot: what it is about, one live note of a scope each.

    status: live, proposed, archived, superseded or forgotten. seen: how often the same was remembered.
    superseded_by: the id of the note that took its slot. created_at, updated_at: for when it was told first, and last.
    """

    id: int
    kind: str
    title: str
    body: str
    slot: str
    labels: tuple[str, ...]
    scope: str
    status: str
    pinned: bool
    source: str
    seen: int
    created_at: str
    updated_at: str
    superseded_by: int | None


@dataclass(frozen=True, slots=True)
class RememberReport:
    """What remembering came to: the note; whether it is new; the ids of the notes whose slot it took."""

    note: Note
    created: bool
    superseded: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
