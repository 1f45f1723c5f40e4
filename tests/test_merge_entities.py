"""Two entities that are one: what moves, what folds, and how an undo parts them again, whatever was told in between."""

import contextlib
import shutil
import signal
import subprocess
import sys
from collections import defaultdict

import pytest
from conftest import FakeClock
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import dump, examples, orphans, sql, text_index_of

from graphmem import Config, Conflict, InvalidInput, Memory, NotFound, Triple

HOME, WORK = "chan:home", "chan:work/peer:boss"


def canonical(path):
    """What a store says, by names instead of ids."""
    name = "(SELECT key FROM entities WHERE id = {})"
    facts = sql(
        path,
        f"""SELECT {name.format("r.source_id")}, r.relation_key, {name.format("r.target_id")}, r.scope, r.status,
                   r.confidence, r.valid_from, r.valid_to, r.recorded_at, r.updated_at, t.text,
                   r.id
            FROM relations r LEFT JOIN sentences t ON t.id = r.sentence_id""",
    )
    said = defaultdict(list)
    for relation_id, *saying in sql(
        path, "SELECT relation_id, source_key, target_key, at, session, openly, scenes FROM evidence ORDER BY id"
    ):
        said[relation_id].append(saying)
    facts = sorted(((*fact, said[relation_id]) for *fact, relation_id in facts), key=repr)
    refs = sql(
        path,
        f"""SELECT s.key, ref.kind, COALESCE({name.format("r.source_id")}, {name.format("ref.ref_id")}), r.relation_key,
                   {name.format("r.target_id")}, ref.weight, ref.decayed_at, t.text
            FROM scene_refs ref JOIN scenes s ON s.id = ref.scene_id
            LEFT JOIN relations r ON ref.kind = 'relation' AND r.id = ref.ref_id
            LEFT JOIN sentences t ON t.id = ref.sentence_id ORDER BY 1, 2, 3, 4, 5""",
    )
    aliases = sql(path, "SELECT * FROM entity_aliases ORDER BY 1")
    entities = sql(path, "SELECT key, name, type, mention_count, updated_at FROM entities ORDER BY key")
    return {"facts": facts, "refs": refs, "entities": entities, "aliases": aliases}


def facts_of(memory, name):
    around = memory.neighbours(name, depth=1, limit=100)
    return {(fact.subject, fact.relation, fact.object) for fact in around.relations}


def assert_indexed(memory, path):
    before = text_index_of(path)
    memory.reindex()
    assert text_index_of(path) == before


# ---- what moves


@pytest.fixture
def two(memory):
    """B has three facts that lead to it, two that lead away, four places in scenes, and two facts besides."""
    memory.commit([Triple(name, "knows", "小王", sentence=f"{name} knows 小王.") for name in ("X1", "X2")], scenes=HOME)
    memory.commit([Triple("X3", "pays", "小王", confidence=0.4)], scenes=[HOME, WORK])
    memory.commit([Triple("小王", "likes", "tea"), Triple("小王", "owns", "panel")], scenes="chan:door")
    memory.commit([Triple("小王", "fact", "one"), Triple("小王", "fact", "two")], scenes="chan:shop")
    memory.commit([Triple("产品经理小王", "likes", "milk")], scenes=HOME)
    return memory


