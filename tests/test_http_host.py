"""What plug-ins of hosts tell and ask over HTTP."""

import asyncio
import functools
import subprocess
import sys
import threading
import time

import pytest
from test_checkpoints import DONE, TEXT
from test_http import MAY_WRITE, error_of, served

from graphmem import Config, Memory, Part, WriterFailed, WriterUnavailable
from graphmem.core.injected import WRITER_MARK
from graphmem.core.model import WriterTask
from graphmem.surfaces.http.host import Once
from graphmem.surfaces.http.host_writer import HostWriter

WISH = "From now on, always answer in German."
FAILED = "File not found: /srv/a.txt"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "panel"
    place.mkdir()
    subprocess.run(["git", "init", "-q", place], check=True)
    return place


@pytest.fixture
def tell(memory, folder):
    """Tell a moment of session s1; returns the answer as JSON."""
    with served(memory) as client:

        def one(moment, *, headers=MAY_WRITE, **told):
            body = {"host": "opencode", "session": "s1", "folder": str(folder), **told}
            return client.post(f"/host/{moment}", json=body, headers=headers)

        yield one


@pytest.fixture
def there(path, clock, folder):
    """Look into the memory, as for the project."""
    with Memory.open(path, clock=clock, project=folder) as memory:
        yield memory


def said(text, *, part="p1", message="m1", role="user", **more):
    return {"message": {"id": message, "role": role}, "part": {"id": part, "type": "text", "text": text, **more}}


def prompt(tell, text, *, part="p1", **told):
    return tell("prompt", text=text, said=[said(text, part=part)], **told).json()


def test_a_prompt_runs_a_turn_and_is_mirrored(tell, there):
    there.remember("Answer briefly", kind="rule", source="user")

    answer = prompt(tell, "Hello")

    assert answer["failed"] == []
    assert "Answer briefly" in answer["standing"]
    (session,) = there.sessions()
    assert (session.name, session.parts) == ("s1", 1)
    assert there.part("p1", session="s1").message == "m1"
    assert there.evidence()[0].count == 1


def test_what_holds_is_one_text_as_long_as_nothing_changes(tell, there):
    there.remember("Answer briefly", kind="rule", source="user")

    told = {prompt(tell, text)["standing"] for text in ("Hello", "Where does it run?", "Thanks")}

    assert len(told) == 1
    assert tell("start").json()["text"] in told


def test_a_wish_that_nobody_saved_comes_back_with_the_next_prompt_once(tell):
    first, second, third = (prompt(tell, text, part=text) for text in (WISH, "Thanks", "Bye"))

    assert (first["reminder"], first["wish"]) == ("", WISH)
    assert WISH in second["reminder"]
    assert third["reminder"] == ""


def test_a_failure_twice_is_warned_of(tell, there):
    calls = [{"tool": "read", "input": {"filePath": "a.txt"}, "error": FAILED}] * 2

    first, second = (tell("failure", **call).json() for call in calls)

    assert first["text"] == ""
    assert "read" in second["text"]
    assert there.incidents()[0].count == 2
    assert "File not found" in tell("tool", tool="read", input={"filePath": "b.txt"}).json()["text"]


def test_what_is_told_again_under_its_name_counts_once(tell, there):
    call = {"tool": "read", "input": {"filePath": "a.txt"}, "error": FAILED}
    tell("failure", **call, telling="t1")

    answers = [tell("failure", **call, telling=name).json() for name in ("t2", "t2", "t2")]
    prompts = [tell("prompt", text="Hello", telling="t2").json() for _ in range(2)]

    assert "read" in answers[0]["text"]
    assert answers == answers[:1] * 3
    assert there.incidents()[0].count == 2
    assert prompts[0] == prompts[1]
    assert there.evidence()[0].count == 1
    assert tell("failure", **call, telling="t2", session="s2").status_code == 200
    assert there.incidents()[0].count == 3


def test_what_failed_is_done_when_it_is_told_again():
    done, fails = [], [False, True]

    async def act(name):
        await asyncio.sleep(0)
        if name == "bad" and fails and fails.pop():
            raise ValueError(name)
        done.append(name)
        return {"name": name}

    async def main():
        once = Once(2)
        with pytest.raises(ValueError, match="bad"):
            await once("bad", lambda: act("bad"))
        together = await asyncio.gather(*(once("bad", lambda: act("bad")) for _ in range(3)))
        for name in ("a", "b", "bad", "b"):
            await once(name, functools.partial(act, name))
        return together

    assert asyncio.run(main()) == [{"name": "bad"}] * 3
    assert done == ["bad", "a", "b", "bad"]  # the first one is forgotten


