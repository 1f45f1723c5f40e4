"""The write path: a commit of many facts leaves what commits of one leave, and neither asks for more than it needs."""

import functools

import pytest
from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, refusal, sql

from graphmem import Memory, Triple

SCENES = ["chan:qq", "chan:qq/peer:boss", "auto:peer:boss_chan:qq"]
TIMES = ["2026-09-01T00:00:00Z", "2026-09-03T00:00:00Z", "2026-09-05T00:00:00Z", "2026-09-08T00:00:00Z"]

# Few names in several spellings, so that facts meet each other in every way.
names = st.sampled_from(["a", "A", "ａ", "b", "b ", "c", "d"])
facts = st.builds(
    Triple,
    names,
    st.sampled_from(["is", "IS", "has"]),
    names,
    sentence=st.sampled_from(["", "One said so.", "another said so."]),
    confidence=st.sampled_from([0.3, 0.9, 1.0]),
    valid_from=st.sampled_from([None, None, *TIMES[:2]]),
    valid_to=st.sampled_from([None, None, None, TIMES[2], TIMES[3]]),
    functional=st.sampled_from([False, False, True]),
)
refused = st.just(Triple("", "is", "b"))
batches = st.tuples(
    st.lists(st.one_of(facts, facts, facts, refused), max_size=6),
    st.sampled_from([(), tuple(SCENES[:1]), tuple(SCENES)]),
    st.sampled_from(["", "work"]),
    st.sampled_from(TIMES),
)
# Between commits facts go, and names become one, so that some come back and others are led elsewhere.
steps = st.lists(
    st.one_of(
        batches,
        batches,
        batches,
        st.tuples(st.just("delete"), st.integers(1, 6)),
        st.tuples(st.just("merge"), names, names),
    ),
    max_size=5,
)


ACTS = {"delete": Memory.delete_relation, "merge": Memory.merge_entities}


