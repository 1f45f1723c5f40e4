"""What is exported for other programs: it is what they read, whole or not at all, and nobody's file is lost."""

import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump, node_package, unprivileged
from test_view import NASTY

from graphmem import Conflict, InvalidInput, Memory, StoreFailed, Triple
from graphmem.core.keys import clean_text
from graphmem.core.redaction import find_secrets
from graphmem.files import EXPORTS
from graphmem.surfaces.cli import main

SERVER = "@modelcontextprotocol/server-memory"


@pytest.fixture
def filled(memory):
    memory.commit(
        [Triple("老大", "偏好", "纯文本", sentence="老大说用纯文本。"), Triple("panel", "runs on", "port 8328")]
    )
    memory.commit([Triple("老大", "偏好", "纯文本"), Triple("secret plan", "is of", "panel")], scope="private")
    memory.remember("panel: Restarts at night", labels=["panel"])
    memory.remember(
        "Deploy with pnpm",
        body="npm <b>breaks</b>\n\n---\nit",
        kind="lesson",
        slot="deploy",
        summary="Use pnpm: always",
        labels=["no", "部署"],
    )
    memory.remember("Be brief", kind="rule", source="agent")
    return memory


def text_of(memory, kind, **options):
    stream = io.StringIO()
    memory.export_to(kind, stream, **options)
    return stream.getvalue()


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


# ---- files


@pytest.mark.parametrize("kind", EXPORTS)
def test_a_file_is_whole_and_for_its_owner_alone(filled, tmp_path, kind):
    report = filled.export_to(kind, tmp_path / "out")

    assert (report.kind, report.path) == (kind, str(tmp_path / "out"))
    assert not list(tmp_path.glob(".graphmem*"))
    for file in [tmp_path / "out", *(tmp_path / "out").rglob("*")]:
        assert file.stat().st_mode & 0o077 == 0
    if kind != "okf":
        assert (tmp_path / "out").read_text("utf-8") == text_of(filled, kind)


@pytest.mark.parametrize("kind", EXPORTS)
def test_what_is_there_stays_unless_it_is_to_be_replaced(filled, tmp_path, kind):
    out = tmp_path / "out"
    out.write_text("mine")

    with pytest.raises(Conflict, match="out exists"):
        filled.export_to(kind, out)

    assert out.read_text() == "mine"
    if kind != "okf":
        filled.export_to(kind, out, force=True)
        assert out.read_text("utf-8") == text_of(filled, kind)


@pytest.mark.parametrize("kind", EXPORTS)
def test_a_folder_is_never_replaced(filled, tmp_path, kind):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()

    for force in (False, True):
        with pytest.raises((Conflict, InvalidInput)):
            filled.export_to(kind, tmp_path / "out", force=force)

    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["", "-wal", "-shm", "-journal", ".blobs", ".blobs/aa/bb"])
def test_the_memory_itself_is_never_written_over(filled, path, name):
    before = dump(path)

    with pytest.raises((Conflict, InvalidInput), match=r"memory\.db"):
        filled.export_to("jsonl", f"{path}{name}", force=True)

    assert dump(path) == before


def test_another_memory_that_is_open_here_is_not_written_over(filled, tmp_path):
    with Memory.open(tmp_path / "other.db") as other, pytest.raises(Conflict, match="open"):
        filled.export_to("dot", other.path, force=True)


@pytest.mark.parametrize("kind", ["jsonl", "svg", "okf"])
def test_a_folder_that_may_not_be_written_is_told(filled, tmp_path, kind):
    tmp_path.chmod(0o755)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        for place in (Path(folder, "missing", "out"), Path(folder, "out")):
            with Memory.open(":memory:") as memory:
                error, told = unprivileged(lambda memory=memory, place=place: memory.export_to(kind, place))
            assert (error, str(place) in told) == ("StoreFailed", True)


def test_what_fails_halfway_leaves_nothing(filled, tmp_path, monkeypatch):
    for kind in EXPORTS:
        for call in ("fsync", "rename", "link"):
            with monkeypatch.context() as patched:
                patched.setattr(os, call, full)
                with contextlib.suppress(StoreFailed):
                    filled.export_to(kind, tmp_path / f"{kind}-{call}")
                    assert call != "fsync"
    assert not [*tmp_path.glob("*fsync*"), *tmp_path.glob(".graphmem*")]


