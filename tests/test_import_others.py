"""Import of the MCP knowledge-graph server, of dsh-memory-ledger and of opencode-promemory."""

import contextlib
import json
import sqlite3
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump, sql

from graphmem import InvalidInput, Memory, SecretRefused, StoreFailed
from graphmem.projects import other_ids, project_id
from graphmem.records import history
from graphmem.surfaces.cli import main

OBSERVED = Path(__file__).parent.parent / "fixtures" / "observed.jsonl"
SECRET = "ghp_" + "a1B2" * 9


def counts(report):
    return {each.what: (each.added, each.merged, each.known, each.refused) for each in report.counts}


def content(path):
    return [line for line in dump(path) if not any(each in line for each in ("text_index", "_sqlite_", "sqlite_s"))]


def assert_again_adds_nothing(memory, kind, source):
    before = content(memory.path)
    again = memory.import_from(kind, source)
    assert again.added == 0
    assert content(memory.path) == before


def assert_a_rehearsal_tells_the_same(memory, kind, source):
    before = dump(memory.path)
    told = memory.import_from(kind, source, dry_run=True)
    assert dump(memory.path) == before
    done = memory.import_from(kind, source)
    assert (told.counts, told.merged, told.refused) == (done.counts, done.merged, done.refused)
    return done


# ---- the MCP knowledge-graph server


def lines(file, *objects):
    file.write_text("".join(f"{json.dumps(each)}\n" for each in objects), "utf-8")
    return file


def entity(name, *observations, kind="person"):
    return {"type": "entity", "name": name, "entityType": kind, "observations": list(observations)}


def relation(start, kind, end):
    return {"type": "relation", "from": start, "to": end, "relationType": kind}


def test_entities_relations_and_observations_come(memory, path):
    report = assert_a_rehearsal_tells_the_same(memory, "mcp-memory", OBSERVED)

    assert counts(report) == {"entity": (3, 0, 0, 0), "observation": (3, 0, 0, 0), "fact": (2, 0, 0, 0)}
    assert sql(path, "SELECT name, type FROM entities ORDER BY id") == [
        ("老大", "person"), ("panel", "service"), ("pnpm", "tool"),
    ]  # fmt: skip
    (edge,) = memory.neighbours("pnpm", depth=1).relations
    assert (edge.subject, edge.relation, edge.object) == ("panel", "is built with", "pnpm")
    notes = {note.title: note for note in memory.notes()}
    assert notes["panel: Runs on port 8328"].labels == ("panel",)
    assert notes["panel: Runs on port 8328"].source == "import:mcp-memory"
    assert_again_adds_nothing(memory, "mcp-memory", OBSERVED)
    assert memory.recall("8328")[0].text.startswith("panel: Runs on port 8328")
    assert memory.check().ok


def test_what_no_fact_may_be_is_kept_as_a_note(memory, tmp_path):
    long = "x" * 51
    source = lines(tmp_path / "m.jsonl", entity(long, "is long"), entity("a"), relation("a", "knows", long))

    report = memory.import_from("mcp-memory", source)

    assert {each.what for each in report.refused} == {"entity", "fact"}
    assert all("50 characters" in each.reason for each in report.refused)
    assert {note.title for note in memory.notes()} == {f"{long}: is long", f"a knows {long}"}
    assert_again_adds_nothing(memory, "mcp-memory", source)


def test_an_observation_of_several_lines_is_kept_whole(memory, tmp_path):
    text = "first\n\n  second " + "y" * 600
    memory.import_from("mcp-memory", lines(tmp_path / "m.jsonl", entity("Ann", text)))

    (note,) = memory.notes()
    assert note.body == text
    assert note.title.startswith("Ann: first second yyy")


def test_equal_observations_of_two_are_two(memory, tmp_path):
    memory.import_from(
        "mcp-memory", lines(tmp_path / "m.jsonl", entity("Ann", "likes tea"), entity("Bob", "likes tea"))
    )

    assert {note.title for note in memory.notes()} == {"Ann: likes tea", "Bob: likes tea"}


