"""Relations: one row a fact, and evidence for each time it was said.

A fact that is said again is the same row. One that was deleted is active again when it is said again. The values of a
functional relation follow each other in time: the one that holds latest is active, the others are superseded, whatever
the order in which they were told.
"""

import datetime as dt
import hashlib
import itertools
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphmem.core.keys import clean_text, entity_key
from graphmem.core.model import CommitReport, Refusal, TagReport, Triple, triple_problem
from graphmem.core.times import read_time, utc_text
from graphmem.errors import InvalidInput
from graphmem.graph.entities import matching_glob, mention
from graphmem.graph.scenes import attach
from graphmem.graph.validity import holding
from graphmem.store import text_index


@dataclass(frozen=True, slots=True)
class Saying:
    """Who said the facts of one commit, where and when."""

    session: str
    turn: int
    source: str
    scope: str
    at: str
    scenes: Sequence[str]  # keys; in none means openly, for everybody


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple that may be written: names cleaned, times read."""

    triple: Triple
    subject: str
    relation: str
    object: str
    sentence: str
    valid_from: str | None
    valid_to: str | None


def check_triples(triples: Iterable[Triple], zone: dt.tzinfo) -> tuple[list[Fact | Refusal], tuple[str, ...]]:
    """Return a fact or a refusal for each triple, and remarks about what had to be replaced in their texts."""
    checked: list[Fact | Refusal] = []
    remarks: list[str] = []
    if not isinstance(triples, Iterable):
        raise InvalidInput("triples", triples, "give a list of Triple(subject, relation, object) objects")
    for index, triple in enumerate(triples):
        if not isinstance(triple, Triple):
            raise InvalidInput(f"triples[{index}]", triple, "give Triple(subject, relation, object) objects")
        if problem := triple_problem(triple):
            checked.append(Refusal(index, triple, problem))
            continue
        texts = [triple.subject, triple.relation, triple.object, triple.sentence]
        subject, relation, object_, sentence = (clean_text(text).strip() for text in texts)
        if [subject, relation, object_, sentence] != [text.strip() for text in texts]:
            remarks.append(f"triples[{index}]: characters that cannot be stored were replaced by U+FFFD")
        valid_from, valid_to = (
            None if value is None else utc_text(read_time(value, zone, argument=f"triples[{index}].{name}"))
            for name, value in (("valid_from", triple.valid_from), ("valid_to", triple.valid_to))
        )
        if valid_from and valid_to and valid_to < valid_from:
            raise InvalidInput(f"triples[{index}].valid_to", triple.valid_to, f"earlier than valid_from ({valid_from})")
        checked.append(Fact(triple, subject, relation, object_, sentence, valid_from, valid_to))
    return checked, tuple(remarks)


def commit(
    tx: sqlite3.Connection,
    checked: Sequence[Fact | Refusal],
    saying: Saying,
    scene_ids: Sequence[int],
) -> CommitReport:
    """Write the facts and attach them and their ends to scenes."""
    created = repeated = superseded = 0
    ids: list[int | None] = []
    for fact in checked:
        if isinstance(fact, Refusal):
            ids.append(None)
            continue
        outcome = tell(tx, fact, saying, scene_ids)
        created += outcome.created
        repeated += not outcome.created
        superseded += outcome.superseded
        ids.append(outcome.relation_id)
    refused = tuple(fact for fact in checked if isinstance(fact, Refusal))
    return CommitReport(created, repeated, superseded, refused, tuple(ids), ())


def tell(
    tx: sqlite3.Connection, fact: Fact, saying: Saying, scene_ids: Sequence[int], new_id: int | None = None
) -> "_Outcome":
    """Write one fact and attach it and its ends to scenes. new_id: the id of its row, should that be a new one."""
    outcome = _write(tx, fact, saying, new_id)
    relation, ends = (outcome.relation_id, outcome.sentence_id), (outcome.source_id, outcome.target_id)
    for scene_id in scene_ids:
        attach(tx, scene_id, relation, ends, weight=fact.triple.confidence, at=saying.at)
    return outcome


@dataclass(frozen=True, slots=True)
class _Outcome:
    relation_id: int
    sentence_id: int | None
    source_id: int
    target_id: int
    created: bool
    superseded: int


def _write(tx: sqlite3.Connection, fact: Fact, saying: Saying, new_id: int | None) -> _Outcome:
    at = saying.at
    source_id, target_id = mention(tx, fact.subject, at), mention(tx, fact.object, at)
    sentence_id = put_sentence(tx, fact.sentence, at)
    relation_key = entity_key(fact.relation)
    place = (source_id, relation_key, target_id, saying.scope)
    # Of equal facts the active one; a deleted or archived one comes back. A superseded one is history, and a value of a
    # functional relation may hold several times: they are the same fact only when they are told of the same time, or
    # without one while the value holds.
    functional = fact.triple.functional or _has_history(tx, source_id, relation_key, saying.scope)
    at_any_time = not (functional and fact.valid_from)
    known = tx.execute(
        """SELECT id, status, valid_from, valid_to FROM relations
           WHERE source_id = ? AND relation_key = ? AND target_id = ? AND scope = ?
               AND (status IN ('deleted', 'archived') OR valid_from = ?
                    OR (? = 1 AND (status = 'active' OR (valid_from <= ? AND valid_to > ?))))
           ORDER BY ? = 1 AND NOT ((valid_from IS NULL OR valid_from <= ?) AND (valid_to IS NULL OR valid_to > ?)),
                    CASE status WHEN 'active' THEN 0 WHEN 'superseded' THEN 2 ELSE 1 END, id DESC LIMIT 1""",
        (*place, fact.valid_from, int(at_any_time), at, at, int(at_any_time), at, at),
    ).fetchone()
    same_time = known is not None and _same_time(fact, known[2], known[3], at)
    if functional and not same_time:
        known = None
    # Which value of a functional relation is the active one is decided when they are put in order.
    fresh = "superseded" if functional else "active"
    if known is None:
        (relation_id,) = tx.execute(
            """INSERT INTO relations(id, source_id, relation_key, target_id, scope, relation_type, confidence, status,
                                     sentence_id, valid_from, valid_to, recorded_at, updated_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
            (new_id, *place, fact.relation, fact.triple.confidence, fresh,
             sentence_id, fact.valid_from, fact.valid_to, at, at),
        ).fetchone()  # fmt: skip
        text_index.add(tx, "relation", [relation_id])
    else:
        relation_id, status = known[:2]
        valid_from, valid_to = fact.valid_from, fact.valid_to
        if same_time:
            valid_from, valid_to = valid_from or known[2], valid_to or known[3]
        tx.execute(
            """UPDATE relations SET confidence = ?, updated_at = MAX(updated_at, ?), recorded_at = MIN(recorded_at, ?),
                   valid_from = ?, valid_to = ?,
                   sentence_id = COALESCE(?, sentence_id), closed_at = CASE status WHEN 'superseded' THEN closed_at END,
                   status = ?
               WHERE id = ?""",
            (fact.triple.confidence, at, at, valid_from, valid_to, sentence_id,
             status if status in ("active", "superseded") else fresh, relation_id),
        )  # fmt: skip
    tx.execute(
        """INSERT INTO evidence(relation_id, sentence_id, session, turn, source, openly, source_key, target_key, at,
                                confidence, scenes, valid_from, valid_to, functional)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (relation_id, sentence_id, saying.session, saying.turn, saying.source, not saying.scenes,
         entity_key(fact.subject), entity_key(fact.object), at,
         fact.triple.confidence, json.dumps(saying.scenes, ensure_ascii=False),
         fact.valid_from, fact.valid_to, fact.triple.functional),
    )  # fmt: skip
    if functional and known is None:
        _part_what_was_said_again(tx, place, fact.valid_from or at, at)
    superseded = _put_in_order(tx, relation_id, place, at) if functional else 0
    created = known is None or known[1] not in ("active", "superseded")
    return _Outcome(relation_id, sentence_id, source_id, target_id, created, superseded)


def _same_time(fact: Fact, known_from: str | None, known_to: str | None, at: str) -> bool:
    """Tell whether a fact is told of the time that is known of it; told without a time it is told of now."""
    if not (fact.valid_from or fact.valid_to):
        return (known_from is None or known_from <= at) and (known_to is None or at < known_to)
    valid_from, valid_to = fact.valid_from or known_from, fact.valid_to or known_to
    return not (valid_from and valid_to and valid_to < valid_from)


def _has_history(tx: sqlite3.Connection, source_id: int, relation_key: str, scope: str) -> bool:
    """Tell whether a relation had successive values before, which makes it functional."""
    row = tx.execute(
        """SELECT 1 FROM relations WHERE source_id = ? AND relation_key = ? AND scope = ? AND status = 'superseded'
           LIMIT 1""",
        (source_id, relation_key, scope),
    ).fetchone()
    return row is not None


def put_sentence(tx: sqlite3.Connection, text: str, at: str) -> int | None:
    """Return the id of a sentence, which is kept when it is new; None for ''."""
    if not text:
        return None
    digest = hashlib.sha256(text.encode()).digest()
    row = tx.execute("SELECT id FROM sentences WHERE hash = ?", (digest,)).fetchone()
    if row is None:
        row = tx.execute(
            "INSERT INTO sentences(hash, text, created_at) VALUES (?, ?, ?) RETURNING id", (digest, text, at)
        ).fetchone()
        text_index.add(tx, "sentence", [row[0]])
    return int(row[0])


def _put_in_order(tx: sqlite3.Connection, told: int, fact: tuple[int, str, int, str], at: str) -> int:
    """Let each value of a functional relation hold until the next one; return how many others were closed by that.

    The last one is active, unless it is history that was told before; it begins where the one before it ends. A value
    that had ended before it was told has no known beginning: it is history that neither closes another nor is closed.
    """
    source_id, relation_key, _, scope = fact
    values = tx.execute(
        """SELECT id, status, COALESCE(valid_from, recorded_at) AS since, valid_from IS NULL AND valid_to <= recorded_at
           FROM relations
           WHERE source_id = ? AND relation_key = ? AND scope = ? AND status IN ('active', 'superseded')
           ORDER BY since, id""",
        (source_id, relation_key, scope),
    ).fetchall()
    rows = [(relation_id, status, since) for relation_id, status, since, had_ended in values if not had_ended]
    place_told = next((place for place, (relation_id, *_) in enumerate(rows) if relation_id == told), None)
    if place_told is None:
        tx.execute(
            "UPDATE relations SET status = 'superseded', closed_at = COALESCE(closed_at, ?) WHERE id = ?", (at, told)
        )
        return 0
    for place, ((relation_id, status, since), (_, _, until)) in enumerate(itertools.pairwise(rows)):
        if status == "superseded" and place not in (place_told - 1, place_told):
            continue  # in order already
        tx.execute(
            """UPDATE relations SET status = 'superseded', closed_at = COALESCE(closed_at, ?), valid_from = ?,
                   valid_to = MIN(COALESCE(valid_to, ?), ?)
               WHERE id = ?""",
            (at, since, until, until, relation_id),
        )
    last, _, since = rows[-1]
    if len(values) > 1:
        tx.execute("UPDATE relations SET valid_from = ? WHERE id = ?", (since, last))
    if last == told:
        tx.execute("UPDATE relations SET status = 'active', closed_at = NULL WHERE id = ?", (told,))
    return sum(status == "active" and relation_id != told for relation_id, status, _ in rows[:-1])


def order_values(tx: sqlite3.Connection, place: tuple[int, str, str], at: str) -> None:
    """Put all values of a functional relation in order: source, key of the relation, scope."""
    source_id, relation_key, scope = place
    values = tx.execute(
        """SELECT id, target_id FROM relations WHERE source_id = ? AND relation_key = ? AND scope = ?
               AND status IN ('active', 'superseded') ORDER BY COALESCE(valid_from, recorded_at), id""",
        place,
    )
    for relation_id, target_id in values.fetchall():
        _put_in_order(tx, relation_id, (source_id, relation_key, target_id, scope), at)


def _part_what_was_said_again(tx: sqlite3.Connection, place: tuple[int, str, int, str], since: str, at: str) -> None:
    """Make room for a value told of old: one that held before it, and was said again later, is parted in two.

    Else what one talk of long ago told would end what a later talk confirmed. Only values told without a time are
    confirmed by being said again.
    """
    source_id, relation_key, target_id, scope = place
    row = tx.execute(
        """SELECT r.id, r.recorded_at, MIN(e.at) FROM relations r JOIN evidence e ON e.relation_id = r.id
           WHERE r.source_id = ? AND r.relation_key = ? AND r.target_id <> ? AND r.scope = ?
               AND r.status IN ('active', 'superseded') AND r.recorded_at <= ?
               AND COALESCE(r.valid_from, r.recorded_at) = r.recorded_at
               AND e.at > ? AND e.at > ? AND (r.valid_to IS NULL OR r.valid_to > e.at)
           GROUP BY r.id, r.recorded_at ORDER BY r.recorded_at DESC LIMIT 1""",
        (source_id, relation_key, target_id, scope, since, since, at),
    ).fetchone()
    if row is None:
        return
    relation_id, begun, again = row
    if begun < since:
        (earlier,) = tx.execute(
            """INSERT INTO relations(source_id, relation_key, target_id, scope, relation_type, confidence, status,
                                     sentence_id, valid_from, valid_to, recorded_at, updated_at, closed_at)
               SELECT source_id, relation_key, target_id, scope, relation_type, confidence, 'superseded',
                      sentence_id, recorded_at, ?, recorded_at, updated_at, ?
               FROM relations WHERE id = ? RETURNING id""",
            (since, at, relation_id),
        ).fetchone()
        text_index.add(tx, "relation", [earlier])
        tx.execute(
            """INSERT INTO scene_refs(scene_id, kind, ref_id, weight, sentence_id, decayed_at, created_at)
               SELECT scene_id, kind, ?, weight, sentence_id, decayed_at, created_at
               FROM scene_refs WHERE kind = 'relation' AND ref_id = ?""",
            (earlier, relation_id),
        )
        tx.execute(
            "UPDATE evidence SET relation_id = ? WHERE relation_id = ? AND at < ?", (earlier, relation_id, again)
        )
    tx.execute("UPDATE relations SET valid_from = ?, recorded_at = ? WHERE id = ?", (again, again, relation_id))


def tag(
    tx: sqlite3.Connection,
    scene_id: int | None,
    key: str,
    relation_ids: Sequence[int],
    at: str,
    *,
    dry_run: bool,
) -> TagReport:
    """Attach relations and their ends to a scene by id; the scene is None for a dry run on one that does not exist."""
    attached: list[int] = []
    present: list[int] = []
    unknown: list[int] = []
    known, held = _known(at)
    for relation_id in dict.fromkeys(relation_ids):
        row = tx.execute(
            f"SELECT source_id, target_id, sentence_id, confidence FROM relations r WHERE id = ? AND {known}",
            (relation_id, *held),
        ).fetchone()
        if row is None:
            unknown.append(relation_id)
            continue
        attached_before = tx.execute(
            "SELECT 1 FROM scene_refs WHERE scene_id = ? AND kind = 'relation' AND ref_id = ?", (scene_id, relation_id)
        ).fetchone()
        (present if attached_before else attached).append(relation_id)
        if not dry_run and scene_id is not None:
            source_id, target_id, sentence_id, confidence = row
            # A scene that knows the fact keeps its own words for it.
            relation, ends = (relation_id, None if attached_before else sentence_id), (source_id, target_id)
            attach(tx, scene_id, relation, ends, weight=confidence, at=at)
    return TagReport(key, tuple(attached), tuple(present), tuple(unknown), applied=not dry_run)


def _known(at: str) -> tuple[str, list[str]]:
    """Return the condition that a relation `r` is active, also of another time, or holds; and its parameters."""
    holds, held = holding(at)
    return f"(r.status = 'active' OR {holds})", held


def matching(tx: sqlite3.Connection, pattern: str, at: str) -> list[int]:
    """Return the known relations with an end whose name matches a case-sensitive glob pattern."""
    entities = set(matching_glob(tx, pattern))
    known, held = _known(at)
    rows = tx.execute(f"SELECT id, source_id, target_id FROM relations r WHERE {known} ORDER BY id", held)
    return [relation_id for relation_id, source, target in rows if source in entities or target in entities]
