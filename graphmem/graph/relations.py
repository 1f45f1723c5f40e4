"""Relations: one row a fact, and evidence for each time it was said.

A fact that is said again is the same row. One that was deleted is active again when it is said again. The values of a
functional relation follow each other in time: the one that holds latest is active, the others are superseded, whatever
the order in which they were told.
"""

import datetime as dt
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from graphmem.core.keys import clean_text, entity_key
from graphmem.core.model import CommitReport, Refusal, TagReport, Triple, triple_problem
from graphmem.core.redaction import REDACTED, find_secrets, redact, secrets_of
from graphmem.core.times import read_time, utc_text
from graphmem.errors import InvalidInput
from graphmem.graph.entities import matching_glob, mention
from graphmem.graph.scenes import Told, attach
from graphmem.graph.validity import holding
from graphmem.store import text_index
from graphmem.store.lists import rows_about, values_in_parts
from graphmem.store.transaction import Transaction


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
    """Return a fact or a refusal for each triple, and remarks about what had to be replaced in their texts.

    A triple with a secret in its names is refused; in a sentence the secret is replaced.
    """
    checked: list[Fact | Refusal] = []
    remarks: list[str] = []
    if not isinstance(triples, Iterable):
        raise InvalidInput("triples", triples, "give a list of Triple(subject, relation, object) objects")
    for index, triple in enumerate(triples):
        if not isinstance(triple, Triple):
            raise InvalidInput(f"triples[{index}]", type(triple), "give Triple(subject, relation, object) objects")
        screened, secret = _screened(triple)
        if problem := triple_problem(triple) or secret:
            checked.append(Refusal(index, screened, problem))
            continue
        if screened.sentence != triple.sentence:
            remarks.append(f"triples[{index}]: secrets in the sentence were replaced by {REDACTED}")
        triple = screened
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


def _screened(triple: Triple) -> tuple[Triple, str]:
    """Return a triple without secrets, and why it cannot be written, '' where no name of it holds one.

    >>> _screened(Triple("数据库", "密码", "Tr0ub4dor"))[1]
    'object: it holds a secret (password); tell where it is kept instead'
    """
    names = {"subject": triple.subject, "relation": triple.relation, "object": triple.object}
    # One look at all of it, the object beside its name as `secrets_of` has it: most triples hold none.
    if not find_secrets(f"{triple.subject}\n{triple.relation}: {triple.object}\n{triple.sentence}"):
        return triple, ""
    found = {end: find_secrets(name) for end, name in names.items() if isinstance(name, str)}
    if not any(found.values()) and isinstance(triple.object, str):
        found["object"] = secrets_of(triple.relation, triple.object)
    clean: dict[str, Any] = {end: redact(names[end]) for end, secrets in found.items() if secrets}
    if clean and clean.get("object") == triple.object:
        clean["object"] = REDACTED
    kind = next((secrets[0].kind for secrets in found.values() if secrets), "")
    end = next(iter(clean), "")
    reason = f"{end}: it holds a secret ({kind}); tell where it is kept instead" if clean else ""
    return replace(triple, **clean, sentence=redact(triple.sentence)), reason


