"""A memory on a PostgreSQL server: its connections and transactions, and the translation of PostgreSQL's errors.

A transaction works under the role of its tenant, who may use one schema alone, and finds tables by a search path that
names it; so no statement names a tenant. Who writes first locks the one row of `store_state`: a memory has one writer
at a time, as a SQLite file has, and whatever number of readers, each of which sees one state.
"""

import contextlib
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors

from graphmem.config import DEFAULT, Config, require_writing
from graphmem.core import model
from graphmem.errors import Conflict, GraphmemError, InvalidInput, StoreBusy, StoreCorrupt, StoreFailed
from graphmem.late import late
from graphmem.store.postgres import engine, tenants
from graphmem.store.postgres.address import Address, parsed, role_of
from graphmem.store.postgres.connecting import (
    Connection,
    NoneFree,
    begin_using,
    connected,
    end_using,
    plainly_connected,
    pool_of,
)
from graphmem.store.postgres.statements import translated
from graphmem.store.postgres.transaction import PostgresTransaction, is_lost
from graphmem.store.schema import VERSION
from graphmem.store.transaction import RowsRefused

if TYPE_CHECKING:
    from graphmem.core.embedding import Embedder
    from graphmem.store import rows, vectors
else:
    rows = late("graphmem.store.rows")
    vectors = late("graphmem.store.vectors")

_TOKEN = 8  # bytes that tell a transaction
_TOKENS_KEPT = 32  # of the last ones, in hexadecimal digits behind one another
_NOTIFIED_FOR = 60.0  # seconds for which somebody who watches is told of commits
_TENANT = "SELECT set_config('role', ?, true), set_config('search_path', ?, true), set_config('lock_timeout', ?, true)"
_LOCK = f"""UPDATE store_state SET revision = revision + 1, writers = left(? || writers, {2 * _TOKEN * _TOKENS_KEPT})
            RETURNING revision, version"""
_TELL = "SELECT pg_notify(?, '') FROM store_state WHERE watched_until > clock_timestamp()"
_REMEDIES: dict[type[psycopg.Error], str] = {
    errors.InsufficientPrivilege: "may not be used by this user: {}; let its owner grant it",
    errors.DiskFull: "cannot grow: the disk of the server is full, nothing was changed; make room and try again",
    errors.ReadOnlySqlTransaction: "is on a server that only reads (a standby): name the one that writes",
}
# Why a server lets nobody in comes without a code, in its own words; so does what is wrong with an address.
_REFUSALS = {
    re.compile(r"no password supplied"): (
        "wants a password, and none is given: set PGPASSWORD, or write it into ~/.pgpass or into the address"
    ),
    re.compile(r"password authentication failed"): "refuses the password: check the address, PGPASSWORD and ~/.pgpass",
    re.compile(r'database ".*" does not exist'): "does not exist: make the database first",
    re.compile(r'role ".*" (does not exist|is not permitted)|no pg_hba\.conf entry|authentication failed'): (
        "refuses the user: check the address, and pg_hba.conf of the server"
    ),
    re.compile(r"permission denied for database"): "may not be used by this user: let its owner grant CONNECT",
    re.compile(r"(failed to resolve host|could not translate host name)(?!.*Temporary failure)"): (
        "names a host that nobody knows ({}): check the address"
    ),
    re.compile(
        r"invalid \S+ value|invalid port number|could not (match|parse) |definition of service|weak sslmode"
        r"|does not support SSL|certificate (file|verify|for) "
    ): "cannot be used as its parameters say ({}): check those of the address",
}


