"""What is installed: versions, extras, and which program the name `graphmem` starts."""

import importlib.metadata
import os
import platform
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from graphmem.surfaces.doctor.findings import Finding, good, note, problem

_EXTRA = re.compile(r"([\w.-]+).*extra\s*==\s*['\"]([\w-]+)['\"]")
_OF_DEVELOPERS = ("all", "bench", "browser", "dev")
_NEEDED = ("CREATE TABLE strict(a TEXT) STRICT", "CREATE VIRTUAL TABLE words USING fts5(a)")


def look() -> Iterator[Finding]:
    """Yield what there is to say of the installation."""
    try:
        version = importlib.metadata.version("graphmem")
        yield good("graphmem", f"{version} in {Path(__file__).parents[2]}")
    except importlib.metadata.PackageNotFoundError:
        yield note("graphmem", "runs from a folder and is not installed", "pip install graphmem")
    yield good("Python", f"{platform.python_version()} at {sys.executable}, {platform.platform()}")
    yield _sqlite()
    yield from _extras()
    yield _program()


def _sqlite() -> Finding:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            for statement in _NEEDED:
                connection.execute(statement)
        except sqlite3.OperationalError as error:
            told = f"{sqlite3.sqlite_version} lacks what a memory needs: {error}"
            return problem("SQLite", told, "use a Python whose SQLite is 3.37 or newer and has FTS5")
    return good("SQLite", f"{sqlite3.sqlite_version} with FTS5")


def _extras() -> Iterator[Finding]:
    """Yield of each extra whether its packages are installed, as the metadata of graphmem names them."""
    extras: dict[str, list[str]] = {}
    try:
        requirements = importlib.metadata.requires("graphmem") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for requirement in requirements:
        found = _EXTRA.match(requirement)
        if found and found[1] != "graphmem" and found[2] not in _OF_DEVELOPERS:
            extras.setdefault(found[2], []).append(found[1])
    for extra, packages in sorted(extras.items()):
        versions = {package: _version(package) for package in packages}
        if missing := [package for package, version in versions.items() if not version]:
            yield note(f"extra {extra}", f"not installed: {', '.join(missing)}", f"pip install 'graphmem[{extra}]'")
        else:
            yield good(f"extra {extra}", ", ".join(f"{package} {version}" for package, version in versions.items()))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _program() -> Finding:
    own = Path(sys.executable).parent
    found = shutil.which("graphmem")
    if found is None:
        return note("program", "no folder of PATH holds 'graphmem'", f"put {own} into PATH")
    if os.path.realpath(Path(found).parent) != os.path.realpath(own):
        return note("program", f"'graphmem' is {found}, of another installation", f"put {own} first into PATH")
    return good("program", found)
