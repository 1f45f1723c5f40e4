"""The plug-ins of OpenCode in node, with a fake host on one side and a scripted server on the other."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "graphmem" / "surfaces" / "opencode"
HOST = Path(__file__).with_name("opencode_host.mjs")

pytestmark = [
    pytest.mark.needs_node,
    pytest.mark.skipif(shutil.which("node") is None, reason="no node here"),
]


class Server(http.server.ThreadingHTTPServer):
    """Says what `answers` holds for a moment; `heard` are the moments and what was told of them.

    Where there are several answers each is for one request; a number is a status, a float the seconds it takes.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {}
        self.heard = []
        self.refused = []

    def told(self, moment):
        return [body for each, body in self.heard if each == moment]


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        moment = self.path.removeprefix("/host/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Authorization"] == "Bearer secret"
        answer = self.server.answers.get(moment, {})
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, int) and not isinstance(answer, bool):
            self.server.refused.append(body)
            self.send_error(answer)
            return
        if isinstance(answer, tuple):
            time.sleep(answer[0])
            answer = answer[1]
        self.server.heard.append((moment, body))
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server():
    with Server() as found:
        threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        found.shutdown()


@pytest.fixture
def run(server, tmp_path):
    """Let a plug-in go through steps; returns what it made of each output."""
    place = tmp_path / ".opencode"
    shutil.copytree(SOURCES, place / "graphmem")
    (place / "plugins").mkdir()
    where = {"url": f"http://127.0.0.1:{server.server_address[1]}", "token": "secret", "pid": os.getpid()}
    told = json.dumps(where)
    starts = [sys.executable, "-c", f"print({told!r})"]

    def go(*steps, plugin="graphmem.js", command=starts, environment=None, writes=False):
        (place / "graphmem" / "settings.json").write_text(json.dumps({"command": command, "writes": writes}))
        shutil.copy(SOURCES / plugin, place / "plugins" / plugin)
        # The server is found before anything is said, as in OpenCode, which takes a second to begin.
        done = subprocess.run(
            ["node", HOST, place / "plugins" / plugin, tmp_path],
            input=json.dumps([{"pause": 600}, *steps, {"pause": 100}, {"dispose": True}]),
            capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "NODE_NO_WARNINGS": "1", **(environment or {})},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        server.asked = found["asked"]
        return found["told"][1:-2]

    return go


def hook(name, given, output=None):
    return {"hook": name, "input": given, "output": output}


def says(text, *, session="s1", part="p1", message="m1", **more):
    """The user says something."""
    parts = [{"id": part, "messageID": message, "type": "text", "text": text, **more}]
    return hook("chat.message", {"sessionID": session}, {"message": {"id": message, "role": "user"}, "parts": parts})


def asks_for_system(*system, session="s1"):
    return hook("experimental.chat.system.transform", {"sessionID": session}, {"system": list(system)})


def event(name, **properties):
    return {"event": {"type": name, "properties": properties}}


def part(kind, *, name="p2", message="m2", **more):
    return event(
        "message.part.updated", part={"id": name, "sessionID": "s1", "messageID": message, "type": kind, **more}
    )


def fails(error, call="c1"):
    state = {"status": "error", "input": {"filePath": "a.txt"}, "error": error}
    return part("tool", name=f"p-{call}", tool="read", callID=call, state=state)


def ran(call, output="42"):
    return [
        hook("tool.execute.before", {"tool": "bash", "sessionID": "s1", "callID": call}, {"args": {"command": "ls"}}),
        {"pause": 50},
        hook("tool.execute.after", {"tool": "bash", "sessionID": "s1", "callID": call}, {"output": output}),
    ]


def command(name, text, words="", session="s1"):
    given = {"command": name, "sessionID": session, "arguments": words}
    return hook("command.execute.before", given, {"parts": [{"type": "text", "text": text}, {"type": "file"}]})


# ---- what the model is told


