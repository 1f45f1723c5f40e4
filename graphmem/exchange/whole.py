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
import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from graphmem.core.lines import json_line
from graphmem.errors import Conflict, GraphmemError, InvalidInput, SchemaTooNew, StoreCorrupt, StoreFailed
from graphmem.store import postings, rows, text_index
from graphmem.store.blobs import LARGEST_IN_ROW, blob_path, lies_in_row, read_blob, write_blob
from graphmem.store.schema import VERSION, migrate, open_empty
from graphmem.store.transaction import RowsRefused, Transaction

Progress = Callable[[int, int], None]

FORMAT = 1
_DIGEST = re.compile("[0-9a-f]{64}")
_TOLD_EACH = 1_000  # rows


@dataclass(slots=True)
class Tally:
    """What was written or read so far: rows by table, payloads, remarks."""

    rows: dict[str, int] = field(default_factory=dict)
    payloads: int = 0
    remarks: list[str] = field(default_factory=list)


def to_lines(tx: Transaction, database: str, at: str, tally: Tally, progress: Progress) -> Iterator[str]:
    """Yield a memory line by line, each with its end; progress is told rows done and all.

    A payload whose file is missing or damaged is remarked in the tally. Raises StoreFailed.
    """
    tables = rows.tables(tx)
    whole = sum(rows.count(tx, table) for table in tables)
    yield _line({"graphmem": "jsonl", "format": FORMAT, "schema": VERSION, "at": at})
    done = 0
    for table in tables:
        tally.rows[table.name] = 0
        for row in rows.read(tx, table):
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


@contextlib.contextmanager
def open_lines(place: str, progress: Progress) -> Iterator[Iterator[bytes]]:
    """Yield the lines of a file; progress is told bytes read and all. Raises StoreFailed."""

    def lines(stream: BinaryIO, size: int) -> Iterator[bytes]:
        done = 0
        for number, line in enumerate(stream, 1):
            done += len(line)
            if number % _TOLD_EACH == 0:
                progress(done, size)
            yield line
        progress(done, done)

    try:
        with Path(place).open("rb") as stream:
            yield lines(stream, os.fstat(stream.fileno()).st_size)
    except GraphmemError:  # StoreFailed is an OSError too
        raise
    except OSError as error:
        raise StoreFailed(f"{place} cannot be read: {error.strerror}; check the path and its permissions") from error


def check_head(place: str) -> None:
    """Raise what `load` raises for a file that does not begin as one does."""
    with open_lines(place, lambda done, size: None) as lines:
        _schema_told(next(_numbered(lines, place), None), place)


def load(tx: Transaction, lines: Iterable[bytes], place: str, *, database: str, keep: bool, tally: Tally) -> None:
    """Read the lines of a file into an empty memory, and make anew what is derived. The caller rolls back on an error.

    keep: payload files are written too; without, it is a rehearsal. Raises Conflict for a memory that holds something,
    InvalidInput naming the line for what is no such file or is damaged, SchemaTooNew, StoreFailed.
    """
    if not rows.is_empty(tx):
        raise Conflict(
            "the memory holds something, and a whole memory is read into an empty one alone: name a new one with "
            "--db, or import what others wrote from their own files"
        )
    numbered = _numbered(lines, place)
    schema = _schema_told(next(numbered, None), place)
    tx.engine.defer_foreign_keys(tx)
    payloads = _Payloads(database, keep=keep)
    if schema == VERSION:
        _put_rows(tx, numbered, place, payloads, tally)
    else:
        with open_empty(schema) as old:
            old.execute("BEGIN")
            _put_rows(old, numbered, place, payloads, tally)
            old.execute("COMMIT")
            migrate(old, place)
            rows.clear(tx)
            for each in rows.tables(old):
                for row in rows.read(old, each):
                    rows.insert(tx, each, row)
    tally.remarks += payloads.settle(tx, place)
    if lost := tx.engine.orphans(tx):
        (table, target), numbers = next(iter(lost.items()))
        raise InvalidInput(
            "path", place, f"{table} row {numbers[0]} points at a row of {target} that is not in the file"
        )
    postings.settle_all(tx)
    tx.words.clear(tx)
    for _ in text_index.fill(tx):
        pass


def _line(value: object) -> str:
    return json_line(value) + "\n"


def _plain(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _payload_files(tx: Transaction, database: str, remarks: list[str]) -> Iterator[tuple[str, bytes]]:
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
    version, schema = head.get("format"), head.get("schema")
    if not isinstance(version, int) or not isinstance(schema, int) or min(version, schema) < 1:
        raise InvalidInput("path", place, "does not say its format and schema: export it anew")
    if version > FORMAT or schema > VERSION:
        raise SchemaTooNew(
            f"{place} has format {version} and schema {schema}, this graphmem knows {FORMAT} and {VERSION} at the "
            "most: upgrade graphmem"
        )
    return schema


def _put_rows(
    tx: Transaction,
    numbered: Iterator[tuple[int, dict[str, Any]]],
    place: str,
    payloads: _Payloads,
    tally: Tally,
) -> None:
    rows.clear(tx)
    tables = {table.name: table for table in rows.tables(tx)}
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
            rows.insert(tx, table, {column: _stored(value) for column, value in row.items()})
        except (RowsRefused, ValueError, OverflowError) as error:
            raise _wrong(place, number, f"is no row that {name} takes ({error}): export it anew") from None
        tally.rows[name] = tally.rows.get(name, 0) + 1
    raise _wrong(place, number, "is the last line, and the end is missing: the file was cut, take the whole one")


def _check_end(told: object, tally: Tally, place: str, number: int) -> None:
    counted = {"rows": {name: number for name, number in tally.rows.items() if number}, "payloads": tally.payloads}
    if isinstance(told, dict) and isinstance(told.get("rows"), dict):
        told = {**told, "rows": {name: number for name, number in told["rows"].items() if number}}
    if told != counted:
        raise _wrong(place, number, "counts other rows than there are: the file was changed, take the whole one")


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

    def take(self, tx: Transaction, line: dict[str, Any], place: str, number: int) -> None:
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

    def settle(self, tx: Transaction, place: str) -> list[str]:
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
