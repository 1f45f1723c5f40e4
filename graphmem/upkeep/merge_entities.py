"""Entities that turn out to be one: everything that names the source names the target from then on.

The source's name stays as an alias. Facts that both had fold into the target's; facts between the two say nothing any
more and are deleted. An undo brings the facts of both back as they were, and then tells again what was told of them
since: evidence keeps every saying whole, under the name it was said with. So it comes out as if the two had never been
one. What else changed these facts since, an edit or a deletion, has to be undone first.
"""

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphmem.core.keys import entity_key
from graphmem.core.model import EntityMergeReport, FoldedFact, Triple
from graphmem.errors import Conflict
from graphmem.graph import relations
from graphmem.graph.entities import require
from graphmem.graph.found import scenes_of_keys
from graphmem.store import text_index
from graphmem.store.transaction import Transaction
from graphmem.upkeep.edit import order_values
from graphmem.upkeep.journal import FADING, NUMBERS, TEXTS, Image, Journal, Row, row_key, rows_of, set_row

KIND = "merge entities"

# The facts of two entities, and their places in scenes.
_FACTS = "SELECT id FROM relations WHERE (source_id IN (?1, ?2) OR target_id IN (?1, ?2))"
_REFS = f"(kind = 'relation' AND ref_id IN ({_FACTS}) OR kind = 'entity' AND ref_id IN (?1, ?2))"

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


def pair(tx: Transaction, source: str, target: str) -> _Ends:
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


def plan(tx: Transaction, source_id: int, target_id: int) -> EntityMergeReport:
    """Return what merging an entity into another would do."""
    return _report(_plan(tx, source_id, target_id))


def merge(tx: Transaction, source_id: int, target_id: int, at: str) -> EntityMergeReport:
    """Merge an entity into another, as one journaled operation."""
    planned = _plan(tx, source_id, target_id)
    both = (source_id, target_id)
    marks = _marks(tx, both)
    as_it_was = [
        *(("relations", row) for row in rows_of(tx, "relations", f"id IN ({_FACTS})", both)),
        *(("scene_refs", row) for row in rows_of(tx, "scene_refs", f"{_REFS}", both)),
    ]
    journal = Journal(tx)
    _move_facts(journal, planned, at)
    for ref in planned.refs:
        _move_ref(journal, ref, target_id)
    _move_apart(journal, source_id, target_id)
    _move_names(journal, planned)
    text_index.drop(tx, "entity", [source_id])
    text_index.replace(tx, "entity", [target_id])
    text_index.drop(tx, "relation", [gone["id"] for gone, _ in planned.folded])
    text_index.replace(tx, "relation", [row["id"] for row in (*planned.loops, *planned.moved)])
    # An undo brings all of it back exactly, also what only later sayings change.
    changed = {(table, key) for table, key, *_ in journal.images}
    for table, row in as_it_was:
        if (table, json.dumps([row["id"]])) not in changed:
            journal.remember(table, row, row)
    report = _report(planned)
    summary = {
        "relations": len(report.moved),
        "folded": len(report.folded),
        "loops": len(report.loops),
        "refs_moved": report.refs_moved,
        "refs_folded": report.refs_folded,
    }
    return replace(report, applied=True, operation=journal.close(KIND, at, summary, marks))


def _marks(tx: Transaction, both: _Ends) -> dict[str, Any]:
    """Return what tells later rows from those of now, and which fact each saying of the two is evidence for."""
    last = {
        table: tx.execute(f"SELECT COALESCE(MAX(id), 0) FROM {table}").fetchone()[0]
        for table in ("evidence", "relations", "scene_refs")
    }
    said = tx.execute(f"SELECT id, relation_id FROM evidence WHERE relation_id IN ({_FACTS}) ORDER BY id", both)
    return {**last, "said": dict(said.fetchall())}


def _move_facts(journal: Journal, planned: _Plan, at: str) -> None:
    source_id, target_id = _both(planned)
    for row in (*planned.loops, *planned.moved):
        ends = {end: target_id for end in ("source_id", "target_id") if row[end] == source_id}
        closed = {"status": "deleted", "closed_at": at} if row in planned.loops and row["status"] != "deleted" else {}
        journal.update("relations", row, **ends, **closed)
    kept = [_fold(journal, *pair) for pair in planned.folded]
    for relation_key, scope in sorted({(row["relation_key"], row["scope"]) for row in (*planned.moved, *kept)}):
        order_values(journal, (target_id, relation_key, scope), at)