def test_what_holds_is_one_string_behind_the_system_prompt(run, server):
    server.answers["prompt"] = {"standing": "<memory>rule</memory>", "found": "", "reminder": ""}

    told = run(says("Hello"), asks_for_system("You are opencode", "more"), asks_for_system("You are a title generator"))

    assert told[1]["system"] == ["You are opencode", "more", "<memory>rule</memory>"]
    assert told[2]["system"] == ["You are a title generator"]


def test_what_a_prompt_calls_to_mind_stands_behind_it_and_is_not_the_users(run, server):
    server.answers["prompt"] = {"standing": "", "found": "<recalled-memory>", "reminder": "<memory-reminder>"}

    (told,) = run(says("Hello"))

    assert told["parts"][0]["text"] == "Hello"
    added = told["parts"][1]
    assert (added["text"], added["synthetic"]) == ("<recalled-memory>\n<memory-reminder>", True)
    assert (added["sessionID"], added["messageID"]) == ("s1", "m1")
    assert added["id"] > told["parts"][0]["id"]
    assert len(told["parts"]) == 2


def test_a_prompt_is_told_with_its_project_and_parts(run, server, tmp_path):
    run(says("Hello"))

    (told,) = server.told("prompt")
    assert (told["host"], told["session"], told["folder"], told["text"]) == ("opencode", "s1", str(tmp_path), "Hello")
    assert [(each["message"]["id"], each["part"]["id"]) for each in told["said"]] == [("m1", "p1")]


@pytest.mark.parametrize(
    ("given", "said"),
    [('"always use pnpm"', "always use pnpm"), (r'"say \"hi\" twice"', 'say "hi" twice'), ('"a" or "b"', '"a" or "b"')],
)
def test_the_quotes_of_a_command_line_are_not_the_users(run, server, given, said):
    run(says(given))

    assert server.told("prompt")[0]["text"] == said


def test_a_slow_server_is_not_waited_for_and_is_heard_later(run, server):
    server.answers["prompt"] = (1.0, {"standing": "rule", "found": "old news", "reminder": "reminder"})

    told = run(says("Hello"), asks_for_system("first"), {"pause": 1200}, asks_for_system("second"), *ran("c1"))

    assert len(told[0]["parts"]) == 1
    assert told[1]["system"] == ["first"]
    assert told[3]["system"] == ["second", "rule"]
    assert told[-1]["output"] == "42\n\nreminder"


def test_a_server_that_hangs_keeps_a_turn_waiting_once(run, server):
    server.answers = dict.fromkeys(("prompt", "tool", "compact"), (30, {}))

    told = run(
        says("Hello"), *(step for n in range(20) for step in ran(f"c{n}")), says("Again"), asks_for_system("first")
    )

    assert told[-1]["system"] == ["first"]


def test_another_session_begins_with_what_was_good_last(run, server):
    server.answers["prompt"] = [{"standing": "rule"}, (1.0, {"standing": "other"})]

    told = run(says("Hello"), says("Hi", session="s2"), asks_for_system("first", session="s2"))

    assert told[2]["system"] == ["first", "rule"]


def test_rules_of_a_tool_stand_behind_its_output_once_until_compaction(run, server):
    server.answers["tool"] = {"text": "rule of bash"}
    compacted = event("session.compacted", sessionID="s1")

    told = run(*ran("c1"), *ran("c2"), compacted, *ran("c3"))

    assert [each["output"] for each in told if each and "output" in each] == [
        "42\n\nrule of bash",
        "42",
        "42\n\nrule of bash",
    ]
    assert server.told("tool")[0]["input"] == {"command": "ls"}


def test_compaction_is_given_what_has_to_outlast_it(run, server):
    server.answers["compact"] = {"text": "rule"}

    (told,) = run(hook("experimental.session.compacting", {"sessionID": "s1"}, {"context": ["own"]}))

    assert told["context"] == ["own", "rule"]


# ---- what the memory is told


