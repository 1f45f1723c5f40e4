"""Copies of whole memories: every row comes, what was broken off goes on, and what differs is found."""

import contextlib
import itertools
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import postgres_server
import pytest
from conftest import FakeClock
from support import HashEmbedder, dump, plant, rows_of, sql, text_index_of
from test_whole import LARGE, everything

from graphmem import (
    Config,
    Conflict,
    GraphmemError,
    InvalidInput,
    Memory,
    Part,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    Triple,
)
from graphmem.exchange import copying
from graphmem.store import rows
from graphmem.store.connection import Connection
from graphmem.store.opening import open_store, tenants_at
from graphmem.store.schema import VERSION

pytestmark = pytest.mark.sqlite  # files are files here, and tenants are named
CLOCK = FakeClock()
# What a program leaves that ends in the middle of a copy.
KILLED = """
import os, sys
from graphmem import Memory
from graphmem.exchange import copying

source, dest, last = sys.argv[1:]
copying._AT_ONCE = 3
Memory.copy(source, dest, progress=lambda done, steps: done < int(last) or os._exit(9))
"""


class Broken(Exception):
    """What ends a copy in the middle."""


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """A memory with rows in most tables, vectors and a payload file included."""
    file = tmp_path_factory.mktemp("model") / "memory.db"
    with Memory.open(file, clock=CLOCK, embedder=HashEmbedder()) as memory:
        everything(memory)
        memory.mirror("gone", [Part("m1", text="It is gone.")])
        memory.delete_session("gone")
        memory.remember("Deploy with pnpm", load_when="发布", labels=["redis"], slot="package manager")
        memory.remember("Deploy with npm", slot="package manager")
        block = memory.put_block("a dog")
        memory.put_document("about a dog", blocks=[block.id])
        memory.commit([Triple("Lin", "likes", "tea"), Triple("Lin Hua", "likes", "tea")])
        memory.merge_entities("Lin Hua", "Lin")
        memory.remember("private", scope="private")
        memory.export_tree(file.with_name("tree"))
        gone = memory.put_block("gone")
        memory.delete_block(gone.id)
    return file


@pytest.fixture
def source(model_file, path):
    """A memory of one's own."""
    shutil.copy(model_file, path)
    shutil.copytree(f"{model_file}.blobs", f"{path}.blobs")
    return path


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "dest.db"


@pytest.fixture(scope="module")
def database():
    """The address of a server with no tenants but those of this module; skips the test where there is none."""
    with postgres_server.fresh_database() as address:
        yield address


@pytest.fixture
def server(database):
    """Return what gives the address of a tenant that is not there yet."""
    numbers = itertools.count()
    return lambda: postgres_server.address(f"{secrets.token_hex(6)}_{next(numbers)}", database)


@pytest.fixture
def small(monkeypatch):
    """Let pages be small, so that a copy takes many transactions."""
    monkeypatch.setattr(copying, "_AT_ONCE", 3)


def assert_same(one, other):
    assert rows_of(other) == rows_of(one)
    assert text_index_of(other) == text_index_of(one)
    for table in ("vectors", "counters", "leases"):
        assert sql(other, f"SELECT * FROM {table} ORDER BY 1") == sql(one, f"SELECT * FROM {table} ORDER BY 1")
    looking = Config(read_only=True)
    with Memory.open(one, config=looking) as first, Memory.open(other, config=looking) as second:
        assert second.check().problems == first.check().problems == ()
        assert [hit.text for hit in second.recall("deploy")] == [hit.text for hit in first.recall("deploy")] != []
        cats = [memory.recall("a large cat", kinds="block")[0].id for memory in (first, second)]
        assert [first.block(cats[0]).payload, second.block(cats[1]).payload] == [LARGE, LARGE]


def break_off(source, dest, after):
    def progress(done, steps):
        if done >= after:
            raise Broken

    with pytest.raises(Broken):
        Memory.copy(source, dest, progress=progress)


def problems(path):
    with Memory.open(path, clock=CLOCK) as memory:
        return memory.check().problems


