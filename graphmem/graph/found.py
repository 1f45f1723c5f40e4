"""What the graph holds as search sees it: what may be shown to whom, and what is shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphmem.core.keys import PERSON_KINDS, features_of_key, kind_of
from graphmem.core.situations import Situation, recall_ground
from graphmem.graph.entities import visible
from graphmem.graph.scenes import TEXT_TABLES, scene_ids
from graphmem.graph.validity import holding
from graphmem.store.lists import in_parts, of_scopes, rows_about
from graphmem.store.transaction import Transaction

_NO_SCENE = 0
# What was told in no scene, by kind: the item, and the sentence that told it.
_TOLD_OPENLY = {
    "relation": """SELECT v.relation_id, v.sentence_id FROM evidence v
                   WHERE v.relation_id IN ({marks}) AND v.openly = 1
                   GROUP BY v.relation_id, v.sentence_id ORDER BY MAX(v.id) DESC""",
    "entity": """SELECT e.id, NULL FROM entities e WHERE e.id IN ({marks}) AND EXISTS (
                     SELECT 1 FROM relations r JOIN evidence v ON v.relation_id = r.id AND v.openly = 1
                     WHERE r.source_id = e.id OR r.target_id = e.id)""",
    "block": "SELECT t.num, NULL FROM blocks t WHERE t.num IN ({marks}) AND t.openly = 1",
    "document": "SELECT t.num, NULL FROM documents t WHERE t.num IN ({marks}) AND t.openly = 1",
    "note": "SELECT n.id, NULL FROM notes n WHERE n.id IN ({marks}) AND n.openly = 1",
}


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A fact as it is shown."""

    subject: str
    relation: str
    object: str
    sentence_id: int | None
    at: str
    status: str
    source: str


def standing(
    tx: Transaction, relation_ids: Sequence[int], at: str, scopes: Sequence[str] | None, *, past: bool
) -> dict[int, str]:
    """Return the facts that hold at an instant and, with `past`, those that did before and were superseded.

    Each with the time it was last told, as all that tell what may be shown.
    """
    holds, moments = holding(at)
    in_scope, parameters = of_scopes(scopes)
    asked = f"""SELECT r.id, r.updated_at FROM relations r
                WHERE r.id IN ({{marks}}) AND ({holds} OR (? = 1 AND r.status = 'superseded')) {in_scope}"""
    return dict(rows_about(tx, asked, relation_ids, *moments, past, *parameters))


def told_by(tx: Transaction, sentence_ids: Sequence[int]) -> dict[int, list[int]]:
    """Return the facts that sentences told, by sentence."""
    asked = "SELECT DISTINCT sentence_id, relation_id FROM evidence WHERE sentence_id IN ({marks})"
    told: dict[int, list[int]] = {}
    for sentence_id, relation_id in rows_about(tx, asked, sentence_ids):
        told.setdefault(sentence_id, []).append(relation_id)
    return told


class Holding(NamedTuple):
    """A scene that holds an item, and the sentence that told it there; id 0 and no key where it was told in none."""

    scene_id: int
    key: str
    sentence_id: int | None
    weight: float


def holders(tx: Transaction, kind: str, ids: Sequence[int]) -> dict[int, list[Holding]]:
    """Return the scenes that hold each of some items, by item; the heaviest first. A scene holds itself.

    What was told in no scene is held by the scene without a key, which is open to everybody.
    """
    if kind == "scene":
        return {scene_id: [Holding(scene_id, key, None, 1.0)] for scene_id, (key, _) in scene_keys(tx, ids).items()}
    ref, join = "ref.ref_id", ""
    if kind in TEXT_TABLES:
        ref, join = "t.num", f"JOIN {TEXT_TABLES[kind]} t ON t.id = ref.ref_text"
    held: dict[int, list[Holding]] = {}
    for part, marks in in_parts(ids):
        rows = tx.execute(
            f"""SELECT {ref}, s.id, s.key, ref.sentence_id, ref.weight
                FROM scene_refs ref {join} JOIN scenes s ON s.id = ref.scene_id
                WHERE ref.kind = ? AND {ref} IN ({marks}) ORDER BY ref.weight DESC, s.key""",
            (kind, *part),
        )
        for ref_id, *holding_scene in rows:
            held.setdefault(ref_id, []).append(Holding._make(holding_scene))
        for ref_id, sentence_id in tx.execute(_TOLD_OPENLY[kind].format(marks=marks), part).fetchall():
            held.setdefault(ref_id, []).append(Holding(_NO_SCENE, "", sentence_id, 0.0))
    return held


def closed_to(tx: Transaction, situation: Situation, scenes: Iterable[Holding]) -> set[int]:
    """Return which of the scenes name people, none of whom is in the situation: what they hold is not for it."""
    keys = {scene.scene_id: scene.key for scene in scenes if scene.scene_id != _NO_SCENE}
    people = {scene_id: [*features_of_key(key)] for scene_id, key in keys.items()}
    named = rows_about(tx, "SELECT scene_id, feature FROM scene_features WHERE scene_id IN ({marks})", keys)
    for scene_id, feature in named:
        people[scene_id].append(feature)
    return {
        scene_id
        for scene_id, features in people.items()
        if not recall_ground(situation, [feature for feature in features if kind_of(feature) in PERSON_KINDS])
    }


