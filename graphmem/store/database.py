"""One SQLite file: connections, transactions, and the translation of SQLite's errors.

Any number of threads and processes may use one file. A Store has one connection that writes, behind a lock, and one
that reads for each thread. Every write block is BEGIN IMMEDIATE, since a transaction that reads first and writes later
fails at once when another writer came between, whatever the timeout.
"""

import contextlib
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from graphmem import log
from graphmem.config import DEFAULT, Config, require_writing
from graphmem.core import model
from graphmem.core.addresses import is_server, without_password
from graphmem.errors import Conflict, GraphmemError, InvalidInput, StoreBusy, StoreCorrupt, StoreFailed
from graphmem.late import late
from graphmem.store.connection import Connection, NotingConnection
from graphmem.store.opening import MEMORY_PATH, ON_SERVER
from graphmem.store.schema import is_blank, is_current, migrate, refuse_newer

if TYPE_CHECKING:
    import pathlib

    from graphmem.core.embedding import Embedder
    from graphmem.store import rows, text_index, traces, vectors
else:
    pathlib = late("pathlib")
    rows = late("graphmem.store.rows")
    text_index = late("graphmem.store.text_index")
    traces = late("graphmem.store.traces")
    vectors = late("graphmem.store.vectors")

# Files that this process has open, by device and inode. Closing any other descriptor of such a file would drop
# SQLite's locks on it (https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
_open_files: dict[tuple[int, int], int] = {}
_open_files_lock = threading.RLock()  # since the garbage collector may drop a store while a count is changed

_STATEMENTS_KEPT = 256
# Bytes to which a -wal is cut when it starts anew. While somebody reads for long it grows, and without a limit it would
# stay as large as it ever was.
LARGEST_IDLE_LOG = 16 << 20
# Pages of the -wal until a commit copies them into the database, 16 MB: the one commit that does so waits some
# milliseconds, and at SQLite's 1000 pages that is one turn in a hundred.
_PAGES_TO_COPY = 4000
# KiB of pages that the writing connection keeps: the inner ones of the trees of a million scenes; SQLite's 2 MB do not.
_PAGES_KEPT = 8000
_LEAST_PAGE = 512
_PATIENCE_FOR_A_NEW_FILE = 2.0  # seconds
LONGEST_NAME = 255 - len("-journal")  # bytes, of a file without its folder
_REMEDIES = {
    sqlite3.SQLITE_READONLY: "cannot be written: check the permissions of the file and of its folder",
    sqlite3.SQLITE_PERM: "cannot be used: check the permissions of the file and of its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that its folder exists and the permissions of both",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full, nothing was changed; make room and try again",
    sqlite3.SQLITE_IOERR: "cannot be read or written: input/output error, nothing was changed; check the disk",
}


