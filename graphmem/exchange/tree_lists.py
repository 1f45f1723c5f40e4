"""The lists of a tree of pages: one of each folder, and the tables of the first page."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from graphmem.core import pages
from graphmem.errors import Conflict
from graphmem.exchange.tree_run import REFUSALS, Run, digest_of
from graphmem.records import trees
from graphmem.records.trees import Row


def compile_lists(run: Run) -> None:
    """Write the list of each folder and the tables of the first page, where they are not what they are to be."""
    with run.hands.read() as tx:
        rows = {row.path: row for row in trees.compiled(tx, run.root)}
    if pages.ROOT_PAGE not in rows:
        with run.hands.write() as tx:
            trees.stir(tx, run.root, ())
            rows = {row.path: row for row in trees.compiled(tx, run.root)}
    root = rows.pop(pages.ROOT_PAGE)
    made: list[Row] = []
    dropped: list[Row] = []
    for row in sorted(rows.values(), key=lambda row: row.path):
        if not _is_due(run, row):
            continue
        folder = row.path.rpartition("/")[0]
        with run.hands.read() as tx:
            listed = trees.listed(tx, run.root, folder)
        if listed:
            made += _compiled(run, row, functools.partial(_index, folder, listed))
        else:
            _remove(run, row)
            dropped.append(row)
    if _is_due(run, root):
        folders = {path.rpartition("/")[0] for path in rows.keys() - {row.path for row in dropped}}
        with run.hands.read() as tx:
            routed = trees.routed(tx, run.root)
        made += _compiled(run, root, lambda old: pages.root_page(old, folders, routed))
    if not root.hash and run.hands.keep:
        with contextlib.suppress(*REFUSALS):  # without it a merge of lists takes a hand, and that is all
            if run.files.read(".gitattributes") is None:
                run.files.write(".gitattributes", pages.ATTRIBUTES.encode(), None)
    if run.hands.keep:
        run.files.settle()
    if made or dropped:
        with run.hands.write() as tx:
            for row in made:
                trees.settle(tx, run.root, row)
            for row in dropped:
                trees.drop(tx, run.root, row)


def _is_due(run: Run, row: Row) -> bool:
    return row.changes > 0 or run.stamps.get(row.path) != row.stamp


def _compiled(run: Run, row: Row, make: Callable[[str], str]) -> Iterator[Row]:
    """Write a list; yield what is to be kept of it, with the changes that it shows by now."""
    try:
        known = run.files.read(row.path)
        old = "" if known is None else known[0].decode()
        stamp = None if known is None else known[1]
        text = make(old) if row.changes or known is None or digest_of(old) != row.hash else old
        if known is None or text != old:
            stamp = run.written(row.path, text, stamp)
            run.tell(row.path, "written")
    except UnicodeDecodeError:
        run.tell(row.path, "refused", reason="no UTF-8: save it as UTF-8")
    except REFUSALS as error:
        run.refuse(row.path, None, error)
    else:
        yield replace(row, hash=digest_of(text), stamp=run.files.kept(stamp or ""))


def _index(folder: str, listed: Sequence[pages.Listed], old: str) -> str:
    if old and not pages.is_compiled(old):
        raise Conflict("is no list that graphmem made: move it, and sync again")
    return pages.index_page(folder, listed)


def _remove(run: Run, row: Row) -> None:
    """Remove the list of a folder in which no note lies any more, unless a person wrote to it."""
    try:
        known = run.files.read(row.path)
        if known is not None and digest_of(known[0]) == row.hash:
            if run.hands.keep:
                run.files.remove(row.path, known[1])
            run.tell(row.path, "removed")
    except REFUSALS as error:
        run.refuse(row.path, None, error)
