"""Transcripts of other programs: found, read as parts, and read on from where the last reading ended."""

import contextlib
import datetime as dt
import json
import shutil
import sqlite3
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_one_line_naming, unprivileged

from graphmem import InvalidInput, Memory, StoreFailed
from graphmem.core.injected import WRITER_MARK
from graphmem.exchange.formats import exports, heard, lines
from graphmem.exchange.formats.turns import session_of
from graphmem.exchange.transcripts import KINDS, Source, find_sources, read_source

AT = "2026-09-01T10:00:00.000Z"
THEN = dt.datetime(2026, 9, 1, 10, tzinfo=dt.UTC)
MARK = f"{WRITER_MARK}\nWrite a checkpoint."


# ---- reading as a caller does: each batch is stored before the next


class Store:
    """What mirroring batches comes to: sessions of parts by id, and the cursor of each source."""

    def __init__(self):
        self.sessions = {}
        self.projects = {}
        self.cursors = {}
        self.remarks = []
        self.own = 0
        self.told = 0

    def read(self, source, *, stop=None):
        """Read what is new; stop: after so many batches, as an interruption does."""
        batches = read_source(source, self.cursors.get(source, ""))
        for number, batch in enumerate(batches):
            if number == stop:
                break
            assert 0 <= batch.done <= batch.whole
            for run in batch.heard:
                self.projects.setdefault(run.session, run.project)
                self.sessions[run.session] = placed(self.sessions.get(run.session, {}), run.parts)
                self.told += len(run.parts)
            self.cursors[source] = batch.cursor
            self.remarks += batch.remarks
            self.own += batch.own
        batches.close()
        return self

    def texts(self, session):
        return [(part.role, part.text) for part in self.sessions.get(session, {}).values()]


def placed(known, told):
    """The parts of a session after some were told, where `Memory.mirror` puts them.

    New ones go behind the part they are told after, else in front of the first known one, else to the end.
    """
    names = list(known)
    first = next((part.id for part in told if part.id in known), None)
    place = len(names) if first is None else names.index(first)
    for part in told:
        if part.id in names:
            place = max(place, names.index(part.id) + 1)
        else:
            names.insert(place, part.id)
            place += 1
    now = {**known, **{part.id: part for part in told}}
    return {name: now[name] for name in names}


def read_all(path, kind=None):
    store = Store()
    for source in find_sources(path, kind):
        store.read(source)
    return store


def talk(path):
    """The session of turns that name none."""
    return session_of(str(path))


def write_lines(path, *found):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(one) + "\n" for one in found)
    return path


def written(path, found):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found), "utf-8")
    return path


# ---- Claude Code


def said(uuid, content, kind="user", **more):
    message = {"role": kind, "content": content}
    known = {"sessionId": "s1", "cwd": "/srv/app", "timestamp": AT, "isSidechain": False, "parentUuid": None}
    return {"type": kind, "uuid": uuid, "message": message, **known, **more}


def call(name, tool="Bash", **given):
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def answer(name, content, *, failed=False):
    return {"type": "tool_result", "tool_use_id": name, "content": content, "is_error": failed}


def test_what_user_and_assistant_say_in_claude_code(tmp_path):
    path = write_lines(
        tmp_path / "-srv-app" / "s1.jsonl",
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        said("u1", "Deploy it, please.\n"),
        said("a1", [{"type": "thinking", "thinking": "hmm"}], "assistant"),
        said("a2", [{"type": "text", "text": "Done."}, {"type": "text", "text": "Anything else?"}], "assistant"),
        {"type": "summary", "summary": "Deploying", "leafUuid": "a2"},
    )

    store = read_all(path)

    assert store.texts("s1") == [
        ("user", "Deploy it, please.\n"),
        ("assistant", "Done."),
        ("assistant", "Anything else?"),
    ]
    assert [(part.id, part.message, part.at) for part in store.sessions["s1"].values()] == [
        ("u1", "u1", THEN),
        ("a2/0", "a2", THEN),
        ("a2/1", "a2", THEN),
    ]
    assert store.projects == {"s1": "/srv/app"}
    assert store.remarks == []


def test_a_call_and_its_answer_are_one_part_at_the_place_of_the_call(tmp_path):
    path = write_lines(
        tmp_path / "s1.jsonl",
        said("u1", "List it."),
        said("a1", [call("t1", command="ls -l", timeout=5)], "assistant"),
        said("a2", [call("t2", "Read", file_path="/x")], "assistant"),
        said("u2", [answer("t2", "no such file", failed=True)]),
        said("u3", [answer("t1", [{"type": "text", "text": "a.txt"}, {"type": "image", "source": {}}])]),
        said("a3", [call("t3", command="sleep")], "assistant"),
    )

    parts = list(read_all(path).sessions["s1"].values())

    assert [(part.id, part.role, part.tool, part.outcome, part.text) for part in parts[1:]] == [
        ("a1", "tool", "Bash", "done", "command: ls -l\ntimeout: 5\n\na.txt\n[image]"),
        ("a2", "tool", "Read", "failed", "file_path: /x\n\nno such file"),
        ("a3", "tool", "Bash", "", "command: sleep"),
    ]


def test_an_answer_that_comes_later_is_told_with_its_call_and_moves_nothing(tmp_path):
    path = write_lines(tmp_path / "s1.jsonl", said("u1", "Go."), said("a1", [call("t1", command="make")], "assistant"))
    (source,) = find_sources(path)
    store = Store().read(source)
    assert [part.outcome for part in store.sessions["s1"].values()] == ["", ""]
    write_lines(path, said("u2", "Meanwhile?"))
    store.read(source)
    write_lines(path, said("u3", [answer("t1", "built")]), said("a2", "Built.", "assistant"))

    (batch,) = read_source(source, store.cursors[source])
    store.read(source)

    assert [[part.id for part in run.parts] for run in batch.heard] == [["a1"], ["a2"]]
    assert store.texts("s1") == [
        ("user", "Go."),
        ("tool", "command: make\n\nbuilt"),
        ("user", "Meanwhile?"),
        ("assistant", "Built."),
    ]
    assert list(read_source(source, store.cursors[source])) == []


def test_an_answer_without_a_known_call_stands_alone(tmp_path):
    path = write_lines(tmp_path / "s1.jsonl", said("u1", [answer("t9", "output")]))

    (part,) = read_all(path).sessions["s1"].values()

    assert (part.role, part.tool, part.outcome, part.text) == ("tool", "", "done", "output")


def test_a_cursor_remembers_only_so_many_calls(tmp_path, monkeypatch):
    monkeypatch.setattr(heard, "_CALLS", 3)
    path = write_lines(tmp_path / "s1.jsonl", *(said(f"a{n}", [call(f"t{n}")], "assistant") for n in range(9)))
    (source,) = find_sources(path)
    store = Store().read(source)

    write_lines(path, said("u1", [answer("t1", "old")]), said("u2", [answer("t8", "new")]))
    store.read(source)

    assert {name: part.text for name, part in store.sessions["s1"].items() if part.text} == {"u1": "old", "a8": "new"}


