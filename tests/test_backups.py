"""Backup and restore: what is copied, what stays, and what is there when the process dies half-way."""

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sqlite_utils import Database
from support import another_process, assert_one_line_naming, connecting, dump, refusal, sql, unprivileged

from graphmem import Conflict, InvalidInput, Memory, SchemaTooNew, StoreBusy, StoreCorrupt, StoreFailed, Triple
from graphmem.store import schema
from graphmem.store.schema import VERSION

PICTURE = bytes(range(256)) * 400  # too large for a row


def fill(memory):
    memory.commit([Triple("panel", "port", "8328", sentence="The panel listens on 8328.")], scenes=["chan:qq"])
    memory.remember("Deploy with pnpm", slot="deploy")


def put_picture(memory, picture=PICTURE):
    return memory.put_block("a rota", modality="image", payload=picture, mime="image/png", scenes=["chan:qq"])


def keys(path):
    return sorted(key for (key,) in sql(path, "SELECT key FROM scenes"))


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def state(folder):
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def graphmem_process(path, code):
    """Run code with an open `memory` in a process of its own."""
    script = f"import os, sys\nfrom graphmem import *\nwith Memory.open(sys.argv[1]) as memory:\n    {code}"
    return subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def crashed(path, *declared):
    """Leave a memory whose process died: the declared scenes are in its -wal alone."""
    calls = "; ".join(f"memory.declare_scene({key!r})" for key in declared)
    graphmem_process(path, f"{calls}; os._exit(0)")
    assert Path(f"{path}-wal").stat().st_size > 0


@pytest.fixture
def dest(path):
    return path.with_name("copy.db")


@pytest.fixture
def backup(memory, dest):
    """A backup of one scene, from a memory that is closed."""
    memory.declare_scene("chan:old")
    memory.backup(dest)
    memory.close()
    return dest


# ---- backup


def test_a_backup_holds_everything_in_one_private_file(memory, path, dest):  # BAK-01
    fill(memory)

    report = memory.backup(dest)

    assert dump(dest) == dump(path)
    assert names(dest.parent) == ["copy.db", "memory.db", "memory.db-shm", "memory.db-wal"]
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert (report.path, report.bytes) == (str(dest), dest.stat().st_size)
    assert (report.counts["relations"], report.counts["notes"], report.payloads) == (1, 1, 0)
    assert sql(dest, "PRAGMA journal_mode") == [("delete",)]


def test_a_backup_holds_what_only_the_log_has(path, dest):  # BAK-01
    crashed(path, "chan:a")

    with Memory.open(path) as memory:
        memory.declare_scene("chan:b")
        memory.backup(dest)

    assert keys(dest) == ["chan:a", "chan:b"]


def test_a_memory_without_a_file_is_backed_up_too(dest):
    with Memory.open(":memory:") as memory:
        memory.declare_scene("chan:qq")
        memory.backup(dest)

    assert keys(dest) == ["chan:qq"]


def test_a_memory_without_log_is_backed_up_and_restored(path, dest, monkeypatch):  # CON-07
    monkeypatch.setattr("graphmem.store.database._use_wal", lambda *_: None)
    with Memory.open(path) as memory:
        fill(memory)
        memory.backup(dest)

    report = Memory.restore(dest, path)

    assert dump(path) == dump(dest) == dump(report.kept)


def test_writers_go_on_and_the_backup_is_one_state(memory, path, dest, monkeypatch):
    monkeypatch.setattr("graphmem.store.backups._PAGES_AT_ONCE", 10)
    fill(memory)
    told = []

    def write(done, pages):
        graphmem_process(path, f"memory.declare_scene('chan:{done}')") if not told else memory.declare_scene("chan:own")
        told.append((done, pages))

    report = memory.backup(dest, progress=write)

    assert keys(dest) == ["chan:qq"]
    assert report.counts["scenes"] == 1
    assert len(memory.scenes()) == 3
    assert told[-1][0] == told[-1][1] > 10
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_an_existing_file_is_refused_and_stays(memory, dest):
    dest.write_text("precious")

    with pytest.raises(Conflict) as caught:
        memory.backup(dest)

    assert_one_line_naming(dest, str(caught.value))
    assert dest.read_text() == "precious"


