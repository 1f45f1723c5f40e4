"""The command line: what each command does, and what holds for all: JSON, exit codes, encodings, bad input, help."""

import contextlib
import dataclasses
import html
import importlib.metadata
import inspect
import io
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import types
import unicodedata
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from support import HashEmbedder, leave_settings, rows_of

from graphmem import Memory, Part, Situation, Triple
from graphmem.core.choices import RECALL_KINDS, RECALL_MODES, SOURCE_CLASSES
from graphmem.core.model import Visit
from graphmem.exchange import copying, kinds
from graphmem.files import EXPORTS
from graphmem.surfaces.cli import exchange, graphmem, main
from graphmem.surfaces.cli.group import WholeNumber
from graphmem.surfaces.cli.recall import recall_command

ROOT = Path(__file__).parent.parent
SIX = ROOT / "fixtures" / "six_channels.jsonl"
WEEK = ROOT / "fixtures" / "week.jsonl"
TALK = ROOT / "fixtures" / "talk.jsonl"
OBSERVED = ROOT / "fixtures" / "observed.jsonl"
NOBODY = 65534
# All but the one that Claude Code calls and no person, which never fails: see test_hook.py.
COMMANDS = [command for command in graphmem.list_commands(click.Context(graphmem)) if command != "hook"]
CALLED = [command for command in COMMANDS if command != "mcp"]  # which serves, see test_mcp.py
# What does without a memory.
WITHOUT = ("config", "completion", "claude", "copy", "doctor", "opencode")
PYTHON = [sys.executable, "-m", "graphmem"]
RULE = "QQ回复禁用Markdown格式"
SENTENCE = "老大说QQ上一律用纯文本。"
BOSS = ["--chan", "qq", "--peer", "boss"]
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
NASTY = f"a\x1b[2J\x07b\x9b31mc\r{BIDI}d"

SAVED = Path(tempfile.gettempdir(), f"graphmem-saved-{os.getpid()}.db")
TREE = Path(tempfile.gettempdir(), f"graphmem-tree-{os.getpid()}")

# One call of each command that a filled memory answers; to embed needs a setting.
CALLS = {
    "enter": BOSS,
    "match": BOSS,
    "scenes": [],
    "scene": ["chan:qq"],
    "scopes": [],
    "consolidate": [],
    "distill": [],
    "evidence": [],
    "tag": ["chan:new", "--glob", "*"],
    "untag": ["chan:qq/peer:boss", "--glob", "*"],
    "rename": ["chan:qq", "chan:tencent"],
    "drop": ["chan:qq"],
    "commit": ["panel", "包管理器", "pnpm"],
    "recall": BOSS,
    "remember": ["Deploy with pnpm"],
    "notes": [],
    "rules": [],
    "approve": ["2"],
    "reject": ["3"],
    "forget": ["1"],
    "restore-note": ["4"],
    "brief": BOSS,
    "turn": ['{"source": "qq", "payload": {"user_id": "boss"}}'],
    "neighbours": ["老大"],
    "path": ["老大", RULE],
    "graph": [],
    "replay": [SIX],
    "upkeep": ["--dry-run"],
    "reindex": [],
    "block": ["put", "排班表"],
    "document": ["put", "一段对话"],
    "dedupe": [],
    "undo": ["1"],
    "operations": [],
    "embed": [],
    "edit": ["1", "--confidence", "0.5"],
    "delete": ["1", "--hard"],
    "purge": ["--relation", "偏好"],
    "verify-forgotten": ["pelican-42"],
    "secrets": ["scan"],
    "growth": ["--days", "2"],
    "completion": ["bash"],
    "doctor": ["--quick"],
    "overview": [],
    "entities": ["review"],
    "mirror": ["s1", TALK],
    "harvest": [TALK],
    "sessions": [],
    "history": ["panel"],
    "part": ["1"],
    "checkpoint": ["s1", "--queue"],
    "jobs": [],
    "tree": ["export", TREE],
    "record-failure": ["bash", "exit 1"],
    "incidents": ["--all"],
    "import": ["mcp-memory", OBSERVED],
    "claude": ["install", "--dry-run"],
    "opencode": ["install", "--dry-run"],
    "export": ["jsonl", "all.jsonl"],
    "backup": ["copy.db"],
    "restore": [SAVED],
    "copy": [SAVED, "copied.db"],
    "serve": ["--port", "0", "--idle", "0.001"],
    "check": [],
    "config": [],
    "repair": [],
}

# The same mistakes for the text and the JSON form: arguments, exit code, kind, what the message names.
MISTAKES = {
    "unknown option": (["scenes", "--nope"], 2, "Usage", "--nope"),
    "unknown command": (["nonsense"], 2, "Usage", "nonsense"),
    "missing argument": (["undo"], 2, "Usage", "OPERATION"),
    "missing value": (["enter", "--chan"], 2, "Usage", "--chan"),
    "surplus argument": (["scenes", "a", "b"], 2, "Usage", "b"),
    "no number": (["undo", "first"], 2, "Usage", "first"),
    "number out of range": (["recall", "a", "--limit", "-1"], 2, "Usage", "--limit"),
    "no operation has this number": (["undo", str(2**63)], 2, "Usage", "from 1 to 9223372036854775807"),
    "no such choice": (["scenes", "--origin", "grown"], 2, "Usage", "grown"),
    "half a fact": (["commit", "a", "b"], 2, "Usage", "OBJECT"),
    "exact without a scene": (["recall", "a", "--exact"], 2, "Usage", "--exact"),
    "no such kind": (["recall", "a", "--kind", "fact"], 2, "Usage", "--kind"),
    "no such mode": (["recall", "a", "--mode", "fuzzy"], 2, "Usage", "--mode"),
    "a time that is none": (["recall", "a", "--since", "soon"], 1, "InvalidInput", "--since = 'soon'"),
    "another one": (["recall", "a", "--until", "2026-13-01"], 1, "InvalidInput", "--until = '2026-13-01'"),
    "a bad time to look back to": (["recall", "--scene", "", "--as-of", "x"], 1, "InvalidInput", "--as-of = 'x'"),
    "options of words without words": (["recall", "--chan", "qq", "--explain"], 2, "Usage", "--explain"),
    "a kind without words": (["recall", "--chan", "qq", "--kind", "note"], 2, "Usage", "--kind"),
    "a scene of nobody": (["recall", "a", "--mode", "scene"], 2, "Usage", "--mode scene"),
    "no words to search for": (["recall", "?!"], 1, "InvalidInput", "nothing to search for"),
    "nothing to search for": (["recall"], 2, "Usage", "nothing to search for"),
    "blanks to search for": (["recall", "   "], 2, "Usage", "nothing to search for"),
    "nothing to tag": (["tag", "chan:qq"], 2, "Usage", "--glob"),
    "nothing to untag": (["untag", "chan:qq"], 2, "Usage", "--glob"),
    "a rename to nothing": (["rename", "chan:qq", "///"], 1, "InvalidInput", "new_key"),
    "a rename of no scene": (["rename", "chan:nope", "chan:new"], 3, "NotFound", "chan:nope"),
    "a drop of everything": (["drop", ""], 1, "InvalidInput", "key"),
    "a drop of no scene": (["drop", "chan:nope", "--below"], 3, "NotFound", "chan:nope"),
    "a reset of everything": (["scenes", "reset"], 2, "Usage", "--emergent"),
    "health of a part": (["scenes", "chan:qq", "--health"], 2, "Usage", "--health"),
    "missing facts file": (["commit", "--facts", "missing.json"], 2, "Usage", "missing.json"),
    "bad key": (["scenes", "///"], 1, "InvalidInput", "///"),
    "bad time": (["enter", "--chan", "qq", "--at", "yesterday"], 1, "InvalidInput", "yesterday"),
    "bad confidence": (["commit", "a", "b", "c", "--confidence", "nan"], 1, "InvalidInput", "confidence"),
    "bad log": (["replay", ROOT / "README.md"], 1, "InvalidInput", "README.md"),
    "missing log": (["replay", "missing.jsonl"], 1, "StoreFailed", "missing.jsonl"),
    "unknown name": (["path", "老大", "老二"], 3, "NotFound", "老大"),
    "unknown scene to draw": (["graph", "--scene", "chan:nope"], 3, "NotFound", "chan:nope"),
    "nothing to look for": (["neighbours", " "], 1, "InvalidInput", "names"),
    "no file to draw into": (["graph", "--output", "missing/a.dot"], 1, "StoreFailed", "missing/a.dot"),
    "a file that is there": (["export", "dot", str(ROOT / "README.md")], 1, "Conflict", "README.md"),
    "no such form": (["export", "png"], 2, "Usage", "png"),
    "a whole memory of one scope": (["export", "jsonl", "x.jsonl", "--scope", "all"], 1, "InvalidInput", "scope"),
    "no memory to import": (["import", "jsonl", ROOT / "README.md"], 1, "InvalidInput", "README.md"),
    "nothing to edit": (["edit", "1"], 2, "Usage", "--object"),
    "a bad edit": (["edit", "1", "--object", "?" * 51], 1, "InvalidInput", "object"),
    "no fact to edit": (["edit", "99", "--object", "a"], 3, "NotFound", "99"),
    "no fact to delete": (["delete", "99"], 3, "NotFound", "99"),
    "a purge of everything": (["purge"], 2, "Usage", "--subject-contains"),
    "a purge of blanks": (["purge", "--relation", " "], 1, "InvalidInput", "relation"),
    "a purge of every scene": (["purge", "--scene", "///"], 1, "InvalidInput", "scene"),
    "a purge of nobody": (["purge", "--entity", "nobody"], 3, "NotFound", "nobody"),
    "nothing to verify": (["verify-forgotten", " "], 1, "InvalidInput", "text"),
    "a failure of no tool": (["record-failure", " ", "exit 1"], 1, "InvalidInput", "tool"),
    "no incident to forget": (["incidents", "--forget", "99"], 3, "NotFound", "99"),
    "too much to forget": (["incidents", "--forget", "1", "--all"], 2, "Usage", "--forget"),
    "unknown operation": (["undo", "99"], 3, "NotFound", "99"),
    "a backup over a file": (["backup", str(ROOT / "README.md")], 1, "Conflict", "README.md"),
    "a backup into nowhere": (["backup", "missing/copy.db"], 1, "StoreFailed", "missing/copy.db"),
    "a restore of what is no memory": (["restore", str(ROOT / "README.md")], 1, "StoreCorrupt", "README.md"),
    "a copy of nothing": (["copy", "missing.db", "copied.db"], 1, "StoreFailed", "missing.db"),
    "a copy of all files": (["copy", ".", "all", "--all-tenants"], 1, "InvalidInput", "dest"),
    "a restore of nothing": (["restore", "missing.db"], 1, "StoreFailed", "missing.db"),
    "a check of nothing": (["check", "missing.db"], 1, "StoreFailed", "missing.db"),
    "unknown fact": (["tag", "chan:qq", "--relation", "99"], 3, "NotFound", "99"),
}


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


