"""What the benchmarks share: timing in alternating blocks, medians with spread, verdicts, growth, memory."""

import importlib.metadata
import json
import math
import os
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

SCRIPTS = Path(__file__).parent.parent
BLOCKS = 8
WARM_UP = 20
_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}  # in microseconds

Row = dict[str, float | int | str]
# Makes ready what is to be measured: only the call of what it returns is timed.
Work = Callable[[], Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Must:
    """What issue 5 asks of a figure."""

    what: str
    measured: float
    allowed: float
    at_most: bool = True
    to_floor: bool = False  # a time as a multiple of that of its floor, for the plot

    @property
    def holds(self) -> bool:
        return self.measured <= self.allowed if self.at_most else self.measured >= self.allowed

    @property
    def line(self) -> str:
        """The verdict in one line.

        >>> Must("enter at 100 scenes, times its floor", 1.87, 2.0).line
        'must: enter at 100 scenes, times its floor: at most 2.0, measured 1.87, holds'
        """
        bound = "at most" if self.at_most else "at least"
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return f"must: {self.what}: {bound} {self.allowed}, measured {self.measured:.3g}, {verdict}"


@dataclass(frozen=True, slots=True)
class Growth:
    """How a time in microseconds grows with the number of `size`. is_floor: it is there to be compared with."""

    what: str
    size: str
    points: tuple[tuple[float, float], ...]
    is_floor: bool = False

    @property
    def slope(self) -> float:
        return slope(self.points)


@dataclass(slots=True)
class Finding:
    """What one benchmark found: rows of one table, verdicts, growth, and what a reader has to know of them."""

    rows: list[Row] = field(default_factory=list)
    musts: list[Must] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def growth_of(
        self,
        what: str,
        size: str,
        time: str,
        allowed: float | None = None,
        *,
        is_floor: bool = False,
        **where: object,
    ) -> None:
        """Add the growth of a column of times over that of sizes, in the rows that are so, and a verdict on its slope.

        The name of a column of times ends with its unit.
        """
        rows = [row for row in self.rows if all(row.get(name) == value for name, value in where.items())]
        unit = _UNITS[time.rpartition("_")[2]]
        points = tuple((float(row[size]), float(row[time]) * unit) for row in rows)
        growth = Growth(what, size, points, is_floor)
        if len(growth.points) < 2:
            return
        self.growths.append(growth)
        if allowed is not None:
            sizes = [size for size, _ in growth.points]
            between = f"{min(sizes):,.0f} to {max(sizes):,.0f}".replace(",", " ")
            self.musts.append(Must(f"{what}, slope of log time over log size, {between}", growth.slope, allowed))

    def document(self) -> dict[str, object]:
        """Everything, ready for JSON."""
        return {
            "rows": self.rows,
            "musts": [
                {"what": one.what, "bound": "at most" if one.at_most else "at least", "allowed": one.allowed,
                 "measured": round(one.measured, 4), "holds": one.holds}
                for one in self.musts
            ],
            "growth": [
                {"what": one.what, "size": one.size, "slope": round(one.slope, 3),
                 "points_us": [list(point) for point in one.points]}
                for one in self.growths
            ],
            "notes": self.notes,
        }  # fmt: skip


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of log time over log size, by least squares: 0 is flat, 1 is in proportion.

    >>> slope([(100, 5.0), (1000, 5.0), (10000, 5.0)])
    0.0
    >>> round(slope([(10, 3.0), (100, 30.0), (1000, 300.0)]), 6)
    1.0
    >>> round(slope([(1, 1.0), (4, 2.0), (16, 4.0)]), 6)
    0.5
    """
    sizes, times = zip(*((math.log(size), math.log(time)) for size, time in points), strict=True)
    return statistics.linear_regression(sizes, times).slope


# ---- time


def microseconds(act: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    act()
    return (time.perf_counter_ns() - started) / 1000


def in_blocks(
    works: Mapping[str, Work], *, measured: int, warm_up: int = WARM_UP, seconds: float = math.inf
) -> dict[str, list[float]]:
    """Return the times of works in microseconds, measured in alternating blocks, in one order and then in the other.

    A block starts with acts that are not measured: what the block before it changed has to be read anew. seconds: how
    long all blocks of one work may take; each measures one act at the least.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    blocks = min(BLOCKS, measured)
    for block in range(blocks):
        for name in sorted(works, key=list(works).index, reverse=bool(block % 2)):
            started = time.perf_counter()
            for _ in range(warm_up):
                works[name]()()
                if time.perf_counter() - started > seconds / blocks / 3:
                    break
            for _ in range(measured // blocks):
                times[name].append(microseconds(works[name]()))
                if time.perf_counter() - started > seconds / blocks:
                    break
    return times


def summary(times: Sequence[float]) -> Row:
    """Return median and spread.

    >>> summary([1.0, 2.0, 3.0])
    {'median_us': 2.0, 'p10_us': 1.2, 'p90_us': 2.8, 'p99_us': 3.0}
    """
    quantiles = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else [times[0]] * 99
    return {
        "median_us": round(statistics.median(times), 1),
        "p10_us": round(quantiles[9], 1),
        "p90_us": round(quantiles[89], 1),
        "p99_us": round(quantiles[98], 1),
    }


def median(times: Sequence[float]) -> float:
    return round(statistics.median(times), 1)


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    return round(statistics.median(over) / statistics.median(under), 2)


# ---- memory


def resident(of: str = "VmRSS") -> int:
    """Return the bytes of memory that this process holds; of='VmHWM' for the most it ever held.

    From /proc, since the peak of getrusage is that of the process that started this one, where that was larger.
    """
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(of + ":"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def open_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mebibytes(size: float) -> float:
    return round(size / 2**20, 1)


# ---- processes


def started(function: Callable[..., object], *arguments: object) -> "subprocess.Popen[str]":
    """Start a function of a benchmark in a process of its own; it reads and writes lines."""
    call = f"import json, sys; from {function.__module__} import {function.__name__} as run; "
    call += "print(json.dumps(run(*json.loads(sys.argv[1]))), flush=True)"
    return subprocess.Popen(
        [sys.executable, "-c", call, json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPTS), *filter(None, sys.path)])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def apart(function: Callable[..., object], *arguments: object) -> Row:
    """Return what a function returns in a process of its own, so that the memory it takes is its own."""
    with started(function, *arguments) as process:
        told, _ = process.communicate()
    assert process.returncode == 0, f"{function.__name__} failed"
    row: Row = json.loads(told.splitlines()[-1])
    return row


# ---- telling


def say(text: str) -> None:
    print(f"{text} ...", file=sys.stderr, flush=True)


def machine() -> Row:
    """Return what figures depend on."""
    processor = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        names = [line.partition(":")[2].strip() for line in cpus.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    commit = subprocess.run(
        ["git", "-C", str(SCRIPTS), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit or "unknown",
        "graphmem": importlib.metadata.version("graphmem"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} x {processor}",
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def table(rows: Sequence[Row]) -> str:
    """Return rows as columns of text.

    >>> print(table([{"a": 1, "b": "x"}, {"a": 20000, "b": "y"}]))
        a  b
        1  x
    20000  y
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join("  ".join(t.rjust(w) for t, w in zip(text, widths, strict=True)) for text in texts)
