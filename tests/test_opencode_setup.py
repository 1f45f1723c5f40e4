"""What `graphmem opencode install` and `uninstall` make of the files of OpenCode."""

import json
import os
import re
import sys
from pathlib import Path

import click.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem import InvalidInput
from graphmem.surfaces import json_files
from graphmem.surfaces.cli import graphmem
from graphmem.surfaces.opencode import setup

CONFIGS = [
    "{}", "{\n}", '{"a":1}', '{"mcp":{}}', '{\n  "mcp": {\n  }\n}',
    '{\n  // mine\n  "model": "a/b", // the model\n}\n',
    '{\n  "model": "a/b" // the model\n}\n',
    '{ "model": "a/b", /* why */ }',
    '{"model": "a/b" // why\n}',
    '// head\n{\n\t/* "mcp": {} */\n\t"mcp": {\n\t\t// none yet\n\t},\n\t"z": ["//", "/*", ",}"],\n}\n// tail',
    '{\r\n  "mcp": {\r\n    "other": {"type": "local", "command": ["x",],}, // theirs\r\n  },\r\n}\r\n',
    '{"mcp": {"servers": {"other": {"type": "local", "command": ["x"]}}}}',
    '\ufeff{\n  "url": "https://a.b/c", "escaped": "\\"//"\n}\n',
]  # fmt: skip


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    folder = tmp_path / "panel"
    folder.mkdir()
    return folder


def install(project, *, dry_run=False, database=None, config_file=None):
    return setup.install(project, database=database, config_file=config_file, dry_run=dry_run)


def everything_in(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def tree_of(folder):
    """Everything in a folder, and its folders."""
    return {str(file.relative_to(folder)): file.read_bytes() if file.is_file() else None for file in folder.rglob("*")}


def holding(text):
    return json_files.parsed(text.lstrip("\ufeff"), "file", comments=True)


@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc"])
@pytest.mark.parametrize("text", CONFIGS)
def test_uninstall_leaves_the_settings_as_they_were(project, name, text):
    config = project / name
    config.write_bytes(text.encode())

    install(project)
    once = everything_in(project)
    again = install(project)
    found = holding(config.read_bytes().decode())
    setup.uninstall(project, dry_run=False)

    before = holding(text)
    servers = found["mcp"]["servers"] if "servers" in found["mcp"] else found["mcp"]
    assert servers.pop("graphmem")["command"][-1] == "mcp"
    assert {**found, "mcp": before.get("mcp", {})} == {**before, "mcp": found["mcp"]}
    assert [change.changes for change in again] == [()] * len(again)
    assert everything_in(project) == {name: text.encode()}
    assert set(once) > {name, ".opencode/plugins/graphmem.js", ".opencode/graphmem/bridge.js"}


def test_each_comment_stays_with_its_item(project):
    config = project / "opencode.jsonc"
    config.write_text('{\n  // mine\n  "model": "a/b" // the model\n}\n')

    install(project)

    assert config.read_text().startswith('{\n  // mine\n  "model": "a/b", // the model\n  "mcp": {\n')


def test_what_is_installed_for_a_project_and_for_the_user(project, tmp_path):
    install(project)
    install(None)

    names = {
        "plugins/graphmem.js", "plugins/graphmem-v2.js", "graphmem/bridge.js", "graphmem/settings.json",
        *(f"commands/mem-{name}.md" for name in ("checkpoint", "distill", "dream", "search")),
    }  # fmt: skip
    assert set(everything_in(project)) == {"opencode.json", *(f".opencode/{name}" for name in names)}
    assert set(everything_in(tmp_path / "home" / ".config" / "opencode")) == {"opencode.json", *names}

    setup.uninstall(project, dry_run=False)
    setup.uninstall(None, dry_run=False)
    assert everything_in(tmp_path) == {}
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("before", [b"", b" \n", b"\n\n", b"\xef\xbb\xbf"])
def test_settings_that_held_nothing_hold_it_again(project, before):
    config = project / "opencode.jsonc"
    config.write_bytes(before)

    install(project)
    found = holding(config.read_text("utf-8-sig"))
    setup.uninstall(project, dry_run=False)

    assert set(found) == {"mcp"}
    assert tree_of(project) == {"opencode.jsonc": before}


@pytest.mark.parametrize("there", [".", "opencode/plugins", "opencode/commands", "opencode/graphmem", "opencode/mine"])
def test_folders_that_were_there_are_there_again_and_no_others(project, tmp_path, monkeypatch, there):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    (tmp_path / "own" / there).mkdir(parents=True)
    before = tree_of(tmp_path)

    install(None)
    install(None, database="other.db")
    assert setup.installed(None).missing == ()
    setup.uninstall(None, dry_run=False)

    assert tree_of(tmp_path) == before


def test_a_file_that_is_empty_is_none_of_ours(project):
    own = project / ".opencode" / "plugins" / "graphmem.js"
    own.parent.mkdir(parents=True)
    own.touch()

    with pytest.raises(InvalidInput, match="not graphmem's; move it away"):
        install(project)
    setup.uninstall(project, dry_run=False)

    assert own.read_bytes() == b""


def test_the_folder_of_the_user_is_that_of_the_desktop(project, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))

    assert setup.places_of(None).folder == tmp_path / "own" / "opencode"


