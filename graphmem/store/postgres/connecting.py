"""Connections to PostgreSQL: pools that all memories of a process on one server share, and values as SQLite gives them.

A connection stays in pipeline mode for all its life: statements are sent without waiting for the answer to the last.
"""

import atexit
import collections
import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import FloatDumper, Int8Dumper

# A server has a process for each connection, and a memory has one writer; the others read.
MOST_CONNECTIONS = 8
# Statements that a connection keeps prepared. A verb has some ten, and lists come in few lengths.
_STATEMENTS_KEPT = 500
_IDLE_SECONDS = 60.0
_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.5  # seconds between two attempts to connect
# Seconds of silence until the first, between two, how many without an answer; milliseconds until what is sent is seen.
_PROBES = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_TAKING_BACK = ("ROLLBACK TO SAVEPOINT nested", "ROLLBACK", "COMMIT")
_INT8_OID = 20

# What psycopg warns of is overcome or raised: nothing to print where nobody asked for logs.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_pools: dict[tuple[int, str], "Pool"] = {}
_users: collections.Counter[str] = collections.Counter()  # open memories, by their servers
_pools_lock = threading.Lock()
# A process that was forked off has pools of its own.
os.register_at_fork(before=_pools_lock.acquire, after_in_parent=_pools_lock.release, after_in_child=_pools_lock.release)


class _Pipeline(psycopg.Pipeline):
    """Sends what is executed in one piece with all else that was, when somebody waits.

    psycopg writes each statement to the wire by itself, which costs both sides more than the statement does. Should it
    come to work in another way, these methods are not called and it sends as it does.
    """

    def _communicate_gen(self) -> PQGen[None]:
        while self.command_queue:
            self.command_queue.popleft()()  # libpq keeps it, and begins to send where it is much
        yield from ()

    def _sync_gen(self) -> PQGen[None]:
        self._enqueue_sync()
        yield from super()._communicate_gen()
        yield from self._fetch_gen(flush=False)


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection in pipeline mode."""

    # Whether a statement failed: psycopg may then take for prepared what the server passed over.
    has_failed = False
    _mode: contextlib.AbstractContextManager[psycopg.Pipeline]
    _pipelining: psycopg.Pipeline

    def begin_pipelining(self) -> None:
        """Send statements without waiting from here on."""
        self._pipeline = _Pipeline(self)
        self._mode = self.pipeline()  # leaves the mode when it is dropped
        self._pipelining = self._mode.__enter__()

    def close(self) -> None:
        """Close the connection; what was sent and not waited for is lost."""
        with contextlib.suppress(psycopg.Error):
            self._mode.__exit__(None, None, None)  # of one that was lost too: else psycopg logs that it was, later
        super().close()

    def settle(self) -> None:
        """Wait until the server has answered all that was sent; raises what it complains of."""
        self._pipelining.sync()


class _Flag(Dumper):
    """A bool as SQLite takes it."""

    oid = _INT8_OID

    def dump(self, obj: bool) -> Buffer:
        """Return 1 or 0."""
        return b"1" if obj else b"0"


class _FlagLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumericLoader(Loader):
    """The sum of whole numbers is a whole number."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Let a connection take and give values as sqlite3 does: numbers for bools and sums."""
    adapters = connection.adapters
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(bool, _Flag)
    adapters.register_dumper(float, FloatDumper)
    adapters.register_loader("bool", _FlagLoader)
    adapters.register_loader("numeric", _NumericLoader)


def connect(address: str, seconds: float) -> Connection:
    """Connect to a server. Raises psycopg.OperationalError."""
    connection = Connection.connect(
        _patient(address, seconds),
        autocommit=True,
        cursor_factory=psycopg.RawCursor,
        prepare_threshold=2,
    )
    connection.prepared_max = _STATEMENTS_KEPT
    adapt(connection)
    # When psycopg first meets a statement that takes something back, it lets the server forget what is prepared, and in
    # a pipeline also what it prepares meanwhile. Here it meets them while nothing is.
    for statement in ("BEGIN", "SAVEPOINT nested", *_TAKING_BACK):
        connection.execute(statement)
    connection.begin_pipelining()
    return connection


