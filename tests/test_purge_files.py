"""What a purge for good says of files: those a reader keeps, and the copies that graphmem itself made."""

import subprocess
from pathlib import Path

import pytest
from support import another_process, assert_one_line_naming

from graphmem import Conflict, Memory, Situation, Triple

PICTURE = b"\0" * 70_000 + b"pelican-42"


def files_with(folder, text):
    """The files of a folder that hold a text, asked in a process of its own: a plain read here would drop locks."""
    told = subprocess.run(["grep", "-rl", text, str(folder)], check=False, capture_output=True, text=True)
    return set(told.stdout.split())


@pytest.mark.parametrize("written_back", [False, True])
def test_every_file_that_a_reader_keeps_is_named(path, written_back):
    with Memory.open(path) as memory:
        memory._store._writer.execute("PRAGMA busy_timeout = 50")
        memory.commit([Triple("pelican-42", "likes", "tea")], scope="doomed")
        if written_back:
            memory._store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with another_process(path, "BEGIN", "SELECT * FROM relations"):
            report = memory.purge(scope="doomed", hard=True)
            holding = files_with(path.parent, "pelican-42")

    assert str(path) in holding if written_back else holding == {f"{path}-wal"}
    (remark,) = report.remarks
    assert all(file in remark for file in holding)
    assert_one_line_naming(f"{path} and {path}-wal", remark)
    assert Memory.verify_forgotten(path, "pelican-42").ok


# ---- copies that graphmem made


@pytest.fixture
def copied(path, clock):
    """A memory with copies of a secret beside it: before a reset, before a restore, with a picture, and a draft."""
    with Memory.open(path, clock=clock) as memory:
        memory.backup(path.with_name("early.db"))
        for _ in range(3):
            memory.enter_scene(Situation.of(topics=["zoo"]))
        memory.commit([Triple("pelican-42", "likes", "tea")], scope="doomed")
        reset = memory.reset_scenes().backup
        block = memory.put_block("a picture", modality="image", payload=PICTURE, mime="image/png")
    kept = Memory.restore(path.with_name("early.db"), path).kept
    path.with_name("early.db").unlink()
    draft = path.with_name(".graphmem-0123456789abcdef")
    draft.write_bytes(Path(reset).read_bytes())
    picture = f"{kept}.blobs/{block.digest[:2]}/{block.digest}"
    with Memory.open(path, clock=clock) as memory:
        memory.commit([Triple("pelican-42", "likes", "tea")], scope="doomed")
        yield memory, [reset, kept, str(draft)], picture


def test_copies_beside_the_memory_are_named_and_looked_into(copied, path):
    memory, copies, picture = copied
    before = {file: file.read_bytes() for file in path.parent.rglob("*before-*") if file.is_file()}

    dry = memory.purge(scope="doomed", hard=True, dry_run=True)
    soft = memory.purge(scope="doomed")
    report = memory.purge(scope="doomed", hard=True)
    memory.close()
    found = Memory.verify_forgotten(path, "pelican-42")

    assert (soft.remarks, dry.remarks) == ((), report.remarks)
    for copy in copies:
        assert_one_line_naming(copy, report.remarks[0])
        assert {copy, f"{copy}: entities.name"} <= {trace.where for trace in found.found}
    assert not found.ok
    assert picture in {trace.where for trace in found.found}
    own = [trace for trace in found.found if trace.where.startswith((str(path) + ":", "entities"))]
    assert own == []
    assert {file: file.read_bytes() for file in path.parent.rglob("*before-*") if file.is_file()} == before


def test_a_deletion_for_good_names_them_too(copied):
    memory, copies, _ = copied
    (remark,) = memory.delete_relation(1, hard=True).remarks
    assert all(copy in remark for copy in copies)


def test_a_copy_that_is_damaged_is_looked_at_by_its_bytes(memory, path):
    memory.close()
    kept = path.with_name("memory.db.before-restore-2")
    kept.write_bytes(b"no database, but pelican-42")
    kept.with_name("memory.db.before-restore-wal").write_bytes(b"pelican-42 alone")

    report = Memory.verify_forgotten(path, "pelican-42")

    assert [trace.where for trace in report.found] == [f"{path}.before-restore-wal", str(kept)]
    assert str(kept) in report.remarks[-1]


def test_a_copy_that_is_open_here_is_a_conflict(copied, path):
    memory, (reset, *_), _ = copied
    memory.close()
    with Memory.open(reset), pytest.raises(Conflict, match="open in this process"):
        Memory.verify_forgotten(path, "pelican-42")


def test_copies_of_another_memory_are_none_of_it(memory, path):
    other = path.with_name("memory.db2.before-restore")
    other.write_bytes(b"pelican-42")

    assert memory.purge(subject_contains="pelican", hard=True).remarks == ()
    memory.close()
    assert Memory.verify_forgotten(path, "pelican-42").ok
