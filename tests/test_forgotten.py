"""Forgetting for good, proved over the file, its -wal and its text index; and the proof itself."""

import contextlib
import json
import os
import shutil
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import HashEmbedder, another_process, dump, orphans, sql, text_index_of

from graphmem import (
    Conflict,
    InvalidInput,
    Memory,
    NotFound,
    Part,
    Situation,
    StoreCorrupt,
    StoreFailed,
    Triple,
)
from graphmem.core.model import Trace
from graphmem.store import traces

pytestmark = pytest.mark.sqlite  # what is left in bytes of a file

SECRETS = ["pelican-42", "Zyxwv Qrst", "绝密项目北斗", 'hush "ü" C#', "ＦＵＬＬ width", "x" * 40]
DOOMED = {"scope": "doomed", "session": "d1"}
HERE = "chan:qq"

each_secret = pytest.mark.parametrize("secret", SECRETS)


@pytest.fixture
def careless(path, clock):
    """A memory on a SQLite that does not overwrite what it removes, as most are built; with something in it."""
    with Memory.open(path, clock=clock) as memory:
        memory._store._writer.execute("PRAGMA secure_delete = OFF")
        fill(memory, "before")
        yield memory


def fill(memory, name):
    facts = [Triple(f"{name} {n}", "uses", f"npm {n % 7}", sentence=f"{name} {n} is built.") for n in range(20)]
    memory.commit(facts, scenes="chan:mail", session="kept", scope="kept")
    memory.remember(f"Deploy {name}", slot="deploy", scope="kept")
    memory.mirror("kept", [Part(f"{name} {n}", text=f"Lunch {name} {n}?") for n in range(8)], scope="kept")


def told(memory, secret, **options):
    fact = Triple(secret, f"likes {secret}", "tea", sentence=f"They say {secret} likes tea.", **options)
    return memory.commit([fact], scenes=HERE, **DOOMED, source=secret).relations[0]


def left(path, text):
    return Memory.verify_forgotten(path, text).found


def keys(memory):
    return {scene.key for scene in memory.scenes()}


# ---- what was done with it before


def only_told(memory, secret):
    told(memory, secret)


def edited(memory, secret):
    memory.edit_relation(told(memory, secret), subject="nobody", sentence="")


def edited_into(memory, secret):
    memory.commit([Triple("nobody", "likes", "tea")], scenes=HERE, scope="doomed")
    (nobody,) = [fact.id for fact in memory.recall_by_scene(HERE, scopes="all").relations]
    memory.edit_relation(nobody, object=secret, sentence=f"It is {secret}.")


def edited_and_undone(memory, secret):
    memory.commit([Triple("nobody", "likes", "tea")], scenes=HERE, scope="doomed")
    (nobody,) = [fact.id for fact in memory.recall_by_scene(HERE, scopes="all").relations]
    memory.undo(memory.edit_relation(nobody, object=secret, sentence=f"It is {secret}.").operation)


def deleted(memory, secret):
    memory.delete_relation(told(memory, secret))


def deleted_and_told_again(memory, secret):
    memory.delete_relation(told(memory, secret))
    told(memory, secret)


def purged_softly(memory, secret):
    told(memory, secret)
    memory.remember(f"Remember {secret}", body=secret, slot=secret, labels=secret, scope="doomed")
    memory.mirror("d2", [Part(secret, author=secret, text=f"I am {secret}.")], scope="doomed")
    memory.purge(scope="doomed")


def purged_softly_and_undone(memory, secret):
    purged_softly(memory, secret)
    memory.undo(1)


def in_merged_scenes(memory, secret):
    told(memory, secret)
    with memory._store.write() as tx:
        tx.execute(
            """INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at)
               SELECT 'chan:QQ', 1, 0, 'declared', created_at, updated_at FROM scenes WHERE key = 'chan:qq'"""
        )
        tx.execute(
            """INSERT INTO scene_refs(scene_id, kind, ref_id, sentence_id, decayed_at, created_at)
               SELECT (SELECT id FROM scenes WHERE key = 'chan:QQ'), kind, ref_id, sentence_id, decayed_at, created_at
               FROM scene_refs WHERE scene_id = (SELECT id FROM scenes WHERE key = 'chan:qq')"""
        )
    assert memory.dedupe_scenes().merged == 1


