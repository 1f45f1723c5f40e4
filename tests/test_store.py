"""The store: one file, many openers, and what happens when the file, the disk or another writer says no."""

import ast
import contextlib
import gc
import hashlib
import inspect
import io
import logging
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import another_process, assert_one_line_naming, connecting, refusal, unprivileged

import graphmem.store
from graphmem import (
    Config,
    Conflict,
    GraphmemError,
    InvalidInput,
    Memory,
    Part,
    SchemaTooNew,
    Situation,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    Triple,
)
from graphmem.core.model import Visit
from graphmem.exchange.events import Event
from graphmem.graph.blocks import content_id
from graphmem.store import database
from graphmem.store.schema import APPLICATION_ID, VERSION
from graphmem.store.text_index import Vocabulary

NOBODY = 65534
IMPATIENT = Config(busy_timeout=0.02)
HERE = Situation.of(chan="qq", peer="boss")
FACT = Triple("老大", "偏好", "纯文本", sentence="老大偏好纯文本。")
KEPT, DELETED = (content_id("blk_", "text", "", text) for text in ("排班表", "旧排班表"))
CONSUMED, ARCHIVED = (content_id("doc_", text) for text in ("一段对话", "另一段对话"))
TALK = Path(__file__).parent.parent / "fixtures" / "talk.jsonl"
OBSERVED = Path(__file__).parent.parent / "fixtures" / "observed.jsonl"
BACKUP = "memory.db.before-reset-20260907T080000Z"  # of the clock that stands still


def of_two(verb, **options):
    """Two entities are merged, or kept apart; when an earlier verb has merged them, that is told."""
    try:
        return verb("老大", "纯文本", **options)
    except Conflict as error:
        if "one entity" not in str(error):
            raise


WRITES = {
    "enter_scene": lambda memory: memory.enter_scene(HERE, declared=["chan:qq"]),
    "declare_scene": lambda memory: memory.declare_scene("tool:shell"),
    "tag_scene": lambda memory: memory.tag_scene("chan:webui", [1]),
    "untag_scene": lambda memory: memory.untag_scene("chan:qq", [1]),
    "rename_scene": lambda memory: memory.rename_scene("auto:peer:boss_chan:qq", "auto:boss"),
    "drop_scene": lambda memory: memory.drop_scene("tool:shell", below=True),
    "reset_scenes": lambda memory: memory.reset_scenes(),
    "commit": lambda memory: memory.commit([FACT], scenes=["chan:qq"]),
    "edit_relation": lambda memory: memory.edit_relation(1, confidence=0.5),
    "delete_relation": lambda memory: memory.delete_relation(1, hard=True),
    "purge": lambda memory: memory.purge(relation="偏好"),
    "dedupe_scenes": lambda memory: memory.dedupe_scenes(),
    "merge_entities": lambda memory: of_two(memory.merge_entities),
    "keep_apart": lambda memory: of_two(memory.keep_apart),
    "upkeep": lambda memory: memory.upkeep(),
    "undo": lambda memory: memory.undo(1),
    "replay": lambda memory: memory.replay([Event(source="qq", facts=(FACT,))]),
    "put_block": lambda memory: memory.put_block("截图", scenes=["chan:qq"]),
    "delete_block": lambda memory: memory.delete_block(DELETED),
    "put_document": lambda memory: memory.put_document("新的对话", scenes=["chan:qq"]),
    "query_documents": lambda memory: memory.query_documents("对话"),
    "consume_document": lambda memory: memory.consume_document(CONSUMED),
    "archive_document": lambda memory: memory.archive_document(ARCHIVED, [FACT]),
    "remember": lambda memory: memory.remember("Deploy with pnpm", slot="deploy"),
    "propose": lambda memory: memory.propose('[{"title": "The panel is red", "body": "all of it"}]'),
    "forget": lambda memory: memory.forget(2),
    "restore_note": lambda memory: memory.restore_note(3),
    "approve": lambda memory: memory.approve(4),
    "reject": lambda memory: memory.reject(5),
    "edit_note": lambda memory: memory.edit_note(1, body="Never npm."),
    "export_tree": lambda memory: memory.export_tree(tempfile.mkdtemp()),
    "sync_tree": lambda memory: memory.sync_tree(tempfile.mkdtemp()),
    "mirror": lambda memory: memory.mirror("s1", [Part(id="m2", text="Then deploy it.")]),
    "checkpoint": lambda memory: memory.checkpoint("s1", wait=False),
    "harvest": lambda memory: memory.harvest(TALK),
    "consolidate": lambda memory: memory.consolidate(force=True, allow_shrink=True),
    "distill": lambda memory: (
        memory.mirror("s8", [Part("d1", tool="bash", text="make", outcome="done")]),
        memory.distill(force=True),
    ),
    "import_from": lambda memory: memory.import_from("mcp-memory", OBSERVED),
    "delete_parts": lambda memory: memory.delete_parts("s1", "m2"),
    "delete_session": lambda memory: (memory.mirror("s9", [Part("m1", text="x")]), memory.delete_session("s9")),
    "record_failure": lambda memory: memory.record_failure("bash", "exit 1", scope="work"),
    "remind": lambda memory: memory.remind("s1", "以后都用中文回答"),
    "forget_incident": lambda memory: memory.forget_incident(1),
    "reindex": lambda memory: memory.reindex(),
    "scan_secrets": lambda memory: memory.scan_secrets(redact=True),
    "repair": lambda memory: memory.repair(),
}
READS = {
    "match_scenes": lambda memory: memory.match_scenes(HERE),
    "scene": lambda memory: memory.scene("chan:qq"),
    "scenes": lambda memory: memory.scenes(),
    "scopes": lambda memory: memory.scopes(),
    "evidence": lambda memory: memory.evidence(),
    "tag_scene dry": lambda memory: memory.tag_scene("chan:qq", glob="老*", dry_run=True),
    "untag_scene dry": lambda memory: memory.untag_scene("chan:qq", glob="老*", dry_run=True),
    "rename_scene dry": lambda memory: memory.rename_scene("chan:qq", "chan:tencent", dry_run=True),
    "drop_scene dry": lambda memory: memory.drop_scene("chan:qq", below=True, dry_run=True),
    "reset_scenes dry": lambda memory: memory.reset_scenes(dry_run=True),
    "scene_health": lambda memory: memory.scene_health(),
    "recall_by_scene": lambda memory: memory.recall_by_scene("chan:qq"),
    "recall_by_situation": lambda memory: memory.recall_by_situation(HERE, declared=["chan:qq"]),
    "recall": lambda memory: memory.recall("纯文本"),
    "history": lambda memory: memory.history("部署"),
    "jobs": lambda memory: memory.jobs(),
    "consolidate dry": lambda memory: memory.consolidate(force=True, dry_run=True),
    "distill dry": lambda memory: memory.distill(force=True, dry_run=True),
    "sessions": lambda memory: memory.sessions(),
    "part": lambda memory: memory.part("m1"),
    "parts": lambda memory: memory.parts("s1"),
    "neighbours": lambda memory: memory.neighbours("老大"),
    "graph": lambda memory: memory.graph(),
    "picture": lambda memory: memory.picture(),
    "draw": lambda memory: memory.draw(),
    "export_to": lambda memory: memory.export_to("jsonl", io.StringIO()),
    "shortest_path": lambda memory: memory.shortest_path("老大", "纯文本"),
    "block": lambda memory: memory.block(KEPT),
    "brief": lambda memory: memory.brief(HERE, query="纯文本", declared=["chan:qq"]),
    "brief with a checkpoint": lambda memory: memory.brief(HERE, checkpoint=""),
    "tool_brief": lambda memory: memory.tool_brief(HERE, "shell"),
    "purge dry": lambda memory: memory.purge(session="s1", dry_run=True),
    "growth": lambda memory: memory.growth(),
    "overview": lambda memory: memory.overview(),
    "incidents": lambda memory: memory.incidents(),
    "review_entities": lambda memory: memory.review_entities(),
    "kept_apart": lambda memory: memory.kept_apart(),
    "settle_entities left": lambda memory: memory.settle_entities(lambda pair: None),
    "dedupe_scenes dry": lambda memory: memory.dedupe_scenes(dry_run=True),
    "merge_entities dry": lambda memory: of_two(memory.merge_entities, dry_run=True),
    "upkeep dry": lambda memory: memory.upkeep(dry_run=True),
    "operations": lambda memory: memory.operations(),
    "notes": lambda memory: memory.notes(),
    "ledger": lambda memory: memory.ledger(),
    "inspect": lambda memory: memory.inspect(),
    "rules_for": lambda memory: memory.rules_for(HERE, tool="shell"),
    "scan_secrets left": lambda memory: memory.scan_secrets(),
}
# They do all their work under the lock and keep nothing of it.
REHEARSALS = {
    "import_from dry": lambda memory: memory.import_from("mcp-memory", OBSERVED, dry_run=True),
    "undo dry": lambda memory: memory.undo(1, dry_run=True),
    "repair dry": lambda memory: memory.repair(dry_run=True),
    "export_tree dry": lambda memory: memory.export_tree("/nowhere/tree", dry_run=True),
    "sync_tree dry": lambda memory: memory.sync_tree("/nowhere/tree", dry_run=True),
    "check": lambda memory: memory.check(),
}
VERBS = WRITES | READS | REHEARSALS
NO_VERBS = {
    "backup",
    "backup_copy",
    "check_copy",
    "check_source",
    "close",
    "copy",
    "copy_tenants",
    "embed",
    "file_state",
    "looking",
    "observe",
    "open",
    "path",
    "preview_dedupe",
    "project",
    "find_transcripts",
    "read_log",
    "read_turns",
    "restore",
    "run_jobs",
    "session",
    "start_upkeep",
    "start_checkpoints",
    "turn",
    "verify_forgotten",
    "watch",
    "watch_tree",
}

