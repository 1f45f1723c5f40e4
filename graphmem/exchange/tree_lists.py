"""The lists of a tree of pages: one of each folder, and the tables of the first page."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

from graphmem.core import pages
from graphmem.errors import Conflict
from graphmem.exchange.tree_run import REFUSALS, Run, digest_of
from graphmem.records import trees
from graphmem.records.trees import Row


def compile_lists(run: Run) -> None:
    """Write the list of each folder and the tables of the first page, where they are not what they are to be."""
    with run.hands.read() as tx:
        rows = {row.path: row for row in trees.compiled(tx, run.root)}
        if not run.stirred and rows and all(run.stamps.get(path) == row.stamp for path, row in rows.items()):
            return
        listed = trees.listed(tx, run.root)
    folders: dict[str, list[pages.Listed]] = {}
    for one in listed:
        folders.setdefault(one.path.rpartition("/")[0], []).append(one)
    wanted = {f"{folder}/{pages.INDEX_PAGE}": folder for folder in folders}
    made: list[Row] = []
    for path, folder in sorted(wanted.items()):
        made += _compiled(run, path, functools.partial(_index, folder, folders[folder]))
    made += _compiled(run, pages.ROOT_PAGE, lambda old: pages.root_page(old, listed))
    if pages.ROOT_PAGE not in rows and run.hands.keep:
        with contextlib.suppress(*REFUSALS):  # without it a merge of lists takes a hand, and that is all
            if run.files.read(".gitattributes") is None:
                run.files.write(".gitattributes", pages.ATTRIBUTES.encode(), None)
    dropped = []
    for path, row in rows.items():
        if path != pages.ROOT_PAGE and path not in wanted:
            try:
                known = run.files.read(path)
                if known is not None and digest_of(known[0]) == row.hash:
                    if run.hands.keep:
                        run.files.remove(path, known[1])
                    run.tell(path, "removed")
            except REFUSALS as error:
                run.refuse(path, None, error)
            dropped.append(row)
    if run.hands.keep:
        run.files.settle()
    if made or dropped:
        with run.hands.write() as tx:
            for row in made:
                trees.put(tx, run.root, row)
            for row in dropped:
                trees.drop(tx, run.root, row.uid)


def _compiled(run: Run, path: str, make: Callable[[str], str]) -> Iterator[Row]:
    try:
        known = run.files.read(path)
        old = "" if known is None else known[0].decode()
        text = make(old)
        stamp = None if known is None else known[1]
        if known is None or text != old:
            stamp = run.written(path, text, stamp)
            run.tell(path, "written")
    except UnicodeDecodeError:
        run.tell(path, "refused", reason="no UTF-8: save it as UTF-8")
    except REFUSALS as error:
        run.refuse(path, None, error)
    else:
        yield Row(f":{path}", path, None, digest_of(text), run.files.kept(stamp or ""))


def _index(folder: str, listed: Sequence[pages.Listed], old: str) -> str:
    if old and not pages.is_compiled(old):
        raise Conflict("is no list that graphmem made: move it, and sync again")
    return pages.index_page(folder, listed)
