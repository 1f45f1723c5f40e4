"""A whole memory as JSON Lines: what is written comes back row by row, and what is damaged changes nothing."""

import base64
import contextlib
import hashlib
import io
import json
import sqlite3
import tempfile
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump, rows_of, sql, text_index_of
from test_migrations import NAMES, old_file
from test_store import fill

from graphmem import Conflict, InvalidInput, Memory, Part, SchemaTooNew, Situation, StoreFailed, Triple
from graphmem.exchange import whole
from graphmem.store import rows
from graphmem.store.connection import Connection
from graphmem.store.schema import VERSION

LARGE = b"\x89PNG" + bytes(range(256)) * 300
NASTY = "a\x1b[2J\x00\x9b\u2028\u202e\ufeff\ufffe😀\r\nb\tc\"'\\"


def everything(memory):
    """A bit of what each verb leaves, payloads in rows and in files included."""
    fill(memory)
    memory.put_block("a cat", payload=b"\x00\xff", mime="image/png", modality="image", scenes=["chan:qq"])
    memory.put_block("a large cat", payload=LARGE, mime="image/png", modality="image")
    memory.commit([Triple(NASTY, NASTY, "b", sentence=NASTY, confidence=0.1)], scope="private")
    memory.keep_apart("老大", "纯文本")
    memory.remind("s1", "以后都用中文回答")
    memory.checkpoint("s1")
    memory.delete_relation(1)
    memory.dedupe_scenes()  # `fill` leaves a twin that is not indexed
    memory.reindex()


@pytest.fixture
def filled(memory, path, tmp_path):
    everything(memory)
    memory.mirror("gone", [Part("m1", text="It is gone.")])
    memory.delete_session("gone")
    memory.remember("Deploy with pnpm", load_when="发布", labels=["redis"], source="user")
    memory.export_tree(tmp_path / "tree")
    block = memory.put_block("a dog")
    memory.put_document("about a dog", blocks=[block.id])
    memory.commit([Triple("Lin", "likes", "tea"), Triple("Lin Hua", "likes", "tea")])
    memory.merge_entities("Lin Hua", "Lin")
    memory.enter_scene(Situation.of(chan="web", peer="mei"))
    memory.recall("Deploy with pnpm")  # uses are written with the next write
    memory.remember("The last one")
    for statement in (
        "INSERT INTO note_sources VALUES (1, 2)",
        "INSERT INTO transcripts VALUES ('/a/b.jsonl', 'claude-code', '12', 1, '2026-09-01T00:00:00.000Z')",
        "INSERT INTO writer_usage VALUES ('2026-09-01', 12)",
        "INSERT INTO scope_aliases SELECT 'path', '/work/panel', key FROM scopes LIMIT 1",
    ):
        sql(path, statement)
    return memory


def written(memory):
    """The lines of a memory."""
    stream = io.StringIO()
    memory.export_to("jsonl", stream)
    return stream.getvalue().splitlines(keepends=True)


def changed(lines, change):
    """The lines of a file with some change to what they say, and an end that counts them."""
    values = [json.loads(line) for line in lines]
    values = change(values[:-1])
    counts = {}
    for value in values[1:]:
        (name,) = list(value)[:1]
        counts[name] = counts.get(name, 0) + 1
    payloads = counts.pop("payload", 0)
    return [json.dumps(value) + "\n" for value in [*values, {"end": {"rows": counts, "payloads": payloads}}]]


def read_into(path, lines, clock, **options):
    """Read lines into a new memory at a path."""
    file = path.with_name(f"{path.name}.jsonl")
    file.write_text("".join(lines), "utf-8", newline="")
    with Memory.open(path, clock=clock) as memory:
        return memory.import_from("jsonl", file, **options)


def test_every_row_of_every_table_comes_back(filled, path, tmp_path, clock):
    other = tmp_path / "other.db"
    report = filled.export_to("jsonl", tmp_path / "all.jsonl")
    clock.advance(days=3)

    with Memory.open(other, clock=clock) as memory:
        told = memory.import_from("jsonl", tmp_path / "all.jsonl")
        assert memory.check().problems == filled.check().problems
        assert memory.block(memory.recall("a large cat", kinds="block")[0].id).payload == LARGE
        assert written(memory) == written(filled)

    assert rows_of(other) == rows_of(path)
    assert text_index_of(other) == text_index_of(path)
    assert report.counts["relations"] == len(rows_of(path)["relations"])
    assert {count.what: count.added for count in told.counts} == {
        name: number for name, number in report.counts.items() if number and name != "sqlite_sequence"
    }
    assert (told.kind, told.applied, told.refused, told.merged) == ("jsonl", True, (), ())


def test_every_table_has_rows_in_that_test(filled, path):
    assert [name for name, held in rows_of(path).items() if not held] == []


