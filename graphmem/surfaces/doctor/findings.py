"""What the doctor says: one finding for each thing that was looked at."""

from dataclasses import dataclass
from typing import Literal

_LONGEST = 300  # letters of what went wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. what: which; told: how it is; remedy: '' where there is nothing to do.

    state: 'note' for what may be as it is meant. diff: lines of a unified diff, of a copy.
    """

    state: Literal["ok", "note", "problem"]
    what: str
    told: str
    remedy: str = ""
    diff: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings, in the order in which they were looked for."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is a problem."""
        return all(finding.state != "problem" for finding in self.findings)


def good(what: str, told: str) -> Finding:
    """Return that something is as it should be."""
    return Finding("ok", what, told)


def note(what: str, told: str, remedy: str = "") -> Finding:
    """Return what is worth knowing and may be meant so."""
    return Finding("note", what, told, remedy)


def problem(what: str, told: str, remedy: str) -> Finding:
    """Return what is wrong, and what mends it."""
    return Finding("problem", what, told, remedy)


def reason_of(error: BaseException) -> str:
    """Return in one line what went wrong.

    >>> reason_of(ValueError("a\\nb")), reason_of(TimeoutError())
    ('a b', 'TimeoutError')
    """
    told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(told.split())[:_LONGEST] or type(error).__name__


def size(count: float) -> str:
    """Return a number of bytes in words.

    >>> size(900), size(5 << 20)
    ('900 bytes', '5.0 MB')
    """
    if count < 1000:
        return f"{count:g} bytes"
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1024:.1f} kB"
