"""What a harvest of transcripts comes to."""

from graphmem.core.model import HarvestReport, MirrorReport

_REMARKS_KEPT = 100


class Tally:
    """What a harvest comes to, so far."""

    def __init__(self) -> None:
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

    def remark(self, told: str) -> None:
        """Keep a remark, or that there is one more."""
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
