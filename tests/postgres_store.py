"""The tests of verbs on PostgreSQL: each file that a test names is a tenant of the server GRAPHMEM_POSTGRES.

To make a tenant takes as long as ten tests, so those of a test are emptied at its end, and used again.
"""

import os
import secrets

import psycopg

import graphmem.memory
from graphmem.store import opening
from graphmem.store.postgres.address import schema_of

_EMPTIED = """
DO $$ DECLARE one record; BEGIN
    SET LOCAL session_replication_role = replica;
    SET LOCAL search_path = "{schema}";
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
            path = address(tenant_of(os.fspath(path)))
        return open_store(path, config=config, create=create, embedder=embedder)

    graphmem.memory.open_store = open_tenant


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
    with psycopg.connect(os.environ["GRAPHMEM_POSTGRES"], autocommit=True) as connection:
        for tenant in dict.fromkeys(_used.values()):
            try:
                connection.execute(_EMPTIED.format(schema=schema_of(tenant)))
            except psycopg.Error:  # one that was never made, or that a test took apart
                continue
            _free.append(tenant)
    _used.clear()