def _patient(address: str, seconds: float) -> str:
    """Return an address with how long libpq waits for the server, where it does not say so itself.

    A host that is gone without a word is found out by probes, which the system alone sends after two hours. Texts are
    sent as UTF-8, whatever the address and the environment say.
    """
    patience = {"connect_timeout": max(int(seconds), 2), **_PROBES}
    return make_conninfo("", **{**patience, **conninfo_to_dict(address), "client_encoding": "UTF8"})


class NoneFree(psycopg.OperationalError):
    """All connections that this process may have to a server are in use."""


class Pool:
    """The connections of this process to a server: as many as are used at once, and at most MOST_CONNECTIONS.

    Who needs one makes it, so that nothing works in the background, and who waits for a server that starts anew has a
    connection as soon as it is up.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._idle: collections.deque[tuple[float, Connection]] = collections.deque()

    def getconn(self, timeout: float) -> Connection:
        """Return a connection, which `putconn` takes back.

        Raises NoneFree where none becomes free within so many seconds, psycopg.OperationalError where none can be made.
        """
        deadline = time.monotonic() + timeout
        if not self._free.acquire(timeout=timeout):
            raise NoneFree(f"none of {MOST_CONNECTIONS} connections became free within {timeout:g} s")
        try:
            with contextlib.suppress(IndexError):
                return self._idle.pop()[1]
            return self._made(deadline)
        except BaseException:
            self._free.release()
            raise

    def _made(self, deadline: float) -> Connection:
        wait = _FIRST_WAIT
        while True:
            try:
                return connect(self._address, max(deadline - time.monotonic(), 0.0))
            except psycopg.OperationalError:
                if time.monotonic() + wait > deadline:
                    raise
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def putconn(self, connection: Connection) -> None:
        """Take a connection back: one in no transaction for others, any other to be closed."""
        now = time.monotonic()
        if connection.pgconn.transaction_status == TransactionStatus.IDLE:
            self._idle.append((now, connection))
        else:
            connection.close()
        self._free.release()
        with contextlib.suppress(IndexError):
            while now - self._idle[0][0] > _IDLE_SECONDS:
                self._idle.popleft()[1].close()

    def close(self, *, keep: int = 0) -> None:
        """Close what is idle, but for so many that were used last."""
        with contextlib.suppress(IndexError):
            while len(self._idle) > keep:
                self._idle.popleft()[1].close()


def pool_of(address: str) -> Pool:
    """Return the pool of this process for a server."""
    key = os.getpid(), address
    with _pools_lock:
        if key not in _pools:
            _pools[key] = Pool(address)
        return _pools[key]


def begin_using(address: str) -> None:
    """Count a memory that is opened on a server."""
    with _pools_lock:
        _users[address] += 1


def end_using(address: str) -> None:
    """Count a memory that is closed; with the last one of a server all idle connections are closed but one.

    To make one takes as long as all else that opening a memory does, and many programs open one for each verb.
    """
    with _pools_lock:
        _users[address] -= 1
        is_last = not _users[address]
    if is_last:
        pool_of(address).close(keep=1)


@contextlib.contextmanager
def plainly_connected(address: str, seconds: float) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Yield a connection that waits for each statement, for what is no transaction of a memory; closed at the end."""
    connection = psycopg.connect(_patient(address, seconds), autocommit=True, cursor_factory=psycopg.RawCursor)
    with contextlib.closing(connection):
        yield connection


@contextlib.contextmanager
def connected(address: str, seconds: float) -> Iterator[Connection]:
    """Yield a connection of its own, closed at the end."""
    with contextlib.closing(connect(address, seconds)) as connection:
        yield connection


@atexit.register
def close_pools() -> None:
    """Close the connections of this process that are free."""
    with _pools_lock:
        for (process, _), pool in _pools.items():
            if process == os.getpid():
                pool.close()