class SqliteStore:
    """An open graphmem file. Its errors are StoreFailed, StoreCorrupt, StoreBusy and SchemaTooNew, never sqlite3's.

    With an embedder what is written is embedded before the end of its transaction. Where `config.read_only` is set no
    byte of the file and its -wal changes: what would write raises Conflict, and rehearsals work. unfinished: for who
    copies; to all others a copy that is not finished is StoreFailed, also where it became one after it was opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        config: Config = DEFAULT,
        create: bool = True,
        embedder: "Embedder | None" = None,
        unfinished: bool = False,
    ) -> None:
        self.path = _ready_file(path, create=create and not config.read_only)
        self.config = config
        self._embedder = embedder
        self._unfinished = unfinished
        self._factory: type[Connection] = Connection if embedder is None else NotingConnection
        self._lock = threading.RLock()
        self._writing_thread: int | None = None
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._readers_lock = threading.Lock()
        self._closed = False
        self._keeper: Connection | None = None
        identity = file_identity(self.path)
        _count_open(identity, 1)
        # Also when the store is dropped without being closed, which closes its connections too.
        self._uncount = weakref.finalize(self, _count_open, identity, -1)
        self._uncount.atexit = False
        try:
            with translated_errors(self.path, config.busy_timeout):
                self._writer = self._connect()
                try:
                    self._prepare()
                except BaseException:
                    self._close_connections()
                    raise
        except BaseException:
            self._uncount()
            raise

    def _prepare(self) -> None:
        if self.config.read_only:
            self._prepare_to_read()
            return
        # First of all: a file that is not ours, or of a newer graphmem, is refused before a byte of it changes.
        current = is_current(self._writer, self.path, unfinished=self._unfinished)
        self._writer.execute(f"PRAGMA cache_size = -{_PAGES_KEPT}")
        patience = self.config.busy_timeout
        if not current:
            # Another process may be making it just now: that comes to an end, and without it there is nothing to do.
            patience = max(patience, _PATIENCE_FOR_A_NEW_FILE)
            self._writer.execute(f"PRAGMA busy_timeout = {patience * 1000:.0f}")
        if self.path != MEMORY_PATH:
            _use_wal(self._writer, self.path, patience)
        if not current:
            migrate(self._writer, self.path)
            self._writer.execute(f"PRAGMA busy_timeout = {self.config.busy_timeout * 1000:.0f}")

    def _prepare_to_read(self) -> None:
        if self.path == MEMORY_PATH:
            raise InvalidInput("read_only", True, f"a memory in {MEMORY_PATH!r} begins empty; name a file")
        # Which connection closes last copies the log into the file and removes it, unless it may not write. So this one
        # is the last, where there is anything in the log.
        self._keeper = sqlite3.connect(
            f"{pathlib.Path(self.path).as_uri()}?mode=ro", uri=True, check_same_thread=False, factory=Connection
        )
        if not is_current(self._keeper, self.path, unfinished=self._unfinished):
            if is_blank(self._keeper):
                raise _empty(self.path)
            if refuse_newer(self._keeper, self.path)[1] < 0:
                return  # who copies into it looks only who did so before
            reason = "has the schema of an older graphmem, and a read-only memory is not brought up to date"
            raise StoreFailed(f"{self.path} {reason}: open it once without read_only")
        # A rehearsal that outgrows its cache would write pages into the log.
        self._writer.execute("PRAGMA cache_spill = OFF")

    def _connect(self) -> Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=self.config.busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=self._factory,
            cached_statements=_STATEMENTS_KEPT,
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self.config.durable else 'NORMAL'}")
            connection.execute(f"PRAGMA journal_size_limit = {LARGEST_IDLE_LOG}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_TO_COPY}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def write(self, *, keep: bool = True) -> Iterator[Connection]:
        """Yield the connection inside one transaction; on any failure nothing of it stays. Blocks nest as savepoints.

        With keep=False nothing stays in any case: a rehearsal, for a dry run that has to meet what stands in the way.
        Raises StoreBusy when another writer holds the lock for longer than the busy timeout, Conflict for any but a
        rehearsal where the memory is read-only.
        """
        self._take_lock()
        try:
            outermost = not self._writer.in_transaction
            if outermost and keep:
                self.require_writing()
            self._writer.execute("BEGIN IMMEDIATE" if outermost else "SAVEPOINT nested")
            self._writing_thread = threading.get_ident()
            try:
                if outermost and not self._unfinished:
                    self._refuse_unfinished()
                yield self._writer
                if outermost and keep and self._embedder is not None:
                    vectors.put_indexed(self._writer, self._embedder)
                # Inside the try: a COMMIT that fails leaves the transaction open, and the next write block would
                # silently become a savepoint of it.
                if keep:
                    self._writer.execute("COMMIT" if outermost else "RELEASE nested")
                else:
                    _roll_back(self._writer, outermost=outermost)
            except BaseException:
                _roll_back(self._writer, outermost=outermost)
                raise
            finally:
                if outermost:
                    self._writing_thread = None
                    if self._embedder is not None:
                        text_index.forget_noted(self._writer)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _translation(error, self.path, self.config.busy_timeout) from error
        finally:
            self._lock.release()

    def require_writing(self) -> None:
        """Raise Conflict where the memory is read-only, for what does more than write and should not begin."""
        require_writing(self.config, self.path)

    def _refuse_unfinished(self) -> None:
        """Raise StoreFailed where a copy into it has begun since it was opened: that would not keep a change."""
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        if version < 0:
            raise rows.unfinished(self._writer, self.path)

    @contextlib.contextmanager
    def idle(self) -> Iterator[Connection]:
        """Yield the connection that writes outside of any transaction, for what SQLite does in none."""
        self.require_writing()
        self._take_lock()
        try:
            with translated_errors(self.path, self.config.busy_timeout):
                yield self._writer
        finally:
            self._lock.release()

    def sync(self) -> None:
        """Make what was committed so far outlast a power cut, also where commits are not durable each by itself.

        Raises StoreBusy when another process is just doing that and has not come to an end.
        """
        with self.idle() as connection:
            # Syncs the log before it copies; without a log each commit was synced by itself.
            if connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0]:
                raise _busy(self.path, self.config.busy_timeout)

    def checkpoint(self) -> "model.WalState":
        """Copy what the write-ahead log holds into the database, and cut the log when it has grown, waiting for nobody.

        On a connection of its own, so that no writer waits while pages are copied.
        """
        self.require_writing()
        if self.path == MEMORY_PATH:
            return model.WalState(False, 0, 0, 0)
        with (
            translated_errors(self.path, self.config.busy_timeout),
            contextlib.closing(sqlite3.connect(self.path, timeout=0.0, isolation_level=None)) as connection,
        ):
            busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and frames == copied and size_of(self.path + "-wal") > LARGEST_IDLE_LOG:
                busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return model.WalState(bool(busy), max(frames, 0), max(copied, 0), size_of(self.path + "-wal"))

    def quick_check(self) -> tuple[str, ...]:
        """Return what SQLite's quick check complains of, nothing for a sound file. Nobody waits for it."""
        with self.read() as tx:
            verdict = [line for (line,) in tx.execute("PRAGMA quick_check")]
        return () if verdict == ["ok"] else tuple(verdict)

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection that sees one unchanging state of the file; inside a write block, the writer's own."""
        self._check_open()
        if self._writing_thread == threading.get_ident():
            yield self._writer
        elif self.path == MEMORY_PATH:  # a second connection would see another database
            self._take_lock()
            try:
                with translated_errors(self.path, self.config.busy_timeout):
                    yield self._writer
            finally:
                self._lock.release()
        else:
            with translated_errors(self.path, self.config.busy_timeout):
                reader = self._reader()
                with reader.lock:
                    self._check_open()
                    outermost = not reader.connection.in_transaction
                    if outermost:
                        reader.connection.execute("BEGIN")
                    try:
                        yield reader.connection
                    finally:
                        if outermost and reader.connection.in_transaction:
                            reader.connection.execute("ROLLBACK")

    def clean(self) -> tuple[str, ...]:
        """Write the file anew of its live rows and empty its -wal; return remarks on what could not be done."""
        return traces.clean(self)

    @contextlib.contextmanager
    def watching(self) -> Iterator[Callable[[], bool]]:
        """Yield what tells whether anything was committed since it was asked last, by whomever. One asks at a time."""
        self._check_open()
        if self.path == MEMORY_PATH:  # a second connection would see another database
            yield _told_anew(lambda: self._writer.total_changes)
            return
        with translated_errors(self.path, self.config.busy_timeout), contextlib.closing(self._connect()) as connection:
            yield _told_anew(lambda: int(connection.execute("PRAGMA data_version").fetchone()[0]))

    def _reader(self) -> "_Reader":
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = _Reader(self._connect())
            reader.connection.execute("PRAGMA query_only = ON")
            with self._readers_lock:
                self._readers.add(reader)
            self._local.reader = reader
        return reader

    def close(self) -> None:
        """Close every connection, after the read and write blocks that are open. Closing twice does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with self._readers_lock:
                readers = list(self._readers)
            for reader in readers:
                with reader.lock:
                    reader.connection.close()
            self._close_connections()
        self._uncount()

    def _close_connections(self) -> None:
        both = [self._keeper, self._writer]
        if size_of(f"{self.path}-wal"):
            both.reverse()
        for connection in both:
            if connection is not None:
                connection.close()

    def _take_lock(self) -> None:
        self._check_open()
        if not self._lock.acquire(timeout=self.config.busy_timeout):
            raise _busy(self.path, self.config.busy_timeout)
        if self._closed:
            self._lock.release()
            self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise Conflict(f"the memory {self.path} is closed: open it again")


def _told_anew(number: Callable[[], int]) -> Callable[[], bool]:
    """Return what tells whether a number is another than it was when it was asked last."""
    last = number()

    def is_new() -> bool:
        nonlocal last
        before, last = last, number()
        return last != before

    return is_new


class _Reader:
    """The reading connection of one thread; closed with the thread's last use of it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.lock = threading.RLock()  # held while a read block is open, so that close() waits for its end
        weakref.finalize(self, connection.close)


