"""What all tests share: a clock that stands still, and real files in a fresh folder."""

import contextlib
import datetime as dt
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support import Asked, Served, model_server

from graphmem import Memory

# Where GRAPHMEM_TEST_STORE is 'postgres', each file that a test names is a tenant of the server GRAPHMEM_POSTGRES.
if os.environ.get("GRAPHMEM_TEST_STORE") == "postgres":
    import postgres_store

    postgres_store.take_over()

settings.register_profile("graphmem", deadline=None, print_blob=True)
settings.load_profile("graphmem")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("GRAPHMEM_TEST_STORE") == "postgres":
        for item in items:
            if item.get_closest_marker("sqlite"):
                item.add_marker(pytest.mark.skip(reason="about SQLite's own files"))


@pytest.fixture(autouse=True)
def _tenants() -> Iterator[None]:
    yield
    if store := sys.modules.get("postgres_store"):
        store.empty_tenants()


class FakeClock:
    """A clock that moves only when told to."""

    def __init__(self, now: str = "2026-09-07T08:00:00+00:00") -> None:
        self.now = dt.datetime.fromisoformat(now)

    def __call__(self) -> dt.datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        self.now += dt.timedelta(**duration)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path, clock: FakeClock) -> Iterator[Memory]:
    with Memory.open(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[str, list[Asked]]]]:
    """Start servers that give scripted answers; each is its address and what it was asked."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with contextlib.ExitStack() as stack:

        def start(*served: Served) -> tuple[str, list[Asked]]:
            return stack.enter_context(model_server(*served))

        yield start
