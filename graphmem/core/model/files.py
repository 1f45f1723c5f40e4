"""Files: their logs, backups, checks, and traces in them. See `graphmem.core.model`."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WalState:
    """What a checkpoint left of the write-ahead log. frames: pages in it; copied: those that are in the database too.

    busy: readers or a writer kept it from being done. size: bytes of the log.
    """

    busy: bool
    frames: int
    copied: int
    size: int


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds. bytes: of the file. counts: its rows by table. payloads: files copied to `<path>.blobs`."""

    path: str
    bytes: int
    counts: Mapping[str, int]
    payloads: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored from where. kept: where the old file lies now, '' when there was none; the rest as in a backup.

    remarks: on how the source was read, and on payloads that it lacks.
    """

    path: str
    source: str
    kept: str
    bytes: int
    counts: Mapping[str, int]
    payloads: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied from where. counts: rows by table. payloads: of blocks, wherever each side keeps them.

    digest: of all rows, which the source and the copy have in common. resumed: rows that had come before, with a copy
    that was broken off. remarks: on that, and on payloads that are missing.
    """

    path: str
    source: str
    counts: Mapping[str, int]
    payloads: int
    digest: str
    resumed: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found. problems: a line each, with table, row and remedy; none when the memory is sound.

    sizes: bytes of the database, of its -wal, of its payload files.
    """

    problems: tuple[str, ...]
    sizes: Mapping[str, int]
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class TreeState:
    """A folder of notes as files. form: see `export_tree`. conflicts: files that changed, as their notes did."""

    root: str
    scope: str
    form: str
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileState:
    """What a memory says of itself. schema: its version. is_current: whether that is the one of this graphmem.

    server: which, and its tenant, '' for a file; schema is 0 where that tenant is not there yet. trees: none where it
    is an older one, in which they may be kept otherwise.
    """

    schema: int
    is_current: bool
    trees: tuple[TreeState, ...]
    remarks: tuple[str, ...] = ()
    server: str = ""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair mended, or with applied=False what it would. left: what it cannot mend, with the remedy.

    operations: those that `undo` reverses; the others made anew what is derived.
    """

    mended: tuple[str, ...]
    left: tuple[str, ...]
    applied: bool
    operations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a text still is: a column as `table.column`, the text index, or a file; in a copy after its path and `: `.

    count: rows, terms, or pages of 4 KiB. offset: of the first one in a file, in bytes; None elsewhere.
    """

    where: str
    count: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A row that holds a secret: its table, its id or that of what it belongs to (None without one), which kind."""

    table: str
    id: int | None
    kind: str


@dataclass(frozen=True, slots=True)
class SecretReport:
    """The secrets in a memory, and never a character of them. redacted: rows they were taken out of, 0 for a scan."""

    found: tuple[StoredSecret, ...]
    redacted: int
    applied: bool
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgottenReport:
    """What is left of a text in a file and in those beside it. remarks: on how the files were read."""

    found: tuple[Trace, ...]
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is left."""
        return not self.found