@pytest.fixture(scope="module", autouse=True)
def saved():
    """A backup of one scene."""
    with Memory.open(":memory:") as memory:
        memory.declare_scene("chan:saved")
        memory.backup(SAVED)
    yield
    for file in SAVED.parent.glob(f"{SAVED.name}*"):
        file.unlink()
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.rmtree(TREE, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    """A fresh home, which is the working folder, and data folder, and no settings of whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(home)
    leave_settings(monkeypatch)
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    return home


@pytest.fixture
def cli(capsys, path):
    """The command line in this process, on the memory at `path`; db=None leaves out --db."""

    def run(*arguments, db=path):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([*(["--db", str(db)] if db is not None else []), *map(str, arguments)])
        return Result(end.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def filled(cli, path):
    """A memory made by commands: a grown scene with a rule, declared ones, evidence, twins, an operation."""
    for _ in range(2):
        cli("enter", *BOSS, "--topic", "排班", "--declare", "chan:qq")
    boss = ["--scene", "auto:peer:boss_chan:qq", "--scene", "chan:qq/peer:boss"]
    cli("commit", "老大", "偏好", RULE, "--sentence", SENTENCE, "--confidence", "0.9", *boss)
    cli("remember", "Deploy with npm", "--label", "ship")
    for title in ("Never force push", "Never deploy on friday"):
        cli("remember", title, "--kind", "rule", "--source", "agent")
    cli("remember", "The panel is blue")
    cli("forget", "4")
    cli("mirror", "s1", TALK)
    cli("enter", "--chan", "mail")
    plant(path, {"chan:Mail Bridge": 2})
    cli("dedupe")
    plant(path, {"chan:QQ": 3, " chan:qq": 2, "chan:qq2": 1, "auto:chan:door+tool:bell": 5})
    return path


def plant(path, scenes):
    """Put scenes under keys that no graphmem would write, with the given strengths, into a file."""
    at = "2026-09-01T00:00:00.000Z"
    ref = "INSERT INTO scene_refs(scene_id, kind, ref_id, decayed_at, created_at) VALUES (?, 'relation', 1, ?, ?)"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for key, strength in scenes.items():
            (scene_id,) = connection.execute(
                "INSERT INTO scenes(key, strength, origin, created_at, updated_at) VALUES (?, ?, 'declared', ?, ?) "
                "RETURNING id",
                (key, strength, at, at),
            ).fetchone()
            connection.execute(ref, (scene_id, at, at))


def shell(*arguments, encoding="utf-8", **options):
    """The console entry in a process of its own, with warnings as errors; output comes back as bytes."""
    environ = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONWARNINGS": "error", **options.pop("environ", {})}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 30, **options}
    return subprocess.run([*PYTHON, *arguments], env=environ, **options)


def in_one_process(*calls, watched=()):
    """Run calls one by one in a fresh process; return what each printed, the log, and which watched modules loaded."""
    script = """if True:
        import contextlib, io, json, sys
        from graphmem.surfaces.cli import main
        calls, watched = json.loads(sys.argv[1])
        outs = []
        for arguments in calls:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                try:
                    main(arguments)
                except SystemExit as end:
                    assert end.code == 0, (arguments, out.getvalue())
            outs.append(out.getvalue())
        print(json.dumps([outs, sorted(set(watched) & sys.modules.keys())]))"""
    command = [sys.executable, "-c", script, json.dumps([calls, watched], default=str)]
    ran = subprocess.run(command, capture_output=True, check=True, text=True)
    outs, loaded = json.loads(ran.stdout)
    return outs, ran.stderr, loaded


def state(folder):
    """Every file below a folder with its bytes, its size and its time."""
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@contextlib.contextmanager
def locked(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def reference_file(path, era="relations"):
    connection = runpy.run_path(str(ROOT / "fixtures" / "make_reference_db.py"))["build"](path, era=era)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path


def scene_rows(cli, *arguments):
    return {scene["key"]: scene for scene in cli("scenes", *arguments, "--json").document}


def nested(command):
    """The words and the command, for a command and those below it."""
    found = graphmem.get_command(click.Context(graphmem), command)
    yield [command], found
    for name, below in getattr(found, "commands", {}).items():
        yield [command, name], below


def objects(result):
    return [fact["object"] for fact in result.document["relations"]]


def texts(result):
    return [hit["text"] for hit in result.document["hits"]]


def is_safe(text):
    """Whether nothing in a text can drive a terminal or turn its lines around."""
    return all(c == "\n" or (unicodedata.category(c) != "Cc" and c not in BIDI) for c in text)


# ---- what each command does


def test_enter_grows_a_scene_at_the_second_turn_and_joins_it_at_the_third(cli):
    first, second, third = (cli("enter", *BOSS, "--json").document for _ in range(3))

    assert (first["key"], first["created"]) == ("", False)
    assert (second["key"], second["created"]) == ("auto:peer:boss_chan:qq", True)
    assert (third["key"], third["created"], third["strength"]) == ("auto:peer:boss_chan:qq", False, 2)


def test_enter_says_in_words_what_became_of_the_turn(cli):
    first, second, third = (cli("enter", *BOSS, "--topic", "排班").out for _ in range(3))

    assert "no scene yet" in first
    assert "grew" in second
    assert "auto:peer:boss_chan:qq" in second
    assert "joined" in third


def test_enter_declares_the_named_scenes_and_the_one_of_the_person(cli):
    visit = cli("enter", *BOSS, "--declare", "chan:QQ", "--declare", "tool:shell", "--json").document

    assert visit["keys"] == ["chan:qq", "tool:shell", "chan:qq/peer:boss"]
    assert visit["write_keys"] == ["chan:qq/peer:boss"]
    assert visit["declared_created"] == visit["keys"]
    assert set(scene_rows(cli)) == set(visit["keys"])


def test_enter_reads_every_kind_of_feature_and_the_time(cli):
    kinds = ["--group", "g", "--tool", "t", "--topic", "x", "--topic", "y", "--part", "night"]

    for _ in range(2):
        cli("enter", *BOSS, *kinds, "--at", "2026-01-02T03:04:05+08:00")

    (scene,) = [scene for key, scene in scene_rows(cli).items() if key.startswith("auto:")]
    assert scene["features"] == 7
    assert scene["updated_at"] == "2026-01-01T19:04:05.000Z"


def test_json_shows_the_fields_and_properties_of_the_value(cli):
    names = {field.name for field in dataclasses.fields(Visit)}
    properties = {name for name, member in vars(Visit).items() if isinstance(member, property)}

    assert set(cli("enter", *BOSS, "--json").document) == names | properties


def test_match_shows_which_scene_answers_and_by_what_and_writes_nothing(cli, filled):
    before = scene_rows(cli)

    (match,) = cli("match", *BOSS, "--topic", "排班", "--json").document

    assert (match["key"], match["joins"], match["ground"]) == ("auto:peer:boss_chan:qq", True, "person")
    assert [shared["feature"] for shared in match["shared"]] == ["peer:boss", "chan:qq", "topic:排班"]
    assert scene_rows(cli) == before


def test_scenes_lists_a_key_and_what_is_below_it(cli):
    for key in ("chan:qq/peer:group_1", "chan:qq/peer:group_1/topic:menu", "chan:qq/peer:group_10"):
        cli("enter", "--declare", key)

    assert set(scene_rows(cli, "chan:qq/peer:group_1")) == {  # KEY-01
        "chan:qq/peer:group_1",
        "chan:qq/peer:group_1/topic:menu",
    }
    assert len(scene_rows(cli)) == len(scene_rows(cli, "")) == 3  # KEY-04
    assert scene_rows(cli, "chan:q") == {}


@pytest.mark.parametrize(
    ("origin", "keys"), [("emergent", {"auto:peer:boss_chan:qq"}), ("declared", {"chan:qq", "chan:qq/peer:boss"})]
)
def test_scenes_of_one_origin(cli, origin, keys):
    for _ in range(2):
        cli("enter", *BOSS, "--declare", "chan:qq")

    assert set(scene_rows(cli, "--origin", origin)) == keys


def test_evidence_lists_what_has_no_scene_yet(cli, filled):
    (bucket,) = cli("evidence", "--json").document

    assert (bucket["label"], bucket["count"]) == ("chan:mail", 1)


def test_commit_remembers_a_fact_with_all_that_was_told_of_it(cli, path):
    told = ["--sentence", SENTENCE, "--confidence", "0.9", "--session", "s1", "--turn", "3"]

    report = cli("commit", "老大", "偏好", RULE, *told, "--scene", "chan:QQ", "--scene", "auto:a", "--json").document

    assert (report["created"], report["repeated"], report["written"]) == (1, 0, 1)
    assert report["scenes"] == ["chan:qq", "auto:a"]
    (fact,) = cli("recall", "--scene", "chan:qq", "--json").document["relations"]
    assert (fact["subject"], fact["relation"], fact["object"]) == ("老大", "偏好", RULE)
    assert (fact["sentence"], fact["confidence"], fact["weight"]) == (SENTENCE, 0.9, 0.9)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT session, turn FROM evidence").fetchall() == [("s1", 3)]


def test_commit_takes_a_list_of_facts_from_a_file(cli, tmp_path):
    facts = [
        {"subject": "panel", "relation": "端口", "object": "8328", "functional": True},
        {"subject": "panel", "relation": "端口", "object": "8329", "functional": True},
    ]
    (tmp_path / "facts.json").write_text(json.dumps(facts), "utf-8")

    report = cli("commit", "--facts", tmp_path / "facts.json", "--json").document

    assert (report["created"], report["superseded"]) == (2, 1)


def test_a_fact_that_is_known_is_told_as_known(cli):
    cli("commit", "a", "b", "c")

    assert "0 new and 1 known" in cli("commit", "A ", "b", "c").out


def test_commit_that_writes_nothing_fails_and_says_why(cli):  # W11
    result = cli("commit", "", "b", "x" * 51)

    assert result.code == 1
    assert result.out == ""
    assert "nothing was remembered" in result.err
    assert "subject" in result.err


def test_commit_that_writes_a_part_succeeds_and_names_the_rest(cli, tmp_path):
    good, bad = ({"subject": name, "relation": "b", "object": "c"} for name in ("a", "x" * 51))
    (tmp_path / "facts.json").write_text(json.dumps([good, bad]), "utf-8")

    result = cli("commit", "--facts", tmp_path / "facts.json")

    assert result.code == 0
    assert "at most 50 characters" in result.err


def test_tag_attaches_facts_by_id_and_by_glob(cli, filled):
    cli("commit", "/home/newqqagent", "is", "folder")

    by_glob = cli("tag", "chan:new", "--glob", "*QQ*", "--json").document  # P10
    by_id = cli("tag", "chan:new", "--relation", "1", "--relation", "2", "--relation", "99", "--json").document

    assert (by_glob["attached"], by_glob["applied"]) == ([1], True)
    assert (by_id["attached"], by_id["known"], by_id["unknown"]) == ([2], [1], [99])
    assert objects(cli("recall", "--scene", "chan:new", "--json")) == ["folder", RULE]


def test_tag_says_that_it_makes_the_scene(cli, filled):
    dry, dry_json = (cli("tag", "chan:new", "--glob", "*QQ*", "--dry-run", *form) for form in ([], ["--json"]))
    made = cli("tag", "chan:new", "--glob", "*QQ*", "--json").document
    again, none = cli("tag", "chan:new", "--glob", "*QQ*"), cli("tag", "chan:other", "--glob", "nobody", "--json")

    assert dry.out == "would attach 1 fact to the new scene chan:new; there already: 0\n"
    assert (dry_json.document["created"], made["created"]) == (True, True)
    assert again.out.startswith("attached 0 facts to chan:new; there already: 1, which begin to fade anew\n")
    assert (none.document["created"], none.document["operation"]) == (False, None)
    assert "chan:other" not in scene_rows(cli)


def test_recall_by_situation_needs_no_words(cli, filled):
    with Memory.open(filled) as memory:
        expected = memory.recall_by_situation(Situation.of(chan="qq", peer="boss"), declared="chan:qq/peer:boss")

    found = cli("recall", *BOSS, "--json").document

    assert found["scenes"] == list(expected.scenes)
    assert found["relations"] == [dataclasses.asdict(fact) for fact in expected.relations]
    assert found["entities"] == [dataclasses.asdict(entity) for entity in expected.entities]
    assert RULE in cli("recall", *BOSS).out


def test_recall_by_situation_gives_nothing_to_another_person(cli, filled):
    assert objects(cli("recall", "--chan", "qq", "--peer", "guest", "--json")) == []


def test_recall_by_scene_reads_below_the_key_unless_exact(cli):
    cli("commit", "a", "is", "below", "--scene", "chan:qq/peer:boss")
    cli("commit", "a", "is", "above", "--scene", "chan:qq")

    assert set(objects(cli("recall", "--scene", "chan:qq", "--json"))) == {"above", "below"}
    assert objects(cli("recall", "--scene", "chan:qq", "--exact", "--json")) == ["above"]
    assert len(objects(cli("recall", "--scene", "chan:qq", "--limit", "1", "--json"))) == 1
    assert objects(cli("recall", "--scene", "chan:qq", "--limit", "0", "--json")) == []


def test_recall_by_words_within_scenes(cli):
    cli("commit", "a", "is", "here", "--scene", "chan:qq")
    cli("commit", "a", "is", "there", "--scene", "chan:mail")

    assert texts(cli("recall", "a", "--scene", "chan:qq", "--json")) == ["a is here"]
    assert set(texts(cli("recall", "A is", "--json"))) == {"a is here", "a is there"}


def test_recall_of_words_in_exact_scenes_leaves_out_what_is_below_them(cli):
    cli("commit", "a", "is", "below", "--scene", "chan:qq/peer:boss")

    assert texts(cli("recall", "a", "--scene", "chan:qq", "--json")) == ["a is below"]
    assert texts(cli("recall", "a", "--scene", "chan:qq", "--exact", "--json")) == []


@pytest.mark.parametrize("words", [[], ["fact"]])
def test_recall_of_an_empty_scene_key_means_all_scenes(cli, words):  # KEY-04
    cli("commit", "fact", "is", "somewhere", "--scene", "chan:qq")

    result = cli("recall", *words, "--scene", "", "--json")

    assert (texts(result) if words else objects(result)) == ["fact is somewhere" if words else "somewhere"]


@pytest.mark.parametrize("query", ["🎉", "a AND", "NOT", "NEAR(", 'a"b', "100%", "a_b", "C++", "memo*", "says:x"])
def test_recall_takes_every_query_as_plain_words(cli, query):  # FTS-01, FTS-02
    cli("commit", "memo", "says", f"x {query} y")
    cli("commit", "rest", "is", "something else")

    assert texts(cli("recall", query, "--json")) == [f"memo says x {query} y"]


def test_recall_by_words_knows_who_asks(cli):
    cli("commit", "gift", "is", "a watch", "--scene", "chan:qq/peer:boss")
    cli("commit", "watch", "costs", "90", "--scene", "chan:qq")
    cli("commit", "watch", "needs", "a battery", "--scene", "chan:mail")

    assert texts(cli("recall", "watch", "--chan", "qq", "--peer", "anna", "--json")) == [
        "watch costs 90",
        "watch needs a battery",
    ]
    assert texts(cli("recall", "watch", *BOSS, "--json"))[0] == "gift is a watch"
    assert texts(cli("recall", "watch", *BOSS, "--scene", "chan:qq", "--exact", "--json")) == ["watch costs 90"]


def test_recall_passes_its_options_on(cli, path):
    with Memory.open(path) as memory:
        memory.commit([Triple("panel", "uses", "npm", functional=True)], at="2026-01-01", scope="a", scenes="chan:qq")
        memory.commit([Triple("panel", "uses", "pnpm", functional=True)], at="2026-03-01", scope="a", scenes="chan:qq")
        memory.remember("Deploy the panel", pinned=True, at="2026-02-01")
        memory.mirror("s1", [Part(id="m1", author="boss", text="Where is the panel?", at="2026-04-01")])

    def recalled(*options, scope="all"):
        return set(texts(cli("recall", "panel", *options, "--scope", scope, "--json")))

    note, fact, part, old = "Deploy the panel", "panel uses pnpm", "Where is the panel?", "panel uses npm"
    assert recalled() == {note, fact, part}
    assert recalled("--kind", "note", "--kind", "part") == {note, part}
    assert recalled("--kind", "entity") == {"panel"}
    assert recalled("--since", "2026-02-15") == {fact, part}
    assert recalled("--until", "2026-02-15") == {note}
    assert recalled(scope="b") == recalled(scope="user") == {note, part}
    assert recalled("--as-of", "2026-02-15", "--kind", "relation") == {old}
    assert recalled("--mode", "graph", "--kind", "relation") == {fact}
    assert recalled("pnpm", "--mode", "keyword") == {fact}
    assert len(recalled("deploy", "--limit", "2")) == 2
    assert recalled("deploy the", "--precise") == {note}  # by its title; what the fact says is another thing
    assert recalled("uses", "--precise") == {fact}  # by a name and another word of it
    assert cli("recall", "panel at home", "--mode", "keyword").out == "nothing answers this\n"
    then = ["--as-of", "2026-02-15", "--scope", "a", "--json"]
    assert objects(cli("recall", "--scene", "chan:qq", *then)) == ["npm"]
    assert objects(cli("recall", "--chan", "qq", *then)) == ["npm"]
    assert objects(cli("recall", "--chan", "qq", "--scope", "b", "--json")) == []


def test_recall_by_words_shows_what_a_hit_is_and_when_it_was_said(cli, path):
    with Memory.open(path) as memory:
        (note,) = [memory.remember("Deploy", body="with\npnpm", at="2026-02-01T09:30:00+00:00").note]

    head, _, row = cli("recall", "deploy").out.splitlines()

    assert head.split() == ["id", "kind", "score", "when", "(UTC)", "text"]
    assert row.split() == [str(note.id), "note", "1", "2026-02-01T09:30", "Deploy", "with", "pnpm"]


def test_recall_explains_its_scores_as_a_tree(cli, filled):
    cli("commit", "panel", "包管理器", "pnpm", "--sentence", "panel 只用 pnpm。")

    shown = cli("recall", "pnpm", "Markdown", *BOSS, "--explain").out.splitlines()
    hits = cli("recall", "pnpm", "Markdown", *BOSS, "--explain", "--json").document["hits"]

    heads = [line for line in shown if "─" not in line]
    assert [line.split("  ", 1)[1].split(" (")[0] for line in heads] == [
        f"{hit['kind']} {hit['id']}: {hit['text']}" for hit in hits
    ]
    assert any(re.fullmatch(r"[├└]── words 1 x (0\.\d+) = \1: its words match: markdown", line) for line in shown)
    assert any(re.search(r"── scene 1 x (0\.\d+) = \1: ", line) for line in shown)
    assert len(shown) == sum(1 + len(hit["why"]) for hit in hits)


def test_on_a_terminal_each_hit_is_cut_to_one_line(cli, path):
    cli("commit", "memo", "says", "x", "--sentence", "y " * 300 + "end")
    ours, theirs = os.openpty()

    ran = shell("--db", path, "recall", "memo", stdout=theirs, environ={"COLUMNS": "60", "TERM": "xterm"})
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.read1(10_000).decode()).splitlines()

    assert ran.returncode == 0
    assert len(shown) == 3
    assert shown[2].split()[:3] == ["1", "relation", "1"]
    assert shown[2].endswith("…")
    assert max(map(len, shown)) <= 60
    assert "end" in cli("recall", "memo").out  # a pipe gets it all


def test_reindex_makes_the_text_index_anew(cli, path):
    cli("commit", "panel", "uses", "pnpm", "--sentence", "It is pnpm.")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM text_index")
    assert texts(cli("recall", "pnpm", "--json")) == []

    told, document = cli("reindex"), cli("reindex", "--json").document

    assert (told.out, document) == ("4 texts indexed\n", {"indexed": 4})  # two names, the fact, its sentence
    assert texts(cli("recall", "pnpm", "--json")) == ["panel uses pnpm: It is pnpm."]


def test_recall_shows_the_notes_of_a_scene(cli):
    cli("remember", "Deploy with pnpm", "--body", "Never\nnpm.", "--kind", "lesson", "--scene", "chan:qq/peer:boss")

    for arguments in (BOSS, ["--scene", "chan:qq"]):
        out = cli("recall", *arguments).out

        assert "Deploy with pnpm: Never npm." in out
        assert "lesson" in out


def test_a_recall_of_none_says_that_none_were_asked_for(cli, filled):
    assert cli("recall", "pnpm", "--limit", "0").out == "--limit 0 shows none\n"
    assert "--limit 0 shows none" in cli("recall", *BOSS, "--limit", "0").out


def test_a_span_of_no_time_is_refused_as_it_was_typed(cli, filled):
    refused = cli("recall", "pnpm", "--since", "2026-12-01", "--until", "2020-01-01")

    assert (refused.code, refused.out) == (1, "")
    assert "until = '2020-01-01'" in refused.err


def test_a_brief_without_room_says_what_was_left_out(cli, filled):
    cli("approve", "2")

    shown = cli("brief", *BOSS, "--budget", "10")

    assert shown.out == ""
    assert "--budget 10" in shown.err
    assert "left out" in shown.err


def test_a_refused_fact_is_told_in_short(cli, path):
    refused = cli("commit", "a" * 100_000, "b", "c")

    assert refused.code == 1
    assert len(refused.err) < 2000
    assert "subject" in refused.err


def test_a_part_of_the_day_alone_makes_no_scene_and_enter_says_so(cli):
    entered = cli("enter", "--part", "morning")

    assert "give --chan" in entered.out
    assert cli("enter", "--part", "noon").code == 2


@pytest.mark.parametrize(
    ("name", "value", "form"),
    [("JOURNAL_DAYS", "abc", "a number"), ("MAX_INCIDENTS", "1.5", "a whole number"), ("UI", "maybe", "true or false")],
)
def test_a_setting_that_cannot_be_read_says_what_to_give(cli, monkeypatch, name, value, form):
    monkeypatch.setenv(f"GRAPHMEM_{name}", value)

    assert cli("config").err == f"graphmem: GRAPHMEM_{name} = {value!r}: give {form}\n"


def test_a_fact_of_the_command_line_is_a_persons_unless_told_otherwise(cli):
    cli("commit", "panel", "uses", "pnpm")
    cli("commit", "panel", "needs", "node", "--source", "agent:builder")

    assert texts(cli("recall", "panel", "--trust", "user", "--kind", "relation", "--json")) == ["panel uses pnpm"]


def test_incidents_say_whose_they_are(cli):
    for _ in range(2):
        cli("record-failure", "bash", "rm: cannot remove 'a'")

    assert " user " in cli("incidents").out


def test_the_choices_of_recall_are_those_of_memory():
    options = {option.name: option.type for option in recall_command.params}

    assert tuple(options["kinds"].choices) == RECALL_KINDS
    assert tuple(options["mode"].choices) == RECALL_MODES
    assert tuple(options["trust"].choices) == SOURCE_CLASSES


def test_brief_tells_what_belongs_into_the_prompt_and_writes_nothing(cli, filled):
    before = filled.read_bytes()

    text = cli("brief", *BOSS, "--budget", "200")
    document = cli("brief", *BOSS, "Markdown", "--json").document

    assert f"- 老大 --偏好--> {RULE} ({SENTENCE})" in text.out.split("\n")
    assert text.out.endswith("\n</memory>\n")
    assert (document["shown"], document["left_out"]) == ([["relation", 1], ["note", 1]], [])
    assert cli("brief", *BOSS, "--budget", "20").out == ""
    assert RULE in cli("brief", "--scene", "chan:qq/peer:boss").out
    assert filled.read_bytes() == before


def test_turn_takes_an_event_and_gives_the_brief(cli):
    event = {"source": "qq", "payload": {"user_id": "boss"}, "session": "s1"}
    fact = {"subject": "老大", "relation": "偏好", "object": RULE}

    first = cli("turn", json.dumps({**event, "facts": [fact]}), "--json").document
    second = cli("turn", json.dumps(event, indent=2))
    third = cli("turn", json.dumps(event), "--json").document

    assert (first["brief"]["text"], first["commit"]["written"], first["visit"]["key"]) == ("", 1, "")
    assert second.out.split("\n")[2] == f"- 老大 --偏好--> {RULE}"
    assert (third["visit"]["key"], third["visit"]["strength"]) == ("auto:peer:boss_chan:qq", 2)
    assert third["commit"] is None


def test_turn_that_remembers_nothing_fails_and_says_why(cli):  # W11
    result = cli("turn", '{"source": "qq", "facts": [{"subject": "", "relation": "b", "object": "c"}]}')

    assert (result.code, result.out) == (1, "")
    assert "subject" in result.err


def test_turn_reads_its_event_from_standard_input_whatever_the_code_page(path):  # TXT-03
    event = json.dumps({"source": "微信", "text": "早上好"}, ensure_ascii=False, indent=1).encode()

    runs = [shell("--db", path, "turn", "--json", encoding="cp1252", input=event) for _ in range(2)]
    refused = shell("--db", path, "turn", input=b"\xff")

    assert [run.returncode for run in runs] == [0, 0]
    assert json.loads(runs[1].stdout)["visit"]["key"] == "auto:chan:微信"
    assert refused.returncode == 1
    assert b"no UTF-8" in refused.stderr


def test_turn_without_any_event_says_how_to_give_one(path):
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" -m graphmem --db "$1" turn <&-', sys.executable, path], capture_output=True, text=True
    )

    assert (closed.returncode, closed.stdout) == (2, "")
    assert "EVENT" in closed.stderr
    assert not path.exists()


def test_neighbours_is_a_tree_of_facts_by_hops(cli):
    for fact in (("boss", "likes", "tea"), ("tea", "grows in", "Fujian"), ("Mei", "brews", "tea")):
        cli("commit", *fact)

    shown = cli("neighbours", "boss")

    assert shown.out.splitlines() == [
        "boss (exact)",
        "  - likes -> tea",
        "    - grows in -> Fujian",
        "    <- brews - Mei",
    ]
    assert cli("neighbours", "boss", "--depth", "1").out.splitlines() == ["boss (exact)", "  - likes -> tea"]
    assert cli("neighbours", "boss", "--limit", "0").code == 0
    assert objects(cli("neighbours", "boss", "--sort", "Recent", "--json")) == ["tea", "Fujian", "tea"]


def test_neighbours_of_a_name_nobody_knows_are_none_and_that_is_said(cli, filled):
    assert cli("neighbours", "nobody", "at all") == (0, "nothing is known of nobody, at all\n", "")


def test_path_shows_the_way_fact_by_fact(cli):
    for fact in (("boss", "likes", "tea"), ("Mei", "brews", "tea"), ("far", "is", "away")):
        cli("commit", *fact)

    assert cli("path", "BOSS", "mei").out.splitlines() == [
        "boss to Mei: 2 facts",
        "  boss - likes -> tea",
        "  Mei - brews -> tea",
    ]
    assert cli("path", "boss", "far") == (0, "no facts connect boss and far\n", "")


@pytest.mark.parametrize("form", ["mermaid", "dot", "json", "graphml", "svg", "html"])
def test_graph_writes_a_picture_to_a_file_or_to_standard_output(cli, filled, tmp_path, form):
    shown = cli("graph", "--scene", "chan:qq", "--format", form)
    written = cli("graph", "--scene", "chan:qq", "--format", form, "--output", tmp_path / "picture")

    assert (shown.code, shown.err, written) == (0, "", (0, "", ""))
    assert RULE in html.unescape(shown.out)
    assert (tmp_path / "picture").read_text("utf-8") == shown.out


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_what_is_exported_is_the_same_in_a_file_and_on_standard_output(filled, tmp_path, encoding):
    for kind in ("jsonl", "mcp-memory", "dot", "svg"):
        to_file = shell("--db", filled, "export", kind, tmp_path / kind, encoding=encoding)
        shown = shell("--db", filled, "export", kind, encoding=encoding)

        assert (to_file.returncode, shown.returncode) == (0, 0)
        lines = [read.splitlines() for read in (shown.stdout, (tmp_path / kind).read_bytes())]
        assert lines[0][kind == "jsonl" :] == lines[1][kind == "jsonl" :]  # the first line of a memory tells when


def test_the_kinds_that_are_offered_are_those_there_are():
    offered = [tuple(found.params[0].type.choices) for found in (exchange.import_command, exchange.export_command)]

    assert offered == [kinds.KINDS, EXPORTS]


def test_export_tells_what_was_written_and_what_was_not(cli, filled, tmp_path):
    told = cli("export", "mcp-memory", tmp_path / "out")
    assert told.out == f"{tmp_path / 'out'}: 2 entities, 1 facts\n"
    assert told.err.startswith("note: 1 sentences and 3 notes have no place")

    assert "keep it as you keep the memory" in cli("export", "jsonl", tmp_path / "all").err
    again = cli("export", "jsonl", tmp_path / "all", "--force", "--json").document
    assert (again["kind"], again["counts"]["relations"]) == ("jsonl", 1)
    assert cli("export", "jsonl", "--json").document["error"]["type"] == "Usage"
    assert cli("export", "okf").code == 1


def test_a_whole_memory_is_carried_to_another_file(cli, filled, path, tmp_path):
    other = tmp_path / "other.db"
    cli("export", "jsonl", tmp_path / "all.jsonl")

    planned = cli("import", "jsonl", tmp_path / "all.jsonl", "--dry-run", db=other)
    assert planned.code == 0
    assert not other.exists()
    done = cli("import", "jsonl", tmp_path / "all.jsonl", db=other)
    assert (done.code, done.out.splitlines()[0].split()[:3]) == (0, ["what", "read", "new"])

    assert rows_of(other) == rows_of(path)
    assert cli("import", "jsonl", tmp_path / "all.jsonl", db=other).code == 1


def test_a_terminal_is_not_driven_by_what_is_exported(monkeypatch, cli, path):
    cli("commit", NASTY, "is", "b")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    for kind in ("jsonl", "mcp-memory", "dot", "json", "svg"):
        shown = cli("export", kind)
        assert shown.code == 0
        assert not {*"\x1b\x07\x9b\r", *BIDI} & {*shown.out}


def test_a_picture_has_one_form(cli, filled):
    asked = cli("graph", "--format", "dot", "--json")

    assert (asked.code, asked.document["error"]["type"]) == (2, "Usage")
    assert cli("graph", "--format", "json") == cli("graph", "--json")


def test_replay_ends_with_what_it_learnt(cli):  # R5
    report = cli("replay", SIX, "--json").document

    assert (report["turns"], report["unplaced"]) == (18, 6)
    assert {learnt["scene"]["key"] for learnt in report["learnt"]} == {
        f"auto:chan:{name}" for name in ("qq", "webui", "mail", "door", "timer", "garden")
    }
    assert all(learnt["scene"]["strength"] == 2 for learnt in report["learnt"])


def test_replay_shows_what_each_scene_brings_back(cli):
    shown = cli("replay", WEEK).out

    assert "auto:peer:laoda_chan:qq" in shown
    assert RULE in shown


def test_dedupe_merges_and_undo_brings_the_twins_back(cli, filled):
    before = scene_rows(cli)

    merged = cli("dedupe", "--json").document
    between = scene_rows(cli)
    undone = cli("undo", merged["operation"], "--json").document

    assert (merged["merged"], merged["applied"]) == (2, True)
    assert between["chan:qq"]["strength"] == sum(before[key]["strength"] for key in ("chan:qq", "chan:QQ", " chan:qq"))
    assert undone["applied"] is True
    assert scene_rows(cli) == before


def test_dedupe_of_a_named_file_works_on_that_file(cli, filled, tmp_path):
    other = tmp_path / "other.db"
    cli("enter", "--declare", "chan:a", db=other)

    merged = cli("dedupe", filled, "--json", db=other).document

    assert merged["merged"] == 2
    assert set(scene_rows(cli)) >= {"chan:qq"}
    assert "chan:QQ" not in scene_rows(cli)


def test_operations_lists_the_latest_first_and_when_it_was_undone(cli, filled):
    cli("dedupe")
    cli("undo", "2")

    second, first = cli("operations", "--json").document

    assert (first["id"], first["kind"], first["undone_at"]) == (1, "dedupe", None)
    assert (second["id"], second["summary"]["merged"]) == (2, 2)
    assert second["undone_at"] is not None
    assert [operation["id"] for operation in cli("operations", "--limit", "1", "--json").document] == [2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["operations"], "nothing was changed that could be undone\n"), (["operations", "--limit", "0"], "shows none")],
)
def test_a_list_without_rows_says_why(cli, path, arguments, told):
    Memory.open(path).close()

    assert told in cli(*arguments).out


@pytest.mark.parametrize("command", [["operations"], ["document", "query", "panel"]])
def test_none_are_shown_where_none_were_asked_for(cli, filled, command):
    assert cli(*command, "--limit", "0").out == "--limit 0 shows none\n"


def test_an_operation_that_was_undone_cannot_be_undone_again(cli, filled):
    cli("undo", "1")

    result = cli("undo", "1", "--json")

    assert (result.code, result.document["error"]["type"]) == (1, "Conflict")


def test_a_brief_tells_one_person_nothing_of_another(cli):
    cli("commit", "老大", "偏好", RULE, "--sentence", SENTENCE, "--scene", "chan:qq/peer:boss")

    assert cli("brief", "--chan", "qq", "--peer", "anna", RULE, "老大").out == ""
    assert RULE in cli("brief", *BOSS, RULE).out


# ---- blocks and documents


def test_a_picture_is_put_shown_saved_and_deleted(cli, path, tmp_path):
    picture, copy = tmp_path / "cat.png", tmp_path / "copy.png"
    picture.write_bytes(b"\x89PNG" * 20_000)
    told = ["--file", picture, "--modality", "image", "--mime", "image/png", "--scene", "chan:qq", "--source", "qq"]

    block = cli("block", "put", "一只猫", *told, "--json").document

    assert (block["size"], block["scenes"], block["payload"]) == (80_000, ["chan:qq"], None)
    assert cli("block", "show", block["id"], "--json").document == block
    assert "一只猫" in cli("block", "show", block["id"]).out
    assert cli("block", "show", block["id"], "--save", copy).code == 0
    assert copy.read_bytes() == picture.read_bytes()
    assert "一只猫" in cli("recall", "--scene", "chan:qq").out
    assert cli("block", "delete", block["id"], "--json").document == {"deleted": block["id"]}
    assert cli("block", "show", block["id"]).code == 3
    assert "nothing is known here" in cli("recall", "--scene", "chan:qq").out


def test_a_document_is_put_queried_and_consumed(cli, tmp_path):
    file = tmp_path / "talk.txt"
    file.write_text("nginx restart\n\x1b[2J", "utf-8")

    document = cli("document", "put", "--file", file, "--tag", "web", "--scene", "chan:qq", "--json").document

    assert (document["tags"], document["summary"]) == (["web"], "(2): nginx, restart, 2j")
    assert "nginx, restart" in cli("recall", "--scene", "chan:qq").out
    assert "nginx, restart" in cli("document", "query", "nginx").out
    assert cli("document", "query", "nginx", "--json").document[0]["access_count"] == 2
    assert cli("document", "query", "caddy").out == "no document holds these words\n"
    assert cli("document", "consume", document["id"]).out == "nginx restart\n\\x1b[2J\n"
    assert cli("document", "consume", document["id"]).code == 3


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["block", "put"], 1, "text"),
        (["block", "put", "--file", "/nowhere", "--modality", "image"], 1, "/nowhere"),
        (["block", "put", "a", "--file", ROOT / "README.md"], 1, "payload"),
        (["block", "smell"], 2, "smell"),
        (["document", "put"], 2, "TEXT"),
        (["document", "put", "a", "--file", ROOT / "README.md"], 2, "TEXT"),
        (["document", "query"], 2, "WORDS"),
        (["document", "query", " "], 1, "query"),
        (["document", "put", "a", "--block", "blk_none"], 3, "blk_none"),
    ],
)
def test_a_wrong_block_or_document_is_one_clear_line(cli, path, arguments, code, named):
    Memory.open(path).close()

    result = cli(*arguments)

    assert (result.code, result.out) == (code, "")
    assert named in result.err


def test_a_memory_is_backed_up_and_restored(cli, filled, tmp_path):
    backed_up = cli("backup", tmp_path / "copy.db")
    cli("tag", "chan:new", "--glob", "*")
    restored = cli("restore", tmp_path / "copy.db")

    assert (backed_up.code, restored.code) == (0, 0)
    assert f"{tmp_path}/copy.db: " in backed_up.out
    assert "1 relations" in backed_up.out
    assert f"the memory as it was: {filled}.before-restore" in restored.out
    assert "chan:new" not in scene_rows(cli)


def test_a_backup_is_restored_to_a_new_machine(cli, own_home):
    restored = cli("restore", SAVED, db=None)

    assert (restored.code, restored.err) == (0, "")
    assert "chan:saved" in cli("scenes", db=None).out


def test_a_memory_is_copied_and_the_same_again_is_told(cli, filled, tmp_path):
    copied = cli("copy", filled, tmp_path / "copy.db")
    again = cli("copy", filled, tmp_path / "copy.db", "--json")
    refused = cli("copy", filled, SAVED, "--json")

    assert (copied.code, copied.err) == (0, "")
    assert f"{tmp_path}/copy.db: copied, " in copied.out
    assert "1 relations" in copied.out
    assert again.document["counts"]["relations"] == 1
    assert again.document["remarks"] == [f"{tmp_path}/copy.db is the same already: nothing was copied"]
    assert (refused.code, refused.document["error"]["type"]) == (1, "Conflict")
    assert cli("scenes", db=tmp_path / "copy.db").out == cli("scenes").out


def test_a_copy_that_goes_on_tells_how_much_had_come(cli, filled, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(copying._Going, "settle", lambda going: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Memory.copy(filled, tmp_path / "copy.db")

    unfinished, copied = cli("check", db=tmp_path / "copy.db"), cli("copy", filled, tmp_path / "copy.db")

    assert (unfinished.code, "'graphmem copy' of both again goes on with it" in unfinished.err) == (1, True)
    assert (copied.code, "rows had come before" in copied.out) == (0, True)


def test_check_tells_what_is_wrong_and_repair_mends_it(cli, filled, tmp_path):
    assert cli("repair").code == 0
    sound = cli("check")
    with contextlib.closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("INSERT INTO scene_aliases SELECT 'chan:qq', MAX(id) FROM scenes")
        connection.execute("UPDATE operations SET summary = 'x' WHERE id = 1")

    broken, dry, repaired = cli("check"), cli("repair", "--dry-run"), cli("repair", "--json")

    assert (sound.code, sound.out.splitlines()[-1]) == (0, "sound")
    assert "database" in sound.out
    assert (broken.code, broken.out.splitlines()[-1]) == (1, "2 problems")
    assert (dry.code, dry.out.splitlines()[0].split(",")[0]) == (1, "would mend: scene_aliases")
    assert [len(repaired.document[name]) for name in ("mended", "left", "operations")] == [1, 1, 1]
    assert (repaired.code, cli("check").code) == (1, 1)


def test_a_backup_is_checked_where_it_lies(cli, filled, tmp_path):
    cli("backup", tmp_path / "copy.db")

    result = cli("check", tmp_path / "copy.db", "--json", db=tmp_path / "none.db")

    assert (result.code, result.document["ok"]) == (1, False)  # the twins of the fixture
    assert all("scenes" in problem or "text_" in problem for problem in result.document["problems"])


def upkeep_without_end(cli, monkeypatch, *arguments):
    """Run two passes of upkeep, then interrupt it; return what it printed and for how long it slept."""
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("graphmem.surfaces.cli.upkeep.time", types.SimpleNamespace(sleep=sleep))
    return cli("upkeep", *arguments), slept


def test_upkeep_without_end_prints_a_document_a_line(cli, filled, monkeypatch):  # CLI-03
    result, slept = upkeep_without_end(cli, monkeypatch, "--every", "1d", "--json", "--allow-shrink")

    assert (result.code, slept) == (130, [86400.0, 86400.0])
    assert [json.loads(line)["ok"] for line in result.out.splitlines()] == [True, True]
    assert "one a line" in cli("upkeep", "--help").out


def test_upkeep_without_end_that_fails_ends_with_a_line_too(cli, path):  # CLI-03
    result = cli("upkeep", "--every", "1d", "--json")

    assert [json.loads(line)["error"]["type"] for line in result.out.splitlines()] == ["StoreFailed"]


def test_an_interval_is_a_number_with_a_unit(cli, path):
    assert "write 90s, 30m, 2h or 1d" in cli("upkeep", "--every", "1w").err
    assert cli("upkeep", "--every", "0d").code == 2
    assert cli("upkeep", "--every", "999999d").code == 2  # no clock counts so far


def test_a_rehearsal_does_not_advise_one(cli, path):
    for number in range(2):
        cli("commit", "panel", f"port {number}", "80", "--scene", "chan:qq")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE scene_refs SET ref_id = ref_id + 99")

    dry, done = cli("upkeep", "--dry-run"), cli("upkeep")

    assert (dry.code, done.code) == (1, 1)
    assert "--allow-shrink" in dry.err
    assert "--dry-run" not in dry.err
    assert "--dry-run" in done.err


# ---- JSON


@pytest.mark.parametrize("command", CALLED)
@pytest.mark.parametrize("place", ["first run", "empty file", "filled"])
def test_json_is_one_document_and_nothing_else(cli, path, request, command, place):  # CLI-03
    if place == "filled":
        request.getfixturevalue("filled")
    elif place == "empty file":
        Memory.open(path).close()

    result = cli(command, *CALLS[command], "--json", db=None if place == "first run" else path)

    assert isinstance(result.document, dict | list)
    needs_something = (
        *("undo", "path", "edit", "delete", "untag", "rename", "drop", "scene"),
        *("approve", "reject", "forget", "restore-note", "part", "checkpoint"),
    )
    twins = command in ("check", "upkeep") and place == "filled"
    absent = command == "verify-forgotten" and place == "first run"
    failed = command == "embed" or twins or absent
    refused = 1 if failed else 3 if command in needs_something and place != "filled" else 0
    assert result.code == refused  # embed: no embedder is set
    assert "Traceback" not in result.err


def test_json_stays_one_document_with_logging_on(filled):  # CLI-03
    calls = [["--db", filled, "-v", command, *CALLS[command], "--json"] for command in CALLED if command != "embed"]

    outs, log, _ = in_one_process(*calls)

    assert [type(json.loads(out)) in (dict, list) for out in outs] == [True] * len(calls)
    assert "graphmem: joined" in log
    assert SENTENCE not in log


def test_a_log_goes_to_standard_error(filled):
    ran = shell("--db", filled, "-v", "enter", *BOSS, "--json")

    assert json.loads(ran.stdout)["key"] == "auto:peer:boss_chan:qq"
    assert b"graphmem: joined" in ran.stderr


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_json_document_too(cli, path, mistake):  # CLI-03
    Memory.open(path).close()
    arguments, code, kind, named = MISTAKES[mistake]

    result = cli(arguments[0], "--json", *arguments[1:])

    assert result.code == code
    assert result.err == ""
    assert result.document["error"]["type"] == kind
    assert named in result.document["error"]["message"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_on_standard_error_and_names_the_thing(cli, path, mistake):
    Memory.open(path).close()
    arguments, code, kind, named = MISTAKES[mistake]

    result = cli(*arguments)

    assert (result.code, result.out) == (code, "")
    *usage, told = result.err.splitlines()
    assert named in told
    if kind == "Usage":
        assert all(line.startswith(("Usage: graphmem ", "Try 'graphmem ")) for line in usage if line)
    else:
        assert usage == []
        assert told.startswith("graphmem: ")


@pytest.mark.parametrize("command", ["repair", "upkeep"])
def test_who_puts_a_memory_behind_a_command_is_told_where_it_belongs(cli, path, command):
    Memory.open(path).close()

    for memory in (path, "postgresql://me@db.invalid/m"):
        result = cli(command, memory, db=None)
        assert result.code == 2
        assert result.err.endswith("name a memory before the command, with --db\n")
    assert "--db" not in cli(command, "extra", db=None).err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_number_that_no_column_holds_is_wrong_usage(cli, path, command):
    Memory.open(path).close()
    for words, found in nested(command):
        for option in found.params:
            if isinstance(option.type, click.types.IntParamType) or option.type.name == "integer":
                assert isinstance(option.type, WholeNumber), option
                given = [option.opts[0], 2**63] if isinstance(option, click.Option) else [2**63]
                result = cli(*words, *given)
                assert (result.code, result.out) == (2, "")
                assert "9223372036854775807" in result.err


# ---- exit codes and streams


def test_the_console_script_and_the_module_are_one_command_line():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="graphmem")

    ran = shell("--version")

    assert script.load() is main
    assert importlib.metadata.version("graphmem").encode() in ran.stdout


@pytest.mark.parametrize("arguments", [["scenes"], ["scenes", "--json"], ["--help"], ["commit", "a", "b", "c"]])
def test_a_closed_pipe_ends_quietly_with_141(filled, arguments):
    reading, writing = os.pipe()
    os.close(reading)

    ran = shell("--db", filled, *arguments, stdout=writing)
    os.close(writing)

    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["scenes"], ["scenes", "--json"]])
def test_output_that_cannot_be_written_is_one_line_and_not_a_traceback(filled, arguments):
    with Path("/dev/full").open("wb") as full:
        ran = shell("--db", filled, *arguments, stdout=full)

    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1


def test_a_closed_standard_output_is_no_traceback(filled):
    ran = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', *PYTHON, "--db", filled, "scenes"], stderr=subprocess.PIPE, timeout=30
    )

    assert b"Traceback" not in ran.stderr


@pytest.fixture
def heeds_interrupts():
    """What this process starts heeds SIGINT, even if this process was started with `&` in a script and does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_ends_with_130_and_a_word(path, tmp_path):
    log = tmp_path / "log"
    os.mkfifo(log)
    with subprocess.Popen([*PYTHON, "--db", path, "replay", log], stderr=subprocess.PIPE) as process:
        writing = os.open(log, os.O_WRONLY)  # waits until the process reads the log

        for _ in range(20):  # one that comes between opening and reading is noticed at the next
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break

        os.close(writing)
        error = process.stderr.read()
    assert (process.returncode, error.strip()) == (130, b"interrupted")


@pytest.mark.parametrize(
    "arguments", [["enter", "--chan", "qq"], ["commit", "a", "b", "c"], ["undo", "1"], ["reindex"]]
)
def test_a_locked_file_is_busy_and_nothing_is_changed(cli, filled, monkeypatch, arguments):  # CON-01
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "0.01")
    before = scene_rows(cli)

    with locked(filled):
        text, document = cli(*arguments), cli(*arguments, "--json")

    assert (text.code, text.out, document.code, document.err) == (4, "", 4, "")
    assert str(filled) in text.err
    assert "locked" in text.err
    assert len(text.err.splitlines()) == 1
    assert document.document["error"]["type"] == "StoreBusy"
    assert scene_rows(cli) == before


