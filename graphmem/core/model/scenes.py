"""Scenes as they are listed, and what answers a situation. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scene:
    """One row of `scenes`. features and refs are counts; refs to relations that do not hold now do not count."""

    key: str
    origin: str
    strength: int
    visits: int
    features: int
    refs: int
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class SceneFeature:
    """A feature of a scene. weight: the greatest that a turn gave; share: what a visit gives on average."""

    feature: str
    weight: float
    share: float


@dataclass(frozen=True, slots=True)
class StrengthDay:
    """How strong a scene was when upkeep last looked on a day (UTC)."""

    day: str
    strength: int


@dataclass(frozen=True, slots=True)
class SceneDetail:
    """A scene with its features, what weighs most at a visit first; other keys that lead to it; its strength by day."""

    scene: Scene
    features: tuple[SceneFeature, ...]
    aliases: tuple[str, ...]
    strengths: tuple[StrengthDay, ...]


@dataclass(frozen=True, slots=True)
class SharedFeature:
    """A feature that a situation and a scene have in common, with its weight in each."""

    feature: str
    here: float
    there: float


@dataclass(frozen=True, slots=True)
class SceneMatch:
    """A scene that answers a situation: its score, the features they share, and whether it is the one to be joined.

    ground: 'person' when it answers because it names the same people, else 'score'.
    """

    key: str
    score: float
    joins: bool
    ground: str
    strength: int
    shared: tuple[SharedFeature, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Visits that no scene answered yet, counted under the label of the scene that may grow from them."""

    label: str
    count: int
    updated_at: str
