"""The benchmarks at tiny sizes: what they print, and that a floor does what its verb does."""

import doctest
import importlib
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import types
from pathlib import Path

import pytest
from support import sql

from graphmem import Memory, Part, Situation

SCRIPTS = Path(__file__).parent.parent / "scripts"
MACHINE = {"date", "commit", "graphmem", "machine", "load", "python", "sqlite"}
# Columns that each subject tells of each size, whatever else it tells.
COLUMNS = {
    "enter": {"scenes", "median_us", "p10_us", "p90_us", "p99_us", "floor_us", "to_floor", "file_bytes_a_scene"},
    "recall": {"scenes", "prefix_us", "floor_us", "to_floor", "key_us", "situation_us", "refs_below"},
    "search": {"texts", "median_us", "p99_us", "floor_us", "to_floor", "grown_mib"},
    "commit": {"facts", "median_us", "p99_us", "floor_us", "to_floor"},
    "ingest": {"verb", "items", "items_a_second", "floor_a_second", "of_floor"},
    "start": {"command", "median_ms", "floor_ms", "to_floor", "loads"},
    "hook": {"event", "how", "scenes", "median_ms", "verb_ms", "floor_ms", "starts"},
    "dedupe": {"scenes", "twins", "scan_s", "dry_run_s", "to_scan", "peak_mib", "real_s", "undo_s"},
    "brief": {"size", "median_us", "recalls_us", "to_recalls"},
    "notes": {"notes", "remember_us", "remember_to_floor", "lesson_to_floor", "brief_us", "brief_to_floor", "rules_us"},
    "scenes": {"scenes", "turn_names", "enter_us", "match_us", "recall_us"},
    "tenants": {"files", "how", "handles_left", "grown_mib"},
    "writers": {"who", "processes", "turns_a_second", "kept", "refused"},
    "fresh": {"turns", "median_us", "scenes", "features_at_most"},
    "entities": {"entities", "review_s", "pairs", "peak_mib"},
    "upkeep": {"scenes", "refs_faded", "p50_ms", "max_ms"},
    "mirror": {"chats", "parts", "of_floor", "screened_a_second", "exact", "added_again"},
    "digest": {"chats", "evidence_turns", "kept", "first", "random", "to_first", "to_random", "digest_ms"},
    "tree": {
        *("notes", "unchanged_ms", "floor_ms", "to_floor", "read_all_ms", "one_edit_ms", "export_s", "take_s"),
        *("watched_ms", "watched_worst_ms"),
    },
}
SCALES = {"writers": ["30"], "start": ["30"], "hook": ["30"], "upkeep": ["30"], "entities": ["60"], "tenants": ["10"],
          "dedupe": ["60"], "mirror": ["1"], "digest": ["1"]}  # fmt: skip


