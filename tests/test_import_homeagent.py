"""Import of the reference engine's store: both eras, twins made one, nothing twice, nothing lost."""

import contextlib
import hashlib
import importlib.util
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import dump, sql

from graphmem import Conflict, InvalidInput, Memory, Situation, StoreFailed, Triple, normalize_key

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT.parent / "shared" / "data" / "make_homeagent_db.py"
ERAS = ("relations", "block")
SECRET = "ghp_" + "a1B2" * 9

spec = importlib.util.spec_from_file_location("make_reference_db", ROOT / "fixtures" / "make_reference_db.py")
fixture = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixture)


@pytest.fixture(params=ERAS)
def source(request, tmp_path):
    file = tmp_path / f"{request.param}.db"
    fixture.build(file, era=request.param).close()
    return file


@contextlib.contextmanager
def writing(file):
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        yield connection


def counts(report):
    return {each.what: (each.added, each.merged, each.changed, each.known, each.refused) for each in report.counts}


def content(path):
    """All rows, but for those that follow from the others, and the numbers that come next."""
    return [line for line in dump(path) if not any(each in line for each in ("text_index", "_sqlite_", "sqlite_s"))]


def test_scenes_facts_entities_and_refs_come(memory, path, source):
    live = sql(source, "SELECT COUNT(*) FROM scene_refs")[0][0]

    report = memory.import_from("homeagent", source)

    assert counts(report)["scene"] == (57, 8, 0, 0, 0)
    assert counts(report)["fact"] == (300, 0, 0, 0, 0)
    assert counts(report)["entity"] == (340, 0, 0, 0, 0)
    assert sql(path, "SELECT COUNT(*) FROM scene_refs")[0][0] == live - counts(report)["ref"][1]
    assert [scene.key for scene in memory.scenes()] == [normalize_key(scene.key) for scene in memory.scenes()]
    assert (report.refused, report.applied) == ((), True)
    assert memory.check().ok


def test_twins_are_one_scene_with_the_strength_of_both_and_their_old_keys(memory, path, source):
    report = memory.import_from("homeagent", source)

    (chief,) = memory.scenes("auto:chan:qq_part:morning")
    assert (chief.strength, chief.visits, chief.features, chief.refs, chief.origin) == (272, 272, 6, 210, "emergent")
    assert ("auto:chan:qq+part:morning",) in sql(path, "SELECT key FROM scene_aliases")
    twins = [(each.name, each.into) for each in report.merged if each.what == "scene"]
    assert twins[0] == ("auto:chan:qq+part:morning", chief.key)
    assert len(twins) == 8
    assert all(name != into for name, into in twins)


def test_a_lone_key_is_rewritten_and_keeps_its_spelling(memory, path, small):
    with writing(small) as connection:
        connection.execute("INSERT INTO scenes(key, strength) VALUES (' Tool:Shell ', 3)")

    report = memory.import_from("homeagent", small)

    assert [(scene.key, scene.strength) for scene in memory.scenes("tool:shell")] == [("tool:shell", 3)]
    assert sql(path, "SELECT key FROM scene_aliases") == [(" Tool:Shell ",)]
    assert "tool:shell" in " ".join(report.remarks)


def test_a_scene_is_joined_at_once_by_its_situation(memory, source):
    memory.import_from("homeagent", source)

    visit = memory.enter_scene(Situation.of(chan="qq", part="morning"))

    assert (visit.key, visit.created, visit.strength) == ("auto:chan:qq_part:morning", False, 273)


def test_the_mass_of_a_feature_is_its_share_of_its_kind_at_each_visit(memory, path, source):
    memory.import_from("homeagent", source)

    rows = sql(
        path,
        """SELECT feature, weight, mass, touched FROM scene_features f JOIN scenes s ON s.id = f.scene_id
           WHERE s.key = 'auto:chan:c3' ORDER BY feature""",
    )
    (scene,) = memory.scenes("auto:chan:c3")
    assert rows == [
        ("chan:c3", 1.0, scene.strength, scene.strength),
        ("part:night", 1.0, scene.strength, scene.strength),
    ]


def test_the_source_stays_byte_for_byte_as_it_is_and_nothing_is_beside_it(memory, source):
    before = hashlib.sha256(source.read_bytes()).digest(), sorted(source.parent.glob(f"{source.name}*"))

    memory.import_from("homeagent", source)

    assert (hashlib.sha256(source.read_bytes()).digest(), sorted(source.parent.glob(f"{source.name}*"))) == before


