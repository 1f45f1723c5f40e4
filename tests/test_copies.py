"""Reading files without touching them: backup copies, live files of other processes, files of the reference engine."""

import contextlib
import dataclasses
import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest
from support import another_process, assert_one_line_naming, refusal, unprivileged

from graphmem import Conflict, GraphmemError, InvalidInput, Memory, Situation, StoreCorrupt, StoreFailed, Triple
from graphmem.store import copies
from graphmem.store.copies import open_copy

NOBODY = 65534
TEMP = tempfile.gettempdir()
NAMES = ["a b.db", "50%.db", "a%20b.db", "a#b.db", "a?mode=rw.db", "记忆 备份.db", "a&b=c;d.db", "file:x.db", "-wal"]

SCENES = """
    CREATE TABLE scenes(
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, strength INTEGER DEFAULT 1,{origin}
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP, updated_at DATETIME DEFAULT CURRENT_TIMESTAMP);
    CREATE TABLE scene_features(
        id INTEGER PRIMARY KEY AUTOINCREMENT, scene_id INTEGER NOT NULL, feature TEXT NOT NULL, weight REAL DEFAULT 1.0,
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE(scene_id, feature));
    CREATE TABLE scene_refs(
        id INTEGER PRIMARY KEY AUTOINCREMENT, scene_id INTEGER NOT NULL, kind TEXT NOT NULL, ref_id INTEGER DEFAULT 0,
        {ref_text} weight REAL DEFAULT 1.0, decayed_at DATETIME DEFAULT CURRENT_TIMESTAMP,
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE(scene_id, kind, ref_id{unique}));
    CREATE TABLE situation_evidence(label TEXT PRIMARY KEY, count INTEGER DEFAULT 1, updated_at DATETIME);
"""
RELATIONS_ERA = """
    CREATE TABLE entities(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, type TEXT DEFAULT 'Concept');
    CREATE TABLE relations(
        id INTEGER PRIMARY KEY AUTOINCREMENT, source_id INTEGER NOT NULL REFERENCES entities(id),
        target_id INTEGER NOT NULL REFERENCES entities(id), relation_type TEXT NOT NULL, session_id TEXT,
        UNIQUE(source_id, target_id, relation_type, session_id));
    INSERT INTO entities(name) VALUES ('老大'), ('纯文本');
    INSERT INTO relations(source_id, target_id, relation_type) VALUES (1, 2, '偏好');
"""
BLOCK_ERA = """
    CREATE TABLE memory_blocks(id TEXT PRIMARY KEY, modality TEXT NOT NULL, text_content TEXT DEFAULT '');
    CREATE TABLE memory_block_edges(
        id INTEGER PRIMARY KEY AUTOINCREMENT, source_kind TEXT NOT NULL, source_id TEXT NOT NULL,
        target_kind TEXT NOT NULL, target_id TEXT NOT NULL, edge_type TEXT NOT NULL);
    INSERT INTO memory_blocks(id, modality) VALUES ('blk_ent_1', 'text'), ('blk_ent_2', 'text');
"""
TWINS = """
    INSERT INTO scenes(id, key, strength) VALUES
        (1, 'auto:chan:qq+part:morning', 271), (2, 'auto:chan:qq_part:morning', 1), (3, 'chan:webui', 5),
        (4, 'chan:Context_Archived', 4), (5, 'chan:context_archived', 2), (6, 'chan:Mail Bridge', 3);
    INSERT INTO scene_features(scene_id, feature, weight) VALUES
        (1, 'chan:qq', 1.0), (1, 'part:morning', 0.2), (3, 'chan:webui', 1.0), (4, 'chan:context_archived', 1.0);
    INSERT INTO scene_refs(scene_id, kind, ref_id, weight) VALUES
        (2, '{fact}', 1, 0.9), (2, '{fact}', 2, 0.9), (4, '{fact}', 1, 0.5),
        (5, '{fact}', 1, 0.7), (5, '{fact}', 3, 0.7);
"""
# Without ref_text there is room for one block a scene.
BLOCK_REFS = """
    INSERT INTO scene_refs(scene_id, kind, ref_text) VALUES
        (2, 'block', 'blk_ent_1'), (2, 'block', 'blk_ent_2'), (4, 'block', 'blk_ent_1'), (5, 'block', 'blk_ent_1');
"""


