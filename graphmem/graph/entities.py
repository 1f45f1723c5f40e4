"""Entities: one row a thing, found by its canonical key or by an alias that a merge left behind."""

import fnmatch
import re
import sqlite3

from graphmem.core.keys import entity_key
from graphmem.store import text_index


def mention(tx: sqlite3.Connection, name: str, at: str) -> int:
    """Return the id of an entity, made or counted once more; an exact key always comes before anything else."""
    key = entity_key(name)
    alias = tx.execute(
        """UPDATE entities SET mention_count = mention_count + 1, updated_at = MAX(updated_at, ?)
           WHERE id = (SELECT entity_id FROM entity_aliases WHERE key = ?) RETURNING id""",
        (at, key),
    ).fetchone()
    if alias is not None:
        return int(alias[0])
    entity_id, mentions = tx.execute(
        """INSERT INTO entities(name, key, created_at, updated_at) VALUES (?, ?, ?, ?)
           ON CONFLICT (key) DO UPDATE SET
               mention_count = mention_count + 1, updated_at = MAX(updated_at, excluded.updated_at)
           RETURNING id, mention_count""",
        (name, key, at, at),
    ).fetchone()
    if mentions == 1:
        text_index.add(tx, "entity", [entity_id])
    return int(entity_id)


def matching_glob(tx: sqlite3.Connection, pattern: str) -> list[int]:
    """Return the ids of entities whose name matches a case-sensitive pattern with `*`, `?` and `[...]`."""
    matches = re.compile(fnmatch.translate(pattern)).match
    return [entity_id for entity_id, name in tx.execute("SELECT id, name FROM entities ORDER BY id") if matches(name)]