each_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
each_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
each_read = pytest.mark.parametrize("read", READS.values(), ids=READS)


def plant_twin(memory, key):
    """Write a scene whose key is not canonical, as an older engine would have."""
    with memory._store.write() as tx:
        tx.execute(
            """INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at)
               VALUES (?, 3, 0, 'declared', '2026-09-01T00:00:00.000Z', '2026-09-01T00:00:00.000Z')""",
            (key,),
        )


def fill(memory):
    """A bit of everything: in a scene and outside, a dedupe that can be undone, twins for another."""
    memory.commit([FACT], scenes=["chan:qq"], session="s1", turn=1)
    memory.remember("Deploy with npm", slot="deploy")
    for title in ("The panel is blue", "The panel is green"):
        memory.remember(title)
    memory.forget(3)
    for title in ("Never force push", "Never deploy on friday"):
        memory.remember(title, kind="rule")
    memory.mirror("s1", [Part(id="m1", author="boss", text="部署用什么？")])
    memory.record_failure("bash", "rm: cannot remove 'a'")
    memory.enter_scene(HERE)
    memory.enter_scene(HERE)
    plant_twin(memory, "chan:QQ")
    memory.dedupe_scenes()
    memory.declare_scene("tool:shell")
    plant_twin(memory, "tool:Shell")
    for text in ("排班表", "旧排班表"):
        memory.put_block(text, scenes=["chan:qq"])
    for text in ("一段对话", "另一段对话"):
        memory.put_document(text, scenes=["chan:qq"])


@pytest.fixture
def filled(memory: Memory) -> Memory:
    fill(memory)
    return memory


@pytest.fixture
def filled_path(path: Path, clock) -> Path:
    with Memory.open(path, clock=clock) as memory:
        fill(memory)
    return path


@pytest.fixture
def impatient(filled_path: Path, clock) -> Iterator[Memory]:
    with Memory.open(filled_path, config=IMPATIENT, clock=clock) as memory:
        yield memory


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@contextlib.contextmanager
def raw(path):
    """A connection that graphmem knows nothing of."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        yield connection


def rows(path):
    """Everything that another process would read."""
    with raw(path) as connection:
        return list(connection.iterdump())


def scalar(path, sql):
    with raw(path) as connection:
        return connection.execute(sql).fetchone()[0]


def strength(memory, key):
    return next(scene.strength for scene in memory.scenes() if scene.key == key)


def unprivileged_refusal(act):
    return unprivileged(lambda: refusal(act))


def folder_state(folder):
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "no file"
        for file in sorted(folder.iterdir())
    }


def handles(folder):
    """The open descriptors of this process on files in a folder."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists the others
            found.append(str(descriptor.readlink()))
    return [name for name in found if name.startswith(str(folder))]


def living():
    """How many objects there are of what an open memory is made of."""
    gc.collect()
    return Counter(type(each) for each in gc.get_objects() if type(each) in (Memory, database.SqliteStore, Vocabulary))


def graphmem_process(path, code):
    """Run code with an open `memory` in a process of its own; return what it prints."""
    script = f"import sys\nfrom graphmem import *\nwith Memory.open(sys.argv[1]) as memory:\n    {code}"
    return subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    ).stdout.strip()


def connect_with(monkeypatch, kind):
    monkeypatch.setattr(sqlite3, "connect", connecting(kind))


# ---- the file


def test_the_table_of_verbs_is_complete():
    public = {name for name, _ in inspect.getmembers_static(Memory) if not name.startswith("_")} - NO_VERBS

    assert {name.split()[0] for name in VERBS} == public


def test_a_new_file_is_stamped_and_in_write_ahead_mode(memory, path):
    assert scalar(path, "PRAGMA application_id") == APPLICATION_ID
    assert scalar(path, "PRAGMA user_version") == VERSION
    assert scalar(path, "PRAGMA journal_mode") == "wal"


def test_every_table_is_strict(memory, path):
    with raw(path) as connection:
        tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE type = 'table'").fetchall()

    ours = {name: strict for name, strict in tables if not name.startswith(("sqlite_", "_sqlite_migrations"))}
    assert {"notes", "sessions", "parts", "text_sizes"} <= ours.keys()  # the tables of FTS5 are of other types
    assert {"scenes", "scene_features", "scene_refs", "situation_evidence", "relations", "entities"} <= ours.keys()
    assert [name for name, strict in ours.items() if not strict] == []


def test_every_integer_id_is_autoincrement(memory, path):
    with raw(path) as connection:
        made = connection.execute(
            """SELECT t.name, t.sql FROM sqlite_master t JOIN pragma_table_info(t.name) c
               JOIN pragma_table_list l ON l.name = t.name AND l.type = 'table'
               WHERE t.name NOT LIKE 'sqlite_%' AND t.name <> '_sqlite_migrations'
               AND c.name = 'id' AND c.type = 'INTEGER' AND c.pk"""
        ).fetchall()

    assert len(made) >= 5
    assert [name for name, sql in made if "AUTOINCREMENT" not in sql] == []


def test_an_id_is_never_used_twice(memory):
    memory.declare_scene("chan:a")
    with memory._store.write() as tx:
        (first,) = tx.execute("SELECT id FROM scenes WHERE key = 'chan:a'").fetchone()
        tx.execute("DELETE FROM scene_features")
        tx.execute("DELETE FROM scenes")
    memory.declare_scene("chan:b")

    with memory._store.read() as tx:
        assert tx.execute("SELECT id FROM scenes WHERE key = 'chan:b'").fetchone()[0] > first


