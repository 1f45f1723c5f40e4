"""The command line answers and refuses as Python does: the calls of `contract`, as commands with --json."""

import json

import pytest
from contract import EVENT, HERE
from support import place_of
from test_store import CONSUMED, fill

from graphmem import GraphmemError, Memory
from graphmem.surfaces.cli import main
from graphmem.surfaces.verbs import verb_of
from graphmem.surfaces.wire import exit_code, refusal_of, to_json

PERSON = {"source": "user"}
SITUATION = ["--chan", "qq", "--peer", "boss"]
# Commands that give their list a name.
NAMED = {"history": "hits", "notes": "notes", "recall": "hits", "rules_for": "rules"}
# verb, arguments in JSON, the command that says the same.
SAID = [
    ("approve", {"note_id": 4, "reason": "so it is"}, ["approve", 4, "--reason", "so it is"]),
    ("brief", {"situation": HERE, "query": "纯文本", "declared": ["chan:qq"]},
     ["brief", "纯文本", *SITUATION, "--scene", "chan:qq"]),
    ("check", {}, ["check"]),
    ("commit", {"triples": [{"subject": "老大", "relation": "住在", "object": "杭州", "confidence": 0.5}],
                "scenes": ["chan:qq"], "session": "s2", "turn": 3, **PERSON},
     ["commit", "老大", "住在", "杭州", "--confidence", 0.5, "--scene", "chan:qq", "--session", "s2", "--turn", 3]),
    ("consume_document", {"document_id": CONSUMED}, ["document", "consume", CONSUMED]),
    ("dedupe_scenes", {"dry_run": True}, ["dedupe", "--dry-run"]),
    ("delete_relation", {"relation_id": 1}, ["delete", 1]),
    ("drop_scene", {"key": "tool:shell", "below": True}, ["drop", "tool:shell", "--below"]),
    ("edit_note", {"note_id": 1, "body": "Never npm.", "labels": ["npm"], "pinned": True},
     ["notes", "edit", 1, "--body", "Never npm.", "--label", "npm", "--pin"]),
    ("edit_relation", {"relation_id": 1, "confidence": 0.5}, ["edit", 1, "--confidence", 0.5]),
    ("enter_scene", {"situation": HERE, "declared": ["chan:qq"]}, ["enter", *SITUATION, "--declare", "chan:qq"]),
    ("evidence", {}, ["evidence"]),
    ("forget", {"note_id": 2}, ["forget", 2]),
    ("forget_incident", {"incident_id": 1}, ["incidents", "--forget", 1]),
    ("growth", {"days": 2}, ["growth", "--days", 2]),
    ("history", {"query": "部署"}, ["history", "部署"]),
    ("incidents", {"status": None}, ["incidents", "--all"]),
    ("inspect", {"note_id": 1}, ["notes", "show", 1]),
    ("jobs", {}, ["jobs"]),
    ("keep_apart", {"a": "老大", "b": "纯文本"}, ["entities", "keep-apart", "老大", "纯文本"]),
    ("kept_apart", {}, ["entities", "apart"]),
    ("match_scenes", {"situation": HERE}, ["match", *SITUATION]),
    ("merge_entities", {"source": "老大", "target": "纯文本", "dry_run": True},
     ["entities", "merge", "老大", "纯文本", "--dry-run"]),
    ("neighbours", {"names": ["老大"], "depth": 1}, ["neighbours", "老大", "--depth", 1]),
    ("notes", {"statuses": ["live", "proposed"], "limit": 3},
     ["notes", "--status", "live", "--status", "proposed", "--limit", 3]),
    ("operations", {}, ["operations"]),
    ("overview", {}, ["overview"]),
    ("part", {"part": "m1", "session": "s1"}, ["part", "m1", "--session", "s1"]),
    ("purge", {"relation": "偏好", "dry_run": True}, ["purge", "--relation", "偏好", "--dry-run"]),
    ("put_block", {"text": "截图", "scenes": ["chan:qq"]}, ["block", "put", "截图", "--scene", "chan:qq"]),
    ("put_document", {"text": "新的对话", "scenes": ["chan:qq"]},
     ["document", "put", "新的对话", "--scene", "chan:qq"]),
    ("query_documents", {"query": "对话"}, ["document", "query", "对话"]),
    ("recall", {"query": "纯文本", "situation": HERE, "kinds": ["relation", "note"], "limit": 5, "explain": True},
     ["recall", "纯文本", *SITUATION, "--kind", "relation", "--kind", "note", "--limit", 5, "--explain"]),
    ("recall_by_scene", {"keys": ["chan:qq"], "limit": 3}, ["recall", "--scene", "chan:qq", "--limit", 3]),
    ("record_failure", {"tool": "bash", "text": "exit 1"}, ["record-failure", "bash", "exit 1"]),
    ("reject", {"note_id": 5}, ["reject", 5]),
    ("remember", {"title": "Deploy with pnpm", "slot": "deploy", "labels": ["部署"], "kind": "lesson", **PERSON},
     ["remember", "Deploy with pnpm", "--slot", "deploy", "--label", "部署", "--kind", "lesson"]),
    ("rename_scene", {"key": "chan:qq", "new_key": "chan:tencent"}, ["rename", "chan:qq", "chan:tencent"]),
    ("repair", {"dry_run": True}, ["repair", "--dry-run"]),
    ("reset_scenes", {"dry_run": True}, ["scenes", "reset", "--emergent", "--dry-run"]),
    ("restore_note", {"note_id": 3}, ["restore-note", 3]),
    ("review_entities", {"limit": 2}, ["entities", "review", "--limit", 2]),
    ("rules_for", {"situation": {**HERE, "tool": "git"}}, ["rules", *SITUATION, "--tool", "git"]),
    ("scan_secrets", {}, ["secrets", "scan"]),
    ("scene", {"key": "chan:qq"}, ["scene", "chan:qq"]),
    ("scene_health", {}, ["scenes", "--health"]),
    ("scenes", {"prefix": "chan", "sort": "key", "limit": 2}, ["scenes", "chan", "--sort", "key", "--limit", 2]),
    ("scopes", {}, ["scopes"]),
    ("sessions", {}, ["sessions"]),
    ("shortest_path", {"start": "老大", "end": "纯文本"}, ["path", "老大", "纯文本"]),
    ("tag_scene", {"key": "chan:webui", "relation_ids": [1]}, ["tag", "chan:webui", "--relation", 1]),
    ("turn", {"event": EVENT, "budget": 500}, ["turn", json.dumps(EVENT), "--budget", 500]),
    ("undo", {"operation": 1}, ["undo", 1]),
    ("untag_scene", {"key": "chan:qq", "relation_ids": [1]}, ["untag", "chan:qq", "--relation", 1]),
]  # fmt: skip
REFUSED = [
    ("approve", {"note_id": 99}, ["approve", 99]),
    ("remember", {"title": ""}, ["remember", ""]),
    ("remember", {"title": "the password is hunter2-Xy9!"}, ["remember", "the password is hunter2-Xy9!"]),
    ("restore_note", {"note_id": 1}, ["restore-note", 1]),
    ("scene", {"key": "chan:none"}, ["scene", "chan:none"]),
    ("scene", {"key": "///"}, ["scene", "///"]),
    ("turn", {"event": {"facts": "none"}}, ["turn", '{"facts": "none"}']),
    ("undo", {"operation": 99}, ["undo", 99]),
    ("block", {"block_id": "none"}, ["block", "show", "none"]),
]