def test_parts_come_as_the_host_has_them(tell, there):
    state = {"status": "completed", "input": {"command": "ls", "timeout": 5}, "output": "a.txt"}
    call = {"message": {}, "part": {"id": "t1", "messageID": "m2", "type": "tool", "tool": "bash", "state": state}}

    tell("said", said=[said("Fine.", part="p2", role="assistant"), call, said("made up", part="p3", synthetic=True)])

    parts = [there.part(name, session="s1") for name in ("p2", "t1")]
    assert [(part.role, part.text) for part in parts] == [
        ("assistant", "Fine."),
        ("tool", "command: ls\ntimeout: 5\n\na.txt"),
    ]
    assert (parts[1].tool, parts[1].outcome, parts[1].message) == ("bash", "done", "m2")
    assert there.sessions()[0].parts == 2


def test_what_a_subagent_is_asked_an_assistant_asks(tell, there):
    tell("said", child=True, said=[said("Look into it")])

    assert there.part("p1", session="s1").role == "assistant"


def test_what_the_host_removes_is_removed(tell, there):
    tell(
        "said", said=[said("one", part="p1", message="m1"), said("two", part="p2", message="m2"), said("3", part="p3")]
    )

    tell("removed", messages=["m2"])
    tell("removed", parts=["p3"])
    left = there.sessions()[0].parts
    tell("deleted")

    assert left == 1
    assert there.sessions() == ()
    assert tell("removed", messages=["m2"]).json()["failed"] == []
    assert tell("deleted").json()["failed"] == []


def test_compaction_keeps_what_holds_and_makes_a_checkpoint(tell, there):
    there.remember("Answer briefly", kind="rule", source="user")
    prompt(tell, "We decided to use Redis.")

    assert "Answer briefly" in tell("compact").json()["text"]


def test_a_checkpoint_that_was_queued_is_made_behind_the_answer(memory, folder, there):
    with served(memory) as client:
        body = {"host": "opencode", "session": "s1", "folder": str(folder)}
        client.post("/host/said", json={**body, "said": [said("We decided to use Redis.")]}, headers=MAY_WRITE)
        client.post("/host/compact", json=body, headers=MAY_WRITE)

    assert [note.kind for note in there.notes(kinds="checkpoint")] == ["checkpoint"]


def test_a_search_finds_notes_and_what_was_said(tell, there):
    there.remember("Redis listens on 6380")
    prompt(tell, "Is redis up?")

    text = tell("search", text="redis", session="s2").json()["text"]

    assert "Redis listens on 6380" in text
    assert "Is redis up?" in text
    assert text.startswith("<recalled-memory>")
    assert tell("search", text="penguins").json()["text"] == ""


def test_a_command_tells_what_came_of_it_and_waits_for_its_time(tell, there):
    for title in ("Redis listens on 6380", "Redis is listening on 6380"):
        there.remember(title, scope="project")

    first, again = (tell("command", command="dream").json()["text"] for _ in range(2))

    assert first.startswith("dream: ")
    assert "again in about 7 days" in again
    assert tell("command", command="checkpoint").json()["text"].startswith("checkpoint: ")
    assert tell("command", command="distill").json()["text"].startswith("distill: ")


