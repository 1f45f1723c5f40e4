"""Correcting and removing facts: one at a time, or those that meet criteria; softly with undo, or for good."""

import pytest
from support import HashEmbedder, dump, sql, text_index_of

from graphmem import Conflict, InvalidInput, Memory, NotFound, Part, Situation, Triple

QQ, MAIL = "chan:qq/peer:boss", "chan:mail"
TOLD = Triple("panel", "uses", "npm", sentence="The panel is built with npm.", confidence=0.7)
SIMILAR = Triple("panel2", "uses", "npm")


@pytest.fixture
def panel(memory):
    """A fact in two scenes, told in other words in the second, and one with similar names."""
    memory.commit([TOLD], scenes=QQ, session="s1")
    memory.commit([Triple("panel", "uses", "npm", sentence="npm again", confidence=0.7)], scenes=MAIL, session="s2")
    memory.commit([SIMILAR], scenes=MAIL, session="s2")
    return memory


def held(memory, scene=""):
    facts = memory.recall_by_scene(scene, exact=bool(scene)).relations
    return {(fact.subject, fact.relation, fact.object): fact for fact in facts}


def names(memory, scene):
    return {entity.name for entity in memory.recall_by_scene(scene, exact=True).entities}


def found(memory, query):
    return [hit.text for hit in memory.recall(query, kinds="relation")]


def canonical(path):
    """The rows of facts and what belongs to them; mentions of names aside."""
    columns = (
        "id, source_id, target_id, relation_type, confidence, status, sentence_id, valid_from, valid_to, closed_at"
    )
    return (
        sql(path, f"SELECT {columns} FROM relations ORDER BY id"),
        sql(path, "SELECT * FROM evidence ORDER BY id"),
        sql(path, "SELECT * FROM scene_refs ORDER BY id"),
        sql(path, "SELECT id, name FROM entities ORDER BY id"),
    )


def assert_indexed(memory, path):
    before = text_index_of(path)
    memory.reindex()
    assert text_index_of(path) == before


def test_an_edit_keeps_what_is_not_given_in_all_scenes(panel, path):  # W8
    before = held(panel, QQ), held(panel, MAIL)

    report = panel.edit_relation(1, object="pnpm")

    assert (report.old, report.scenes) == (1, (MAIL, QQ))
    for scene, facts in zip((QQ, MAIL), before, strict=True):
        old, new = facts["panel", "uses", "npm"], held(panel, scene)["panel", "uses", "pnpm"]
        assert (new.id, new.confidence, new.sentence) == (report.new, old.confidence, old.sentence)
        assert (new.weight, new.valid_from, new.valid_to) == (old.weight, old.valid_from, old.valid_to)
        assert ("panel", "uses", "npm") not in held(panel, scene)
    assert names(panel, QQ) == {"panel", "pnpm"}
    assert ("panel2", "uses", "npm") in held(panel, MAIL)
    assert sql(path, "SELECT status, closed_at IS NULL FROM relations WHERE id = 1") == [("deleted", 0)]
    assert [fact.object for fact in panel.neighbours("panel", depth=1).relations if fact.subject == "panel"] == ["pnpm"]
    assert_indexed(panel, path)


def test_an_edit_of_sentence_and_confidence_holds_in_every_scene(panel):
    report = panel.edit_relation(1, sentence="Built by yarn, they say.", confidence=0.3)

    for scene in (QQ, MAIL):
        fact = held(panel, scene)["panel", "uses", "npm"]
        assert (fact.id, fact.sentence, fact.confidence) == (report.new, "Built by yarn, they say.", 0.3)
    assert len(found(panel, "yarn")) == 1
    assert "built with" not in "".join(found(panel, "built with npm"))


def test_an_edit_keeps_time_and_scope(memory, path):
    fact = Triple("panel", "port", "8080", valid_from="2026-01-01", valid_to="2027-01-01", functional=True)
    memory.commit([fact], scope="work")

    new = memory.edit_relation(1, object="8081").new

    columns = "scope, valid_from, valid_to, recorded_at"
    assert sql(path, f"SELECT {columns} FROM relations WHERE id = 1") == sql(
        path, f"SELECT {columns} FROM relations WHERE id = {new}"
    )


def test_an_edited_fact_that_was_told_openly_stays_open(memory):
    memory.commit([TOLD])
    memory.edit_relation(1, object="pnpm")

    assert memory.recall("panel pnpm", kinds="relation", situation=Situation.of(chan="door", peer="eve"))


def test_an_edit_into_a_known_fact_uses_it_in_the_scenes_of_both(panel, path):
    panel.commit([Triple("panel", "uses", "pnpm", confidence=0.9)], scenes="chan:door")

    report = panel.edit_relation(1, object=" PNPM ")

    assert report.new == 3
    assert held(panel, QQ)["panel", "uses", "pnpm"].sentence == TOLD.sentence
    assert {held(panel, scene)["panel", "uses", "pnpm"].confidence for scene in (QQ, MAIL, "chan:door")} == {0.9}
    assert_indexed(panel, path)