def test_a_subagent_is_a_session_of_its_own_and_is_not_asked_by_the_user(tmp_path):
    folder = tmp_path / "projects" / "-srv-app"
    write_lines(folder / "s1.jsonl", said("u1", "Find it."), said("x1", "inline", isSidechain=True))
    write_lines(
        folder / "s1" / "subagents" / "agent-ab1.jsonl",
        said("b1", "Always search src first.", isSidechain=True, agentId="ab1"),
        said("b2", [{"type": "text", "text": "Found."}], "assistant", isSidechain=True, agentId="ab1"),
    )

    store = read_all(tmp_path)

    assert store.texts("s1") == [("user", "Find it.")]
    assert store.texts("s1/ab1") == [("assistant", "Always search src first."), ("assistant", "Found.")]
    assert store.texts("s1/sidechain") == [("assistant", "inline")]


def test_what_the_program_says_in_the_users_place_is_not_the_users(tmp_path):
    path = write_lines(
        tmp_path / "s1.jsonl",
        said("u1", "Caveat: …", isMeta=True),
        said("u2", "This session is being continued …", isCompactSummary=True),
        said("a1", [{"type": "text", "text": "API Error"}], "assistant", isApiErrorMessage=True),
        said("u3", "<local-command-stdout>always use tabs</local-command-stdout>"),
        said("u4", "Agent done", origin={"kind": "task-notification"}),
        said("u5", "<command-name>/deploy</command-name>"),
        said("u6", "typed", origin={"kind": "human"}),
    )

    assert [(part.id, part.role) for part in read_all(path).sessions["s1"].values()] == [
        ("u3", "system"),
        ("u4", "system"),
        ("u5", "user"),
        ("u6", "user"),
    ]


def test_what_was_typed_while_the_assistant_worked_is_heard(tmp_path):
    def queued(uuid, **more):
        attachment = {"type": "queued_command", **more}
        return {"type": "attachment", "uuid": uuid, "sessionId": "s1", "timestamp": AT, "attachment": attachment}

    path = write_lines(
        tmp_path / "s1.jsonl",
        {"type": "queue-operation", "operation": "enqueue", "content": "And check the tests.", "sessionId": "s1"},
        queued("q1", prompt="And check the tests.", commandMode="prompt", origin={"kind": "human"}),
        queued("q2", prompt=[{"type": "text", "text": "See this."}, {"type": "image"}], commandMode="prompt"),
        queued("q3", prompt="done", commandMode="task-notification"),
        {"type": "attachment", "sessionId": "s1", "attachment": {"type": "skill_listing"}},
    )

    assert read_all(path).texts("s1") == [
        ("user", "And check the tests."),
        ("user", "See this."),
        ("system", "done"),
    ]


def test_unknown_kinds_of_lines_and_blocks_are_counted(tmp_path):
    path = write_lines(
        tmp_path / "s1.jsonl",
        said("u1", "Hello"),
        {"type": "hologram", "sessionId": "s1"},
        {"type": "hologram", "sessionId": "s1"},
        said("a1", [{"type": "smell"}, {"type": "text", "text": "Hi"}], "assistant"),
    )

    store = read_all(path)

    assert store.texts("s1") == [("user", "Hello"), ("assistant", "Hi")]
    assert store.remarks == [
        f"{path}: 2 lines of type 'hologram' left out",
        f"{path}: 1 blocks of type 'smell' left out",
    ]


def test_the_folder_of_a_session_is_the_first_one(tmp_path):
    path = write_lines(tmp_path / "s1.jsonl", said("u1", "one"), said("u2", "two", cwd="/srv/app/sub"))
    (source,) = find_sources(path)
    store = Store().read(source)
    write_lines(path, said("u3", "three", cwd="/srv"))

    (batch,) = read_source(source, store.cursors[source])

    assert [run.project for run in batch.heard] == ["/srv/app"]


def test_lines_without_id_or_session_get_stable_ones(tmp_path):
    one = {"type": "user", "message": {"role": "user", "content": "Hello"}}
    path = write_lines(tmp_path / "chat.jsonl", one, one)

    first, again = read_all(path, "claude-code"), read_all(path, "claude-code")

    assert len(first.sessions["chat"]) == 2
    assert first.sessions == again.sessions


# ---- turns


def test_turns(tmp_path):
    path = write_lines(
        tmp_path / "talk.jsonl",
        {"id": "m1", "session": "s1", "role": "user", "author": "Ann", "text": "Hi", "at": AT, "project": "/srv/app"},
        {"id": 2, "session": "s1", "role": "tool", "text": "ls", "tool": "bash", "outcome": "failed"},
        {"role": "user", "text": "no session", "at": 1_756_720_800, "author": None},
    )

    store = read_all(path)

    first, second = store.sessions["s1"].values()
    assert (first.id, first.role, first.author, first.text, first.at) == ("m1", "user", "Ann", "Hi", THEN)
    assert (second.id, second.tool, second.outcome) == ("2", "bash", "failed")
    assert [part.at for part in store.sessions[talk(path)].values()] == [dt.datetime(2025, 9, 1, 10, tzinfo=dt.UTC)]
    assert store.projects == {"s1": "/srv/app", talk(path): ""}


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ({"role": "user"}, "turn = ['role']: a turn needs role and text, each a text"),
        ({"role": "user", "text": ["x"]}, "turn = ['role', 'text']: a turn needs role and text, each a text"),
        ({"role": "user", "text": "x", "session": 5}, "session is no text"),
        ({"role": "user", "text": "x", "id": {}}, "id = {}: give a text or a number"),
        ({"role": "user", "text": "x", "outcome": "great"}, "outcome = 'great': give 'done' or 'failed'"),
        ([1], "no JSON object"),
    ],
)
def test_a_turn_that_is_none_is_passed_over_and_named(tmp_path, turn, reason):
    path = write_lines(tmp_path / "talk.jsonl", {"role": "user", "text": "ok"}, turn, {"role": "user", "text": "end"})

    store = read_all(path)

    assert store.texts(talk(path)) == [("user", "ok"), ("user", "end")]
    (remark,) = store.remarks
    assert remark.startswith(f"{path} line 2: {reason}")


def test_a_time_or_a_folder_that_is_none_is_named_and_the_turn_kept(tmp_path):
    path = write_lines(tmp_path / "talk.jsonl", {"role": "user", "text": "x", "at": "soon", "project": "app"})

    store = read_all(path)

    assert store.texts(talk(path)) == [("user", "x")]
    assert [remark.split(": ")[1] for remark in store.remarks] == [
        "at is no time, the turn is kept without",
        "project is no absolute folder, the turn is kept without",
    ]


# ---- files of lines: what grows, breaks off, is damaged or replaced


def turns(*texts):
    return "".join(json.dumps({"id": text, "role": "user", "text": text}) + "\n" for text in texts).encode()


