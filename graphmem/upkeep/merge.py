"""Twin scenes: rows whose keys are one key in canonical form. First a plan, from a read; then, if wished, its work.

Only equal keys are proof; scenes that are merely alike are never merged. The plan reads nothing but the columns that
the reference engine's files have as well, so a dry run works on those too.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from graphmem.config import Config
from graphmem.core.keys import AUTO_PREFIX, normalize_key
from graphmem.core.model import DedupeReport, TwinGroup, TwinScene
from graphmem.core.situations import surplus_features
from graphmem.errors import InvalidInput, StoreFailed
from graphmem.store.transaction import Transaction
from graphmem.upkeep.journal import TEXTS, Journal, Row, rows_of

KIND = "dedupe"
_SCENE_TABLES = frozenset({"scenes", "scene_features", "scene_refs"})

# The reference engine's column may hold NULL.
_STRENGTH = "CAST(COALESCE(strength, 1) AS BIGINT)"

_Ref = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class _Columns:
    """SQL for columns that older files of the reference engine lack."""

    origin: str
    ref_text: str


def plan_dedupe(connection: Transaction, path: str, only: Collection[str] | None = None) -> DedupeReport:
    """Return what a dedupe would do, of all scenes or of those with these keys as they are stored.

    Raises StoreFailed, naming the path, when the file has no scenes at all.
    """
    columns = _columns(connection, path)
    spellings: dict[str, list[tuple[int, str, str, int]]] = defaultdict(list)
    remarks: list[str] = []
    (count,) = connection.execute("SELECT COUNT(*) FROM scenes").fetchone()
    chosen, parameters = ("", []) if only is None else (f"WHERE key IN {TEXTS}", [json.dumps(list(only))])
    scenes = f"SELECT id, key, {columns.origin}, {_STRENGTH} FROM scenes {chosen} ORDER BY id"
    for row in connection.execute(scenes, parameters):
        try:
            key = normalize_key(row[1])
        except InvalidInput as error:
            remarks.append(f"scene {row[0]} is left alone: {error}")
            continue
        if key:
            spellings[key].append(row)
        else:
            remarks.append(f"scene {row[0]} is left alone: nothing is left of its key {row[1]!r}")
    groups = tuple(_group(connection, columns, key, members) for key, members in spellings.items() if len(members) > 1)
    rewritten = tuple(
        (members[0][1], key) for key, members in spellings.items() if len(members) == 1 and members[0][1] != key
    )
    merged = sum(len(group.members) - 1 for group in groups)
    return DedupeReport(groups, rewritten, merged, count, count - merged, applied=False, remarks=tuple(remarks))


def _columns(connection: Transaction, path: str) -> _Columns:
    if missing := sorted(_SCENE_TABLES - {*connection.engine.tables(connection)}):
        raise StoreFailed(f"{path} holds no scenes: it has no table {', '.join(missing)}; check the path")
    has = {
        table: {column.name for column in connection.engine.columns(connection, table)}
        for table in ("scenes", "scene_refs")
    }
    return _Columns(
        origin="origin" if "origin" in has["scenes"] else "'declared'",
        ref_text="ref_text" if "ref_text" in has["scene_refs"] else "''",
    )


def _group(
    connection: Transaction, columns: _Columns, key: str, members: Sequence[tuple[int, str, str, int]]
) -> TwinGroup:
    features: set[str] = set()
    refs: set[_Ref] = set()
    moved = folded = 0
    twins = []
    for place, (scene_id, spelling, origin, strength) in enumerate(members):
        own_features = {
            feature
            for (feature,) in connection.execute("SELECT feature FROM scene_features WHERE scene_id = ?", (scene_id,))
        }
        own_refs: set[_Ref] = set(
            connection.execute(
                f"SELECT kind, ref_id, {columns.ref_text} FROM scene_refs WHERE scene_id = ?",
                (scene_id,),
            )
        )
        if place:
            moved += len(own_refs - refs)
            folded += len(own_refs & refs)
        features |= own_features
        refs |= own_refs
        twins.append(TwinScene(scene_id, spelling, origin, strength, len(own_features), len(own_refs)))
    origins = {twin.origin for twin in twins}
    return TwinGroup(
        key=key,
        origin="emergent" if key.startswith(AUTO_PREFIX) else "declared" if "declared" in origins else "emergent",
        strength=sum(twin.strength for twin in twins),
        features=len(features),
        refs=len(refs),
        refs_moved=moved,
        refs_folded=folded,
        members=tuple(twins),
    )


def apply_dedupe(tx: Transaction, plan: DedupeReport, at: str, config: Config) -> tuple[DedupeReport, set[int]]:
    """Do what a plan of this same transaction says; return the report and the scenes whose rows changed."""
    if not plan.groups and not plan.rewritten:
        return replace(plan, applied=True), set()
    journal = Journal(tx)
    changed: set[int] = set()
    for group in plan.groups:
        _merge(journal, group, at, config)
        changed.update(twin.id for twin in group.members)
    for old, new in plan.rewritten:
        (scene,) = rows_of(tx, "scenes", "key = ?", (old,))
        journal.update("scenes", scene, key=new)
        _add_aliases(journal, scene["id"], [old])
        changed.add(scene["id"])
    summary = {
        "groups": len(plan.groups),
        "merged": plan.merged,
        "rewritten": len(plan.rewritten),
        "refs_moved": sum(group.refs_moved for group in plan.groups),
        "refs_folded": sum(group.refs_folded for group in plan.groups),
        "scenes_before": plan.scenes_before,
        "scenes_after": plan.scenes_after,
    }
    return replace(plan, applied=True, operation=journal.close(KIND, at, summary)), changed


def _merge(journal: Journal, group: TwinGroup, at: str, config: Config) -> None:
    tx = journal.tx
    survivor, *doubles = (rows_of(tx, "scenes", "id = ?", (twin.id,))[0] for twin in group.members)
    total = dict(survivor)
    for double in doubles:
        _unite_features(journal, survivor["id"], double["id"])
        _move_refs(journal, survivor["id"], double["id"])
        for alias in rows_of(tx, "scene_aliases", "scene_id = ?", (double["id"],)):
            journal.update("scene_aliases", alias, scene_id=survivor["id"])
        journal.delete("scenes", double)
        total["strength"] += double["strength"]
        total["visits"] += double["visits"]
        total["updated_at"] = max(total["updated_at"], double["updated_at"])
        total["created_at"] = min(total["created_at"], double["created_at"])
    drop_surplus(journal, survivor["id"], config)
    journal.update("scenes", survivor, **{**total, "key": group.key, "origin": group.origin})
    _add_aliases(journal, survivor["id"], [twin.key for twin in group.members if twin.key != group.key])


def _unite_features(journal: Journal, survivor: int, double: int) -> None:
    own = {row["feature"]: row for row in rows_of(journal.tx, "scene_features", "scene_id = ?", (survivor,))}
    for row in rows_of(journal.tx, "scene_features", "scene_id = ?", (double,)):
        mine = own.get(row["feature"])
        journal.delete("scene_features", row)
        if mine is None:
            journal.insert("scene_features", {**row, "scene_id": survivor})
        else:
            journal.update(
                "scene_features",
                mine,
                weight=max(mine["weight"], row["weight"]),
                mass=mine["mass"] + row["mass"],
                touched=max(mine["touched"], row["touched"]),
            )


def _move_refs(journal: Journal, survivor: int, double: int) -> None:
    def target(row: Row) -> _Ref:
        return row["kind"], row["ref_id"], row["ref_text"]

    own = {target(row): row for row in rows_of(journal.tx, "scene_refs", "scene_id = ?", (survivor,))}
    for row in rows_of(journal.tx, "scene_refs", "scene_id = ?", (double,)):
        mine = own.get(target(row))
        if mine is None:
            journal.update("scene_refs", row, scene_id=survivor)
        else:
            journal.delete("scene_refs", row)
            weight, clock = max(mine["weight"], row["weight"]), max(mine["decayed_at"], row["decayed_at"])
            sentence = row["sentence_id"] if mine["sentence_id"] is None else mine["sentence_id"]
            journal.update("scene_refs", mine, weight=weight, decayed_at=clock, sentence_id=sentence)


def settle_features(tx: Transaction, scene_ids: Iterable[int], config: Config) -> None:
    """Make the features of scenes fit their visits and the cap, after an undo that later visits had not expected."""
    for scene_id in scene_ids:
        tx.execute(
            """UPDATE scene_features SET touched = MIN(touched, (SELECT visits FROM scenes WHERE id = ?))
               WHERE scene_id = ?""",
            (scene_id, scene_id),
        )
        drop_surplus(Journal(tx), scene_id, config)


def drop_surplus(journal: Journal, survivor: int, config: Config) -> None:
    """Delete the features of a scene that are beyond what one keeps."""
    rows = rows_of(journal.tx, "scene_features", "scene_id = ?", (survivor,))
    surplus = surplus_features({row["feature"]: (row["mass"], row["touched"]) for row in rows}, config)
    for row in rows:
        if row["feature"] in surplus:
            journal.delete("scene_features", row)


def _add_aliases(journal: Journal, survivor: int, keys: Iterable[str]) -> None:
    for key in keys:
        if not rows_of(journal.tx, "scene_aliases", "key = ?", (key,)):
            journal.insert("scene_aliases", {"key": key, "scene_id": survivor})
