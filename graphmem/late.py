"""Modules that are loaded when something of them is first used.

A process may live for one verb, and to load what the others need takes ten times as long as the verb. So a module of
many verbs names what only some of them need twice, once for who checks types and once for who runs it:

    if TYPE_CHECKING:
        from graphmem.records import notes
    else:
        notes = late("graphmem.records.notes")
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all that a hook needs
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def late(name: str) -> Any:
    """Return what stands for a module; its attributes are those of the module.

    >>> late("math").floor(2.5)
    2
    """
    return _Late(name)


def late_names(
    module: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module whose names are loaded when first asked for.

    module: its globals. homes: the module in which each of the names lies.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        value = module[name] = getattr(importlib.import_module(homes[name]), name)
        return value

    return get, lambda: sorted({*module, *homes})


class _Late:
    __slots__ = ("__dict__", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = importlib.import_module(self._name)
        # The dictionary itself and no copy: what is found there needs no second look, and what is changed is seen.
        self.__dict__ = module.__dict__
        return getattr(module, attribute)
