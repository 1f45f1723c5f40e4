"""Addresses of servers in which a memory may lie, and how they are shown."""

import re

_SCHEMES = ("postgresql://", "postgres://")


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
