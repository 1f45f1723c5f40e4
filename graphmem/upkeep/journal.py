"""The journal: every row that an operation changes, before and after, so that the operation can be undone.

Counters (strength, visits, mass) are undone by their difference and other columns only where they still hold what the
operation put there; so writes that came later are kept. A row that comes back to a place where a later write has made
one adds its counters to that.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphmem.core.keys import is_canonical
from graphmem.core.model import Operation, UndoReport
from graphmem.errors import Conflict, NotFound
from graphmem.store import text_index
from graphmem.store.transaction import RowsRefused, Transaction

Row = dict[str, Any]
Image = tuple[str, Row | None, Row | None]  # table, row before, row after
PutBack = Callable[[Transaction, int, Sequence[Image], str], tuple[str, ...]]

# What fades does not stand in the way of an undo: it fades again from where it comes back.
FADING = "decay"

# Any number of values in one parameter, a JSON list of numbers or of texts.
NUMBERS = "(SELECT CAST(value AS BIGINT) FROM json_each(?))"
TEXTS = "(SELECT value FROM json_each(?))"
_ROUNDING = 1e-9
_SHOWN = 4
# Operations on many rows that nobody named.
_OF_NOBODY = frozenset({FADING, "expire evidence", "purge stale refs", "purge sentences", "drop journal", "pass round"})
_KEYED = ("scenes", "scene_aliases")

# The sentences that an undo may need.
SENTENCES = """SELECT CAST(json_extract(before, '$.sentence_id') AS BIGINT) FROM operation_rows
               WHERE json_extract(before, '$.sentence_id') IS NOT NULL
               UNION SELECT CAST(json_extract(after, '$.sentence_id') AS BIGINT) FROM operation_rows
               WHERE json_extract(after, '$.sentence_id') IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class _Table:
    """How rows of a table are told apart and put back.

    greatest: columns of which a row made anew keeps the greater value. indexed: the kind in the text index of what the
    first column of the key names, and the columns it shows. place: other columns that tell rows apart. shared: a row
    that a later write changed too stays when what made it is undone.
    """

    key: tuple[str, ...]
    counters: tuple[str, ...] = ()
    greatest: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    shared: bool = False


TABLES = {
    "scenes": _Table(("id",), ("strength", "visits")),
    "scene_aliases": _Table(("key",)),
    "scene_features": _Table(("scene_id", "feature"), ("mass",), ("weight", "touched")),
    "scene_refs": _Table(
        ("id",), greatest=("weight", "decayed_at"), place=("scene_id", "kind", "ref_id", "ref_text"), shared=True
    ),
    "situation_evidence": _Table(("label",), ("count",), ("updated_at",)),
    "entities": _Table(("id",), ("mention_count",), ("updated_at",), ("entity", "name")),
    "entity_aliases": _Table(("key",)),
    "entities_apart": _Table(("a", "b")),
    "sentences": _Table(("id",), indexed=("sentence", "text"), place=("hash",)),
    "relations": _Table(("id",), indexed=("relation", "source_id", "target_id", "relation_type")),
    "evidence": _Table(("id",)),
    "notes": _Table(("id",), ("seen",), indexed=("note", "title", "slot", "body", "status")),
    "note_labels": _Table(("note_id", "label"), indexed=("note",)),
    "note_triggers": _Table(("note_id", "load_when")),
    "note_sources": _Table(("note_id", "source_id")),
    "incidents": _Table(("id",), ("count",), ("last_at",), place=("scope", "signature")),
    "sessions": _Table(("id",), ("parts", "length"), ("updated_at",)),
    "parts": _Table(("id",), indexed=("part", "text")),
}


