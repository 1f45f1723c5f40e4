"""Which store a memory lies in: a SQLite file, or a tenant of a PostgreSQL server."""

import os
from typing import TYPE_CHECKING

from graphmem.config import Config
from graphmem.core.addresses import is_server, without_password
from graphmem.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.core.embedding import Embedder
    from graphmem.store.transaction import Store

MEMORY_PATH = ":memory:"
# What to do where a verb takes files alone.
ON_SERVER = "'graphmem copy SRC DEST' makes a file of a memory on a server, pg_dump a backup of the server's database"


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
            reason = f"a memory on a server needs the package {error.name}: pip install 'graphmem[postgres]'"
            raise InvalidInput("path", without_password(os.fspath(path)), reason) from error

        return PostgresStore(os.fspath(path), config=config, create=create, embedder=embedder)
    from graphmem.store.database import SqliteStore

    return SqliteStore(path, config=config, create=create, embedder=embedder)
