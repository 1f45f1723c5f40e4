"""The verbs over HTTP: who may ask, what is answered, and how a server lives."""

import contextlib
import json
import signal
import socket
import stat
import subprocess
import sys

import httpx2
import pytest
from contract import CALLS, REFUSED
from starlette.routing import Route
from starlette.testclient import TestClient
from support import leave_settings
from test_store import fill

from graphmem import Memory
from graphmem.errors import GraphmemError, InvalidInput
from graphmem.surfaces.http import running, server
from graphmem.surfaces.http.app import create_app
from graphmem.surfaces.http.bounds import Bounds, Load
from graphmem.surfaces.verbs import CHANGING, READING, verb_of
from graphmem.surfaces.wire import http_status, refusal_of, to_json

PORT = 8765
TOKEN = "a-token-of-the-tests"  # noqa: S105
HOST = f"127.0.0.1:{PORT}"
MAY_WRITE = {"Authorization": f"Bearer {TOKEN}"}
EVERY_ROUTE = (
    "/", "/health", "/enter", "/api/overview", "/api/nonsense", "/static/script.js", "/favicon.ico", "/openapi.json",
    "/dsh-memory/api/v1/ledger", "/dsh-memory/api/v1/update",
)  # fmt: skip


@pytest.fixture
def filled(memory):
    fill(memory)
    return memory


@contextlib.contextmanager
def served(memory, *, host=HOST, **options):
    with TestClient(
        create_app(memory, port=PORT, token=TOKEN, **options), base_url=f"http://{host}", raise_server_exceptions=False
    ) as client:
        yield client


@pytest.fixture
def client(filled):
    with served(filled) as client:
        yield client


def error_of(answer):
    assert answer.headers["content-type"] == "application/json"
    return answer.json()["error"]


# ---- the same answers as in Python


@pytest.mark.parametrize("name", CALLS)
def test_a_verb_answers_as_in_python(client, clock, tmp_path, name):
    with Memory.open(tmp_path / "equal.db", clock=clock) as equal:
        fill(equal)
        expected = json.loads(to_json(verb_of(name)(equal, CALLS[name])))

    answer = client.post(f"/api/{name}", json=CALLS[name], headers=MAY_WRITE)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    told = answer.json()
    if name == "check":  # on a server the tables of twins differ in size
        assert told["sizes"].keys() == expected["sizes"].keys()
        told["sizes"] = expected["sizes"]
    assert told == expected


@pytest.mark.parametrize(("name", "arguments", "kind", "argument"), REFUSED)
def test_a_verb_refuses_as_in_python(client, filled, name, arguments, kind, argument):
    with pytest.raises(GraphmemError) as caught:
        verb_of(name)(filled, arguments)

    answer = client.post(f"/api/{name}", json=arguments, headers=MAY_WRITE)

    assert answer.status_code == http_status(caught.value)
    assert answer.json() == refusal_of(caught.value)
    assert (error_of(answer)["type"], error_of(answer).get("argument", "")) == (kind, argument)


@pytest.mark.parametrize("name", [name for name in READING if None not in CALLS[name].values()])
def test_what_only_reads_is_asked_by_a_query_too(client, filled, name):
    query = {key: value if isinstance(value, str) else json.dumps(value) for key, value in CALLS[name].items()}
    posted = client.post(f"/api/{name}", json=CALLS[name])

    answer = client.get(f"/api/{name}", params=query)

    assert (answer.status_code, answer.json()) == (200, posted.json())


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("keys=chan:qq&keys=tool:shell", {"keys": ["chan:qq", "tool:shell"]}),
        ("keys=chan:qq", {"keys": "chan:qq"}),
        ("keys=chan:qq&exact=true&limit=1&scopes=all", {"keys": "chan:qq", "exact": True, "limit": 1, "scopes": "all"}),
    ],
)
def test_a_query_names_a_list_by_naming_it_again(client, query, arguments):
    told = client.get(f"/api/recall_by_scene?{query}")

    assert told.status_code == 200
    assert told.json() == client.post("/api/recall_by_scene", json=arguments).json()


