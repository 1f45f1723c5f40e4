"""Scenes: how they are entered, grow, are declared and tagged, and what they bring back.

All functions take an open transaction and never commit. A turn joins the emergent scene that fits it best; where none
fits, its label is counted, and at the second count a scene of that label is made. Declared scenes are found by key
alone: did their features lead to them, a channel's scene would swallow every turn on it.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmem import log
from graphmem.core import model
from graphmem.core.keys import (
    auto_key,
    features_of_key,
    kind_of,
    origin_of,
    range_below,
    suffixed_key,
)
from graphmem.core.situations import Situation, surplus_features
from graphmem.errors import InvalidInput, NotFound
from graphmem.graph import matching
from graphmem.graph.validity import holding
from graphmem.late import late
from graphmem.store import postings
from graphmem.store.lists import in_parts, of_scopes
from graphmem.store.transaction import Transaction

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.core.model import (
        Bucket,
        DeclaredScene,
        RecalledBlock,
        RecalledDocument,
        RecalledEntity,
        RecalledRelation,
        Recollection,
        Scene,
        SceneMatch,
        Visit,
    )
    from graphmem.store import text_index
else:
    text_index = late("graphmem.store.text_index")

DEFAULT_LIMIT = 8
DAYS_NOTED = 120  # of the strength of a scene
_IS_FREE = """NOT EXISTS (SELECT 1 FROM scenes WHERE key = {key})
    AND NOT EXISTS (SELECT 1 FROM scene_aliases WHERE key = {key})"""
# Three values a scene; SQLite allows 32766 in a statement. Scenes beyond fit so badly that they add nothing.
_SCENES_IN_A_RECALL = 5_000
KEYS_IN_A_RECALL = 5_000
# Rows looked at for each fact that is wanted, at first: it may be in several of the scenes.
_PLACES_OF_A_FACT = 4
MOST_ROWS = 1 << 60


# ---- entering


class Entered(NamedTuple):
    """What a situation came to among the emergent scenes. is_news: a feature or a label of it was stored anew."""

    key: str = ""
    created: bool = False
    similarity: float = 0.0
    strength: int = 0
    is_news: bool = True


def visit(
    tx: Transaction, situation: Situation, keys: Sequence[str], at: str, config: Config
) -> tuple[Entered, list[DeclaredScene]]:
    """Declare scenes by their keys and enter the scene of a situation, which may be empty."""
    # All that has to be known is asked for before any of it is waited for.
    strengthened = _strengthen(tx, keys, at) if keys else ()
    numbers = _numbers(tx, keys) if keys and tx.engine.is_remote else ()
    evidence = _evidence(tx, situation) if situation else ()
    found = matching.best(tx, situation) if situation else None
    declared = _declared(tx, keys, strengthened, numbers, at, config) if keys else []
    made = {scene.key for scene in declared if scene.created}
    return _enter(tx, situation, at, found, evidence, made) if situation else Entered(), declared


def _numbers(tx: Transaction, keys: Sequence[str]) -> Iterable[tuple[str, int | None]]:
    """Ask for the numbers of scenes to be, by the keys that lead to none."""
    values = ", ".join(["(?)"] * len(keys))
    return tx.engine.ahead(
        tx,
        f"""SELECT wanted.column1, {tx.engine.next_number("scenes")} FROM (VALUES {values}) wanted
            WHERE {_IS_FREE.format(key="wanted.column1")}""",
        lambda: keys,
    )


def _evidence(tx: Transaction, situation: Situation) -> Iterable[tuple[int | None, str | None, int | None]]:
    """Ask how often the label of a situation was met, when last, and for the number of the scene that may grow now.

    There is one where this visit is the last that is needed and the key of the scene is free.
    """

    def parameters() -> tuple[str | int, ...]:
        label = situation.growing_label
        key = auto_key(label) if label else ""
        return situation.config.visits_to_grow, key, key, label

    return tx.engine.ahead(tx, _evidence_with(tx.engine.next_number("scenes")), parameters)


@functools.cache
def _evidence_with(number: str) -> str:
    return f"""
        SELECT met.count, met.updated_at,
               CASE WHEN COALESCE(met.count, 0) + 1 >= ? AND {_IS_FREE.format(key="?")} THEN {number} END
        FROM (SELECT 1) one LEFT JOIN situation_evidence met ON met.label = ?"""


def _enter(
    tx: Transaction,
    situation: Situation,
    at: str,
    found: matching.Candidate | None,
    evidence: Iterable[tuple[int | None, str | None, int | None]],
    made: Collection[str],
) -> Entered:
    """Join the scene that was found, or count the visit towards a new one. made: keys of scenes made meanwhile."""
    if found is not None:
        return _join(tx, situation, at, found)
    label, config = situation.growing_label, situation.config
    if not label:
        return Entered()
    ((count, last, number),) = evidence
    if not _evidence_suffices(tx, label, (count, last), at, config):
        log.debug("no scene yet for %r", label)
        return Entered()
    scene_id, key, strength = _grow(tx, label, at, None if auto_key(label) in made else number)
    dropped = surplus_features({feature: (weight, 1) for feature, weight in situation.weights.items()}, config)
    kept = {feature: weight for feature, weight in situation.weights.items() if feature not in dropped}
    channels = postings.at_a_visit([kept[channel] for channel in situation.channels if channel in kept], 1)
    _add_features(tx, scene_id, kept, situation, visit=1, channels=channels)
    tx.execute("DELETE FROM situation_evidence WHERE label = ?", (label,))
    log.debug("scene %r grew", key)
    return Entered(key, created=True, similarity=1.0, strength=strength)


def foresee(tx: Transaction, situation: Situation, declared: Sequence[str]) -> Visit:
    """Return what entering comes to where nothing may be written: the best scene and the declared ones, as they are."""
    found = matching.best(tx, situation) if situation else None
    entered = Entered() if found is None else Entered(found.key, False, found.score, found.strength)
    return visit_of(entered, [_as_declared(tx, key) for key in declared], situation)


def _as_declared(tx: Transaction, key: str) -> DeclaredScene:
    row = tx.execute("SELECT key, strength FROM scenes WHERE id = ?", (scene_id_of(tx, key),)).fetchone()
    own_key, strength = row or (key, 0)
    return model.DeclaredScene(own_key, False, strength)


def _join(tx: Transaction, situation: Situation, at: str, scene: matching.Candidate) -> Entered:
    visit = scene.visits + 1
    tx.execute(
        """UPDATE scenes SET strength = strength + 1, visits = visits + 1, updated_at = MAX(updated_at, ?)
           WHERE id = ?""",
        (at, scene.scene_id),
    )
    known, fresh = [], {}
    for feature, weight in situation.weights.items():
        if feature in scene.masses:
            known.append((weight, visit, scene.scene_id, feature))
        else:
            fresh[feature] = weight
    tx.executemany(
        """UPDATE scene_features SET weight = MAX(weight, ?1), mass = mass + ?1, touched = ?2
           WHERE scene_id = ?3 AND feature = ?4""",
        known,
    )
    if fresh or not situation.people:  # else nothing is posted otherwise
        channels = scene.channels
        before = postings.at_a_visit(channels.values(), scene.visits)
        for channel in situation.channels:
            channels[channel] = channels.get(channel, 0.0) + situation.weights[channel]
        if fresh and len(scene.features) + len(fresh) > situation.config.scene_features:
            for feature in _give_up_surplus(tx, scene, situation, visit):
                fresh.pop(feature, None)
                channels.pop(feature, None)
        after = postings.at_a_visit(channels.values(), visit)
        if fresh:
            _add_features(tx, scene.scene_id, fresh, situation, visit=visit, channels=after)
        moved = postings.moved(scene.masses, before, after, people=len(scene.people))
        tx.executemany(
            "UPDATE scene_features SET posted = ? WHERE scene_id = ? AND feature = ?",
            [(posted, scene.scene_id, feature) for posted, feature in moved],
        )
    log.debug("joined %r with score %.3f", scene.key, scene.score)
    return Entered(scene.key, False, scene.score, scene.strength + 1, is_news=bool(fresh))


def _give_up_surplus(tx: Transaction, scene: matching.Candidate, situation: Situation, visit: int) -> list[str]:
    """Drop the features for which a scene has no room at a visit, and return them: some may be new to it."""
    features = {feature: (mass, touched) for feature, mass, touched in scene.features}
    for feature, weight in situation.weights.items():
        features[feature] = scene.masses.get(feature, 0.0) + weight, visit
    dropped = surplus_features(features, situation.config)
    tx.executemany(
        "DELETE FROM scene_features WHERE scene_id = ? AND feature = ?",
        [(scene.scene_id, feature) for feature in dropped if feature in scene.masses],
    )
    return dropped


def _add_features(
    tx: Transaction,
    scene_id: int,
    fresh: Mapping[str, float],
    situation: Situation,
    *,
    visit: int,
    channels: float | None,
) -> None:
    """Add features of a situation to a scene; channels: what its channels weigh at a visit now, None without any."""
    people = len(situation.peers) + len(situation.groups)
    tx.executemany(
        "INSERT INTO scene_features(scene_id, feature, weight, mass, touched, posted) VALUES (?1, ?2, ?3, ?3, ?4, ?5)",
        [
            (scene_id, feature, weight, visit, postings.posting(kind_of(feature), people=people, channels=channels))
            for feature, weight in fresh.items()
        ],
    )


def _evidence_suffices(
    tx: Transaction, label: str, met: tuple[int | None, str | None], at: str, config: Config
) -> bool:
    """Count a visit under a label, given how often it was met and when last; tell whether there are enough by now."""
    count, last = 1, at
    before, when = met
    if before and when and _days_apart(at, when) <= config.evidence_days:
        count, last = before + 1, max(when, at)
    tx.execute(
        """INSERT INTO situation_evidence(label, count, updated_at) VALUES (?, ?, ?)
           ON CONFLICT (label) DO UPDATE SET count = excluded.count, updated_at = excluded.updated_at""",
        (label, count, last),
    )
    return count >= config.visits_to_grow


def _days_apart(a: str, b: str) -> float:
    return abs(dt.datetime.fromisoformat(a) - dt.datetime.fromisoformat(b)) / dt.timedelta(days=1)


def _grow(tx: Transaction, label: str, at: str, number: int | None) -> tuple[int, str, int]:
    """Make the scene of a label, or adopt the row of that key that a write made before; return id, key, strength.

    number: the id of a scene to be, where its key is known to be free.
    """
    key = base = auto_key(label)
    count = 1
    while (scene_id := _insert_scene(tx, key, visits=1, at=at, number=number)) is None:
        if key == base and (adopted := _adopt(tx, key, at)):
            scene_id, strength = adopted
            return scene_id, key, strength
        count += 1
        key = suffixed_key(base, count)
    return scene_id, key, 1


def _adopt(tx: Transaction, key: str, at: str) -> tuple[int, int] | None:
    """Count the first visit of a scene without features; return its id and strength, None where there is none."""
    found: tuple[int, int] | None = tx.execute(
        """UPDATE scenes SET strength = strength + 1, visits = 1, updated_at = MAX(updated_at, ?)
           WHERE key = ? AND NOT EXISTS (SELECT 1 FROM scene_features WHERE scene_id = scenes.id)
           RETURNING id, strength""",
        (at, key),
    ).fetchone()
    return found


def _insert_scene(tx: Transaction, key: str, *, visits: int, at: str, number: int | None = None) -> int | None:
    """Make a scene and return its id; None where a scene has the key, or had it.

    number: its id, where the key is known to be free; then the database is not waited for.
    """
    values = key, visits, origin_of(key), at
    if number is None:
        made = tx.execute(
            f"""INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at)
                SELECT ?1, 1, ?2, ?3, ?4, ?4 WHERE {_IS_FREE.format(key="?1")} RETURNING id""",
            values,
        ).fetchone()
        if made is None:
            return None
        number = int(made[0])
    else:
        tx.execute(
            """INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at, id)
               VALUES (?1, 1, ?2, ?3, ?4, ?4, ?5)""",
            (*values, number),
        )
    text_index.put(tx, "scene", [(number, text_index.tokens(title=key))])
    return number


# ---- declaring


def scene_id_of(tx: Transaction, key: str) -> int | None:
    """Return the id of the scene of a normalised key or of an alias, None where there is none."""
    return scene_ids(tx, [key]).get(key)


def ensure_scenes(tx: Transaction, keys: Iterable[str], at: str, config: Config) -> list[int]:
    """Return the ids of scenes; those that are new are made."""
    wanted = list(keys)
    ids = scene_ids(tx, wanted)
    ids |= {key: _make(tx, key, at, config) for key in wanted if key not in ids}
    return [ids[key] for key in wanted]


def scene_ids(tx: Transaction, keys: Iterable[str]) -> dict[str, int]:
    """Return the ids of the scenes that normalised keys lead to, by their own key rather than by an alias."""
    found: dict[str, int] = {}  # of two rows of one key the later stays, so aliases come first
    for part, marks in in_parts(keys):
        found.update(
            tx.execute(
                f"""SELECT key, scene_id FROM scene_aliases WHERE key IN ({marks}) UNION ALL
                    SELECT key, id FROM scenes WHERE key IN ({marks})""",
                part + part,
            ).fetchall()
        )
    return found


def _make(tx: Transaction, key: str, at: str, config: Config, number: int | None = None) -> int:
    """Make a scene; a declared one gets the features that its key spells. number: see `_insert_scene`."""
    scene_id = _insert_scene(tx, key, visits=0, at=at, number=number)
    assert scene_id is not None, "a key is looked up before"
    tx.executemany(
        "INSERT INTO scene_features(scene_id, feature, weight, posted) VALUES (?, ?, ?, NULL)",
        [(scene_id, feature, config.weight_of(kind_of(feature))) for feature in features_of_key(key)],
    )
    return scene_id


def declare(tx: Transaction, key: str, at: str, config: Config) -> DeclaredScene:
    """Make a scene exist; one that existed is strengthened by one."""
    return _declared(tx, [key], _strengthen(tx, [key], at), (), at, config)[0]


def _strengthen(tx: Transaction, keys: Sequence[str], at: str) -> Iterable[list[tuple[str, int]]]:
    """Strengthen the scenes that keys lead to, and ask for the own key and strength of each."""
    return tx.engine.each(
        tx,
        """UPDATE scenes SET strength = strength + 1, updated_at = MAX(updated_at, ?1)
           WHERE id = COALESCE((SELECT id FROM scenes WHERE key = ?2),
                               (SELECT scene_id FROM scene_aliases WHERE key = ?2))
           RETURNING key, strength""",
        [(at, key) for key in keys],
    )


def _declared(
    tx: Transaction,
    keys: Sequence[str],
    strengthened: Iterable[list[tuple[str, int]]],
    numbers: Iterable[tuple[str, int | None]],
    at: str,
    config: Config,
) -> list[DeclaredScene]:
    """Return scenes that were strengthened; where a key led to none, one is made. numbers: of those, where known."""
    known = dict(numbers)
    declared = []
    for key, found in zip(keys, strengthened, strict=True):
        if not found:
            _make(tx, key, at, config, known.get(key))
        declared += [model.DeclaredScene(own_key, not found, strength) for own_key, strength in found or [(key, 1)]]
    return declared


def with_derived(declared: tuple[str, ...], situation: Situation) -> tuple[str, ...]:
    """Return declared keys, and the situation's own key behind them when none of them names its people.

    >>> with_derived(("chan:qq",), Situation.of(chan="qq", peer="boss"))
    ('chan:qq', 'chan:qq/peer:boss')
    """
    if not declared or not situation.people or any(situation.may_write_to(key) for key in declared):
        return declared
    return (*declared, situation.derived_key)


def visit_of(entered: Entered, declared: Sequence[DeclaredScene], situation: Situation) -> Visit:
    """Put together what the caller sees. Another's key is for reading only: what a person says stays with them."""
    visited = (entered.key,) if entered.key else ()
    keys = write_keys = visited
    made: tuple[str, ...] = ()
    if declared:
        given = [scene.key for scene in declared]
        own = [key for key in given if situation.may_write_to(key)]
        keys, write_keys = tuple(dict.fromkeys((*given, *visited))), tuple(dict.fromkeys((*visited, *own)))
        made = tuple(scene.key for scene in declared if scene.created)
    return model.Visit(entered.key, entered.created, entered.similarity, entered.strength, keys, write_keys, made)


