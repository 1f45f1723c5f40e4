"""What `graphmem claude install` and `uninstall` make of the files of Claude Code."""

import json
import os
import re
import stat
import sys
from pathlib import Path

import click.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem import InvalidInput
from graphmem.surfaces import claude_setup, json_files
from graphmem.surfaces.claude_code import EVENTS
from graphmem.surfaces.cli import graphmem

FOREIGN = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}
SETTINGS = [
    "{}", "{\n}", "{ }\n", '{"a":1}', '{"hooks":{}}', '{"hooks": {"Stop": []}}\n', '{\n  "hooks": {\n  }\n}',
    '{\r\n\t"model": "opus",\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t]\r\n\t}\r\n}\r\n',
    json.dumps({"hooks": {"Stop": [FOREIGN], "PreToolUse": [FOREIGN, FOREIGN]}, "model": "opus"}),
    json.dumps({"model": "opus", "hooks": {"Notification": [FOREIGN], "Stop": [FOREIGN]}, "z": [1, 2]}, indent=4),
    json.dumps({"mcpServers": {"other": {"command": "x", "args": []}}, "z": {"é": "字"}}, indent=2, ensure_ascii=False),
    '{"a": 1, "a": 2, "mcpServers": {}}', '  {"a" : [ ] ,\n"hooks" : { "Stop" : [ ] } }  ',
    '\ufeff{\n  "a": "{[,]}\\"}"\n}\n',
]  # fmt: skip


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / ".claude").mkdir()
    return tmp_path


def install(project=None, *, dry_run=False, database=None, config_file=None):
    return claude_setup.install(project, database=database, config_file=config_file, dry_run=dry_run)


def everything_in(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def tree_of(folder):
    """Everything in a folder, and its folders."""
    return {file.relative_to(folder): file.read_bytes() if file.is_file() else None for file in folder.rglob("*")}


@pytest.mark.parametrize("settings", SETTINGS)
def test_uninstall_leaves_each_file_as_it_was(home, settings):
    files = claude_setup.files_of(None)
    for file in (files.settings, files.servers):
        file.write_bytes(settings.encode())
    before = everything_in(home)

    install()
    found = [json.loads(file.read_text("utf-8-sig")) for file in (files.settings, files.servers)]
    once = everything_in(home)
    again = install()
    twice = everything_in(home)
    claude_setup.uninstall(None, dry_run=False)

    assert found[0]["hooks"].keys() >= set(EVENTS)
    assert found[1]["mcpServers"]["graphmem"]["args"][-1] == "mcp"
    assert once == twice
    assert [change.changes for change in again] == [(), ()]
    assert everything_in(home) == before


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_there_stays(home, settings):
    files = claude_setup.files_of(None)
    files.settings.write_bytes(settings.encode())
    before = json.loads(settings.lstrip("\ufeff"))

    install()
    after = json.loads(files.settings.read_text("utf-8-sig"))

    for event in EVENTS:
        assert after["hooks"][event].pop()["hooks"][0]["args"][-1] == event
    hooks = {name: groups for name, groups in after.pop("hooks").items() if groups or name in before.get("hooks", {})}
    assert {**after, **({"hooks": hooks} if "hooks" in before else {})} == before


def test_files_that_were_not_there_are_gone_again(home, tmp_path):
    project = tmp_path / "my project"
    project.mkdir()
    before = everything_in(home)

    changes = install(project)
    made = everything_in(project)
    claude_setup.uninstall(project, dry_run=False)

    assert set(map(str, made)) == {".mcp.json", str(Path(".claude", "settings.json"))}
    assert all(change.applied for change in changes)
    assert everything_in(home) == before
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("before", [b"", b" ", b"\n", b"\r\n \n\n", b"\xef\xbb\xbf"])
def test_files_that_held_nothing_hold_it_again(home, before):
    files = claude_setup.files_of(None)
    for file in (files.settings, files.servers):
        file.write_bytes(before)

    install()
    install(database="other.db")
    found = [json.loads(file.read_text("utf-8-sig")) for file in (files.settings, files.servers)]
    claude_setup.uninstall(None, dry_run=False)

    assert [set(each) for each in found] == [{"hooks"}, {"mcpServers"}]
    assert [files.settings.read_bytes(), files.servers.read_bytes()] == [before, before]
    claude_setup.uninstall(None, dry_run=False)
    assert [files.settings.read_bytes(), files.servers.read_bytes()] == [before, before]


@pytest.mark.parametrize("there", [".", ".claude", ".claude/commands"])
@pytest.mark.parametrize("of_project", [True, False])
def test_folders_that_were_there_are_there_again_and_no_others(home, tmp_path, of_project, there):
    project = tmp_path / "project"
    (tmp_path / ".claude").rmdir()
    ((project if of_project else tmp_path) / there).mkdir(parents=True, exist_ok=True)
    before = tree_of(tmp_path)

    install(project if of_project else None)
    install(project if of_project else None, database="other.db")
    claude_setup.uninstall(project if of_project else None, dry_run=False)

    assert tree_of(tmp_path) == before


def test_a_folder_of_settings_that_was_made_goes_with_its_last_file(home, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "one" / "two"))
    before = tree_of(tmp_path)

    install()
    claude_setup.uninstall(None, dry_run=False)
    assert tree_of(tmp_path) == before

    install()
    (tmp_path / "one" / "mine").touch()
    claude_setup.uninstall(None, dry_run=False)
    assert tree_of(tmp_path) == {**before, Path("one"): None, Path("one/mine"): b""}


