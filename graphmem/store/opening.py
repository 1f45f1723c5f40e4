"""Which store a memory lies in: a SQLite file, or a tenant of a PostgreSQL server."""

import os
from typing import TYPE_CHECKING

from graphmem.config import Config

if TYPE_CHECKING:
    from graphmem.core.embedding import Embedder
    from graphmem.store.transaction import Store

MEMORY_PATH = ":memory:"
_SCHEMES = ("postgresql://", "postgres://")


def is_server(path: object) -> bool:
    """Tell whether a path is the address of a server.

    >>> is_server("postgresql://me@db.example/memories?tenant=t1"), is_server("memory.db")
    (True, False)
    """
    return isinstance(path, str) and path.startswith(_SCHEMES)


def is_file(path: str) -> bool:
    """Tell whether a memory lies in a file."""
    return path != MEMORY_PATH and not is_server(path)


def open_store(
    path: str | os.PathLike[str], *, config: Config, create: bool, embedder: "Embedder | None" = None
) -> "Store":
    """Open the store that a path or an address names, made and migrated when needed."""
    if is_server(path):
        from graphmem.store.postgres.database import PostgresStore

        return PostgresStore(os.fspath(path), config=config, create=create, embedder=embedder)
    from graphmem.store.database import SqliteStore

    return SqliteStore(path, config=config, create=create, embedder=embedder)