def test_a_damaged_line_is_told_and_the_others_come(memory, tmp_path):
    source = tmp_path / "m.jsonl"
    good = json.dumps(entity("老大"), ensure_ascii=False).encode()
    source.write_bytes(b"\xef\xbb\xbf" + good + b"\r\n{broken\n\n[1]\n" + json.dumps(relation("a", "is", "b")).encode())

    report = memory.import_from("mcp-memory", source)

    assert [(each.what, each.name) for each in report.refused] == [("line", "line 2"), ("line", "line 4")]
    assert counts(report)["fact"] == (1, 0, 0, 0)
    assert memory.overview().entities == 3


def test_secrets_in_a_graph_are_refused(memory, path, tmp_path):
    source = lines(
        tmp_path / "m.jsonl", entity(SECRET), entity("bot", f"its token is {SECRET}"), relation("bot", "token", SECRET)
    )

    report = memory.import_from("mcp-memory", source)

    assert counts(report) == {"entity": (1, 0, 0, 1), "observation": (0, 0, 0, 1), "fact": (0, 0, 0, 1)}
    assert SECRET[4:16] not in repr(report)
    assert SECRET[4:16] not in "\n".join(dump(path))


def test_another_memory_of_the_same_facts_confirms_them(memory, tmp_path):
    from graphmem import Triple

    memory.commit([Triple("a", "is", "b")])
    source = lines(tmp_path / "m.jsonl", entity("A"), relation("A", "is", "B"))

    report = memory.import_from("mcp-memory", source)

    assert counts(report)["fact"] == (0, 1, 0, 0)
    assert memory.overview().relations == 1


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=60).map(str.strip)
WORDS = st.sampled_from(["a", "B", "老大", "c++", "likes tea", "x" * 50, "Ann: Bob"])


@settings(max_examples=30, deadline=None)
@given(
    known=st.dictionaries(WORDS, st.lists(TEXTS.filter(bool), max_size=3, unique=True), min_size=1),
    said=st.lists(st.tuples(WORDS, st.sampled_from(["is", "likes"]), WORDS), max_size=6, unique=True),
)
def test_what_the_format_can_say_comes_back_from_an_export(tmp_path_factory, known, said):
    folder = tmp_path_factory.mktemp("mcp")
    ends = {end for start, _, stop in said for end in (start, stop)}
    told = [entity(name, *texts) for name, texts in known.items()] + [entity(end) for end in ends - known.keys()]
    source = lines(folder / "in.jsonl", *told, *(relation(*each) for each in said))
    with Memory.open(folder / "first.db") as memory:
        refused = memory.import_from("mcp-memory", source).refused
        memory.export_to("mcp-memory", folder / "out.jsonl")
    with Memory.open(folder / "second.db") as memory:
        memory.import_from("mcp-memory", folder / "out.jsonl")
        memory.export_to("mcp-memory", folder / "again.jsonl")

    out = [json.loads(line) for line in (folder / "out.jsonl").read_text("utf-8").splitlines()]
    assert (folder / "again.jsonl").read_text("utf-8") == (folder / "out.jsonl").read_text("utf-8")
    if not refused:  # a generated text may look like a secret
        assert {each["name"] for each in out if each["type"] == "entity"} == known.keys() | ends
        assert {(each["from"], each["relationType"], each["to"]) for each in out if each["type"] == "relation"} == set(
            said
        )


# ---- the ledger


ORIGIN = {"cwd": "/work/panel", "label": "panel", "sessionId": "s7", "at": "2026-08-01T10:00:00Z"}
HASH = dict(other_ids("/work/panel"))["dsh"]