@pytest.mark.parametrize("is_dated", [True, False])
def test_a_second_import_changes_nothing(memory, path, source, clock, is_dated):
    if not is_dated:
        with writing(source) as connection:
            for table in ("scenes", "scene_refs", "situation_evidence"):
                for column in ("created_at", "updated_at", "decayed_at"):
                    if any(row[1] == column for row in connection.execute(f"PRAGMA table_info({table})")):
                        connection.execute(f"UPDATE {table} SET {column} = NULL")
    memory.import_from("homeagent", source)
    before = content(path)
    clock.advance(hours=1)

    report = memory.import_from("homeagent", source)

    assert report.added == 0
    assert all(count.changed == 0 for count in report.counts)
    assert content(path) == before


def test_a_rehearsal_tells_the_same_and_changes_nothing(memory, path, source):
    before = dump(path)
    told = memory.import_from("homeagent", source, dry_run=True)
    assert dump(path) == before

    done = memory.import_from("homeagent", source)

    assert (told.counts, told.merged, told.refused, told.remarks) == (
        done.counts,
        done.merged,
        done.refused,
        done.remarks,
    )
    assert (told.applied, done.applied) == (False, True)


def test_an_import_that_was_broken_off_goes_on(memory, path, source, clock, tmp_path):
    steps = []

    class BrokenOff(Exception):
        pass

    def stop_after(most):
        def progress(done, whole):
            steps.append((done, whole))
            if len(steps) > most:
                raise BrokenOff

        return progress

    for most in range(1, 6):
        steps.clear()
        with pytest.raises(BrokenOff):
            memory.import_from("homeagent", source, progress=stop_after(most))
    memory.import_from("homeagent", source)

    with Memory.open(tmp_path / "whole.db", clock=clock) as whole:
        whole.import_from("homeagent", source)
    assert content(path) == content(tmp_path / "whole.db")


def test_progress_ends_with_all_rows(memory, source):
    steps = []

    memory.import_from("homeagent", source, progress=lambda done, whole: steps.append((done, whole)))

    assert steps[0][0] == 0
    assert steps[-1][0] == steps[-1][1] > 0
    assert steps == sorted(steps)


def test_weights_and_clocks_are_kept(memory, path, source):
    with writing(source) as connection:
        connection.execute("UPDATE scene_refs SET weight = 0.37, decayed_at = '2026-08-03 04:05:06'")

    memory.import_from("homeagent", source)

    rows = sql(path, "SELECT DISTINCT weight, decayed_at FROM scene_refs")
    assert rows == [(0.37, "2026-08-03T04:05:06.000Z")]


def test_a_use_here_is_kept_when_the_source_is_taken_in_again(memory, source):
    memory.import_from("homeagent", source)
    memory.enter_scene(Situation.of(chan="qq", part="morning"))

    memory.import_from("homeagent", source)

    (chief,) = memory.scenes("auto:chan:qq_part:morning")
    assert (chief.strength, chief.visits) == (273, 273)


def test_what_was_deleted_here_does_not_come_back(memory, source):
    memory.import_from("homeagent", source)
    fact = memory.recall_by_scene("", limit=1).relations[0]
    memory.delete_relation(fact.id)

    memory.import_from("homeagent", source)

    assert memory.overview().relations == 299


def test_what_is_in_a_scene_is_not_for_everybody(memory, path, source):
    memory.import_from("homeagent", source)

    rows = sql(
        path,
        """SELECT DISTINCT e.openly, EXISTS (SELECT 1 FROM scene_refs r WHERE r.kind = 'relation'
               AND r.ref_id = e.relation_id) FROM evidence e ORDER BY 1""",
    )
    assert rows == [(0, 1), (1, 0)]


# ---- one by one


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.db"
    with writing(file) as connection:
        connection.executescript(fixture.SCENES + fixture.RELATIONS)
        connection.executescript(fixture.BLOCKS.replace("text_content TEXT DEFAULT '')", _BLOCK_COLUMNS))
        connection.execute("CREATE TABLE documents(id TEXT PRIMARY KEY, summary TEXT DEFAULT '', created_at TEXT)")
        connection.execute("INSERT INTO scenes(id, key, origin) VALUES (1, 'chan:qq', 'declared')")
    return file


