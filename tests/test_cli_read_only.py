"""Commands on a memory that can be read and not written: what they say, and those that work all the same."""

import contextlib
import io
import tempfile
from pathlib import Path

import pytest
from support import assert_one_line_naming, dump, unprivileged

from graphmem import Memory, Triple
from graphmem.surfaces.cli import main
from graphmem.surfaces.output import print_table

PICTURE = bytes(range(256)) * 400


@pytest.fixture
def medium():
    """A folder with a memory of which nothing may be written, and one beside it where everybody may write."""
    with tempfile.TemporaryDirectory() as name:
        folder, place = Path(name, "medium"), Path(name, "place")
        Path(name).chmod(0o755)
        folder.mkdir()
        place.mkdir()
        place.chmod(0o777)
        with Memory.open(folder / "m.db") as memory:
            memory.commit([Triple("ann", "likes", "tea")], scenes="chan:qq")
            memory.put_block("a rota", modality="image", payload=PICTURE, mime="image/png")
        for each in folder.rglob("*"):
            each.chmod(0o755 if each.is_dir() else 0o644)
        folder.chmod(0o555)
        yield folder / "m.db", place
        folder.chmod(0o755)


def called(*arguments):
    """Exit code, output and errors of a command that one runs who may not write."""

    def call():
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.suppress(SystemExit),
        ):
            main(list(map(str, arguments)))
        return out.getvalue(), err.getvalue()

    return unprivileged(call)


def files(folder):
    return sorted(str(file) for file in folder.rglob("*"))


@pytest.mark.parametrize("closed", ["folder", "file"])
@pytest.mark.parametrize("command", [["check"], ["dedupe"], ["recall", "tea"], ["commit", "ann", "likes", "milk"]])
def test_the_refusal_names_what_works(medium, closed, command):
    path, _ = medium
    if closed == "file":
        path.chmod(0o444)
        path.parent.chmod(0o777)
    before = files(path.parent)

    out, err = called("--db", path, *command)

    assert out == ""
    assert_one_line_naming(path, err.rstrip("\n"))
    assert "permissions" in err or "folder" in err
    for hint in ("check FILE", "dedupe --dry-run FILE", "verify-forgotten TEXT FILE", "backup DEST"):
        assert f"'graphmem {hint}'" in err
    assert files(path.parent) == before


def test_what_the_refusal_names_works(medium):
    path, place = medium
    before = files(path.parent)
    print_table(["loads"], [["what is imported late"]], empty="")  # who may not write may not import it either

    checked = called("--db", path, "check", path)
    dedupe = called("dedupe", "--dry-run", path)
    forgotten = called("verify-forgotten", "pelican", path)
    backup = called("--db", path, "backup", place / "copy.db")

    assert "sound" in checked[0]
    assert "nothing to do" in dedupe[0]
    assert "nothing is left of it" in forgotten[0]
    assert str(place / "copy.db") in backup[0]
    assert "1 payload files" in backup[0]
    assert dump(place / "copy.db") == dump(path)
    assert Memory.check_copy(place / "copy.db").ok
    assert files(path.parent) == before


def test_a_copy_of_what_is_no_memory_is_refused_and_leaves_nothing(medium):
    path, place = medium
    path.write_bytes(b"no database" * 100)

    _, err = called("--db", path, "backup", place / "copy.db")

    assert_one_line_naming(path, err.rstrip("\n"))
    assert files(place) == []


def test_a_missing_memory_is_missing(medium):
    path, _ = medium
    _, err = called("--db", path.with_name("missing.db"), "check")
    assert "does not exist" in err
    assert "check FILE" not in err
