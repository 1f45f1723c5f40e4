"""What scenes bring back. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecalledRelation:
    """A fact brought back. weight ranks it: of its ref in the scene, times the scene's score where there is one.

    sentence: the last one that told it in that scene. valid_from, valid_to: when it holds, None where that is open.
    """

    id: int
    subject: str
    relation: str
    object: str
    sentence: str
    confidence: float
    weight: float
    updated_at: str
    valid_from: str | None
    valid_to: str | None


@dataclass(frozen=True, slots=True)
class RecalledEntity:
    """An entity brought back."""

    id: int
    name: str
    type: str
    mentions: int
    weight: float


@dataclass(frozen=True, slots=True)
class RecalledBlock:
    """A block brought back, without its payload: `Memory.block` gives that."""

    id: str
    modality: str
    text: str
    mime: str
    size: int
    source: str
    semantic_type: str
    weight: float
    created_at: str


@dataclass(frozen=True, slots=True)
class RecalledDocument:
    """A document brought back by its summary: `Memory.query_documents` and `consume_document` give the text."""

    id: str
    summary: str
    source: str
    weight: float
    created_at: str


@dataclass(frozen=True, slots=True)
class RecalledNote:
    """A note brought back, and on which ground: scene, trigger, tool, ledger, or always for what binds everybody.

    load_when: the trigger that called it to mind, '' without one. overridden: a project's own rule goes before it.
    """

    id: int
    kind: str
    title: str
    body: str
    slot: str
    scope: str
    pinned: bool
    source: str
    reason: str
    updated_at: str
    weight: float
    ground: str
    load_when: str = ""
    overridden: bool = False


@dataclass(frozen=True, slots=True)
class Recollection:
    """What scenes brought back, best first. scenes: the keys of those that took part.

    notes: rules first, then what is pinned, then the others by weight.
    """

    scenes: tuple[str, ...] = ()
    relations: tuple[RecalledRelation, ...] = ()
    entities: tuple[RecalledEntity, ...] = ()
    blocks: tuple[RecalledBlock, ...] = ()
    documents: tuple[RecalledDocument, ...] = ()
    notes: tuple[RecalledNote, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.relations or self.entities or self.blocks or self.documents or self.notes)
