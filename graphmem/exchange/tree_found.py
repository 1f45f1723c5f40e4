"""The files that there are, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphmem.core import pages
from graphmem.errors import Conflict, InvalidInput
from graphmem.exchange.tree_run import File, Run, digest_of, parts
from graphmem.records import trees
from graphmem.records.trees import Row


def is_page(run: Run, path: str, by_path: Mapping[str, Row]) -> bool:
    """Tell whether a file is one of a note; report what is left alone."""
    if path in by_path:
        return by_path[path].note_id is not None
    if run.form.parting is not None:
        return not _is_known_copy(run, path) and ".conflict." not in path.rpartition("#")[0]
    folder, _, name = path.rpartition("/")
    if name == pages.INDEX_PAGE or path == pages.ROOT_PAGE:
        return False
    if pages.is_copy(name):
        if not _is_known_copy(run, path):
            run.tell(path, "copy", reason="another program left it: take over what is missing, and remove it")
        return False
    if not name.endswith(".md"):
        return False
    if not folder:
        run.remark(path, "lies in no folder, and is left alone; notes lie in folders")
        return False
    return True


def _is_known_copy(run: Run, path: str) -> bool:
    return any(row.conflict and run.form.copy(row.path) == path for row in run.rows.values())


def read(run: Run, paths: Sequence[str], by_path: Mapping[str, Row]) -> list[File]:
    """Return what files hold; those that hold what they did before have no page."""
    found: list[File] = []
    ours: list[Row] = []
    for path in paths:
        row = by_path.get(path)
        try:
            read = run.files.read(path)
            if read is None:
                run.stamps.pop(path, None)
                continue
            data, stamp = read
            run.stamps[path] = stamp
            digest = digest_of(data)
            if row is not None and row.writing == digest:  # who wrote it died before that was kept
                row.hash, row.writing = digest, ""
                ours.append(row)
            is_same = row is not None and row.hash == digest and not row.conflict
            page = None if is_same else run.form.read(data, path)
            found.append(File(path, stamp, digest, page))
        except InvalidInput as error:
            run.refuse(path, row, error)
    if ours:
        with run.hands.write() as tx:
            trees.recover(tx, run.root, [row.uid for row in ours])
    return found


def pass_over(run: Run, found: Sequence[File], by_path: Mapping[str, Row]) -> None:
    """Leave files as they are that people changed."""
    restamp(run, [file for file in found if file.page is None], by_path)
    for file in found:
        row = by_path.get(file.path)
        if file.page is not None and row is not None and row.hash:
            run.refuse(file.path, row, Conflict("was changed in the file: 'sync_tree' takes that over"))
        elif file.page is not None and row is None:
            run.refused.add(file.path)
            run.remark(file.path, "is not known: 'sync_tree' takes it over")


def restamp(run: Run, files: Sequence[File], by_path: Mapping[str, Row]) -> None:
    """Keep the stamps of files that hold what they did before."""
    stamps = [(by_path[file.path].uid, file.stamp) for file in files if run.files.kept(file.stamp)]
    for part in parts(stamps, 1000):
        with run.hands.write() as tx:
            trees.restamp(tx, run.root, part)
