"""Traces of what was removed: how a file is cleaned of them, and where they are looked for.

`secure_delete` overwrites what a transaction removes, but not the copies of it that splits of pages left behind while
it was off: of 400 words 17 were still in the file. So a VACUUM follows, which writes the live rows anew, nothing else.
"""

import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from graphmem.core.keys import clean_text, entity_key, fold
from graphmem.core.model import Trace
from graphmem.core.tokens import tokens_of
from graphmem.errors import GraphmemError, InvalidInput, StoreCorrupt, StoreFailed
from graphmem.store import fts5, text_index
from graphmem.store.connection import Connection
from graphmem.store.copies import DRAFT, Copy, find_bytes, free_bytes, open_copy, parts_of
from graphmem.store.database import SqliteStore
from graphmem.store.opening import is_file
from graphmem.store.schema import refuse_newer

_PAGE = 4096
# SQLite's own order: https://www.sqlite.org/tempfiles.html#temporary_file_storage_locations
_TEMPORARY = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108


# ---- cleaning


def require_room(path: str) -> None:
    """Raise StoreFailed where there is no room to clean a file: for a copy of it, and for its -wal as long again."""
    if not is_file(path):
        return
    size = sum(os.stat(part).st_size for part in (path, f"{path}-wal") if os.path.exists(part))
    folders = [Path(path).parent, _temporary_folder()]
    same = len({folder.stat().st_dev for folder in folders}) == 1
    for folder in folders:
        free = free_bytes(folder)
        if free < (needed := 2 * size if same else size):
            raise StoreFailed(
                f"{path}: to remove for good takes {needed} bytes of room in {folder}, which has {free}; "
                f"make room and try again, nothing was changed"
            )


def _temporary_folder() -> Path:
    usable = (Path(folder) for folder in _TEMPORARY if folder and os.access(folder, os.W_OK | os.X_OK))
    return next(usable, Path(tempfile.gettempdir()))


def clean(store: SqliteStore) -> tuple[str, ...]:
    """Write the file anew of its live rows and empty its -wal; return remarks on what could not be done, and why."""
    if not is_file(store.path):
        return ()
    try:
        with store.idle() as connection:
            connection.execute("VACUUM")
            held, frames, copied = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except GraphmemError as error:
        return (
            f"what was removed is overwritten, but older copies may lie in free places of {store.path} and in its "
            f"-wal ({error}): purge for good once more, by any part of a name, which cleans the file also where "
            f"nothing is left to remove",
        )
    if held:
        # A reader of an older state keeps the log from being copied back; one of the last state, from being cut alone.
        files = f"{store.path}-wal" if copied == frames else f"{store.path} and {store.path}-wal"
        return (
            f"somebody reads the file, so what was removed may still be in {files}: it goes when the last program that "
            f"has the file open closes it, or with the next purge for good",
        )
    return ()


# ---- looking


def check_text(text: str) -> str:
    """Return the text to look for; raise InvalidInput where nothing of it can be seen."""
    if not isinstance(text, str) or not entity_key(clean_text(text)):
        raise InvalidInput("text", text, "nothing that can be seen is left of it; give the text to look for")
    return clean_text(text)


def copies_beside(path: str) -> list[Path]:
    """Return the databases that graphmem itself left beside a memory: kept before a reset or a restore, and drafts.

    One may be missing and its -wal or its payloads there.
    """
    if not is_file(path):
        return []
    name = Path(path).name
    found = {
        file.with_name(re.sub(r"(-wal|-shm|-journal|\.blobs)$", "", file.name))
        for file in Path(path).parent.iterdir()
        if file.name.startswith((f"{name}.before-reset-", f"{name}.before-restore", DRAFT))
    }
    return sorted(found)


def copies_remark(path: str) -> tuple[str, ...]:
    """Return a remark on the copies beside a memory, none where there are none."""
    if not (copies := copies_beside(path)):
        return ()
    listed = ", ".join(map(str, copies))
    return (
        f"copies that were made before may still hold it, and stay: {listed}; 'graphmem verify-forgotten' looks into "
        f"them too, and what is not needed is for you to remove, with its .blobs",
    )


