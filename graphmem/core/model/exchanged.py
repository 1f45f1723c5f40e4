"""What came in from files of other memories. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImportCount:
    """What became of the things of one kind, in numbers. merged: they went into another one. known: were here already.

    changed: nothing of them was new but what is known of something that was here.
    """

    what: str
    added: int
    merged: int
    changed: int
    known: int
    refused: int

    @property
    def read(self) -> int:
        """How many there were."""
        return self.added + self.merged + self.changed + self.known + self.refused


@dataclass(frozen=True, slots=True)
class ImportMerge:
    """Something that went into another one of its kind: what it is, its name there, and that of the other one."""

    what: str
    name: str
    into: str


@dataclass(frozen=True, slots=True)
class ImportRefusal:
    """Something that was not taken in: what it is, its name without secrets, and why."""

    what: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import took in, or with applied=False what it would. merged, refused: the first thousand of each.

    remarks: what else is to be known, such as how the source was read and what stays for a person to do.
    """

    kind: str
    path: str
    counts: tuple[ImportCount, ...]
    merged: tuple[ImportMerge, ...]
    refused: tuple[ImportRefusal, ...]
    applied: bool
    remarks: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        """How many things are new here."""
        return sum(count.added for count in self.counts)