def _move_names(journal: Journal, planned: _Plan) -> None:
    """Let the target be mentioned for both, and the source's names lead to it."""
    source, target = planned.source, planned.target
    for alias in planned.aliases:
        journal.update("entity_aliases", alias, entity_id=target["id"])
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
    if key != target["key"] and not rows_of(journal.tx, "entity_aliases", "key = ?", (key,)):
        journal.insert("entity_aliases", {"key": key, "entity_id": target["id"]})


def _plan(tx: Transaction, source_id: int, target_id: int) -> _Plan:
    (source,), (target,) = (rows_of(tx, "entities", "id = ?", (id_,)) for id_ in (source_id, target_id))
    both = {source_id, target_id}
    active = {
        _place(row, source_id, target_id): row
        for row in rows_of(tx, "relations", "? IN (source_id, target_id) AND status = 'active'", (target_id,))
        if source_id not in (row["source_id"], row["target_id"])
    }
    moved: list[Row] = []
    folded: list[tuple[Row, Row]] = []
    loops: list[Row] = []
    for row in rows_of(tx, "relations", "? IN (source_id, target_id)", (source_id,)):
        place = _place(row, source_id, target_id)
        if {row["source_id"], row["target_id"]} == both:
            loops.append(row)
        elif row["status"] == "active" and place in active:
            folded.append((row, active[place]))
        else:
            moved.append(row)
            if row["status"] == "active":
                active[place] = row
    refs = rows_of(tx, "scene_refs", "kind = 'entity' AND ref_id = ?", (source_id,))
    held = {row["scene_id"] for row in rows_of(tx, "scene_refs", "kind = 'entity' AND ref_id = ?", (target_id,))}
    return _Plan(
        source,
        target,
        moved,
        folded,
        loops,
        refs,
        sum(ref["scene_id"] in held for ref in refs),
        rows_of(tx, "entity_aliases", "entity_id = ?", (source_id,)),
    )


def _both(planned: _Plan) -> _Ends:
    return planned.source["id"], planned.target["id"]


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


def _fold(journal: Journal, gone: Row, kept: Row) -> Row:
    """Let a fact take in one that equals it now: greater confidence, earliest known beginning, evidence of both."""
    (kept,) = rows_of(journal.tx, "relations", "id = ?", (kept["id"],))
    later = max(gone, kept, key=lambda row: (row["updated_at"], row["id"]))
    ends = [row["valid_to"] for row in (gone, kept)]
    for said in rows_of(journal.tx, "evidence", "relation_id = ?", (gone["id"],)):
        journal.update("evidence", said, relation_id=kept["id"])
    for ref in rows_of(journal.tx, "scene_refs", "kind = 'relation' AND ref_id = ?", (gone["id"],)):
        _move_ref(journal, ref, kept["id"])
    journal.delete("relations", gone)
    journal.update(
        "relations",
        kept,
        confidence=max(gone["confidence"], kept["confidence"]),
        sentence_id=later["sentence_id"] or gone["sentence_id"] or kept["sentence_id"],
        valid_from=min(filter(None, (gone["valid_from"], kept["valid_from"])), default=None),
        valid_to=None if None in ends else max(ends),
        recorded_at=min(gone["recorded_at"], kept["recorded_at"]),
        updated_at=later["updated_at"],
    )
    return kept


def _move_ref(journal: Journal, ref: Row, ref_id: int) -> None:
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


def _move_apart(journal: Journal, source_id: int, target_id: int) -> None:
    for row in rows_of(journal.tx, "entities_apart", "? IN (a, b)", (source_id,)):
        other = row["b"] if row["a"] == source_id else row["a"]
        a, b = sorted((other, target_id))
        journal.delete("entities_apart", row)
        if not rows_of(journal.tx, "entities_apart", "a = ? AND b = ?", (a, b)):
            journal.insert("entities_apart", {**row, "a": a, "b": b})


def certain_pairs(tx: Transaction) -> list[_Ends]:
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