def full(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.torture)])
def test_who_is_killed_leaves_the_old_file_or_the_new_one(path, tmp_path, kills):
    """A whole memory and a bundle, written again and again by a process that is killed at some moment."""
    script = """if True:
        import itertools, shutil, sys
        from graphmem import Memory
        with Memory.open(sys.argv[1]) as memory:
            for number in itertools.count():
                memory.export_to("jsonl", sys.argv[2], force=True)
                memory.export_to("okf", f"{sys.argv[3]}{number}")
                shutil.move(f"{sys.argv[3]}{number}", f"{sys.argv[3]}{number}.seen")
                if number == 0:
                    print("begun", flush=True)"""
    with Memory.open(path) as memory:
        memory.commit([Triple(f"thing {n}", "is beside", f"thing {n + 1}") for n in range(200)])
    chance = random.Random(kills)
    for kill in range(kills):
        arguments = [sys.executable, "-c", script, path, tmp_path / "all.jsonl", tmp_path / f"okf{kill}-"]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"begun\n"
            time.sleep(chance.random() * 0.2)
            process.kill()
        with Memory.open(tmp_path / f"{kill}.db") as other:
            other.import_from("jsonl", tmp_path / "all.jsonl")
            assert len(other.graph()) == 201
        for bundle in tmp_path.glob(f"okf{kill}-*"):
            assert len(list(bundle.glob("entities/*.md"))) == 202
    assert {file.name[:10] for file in tmp_path.glob(".*")} <= {".graphmem-"}


def test_a_stream_takes_text_and_stays_open(filled, tmp_path):
    with (tmp_path / "out").open("w", encoding="utf-8") as stream:
        report = filled.export_to("mcp-memory", stream)
        stream.write("more")

    assert report.path == ""


@pytest.mark.parametrize(
    ("arguments", "options", "told"),
    [
        (["png", "out"], {}, "kind"),
        ([None, "out"], {}, "kind"),
        (["jsonl", 5], {}, "path"),
        (["jsonl", ""], {}, "path"),
        (["okf", io.StringIO()], {}, "path"),
        (["jsonl", "out"], {"scopes": "all"}, "scopes"),
        (["jsonl", "out"], {"scene": "chan:qq"}, "scene"),
        (["jsonl", "out"], {"at": "2026-01-01"}, "at"),
        (["okf", "out"], {"entity": "panel"}, "entity"),
        (["mcp-memory", "out"], {"scene": "chan:qq"}, "scene"),
        (["okf", "out"], {"force": True}, "force"),
        (["dot", "out"], {"force": 1}, "force"),
        (["dot", "out"], {"depth": -1}, "depth"),
    ],
)
def test_what_cannot_be_exported_is_refused_by_name(filled, tmp_path, monkeypatch, arguments, options, told):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidInput, match=f"^{told} = "):
        filled.export_to(*arguments, **options)

    assert not Path("out").exists()


@pytest.mark.parametrize("kind", ["mermaid", "dot", "json", "graphml", "svg", "html"])
def test_pictures_are_those_that_are_drawn(filled, kind):
    limits = {"entity": "panel", "depth": 1, "scopes": "all"}

    assert text_of(filled, kind, **limits) == filled.draw(kind, **limits) + "\n"


def test_a_read_only_memory_is_exported(filled, path, tmp_path):
    filled.close()
    with Memory.open(path, config=filled.config.__class__(read_only=True)) as memory:
        memory.export_to("jsonl", tmp_path / "out")


# ---- the MCP knowledge-graph server


def test_entities_facts_and_observations_are_lines_of_the_server(filled):
    stream = io.StringIO()
    report = filled.export_to("mcp-memory", stream, scopes=["user"])

    assert lines_of(stream.getvalue()) == [
        {"type": "entity", "name": "老大", "entityType": "Concept", "observations": []},
        {"type": "entity", "name": "纯文本", "entityType": "Concept", "observations": []},
        {"type": "entity", "name": "panel", "entityType": "Concept", "observations": ["Restarts at night"]},
        {"type": "entity", "name": "port 8328", "entityType": "Concept", "observations": []},
        {"type": "relation", "from": "老大", "to": "纯文本", "relationType": "偏好"},
        {"type": "relation", "from": "panel", "to": "port 8328", "relationType": "runs on"},
    ]
    assert report.counts == {"entities": 4, "facts": 2, "observations": 1}
    assert [re.findall(r"\d+", remark) for remark in report.remarks] == [["1", "2"]]


def test_a_fact_of_several_scopes_is_told_once_and_what_ended_is_not(filled):
    filled.commit([Triple("panel", "was on", "port 1", valid_to="2026-01-01")])

    told = [each for each in lines_of(text_of(filled, "mcp-memory", scopes="all")) if each["type"] == "relation"]

    assert [(each["from"], each["relationType"]) for each in told] == [
        ("老大", "偏好"), ("panel", "runs on"), ("secret plan", "is of"),
    ]  # fmt: skip
    earlier = lines_of(text_of(filled, "mcp-memory", at="2025-01-01"))
    assert "was on" in [each.get("relationType") for each in earlier]