def is_refused(path, source=""):
    """Tell whether a memory cannot be opened since it is a copy from a source that is not finished."""
    with pytest.raises(
        StoreFailed, match=re.escape(f"a copy from {source}") + ".*not finished.*'graphmem copy' of both"
    ):
        Memory.open(path, clock=CLOCK)
    return True


def whole_of(source):
    """How many steps a copy takes, and how many of them reading takes."""
    told = []
    with contextlib.suppress(Broken):
        Memory.copy(source, source.with_name("steps.db"), progress=lambda *steps: told.append(steps))
    counts = Memory.copy(source, source.with_name("steps.db")).counts
    return told[-1][1], sum(counts.values())


# ---- files


def test_every_row_comes_with_payloads_vectors_and_numbers(source, dest):
    told = []
    before = source.read_bytes()

    report = Memory.copy(source, dest, progress=lambda *steps: told.append(steps))

    assert_same(source, dest)
    assert (report.source, report.path, report.resumed, report.remarks) == (str(source), str(dest), 0, ())
    assert report.counts["notes"] == len(rows_of(source)["notes"])
    assert report.payloads == 2
    assert sql(source, "SELECT COUNT(*) FROM vectors")[0][0] == report.counts["vectors"] > 0
    assert source.read_bytes() == before
    assert not [file for each in (source, dest) for file in each.parent.glob(f"{each.name}-*")]
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]
    assert dest.stat().st_mode & 0o777 == 0o600


def test_the_same_again_finds_nothing_to_do(source, dest):
    first = Memory.copy(source, dest)
    before = dump(dest)

    again = Memory.copy(source, dest)

    assert dump(dest) == before
    assert (again.digest, again.counts) == (first.digest, first.counts)
    assert again.remarks == (f"{dest} is the same already: nothing was copied",)


def test_rows_point_at_tables_before_theirs_but_for_notes(source):
    with contextlib.closing(sqlite3.connect(source, factory=Connection)) as connection:
        order = [table.name for table in rows.with_vectors(connection)]
        keys = {
            (table, column): target
            for table in order
            for _, _, target, column, *_ in connection.execute(f"PRAGMA foreign_key_list({table})")
        }

    later = {key for key, target in keys.items() if order.index(target) >= order.index(key[0])}
    assert later == {copying._LATER}
    assert order.index("tree_files") > max(order.index(name) for name in ("note_labels", "note_triggers"))


def test_numbers_are_not_used_again(source, dest):
    Memory.copy(source, dest)

    for each in (source, dest):
        with Memory.open(each, clock=CLOCK) as memory:
            memory.put_block("new")
            memory.remember("new")
            memory.commit([Triple("new", "is", "new")])
    assert rows_of(dest) == rows_of(source)


