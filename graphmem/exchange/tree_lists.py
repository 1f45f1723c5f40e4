"""The lists of a tree of pages: one of each folder, and the tables of the first page."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator

from graphmem.core import pages
from graphmem.errors import Conflict
from graphmem.exchange.tree_run import REFUSALS, Run, digest_of
from graphmem.records import trees
from graphmem.records.trees import Row


def compile_lists(run: Run) -> None:
    """Write the list of each folder and the tables of the first page, where they are not what they are to be."""
    with run.hands.read() as tx:
        rows = {row.path: row for row in trees.compiled(tx, run.root)}
        due = [path for path, row in rows.items() if row.changes or run.stamps.get(path) != row.stamp]
        if rows and not due:
            return
        wanted = {f"{folder}/{pages.INDEX_PAGE}": folder for folder in trees.folders(tx, run.root)}
    made: list[Row] = []
    for path in sorted({*due, *(wanted.keys() - rows.keys())} & wanted.keys()):
        made += _compiled(run, path, rows.get(path), functools.partial(_index, run, wanted[path]))
    if pages.ROOT_PAGE in due or pages.ROOT_PAGE not in rows:
        made += _compiled(
            run, pages.ROOT_PAGE, rows.get(pages.ROOT_PAGE), functools.partial(_root, run, wanted.values())
        )
    if pages.ROOT_PAGE not in rows and run.hands.keep:
        with contextlib.suppress(*REFUSALS):  # without it a merge of lists takes a hand, and that is all
            if run.files.read(".gitattributes") is None:
                run.files.write(".gitattributes", pages.ATTRIBUTES.encode(), None)
    dropped = [row for path, row in rows.items() if path != pages.ROOT_PAGE and path not in wanted]
    for row in dropped:
        _remove(run, row)
    if run.hands.keep:
        run.files.settle()
    if made or dropped:
        with run.hands.write() as tx:
            for row in made:
                if row.path in rows:
                    trees.settle(tx, run.root, row)
                else:
                    trees.put(tx, run.root, row)
            for row in dropped:
                trees.drop(tx, run.root, row.uid)


def _compiled(run: Run, path: str, row: Row | None, make: Callable[[str], str]) -> Iterator[Row]:
    """Write a list; yield what is to be kept of it, with the changes that it shows by now."""
    try:
        known = run.files.read(path)
        old = "" if known is None else known[0].decode()
        stamp = None if known is None else known[1]
        is_same = row is not None and not row.changes and known is not None and digest_of(old) == row.hash
        text = old if is_same else make(old)
        if known is None or text != old:
            stamp = run.written(path, text, stamp)
            run.tell(path, "written")
    except UnicodeDecodeError:
        run.tell(path, "refused", reason="no UTF-8: save it as UTF-8")
    except REFUSALS as error:
        run.refuse(path, None, error)
    else:
        changes = 0 if row is None else row.changes
        yield Row(f":{path}", path, None, digest_of(text), run.files.kept(stamp or ""), changes=changes)


def _index(run: Run, folder: str, old: str) -> str:
    if old and not pages.is_compiled(old):
        raise Conflict("is no list that graphmem made: move it, and sync again")
    with run.hands.read() as tx:
        return pages.index_page(folder, trees.listed(tx, run.root, folder))


def _root(run: Run, folders: Iterable[str], old: str) -> str:
    with run.hands.read() as tx:
        return pages.root_page(old, folders, trees.routed(tx, run.root))


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
