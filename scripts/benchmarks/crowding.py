"""writers: processes that enter scenes on one file at once. tenants: many files, in turn and at once."""

import contextlib
import json
import random
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.entering import floor
from benchmarks.measure import Finding, Must, Row, median, microseconds, open_handles, resident, say, started, summary
from benchmarks.seeds import AT, SEED, bare, fill, situation
from graphmem import Memory, Situation, Triple

PROCESSES = 8
TURNS = 16_000
ROUNDS = 3
AT_ONCE = 200
_WARM_UP = 50


def enter_turns(path: str, seed: int, turns: int, scenes: int, *, by_floor: bool = False) -> Row:
    """Enter turns when told to; return when that began and ended, the longest wait and the processor's time."""
    rng = random.Random(f"{SEED} {seed}")
    places = [rng.randrange(scenes) for _ in range(turns + _WARM_UP)]
    told = [situation(rng, i) for i in places]
    times: list[float] = []
    with contextlib.ExitStack() as opened:
        if by_floor:
            db = opened.enter_context(bare(Path(path)))
            db.execute("PRAGMA busy_timeout = 30000")
            acts = [lambda i=i, here=here: floor(db, i + 1, here.weights) for i, here in zip(places, told, strict=True)]
        else:
            memory = opened.enter_context(Memory.open(path))
            acts = [lambda here=here: memory.enter_scene(here) for here in told]
        for act in acts[:_WARM_UP]:
            act()
        print("ready", flush=True)
        input()
        begun, worked = time.time(), time.process_time()
        times += [microseconds(act) for act in acts[_WARM_UP:]]
        ended, worked = time.time(), time.process_time() - worked
    return {"begun": begun, "ended": ended, "worked": worked, "longest": max(times)}


def enter_bare(path: str, seed: int, turns: int, scenes: int) -> Row:
    """Enter turns by the floor alone."""
    return enter_turns(path, seed, turns, scenes, by_floor=True)