@pytest.fixture
def ledger(tmp_path):
    folder = tmp_path / "dsh"
    (folder / "projects").mkdir(parents=True)
    user = [
        {"id": "e1", "kind": "fact", "title": "Pen name is 青石", "key": "pen_name", "origin": ORIGIN},
        {"id": "e2", "kind": "fact", "title": "Time zone is UTC+8", "key": "zone", "reason": "asked twice",
         "origin": ORIGIN, "tags": ["time", "时区"], "body": "Shanghai",
         "createdAt": 1785578400000, "updatedAt": "2026-08-03T10:00:00Z"},
        {"id": "e3", "kind": "fact", "title": "Old office", "archived": True, "origin": ORIGIN},
        {"id": "e4", "kind": "fact", "title": "Standing order", "pinned": True},
        {"id": "e5", "kind": "nonsense", "title": "Odd"},
        {"id": "e6", "kind": "fact", "title": f"token is {SECRET}"},
        {"id": "e7", "kind": "fact", "title": ""},
    ]  # fmt: skip
    (folder / "memory.json").write_text(json.dumps({"version": 1, "entries": user}), "utf-8")
    project = {
        "entries": [{"id": "p1", "kind": "lesson", "title": "Quote paths in bash", "tags": ["bash"], "origin": ORIGIN}],
        "incidents": {
            "bash|x": {"tool": "bash", "count": 3, "sample": "rm: cannot remove '/a'", "first": "2026-08-20T00:00:00Z",
                       "last": "2026-09-01T00:00:00Z"},
            "bash|y": {"tool": "bash", "count": 1, "sample": "old", "last": "2026-01-01T00:00:00Z"},
            "git|z": {"tool": "git", "count": 2, "sample": "no such ref", "last": "2026-09-02T00:00:00Z",
                      "resolved": True},
        },
    }  # fmt: skip
    (folder / "projects" / f"panel-{HASH}.json").write_text(json.dumps(project), "utf-8")
    return folder


def test_entries_come_with_slot_state_reason_and_origin(memory, ledger):
    report = assert_a_rehearsal_tells_the_same(memory, "ledger", ledger)

    assert counts(report) == {"note": (5, 0, 0, 3), "incident": (2, 0, 0, 1)}
    notes = {note.title: note for note in memory.notes(statuses=(), scopes=["all"])}
    zone = notes["Time zone is UTC+8"]
    assert (zone.slot, zone.labels, zone.body, zone.status, zone.scope) == (
        "zone",
        ("time", "时区"),
        "Shanghai",
        "live",
        "",
    )
    assert (zone.origin.place, zone.origin.session, zone.origin.message) == ("/work/panel", "s7", "e2")
    assert (zone.origin.reason, zone.origin.actor) == ("asked twice", "import:ledger")
    assert (zone.created_at, zone.updated_at) == ("2026-08-01T10:00:00.000Z", "2026-08-03T10:00:00.000Z")
    assert notes["Old office"].status == "archived"
    assert notes["Quote paths in bash"].scope == f"project:{project_id('/work/panel')}"
    assert memory.check().ok
    assert_again_adds_nothing(memory, "ledger", ledger)


def test_what_binds_waits_for_a_person(memory, ledger):
    report = memory.import_from("ledger", ledger)

    notes = {note.title: note for note in memory.notes(statuses=())}
    assert notes["Pen name is 青石"].status == "proposed"
    assert (notes["Standing order"].status, notes["Standing order"].pinned) == ("live", False)
    assert any("approve" in remark for remark in report.remarks)
    assert any("was pinned there" in remark for remark in report.remarks)


def test_what_cannot_be_used_is_told_without_the_secret(memory, path, ledger):
    report = memory.import_from("ledger", ledger)

    reasons = {each.name.split()[0]: each.reason for each in report.refused if each.what == "note"}
    assert reasons.keys() == {"Odd", "token", "e7"}
    assert SECRET[4:16] not in repr(report)
    assert SECRET[4:16] not in "\n".join(dump(path))