def test_plug_in_and_server_use_the_memory_that_is_named(project, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    install(project, database="my memory.db", config_file="my.toml")

    start = [str(tmp_path / "python"), "-P", "-m", "graphmem", "--db", os.path.abspath("my memory.db")]
    start += ["--config", os.path.abspath("my.toml")]
    server = json.loads((project / "opencode.json").read_text())["mcp"]["graphmem"]
    assert json.loads((project / ".opencode" / "graphmem" / "settings.json").read_text()) == {
        "//": setup._MARK, "command": start, "writes": False,
    }  # fmt: skip
    # The plug-in tells what holds, and once is enough.
    environment = {"GRAPHMEM_INJECT": "false"}
    assert server == {"type": "local", "command": [*start, "mcp"], "environment": environment, "enabled": True}


def test_what_the_user_set_of_the_server_stays(project):
    install(project)
    config = project / "opencode.json"
    config.write_text(config.read_text().replace('"enabled": true', '"enabled": false, "timeout": 9000'))

    changes = install(project, database="other.db")

    server = json.loads(config.read_text())["mcp"]["graphmem"]
    assert (server["enabled"], server["timeout"], "--db" in server["command"]) == (False, 9000, True)
    assert changes[-1].changes == ("MCP server graphmem changed",)


OTHERS = [
    {"type": "remote", "url": "https://memory.acme.com/mcp"},
    {"type": "local", "command": ["docker", "run", "acme/graphmem"], "environment": {"KEY": "v"}},
    {"type": "local", "command": ["/opt/bin/graphmem", "--db", "/data/team.db", "mcp"], "enabled": True},
    {"type": "local", "command": ["/opt/bin/graphmem", "mcp"], "environment": {"GRAPHMEM_DB": "/data/team.db"}},
    {"type": "local", "command": ["graphmem", 1, "mcp"]},
    {"type": "local", "command": "graphmem mcp"},
    {"type": "local", "command": []},
    {"enabled": False},
    "graphmem",
]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("server", OTHERS)
def test_a_server_of_somebody_else_is_kept_and_told_of(project, server, version):
    config = project / "opencode.json"
    servers = {"graphmem": server}
    config.write_text(json.dumps({"mcp": servers if version == 1 else {"servers": servers}}))
    before = tree_of(project)

    *files, kept = install(project)
    again = install(project)[-1]
    there = tree_of(project)
    left = setup.uninstall(project, dry_run=False)[-1]

    assert all(change.applied for change in files)
    assert (kept.changes, kept.applied, kept.file) == ((), False, str(config))
    place = "mcp.graphmem" if version == 1 else "mcp.servers.graphmem"
    assert f"to replace it, remove {place} there and install again" in kept.kept
    assert again == kept
    assert there["opencode.json"] == before["opencode.json"]
    assert f"remove {place} there if it is to go" in left.kept
    assert tree_of(project) == before


@pytest.mark.parametrize(
    "more", [{}, {"enabled": False}, {"environment": {}}, {"environment": {"GRAPHMEM_INJECT": "false"}}]
)
def test_a_server_that_was_written_by_hand_is_as_good_as_ours(project, tmp_path, more):
    config = tmp_path / "home" / ".config" / "opencode" / "opencode.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"mcp": {"graphmem": {"type": "local", "command": ["graphmem", "mcp"], **more}}}))
    before = config.read_bytes()

    change = install(None)[-1]
    other = install(None, database="other.db")[-1]
    left = setup.uninstall(None, dry_run=False)[-1]

    assert (change.changes, change.kept) == ((), "")
    assert "is kept" in other.kept
    assert "is kept" in left.kept
    assert config.read_bytes() == before


def test_a_server_that_an_earlier_install_wrote_is_ours(project, tmp_path, monkeypatch):
    install(project, database="team.db")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))

    assert install(project, database="team.db")[-1].changes == ("MCP server graphmem changed",)
    assert install(project)[-1].changes == ("MCP server graphmem changed",)
    install(project, database="other.db", config_file="my.toml")
    setup.uninstall(project, dry_run=False)
    assert tree_of(project) == {}


def test_a_server_of_ours_that_was_changed_by_hand_is_kept(project):
    install(project)
    config = project / "opencode.json"
    config.write_text(config.read_text().replace('"mcp"\n', '"--read-only", "mcp"\n'))
    by_hand = config.read_bytes()

    assert "is kept" in install(project)[-1].kept
    assert "is kept" in setup.uninstall(project, dry_run=False)[-1].kept
    assert b"--read-only" in by_hand
    assert tree_of(project) == {"opencode.json": by_hand}


def test_the_file_that_names_the_server_is_the_one(project):
    (project / "opencode.jsonc").write_text("{}")
    install(project)
    (project / "opencode.json").write_text("{}")

    install(project, database="other.db")

    assert (project / "opencode.json").read_text() == "{}"