def bench(*arguments):
    ran = subprocess.run(
        [sys.executable, SCRIPTS / "bench.py", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def benchmarks(monkeypatch):
    """The modules of the benchmarks, by name."""
    monkeypatch.syspath_prepend(SCRIPTS)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def rows_of(path, *tables):
    with sqlite3.connect(path) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables}


CHATS = SCRIPTS.parent.parent / "shared" / "data" / "locomo"
NEEDS_CHATS = pytest.mark.skipif(not CHATS.exists(), reason="the chats of LoCoMo are not there")


@pytest.mark.parametrize(
    "subject", [pytest.param(name, marks=NEEDS_CHATS if name in ("mirror", "digest") else ()) for name in COLUMNS]
)
def test_a_benchmark_tells_rows_verdicts_and_growth(subject):
    told = json.loads(bench(subject, "--json", "--turns", "1", "--scale", *SCALES.get(subject, ["20", "40"])))

    found = told["benchmarks"][subject]
    assert told.keys() - {"benchmarks"} == MACHINE
    assert found["rows"]
    assert all(row.keys() >= COLUMNS[subject] for row in found["rows"])
    assert all(must.keys() == {"what", "bound", "allowed", "measured", "holds"} for must in found["musts"])
    assert all(isinstance(growth["slope"], float) and len(growth["points_us"]) > 1 for growth in found["growth"])


def test_every_benchmark_is_tried_here(benchmarks, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    assert set(importlib.import_module("bench").SUBJECTS) == set(COLUMNS)


def test_peers_that_are_not_there_are_skipped_with_a_remedy(tmp_path):
    told = bench("--against", "peers", "--peers", tmp_path / "peers", "--installed", tmp_path, "--scale", "20")

    assert "reference skipped: no scenebench.py: give the folder of scenebench.py and peers/ by --peers" in told


def test_the_table_ends_with_verdicts_in_words():
    told = bench("commit", "--turns", "1", "--scale", "20")

    assert "must: commit of a fact into three scenes beside 20 facts, times the bare inserts: at most 4.0" in told


def test_the_functions_of_measuring_do_as_they_say(benchmarks):
    assert doctest.testmod(benchmarks("measure")).failed == 0


def test_scenes_are_filled_as_graphmem_grows_them(benchmarks, tmp_path):
    seeds = benchmarks("seeds")
    seeds.fill(tmp_path / "a.db", 12)

    assert [seeds.key_of(i) for i in range(12)] == [
        "auto:" + Situation.of(**seeds.plain_scene(i)).label() for i in range(12)
    ]
    with Memory.open(tmp_path / "a.db") as memory:
        for i in range(12):
            assert memory.enter_scene(seeds.situation(random.Random(i), i)).key == seeds.key_of(i)
        memory.reindex()
        assert memory.check().problems == ()
    assert sql(tmp_path / "a.db", "PRAGMA journal_mode") == [("wal",)]


def test_floors_work_with_the_settings_of_graphmem(benchmarks, tmp_path):
    path = tmp_path / "memory.db"
    settings = ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "cache_size", "mmap_size")

    def told(connection):
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings}

    with Memory.open(path) as memory, benchmarks("seeds").bare(path) as floor, memory._store.write() as tx:
        assert told(floor) == told(tx)


def test_the_floor_of_enter_writes_what_a_join_writes(benchmarks, tmp_path):
    seeds, entering = benchmarks("seeds"), benchmarks("entering")
    paths = tmp_path / "verb.db", tmp_path / "floor.db"
    for path in paths:
        seeds.fill(path, 12)
    turns = [(i, seeds.situation(random.Random(i), i % 12)) for i in range(40)]

    with Memory.open(paths[0]) as memory:
        for _, here in turns:
            memory.enter_scene(here)
    with seeds.bare(paths[1]) as db:
        for i, here in turns:
            entering.floor(db, i % 12 + 1, here)

    tables = "scenes", "scene_features"
    assert rows_of(paths[1], *tables) == rows_of(paths[0], *tables)


def test_the_floor_of_recall_fetches_what_recall_returns(benchmarks, tmp_path):
    recalling, seeds = benchmarks("recalling"), benchmarks("seeds")
    recalling.fill(tmp_path / "a.db", 20, 10)

    for key in (recalling.HALL, recalling.guest(3)):
        with Memory.open(tmp_path / "a.db") as memory, seeds.bare(tmp_path / "a.db") as db:
            found = memory.recall_by_scene(key, limit=8)
            keys, facts, names = recalling.floor(db, key, 8)
        assert keys == list(found.scenes)
        assert [fact[0] for fact in facts] == [one.id for one in found.relations]
        assert [fact[4] for fact in facts] == [one.sentence for one in found.relations]
        assert [name[0] for name in names] == [one.id for one in found.entities]
        assert len(facts) == len(names) == 8