@pytest.fixture
def alike(tmp_path, clock, monkeypatch, capsys):
    """What runs a command on a memory as `fill` makes it, and a verb on its twin; both at the same time."""
    opened = Memory.open
    monkeypatch.setattr(Memory, "open", lambda path, **options: opened(path, **{"clock": clock, **options}))
    monkeypatch.chdir(tmp_path)
    for name in ("said.db", "called.db"):
        with opened(tmp_path / name, clock=clock) as memory:
            fill(memory)

    def command(words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ending:
            main(["--db", place_of(tmp_path / "said.db"), "--project", "", *map(str, words), "--json"])
        return ending.value.code, json.loads(capsys.readouterr().out)

    with opened(tmp_path / "called.db", clock=clock) as memory:
        yield command, lambda name, arguments: verb_of(name)(memory, arguments)


@pytest.mark.parametrize(("name", "arguments", "words"), SAID, ids=[name for name, *_ in SAID])
def test_a_command_answers_as_the_verb_does(alike, tmp_path, name, arguments, words):
    command, called = alike
    if "place" in verb_of(name).arguments:
        arguments = {**arguments, "place": str(tmp_path)}

    _, said = command(words)

    answer = json.loads(to_json(called(name, arguments)))
    if name == "check":  # on a server the tables of twins differ in size
        assert said["sizes"].keys() == answer["sizes"].keys()
        said["sizes"] = answer["sizes"]
    assert said == ({NAMED[name]: answer} if name in NAMED else answer)


@pytest.mark.parametrize(("name", "arguments", "words"), REFUSED)
def test_a_command_refuses_as_the_verb_does(alike, name, arguments, words):
    command, called = alike
    with pytest.raises(GraphmemError) as caught:
        called(name, arguments)

    assert command(words) == (exit_code(caught.value), refusal_of(caught.value))