def test_a_file_of_a_stranger_removes_no_folder_outside_the_project(home, tmp_path):
    project = tmp_path / "above" / "project"
    project.mkdir(parents=True)
    install(project)
    settings = project / ".claude" / "settings.json"
    settings.write_text(settings.read_text() + "\n" * 9)

    claude_setup.uninstall(project, dry_run=False)

    assert tree_of(tmp_path / "above") == {Path("project"): None}


def test_a_hook_is_a_program_with_arguments_and_no_shell(home, tmp_path, monkeypatch):
    folder = tmp_path / "with a blank"
    folder.mkdir()
    for name in ("python", "graphmem", "graphmem-hook"):
        (folder / name).touch()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))

    install(database="my memory.db")

    files = claude_setup.files_of(None)
    (group,) = json.loads(files.settings.read_text())["hooks"]["Stop"]
    database = os.path.abspath("my memory.db")
    hook = {"type": "command", "command": str(folder / "graphmem-hook"), "args": ["--db", database, "Stop"]}
    assert group == {"hooks": [{**hook, "timeout": 10}]}
    server = json.loads(files.servers.read_text())["mcpServers"]["graphmem"]
    assert server == {"type": "stdio", "command": str(folder / "graphmem"), "args": ["--db", database, "mcp"]}