@pytest.mark.parametrize(
    ("query", "argument"),
    [("limit=1&limit=2", "limit"), ("limit=x", "limit"), ("limit=NaN", "limit"), ("mood=calm", "mood")],
)
def test_a_query_that_cannot_be_used_is_refused_by_name(client, query, argument):
    answer = client.get(f"/api/notes?{query}")

    assert (answer.status_code, error_of(answer)["argument"]) == (400, argument)


# ---- who may ask


@pytest.mark.parametrize("asked", EVERY_ROUTE)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": f"evil.example:{PORT}"},
        {"Host": "evil.example"},
        {"Host": f"127.0.0.1.evil.example:{PORT}"},
        {"Host": f"127.0.0.1:{PORT + 1}"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": f"http://localhost:{PORT}"},
        {"Origin": f"https://{HOST}"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_may_ask_nothing(filled, asked, headers):  # WEB-01, C8.17
    with served(filled, pages=[Route("/static/script.js", lambda request: None)]) as client:
        answers = [client.request(method, asked, headers=headers) for method in ("GET", "POST", "OPTIONS", "PUT")]

    assert [(answer.status_code, error_of(answer)["type"]) for answer in answers] == [(403, "Forbidden")] * 4


@pytest.mark.parametrize("host", [f"localhost:{PORT}", HOST, f"[::1]:{PORT}", f"LOCALHOST:{PORT}"])
def test_this_machine_may_ask_by_each_of_its_names(client, host):  # WEB-01, C8.17
    for headers in ({}, {"Origin": f"http://{host}"}, {"Sec-Fetch-Site": "none"}):
        assert client.get("/api/overview", headers={"Host": host, **headers}).status_code == 200


def test_every_answer_is_protected(client):
    answers = [client.get(path) for path in EVERY_ROUTE] + [client.get("/health", headers={"Host": "evil.example"})]

    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_nobody_speaks_by_web_socket(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/overview"):
        pass


# ---- who may write


@pytest.mark.parametrize("name", CHANGING)
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer no"}, {"Authorization": TOKEN}, {"Authorization": "Bearer é"}]
)
def test_without_the_token_nothing_is_written(client, filled, name, headers):
    before = filled.overview()

    answer = client.post(f"/api/{name}", json=CALLS.get(name, {}), headers={k: v.encode() for k, v in headers.items()})

    assert (answer.status_code, error_of(answer)["type"]) == (401, "Unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert filled.overview() == before


def test_a_browser_gets_a_cookie_by_the_address_with_the_token(client):
    wrong, right = (client.get(f"/enter?token={given}", follow_redirects=False) for given in ("no", TOKEN))

    assert (wrong.status_code, wrong.headers.get("set-cookie")) == (401, None)
    assert (right.status_code, right.headers["location"]) == (303, "/")
    assert "HttpOnly" in right.headers["set-cookie"]
    assert "SameSite=strict" in right.headers["set-cookie"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": f"http://{HOST}"}, 200), ({"Sec-Fetch-Site": "same-origin"}, 200), ({}, 403)],
)
def test_a_cookie_counts_on_pages_of_this_server_alone(client, headers, status):
    client.get(f"/enter?token={TOKEN}", follow_redirects=False)

    answer = client.post("/api/declare_scene", json={"key": "chan:new"}, headers=headers)

    assert answer.status_code == status


# ---- who may read where that is private


@pytest.fixture
def private(filled):
    with served(filled, private=True) as client:
        yield client


READS_OF_ALL_KINDS = ("/api/overview", "/api/notes?limit=1", "/dsh-memory/api/v1/ledger")


@pytest.mark.parametrize("asked", READS_OF_ALL_KINDS)
def test_where_it_is_private_reading_needs_the_token(private, asked):
    for headers in ({}, {"Authorization": "Bearer no"}, {"Sec-Fetch-Site": "none"}, {"Origin": f"http://{HOST}"}):
        answer = private.get(asked, headers=headers)
        assert (answer.status_code, error_of(answer)["type"]) == (401, "Unauthorized")
    assert private.get("/events").status_code == 401
    assert private.post("/api/overview", json={}).status_code == 401
    assert private.get(asked, headers=MAY_WRITE).status_code == 200
    assert private.get("/health").status_code == 200


@pytest.mark.parametrize("asked", READS_OF_ALL_KINDS)
@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Sec-Fetch-Site": "none"}, 200), ({"Sec-Fetch-Site": "same-origin"}, 200), ({}, 403),
     ({"Sec-Fetch-Site": "none", "Authorization": "Bearer no"}, 401)],
)  # fmt: skip
def test_where_it_is_private_a_page_is_opened_with_the_cookie(private, asked, headers, status):
    private.get(f"/enter?token={TOKEN}", follow_redirects=False)

    assert private.get(asked, headers=headers).status_code == status


def test_a_page_that_is_opened_may_read_by_the_cookie_and_not_write(private):
    private.get(f"/enter?token={TOKEN}", follow_redirects=False)

    answer = private.post("/api/declare_scene", json={"key": "chan:new"}, headers={"Sec-Fetch-Site": "none"})

    assert answer.status_code == 403


# ---- what is sent


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b'"text"', b"null", b"{'key': 1}", b'\xef\xbb\xbf{"key": "chan:a"}', b'{"key": "\xff"}',
        b'{"key": NaN}', b'{"key": -Infinity}', b'{"key": 1e999}', b'{"key": "chan:a", "key": "chan:b"}',
        b'{"key": ' + b"9" * 5000 + b"}", b'{"key": ' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"key": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"key": ' + b'{"a":' * 100_000,
    ],
    ids=lambda body: f"{body[:20]!r} {len(body)}",
)  # fmt: skip
def test_what_is_no_plain_json_is_refused(client, filled, body):
    before = filled.overview()

    answer = client.post("/api/declare_scene", content=body, headers={**MAY_WRITE, "Content-Type": "application/json"})

    assert (answer.status_code, error_of(answer)["type"], error_of(answer)["argument"]) == (400, "InvalidInput", "body")
    assert len(answer.content) < 600
    assert filled.overview() == before


