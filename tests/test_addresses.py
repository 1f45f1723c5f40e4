"""Addresses of servers: none is shown with a password, and none is taken for the path of a file or a folder."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from support import leave_settings

from graphmem import InvalidInput, Memory
from graphmem.core.addresses import holds_password, is_server, tenant_of, without_password, without_passwords
from graphmem.surfaces import hook_helper, setting_up
from graphmem.surfaces.cli import main
from graphmem.surfaces.doctor import clients
from graphmem.surfaces.http import running, starting
from graphmem.surfaces.opening import Session

WORD = "hunter2Xy9"
ADDRESS = f"postgresql://me:{WORD}@db.invalid/m?tenant=t1"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home that is empty, and the working folder."""
    leave_settings(monkeypatch)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cli(capsys):
    """The command line in this process: its exit code, and all it says."""

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        return end.value.code, "".join(capsys.readouterr())

    return run


OTHERS = [
    f" postgresql://me:{WORD}@db.invalid/m",
    f"postgresql+psycopg://me:{WORD}@db.invalid/m",
    f"postgresql:/me:{WORD}@db.invalid/m",
    f"Postgres:/me:{WORD}@db.invalid/m",
    f"postgresq://me:{WORD}@db.invalid/m",
    f"mysql://me:{WORD}@db.invalid/m",
    f"postgresql://me:{WORD}@db.invalid/m\n",
    Path(ADDRESS),
    Path(f"mysql://me:{WORD}@db.invalid/m"),
]


@pytest.mark.parametrize("given", OTHERS)
def test_what_looks_like_an_address_is_no_path(given, home):
    for act in (Memory.open, Memory.check_copy, lambda path: Memory.copy(path, "copy.db")):
        with pytest.raises(InvalidInput) as caught:
            act(given)
        assert WORD not in str(caught.value)
        assert "me@db.invalid" in str(caught.value)
    with pytest.raises(InvalidInput, match="postgresql://user@host/database"):
        Memory.open(given)
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    "given",
    [
        f"host=db.invalid dbname=m password={WORD}",
        f"user=me password='{WORD}:/x' host=/tmp",
        f" password = {WORD}\nservice = m",
        f"hostaddr=127.0.0.1 password={WORD}://me@db",
    ],
)
def test_keywords_of_libpq_are_no_path(given, home):
    assert holds_password(given)
    with pytest.raises(InvalidInput, match=r"path = '\.\.\.': is no address of a server: write postgresql://"):
        Memory.open(given)
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    "path",
    [
        "memory.db",
        "a=b.db",
        "dbname",
        "x/host=1",
        ":memory:",
        "C:/a@b",
        "C://a.db",
        "a:b@c",
        "./postgresql",
        "/a//b:c@d",
    ],
)
def test_a_path_is_no_address(path):
    assert not is_server(path)
    assert without_password(path) == path
    assert tenant_of(path) == ""


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (f"POSTGRESQL://me:{WORD}@db/m", "POSTGRESQL://me@db/m"),
        (
            f"postgresql://me:{WORD}@[::1]:5433/m?sslmode=require&tenant=a@b",
            "postgresql://me@[::1]:5433/m?tenant=a@b",
        ),
        (f"postgresql://me:x@{WORD}@db/m?tenant=t1", "postgresql://me..."),
        (f"postgresql://me@x:{WORD}@db/m", "postgresql://me..."),
        (f"postgresql://me:x/{WORD}@db/m", "postgresql://me..."),
        (f"postgresql://me:x y{WORD}@db/m", "postgresql://me@db/m"),
        (f"postgresql://me:{WORD}", "postgresql://me..."),
        (f"postgresql://db:5432/m?password=x@{WORD}", "postgresql://db..."),
        (f"postgresql:/me:{WORD}@db/m", "postgresql:/me@db/m"),
    ],
)
def test_an_address_is_shown_without_a_password(given, shown):
    assert without_password(given) == shown


def test_texts_are_told_without_passwords():
    kept = (
        "http://127.0.0.1:8080/enter?token=x (see https://docs.invalid/a), write postgresql://user@host/m?tenant=NAME."
    )
    assert without_passwords(kept) == kept
    assert without_passwords(f"no '{ADDRESS}'; https://me:{WORD}@db.invalid:1/x?y=1: no") == (
        "no 'postgresql://me@db.invalid/m?tenant=t1'; https://me@db.invalid:1/x: no"
    )


# ---- programs that are started, their settings and logs


