#!/usr/bin/env python3
"""Benchmarks of graphmem: medians with spread, as ratios to a floor measured in the same run.

enter    one enter_scene that joins, at 100, 10 000 and 100 000 scenes. The floor is what a join must write and no
         more: the counter, the scene, its features and the change log, as prepared statements in one transaction on
         the same file, with no logic around them.

Usage: python scripts/bench.py [enter] [--scenes N ...] [--turns N] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from graphmem import Memory, Situation

AT = "2026-09-07T08:00:00.000Z"
SEED = 20260907
BLOCKS = 8
VOCABULARY = 2000
VISITS = 10


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
        "UPDATE scenes SET strength = strength + 1, visits = visits + 1, updated_at = ?, revision = ? WHERE id = ?",
        (AT, revision, scene_id),
    )
    db.executemany(
        """INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, ?, ?, 1)
           ON CONFLICT (scene_id, feature) DO UPDATE SET
               weight = MAX(weight, excluded.weight), mass = mass + excluded.mass, touched = excluded.touched""",
        [(scene_id, feature, weight, weight) for feature, weight in weights.items()],
    )
    db.execute("INSERT INTO scene_changes(revision, scene_id) VALUES (?, ?)", (revision, scene_id))
    db.execute("COMMIT")


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e6


def bench_enter(scenes: int, turns: int) -> dict[str, float]:
    rng = random.Random(SEED + 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        fill(path, scenes)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        with Memory.open(path) as memory:
            import graphmem.graph.scene_index  # noqa: F401 (numpy is not part of the build time)

            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            build = timed(lambda: memory.match_scenes(situation(rng, 0))) / 1e6
            resident = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
            entered, bare = [], []
            for _ in range(BLOCKS):
                # The scenes of the floor are read again by the engine's first turns, which are not counted.
                for _ in range(turns // BLOCKS):
                    i = rng.randrange(scenes)
                    weights = situation(rng, i).weights
                    bare.append(timed(lambda: floor(db, i + 1, weights)))
                for n in range(turns // BLOCKS + 20):
                    here = situation(rng, rng.randrange(scenes))
                    spent = timed(lambda: memory.enter_scene(here))
                    if n >= 20:
                        entered.append(spent)
            db.close()
            index_bytes = memory._index.nbytes if memory._index else 0
    quantiles = statistics.quantiles(entered, n=100)
    return {
        "scenes": scenes,
        "enter_us": round(statistics.median(entered), 1),
        "p10_us": round(quantiles[9], 1),
        "p90_us": round(quantiles[89], 1),
        "p99_us": round(quantiles[98], 1),
        "floor_us": round(statistics.median(bare), 1),
        "ratio": round(statistics.median(entered) / statistics.median(bare), 2),
        "build_s": round(build, 3),
        "index_bytes_per_scene": round(index_bytes / scenes, 1),
        "rss_bytes_per_scene": round(resident / scenes, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["enter"], nargs="?", default="enter")
    parser.add_argument("--scenes", type=int, nargs="+", default=[100, 10_000, 100_000])
    parser.add_argument("--turns", type=int, default=4000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    for scenes in args.scenes:
        print(f"enter at {scenes} scenes ...", file=sys.stderr)
        rows.append(bench_enter(scenes, args.turns))
    growth = round(rows[-1]["enter_us"] / rows[0]["enter_us"], 2)
    if args.json:
        print(json.dumps({"enter": rows, "growth": growth}, indent=1))
        return
    names = list(rows[0])
    print("".join(f"{name:>22}" for name in names))
    for row in rows:
        print("".join(f"{row[name]:>22}" for name in names))
    print(f"the largest takes {growth} times as long as the smallest")


if __name__ == "__main__":
    main()
