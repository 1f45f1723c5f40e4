"""enter: one turn that joins its scene, at any number of scenes. fresh: turns with topics never met before."""

import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import (
    Finding,
    Must,
    Row,
    apart,
    in_blocks,
    median,
    microseconds,
    ratio,
    resident,
    say,
    summary,
)
from benchmarks.seeds import AT, SEED, bare, fill, situation
from graphmem import Memory, Situation
from graphmem.store.postings import FOR_ALL, beside_channel, of_party

TURNS = 4000
_ENOUGH_FOR_SHARES = 10_000  # below, what a scene takes is lost in what the process takes


def floor(db: sqlite3.Connection, scene_id: int, here: Situation) -> None:
    """Issue the statements of one join and no more: find the scene, read its features, write the visit."""
    led_by = next(iter(here.peers or here.channels))
    db.execute("BEGIN IMMEDIATE")
    found = db.execute(
        """SELECT s.id, s.key, s.strength, s.visits FROM scene_features p CROSS JOIN scenes s ON s.id = p.scene_id
           WHERE p.feature = ? AND p.posted BETWEEN 0 AND ? AND s.origin = 'emergent' AND s.visits > 0""",
        (led_by, of_party(1, channels=True) if here.peers else FOR_ALL),
    ).fetchall()
    visit = next(visits for found_id, _, _, visits in found if found_id == scene_id) + 1
    known = dict(db.execute("SELECT feature, mass FROM scene_features WHERE scene_id = ?", (scene_id,)).fetchall())
    db.execute(
        "UPDATE scenes SET strength = strength + 1, visits = visits + 1, updated_at = MAX(updated_at, ?) WHERE id = ?",
        (AT, scene_id),
    )
    db.executemany(
        """UPDATE scene_features SET weight = MAX(weight, ?1), mass = mass + ?1, touched = ?2
           WHERE scene_id = ?3 AND feature = ?4""",
        [(weight, visit, scene_id, feature) for feature, weight in here.weights.items() if feature in known],
    )
    fresh = [
        (scene_id, feature, weight, visit, None if here.peers else beside_channel(here.weights[min(here.channels)]))
        for feature, weight in here.weights.items()
        if feature not in known
    ]
    if fresh:
        db.executemany(
            """INSERT INTO scene_features(scene_id, feature, weight, mass, touched, posted)
               VALUES (?1, ?2, ?3, ?3, ?4, ?5)""",
            fresh,
        )
    db.execute("COMMIT")


@contextmanager
def six_rows(path: Path, owners: int) -> Iterator[Callable[[int], None]]:
    """Yield an act that upserts the six rows of one owner, of so many, in a file of its own and commits."""
    with bare(path) as db:
        db.execute("CREATE TABLE six(owner INTEGER, name TEXT, mass REAL, PRIMARY KEY (owner, name)) WITHOUT ROWID")
        names = [f"name {n}" for n in range(6)]
        db.execute("BEGIN")
        rows = ((owner, name) for owner in range(owners) for name in names)
        db.executemany("INSERT INTO six VALUES (?, ?, 1.0)", rows)
        db.execute("COMMIT")

        def act(owner: int) -> None:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                "INSERT INTO six VALUES (?, ?, 1.0) ON CONFLICT (owner, name) DO UPDATE SET mass = mass + 1.0",
                [(owner, name) for name in names],
            )
            db.execute("COMMIT")

        yield act


def first_turn(empty: str, path: str, seed: int) -> Row:
    """Return the time and the memory that the first look at the scenes takes, beyond that at an empty file."""
    here = situation(random.Random(seed), 0)
    with Memory.open(empty) as memory:
        memory.match_scenes(here)
    with Memory.open(path) as memory:
        before = resident()
        spent = microseconds(lambda: memory.match_scenes(here))
        return {"first_turn_us": spent, "held_bytes": resident() - before}


