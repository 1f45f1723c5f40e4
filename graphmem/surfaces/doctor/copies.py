"""Copies that sync programs leave beside a file, with what differs in them."""

import difflib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmem.core import pages
from graphmem.errors import GraphmemError

_NUMBERED = re.compile(r"(.+?)(?: \d+| \(\d+\))(\.[^.]+)?")  # of iCloud and Google Drive, and of people
_FRONT = re.compile(r"^(?:~\$|\.#|#)")
_MOST_FILES = 50_000
_LARGEST = 64 << 10  # bytes of a file that is compared
_MOST_LINES = 20
_LONGEST_LINE = 160


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy, by its path; beside: what it is a copy of, None where that is not known. diff: lines, bounded."""

    path: Path
    beside: Path | None
    diff: tuple[str, ...]


def copies_of(file: Path, *, numbered: bool) -> list[Path]:
    """Return the copies of a database that lie beside it. numbered: whether `memory 2.db` is one too."""
    try:
        names = os.listdir(file.parent)  # noqa: PTH208 (names alone)
    except OSError:
        return []
    found = []
    for name in sorted(names):
        told = _NUMBERED.fullmatch(name)
        is_one = name.startswith(file.stem) and name.endswith(file.suffix) and pages.is_copy(name)
        if name != file.name and (is_one or (numbered and told and f"{told[1]}{told[2] or ''}" == file.name)):
            found.append(file.with_name(name))
    return found


def copies_in(root: Path, *, known: frozenset[str]) -> Iterator[Copy]:
    """Yield the copies in a tree, by path. known: those that a sync of the tree has laid there, as paths below it."""
    seen = 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        there = set(names)
        for name in sorted(names):
            seen += 1
            if seen > _MOST_FILES:
                return
            path = Path(place, name)
            if path.relative_to(root).as_posix() in known or not _is_file(path):
                continue
            original = _original(path, there)
            if pages.is_copy(name) or original is not None:
                original = original or _likely(name, there)
                beside = None if original is None else Path(place, original)
                yield Copy(path, beside, () if beside is None else _diff(beside, path))


def _original(path: Path, there: set[str]) -> str | None:
    """Return of which file a numbered one is a copy: the one beside it that has the same id."""
    told = _NUMBERED.fullmatch(path.name)
    name = f"{told[1]}{told[2] or ''}" if told else ""
    if name not in there or not (uid := _uid(path)) or uid != _uid(path.with_name(name)):
        return None
    return name


def _uid(path: Path) -> str:
    try:
        return pages.read_page(_start_of(path)).uid
    except GraphmemError:
        return ""


def _likely(name: str, there: set[str]) -> str | None:
    """Return the file of which a name is a copy: the longest one whose stem it begins with."""
    bare = _FRONT.sub("", name)
    fitting = [other for other in there if not pages.is_copy(other) and bare.startswith(Path(other).stem)]
    return max(fitting, key=len, default=None)


def _diff(old: Path, new: Path) -> tuple[str, ...]:
    """Return what differs, as a unified diff that is cut where it grows long."""
    before, after = (_start_of(path).decode("utf-8", "replace").splitlines() for path in (old, new))
    lines = list(difflib.unified_diff(before, after, old.name, new.name, n=1, lineterm=""))
    cut = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..." for line in lines[:_MOST_LINES]]
    return (*cut, f"... {len(lines) - _MOST_LINES} more lines") if len(lines) > _MOST_LINES else tuple(cut)


def _start_of(path: Path) -> bytes:
    """Return what a file holds, or its start where it is long; nothing of one that cannot be read, or is a link."""
    try:
        if _is_file(path):
            with path.open("rb") as stream:
                return stream.read(_LARGEST)
    except OSError:
        pass
    return b""


def _is_file(path: Path) -> bool:
    """Tell whether a path is a file itself, and no link that may lead anywhere."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