def test_an_edit_to_what_is_so_already_writes_nothing(panel, path):
    before = dump(path)

    report = panel.edit_relation(1, subject="Panel", object="npm", confidence=0.7)

    assert (report.old, report.new, report.operation) == (1, 1, None)
    assert dump(path) == before


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({}, "changes"),
        ({"subject": "\u200b"}, "subject"),
        ({"relation": ""}, "relation"),
        ({"object": "x" * 51}, "object"),
        ({"sentence": 5}, "sentence"),
        ({"confidence": 0}, "confidence"),
    ],
)
def test_an_edit_that_cannot_be_made_names_the_argument_and_changes_nothing(panel, path, changes, argument):
    before = dump(path)

    with pytest.raises(InvalidInput) as caught:
        panel.edit_relation(1, **changes)

    assert caught.value.argument == argument
    assert dump(path) == before


def test_only_active_facts_are_edited_and_only_known_ones_deleted(panel):
    panel.delete_relation(1)

    for relation_id in (1, 99):
        with pytest.raises(NotFound, match=str(relation_id)):
            panel.edit_relation(relation_id, object="a")
        with pytest.raises(NotFound, match=str(relation_id)):
            panel.delete_relation(relation_id)
    with pytest.raises(NotFound, match="99"):
        panel.delete_relation(99, hard=True)


@pytest.mark.parametrize("hard", [False, True])
def test_a_deleted_fact_is_found_nowhere(panel, path, hard):  # P7
    report = panel.delete_relation(1, hard=hard)

    assert (report.relations, report.applied) == ((1,), True)
    assert (report.orphaned, report.entities) == (((), ("panel",)) if hard else (("panel",), ()))
    assert held(panel, QQ) == {}
    assert names(panel, QQ) == set()
    assert {*held(panel)} == {("panel2", "uses", "npm")}
    assert names(panel, MAIL) == {"panel2", "npm"}
    assert len(found(panel, "built panel npm again")) == 1
    assert "panel" not in {fact.subject for fact in panel.neighbours("panel", depth=1).relations}
    assert_indexed(panel, path)


def test_a_fact_that_was_deleted_is_active_again_when_told_again(panel):  # G7
    panel.delete_relation(1)

    report = panel.commit([TOLD], scenes=QQ, session="s1")

    assert report.relations == (1,)
    assert ("panel", "uses", "npm") in held(panel, QQ)


def test_a_hard_deletion_takes_along_what_speaks_of_the_fact_alone(path, clock):
    with Memory.open(path, clock=clock, embedder=HashEmbedder()) as memory:
        shared = "Both use npm."
        memory.commit([TOLD, Triple("panel", "runs on", "node", sentence=shared)], scenes=QQ)
        memory.commit([Triple("panel2", "runs on", "node", sentence=shared)], scenes=QQ)
        memory.delete_relation(1, hard=True)
        memory.delete_relation(2, hard=True)

    assert sql(path, "SELECT id FROM relations") == [(3,)]
    assert sql(path, "SELECT DISTINCT relation_id FROM evidence") == [(3,)]
    assert sql(path, "SELECT text FROM sentences") == [(shared,)]
    assert sql(path, "SELECT ref_id FROM scene_refs WHERE kind = 'relation'") == [(3,)]
    assert sql(path, "SELECT COUNT(*) FROM vectors WHERE kind = 1") == [(1,)]
    assert sql(path, "SELECT COUNT(*) FROM vectors WHERE kind = 2") == [(1,)]
    assert sql(path, "SELECT DISTINCT 1 FROM operation_rows") == []


@pytest.mark.parametrize(
    ("criteria", "gone"),
    [
        ({"subject_contains": "ＰＡＮ"}, (1, 2)),
        ({"subject_contains": "el2"}, (2,)),
        ({"object_contains": "npm", "session": "s2"}, (2,)),
        ({"session": "s2"}, (2,)),
        ({"relation": "USES"}, (1, 2)),
        ({"relation": "use"}, ()),
        ({"subject_contains": "%"}, ()),
        ({"subject_contains": "p_nel"}, ()),
        ({"subject_contains": "nobody", "relation": "uses"}, ()),  # G8
    ],
)
def test_a_purge_removes_what_meets_all_criteria(panel, path, criteria, gone):
    before = dump(path)

    dry = panel.purge(**criteria, dry_run=True)
    unchanged = dump(path) == before
    real = panel.purge(**criteria)

    assert unchanged
    assert (dry.relations, real.relations, dry.orphaned) == (gone, gone, real.orphaned)
    assert (dry.applied, real.applied) == (False, True)
    assert sql(path, "SELECT id FROM relations WHERE status = 'deleted'") == [(each,) for each in gone]
    assert len(panel.operations()) == bool(gone)
    assert_indexed(panel, path)