def test_incidents_come_under_our_own_signature(memory, ledger):
    memory.import_from("ledger", ledger)

    known = memory.incidents(scopes=["all"], status=None)
    assert [(each.tool, each.count, each.resolved_at is None) for each in known] == [
        ("bash", 3, True),
        ("git", 2, False),
    ]
    again = memory.record_failure("bash", "rm: cannot remove '/b c'", scope=known[0].scope)
    assert again.incident.count == 4


def test_the_folder_of_a_project_finds_what_came(tmp_path, path, clock):
    folder = tmp_path / "panel"
    folder.mkdir()
    file = tmp_path / f"panel-{project_id(str(folder))}.json"
    file.write_text(json.dumps([{"id": "1", "kind": "lesson", "title": "Quote paths"}]), "utf-8")
    with Memory.open(path, clock=clock) as memory:
        memory.import_from("ledger", file)

    with Memory.open(path, clock=clock, project=folder) as memory:
        assert [note.title for note in memory.notes()] == ["Quote paths"]


def test_a_scope_that_is_named_takes_all(memory, ledger):
    memory.import_from("ledger", ledger, scope="team")

    assert {note.scope for note in memory.notes(statuses=(), scopes=["all"])} == {"team"}


@pytest.mark.parametrize("text", ["{", "[]x", '{"a": 1}', "7", ""])
def test_what_is_no_ledger_is_refused(memory, tmp_path, text):
    file = tmp_path / "memory.json"
    file.write_text(text, "utf-8")

    with pytest.raises(InvalidInput, match="ledger"):
        memory.import_from("ledger", file)


def assert_holds_no_secret(memory, path, secret):
    assert secret not in "\n".join(dump(path))
    assert memory.scan_secrets().found == ()


def test_a_signature_with_a_secret_is_refused(memory, path, tmp_path):
    file = tmp_path / "memory.json"
    file.write_text(json.dumps({"incidents": [{"signature": "bash|password=Tr0ub4dor1x"}]}), "utf-8")

    report = assert_a_rehearsal_tells_the_same(memory, "ledger", file)

    assert counts(report) == {"incident": (0, 0, 0, 1)}
    assert "Tr0ub4dor1x" not in repr(report)
    assert_holds_no_secret(memory, path, "Tr0ub4dor1x")


def test_a_signature_is_one_line_of_text_that_can_be_stored(memory, tmp_path):
    file = tmp_path / "memory.json"
    written = "bash|\ud83d no\nsuch " + "word " * 100
    file.write_text(json.dumps({"incidents": [{"signature": written, "count": 10**30}]}), "utf-8")

    report = assert_a_rehearsal_tells_the_same(memory, "ledger", file)

    assert counts(report) == {"incident": (1, 0, 0, 0)}
    (known,) = memory.incidents(status=None)
    assert known.signature.startswith("bash|\ufffd no such word")
    assert len(known.signature) <= 300
    assert known.count > 10**9
    assert_again_adds_nothing(memory, "ledger", file)


ODD = st.sampled_from(
    [None, True, -1, 0, 10**30, 10**400, 1e308, float("inf"), float("nan"), "", " ", "\ud83d", "a\0b", "x" * 3000,
     "9999-12-31T23:59:59-12:00", [], ["\ud83d", 1], {}, {"at": [1]}]
)  # fmt: skip
ENTRY = {
    "id": "e1", "kind": "fact", "noteKind": "lesson", "title": "Time zone", "body": "UTC+8", "key": "zone",
    "tags": ["time"], "pinned": False, "archived": False, "reason": "asked", "createdAt": 1, "updatedAt": 2,
    "origin": ORIGIN,
}  # fmt: skip
INCIDENT = {"signature": "bash|no", "tool": "bash", "count": 3, "sample": "no", "first": 1, "last": 2, "resolved": True}


