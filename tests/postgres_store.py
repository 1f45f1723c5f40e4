"""The tests of verbs on PostgreSQL: each file that a test names is a tenant of the server GRAPHMEM_POSTGRES.

To make a tenant takes as long as ten tests, so those of a test are emptied at its end, and used again.
"""

import functools
import os
import secrets
import sqlite3

import psycopg

import graphmem.memory
from graphmem.store import opening
from graphmem.store.postgres.address import schema_of
from graphmem.store.postgres.connecting import adapt
from graphmem.store.postgres.engine import all_tables, numbered
from graphmem.store.postgres.statements import translated

_EMPTIED = """
DO $$ BEGIN
    SET LOCAL session_replication_role = replica;
    SET LOCAL search_path = "{schema}";
    {deletions};
    INSERT INTO counters VALUES ('vectors_removed', 0);
    {numbers};
END $$"""

_used: dict[str, str] = {}  # tenants by the files that a test named
_free: list[str] = []


def address(tenant: str) -> str:
    """Return the address of a tenant of the server that tests use."""
    return f"{os.environ['GRAPHMEM_POSTGRES']}?tenant={tenant}"


def take_over() -> None:
    """Let Memory.open open tenants in place of files."""
    open_store = opening.open_store

    def open_tenant(path, *, config, create, embedder=None):
        if isinstance(path, str | os.PathLike) and not opening.is_server(path):
            path = address(tenant_of(os.fspath(path)))
        return open_store(path, config=config, create=create, embedder=embedder)

    graphmem.memory.open_store = open_tenant
    connect = sqlite3.connect

    def look(path, *arguments, **named):
        place = os.path.realpath(path) if isinstance(path, str | os.PathLike) else path
        return Looking(_used[place]) if place in _used else connect(path, *arguments, **named)

    sqlite3.connect = look


class Nothing:
    """What a statement gives that gives no rows, as sqlite3 has it."""

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount

    def fetchone(self) -> None:
        """Return that there is no row."""

    def fetchall(self):
        return []

    def __iter__(self):
        return iter(())


class Looking:
    """Looks into a tenant, and writes there, as tests do by sqlite3 into files."""

    def __init__(self, tenant: str) -> None:
        self._connection = psycopg.connect(
            os.environ["GRAPHMEM_POSTGRES"], autocommit=True, cursor_factory=psycopg.RawCursor
        )
        adapt(self._connection)
        self._connection.execute(f'SET search_path = "{schema_of(tenant)}", graphmem')

    def execute(self, statement, parameters=()):
        cursor = self._connection.cursor()
        cursor.execute(translated(statement), parameters)
        return cursor if cursor.description else Nothing(cursor.rowcount)

    def executemany(self, statement, rows):
        cursor = self._connection.cursor()
        cursor.executemany(translated(statement), list(rows))
        return cursor

    def executescript(self, script):
        for statement in script.split(";"):
            if statement.strip():
                self.execute(statement)

    def iterdump(self):
        """Yield what the tenant holds, a line each row."""
        for table in all_tables():
            if table != "store_state":
                for row in self.execute(f"SELECT * FROM {table} ORDER BY {table}").fetchall():
                    yield f"{table} {row}"

    def commit(self) -> None:
        """Do nothing: each statement is kept at once."""

    def close(self) -> None:
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def tenant_of(name: str) -> str:
    """Return the tenant that stands for a file, the same one as long as a test runs."""
    place = secrets.token_hex(8) if name == opening.MEMORY_PATH else os.path.realpath(name)
    if place not in _used:
        _used[place] = _free.pop() if _free else f"t_{secrets.token_hex(8)}"
    return _used[place]


def empty_tenants() -> None:
    """Empty the tenants of a test, for the next one."""
    if not _used:
        return
    for tenant in dict.fromkeys(_used.values()):
        try:
            _connection().execute(_emptied(tenant))
        except psycopg.Error:  # one that was never made, or that a test took apart
            continue
        _free.append(tenant)
    _used.clear()


def _emptied(tenant: str) -> str:
    return _EMPTIED.format(
        schema=schema_of(tenant),
        deletions=";".join(f"DELETE FROM {name}" for name in all_tables() if name != "store_state"),
        numbers=";".join(
            f"PERFORM setval(pg_get_serial_sequence('{table}', '{column}'), 1, false)" for table, column in numbered()
        ),
    )


@functools.cache
def _connection() -> psycopg.Connection:
    return psycopg.connect(os.environ["GRAPHMEM_POSTGRES"], autocommit=True)