_BLOCK_COLUMNS = (
    "text_content TEXT DEFAULT '', payload_digest TEXT DEFAULT '', mime TEXT DEFAULT '', size INTEGER DEFAULT 0, "
    "source TEXT DEFAULT '', scene TEXT DEFAULT '', created_at TEXT DEFAULT '2026-08-01 00:00:00')"
)


def fact(connection, subject, relation, object_, *, sentence="", status="active", confidence=1.0, session="s1"):
    for name in (subject, object_):
        connection.execute("INSERT OR IGNORE INTO entities(name) VALUES (?)", (name,))
    sentence_id = 0
    if sentence:
        connection.execute("INSERT OR IGNORE INTO sentences(text) VALUES (?)", (sentence,))
        (sentence_id,) = connection.execute("SELECT id FROM sentences WHERE text = ?", (sentence,)).fetchone()
    return connection.execute(
        """INSERT INTO relations(source_id, target_id, relation_type, status, confidence, session_id, sentence_id)
           SELECT a.id, b.id, ?, ?, ?, ?, ? FROM entities a, entities b WHERE a.name = ? AND b.name = ?""",
        (relation, status, confidence, session, sentence_id, subject, object_),
    ).lastrowid


def ref(connection, kind, *, ref_id=0, ref_text="", weight=1.0, scene=1):
    connection.execute(
        "INSERT INTO scene_refs(scene_id, kind, ref_id, ref_text, weight) VALUES (?, ?, ?, ?, ?)",
        (scene, kind, ref_id, ref_text, weight),
    )


def test_what_is_out_of_force_there_is_so_here(memory, path, small):
    with writing(small) as connection:
        fact(connection, "a", "is", "b", status="deleted")
        fact(connection, "a", "is", "c", status="archived")
        fact(connection, "a", "is", "d", status="deleted", session="s1")
        fact(connection, "a", "is", "d", status="active", session="s2")

    memory.import_from("homeagent", small)

    rows = sql(path, "SELECT b.name, r.status FROM relations r JOIN entities b ON b.id = r.target_id ORDER BY 1")
    assert rows == [("b", "deleted"), ("c", "archived"), ("d", "active")]
    assert sql(path, "SELECT COUNT(*) FROM evidence") == [(4,)]


def test_a_fact_of_several_sessions_is_one_with_all_that_was_said(memory, path, small):
    with writing(small) as connection:
        fact(connection, "Ann", "likes", "tea", sentence="Ann likes tea.", session="s1", confidence=0)
        fact(connection, "ann", "Likes", "Tea", sentence="She said tea.", session="s2", confidence=0.5)

    report = memory.import_from("homeagent", small)

    assert counts(report)["fact"] == (1, 1, 0, 0, 0)
    assert counts(report)["entity"] == (2, 2, 0, 0, 0)
    rows = sql(path, "SELECT e.session, s.text, e.source FROM evidence e JOIN sentences s ON s.id = e.sentence_id")
    assert rows == [("s1", "Ann likes tea.", "import:homeagent"), ("s2", "She said tea.", "import:homeagent")]


def test_a_scene_keeps_the_last_sentence_that_told_a_fact_there(memory, path, small):
    with writing(small) as connection:
        for session, sentence in (("s1", "First."), ("s2", "Last.")):
            ref(
                connection,
                "relation",
                ref_id=fact(connection, "Ann", "likes", "tea", sentence=sentence, session=session),
            )

    memory.import_from("homeagent", small)
    before = content(path)
    again = memory.import_from("homeagent", small)

    assert [fact.sentence for fact in memory.recall_by_scene("chan:qq").relations] == ["Last."]
    assert all(count.changed == 0 for count in again.counts)
    assert content(path) == before


def test_secrets_are_refused_in_names_and_taken_out_of_texts(memory, path, small):
    with writing(small) as connection:
        fact(connection, "bot", "token", SECRET)
        fact(connection, "bot", "runs on", "panel", sentence=f"Its token is {SECRET}.")
        connection.execute("INSERT INTO scenes(id, key) VALUES (2, ?)", (f"chan:{SECRET}",))
        connection.execute("INSERT INTO memory_blocks(id, modality, text_content) VALUES ('b', 'text', ?)", (SECRET,))

    report = memory.import_from("homeagent", small)

    assert {(each.what, "secret" in each.reason) for each in report.refused} == {
        ("fact", True), ("entity", True), ("scene", True),
    }  # fmt: skip
    assert SECRET[4:16] not in repr(report)
    assert SECRET[4:16] not in "\n".join(dump(path))