def merged(memory, secret):
    memory.commit([Triple("nobody", f"likes {secret}", "tea", sentence=f"{secret}!")], scenes=HERE, scope="doomed")
    told(memory, secret)
    memory.merge_entities(secret, "nobody")
    told(memory, secret)


def merged_and_undone(memory, secret):
    merged(memory, secret)
    memory.undo(1)


def superseded(memory, secret):
    for value, day in ((secret, 1), ("beer", 2), (f"{secret}!", 3), ("milk", 4)):
        fact = Triple("they", "drink", value, sentence=f"They drink {value}.", functional=True)
        memory.commit([fact], scenes=HERE, scope="doomed", at=f"2026-09-0{day}T00:00:00Z")


def notes_of_one_slot(memory, secret):
    for title in (secret, "nothing", f"Of {secret}"):
        memory.remember(title, body=f"About {secret}", slot="it", labels=["mark", secret], scope="doomed")
    memory.remember("nothing", slot="it", labels=["other"], scope="doomed", status="archived")


def overwritten(memory, secret):
    for text in (f"I am {secret}. " * 30, "I am nobody.", f"{secret}, again."):
        memory.mirror("d2", [Part("m1", author=secret, text=text), Part("m2", text=text)], scope="doomed")


def long_text(memory, secret):
    memory.mirror("d2", [Part("m1", text=f"{secret} ... " * 3_000)], scope="doomed")


BEFORE = [
    only_told, edited, edited_into, edited_and_undone, deleted, deleted_and_told_again, purged_softly,
    purged_softly_and_undone, in_merged_scenes, merged, merged_and_undone, superseded, notes_of_one_slot, overwritten,
    long_text,
]  # fmt: skip


@each_secret
@pytest.mark.parametrize("act", BEFORE, ids=lambda act: act.__name__)
def test_a_hard_purge_leaves_no_trace_in_the_file(careless, path, secret, act):  # P7, FTS-08
    act(careless, secret)
    fill(careless, "after")
    others = careless.recall_by_scene("chan:mail", limit=None, scopes="all")

    report = careless.purge(scope="doomed", hard=True)

    assert (report.applied, report.left, report.remarks) == (True, (), ())
    assert careless.recall_by_scene("chan:mail", limit=None, scopes="all") == others
    assert os.stat(f"{path}-wal").st_size == 0
    assert orphans(path) == []  # MRG-07
    indexed = text_index_of(path)
    careless.reindex()
    assert text_index_of(path) == indexed
    careless.close()
    assert left(path, secret) == ()
    assert left(path, "before 7")


@pytest.mark.parametrize("act", BEFORE, ids=lambda act: act.__name__)
def test_what_was_not_purged_for_good_is_found(careless, path, act):
    act(careless, "pelican-42")
    careless.close()

    assert left(path, "pelican-42")


