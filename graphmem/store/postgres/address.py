"""The address of a memory on a server: where the server is, and which tenant of it is meant."""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from graphmem.core.addresses import without_password
from graphmem.errors import InvalidInput

DEFAULT_TENANT = "default"
_PLAIN = re.compile(r"[a-z0-9_]{1,40}")
_LONGEST_TENANT = 1000


@dataclass(frozen=True, slots=True)
class Address:
    """What is connected to, the tenant, and how messages tell both: without a password."""

    server: str
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

    >>> one = parsed("postgresql://me:secret@db.example/memories?tenant=t1&sslmode=require")
    >>> one.tenant, one.shown
    ('t1', 'postgresql://me@db.example/memories?tenant=t1')
    """
    try:
        parts = urlsplit(path)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        _ = parts.port
    except ValueError as error:
        raise InvalidInput("path", without_password(path), f"is no address of a server ({error})") from None
    tenants = [value for name, value in given if name == "tenant"]
    if len(tenants) > 1 or any(not value.strip() for value in tenants):
        raise InvalidInput("path", without_password(path), "name one tenant: ?tenant=NAME")
    tenant = tenants[0] if tenants else DEFAULT_TENANT
    if len(tenant) > _LONGEST_TENANT or "\0" in tenant or not tenant.isprintable():
        raise InvalidInput("tenant", tenant[:80], f"give a name of at most {_LONGEST_TENANT} printable characters")
    rest = [(name, value) for name, value in given if name != "tenant"]
    host = parts.netloc.rpartition("@")[2]
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    shown = urlunsplit(
        (parts.scheme, f"{user}@{host}" if user else host, parts.path, f"tenant={quote(tenant, safe='')}", "")
    )
    return Address(urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(rest), "")), tenant, shown)
