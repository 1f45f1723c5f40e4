"""What answers a query, and text for a prompt. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One part of a hit's score: value (0 to 1) times weight was added. told: how it came to it, for people."""

    part: str
    value: float
    weight: float
    told: str


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that answers a query. id: that of its kind; the given id for a part, a key for a scene.

    score: 0 to 1, comparable within one answer. source: who told it, for a part `session/author`. at: when it was said
    or written, UTC. scenes: keys of scenes that hold it. status: live or active, or superseded where the query asks for
    the past. reason, place: of a note, why it is kept and where it was first told. session: that of a part. why: what
    the score is made of, heaviest first; empty unless asked for.
    """

    kind: str
    id: int | str
    text: str
    score: float
    source: str = ""
    at: str = ""
    scenes: tuple[str, ...] = ()
    status: str = "active"
    pinned: bool = False
    reason: str = ""
    place: str = ""
    session: str = ""
    why: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """Text for a prompt, '' when there is nothing to tell.

    shown, left_out: what it tells of, and what was recalled and found no room, as pairs of kind and id, best first.
    scenes: the keys of the scenes that took part.
    """

    text: str = ""
    shown: tuple[tuple[str, int | str], ...] = ()
    left_out: tuple[tuple[str, int | str], ...] = ()
    scenes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)