@pytest.mark.parametrize("reopened", [False, True])
def test_foreign_keys_are_on_in_every_connection(path, reopened):  # MRG-07
    with Memory.open(path) as memory:
        if not reopened:
            assert_foreign_keys_on(memory)
    with Memory.open(path) as memory:
        assert_foreign_keys_on(memory)


def assert_foreign_keys_on(memory):
    told = []

    def read():
        with memory._store.read() as tx:
            told.append(tx.execute("PRAGMA foreign_keys").fetchone()[0])

    with memory._store.write() as tx:
        told.append(tx.execute("PRAGMA foreign_keys").fetchone()[0])
    read()
    in_thread(read)
    assert told == [1, 1, 1]


def in_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_an_orphan_is_refused(memory):  # MRG-07
    with pytest.raises(StoreFailed), memory._store.write() as tx:
        tx.execute("INSERT INTO scene_features(scene_id, feature, weight) VALUES (999, 'chan:qq', 1.0)")


@pytest.mark.parametrize("durable", [False, True])
def test_durable_syncs_every_commit(path, durable):
    with Memory.open(path, config=Config(durable=durable)) as memory, memory._store.write() as tx:
        synchronous = tx.execute("PRAGMA synchronous").fetchone()[0]

    assert synchronous == (2 if durable else 1)


@pytest.mark.parametrize("umask", [0o000, 0o022], ids=oct)
def test_only_the_owner_may_read_the_files(path, umask):
    before = os.umask(umask)
    try:
        with Memory.open(path) as memory:
            memory.declare_scene("chan:qq")
            modes = {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in path.parent.iterdir()}
    finally:
        os.umask(before)

    assert modes == {"memory.db": "0o600", "memory.db-wal": "0o600", "memory.db-shm": "0o600"}


def test_a_file_made_behind_a_link_is_the_owners_too(path, tmp_path):
    target = tmp_path / "target.db"
    path.symlink_to(target)

    with Memory.open(path):
        pass

    assert oct(stat.S_IMODE(target.stat().st_mode)) == "0o600"


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "a%20b.db", "a#b.db", "a?mode=ro.db", "记忆.db", "file:x.db"])
def test_a_name_is_taken_as_it_is(tmp_path, name):
    with Memory.open(tmp_path / name) as memory:
        memory.declare_scene("chan:qq")

    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert scalar(tmp_path / name, "SELECT key FROM scenes") == "chan:qq"


def test_a_memory_without_file_makes_none(tmp_path, monkeypatch, clock):
    monkeypatch.chdir(tmp_path)

    with Memory.open(":memory:", clock=clock) as memory:
        fill(memory)
        in_thread(lambda: memory.commit([Triple("a1", "b1", "c1")]))
        assert memory.recall("a1")[0].text == "a1 b1 c1"

    assert list(tmp_path.iterdir()) == []


# ---- many openers