def find_beside(path: str, text: str) -> tuple[tuple[Trace, ...], tuple[str, ...]]:
    """Return where a text is in the copies beside a memory, and remarks on how they were read.

    Raises what `open_copy` does, but for a copy that is damaged, of which the bytes are looked at alone.
    """
    found: list[Trace] = []
    remarks: list[str] = []
    forms = _forms(text)
    for file in copies_beside(path):
        rows: tuple[Trace, ...] = ()
        if file.exists():
            try:
                with open_copy(file) as copy:
                    rows = _in_database(copy.connection, text, forms)
                    remarks += copy.remarks
            except StoreCorrupt as error:
                remarks.append(f"{error}; its bytes were looked at all the same")
        found += (replace(trace, where=f"{file}: {trace.where}") for trace in rows)
        found += _in_files(str(file), forms)
    return tuple(found), tuple(remarks)


def find(copy: Copy, path: str, text: str) -> tuple[Trace, ...]:
    """Return where a text is: in rows and the text index of a copy, in the bytes of the file and of those beside it.

    Raises SchemaTooNew, and StoreFailed for the database of another program, in which nothing is found too easily.
    """
    refuse_newer(copy.connection, path)
    if not copy.connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'scenes'").fetchone():
        raise StoreFailed(f"{path} holds no scenes, so it is not a graphmem memory: check the path")
    forms = _forms(text)
    return (*_in_database(copy.connection, text, forms), *_in_files(path, forms))


def _in_database(tx: Connection, text: str, forms: tuple[bytes, ...]) -> tuple[Trace, ...]:
    # Also what is no UTF-8 is looked at.
    tx.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    return (*_in_rows(tx, text, forms), *_in_index(tx, text))


def _forms(text: str) -> tuple[bytes, ...]:
    """Return the ways in which a text may be stored, with small ASCII letters; in a scene key `_` stands for a blank.

    >>> [form.decode() for form in _forms('Ab  "c"')]
    ['ab  "c"', 'ab  \\\\"c\\\\"', 'ab "c"', 'ab \\\\"c\\\\"', 'ab_"c"', 'ab_\\\\"c\\\\"']
    """
    key = entity_key(text)
    composed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    spelled = dict.fromkeys((text, *composed, fold(text), key, key.replace(" ", "_")))
    written = (form for one in spelled for form in (one, _in_json(one, True), _in_json(one, False)))
    return tuple(dict.fromkeys(form.encode().lower() for form in written))


def _in_json(text: str, in_ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=in_ascii)[1:-1]


def _in_rows(tx: Connection, text: str, forms: tuple[bytes, ...]) -> Iterator[Trace]:
    key = entity_key(text)
    tables = tx.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow') ORDER BY name"
    ).fetchall()
    for (table,) in tables:
        quoted = table.replace('"', '""')
        rows = tx.execute(f'SELECT * FROM "{quoted}"')
        columns = [column[0] for column in rows.description]
        counts = dict.fromkeys(columns, 0)
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                if isinstance(value, str | bytes):
                    counts[column] += _holds(value, key, forms)
        for column, count in counts.items():
            if count:
                yield Trace(f"{table}.{column}", count)


def _holds(value: str | bytes, key: str, forms: tuple[bytes, ...]) -> bool:
    raw = (value if isinstance(value, bytes) else value.encode(errors="surrogateescape")).lower()
    if any(form in raw for form in forms):
        return True
    # What is ASCII has no other spelling but in its blanks.
    if isinstance(value, bytes) or (value.isascii() and " " not in key):
        return False
    return key in entity_key(value)


def _in_index(tx: Connection, text: str) -> Iterator[Trace]:
    if not tx.execute("SELECT 1 FROM sqlite_master WHERE name = 'text_index'").fetchone():
        return
    wanted = set(tokens_of(text))
    if wanted and (stale := text_index.stale(tx, wanted)):
        yield Trace("text index", len(stale))
    if dead := fts5.dead_terms(tx, wanted):
        yield Trace("text index, terms of what was dropped", len(dead))


def _in_files(path: str, forms: tuple[bytes, ...]) -> Iterator[Trace]:
    payloads = sorted(file for file in Path(f"{path}.blobs").rglob("*") if file.is_file())
    for file in (*parts_of(Path(path)), *payloads):
        if offsets := find_bytes(file, forms):
            yield Trace(str(file), len({offset // _PAGE for offset in offsets}), min(offsets))
