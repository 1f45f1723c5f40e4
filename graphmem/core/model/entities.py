"""Entities that may be one: pairs, merges, decisions. See `graphmem.core.model`."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FoldedFact:
    """Two facts that became equal: the id of the one that is gone, and of the one that took it in."""

    gone: int
    kept: int


@dataclass(frozen=True, slots=True)
class EntityMergeReport:
    """What merging one entity into another did, or with applied=False what it would.

    source, target: their names. moved: ids of the facts that now name the target. folded: facts that both had. loops:
    ids of facts between the two, which are deleted. refs_moved, refs_folded: places in scenes. aliases: names, in
    canonical form, that mean the target from now on. mentions: of both together. operation: its number, for undo.
    """

    source: str
    target: str
    moved: tuple[int, ...]
    folded: tuple[FoldedFact, ...]
    loops: tuple[int, ...]
    refs_moved: int
    refs_folded: int
    aliases: tuple[str, ...]
    mentions: int
    applied: bool
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class SimilarEntity:
    """One entity of a pair. sentence: the last one that told a fact of it, '' where there is none."""

    id: int
    name: str
    mentions: int
    sentence: str


@dataclass(frozen=True, slots=True)
class EntityPair:
    """Two entities that may be one; `a` is the one mentioned more, into which the other would be merged.

    similarity: of their names, 0 to 1. score: that, lifted by the neighbours that both have. shared: names of some of
    these, the most mentioned first. titled: one name is the other behind a title. machine: an arbiter may decide it;
    where digits, a version or a suffix differ, only a person may.
    """

    a: SimilarEntity
    b: SimilarEntity
    score: float
    similarity: float
    shared: tuple[str, ...]
    titled: bool
    machine: bool


@dataclass(frozen=True, slots=True)
class EntityReview:
    """Pairs of entities that may be one, best first. more: there are further ones. apart: pairs that are kept apart."""

    pairs: tuple[EntityPair, ...]
    more: bool
    entities: int
    apart: int
    remarks: tuple[str, ...] = ()


class Arbiter(Protocol):
    """What decides whether two entities are one."""

    def __call__(self, pair: EntityPair, /) -> str | None:
        """Return 'merge', 'apart', or None to leave the pair to a person."""
        ...


@dataclass(frozen=True, slots=True)
class ApartReport:
    """What keeping two entities apart came to: their names, and whether they are apart now.

    rounds: reviews of upkeep that still pass them over, None for all. operation: its number, for undo; None when it was
    so already.
    """

    a: str
    b: str
    apart: bool
    rounds: int | None
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class KeptApart:
    """Two entities that are kept apart since a time, in UTC. rounds: how many passes of upkeep yet, None for all."""

    a: str
    b: str
    since: str
    rounds: int | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of a pair that an arbiter was asked about.

    outcome: merge, apart, leave (to a person), or changed: others changed the pair meanwhile, and it stays as it is.
    operation: its number, for undo; None when nothing was changed.
    """

    a: str
    b: str
    outcome: str
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class SettleReport:
    """What an arbiter decided, pair by pair, and how many of each outcome there were."""

    pairs: tuple[Settlement, ...]

    @property
    def merged(self) -> int:
        """The number of pairs that are one now."""
        return self._count("merge")

    @property
    def apart(self) -> int:
        """The number of pairs that are kept apart now."""
        return self._count("apart")

    @property
    def left(self) -> int:
        """The number of pairs that a person has to decide."""
        return self._count("leave")

    @property
    def changed(self) -> int:
        """The number of pairs that others changed meanwhile."""
        return self._count("changed")

    def _count(self, outcome: str) -> int:
        return sum(pair.outcome == outcome for pair in self.pairs)