def _crowd(act: Callable[..., Row], path: Path, processes: int, turns: int, scenes: int) -> tuple[float, float, float]:
    """Return turns a second, microseconds of the processors a turn, and the longest turn in milliseconds."""
    each = max(turns // processes, 1)
    crowd = [started(act, str(path), seed, each, scenes) for seed in range(processes)]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = [_answer(process) for process in crowd]
    seconds = max(float(one["ended"]) for one in told) - min(float(one["begun"]) for one in told)
    done = each * processes
    worked = sum(float(one["worked"]) for one in told)
    return done / seconds, worked / done * 1e6, max(float(one["longest"]) for one in told) / 1000


def _answer(process: "subprocess.Popen[str]") -> Row:
    told, _ = process.communicate()
    assert process.returncode == 0, told
    row: Row = json.loads(told)
    return row


def run_writers(sizes: Sequence[int], turns: int) -> Finding:
    """Measure how many turns a second one process and eight enter on one file, in turn; and so the bare floor."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            say(f"writers: filling {scenes} scenes")
            fill(path, scenes)
            rates: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
            for number in range(ROUNDS):
                say(f"writers: round {number + 1} of {ROUNDS}")
                for who, act in (("graphmem", enter_turns), ("floor", enter_bare)):
                    for processes in (1, PROCESSES):
                        told = _crowd(act, path, processes, turns, scenes)
                        rates.setdefault((who, processes), []).append(told)
        medians = {
            key: [statistics.median(column) for column in zip(*told, strict=True)] for key, told in rates.items()
        }
        for who in ("graphmem", "floor"):
            (one, worked_one, _), (many, worked_many, longest) = medians[who, 1], medians[who, PROCESSES]
            row: Row = {
                "who": who,
                "scenes": scenes,
                "one_a_second": round(one),
                f"{PROCESSES}_a_second": round(many),
                "kept": round(many / one, 2),
                "cpu_us_a_turn_one": round(worked_one, 1),
                f"cpu_us_a_turn_{PROCESSES}": round(worked_many, 1),
                "longest_ms": round(longest, 1),
            }
            finding.rows.append(row)
        kept = medians["graphmem", PROCESSES][0] / medians["graphmem", 1][0]
        what = f"{PROCESSES} processes entering {scenes} scenes, share of the throughput of one"
        finding.musts.append(Must(what, kept, 0.7, at_most=False))
    finding.notes.append(
        "floor: the bare statements of a join, in as many processes; what it loses SQLite's one lock costs"
    )
    return finding


# ---- tenants


def _visit(path: Path, n: int, *, create: bool) -> float:
    """Open one memory, let it do what a turn does, close it; return the microseconds."""
    here = Situation.of(chan="qq", peer=f"p{n}", at=AT)

    def act() -> None:
        with Memory.open(path, create=create) as memory:
            _turn(memory, here, n)

    return microseconds(act)


def _turn(memory: Memory, here: Situation, n: int) -> None:
    visit = memory.enter_scene(here, declared="chan:qq")
    memory.commit([Triple(f"person {n}", "likes", "tea", sentence="They said so.")], scenes=visit.write_keys)
    assert memory.recall_by_situation(here, declared=visit.keys).relations


def run_tenants(sizes: Sequence[int], turns: int) -> Finding:
    """Open files in turn, each new and then again, and many at once; none may leave a handle or memory behind."""
    finding = Finding()
    for files in sizes:
        say(f"tenants: {files} files in turn")
        new, again, held = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            _visit(Path(folder) / "first.db", 0, create=True)
            handles = open_handles()
            most = handles
            for n in range(files):
                path = Path(folder) / f"tenant{n}.db"
                new.append(_visit(path, n, create=True))
                again.append(_visit(path, n, create=False))
                path.unlink()
                if n % max(files // 20, 1) == 0:
                    held.append(resident())
                    most = max(most, open_handles())
            left = open_handles() - handles
            # Memory settles in the first tenth; from then on it may not grow with the number of files.
            settled = held[len(held) // 10]
            grown = resident() - settled
        tenth = max(files // 10, 1)
        row: Row = {
            "files": files,
            "how": "in turn",
            "new_file_us": median(new),
            **{column.replace("median", "again"): value for column, value in summary(again).items()},
            "last_tenth_to_first": round(statistics.median(again[-tenth:]) / statistics.median(again[:tenth]), 2),
            "handles_a_file": 0,
            "handles_left": left,
            "grown_mib": round(grown / 2**20, 1),
            "rss_mib": round(resident() / 2**20, 1),
        }
        finding.rows.append(row)
        finding.musts += [
            Must(f"{files} files in turn, handles left open", left, 0),
            Must(f"{files} files in turn, MiB grown after the first tenth", grown / 2**20, 16),
        ]
        together = min(AT_ONCE, files)
        _at_once(finding, together)
    return finding


def _at_once(finding: Finding, together: int) -> None:
    say(f"tenants: {together} files at once")
    allowed, most_allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed < 8 * together:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8 * together, most_allowed), most_allowed))
    handles, before = open_handles(), resident()
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        memories = [opened.enter_context(Memory.open(Path(folder) / f"tenant{n}.db")) for n in range(together)]
        for _ in range(3):
            for n, memory in enumerate(memories):
                here = Situation.of(chan="qq", peer=f"p{n}", at=AT)
                times.append(microseconds(lambda memory=memory, here=here, n=n: _turn(memory, here, n)))
        held, size = open_handles() - handles, resident() - before
    left = open_handles() - handles
    row: Row = {
        "files": together,
        "how": "at once",
        "new_file_us": "",
        **{column.replace("median", "again"): value for column, value in summary(times).items()},
        "last_tenth_to_first": "",
        "handles_a_file": round(held / together, 2),
        "handles_left": left,
        "grown_mib": round(size / 2**20, 1),
        "rss_mib": round(resident() / 2**20, 1),
    }
    finding.rows.append(row)
    finding.musts += [
        Must(f"{together} files at once, handles a file", held / together, 6),
        Must(f"{together} files at once, KiB of memory a file", size / together / 1024, 2048),
        Must(f"{together} files at once, handles left open", left, 0),
    ]