def test_what_is_observed_of_nothing_that_is_known_keeps_its_name(memory):
    memory.remember("Ann: likes tea", labels=["Ann"])
    memory.remember("Ann: has a cat", body="Ann has\na cat", labels=["Ann"])

    (line,) = lines_of(text_of(memory, "mcp-memory"))

    assert line == {
        "type": "entity",
        "name": "Ann",
        "entityType": "Concept",
        "observations": ["likes tea", "Ann has\na cat"],
    }


@pytest.fixture(scope="session")
def server():
    """The script of the real server, from npm; a test that cannot have it is skipped and tells why."""
    return node_package(SERVER) / "dist" / "index.js"


def ask(server, file, *calls):
    """What the tools of the server answer, one call after the other on a file."""
    begin = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    told = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    environment = {**os.environ, "MEMORY_FILE_PATH": str(file)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    answers = []
    with subprocess.Popen(["node", server], env=environment, text=True, encoding="utf-8", **pipes) as process:
        for number, (tool, arguments) in enumerate(calls, 1):
            told.append(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments},
                }
            )
            for each in told:
                process.stdin.write(json.dumps(each) + "\n")
            process.stdin.flush()
            told.clear()
            while (answer := json.loads(process.stdout.readline())).get("id") != number:
                pass
            answers.append(json.loads(answer["result"]["content"][0]["text"]))
        process.stdin.close()
    return answers


@pytest.mark.slow  # npm installs it first
@pytest.mark.needs_node
def test_the_real_server_reads_what_is_exported_and_goes_on_with_it(server, filled, tmp_path):
    filled.commit([Triple(NASTY, NASTY, "\u2028\u2029x", sentence=NASTY)])
    file = tmp_path / "memory.jsonl"
    filled.export_to("mcp-memory", file, scopes="all")
    told = lines_of(file.read_text("utf-8"))

    (read, found, _, again) = ask(
        server, file,
        ("read_graph", {}),
        ("search_nodes", {"query": "night"}),
        ("add_observations", {"observations": [{"entityName": "panel", "contents": ["Is blue"]}]}),
        ("read_graph", {}),
    )  # fmt: skip

    wanted = {
        kind: [{name: value for name, value in each.items() if name != "type"} for each in told if each["type"] == kind]
        for kind in ("entity", "relation")
    }
    assert read == {"entities": wanted["entity"], "relations": wanted["relation"]}
    assert [each["name"] for each in found["entities"]] == ["panel"]
    assert len(again["relations"]) == len(read["relations"])
    assert lines_of(file.read_text("utf-8")) == [
        {**each, "observations": [*each["observations"], "Is blue"]} if each.get("name") == "panel" else each
        for each in told
    ]


def graph_of(memory):
    """Entities with their types and what is observed of them, and facts, by names."""
    lines = lines_of(text_of(memory, "mcp-memory", scopes="all"))
    return sorted(json.dumps(line, sort_keys=True, ensure_ascii=False) for line in lines)


names = st.sampled_from(["Lin", "lin ", "茶", "C++", "a: b", "1e3", "no", NASTY])
told = st.lists(st.tuples(names, st.sampled_from(["likes", "Likes", "是", "a: b"]), names), max_size=6)
texts = st.text(min_size=1, max_size=60).filter(lambda text: clean_text(text).strip() == text)


@settings(max_examples=60)
@given(told, st.lists(st.tuples(names, st.one_of(texts, st.just("x" * 600))), max_size=4))
def test_what_is_exported_and_imported_is_the_same_graph(facts, observed):
    with tempfile.TemporaryDirectory() as folder, Memory.open(":memory:") as memory:
        source, file = Path(folder, "source.jsonl"), Path(folder, "memory.jsonl")
        begun = [
            {"type": "entity", "name": name, "entityType": "Kind", "observations": [text]} for name, text in observed
        ]
        source.write_text("".join(json.dumps(line) + "\n" for line in begun), "utf-8")
        memory.import_from("mcp-memory", source)
        memory.commit([Triple(*fact) for fact in facts])
        kept = [text for line in lines_of(text_of(memory, "mcp-memory")) for text in line.get("observations", ())]
        assert {text for _, text in observed if not find_secrets(text)} <= {*kept}
        memory.export_to("mcp-memory", file)

        with Memory.open(":memory:") as other:
            report = other.import_from("mcp-memory", file)
            assert graph_of(other) == graph_of(memory)
            assert report.refused == ()
            again = other.import_from("mcp-memory", file)

    assert again.added == 0