def test_all_references_move_and_keep_their_ids_weights_and_evidence(two, path):  # MRG-01, M4
    before = sql(path, "SELECT id, relation_id, source_key, target_key FROM evidence ORDER BY id")
    ids = sql(path, "SELECT id FROM relations ORDER BY id")

    report = two.merge_entities("小王", "产品经理小王")

    assert (report.source, report.target, report.applied, report.aliases) == ("小王", "产品经理小王", True, ("小王",))
    assert len(report.moved) == 7
    assert (report.folded, report.loops, report.refs_moved, report.refs_folded) == ((), (), 3, 1)
    assert sql(path, "SELECT id FROM relations ORDER BY id") == ids
    assert sql(path, "SELECT id, relation_id, source_key, target_key FROM evidence ORDER BY id") == before
    assert len(facts_of(two, "产品经理小王")) == 8
    assert facts_of(two, "小王") == facts_of(two, "产品经理小王")
    assert sql(path, "SELECT name, mention_count FROM entities WHERE key LIKE '%小王'") == [("产品经理小王", 8)]
    assert orphans(path) == []
    held = {entity.name for entity in two.recall_by_scene("chan:door", exact=True).entities}
    assert held == {"产品经理小王", "tea", "panel"}
    assert two.recall("小王", kinds="entity")[0].text == "产品经理小王"
    assert_indexed(two, path)


def test_a_dry_run_tells_the_same_and_changes_nothing(two, path):
    before = dump(path)

    planned = two.merge_entities("小王", "产品经理小王", dry_run=True)

    assert dump(path) == before
    report = two.merge_entities("小王", "产品经理小王")
    assert (planned.moved, planned.folded, planned.loops) == (report.moved, report.folded, report.loops)
    assert (planned.refs_moved, planned.refs_folded, planned.mentions) == (
        report.refs_moved, report.refs_folded, report.mentions,
    )  # fmt: skip
    assert (planned.applied, planned.operation) == (False, None)


def test_facts_of_both_fold_and_facts_between_them_go(memory, path):  # MRG-02, M5
    memory.commit([Triple("A", "likes", "X", confidence=0.3, sentence="A likes X.")], scenes=HOME)
    memory.commit([Triple("B", "likes", "X", confidence=0.8, sentence="B likes X.")], scenes=[HOME, WORK])
    memory.commit([Triple("A", "same as", "B")], scenes=HOME)

    report = memory.merge_entities("B", "A")

    assert [(fold.gone, fold.kept) for fold in report.folded] == [(2, 1)]
    assert report.loops == (3,)
    assert facts_of(memory, "A") == {("A", "likes", "X")}
    assert sql(path, "SELECT id, confidence, status FROM relations ORDER BY id") == [
        (1, 0.8, "active"),
        (3, 1.0, "deleted"),
    ]
    assert sql(path, "SELECT relation_id, source_key FROM evidence ORDER BY id") == [(1, "a"), (1, "b"), (3, "a")]
    (fact,) = memory.recall_by_scene(HOME, exact=True).relations
    assert (fact.id, fact.weight) == (1, 0.8)
    assert len(memory.recall_by_scene(WORK, exact=True).relations) == 1
    assert_indexed(memory, path)


def test_names_resolve_through_any_number_of_merges(memory):  # MRG-04
    memory.commit([Triple(name, "is", "thing") for name in ("A1", "B1", "C1")])
    memory.merge_entities("A1", "B1")
    memory.merge_entities("B1", "C1")

    with pytest.raises(Conflict, match="one entity already"):
        memory.merge_entities("C1", "A1")

    assert facts_of(memory, "A1") == facts_of(memory, "B1") == facts_of(memory, "C1") == {("C1", "is", "thing")}
    memory.commit([Triple("A1", "has", "colour")])
    assert ("C1", "has", "colour") in facts_of(memory, "B1")


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [("A", "nobody", NotFound), ("nobody", "A", NotFound), ("A", " ａ ", Conflict), ("", "A", InvalidInput)],
)
def test_names_that_cannot_be_merged(memory, path, source, target, error):  # M3
    memory.commit([Triple("A", "is", "thing")])
    before = dump(path)

    with pytest.raises(error):
        memory.merge_entities(source, target)

    assert dump(path) == before


