"""What a replayed log came to. See `graphmem.core.model`."""

from dataclasses import dataclass

from graphmem.core.model.recalled import RecalledRelation
from graphmem.core.model.scenes import Scene


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a replay left behind in one scene: the scene, and the facts it brings back."""

    scene: Scene
    relations: tuple[RecalledRelation, ...]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replayed log came to."""

    turns: int
    unplaced: int
    facts: int
    refused: int
    seconds: float
    learnt: tuple[Learnt, ...]
    remarks: tuple[str, ...] = ()
