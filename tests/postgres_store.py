"""The tests of verbs on PostgreSQL: each file that a test names is a tenant of the server GRAPHMEM_POSTGRES.

To make a tenant takes as long as ten tests, so those of a test are emptied at its end, and used again.
"""

import contextlib
import os
import secrets

import psycopg

import graphmem.memory
from graphmem.store import opening
from graphmem.store.postgres import engine
from graphmem.store.postgres.address import parsed, schema_of
from graphmem.store.postgres.connecting import connected
from graphmem.store.postgres.statements import translated

_EMPTIED = """
DO $$ DECLARE one record; BEGIN
    SET LOCAL session_replication_role = replica;
    SET LOCAL search_path = "{schema}";
    DROP FUNCTION IF EXISTS refuses CASCADE;
    FOR one IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = '"{schema}"'::regnamespace LOOP
        IF one.relname <> 'store_state' THEN EXECUTE format('DELETE FROM %I', one.relname); END IF;
    END LOOP;
    INSERT INTO counters VALUES ('vectors_removed', 0);
    FOR one IN SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = '"{schema}"'::regnamespace LOOP
        EXECUTE format('ALTER SEQUENCE %I RESTART', one.relname);
    END LOOP;
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
            path = address(tenant_of(path))
        return open_store(path, config=config, create=create, embedder=embedder)

    graphmem.memory.open_store = open_tenant


def tenant_of(name: str) -> str:
    """Return the tenant that stands for a file, the same one as long as a test runs."""
    if opening.is_server(name):
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
    with psycopg.connect(os.environ["GRAPHMEM_POSTGRES"], autocommit=True) as connection:
        for tenant in dict.fromkeys(_used.values()):
            try:
                connection.execute(_EMPTIED.format(schema=schema_of(tenant)))
            except psycopg.Error:  # one that was never made, or that a test took apart
                continue
            _free.append(tenant)
    _used.clear()


def stands_for(path):
    """Whether a tenant stands for a file in this test, or is named by its address."""
    return opening.is_server(path) or os.path.realpath(os.fspath(path)) in _used


class Tables:
    """Runs statements on the tables of a tenant, and is no role of it."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, statement, parameters=()):
        """Run a statement to its end."""
        cursor = self._connection.execute(translated(statement), parameters)
        self._connection.settle()
        return cursor


@contextlib.contextmanager
def tables_of(path):
    """Yield what runs statements on the tenant that stands for a file."""
    with connected(os.environ["GRAPHMEM_POSTGRES"], 5.0) as connection:
        connection.execute(f'SET search_path = "{schema_of(tenant_of(path))}", graphmem')
        yield Tables(connection)


def sql(path, statement, parameters):
    """Run one statement on the tenant that stands for a file."""
    with tables_of(path) as tables:
        cursor = tables.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def refusal(path):
    """Return what a trigger on the tenant that stands for a file does to refuse a row."""
    body = "AS $$BEGIN RAISE EXCEPTION 'full'; END$$"
    sql(path, f"CREATE OR REPLACE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql {body}", ())
    return "EXECUTE FUNCTION refuses()"


def rows_of(path):
    """The rows of each table, by name, with what the tables know of numbers, under its name in SQLite."""
    with tables_of(path) as tables:
        return _rows(tables) | {"sqlite_sequence": sorted(engine.numbers(tables).items())}


def _rows(tables):
    found = {name: tables.execute(f"SELECT * FROM {name}").fetchall() for name in engine.tables(tables)}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def dump(path):
    """All that the tenant holds that stands for a file; numbers are used up by what is taken back as well."""
    with tables_of(path) as tables:
        return [f"{name}: {row}" for name, rows in _rows(tables).items() for row in rows]