def test_a_line_without_its_newline_waits_for_it(tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(turns("one") + turns("two")[:-1])
    (source,) = find_sources(path)
    store = Store().read(source)
    assert store.texts(talk(path)) == [("user", "one")]
    assert store.remarks == [f"{path} line 2: no newline yet, it is read next time"]

    with path.open("ab") as stream:
        stream.write(b"\n" + turns("three"))
    store.read(source)

    assert [text for _, text in store.texts(talk(path))] == ["one", "two", "three"]
    assert store.told == 3


def test_damaged_lines_are_passed_over_and_named(tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(turns("one") + b'{"role": \n\n\xff\xfe\n\0\0\0\n' + b"[" * 100_000 + b"\n" + turns("two"))

    store = read_all(path)

    assert [text for _, text in store.texts(talk(path))] == ["one", "two"]
    assert [remark.split(":")[0] for remark in store.remarks] == [f"{path} line {n}" for n in (2, 4, 5, 6)]
    assert "no UTF-8" in store.remarks[1]


def test_of_many_damaged_lines_the_first_are_named_and_the_others_counted(tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(turns("one") + b"{\n" * 5000)

    store = read_all(path)

    assert len(store.remarks) == 21
    assert store.remarks[-1] == f"{path}: 4980 more that could not be read left out"


def test_a_line_that_is_too_long_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 100)
    path = tmp_path / "talk.jsonl"
    path.write_bytes(turns("one", "x" * 1000, "two") + turns("y" * 1000)[:-1])
    (source,) = find_sources(path)
    store = Store().read(source)
    with path.open("ab") as stream:
        stream.write(b"\n" + turns("three"))
    store.read(source)

    assert [text for _, text in store.texts(talk(path))] == ["one", "two", "three"]
    assert [remark.split(",")[0] for remark in store.remarks] == [
        f"{path} line 2: longer than 100 bytes",
        f"{path} line 4: no newline yet",
        f"{path} line 4: longer than 100 bytes",
    ]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\n\n", b"\r\n\r\n"])
def test_line_ends_and_a_byte_order_mark(tmp_path, ending):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + turns("one", "two").replace(b"\n", ending))

    store = read_all(path)

    assert [text for _, text in store.texts(talk(path))] == ["one", "two"]
    assert store.remarks == []


def test_half_an_emoji_stops_nothing(tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b'{"id": "m1", "role": "user", "text": "ok \\ud83d"}\n{"role": "user", "text": "no id \\ud83d"}\n')
    store = read_all(path)

    assert store.texts(talk(path)) == [("user", "ok \ud83d"), ("user", "no id \ud83d")]
    with Memory.open(tmp_path / "memory.db") as memory:
        assert memory.mirror("talk", store.sessions[talk(path)].values()).added == 2


@pytest.mark.parametrize(
    "replaced",
    [
        turns("new"),  # shorter
        turns("new", "four", "five", "six", "seven"),
        turns("one", "two") + turns("x" * 5000, "four"),
        b"",
    ],
)
def test_a_file_that_was_replaced_or_cut_short_is_read_anew(tmp_path, replaced):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(turns("one", "two", "three"))
    (source,) = find_sources(path)
    cursor = Store().read(source).cursors[source]

    path.write_bytes(replaced)
    store = Store()
    store.cursors[source] = cursor
    store.read(source)

    assert [text for _, text in store.texts(talk(path))] == [json.loads(line)["text"] for line in replaced.splitlines()]
    assert store.remarks == [f"{path} was replaced or cut short: it is read anew, and what has no id comes twice"]


def test_a_file_that_was_cut_short_and_grew_again_is_read_anew(tmp_path):
    path = tmp_path / "talk.jsonl"
    long = [f"{n} " + "x" * 500 for n in range(40)]
    path.write_bytes(turns(*long))
    (source,) = find_sources(path)
    store = Store().read(source)

    path.write_bytes(turns(*long[:20]) + turns(*(f"new {n} " + "x" * 500 for n in range(30))))
    store.read(source)

    assert len(store.sessions[talk(path)]) == 70
    assert "replaced" in store.remarks[0]


def test_an_empty_file_and_nothing_new_yield_nothing(tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b"")
    source = Source("turns", str(path))
    assert list(read_source(source)) == []

    path.write_bytes(turns("one"))
    store = Store().read(source)

    assert list(read_source(source, store.cursors[source])) == []


def test_batches_are_bounded_and_what_says_nothing_is_not_read_twice(tmp_path, monkeypatch):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(turns(*map(str, range(1200))))
    batches = list(read_source(Source("turns", str(path))))
    assert [len(batch.heard[0].parts) for batch in batches] == [500, 500, 200]
    assert batches[-1].done == batches[-1].whole == path.stat().st_size

    path.write_bytes(turns(*("x" * 3_000_000 + str(n) for n in range(3))))
    assert [len(batch.heard[0].parts) for batch in read_source(Source("turns", str(path)))] == [2, 1]

    monkeypatch.setattr(lines, "_BYTES_AT_ONCE", 1000)
    path = write_lines(tmp_path / "s1.jsonl", *({"type": "progress", "sessionId": "s1"} for _ in range(100)))
    batches = list(read_source(Source("claude-code", str(path))))
    assert [(batch.heard, batch.done) for batch in batches] == [((), 1000 * n) for n in range(1, 5)]


@pytest.mark.parametrize("cursor", ["x", "[]", '{"offset": "x"}', '{"calls": [1]}', '{"sessions": {"s": 1}}'])
def test_a_cursor_that_is_none_is_refused(tmp_path, cursor):
    path = tmp_path / "talk.jsonl"
    path.write_bytes(turns("one"))

    with pytest.raises(InvalidInput, match="read from the beginning"):
        list(read_source(Source("turns", str(path)), cursor))


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)
CALLS = st.sampled_from(["t1", "t2", "t3"])
BLOCKS = st.one_of(
    TEXTS.map(lambda text: {"type": "text", "text": text}),
    CALLS.map(lambda name: call(name, command=name)),
    st.builds(answer, CALLS, TEXTS, failed=st.booleans()),
    st.just({"type": "thinking", "thinking": "…"}),
)
CONTENTS = st.one_of(TEXTS, st.lists(BLOCKS, max_size=3))
RECORDS = st.lists(
    st.one_of(
        st.builds(
            lambda content, kind, session: (content, kind, session),
            CONTENTS,
            st.sampled_from(["user", "assistant"]),
            st.sampled_from(["s1", "s2"]),
        ),
        st.sampled_from([b"{broken", b"", b'{"type": "progress"}', b"\xff"]),
    ),
    min_size=1,
    max_size=12,
)


def transcript(records):
    made = [
        one if isinstance(one, bytes) else json.dumps(said(f"u{n}", one[0], one[1], sessionId=one[2])).encode()
        for n, one in enumerate(records)
    ]
    return b"\n".join(made) + b"\n"


@given(records=RECORDS, cuts=st.lists(st.integers(0, 4000), max_size=5), at_once=st.integers(1, 4))
def test_reading_in_pieces_comes_to_the_same_as_reading_at_once(records, cuts, at_once):
    whole = transcript(records)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        path = Path(folder) / "s1.jsonl"
        source = Source("claude-code", str(path))
        path.write_bytes(whole)
        expected = Store().read(source)
        patched.setattr(heard, "PARTS_AT_ONCE", at_once)
        pieces = Store()
        for cut in sorted({min(cut, len(whole)) for cut in cuts}):
            path.write_bytes(whole[:cut])
            pieces.read(source, stop=1)  # interrupted after the first batch
        path.write_bytes(whole)
        pieces.read(source)

        assert {name: list(parts.items()) for name, parts in pieces.sessions.items() if parts} == {
            name: list(parts.items()) for name, parts in expected.sessions.items()
        }
        assert list(read_source(source, pieces.cursors[source])) == []


# ---- OpenCode


SESSION = {
    "id": "ses_1",
    "projectID": "p1",
    "directory": "/srv/app",
    "title": "x",
    "time": {"created": 1, "updated": 2},
}


