"""Modules that are loaded when something of them is first used.

A process may live for one verb, and to load what the others need takes ten times as long as the verb. So a module of
many verbs names what only some of them need twice, once for who checks types and once for who runs it:

    if TYPE_CHECKING:
        from graphmem.records import notes
    else:
        notes = late("graphmem.records.notes")
"""

import importlib
from types import ModuleType
from typing import Any


def late(name: str) -> Any:
    """Return what stands for a module; its attributes are those of the module.

    >>> late("math").floor(2.5)
    2
    """
    return _Late(name)


class _Late:
    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)
