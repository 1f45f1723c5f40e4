"""How a module of ours is started as a program of its own."""

import sys


def words_of(module: str) -> list[str]:
    """Return the program and the arguments that start a module of this installation.

    It may be started in a folder that anybody has filled, as a clone of a stranger's repository. Without -P that folder
    would come first where modules are looked for, and its `socket.py` would run.
    """
    return [sys.executable, "-P", "-m", module]
