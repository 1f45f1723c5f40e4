"""What consolidating and distilling come to. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One thing that was concluded of what is remembered.

    outcome: written, a new note; proposed, a new one that waits for a person; merged, a known note took others in;
    confirmed, a known note has further sources; known, left or refused: nothing was done, and why is in `reason`.
    note_id: of that note, None where there is none, and in a dry run for a new one. supersedes: ids of the notes that
    it takes the place of. sources: ids of the notes and checkpoints that it was made of. seen: how often it was told,
    all sources together.
    """

    title: str
    body: str
    kind: str
    outcome: str
    reason: str = ""
    note_id: int | None = None
    supersedes: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    seen: int = 1


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What consolidating or distilling a scope came to.

    kind: 'consolidate' or 'distill'. state: revised (something was superseded); appended (only added to); unchanged;
    nothing (there is nothing to read); early (it was done too recently; it is due at `due_at`, in `days_left` days,
    rounded up); busy (another is at work on it); suppressed (it failed too often in a row); stopped (it would retire
    more than `config.shrink_limit` allows, and changed nothing); failed, and why in `error`. by: 'writer' or 'rules',
    which work on repeats and likeness alone. applied: False for a dry run, whose state is what it would be. operation:
    its number, for undo.
    """

    kind: str
    scope: str
    state: str
    by: str = ""
    conclusions: tuple[Conclusion, ...] = ()
    operation: int | None = None
    due_at: str | None = None
    days_left: int = 0
    error: str = ""
    remarks: tuple[str, ...] = ()
    applied: bool = True

    @property
    def superseded(self) -> tuple[int, ...]:
        """The ids of all notes that others took the place of."""
        return tuple(note_id for one in self.conclusions for note_id in one.supersedes)
