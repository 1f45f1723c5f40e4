"""What entering a scene, and declaring one, came to. See `graphmem.core.model`."""

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
