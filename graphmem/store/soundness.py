"""What SQLite itself can say of a file: whether it is whole, and how it is written."""

import sqlite3

_MOST_LINES = 100


def damage(tx: sqlite3.Connection) -> list[str]:
    """Return what the integrity check complains of, a line each."""
    lines = [line for (line,) in tx.execute(f"PRAGMA integrity_check({_MOST_LINES})")]
    return [] if lines == ["ok"] else lines


def orphans(tx: sqlite3.Connection) -> dict[tuple[str, str], list[int | None]]:
    """Return the rows that point at one that is gone, by their table and the other; None for a row without an id."""
    found: dict[tuple[str, str], list[int | None]] = {}
    for table, row, parent, _ in tx.execute("PRAGMA foreign_key_check"):
        found.setdefault((table, parent), []).append(row)
    return found


def rebuild_indexes(tx: sqlite3.Connection) -> bool:
    """Make the indexes of all tables anew; return False where rows are double that must be unique."""
    try:
        tx.execute("REINDEX")
    except sqlite3.IntegrityError:
        return False
    return True


def has_log(tx: sqlite3.Connection) -> bool:
    """Tell whether the file is in write-ahead mode, in which readers and writers do not wait for each other."""
    return bool(tx.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def size(tx: sqlite3.Connection) -> int:
    """Return the bytes of the database, as its pages are."""
    (size,) = tx.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    return int(size)