def test_sixty_four_levels_are_not_too_deep(client):
    nested = {"a": None}
    for _ in range(60):
        nested = {"a": nested}

    assert client.post("/api/observe", json={"payload": nested}).status_code == 200


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ('application/json; charset="utf-8"', 200),
        ("application/json; charset=gbk", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
def test_only_json_in_utf_8_is_taken(client, kind, status):
    answer = client.post("/api/overview", content=b"{}", headers={"Content-Type": kind})

    assert answer.status_code == status


def test_only_a_body_as_it_is_is_taken(client):
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

    assert client.post("/api/overview", content=b"{}", headers=headers).status_code == 415


@pytest.mark.parametrize("streamed", [False, True])
def test_a_large_body_is_refused(filled, streamed):
    body = b'{"query": "' + b"x" * 200 + b'"}'
    with served(filled, bounds=Bounds(body=len(body) - 1)) as client:
        content = iter([body[:100], body[100:]]) if streamed else body
        answer = client.post("/api/recall", content=content, headers={"Content-Type": "application/json"})

    assert (answer.status_code, error_of(answer)["type"]) == (413, "ContentTooLarge")


def test_more_requests_than_a_server_can_take_are_told_to_come_again(filled):
    load = Load()
    with served(filled, bounds=Bounds(requests=1), load=load) as client:
        load.begin()
        busy = client.get("/health")
        load.end()
        free = client.get("/health")

    assert (busy.status_code, busy.headers["retry-after"], free.status_code) == (503, "1", 200)


def test_half_of_a_surrogate_pair_comes_back_as_it_is_escaped(client):
    answer = client.post(
        "/api/recall", content=b'{"query": "a", "\\ud800": 1}', headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, error_of(answer)["argument"]) == (400, "\ud800")


# ---- methods and failures


@pytest.mark.parametrize(
    ("method", "asked", "allowed"),
    [
        ("GET", "/api/declare_scene", "POST"),
        ("HEAD", "/api/declare_scene", "POST"),
        ("OPTIONS", "/api/declare_scene", "POST"),
        ("PUT", "/api/overview", "GET, HEAD, POST"),
        ("POST", "/health", "GET, HEAD"),
    ],
)
def test_another_method_is_told_which_there_are(client, method, asked, allowed):
    answer = client.request(method, asked, headers=MAY_WRITE)

    assert (answer.status_code, sorted(answer.headers["allow"].split(", "))) == (405, allowed.split(", "))


@pytest.mark.parametrize("asked", ["/", "/api", "/api/", "/api/recal", "/api/overview/", "/api/_run", "/openapi"])
def test_an_unknown_path_is_not_found(client, asked):
    answer = client.post(asked, json={}, headers=MAY_WRITE)

    assert (answer.status_code, error_of(answer)["type"]) == (404, "NotFound")


def test_a_fault_of_our_own_is_told_by_the_log_alone(client, filled, monkeypatch, caplog):
    def fail(self):
        raise RuntimeError("the inner reason")

    monkeypatch.setattr(Memory, "overview", fail)
    verb_of.cache_clear()
    answer = client.get("/api/overview")
    verb_of.cache_clear()

    assert (answer.status_code, error_of(answer)["type"]) == (500, "InternalError")
    assert "inner" not in answer.text
    assert "the inner reason" in caplog.text


# ---- a server


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    leave_settings(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))


