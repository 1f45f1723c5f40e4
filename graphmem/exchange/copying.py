"""A whole memory from one store into another: files and tenants of servers, either way.

The source is seen in one state. It is read twice: first for what it holds, a digest for each table, and whether it can
be kept where it is to go; then page by page in the order of keys, each page a transaction there. So a copy that was
broken off goes on behind the last keys that came, as long as the source is what it was; else it begins anew. What is
derived (the text index, postings) is made there, in one last transaction that compares both, digest by digest, and only
then takes the mark away that says that the copy is not finished. Nobody else opens a memory with that mark or writes
into it, so what is removed where a copy begins anew is what came from the source, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from graphmem.config import Config, require_writing
from graphmem.core.addresses import is_server, without_password
from graphmem.core.model import CopyReport
from graphmem.errors import Conflict, InvalidInput, StoreBusy, StoreCorrupt, StoreFailed
from graphmem.store import postings, rows, text_index
from graphmem.store.blobs import lies_in_row, read_blob, remove_blob, write_blob
from graphmem.store.database import LONGEST_NAME
from graphmem.store.opening import (
    MEMORY_PATH,
    is_file,
    is_there,
    of_tenant,
    open_store,
    tenants_at,
)
from graphmem.store.placing import new_file
from graphmem.store.rows import Table, Unfinished
from graphmem.store.transaction import RowsRefused, Store, Transaction

Progress = Callable[[int, int], None]

_AT_ONCE = 2_000  # rows of a page
_MOST_PAYLOAD = 16 << 20  # bytes of payloads in a transaction
_LATER = ("notes", "superseded_by")  # names a row that may come later
_DIFFERS = "-"  # in place of the digest of a source, where a copy came out different
_SUFFIX = ".db"
_CUT = re.compile(r".+~[0-9a-f]{32}\.db")  # a name that is cut short; in others a ~ is escaped
_WHOLE_NAME = ".tenant"  # behind the name of such a file: that of what holds the tenant's
_OF_ONE_CHANGE = re.compile(r" nothing was changed[,;]")  # true of the last transaction, and not of a copy


@dataclass(frozen=True, slots=True)
class _Held:
    """What a store holds: rows and a digest of them by table, payloads, what was found missing."""

    counts: dict[str, int]
    digests: dict[str, str]
    payloads: int
    remarks: tuple[str, ...]

    @property
    def digest(self) -> str:
        """One digest of all."""
        return hashlib.sha256(repr(sorted(self.digests.items())).encode()).hexdigest()


@dataclass(slots=True)
class _Came:
    """How many rows have come, and of how many; none before a copy has begun."""

    rows: int = 0
    whole: int = 0


class _Refused(Exception):
    """Rows that the destination does not take."""


def place_of(argument: str, given: object) -> str:
    """Return a place that was given as text. Raises InvalidInput for what is no place that lasts."""
    if not isinstance(given, str | os.PathLike) or not str(given).strip() or str(given) == MEMORY_PATH:
        raise InvalidInput(argument, given, "name a file, or a tenant by its address: postgresql://…?tenant=NAME")
    return os.fsdecode(given)


def copy(source: str, dest: str, *, config: Config, anew: bool, progress: Progress) -> CopyReport:
    """Copy a memory into an empty one, or go on with that; see `Memory.copy`. progress is told steps done and all."""
    require_writing(config, without_password(dest))
    came = _Came()
    # Around the blocks of the stores, behind which alone their errors are told in our words.
    with _telling_how_far(came), contextlib.ExitStack() as stack:
        reading = replace(config, read_only=True)
        given = stack.enter_context(contextlib.closing(open_store(source, config=reading, create=False)))
        tx = stack.enter_context(given.read())
        steps = _Steps(progress, tx)
        # Refused before there is anything, and without a change to what is there.
        if is_there(dest, config):
            with contextlib.closing(open_store(dest, config=reading, create=False, unfinished=True)) as there:
                _refuse_other(tx, given.path, there)
        held = _held(tx, given.path, steps, to_server=is_server(dest))
        taking = stack.enter_context(contextlib.closing(open_store(dest, config=config, create=True, unfinished=True)))
        begun = _begin(taking, given.path, held, steps, anew=anew)
        if begun.is_whole:
            return _report(given.path, taking.path, held, begun)
        came.rows, came.whole = begun.resumed, sum(held.counts.values())
        going = _Going(tx, given.path, taking, held, begun, steps, came)
        going.carry()
        going.settle()
        return _report(given.path, taking.path, held, begun)


@contextlib.contextmanager
def _telling_how_far(came: _Came) -> Iterator[None]:
    """Let an error that ends a copy say what has come, and that the same copy goes on."""
    try:
        yield
    except (StoreBusy, StoreFailed) as error:
        if not came.rows:
            raise
        raise type(error)(
            f"{_OF_ONE_CHANGE.sub('', str(error))}; {came.rows} of {came.whole} rows have come and stay: the same copy "
            "again goes on behind them, as long as the source is what it was"
        ) from error


def copy_tenants(source: str, dest: str, *, config: Config, anew: bool, progress: Progress) -> tuple[CopyReport, ...]:
    """Copy every memory of a server or of a folder of files; see `Memory.copy_tenants`."""
    if not is_server(source) and not is_server(dest):
        raise InvalidInput("dest", dest, "one of both is the address of a server, the other may be a folder of files")
    if not is_server(source):
        ways = [(file, of_tenant(dest, name), name) for file, name in _files_in(source)]
    else:
        of_tenant(source, "")  # refuses one that names a tenant
        ways = [(of_tenant(source, name), _place(dest, name), name) for name in tenants_at(source, config)]
    if ways and not is_server(dest):
        try:
            Path(dest).expanduser().mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreFailed(
                f"{dest} cannot be made: {error.strerror}; check the folder that it is to be in"
            ) from None
    reports = []
    for number, (one, other, name) in enumerate(ways):
        remarks = () if is_server(other) else _keep_name(other, name)

        def of_all(done: int, steps: int, number: int = number) -> None:
            progress(1000 * number + 1000 * done // max(steps, 1), 1000 * len(ways))

        report = copy(one, other, config=config, anew=anew, progress=of_all)
        reports.append(replace(report, remarks=(*report.remarks, *remarks)))
    return tuple(reports)


def file_of(tenant: str) -> str:
    """Return the name of the file of a tenant, also where large and small letters are one.

    >>> file_of("team_1"), file_of("../Ärger")
    ('team_1.db', '%2E.%2F%C3%84rger.db')

    A name that would be too long is cut short, and ends with a digest.

    >>> file_of("x" * 300)[-39:], len(file_of("x" * 300))
    ('xxx~0d4e2ca9e9cbced7a7a5380eb29e1a37.db', 247)
    """
    odd = re.compile(r"^\.|[^a-z0-9_.-]")
    file = odd.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), tenant) + _SUFFIX
    if len(file) <= LONGEST_NAME:
        return file
    end = f"~{hashlib.sha256(tenant.encode()).hexdigest()[:32]}{_SUFFIX}"
    return re.sub(r"%.?$", "", file[: LONGEST_NAME - len(end)]) + end


def _keep_name(file: str, tenant: str) -> tuple[str, ...]:
    """Keep the name of a tenant beside its file where that of the file is cut short; return a remark on it."""
    if not _CUT.fullmatch(Path(file).name):
        return ()
    with new_file(file + _WHOLE_NAME, force=True) as stream:
        stream.write(tenant.encode())
    return (f"the name of {file} is cut short: {file}{_WHOLE_NAME} keeps that of its tenant for the way back",)


def _name_of(file: Path) -> str:
    """Return the name of the tenant of a file. Raises StoreFailed where it is not known."""
    if not _CUT.fullmatch(file.name):
        return unquote(file.name.removesuffix(_SUFFIX))
    kept = file.with_name(file.name + _WHOLE_NAME)
    try:
        tenant = kept.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = f"cannot be read ({error.strerror if isinstance(error, OSError) else 'it is no text'})"
    else:
        if file_of(tenant) == file.name:
            return tenant
        why = "holds that of another"
    raise StoreFailed(
        f"{kept}, which tells the tenant of {file.name}, {why}: put it back, or move the file elsewhere and copy it by "
        "itself, to an address with the name of its tenant"
    )


def _files_in(folder: str) -> list[tuple[str, str]]:
    """Return the memory files of a folder and the names of their tenants."""
    try:
        with os.scandir(os.path.expanduser(folder)) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(_SUFFIX) and entry.is_file())
    except OSError as error:
        raise StoreFailed(f"{folder} cannot be read: {error.strerror}; name a folder of memory files") from None
    files = [Path(folder).expanduser() / name for name in names]
    return [(str(file), _name_of(file)) for file in files]


def _place(where: str, tenant: str) -> str:
    return of_tenant(where, tenant) if is_server(where) else str(Path(where).expanduser() / file_of(tenant))


# ---- what is held


class _Steps:
    """How far a copy has come: each row is read, written and compared, each text indexed."""

    def __init__(self, progress: Progress, tx: Transaction) -> None:
        self._progress = progress
        self._done = 0
        self._whole = 3 * sum(rows.count(tx, table) for table in rows.with_vectors(tx)) + text_index.stored(tx)

    def add(self, steps: int) -> None:
        self._done = min(self._done + steps, self._whole)
        self._progress(self._done, self._whole)


def _pages(tx: Transaction, table: Table, after: tuple[Any, ...] | None) -> Iterator[list[tuple[Any, ...]]]:
    places = [table.columns.index(column) for column in table.key]
    while page := rows.page(tx, table, after, _AT_ONCE):
        yield page
        if len(page) < _AT_ONCE:
            return
        after = tuple(page[-1][place] for place in places)


def _tables(tx: Transaction) -> list[Table]:
    """Return the tables without payloads, which are read one by one."""
    return [
        replace(table, columns=tuple(column for column in table.columns if column != "payload"))
        if table.name == "blocks"
        else table
        for table in rows.with_vectors(tx)
    ]


def _held(tx: Transaction, path: str, steps: _Steps, *, to_server: bool) -> _Held:
    """Read all that a store holds. The digest of a table is of its rows in the order of keys, as Python shows them.

    to_server: Raises InvalidInput naming the row for one that PostgreSQL cannot keep.
    """
    counts, digests, payloads = {}, {}, 0
    remarks: list[str] = []
    for table in _tables(tx):
        sum_of_rows, number = hashlib.sha256(), 0
        for page in _pages(tx, table, None):
            shown: Sequence[tuple[Any, ...]] = page
            if table.name == "blocks":
                shown = [(*row, _digest(_payload(tx, path, table, row, remarks))) for row in page]
                payloads += sum(row[-1] is not None for row in shown)
            lines = "".join([f"{row!r}\n" for row in shown])
            if to_server and "\\x00" in lines:
                _refuse_nul(path, table, page)
            sum_of_rows.update(lines.encode())
            number += len(page)
            steps.add(len(page))
        counts[table.name], digests[table.name] = number, sum_of_rows.hexdigest()
    return _Held(counts, digests, payloads, tuple(dict.fromkeys(remarks)))


def _digest(payload: bytes | None) -> str | None:
    return None if payload is None else hashlib.sha256(payload).hexdigest()


def _payload(tx: Transaction, path: str, table: Table, row: tuple[Any, ...], remarks: list[str]) -> bytes | None:
    number, digest = row[table.columns.index("num")], row[table.columns.index("payload_digest")]
    if not digest:
        return None
    payload: bytes | None
    (payload,) = tx.execute("SELECT payload FROM blocks WHERE num = ?", (number,)).fetchone()
    if payload is not None:
        return payload
    if is_file(path):
        try:
            payload = read_blob(path, digest)
        except StoreCorrupt as error:
            remarks.append(str(error))
            return None
    if payload is None:
        remarks.append(f"the payload {digest} of {path} is missing: its blocks are copied without it")
    return payload


def _refuse_nul(path: str, table: Table, page: Sequence[tuple[Any, ...]]) -> None:
    for row in page:
        for column, value in zip(table.columns, row, strict=True):
            if isinstance(value, str) and "\0" in value:
                what = f"{table.name}, row {_key(table, row)}: {column} holds a NUL character"
                raise InvalidInput("source", path, f"{what}, which PostgreSQL cannot keep; take it out there first")


def _key(table: Table, row: Sequence[Any]) -> str:
    key = [row[table.columns.index(column)] for column in table.key]
    return ", ".join(value.hex() if isinstance(value, bytes) else repr(value) for value in key)


# ---- the beginning


@dataclass(frozen=True, slots=True)
class _Begun:
    """How a copy begins: who it is, how many rows have come before, whether all have, and what is to be told."""

    by: Unfinished
    resumed: int = 0
    is_whole: bool = False
    remarks: tuple[str, ...] = ()


def _refuse_other(tx: Transaction, path: str, dest: Store) -> None:
    """Raise Conflict for a destination that holds what cannot be that of the source, which a look tells."""
    with dest.read() as there:
        if rows.unfinished_copy(there) is not None or rows.is_empty(there):
            return
        counts = [{table.name: rows.count(one, table) for table in rows.with_vectors(one)} for one in (tx, there)]
    if counts[0] != counts[1]:
        raise _not_empty(dest, path)


def _not_empty(dest: Store, path: str) -> Conflict:
    return Conflict(f"{dest.path} holds something else than {path}: name a new file, or a tenant that is not there yet")


def _begin(dest: Store, path: str, held: _Held, steps: _Steps, *, anew: bool) -> _Begun:
    """Mark a destination as unfinished and tell from where the copy goes on; what came of another state is removed.

    anew: what came of another source too, which else raises Conflict.
    """
    removed: list[str] = []
    begun = _Begun(Unfinished(held.digest, secrets.token_hex(8), path))
    with dest.write() as tx:
        before = rows.unfinished_copy(tx)
        tables = _tables(tx)
        if before is None and not rows.is_empty(tx):
            if _held(tx, dest.path, steps, to_server=False).digests != held.digests:
                raise _not_empty(dest, path)
            return replace(begun, is_whole=True, remarks=(f"{dest.path} is the same already: nothing was copied",))
        if before is not None and before.digest == held.digest:
            begun = replace(begun, resumed=sum(rows.count(tx, table) for table in tables))
        else:
            if before is not None:
                begun = replace(begun, remarks=(_why_anew(before, dest.path, path, anew=anew),))
            removed = _clear(tx, tables)
        rows.mark_unfinished(tx, begun.by)
    if is_file(dest.path):
        for digest in removed:
            remove_blob(dest.path, digest)
    steps.add(begun.resumed)
    return begun


def _why_anew(before: Unfinished, dest: str, path: str, *, anew: bool) -> str:
    """Return the remark on an earlier copy that is begun anew. Raises Conflict for one that may not be."""
    if before.source != path and not anew:
        raise Conflict(
            f"{dest} is a copy from {before.source} that is not finished, and not one from {path}: name another "
            "destination, finish that copy first, or let what came of it be removed (--anew)"
        )
    if before.source != path:
        why = f"from {before.source} was broken off"
    elif before.digest == _DIFFERS:
        why = f"came out different from {path}"
    else:
        why = f"of another state of {path} was broken off"
    return f"an earlier copy to {dest} {why}: it began anew"


def _clear(tx: Transaction, tables: Sequence[Table]) -> list[str]:
    """Remove all rows; return the digests of payloads that lay beside them."""
    lay = "SELECT DISTINCT payload_digest FROM blocks WHERE payload IS NULL AND payload_digest <> ''"
    digests = [digest for (digest,) in tx.execute(lay)]
    tx.engine.defer_foreign_keys(tx)
    for table in reversed(tables):
        tx.execute(f"DELETE FROM {table.name}")
    return digests


# ---- on the way


class _Going:
    """A copy on its way."""

    def __init__(
        self, tx: Transaction, path: str, dest: Store, held: _Held, begun: _Begun, steps: _Steps, came: _Came
    ) -> None:
        self._tx = tx
        self._path = path
        self._dest = dest
        self._held = held
        self._begun = begun
        self._steps = steps
        self._came = came

    def carry(self) -> None:
        """Copy what has not come yet, some rows a transaction."""
        for table in _tables(self._tx):
            with self._dest.read() as there:
                after = rows.last_key(there, table)
            for page in _pages(self._tx, table, after):
                for taken, batch in self._batches(table, page):
                    self._put(taken, batch)
                    self._came.rows += len(batch)
                    self._steps.add(len(batch))

    def _batches(self, table: Table, page: list[tuple[Any, ...]]) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
        if table.name == _LATER[0]:
            place = table.columns.index(_LATER[1])
            page = [(*row[:place], None, *row[place + 1 :]) for row in page]
        if table.name != "blocks":
            yield table, page
            return
        taken = replace(table, columns=(*table.columns, "payload"))
        batch, size = [], 0
        for row in page:
            payload = _payload(self._tx, self._path, table, row, [])
            batch.append((*row, payload))
            size += len(payload or b"")
            if size > _MOST_PAYLOAD:
                yield taken, batch
                batch, size = [], 0
        yield taken, batch

    def _put(self, table: Table, batch: list[tuple[Any, ...]]) -> None:
        try:
            with self._writing() as tx:
                if table.name == "blocks":
                    batch = [self._beside(table, row) for row in batch]
                try:
                    rows.insert_all(tx, table, batch)
                except RowsRefused:
                    raise _Refused from None
        except _Refused:
            raise self._refusal(table, batch) from None

    def _beside(self, table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
        *others, payload = row
        if payload is None or lies_in_row(self._dest.path, len(payload)):
            return row
        digest = row[table.columns.index("payload_digest")]
        if _digest(payload) != digest:  # it becomes the name of a file
            reason = f"blocks, row {_key(table, row)}: its payload is not what its digest says"
            raise StoreCorrupt(f"{self._path}, {reason}: restore a backup, or delete the block and put it again")
        write_blob(self._dest.path, digest, payload)
        return (*others, None)

    def _refusal(self, table: Table, batch: list[tuple[Any, ...]]) -> StoreFailed:
        """Return what is to be told of the first row that is refused."""
        with self._dest.write(keep=False) as tx:
            for row in batch:
                try:
                    rows.insert(tx, table, dict(zip(table.columns, row, strict=True)))
                except RowsRefused as error:
                    what, why = f"{table.name}, row {_key(table, row)} of {self._path}", str(error).splitlines()[0]
                    reason = f"does not take {what} ({why}): change that row, or name another destination"
                    return StoreFailed(f"{self._dest.path} {reason}")
        return StoreFailed(f"{self._dest.path} did not take rows of {table.name}, and takes each by itself: copy again")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._dest.write() as tx:
            if rows.unfinished_copy(tx) != self._begun.by:
                raise Conflict(f"another copy to {self._dest.path} has begun meanwhile: let that one finish")
            yield tx

    def settle(self) -> None:
        """Make what is derived, compare, and take the mark away. Raises StoreCorrupt where something differs."""
        table, column = _LATER
        later = self._tx.execute(f"SELECT {column}, id FROM {table} WHERE {column} IS NOT NULL").fetchall()
        counters = self._tx.execute("SELECT name, value FROM counters").fetchall()
        numbers = {name: last for name, last in self._tx.engine.numbers(self._tx).items() if last > 0}
        wrong: list[str] = []
        with contextlib.suppress(_Refused), self._writing() as tx:
            tx.executemany(f"UPDATE {table} SET {column} = ? WHERE id = ?", later)
            tx.execute("DELETE FROM counters")
            tx.executemany("INSERT INTO counters(name, value) VALUES (?, ?)", counters)
            for name, last in numbers.items():
                tx.engine.set_number(tx, name, last)
            postings.settle_all(tx)
            tx.words.clear(tx)
            before = 0
            for done in text_index.fill(tx):
                self._steps.add(done - before)
                before = done
            wrong = self._differences(tx, numbers)
            if wrong:
                raise _Refused
            rows.mark_finished(tx)
        if wrong:
            with self._writing() as tx:
                rows.mark_unfinished(tx, Unfinished(_DIFFERS, _DIFFERS, self._path))
            told = ", ".join(wrong)
            raise StoreCorrupt(
                f"{self._dest.path} is not the same as {self._path} after the copy ({told}): copy again, which begins "
                "anew"
            )

    def _differences(self, tx: Transaction, numbers: dict[str, int]) -> list[str]:
        there = _held(tx, self._dest.path, self._steps, to_server=False)
        wrong = [name for name, digest in self._held.digests.items() if there.digests.get(name) != digest]
        known = tx.engine.numbers(tx)
        return wrong + [f"numbers of {name}" for name, last in numbers.items() if known.get(name, 0) < last]


def _report(source: str, dest: str, held: _Held, begun: _Begun) -> CopyReport:
    return CopyReport(
        source=source,
        path=dest,
        counts=held.counts,
        payloads=held.payloads,
        digest=held.digest,
        resumed=begun.resumed,
        remarks=(*begun.remarks, *held.remarks),
    )