@pytest.mark.parametrize("act", BEFORE, ids=lambda act: act.__name__)
def test_what_was_purged_softly_comes_back(careless, path, act):
    act(careless, "pelican-42")
    tables = ("relations", "evidence", "sentences", "entities", "notes", "note_labels", "sessions", "parts")
    before = [sql(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables], text_index_of(path)

    operation = careless.purge(scope="doomed").operation

    assert not careless.recall("pelican-42", scopes=["doomed"], kinds=["relation", "note", "part"])
    if operation:
        careless.undo(operation)
    assert ([sql(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables], text_index_of(path)) == before


@pytest.mark.parametrize("hard", [False, True])
def test_what_comes_after_does_not_inherit_the_words(careless, hard):  # FTS-08
    careless.remember("pelican-42", scope="doomed")
    told(careless, "pelican-42")
    careless.purge(scope="doomed", hard=hard)
    careless.remember("plain note", scope="doomed")
    careless.commit([Triple("plain", "is", "note")], scope="doomed")

    assert [
        hit for hit in careless.recall("pelican", scopes="all") if "pelican" in hit.text and hit.kind != "entity"
    ] == []
    assert {hit.kind for hit in careless.recall("plain note", scopes="all")} >= {"note", "relation"}


def test_vectors_go_too(path, clock):
    with Memory.open(path, clock=clock, embedder=HashEmbedder()) as memory:
        purged_softly_and_undone(memory, "pelican-42")
        assert sql(path, "SELECT DISTINCT kind FROM vectors")
        memory.purge(scope="doomed", hard=True)
        assert sql(path, "SELECT * FROM vectors") == []


# ---- scope


def test_everything_of_one_user_is_forgotten_and_nothing_of_another(memory, path):  # SCP-06
    for scope in ("a", "b"):
        memory.commit([Triple(f"{scope}{n}", "likes", "tea") for n in range(250)], scope=scope)
    memory.commit([Triple("panel", "uses", "npm")])

    dry = memory.purge(scope="a", dry_run=True)
    report = memory.purge(scope="a")

    assert len(dry.relations) == len(report.relations) == 250
    counts = "SELECT scope, COUNT(*) FROM relations WHERE status = 'active' GROUP BY scope ORDER BY scope"
    assert sql(path, counts) == [("", 1), ("b", 250)]
    with pytest.raises(NotFound, match="'A'"):
        memory.purge(scope="A")
    with pytest.raises(InvalidInput, match="scope"):
        memory.purge(scope="")


@pytest.mark.parametrize("hard", [False, True])
def test_notes_go_with_the_scope_alone_and_parts_with_session_and_scope(memory, path, hard):
    def filled():
        memory.commit([Triple("panel", "uses", "npm")], scope="a", session="s1")
        memory.remember("One", slot="x", scope="a")
        memory.remember("Two", slot="x", scope="a")
        memory.mirror("s1", [Part("m1", text="Hello"), Part("m2", text="Bye")], scope="a")
        memory.mirror("s2", [Part("m1", text="Hello")], scope="b")

    filled()
    told = {"hard": hard, "dry_run": True}
    counts = [
        (len(report.relations), len(report.notes), report.parts)
        for report in (
            memory.purge(scope="a", **told),
            memory.purge(session="s1", **told),
            memory.purge(session="s1", scope="a", **told),
            memory.purge(session="s1", scope="b", **told),
            memory.purge(scope="a", relation="uses", **told),
            memory.purge(session="s2", object_contains="npm", **told),
        )
    ]

    assert counts == [(1, 2, 2), (1, 0, 2), (1, 0, 2), (0, 0, 0), (1, 0, 0), (0, 0, 0)]
    report = memory.purge(scope="a", hard=hard)
    assert (report.notes, report.parts, report.applied) == ((1, 2), 2, True)
    assert sql(path, "SELECT name FROM sessions") == [("s2",)]
    assert {status for (status,) in sql(path, "SELECT status FROM notes")} == (set() if hard else {"forgotten"})
    assert not memory.recall("Two Bye", kinds=["note", "part"], scopes="all")
    summary = memory.operations()[0].summary
    assert {"relations": 1, "notes": 2, "parts": 2}.items() <= summary.items()
    filled()
    assert memory.recall("Two", kinds="note", scopes="all")


# ---- entity


def test_all_facts_of_an_entity_go_with_it_and_its_aliases(careless, path):
    careless.commit(
        [Triple("pelican-42", "uses", "npm"), Triple("boss", "likes", "pelican-42"), Triple("boss", "is", "tall")],
        scenes=HERE,
    )
    (number,) = [row[0] for row in sql(path, "SELECT id FROM entities WHERE key = 'pelican-42'")]
    (boss,) = [row[0] for row in sql(path, "SELECT id FROM entities WHERE key = 'boss'")]
    sql(path, "INSERT INTO entity_aliases VALUES ('zebra-7', ?)", number)
    sql(path, "INSERT INTO entities_apart VALUES (?, ?, NULL, '2026-09-01T00:00:00.000Z')", *sorted((number, boss)))
    document = careless.put_document("a long talk", entities=["Pelican-42"], scenes=HERE)

    soft = careless.purge(entity=" ZEBRA-7 ", dry_run=True)
    report = careless.purge(entity=" ZEBRA-7 ", hard=True)

    assert (len(soft.relations), soft.entities, set(soft.orphaned)) == (2, (), {"pelican-42", "npm"})
    assert (report.relations, set(report.entities), report.orphaned) == (soft.relations, {"pelican-42", "npm"}, ())
    assert report.left == (("document", document.id),)
    assert {fact.object for fact in careless.recall_by_scene(HERE).relations} == {"tall"}
    assert {entity.name for entity in careless.recall_by_scene(HERE).entities} == {"boss", "tall"}
    assert orphans(path) == []
    with pytest.raises(NotFound, match="pelican"):
        careless.purge(entity="pelican-42")
    careless.close()
    assert {trace.where for trace in left(path, "pelican-42")} >= {"documents.entities", str(path)}
    assert left(path, "zebra-7") == ()


def test_an_entity_that_other_facts_tell_of_stays(memory):
    memory.commit([Triple("panel", "uses", "npm"), Triple("panel", "port", "8080")])

    report = memory.purge(entity="panel", relation="uses", hard=True)

    assert (report.relations, report.entities) == ((1,), ("npm",))
    assert memory.neighbours("panel").entities


def test_an_entity_without_a_fact_goes_when_it_is_named(memory, path):
    memory.commit([Triple("panel", "uses", "npm")])
    with memory._store.write() as tx:
        tx.execute("DELETE FROM evidence")
        tx.execute("DELETE FROM relations")

    assert memory.purge(entity="npm").operation is None
    assert memory.purge(entity="npm", hard=True).entities == ("npm",)
    assert sql(path, "SELECT name FROM entities") == [("panel",)]


def test_a_sentence_that_tells_other_facts_stays_and_is_told_of(memory, path):
    shared = "Ann and Bob use npm."
    memory.commit([Triple("Ann", "uses", "npm", sentence=shared), Triple("Bob", "uses", "npm", sentence=shared)])

    report = memory.purge(entity="Ann", hard=True)

    assert report.left == (("sentence", 1),)
    assert sql(path, "SELECT text FROM sentences") == [(shared,)]


@pytest.mark.parametrize("named", ["pelican-42", "zebra-7"])
def test_what_was_merged_into_it_goes_too(careless, path, named):
    careless.commit([Triple("pelican-42", "uses", "npm", sentence="pelican-42 uses npm.")], scenes=HERE)
    careless.commit([Triple("zebra-7", "uses", "npm", sentence="zebra-7 uses npm.")], scenes="chan:mail")
    assert careless.merge_entities("zebra-7", "pelican-42").folded
    careless.commit([Triple("ZEBRA-7", "uses", "npm", sentence="Zebra-7 uses npm still.")], scenes="chan:mail")

    assert len(careless.purge(entity=named, hard=True).relations) == 1

    with pytest.raises(Conflict, match="removed for good"):
        careless.undo(1)
    careless.close()
    assert left(path, "pelican-42") == ()
    assert left(path, "zebra-7") == ()


# ---- scene


@pytest.fixture
def scenes(careless):
    """Facts below a scene, in and outside of it, openly too; scenes with names that begin alike."""
    careless.commit([Triple("one", "is", "inside")], scenes="topic:pelican-42")
    careless.commit([Triple("two", "is", "below")], scenes="topic:pelican-42/peer:ann")
    careless.commit([Triple("three", "is", "in both")], scenes=["topic:pelican-42", "chan:mail"])
    careless.commit([Triple("four", "is", "beside")], scenes="topic:pelican-421")
    careless.commit([Triple("five", "is", "open")], scenes="topic:pelican-42")
    careless.commit([Triple("five", "is", "open")])
    return careless


def objects(memory):
    return {fact.object for fact in memory.recall_by_scene("topic:pelican-42", limit=None).relations}


def test_a_purge_by_scene_takes_what_was_told_there_and_nowhere_else(scenes, path):  # KEY-02
    operation = scenes.purge(scene="topic:PELICAN-42").operation

    assert objects(scenes) == {"in both", "open"}
    assert len(scenes.recall_by_scene("topic:pelican-421").relations) == 1
    assert "topic:pelican-42" in keys(scenes)
    scenes.undo(operation)
    assert objects(scenes) == {"inside", "below", "in both", "open"}
    for wildcard in ("topic:pelican_42", "topic:pelican-4"):
        with pytest.raises(NotFound, match=wildcard):
            scenes.purge(scene=wildcard, hard=True)


@pytest.mark.parametrize("softly_before", [False, True])
def test_a_hard_purge_by_scene_takes_the_scenes_too(scenes, path, softly_before):
    for _ in range(3):
        scenes.enter_scene(Situation.of(topics=["pelican-42"]))
    if softly_before:
        scenes.purge(scene="topic:pelican-42")
    scenes.purge(scene="topic:pelican-421", hard=True)
    scenes.purge(scene="auto:topic:pelican-42", hard=True)
    with contextlib.suppress(InvalidInput):
        scenes.enter_scene(Situation.of(topics=["other"]))

    report = scenes.purge(scene="topic:pelican-42", hard=True)

    assert report.scenes == ("topic:pelican-42", "topic:pelican-42/peer:ann")
    assert len(report.relations) == 2
    assert not any("pelican" in key for key in keys(scenes))
    assert {fact.object for fact in scenes.recall_by_scene("chan:mail", limit=None).relations} >= {"in both"}
    assert scenes.recall("five open", kinds="relation")
    assert orphans(path) == []
    scenes.enter_scene(Situation.of(topics=["other"]))
    scenes.close()
    assert left(path, "pelican-42") == ()


def test_evidence_of_a_scene_that_grew_goes_with_it(careless, path):
    here = Situation.of(topics=["pelican-42"])
    careless.enter_scene(here)
    assert careless.enter_scene(here).key == "auto:topic:pelican-42"
    sql(path, "INSERT INTO situation_evidence VALUES ('topic:pelican-42', 1, '2026-09-01T00:00:00.000Z')")

    careless.purge(scene="auto:topic:pelican-42", hard=True)

    assert careless.match_scenes(here) == ()
    careless.close()
    assert left(path, "pelican-42") == ()


def test_the_old_keys_of_merged_scenes_go_too(careless, path):
    careless.commit([Triple("one", "is", "inside")], scenes="topic:pelican-42")
    for key in ("topic:Pelican-42", "topic:PELICAN-42"):
        sql(
            path,
            """INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at)
               SELECT ?, 9, 0, 'declared', created_at, updated_at FROM scenes WHERE key = 'topic:pelican-42'""",
            key,
        )
    assert careless.dedupe_scenes().merged == 2

    assert careless.purge(scene="topic:pelican-42", hard=True).scenes == ("topic:pelican-42",)

    with pytest.raises(Conflict, match="removed for good"):
        careless.undo(1)
    careless.close()
    assert left(path, "pelican-42") == ()


def test_a_deleted_fact_that_lost_its_refs_goes_by_where_it_was_told(careless, path):
    for scenes in (["topic:a"], ["topic:a", "topic:b"], ["topic:b"]):
        careless.commit([Triple("they", "are", "/".join(scenes))], scenes=scenes)
    mine = [row[0] for row in sql(path, "SELECT id FROM relations WHERE relation_key = 'are' ORDER BY id")]
    careless.purge(relation="are")
    sql(path, "DELETE FROM scene_refs")

    assert careless.purge(scene="topic:a").relations == ()
    assert careless.purge(scene="topic:a", hard=True).relations == (mine[0],)


@pytest.mark.parametrize("scene", ["///", " / ", "\u200b"])
@pytest.mark.parametrize("hard", [False, True])
def test_an_empty_prefix_is_refused(scenes, path, scene, hard):
    before = dump(path)

    with pytest.raises(InvalidInput, match="scene"):
        scenes.purge(scene=scene, hard=hard)
    with pytest.raises(InvalidInput, match="criteria"):
        scenes.purge(scene="", hard=hard)

    assert dump(path) == before


# ---- each way to delete

DELETIONS = [
    *({"scope": "doomed", "hard": hard} for hard in (False, True)),
    *({"entity": "pelican-42", "hard": hard} for hard in (False, True)),
    *({"session": "d1", "hard": hard} for hard in (False, True)),
    *({"scene": HERE, "hard": hard} for hard in (False, True)),
    *({"subject_contains": "pelican", "relation": "likes pelican-42", "hard": hard} for hard in (False, True)),
]


@pytest.mark.parametrize("criteria", DELETIONS, ids=str)
def test_no_way_to_delete_leaves_orphans(careless, path, criteria):  # MRG-07
    told(careless, "pelican-42")
    superseded(careless, "pelican-42")
    notes_of_one_slot(careless, "pelican-42")
    careless.mirror("d1", [Part("m1", text="pelican-42")], scope="doomed")
    block = careless.put_block("a picture", scenes=HERE).id
    document = careless.put_document("a talk", scenes=HERE).id

    assert careless.purge(**criteria).operation
    careless.delete_block(block)
    careless.consume_document(document)

    assert orphans(path) == []
    for kind, table in (("entity", "entities"), ("note", "notes"), ("block", "blocks"), ("document", "documents")):
        column = "ref_text" if kind in ("block", "document") else "ref_id"
        lost = f"SELECT * FROM scene_refs WHERE kind = ? AND {column} NOT IN (SELECT id FROM {table})"
        assert sql(path, lost, kind) == []
    indexed = text_index_of(path)
    careless.reindex()
    assert text_index_of(path) == indexed


# ---- the journal


def test_an_operation_whose_images_went_says_so_and_brings_back_the_others(memory):
    memory.commit([Triple("panel", "uses", "npm"), Triple("panel2", "uses", "npm")])
    soft = memory.purge(relation="uses").operation

    memory.delete_relation(1, hard=True)

    assert memory.operations()[-1].summary["rows_removed_for_good"] == 1
    memory.undo(soft)
    assert [fact.subject for fact in memory.recall_by_scene("", scopes="all").relations] == []
    assert [hit.text for hit in memory.recall("panel2", kinds="relation", scopes="all")]


def test_the_operation_of_a_hard_purge_tells_counts_only(careless):
    purged_softly(careless, "pelican-42")

    careless.purge(scope="doomed", hard=True)

    assert "pelican" not in json.dumps([one.summary for one in careless.operations()])
    with pytest.raises(Conflict, match="removed for good"):
        careless.undo(careless.operations()[0].id)


# ---- the file


def test_a_reader_that_holds_the_log_is_told_of_and_the_last_to_close_cleans_it(careless, path):
    careless.close()
    with Memory.open(path) as memory:
        memory._store._writer.execute("PRAGMA busy_timeout = 50")
        told(memory, "pelican-42")
        with another_process(path, "BEGIN", "SELECT * FROM relations") as end:
            report = memory.purge(scope="doomed", hard=True)
            end()
    assert len(report.remarks) == 1
    assert "-wal" in report.remarks[0]
    assert left(path, "pelican-42") == ()


def test_what_kept_the_file_from_being_cleaned_is_told_and_another_purge_cleans_it(careless, path):
    told(careless, "pelican-42")
    fill(careless, "after")
    real = careless._store.idle

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(careless._store, "idle", contextlib.contextmanager(lambda: failing_vacuum(real)))
        report = careless.purge(scope="doomed", hard=True)
    again = careless.purge(subject_contains="pelican", hard=True)

    assert "once more" in report.remarks[0]
    assert careless._store._writer.execute("PRAGMA secure_delete").fetchone() == (0,)
    assert (again.operation, again.remarks) == (None, ())
    careless.close()
    assert left(path, "pelican-42") == ()


def failing_vacuum(real):
    class Failing:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement):
            if statement == "VACUUM":
                raise StoreFailed("no room")
            return self.connection.execute(statement)

    with real() as connection:
        yield Failing(connection)


def test_without_room_to_clean_the_file_nothing_is_removed(careless, path, monkeypatch):  # SCH-06
    told(careless, "pelican-42")
    before = dump(path)
    monkeypatch.setattr(traces, "free_bytes", lambda folder: 4096)

    with pytest.raises(StoreFailed, match="4096"):
        careless.purge(scope="doomed", hard=True)

    assert dump(path) == before
    assert careless.purge(scope="doomed").relations


def test_a_file_that_may_not_grow_keeps_what_it_held(careless, path):  # SCH-06
    told(careless, "pelican-42")
    before = dump(path)
    (pages,) = careless._store._writer.execute("PRAGMA page_count").fetchone()
    careless._store._writer.execute(f"PRAGMA max_page_count = {pages}")
    with contextlib.suppress(StoreFailed):
        careless.purge(scope="doomed", hard=True)
    assert careless.recall("before", scopes="all")
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert before


def test_a_memory_without_a_file_is_purged_as_well(clock):
    with Memory.open(":memory:", clock=clock) as memory:
        told(memory, "pelican-42")

        assert memory.purge(scope="doomed", hard=True).remarks == ()
        assert not memory.recall("pelican-42", scopes="all")


# ---- the proof


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Pelican-42", "pelican-42"),
        ("pelican-42", "PELICAN-42"),
        ("ｐｅｌｉｃａｎ", "pelican"),
        ("cafe\u0301 noir", "caf\u00e9 noir"),
        ("caf\u00e9 noir", "cafe\u0301 noir"),
        ("Straße", "STRASSE"),
        ("secret  word", "secret word"),
        ("绝密项目", "绝密项目"),
    ],
)
@pytest.mark.parametrize("place", ["fact", "sentence", "note", "part", "block", "document"])
def test_a_text_is_found_in_every_spelling_and_place(memory, path, stored, asked, place):
    acts = {
        "fact": lambda: memory.commit([Triple(stored, "is", "here")]),
        "sentence": lambda: memory.commit([Triple("it", "is", "here", sentence=f"So: {stored}.")]),
        "note": lambda: memory.remember("Title", labels=stored),
        "part": lambda: memory.mirror("s", [Part("m", text=f"..{stored}..")]),
        "block": lambda: memory.put_block(stored),
        "document": lambda: memory.put_document("A talk", tags=[stored]),
    }
    acts[place]()
    memory.close()
    columns = {
        "fact": "entities.name", "sentence": "sentences.text", "note": "note_labels.label", "part": "parts.text",
        "block": "blocks.text", "document": "documents.tags",
    }  # fmt: skip

    report = Memory.verify_forgotten(path, asked)

    assert not report.ok
    assert columns[place] in {trace.where for trace in report.found}
    assert Memory.verify_forgotten(path, "something else").ok


