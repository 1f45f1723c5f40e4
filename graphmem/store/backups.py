"""Copies of a whole memory, made while it is in use, and memories made anew from them.

What is written goes to a draft beside its place, is read and synced there, and gets its name last: whatever fails in
between, a killed process included, leaves what was there under every final name, and at most a draft.
"""

import contextlib
import itertools
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmem.core.model import BackupReport, RestoreReport
from graphmem.errors import Conflict, InvalidInput, NotFound, StoreBusy, StoreCorrupt, StoreFailed
from graphmem.store.blobs import blob_sizes, copy_blob, keep_blobs, remove_blob, remove_blobs, sync_file, sync_folder
from graphmem.store.connection import Connection
from graphmem.store.copies import name_twice, open_copy, require_room
from graphmem.store.database import (
    SqliteStore,
    file_identity,
    full_path,
    is_open_here,
    is_undecodable,
    primary_code,
    require_writable,
    translated_errors,
)
from graphmem.store.opening import MEMORY_PATH, ON_SERVER
from graphmem.store.placing import draft_beside, explained, publish, refuse_part, refuse_taken, sides_of
from graphmem.store.schema import is_current, require_memory
from graphmem.store.sqlite import size
from graphmem.store.transaction import Store

Progress = Callable[[int, int], None]

_COUNTED = (
    "scenes", "scene_features", "scene_refs", "entities", "relations", "evidence", "sentences", "sessions", "parts",
    "notes", "blocks", "documents", "operations",
)  # fmt: skip
_PAGES_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class _Copied:
    """What was copied: rows by table, payload files. lost: what is the matter with the others, by digest."""

    counts: dict[str, int]
    payloads: int
    lost: dict[str, str]


def back_up(store: Store, dest: str | os.PathLike[str], progress: Progress) -> BackupReport:
    """Copy the state that one read sees, while writers write. See `Memory.backup`."""
    if not isinstance(store, SqliteStore):
        raise StoreFailed(f"{store.path} is no file to be copied: {ON_SERVER}")
    refuse_part(store.path, dest)
    target = _place(dest)
    refuse_taken(target, *sides_of(target))
    with _undone(str(target)) as made, draft_beside(target) as draft:
        while True:
            with store.read() as tx:
                copied = _copy(tx, draft, source=store.path, target=target, made=made, progress=progress)
            with store.read() as tx:
                if copied.lost.keys() <= _payloads(tx):
                    break  # else a block was deleted before its payload was copied: take a later state
        written = draft.stat().st_size
        publish(draft, target, *sides_of(target))
    return BackupReport(str(target), written, copied.counts, copied.payloads, tuple(copied.lost.values()))


def back_up_copy(src: str | os.PathLike[str], dest: str | os.PathLike[str]) -> BackupReport:
    """Copy a memory that cannot be written. See `Memory.backup_copy`."""
    source = full_path(src)
    refuse_part(source, dest)
    target = _place(dest)
    refuse_taken(target, *sides_of(target))
    with _undone(str(target)) as made, draft_beside(target) as draft, open_copy(source) as copy:
        require_memory(copy.connection, source)
        copied = _copy(copy.connection, draft, source=source, target=target, made=made)
        written = draft.stat().st_size
        publish(draft, target, *sides_of(target))
    remarks = (*copy.remarks, *copied.lost.values())
    return BackupReport(str(target), written, copied.counts, copied.payloads, remarks)


def restore(
    src: str | os.PathLike[str], dest: str | os.PathLike[str], *, without_payloads: bool = False
) -> RestoreReport:
    """Make a memory anew from a copy of one, and keep the old one under another name. See `Memory.restore`."""
    source = full_path(src)
    refuse_part(source, dest)
    target = _place(dest)
    if source == str(target) or (target.exists() and file_identity(source) == file_identity(str(target))):
        raise InvalidInput("src", str(src), "is the memory itself: name a backup of it")
    if is_open_here(str(target)):
        raise Conflict(f"{target} is open in this process: close it first")
    with _undone(str(target)) as made, draft_beside(target) as draft:
        with open_copy(source) as copy:
            require_memory(copy.connection, source)
            digests = _payloads(copy.connection)
            missing = digests - blob_sizes(source).keys() - blob_sizes(str(target)).keys()
            if missing and not without_payloads:
                raise _lacking(source, len(missing), len(digests))
            with _held(target):
                pass  # who has it open is told before all the work
            copied = _copy(copy.connection, draft, source=source, target=target, made=made)
        if copied.lost and not without_payloads:
            raise _lacking(source, len(copied.lost), len(digests))
        written = draft.stat().st_size
        with _held(target):
            kept = _swap(draft, target)
    remarks = (*copy.remarks, *copied.lost.values())
    return RestoreReport(str(target), source, kept, written, copied.counts, copied.payloads, remarks)


def _lacking(source: str, lost: int, payloads: int) -> StoreCorrupt:
    return StoreCorrupt(
        f"{source} lacks {lost} of its {payloads} payload files, nothing was changed: put its folder {source}.blobs "
        f"back beside it, or restore without them (--without-payloads)"
    )


@contextlib.contextmanager
def _undone(target: str) -> Iterator[list[str]]:
    """Yield a list for the digests of payloads that are put beside a file; on a failure these are removed again.

    One that took the place of a damaged one stays.
    """
    there = blob_sizes(target)
    made: list[str] = []
    try:
        yield made
    except BaseException:
        for digest in made:
            if digest not in there:
                remove_blob(target, digest)
        raise


