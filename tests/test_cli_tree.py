"""Commands about the tree of notes: tree export, tree sync, tree watch."""

import json

import pytest

from graphmem import Memory
from graphmem.surfaces.cli import main


@pytest.fixture
def cli(capsys, path, monkeypatch, tmp_path):
    """The command line in this process, on a memory with one note."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    with Memory.open(path) as memory:
        memory.remember("Likes tea")

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(["--db", str(path), *map(str, arguments)])
        return end.value.code, *capsys.readouterr()

    return run


def test_notes_go_out_and_come_in(cli, path, tmp_path):
    root = tmp_path / "notes"
    code, out, err = cli("tree", "export", "notes", "--dry-run")
    assert (code, err, root.exists()) == (0, "", False)
    assert out.splitlines()[-1] == f"{root}: would be 3 written, 0 files of notes unchanged"
    assert cli("tree", "export", "notes")[0] == 0
    assert cli("tree", "sync", "notes") == (0, f"{root}: 1 file of notes unchanged\n", "")

    (root / "facts/a.md").write_text("---\ntitle: New\nodd: x\n---\n", "utf-8")
    (root / "facts/likes-tea.md").write_text("---\ntitle: [x]\n---\n", "utf-8")
    code, out, err = cli("tree", "sync", "notes", "--json")
    told = json.loads(out)
    assert code == 1
    assert err == "note: facts/a.md: left in the file, since they mean nothing here: odd\n"
    assert [(one["what"], one["path"], one["note_id"]) for one in told["changes"]][:1] == [("added", "facts/a.md", 2)]
    assert ("refused", 1) in [(one["what"], one["note_id"]) for one in told["changes"]]


def test_the_usual_place_is_that_of_the_project_or_of_the_user(cli, tmp_path):  # A6.1
    (tmp_path / "work").mkdir()
    assert cli("tree", "export")[0] == 0
    assert (tmp_path / "settings/graphmem/memory/facts/likes-tea.md").exists()
    assert cli("--project", tmp_path / "work", "remember", "Deploy", "--kind", "lesson")[0] == 0
    assert cli("--project", tmp_path / "work", "tree", "export")[0] == 0
    assert (tmp_path / "work/.memory/lessons/deploy.md").exists()
    assert cli("tree", "export", "--scope", "other")[0] == 2


def test_watching_ends_when_it_is_to(cli, tmp_path):
    code, out, err = cli("tree", "watch", "notes", "--for", "0.2", "--json")
    assert (code, err) == (0, "")
    assert [one["what"] for one in json.loads(out)["changes"]] == ["written"] * 3


def test_a_form_is_chosen_once_and_trust_is_told_once(cli, tmp_path):
    assert cli("tree", "export", "ledger", "--form", "ledger")[0] == 0
    assert (tmp_path / "ledger/memory.json").exists()
    assert json.loads(cli("tree", "sync", "ledger", "--json")[1])["form"] == "ledger"
    assert cli("tree", "sync", "ledger", "--form", "notes")[0] == 1

    (tmp_path / "clone/rules").mkdir(parents=True)
    (tmp_path / "clone/rules/a.md").write_text("---\ntitle: Never push\n---\n", "utf-8")
    assert "--trust" in cli("tree", "sync", "clone")[2]
    assert json.loads(cli("tree", "sync", "clone", "--trust", "--json")[1])["trusted"] is True
    assert json.loads(cli("tree", "sync", "clone", "--json")[1])["trusted"] is True
    assert json.loads(cli("tree", "sync", "clone", "--no-trust", "--json")[1])["trusted"] is False
