"""What a purge by session or scene spares, what it says of it, and what it does with names that nothing is known of."""

import pytest
from support import sql

from graphmem import Conflict, Memory, Triple

ONE = "Ann said that pelican-42 likes tea."
OTHER = "Bob said so too."


@pytest.fixture
def sessions(memory):
    """A fact told in two sessions, in two scenes, and one told in the first alone."""
    memory.commit([Triple("pelican", "likes", "tea", sentence=OTHER)], scenes="chan:mail", session="sB")
    memory.commit([Triple("pelican", "likes", "tea", sentence=ONE)], scenes=["chan:qq", "chan:mail"], session="sA")
    memory.commit([Triple("zebra", "likes", "milk", sentence=ONE)], scenes="chan:qq", session="sA")
    return memory


def told(memory, scene):
    return [(fact.subject, fact.sentence) for fact in memory.recall_by_scene(scene, exact=bool(scene)).relations]


# ---- sessions


def test_a_fact_told_in_another_session_too_is_spared(sessions, path):
    dry = sessions.purge(session="sA", dry_run=True)
    report = sessions.purge(session="sA")

    assert (report.relations, report.spared, report.sayings) == ((2,), (1,), 0)
    assert (dry.relations, dry.spared) == (report.relations, report.spared)
    assert [subject for subject, _ in told(sessions, "")] == ["pelican"]
    assert sql(path, "SELECT COUNT(*) FROM evidence") == [(3,)]
    sessions.undo(report.operation)
    assert len(told(sessions, "chan:qq")) == 2


def test_for_good_what_the_session_told_of_it_goes(sessions, path):
    dry = sessions.purge(session="sA", hard=True, dry_run=True)
    report = sessions.purge(session="sA", hard=True)

    assert (report.relations, report.spared, report.sayings, report.left) == ((2,), (1,), 1, ())
    assert (dry.relations, dry.spared, dry.sayings, dry.left) == ((2,), (1,), 1, ())
    assert told(sessions, "chan:mail") == [("pelican", OTHER)]
    assert told(sessions, "chan:qq") == [("pelican", "")]
    assert sql(path, "SELECT session FROM evidence") == [("sB",)]
    assert sql(path, "SELECT t.text FROM relations r JOIN sentences t ON t.id = r.sentence_id") == [(OTHER,)]
    assert sessions.operations()[0].summary["sayings"] == 1
    assert sessions.check().ok
    sessions.close()
    assert Memory.verify_forgotten(path, "pelican-42").ok


def test_sayings_alone_are_an_operation(memory):
    for session in ("sA", "sB"):
        memory.commit([Triple("pelican", "likes", "tea")], session=session)

    assert memory.purge(session="sA").operation is None
    assert memory.purge(session="sA", hard=True).operation == 1


def test_a_sentence_that_tells_another_fact_stays_and_is_told_of(sessions, path):
    sessions.commit([Triple("ann", "likes", "milk", sentence=ONE)])

    report = sessions.purge(session="sA", hard=True)

    assert report.left == (("sentence", 2),)
    assert sorted(text for (text,) in sql(path, "SELECT text FROM sentences")) == [ONE, OTHER]


@pytest.mark.parametrize("undone", [False, True])
def test_images_of_a_spared_fact_tell_nothing_of_the_session(sessions, path, undone):
    sessions.commit([Triple("Pelican bird", "likes", "tea", sentence=OTHER)], session="sB")
    merge = sessions.merge_entities("Pelican bird", "pelican").operation
    soft = sessions.delete_relation(1).operation

    if undone:
        sessions.undo(soft)
    sessions.purge(session="sA", hard=True)

    for operation in (merge,) if undone else (soft, merge):
        try:
            sessions.undo(operation)
        except Conflict as error:
            assert "removed for good" in str(error)  # noqa: PT017
    assert sql(path, "PRAGMA foreign_key_check") == []
    sessions.close()
    assert Memory.verify_forgotten(path, "pelican-42").ok


def test_session_and_scene_together_spare_what_either_does(sessions, path):
    report = sessions.purge(session="sA", scene="chan:qq", hard=True)

    assert (report.relations, report.spared, report.sayings) == ((2,), (1,), 0)
    assert sql(path, "SELECT COUNT(*) FROM evidence") == [(2,)]


# ---- scenes


def test_a_purge_by_scene_says_what_it_spares_and_where_that_is(memory):
    memory.commit([Triple("pelican", "likes", "tea")], scenes=["chan:qq", "auto:chan:qq"])
    memory.commit([Triple("zebra", "likes", "tea")], scenes=["chan:qq/peer:ann", "auto:chan:qq", "topic:zoo"])
    memory.commit([Triple("zebra", "is", "tall")], scenes="chan:qq")
    memory.commit([Triple("zebra", "is", "tall")])
    memory.commit([Triple("nobody", "is", "here")], scenes="chan:mail")

    report = memory.purge(scene="chan:qq", dry_run=True)

    assert (report.relations, report.spared) == ((), (1, 2, 3))
    assert report.spared_in == ("auto:chan:qq", "topic:zoo")
    assert memory.purge(entity="pelican").relations == (1,)
    assert memory.purge(relation="is", dry_run=True).spared == ()
