"""What lies around an entity, and ways between two. See `graphmem.core.model`."""

from dataclasses import dataclass

from graphmem.core.model.recalled import RecalledRelation


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity of a neighbourhood: hops from what was looked for, 0 for what was found by its name.

    tier: how its name was found, 'exact', 'prefix' or 'contains'; '' for one that was reached by a fact.
    """

    id: int
    name: str
    type: str
    mentions: int
    hops: int
    tier: str


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities found by their names and what facts lead to from there, the nearest first. Falsy when nothing was found.

    keywords: what was looked for, in canonical form. relations: facts of the entities within reach, each once.
    """

    keywords: tuple[str, ...] = ()
    entities: tuple[Neighbour, ...] = ()
    relations: tuple[RecalledRelation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entities)


@dataclass(frozen=True, slots=True)
class FactPath:
    """The shortest way of facts from one entity to another. connected: whether there is one.

    steps: its facts in order, each told in its own direction; none when the two are one entity, or not connected.
    """

    start: str
    end: str
    connected: bool
    steps: tuple[RecalledRelation, ...] = ()