def build_reference(connection, *, era="relations", origin=True, ref_text=True):
    """Six scenes in three spellings too many: two pairs of twins, and a lone key that is not canonical."""
    connection.executescript(
        SCENES.format(
            origin=" origin TEXT NOT NULL DEFAULT 'emergent'," if origin else "",
            ref_text="ref_text TEXT NOT NULL DEFAULT ''," if ref_text else "",
            unique=", ref_text" if ref_text else "",
        )
        + (RELATIONS_ERA if era == "relations" else BLOCK_ERA)
        + TWINS.format(fact="relation" if era == "relations" else "edge")
        + (BLOCK_REFS if ref_text else "")
    )


def connect(path):
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))


def reference(path, *, wal=False, **shape):
    """A backup copy of a reference file; with wal=True one that was taken while the engine had it open."""
    source = path.with_name("source.db")
    with connect(source) as connection:
        connection.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
        build_reference(connection, **shape)
        shutil.copyfile(source, path)
        if wal:
            shutil.copyfile(f"{source}-wal", f"{path}-wal")
    source.unlink()


def graphmem_file(path):
    with Memory.open(path) as memory:
        memory.commit([Triple("老大", "偏好", "纯文本")], scenes=["chan:qq"])
        memory.enter_scene(Situation.of(chan="qq"))
        memory.enter_scene(Situation.of(chan="qq"))
        with memory._store.write() as tx:
            tx.execute(
                """INSERT INTO scenes(key, strength, origin, created_at, updated_at)
                   VALUES ('chan:QQ', 3, 'declared', '2026-09-01T00:00:00.000Z', '2026-09-01T00:00:00.000Z')"""
            )
            tx.execute(
                """INSERT INTO scene_refs(scene_id, kind, ref_id, decayed_at, created_at)
                   SELECT id, 'relation', 1, created_at, created_at FROM scenes WHERE key = 'chan:QQ'"""
            )


def crashed(path):
    """A graphmem file whose process died: two scenes in the file, a third one in its -wal."""
    graphmem_process(path, "memory.declare_scene('chan:c'), os._exit(0)", "memory.declare_scene('chan:a')")


def graphmem_process(path, *codes):
    script = "import os, sys\nfrom graphmem import *\n"
    for code in codes[::-1]:
        script += f"with Memory.open(sys.argv[1]) as memory:\n    {code}\n"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def hot_journal(path):
    """A reference file in the middle of a transaction that spilled into it: only the journal can undo that."""
    source = path.with_name("source.db")
    with connect(source) as connection:
        build_reference(connection)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM scenes")
        connection.execute("CREATE TABLE filler(text TEXT)")
        connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 3000,)] * 100)
        shutil.copyfile(source, path)
        shutil.copyfile(f"{source}-journal", f"{path}-journal")
        connection.execute("ROLLBACK")
    source.unlink()


MODES = {
    "graphmem, closed": graphmem_file,
    "graphmem, crashed": crashed,
    "reference": reference,
    "reference with -wal": lambda path: reference(path, wal=True),
    "block era": lambda path: reference(path, era="block"),
    "block era with -wal": lambda path: reference(path, era="block", wal=True),
    "without origin": lambda path: reference(path, origin=False),
    "without ref_text": lambda path: reference(path, ref_text=False),
    "without both, with -wal": lambda path: reference(path, origin=False, ref_text=False, wal=True),
    "hot journal": hot_journal,
}
REFERENCES = [name for name in MODES if not name.startswith("graphmem")]


@pytest.fixture(autouse=True)
def private_temp(tmp_path, monkeypatch):
    """A temporary folder of our own, that must be empty in the end (BAK-06)."""
    folder = tmp_path / "private temp"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "backups"
    made.mkdir()
    return made


@pytest.fixture
def path(folder):
    return folder / "memory.db"


@contextlib.contextmanager
def untouched(folder):
    """Assert that a block changes neither names, bytes, times nor permissions in a folder (BAK-06)."""
    before = folder_state(folder)
    yield
    assert folder_state(folder) == before


def folder_state(folder):
    state = {}
    for file in [folder, *sorted(folder.rglob("*"))]:
        status = file.lstat()
        readable = stat.S_ISREG(status.st_mode) and os.access(file, os.R_OK)
        content = hashlib.sha256(file.read_bytes()).hexdigest() if readable else ""
        state[str(file)] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return state


