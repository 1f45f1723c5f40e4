"""What a purge for good says of files: those a reader keeps, and the copies that graphmem itself made."""

import subprocess

import pytest
from support import another_process, assert_one_line_naming, sql

from graphmem import Conflict, Memory, NotFound, Situation, Triple

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
