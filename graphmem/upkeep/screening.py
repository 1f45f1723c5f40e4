"""Secrets in what is stored: written before they were screened, mirrored verbatim, or of a form that was learnt since.

Every text column of every table is looked at, the images of the journal too. A secret is replaced in place and not by
an operation, whose images would keep it. What is made of a text (a key, a hash, a length, the text index, vectors) is
made anew. A name that has to be one of its kind and is not any more gets a number.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphmem.core.keys import entity_key, normalize_key, title_key
from graphmem.core.model import StoredSecret
from graphmem.core.redaction import REDACTED, find_secrets, joined, replaced, secrets_of
from graphmem.core.secret_forms import Secret
from graphmem.graph.relations import digest_of
from graphmem.records.drafts import token_of
from graphmem.store import postings, rows, text_index
from graphmem.store.transaction import RowsRefused, Transaction
from graphmem.upkeep.journal import NUMBERS, Row, image_of, row_of

Finder = Callable[[str], Sequence[Secret]]

# Tables of numbers, and of what graphmem itself writes.
_OWN = frozenset({"text_sizes", "counters", "active_days", "leases", "vectors", "_sqlite_migrations"})
_OWN_COLUMNS = frozenset({"kind", "status", "origin", "modality", "payload_digest", "at", "valid_from", "valid_to"})
_JSON = frozenset(
    {
        ("evidence", "scenes"), ("documents", "tags"), ("documents", "entities"), ("operations", "summary"),
        ("operations", "marks"), ("operation_rows", "row"), ("operation_rows", "before"), ("operation_rows", "after"),
    }
)  # fmt: skip
# Columns in the form of scene keys and features, in which no bracket stands.
_KEYS = frozenset(
    {("scenes", "key"), ("scene_aliases", "key"), ("scene_features", "feature"), ("situation_evidence", "label")}
)
# Tables of what has a name by which others tell of it: cleaned first, so that no two names become one.
_NAMING = ("entities", "entity_aliases", "scenes", "scene_aliases", "scopes", "sessions")
# What is made of another column of the row, and how.
_DERIVED: Mapping[str, Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "entities": {"key": ("name", entity_key)},
    "notes": {"title_key": ("title", title_key), "slot_key": ("slot", entity_key)},
    "note_triggers": {"token": ("load_when", token_of)},
    "parts": {
        "author_key": ("author", entity_key),
        "length": ("text", lambda text: text_index.tokens(body=text).length),
    },
    "relations": {"relation_key": ("relation_type", entity_key)},
    "sentences": {"hash": ("text", digest_of)},
}
# The kind in the text index, and the column of its number.
_INDEXED = {
    "entities": ("entity", "id"), "entity_aliases": ("entity", "entity_id"), "sentences": ("sentence", "id"),
    "relations": ("relation", "id"), "notes": ("note", "id"), "note_labels": ("note", "note_id"),
    "parts": ("part", "id"), "blocks": ("block", "num"), "documents": ("document", "num"), "scenes": ("scene", "id"),
    "scene_features": ("scene", "scene_id"),
}  # fmt: skip
# Tables whose rows are of no use without what a secret was a piece of: they go as a whole.
DROPPED = frozenset({"transcripts"})
_MOST_NUMBERS = 10_000
_ROUNDS = 3
_LONG = 8  # characters of a secret that is no word


def screen(
    tx: Transaction, find: Finder, progress: Callable[[int, int], None], *, redact: bool
) -> tuple[tuple[StoredSecret, ...], int]:
    """Return which rows hold secrets, and of what kinds; with redact replace them, and return how many rows changed.

    progress: tables done, and all.
    """
    tables = _tables(tx)
    cleaner = _Cleaner(find, _named_by_relation(tx, find))
    found: dict[StoredSecret, None] = {}
    for done, table in enumerate(tables, 1):
        for row in _rows(tx, table):
            for kind in cleaner.kinds(table, row):
                found[StoredSecret(table.name, table.id_of(row), kind)] = None
        progress(done, len(tables))
    return tuple(found), _redact(tx, tables, cleaner, progress) if redact and found else 0


# ---- what there is


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    texts: tuple[str, ...]
    key: tuple[str, ...]

    def id_of(self, row: Mapping[str, Any]) -> int | None:
        """Return the number of a row, or of what it belongs to; None for a row that only its text tells apart."""
        return next((row[column] for column in self.key if isinstance(row[column], int)), None)


def _tables(tx: Transaction) -> list[_Table]:
    tables = []
    for name in sorted(tx.engine.tables(tx), key=lambda name: (name not in _NAMING, name)):
        columns = tx.engine.columns(tx, name)
        texts = tuple(
            column.name for column in columns
            if column.is_text and column.name not in _OWN_COLUMNS and not column.name.endswith("_at")
        )  # fmt: skip
        if texts and name not in _OWN:
            tables.append(_Table(name, texts, rows.key_of(columns)))
    return tables


def _rows(tx: Transaction, table: _Table) -> Iterator[Row]:
    number = _INDEXED.get(table.name, ())[1:]
    columns = list(dict.fromkeys([*table.key, *table.texts, *_DERIVED.get(table.name, ()), *number]))
    for values in tx.execute(f"SELECT {', '.join(columns)} FROM {table.name} ORDER BY {', '.join(table.key)}"):
        yield dict(zip(columns, values, strict=True))


def _named_by_relation(tx: Transaction, find: Finder) -> dict[str, str]:
    """Return names of entities that are secrets by the relation they are told with, and their kinds."""
    rows = tx.execute("SELECT r.relation_type, e.name FROM relations r JOIN entities e ON e.id = r.target_id")
    return {name: secret.kind for relation, name in rows for secret in secrets_of(relation, name, find)}


# ---- cleaning


@dataclass(slots=True)
class _Cleaner:
    """Takes secrets out of rows.

    beside: names that are secrets whatever they look like. renamed: what became what. folded: the secrets met, as keys
    hold them, in which their form may be lost; beginnings: how these begin.
    """

    find: Finder
    beside: Mapping[str, str]
    renamed: dict[str, str] = field(default_factory=dict)
    folded: set[str] = field(default_factory=set)
    beginnings: set[str] = field(default_factory=set)

    def kinds(self, table: _Table, row: Row) -> Iterator[str]:
        """Yield the kinds of the secrets in a row."""
        texts = [text for column in table.texts for text in _texts(table.name, column, row[column])]
        if table.name == "entities" and row["name"] in self.beside:
            yield self.beside[row["name"]]
        yield from (secret.kind for secret in self.find("\n".join(texts)))

    def clean(self, table: str, row: Row) -> Row:
        """Return a row without secrets, and with the new names of what was renamed."""
        texts = [text for column, value in row.items() for text in _texts(table, column, value)]
        if not self.find("\n".join(texts)) and self.beside.keys().isdisjoint(row.values()) and not self._knows(texts):
            return row
        cleaned = {column: self._clean(table, column, value) for column, value in row.items()}
        for column, (source, made) in _DERIVED.get(table, {}).items():
            if column in row and cleaned[source] != row[source]:
                cleaned[column] = made(cleaned[source])
        if table == "operation_rows":
            for side in ("before", "after"):
                if row[side] is not None:
                    cleaned[side] = image_of(self.clean(row["name"], row_of(row[side])))
        return cleaned

    def _knows(self, texts: Sequence[str]) -> bool:
        """Tell whether one of some texts was renamed, or may hold a secret that was met."""
        return not self.renamed.keys().isdisjoint(texts) or any(map(self._may_hold, texts))

    def _may_hold(self, text: str) -> bool:
        # Thousands of secrets are not looked for one by one in each text.
        return bool(self.beginnings) and not self.beginnings.isdisjoint(
            text[at : at + _LONG] for at in range(len(text) - _LONG + 1)
        )

    def _clean(self, table: str, column: str, value: Any) -> Any:
        if not isinstance(value, str) or (table == "operation_rows" and column in ("before", "after")):
            return value
        if (table, column) in _JSON:
            return json.dumps(self._clean_inside(json.loads(value)), ensure_ascii=False)
        return self._clean_text(value, as_key=(table, column) in _KEYS)

    def _clean_inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._clean_text(value)
        if isinstance(value, list):
            return [self._clean_inside(one) for one in value]
        if isinstance(value, dict):
            return {self._clean_text(name): self._clean_inside(one) for name, one in value.items()}
        return value

    def _clean_text(self, text: str, *, as_key: bool = False) -> str:
        if text in self.renamed:
            return self.renamed[text]
        if text in self.beside:
            return REDACTED
        cleaned = text
        while secrets := self.find(cleaned):
            met = {entity_key(cleaned[secret.start : secret.end]) for secret in secrets}
            self.folded |= {key for key in met if len(key) >= _LONG}
            self.beginnings |= {key[:_LONG] for key in self.folded & met}
            cleaned = replaced(cleaned, secrets)
        if self._may_hold(cleaned):
            for key in self.folded:
                cleaned = cleaned.replace(key, REDACTED.lower())
        return normalize_key(cleaned.replace(REDACTED, "redacted")) if as_key and cleaned != text else cleaned


def _texts(table: str, column: str, value: Any) -> Iterable[str]:
    if not isinstance(value, str):
        return ()
    return _inside(json.loads(value)) if (table, column) in _JSON else (value,)


def _inside(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _inside(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from (name, *_inside(one))


def finder(more: Callable[[str], Iterable[Secret]] | None) -> Finder:
    """Return what finds secrets by our rules, and by others besides."""
    if more is None:
        return find_secrets

    def find(text: str) -> Sequence[Secret]:
        # What others find beside a mark is what they take the mark itself for.
        others = [each for each in more(text) if REDACTED not in text[each.start : each.end]]
        return joined([*find_secrets(text), *others])

    return find


# ---- writing


def _redact(tx: Transaction, tables: Sequence[_Table], cleaner: _Cleaner, progress: Callable[[int, int], None]) -> int:
    """Replace the secrets in all rows; return how many rows were changed."""
    # A name is replaced in its own row first, and then wherever it is told.
    tx.engine.defer_foreign_keys(tx)
    touched: dict[str, set[int]] = defaultdict(set)
    changed: set[tuple[str, str]] = set()
    for _ in range(_ROUNDS):
        before = len(changed), len(cleaner.renamed)
        for done, table in enumerate(tables, 1):
            for row in [row for row in _rows(tx, table) if cleaner.clean(table.name, row) != row]:
                if table.name in DROPPED:
                    same = " AND ".join(f"{column} = ?" for column in table.key)
                    tx.execute(f"DELETE FROM {table.name} WHERE {same}", [row[column] for column in table.key])
                else:
                    _rewrite(tx, table, row, cleaner)
                changed.add((table.name, json.dumps([row[column] for column in table.key], default=str)))
                if table.name in _INDEXED:
                    kind, column = _INDEXED[table.name]
                    touched[kind].add(row[column])
            progress(done, len(tables))
        if (len(changed), len(cleaner.renamed)) == before:
            break
    _settle_lengths(tx, touched["part"])
    _made_anew(tx, touched)
    return len(changed)


def _rewrite(tx: Transaction, table: _Table, row: Row, cleaner: _Cleaner) -> None:
    """Write a row as it is without secrets, under a number where it has to be one of its kind and would not be."""
    cleaned = cleaner.clean(table.name, row)
    for number in range(_MOST_NUMBERS):
        wanted = _numbered(table.name, row, cleaned, number)
        values = {column: value for column, value in wanted.items() if value != row[column]}
        columns = ", ".join(f"{column} = ?" for column in values)
        same = " AND ".join(f"{column} = ?" for column in table.key)
        try:
            with tx.engine.attempt(tx):
                tx.execute(
                    f"UPDATE {table.name} SET {columns} WHERE {same}",
                    (*values.values(), *(row[column] for column in table.key)),
                )
        except RowsRefused:
            continue
        if table.name in _NAMING:
            cleaner.renamed |= {
                row[column]: wanted[column]
                for column in table.texts
                if wanted[column] != row[column] and column in ("name", "key")
            }
        return
    raise RowsRefused(f"{table.name}: no free name was found for what a secret was taken out of")


def _numbered(table: str, row: Row, cleaned: Row, number: int) -> Row:
    if not number:
        return cleaned
    changed = {column for column, value in cleaned.items() if value != row[column]}
    derived = _DERIVED.get(table, {})
    numbered = dict(cleaned)
    for column in changed - derived.keys():
        if (table, column) not in _JSON:
            numbered[column] = f"{cleaned[column]}{'-' if (table, column) in _KEYS else ' '}{number}"
    return numbered | {
        column: make(numbered[source]) for column, (source, make) in derived.items() if source in changed
    }


def _settle_lengths(tx: Transaction, part_ids: Collection[int]) -> None:
    """Let sessions be as long as their parts are now: those of some parts, and those that a purge keeps for an undo."""
    tx.execute(
        f"""UPDATE sessions SET length = (SELECT SUM(p.length) FROM parts p WHERE p.session_id = sessions.id)
            WHERE id IN (SELECT session_id FROM parts WHERE id IN {NUMBERS})""",
        (json.dumps(sorted(part_ids)),),
    )
    tx.execute(
        """WITH kept AS (
               SELECT operation_id, CAST(json_extract(before, '$.session_id') AS BIGINT) AS session,
                      CAST(SUM(CAST(json_extract(before, '$.length') AS BIGINT)) AS BIGINT) AS length
               FROM operation_rows WHERE name = 'parts' GROUP BY 1, 2)
           UPDATE operation_rows SET before = json_set(before, '$.length', kept.length) FROM kept
           WHERE operation_rows.name = 'sessions' AND operation_rows.operation_id = kept.operation_id
               AND CAST(json_extract(before, '$.id') AS BIGINT) = kept.session
               AND CAST(json_extract(before, '$.length') AS BIGINT) <> kept.length"""
    )


def _made_anew(tx: Transaction, touched: Mapping[str, set[int]]) -> None:
    """Index what was changed as it is now, and what shows it; keep no word of what it was."""
    entities = json.dumps(sorted(touched.get("entity", ())))
    beside = tx.execute(
        f"SELECT id FROM relations WHERE source_id IN {NUMBERS} OR target_id IN {NUMBERS}",
        (entities, entities),
    )
    relations = touched.get("relation", set()) | {relation_id for (relation_id,) in beside}
    for kind, ids in {**touched, "relation": relations}.items():
        text_index.replace(tx, kind, ids)
    postings.settle(tx, touched.get("scene", set()))
    tx.words.merge_segments(tx)
