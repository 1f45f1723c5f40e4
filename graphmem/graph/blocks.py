"""Blocks: texts and media, each found by an id that its content makes.

The text about a medium is a part of its content: two people may show the same picture, and neither reads the words of
the other. Writing a block again adds to what is known of it and clears nothing.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from graphmem.config import check_count
from graphmem.core.choices import MODALITIES
from graphmem.core.keys import clean_text
from graphmem.core.model import Block
from graphmem.core.redaction import redact
from graphmem.errors import InvalidInput, NotFound
from graphmem.graph.scenes import attach_text, detach_text, scenes_of_text
from graphmem.store import text_index
from graphmem.store.transaction import Transaction

_ID_DIGITS = 24


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block that may be written."""

    id: str
    modality: str
    text: str
    payload: bytes | None
    digest: str
    mime: str
    width: int | None
    height: int | None
    source: str
    tool: str
    semantic_type: str

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return len(self.payload or b"")


def content_id(prefix: str, *parts: str) -> str:
    """Return the id of a content: the prefix and 24 hexadecimal digits of its SHA-256.

    >>> content_id("doc_", "hello")
    'doc_2cf24dba5fb0a30e26e83b2a'
    """
    return prefix + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_ID_DIGITS]


def check_block(
    text: str,
    *,
    modality: str,
    payload: bytes | None,
    width: int | None,
    height: int | None,
    **labels: str,
) -> NewBlock:
    """Return a block that may be written, without secrets. labels: mime, source, tool, semantic_type."""
    if modality not in MODALITIES:
        raise InvalidInput("modality", modality, f"give one of {', '.join(MODALITIES)}")
    cleaned = {name: redact(checked_text(name, value)) for name, value in {"text": text, **labels}.items()}
    if payload is not None and (modality == "text" or not isinstance(payload, bytes) or not payload):
        raise InvalidInput("payload", payload, "give the bytes of an image, a video or a sound, and name its modality")
    if not cleaned["text"] and payload is None:
        raise InvalidInput("text", text, "nothing to keep; give a text" + (", or a payload" * (modality != "text")))
    for name, value in (("width", width), ("height", height)):
        if value is not None:
            check_count(name, value, low=1)
    digest = "" if payload is None else hashlib.sha256(payload).hexdigest()
    block_id = content_id("blk_", modality, digest, cleaned["text"])
    return NewBlock(
        id=block_id, modality=modality, payload=payload, digest=digest, width=width, height=height, **cleaned
    )


def checked_text(name: str, value: object) -> str:
    """Return a text that can be stored, without white space around it."""
    if not isinstance(value, str):
        raise InvalidInput(name, value, "give a text")
    return clean_text(value).strip()


def put(
    tx: Transaction,
    new: NewBlock,
    scene_ids: Sequence[int],
    at: str,
    *,
    at_is_given: bool,
    in_row: bool,
) -> Block:
    """Write a block and attach it to scenes. A time that was not given never replaces a known one.

    in_row: keep the payload in the row; else the caller has written it to its file.
    """
    write(tx, new, at, at_is_given=at_is_given, in_row=in_row, openly=not scene_ids)
    attach_text(tx, scene_ids, "block", new.id, at)
    return get(tx, new.id)


def write(tx: Transaction, new: NewBlock, at: str, *, at_is_given: bool, in_row: bool, openly: bool) -> None:
    """Write a block as `put` does, and attach it to no scene. openly: it is in none, so for everybody."""
    (number,) = tx.execute(
        """INSERT INTO blocks(id, modality, text, payload, payload_digest, mime, size, width, height,
                              source, tool, semantic_type, openly, created_at, updated_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (id) DO UPDATE SET
               mime = CASE excluded.mime WHEN '' THEN blocks.mime ELSE excluded.mime END,
               width = COALESCE(excluded.width, blocks.width), height = COALESCE(excluded.height, blocks.height),
               source = CASE excluded.source WHEN '' THEN blocks.source ELSE excluded.source END,
               tool = CASE excluded.tool WHEN '' THEN blocks.tool ELSE excluded.tool END,
               semantic_type =
                   CASE excluded.semantic_type WHEN '' THEN blocks.semantic_type ELSE excluded.semantic_type END,
               openly = MAX(blocks.openly, excluded.openly),
               created_at = CASE ? WHEN 1 THEN excluded.created_at ELSE blocks.created_at END,
               updated_at = MAX(blocks.updated_at, excluded.updated_at)
           RETURNING num""",
        (new.id, new.modality, new.text, new.payload if in_row else None, new.digest, new.mime, new.size,
         new.width, new.height, new.source, new.tool, new.semantic_type, openly, at, at, int(at_is_given)),
    ).fetchone()  # fmt: skip
    text_index.replace(tx, "block", [number])


def knows(tx: Transaction, block_id: str) -> bool:
    """Tell whether there is a block of this id."""
    return tx.execute("SELECT 1 FROM blocks WHERE id = ?", (block_id,)).fetchone() is not None


def get(tx: Transaction, block_id: str) -> Block:
    """Return a block, with its payload when that lies in the row. Raises NotFound."""
    row = tx.execute(
        """SELECT id, modality, text, mime, size, payload_digest, width, height, source, tool, semantic_type,
                  created_at, updated_at, payload FROM blocks WHERE id = ?""",
        (block_id,),
    ).fetchone()
    if row is None:
        raise NotFound(f"no block has the id {block_id!r}")
    values = [*row[:11], scenes_of_text(tx, "block", block_id), *row[11:]]
    return Block(*values)


def delete(tx: Transaction, block_id: str) -> Block:
    """Remove a block from its scenes, its documents and the memory, and return it. Raises NotFound."""
    block = get(tx, block_id)
    detach_text(tx, "block", block_id)
    tx.execute("DELETE FROM document_blocks WHERE block_id = ?", (block_id,))
    (number,) = tx.execute("DELETE FROM blocks WHERE id = ? RETURNING num", (block_id,)).fetchone()
    text_index.drop(tx, "block", [number])
    return block


def uses_payload(tx: Transaction, digest: str) -> bool:
    """Tell whether a block has the payload of a digest."""
    row = tx.execute(
        "SELECT 1 FROM blocks WHERE payload_digest = ? AND payload_digest <> '' LIMIT 1", (digest,)
    ).fetchone()
    return row is not None


def bind(
    tx: Transaction, block_ids: Sequence[str], scene_ids: Sequence[int], at: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Attach those of the blocks that are in no scene to these scenes; return those attached, and those in none yet."""
    loose = tuple(block_id for block_id in block_ids if not scenes_of_text(tx, "block", block_id))
    for block_id in loose:
        attach_text(tx, scene_ids, "block", block_id, at)
    return (loose, ()) if scene_ids else ((), loose)
