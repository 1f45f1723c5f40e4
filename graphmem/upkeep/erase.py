"""Removing for good: rows, what speaks of them alone, and every image in the journal that would tell of them.

A merge leaves things that live in the journal only: the entity or scene that was merged away, the fact that folded into
another. They are part of what they became, and go with it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from graphmem.core.keys import auto_key
from graphmem.graph.scenes import sweep_refs
from graphmem.records import jobs
from graphmem.store import text_index
from graphmem.store.transaction import Transaction
from graphmem.upkeep import journal
from graphmem.upkeep.journal import NUMBERS, TEXTS, Row, rows_of

# What goes: ids by kind ('relation', 'entity', 'note', 'incident', 'session', 'scene', 'saying'), and the labels of
# evidence.
Gone = dict[str, set[Any]]

# Of what a row tells by an id, by table and column; a ref tells of what its kind says too.
_TELLS = {
    "relations": {"id": "relation", "source_id": "entity", "target_id": "entity"},
    "evidence": {"id": "saying", "relation_id": "relation"},
    "sentences": {},
    "entities": {"id": "entity"},
    "entity_aliases": {"entity_id": "entity"},
    "entities_apart": {"a": "entity", "b": "entity"},
    "notes": {"id": "note"},
    "note_labels": {"note_id": "note"},
    "note_triggers": {"note_id": "note"},
    "note_sources": {"note_id": "note", "source_id": "note"},
    "incidents": {"id": "incident"},
    "sessions": {"id": "session"},
    "parts": {"session_id": "session"},
    "scenes": {"id": "scene"},
    "scene_aliases": {"scene_id": "scene"},
    "scene_features": {"scene_id": "scene"},
    "scene_refs": {"scene_id": "scene"},
    "situation_evidence": {"label": "label"},
}
# Where the rows lie that a merge leaves an alias of.
_MERGED = {"entity": ("entities", "entity_aliases", "entity_id"), "scene": ("scenes", "scene_aliases", "scene_id")}

_Place = tuple[int, str, int, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the journal: where it stands, and what it says a row was and became."""

    operation: int
    seq: int
    table: str
    rows: tuple[Row, ...]


def images(tx: Transaction, tables: Collection[str] = tuple(_TELLS)) -> list[Entry]:
    """Return the images of rows of some tables."""
    found = tx.execute(
        f"""SELECT operation_id, seq, name, before, after FROM operation_rows WHERE name IN {TEXTS}
            ORDER BY operation_id, seq""",
        (json.dumps(sorted(tables)),),
    )
    return [
        Entry(operation, seq, table, tuple(json.loads(row) for row in sides if row is not None))
        for operation, seq, table, *sides in found
    ]


def only_in_journal(tx: Transaction, found: Iterable[Entry], table: str) -> dict[int, list[Row]]:
    """Return the images of rows of a table that are there no more, by id."""
    told: dict[int, list[Row]] = defaultdict(list)
    for image in found:
        if image.table == table:
            for row in image.rows:
                told[row["id"]].append(row)
    present = {row_id for (row_id,) in tx.execute(f"SELECT id FROM {table} WHERE id IN {NUMBERS}", (_list(told),))}
    return {row_id: rows for row_id, rows in told.items() if row_id not in present}


