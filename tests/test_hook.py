"""The hooks of Claude Code: real processes, real JSON on standard input."""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sql

from graphmem import Memory, Situation
from graphmem.surfaces import claude_code, hook
from graphmem.surfaces.hosts import Seat
from graphmem.surfaces.own_programs import words_of

ROOT = Path(__file__).parent.parent
RULE = "Answer in plain text"
WISH = "From now on, always answer in German."
FAILED = "Exit code 1\nrm: cannot remove '/tmp/a': No such file or directory"
SESSION = "f2fb3ef9-d628-4819-a7bb-d2be9f390aaa"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


class Host:
    """Claude Code as its hooks see it, with a home and a project of its own."""

    def __init__(self, folder, compiled):
        self.folder, self.home, self.work = folder, folder / "home", folder / "my work"
        self.path = folder / "memory.db"
        for each in (self.home, self.work):
            each.mkdir()
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ann\n", "utf-8")
        self.transcript = folder / f"{SESSION}.jsonl"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "XDG_", "PYTHON"))
        }
        self.environ = {
            **kept, "HOME": str(self.home), "GRAPHMEM_DB": str(self.path), "PYTHONPYCACHEPREFIX": str(compiled),
            "CLAUDE_PROJECT_DIR": str(self.work), "LOGNAME": "ann", "GRAPHMEM_HOOK_ALONE": "1",
        }  # fmt: skip

    def event(self, name, **told):
        return {
            "session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.work),
            "hook_event_name": name, **told,
        }  # fmt: skip

    def raw(self, name, data, **environ):
        """Run a hook; return its exit code, what it printed, and what it said besides."""
        ran = subprocess.run(
            [*words_of("graphmem.surfaces.hook"), *([name] if name else [])],
            input=data, capture_output=True, timeout=60, env=self.environ | environ, cwd=self.work,
        )  # fmt: skip
        return ran.returncode, ran.stdout, ran.stderr

    def hook(self, name, *, environ=None, **told):
        """Tell an event as Claude Code does; return the answer, None for none."""
        code, out, err = self.raw(name, json.dumps(self.event(name, **told)).encode(), **(environ or {}))
        assert (code, err) == (0, b"")
        return json.loads(out) if out else None

    def context(self, name, **told):
        """What an event adds for the model, '' for nothing."""
        answer = self.hook(name, **told)
        return answer["hookSpecificOutput"]["additionalContext"] if answer else ""

    def prompt(self, text):
        return self.context("UserPromptSubmit", prompt=text)

    def wishes(self, text):
        """Say a wish, and wait until the process behind the answer has kept it."""
        before = self._wishes()
        self.prompt(text)
        for _ in range(300):
            if self._wishes() > before:
                return
            time.sleep(0.1)
        raise AssertionError(self.log())

    def _wishes(self):
        state = self.environ.get("XDG_STATE_HOME", self.home / ".local/state")
        files = Path(state, "graphmem", "claude-code").glob("*")
        return sum(file.read_text("utf-8").count("wish [") for file in files)

    def log(self):
        file = self.home / ".local/state/graphmem/hook.log"
        return file.read_text("utf-8") if file.exists() else ""

    def memory(self):
        return Memory.open(self.path, project=self.work)

    def says(self, *lines):
        with self.transcript.open("a", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps({"sessionId": SESSION, "cwd": str(self.work), **line}) + "\n")

    def waits_for(self, statement, expected):
        """Wait for the process behind an answer."""
        for _ in range(300):
            with contextlib.suppress(Exception):
                found = sql(self.path, statement)
                if found == expected:
                    break
            time.sleep(0.1)
        assert sql(self.path, statement) == expected, self.log()


@pytest.fixture
def host(tmp_path, compiled):
    return Host(tmp_path, compiled)


def user(uuid, text):
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}


def assistant(uuid, text):
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "uuid": uuid, "message": {"role": "assistant", "content": content}}


# ---- each event


def test_a_session_starts_with_what_binds(host):
    with host.memory() as memory:
        memory.remember(RULE, kind="rule", source="user", pinned=True)

    answer = host.hook("SessionStart", source="startup")

    assert answer.keys() == {"hookSpecificOutput", "suppressOutput"}
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert RULE in answer["hookSpecificOutput"]["additionalContext"]
    assert host.log() == ""


def test_a_scene_grows_by_the_second_visit_and_its_rule_is_in_the_third_brief(host):
    first, second = host.prompt("Where does the panel run?"), host.prompt("Which port?")
    with host.memory() as memory:
        here = Seat("claude-code", SESSION, "Ann").situation(memory)
        (scene,) = [one.key for one in memory.match_scenes(here) if one.key.startswith("auto:")]
        memory.remember(RULE, kind="rule", source="user", scenes=[scene])
    third = host.prompt("怎么部署？")

    assert (first, second) == ("", "")
    assert RULE in third