@pytest.mark.slow  # npm installs it first
@pytest.mark.needs_node
def test_what_the_real_server_wrote_comes_back_to_it(server, memory, tmp_path):
    theirs, ours = tmp_path / "theirs.jsonl", tmp_path / "ours.jsonl"
    entities = [
        {"name": name, "entityType": "person", "observations": [f"{name} is here", "first\nsecond"]}
        for name in ("Ann", "老大", "C++", NASTY)
    ]
    relations = [
        {"from": "Ann", "to": "老大", "relationType": "knows"},
        {"from": NASTY, "to": "C++", "relationType": "是"},
    ]
    ask(server, theirs, ("create_entities", {"entities": entities}), ("create_relations", {"relations": relations}))

    memory.import_from("mcp-memory", theirs)
    memory.export_to("mcp-memory", ours)

    (read,) = ask(server, ours, ("read_graph", {}))
    assert read["relations"] == relations
    assert read["entities"] == entities


# ---- Open Knowledge Format


def bundle_of(memory, folder, **options):
    memory.export_to("okf", folder, **options)
    return {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in sorted(folder.rglob("*.md"))}


def parsed(text):
    """Frontmatter and body of a file: each field is JSON on its line, which is YAML too."""
    _, head, body = text.split("---\n", 2)
    return {name: json.loads(value) for name, value in (line.split(": ", 1) for line in head.splitlines())}, body


def test_notes_and_entities_are_concepts_of_a_bundle(filled, tmp_path):
    files = bundle_of(filled, tmp_path / "okf")

    assert list(files) == [
        "entities/index.md", "entities/panel.md", "entities/port-8328.md", "entities/纯文本.md", "entities/老大.md",
        "fact/index.md", "fact/panel-restarts-at-night-5619defc.md", "index.md", "lesson/deploy-with-pnpm.md",
        "lesson/index.md", "rule/be-brief.md", "rule/index.md",
    ]  # fmt: skip
    fields, body = parsed(files["lesson/deploy-with-pnpm.md"])
    assert fields == {
        "type": "lesson",
        "title": "Deploy with pnpm",
        "description": "Use pnpm: always",
        "tags": ["no", "部署"],
        "status": "stable",
        "generated": {"by": "process:agent", "at": "2026-09-07T08:00:00.000Z"},
        "slot": "deploy",
    }
    assert body == "\nnpm <b>breaks</b>\n\n---\nit\n"
    assert parsed(files["rule/be-brief.md"])[0]["status"] == "draft"
    assert parsed(files["entities/老大.md"]) == (
        {"type": "Concept", "title": "老大"},
        "\n# Facts\n\n* 偏好 [纯文本](/entities/纯文本.md): 老大说用纯文本。\n",
    )
    assert "* [老大](/entities/老大.md) 偏好" in files["entities/纯文本.md"]


def test_a_bundle_conforms(filled, tmp_path):  # section 11 of the specification
    filled.commit([Triple(NASTY, NASTY, "index")])
    filled.remember("log", body="---\ntype: ''\n---")
    filled.remember("LOG ", kind="lesson")
    files = bundle_of(filled, tmp_path / "okf", scopes="all")

    concepts = {name: text for name, text in files.items() if not name.endswith("index.md")}
    assert not any(Path(name).stem in ("index", "log") for name in concepts)
    assert all(parsed(text)[0]["type"] for text in concepts.values())
    assert files["index.md"].startswith('---\nokf_version: "0.2"\n---\n\n# Memory\n\n* [')
    for name, text in files.items():
        if name.endswith("/index.md"):
            head, blank, *items = text.splitlines()
            assert (head[:2], blank) == ("# ", "")
            assert all(re.fullmatch(r"\* \[.+\]\([^()\s]+\.md\)( - .+)?", item) for item in items)
        for link in re.findall(r"\]\((/[^)]+)\)", text):
            assert link[1:] in files


def test_a_bundle_is_the_same_each_time(filled, tmp_path):
    assert bundle_of(filled, tmp_path / "a") == bundle_of(filled, tmp_path / "b")


@settings(max_examples=40)
@given(st.lists(st.text(min_size=1, max_size=30).filter(str.strip), min_size=1, max_size=6))
def test_any_titles_give_as_many_files_within_the_folder(titles):
    with tempfile.TemporaryDirectory() as place, Memory.open(":memory:") as memory:
        for title in titles:
            with contextlib.suppress(InvalidInput):
                memory.remember(title)
        files = bundle_of(memory, Path(place, "okf"))
        told = {parsed(text)[0]["title"] for name, text in files.items() if not name.endswith("index.md")}
        assert told == {note.title for note in memory.notes(limit=100)}


def test_a_bundle_without_a_folder_is_refused_by_what_was_given(filled):
    with pytest.raises(InvalidInput, match="path = 'a stream': okf is a folder of files: give the path of one"):
        filled.export_to("okf", io.StringIO())


@pytest.mark.parametrize("verb", ["import", "export"])
def test_a_kind_that_is_unknown_is_refused_by_name(verb, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([verb, "png", "x"])
    assert "Invalid value for 'KIND': 'png' is not one of" in capsys.readouterr().err