class FilesOfOpenCode:
    """Its folder, as version 1.1 wrote it."""

    def __init__(self, folder):
        self.root = folder / "opencode"
        self.storage = self.root / "storage"

    def session(self, **more):
        session = {**SESSION, **more}
        written(self.storage / "session" / session["projectID"] / f"{session['id']}.json", session)
        (self.storage / "message").mkdir(exist_ok=True)
        (self.storage / "part").mkdir(exist_ok=True)

    def message(self, name, role, *parts, session="ses_1", **more):
        time = {"created": 1_756_720_800_000, "completed": 1_756_720_900_000}
        info = {"id": name, "sessionID": session, "role": role, "time": time, **more}
        written(self.storage / "message" / session / f"{name}.json", info)
        for part, found in parts:
            written(self.storage / "part" / name / f"{part}.json", {"id": part, "messageID": name, **found})


class DatabaseOfOpenCode:
    """Its database, as version 1.2 makes it; in use while `open`."""

    def __init__(self, folder):
        self.root = folder / "opencode"
        self.root.mkdir()
        self.path = self.root / "opencode.db"
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.executescript(
            """PRAGMA journal_mode = WAL;
               CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT,
                   directory TEXT NOT NULL, title TEXT NOT NULL, time_created INTEGER, time_updated INTEGER);
               CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER,
                   time_updated INTEGER, data TEXT NOT NULL);
               CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
                   time_created INTEGER, time_updated INTEGER, data TEXT NOT NULL)"""
        )

    def session(self, **more):
        found = {**SESSION, **more}
        row = (found["id"], found["projectID"], found.get("parentID"), found["directory"], found["title"])
        self.connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, 1, 2)", row)

    def message(self, name, role, *parts, session="ses_1", **more):
        time = {"created": 1_756_720_800_000, "completed": 1_756_720_900_000}
        data = json.dumps({"role": role, "time": time, **more})
        put = "INSERT OR REPLACE INTO"
        self.connection.execute(f"{put} message VALUES (?, ?, 1, 1, ?)", (name, session, data))
        for part, found in parts:
            row = (part, name, session, json.dumps(found))
            self.connection.execute(f"{put} part VALUES (?, ?, ?, 1, 1, ?)", row)


@pytest.fixture(params=["files", "database in use", "database"])
def opencode(request, tmp_path):
    if request.param == "files":
        yield FilesOfOpenCode(tmp_path)
        return
    made = DatabaseOfOpenCode(tmp_path)
    with contextlib.closing(made.connection):
        if request.param == "database":
            made.connection.execute("PRAGMA journal_mode = DELETE")
        yield made


def text(name, said, **more):
    return name, {"type": "text", "text": said, **more}


def used(name, tool, status, **state):
    return name, {"type": "tool", "tool": tool, "callID": "c1", "state": {"status": status, **state}}


def test_a_session_of_opencode(opencode):
    opencode.session()
    opencode.message("msg_1", "user", text("prt_1", "List it."), text("prt_2", "file content", synthetic=True))
    opencode.message(
        "msg_2",
        "assistant",
        ("prt_3", {"type": "step-start"}),
        ("prt_4", {"type": "reasoning", "text": "hmm"}),
        used("prt_5", "bash", "completed", input={"command": "ls"}, output="a.txt"),
        used("prt_6", "read", "error", input={"filePath": "/x"}, error="no such file"),
        text("prt_7", "There is a.txt.", time={"start": 1_756_720_850_500}),
    )
    opencode.message("msg_3", "assistant", text("prt_8", "What was said before …"), summary=True)

    store = read_all(opencode.root)

    assert [
        (part.id, part.message, part.role, part.tool, part.outcome, part.text)
        for part in store.sessions["ses_1"].values()
    ] == [
        ("prt_1", "msg_1", "user", "", "", "List it."),
        ("prt_5", "msg_2", "tool", "bash", "done", "command: ls\n\na.txt"),
        ("prt_6", "msg_2", "tool", "read", "failed", "filePath: /x\n\nno such file"),
        ("prt_7", "msg_2", "assistant", "", "", "There is a.txt."),
    ]
    assert store.sessions["ses_1"]["prt_1"].at == dt.datetime(2025, 9, 1, 10, tzinfo=dt.UTC)
    assert store.sessions["ses_1"]["prt_7"].at == dt.datetime(2025, 9, 1, 10, 0, 50, 500_000, tzinfo=dt.UTC)
    assert store.projects == {"ses_1": "/srv/app"}
    assert store.remarks == []


def test_opencode_is_read_on_and_a_message_in_work_again(opencode):
    opencode.session()
    opencode.message("msg_1", "user", text("prt_1", "Go."))
    opencode.message(
        "msg_2", "assistant", used("prt_2", "bash", "running", input={"command": "make"}), time={"created": 1}
    )
    opencode.message("msg_3", "user", text("prt_3", "And?"))
    (source,) = find_sources(opencode.root)
    store = Store().read(source)
    assert store.texts("ses_1") == [("user", "Go."), ("tool", "command: make"), ("user", "And?")]
    assert list(read_source(source, store.cursors[source])) == []

    done = used("prt_2", "bash", "completed", input={"command": "make"}, output="built")
    opencode.message("msg_2", "assistant", done)
    opencode.message("msg_4", "assistant", text("prt_4", "Built."))
    (batch,) = read_source(source, store.cursors[source])

    assert [part.id for part in batch.heard[0].parts] == ["prt_2", "prt_3", "prt_4"]
    assert batch.heard[0].parts[0].outcome == "done"
    assert list(read_source(source, batch.cursor)) == []


def test_a_message_that_was_never_ended_is_heard_and_left_behind(opencode):
    opencode.session()
    opencode.message("msg_1", "user", text("prt_1", "Go."))
    opencode.message("msg_2", "assistant", text("prt_2", "I wi"), time={"created": 1})
    opencode.message("msg_3", "user", text("prt_3", "Again."))
    opencode.message("msg_4", "assistant", text("prt_4", "Done."))
    (source,) = find_sources(opencode.root)

    store = Store().read(source)

    assert [said for _, said in store.texts("ses_1")] == ["Go.", "I wi", "Again.", "Done."]
    assert json.loads(store.cursors[source])["message"] == "msg_4"


def test_a_subagent_of_opencode_is_not_asked_by_the_user(opencode):
    opencode.session(id="ses_2", parentID="ses_1")
    opencode.message("msg_1", "user", text("prt_1", "Always use tabs."), session="ses_2")

    assert read_all(opencode.root).texts("ses_2") == [("assistant", "Always use tabs.")]


def test_many_messages_of_opencode_come_in_batches(opencode, monkeypatch):
    monkeypatch.setattr(heard, "PARTS_AT_ONCE", 4)
    opencode.session()
    for number in range(10, 25):
        opencode.message(f"msg_{number}", "user", text(f"prt_{number}", str(number)))
    (source,) = find_sources(opencode.root)

    batches = list(read_source(source))
    store = Store().read(source, stop=2)
    assert len(store.sessions["ses_1"]) == 8
    store.read(source)

    assert [len(batch.heard[0].parts) for batch in batches] == [4, 4, 4, 3]
    assert batches[-1].done == batches[-1].whole > batches[0].done > 0
    assert store.told == 15