def test_what_a_prompt_calls_to_mind_is_added_once(host):
    with host.memory() as memory:
        memory.remember("The pelican lives in the harbour", scenes=[])

    told = [host.prompt(text) for text in ("What of the pelican?", "What of the pelican?", "And now?")]
    told += [host.context("SessionStart", source=source) for source in ("resume", "compact")]

    assert ["harbour" in text for text in told] == [True, False, False, False, True]
    assert told[1:4] == ["", "", ""]


def test_a_tool_is_told_its_rules_and_no_decision(host):
    with host.memory() as memory:
        memory.remember("Never force push", kind="rule", source="user", labels=["git push"])

    call = {"tool_name": "Bash", "tool_input": {"description": "publish", "command": "git push -f"}}
    answers = [host.hook("PreToolUse", **call) for _ in range(2)]
    other = host.hook("PreToolUse", tool_name="Read", tool_input={"file_path": "a.txt"})

    assert answers[0]["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    assert "Never force push" in answers[0]["hookSpecificOutput"]["additionalContext"]
    assert answers[1] is other is None


def test_a_tool_that_fails_twice_is_warned_of_in_the_third(host):
    call = {"tool_name": "Bash", "tool_input": {"command": "rm /tmp/a"}}
    after = [host.context("PostToolUseFailure", error=FAILED, **call) for _ in range(2)]
    host.hook("PostToolUseFailure", error="stopped", is_interrupt=True, **call)

    assert after[0] == ""
    assert "Bash ×2" in after[1]
    assert "Bash ×2" in host.prompt("Go on")
    assert "Bash ×2" in host.context("PreToolUse", agent_id="a1", **call)
    assert sql(host.path, "SELECT SUM(count) FROM incidents") == [(2,)]


def test_a_wish_is_reminded_of_exactly_once_and_never_in_a_loop(host):  # C8.15
    host.wishes(f"Thanks. {WISH}")

    loop = host.hook("Stop", stop_hook_active=True)
    host.hook("SessionStart", source="compact")
    answers = [host.hook("Stop", stop_hook_active=active) for active in (False, True, False)]
    host.wishes(WISH)
    answers.append(host.hook("Stop", stop_hook_active=False))

    assert loop is None
    assert answers[0]["decision"] == "block"
    assert WISH in answers[0]["reason"]
    assert answers[1:] == [None, None, None]


def test_a_turn_that_takes_no_time_is_reminded_too(host):
    host.prompt(WISH)

    assert WISH in host.hook("Stop")["reason"]


def test_a_wish_that_was_saved_is_not_reminded_of(host):
    host.wishes(WISH)
    with host.memory() as memory:
        memory.remember("Answer in German")

    assert host.hook("Stop", stop_hook_active=False) is None


def test_a_reminder_that_found_the_memory_busy_comes_with_the_next_turn(host):
    host.wishes(WISH)
    with host.memory() as memory, memory._store.write():
        busy = host.hook("Stop")

    host.prompt("Go on")

    assert busy is None
    assert WISH in host.hook("Stop")["reason"]


def test_no_secret_is_kept_of_a_prompt(host):
    token = "ghp_" + "a1B2" * 9
    host.wishes(f"From now on, always use {token} to log in.")

    files = [file for file in host.home.rglob("*") if file.is_file()]
    assert any(file.parent.name == "claude-code" for file in files)
    assert not any(token.encode() in file.read_bytes() for file in [*files, host.path])
    kept = [file for file in files if "state" in file.parts]
    assert {place.stat().st_mode & 0o77 for file in kept for place in (file, file.parent)} == {0}
    assert (host.home / ".local/state/graphmem").stat().st_mode & 0o77 == 0


def test_a_session_is_harvested_behind_the_end_of_a_turn_each_word_once(host):
    host.prompt("Decided: the panel runs on port 8443.")
    host.says(user("u1", "Decided: the panel runs on port 8443."), assistant("a1", "Noted."))
    assert host.hook("Stop", stop_hook_active=False) is None
    host.waits_for("SELECT part, role FROM parts ORDER BY seq", [("u1", "user"), ("a1", "assistant")])

    host.says(user("u2", "And the database on 5432."))
    assert host.hook("SessionEnd", reason="other") is None
    host.waits_for("SELECT part FROM parts ORDER BY seq", [("u1",), ("a1",), ("u2",)])
    host.waits_for("SELECT cause, state FROM jobs", [("idle", "done")])
    with host.memory() as memory:
        assert memory.sessions()[0].scope == memory.project.key
    assert host.log() == ""


def test_before_compaction_a_checkpoint_is_made_and_told_behind_it(host):
    host.says(user("u1", "Decided: the panel runs on port 8443."), assistant("a1", "Noted."))
    assert host.hook("PreCompact", trigger="auto", custom_instructions="") is None
    host.waits_for("SELECT cause, state FROM jobs", [("compaction", "done")])

    assert "8443" in host.context("SessionStart", source="compact").partition("Last checkpoint")[2]


def test_what_was_injected_is_not_stored_again(host):
    with host.memory() as memory:
        memory.remember(RULE, kind="rule", source="user", pinned=True)
    brief = host.context("SessionStart", source="startup")
    host.says(user("u1", f"{brief}\nWhere does it run?"))
    host.hook("Stop", stop_hook_active=False)

    host.waits_for("SELECT TRIM(text, char(10)) FROM parts", [("Where does it run?",)])


# ---- whatever happens


def test_a_busy_memory_holds_nobody_up(host):
    with host.memory() as memory:
        memory.remember(RULE, kind="rule", source="user", pinned=True)
        with memory._store.write():
            told = host.context("SessionStart", source="startup")
            failure = host.hook("PostToolUseFailure", tool_name="Bash", tool_input={}, error="no")

    assert RULE in told
    assert failure is None
    assert "PostToolUseFailure: the failure: " in host.log()


@pytest.mark.parametrize("spoilt", ["damaged", "folder", "settings"])
def test_what_is_wrong_here_is_none_of_the_host(host, spoilt):
    environ = {}
    if spoilt == "damaged":
        host.path.write_bytes(b"no database at all" * 100)
    elif spoilt == "folder":
        host.path.mkdir()
    else:
        environ = {"GRAPHMEM_BUSY_TIMEOUT": "soon"}

    for name in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUseFailure"):
        assert host.hook(name, environ=environ, prompt="x", tool_name="Bash", error="x") is None

    assert len(host.log().splitlines()) == 4


def test_a_home_that_cannot_be_written_costs_only_the_log(host):
    (host.home / ".local").write_text("a file", "utf-8")

    assert host.hook("SessionStart", source="startup") is None
    assert host.raw("SessionStart", b"{")[:2] == (0, b"")


def test_a_writer_at_work_is_left_alone(host):
    host.hook("UserPromptSubmit", prompt=WISH, environ={"GRAPHMEM_WRITER": "1"})

    assert not host.path.exists()


def test_settings_are_kept_to(host):
    with host.memory() as memory:
        memory.remember(RULE, kind="rule", source="user", pinned=True)
    before = host.path.read_bytes()

    assert host.hook("SessionStart", environ={"GRAPHMEM_INJECT": "false"}) is None
    told = host.hook("UserPromptSubmit", prompt=WISH, environ={"GRAPHMEM_READ_ONLY": "true"})
    assert RULE in told["hookSpecificOutput"]["additionalContext"]
    assert host.hook("Stop", environ={"GRAPHMEM_READ_ONLY": "true"}) is None
    assert host.path.read_bytes() == before
    assert host.log() == ""


GARBAGE = [
    b"", b"\n", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"\x00", b"[" * 100_000, b'{"session_id": 7}',
    b'{"session_id": "s", "prompt": ["x"], "tool_name": {}, "tool_input": [1], "cwd": "\\u0000", "error": null}',
    b'{"session_id": "\\ud800", "prompt": "\\ud800 x", "tool_name": "\\ud800", "tool_input": {"command": "\\ud83d"}}',
    b'{"session_id": "s", "transcript_path": "/nowhere", "cwd": 5, "prompt": NaN, "tool_input": 1e999}',
]  # fmt: skip


@pytest.mark.parametrize("name", ["", "SessionStart", "PreToolUse", "Stop", "--db", "No such event"])
def test_garbage_ends_well(host, name):
    for data in GARBAGE if name == "PreToolUse" else GARBAGE[-3:]:
        code, out, err = host.raw(name, data)

        assert (code, err) == (0, b"")
        assert not out or json.loads(out)


SOME = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
EVENT = st.fixed_dictionaries(
    {"session_id": st.text(max_size=5) | SOME},
    optional={
        name: st.text(max_size=30) | SOME
        for name in ("cwd", "prompt", "tool_name", "tool_input", "error", "source", "transcript_path", "agent_id",
                     "stop_hook_active", "is_interrupt")
    },
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(claude_code.EVENTS), told=EVENT | SOME)
def test_any_event_is_answered_or_not(tmp_path_factory, name, told):
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("HOME", str(folder))
        done = claude_code.answered(name, told, database=str(folder / "any.db"))

    assert not done.answer or json.loads(json.dumps(done.answer)) == done.answer
    assert done.answer is None or "permissionDecision" not in json.dumps(done.answer)


# ---- the helper


@pytest.fixture
def helped(host):
    """A host whose hooks may leave a helper behind, which is ended with the test."""
    del host.environ["GRAPHMEM_HOOK_ALONE"]
    state = Path(tempfile.mkdtemp(prefix="gm-"))  # a path of a socket is short
    host.environ["XDG_STATE_HOME"] = str(state)
    host.sockets = lambda: sorted((state / "graphmem").glob("hook-*[0-9a-f]"))
    yield host
    for process in Path("/proc").glob("[0-9]*"):  # also one that is only just starting
        with contextlib.suppress(OSError):
            if str(state).encode() in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
    shutil.rmtree(state)


def helper_of(place):
    """The process that answers at a socket, None for none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(str(place))
        except OSError:
            return None
        return struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def wait_for_a_helper(host):
    for _ in range(300):
        for place in host.sockets():
            if pid := helper_of(place):
                return place, pid
        time.sleep(0.1)
    raise AssertionError("no helper came")


needs_sockets = pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="asks Linux who answers")


@needs_sockets
def test_the_first_event_leaves_a_helper_and_the_next_ones_ask_it(helped):
    with helped.memory() as memory:
        memory.remember(RULE, kind="rule", source="user", pinned=True)
    first = helped.hook("SessionStart", source="startup")
    place, pid = wait_for_a_helper(helped)
    told = "; print(*(n for n in ('json', 're', 'sqlite3', 'dataclasses', 'logging') if n in sys.modules))"
    asked = subprocess.run(
        [sys.executable, "-c", "import sys; from graphmem.surfaces import hook; hook.answer(['Stop'])" + told],
        env=helped.environ, capture_output=True, text=True, timeout=60, cwd=helped.work,
        input=json.dumps(helped.event("Stop")),
    )  # fmt: skip

    helped.says(user("u1", "Where does it run?"))
    assert helped.hook("Stop") is None
    helped.waits_for("SELECT part FROM parts", [("u1",)])
    assert helped.hook("SessionStart", source="startup") == first
    assert (len(helped.sockets()), helper_of(place)) == (1, pid)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert (asked.stdout, asked.stderr) == ("\n", "")


@needs_sockets
def test_no_program_of_the_project_runs(helped):
    run = helped.home / "run"
    for name in ("socket", "json", "sqlite3", "regex", "graphmem"):
        (helped.work / f"{name}.py").write_text(f"open({str(run)!r}, 'a').write(__name__)\n")
    helped.says(user("u1", "Where does it run?"))

    helped.hook("SessionStart", source="startup")
    helped.hook("Stop", environ={"GRAPHMEM_HOOK_ALONE": "1"})
    wait_for_a_helper(helped)
    helped.waits_for("SELECT part FROM parts", [("u1",)])

    assert not run.exists()


@needs_sockets
def test_a_helper_that_dies_is_replaced_and_one_of_other_settings_not_asked(helped):
    helped.hook("SessionStart", source="startup")
    place, pid = wait_for_a_helper(helped)
    os.kill(pid, signal.SIGKILL)
    while helper_of(place):
        time.sleep(0.05)

    helped.wishes(WISH)
    again, other = wait_for_a_helper(helped)
    silent = helped.hook("Stop", environ={"GRAPHMEM_REMIND_UNRECORDED": "false"})
    reminded = helped.hook("Stop")

    assert (again, other != pid) == (place, True)
    assert silent is None
    assert len(helped.sockets()) >= 1
    assert reminded is None  # the wish was taken up by the one before


@needs_sockets
@pytest.mark.parametrize("way", ["variable", "option"])
def test_a_memory_named_by_a_relative_path_is_the_one_of_that_folder(helped, way):
    helped.environ["GRAPHMEM_DB"] = "own.db" if way == "variable" else str(helped.path)
    helped.hook("SessionStart", source="startup")
    wait_for_a_helper(helped)
    other = helped.folder / "other"
    other.mkdir()
    event = {**helped.event("SessionStart", source="startup"), "cwd": str(other)}

    subprocess.run(
        [*words_of("graphmem.surfaces.hook"), *(["--db", "own.db"] if way == "option" else []), "SessionStart"],
        input=json.dumps(event).encode(), env=helped.environ, cwd=other, timeout=60, check=True,
    )  # fmt: skip

    assert (other / "own.db").exists()


@pytest.mark.parametrize("memory", ["/data/own.db", "postgresql://me@db.example/memories?tenant=t1"])
def test_one_helper_serves_a_memory_that_is_the_same_in_every_folder(memory, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GRAPHMEM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHMEM_DB", memory)

    here = hook.request([], b"")[0]
    monkeypatch.chdir(tmp_path)
    there = hook.request([], b"")[0]

    assert here == there


@needs_sockets
def test_whatever_is_said_to_a_helper_it_goes_on(helped):
    helped.hook("SessionStart", source="startup")
    place, pid = wait_for_a_helper(helped)
    for data in (b"", b"\n", b"x y\n", b"9 9\n", b"-1 -1\n", b"99999999999999999999 1\nx", b"\xff" * 1000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.connect(str(place))
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            assert line.recv(10) in (b"", b"-")
    for data in GARBAGE:
        assert helped.raw("UserPromptSubmit", data)[0] == 0

    assert helper_of(place) == pid
    assert helped.prompt("x") == ""


@needs_sockets
def test_a_helper_ends_when_nobody_asks(host):
    place = Path(tempfile.mkdtemp(prefix="gm-")) / "hook-1"
    code = f"from graphmem.surfaces.hook_helper import serve; serve({str(place)!r}, idle=0.3)"

    ran = subprocess.run([sys.executable, "-c", code], env=host.environ, capture_output=True, timeout=60)

    assert (ran.returncode, ran.stderr, place.exists()) == (0, b"", False)
    place.parent.rmdir()


@needs_sockets
def test_to_uninstall_ends_it(helped):
    helped.hook("SessionStart", source="startup")
    place, pid = wait_for_a_helper(helped)
    words = [*words_of("graphmem"), "claude", "uninstall"]

    subprocess.run([*words, "--dry-run"], env=helped.environ, cwd=helped.work, timeout=60, check=True)
    assert helper_of(place) == pid
    subprocess.run(words, env=helped.environ, cwd=helped.work, timeout=60, check=True)

    assert not place.exists()
    for _ in range(300):
        if not is_running(pid):
            break
        time.sleep(0.02)
    assert not is_running(pid)


def is_running(pid):
    """Whether a process is there, and no zombie that nobody asked for its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- the entry


def test_a_hook_loads_only_what_its_answer_needs(host):
    heavy = ["click", "numpy", "networkx", "regex", "snowballstemmer", "pydantic", "logging", "platformdirs", "asyncio"]
    script = """if True:
        import os, sys
        from graphmem.surfaces import hook
        hook.os._exit = lambda code: None
        hook.main()
        print(*(name for name in sys.argv[2:] if name in sys.modules), file=sys.stderr)"""
    with host.memory() as memory:
        memory.remember(RULE, kind="rule", source="user", pinned=True)
        memory.enter_scene(Situation.of(chan="x"))
        memory.remember("The panel runs on port 8443 and is deployed with pnpm")
        memory.record_failure("Bash", FAILED)
    ours = [f"graphmem.core.{name}" for name in ("failures", "checkpoints", "candidates", "reminders", "precise")]
    needs = {name: [*heavy, *ours] for name in ("SessionStart", "PreToolUse", "Stop")}
    for name, loaded in {**needs, "UserPromptSubmit": ["numpy", *ours]}.items():
        ran = subprocess.run(
            [sys.executable, "-c", script, name, *loaded], env=host.environ, capture_output=True, text=True, timeout=60,
            input=json.dumps(
                host.event(name, tool_name="Bash", tool_input={"command": "ls"}, prompt="How is the panel deployd?")
            ),
        )  # fmt: skip
        assert ran.stderr.split() == [], name


def test_the_command_line_has_it_too(host):
    ran = subprocess.run(
        [sys.executable, "-m", "graphmem", "hook", "SessionStart"], env=host.environ, capture_output=True, text=True,
        input=json.dumps(host.event("SessionStart")), timeout=60,
    )  # fmt: skip

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert host.path.exists()


@pytest.mark.parametrize("words", [["--bogus"], ["Stop", "extra"], ["Stop", "--json"], [], ["nonsense"]])
def test_a_wrong_command_forbids_nothing(host, words):
    ran = subprocess.run(
        [sys.executable, "-m", "graphmem", "hook", *words],
        env=host.environ,
        capture_output=True,
        input=b"{}",
        timeout=60,
    )

    assert (ran.returncode, ran.stdout) == (0, b"")


def test_there_is_a_program_for_it():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'graphmem-hook = "graphmem.surfaces.hook:main"' in text
