"""A PostgreSQL server for the tests that only a server needs: GRAPHMEM_POSTGRES, or one that ends with the tests."""

import atexit
import contextlib
import functools
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "postgres"


def why_none() -> str:
    """Return why no server can be started here; '' where one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'graphmem[postgres]'"
    if not (shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb"))):
        return "no PostgreSQL here: 'scripts/postgres run scripts/test' installs it and runs the tests with a server"
    return ""


@functools.cache
def url() -> str:
    """Return the address of a server that all tests of this process use; skips the test where there is none."""
    told = os.environ.get("GRAPHMEM_POSTGRES")
    if told:
        return told
    return OwnServer().url


def address(tenant: str, server: str | None = None) -> str:
    """Return the address of a tenant."""
    return f"{server or url()}?tenant={quote(tenant, safe='')}"


@contextlib.contextmanager
def fresh_database(options: str = "") -> Iterator[str]:
    """Yield the address of a database without tenants on the server of the tests, gone at the end.

    options: of CREATE DATABASE.
    """
    import psycopg

    name = f"graphmem_test_{secrets.token_hex(6)}"
    with psycopg.connect(url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {options}")
    try:
        yield urlsplit(url())._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(url(), autocommit=True) as connection:
            roles = connection.execute(
                """SELECT rolname FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid
                   WHERE d.dbid = (SELECT oid FROM pg_database WHERE datname = %s) AND rolname LIKE 'graphmem-%%'
                   GROUP BY rolname""",
                (name,),
            ).fetchall()
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            for (role,) in roles:
                connection.execute(f'DROP ROLE "{role}"')


class OwnServer:
    """A server of a test, gone with the process of the tests. durable: what it tells as committed is on the disk."""

    def __init__(self, *, durable: bool = False) -> None:
        reason = why_none()
        if reason:
            pytest.skip(reason)
        self._place = tempfile.mkdtemp(prefix="graphmem-postgres-")
        Path(self._place).chmod(0o711)
        self.folder = f"{self._place}/server"
        atexit.register(self.stop)
        self._environment = {**os.environ, "GRAPHMEM_POSTGRES_DURABLE": str(int(durable))}
        self.url = self._run("start")

    def kill(self) -> None:
        """End every process of the server as a power cut does."""
        self._run("kill")

    def again(self) -> None:
        """Start it on the same port, with what the disk holds."""
        self._run("again")

    def stop(self) -> None:
        """End the server and remove it."""
        atexit.unregister(self.stop)
        if os.path.exists(self.folder):
            self._run("stop")
        shutil.rmtree(self._place, ignore_errors=True)

    def _run(self, act: str) -> str:
        done = subprocess.run(
            [SCRIPT, act, self.folder], env=self._environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
