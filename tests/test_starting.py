"""A server that is started apart, unless one runs."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from graphmem.errors import StoreFailed
from graphmem.surfaces.http import running, starting
from graphmem.surfaces.opening import Session

OPTIONS = ["--port", "0", "--idle", "1"]


@pytest.fixture
def database(tmp_path, monkeypatch):
    """A memory; servers of it are ended."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = str(tmp_path / "memory.db")
    yield path
    if found := running.find(path):
        end(found, signal.SIGTERM)


def end(server, by):
    with contextlib.suppress(ProcessLookupError):
        os.kill(server.pid, by)
    while starting.answers(server):
        time.sleep(0.01)


def test_one_that_runs_is_told_and_one_that_was_killed_is_replaced(database):
    first, again = (starting.started(Session(database, None), OPTIONS) for _ in range(2))
    assert again == first

    end(first, signal.SIGKILL)
    other = starting.started(Session(database, None), OPTIONS)

    assert (other.pid == first.pid, other.token == first.token) == (False, False)
    assert starting.answers(other)


def test_what_answers_in_the_place_of_a_server_that_was_killed_is_not_trusted(database):
    first = starting.started(Session(database, None), OPTIONS)
    end(first, signal.SIGKILL)
    squatter = starting.started(Session(f"{database}-2", None), ["--port", str(first.port), "--idle", "1"])
    assert not starting.answers(first)

    other = starting.started(Session(database, None), OPTIONS)
    end(squatter, signal.SIGTERM)

    assert (other.port == first.port, other.memory) == (False, os.path.realpath(database))


def test_the_server_of_another_memory_at_the_same_address_is_not_taken_for_it(database, tmp_path):
    elsewhere = starting.started(Session(str(tmp_path / "other.db"), None), OPTIONS)
    killed = dataclasses.replace(elsewhere, memory=database, token="old", pid=2**22 + 1)  # noqa: S106
    running.tell(running.record_of(database), killed)

    try:
        found = starting.started(Session(database, None), OPTIONS)
        assert found.url != elsewhere.url
        assert starting.answers(found)
    finally:
        end(elsewhere, signal.SIGTERM)


def test_who_starts_one_at_the_same_time_gets_the_same(database):
    command = [sys.executable, "-m", "graphmem", "--db", database, "serve", "--detach", "--json", *OPTIONS]

    begun = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    told = [json.loads(each.communicate()[0]) for each in begun]

    assert len({each["pid"] for each in told}) == 1


def test_a_path_and_settings_are_found_from_where_it_is_started(tmp_path, database, monkeypatch):
    (tmp_path / "here" / "kept").mkdir(parents=True)
    (tmp_path / "here" / "own.toml").write_text("ui = false\n")
    monkeypatch.chdir(tmp_path / "here")

    found = starting.started(Session("kept/memory.db", "own.toml"), OPTIONS)
    end(found, signal.SIGTERM)

    assert found.memory == str(tmp_path / "here" / "kept" / "memory.db")


def test_how_one_that_is_apart_ends_is_told(database):
    command = [sys.executable, "-m", "graphmem", "--db", database, "serve", "--detach", *OPTIONS]

    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert f"process {running.find(database).pid} until" in told
    assert "ctrl-c" not in told


def test_why_none_comes_up_is_told(database, tmp_path):
    with pytest.raises(StoreFailed, match="sing"):
        starting.started(Session(database, None), ["--sing"])

    (tmp_path / "memory.db").write_text("no database")
    with pytest.raises(StoreFailed, match=r"no server for .*memory\.db came up: "):
        starting.started(Session(database, None), OPTIONS)
