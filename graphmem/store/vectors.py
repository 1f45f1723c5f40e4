"""Vectors of what the text index holds: one a passage, written by who has an embedder, with the fingerprint of that.

A text has the vectors of one embedder, the last one that saw it; they go when it leaves the text index.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphmem.core.embedding import Embedder, embedded_passages, vectors_of
from graphmem.store import text_index
from graphmem.store.text_index import Text
from graphmem.store.transaction import Transaction

# Scenes and entities are names: their meaning is what is known of them.
KINDS = ("note", "relation", "sentence", "part", "document", "block")
_AT_ONCE = 256
_READ_AT_ONCE = 4_000


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A vector: its id, the kind of its text and the number of its passage in the text index, its bytes."""

    id: int
    kind: int
    passage: int
    vector: bytes


def put_indexed(tx: Transaction, embedder: Embedder) -> None:
    """Embed what was indexed in this transaction."""
    for kind in KINDS:
        ids = text_index.noted(tx, kind)
        for start in range(0, len(ids), _AT_ONCE):
            texts = text_index.texts(tx, kind, ids[start : start + _AT_ONCE])
            put(tx, embedder.fingerprint, kind, embedded(embedder, texts))


def embedded(embedder: Embedder, texts: Iterable[Text]) -> dict[int, list[bytes]]:
    """Return the vectors of texts by id, one for each passage."""
    passages = {text.ref_id: embedded_passages(text.head, text.body) for text in texts}
    flat = [passage for own in passages.values() for passage in own]
    rows = iter(vectors_of(embedder, flat))
    return {
        ref_id: [row.astype("<f4").tobytes() if row.any() else b"" for row in (next(rows) for _ in own)]
        for ref_id, own in passages.items()
    }


def put(tx: Transaction, fingerprint: str, kind: str, vectors: Mapping[int, Sequence[bytes]]) -> None:
    """Write the vectors of texts, by id, in place of those that they have."""
    text_index.drop_vectors(tx, kind, vectors)
    tx.executemany(
        "INSERT INTO vectors(kind, ref_id, passage, fingerprint, vector) VALUES (?, ?, ?, ?, ?)",
        [
            (text_index.CODES[kind], ref_id, passage, fingerprint, vector)
            for ref_id, own in vectors.items()
            for passage, vector in enumerate(own)
        ],
    )


def put_unchanged(
    tx: Transaction, fingerprint: str, kind: str, texts: Sequence[Text], made: Mapping[int, Sequence[bytes]]
) -> None:
    """Write the vectors of those texts that are still stored as they were when they were embedded."""
    stored = set(text_index.texts(tx, kind, [text.ref_id for text in texts]))
    put(tx, fingerprint, kind, {text.ref_id: made[text.ref_id] for text in texts if text in stored})


def lacking(tx: Transaction, fingerprint: str, kind: str, after: int) -> list[Text]:
    """Return some texts of a kind that have no vectors of an embedder, the first ones behind an id."""
    return text_index.texts_without_vectors(tx, kind, fingerprint, after, _AT_ONCE)


def count_lacking(tx: Transaction, fingerprint: str) -> int:
    """Return how many texts have no vectors of an embedder."""
    return sum(text_index.count_without_vectors(tx, kind, fingerprint) for kind in KINDS)


def state(tx: Transaction) -> tuple[int, int]:
    """Return the greatest id of a vector and how many were removed ever: equal when nothing has changed."""
    (greatest,) = tx.execute("SELECT COALESCE(MAX(id), 0) FROM vectors").fetchone()
    (removed,) = tx.execute("SELECT value FROM counters WHERE name = 'vectors_removed'").fetchone()
    return greatest, removed


def ids(tx: Transaction, fingerprint: str) -> set[int]:
    """Return the ids of the vectors of an embedder."""
    return {vector_id for (vector_id,) in tx.execute("SELECT id FROM vectors WHERE fingerprint = ?", (fingerprint,))}


def behind(tx: Transaction, fingerprint: str, after: int) -> Iterator[list[StoredVector]]:
    """Yield the vectors of an embedder behind an id, in chunks."""
    rows = tx.execute(
        "SELECT id, kind, ref_id, passage, vector FROM vectors WHERE id > ? AND fingerprint = ? ORDER BY id",
        (after, fingerprint),
    )
    while chunk := rows.fetchmany(_READ_AT_ONCE):
        yield [
            StoredVector(vector_id, kind, text_index.number_of(text_index.KINDS[kind], ref_id, passage), vector)
            for vector_id, kind, ref_id, passage, vector in chunk
        ]
