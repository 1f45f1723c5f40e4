"""What scenes bring back, against a plain reading of the tables; and that no step sorts what is not returned."""

import functools
import itertools
import sqlite3
import tempfile
from pathlib import Path

from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, plans_of, sql

from graphmem import Memory, Situation, Triple

KEYS = ["chan:qq", "chan:qq/peer:boss", "chan:qq/peer:clerk", "chan:mail"]
TIMES = ["2026-09-01T00:00:00.000Z", "2026-09-05T00:00:00.000Z", "2026-09-08T00:00:00.000Z"]
NOW = "2026-09-07T08:00:00.000Z"

names = st.sampled_from("abcdef")
facts = st.builds(
    Triple,
    names,
    st.sampled_from(["is", "has"]),
    names,
    sentence=st.sampled_from(["", "one said so", "another said so", "a third said so"]),
    confidence=st.sampled_from([0.5, 1.0]),
    valid_from=st.sampled_from([None, None, TIMES[0], TIMES[2]]),
    valid_to=st.sampled_from([None, None, None, TIMES[2]]),
    functional=st.sampled_from([False, False, False, True]),
)
scenes = st.lists(st.sampled_from(KEYS), unique=True, max_size=3)
commits = st.tuples(st.lists(facts, max_size=6), scenes, st.sampled_from(["", "work"]), st.sampled_from(TIMES))
texts = st.tuples(st.sampled_from(["block", "document"]), st.integers(0, 9), scenes, st.sampled_from(TIMES))
# Weights that fade, as upkeep lets them, and equal ones, so that ties are common.
fading = st.lists(st.tuples(st.sampled_from([0.25, 0.5, 1.0]), st.sampled_from(TIMES)), max_size=12)


def fill(memory, path, told, visits, faded):
    for peer in visits:
        memory.enter_scene(Situation.of(chan="qq", peer=peer))
    for one in told:
        if isinstance(one[0], str):
            kind, number, keys, at = one
            put = memory.put_block if kind == "block" else memory.put_document
            put(f"{kind} {number}", scenes=keys, at=at)
        else:
            triples, keys, scope, at = one
            memory.commit(triples, scenes=keys, scope=scope, at=at)
    for id_, (weight, decayed) in enumerate(faded, 1):
        sql(path, "UPDATE scene_refs SET weight = ?, decayed_at = ? WHERE id = ?", weight, decayed, 2 * id_)


def holds(fact, at):
    if fact["status"] not in ("active", "superseded") or (fact["valid_from"] or "") > at:
        return False
    return fact["valid_to"] > at if fact["valid_to"] else fact["status"] == "active"


def read(path, table):
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    with connection:
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    connection.close()
    return [dict(row) for row in rows]


def expected(path, chosen, limit, scopes, at):
    """What a recall returns of scenes, given as rows of id, tier and score in their order."""
    relations = {row["id"]: row for row in read(path, "relations")}
    entities = {row["id"]: row for row in read(path, "entities")}
    sentences = {row["id"]: row["text"] for row in read(path, "sentences")} | {None: ""}
    blocks = {row["id"]: row for row in read(path, "blocks")}
    documents = {row["id"]: row for row in read(path, "documents")}
    keys = {row["id"]: row["key"] for row in read(path, "scenes")}
    refs = read(path, "scene_refs")
    places = [
        {**ref, "tier": tier, "score": score * ref["weight"], "place": place}
        for place, (scene_id, tier, score) in enumerate(chosen)
        for ref in refs
        if ref["scene_id"] == scene_id
    ]

    def seen(fact):
        return holds(fact, at) and (scopes is None or fact["scope"] in ("", *scopes))

    told = [place for place in places if place["kind"] == "relation"]
    # In steps, the least telling first, since a sort keeps the order of what is equal.
    told.sort(key=lambda ref: ref["place"])
    told.sort(key=lambda ref: ref["decayed_at"], reverse=True)
    told.sort(key=lambda ref: (ref["score"], relations[ref["ref_id"]]["updated_at"], ref["ref_id"]), reverse=True)
    told.sort(key=lambda ref: ref["tier"])
    best = {}
    for ref in told:
        if seen(relations[ref["ref_id"]]):
            best.setdefault(ref["ref_id"], ref)
    found_relations = [(id_, ref["score"], sentences[ref["sentence_id"]]) for id_, ref in best.items()]

    ends = {"all": set(), "seen": set()}
    for ref in told:
        fact = relations[ref["ref_id"]]
        ends["all"] |= {fact["source_id"], fact["target_id"]}
        if seen(fact):
            ends["seen"] |= {fact["source_id"], fact["target_id"]}

    def grouped(kind, column, rank):
        mine = sorted((ref for ref in places if ref["kind"] == kind), key=lambda ref: ref[column])
        groups = {name: list(group) for name, group in itertools.groupby(mine, key=lambda ref: ref[column])}
        rows = [(name, min(r["tier"] for r in group), max(r["score"] for r in group)) for name, group in groups.items()]
        rows.sort(key=lambda row: (row[2], *rank(row[0])), reverse=True)
        rows.sort(key=lambda row: row[1])
        return [(name, score) for name, _, score in rows]

    found_entities = [
        (id_, score)
        for id_, score in grouped("entity", "ref_id", lambda id_: (entities[id_]["mention_count"], id_))
        if id_ in ends["seen"] or id_ not in ends["all"]
    ]
    found_blocks = grouped("block", "ref_text", lambda id_: (blocks[id_]["created_at"], blocks[id_]["num"]))
    found_documents = grouped("document", "ref_text", lambda id_: (documents[id_]["created_at"], documents[id_]["num"]))
    order = sorted(chosen, key=lambda one: (one[1], -one[2], keys[one[0]]))
    cut = [rows[:limit] for rows in (found_relations, found_entities, found_blocks, found_documents)]
    return [keys[scene_id] for scene_id, _, _ in order], *cut


