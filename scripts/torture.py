#!/usr/bin/env python3
"""Torture of graphmem: what is promised must hold when processes die, crowd and meet a full disk.

crash    A child process enters, commits, merges, dedupes, tags, undoes and keeps upkeep at random, until it is killed
         with SIGKILL at a random moment. After each round: the file passes `check`, every write that was acknowledged
         is there, every operation is wholly there or wholly not.
server   A PostgreSQL server is killed with SIGKILL, all its processes, and started anew, while four processes act on
         one tenant as in `crash`. Each of them goes on by itself with the memory it has open; after all every write
         that was acknowledged is there once, none that was told as failed, every operation is wholly there or not.
writers  Processes that write at once, readers and an upkeep loop beside them. Every write is there, nobody failed, the
         longest wait is told.
digest   A child process digests a session while it goes on, and is killed between the question to a writer and the end
         of the job. After all: each message is in exactly one checkpoint, in order.
tree     A child process remembers, edits notes, writes files and syncs both, until it is killed. After each round no
         file is a half one; after all a sync completes, and every note and every file that was acknowledged is on
         both sides, once, in its last version.
imports  A child process takes in the file or the folder of another memory, and is killed. Done again it goes on, and
         after all the memory holds what one holds that nobody killed, row for row.
disk     A file that cannot grow: no room left (a limit of pages, and a small tmpfs where it may be mounted), and writes
         that fail (a limit of the file size). No acknowledged write is lost, the file stays whole, and it goes on when
         there is room again.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import hashlib
import importlib.util
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphmem import Config, Conflict, GraphmemError, Memory, NotFound, Part, Situation, StoreBusy, StoreFailed, Triple
from graphmem.core.checkpoints import SECTION_BYTES
from graphmem.exchange.tree_forms import form_of

PATIENT = Config(busy_timeout=30.0)
DIGESTING = Config(busy_timeout=30.0, checkpoint_input_bytes=1500)
LONGEST_WAIT = 2.0
PEOPLE = [f"person {name}" for name in "abcdef"]
CHANNELS = ["qq", "mail", "door"]
TABLES = {"scenes", "entities", "relations"}  # whose ids are never used twice


class Failure(Exception):
    """A promise that was not kept."""


def rows(path: Path | str, statement: str, *parameters: object) -> list[Any]:
    if isinstance(path, str):
        return tenant_rows(path, statement, *parameters)
    with contextlib.closing(sqlite3.connect(path, timeout=30.0)) as connection:
        return connection.execute(statement, parameters).fetchall()


# ---- crash


def act(memory: Memory, rng: random.Random, session: str, number: int) -> tuple[str, object]:
    """Do one thing at random; return what must be found afterwards."""
    kind = rng.choices(
        ["commit", "enter", "merge", "dedupe", "undo", "upkeep", "tag", "edit", "delete"], [8, 4, 1, 1, 2, 1, 1, 1, 1]
    )[0]
    here = Situation.of(chan=rng.choice(CHANNELS), peer=rng.choice(PEOPLE), topics=[f"t{rng.randrange(9)}"])
    if kind == "commit":
        facts = [
            Triple(
                rng.choice(PEOPLE), rng.choice(["likes", "owns"]), f"thing {rng.randrange(30)}", sentence=f"s{number}"
            )
        ]
        memory.commit(facts, scenes=here.derived_key, session=session, turn=number)
        return kind, number
    if kind == "enter":
        key = f"tool:{session}-{number}"
        memory.enter_scene(here, declared=[key])
        return kind, key
    with contextlib.suppress(Conflict, NotFound, StoreBusy):  # a pass that was killed holds its lease for a while
        if kind == "merge":
            return "operation", memory.merge_entities(*rng.sample(PEOPLE, 2)).operation
        if kind == "dedupe":
            with memory._store.write() as tx:  # a twin, as another program would write it
                at = "2026-01-01T00:00:00.000Z"
                tx.execute(
                    """INSERT INTO scenes(key, origin, created_at, updated_at)
                       SELECT key, 'declared', CAST(? AS TEXT), CAST(? AS TEXT) FROM (SELECT CAST(? AS TEXT) AS key) s
                       WHERE key NOT IN (SELECT key FROM scene_aliases UNION SELECT key FROM scenes)""",
                    (at, at, f"chan:{rng.choice(CHANNELS).upper()}"),
                )
                return "operation", memory.dedupe_scenes().operation
        if kind == "undo":
            number = rng.choice([one.id for one in memory.operations(limit=5)] or [1])
            memory.undo(number)
            return "undone", number
        if kind == "upkeep":
            memory.upkeep(allow_shrink=True)
        relation = rng.randrange(1, 60)
        if kind == "tag":
            memory.tag_scene(f"chan:{rng.choice(CHANNELS)}", [relation])
        if kind == "edit":
            return "operation", memory.edit_relation(relation, confidence=rng.choice([0.2, 0.5, 0.9])).operation
        if kind == "delete":
            return "operation", memory.delete_relation(relation).operation
    return "nothing", None


def crash_child(path: Path, seed: int, session: str) -> None:
    """Act until killed; write a line for each thing done, after it was done."""
    rng = random.Random(seed)
    with Memory.open(path, config=PATIENT) as memory:
        print(json.dumps(["open", None]), flush=True)
        for number in range(1_000_000):
            print(json.dumps(act(memory, rng, session, number)), flush=True)


def crash(rounds: int, seed: int) -> dict[str, object]:
    rng = random.Random(seed)
    done = 0
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder:
        path = Path(folder) / "memory.db"
        kept: dict[str, list[tuple[str, object]]] = {}
        for each in range(rounds):
            session = f"r{each}"
            command = [sys.executable, __file__, "crash-child", str(path), str(rng.randrange(10**9)), session]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                child.stdout.readline()
                time.sleep(rng.uniform(0.0, 0.25))
                child.kill()
                lines = child.stdout.read().splitlines()
            if child.returncode != -signal.SIGKILL:
                raise Failure(f"round {each}: the child ended by itself, with {child.returncode}")
            kept[session] = [tuple(json.loads(line)) for line in lines if line.endswith("]")]
            done += len(kept[session])
            try:
                verify(path, {session: kept[session]} if each < rounds - 1 else kept)
            except Failure as failure:
                shutil.copytree(folder, f"/tmp/graphmem-torture-{seed}-{each}", dirs_exist_ok=True)  # noqa: S108
                raise Failure(f"round {each}, seed {seed}: {failure}") from None
            progress("crash", each + 1, rounds)
    return {"rounds": rounds, "acknowledged": done}


def verify(path: Path | str, acknowledged: dict[str, list[tuple[str, object]]]) -> None:
    with Memory.open(path, config=PATIENT) as memory:
        memory.dedupe_scenes()  # an undo brings twins back
        report = memory.check()
        if not report.ok:
            raise Failure(f"check: {report.problems[:3]}")
    known = {key for (key,) in rows(path, "SELECT key FROM scenes UNION SELECT key FROM scene_aliases")}
    operations = dict(rows(path, "SELECT id, undone_at FROM operations"))
    for session, told in acknowledged.items():
        turns = {turn for (turn,) in rows(path, "SELECT turn FROM evidence WHERE session = ?", session)}
        # An edit copies what was said, with another confidence.
        if twice := rows(
            path,
            "SELECT turn FROM evidence WHERE session = ? AND confidence = 1 GROUP BY 1 HAVING COUNT(*) > 1",
            session,
        ):
            raise Failure(f"written twice: {twice} of {session}")
        for kind, what in told:
            lost = (
                (kind == "commit" and what not in turns)
                or (kind == "failed" and (what in turns or f"tool:{session}-{what}" in known))
                or (kind == "enter" and what not in known)
                or (kind == "operation" and what is not None and what not in operations)
                or (kind == "undone" and operations.get(what) is None)
            )
            if lost:
                raise Failure(f"not as it was told: {kind} {what} of {session}")
    wholly(path, operations)


def wholly(path: Path | str, operations: dict[int, str | None]) -> None:
    """Each row that operations made or removed is there, or not, as the last one that still stands left it."""
    first: dict[tuple[str, str], bool] = {}
    last: dict[tuple[str, str], bool] = {}
    images = (
        "SELECT operation_id, name, row, before IS NULL, after IS NULL FROM operation_rows ORDER BY operation_id, seq"
    )
    for operation, table, row, was_not, is_not in rows(path, images):
        if table in TABLES:
            first.setdefault((table, row), not was_not)
            if operations[operation] is None:
                last[table, row] = not is_not
    there = {table: {row_id for (row_id,) in rows(path, f"SELECT id FROM {table}")} for table in TABLES}
    for place, was in first.items():
        table, row = place
        if (json.loads(row)[0] in there[table]) != last.get(place, was):
            raise Failure(f"half an operation: row {row} of {table}")


# ---- server

CLIENTS = 4
POSTGRES = Path(__file__).with_name("postgres")


def tenant_rows(address: str, statement: str, *parameters: object) -> list[Any]:
    from graphmem.store.postgres.address import parsed
    from graphmem.store.postgres.connecting import adapt, plainly_connected
    from graphmem.store.postgres.statements import translated

    with plainly_connected(parsed(address).server, 30.0) as connection:
        adapt(connection)
        connection.execute(f'SET search_path = "{parsed(address).schema}", graphmem')
        return connection.execute(translated(statement), parameters).fetchall()


def server_child(address: str, seed: int, session: str) -> None:
    """Act for ever; write a line for each thing done, after it was done, and for each that failed."""
    rng = random.Random(seed)
    with Memory.open(address, config=PATIENT) as memory:
        for number in range(1_000_000):
            try:
                told = act(memory, rng, session, number)
            except StoreBusy as busy:
                told = "unsure" if "look whether" in str(busy) else "failed", number
            print(json.dumps(told), flush=True)


def run_postgres(act: str, folder: str) -> str:
    given = {**os.environ, "GRAPHMEM_POSTGRES_DURABLE": "1"}
    done = subprocess.run([POSTGRES, act, folder], env=given, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise Failure(f"scripts/postgres {act}: {done.stderr}")
    return done.stdout.strip()


def server(rounds: int, seed: int) -> dict[str, object]:
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmem-torture-"))
        Path(place).chmod(0o711)  # the server has its own user
        folder = f"{place}/server"
        address = run_postgres("start", folder) + "?tenant=torture"
        stack.callback(run_postgres, "stop", folder)
        Memory.open(address).close()
        logs = [Path(place, f"client-{number}") for number in range(CLIENTS)]
        clients = []
        for number, log in enumerate(logs):
            command = [sys.executable, __file__, "server-child", address, str(seed * CLIENTS + number), log.name]
            client = stack.enter_context(subprocess.Popen(command, stdout=stack.enter_context(log.open("w"))))
            stack.callback(client.kill)
            clients.append(client)
        longest = survive(folder, rounds, random.Random(seed), logs, clients)
        for client in clients:
            client.kill()
            client.wait()
        kept = {
            log.name: [tuple(json.loads(line)) for line in log.read_text().splitlines(True) if line[-1] == "\n"]
            for log in logs
        }
        verify(address, kept)
    told = Counter(kind for lines in kept.values() for kind, _ in lines)
    return {
        "rounds": rounds,
        "acknowledged": sum(told.values()) - told["failed"] - told["unsure"],
        "failed": told["failed"],
        "unsure": told["unsure"],
        "seconds until all went on": round(longest, 1),
    }


def survive(folder: str, rounds: int, rng: random.Random, logs: list[Path], clients: list[Any]) -> float:
    """Kill the server and start it anew, round by round; return the longest time until all clients had gone on."""
    longest = 0.0
    for each in range(rounds):
        longest = max(longest, await_progress(logs, clients))
        time.sleep(rng.uniform(0.0, 0.2))
        run_postgres("kill", folder)
        time.sleep(rng.choice([0.0, 0.0, rng.uniform(0.0, 1.0)]))
        run_postgres("again", folder)
        progress("server", each + 1, rounds)
    return max(longest, await_progress(logs, clients))


def await_progress(logs: list[Path], clients: list[Any]) -> float:
    """Wait until each client has done two more things: the first may have been done before."""
    began = time.monotonic()
    before = [log.read_bytes().count(b"\n") for log in logs]
    while any(log.read_bytes().count(b"\n") < count + 2 for log, count in zip(logs, before, strict=True)):
        time.sleep(0.02)
        if any(client.poll() is not None for client in clients):
            raise Failure("a client ended by itself")
        if time.monotonic() - began > PATIENT.busy_timeout:
            raise Failure(f"a client has not gone on within {PATIENT.busy_timeout:g} s")
    return time.monotonic() - began


# ---- digest

DIGESTED = "talk"
MESSAGES_A_ROUND = 8


def digest_writer(task: Any) -> str:
    """Say that it was asked, take its time, and name each message that it read."""
    print("asked", flush=True)
    time.sleep(0.01)
    read = " ".join(part.part for part in task.parts)
    sections = "\n".join(f"## {heading}\n- {read}" for heading in SECTION_BYTES)
    return f"# Checkpoint\nDate: {task.date}\n{sections}\nCHECKPOINT_DONE"


def digest_child(path: Path, number: int) -> None:
    """Go on with the session and digest it, again and again, until killed."""
    with Memory.open(path, config=DIGESTING, writer=digest_writer) as memory:
        while True:
            parts = [
                Part(f"m{number}-{place}", role="user", text=f"message {place} of round {number} " * 6)
                for place in range(MESSAGES_A_ROUND)
            ]
            memory.mirror(DIGESTED, parts)
            memory.checkpoint(DIGESTED, force=True)
            number += 1_000_000  # of a later turn of the same child


def digest(rounds: int, seed: int) -> dict[str, object]:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder:
        path = Path(folder) / "memory.db"
        Memory.open(path).close()
        for each in range(rounds):
            command = [sys.executable, __file__, "digest-child", str(path), str(each)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                child.stdout.readline()
                time.sleep(rng.uniform(0.0, 0.03))
                child.kill()
                child.stdout.read()
            if child.returncode != -signal.SIGKILL:
                raise Failure(f"round {each}: the child ended by itself, with {child.returncode}")
            progress("digest", each + 1, rounds)
        with Memory.open(path, config=DIGESTING, writer=digest_writer_silent) as memory:
            memory.checkpoint(DIGESTED, force=True)
            if problems := memory.check().problems:
                raise Failure(f"check: {problems[:3]}")
            bodies = [note.body for note in memory.notes(kinds="checkpoint", limit=100_000)]
            left = memory.sessions(scopes="all")[0].undigested
        read = [name for body in reversed(bodies) for name in body.split("## Facts\n- ")[1].split("\n")[0].split()]
        said = [part for (part,) in rows(path, "SELECT part FROM parts ORDER BY seq")]
        taken_up = rows(path, "SELECT COUNT(*), COALESCE(SUM(attempts > 1), 0) FROM jobs WHERE state = 'done'")[0]
        if left or read != said:
            twice = len(read) - len(set(read))
            raise Failure(f"{left} not digested, {len(set(said) - set(read))} skipped, {twice} read twice")
        if taken_up[0] != len(bodies):
            raise Failure(f"{taken_up[0]} jobs done, {len(bodies)} checkpoints")
        return {
            "kills": rounds, "messages": len(said), "checkpoints": len(bodies), "taken up by another": taken_up[1],
            "skipped": 0, "read twice": 0,
        }  # fmt: skip


def digest_writer_silent(task: Any) -> str:
    with contextlib.redirect_stdout(None):
        return digest_writer(task)


# ---- writers


def write_many(path: Path, name: str, count: int, waits: Any) -> None:
    longest = 0.0
    errors: list[str] = []
    with Memory.open(path, config=PATIENT) as memory:
        for number in range(count):
            started = time.perf_counter()
            try:
                memory.commit(
                    [Triple(f"{name} {number % 50}", "has", f"value {number}", sentence=f"{name} said {number}.")],
                    scenes=f"chan:{name}",
                    session=name,
                    turn=number,
                )
            except GraphmemError as error:
                errors.append(str(error))
            longest = max(longest, time.perf_counter() - started)
    waits.put(("writer", longest, errors, count))


def repeat(who: str, path: Path, ended: Any, waits: Any) -> None:
    """Read, or keep upkeep, until the writers have ended."""
    longest, errors, done = 0.0, [], 0
    with Memory.open(path, config=PATIENT) as memory:
        while not ended.is_set():
            started = time.perf_counter()
            try:
                if who == "reader":
                    memory.recall_by_scene("chan:w0")
                else:
                    memory.upkeep()
                done += 1
            except GraphmemError as error:
                if "at work" not in str(error):  # the other loop
                    errors.append(str(error))
                    continue
                time.sleep(0.01)
            longest = max(longest, time.perf_counter() - started)
    waits.put((who, longest, errors, done))


def writers(processes: int, writes: int) -> dict[str, object]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder:
        path = Path(folder) / "memory.db"
        Memory.open(path).close()
        waits, ended = context.Queue(), context.Event()
        beside = [
            context.Process(target=repeat, args=(who, path, ended, waits)) for who in ("reader", "upkeep", "upkeep")
        ]
        working = [
            context.Process(target=write_many, args=(path, f"w{number}", writes, waits)) for number in range(processes)
        ]
        started = time.perf_counter()
        for process in (*beside, *working):
            process.start()
        told = [waits.get(timeout=600) for _ in working]
        seconds = time.perf_counter() - started
        ended.set()
        told += [waits.get(timeout=600) for _ in beside]
        for process in (*beside, *working):
            process.join()
        (kept,) = rows(path, "SELECT COUNT(DISTINCT session || ' ' || turn) FROM evidence")[0]
        with Memory.open(path) as memory:
            problems = memory.check().problems
    longest = {who: max(wait for other, wait, _, _ in told if other == who) for who in ("writer", "reader", "upkeep")}
    errors = [f"{who}: {error}" for who, _, failed, _ in told for error in failed]
    passes = sum(number for who, _, _, number in told if who == "upkeep")
    if not passes:
        errors.append("no pass of upkeep came through")
    if kept != processes * writes or errors or problems:
        raise Failure(f"{kept} of {processes * writes} writes kept, errors {errors[:3]}, problems {problems[:3]}")
    if longest["writer"] > LONGEST_WAIT:
        raise Failure(f"a writer waited {longest['writer']:.2f} s")
    return {
        "processes": processes,
        "writes kept": kept,
        "errors": 0,
        "passes of upkeep": passes,
        "seconds": round(seconds, 1),
        "longest wait of a writer (s)": round(longest["writer"], 3),
        "longest read (s)": round(longest["reader"], 3),
        "longest pass of upkeep (s)": round(longest["upkeep"], 3),
    }


# ---- disk


def fill(memory: Memory, first: int, most: int) -> tuple[int, str]:
    """Write until it fails; return the number of the write that failed and what was said of it."""
    for number in range(first, first + most):
        try:
            memory.commit(
                [Triple(f"thing {number}", "is", "x" * 40, sentence=f"{number}: " + "long " * 200)],
                scenes="chan:disk",
                session="disk",
                turn=number,
            )
        except StoreFailed as error:
            return number, str(error)
    raise Failure(f"{most} writes, and the disk was never full")


def disk_child(kind: str, path: Path) -> None:
    """Fill the disk, see what is left, make room, go on."""
    with Memory.open(path, config=PATIENT) as memory:
        memory.commit([Triple("first", "is", "there")], session="disk", turn=10**6)
    pages = 64
    if kind == "signal":  # writes behind a size fail, as on a broken disk
        limit = path.stat().st_size + pages * 4096
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    with Memory.open(path, config=PATIENT) as memory:
        if kind == "pages":
            (used,) = memory._store._writer.execute("PRAGMA page_count").fetchone()
            memory._store._writer.execute(f"PRAGMA max_page_count = {used + pages}")
        failed, told = fill(memory, 0, 100_000)
        expect_all(path, failed)
        if "\n" in told or str(path) not in told:
            raise Failure(f"no clear line: {told!r}")
        with contextlib.suppress(GraphmemError):
            memory.merge_entities("thing 0", "thing 1")
        with contextlib.suppress(GraphmemError):
            memory.upkeep()
        with contextlib.suppress(GraphmemError):
            memory.backup(path.with_name("backup.db"))
        if not memory.recall_by_scene("chan:disk"):
            raise Failure("nothing is read while the disk is full")
    if kind == "signal":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if kind == "tmpfs":
        (path.parent / "ballast").unlink()
    with Memory.open(path, config=PATIENT) as memory:
        expect_all(path, failed)
        memory.commit([Triple("again", "is", "written")], session="disk", turn=failed)
        expect_all(path, failed + 1)
        report = memory.check()
        if not report.ok:
            raise Failure(f"check: {report.problems[:3]}")
    print(json.dumps({"writes until it was full": failed, "told": told.replace(str(path), "FILE")}))


def expect_all(path: Path, count: int) -> None:
    turns = {turn for (turn,) in rows(path, "SELECT turn FROM evidence WHERE session = 'disk'")}
    if missing := set(range(count)) - turns:
        raise Failure(f"{len(missing)} acknowledged writes are lost")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a disk of 3 MiB with a ballast of 1 MiB in it; None where that is not permitted."""
    place = folder / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "graphmem", str(place)]
    if os.getuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        (place / "ballast").write_bytes(bytes(1024 * 1024))
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=False)