# ---- attaching


class Told(NamedTuple):
    """A relation as it comes into a scene: the sentence that told it here, the entities at its ends."""

    relation_id: int
    sentence_id: int | None
    ends: tuple[int, int]
    weight: float


def attach(tx: Transaction, scene_ids: Sequence[int], facts: Iterable[Told], at: str) -> None:
    """Attach relations and the entities at their ends to scenes.

    A weight never falls by being attached again, and the decay clock starts anew.
    """
    rows: list[tuple[object, ...]] = []
    for relation_id, sentence_id, ends, weight in facts:
        for scene_id in scene_ids:
            rows.append((scene_id, "relation", relation_id, "", sentence_id, weight, at, at))
            rows += [(scene_id, "entity", end, "", None, weight, at, at) for end in ends]
    put_refs(tx, rows)


def attach_note(tx: Transaction, scene_ids: Iterable[int], note_id: int, at: str) -> None:
    """Attach a note to scenes with full weight."""
    put_refs(tx, [(scene_id, "note", note_id, "", None, 1.0, at, at) for scene_id in scene_ids])


def attach_text(tx: Transaction, scene_ids: Iterable[int], kind: str, ref_text: str, at: str) -> None:
    """Attach what has a text for an id, a block or a document, to scenes with full weight."""
    put_refs(tx, [(scene_id, kind, 0, ref_text, None, 1.0, at, at) for scene_id in scene_ids])


