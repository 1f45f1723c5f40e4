"""What one sync of notes and files works with, and what it tells."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphmem.config import Config
from graphmem.core import pages, redaction
from graphmem.core.model import Note, NoteEditReport, Provenance, TreeChange
from graphmem.core.pages import Page
from graphmem.errors import Conflict, GraphmemError, InvalidInput, NotFound, SecretRefused
from graphmem.exchange.pieces import Pieces
from graphmem.exchange.rooted import Rooted
from graphmem.exchange.tree_forms import Form
from graphmem.records import drafts, trees
from graphmem.records.trees import Row
from graphmem.store.transaction import Transaction

_T = TypeVar("_T")

_UNLISTED = ("refused", "copy", "edited")  # what lists do not show, or not always
REFUSALS = (InvalidInput, Conflict, NotFound, SecretRefused)


@dataclass(frozen=True, slots=True)
class Hands:
    """What a sync works with. read, write: open a transaction, blocks of which nest.

    edit: changes a note as whom the files speak for does. act: what is about to be done, by whom and where. source:
    who that is. keep: false for a rehearsal, which writes no file.
    """

    read: Callable[[], AbstractContextManager[Transaction]]
    write: Callable[[], AbstractContextManager[Transaction]]
    edit: Callable[[Transaction, int, Mapping[str, Any], Provenance], NoteEditReport]
    act: Callable[[str], Provenance]
    source: str
    config: Config
    keep: bool
    progress: Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class File:
    """A file that is not known by its stamp. page: None where it cannot be read, or holds what it held before."""

    path: str
    stamp: str
    hash: str
    page: Page | None


@dataclass(slots=True)
class Run:
    """One sync. rows: what is kept of files, by uid. stamps: of the files there are. refused: paths that stay."""

    root: str
    scope: str
    form: Form
    hands: Hands
    changes: list[TreeChange] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    stamps: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    stirred: set[str] = field(default_factory=set)  # files of which lists show something that changed
    held: bool = False  # something waits for a person, since files speak for nobody
    rooted: Rooted = field(init=False)
    files: Rooted | Pieces = field(init=False)

    def __post_init__(self) -> None:
        self.rooted = Rooted(self.root)
        self.files = self.rooted if self.form.parting is None else Pieces(self.rooted, self.form.parting)

    # ---- notes and their pages

    def is_shown(self, note: Note | None) -> bool:
        """Tell whether a note is one that has a file here."""
        if note is None or note.scope != self.scope:
            return False
        return note.status in self.form.statuses and note.kind in self.form.kinds

    def has_page(self, note: Note | None, row: Row) -> bool:
        """Tell whether a note keeps its page: one that is shown, and one that waits and was told by a person's file."""
        if note is None or self.is_shown(note):
            return note is not None
        return (
            note.status == "proposed" and row.hash != "" and note.scope == self.scope and note.kind in self.form.kinds
        )

    def without_file(self, tx: Transaction) -> list[int]:
        """Return the notes that belong into the files and were never in them."""
        return trees.without_file(tx, self.root, self.scope, self.form.statuses, self.form.kinds)

    def page_of(self, note: Note, uid: str) -> str:
        """Return the page that a note would make."""
        return self.form.compose(note, uid, self.usual_reason(note))

    def usual_reason(self, note: Note) -> str:
        """Return the reason of a note that need not be told."""
        return drafts.REASONS[self.hands.config.language][note.kind]

    def note_hash(self, note: Note, uid: str) -> str:
        """Return by what it is known whether a note changed; '' for one that has no page here."""
        return digest_of(self.page_of(note, uid)) if note.kind in self.form.kinds else ""

    # ---- files

    def written(self, path: str, text: str, expected: str | None) -> str | None:
        """Write a file; return its stamp, None in a rehearsal."""
        if not self.hands.keep:
            return None
        stamp = self.files.write(path, text.encode(), expected)
        if stamp is None:
            raise Conflict("was changed meanwhile: sync again")
        self.stamps[path] = stamp
        return stamp

    def name(self, path: str, uid: str) -> str:
        """Return the path of a note that has a name now."""
        named = self.files.name(path, uid)
        if named != path and path in self.stamps:
            self.stamps[named] = self.stamps.pop(path)
        return named

    def is_named(self, row: Row) -> bool:
        """Tell whether a page names its note, as it has to among others in a file."""
        if self.form.parting is None:
            return True
        known = self.files.read(row.path)
        return known is not None and self.form.read(known[0], row.path).uid == row.uid

    def write_copy(self, path: str, text: str) -> None:
        """Lay a note beside the file that was changed as well."""
        copy = self.form.copy(path)
        if not self.hands.keep:
            return
        known = self.files.read(copy)
        if known is None or known[0] != text.encode():
            self.files.write(copy, text.encode(), None if known is None else known[1])
            if reason := self.files.settle().get(copy):
                raise Conflict(reason)

    def remove_copy(self, path: str) -> None:
        """Take away what was laid beside a file."""
        copy = self.form.copy(path)
        if copy in self.stamps and self.hands.keep:
            try:
                self.files.remove(copy, self.stamps[copy])
            except InvalidInput as error:
                self.refuse(copy, None, error)

    # ---- work, and what is told of it

    def in_batches(self, work: Sequence[_T], act: Callable[[Transaction, _T], None]) -> None:
        """Do all work, so much in a transaction."""
        done = 0
        for part in parts(work, self.rooted.at_once):
            with self.hands.write() as tx:
                for one in part:
                    act(tx, one)
                self.note_stirred(tx)
            done += len(part)
            self.hands.progress(done, len(work))

    def note_stirred(self, tx: Transaction) -> None:
        """Keep which lists are due, together with what they are to show: who dies before they are made loses none."""
        if self.stirred and self.form.parting is None:
            trees.stir(tx, self.root, {pages.index_path(path) for path in self.stirred})
        self.stirred.clear()

    def refuse(self, path: str, row: Row | None, error: GraphmemError) -> None:
        """Tell that a file stays as it is, and why."""
        self.refused.add(path)
        # Never the value itself, which may be part of a secret.
        reason = f"{error.argument}: {error.reason}" if isinstance(error, InvalidInput) else str(error)
        self.tell(path, "refused", None if row is None else row.note_id, reason)

    def tell(self, path: str, what: str, note_id: int | None = None, reason: str = "") -> None:
        """Tell what became of a file."""
        if what not in _UNLISTED:
            self.stirred.add(path)
        shown = self.files.shown(path)
        self.changes.append(TreeChange(redaction.redact(shown), what, note_id, redaction.redact(reason)))

    def remark(self, path: str, remark: str) -> None:
        """Tell something else of a file."""
        self.remarks.append(redaction.redact(f"{self.files.shown(path)}: {remark}"))


def digest_of(data: bytes | str) -> str:
    """Return by what it is known whether a text changed."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def parts(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """Yield items, so many at once."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
