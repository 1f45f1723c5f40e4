"""How often notes were brought back, beside the notes: using one does not change it."""

from collections.abc import Mapping

from graphmem.store.transaction import Transaction


def count(tx: Transaction, uses: Mapping[int, int], at: str) -> None:
    """Add to how often notes were used; those that are gone by now are passed over."""
    tx.executemany(
        """INSERT INTO note_usage(note_id, hits, last_at) SELECT id, ?2, ?3 FROM notes WHERE id = ?1
           ON CONFLICT (note_id) DO UPDATE SET hits = note_usage.hits + excluded.hits,
               last_at = MAX(note_usage.last_at, excluded.last_at)""",
        [(note_id, hits, at) for note_id, hits in sorted(uses.items())],
    )


def of_note(tx: Transaction, note_id: int) -> tuple[int, str | None]:
    """Return how often a note was used, and when last."""
    row = tx.execute("SELECT hits, last_at FROM note_usage WHERE note_id = ?", (note_id,)).fetchone()
    return (0, None) if row is None else (int(row[0]), str(row[1]))