def test_six_processes_make_one_new_file_at_once(path):
    script = """if True:
        import sys
        from graphmem import Memory, Triple
        print("ready", flush=True)
        sys.stdin.readline()
        with Memory.open(sys.argv[1]) as memory:
            memory.commit([Triple("p" + sys.argv[2], "opened", "file")], scenes=["chan:qq"])"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]

    assert errors == [""] * 6
    assert [process.returncode for process in processes] == [0] * 6
    assert scalar(path, "SELECT COUNT(*) FROM relations") == 6
    assert scalar(path, "SELECT COUNT(*) FROM scenes") == 1
    assert scalar(path, "SELECT COUNT(*) FROM _sqlite_migrations") == VERSION


def test_a_current_file_opens_and_reads_while_another_process_writes(filled_path):
    with another_process(filled_path, "BEGIN IMMEDIATE"), Memory.open(filled_path, config=IMPATIENT) as memory:
        assert len(memory.recall_by_scene("chan:qq").relations) == 1


def test_a_current_file_opens_without_the_heavy_packages(filled_path):
    loaded = graphmem_process(filled_path, "print({'sqlite_utils', 'numpy', 'networkx'} & sys.modules.keys())")

    assert loaded == "set()"


def test_a_current_file_is_opened_by_seven_statements_that_write_nothing(filled_path, monkeypatch):
    told = []

    class Traced(sqlite3.Connection):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.set_trace_callback(told.append)

    connect_with(monkeypatch, Traced)
    before = Path(filled_path).read_bytes()
    with Memory.open(filled_path) as memory:
        opening = [line for line in told if not line.startswith("--")]  # what a statement runs within
        told.clear()
        with memory._store.read():
            reading = told[:]

    assert len(opening) == 7
    assert all(line.startswith("PRAGMA") or "user_version" in line for line in opening)
    assert [line for line in reading if not line.startswith("PRAGMA")] == ["BEGIN"]
    assert len(reading) == 6
    assert Path(filled_path).read_bytes() == before


def test_objects_and_processes_on_one_file_see_each_others_writes(path, clock):
    with Memory.open(path, clock=clock) as one, Memory.open(path, clock=clock) as two:
        one.commit([Triple("a1", "b1", "c1")], scenes=["chan:qq"])
        two.commit([Triple("a2", "b2", "c2")], scenes=["chan:qq"])
        graphmem_process(path, "memory.commit([Triple('a3', 'b3', 'c3')], scenes=['chan:qq'])")

        for memory in (one, two):
            found = {relation.subject for relation in memory.recall_by_scene("chan:qq").relations}
            assert found == {"a1", "a2", "a3"}


def test_a_scene_that_grew_in_another_process_is_joined(path, clock):
    with Memory.open(path, clock=clock) as memory:
        memory.enter_scene(Situation.of(chan="webui"))
        graphmem_process(path, "[memory.enter_scene(Situation.of(chan='qq', peer='boss')) for _ in range(2)]")

        assert memory.enter_scene(HERE).strength == 2


def test_many_threads_end_with_the_right_counts(path):
    threads, rounds = 4, 25
    errors = []

    def work(memory, number):
        try:
            for turn in range(rounds):
                memory.commit([Triple(f"t{number}", "counts", f"n{turn}"), FACT], scenes=["chan:qq"])
                memory.declare_scene("chan:qq")
                memory.enter_scene(HERE)
                assert memory.recall_by_scene("chan:qq", limit=500).relations
        except (GraphmemError, AssertionError) as error:
            errors.append(error)

    with Memory.open(path) as one, Memory.open(path) as two:
        running = [threading.Thread(target=work, args=((one, two)[n % 2], n)) for n in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

        assert errors == []
        assert len(one.recall_by_scene("chan:qq", limit=500).relations) == threads * rounds + 1
        assert scalar(path, "SELECT COUNT(*) FROM evidence") == 2 * threads * rounds
        # The first commit makes the scene with strength 1; each declaration adds one.
        assert strength(one, "chan:qq") == threads * rounds + 1
        # The first visit is evidence, the second makes the scene with strength 1.
        assert strength(one, "auto:peer:boss_chan:qq") == threads * rounds - 1


# ---- transactions


def test_a_write_block_is_one_transaction(memory, path):
    with memory._store.write() as tx:
        tx.execute("INSERT INTO active_days VALUES ('2026-01-01')")
        assert scalar(path, "SELECT COUNT(*) FROM active_days") == 0

    assert scalar(path, "SELECT COUNT(*) FROM active_days") == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failing_write_block_leaves_nothing(memory, path, error):
    def fail():
        with memory._store.write() as tx:
            tx.execute("INSERT INTO active_days VALUES ('2026-01-01')")
            raise error

    with pytest.raises(error):
        fail()

    assert not memory._store._writer.in_transaction
    assert scalar(path, "SELECT COUNT(*) FROM active_days") == 0


def test_nested_write_blocks_roll_back_alone(memory, path):
    insert = "INSERT INTO active_days VALUES (?)"

    with memory._store.write() as tx:
        tx.execute(insert, ("2026-01-01",))
        with contextlib.suppress(ValueError), memory._store.write() as inner:
            inner.execute(insert, ("2026-01-02",))
            with memory._store.write() as innermost:
                innermost.execute(insert, ("2026-01-03",))
            raise ValueError
        with memory._store.write() as inner:
            inner.execute(insert, ("2026-01-04",))
            with contextlib.suppress(StoreFailed), memory._store.write() as innermost:
                innermost.execute(insert, ("2026-01-05",))
                innermost.execute(insert, ("no day",))
        tx.execute(insert, ("2026-01-06",))

    with raw(path) as connection:
        days = [day for (day,) in connection.execute("SELECT day FROM active_days ORDER BY day")]
    assert days == ["2026-01-01", "2026-01-04", "2026-01-06"]


def test_an_outer_failure_takes_the_nested_blocks_with_it(memory, path):
    def fail():
        with memory._store.write():
            with memory._store.write() as inner:
                inner.execute("INSERT INTO active_days VALUES ('2026-01-01')")
            raise ValueError("outer")

    with pytest.raises(ValueError, match="outer"):
        fail()

    assert scalar(path, "SELECT COUNT(*) FROM active_days") == 0


def test_a_failing_commit_leaves_no_transaction_open(memory, path):
    def commit_an_orphan():
        with memory._store.write() as tx:
            tx.execute("PRAGMA defer_foreign_keys = ON")
            tx.execute("INSERT INTO scene_aliases VALUES ('chan:x', 999)")

    with pytest.raises(StoreFailed):
        commit_an_orphan()
    assert not memory._store._writer.in_transaction

    memory.declare_scene("chan:qq")
    assert scalar(path, "SELECT COUNT(*) FROM scenes") == 1
    assert scalar(path, "SELECT COUNT(*) FROM scene_aliases") == 0


def test_a_read_block_sees_one_unchanging_state(memory, path):
    with Memory.open(path) as other, memory._store.read() as tx:
        before = tx.execute("SELECT COUNT(*) FROM scenes").fetchone()
        other.declare_scene("chan:qq")

        with memory._store.read() as nested:
            assert nested.execute("SELECT COUNT(*) FROM scenes").fetchone() == before
    assert len(memory.scenes()) == 1


def test_a_read_block_within_a_write_block_sees_its_rows(memory):
    with memory._store.write() as tx:
        tx.execute("INSERT INTO active_days VALUES ('2026-01-01')")
        with memory._store.read() as reader:
            assert reader.execute("SELECT COUNT(*) FROM active_days").fetchone()[0] == 1


def test_a_read_block_cannot_write(memory):
    with pytest.raises(StoreFailed), memory._store.read() as tx:
        tx.execute("INSERT INTO active_days VALUES ('2026-01-01')")

    memory.declare_scene("chan:qq")


@each_write
def test_a_writing_verb_takes_the_lock_before_it_reads(filled, write):  # CON-02
    statements = []
    filled._store._writer.set_trace_callback(statements.append)

    write(filled)

    begins = [statement for statement in statements if statement.startswith("BEGIN")]
    assert statements[0] == "BEGIN IMMEDIATE"
    assert set(begins) == {"BEGIN IMMEDIATE"}
    assert statements.count("COMMIT") == len(begins)


def test_a_write_after_a_read_succeeds_though_another_wrote_between(path, clock):  # CON-02
    with Memory.open(path, clock=clock) as one, Memory.open(path, clock=clock) as two:
        with one._store.read() as tx:
            tx.execute("SELECT COUNT(*) FROM relations").fetchone()
            two.commit([Triple("a2", "b2", "c2")])
            one.commit([Triple("a1", "b1", "c1")])

        assert scalar(path, "SELECT COUNT(*) FROM relations") == 2


# ---- a file that is in use


def test_a_writer_waits_for_another_and_then_saves(filled_path, clock):  # CON-01
    waiting = threading.Event()

    with Memory.open(filled_path, clock=clock) as memory, raw(filled_path) as other:
        other.execute("BEGIN IMMEDIATE")
        memory._store._writer.set_trace_callback(lambda statement: waiting.set())
        writer = threading.Thread(target=memory.declare_scene, args=["chan:new"])
        writer.start()
        assert waiting.wait(5)
        assert writer.is_alive()
        other.execute("ROLLBACK")
        writer.join()
        assert strength(memory, "chan:new") == 1


@each_write
def test_a_locked_file_is_busy_and_nothing_is_written(impatient, filled_path, write):  # CON-01
    before = rows(filled_path)

    with another_process(filled_path, "BEGIN IMMEDIATE"), pytest.raises(StoreBusy, match="locked") as caught:
        write(impatient)

    assert_one_line_naming(filled_path, str(caught.value))
    assert isinstance(caught.value, TimeoutError)
    assert rows(filled_path) == before
    write(impatient)


def test_a_locked_file_can_be_read(impatient, filled_path):
    with another_process(filled_path, "BEGIN IMMEDIATE"):
        for read in READS.values():
            read(impatient)


@each_write
def test_a_write_block_of_another_thread_is_busy(impatient, filled_path, write):
    before = rows(filled_path)
    caught = []

    with impatient._store.write():
        in_thread(lambda: caught.append(refusal(lambda: write(impatient))))

    assert [kind for kind, _ in caught] == ["StoreBusy"]
    assert_one_line_naming(filled_path, caught[0][1])
    assert rows(filled_path) == before


def test_a_write_block_of_another_thread_does_not_stop_readers(impatient):
    caught = []

    with impatient._store.write():
        for read in READS.values():
            in_thread(lambda read=read: caught.append(refusal(lambda: read(impatient))))

    assert caught == [None] * len(READS)


def test_readers_of_a_memory_without_file_do_not_wait_for_ever():
    caught = []

    with Memory.open(":memory:", config=IMPATIENT) as memory:
        reader = threading.Thread(target=lambda: caught.append(refusal(memory.scenes)))
        with memory._store.write():
            reader.start()
            reader.join(1)
            answered = list(caught)
        reader.join()

    assert [kind for kind, _ in answered] == ["StoreBusy"]


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_new_file_that_is_locked_is_busy(path, lock):
    path.touch()

    with another_process(path, lock), pytest.raises(StoreBusy) as caught:
        Memory.open(path, config=IMPATIENT)

    assert_one_line_naming(path, str(caught.value))
    assert path.read_bytes() == b""


def test_a_file_locked_for_readers_too_is_busy(filled_path):
    with raw(filled_path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")

    with another_process(filled_path, "BEGIN EXCLUSIVE"), pytest.raises(StoreBusy) as caught:
        Memory.open(filled_path, config=IMPATIENT)

    assert_one_line_naming(filled_path, str(caught.value))


# ---- files that cannot be used


def newer(path):
    with raw(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_newer_file_is_refused_and_untouched(filled_path, mode):  # SCH-01
    newer(filled_path)
    with raw(filled_path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    before = folder_state(filled_path.parent)

    with pytest.raises(SchemaTooNew) as caught:
        Memory.open(filled_path)

    assert_one_line_naming(filled_path, str(caught.value))
    words = str(caught.value).replace(str(filled_path), "").replace(",", " ").replace(":", " ").split()
    assert {str(VERSION), str(VERSION + 1)} <= set(words)
    assert folder_state(filled_path.parent) == before
    assert handles(filled_path.parent) == []


def test_a_newer_file_that_is_in_use_is_untouched(filled_path):  # SCH-01
    with another_process(filled_path, f"PRAGMA user_version = {VERSION + 1}", "CREATE TABLE new(x)"):
        before = {file: file.read_bytes() for file in (filled_path, filled_path.with_name("memory.db-wal"))}

        with pytest.raises(SchemaTooNew):
            Memory.open(filled_path)

        assert {file: file.read_bytes() for file in before} == before


def other_program(path, *statements, mode="DELETE"):
    with raw(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        for statement in statements or ("CREATE TABLE bookmarks(url)",):
            connection.execute(statement)


def text_file(path):
    path.write_text("no database\n" * 100)


def truncated(path):
    with Memory.open(path) as memory:
        memory.declare_scene("chan:qq")
    os.truncate(path, path.stat().st_size // 2)


UNUSABLE = {
    "folder": (lambda path: path.mkdir(), StoreFailed),
    "text": (text_file, StoreCorrupt),
    "one letter": (lambda path: path.write_text("x"), StoreCorrupt),  # SQLite takes a file of one byte for empty
    "short text": (lambda path: path.write_text("hi"), StoreCorrupt),
    "truncated": (truncated, StoreCorrupt),
    "first bytes only": (lambda path: path.write_bytes(b"SQLite format 3\0"), StoreCorrupt),
    "database of another program": (other_program, StoreFailed),
    "the same in write-ahead mode": (lambda path: other_program(path, mode="WAL"), StoreFailed),
    "version of another program": (lambda path: other_program(path, "PRAGMA user_version = 7"), StoreFailed),
    "stamp of another program": (lambda path: other_program(path, "PRAGMA application_id = 1"), StoreFailed),
    "named pipe": (os.mkfifo, StoreFailed),
}


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(("make", "error"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_is_no_memory_is_refused_and_unchanged(path, make, error, create):
    make(path)
    before = folder_state(path.parent)

    with pytest.raises(error) as caught:
        Memory.open(path, create=create)

    assert_one_line_naming(path, str(caught.value))
    assert folder_state(path.parent) == before
    assert handles(path.parent) == []


@pytest.mark.parametrize(
    ("name", "create"),
    [
        ("unknown.db", False),
        ("missing/memory.db", True),
        ("missing/memory.db", False),
        ("file/memory.db", True),
        ("x" * 300, True),
        ("x" * 255, True),  # a possible name, but that of its -wal is not
    ],
)
def test_a_path_that_cannot_be_made_is_refused(tmp_path, name, create):
    (tmp_path / "file").touch()

    with pytest.raises(StoreFailed) as caught:
        Memory.open(tmp_path / name, create=create)

    assert_one_line_naming(tmp_path / name, str(caught.value))
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("bad", ["", "  ", "a\0b.db", "\ud800.db", None, 7, b"memory.db"])
def test_a_path_that_is_none_is_invalid(tmp_path, monkeypatch, bad):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidInput, match=r"^path = "):
        Memory.open(bad)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize("permissions", [0o000, 0o444], ids=oct)
@pytest.mark.parametrize("folder_permissions", [0o777, 0o555], ids=oct)
def test_a_file_without_permission_is_refused_and_unchanged(public_folder, mode, permissions, folder_permissions):
    path = public_folder / "memory.db"
    with Memory.open(path) as memory:
        memory.declare_scene("chan:qq")
    with raw(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    before = folder_state(public_folder)
    path.chmod(permissions)
    public_folder.chmod(folder_permissions)

    def write():
        with Memory.open(path) as memory:
            memory.declare_scene("chan:qq")

    kind, message = unprivileged_refusal(write)

    public_folder.chmod(0o777)
    path.chmod(0o600)
    assert kind == "StoreFailed"
    assert_one_line_naming(path, message)
    assert folder_state(public_folder) == before


@pytest.mark.parametrize("known", [True, False])
def test_a_folder_that_may_not_be_written_is_refused(public_folder, known):
    path = public_folder / "memory.db"
    if known:
        with Memory.open(path):
            pass
        path.chmod(0o666)
    before = folder_state(public_folder)
    public_folder.chmod(0o555)

    def write():
        with Memory.open(path) as memory:
            memory.declare_scene("chan:qq")

    kind, message = unprivileged_refusal(write)

    public_folder.chmod(0o777)
    assert kind == "StoreFailed"
    assert_one_line_naming(path, message)
    assert folder_state(public_folder) == before


@pytest.mark.parametrize("create", [True, False])
def test_a_folder_that_may_not_be_entered_is_refused(public_folder, create):
    path = public_folder / "memory.db"
    public_folder.chmod(0o000)

    kind, message = unprivileged_refusal(lambda: Memory.open(path, create=create).close())

    public_folder.chmod(0o777)
    assert kind == "StoreFailed"
    assert_one_line_naming(path, message)
    assert list(public_folder.iterdir()) == []


# ---- a migration that fails


def state_of(path):
    with raw(path) as connection:
        tables = frozenset(name for (name,) in connection.execute("SELECT name FROM sqlite_master"))
        versions = connection.execute(
            "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
        ).fetchone()
    return tables, versions


def test_a_migration_that_fails_anywhere_is_undone_and_done_later(tmp_path, monkeypatch):  # SCH-02
    with Memory.open(tmp_path / "whole.db"):
        pass
    nothing, everything = (frozenset(), (0, 0)), state_of(tmp_path / "whole.db")
    seen = []

    class Failing(sqlite3.Connection):
        """Refuses the n-th statement that changes schema or settings, or begins or ends a transaction."""

        left = 0

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.set_authorizer(self.authorize)

        def authorize(self, action, *_):
            if action in (
                sqlite3.SQLITE_CREATE_TABLE,
                sqlite3.SQLITE_CREATE_INDEX,
                sqlite3.SQLITE_PRAGMA,
                sqlite3.SQLITE_TRANSACTION,
            ):
                Failing.left -= 1
                if Failing.left == 0:
                    return sqlite3.SQLITE_DENY
            return sqlite3.SQLITE_OK

    for number in range(1, 500):
        path = tmp_path / f"{number}.db"
        Failing.left = number
        with monkeypatch.context() as patch:
            connect_with(patch, Failing)
            refused = refusal(lambda path=path: Memory.open(path).close())
        if Failing.left > 0:
            break
        seen.append(state_of(path))
        assert refused is not None
        assert seen[-1] in (nothing, everything), f"half a schema after fault {number}"
        with Memory.open(path) as memory:
            memory.declare_scene("chan:qq")
        assert state_of(path) == everything

    assert seen.count(nothing) > 20


def test_a_disk_that_is_full_during_the_migration_leaves_an_empty_file(path, monkeypatch):  # SCH-02, SCH-06
    class Full(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.execute("PRAGMA max_page_count = 8")

    with monkeypatch.context() as patch:
        connect_with(patch, Full)
        with pytest.raises(StoreFailed, match="full") as caught:
            Memory.open(path)

    assert_one_line_naming(path, str(caught.value))
    assert state_of(path) == (frozenset(), (0, 0))
    with Memory.open(path) as memory:
        assert memory.declare_scene("chan:qq").created


# ---- a disk or a file system that fails


def set_page_limit(memory, pages):
    memory._store._writer.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_is_named_and_nothing_is_lost(filled, path):  # SCH-06
    before = rows(path)
    set_page_limit(filled, 1)  # SQLite makes it the present size

    with pytest.raises(StoreFailed, match="full") as caught:
        filled.commit([Triple("big", "fills", f"disk {n}", sentence="x" * 5000 + str(n)) for n in range(50)])

    assert_one_line_naming(path, str(caught.value))
    assert isinstance(caught.value, OSError)
    assert not filled._store._writer.in_transaction
    assert rows(path) == before
    assert filled.recall("纯文本")[0].text.endswith(FACT.sentence)

    set_page_limit(filled, 1_000_000)
    assert filled.commit([Triple("small", "fits", "now")]).created == 1


def test_a_visit_lost_to_a_full_disk_is_not_counted(filled, path):  # SCH-06
    before = strength(filled, "auto:peer:boss_chan:qq")
    set_page_limit(filled, 1)
    topics = [f"{n}" * 600 for n in range(20)]

    def fill_the_disk():
        for turn in range(500):
            filled.enter_scene(Situation.of(chan=f"c{turn // 2}", peer=f"p{turn // 2}", topics=topics))

    with pytest.raises(StoreFailed, match="full"):
        fill_the_disk()

    set_page_limit(filled, 1_000_000)
    assert filled.enter_scene(HERE).strength == before + 1


def no_wal(answer):
    """A connection whose file system cannot do write-ahead logging: an error, or another mode as the answer."""

    class Connection(sqlite3.Connection):
        def execute(self, sql, *parameters):
            if "journal_mode" in sql.lower() and "wal" in sql.lower():
                if isinstance(answer, int):
                    error = sqlite3.OperationalError("no write-ahead log")
                    error.sqlite_errorcode = answer
                    raise error
                return super().execute(f"SELECT '{answer}'")
            return super().execute(sql, *parameters)

    return Connection


@pytest.mark.parametrize(
    "answer", ["delete", sqlite3.SQLITE_IOERR, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_PROTOCOL]
)
def test_without_write_ahead_log_one_warning_and_all_works(path, clock, monkeypatch, caplog, answer):  # CON-07
    with monkeypatch.context() as patch:
        connect_with(patch, no_wal(answer))
        with Memory.open(path, clock=clock) as memory:
            fill(memory)
            for verb in VERBS.values():
                if verb is not WRITES["undo"]:
                    verb(memory)
            in_thread(lambda: memory.declare_scene("chan:thread"))

    warnings = [(record.name, record.levelno) for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == [("graphmem", logging.WARNING)]
    assert_one_line_naming(path, caplog.text.rstrip("\n"))
    assert scalar(path, "PRAGMA journal_mode") == "delete"
    with Memory.open(path, clock=clock) as memory:
        assert memory.recall("纯文本")[0].text.endswith(FACT.sentence)
        assert strength(memory, "chan:thread") == 1


@each_verb
def test_no_verb_lets_a_raw_error_out(filled, path, verb):
    with raw(path) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        # A virtual table takes its shadow tables along.
        tables = connection.execute("SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')").fetchall()
        for (name,) in tables:
            if name.startswith("sqlite_"):
                continue
            connection.execute(f"DROP TABLE {name}")

    with pytest.raises(StoreFailed) as caught:
        verb(filled)

    assert_one_line_naming(path, str(caught.value))
    assert not filled._store._writer.in_transaction


@each_verb
def test_damage_is_told_by_every_verb(filled_path, verb):
    with raw(filled_path) as connection:
        roots = [page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 1")]
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with filled_path.open("r+b") as stream:
        for page in roots:
            stream.seek((page - 1) * size)
            stream.write(b"\xff" * size)

    with pytest.raises(StoreCorrupt) as caught, Memory.open(filled_path) as memory:
        verb(memory)

    assert_one_line_naming(filled_path, str(caught.value))


HUGE = 2**70  # more than the 64 bits of an INTEGER
UNSTORABLE = {
    "undo": lambda memory: memory.undo(HUGE),
    "operations": lambda memory: memory.operations(limit=HUGE),
    "recall": lambda memory: memory.recall("纯文本", limit=HUGE),
    "recall query": lambda memory: memory.recall("纯文本\ud800\0 \ud800"),
    "remember": lambda memory: memory.remember("\ud800", body="\0", slot="\ud800", labels=["\0"], scope="\ud800"),
    "mirror": lambda memory: memory.mirror("\ud800", [Part(id="\ud800", author="\0", text="\0\ud800")]),
    "delete_parts": lambda memory: memory.delete_parts("s1", "\ud800"),
    "delete_session": lambda memory: memory.delete_session("\ud800"),
    "history": lambda memory: memory.history("纯文本", session="\ud800"),
    "part": lambda memory: memory.part("\ud800", session="\ud800"),
    "part number": lambda memory: memory.part(HUGE),
    "tag_scene": lambda memory: memory.tag_scene("chan:qq", [HUGE]),
    "untag_scene": lambda memory: memory.untag_scene("chan:qq", [HUGE]),
    "rename_scene": lambda memory: memory.rename_scene("chan:qq", "chan:\ud800\0"),
    "drop_scene": lambda memory: memory.drop_scene("chan:\ud800\0"),
    "reset_scenes": lambda memory: memory.reset_scenes(backup="\ud800"),
    "recall_by_scene": lambda memory: memory.recall_by_scene("chan:qq", limit=HUGE),
    "turn": lambda memory: memory.commit([FACT], turn=HUGE),
    "session": lambda memory: memory.commit([FACT], session="\ud800"),
    "scope": lambda memory: memory.commit([FACT], scope="\ud800"),
    "source": lambda memory: memory.commit([FACT], source="\ud800"),
    "scopes": lambda memory: memory.recall_by_scene("chan:qq", scopes=["\ud800"]),
}


@pytest.mark.parametrize("verb", UNSTORABLE.values(), ids=UNSTORABLE)
def test_a_value_that_sqlite_cannot_hold_is_no_raw_error(filled, path, verb):
    before = rows(path)

    with contextlib.suppress(GraphmemError):  # refused by name, or taken in some other form
        verb(filled)
        return
    assert rows(path) == before


# ---- the end


@each_verb
def test_a_closed_memory_refuses_every_verb(filled, path, verb):
    filled.close()

    with pytest.raises(Conflict, match="closed") as caught:
        verb(filled)

    assert_one_line_naming(path, str(caught.value))


def test_closing_twice_does_nothing(memory):
    memory.close()
    memory.close()


def test_closing_waits_for_a_write_block_of_another_thread(memory, path):
    writing, go = threading.Event(), threading.Event()

    def write():
        with memory._store.write() as tx:
            writing.set()
            go.wait(5)
            tx.execute("INSERT INTO active_days VALUES ('2026-01-01')")

    threads = [threading.Thread(target=write), threading.Thread(target=memory.close)]
    threads[0].start()
    assert writing.wait(5)
    threads[1].start()
    threads[1].join(0.05)
    go.set()
    for thread in threads:
        thread.join()

    assert scalar(path, "SELECT COUNT(*) FROM active_days") == 1


def test_closing_while_another_thread_reads_does_not_kill_the_process(path):
    """SQLite's memory is gone under a running statement when its connection is closed: the reader dies of SIGSEGV."""
    script = """if True:
        import sys, threading
        from graphmem import GraphmemError, Memory
        reading, go = threading.Event(), threading.Event()
        memory = Memory.open(sys.argv[1])
        def pause():
            reading.set()
            go.wait(5)
        def read():
            try:
                with memory._store.read() as tx:
                    tx.create_function("pause", 0, pause)
                    tx.execute("SELECT pause() FROM counters").fetchall()
            except GraphmemError:
                pass
        threads = [threading.Thread(target=read), threading.Thread(target=memory.close)]
        threads[0].start()
        assert reading.wait(5)
        threads[1].start()
        threads[1].join(0.05)
        go.set()
        for thread in threads:
            thread.join()
        print("alive")"""

    ended = subprocess.run([sys.executable, "-c", script, str(path)], check=False, capture_output=True, text=True)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("alive\n", "", 0)


