"""A whole memory as JSON Lines and back: every row of every table under its own number, and the payload files.

The first line tells format and schema. Each line then is a row, `{table: {column: value}}` with bytes as
`{"base64": …}`, or a payload, `{"payload": digest, "base64": …}`; the last one counts the rows, so that a file that was
cut is told from a whole one. What is derived (the text index, vectors, postings) and who is just at work (leases) are
left out.

A memory that holds something takes no other in: equal numbers mean different things in two memories, and a journal
that undoes one of them would undo rows of the other. So a file is read into an empty memory, all of it or nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from graphmem.errors import Conflict, InvalidInput, SchemaTooNew, StoreCorrupt
from graphmem.store import postings, text_index
from graphmem.store.blobs import LARGEST_IN_ROW, blob_path, lies_in_row, read_blob, write_blob
from graphmem.store.schema import VERSION, migrate, open_empty
from graphmem.store.soundness import orphans

Progress = Callable[[int, int], None]

FORMAT = 1
_LEFT_OUT = frozenset({"text_sizes", "vectors", "counters", "leases", "_sqlite_migrations"})
_DERIVED_COLUMNS = frozenset({("scene_features", "posted")})
# Written when a memory is opened, so a new one has rows there.
_OF_OPENING = ("scope_aliases", "scopes", "active_days")
_SEQUENCES = "sqlite_sequence"
_DIGEST = re.compile("[0-9a-f]{64}")
# What would drive a terminal, reverse a line or end one; JSON has a form for each.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_TOLD_EACH = 1_000  # rows


@dataclass(slots=True)
class Tally:
    """What was written or read so far: rows by table, payloads, remarks."""

    rows: dict[str, int] = field(default_factory=dict)
    payloads: int = 0
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def to_lines(tx: sqlite3.Connection, database: str, at: str, tally: Tally, progress: Progress) -> Iterator[str]:
    """Yield a memory line by line, each with its end; progress is told rows done and all.

    A payload whose file is missing or damaged is remarked in the tally. Raises StoreFailed.
    """
    tables = _tables(tx)
    whole = sum(tx.execute(f'SELECT COUNT(*) FROM "{table.name}"').fetchone()[0] for table in tables)
    yield _line({"graphmem": "jsonl", "format": FORMAT, "schema": VERSION, "at": at})
    done = 0
    for table in tables:
        tally.rows[table.name] = 0
        for row in _rows(tx, table):
            yield _line({table.name: {name: _plain(value) for name, value in row.items()}})
            tally.rows[table.name] += 1
            done += 1
            if done % _TOLD_EACH == 0:
                progress(done, whole)
    for digest, payload in _payload_files(tx, database, tally.remarks):
        yield _line({"payload": digest, **_plain(payload)})
        tally.payloads += 1
    yield _line({"end": {"rows": tally.rows, "payloads": tally.payloads}})
    progress(whole, whole)


def load(
    tx: sqlite3.Connection, lines: Iterable[bytes], place: str, *, database: str, keep: bool, tally: Tally
) -> None:
    """Read the lines of a file into an empty memory, and make anew what is derived. The caller rolls back on an error.

    keep: payload files are written too; without, it is a rehearsal. Raises Conflict for a memory that holds something,
    InvalidInput naming the line for what is no such file or is damaged, SchemaTooNew, StoreFailed.
    """
    _require_empty(tx)
    numbered = _numbered(lines, place)
    schema = _schema_told(next(numbered, None), place)
    tx.execute("PRAGMA defer_foreign_keys = ON")
    payloads = _Payloads(database, keep=keep)
    if schema == VERSION:
        _put_rows(tx, numbered, place, payloads, tally)
    else:
        with open_empty(schema) as old:
            old.execute("BEGIN")
            _put_rows(old, numbered, place, payloads, tally)
            old.execute("COMMIT")
            migrate(old, place)
            _clear(tx)
            for table in _tables(old):
                for row in _rows(old, table):
                    _insert(tx, table, row)
    tally.remarks += payloads.settle(tx, place)
    if lost := orphans(tx):
        (table, target), rows = next(iter(lost.items()))
        raise InvalidInput("path", place, f"{table} row {rows[0]} points at a row of {target} that is not in the file")
    postings.settle_all(tx)
    text_index.clear(tx)
    for _ in text_index.fill(tx):
        pass


def _tables(tx: sqlite3.Connection) -> list[_Table]:
    """Return the tables that are carried: scopes before what would make them known, the sequences of ids last."""
    names = [
        name
        for (name,) in tx.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        )
        if name not in _LEFT_OUT and not name.startswith("text_")
    ]
    names.sort(key=lambda name: name != "scopes")
    tables = []
    for name in names:
        columns = tx.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        keys = sorted((place, column) for column, place in columns if place)
        kept = tuple(column for column, _ in columns if (name, column) not in _DERIVED_COLUMNS)
        tables.append(_Table(name, kept, tuple(column for _, column in keys)))
    return [*tables, _Table(_SEQUENCES, ("name", "seq"), ("name",))]


def _rows(tx: sqlite3.Connection, table: _Table) -> Iterator[dict[str, Any]]:
    condition, left_out = "", tuple[str, ...]()
    if table.name == _SEQUENCES:
        condition, left_out = f"WHERE name NOT IN ({', '.join('?' * len(_LEFT_OUT))})", tuple(_LEFT_OUT)
    statement = f"SELECT {_named(table.columns)} FROM {table.name} {condition} ORDER BY {_named(table.key)}"
    for row in tx.execute(statement, left_out):
        yield dict(zip(table.columns, row, strict=True))


def _named(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _line(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _plain(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _payload_files(tx: sqlite3.Connection, database: str, remarks: list[str]) -> Iterator[tuple[str, bytes]]:
    digests = tx.execute(
        "SELECT DISTINCT payload_digest FROM blocks WHERE payload IS NULL AND payload_digest <> '' ORDER BY 1"
    ).fetchall()
    for (digest,) in digests:
        try:
            payload = read_blob(database, digest)
        except StoreCorrupt as error:
            remarks.append(str(error))
            continue
        if payload is None:
            remarks.append(f"{blob_path(database, digest)} is missing: its blocks are written without it")
        else:
            yield digest, payload


# ---- reading


def _require_empty(tx: sqlite3.Connection) -> None:
    for table in _tables(tx):
        if table.name not in (*_OF_OPENING, _SEQUENCES) and tx.execute(f"SELECT 1 FROM {table.name}").fetchone():
            raise Conflict(
                "the memory holds something, and a whole memory is read into an empty one alone: name a new file "
                "with --db, or import what others wrote from their own files"
            )


def _clear(tx: sqlite3.Connection) -> None:
    """Remove what every new memory holds, of an older schema too."""
    there = {table.name for table in _tables(tx)}
    for name in (*_OF_OPENING, _SEQUENCES):
        if name in there:
            tx.execute(f"DELETE FROM {name}")


def _numbered(lines: Iterable[bytes], place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except (UnicodeDecodeError, ValueError, RecursionError):
            raise _wrong(place, number, "is no line of JSON in UTF-8: export it anew") from None
        if not isinstance(value, dict):
            raise _wrong(place, number, "is no JSON object: export it anew")
        yield number, value


def _wrong(place: str, number: int, reason: str) -> InvalidInput:
    return InvalidInput("path", f"{place}:{number}", reason)


def _schema_told(first: tuple[int, dict[str, Any]] | None, place: str) -> int:
    head = first[1] if first else {}
    if head.get("graphmem") != "jsonl":
        raise InvalidInput("path", place, "does not begin as a file of 'graphmem export jsonl' does: name one")
    known = {name: head.get(name) for name in ("format", "schema")}
    if not all(type(number) is int and number > 0 for number in known.values()):
        raise InvalidInput("path", place, "does not say its format and schema: export it anew")
    if known["format"] > FORMAT or known["schema"] > VERSION:
        raise SchemaTooNew(
            f"{place} has format {known['format']} and schema {known['schema']}, this graphmem knows {FORMAT} and "
            f"{VERSION} at the most: upgrade graphmem"
        )
    return int(known["schema"])


def _put_rows(
    tx: sqlite3.Connection,
    numbered: Iterator[tuple[int, dict[str, Any]]],
    place: str,
    payloads: _Payloads,
    tally: Tally,
) -> None:
    _clear(tx)
    tables = {table.name: table for table in _tables(tx)}
    number = 1
    for number, line in numbered:
        if "payload" in line:
            payloads.take(tx, line, place, number)
            tally.payloads += 1
            continue
        if len(line) != 1:
            raise _wrong(place, number, "is neither a row nor a payload: export it anew")
        ((name, row),) = line.items()
        if name == "end":
            _check_end(row, tally, place, number)
            if next(numbered, None) is not None:
                raise _wrong(place, number + 1, "comes behind the end: export it anew")
            return
        table = tables.get(name)
        if table is None or not isinstance(row, dict) or not row or not {*row} <= {*table.columns}:
            raise _wrong(place, number, "is no row of a table of this schema: export it anew")
        try:
            _insert(tx, table, {column: _stored(value) for column, value in row.items()})
        except (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, ValueError, OverflowError) as error:
            raise _wrong(place, number, f"is no row that {name} takes ({error}): export it anew") from None
        tally.rows[name] = tally.rows.get(name, 0) + 1
    raise _wrong(place, number, "is the last line, and the end is missing: the file was cut, take the whole one")


def _check_end(told: object, tally: Tally, place: str, number: int) -> None:
    counted = {"rows": {name: rows for name, rows in tally.rows.items() if rows}, "payloads": tally.payloads}
    if isinstance(told, dict) and isinstance(told.get("rows"), dict):
        told = {**told, "rows": {name: rows for name, rows in told["rows"].items() if rows}}
    if told != counted:
        raise _wrong(place, number, "counts other rows than there are: the file was changed, take the whole one")


def _insert(tx: sqlite3.Connection, table: _Table, row: dict[str, Any]) -> None:
    if table.name == _SEQUENCES:  # rows that were put in have made one already
        tx.execute(f"DELETE FROM {_SEQUENCES} WHERE name = ?", (row.get("name"),))
    marks = ", ".join("?" * len(row))
    tx.execute(f"INSERT INTO {table.name}({_named(row)}) VALUES ({marks})", tuple(row.values()))


def _stored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (KeyError, TypeError, binascii.Error):
        raise ValueError("bytes stand as base64") from None


class _Payloads:
    """The payloads of a file on their way to where this memory keeps them: in the row, or beside the database."""

    def __init__(self, database: str, *, keep: bool) -> None:
        self._database = database
        self._keep = keep
        self._beside: set[str] = set()

    def take(self, tx: sqlite3.Connection, line: dict[str, Any], place: str, number: int) -> None:
        """Keep the payload of a line, whose blocks have come before it."""
        digest = line["payload"]
        try:
            payload = _stored({"base64": line.get("base64")})
        except ValueError as error:
            raise _wrong(place, number, f"holds no payload ({error}): export it anew") from None
        if hashlib.sha256(payload).hexdigest() != digest:
            raise _wrong(place, number, "holds a payload that was changed: export it anew")
        if not tx.execute("SELECT 1 FROM blocks WHERE payload_digest = ?", (digest,)).fetchone():
            raise _wrong(place, number, "holds a payload of no block: export it anew")
        if lies_in_row(self._database, len(payload)):
            tx.execute("UPDATE blocks SET payload = ? WHERE payload_digest = ?", (payload, digest))
        else:
            self._put_beside(digest, payload)

    def _put_beside(self, digest: str, payload: bytes) -> None:
        self._beside.add(digest)
        if self._keep:
            write_blob(self._database, digest, payload)

    def settle(self, tx: sqlite3.Connection, place: str) -> list[str]:
        """Move payloads that are too large for their rows beside the database; return what is to be told of others."""
        for (digest,) in tx.execute("SELECT DISTINCT payload_digest FROM blocks WHERE payload_digest <> ''").fetchall():
            if not _DIGEST.fullmatch(digest):  # it becomes the name of a file
                raise InvalidInput("path", place, "holds a block whose digest is none: export it anew")
        large = tx.execute(
            "SELECT DISTINCT payload_digest, payload FROM blocks WHERE length(payload) > ?", (LARGEST_IN_ROW,)
        ).fetchall()
        for digest, payload in large:
            if not lies_in_row(self._database, len(payload)):
                self._put_beside(digest, payload)
                tx.execute("UPDATE blocks SET payload = NULL WHERE payload_digest = ?", (digest,))
        absent = "SELECT DISTINCT payload_digest FROM blocks WHERE payload IS NULL AND payload_digest <> ''"
        missing = {digest for (digest,) in tx.execute(absent)} - self._beside
        return [f"{len(missing)} payloads are not in the file: put their blocks again"] if missing else []