def test_the_latest_of_all_values_holds_after_a_merge(memory, clock, path):
    for name, place in (("A", "Paris"), ("B", "Rome"), ("A", "Oslo"), ("B", "Bonn")):
        memory.commit([Triple(name, "lives in", place, functional=True)])
        clock.advance(days=1)

    memory.merge_entities("A", "B")

    values = sql(
        path,
        "SELECT e.name, status FROM relations r JOIN entities e ON e.id = r.target_id ORDER BY valid_from, recorded_at",
    )
    assert values == [("Paris", "superseded"), ("Rome", "superseded"), ("Oslo", "superseded"), ("Bonn", "active")]
    before = canonical(path)["facts"]
    memory.undo(1)
    assert {row[0] for row in canonical(path)["facts"] if row[4] == "active"} == {"a", "b"}
    assert len(before) == 4


def test_what_was_kept_apart_is_not_merged(memory, path):
    memory.commit([Triple("A", "is", "thing"), Triple("B", "is", "thing"), Triple("C", "is", "thing")])
    (a,), (b,), (c,) = sql(path, "SELECT id FROM entities WHERE name IN ('A', 'B', 'C') ORDER BY name")
    sql(path, "INSERT INTO entities_apart VALUES (?, ?, NULL, '2026-01-01T00:00:00.000Z')", a, b)

    with pytest.raises(Conflict, match="kept apart since 2026"):
        memory.merge_entities("A", "B")
    memory.merge_entities("B", "C")

    assert sql(path, "SELECT a, b FROM entities_apart") == [(a, c)]
    with pytest.raises(Conflict):
        memory.merge_entities("C", "A")


KILLED = """if True:
    import os, signal, sys
    from graphmem import Memory
    memory = Memory.open(sys.argv[1])
    left = int(sys.argv[2])
    def count(statement):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    memory._store._writer.set_trace_callback(count)
    memory.merge_entities("B", "A")
    print(-left)"""


