"""Modules that need packages which not everybody has installed."""

import importlib
from typing import Any

from graphmem.errors import InvalidInput


def required(module: str, what: str, extra: str) -> Any:
    """Return a module of a surface; where a package is missing, raise InvalidInput telling what installs it.

    >>> required("no_such_package.at_all", "serving", "http")
    Traceback (most recent call last):
    graphmem.errors.InvalidInput: extra = 'http': serving needs no_such_package: pip install 'graphmem[http]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput("extra", extra, f"{what} needs {error.name}: pip install 'graphmem[{extra}]'") from None