READING = [
    *("scenes", "scene", "growth", "evidence", "match", "recall"),
    *("brief", "neighbours", "path", "graph", "operations", "overview"),
]


@pytest.mark.parametrize("command", READING)
def test_reading_goes_on_while_another_process_writes(cli, filled, monkeypatch, command):
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "0.01")

    with locked(filled):
        result = cli(command, *CALLS[command], "--json")

    assert result.code == 0


@pytest.mark.parametrize(
    "command",
    [
        *READING,
        "enter",
        "commit",
        "turn",
        "replay",
        "reindex",
        "edit",
        "delete",
        "purge",
        "backup",
        "restore",
        "repair",
    ],
)
def test_what_succeeds_without_a_note_is_silent_on_standard_error(cli, filled, command):
    result = cli(command, *CALLS[command])

    assert result.code == 0
    assert result.out
    assert re.sub("replaying|indexing|copying", "", result.err).strip() == ""


def test_the_command_lists_what_holds_a_secret_and_takes_it_out(cli, path):
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    with Memory.open(path) as memory:
        memory.mirror("s", [Part("1", text=f"key {token}")], redact=False)

    listed, document = cli("secrets", "scan"), cli("secrets", "scan", "--json").document
    assert "parts" in listed.out
    assert "GitHub token" in listed.out
    assert "--redact" in listed.err
    assert document["found"] == [{"table": "parts", "id": 1, "kind": "GitHub token"}]
    assert token[:8] not in f"{listed.out}{listed.err}{document}"

    taken = cli("secrets", "scan", "--redact")
    assert taken.code == 0
    assert "taken out of 1 row" in taken.err
    assert "no secrets found" in cli("secrets", "scan").out
    assert Memory.verify_forgotten(path, token).found == ()