def test_a_text_is_found_in_payloads(memory, path):
    memory.put_block("a picture", payload=b"\0" * 70_000 + b"pelican-42", mime="image/png", modality="image")
    memory.put_block("another", payload=b"zebra-7", mime="image/png", modality="image")
    memory.close()

    (trace,) = left(path, "pelican-42")
    assert (trace.where.startswith(f"{path}.blobs"), trace.count, trace.offset) == (True, 1, 70_000)
    assert Trace("blocks.payload", 1) in left(path, "zebra-7")


def test_a_text_is_found_in_free_pages_with_its_place(careless, path):
    careless.commit([Triple("it", "is", "here", sentence="pelican-42 " * 500)])
    with careless._store.write() as tx:
        tx.execute("DELETE FROM evidence")
        tx.execute("DELETE FROM scene_refs")
        tx.execute("DELETE FROM relations")
        tx.execute("DELETE FROM sentences")
    careless.reindex()
    careless.close()

    found = left(path, "pelican-42")

    assert {trace.where for trace in found} <= {str(path), "text_index_data.block"}
    (trace,) = [trace for trace in found if trace.where == str(path)]
    assert path.read_bytes()[trace.offset :].startswith(b"pelican-42")


@pytest.mark.parametrize("text", ["pelican", "pelican zebra"])
def test_words_that_the_text_index_kept_are_found(memory, path, text):
    memory.remember("pelican zebra")
    memory.remember("pelmet zeal")
    with memory._store.write() as tx:
        tx.execute("DELETE FROM notes WHERE id = 1")
    assert "text index" in {trace.where for trace in left_of_copy(path, text)}
    with memory._store.write() as tx:
        tx.execute("DELETE FROM text_index WHERE rowid IN (SELECT MIN(rowid) FROM text_index)")

    terms = [trace for trace in left_of_copy(path, text) if "terms" in trace.where]

    assert [trace.count for trace in terms] == [len(text.split())]


