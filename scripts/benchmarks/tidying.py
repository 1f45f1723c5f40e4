"""dedupe: twin scenes found and merged. upkeep: how long a commit waits beside a pass. entities: a review of names."""

import contextlib
import functools
import operator
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import Finding, Must, Row, apart, mebibytes, microseconds, resident, say
from benchmarks.seeds import AT, SEED, bare, bulk, fill_refs, fill_scenes
from graphmem import Memory, Triple

TABLES = ("scenes", "scene_features", "scene_refs")
TWIN_EVERY = 100


def fill_twins(path: Path, scenes: int, every: int) -> int:
    """Write scenes with three refs each, one in `every` a second time under another spelling of its key."""
    twins = scenes // every
    with bulk(path) as db:
        fill_scenes(db, scenes)
        db.execute(
            """INSERT INTO scenes(id, key, strength, visits, origin, created_at, updated_at)
               SELECT id / ? + ?, upper(key), strength, visits, origin, created_at, updated_at
               FROM scenes WHERE id % ? = 0 ORDER BY id""",
            (every, scenes, every),
        )
        db.execute(
            """INSERT INTO scene_features(scene_id, feature, weight, mass, touched, posted)
               SELECT scene_id / ? + ?, feature, weight, mass, touched, posted
               FROM scene_features WHERE scene_id % ? = 0 AND scene_id <= ? ORDER BY scene_id, feature""",
            (every, scenes, every, scenes),
        )
        fill_refs(db, range(1, scenes + twins + 1), max(scenes // 5, 1))
    return twins


def scan(path: str) -> float:
    """Return the microseconds of one scan of the three tables, of every column, that makes no rows of Python.

    Numbers are added up as they are: to take their length makes a text of each, which takes longer than all the rest.
    """
    with bare(Path(path)) as db:

        def act() -> None:
            for table in TABLES:
                sums = [
                    f"TOTAL(length({name}))" if kind == "TEXT" else f"TOTAL({name})"
                    for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})")
                ]
                db.execute(f"SELECT {', '.join(sums)} FROM {table}").fetchone()

        return microseconds(act)


def dry_run(path: str) -> Row:
    """Return the time of a dry run, how many scenes it would merge, and the peak of memory before and after."""
    with Memory.open(path) as memory:
        before = resident("VmHWM")
        started = time.perf_counter()
        report = memory.dedupe_scenes(dry_run=True)
        spent = time.perf_counter() - started
    return {"us": spent * 1e6, "merged": report.merged, "before": before, "peak": resident("VmHWM")}


def merge_and_undo(path: Path, twins: int) -> tuple[float, float]:
    """Return the seconds of a real run and of its undo."""
    with Memory.open(path) as memory:
        started = time.perf_counter()
        report = memory.dedupe_scenes()
        merged = time.perf_counter()
        assert report.merged == twins, report.merged
        assert report.operation is not None
        memory.undo(report.operation)
        return merged - started, time.perf_counter() - merged