def test_no_handle_is_left_after_close(path, clock):  # BAK-07
    with Memory.open(path, clock=clock) as memory:
        fill(memory)
        for verb in VERBS.values():
            if verb is not WRITES["undo"]:
                verb(memory)
            in_thread(memory.scenes)
        assert handles(path.parent)

    assert handles(path.parent) == []
    assert sorted(file.name for file in path.parent.iterdir()) == ["memory.db", BACKUP]


def test_the_readers_of_ended_threads_are_let_go(memory, path):
    """A server that makes a thread for each request must not run out of descriptors."""
    for _ in range(3):
        in_thread(memory.scenes)
    few = len(handles(path.parent))

    for _ in range(30):
        in_thread(memory.scenes)

    assert len(handles(path.parent)) <= few


# ---- no plain file access to an open file (CON-06)


@pytest.mark.parametrize(
    "module", sorted(Path(graphmem.store.__file__).parent.glob("*.py")), ids=lambda module: module.name
)
def test_only_copies_and_blobs_read_files_plainly(module):  # a blob is never a database
    readers = {"open", "read_bytes", "read_text", "write_bytes", "write_text", "copy", "copy2", "copyfile", "mmap"}
    found = []
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
            found += sorted(names & {"shutil", "mmap", "io"})
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            # O_EXCL makes a new file, which nobody has open.
            if name in readers and "O_EXCL" not in ast.unparse(node):
                found.append(ast.unparse(node))

    # placing.py writes drafts of its own making, scripts.py reads what is shipped: neither is a memory.
    assert bool(found) == (module.name in ("blobs.py", "copies.py", "placing.py", "scripts.py"))