def erase(tx: Transaction, gone: Gone) -> dict[str, int]:
    """Remove rows for good with all that speaks of them alone; return how many of what no plan counts."""
    # What was undone cannot be undone again: its images serve nobody, and tell of what is nowhere else.
    tx.execute(
        "DELETE FROM operation_rows WHERE operation_id IN (SELECT id FROM operations WHERE undone_at IS NOT NULL)"
    )
    found = images(tx)
    _add_merged(tx, gone, found)
    facts, entities = _list(gone["relation"]), _list(gone["entity"])
    keys = _scene_keys(tx, gone["scene"], found)
    gone["label"] = _labels(tx, keys, found)
    # A name that a scene knows by these facts alone would seem to stand there by itself, for everybody.
    tx.execute(
        f"""DELETE FROM scene_refs
            WHERE kind = 'entity' AND ref_id IN (SELECT source_id FROM relations WHERE id IN {NUMBERS}
                                                 UNION SELECT target_id FROM relations WHERE id IN {NUMBERS})
                AND 1 = (SELECT MIN(CASE WHEN r.id IN {NUMBERS} THEN 1 ELSE 0 END) FROM relations r
                         CROSS JOIN scene_refs k ON k.scene_id = scene_refs.scene_id AND k.kind = 'relation'
                                                 AND k.ref_id = r.id
                         WHERE r.source_id = scene_refs.ref_id OR r.target_id = scene_refs.ref_id)""",
        (facts, facts, facts),
    )
    tx.execute(f"DELETE FROM evidence WHERE relation_id IN {NUMBERS}", (facts,))
    said = _drop_sayings(tx, gone["saying"], found)
    _drop(tx, "relation", "relations", gone["relation"])
    for kind in ("entity", "note"):
        tx.execute(f"DELETE FROM scene_refs WHERE kind = '{kind}' AND ref_id IN {NUMBERS}", (_list(gone[kind]),))
    tx.execute(f"DELETE FROM entities_apart WHERE a IN {NUMBERS} OR b IN {NUMBERS}", (entities, entities))
    tx.execute(f"DELETE FROM entity_aliases WHERE entity_id IN {NUMBERS}", (entities,))
    _drop(tx, "entity", "entities", gone["entity"])
    _forget_notes(tx, _list(gone["note"]))
    _drop(tx, "note", "notes", gone["note"])
    tx.execute(f"DELETE FROM incidents WHERE id IN {NUMBERS}", (_list(gone["incident"]),))
    sessions = _list(gone["session"])
    parts = {part_id for (part_id,) in tx.execute(f"SELECT id FROM parts WHERE session_id IN {NUMBERS}", (sessions,))}
    _drop(tx, "part", "parts", parts)
    jobs.release(tx, gone["session"])
    tx.execute(f"DELETE FROM sessions WHERE id IN {NUMBERS}", (sessions,))
    for table in ("scene_refs", "scene_features", "scene_aliases"):
        tx.execute(f"DELETE FROM {table} WHERE scene_id IN {NUMBERS}", (_list(gone["scene"]),))
    _drop(tx, "scene", "scenes", gone["scene"])
    tx.execute(f"DELETE FROM situation_evidence WHERE label IN {TEXTS}", (_list(gone["label"]),))
    sweep_refs(tx)
    cut = [image for image in found if any(each in gone[kind] for kind, each in _told_of(image))]
    _cut(tx, cut)
    _forget_sentences(tx, said)
    unused = _unused_sentences(tx, found)
    _drop(tx, "sentence", "sentences", unused)
    _cut(tx, [image for image in found if image.table == "sentences" and image.rows[0]["id"] in unused])
    _forget_scene_keys(tx, keys)
    tx.words.merge_segments(tx)
    return {"sentences": len(unused)}


def _list(values: Collection[Any]) -> str:
    return json.dumps(sorted(values))


def _drop(tx: Transaction, kind: str, table: str, ids: Collection[int]) -> None:
    text_index.drop(tx, kind, ids)
    tx.execute(f"DELETE FROM {table} WHERE id IN {NUMBERS}", (_list(ids),))


def _forget_notes(tx: Transaction, notes: str) -> None:
    """Remove what stands beside notes, and let go of what points at them."""
    for table in ("note_labels", "note_triggers", "note_usage"):
        tx.execute(f"DELETE FROM {table} WHERE note_id IN {NUMBERS}", (notes,))
    tx.execute(f"DELETE FROM provenance WHERE kind = 'note' AND ref_id IN {NUMBERS}", (notes,))
    # What was replaced by one of them is from now on by what replaced that one.
    passed = f"""UPDATE notes SET superseded_by = (SELECT o.superseded_by FROM notes o WHERE o.id = notes.superseded_by)
                 WHERE superseded_by IN {NUMBERS} AND id NOT IN {NUMBERS}"""
    while tx.execute(passed, (notes, notes)).rowcount:
        pass
    tx.execute(f"UPDATE notes SET superseded_by = NULL WHERE superseded_by IN {NUMBERS}", (notes,))
    for column in ("before", "after"):  # else no undo could bring back what such a note resolved
        tx.execute(
            f"""UPDATE operation_rows SET {column} = json_set({column}, '$.note_id', NULL)
                WHERE name = 'incidents' AND CAST(json_extract({column}, '$.note_id') AS BIGINT) IN {NUMBERS}""",
            (notes,),
        )


