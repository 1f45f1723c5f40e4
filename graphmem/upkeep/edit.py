"""Editing one fact: its row stays, deleted, since that it was so is information; a new one takes its place."""

from dataclasses import dataclass

from graphmem.core.keys import clean_text, entity_key, name_problem
from graphmem.core.model import EditReport, Triple
from graphmem.core.redaction import secrets_of
from graphmem.errors import InvalidInput, NotFound, SecretRefused
from graphmem.graph import relations
from graphmem.graph.entities import mention
from graphmem.graph.relations import put_sentences
from graphmem.store import text_index
from graphmem.store.transaction import Transaction
from graphmem.upkeep.journal import Journal, Row, rows_of


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be otherwise about a fact; None keeps what was."""

    subject: str | None
    relation: str | None
    object: str | None
    sentence: str | None
    confidence: float | None


def check_changes(given: Changes) -> Changes:
    """Return the changes with their texts cleaned; raise InvalidInput for none, and for what no fact can have.

    >>> check_changes(Changes(None, " likes ", None, None, None)).relation
    'likes'
    """
    names = {"subject": given.subject, "relation": given.relation, "object": given.object}
    if given == Changes(None, None, None, None, None):
        raise InvalidInput("changes", None, "give at least one of subject, relation, object, sentence, confidence")
    for argument, name in names.items():
        if name is not None and (problem := name_problem(name)):
            raise InvalidInput(argument, name, problem)
    sentence, confidence = given.sentence, given.confidence
    # A triple refuses what a fact cannot have.
    Triple(
        "", "", "", sentence="" if sentence is None else sentence, confidence=1.0 if confidence is None else confidence
    )
    subject, relation, object_, sentence = (
        None if text is None else clean_text(text).strip() for text in (*names.values(), sentence)
    )
    return Changes(subject, relation, object_, sentence, confidence)


def edit(tx: Transaction, relation_id: int, changes: Changes, at: str) -> EditReport:
    """Put a changed fact in the place of an active one, in all its scenes.

    Raises NotFound where there is none, SecretRefused where the object is a secret by its relation.
    """
    found = rows_of(tx, "relations", "id = ? AND status = 'active'", (relation_id,))
    if not found:
        raise NotFound(f"relation {relation_id}: there is no active fact of this id; recall tells the ids")
    (old,) = found
    _refuse_secret(tx, old, changes)
    refs = rows_of(tx, "scene_refs", "kind = 'relation' AND ref_id = ?", (relation_id,))
    journal = Journal(tx)
    retold: Row = {}
    if changes.sentence is not None:
        (retold["sentence_id"],), fresh = put_sentences(tx, [changes.sentence], at)
        text_index.add(tx, "sentence", fresh)
    given = retold if changes.confidence is None else {**retold, "confidence": changes.confidence}
    wanted = {
        **old,
        **given,
        "source_id": _end(journal, old["source_id"], changes.subject, at),
        "target_id": _end(journal, old["target_id"], changes.object, at),
    }
    if changes.relation is not None:
        wanted |= {"relation_type": changes.relation, "relation_key": entity_key(changes.relation)}
    scenes = _keys(tx, refs)
    if wanted == old and all({**ref, **retold} == ref for ref in refs):
        return EditReport(relation_id, relation_id, scenes)
    journal.update("relations", old, status="deleted", closed_at=at)
    new = _put(journal, wanted, given, at)
    keys = {"source_key": changes.subject, "target_key": changes.object}
    renamed = {column: entity_key(name) for column, name in keys.items() if name is not None}
    for said in rows_of(tx, "evidence", "relation_id = ?", (relation_id,)):
        journal.insert("evidence", {**_without_id(said), **given, **renamed, "relation_id": new["id"]})
    order_values(journal, (new["source_id"], new["relation_key"], new["scope"]), at)
    for ref in refs:
        _attach(journal, {**ref, "ref_id": new["id"]}, retold)
        for end in (new["source_id"], new["target_id"]):
            _attach(journal, {**ref, "kind": "entity", "ref_id": end, "sentence_id": None}, {})
    summary = {"old": relation_id, "new": new["id"], "scenes": len(scenes)}
    return EditReport(relation_id, new["id"], scenes, journal.close("edit", at, summary))


def _refuse_secret(tx: Transaction, old: Row, changes: Changes) -> None:
    """Refuse a relation and an object that make a secret together, where the one or the other is new."""
    if changes.relation is None and changes.object is None:
        return
    object_ = changes.object
    if object_ is None:
        (object_,) = tx.execute("SELECT name FROM entities WHERE id = ?", (old["target_id"],)).fetchone()
    for secret in secrets_of(changes.relation or old["relation_type"], object_):
        raise SecretRefused("relation" if changes.object is None else "object", secret.kind)


def _end(journal: Journal, entity_id: int, name: str | None, at: str) -> int:
    if name is None or rows_of(journal.tx, "entities", "id = ? AND key = ?", (entity_id, entity_key(name))):
        return entity_id
    (found,), fresh = mention(journal.tx, [name], at)
    if fresh:
        text_index.add(journal.tx, "entity", fresh)
        journal.remember("entities", None, *rows_of(journal.tx, "entities", "id = ?", (found,)))
    return found


def _put(journal: Journal, wanted: Row, given: Row, at: str) -> Row:
    """Return the active fact that is equal, with what was given changed; else a new one."""
    place = [wanted[column] for column in ("source_id", "relation_key", "target_id", "scope")]
    equal = rows_of(
        journal.tx,
        "relations",
        "source_id = ? AND relation_key = ? AND target_id = ? AND scope = ? AND status = 'active'",
        place,
    )
    if equal:
        journal.update("relations", equal[0], **given, updated_at=max(at, equal[0]["updated_at"]))
        return equal[0]
    new = journal.insert("relations", {**_without_id(wanted), "updated_at": max(at, wanted["updated_at"])})
    text_index.add(journal.tx, "relation", [new["id"]])
    return new


def order_values(journal: Journal, place: tuple[int, str, str], at: str) -> None:
    """Let the latest value of a functional relation hold alone; place: its source, its key, its scope."""
    condition = "source_id = ? AND relation_key = ? AND scope = ?"
    if rows_of(journal.tx, "relations", f"{condition} AND status = 'superseded' LIMIT 1", place):
        with journal.watching("relations", condition, place):
            relations.order_values(journal.tx, place, at)


def _attach(journal: Journal, wanted: Row, given: Row) -> None:
    target = [wanted[column] for column in ("scene_id", "kind", "ref_id")]
    known = rows_of(journal.tx, "scene_refs", "scene_id = ? AND kind = ? AND ref_id = ?", target)
    if not known:
        journal.insert("scene_refs", {**_without_id(wanted), **given})
        return
    weight = max(known[0]["weight"], wanted["weight"])
    clock = max(known[0]["decayed_at"], wanted["decayed_at"])
    journal.update("scene_refs", known[0], **{"weight": weight, "decayed_at": clock, **given})


def _keys(tx: Transaction, refs: list[Row]) -> tuple[str, ...]:
    return tuple(sorted(rows_of(tx, "scenes", "id = ?", (ref["scene_id"],))[0]["key"] for ref in refs))


def _without_id(row: Row) -> Row:
    return {column: value for column, value in row.items() if column != "id"}