def test_two_sessions_of_opencode_are_two_sources(opencode):
    opencode.session(id="ses_2", directory="relative")
    opencode.session()
    opencode.message("msg_1", "user", text("prt_1", "one"))
    opencode.message("msg_2", "user", text("prt_2", "two"), session="ses_2")

    store = read_all(opencode.root, "opencode")

    assert [Path(source.path).stem for source in find_sources(opencode.root)] == ["ses_1", "ses_2"]
    assert store.texts("ses_2") == [("user", "two")]
    assert store.projects == {"ses_1": "/srv/app", "ses_2": ""}


def test_damaged_files_of_opencode_are_named_and_the_last_message_waits(tmp_path):
    made = FilesOfOpenCode(tmp_path)
    made.session()
    made.message("msg_1", "user", text("prt_1", "one"))
    made.message("msg_2", "user", text("prt_2", "two"), text("prt_3", "three"))
    made.message("msg_3", "user", text("prt_4", "four"))
    (made.storage / "message" / "ses_1" / "msg_1.json").write_text("{")
    (made.storage / "part" / "msg_2" / "prt_2.json").write_text("")
    last = made.storage / "message" / "ses_1" / "msg_3.json"
    whole = last.read_text()
    last.write_text(whole[:10])
    (source,) = find_sources(made.root)
    store = Store().read(source)
    assert [said for _, said in store.texts("ses_1")] == ["three"]
    assert [remark.split(",")[-1] for remark in store.remarks] == [
        " passed over",
        " it is read next time",
        " passed over",
    ]

    last.write_text(whole)
    store.read(source)

    assert [said for _, said in store.texts("ses_1")] == ["three", "four"]


def test_damaged_rows_of_opencode_are_named(tmp_path):
    made = DatabaseOfOpenCode(tmp_path)
    made.session()
    made.message("msg_1", "user", text("prt_1", "one"))
    made.message("msg_2", "user", text("prt_2", "two"))
    made.connection.execute("UPDATE message SET data = '{' WHERE id = 'msg_1'")
    made.connection.execute("INSERT INTO part VALUES ('prt_3', 'msg_2', 'ses_1', 1, 1, x'ff')")

    store = read_all(made.root)

    made.connection.close()
    assert store.texts("ses_1") == [("user", "two")]
    assert ["message msg_1" in store.remarks[0], "part prt_3" in store.remarks[1]] == [True, True]


def test_a_session_that_moved_into_the_database_is_read_there(tmp_path):
    files = FilesOfOpenCode(tmp_path / "old")
    files.session()
    files.session(id="ses_0")
    made = DatabaseOfOpenCode(tmp_path)
    shutil.copytree(files.storage, made.root / "storage")
    made.session()
    made.connection.close()

    assert [source.path for source in find_sources(made.root)] == [
        f"{made.path}/ses_1",
        f"{made.root}/storage/session/p1/ses_0.json",
    ]


@pytest.mark.parametrize("in_use", [True, False])
def test_a_database_of_opencode_is_left_as_it_was(tmp_path, in_use):
    made = DatabaseOfOpenCode(tmp_path)
    made.session()
    made.message("msg_1", "user", text("prt_1", "one"))
    if not in_use:
        made.connection.close()
    before = {each.name: each.read_bytes() for each in made.root.iterdir() if each.suffix != ".db-shm"}
    names = {each.name for each in made.root.iterdir()}

    assert read_all(made.path).texts("ses_1") == [("user", "one")]

    assert {each.name for each in made.root.iterdir()} == names
    assert {each.name: each.read_bytes() for each in made.root.iterdir() if each.suffix != ".db-shm"} == before
    made.connection.close()


def test_a_database_that_is_written_while_it_is_read_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(heard, "PARTS_AT_ONCE", 1)
    made = DatabaseOfOpenCode(tmp_path)
    made.session()
    made.message("msg_1", "user", text("prt_1", "one"))
    made.message("msg_2", "user", text("prt_2", "two"))
    made.connection.close()
    (source,) = find_sources(made.path)
    batches = read_source(source)
    next(batches)
    with contextlib.closing(sqlite3.connect(made.path)) as connection, connection:
        connection.execute("CREATE TABLE more(x)")

    with pytest.raises(StoreFailed, match="was written while it was read: try again") as refused:
        next(batches)
    assert_one_line_naming(made.path, str(refused.value))


