"""What becomes of a tree of files. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeChange:
    """What became of one file of a tree. path: below the root, with `/`. note_id: None where there is none.

    what: of files, written or removed; of notes, added, edited, moved (the file is elsewhere), archived, restored or
    approved; conflict (file and note both changed, and both are kept), refused, or copy (one that another program
    left). reason: more about it.
    """

    path: str
    what: str
    note_id: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TreeReport:
    """What an export or a sync of a tree did, or would do where `applied` is false. unchanged: how many files.

    form: how notes are files there. trusted: whether a person spoke in the files. What is refused stays as it is, and
    is told again by the next sync.
    """

    root: str
    scope: str
    changes: tuple[TreeChange, ...]
    unchanged: int
    applied: bool
    remarks: tuple[str, ...] = ()
    form: str = "notes"
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class TreeConflict:
    """A file and its note that both changed. path: of the file; the note is beside it in `.conflict.md`."""

    root: str
    path: str
    note_id: int
