"""Scenes changed by hand: renamed, dropped, tagged, untagged, reset; and how well they do their work.

Whatever is taken out of scenes stays in the graph. What no scene holds any more, and what was not told openly, comes
back to who asks without a situation, and to nobody else: taking a scene away opens nothing.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graphmem.config import Config, check_count
from graphmem.core.keys import AUTO_PREFIX, PERSON_KINDS, features_of_key, kind_of, origin_of
from graphmem.core.model import (
    DropReport,
    RenameReport,
    ResetReport,
    Scene,
    SceneHealth,
    TagReport,
    UntagReport,
)
from graphmem.errors import Conflict, InvalidInput, NotFound
from graphmem.graph import relations, scenes
from graphmem.graph.entities import matching_glob
from graphmem.store.transaction import Transaction
from graphmem.upkeep.journal import NUMBERS, Journal, Row, rows_of
from graphmem.upkeep.merge import drop_surplus, plan_dedupe

_NAMED_AT_MOST = 10
# What belongs to a scene, in an order in which foreign keys let it go.
_PARTS = {"features": "scene_features", "refs": "scene_refs", "aliases": "scene_aliases"}


# ---- renaming


def plan_rename(tx: Transaction, key: str, new_key: str) -> RenameReport:
    """Return what a rename would do. Raises NotFound for an unknown scene, Conflict for a key it cannot have."""
    scene = _scene(tx, key)
    holder = scenes.scene_id_of(tx, new_key)
    if holder not in (None, scene["id"]):
        (other,) = rows_of(tx, "scenes", "id = ?", (holder,))
        if other["key"] == new_key:
            remedy = "choose another key; only scenes whose keys are one key are merged, by 'graphmem dedupe'"
            raise Conflict(f"there is a scene {new_key!r} already: {remedy}")
        raise Conflict(f"{new_key!r} is an alias of the scene {other['key']!r}: choose another key")
    origin = scene["origin"] if new_key == scene["key"] else origin_of(new_key)
    if new_key != scene["key"] and origin == "emergent" and not scene["visits"]:
        raise Conflict(
            f"no turn has visited {scene['key']!r}, so under {new_key!r} it would answer none: "
            f"choose a key without {AUTO_PREFIX!r}"
        )
    people = sorted(
        row["feature"]
        for row in rows_of(tx, "scene_features", "scene_id = ?", (scene["id"],))
        if kind_of(row["feature"]) in PERSON_KINDS
    )
    if origin == "declared" and people and not any(kind_of(one) in PERSON_KINDS for one in features_of_key(new_key)):
        raise Conflict(
            f"{scene['key']!r} is about {', '.join(people)}, and everybody reads {new_key!r}: "
            f"name somebody in the key, as in {'/'.join([new_key, *people])!r}"
        )
    return RenameReport(scene["key"], new_key, scene["origin"], origin, applied=False)


def apply_rename(tx: Transaction, plan: RenameReport, at: str, config: Config) -> tuple[RenameReport, set[int]]:
    """Do what a plan of this same transaction says; return the report and the scenes whose rows changed."""
    if plan.new == plan.old:
        return replace(plan, applied=True), set()
    journal = Journal(tx)
    (scene,) = rows_of(tx, "scenes", "key = ?", (plan.old,))
    for alias in rows_of(tx, "scene_aliases", "key = ?", (plan.new,)):
        journal.delete("scene_aliases", alias)
    journal.update("scenes", scene, key=plan.new, origin=plan.origin)
    journal.insert("scene_aliases", {"key": plan.old, "scene_id": scene["id"]})
    _spell(journal, scene["id"], plan.new, config)
    operation = journal.close("rename", at, {"scenes": 1, "origin": f"{plan.old_origin} -> {plan.origin}"})
    return replace(plan, applied=True, operation=operation), {scene["id"]}


def _spell(journal: Journal, scene_id: int, key: str, config: Config) -> None:
    """Let the features that no turn gave be those that a key spells, and its people stay where the key names nobody."""
    spelt = features_of_key(key)
    names_people = any(kind_of(feature) in PERSON_KINDS for feature in spelt)
    known = set()
    for row in rows_of(journal.tx, "scene_features", "scene_id = ?", (scene_id,)):
        feature = row["feature"]
        person = kind_of(feature) in PERSON_KINDS
        if row["mass"] or feature in spelt or (person and not names_people):
            known.add(feature)
        else:
            journal.delete("scene_features", row)
    for feature in spelt:
        if feature not in known:
            weight = config.weight_of(kind_of(feature))
            journal.insert("scene_features", {"scene_id": scene_id, "feature": feature, "weight": weight})
    drop_surplus(journal, scene_id, config)


# ---- dropping and resetting


def plan_drop(tx: Transaction, key: str, *, below: bool) -> tuple[DropReport, list[int]]:
    """Return what a drop would remove, and the ids of the scenes. Raises NotFound when there is none."""
    selection = scenes.below([key], exact=not below)
    found = tx.execute(
        f"SELECT id FROM scenes WHERE id IN (SELECT id FROM ({selection.sql}) chosen) ORDER BY key",
        selection.parameters,
    ).fetchall()
    if not found:
        raise _unknown(key, "at or below" if below else "at")
    ids = [scene_id for (scene_id,) in found]
    return drop_of(tx, ids), ids


def drop_of(tx: Transaction, ids: Sequence[int]) -> DropReport:
    """Return what a drop of scenes would remove."""
    keys = tx.execute(f"SELECT key FROM scenes WHERE id IN {NUMBERS} ORDER BY key", (json.dumps(ids),))
    features, refs, aliases = _sizes(tx, ids)
    return DropReport(tuple(key for (key,) in keys), features, refs, aliases, _unplaced(tx, ids), applied=False)


def apply_drop(tx: Transaction, plan: DropReport, ids: Sequence[int], at: str) -> DropReport:
    """Do what a plan of this same transaction says."""
    journal = Journal(tx)
    _remove(journal, ids)
    summary = {"scenes": len(ids), **{part: getattr(plan, part) for part in _PARTS}}
    return replace(plan, applied=True, operation=journal.close("drop", at, summary))


def plan_reset(tx: Transaction) -> tuple[ResetReport, list[int]]:
    """Return what a reset would remove, and the ids of the emergent scenes."""
    ids = [scene_id for (scene_id,) in tx.execute("SELECT id FROM scenes WHERE origin = 'emergent' ORDER BY id")]
    (labels,) = tx.execute("SELECT COUNT(*) FROM situation_evidence").fetchone()
    features, refs, aliases = _sizes(tx, ids)
    return ResetReport(len(ids), features, refs, aliases, labels, _unplaced(tx, ids), applied=False), ids


def apply_reset(tx: Transaction, plan: ResetReport, ids: Sequence[int], at: str) -> ResetReport:
    """Do what a plan of this same transaction says."""
    if not ids and not plan.labels:
        return replace(plan, applied=True)
    journal = Journal(tx)
    _remove(journal, ids)
    for row in rows_of(tx, "situation_evidence", "TRUE", ()):
        journal.delete("situation_evidence", row)
    summary = {"scenes": len(ids), **{part: getattr(plan, part) for part in _PARTS}, "labels": plan.labels}
    return replace(plan, applied=True, operation=journal.close("reset", at, summary))


def _remove(journal: Journal, ids: Sequence[int]) -> None:
    these = [json.dumps(ids)]
    for table in _PARTS.values():
        for row in rows_of(journal.tx, table, f"scene_id IN {NUMBERS}", these):
            journal.delete(table, row)
    for row in rows_of(journal.tx, "scenes", f"id IN {NUMBERS}", these):
        journal.delete("scenes", row)


def _sizes(tx: Transaction, ids: Sequence[int]) -> tuple[int, int, int]:
    """Return how many features, refs and aliases belong to scenes."""
    these = json.dumps(ids)
    features, refs, aliases = (
        tx.execute(f"SELECT COUNT(*) FROM {table} WHERE scene_id IN {NUMBERS}", (these,)).fetchone()[0]
        for table in _PARTS.values()
    )
    return features, refs, aliases


def _unplaced(tx: Transaction, ids: Sequence[int]) -> int:
    """Return how many active facts only these scenes hold, of those that were never told openly."""
    these = json.dumps(ids)
    (count,) = tx.execute(
        f"""SELECT COUNT(DISTINCT ref.ref_id) FROM scene_refs ref JOIN relations r ON r.id = ref.ref_id
            WHERE ref.scene_id IN {NUMBERS} AND ref.kind = 'relation' AND r.status = 'active'
                AND NOT EXISTS (SELECT 1 FROM evidence v WHERE v.relation_id = r.id AND v.openly = 1)
                AND NOT EXISTS (SELECT 1 FROM scene_refs other WHERE other.kind = 'relation' AND other.ref_id = r.id
                                AND other.scene_id NOT IN {NUMBERS})""",
        (these, these),
    ).fetchone()
    return int(count)


# ---- tagging


def check_choice(relation_ids: Iterable[int], glob: str | None) -> list[int]:
    """Return the ids; raise InvalidInput for what is none, and unless there are either ids or a glob."""
    if not isinstance(relation_ids, Iterable):
        raise InvalidInput("relation_ids", relation_ids, "give a list of the ids of facts")
    ids = list(relation_ids)
    for relation_id in ids:
        check_count("relation_ids", relation_id, low=1)
    if bool(ids) == isinstance(glob, str) or not isinstance(glob, str | None):
        raise InvalidInput("glob", glob, "give either relation_ids or a glob as text")
    return ids


def tag(
    tx: Transaction, key: str, ids: list[int], glob: str | None, at: str, config: Config, *, dry_run: bool
) -> TagReport:
    """Attach facts and their ends to a scene, which is made when it is new and there is something for it.

    Raises NotFound when none of the ids is that of a fact.
    """
    chosen = ids if glob is None else relations.matching(tx, glob, at)
    scene_id = scenes.scene_id_of(tx, key)
    new = scene_id is None
    if dry_run or not chosen:
        report = _known(relations.tag(tx, scene_id, key, chosen, at, dry_run=dry_run), ids)
        return replace(report, created=new and bool(report.attached))
    journal = Journal(tx)
    if scene_id is None:
        (scene_id,) = scenes.ensure_scenes(tx, [key], at, config)
        for table, column in (("scenes", "id"), ("scene_features", "scene_id")):
            for row in rows_of(tx, table, f"{column} = ?", (scene_id,)):
                journal.remember(table, None, row)
    these = json.dumps(chosen)
    touched = f"""scene_id = ? AND (kind = 'relation' AND ref_id IN {NUMBERS} OR kind = 'entity' AND ref_id IN (
                      SELECT source_id FROM relations WHERE id IN {NUMBERS}
                      UNION SELECT target_id FROM relations WHERE id IN {NUMBERS}))"""
    with journal.watching("scene_refs", touched, (scene_id, these, these, these)):
        report = _known(relations.tag(tx, scene_id, key, chosen, at, dry_run=False), ids)
    if not journal.images:
        return report
    summary = {"attached": len(report.attached), "known": len(report.known)}
    return replace(report, operation=journal.close("tag", at, summary), created=new)


def _known(report: TagReport, ids: list[int]) -> TagReport:
    if ids and len(report.unknown) == len(set(ids)):
        raise _no_facts(report.unknown)
    return report


def _no_facts(ids: Sequence[int]) -> NotFound:
    return NotFound(f"none of the relations {', '.join(map(str, ids))} exists")


def untag(tx: Transaction, key: str, ids: list[int], glob: str | None, at: str, *, dry_run: bool) -> UntagReport:
    """Take facts out of a scene, whatever their status, with the ends that no other fact of the scene has.

    Raises NotFound for an unknown scene, and when none of the ids is that of a fact.
    """
    scene = _scene(tx, key)
    refs = {
        row["ref_id"]: row for row in rows_of(tx, "scene_refs", "scene_id = ? AND kind = 'relation'", [scene["id"]])
    }
    ends = _ends(tx, refs)
    if glob is None:
        chosen = list(dict.fromkeys(ids))
    else:
        matching = set(matching_glob(tx, glob))
        chosen = [fact for fact in sorted(refs) if not matching.isdisjoint(ends.get(fact, ()))]
    removed = [fact for fact in chosen if fact in refs]
    stored = {row["id"] for row in rows_of(tx, "relations", f"id IN {NUMBERS}", [json.dumps(chosen)])}
    absent = tuple(fact for fact in chosen if fact not in refs and fact in stored)
    unknown = tuple(fact for fact in chosen if fact not in refs and fact not in stored)
    if ids and len(unknown) == len(chosen):
        raise _no_facts(unknown)
    left = {end for fact in refs.keys() - set(removed) for end in ends.get(fact, ())}
    alone = {end for fact in removed for end in ends.get(fact, ())} - left
    rows = rows_of(
        tx,
        "scene_refs",
        f"scene_id = ? AND kind = 'entity' AND ref_id IN {NUMBERS}",
        (scene["id"], json.dumps([*alone])),
    )
    report = UntagReport(scene["key"], tuple(removed), absent, unknown, len(rows), applied=not dry_run)
    if dry_run or not removed:
        return report
    journal = Journal(tx)
    for row in (*(refs[fact] for fact in removed), *rows):
        journal.delete("scene_refs", row)
    return replace(report, operation=journal.close("untag", at, {"removed": len(removed), "entities": len(rows)}))


def _ends(tx: Transaction, facts: Iterable[int]) -> dict[int, tuple[int, int]]:
    rows = tx.execute(
        f"SELECT id, source_id, target_id FROM relations WHERE id IN {NUMBERS}", (json.dumps(list(facts)),)
    )
    return {relation_id: (source, target) for relation_id, source, target in rows}


# ---- health


def health(tx: Transaction, path: str, at: str) -> SceneHealth:
    """Return how the scenes do; refs are counted as `scenes` counts them."""
    twins = plan_dedupe(tx, path)  # first: it needs as much memory as what comes then
    found = scenes.list_scenes(tx, "", at)
    kinds = Counter(map(_leading_kind, found))
    idle = [scene for scene in found if not scene.refs]
    featureless = [scene.key for scene in found if scene.refs and not scene.features]
    (labels,) = tx.execute("SELECT COUNT(*) FROM situation_evidence").fetchone()
    changed = [twin for group in twins.groups for twin in group.members if twin.key != group.key]
    return SceneHealth(
        scenes=len(found),
        emergent=sum(scene.origin == "emergent" for scene in found),
        declared=sum(scene.origin == "declared" for scene in found),
        holding_nothing=len(idle),
        visits_for_nothing=sum(scene.visits for scene in idle),
        strength_for_nothing=sum(scene.strength for scene in idle),
        without_features=len(featureless),
        some_without_features=tuple(featureless[:_NAMED_AT_MOST]),
        kinds=tuple(sorted(kinds.items(), key=lambda each: (-each[1], each[0]))),
        twins=len(twins.groups),
        not_canonical=len(changed) + len(twins.rewritten) + len(twins.remarks),
        labels_waiting=labels,
        oldest_visit=min((scene.updated_at for scene in found), default=None),
        newest_visit=max((scene.updated_at for scene in found), default=None),
    )


def _leading_kind(scene: Scene) -> str:
    """Return the first kind that a key names, behind 'auto:' for one that grew; '' where it names none."""
    prefix = AUTO_PREFIX if scene.key.startswith(AUTO_PREFIX) else ""
    kind, colon, _ = scene.key.removeprefix(prefix).partition("/")[0].partition(":")
    return prefix + (kind if colon else "")


# ---- within


def _scene(tx: Transaction, key: str) -> Row:
    for row in rows_of(tx, "scenes", "id = ?", (scenes.scene_id_of(tx, key),)):
        return row
    raise _unknown(key, "at")


def _unknown(key: str, where: str) -> NotFound:
    return NotFound(f"there is no scene {where} {key!r}: 'graphmem scenes' lists them")