# Entities by their names: an upsert uses up an id even where the row is there, and the floor knows what is there.
WRITTEN = (
    "SELECT name, key, type, mention_count, created_at, updated_at FROM entities ORDER BY 1",
    "SELECT * FROM sentences ORDER BY 1",
    """SELECT r.id, a.name, b.name, r.relation_type, r.relation_key, r.confidence, r.status, r.scope, r.sentence_id,
           r.recorded_at, r.updated_at, r.valid_from, r.valid_to, r.closed_at
       FROM relations r JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id ORDER BY 1""",
    "SELECT * FROM evidence ORDER BY 1",
    """SELECT f.scene_id, f.kind, COALESCE(e.name, f.ref_id) AS what, f.weight, f.sentence_id, f.decayed_at,
              f.created_at
       FROM scene_refs f LEFT JOIN entities e ON f.kind = 'entity' AND e.id = f.ref_id ORDER BY 1, 2, what""",
    "SELECT title, labels, body FROM text_index ORDER BY 1, 3",
    "SELECT * FROM text_sizes ORDER BY 1",
)


@pytest.mark.parametrize("batch", [1, 25])
def test_the_floor_of_commit_writes_what_commit_writes(benchmarks, tmp_path, batch):
    seeds, writing = benchmarks("seeds"), benchmarks("writing")
    speech = seeds.Speech()
    verb, floor = writing.twins(tmp_path, writing.SCENES, 10, speech)
    told = list(writing.facts("new", 50, speech))

    with Memory.open(verb) as memory, seeds.bare(floor) as db:
        writer = writing.BareFacts(db, writing.SCENES)
        for start in range(0, 50, batch):
            memory.commit(told[start : start + batch], scenes=writing.SCENES, at=seeds.AT)
            writer.ready(told[start : start + batch])()

    assert [sql(floor, written) for written in WRITTEN] == [sql(verb, written) for written in WRITTEN]
    with Memory.open(floor) as memory:
        assert memory.check().problems == ()


NOTED = (
    "SELECT * FROM notes ORDER BY 1",
    "SELECT * FROM note_labels ORDER BY 1, 2",
    "SELECT * FROM provenance ORDER BY kind, ref_id, seq",
    "SELECT rowid, title, labels, body FROM text_index ORDER BY 1",
    "SELECT * FROM text_sizes ORDER BY 1",
)


@pytest.mark.parametrize("name", ["fact", "lesson"])
def test_the_floor_of_remember_writes_what_remember_writes(benchmarks, tmp_path, clock, name):
    seeds, noting = benchmarks("seeds"), benchmarks("noting")
    speech = seeds.Speech()
    verb, floor = tmp_path / "verb.db", tmp_path / "floor.db"
    noting.fill(verb, 120, speech, tmp_path)
    shutil.copyfile(verb, floor)

    with Memory.open(verb, project=tmp_path, clock=clock) as memory, seeds.bare(floor) as db:
        writer = noting.BareNotes(db, memory.project.place)
        for one in itertools.islice(noting.fresh(name, speech, memory.project.key), 10):
            memory.remember(one.title, body=one.body, kind=one.kind, slot=one.slot, labels=one.labels)
            writer.ready([one])()

    assert [sql(floor, written) for written in NOTED] == [sql(verb, written) for written in NOTED]
    with Memory.open(floor) as memory:
        memory.reindex()  # the hall is filled without
        assert memory.check().problems == ()


def test_the_floor_of_brief_reads_the_notes_that_a_brief_tells(benchmarks, tmp_path):
    seeds, noting = benchmarks("seeds"), benchmarks("noting")
    noting.fill(tmp_path / "a.db", 400, seeds.Speech(), tmp_path)

    with Memory.open(tmp_path / "a.db", project=tmp_path) as memory, seeds.bare(tmp_path / "a.db") as db:
        told = memory.brief(noting.HOST)
        read = noting.floor(db, memory.project.key, [])

    assert read == {ref_id for kind, ref_id in (*told.shown, *told.left_out) if kind == "note"}
    assert len(read) > 80


def test_the_floor_of_mirror_writes_what_mirror_writes(benchmarks, tmp_path):
    seeds = benchmarks("seeds")
    speech = seeds.Speech()
    lines = speech.lines(1, 30)
    with Memory.open(tmp_path / "verb.db") as memory:
        parts = [Part(str(n), text=line) for n, line in enumerate(lines, 1)]
        memory.mirror("session 1", parts, at=seeds.AT)
    Memory.open(tmp_path / "floor.db").close()
    seeds.fill_texts(tmp_path / "floor.db", 30, speech)

    tables = "sessions", "parts", "text_index", "text_sizes"
    assert rows_of(tmp_path / "floor.db", *tables) == rows_of(tmp_path / "verb.db", *tables)