def test_no_verb_opens_the_live_files_plainly(filled_path):
    """sqlite3 opens files below Python, so the audit hook sees nothing but plain opens."""
    script = """if True:
        import sys
        from graphmem import *
        path, opened = sys.argv[1], []
        def hook(event, args):
            if event in ("open", "os.rename", "os.remove", "os.chmod", "os.truncate") and str(args[0]).startswith(path):
                opened.append(str(args[0]))
        sys.addaudithook(hook)
        situation = Situation.of(chan="qq", peer="boss")
        with Memory.open(path) as memory, Memory.open(path, create=False) as other:
            memory.enter_scene(situation, declared=["chan:qq"])
            memory.commit([Triple("a1", "b1", "c1")], scenes=["chan:qq"])
            memory.tag_scene("chan:x", glob="a*")
            memory.match_scenes(situation), memory.scenes(), memory.evidence(), memory.operations()
            memory.recall_by_scene("chan:qq"), memory.recall_by_situation(situation), memory.recall("a1")
            memory.remember("a1"), memory.mirror("s1", [Part(id="m1", text="a1")]), memory.reindex()
            memory.dedupe_scenes(), memory.dedupe_scenes(dry_run=True)
            try:
                Memory.preview_dedupe(path)
            except Conflict:
                print("refused", opened)"""

    told = subprocess.run(
        [sys.executable, "-c", script, str(filled_path)], check=True, capture_output=True, text=True
    ).stdout

    assert told == "refused []\n"


