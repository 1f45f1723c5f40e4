"""The tests of verbs on PostgreSQL: each file that a test names is a tenant of the server GRAPHMEM_POSTGRES."""

import hashlib
import os
import secrets

import graphmem.memory
from graphmem.store import opening


def address(tenant: str) -> str:
    """Return the address of a tenant of the server that tests use."""
    return f"{os.environ['GRAPHMEM_POSTGRES']}?tenant={tenant}"


def take_over() -> None:
    """Let Memory.open open tenants in place of files."""
    open_store = opening.open_store

    def open_tenant(path, *, config, create, embedder=None):
        if not opening.is_server(path):
            name = os.fspath(path)
            digest = hashlib.sha256(os.path.realpath(name).encode()).hexdigest()[:20]
            path = address(f"t_{secrets.token_hex(8) if name == opening.MEMORY_PATH else digest}")
        return open_store(path, config=config, create=create, embedder=embedder)

    graphmem.memory.open_store = open_tenant