# ---- encodings


@pytest.mark.parametrize("encoding", ["gbk", "cp1252", "ascii"])
def test_no_encoding_of_the_terminal_breaks_a_command(path, encoding):  # CLI-01
    told = ["✓ 记住 🎉", "关系 ★", "Đ 中文"]

    committed = shell("--db", path, "commit", *told, "--scene", "chan:频道🎉", encoding=encoding)
    shown = shell("--db", path, "recall", "记住", encoding=encoding)
    found = shell("--db", path, "recall", "记住", "--json", encoding=encoding)
    failed = shell("--db", path.with_name("没有🎉.db"), "scenes", encoding=encoding)
    failed_json = shell("--db", path.with_name("没有🎉.db"), "scenes", "--json", encoding=encoding)
    misused = shell("--db", path, "命令🎉", encoding=encoding)

    runs = [committed, shown, found, failed, failed_json, misused]
    assert [ran.returncode for ran in runs] == [0, 0, 0, 1, 1, 2]
    assert not any(b"Traceback" in ran.stderr for ran in runs)
    (hit,) = json.loads(found.stdout)["hits"]
    assert hit["text"] == " ".join(told)
    assert "没有🎉.db" in json.loads(failed_json.stdout)["error"]["message"]


def test_the_body_of_a_note_is_utf_8_whatever_the_code_page(path):  # TXT-03
    written = shell(
        "--db", path, "remember", "Deploy", "--body", "-", "--json", encoding="latin-1", input="发布用 pnpm".encode()
    )
    changed = shell("--db", path, "notes", "edit", "1", "--body", "-", encoding="latin-1", input=b"n\xe4")

    assert json.loads(written.stdout)["note"]["body"] == "发布用 pnpm"
    assert (changed.returncode, changed.stdout) == (1, b"")
    assert b"--body" in changed.stderr
    assert b"UTF-8" in changed.stderr