def disk() -> dict[str, object]:
    told: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as name, small_disk(Path(name)) as small:
        places = {"pages": Path(name) / "pages", "signal": Path(name) / "signal", "tmpfs": small}
        for kind, place in places.items():
            if place is None:
                told[kind] = "not permitted here"
                continue
            place.mkdir(exist_ok=True)
            command = [sys.executable, __file__, "disk-child", kind, str(place / "memory.db")]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise Failure(f"{kind}: {ran.stderr.strip().splitlines()[-1] if ran.stderr else ran.returncode}")
            told[kind] = json.loads(ran.stdout)
    return told


# ---- tree

FILLING = "word " * 2_000  # a file takes more than one write


def text_of(title: str, version: int) -> str:
    return f"{title} version {version}\n{FILLING}\nEND of {title}"


def tree_child(path: Path, root: Path, number: int, form: str) -> None:
    """Remember, edit and write files, each title on one side only, and sync, again and again, until killed."""
    rng = random.Random(number)
    with Memory.open(path, config=PATIENT) as memory:
        while True:
            known = [note for note in memory.notes(limit=100_000) if note.title.startswith("note ")]
            title = f"note {number} {rng.randrange(1_000_000)}"
            memory.remember(title, body=text_of(title, 0))
            print(f"{title}\t0", flush=True)
            if known:
                note = rng.choice(known)
                version = int(note.body.split(" version ")[1].split("\n")[0]) + 1
                memory.edit_note(note.id, body=text_of(note.title, version))
                print(f"{note.title}\t{version}", flush=True)
            pages = pages_of(root, form)
            titles = sorted(title for title in pages if title.startswith("file "))
            title, version = f"file {number} {rng.randrange(1_000_000)}", 0
            if titles and rng.random() < 0.5:
                title = rng.choice(titles)
                version = int(pages[title][1].split(" version ")[1].split("\n")[0]) + 1
            write_page(root, form, pages[title][0] if title in pages else "", title, text_of(title, version), number)
            print(f"{title}\t{version}", flush=True)
            memory.sync_tree(root, form=form)


