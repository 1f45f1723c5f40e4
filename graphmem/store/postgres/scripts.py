"""The SQL that lies beside this module."""

import functools
from importlib import resources


@functools.cache
def script(name: str) -> str:
    """Return a file of statements."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