def put_refs(tx: Transaction, rows: Sequence[tuple[object, ...]]) -> None:
    """Write refs: scene, kind, ref_id, ref_text, sentence, weight, clock, since when; a known one takes in the rest."""
    tx.executemany(
        """INSERT INTO scene_refs(scene_id, kind, ref_id, ref_text, sentence_id, weight, decayed_at, created_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (scene_id, kind, ref_id, ref_text) DO UPDATE SET
               weight = MAX(scene_refs.weight, excluded.weight),
               decayed_at = MAX(scene_refs.decayed_at, excluded.decayed_at),
               sentence_id = COALESCE(excluded.sentence_id, scene_refs.sentence_id)""",
        rows,
    )


def newest_ref(tx: Transaction) -> int:
    """Return the id of the ref that was made last, 0 where there is none."""
    return int(tx.execute("SELECT COALESCE(MAX(id), 0) FROM scene_refs").fetchone()[0])


def detach_text(tx: Transaction, kind: str, ref_text: str) -> None:
    """Take what has a text for an id out of all scenes."""
    tx.execute("DELETE FROM scene_refs WHERE kind = ? AND ref_text = ? AND ref_text <> ''", (kind, ref_text))


def scenes_of_text(tx: Transaction, kind: str, ref_text: str) -> tuple[str, ...]:
    """Return the keys of the scenes that hold what has a text for an id."""
    rows = tx.execute(
        """SELECT s.key FROM scene_refs ref JOIN scenes s ON s.id = ref.scene_id
           WHERE ref.kind = ? AND ref.ref_text = ? AND ref.ref_text <> '' ORDER BY s.key""",
        (kind, ref_text),
    )
    return tuple(key for (key,) in rows)


