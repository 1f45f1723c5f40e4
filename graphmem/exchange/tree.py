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

from collections.abc import Mapping

from graphmem.core.model import TreeReport
from graphmem.core.trust import is_person
from graphmem.exchange import tree_found, tree_in, tree_lists, tree_out
from graphmem.exchange.tree_forms import form_of
from graphmem.exchange.tree_run import Hands, Run
from graphmem.records import trees
from graphmem.records.trees import Row, Tree

_HELD = (
    "what binds waits for a person, since anybody may have written these files: 'approve' decides, or sync once with "
    "trust=True (--trust) where only you write here"
)


def export(root: str, tree: Tree, hands: Hands) -> TreeReport:
    """Write the notes of a scope as files; what people changed in files stays as it is, for a sync to take over."""
    return _run(Run(root, tree.scope, form_of(tree.form), hands), tree, incoming=False)


def sync(root: str, tree: Tree, hands: Hands) -> TreeReport:
    """Bring files and notes together; raise Conflict where all files are gone at once."""
    return _run(Run(root, tree.scope, form_of(tree.form), hands), tree, incoming=True)


def _run(run: Run, tree: Tree, *, incoming: bool) -> TreeReport:
    walk = run.files.walk(run.form.part)
    for path, reason in walk.passed:
        run.remark(path, reason)
    with run.hands.read() as tx:
        known = trees.tree_of(tx, run.root)
        # Nearly always nothing changed, and this is all that it takes to know.
        is_same = known == tree and not walk.unread and trees.stamps(tx, run.root) == walk.stamps
        lists = len(trees.compiled(tx, run.root)) if is_same else 0
        if is_same and (lists or run.form.parting) and not run.without_file(tx):
            return _report(run, len(walk.stamps) - lists)
        run.rows = {row.uid: row for row in trees.rows(tx, run.root)}
    for path, stamp in walk.left.items() if run.hands.keep else ():
        run.rooted.remove(path, stamp)
    if known != tree:
        with run.hands.write() as tx:
            # What is begun where nothing was is this memory's own; what was there before may be anybody's.
            is_own = known is None and not walk.stamps and not walk.unread
            trees.begin(tx, run.root, Tree(tree.scope, tree.form, trees.BEGUN) if is_own and not tree.trust else tree)
    by_path = {row.path: row for row in run.rows.values() if row.path}
    run.stamps = dict(walk.stamps)
    _pass_over_unread(run, walk.unread, by_path)
    strange = [
        path for path, stamp in walk.stamps.items()
        if (row := by_path.get(path)) is None or row.stamp != stamp or row.conflict
    ]  # fmt: skip
    found = tree_found.read(run, [path for path in sorted(strange) if tree_found.is_page(run, path, by_path)], by_path)
    if incoming:
        tree_in.take(run, found, by_path)
    else:
        tree_found.pass_over(run, found, by_path)
    tree_out.give(run, incoming=incoming)
    if run.form.parting is None:
        tree_lists.compile_lists(run)
    if run.hands.keep:
        run.files.settle()
    if run.held:
        run.remarks.append(_HELD)
    run.changes.sort(key=lambda change: (change.path, change.what))
    return _report(run, _unchanged(run, by_path))


def _pass_over_unread(run: Run, unread: Mapping[str, str], by_path: Mapping[str, Row]) -> None:
    """Leave files as they are that cannot be read, and the notes that they hold."""
    for file, reason in unread.items():
        run.tell(file, "refused", reason=reason)
        for path, row in by_path.items():
            if path.startswith(f"{file}#"):
                run.stamps[path] = row.stamp
                run.refused.add(path)


def _unchanged(run: Run, by_path: Mapping[str, Row]) -> int:
    """Return how many files of notes are what they were before."""
    touched = {change.path for change in run.changes}
    return sum(row.note_id is not None and path in run.stamps and path not in touched for path, row in by_path.items())


def _report(run: Run, unchanged: int) -> TreeReport:
    return TreeReport(
        run.root, run.scope, tuple(run.changes), unchanged, run.hands.keep, tuple(run.remarks), run.form.name,
        is_person(run.hands.source),
    )  # fmt: skip
