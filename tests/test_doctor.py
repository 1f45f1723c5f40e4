"""What `graphmem doctor` finds: each finding made true and false, and nothing of the user's is touched."""

import json
import os
import shutil
import site
import sqlite3
import stat
import subprocess
import sys
import types
from pathlib import Path

import click.testing
import pytest
from support import leave_settings, sql

from graphmem import Memory
from graphmem.surfaces import claude_setup
from graphmem.surfaces.claude_code import EVENTS
from graphmem.surfaces.cli import graphmem
from graphmem.surfaces.doctor import clients, installation, round_trips, storage
from graphmem.surfaces.http import running
from graphmem.surfaces.opencode import setup as opencode_setup

TRIPS = ["Python", "command line", "MCP", "HTTP", "hook"]
COPIES = ("n.sync-conflict-20260301-101010-ABCDEFG.md", "n (Ann's conflicted copy 2026-03-01).md", "n 2.md")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own, in which the test works, and no settings of whoever runs the tests."""
    leave_settings(monkeypatch)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def path(home):
    return home / "memory.db"


@pytest.fixture
def doctor(path):
    """Run the command; return its findings by what they are of, and check its exit code."""

    def run(*arguments, db=path, quick=True, before=()):
        words = [*(["--db", str(db)] if db else []), *before, "doctor", *(["--quick"] if quick else []), *arguments]
        ran = click.testing.CliRunner().invoke(graphmem, [*map(str, words), "--json"], standalone_mode=False)
        assert ran.exception is None, ran.exception
        document = json.loads(ran.stdout)
        assert document["ok"] == all(found["state"] != "problem" for found in document["findings"])
        assert ran.return_value == (0 if document["ok"] else 1)
        assert all(found["remedy"] for found in document["findings"] if found["state"] == "problem")
        found = {}
        for one in document["findings"]:
            found.setdefault(one["what"], []).append(types.SimpleNamespace(**one))
        return found

    return run


def only(found, what):
    (one,) = found[what]
    return one


def told(found, what):
    one = only(found, what)
    return one.state, one.told, one.remedy


def everything_in(folder):
    """Names, kinds, modes, times and bytes."""
    return {
        str(file): (file.lstat().st_mode, file.lstat().st_mtime_ns, file.read_bytes() if file.is_file() else b"")
        for file in [folder, *sorted(folder.rglob("*"))]
    }


def make(path):
    Memory.open(path).close()


# ---- the whole


def test_nothing_of_the_user_is_touched_and_all_is_well(doctor, home, path, monkeypatch):
    monkeypatch.setattr(round_trips, "SECONDS", 60)  # on a crowded machine
    with Memory.open(path) as memory:
        memory.remember("Tea at four")
        memory.export_tree(home / "tree")
    claude_setup.install(None, database=str(path), config_file=None, dry_run=False)
    before = everything_in(home)

    found = doctor(quick=False)

    assert everything_in(home) == before
    assert [one for each in found.values() for one in each if one.state == "problem"] == []
    assert {f"round trip, {name}" for name in TRIPS} <= set(found)


def test_on_a_first_run_nothing_is_made(doctor, home):
    found = doctor(db=None)

    assert list(home.rglob("*")) == []
    state, text, remedy = told(found, "memory")
    assert (state, remedy) == ("note", "the first command that writes makes it")
    assert text == f"{home}/.local/share/graphmem/memory.db (default): there is none yet"  # MCP-07


def test_the_table_tells_the_path_in_use_problems_and_diffs(home, path):
    with Memory.open(path) as memory:
        memory.remember("n")
        memory.export_tree(home / "tree")
    (home / "tree/facts" / COPIES[0]).write_text("other\x1b[2J words\n", "utf-8")
    path.chmod(0o644)

    ran = click.testing.CliRunner().invoke(graphmem, ["--db", str(path), "doctor", "--quick"], standalone_mode=False)

    assert ran.return_value == 1
    assert f"{path} (option --db)" in " ".join(ran.stdout.split())
    assert f"memory permissions: chmod 600 {path}\n" in ran.stdout
    assert "+other\\x1b[2J words" in ran.stdout
    assert "\x1b[2J" not in ran.stdout
    assert ran.stdout.endswith("\n1 problem\n")


def test_what_cannot_be_looked_at_is_a_problem_and_the_rest_goes_on(doctor, path, monkeypatch):
    make(path)

    def fail(*_):
        raise PermissionError(13, "Permission denied", "/a/b")

    monkeypatch.setattr(storage.shutil, "disk_usage", fail)

    found = doctor()

    assert told(found, "files")[:2] == ("problem", "/a/b: Permission denied")
    assert "Claude Code" in found


def test_without_a_temporary_folder_that_is_what_is_told(doctor, monkeypatch):
    def fail(*_, **__):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("graphmem.surfaces.doctor.examining.tempfile.TemporaryDirectory", fail)

    found = doctor()

    assert list(found) == ["temporary folder"]
    assert "TMPDIR" in only(found, "temporary folder").remedy


# ---- installation


def test_versions_and_extras_are_told(doctor, monkeypatch):
    found = doctor()

    assert only(found, "graphmem").state == only(found, "Python").state == "ok"
    assert told(found, "SQLite") == ("ok", f"{sqlite3.sqlite_version} with FTS5", "")
    assert only(found, "extra mcp").state == "ok"

    monkeypatch.setattr(installation, "_version", lambda package: "" if package == "watchfiles" else "1")
    lacking = doctor()
    assert told(lacking, "extra tree") == ("note", "not installed: watchfiles", "pip install 'graphmem[tree]'")
    assert only(lacking, "extra zh").told == "rjieba 1"
    assert not {"extra browser", "extra dev"} & set(lacking)


def test_a_sqlite_without_what_a_memory_needs_is_a_problem(doctor, monkeypatch):
    monkeypatch.setattr(installation, "_NEEDED", ("CREATE VIRTUAL TABLE words USING fts6(a)",))

    state, text, remedy = told(doctor(), "SQLite")

    assert (state, "no such module: fts6" in text, "FTS5" in remedy) == ("problem", True, True)


def test_the_program_of_the_name_is_ours_or_not(doctor, home, monkeypatch):
    own = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(own))
    assert told(doctor(), "program") == ("ok", str(own / "graphmem"), "")

    (home / "graphmem").write_text("#!/bin/sh\n")
    (home / "graphmem").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{own}")
    assert "of another installation" in only(doctor(), "program").told

    monkeypatch.setenv("PATH", "")
    assert only(doctor(), "program").state == "note"


# ---- settings and the path


def test_where_the_path_comes_from_is_told(doctor, home, monkeypatch):  # MCP-07
    make(home / "memory.db")
    settings = home / "settings.toml"
    settings.write_text(f'data_dir = "{home}"\n')
    monkeypatch.setenv("GRAPHMEM_DB", "~/memory.db")
    by_variable = only(doctor(db=None), "memory").told
    monkeypatch.delenv("GRAPHMEM_DB")
    by_settings = only(doctor(db=None, before=("--config", settings)), "memory").told

    assert by_variable.startswith(f"{home}/memory.db (environment GRAPHMEM_DB), ")
    assert by_settings.startswith(f"{home}/memory.db (file {settings}), ")


def test_settings_that_cannot_be_read_are_a_problem_and_the_rest_goes_on(doctor, home, path):
    make(path)
    settings = home / "settings.toml"
    settings.write_text("journal_days = 'never'\n")

    found, without = (doctor(db=db, before=("--config", settings)) for db in (path, None))

    for each in (found, without):
        assert only(each, "settings").state == "problem"
        assert "journal_days" in only(each, "settings").told
        assert "Claude Code" in each
    assert only(found, "memory content").state == "ok"
    assert "memory" not in without


def test_read_only_settings_are_told(doctor, path, monkeypatch):
    make(path)
    assert only(doctor(), "settings").state == "ok"

    monkeypatch.setenv("GRAPHMEM_READ_ONLY", "true")

    assert "read_only" in only(doctor(), "settings").told


# ---- the memory


def test_a_folder_that_is_missing_and_one_in_memory_are_told(doctor, home):
    state, text, remedy = told(doctor(db=home / "away" / "memory.db"), "memory")

    assert (state, remedy) == ("problem", f"mkdir -m 700 -p {home}/away")
    assert "its folder does not exist" in text
    assert only(doctor(db=":memory:"), "memory").state == "note"


@pytest.mark.parametrize(
    ("bad", "mends"),
    [
        (lambda path: path.write_text("no database" * 100), "restore"),
        (lambda path: sql(path, "CREATE TABLE songs(title)"), "--db"),
        (lambda path: [make(path), sql(path, "PRAGMA user_version = 99")], "upgrade"),
        (lambda path: path.mkdir(), "--db"),
    ],
    ids=["text", "of another program", "of a newer graphmem", "folder"],
)
def test_a_file_that_is_no_memory_is_a_problem_and_not_touched(doctor, home, path, bad, mends):
    bad(path)
    path.chmod(0o700 if path.is_dir() else 0o600)
    before = everything_in(home)

    state, text, remedy = told(doctor(), "memory content")

    assert (state, str(path) in text, mends in remedy) == ("problem", True, True)
    assert everything_in(home) == before


def test_an_older_schema_is_told(doctor, path):
    make(path)
    assert only(doctor(), "memory content").told.startswith("sound, schema ")

    sql(path, "PRAGMA user_version = 9")

    state, text, remedy = told(doctor(), "memory content")
    assert (state, text) == ("note", "sound, schema 9 of an older graphmem")
    assert "back it up" in remedy


def test_a_memory_in_use_is_looked_at_with_its_log(doctor, home, path):
    script = "import sys; from graphmem import Memory; m = Memory.open(sys.argv[1]); m.remember('a'); print(); input()"
    with subprocess.Popen([sys.executable, "-c", script, path], stdin=-1, stdout=-1) as other:
        other.stdout.readline()
        before = everything_in(home)
        found = doctor()
        assert everything_in(home) == before
        other.communicate(b"\n")

    assert only(found, "memory content").state == "ok"


@pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")
def test_what_others_may_read_or_write_is_a_problem_with_what_mends_it(doctor, home, monkeypatch):
    make(home / "memory.db")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    (home / "data/graphmem").mkdir(parents=True, mode=0o700)
    own = home / "data/graphmem/memory.db"
    make(own)
    (home / "data/graphmem/memory.db.blobs").mkdir(mode=0o700, exist_ok=True)
    state_folder = home / ".local/state/graphmem/servers"
    state_folder.mkdir(parents=True)
    record = state_folder / "0.json"
    record.write_text("{}")
    record.chmod(0o600)
    state_folder.parent.chmod(0o700)
    settings = home / ".config/graphmem/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("")
    settings.chmod(0o644)
    assert not [what for what in doctor(db=None) if what.endswith("permissions")]

    for file, open_mode, mends in [
        (own, 0o640, "600"),
        (own.parent, 0o755, "700"),
        (own.with_name("memory.db.blobs"), 0o750, "700"),
        (state_folder.parent, 0o711, "700"),
        (record, 0o604, "600"),
        (settings, 0o664, "go-w"),
    ]:
        before = stat.S_IMODE(file.stat().st_mode)
        file.chmod(open_mode)
        (found,) = [one for what, each in doctor(db=None).items() if what.endswith("permissions") for one in each]
        assert (found.state, found.remedy) == ("problem", f"chmod {mends} {file}")
        subprocess.run(found.remedy, shell=True, check=True)  # noqa: S602 (the remedy is what is tested)
        assert not [what for what in doctor(db=None) if what.endswith("permissions")]
        file.chmod(before)


def test_in_a_folder_that_is_not_ours_others_may_look_and_not_write(doctor, home, path):
    make(path)
    home.chmod(0o755)
    assert "memory folder permissions" not in doctor()

    home.chmod(0o777)

    assert told(doctor(), "memory folder permissions")[::2] == ("problem", f"chmod go-w {home}")
    home.chmod(0o1777)
    assert "memory folder permissions" not in doctor()


def test_a_memory_that_cannot_be_written_is_a_problem_unless_it_is_only_to_be_read(doctor, home, path, monkeypatch):
    make(path)
    assert "memory permissions" not in doctor()
    monkeypatch.setattr("graphmem.surfaces.opening.Session.is_unwritable", lambda self: True)

    assert told(doctor(), "memory permissions")[::2] == ("problem", f"chmod u+rwX {home} {path}")
    monkeypatch.setenv("GRAPHMEM_READ_ONLY", "true")
    assert "memory permissions" not in doctor()


def test_room_and_the_log_are_told(doctor, path, monkeypatch):
    make(path)
    assert only(doctor(), "disk").state == "ok"
    for free, state in ((100, "problem"), (storage._LEAST_ROOM, "note")):
        monkeypatch.setattr(storage.shutil, "disk_usage", lambda _, free=free: types.SimpleNamespace(free=free))
        with path.open("r+b") as file:
            file.truncate(storage._LEAST_ROOM + 4096)
        assert only(doctor(), "disk").state == state
    assert "write-ahead log" not in doctor()

    monkeypatch.setattr(storage, "_LARGEST_LOG", -1)
    path.with_name("memory.db-wal").touch(0o600)

    assert told(doctor(), "write-ahead log")[::2] == ("note", "graphmem upkeep")


# ---- its place


@pytest.mark.parametrize(
    ("folder", "mark", "program"),
    [
        ("Dropbox", "", "Dropbox"),
        ("Dropbox (Work)/a", "", "Dropbox"),
        ("OneDrive - Contoso", "", "OneDrive"),
        ("Library/Mobile Documents/a", "", "iCloud Drive"),
        ("Library/CloudStorage/GoogleDrive-a@b.c", "", "Google Drive"),
        ("Google Drive/My Drive", "", "Google Drive"),
        ("Nextcloud", "", "Nextcloud"),
        ("shared", ".stfolder", "Syncthing"),
        ("shared/below", "../.stfolder", "Syncthing"),
        ("work", "", ""),
        ("dropboxes", "", ""),
    ],
)
def test_a_memory_in_a_synced_folder_is_warned_of(doctor, home, folder, mark, program):  # MD-06
    place = home / folder
    place.mkdir(parents=True, mode=0o700)
    if mark:
        (place / mark).mkdir()
    make(place / "memory.db")

    state, text, remedy = told(doctor(db=place / "memory.db"), "place")

    assert state == ("problem" if program else "ok")
    if program:
        assert f"a folder that {program} syncs" in text
        assert "--db" in remedy


def test_a_home_in_which_dropbox_keeps_its_state_is_no_synced_folder(doctor, home, path):
    make(path)
    (home / ".dropbox").mkdir()

    assert only(doctor(), "place").state == "ok"


def test_a_person_whose_name_is_that_of_a_program_syncs_nothing(doctor, home, monkeypatch):
    person = home / "nextcloud"
    person.mkdir(mode=0o700)
    make(person / "memory.db")
    assert only(doctor(db=person / "memory.db"), "place").state == "problem"

    monkeypatch.setenv("HOME", str(person))

    assert only(doctor(db=person / "memory.db"), "place").state == "ok"


def test_a_file_system_of_another_machine_is_a_problem(doctor, path, monkeypatch):
    make(path)
    monkeypatch.setattr(storage, "_distant", lambda file: "nfs4")

    state, text, _ = told(doctor(), "place")

    assert (state, "another machine (nfs4)" in text) == ("problem", True)


def test_the_file_system_is_that_of_the_nearest_mount(monkeypatch):
    lines = ["1 0 0:1 / / rw - ext4 /dev/a rw", "2 1 0:2 / /mnt/a\\040b rw shared:1 - nfs4 host:/a rw"]
    monkeypatch.setattr(Path, "read_text", lambda *_: "\n".join([*lines, "3 2 0:3 / /mnt/a\\040b/own rw - ext4 b rw"]))

    found = [storage._distant(Path(file)) for file in ("/mnt/a b/m.db", "/mnt/a b/own/m.db", "/mnt/m.db")]

    assert found == ["nfs4", "", ""]


def test_conflict_copies_of_the_database_are_listed(doctor, home):  # MD-06
    place = home / "Nextcloud"
    place.mkdir(mode=0o700)
    make(place / "memory.db")
    copies = {
        "memory.sync-conflict-20260301-101010-ABCDEFG.db",
        "memory (conflicted copy 2026-03-01).db",
        "memory 2.db",
    }
    for name in (*copies, "memory.db.bak", "other.db", "other (conflicted copy).db"):
        shutil.copy(place / "memory.db", place / name)

    found = doctor(db=place / "memory.db")

    assert {Path(one.told.partition(" was left")[0]).name for one in found["conflict copy"]} == copies
    assert {one.state for one in found["conflict copy"]} == {"problem"}
    assert "conflict copy" not in doctor(db=place / "other (conflicted copy).db")


# ---- its server


def test_a_server_that_runs_answers_and_one_that_is_gone_is_told(doctor, path):
    assert only(doctor(), "server").told == "none runs for this memory"
    words = [sys.executable, "-m", "graphmem", "--db", str(path), "serve", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=-1) as server:
        served = json.loads(server.stdout.readline())
        alive = told(doctor(), "server")
        server.kill()
    gone = told(doctor(), "server")

    assert alive[0] == "ok"
    assert alive[1].startswith(f"{served['url']} (process {served['pid']}) answers, version ")
    assert gone[0] == "note"
    assert served["url"] in gone[1]


def test_what_answers_in_the_place_of_a_server_that_ended_is_not_taken_for_it(doctor, path):
    words = [sys.executable, "-m", "graphmem", "--db", f"{path}-2", "serve", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=-1) as server:
        served = json.loads(server.stdout.readline())
        record = running.record_of(str(path))
        record.with_suffix(".lock").touch()
        running.tell(record, running.Running(str(path), served["url"], served["port"], "token", 1))
        state, text, _ = told(doctor(), "server")
        server.kill()

    assert (state, "something else answers there" in text) == ("note", True)


def test_a_server_elsewhere_is_not_asked(doctor, path):
    make(path)
    record = running.record_of(str(path))
    record.parent.mkdir(parents=True)
    record.parent.parent.chmod(0o700)
    record.touch(0o600)
    running.tell(record, running.Running(str(path), "http://example.org:80", 80, "t", 1))

    assert "not one of this machine" in only(doctor(), "server").told


# ---- trees


@pytest.fixture
def tree(home, path):
    with Memory.open(path) as memory:
        for title in ("n", "Tea at four"):
            memory.remember(title, body=f"All about {title}.")
        memory.export_tree(home / "tree")
    return home / "tree"


def test_a_tree_is_there_or_not(doctor, tree):
    assert told(doctor(), "tree") == ("ok", f"{tree} (scope user, form notes)", "")

    shutil.rmtree(tree)
    state, text, remedy = told(doctor(), "tree")

    assert (state, "is not there" in text, f"tree export {tree}" in remedy) == ("problem", True, True)


def test_copies_in_a_tree_are_listed_with_a_diff(doctor, tree):  # MD-06
    note = tree / "facts/n.md"
    assert "tree copy" not in doctor()
    for name in COPIES:
        text = note.read_text("utf-8").replace("All about n.", f"What {name} says.")
        note.with_name(name).write_text(text, "utf-8")
    note.with_name("other 2.md").write_text("a note of its own\n", "utf-8")
    (tree / "facts/tea-at-four 3.md").write_text("---\nid: another\n---\nAnother note.\n", "utf-8")

    found = doctor()["tree copy"]

    assert {Path(one.told.partition(", a copy of n.md")[0]).name for one in found} == set(COPIES)
    for one in found:
        assert one.state == "note"
        assert "-All about n." in one.diff
        assert any(line.startswith("+What ") for line in one.diff)
        assert "is not read" in one.told


def test_the_diff_of_a_copy_is_bounded_and_follows_no_link(doctor, tree, home):
    (home / "secret.md").write_text("a secret\n")
    (tree / "facts" / COPIES[0]).write_text("\n".join(f"{n} {'x' * 1000}" for n in range(1000)))
    (tree / "facts" / COPIES[1]).symlink_to(home / "secret.md")

    copy = only(doctor(), "tree copy")

    assert len(copy.diff) == 21
    assert max(map(len, copy.diff)) < 200
    assert copy.diff[-1].endswith("more lines")
    assert "secret" not in repr(copy)


def test_many_copies_are_counted(doctor, tree):
    for number in range(25):
        (tree / f"facts/n.sync-conflict-20260301-{number}-A.md").write_text("x")

    found = doctor()["tree copy"]

    assert len(found) == 21
    assert found[-1].told == f"5 more copies in {tree}"


def test_a_conflict_that_waits_is_a_problem_and_its_file_no_copy(doctor, tree, path):
    file = tree / "facts/tea-at-four.md"
    with Memory.open(path) as memory:
        memory.edit_note(2, body="Tea at five.")
        file.write_text(file.read_text("utf-8").replace("All about Tea", "Much about tea"), "utf-8")
        memory.sync_tree(tree)
    assert file.with_name("tea-at-four.conflict.md").exists()

    found = doctor()

    state, text, remedy = told(found, "conflict")
    assert (state, str(file) in text) == ("problem", True)
    assert "tea-at-four.conflict.md" in remedy
    assert "tree copy" not in found


# ---- clients


def installed(path, project=None):
    claude_setup.install(project, database=str(path), config_file=None, dry_run=False)


def settings_of(home):
    return home / ".claude/settings.json"


def test_claude_code_uses_the_memory_or_not(doctor, home, path):
    assert told(doctor(), "Claude Code") == ("note", "does not use the memory", "graphmem claude install")

    installed(path)
    found = doctor()

    assert only(found, "Claude Code, hooks").state == only(found, "Claude Code, MCP").state == "ok"
    assert "Claude Code, project, hooks" not in found


def test_hooks_or_a_server_that_are_missing_are_told(doctor, home, path):
    installed(path)
    found = json.loads(settings_of(home).read_text())
    del found["hooks"]["Stop"]
    settings_of(home).write_text(json.dumps(found))
    (home / ".claude.json").unlink()

    missing, rest = doctor()["Claude Code, hooks"]

    assert (missing.state, missing.remedy) == ("problem", "graphmem claude install")
    assert "none for Stop" in missing.told
    assert rest.state == "ok"
    assert only(doctor(), "Claude Code, MCP").state == "note"


@pytest.mark.parametrize(
    ("server", "state", "text"),
    [
        ({"type": "stdio", "command": "graphmem", "args": ["mcp"], "env": {}}, "ok", "graphmem mcp"),
        ({"command": "env", "args": ["graphmem", "mcp"]}, "note", "was not tried"),
        ({"type": "http", "url": "https://memory.acme.com/mcp"}, "note", "starts no program"),
    ],
)
def test_a_server_of_somebody_else_is_no_problem(doctor, home, monkeypatch, server, state, text):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    servers = home / ".claude.json"
    servers.write_text(json.dumps({"mcpServers": {"graphmem": server}}))
    config = opencode_setup.places_of(None).folder / "opencode.json"
    config.parent.mkdir(parents=True)
    command = [server[name] for name in ("command",) if name in server] + server.get("args", [])
    config.write_text(json.dumps({"mcp": {"graphmem": {"type": "local", "command": command}}}))

    found = doctor()

    for program, name, file in (("Claude Code", "claude", servers), ("OpenCode", "opencode", config)):
        one = only(found, f"{program}, MCP")
        assert (one.state, text in one.told) == (state, True)
        if state != "ok":
            assert one.remedy == f"remove graphmem from the MCP servers in {file}, then graphmem {name} install"
    assert only(found, "Claude Code, hooks").state == only(found, "OpenCode, plug-in").state == "note"


def test_opencode_uses_the_memory_or_not(doctor, home, path):
    assert told(doctor(), "OpenCode") == ("note", "does not use the memory", "graphmem opencode install")

    opencode_setup.install(None, database=str(path), config_file=None, dry_run=False)
    found = doctor()

    assert only(found, "OpenCode, plug-in").state == only(found, "OpenCode, MCP").state == "ok"
    assert "OpenCode, project, plug-in" not in found


def test_a_file_of_the_plug_in_that_is_missing_or_old_is_told(doctor, home, path):
    opencode_setup.install(None, database=str(path), config_file=None, dry_run=False)
    folder = opencode_setup.places_of(None).folder
    bridge, plugin = folder / "graphmem/bridge.js", folder / "plugins/graphmem.js"
    bridge.unlink()
    plugin.write_text("// graphmem of last year")

    broken, works = doctor()["OpenCode, plug-in"]

    assert (broken.state, broken.remedy) == ("problem", "graphmem opencode install")
    assert str(bridge) in broken.told
    assert str(plugin) in broken.told
    assert works.state == "ok"


@pytest.mark.parametrize("what", ["is missing", "fails"])
def test_a_program_that_does_not_start_is_a_problem(doctor, home, path, what):
    installed(path)
    program = home / "bin/graphmem-hook"
    if what == "fails":
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho cannot begin >&2\nexit 3\n")
        program.chmod(0o755)
    text = settings_of(home).read_text()
    settings_of(home).write_text(text.replace(str(Path(sys.executable).with_name("graphmem-hook")), str(program)))

    state, text, remedy = told(doctor(), "Claude Code, hooks")

    assert (state, remedy) == ("problem", "graphmem claude install")
    assert ("not there" if what == "is missing" else "exit code 3: cannot begin") in text


def test_a_server_whose_packages_are_missing_is_a_problem_that_pip_mends(doctor, home, path):
    installed(path)
    program, servers = home / "bin/graphmem", home / ".claude.json"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\n[ "$1" = mcp ] || exit 0\n'
        "echo \"extra = 'mcp': serving needs mcp: pip install 'graphmem[mcp]'\" >&2\nexit 2\n"
    )
    program.chmod(0o755)
    told_there = json.loads(servers.read_text())
    told_there["mcpServers"]["graphmem"]["command"] = str(program)
    servers.write_text(json.dumps(told_there))

    state, text, remedy = told(doctor(), "Claude Code, MCP")

    assert (state, remedy) == ("problem", "pip install 'graphmem[mcp]'")
    assert "serving needs mcp" in text


def test_another_memory_and_missing_settings_are_told(doctor, home, path):
    claude_setup.install(None, database=str(home / "other.db"), config_file=None, dry_run=False)
    assert "uses another memory" in only(doctor(), "Claude Code, MCP").told

    claude_setup.install(None, database=None, config_file=str(home / "no.toml"), dry_run=False)
    assert told(doctor(), "Claude Code, MCP")[0] == "problem"


def test_a_file_of_claude_code_that_cannot_be_read_is_a_problem(doctor, home):
    settings_of(home).parent.mkdir()
    settings_of(home).write_text('{"hooks": ')

    state, text, _ = told(doctor(), "Claude Code")

    assert (state, str(settings_of(home)) in text) == ("problem", True)


def test_what_a_project_names_is_started_only_where_it_is_ours(doctor, home, path):
    project = home / "project"
    project.mkdir()
    installed(path, project)
    mine = doctor(before=("--project", project))
    evil = project / "graphmem-hook"
    evil.write_text(f"#!/bin/sh\ntouch '{home}/done'\n")
    evil.chmod(0o755)
    hook = {"type": "command", "command": str(evil), "args": ["Stop"]}
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    server = {"command": sys.executable, "args": ["-c", f"open({str(home / 'done')!r}, 'w')", "-m", "graphmem"]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"graphmem": server}}))

    found = doctor(before=("--project", project))

    assert only(mine, "Claude Code, project, hooks").state == only(mine, "Claude Code, project, MCP").state == "ok"
    assert not (home / "done").exists()
    assert "was not tried" in found["Claude Code, project, hooks"][-1].told
    assert "was not tried" in only(found, "Claude Code, project, MCP").told


def test_hooks_are_seen_as_they_are_installed(home, path):
    assert claude_setup.installed(None).hooks == {}
    installed(path)

    found = claude_setup.installed(None)

    assert tuple(found.hooks) == EVENTS
    assert all(words[-3:] == ("--db", str(path), event) for event, words in found.hooks.items())
    assert found.server[-3:] == ("--db", str(path), "mcp")


def test_a_program_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(clients, "_PATIENCE", 0.2)

    assert clients._failure([sys.executable, "-c", "import time; time.sleep(60)"], os.environ) != ""


# ---- round trips


@pytest.fixture
def trips(tmp_path):
    place = round_trips.place_in(tmp_path)

    def run():
        return {one.what.removeprefix("round trip, "): one for one in round_trips.look(place)}

    return run


@pytest.mark.parametrize("script", ["raise SystemExit('broken')", "import time; time.sleep(60)", "print('{}')"])
def test_a_surface_that_fails_is_a_finding_and_no_traceback(trips, monkeypatch, script):
    broken = (sys.executable, "-c", script)
    monkeypatch.setattr(round_trips, "SECONDS", 1)
    monkeypatch.setattr(round_trips, "_GRAPHMEM", broken)
    monkeypatch.setattr(round_trips, "_HOOK", broken)

    found = trips()

    assert list(found) == TRIPS
    assert [one.state for one in found.values()] == ["ok", *["problem"] * 4]
    for one in list(found.values())[1:]:
        assert one.told
        assert "Traceback" not in one.told
        assert one.remedy.startswith("pip install ")
        assert ("broken" in one.told) == ("broken" in script) or one.what.endswith("hook")


def test_a_memory_that_forgets_is_a_finding(trips, monkeypatch):
    monkeypatch.setattr(round_trips, "_command_line", lambda place: "")
    for name in ("_mcp", "_http", "_hook"):
        monkeypatch.setattr(round_trips, name, lambda place: "")
    monkeypatch.setattr(Memory, "recall", lambda *_, **__: ())

    found = trips()

    assert (found["Python"].state, found["Python"].told) == ("problem", "a fact that was committed was not recalled")


def test_a_surface_without_its_packages_is_a_note(trips, monkeypatch):
    for name in ("_python", "_command_line", "_hook"):
        monkeypatch.setattr(round_trips, name, lambda place: "")
    find = round_trips.extras.importlib.util.find_spec
    absent = ("mcp", "uvicorn")
    monkeypatch.setattr(
        round_trips.extras.importlib.util, "find_spec", lambda name: None if name in absent else find(name)
    )

    found = trips()

    assert (found["MCP"].state, found["MCP"].remedy) == ("note", "pip install 'graphmem[mcp]'")
    assert (found["HTTP"].state, found["HTTP"].remedy) == ("note", "pip install 'graphmem[http]'")
    assert found["HTTP"].told == "HTTP needs uvicorn"


def test_what_is_started_on_a_trip_keeps_to_its_folder(tmp_path, home):
    environ = round_trips.place_in(tmp_path).environ
    kept = {"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}

    assert all(Path(environ[name]).is_relative_to(tmp_path) for name in kept)
    assert [name for name in environ if name.startswith("GRAPHMEM_")] == ["GRAPHMEM_HOOK_ALONE"]
    assert environ["PYTHONUSERBASE"] == site.getuserbase()