class PostgresStore:
    """A tenant of a PostgreSQL server; see `graphmem.store.transaction.Store`.

    unfinished: for who copies; to all others a copy that is not finished is StoreFailed, also where it became one after
    it was opened.
    """

    def __init__(
        self,
        path: str,
        *,
        config: Config = DEFAULT,
        create: bool = True,
        embedder: "Embedder | None" = None,
        unfinished: bool = False,
    ) -> None:
        self._address = parsed(path)
        self.path = self._address.shown
        self.config = config
        self._embedder = embedder
        self._unfinished = unfinished
        self._lock = threading.RLock()
        self._local = threading.local()
        self._closed = False
        with self._translated():
            self._prepare(create=create and not config.read_only)
        begin_using(self._address.server)

    def _prepare(self, *, create: bool) -> None:
        """Make or migrate the tenant where need be; on a connection of its own, whose failure tells what is wrong."""
        with plainly_connected(self._address.server, self._seconds) as connection:
            _require_utf8(connection, self.path)
            self._role = role_of(connection.info.dbname, self._address.schema)
            version = tenants.version_of(connection, self._address)
            if version is None and not create:
                raise StoreFailed(f"{self.path} does not exist: check the tenant")
            if version is not None and version < 0:
                self._refuse_unfinished()
            elif version not in (None, VERSION) and self.config.read_only:
                reason = "has the schema of an older graphmem, and a read-only memory is not brought up to date"
                raise StoreFailed(f"{self.path} {reason}: open it once without read_only")
            connection.execute("SELECT set_config('lock_timeout', $1, false)", (self._lock_timeout,))
            tenants.share(connection)
            if version not in (VERSION, -VERSION) and not self.config.read_only:
                tenants.make(connection, self._address)

    def _refuse_unfinished(self) -> None:
        """Raise StoreFailed, for a memory that is a copy which is not finished, unless that is what is wanted."""
        if not self._unfinished:
            with self.read() as tx:
                raise rows.unfinished(tx, self.path)

    @property
    def _seconds(self) -> int:
        return max(int(self.config.busy_timeout), 2)

    # ---- transactions

    @contextlib.contextmanager
    def write(self, *, keep: bool = True) -> Iterator[PostgresTransaction]:
        """Yield a transaction that writes; on any failure nothing of it stays. Blocks nest as savepoints.

        With keep=False nothing stays in any case. Raises StoreBusy when another writer holds the lock for longer than
        the busy timeout or the server is away for as long, Conflict for any but a rehearsal where the memory is
        read-only.
        """
        self._check_open()
        outer: PostgresTransaction | None = getattr(self._local, "writing", None)
        if outer is not None:
            with self._translated(), outer.savepoint(keep=keep):
                yield outer
            return
        if keep:
            self.require_writing()
        self._take_lock()
        try:
            with self._translated():
                yield from self._write(keep=keep)
        finally:
            self._lock.release()

    def _write(self, *, keep: bool) -> Iterator[PostgresTransaction]:
        token = secrets.token_hex(_TOKEN)
        with self._transaction("BEGIN") as tx:
            self._local.writing = tx
            try:
                locked = tx.execute(_LOCK, (token,))
                yield tx
                if not keep:
                    return
                if self._embedder is not None:
                    vectors.put_indexed(tx, self._embedder)
                tx.execute(_TELL, (self._address.schema,))
                # Has come already, where anything was read in the block.
                told = locked.fetchone()
                if told is None:
                    raise StoreCorrupt(f"{self.path} is damaged (its table store_state is empty): restore a backup")
                revision, version = told
                if version < 0:  # a copy into it may have begun since it was opened, and would not keep the change
                    self._refuse_unfinished()
                tx.commit(lambda error: self._has_written(token, revision, error))
            finally:
                self._local.writing = None

    def _has_written(self, token: str, revision: int, error: psycopg.Error) -> bool:
        """Tell whether a transaction was committed whose connection was lost while it was.

        revision: what it made of the memory's.
        """
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                with connected(self._address.server, self._seconds) as connection:
                    connection.execute("BEGIN")
                    connection.execute(translated(_TENANT), (self._role, self._search_path, self._lock_timeout))
                    # Waits until the transaction has ended, should the server still be at it.
                    asked = "SELECT revision, strpos(writers, $1) FROM store_state FOR UPDATE"
                    found = connection.execute(asked, (token,)).fetchone()
                    if found and (found[1] or found[0] < revision + _TOKENS_KEPT):
                        return bool(found[1])
                    deadline = 0.0  # so many have written since that it is no longer known
            except psycopg.OperationalError:
                pass
            if time.monotonic() > deadline:
                reason = f"was lost while a change was committed ({_line(error)})"
                raise StoreBusy(f"{self.path} {reason}: look whether it is there before you try again") from error
            time.sleep(0.05)

    @contextlib.contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        """Yield a transaction that sees one unchanging state of the memory; inside a write block, the writer's own."""
        self._check_open()
        current = getattr(self._local, "writing", None) or getattr(self._local, "reading", None)
        if current is not None:
            yield current
            return
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._translated(), self._transaction(begin) as tx:
            self._local.reading = tx
            try:
                tx.revision = tx.execute("SELECT revision FROM store_state")
                yield tx
            finally:
                self._local.reading = None

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresTransaction]:
        """Yield a transaction of the tenant; what it has not committed when the block ends is not kept."""
        tx = PostgresTransaction(self._lease, self._give_back, self._seconds, notes=self._embedder is not None)
        try:
            tx.execute(begin)
            tx.execute(_TENANT, (self._role, self._search_path, self._lock_timeout))
            yield tx
        finally:
            tx.leave()

    def _lease(self) -> Connection:
        return pool_of(self._address.server).getconn(timeout=self._seconds)

    def _give_back(self, connection: Connection) -> None:
        pool_of(self._address.server).putconn(connection)

    @property
    def _search_path(self) -> str:
        return f'"{self._address.schema}", graphmem'

    @property
    def _lock_timeout(self) -> str:
        return str(max(int(self.config.busy_timeout * 1000), 1))

    def require_writing(self) -> None:
        """Raise Conflict where the memory is read-only, for what does more than write and should not begin."""
        require_writing(self.config, self.path)

    # ---- what is not a verb's transaction

    @contextlib.contextmanager
    def watching(self) -> Iterator[Callable[[], bool]]:
        """Yield what tells whether anything was committed since it was asked last, by whomever. One asks at a time.

        The server tells of commits as they come; where the memory is read-only, it is asked.
        """
        self._check_open()
        with self._translated(), contextlib.ExitStack() as stack:
            yield _Watch(self, stack).is_new

    def revision(self) -> int:
        """Return how many transactions have written."""
        with self.read() as tx:
            (revision,) = tx.execute("SELECT revision FROM store_state").fetchone()
        return int(revision)

    def sync(self) -> None:
        """Do nothing: a commit is told of when the server has made it last, unless its own settings say otherwise."""
        self._check_open()

    def checkpoint(self) -> model.WalState:
        """Return that no log waits: the server sees to its own."""
        self.require_writing()
        return model.WalState(False, 0, 0, 0)

    def quick_check(self) -> tuple[str, ...]:
        """Return nothing: pages are checked by the server."""
        return ()

    def clean(self) -> tuple[str, ...]:
        """Vacuum the tables of the tenant; return a remark on what lies elsewhere."""
        with self._translated(), plainly_connected(self._address.server, self._seconds) as connection:
            for table in engine.all_tables():
                connection.execute(f'VACUUM (FULL) "{self._address.schema}".{table}')
        return (
            f"{self.path}: what was removed may still lie in the server's write-ahead log, in its archive, on standbys "
            f"and in backups, until they are replaced",
        )

    def close(self) -> None:
        """Let go of the server, after the write block that is open. Closing twice does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                end_using(self._address.server)

    def _take_lock(self) -> None:
        if not self._lock.acquire(timeout=self.config.busy_timeout):
            raise self._busy()

    def _check_open(self) -> None:
        if self._closed:
            raise Conflict(f"the memory {self.path} is closed: open it again")

    def _busy(self) -> StoreBusy:
        return _busy(self.path, self.config.busy_timeout)

    def _translated(self) -> contextlib.AbstractContextManager[None]:
        return _translated(self.path, self.config.busy_timeout)


class _Watch:
    """Hears of commits by LISTEN, where it may say that it listens; else asks for the revision."""

    def __init__(self, store: PostgresStore, stack: contextlib.ExitStack) -> None:
        self._store = store
        self._stack = stack
        self._listens = not store.config.read_only
        self._renewed = 0.0
        self._connection: psycopg.Connection | None = None
        self._last = -1
        self.is_new()

    def is_new(self) -> bool:
        with self._store._translated():
            if not self._listens:
                before, self._last = self._last, self._store.revision()
                return before != self._last
            return self._told()

    def _told(self) -> bool:
        store = self._store
        if self._connection is None or self._connection.closed:
            self._connection = self._stack.enter_context(plainly_connected(store._address.server, store._seconds))
            self._connection.execute(f'LISTEN "{store._address.schema}"')
            self._renewed = 0.0
        if time.monotonic() - self._renewed > _NOTIFIED_FOR / 2:
            self._renewed = time.monotonic()
            self._renew()
            list(self._connection.notifies(timeout=0))
            before, self._last = self._last, store.revision()
            return before != self._last
        try:
            heard = list(self._connection.notifies(timeout=0))
        except psycopg.OperationalError:
            self._connection = None
            return True
        if heard:
            self._last = store.revision()
        return bool(heard)

    def _renew(self) -> None:
        """Say until when this one wants to be told; not counted as a change of the memory."""
        with self._store._transaction("BEGIN") as tx:
            tx.execute(
                """UPDATE store_state
                   SET watched_until = greatest(watched_until, clock_timestamp() + ? * interval '1 s')""",
                (_NOTIFIED_FOR,),
            )
            tx.settle()
            tx.commit(lambda _: False)


def tenant_names(path: str, config: Config) -> list[str]:
    """Return the names of the tenants of the server of an address. Raises StoreFailed, StoreBusy."""
    with _asking(parsed(path), config) as connection:
        return list(tenants.names(connection))


def has_tenant(path: str, config: Config) -> bool:
    """Tell whether there is the tenant of an address. Raises StoreFailed, StoreBusy, SchemaTooNew."""
    address = parsed(path)
    with _asking(address, config) as connection:
        return tenants.version_of(connection, address) is not None


def state_of(path: str, config: Config) -> tuple[str, int | None]:
    """Return what is at an address, in words, and the version of the tenant's schema, None where there is none yet.

    Raises StoreFailed, StoreBusy, SchemaTooNew.
    """
    address = parsed(path)
    with _asking(address, config) as connection:
        version = (connection.info.parameter_status("server_version") or "").partition(" ")[0]
        return f"PostgreSQL {version}, tenant {address.tenant}", tenants.version_of(connection, address)


@contextlib.contextmanager
def _asking(address: Address, config: Config) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with (
        _translated(address.shown, config.busy_timeout),
        plainly_connected(address.server, config.busy_timeout) as connection,
    ):
        _require_utf8(connection, address.shown)
        yield connection


def _require_utf8(connection: psycopg.Connection[tuple[Any, ...]], path: str) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreFailed(
            f"{path} is in a database with the encoding {encoding}, which does not hold every text: name one that was "
            f"made with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )


# ---- errors


@contextlib.contextmanager
def _translated(path: str, timeout: float) -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, RowsRefused, UnicodeEncodeError) as error:
        raise _translation(error, path, timeout) from error


def _translation(error: Exception, path: str, timeout: float) -> GraphmemError:
    if isinstance(error, errors.LockNotAvailable):
        return _busy(path, timeout)
    for kind, remedy in _REMEDIES.items():
        if isinstance(error, kind):
            return StoreFailed(f"{path} {remedy.format(_line(error))}")
    if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
        return StoreBusy(f"{path} had to give way to another writer, nothing was changed; try again")
    if isinstance(error, NoneFree | errors.TooManyConnections):
        return StoreBusy(f"{path}: no connection was free for {max(timeout, 2):g} s; try again")
    if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
        return StoreCorrupt(f"{path} is damaged ({_line(error)}): restore a backup")
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        return InvalidInput("text", "\\0", "PostgreSQL keeps no NUL characters: leave them out")
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        for words, remedy in _REFUSALS.items():
            if words.search(str(error)):
                return StoreFailed(f"{path} {remedy.format(_line(error))}")
    if is_lost(error):
        return StoreBusy(f"{path} cannot be reached ({_line(error)}); nothing was changed, try again")
    return StoreFailed(f"{path} failed: {_line(error)}")


def _busy(path: str, timeout: float) -> StoreBusy:
    return StoreBusy(f"{path} is locked: another process has been writing for over {timeout:g} s; try again")


def _line(error: Exception) -> str:
    """Return what an error says, in one line, and nothing of the rows it is about."""
    told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return " ".join((told or str(error)).split()) or type(error).__name__