@dataclass(slots=True)
class Journal:
    """Changes rows for one operation and remembers their images."""

    tx: Transaction
    images: list[tuple[str, str, Row | None, Row | None]] = field(default_factory=list)

    def insert(self, table: str, row: Row) -> Row:
        """Insert a row and return it as it is stored; one without an id gets one."""
        stored = _insert(self.tx, table, row)
        self.remember(table, None, stored)
        return stored

    def update(self, table: str, before: Row, **values: Any) -> None:
        """Change columns of a row; the key columns of its table included."""
        after = {**before, **values}
        if after != before:
            _update(self.tx, table, before, values)
            self.remember(table, before, after)

    def delete(self, table: str, row: Row) -> None:
        """Delete a row."""
        _delete(self.tx, table, row)
        self.remember(table, row, None)

    @contextlib.contextmanager
    def watching(self, table: str, condition: str, parameters: Sequence[object]) -> Iterator[None]:
        """Remember what a block does to the rows that meet a condition before or after it."""
        key = TABLES[table].key

        def place(row: Row) -> tuple[Any, ...]:
            return tuple(row[column] for column in key)

        before = {place(row): row for row in rows_of(self.tx, table, condition, parameters)}
        yield
        after = {place(row): row for row in rows_of(self.tx, table, condition, parameters)}
        for gone in before.keys() - after.keys():
            after.update((gone, row) for row in rows_of(self.tx, table, _where(key), gone))
        for each in sorted(before.keys() | after.keys()):
            if before.get(each) != after.get(each):
                self.remember(table, before.get(each), after.get(each))

    def remember(self, table: str, before: Row | None, after: Row | None) -> None:
        """Remember a change of a row, which was made where `before` is None, and removed where `after` is."""
        row = before or after or {}
        key = _KEYS.encode([row[column] for column in TABLES[table].key])
        self.images.append((table, key, before, after))

    def close(self, kind: str, at: str, summary: Mapping[str, Any], marks: Mapping[str, Any] | None = None) -> int:
        """Write the operation down and return its number."""
        (operation_id,) = self.tx.execute(
            "INSERT INTO operations(kind, at, summary, marks) VALUES (?, ?, ?, ?) RETURNING id",
            (kind, at, image_of(summary), marks and image_of(marks)),
        ).fetchone()
        self.tx.executemany(
            "INSERT INTO operation_rows(operation_id, seq, name, row, before, after) VALUES (?, ?, ?, ?, ?, ?)",
            (
                (operation_id, seq, table, key, before and image_of(before), after and image_of(after))
                for seq, (table, key, before, after) in enumerate(self.images)
            ),
        )
        return int(operation_id)


def rows_of(tx: Transaction, table: str, condition: str, parameters: Sequence[object]) -> list[Row]:
    """Return whole rows as dictionaries, in the order of their keys."""
    cursor = tx.execute(f"SELECT * FROM {table} WHERE {condition}", parameters)
    names = [column[0] for column in cursor.description]
    return sorted((dict(zip(names, row, strict=True)) for row in cursor), key=lambda row: row_key(table, row))


def row_key(table: str, row: Row) -> tuple[Any, ...]:
    """Return what tells a row of a table from the others."""
    return tuple(row[column] for column in TABLES[table].key)


def set_row(tx: Transaction, table: str, key: Sequence[Any], row: Row | None) -> None:
    """Let a row be as given, whatever it is now; None for none."""
    shape = TABLES[table].key
    now = rows_of(tx, table, _where(shape), key)
    if row is None:
        tx.execute(f"DELETE FROM {table} WHERE {_where(shape)}", key)
    elif now:
        _update(tx, table, now[0], row)
    else:
        _insert(tx, table, row)


def list_operations(tx: Transaction, limit: int | None) -> tuple[Operation, ...]:
    """Return operations, the latest first."""
    rows = tx.execute(
        "SELECT id, kind, at, summary, undone_at FROM operations ORDER BY id DESC LIMIT ?",
        (2**62 if limit is None else limit,),
    ).fetchall()
    return tuple(
        Operation(id_, kind, at, json.loads(summary), undone, () if kind in _OF_NOBODY else _about(tx, id_))
        for id_, kind, at, summary, undone in rows
    )


def _about(tx: Transaction, operation_id: int) -> tuple[str, ...]:
    """Return the names of some of what an operation changed, from its images: a hard purge leaves none of them."""
    rows = tx.execute(
        """SELECT name, before, after FROM operation_rows
           WHERE operation_id = ? AND name IN ('entities', 'scenes', 'entities_apart', 'notes', 'relations')
               AND (before IS NULL OR after IS NULL OR before <> after)
           ORDER BY CASE name WHEN 'relations' THEN 1 ELSE 0 END, seq DESC LIMIT ?""",
        (operation_id, _SHOWN),
    )
    told = [
        _named(tx, table, before and row_of(before), after and row_of(after))
        for table, before, after in rows.fetchall()
    ]
    return tuple(dict.fromkeys(told))


def _named(tx: Transaction, table: str, before: Row | None, after: Row | None) -> str:
    row = after or before or {}
    if table == "relations":
        return f"fact {row['id']}"
    if table == "entities_apart":
        ends = (tx.execute("SELECT name FROM entities WHERE id = ?", (row[end],)).fetchone() for end in ("a", "b"))
        return ", ".join(name for (name,) in filter(None, ends))
    column = {"entities": "name", "scenes": "key", "notes": "title"}[table]
    return " -> ".join(dict.fromkeys(str(image[column]) for image in (before, after) if image))