# The kinds whose ids are texts, and whose rows can be deleted: their tables.
TEXT_TABLES = {"block": "blocks", "document": "documents"}
# Where what a ref points at is found, by kind.
REF_TARGETS = {
    "relation": "relations t WHERE t.id = scene_refs.ref_id",
    "entity": "entities t WHERE t.id = scene_refs.ref_id",
    "note": "notes t WHERE t.id = scene_refs.ref_id",
    **{kind: f"{table} t WHERE t.id = scene_refs.ref_text" for kind, table in TEXT_TABLES.items()},
}


def sweep_refs(tx: Transaction) -> int:
    """Remove the refs to what was deleted; return how many. Recalls pass over such refs, counts do not."""
    return sum(
        tx.execute(
            f"DELETE FROM scene_refs WHERE kind = ? AND NOT EXISTS (SELECT 1 FROM {place})",
            (kind,),
        ).rowcount
        for kind, place in REF_TARGETS.items()
    )


# ---- looking


# By what scenes are listed, the first of each first. Where all have to be counted, that is what takes the time.
_ORDERS = {
    "refs": "refs DESC, s.key",
    "strength": "s.strength DESC, s.key",
    "recent": "s.updated_at DESC, s.id DESC",
    "key": "s.key",
}


def list_scenes(
    tx: Transaction,
    prefix: str,
    at: str,
    *,
    exact: bool = False,
    origin: str | None = None,
    contains: str = "",
    sort: str = "refs",
    limit: int = MOST_ROWS,
    skip: int = 0,
) -> tuple[Scene, ...]:
    """Return scenes under a normalised prefix ('' for all) whose keys contain a text, in one of the orders.

    exact: only those that the prefix itself leads to.
    """
    conditions: list[str] = ["instr(s.key, ?) > 0"]
    parameters: list[object] = [contains]
    if prefix:
        selection = below([prefix], exact=exact)
        conditions.append(f"s.id IN (SELECT id FROM ({selection.sql}) chosen)")
        parameters += selection.parameters
    if origin is not None:
        conditions.append("s.origin = ?")
        parameters.append(origin)
    holds, held = holding(at)
    ended = f"ORDER BY {_ORDERS[sort]} LIMIT ? OFFSET ?"
    first, last = ("", ended) if sort == "refs" else (ended, f"ORDER BY {_ORDERS[sort]}")
    wanted = [limit, skip]
    rows = tx.execute(
        f"""
        WITH s AS (SELECT * FROM scenes s WHERE {" AND ".join(conditions)} {first})
        SELECT s.key, s.origin, s.strength, s.visits,
               (SELECT COUNT(*) FROM scene_features f WHERE f.scene_id = s.id),
               (SELECT COUNT(*) FROM scene_refs ref LEFT JOIN relations r ON ref.kind = 'relation' AND r.id = ref.ref_id
                WHERE ref.scene_id = s.id AND (ref.kind <> 'relation' OR {holds})) AS refs,
               s.created_at, s.updated_at
        FROM s {last}
        """,
        [*parameters, *(wanted if first else ()), *held, *(() if first else wanted)],
    )
    return tuple(model.Scene(*row) for row in rows)


