"""tree: notes as files; above all what a sync costs that finds nothing to do, against a bare walk and one SELECT.

Notes of a few lines are exported, and synced once their files are old enough to be known by their stamps alone. Then
syncs and floors take turns. Beside them the first export, the first sync of another memory, which reads every file, a
sync after one edit, and how long a watched edit takes from the moment that its file is there.
"""

import os
import queue
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import Finding, Must, say
from benchmarks.seeds import AT, bare
from graphmem import Memory
from graphmem.core.model import TreeReport

TURNS = 15
OLD_ENOUGH = 2.5  # seconds
WORDS = [
    "deploy",
    "panel",
    "pnpm",
    "npm",
    "docker",
    "cache",
    "redis",
    "login",
    "token",
    "page",
    "build",
    "test",
    "部署",
    "回滚",
    "清单",
    "面板",
]


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure trees of so many notes each."""
    finding = Finding()
    for size in sizes:
        say(f"tree: {size} notes")
        with tempfile.TemporaryDirectory() as name:
            spent = _measured(Path(name), size, turns)
        sync, floor = statistics.median(spent.syncs), statistics.median(spent.floors)
        edited = statistics.median(spent.edits)
        finding.rows.append(
            {
                "notes": size,
                "unchanged_ms": round(sync * 1e3, 1),
                "floor_ms": round(floor * 1e3, 1),
                "to_floor": round(sync / floor, 2),
                "read_all_ms": round(spent.read_all * 1e3, 1),
                "one_edit_ms": round(edited * 1e3, 1),
                "watched_ms": round(statistics.median(spent.watched) * 1e3),
                "watched_worst_ms": round(max(spent.watched) * 1e3),
                "export_s": round(spent.export, 2),
                "take_s": round(spent.take, 2),
            }
        )
        finding.musts += [
            Must(f"sync of {size} unchanged notes to a bare walk and one SELECT", sync / floor, 2.0),
            Must(f"seconds of a sync after one edit of {size}", edited, 1.0),
            Must(f"seconds until a watched edit of one of {size} is taken over, the worst", max(spent.watched), 1.0),
        ]
    return finding


@dataclass(slots=True)
class _Spent:
    """Seconds."""

    export: float = 0.0
    take: float = 0.0
    read_all: float = 0.0
    syncs: list[float] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)
    edits: list[float] = field(default_factory=list)
    watched: list[float] = field(default_factory=list)


def _measured(folder: Path, size: int, turns: int) -> _Spent:
    root, spent = folder / "tree", _Spent()
    with Memory.open(folder / "memory.db") as memory, Memory.open(folder / "other.db") as other:
        _fill(memory, size)
        spent.export = _timed(lambda: memory.export_tree(root))
        spent.take = _timed(lambda: other.sync_tree(root))
        time.sleep(OLD_ENOUGH)
        spent.read_all = _timed(lambda: memory.sync_tree(root))
        with bare(folder / "memory.db") as db:
            for turn in range(turns + 1):
                sync, floor = _timed(lambda: memory.sync_tree(root)), _timed(lambda: _floor(root, db))
                if turn:
                    spent.syncs.append(sync)
                    spent.floors.append(floor)
        spent.edits = [_timed_edit(memory, root, turn) for turn in range(min(turns, 5))]
        spent.watched = _watched(memory, root, turns)
    return spent


def _fill(memory: Memory, size: int) -> None:
    rng = random.Random(1)
    for number in range(size):
        words = rng.choices(WORDS, k=40)
        memory.remember(
            f"{' '.join(words[:3])} {number}", body=" ".join(words), kind=rng.choice(["fact", "lesson", "decision"]),
            labels=words[3:5], load_when=words[5:6] if number % 10 == 0 else (), summary=" ".join(words[6:12]), at=AT,
        )  # fmt: skip


def _floor(root: Path, db: sqlite3.Connection) -> int:
    """Look at every file, and read what is kept of it."""
    found = {}
    waiting = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    found[entry.path] = entry.stat(follow_symlinks=False)
    rows = db.execute(
        "SELECT uid, path, note_id, hash, stamp, note_hash, changes, conflict FROM tree_files WHERE root = ?",
        (os.path.realpath(root),),
    ).fetchall()
    return len(found) + len(rows)


def _timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def _timed_edit(memory: Memory, root: Path, turn: int) -> float:
    path = _notes_of(root)[0]
    path.write_text(path.read_text("utf-8") + f"\nmore {turn}\n", "utf-8")
    started = time.perf_counter()
    report = memory.sync_tree(root)
    spent = time.perf_counter() - started
    assert any(change.what == "edited" for change in report.changes)
    return spent


def _notes_of(root: Path) -> list[Path]:
    """Return the files of notes, without the list beside them."""
    return sorted(path for path in (root / "facts").glob("*.md") if path.name != "index.md")


def _watched(memory: Memory, root: Path, edits: int) -> list[float]:
    """Edit files while the tree is watched; return how long each took until it was in the memory."""
    told: queue.Queue[TreeReport] = queue.Queue()
    stop = threading.Event()
    watching = threading.Thread(target=lambda: memory.watch_tree(root, told.put, stop=stop))
    watching.start()
    spent = []
    try:
        told.get(timeout=60)
        paths = _notes_of(root)
        for turn in range(edits):
            time.sleep(0.3 + turn / 50)  # at another place of the watcher's steps each time
            path = paths[turn % len(paths)]
            started = time.perf_counter()
            path.write_text(path.read_text("utf-8") + f"\nseen {turn}\n", "utf-8")
            while not any(change.what == "edited" for change in told.get(timeout=60).changes):
                pass
            spent.append(time.perf_counter() - started)
    finally:
        stop.set()
        watching.join()
    return spent