def run_dedupe(sizes: Sequence[int], _: int) -> Finding:
    """Measure the dry run in processes of its own, then the real run and its undo; one scene in a hundred is a twin."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            say(f"dedupe: filling {scenes} scenes")
            twins = fill_twins(path, scenes, min(TWIN_EVERY, scenes))
            say(f"dedupe: of {scenes + twins} scenes")
            scans, runs = [], []
            for _ in range(3):
                scans.append(scan(str(path)))
                runs.append(apart(dry_run, str(path)))
            floor_us, dry = min(scans), min(runs, key=lambda one: one["us"])
            assert dry["merged"] == twins, dry
            real, undone = merge_and_undo(path, twins)
        row: Row = {
            "scenes": scenes + twins,
            "twins": twins,
            "scan_s": round(floor_us / 1e6, 3),
            "dry_run_s": round(float(dry["us"]) / 1e6, 3),
            "to_scan": round(float(dry["us"]) / floor_us, 2),
            "peak_mib": mebibytes(float(dry["peak"])),
            "peak_bytes_a_scene": round((float(dry["peak"]) - float(dry["before"])) / (scenes + twins)),
            "real_s": round(real, 2),
            "real_to_scan": round(real * 1e6 / floor_us, 2),
            "undo_s": round(undone, 2),
        }
        finding.rows.append(row)
        what = f"dedupe dry run of {scenes + twins} scenes"
        finding.musts += [
            Must(f"{what}, times one scan of the three tables", float(row["to_scan"]), 6.0, to_floor=True),
            Must(f"{what}, MiB of memory at its peak", float(row["peak_mib"]), 1024),
        ]
    finding.growth_of("dedupe dry run", "scenes", "dry_run_s")
    finding.growth_of("one scan of the three tables", "scenes", "scan_s", is_floor=True)
    finding.notes.append("scan and dry run: the quickest of three each, in turn")
    return finding


def run_upkeep(sizes: Sequence[int], turns: int) -> Finding:
    """Measure the commits of one process while another keeps upkeep of scenes with twins, all of whose refs fade."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            say(f"upkeep: filling {scenes} scenes")
            fill_twins(path, scenes, 20)
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                days = ((f"2026-{month:02}-{day:02}",) for month in (10, 11) for day in range(1, 29))
                db.executemany("INSERT INTO active_days VALUES (?)", days)
                labels = ((f"chan:old_{i}", AT) for i in range(scenes // 10))
                db.executemany("INSERT INTO situation_evidence(label, updated_at) VALUES (?, ?)", labels)
            say(f"upkeep: of {scenes} scenes")
            alone = commits(path, functools.partial(operator.le, turns))
            call = f"from graphmem import Memory\nMemory.open({str(path)!r}).upkeep(allow_shrink=True)"
            started = time.perf_counter()
            beside = beside_of([sys.executable, "-c", call], path)
            seconds = time.perf_counter() - started
            with contextlib.closing(sqlite3.connect(path)) as db:
                (refs,) = db.execute("SELECT COUNT(*) FROM scene_refs WHERE weight = 0.5").fetchone()
        ordered = sorted(beside)
        row: Row = {
            "scenes": scenes,
            "refs_faded": refs,
            "pass_s": round(seconds, 1),
            "commits": len(beside),
            "alone_p50_ms": round(sorted(alone)[len(alone) // 2], 2),
            "alone_max_ms": round(max(alone), 1),
            "p50_ms": round(ordered[len(ordered) // 2], 2),
            "p99_ms": round(ordered[len(ordered) * 99 // 100], 1),
            "max_ms": round(max(beside), 1),
        }
        finding.rows.append(row)
        what = f"upkeep of {scenes} scenes, the longest wait of a commit in ms"
        finding.musts.append(Must(what, float(row["max_ms"]), 50.0))
    return finding


def beside_of(command: Sequence[str], path: Path) -> list[float]:
    """Return how long commits took in milliseconds while a process ran."""
    with subprocess.Popen(command) as process:
        times = commits(path, lambda _: process.poll() is not None)
    assert process.returncode == 0
    return times


def commits(path: Path, ended: Callable[[int], bool]) -> list[float]:
    """Commit again and again, as an agent would; return how long each took in milliseconds."""
    times: list[float] = []
    with Memory.open(path) as memory:
        while not times or not ended(len(times)):
            fact = Triple(f"speaker {len(times) % 100}", "said", f"word {len(times)}")
            times.append(microseconds(lambda fact=fact: memory.commit([fact], scenes="chan:bench")) / 1000)
            time.sleep(0.003)
    return times


_SURNAMES, _SIGNS = "王李张刘陈杨赵黄周吴徐孙", "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰"
_SYLLABLES = [
    "an",
    "bo",
    "chi",
    "den",
    "el",
    "fra",
    "gu",
    "hil",
    "im",
    "jo",
    "ka",
    "lu",
    "mar",
    "nor",
    "ri",
    "sta",
    "ver",
]


def _name(rng: random.Random) -> str:
    """A name in Chinese, an address, a numbered thing or two words."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(_SURNAMES) + "".join(rng.choices(_SIGNS, k=rng.randint(1, 5)))
    if kind == 1:
        return f"{''.join(rng.choices(_SYLLABLES, k=3))}.{''.join(rng.choices(_SYLLABLES, k=2))}@example.org"
    if kind == 2:
        return f"item {rng.randrange(10**6):06} {''.join(rng.choices(_SYLLABLES, k=2))}"
    return " ".join("".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(2))


def review(path: str) -> Row:
    """Return the seconds of a review, the pairs it found, and the peak of memory before and after."""
    with Memory.open(path) as memory:
        before = resident("VmHWM")
        started = time.perf_counter()
        found = memory.review_entities(limit=20)
        spent = time.perf_counter() - started
    return {"s": round(spent, 2), "pairs": len(found.pairs), "before": before, "peak": resident("VmHWM")}


def run_entities(sizes: Sequence[int], _: int) -> Finding:
    """Measure a review of entities in a process of its own."""
    finding = Finding()
    for entities in sizes:
        rng = random.Random(SEED)
        names: set[str] = set()
        while len(names) < entities:
            names.add(_name(rng))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.db"
            with bulk(path) as db:
                db.executemany(
                    "INSERT INTO entities(name, key, created_at, updated_at) VALUES (?, ?, ?, ?)",
                    ((one, one, AT, AT) for one in sorted(names)),
                )
            say(f"entities: review of {entities}")
            found = apart(review, str(path))
        peak, before = float(found["peak"]), float(found["before"])
        row: Row = {
            "entities": entities,
            "review_s": found["s"],
            "pairs": found["pairs"],
            "peak_mib": mebibytes(peak),
            "grown_mib": mebibytes(peak - before),
            "grown_bytes_an_entity": round((peak - before) / entities),
        }
        finding.rows.append(row)
        finding.musts += [
            Must(f"review of {entities} entities, seconds", float(row["review_s"]), 60.0),
            Must(f"review of {entities} entities, MiB of memory at its peak", float(row["peak_mib"]), 1024),
        ]
    finding.growth_of("review of entities", "entities", "review_s")
    return finding
