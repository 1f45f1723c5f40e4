"""Entities: one row a thing, found by its canonical key or by an alias that a merge left behind."""

import difflib
import fnmatch
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from graphmem.core.keys import clean_text, entity_key
from graphmem.errors import InvalidInput, NotFound, StoreCorrupt
from graphmem.store.lists import in_parts, of_scopes
from graphmem.store.transaction import Transaction

# Names that an unknown one is compared with: a fraction of a second.
COMPARED = 5000
USUAL_TYPE = "Concept"


def mention(tx: Transaction, names: Sequence[str], at: str) -> tuple[list[int], list[int]]:
    """Return the ids of entities, made or counted once more a name, and of those the new ones, to be indexed."""
    keys = [entity_key(name) for name in names]
    mentions = Counter(keys)
    ids = known(tx, mentions)
    again = [(mentions[key], at, entity_id) for key, entity_id in ids.items()]
    tx.executemany(
        "UPDATE entities SET mention_count = mention_count + ?, updated_at = MAX(updated_at, ?) WHERE id = ?", again
    )
    fresh: list[int] = []
    for name, key in zip(names, keys, strict=True):
        if key not in ids:
            (ids[key],) = tx.execute(
                """INSERT INTO entities(name, key, mention_count, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
                   RETURNING id""",
                (name, key, mentions[key], at, at),
            ).fetchone()
            fresh.append(ids[key])
    return [ids[key] for key in keys], fresh


def newest(tx: Transaction) -> int:
    """Return the id of the entity that was made last, 0 where there is none."""
    return int(tx.execute("SELECT COALESCE(MAX(id), 0) FROM entities").fetchone()[0])


def known(tx: Transaction, keys: Iterable[str]) -> dict[str, int]:
    """Return the entities that keys lead to, by an alias rather than by their own key."""
    found: dict[str, int] = {}  # of two rows of one key the later stays, so aliases come last
    for part, marks in in_parts(keys):
        found.update(
            tx.execute(
                f"""SELECT key, id FROM entities WHERE key IN ({marks}) UNION ALL
                    SELECT a.key, e.id FROM entity_aliases a JOIN entities e ON e.id = a.entity_id
                    WHERE a.key IN ({marks})""",
                part + part,
            ).fetchall()
        )
    return found


def matching_glob(tx: Transaction, pattern: str) -> list[int]:
    """Return the ids of entities whose name matches a case-sensitive pattern with `*`, `?` and `[...]`."""
    matches = re.compile(fnmatch.translate(pattern)).match
    return [entity_id for entity_id, name in tx.execute("SELECT id, name FROM entities ORDER BY id") if matches(name)]


def visible(scopes: Sequence[str] | None) -> tuple[str, list[str]]:
    """Return the condition that an entity `e` is known by a fact of one of the scopes or of none, or stands alone."""
    in_scope, parameters = of_scopes(scopes)
    if not in_scope:
        return "", []
    ends = "FROM relations r WHERE (r.source_id = e.id OR r.target_id = e.id)"
    known = f"EXISTS (SELECT 1 {ends} AND r.status IN ('active', 'superseded') {in_scope})"
    return f"AND ({known} OR NOT EXISTS (SELECT 1 {ends}))", parameters


def require(tx: Transaction, name: str, scopes: Sequence[str] | None, *, argument: str) -> tuple[int, str]:
    """Return id and name of an entity.

    Raises NotFound for a name that is not known, telling the names close to it, StoreCorrupt for one that is the name
    of an entity and an alias as well.
    """
    key = entity_key(clean_text(name)) if isinstance(name, str) else ""
    if not key:
        raise InvalidInput(argument, name, "give the name of an entity")
    if tx.execute("SELECT 1 FROM entity_aliases a JOIN entities e ON e.key = a.key WHERE a.key = ?", (key,)).fetchone():
        loop = "is an entity and an alias as well: 'graphmem repair' removes the alias"
        raise StoreCorrupt(f"{argument}: {clean_text(name)!r} {loop}")
    seen, parameters = visible(scopes)
    row = tx.execute(
        f"""SELECT e.id, e.name FROM entities e
            WHERE (e.key = ? OR e.id IN (SELECT entity_id FROM entity_aliases WHERE key = ?)) {seen}""",
        (key, key, *parameters),
    ).fetchone()
    if row is not None:
        return int(row[0]), str(row[1])
    candidates = tx.execute(
        f"""SELECT e.key, e.name FROM entities e WHERE length(e.key) BETWEEN ? AND ? {seen}
            ORDER BY e.mention_count DESC, e.id LIMIT {COMPARED}""",
        (len(key) // 2, 2 * len(key), *parameters),
    )
    names = dict(candidates.fetchall())
    close = [names[found] for found in close_to(key, names)]
    hint = f"; close to it: {', '.join(close)}" if close else ""
    raise NotFound(f"{argument}: nothing is known of {clean_text(name)!r}{hint}")


def close_to(name: str, names: Collection[str]) -> list[str]:
    """Return at most three of some names that are spelled much like one, the most alike first.

    >>> close_to("sesion-1", ["session-1", "mail"])
    ['session-1']
    """
    return difflib.get_close_matches(name, names, cutoff=0.5)
