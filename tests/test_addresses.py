"""Addresses of servers: none is shown with a password, and none is taken for the path of a file or a folder."""

import os
from pathlib import Path

import pytest

from graphmem import InvalidInput, Memory
from graphmem.core.addresses import is_server, tenant_of, without_password, without_passwords

WORD = "hunter2Xy9"
ADDRESS = f"postgresql://me:{WORD}@db.invalid/m?tenant=t1"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home that is empty, and the working folder."""
    for name in [name for name in os.environ if name.startswith(("GRAPHMEM_", "XDG_", "CLAUDE_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    return folder


OTHERS = [
    f" postgresql://me:{WORD}@db.invalid/m",
    f"postgresql+psycopg://me:{WORD}@db.invalid/m",
    f"postgresql:/me:{WORD}@db.invalid/m",
    f"Postgres:/me:{WORD}@db.invalid/m",
    f"postgresq://me:{WORD}@db.invalid/m",
    f"mysql://me:{WORD}@db.invalid/m",
    f"postgresql://me:{WORD}@db.invalid/m\n",
    Path(ADDRESS),
    Path(f"mysql://me:{WORD}@db.invalid/m"),
]


@pytest.mark.parametrize("given", OTHERS)
def test_what_looks_like_an_address_is_no_path(given, home):
    for act in (Memory.open, Memory.check_copy, lambda path: Memory.copy(path, "copy.db")):
        with pytest.raises(InvalidInput) as caught:
            act(given)
        assert WORD not in str(caught.value)
        assert "me@db.invalid" in str(caught.value)
    with pytest.raises(InvalidInput, match="postgresql://user@host/database"):
        Memory.open(given)
    assert not list(home.iterdir())


@pytest.mark.parametrize("path", ["memory.db", ":memory:", "C:/a@b", "C://a.db", "a:b@c", "./postgresql", "/a//b:c@d"])
def test_a_path_is_no_address(path):
    assert not is_server(path)
    assert without_password(path) == path
    assert tenant_of(path) == ""


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (f"POSTGRESQL://me:{WORD}@db/m", "POSTGRESQL://me@db/m"),
        (
            f"postgresql://me:{WORD}@[::1]:5433/m?sslmode=require&tenant=a@b",
            "postgresql://me@[::1]:5433/m?tenant=a@b",
        ),
        (f"postgresql://me:x@{WORD}@db/m?tenant=t1", "postgresql://me..."),
        (f"postgresql://me@x:{WORD}@db/m", "postgresql://me..."),
        (f"postgresql://me:x/{WORD}@db/m", "postgresql://me..."),
        (f"postgresql://me:x y{WORD}@db/m", "postgresql://me@db/m"),
        (f"postgresql://me:{WORD}", "postgresql://me..."),
        (f"postgresql://db:5432/m?password=x@{WORD}", "postgresql://db..."),
        (f"postgresql:/me:{WORD}@db/m", "postgresql:/me@db/m"),
    ],
)
def test_an_address_is_shown_without_a_password(given, shown):
    assert without_password(given) == shown


def test_texts_are_told_without_passwords():
    kept = (
        "http://127.0.0.1:8080/enter?token=x (see https://docs.invalid/a), write postgresql://user@host/m?tenant=NAME."
    )
    assert without_passwords(kept) == kept
    assert without_passwords(f"no '{ADDRESS}'; https://me:{WORD}@db.invalid:1/x?y=1: no") == (
        "no 'postgresql://me@db.invalid/m?tenant=t1'; https://me@db.invalid:1/x: no"
    )