def left_of_copy(path, text):
    copy = path.with_name("copy.db")
    copy.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return left(copy, text)


def test_words_of_other_texts_are_no_trace(memory, path):
    memory.remember("The pelican sits")
    memory.remember("Number 42")
    memory.close()

    assert left(path, "pelican-42") == ()


def test_a_log_that_is_left_behind_is_looked_at(careless, path):
    with another_process(path, "BEGIN", "SELECT * FROM relations"):
        told(careless, "pelican-42")
        copy = path.with_name("copy.db")
        for side in ("", "-wal"):
            shutil.copyfile(f"{path}{side}", f"{copy}{side}")

    report = Memory.verify_forgotten(copy, "pelican-42")

    assert f"{copy}-wal" in {trace.where for trace in report.found}
    assert report.remarks


def test_no_byte_changes_and_the_own_file_is_refused(careless, path):  # CON-06
    with pytest.raises(Conflict, match="open in this process"):
        Memory.verify_forgotten(path, "pelican-42")
    careless.close()
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}

    Memory.verify_forgotten(path, "pelican-42")

    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.parametrize("text", ["", "  ", "\u200b", None, 5])
def test_nothing_to_look_for_is_refused(path, text):
    with pytest.raises(InvalidInput, match="text"):
        Memory.verify_forgotten(path, text)


