"""Forgetting: softly, so that an undo brings it back, or for good. First a plan, then its work.

What is to go is told by criteria. Softly, entities and scenes stay, also those left without a fact; for good, an entity
goes with its last fact, since its name is known by that alone.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphmem.core.keys import clean_text, entity_key, range_below, require_key, require_texts
from graphmem.core.model import PurgeReport
from graphmem.errors import InvalidInput, NotFound
from graphmem.graph import entities
from graphmem.graph.scenes import below
from graphmem.records import history, jobs, scopes
from graphmem.store import text_index
from graphmem.store.transaction import Transaction
from graphmem.upkeep import erase
from graphmem.upkeep.erase import Gone
from graphmem.upkeep.journal import NUMBERS, TEXTS, Journal, rows_of

_KINDS = ("relation", "entity", "note", "incident", "session", "scene", "saying")
# Keys of scenes that a report names.
_NAMED = 10

# A condition in SQL and its parameters.
Condition = tuple[str, Sequence[object]]
_ALWAYS: Condition = ("TRUE", ())


@dataclass(frozen=True, slots=True)
class Criteria:
    """What to purge, in canonical form; '' where it does not matter, None for the scope, since '' is the user's own."""

    subject_contains: str
    object_contains: str
    relation: str
    entity: str
    session: str
    scope: str | None
    scene: str

    @property
    def given(self) -> set[str]:
        """The names of those that matter."""
        return {name for name, text in asdict(self).items() if text or (name == "scope" and text is not None)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes, by kind and id, and the report of it. scope: one that goes as a whole, for good."""

    report: PurgeReport
    gone: Gone
    scope: str = ""


@dataclass(frozen=True, slots=True)
class _Told:
    """Facts as told in one place: the condition that they were told there, and the one that they were nowhere else."""

    there: Condition
    alone: Condition


def check_criteria(*, scope: str | None, **given: str) -> Criteria:
    """Return the criteria; raise InvalidInput when there is none, and for one that nothing is left of.

    >>> check_criteria(subject_contains=" ＱＱ ", object_contains="", relation="", entity="", session="", scope=None,
    ...                scene="").subject_contains
    'qq'
    """
    require_texts(**given)
    folded: dict[str, str] = {}
    for argument, text in given.items():
        if argument == "scene":
            folded[argument] = text and require_key(text, argument)
        else:
            folded[argument] = clean_text(text) if argument == "session" else entity_key(clean_text(text))
        # A filter that was given and fell away would purge too much.
        if text and not folded[argument]:
            raise InvalidInput(
                argument, text, "nothing is left of it to look for; leave it out or give a part of a name"
            )
    if scope is None and not any(folded.values()):
        raise InvalidInput(
            "criteria", None, f"give at least one of {', '.join(folded)}, scope: a purge is never of everything"
        )
    return Criteria(**folded, scope=scope)


# ---- planning


def plan_purge(tx: Transaction, criteria: Criteria, *, hard: bool) -> Plan:
    """Return what a purge would remove; what was removed softly before, only where it is for good.

    Raises NotFound for an entity, session, scope or scene of which nothing is known.
    """
    _require_known(tx, criteria)
    gone: Gone = {kind: set() for kind in _KINDS}
    conditions, parameters = ["(? = 1 OR r.status <> 'deleted')"], [hard]
    if criteria.subject_contains:
        _add(conditions, parameters, "instr(a.key, ?) > 0", criteria.subject_contains)
    if criteria.object_contains:
        _add(conditions, parameters, "instr(b.key, ?) > 0", criteria.object_contains)
    if criteria.relation:
        _add(conditions, parameters, "r.relation_key = ?", criteria.relation)
    if criteria.entity:
        named = _entities(tx, criteria.entity, hard=hard)
        _add(conditions, parameters, f"(a.id IN {NUMBERS} OR b.id IN {NUMBERS})", *[json.dumps(sorted(named))] * 2)
        gone["entity"] = named
    in_session = _in_session(criteria.session) if criteria.session else _Told(_ALWAYS, _ALWAYS)
    in_scene = _in_scene(tx, criteria.scene) if criteria.scene else _Told(_ALWAYS, _ALWAYS)
    for there, values in (in_session.there, in_scene.there):
        _add(conditions, parameters, there, *values)
    if criteria.scope is not None:
        _add(conditions, parameters, "r.scope = ?", criteria.scope)
    rows = tx.execute(
        f"""SELECT r.id, {in_session.alone[0]}, {in_scene.alone[0]}
            FROM relations r JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
            WHERE {" AND ".join(conditions)} ORDER BY r.id""",
        (*in_session.alone[1], *in_scene.alone[1], *parameters),
    ).fetchall()
    gone["relation"] = {each for each, session_alone, scene_alone in rows if session_alone and scene_alone}
    spared = tuple(each for each, *_ in rows if each not in gone["relation"])
    if hard and criteria.session:
        retold = {each for each, session_alone, scene_alone in rows if scene_alone and not session_alone}
        gone["saying"] = _sayings(tx, criteria.session, retold)
    if criteria.scope is not None and criteria.given == {"scope"}:
        gone["note"] = _notes(tx, criteria.scope, hard=hard)
        gone["incident"] = _incidents(tx, criteria.scope, hard=hard)
    if criteria.given <= {"session", "scope"}:
        gone["session"] = _sessions(tx, criteria, hard=hard)
    if hard and criteria.given == {"scene"}:
        gone["scene"] = _scenes(tx, criteria.scene)
    plan = _plan(tx, gone, hard=hard)
    quoting = _quoting(tx, criteria.session, gone["note"]) if hard and criteria.session else []
    spared_in = _holding(tx, spared, criteria.scene) if criteria.scene else ()
    whole = criteria.scope if hard and criteria.given == {"scope"} else None
    report = replace(plan.report, spared=spared, spared_in=spared_in, left=(*plan.report.left, *quoting))
    return replace(plan, report=report, scope=whole or "")


def plan_delete(tx: Transaction, relation_id: int, *, hard: bool) -> Plan:
    """Return what the deletion of one fact would remove; raise NotFound for an unknown one, or one that is deleted."""
    if not rows_of(tx, "relations", "id = ? AND (? = 1 OR status <> 'deleted')", (relation_id, hard)):
        raise NotFound(f"relation {relation_id}: there is no such fact, or it was deleted; recall tells the ids")
    return _plan(tx, {**{kind: set() for kind in _KINDS}, "relation": {relation_id}}, hard=hard)


def plan_note(tx: Transaction, note_id: int) -> Plan:
    """Return what the removal of one note that exists would remove, for good."""
    return _plan(tx, {**{kind: set() for kind in _KINDS}, "note": {note_id}}, hard=True)


# Where the names of sessions and scopes stand, by the criterion: tables with their columns.
_NAMES = {
    "session": (("evidence", "session"), ("sessions", "name")),
    "scope": (
        ("relations", "scope"),
        ("notes", "scope"),
        ("sessions", "scope"),
        ("incidents", "scope"),
        ("scopes", "key"),
    ),
}


def _require_known(tx: Transaction, criteria: Criteria) -> None:
    """Raise NotFound for a session, scope or scene that neither the rows nor the journal tell of."""
    for argument, places in _NAMES.items():
        name = getattr(criteria, argument)
        columns = dict(places)
        if (
            name
            and not any(tx.execute(f"SELECT 1 FROM {t} WHERE {c} = ? LIMIT 1", (name,)).fetchone() for t, c in places)
            and not any(row[columns[one.table]] == name for one in erase.images(tx, columns) for row in one.rows)
        ):
            names = " UNION ".join(f"SELECT {column} FROM {table}" for table, column in places)
            raise _unknown(tx, argument, name, names, "check its spelling")
    key = criteria.scene
    if key and not _scenes(tx, key):
        named = "(value = ? OR (value >= ? AND value < ?))"
        said = f"SELECT 1 FROM evidence, json_each(COALESCE(scenes, '[]')) WHERE {named} LIMIT 1"
        if not tx.execute(said, (key, *range_below(key))).fetchone():
            raise _unknown(tx, "scene", key, "SELECT key FROM scenes", "'graphmem scenes' lists them")


def _unknown(tx: Transaction, argument: str, name: str, names: str, remedy: str) -> NotFound:
    known = [found for (found,) in tx.execute(f"{names} ORDER BY 1 LIMIT {entities.COMPARED}")]
    close = entities.close_to(name, known)
    hint = f"close to it: {', '.join(close)}" if close else remedy
    return NotFound(f"{argument}: nothing is known of {name!r}; {hint}")


def _add(conditions: list[str], parameters: list[Any], condition: str, *values: object) -> None:
    conditions.append(condition)
    parameters += values


def _entities(tx: Transaction, key: str, *, hard: bool) -> set[int]:
    """Return the entity of a name; for good also one that only the journal tells of."""
    told = erase.only_in_journal(tx, erase.images(tx, ["entities"]), "entities") if hard else {}
    named = {entity_id for entity_id, rows in told.items() if key in {row["key"] for row in rows}}
    try:
        return {entities.require(tx, key, None, argument="entity")[0]} | named
    except NotFound:
        if not named:
            raise
        return named


def _notes(tx: Transaction, scope: str, *, hard: bool) -> set[int]:
    rows = tx.execute("SELECT id FROM notes WHERE scope = ? AND (? = 1 OR status <> 'forgotten')", (scope, hard))
    return {note_id for (note_id,) in rows}


def _incidents(tx: Transaction, scope: str, *, hard: bool) -> set[int]:
    """Return the incidents of a scope; for good also those that only the journal tells of."""
    found = {incident_id for (incident_id,) in tx.execute("SELECT id FROM incidents WHERE scope = ?", (scope,))}
    told = erase.only_in_journal(tx, erase.images(tx, ["incidents"]), "incidents") if hard else {}
    return found | {incident_id for incident_id, rows in told.items() if any(row["scope"] == scope for row in rows)}


def _sessions(tx: Transaction, criteria: Criteria, *, hard: bool) -> set[int]:
    """Return sessions; for good also those that only the journal tells of."""

    def meant(name: str, scope: str) -> bool:
        return criteria.session in ("", name) and criteria.scope in (None, scope)

    found = {each for each, name, scope in tx.execute("SELECT id, name, scope FROM sessions") if meant(name, scope)}
    if hard:
        for each, rows in erase.only_in_journal(tx, erase.images(tx, ["sessions"]), "sessions").items():
            found |= {each for row in rows if meant(row["name"], row["scope"])}
    return found


def _in_session(name: str) -> _Told:
    said = "EXISTS (SELECT 1 FROM evidence v WHERE v.relation_id = r.id AND v.session"
    return _Told((f"{said} = ?)", (name,)), (f"NOT {said} <> ?)", (name,)))


def _sayings(tx: Transaction, session: str, relation_ids: set[int]) -> set[int]:
    """Return what was said of facts in a session, also what only the journal tells of."""
    facts = json.dumps(sorted(relation_ids))
    rows = tx.execute(f"SELECT id FROM evidence WHERE session = ? AND relation_id IN {NUMBERS}", (session, facts))
    dropped = erase.only_in_journal(tx, erase.images(tx, ["evidence"]), "evidence") if relation_ids else {}
    return {each for (each,) in rows} | {
        each
        for each, images in dropped.items()
        if any(row["session"] == session and row["relation_id"] in relation_ids for row in images)
    }


def _in_scene(tx: Transaction, key: str) -> _Told:
    """Return the conditions for facts of the scenes at and below a key.

    A deleted fact may have lost its refs; of such a one its sayings tell.
    """
    inside = json.dumps(_ids_below(tx, key))
    keys = [name for (name,) in tx.execute(
        f"SELECT key FROM scene_aliases WHERE scene_id IN {NUMBERS}", (inside,)
    )]  # fmt: skip
    held = "EXISTS (SELECT 1 FROM scene_refs k WHERE k.kind = 'relation' AND k.ref_id = r.id"
    said = "EXISTS (SELECT 1 FROM evidence v, json_each(COALESCE(v.scenes, '[]')) k WHERE v.relation_id = r.id"
    named = f"(k.value = ? OR (k.value >= ? AND k.value < ?) OR k.value IN {TEXTS})"
    parameters = (key, *range_below(key), json.dumps(keys), inside)
    lost = f"CASE WHEN r.status = 'deleted' AND NOT {held})"
    return _Told(
        (f"{lost} THEN {said} AND {named}) ELSE {held} AND k.scene_id IN {NUMBERS}) END", parameters),
        (
            f"""NOT EXISTS (SELECT 1 FROM evidence v WHERE v.relation_id = r.id AND v.openly = 1)
                AND {lost} THEN NOT {said} AND NOT {named}) ELSE NOT {held} AND k.scene_id NOT IN {NUMBERS}) END""",
            parameters,
        ),
    )


def _holding(tx: Transaction, relation_ids: Sequence[int], key: str) -> tuple[str, ...]:
    """Return keys of scenes that hold facts and are neither at nor below a key, the one that holds most first."""
    rows = tx.execute(
        f"""SELECT s.key FROM scene_refs k JOIN scenes s ON s.id = k.scene_id
            WHERE k.kind = 'relation' AND k.ref_id IN {NUMBERS} AND k.scene_id NOT IN {NUMBERS}
            GROUP BY s.key ORDER BY COUNT(*) DESC, s.key LIMIT {_NAMED}""",
        (json.dumps(relation_ids), json.dumps(_ids_below(tx, key))),
    )
    return tuple(found for (found,) in rows)


def _ids_below(tx: Transaction, key: str) -> list[int]:
    selection = below([key])
    return [scene_id for scene_id, *_ in tx.execute(selection.sql, selection.parameters)]


def _scenes(tx: Transaction, key: str) -> set[int]:
    """Return the scenes at and below a key, also those that only the journal tells of."""
    first, behind = range_below(key)
    dropped = erase.only_in_journal(tx, erase.images(tx, ["scenes"]), "scenes")
    return {*_ids_below(tx, key)} | {
        scene_id
        for scene_id, rows in dropped.items()
        if any(row["key"] == key or first <= row["key"] < behind for row in rows)
    }


def _plan(tx: Transaction, gone: Gone, *, hard: bool) -> Plan:
    if not hard:
        gone["entity"] = set()
    facts = json.dumps(sorted(gone["relation"]))
    ends = tx.execute(
        f"""SELECT e.id, e.name,
                   EXISTS (SELECT 1 FROM relations r WHERE (r.source_id = e.id OR r.target_id = e.id)
                           AND r.status IN ('active', 'superseded') AND r.id NOT IN {NUMBERS}),
                   EXISTS (SELECT 1 FROM relations r WHERE (r.source_id = e.id OR r.target_id = e.id)
                           AND r.id NOT IN {NUMBERS})
            FROM entities e
            WHERE e.id IN (SELECT source_id FROM relations WHERE id IN {NUMBERS}
                           UNION SELECT target_id FROM relations WHERE id IN {NUMBERS}) OR e.id IN {NUMBERS}
            ORDER BY e.id""",
        (facts, facts, facts, facts, json.dumps(sorted(gone["entity"]))),
    ).fetchall()
    kept = {entity_id for entity_id, _, _, in_a_fact in ends if in_a_fact}
    removed = {entity_id: name for entity_id, name, *_ in ends if hard and entity_id not in kept}
    # What only the journal tells of has no fact that could keep it.
    gone["entity"] = gone["entity"] - kept | removed.keys()
    keys = [key for (key,) in tx.execute(
        f"SELECT key FROM scenes WHERE id IN {NUMBERS} ORDER BY key", (json.dumps(sorted(gone["scene"])),)
    )]  # fmt: skip
    (parts,) = tx.execute(
        f"SELECT COUNT(*) FROM parts WHERE session_id IN {NUMBERS}", (json.dumps(sorted(gone["session"])),)
    ).fetchone()
    report = PurgeReport(
        tuple(sorted(gone["relation"])),
        tuple(name for entity_id, name, holds, _ in ends if not holds and entity_id not in removed),
        hard=hard,
        applied=False,
        notes=tuple(sorted(gone["note"])),
        incidents=len(gone["incident"]),
        parts=parts,
        scenes=tuple(keys),
        entities=tuple(removed.values()),
        left=_left(tx, gone, removed) if hard else (),
        sayings=len(gone["saying"]),
    )
    return Plan(report, gone)


def _left(tx: Transaction, gone: Gone, removed: dict[int, str]) -> tuple[tuple[str, int | str], ...]:
    """Return what stays and still tells of what goes: sentences that tell other facts too, documents by their names."""
    going = (json.dumps(sorted(gone["relation"])), json.dumps(sorted(gone["saying"])))
    shared = tx.execute(
        f"""SELECT DISTINCT v.sentence_id FROM evidence v
            WHERE (v.relation_id IN {NUMBERS} OR v.id IN {NUMBERS}) AND EXISTS (
                SELECT 1 FROM evidence o WHERE o.sentence_id = v.sentence_id
                    AND o.relation_id NOT IN {NUMBERS} AND o.id NOT IN {NUMBERS})
            ORDER BY 1""",
        (*going, *going),
    ).fetchall()
    names = {entity_key(name) for name in removed.values()}
    documents = [
        document_id
        for document_id, *lists in tx.execute("SELECT id, entities, tags FROM documents ORDER BY num")
        if names and any(entity_key(name) in names for each in lists for name in json.loads(each))
    ]
    return (*(("sentence", each) for (each,) in shared), *(("document", each) for each in documents))


def _quoting(tx: Transaction, session: str, going: set[int]) -> list[tuple[str, int]]:
    """Return the notes that stay and say that they come from a session, some with words of it."""
    rows = tx.execute(
        f"""SELECT DISTINCT ref_id FROM provenance WHERE kind = 'note' AND session = ? AND ref_id NOT IN {NUMBERS}
            ORDER BY 1""",
        (session, json.dumps(sorted(going))),
    )
    return [("note", note_id) for (note_id,) in rows]


# ---- work


def apply_purge(tx: Transaction, plan: Plan, kind: str, at: str) -> PurgeReport:
    """Do what a plan of this same transaction says, as an operation of a kind."""
    report = replace(plan.report, applied=True, remarks=_keep_out(tx, plan))
    # For good also when nothing meets the criteria: the index may hold what was removed before.
    counts = erase.erase(tx, plan.gone) if report.hard else {}
    if plan.scope:
        scopes.forget_scope(tx, plan.scope)
    if not any(plan.gone.values()):
        return report
    summary = {
        "relations": len(report.relations),
        "notes": len(report.notes),
        "incidents": report.incidents,
        "parts": report.parts,
        "entities_left_alone": len(report.orphaned),
        "entities": len(report.entities),
        "scenes": len(report.scenes),
        "sayings": report.sayings,
        **counts,
    }
    changes = Journal(tx)
    if not report.hard:
        _remove_softly(changes, plan.gone, at)
    told = {name: number for name, number in summary.items() if number or name == "relations"}
    return replace(report, operation=changes.close(f"hard {kind}" if report.hard else kind, at, told))


def _keep_out(tx: Transaction, plan: Plan) -> tuple[str, ...]:
    """Let no transcript bring back the sessions that go; for good, keep nothing of transcripts that tells of them."""
    going = plan.gone["session"]
    history.keep_out(tx, going)
    if not (plan.report.hard and going):
        return ()
    stored = tx.execute(f"SELECT name FROM sessions WHERE id IN {NUMBERS}", (json.dumps(sorted(going)),))
    names = {name for (name,) in stored}
    for session_id, rows in erase.only_in_journal(tx, erase.images(tx, ["sessions"]), "sessions").items():
        names |= {row["name"] for row in rows if session_id in going}
    if not (dropped := history.forget_transcripts(tx, names)):
        return ()
    return (f"transcripts that told of it are followed no longer, until they are harvested again: {dropped}",)


def _remove_softly(changes: Journal, gone: Gone, at: str) -> None:
    facts, note_ids, sessions = (json.dumps(sorted(gone[kind])) for kind in ("relation", "note", "session"))
    for row in rows_of(changes.tx, "relations", f"id IN {NUMBERS}", (facts,)):
        changes.update("relations", row, status="deleted", closed_at=at)
    for row in rows_of(changes.tx, "notes", f"id IN {NUMBERS}", (note_ids,)):
        changes.update("notes", row, status="forgotten")
    text_index.drop(changes.tx, "note", gone["note"])
    for row in rows_of(changes.tx, "incidents", f"id IN {NUMBERS}", (json.dumps(sorted(gone["incident"])),)):
        changes.delete("incidents", row)
    jobs.release(changes.tx, gone["session"])
    parts = rows_of(changes.tx, "parts", f"session_id IN {NUMBERS}", (sessions,))
    text_index.drop(changes.tx, "part", [row["id"] for row in parts])
    for row in parts:
        changes.delete("parts", row)
    for row in rows_of(changes.tx, "sessions", f"id IN {NUMBERS}", (sessions,)):
        changes.delete("sessions", row)