def test_facts_on_standard_input_are_utf_8_whatever_the_code_page(path):  # TXT-03
    facts = [{"subject": "中文 ★ Đ", "relation": "是", "object": "🎉"}]

    ran = shell(
        "--db", path, "commit", "--facts", "-", encoding="cp1252", input=json.dumps(facts, ensure_ascii=False).encode()
    )

    assert ran.returncode == 0
    with Memory.open(path) as memory:
        (hit,) = memory.recall("中文")
    assert hit.text == "中文 ★ Đ 是 🎉"


def test_arguments_that_are_no_utf_8_are_stored_with_a_note(path):  # TXT-01
    ran = shell("--db", path, "commit", b"ok \xff", "is", "stored")

    assert ran.returncode == 0
    assert b"U+FFFD" in ran.stderr
    with Memory.open(path) as memory:
        assert memory.recall("stored")[0].text.startswith("ok \ufffd")


def test_a_path_that_is_no_utf_8_is_named_in_json(tmp_path):
    ran = shell("--db", os.fsencode(tmp_path) + b"/\xff.db", "scenes", "--json")

    assert ran.returncode == 1
    assert "does not exist" in json.loads(ran.stdout)["error"]["message"]


# ---- bad input


def bad_file(kind, folder):
    """Put a file that is no good memory into a folder; return its path."""
    file = folder / "bad.db"
    if kind == "folder":
        file.mkdir()
    elif kind == "text file":
        file.write_text("Dear diary, today nothing was remembered.\n" * 40, "utf-8")
    elif kind == "a byte":
        file.write_bytes(b"x")
    elif kind == "truncated":
        with Memory.open(folder / "whole.db") as memory:
            memory.commit(Triple(f"s{n}", "is", f"o{n}") for n in range(200))
        file.write_bytes((folder / "whole.db").read_bytes()[:20_000])
    elif kind == "of another program":
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE songs(title TEXT)")
    elif kind == "of a newer graphmem":
        Memory.open(file).close()
        with contextlib.closing(sqlite3.connect(file)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute(f"PRAGMA user_version = {version + 1}")
    elif kind == "in a missing folder":
        file = folder / "missing" / "bad.db"
    return file


BAD_FILES = ["folder", "text file", "a byte", "truncated", "of another program", "of a newer graphmem"]


@pytest.mark.parametrize(
    ("kind", "command"),
    # A restore takes the place of a bad file, which is kept; the settings say where the file lies and leave it alone.
    [(kind, command) for kind in BAD_FILES for command in CALLED if command not in ("restore", *WITHOUT)]
    + [("in a missing folder", command) for command in CALLED if command not in WITHOUT]
    + [
        ("missing", command)
        for command in CALLED
        if command
        not in (
            *("enter", "commit", "turn", "replay", "block", "document", "remember", "record-failure", "restore"),
            *(*WITHOUT, "mirror", "harvest", "import", "serve"),
        )
    ],
)
def test_a_bad_file_is_one_clear_line_and_nothing_is_touched(cli, tmp_path, kind, command):
    folder = tmp_path / "files"
    folder.mkdir()
    file = bad_file(kind, folder)
    before = state(folder)

    result = cli(command, *CALLS[command], db=file)

    assert (result.code, result.out) == (1, "")
    assert str(file) in result.err
    assert len(result.err.splitlines()) == 1
    assert state(folder) == before


@pytest.mark.parametrize("kind", ["missing", *BAD_FILES])
@pytest.mark.parametrize("mode", [["--dry-run"], []], ids=["dry", "real"])
def test_dedupe_of_a_bad_file_is_one_clear_line_and_nothing_is_touched(cli, tmp_path, kind, mode):
    folder = tmp_path / "files"
    folder.mkdir()
    file = bad_file(kind, folder)
    before = state(folder)

    result = cli("dedupe", *mode, file, db=None)

    assert (result.code, result.out) == (1, "")
    assert str(file) in result.err
    assert len(result.err.splitlines()) == 1
    assert state(folder) == before


@pytest.fixture
def closed_folder(filled):
    """A folder that everybody may read and nobody but root may write, with a memory in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "memory.db").write_bytes(filled.read_bytes())
        (folder / "memory.db").chmod(0o444)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


def without_privileges(*arguments):
    """Run the command line in a forked child that has dropped root."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            try:
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setgid(NOBODY)
                    os.setuid(NOBODY)
                sys.stdout, sys.stderr = io.TextIOWrapper(out, "utf-8"), io.TextIOWrapper(err, "utf-8")
                main([str(argument) for argument in arguments])
            except SystemExit as end:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(end.code)
            finally:
                os._exit(99)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return Result(os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode())


@pytest.mark.parametrize("arguments", [["commit", "a", "b", "c"], ["scenes"]], ids=lambda arguments: arguments[0])
def test_a_file_without_write_permission_is_one_clear_line(closed_folder, arguments):
    before = state(closed_folder)

    result = without_privileges("--db", closed_folder / "memory.db", *arguments)

    assert (result.code, result.out) == (1, "")
    assert str(closed_folder / "memory.db") in result.err
    assert "permission" in result.err
    assert len(result.err.splitlines()) == 1
    assert state(closed_folder) == before


def test_a_dry_run_needs_no_write_permission(closed_folder):
    before = state(closed_folder)

    result = without_privileges("dedupe", "--dry-run", closed_folder / "memory.db", "--json")

    assert (result.code, result.document["merged"]) == (0, 2)
    assert state(closed_folder) == before


@pytest.mark.parametrize("command", ["enter", "match"])
@pytest.mark.parametrize("blank", [[], ["--chan", "  "], ["--peer", "assistant"], ["--topic", "", "--peer", ""]])
def test_an_empty_situation_is_no_error_and_writes_nothing(cli, path, command, blank):  # E7
    Memory.open(path).close()

    result = cli(command, *blank, "--json")

    assert result.code == 0
    assert not result.document or (result.document["key"], result.document["keys"]) == ("", [])
    assert cli("evidence", "--json").document == cli("scenes", "--json").document == []


@pytest.mark.parametrize("key", ["///", "\u200b", "\u00ad/ \u202e"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["enter", *BOSS, "--declare"],
        ["commit", "a", "b", "c", "--scene"],
        ["recall", "--scene"],
        ["scenes"],
        ["tag", "--glob", "*"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_key_of_which_nothing_is_left_is_refused_by_name(cli, filled, key, arguments):
    before = scene_rows(cli)

    result = cli(*arguments, key)

    assert (result.code, result.out) == (1, "")
    assert ascii(key)[1:-1] in result.err
    assert len(result.err.splitlines()) == 1
    assert scene_rows(cli) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["enter", "--chan", "qq", "--declare", "///"],
        ["enter", "--chan", "qq", "--at", "yesterday"],
        ["commit", "a", "b", "c", "--scene", "///"],
        ["commit", "a", "b", "c", "--confidence", "2"],
        ["commit", "", "b", "c"],
        ["remember", ""],
        ["remember", "a", "--body", "password=Tr0ub4dor9"],
        ["remember", "a", "--at", "yesterday"],
        ["record-failure", "", "it broke"],
        ["enter", "--chan", "qq", "--declare", "password=Tr0ub4dor9"],
        ["block", "put", ""],
        ["document", "put", " "],
        ["replay", "missing.jsonl"],
        ["replay", ROOT / "README.md"],
        ["turn", "no json"],
        ["turn", "{}{}"],
        ["turn", ""],
        ["turn", "[]"],
        ["turn", '{"source": "qq", "payload": {"scene_policy": "off"}}'],
        ["turn", '{"source": "qq", "payload": {"scene": "///"}}'],
        ["turn", '{"source": "qq", "payload": {"user_id": []}}'],
        ["turn", '{"payload": {"no_memory": true}, "facts": [{"subject": "a", "relation": "b", "object": "c"}]}'],
    ],
    ids=lambda arguments: " ".join(map(str, arguments))[:40],
)
def test_what_is_refused_makes_no_new_file(cli, tmp_path, arguments):
    folder = tmp_path / "files"
    folder.mkdir()

    result = cli(*arguments, db=folder / "new.db")

    assert result.code == 1
    assert state(folder) == {}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"{}", "facts.json"),
        (b"[]", "facts.json"),
        (b"[{", "facts.json"),
        (b"\xff[]", "facts.json"),
        (b'["a"]', "facts[0]"),
        (b'[{"subject": "a", "relation": "b", "object": "c"}, {"subject": "a"}]', "facts[1]"),
        (b'[{"subject": "a", "relation": "b", "object": 5}]', "facts[0]"),
        (b'[{"subject": "a", "relation": "b", "object": "c", "weight": 1}]', "weight"),
        (b'[{"subject": "a", "relation": "b", "object": "c", "confidence": NaN}]', "facts"),
        (b'[{"subject": "a", "relation": "b", "object": "c", "valid_from": "x"}]', "valid_from"),
        (b'[{"subject": "a", "relation": "b", "object": "c", "functional": "no"}]', "functional"),
        (b"[" * 100_000, "facts.json"),
    ],
    ids=lambda value: value[:60].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_a_broken_list_of_facts_is_refused_by_place_and_nothing_is_written(cli, path, tmp_path, content, named):
    Memory.open(path).close()
    (tmp_path / "facts.json").write_bytes(content)

    result = cli("commit", "--facts", tmp_path / "facts.json", "--scene", "chan:qq")

    assert (result.code, result.out) == (1, "")
    assert named in result.err
    assert len(result.err.splitlines()) == 1
    assert scene_rows(cli) == {}