def _drop_sayings(tx: Transaction, ids: Collection[int], found: Iterable[Entry]) -> set[int]:
    """Remove what was said of facts that stay, which are shown as they were told else; return the sentences of it."""
    rows = rows_of(tx, "evidence", f"id IN {NUMBERS}", (_list(ids),))
    rows += [row for image in found if image.table == "evidence" for row in image.rows if row["id"] in ids]
    said = {row["sentence_id"] for row in rows if row["sentence_id"] is not None}
    tx.execute(f"DELETE FROM evidence WHERE id IN {NUMBERS}", (_list(ids),))
    facts, sentences = _list({row["relation_id"] for row in rows}), _list(said)
    tx.execute(
        f"""UPDATE relations SET sentence_id = (
                SELECT v.sentence_id FROM evidence v WHERE v.relation_id = relations.id AND v.sentence_id IS NOT NULL
                ORDER BY v.id DESC LIMIT 1)
            WHERE id IN {NUMBERS} AND sentence_id IN {NUMBERS} AND NOT EXISTS (
                SELECT 1 FROM evidence v
                WHERE v.relation_id = relations.id AND v.sentence_id = relations.sentence_id)""",
        (facts, sentences),
    )
    told_here = """FROM evidence v, json_each(COALESCE(v.scenes, '[]')) k
                   WHERE v.relation_id = scene_refs.ref_id AND k.value IN (
                       SELECT key FROM scenes WHERE id = scene_refs.scene_id
                       UNION ALL SELECT key FROM scene_aliases WHERE scene_id = scene_refs.scene_id)"""
    tx.execute(
        f"""UPDATE scene_refs SET sentence_id = (
                SELECT v.sentence_id {told_here} AND v.sentence_id IS NOT NULL ORDER BY v.id DESC LIMIT 1)
            WHERE kind = 'relation' AND ref_id IN {NUMBERS} AND sentence_id IN {NUMBERS} AND NOT EXISTS (
                SELECT 1 FROM evidence v
                WHERE v.relation_id = scene_refs.ref_id AND v.sentence_id = scene_refs.sentence_id)""",
        (facts, sentences),
    )
    return said


def _forget_sentences(tx: Transaction, said: Collection[int]) -> None:
    """Take sentences that nothing tells any more out of the images of facts that stay."""
    told = tx.execute(
        """SELECT sentence_id FROM relations UNION SELECT sentence_id FROM evidence
           UNION SELECT sentence_id FROM scene_refs
           UNION SELECT CAST(json_extract(before, '$.sentence_id') AS BIGINT) FROM operation_rows
           WHERE name = 'evidence'
           UNION SELECT CAST(json_extract(after, '$.sentence_id') AS BIGINT) FROM operation_rows
           WHERE name = 'evidence'"""
    )
    untold = _list(set(said) - {sentence_id for (sentence_id,) in told})
    for column in ("before", "after"):
        tx.execute(
            f"""UPDATE operation_rows SET {column} = json_set({column}, '$.sentence_id', NULL)
                WHERE name IN ('relations', 'scene_refs')
                    AND CAST(json_extract({column}, '$.sentence_id') AS BIGINT) IN {NUMBERS}""",
            (untold,),
        )


def _told_of(image: Entry) -> Iterator[tuple[str, Any]]:
    for row in image.rows:
        for column, kind in _TELLS[image.table].items():
            yield kind, row[column]
        if image.table == "scene_refs" and row["kind"] in ("relation", "entity", "note"):
            yield row["kind"], row["ref_id"]


def _add_merged(tx: Transaction, gone: Gone, found: list[Entry]) -> None:
    """Add what is in the journal only, and became a part of what goes."""
    became = {kind: _merges(tx, found, *where) for kind, where in _MERGED.items()}
    for kind, survivors in became.items():
        gone[kind] |= {merged for merged in survivors if _last(survivors, merged) in gone[kind]}

    def place(row: Row) -> _Place:
        ends = (_last(became["entity"], row[column]) for column in ("source_id", "target_id"))
        source, target = ends
        return source, row["relation_key"], target, row["scope"]

    places = {place(row) for row in rows_of(tx, "relations", f"id IN {NUMBERS}", (_list(gone["relation"]),))}
    gone["relation"] |= {
        relation_id
        for relation_id, rows in only_in_journal(tx, found, "relations").items()
        if any(place(row) in places or gone["entity"] & {row["source_id"], row["target_id"]} for row in rows)
    }