def test_a_database_that_is_not_opencodes_is_refused(tmp_path):
    refused = pytest.raises(InvalidInput, match="is a memory that is open in this process")
    with Memory.open(tmp_path / "memory.db") as memory, refused:
        find_sources(memory.path)
    with pytest.raises(InvalidInput, match="is no database of OpenCode"):
        find_sources(tmp_path / "memory.db")
    (tmp_path / "x.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreFailed, match="cannot be read"):
        find_sources(tmp_path / "x.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "odd.db")) as connection:
        connection.executescript(
            """CREATE TABLE session(id, parent_id, directory);
               CREATE TABLE message(id, session_id);
               CREATE TABLE part(id)"""
        )
    with pytest.raises(InvalidInput, match="no data in a table message"):
        find_sources(tmp_path / "odd.db")


# ---- exports


def node(name, parent, said=None, role="user", **more):
    message = {"id": name, "author": {"role": role}, "create_time": 1_756_720_800.5, "weight": 1.0, "recipient": "all"}
    content = {"content_type": "text", "parts": [said]} if isinstance(said, str) else said
    return name, {"id": name, "parent": parent, "message": said and {**message, "content": content, **more}}


def chatgpt(name, *nodes, current=None, **more):
    found = {"title": "x", "conversation_id": name, "mapping": dict(nodes), **more}
    return found if current is None else {**found, "current_node": current}


CHAT = chatgpt(
    "c1",
    node("root", None),
    node("sys", "root", "You are ChatGPT.", "system"),
    node("u1", "sys", "What is 6 times 7?"),
    node("a0", "u1", "43", "assistant"),
    node("a1", "u1", "42", "assistant"),
    node(
        "u2", "a1", {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "And this?"]}
    ),
    node("a2", "u2", {"content_type": "thoughts", "thoughts": []}, "assistant"),
    node("a3", "a2", {"content_type": "code", "language": "python", "text": "6*7"}, "assistant", recipient="python"),
    node(
        "t1",
        "a3",
        {"content_type": "execution_output", "text": "ZeroDivisionError"},
        author={"role": "tool", "name": "python"},
        metadata={"aggregate_result": {"status": "failed_with_in_kernel_exception"}},
    ),
    node("h1", "t1", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
    node("a4", "h1", "A cat.", "assistant"),
    current="a4",
)


def test_an_export_of_chatgpt_tells_the_branch_that_was_current(tmp_path):
    path = written(tmp_path / "conversations.json", [CHAT])

    store = read_all(path)

    assert [(part.id, part.role, part.tool, part.outcome, part.text) for part in store.sessions["c1"].values()] == [
        ("u1", "user", "", "", "What is 6 times 7?"),
        ("a1", "assistant", "", "", "42"),
        ("u2", "user", "", "", "[image_asset_pointer]\nAnd this?"),
        ("a3", "tool", "python", "", "6*7"),
        ("t1", "tool", "python", "failed", "ZeroDivisionError"),
        ("a4", "assistant", "", "", "A cat."),
    ]
    assert store.sessions["c1"]["u1"].at == dt.datetime(2025, 9, 1, 10, 0, 0, 500_000, tzinfo=dt.UTC)
    assert store.remarks == []


def test_a_tree_without_a_current_node_or_with_a_circle_is_read(tmp_path):
    circle = chatgpt("c2", node("a", "b", "A"), node("b", "a", "B"), current="b")
    headless = chatgpt("c1", node("u1", None, "Hi"), node("a1", "u1", "Ho", "assistant"))

    store = read_all(written(tmp_path / "conversations.json", [headless, circle]))

    assert store.texts("c1") == [("user", "Hi"), ("assistant", "Ho")]
    assert store.texts("c2") == [("user", "A"), ("user", "B")]


def claude(name, *messages, **more):
    return {"uuid": name, "name": "x", "created_at": AT, "chat_messages": list(messages), **more}


def message(name, sender, content, text=""):
    return {"uuid": name, "sender": sender, "text": text, "content": content, "created_at": AT, "attachments": []}


def test_an_export_of_claude(tmp_path):
    path = written(
        tmp_path / "conversations.json",
        [
            claude(
                "c1",
                message("m1", "human", [{"type": "text", "text": "Search it."}], "Search it."),
                message(
                    "m2",
                    "assistant",
                    [
                        {"type": "thinking", "thinking": "hmm"},
                        call("t1", "web_search", query="x"),
                        answer("t1", [{"type": "web_search_result", "title": "X", "url": "https://x"}]),
                        {"type": "text", "text": "Here."},
                    ],
                    "This block is not supported.",
                ),
                message("m3", "human", [], "Old form."),
            ),
            claude("c2"),
        ],
    )

    store = read_all(path)

    assert [
        (part.id, part.message, part.role, part.tool, part.outcome, part.text) for part in store.sessions["c1"].values()
    ] == [
        ("m1", "m1", "user", "", "", "Search it."),
        ("m2/1", "m2", "tool", "web_search", "done", "query: x\n\nX https://x"),
        ("m2/3", "m2", "assistant", "", "", "Here."),
        ("m3", "", "user", "", "", "Old form."),
    ]
    assert store.sessions["c1"]["m1"].at == THEN
    assert list(store.sessions) == ["c1"]


def test_calls_and_answers_of_claude_without_ids_follow_each_other(tmp_path):
    blocks = [call(None, "one", q="1"), answer(None, "a"), {**answer(None, "b"), "name": "two"}]
    path = written(tmp_path / "conversations.json", [claude("c1", message("m1", "assistant", blocks))])

    assert [(part.tool, part.text) for part in read_all(path).sessions["c1"].values()] == [
        ("one", "q: 1\n\na"),
        ("two", "b"),
    ]


def small_chats(count, kind="chatgpt"):
    if kind == "chatgpt":
        return [chatgpt(f"c{n}", node(f"u{n}", None, f"text {n}"), current=f"u{n}") for n in range(count)]
    return [claude(f"c{n}", message(f"u{n}", "human", [{"type": "text", "text": f"text {n}"}])) for n in range(count)]


@pytest.mark.parametrize("kind", ["chatgpt", "claude"])
def test_an_export_in_its_zip(tmp_path, kind):
    chats = small_chats(4, kind)
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/conversations-001.json", json.dumps(chats[2:]))
        archive.writestr("data/conversations-000.json", "\ufeff" + json.dumps(chats[:2], indent=1))
        archive.writestr("data/user.json", "{}")
        archive.writestr("__MACOSX/data/._conversations-000.json", b"\0\5")

    store = read_all(tmp_path)

    assert find_sources(tmp_path) == (Source(kind, str(path)),)
    assert list(store.sessions) == ["c0", "c1", "c2", "c3"]
    (last,) = read_source(find_sources(path)[0])
    assert last.done == last.whole > 0


def test_an_export_that_did_not_change_yields_nothing_and_another_one_everything(tmp_path):
    path = written(tmp_path / "conversations.json", small_chats(3))
    (source,) = find_sources(path)
    store = Store().read(source)
    assert list(read_source(source, store.cursors[source])) == []

    written(path, small_chats(5))
    store.told = 0
    cursor, store.sessions = store.cursors[source], {}
    store.cursors[source] = cursor
    store.read(source)

    assert list(store.sessions) == ["c0", "c1", "c2", "c3", "c4"]


@given(sizes=st.lists(st.integers(0, 6), max_size=6), at_once=st.integers(1, 5), stop=st.integers(0, 4))
def test_an_interrupted_export_loses_nothing_and_repeats_nothing(sizes, at_once, stop):
    def chat(n, size):
        names = [f"m{n}.{k}" for k in range(size)]
        return claude(f"c{n}", *(message(name, "human", [], name) for name in names))

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(heard, "PARTS_AT_ONCE", at_once)
        patched.setattr(exports, "_AT_ONCE", 50)
        path = written(Path(folder) / "conversations.json", [chat(n, size) for n, size in enumerate(sizes)])
        source = Source("claude", str(path))
        store = Store().read(source, stop=stop).read(source, stop=stop).read(source)

        assert store.told == sum(sizes)
        assert [len(store.sessions.get(f"c{n}", ())) for n in range(len(sizes))] == sizes
        assert list(read_source(source, store.cursors[source])) == []


def test_conversations_that_are_none_are_named_and_those_around_read(tmp_path):
    one, two = small_chats(2)
    path = written(tmp_path / "conversations.json", [one, 5, {"id": "x"}, {"mapping": {}}, two])

    store = read_all(path)

    assert list(store.sessions) == ["c0", "c1"]
    assert [remark.removeprefix(f"{path} ") for remark in store.remarks] == [
        "conversation 2: no JSON object, passed over",
        "conversation 3: no mapping of messages, so none of ChatGPT, passed over",
        "conversation 4: no id, passed over",
    ]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda raw: raw[:-20], "damaged or breaks off in its conversation 2"),
        (lambda raw: raw[:-1], "damaged or breaks off in its conversation 3"),
        (lambda raw: raw.replace(b"text 1", b"te\xffxt"), "no UTF-8 text in its conversation 1"),
        (lambda raw: raw[:-1] + b"," + b"[" * 100_000, "nested too deeply|damaged or breaks off"),
        (lambda raw: b"{}", "holds no list of conversations"),
        (lambda raw: b"", "holds no list of conversations"),
    ],
)
def test_a_damaged_export_is_named_and_what_stands_before_is_kept(tmp_path, damage, reason):
    path = written(tmp_path / "conversations.json", small_chats(2))
    path.write_bytes(damage(path.read_bytes()))
    store = Store()
    source = Source("chatgpt", str(path))

    with pytest.raises(InvalidInput, match=reason) as refused:
        store.read(source)

    assert_one_line_naming(path, str(refused.value))
    if "conversation 2" in reason:
        assert store.texts("c0") == [("user", "text 0")]


def test_a_conversation_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "LONGEST", 1000)
    monkeypatch.setattr(exports, "_AT_ONCE", 100)
    path = written(tmp_path / "conversations.json", [*small_chats(1), chatgpt("big", node("u1", None, "x" * 5000))])

    with pytest.raises(InvalidInput, match="in its conversation 2"):
        list(read_source(Source("chatgpt", str(path))))