def count_scenes(path):
    with open_copy(path) as copy:
        return copy.connection.execute("SELECT COUNT(*) FROM scenes").fetchone()[0]


@pytest.fixture
def public_folder(monkeypatch, private_temp):
    """A folder that every user may enter, with a temporary folder for them; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(dir=TEMP) as name:
        Path(name).chmod(0o755)
        temp, made = Path(name) / "temp", Path(name) / "backups"
        for folder in (temp, made):
            folder.mkdir()
            folder.chmod(0o777)
        monkeypatch.setenv("TMPDIR", str(temp))
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield made
        assert list(temp.iterdir()) == []
        made.chmod(0o777)


# ---- what is read


@pytest.mark.parametrize("mode", REFERENCES)
def test_a_reference_file_is_read_in_every_shape(path, mode):
    MODES[mode](path)

    report = Memory.preview_dedupe(path)

    blocks = 0 if mode in ("without ref_text", "without both, with -wal") else 1
    assert [(group.key, group.strength, group.features) for group in report.groups] == [
        ("auto:chan:qq_part:morning", 272, 2),
        ("chan:context_archived", 6, 1),
    ]
    assert [(group.refs_moved, group.refs_folded, group.refs) for group in report.groups] == [
        (2 + 2 * blocks, 0, 2 + 2 * blocks),
        (1, 1 + blocks, 2 + blocks),
    ]
    assert report.rewritten == (("chan:Mail Bridge", "chan:mail_bridge"),)
    assert (report.merged, report.scenes_before, report.scenes_after) == (2, 6, 4)
    assert not report.applied
    assert report.operation is None


@pytest.mark.parametrize(("origin", "expected"), [(True, "emergent"), (False, "declared")])
def test_scenes_from_before_origin_are_declared(path, origin, expected):
    reference(path, origin=origin)

    archived = Memory.preview_dedupe(path).groups[1]

    assert archived.origin == expected
    assert {twin.origin for twin in archived.members} == {expected}


def test_a_preview_tells_the_numbers_of_the_real_run(path):  # DUP-08, BAK-06
    graphmem_file(path)
    preview = Memory.preview_dedupe(path)
    with Memory.open(path) as memory:
        dry = memory.dedupe_scenes(dry_run=True)
        real = memory.dedupe_scenes()

    assert (preview.merged, preview.groups[0].strength, preview.groups[0].refs_folded) == (1, 4, 1)
    assert dataclasses.replace(preview, remarks=()) == dry
    assert dataclasses.replace(real, applied=False, operation=None) == dry


@pytest.mark.parametrize("mode", MODES)
def test_not_a_byte_changes_in_any_mode(folder, path, mode):  # BAK-06
    MODES[mode](path)

    with untouched(folder):
        assert Memory.preview_dedupe(path).scenes_before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wal", [False, True])
def test_a_name_is_taken_as_it_is(folder, name, wal):
    path = folder / "%41 排班?#" / name
    path.parent.mkdir()
    reference(path, wal=wal)

    with untouched(folder):
        assert Memory.preview_dedupe(path).scenes_before == 6


def test_a_relative_name_and_a_text_are_read(folder, path, monkeypatch):
    reference(path, wal=True)
    monkeypatch.chdir(folder)

    assert Memory.preview_dedupe("memory.db").scenes_before == 6


def test_a_file_of_another_process_is_read_with_its_wal(folder, path):
    graphmem_file(path)
    copy_scene = "INSERT INTO scenes(key, origin, created_at, updated_at) SELECT '{}', origin, created_at, created_at"
    insert = copy_scene + " FROM scenes LIMIT 1"
    before = count_scenes(path)

    with (
        another_process(path, insert.format("chan:new"), "BEGIN IMMEDIATE", insert.format("chan:open")),
        untouched(folder),
    ):
        assert Memory.preview_dedupe(path).scenes_before == before + 1


def test_a_live_file_behind_a_link_is_read_with_its_wal(folder, path):
    """SQLite keeps the -wal beside the file, not beside the link."""
    link = folder / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    crashed(path)
    with_wal = Memory.preview_dedupe(path)

    with untouched(folder):
        assert Memory.preview_dedupe(link).scenes_before == with_wal.scenes_before


def test_a_hot_journal_is_undone_in_the_copy(folder, path):
    hot_journal(path)
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as without_journal:
        assert without_journal.execute("SELECT COUNT(*) FROM scenes").fetchone()[0] == 0

    with untouched(folder), open_copy(path) as copy:
        tables = {name for (name,) in copy.connection.execute("SELECT name FROM sqlite_master")}
        assert "filler" not in tables
        assert any("memory.db-journal" in remark for remark in copy.remarks)


@pytest.mark.parametrize("mode", ["reference", "reference with -wal"])
def test_a_copy_cannot_be_written(folder, path, mode):
    MODES[mode](path)

    with untouched(folder), pytest.raises(StoreFailed), open_copy(path) as copy:
        copy.connection.execute("DELETE FROM scenes")


def test_the_private_folder_is_the_owners_and_goes_with_the_block(path, private_temp):
    reference(path, wal=True)

    def fail_in_the_block():
        with open_copy(path):
            (made,) = private_temp.iterdir()
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_the_block()
    assert list(private_temp.iterdir()) == []


# ---- with and without the write-ahead log (BAK-04)


def test_with_and_without_its_wal_a_copy_counts_differently(folder, path):  # BAK-04
    crashed(path)
    with_wal = Memory.preview_dedupe(path)
    path.with_name("memory.db-wal").unlink()
    path.with_name("memory.db-shm").unlink()

    with untouched(folder):
        without = Memory.preview_dedupe(path)

    assert (with_wal.scenes_before, without.scenes_before) == (2, 1)
    assert any("memory.db-wal" in remark and "read" in remark for remark in with_wal.remarks)
    assert any("memory.db-wal" in remark and "no " in remark for remark in without.remarks)


def test_an_empty_wal_is_as_none(folder, path):
    graphmem_file(path)
    path.with_name("memory.db-wal").touch()

    with untouched(folder):
        report = Memory.preview_dedupe(path)

    assert report.scenes_before == 3
    assert any("memory.db-wal" in remark for remark in report.remarks)


def test_a_wal_that_does_not_belong_is_named(folder, path):  # BAK-04
    reference(path)
    other = folder / "other.db"
    reference(other, wal=True)
    shutil.copyfile(f"{other}-wal", f"{path}-wal")

    with untouched(folder):
        report = Memory.preview_dedupe(path)

    assert any("-wal" in remark and "another" in remark for remark in report.remarks)


def test_a_plain_file_needs_no_remark(path):
    reference(path)

    assert Memory.preview_dedupe(path).remarks == ()


# ---- while it is written


def test_a_change_during_the_read_is_a_conflict(path):
    reference(path)

    with pytest.raises(Conflict, match="being written") as caught, open_copy(path), connect(path) as writer:
        writer.execute("INSERT INTO scenes(key) VALUES ('chan:new')")

    assert_one_line_naming(path, str(caught.value))


def test_a_wal_that_appears_during_the_read_is_a_conflict(path):
    graphmem_file(path)

    with contextlib.ExitStack() as writers:

        def read_while_a_writer_starts():
            with open_copy(path):
                writers.enter_context(another_process(path, "UPDATE scenes SET strength = 9"))

        with pytest.raises(Conflict, match="being written"):
            read_while_a_writer_starts()


def test_a_change_after_the_copy_was_made_does_not_matter(path):
    crashed(path)

    with open_copy(path) as copy:
        graphmem_process(path, "memory.declare_scene('chan:new')")
        assert copy.connection.execute("SELECT COUNT(*) FROM scenes").fetchone()[0] == 2


def test_what_changes_during_every_try_is_a_conflict(path, monkeypatch):
    reference(path, wal=True)
    copied = shutil.copyfile
    tries = []

    def copy_while_it_is_written(source, target):
        copied(source, target)
        if Path(source) == path:
            tries.append(source)
            os.utime(path, ns=(0, len(tries)))

    monkeypatch.setattr(shutil, "copyfile", copy_while_it_is_written)
    with pytest.raises(Conflict, match="back it up first") as caught:
        Memory.preview_dedupe(path)

    assert_one_line_naming(path, str(caught.value))
    assert len(tries) == 3


def test_what_changes_during_the_first_try_is_read_at_the_second(path, monkeypatch):
    reference(path, wal=True)
    copied = shutil.copyfile
    tries = []

    def copy_while_it_is_written(source, target):
        copied(source, target)
        tries.append(source)
        if len(tries) == 1:
            os.utime(path, ns=(0, 0))

    monkeypatch.setattr(shutil, "copyfile", copy_while_it_is_written)

    assert Memory.preview_dedupe(path).scenes_before == 6


def test_a_wal_that_goes_while_it_is_copied_is_no_failure(path, monkeypatch):
    """The last process that has the file open writes the log back and removes it."""
    graphmem_file(path)
    copied = shutil.copyfile

    with another_process(
        path, "DELETE FROM scene_refs", "UPDATE scenes SET key = 'chan:only' WHERE key = 'chan:QQ'"
    ) as end:

        def copy_while_the_writer_ends(source, target):
            copied(source, target)
            end()

        monkeypatch.setattr(shutil, "copyfile", copy_while_the_writer_ends)
        report = Memory.preview_dedupe(path)

    assert (report.scenes_before, report.merged) == (3, 0)


def test_a_read_leaves_a_live_writer_its_lock(path):
    graphmem_file(path)

    with another_process(path, "BEGIN IMMEDIATE", "UPDATE scenes SET strength = 9"):
        Memory.preview_dedupe(path)
        with connect(path) as other:
            other.execute("PRAGMA busy_timeout = 0")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")


# ---- permissions


@pytest.mark.parametrize("mode", MODES)
def test_a_read_only_folder_is_read(public_folder, mode):
    path = public_folder / "memory.db"
    MODES[mode](path)
    for file in public_folder.iterdir():
        file.chmod(0o444)
    public_folder.chmod(0o555)
    expected = Memory.preview_dedupe(path)

    with untouched(public_folder):
        told = unprivileged(lambda: [Memory.preview_dedupe(path).scenes_before, Memory.preview_dedupe(path).merged])

    assert told == [expected.scenes_before, expected.merged]


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_file_that_may_not_be_read_is_refused(public_folder, suffix):
    path = public_folder / "memory.db"
    reference(path, wal=True)
    for file in public_folder.iterdir():
        file.chmod(0o444)
    path.with_name(path.name + suffix).chmod(0o000)

    with untouched(public_folder):
        kind, message = unprivileged(lambda: Memory.preview_dedupe(path).merged)

    assert kind == "StoreFailed"
    assert_one_line_naming(path, message)


def test_a_folder_that_may_not_be_entered_is_refused(public_folder):
    path = public_folder / "memory.db"
    reference(path)
    public_folder.chmod(0o000)

    kind, message = unprivileged(lambda: Memory.preview_dedupe(path).merged)

    assert kind == "StoreFailed"
    assert_one_line_naming(path, message)


# ---- what cannot be read


def truncated(path):
    reference(path)
    os.truncate(path, path.stat().st_size // 2)


def damaged(path):
    reference(path)
    with connect(path) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as stream:
        stream.seek(size)
        stream.write(b"\xff" * size)


def other_program(path):
    with connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks(url)")


def other_scenes(path):
    """A database that has tables of these names, but not these columns."""
    with connect(path) as connection:
        connection.executescript("CREATE TABLE scenes(a); CREATE TABLE scene_features(a); CREATE TABLE scene_refs(a);")


def wal_folder(path):
    reference(path)
    path.with_name(path.name + "-wal").mkdir()


def not_utf8(path):
    reference(path)
    with connect(path) as connection:
        connection.execute("UPDATE scenes SET key = CAST(x'ff41' AS TEXT) WHERE id = 3")


UNREADABLE = {
    "unknown": (lambda path: None, StoreFailed),
    "folder": (lambda path: path.mkdir(), StoreFailed),
    "empty": (lambda path: path.touch(), StoreCorrupt),
    "text": (lambda path: path.write_text("no database\n" * 100), StoreCorrupt),
    "one letter": (lambda path: path.write_text("x"), StoreCorrupt),
    "first bytes only": (lambda path: path.write_bytes(b"SQLite format 3\0"), StoreCorrupt),
    "truncated": (truncated, StoreCorrupt),
    "damaged": (damaged, StoreCorrupt),
    "database of another program": (other_program, StoreFailed),
    "other tables of the same names": (other_scenes, StoreFailed),
    "text that is no UTF-8": (not_utf8, StoreCorrupt),
    "folder in place of the -wal": (wal_folder, StoreFailed),
    "a -wal alone": (lambda path: Path(f"{path}-wal").write_bytes(b"x" * 100), StoreFailed),
}


@pytest.mark.parametrize(("make", "error"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused_in_one_line(folder, path, make, error):
    make(path)

    with untouched(folder), pytest.raises(error) as caught:
        Memory.preview_dedupe(path)

    assert_one_line_naming(path, str(caught.value))


@pytest.mark.parametrize("name", ["missing/memory.db", "memory.db/below", "x" * 300])
def test_a_path_that_leads_nowhere_is_refused(folder, path, name):
    reference(path)

    with untouched(folder), pytest.raises(StoreFailed) as caught:
        Memory.preview_dedupe(folder / name)

    assert_one_line_naming(folder / name, str(caught.value))


def test_the_longest_name_is_read(folder):
    """A name of 255 bytes leaves no room for that of a -wal."""
    path = folder / ("x" * 255)
    short = folder / "short.db"
    reference(short)
    short.rename(path)

    with untouched(folder):
        assert Memory.preview_dedupe(path).scenes_before == 6


@pytest.mark.parametrize("bad", ["", "  ", "a\0b.db", "\ud800.db", None, 7, b"memory.db"])
def test_a_path_that_is_none_is_invalid(folder, monkeypatch, bad):
    monkeypatch.chdir(folder)

    with pytest.raises(InvalidInput, match=r"^path = "):
        Memory.preview_dedupe(bad)


def test_a_named_pipe_is_refused_at_once(path):
    os.mkfifo(path)
    told = []
    reader = threading.Thread(target=lambda: told.append(refusal(lambda: Memory.preview_dedupe(path))))

    reader.start()
    reader.join(1)
    waiting = reader.is_alive()
    if waiting:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))  # lets it go
        reader.join()

    assert not waiting
    assert told[0][0] in ("StoreFailed", "StoreCorrupt")
    assert_one_line_naming(path, told[0][1])


def test_a_damaged_wal_ends_the_log_there(folder, path):
    """Frames that fail their checksum are not part of the log, so SQLite reads what comes before them."""
    crashed(path)
    log = path.with_name("memory.db-wal")
    os.truncate(log, log.stat().st_size - 100)

    with untouched(folder):
        report = Memory.preview_dedupe(path)

    assert report.scenes_before == 1


def test_a_strength_that_is_missing_does_not_stop_the_preview(path):
    """The reference's column may hold NULL."""
    reference(path)
    with connect(path) as connection:
        connection.execute("UPDATE scenes SET strength = NULL WHERE id = 2")

    assert Memory.preview_dedupe(path).merged == 2


