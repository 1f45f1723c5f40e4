"""The trees of notes as files: whether they are there, copies that sync programs left in them, conflicts that wait."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from graphmem.core.model import FileState, TreeState
from graphmem.surfaces.doctor import copies
from graphmem.surfaces.doctor.findings import Finding, good, note, problem

_MOST_COPIES = 20


def look(state: FileState) -> Iterator[Finding]:
    """Yield what there is to say of each tree of a memory."""
    for tree in state.trees:
        yield from _tree(tree)


def _tree(tree: TreeState) -> Iterator[Finding]:
    root = Path(tree.root)
    if not root.is_dir() or root.is_symlink():
        told = f"{root} (scope {tree.scope or 'user'}) is not there" if not root.is_dir() else f"{root} is a link"
        yield problem("tree", told, f"bring it back, or write it anew: graphmem tree export {quote(str(root))}")
        return
    if not os.access(root, os.R_OK | os.X_OK):
        yield problem("tree", f"{root} cannot be read", f"chmod u+rx {quote(str(root))}")
        return
    yield good("tree", f"{root} (scope {tree.scope or 'user'}, form {tree.form})")
    laid = {path: _laid(path) for path in tree.conflicts}
    for path, note_file in laid.items():
        told = f"{root / path} and its note both changed"
        remedy = f"keep the file: remove {note_file}; keep the note: move that over the file, or what it says into it"
        yield problem("conflict", told, f"{remedy}; then graphmem tree sync {quote(str(root))}")
    found = copies.copies_in(root, known=frozenset(laid.values()))
    for copy in itertools.islice(found, _MOST_COPIES):
        of = "" if copy.beside is None else f", a copy of {copy.beside.name}"
        same = "" if copy.beside is None or copy.diff else " that holds the same"
        told = f"{copy.path}{of}{same} and is not read"
        yield Finding("note", "tree copy", told, "take over what is missing, and remove it", copy.diff)
    if more := sum(1 for _ in found):
        yield note("tree copy", f"{more} more copies in {root}", "remove those that are shown first")


def _laid(path: str) -> str:
    """Return where a sync has laid the note of a conflict, below the root.

    >>> _laid("facts/a.md"), _laid("memory.json#lessons/1")
    ('facts/a.conflict.md', 'memory.conflict.json')
    """
    stem, _, ending = path.partition("#")[0].rpartition(".")
    return f"{stem}.conflict.{ending}"