def test_a_log_that_lies_where_the_backup_would_be_is_refused(memory, dest):
    log = dest.with_name("copy.db-wal")
    log.write_text("of another file")

    with pytest.raises(Conflict) as caught:
        memory.backup(dest)

    assert_one_line_naming(log, str(caught.value))


def test_a_file_that_comes_meanwhile_stays_too(memory, dest):
    before = names(dest.parent)

    with pytest.raises(Conflict):
        memory.backup(dest, progress=lambda done, pages: dest.write_text("precious"))

    assert dest.read_text() == "precious"
    assert set(names(dest.parent)) - set(before) == {"copy.db"}


def test_where_links_are_unknown_the_draft_is_renamed(memory, path, dest, monkeypatch):
    def no_link(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    fill(memory)

    memory.backup(dest)

    assert dump(dest) == dump(path)


@pytest.mark.parametrize("bad", ["", ":memory:", None, "a\0b"])
def test_a_place_that_is_none_is_invalid(memory, bad):
    with pytest.raises(InvalidInput):
        memory.backup(bad)


@pytest.mark.parametrize("name", ["missing/copy.db", "memory.db/below", "x" * 300])
def test_a_place_that_leads_nowhere_is_one_clear_line(memory, path, name):
    before = names(path.parent)

    with pytest.raises(StoreFailed) as caught:
        memory.backup(path.parent / name)

    assert_one_line_naming(path.parent / name, str(caught.value))
    assert names(path.parent) == before


def test_large_payloads_are_copied_and_read_there(memory, path, dest):
    block = put_picture(memory)

    report = memory.backup(dest)

    shutil.rmtree(f"{path}.blobs")
    with Memory.open(dest) as copy:
        assert copy.block(block.id, payload=True).payload == PICTURE
    assert (report.payloads, report.remarks) == (1, ())


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_bytes(b"x" * len(PICTURE))])
def test_a_payload_that_is_lost_is_told_and_the_rest_is_copied(memory, path, dest, damage):
    digest = put_picture(memory).digest
    damage(Path(f"{path}.blobs", digest[:2], digest))

    report = memory.backup(dest)

    assert keys(dest) == ["chan:qq"]
    assert report.payloads == 0
    (remark,) = report.remarks
    assert digest in remark


def test_a_block_deleted_during_the_backup_is_in_neither(memory, dest, monkeypatch):
    kept, deleted = put_picture(memory), put_picture(memory, PICTURE[::-1])
    from graphmem.store import backups

    copied = backups.copy_blob
    left = [deleted.id]

    def copy_while_a_block_is_deleted(*arguments):
        if left:
            with Memory.open(memory.path) as other:
                other.delete_block(left.pop())
        return copied(*arguments)

    monkeypatch.setattr(backups, "copy_blob", copy_while_a_block_is_deleted)
    report = memory.backup(dest)

    assert (report.counts["blocks"], report.payloads, report.remarks) == (1, 1, ())
    with Memory.open(dest) as copy:
        assert copy.block(kept.id, payload=True).payload == PICTURE
        assert copy.check().problems == ()


def test_a_damaged_memory_gives_no_backup(path, dest):
    with Memory.open(path) as memory:
        memory.commit([Triple(f"a{n}", "is", f"b{n}", sentence="x" * 500 + str(n)) for n in range(50)])
        (root,) = next(
            iter(memory._store._writer.execute("SELECT rootpage FROM sqlite_master WHERE name = 'evidence'"))
        )
        (size,) = memory._store._writer.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as stream:
        stream.seek((root - 1) * size)
        stream.write(b"\xff" * size)

    with Memory.open(path) as memory, pytest.raises(StoreCorrupt) as caught:
        memory.backup(dest)

    assert_one_line_naming(path, str(caught.value))
    assert "copy.db" not in names(path.parent)


