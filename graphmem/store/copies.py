"""Read a database file without changing a byte of it or of its folder: backup copies, files of other programs.

A plain read-only open makes -wal and -shm beside the file, and an immutable open ignores a live -wal. So a file without
a -wal is opened immutable; one with a -wal is copied together with it into a private folder, and the copy is opened.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmem.errors import Conflict, StoreCorrupt, StoreFailed
from graphmem.store.database import is_open_here, translated_errors

_MAGIC = b"SQLite format 3\0"
_WAL_MODE = 2  # byte 19 of the header, https://www.sqlite.org/fileformat.html#file_format_version_numbers
_WAL_HEADER = 32  # holds the salts, which change whenever the log starts anew
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Copy:
    """An open copy: a connection that cannot write, and remarks on how it was read."""

    connection: sqlite3.Connection
    remarks: tuple[str, ...]


@contextlib.contextmanager
def open_copy(path: str | os.PathLike[str]) -> Iterator[Copy]:
    """Open a SQLite file for reading only, with its -wal or hot journal where there is one.

    Raises StoreFailed when it cannot be read, StoreCorrupt when it is damaged or no database, Conflict when it is being
    written or is open in this process.
    """
    file = Path(os.path.abspath(os.path.expanduser(os.fspath(path))))
    header = _header(file)
    sides = [side for side in (_beside(file, "-wal"), _beside(file, "-journal")) if _size(side)]
    before = _state(file)
    with contextlib.ExitStack() as stack:
        if sides:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmem-")))
            uri = _copied(file, sides, folder).as_uri()
        else:
            uri = file.as_uri() + "?mode=ro&immutable=1"
        stack.enter_context(translated_errors(str(file), 0.0))
        connection = stack.enter_context(contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)))
        connection.execute("PRAGMA query_only = ON")
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StoreCorrupt(f"{file} is damaged ({verdict}): restore a backup")
        yield Copy(connection, _remarks(file, header, sides))
        if not sides and _state(file) != before:
            raise _being_written(file)


def _header(file: Path) -> bytes:
    if file.is_dir():
        raise StoreFailed(f"{file} is a folder: name a file in it")
    if is_open_here(str(file)):
        raise Conflict(f"{file} is open in this process: ask that memory itself for a dry run")
    try:
        with file.open("rb") as stream:
            header = stream.read(100)
    except OSError as error:
        raise StoreFailed(f"{file} cannot be read: {error.strerror}; check the path and its permissions") from error
    if not header.startswith(_MAGIC):
        raise StoreCorrupt(f"{file} is {'no SQLite database' if header else 'empty'}: check the path")
    return header


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _state(file: Path) -> list[tuple[int, int] | bytes]:
    """Size and time of a file, its -wal and its journal, and the salts of the -wal."""
    found: list[tuple[int, int] | bytes] = []
    for part in (file, _beside(file, "-wal"), _beside(file, "-journal")):
        with contextlib.suppress(FileNotFoundError):
            status = part.stat()
            found.append((status.st_size, status.st_mtime_ns))
            if part.name.endswith("-wal"):
                with part.open("rb") as stream:
                    found.append(stream.read(_WAL_HEADER))
    return found


def _copied(file: Path, sides: list[Path], folder: Path) -> Path:
    for _ in range(_TRIES):
        before = _state(file)
        try:
            for part in (file, *sides):
                shutil.copyfile(part, folder / part.name)
        except OSError as error:
            raise StoreFailed(f"{file} cannot be copied to {folder}: {error.strerror}") from error
        if _state(file) == before:
            return folder / file.name
    raise _being_written(file)


def _being_written(file: Path) -> Conflict:
    return Conflict(f"{file} is being written: back it up first and name the backup")


def _remarks(file: Path, header: bytes, sides: list[Path]) -> tuple[str, ...]:
    wal_mode = header[19] == _WAL_MODE
    remarks = [f"{side.name} ({_size(side)} bytes) was read with it" for side in sides]
    if wal_mode and not any(side.name.endswith("-wal") for side in sides):
        remarks.append(
            f"no {file.name}-wal beside it: writes that were still in it when it was copied are missing here"
        )
    if not wal_mode and any(side.name.endswith("-wal") for side in sides):
        remarks.append(f"{file.name} is not in write-ahead mode: its -wal may belong to another copy")
    return tuple(remarks)