def test_a_damaged_zip_is_named(tmp_path):
    path = tmp_path / "export.zip"
    path.write_bytes(b"PK no zip")
    with pytest.raises(InvalidInput, match="is a ZIP that cannot be read") as refused:
        find_sources(path)
    assert_one_line_naming(path, str(refused.value))

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps(small_chats(3)))
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"text 2", b"text 9"))
    store = Store()
    with pytest.raises(InvalidInput, match="is a ZIP that cannot be read: Bad CRC"):
        store.read(Source("chatgpt", str(path)))


# ---- writers of this memory


def test_the_run_of_a_writer_of_this_memory_is_left_out_and_counted(tmp_path):
    write_lines(
        tmp_path / "a" / "own.jsonl",
        said("u1", MARK, sessionId="own"),
        said("a1", "Sure.", "assistant", sessionId="own"),
    )
    write_lines(tmp_path / "a" / "s1.jsonl", said("u2", "Hello"), said("u3", f"I wrote {WRITER_MARK} by hand"))
    write_lines(
        tmp_path / "a" / "talk.jsonl",
        {"id": "1", "session": "x", "role": "user", "text": MARK},
        {"id": "2", "session": "y", "role": "user", "text": "mine"},
        {"id": "3", "session": "x", "role": "assistant", "text": "theirs"},
    )
    written(
        tmp_path / "a" / "conversations.json",
        [claude("c1", message("m1", "human", [], MARK), message("m2", "assistant", [], "Sure."))],
    )
    made = FilesOfOpenCode(tmp_path)
    made.session()
    made.message("msg_1", "user", text("prt_1", MARK))
    made.message("msg_2", "assistant", text("prt_2", "Sure."))

    store = Store()
    for _ in range(2):
        for source in find_sources(tmp_path):
            store.read(source)

    assert {name: len(parts) for name, parts in store.sessions.items()} == {"s1": 2, "y": 1}
    assert store.own == 4


def test_a_writer_is_known_when_its_session_goes_on(tmp_path):
    path = write_lines(tmp_path / "own.jsonl", {"type": "summary", "summary": "x", "leafUuid": "y"})
    (source,) = find_sources(path)
    store = Store().read(source)
    write_lines(path, said("u1", MARK))
    store.read(source)
    write_lines(path, said("a1", [call("t1")], "assistant"), said("u2", [answer("t1", "x")]), said("u3", "And now?"))
    store.read(source)

    assert store.sessions == {}
    assert store.own == 1


def test_a_session_that_speaks_of_the_mark_later_is_no_writers(tmp_path):
    path = write_lines(tmp_path / "s1.jsonl", said("u1", "Hello"))
    (source,) = find_sources(path)
    store = Store().read(source)
    write_lines(path, said("u2", MARK))

    assert len(store.read(source).sessions["s1"]) == 2
    assert store.own == 0


def test_a_conversation_that_is_read_on_is_no_writers_for_speaking_of_the_mark(tmp_path, monkeypatch):
    monkeypatch.setattr(heard, "PARTS_AT_ONCE", 1)
    chat = claude("c1", message("m1", "human", [], "Hello"), message("m2", "human", [], MARK))
    source = Source("claude", str(written(tmp_path / "conversations.json", [chat])))

    store = Store().read(source, stop=1).read(source)

    assert [said for _, said in store.texts("c1")] == ["Hello", MARK]


# ---- finding


def test_a_folder_with_hundreds_of_files(tmp_path):
    for n in range(300):
        write_lines(tmp_path / f"project {n % 7}" / f"s{n}.jsonl", said(f"u{n}", f"text {n}", sessionId=f"s{n}"))
    write_lines(tmp_path / "history.jsonl", {"display": "/clear", "timestamp": 1, "project": "/srv"})
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "note.md").write_text("x")
    (tmp_path / "other.zip").write_bytes(b"no zip")
    (tmp_path / "conversations.json").write_text("{}")

    sources = find_sources(tmp_path)

    assert len(sources) == 300
    assert list(sources) == sorted(sources, key=lambda source: (source.kind, source.path))
    assert len(read_all(tmp_path).sessions) == 300


def test_of_several_kinds_in_a_folder_one_may_be_named(tmp_path):
    write_lines(tmp_path / "s1.jsonl", said("u1", "Hello"))
    write_lines(tmp_path / "talk.jsonl", {"role": "user", "text": "Hi"})
    written(tmp_path / "conversations.json", small_chats(1))
    made = FilesOfOpenCode(tmp_path)
    made.session()
    made.message("msg_1", "user", text("prt_1", "one"))

    assert [source.kind for source in find_sources(tmp_path)] == ["chatgpt", "claude-code", "opencode", "turns"]
    assert [source.kind for kind in ("turns", "opencode") for source in find_sources(tmp_path, kind)] == [
        "turns",
        "opencode",
    ]


def test_the_kind_of_a_file_can_be_named_where_nothing_tells_it(tmp_path):
    path = tmp_path / "talk.txt"
    path.write_bytes(b"")

    with pytest.raises(InvalidInput, match="is of no known kind; give a transcript of Claude Code"):
        find_sources(path)
    assert find_sources(path, "turns") == (Source("turns", str(path)),)


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("missing.jsonl", None, "there is no such file or folder"),
        ("", None, "holds no known transcript"),
        ("", "claude", "holds no claude transcript"),
        ("note.md", None, "is of no known kind"),
        ("note.md", "opencode", "give OpenCode's folder"),
        ("note.db", "turns", "holds no turns transcript"),
    ],
)
def test_what_holds_nothing_is_refused_by_its_name(tmp_path, name, kind, reason):
    (tmp_path / "note.md").write_text("Hello")
    (tmp_path / "note.db").write_text("Hello")

    with pytest.raises(InvalidInput, match=reason) as refused:
        find_sources(tmp_path / name, kind)
    assert str(tmp_path)[:60] in str(refused.value)


@pytest.mark.parametrize("kind", ["word", "", "Claude"])
def test_an_unknown_kind_is_refused_by_its_name(tmp_path, kind):
    with pytest.raises(InvalidInput, match=f"kind = '{kind}': give one of claude-code, opencode"):
        find_sources(tmp_path, kind)
    with pytest.raises(InvalidInput, match="give one that find_sources returned"):
        read_source(Source(kind, str(tmp_path)))
    assert KINDS == ("claude-code", "opencode", "turns", "chatgpt", "claude")