def test_what_only_a_refused_scene_held_is_not_for_everybody(memory, path, small):
    with writing(small) as connection:
        connection.execute("INSERT INTO scenes(id, key) VALUES (2, ?)", (f"chan:{SECRET}",))
        ref(connection, "relation", ref_id=fact(connection, "Ann", "likes", "tea"), scene=2)

    memory.import_from("homeagent", small)

    assert sql(path, "SELECT openly FROM evidence") == [(0,)]


def test_blocks_and_documents_come_with_their_scenes(memory, small):
    with writing(small) as connection:
        connection.execute("INSERT INTO memory_blocks(id, modality, text_content) VALUES ('t', 'text', '排班表')")
        connection.execute(
            "INSERT INTO memory_blocks(id, modality, payload_digest, mime, size)"
            " VALUES ('p', 'image', 'ab', 'image/png', 9)"
        )
        connection.execute("INSERT INTO documents VALUES ('d1', '一段对话', '2026-08-02 00:00:00')")
        connection.execute(
            "INSERT INTO memory_block_edges(source_kind, source_id, target_kind, target_id, edge_type)"
            " VALUES ('document', 'd1', 'block', 't', 'contains')"
        )
        for kind, text in (("block", "t"), ("block", "p"), ("document", "d1")):
            ref(connection, kind, ref_text=text, weight=0.5)

    report = memory.import_from("homeagent", small)

    found = memory.recall_by_scene("chan:qq")
    assert {(block.text, block.weight) for block in found.blocks} == {("[image/png, 9 bytes, p]", 0.5), ("排班表", 0.5)}
    (document,) = found.documents
    assert (document.summary, document.weight) == ("一段对话", 0.5)
    assert "blocks without their media: 1" in " ".join(report.remarks)
    assert memory.check().ok


def medium(connection, place, digest, *, text="", modality="image"):
    connection.execute(
        "INSERT INTO memory_blocks(id, modality, text_content, payload_digest, mime, size) VALUES (?, ?, ?, ?, ?, 9)",
        (place, modality, text, digest, f"{modality}/x"),
    )


