"""What a memory holds, in numbers."""

import sqlite3

from graphmem.core.model import Overview
from graphmem.graph.validity import holding

_MOST_MENTIONED = 10
_COUNTED = ("entities", "scenes", "sentences", "notes", "sessions", "parts", "blocks", "documents")


def overview(tx: sqlite3.Connection, at: str) -> Overview:
    """Count the rows of each kind, and the facts that hold at an instant."""
    holds, held = holding(at)
    totals = tx.execute(f"SELECT {', '.join(f'(SELECT COUNT(*) FROM {table})' for table in _COUNTED)}").fetchone()
    relations, relations_total = tx.execute(
        f"SELECT COUNT(*) FILTER (WHERE {holds}), COUNT(*) FROM relations r", held
    ).fetchone()
    mentioned = tx.execute(
        "SELECT name, mention_count FROM entities ORDER BY mention_count DESC, id LIMIT ?", (_MOST_MENTIONED,)
    )
    return Overview(
        **dict(zip(_COUNTED, totals, strict=True)),
        relations=relations,
        relations_total=relations_total,
        most_mentioned=tuple(mentioned.fetchall()),
    )
