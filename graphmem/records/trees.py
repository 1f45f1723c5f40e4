"""What is kept of the files of trees, so that a sync knows which side changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphmem.core.model import Note, TreeConflict, TreeState
from graphmem.core.pages import ROOT_PAGE, Listed, make_uid
from graphmem.store.lists import in_list, of_scopes, rows_about
from graphmem.store.transaction import Transaction

_COLUMNS = "uid, path, note_id, hash, stamp, note_hash, writing, changes, conflict"
_SHOWN = """FROM tree_files f JOIN notes n ON n.id = f.note_id
            WHERE f.root = ? AND f.path <> '' AND n.status IN ('live', 'proposed')"""  # by lists
BEGUN, TOLD = 1, 2  # how a tree is trusted: it was begun here, somebody said so


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


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder of notes as files. form: how notes are files there. trust: 0 for none, `BEGUN` or `TOLD`."""

    scope: str
    form: str
    trust: int


def tree_of(tx: Transaction, root: str) -> Tree | None:
    """Return what is known of a folder, None for one that was never written or read."""
    row = tx.execute("SELECT scope, form, trust FROM trees WHERE root = ?", (root,)).fetchone()
    return None if row is None else Tree(*row)


def begin(tx: Transaction, root: str, tree: Tree) -> None:
    """Note that a folder is a tree, and how far it is trusted."""
    tx.execute(
        """INSERT INTO trees(root, scope, form, trust) VALUES (?, ?, ?, ?)
           ON CONFLICT (root) DO UPDATE SET trust = excluded.trust""",
        (root, tree.scope, tree.form, tree.trust),
    )


def rows(tx: Transaction, root: str) -> list[Row]:
    """Return all files of a tree."""
    return [Row(*row) for row in tx.execute(f"SELECT {_COLUMNS} FROM tree_files WHERE root = ? ORDER BY uid", (root,))]


def stamps(tx: Transaction, root: str) -> dict[str, str]:
    """Return the stamps of the files of a tree by path, '' for one that is to be looked at in any case."""
    return dict(
        tx.execute(
            """SELECT path, CASE WHEN changes = 0 AND conflict = 0 THEN stamp ELSE '' END FROM tree_files
               WHERE root = ? AND (path <> '' OR changes <> 0)""",
            (root,),
        ).fetchall()
    )


def compiled(tx: Transaction, root: str) -> list[Row]:
    """Return the lists of a tree."""
    statement = f"SELECT {_COLUMNS} FROM tree_files WHERE root = ? AND uid >= ':' AND uid < ';' ORDER BY uid"
    return [Row(*row) for row in tx.execute(statement, (root,))]


def due(tx: Transaction, root: str) -> list[Row]:
    """Return the files of a tree whose notes changed, and those that are still to be written."""
    statement = f"""SELECT {_COLUMNS} FROM tree_files
                    WHERE root = ? AND note_id IS NOT NULL AND (changes > 0 OR (path <> '' AND hash = ''))
                    ORDER BY uid"""
    return [Row(*row) for row in tx.execute(statement, (root,))]


def paths(tx: Transaction, root: str) -> list[str]:
    """Return where the files of a tree lie, those that are still to be written too."""
    return [
        path
        for (path,) in tx.execute("SELECT path FROM tree_files WHERE root = ? AND path <> '' ORDER BY uid", (root,))
    ]


def row(tx: Transaction, root: str, uid: str) -> Row | None:
    """Return one file of a tree."""
    found = tx.execute(f"SELECT {_COLUMNS} FROM tree_files WHERE root = ? AND uid = ?", (root, uid)).fetchone()
    return None if found is None else Row(*found)


def elsewhere(tx: Transaction, uid: str, scope: str, form: str) -> Row | None:
    """Return the file of this uid in another tree of a scope, one of the same form before others."""
    found = tx.execute(
        f"""SELECT {_COLUMNS} FROM tree_files JOIN trees USING (root) WHERE uid = ? AND scope = ?
            ORDER BY form <> ?, path = '', root LIMIT 1""",
        (uid, scope, form),
    ).fetchone()
    return None if found is None else Row(*found)


def uid_of(tx: Transaction, note_id: int) -> str | None:
    """Return the uid by which files know a note, None where there is none yet."""
    found = tx.execute("SELECT uid FROM tree_files WHERE note_id = ? ORDER BY root, uid LIMIT 1", (note_id,)).fetchone()
    return None if found is None else str(found[0])


def free_uid(tx: Transaction, note: Note) -> str:
    """Return a name by which files may know a note, and no other one."""
    uid = make_uid(note)
    taken = tx.execute("SELECT 1 FROM tree_files WHERE uid = ? AND note_id <> ?", (uid, note.id)).fetchone()
    return f"{uid}-{note.id}" if taken else uid


def put(tx: Transaction, root: str, row: Row) -> None:
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


def settle(tx: Transaction, root: str, row: Row) -> None:
    """Keep a file as it was written; what changed in its note since it was looked at still counts."""
    tx.execute(
        """UPDATE tree_files SET path = ?, hash = ?, stamp = ?, note_hash = ?, writing = '', changes = changes - ?,
               conflict = ?
           WHERE root = ? AND uid = ?""",
        (row.path, row.hash, row.stamp, row.note_hash, row.changes, row.conflict, root, row.uid),
    )


