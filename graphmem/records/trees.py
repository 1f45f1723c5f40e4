"""What is kept of the files of trees, so that a sync knows which side changed."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from graphmem.core.model import TreeConflict
from graphmem.core.pages import Listed
from graphmem.store.lists import in_parts, of_scopes

SHOWN = ("live", "proposed")  # the statuses of notes that have files
_COLUMNS = "uid, path, note_id, hash, stamp, note_hash, writing, changes, conflict"
_IS_SHOWN = "status IN ('live', 'proposed')"


@dataclass(slots=True)
class Row:
    """A file as it was when it was last read or written. See the table `tree_files`."""

    uid: str
    path: str
    note_id: int | None
    hash: str = ""
    stamp: str = ""
    note_hash: str = ""
    writing: str = ""
    changes: int = 0
    conflict: int = 0


def scope_of(tx: sqlite3.Connection, root: str) -> str | None:
    """Return the scope of a tree, None for a root that was never written or read."""
    row = tx.execute("SELECT scope FROM trees WHERE root = ?", (root,)).fetchone()
    return None if row is None else str(row[0])


def begin(tx: sqlite3.Connection, root: str, scope: str) -> None:
    """Note that a folder is a tree."""
    tx.execute("INSERT INTO trees(root, scope) VALUES (?, ?) ON CONFLICT DO NOTHING", (root, scope))


def rows(tx: sqlite3.Connection, root: str) -> list[Row]:
    """Return all files of a tree."""
    return [Row(*row) for row in tx.execute(f"SELECT {_COLUMNS} FROM tree_files WHERE root = ?", (root,))]


def stamps(tx: sqlite3.Connection, root: str) -> dict[str, str]:
    """Return the stamps of the files of a tree by path, '' for one that is to be looked at in any case."""
    return dict(
        tx.execute(
            """SELECT path, CASE WHEN changes = 0 AND conflict = 0 THEN stamp ELSE '' END FROM tree_files
               WHERE root = ? AND (path <> '' OR changes <> 0)""",
            (root,),
        ).fetchall()
    )


def compiled(tx: sqlite3.Connection, root: str) -> list[Row]:
    """Return the lists of a tree."""
    statement = f"SELECT {_COLUMNS} FROM tree_files WHERE root = ? AND uid >= ':' AND uid < ';'"
    return [Row(*row) for row in tx.execute(statement, (root,))]


def row(tx: sqlite3.Connection, root: str, uid: str) -> Row | None:
    """Return one file of a tree."""
    found = tx.execute(f"SELECT {_COLUMNS} FROM tree_files WHERE root = ? AND uid = ?", (root, uid)).fetchone()
    return None if found is None else Row(*found)


def elsewhere(tx: sqlite3.Connection, uid: str, scope: str) -> Row | None:
    """Return the file of this uid in another tree of a scope."""
    found = tx.execute(
        f"""SELECT {_COLUMNS} FROM tree_files WHERE uid = ? AND root IN (SELECT root FROM trees WHERE scope = ?)
            ORDER BY path = '', root LIMIT 1""",
        (uid, scope),
    ).fetchone()
    return None if found is None else Row(*found)


def uid_of(tx: sqlite3.Connection, note_id: int) -> str | None:
    """Return the uid by which files know a note, None where there is none yet."""
    found = tx.execute("SELECT uid FROM tree_files WHERE note_id = ? LIMIT 1", (note_id,)).fetchone()
    return None if found is None else str(found[0])


def put(tx: sqlite3.Connection, root: str, row: Row) -> None:
    """Keep a file as it is now."""
    tx.execute(
        f"""INSERT INTO tree_files(root, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (root, uid) DO UPDATE SET path = excluded.path, note_id = excluded.note_id,
                hash = excluded.hash, stamp = excluded.stamp, note_hash = excluded.note_hash,
                writing = excluded.writing, changes = excluded.changes, conflict = excluded.conflict""",
        (
            root,
            row.uid,
            row.path,
            row.note_id,
            row.hash,
            row.stamp,
            row.note_hash,
            row.writing,
            row.changes,
            row.conflict,
        ),
    )


def settle(tx: sqlite3.Connection, root: str, row: Row) -> None:
    """Keep a file as it was written; what changed in its note since it was looked at still counts."""
    tx.execute(
        """UPDATE tree_files SET path = ?, hash = ?, stamp = ?, note_hash = ?, writing = '', changes = changes - ?,
               conflict = ?
           WHERE root = ? AND uid = ?""",
        (row.path, row.hash, row.stamp, row.note_hash, row.changes, row.conflict, root, row.uid),
    )


def intend(tx: sqlite3.Connection, root: str, hashes: Iterable[tuple[str, str]]) -> None:
    """Keep what is about to be written, by uid: who dies before it is settled has written it, and nobody else."""
    tx.executemany(
        "UPDATE tree_files SET writing = ? WHERE root = ? AND uid = ?", [(hash_, root, uid) for uid, hash_ in hashes]
    )


def recover(tx: sqlite3.Connection, root: str, uids: Iterable[str]) -> None:
    """Keep that files were written by somebody who died before it was settled."""
    tx.executemany(
        "UPDATE tree_files SET hash = writing, writing = '' WHERE root = ? AND uid = ?", [(root, uid) for uid in uids]
    )


def restamp(tx: sqlite3.Connection, root: str, stamps: Iterable[tuple[str, str]]) -> None:
    """Keep the stamps of files whose content is as it was, by uid."""
    tx.executemany(
        "UPDATE tree_files SET stamp = ? WHERE root = ? AND uid = ?", [(stamp, root, uid) for uid, stamp in stamps]
    )


def drop(tx: sqlite3.Connection, root: str, uid: str) -> None:
    """Forget a file."""
    tx.execute("DELETE FROM tree_files WHERE root = ? AND uid = ?", (root, uid))


def without_file(tx: sqlite3.Connection, root: str, scope: str) -> list[int]:
    """Return the notes of a scope that belong into a tree and were never in it."""
    found = tx.execute(
        f"""SELECT id FROM notes WHERE scope = ? AND {_IS_SHOWN} AND id NOT IN (
                SELECT note_id FROM tree_files WHERE root = ? AND note_id IS NOT NULL) ORDER BY id""",
        (scope, root),
    )
    return [note_id for (note_id,) in found]


def listed(tx: sqlite3.Connection, root: str) -> list[Listed]:
    """Return the files of a tree as its lists show them."""
    triggers: dict[int, list[str]] = {}
    found = tx.execute(
        f"""SELECT f.note_id, f.path, n.title, n.summary, n.status = 'proposed' FROM tree_files f
            JOIN notes n ON n.id = f.note_id WHERE f.root = ? AND f.path <> '' AND n.{_IS_SHOWN}""",
        (root,),
    ).fetchall()
    for ids, marks in in_parts([note_id for note_id, *_ in found]):
        for note_id, trigger in tx.execute(
            f"SELECT note_id, load_when FROM note_triggers WHERE note_id IN ({marks}) ORDER BY load_when", ids
        ):
            triggers.setdefault(note_id, []).append(trigger)
    return [Listed(path, title, summary, tuple(triggers.get(note_id, ())), bool(proposed))
            for note_id, path, title, summary, proposed in found]  # fmt: skip


def conflicts(tx: sqlite3.Connection, scopes: Iterable[str] | None) -> tuple[TreeConflict, ...]:
    """Return the files of the trees of some scopes whose note changed as well."""
    in_scope, values = of_scopes(None if scopes is None else list(scopes), column="t.scope")
    found = tx.execute(
        f"""SELECT f.root, f.path, f.note_id FROM tree_files f JOIN trees t ON t.root = f.root
            WHERE f.conflict = 1 {in_scope} ORDER BY f.root, f.path""",
        values,
    )
    return tuple(TreeConflict(*one) for one in found)
