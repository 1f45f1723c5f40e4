"""What may be read of a memory, for files that hold knowledge and no bookkeeping: entities, facts and notes."""

from collections.abc import Iterator
from typing import NamedTuple

from graphmem.core.choices import NOTE_KINDS
from graphmem.core.model import Note
from graphmem.graph.entities import visible
from graphmem.graph.neighbours import Reading
from graphmem.records.notes import list_notes
from graphmem.store.lists import EVERY_ROW
from graphmem.store.transaction import Transaction


class Entity(NamedTuple):
    """An entity: its id, its name, its type, its canonical key."""

    id: int
    name: str
    type: str
    key: str


class Fact(NamedTuple):
    """A fact between two entities, and the sentence that told it, '' for none."""

    source: int
    relation: str
    target: int
    sentence: str


def entities(tx: Transaction, reading: Reading) -> list[Entity]:
    """Return the entities that may be read, in the order they came."""
    seen, parameters = visible(reading.scopes)
    rows = tx.execute(f"SELECT id, name, type, key FROM entities e WHERE TRUE {seen} ORDER BY id", parameters)
    return [Entity(*row) for row in rows]


def facts(tx: Transaction, reading: Reading) -> Iterator[Fact]:
    """Yield the facts that hold and may be read, in the order they came; what several scopes say comes once."""
    condition, parameters = reading.condition()
    rows = tx.execute(
        f"""SELECT f.source_id, f.relation_type, f.target_id, told.sentence
            FROM (SELECT MIN(r.id) AS first, COALESCE(MAX(s.text), '') AS sentence
                  FROM relations r LEFT JOIN sentences s ON s.id = r.sentence_id
                  WHERE {condition} GROUP BY r.source_id, r.relation_key, r.target_id) told
            JOIN relations f ON f.id = told.first ORDER BY told.first""",
        parameters,
    )
    for row in rows:
        yield Fact(*row)


def notes(tx: Transaction, reading: Reading) -> list[Note]:
    """Return the notes that are live or proposed, in the order they came."""
    found = list_notes(tx, kinds=NOTE_KINDS, statuses=("live", "proposed"), scopes=reading.scopes, limit=EVERY_ROW)
    return sorted(found, key=lambda note: note.id)