def test_what_is_written_is_for_the_owner_alone_and_reads_as_lines_of_json(filled, tmp_path):
    file = tmp_path / "all.jsonl"

    filled.export_to("jsonl", file)

    lines = file.read_bytes().decode().split("\n")
    assert lines.pop() == ""
    head, *between, end = [json.loads(line) for line in lines]
    assert (head["graphmem"], head["format"], head["schema"]) == ("jsonl", 1, VERSION)
    assert end["end"]["rows"]["notes"] == sum("notes" in each for each in between)
    assert end["end"]["payloads"] == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert not any(c in "".join(lines) for c in "\x1b\x9b\u2028\u202e")


def test_numbers_are_not_used_again(filled, path, tmp_path, clock):
    gone = filled.put_block("gone")
    filled.delete_block(gone.id)
    other = tmp_path / "other.db"
    read_into(other, written(filled), clock)

    with Memory.open(other, clock=clock) as memory:
        for each in (memory, filled):
            each.put_block("new")
            each.remember("new")
    assert rows_of(other) == rows_of(path)


def test_what_was_done_can_be_undone_where_it_came_to(filled, path, tmp_path, clock):
    other = tmp_path / "other.db"
    read_into(other, written(filled), clock)

    with Memory.open(other, clock=clock) as memory:
        for operation in filled.operations():
            for each in (memory, filled):
                each.undo(operation.id)
    assert rows_of(other) == rows_of(path)


def test_a_dry_run_tells_the_same_and_changes_nothing(filled, tmp_path, clock):
    other = tmp_path / "other.db"
    Memory.open(other, clock=clock).close()
    before = dump(other)

    planned = read_into(other, written(filled), clock, dry_run=True)

    assert dump(other) == before
    assert not Path(f"{other}.blobs").exists()
    done = read_into(other, written(filled), clock)
    assert (planned.applied, done.applied) == (False, True)
    assert (planned.counts, planned.remarks) == (done.counts, done.remarks)


def test_a_memory_that_holds_something_takes_no_other_in(filled, path, memory):
    before = dump(path)

    with pytest.raises(Conflict, match="empty"):
        read_into(path, written(filled), FakeClock())

    assert dump(path) == before


def test_a_new_memory_of_a_project_finds_it_again_in_what_came(tmp_path, clock):
    project = tmp_path / "panel"
    project.mkdir()
    with Memory.open(tmp_path / "a.db", clock=clock, project=project, session="s1") as memory:
        memory.remember("Deploy with pnpm", scope="project")
        memory.export_to("jsonl", tmp_path / "a.jsonl")
        key = memory.project.key

    with Memory.open(tmp_path / "b.db", clock=clock, project=project, session="s2") as memory:
        memory.import_from("jsonl", tmp_path / "a.jsonl")

        assert memory.project.key == key
        assert [note.title for note in memory.notes()] == ["Deploy with pnpm"]
        assert {scope.key for scope in memory.scopes()} == {"", key, "session:s1", "session:s2"}


@pytest.mark.sqlite
def test_a_memory_without_a_file_gives_and_takes_payloads_too(filled, tmp_path, clock):
    with Memory.open(":memory:", clock=clock) as memory:
        (tmp_path / "a.jsonl").write_text("".join(written(filled)), "utf-8", newline="")
        memory.import_from("jsonl", tmp_path / "a.jsonl")
        assert memory.check().problems == filled.check().problems
        back = tmp_path / "back.db"
        read_into(back, written(memory), clock)

    assert rows_of(back) == rows_of(filled.path)
    assert {file.name for file in Path(f"{back}.blobs").glob("*/*")} == {hashlib.sha256(LARGE).hexdigest()}


@pytest.mark.sqlite
def test_a_payload_that_is_missing_is_told_on_both_sides(filled, tmp_path, clock):
    (file,) = Path(f"{filled.path}.blobs").glob("*/*")
    file.unlink()

    report = filled.export_to("jsonl", tmp_path / "a.jsonl")

    assert (report.counts["payloads"], [str(file) in remark for remark in report.remarks]) == (0, [False, True])
    told = read_into(tmp_path / "b.db", written(filled), clock)
    assert told.remarks == ("1 payloads are not in the file: put their blocks again",)


def test_secrets_that_come_are_told_and_no_character_of_them(memory, tmp_path, clock):
    memory.mirror("s1", [Part("m1", text="password = hunter2hunter2")], redact=False)

    told = read_into(tmp_path / "b.db", written(memory), clock)

    assert ["1 rows hold secrets" in remark for remark in told.remarks] == [True]
    assert "hunter2" not in repr(told)


@pytest.mark.parametrize("version", range(3, len(NAMES)))  # since there are blocks
@pytest.mark.sqlite
def test_what_an_older_schema_held_is_brought_up_to_date(tmp_path, version, clock, monkeypatch):
    old = tmp_path / "old.db"
    old_file(old, version)
    monkeypatch.setattr(whole, "VERSION", version)
    with contextlib.closing(sqlite3.connect(old, factory=Connection)) as connection:
        lines = list(whole.to_lines(connection, str(old), "", whole.Tally(), lambda done, rows: None))
    monkeypatch.undo()

    read_into(tmp_path / "new.db", lines, clock)

    with Memory.open(old, clock=clock) as memory, Memory.open(tmp_path / "new.db", clock=clock) as other:
        assert other.check().problems == memory.check().problems == ()
        assert other.recall("likes") == memory.recall("likes")
    assert rows_of(tmp_path / "new.db") == rows_of(old)