@pytest.mark.parametrize("how", ["path", "text", "symlink", "hard link", "relative"])
def test_a_preview_of_an_open_file_is_a_conflict(memory, path, tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.db"
    if how == "symlink":
        other.symlink_to(path)
    elif how == "hard link":
        other.hardlink_to(path)
    named = {"path": path, "text": str(path), "relative": path.name}.get(how, other)

    with pytest.raises(Conflict, match="open in this process"):
        Memory.preview_dedupe(named)


def test_a_preview_is_a_conflict_until_the_last_memory_is_closed(path):
    with Memory.open(path):
        with Memory.open(path) as second:
            second.declare_scene("chan:qq")
        with pytest.raises(Conflict):
            Memory.preview_dedupe(path)

    assert Memory.preview_dedupe(path).scenes_before == 1


def test_a_preview_is_a_conflict_while_another_thread_opens_the_file(path, monkeypatch):
    caught = []

    class Opening(sqlite3.Connection):
        def execute(self, sql, *parameters):
            if sql == "BEGIN IMMEDIATE":
                caught.append(refusal(lambda: Memory.preview_dedupe(path)))
            return super().execute(sql, *parameters)

    connect_with(monkeypatch, Opening)
    Memory.open(path).close()

    assert [kind for kind, _ in caught] == ["Conflict"]


def test_a_failed_open_does_not_count_as_open(filled_path):
    newer(filled_path)
    with pytest.raises(SchemaTooNew):
        Memory.open(filled_path)

    with pytest.raises(SchemaTooNew):  # and not Conflict: it reads the file
        Memory.preview_dedupe(filled_path)


def test_a_memory_that_was_dropped_does_not_count_as_open(filled_path):
    script = "import sys\nfrom graphmem import Memory\nMemory.open(sys.argv[1])\nMemory.preview_dedupe(sys.argv[1])"

    subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(filled_path)], check=True)


# ---- many stores


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors where the system lists them")
def test_many_files_in_turn_leave_nothing_behind(tmp_path):
    def use(number):
        with Memory.open(tmp_path / f"{number}.db") as memory:
            memory.commit([FACT], scenes=["chan:qq"])
            memory.recall_by_scene("chan:qq")
            memory.recall("偏好")

    use(0)
    before = living()
    threads = threading.active_count()
    counted = dict(database._open_files)
    for number in range(1, 30):
        use(number)
        assert handles(tmp_path) == []
        assert database._open_files == counted

    assert threading.active_count() == threads
    assert living() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors where the system lists them")
def test_many_open_files_take_three_handles_each_and_two_more_for_each_thread_that_reads(tmp_path):
    with contextlib.ExitStack() as stack:
        memories = [stack.enter_context(Memory.open(tmp_path / f"{number}.db")) for number in range(20)]
        for memory in memories:
            memory.commit([FACT], scenes=["chan:qq"])
        assert len(handles(tmp_path)) == 3 * len(memories)

        for memory in memories:
            memory.recall_by_scene("chan:qq")
        assert len(handles(tmp_path)) == 5 * len(memories)

        for _ in range(10):  # SQLite keeps the handle of a thread that has ended, and gives it to the next one
            for memory in memories:
                in_thread(lambda memory=memory: memory.recall_by_scene("chan:qq"))
        assert len(handles(tmp_path)) <= 7 * len(memories)
    assert handles(tmp_path) == []


def test_a_refused_preview_costs_no_rows(memory, path):
    """The scene of the case: plain reads in the writing process made later writes vanish for all others."""
    memory.declare_scene("chan:a")
    with pytest.raises(Conflict):
        Memory.preview_dedupe(path)
    graphmem_process(path, "memory.declare_scene('chan:b')")
    memory.declare_scene("chan:c")

    seen_by_others = graphmem_process(path, "print(sorted(scene.key for scene in memory.scenes()))")
    assert seen_by_others == "['chan:a', 'chan:b', 'chan:c']"
    assert sorted(scene.key for scene in memory.scenes()) == ["chan:a", "chan:b", "chan:c"]


# ---- read-only

READ_ONLY = Config(read_only=True)
# They write beside what they answer, and answer all the same.
ANSWERING = {"enter_scene", "query_documents"}