def test_parts_of_the_agent_are_told_when_they_are_complete(run, server):
    user = {"id": "m1", "sessionID": "s1", "role": "user"}
    agent = {"id": "m2", "sessionID": "s1", "role": "assistant"}
    state = {"status": "completed", "input": {}, "output": "a.txt"}

    run(
        event("message.updated", info=user),
        event("message.updated", info=agent),
        part("text", name="p1", message="m1", text="Hello", time={"end": 1}),
        part("text", text="Fi", time={"start": 1}),
        part("text", text="Fine.", time={"start": 1, "end": 2}),
        part("tool", name="p3", tool="bash", callID="c1", state={"status": "running"}),
        part("tool", name="p3", tool="bash", callID="c1", state=state),
    )

    told = [each for body in server.told("said") for each in body["said"]]
    assert [(each["part"]["id"], each["message"]["role"]) for each in told] == [
        ("p2", "assistant"),
        ("p3", "assistant"),
    ]
    assert told[0]["part"]["text"] == "Fine."


def test_a_failure_is_told_once_and_what_the_user_stops_is_none(run, server):
    server.answers["failure"] = {"text": "it failed again"}

    told = run(
        fails("File not found"),
        fails("File not found"),
        fails("The user rejected permission to use this specific tool call.", "c2"),
        fails("Tool execution aborted", "c3"),
        {"pause": 100},
        *ran("c4"),
        says("Go on"),
    )

    (failure,) = server.told("failure")
    assert (failure["tool"], failure["input"], failure["error"]) == ("read", {"filePath": "a.txt"}, "File not found")
    assert told[-2]["output"] == "42\n\nit failed again"
    assert len(told[-1]["parts"]) == 1


def test_what_the_host_removes_is_told(run, server):
    run(
        event("message.removed", sessionID="s1", messageID="m1"),
        event("message.part.removed", sessionID="s1", messageID="m2", partID="p2"),
        event("session.deleted", info={"id": "s1"}),
    )

    assert [body["messages"] for body in server.told("removed")[:1]] == [["m1"]]
    assert server.told("removed")[1]["parts"] == ["p2"]
    assert [moment for moment, _ in server.heard] == ["removed", "removed", "deleted"]


def test_what_a_subagent_is_asked_is_no_prompt(run, server):
    server.answers["start"] = {"text": "rule"}

    told = run(
        event("session.created", info={"id": "s1", "parentID": "s0"}), says("Look into it"), {"pause": 100},
        asks_for_system("first"),
    )  # fmt: skip

    assert server.told("prompt") == []
    assert [body["child"] for body in server.told("said")] == [True]
    assert told[-1]["system"] == ["first", "rule"]


def test_idle_and_the_end_are_told(run, server):
    run(says("Hello"), event("session.idle", sessionID="s1"))

    assert [moment for moment, _ in server.heard] == ["prompt", "idle", "idle", "end"]


def test_what_could_not_be_told_is_told_later_in_its_order(run, server):
    server.answers["said"] = [503, {}]

    run(
        part("text", name="p1", text="one", time={"end": 1}),
        {"pause": 100},
        part("text", name="p2", text="two", time={"end": 1}),
    )

    assert [body["said"][0]["part"]["text"] for body in server.told("said")] == ["one", "two"]


def test_what_is_told_again_has_the_name_it_had(run, server):
    server.answers["failure"] = [503, 401, {}]

    run(fails("gone"), {"pause": 100}, fails("gone", "c2"))

    names = [body["telling"] for body in [*server.refused, *server.told("failure")]]
    assert [names.index(name) for name in names] == [0, 0, 0, 3]


# ---- commands


