"""What was written into files for others. See `graphmem.core.model`."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written to a file, or to the files of a folder: how many things, by what they are.

    path: '' where it went to a stream. remarks: what the format has no place for, and what is missing.
    """

    kind: str
    path: str
    counts: Mapping[str, int]
    remarks: tuple[str, ...] = ()