def stir(tx: Transaction, root: str, lists: Iterable[str]) -> None:
    """Keep that lists of a tree, named by their paths, are due to be made anew, and so the tables of its first page."""
    tx.executemany(
        """INSERT INTO tree_files(root, uid, path, changes) VALUES (?, ?, ?, 1)
           ON CONFLICT (root, uid) DO UPDATE SET changes = tree_files.changes + 1""",
        [(root, f":{path}", path) for path in {*lists, ROOT_PAGE}],
    )


def intend(tx: Transaction, root: str, hashes: Iterable[tuple[str, str]]) -> None:
    """Keep what is about to be written, by uid: who dies before it is settled has written it, and nobody else."""
    tx.executemany(
        "UPDATE tree_files SET writing = ? WHERE root = ? AND uid = ?", [(hash_, root, uid) for uid, hash_ in hashes]
    )


def recover(tx: Transaction, root: str, uids: Iterable[str]) -> None:
    """Keep that files were written by somebody who died before it was settled."""
    tx.executemany(
        "UPDATE tree_files SET hash = writing, writing = '' WHERE root = ? AND uid = ?", [(root, uid) for uid in uids]
    )


def restamp(tx: Transaction, root: str, stamps: Iterable[tuple[str, str]]) -> None:
    """Keep the stamps of files whose content is as it was, by uid."""
    tx.executemany(
        "UPDATE tree_files SET stamp = ? WHERE root = ? AND uid = ?", [(stamp, root, uid) for uid, stamp in stamps]
    )


def drop(tx: Transaction, root: str, row: Row) -> None:
    """Forget a list, unless it is due by what changed since it was looked at."""
    tx.execute("DELETE FROM tree_files WHERE root = ? AND uid = ? AND changes = ?", (root, row.uid, row.changes))


def without_file(tx: Transaction, root: str, scope: str, statuses: Sequence[str], kinds: Sequence[str]) -> list[int]:
    """Return the notes of a scope, of some statuses and kinds, that were never in a tree."""
    (of_statuses, status_values), (of_kinds, kind_values) = in_list(statuses), in_list(kinds)
    found = tx.execute(
        f"""SELECT id FROM notes WHERE scope = ? AND status IN ({of_statuses}) AND kind IN ({of_kinds}) AND id NOT IN (
                SELECT note_id FROM tree_files WHERE root = ? AND note_id IS NOT NULL) ORDER BY id""",
        (scope, *status_values, *kind_values, root),
    )
    return [note_id for (note_id,) in found]


def listed(tx: Transaction, root: str, folder: str) -> list[Listed]:
    """Return the files of a folder, without those of folders below it, as its list shows them."""
    start = f"{folder}/"
    condition = "substr(f.path, 1, ?) = ? AND instr(substr(f.path, ?), '/') = 0"
    return _listed(tx, root, condition, (len(start), start, len(start) + 1))


def routed(tx: Transaction, root: str) -> list[Listed]:
    """Return the files of a tree that tell when they are to be read, as its first page shows them."""
    return _listed(tx, root, "f.note_id IN (SELECT note_id FROM note_triggers)")


def _listed(tx: Transaction, root: str, condition: str, values: tuple[str | int, ...] = ()) -> list[Listed]:
    found = tx.execute(
        f"SELECT f.note_id, f.path, n.title, n.summary, n.status = 'proposed' {_SHOWN} AND {condition} ORDER BY f.uid",
        (root, *values),
    ).fetchall()
    triggers: dict[int, list[str]] = {}
    asked = "SELECT note_id, load_when FROM note_triggers WHERE note_id IN ({marks}) ORDER BY load_when"
    for note_id, trigger in rows_about(tx, asked, [note_id for note_id, *_ in found]):
        triggers.setdefault(note_id, []).append(trigger)
    return [Listed(path, title, summary, tuple(triggers.get(note_id, ())), bool(proposed))
            for note_id, path, title, summary, proposed in found]  # fmt: skip


def states(tx: Transaction) -> tuple[TreeState, ...]:
    """Return all trees, whatever their scope."""
    waiting: dict[str, list[str]] = {}
    for one in conflicts(tx, None):
        waiting.setdefault(one.root, []).append(one.path)
    found = tx.execute("SELECT root, scope, form FROM trees ORDER BY root")
    return tuple(TreeState(root, scope, form, tuple(waiting.get(root, ()))) for root, scope, form in found)


def conflicts(tx: Transaction, scopes: Iterable[str] | None) -> tuple[TreeConflict, ...]:
    """Return the files of the trees of some scopes whose note changed as well."""
    in_scope, values = of_scopes(None if scopes is None else list(scopes), column="t.scope")
    found = tx.execute(
        f"""SELECT f.root, f.path, f.note_id FROM tree_files f JOIN trees t ON t.root = f.root
            WHERE f.conflict = 1 {in_scope} ORDER BY f.root, f.path""",
        values,
    )
    return tuple(TreeConflict(*one) for one in found)
