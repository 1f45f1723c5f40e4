"""writers: processes that enter scenes on one file at once, against one process alone."""

import contextlib
import json
import os
import random
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.entering import floor
from benchmarks.measure import Finding, Must, Row, microseconds, say, started
from benchmarks.seeds import SEED, bare, fill, situation
from graphmem import Memory, StoreBusy

PROCESSES = 8
TURNS = 1_000_000  # of each process at the most: the clock ends it before
SECONDS = 4.0
ROUNDS = 3
_PREPARED = 2_000
_WARM_UP = 50
_HEAD_START = 0.2


def enter_turns(path: str, seed: int, turns: int, scenes: int) -> Row:
    """Enter turns from when told to until it is time to stop; a turn that is refused is tried again."""
    with Memory.open(path) as memory:

        def ready(i: int) -> Callable[[], object]:
            here = situation(random.Random(f"{seed} {i}"), i)
            return lambda: memory.enter_scene(here)

        return enter_in_turn(ready, seed, turns, scenes)


def enter_bare(path: str, seed: int, turns: int, scenes: int) -> Row:
    """Enter turns by the floor alone."""
    with bare(Path(path)) as db:

        def ready(i: int) -> Callable[[], object]:
            here = situation(random.Random(f"{seed} {i}"), i)
            return lambda: floor(db, i + 1, here)

        return enter_in_turn(ready, seed, turns, scenes)


def enter_in_turn(ready: Callable[[int], Callable[[], object]], seed: int, turns: int, scenes: int) -> Row:
    """Do what is made ready, from when told to until it is time to stop."""
    rng = random.Random(f"{SEED} {seed}")
    acts = [ready(rng.randrange(scenes)) for _ in range(min(turns, _PREPARED))]
    input()
    for act in acts[:_WARM_UP]:
        act()
    print("ready", flush=True)
    begin, end = map(float, input().split())
    time.sleep(max(begin - time.time(), 0.0))
    worked = time.process_time()
    longest, done, refused = 0.0, 0, 0
    while done < turns and time.time() < end:
        try:
            longest = max(longest, microseconds(acts[done % len(acts)]))
            done += 1
        except (StoreBusy, sqlite3.OperationalError):  # locked for longer than the busy timeout
            refused += 1
    return {
        "done": done,
        "refused": refused,
        "ended": time.time(),
        "worked_us": (time.process_time() - worked) * 1e6,
        "longest_us": longest,
    }


def crowd(act: Callable[..., Row], places: Sequence[str], turns: int, scenes: int) -> Row:
    """Return what processes did together, each on the file or address that it is given."""
    with contextlib.ExitStack() as running:
        everyone = [
            running.enter_context(started(act, place, seed, turns, scenes)) for seed, place in enumerate(places)
        ]
        for process in everyone:  # one after another: none waits for the lock while it makes itself ready
            _tell(process, "")
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "a process did not get ready"
        begin = time.time() + _HEAD_START
        for process in everyone:
            _tell(process, f"{begin} {begin + SECONDS}")
        told = [_answer(process) for process in everyone]
    each = [float(one["done"]) for one in told]
    return {
        "a_second": sum(each) / (max(float(one["ended"]) for one in told) - begin),
        "cpu_us": sum(float(one["worked_us"]) for one in told) / sum(each),
        "longest_ms": max(float(one["longest_us"]) for one in told) / 1000,
        "refused": sum(int(one["refused"]) for one in told),
        "least_share": min(each) * len(places) / sum(each),
        "done": sum(each),
    }


def _tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _answer(process: "subprocess.Popen[str]") -> Row:
    told, _ = process.communicate()
    assert process.returncode == 0, told
    row: Row = json.loads(told)
    return row


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure how many turns a second one process and eight enter on one file, in turn; and so the bare floor."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            say(f"writers: filling {scenes} scenes")
            fill(path, scenes)
            seen: dict[tuple[str, int], list[Row]] = {}
            rounds = min(ROUNDS, turns)
            for number in range(rounds):
                say(f"writers: round {number + 1} of {rounds}")
                for who, act in (("graphmem", enter_turns), ("floor", enter_bare)):
                    for processes in (1, PROCESSES):
                        told = crowd(act, [str(path)] * processes, turns, scenes)
                        seen.setdefault((who, processes), []).append(told)
        rates = {key: middle(told, "a_second") for key, told in seen.items()}
        for (who, processes), told in seen.items():
            row: Row = {
                "who": who,
                "processes": processes,
                "scenes": scenes,
                "turns_a_second": round(rates[who, processes]),
                "kept": round(rates[who, processes] / rates[who, 1], 2),
                "cpu_us_a_turn": round(middle(told, "cpu_us"), 1),
                "longest_ms": round(middle(told, "longest_ms"), 1),
                "least_share": round(middle(told, "least_share"), 2),
                "refused": sum(int(one["refused"]) for one in told),
            }
            finding.rows.append(row)
        what = f"{PROCESSES} processes entering {scenes} scenes, share of the throughput of one"
        finding.musts.append(Must(what, rates["graphmem", PROCESSES] / rates["graphmem", 1], 0.7, at_most=False))
    finding.notes += [
        "floor: the bare statements of a join, in as many processes; what it loses SQLite's one lock costs",
        f"least_share: turns of the process that got fewest, of an even share; {os.cpu_count()} processors",
        "cpu_us_a_turn: what a turn takes besides waiting; refused: turns that waited longer than the busy timeout",
    ]
    return finding


def middle(told: Sequence[Row], column: str) -> float:
    return statistics.median(float(one[column]) for one in told)
