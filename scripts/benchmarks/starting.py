"""start: whole processes of the command line, against the python that imports what they cannot do without."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import Finding, Must, Row, in_blocks, median, ratio, say, summary
from benchmarks.seeds import bulk, fill_refs, fill_scenes, key_of, plain_scene

TURNS = 24
HEAVY = (
    "asyncio", "networkx", "numpy", "regex", "rich", "rjieba", "snowballstemmer", "sqlite_utils", "tempfile", "urllib",
)  # fmt: skip
_LOADED = """
import json, sys
from graphmem.surfaces.cli import main
try:
    main(json.loads(sys.argv[1]))
finally:
    print(json.dumps(sorted(set(json.loads(sys.argv[2])) & set(sys.modules))), file=sys.stderr)
"""


def graphmem() -> list[str]:
    """The command that a user types, of the environment that this runs in."""
    script = Path(sys.executable).with_name("graphmem")
    return [str(script)] if script.exists() else [sys.executable, "-m", "graphmem"]


def _process(compiled: Path, *command: str) -> Callable[[], object]:
    """Return an act that runs a command, whose modules are compiled once and for all, as an installer does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEM_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(compiled)
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)


def loaded(*arguments: str) -> list[str]:
    """Return which heavy packages a command has imported at its end."""
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED, json.dumps(arguments), json.dumps(HEAVY)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return found


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure --help, recall of a scene and enter, and their floors, in alternating blocks of processes."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            say(f"start: filling {scenes} scenes")
            with bulk(path) as db:
                fill_scenes(db, scenes)
                fill_refs(db, range(1, scenes + 1), max(scenes // 5, 1))
            say(f"start: with {scenes} scenes")
            i = scenes // 2
            named = [word for kind, value in plain_scene(i).items() for word in (f"--{kind}", value)]
            commands = {
                "--help": (["--help"], "import click", 1.5),
                "recall --scene": (["--db", str(path), "recall", "--scene", key_of(i)], "import click, sqlite3", 1.8),
                "enter": (["--db", str(path), "enter", *named], "import click, sqlite3", 1.8),
            }
            compiled = Path(folder) / "compiled"
            floors = dict.fromkeys(imports for _, imports, _ in commands.values())
            works = {
                **{name: _process(compiled, *graphmem(), *arguments) for name, (arguments, _, _) in commands.items()},
                **{imports: _process(compiled, sys.executable, "-c", imports) for imports in floors},
            }
            times = in_blocks({name: lambda act=act: act for name, act in works.items()}, measured=turns, warm_up=1)
            for name, (arguments, imports, allowed) in commands.items():
                milliseconds = {
                    column.replace("_us", "_ms"): round(float(value) / 1000, 1)
                    for column, value in summary(times[name]).items()
                }
                row: Row = {
                    "command": name,
                    "scenes": scenes,
                    **milliseconds,
                    "floor": imports,
                    "floor_ms": round(median(times[imports]) / 1000, 1),
                    "to_floor": ratio(times[name], times[imports]),
                    "loads": " ".join(loaded(*arguments)) or "none",
                }
                finding.rows.append(row)
                what = f"graphmem {name} on {scenes} scenes, times python -c '{imports}'"
                finding.musts.append(Must(what, float(row["to_floor"]), allowed, to_floor=True))
    finding.growth_of("graphmem enter, a process", "scenes", "median_ms", command="enter")
    finding.growth_of("graphmem recall --scene, a process", "scenes", "median_ms", command="recall --scene")
    finding.notes.append(f"loads: which of {', '.join(HEAVY)} a command has imported at its end")
    return finding
