"""Whether a memory is as its own verbs would have left it, and the repair of what follows from the rest.

Each thing that is wrong is a finding, a line with table, row and remedy. Repair mends indexes, counts, keys, aliases,
references, scopes and what stands beside notes (`check_ledger`); what was told is never made up: where that is
damaged, a backup is the remedy.
"""

import functools
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmem.config import Config
from graphmem.core.addresses import is_server
from graphmem.core.keys import entity_key, normalize_key
from graphmem.core.model import CheckReport, RepairReport
from graphmem.errors import InvalidInput, StoreCorrupt
from graphmem.graph.scenes import REF_TARGETS
from graphmem.store import postings, text_index
from graphmem.store.blobs import blob_sizes, read_blob
from graphmem.store.database import size_of
from graphmem.store.opening import is_file
from graphmem.store.rows import unfinished_copy
from graphmem.store.transaction import Transaction
from graphmem.upkeep import check_ledger, merge, scenes
from graphmem.upkeep.journal import TABLES, Journal, rows_of

_RESTORE = "restore a backup"
_REPAIR = "'graphmem repair'"
_REMEDY_OF_A_PAYLOAD = "restore a backup, or delete the block and put it again"
_ROWS_NAMED = 10

# What repair can mend, but for the pages of the file.
_FILE = "file"
_INDEXES = "indexes"
_TEXT = "text index"
_COUNTS = "counts"
_KEYS = "keys"
_ALIASES = "aliases"
_REFS = "refs"
_POSTINGS = "postings"
_NAMELESS = "nameless"
_LEDGER = "ledger"