@contextlib.contextmanager
def serving(path, *options):
    """A server in a process of its own; yields the process and what it says of itself."""
    command = [sys.executable, "-m", "graphmem", "--db", path, "serve", "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield (
                process,
                running.Running(
                    **{key: value for key, value in json.loads(process.stdout.readline()).items() if key != "entrance"}
                ),
            )
        finally:
            process.kill()


@pytest.mark.sqlite
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_tells_where_it_is_and_ends_by_a_signal(path, number):
    with serving(path) as (process, told):
        record = running.record_of(path)
        assert running.find(path) == told
        assert (told.memory, told.pid) == (str(path), process.pid)
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        assert [stat.S_IMODE(folder.stat().st_mode) for folder in record.parents[:2]] == [0o700, 0o700]
        written = httpx2.post(
            f"{told.url}/api/declare_scene",
            json={"key": "chan:qq"},
            headers={"Authorization": f"Bearer {told.token}"},
        )
        process.send_signal(number)

        assert process.wait(20) == 0
        assert (process.stdout.read(), process.stderr.read()) == ("", "")

    assert written.json()["key"] == "chan:qq"
    assert running.find(path) is None
    with Memory.open(path) as memory:
        assert [scene.key for scene in memory.scenes()] == ["chan:qq"]


def test_a_memory_has_one_server(path):
    with serving(path) as (_, told):
        second = subprocess.run(
            [sys.executable, "-m", "graphmem", "--db", path, "serve", "--port", "0"], capture_output=True, text=True
        )
        assert running.find(path) == told

    assert second.returncode == 1
    assert second.stdout == ""
    assert told.url in second.stderr


def test_a_server_that_was_killed_is_in_nobodys_way(path):
    with serving(path) as (process, killed):
        process.kill()
        process.wait()
    assert running.find(path) == killed

    with serving(path) as (_, told):
        assert running.find(path) == told != killed


def test_a_port_that_is_taken_is_told(path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = subprocess.run(
            [sys.executable, "-m", "graphmem", "--db", path, "serve", "--port", port], capture_output=True, text=True
        )

    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"port {port}" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_only_this_machine_is_served(path):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com"):  # noqa: S104
        with pytest.raises(InvalidInput, match="only this machine"), server.listening(host, 0):
            pass
    ran = subprocess.run(
        [sys.executable, "-m", "graphmem", "--db", path, "serve", "--host", host], capture_output=True, text=True
    )

    assert ran.returncode == 1
    assert "only this machine" in ran.stderr


def test_a_server_can_be_private(path):
    with serving(path, "--private") as (_, told):
        leave = {"Authorization": f"Bearer {told.token}"}
        statuses = [httpx2.get(f"{told.url}/api/overview", headers=headers).status_code for headers in ({}, leave)]

    assert statuses == [401, 200]


def test_a_server_ends_though_somebody_listens(path):
    with serving(path) as (process, told), httpx2.stream("GET", f"{told.url}/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"
        process.send_signal(signal.SIGTERM)

        assert process.wait(4) == 0
        assert "event: change" not in list(lines)


def test_who_listens_keeps_no_server_alive(path):
    with serving(path, "--idle", "0.01") as (process, told), httpx2.stream("GET", f"{told.url}/events"):
        assert process.wait(20) == 0


def test_an_answer_does_not_wait_for_the_one_before():  # asyncio sets TCP_NODELAY where the protocol is named
    with server.listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_server_that_nobody_asks_ends(path):
    with serving(path, "--idle", "0.005") as (process, _):
        assert process.wait(20) == 0
