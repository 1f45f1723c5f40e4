"""What nothing uses any more: expired evidence, refs to what is gone, sentences and entities of no fact, old journals.

Each part finds ids by reading, for as long as it takes, and then removes them in short transactions, each of which
looks again.
"""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass

from graphmem.config import Config
from graphmem.core.times import days_before
from graphmem.graph.scenes import REF_TARGETS
from graphmem.records.drafts import needs_a_person
from graphmem.store import text_index
from graphmem.store.transaction import Transaction
from graphmem.upkeep.journal import NUMBERS, SENTENCES, TABLES, TEXTS, Journal, drop_operations, rows_of


@dataclass(frozen=True, slots=True)
class Litter:
    """Rows of a table that nothing uses. key: the column of their ids; found: the condition; total: rows of the table.

    The condition holds still when they are removed, or they stay.
    """

    table: str
    key: str
    found: str
    ids: Sequence[int | str]
    total: int


_CONDITIONS = {
    "scene_refs": " AND ".join(
        f"NOT (kind = '{kind}' AND EXISTS (SELECT 1 FROM {place}))" for kind, place in REF_TARGETS.items()
    ),
    "sentences": """NOT EXISTS (SELECT 1 FROM relations r WHERE r.sentence_id = sentences.id)
                    AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.sentence_id = sentences.id)
                    AND NOT EXISTS (SELECT 1 FROM scene_refs f WHERE f.sentence_id = sentences.id)""",
    "entities": """NOT EXISTS (SELECT 1 FROM relations r WHERE r.source_id = entities.id)
                   AND NOT EXISTS (SELECT 1 FROM relations r WHERE r.target_id = entities.id)
                   AND NOT EXISTS (SELECT 1 FROM scene_refs f WHERE f.kind = 'entity' AND f.ref_id = entities.id)
                   AND NOT EXISTS (SELECT 1 FROM entity_aliases a WHERE a.entity_id = entities.id)
                   AND NOT EXISTS (SELECT 1 FROM entities_apart p WHERE entities.id IN (p.a, p.b))""",
}


def find_litter(tx: Transaction, table: str) -> Litter:
    """Return the rows of a table that nothing uses: of scene_refs, sentences or entities."""
    found = _CONDITIONS[table]
    # An undo may need a sentence that nothing else uses.
    spared = f" AND id NOT IN ({SENTENCES})" if table == "sentences" else ""
    ids = [row_id for (row_id,) in tx.execute(f"SELECT id FROM {table} WHERE {found}{spared} ORDER BY id")]
    return Litter(table, "id", found, ids, _count(tx, table))


def find_expired(tx: Transaction, at: str, days: float) -> Litter:
    """Return the labels that were met too long ago to make a scene with a visit of today."""
    found = f"updated_at < '{days_before(at, days)}'"
    labels = [label for (label,) in tx.execute(f"SELECT label FROM situation_evidence WHERE {found} ORDER BY label")]
    return Litter("situation_evidence", "label", found, labels, _count(tx, "situation_evidence"))


def remove(tx: Transaction, litter: Litter, ids: Sequence[int | str], kind: str, at: str) -> int | None:
    """Remove what is still used by nothing; return the operation, None when there was nothing left to remove."""
    journal = Journal(tx)
    listed = TEXTS if litter.key == "label" else NUMBERS
    condition = f"{litter.key} IN {listed} AND {litter.found} ORDER BY {litter.key}"
    rows = rows_of(tx, litter.table, condition, (json.dumps(ids),))
    for row in rows:
        journal.delete(litter.table, row)
    if not rows:
        return None
    if shown := TABLES[litter.table].indexed:
        text_index.drop(tx, shown[0], [row["id"] for row in rows])
    return journal.close(kind, at, {"rows of": litter.table, "before": litter.total, "removed": len(rows)})


def old_operations(tx: Transaction, at: str, days: float) -> list[int]:
    """Return the operations whose time to be undone is over."""
    rows = tx.execute("SELECT id FROM operations WHERE at < ? ORDER BY id", (days_before(at, days),))
    return [one for (one,) in rows]


def drop_old(tx: Transaction, operation_ids: Sequence[int], at: str) -> int:
    """Drop operations with the rows they kept, and write down how many; return that operation."""
    rows = drop_operations(tx, operation_ids)
    return Journal(tx).close("drop journal", at, {"operations": len(operation_ids), "rows": rows})


def trim_days(tx: Transaction, at: str, days: float) -> None:
    """Forget the days of use that count for no ref, and for none that an undo could bring back."""
    tx.execute(
        """DELETE FROM active_days
           WHERE day < ? AND day <= COALESCE((SELECT MIN(substr(decayed_at, 1, 10)) FROM scene_refs), day)""",
        (days_before(at, days)[:10],),
    )


def old_sessions(tx: Transaction, at: str, days: float, *, among: Sequence[str] | None = None) -> list[str]:
    """Return the names of the sessions in which nothing was said for so many days. among: of these, None for of all."""
    named, parameters = _among("s.name", TEXTS, among)
    rows = tx.execute(
        f"""SELECT name FROM sessions s
            WHERE COALESCE((SELECT COALESCE(p.at, p.recorded_at) FROM parts p WHERE p.session_id = s.id
                            ORDER BY p.seq DESC LIMIT 1), s.updated_at) < ? {named} ORDER BY s.id""",
        (days_before(at, days), *parameters),
    )
    return [name for (name,) in rows]


def old_checkpoints(
    tx: Transaction, at: str, days: float, config: Config, *, among: Sequence[int] | None = None
) -> list[int]:
    """Return the ids of the live checkpoints that are as old, without those that bind: a person puts them away.

    among: of these, None for of all.
    """
    named, parameters = _among("id", NUMBERS, among)
    rows = tx.execute(
        f"""SELECT id, slot FROM notes
            WHERE kind = 'checkpoint' AND status = 'live' AND pinned = 0 AND updated_at < ? {named} ORDER BY id""",
        (days_before(at, days), *parameters),
    )
    return [note_id for note_id, slot in rows if not needs_a_person("checkpoint", slot, config)]


def _among(column: str, listed: str, values: Sequence[object] | None) -> tuple[str, list[str]]:
    return ("", []) if values is None else (f"AND {column} IN {listed}", [json.dumps(list(values))])


def is_due(tx: Transaction, name: str, at: str, days: float) -> bool:
    """Tell whether a step was last done so many days ago."""
    row = tx.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
    return row is None or _seconds(at) - row[0] >= days * 86_400


def mark_done(tx: Transaction, name: str, at: str) -> None:
    """Note when a step was done."""
    tx.execute(
        "INSERT INTO counters(name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, _seconds(at)),
    )


def _seconds(at: str) -> int:
    return int(dt.datetime.fromisoformat(at).timestamp())


def _count(tx: Transaction, table: str) -> int:
    (count,) = tx.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
    return int(count)