def detail(tx: Transaction, key: str, at: str) -> model.SceneDetail:
    """Return one scene by a normalised key or alias. Raises NotFound."""
    scene_id = scene_ids(tx, [key]).get(key)
    if scene_id is None:
        raise NotFound(f"there is no scene {key}")
    key, strengths = tx.execute("SELECT key, strengths FROM scenes WHERE id = ?", (scene_id,)).fetchone()
    features = tx.execute(
        """SELECT feature, weight, mass / MAX(s.visits, 1) AS share
           FROM scene_features f JOIN scenes s ON s.id = f.scene_id WHERE s.id = ? ORDER BY share DESC, feature""",
        (scene_id,),
    )
    aliases = tx.execute("SELECT key FROM scene_aliases WHERE scene_id = ? ORDER BY key", (scene_id,))
    (scene,) = (each for each in list_scenes(tx, key, at, exact=True) if each.key == key)
    return model.SceneDetail(
        scene,
        tuple(model.SceneFeature(*row) for row in features),
        tuple(alias for (alias,) in aliases),
        tuple(itertools.starmap(model.StrengthDay, strengths_of(strengths).items())),
    )


def strengths_of(noted: str) -> dict[str, int]:
    """Return the strengths that a scene has noted, by day.

    >>> strengths_of("2026-09-07=3 2026-09-09=5")
    {'2026-09-07': 3, '2026-09-09': 5}
    """
    return {day: int(strength) for day, _, strength in (one.partition("=") for one in noted.split())}


