#!/usr/bin/env python3
"""Benchmarks of graphmem: medians with spread, as ratios to a floor measured in the same run.

enter    one enter_scene that joins, at 100, 10 000 and 100 000 scenes. The floor is what a join must write and no
         more: the counter, the scene, its features and the change log, as prepared statements in one transaction on
         the same file, with no logic around them.
fresh    100 000 turns on six channels, each with three topics never met before, in tenths.
search   one recall of three words among 1 000 to 1 000 000 short texts, and the rate at which they are mirrored. The
         floor of a recall is the bare FTS5 query for the first 200 of the same words; that of mirroring is to make the
         same tokens and write the same rows with executemany, in transactions of the same size.
dedupe   100 000 scenes, one in twenty a twin: dry run, real run and undo. The floor is one SELECT of all rows of
         the same tables.
upkeep   commits of one process while another keeps upkeep of 100 000 scenes with twins, all of whose refs fade.
entities 100 000 entities: how long a review looks for those that may be one, and what memory it takes at its peak.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from graphmem import Memory, Part, Situation, Triple
from graphmem.core.tokens import tokens_of

AT = "2026-09-07T08:00:00.000Z"
SEED = 20260907
BLOCKS = 8
WARM_UP = 20
VOCABULARY = 2000
VISITS = 10
SESSION = 1000
FIRST_200 = "SELECT rowid FROM text_index WHERE text_index MATCH ? ORDER BY rank LIMIT 200"


def plain_scene(i: int) -> dict[str, str]:
    """The identity of one scene: two in three name a person, some of those on a channel with a tool of its own."""
    if i % 3:
        named = {"peer": f"p{i}", "chan": f"c{i % 200}"}
        return named | {"tool": f"t{i % 20}"} if i % 2 else named
    return {"chan": f"room{i}", "tool": f"t{i % 20}"} if i % 2 else {"chan": f"room{i}"}


def words(i: int) -> list[str]:
    return [f"w{(i * 977 + word * 131) % VOCABULARY}" for word in range(12)]


def situation(rng: random.Random, i: int) -> Situation:
    """One turn of a scene: three of the dozen words it is about; one turn in ten brings a word from elsewhere."""
    topics = rng.sample(words(i), 3)
    if rng.random() < 0.1:
        topics[0] = f"w{rng.randrange(VOCABULARY)}"
    return Situation.of(**plain_scene(i), topics=topics, part=rng.choice(["morning", "evening"]), at=AT)


def fill(path: Path, scenes: int) -> None:
    """Write scenes of ten visits each, in bulk: all their words were met two or three times."""
    Memory.open(path).close()
    db = sqlite3.connect(path)
    features, rows = [], []
    for i in range(scenes):
        who = Situation.of(**plain_scene(i))
        rows.append((i + 1, "auto:" + who.label(), VISITS, VISITS, AT, AT))
        features += [(i + 1, feature, weight, weight * VISITS, VISITS) for feature, weight in who.weights.items()]
        features += [(i + 1, f"topic:{word}", 0.4 / 3, 0.4 * VISITS / 12, VISITS) for word in words(i)]
        features += [(i + 1, f"part:{part}", 0.2, 0.2 * VISITS / 2, VISITS) for part in ("morning", "evening")]
    db.executemany(
        """INSERT INTO scenes(id, key, strength, visits, origin, created_at, updated_at)
           VALUES (?, ?, ?, ?, 'emergent', ?, ?)""",
        rows,
    )
    db.executemany(
        "INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, ?, ?, ?)", features
    )
    db.commit()
    db.close()


def floor(db: sqlite3.Connection, scene_id: int, weights: dict[str, float]) -> None:
    """The writes of one join."""
    db.execute("BEGIN IMMEDIATE")
    (revision,) = db.execute(
        "UPDATE counters SET value = value + 1 WHERE name = 'scene_revision' RETURNING value"
    ).fetchone()
    db.execute(
        "UPDATE scenes SET strength = strength + 1, visits = visits + 1, updated_at = ? WHERE id = ?", (AT, scene_id)
    )
    db.executemany(
        """INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, ?, ?, 1)
           ON CONFLICT (scene_id, feature) DO UPDATE SET
               weight = MAX(weight, excluded.weight), mass = mass + excluded.mass, touched = excluded.touched""",
        [(scene_id, feature, weight, weight) for feature, weight in weights.items()],
    )
    db.execute("INSERT INTO scene_changes(revision, scene_id) VALUES (?, ?)", (revision, scene_id))
    db.execute("COMMIT")


def microseconds(work: Callable[..., object], *arguments: object) -> float:
    started = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - started) * 1e6


def summary(times: list[float]) -> dict[str, float]:
    quantiles = statistics.quantiles(times, n=100)
    return {
        "median_us": round(statistics.median(times), 1),
        "p10_us": round(quantiles[9], 1),
        "p90_us": round(quantiles[89], 1),
        "p99_us": round(quantiles[98], 1),
    }


def bench_enter(scenes: int, turns: int) -> dict[str, float]:
    """One enter_scene that joins, and its floor, in alternating blocks on one file."""
    rng = random.Random(SEED + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        fill(path, scenes)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        entered, bare = [], []
        with Memory.open(path) as memory:
            importlib.import_module("graphmem.graph.scene_index")  # so that the build time is without numpy's import
            tracemalloc.start()
            build = microseconds(memory.match_scenes, situation(rng, 0))
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            build = min(build, rebuild(path, rng))
            for _ in range(BLOCKS):
                for _ in range(turns // BLOCKS):
                    i = rng.randrange(scenes)
                    bare.append(microseconds(floor, db, i + 1, situation(rng, i).weights))
                for n in range(turns // BLOCKS + WARM_UP):
                    spent = microseconds(memory.enter_scene, situation(rng, rng.randrange(scenes)))
                    if n >= WARM_UP:  # the first one reads again what the floor has changed
                        entered.append(spent)
        db.close()
    return {
        "scenes": scenes,
        **summary(entered),
        "floor_us": round(statistics.median(bare), 1),
        "ratio": round(statistics.median(entered) / statistics.median(bare), 2),
        "build_s": round(build / 1e6, 3),
        "index_bytes_per_scene": round(held / scenes),
    }


def rebuild(path: Path, rng: random.Random) -> float:
    """The time to build the index, measured without the tracing of its memory."""
    with Memory.open(path) as memory:
        return microseconds(memory.match_scenes, situation(rng, 0))


def bench_fresh(turns: int) -> list[dict[str, float]]:
    """Turns on six channels, each with three topics never met before: does a scene grow, and does a turn slow down?"""
    rows = []
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "bench.db") as memory:
        times: list[float] = []
        for n in range(turns):
            topics = [f"fresh{3 * n + word}" for word in range(3)]
            times.append(microseconds(memory.enter_scene, Situation.of(chan=f"c{n % 6}", topics=topics, at=AT)))
            if (n + 1) % (turns // 10) == 0:
                largest = max(scene.features for scene in memory.scenes())
                rows.append(
                    {"turns": n + 1, **summary(times), "scenes": len(memory.scenes()), "features_at_most": largest}
                )
                times.clear()
    return rows


def said(rng: random.Random, vocabulary: list[str], weights: list[float]) -> str:
    """A short text: a dozen words as often as words are in a language."""
    return " ".join(rng.choices(vocabulary, cum_weights=weights, k=12))


def bench_search(texts: int, queries: int) -> dict[str, float]:
    """Recall among short texts in sessions of a thousand, and its floor, in turn on one file; and their ingest."""
    rng = random.Random(SEED)
    vocabulary = ["".join(rng.choices("abdegiklmnoprstuv", k=rng.randint(4, 9))) for _ in range(30_000)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(vocabulary))))
    lines = [said(rng, vocabulary, weights) for _ in range(texts)]
    starts = range(0, texts, SESSION)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        floor_rate = texts / ingest_floor(
            Path(folder) / "floor.db", [lines[start : start + SESSION] for start in starts]
        )
        asked, bare = [], []
        with Memory.open(path) as memory:
            spent = 0.0
            for start in starts:
                parts = [Part(str(start + n), text=line) for n, line in enumerate(lines[start : start + SESSION])]
                spent += microseconds(memory.mirror, f"session {start}", parts)
            before = resident()
            db = sqlite3.connect(path)
            for n in range(queries + WARM_UP):
                words = rng.sample(rng.choice(lines).split(), 3)
                match = " OR ".join(f'"{token}"' for token in tokens_of(" ".join(words)))
                found = microseconds(memory.recall, " ".join(words))
                plain = microseconds(lambda sought=match: db.execute(FIRST_200, (sought,)).fetchall())
                if n >= WARM_UP:
                    asked.append(found)
                    bare.append(plain)
            db.close()
            grown = resident() - before
    median, floor_median = statistics.median(asked), statistics.median(bare)
    return {
        "texts": texts,
        **summary(asked),
        "floor_us": round(floor_median, 1),
        "ratio": round(median / floor_median, 2),
        "allowed_us": round(2.5 * floor_median + 1000, 1),
        "texts_per_s": round(texts / spent * 1e6),
        "ingest_ratio": round(texts / spent * 1e6 / floor_rate, 2),
        "grown_mib": round(grown / 2**20, 1),
    }


def ingest_floor(path: Path, sessions: list[list[str]]) -> float:
    """Return the seconds to make the tokens of texts and write them into the tables of parts and of the index."""
    Memory.open(path).close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = NORMAL")
    started = time.perf_counter()
    number = 0
    for session, lines in enumerate(sessions, 1):
        parts, index = [], []
        for place, line in enumerate(lines):
            number += 1
            tokens = tokens_of(line)
            parts.append((number, session, place, str(number), line, len(tokens), AT))
            index.append((number, "  ".join(tokens)))
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "INSERT INTO sessions(id, name, created_at, updated_at) VALUES (?, ?, ?, ?)", (session, session, AT, AT)
        )
        db.executemany(
            """INSERT INTO parts(id, session_id, seq, part, text, length, recorded_at)
               VALUES (?, ?, ?, ?, ?, ?, ?)""",
            parts,
        )
        db.executemany("INSERT INTO text_index(rowid, title, labels, body) VALUES (?, '', '', ?)", index)
        db.execute("COMMIT")
    spent = time.perf_counter() - started
    db.close()
    return spent


def fill_twins(path: Path, scenes: int) -> int:
    """Write scenes with three refs each, one in twenty of them a second time under another spelling of its key."""
    fill(path, scenes)
    rng = random.Random(SEED)
    facts = range(1, scenes // 5)
    last = scenes
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.executemany(
            "INSERT INTO entities(id, name, key, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
            ((i, f"thing {i}", f"thing {i}", AT, AT) for i in facts),
        )
        for original, key in db.execute("SELECT id, key FROM scenes WHERE id % 20 = 0").fetchall():
            last += 1
            db.execute(
                """INSERT INTO scenes(id, key, strength, visits, origin, created_at, updated_at)
                   SELECT ?, ?, strength, visits, origin, created_at, updated_at FROM scenes WHERE id = ?""",
                (last, key.upper(), original),
            )
            db.execute(
                """INSERT INTO scene_features(scene_id, feature, weight, mass, touched)
                   SELECT ?, feature, weight, mass, touched FROM scene_features WHERE scene_id = ?""",
                (last, original),
            )
        db.executemany(
            """INSERT OR IGNORE INTO scene_refs(scene_id, kind, ref_id, decayed_at, created_at)
               VALUES (?, 'entity', ?, ?, ?)""",
            ((scene, rng.choice(facts), AT, AT) for scene in range(1, last + 1) for _ in range(3)),
        )
    return last - scenes


def bench_dedupe(scenes: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        twins = fill_twins(path, scenes)
        tables = ("scenes", "scene_features", "scene_refs")
        with contextlib.closing(sqlite3.connect(path)) as db:
            floor_us = min(
                microseconds(lambda: [db.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
                for _ in range(3)
            )
        with Memory.open(path) as memory:
            dry = min(microseconds(lambda: memory.dedupe_scenes(dry_run=True)) for _ in range(3))
            started = time.perf_counter()
            report = memory.dedupe_scenes()
            real = (time.perf_counter() - started) * 1e6
            assert report.merged == twins, report.merged
            undone = microseconds(lambda: memory.undo(report.operation))
    return {
        "scenes": scenes + twins,
        "twins": twins,
        "select_s": round(floor_us / 1e6, 2),
        "dry_run_s": round(dry / 1e6, 2),
        "real_s": round(real / 1e6, 2),
        "undo_s": round(undone / 1e6, 2),
        "dry_to_select": round(dry / floor_us, 2),
        "real_to_select": round(real / floor_us, 2),
    }


def bench_upkeep(scenes: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        fill_twins(path, scenes)
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            days = ((f"2026-{month:02}-{day:02}",) for month in (10, 11) for day in range(1, 29))
            db.executemany("INSERT INTO active_days VALUES (?)", days)
            labels = ((f"chan:old_{i}", AT) for i in range(scenes // 10))
            db.executemany("INSERT INTO situation_evidence(label, updated_at) VALUES (?, ?)", labels)
        alone = commits(path, lambda done: done >= 500)
        command = [
            sys.executable,
            "-c",
            f"from graphmem import Memory\nMemory.open({str(path)!r}).upkeep(allow_shrink=True)",
        ]
        started = time.perf_counter()
        with subprocess.Popen(command) as upkeep:
            beside = commits(path, lambda done: upkeep.poll() is not None)
            seconds = time.perf_counter() - started
        assert upkeep.returncode == 0
        (refs,) = sqlite3.connect(path).execute("SELECT COUNT(*) FROM scene_refs WHERE weight = 0.5").fetchone()
    return {
        "scenes": scenes,
        "refs_faded": refs,
        "pass_s": round(seconds, 1),
        "commits": len(beside),
        "alone_p50_ms": round(statistics.median(alone), 2),
        "alone_max_ms": round(max(alone), 1),
        "p50_ms": round(statistics.median(beside), 2),
        "p99_ms": round(sorted(beside)[len(beside) * 99 // 100], 1),
        "max_ms": round(max(beside), 1),
    }


def commits(path: Path, ended: Callable[[int], bool]) -> list[float]:
    """Commit again and again, as an agent would; return how long each took in milliseconds."""
    times: list[float] = []
    with Memory.open(path) as memory:
        while not ended(len(times)):
            fact = Triple(f"speaker {len(times) % 100}", "said", f"word {len(times)}")
            times.append(microseconds(lambda fact=fact: memory.commit([fact], scenes="chan:bench")) / 1000)
            time.sleep(0.003)
    return times


def bench_entities(entities: int) -> dict[str, float]:
    rng = random.Random(SEED)
    surnames, signs = "王李张刘陈杨赵黄周吴徐孙", "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰"
    syllables = [
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

    def name() -> str:
        kind = rng.randrange(4)
        if kind == 0:
            return rng.choice(surnames) + "".join(rng.choices(signs, k=rng.randint(1, 5)))
        if kind == 1:
            return f"{''.join(rng.choices(syllables, k=3))}.{''.join(rng.choices(syllables, k=2))}@example.org"
        if kind == 2:
            return f"item {rng.randrange(10**6):06} {''.join(rng.choices(syllables, k=2))}"
        return " ".join("".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(2))

    names: set[str] = set()
    while len(names) < entities:
        names.add(name())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(path) as memory:
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                db.executemany(
                    "INSERT INTO entities(name, key, created_at, updated_at) VALUES (?, ?, ?, ?)",
                    ((one, one, AT, AT) for one in sorted(names)),
                )
            before = peak()
            started = time.perf_counter()
            review = memory.review_entities(limit=20)
            seconds = time.perf_counter() - started
    return {
        "entities": entities,
        "seconds": round(seconds, 1),
        "pairs": len(review.pairs),
        "peak_mib": round(peak() / 1024),
        "grown_mib": round((peak() - before) / 1024),
    }


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident() -> int:
    """The memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def print_rows(rows: list[dict[str, float]]) -> None:
    names = list(rows[0])
    widths = [max(len(name), 10) + 2 for name in names]
    print("".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True)))
    for row in rows:
        print("".join(f"{row[name]:>{width}}" for name, width in zip(names, widths, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", choices=["enter", "fresh", "search", "dedupe", "entities", "upkeep"], nargs="?", default="enter"
    )
    parser.add_argument("--scenes", type=int, nargs="+", default=[100, 10_000, 100_000], help="sizes for enter")
    parser.add_argument(
        "--texts", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000], help="sizes for search"
    )
    parser.add_argument(
        "--turns", type=int, help="measured turns or queries  [4000 for enter, 100000 for fresh, 300 for search]"
    )
    parser.add_argument("--size", type=int, default=100_000, help="scenes of dedupe, entities of entities")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args()
    if args.what == "fresh":
        rows = bench_fresh(args.turns or 100_000)
        found = {"fresh": rows, "end_to_start": round(rows[-1]["median_us"] / rows[0]["median_us"], 2)}
        words = f"the last tenth takes {found['end_to_start']} times as long as the first"
    elif args.what in ("dedupe", "entities", "upkeep"):
        bench, words = {
            "dedupe": (bench_dedupe, "at most 10 times the SELECT is allowed"),
            "entities": (bench_entities, "60 s and 1 GiB are allowed"),
            "upkeep": (bench_upkeep, "no commit may wait longer than 50 ms for a pass"),
        }[args.what]
        rows = [bench(args.size)]
        found = {args.what: rows}
    elif args.what == "search":
        rows = []
        for texts in args.texts:
            print(f"search among {texts} texts ...", file=sys.stderr)
            rows.append(bench_search(texts, args.turns or 300))
        found = {"search": rows}
        words = f"the slowest takes {max(row['median_us'] / row['allowed_us'] for row in rows):.2f} of what is allowed"
    else:
        rows = []
        for scenes in args.scenes:
            print(f"enter at {scenes} scenes ...", file=sys.stderr)
            rows.append(bench_enter(scenes, args.turns or 4000))
        found = {"enter": rows, "growth": round(rows[-1]["median_us"] / rows[0]["median_us"], 2)}
        words = f"the largest takes {found['growth']} times as long as the smallest"
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        print_rows(rows)
        print(words)


if __name__ == "__main__":
    main()