def no_room(limit):
    """In a child process, let no file grow beyond a limit: what a full disk looks like to SQLite."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def test_a_full_disk_is_one_clear_line_and_nothing_is_left(memory, path, dest):  # SCH-06
    fill(memory)
    memory._store.sync()
    before = names(path.parent)

    def back_up():
        no_room(50_000)
        with Memory.open(path) as own:
            own.backup(dest)

    kind, message = in_a_child(back_up)

    assert kind == "StoreFailed"
    assert_one_line_naming(dest, message)
    assert names(path.parent) == before


def test_a_disk_that_fills_up_during_a_restore_leaves_the_memory(path, backup):  # SCH-06
    before = dump(path)
    files = names(path.parent)

    def restore():
        no_room(50_000)
        Memory.restore(backup, path)

    kind, message = in_a_child(restore)

    assert kind == "StoreFailed"
    assert_one_line_naming(path, message)
    assert (dump(path), names(path.parent)) == (before, files)


def in_a_child(act):
    """Class and message of the error of an act in a child process, which keeps its user."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, json.dumps(refusal(act)).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(told)


def test_a_disk_without_room_is_told_before_a_byte_is_written(memory, dest, monkeypatch):  # SCH-06
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**6, 10**6 - 999, 999))
    before = names(dest.parent)

    with pytest.raises(StoreFailed, match="999 bytes free") as caught:
        memory.backup(dest)

    assert_one_line_naming(dest.parent, str(caught.value))
    assert names(dest.parent) == before