def test_a_key_that_is_no_text_is_left_alone(path):
    reference(path)
    with connect(path) as connection:
        connection.execute("UPDATE scenes SET key = x'00ff' WHERE id = 3")
        connection.execute("UPDATE scenes SET key = ' / ' WHERE id = 6")

    report = Memory.preview_dedupe(path)

    assert (report.merged, report.scenes_before, report.rewritten) == (2, 6, ())
    assert len(report.remarks) == 2


def test_no_handle_is_left_after_any_end(folder, path):  # BAK-07
    MODES["reference with -wal"](path)
    Memory.preview_dedupe(path)
    with contextlib.suppress(Conflict), open_copy(path):
        path.touch()
    damaged(folder / "damaged.db")
    for name in ("damaged.db", "unknown.db"):
        with contextlib.suppress(GraphmemError):
            Memory.preview_dedupe(folder / name)

    held = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists the others
            held.append(str(descriptor.readlink()))
    assert [name for name in held if name.startswith(str(folder.parent))] == []


# ---- bytes in a file


@pytest.mark.parametrize("form", [b"x", b"xyz"])
def test_bytes_are_looked_for_without_holding_the_file(folder, monkeypatch, form):
    monkeypatch.setattr(copies, "_CHUNK", 1 << 10)
    file = folder / "large"
    file.write_bytes(b"XYZ" + b"-" * (1 << 20) + b"xyz")

    tracemalloc.start()
    try:
        found = copies.find_bytes(file, [form])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == [0, 3 + (1 << 20)]
    assert most < 1 << 17
