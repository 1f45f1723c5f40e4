"""A server as a socket meets it: heads and bodies that do not come, streams of changes, requests that are none."""

import contextlib
import json
import socket
import threading
import time

import pytest
from test_http import TOKEN
from test_store import fill

from graphmem import Memory
from graphmem.surfaces.http import server
from graphmem.surfaces.http.app import create_app
from graphmem.surfaces.http.bounds import Bounds, Load
from graphmem.surfaces.http.protocol import PatientProtocol
from graphmem.surfaces.verbs import verb_of

LEAVE = f"Authorization: Bearer {TOKEN}\r\n"


@pytest.fixture
def filled(memory):
    fill(memory)
    return memory


@contextlib.contextmanager
def running(memory, *, is_over=lambda: False, **bounds):
    """A server in a thread; yields its port and its load."""
    load = Load()
    with server.listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        app = create_app(memory, port=port, token=TOKEN, bounds=Bounds(**bounds), load=load)
        served = server.Server(app, is_over=is_over, load=load)
        thread = threading.Thread(target=served.run, args=[[listener]])
        thread.start()
        try:
            yield port, load
        finally:
            served.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@pytest.fixture
def port(filled):
    with running(filled) as (port, _):
        yield port


@contextlib.contextmanager
def connected(port):
    with socket.create_connection(("127.0.0.1", port), 20) as found, found.makefile("rb") as answers:
        yield found, answers


def read_answer(answers):
    """Return the status, the headers and the body of the next answer."""
    status, headers = read_head(answers)
    return status, headers, answers.read(int(headers.get("content-length", 0)))


def read_head(answers):
    status = int(answers.readline().split()[1])
    headers = {}
    while line := answers.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return status, headers


def ask(port, head, body=b""):
    """Send one request, {host} in it is the server, and return its answer."""
    with connected(port) as (found, answers):
        found.sendall(head.replace("{host}", f"127.0.0.1:{port}").replace("\n", "\r\n").encode("latin-1") + body)
        return read_answer(answers)


def post(port, verb, body, leave=LEAVE):
    head = f"POST /api/{verb} HTTP/1.1\nHost: {{host}}\nContent-Type: application/json\nContent-Length: {len(body)}\n"
    return ask(port, head + leave.replace("\r", "") + "\n", body)


# ---- requests


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example:{port}", 403), ("127.0.0.1:{port}", 200), ("LOCALHOST:{port}", 200), ("[::1]:{port}", 200),
     ("127.0.0.1:{port}@evil.example", 403), ("localhost:{port}.evil.example", 403), ("0x7f000001:{port}", 403)],
)  # fmt: skip
@pytest.mark.parametrize("asked", ["/health", "/api/overview", "/openapi.json", "/dsh-memory/api/v1/ledger"])
def test_another_name_for_this_machine_is_refused(port, host, asked, status):  # WEB-01
    answer = ask(port, f"GET {asked} HTTP/1.1\nHost: {host.format(port=port)}\n\n")

    assert answer[0] == status


@pytest.mark.parametrize(
    "head",
    [
        "GET http://evil.example/api/overview HTTP/1.1\nHost: evil.example\n\n",
        "GET /api/overview HTTP/1.1\nHost: {host}\nHost: evil.example\n\n",
        "GET /api/overview HTTP/1.0\n\n",
        "GET /events HTTP/1.1\nHost: evil.example\n\n",
        "GET /events HTTP/1.1\nHost: {host}\nSec-Fetch-Site: cross-site\n\n",
    ],
)
def test_what_hides_the_name_is_refused(port, head):  # WEB-01
    assert ask(port, head)[0] in (400, 403)


@pytest.mark.parametrize(
    "head",
    ["nonsense\n\n", "GET /api/overview HTTP/1.1\nHost {host}\n\n",
     "POST /api/overview HTTP/1.1\nHost: {host}\nContent-Length: -1\n\n",
     "POST /api/overview HTTP/1.1\nHost: {host}\nContent-Length: 1\nContent-Length: 2\n\n"],
)  # fmt: skip
def test_what_is_no_request_is_refused(port, head):
    assert ask(port, head)[0] == 400
    assert ask(port, "GET /health HTTP/1.1\nHost: {host}\n\n")[0] == 200