def test_without_its_scripts_the_interpreter_is_the_program(home, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    install()
    found = json.loads(claude_setup.files_of(None).settings.read_text())["hooks"]["Stop"][0]["hooks"][0]
    claude_setup.uninstall(None, dry_run=False)

    assert (found["command"], found["args"]) == (
        str(tmp_path / "python"),
        ["-P", "-m", "graphmem.surfaces.hook", "Stop"],
    )
    assert everything_in(home) == {}


def test_on_windows_it_is_an_exe(home, monkeypatch):
    hook = {"type": "command", "command": r"C:\Program Files\py\Scripts\graphmem-hook.exe", "args": ["Stop"]}
    assert claude_setup._is_ours({"hooks": [hook]})
    assert not claude_setup._is_ours({"hooks": [hook, {"type": "command", "command": "other"}]})
    assert not claude_setup._is_ours(FOREIGN)


def test_an_installation_that_moved_takes_the_place_of_the_old_one(home, tmp_path, monkeypatch):
    install()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    changes = install()

    found = json.loads(claude_setup.files_of(None).settings.read_text())["hooks"]
    assert all(len(groups) == 1 for groups in found.values())
    assert changes[0].changes[0] == "hook SessionStart changed"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{\n  "a": 1,\n  // mine\n}', "line 3"), (b"[]", "no JSON object"), (b"{}}", "line 1"),
        (b'{\n"\xff": 1}', "line 2"), (b'{"hooks": []}', "hooks is not an object"),
        (b'{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"), (b"[" * 100_000, "nested"),
    ],
)  # fmt: skip
def test_a_file_that_is_broken_is_refused_and_nothing_changes(home, data, told):
    files = claude_setup.files_of(None)
    files.settings.write_bytes(data)
    before = everything_in(home)

    with pytest.raises(InvalidInput, match=told) as refused:
        install()
    assert str(files.settings) in str(refused.value)
    assert everything_in(home) == before


def test_a_broken_second_file_keeps_the_first_unchanged(home):
    files = claude_setup.files_of(None)
    files.servers.write_text('{"mcpServers": 7}')

    with pytest.raises(InvalidInput, match="mcpServers is not an object"):
        install()
    assert not files.settings.exists()


def test_a_dry_run_says_it_and_changes_nothing(home):
    changes = install(dry_run=True)

    assert [change.applied for change in changes] == [False, False]
    assert changes[0].changes == tuple(f"hook {event} added" for event in EVENTS)
    assert changes[1].changes == ("MCP server graphmem added",)
    assert everything_in(home) == {}


def test_permissions_and_links_stay(home, tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    claude_setup.files_of(None).settings.symlink_to(real)

    install()

    assert claude_setup.files_of(None).settings.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "hooks" in json.loads(real.read_text())


def test_its_own_folder_of_settings_goes_before_the_home(home, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "own"))

    install()

    assert set(map(str, everything_in(tmp_path / "own"))) == {"settings.json", ".claude.json"}


def test_the_command_prints_what_it_does(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = click.testing.CliRunner().invoke

    told = run(graphmem, ["--project", str(tmp_path), "claude", "install", "--project", "--dry-run"]).output
    made = json.loads(run(graphmem, ["claude", "install", "--json"]).output)
    gone = run(graphmem, ["claude", "uninstall"]).output
    again = run(graphmem, ["claude", "uninstall"]).output

    assert told.splitlines()[1] == f"{tmp_path / '.mcp.json'}: would be done: MCP server graphmem added"
    assert [one["applied"] for one in made] == [True, True]
    assert "hook Stop removed" in gone
    assert again.count("nothing to do") == 2
    assert run(graphmem, ["claude", "install", "--user", "--project"]).exit_code == 2


# ---- a server of the same name that is somebody else's


DOCKER = {"command": "docker", "args": ["run", "acme/graphmem"], "env": {"KEY": "v"}}
BY_CLAUDE = {"type": "stdio", "command": "graphmem", "args": ["mcp"], "env": {}}
OTHERS = [
    DOCKER,
    {"type": "http", "url": "https://memory.acme.com/mcp"},
    {"type": "stdio", "command": "/opt/bin/graphmem", "args": ["--db", "/data/team.db", "mcp"]},
    {"type": "stdio", "command": "/opt/bin/graphmem", "args": ["mcp"], "env": {"GRAPHMEM_DB": "/data/team.db"}},
    {"type": "stdio", "command": "/opt/bin/graphmem", "args": ["serve"]},
    {"type": "stdio", "command": "/opt/bin/graphmem", "args": ["mcp", 1]},
    {"type": "stdio", "command": "/opt/bin/graphmem"},
    {"type": "stdio", "command": "/opt/bin/graphmem", "args": ["mcp", "--http"]},
    {"type": "stdio", "command": "/opt/bin/graphmem-of-acme", "args": ["mcp"]},
    {"type": "stdio", "command": "/opt/bin/graphmem", "args": ["--db", "team.db", "mcp"]},
    {**BY_CLAUDE, "args": ["--db", "/data/team.db", "mcp"]},
    {}, None, "graphmem", [],
]  # fmt: skip


def with_server(home, server):
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"graphmem": server}}))


def server_of(home):
    return json.loads((home / ".claude.json").read_text())["mcpServers"]["graphmem"]


@pytest.mark.parametrize("server", OTHERS)
def test_a_server_of_somebody_else_is_kept_and_told_of(home, server):
    with_server(home, server)
    before = everything_in(home)

    hooks, kept = install()
    again = install()[1]
    with_hooks = server_of(home)
    left = claude_setup.uninstall(None, dry_run=False)[1]

    assert len(hooks.changes) == len(EVENTS)
    assert (kept.changes, kept.applied, kept.file) == ((), False, str(home / ".claude.json"))
    assert "to replace it, remove mcpServers.graphmem there and install again" in kept.kept
    assert again == kept
    assert "remove mcpServers.graphmem there if it is to go" in left.kept
    assert with_hooks == server
    assert everything_in(home) == before


def test_what_the_server_of_somebody_else_is_told_of_with(home):
    run = click.testing.CliRunner().invoke
    with_server(home, DOCKER)

    told = [run(graphmem, ["claude", act]).output.splitlines()[1] for act in ("install", "uninstall")]

    for line in told:
        assert line.startswith(f"{home / '.claude.json'}: MCP server graphmem is kept as it is")
    assert server_of(home) == DOCKER


@pytest.mark.parametrize("server", [BY_CLAUDE, {"command": "/opt/bin/graphmem", "args": ["mcp"]}])
def test_a_server_that_claude_code_added_is_as_good_as_ours(home, server):
    with_server(home, server)

    change = install()[1]
    assert (change.changes, change.kept, server_of(home)) == ((), "", server)
    assert "is kept" in install(database="other.db")[1].kept
    assert server_of(home) == server
    assert "is kept" in claude_setup.uninstall(None, dry_run=False)[1].kept
    assert server_of(home) == server