def is_certain(tx: Transaction, source_id: int, target_id: int) -> bool:
    """Tell whether a pair that `certain_pairs` found is one still."""
    keys = dict(tx.execute("SELECT id, key FROM entities WHERE id IN (?, ?)", (source_id, target_id)))
    if len(keys) < 2:
        return False
    spellings = {keys[source_id], entity_key(keys[source_id])}
    aliases = tx.execute(f"SELECT entity_id FROM entity_aliases WHERE key IN {TEXTS}", (json.dumps([*spellings]),))
    return entity_key(keys[source_id]) == entity_key(keys[target_id]) or (target_id,) in aliases.fetchall()


# ---- undoing


@dataclass(frozen=True, slots=True)
class _Telling:
    """What was said of one of the two since the merge: its evidence, and the fact it came to."""

    said: Row
    fact: Row
    sentence: str


def put_back(tx: Transaction, operation_id: int, images: Sequence[Image], at: str) -> tuple[str, ...]:
    """Bring the facts of two entities back as they were before their merge, and tell again what was told since.

    Return a line for each thing that depends on the merge, so that nobody can know how it would be without. Raises
    Conflict when they were removed for good, or when a later operation changed what was told since.
    """
    entities = [(before, after) for table, before, after in images if table == "entities"]
    sources = [before for before, after in entities if before and after is None]
    targets = [before for before, after in entities if before and after]
    if not sources or not targets:
        raise Conflict(f"operation {operation_id} ({KIND}) cannot be undone: what it changed was removed for good")
    target_id = targets[0]["id"]
    marks = json.loads(tx.execute("SELECT marks FROM operations WHERE id = ?", (operation_id,)).fetchone()[0])
    _refuse_changed(tx, operation_id, target_id)
    since = _told_since(tx, target_id, marks["evidence"])
    made = _untell(tx, target_id, since, marks)
    _restore(tx, images, marks["said"])
    text_index.drop(tx, "relation", made)
    tx.execute(f"DELETE FROM relations WHERE id IN {NUMBERS}", (json.dumps(made),))
    for telling in since:
        _tell_again(tx, telling)
        for end in ("source_id", "target_id"):
            if telling.fact[end] != target_id:  # mentioned once, told twice; the two came back with what they had
                tx.execute("UPDATE entities SET mention_count = mention_count - 1 WHERE id = ?", (telling.fact[end],))
    return tuple(_order_values_of_others(tx, since, {sources[0]["id"], target_id}, at))


def _order_values_of_others(
    tx: Transaction, since: Sequence[_Telling], both: Collection[int], at: str
) -> Iterable[str]:
    """Order values of others that the two are among, where one was told since; yield a line for each place.

    What such a telling closed depended on which of the two it found.
    """
    told = {
        (telling.fact["source_id"], telling.fact["relation_key"], telling.fact["scope"]): telling.fact["relation_type"]
        for telling in since
        if telling.fact["source_id"] not in both
    }
    for place, relation in told.items():
        values = "SELECT id FROM relations WHERE source_id = ? AND relation_key = ? AND scope = ?"
        functional = tx.execute(
            f"""SELECT EXISTS (SELECT 1 FROM relations WHERE id IN ({values}) AND status = 'superseded')
                    OR EXISTS (SELECT 1 FROM evidence WHERE relation_id IN ({values}) AND functional = 1)""",
            (*place, *place),
        ).fetchone()[0]
        if functional:
            relations.order_values(tx, place, at)
            (name,) = tx.execute("SELECT name FROM entities WHERE id = ?", place[:1]).fetchone()
            yield f"values of {name!r} {relation!r} were put in order anew: look at them"


def _refuse_changed(tx: Transaction, operation_id: int, target_id: int) -> None:
    """Raise Conflict when a later operation changed a fact of the entity, or its place in a scene."""
    facts = json.dumps([row_id for (row_id,) in tx.execute(_FACTS, (target_id, target_id))])
    image = "COALESCE(r.before, r.after)"
    (later,) = tx.execute(
        f"""SELECT MIN(r.operation_id) FROM operation_rows r JOIN operations o ON o.id = r.operation_id
            WHERE o.id > ? AND o.undone_at IS NULL AND o.kind <> '{FADING}' AND CASE r.name
                WHEN 'relations' THEN CAST(json_extract(r.row, '$[0]') AS BIGINT) IN {NUMBERS}
                WHEN 'evidence' THEN CAST(json_extract({image}, '$.relation_id') AS BIGINT) IN {NUMBERS}
                WHEN 'scene_refs' THEN CASE json_extract({image}, '$.kind')
                    WHEN 'relation' THEN CAST(json_extract({image}, '$.ref_id') AS BIGINT) IN {NUMBERS}
                    WHEN 'entity' THEN CAST(json_extract({image}, '$.ref_id') AS BIGINT) = ? END END""",
        (operation_id, facts, facts, facts, target_id),
    ).fetchone()
    if later is not None:
        raise Conflict(f"operation {later} changed what was told since operation {operation_id}: undo {later} first")


