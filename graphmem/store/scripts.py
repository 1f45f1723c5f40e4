"""The SQL that lies in files of this package."""

import functools
from importlib import resources


@functools.cache
def script(name: str) -> str:
    """Return a file of statements, by its path within this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