def drop_operations(tx: Transaction, operation_ids: Sequence[int]) -> int:
    """Forget operations and what they kept; return the number of row images."""
    given = (json.dumps(operation_ids),)
    rows = tx.execute(f"DELETE FROM operation_rows WHERE operation_id IN {NUMBERS}", given)
    tx.execute(f"DELETE FROM operations WHERE id IN {NUMBERS}", given)
    return rows.rowcount


def images_of(tx: Transaction, operation_id: int) -> list[Image]:
    """Return the images of an operation, the last first."""
    rows = tx.execute(
        "SELECT name, before, after FROM operation_rows WHERE operation_id = ? ORDER BY seq DESC", (operation_id,)
    )
    return [(table, before and row_of(before), after and row_of(after)) for table, before, after in rows]


def undo(tx: Transaction, operation_id: int, at: str, otherwise: Mapping[str, PutBack]) -> tuple[UndoReport, set[int]]:
    """Put back what an operation changed; return the report and the scenes whose rows were touched.

    otherwise: for kinds of operations that take more than their rows, what puts them back.

    Raises NotFound for an unknown operation; Conflict when it was undone before, when a later operation changed the
    same rows, when what it removed cannot come back because its key is taken, or was removed for good.
    """
    found = tx.execute("SELECT kind, undone_at FROM operations WHERE id = ?", (operation_id,)).fetchone()
    if found is None:
        raise NotFound(f"operation {operation_id} is not in the journal: 'graphmem operations' lists them")
    kind, undone_at = found
    if undone_at is not None:
        raise Conflict(f"operation {operation_id} was undone at {undone_at}")
    later = tx.execute(
        """SELECT MIN(o.id) FROM operations o JOIN operation_rows r ON r.operation_id = o.id
           JOIN operation_rows mine ON mine.name = r.name AND mine.row = r.row
           WHERE mine.operation_id = ? AND o.id > ? AND o.undone_at IS NULL AND (o.kind <> ? OR ? = o.kind)""",
        (operation_id, operation_id, FADING, kind),
    ).fetchone()[0]
    if later is not None:
        raise Conflict(f"operation {later} changed the same rows after operation {operation_id}: undo {later} first")
    images = images_of(tx, operation_id)
    if not images:
        raise Conflict(f"operation {operation_id} ({kind}) cannot be undone: what it changed was removed for good")
    remarks: tuple[str, ...] = ()
    if kind in otherwise:
        remarks = otherwise[kind](tx, operation_id, images, at)
    else:
        _put_rows_back(tx, images)
    tx.execute("UPDATE operations SET undone_at = ? WHERE id = ?", (at, operation_id))
    report = UndoReport(
        operation_id,
        kind,
        restored=sum(after is None for _, _, after in images),
        removed=sum(before is None for _, before, _ in images),
        changed=sum(before is not None and after is not None and before != after for _, before, after in images),
        applied=True,
        remarks=remarks,
    )
    return report, {
        image["id"] if table == "scenes" else image["scene_id"]
        for table, *sides in images
        for image in sides
        if image and (table == "scenes" or "scene_id" in image)
    }


def _put_rows_back(tx: Transaction, images: Sequence[Image]) -> None:
    text_index_ids: dict[str, set[int]] = defaultdict(set)
    made = {after["id"]: after for table, before, after in images if table == "scenes" and before is None and after}
    for table, before, after in images:
        if shown := TABLES[table].indexed:
            kind_shown, *columns = shown
            if before is None or after is None or any(before[column] != after[column] for column in columns):
                text_index_ids[kind_shown] |= {image[TABLES[table].key[0]] for image in (before, after) if image}
        if before is None and after and _still_used(tx, made, table, after):
            if table == "scenes":  # what wrote to it would have made it
                tx.execute(
                    "UPDATE scenes SET strength = MAX(strength - ?, 1) WHERE id = ?", (after["strength"], after["id"])
                )
            continue
        try:
            with tx.engine.attempt(tx):
                _put_back(tx, table, before, after)
        except RowsRefused as error:
            if (
                table == "scenes"
                and before
                and rows_of(tx, table, "key = ? AND id <> ?", (before["key"], before["id"]))
            ):
                raise Conflict(f"there is a scene {before['key']!r} again: rename or drop it first") from error
            raise Conflict(f"{table} {before or after}: a later write stands in the way") from error
    for table, before, _ in images:
        if before and table in _KEYED:
            _settle_key(tx, table, before["key"])
    for indexed, ids in text_index_ids.items():
        text_index.replace(tx, indexed, ids)