FILES = {"promemory": "MEMORY.md", "ledger": "memory.json"}


def pages_of(root: Path, form: str) -> dict[str, tuple[str, str]]:
    """Return where each title stands, a file or a page in it, and what it says."""
    found: dict[str, tuple[str, str]] = {}
    how = form_of(form)
    if how.parting is None:
        paths = [path for path in root.rglob("[!.]*.md") if path.name not in ("index.md", "ROOT.md")]
        pages = [(str(path), how.read(path.read_bytes(), "")) for path in paths]
    else:
        file = root / FILES[form]
        pieces = how.parting.part(file.read_text("utf-8"), file.name) if file.exists() else []
        pages = [(piece.page, how.read(piece.page.encode(), file.name)) for piece in pieces if piece.key]
    for place, page in pages:
        title = str(page.told["title"])
        if title in found:
            raise Failure(f"{title} is in two places")
        if not page.body.endswith(f"END of {title}"):
            raise Failure(f"{title} is half a page")
        found[title] = (place, page.body)
    return found


def write_page(root: Path, form: str, place: str, title: str, body: str, number: int) -> None:
    """Write what a person says into a file, in one step. place: where the title stands, '' for a new one."""
    if form == "notes":
        file = Path(place) if place else root / "facts" / f"{title.replace(' ', '-')}.md"
        text = f"---\ntitle: {title}\n---\n{body}\n"
    else:
        file = root / FILES[form]
        text = file.read_text("utf-8") if file.exists() else ""
        if form == "ledger":
            whole = json.loads(text or '{"entries": []}')
            entry = next((entry for entry in whole["entries"] if entry["title"] == title), None)
            if entry is None:
                whole["entries"].append(entry := {"title": title, "kind": "fact"})
            entry["body"] = body
            text = json.dumps(whole)
        elif place:
            old = place.partition("\n")[2]
            head = old[: old.index(title, old.index("-->") if "-->" in old else len(title))]
            text = text.replace(old, f"{head}{body}")
        else:
            text = f"{text or '# Memory'}\n\n## Lessons\n\n### {title}\n\n{body}\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{number}")
    beside.write_text(text, "utf-8")
    beside.replace(file)


