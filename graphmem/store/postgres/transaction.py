"""A transaction on PostgreSQL: statements are sent and not waited for until rows of one are asked for.

So what a verb asks first, and what it writes last, costs one round trip each, whatever the number of statements. Until
the first rows have come nothing was seen of the database: a connection that turns out to be lost is then replaced, and
all that was sent is sent again.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import errors

from graphmem.late import late
from graphmem.store.postgres.connecting import Connection
from graphmem.store.postgres.statements import translated

_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.5  # seconds between two attempts
# What passes by itself: https://www.postgresql.org/docs/current/mvcc-serialization-failure-handling.html
_PASSING = (errors.SerializationFailure, errors.DeadlockDetected)


class PostgresRows:
    """What a statement gave, or will give once somebody asks."""

    def __init__(self, transaction: "PostgresTransaction", statement: str, parameters: Any, *, many: bool) -> None:
        self._transaction = transaction
        self._statement = statement
        self._parameters = parameters
        self._many = many
        self.has_come = False

    def send(self, connection: Connection) -> None:
        """Send the statement, anew where it was sent on a connection that is lost."""
        self._cursor = connection.cursor()
        if self._many:
            self._cursor.executemany(self._statement, self._parameters)
        else:
            self._cursor.execute(self._statement, self._parameters, prepare=self._transaction.prepares)

    def _arrived(self) -> "psycopg.Cursor[Any]":
        if not self.has_come:
            self._transaction.settle()
        return self._cursor

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""
        return self._arrived().rowcount

    @property
    def description(self) -> Any:
        """A tuple for each column, the first of which is its name."""
        return self._arrived().description

    def fetchone(self) -> Any:
        """Return the next row as a tuple, None behind the last one."""
        return self._arrived().fetchone()

    def fetchmany(self, size: int = 1, /) -> list[Any]:
        """Return so many of the next rows."""
        return self._arrived().fetchmany(size)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return self._arrived().fetchall()

    def close(self) -> None:
        """Forget the rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self._arrived())


class PostgresTransaction:
    """Where statements are executed; see `graphmem.store.transaction.Transaction`.

    lease: yields a connection, and takes back the one that it gave. patience: seconds for which what passes is waited
    for: a server that starts anew, a transaction that has to give way.
    """

    words = late("graphmem.store.postgres.words")
    engine = late("graphmem.store.postgres.engine")

    def __init__(
        self,
        lease: Callable[[], Connection],
        give_back: Callable[[Connection], None],
        patience: float,
        *,
        writes: bool,
        notes: bool = False,
    ) -> None:
        self._lease = lease
        self._give_back = give_back
        self._deadline = time.monotonic() + patience
        self._sent: list[PostgresRows] = []
        self._seen = False
        self.writes = writes
        self.indexed: dict[str, set[int]] | None = {} if notes else None
        self.revision: PostgresRows | int | None = None
        self.prepares: bool | None = None  # False where statements may fail and the transaction goes on
        self.connection = lease()

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> PostgresRows:
        """Send a statement."""
        return self._send(PostgresRows(self, translated(statement), parameters, many=False))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> PostgresRows:
        """Send a statement once for each of some rows of parameters."""
        return self._send(PostgresRows(self, translated(statement), list(rows), many=True))

    def _send(self, rows: PostgresRows) -> PostgresRows:
        self._sent.append(rows)
        try:
            rows.send(self.connection)
        except psycopg.Error as error:
            self._overcome(error)
        return rows

    def settle(self) -> None:
        """Wait until the server has answered all that was sent; raises what it complains of."""
        while True:
            try:
                self.connection.settle()
                break
            except psycopg.Error as error:
                self._overcome(error)
        for rows in self._sent:
            rows.has_come = True
        self._sent.clear()
        self._seen = True

    def _overcome(self, error: psycopg.Error) -> None:
        """Begin anew on another connection as long as nothing was seen of the database; else raise the error."""
        self.connection.has_failed = True
        wait = _FIRST_WAIT
        while True:
            lost = self.connection.broken or self.connection.closed
            if self._seen or not (lost or isinstance(error, _PASSING)) or time.monotonic() + wait > self._deadline:
                raise error
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
            try:
                self._renew(lost=bool(lost))
                for rows in self._sent:
                    rows.send(self.connection)
                return
            except psycopg.Error as another:
                error = another

    def _renew(self, *, lost: bool) -> None:
        if not lost:
            self.roll_back()
        self.leave()
        self.connection = self._lease()

    def roll_back(self) -> None:
        """End the transaction and keep nothing of it, whatever happened in it."""
        if self.connection.closed:
            return
        if self._sent:
            with contextlib.suppress(psycopg.Error):  # of what was not waited for
                self.connection.settle()
        with contextlib.suppress(psycopg.OperationalError):
            self.connection.execute("ROLLBACK")
            self.connection.settle()

    @contextlib.contextmanager
    def savepoint(self, *, keep: bool = True) -> Iterator[None]:
        """Undo what a block wrote where it fails, and in any case with keep=False."""
        self.execute("SAVEPOINT nested")
        try:
            yield
            if keep:
                self.execute("RELEASE SAVEPOINT nested")
                return
        except BaseException:
            self._undo()
            raise
        self._undo()

    def _undo(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.connection.settle()
        self._sent.clear()
        self._seen = True
        self.execute("ROLLBACK TO SAVEPOINT nested")
        self.execute("RELEASE SAVEPOINT nested")

    def commit(self) -> None:
        """Make what was written last. Raises what the server complains of."""
        self.execute("COMMIT")
        self.settle()

    def leave(self) -> None:
        """Give the connection back, one on which a statement failed to be closed."""
        if self.connection.has_failed:
            self.connection.close()
        self._give_back(self.connection)
