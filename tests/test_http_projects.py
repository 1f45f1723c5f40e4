"""One server for hosts of several projects: headers say which one, and a few memories are kept open."""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from contract import CALLS
from test_http import MAY_WRITE, error_of, served
from test_store import fill

from graphmem import Conflict, Memory
from graphmem.surfaces.http.memories import PROJECT, SESSION
from graphmem.surfaces.keeping import MOST
from graphmem.surfaces.verbs import READING, verb_of

DEPLOY = {"title": "Deploy with pnpm", "kind": "lesson"}


@pytest.fixture
def filled(memory):
    fill(memory)
    return memory


@pytest.fixture
def opened():
    """The memories that were opened, in order."""
    return []


@pytest.fixture
def client(filled, clock, opened):
    def opening(**options):
        opened.append(Memory.open(filled.path, clock=clock, create=False, **options))
        return opened[-1]

    with served(filled, opened=opening) as client:
        yield client


def of(folder, session=None):
    named = {} if folder is None else {PROJECT: quote(str(folder), safe="")}
    return {**named, **({} if session is None else {SESSION: quote(session)})}


def titles(client, headers):
    return [note["title"] for note in client.get("/api/notes?kinds=lesson", headers=headers).json()]


@pytest.fixture
def folders(tmp_path):
    found = [tmp_path / name for name in ("一号", "b c%2F")]
    for folder in found:
        folder.mkdir()
    return found


def test_headers_say_whose_memory_is_meant(client, folders):
    one, other = folders
    written = client.post("/api/remember", json=DEPLOY, headers={**of(one, "a/ü"), **MAY_WRITE})

    assert written.status_code == 200
    assert written.json()["note"]["origin"]["place"] == str(one)
    assert written.json()["note"]["origin"]["session"] == "a/ü"
    assert DEPLOY["title"] in titles(client, of(one))
    assert DEPLOY["title"] not in titles(client, of(other))
    assert DEPLOY["title"] not in titles(client, {})


def test_without_a_header_it_is_what_the_server_was_started_for(filled, folders, clock, path):
    one, other = folders
    opened = functools.partial(Memory.open, path, clock=clock)
    with (
        opened(project=one, session="s7") as own,
        served(own, opened=opened) as client,
    ):
        client.post("/api/remember", json=DEPLOY, headers=MAY_WRITE)
        plain, named = (client.get("/api/scopes", headers=headers).json() for headers in ({}, of(None, "s8")))

        assert [titles(client, headers)[:1] for headers in ({}, of(None, "s8"))] == [[DEPLOY["title"]]] * 2
        assert DEPLOY["title"] not in titles(client, of(""))
        assert DEPLOY["title"] not in titles(client, of(other))
        keys = [[scope["key"] for scope in found if scope["current"]] for found in (plain, named)]
        assert own.project.key in keys[0]
        assert own.project.key in keys[1]
        assert "session:s7" in keys[0]


@pytest.mark.parametrize("name", READING)
def test_who_may_not_write_reads_without_a_trace(client, filled, folders, name):
    before = filled.scopes()

    answer = client.post(f"/api/{name}", json=CALLS[name], headers=of(folders[0], "new"))

    assert answer.status_code == 200
    assert filled.scopes() == before


@pytest.mark.parametrize(
    ("headers", "argument"),
    [
        (of("/no/such/folder"), "project"),
        (of("relative"), "project"),
        ({PROJECT: "%2Ftmp%00"}, "project"),
        ({PROJECT: "%FF"}, PROJECT),
        ({PROJECT: "/工作".encode()}, PROJECT),
        ([(PROJECT, "/"), (PROJECT, "/")], PROJECT),
        ({SESSION: "%20"}, "session"),
        ({SESSION: "%FF"}, SESSION),
    ],
)
def test_a_header_that_cannot_be_used_is_refused(client, headers, argument):
    answer = client.get("/api/overview", headers=headers)

    assert (answer.status_code, error_of(answer)["argument"]) == (400, argument)
    assert client.get("/api/overview").status_code == 200


def test_a_secret_in_a_header_is_refused(client):
    headers = {**of(None, "sk-proj-" + "a1B2c3D4e5" * 4), **MAY_WRITE}

    assert client.get("/api/overview", headers=headers).status_code == 422


def test_a_few_memories_are_kept_open_and_the_others_closed(client, opened):
    for number in [*range(MOST + 2), MOST + 1, 0]:
        assert client.get("/api/overview", headers=of(None, f"s{number}")).status_code == 200

    assert [memory.session for memory in opened] == [f"s{number}" for number in [*range(MOST + 2), 0]]
    assert [is_open(memory) for memory in opened] == [False] * 3 + [True] * MOST


def test_all_are_closed_with_the_server(filled, clock):
    opened = []

    def opening(**options):
        opened.append(Memory.open(filled.path, clock=clock, **options))
        return opened[-1]

    with served(filled, opened=opening) as client:
        client.get("/api/overview", headers=of(None, "s1"))
        assert is_open(opened[0])

    assert not is_open(opened[0])
    assert is_open(filled)


def test_no_memory_is_closed_while_it_is_used(client, opened, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def wait(memory):
        begun.set()
        assert go_on.wait(20)
        return ()

    monkeypatch.setattr(Memory, "evidence", wait)
    verb_of.cache_clear()
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(client.get, "/api/evidence", headers=of(None, "slow"))
        assert begun.wait(20)
        for number in range(MOST + 1):
            client.get("/api/overview", headers=of(None, f"s{number}"))
        used = is_open(opened[0])
        go_on.set()
        answer = slow.result()
    verb_of.cache_clear()

    assert (used, answer.status_code) == (True, 200)
    client.get("/api/overview", headers=of(None, "last"))
    assert not is_open(opened[0])


def test_a_memory_is_opened_once_however_many_ask_for_it(client, opened):
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: client.get("/api/overview", headers=of(None, "s1")), range(16)))

    assert {answer.status_code for answer in answers} == {200}
    assert len(opened) == 1


def is_open(memory):
    try:
        memory.overview()
    except Conflict:
        return False
    return True