def with_strength(noted: str, day: str, strength: int) -> str:
    """Return what a scene has noted, with its strength of the last day; the first days give way to it.

    >>> with_strength("2026-09-07=3 2026-09-09=5", "2026-09-09", 6)
    '2026-09-07=3 2026-09-09=6'
    """
    days = list({**strengths_of(noted), day: strength}.items())[-DAYS_NOTED:]
    return " ".join(f"{one}={strong}" for one, strong in days)


def changed_strengths(tx: Transaction) -> list[int]:
    """Return the ids of the scenes whose strength is not the one noted last."""
    rows = tx.execute("SELECT id FROM scenes WHERE strengths NOT LIKE '%=' || strength ORDER BY id")
    return [scene for (scene,) in rows.fetchall()]


def note_strengths(tx: Transaction, scenes: Sequence[int], at: str) -> None:
    """Note how strong scenes are today."""
    for part, marks in in_parts(scenes):
        rows = tx.execute(f"SELECT id, strength, strengths FROM scenes WHERE id IN ({marks})", part).fetchall()
        tx.executemany(
            "UPDATE scenes SET strengths = ? WHERE id = ?",
            ((with_strength(noted, at[:10], strength), scene) for scene, strength, noted in rows),
        )


def list_evidence(tx: Transaction) -> tuple[Bucket, ...]:
    """Return the labels that have been met and have no scene yet, the latest first."""
    rows = tx.execute("SELECT label, count, updated_at FROM situation_evidence ORDER BY updated_at DESC, label")
    return tuple(model.Bucket(*row) for row in rows)


def match(tx: Transaction, situation: Situation) -> tuple[SceneMatch, ...]:
    """Return the scenes that answer a situation, best first, and by which features."""
    joined = matching.best(tx, situation)
    found: list[SceneMatch] = []
    for scene in matching.answering(tx, situation):
        shared = tuple(
            model.SharedFeature(feature, weight, scene.masses[feature] / scene.visits)
            for feature, weight in situation.weights.items()
            if feature in scene.masses
        )
        joins = joined is not None and scene.scene_id == joined.scene_id
        found.append(model.SceneMatch(scene.key, scene.score, joins, scene.ground, scene.strength, shared))
    return tuple(found)


# ---- recalling


class Selection(NamedTuple):
    """SQL that yields the scenes of a recall as rows (id, tier, score, place), with its parameters.

    place: which of them goes first where nothing else tells.
    """

    sql: str
    parameters: Sequence[object]


EVERY_SCENE = Selection("SELECT id, 0 AS tier, 1.0 AS score, key AS place FROM scenes", [])


