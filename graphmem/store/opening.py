"""Which store a memory lies in: a SQLite file, or a tenant of a PostgreSQL server."""

import os
import re
from typing import TYPE_CHECKING

from graphmem.config import Config
from graphmem.errors import StoreFailed

if TYPE_CHECKING:
    from graphmem.core.embedding import Embedder
    from graphmem.store.transaction import Store

MEMORY_PATH = ":memory:"
_SCHEMES = ("postgresql://", "postgres://")
# What to do where a verb takes files alone.
ON_SERVER = "'graphmem copy SRC DEST' makes a file of a memory on a server, pg_dump a backup of the server's database"


def is_server(path: object) -> bool:
    """Tell whether a path is the address of a server.

    >>> is_server("postgresql://me@db.example/memories?tenant=t1"), is_server("memory.db")
    (True, False)
    """
    return isinstance(path, str) and path.startswith(_SCHEMES)


def without_password(path: str) -> str:
    """Return the address of a server as it may be shown.

    >>> without_password("postgresql://me:secret@db.example/memories?password=secret&tenant=t1")
    'postgresql://me@db.example/memories?tenant=t1'
    >>> without_password("postgresql://me:a/secret@db.example/memories?tenant=t1")
    'postgresql://me@db.example/memories?tenant=t1'
    """
    server, *tenants = re.split(r"[?&](?=tenant=)", path)
    # Up to the last @, should the password have characters that have to be escaped.
    bare = re.sub(r"(//[^/?#@:]*):.*@", r"\1@", server).partition("?")[0]
    return "?".join([bare, *(tenant.partition("&")[0] for tenant in tenants[:1])])


def is_file(path: str) -> bool:
    """Tell whether a memory lies in a file."""
    return path != MEMORY_PATH and not is_server(path)


def open_store(
    path: str | os.PathLike[str], *, config: Config, create: bool, embedder: "Embedder | None" = None
) -> "Store":
    """Open the store that a path or an address names, made and migrated when needed."""
    if is_server(path):
        try:
            from graphmem.store.postgres.database import PostgresStore
        except ModuleNotFoundError as error:
            if error.name not in ("psycopg", "psycopg_pool"):
                raise
            reason = "needs psycopg: pip install 'graphmem[postgres]'"
            raise StoreFailed(f"{without_password(os.fspath(path))} {reason}") from None

        return PostgresStore(os.fspath(path), config=config, create=create, embedder=embedder)
    from graphmem.store.database import SqliteStore

    return SqliteStore(path, config=config, create=create, embedder=embedder)
