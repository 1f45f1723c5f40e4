"""What comes in: what people changed in files, moved, added and removed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphmem.core import pages, redaction
from graphmem.core.model import Note
from graphmem.core.pages import UID, Page
from graphmem.core.times import read_time, utc_text
from graphmem.core.trust import is_person
from graphmem.errors import Conflict, InvalidInput
from graphmem.exchange import tree_found
from graphmem.exchange.tree_run import REFUSALS, File, Run, digest_of
from graphmem.records import drafts, notes, trees
from graphmem.records.trees import Row
from graphmem.store.transaction import Transaction


def take(run: Run, found: Sequence[File], by_path: Mapping[str, Row]) -> None:
    """Take over what people changed in files, and what they moved, added and removed."""
    # Present are files that nobody looked at, that are the same, and that cannot be read.
    looked_at = {file.path for file in found}
    present = {row.uid for path, row in by_path.items() if path in run.stamps and path not in looked_at}
    present |= {by_path[file.path].uid for file in found if file.page is None}
    tree_found.restamp(run, [file for file in found if file.page is None], by_path)
    if found or len(present) < len(by_path):
        missing = [row for row in by_path.values() if row.note_id is not None and row.hash and row.uid not in present]
        written = [row for row in by_path.values() if row.note_id is not None and row.hash]
        if len(missing) == len(written) > 0 and not found and _is_emptied(run):
            raise Conflict(f"{run.root}: all files are gone at once: 'export_tree' writes them anew")
        pairs = _paired(run, [file for file in found if file.page is not None], by_path, present)
        run.in_batches(pairs, functools.partial(_take_one, run))
        gone = [row for row in by_path.values() if row.note_id is not None and row.uid not in present]
        run.in_batches([row for row in gone if row.hash], functools.partial(_take_gone, run))


def _is_emptied(run: Run) -> bool:
    """Tell whether not even that is left of a tree which people leave when they remove their notes."""
    return pages.ROOT_PAGE not in run.stamps if run.form.parting is None else not run.rooted.exists()


def _paired(
    run: Run, found: Sequence[File], by_path: Mapping[str, Row], present: set[str]
) -> list[tuple[File, Row | None]]:
    """Return files with what is kept of them, None for new ones; note which are present by that.

    A file is known by its uid, else by its place, else by what it holds.
    """

    def rank(file: File) -> tuple[int, str]:
        row = run.rows.get(uid_of(file.page))
        return (0 if row and row.path == file.path else 1 if row else 2 if file.path in by_path else 3), file.path

    pairs: list[tuple[File, Row | None]] = []
    rest: list[File] = []
    new_uids: set[str] = set()
    for file in sorted(found, key=rank):
        uid = uid_of(file.page)
        row = run.rows.get(uid) if uid else by_path.get(file.path)
        if not uid and row is not None and not row.hash:  # the place of a file that is still to be written
            row = None
        if (row is not None and row.uid in present) or uid in new_uids:
            told = f"it names the same note as {row.path}" if row and row.path else "it names a note of another file"
            run.tell(file.path, "copy", reason=f"{told}: remove it, or its id to remember it as another note")
            run.refused.add(file.path)
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
        row.hash: row for row in run.rows.values()
        if row.hash and row.uid not in present and (row.path or row.changes)
    }  # fmt: skip
    for file in rest:
        row = missing.pop(file.hash, None)
        if row is not None:
            present.add(row.uid)
        pairs.append((file, row))
    return sorted(pairs, key=lambda pair: pair[0].path)


def uid_of(page: Page | None) -> str:
    """Return the name of a note that a page tells, '' for none that can be one."""
    return page.uid if page is not None and UID.fullmatch(page.uid) else ""


def _take_one(run: Run, tx: Transaction, pair: tuple[File, Row | None]) -> None:
    file, expected = pair
    assert file.page is not None
    row = None if expected is None else _still(run, tx, expected)
    if (row is None) != (expected is None):
        run.remark(file.path, "another sync took it over")
        return
    told, remarked = len(run.changes), len(run.remarks)
    try:
        with run.hands.write() as inner:
            if row is None:
                _take_new(run, inner, file, file.page)
            else:
                _take_known(run, inner, file, file.page, row)
    except REFUSALS as error:
        del run.changes[told:], run.remarks[remarked:]
        run.refuse(file.path, row, error)
        if row is not None:
            _note_held(run, tx, row)


def _still(run: Run, tx: Transaction, expected: Row) -> Row | None:
    """Return what is kept of a file by now, None where another sync changed it."""
    row = trees.row(tx, run.root, expected.uid)
    if row is None or (row.path, row.hash, row.conflict) != (expected.path, expected.hash, expected.conflict):
        return None
    return row


def _take_known(run: Run, tx: Transaction, file: File, page: Page, row: Row) -> None:
    note = notes.notes(tx, [row.note_id or 0]).get(row.note_id or 0)
    if note is None:
        _take_purged(run, tx, file, row)
        return
    path = run.name(file.path, row.uid)
    made = replace(row, path=path, hash=file.hash, stamp=run.files.kept(file.stamp), writing="", changes=0, conflict=0)
    is_back = not row.path
    if path != row.path:
        run.stirred |= {row.path, path} - {""}
    is_same = file.hash == row.hash and not row.conflict
    if note.status == "archived" and is_back:
        note = notes.restore(tx, note.id, run.hands.act("restore"), run.hands.config)
        run.tell(file.path, "restored", note.id)
        row = replace(row, changes=row.changes + 1)
    elif not run.has_page(note, row):
        if is_back:
            raise Conflict(f"note {note.id} is {note.status}: remove the file, or its id to remember it as a new note")
        if is_same:
            trees.put(tx, run.root, replace(made, changes=row.changes or 1))
            return
        trees.put(tx, run.root, replace(made, conflict=1, changes=row.changes))
        run.tell(file.path, "conflict", note.id, f"the note is {note.status} by now, and the file was changed")
        return
    if row.path not in ("", file.path, path):
        run.tell(path, "moved", note.id, f"from {row.path}")
    if is_same:
        trees.put(tx, run.root, replace(made, changes=row.changes))
        return
    edits = run.form.edits(page, note, drafts.REASONS[run.hands.config.language])
    status = page.told.get("status", note.status)
    has_changed = row.changes > 0 and run.note_hash(note, row.uid) != row.note_hash
    copy = run.form.copy(row.path) if row.conflict else ""
    if edits and not is_back and (copy in run.stamps if row.conflict else has_changed):
        _keep_both(run, tx, made, note)
        return
    if edits:
        redaction.refuse_secrets(**edits)
        report = run.hands.edit(tx, note.id, edits, run.hands.act("edit"))
        note = report.note
        if report.operation is not None:
            run.tell(file.path, "edited", note.id, ", ".join(edits))
            if not pages.LISTED.isdisjoint(edits):
                run.stirred.add(path)
    if status != note.status:
        note = _turn(run, tx, note, str(status), path)
    if row.conflict:
        run.remove_copy(row.path)
    trees.put(
        tx, run.root, replace(made, note_hash=run.note_hash(note, row.uid), changes=int(not run.has_page(note, row)))
    )
    for remark in page.remarks:
        run.remark(file.path, remark)


def _take_purged(run: Run, tx: Transaction, file: File, row: Row) -> None:
    """Remove the file of a note that was removed for good, unless a person wrote to it, or put it back."""
    if file.hash != row.hash or not row.changes:
        raise Conflict("its note was removed for good: remove the file, or its id to remember it as a new note")
    if run.hands.keep and not run.files.remove(file.path, file.stamp):
        raise Conflict("was changed meanwhile: sync again")
    trees.put(tx, run.root, replace(row, changes=0))
    run.tell(file.path, "removed", row.note_id, "its note is gone")


def _turn(run: Run, tx: Transaction, note: Note, status: str, path: str) -> Note:
    if (note.status, status) == ("proposed", "live"):
        if not is_person(run.hands.source):
            run.held = True
            raise InvalidInput("status", status, f"'graphmem approve {note.id}' approves it: this tree is not trusted")
        run.tell(path, "approved", note.id)
        return notes.approve(tx, note.id, run.hands.act("approve")).note
    if status == "archived":
        if run.form.parting is None:
            raise InvalidInput("status", status, "remove the file to archive its note")
        run.tell(path, "archived", note.id)
        return notes.put_away(tx, note.id, run.hands.act("forget"), run.hands.config)
    if status != "proposed":
        raise InvalidInput("status", status, "a person writes 'live' to approve what is proposed, and nothing else")
    run.remark(path, "its note is live, whatever the file says")
    return note


def _keep_both(run: Run, tx: Transaction, made: Row, note: Note) -> None:
    text = run.page_of(note, made.uid)
    # Before it is noted: where a conflict is noted and there is no copy, a person took it away.
    run.write_copy(made.path, text)
    trees.put(tx, run.root, replace(made, conflict=1, note_hash=digest_of(text)))
    reason = f"both changed; the note is in {run.form.copy(made.path)}, {run.form.settles}"
    run.tell(made.path, "conflict", note.id, reason)


def _take_new(run: Run, tx: Transaction, file: File, page: Page) -> None:
    told = page.told
    uid = uid_of(page)
    other = trees.elsewhere(tx, uid, run.scope, run.form.name) if uid else None
    if other is not None and other.note_id is not None:
        # What another tree of the scope knows of the note tells which side changed.
        run.stirred.add(file.path)
        _take_known(run, tx, file, page, replace(other, path=file.path, changes=other.changes or 1, conflict=0))
        return
    texts = {key: value for key, value in told.items() if key in pages.FIELDS and key != "pinned"}
    texts |= {"title": pages.title_of(page, file.path), "kind": pages.kind_of(page, file.path)}
    empty = dict.fromkeys(("slot", "summary", "highlight", "reason"), "")
    given: dict[str, Any] = {"labels": (), "load_when": (), **empty, **texts}
    session, place = str(told.get("session", "")), str(told.get("place") or run.root)
    source = str(told.get("source") or run.hands.source)
    if is_person(source) and not is_person(run.hands.source):
        source = run.hands.source
    redaction.refuse_secrets(**given, body=page.body, source=source, path=file.path, session=session, place=place)
    status = str(told.get("status") or "live")
    if status not in run.form.statuses:
        raise InvalidInput("status", status, f"give one of {', '.join(run.form.statuses)}")
    if given["kind"] not in run.form.kinds:
        raise InvalidInput("kind", given["kind"], f"give one of {', '.join(run.form.kinds)}")
    draft = drafts.check_note(
        **given, body=page.body, scope=run.scope, pinned=bool(told.get("pinned")), status=status, source=source,
        config=run.hands.config,
    )  # fmt: skip
    draft = drafts.ruled(draft, backed=False)
    act = run.hands.act("remember")
    created = str(told.get("created") or "")
    at = utc_text(read_time(created, run.hands.config.zone, argument="created")) if created else act.at
    origin = replace(act, actor=draft.source, reason=draft.reason, at=at, session=session, place=place)
    report = notes.remember(tx, draft, origin, at_is_given=bool(created))
    note = report.note
    if note.status == "superseded":
        raise Conflict(f"note {note.superseded_by} has the slot {note.slot!r}, and was told later: keep one of both")
    known = trees.uid_of(tx, note.id)
    here = trees.row(tx, run.root, known) if known else None
    if note.status == "proposed" and status == "live":
        run.held = True
    if here is not None and here.path == file.path:  # another sync took it over
        return
    if here is not None and here.path in run.stamps:
        raise Conflict(f"{here.path} says the same: keep one of both")
    uid = known or uid or trees.free_uid(tx, note)
    path = run.name(file.path, uid)
    made = Row(uid, path, note.id, file.hash, run.files.kept(file.stamp), run.note_hash(note, uid))
    if run.form.parting is not None and not uid_of(page):
        made = replace(made, changes=1)  # it is to be written with its name
    trees.put(tx, run.root, made)
    run.tell(file.path, "added", note.id, "" if report.created else "the same was known")
    for remark in (*page.remarks, *report.remarks):
        run.remark(file.path, remark)


def _take_gone(run: Run, tx: Transaction, expected: Row) -> None:
    row = _still(run, tx, expected)
    if row is None:
        return
    note = notes.notes(tx, [row.note_id or 0]).get(row.note_id or 0)
    if note is None or not run.has_page(note, row):
        if row.conflict:
            run.remove_copy(row.path)
        trees.put(tx, run.root, replace(row, path="", stamp="", changes=0, conflict=0))
        run.stirred.add(row.path)
    elif row.conflict and run.form.copy(row.path) in run.stamps:
        trees.put(tx, run.root, replace(row, hash="", stamp="", conflict=0))
        run.remove_copy(row.path)
    elif row.changes and run.note_hash(note, row.uid) != row.note_hash:
        trees.put(tx, run.root, replace(row, hash="", stamp=""))
        run.remark(row.path, "was removed, and its note changed since; it is written anew")
    else:
        try:
            with run.hands.write() as inner:
                notes.put_away(inner, note.id, run.hands.act("forget"), run.hands.config)
                trees.put(inner, run.root, replace(row, path="", stamp="", changes=0, conflict=0))
        except REFUSALS as error:
            run.refuse(row.path, row, error)
            _note_held(run, tx, row)
            return
        run.tell(row.path, "archived", note.id)


def _note_held(run: Run, tx: Transaction, row: Row) -> None:
    """Note where a file was refused because nobody is trusted in it."""
    note = notes.notes(tx, [row.note_id or 0]).get(row.note_id or 0)
    if note is not None and not is_person(run.hands.source) and notes.binds(note, run.hands.config):
        run.held = True