@settings(max_examples=40, deadline=None)
@given(
    entry=st.fixed_dictionaries({}, optional=dict.fromkeys(ENTRY, ODD)),
    incident=st.fixed_dictionaries({}, optional=dict.fromkeys(INCIDENT, ODD)),
    origin=st.fixed_dictionaries({}, optional=dict.fromkeys(ORIGIN, ODD)),
)
def test_whatever_stands_in_a_ledger_ends_no_import(tmp_path_factory, entry, incident, origin):
    folder = tmp_path_factory.mktemp("odd")
    file = folder / "memory.json"
    entries = [{**ENTRY, "origin": {**ORIGIN, **origin}, **entry}, entry]
    incidents = [{**INCIDENT, **incident}, {**incident, "sample": ""}]
    file.write_text(json.dumps({"entries": entries, "incidents": incidents}), "utf-8")

    with Memory.open(folder / "memory.db") as memory:
        memory.import_from("ledger", file)
        memory.import_from("ledger", file)
        assert memory.check().ok


# ---- promemory


PID = project_id("/work/panel")
CHECKPOINT = """# Checkpoint
Date: 2026-08-05T09:00:00Z
## Summary
Moved the panel to port 8443.
## Decisions
- keep nginx
## Facts
- port 8443
## Open
（无）
## Files
（无）
## Notes
（无）
CHECKPOINT_DONE
"""


