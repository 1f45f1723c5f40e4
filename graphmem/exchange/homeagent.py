"""Import of the store of HomeAgent, the reference engine: scenes, facts, entities, blocks, documents, in both eras.

In the relations era facts are rows between entities; in the block era, the later one, entities and sentences are text
blocks and facts are edges between them, and a file may hold both. Older files lack columns. The bytes of media lie
beside the file, by their SHA-256, as `media/blobs/ab/cd…`. The file is opened for reading only. Each batch is a
transaction, and all of it can be done again: what came before is known.
"""

import contextlib
import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from graphmem.core.choices import MODALITIES
from graphmem.core.keys import (
    FEATURE_KINDS,
    clean_text,
    entity_key,
    feature_key,
    kind_of,
    name_problem,
    normalize_key,
    origin_of,
)
from graphmem.core.model import Refusal, Triple
from graphmem.core.redaction import find_secrets, redact
from graphmem.core.times import foreign_time
from graphmem.errors import InvalidInput, StoreFailed
from graphmem.exchange.importing import Steps, Tally, Target, shown
from graphmem.exchange.rooted import Rooted
from graphmem.graph import blocks, documents, entities, relations, scenes, taken_in
from graphmem.graph.taken_in import usable_count
from graphmem.store.copies import open_copy
from graphmem.store.lists import in_parts
from graphmem.store.schema import APPLICATION_ID
from graphmem.store.transaction import Transaction

_AT_ONCE = 100  # others wait as long as a batch takes
_REFUSED = "it holds a secret ({}); tell it without"
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1  # ids that SQLite knows
# Edges that say what belongs to what, and no fact: sentence to fact, sentence to medium, document to block.
_CONTAINS = "contains"
_OF_ENTITY, _OF_SENTENCE = "blk_ent_", "blk_src_"
_MEDIA = "media"
_LARGEST_PAYLOAD = 1 << 28  # bytes
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ID = re.compile("[0-9]{1,18}")  # such as SQLite knows
_WITHOUT_PAYLOAD = "blocks without their media: {}; take in the file where its folder 'media' lies beside it"
# What a fact is there, by what it is here; anything else that is not in force is kept as archived.
_STATES = {"": "active", "active": "active", "deleted": "deleted", "archived": "archived"}