def test_a_command_is_answered_in_place_and_its_text_is_not_the_users(run, server):
    server.answers["command"] = {"text": "due again in about 5 days"}

    (before, after) = run(
        command("mem-dream", "file of the command"),
        says("Tell the user this, in a sentence, and do nothing else:\ndue again in about 5 days"),
    )

    assert len(before["parts"]) == 1
    assert before["parts"][0]["text"].endswith("due again in about 5 days")
    assert [body["command"] for body in server.told("command")] == ["dream"]
    assert server.told("prompt") == server.told("said") == []
    assert len(after["parts"]) == 1


def test_a_search_answers_in_place(run, server):
    server.answers["search"] = [{"text": "<recalled-memory>"}, {"text": ""}]

    told = run(command("mem-search", "file", "redis"), command("mem-search", "file", "penguins"))

    assert [body["text"] for body in server.told("search")] == ["redis", "penguins"]
    assert told[0]["parts"][0]["text"].endswith("<recalled-memory>")
    assert "knows nothing" in told[1]["parts"][0]["text"]


def test_commands_of_others_are_left_alone(run, server):
    (told,) = run(command("review", "file"))

    assert told["parts"] == [{"type": "text", "text": "file"}, {"type": "file"}]


# ---- what must not break a turn


@pytest.mark.parametrize("command", [["no-such-program"], [sys.executable, "-c", "print('no JSON')"], "nonsense", []])
def test_without_a_server_nothing_changes(run, command):
    told = run(
        says("Hello"), asks_for_system("first"), *ran("c1"), fails("no"), event("session.idle", sessionID="s1"),
        hook("experimental.session.compacting", {"sessionID": "s1"}, {"context": []}), command=command,
    )  # fmt: skip

    assert len(told[0]["parts"]) == 1
    assert told[1]["system"] == ["first"]
    assert told[4]["output"] == "42"
    assert told[-1]["context"] == []