CHAT = {
    "sample_id": "chat-1",
    "conversation": {
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello Bob! The café serves walnut pancakes on Sundays."},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Bob likes it. Look!", "blip_caption": "a harbour at night"},
        ],
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Ok."}],
    },
    "qa": [{"evidence": ["D1:02"]}, {"evidence": ["D:1:1; D9:9"]}, {"question": "no evidence"}],
}


def test_chats_are_read_into_increments_of_whole_turns(benchmarks, monkeypatch, tmp_path):
    digesting = benchmarks("digesting")
    (tmp_path / "chats.json").write_text(json.dumps([CHAT]), "utf-8")
    small = types.SimpleNamespace(checkpoint_input_bytes=100, extract_max_messages=24)
    monkeypatch.setattr(digesting, "DEFAULT", small)

    ((first, second),) = digesting.read(tmp_path / "chats.json")

    assert [part.text for part in (*first.parts, *second.parts)] == [
        "Hello Bob! The café serves walnut pancakes on Sundays.",
        "Bob likes it. Look! [shares a harbour at night]",
        "Ok.",
    ]
    assert (first.evidence, second.evidence) == ((0,), (0,))
    assert first.size == 55
    assert first.names == {"ann", "bob"}


def test_kept_is_the_share_of_the_words_of_evidence_turns(benchmarks, monkeypatch, tmp_path):
    digesting = benchmarks("digesting")
    (tmp_path / "chats.json").write_text(json.dumps([CHAT]), "utf-8")
    monkeypatch.setattr(digesting, "SHARE", 2)
    ((one,),) = digesting.read(tmp_path / "chats.json")

    # Two of the five words of the one, which greets by a name besides; none of the four of the other.
    assert digesting.kept([one], lambda _: ["Walnut pancakes!", "Bob, unrelated."]) == pytest.approx((2 / 5 + 0) / 2)
    assert digesting.first_sentences(one) == ["Hello Bob!", "Bob likes it.", "Look!", "Ok."]
    assert digesting.first_of_turns(one) == ["Hello Bob!", "Bob likes it.", "Ok."]
    assert sorted(digesting.random_sentences(1)(one)) != sorted(digesting.random_sentences(2)(one))
    with pytest.raises(AssertionError, match="longer than its share"):
        digesting.kept([one], lambda _: ["word " * 40])


def test_a_plot_is_written(benchmarks, tmp_path):
    pytest.importorskip("matplotlib")
    bench("commit", "--turns", "1", "--scale", "20", "40", "--plot", tmp_path / "out.svg")

    assert (tmp_path / "out.svg").read_text("utf-8").count("<svg") == 1


ON_SERVER = {
    "enter": {"scenes", "synced", "median_us", "p99_us", "floor_us", "to_floor", "commit_us", "round_trips"},
    "writers": {"who", "synced", "processes", "turns_a_second", "times_one", "client_us", "server_us", "busy"},
    "tenants": {"tenants"},
}


@pytest.mark.skipif("GRAPHMEM_POSTGRES" not in os.environ, reason="needs a server: scripts/postgres run ...")
@pytest.mark.parametrize("subject", ON_SERVER)
def test_a_benchmark_on_a_server_tells_rows_and_verdicts(subject):
    scale = ["2"] if subject == "tenants" else ["20"]
    told = json.loads(bench(subject, "--store", "postgres", "--json", "--turns", "1", "--scale", *scale))

    found = told["benchmarks"][subject]
    assert found["rows"]
    assert all(row.keys() >= ON_SERVER[subject] for row in found["rows"])
    assert found["notes"][0].startswith("PostgreSQL on loopback: server_version")


def test_the_server_can_be_asked_for_what_is_measured_on_it(benchmarks, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    assert set(importlib.import_module("bench").ON_SERVER) == set(ON_SERVER)