def test_a_list_of_facts_may_start_with_a_byte_order_mark(cli, tmp_path):
    (tmp_path / "facts.json").write_bytes(b'\xef\xbb\xbf[{"subject": "a", "relation": "b", "object": "c"}]')

    assert cli("commit", "--facts", tmp_path / "facts.json").code == 0


# ---- what reaches the terminal


def test_control_characters_in_stored_text_never_reach_the_terminal(cli, path):
    with Memory.open(path) as memory:
        situation = Situation.of(chan="qq", peer="boss")
        memory.enter_scene(situation)
        scene = memory.enter_scene(situation).key
        memory.commit([Triple(NASTY, NASTY, NASTY, sentence=NASTY)], scenes=[scene])
    plant(path, {f"chan:{NASTY}": 1, f"chan:{NASTY}!": 1})

    shown = [cli(*arguments) for arguments in (["scenes"], ["recall", *BOSS], ["recall", "a"], ["dedupe"])]
    shown += [cli("path", NASTY, NASTY), *(cli("graph", "--format", form) for form in ("mermaid", "dot", "json"))]
    shown += [cli("recall", "a", *options) for options in (["--explain"], ["--kind", "entity"], ["--precise"])]
    shown += [cli("neighbours", "a"), cli("neighbours", f"{NASTY} of old")]

    assert all(result.code == 0 and is_safe(result.out) and is_safe(result.err) for result in shown)
    assert "\\x1b[2J" in shown[1].out