def commit(
    tx: Transaction,
    checked: Sequence[Fact | Refusal],
    saying: Saying,
    scene_ids: Sequence[int],
) -> CommitReport:
    """Write the facts and attach them and their ends to scenes."""
    outcomes = tell(tx, [fact for fact in checked if isinstance(fact, Fact)], saying, scene_ids)
    created = sum(outcome.created for outcome in outcomes)
    relation_ids = iter([outcome.relation_id for outcome in outcomes])
    return CommitReport(
        created,
        len(outcomes) - created,
        sum(outcome.superseded for outcome in outcomes),
        tuple(fact for fact in checked if isinstance(fact, Refusal)),
        tuple(None if isinstance(fact, Refusal) else next(relation_ids) for fact in checked),
        (),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    relation_id: int
    created: bool
    superseded: int


def tell(
    tx: Transaction,
    facts: Sequence[Fact],
    saying: Saying,
    scene_ids: Sequence[int],
    new_id: int | None = None,
) -> list[_Outcome]:
    """Write facts, as if one after the other, and attach them and their ends to scenes.

    new_id: the id of the row of a single fact, should that be a new one.
    """
    names = [name for fact in facts for name in (fact.subject, fact.object)]
    ends, new_entities = mention(tx, names, saying.at)
    sentences, new_sentences = put_sentences(tx, [fact.sentence for fact in facts], saying.at)
    claims = [
        _Claim(fact, source, entity_key(fact.relation), target, sentence)
        for fact, source, target, sentence in zip(facts, ends[::2], ends[1::2], sentences, strict=True)
    ]
    new_relations: list[int] = []
    outcomes: list[_Outcome] = []
    for run, functional in _runs(tx, claims, saying.scope):
        told, fresh = _write(tx, run, saying, new_id, functional=functional)
        new_relations += fresh
        outcomes += told
        refs = [
            Told(outcome.relation_id, claim.sentence, (claim.source, claim.target), claim.fact.triple.confidence)
            for claim, outcome in zip(run, told, strict=True)
        ]
        attach(tx, scene_ids, refs, saying.at)
    # In the order of their numbers in the index: FTS5 begins a new segment at each lower one.
    text_index.add(tx, "relation", new_relations)
    text_index.add(tx, "sentence", new_sentences)
    text_index.add(tx, "entity", new_entities)
    return outcomes


class _Claim(NamedTuple):
    """A fact whose ends and sentence are written: their ids, and the key of the relation."""

    fact: Fact
    source: int
    relation_key: str
    target: int
    sentence: int | None


def _runs(tx: Transaction, claims: Sequence[_Claim], scope: str) -> Iterator[tuple[list[_Claim], bool]]:
    """Part facts into runs that are written at once, since none bears on another of its run; each is written in turn.

    A fact that is told again begins a new one; one of a functional relation, which bears on all its values, is alone.
    Tells with each whether it is functional.
    """
    told = {(claim.source, claim.relation_key) for claim in claims if claim.fact.triple.functional}
    with_values = told | _with_history(tx, claims, scope)
    run: dict[tuple[int, str, int], _Claim] = {}
    for claim in claims:
        place = (claim.source, claim.relation_key, claim.target)
        alone = place[:2] in with_values
        if run and (alone or place in run):
            yield list(run.values()), False
            run = {}
        if alone:  # what was told before it may have begun or ended the history
            yield [claim], claim.fact.triple.functional or bool(_with_history(tx, [claim], scope))
        else:
            run[place] = claim
    if run:
        yield list(run.values()), False


def _write(
    tx: Transaction, run: Sequence[_Claim], saying: Saying, new_id: int | None, *, functional: bool
) -> tuple[list[_Outcome], list[int]]:
    """Write the relations and the evidence of a run; return what it came to and the ids of new relations."""
    at, scope = saying.at, saying.scope
    known = _known(tx, run, saying, functional=functional)
    # Which value of a functional relation is the active one is decided when they are put in order.
    status = "superseded" if functional else "active"
    named, own = ("", ()) if new_id is None else (", id", (new_id,))
    fresh: list[int] = []
    outcomes: list[_Outcome] = []
    again: list[tuple[object, ...]] = []
    for claim, row in zip(run, known, strict=True):
        fact = claim.fact
        confidence = fact.triple.confidence
        if row is None:
            (relation_id,) = tx.execute(
                f"""INSERT INTO relations(source_id, relation_key, target_id, scope, relation_type, confidence,
                                          status, sentence_id, valid_from, valid_to, recorded_at, updated_at{named})
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?{", ?" * len(own)}) RETURNING id""",
                (claim.source, claim.relation_key, claim.target, scope, fact.relation, confidence,
                 status, claim.sentence, fact.valid_from, fact.valid_to, at, at, *own),
            ).fetchone()  # fmt: skip
            fresh.append(relation_id)
            outcomes.append(_Outcome(fresh[-1], True, 0))
            continue
        valid_from, valid_to = fact.valid_from, fact.valid_to
        if _same_time(fact, row.valid_from, row.valid_to, at):
            valid_from, valid_to = valid_from or row.valid_from, valid_to or row.valid_to
        held = row.status in ("active", "superseded")
        again.append((confidence, at, at, valid_from, valid_to, claim.sentence, row.status if held else status, row.id))
        outcomes.append(_Outcome(row.id, not held, 0))
    tx.executemany(
        """UPDATE relations SET confidence = ?, updated_at = MAX(updated_at, ?), recorded_at = MIN(recorded_at, ?),
               valid_from = ?, valid_to = ?, sentence_id = COALESCE(?, sentence_id),
               closed_at = CASE status WHEN 'superseded' THEN closed_at END, status = ?
           WHERE id = ?""",
        again,
    )
    scenes = json.dumps(saying.scenes, ensure_ascii=False)
    tx.executemany(
        """INSERT INTO evidence(relation_id, sentence_id, session, turn, source, openly, source_key, target_key, at,
                                confidence, scenes, valid_from, valid_to, functional)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        [
            (outcome.relation_id, claim.sentence, saying.session, saying.turn, saying.source, not saying.scenes,
             entity_key(claim.fact.subject), entity_key(claim.fact.object), at, claim.fact.triple.confidence, scenes,
             claim.fact.valid_from, claim.fact.valid_to, claim.fact.triple.functional)
            for claim, outcome in zip(run, outcomes, strict=True)
        ],
    )  # fmt: skip
    if functional:
        (claim,), (outcome,) = run, outcomes
        place = (claim.source, claim.relation_key, claim.target, scope)
        if fresh:
            _part_what_was_said_again(tx, place, claim.fact.valid_from or at, at)
        outcomes = [replace(outcome, superseded=_put_in_order(tx, outcome.relation_id, place, at))]
    return outcomes, fresh


class _Row(NamedTuple):
    """A stored relation."""

    id: int
    status: str
    valid_from: str | None
    valid_to: str | None


def _known(tx: Transaction, run: Sequence[_Claim], saying: Saying, *, functional: bool) -> list[_Row | None]:
    """Return for each fact the row that it tells again.

    Of equal facts the active one; a deleted or archived one comes back. A superseded one is history, and a value of a
    functional relation may hold several times: they are the same fact only when they are told of the same time, or
    without one while the value holds.
    """
    at = saying.at
    at_any_time = int(not (functional and run[0].fact.valid_from))
    rows: dict[int, _Row] = {}
    told = [
        (number, claim.source, claim.relation_key, claim.target, claim.fact.valid_from)
        for number, claim in enumerate(run)
    ]
    for values, parameters in values_in_parts(told):
        found = tx.execute(
            f"""
            WITH told(number, source_id, relation_key, target_id, since) AS (VALUES {values})
            SELECT told.number, r.id, r.status, r.valid_from, r.valid_to
            FROM told JOIN relations r ON r.id = (
                SELECT id FROM relations
                WHERE source_id = told.source_id AND relation_key = told.relation_key AND target_id = told.target_id
                    AND scope = ? AND (status IN ('deleted', 'archived') OR valid_from = told.since
                        OR (? = 1 AND (status = 'active' OR (valid_from <= ? AND valid_to > ?))))
                ORDER BY ? = 1 AND (? = 1 OR status <> 'active')
                             AND NOT ((valid_from IS NULL OR valid_from <= ?) AND (valid_to IS NULL OR valid_to > ?)),
                         CASE status WHEN 'active' THEN 0 WHEN 'superseded' THEN 2 ELSE 1 END, id DESC LIMIT 1)
            """,
            (*parameters, saying.scope, at_any_time, at, at, at_any_time, int(functional), at, at),
        )
        rows.update((number, _Row(*row)) for number, *row in found)
    known = [rows.get(number) for number in range(len(run))]
    if not functional:
        return known
    return [
        row if row is not None and _same_time(claim.fact, row.valid_from, row.valid_to, at) else None
        for claim, row in zip(run, known, strict=True)
    ]


def _same_time(fact: Fact, known_from: str | None, known_to: str | None, at: str) -> bool:
    """Tell whether a fact is told of the time that is known of it; told without a time it is told of now."""
    if not (fact.valid_from or fact.valid_to):
        return (known_from is None or known_from <= at) and (known_to is None or at < known_to)
    valid_from, valid_to = fact.valid_from or known_from, fact.valid_to or known_to
    return not (valid_from and valid_to and valid_to < valid_from)


def _with_history(tx: Transaction, claims: Iterable[_Claim], scope: str) -> set[tuple[int, str]]:
    """Return the relations, by source and key, that had successive values before, which makes them functional."""
    found: set[tuple[int, str]] = set()
    for values, parameters in values_in_parts({(claim.source, claim.relation_key) for claim in claims}):
        rows = tx.execute(
            f"""SELECT column1, column2 FROM (VALUES {values}) AS line WHERE EXISTS (
                    SELECT 1 FROM relations WHERE source_id = column1 AND relation_key = column2
                        AND scope = ? AND status = 'superseded')""",
            (*parameters, scope),
        )
        found.update(rows)
    return found


def put_sentences(tx: Transaction, texts: Sequence[str], at: str) -> tuple[list[int | None], list[int]]:
    """Return the ids of sentences, None for '', and of those the new ones, to be indexed."""
    digests = {text: digest_of(text) for text in texts if text}
    ids: dict[bytes, int] = {}
    ids.update(rows_about(tx, "SELECT hash, id FROM sentences WHERE hash IN ({marks})", digests.values()))
    fresh: list[int] = []
    for text, digest in digests.items():
        if digest not in ids:
            (ids[digest],) = tx.execute(
                "INSERT INTO sentences(hash, text, created_at) VALUES (?, ?, ?) RETURNING id", (digest, text, at)
            ).fetchone()
            fresh.append(ids[digest])
    return [ids[digests[text]] if text else None for text in texts], fresh


def digest_of(sentence: str) -> bytes:
    """Return the SHA-256 of a sentence, by which its row is found.

    >>> digest_of("Ann likes tea")[:3].hex()
    '240f88'
    """
    return hashlib.sha256(sentence.encode()).digest()


def _put_in_order(tx: Transaction, told: int, fact: tuple[int, str, int, str], at: str) -> int:
    """Let each value of a functional relation hold until the next one; return how many others were closed by that.

    The last one is active, unless it is history that was told before; it begins where the one before it ends. A value
    that had ended before it was told has no known beginning: it is history that neither closes another nor is closed.
    """
    source_id, relation_key, target_id, scope = fact
    line = (source_id, relation_key, scope)
    values = _values_beside(tx, told, line)
    rows = [(relation_id, status, since) for relation_id, status, since, had_ended in values if not had_ended]
    close = "UPDATE relations SET status = 'superseded', closed_at = COALESCE(closed_at, ?)"
    place_told = next((place for place, (relation_id, *_) in enumerate(rows) if relation_id == told), None)
    if place_told is None:
        tx.execute(f"{close} WHERE id = ?", (at, told))
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
    if len(values) > 1 or _with_others(tx, told, line):
        tx.execute("UPDATE relations SET valid_from = ? WHERE id = ?", (since, last))
    if last == told:
        # An equal value that had ended when it was told may be active, and there is one active fact of a kind.
        if any(had_ended and status == "active" for _, status, _, had_ended in values):
            tx.execute(f"{close} WHERE {_OF_LINE} AND target_id = ? AND status = 'active'", (at, *line, target_id))
        tx.execute("UPDATE relations SET status = 'active', closed_at = NULL WHERE id = ?", (told,))
    return sum(status == "active" and relation_id != told for relation_id, status, _ in rows[:-1])


_SINCE = "COALESCE(valid_from, recorded_at)"
_HAD_ENDED = "valid_from IS NULL AND valid_to <= recorded_at"
_VALUE = f"SELECT id, status, {_SINCE}, {_HAD_ENDED} FROM relations"
_OF_LINE = "source_id = ? AND relation_key = ? AND scope = ?"
# Left alone SQLite takes the index of all values, since it does not know that few are active.
_ACTIVE = f"INDEXED BY relations_active WHERE {_OF_LINE} AND status = 'active'"


def _values_beside(tx: Transaction, told: int, line: tuple[int, str, str]) -> list[tuple[int, str, str, bool]]:
    """Return in order the values that a told one may bear on: it, the active ones, those right beside them, the last.

    Each as id, status, since when, and whether it had ended when it was told.
    """
    found = tx.execute(f"{_VALUE} {_ACTIVE} UNION {_VALUE} WHERE id = ?", (*line, told)).fetchall()
    closed = f"{_VALUE} WHERE {_OF_LINE} AND status = 'superseded' AND ({_HAD_ENDED}) IS NOT TRUE"
    backwards = f"ORDER BY {_SINCE} DESC, id DESC LIMIT 1"
    beside = tx.execute(f"{closed} {backwards}", line).fetchall()
    if beside:
        after = f"{closed} AND {_SINCE} >= ? AND ({_SINCE}, id) > (?, ?) ORDER BY {_SINCE}, id LIMIT 1"
        before = f"{closed} AND {_SINCE} <= ? AND ({_SINCE}, id) < (?, ?) {backwards}"
        for relation_id, _, since, _ in found:
            beside += tx.execute(after, (*line, since, since, relation_id))
            if relation_id == told:
                beside += tx.execute(before, (*line, since, since, relation_id))
    return sorted({row[0]: row for row in (*found, *beside)}.values(), key=lambda row: (row[2], row[0]))


def _with_others(tx: Transaction, told: int, line: tuple[int, str, str]) -> bool:
    """Tell whether a relation has had other values, also such as had ended when they were told."""
    others = f"SELECT 1 FROM relations WHERE {_OF_LINE} AND status = 'superseded' AND id <> ? LIMIT 1"
    return tx.execute(others, (*line, told)).fetchone() is not None


def order_values(tx: Transaction, place: tuple[int, str, str], at: str) -> None:
    """Put all values of a functional relation in order: source, key of the relation, scope."""
    source_id, relation_key, scope = place
    values = tx.execute(
        """SELECT id, target_id FROM relations WHERE source_id = ? AND relation_key = ? AND scope = ?
               AND status IN ('active', 'superseded') ORDER BY COALESCE(valid_from, recorded_at), id""",
        place,
    )
    for relation_id, target_id in values.fetchall():
        _put_in_order(tx, relation_id, (source_id, relation_key, target_id, scope), at)


def _part_what_was_said_again(tx: Transaction, place: tuple[int, str, int, str], since: str, at: str) -> None:
    """Make room for a value told of old: one that held before it, and was said again later, is parted in two.

    Else what one talk of long ago told would end what a later talk confirmed. Only values told without a time are
    confirmed by being said again.
    """
    source_id, relation_key, target_id, scope = place
    line = (source_id, relation_key, scope)
    told = max(since, at)
    closed = f"SELECT * FROM relations WHERE {_OF_LINE} AND status = 'superseded'"
    row = tx.execute(
        f"""SELECT r.id, r.recorded_at, MIN(e.at)
            FROM (SELECT * FROM relations {_ACTIVE} UNION ALL
                  {closed} AND valid_to > ? UNION ALL {closed} AND valid_to IS NULL) r
            JOIN evidence e ON e.relation_id = r.id
            WHERE r.target_id <> ? AND r.recorded_at <= ? AND COALESCE(r.valid_from, r.recorded_at) = r.recorded_at
                AND e.at > ? AND (r.valid_to IS NULL OR r.valid_to > e.at)
            GROUP BY r.id, r.recorded_at ORDER BY r.recorded_at DESC LIMIT 1""",
        (*line, *line, told, *line, target_id, since, told),
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
    tx: Transaction,
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
    known, held = _known_at(at)
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
            sentence_id = None if attached_before else sentence_id
            attach(tx, [scene_id], [Told(relation_id, sentence_id, (source_id, target_id), confidence)], at)
    return TagReport(key, tuple(attached), tuple(present), tuple(unknown), applied=not dry_run)


def _known_at(at: str) -> tuple[str, list[str]]:
    """Return the condition that a relation `r` is active, also of another time, or holds; and its parameters."""
    holds, held = holding(at)
    return f"(r.status = 'active' OR {holds})", held


def matching(tx: Transaction, pattern: str, at: str) -> list[int]:
    """Return the known relations with an end whose name matches a case-sensitive glob pattern."""
    entities = set(matching_glob(tx, pattern))
    known, held = _known_at(at)
    rows = tx.execute(f"SELECT id, source_id, target_id FROM relations r WHERE {known} ORDER BY id", held)
    return [relation_id for relation_id, source, target in rows if source in entities or target in entities]
