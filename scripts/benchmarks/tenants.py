"""tenants: many files, each opened in turn and many at once, within bounded handles and memory."""

import contextlib
import resource
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Finding, Must, Row, median, microseconds, open_handles, resident, say, summary
from benchmarks.seeds import AT
from graphmem import Memory, Situation, Triple

AT_ONCE = 200


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


def run(sizes: Sequence[int], turns: int) -> Finding:
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
            # What a process remembers of words and keys is bounded, but takes more than a tenth of the files to fill.
            Must(f"{files} files in turn, MiB grown after the first tenth", grown / 2**20, 32),
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