@pytest.mark.parametrize("criteria", [{}, {"subject_contains": ""}, {"subject_contains": " ", "relation": "uses"}])
def test_a_purge_without_criteria_is_refused(panel, path, criteria):  # G8
    before = dump(path)

    for hard in (False, True):
        with pytest.raises(InvalidInput):
            panel.purge(**criteria, hard=hard)

    assert dump(path) == before


def test_a_hard_purge_takes_deleted_facts_too(panel, path):
    panel.delete_relation(1)

    assert panel.purge(relation="uses", dry_run=True).relations == (2,)
    assert panel.purge(relation="uses", hard=True).relations == (1, 2)
    assert sql(path, "SELECT COUNT(*) FROM relations") == [(0,)]
    assert sql(path, "SELECT COUNT(*) FROM scene_refs") == [(0,)]
    assert_indexed(panel, path)


@pytest.mark.parametrize(
    "change",
    [
        lambda memory: memory.edit_relation(1, subject="board", relation="is built with", sentence="So it is."),
        lambda memory: memory.edit_relation(1, confidence=0.2),
        lambda memory: memory.edit_relation(1, subject="panel2", confidence=0.2),
        lambda memory: memory.delete_relation(1),
        lambda memory: memory.purge(object_contains="npm"),
    ],
)
def test_undo_brings_back_every_row(panel, path, change):
    before, recalled = canonical(path), held(panel)

    operation = change(panel).operation
    changed = canonical(path)
    panel.undo(operation)

    assert changed != before
    assert (canonical(path), held(panel)) == (before, recalled)
    assert_indexed(panel, path)


def test_undo_of_an_edit_that_was_told_again_is_a_conflict(panel, path):
    operation = panel.edit_relation(1, object="pnpm").operation
    panel.commit([Triple("panel", "uses", "pnpm")])
    before = dump(path)

    with pytest.raises(Conflict, match="later write"):
        panel.undo(operation)

    assert dump(path) == before


def test_what_was_removed_for_good_is_not_brought_back(panel, path):
    soft = panel.purge(relation="uses").operation
    hard = panel.delete_relation(1, hard=True).operation

    with pytest.raises(Conflict, match="removed for good"):
        panel.undo(hard)
    panel.undo(soft)

    assert {*held(panel)} == {("panel2", "uses", "npm")}
    assert [(one.kind, one.summary["relations"]) for one in panel.operations()] == [("hard delete", 1), ("purge", 2)]
    assert_indexed(panel, path)


def test_undo_of_an_edit_after_one_end_of_it_is_gone_for_good(panel, path):
    report = panel.edit_relation(1, object="pnpm")
    panel.delete_relation(report.new, hard=True)
    panel.undo(report.operation)

    assert held(panel, QQ)["panel", "uses", "npm"].sentence == TOLD.sentence
    assert_indexed(panel, path)


def test_an_overview_counts_what_holds_and_what_there_is(panel):  # G9
    panel.remember("Deploy with pnpm")
    panel.mirror("s1", [Part("m1", text="Lunch?"), Part("m2", text="Fine.")])
    panel.put_block("a picture", scenes=MAIL)
    panel.put_document("a long talk")
    before = panel.overview()
    panel.delete_relation(1)

    after = panel.overview()

    assert (before.relations, before.relations_total) == (2, 2)
    assert (after.relations, after.relations_total) == (1, 2)
    assert (before.entities, before.scenes, before.sentences) == (3, 2, 2)
    assert (before.notes, before.sessions, before.parts, before.blocks, before.documents) == (1, 1, 2, 1, 1)
    assert before.most_mentioned == (("npm", 3), ("panel", 2), ("panel2", 1))


def test_a_purge_for_good_takes_the_failures_that_a_soft_one_left_in_the_journal(memory, path):
    for _ in range(2):
        memory.record_failure("bash", "zebra failed", scope="work")
    memory.purge(scope="work")

    memory.purge(scope="work", hard=True)

    memory.close()
    assert Memory.verify_forgotten(path, "zebra", copied=False).found == ()


def test_a_purged_failure_comes_back_without_the_lesson_that_is_gone_for_good(memory):
    memory.record_failure("bash", "rm failed", scope="work")
    lesson = memory.remember("bash: look first", kind="lesson", scope="work")
    operation = memory.purge(scope="work").operation
    memory.forget(lesson.note.id, hard=True)

    memory.undo(operation)

    (failure,) = memory.incidents(status=None, scopes="all")
    assert failure.note_id is None
    assert failure.resolved_at is not None
    assert memory.check().ok


def test_notes_that_quote_a_session_that_goes_for_good_are_told(memory):
    memory.mirror("talk", [Part("1", role="user", text="never use npm here")])
    kept = memory.remember("No npm", kind="rule", quote="never use npm", session="talk").note
    memory.remember("other")

    assert memory.purge(session="talk", hard=True, dry_run=True).left == (("note", kept.id),)
    assert memory.purge(session="talk", hard=True).left == (("note", kept.id),)