def test_what_has_the_port_of_a_server_that_ended_hears_nothing(run, server, tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    first, again = (
        json.dumps({"url": f"http://127.0.0.1:{port}", "token": "secret", "pid": pid})
        for port, pid in ((server.server_address[1], ended.pid), (9, os.getpid()))
    )
    mark = str(tmp_path / "begun")
    script = f"import os; print({again!r} if os.path.exists({mark!r}) else {first!r}); open({mark!r}, 'w')"

    run(says("Hello"), asks_for_system("first"), command=[sys.executable, "-c", script])

    assert server.heard == []


def test_a_command_without_a_server_keeps_the_text_of_its_file(run):
    (told,) = run(command("mem-search", "file", "redis"), command=["no-such-program"])

    assert told["parts"][0]["text"] == "file"


@pytest.mark.parametrize("answer", [500, 400, [[]], {"standing": 5, "found": 5, "text": 5}, "text", b"no JSON"])
def test_an_answer_that_is_none_changes_nothing(run, server, answer):
    server.answers = dict.fromkeys(("prompt", "tool", "compact", "failure"), answer)

    told = run(says("Hello"), asks_for_system("first"), *ran("c1"), fails("no"), says("Again"))

    assert told[1]["system"] == ["first"]
    assert len(told[-1]["parts"]) == 1


def test_what_is_not_as_expected_breaks_nothing(run):
    names = ["chat.message", "experimental.chat.system.transform", "experimental.session.compacting",
             "command.execute.before", "tool.execute.before", "tool.execute.after"]  # fmt: skip

    run(*(hook(name, {}, {}) for name in names), {"event": {"type": "session.created"}}, event("message.part.updated"))


def test_the_run_of_a_writer_is_left_alone(run, server):
    run(says("Sum up"), asks_for_system("first"), environment={"GRAPHMEM_WRITER": "1"})

    assert server.heard == []


def test_a_loader_that_calls_every_export_finds_one():
    sources = [(SOURCES / name).read_text("utf-8") for name in ("graphmem.js", "graphmem-v2.js")]

    assert [source.count("export ") for source in sources] == [1, 1]
    assert "export const Graphmem = async (" in sources[0]
    assert "export default {" in sources[1]


# ---- its model as a writer


def test_the_model_writes_in_a_session_of_its_own_that_may_use_no_tool(run, server):
    server.answers["fetch"] = [{"id": "w1", "prompt": "ab"}, {"id": "w2", "prompt": "fail"}, {"id": "", "prompt": ""}]
    child = {"id": "child", "sessionID": "child", "title": "graphmem-writer", "parentID": "s1"}

    told = run(
        hook("config", {}), event("session.idle", sessionID="s1"), {"pause": 300},
        event("session.created", info=child), says("ab", session="child", message="m9"),
        asks_for_system("first", session="child"), writes=True,
    )  # fmt: skip

    assert told[0]["agent"]["graphmem-writer"]["permission"] == {"*": "deny"}
    assert [(body["id"], body.get("text"), body.get("error")) for body in server.told("wrote")] == [
        ("w1", "abab", None),
        ("w2", None, "Error: no model"),
    ]
    assert [name for name, _ in server.asked] == ["create", "prompt", "delete"] * 2
    assert server.asked[0][1]["body"]["parentID"] == "s1"
    assert server.asked[1][1]["body"]["agent"] == "graphmem-writer"
    assert {body["session"] for _, body in server.heard} == {"s1"}
    assert told[-1]["system"] == ["first"]
    assert len(told[-2]["parts"]) == 1


def test_the_model_writes_nothing_unless_the_settings_say_so(run, server):
    (told, _) = run(hook("config", {"agent": {}}), event("session.idle", sessionID="s1"))

    assert told == {"agent": {}}
    assert server.told("fetch") == server.asked == []
    assert server.told("idle")[0]["writes"] is False


# ---- version 2


def test_version_2_is_told_and_tells_the_same(run, server):
    server.answers |= {
        "prompt": {"standing": "rule", "found": "found", "reminder": ""},
        "tool": {"text": "rule of shell"}, "compact": {"text": "kept"},
    }  # fmt: skip
    text = {"sessionID": "s1", "assistantMessageID": "m2", "ordinal": 0, "text": "Fine."}
    call = {"sessionID": "s1", "messageID": "m2", "tool": "shell", "id": "c1", "input": {"command": "ls"}}

    told = run(
        hook("session.prompt", {"sessionID": "s1", "messageID": "m1", "prompt": {"text": "Hello"}}),
        hook("session.context", {"sessionID": "s1", "system": [{"type": "text", "text": "first"}]}),
        hook("tool.execute.before", call),
        {"pause": 50},
        hook("tool.execute.after", {**call, "status": "completed", "result": {"content": "a.txt"}}),
        hook("tool.execute.after", {**call, "id": "c2", "status": "error", "error": {"message": "no"}}),
        hook("session.compaction", {"sessionID": "s1", "system": []}),
        event("session.text.ended"),
        {"event": {"type": "session.text.ended", "data": text}},
        {"event": {"type": "session.execution.succeeded", "data": {"sessionID": "s1"}}},
        plugin="graphmem-v2.js",
    )  # fmt: skip

    assert [each["text"] for each in told[1]["system"]] == ["first", "rule", "found"]
    assert told[4]["result"]["content"] == "a.txt\n\nrule of shell"
    assert [each["text"] for each in told[6]["system"]] == ["kept"]
    assert server.told("failure")[0]["error"] == "no"
    assert [each["said"][0]["part"].get("text") for each in server.told("said")][-1] == "Fine."
    assert {"prompt", "tool", "said", "failure", "compact", "idle", "end"} == {moment for moment, _ in server.heard}


def test_where_more_waits_than_has_room_the_oldest_goes_and_nothing_else(run, server):
    server.answers["said"] = [(0.5, {}), {}]  # what is being told takes a while
    run(*(part("text", name=f"p{n}", text="x", time={"end": 1}) for n in range(520)), {"pause": 3000})

    told = [one["part"]["id"] for body in server.told("said") for one in body["said"]]
    assert told == ["p0", *(f"p{n}" for n in range(20, 520))]