def _told_since(tx: Transaction, target_id: int, last_said: int) -> list[_Telling]:
    later = rows_of(tx, "evidence", f"id > ?3 AND relation_id IN ({_FACTS})", (target_id, target_id, last_said))
    tellings = []
    for said in later:
        (fact,) = rows_of(tx, "relations", "id = ?", (said["relation_id"],))
        text = tx.execute("SELECT text FROM sentences WHERE id = ?", (said["sentence_id"],)).fetchone()
        tellings.append(_Telling(said, fact, "" if text is None else text[0]))
    return tellings


def _untell(tx: Transaction, target_id: int, since: Sequence[_Telling], marks: Mapping[str, Any]) -> list[int]:
    """Take back what was told since; return the facts that it made, which still hold evidence of before."""
    tx.execute(f"DELETE FROM scene_refs WHERE id > ?3 AND {_REFS}", (target_id, target_id, marks["scene_refs"]))
    said = json.dumps([telling.said["id"] for telling in since])
    tx.execute(f"DELETE FROM evidence WHERE id IN {NUMBERS}", (said,))
    facts = tx.execute(f"{_FACTS} AND id > ?3", (target_id, target_id, marks["relations"]))
    made = [row_id for (row_id,) in facts]
    tx.execute(f"UPDATE relations SET status = 'archived' WHERE id IN {NUMBERS}", (json.dumps(made),))
    return made


def _restore(tx: Transaction, images: Sequence[Image], said: Mapping[str, int]) -> None:
    """Make every row that the merge knew what it was."""
    first: dict[tuple[str, Any], Row | None] = {}
    for table, before, after in images:  # the last first: what was first remembered of a row wins
        first[table, row_key(table, before or after or {})] = before
    by_table: dict[str, list[tuple[Any, Row | None]]] = defaultdict(list)
    for (table, key), row in first.items():
        by_table[table].append((key, row))
    # No row may stand in the way of another: places in scenes go first, and no fact is active meanwhile.
    tx.executemany("DELETE FROM scene_refs WHERE id = ?", [key for key, _ in by_table["scene_refs"]])
    tx.executemany("UPDATE relations SET status = 'archived' WHERE id = ?", [key for key, _ in by_table["relations"]])
    for table in ("entities", "entity_aliases", "entities_apart", "relations", "evidence", "scene_refs"):
        for key, row in sorted(by_table[table], key=lambda one: one[0]):
            set_row(tx, table, key, row)
    tx.executemany("UPDATE evidence SET relation_id = ? WHERE id = ?", [(fact, id_) for id_, fact in said.items()])
    text_index.replace(tx, "relation", [key for (key,), _ in by_table["relations"]])
    text_index.replace(tx, "entity", [key for (key,), _ in by_table["entities"]])


def _tell_again(tx: Transaction, telling: _Telling) -> None:
    said, fact = telling.said, telling.fact
    triple = Triple(
        said["source_key"],
        fact["relation_type"],
        said["target_key"],
        sentence=telling.sentence,
        confidence=said["confidence"],
        functional=bool(said["functional"]),
    )
    scenes = json.loads(said["scenes"])
    saying = relations.Saying(said["session"], said["turn"], said["source"], fact["scope"], said["at"], scenes)
    told_in = scenes_of_keys(tx, scenes)
    free = not rows_of(tx, "relations", "id = ?", (fact["id"],))
    relations.tell(
        tx,
        [
            relations.Fact(
                triple,
                triple.subject,
                triple.relation,
                triple.object,
                telling.sentence,
                said["valid_from"],
                said["valid_to"],
            )
        ],
        saying,
        told_in,
        fact["id"] if free else None,
    )