def facts(tx: Transaction, relation_ids: Sequence[int]) -> dict[int, StoredFact]:
    """Return facts by id, with who told them last."""
    rows = rows_about(
        tx,
        """SELECT r.id, a.name, r.relation_type, b.name, r.sentence_id, r.updated_at, r.status,
                   (SELECT e.source FROM evidence e WHERE e.relation_id = r.id ORDER BY e.id DESC LIMIT 1)
            FROM relations r JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
            WHERE r.id IN ({marks})""",
        relation_ids,
    )
    return {relation_id: StoredFact(*row) for relation_id, *row in rows}


def sentences(tx: Transaction, sentence_ids: Sequence[int]) -> dict[int, str]:
    """Return the texts of sentences by id."""
    return dict(rows_about(tx, "SELECT id, text FROM sentences WHERE id IN ({marks})", sentence_ids))


def entity_names(tx: Transaction, entity_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return names and times of the last mention of entities by id."""
    rows = rows_about(tx, "SELECT id, name, updated_at FROM entities WHERE id IN ({marks})", entity_ids)
    return {entity_id: (name, at) for entity_id, name, at in rows}


def entity_standing(tx: Transaction, entity_ids: Sequence[int], scopes: Sequence[str] | None) -> dict[int, str]:
    """Return the entities that facts of these scopes or of none know, with the time of their last mention."""
    seen, parameters = visible(scopes)
    asked = f"SELECT e.id, e.updated_at FROM entities e WHERE e.id IN ({{marks}}) {seen}"
    return dict(rows_about(tx, asked, entity_ids, *parameters))


def scene_standing(tx: Transaction, scene_ids: Sequence[int]) -> dict[int, str]:
    """Return scenes by id, with the time of their last visit."""
    return {scene_id: at for scene_id, (_, at) in scene_keys(tx, scene_ids).items()}


@dataclass(frozen=True, slots=True)
class StoredText:
    """A block or a document as it is shown."""

    id: str
    title: str
    text: str
    source: str
    at: str


def texts(tx: Transaction, kind: str, numbers: Sequence[int]) -> dict[int, StoredText]:
    """Return blocks or documents by number."""
    title = {"block": "''", "document": "summary"}[kind]
    asked = f"SELECT num, id, {title}, text, source, created_at FROM {TEXT_TABLES[kind]} WHERE num IN ({{marks}})"
    return {number: StoredText(*row) for number, *row in rows_about(tx, asked, numbers)}


def numbers_of(tx: Transaction, kind: str, ids: Sequence[str]) -> dict[str, int]:
    """Return the numbers of blocks or documents by id."""
    return dict(rows_about(tx, f"SELECT id, num FROM {TEXT_TABLES[kind]} WHERE id IN ({{marks}})", ids))


_TOLD_BY = {
    "relation": "SELECT relation_id, source FROM evidence WHERE relation_id IN ({marks})",
    "block": "SELECT num, CASE tool WHEN '' THEN source ELSE 'tool' END FROM blocks WHERE num IN ({marks})",
    "document": "SELECT num, source FROM documents WHERE num IN ({marks})",
    "note": "SELECT id, source FROM notes WHERE id IN ({marks})",
    "part": "SELECT id, role FROM parts WHERE id IN ({marks})",
}


def sources(tx: Transaction, kind: str, ids: Sequence[int]) -> list[tuple[int, str]]:
    """Return who told items of a kind, with their ids: each teller of a fact, the role in which a part was said."""
    return list(rows_about(tx, _TOLD_BY[kind], ids))


def text_standing(tx: Transaction, kind: str, numbers: Sequence[int]) -> dict[int, str]:
    """Return blocks or documents by number, with the time they were written."""
    return dict(rows_about(tx, f"SELECT num, created_at FROM {TEXT_TABLES[kind]} WHERE num IN ({{marks}})", numbers))


def scenes_of_keys(tx: Transaction, keys: Sequence[str]) -> list[int]:
    """Return the ids of the scenes with these keys, read exactly."""
    ids = scene_ids(tx, keys)
    return [ids[key] for key in keys if key in ids]


def scene_keys(tx: Transaction, scene_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return keys and times of the last visit of scenes by id."""
    rows = rows_about(tx, "SELECT id, key, updated_at FROM scenes WHERE id IN ({marks})", scene_ids)
    return {scene_id: (key, at) for scene_id, key, at in rows}


def predecessors(tx: Transaction, relation_ids: Sequence[int]) -> dict[int, int]:
    """Return the superseded values of the functional relations of some facts, each with that fact."""
    asked = """SELECT old.id, r.id FROM relations r JOIN relations old
                   ON old.source_id = r.source_id AND old.relation_key = r.relation_key AND old.scope = r.scope
               WHERE r.id IN ({marks}) AND old.status = 'superseded' AND old.id <> r.id"""
    return dict(rows_about(tx, asked, sorted(relation_ids)))