def test_a_log_of_hooks_tells_no_password(home):
    address = f"postgresql://me:x@{WORD}@db.invalid/m"
    hook_helper.answer(b"", "\0".join(["", "--db", address, "SessionStart"]).encode(), b'{"session_id": "s1"}')

    (log,) = home.rglob("hook.log")
    assert WORD not in log.read_text()
    assert "postgresql://me..." in log.read_text()


def test_what_goes_on_behind_a_hook_is_told_the_memory_by_its_environment(monkeypatch):
    started = []
    monkeypatch.setattr(hook_helper, "_apart", lambda words, environ, told: started.append((words, environ)))
    hook_helper._go_on("wish", b"{}", "", {"database": ADDRESS, "config_file": "own.toml"})

    ((words, environ),) = started
    assert WORD not in " ".join(words)
    assert (environ["GRAPHMEM_DB"], environ["GRAPHMEM_CONFIG"]) == (ADDRESS, "own.toml")


def test_a_server_apart_is_told_the_memory_by_its_environment(monkeypatch):
    started = []

    def start(words, **options):
        started.append((words, options))
        raise InterruptedError

    monkeypatch.setattr(starting.subprocess, "Popen", start)
    with pytest.raises(InterruptedError):
        starting.started(Session(ADDRESS, None), [])

    ((words, options),) = started
    assert WORD not in " ".join(words)
    assert options["env"]["GRAPHMEM_DB"] == ADDRESS
    assert os.path.isdir(options["cwd"])


def test_the_server_of_a_tenant_is_found_from_any_folder_and_however_it_is_written(tmp_path, monkeypatch):
    there = running.record_of("postgresql://me@db.invalid/m?tenant=a%20b")
    monkeypatch.chdir(tmp_path)
    others = [
        f"Postgres://me:{WORD}@db.invalid/m?sslmode=require&tenant=a b",
        "postgresql://me@db.invalid/m?tenant=c",
    ]

    assert [running.record_of(other) == there for other in others] == [True, False]


def test_no_password_is_written_into_settings_of_other_programs():
    with pytest.raises(InvalidInput, match=r"~/\.pgpass") as caught:
        setting_up.options_of(ADDRESS, None)
    assert WORD not in str(caught.value)
    assert setting_up.options_of("postgresql://me@db.invalid/m", None) == ["--db", "postgresql://me@db.invalid/m"]


# ---- commands


COMMANDS = [
    "check {}",
    "dedupe --dry-run {}",
    "dedupe {}",
    "restore {}",
    "backup {}",
    "verify-forgotten x {}",
    "import jsonl {}",
    "export jsonl {}",
    "tree export {}",
    "tree sync {}",
    "harvest {}",
    "mirror s1 {}",
    "replay {}",
    "graph --output {}",
    "block put x --file {}",
    "scenes reset --emergent --backup {}",
    "--config {} check",
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("address", [ADDRESS, f"mysql://me:x@{WORD}@db.invalid/m"])
def test_commands_refuse_an_address_where_a_file_is_wanted(cli, home, command, address):
    code, told = cli(*command.format(address).split(), *(["--json"] if "mirror" in command else []))

    assert code == 2
    assert WORD not in told
    assert "mysql://me..." in told or "me@db.invalid" in told
    assert "name a memory on a server with --db" in told
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "repair {}",
        "upkeep {}",
        "upkeep --json {}",
        "{}",
        "completion {}",
        "remember a --kind {}",
        "undo {}",
        "document put x --file {}",
    ],
)
def test_wrong_usage_tells_no_password(cli, command):
    code, told = cli(*command.format(ADDRESS).split())

    assert code == 2
    assert WORD not in told
    assert "me@db.invalid" in told


def test_a_memory_that_is_only_read_is_told_without_a_password(cli, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_READ_ONLY", "true")
    code, told = cli("--db", ADDRESS, "restore", "backup.db")

    assert (code, WORD in told, "me@db.invalid" in told) == (1, False, True)


def test_the_doctor_tells_no_password_of_what_programs_call(monkeypatch):
    monkeypatch.setattr(clients, "_failure", lambda words, environ: "")
    command = [sys.executable, *clients.words_of("graphmem")[1:], "--db", ADDRESS, "mcp"]
    caller = clients._Caller("x", "install", is_own=True)
    for memory in ("memory.db", os.path.realpath(ADDRESS)):
        found = clients._call(caller, clients._SERVER, command, memory, {})
        assert WORD not in repr(found)
        assert "me@db.invalid" in repr(found)


def test_the_doctor_tells_of_an_address_that_is_none(cli):
    code, told = cli("--db", f"mysql://me:{WORD}@db.invalid/m", "doctor", "--json")

    assert (code, WORD in told, "is no address of a server" in told) == (1, False, True)
    assert shlex.quote("mysql://me@db.invalid/m") in told