def below(keys: Sequence[str], *, exact: bool = False) -> Selection:
    """Return the selection of the scenes with these normalised keys or aliases and, unless `exact`, of those below."""
    if len(keys) > KEYS_IN_A_RECALL:
        raise too_many("keys", keys)
    if not keys:
        return Selection("SELECT id, 0 AS tier, 1.0 AS score, id AS place FROM scenes WHERE FALSE", [])
    one = f"(VALUES {', '.join(['(?)'] * len(keys))}) AS k"
    parts = [
        f"SELECT s.id AS id FROM {one} JOIN scenes s ON s.key = k.column1",
        f"SELECT a.scene_id AS id FROM {one} JOIN scene_aliases a ON a.key = k.column1",
    ]
    parameters = [*keys, *keys]
    if not exact:
        two = f"(VALUES {', '.join(['(?, ?)'] * len(keys))}) AS k"
        parts.append(f"SELECT s.id AS id FROM {two} JOIN scenes s ON s.key >= k.column1 AND s.key < k.column2")
        parameters += [bound for key in keys for bound in range_below(key)]
    return Selection(
        f"SELECT id, 0 AS tier, 1.0 AS score, id AS place FROM ({' UNION '.join(parts)}) found", parameters
    )


def chosen(tx: Transaction, declared: Sequence[str], candidates: Sequence[matching.Candidate]) -> Selection | None:
    """Return the selection of declared scenes, read exactly, and then of answering ones by score; None for none."""
    if len(declared) > KEYS_IN_A_RECALL:
        raise too_many("declared", declared)
    scored: dict[int, tuple[int, float]] = {}
    known = scene_ids(tx, declared)
    for key in declared:
        if key in known:
            scored.setdefault(known[key], (0, 1.0))
    for candidate in candidates[:_SCENES_IN_A_RECALL]:
        scored.setdefault(candidate.scene_id, (1, candidate.score))
    if not scored:
        return None
    values = ", ".join(f"(?, ?, ?, {place})" for place in range(len(scored)))
    return Selection(
        f"VALUES {values}", [value for scene_id, (tier, score) in scored.items() for value in (scene_id, tier, score)]
    )


def facts_of(ranked: str) -> str:
    """Return the query for the facts in a table of (id, weight, sentence_id); it names the table `k`."""
    return f"""
        SELECT r.id, a.name, r.relation_type, b.name, COALESCE(t.text, ''), r.confidence, k.weight, r.updated_at,
               r.valid_from, r.valid_to
        FROM {ranked} k JOIN relations r ON r.id = k.id
        JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
        LEFT JOIN sentences t ON t.id = k.sentence_id"""


def too_many(argument: str, values: Sequence[str]) -> InvalidInput:
    """Return the refusal of more keys or scopes than a statement takes."""
    return InvalidInput(argument, len(values), f"more than {KEYS_IN_A_RECALL} at once; recall them in parts")


def recall(tx: Transaction, selection: Selection, *, limit: int, scopes: Sequence[str] | None, at: str) -> Recollection:
    """Return what the chosen scenes hold, each kind by score times weight. Notes are not of the graph: see `noted`."""
    chosen = f"WITH chosen(id, tier, score, place) AS ({selection.sql})"
    scenes = tx.execute(
        f"{chosen} SELECT s.key FROM chosen c JOIN scenes s ON s.id = c.id ORDER BY c.tier, c.score DESC, s.key",
        selection.parameters,
    )
    keys = tuple(key for (key,) in scenes)
    return model.Recollection(
        keys,
        _relations(tx, chosen, selection.parameters, limit, scopes, at),
        _entities(tx, chosen, selection.parameters, limit, scopes, at),
        _blocks(tx, chosen, selection.parameters, limit),
        _documents(tx, chosen, selection.parameters, limit),
    )


def are_notes(tx: Transaction) -> bool:
    """Tell by one cheap look whether there is any note: a memory without them pays no more for them."""
    return tx.execute("SELECT MAX(id) FROM notes").fetchone()[0] is not None


def noted(tx: Transaction, selection: Selection) -> dict[int, float]:
    """Return the notes that the chosen scenes hold, by id, with the greatest score times weight."""
    rows = tx.execute(
        f"""WITH chosen(id, tier, score, place) AS ({selection.sql})
            SELECT ref.ref_id, MAX(c.score * ref.weight) FROM chosen c CROSS JOIN scene_refs ref
            WHERE ref.scene_id = c.id AND ref.kind = 'note' GROUP BY ref.ref_id""",
        selection.parameters,
    )
    return dict(rows.fetchall())


# Cross joins keep SQLite from starting with all refs of a kind, of every scene. What is ordered has a limit: SQLite
# then keeps the best rows alone, and looks at the names of no other.


