"""Which store a memory lies in: a SQLite file, or a tenant of a PostgreSQL server."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.config import Config
from graphmem.core.addresses import is_server, require_ours, without_password
from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    from urllib import parse

    from graphmem.core.embedding import Embedder
    from graphmem.store.transaction import Store
else:
    parse = late("urllib.parse")

MEMORY_PATH = ":memory:"
# What to do where a verb takes files alone.
ON_SERVER = "'graphmem copy SRC DEST' makes a file of a memory on a server, pg_dump a backup of the server's database"


def of_tenant(path: str, tenant: str) -> str:
    """Return the address of a tenant, given that of its server. Raises InvalidInput for one that names a tenant.

    >>> of_tenant("postgresql://db.example/memories?sslmode=require", "a b")
    'postgresql://db.example/memories?sslmode=require&tenant=a%20b'
    """
    if "tenant=" in path.partition("?")[2]:
        raise InvalidInput("path", without_password(path), "leave the tenant out: all of the server are meant")
    return f"{path}{'&' if '?' in path else '?'}tenant={parse.quote(tenant, safe='')}"


def tenants_at(path: str, config: Config) -> list[str]:
    """Return the names of the tenants of the server of an address. Raises StoreFailed, StoreBusy."""
    with _reaching(path):
        from graphmem.store.postgres.database import tenant_names
    return tenant_names(path, config)


def is_there(path: str, config: Config) -> bool:
    """Tell whether there is a memory, as far as a look tells: a file that was written to, or a tenant.

    Raises StoreFailed, StoreBusy for a server that cannot be asked.
    """
    if not is_server(path):
        from graphmem.store.database import was_written

        return was_written(os.path.expanduser(path))
    with _reaching(path):
        from graphmem.store.postgres.database import has_tenant
    return has_tenant(path, config)


def state_on_server(path: str, config: Config) -> tuple[str, int | None]:
    """Return what server and tenant an address names, and the version of its schema, None where there is none yet.

    Raises StoreFailed, StoreBusy, SchemaTooNew.
    """
    with _reaching(path):
        from graphmem.store.postgres.database import state_of
    return state_of(path, config)


@contextlib.contextmanager
def _reaching(path: str) -> Iterator[None]:
    """Raise InvalidInput for an address that is not ours, and where a package is missing: it says what to install."""
    require_ours(path)
    try:
        yield
    except ModuleNotFoundError as error:
        reason = f"a memory on a server needs the package {error.name}: pip install 'graphmem[postgres]'"
        raise InvalidInput("path", without_password(path), reason) from error


def is_file(path: str) -> bool:
    """Tell whether a memory lies in a file."""
    return path != MEMORY_PATH and not is_server(path)


def open_store(
    path: str | os.PathLike[str],
    *,
    config: Config,
    create: bool,
    embedder: "Embedder | None" = None,
    unfinished: bool = False,
) -> "Store":
    """Open the store that a path or an address names, made and migrated when needed.

    unfinished: also a copy that is not finished, for who copies; for all others that is StoreFailed.
    """
    if is_server(path):
        address = os.fspath(path)
        with _reaching(address):
            from graphmem.store.postgres.database import PostgresStore
        return PostgresStore(address, config=config, create=create, embedder=embedder, unfinished=unfinished)
    from graphmem.store.database import SqliteStore

    return SqliteStore(path, config=config, create=create, embedder=embedder, unfinished=unfinished)
