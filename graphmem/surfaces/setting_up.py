"""Putting graphmem into the settings of other programs: how it is started there, and files changed all or none.

A file that is made ends with one new line, and with one more for each folder that is made for it. So it is known which
folders go with their last file, and what was there before stays.
"""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from graphmem.core.addresses import holds_password, without_password
from graphmem.errors import InvalidInput, StoreFailed
from graphmem.surfaces.own_programs import absolute, words_of

SERVER = "graphmem"  # the name of the MCP server in settings, and of the program and the module that start it


class Edited(NamedTuple):
    """What becomes of a text, None for no file: what changes, and what somebody else wrote and is kept, in words."""

    text: str | None
    changes: Sequence[str] = ()
    kept: str = ""


# From the text of a file, None for a missing one, and its path.
Edit = Callable[[str | None, str], Edited]


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file: `changes`, in words, none where it is as it should be. applied: whether it was done.

    kept: what has the name of ours, is somebody else's and is left as it is, with what to do about it; '' for nothing.
    """

    file: str
    changes: tuple[str, ...]
    applied: bool
    kept: str = ""


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


def options_in(command: Sequence[str], script: str, module: str, *, by_name: bool) -> tuple[str, ...] | None:
    """Return the options in a command that is like those of `program_of` and `options_of`, None for any other one.

    by_name: whether the program may be named without its folder.

    >>> options_in(["/opt/graphmem", "--db", "/data/a.db"], "graphmem", "graphmem", by_name=False)
    ('--db', '/data/a.db')
    >>> options_in(["docker", "run"], "graphmem", "graphmem", by_name=True)
    """
    program, words = Path(command[0]), tuple(command[1:])
    by_module = tuple(words_of(module)[1:])
    is_module = words[: len(by_module)] == by_module
    if not (is_module or program.name.removesuffix(".exe") == script) or not (by_name or program.is_absolute()):
        return None
    options = rest = words[len(by_module) :] if is_module else words
    for name in ("--db", "--config"):
        if rest[:1] == (name,) and Path(*rest[1:2]).is_absolute():
            rest = rest[2:]
    return None if rest else options


def options_of_server(command: Sequence[str], *, by_name: bool) -> tuple[str, ...] | None:
    """Return the options of a command that starts the MCP server as `install` has it started, None for another one."""
    is_server = len(command) > 1 and command[-1] == "mcp"
    return options_in(command[:-1], SERVER, SERVER, by_name=by_name) if is_server else None


def kept(place: str, *, installs: bool) -> str:
    """Say that the server at a place in a file is kept, and the remedy. installs: for `install`, else `uninstall`."""
    remedy = (
        f"to replace it, remove {place} there and install again" if installs else f"remove {place} there if it is to go"
    )
    return f"MCP server {SERVER} is kept as it is, since install does not write it so; {remedy}"


def written(edits: Sequence[tuple[Path, Edit]], *, within: Path | None, dry_run: bool) -> tuple[Change, ...]:
    """Change files, each by its edit; none is where one of them cannot be read or understood.

    within: the folder of a project, which is perhaps a stranger's: a link in it must not lead to files elsewhere.
    Raises InvalidInput and StoreFailed.
    """
    for file, _ in edits:
        _refuse_links(file, within)
    planned: list[tuple[Path, bytes | None, bytes | None, Edited]] = []
    made: set[Path] = set()
    for file, edit in edits:
        before = _read(file)
        text, mark = _decoded(before, file)
        edited = edit(text, str(file))
        after = edited.text
        folders = Path(os.path.realpath(file)).parents
        if text is None and after is not None:
            after += "\n" * sum(not folder.exists() for folder in folders)
        elif text is not None and after is None:
            made.update(folders[: max(0, len(ending_of(text)) - 1)])
        planned.append((file, before, None if after is None else mark + after.encode(), edited))
    for file, before, data, edited in planned:
        if edited.changes and not dry_run:
            _replace(file, before, data)
    if not dry_run:
        _remove_empty(made, within)
    return tuple(
        Change(str(file), tuple(edited.changes), bool(edited.changes) and not dry_run, edited.kept)
        for file, _, _, edited in planned
    )


def content_of(file: Path, *, within: Path | None = None) -> str:
    """Return the text of a file, '' for a missing one. within: see `written`. Raises InvalidInput and StoreFailed."""
    _refuse_links(file, within)
    return _decoded(_read(file), file)[0] or ""


def ending_of(text: str) -> str:
    r"""Return the new lines that a text ends with.

    >>> ending_of("{}\n\n")
    '\n\n'
    """
    return text[len(text.rstrip("\n")) :]


def _refuse_links(file: Path, within: Path | None) -> None:
    real = Path(os.path.realpath(file))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        reason = f"is a link that leads out of the project, to {real}; remove it, nothing was changed"
        raise InvalidInput("file", str(file), reason)


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreFailed(f"{file} cannot be read: {error.strerror}; nothing was changed") from error


def _decoded(data: bytes | None, file: Path) -> tuple[str | None, bytes]:
    """Return the text of a file, None for a missing one, and the mark in front of it."""
    if data is None:
        return None, b""
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    try:
        return data.removeprefix(mark).decode(), mark
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidInput("file", str(file), f"is no UTF-8 at line {line}; mend it, nothing was changed") from None


def _replace(file: Path, before: bytes | None, data: bytes | None) -> None:
    """Put data into a file at once, or remove it; its permissions, and a link that leads to it, stay."""
    real = Path(os.path.realpath(file))
    try:
        if data is None:
            real.unlink(missing_ok=True)
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


def _remove_empty(folders: Iterable[Path], within: Path | None) -> None:
    """Remove those of some folders that are empty; with a project only those in it."""
    project = None if within is None else Path(os.path.realpath(within))
    for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
        if project is None or project in folder.parents:
            with contextlib.suppress(OSError):  # not empty, or not ours to remove
                folder.rmdir()
