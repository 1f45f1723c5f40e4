"""The markdown tree, both ways: what people changed in files comes in, what changed in the memory goes out.

Of each file it is kept what it was when it was last read or written, and of its note what page it would have made. So
it is known which side changed. One side alone goes over to the other. Where both did, both stay: the file as it is, the
note as it is, its page beside the file as `NAME.conflict.md`. Taking that copy away settles it, and what the file says
is taken over; moving it over the file keeps the note.

A process may die at any place. What comes in is in one transaction with what is kept of its file. A file that is to be
written is noted first, written beside and renamed, and noted again; in between it is one that is still to be written,
or one that holds what the note says.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from graphmem.config import Config
from graphmem.core import frontmatter, pages, redaction
from graphmem.core.model import Note, NoteEditReport, Provenance, TreeChange, TreeReport
from graphmem.core.pages import Page
from graphmem.core.times import read_time, utc_text
from graphmem.errors import Conflict, GraphmemError, InvalidInput, NotFound, SecretRefused
from graphmem.exchange.rooted import Rooted, is_settled
from graphmem.records import drafts, notes, trees
from graphmem.records.trees import Row

_T = TypeVar("_T")

_BATCH = 50  # files, in one transaction
_UID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_REFUSALS = (InvalidInput, Conflict, NotFound, SecretRefused)


@dataclass(frozen=True, slots=True)
class Hands:
    """What a sync works with. read, write: open a transaction, blocks of which nest.

    edit: changes a note as a person does. act: what is about to be done, by whom and where. keep: false for a
    rehearsal, which writes no file.
    """

    read: Callable[[], AbstractContextManager[sqlite3.Connection]]
    write: Callable[[], AbstractContextManager[sqlite3.Connection]]
    edit: Callable[[sqlite3.Connection, int, Mapping[str, Any], Provenance], NoteEditReport]
    act: Callable[[str], Provenance]
    config: Config
    keep: bool
    progress: Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _File:
    """A file that is not known by its stamp. page: None where it cannot be read, or holds what it held before."""

    path: str
    stamp: str
    hash: str
    page: Page | None


def export(root: str, scope: str, hands: Hands) -> TreeReport:
    """Write the notes of a scope as files; what people changed in files stays as it is, for a sync to take over."""
    return _Sync(root, scope, hands).run(incoming=False)


def sync(root: str, scope: str, hands: Hands) -> TreeReport:
    """Bring files and notes together; raise Conflict where all files are gone at once."""
    return _Sync(root, scope, hands).run(incoming=True)


@dataclass(slots=True)
class _Sync:
    root: str
    scope: str
    hands: Hands
    changes: list[TreeChange] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    stamps: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)  # paths that stay as they are
    stirred: bool = False  # something changed that lists show
    wrote: bool = False  # what was read of the memory is no longer all of it
    files: Rooted = field(init=False)

    def __post_init__(self) -> None:
        self.files = Rooted(self.root)

    def run(self, *, incoming: bool) -> TreeReport:
        walk = self.files.walk(".md")
        for path, reason in walk.passed:
            self._remark(path, reason)
        with self.hands.read() as tx:
            # Nearly always nothing changed, and this is all that it takes to know.
            is_same = trees.stamps(tx, self.root) == walk.stamps
            lists = len(trees.compiled(tx, self.root)) if is_same else 0
            if lists and not trees.without_file(tx, self.root, self.scope):
                return TreeReport(
                    self.root, self.scope, (), len(walk.stamps) - lists, self.hands.keep, tuple(self.remarks)
                )
            self.rows = {row.uid: row for row in trees.rows(tx, self.root)}
            fresh = trees.without_file(tx, self.root, self.scope)
            known = trees.scope_of(tx, self.root) is not None
        for path, stamp in walk.left.items() if self.hands.keep else ():
            self.files.remove(path, stamp)
        by_path = {row.path: row for row in self.rows.values() if row.path}
        self.stamps = walk.stamps
        strange = [
            path for path, stamp in walk.stamps.items()
            if (row := by_path.get(path)) is None or row.stamp != stamp or row.conflict
        ]  # fmt: skip
        if not known:
            with self.hands.write() as tx:
                trees.begin(tx, self.root, self.scope)
        found = self._read([path for path in sorted(strange) if self._is_page(path, by_path)], by_path)
        if incoming:
            self._take(found, by_path)
        else:
            self._pass_over(found, by_path)
        self._give(None if self.wrote else fresh, incoming=incoming)
        self._compile()
        self.changes.sort(key=lambda change: (change.path, change.what))
        return TreeReport(
            self.root, self.scope, tuple(self.changes), self._unchanged(by_path), self.hands.keep, tuple(self.remarks)
        )

    def _unchanged(self, by_path: Mapping[str, Row]) -> int:
        """Return how many files of notes are what they were before."""
        touched = {change.path for change in self.changes}
        return sum(row.note_id is not None and path in self.stamps and path not in touched
                   for path, row in by_path.items())  # fmt: skip

    # ---- what there is

    def _is_page(self, path: str, by_path: Mapping[str, Row]) -> bool:
        """Tell whether a file is one of a note; report what is left alone."""
        folder, _, name = path.rpartition("/")
        if path in by_path:
            return by_path[path].note_id is not None
        if name == pages.INDEX_PAGE or path == pages.ROOT_PAGE:
            return False
        if pages.is_copy(name):
            if not any(row.conflict and pages.conflict_path(row.path) == path for row in self.rows.values()):
                self._tell(path, "copy", reason="another program left it: take over what is missing, and remove it")
            return False
        if not name.endswith(".md"):
            return False
        if not folder:
            self._remark(path, "lies in no folder, and is left alone; notes lie in folders")
            return False
        return True

    def _read(self, paths: Sequence[str], by_path: Mapping[str, Row]) -> list[_File]:
        found: list[_File] = []
        ours: list[Row] = []
        for path in paths:
            row = by_path.get(path)
            try:
                read = self.files.read(path)
                if read is None:
                    self.stamps.pop(path, None)
                    continue
                data, stamp = read
                self.stamps[path] = stamp
                digest = _digest(data)
                if row is not None and row.writing == digest:  # who wrote it died before that was kept
                    row.hash, row.writing = digest, ""
                    ours.append(row)
                is_same = row is not None and row.hash == digest and not row.conflict
                page = None if is_same else pages.read_page(data)
                found.append(_File(path, stamp, digest, page))
            except InvalidInput as error:
                self._refuse(path, row, error)
        if ours:
            self.wrote = True
            with self.hands.write() as tx:
                trees.recover(tx, self.root, [row.uid for row in ours])
        return found

    # ---- what comes in

    def _take(self, found: Sequence[_File], by_path: Mapping[str, Row]) -> None:
        """Take over what people changed in files, and what they moved, added and removed."""
        # Present are files that nobody looked at, that are the same, and that cannot be read.
        looked_at = {file.path for file in found}
        present = {row.uid for path, row in by_path.items() if path in self.stamps and path not in looked_at}
        present |= {by_path[file.path].uid for file in found if file.page is None}
        self._restamp([file for file in found if file.page is None], by_path)
        if found or len(present) < len(by_path):
            missing = [
                row for row in by_path.values() if row.note_id is not None and row.hash and row.uid not in present
            ]
            written = [row for row in by_path.values() if row.note_id is not None and row.hash]
            if len(missing) == len(written) > 0 and not found and pages.ROOT_PAGE not in self.stamps:
                raise Conflict(f"{self.root}: all files are gone at once: 'export_tree' writes them anew")
            pairs = self._paired([file for file in found if file.page is not None], by_path, present)
            self._in_batches(pairs, self._take_one)
            gone = [row for row in by_path.values() if row.note_id is not None and row.uid not in present]
            self._in_batches([row for row in gone if row.hash], self._take_gone)

    def _paired(
        self, found: Sequence[_File], by_path: Mapping[str, Row], present: set[str]
    ) -> list[tuple[_File, Row | None]]:
        """Return files with what is kept of them, None for new ones; note which are present by that.

        A file is known by its uid, else by its place, else by what it holds.
        """

        def uid_of(file: _File) -> str:
            assert file.page is not None
            return file.page.uid if _UID.fullmatch(file.page.uid) else ""

        def rank(file: _File) -> tuple[int, str]:
            row = self.rows.get(uid_of(file))
            return (0 if row and row.path == file.path else 1 if row else 2 if file.path in by_path else 3), file.path

        pairs: list[tuple[_File, Row | None]] = []
        rest: list[_File] = []
        new_uids: set[str] = set()
        for file in sorted(found, key=rank):
            uid = uid_of(file)
            row = self.rows.get(uid) if uid else by_path.get(file.path)
            if not uid and row is not None and not row.hash:  # the place of a file that is still to be written
                row = None
            if (row is not None and row.uid in present) or uid in new_uids:
                told = (
                    f"it names the same note as {row.path}" if row and row.path else "it names a note of another file"
                )
                self._tell(file.path, "copy", reason=f"{told}: remove it, or its id to remember it as another note")
                self.refused.add(file.path)
            elif row is not None:
                present.add(row.uid)
                pairs.append((file, row))
            elif uid:
                new_uids.add(uid)
                pairs.append((file, None))
            else:
                rest.append(file)
        # What was removed for good has no path any more.
        missing = {
            row.hash: row for row in self.rows.values()
            if row.hash and row.uid not in present and (row.path or row.changes)
        }  # fmt: skip
        for file in rest:
            row = missing.pop(file.hash, None)
            if row is not None:
                present.add(row.uid)
            pairs.append((file, row))
        return sorted(pairs, key=lambda pair: pair[0].path)

    def _take_one(self, tx: sqlite3.Connection, pair: tuple[_File, Row | None]) -> None:
        file, expected = pair
        assert file.page is not None
        row = None if expected is None else self._still(tx, expected)
        if (row is None) != (expected is None):
            self._remark(file.path, "another sync took it over")
            return
        told, remarked = len(self.changes), len(self.remarks)
        try:
            with self.hands.write() as inner:
                if row is None:
                    self._take_new(inner, file, file.page)
                else:
                    self._take_known(inner, file, file.page, row)
        except _REFUSALS as error:
            del self.changes[told:], self.remarks[remarked:]
            self._refuse(file.path, row, error)

    def _still(self, tx: sqlite3.Connection, expected: Row) -> Row | None:
        """Return what is kept of a file by now, None where another sync changed it."""
        row = trees.row(tx, self.root, expected.uid)
        if row is None or (row.path, row.hash, row.conflict) != (expected.path, expected.hash, expected.conflict):
            return None
        return row

    def _take_known(self, tx: sqlite3.Connection, file: _File, page: Page, row: Row) -> None:
        note = notes.notes(tx, [row.note_id or 0]).get(row.note_id or 0)
        if note is None:
            self._take_purged(tx, file, row)
            return
        made = replace(row, path=file.path, hash=file.hash, stamp=_kept(file.stamp), writing="", changes=0, conflict=0)
        is_back = not row.path
        is_same = file.hash == row.hash and not row.conflict
        if note.status == "archived" and is_back:
            note = notes.restore(tx, note.id, self.hands.act("restore"), self.hands.config)
            self._tell(file.path, "restored", note.id)
            row = replace(row, changes=row.changes + 1)
        elif note.status not in trees.SHOWN or note.scope != self.scope:
            if is_back:
                raise Conflict(
                    f"note {note.id} is {note.status}: remove the file, or its id to remember it as a new note"
                )
            if is_same:
                trees.put(tx, self.root, replace(made, changes=row.changes or 1))
                return
            trees.put(tx, self.root, replace(made, conflict=1, changes=row.changes))
            self._tell(file.path, "conflict", note.id, f"the note is {note.status} by now, and the file was changed")
            return
        if row.path and row.path != file.path:
            self._tell(file.path, "moved", note.id, f"from {row.path}")
        if is_same:
            trees.put(tx, self.root, replace(made, changes=row.changes))
            return
        edits = pages.edits_of(page, note, drafts.REASONS[self.hands.config.language])
        status = page.told.get("status", note.status)
        has_changed = row.changes > 0 and _digest(self._page_of(note, row.uid)) != row.note_hash
        copy = pages.conflict_path(row.path) if row.conflict else ""
        if edits and not is_back and (copy in self.stamps if row.conflict else has_changed):
            self._keep_both(tx, made, note)
            return
        if edits:
            redaction.refuse_secrets(**edits)
            report = self.hands.edit(tx, note.id, edits, self.hands.act("edit"))
            note = report.note
            if report.operation is not None:
                self._tell(file.path, "edited", note.id, ", ".join(edits))
        if status != note.status:
            note = self._turn(tx, note, str(status), file.path)
        if row.conflict and copy in self.stamps and self.hands.keep:
            self.files.remove(copy, self.stamps[copy])
        trees.put(tx, self.root, replace(made, note_hash=_digest(self._page_of(note, row.uid))))
        for remark in page.remarks:
            self._remark(file.path, remark)

    def _take_purged(self, tx: sqlite3.Connection, file: _File, row: Row) -> None:
        """Remove the file of a note that was removed for good, unless a person wrote to it, or put it back."""
        if file.hash != row.hash or not row.changes:
            raise Conflict("its note was removed for good: remove the file, or its id to remember it as a new note")
        if self.hands.keep and not self.files.remove(file.path, file.stamp):
            raise Conflict("was changed meanwhile: sync again")
        trees.put(tx, self.root, replace(row, changes=0))
        self._tell(file.path, "removed", row.note_id, "its note is gone")

    def _turn(self, tx: sqlite3.Connection, note: Note, status: str, path: str) -> Note:
        if (note.status, status) == ("proposed", "live"):
            self._tell(path, "approved", note.id)
            return notes.approve(tx, note.id, self.hands.act("approve")).note
        if status == "archived":
            raise InvalidInput("status", status, "remove the file to archive its note")
        if status != "proposed":
            raise InvalidInput("status", status, "a person writes 'live' to approve what is proposed, and nothing else")
        self._remark(path, "its note is live, whatever the file says")
        return note

    def _keep_both(self, tx: sqlite3.Connection, made: Row, note: Note) -> None:
        text = self._page_of(note, made.uid)
        # Before it is noted: where a conflict is noted and there is no copy, a person took it away.
        self._write_copy(made.path, text)
        trees.put(tx, self.root, replace(made, conflict=1, note_hash=_digest(text)))
        reason = f"both changed; the note is in {pages.conflict_path(made.path)}, take it away or move it over the file"
        self._tell(made.path, "conflict", note.id, reason)

    def _write_copy(self, path: str, text: str) -> None:
        copy = pages.conflict_path(path)
        if not self.hands.keep:
            return
        known = self.files.read(copy)
        if known is None or known[0] != text.encode():
            self.files.write(copy, text.encode(), None if known is None else known[1])
            self.files.settle()

    def _take_new(self, tx: sqlite3.Connection, file: _File, page: Page) -> None:
        told = page.told
        uid = page.uid if _UID.fullmatch(page.uid) else ""
        other = trees.elsewhere(tx, uid, self.scope) if uid else None
        if other is not None and other.note_id is not None:
            # What another tree of the scope knows of the note tells which side changed.
            self._take_known(tx, file, page, replace(other, path=file.path, changes=other.changes or 1, conflict=0))
            return
        texts = {key: value for key, value in told.items() if key in pages.EDITABLE and key != "pinned"}
        texts |= {"title": pages.title_of(page, file.path), "kind": pages.kind_of(page, file.path)}
        given: dict[str, Any] = {
            "slot": "",
            "labels": (),
            "load_when": (),
            "summary": "",
            "highlight": "",
            "reason": "",
        }
        given |= texts
        source = str(told.get("source") or "user")
        redaction.refuse_secrets(**given, body=page.body, source=source, path=file.path)
        status = str(told.get("status") or "live")
        if status not in trees.SHOWN:
            raise InvalidInput("status", status, f"give one of {', '.join(trees.SHOWN)}")
        draft = drafts.check_note(
            **given, body=page.body, scope=self.scope, pinned=bool(told.get("pinned")), status=status, source=source,
            config=self.hands.config,
        )  # fmt: skip
        draft = drafts.ruled(draft, backed=False)
        act = self.hands.act("remember")
        created = str(told.get("created") or "")
        at = utc_text(read_time(created, self.hands.config.zone, argument="created")) if created else act.at
        origin = replace(act, actor=draft.source, reason=draft.reason, at=at)
        report = notes.remember(tx, draft, origin, at_is_given=bool(created))
        note = report.note
        if note.status not in trees.SHOWN:
            raise Conflict(
                f"note {note.superseded_by} has the slot {note.slot!r}, and was told later: keep one of both"
            )
        known = trees.uid_of(tx, note.id)
        here = trees.row(tx, self.root, known) if known else None
        if here is not None and here.path == file.path:  # another sync took it over
            return
        if here is not None and here.path in self.stamps:
            raise Conflict(f"{here.path} says the same: keep one of both")
        uid = known or uid or self._uid_for(tx, note)
        page_hash = _digest(self._page_of(note, uid))
        trees.put(tx, self.root, Row(uid, file.path, note.id, file.hash, _kept(file.stamp), page_hash))
        self._tell(file.path, "added", note.id, "" if report.created else "the same was known")
        for remark in (*page.remarks, *report.remarks):
            self._remark(file.path, remark)

    def _take_gone(self, tx: sqlite3.Connection, expected: Row) -> None:
        row = self._still(tx, expected)
        if row is None:
            return
        note = notes.notes(tx, [row.note_id or 0]).get(row.note_id or 0)
        copy = pages.conflict_path(row.path)
        if note is None or note.status not in trees.SHOWN or note.scope != self.scope:
            trees.put(tx, self.root, replace(row, path="", stamp="", changes=0, conflict=0))
            self.stirred = True
        elif row.conflict and copy in self.stamps:
            trees.put(tx, self.root, replace(row, hash="", stamp="", conflict=0))
            if self.hands.keep:
                self.files.remove(copy, self.stamps[copy])
        elif row.changes and _digest(self._page_of(note, row.uid)) != row.note_hash:
            trees.put(tx, self.root, replace(row, hash="", stamp=""))
            self._remark(row.path, "was removed, and its note changed since; it is written anew")
        else:
            try:
                with self.hands.write() as inner:
                    notes.put_away(inner, note.id, self.hands.act("forget"), self.hands.config)
                    trees.put(inner, self.root, replace(row, path="", stamp="", changes=0, conflict=0))
            except _REFUSALS as error:
                self._refuse(row.path, row, error)
                return
            self._tell(row.path, "archived", note.id)

    def _pass_over(self, found: Sequence[_File], by_path: Mapping[str, Row]) -> None:
        """Leave files as they are that people changed."""
        self._restamp([file for file in found if file.page is None], by_path)
        for file in found:
            row = by_path.get(file.path)
            if file.page is not None and row is not None and row.hash:
                self._refuse(file.path, row, Conflict("was changed in the file: 'sync_tree' takes that over"))
            elif file.page is not None and row is None:
                self.refused.add(file.path)
                self._remark(file.path, "is not known: 'sync_tree' takes it over")

    def _restamp(self, files: Sequence[_File], by_path: Mapping[str, Row]) -> None:
        stamps = [(by_path[file.path].uid, file.stamp) for file in files if is_settled(file.stamp)]
        for part in _parts(stamps, 1000):
            with self.hands.write() as tx:
                trees.restamp(tx, self.root, part)

    # ---- what goes out

    def _give(self, fresh: Sequence[int] | None, *, incoming: bool) -> None:
        """Write the files of notes that are new or changed, and remove those of notes that are gone."""
        with self.hands.read() as tx:
            rows = {row.uid: row for row in trees.rows(tx, self.root)} if fresh is None else self.rows
            fresh = trees.without_file(tx, self.root, self.scope) if fresh is None else fresh
        due = [row for row in rows.values() if row.note_id is not None and self._is_due(row, incoming=incoming)]
        back = [row for row in due if not row.path]
        if fresh or back:
            with self.hands.write() as tx:
                due = [row for row in due if row.path] + self._placed(tx, fresh, back, rows)
        done = 0
        for part in _parts(sorted(due, key=lambda row: row.path), _BATCH):
            with self.hands.read() as tx:
                known = notes.notes(tx, [row.note_id for row in part if row.note_id is not None])
            plans = [plan for row in part if (plan := self._plan_one(row, known.get(row.note_id or 0))) is not None]
            with self.hands.write() as tx:
                trees.intend(tx, self.root, [(made.uid, made.hash) for made, _, text in plans if text is not None])
            written = [made for plan in plans if (made := self._give_one(*plan)) is not None]
            if self.hands.keep:
                self.files.settle()
            with self.hands.write() as tx:
                for made in written:
                    trees.settle(tx, self.root, made)
            done += len(part)
            self.hands.progress(done, len(due))

    def _is_due(self, row: Row, *, incoming: bool) -> bool:
        if row.path in self.refused and not row.conflict:
            return False
        return row.changes > 0 or (row.path != "" and (not row.hash or (not incoming and row.path not in self.stamps)))

    def _placed(
        self, tx: sqlite3.Connection, fresh: Sequence[int], back: Sequence[Row], rows: Mapping[str, Row]
    ) -> list[Row]:
        """Choose places for notes without a file, and keep them; return what is to be written."""
        used = {pages.place_key(path) for path in (*self.stamps, *(row.path for row in rows.values()))}
        placed = []
        known = notes.notes(tx, [*fresh, *(row.note_id or 0 for row in back)])
        waiting = [Row(trees.uid_of(tx, note_id) or self._uid_for(tx, known[note_id]), "", note_id)
                   for note_id in fresh if note_id in known]  # fmt: skip
        # By uid, which is the same on every device: of two notes that would share a file the same one gets it.
        for row in sorted((*waiting, *back), key=lambda row: row.uid):
            note = known.get(row.note_id or 0)
            if note is None or note.status not in trees.SHOWN or note.scope != self.scope:
                trees.put(tx, self.root, replace(row, changes=0))
                continue
            path = pages.new_path(note, row.uid, used)
            used.add(pages.place_key(path))
            made = replace(row, path=path, hash="", stamp="", conflict=0)
            trees.put(tx, self.root, made)
            placed.append(made)
        return placed

    def _uid_for(self, tx: sqlite3.Connection, note: Note) -> str:
        uid = pages.make_uid(note)
        taken = tx.execute("SELECT 1 FROM tree_files WHERE uid = ? AND note_id <> ?", (uid, note.id)).fetchone()
        return f"{uid}-{note.id}" if taken else uid

    def _plan_one(self, row: Row, note: Note | None) -> tuple[Row, str | None, str | None] | None:
        """Return what is to be kept of a file, the stamp that it has, and what is to be written into it.

        The text is None where there is nothing to write. None where the file stays as it is.
        """
        if note is None or note.status not in trees.SHOWN or note.scope != self.scope:
            made = self._give_nothing(row, note)
            return None if made is None else (made, None, None)
        text = self._page_of(note, row.uid)
        page_hash = _digest(text)
        if row.conflict:
            self._write_copy(row.path, text)
            return replace(row, note_hash=page_hash), None, None
        if page_hash == row.note_hash and row.hash and row.path in self.stamps:
            return row, None, None
        try:
            known = self.files.read(row.path)
            if known is not None:
                if row.hash and _digest(known[0]) != row.hash:
                    raise Conflict("was changed meanwhile: sync again")
                if not row.hash and known[0] != text.encode():
                    raise Conflict("another file has the place of a note: move it")
                if row.hash:
                    document = frontmatter.parse(known[0].decode())
                    text = pages.changed_page(document, note, row.uid, self._usual_reason(note))
        except _REFUSALS as error:
            self._refuse(row.path, row, error)
            return None
        self.stirred = True
        made = replace(row, hash=_digest(text), note_hash=page_hash)
        if known is not None and known[0] == text.encode():
            return replace(made, stamp=_kept(known[1])), None, None
        return made, None if known is None else known[1], text

    def _give_one(self, made: Row, stamp: str | None, text: str | None) -> Row | None:
        """Write what was planned; return what is to be kept, None where somebody changed the file meanwhile."""
        if text is None:
            return made
        try:
            stamp = self._written(made.path, text, stamp)
        except _REFUSALS as error:
            self._refuse(made.path, made, error)
            return None
        self._tell(made.path, "written", made.note_id)
        return replace(made, stamp=_kept(stamp or ""))

    def _give_nothing(self, row: Row, note: Note | None) -> Row | None:
        if row.conflict and row.path in self.stamps:  # it was changed by a person, so it is kept
            return None
        try:
            known = self.files.read(row.path)
            if known is not None and _digest(known[0]) != row.hash:
                raise Conflict("was changed meanwhile: sync again")
            if known is not None:
                if self.hands.keep and not self.files.remove(row.path, known[1]):
                    raise Conflict("was changed meanwhile: sync again")
                self._tell(row.path, "removed", row.note_id, "its note is gone" if note is None else note.status)
        except _REFUSALS as error:
            self._refuse(row.path, row, error)
            return None
        self.stirred = True
        return replace(row, path="", stamp="", conflict=0)

    # ---- lists

    def _compile(self) -> None:
        """Write the list of each folder and the tables of the first page, where they are not what they are to be."""
        with self.hands.read() as tx:
            rows = {row.path: row for row in trees.compiled(tx, self.root)}
            if not self.stirred and rows and all(self.stamps.get(path) == row.stamp for path, row in rows.items()):
                return
            listed = trees.listed(tx, self.root)
        folders: dict[str, list[pages.Listed]] = {}
        for one in listed:
            folders.setdefault(one.path.rpartition("/")[0], []).append(one)
        wanted = {f"{folder}/{pages.INDEX_PAGE}": folder for folder in folders}
        made: list[Row] = []
        for path, folder in sorted(wanted.items()):
            made += self._compiled(path, functools.partial(_index, folder, folders[folder]))
        made += self._compiled(pages.ROOT_PAGE, lambda old: pages.root_page(old, listed))
        if pages.ROOT_PAGE not in rows and self.hands.keep and self.files.read(".gitattributes") is None:
            self.files.write(".gitattributes", pages.ATTRIBUTES.encode(), None)
        dropped = []
        for path, row in rows.items():
            if path != pages.ROOT_PAGE and path not in wanted:
                known = self.files.read(path)
                if known is not None and _digest(known[0]) == row.hash:
                    if self.hands.keep:
                        self.files.remove(path, known[1])
                    self._tell(path, "removed")
                dropped.append(row)
        if self.hands.keep:
            self.files.settle()
        if made or dropped:
            with self.hands.write() as tx:
                for row in made:
                    trees.put(tx, self.root, row)
                for row in dropped:
                    trees.drop(tx, self.root, row.uid)

    def _compiled(self, path: str, make: Callable[[str], str]) -> Iterator[Row]:
        try:
            known = self.files.read(path)
            old = "" if known is None else known[0].decode()
            text = make(old)
            stamp = None if known is None else known[1]
            if known is None or text != old:
                stamp = self._written(path, text, stamp)
                self._tell(path, "written")
        except UnicodeDecodeError:
            self._tell(path, "refused", reason="no UTF-8: save it as UTF-8")
        except _REFUSALS as error:
            self._refuse(path, None, error)
        else:
            yield Row(f":{path}", path, None, _digest(text), _kept(stamp or ""))

    # ---- small things

    def _written(self, path: str, text: str, expected: str | None) -> str | None:
        if not self.hands.keep:
            return None
        stamp = self.files.write(path, text.encode(), expected)
        if stamp is None:
            raise Conflict("was changed meanwhile: sync again")
        self.stamps[path] = stamp
        return stamp

    def _page_of(self, note: Note, uid: str) -> str:
        return pages.compose_page(note, uid, self._usual_reason(note))

    def _usual_reason(self, note: Note) -> str:
        return drafts.REASONS[self.hands.config.language][note.kind]

    def _in_batches(self, work: Sequence[_T], act: Callable[[sqlite3.Connection, _T], None]) -> None:
        done = 0
        self.wrote = self.wrote or bool(work)
        for part in _parts(work, _BATCH):
            with self.hands.write() as tx:
                for one in part:
                    act(tx, one)
            done += len(part)
            self.hands.progress(done, len(work))

    def _refuse(self, path: str, row: Row | None, error: GraphmemError) -> None:
        self.refused.add(path)
        # Never the value itself, which may be part of a secret.
        reason = f"{error.argument}: {error.reason}" if isinstance(error, InvalidInput) else str(error)
        self._tell(path, "refused", None if row is None else row.note_id, reason)

    def _tell(self, path: str, what: str, note_id: int | None = None, reason: str = "") -> None:
        self.stirred = self.stirred or what not in ("refused", "copy")
        self.changes.append(TreeChange(redaction.redact(path), what, note_id, redaction.redact(reason)))

    def _remark(self, path: str, remark: str) -> None:
        self.remarks.append(redaction.redact(f"{path}: {remark}"))


def _index(folder: str, listed: Sequence[pages.Listed], old: str) -> str:
    if old and not pages.is_compiled(old):
        raise Conflict("is no list that graphmem made: move it, and sync again")
    return pages.index_page(folder, listed)


def _digest(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def _kept(stamp: str) -> str:
    """Return the stamp by which a file is known from now on, '' where it has to be read once more."""
    return stamp if stamp and is_settled(stamp) else ""


def _parts(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
