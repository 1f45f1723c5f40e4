"""The real Claude Code with our hooks, against a scripted server on loopback."""

import http.server
import json
import subprocess
import sys
import threading

import pytest
from support import node_package
from test_hook import Host

from graphmem.surfaces.hosts import Seat

PACKAGE = "@anthropic-ai/claude-code@2.1.332"
RULE = "Answer in plain text"
WISH = "From now on, always answer in German."

pytestmark = [pytest.mark.needs_node, pytest.mark.slow]  # npm installs it first


class Model:
    """A server that speaks as the model does: a tool that fails where it is asked for, else a word."""

    def __init__(self):
        self.asked = []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def do_GET(self):
                self._answer(b"{}", "application/json")

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                if not asked.get("stream"):
                    self._answer(b'{"input_tokens": 1}', "application/json")
                    return
                model.asked.append(json.dumps(asked, ensure_ascii=False))
                self._answer(_events(model.reply(asked)), "text/event-stream")

            def _answer(self, data, kind):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, asked):
        has_bash = any(tool.get("name") == "Bash" for tool in asked.get("tools", []))
        messages = json.dumps(asked["messages"])
        if has_bash and "please fail" in messages and "tool_result" not in messages:
            return {
                "type": "tool_use",
                "id": f"toolu_{len(self.asked)}",
                "name": "Bash",
                "input": {"command": "ls /nowhere"},
            }
        return {"type": "text", "text": "All done."}


def _events(block):
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    if block["type"] == "text":
        begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        begun = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    stop = {"stop_reason": "end_turn" if block["type"] == "text" else "tool_use", "stop_sequence": None}
    told = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in told).encode()


@pytest.fixture
def claude(tmp_path, tmp_path_factory):
    """Run Claude Code with our hooks installed; yields the host, the model and a function that asks it something."""
    program = node_package(PACKAGE).parents[1] / ".bin" / "claude"
    host, model = Host(tmp_path, tmp_path_factory.mktemp("compiled")), Model()
    del host.environ["CLAUDE_PROJECT_DIR"]
    environ = {
        **host.environ, "ANTHROPIC_BASE_URL": model.address, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    subprocess.run([sys.executable, "-m", "graphmem", "claude", "install"], env=environ, check=True, cwd=host.work)

    def ask(text):
        model.asked.clear()
        ran = subprocess.run(
            [program, "-p", text, "--allowedTools", "Bash"],
            env=environ, cwd=host.work, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (ran.returncode, host.log()) == (0, ""), ran.stderr
        return list(model.asked)

    yield host, ask
    model.server.shutdown()
    model.server.server_close()


def test_a_scene_grows_and_its_rule_reaches_the_model(claude):
    host, ask = claude
    for text in ("Where does the panel run?", "Which port?"):
        assert RULE not in ask(text)[0]
    with host.memory() as memory:
        here = Seat("claude-code", "", "Ann").situation(memory)
        (scene,) = [one.key for one in memory.match_scenes(here) if one.key.startswith("auto:")]
        memory.remember(RULE, kind="rule", source="user", scenes=[scene])

    assert RULE in ask("怎么部署？")[0]


def test_a_failing_tool_is_warned_of_in_the_third_session(claude):
    _, ask = claude
    first, second = ask("please fail"), ask("please fail now")

    assert "Bash ×" not in "".join(first)
    assert "Bash ×2" in second[-1]  # beside what the tool answered
    assert "Bash ×2" in ask("Go on")[0]


def test_a_wish_is_reminded_of_once_and_the_session_is_kept_word_for_word_once(claude):
    host, ask = claude
    asked = ask(WISH)

    reminded = [f"- {WISH}" in one for one in asked]
    assert reminded == [False, True]
    host.waits_for(
        "SELECT role, text FROM parts ORDER BY seq",
        [("user", WISH), ("assistant", "All done."), ("assistant", "All done.")],
    )