def test_any_memory_is_looked_at_and_what_is_none_is_refused(path, tmp_path):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('CREATE TABLE "a ""b"(x)')
        connection.execute('INSERT INTO "a ""b" VALUES (?)', ("pelican-42",))
        connection.execute("""INSERT INTO "a ""b" VALUES (CAST(x'ff2070656c6963616e2d3432' AS TEXT))""")
    (tmp_path / "text").write_text("pelican-42")
    with pytest.raises(StoreFailed, match="not a graphmem memory"):
        left(path, "nothing of this")
    sql(path, "CREATE TABLE scenes(key TEXT)")  # as the reference engine has

    assert Trace('a "b.x', 2) in left(path, "pelican-42")
    with pytest.raises(StoreCorrupt):
        left(tmp_path / "text", "pelican-42")
    with pytest.raises(StoreFailed):
        left(tmp_path / "missing", "pelican-42")


# ---- any sequence

MARK = "pelicanmark"
NAMES = st.sampled_from(["ann", "bob", "npm"])
MARKED = st.sampled_from([MARK, f"{MARK} 1", f"{MARK.upper()}", f"项目 {MARK}"])
STEPS = st.one_of(
    st.tuples(st.just("tell"), NAMES, NAMES),
    st.tuples(st.just("tell secret"), MARKED, NAMES),
    st.tuples(st.just("change secret"), MARKED, MARKED),
    st.tuples(st.just("note"), MARKED, MARKED),
    st.tuples(st.just("part"), MARKED, MARKED),
    st.tuples(st.just("edit"), st.integers(0, 9), MARKED),
    st.tuples(st.just("merge"), MARKED, MARKED),
    st.tuples(st.just("delete"), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("undo"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("purge"), st.just(0), st.just(0)),
)


@given(steps=st.lists(STEPS, max_size=12))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_written_a_hard_purge_leaves_nothing_of_it(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("any") / "memory.db"
    with Memory.open(path) as memory:
        memory._store._writer.execute("PRAGMA secure_delete = OFF")
        for step, one, other in steps:
            with contextlib.suppress(NotFound, Conflict):
                take(memory, path, step, one, other)
        with contextlib.suppress(NotFound):  # where no step wrote to it
            memory.purge(scope="doomed", hard=True)
        assert orphans(path) == []
        kept = sql(path, "SELECT COUNT(*) FROM relations WHERE scope = ''")

    assert left(path, MARK) == ()
    assert kept == [(len({(a, b) for step, a, b in steps if step == "tell"}),)]


def take(memory, path, step, one, other):
    doomed = [row[0] for row in sql(path, "SELECT id FROM relations WHERE scope = 'doomed' ORDER BY id")]
    if step == "tell":
        memory.commit([Triple(one, "knows", other)], scenes=HERE)
    elif step == "tell secret":
        memory.commit([Triple(one, "knows", other, sentence=f"{one} it is.")], scenes=HERE, scope="doomed")
    elif step == "change secret":
        memory.commit([Triple("it", one, other, functional=True)], scenes=HERE, scope="doomed")
    elif step == "note":
        memory.remember(one, body=other, slot="s", scope="doomed")
    elif step == "part":
        memory.mirror("d1", [Part("m", author=one, text=other)], scope="doomed")
    elif step == "edit" and doomed:
        memory.edit_relation(doomed[one % len(doomed)], object=other, sentence=f"{other}!")
    elif step == "delete" and doomed:
        memory.delete_relation(doomed[one % len(doomed)], hard=other)
    elif step == "merge":
        memory.merge_entities(one, other)
    elif step == "undo":
        memory.undo(one + 1)
    elif step == "purge":
        memory.purge(scope="doomed")
