"""Scenes: what entering one came to, what answers a situation, what is listed. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visit:
    """What entering a scene came to.

    key: the scene that grew from such situations, '' while there is none (and '' given to a recall means all scenes).
    created: it grew just now. keys: declared keys, then the visited scene; for reading them exactly, and never for
    writing, since others read them too. write_keys: where new facts of this turn belong, and nowhere else.
    similarity: how well the scene fitted before this visit, 0 to 1. strength: the scene's, this visit counted.
    """

    key: str = ""
    created: bool = False
    similarity: float = 0.0
    strength: int = 0
    keys: tuple[str, ...] = ()
    write_keys: tuple[str, ...] = ()
    declared_created: tuple[str, ...] = ()

    @property
    def primary(self) -> str:
        """The visited scene, else the first declared one, else ''."""
        return self.key or next(iter(self.keys), "")

    @property
    def emergent(self) -> bool:
        """Whether a scene that grew by itself was visited."""
        return bool(self.key)


@dataclass(frozen=True, slots=True)
class DeclaredScene:
    """A scene that a person or a program named."""

    key: str
    created: bool
    strength: int


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
