"""Check and repair: damage is told with table, row and remedy, and what follows from the rest is mended."""

import contextlib
import hashlib
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from support import another_process, assert_one_line_naming, plant, refusal, sql, text_index_of

from graphmem import Config, Conflict, Memory, Part, Situation, StoreBusy, StoreCorrupt, StoreFailed, Triple
from graphmem.upkeep import check as checks

HERE = Situation.of(chan="qq", peer="boss")
AT = "2026-09-01T00:00:00.000Z"
PICTURE = bytes(range(256)) * 400  # too large for a row
SHADOWS = ("data", "idx", "content", "docsize", "config")


def fill(memory):
    """A bit of everything, with operations of all kinds."""
    memory.commit([Triple("老大", "偏好", "纯文本", sentence="老大偏好纯文本。")], scenes=["chan:qq"], session="s1")
    memory.commit([Triple("panel", "port", "8328", sentence="The panel listens on 8328.")], scenes=["chan:web"])
    memory.remember("Deploy with npm", slot="deploy", labels=["部署"])
    memory.remember("Deploy with pnpm", slot="deploy")
    memory.mirror("s1", [Part(id="m1", author="boss", text="部署用什么？"), Part(id="m2", text="pnpm.")])
    memory.enter_scene(HERE)
    memory.enter_scene(HERE)
    memory.put_block("a rota", modality="image", payload=PICTURE, mime="image/png", scenes=["chan:qq"])
    memory.put_block("a dot", modality="image", payload=b"dot", mime="image/png")
    memory.put_document("A conversation about rotas.", scenes=["chan:qq"])
    memory.edit_relation(2, object="8329")
    memory.purge(relation="偏好")


@pytest.fixture
def filled(memory):
    fill(memory)
    return memory


def only(report):
    (problem,) = report.problems
    assert "\n" not in problem
    return problem


def blob_of(memory):
    ((digest,),) = sql(memory.path, "SELECT payload_digest FROM blocks WHERE payload IS NULL")
    return Path(f"{memory.path}.blobs", digest[:2], digest)


# ---- a sound memory


def test_a_memory_that_its_own_verbs_made_is_sound(filled):
    report = filled.check()

    assert (report.ok, report.problems, report.remarks) == (True, (), ())


def test_an_empty_memory_is_sound(memory):
    assert memory.check().ok
    assert memory.repair().mended == ()


def test_a_memory_without_a_file_is_sound():
    with Memory.open(":memory:") as memory:
        fill(memory)

        assert memory.check().ok
        assert memory.repair() == checks.repaired([], [], checks.Mended(), applied=True)


def test_a_memory_is_sound_after_each_undo(filled):
    for operation in filled.operations():
        filled.undo(operation.id)

        assert filled.check().problems == ()


@pytest.mark.sqlite
def test_the_sizes_of_all_parts_are_told(filled, path):  # GRO-01
    report = filled.check()

    ((pages,),) = sql(path, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
    assert report.sizes == {
        "database": pages,
        "-wal": Path(f"{path}-wal").stat().st_size,
        "payloads": len(PICTURE),
    }


@pytest.mark.sqlite
def test_nothing_is_written(filled, path):  # BAK-06
    filled._store.sync()
    files = [path, Path(f"{path}-wal")]
    before = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]

    filled.check()
    filled.repair(dry_run=True)

    assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in files] == before


@pytest.mark.sqlite
def test_a_locked_memory_is_busy(path):
    with (
        Memory.open(path, config=Config(busy_timeout=0.02)) as memory,
        another_process(path, "BEGIN IMMEDIATE"),
        pytest.raises(StoreBusy) as caught,
    ):
        memory.check()

    assert_one_line_naming(path, str(caught.value))


@pytest.mark.sqlite
def test_a_memory_without_log_is_told_with_its_file_system(path, monkeypatch):  # CON-07
    monkeypatch.setattr("graphmem.store.database._use_wal", lambda *_: None)
    with Memory.open(path) as memory:
        report = memory.check()

    (remark,) = report.remarks
    (kind,) = {line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines() if on(line, path)} & set(
        remark.replace("(", " ").replace(")", " ").split()
    )
    assert "no write-ahead log" in remark
    assert kind
    assert report.ok


def on(line, path):
    return path.is_relative_to(line.split()[1])


# ---- what is planted is told, and mended where it follows from the rest