# What the integrity check complains of, when it is not damaged pages.
_OF_AN_INDEX = re.compile(r"^(row \d+ missing from|wrong # of entries in) index ")
_OF_A_VALUE = re.compile(r"^(non-unique entry|CHECK constraint failed|NULL value|non-\w+ value) in ")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, and its remedy. mend: what repair has to mend, '' for what it cannot."""

    what: str
    remedy: str
    mend: str = ""

    @property
    def line(self) -> str:
        """What is wrong with its remedy, as one line."""
        return f"{self.what}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class Mended:
    """What a repair did. operations: that can be undone. scenes: whose rows changed. keys: in words."""

    operations: tuple[int, ...] = ()
    scenes: frozenset[int] = frozenset()
    keys: tuple[str, ...] = ()


def find_all(tx: Transaction, path: str) -> list[Finding]:
    """Return all that is wrong, the gravest first; it needs a write block."""
    return list(dict.fromkeys([*find(tx, path), *find_locked(tx, path)]))


def find(tx: Transaction, path: str) -> list[Finding]:
    """Return what is wrong as one read sees it, the gravest first."""
    found: list[Finding] = []
    payloads = functools.partial(_of_payloads, path=path)
    for look in (
        _of_file,
        _of_copy,
        _of_text,
        _of_keys,
        _of_aliases,
        _of_refs,
        _of_postings,
        _of_ledger,
        _of_journal,
        _of_sessions,
        payloads,
    ):
        try:
            with tx.engine.told_as_damage(tx):
                found += look(tx)
        except StoreCorrupt as error:
            found.append(Finding(f"the memory is damaged ({error})", _RESTORE, _FILE))
    return found


def find_locked(tx: Transaction, path: str) -> list[Finding]:
    """Return what only a write block can tell: what FTS5 finds in its own tables, and payloads that are missing.

    Nothing is written. The files of payloads are removed by who holds the lock, so here each has a row or none.
    """
    found: list[Finding] = []
    try:
        tx.words.check_words(tx)
    except StoreCorrupt as error:
        found.append(_damaged_text(error))
    there = blob_sizes(path)
    rows = tx.execute(
        "SELECT id, payload_digest FROM blocks WHERE payload IS NULL AND payload_digest <> '' ORDER BY num"
    )
    return found + [
        Finding(f"blocks, row {block}: the file of its payload is missing", _REMEDY_OF_A_PAYLOAD)
        for block, digest in rows
        if digest not in there
    ]


def repaired(found: Collection[Finding], left: Collection[Finding], mended: Mended, *, applied: bool) -> RepairReport:
    """Return what a repair came to, from what was found before it and after it."""
    # How keys became canonical is told by what was done with their scenes.
    gone = [finding.what for finding in found if finding not in left and finding.mend != _KEYS]
    return RepairReport(
        (*gone, *mended.keys),
        tuple(finding.line for finding in left),
        applied,
        mended.operations if applied else (),
    )


def report(tx: Transaction, path: str, found: Iterable[Finding], remarks: Iterable[str] = ()) -> CheckReport:
    """Return what was found, with the sizes of all that belongs to a memory, and remarks on it."""
    blobs = blob_sizes(path)
    named = {digest for (digest,) in tx.execute("SELECT payload_digest FROM blocks WHERE payload_digest <> ''")}
    log = {} if is_server(path) else {"-wal": size_of(f"{path}-wal")}
    sizes = {"database": tx.engine.size(tx), **log, "payloads": sum(blobs.values())}
    told = list(remarks)
    if unused := blobs.keys() - named:
        size = sum(blobs[digest] for digest in unused)
        told.append(f"{path}.blobs holds {len(unused)} files ({size} bytes) that no block names")
    return CheckReport(tuple(dict.fromkeys(finding.line for finding in found)), sizes, tuple(told))


def without_log(tx: Transaction, path: str) -> list[str]:
    """Return a remark, which names the file system, when a memory in use has no write-ahead log."""
    if not is_file(path) or tx.engine.has_log(tx):
        return []
    return [f"no write-ahead log on this file system ({_file_system(path)}): readers and writers wait for each other"]


def mend(tx: Transaction, found: Iterable[Finding], path: str, at: str, config: Config) -> Mended:
    """Mend what can be.

    Raises StoreCorrupt for a file whose pages are damaged: to write to it makes it worse.
    """
    wanted = {finding.mend for finding in found}
    if _FILE in wanted:
        raise StoreCorrupt(f"{path} has damaged pages, which nothing mends ('graphmem check' lists them): {_RESTORE}")
    if _INDEXES in wanted:
        if not tx.engine.rebuild_indexes(tx):
            return Mended()  # which one of two rows that must be one is right, no machine can tell
        wanted |= {finding.mend for finding in find(tx, path)}  # they may have hidden something
    if _COUNTS in wanted:
        tx.execute(
            """UPDATE sessions SET parts = (SELECT COUNT(*) FROM parts p WHERE p.session_id = sessions.id),
                   length = (SELECT COALESCE(SUM(p.length), 0) FROM parts p WHERE p.session_id = sessions.id)"""
        )
    if _POSTINGS in wanted:
        postings.settle_all(tx)
    if _LEDGER in wanted:
        check_ledger.mend(tx)
    operations: list[int] = []
    changed: set[int] = set()
    renamed: set[int] = set()
    told: tuple[str, ...] = ()
    if _NAMELESS in wanted:
        nameless = [row["id"] for row in rows_of(tx, "scenes", "TRUE", ()) if _is_nameless(row["key"])]
        dropped = scenes.apply_drop(tx, scenes.drop_of(tx, nameless), nameless, at)
        operations += [dropped.operation] if dropped.operation is not None else []
        changed |= set(nameless)
    if _KEYS in wanted:
        merged, twins = merge.apply_dedupe(tx, merge.plan_dedupe(tx, path), at, config)
        operations += [merged.operation] if merged.operation is not None else []
        changed |= twins
        told = (
            *(f"{len(group.members)} scenes merged into {group.key!r}" for group in merged.groups),
            *(f"the scene {old!r} has the key {new!r} now" for old, new in merged.rewritten),
        )
    if wanted & {_ALIASES, _REFS}:
        journal = Journal(tx)
        gone = {table: _looped(tx, table) for table in _OWNERS}
        for table, keys in gone.items():
            for key in keys:
                (row,) = rows_of(tx, table, "key = ?", (key,))
                journal.delete(table, row)
                if table == "entity_aliases":
                    renamed.add(row["entity_id"])
        lost = [ref for kind in REF_TARGETS for ref in _refs_to_nothing(tx, kind)]
        for ref in lost:
            (row,) = rows_of(tx, "scene_refs", "id = ?", (ref,))
            journal.delete("scene_refs", row)
            changed.add(row["scene_id"])
        summary = {"refs": len(lost), "aliases": sum(map(len, gone.values()))}
        operations.append(journal.close("repair", at, summary))
    if _TEXT in wanted:
        tx.words.clear(tx)
        for _ in text_index.fill(tx):
            pass
    else:
        text_index.replace(tx, "entity", renamed)  # found by their aliases too
    return Mended(tuple(operations), frozenset(changed), told)


# ---- what is looked at


def _of_file(tx: Transaction) -> Iterator[Finding]:
    for line in tx.engine.damage(tx):
        told = " ".join(line.split())
        if _OF_AN_INDEX.search(told):
            yield Finding(told, f"{_REPAIR} makes the indexes anew", _INDEXES)
        else:
            yield Finding(told, _RESTORE, "" if _OF_A_VALUE.search(told) else _FILE)
    for (table, parent), rows in tx.engine.orphans(tx).items():
        ids = [row for row in rows if row is not None]
        named = _named(table, ids) if ids else f"{table}, {len(rows)} rows"
        what = f"{named}: what they point at in {parent} is gone"
        if check_ledger.MENDED.get(table) == parent:
            yield Finding(what, f"{_REPAIR} clears what points there", _LEDGER)
        else:
            yield Finding(what, f"{_RESTORE}, or delete them")


def _of_copy(tx: Transaction) -> Iterator[Finding]:
    if (by := unfinished_copy(tx)) is not None:
        yield Finding(f"a copy from {by.source} is not finished", "'graphmem copy' of both again goes on with it")


def _of_text(tx: Transaction) -> Iterator[Finding]:
    try:
        for kind in text_index.compare(tx):
            if kind.wrong:
                line = f"{_named('text_index', kind.wrong, what=kind.kind)}: indexed otherwise than stored"
                yield Finding(line, f"{_REPAIR} makes the text index anew", _TEXT)
            there, written = kind.counted
            if there != written:
                line = f"text_sizes, {kind.kind}: {written} passages and tokens are written, {there} are there"
                yield Finding(line, f"{_REPAIR} counts them anew", _TEXT)
        if lost := tx.words.lost_words(tx):
            yield Finding(f"text_index: {lost} words are not found", f"{_REPAIR} makes it anew", _TEXT)
    except StoreCorrupt as error:
        yield _damaged_text(error)


def _damaged_text(error: StoreCorrupt) -> Finding:
    return Finding(f"text_index: it is damaged ({error})", f"{_REPAIR} makes it anew", _TEXT)


def _of_keys(tx: Transaction) -> Iterator[Finding]:
    for scene_id, key in tx.execute("SELECT id, key FROM scenes ORDER BY id"):
        try:
            canonical = normalize_key(key)
        except InvalidInput as error:
            yield Finding(f"scenes, row {scene_id}: no verb finds it by its key, {error}", _RESTORE)
            continue
        if not canonical:
            what = f"scenes, row {scene_id}: nothing is left of its key {key!r}"
            yield Finding(what, f"{_REPAIR} drops the scene", _NAMELESS)
        elif canonical != key:
            yield Finding(f"scenes, row {scene_id}: its key {key!r} is not canonical", f"{_REPAIR} mends it", _KEYS)
    for table, column in (("entities", "id"), ("entity_aliases", "entity_id")):
        for row, key in tx.execute(f"SELECT {column}, key FROM {table} ORDER BY key"):
            if entity_key(key) != key:
                line = f"{table}, {column} {row}: its key {key!r} is not canonical"
                yield Finding(line, f"merge the entity with the one of that name, or {_RESTORE}")


def _is_nameless(key: object) -> bool:
    try:
        return not normalize_key(str(key))
    except InvalidInput:
        return False


# Tables of aliases, and whose keys they stand for.
_OWNERS = {"entity_aliases": "entities", "scene_aliases": "scenes"}


def _looped(tx: Transaction, table: str) -> list[str]:
    """Return the aliases that are keys themselves, so that a name leads to two things; no verb makes one."""
    rows = tx.execute(f"SELECT a.key FROM {table} a JOIN {_OWNERS[table]} o ON o.key = a.key ORDER BY a.key")
    return [key for (key,) in rows]


def _of_aliases(tx: Transaction) -> Iterator[Finding]:
    for table, owner in _OWNERS.items():
        for key in _looped(tx, table):
            yield Finding(
                f"{table}, row {key!r}: it is a key of {owner} as well", f"{_REPAIR} removes the alias", _ALIASES
            )


def _refs_to_nothing(tx: Transaction, kind: str) -> list[int]:
    rows = tx.execute(
        f"SELECT id FROM scene_refs WHERE kind = ? AND NOT EXISTS (SELECT 1 FROM {REF_TARGETS[kind]}) ORDER BY id",
        (kind,),
    )
    return [ref for (ref,) in rows]


def _of_refs(tx: Transaction) -> Iterator[Finding]:
    for kind in REF_TARGETS:
        if lost := _refs_to_nothing(tx, kind):
            yield Finding(f"{_named('scene_refs', lost)}: they point at no {kind}", f"{_REPAIR} removes them", _REFS)


def _of_postings(tx: Transaction) -> Iterator[Finding]:
    if wrong := postings.wrong_scenes(tx):
        line = f"{_named('scene_features', wrong, what='scene')}: not posted as its features say, turns may miss it"
        yield Finding(line, f"{_REPAIR} posts it anew", _POSTINGS)


def _of_ledger(tx: Transaction) -> Iterator[Finding]:
    for flaw in check_ledger.flaws(tx):
        yield Finding(f"{_named(flaw.table, flaw.rows)}: {flaw.what}", f"{_REPAIR} {flaw.mended}", _LEDGER)


def _of_journal(tx: Transaction) -> Iterator[Finding]:
    remedy = f"it cannot be undone: {_RESTORE} if it must be"
    rows = tx.execute(
        """SELECT id FROM operations
           WHERE NOT json_valid(summary) OR NOT json_valid(COALESCE(marks, '{}')) ORDER BY id"""
    )
    for (operation,) in rows:
        yield Finding(f"operations, row {operation}: its summary cannot be read", remedy)
    rows = tx.execute(
        f"""SELECT operation_id, COUNT(*) FROM operation_rows
            WHERE NOT json_valid(row) OR NOT json_valid(COALESCE(before, '{{}}'))
                OR NOT json_valid(COALESCE(after, '{{}}')) OR COALESCE(before, after) IS NULL
                OR name NOT IN ({", ".join("?" * len(TABLES))})
            GROUP BY operation_id ORDER BY operation_id""",
        [*TABLES],
    )
    for operation, count in rows:
        yield Finding(f"operation_rows, operation {operation}: {count} of its rows cannot be read", remedy)


def _of_sessions(tx: Transaction) -> Iterator[Finding]:
    rows = tx.execute(
        """SELECT s.id, s.parts, s.length, COUNT(p.id), COALESCE(SUM(p.length), 0)
           FROM sessions s LEFT JOIN parts p ON p.session_id = s.id GROUP BY s.id
           HAVING s.parts <> COUNT(p.id) OR s.length <> COALESCE(SUM(p.length), 0) ORDER BY s.id"""
    )
    for session, parts, length, parts_there, length_there in rows:
        line = f"{parts} parts with {length} tokens are written, {parts_there} with {length_there} are there"
        yield Finding(f"sessions, row {session}: {line}", f"{_REPAIR} counts them anew", _COUNTS)


def _of_payloads(tx: Transaction, path: str) -> Iterator[Finding]:
    rows = tx.execute("SELECT id, payload, payload_digest FROM blocks WHERE payload_digest <> '' ORDER BY num")
    for block, payload, digest in rows:
        if payload is not None:
            if hashlib.sha256(payload).hexdigest() != digest:
                yield Finding(f"blocks, row {block}: its payload is damaged", _REMEDY_OF_A_PAYLOAD)
            continue
        try:
            read_blob(path, digest)
        except StoreCorrupt:
            yield Finding(f"blocks, row {block}: the file of its payload is damaged", _REMEDY_OF_A_PAYLOAD)


def _named(table: str, rows: Collection[int | str], *, what: str = "row") -> str:
    """Return a table with some of its rows, in words.

    >>> _named("scene_refs", range(1, 14))
    'scene_refs, rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more'
    """
    shown = ", ".join(map(str, [*rows][:_ROWS_NAMED]))
    more = f" and {len(rows) - _ROWS_NAMED} more" if len(rows) > _ROWS_NAMED else ""
    return f"{table}, {what}{'s' if what == 'row' and len(rows) > 1 else ''} {shown}{more}"


def _file_system(path: str) -> str:
    """Return the type of the file system that a file lies on, where the system tells it."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()]
    except OSError:
        return "of unknown type"
    on = [(mount[1], mount[2]) for mount in mounts if Path(path).is_relative_to(mount[1])]
    return max(on, key=lambda mount: len(mount[0]))[1] if on else "of unknown type"