@pytest.mark.parametrize(
    "arguments",
    [
        ["commit", NASTY * 5, "b", "c"],
        ["commit", "a", "b", "c", "--scene", f"///{BIDI}"],
        ["scenes", "--origin", NASTY],
        ["recall", "a", NASTY],
        ["path", "a", NASTY],
        ["replay", NASTY],
        [NASTY],
    ],
    ids=lambda arguments: arguments[0][:10] if arguments[0].isprintable() else "command",
)
def test_control_characters_in_arguments_are_not_echoed(cli, arguments):
    result = cli(*arguments)

    assert result.code in (1, 2)
    assert is_safe(result.err)


def test_wide_spaces_and_joined_emoji_are_shown_as_they_are(cli):  # KEY-11: display text unchanged
    sentence = "全角　空格，一家人👨‍👩‍👧"
    cli("commit", "a", "b", "c", "--sentence", sentence, "--scene", "chan:qq")

    assert sentence in cli("recall", "--scene", "chan:qq").out


def test_no_row_of_a_table_is_cut(cli):
    names = ["s" * 50, "r" * 50, "o" * 50]
    cli("commit", *names, "--sentence", "w " * 150 + "end", "--scene", "chan:qq")

    shown = cli("recall", "--scene", "chan:qq").out

    assert re.sub(r"\s+", "", shown).count("w") >= 150
    assert "end" in shown
    assert "…" not in shown


# ---- settings


def test_the_option_wins_over_the_environment(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_DB", str(tmp_path / "environment.db"))

    cli("enter", "--declare", "chan:a", db=tmp_path / "option.db")
    cli("enter", "--declare", "chan:b", db=None)

    for name, key in (("option", "chan:a"), ("environment", "chan:b")):
        with Memory.open(tmp_path / f"{name}.db", create=False) as memory:
            assert [scene.key for scene in memory.scenes()] == [key]


def test_without_a_name_the_memory_lies_in_the_data_folder_for_its_owner_alone(cli, own_home):
    cli("enter", "--declare", "chan:a", db=None)

    file = own_home / "data" / "graphmem" / "memory.db"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_memory_without_a_file_makes_no_file(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert cli("replay", SIX, db=":memory:").code == 0
    assert state(tmp_path) == {}


def test_a_data_folder_that_cannot_be_made_is_one_clear_line(cli, own_home):
    (own_home / "data").write_text("a file stands where the folder should be", "utf-8")

    result = cli("scenes", db=None)

    assert (result.code, result.out) == (1, "")
    assert str(own_home / "data") in result.err
    assert len(result.err.splitlines()) == 1


def test_settings_come_from_a_file_and_the_environment_wins(cli, tmp_path, monkeypatch):
    settings = tmp_path / "graphmem.toml"
    settings.write_text("visits_to_grow = 1\n[weights]\nmood = 0.9\n", "utf-8")

    by_file = cli("--config", settings, "enter", *BOSS, "--json").document
    monkeypatch.setenv("GRAPHMEM_CONFIG", str(settings))
    by_name = cli("enter", "--chan", "a", "--json").document
    monkeypatch.setenv("GRAPHMEM_VISITS_TO_GROW", "2")
    by_environment = cli("enter", "--chan", "b", "--json").document

    assert [by_file["created"], by_name["created"], by_environment["created"]] == [True, True, False]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, "graphmem.toml"),
        ("x = ", "graphmem.toml"),
        ("busy_timeot = 1", "busy_timeot"),
        ("timezone = 5", "timezone"),
    ],
)
def test_bad_settings_are_refused_by_name(cli, tmp_path, content, named):
    settings = tmp_path / "graphmem.toml"
    if content is not None:
        settings.write_text(content, "utf-8")

    result = cli("--config", settings, "scenes")

    assert (result.code, result.out) == (1, "")
    assert named in result.err
    assert len(result.err.splitlines()) == 1


def test_a_bad_variable_is_refused_by_name(cli, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_BUSY_TIMEOUT", "soon")

    result = cli("enter", *BOSS)

    assert result.code == 1
    assert "GRAPHMEM_BUSY_TIMEOUT" in result.err


def test_embed_without_the_setting_names_the_remedy(cli, filled):
    result = cli("embed")

    assert (result.code, result.out) == (1, "")
    assert len(result.err.splitlines()) == 1
    for remedy in ("semantic = true", "GRAPHMEM_SEMANTIC=true", "pip install 'graphmem[semantic]'"):
        assert remedy in result.err


# ---- dry runs


@pytest.mark.parametrize(
    "arguments",
    [
        ["dedupe", "--dry-run"],
        ["undo", "1", "--dry-run"],
        ["purge", "--relation", "偏好", "--hard", "--dry-run"],
        ["tag", "chan:new", "--glob", "*", "--dry-run"],
        ["tag", "chan:qq", "--relation", "1", "--dry-run"],
        ["untag", "chan:qq/peer:boss", "--relation", "1", "--dry-run"],
        ["rename", "chan:qq", "chan:tencent", "--dry-run"],
        ["drop", "chan:qq", "--below", "--dry-run"],
        ["scenes", "reset", "--emergent", "--dry-run"],
    ],
    ids=" ".join,
)
def test_a_dry_run_changes_no_byte(cli, filled, arguments):  # BAK-06
    before = state(filled.parent)

    text, document = cli(*arguments), cli(*arguments, "--json")

    assert (text.code, document.code) == (0, 0)
    assert "would" in text.out
    assert document.document["applied"] is False
    assert {name: content for name, (content, _) in state(filled.parent).items()} == {
        name: content for name, (content, _) in before.items()
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["dedupe"],
        ["undo", "1"],
        ["tag", "chan:new", "--glob", "*"],
        ["untag", "chan:qq/peer:boss", "--relation", "1"],
        ["rename", "chan:qq", "chan:tencent"],
        ["drop", "chan:qq", "--below"],
        ["scenes", "reset", "--emergent"],
    ],
    ids=" ".join,
)
def test_a_dry_run_tells_the_numbers_of_the_real_run(cli, filled, arguments):  # DUP-08, BAK-06
    dry = cli(*arguments, "--dry-run", "--json").document
    real = cli(*arguments, "--json").document

    own = {"applied"} if arguments == ["undo", "1"] else {"applied", "operation", "remarks", "backup"}
    assert {name: value for name, value in dry.items() if name not in own} == {
        name: value for name, value in real.items() if name not in own
    }
    assert (dry["applied"], real["applied"]) == (False, True)


def test_a_dry_run_of_dedupe_shows_what_would_be_merged(cli, filled):
    shown = cli("dedupe", "--dry-run", filled, db=None)

    assert shown.code == 0
    assert "would" in shown.out
    assert "chan:QQ" in shown.out
    assert "auto:chan:door+tool:bell" in shown.out
    assert "chan:qq2" not in shown.out


@pytest.mark.parametrize("era", ["relations", "block"])
def test_dedupe_of_a_reference_file_tells_and_never_applies(cli, tmp_path, era):
    file = reference_file(tmp_path / "graph.db", era)
    before = state(tmp_path)

    dry = cli("dedupe", "--dry-run", file, "--json", db=None).document
    real = cli("dedupe", file, db=None)

    assert (len(dry["groups"]), dry["scenes_before"], dry["scenes_after"]) == (8, 65, 57)
    chief = dry["groups"][0]
    assert (chief["strength"], chief["features"], chief["refs"], chief["refs_moved"]) == (272, 6, 210, 210)
    assert (real.code, real.out) == (1, "")
    assert "--dry-run" in real.err
    assert len(real.err.splitlines()) == 1
    assert state(tmp_path) == before


def test_a_dry_run_on_the_default_memory_leaves_every_byte_too(cli, own_home):
    folder = own_home / "data" / "graphmem"
    folder.mkdir(parents=True)
    script = "import os, sys, graphmem; m = graphmem.Memory.open(sys.argv[1]); m.declare_scene('chan:a'); os._exit(0)"
    subprocess.run([sys.executable, "-c", script, folder / "memory.db"], check=True)
    before = state(folder)

    result = cli("dedupe", "--dry-run", "--json", db=None)

    assert (result.code, result.document["scenes_before"]) == (0, 1)
    assert "memory.db-wal" in before
    assert state(folder) == before


def test_a_dry_run_before_the_first_run_makes_nothing(cli, own_home):
    cli("dedupe", "--dry-run", db=None)

    assert state(own_home) == {}


# ---- help and start-up


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_and_every_option_a_help_text(cli, command):
    for words, found in nested(command):
        shown = cli(*words, "--help", db=None)

        assert (shown.code, shown.err) == (0, "")
        assert "Example:\n" in shown.out
        assert re.search(rf"^    graphmem (--db \S+ )?{' '.join(words)}\b", shown.out, re.MULTILINE)
        assert [option.name for option in found.params if isinstance(option, click.Option) and not option.help] == []
        assert ("--json" in shown.out) == (command in CALLED)
        assert cli(*words, "-h", db=None) == shown


def test_the_list_of_commands_cuts_no_sentence(cli):
    shown = cli("--help", db=None).out

    assert all(re.search(rf"^  {command} ", shown, re.MULTILINE) for command in COMMANDS)
    assert re.findall(r"^  [a-z]+ .*\.\.\.$", shown, re.MULTILINE) == []


