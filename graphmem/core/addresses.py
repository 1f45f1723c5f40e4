"""Addresses of servers in which a memory may lie, and how they are shown."""

import re

_SCHEMES = ("postgresql://", "postgres://")
_PASSWORDS = ("password=", "sslpassword=")


def is_server(path: object) -> bool:
    """Tell whether a path is the address of a server.

    >>> is_server("postgresql://me@db.example/memories?tenant=t1"), is_server("memory.db")
    (True, False)
    """
    return isinstance(path, str) and path.startswith(_SCHEMES)


def identity(path: str) -> str:
    """Return what all addresses of one memory on a server have in common, with no password in it.

    >>> identity("postgres://me:secret@db.example/memories?tenant=default&sslmode=require&password=secret")
    'postgresql://me@db.example/memories?sslmode=require'
    """
    _, _, place = path.partition("://")
    server, _, given = place.partition("?")
    bare = without_password(f"{_SCHEMES[0]}{server}")
    untold = ("", "tenant=default")
    kept = [each for each in given.split("&") if each not in untold and not each.startswith(_PASSWORDS)]
    return f"{bare}?{'&'.join(sorted(kept))}"


def shown(path: str) -> str:
    """Return a path as it is, and the address of a server as it may be shown.

    >>> shown("memory.db"), shown("postgresql://me:secret@db.example/memories")
    ('memory.db', 'postgresql://me@db.example/memories')
    """
    return without_password(path) if is_server(path) else path


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