def test_a_dry_run_changes_nothing(project):
    changes = install(project, dry_run=True)

    assert everything_in(project) == {}
    assert all(change.changes and not change.applied for change in changes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3"),
        ('{\n  // fine\n  "a": }\n', "line 3"),
        ("[]", "no JSON object"),
        ("// nothing", "no JSON"),
        ('{"mcp": []}', "mcp is not an object"),
        ('{"mcp": {"servers": 5}}', "mcp is not an object"),
        ('{"a": "open}', "line 1"),
        ('{"a": /* open }', "line 1"),
    ],
)
def test_settings_that_cannot_be_read_are_refused_with_the_line(project, text, told):
    (project / "opencode.json").write_text(text)

    with pytest.raises(InvalidInput, match=re.escape(told)):
        install(project)

    assert everything_in(project) == {"opencode.json": text.encode()}


def test_a_file_of_somebody_else_is_left_alone(project):
    theirs = project / ".opencode" / "commands" / "mem-search.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("Search with my own tool")

    with pytest.raises(InvalidInput, match="not graphmem's"):
        install(project)
    setup.uninstall(project, dry_run=False)

    assert everything_in(project) == {".opencode/commands/mem-search.md": b"Search with my own tool"}


@pytest.mark.parametrize(
    "name", ["plugins/graphmem.js", "commands/mem-search.md", "graphmem/settings.json", "graphmem/bridge.js"]
)
def test_a_file_of_the_user_about_graphmem_is_none_of_ours(project, name):
    own = project / ".opencode" / name
    own.parent.mkdir(parents=True)
    own.write_text("// what I do with graphmem")

    with pytest.raises(InvalidInput, match=f"{name}.*not graphmem's; move it away"):
        install(project)
    setup.uninstall(project, dry_run=False)

    assert own.read_text() == "// what I do with graphmem"
    own.unlink()
    install(project)
    assert setup.installed(project).missing == ()
    setup.uninstall(project, dry_run=False)
    assert not own.exists()


def test_the_command(project, monkeypatch):
    monkeypatch.chdir(project)
    runner = click.testing.CliRunner()

    installed = runner.invoke(graphmem, ["opencode", "install", "--project"])
    again = runner.invoke(graphmem, ["opencode", "install", "--project", "--json"])
    both = runner.invoke(graphmem, ["opencode", "install", "--project", "--global"])
    removed = runner.invoke(graphmem, ["opencode", "uninstall", "--project"])

    assert (installed.exit_code, again.exit_code, both.exit_code, removed.exit_code) == (0, 0, 2, 0)
    assert "opencode.json: MCP server graphmem added" in installed.output
    assert not any(change["changes"] for change in json.loads(again.output))
    assert list(project.iterdir()) == []


# ---- JSON with comments


BLANK = st.sampled_from(["", " ", "\n", "\n  ", " // one\n", "/* two */", "\n  /* a\n b */ ", ' // "x": {\n  '])
VALUES = st.recursive(
    st.sampled_from(["1", "null", '"//"', '"/*"', '",}"', '"\\\\\\""', "[]", "{}"]),
    lambda inner: st.one_of(
        st.builds(lambda items, blank, tail: f"[{(',' + blank).join(items)}{tail}{blank}]",
                  st.lists(inner, min_size=1, max_size=3), BLANK, st.sampled_from(["", ","])),
    ),
    max_leaves=4,
)  # fmt: skip


@st.composite
def objects(draw, depth=2):
    """An object as text, with comments and commas where they may be."""
    names = draw(st.lists(st.sampled_from("abcdm"), unique=True, max_size=3))
    inner = [draw(objects(depth=depth - 1)) if depth and name == "m" else draw(VALUES) for name in names]
    members = [
        f'{draw(BLANK)}"{name}"{draw(BLANK)}:{draw(BLANK)}{value}{draw(BLANK)}'
        for name, value in zip(names, inner, strict=True)
    ]
    comma = draw(st.sampled_from(["", f",{draw(BLANK)}"])) if members else draw(BLANK)
    return "{" + ",".join(members) + comma + "}"


@given(text=objects(), path=st.sampled_from([("new",), ("m", "new"), ("new", "deeper")]))
def test_what_is_added_among_comments_is_taken_out_without_a_trace(text, path):
    before = json_files.parsed(text, "file", comments=True)

    added = json_files.with_value(text, path, {"x": [1]})

    assert json_files.value_at(json_files.parsed(added, "file", comments=True), *path) == {"x": [1]}
    assert json_files.without_value(added, path) == text
    assert len(json_files.parsed(added, "file", comments=True)) == len({*before, path[0]})
    comments = r'"(?:[^"\\]|\\.)*"|(//[^\n]*|/\*.*?\*/)'
    assert [each for each in re.findall(comments, added, re.DOTALL) if each] == [
        each for each in re.findall(comments, text, re.DOTALL) if each
    ]


def test_every_file_of_the_package_is_installed(project):
    install(project)

    there = {file.name for file in Path(setup.__file__).parent.rglob("*") if file.suffix in (".js", ".md")}
    assert there == {Path(name).name for name in everything_in(project / ".opencode")} - {"settings.json"}