def _still_used(tx: Transaction, made: Mapping[int, Row], table: str, image: Row) -> bool:
    """Tell whether a row is, or belongs to, a scene that an operation made and that later writes use."""
    if table not in ("scenes", "scene_features"):
        return False
    scene = made.get(image["id" if table == "scenes" else "scene_id"])
    return scene is not None and bool(
        rows_of(
            tx,
            "scenes",
            """id = ? AND (strength > ? OR visits > ? OR EXISTS (SELECT 1 FROM scene_refs WHERE scene_id = scenes.id)
                            OR EXISTS (SELECT 1 FROM scene_aliases WHERE scene_id = scenes.id))""",
            (scene["id"], scene["strength"], scene["visits"]),
        )
    )


def _settle_key(tx: Transaction, table: str, key: str) -> None:
    """Let a key that came back lead to one scene: that of this name, not one that had it as an alias in between.

    Raises Conflict where an alias came back and a scene was made under it. Only canonical keys lead anywhere.
    """
    if not is_canonical(key) or not rows_of(tx, "scenes", "key = ?", (key,)):
        return
    if table == "scene_aliases":
        raise Conflict(f"there is a scene {key!r}, which was an alias: drop the scene first")
    tx.execute("DELETE FROM scene_aliases WHERE key = ?", (key,))


def _put_back(tx: Transaction, table: str, before: Row | None, after: Row | None) -> None:
    shape = TABLES[table]
    image = after or before
    assert image is not None
    now = _row_at(tx, table, shape.key, image)
    if now is None and after is None and shape.place:
        now = _row_at(tx, table, shape.place, image)
    if now is None:
        if before is not None:  # what it removed, or what a later write removed that would have been kept without it
            _insert(tx, table, before)
    elif after is None:
        assert before is not None
        # A later write has made the row anew.
        sums = {column: now[column] + before[column] for column in shape.counters}
        _update(tx, table, now, {**sums, **{column: max(now[column], before[column]) for column in shape.greatest}})
    elif before is None:
        left = {column: _without(now[column], after[column]) for column in shape.counters}
        if any(left.values()):
            _update(tx, table, now, left)  # later visits gave more to it
        elif not shape.shared or now == after:
            _delete(tx, table, now)
    else:
        values = {
            column: before[column]
            if now[column] == after[column]
            else before[column] + _without(now[column], after[column])
            for column in after
            if after[column] != before[column] and (column in shape.counters or now[column] == after[column])
        }
        _update(tx, table, now, values)


def _row_at(tx: Transaction, table: str, columns: Sequence[str], image: Row) -> Row | None:
    return next(iter(rows_of(tx, table, _where(columns), [image[column] for column in columns])), None)


def _without(total: float, part: float) -> float:
    """What later writes added to a counter; sums of floats do not come back to exactly 0."""
    return total - part if total - part > _ROUNDING * max(total, part) else 0


def _where(key: Sequence[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in key)


def _insert(tx: Transaction, table: str, row: Row) -> Row:
    key = TABLES[table].key
    marks = ", ".join("?" * len(row))
    statement = f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks}) RETURNING {', '.join(key)}"
    # The row is read: SQLite's RETURNING gives a whole number of a REAL column as an integer.
    return rows_of(tx, table, _where(key), tx.execute(statement, list(row.values())).fetchone())[0]


def _update(tx: Transaction, table: str, row: Row, values: Row) -> None:
    if values:
        key = TABLES[table].key
        sets = ", ".join(f"{column} = ?" for column in values)
        parameters = [*values.values(), *(row[column] for column in key)]
        tx.execute(f"UPDATE {table} SET {sets} WHERE {_where(key)}", parameters)


def _delete(tx: Transaction, table: str, row: Row) -> None:
    key = TABLES[table].key
    tx.execute(f"DELETE FROM {table} WHERE {_where(key)}", [row[column] for column in key])


def image_of(value: Mapping[str, Any]) -> str:
    """Return a row as the journal keeps it."""
    return _IMAGES.encode(value)


def _bytes_as_hex(value: object) -> dict[str, str]:
    assert isinstance(value, bytes)
    return {"hex": value.hex()}


# Made once: json.dumps makes an encoder for each row where it is told how to write.
_KEYS = json.JSONEncoder(ensure_ascii=False)
_IMAGES = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_bytes_as_hex)


def row_of(image: str) -> Row:
    """Return the row that the journal keeps as an image."""
    return {
        column: bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
        for column, value in json.loads(image).items()
    }