LONG = "a" * 95 + "/b"
# What to plant, what the line names, and whether repair mends it.
DAMAGE = {
    "an orphan": (["DELETE FROM entities WHERE id = 1"], ["relations", "1", "entities", "restore"], False),
    "a ref to a fact that is gone": (
        [
            f"""INSERT INTO scene_refs(scene_id, kind, ref_id, decayed_at, created_at)
                VALUES (1, 'relation', 99, '{AT}', '{AT}')"""
        ],
        ["scene_refs", "relation", "repair"],
        True,
    ),
    "a ref to a block that is gone": (
        [
            f"""INSERT INTO scene_refs(scene_id, kind, ref_text, decayed_at, created_at)
                VALUES (1, 'block', 'blk_none', '{AT}', '{AT}')"""
        ],
        ["scene_refs", "block", "repair"],
        True,
    ),
    "a twin": (
        [f"INSERT INTO scenes(key, origin, created_at, updated_at) VALUES ('chan:QQ', 'declared', '{AT}', '{AT}')"],
        ["scenes", "'chan:QQ'", "repair"],
        True,
    ),
    "a scene without a key": (
        [f"INSERT INTO scenes(key, origin, created_at, updated_at) VALUES ('/', 'declared', '{AT}', '{AT}')"],
        ["scenes", "'/'", "repair", "drops"],
        True,
    ),
    "a scene whose key is too long": (
        [f"INSERT INTO scenes(key, origin, created_at, updated_at) VALUES ('{LONG}', 'declared', '{AT}', '{AT}')"],
        ["scenes", "96 bytes", "restore"],
        False,
    ),
    "an entity under no key": (
        [f"INSERT INTO entities(name, key, created_at, updated_at) VALUES ('Ｘ', 'Ｘ', '{AT}', '{AT}')"],
        ["entities", "'Ｘ'", "merge"],
        False,
    ),
    "an alias under no key": (
        ["INSERT INTO entity_aliases VALUES ('Boss', 1)"],
        ["entity_aliases", "'Boss'", "restore"],
        False,
    ),
    "a loop of entities": (
        ["INSERT INTO entity_aliases SELECT 'panel', id FROM entities WHERE key = '8328'"],
        ["entity_aliases", "'panel'", "repair"],
        True,
    ),
    "a loop of scenes": (
        ["INSERT INTO scene_aliases SELECT 'chan:qq', id FROM scenes WHERE key = 'chan:web'"],
        ["scene_aliases", "'chan:qq'", "repair"],
        True,
    ),
    "a summary that is no JSON": (
        ["UPDATE operations SET summary = '{' WHERE id = 1"],
        ["operations", "1", "restore"],
        False,
    ),
    "an image that is no JSON": (
        ["UPDATE operation_rows SET before = 'x' WHERE operation_id = 1 AND seq = 0"],
        ["operation_rows", "operation 1", "restore"],
        False,
    ),
    "an image of no table": (
        ["UPDATE operation_rows SET name = 'songs' WHERE operation_id = 1 AND seq = 0"],
        ["operation_rows", "operation 1", "restore"],
        False,
    ),
    "a count of parts": (["UPDATE sessions SET parts = 7"], ["sessions", "row 1", "repair"], True),
    "a length of a session": (["UPDATE sessions SET length = 7"], ["sessions", "row 1", "repair"], True),
    "a count of texts": (
        ["UPDATE text_sizes SET tokens = tokens + 1 WHERE kind = 5"],
        ["text_sizes", "part", "repair"],
        True,
    ),
    "a feature that leads nowhere": (
        ["UPDATE scene_features SET posted = NULL"],
        ["scene_features", "scene", "posted", "repair"],
        True,
    ),
    "counts that are gone": (["DELETE FROM text_sizes WHERE kind = 5"], ["text_sizes", "part", "repair"], True),
    "a text behind the index's back": (
        ["UPDATE notes SET body = 'of a foreign program' WHERE id = 1"],
        ["text_index", "note", "1", "repair"],
        True,
    ),
    "a payload in its row": (
        ["UPDATE blocks SET payload = CAST('tod' AS BLOB) WHERE payload IS NOT NULL"],
        ["blocks", "blk_", "damaged", "restore"],
        False,
    ),
}


