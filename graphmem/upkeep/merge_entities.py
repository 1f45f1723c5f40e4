"""Entities that turn out to be one: everything that names the source names the target from then on.

The source's name stays as an alias. Facts that both had fold into the target's; facts between the two say nothing any
more and are deleted. An undo gives later sayings back to the name they were said with: evidence keeps it, with the
scenes and the confidence, so what was told of either name since comes out as if the two had never been one.
"""

import json
import shlex
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphmem.core.keys import entity_key
from graphmem.core.model import EntityMergeReport, FoldedFact
from graphmem.errors import Conflict
from graphmem.graph import relations
from graphmem.graph.entities import require
from graphmem.graph.scenes import attach, scene_id_of
from graphmem.store import text_index
from graphmem.upkeep.journal import VALUES, Image, Journal, Row, images_of, rows_of

KIND = "merge entities"

_Ends = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a merge does: rows of facts to move, pairs of facts to fold (gone, kept), facts between the two."""

    source: Row
    target: Row
    moved: Sequence[Row]
    folded: Sequence[tuple[Row, Row]]
    loops: Sequence[Row]
    refs: Sequence[Row]
    refs_folded: int
    aliases: Sequence[Row]


def pair(tx: sqlite3.Connection, source: str, target: str) -> _Ends:
    """Return the ids of two entities; raise NotFound for an unknown one, Conflict when they are one or kept apart."""
    (source_id, source_name), (target_id, target_name) = (
        require(tx, name, None, argument=argument) for argument, name in (("source", source), ("target", target))
    )
    if source_id == target_id:
        raise Conflict(f"{source!r} and {target!r} are one entity already: {target_name!r}")
    apart = tx.execute("SELECT at FROM entities_apart WHERE a = ? AND b = ?", sorted((source_id, target_id))).fetchone()
    if apart is not None:
        remedy = f"graphmem entities keep-apart --off -- {shlex.join((source_name, target_name))}"
        raise Conflict(
            f"{source_name!r} and {target_name!r} are kept apart since {apart[0]}; to take it back: {remedy}"
        )
    return source_id, target_id


def plan(tx: sqlite3.Connection, source_id: int, target_id: int) -> EntityMergeReport:
    """Return what merging an entity into another would do."""
    return _report(_plan(tx, source_id, target_id))


def merge(tx: sqlite3.Connection, source_id: int, target_id: int, at: str) -> EntityMergeReport:
    """Merge an entity into another, as one journaled operation."""
    planned = _plan(tx, source_id, target_id)
    journal = Journal(tx)
    marks = {
        table: tx.execute(f"SELECT COALESCE(MAX(id), 0) FROM {table}").fetchone()[0]
        for table in ("evidence", "scene_refs")
    }
    for row in (*planned.loops, *planned.moved):
        ends = {end: target_id for end in ("source_id", "target_id") if row[end] == source_id}
        closed = {"status": "deleted", "closed_at": at} if row in planned.loops and row["status"] != "deleted" else {}
        journal.update("relations", row, **ends, **closed)
    for gone, kept in planned.folded:
        _fold(journal, gone, kept)
    for ref in planned.refs:
        move_ref(journal, ref, target_id)
    _order_values(journal, target_id, planned.moved, at)
    for alias in planned.aliases:
        journal.update("entity_aliases", alias, entity_id=target_id)
    _move_apart(journal, source_id, target_id)
    source, target = planned.source, planned.target
    journal.update(
        "entities",
        target,
        mention_count=target["mention_count"] + source["mention_count"],
        created_at=min(target["created_at"], source["created_at"]),
        updated_at=max(target["updated_at"], source["updated_at"]),
        type=source["type"] if target["type"] == "Concept" else target["type"],
    )
    journal.delete("entities", source)
    key = entity_key(source["key"])
    if key != target["key"] and not rows_of(tx, "entity_aliases", "key = ?", (key,)):
        journal.insert("entity_aliases", {"key": key, "entity_id": target_id})
    text_index.drop(tx, "entity", [source_id])
    text_index.replace(tx, "entity", [target_id])
    text_index.drop(tx, "relation", [gone["id"] for gone, _ in planned.folded])
    text_index.replace(tx, "relation", [row["id"] for row in (*planned.loops, *planned.moved)])
    report = _report(planned)
    summary = {
        "relations": len(report.moved),
        "folded": len(report.folded),
        "loops": len(report.loops),
        "refs_moved": report.refs_moved,
        "refs_folded": report.refs_folded,
    }
    return replace(report, applied=True, operation=journal.close(KIND, at, summary, marks))


def _plan(tx: sqlite3.Connection, source_id: int, target_id: int) -> _Plan:
    (source,), (target,) = (rows_of(tx, "entities", "id = ?", (id_,)) for id_ in (source_id, target_id))
    both = {source_id, target_id}
    active = {
        _place(row, source_id, target_id): row
        for row in rows_of(
            tx, "relations", "? IN (source_id, target_id) AND status = 'active' ORDER BY id", (target_id,)
        )
        if source_id not in (row["source_id"], row["target_id"])
    }
    moved: list[Row] = []
    folded: list[tuple[Row, Row]] = []
    loops: list[Row] = []
    for row in rows_of(tx, "relations", "? IN (source_id, target_id) ORDER BY id", (source_id,)):
        place = _place(row, source_id, target_id)
        if {row["source_id"], row["target_id"]} == both:
            loops.append(row)
        elif row["status"] == "active" and place in active:
            folded.append((row, active[place]))
        else:
            moved.append(row)
            if row["status"] == "active":
                active[place] = row
    refs = rows_of(tx, "scene_refs", "kind = 'entity' AND ref_id = ? ORDER BY id", (source_id,))
    held = {row["scene_id"] for row in rows_of(tx, "scene_refs", "kind = 'entity' AND ref_id = ?", (target_id,))}
    return _Plan(
        source,
        target,
        moved,
        folded,
        loops,
        refs,
        sum(ref["scene_id"] in held for ref in refs),
        rows_of(tx, "entity_aliases", "entity_id = ? ORDER BY key", (source_id,)),
    )


def _place(row: Row, source_id: int, target_id: int) -> tuple[Any, ...]:
    """Return where a fact stands once the source is the target."""
    ends = (target_id if row[end] == source_id else row[end] for end in ("source_id", "target_id"))
    return (*ends, row["relation_key"], row["scope"])


def _report(planned: _Plan) -> EntityMergeReport:
    return EntityMergeReport(
        source=planned.source["name"],
        target=planned.target["name"],
        moved=tuple(row["id"] for row in planned.moved),
        folded=tuple(FoldedFact(gone["id"], kept["id"]) for gone, kept in planned.folded),
        loops=tuple(row["id"] for row in planned.loops),
        refs_moved=len(planned.refs) - planned.refs_folded,
        refs_folded=planned.refs_folded,
        aliases=(*(alias["key"] for alias in planned.aliases), planned.source["key"]),
        mentions=planned.source["mention_count"] + planned.target["mention_count"],
        applied=False,
    )


def _fold(journal: Journal, gone: Row, kept: Row) -> None:
    """Let a fact take in one that equals it now: the greater confidence, the wider time, the evidence of both."""
    (kept,) = rows_of(journal.tx, "relations", "id = ?", (kept["id"],))
    later = max(gone, kept, key=lambda row: (row["updated_at"], row["id"]))
    starts, ends = ([row[bound] for row in (gone, kept)] for bound in ("valid_from", "valid_to"))
    for said in rows_of(journal.tx, "evidence", "relation_id = ? ORDER BY id", (gone["id"],)):
        journal.update("evidence", said, relation_id=kept["id"])
    for ref in rows_of(journal.tx, "scene_refs", "kind = 'relation' AND ref_id = ? ORDER BY id", (gone["id"],)):
        move_ref(journal, ref, kept["id"])
    journal.delete("relations", gone)
    journal.update(
        "relations",
        kept,
        confidence=max(gone["confidence"], kept["confidence"]),
        sentence_id=later["sentence_id"] or gone["sentence_id"] or kept["sentence_id"],
        valid_from=None if None in starts else min(starts),
        valid_to=None if None in ends else max(ends),
        recorded_at=min(gone["recorded_at"], kept["recorded_at"]),
        updated_at=later["updated_at"],
    )


def move_ref(journal: Journal, ref: Row, ref_id: int) -> None:
    """Let a ref of a scene point at another id; where the scene has one, that keeps the greater weight and clock."""
    known = rows_of(
        journal.tx, "scene_refs", "scene_id = ? AND kind = ? AND ref_id = ?", (ref["scene_id"], ref["kind"], ref_id)
    )
    if not known:
        journal.update("scene_refs", ref, ref_id=ref_id)
        return
    (mine,) = known
    later = max(mine, ref, key=lambda row: row["decayed_at"])
    journal.delete("scene_refs", ref)
    journal.update(
        "scene_refs",
        mine,
        weight=max(mine["weight"], ref["weight"]),
        decayed_at=later["decayed_at"],
        sentence_id=later["sentence_id"] or mine["sentence_id"] or ref["sentence_id"],
    )


def _order_values(journal: Journal, target_id: int, moved: Sequence[Row], at: str) -> None:
    """Put the values of functional relations that two entities had into one order: the latest holds."""
    for relation_key, scope in sorted({(row["relation_key"], row["scope"]) for row in moved}):
        condition = "source_id = ? AND relation_key = ? AND scope = ?"
        place = (target_id, relation_key, scope)
        values = rows_of(journal.tx, "relations", f"{condition} AND status IN ('active', 'superseded')", place)
        if any(row["status"] == "superseded" for row in values):
            with journal.watching("relations", condition, place):
                relations.order_values(journal.tx, place, at)


def _move_apart(journal: Journal, source_id: int, target_id: int) -> None:
    for row in rows_of(journal.tx, "entities_apart", "? IN (a, b)", (source_id,)):
        other = row["b"] if row["a"] == source_id else row["a"]
        a, b = sorted((other, target_id))
        journal.delete("entities_apart", row)
        if not rows_of(journal.tx, "entities_apart", "a = ? AND b = ?", (a, b)):
            journal.insert("entities_apart", {**row, "a": a, "b": b})


def certain_pairs(tx: sqlite3.Connection) -> list[_Ends]:
    """Return the pairs (source, target) that are one by their names: equal in canonical form, or an alias of it.

    Rows that graphmem wrote are never so; those of an import or of another program may be.
    """
    aliases = dict(tx.execute("SELECT key, entity_id FROM entity_aliases"))
    first: dict[str, int] = {}
    pairs = []
    for entity_id, key in tx.execute("SELECT id, key FROM entities ORDER BY id").fetchall():
        canonical = entity_key(key)
        target = aliases.get(key, aliases.get(canonical, first.setdefault(canonical, entity_id)))
        if target != entity_id:
            pairs.append((entity_id, target))
    sources = {source for source, _ in pairs}
    # Two entities that are aliases of each other are damage, which `check` tells of.
    return [(source, target) for source, target in pairs if target not in sources]


def is_certain(tx: sqlite3.Connection, source_id: int, target_id: int) -> bool:
    """Tell whether a pair that `certain_pairs` found is one still."""
    keys = dict(tx.execute("SELECT id, key FROM entities WHERE id IN (?, ?)", (source_id, target_id)))
    if len(keys) < 2:
        return False
    spellings = {keys[source_id], entity_key(keys[source_id])}
    aliases = tx.execute(f"SELECT entity_id FROM entity_aliases WHERE key IN {VALUES}", (json.dumps([*spellings]),))
    return entity_key(keys[source_id]) == entity_key(keys[target_id]) or (target_id,) in aliases.fetchall()


# ---- undoing


@dataclass(frozen=True, slots=True)
class _Parting:
    """Two entities that are two again. names: the keys that mean each. later: what was said of either since."""

    source: Row
    target: Row
    names: Mapping[int, frozenset[str]]
    later: Sequence[Row]
    last_said: int
    last_ref: int
    images: Sequence[Image]

    def before(self, table: str) -> dict[int, Row]:
        """Return the rows of a table as they were before the merge, those that it changed, by id."""
        return {before["id"]: before for name, before, _ in self.images if name == table and before}

    def owner(self, key: str) -> int | None:
        """Return which of the two a name means, None for neither."""
        return next((entity_id for entity_id, keys in self.names.items() if key in keys), None)


def give_back(tx: sqlite3.Connection, operation_id: int) -> tuple[str, ...]:
    """After the rows of a merge were put back, give what was told since to the name it was told of.

    Return a line for each thing that depends on the merge in a way that nobody can take apart.
    """
    parting = _parting(tx, operation_id)
    groups: dict[tuple[int, _Ends], list[Row]] = defaultdict(list)
    for said in parting.later:
        row = _relation(tx, said["relation_id"])
        ends = (
            _end(parting, row["source_id"], said["source_key"]),
            _end(parting, row["target_id"], said["target_key"]),
        )
        if ends != (row["source_id"], row["target_id"]):
            groups[row["id"], ends].append(said)
    remarks: list[str] = []
    touched: set[int] = set()
    for (relation_id, ends), sayings in groups.items():
        remarks += _closed_by(tx, relation_id, sayings)
        touched |= {relation_id, _part(tx, parting, relation_id, ends, sayings)}
    # What was put back may be what was told again since.
    for relation_id in parting.before("relations"):
        again = rows_of(tx, "evidence", "relation_id = ? AND id > ? ORDER BY id", (relation_id, parting.last_said))
        if again:
            _retell(tx, relation_id, again)
    _settle_refs(tx, parting, touched)
    _share_mentions(tx, parting)
    text_index.replace(tx, "relation", touched)
    text_index.replace(tx, "entity", [*parting.names])
    return tuple(remarks)


def _parting(tx: sqlite3.Connection, operation_id: int) -> _Parting:
    (marks,) = tx.execute("SELECT marks FROM operations WHERE id = ?", (operation_id,)).fetchone()
    mark = json.loads(marks)
    images = images_of(tx, operation_id)
    entities = [(before, after) for table, before, after in images if table == "entities"]
    (source,) = (before for before, after in entities if before and after is None)
    (target,) = (before for before, after in entities if before and after)
    names = {entity["id"]: _names(tx, entity) for entity in (source, target)}
    keys = json.dumps(sorted(frozenset().union(*names.values())))
    later = rows_of(
        tx,
        "evidence",
        f"id > ? AND (source_key IN {VALUES} OR target_key IN {VALUES}) ORDER BY id",
        (mark["evidence"], keys, keys),
    )
    return _Parting(source, target, names, later, mark["evidence"], mark["scene_refs"], images)


def _names(tx: sqlite3.Connection, entity: Row) -> frozenset[str]:
    aliases = tx.execute("SELECT key FROM entity_aliases WHERE entity_id = ?", (entity["id"],))
    return frozenset([entity["key"], *(key for (key,) in aliases)])


def _relation(tx: sqlite3.Connection, relation_id: int) -> Row:
    (row,) = rows_of(tx, "relations", "id = ?", (relation_id,))
    return row


def _end(parting: _Parting, now: int, said: str) -> int:
    owner = parting.owner(said)
    return now if owner is None or now not in parting.names else owner


def _closed_by(tx: sqlite3.Connection, relation_id: int, sayings: Sequence[Row]) -> Iterable[str]:
    """Tell of values of a functional relation that were closed when a value of the other entity was told."""
    row = _relation(tx, relation_id)
    times = json.dumps([said["at"] for said in sayings])
    closed = tx.execute(
        f"""SELECT r.id, a.name, r.relation_type, b.name FROM relations r
            JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
            WHERE r.source_id = ? AND r.relation_key = ? AND r.scope = ? AND r.id <> ? AND r.status = 'superseded'
                AND r.closed_at IN {VALUES} ORDER BY r.id""",
        (row["source_id"], row["relation_key"], row["scope"], relation_id, times),
    )
    for closed_id, subject, relation, object_ in closed:
        yield (
            f"fact {closed_id} ({subject} {relation} {object_}) was superseded by what was told since the merge, "
            "and stays so: commit it again if it holds"
        )


def _part(tx: sqlite3.Connection, parting: _Parting, relation_id: int, ends: _Ends, sayings: Sequence[Row]) -> int:
    """Let sayings of a fact be about other ends; return the fact that they tell now."""
    row = _relation(tx, relation_id)
    ids = {said["id"] for said in sayings}
    others = [
        said for said in rows_of(tx, "evidence", "relation_id = ? ORDER BY id", (relation_id,)) if said["id"] not in ids
    ]
    known = rows_of(
        tx,
        "relations",
        """source_id = ? AND relation_key = ? AND target_id = ? AND scope = ? AND status <> 'superseded'
           ORDER BY status <> 'active', id DESC LIMIT 1""",
        (ends[0], row["relation_key"], ends[1], row["scope"]),
    )
    if row["status"] == "superseded" or not (known or others):
        tx.execute("UPDATE relations SET source_id = ?, target_id = ? WHERE id = ?", (*ends, relation_id))
        return relation_id
    told_id = int(known[0]["id"]) if known else _copy(tx, row, ends, sayings[0]["at"])
    tx.executemany("UPDATE evidence SET relation_id = ? WHERE id = ?", [(told_id, said["id"]) for said in sayings])
    _retell(tx, told_id, sayings)
    if others:
        _untell(tx, parting, row, sayings, others)
    else:
        tx.execute("DELETE FROM scene_refs WHERE kind = 'relation' AND ref_id = ?", (relation_id,))
        tx.execute("DELETE FROM relations WHERE id = ?", (relation_id,))
    return told_id


def _copy(tx: sqlite3.Connection, row: Row, ends: _Ends, at: str) -> int:
    columns = [column for column in row if column != "id"]
    told = {"sentence_id": None, "recorded_at": at, "updated_at": at}
    copy = {**row, **told, "source_id": ends[0], "target_id": ends[1]}
    (copied,) = tx.execute(
        f"INSERT INTO relations({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) RETURNING id",
        [copy[column] for column in columns],
    ).fetchone()
    return int(copied)


def _retell(tx: sqlite3.Connection, relation_id: int, sayings: Sequence[Row]) -> None:
    """Give a fact what sayings, in their order, say of it."""
    confidence = next((said["confidence"] for said in reversed(sayings) if said["confidence"]), None)
    sentence_id = next((said["sentence_id"] for said in reversed(sayings) if said["sentence_id"]), None)
    tx.execute(
        """UPDATE relations SET confidence = COALESCE(?, confidence), sentence_id = COALESCE(?, sentence_id),
               recorded_at = MIN(recorded_at, ?), updated_at = MAX(updated_at, ?),
               closed_at = CASE status WHEN 'deleted' THEN NULL WHEN 'archived' THEN NULL ELSE closed_at END,
               status = CASE status WHEN 'deleted' THEN 'active' WHEN 'archived' THEN 'active' ELSE status END
           WHERE id = ?""",
        (
            confidence, sentence_id, min(said["at"] for said in sayings), max(said["at"] for said in sayings),
            relation_id,
        ),
    )  # fmt: skip


def _untell(tx: sqlite3.Connection, parting: _Parting, row: Row, gone: Sequence[Row], others: Sequence[Row]) -> None:
    """Take from a fact what sayings that are gone gave it."""
    as_it_was = parting.before("relations").get(row["id"])
    if as_it_was is not None and others[-1]["id"] <= parting.last_said:
        columns = ("confidence", "sentence_id", "status", "closed_at", "recorded_at", "updated_at")
        _set(tx, "relations", row["id"], {column: as_it_was[column] for column in columns})
        return
    times = [said["at"] for said in others]
    values: Row = {"recorded_at": min(times), "updated_at": max(times)}
    if row["sentence_id"] in {said["sentence_id"] for said in gone} - {said["sentence_id"] for said in others}:
        values["sentence_id"] = None
    _set(tx, "relations", row["id"], values)
    _retell(tx, row["id"], others)


def _set(tx: sqlite3.Connection, table: str, row_id: int, values: Row) -> None:
    if values:
        sets = ", ".join(f"{column} = ?" for column in values)
        tx.execute(f"UPDATE {table} SET {sets} WHERE id = ?", (*values.values(), row_id))


def _settle_refs(tx: sqlite3.Connection, parting: _Parting, touched: Iterable[int]) -> None:
    """Let scenes hold what was told in them, under the name it was told with, as strongly as it was told."""
    scene_ids: dict[str, int | None] = {}

    def scenes_of(said: Row) -> set[int]:
        keys = json.loads(said["scenes"] or "[]")
        for key in keys:
            if key not in scene_ids:
                scene_ids[key] = scene_id_of(tx, key)
        return {scene_id for key in keys if (scene_id := scene_ids[key]) is not None}

    later: dict[int, list[Row]] = defaultdict(list)
    for said in parting.later:
        (now,) = rows_of(tx, "evidence", "id = ?", (said["id"],))
        row = _relation(tx, now["relation_id"])
        for scene_id in scenes_of(now):
            later[scene_id].append(now)
            ends = (row["source_id"], row["target_id"])
            attach(tx, scene_id, (row["id"], now["sentence_id"]), ends, weight=now["confidence"], at=now["at"])
    moved = {(before or after or {})["id"] for table, before, after in parting.images if table == "relations"}
    targets = {("relation", relation_id) for relation_id in {*moved, *touched}}
    targets |= {("entity", entity_id) for entity_id in parting.names}
    told = {target: _sayings(tx, *target) for target in targets}
    as_it_was = parting.before("scene_refs")
    for scene_id, said_here in later.items():
        for ref in rows_of(tx, "scene_refs", "scene_id = ? AND kind IN ('relation', 'entity')", (scene_id,)):
            if (ref["kind"], ref["ref_id"]) in targets:
                own = [said for said in told[ref["kind"], ref["ref_id"]] if scene_id in scenes_of(said)]
                ids = {said["id"] for said in own}
                foreign = [said for said in said_here if said["id"] not in ids]
                _settle_ref(tx, ref, own, foreign, as_it_was.get(ref["id"]), made_since=ref["id"] > parting.last_ref)


def _sayings(tx: sqlite3.Connection, kind: str, ref_id: int) -> list[Row]:
    if kind == "relation":
        return rows_of(tx, "evidence", "relation_id = ? ORDER BY id", (ref_id,))
    condition = "relation_id IN (SELECT id FROM relations WHERE ? IN (source_id, target_id)) ORDER BY id"
    return rows_of(tx, "evidence", condition, (ref_id,))


def _settle_ref(
    tx: sqlite3.Connection,
    ref: Row,
    own: Sequence[Row],
    foreign: Sequence[Row],
    before: Row | None,
    *,
    made_since: bool,
) -> None:
    """Take from a ref what only sayings of the other entity gave it."""
    if not own and made_since:
        tx.execute("DELETE FROM scene_refs WHERE id = ?", (ref["id"],))
        return
    values: Row = {}
    for column, said_column in (("weight", "confidence"), ("decayed_at", "at"), ("sentence_id", "sentence_id")):
        given = [said[said_column] for said in own if said[said_column] is not None]
        if ref[column] in (None, *given) or ref[column] not in [said[said_column] for said in foreign]:
            continue
        if given:
            values[column] = given[-1] if column == "sentence_id" else max(given)
        elif before is not None or column == "sentence_id":
            values[column] = before[column] if before is not None else None
    _set(tx, "scene_refs", ref["id"], values)


def _share_mentions(tx: sqlite3.Connection, parting: _Parting) -> None:
    """Count later mentions for the entity whose name was used."""
    source, target = parting.source, parting.target
    times: dict[int, list[str]] = {source["id"]: [], target["id"]: []}
    for said in parting.later:
        for key in (said["source_key"], said["target_key"]):
            if (owner := parting.owner(key)) is not None:
                times[owner].append(said["at"])
    tx.execute(
        "UPDATE entities SET mention_count = mention_count + ?, updated_at = MAX(updated_at, ?) WHERE id = ?",
        (len(times[source["id"]]), max([source["updated_at"], *times[source["id"]]]), source["id"]),
    )
    tx.execute(
        """UPDATE entities SET mention_count = mention_count - ?,
               updated_at = CASE WHEN updated_at = ? THEN ? ELSE updated_at END WHERE id = ?""",
        (
            len(times[source["id"]]), max(times[source["id"]], default=""),
            max([target["updated_at"], *times[target["id"]]]), target["id"],
        ),
    )  # fmt: skip
