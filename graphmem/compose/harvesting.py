"""What a harvest of transcripts stores, and what it comes to."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphmem.core.keys import clean_text
from graphmem.core.model import HarvestReport, MirrorReport, Part
from graphmem.core.redaction import redact
from graphmem.errors import InvalidInput, SecretRefused
from graphmem.records import history
from graphmem.store.transaction import Transaction

_REMARKS_KEPT = 100


def check(parts: Sequence[Part], zone: dt.tzinfo, *, screened: bool) -> tuple[list[history.Told], tuple[str, ...]]:
    """Return parts as they may be written, see `history.check_parts`; one that nobody may write is left out, and told.

    >>> told, remarks = check([Part("ghp_" + "a1B2" * 9, text="x"), Part("m2", text="y")], dt.UTC, screened=True)
    >>> [part.part for part in told], remarks[0][:41]
    (['m2'], 'a part is left out: parts[0].id: it holds')
    """
    try:
        return history.check_parts(parts, zone, screened=screened)
    except (InvalidInput, SecretRefused):
        refused: list[str] = []
        usable: list[Part] = []
        for part in parts:
            try:
                history.check_parts([part], zone, screened=screened)
                usable.append(part)
            except (InvalidInput, SecretRefused) as error:
                refused.append(f"a part is left out: {error}")
        told, remarks = history.check_parts(usable, zone, screened=screened)
        return told, (*refused, *remarks)


@dataclass(slots=True)
class Reading:
    """A source that is being read. is_new: for the first time. met: the sessions it told. elsewhere: those of them that
    something else told before, or told the same."""

    look: history.Harvested
    is_new: bool
    met: set[str] = field(default_factory=set)
    elsewhere: dict[str, None] = field(default_factory=dict)

    def meet(self, tx: Transaction, name: str, told: Sequence[history.Told]) -> None:
        """Take note of a session that is to be told."""
        if self.is_new and name not in self.met and (known := history.known_as(tx, name, told)):
            self.elsewhere[known] = None
        self.met.add(name)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said of it as a whole."""
        if not self.elsewhere:
            return ()
        first, *others = self.elsewhere
        more = f" and {len(others)} others" if others else ""
        return (
            f"{self.look.path} adds to what was told before, of session {first!r}{more}: where it is a copy, or was "
            "renamed, remove one of both (delete_session)",
        )


class Tally:
    """What a harvest comes to, so far. news: batches, and sources that cannot be read."""

    def __init__(self) -> None:
        self.news = 0
        self.sessions: set[str] = set()
        self.added = self.changed = self.known = self.own = self.unsaid = 0
        self.remarks: list[str] = []
        self.failed: list[str] = []

    def add(self, report: MirrorReport) -> None:
        """Count what was mirrored."""
        self.sessions.add(report.session)
        self.added += report.added
        self.changed += report.changed
        self.known += report.known

    def fail(self, path: str, error: Exception) -> None:
        """Note that a source cannot be read, and why."""
        self.news += 1
        self.failed.append(redact(clean_text(f"{path}: {error}")))

    def remark(self, told: str) -> None:
        """Keep a remark, without secrets, or that there is one more; one that was made is not made again."""
        told = redact(told)
        if told in self.remarks:
            return
        if len(self.remarks) < _REMARKS_KEPT:
            self.remarks.append(told)
        else:
            self.unsaid += 1

    def report(self, sources: int) -> HarvestReport:
        """Return all of it."""
        rest = (f"and {self.unsaid} remarks more",) if self.unsaid else ()
        return HarvestReport(
            sources, len(self.sessions), self.added, self.changed, self.known, self.own, tuple(self.failed),
            (*self.remarks, *rest),
        )  # fmt: skip