def everything(memory):
    """All rows of all tables but those that FTS5 keeps for itself."""
    with memory._store.read() as tx:
        tables = [name for (name,) in tx.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        ours = [name for name in tables if not name.startswith(("text_index_", "text_terms", "_sqlite_migrations"))]
        found = {name: sorted(tx.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in ours}
        found["text_index"] = tx.execute("SELECT rowid, * FROM text_index ORDER BY rowid").fetchall()
        return found


def statements_of(memory, act):
    """The statements that an act runs, and those that FTS5 runs for it."""
    seen = []
    writer = memory._store._writer
    writer.set_trace_callback(seen.append)
    act()
    writer.set_trace_callback(None)
    of_fts5 = [one for one in seen if one.startswith("-- ")]
    return [one.lstrip() for one in seen if one not in of_fts5], of_fts5


@settings(max_examples=examples(300))
@given(steps)
def test_facts_told_in_one_commit_are_those_told_one_by_one(steps):
    with Memory.open(":memory:", clock=FakeClock()) as together, Memory.open(":memory:", clock=FakeClock()) as singly:
        for step in steps:
            if isinstance(step[0], str):
                verb, *arguments = step
                acts = [functools.partial(ACTS[verb], memory, *arguments) for memory in (together, singly)]
                assert refusal(acts[0]) == refusal(acts[1])
            else:
                triples, scenes, scope, at = step
                told = {"scenes": scenes, "scope": scope, "at": at}
                report = together.commit(triples, **told)
                singles = [singly.commit([triple], **told) for triple in triples]
                assert report.created == sum(one.created for one in singles)
                assert report.repeated == sum(one.repeated for one in singles)
                assert report.superseded == sum(one.superseded for one in singles)
                assert report.relations == tuple(relation for one in singles for relation in one.relations)
        assert everything(together) == everything(singly)
        assert together.check().ok


def test_a_value_that_had_ended_when_it_was_told_makes_room_for_one_that_holds(memory, path):
    ended = Triple("boss", "lives in", "Rome", valid_to="2026-09-05")
    memory.commit([ended])

    report = memory.commit([Triple("boss", "lives in", "Rome", valid_from="2026-09-06", functional=True)])
    assert (report.created, report.superseded) == (1, 0)
    assert sql(path, "SELECT status, valid_from, valid_to FROM relations ORDER BY id") == [
        ("superseded", None, "2026-09-05T00:00:00.000Z"),
        ("active", "2026-09-06T00:00:00.000Z", None),
    ]


def test_a_fact_told_again_is_the_active_one_also_where_a_deleted_one_held_before_it(memory, path):
    memory.commit([Triple("boss", "lives in", "Rome")], at=TIMES[0])
    later = Triple("boss", "lives in", "Rome", valid_from=TIMES[1], functional=True)
    memory.commit([later], at=TIMES[0])
    memory.delete_relation(1)

    report = memory.commit([Triple("boss", "lives in", "Rome")], at=TIMES[0])
    assert (report.created, report.repeated, report.relations) == (0, 1, (2,))
    assert sql(path, "SELECT status FROM relations ORDER BY id") == [("deleted",), ("active",)]


def test_a_commit_asks_little_more_than_it_writes(memory):
    memory.commit([Triple("boss", "wants", "tea", sentence="The boss wants tea.")], scenes=SCENES)

    new = Triple("clerk", "brings", "cake", sentence="The clerk brings cake.")
    ours, _ = statements_of(memory, lambda: memory.commit([new], scenes=SCENES))
    assert sum(one.startswith(("SELECT", "WITH")) for one in ours) <= 8
    # Two entities, a sentence, a relation, its evidence, nine refs, four texts of the index, the counts of three kinds.
    # SQLite tells of the relation twice, since it enters the trigger that looks whether it has a scope.
    assert sum(one.startswith(("INSERT", "UPDATE")) for one in ours) == 2 + 1 + (1 + 1) + 1 + 9 + 4 + 3


@pytest.mark.parametrize("count", [40, 400])
def test_what_a_commit_looks_up_does_not_grow_with_its_facts(memory, count):
    memory.commit([Triple("boss", "wants", "tea")], scenes=SCENES)

    told = [Triple(f"person {n % 7}", "wants", f"thing {n}", sentence=f"Said {n}.") for n in range(count)]
    ours, _ = statements_of(memory, lambda: memory.commit(told, scenes=SCENES))
    assert sum(one.startswith(("SELECT", "WITH")) for one in ours) <= 8


def test_a_commit_leaves_one_segment_in_the_text_index(memory):
    memory.commit([Triple("boss", "wants", "tea", sentence="The boss wants tea.")], scenes=SCENES)

    told = [Triple(f"person {n}", "wants", f"thing {n}", sentence=f"Said {n}.") for n in range(5)]
    _, of_fts5 = statements_of(memory, lambda: memory.commit(told, scenes=SCENES))
    assert sum("'text_index_idx'" in one for one in of_fts5) == 1


def test_a_commit_reads_no_more_of_a_subject_than_it_needs(memory):
    memory.commit([Triple("server", "load", str(n), functional=True) for n in range(20)])

    for told in (Triple("server", "load", "21", functional=True), Triple("server", "owner", "Lin")):
        ours, _ = statements_of(memory, functools.partial(memory.commit, [told]))
        asked = [one for one in ours if one.startswith(("SELECT", "WITH"))]
        writer = memory._store._writer
        steps = [row[3] for one in asked for row in writer.execute(f"EXPLAIN QUERY PLAN {one}")]
        assert any("relations_source (source_id=? AND relation_key=? AND target_id=?)" in step for step in steps)
        # All values of a relation, or all facts of a subject.
        assert not [
            step
            for step in steps
            if step.endswith(("(source_id=? AND relation_key=?)", "(source_id=?)")) and "relations_active" not in step
        ]
        assert not [step for step in steps if step.startswith(("SCAN relations", "SCAN r ", "SCAN e "))]
