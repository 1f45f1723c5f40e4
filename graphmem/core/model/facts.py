"""Facts that come in, and what a commit made of them. See `graphmem.core.model`."""

import datetime as dt
from dataclasses import dataclass, field

from graphmem.config import check_number
from graphmem.core.keys import name_problem
from graphmem.core.times import read_time
from graphmem.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact to remember: subject, relation, object, and the sentence that said it.

    confidence lies above 0 and is at most 1. valid_from and valid_to (half-open) say when the fact holds in the world.
    A functional relation has one value at a time: a new one closes the old one. One that had successive values stays
    functional, also when that is left out.

    >>> Triple("老大", "偏好", "纯文本", confidence=0.9).object
    '纯文本'
    """

    subject: str
    relation: str
    object: str
    sentence: str = field(default="", kw_only=True)
    confidence: float = field(default=1.0, kw_only=True)
    valid_from: dt.datetime | str | None = field(default=None, kw_only=True)
    valid_to: dt.datetime | str | None = field(default=None, kw_only=True)
    functional: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.sentence, str):
            raise InvalidInput("sentence", self.sentence, "give the sentence as text")
        check_number("confidence", self.confidence, low=0.0, high=1.0)
        if not self.confidence:
            raise InvalidInput("confidence", self.confidence, "give a number above 0; leave it out when it is unknown")
        if not isinstance(self.functional, bool):
            raise InvalidInput("functional", self.functional, "give true or false")
        for name in ("valid_from", "valid_to"):
            if getattr(self, name) is not None:
                read_time(getattr(self, name), dt.UTC, argument=name)


def triple_problem(triple: Triple) -> str:
    """Return why a triple cannot be written, '' when it can.

    >>> triple_problem(Triple("", "likes", "tea"))
    'subject: nothing that can be seen is left of the name'
    """
    names = {"subject": triple.subject, "relation": triple.relation, "object": triple.object}
    return next((f"{end}: {reason}" for end, name in names.items() if (reason := name_problem(name))), "")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A triple that was not written: its place in the batch, itself, and why."""

    index: int
    triple: Triple
    reason: str


@dataclass(frozen=True, slots=True)
class CommitReport:
    """What a commit wrote. relations holds an id for each triple in order, None for a refused one.

    created: facts new to the memory, or active again. repeated: facts that were known. superseded: older values closed.
    """

    created: int
    repeated: int
    superseded: int
    refused: tuple[Refusal, ...]
    relations: tuple[int | None, ...]
    scenes: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def written(self) -> int:
        """The number of triples that were written; 0 means that nothing was remembered."""
        return self.created + self.repeated
