"""What goes out: the files of notes that are new or changed, and of those that are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphmem.core import pages
from graphmem.core.keys import place_key
from graphmem.core.model import Note
from graphmem.errors import Conflict
from graphmem.exchange.tree_run import REFUSALS, Run, digest_of, parts
from graphmem.records import notes, trees
from graphmem.records.trees import Row
from graphmem.store.transaction import Transaction


def give(run: Run, *, incoming: bool) -> None:
    """Write the files of notes that are new or changed, and remove those of notes that are gone."""
    with run.hands.read() as tx:
        rows = {row.uid: row for row in trees.due(tx, run.root)}
        fresh = run.without_file(tx)
    if not incoming:
        rows = {row.uid: row for row in run.rows.values() if _is_missing(run, row)} | rows
    due = [row for row in rows.values() if row.path not in run.refused or row.conflict]
    back = [row for row in due if not row.path]
    if fresh or back:
        with run.hands.write() as tx:
            due = [row for row in due if row.path] + _placed(run, tx, fresh, back)
            run.note_stirred(tx)
    done = 0
    for part in parts(sorted(due, key=lambda row: row.path), run.files.at_once):
        with run.hands.read() as tx:
            known = notes.notes(tx, [row.note_id for row in part if row.note_id is not None])
        plans = [plan for row in part if (plan := _plan_one(run, row, known.get(row.note_id or 0))) is not None]
        with run.hands.write() as tx:
            trees.intend(tx, run.root, [(made.uid, made.hash) for made, _, text in plans if text is not None])
        written = [made for plan in plans if (made := _give_one(run, *plan)) is not None]
        if run.hands.keep and (lost := run.files.settle()):
            written = _without_lost(run, written, {row.uid: row.path for row in part}, lost)
        with run.hands.write() as tx:
            for made in written:
                trees.settle(tx, run.root, made)
            run.note_stirred(tx)
        done += len(part)
        run.hands.progress(done, len(due))


def _without_lost(run: Run, written: Sequence[Row], paths: Mapping[str, str], lost: Mapping[str, str]) -> list[Row]:
    """Return what was written or removed after all; tell of the rest. paths: of the files, by uid."""
    run.changes = [one for one in run.changes if one.path not in lost or one.what not in ("written", "removed")]
    kept = []
    for made in written:
        path = paths[made.uid]
        if path in lost:
            run.refuse(path, made, Conflict(lost[path]))
        else:
            kept.append(made)
    return kept


def _is_missing(run: Run, row: Row) -> bool:
    return row.note_id is not None and row.path != "" and row.path not in run.stamps


def _placed(run: Run, tx: Transaction, fresh: Sequence[int], back: Sequence[Row]) -> list[Row]:
    """Choose places for notes without a file, and keep them; return what is to be written."""
    used = {place_key(path) for path in (*run.stamps, *trees.paths(tx, run.root))}
    placed = []
    known = notes.notes(tx, [*fresh, *(row.note_id or 0 for row in back)])
    waiting = [Row(trees.uid_of(tx, note_id) or trees.free_uid(tx, known[note_id]), "", note_id)
               for note_id in fresh if note_id in known]  # fmt: skip
    # By uid, which is the same on every device: of two notes that would share a file the same one gets it.
    for row in sorted((*waiting, *back), key=lambda row: row.uid):
        note = known.get(row.note_id or 0)
        if note is None or not run.is_shown(note):
            trees.put(tx, run.root, replace(row, changes=0))
            if note is None:  # where its file lay is known no more, and lists may still show it
                run.stirred.update(one.path for one in trees.compiled(tx, run.root) if one.path != pages.ROOT_PAGE)
            continue
        path = run.form.place(note, row.uid, used)
        used.add(place_key(path))
        made = replace(row, path=path, hash="", stamp="", conflict=0)
        trees.put(tx, run.root, made)
        placed.append(made)
    return placed


def _plan_one(run: Run, row: Row, note: Note | None) -> tuple[Row, str | None, str | None] | None:
    """Return what is to be kept of a file, the stamp that it has, and what is to be written into it.

    The text is None where there is nothing to write. None where the file stays as it is.
    """
    if note is None or not run.has_page(note, row):
        made = _give_nothing(run, row, note)
        return None if made is None else (made, None, None)
    text = run.page_of(note, row.uid)
    page_hash = digest_of(text)
    if row.conflict and row.path not in run.stamps:  # a person took the file away, and so ended it
        run.remove_copy(row.path)
        row = replace(row, hash="", stamp="", conflict=0)
    try:
        if row.conflict:
            run.stirred.add(row.path)
            run.write_copy(row.path, text)
            return replace(row, note_hash=page_hash), None, None
        if page_hash == row.note_hash and row.hash and row.path in run.stamps and run.is_named(row):
            return row, None, None
        known = run.files.read(row.path)
        if known is not None:
            if row.hash and digest_of(known[0]) != row.hash:
                raise Conflict("was changed meanwhile: sync again")
            if not row.hash and known[0] != text.encode():
                raise Conflict("another file has the place of a note: move it")
            if row.hash:
                text = run.form.changed(known[0].decode(), note, row.uid, run.usual_reason(note))
    except REFUSALS as error:
        run.refuse(row.path, row, error)
        return None
    run.stirred.add(row.path)
    made = replace(row, hash=digest_of(text), note_hash=page_hash)
    if known is not None and known[0] == text.encode():
        return replace(made, stamp=run.files.kept(known[1])), None, None
    return made, None if known is None else known[1], text


def _give_one(run: Run, made: Row, stamp: str | None, text: str | None) -> Row | None:
    """Write what was planned; return what is to be kept, None where somebody changed the file meanwhile."""
    if text is None:
        return made
    try:
        stamp = run.written(made.path, text, stamp)
    except REFUSALS as error:
        run.refuse(made.path, made, error)
        return None
    run.tell(made.path, "written", made.note_id)
    return replace(made, stamp=run.files.kept(stamp or ""))


def _give_nothing(run: Run, row: Row, note: Note | None) -> Row | None:
    if row.conflict and row.path in run.stamps:  # it was changed by a person, so it is kept
        return None
    if row.conflict:
        run.remove_copy(row.path)
    try:
        known = run.files.read(row.path)
        if known is not None and digest_of(known[0]) != row.hash:
            raise Conflict("was changed meanwhile: sync again")
        if known is not None:
            if run.hands.keep and not run.files.remove(row.path, known[1]):
                raise Conflict("was changed meanwhile: sync again")
            run.tell(row.path, "removed", row.note_id, "its note is gone" if note is None else note.status)
    except REFUSALS as error:
        run.refuse(row.path, row, error)
        return None
    run.stirred.add(row.path)
    return replace(row, path="", stamp="", conflict=0)