@pytest.fixture
def promemory(tmp_path):
    folder = tmp_path / "memory"
    files = {
        "global/MEMORY.md": "# Memory\n\n## Rules\n- 回复用中文\n\n## Tools\n- use ripgrep\n  and not grep\n",
        f"projects/{PID}/MEMORY.md": (
            f"## Architecture decisions\n- pnpm, not npm\n\n{CHECKPOINT}\n## Rules\n- no force push\n"
        ),
        "sessions/ses_1/checkpoint.md": CHECKPOINT.replace("8443", "8444"),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    with contextlib.closing(sqlite3.connect(folder / "history.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE history_fts(part_id TEXT PRIMARY KEY, session_id, message_id, body, time_created, tool_name,"
            " project_id)"
        )
        connection.executemany(
            "INSERT INTO history_fts VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                ("p2", "ses_1", "m2", "Deployed.", 1785578460000, None, PID),
                ("p1", "ses_1", "m1", "部署面板", 1785578400000, None, PID),
                ("p3", "ses_1", "m2", f"token={SECRET}", 1785578470000, "bash", PID),
            ],
        )
    with contextlib.closing(sqlite3.connect(folder / "memory.db")) as connection, connection:
        connection.execute("CREATE TABLE memory_fts(id INTEGER PRIMARY KEY, path TEXT UNIQUE, body TEXT)")
        connection.execute("INSERT INTO memory_fts(path, body) VALUES ('global/MEMORY.md', '- stale')")
        connection.execute(
            "INSERT INTO memory_fts(path, body) VALUES ('/x/memory/sessions/ses_2/notes.md', '- lost file')"
        )
    return folder


def test_a_tree_and_its_databases_come(memory, path, promemory):
    report = assert_a_rehearsal_tells_the_same(memory, "promemory", promemory)

    home = f"project:{PID}"
    assert counts(report) == {"part": (3, 0, 0, 0), "note": (5, 0, 0, 0), "checkpoint": (2, 0, 0, 0)}
    notes = {(note.title, note.kind, note.scope, note.status) for note in memory.notes(statuses=(), scopes=["all"])}
    assert notes == {
        ("回复用中文", "rule", "", "proposed"),
        ("use ripgrep", "fact", "", "live"),
        ("pnpm, not npm", "decision", home, "live"),
        ("no force push", "rule", home, "proposed"),
        ("lost file", "fact", "", "live"),
        ("Checkpoint of a project, 2026-08-05 09:00", "checkpoint", home, "live"),
        ("Checkpoint of ses_1, 2026-08-05 09:00", "checkpoint", home, "live"),
    }
    digest = next(note for note in memory.notes(kinds="checkpoint", scopes=["all"]) if note.origin.session)
    assert digest.body.startswith("# Checkpoint")
    assert digest.body.endswith("（无）")
    assert (digest.summary, digest.created_at) == ("Moved the panel to port 8444.", "2026-08-05T09:00:00.000Z")
    assert memory.check().ok
    assert_again_adds_nothing(memory, "promemory", promemory)


def test_what_was_said_comes_in_order_and_without_secrets(memory, path, promemory):
    memory.import_from("promemory", promemory)

    rows = sql(path, "SELECT part, text, at, message, tool FROM parts ORDER BY seq")
    assert [row[0] for row in rows] == ["p1", "p2", "p3"]
    assert rows[0] == ("p1", "部署面板", "2026-08-01T10:00:00.000Z", "m1", "")
    assert (rows[2][1], rows[2][4]) == ("token=[REDACTED]", "bash")
    assert [(one.name, one.scope) for one in memory.sessions(scopes=["all"])] == [("ses_1", f"project:{PID}")]


def tell(promemory, session, *parts, project=PID):
    """Let promemory have heard parts of a session."""
    with contextlib.closing(sqlite3.connect(promemory / "history.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO history_fts VALUES (?, ?, 'm', ?, 1785578400000, NULL, ?)",
            [(part, session, text, project) for part, text in parts],
        )


def test_a_session_whose_name_or_project_holds_a_secret_is_refused(memory, path, promemory):
    secret = "password=Tr0ub4dor1x"  # noqa: S105 - planted
    tell(promemory, secret, ("q1", "hello"))
    tell(promemory, "ses_9", ("q2", "hello"), project=secret)
    for name in (f"projects/{secret}/MEMORY.md", f"sessions/{secret}/notes.md", "sessions/ses_9/notes.md"):
        (promemory / name).parent.mkdir(parents=True, exist_ok=True)
        (promemory / name).write_text("- of a project\n", "utf-8")

    report = assert_a_rehearsal_tells_the_same(memory, "promemory", promemory)

    assert [each.what for each in report.refused] == ["session", "session", "file", "file", "file"]
    assert "Tr0ub4dor1x" not in repr(report)
    assert "of a project" not in {note.title for note in memory.notes(scopes=["all"])}
    assert_holds_no_secret(memory, path, "Tr0ub4")
    assert_again_adds_nothing(memory, "promemory", promemory)


def test_a_session_that_has_the_name_of_another_project_here_comes_beside_it(memory, path, promemory):
    from graphmem import Part

    memory.mirror("ses_1", [Part("own", text="ours")], scope="team")
    tell(promemory, "ses_9", ("q1", "goes on"))

    report = assert_a_rehearsal_tells_the_same(memory, "promemory", promemory)

    home = f"project:{PID}"
    sessions = {(one.name, one.scope, one.parts) for one in memory.sessions(scopes=["all"])}
    assert sessions == {("ses_1", "team", 1), (f"ses_1@{PID}", home, 3), ("ses_9", home, 1)}
    assert any(f"ses_1@{PID}" in remark for remark in report.remarks)
    digest = next(note for note in memory.notes(kinds="checkpoint", scopes=["all"]) if note.origin.session)
    assert (digest.scope, digest.origin.session) == (home, f"ses_1@{PID}")
    assert_again_adds_nothing(memory, "promemory", promemory)


def test_a_session_that_was_removed_here_stays_so(memory, promemory):
    memory.import_from("promemory", promemory)
    memory.purge(session="ses_1", hard=True)

    report = memory.import_from("promemory", promemory)

    assert [(each.what, each.name) for each in report.refused] == [("session", "ses_1")]
    assert memory.sessions(scopes=["all"]) == ()


def test_an_import_that_is_broken_off_leaves_no_noise(memory, promemory, monkeypatch):
    noise = []
    monkeypatch.setattr(sys, "unraisablehook", noise.append)
    monkeypatch.setattr(history, "mirror", lambda *arguments, **named: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        memory.import_from("promemory", promemory)

    assert noise == []


@settings(max_examples=25, deadline=None)
@given(row=st.tuples(*[st.none() | st.sampled_from([b"\xff", -1, 2**63 - 1, 1e308, "", " ", "a\0b", "é" * 3000])] * 7))
def test_whatever_stands_in_a_history_ends_no_import(tmp_path_factory, row):
    folder = tmp_path_factory.mktemp("odd")
    with contextlib.closing(sqlite3.connect(folder / "history.db")) as connection, connection:
        names = "session_id, part_id, message_id, body, time_created, tool_name, project_id"
        connection.execute(f"CREATE TABLE history_fts({names})")
        good = ("s", "p", "m", "text", 1785578400000, None, PID)
        for place, value in enumerate(row):
            connection.execute(
                "INSERT INTO history_fts VALUES (?, ?, ?, ?, ?, ?, ?)", (*good[:place], value, *good[place + 1 :])
            )
        connection.execute("INSERT INTO history_fts VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("INSERT INTO history_fts VALUES ('last', 'p', '', 'text', NULL, NULL, '')")

    with Memory.open(folder / "here.db") as memory:
        memory.import_from("promemory", folder)
        assert "last" in {session.name for session in memory.sessions(scopes=["all"])}


@pytest.mark.parametrize("name", ["history.db", "memory.db"])
def test_one_database_comes_alone(memory, promemory, name):
    report = memory.import_from("promemory", promemory / name)

    assert set(counts(report)) == ({"part"} if name == "history.db" else {"note"})


def test_links_in_a_tree_are_not_followed(memory, promemory, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "MEMORY.md").write_text("- from outside\n", "utf-8")
    (promemory / "projects" / "linked").symlink_to(outside)
    (promemory / "global" / "more.md").symlink_to(outside / "MEMORY.md")

    memory.import_from("promemory", promemory)

    assert "from outside" not in {note.title for note in memory.notes(scopes=["all"])}


def test_a_folder_of_something_else_is_refused(memory, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="promemory"):
        memory.import_from("promemory", tmp_path / "empty")
    with pytest.raises((InvalidInput, StoreFailed)):
        memory.import_from("promemory", tmp_path / "missing")


# ---- the command


@pytest.fixture
def run(path, capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["--db", str(path), "--project", "", "import", "mcp-memory", *map(str, arguments)])
        return ended.value.code, *capsys.readouterr()

    return call


def test_the_command_tells_what_came_and_what_would(run, path, tmp_path):
    code, out, _ = run(OBSERVED, "--dry-run")
    assert (code, path.exists()) == (0, False)
    assert "nothing was changed; 8 things would be new" in out

    code, out, _ = run(OBSERVED)
    assert code == 0
    assert [line.split() for line in out.splitlines() if "observation" in line] == [["observation", *"330000"]]

    code, _, err = run(lines(tmp_path / "bad.jsonl", entity("a"), {"type": "odd"}))
    assert (code, "refused line 'line 2'" in err) == (0, True)


def test_a_refused_source_makes_no_memory(run, path, tmp_path):
    (tmp_path / "odd.jsonl").write_text('{"a": 1}\n', "utf-8")

    for file, kind in (("odd.jsonl", "InvalidInput"), ("missing.jsonl", "StoreFailed")):
        code, out, _ = run(tmp_path / file, "--json")
        assert (code, json.loads(out)["error"]["type"]) == (1, kind)
    assert not path.exists()


def test_a_secret_in_a_scope_is_refused(memory):
    with pytest.raises(SecretRefused):
        memory.import_from("mcp-memory", OBSERVED, scope=SECRET)