def real_path(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a file as text, links followed; raise InvalidInput for what cannot be one."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if is_server(text):
        raise InvalidInput("path", without_password(text), f"name a file: {ON_SERVER}")
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidInput("path", path, "give the path of a file")
    try:
        os.fsencode(text)
        return os.path.realpath(os.path.expanduser(text))
    except UnicodeEncodeError:
        raise InvalidInput("path", path, "holds characters that no file name can have") from None


def full_path(path: str | os.PathLike[str]) -> str:
    """Return the real absolute path of a database file as text.

    Raises InvalidInput for what cannot be the path of one, StoreFailed for a folder, a pipe or a device.
    """
    # The real file, since SQLite keeps its -wal beside that and not beside a link.
    text = real_path(path)
    try:
        mode = os.stat(text).st_mode
    except FileNotFoundError:
        return text
    except OSError as error:
        raise StoreFailed(f"{text} cannot be reached: {error.strerror}; check the path and its permissions") from error
    if stat.S_ISDIR(mode):
        raise StoreFailed(f"{text} is a folder: name a file in it")
    if not stat.S_ISREG(mode):
        raise StoreFailed(f"{text} is no regular file: name another")
    return text


def _ready_file(path: str | os.PathLike[str], *, create: bool) -> str:
    """Return the path of a file that SQLite may open; a missing one is made, empty, for its owner alone."""
    if isinstance(path, str | os.PathLike) and os.fspath(path) == MEMORY_PATH:
        return MEMORY_PATH
    text = full_path(path)
    if os.path.exists(text):
        if not create and not os.stat(text).st_size:
            raise _empty(text)
        require_writable(text)
        # SQLite takes a file of a byte or two for an empty one and would write over it.
        if 0 < os.stat(text).st_size < _LEAST_PAGE:
            raise StoreCorrupt(f"{text} is no SQLite database: check the path")
        return text
    if not create:
        raise StoreFailed(f"{text} does not exist: check the path")
    if len(os.fsencode(os.path.split(text)[1])) > LONGEST_NAME:
        raise StoreFailed(f"{text} cannot be made: no room in the name for '-journal'; shorten it")
    try:
        # Exclusive, so that a file that is in use is never opened here.
        os.close(os.open(text, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass  # another process made it in between
    except OSError as error:
        reason = f"{error.strerror}; check that its folder exists and may be written"
        raise StoreFailed(f"{text} cannot be made: {reason}") from error
    return text


def _empty(path: str) -> StoreFailed:
    return StoreFailed(f"{path} is empty: nothing was ever written to it")


def was_written(path: str) -> bool:
    """Tell whether there is a file to which anything was ever written, also what is no memory."""
    if not os.path.exists(path) or not size_of(path):
        return False
    reading = f"{pathlib.Path(path).absolute().as_uri()}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(reading, uri=True)) as connection:
            return not is_blank(connection)
    except sqlite3.Error:  # opening it tells what is wrong
        return True


def _use_wal(connection: sqlite3.Connection, path: str, timeout: float) -> None:
    """Switch the file to write-ahead logging; where that is impossible, warn and go on with a rollback journal."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            reason = f"journal mode stays '{mode}'"
            break
        except sqlite3.OperationalError as error:
            code = primary_code(error)
            if code == sqlite3.SQLITE_BUSY and time.monotonic() < deadline:
                time.sleep(0.01)  # two processes that switch at once: SQLite gives up without waiting
                continue
            if code not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY):
                raise
            mode, reason = "", str(error)
            break
    if mode != "wal":
        log.warning("%s: no write-ahead log here (%s); readers and writers wait for each other", path, reason)


def _roll_back(connection: sqlite3.Connection, *, outermost: bool) -> None:
    if not connection.in_transaction:  # SQLite itself has ended it, as it does when the disk is full
        return
    if outermost:
        connection.execute("ROLLBACK")
    else:
        connection.execute("ROLLBACK TO nested")
        connection.execute("RELEASE nested")


def require_writable(path: str) -> None:
    """Raise StoreFailed for a file that may not be written.

    SQLite would open it for reading, and leave a -wal beside it that its owner could not write.
    """
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreFailed(f"{path} {_REMEDIES[sqlite3.SQLITE_READONLY]}")


@contextlib.contextmanager
def translated_errors(path: str, timeout: float) -> Iterator[None]:
    """Raise graphmem's errors in place of sqlite3's, each a line that names the file and the remedy."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _translation(error, path, timeout) from error


def is_undecodable(error: Exception) -> bool:
    """Tell whether an error is about text of a damaged page, or is itself told in such text, as SQLite quotes it."""
    return isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error)


def _translation(error: sqlite3.Error | UnicodeDecodeError, path: str, timeout: float) -> GraphmemError:
    if isinstance(error, UnicodeDecodeError) or is_undecodable(error):
        return StoreCorrupt(f"{path} is damaged (text in it is no UTF-8): restore a backup")
    code = primary_code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return _busy(path, timeout)
    if code == sqlite3.SQLITE_NOTADB:
        return StoreCorrupt(f"{path} is no SQLite database: check the path")
    if code == sqlite3.SQLITE_CORRUPT:
        if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT_VTAB:
            return StoreCorrupt(f"{path}: its text index is damaged ({error}): 'graphmem reindex' makes it anew")
        return StoreCorrupt(f"{path} is damaged ({error}): restore a backup")
    return StoreFailed(f"{path} {_REMEDIES.get(code, f'failed: {error}')}")


def _busy(path: str, timeout: float) -> StoreBusy:
    return StoreBusy(f"{path} is locked: another process has been writing for over {timeout:g} s; try again")


def primary_code(error: Exception) -> int:
    """Return the result code of SQLite without its extension, such as sqlite3.SQLITE_BUSY."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def size_of(path: str) -> int:
    """Return the bytes of a file, 0 where there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def file_identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of a file, None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _count_open(identity: tuple[int, int] | None, change: int) -> None:
    if identity is not None:
        with _open_files_lock:
            stores = _open_files.pop(identity, 0) + change
            if stores:
                _open_files[identity] = stores


def is_open_here(path: str) -> bool:
    """Tell whether this process holds the file open, so that plain file I/O on it would drop SQLite's locks."""
    identity = file_identity(path)
    return identity in _open_files
