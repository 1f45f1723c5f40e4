"""hook: whole processes that answer events of Claude Code, against a python that does nothing."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

from benchmarks.measure import Finding, Must, Row, in_blocks, median, say, summary
from benchmarks.seeds import bulk, fill_refs, fill_scenes
from graphmem import Memory
from graphmem.surfaces import hook, hook_helper

TURNS = 24
ALLOWED_MS = 200
ALLOWED_STARTS = 2.5
EVENTS = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "Where does the panel run, and how do we deploy it?"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "git push -f"}},
    "PostToolUseFailure": {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "make: no rule for target"},
    "Stop": {"stop_hook_active": False},
}


def program() -> list[str]:
    """What Claude Code is told to run, of the environment that this runs in."""
    script = Path(sys.executable).with_name("graphmem-hook")
    return [str(script)] if script.exists() else [sys.executable, "-m", "graphmem.surfaces.hook"]


def _process(environ: dict[str, str], told: bytes, *command: str) -> Callable[[], object]:
    return lambda: subprocess.run(command, input=told, stdout=subprocess.DEVNULL, check=True, env=environ)


def _helpers(folder: str) -> list[Path]:
    """Return the sockets of helpers, whichever name of this interpreter started them."""
    return list(Path(folder).rglob("hook-*"))


def _wait_for_a_helper(folder: str) -> None:
    for _ in range(600):
        if _helpers(folder):
            return
        time.sleep(0.1)
    raise TimeoutError(f"no helper of the hook in {folder} after a minute")


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure each event by a helper and alone, the verb where it is loaded already, and their floor, in blocks."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory(prefix="gm-") as folder:
            path = Path(folder) / "bench.db"
            say(f"hook: filling {scenes} scenes")
            with bulk(path) as db:
                fill_scenes(db, scenes)
                fill_refs(db, range(1, scenes + 1), max(scenes // 5, 1))
            with Memory.open(path) as memory:
                memory.remember("Never force push", kind="rule", source="user", labels=["git push"])
                memory.remember("The panel runs on port 8443 and is deployed with pnpm")
            say(f"hook: with {scenes} scenes")
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "XDG_"))}
            kept.pop("PYTHONDONTWRITEBYTECODE", None)
            environ = {
                **kept, "GRAPHMEM_DB": str(path), "XDG_STATE_HOME": folder,
                "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"),
            }  # fmt: skip
            with mock.patch.dict(os.environ, environ, clear=True):
                _measure(finding, scenes, environ, folder, turns)
    finding.notes.append("verb: the event answered in a process that has everything loaded, the file opened and closed")
    finding.notes.append("starts: what the process takes beside the verb, as a multiple of python -c pass")
    finding.notes.append("alone: without a helper, as the first event of all and where there are no Unix sockets")
    return finding


def _measure(finding: Finding, scenes: int, environ: dict[str, str], folder: str, turns: int) -> None:
    transcript = Path(folder) / "bench.jsonl"
    line = {"type": "user", "sessionId": "bench", "uuid": "u1", "message": {"role": "user", "content": "Hello"}}
    transcript.write_text(json.dumps(line) + "\n", "utf-8")
    common = {"session_id": "bench", "cwd": folder, "transcript_path": str(transcript)}
    told = {name: json.dumps({**common, "hook_event_name": name, **given}).encode() for name, given in EVENTS.items()}
    alone = {**environ, "GRAPHMEM_HOOK_ALONE": "1"}
    _process(environ, told["SessionStart"], *program(), "SessionStart")()
    _wait_for_a_helper(folder)
    verbs = {name: hook.request([name], raw) for name, raw in told.items()}
    works: dict[str, Callable[[], object]] = {
        "floor": _process(environ, b"", sys.executable, "-c", "pass"),
        **{f"{name} helped": _process(environ, raw, *program(), name) for name, raw in told.items()},
        **{f"{name} alone": _process(alone, raw, *program(), name) for name, raw in told.items()},
        **{f"{name} verb": lambda asked=asked: hook_helper.answer(*asked) for name, asked in verbs.items()},
    }
    times = in_blocks({name: lambda act=act: act for name, act in works.items()}, measured=turns, warm_up=1)
    for place in _helpers(folder):
        place.unlink()  # the helper sees it and ends
    floor = median(times["floor"])
    for name in EVENTS:
        verb = median(times[f"{name} verb"])
        for how in ("helped", "alone"):
            wall = times[f"{name} {how}"]
            starts = round((median(wall) - verb) / floor, 2)
            row: Row = {
                "event": name, "how": how, "scenes": scenes,
                **{
                    column.replace("_us", "_ms"): round(float(value) / 1000, 1)
                    for column, value in summary(wall).items()
                },
                "verb_ms": round(verb / 1000, 1), "floor_ms": round(floor / 1000, 1), "starts": starts,
            }  # fmt: skip
            finding.rows.append(row)
            if how == "helped":
                what = f"{name} on {scenes} scenes"
                finding.musts.append(Must(f"{what}, beside the verb, times python -c pass", starts, ALLOWED_STARTS))
                finding.musts.append(Must(f"{what}, ms", float(row["median_ms"]), ALLOWED_MS))