def _at(scenes: int, turns: int, folder: Path) -> tuple[Row, list[Must]]:
    rng = random.Random(SEED + 1)
    path = folder / "bench.db"
    say(f"enter: filling {scenes} scenes")
    fill(path, scenes)
    file_bytes = path.stat().st_size
    say(f"enter: at {scenes} scenes")
    empty = folder / "empty.db"
    Memory.open(empty).close()
    first = apart(first_turn, str(empty), str(path), SEED)
    kept: list[str] = []
    with bare(path) as db, six_rows(folder / "six.db", scenes) as six, Memory.open(path) as memory:

        def entering() -> Callable[[], object]:
            here = situation(rng, rng.randrange(scenes))
            return lambda: kept.append(memory.enter_scene(here).key)

        def bare_join() -> Callable[[], object]:
            i = rng.randrange(scenes)
            here = situation(rng, i)
            return lambda: floor(db, i + 1, here)

        def bare_six() -> Callable[[], object]:
            owner = rng.randrange(scenes)
            return lambda: six(owner)

        times = in_blocks({"enter": entering, "floor": bare_join, "six": bare_six}, measured=turns)
    assert all(kept), "a turn was in no scene"
    with bare(path) as db:
        (grown,) = db.execute("SELECT COUNT(*) FROM scenes").fetchone()
    row: Row = {
        "scenes": scenes,
        **summary(times["enter"]),
        "floor_us": median(times["floor"]),
        "floor_p99_us": summary(times["floor"])["p99_us"],
        "to_floor": ratio(times["enter"], times["floor"]),
        "six_rows_us": median(times["six"]),
        "to_six_rows": ratio(times["enter"], times["six"]),
        "new_scenes": grown - scenes,
        "file_bytes_a_scene": round(file_bytes / scenes),
        "first_turn_ms": round(float(first["first_turn_us"]) / 1000, 1),
        "load_us_a_scene": round(float(first["first_turn_us"]) / scenes, 2),
        "held_bytes_a_scene": round(float(first["held_bytes"]) / scenes),
    }
    spread = float(row["p99_us"]) / float(row["median_us"])
    return row, [
        Must(f"enter at {scenes} scenes, times its floor", float(row["to_floor"]), 2.0, to_floor=True),
        Must(f"enter at {scenes} scenes, times a six-row upsert and commit", float(row["to_six_rows"]), 5.0),
        Must(f"enter at {scenes} scenes, p99 over median", spread, 8.0),
    ]


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure one enter_scene that joins, its floor and the anchor in alternating blocks."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            row, musts = _at(scenes, turns, Path(folder))
        finding.rows.append(row)
        finding.musts += musts
    smallest, largest = (sorted(finding.rows, key=lambda row: row["scenes"])[end] for end in (0, -1))
    if smallest is not largest:
        finding.musts.append(
            Must(
                f"enter at {largest['scenes']} scenes, times that at {smallest['scenes']}",
                float(largest["median_us"]) / float(smallest["median_us"]),
                1.6,
            )
        )
    if int(largest["scenes"]) >= _ENOUGH_FOR_SHARES:
        at = f"enter at {largest['scenes']} scenes"
        finding.musts += [
            Must(f"{at}, first look at the scenes, microseconds a scene", float(largest["load_us_a_scene"]), 8.0),
            Must(f"{at}, bytes held for the scenes, a scene", float(largest["held_bytes_a_scene"]), 250),
        ]
    finding.growth_of("enter", "scenes", "median_us", 0.1)
    finding.growth_of("floor", "scenes", "floor_us", is_floor=True)
    return finding


def run_fresh(sizes: Sequence[int], _: int) -> Finding:
    """Enter turns on six channels, each with three topics never met before: do scenes grow, do turns slow down?"""
    finding = Finding()
    for turns in sizes:
        say(f"fresh: {turns} turns")
        with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "bench.db") as memory:
            times: list[float] = []
            for n in range(turns):
                topics = [f"fresh{3 * n + word}" for word in range(3)]
                here = Situation.of(chan=f"c{n % 6}", topics=topics, at=AT)
                times.append(microseconds(lambda here=here: memory.enter_scene(here)))
                if (n + 1) % max(turns // 10, 1) == 0:
                    largest = max((scene.features for scene in memory.scenes()), default=0)
                    found: Row = {"scenes": len(memory.scenes()), "features_at_most": largest}
                    finding.rows.append({"turns": n + 1, **summary(times), **found})
                    times.clear()
        first, last = (float(finding.rows[place]["median_us"]) for place in (-min(turns, 10), -1))
        finding.notes.append(f"{turns} turns: the last tenth takes {last / first:.2f} times as long as the first")
    return finding