def tree(rounds: int, seed: int) -> dict[str, object]:
    return {form: tree_in(form, rounds, seed) for form in ("notes", *FILES)}


def tree_in(form: str, rounds: int, seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    told: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder:
        path, root = Path(folder) / "memory.db", Path(folder) / "tree"
        Memory.open(path).close()
        for each in range(rounds):
            command = [sys.executable, __file__, "tree-child", str(path), str(root), str(each + 1), form]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                lines = [child.stdout.readline()]
                time.sleep(rng.uniform(0.0, 0.3))
                child.kill()
                lines += child.stdout.read().splitlines()
            if child.returncode != -signal.SIGKILL:
                raise Failure(f"{form}, round {each}: the child ended by itself, with {child.returncode}")
            for line in lines:
                title, _, version = line.strip().partition("\t")
                told[title] = max(told.get(title, 0), int(version or 0))
            pages_of(root, form)
            progress(f"tree, {form},", each + 1, rounds)
        with Memory.open(path, config=PATIENT) as memory:
            memory.sync_tree(root, form=form)
            again = memory.sync_tree(root)
            if again.changes or memory.inspect().conflicts:
                raise Failure(f"a second sync still changes {again.changes[:3]}, {memory.inspect().conflicts[:3]}")
            if problems := memory.check().problems:
                raise Failure(f"check: {problems[:3]}")
            bodies = {note.title: note.body for note in memory.notes(limit=100_000)}
            if len(bodies) != len(memory.notes(limit=100_000)):
                raise Failure("a title is there twice")
        pages = {title: body for title, (_, body) in pages_of(root, form).items()}
        for title, version in told.items():
            newer = [text_of(title, version + more) for more in (0, 1)]  # the last one may be kept and not acknowledged
            if bodies.get(title) not in newer or pages.get(title) != bodies[title]:
                raise Failure(f"{form}: {title!r}, version {version}, is lost")
        if len(pages) != len(bodies):
            raise Failure(f"{form}: {len(pages)} pages for {len(bodies)} notes")
        return {"kills": rounds, "acknowledged": len(told), "notes": len(bodies), "pages": len(pages)}


# ---- imports

NOON = dt.datetime(2026, 9, 7, 12, tzinfo=dt.UTC)  # of every import: what differs is no time then
MAKE_REFERENCE = Path(__file__).parent.parent / "fixtures" / "make_reference_db.py"


def make_sources(folder: Path) -> dict[str, Path]:
    """Make something to take in of each kind."""
    sources = {kind: folder / kind for kind in ("homeagent", "tree", "jsonl")}
    spec = importlib.util.spec_from_file_location("make_reference_db", MAKE_REFERENCE)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    with contextlib.closing(maker.build(sources["homeagent"], era="block")) as made, made:
        made.execute("ALTER TABLE memory_blocks ADD COLUMN payload_digest TEXT DEFAULT ''")
        for number in range(20):
            payload = random.Random(number).randbytes(100_000)
            digest = hashlib.sha256(payload).hexdigest()
            file = folder / "media" / "blobs" / digest[:2] / digest[2:]
            file.parent.mkdir(parents=True)
            file.write_bytes(payload)
            made.execute(
                "INSERT INTO memory_blocks(id, modality, payload_digest) VALUES (?, 'image', ?)",
                (f"medium {number}", digest),
            )
    sources["tree"].mkdir()
    for number in range(300):
        text = f"---\ntags: [t{number % 7}]\npermalink: f{number}\n---\nText {number}, see [[f{number * 7 % 300}]].\n"
        (sources["tree"] / f"f{number}.md").write_text(f"{text}\n- needs [[f{number * 11 % 300}]]\n", "utf-8")
    with Memory.open(folder / "source.db", clock=lambda: NOON) as memory:
        memory.import_from("homeagent", sources["homeagent"])
        memory.import_from("tree", sources["tree"])
        memory.export_to("jsonl", sources["jsonl"])
    return sources


def import_child(kind: str, path: Path, source: Path) -> None:
    """Take something in; tell when it begins."""
    with Memory.open(path, config=PATIENT, clock=lambda: NOON) as memory:
        print("open", flush=True)
        with contextlib.suppress(Conflict):  # a whole memory came already
            memory.import_from(kind, source)


def held_by(path: Path, file: Path) -> list[str]:
    """Return all that a memory holds, in lines."""
    with Memory.open(path, clock=lambda: NOON) as memory:
        if problems := memory.check().problems:
            raise Failure(f"check: {problems[:3]}")
        memory.export_to("jsonl", file, force=True)
    return file.read_text("utf-8").splitlines()[1:]  # the first tells of the file


def imports(rounds: int, seed: int) -> dict[str, object]:
    rng = random.Random(seed)
    told = dict.fromkeys(("kills", "ended before"), 0)
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as name:
        folder = Path(name)
        sources = make_sources(folder)
        wanted: dict[str, list[str]] = {}
        seconds: dict[str, float] = {}
        for kind, source in sources.items():
            started = time.perf_counter()
            with contextlib.redirect_stdout(None):
                import_child(kind, folder / f"{kind}.db", source)
            seconds[kind] = time.perf_counter() - started
            wanted[kind] = held_by(folder / f"{kind}.db", folder / "held")
        kills = dict.fromkeys(sources, 0)
        for each in range(rounds):
            kind = list(sources)[each % len(sources)]
            path = folder / f"{kind}-{kills[kind] // 3}.db"  # killed three times before it may end
            command = [sys.executable, __file__, "import-child", kind, str(path), str(sources[kind])]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                child.stdout.readline()
                time.sleep(rng.uniform(0.0, seconds[kind]))
                child.kill()
            if child.returncode not in (0, -signal.SIGKILL):
                raise Failure(f"round {each}: {kind} ended with {child.returncode}")
            told["kills" if child.returncode else "ended before"] += 1
            kills[kind] += 1
            if kills[kind] % 3 == 0 or each + len(sources) >= rounds:
                with Memory.open(path, clock=lambda: NOON) as memory:
                    is_whole = kind == "jsonl" and memory.overview().entities > 0  # it is for an empty memory
                    if not is_whole:
                        memory.import_from(kind, sources[kind])
                if held_by(path, folder / "held") != wanted[kind]:
                    raise Failure(f"round {each}, seed {seed}: {kind} is not what it is undisturbed")
            progress("imports", each + 1, rounds)
    return {**told, "kinds": len(sources), "rows": {kind: len(lines) for kind, lines in wanted.items()}}


# ---- command line


def progress(what: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{what} {done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def main() -> None:
    if sys.argv[1:2] == ["crash-child"]:
        crash_child(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
        return
    if sys.argv[1:2] == ["server-child"]:
        server_child(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    if sys.argv[1:2] == ["digest-child"]:
        digest_child(Path(sys.argv[2]), int(sys.argv[3]))
        return
    if sys.argv[1:2] == ["tree-child"]:
        tree_child(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return
    if sys.argv[1:2] == ["import-child"]:
        import_child(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
        return
    if sys.argv[1:2] == ["disk-child"]:
        disk_child(sys.argv[2], Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["crash", "server", "digest", "tree", "imports", "writers", "disk", "all"])
    parser.add_argument(
        "--rounds", type=int, help="of crash, server, digest, tree and imports  [default: 300, 200, 40 each]"
    )
    parser.add_argument("--seed", type=int, default=1, help="of crash, server, digest, tree and imports  [default: 1]")
    parser.add_argument("--processes", type=int, default=8, help="that write  [default: 8]")
    parser.add_argument("--writes", type=int, default=500, help="of each process  [default: 500]")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    runs = {
        "crash": lambda: crash(given.rounds or 300, given.seed),
        "server": lambda: server(given.rounds or 200, given.seed),
        "digest": lambda: digest(given.rounds or 40, given.seed),
        "tree": lambda: tree(given.rounds or 40, given.seed),
        "imports": lambda: imports(given.rounds or 40, given.seed),
        "writers": lambda: writers(given.processes, given.writes),
        "disk": disk,
    }
    told = {}
    for name in runs if given.what == "all" else [given.what]:
        try:
            told[name] = runs[name]()
        except Failure as failure:
            sys.exit(f"torture: {name}: {failure}")
    if given.json:
        print(json.dumps(told, ensure_ascii=False))
        return
    for name, figures in told.items():
        print(name)
        for figure, value in figures.items():
            print(f"  {figure}: {value}")


if __name__ == "__main__":
    main()
