"""Blocks and documents. See `graphmem.core.model`."""

from dataclasses import dataclass, field

from graphmem.core.model.facts import CommitReport


@dataclass(frozen=True, slots=True)
class Block:
    """A text, or a picture, video or sound with the text that describes it.

    id: made of the content. digest: SHA-256 of the payload in hex, '' without one. size: bytes of the payload.
    width, height: pixels. payload: None when there is none or it was not asked for.
    """

    id: str
    modality: str
    text: str
    mime: str
    size: int
    digest: str
    width: int | None
    height: int | None
    source: str
    tool: str
    semantic_type: str
    scenes: tuple[str, ...]
    created_at: str
    updated_at: str
    payload: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """A text kept as a whole, with what it is about. id: made of the text. blocks: the ids of the blocks it came with.

    access_count, last_access: how often `query_documents` returned it, and when last.
    """

    id: str
    summary: str
    text: str
    source: str
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    blocks: tuple[str, ...]
    scenes: tuple[str, ...]
    access_count: int
    last_access: str | None
    created_at: str


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What became of a document turned into facts.

    bound: blocks put into the scenes of the facts. unbound: blocks that are in no scene, for which it is kept.
    removed: the document is gone, since something was written and every block of it is in a scene.
    """

    id: str
    facts: CommitReport
    bound: tuple[str, ...]
    unbound: tuple[str, ...]
    removed: bool