def test_another_project_is_another_memory(tell, there, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    there.remember("Answer briefly", kind="rule", source="user", scope="project")

    assert "Answer briefly" in tell("start").json()["text"]
    assert tell("start", folder=str(other)).json()["text"] == ""
    assert tell("start", folder="").json()["text"] == ""


@pytest.mark.parametrize(
    ("moment", "told", "argument"),
    [
        ("prompt", {"session": " "}, "session"),
        ("prompt", {"host": 5}, "host"),
        ("prompt", {"text": ["a"]}, "text"),
        ("said", {"said": "p1"}, "said"),
        ("tool", {}, "tool"),
        ("failure", {"tool": "read"}, "error"),
        ("failure", {"telling": "t" * 101}, "telling"),
        ("removed", {"parts": "p1"}, "parts"),
        ("command", {"command": "sing"}, "command"),
        ("start", {"folder": "panel"}, "project"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tell, moment, told, argument):
    answer = tell(moment, **told)

    assert (answer.status_code, error_of(answer)["argument"]) == (400, argument)


def test_the_token_is_needed(tell):
    assert tell("start", headers={}).status_code == 401
    assert tell("nonsense").status_code == 404


def test_it_is_told_by_post(memory):
    with served(memory) as client:
        assert client.get("/host/start", headers=MAY_WRITE).status_code == 405


# ---- the model of a host as a writer

TASK = WriterTask("checkpoint", "Write", "it", (), 1000, "2026-09-07T08:00:00Z")


def write_in_a_thread(writer):
    """Let a writer write; returns what waits for it and gives the text or the error."""
    got = []

    def write():
        try:
            got.append(writer(TASK))
        except WriterFailed as error:
            got.append(error)

    thread = threading.Thread(target=write)
    thread.start()

    def ended():
        thread.join()
        return got[0]

    return ended


def fetched(writer):
    while not (found := writer.fetch())[0]:
        time.sleep(0.001)
    return found


def test_a_reply_is_that_of_who_fetched_it():
    writer = HostWriter(60)
    ended = write_in_a_thread(writer)

    name, prompt = fetched(writer)

    assert prompt == TASK.prompt
    assert writer.fetch() == ("", "")
    assert writer.bring("made up", "x", "") is False
    assert writer.bring(name, "text", "") is True
    assert ended() == "text"
    assert writer.bring(name, "text", "") is False


def test_what_nobody_fetches_waits_and_what_nobody_answers_fails():
    unfetched = HostWriter(60, 0.01)
    with pytest.raises(WriterUnavailable, match="no host"):
        unfetched(TASK)
    assert unfetched.fetch() == ("", "")

    slow = HostWriter(0.01, 60)
    ended = write_in_a_thread(slow)
    fetched(slow)
    assert "within 0.01 seconds" in str(ended())

    failing = HostWriter(60)
    ended = write_in_a_thread(failing)
    failing.bring(fetched(failing)[0], "", "no model")
    error = ended()
    assert isinstance(error, WriterUnavailable)
    assert "no model" in str(error)


def test_the_end_of_a_server_lets_nobody_wait():
    writer = HostWriter(60)
    ended = write_in_a_thread(writer)
    fetched(writer)

    writer.close()

    assert "the server ends" in str(ended())
    with pytest.raises(WriterUnavailable, match="the server ends"):
        writer(TASK)


def test_the_model_of_a_host_writes_what_is_new_in_its_own_project(tell, there, path, clock, tmp_path):
    (tmp_path / "other").mkdir()
    with Memory.open(path, clock=clock, project=tmp_path / "other") as other:
        other.mirror("elsewhere", [Part("p1", role="user", text="Something else")])
        other.checkpoint("elsewhere", cause="compaction", wait=False)
    tell("said", said=[said("We decided to use Redis.")])
    tell("compact", writes=True)

    asked = tell("fetch", writes=True).json()
    none = tell("fetch", writes=True, folder="").json()
    taken = tell("wrote", id=asked["id"], text=TEXT + DONE).json()
    while not there.notes(kinds="checkpoint"):
        time.sleep(0.01)

    assert asked["prompt"].startswith(WRITER_MARK)
    assert "Redis" in asked["prompt"]
    assert none == {"id": "", "prompt": ""}
    assert taken == {"taken": True}
    (note,) = there.notes(kinds="checkpoint")
    assert "harbour-7" in note.body
    assert [job.session for job in there.jobs(states="queued", scopes=["all"])] == ["elsewhere"]


def test_a_project_whose_host_writes_holds_no_other_one_up(tell, there, tmp_path):
    (tmp_path / "other").mkdir()
    elsewhere = {"session": "s2", "folder": str(tmp_path / "other")}
    for where, what in (({}, "Redis"), (elsewhere, "Valkey")):
        tell("said", said=[said(f"We decided to use {what}.")], **where)
        tell("compact", writes=True, **where)

    asked = [tell("fetch", writes=True, **where).json() for where in ({}, elsewhere)]
    for where, one in zip(({}, elsewhere), asked, strict=True):
        tell("wrote", id=one["id"], error="no more", **where)

    assert ["Redis" in asked[0]["prompt"], "Valkey" in asked[1]["prompt"]] == [True, True]


def test_a_writer_of_the_settings_goes_first(path, clock, folder):
    program = [sys.executable, "-c", f"print({TEXT + DONE!r})"]
    with Memory.open(path, clock=clock, config=Config(writer_command=program)) as memory, served(memory) as client:
        body = {"host": "opencode", "session": "s1", "folder": str(folder), "writes": True}
        client.post("/host/said", json={**body, "said": [said("We decided to use Redis.")]}, headers=MAY_WRITE)
        client.post("/host/compact", json=body, headers=MAY_WRITE)
        asked = client.post("/host/fetch", json=body, headers=MAY_WRITE).json()

    assert asked == {"id": "", "prompt": ""}
    with Memory.open(path, clock=clock, project=folder) as memory:
        assert len(memory.notes(kinds="checkpoint")) == 1