@pytest.mark.sqlite
def test_a_merge_that_is_killed_is_wholly_there_or_wholly_not(path):  # MRG-05
    with Memory.open(path) as memory:
        memory.commit([Triple("B", "knows", f"friend {number}") for number in range(150)], scenes=HOME)
        memory.commit([Triple("A", "knows", f"friend {number}") for number in range(0, 150, 3)], scenes=WORK)
    before = path.with_name("before.db")
    shutil.copy(path, before)
    old = canonical(path)
    statements = int(merge_in_a_child(path, 0).stdout)
    new = canonical(path)
    assert new != old

    for place in (statements // 10, statements // 2, statements - 1, statements):
        for side in ("", "-wal", "-shm"):
            path.with_name(path.name + side).unlink(missing_ok=True)
        shutil.copy(before, path)
        assert merge_in_a_child(path, place).returncode == -signal.SIGKILL
        assert canonical(path) == old
        with Memory.open(path) as memory:
            assert memory.check().ok


def merge_in_a_child(path, place):
    return subprocess.run([sys.executable, "-c", KILLED, path, str(place)], capture_output=True, text=True, check=False)


# ---- undoing

ENTITIES = ["A", "B", "C", "D"]
tellings = st.lists(
    st.tuples(
        st.sampled_from(ENTITIES),
        st.sampled_from(["likes", "owns"]),
        st.sampled_from(ENTITIES),
        st.sampled_from([0.2, 0.5, 0.9]),
        st.sampled_from(["", "one", "two", "three"]),
        st.sampled_from([(), (HOME,), (WORK,), (HOME, WORK)]),
        st.sampled_from(["", "s1"]),
        st.sampled_from([{}, {"functional": True}, {"valid_from": "2026-01-01"}, {"valid_to": "2026-10-01"}]),
    ),
    max_size=6,
)


def tell(memory, clock, said):
    for subject, relation, object_, confidence, sentence, scenes, session, more in said:
        # Values of others that point at the two depend on the merge, and are listed.
        if "functional" in more:
            relation, object_ = "lives in", f"place {object_}"
        memory.commit(
            [Triple(subject, relation, object_, confidence=confidence, sentence=sentence, **more)],
            scenes=scenes,
            session=session,
        )
        clock.advance(minutes=1)


@settings(max_examples=examples(80))
@given(before=tellings, after=tellings, third=st.sampled_from([None, ("C", "B"), ("B", "C"), ("A", "C")]))
@example(
    before=[("A", "likes", "C", 0.2, "", (HOME,), "", {})],
    after=[("A", "likes", "C", 0.9, "one", (WORK,), "", {})],
    third=None,
)
@example(
    before=[("A", "likes", "C", 0.2, "", (HOME,), "", {}), ("B", "likes", "C", 0.5, "", (), "", {})],
    after=[("B", "likes", "C", 0.9, "one", (HOME,), "", {}), ("A", "likes", "B", 0.9, "one", (WORK,), "", {})],
    third=None,
)
def test_after_an_undo_the_store_is_as_if_the_merge_had_never_been(tmp_path_factory, before, after, third):
    folder = tmp_path_factory.mktemp("merge")
    merged, never = folder / "merged.db", folder / "never.db"
    first = [(name, "is", "thing", 0.5, "", (), "", {}) for name in "AB"]
    with contextlib.ExitStack() as stack:
        for path in (merged, never):
            clock = FakeClock()
            memory = stack.enter_context(Memory.open(path, clock=clock))
            tell(memory, clock, [*first, *before])
            operations = []
            if path is merged:
                operations.append(memory.merge_entities("A", "B").operation)
                with contextlib.suppress(NotFound, Conflict):
                    operations += [memory.merge_entities(*third).operation] if third else []
            tell(memory, clock, after)
            for operation in reversed(operations):
                memory.undo(operation)
                with pytest.raises(Conflict):
                    memory.undo(operation)
            assert_indexed(memory, path)
        assert canonical(merged) == canonical(never)


def test_values_of_others_that_depend_on_the_merge_are_listed(memory, path, clock):
    memory.commit([Triple("A", "is", "x"), Triple("B", "is", "y"), Triple("C", "lives with", "A", functional=True)])
    operation = memory.merge_entities("A", "B").operation
    clock.advance(days=1)
    memory.commit([Triple("C", "lives with", "B", functional=True)])

    planned = memory.undo(operation, dry_run=True)
    report = memory.undo(operation)

    assert report.remarks == planned.remarks == ("values of 'C' 'lives with' were put in order anew: look at them",)
    assert [fact for fact in facts(path) if fact[0] == "C"] == [("C", "lives with", "B")]


def facts(path, status="active"):
    return sql(
        path,
        """SELECT a.name, r.relation_type, b.name FROM relations r JOIN entities a ON a.id = r.source_id
           JOIN entities b ON b.id = r.target_id WHERE r.status = ? ORDER BY 1, 2, 3""",
        status,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([("B", "Rome"), ("A", "Oslo")], [("A", "Rome")]),
        ([("A", "Rome")], [("B", "Bern")]),
        ([("A", "Paris"), ("A", "Rome"), ("B", "Oslo")], [("A", "Bonn")]),
        ([("B", "Rome")], [("A", "Oslo")]),
    ],
)
def test_values_that_followed_each_other_are_those_of_each_name_again(path, clock, before, after):
    never = path.with_name("never.db")
    for place in (path, never):
        clock = FakeClock()
        with Memory.open(place, clock=clock) as memory:
            memory.commit([Triple(name, "is", "thing") for name in "AB"])
            for name, city in before:
                clock.advance(days=1)
                memory.commit([Triple(name, "lives in", city, functional=True)])
            operation = memory.merge_entities("A", "B").operation if place == path else None
            for name, city in after:
                clock.advance(days=1)
                memory.commit([Triple(name, "lives in", city, functional=True)])
            if operation:
                memory.undo(operation)
    assert canonical(path) == canonical(never)


