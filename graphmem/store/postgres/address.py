"""The address of a memory on a server: where the server is, and which tenant of it is meant."""

import hashlib
import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from graphmem.core.addresses import DEFAULT_TENANT, HOSTS, NO_ADDRESS, without_password
from graphmem.errors import InvalidInput

_PLAIN = re.compile(r"[a-z0-9_]{1,40}")
_LONGEST_TENANT = 1000
_NAME = re.compile(r"[A-Za-z_]+\Z")


@dataclass(frozen=True, slots=True)
class Address:
    """What is connected to, the tenant, and how messages tell both: without a password."""

    server: str = field(repr=False)
    tenant: str
    shown: str

    @property
    def schema(self) -> str:
        """The name of the tenant's schema; that of no other tenant, whatever they are called."""
        return schema_of(self.tenant)


def schema_of(tenant: str) -> str:
    """Return the name of the schema of a tenant: a plain name as it is, any other by its digest.

    >>> schema_of("t1")
    'graphmem-t1'
    >>> schema_of('"; DROP SCHEMA public; --')
    'graphmem-drop_schema_public-c03182fd69278275'
    """
    if _PLAIN.fullmatch(tenant):
        return f"graphmem-{tenant}"
    readable = re.sub(r"[^a-z0-9]+", "_", tenant.lower()).strip("_")[:24]
    return f"graphmem-{readable}-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"


def role_of(database: str, schema: str) -> str:
    """Return the name of the role that may use a schema: roles are those of all databases of a server."""
    return f"{schema[:40]}-{hashlib.sha256(f'{database}/{schema}'.encode()).hexdigest()[:16]}"


def parsed(path: str) -> Address:
    """Take an address apart: postgresql://user@host/database?tenant=name. Raises InvalidInput.

    path: one of ours, see `graphmem.core.addresses.require_ours`.

    >>> one = parsed("postgresql://me:secret@db.example/memories?tenant=t1&sslmode=require")
    >>> one.tenant, one.shown
    ('t1', 'postgresql://me@db.example/memories?tenant=t1')
    """
    refused = InvalidInput("path", without_password(path), NO_ADDRESS)
    try:
        parts = urlsplit(path)
    except ValueError:
        raise refused from None
    given = [piece.partition("=")[::2] for piece in parts.query.split("&")] if parts.query else []
    login, _, hosts = parts.netloc.rpartition("@")
    # A password with a character that has to be escaped is not taken for a host that may be shown.
    if not re.fullmatch(HOSTS, hosts) or "@" in login + parts.path or parts.fragment:
        raise refused
    if not all(_NAME.match(name) for name, _ in given):
        raise refused
    try:
        tenants = [unquote(value, errors="strict") for name, value in given if name == "tenant"]
    except UnicodeDecodeError:
        raise InvalidInput("path", without_password(path), "write the name of the tenant in UTF-8") from None
    if len(tenants) > 1 or any(not value.strip() for value in tenants):
        raise InvalidInput("path", without_password(path), "name one tenant: ?tenant=NAME")
    tenant = tenants[0] if tenants else DEFAULT_TENANT
    if len(tenant) > _LONGEST_TENANT or not tenant.isprintable():
        raise InvalidInput("tenant", tenant[:80], f"give a name of at most {_LONGEST_TENANT} printable characters")
    # What libpq is told stays as it is written: it takes a + for itself.
    rest = "&".join(f"{name}={value}" for name, value in given if name != "tenant")
    server = f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
    try:
        conninfo_to_dict(server)
    except psycopg.ProgrammingError:
        raise refused from None
    user = login.partition(":")[0]
    shown = f"{parts.scheme}://{f'{user}@' if user else ''}{hosts}{parts.path}?tenant={quote(tenant, safe='')}"
    return Address(server, tenant, shown)
