"""Modules that are loaded when something of them is first used.

A process may live for one verb, and to load what the others need takes ten times as long as the verb. So a module of
many verbs names what only some of them need twice, once for who checks types and once for who runs it:

    if TYPE_CHECKING:
        from graphmem.records import notes
    else:
        notes = late("graphmem.records.notes")
"""

import importlib
from typing import Any


def late(name: str) -> Any:
    """Return what stands for a module; its attributes are those of the module.

    >>> late("math").floor(2.5)
    2
    """
    return _Late(name)


class _Late:
    __slots__ = ("__dict__", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = importlib.import_module(self._name)
        # The dictionary itself and no copy: what is found there needs no second look, and what is changed is seen.
        self.__dict__ = module.__dict__
        return getattr(module, attribute)