def test_the_examples_in_help_run(cli, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHMEM_DB", str(path))
    monkeypatch.setenv("GRAPHMEM_SEMANTIC", "true")
    monkeypatch.setattr("graphmem.semantic.bundled_embedder", HashEmbedder)
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    cli("replay", WEEK)
    for title, source in (("Tea at four", "user"), ("Be brief", "agent"), ("Be long", "agent"), ("Old", "user")):
        cli("remember", title, "--kind", "rule", "--source", source)
    cli("forget", "4")
    for _ in range(3):
        plant(path, {"chan:QQ": 1})
        cli("dedupe")
    (tmp_path / "backup.db").write_bytes(path.read_bytes())
    (tmp_path / "arbiter.py").write_text("print('leave')")
    helps = [graphmem.help, *(found.help for command in CALLED for _, found in nested(command))]
    examples = [line.strip() for text in helps for line in inspect.cleandoc(text).splitlines() if " graphmem " in line]

    assert len(examples) > len(CALLED)
    for example in examples:
        assert cli(*shlex.split(example)[1:], db=None).code == 0, example


def test_help_loads_nothing_heavy():
    calls = [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)]

    *_, loaded = in_one_process(*calls, watched=["numpy", "networkx", "sqlite_utils", "rich", "asyncio"])

    assert loaded == []


def test_what_is_asked_once_loads_no_numpy(filled):
    calls = [
        ["scenes"],
        ["recall", "--scene", "chan:qq"],
        ["recall", "纯文本"],
        ["commit", "a", "b", "c", "--scene", "chan:qq"],
        ["evidence"],
        ["neighbours", "a"],
    ]

    *_, loaded = in_one_process(
        *(["--db", filled, *call] for call in calls), watched=["numpy", "networkx", "sqlite_utils"]
    )

    assert loaded == []


OF_OTHER_COMMANDS = {
    *("asyncio", "decimal", "hashlib", "importlib.metadata", "inspect", "json", "logging", "networkx", "numpy"),
    *("pathlib", "pickle", "regex", "rich", "shlex", "snowballstemmer", "sqlite_utils", "subprocess", "tempfile"),
    *("tomllib", "urllib.parse", "zoneinfo"),
}


SHOWN = {
    "core.addresses",
    "surfaces.cli.group",
    "surfaces.opening",
    "surfaces.output",
    "surfaces.places",
    "surfaces.wire",
}
OF_SCENES = {
    *(
        "memory",
        "maintenance",
        "curation",
        "consolidation",
        "sessions",
        "trees",
        "files",
        "arguments",
        "config",
        "projects",
    ),
    *("core.choices", "core.keys", "core.policies", "core.situations", "core.times"),
    *("graph.matching", "graph.scenes", "graph.validity"),
    *("store.blobs", "store.connection", "store.database", "store.lists", "store.opening", "store.postings"),
    *("store.schema", "store.transaction"),
}


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (["--help"], SHOWN),
        (
            ["--db", "FILE", "recall", "--scene", "chan:qq"],
            SHOWN | OF_SCENES | {"surfaces.cli.recall", "surfaces.tables", "core.model.recalled", "records.scopes"},
        ),
        (
            ["--db", "FILE", "enter", "--chan", "qq", "--peer", "boss"],
            SHOWN | OF_SCENES | {"surfaces.cli.scenes", "core.model.visits", "store.sqlite"},
        ),
    ],
    ids=["help", "recall", "enter"],
)
def test_a_command_starts_with_what_it_needs_and_no_more(filled, call, allowed):
    told = "import sys; print(*sorted(sys.modules), sep='\\n', file=sys.stderr)"
    script = (
        f"import atexit, sys; from graphmem.surfaces.cli import main; atexit.register(lambda: exec({told!r})); main()"
    )
    call = [str(filled) if word == "FILE" else word for word in call]

    def loaded(code, *arguments):
        ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        return set(ran.stderr.split())

    for _ in range(3):  # so that the turn finds its scene
        last = loaded(script, *call)
    needed = last - loaded(f"import click, sqlite3; {told}")

    assert needed & OF_OTHER_COMMANDS == set()
    own = {name.removeprefix("graphmem.") for name in needed if name.startswith("graphmem.")}
    packages = {name for name in own if any(other.startswith(f"{name}.") for other in own)}
    assert own - packages <= allowed | {"errors", "late", "log"}


def test_a_warning_has_its_form_though_logging_is_loaded_late(filled):
    ran = shell("--db", filled, "scenes", environ={"GRAPHMEM_COLOUR": "red"})

    assert ran.stderr.startswith(b"graphmem: GRAPHMEM_COLOUR is no setting; known are ")


def test_the_readme_names_the_commands_that_there_are():
    readme = (ROOT / "README.md").read_text("utf-8")
    fences = "".join(re.findall(r"^```\w*\n(.*?)^```", readme, re.DOTALL | re.MULTILINE))
    lines = re.findall(r"^(?:\$ )?graphmem (.*)", fences, re.MULTILINE)
    used = {re.sub(r"^(-v |--(db|config)[ =]\S+ )*", "", line).split()[0] for line in lines}
    table = set(re.findall(r"^\| `graphmem ([\w-]+)", readme, re.MULTILINE))

    assert table == {*COMMANDS, "hook"}
    assert used <= set(COMMANDS)


@pytest.mark.parametrize("arguments", [["dedupe", "--dry-run"], ["verify-forgotten", "pelican-42"]])
def test_only_of_a_file_that_was_named_a_missing_log_is_told(cli, filled, arguments):
    own, named = cli(*arguments), cli(*arguments, filled)

    assert "-wal" not in own.err
    assert "-wal beside it" in named.err
    assert all("-wal" not in remark for remark in cli(*arguments, "--json").document["remarks"])


# ---- forgetting


def test_a_scope_is_forgotten_for_good_and_the_command_proves_it(cli, path, tmp_path):
    with Memory.open(path) as memory:
        memory.commit([Triple("pelican-42", "likes", "tea", sentence="pelican-42 and ann.")], scope="a")
        memory.commit([Triple("ann", "likes", "milk", sentence="pelican-42 and ann.")], scope="b")
        memory.remember("pelican-42 is here", scope="a")
        memory.mirror("s1", [Part("m1", text="I am pelican-42")], scope="a")
    before = cli("verify-forgotten", "pelican-42")
    dry = cli("purge", "--scope", "a", "--hard", "--dry-run")
    purged = cli("purge", "--scope", "a", "--hard")
    left = cli("verify-forgotten", "PELICAN-42", "--json")
    cli("purge", "--entity", "ann", "--hard")
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    after = cli("verify-forgotten", "pelican-42", copy, db=tmp_path / "other.db")

    assert (before.code, "notes.title" in before.out) == (1, True)
    assert "1 fact would be deleted for good" in dry.out
    assert "1 note forgotten for good" in purged.out
    assert "1 part of a session forgotten for good" in purged.out
    assert "entities removed: pelican-42, tea" in purged.out
    assert "sentence 1 tells of it too and stays" in purged.err
    assert (left.code, left.document["ok"]) == (1, False)
    assert {"where": "sentences.text", "count": 1, "offset": None} in left.document["found"]
    assert (after.code, after.out) == (0, "nothing is left of it\n")


def test_scenes_are_forgotten_with_all_below_them(cli, path):
    cli("commit", "one", "is", "inside", "--scene", "chan:qq/peer:ann")

    purged = cli("purge", "--scene", "chan:QQ", "--hard")

    assert "scenes removed: chan:qq/peer:ann" in purged.out
    assert cli("scenes", "--json").document == []


def test_a_purge_says_what_it_spares_and_how_many_scenes_went(cli, path):
    with Memory.open(path) as memory:
        memory.commit([Triple("ann", "likes", "tea")], scenes=["chan:qq", "auto:chan:qq"], session="s1")
        memory.commit([Triple("ann", "likes", "tea")], scenes="chan:qq/peer:bob", session="s2")

    dry = cli("purge", "--scene", "chan:qq", "--dry-run")
    as_json = cli("purge", "--scene", "chan:qq", "--dry-run", "--json")
    session = cli("purge", "--session", "s1", "--hard")
    scenes = cli("purge", "--scene", "chan:qq", "--hard")

    assert "0 facts would be deleted\n1 fact would be spared, told elsewhere too\n" in dry.out
    assert "scenes that hold them too: auto:chan:qq\n" in dry.out
    assert (as_json.document["spared"], as_json.document["spared_in"]) == ([1], ["auto:chan:qq"])
    assert "1 fact spared, told elsewhere too\n1 saying of spared facts removed for good\n" in session.out
    assert "2 scenes removed: chan:qq, chan:qq/peer:bob\n" in scenes.out


def test_a_backup_without_its_payloads_is_refused_unless_told(cli, path, tmp_path):
    with Memory.open(path) as memory:
        memory.put_block("a rota", modality="image", payload=b"x" * 70_000, mime="image/png")
    cli("backup", tmp_path / "copy.db")
    shutil.rmtree(tmp_path / "copy.db.blobs")

    refused = cli("restore", tmp_path / "copy.db", db=tmp_path / "new.db")
    made = (tmp_path / "new.db").exists()
    restored = cli("restore", tmp_path / "copy.db", "--without-payloads", db=tmp_path / "new.db")

    assert (refused.code, refused.out, made) == (1, "", False)
    assert "--without-payloads" in refused.err
    assert (restored.code, "1 blocks" in restored.out, "is missing" in restored.err) == (0, True, True)


def test_failures_are_recorded_listed_and_forgotten(cli, path):
    told = cli("record-failure", "bash", "rm: cannot remove 'a'")
    assert told.out == "incident 1: new, seen 1 time: bash|rm: cannot remove <q>\n"
    assert cli("record-failure", "bash", "rm: cannot remove 'b'").out.startswith(
        "incident 1: known, seen 2 times; it is"
    )

    listed = cli("incidents", "--json").document
    assert [(one["count"], one["sample"]) for one in listed] == [(2, "rm: cannot remove 'b'")]
    assert "cannot remove 'b'" in cli("incidents").out

    assert cli("record-failure", "grep", "").out.endswith(": new, seen 1 time: grep|\n")
    assert "(failed without a word)" in cli("incidents").out
    assert cli("incidents", "--forget", "2").code == 0

    assert cli("incidents", "--forget", "1").out == "forgotten: bash|rm: cannot remove <q>\n"
    assert cli("incidents").out == "no open incidents; --all shows the others too\n"


def test_a_failure_is_read_from_standard_input(path):
    for arguments in (["make"], ["make", "-"]):
        ran = shell("--db", str(path), "record-failure", *arguments, input=b"make: *** [all] Error 2\n\xff")
        assert ran.returncode == 0, ran.stderr
    with Memory.open(path) as memory:
        assert [(one.count, one.sample) for one in memory.incidents()] == [(2, "make: *** [all] Error 2 … \ufffd")]


@pytest.mark.parametrize("options", [["--json"], ["--kind", "lesson"], ["--limit", "3"], ["--scope", "all"]])
def test_options_of_a_list_of_notes_are_not_passed_over_by_its_commands(cli, options):
    cli("remember", "pelican")

    result = cli("notes", *options, "search", "pelican")

    assert (result.code, "behind 'search'" in result.out + result.err) == (2, True)
    assert cli("notes", "search", "pelican").code == 0


def test_a_shell_completes_commands_and_options(monkeypatch):
    def completed(*words):
        asked = {
            "_GRAPHMEM_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        ran = subprocess.run(
            [sys.executable, "-m", "graphmem"], env={**os.environ, **asked}, capture_output=True, text=True, check=True
        )
        return [line.partition(",")[2] for line in ran.stdout.splitlines()]

    assert completed("graphmem", "ev") == ["evidence"]
    assert completed("graphmem", "notes", "--sta") == ["--status"]
    assert completed("graphmem", "notes", "--status", "arch") == ["archived"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_graphmem(cli, shell):
    assert f"_GRAPHMEM_COMPLETE={shell}_complete" in cli("completion", shell).out
