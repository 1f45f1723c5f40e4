"""Addresses of servers in which a memory may lie, and how they are shown."""

import os
import re
from typing import TYPE_CHECKING

from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    from urllib import parse
else:
    parse = late("urllib.parse")

DEFAULT_TENANT = "default"
# Compiled when first used: a command that is given a file needs none of them.
# With one slash it is what a pathlib.Path makes of an address.
_ANY = r"(?i)\s*(postgres(ql)?:/|[a-z][a-z0-9+.-]+:/(/|[^/]*@))"
# The keywords and values of libpq, which would say the same as an address and are none here.
_KEYWORDS = r"(?is)(?=\s*\w+\s*=)(?:.*\s)?(?:host|hostaddr|dbname|service)\s*="
_OURS = r"(?i)postgres(ql)?://[^\t\r\n]*"
_IN_TEXT = r"""(?i)\b[a-z][a-z0-9+.-]{1,40}:/\S*[^\s"'(){}\[\].,:;]"""
_HOST = r"(\[[^]@]*\]|[^][:@,/?#]*)(:\d*)?"
HOSTS = rf"{_HOST}(,{_HOST})*"
_FORM = (
    r"(?P<scheme>[^/]*:(//|/(?!/)))((?P<user>[^/?#@:]*)(?P<password>:[^/?#@]*)?@)?"
    rf"(?P<place>{HOSTS}(/[^?#@]*)?)([?#][^@]*)?"
)
_PLACES = {"host", "hostaddr", "port", "dbname", "user", "service"}
_TENANT = r"[?&](?=tenant=)"
NO_ADDRESS = (
    "is no address of a server: write postgresql://user@host/database?tenant=NAME with parameters that libpq knows, "
    "and in a password %40, %2F, %3F, %23 and %25 for @, /, ?, # and %"
)


def is_server(path: object) -> bool:
    """Tell whether a path is the address of a server, or was meant to be one: no file is looked for there.

    >>> is_server("postgresql://me@db.example/memories?tenant=t1"), is_server("mysql://db"), is_server("memory.db")
    (True, True, False)
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        return False
    return (":/" in text and re.match(_ANY, text) is not None) or (
        "=" in text and re.match(_KEYWORDS, text) is not None
    )


def require_ours(path: str) -> None:
    """Raise InvalidInput for the address of a server that can hold no memory."""
    if not re.fullmatch(_OURS, path):
        raise InvalidInput("path", without_password(path), NO_ADDRESS)


def refuse_server(argument: str, path: str | os.PathLike[str]) -> None:
    """Raise InvalidInput for an address where a file or a folder is wanted."""
    if is_server(path):
        reason = "is an address, and a file or folder is wanted here: an address names a memory, as --db does"
        raise InvalidInput(argument, without_password(path), reason)


def holds_password(path: str) -> bool:
    """Tell whether there is a password in an address, or may be since it is none that can be taken apart.

    >>> holds_password("postgresql://me:secret@db.example/memories"), holds_password("postgresql://me@db.example/m")
    (True, False)
    """
    if not is_server(path):
        return False
    found = None if re.match(_KEYWORDS, path) else re.fullmatch(_FORM, re.split(_TENANT, path)[0])
    return found is None or found["password"] is not None or "password=" in path.lower()


def without_password(path: str | os.PathLike[str]) -> str:
    """Return the address of a server as it may be shown, and any other path as it is.

    >>> without_password("postgresql://me:secret@db.example/memories?password=secret&tenant=t1")
    'postgresql://me@db.example/memories?tenant=t1'
    >>> without_password("postgresql://me:a/secret@db.example/memories?tenant=t1")
    'postgresql://me...'
    """
    text = os.fspath(path)
    if not is_server(text):
        return text
    if re.match(_KEYWORDS, text):
        return "..."
    server, *tenants = re.split(_TENANT, text)
    found = re.fullmatch(_FORM, server)
    if found is None:
        # All that is behind the user may be of a password with characters that have to be escaped.
        return "".join(re.findall(r"\A[^/]*:/{1,2}[^/?#@:]*", server)) + "..."
    user = "" if found["user"] is None else f"{found['user']}@"
    bare = f"{found['scheme']}{user}{found['place']}"
    return "?".join([bare, *(tenant.partition("&")[0] for tenant in tenants[:1])])


def tenant_of(path: str) -> str:
    """Return what tells which tenant of which server an address names, the same for each way to write it; else ''.

    >>> tenant_of("postgres://me:secret@db.example/m?tenant=a%20b"), tenant_of("PostgreSQL://db.example/m")
    ('//me@db.example/m?tenant=a b', '//db.example/m?tenant=default')
    """
    if not is_server(path):
        return ""
    server, _, tenant = without_password(path).partition("?tenant=")
    # libpq takes what a parameter says before what stands in front of it.
    there = sorted(each for each in re.split("[?&]", os.fspath(path))[1:] if each.partition("=")[0] in _PLACES)
    return "&".join([f"{server.partition(':')[2]}?tenant={parse.unquote(tenant) or DEFAULT_TENANT}", *there])


def without_passwords(text: str) -> str:
    """Return a text, such as a message, in which addresses are as they may be shown.

    >>> without_passwords("unexpected extra argument (postgresql://me:secret@db.example/memories)")
    'unexpected extra argument (postgresql://me@db.example/memories)'
    """
    return re.sub(_IN_TEXT, lambda found: without_password(found[0]) if holds_password(found[0]) else found[0], text)
