"""Tenants: a schema each, owned by a role that may use nothing else, made when one is first opened, and migrated."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from psycopg import sql

from graphmem.errors import SchemaTooNew, StoreFailed
from graphmem.store.postgres.address import Address, role_of
from graphmem.store.schema import VERSION
from graphmem.store.scripts import script

# Numbers of advisory locks, which all programs of a database share: "gmem" in front.
_SHARED_LOCK = 0x676D656D << 16
# What the functions of shared.sql are; raise it when they change.
_SHARED_VERSION = 2
# Statements that bring a tenant of a version to the next one; schema.sql is the last. The first tenants had version 11.
_MIGRATIONS: Mapping[int, str] = {}


def version_of(connection: psycopg.Connection[Any], address: Address) -> int | None:
    """Return the version of a tenant's schema, below 0 for a copy that is not finished, None where there is no tenant.

    Raises SchemaTooNew.
    """
    there = connection.execute("SELECT to_regclass($1)", (f'"{address.schema}".store_state',)).fetchone()
    if there is None or there[0] is None:
        return None
    found = connection.execute(
        sql.SQL("SELECT version FROM {}.store_state").format(sql.Identifier(address.schema)).as_string()
    ).fetchone()
    version = int(found[0]) if found else 0
    if abs(version) > VERSION:
        reason = f"has schema {abs(version)}, this graphmem knows {VERSION} at the most"
        raise SchemaTooNew(f"{address.shown} {reason}: upgrade graphmem")
    return version


def make(connection: psycopg.Connection[Any], address: Address) -> None:
    """Make a tenant, or bring an older one up to date, wholly or not at all; of many processes one does. See `share`.

    connection: not in pipeline mode, and of a user who may make roles and schemas. Raises StoreFailed for a tenant that
    is too old, psycopg.Error.
    """
    schema = sql.Identifier(address.schema)
    role = sql.Identifier(role_of(connection.info.dbname, address.schema))
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock($1)", (_SHARED_LOCK,))
        version = version_of(connection, address)
        if version is not None and abs(version) == VERSION:
            return
        if version is None:
            if not connection.execute(
                "SELECT 1 FROM pg_roles WHERE rolname = $1", (role.as_string()[1:-1],)
            ).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOINHERIT").format(role).as_string())
            connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role).as_string())
            connection.execute(sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}").format(schema, role).as_string())
            comment = sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, sql.Literal(address.tenant))
            connection.execute(comment.as_string())
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(role).as_string())
        connection.execute(sql.SQL("SET LOCAL search_path = {}, graphmem").format(schema).as_string())
        for statements in _statements(version, address):
            connection.execute(statements)
        connection.execute("UPDATE store_state SET version = $1 * CASE WHEN version < 0 THEN -1 ELSE 1 END", (VERSION,))


def _statements(version: int | None, address: Address) -> list[str]:
    """Return what brings a tenant of a version up to date, None for one that is empty."""
    if version is None:
        return [
            script("postgres/schema.sql").replace(" TEXT", ' TEXT COLLATE "C"'),
            "INSERT INTO store_state(version) VALUES (0)",
        ]
    older = abs(version)
    if older not in _MIGRATIONS:
        raise StoreFailed(
            f"{address.shown} has schema {older}, which is too old for this graphmem: export it with an older one"
        )
    return [_MIGRATIONS[each] for each in range(older, VERSION)]


def share(connection: psycopg.Connection[Any]) -> None:
    """Make the functions that all tenants of a database share, where there are none or older ones.

    connection: as for `make`; where they are up to date any will do. Raises psycopg.Error.
    """
    if _shared_version(connection) >= _SHARED_VERSION:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock($1)", (_SHARED_LOCK,))
        if _shared_version(connection) < _SHARED_VERSION:
            connection.execute(script("postgres/shared.sql"))
            connection.execute(f"COMMENT ON SCHEMA graphmem IS 'version {_SHARED_VERSION}'")


def _shared_version(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'graphmem'"
    ).fetchone()
    told = re.fullmatch(r"version (\d+)", str(found[0])) if found else None
    return int(told[1]) if told else 0


def remove(connection: psycopg.Connection[Any], address: Address) -> None:
    """Remove a tenant with all that it holds. Raises StoreFailed where there is none, psycopg.Error."""
    schema = sql.Identifier(address.schema)
    role = sql.Identifier(role_of(connection.info.dbname, address.schema))
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock($1)", (_SHARED_LOCK,))
        if version_of(connection, address) is None:
            raise StoreFailed(f"{address.shown} does not exist: check the tenant")
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(schema).as_string())
        connection.execute(sql.SQL("DROP ROLE {}").format(role).as_string())


def names(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield the names of the tenants of a database, sorted by their schemas."""
    for (name,) in connection.execute(
        """SELECT COALESCE(obj_description(oid, 'pg_namespace'), nspname) FROM pg_namespace
           WHERE nspname LIKE 'graphmem-%' ORDER BY nspname COLLATE "C\""""
    ):
        yield name