@pytest.fixture
def public_folder():
    """A folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    "name",
    [
        "s1.jsonl",
        "conversations.json",
        "sub",
        "opencode.db",
        "storage/message/ses_1",
        "storage/session/p1",
        "storage/session/p1/ses_1.json",
    ],
)
def test_what_may_not_be_read_is_named(public_folder, name):
    write_lines(public_folder / "s1.jsonl", said("u1", "Hello"))
    write_lines(public_folder / "sub" / "s2.jsonl", said("u1", "Hello"))
    written(public_folder / "conversations.json", small_chats(1))
    files = FilesOfOpenCode(public_folder)
    files.session()
    files.message("msg_1", "user", text("prt_1", "one"))
    files.storage.rename(public_folder / "storage")
    if name == "opencode.db":
        shutil.rmtree(files.root, ignore_errors=True)
        made = DatabaseOfOpenCode(public_folder)
        made.connection.close()
        made.path.rename(public_folder / name)
    locked = public_folder / name

    def harvest():
        return len(read_all(public_folder).sessions)

    harvest()  # loads what reading needs, which the child may not
    locked.chmod(0o000)

    kind, told = unprivileged(harvest)
    locked.chmod(0o755)

    assert kind == "StoreFailed"
    assert_one_line_naming(locked, told)


def test_what_may_not_be_read_in_a_folder_hides_nothing_else(public_folder):
    write_lines(public_folder / "a.jsonl", said("u1", "Hello"))
    write_lines(public_folder / "b.jsonl", said("u2", "Hello"))
    (public_folder / "sub").mkdir()
    for name in ("a.jsonl", "sub"):
        (public_folder / name).chmod(0o000)

    def found():
        return [(source.kind, source.path, source.unreadable) for source in find_sources(public_folder)]

    refused, other, last = unprivileged(found)
    (public_folder / "sub").chmod(0o755)

    assert [refused[:2], other[:2]] == [["", str(public_folder / "a.jsonl")], ["", str(public_folder / "sub")]]
    assert "Permission denied" in refused[2]
    assert last == ["claude-code", str(public_folder / "b.jsonl"), ""]


def test_a_file_that_is_gone_when_it_is_read_is_named(tmp_path):
    path = write_lines(tmp_path / "s1.jsonl", said("u1", "Hello"))
    (source,) = find_sources(path)
    path.unlink()

    with pytest.raises(StoreFailed, match="cannot be read: No such file") as refused:
        list(read_source(source))
    assert_one_line_naming(path, str(refused.value))


def test_a_memory_that_is_open_here_is_not_read_as_a_file(tmp_path):
    with Memory.open(tmp_path / "memory.jsonl") as memory:
        with pytest.raises(InvalidInput, match="is a memory that is open in this process"):
            find_sources(memory.path)
        with pytest.raises(InvalidInput, match="is a memory that is open in this process"):
            list(read_source(Source("turns", str(memory.path))))


# ---- data in no form that is known


ODD = ["x", 5, None, True, 1.5, 10**400, ["x"], [["x"]], {"a": ["b"]}, "\ud800", "\0", "/a\0b", "\u200b"]
ODD_BLOCKS = [
    {"type": ["text"]},
    {"type": {"a": 1}, "text": "x"},
    {"type": "tool_use", "id": {}, "name": [], "input": [1]},
    {"type": "tool_result", "tool_use_id": [], "content": [[["x"]]]},
    *ODD,
]
odd = st.sampled_from(ODD)


def odd_object(*names):
    return st.dictionaries(st.sampled_from(names), odd, max_size=len(names))


@settings(max_examples=60)
@given(
    st.lists(
        odd_object("type", "uuid", "sessionId", "cwd", "timestamp", "isSidechain", "agentId", "origin", "attachment")
        | st.builds(
            lambda more, block, kind: {**more, "type": kind, "message": {"content": [block]}},
            odd_object("uuid", "sessionId", "cwd", "timestamp", "origin", "isSidechain"),
            st.sampled_from(ODD_BLOCKS),
            st.sampled_from(["user", "assistant"]),
        )
        | st.builds(lambda mode, prompt: {"type": "attachment", "attachment": {"type": "queued_command",
                                          "commandMode": mode, "prompt": prompt, "origin": mode}}, odd, odd),
        max_size=5,
    )
)  # fmt: skip
def test_lines_of_claude_code_of_any_form_end_no_reading(lines):
    with tempfile.TemporaryDirectory() as folder:
        path = write_lines(Path(folder) / "c.jsonl", *lines, said("last", "The end."))
        store = Store()
        store.read(Source("claude-code", str(path)))
        assert [part.text for part in store.sessions["s1"].values()][-1:] == ["The end."]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(ODD_BLOCKS), max_size=4),
    odd_object("uuid", "sender", "text", "created_at"),
    odd_object("content_type", "parts", "text", "result", "content"),
    odd_object("id", "recipient", "weight", "create_time", "metadata", "author"),
)
def test_conversations_of_any_form_end_no_reading(blocks, message, content, more):
    with tempfile.TemporaryDirectory() as folder:
        claude = written(
            Path(folder) / "claude.json",
            [
                {"uuid": "c1", "chat_messages": [{**message, "content": blocks}, message, *ODD]},
                {"uuid": "c2", "chat_messages": [{"uuid": "u", "sender": "human", "text": "The end."}]},
            ],
        )
        node = {"message": {"author": {"role": "user"}, **more, "content": content}}
        last = {"id": "m", "author": {"role": "user"}, "content": {"parts": ["The end."]}}
        chats = written(
            Path(folder) / "chats.json",
            [{"id": "c1", "mapping": {"n": node, "o": ODD}}, {"id": "c2", "mapping": {"m": {"message": last}}}],
        )
        for source in (Source("claude", str(claude)), Source("chatgpt", str(chats))):
            store = Store()
            store.read(source)
            assert [part.text for part in store.sessions["c2"].values()] == ["The end."]


@settings(max_examples=60)
@given(odd, odd, odd_object("type", "text", "tool", "state", "time", "synthetic"), st.sampled_from(ODD))
def test_files_of_opencode_of_any_form_end_no_reading(created, role, part, state):
    with tempfile.TemporaryDirectory() as folder:
        files = FilesOfOpenCode(Path(folder))
        files.session()
        tool = {"type": "tool", "state": state}
        files.message("msg_1", "user", ("prt_1", part), ("prt_2", tool), ("prt_3", {"type": "text", "time": state}))
        written(files.storage / "message" / "ses_1" / "msg_1.json", {"role": role, "time": {"created": created}})
        files.message("msg_2", "user", text("prt_4", "The end."))
        store = Store()
        for source in find_sources(Path(folder)):
            store.read(source)
        assert [part.text for part in store.sessions["ses_1"].values()][-1:] == ["The end."]


def test_a_file_without_a_known_form_in_a_folder_is_passed_over(tmp_path):
    write_lines(tmp_path / "schema.jsonl", {"name": "x", "type": ["string", "null"]})
    path = write_lines(tmp_path / "s1.jsonl", said("u1", "Hello"))

    assert find_sources(tmp_path) == (Source("claude-code", str(path)),)


def test_turns_without_a_session_are_one_a_file(tmp_path):
    for folder in "ab":
        write_lines(tmp_path / folder / "talk.jsonl", {"role": "user", "text": f"of {folder}"})

    store = read_all(tmp_path)

    assert len(store.sessions) == 2
    for folder in "ab":
        assert store.texts(talk(tmp_path / folder / "talk.jsonl")) == [("user", f"of {folder}")]


def test_what_a_batch_needs_of_a_session_is_not_forgotten(tmp_path):
    silent = [{"type": "thinking", "thinking": "hm"}]
    path = write_lines(
        tmp_path / "c.jsonl",
        said("u1", "Mine", sessionId="first", cwd="/srv/mine"),
        *(said(f"x{n}", silent, kind="assistant", sessionId=f"s{n}") for n in range(1100)),
        said("u2", "Mine too", sessionId="s0", cwd="/srv/other"),
    )
    (source,) = find_sources(path)

    store = Store().read(source)
    assert store.projects["first"] == "/srv/mine"

    assert len(json.loads(store.cursors[source])["sessions"]) == 1000
    write_lines(path, said("u3", "Again", sessionId="s0", cwd=""))
    (last,) = read_source(source, store.cursors[source])
    assert last.heard[0].project == "/srv/app"  # what was heard last is remembered longest
