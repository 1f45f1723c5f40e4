"""Documents: texts kept as a whole, such as an archived stretch of conversation, until they are turned into facts."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphmem.core.keys import clean_text, text_list
from graphmem.core.model import Document
from graphmem.core.redaction import redact
from graphmem.core.tokens import content_words
from graphmem.errors import InvalidInput, NotFound
from graphmem.graph.blocks import checked_text, content_id, knows
from graphmem.graph.scenes import attach_text, detach_text, scenes_of_text
from graphmem.store import text_index
from graphmem.store.transaction import Transaction

_TAGS_KEPT = 10
_ENTITIES_KEPT = 20
_WORDS_IN_A_SUMMARY = 5


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document that may be written. summary is '' when none was given."""

    id: str
    text: str
    summary: str
    source: str
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    blocks: tuple[str, ...]


def check_document(
    text: str,
    *,
    summary: str,
    source: str,
    tags: str | Iterable[str],
    entities: str | Iterable[str],
    blocks: str | Iterable[str],
) -> NewDocument:
    """Return a document that may be written, without secrets."""
    cleaned = redact(checked_text("text", text))
    if not cleaned:
        raise InvalidInput("text", text, "nothing to keep; give a text")
    return NewDocument(
        id=content_id("doc_", cleaned),
        text=cleaned,
        summary=redact(checked_text("summary", summary)),
        source=redact(checked_text("source", source)),
        tags=_words("tags", tags),
        entities=_words("entities", entities),
        blocks=_words("blocks", blocks),
    )


def _words(name: str, values: str | Iterable[str]) -> tuple[str, ...]:
    words = (redact(clean_text(each).strip()) for each in text_list(values, name))
    return tuple(dict.fromkeys(word for word in words if word))


def default_summary(text: str, source: str, entities: Sequence[str]) -> str:
    """Return where a text comes from, its number of lines, and what it is about, in no language of its own.

    >>> default_summary("please restart nginx\\nnginx runs again", "qq", ["web server"])
    'qq (2): web server, restart, nginx, runs'
    """
    about = dict.fromkeys([*entities, *content_words(text, _WORDS_IN_A_SUMMARY)])
    lines = sum(not line.isspace() and line != "" for line in text.splitlines())
    head = f"{source} ({lines})" if source else f"({lines})"
    return f"{head}: {', '.join(list(about)[:_WORDS_IN_A_SUMMARY])}" if about else head


def put(tx: Transaction, new: NewDocument, scene_ids: Sequence[int], at: str, *, at_is_given: bool) -> Document:
    """Write a document and attach it to scenes; one of the same text takes in what is new.

    Raises NotFound for a block that does not exist.
    """
    write(tx, new, at, at_is_given=at_is_given, openly=not scene_ids)
    attach_text(tx, scene_ids, "document", new.id, at)
    return get(tx, new.id)


def write(tx: Transaction, new: NewDocument, at: str, *, at_is_given: bool, openly: bool) -> None:
    """Write a document as `put` does, and attach it to no scene. openly: it is in none, so for everybody."""
    known = _find(tx, new.id)
    tags = _united(known.tags if known else (), new.tags, _TAGS_KEPT)
    entities = _united(known.entities if known else (), new.entities, _ENTITIES_KEPT)
    source = new.source or (known.source if known else "")
    summary = new.summary or (known.summary if known else default_summary(new.text, source, entities))
    created_at = known.created_at if known and not at_is_given else at
    (number,) = tx.execute(
        """INSERT INTO documents(id, summary, text, source, tags, entities, openly, created_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (id) DO UPDATE SET summary = excluded.summary, source = excluded.source, tags = excluded.tags,
               entities = excluded.entities, openly = MAX(documents.openly, excluded.openly),
               created_at = excluded.created_at
           RETURNING num""",
        (new.id, summary, new.text, source, _json(tags), _json(entities), openly, created_at),
    ).fetchone()
    text_index.replace(tx, "document", [number])
    held = set(known.blocks if known else ())
    (free,) = tx.execute(
        "SELECT COALESCE(MAX(place) + 1, 0) FROM document_blocks WHERE document_id = ?", (new.id,)
    ).fetchone()
    fresh = dict.fromkeys(block_id for block_id in new.blocks if block_id not in held)
    for place, block_id in enumerate(fresh, free):
        if not knows(tx, block_id):
            raise NotFound(f"no block has the id {block_id!r}: put it before its document")
        tx.execute(
            "INSERT INTO document_blocks(document_id, block_id, place) VALUES (?, ?, ?)", (new.id, block_id, place)
        )


def _united(old: Sequence[str], new: Sequence[str], kept: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))[:kept]


def _json(words: Sequence[str]) -> str:
    return json.dumps(words, ensure_ascii=False)


def get(tx: Transaction, document_id: str) -> Document:
    """Return a document. Raises NotFound."""
    found = _find(tx, document_id)
    if found is None:
        raise NotFound(f"no document has the id {document_id!r}")
    return found


def is_known(tx: Transaction, document_id: str) -> bool:
    """Tell whether there is a document of this id."""
    return _find(tx, document_id) is not None


def _find(tx: Transaction, document_id: str) -> Document | None:
    row = tx.execute(
        """SELECT id, summary, text, source, tags, entities, access_count, last_access, created_at
           FROM documents WHERE id = ?""",
        (document_id,),
    ).fetchone()
    if row is None:
        return None
    blocks = tx.execute(
        "SELECT block_id FROM document_blocks WHERE document_id = ? ORDER BY place, block_id", (document_id,)
    )
    values = [
        *row[:4],
        *(tuple(json.loads(words)) for words in row[4:6]),
        tuple(block_id for (block_id,) in blocks),
        scenes_of_text(tx, "document", document_id),
        *row[6:],
    ]
    return Document(*values)


def count_access(tx: Transaction, document_ids: Sequence[str], at: str) -> None:
    """Count that documents were asked for."""
    tx.executemany(
        """UPDATE documents SET access_count = access_count + 1,
               last_access = MAX(COALESCE(last_access, ''), ?) WHERE id = ?""",
        [(at, document_id) for document_id in document_ids],
    )


def delete(tx: Transaction, document_id: str) -> Document:
    """Remove a document from its scenes and the memory and return it. Its blocks stay, under their own ids."""
    document = get(tx, document_id)
    detach_text(tx, "document", document_id)
    tx.execute("DELETE FROM document_blocks WHERE document_id = ?", (document_id,))
    (number,) = tx.execute("DELETE FROM documents WHERE id = ? RETURNING num", (document_id,)).fetchone()
    text_index.drop(tx, "document", [number])
    return document