def lay(small, payload, *, under=None):
    """Lay a payload where the engine has it; return its digest."""
    digest = hashlib.sha256(payload).hexdigest()
    file = small.parent / "media" / "blobs" / (under or digest)[:2] / (under or digest)[2:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(payload)
    return digest


def test_media_come_with_their_bytes(memory, path, small):
    payloads = [b"\x89PNG", b"mp4" * 100_000]
    with writing(small) as connection:
        medium(connection, "p", lay(small, payloads[0]), text="the plan")
        medium(connection, "v", lay(small, payloads[1]), modality="video")
        ref(connection, "block", ref_text="p", weight=0.5)

    before = dump(path)
    told = memory.import_from("homeagent", small, dry_run=True)
    assert (dump(path), Path(f"{path}.blobs").exists()) == (before, False)
    report = memory.import_from("homeagent", small)

    assert (counts(report), report.remarks, report.refused) == (counts(told), (), ())
    found = {modality: memory.block(block_id) for block_id, modality in sql(path, "SELECT id, modality FROM blocks")}
    assert [found[each].payload for each in ("image", "video")] == payloads
    assert (found["image"].text, found["image"].mime, found["image"].scenes) == ("the plan", "image/x", ("chan:qq",))
    assert memory.check().ok
    again = memory.import_from("homeagent", small)
    assert counts(again)["block"] == (0, 0, 0, 2, 0)


def test_media_that_are_not_what_the_database_says_stay_out(memory, small, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"from outside")
    with writing(small) as connection:
        medium(connection, "gone", hashlib.sha256(b"gone").hexdigest(), text="a lost one")
        medium(connection, "changed", "ab" * 32, text="another")
        lay(small, b"something else", under="ab" * 32)
        linked = lay(small, b"from outside")
        medium(connection, "linked", linked)
        medium(connection, "odd", "../../outside")
        medium(connection, "folder", "cd" * 32)
        (small.parent / "media" / "blobs" / "cd" / ("cd" * 31)).mkdir(parents=True)
    file = small.parent / "media" / "blobs" / linked[:2] / linked[2:]
    file.unlink()
    file.symlink_to(outside)

    report = memory.import_from("homeagent", small)

    assert {each.name for each in report.refused if each.what == "payload"} == {"changed", "linked", "odd", "folder"}
    assert "blocks without their media: 5" in " ".join(report.remarks)
    assert counts(report)["block"] == (5, 0, 0, 0, 0)
    assert memory.check().ok


def test_a_name_that_is_too_long_is_kept_as_a_text_in_its_scene(memory, small):
    with writing(small) as connection:
        connection.execute("INSERT INTO entities(id, name) VALUES (7, ?)", ("长" * 51,))
        ref(connection, "entity", ref_id=7)

    report = memory.import_from("homeagent", small)

    assert [block.text for block in memory.recall_by_scene("chan:qq").blocks] == ["长" * 51]
    assert "50 characters" in " ".join(report.remarks)


def test_refs_to_what_is_gone_are_told(memory, small):
    with writing(small) as connection:
        ref(connection, "relation", ref_id=99)
        ref(connection, "entity", ref_id=99)
        ref(connection, "block", ref_text="blk_gone")

    report = memory.import_from("homeagent", small)

    assert counts(report)["ref"] == (0, 0, 0, 0, 3)
    assert [each.name for each in report.refused] == ["relation 99", "entity 99", "block blk_gone"]


def test_an_edge_that_was_merged_tells_the_other_one_again(memory, tmp_path):
    file = tmp_path / "edges.db"
    with writing(file) as connection:
        connection.executescript(fixture.SCENES + fixture.BLOCKS)
        connection.execute("ALTER TABLE memory_block_edges ADD COLUMN merged_into TEXT DEFAULT ''")
        connection.execute("INSERT INTO scenes(id, key) VALUES (1, 'chan:qq')")
        connection.execute(
            "INSERT INTO memory_blocks VALUES ('x', 'text', 'x'), ('y', 'text', 'y'), ('z', 'text', 'z')"
        )
        for ends, status, into in ((("x", "y"), "merged", "2"), (("x", "z"), "active", "")):
            connection.execute(
                """INSERT INTO memory_block_edges(source_kind, source_id, target_kind, target_id, edge_type, status,
                       merged_into) VALUES ('block', ?, 'block', ?, 'is', ?, ?)""",
                (*ends, status, into),
            )
        ref(connection, "edge", ref_id=1, weight=0.4)

    memory.import_from("homeagent", file)

    (known,) = memory.recall_by_scene("chan:qq").relations
    assert (known.subject, known.relation, known.object, known.weight) == ("x", "is", "z", 0.4)
    assert memory.overview().relations_total == 1


def test_a_feature_whose_kind_makes_it_a_secret_stays_out(memory, path, small):
    with writing(small) as connection:
        connection.execute(
            "INSERT INTO scene_features(scene_id, feature, weight) VALUES (1, 'password:Tr0ub4dor1x', 1)"
        )

    report = memory.import_from("homeagent", small)

    assert [each.what for each in report.refused] == ["feature"]
    assert "Tr0ub4dor1x" not in repr(report)
    assert "tr0ub4dor1x" not in "\n".join(dump(path)).lower()


@pytest.mark.parametrize("strength", [2**63 - 1, 2**62])
def test_twins_of_any_strength_are_one_scene(memory, small, strength):
    with writing(small) as connection:
        for spelling in ("Chan:QQ", "chan:QQ"):
            connection.execute("INSERT INTO scenes(key, strength) VALUES (?, ?)", (spelling, strength))

    memory.import_from("homeagent", small)

    (scene,) = memory.scenes("chan:qq")
    assert 10**9 < scene.strength < 2**63 - 10**9


@pytest.mark.parametrize("into", ["9" * 30, "9" * 5000, "\u00b2", "x", b"1", None, "2"])
def test_an_edge_that_was_merged_into_nothing_that_there_is_is_told_as_it_is(memory, tmp_path, into):
    file = tmp_path / "edges.db"
    with writing(file) as connection:
        connection.executescript(fixture.SCENES + fixture.BLOCKS)
        connection.execute("ALTER TABLE memory_block_edges ADD COLUMN merged_into TEXT DEFAULT ''")
        connection.execute("INSERT INTO memory_blocks VALUES ('x', 'text', 'x'), ('y', 'text', 'y')")
        connection.execute(
            """INSERT INTO memory_block_edges(source_kind, source_id, target_kind, target_id, edge_type, status,
                   merged_into) VALUES ('block', 'x', 'block', 'y', 'is', 'merged', ?)""",
            (into,),
        )

    report = memory.import_from("homeagent", file)

    assert counts(report)["fact"][0] == 1


ODD = [None, b"\xff", 2**63 - 1, float("inf"), "a\0b", " "]


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:12])
def test_whatever_stands_in_a_column_ends_no_import(tmp_path, small, value):
    with writing(small) as connection:
        connection.executescript(
            """INSERT INTO scene_features(scene_id, feature, weight) VALUES (1, 'chan:qq', 1);
               INSERT INTO memory_blocks(id, modality, text_content) VALUES
                   ('m', 'text', 'words'), ('x', 'text', 'x'), ('y', 'text', 'y');
               INSERT INTO memory_block_edges(source_kind, source_id, target_kind, target_id, edge_type)
                   VALUES ('block', 'x', 'block', 'y', 'is'), ('document', 'd', 'block', 'm', 'has');
               INSERT INTO documents(id, summary) VALUES ('d', 'a talk')"""
        )
        fact(connection, "a", "is", "b", sentence="a is b")
        for kind, target in (("relation", 1), ("entity", 1), ("edge", 1)):
            ref(connection, kind, ref_id=target)
        ref(connection, "block", ref_text="m")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        places = [
            (table, column)
            for table in tables
            for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        ]
    with Memory.open(tmp_path / "memory.db") as memory:
        for number, (table, column) in enumerate(places):
            file = tmp_path / f"{number}.db"
            shutil.copy(small, file)
            with contextlib.suppress(sqlite3.IntegrityError), writing(file) as connection:
                connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
            memory.import_from("homeagent", file)
        assert memory.check().ok


