"""How a module of ours is started as a program of its own."""

import os
import sys

from graphmem.core.addresses import is_server


def words_of(module: str) -> list[str]:
    """Return the program and the arguments that start a module of this installation.

    It may be started in a folder that anybody has filled, as a clone of a stranger's repository. Without -P that folder
    would come first where modules are looked for, and its `socket.py` would run.
    """
    return [sys.executable, "-P", "-m", module]


def absolute(path: str) -> str:
    """Return a path of a memory that means the same in any folder; an address and ':memory:' do."""
    return path if is_server(path) or path == ":memory:" else os.path.abspath(os.path.expanduser(path))
