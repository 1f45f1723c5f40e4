"""Surfaces on a memory that lies on a PostgreSQL server: what they start, find again, tell and look at."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import leave_settings

from graphmem import Memory, Situation, StoreFailed

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'graphmem[postgres]'")
pytest.importorskip("httpx2", reason="httpx2 is not installed: pip install 'graphmem[http]'")

import httpx2
from postgres_server import address, fresh_database

from graphmem.surfaces.http import running, starting
from graphmem.surfaces.opening import Session

OPTIONS = ["--port", "0", "--idle", "1"]


@pytest.fixture(scope="module")
def server():
    with fresh_database() as address_of_it:
        yield address_of_it


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    leave_settings(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def place(server):
    """The address of a memory; a server of it is ended."""
    path = address("t1", server)
    yield path
    if found := running.find(path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGTERM)
        while starting.answers(found):
            time.sleep(0.01)


def graphmem(*words, check=True, **environ):
    command = [sys.executable, "-m", "graphmem", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environ}, timeout=120)
    assert not check or done.returncode == 0, done.stderr
    return done


# ---- a server of the memory


def test_a_server_is_started_apart_found_again_and_told_no_password(place):
    password = place.split(":")[2].partition("@")[0]
    first, again = (
        graphmem("serve", "--detach", "--json", *OPTIONS, GRAPHMEM_DB=place).stdout.splitlines()[-1] for _ in range(2)
    )
    told = json.loads(first)

    assert json.loads(again) == told
    assert password not in first
    assert password not in Path(f"/proc/{told['pid']}/cmdline").read_text()
    assert password not in running.record_of(place).read_text()


def test_a_server_serves_the_projects_of_those_who_ask(place, tmp_path):
    (tmp_path / "project").mkdir()
    told = starting.started(Session(place, None), OPTIONS)

    answer = httpx2.post(
        f"{told.url}/api/remember",
        json={"title": "The build needs make"},
        headers={"Authorization": f"Bearer {told.token}", "Graphmem-Project": str(tmp_path / "project")},
    )

    assert answer.status_code == 200, answer.text
    with Memory.open(place, create=False) as memory:
        assert [note.title for note in memory.notes(scopes=["all"])] == ["The build needs make"]


def test_a_server_is_told_by_the_address_without_what_says_who_asks(server):
    plain = running.record_of(server)

    assert running.record_of(server.replace("postgresql:", "postgres:") + "?tenant=default") == plain
    assert running.record_of(address("t1", server)) != plain
    assert running.record_of(f"{server}?host=10.0.0.1") != plain


def test_why_no_server_comes_up_is_told_without_the_password(place):
    done = graphmem("serve", "--detach", *OPTIONS, check=False, GRAPHMEM_DB=place.replace("@127.0.0.1", "x@127.0.0.1"))

    assert (done.returncode, done.stderr.count("refuses the password")) == (1, 1)
    assert place.split(":")[2].partition("@")[0] not in done.stderr


# ---- the doctor


def examined(place, **environ):
    done = graphmem("doctor", "--quick", "--json", check=False, GRAPHMEM_DB=place, **environ)
    assert place.split(":")[2].partition("@")[0] not in done.stdout + done.stderr
    findings = [each for each in json.loads(done.stdout)["findings"] if each["what"] in ("memory", "server", "tree")]
    return done.returncode, findings


def test_the_doctor_tells_server_and_tenant(place, tmp_path):
    with Memory.open(place) as memory:
        memory.export_tree(tmp_path / "tree")
    (tmp_path / "tree").rename(tmp_path / "moved")

    code, (memory, tree, served) = examined(place)

    assert (memory["state"], served["told"]) == ("ok", "none runs for this memory")
    assert "environment GRAPHMEM_DB" in memory["told"]
    assert "PostgreSQL 1" in memory["told"]
    assert "tenant t1, schema" in memory["told"]
    assert (code, tree["state"]) == (1, "problem")  # it is not there any more


def test_the_doctor_makes_no_tenant(server):
    code, (memory, _) = examined(address("never made", server))

    assert (memory["state"], "there is none yet" in memory["told"]) == ("note", True)
    assert examined(address("never made", server))[1][0] == memory
    assert code == 0


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("@127.0.0.1", "x@127.0.0.1", "refuses the password"),
        ("@127.0.0.1:", "@127.0.0.1:1", "cannot be reached"),
        ("/graphmem_test_", "/nothing_test_", "make the database first"),
    ],
)
def test_the_doctor_tells_why_a_server_cannot_be_used(place, before, after, told):
    broken = place.replace(before, after).replace(":1" + place.split(":")[3].partition("/")[0], ":1")

    code, (memory, _) = examined(broken)

    assert (code, memory["state"]) == (1, "problem")
    assert told in memory["told"]
    assert memory["remedy"]


# ---- what has no backup


def test_a_reset_says_before_and_after_that_no_backup_is_made(server, tmp_path):
    path = address("reset", server)
    grown = Situation.of(chan="qq", peer="boss")
    with Memory.open(path) as memory:
        assert memory.reset_scenes().remarks == ()
        memory.enter_scene(grown)
        memory.enter_scene(grown)
        with pytest.raises(StoreFailed, match="graphmem copy"):
            memory.reset_scenes(backup=tmp_path / "b.db")
        assert memory.scenes()

    planned = graphmem("scenes", "reset", "--emergent", "--dry-run", GRAPHMEM_DB=path)
    done = graphmem("scenes", "reset", "--emergent", GRAPHMEM_DB=path)

    for told in (planned, done):
        assert "no backup is made" in told.stderr
        assert "pg_dump" in told.stderr
    with Memory.open(path) as memory:
        assert memory.scenes() == ()


# ---- words


def test_nothing_on_a_server_is_told_of_a_file(server):
    path = address("words", server)
    graphmem("remember", "The build needs make", GRAPHMEM_DB=path)

    for words in (["upkeep"], ["upkeep", "--dry-run"], ["check"]):
        told = graphmem(*words, GRAPHMEM_DB=path)
        assert not [word for word in ("file", "-wal", "write-ahead") if word in told.stdout + told.stderr]
