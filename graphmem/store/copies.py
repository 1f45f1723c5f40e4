"""Read a database file without changing a byte of it or of its folder: backup copies, files of other programs.

A plain read-only open makes -wal and -shm beside the file, and an immutable open ignores a live -wal. So a file without
a -wal is opened immutable; one with a -wal is copied together with it into a private folder, and the copy is opened.
"""

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmem.errors import Conflict, StoreCorrupt, StoreFailed
from graphmem.store.connection import Connection
from graphmem.store.database import full_path, is_open_here, translated_errors
from graphmem.store.schema import migrate, require_memory

# What the name of a file begins with that has no final name yet.
DRAFT = ".graphmem-"

_MAGIC = b"SQLite format 3\0"
_WAL_MODE = 2  # byte 19 of the header, https://www.sqlite.org/fileformat.html#file_format_version_numbers
_WAL_HEADER = 32  # holds the salts, which change whenever the log starts anew
_TRIES = 3
_SIDES = ("-wal", "-journal")
_CHUNK = 1 << 24


@dataclass(frozen=True, slots=True)
class Copy:
    """An open copy: a connection that cannot write to the file, and remarks on how it was read."""

    connection: Connection
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _State:
    """Sizes and times of a file and of those beside it that are not empty, and the head of its -wal."""

    parts: dict[Path, tuple[int, int]]
    wal_header: bytes

    @property
    def sides(self) -> list[Path]:
        return [part for part in self.parts if part.name.endswith(_SIDES)]


@contextlib.contextmanager
def open_copy(path: str | os.PathLike[str], *, copied: bool = True) -> Iterator[Copy]:
    """Open a SQLite file for reading only, with its -wal or hot journal where there is one.

    copied: it may have been copied without its -wal, which is remarked; a memory where it was made lacks nothing.
    Raises StoreFailed when it cannot be read, StoreCorrupt when it is damaged or no database, Conflict when it is being
    written or is open in this process.
    """
    file = Path(full_path(path))
    if is_open_here(str(file)):
        raise Conflict(f"{file} is open in this process: ask that memory itself, or close it")
    with contextlib.ExitStack() as stack:
        try:
            header = _header(file)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmem-")))
            state, source = _stable_source(file, folder)
        except OSError as error:
            reason = f"{error.strerror}; check the path and its permissions"
            raise StoreFailed(f"{file} cannot be read: {reason}") from error
        try:
            stack.enter_context(translated_errors(str(file), 0.0))
            connection = stack.enter_context(
                contextlib.closing(sqlite3.connect(source, uri=True, isolation_level=None, factory=Connection))
            )
            connection.execute("PRAGMA query_only = ON")
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise StoreCorrupt(f"{file} is damaged ({verdict.splitlines()[-1]}): restore a backup")
            yield Copy(connection, _remarks(file, header, state, copied=copied))
        finally:
            # A copy is whole whatever came later; a file read in place may have changed under the reader.
            if not state.sides and _state(file) != state:
                raise _being_written(file)


@contextlib.contextmanager
def open_scratch(path: str | os.PathLike[str]) -> Iterator[Copy]:
    """Open a copy of a memory that can be written and is gone at the end; it has the schema of today.

    It may be one of a memory that is itself a copy which is not finished. Raises what `open_copy` does, StoreFailed for
    what is no memory, and SchemaTooNew.
    """
    with (
        open_copy(path) as copy,
        contextlib.closing(sqlite3.connect("", isolation_level=None, factory=Connection)) as scratch,
    ):
        require_memory(copy.connection, str(path), unfinished=True)
        copy.connection.backup(scratch)
        migrate(scratch, str(path))
        yield Copy(scratch, copy.remarks)


def parts_of(file: Path) -> list[Path]:
    """Return a database file and those of its -wal and -journal that are not empty; call it as `find_bytes`."""
    return list(_state(file).parts)


