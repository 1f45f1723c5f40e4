"""What a memory holds, in numbers."""

from collections.abc import Sequence

from graphmem.core.model import GrowthDay, Overview
from graphmem.core.times import days_before
from graphmem.graph import entities
from graphmem.graph.validity import holding
from graphmem.store.transaction import Transaction

_MOST_MENTIONED = 10
_COUNTED = ("entities", "scenes", "sentences", "notes", "incidents", "sessions", "parts", "blocks", "documents")


def overview(tx: Transaction, at: str, scopes: Sequence[str] | None) -> Overview:
    """Count the rows of each kind, and the facts that hold at an instant. scopes: of which names may be told."""
    holds, held = holding(at)
    totals = tx.execute(f"SELECT {', '.join(f'(SELECT COUNT(*) FROM {table})' for table in _COUNTED)}").fetchone()
    relations, relations_total = tx.execute(
        f"SELECT COUNT(*) FILTER (WHERE {holds}), COUNT(*) FROM relations r", held
    ).fetchone()
    seen, parameters = entities.visible(scopes)
    mentioned = tx.execute(
        f"SELECT e.name, e.mention_count FROM entities e WHERE TRUE {seen} ORDER BY e.mention_count DESC, e.id LIMIT ?",
        (*parameters, _MOST_MENTIONED),
    )
    return Overview(
        **dict(zip(_COUNTED, totals, strict=True)),
        relations=relations,
        relations_total=relations_total,
        most_mentioned=tuple(mentioned.fetchall()),
    )


_BROUGHT = {"relations": "recorded_at", "notes": "created_at", "scenes": "created_at", "parts": "recorded_at"}


def growth(tx: Transaction, at: str, days: int) -> tuple[GrowthDay, ...]:
    """Count what each of the last days brought, of what is still here, the day of an instant last."""
    each = [days_before(at, back)[:10] for back in reversed(range(days))]
    counts = {
        table: dict(
            tx.execute(
                f"SELECT substr({column}, 1, 10), COUNT(*) FROM {table} WHERE {column} >= ? GROUP BY 1", (each[0],)
            ).fetchall()
        )
        for table, column in _BROUGHT.items()
    }
    return tuple(GrowthDay(day, **{table: found.get(day, 0) for table, found in counts.items()}) for day in each)