@pytest.fixture
def public_folder():
    """A folder that every user may enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


def test_a_read_only_folder_is_one_clear_line(memory, dest, public_folder):
    memory.declare_scene("chan:old")
    memory.backup(dest)
    source, target = public_folder / "copy.db", public_folder / "closed" / "memory.db"
    shutil.copyfile(dest, source)
    target.parent.mkdir()
    shutil.copyfile(dest, target)
    source.chmod(0o666)
    target.chmod(0o666)
    target.parent.chmod(0o555)
    before = state(public_folder)

    def back_up():
        with Memory.open(":memory:") as own:
            own.backup(target.with_name("new.db"))

    backed_up = unprivileged(lambda: refusal(back_up))
    restored = unprivileged(lambda: refusal(lambda: Memory.restore(source, target)))

    assert [kind for kind, _ in (backed_up, restored)] == ["StoreFailed", "StoreFailed"]
    assert_one_line_naming(target.with_name("new.db"), backed_up[1])
    assert_one_line_naming(target, restored[1])
    assert state(public_folder) == before


@pytest.mark.parametrize("part", [".blobs", ".blobs/copy.db", ".blobs/aa/copy.db", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("there", [False, True])
def test_a_part_of_the_memory_itself_is_no_place(memory, path, part, there):
    if there:
        put_picture(memory)
    before = names(path.parent)
    place = f"{path}{part}"

    with pytest.raises(InvalidInput, match="is a part of the memory") as caught:
        memory.backup(place)
    memory.close()
    with pytest.raises(InvalidInput, match="is a part of the memory"):
        Memory.restore(path, place)

    assert_one_line_naming(place, str(caught.value))
    assert set(names(path.parent)) <= set(before)


def test_a_link_to_a_part_of_the_memory_is_no_place_either(memory, path):
    put_picture(memory)
    link = path.with_name("link")
    link.symlink_to(f"{path}.blobs")

    with pytest.raises(InvalidInput, match="is a part of the memory"):
        memory.backup(link / "copy.db")


# ---- restore


def lose(file):
    shutil.rmtree(Path(f"{file}.blobs"))


def lose_one(file):
    next(each for each in Path(f"{file}.blobs").rglob("*") if each.is_file()).unlink()


def damage_one(file):
    next(each for each in Path(f"{file}.blobs").rglob("*") if each.is_file()).write_bytes(b"x" * len(PICTURE))


@pytest.mark.parametrize("damage", [lose, lose_one, damage_one])
def test_a_backup_without_its_payloads_is_restored_only_when_told_to(memory, path, dest, damage):
    put_picture(memory), put_picture(memory, PICTURE[::-1])
    memory.backup(dest)
    memory.close()
    damage(dest)
    target = path.with_name("other") / "memory.db"
    target.parent.mkdir()
    with Memory.open(target) as other:
        other.declare_scene("chan:other")
    before, held = state(target.parent), dump(target)

    with pytest.raises(StoreCorrupt, match="--without-payloads") as caught:
        Memory.restore(dest, target)

    assert_one_line_naming(f"{dest}.blobs", str(caught.value))
    assert f"{2 if damage is lose else 1} of its 2 payload files" in str(caught.value)
    assert dump(target) == held
    assert before.keys() == state(target.parent).keys()
    if damage is not damage_one:
        assert state(target.parent) == before
    report = Memory.restore(dest, target, without_payloads=True)
    assert keys(target) == ["chan:qq"]
    assert (report.payloads, len(report.remarks)) == ((0, 2) if damage is lose else (1, 1))


def test_payloads_that_the_memory_has_need_not_be_in_the_backup(memory, path, dest):
    block = put_picture(memory)
    memory.backup(dest)
    memory.close()
    lose(dest)

    assert Memory.restore(dest, path).payloads == 1
    with Memory.open(path) as memory:
        assert memory.block(block.id, payload=True).payload == PICTURE


def test_a_memory_that_may_not_be_written_is_not_replaced(path, backup, public_folder):
    source, target = public_folder / "copy.db", public_folder / "memory.db"
    shutil.copyfile(backup, source)
    shutil.copyfile(path, target)
    source.chmod(0o644)
    target.chmod(0o444)
    before = state(public_folder)

    kind, message = unprivileged(lambda: refusal(lambda: Memory.restore(source, target)))

    assert kind == "StoreFailed"
    assert "check the permissions" in message
    assert_one_line_naming(target, message)
    assert state(public_folder) == before


def test_restore_brings_the_backup_back_and_keeps_the_memory(path, backup):
    with Memory.open(path) as memory:
        memory.declare_scene("chan:new")

    report = Memory.restore(backup, path)

    assert keys(path) == ["chan:old"]
    assert keys(report.kept) == ["chan:new", "chan:old"]
    assert report.kept == f"{path}.before-restore"
    assert (report.path, report.source, report.counts["scenes"]) == (str(path), str(backup), 1)
    assert names(path.parent) == ["copy.db", "memory.db", "memory.db.before-restore"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_stale_log_is_never_read_into_the_restored_file(path, dest):  # BAK-02
    with Memory.open(path) as memory:
        memory.commit([Triple(f"a{n}", "is", "old") for n in range(200)])
        memory.backup(dest)
    # Each fact is replaced by another, in a log that nobody wrote back.
    graphmem_process(
        path, "[memory.edit_relation(n, object='new') for n in range(1, 201)]; memory._store._writer; os._exit(0)"
    )
    assert Path(f"{path}-wal").stat().st_size > 0

    report = Memory.restore(dest, path)

    active = "SELECT e.name, COUNT(*) FROM relations r JOIN entities e ON e.id = r.target_id WHERE r.status = 'active'"
    assert sql(path, active) == [("old", 200)]
    assert sql(report.kept, active) == [("new", 200)]
    assert not Path(f"{path}-wal").exists()


def test_a_second_restore_keeps_what_the_first_one_kept(path, backup):
    first = Memory.restore(backup, path).kept
    second = Memory.restore(backup, path).kept
    third = Memory.restore(backup, path).kept

    assert [first, second, third] == [f"{path}.before-restore{end}" for end in ("", "-2", "-3")]


def test_a_missing_memory_is_made(path, backup):
    target = path.with_name("new.db")

    report = Memory.restore(backup, target)

    assert report.kept == ""
    assert keys(target) == ["chan:old"]


def test_a_log_that_was_left_alone_is_moved_away(path, backup):
    target = path.with_name("new.db")
    Path(f"{target}-wal").write_bytes(b"left alone")

    report = Memory.restore(backup, target)

    assert keys(target) == ["chan:old"]
    assert Path(f"{report.kept}-wal").read_bytes() == b"left alone"


def test_a_log_beside_the_backup_is_read_with_it(path, tmp_path):
    source = tmp_path / "source.db"
    crashed(source, "chan:a")

    report = Memory.restore(source, path)

    assert keys(path) == ["chan:a"]
    assert any("-wal" in remark for remark in report.remarks)


@pytest.mark.parametrize("damage", ["no database", "truncated", "empty"])
def test_a_damaged_memory_is_kept_and_replaced(path, backup, damage):
    content = {"no database": b"\0" * 8192, "truncated": path.read_bytes()[:9_000], "empty": b""}[damage]
    path.write_bytes(content)

    report = Memory.restore(backup, path)

    assert keys(path) == ["chan:old"]
    assert Path(report.kept).read_bytes() == content


def test_a_damaged_memory_is_kept_with_its_log(path, backup):
    crashed(path, "chan:late")
    log = Path(f"{path}-wal").read_bytes()
    damaged = b"\xff" * 100 + path.read_bytes()[100:]
    path.write_bytes(damaged)
    Path(f"{path}-wal").write_bytes(b"\xff" * len(log))

    report = Memory.restore(backup, path)

    assert keys(path) == ["chan:old"]
    assert Path(report.kept).read_bytes() == damaged
    assert not Path(f"{path}-wal").exists()


def test_a_memory_that_is_open_here_is_a_conflict(path, backup):
    with Memory.open(path) as memory:
        with pytest.raises(Conflict, match="open in this process") as caught:
            Memory.restore(backup, path)
        memory.declare_scene("chan:new")

    assert_one_line_naming(path, str(caught.value))
    assert keys(path) == ["chan:new", "chan:old"]


def test_a_memory_that_is_open_elsewhere_is_busy(path, backup):
    before = names(path.parent)

    with another_process(path, "PRAGMA journal_mode = WAL", "INSERT INTO active_days VALUES ('2026-01-01')"):
        with pytest.raises(StoreBusy, match="open in another process") as caught:
            Memory.restore(backup, path)
        left = set(names(path.parent)) - {"memory.db-wal", "memory.db-shm"}

    assert_one_line_naming(path, str(caught.value))
    assert left == set(before)
    assert sql(path, "SELECT day FROM active_days WHERE day = '2026-01-01'") == [("2026-01-01",)]


def newer(path):
    sql(path, f"PRAGMA user_version = {VERSION + 1}")


def foreign(path):
    path.unlink()
    sql(path, "CREATE TABLE songs(title)")


REFUSED = {
    "a newer backup": (lambda backup, path: newer(backup), SchemaTooNew),
    "a newer memory": (lambda backup, path: newer(path), SchemaTooNew),
    "the database of another program": (lambda backup, path: foreign(path), StoreFailed),
    "a backup of another program": (lambda backup, path: foreign(backup), StoreFailed),
    "a missing backup": (lambda backup, path: backup.unlink(), StoreFailed),
    "a truncated backup": (lambda backup, path: os.truncate(backup, 9_000), StoreCorrupt),
    "a text": (lambda backup, path: backup.write_text("no database"), StoreCorrupt),
}


@pytest.mark.parametrize(("make", "error"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_restored_is_refused_and_all_stays(path, backup, make, error):  # SCH-01
    make(backup, path)
    before = state(path.parent)

    with pytest.raises(error) as caught:
        Memory.restore(backup, path)

    assert "\n" not in str(caught.value)
    assert state(path.parent) == before


def test_a_memory_is_not_restored_from_itself(path, backup):
    path.with_name("link.db").hardlink_to(path)
    with pytest.raises(InvalidInput, match="itself"):
        Memory.restore(path.with_name("link.db"), path)
    with pytest.raises(InvalidInput, match="itself"):
        Memory.restore(path, path)
    with pytest.raises(InvalidInput):
        Memory.restore(backup, ":memory:")


def test_an_older_backup_is_brought_up_to_date_when_it_is_opened(path, dest):
    with contextlib.closing(sqlite3.connect(dest, isolation_level=None)) as connection:
        schema._migrations().apply(Database(connection), stop_before="m002_text")
        connection.execute(
            """INSERT INTO scenes(key, origin, created_at, updated_at)
               VALUES ('chan:old', 'declared', '2026-09-01T00:00:00.000Z', '2026-09-01T00:00:00.000Z')"""
        )
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")

    report = Memory.restore(dest, path)

    assert report.counts["scenes"] == 1
    assert Memory.check_copy(dest).ok
    with Memory.open(path) as memory:
        assert [scene.key for scene in memory.scenes()] == ["chan:old"]
        assert memory.check().ok


def test_payloads_come_back_and_those_of_the_memory_are_kept(path, dest):
    with Memory.open(path) as memory:
        old = put_picture(memory)
        memory.backup(dest)
        memory.delete_block(old.id)
        new = put_picture(memory, PICTURE[::-1])

    report = Memory.restore(dest, path)

    with Memory.open(path) as memory:
        assert memory.block(old.id, payload=True).payload == PICTURE
    with Memory.open(report.kept) as memory:
        assert memory.block(new.id, payload=True).payload == PICTURE[::-1]
    assert report.payloads == 1


def test_a_damaged_payload_is_replaced_by_the_one_of_the_backup(path, dest):
    with Memory.open(path) as memory:
        block = put_picture(memory)
        memory.backup(dest)
    Path(f"{path}.blobs", block.digest[:2], block.digest).write_bytes(b"x" * len(PICTURE))

    Memory.restore(dest, path)

    with Memory.open(path) as memory:
        assert memory.block(block.id, payload=True).payload == PICTURE


def test_where_links_are_unknown_the_memory_is_copied(path, backup, monkeypatch):
    with Memory.open(path) as memory:
        memory.declare_scene("chan:new")
        put_picture(memory)

    def no_link(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    report = Memory.restore(backup, path)

    assert keys(path) == ["chan:old"]
    assert keys(report.kept) == ["chan:new", "chan:old", "chan:qq"]
    with Memory.open(report.kept) as memory:
        assert memory.check().ok


@pytest.mark.parametrize("step", ["link", "replace"])
def test_a_step_that_fails_leaves_the_memory_as_it_was(path, backup, monkeypatch, step):
    with Memory.open(path) as memory:
        put_picture(memory)
    before, files = dump(path), names(path.parent)
    done = getattr(os, step)

    def fail(*arguments):
        if str(arguments[1]).startswith(str(path)):
            raise OSError(28, "No space left on device")
        return done(*arguments)

    monkeypatch.setattr(os, step, fail)
    monkeypatch.setattr(shutil, "copyfileobj", lambda *_: fail("", path))
    with pytest.raises(StoreFailed, match="No space") as caught:
        Memory.restore(backup, path)

    assert_one_line_naming(path, str(caught.value))
    assert (dump(path), names(path.parent)) == (before, files)


# ---- killed half-way


def killed_at(step, act):
    """Do something in a child process that kills itself at a step of it; return whether it came so far."""
    child = os.fork()
    if not child:
        try:
            kill_at(step)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status != 0


def kill_at(step):
    calls = []

    def hooked(call):
        def run(*arguments, **named):
            calls.append(call)
            if len(calls) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return run

    class Connection(sqlite3.Connection):
        backup = hooked(sqlite3.Connection.backup)
        execute = hooked(sqlite3.Connection.execute)
        close = hooked(sqlite3.Connection.close)

    for name in ("link", "replace", "rename", "fsync", "unlink", "open", "mkdir"):
        setattr(os, name, hooked(getattr(os, name)))
    sqlite3.connect = connecting(Connection)


def test_a_backup_killed_at_any_step_is_whole_or_not_there(path, tmp_path):
    with Memory.open(path) as memory:
        fill(memory)
        put_picture(memory)

    def back_up(dest):
        with Memory.open(path) as memory:
            memory.backup(dest)

    for step in range(1, 300):
        dest = tmp_path / f"copy{step}" / "copy.db"
        dest.parent.mkdir()
        killed = killed_at(step, lambda: back_up(dest))  # noqa: B023
        if not dest.exists():
            assert killed
            back_up(dest)  # what was left does not stand in the way
        assert (Memory.check_copy(dest).problems, keys(dest)) == ((), ["chan:qq"]), step
        if not killed:
            break
    assert not killed
    assert step > 30


def test_a_restore_killed_at_any_step_leaves_the_old_memory_or_the_new(path, tmp_path):  # BAK-02
    backup, crash = tmp_path / "copy.db", tmp_path / "crash"
    with Memory.open(path) as memory:
        memory.declare_scene("chan:old")
        put_picture(memory)
        memory.backup(backup)
    crash.mkdir()
    shutil.copyfile(path, crash / path.name)
    shutil.copytree(f"{path}.blobs", crash / f"{path.name}.blobs")
    crashed(crash / path.name, "chan:new")
    new, old = ["chan:old", "chan:qq"], ["chan:new", "chan:old", "chan:qq"]

    seen = []
    for step in range(1, 300):
        target = tmp_path / f"step{step}" / path.name
        shutil.copytree(crash, target.parent)
        killed = killed_at(step, lambda: Memory.restore(backup, target))  # noqa: B023
        with Memory.open(target) as memory:
            assert memory.check().problems == (), step
        seen.append(keys(target))
        assert seen[-1] in (old, new), step
        if not killed:
            break
    assert not killed
    assert seen == sorted(seen)  # the old one first, then the new one
    assert (seen[0], seen[-1]) == (old, new)
    assert step > 30


def test_no_handle_is_left(path, backup):  # BAK-07
    with Memory.open(path) as memory:
        memory.backup(path.with_name("second.db"))
        memory.check()
    Memory.restore(backup, path)
    Memory.check_copy(backup)
    for act in (lambda: Memory.restore(path.with_name("missing.db"), path), lambda: Memory.check_copy(path.parent)):
        assert refusal(act) is not None

    held = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists the others
            held.append(str(descriptor.readlink()))
    assert [name for name in held if name.startswith(str(path.parent))] == []


def test_files_in_use_are_never_opened_plainly(path, dest):  # CON-06
    """sqlite3 opens files below Python, so the audit hook sees nothing but plain opens."""
    Memory.open(path).close()
    script = """if True:
        import sys
        from graphmem import *
        path, dest, opened = *sys.argv[1:], []
        def hook(event, args):
            if event in ("open", "os.remove", "os.truncate") and str(args[0]) in (path, path + "-wal", path + "-shm"):
                opened.append(args[0])
        sys.addaudithook(hook)
        with Memory.open(path) as memory:
            memory.commit([Triple("a1", "b1", "c1")])
            memory.backup(dest), memory.check(), memory.repair(), memory.repair(dry_run=True)
        Memory.restore(dest, path)
        print(opened)"""

    told = subprocess.run(
        [sys.executable, "-c", script, str(path), str(dest)], check=True, capture_output=True, text=True
    ).stdout

    assert told == "[]\n"


# ---- the log


def test_the_log_shrinks_when_a_long_reader_has_gone(memory, path, monkeypatch):  # GRO-01
    limit = 16 << 20
    log = Path(f"{path}-wal")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM scenes").fetchone()
        for turn in range(4):
            with memory._store.write() as tx:
                tx.executemany(
                    "INSERT INTO sentences(hash, text, created_at) VALUES (?, ?, ?)",
                    [(f"{turn} {n}".encode(), "x" * 3_000, "2026-09-01T00:00:00.000Z") for n in range(1_800)],
                )
        assert log.stat().st_size > limit
    for turn in range(3):
        memory.declare_scene(f"chan:{turn}")

    assert log.stat().st_size <= limit