@pytest.mark.parametrize(
    "change",
    [
        lambda memory, fact: memory.edit_relation(fact, confidence=0.3),
        lambda memory, fact: memory.delete_relation(fact),
        lambda memory, fact: memory.tag_scene("chan:new", [fact]),
        lambda memory, fact: memory.untag_scene(HOME, [fact]),
        lambda memory, fact: memory.drop_scene(HOME),
    ],
)
def test_what_changed_these_facts_since_has_to_be_undone_first(memory, path, change):
    memory.commit([Triple("A", "is", "x"), Triple("B", "is", "y")])
    operation = memory.merge_entities("A", "B").operation
    (fact,) = memory.commit([Triple("A", "likes", "Z", confidence=0.9)], scenes=HOME).relations
    before = canonical(path)
    later = change(memory, fact).operation

    with pytest.raises(Conflict, match=f"undo {later} first"):
        memory.undo(operation)

    memory.undo(later)
    assert canonical(path) == before
    memory.undo(operation)
    assert facts(path) == [("A", "is", "x"), ("A", "likes", "Z"), ("B", "is", "y")]
    assert memory.check().ok


def test_two_merges_of_one_fact_are_undone_the_last_first(memory, path):
    memory.commit([Triple(name, "is", "thing") for name in "ABCD"])
    first = memory.merge_entities("A", "B").operation
    memory.commit([Triple("A", "likes", "C"), Triple("B", "likes", "D")])
    second = memory.merge_entities("C", "D").operation

    with pytest.raises(Conflict, match=f"undo {second} first"):
        memory.undo(first)
    memory.undo(second)
    memory.undo(first)

    assert [fact for fact in facts(path) if fact[1] == "likes"] == [("A", "likes", "C"), ("B", "likes", "D")]


def test_a_decay_since_does_not_stand_in_the_way(path, clock):
    with Memory.open(path, clock=clock, config=Config(half_life_days=1)) as memory:
        memory.commit([Triple("A", "is", "x"), Triple("B", "is", "y")], scenes=HOME)
        operation = memory.merge_entities("A", "B").operation
        clock.advance(days=1)
        memory.declare_scene("chan:other")
        faded = memory.upkeep().steps[3].operations

        memory.undo(operation)
        assert faded
        assert facts(path) == [("A", "is", "x"), ("B", "is", "y")]
        memory.upkeep()
        assert {weight for (weight,) in sql(path, "SELECT weight FROM scene_refs")} == {0.5}


def test_what_was_purged_for_good_since_does_not_come_back(memory, path):
    memory.commit([Triple("A", "likes", "x"), Triple("A", "owns", "q"), Triple("B", "is", "y")])
    operation = memory.merge_entities("A", "B").operation
    memory.purge(entity="A", relation="likes", hard=True)

    for dry_run in (True, False):
        with contextlib.suppress(Conflict):
            memory.undo(operation, dry_run=dry_run)

    assert not [fact for fact in facts(path) if fact[1] == "likes"]
    assert memory.check().ok


def test_a_later_value_keeps_the_known_beginning(memory, path, clock):
    memory.commit([Triple("B", "lives in", "Paris", functional=True, valid_from="2010-01-01")])
    memory.commit([Triple("B", "lives in", "Oslo", functional=True, valid_from="2020-01-01")])
    memory.commit([Triple("A", "lives in", "Oslo", functional=True)])

    memory.merge_entities("A", "B")

    values = sql(path, "SELECT substr(valid_from, 1, 4), substr(valid_to, 1, 4), status FROM relations ORDER BY 1")
    assert values == [("2010", "2020", "superseded"), ("2020", None, "active")]


def test_an_edit_into_a_place_with_history_leaves_one_value(memory, path, clock):
    for city in ("Paris", "Rome"):
        memory.commit([Triple("A", "lives in", city, functional=True)])
        clock.advance(days=1)
    (fact,) = memory.commit([Triple("AA", "lives in", "Oslo", functional=True)]).relations

    report = memory.edit_relation(fact, subject="A")

    assert facts(path) == [("A", "lives in", "Oslo")]
    memory.undo(report.operation)
    assert facts(path) == [("A", "lives in", "Rome"), ("AA", "lives in", "Oslo")]
