"""Connections that are lost, held and exhausted: every acknowledged write is there, and the same memory goes on."""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from conftest import FakeClock

from graphmem import Config, GraphmemError, Memory, Situation, StoreBusy, Triple

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'graphmem[postgres]'")

import psycopg
from postgres_server import SCRIPT, OwnServer, address, fresh_database, why_none

from graphmem.store.postgres import connecting
from graphmem.store.postgres.transaction import PostgresTransaction

IMPATIENT = Config(busy_timeout=0.2)
TORTURE = Path(__file__).parent.parent / "scripts" / "torture.py"


@pytest.fixture(scope="module")
def server():
    with fresh_database() as at:
        yield at


@pytest.fixture(scope="module")
def admin(server):
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection


@pytest.fixture
def memory(server):
    with Memory.open(address("t1", server), clock=FakeClock()) as opened:
        yield opened


@pytest.fixture
def other(server, memory):
    """The same tenant as another process has it."""
    with Memory.open(address("t1", server), config=IMPATIENT, clock=FakeClock()) as opened:
        yield opened


def end_connections(admin):
    """End all connections to the database but the one that asks; return how many there were."""
    ended = admin.execute(
        """SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()"""
    ).fetchall()
    return len(ended)


def say(memory, target, **given):
    return memory.commit([Triple("boss", "likes", target, sentence=f"boss likes {target}.")], **given)


def rows(memory):
    """The objects of all facts, once for each saying."""
    with memory._store.read() as tx:
        found = tx.execute("SELECT target_key FROM evidence ORDER BY id").fetchall()
    return [key for (key,) in found]


def pool(memory):
    return connecting.pool_of(memory._store._address.server)


def free_connections(memory):
    """How many connections may be used at once, now: none has leaked where it is all of them."""
    with contextlib.ExitStack() as stack:
        taken = 0
        while True:
            try:
                connection = pool(memory).getconn(timeout=0.3 if taken >= connecting.MOST_CONNECTIONS else 5)
            except psycopg.OperationalError:
                return taken
            stack.callback(pool(memory).putconn, connection)
            taken += 1


# ---- connections that are ended


def test_a_connection_that_was_ended_between_verbs_is_not_noticed(memory, admin):
    say(memory, "one")
    for number in range(3):
        assert end_connections(admin) >= 1
        say(memory, f"after {number}")
        assert end_connections(admin) >= 1
        assert f"after {number}" in rows(memory)