class _Schema:
    """Which tables and columns a file has."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._columns = {
            table: {row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (table,))}
            for (table,) in tables
        }

    def has(self, table: str) -> bool:
        """Tell whether there is a table."""
        return table in self._columns

    def of(self, table: str, *columns: str) -> str:
        """Return the columns of a table, named by its alias `t`, NULL for those that it lacks."""
        return ", ".join(f"t.{each}" if each in self._columns[table] else "NULL" for each in columns)


class _Ref(NamedTuple):
    """A ref to something. scene: its row there. clock, since: '' where no time is told."""

    target: int
    scene: int
    weight: float
    clock: str
    since: str


class _Fact(NamedTuple):
    """A fact as it is there, its ends by their names, None where they are gone."""

    id: int
    subject: str | None
    relation: str | None
    target: str | None
    confidence: object
    status: object
    session: object
    turn: object
    created: object
    updated: object


class _Scene(NamedTuple):
    """Where a scene of the file is here."""

    id: int
    key: str


@contextlib.contextmanager
def opened(path: str) -> Iterator[Callable[[Target, Tally], None]]:
    """Open a file. Raises StoreFailed for one that holds no scenes of that engine, else as `open_copy` does."""
    with open_copy(path) as copy:
        schema = _Schema(copy.connection)
        (application,) = copy.connection.execute("PRAGMA application_id").fetchone()
        if application == APPLICATION_ID:
            raise InvalidInput("path", path, "is a memory of graphmem and no store of HomeAgent")
        wanted = {"scenes", "scene_features", "scene_refs"}
        if missing := sorted(table for table in wanted if not schema.has(table)):
            raise StoreFailed(f"{path} is no store of HomeAgent: it has no table {', '.join(missing)}; check the path")

        def take_in(target: Target, tally: Tally) -> None:
            tally.remark(*copy.remarks)
            media = Rooted(str(Path(path).parent / _MEDIA))
            _Import(copy.connection, schema, media, target, tally).run()

        yield take_in


class _Import:
    def __init__(
        self, source: sqlite3.Connection, schema: _Schema, media: Rooted, target: Target, tally: Tally
    ) -> None:
        self._source = source
        self._schema = schema
        self._media = media
        self._lacking = 0  # blocks whose payload is not there
        self._target = target
        self._tally = tally
        self._scope = target.scope or ""
        self._scenes: dict[int, _Scene] = {}
        # By the ids there: the entities, and what is a block or a document here.
        self._names: dict[str, str] = {}
        self._blocks: dict[str, str] = {}
        self._documents: dict[str, str] = {}
        self._came_as: set[str] = set()  # ids of blocks and documents here
        self._came: set[int] = set()
        self._newest = self._newest_ref = 0  # entity and ref that were here before
        self._steps = Steps(target.progress, [self._rows_of(table) for table in _TABLES])

    def run(self) -> None:
        """Take in everything, what others point at first."""
        with self._target.writing() as tx:
            self._newest, self._newest_ref = entities.newest(tx), scenes.newest_ref(tx)
        self._take_in_scenes()
        if self._schema.has("relations") and self._schema.has("entities"):
            self._take_in_facts(_RelationsEra(self._source, self._schema))
            self._take_in_entities()
        if self._schema.has("memory_blocks"):
            edges = _BlockEra(self._source, self._schema) if self._schema.has("memory_block_edges") else None
            if edges is not None:
                self._take_in_facts(edges)
            self._take_in_blocks(edges)
        if self._schema.has("documents"):
            self._take_in_documents()
        self._take_in_refs()
        if self._schema.has("situation_evidence"):
            self._take_in_evidence()
        self._steps.finish()

    def _rows_of(self, table: str) -> int:
        if not self._schema.has(table):
            return 0
        (rows,) = self._source.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
        return int(rows)

    def _batches(self, table: str, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of a table in the order of their ids, in batches; the id stands first in each row."""
        (nameless,) = self._source.execute(f"SELECT COUNT(*) FROM {table} WHERE id IS NULL").fetchone()
        if nameless:
            self._tally.remark(f"{table}: {nameless} rows without an id are left out")
        statement = f"""SELECT t.id, {self._schema.of(table, *columns)} FROM {table} t
                        WHERE t.id IS NOT NULL AND (? IS NULL OR t.id > ?) ORDER BY t.id LIMIT {_AT_ONCE}"""
        last = None
        while rows := self._source.execute(statement, (last, last)).fetchall():
            yield rows
            last = rows[-1][0]

    def _time(self, value: object) -> str:
        return foreign_time(value) or self._target.at

    # ---- scenes

    def _take_in_scenes(self) -> None:
        groups = list(self._united())
        for start in range(0, len(groups), _AT_ONCE):
            with self._target.writing() as tx:
                for members, foreign in groups[start : start + _AT_ONCE]:
                    scene_id, outcome = taken_in.take_in_scene(tx, foreign, self._target.at, self._target.config)
                    self._tally.count("scene", outcome)
                    odd = [spelling for spelling in foreign.spellings if spelling != foreign.key]
                    for twin in odd[len(odd) + 1 - len(members) :]:
                        self._tally.merge("scene", twin, foreign.key)
                    if len(members) == 1 and odd:
                        self._tally.remark(f"scene {shown(odd[0])!r} has the key {foreign.key!r} here")
                    self._scenes |= {member: _Scene(scene_id, foreign.key) for member in members}
            self._steps.advance(sum(len(members) for members, _ in groups[start : start + _AT_ONCE]))

    def _united(self) -> Iterator[tuple[list[int], taken_in.ForeignScene]]:
        """Yield scenes, those with one key in canonical form as one, with their rows in the file."""
        found: dict[str, tuple[list[int], taken_in.ForeignScene]] = {}
        columns = self._schema.of("scenes", "key", "strength", "origin", "created_at", "updated_at")
        rows = self._source.execute(f"SELECT t.id, {columns} FROM scenes t ORDER BY t.id").fetchall()
        for scene_id, written, strength, origin, created, updated in rows:
            spelling = clean_text(str(written))
            key = self._key_of(spelling)
            if not key:
                continue
            foreign = taken_in.ForeignScene(
                key, max(usable_count(strength), 1), self._features_of(scene_id), (spelling,), foreign_time(created),
                foreign_time(updated),
            )  # fmt: skip
            if origin == "emergent" and origin_of(key) == "declared" and foreign.features:
                self._tally.remark(f"scene {key!r} was emergent under a key that was declared: it is declared here")
            members, known = found.get(key, ([], foreign))
            found[key] = [*members, scene_id], _one_scene(known, foreign) if members else foreign
        yield from found.values()

    def _key_of(self, spelling: str, what: str = "scene") -> str:
        """Return the key of a scene or a label here, '' for one that cannot be taken in."""
        try:
            key = normalize_key(spelling)
        except InvalidInput as error:
            self._tally.refuse(what, spelling, error.reason)
            return ""
        secrets = find_secrets(spelling)
        if secrets or not key:
            why = _REFUSED.format(secrets[0].kind) if secrets else "nothing is left of its key"
            self._tally.refuse(what, spelling, why)
            return ""
        return key

    def _features_of(self, scene_id: int) -> dict[str, float]:
        found: dict[str, float] = {}
        columns = self._schema.of("scene_features", "feature", "weight")
        for text, weight in self._source.execute(
            f"SELECT {columns} FROM scene_features t WHERE t.scene_id = ? ORDER BY t.feature", (scene_id,)
        ):
            kind, _, value = str(text).partition(":")
            try:
                feature = feature_key(kind, value)
            except InvalidInput:
                feature = ""
            is_known = kind_of(feature) in FEATURE_KINDS  # another kind may be the name of a secret
            if not feature or find_secrets(value if is_known else str(text)):
                why = "no kind and value are left of it" if not feature else "it holds a secret"
                self._tally.refuse("feature", str(text), why)
                continue
            usable = taken_in.usable_weight(weight, self._target.config.weight_of(kind_of(feature)))
            found[feature] = max(usable, found.get(feature, 0.0))
        return found

    # ---- facts

    def _take_in_facts(self, era: "_RelationsEra | _BlockEra") -> None:
        last = 0
        while facts := era.facts(last):
            refs = self._refs_of(last or _FIRST, facts[-1].id, era.ref_kind)
            last = facts[-1].id
            sentences = era.sentences(facts)
            with self._target.writing() as tx:
                for fact in facts:
                    self._take_in_fact(tx, fact, clean_text(sentences.get(fact.id, "")), refs.pop(fact.id, []))
            self._refuse_gone(era, refs)
            self._steps.advance(len(facts))
        self._refuse_gone(era, self._refs_of(last or _FIRST, _LAST, era.ref_kind))

    def _refuse_gone(self, era: "_RelationsEra | _BlockEra", refs: dict[int, list[_Ref]]) -> None:
        for ref in (ref for left in refs.values() for ref in left):
            self._tally.refuse("ref", f"{era.ref_kind} {ref.target}", "what it points at is gone")

    def _refs_of(self, after: int, last: int, kind: str) -> dict[int, list[_Ref]]:
        found: dict[int, list[_Ref]] = {}
        columns = self._schema.of("scene_refs", "ref_id", "scene_id", "weight", "decayed_at", "created_at")
        for target, scene, weight, clock, since in self._source.execute(
            f"SELECT {columns} FROM scene_refs t WHERE t.kind = ? AND t.ref_id > ? AND t.ref_id <= ?",
            (kind, after, last),
        ):
            found.setdefault(target, []).append(_ref(target, scene, weight, clock, since))
        return found

    def _take_in_fact(self, tx: Transaction, row: _Fact, sentence: str, refs: Sequence[_Ref]) -> None:
        name = " - ".join(str(part or "?") for part in (row.subject, row.relation, row.target))
        if row.subject is None or row.target is None:
            self._refuse_fact(name, "an end of it is gone", refs)
            return
        confidence = min(taken_in.usable_weight(row.confidence, 1.0), 1.0)
        triple = Triple(row.subject, str(row.relation or ""), row.target, sentence=sentence, confidence=confidence)
        (fact,), remarks = relations.check_triples([triple], self._target.config.zone)
        if isinstance(fact, Refusal):
            self._refuse_fact(name, fact.reason, refs)
            return
        if remarks:
            self._tally.remark(f"fact {row.id}: {remarks[0].partition(': ')[2]}")
        told = self._time(row.created)
        here = {ref.scene: self._scenes[ref.scene] for ref in refs if ref.scene in self._scenes}
        saying = relations.Saying(
            redact(clean_text(str(row.session or ""))), usable_count(row.turn), self._target.source, self._scope,
            told, tuple(dict.fromkeys(scene.key for scene in here.values())),
        )  # fmt: skip
        relation_id = taken_in.told_before(tx, fact, saying, at_any_time=not foreign_time(row.created))
        told_again = relation_id is not None
        if relation_id is not None:
            self._tally.count("fact", "known")
        else:
            (outcome,) = relations.tell(tx, [fact], saying, [])
            relation_id = outcome.relation_id
            if refs and not here:  # its scenes are refused or gone, which makes it nobody's rather than everybody's
                taken_in.keep_from_all(tx, relation_id, saying.source)
            taken_in.confirm_fact(tx, relation_id, self._time(row.updated))
            status = _STATES.get(str(row.status or ""), "archived")
            if outcome.created:
                self._tally.count("fact", "added")
                if status != "active":
                    taken_in.put_away_fact(tx, relation_id, status, self._time(row.updated))
            else:
                self._tally.merge("fact", name, f"fact {relation_id}, which says the same")
        self._put_refs(tx, ("relation", relation_id, ""), refs, "" if told_again else fact.sentence)

    def _refuse_fact(self, name: str, why: str, refs: Sequence[_Ref]) -> None:
        self._tally.refuse("fact", name, why)
        for _ in refs:
            self._tally.refuse("ref", name, "its fact is refused")

    def _put_refs(
        self, tx: Transaction, target: tuple[str, int, str], refs: Sequence[_Ref], sentence: str = ""
    ) -> None:
        """Attach something to scenes. target: its kind and id. sentence: tells it there, '' for the one that does."""
        sentence_id = None
        if sentence:
            found = tx.execute("SELECT id FROM sentences WHERE hash = ?", (relations.digest_of(sentence),)).fetchone()
            sentence_id = found and found[0]
        for ref in refs:
            scene = self._scenes.get(ref.scene)
            if scene is None:
                self._tally.refuse(
                    "ref", " ".join(str(part) for part in target if part), "its scene is gone or refused"
                )
                continue
            place = (scene.id, *target)
            row = tx.execute(
                """SELECT id > ?, weight >= ? AND decayed_at >= ? AND (CAST(? AS BIGINT) IS NULL OR sentence_id = ?)
                   FROM scene_refs WHERE scene_id = ? AND kind = ? AND ref_id = ? AND ref_text = ?""",
                (self._newest_ref, ref.weight, ref.clock, sentence_id, sentence_id, *place),
            ).fetchone()
            is_new, is_known = row or (False, False)
            outcome = "added" if row is None else "merged" if is_new else "known" if is_known else "changed"
            self._tally.count("ref", outcome)
            if not is_known:
                at = self._target.at
                scenes.put_refs(tx, [(*place, sentence_id, ref.weight, ref.clock or at, ref.since or at)])

    # ---- entities, blocks and documents

    def _take_in_entities(self) -> None:
        columns = ("name", "type", "mention_count", "created_at", "updated_at")
        for rows in self._batches("entities", columns):
            with self._target.writing() as tx:
                self._write_entities(tx, [(f"entity {row[0]}", *row[1:]) for row in rows])
            self._steps.advance(len(rows))

    def _write_entities(self, tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write entities: id there, name, type, mentions, two times. A name that none may have is kept as a text."""
        foreign: list[taken_in.ForeignEntity] = []
        for place, name, type_, mentions, created, updated in rows:
            text = clean_text(str(name or "")).strip()
            since = self._time(created)
            if secrets := find_secrets(text):
                self._tally.refuse("entity", text, _REFUSED.format(secrets[0].kind))
            elif why := name_problem(text):
                if not text:
                    self._tally.refuse("entity", place, why)
                    continue
                self._tally.remark(f"{shown(place)} is kept as a text block: {why}")
                self._write_block(tx, place, text, {"created_at": created, "updated_at": updated}, openly=False)
            else:
                self._names[place] = entity_key(text)
                one = taken_in.ForeignEntity(
                    text, redact(clean_text(str(type_ or ""))).strip(), usable_count(mentions), since,
                    max(since, self._time(updated)), is_dated=bool(foreign_time(created)),
                )  # fmt: skip
                foreign.append(one)
        for one, outcome in zip(foreign, taken_in.take_in_entities(tx, foreign, self._newest, self._came), strict=True):
            if outcome == "merged":
                self._tally.merge("entity", one.name, entity_key(one.name))
            else:
                self._tally.count("entity", outcome)

    def _take_in_blocks(self, edges: "_BlockEra | None") -> None:
        in_scenes = {text for (text,) in self._source.execute("SELECT ref_text FROM scene_refs WHERE kind = 'block'")}
        names = edges.entity_ids() if edges is not None else frozenset()
        told = edges.sentence_ids() - names if edges is not None else frozenset()
        for rows in self._batches("memory_blocks", _BLOCK_COLUMNS):
            media: list[tuple[str, dict[str, Any], bool]] = []
            with self._target.writing() as tx:
                named: list[tuple[Any, ...]] = []
                for place, *values in rows:
                    row = dict(zip(_BLOCK_COLUMNS, values, strict=True))
                    if place in names:
                        text, kind = row["text_content"], row["semantic_type"]
                        named.append((place, text, kind, 0, row["created_at"], row["updated_at"]))
                        continue
                    if place in told and place not in in_scenes:
                        continue
                    openly = place not in in_scenes and not row["scene"]
                    if row["payload_digest"]:
                        media.append((place, row, openly))
                        continue
                    self._write_block(tx, place, clean_text(str(row["text_content"] or "")).strip(), row, openly=openly)
                self._write_entities(tx, named)
            for place, row, openly in media:  # each takes as long as it is large
                self._take_in_medium(place, row, openly=openly)
            self._steps.advance(len(rows))
        if self._lacking:
            self._tally.remark(_WITHOUT_PAYLOAD.format(self._lacking))

    def _take_in_medium(self, place: str, row: dict[str, Any], *, openly: bool) -> None:
        text = clean_text(str(row["text_content"] or "")).strip()
        payload = self._payload(place, str(row["payload_digest"]))
        if payload is None:
            self._lacking += 1
            text = text or f"[{row['mime'] or row['modality']}, {usable_count(row['size'])} bytes, {place}]"
        with self._target.writing() as tx:
            self._write_block(tx, place, text, row, openly=openly, payload=payload)

    def _payload(self, place: str, digest: str) -> bytes | None:
        """Return the bytes of a medium, None where they are not there, or are others: that is told."""
        try:
            if not _DIGEST.fullmatch(digest):
                raise InvalidInput("payload_digest", digest, "names no file")
            read = self._media.read(f"blobs/{digest[:2]}/{digest[2:]}", _LARGEST_PAYLOAD)
            if read is None:
                return None
            if hashlib.sha256(read[0]).hexdigest() != digest:
                raise InvalidInput("file", digest, "was changed since it was put there")
        except InvalidInput as error:
            self._tally.refuse("payload", place, f"{error.argument}: {error.reason}")
            return None
        return read[0]

    def _write_block(
        self,
        tx: Transaction,
        place: str,
        text: str,
        row: dict[str, Any],
        *,
        openly: bool,
        payload: bytes | None = None,
    ) -> None:
        labels = {name: str(row.get(name) or "") for name in ("mime", "source", "tool", "semantic_type")}
        modality = str(row.get("modality") or "text")
        try:
            new = blocks.check_block(
                text, modality=modality if modality in MODALITIES else "text", payload=payload,
                width=usable_count(row.get("width")) or None, height=usable_count(row.get("height")) or None,
                **labels,
            )  # fmt: skip
        except InvalidInput as error:
            self._tally.refuse("block", place, error.reason)
            return
        if new.text != text:
            self._tally.remark(f"block {shown(place)}: secrets in its text were replaced")
        if new.id in self._came_as:
            self._tally.merge("block", place, new.id)
        else:
            self._tally.count("block", "known" if blocks.knows(tx, new.id) else "added")
        self._blocks[place] = new.id
        self._came_as.add(new.id)
        at = foreign_time(row.get("created_at"))
        in_row = self._target.keep_payload(new.digest, payload or b"")
        blocks.write(tx, new, at or self._target.at, at_is_given=bool(at), in_row=in_row, openly=openly)

    def _take_in_documents(self) -> None:
        held = {text for (text,) in self._source.execute("SELECT ref_text FROM scene_refs WHERE kind = 'document'")}
        for rows in self._batches("documents", ("summary", "created_at")):
            held_by = {place: self._blocks_of(str(place)) for place, *_ in rows}
            with self._target.writing() as tx:
                for place, told, created in rows:
                    summary = clean_text(str(told or "")).strip()
                    text = summary or clean_text(str(place)).strip()
                    if not text:
                        self._tally.refuse("document", place, "has no text and no id")
                        continue
                    new = documents.check_document(
                        text, summary=summary, source="homeagent", tags=(), entities=(), blocks=held_by[place]
                    )
                    if new.id in self._came_as:
                        self._tally.merge("document", str(place), new.id)
                    else:
                        self._tally.count("document", "known" if documents.is_known(tx, new.id) else "added")
                    self._documents[str(place)] = new.id
                    self._came_as.add(new.id)
                    openly = place not in held
                    at = foreign_time(created)
                    documents.write(tx, new, at or self._target.at, at_is_given=bool(at), openly=openly)
            self._steps.advance(len(rows))

    def _blocks_of(self, document: str) -> list[str]:
        if not self._schema.has("memory_block_edges"):
            return []
        rows = self._source.execute(
            """SELECT target_id FROM memory_block_edges
               WHERE source_kind = 'document' AND source_id = ? AND target_kind = 'block' ORDER BY id""",
            (document,),
        )
        return [self._blocks[block] for (block,) in rows if block in self._blocks]

    # ---- refs to all but facts

    def _take_in_refs(self) -> None:
        columns = ("kind", "ref_id", "ref_text", "scene_id", "weight", "decayed_at", "created_at")
        for rows in self._batches("scene_refs", columns):
            with self._target.writing() as tx:
                others = [row for row in rows if row[1] not in ("relation", "edge")]
                keys = {
                    self._names[place] for row in others if (place := _place_of(row[1], row[2], row[3])) in self._names
                }
                ids = entities.known(tx, keys)
                for _, kind, ref_id, ref_text, scene, weight, clock, since in others:
                    place = _place_of(kind, ref_id, ref_text)
                    ref = _ref(0, scene, weight, clock, since)
                    if place in self._names:
                        self._put_refs(tx, ("entity", ids[self._names[place]], ""), [ref])
                    elif kind in ("entity", "block") and place in self._blocks:
                        self._put_refs(tx, ("block", 0, self._blocks[place]), [ref])
                    elif kind == "document" and place in self._documents:
                        self._put_refs(tx, ("document", 0, self._documents[place]), [ref])
                    else:
                        self._tally.refuse(
                            "ref", f"{kind} {ref_text or ref_id}", "what it points at is gone or refused"
                        )
            self._steps.advance(len(rows))

    def _take_in_evidence(self) -> None:
        columns = self._schema.of("situation_evidence", "label", "count", "updated_at")
        rows = self._source.execute(f"SELECT {columns} FROM situation_evidence t ORDER BY t.label").fetchall()
        with self._target.writing() as tx:
            for label, count, at in rows:
                key = self._key_of(str(label), "label")
                if key:
                    known = taken_in.take_in_label(
                        tx, key, max(usable_count(count), 1), foreign_time(at), self._target.at
                    )
                    self._tally.count("label", "known" if known else "added")
        self._steps.advance(len(rows))


_TABLES = ("scenes", "relations", "memory_block_edges", "entities", "memory_blocks", "documents", "scene_refs",
           "situation_evidence")  # fmt: skip
_BLOCK_COLUMNS = (
    "modality", "text_content", "payload_digest", "mime", "size", "width", "height", "source", "tool", "scene",
    "semantic_type", "created_at", "updated_at",
)  # fmt: skip


class _RelationsEra:
    """Facts as rows between entities."""

    ref_kind = "relation"

    def __init__(self, source: sqlite3.Connection, schema: _Schema) -> None:
        self._source = source
        self._has_sentences = schema.has("sentences") and schema.of("relations", "sentence_id") != "NULL"
        told = schema.of("relations", "confidence", "status", "session_id", "turn_id", "created_at", "updated_at")
        self._facts = f"""SELECT t.id, a.name, t.relation_type, b.name, {told} FROM relations t
                          LEFT JOIN entities a ON a.id = t.source_id LEFT JOIN entities b ON b.id = t.target_id
                          WHERE t.id > ? ORDER BY t.id LIMIT {_AT_ONCE}"""

    def facts(self, after: int) -> list[_Fact]:
        """Return the next facts."""
        return [_Fact(*row) for row in self._source.execute(self._facts, (after,))]

    def sentences(self, facts: Sequence[_Fact]) -> dict[int, str]:
        """Return the sentences of facts."""
        if not self._has_sentences:
            return {}
        rows = self._source.execute(
            """SELECT t.id, s.text FROM relations t JOIN sentences s ON s.id = t.sentence_id
               WHERE t.id BETWEEN ? AND ?""",
            (facts[0].id, facts[-1].id),
        )
        return {fact_id: str(text) for fact_id, text in rows}


class _BlockEra:
    """Facts as edges between text blocks."""

    ref_kind = "edge"

    def __init__(self, source: sqlite3.Connection, schema: _Schema) -> None:
        self._source = source
        told = schema.of("memory_block_edges", "confidence", "status", "session_id", "turn_id", "created_at")
        began = schema.of("memory_block_edges", "created_at")
        self._columns = f"t.id, a.text_content, t.edge_type, b.text_content, {told}, {began}"
        self._merged_into = schema.of("memory_block_edges", "merged_into")

    def facts(self, after: int) -> list[_Fact]:
        """Return the next facts; one that was merged into another says what that one says."""
        rows = self._source.execute(
            f"SELECT {self._columns}, {self._merged_into} FROM {_EDGES} AND t.id > ? ORDER BY t.id LIMIT {_AT_ONCE}",
            (after,),
        ).fetchall()
        return [self._surviving(_Fact(*row[:-1]), row[-1]) for row in rows]

    def _surviving(self, fact: _Fact, merged_into: object) -> _Fact:
        passed = {fact.id}
        own = fact
        while fact.status == "merged" and _ID.fullmatch(str(merged_into)) and int(str(merged_into)) not in passed:
            passed.add(int(str(merged_into)))
            row = self._source.execute(
                f"SELECT {self._columns}, {self._merged_into} FROM {_EDGES} AND t.id = ?", (int(str(merged_into)),)
            ).fetchone()
            if row is None:
                return own
            fact, merged_into = _Fact(*row[:-1]), row[-1]
        return own._replace(subject=fact.subject, relation=fact.relation, target=fact.target, status=fact.status)

    def sentences(self, facts: Sequence[_Fact]) -> dict[int, str]:
        """Return the sentences of facts, the first of each."""
        found: dict[int, str] = {}
        for part, marks in in_parts(str(fact.id) for fact in facts):
            for fact_id, text in self._source.execute(
                f"""SELECT t.target_id, b.text_content FROM memory_block_edges t
                    JOIN memory_blocks b ON b.id = t.source_id
                    WHERE t.target_kind = 'edge' AND t.edge_type = '{_CONTAINS}' AND t.target_id IN ({marks})
                    ORDER BY t.id""",
                part,
            ):
                found.setdefault(int(fact_id), str(text))
        return found

    def entity_ids(self) -> frozenset[str]:
        """Return the ids of the blocks that are entities: by their ids, or as the ends of facts."""
        own = f"SELECT id FROM memory_blocks WHERE id GLOB '{_OF_ENTITY}*'"
        ends = " UNION ".join(f"SELECT t.{end} FROM {_EDGES}" for end in ("source_id", "target_id"))
        return frozenset(block for (block,) in self._source.execute(f"{own} UNION {ends}"))

    def sentence_ids(self) -> frozenset[str]:
        """Return the ids of the blocks that are sentences."""
        return frozenset(
            block
            for (block,) in self._source.execute(
                f"""SELECT id FROM memory_blocks WHERE id GLOB '{_OF_SENTENCE}*' UNION
                    SELECT source_id FROM memory_block_edges
                    WHERE edge_type = '{_CONTAINS}' AND source_kind = 'block' AND target_kind = 'edge'"""
            )
        )


# The edges that are facts, with the blocks at their ends.
_EDGES = f"""memory_block_edges t
    LEFT JOIN memory_blocks a ON a.id = t.source_id LEFT JOIN memory_blocks b ON b.id = t.target_id
    WHERE t.source_kind IN ('block', 'entity') AND t.target_kind IN ('block', 'entity') AND NOT (
        t.edge_type = '{_CONTAINS}' AND (t.source_id GLOB '{_OF_SENTENCE}*' OR b.modality IS NOT 'text'))"""


def _one_scene(one: taken_in.ForeignScene, other: taken_in.ForeignScene) -> taken_in.ForeignScene:
    """Return two twins as one scene: strengths add, of each feature the greater weight stays."""
    features = {**one.features}
    for feature, weight in other.features.items():
        features[feature] = max(weight, features.get(feature, 0.0))
    return replace(
        one,
        strength=min(one.strength + other.strength, taken_in.MOST),
        features=features,
        spellings=(*one.spellings, *other.spellings),
        created_at=min(filter(None, (one.created_at, other.created_at)), default=""),
        updated_at=max(one.updated_at, other.updated_at),
    )


def _ref(target: int, scene: int, weight: object, clock: object, since: object) -> _Ref:
    begun = foreign_time(since)
    return _Ref(target, scene, taken_in.usable_weight(weight, 1.0), foreign_time(clock) or begun, begun)


def _place_of(kind: str, ref_id: object, ref_text: object) -> str:
    """Return what a ref points at, as what was taken in is known by."""
    return f"entity {ref_id}" if kind == "entity" else str(ref_text or "")
