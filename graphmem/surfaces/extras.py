"""Modules that need packages which not everybody has installed."""

import importlib
import importlib.util
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
        raise _missing(error.name, what, extra) from None


def require(package: str, what: str, extra: str) -> None:
    """Raise InvalidInput telling what installs a package that is not there; it is not loaded.

    >>> require("no_such_package", "serving", "mcp")
    Traceback (most recent call last):
    graphmem.errors.InvalidInput: extra = 'mcp': serving needs no_such_package: pip install 'graphmem[mcp]'
    """
    if importlib.util.find_spec(package) is None:
        raise _missing(package, what, extra)


def _missing(package: str | None, what: str, extra: str) -> InvalidInput:
    return InvalidInput("extra", extra, f"{what} needs {package}: pip install 'graphmem[{extra}]'")