def returned(found):
    return (
        list(found.scenes),
        [(one.id, one.weight, one.sentence) for one in found.relations],
        [(one.id, one.weight) for one in found.entities],
        [(one.id, one.weight) for one in found.blocks],
        [(one.id, one.weight) for one in found.documents],
    )


@settings(max_examples=examples(150))
@given(
    st.lists(st.one_of(commits, commits, texts), max_size=6),
    st.lists(st.sampled_from(["boss", "boss", "clerk"]), max_size=6),
    fading,
    st.lists(st.sampled_from(KEYS), unique=True, min_size=1, max_size=3),
    st.sampled_from(["boss", "clerk"]),
    st.sampled_from([0, 1, 2, 8]),
    st.sampled_from(["all", "all", None, (), ("work",)]),
    st.sampled_from([None, None, TIMES[0], TIMES[2]]),
)
def test_a_recall_returns_what_a_plain_reading_of_the_tables_does(
    told, visits, faded, keys, peer, limit, scopes, as_of
):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(path, clock=FakeClock()) as memory:
            fill(memory, path, told, visits, faded)
            options = {"limit": limit, "scopes": scopes, "as_of": as_of}
            allowed = None if scopes == "all" else scopes or ()
            oracle = functools.partial(expected, path, limit=limit, scopes=allowed, at=as_of or NOW)
            ids = {row["key"]: row["id"] for row in read(path, "scenes")}

            below = sorted({id_ for key, id_ in ids.items() if any(f"{key}/".startswith(f"{one}/") for one in keys)})
            found = memory.recall_by_scene(keys, **options)
            assert returned(found) == oracle([(id_, 0, 1.0) for id_ in below])

            found = memory.recall_by_scene("", **options)
            assert returned(found) == oracle([(ids[key], 0, 1.0) for key in sorted(ids)])

            here = Situation.of(chan="qq", peer=peer)
            declared = [ids[key] for key in keys if key in ids]
            answering = [(ids[match.key], 1, match.score) for match in memory.match_scenes(here)]
            found = memory.recall_by_situation(here, declared=keys, **options)
            assert returned(found) == oracle(
                [(id_, 0, 1.0) for id_ in declared] + [one for one in answering if one[0] not in declared]
            )


def test_a_fact_of_many_scenes_takes_one_place_of_the_limit(memory):
    everywhere = [f"chan:qq/peer:p{n}" for n in range(100)]
    memory.commit([Triple("boss", "wants", "tea")], scenes=everywhere)
    memory.commit([Triple("clerk", "wants", thing, confidence=0.5) for thing in ("cake", "pie")], scenes=everywhere)

    found = memory.recall_by_scene("chan:qq", limit=2)
    assert [(one.object, one.weight) for one in found.relations] == [("tea", 1.0), ("pie", 0.5)]


def test_any_limit_is_allowed(memory):
    memory.commit([Triple("boss", "wants", "tea")], scenes=KEYS[:2])

    assert len(memory.recall_by_scene("", limit=2**63 - 1).relations) == 1


def test_a_recall_asks_once_a_kind_and_reads_no_other_scene(memory):
    for n in range(30):
        memory.commit(
            [Triple(f"person {n}", "wants", f"thing {n}", sentence=f"Said {n}.")], scenes=f"chan:qq/peer:p{n}"
        )

    plans = plans_of(memory, lambda: memory.recall_by_scene("chan:qq"))
    assert len(plans) == 7  # of scopes, scenes, four kinds of refs, and whether there is any note
    assert any("scopes_filled" in step for step in plans[0])
    for plan in plans:
        assert not [step for step in plan if step.startswith(("SCAN ref", "SCAN r", "SCAN e ", "SCAN scenes"))]
        assert all("(scene_id=? AND kind=?)" in step for step in plan if step.startswith("SEARCH ref"))
    # What is ordered has a limit, and a sort with a limit holds no more than that.
    assert not [step for step in plans[2] if "PARTITION" in step or "GROUP BY" in step]