def test_all_connections_of_the_pool_may_have_been_ended(memory, admin):
    def read():
        with memory._store.read() as tx:
            tx.execute("SELECT 1").fetchone()
            barrier.wait(10)

    barrier = threading.Barrier(connecting.MOST_CONNECTIONS)
    threads = [threading.Thread(target=read) for _ in range(connecting.MOST_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert end_connections(admin) >= connecting.MOST_CONNECTIONS
    say(memory, "all ended")
    assert rows(memory)[-1] == "all ended"
    assert free_connections(memory) == connecting.MOST_CONNECTIONS


def test_what_was_overcome_is_not_logged(memory, admin, caplog):
    memory.remember("first")
    end_connections(admin)

    memory.remember("second")
    gc.collect()

    assert [record.name for record in caplog.records if record.name.startswith("psycopg")] == []


def test_a_connection_that_is_ended_inside_a_block_leaves_nothing(memory, admin):
    before = rows(memory)

    def block():
        with memory._store.write() as tx:
            tx.execute("SELECT 1").fetchone()
            say(memory, "half")
            end_connections(admin)
            say(memory, "other half")

    with pytest.raises(StoreBusy, match="nothing was changed"):
        block()
    assert rows(memory) == before
    say(memory, "whole")
    assert rows(memory) == [*before, "whole"]


def test_a_block_in_which_nothing_was_seen_is_done_again(memory, admin):
    with memory._store.write() as tx:
        tx.execute("INSERT INTO counters VALUES ('blind', 1)")
        tx.connection.settle()
        end_connections(admin)
    with memory._store.read() as tx:
        assert tx.execute("SELECT value FROM counters WHERE name = 'blind'").fetchall() == [(1,)]


@pytest.mark.parametrize("committed", [False, True])
def test_what_became_of_a_commit_whose_answer_was_lost_is_told_truly(memory, admin, monkeypatch, committed):
    """The connection ends before COMMIT reaches the server, or after it was done and before the answer came."""
    before = rows(memory)
    commit = PostgresTransaction.commit

    def lose(tx, was_kept):
        if committed:
            tx.execute("COMMIT")
            tx.settle()
        end_connections(admin)
        commit(tx, was_kept)

    monkeypatch.setattr(PostgresTransaction, "commit", lose)
    if committed:
        say(memory, "kept")
    else:
        with pytest.raises(StoreBusy, match="nothing was changed"):
            say(memory, "lost")
    monkeypatch.undo()

    assert rows(memory) == [*before, *(["kept"] if committed else [])]
    assert memory.check().ok


def test_what_became_of_a_commit_is_not_guessed_where_many_have_written_since(memory, other, admin, monkeypatch):
    commit = PostgresTransaction.commit

    def lose(tx, was_kept):
        monkeypatch.undo()
        end_connections(admin)
        for number in range(33):
            other.declare_scene(f"tool:t{number}")
        commit(tx, was_kept)

    monkeypatch.setattr(PostgresTransaction, "commit", lose)
    with pytest.raises(StoreBusy, match="look whether it is there"):
        say(memory, "who knows")
    assert free_connections(memory) == connecting.MOST_CONNECTIONS


# ---- locks, and connections that others have


def test_a_lock_that_another_holds_for_longer_is_busy(memory, other):
    with memory._store.write() as tx:
        tx.execute("SELECT 1").fetchone()
        with pytest.raises(StoreBusy, match="is locked"):
            in_thread(lambda: say(other, "too early"))
        assert in_thread(lambda: rows(other)) is not None  # who reads does not wait
    say(other, "in time")
    assert rows(memory)[-1] == "in time"


def test_a_rehearsal_that_meets_a_lock_is_busy(memory, other):
    with memory._store.write() as tx:
        tx.execute("SELECT 1").fetchone()
        for verb in (lambda: other.repair(dry_run=True), lambda: other.undo(1, dry_run=True), other.reindex):
            with pytest.raises(StoreBusy, match="is locked"):
                in_thread(verb)


def in_thread(act):
    """Do something in a thread of its own; return what it returns, raise what it raises."""
    told = []

    def run():
        try:
            told.append((True, act()))
        except Exception as error:  # noqa: BLE001
            told.append((False, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    ((fine, value),) = told
    if not fine:
        raise value
    return value


def test_where_all_connections_are_in_use_it_is_busy(memory, other):
    with contextlib.ExitStack() as stack:
        for _ in range(connecting.MOST_CONNECTIONS):
            stack.callback(pool(memory).putconn, pool(memory).getconn(timeout=5))
        with pytest.raises(StoreBusy, match="no connection was free"):
            rows(other)
        with pytest.raises(StoreBusy, match="no connection was free"):
            say(other, "none free")
    say(other, "free again")


# ---- blocks that fail


@pytest.mark.parametrize("statement", ["SELECT no_such_column FROM notes", "INSERT INTO notes(id) VALUES (1)", "SELEC"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_statement_that_fails_leaves_no_connection_behind(memory, statement, waits):
    before = rows(memory)

    def block(transaction):
        with transaction() as tx:
            told = tx.execute(statement)
            if waits:
                told.fetchall()
            tx.execute("SELECT 1")

    for _ in range(connecting.MOST_CONNECTIONS + 1):
        with pytest.raises(GraphmemError):
            block(memory._store.write)
    assert rows(memory) == before
    assert free_connections(memory) == connecting.MOST_CONNECTIONS


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, GeneratorExit])
def test_whatever_ends_a_block_its_connection_is_free(memory, error):
    before = rows(memory)

    def block(transaction):
        with transaction() as tx:
            tx.execute("SELECT pg_sleep(0)")
            tx.execute("UPDATE counters SET value = value + 1")
            raise error

    for transaction in (memory._store.write, memory._store.write):
        for _ in range(connecting.MOST_CONNECTIONS + 1):
            with pytest.raises(error):
                block(transaction)
    assert rows(memory) == before
    assert free_connections(memory) == connecting.MOST_CONNECTIONS


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_an_interrupt_while_the_server_works_ends_the_statement(memory):
    def block():
        with memory._store.write() as tx:
            tx.execute("UPDATE counters SET value = value + 1")
            tx.execute("SELECT pg_sleep(30)").fetchone()

    began = time.monotonic()
    alarm = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    alarm.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            block()
    finally:
        alarm.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 20
    say(memory, "after the interrupt")
    assert free_connections(memory) == connecting.MOST_CONNECTIONS


def test_a_failure_before_a_nested_rehearsal_is_the_one_that_is_told(memory, other):
    def block():
        with other._store.write(), other._store.write(keep=False):
            pass  # the lock was asked for, and not waited for yet

    with memory._store.write() as tx:
        tx.execute("SELECT 1").fetchone()
        with pytest.raises(StoreBusy, match="is locked"):
            in_thread(block)


def test_closing_the_last_memory_leaves_one_connection(server, admin):
    def connections():
        asked = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        return admin.execute(asked).fetchone()[0]

    connecting.close_pools()
    end_connections(admin)
    first, last = (Memory.open(address("t1", server)) for _ in range(2))
    with contextlib.ExitStack() as stack:
        for memory in (first, last, first):
            stack.callback(pool(memory).putconn, pool(memory).getconn(timeout=5))
    first.close()
    first.close()
    assert connections() == 3
    last.close()

    deadline = time.monotonic() + 10
    while connections() > 1 and time.monotonic() < deadline:  # a server takes note of it in its own time
        time.sleep(0.02)
    assert connections() == 1


# ---- processes


def test_a_process_that_was_forked_off_has_connections_of_its_own(server):
    code = f"""
import json, os, warnings
warnings.simplefilter("ignore")
from graphmem import Memory, Triple
memory = Memory.open({address("forked", server)!r})
memory.commit([Triple("boss", "likes", "before")])
children = []
for number in range(3):
    child = os.fork()
    if not child:
        for each in range(5):
            memory.commit([Triple("boss", "likes", f"child {{number}} {{each}}")])
        memory.close()
        os._exit(0)
    children.append(child)
for each in range(5):
    memory.commit([Triple("boss", "likes", f"parent {{each}}")])
states = [os.waitpid(child, 0)[1] for child in children]
memory.commit([Triple("boss", "likes", "after")])
print(json.dumps([states, memory.overview().relations, memory.check().ok]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [[0, 0, 0], 22, True], done.stderr


# ---- a server that is killed


@pytest.fixture(scope="module")
def mortal():
    server = OwnServer(durable=True)
    yield server
    server.stop()


def test_an_open_memory_goes_on_after_the_server_was_killed(mortal):
    with Memory.open(address("t1", mortal.url), clock=FakeClock()) as memory:
        for number in range(3):
            say(memory, f"thing {number}", scenes=["chan:qq"])
            mortal.kill()
            mortal.again()
            assert rows(memory) == [f"thing {each}" for each in range(number + 1)]
        memory.enter_scene(Situation.of(chan="qq"))
        assert memory.check().ok


def test_while_the_server_is_away_it_is_busy(mortal):
    with Memory.open(address("t2", mortal.url), config=IMPATIENT, clock=FakeClock()) as memory:
        say(memory, "thing")
        mortal.kill()
        try:
            with pytest.raises(StoreBusy):
                say(memory, "nowhere")
            with pytest.raises(StoreBusy, match="cannot be reached"):
                Memory.open(address("t2", mortal.url), config=IMPATIENT)
        finally:
            mortal.again()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(StoreBusy):
                say(memory, "again")
                break
        assert rows(memory) == ["thing", "again"]


@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.torture)])
def test_clients_outlive_a_server_that_is_killed_again_and_again(rounds):
    if reason := why_none():
        pytest.skip(reason)
    command = [sys.executable, TORTURE, "server", "--rounds", str(rounds), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["server"]["acknowledged"] > 4 * rounds


def test_a_server_of_a_command_that_fails_is_gone_as_well(server):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # the server has its own user
        ran = subprocess.run(
            [SCRIPT, "run", "sh", "-c", 'echo "$GRAPHMEM_POSTGRES"; exit 7'],
            env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

        assert (ran.returncode, ran.stderr) == (7, "")
        assert list(Path(folder).iterdir()) == []
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(ran.stdout.strip())