@pytest.mark.parametrize(("planted", "named", "mended"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_planted_is_told_and_mended_where_it_can_be(filled, planted, named, mended):  # MRG-04, MRG-07
    plant(filled.path, *planted)

    report = filled.check()
    problem = next(line for line in report.problems if line.startswith(named[0]))
    dry = filled.repair(dry_run=True)
    after_dry = filled.check()
    real = filled.repair()
    after = filled.check()

    assert not report.ok
    assert [word for word in named if word not in problem] == []
    assert after_dry == report
    assert (dry.mended, dry.left) == (real.mended, real.left)
    assert (dry.applied, real.applied, dry.operations) == (False, True, ())
    assert len(real.mended) + len(real.left) == len(report.problems)
    assert (problem not in real.left) == mended
    assert all("repair" not in line for line in real.mended)
    assert after.problems == real.left
    assert filled.repair().mended == ()


def test_repair_tells_what_it_did_with_twins(filled):
    scene = f"INSERT INTO scenes(key, origin, created_at, updated_at) VALUES ('%s', 'declared', '{AT}', '{AT}')"
    plant(filled.path, scene % "chan:QQ", scene % "CHAN:qq ", scene % "Chan:alone")

    assert filled.repair(dry_run=True).mended[-2:] == (
        "3 scenes merged into 'chan:qq'",
        "the scene 'Chan:alone' has the key 'chan:alone' now",
    )


@pytest.mark.parametrize("key", ["", " / "])
def test_a_scene_that_nothing_can_name_is_dropped_and_comes_back_by_undo(filled, key):
    plant(filled.path, f"UPDATE scenes SET key = '{key}' WHERE key = 'chan:web'")
    held = sql(filled.path, "SELECT * FROM scenes s JOIN scene_refs r ON r.scene_id = s.id ORDER BY s.id, r.id")

    report = filled.repair()

    assert ([line.split(",")[0] for line in report.mended].count("scenes"), report.left) == (1, ())
    assert sql(filled.path, "SELECT key FROM scenes WHERE key = ?", key) == []
    filled.undo(*report.operations)
    assert sql(filled.path, "SELECT * FROM scenes s JOIN scene_refs r ON r.scene_id = s.id ORDER BY s.id, r.id") == held


def test_what_repair_removes_comes_back_by_undo(filled):
    plant(filled.path, *DAMAGE["a twin"][0], *DAMAGE["a ref to a fact that is gone"][0])

    report = filled.repair()

    assert [operation.kind for operation in filled.operations(limit=2)] == ["repair", "dedupe"]
    assert filled.check().ok
    filled.undo(report.operations[0])
    assert [line.split(",")[0] for line in filled.check().problems] == ["scenes"]


def test_a_loop_does_not_come_back_by_undo(filled):
    plant(filled.path, *DAMAGE["a loop of scenes"][0])

    (operation,) = filled.repair().operations

    with pytest.raises(Conflict, match="which was an alias"):
        filled.undo(operation)
    assert filled.check().ok


def test_the_journal_of_a_repair_holds_numbers_alone(filled):
    plant(filled.path, *DAMAGE["a loop of entities"][0], *DAMAGE["a ref to a fact that is gone"][0])

    filled.repair()

    assert filled.operations(limit=1)[0].summary == {"refs": 1, "aliases": 1}


def test_many_rows_are_one_line(filled, path):
    refs = ", ".join(f"(1, 'relation', {1000 + n}, '{AT}', '{AT}')" for n in range(50))
    plant(filled.path, f"INSERT INTO scene_refs(scene_id, kind, ref_id, decayed_at, created_at) VALUES {refs}")

    assert "and 40 more" in only(filled.check())


def test_a_loop_is_an_error_for_who_asks_for_the_name(filled):  # MRG-04
    plant(filled.path, *DAMAGE["a loop of entities"][0])

    with pytest.raises(StoreCorrupt, match="repair") as caught:
        filled.graph(entity="panel")
    filled.repair()

    assert "\n" not in str(caught.value)
    assert filled.graph(entity="panel").number_of_nodes() > 1


@pytest.mark.sqlite
def test_a_payload_file_that_is_lost_is_told(filled):
    file = blob_of(filled)
    file.unlink()
    missing = only(filled.check())
    file.write_bytes(b"x" * len(PICTURE))
    damaged = only(filled.check())

    assert "missing" in missing
    assert "damaged" in damaged
    assert filled.repair().left == (damaged,)


@pytest.mark.sqlite
def test_a_block_that_is_deleted_meanwhile_is_no_problem(filled, monkeypatch):
    ((block,),) = sql(filled.path, "SELECT id FROM blocks WHERE payload IS NULL")
    looked = checks.find

    def look_while_it_is_deleted(tx, path):
        tx.execute("SELECT COUNT(*) FROM blocks").fetchone()
        with Memory.open(path) as other:
            other.delete_block(block)
        return looked(tx, path)

    monkeypatch.setattr(checks, "find", look_while_it_is_deleted)

    assert filled.check().problems == ()


@pytest.mark.sqlite
def test_a_payload_file_that_no_block_names_is_no_problem(filled):
    digest = "ab" * 32
    file = Path(f"{filled.path}.blobs", digest[:2], digest)
    file.parent.mkdir()
    file.write_bytes(b"12345")

    report = filled.check()

    assert report.ok
    (remark,) = report.remarks
    assert "1 files (5 bytes)" in remark


def add_behind_the_index(path):
    """Add facts while an index seems to hold none, as the sentences of a half-lost write would stand."""
    ((index,),) = sql(path, "SELECT sql FROM sqlite_master WHERE name = 'evidence_relation'")
    for statement in (
        f"UPDATE sqlite_master SET sql = '{index} WHERE 0' WHERE name = 'evidence_relation'",
        f"INSERT INTO evidence(relation_id, source_key, target_key, at) VALUES (2, 'a', 'b', '{AT}')",
        f"UPDATE sqlite_master SET sql = '{index}' WHERE name = 'evidence_relation'",
    ):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
        connection.close()


@pytest.mark.sqlite
def test_an_index_that_lacks_rows_is_made_anew(path, clock):
    with Memory.open(path, clock=clock) as memory:
        fill(memory)
    add_behind_the_index(path)

    with Memory.open(path, clock=clock) as memory:
        report = memory.check()
        repaired = memory.repair()

        assert any("index evidence_relation" in line and "repair" in line for line in report.problems)
        assert any("index evidence_relation" in line for line in repaired.mended)
        assert not any("index evidence_relation" in line for line in memory.check().problems)


# ---- the text index (SCH-04)


@pytest.mark.parametrize("part", SHADOWS)
@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.sqlite
def test_a_damaged_text_index_is_told_and_healed_and_facts_stay_readable(path, clock, part, reopened):  # SCH-04
    with Memory.open(path, clock=clock) as memory:
        fill(memory)
        memory.mirror("s2", [Part(id=f"m{n}", text=f"word{n} token{n} term{n} name{n}") for n in range(500)])
        good = text_index_of(path)
        if not reopened:
            plant(memory.path, f"DELETE FROM text_index_{part}")
            assert_heals(memory, good)
    if reopened:
        sql(path, f"DELETE FROM text_index_{part}")
        with Memory.open(path, clock=clock) as memory:
            assert_heals(memory, good)


def assert_heals(memory, good):
    assert memory.recall_by_scene("chan:web").relations[0].object == "8329"
    report = memory.check()
    assert report.problems
    assert all("'graphmem repair'" in problem for problem in report.problems)
    before = dump_of_shadows(memory.path)
    assert memory.repair(dry_run=True).left == ()
    assert dump_of_shadows(memory.path) == before

    assert memory.repair().left == ()

    assert memory.check().problems == ()
    assert text_index_of(memory.path) == good
    assert "8329" in memory.recall("8329")[0].text


def dump_of_shadows(path):
    return [sql(path, f"SELECT * FROM text_index_{part}") for part in SHADOWS]


@pytest.mark.sqlite
def test_a_text_that_was_changed_in_the_index_is_told(filled, path):
    sql(path, "UPDATE text_index_content SET c2 = ' other  words ' WHERE c2 LIKE '% listen %'")

    report = filled.check()

    assert [line.split(":")[0] for line in report.problems] == ["text_index", "text_index, sentence 2"]
    filled.repair()
    assert filled.check().ok


# ---- copies


@pytest.mark.sqlite
def test_a_backup_is_checked_and_not_touched(filled, path):  # BAK-06
    dest = path.with_name("copy.db")
    filled.backup(dest)
    before = folder_state(path.parent, "copy.db")

    report = Memory.check_copy(dest)

    assert (report.ok, report.remarks) == (True, ())
    assert report.sizes == {"database": dest.stat().st_size, "-wal": 0, "payloads": len(PICTURE)}
    assert folder_state(path.parent, "copy.db") == before


def folder_state(folder, start):
    return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir() if file.name == start}


@pytest.mark.sqlite
def test_damage_in_a_backup_is_told(filled, path):
    dest = path.with_name("copy.db")
    filled.backup(dest)
    sql(dest, "UPDATE sessions SET parts = 9")
    sql(dest, "DELETE FROM text_index_data WHERE id > 10")
    shutil.rmtree(f"{dest}.blobs")

    report = Memory.check_copy(dest)

    assert [any(line.startswith(start) for line in report.problems) for start in ("sessions", "text_index", "blocks")]
    assert len(report.problems) == 3


@pytest.mark.sqlite
def test_a_copy_with_its_log_is_checked_with_it(tmp_path, path):
    with Memory.open(path) as memory:
        memory.declare_scene("chan:qq")
        memory._store.sync()
        plant(memory.path, *DAMAGE["a loop of scenes"][0][:0], "INSERT INTO scene_aliases VALUES ('chan:qq', 1)")
        for side in ("", "-wal"):
            shutil.copyfile(f"{path}{side}", tmp_path / f"copy.db{side}")

    report = Memory.check_copy(tmp_path / "copy.db")

    assert only(report).startswith("scene_aliases")
    assert any("-wal" in remark for remark in report.remarks)


@pytest.mark.sqlite
def test_a_memory_that_is_open_is_no_copy(memory, path):
    with pytest.raises(Conflict, match="open in this process"):
        Memory.check_copy(path)


def test_what_is_no_memory_cannot_be_checked(tmp_path):
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    sql(other, "CREATE TABLE songs(title)")
    text.write_text("no database" * 100)

    assert refusal(lambda: Memory.check_copy(other))[0] == "StoreFailed"
    assert refusal(lambda: Memory.check_copy(text))[0] == "StoreCorrupt"


@pytest.mark.sqlite
def test_a_newer_copy_is_refused(filled, path):  # SCH-01
    dest = path.with_name("copy.db")
    filled.backup(dest)
    sql(dest, "PRAGMA user_version = 99")

    assert refusal(lambda: Memory.check_copy(dest))[0] == "SchemaTooNew"


@pytest.mark.sqlite
def test_a_file_tells_its_schema_and_its_trees_and_is_not_touched(path, tmp_path):
    with Memory.open(path) as memory:
        for title in ("Tea at four", "Salt"):
            memory.remember(title)
        memory.export_tree(tmp_path / "tree")
        memory.edit_note(1, title="Tea at five")
        file = tmp_path / "tree/facts/tea-at-four.md"
        file.write_text(file.read_text("utf-8").replace("four", "six"), "utf-8")
        memory.sync_tree(tmp_path / "tree")
    before = folder_state(path.parent, path.name)

    state = Memory.file_state(path)

    (tree,) = state.trees
    assert (state.schema, state.is_current) == (sql(path, "PRAGMA user_version")[0][0], True)
    assert (tree.root, tree.scope, tree.form) == (str(tmp_path / "tree"), "", "notes")
    assert tree.conflicts == ("facts/tea-at-four.md",)
    assert folder_state(path.parent, path.name) == before


@pytest.mark.sqlite
def test_a_file_of_an_older_graphmem_tells_no_trees(path):
    Memory.open(path).close()
    sql(path, "PRAGMA user_version = 9")

    state = Memory.file_state(path)

    assert (state.schema, state.is_current, state.trees) == (9, False, ())


@pytest.mark.sqlite
def test_what_is_no_memory_has_no_state(memory, path, tmp_path):
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    sql(other, "CREATE TABLE songs(title)")
    text.write_text("no database" * 100)

    for file, kind in ((other, "StoreFailed"), (text, "StoreCorrupt"), (path, "Conflict")):
        assert refusal(lambda file=file: Memory.file_state(file))[0] == kind


@pytest.mark.sqlite
def test_pages_that_are_damaged_are_told_or_refused(path):
    with Memory.open(path) as memory:
        fill(memory)
        (root,) = memory._store._writer.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'scene_features'"
        ).fetchone()
        (size,) = memory._store._writer.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as stream:
        stream.seek((root - 1) * size)
        stream.write(b"\xff" * size)

    with Memory.open(path) as memory:
        report = memory.check()
        with pytest.raises(StoreCorrupt, match="restore a backup") as caught:
            memory.repair()

    assert any("restore a backup" in problem for problem in report.problems)
    assert_one_line_naming(path, str(caught.value))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sqlite
def test_flipped_bytes_are_damage_and_a_restore_mends_it(path, tmp_path, seed):
    rng = random.Random(seed)
    backup = tmp_path / "backup.db"
    with Memory.open(path) as memory:
        for number in range(60):
            memory.commit([Triple(f"东西 {number}", "是", f"值 {number}", sentence=f"说了 {number}")], scenes="chan:qq")
        memory.backup(backup)
    content = bytearray(path.read_bytes())
    for _ in range(300):
        content[rng.randrange(4096, len(content))] ^= rng.randrange(1, 256)
    path.write_bytes(content)

    def look():
        with Memory.open(path) as memory:
            assert not memory.check().ok

    with contextlib.suppress(StoreCorrupt, StoreFailed):
        look()
    Memory.restore(backup, path)

    with Memory.open(path) as memory:
        assert memory.check().ok
        assert memory.overview().relations == 60