# ---- files that are none


def without(table):
    return lambda values: [value for value in values if table not in value]


def with_row(table, row):
    return lambda values: [*values, {table: row}]


def renamed(old, new):
    return lambda values: [{new if name == old else name: value for name, value in each.items()} for each in values]


DAMAGED = {
    "nothing": lambda lines: [],
    "no memory": lambda lines: ['{"type": "entity"}\n'],
    "no JSON": lambda lines: [*lines[:3], "{\n", *lines[3:]],
    "no object": lambda lines: [*lines[:3], "[]\n", *lines[3:]],
    "cut": lambda lines: lines[:-1],
    "cut within a line": lambda lines: [*lines[:-2], lines[-2][:-9]],
    "a row less": lambda lines: [*lines[:5], *lines[6:]],
    "more behind the end": lambda lines: [*lines, lines[3]],
    "no format": lambda lines: [json.dumps({"graphmem": "jsonl", "format": "1", "schema": VERSION}), "\n", *lines[1:]],
    "an unknown table": lambda lines: changed(lines, renamed("notes", "sqlite_master")),
    "a derived table": lambda lines: changed(lines, with_row("text_sizes", {"kind": 1, "texts": 1, "tokens": 1})),
    "an unknown column": lambda lines: changed(lines, with_row("active_days", {'day", x': "2026-01-01"})),
    "a wrong type": lambda lines: changed(lines, with_row("active_days", {"day": [1]})),
    "a row twice": lambda lines: changed(lines, lambda values: [*values, values[1]]),
    "no bytes": lambda lines: changed(lines, with_row("reminders", {"hash": {"base64": "?"}, "at": "x"})),
    "too large a number": lambda lines: changed(
        lines, with_row("writer_usage", {"day": "2026-01-01", "tokens": 2**70})
    ),
    "half a character": lambda lines: changed(lines, with_row("active_days", {"day": "\ud800" + "2" * 9})),
    "entities missing": lambda lines: changed(lines, without("entities")),
    "a payload of no block": lambda lines: changed(lines, without("blocks")),
    "another payload": lambda lines: changed(lines, other_payload),
    "a digest that is a path": lambda lines: changed(lines, path_for_a_digest),
}


def other_payload(values):
    return [{**each, "base64": base64.b64encode(b"x").decode()} if "payload" in each else each for each in values]


def path_for_a_digest(values):
    for each in values:
        if each.get("blocks", {}).get("payload_digest"):
            each["blocks"]["payload_digest"] = "../" * 21 + "x"
    return [each for each in values if "payload" not in each]


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_file_that_is_damaged_is_refused_and_changes_nothing(filled, tmp_path, clock, damage):
    other = tmp_path / "other.db"
    Memory.open(other, clock=clock).close()
    before = dump(other)

    with pytest.raises(InvalidInput, match="path = "):
        read_into(other, DAMAGED[damage](written(filled)), clock)

    assert dump(other) == before


@pytest.mark.parametrize("newer", [{"schema": VERSION + 1}, {"format": 2}])
def test_a_file_of_a_newer_graphmem_is_refused(filled, tmp_path, clock, newer):
    head, *lines = written(filled)

    with pytest.raises(SchemaTooNew, match="upgrade"):
        read_into(tmp_path / "b.db", [json.dumps({**json.loads(head), **newer}) + "\n", *lines], clock)


def test_a_file_that_cannot_be_read_is_named(memory, tmp_path):
    for path in (tmp_path, tmp_path / "missing.jsonl"):
        with pytest.raises(StoreFailed, match=path.name):
            memory.import_from("jsonl", path)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40), st.floats(0.01, 1)), max_size=5))
def test_every_text_and_number_comes_back(told):
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder, "a.db"), Path(folder, "b.db")
        with Memory.open(path, clock=FakeClock()) as memory:
            for number, (text, more, confidence) in enumerate(told):
                memory.commit([Triple("a", "b", f"c{number}", sentence=text, confidence=confidence)])
                memory.mirror("s1", [Part(f"m{number}", text=text, author=more)], redact=False)
            lines = written(memory)
        read_into(other, lines, FakeClock())
        assert rows_of(other) == rows_of(path)
        assert text_index_of(other) == text_index_of(path)


def test_a_memory_is_read_as_it_is_written_and_none_is_held(filled):
    """Lines are made one by one: the first is there before the last row was read."""
    with filled._store.read() as tx:
        tally = whole.Tally()
        lines = whole.to_lines(tx, filled.path, "", tally, lambda done, rows: None)
        next(lines), next(lines)
        assert sum(tally.rows.values()) < 2
        assert sum(rows.count(tx, table) for table in rows.tables(tx)) > 50
