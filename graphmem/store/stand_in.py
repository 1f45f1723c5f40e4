"""A stand-in for the backup verb, until that is there: one checked copy of a memory."""

import contextlib
import os
import sqlite3
from pathlib import Path

from graphmem.errors import Conflict, StoreCorrupt
from graphmem.store.database import Store, full_path, translated_errors


def back_up(store: Store, dest: str | os.PathLike[str]) -> str:
    """Copy a memory into a new file and check the copy; return its path. Raises Conflict where there is a file."""
    path = full_path(dest)
    if os.path.lexists(path):
        raise Conflict(f"{path} exists already: name another file for the backup")
    with (
        translated_errors(path, store.config.busy_timeout),
        contextlib.closing(sqlite3.connect(path)) as copy,
    ):
        Path(path).chmod(0o600)
        with store.read() as tx:
            tx.backup(copy)
        (found,) = copy.execute("PRAGMA quick_check").fetchone()
        if found != "ok":
            raise StoreCorrupt(f"{path}: the backup cannot be read ({found}); nothing was changed")
    return path