@pytest.mark.parametrize("size", [20_000, 100_000, 1_000_000])
@pytest.mark.parametrize(
    "head", ["GET /health HTTP/1.1\nHost: {{host}}\nCookie: {}\n\n", "GET /health?{} HTTP/1.1\nHost: {{host}}\n\n"]
)
def test_a_huge_head_is_refused(port, head, size):
    try:
        status = ask(port, head.format("x" * size))[0]
    except ConnectionError:  # it was refused before all of it was sent
        status = 400

    assert status in (400, 431)
    assert ask(port, head.format("x" * 10_000))[0] == 200


@pytest.mark.parametrize(("note_id", "status"), [(1, 200), (2**53 + 1, 404), (2**63 - 1, 404), (2**63, 400), (-1, 400)])
def test_ids_have_64_bits(port, note_id, status):
    assert ask(port, f"GET /api/inspect?note_id={note_id} HTTP/1.1\nHost: {{host}}\n\n")[0] == status
    assert post(port, "inspect", json.dumps({"note_id": note_id}).encode())[0] == status


SCRIPTS = ("<img src=x onerror=alert(1)>", '" onmouseover="x', "</script><script>alert(1)</script>")


@pytest.mark.parametrize("script", SCRIPTS)
def test_names_with_script_are_data(port, script):  # WEB-03
    body = json.dumps({"title": script, "labels": [script], "slot": script}).encode()
    written = post(port, "remember", body)
    refused = post(port, "scenes", json.dumps({"sort": script}).encode())
    unknown = ask(port, "GET /<script>alert(1)</script> HTTP/1.1\nHost: {host}\n\n")
    found = ask(port, "GET /api/notes HTTP/1.1\nHost: {host}\n\n")

    assert [status for status, _, _ in (written, refused, unknown, found)] == [200, 400, 404, 200]
    for _, headers, body in (written, refused, unknown, found):
        assert headers["content-type"] == "application/json"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert json.loads(body)
    assert json.loads(found[2])[0]["title"] == script


def test_without_the_token_nothing_is_written(port):
    status, headers, _ = post(port, "remember", b'{"title": "Deploy with pnpm"}', leave="")

    assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="graphmem"')


# ---- what does not come


def test_a_head_that_does_not_come_is_not_waited_for(filled, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "seconds", 0.3)
    with running(filled) as (port, _), connected(port) as (found, answers):
        found.sendall(b"GET /health HTTP/1.1\r\nHost: ")
        status, headers, body = read_answer(answers)

        assert (status, headers["connection"], json.loads(body)["error"]["type"]) == (408, "close", "RequestTimeout")
        assert answers.read() == b""


def test_a_head_that_trickles_has_no_longer(filled, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "seconds", 0.5)
    with running(filled) as (port, _), connected(port) as (found, answers):
        for _ in range(100):
            try:
                found.sendall(b"X")
            except OSError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("it was waited for")
        with contextlib.suppress(ConnectionError):
            assert answers.read().startswith(b"HTTP/1.1 408")


def test_a_silent_connection_is_closed(filled, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "seconds", 0.3)
    with running(filled) as (port, _), connected(port) as (_, answers):
        assert answers.read() == b""


def test_a_connection_is_kept_and_its_next_head_waited_for(filled, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "seconds", 0.5)
    head = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
    with running(filled) as (port, _), connected(port) as (found, answers):
        found.sendall(head % port)
        first = read_answer(answers)
        time.sleep(1.0)
        found.sendall(head % port)
        second = read_answer(answers)
        found.sendall(head[:20])
        third = read_answer(answers)

    assert [status for status, _, _ in (first, second, third)] == [200, 200, 408]


def test_a_long_answer_is_no_late_head(filled, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "seconds", 0.2)
    monkeypatch.setattr(Memory, "overview", lambda memory: time.sleep(0.6))
    verb_of.cache_clear()
    with running(filled) as (port, _):
        status, _, _ = ask(port, "GET /api/overview HTTP/1.1\nHost: {host}\n\n")
    verb_of.cache_clear()

    assert status == 200


