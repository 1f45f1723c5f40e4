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
# The server shuts down, has crashed, is not up yet, was tired of an idle connection.
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_LOST = ("57P01", "57P02", "57P03", "57P05", "25P03")


def is_lost(error: Exception) -> bool:
    """Tell that a server was not reached, or has ended the connection."""
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate
    return isinstance(error, psycopg.OperationalError) if code is None else code in _LOST or code.startswith("08")


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

    @property
    def statusmessage(self) -> str | None:
        """What the server says it did, such as COMMIT."""
        return self._arrived().statusmessage

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

    lease: gives a connection, which `leave` gives back in any case. patience: seconds for which what passes is waited
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
        notes: bool = False,
    ) -> None:
        self._lease = lease
        self._give_back = give_back
        self._deadline = time.monotonic() + patience
        self._sent: list[PostgresRows] = []
        self._seen = False
        self._is_over = False
        self.indexed: dict[str, set[int]] | None = {} if notes else None
        self.revision: PostgresRows | int | None = None
        self.prepares: bool | None = None  # False where statements may fail and the transaction goes on
        self.connection = lease()
        self._is_lent = True

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
            lost = self._has_lost(error)
            if self._seen or not (lost or isinstance(error, _PASSING)) or time.monotonic() + wait > self._deadline:
                raise error
            time.sleep(wait)
            # After a restart of the server all connections of the pool are lost, each of which is met once.
            wait = _FIRST_WAIT if lost else min(2 * wait, _LONGEST_WAIT)
            try:
                self._renew(lost=lost)
                for rows in self._sent:
                    rows.send(self.connection)
                return
            except psycopg.Error as another:
                error = another

    def _has_lost(self, error: psycopg.Error) -> bool:
        return bool(self.connection.closed) or is_lost(error)

    def _renew(self, *, lost: bool) -> None:
        if not lost:
            self.roll_back()
            return
        self.connection.close()
        self._let_go()
        self.connection = self._lease()
        self._is_lent = True

    def roll_back(self) -> None:
        """End the transaction and keep nothing of it, whatever happened in it."""
        if self.connection.closed:
            return
        try:
            if self._sent:
                with contextlib.suppress(psycopg.Error):  # of what was not waited for
                    self.connection.settle()
            self.connection.execute("ROLLBACK")
            self.connection.settle()
        except psycopg.Error:
            self.connection.close()  # nobody is to have it in a state that is not known
        except BaseException:
            self.connection.close()
            raise

    @contextlib.contextmanager
    def savepoint(self, *, keep: bool = True) -> Iterator[None]:
        """Undo what a block wrote where it fails, and in any case with keep=False."""
        self.execute("SAVEPOINT nested")
        try:
            yield
            if keep:
                self.execute("RELEASE SAVEPOINT nested")
                return
        except BaseException as error:
            try:
                self._undo()
            except psycopg.Error:
                if isinstance(error, psycopg.Error):  # what failed was sent before the block, and spoilt all
                    raise error from None
                raise
            raise
        self._undo()

    def _undo(self) -> None:
        failure = None
        try:
            self.connection.settle()
        except psycopg.Error as error:
            failure = error
        self._sent.clear()
        self._seen = True
        self.execute("ROLLBACK TO SAVEPOINT nested")
        self.execute("RELEASE SAVEPOINT nested")
        if failure is not None:
            try:
                self.settle()
            except psycopg.Error:  # what was sent before the block had failed, and the savepoint with it
                raise failure from None

    def commit(self, was_kept: Callable[[psycopg.Error], bool]) -> None:
        """Make what was written last. Raises what the server complains of.

        was_kept: tells, by another connection, whether it was, where the answer of the server was lost; given the error
        to raise where it cannot be told.
        """
        self._seen = True  # never sent twice
        try:
            told = self.execute("COMMIT")
            self.settle()
        except psycopg.Error as error:
            if not self._has_lost(error):
                raise
            self.connection.close()
            if not was_kept(error):
                raise
        else:
            if told.statusmessage != "COMMIT":  # the answer where a statement had failed
                raise errors.InFailedSqlTransaction("a statement had failed, nothing was kept")
        self._is_over = True

    def leave(self) -> None:
        """Give the connection back; what was not committed is not kept."""
        try:
            if self._is_lent and not self._is_over:
                self.roll_back()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._is_lent:
            self._is_lent = False
            if self.connection.has_failed:
                self.connection.close()
            self._give_back(self.connection)