def _merges(tx: Transaction, found: list[Entry], table: str, aliases: str, owner: str) -> dict[int, int]:
    """Return which row a merged one became, by ids: the one that has its key, or that its key is an alias of."""
    owners = {row["key"]: row[owner] for image in found if image.table == aliases for row in image.rows}
    owners |= dict(tx.execute(f"SELECT key, {owner} FROM {aliases} UNION ALL SELECT key, id FROM {table}"))
    merged = only_in_journal(tx, found, table)
    return {
        row_id: owners[row["key"]]
        for row_id, rows in merged.items()
        for row in rows
        if owners.get(row["key"], row_id) != row_id
    }


def _last(became: dict[int, int], row_id: int) -> int:
    seen: set[int] = set()
    while row_id in became and row_id not in seen:
        seen.add(row_id)
        row_id = became[row_id]
    return row_id


def _cut(tx: Transaction, cut: Collection[Entry]) -> None:
    """Remove images, and tell in their operations how many: an undo brings back the rest."""
    tx.executemany(
        "DELETE FROM operation_rows WHERE operation_id = ? AND seq = ?",
        [(image.operation, image.seq) for image in cut],
    )
    for operation, number in Counter(image.operation for image in cut).items():
        tx.execute(
            """UPDATE operations SET summary = json_set(summary, '$.rows_removed_for_good',
                   COALESCE(CAST(json_extract(summary, '$.rows_removed_for_good') AS BIGINT), 0) + ?) WHERE id = ?""",
            (number, operation),
        )


def _unused_sentences(tx: Transaction, found: Iterable[Entry]) -> set[int]:
    """Return the sentences that tell nothing any more, and that no undo needs: of what goes, or was edited away."""
    stored = {sentence_id for (sentence_id,) in tx.execute("SELECT id FROM sentences")}
    used = tx.execute(
        f"""SELECT sentence_id FROM relations UNION SELECT sentence_id FROM evidence
            UNION SELECT sentence_id FROM scene_refs UNION {journal.SENTENCES}"""
    )
    return stored.union(only_in_journal(tx, found, "sentences")) - {sentence_id for (sentence_id,) in used}


def _scene_keys(tx: Transaction, scene_ids: Collection[int], found: Iterable[Entry]) -> set[str]:
    """Return the keys that scenes have, had, and are known by."""
    ids = _list(scene_ids)
    rows = tx.execute(
        f"SELECT key FROM scenes WHERE id IN {NUMBERS} UNION SELECT key FROM scene_aliases WHERE scene_id IN {NUMBERS}",
        (ids, ids),
    )
    columns = {"scenes": "id", "scene_aliases": "scene_id"}
    return {key for (key,) in rows} | {
        row["key"]
        for image in found
        if image.table in columns
        for row in image.rows
        if row[columns[image.table]] in scene_ids
    }


def _labels(tx: Transaction, keys: Collection[str], found: Iterable[Entry]) -> set[str]:
    """Return the labels of evidence that scenes of some keys grew under."""
    if not keys:
        return set()
    labels = {label for (label,) in tx.execute("SELECT label FROM situation_evidence")}
    labels |= {row["label"] for image in found if image.table == "situation_evidence" for row in image.rows}
    return {label for label in labels if auto_key(label) in keys}


def _forget_scene_keys(tx: Transaction, keys: Collection[str]) -> None:
    """Take keys out of what is kept of sayings, in rows and images: in which scenes they were told."""
    if not keys:
        return

    def without(scenes: str) -> str:
        return json.dumps([key for key in json.loads(scenes) if key not in keys], ensure_ascii=False)

    sayings = tx.execute(
        f"""SELECT id, scenes FROM evidence
            WHERE EXISTS (SELECT 1 FROM json_each(evidence.scenes) k WHERE k.value IN {TEXTS})""",
        (_list(keys),),
    ).fetchall()
    tx.executemany("UPDATE evidence SET scenes = ? WHERE id = ?", [(without(scenes), said) for said, scenes in sayings])
    for column in ("before", "after"):
        told = tx.execute(
            f"""SELECT operation_id, seq, {column} FROM operation_rows
                WHERE name = 'evidence' AND EXISTS (
                    SELECT 1 FROM json_each(json_extract({column}, '$.scenes')) k WHERE k.value IN {TEXTS})""",
            (_list(keys),),
        ).fetchall()
        for operation, seq, image in told:
            row = json.loads(image)
            tx.execute(
                f"UPDATE operation_rows SET {column} = ? WHERE operation_id = ? AND seq = ?",
                (journal.image_of({**row, "scenes": without(row["scenes"])}), operation, seq),
            )