def test_a_body_that_does_not_come_is_not_waited_for(filled):
    with running(filled, seconds=0.3) as (port, _):
        head = "POST /api/overview HTTP/1.1\nHost: {host}\nContent-Type: application/json\nContent-Length: 9\n\n"
        status, headers, body = ask(port, head, b'{"a"')

    assert (status, headers["connection"], json.loads(body)["error"]["type"]) == (408, "close", "RequestTimeout")


def test_an_answer_that_nobody_reads_is_not_held(filled, monkeypatch):
    monkeypatch.setattr(PatientProtocol, "patience", 0.3)
    monkeypatch.setattr(Memory, "draw", lambda memory: "x" * 30_000_000)
    verb_of.cache_clear()
    with running(filled) as (port, load), connected(port) as (found, answers):
        found.sendall(b"GET /api/draw HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        status, _ = read_head(answers)
        for _ in range(200):
            if not load.requests:
                break
            time.sleep(0.05)
        left = load.requests
    verb_of.cache_clear()

    assert (status, left) == (200, 0)


# ---- changes


@contextlib.contextmanager
def listening(port, headers=""):
    """Listen to changes; yields a function that returns the next event."""
    with connected(port) as (found, answers):
        found.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n".encode())
        status, told, _ = read_answer(answers)
        assert (status, told["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert told["cache-control"] == "no-store"

        def next_event():
            event = {}
            while True:
                line = answers.readline().decode().strip()
                if ":" in line and "id" not in event and line[0] not in "ire:":  # the size of a chunk has no colon
                    continue
                name, _, value = line.partition(": ")
                if name in ("id", "retry", "event", "data"):
                    event[name] = value
                if line == ":":
                    event["event"] = "silence"
                if not line and event.get("event"):
                    return event
                if line == "0":
                    return None

        yield next_event


def test_changes_are_told_whoever_makes_them(filled):
    with running(filled, poll=0.05) as (port, load), listening(port) as first, listening(port) as second:
        hello = first()
        assert (hello["event"], hello["retry"], second()["event"]) == ("hello", "2000", "hello")
        for change in (lambda memory: memory.remember("Deploy with pnpm"), lambda memory: memory.declare_scene("a:b")):
            with Memory.open(filled.path) as other:
                change(other)
            told = first()
            assert told["event"] == second()["event"] == "change"
            assert json.loads(told["data"])["changes"] == int(told["id"].partition("-")[2])
            assert told["id"] != hello["id"]
        post(port, "declare_scene", b'{"key": "chan:new"}')
        assert first()["event"] == "change"
        assert load.requests == 0


def test_who_was_cut_off_is_told_what_it_missed(filled):
    with running(filled, poll=0.05) as (port, _):
        with listening(port) as next_event:
            last = next_event()["id"]
            with listening(port, f"Last-Event-ID: {last}\r\n") as again:
                assert again()["event"] == "hello"
            filled.declare_scene("chan:new")
            assert next_event()["event"] == "change"
            with listening(port, f"Last-Event-ID: {last}\r\n") as again:
                assert again()["event"] == "change"
        with listening(port, "Last-Event-ID: of-another-run\r\n") as next_event:
            assert next_event()["event"] == "change"


def test_silence_is_filled(filled):
    with running(filled, beat=0.1) as (port, _), listening(port) as next_event:
        assert [next_event()["event"] for _ in range(3)] == ["hello", "silence", "silence"]


def test_only_some_may_listen(filled):
    with running(filled, streams=1) as (port, _):
        with listening(port) as next_event:
            next_event()
            refused = ask(port, "GET /events HTTP/1.1\nHost: {host}\n\n")
        assert (refused[0], refused[1]["retry-after"]) == (503, "5")
        for _ in range(100):  # the server finds out by and by
            status, _, _ = ask(port, "GET /events HTTP/1.1\nHost: {host}\n\n")
            if status == 200:
                break
            time.sleep(0.05)
        assert status == 200


def test_streams_are_no_use_of_the_server_and_end_with_it(filled):
    over = threading.Event()
    with running(filled, is_over=over.is_set, poll=0.05) as (port, load), listening(port) as next_event:
        next_event()
        assert load.requests == 0
        idle = load.idle_for()
        time.sleep(0.05)
        assert load.idle_for() > idle
        over.set()
        while (event := next_event()) is not None:
            assert event["event"] == "change"
