"""Sessions and their parts. See `graphmem.core.model`."""

import datetime as dt
from dataclasses import dataclass, field

from graphmem.core.times import read_time
from graphmem.errors import InvalidInput

OUTCOMES = ("", "done", "failed")


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a session, verbatim: a text of a message, or the call of a tool with what it answered.

    id: what its host calls it, unique within the session. message: the id of the message it is a piece of, '' where a
    message is one part. role: user, assistant, tool, system. tool: the tool that was called. outcome: of the call,
    'done' or 'failed', '' where there was none or it is not known. at: when it was said, None where that is unknown.
    """

    id: str
    author: str = field(default="", kw_only=True)
    role: str = field(default="", kw_only=True)
    text: str = field(kw_only=True)
    at: dt.datetime | str | None = field(default=None, kw_only=True)
    message: str = field(default="", kw_only=True)
    tool: str = field(default="", kw_only=True)
    outcome: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for name in ("id", "author", "role", "text", "message", "tool", "outcome"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(name, getattr(self, name), "give a text")
        if not self.id.strip():
            raise InvalidInput("id", self.id, "give each part an id, so that telling it twice changes nothing")
        if self.outcome not in OUTCOMES:
            raise InvalidInput("outcome", self.outcome, "give 'done' or 'failed', or leave it out")
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
class StoredPart:
    """A part as it is stored. id: its number in this memory; part: what its host calls it.

    scope: that of its session. at: when it was said, and where that is not known, when it was recorded.
    """

    id: int
    part: str
    session: str
    scope: str
    message: str
    author: str
    role: str
    tool: str
    outcome: str
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A mirrored session. undigested: parts that no checkpoint has read yet. failures: of checkpoints, in a row.

    own: it is that of a writer of this memory. first_at, last_at: when its first and last part were said.
    """

    name: str
    scope: str
    parts: int
    undigested: int
    failures: int
    own: bool
    first_at: str
    last_at: str


@dataclass(frozen=True, slots=True)
class PastHit:
    """A part that answers a query. score: 0 to 1, comparable within one answer. snippet: the place in its text."""

    part: StoredPart
    score: float
    snippet: str


@dataclass(frozen=True, slots=True)
class DeletedParts:
    """How many parts of a session were removed."""

    session: str
    removed: int


@dataclass(frozen=True, slots=True)
class HarvestReport:
    """What reading transcripts came to: how many sources and sessions; new, changed and known parts.

    own: sessions left out since a writer of this memory is at work in them. failed: sources that cannot be read, and
    why.
    """

    sources: int
    sessions: int
    added: int
    changed: int
    known: int
    own: int
    failed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