def _place(dest: str | os.PathLike[str]) -> Path:
    if isinstance(dest, str | os.PathLike) and os.fspath(dest) == MEMORY_PATH:
        raise InvalidInput("dest", dest, "give the path of a file")
    return Path(full_path(dest))


def _copy(
    connection: Connection,
    draft: Path,
    *,
    source: str,
    target: Path,
    made: list[str],
    progress: Progress = lambda done, pages: None,
) -> _Copied:
    """Copy a database into a draft and its payloads to their place, all read there once; note the payloads made."""
    digests = _payloads(connection)
    there = blob_sizes(str(target))
    missing = sum(blob for digest, blob in blob_sizes(source).items() if digest in digests and digest not in there)
    require_room(target.parent, size(connection) + missing)
    lost: dict[str, str] = {}
    for digest in sorted(digests):
        try:
            if copy_blob(source, digest, str(target)):
                made.append(digest)
        except (NotFound, StoreCorrupt) as error:  # a memory that has lost a picture is still worth its backup
            lost[digest] = str(error)
    counts = _fill(connection, draft, source=source, target=target, progress=progress)
    return _Copied(counts, len(digests) - len(lost), lost)


def _fill(connection: Connection, draft: Path, *, source: str, target: Path, progress: Progress) -> dict[str, int]:
    def tell(_: int, left: int, pages: int) -> None:
        progress(pages - left, pages)

    expected = _counts(connection, source)
    with (
        translated_errors(str(target), 0.0),
        contextlib.closing(sqlite3.connect(draft, isolation_level=None, factory=Connection)) as copy,
    ):
        connection.backup(copy, pages=_PAGES_AT_ONCE, progress=tell)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file: in write-ahead mode it would have others beside it
        verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StoreCorrupt(f"{source} is damaged ({verdict.splitlines()[-1]}): restore a backup of before")
        counts = _counts(copy, str(target))
    if counts != expected:
        raise StoreCorrupt(f"{target} came out unlike {source}: check the disk; nothing was changed")
    with explained(target):
        sync_file(draft)
    return counts


def _counts(connection: Connection, path: str) -> dict[str, int]:
    """Return the number of rows of each table that a person would ask for; older schemas lack some."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables.intersection(_COUNTED):
        raise StoreFailed(f"{path} holds no memory: it has none of its tables; check the path")
    counted = [table for table in _COUNTED if table in tables]
    return {table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in counted}


def _payloads(connection: Connection) -> set[str]:
    """Return the digests of the payloads that are files."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'blocks'").fetchone():
        return set()
    rows = connection.execute("SELECT payload_digest FROM blocks WHERE payload IS NULL AND payload_digest <> ''")
    return {digest for (digest,) in rows}


@contextlib.contextmanager
def _held(target: Path) -> Iterator[None]:
    """Hold a memory that nobody has open, so that nobody opens it; its -wal is written back before.

    A file that is too damaged for that is not held. Raises StoreBusy for one that is open, StoreFailed for the database
    of another program and for one that cannot be written, SchemaTooNew.
    """
    if not target.exists():
        yield
        return
    require_writable(str(target))
    with (
        translated_errors(str(target), 0.0),
        contextlib.closing(sqlite3.connect(target, timeout=0, isolation_level=None, factory=Connection)) as connection,
    ):
        try:
            if target.stat().st_size:
                is_current(connection, str(target), unfinished=True)  # it is kept under another name
            # Only the last connection to a file may leave write-ahead mode. Then a lock stays: who opened the file now
            # would put a new -wal beside the one that takes its place.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            code = primary_code(error)
            if code == sqlite3.SQLITE_BUSY:
                raise StoreBusy(f"{target} is open in another process: close it there and try again") from error
            if code not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) and not is_undecodable(error):
                raise
            connection.close()
        if sys.platform == "win32":
            connection.close()  # there no open file can be replaced
        yield


def _swap(draft: Path, target: Path) -> str:
    """Put a draft in the place of a file, which is kept under another name; return that, '' where there was nothing.

    A file is kept by a second name, so that there is one under its own at every moment; what lies beside it is moved
    away before, since SQLite would take it for the new file's.
    """
    kept = _kept_name(target)
    moved: list[tuple[Path, Path]] = []
    with explained(target), contextlib.ExitStack() as stack:
        try:
            if target.exists():
                name_twice(target, kept, stack)
                keep_blobs(str(target), str(kept))
            for beside, away in zip(sides_of(target), sides_of(kept), strict=True):
                if beside.exists():
                    beside.replace(away)
                    moved.append((beside, away))
            sync_folder(target.parent)
            draft.replace(target)
        except BaseException:
            for beside, away in reversed(moved):
                away.replace(beside)
            kept.unlink(missing_ok=True)
            remove_blobs(str(kept))
            raise
    sync_folder(target.parent)
    return str(kept) if kept.exists() or moved else ""


def _kept_name(target: Path) -> Path:
    for number in itertools.count(1):
        kept = Path(f"{target}.before-restore{f'-{number}' if number > 1 else ''}")
        if not any(os.path.lexists(each) for each in (kept, Path(f"{kept}.blobs"), *sides_of(kept))):
            return kept
    raise AssertionError("there are more numbers than files")
