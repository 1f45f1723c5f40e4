"""The tests of verbs on PostgreSQL: each file that a test names is a tenant of the server GRAPHMEM_POSTGRES.

To make a tenant takes as long as ten tests, so those of a test are emptied at its end, and used again.
"""

import contextlib
import functools
import os
import secrets
import sqlite3

import psycopg

import graphmem.memory
from graphmem.core.addresses import is_server
from graphmem.store import opening
from graphmem.store.postgres import engine
from graphmem.store.postgres.address import parsed, schema_of
from graphmem.store.postgres.connecting import adapt
from graphmem.store.postgres.database import PostgresStore
from graphmem.store.postgres.engine import all_tables, numbered
from graphmem.store.postgres.statements import translated

# Tests clear the environment of what they do not say themselves.
SERVER = os.environ.get("GRAPHMEM_POSTGRES", "")

_EMPTIED = """
DO $$ BEGIN
    SET LOCAL session_replication_role = replica;
    SET LOCAL search_path = "{schema}";
    DROP FUNCTION IF EXISTS refuses CASCADE;
    {deletions};
    INSERT INTO counters VALUES ('vectors_removed', 0);
    {numbers};
END $$"""

_used: dict[str, str] = {}  # tenants by the files that a test named
_free: list[str] = []


def address(tenant: str) -> str:
    """Return the address of a tenant of the server that tests use."""
    return f"{SERVER}?tenant={tenant}"


def take_over() -> None:
    """Let Memory.open open tenants in place of files."""
    assert SERVER, "GRAPHMEM_POSTGRES names the server"
    open_store = opening.open_store

    def open_tenant(path, *, config, create, embedder=None):
        # The path of an open memory has no password.
        is_ours = not is_server(path) or parsed(path).tenant in _used.values()
        if isinstance(path, str | os.PathLike) and is_ours:
            path = address(tenant_of(path))
        return open_store(path, config=config, create=create, embedder=embedder)

    graphmem.memory.open_store = open_tenant
    PostgresStore.write = _without_gaps(PostgresStore.write)
    connect = sqlite3.connect

    def look(path, *arguments, **named):
        place = os.path.realpath(path) if isinstance(path, str | os.PathLike) else path
        return Looking(_used[place]) if place in _used else connect(path, *arguments, **named)

    sqlite3.connect = look


def _without_gaps(write):
    """Let numbers that a transaction took back be given again, as SQLite does and the models of tests expect."""

    @contextlib.contextmanager
    def writing(self, *, keep=True):
        if getattr(self._local, "writing", None) is not None:
            with write(self, keep=keep) as tx:
                yield tx
            return
        before = _numbers_of(self._address.schema)
        kept = False
        try:
            with write(self, keep=keep) as tx:
                yield tx
            kept = keep
        finally:
            if not kept and before:
                for sequence, (last, is_called) in before.items():
                    _connection().execute("SELECT setval(%s, %s, %s)", (sequence, last, is_called))

    return writing


def _numbers_of(schema):
    names = [f'"{schema}".{table}_{column}_seq' for table, column in numbered()]
    asked = " UNION ALL ".join(f"SELECT '{name}', last_value, is_called FROM {name}" for name in names)
    return {name: (last, is_called) for name, last, is_called in _connection().execute(asked).fetchall()}


def tenant_of(name: str) -> str:
    """Return the tenant that stands for a file, the same one as long as a test runs."""
    if is_server(name):
        return parsed(name).tenant
    name = os.fspath(name)
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
            _connection().execute(emptied(tenant))
        except psycopg.Error:  # one that was never made, or that a test took apart
            continue
        _free.append(tenant)
    _used.clear()


def emptied(tenant: str) -> str:
    return _EMPTIED.format(
        schema=schema_of(tenant),
        deletions=";".join(f"DELETE FROM {name}" for name in all_tables() if name != "store_state"),
        numbers=";".join(
            f"PERFORM setval(pg_get_serial_sequence('{table}', '{column}'), 1, false)" for table, column in numbered()
        ),
    )


@functools.cache
def _connection() -> psycopg.Connection:
    return psycopg.connect(SERVER, autocommit=True)


def stands_for(path):
    """Whether a tenant stands for a file in this test, or is named by its address."""
    return is_server(path) or os.path.realpath(os.fspath(path)) in _used


@contextlib.contextmanager
def planting(path):
    """Yield what writes into the tables of the tenant that stands for a file; numbers go on behind what it gave."""
    with tables_of(path) as tables:
        yield tables
        for table, column in numbered():
            own = f"pg_get_serial_sequence('{table}', '{column}')"
            tables.execute(
                f"SELECT setval({own}, MAX({column})) FROM {table}"
                f" HAVING MAX({column}) > COALESCE(pg_sequence_last_value({own}::regclass), 0)"
            )


def tables_of(path):
    """Yield what runs statements on the tenant that stands for a file, and is no role of it."""
    return contextlib.closing(Looking(tenant_of(path)))


def sql(path, statement, parameters, *, checked=True):
    """Run one statement on the tenant that stands for a file. checked: keys must lead somewhere, and triggers run."""
    with tables_of(path) as tables:
        if not checked:
            tables.execute("SET session_replication_role = replica")
        return tables.execute(statement, parameters).fetchall()


def plant(path, statements):
    """Run statements that no foreign key and no trigger of the tenant sees; return the rows of the last one."""
    with planting(path) as tables:
        tables.execute("SET session_replication_role = replica")
        return [tables.execute(statement).fetchall() for statement in statements][-1]


def orphans(path):
    """The rows that point at one that is gone, by table."""
    with tables_of(path) as tables:
        return list(engine.orphans(tables))


def refusal(path):
    """Return what a trigger on the tenant that stands for a file does to refuse a row."""
    body = "AS $$BEGIN RAISE EXCEPTION 'full'; END$$"
    sql(path, f"CREATE OR REPLACE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql {body}", ())
    return "EXECUTE FUNCTION refuses()"


def rows_of(path):
    """The rows of each table, by name, with what the tables know of numbers, under its name in SQLite."""
    with tables_of(path) as tables:
        found = {name: tables.execute(f"SELECT * FROM {name}").fetchall() for name in engine.tables(tables)}
        numbers = {"sqlite_sequence": sorted(engine.numbers(tables).items())}
        return {name: sorted(rows, key=repr) for name, rows in found.items()} | numbers


def dump(path):
    """All that the tenant holds that stands for a file, a line each row."""
    with tables_of(path) as tables:
        return list(tables.iterdump())


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
        self._connection = psycopg.connect(SERVER, autocommit=True, cursor_factory=psycopg.RawCursor)
        adapt(self._connection)
        self.indexed = None
        self._connection.execute(f'SET search_path = "{schema_of(tenant)}", graphmem')

    def execute(self, statement, parameters=()):
        cursor = self._connection.cursor()
        if statement == "BEGIN IMMEDIATE":
            cursor.execute("BEGIN")
            statement = "SELECT 1 FROM store_state FOR UPDATE NOWAIT"
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
        """Yield what the tenant holds, a line each row; numbers are used up by what is taken back as well."""
        for table in all_tables():
            if table != "store_state":
                for row in self.execute(f"SELECT * FROM {table} ORDER BY {table}").fetchall():
                    yield f"{table}: {row}"

    def commit(self) -> None:
        """Do nothing: each statement is kept at once."""

    def close(self) -> None:
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass
