"""What a purge by session or scene spares, what it says of it, and what it does with names that nothing is known of."""

import pytest
from support import dump, orphans, sql

from graphmem import Conflict, Memory, NotFound, Part, Triple

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
    assert orphans(path) == []
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


def test_one_after_the_other_takes_what_was_spared(memory):
    memory.commit([Triple("pelican", "likes", "tea")], scenes=["chan:qq", "auto:chan:qq"], session="sA")
    memory.commit([Triple("pelican", "likes", "tea")], scenes="chan:qq", session="sB")
    memory.commit([Triple("zebra", "likes", "tea")], scenes=["chan:qq", "auto:chan:qq"], session="sA")
    memory.commit([Triple("zebra", "likes", "tea")], scenes="chan:qq", session="sB")

    assert memory.purge(session="sA", subject_contains="zebra", hard=True).spared == (2,)
    assert memory.purge(session="sB", subject_contains="zebra", hard=True).relations == (2,)
    assert memory.purge(scene="chan:qq", hard=True).spared_in == ("auto:chan:qq",)
    assert memory.purge(scene="auto:chan:qq", hard=True).relations == (1,)


# ---- names that nothing is known of


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("criteria", "hint"),
    [
        ({"session": "sX"}, "sA"),
        ({"session": "session of nobody", "subject_contains": "pelican"}, "check its spelling"),
        ({"scope": "wrk"}, "work"),
        ({"scope": "nobody"}, "check its spelling"),
        ({"scene": "chan:qw"}, "chan:qq"),
        ({"scene": "x"}, "'graphmem scenes' lists them"),
    ],
)
def test_a_session_scope_or_scene_that_nothing_is_known_of_is_not_found(sessions, path, criteria, hint, hard, dry_run):
    sessions.remember("Deploy", scope="work")
    before = dump(path)

    with pytest.raises(NotFound) as caught:
        sessions.purge(**criteria, hard=hard, dry_run=dry_run)

    message = str(caught.value)
    argument = next(iter(criteria))
    assert message.startswith(f"{argument}: nothing is known of {criteria[argument]!r}; ")
    assert hint in message
    assert "\n" not in message
    assert dump(path) == before


def test_what_was_deleted_or_is_in_the_journal_alone_is_known(memory, path):
    memory.commit([Triple("pelican", "likes", "tea")], scope="work", session="sA", scenes="chan:qq")
    memory.mirror("parts", [Part("m1", text="Hello")], scope="talk")
    memory.purge(scope="work")
    memory.purge(scope="talk")
    memory.drop_scene("chan:qq")

    for criteria in ({"scope": "work"}, {"session": "sA"}, {"session": "parts"}, {"scope": "talk"}):
        assert memory.purge(**criteria).relations == ()
    assert memory.purge(scene="chan:qq", dry_run=True).relations == ()
    memory.purge(subject_contains="pelican", hard=True)
    with pytest.raises(NotFound):
        memory.purge(session="sA")


def test_parts_of_names_that_nothing_meets_remove_nothing(sessions):
    for criteria in ({"subject_contains": "x9"}, {"object_contains": "x9"}, {"relation": "x9"}):
        assert sessions.purge(**criteria).relations == ()
