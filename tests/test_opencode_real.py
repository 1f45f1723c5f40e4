"""The real OpenCode with the plug-in, commands and the MCP server that `graphmem opencode install` puts into it.

Its model is a scripted server on loopback, which keeps what it was asked.
"""

import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import node_package
from test_checkpoints import DONE, TEXT

from graphmem import Memory
from graphmem.core.injected import WRITER_MARK

VERSION = "1.18.33"
WISH = "From now on always use pnpm in this project."
SCENE_RULE = "Quote the ticket in each summary"

pytestmark = [pytest.mark.needs_node, pytest.mark.slow]


def opencode():
    """Return the program, which npm puts into a package for the machine."""
    package = node_package(f"opencode-ai@{VERSION}")
    found = sorted(package.parent.glob("opencode-*/bin/opencode"), key=lambda path: "baseline" in str(path))
    if not found:
        pytest.skip("no OpenCode for this machine")
    return found[0]


class Model(http.server.ThreadingHTTPServer):
    """A model that does as the words of the user tell; `asked` are the requests that offered it tools."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = []
        self.written = []
        self.delay = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def system(self):
        """What the last request says of the system."""
        return "\n".join(each["content"] for each in self.asked[-1] if each["role"] == "system")

    def user(self):
        return "\n".join(
            json.dumps(each["content"], ensure_ascii=False) for each in self.asked[-1] if each["role"] == "user"
        )


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        delta, reason = {"content": "Done."}, "stop"
        if any(WRITER_MARK in str(each["content"]) for each in body["messages"]):
            self.server.written.append(body)
            delta = {"content": TEXT + DONE}
        elif "tools" in body:
            time.sleep(self.server.delay)
            self.server.asked.append(body["messages"])
            if call := called(body["messages"]):
                delta, reason = (
                    {"tool_calls": [{"index": 0, "id": f"call_{len(self.server.asked)}", **call}]},
                    "tool_calls",
                )
        chunks = [({"role": "assistant", **delta}, None), ({}, reason)]
        told = [
            {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": each, "finish_reason": end}]}
            for each, end in chunks
        ]  # fmt: skip
        data = "".join(f"data: {json.dumps(each)}\n\n" for each in told) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data.encode())


def called(messages):
    """What the model calls for the last words of the user, None behind the answer of a tool."""
    if messages[-1]["role"] != "user":
        return None
    content = messages[-1]["content"]
    said = content if isinstance(content, str) else content[0]["text"]
    if said.startswith(WISH):
        given = {"title": "Packages are handled with pnpm", "reason": "the user said so"}
        return {"type": "function", "function": {"name": "graphmem_remember", "arguments": json.dumps(given)}}
    if "read it" in said:
        given = {"filePath": "missing.txt"}
        return {"type": "function", "function": {"name": "read", "arguments": json.dumps(given)}}
    return None


@pytest.fixture
def model():
    with Model() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def work(tmp_path, model):
    """A project with graphmem in it; yields what runs OpenCode there, once for each call."""
    program = opencode()
    home, project, database = tmp_path / "home", tmp_path / "panel", tmp_path / "memory.db"
    home.mkdir()
    project.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": model.url, "apiKey": "none"}}
    settings = {
        "model": "fake/m", "small_model": "fake/m", "provider": {"fake": {**provider, "models": {"m": {}}}},
    }  # fmt: skip
    (project / "opencode.json").write_text(json.dumps(settings, indent=2))
    environment = {
        "HOME": str(home), "PATH": os.environ["PATH"],
        "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }  # fmt: skip
    graphmem = [sys.executable, "-m", "graphmem", "--db", str(database), "--project", str(project)]

    def install(*options):
        subprocess.run([*graphmem, "opencode", "install", "--project", *options], check=True, env=environment)

    install()

    def run(*words):
        done = subprocess.run(
            [program, "run", *words],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.project, run.database, run.environment, run.install = project, database, environment, install
    yield run
    for record in Path(home, ".local", "state", "graphmem", "servers").glob("*.json"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(json.loads(record.read_text())["pid"], signal.SIGTERM)


def test_the_memory_goes_with_a_project_from_run_to_run(work, model):
    work(*WISH.split())
    assert WISH in model.user()

    work("Hello,", "read", "it")
    assert "Packages are handled with pnpm" in model.system()

    with Memory.open(work.database, project=work.project) as memory:
        (scene,) = [each.key for each in memory.scenes(origin="emergent")]
        memory.remember(SCENE_RULE, kind="rule", scenes=scene, source="user")
        for title in ("Redis listens on 6380", "Redis is listening on 6380"):
            memory.remember(title, scope="project")
        said = [hit.part.text for hit in memory.history(WISH) if hit.part.role == "user"]
    assert scene.startswith("auto:")
    assert "chan:opencode.panel" in scene
    assert said == [WISH]

    work("Once", "more,", "read", "it")
    assert SCENE_RULE in model.system()
    assert model.system().count("<memory>") == 1

    assert "Done." in work("--command", "mem-search", "pnpm")
    assert "<recalled-memory>" in model.user()
    assert WISH in model.user()
    assert "File not found" in model.system()

    work("--command", "mem-dream")
    assert "dream: " in model.user()
    work("--command", "mem-dream")
    assert "7 days" in model.user()


def test_its_model_writes_what_is_left_of_a_session(work, model):
    work.environment["GRAPHMEM_EXTRACT_MIN_TURNS"] = "1"
    work.install("--writer")
    work("We", "decided", "to", "use", "Redis.")

    model.delay = 6  # so that the program lasts as long as the session beside it
    work("Hello")

    with Memory.open(work.database, project=work.project) as memory:
        notes = memory.notes(kinds="checkpoint")
        told = [part.text for part in memory.history("digest")]
    assert [note.origin.actor for note in notes] == ["agent:writer"]
    assert "harbour-7" in notes[0].body
    assert len(model.written) == 1
    assert "tools" not in model.written[0] or model.written[0]["tools"] == []
    assert told == []


def test_without_a_server_the_turn_works(work, model):
    (work.project / ".opencode" / "graphmem" / "settings.json").write_text(
        json.dumps({"command": ["no-such-graphmem"]})
    )

    assert "Done." in work("Hello")

    assert "<memory>" not in model.system()


def test_without_the_bridge_the_turn_works(work, model):
    shutil.rmtree(work.project / ".opencode" / "graphmem")

    assert "Done." in work("Hello")