def test_a_later_value_here_stays_when_an_older_one_is_taken_in(memory, small):  # TIM-03

    for place, at in (("Beijing", "2026-02-01"), ("Hangzhou", "2026-03-01")):
        memory.commit([Triple("Ann", "lives in", place, functional=True)], at=at)
    with writing(small) as connection:
        connection.execute("ALTER TABLE relations ADD COLUMN created_at TEXT")
        fact(connection, "Ann", "lives in", "Chengdu")
        connection.execute("UPDATE relations SET created_at = '2024-05-01 00:00:00'")

    memory.import_from("homeagent", small)

    assert [edge.object for edge in memory.neighbours("Ann", depth=1).relations] == ["Hangzhou"]


# ---- refusals


def test_what_is_no_store_is_refused_and_changes_nothing(memory, path, tmp_path):
    other = tmp_path / "other.db"
    with writing(other) as connection:
        connection.execute("CREATE TABLE t(x)")
    memory.commit([])
    before = dump(path)

    for bad, error in (
        (tmp_path / "missing.db", StoreFailed), (other, StoreFailed), (path, Conflict), (tmp_path, StoreFailed),
    ):  # fmt: skip
        with pytest.raises(error):
            memory.import_from("homeagent", bad)
    with pytest.raises(InvalidInput, match="kind"):
        memory.import_from("nonsense", other)
    assert dump(path) == before


def test_a_memory_of_our_own_is_refused(memory, tmp_path):
    Memory.open(tmp_path / "own.db").close()

    with pytest.raises(InvalidInput, match="memory of graphmem"):
        memory.import_from("homeagent", tmp_path / "own.db")


# ---- any store


KEYS = st.sampled_from(
    ["chan:qq", "chan:QQ", "chan:qq/peer:1", "chan:Café", "tool:a_b", "tool:a b", "auto:chan:qq+x", "auto:chan:qq_x"]
)
NAMES = st.sampled_from(["a", "A", "b", "ｂ", "老大", "c d", "c  d", "x" * 50])
WEIGHTS = st.floats(0.01, 1.0)


