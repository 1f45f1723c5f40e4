"""What another memory knows, as rows here: its scenes with their strength, its entities, with what and how strongly.

Counts are not added to those that are here: the greater one stays. So the same source can be taken in any number of
times, also after an interruption, and after it was used further. All functions take an open transaction and never
commit.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphmem.config import Config
from graphmem.core.keys import entity_key, kind_of, origin_of
from graphmem.core.situations import surplus_features
from graphmem.graph import entities
from graphmem.graph.relations import Fact, Saying, digest_of
from graphmem.graph.scenes import scene_id_of
from graphmem.store import postings, text_index
from graphmem.store.transaction import Transaction

# No count of another memory is taken for greater: it can be stored, and what is added to it later can be too.
MOST = 1 << 53


@dataclass(frozen=True, slots=True)
class ForeignScene:
    """A scene of another memory, its twins united. key: canonical. features: their greatest weights.

    spellings: its keys as they were written there. Times are as stored, '' where none is told.
    """

    key: str
    strength: int
    features: Mapping[str, float]
    spellings: tuple[str, ...]
    created_at: str
    updated_at: str

    @property
    def visits(self) -> int:
        """The visits that its profile stands for: without features it was never visited."""
        return max(self.strength, 1) if self.features else 0


@dataclass(frozen=True, slots=True)
class ForeignEntity:
    """An entity of another memory. type: '' where it has none. mentions: 0 where nobody counted.

    is_dated: the times are of that memory; else they are of the import, which says nothing of what is known.
    """

    name: str
    type: str
    mentions: int
    created_at: str
    updated_at: str
    is_dated: bool = True


# What the rows of a thing were before and after tells what became of it.
_Row = tuple[object, ...]


def take_in_scene(tx: Transaction, foreign: ForeignScene, at: str, config: Config) -> tuple[int, str]:
    """Make a scene, or let the one of its key be at least as strong; return its id, and added, changed or known.

    Its profile is that of its features met at each visit, each sharing the weight of its kind, so that their situation
    joins it at once. A scene that was visited more often here keeps its own profile.
    """
    scene_id = scene_id_of(tx, foreign.key)
    if scene_id is None:
        (scene_id,) = tx.execute(
            """INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at) VALUES (?, ?, 0, ?, ?, ?)
               RETURNING id""",
            (
                foreign.key,
                foreign.strength,
                origin_of(foreign.key),
                foreign.created_at or at,
                foreign.updated_at or at,
            ),
        ).fetchone()
        text_index.add(tx, "scene", [scene_id])
        outcome = "added"
        before: list[_Row] = []
    else:
        outcome = "known"
        before = _scene_rows(tx, scene_id)
        tx.execute(
            """UPDATE scenes SET strength = MAX(strength, ?), updated_at = MAX(updated_at, ?),
                   created_at = MIN(created_at, COALESCE(NULLIF(?, ''), created_at))
               WHERE id = ?""",
            (foreign.strength, foreign.updated_at, foreign.created_at, scene_id),
        )
    _take_in_profile(tx, scene_id, foreign, config)
    _take_in_spellings(tx, scene_id, foreign)
    if outcome == "known" and _scene_rows(tx, scene_id) != before:
        outcome = "changed"
    return scene_id, outcome


def _scene_rows(tx: Transaction, scene_id: int) -> list[_Row]:
    rows: list[_Row] = tx.execute("SELECT strength, visits FROM scenes WHERE id = ?", (scene_id,)).fetchall()
    rows += tx.execute("SELECT feature, weight, mass FROM scene_features WHERE scene_id = ?", (scene_id,)).fetchall()
    return rows


def _take_in_profile(tx: Transaction, scene_id: int, foreign: ForeignScene, config: Config) -> None:
    (visits,) = tx.execute("SELECT visits FROM scenes WHERE id = ?", (scene_id,)).fetchone()
    if visits >= foreign.visits:
        return
    sharing = Counter(map(kind_of, foreign.features))
    rows = [
        (scene_id, feature, weight, weight / sharing[kind_of(feature)] * foreign.visits, foreign.visits)
        for feature, weight in foreign.features.items()
    ]
    tx.executemany(
        """INSERT INTO scene_features(scene_id, feature, weight, mass, touched, posted) VALUES (?, ?, ?, ?, ?, NULL)
           ON CONFLICT (scene_id, feature) DO UPDATE SET weight = MAX(scene_features.weight, excluded.weight),
               mass = MAX(scene_features.mass, excluded.mass), touched = excluded.touched""",
        rows,
    )
    tx.execute("UPDATE scenes SET visits = ? WHERE id = ?", (foreign.visits, scene_id))
    kept = tx.execute("SELECT feature, mass, touched FROM scene_features WHERE scene_id = ?", (scene_id,))
    dropped = surplus_features({feature: (mass, touched) for feature, mass, touched in kept}, config)
    tx.executemany(
        "DELETE FROM scene_features WHERE scene_id = ? AND feature = ?", [(scene_id, feature) for feature in dropped]
    )
    postings.settle(tx, [scene_id])


def _take_in_spellings(tx: Transaction, scene_id: int, foreign: ForeignScene) -> None:
    tx.executemany(
        """INSERT INTO scene_aliases(key, scene_id) SELECT ?1, ?2
           WHERE NOT EXISTS (SELECT 1 FROM scenes WHERE key = ?1) ON CONFLICT (key) DO NOTHING""",
        [(spelling, scene_id) for spelling in foreign.spellings if spelling != foreign.key],
    )


def usable_weight(weight: object, otherwise: float) -> float:
    """Return a weight as it can be stored, another one where it is none.

    >>> usable_weight(0.5, 1.0), usable_weight(None, 1.0), usable_weight(0, 0.2), usable_weight("NaN", 1.0)
    (0.5, 1.0, 0.2, 1.0)
    """
    if isinstance(weight, int | float) and 0 < weight < math.inf:
        return float(min(weight, MOST))
    return otherwise


def usable_count(value: object) -> int:
    """Return a count as it can be stored, 0 for what is none.

    >>> usable_count(3), usable_count(None), usable_count(-1), usable_count("x"), usable_count(10**30) == MOST
    (3, 0, 0, 0, True)
    """
    return min(value, MOST) if isinstance(value, int) and value > 0 else 0


def take_in_entities(tx: Transaction, foreign: Sequence[ForeignEntity], newest: int, came: set[int]) -> list[str]:
    """Make entities that are not known, and let those that are take in what is told of them.

    Return for each added, changed, known, or merged, for a second spelling of one that came before it. newest: the last
    entity that was here before the import, whose facts may have made some of these. came: those that came before with
    it; the new ones are put there.
    """
    ids = entities.known(tx, [entity_key(one.name) for one in foreign])
    fresh: list[int] = []
    outcomes: list[str] = []
    for one in foreign:
        key = entity_key(one.name)
        entity_id = ids.get(key)
        if entity_id is None:
            (ids[key],) = tx.execute(
                """INSERT INTO entities(name, key, type, mention_count, created_at, updated_at)
                   VALUES (?, ?, ?, ?, ?, ?) RETURNING id""",
                (one.name, key, one.type or entities.USUAL_TYPE, max(one.mentions, 1), one.created_at, one.updated_at),
            ).fetchone()
            fresh.append(ids[key])
            came.add(ids[key])
            outcomes.append("added")
            continue
        times = (one.created_at, one.updated_at) if one.is_dated else (None, None)
        changed = tx.execute(
            """UPDATE entities SET type = CASE WHEN type = ?1 AND ?2 <> '' THEN ?2 ELSE type END,
                   mention_count = MAX(mention_count, ?3), created_at = MIN(created_at, COALESCE(?4, created_at)),
                   updated_at = MAX(updated_at, COALESCE(?5, updated_at))
               WHERE id = ?6 AND ((type = ?1 AND ?2 NOT IN ('', ?1)) OR mention_count < ?3 OR created_at > ?4
                   OR updated_at < ?5)""",
            (entities.USUAL_TYPE, one.type, one.mentions, *times, entity_id),
        ).rowcount
        is_new = entity_id > newest
        outcomes.append("merged" if entity_id in came else "added" if is_new else "changed" if changed else "known")
        came.add(entity_id)
    text_index.add(tx, "entity", fresh)
    return outcomes


def told_before(tx: Transaction, fact: Fact, saying: Saying, *, at_any_time: bool = False) -> int | None:
    """Return the relation that a fact was taken in as when it was told from the same source before; None for a new one.

    at_any_time: the source tells no times.
    """
    keys = entity_key(fact.subject), entity_key(fact.object)
    ends = entities.known(tx, keys)
    if len(ends) < len(set(keys)):
        return None
    row = tx.execute(
        """SELECT r.id FROM relations r JOIN evidence e ON e.relation_id = r.id
           WHERE r.source_id = ? AND r.relation_key = ? AND r.target_id = ? AND r.scope = ?
               AND e.source = ? AND e.session = ? AND e.turn = ? AND (? = 1 OR e.at = ?)
               AND CASE ? WHEN '' THEN e.sentence_id IS NULL
                   ELSE e.sentence_id = (SELECT id FROM sentences WHERE hash = ?) END
           ORDER BY r.status = 'active' DESC, r.id DESC LIMIT 1""",
        (
            ends[keys[0]], entity_key(fact.relation), ends[keys[1]], saying.scope, saying.source, saying.session,
            saying.turn, int(at_any_time), saying.at, fact.sentence, digest_of(fact.sentence),
        ),
    ).fetchone()  # fmt: skip
    return None if row is None else int(row[0])


def put_away_fact(tx: Transaction, relation_id: int, status: str, at: str) -> None:
    """Let a fact that was just taken in be what it is in the other memory: deleted or archived, since a time."""
    tx.execute("UPDATE relations SET status = ?, closed_at = ? WHERE id = ?", (status, at, relation_id))


def keep_from_all(tx: Transaction, relation_id: int, source: str) -> None:
    """Let a fact, as far as a source told it, be no longer for everybody."""
    tx.execute("UPDATE evidence SET openly = 0 WHERE relation_id = ? AND source = ?", (relation_id, source))


def confirm_fact(tx: Transaction, relation_id: int, at: str) -> None:
    """Let a fact be confirmed at a time, unless it was confirmed later."""
    tx.execute("UPDATE relations SET updated_at = ? WHERE id = ? AND updated_at < ?", (at, relation_id, at))


def take_in_label(tx: Transaction, label: str, count: int, met_at: str, at: str) -> bool:
    """Let a label be met at least so often; tell whether it was known to be. met_at: when last, '' where not told."""
    known = tx.execute(
        "SELECT 1 FROM situation_evidence WHERE label = ? AND count >= ? AND updated_at >= ?", (label, count, met_at)
    ).fetchone()
    if known is not None:
        return True
    tx.execute(
        """INSERT INTO situation_evidence(label, count, updated_at) VALUES (?, ?, ?)
           ON CONFLICT (label) DO UPDATE SET count = MAX(situation_evidence.count, excluded.count),
               updated_at = MAX(situation_evidence.updated_at, excluded.updated_at)""",
        (label, count, met_at or at),
    )
    return False
