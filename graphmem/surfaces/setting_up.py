"""Putting graphmem into the settings of other programs: how it is started there, and files changed all or none."""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmem.core.addresses import holds_password, without_password
from graphmem.errors import InvalidInput, StoreFailed
from graphmem.surfaces.own_programs import absolute, words_of

# From the text of a file, '' for a missing one, and its path to the new text, '' for none, and what changes, in words.
Edit = Callable[[str, str], tuple[str, list[str]]]


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file: `changes`, in words, none where it is as it should be. applied: whether it was done."""

    file: str
    changes: tuple[str, ...]
    applied: bool


def options_of(database: str | None, config_file: str | None) -> list[str]:
    """Return the options by which a program finds the memory and the settings that are named.

    Raises InvalidInput for an address with a password: all users of a machine read what programs are started with.
    """
    if database and holds_password(database):
        reason = "would stand in settings and command lines for others to read: leave the password to ~/.pgpass"
        raise InvalidInput("db", without_password(database), reason)
    return [
        *(["--db", absolute(database)] if database else []),
        *(["--config", absolute(config_file)] if config_file else []),
    ]


def program_of(script: str, module: str, *, shared: bool) -> list[str]:
    """Return how a program of this installation is started.

    shared: in a file that others use too; there its name alone, where that leads to it.
    """
    path = Path(sys.executable).with_name(f"{script}.exe" if sys.platform == "win32" else script)
    if not path.exists():
        return words_of(module)
    found = shutil.which(script)
    is_found = found is not None and os.path.realpath(found) == os.path.realpath(path)
    return [script if shared and is_found else str(path)]


def written(
    edits: Sequence[tuple[Path, Edit]], *, within: Path | None, own_folders: Sequence[str], dry_run: bool
) -> tuple[Change, ...]:
    """Change files, each by its edit; none is where one of them cannot be read or understood.

    within: the folder of a project, which is perhaps a stranger's: a link in it must not lead to files elsewhere.
    own_folders: the names of folders that go with their last file. Raises InvalidInput and StoreFailed.
    """
    for file, _ in edits:
        real = Path(os.path.realpath(file))
        if within is not None and not real.is_relative_to(os.path.realpath(within)):
            reason = f"is a link that leads out of the project, to {real}; remove it, nothing was changed"
            raise InvalidInput("file", str(file), reason)
    planned: list[tuple[Path, bytes | None, bytes | None, list[str]]] = []
    for file, edit in edits:
        before = _read(file)
        text, mark = _decoded(before, file)
        after, changes = edit(text, str(file))
        planned.append((file, before, mark + after.encode() if after else None, changes))
    for file, before, data, changes in planned:
        if changes and not dry_run:
            _replace(file, before, data, own_folders)
    return tuple(Change(str(file), tuple(changes), bool(changes) and not dry_run) for file, _, _, changes in planned)


def content_of(file: Path) -> str:
    """Return the text of a file, '' for a missing one. Raises InvalidInput and StoreFailed."""
    return _decoded(_read(file), file)[0]


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreFailed(f"{file} cannot be read: {error.strerror}; nothing was changed") from error


def _decoded(data: bytes | None, file: Path) -> tuple[str, bytes]:
    """Return the text of a file, '' for a missing one, and the mark in front of it."""
    if data is None:
        return "", b""
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    try:
        return data.removeprefix(mark).decode(), mark
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidInput("file", str(file), f"is no UTF-8 at line {line}; mend it, nothing was changed") from None


def _replace(file: Path, before: bytes | None, data: bytes | None, own_folders: Sequence[str]) -> None:
    """Put data into a file at once, or remove it; its permissions, and a link that leads to it, stay."""
    real = Path(os.path.realpath(file))
    try:
        if data is None:
            real.unlink(missing_ok=True)
            _remove_empty(real.parent, own_folders)
            return
        real.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            if before is not None:
                Path(name).chmod(stat.S_IMODE(real.stat().st_mode))
            Path(name).replace(real)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreFailed(f"{file} cannot be written: {error.strerror}; check its permissions") from error


def _remove_empty(folder: Path, own_folders: Sequence[str]) -> None:
    with contextlib.suppress(OSError):  # not empty, or not ours to remove
        while folder.name in own_folders:
            folder.rmdir()
            folder = folder.parent
