"""What all imports share: where they write, and what they tell of what they did."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from graphmem.config import Config
from graphmem.core.keys import clean_text
from graphmem.core.model import ImportCount, ImportMerge, ImportRefusal, ImportReport, NoteEditReport, Provenance
from graphmem.core.redaction import redact
from graphmem.store.transaction import Transaction

OUTCOMES = ("added", "merged", "changed", "known", "refused")

_MOST_TOLD = 1000  # merges, refusals and remarks, each: the numbers tell of all
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Target:
    """The memory that an import writes to. writing: opens the transaction of one batch.

    source: who says so, such as 'import:homeagent'. scope: whose it is, None where the source tells that itself.
    scope_of: the scope of the project at a path, which becomes known. at: the time of the import. progress: is told how
    much is done and how much there is.
    """

    writing: Callable[[], AbstractContextManager[Transaction]]
    config: Config
    source: str
    scope: str | None
    scope_of: Callable[[str], str]
    at: str
    progress: Callable[[int, int], None]
    edit: Callable[[Transaction, int, Mapping[str, Any], Provenance], NoteEditReport]
    keep_payload: Callable[[str, bytes], bool]


class Tally:
    """What an import has done so far."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._merged: list[ImportMerge] = []
        self._refused: list[ImportRefusal] = []
        self._remarks: dict[str, None] = {}

    def count(self, what: str, outcome: str, number: int = 1) -> None:
        """Count something, or several of its kind, by what became of it."""
        self._counts.setdefault(what, Counter())[outcome] += number

    def merge(self, what: str, name: object, into: str) -> None:
        """Count something that went into another one, and tell of it."""
        self.count(what, "merged")
        if len(self._merged) < _MOST_TOLD:
            self._merged.append(ImportMerge(what, shown(name), shown(into)))

    def refuse(self, what: str, name: object, reason: str) -> None:
        """Count something that is not taken in, and tell why."""
        self.count(what, "refused")
        if len(self._refused) < _MOST_TOLD:
            self._refused.append(ImportRefusal(what, shown(name), reason))

    def remark(self, *remarks: str) -> None:
        """Tell something, once."""
        for remark in remarks:
            if len(self._remarks) < _MOST_TOLD:
                self._remarks.setdefault(remark)

    def report(self, kind: str, path: str, *, applied: bool) -> ImportReport:
        """Return what was done."""
        counts = tuple(
            ImportCount(what, *(count[outcome] for outcome in OUTCOMES)) for what, count in self._counts.items()
        )
        return ImportReport(
            kind, path, counts, tuple(self._merged), tuple(self._refused), applied, tuple(self._remarks)
        )


def shown(name: object) -> str:
    """Return a name, or what stands where one should, as a report shows it: on one line, not too long, without secrets.

    >>> shown("two\\nlines")
    'two lines'
    """
    text = " ".join(redact(clean_text(str(name))).split())
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


class Steps:
    """How far an import is, in rows of its source."""

    def __init__(self, progress: Callable[[int, int], None], rows: Sequence[int]) -> None:
        self._progress = progress
        self._whole = sum(rows)
        self._done = 0
        progress(0, self._whole)

    def advance(self, rows: int) -> None:
        """Tell that so many more rows are done."""
        self._done += rows
        self._progress(self._done, self._whole)

    def finish(self) -> None:
        """Tell that all is done, also rows that nobody had to look at."""
        self.advance(self._whole - self._done)