def find_bytes(file: Path, forms: Sequence[bytes]) -> list[int]:
    """Return where in a file one of some byte strings of small letters begins, whatever the case of ASCII letters.

    Call it for a database while a copy of it is open: then the file is not open elsewhere in this process.
    """
    found: list[int] = []
    overlap = max(map(len, forms)) - 1
    with file.open("rb") as stream:
        start, chunk = 0, b""
        while read := stream.read(_CHUNK):
            kept = chunk[len(chunk) - overlap :] if overlap and len(chunk) > overlap else chunk
            start += len(chunk) - len(kept)
            chunk = kept + read.lower()
            for form in forms:
                place = chunk.find(form)
                while place >= 0:
                    found.append(start + place)
                    place = chunk.find(form, place + 1)
    return sorted(set(found))


def free_bytes(folder: Path) -> int:
    """Return how much room there is for files in a folder."""
    return shutil.disk_usage(folder).free


def _header(file: Path) -> bytes:
    with file.open("rb") as stream:
        header = stream.read(100)
    if not header.startswith(_MAGIC):
        raise StoreCorrupt(f"{file} is {'no SQLite database' if header else 'empty'}: check the path")
    return header


def _state(file: Path) -> _State:
    parts: dict[Path, tuple[int, int]] = {}
    wal_header = b""
    for part in (file, *(file.with_name(file.name + side) for side in _SIDES)):
        try:
            status = part.stat()
            if status.st_size:
                parts[part] = (status.st_size, status.st_mtime_ns)
                if part.name.endswith("-wal"):
                    with part.open("rb") as stream:
                        wal_header = stream.read(_WAL_HEADER)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
                raise
    return _State(parts, wal_header)


def _stable_source(file: Path, folder: Path) -> tuple[_State, str]:
    """Return the state of a file and an address to read it at: its own, or that of a copy made while it stood still."""
    for _ in range(_TRIES):
        state = _state(file)
        if not state.sides:
            return state, file.as_uri() + "?mode=ro&immutable=1"
        with contextlib.suppress(FileNotFoundError):  # the last writer has just closed it and removed its -wal
            for part in state.parts:
                shutil.copyfile(part, folder / part.name)
            if _state(file) == state:
                return state, (folder / file.name).as_uri()
        for left in folder.iterdir():
            left.unlink()
    raise _being_written(file)


def _being_written(file: Path) -> Conflict:
    return Conflict(f"{file} is being written: back it up first and name the backup")


def _remarks(file: Path, header: bytes, state: _State, *, copied: bool) -> tuple[str, ...]:
    has_wal = bool(state.wal_header)
    remarks = [f"{side.name} ({state.parts[side][0]} bytes) was read with it" for side in state.sides]
    if copied and header[19] == _WAL_MODE and not has_wal:
        remarks.append(f"no {file.name}-wal beside it: a copy made while the file was in use lacks its last writes")
    if header[19] != _WAL_MODE and has_wal:
        remarks.append(f"{file.name} is not in write-ahead mode: its -wal may belong to another copy")
    return tuple(remarks)


def require_room(folder: Path, size: int) -> None:
    """Raise StoreFailed unless so many bytes fit on the disk of a folder; a disk that does not tell is trusted."""
    try:
        free = free_bytes(folder)
    except OSError:
        return
    if free < size:
        raise StoreFailed(f"{folder} has {free} bytes free, {size} are needed: make room and try again")


def name_twice(file: Path, name: Path, stack: contextlib.ExitStack) -> None:
    """Give a file a second name; where the file system has no links, to a copy of it. Raises OSError, for a taken name.

    A file that was copied stays open as long as the stack: closing it would drop the locks that SQLite has on it here.
    """
    try:
        os.link(file, name)
    except FileExistsError:
        raise
    except OSError:
        source = stack.enter_context(file.open("rb"))
        try:
            with open(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as copy:  # noqa: PTH123
                shutil.copyfileobj(source, copy)
                copy.flush()
                os.fsync(copy.fileno())
        except FileExistsError:
            raise
        except BaseException:
            name.unlink(missing_ok=True)
            raise
