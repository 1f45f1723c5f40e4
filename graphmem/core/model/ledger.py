"""What holds for everybody. See `graphmem.core.model`."""

from dataclasses import dataclass

from graphmem.core.model.incidents import Incident
from graphmem.core.model.recalled import RecalledNote


@dataclass(frozen=True, slots=True)
class Ledger:
    """What holds for everybody: facts and lessons in no scene, those told last first; failures that repeat."""

    facts: tuple[RecalledNote, ...] = ()
    lessons: tuple[RecalledNote, ...] = ()
    incidents: tuple[Incident, ...] = ()