@st.composite
def stores(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    end = st.integers(0, len(names) - 1)
    relation = st.sampled_from(["is", "IS", "likes"])
    facts = draw(st.lists(st.tuples(end, relation, end, st.sampled_from(["s1", "s2"])), max_size=8))
    keys = draw(st.lists(KEYS, min_size=1, max_size=6, unique=True))
    scene = st.integers(1, len(keys))
    refs = draw(
        st.lists(st.tuples(scene, st.sampled_from(["relation", "entity"]), st.integers(1, 9), WEIGHTS), max_size=20)
    )
    return names, facts, keys, refs


@pytest.mark.parametrize("era", ERAS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(store=stores())
def test_every_live_ref_is_kept(era, store, tmp_path_factory):
    names, facts, keys, refs = store
    folder = tmp_path_factory.mktemp("any")
    file = folder / "source.db"
    with writing(file) as connection:
        connection.executescript(fixture.SCENES + (fixture.RELATIONS if era == "relations" else fixture.BLOCKS))
        for name in names:
            if era == "relations":
                connection.execute("INSERT INTO entities(name) VALUES (?)", (name,))
            else:
                connection.execute("INSERT INTO memory_blocks VALUES (?, 'text', ?)", (f"blk_ent_{name}", name))
        for subject, relation, object_, session in facts:
            if era == "relations":
                connection.execute(
                    "INSERT INTO relations(source_id, target_id, relation_type, session_id) VALUES (?, ?, ?, ?)",
                    (subject + 1, object_ + 1, relation, session),
                )
            else:
                connection.execute(
                    """INSERT INTO memory_block_edges(source_kind, source_id, target_kind, target_id, edge_type)
                       VALUES ('block', ?, 'block', ?, ?)""",
                    (f"blk_ent_{names[subject]}", f"blk_ent_{names[object_]}", relation),
                )
        connection.executemany("INSERT INTO scenes(key) VALUES (?)", [(key,) for key in keys])
        wanted = {}
        for scene, kind, number, weight in refs:
            if number > len(facts if kind == "relation" else names):
                continue
            if era == "relations":
                place = (kind, number, "")
            else:
                place = ("edge", number, "") if kind == "relation" else ("block", 0, f"blk_ent_{names[number - 1]}")
            connection.execute("INSERT OR IGNORE INTO scene_refs(scene_id, kind, ref_id, ref_text, weight)"
                               " VALUES (?, ?, ?, ?, ?)", (scene, *place, weight))  # fmt: skip
        for scene, kind, number, text, weight in connection.execute(
            "SELECT scene_id, kind, ref_id, ref_text, weight FROM scene_refs"
        ):
            if kind in ("relation", "edge"):
                subject, relation, object_, _ = facts[number - 1]
                what = ("relation", folded(names[subject]), relation.lower(), folded(names[object_]))
            else:
                what = ("entity", folded(names[number - 1] if kind == "entity" else text.removeprefix("blk_ent_")))
            key = normalize_key(keys[scene - 1])
            wanted[key, what] = max(weight, wanted.get((key, what), 0.0))

    with Memory.open(folder / "memory.db") as memory:
        memory.import_from("homeagent", file)
        again = memory.import_from("homeagent", file)
        assert again.added == 0
        assert memory.check().ok

    rows = sql(
        folder / "memory.db",
        """SELECT s.key, f.kind, f.weight, e.key, a.key, r.relation_key, b.key FROM scene_refs f
           JOIN scenes s ON s.id = f.scene_id
           LEFT JOIN entities e ON f.kind = 'entity' AND e.id = f.ref_id
           LEFT JOIN relations r ON f.kind = 'relation' AND r.id = f.ref_id
           LEFT JOIN entities a ON a.id = r.source_id LEFT JOIN entities b ON b.id = r.target_id""",
    )
    found = {
        (key, (kind, entity) if kind == "entity" else (kind, subject, relation, object_)): weight
        for key, kind, weight, entity, subject, relation, object_ in rows
    }
    assert found == wanted


def folded(name):
    return {"A": "a", "ｂ": "b", "c  d": "c d"}.get(name, name)


# ---- the store that the specification measured


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference store is made by a script outside of this project")
@pytest.mark.parametrize("era", ERAS)
def test_the_measured_store_comes_whole(memory, path, tmp_path, era):
    file = tmp_path / "reference.db"
    subprocess.run([sys.executable, REFERENCE, file, "--era", era], check=True, capture_output=True)

    steps = []

    report = memory.import_from("homeagent", file, progress=lambda done, whole: steps.append((done, whole)))

    assert steps[-1][0] == steps[-1][1]
    held = memory.overview()
    assert (held.scenes, held.relations, held.sentences, held.entities) == (57, 868, 868, 1179)
    assert counts(report)["ref"] == (773, 0, 0, 0, 2)
    assert sql(path, "SELECT COUNT(*) FROM scene_refs WHERE kind = 'relation' AND sentence_id IS NULL") == [(0,)]
    assert memory.recall_by_scene(["chan:qq"]).relations[0].subject == "QQ回复禁用Markdown格式"