def _relations(
    tx: Transaction, chosen: str, parameters: Sequence[object], limit: int, scopes: Sequence[str] | None, at: str
) -> tuple[RecalledRelation, ...]:
    """Return each fact once, with the sentence of the scene that ranks it highest."""
    (holds, held), (in_scope, scope_parameters) = holding(at), of_scopes(scopes)
    at_most = limit
    while True:
        at_most = min(_PLACES_OF_A_FACT * at_most, MOST_ROWS)
        rows = tx.execute(
            f"""
            {chosen}, told(id, tier, weight, sentence_id, updated_at, decayed_at, place) AS MATERIALIZED (
                SELECT r.id, c.tier, c.score * ref.weight AS weight, ref.sentence_id, r.updated_at, ref.decayed_at,
                       c.place
                FROM chosen c CROSS JOIN scene_refs ref CROSS JOIN relations r
                WHERE ref.scene_id = c.id AND ref.kind = 'relation' AND r.id = ref.ref_id AND {holds} {in_scope}
                ORDER BY c.tier, weight DESC, r.updated_at DESC, r.id DESC, ref.decayed_at DESC, c.place LIMIT ?
            )
            {facts_of("told")}
            ORDER BY k.tier, k.weight DESC, k.updated_at DESC, k.id DESC, k.decayed_at DESC, k.place
            """,
            [*parameters, *held, *scope_parameters, at_most],
        ).fetchall()
        first: dict[int, RecalledRelation] = {}
        for row in rows:
            first.setdefault(row[0], model.RecalledRelation(*row))
        if len(first) >= limit or len(rows) < at_most:
            return tuple(itertools.islice(first.values(), limit))


def _entities(
    tx: Transaction, chosen: str, parameters: Sequence[object], limit: int, scopes: Sequence[str] | None, at: str
) -> tuple[RecalledEntity, ...]:
    """Return each name once.

    A name may be as private as a fact: it comes back with a fact of these scenes that may, or when it stands alone.
    """
    (holds, held), (in_scope, scope_parameters) = holding(at), of_scopes(scopes)
    ends = """SELECT CASE side.column1 WHEN 0 THEN r.source_id ELSE r.target_id END
              FROM chosen c CROSS JOIN scene_refs ref CROSS JOIN relations r CROSS JOIN (VALUES (0), (1)) side
              WHERE ref.scene_id = c.id AND ref.kind = 'relation' AND r.id = ref.ref_id"""
    rows = tx.execute(
        f"""
        {chosen}, met(id, tier, weight) AS (
            SELECT ref.ref_id, MIN(c.tier), MAX(c.score * ref.weight)
            FROM chosen c CROSS JOIN scene_refs ref
            WHERE ref.scene_id = c.id AND ref.kind = 'entity' GROUP BY ref.ref_id
        )
        SELECT e.id, e.name, e.type, e.mention_count, met.weight
        FROM met CROSS JOIN entities e
        WHERE e.id = met.id
            AND (e.id NOT IN ({ends} AND ({holds} {in_scope}) IS NOT TRUE) OR e.id IN ({ends} AND {holds} {in_scope}))
        ORDER BY met.tier, met.weight DESC, e.mention_count DESC, e.id DESC LIMIT ?
        """,
        [*parameters, *held, *scope_parameters, *held, *scope_parameters, limit],
    )
    return tuple(model.RecalledEntity(*row) for row in rows.fetchall())


def _blocks(tx: Transaction, chosen: str, parameters: Sequence[object], limit: int) -> tuple[RecalledBlock, ...]:
    rows = tx.execute(
        f"""
        {chosen}
        SELECT b.id, b.modality, b.text, b.mime, b.size, b.source, b.semantic_type,
               MAX(c.score * ref.weight) AS weight, b.created_at
        FROM chosen c CROSS JOIN scene_refs ref JOIN blocks b ON b.id = ref.ref_text
        WHERE ref.scene_id = c.id AND ref.kind = 'block'
        GROUP BY b.num ORDER BY MIN(c.tier), weight DESC, b.created_at DESC, b.num DESC LIMIT ?
        """,
        [*parameters, limit],
    )
    return tuple(model.RecalledBlock(*row) for row in rows.fetchall())


def _documents(tx: Transaction, chosen: str, parameters: Sequence[object], limit: int) -> tuple[RecalledDocument, ...]:
    rows = tx.execute(
        f"""
        {chosen}
        SELECT d.id, d.summary, d.source, MAX(c.score * ref.weight) AS weight, d.created_at
        FROM chosen c CROSS JOIN scene_refs ref JOIN documents d ON d.id = ref.ref_text
        WHERE ref.scene_id = c.id AND ref.kind = 'document'
        GROUP BY d.num ORDER BY MIN(c.tier), weight DESC, d.created_at DESC, d.num DESC LIMIT ?
        """,
        [*parameters, limit],
    )
    return tuple(model.RecalledDocument(*row) for row in rows.fetchall())