def test_a_copy_that_is_broken_off_goes_on_where_it_was(source, tmp_path, small):
    steps, read = whole_of(source)
    resumed = []
    for number, after in enumerate(range(read + 1, steps, (steps - read) // 12)):
        dest = tmp_path / f"dest{number}.db"
        break_off(source, dest, after)
        assert is_refused(dest, source)
        assert any(f"a copy from {source} is not finished" in line for line in Memory.check_copy(dest).problems)

        report = Memory.copy(source, dest)

        assert_same(source, dest)
        assert report.remarks == ()
        resumed.append(report.resumed)
    assert resumed == sorted(resumed)
    assert (resumed[0] < 10, resumed[-1]) == (True, read)


def test_a_copy_that_is_killed_goes_on_where_it_was(source, dest, small):
    _, read = whole_of(source)
    command = [sys.executable, "-c", KILLED, str(source), str(dest), str(read + read // 2)]
    assert subprocess.run(command, check=False).returncode == 9

    report = Memory.copy(source, dest)

    assert 0 < report.resumed < read
    assert_same(source, dest)


# What a program leaves that ends while the file is being made.
MAKING = """
import os, sys
from graphmem import Memory
from graphmem.store import database, fts5

source, dest, where = sys.argv[1:]
setattr(*{"before": (database, "migrate"), "within": (fts5, "create")}[where], lambda *_: os._exit(9))
Memory.copy(source, dest)
"""


@pytest.mark.parametrize("where", ["nothing", "before", "within"])
def test_a_copy_that_is_killed_while_its_file_is_made_begins_anew(source, dest, where):
    if where == "nothing":
        dest.touch()
    else:
        assert subprocess.run([sys.executable, "-c", MAKING, source, dest, where], check=False).returncode == 9
        assert dest.stat().st_size == 4096
    with pytest.raises(StoreFailed, match=f"{dest} is empty: nothing was ever written to it"):
        Memory.open(dest, config=Config(read_only=True))

    report = Memory.copy(source, dest)

    assert (report.resumed, report.remarks) == (0, ())
    assert_same(source, dest)


def test_a_source_that_changed_is_copied_anew(source, dest, small):
    _, read = whole_of(source)
    break_off(source, dest, 2 * read - 2)
    with Memory.open(source, clock=CLOCK) as memory:
        memory.forget(1, hard=True)
        for hit in memory.recall("a large cat", kinds="block"):
            memory.delete_block(hit.id)
    assert list(Path(f"{dest}.blobs").glob("*/*"))

    report = Memory.copy(source, dest)

    told = f"an earlier copy to {dest} of another state of {source} was broken off: it began anew"
    assert (report.resumed, report.remarks) == (0, (told,))
    assert rows_of(dest) == rows_of(source)
    assert list(Path(f"{dest}.blobs").glob("*/*")) == []
    assert problems(dest) == ()


def test_what_is_written_meanwhile_does_not_come(source, dest, small):
    written = []

    def progress(done, steps):
        if done > steps // 2 and not written:
            with Memory.open(source, clock=CLOCK) as memory:
                written.append(memory.remember("meanwhile"))

    before = rows_of(source)

    Memory.copy(source, dest, progress=progress)

    assert written
    assert rows_of(dest) == before


def test_a_copy_that_is_not_finished_is_no_source(source, dest, small):
    _, read = whole_of(source)
    break_off(source, dest, read + 5)

    with pytest.raises(StoreFailed, match=f"{dest} is a copy from {source} that is not finished"):
        Memory.copy(dest, dest.with_name("third.db"))
    assert not dest.with_name("third.db").exists()


@pytest.fixture(params=["file", "server"])
def place(request, dest):
    """Where a copy goes: a file, or a tenant of a server."""
    return dest if request.param == "file" else request.getfixturevalue("server")()


def another(source):
    """Another memory beside a source, with a note."""
    other = source.with_name("other.db")
    with Memory.open(other, clock=CLOCK) as memory:
        memory.remember("another")
    return other


def test_a_copy_that_is_not_finished_is_opened_by_nobody(source, place, small, tmp_path):
    _, read = whole_of(source)
    break_off(source, place, read + 30)

    for looking in (False, True):
        with pytest.raises(StoreFailed, match=f"a copy from {source} that is not finished"):
            Memory.open(place, create=False, config=Config(read_only=looking))
    if place == tmp_path / "dest.db":
        for act in (Memory.file_state, lambda path: Memory.backup_copy(path, tmp_path / "backup.db")):
            with pytest.raises(StoreFailed, match=f"{place} is a copy from {source} that is not finished"):
                act(place)
    assert Memory.copy(source, place).resumed > 0
    assert problems(place) == ()


def test_a_copy_that_an_older_graphmem_did_not_finish_goes_on(source, place, small, monkeypatch):
    _, read = whole_of(source)
    break_off(source, place, read + 30)
    if isinstance(place, Path):
        sql(place, f"PRAGMA user_version = {1 - VERSION}")
    else:
        monkeypatch.setattr("graphmem.store.postgres.tenants._MIGRATIONS", {VERSION - 1: "SELECT 1"})
        with open_store(place, config=Config(), create=False, unfinished=True).write() as tx:
            tx.execute(f"UPDATE store_state SET version = {1 - VERSION}")

    for looking in (False, True):
        with pytest.raises(StoreFailed, match=f"a copy from {source} that is not finished"):
            Memory.open(place, create=False, config=Config(read_only=looking))
    assert Memory.copy(source, place).resumed > 0
    assert problems(place) == ()


def test_who_had_a_memory_open_writes_nothing_into_a_copy_that_is_on_its_way(source, place, small):
    _, read = whole_of(source)
    with Memory.open(place, clock=CLOCK) as memory:
        break_off(source, place, read + 30)
        with pytest.raises(StoreFailed, match=f"a copy from {source} that is not finished"):
            memory.remember("acknowledged")
        with pytest.raises(StoreFailed):  # a server may find the numbers of rows taken before that
            memory.commit([Triple("Lin", "likes", "cake")])

        report = Memory.copy(source, place)

        assert (report.resumed > 0, report.remarks) == (True, ())
        assert memory.remember("acknowledged").note is not None
        assert memory.check().problems == ()


def test_a_copy_from_elsewhere_that_is_not_finished_is_begun_over_only_when_asked_for(source, place, small):
    other = another(source)
    _, read = whole_of(source)
    break_off(source, place, read + 30)

    refused = rf"a copy from {source} that is not finished.*one from {other}.*finish that copy first.*--anew"
    with pytest.raises(Conflict, match=refused):
        Memory.copy(other, place)
    assert Memory.copy(source, place).resumed > 0


def test_a_copy_from_elsewhere_that_is_not_finished_goes_where_that_is_asked_for(source, place, small):
    other = another(source)
    _, read = whole_of(source)
    break_off(source, place, 2 * read - 2)

    report = Memory.copy(other, place, anew=True)

    told = f"an earlier copy to {report.path} from {source} was broken off: it began anew"
    assert (report.resumed, report.remarks) == (0, (told,))
    with Memory.open(place, clock=CLOCK) as memory:
        assert [note.title for note in memory.notes()] == ["another"]
    assert list(Path(f"{place}.blobs").glob("*/*")) == []


def test_what_is_no_unfinished_copy_is_never_begun_over(source, place):
    other = another(source)
    Memory.copy(other, place)

    with pytest.raises(Conflict, match="holds something else"):
        Memory.copy(source, place, anew=True)
    assert Memory.copy(other, place).remarks[0].endswith("nothing was copied")


def test_a_source_that_was_moved_goes_on_where_it_was(source, dest, small):
    _, read = whole_of(source)
    break_off(source, dest, read + 30)
    moved = source.with_name("moved.db")
    source.rename(moved)
    Path(f"{source}.blobs").rename(f"{moved}.blobs")

    assert Memory.copy(moved, dest).resumed > 0
    assert_same(moved, dest)


def test_a_memory_is_restored_over_a_copy_that_is_not_finished(source, dest, small):
    _, read = whole_of(source)
    break_off(source, dest, read + 30)

    report = Memory.restore(source, dest)

    assert_same(source, dest)
    assert is_refused(report.kept, source)
    with pytest.raises(StoreFailed, match=f"{report.kept} is a copy from {source} that is not finished"):
        Memory.restore(report.kept, dest)


def test_two_copies_at_once_do_not_mix(source, dest, small):
    _, read = whole_of(source)
    begun = []

    def progress(done, steps):
        if done > read + 10 and not begun:
            begun.append(Memory.copy(source, dest))

    with pytest.raises(Conflict, match="another copy"):
        Memory.copy(source, dest, progress=progress)
    assert_same(source, dest)


def other_counts(memory):
    memory.remember("something else")


def same_counts(memory):
    memory.edit_note(1, title="another title")


@pytest.mark.parametrize("change", [other_counts, same_counts])
def test_a_memory_that_holds_something_else_takes_no_other_in(source, dest, change):
    Memory.copy(source, dest)
    for each in (source, dest):
        with Memory.open(each, clock=CLOCK) as memory:
            memory.remember("one more")
            if each == dest:
                change(memory)
    before = dump(dest)

    with pytest.raises(Conflict, match=r"holds something else.*name a new file"):
        Memory.copy(source, dest)
    assert dump(dest) == before


def test_a_memory_that_was_only_opened_is_empty(source, dest, tmp_path):
    (tmp_path / "project").mkdir()
    with Memory.open(dest, clock=CLOCK, project=tmp_path / "project", session="s9") as memory:
        assert memory.scopes()

    Memory.copy(source, dest)

    assert_same(source, dest)


@pytest.mark.parametrize("table", ["notes", "scene_features", "vectors", "blocks"])
def test_what_differs_at_the_end_is_found_and_copied_anew(source, dest, monkeypatch, table):
    insert_all = rows.insert_all

    def damaged(tx, into, batch):
        insert_all(tx, into, batch if into.name != table else batch[:-1])

    monkeypatch.setattr(rows, "insert_all", damaged)
    left_out = {"blocks": "DELETE FROM document_blocks"}.get(table)
    if left_out:
        plant(source, left_out)
    with pytest.raises(StoreCorrupt, match=rf"not the same as .*{table}.*copy again"):
        Memory.copy(source, dest)
    assert is_refused(dest, source)
    monkeypatch.undo()

    report = Memory.copy(source, dest)

    told = f"an earlier copy to {dest} came out different from {source}: it began anew"
    assert (report.resumed, report.remarks) == (0, (told,))
    assert rows_of(dest) == rows_of(source)


def test_a_changed_value_of_a_payload_is_found(source, dest, monkeypatch):
    monkeypatch.setattr(copying, "write_blob", lambda *_: None)

    with pytest.raises(StoreCorrupt, match=r"not the same as .*blocks"):
        Memory.copy(source, dest)


def test_a_payload_that_is_missing_is_told(source, dest):
    shutil.rmtree(f"{source}.blobs")

    report = Memory.copy(source, dest)

    assert report.payloads == 1
    (told,) = report.remarks
    assert ("is missing" in told, str(source) in told) == (True, True)


def test_a_row_that_is_refused_is_named_and_the_copy_can_go_on(source, dest, small):
    Memory.open(dest).close()
    sql(dest, "CREATE TRIGGER full BEFORE INSERT ON notes WHEN NEW.id = 5 BEGIN SELECT RAISE(ABORT, 'full'); END")

    _, read = whole_of(source)
    goes_on = rf"\d+ of {read} rows have come and stay: the same copy again goes on behind them"
    with pytest.raises(StoreFailed, match=rf"does not take notes, row 5 of .* \(full\).*; {goes_on}"):
        Memory.copy(source, dest)
    sql(dest, "DROP TRIGGER full")

    assert Memory.copy(source, dest).resumed > 0
    assert_same(source, dest)


def test_what_cannot_be_a_source_makes_no_destination(tmp_path, dest):
    text = tmp_path / "text.db"
    text.write_text("no memory" * 200)
    for source, error in ((tmp_path / "missing.db", StoreFailed), (tmp_path, StoreFailed), (text, StoreCorrupt)):
        with pytest.raises(error, match=source.name):
            Memory.copy(source, dest)
    assert not dest.exists()


@pytest.mark.parametrize("place", [":memory:", "", None, 5])
def test_what_is_no_place_is_named(source, dest, place):
    with pytest.raises(InvalidInput, match=r"^source = .*name a file, or a tenant"):
        Memory.copy(place, dest)
    with pytest.raises(InvalidInput, match=r"^dest = .*name a file, or a tenant"):
        Memory.copy(source, place)


def test_where_nothing_is_to_be_written_nothing_is_copied(source, dest):
    with pytest.raises(Conflict, match="read_only"):
        Memory.copy(source, dest, config=Config(read_only=True))
    assert not dest.exists()


def test_the_names_of_files_lead_back_to_those_of_tenants():
    names = [
        "t1",
        "T1",
        "..",
        ".hidden",
        "a/b",
        "a%2Fb",
        '"; DROP',
        "团队",
        "a.db",
        "con-1",
        f"a~{'0' * 32}",
        "团" * 27,
    ]
    files = [copying.file_of(name) for name in names]

    assert len({file.casefold() for file in files}) == len(names)
    assert [copying.unquote(file.removesuffix(".db")) for file in files] == names
    assert not any(file.startswith(".") or "/" in file for file in files)


@pytest.mark.parametrize("tenant", ["团" * 28, "a" * 245, "😀" * 1000, "-" * 1000])
def test_a_name_of_a_file_that_would_be_too_long_is_cut_short(tmp_path, tenant):
    file = copying.file_of(tenant)

    assert len(file.encode()) in range(240, 248)
    assert copying.file_of(tenant + "a") != file
    Memory.open(tmp_path / file).close()
    assert re.fullmatch(r"([a-z0-9_.-]|%[0-9A-F]{2})+~[0-9a-f]{32}\.db", file)


@pytest.mark.parametrize(("kept", "why"), [(None, "No such file"), (b"another", "of another"), (b"\xff", "no text")])
def test_a_file_whose_tenant_is_not_known_is_named_before_anything_is_copied(tmp_path, server, kept, why):
    file = tmp_path / copying.file_of("a" * 1000)
    Memory.open(tmp_path / "Team.db").close()
    Memory.open(file).close()
    if kept is not None:
        Path(f"{file}.tenant").write_bytes(kept)
    there = server().partition("?")[0]
    before = tenants_at(there, Config())

    with pytest.raises(StoreFailed, match=rf"{file.name}\.tenant, .*{why}.*put it back"):
        Memory.copy_tenants(tmp_path, there)
    assert tenants_at(there, Config()) == before
    file.unlink()
    (report,) = Memory.copy_tenants(tmp_path, there)
    assert report.path.endswith("?tenant=Team")


def test_all_tenants_are_those_of_a_server(tmp_path):
    with pytest.raises(InvalidInput, match="address of a server"):
        Memory.copy_tenants(tmp_path, tmp_path / "other")


# ---- tenants


def test_a_memory_goes_to_a_server_and_comes_back(source, dest, server):
    there, second = server(), server()

    first = Memory.copy(source, there)
    between = Memory.copy(there, second)
    last = Memory.copy(second, dest)

    assert_same(source, dest)
    assert first.digest == between.digest == last.digest
    assert list(Path(f"{dest}.blobs").glob("*/*"))
    with Memory.open(there, clock=CLOCK) as memory:
        assert memory.check().problems == ()
        assert memory.block(memory.recall("a large cat", kinds="block")[0].id).payload == LARGE
        memory.remember("new")


def test_what_is_written_on_a_server_is_numbered_behind_what_came(source, server):
    there = server()
    Memory.copy(source, there)

    told = []
    for each in (source, there):
        with Memory.open(each, clock=CLOCK) as memory:
            told.append((memory.remember("new").note.id, memory.commit([Triple("new", "is", "new")]).relations))
    assert told[0] == told[1]


@pytest.mark.parametrize("back", [False, True])
def test_a_copy_to_or_from_a_server_goes_on_where_it_was(source, dest, server, small, back):
    steps, read = whole_of(source)
    there = server()
    if back:
        Memory.copy(source, there)
    places = (there, dest) if back else (source, there)
    found = []
    for after in range(read + 1, steps, (steps - read) // 4):
        break_off(*places, after)
        found.append(is_refused(places[1]))

    report = Memory.copy(*places)

    assert all(found)
    assert (report.resumed, report.remarks) == (read, ())
    assert problems(places[1]) == ()
    if not back:
        Memory.copy(there, dest)
    assert_same(source, dest)


@pytest.mark.parametrize("back", [False, True])
def test_a_copy_that_a_dead_server_cuts_off_says_what_has_come(source, dest, small, back):
    own = postgres_server.OwnServer(durable=True)
    try:
        there = postgres_server.address("t", own.url)
        if back:
            Memory.copy(source, there)
        places = (there, dest) if back else (source, there)
        _, read = whole_of(source)
        dead = []

        def progress(done, steps):
            if done > read + read // 2 and not dead:
                dead.append(done)
                own.kill()

        told = rf"cannot be reached \(.*\); try again; (\d+) of {read} rows have come and stay: the same copy again"
        with pytest.raises(StoreBusy, match=told) as caught:
            Memory.copy(*places, config=Config(busy_timeout=1), progress=progress)
        own.again()

        report = Memory.copy(*places)

        assert f"; {report.resumed} of {read} rows" in str(caught.value)
        assert (0 < report.resumed < read, report.remarks) == (True, ())
        assert problems(places[1]) == ()
    finally:
        own.stop()


def test_a_text_that_a_server_cannot_keep_is_told_before_anything_is_there(source, server):
    plant(source, "UPDATE notes SET body = 'a' || char(0) WHERE id = 4")
    there = server()

    with pytest.raises(InvalidInput, match=r"notes, row 4: body holds a NUL character, which PostgreSQL"):
        Memory.copy(source, there)
    with pytest.raises(StoreFailed, match="does not exist"):
        Memory.open(there, create=False)


def test_a_key_that_is_too_long_for_a_server_is_named(source, server):
    long = "".join(secrets.token_hex(8) for _ in range(1000))
    with Memory.open(source, clock=CLOCK) as memory, memory._store.write() as tx:
        tx.execute("UPDATE entities SET name = ?, key = ? WHERE id = 1", (long, long))

    with pytest.raises(StoreFailed, match=r"does not take entities, row 1 of .*index") as caught:
        Memory.copy(source, server())
    assert long[:20] not in str(caught.value)


def test_a_tenant_that_is_not_there_is_no_source(dest, server):
    there = server()

    with pytest.raises(StoreFailed, match="does not exist: check the tenant"):
        Memory.copy(there, dest)
    assert not dest.exists()


def test_no_password_is_shown(source, server):
    address = re.sub(r"//([^:@/]*)(:[^@]*)?@", r"//\1:hunter2@", server())

    try:
        told = repr(Memory.copy(source, address)) + repr(problems(address))
    except GraphmemError as error:  # a server that looks at passwords
        told = str(error)
    assert "tenant=" in told
    assert "hunter2" not in told


def test_every_tenant_of_a_server_goes_into_a_folder_and_back(tmp_path):
    names = ["default", "o'dd/Team", "团队", "团队" * 15, "团队" * 15 + "二", "a" * 1000]
    folder = tmp_path / "new" / "all"
    with postgres_server.fresh_database() as one, postgres_server.fresh_database() as other:
        assert (Memory.copy_tenants(one, folder), folder.exists()) == ((), False)
        for name in names:
            with Memory.open(postgres_server.address(name, one), clock=CLOCK) as memory:
                memory.remember(f"note of {name[:40]}", body=name)

        there = Memory.copy_tenants(one, folder)
        back = Memory.copy_tenants(folder, other)
        again = Memory.copy_tenants(one, other)

        assert sorted(tenants_at(other, Config())) == sorted(names)
        for name in names:
            with Memory.open(postgres_server.address(name, other), create=False) as memory:
                assert [note.body for note in memory.notes()] == [name]
    assert sorted(report.path for report in there) == sorted(str(folder / copying.file_of(name)) for name in names)
    cut = [report for report in there if report.remarks]
    assert sorted(report.path for report in cut) == sorted(
        str(folder / file) for file in map(copying.file_of, names) if "~" in file
    )
    for report in cut:
        assert Path(f"{report.path}.tenant").read_text("utf-8") in names
        assert re.search(rf"name of {report.path} is cut short: {report.path}.tenant keeps", report.remarks[0])
    assert len(cut) == 3
    assert {report.digest for report in there} == {report.digest for report in back}
    assert {report.remarks[0].endswith("nothing was copied") for report in again} == {True}


def test_an_address_of_all_tenants_names_none(source, server):
    with pytest.raises(InvalidInput, match="leave the tenant out"):
        Memory.copy_tenants(source.parent, f"{server()}&sslmode=prefer")
    with pytest.raises(InvalidInput, match="leave the tenant out"):
        Memory.copy_tenants(server(), source.parent)


@pytest.mark.parametrize(
    "call", ["Memory.open(server)", "Memory.copy(file, server)", "Memory.copy_tenants(server, '.')"]
)
def test_without_the_extra_what_names_a_server_says_how_to_get_it(model_file, tmp_path, call):
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from graphmem import InvalidInput, Memory\n"
        "file, server = sys.argv[1], 'postgresql://me:secret@localhost/m'\n"
        f"try: {call}\nexcept InvalidInput as error: print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, model_file], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert "pip install 'graphmem[postgres]'" in ran.stdout
    assert "secret" not in ran.stdout