@pytest.fixture
def looking(filled_path: Path, clock) -> Iterator[Memory]:
    with Memory.open(filled_path, config=READ_ONLY, clock=clock) as memory:
        yield memory


def bytes_of(path):
    """The bytes of a memory and its -wal, where an empty -wal is none."""
    return [hashlib.sha256(part.read_bytes()).hexdigest() for part in parts_of(path)]


def parts_of(path):
    return [part for part in (path, path.with_name(f"{path.name}-wal")) if part.exists() and part.stat().st_size]


@pytest.fixture
def crashed_path(filled_path: Path, tmp_path) -> Path:
    """A memory whose last commit is in the log alone, as a process leaves it that was killed."""
    with Memory.open(filled_path) as memory:
        memory.declare_scene("chan:late")
        (tmp_path / "crashed").mkdir()
        for part in parts_of(filled_path):
            shutil.copy(part, tmp_path / "crashed" / part.name)
    assert len(parts_of(tmp_path / "crashed" / filled_path.name)) == 2
    return tmp_path / "crashed" / filled_path.name


@pytest.mark.parametrize("name", sorted(WRITES.keys() - ANSWERING))
def test_a_read_only_memory_refuses_to_write(looking, filled_path, name):
    before = rows(filled_path), folder_state(filled_path.parent)

    with pytest.raises(Conflict, match="read-only") as caught:
        WRITES[name](looking)

    assert "read_only" in str(caught.value)
    assert_one_line_naming(filled_path, str(caught.value))
    assert (rows(filled_path), folder_state(filled_path.parent)) == before


@pytest.mark.parametrize("name", READS | REHEARSALS)
def test_a_read_only_memory_answers_as_another(filled_path, clock, name):
    answers = []
    for config in (Config(), READ_ONLY):
        with Memory.open(filled_path, config=config, clock=clock) as memory:
            answer = (READS | REHEARSALS)[name](memory)
        answers.append(answer.problems if name == "check" else list(answer.edges) if name == "graph" else answer)

    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ["filled_path", "crashed_path"])
def test_no_byte_of_a_read_only_memory_changes(request, clock, name):
    path = request.getfixturevalue(name)
    before = bytes_of(path)

    with Memory.open(path, config=READ_ONLY, clock=clock) as memory:
        for act in VERBS.values():
            with contextlib.suppress(Conflict):
                act(memory)
        known = {scene.key for scene in memory.scenes()}
        assert bytes_of(path) == before

    assert bytes_of(path) == before
    assert ("chan:late" in known) == (name == "crashed_path")


def test_a_large_rehearsal_leaves_no_byte_behind(filled_path, clock):
    with Memory.open(filled_path, clock=clock) as memory:
        for number in range(60):
            memory.remember(f"note {number}", body=f"{number} words " * 4000)
        memory.reset_scenes(backup=filled_path.with_name("backup.db"))
    before = bytes_of(filled_path)

    with Memory.open(filled_path, config=READ_ONLY, clock=clock) as memory, memory._store.write(keep=False) as tx:
        tx.execute("PRAGMA cache_size = 10")
        tx.execute("UPDATE notes SET body = body || 'x'")
        assert bytes_of(filled_path) == before

    assert bytes_of(filled_path) == before


def test_a_read_only_memory_tells_the_scene_that_would_be_joined(looking, filled_path, clock):
    told = looking.enter_scene(HERE, declared=["chan:qq", "tool:never"])

    assert (told.key, told.created, told.declared_created) == ("auto:peer:boss_chan:qq", False, ())
    assert (told.strength, told.similarity) == (strength(looking, told.key), 1.0)
    with Memory.open(filled_path, clock=clock) as memory:
        joined = memory.enter_scene(HERE, declared=["chan:qq", "tool:never"])
    assert (told.key, told.similarity, told.keys, told.write_keys) == (
        joined.key, joined.similarity, joined.keys, joined.write_keys
    )  # fmt: skip
    assert joined.strength == told.strength + 1


def test_a_read_only_memory_tells_no_scene_where_none_would_be_joined(looking):
    stranger = Situation.of(chan="mail", peer="ann")

    for _ in range(3):
        assert looking.enter_scene(stranger, declared=["chan:mail"]).keys == ("chan:mail", "chan:mail/peer:ann")
    assert looking.enter_scene(stranger) == Visit()
    assert "mail" not in str(looking.evidence())


def test_an_alias_leads_a_read_only_memory_to_its_scene(path, clock):
    with Memory.open(path, clock=clock) as memory:
        memory.declare_scene("chan:qq")
        memory.rename_scene("chan:qq", "chan:tencent")
    with Memory.open(path, config=READ_ONLY) as memory:
        assert memory.enter_scene(Situation(), declared="chan:qq").keys == ("chan:tencent",)


def test_documents_of_a_read_only_memory_are_not_counted(looking):
    assert [looking.query_documents("对话")[0].access_count for _ in range(2)] == [0, 0]


def test_a_turn_of_a_read_only_memory_reads_and_does_not_learn(looking, caplog):
    with looking.turn(Event(source="qq", payload={"user_id": "boss"}, text="纯文本")) as turn:
        assert turn.visit.key == "auto:peer:boss_chan:qq"
        turn.tool("shell")
        assert turn.brief().text
        assert turn.recall("纯文本")
        with pytest.raises(Conflict, match="read-only"):
            turn.commit([FACT])

    assert caplog.text == ""


@pytest.mark.parametrize(
    "act",
    [
        lambda memory: memory.start_upkeep(),
        lambda memory: memory.replay([Event(source="qq")]),
        lambda memory: memory._store.sync(),
        lambda memory: memory._store.checkpoint(),
    ],
)
def test_a_read_only_memory_does_not_begin_what_writes(looking, act):
    with pytest.raises(Conflict, match="read-only"):
        act(looking)


def test_a_read_only_memory_can_be_backed_up(looking, tmp_path):
    looking.backup(tmp_path / "copy.db")

    assert Memory.check_copy(tmp_path / "copy.db").problems == looking.check().problems


def test_a_backup_is_read_where_it_lies(looking, tmp_path):
    looking.backup(tmp_path / "copy.db")
    before = bytes_of(tmp_path / "copy.db")

    with Memory.open(tmp_path / "copy.db", config=READ_ONLY) as memory:
        assert memory.recall_by_scene("chan:qq")
        assert memory.check().remarks == ()

    assert bytes_of(tmp_path / "copy.db") == before


def test_others_write_while_a_read_only_memory_is_open(looking, filled_path):
    with Memory.open(filled_path) as memory:
        memory.declare_scene("chan:new")

    assert "chan:new" in {scene.key for scene in looking.scenes()}


def test_a_read_only_memory_is_not_made(path):
    with pytest.raises(StoreFailed, match="does not exist"):
        Memory.open(path, config=READ_ONLY)
    with pytest.raises(InvalidInput, match="read_only"):
        Memory.open(":memory:", config=READ_ONLY)
    assert list(path.parent.iterdir()) == []


def test_a_read_only_memory_is_not_migrated(filled_path):
    with raw(filled_path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION - 1}")
    before = bytes_of(filled_path)

    with pytest.raises(StoreFailed, match=r"older graphmem.*without read_only"):
        Memory.open(filled_path, config=READ_ONLY)

    assert bytes_of(filled_path) == before
    assert handles(filled_path.parent) == []


def test_who_finds_a_file_that_is_just_being_made_waits_for_it(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as maker:
        maker.execute("PRAGMA journal_mode = WAL")
        maker.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.2, maker.execute, ["ROLLBACK"])
        ending.start()
        with Memory.open(path, config=IMPATIENT) as memory:
            ending.join()
            maker.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy):
                memory.remember("Busy")