def test_a_server_that_an_earlier_install_wrote_is_ours(home, tmp_path, monkeypatch):
    install(database="team.db")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))

    assert install(database="team.db")[1].changes == ("MCP server graphmem changed",)
    assert server_of(home)["command"] == str(tmp_path / "elsewhere" / "python")
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert install()[1].changes == ("MCP server graphmem changed",)
    assert "--db" not in server_of(home)["args"]
    install(database="team.db", config_file="my.toml")
    claude_setup.uninstall(None, dry_run=False)
    assert everything_in(home) == {}


def test_a_server_of_ours_that_was_changed_by_hand_is_kept(home):
    install()
    ours = server_of(home)
    with_server(home, {**ours, "args": ["--db", "/data/team.db", "mcp"]})

    assert "is kept" in install()[1].kept
    assert "is kept" in claude_setup.uninstall(None, dry_run=False)[1].kept
    assert server_of(home)["args"][1] == "/data/team.db"


def test_a_name_without_a_folder_is_ours_in_a_project_alone(home, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    for file in (home / ".claude.json", project / ".mcp.json"):
        file.write_text('{"mcpServers": {"graphmem": {"type": "stdio", "command": "graphmem", "args": ["mcp"]}}}')

    assert claude_setup.uninstall(project, dry_run=False)[1].changes == ("MCP server graphmem removed",)
    assert "is kept" in claude_setup.uninstall(None, dry_run=False)[1].kept


# ---- JSON files


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["a", "b", "hooks", ""])


@given(
    found=st.dictionaries(KEYS, st.dictionaries(KEYS, st.lists(JSON, max_size=2), max_size=3) | JSON, max_size=3),
    indent=st.sampled_from([None, 2, 4, "\t"]),
    path=st.tuples(KEYS, KEYS),
    value=JSON,
)
def test_what_is_added_is_there_and_is_taken_out_without_a_trace(found, indent, path, value):
    text = json.dumps(found, indent=indent)
    holder = found.get(path[0])
    if path[0] in found and not isinstance(holder, dict):
        return
    if holder is not None and path[1] in holder:
        expected = {**found, path[0]: {**holder, path[1]: value}}
        assert json.loads(json_files.with_value(text, path, value)) == expected
        return

    added = json_files.with_value(text, path, value)

    assert json.loads(added) == {**found, path[0]: {**(holder or {}), path[1]: value}}
    assert json_files.without_value(added, path) == text
    assert json_files.without_value(text, ["nowhere", "at all"]) == text


def test_a_path_through_something_else_is_refused():
    with pytest.raises(InvalidInput, match="neither an object nor a list"):
        json_files.with_value('{"a": 1}', ["a", "b"], 1)


def test_the_files_of_each_place():
    assert claude_setup.files_of(Path("/srv/app")).servers == Path("/srv/app/.mcp.json")


@pytest.mark.parametrize(("program", "needs"), [("claude", {"mcp"}), ("opencode", {"mcp", "http"})])
def test_what_is_still_to_be_installed_is_told(home, monkeypatch, program, needs):
    run = click.testing.CliRunner().invoke
    complete = run(graphmem, [program, "install"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    lacking = run(graphmem, [program, "install"])
    gone = run(graphmem, [program, "uninstall"])

    assert (complete.exit_code, complete.stderr, lacking.exit_code, gone.stderr) == (0, "", 0, "")
    assert set(re.findall(r"pip install 'graphmem\[(\w+)\]'", lacking.stderr)) == needs


@pytest.mark.parametrize("link", [".mcp.json", ".claude", ".opencode", "opencode.json"])
@pytest.mark.parametrize("act", ["install", "uninstall"])
def test_no_link_in_a_project_leads_to_files_elsewhere(home, act, link):
    run = click.testing.CliRunner().invoke
    project, other = home / "clone", home / "own"
    project.mkdir()
    if link.endswith("json"):
        other.write_text('{"mcpServers": {"graphmem": {}}, "mcp": {"graphmem": {}}}')
    else:
        (other / "plugins").mkdir(parents=True)
        (other / "plugins/graphmem.js").write_text("graphmem")
    (project / link).symlink_to(other)
    before = everything_in(home)

    program = "opencode" if "opencode" in link else "claude"
    refused = run(graphmem, ["--project", str(project), program, act, "--project"])

    assert (refused.exit_code, type(refused.exception)) == (1, InvalidInput)
    assert f"leads out of the project, to {other}" in str(refused.exception)
    assert everything_in(home) == before
