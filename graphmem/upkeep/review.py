"""Entities that may be one: found by their names and by the neighbours they share, offered, judged, kept apart."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphmem.core.model import ApartReport, Arbiter, EntityPair, EntityReview, KeptApart, Settlement, SimilarEntity
from graphmem.core.similar import (
    best_of,
    bigram_similarity,
    index_names,
    machine_may_merge,
    similar_pairs,
    similar_within,
    titled,
    titled_pairs,
)
from graphmem.errors import Conflict, WriterFailed
from graphmem.graph.entities import require
from graphmem.graph.validity import holding
from graphmem.store.transaction import Transaction
from graphmem.upkeep import merge_entities
from graphmem.upkeep.journal import NUMBERS, Journal, rows_of

OFFERED = 0.75  # a score has to be greater
_LIFT = 0.5  # of what a similarity lacks, where all neighbours are shared
_LEAST = 0.5  # what all neighbours shared could lift over 0.75
# Whom more entities than this are linked to says little of each, and would make a pair of every two of them.
_HUB = 30
_SHOWN = 5
_KEPT = 10_000
_SAID = 80
_VERDICTS = ("merge", "apart")
_DIGITS = 9  # scores are rounded and then compared, so that 0.75 is no more than 0.75

_Ends = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Names:
    """What a review is made of: ids and canonical names of all entities, who is linked to whom, who is kept apart.

    around: the neighbours of each entity by facts that hold, without hubs, by places in `ids`. apart: pairs of ids.
    """

    ids: Sequence[int]
    keys: Sequence[str]
    around: Mapping[int, frozenset[int]]
    hubs: int
    apart: frozenset[_Ends]


@dataclass(frozen=True, slots=True)
class Found:
    """The best pairs: places in `Names` with their scores, best first; more: there are further ones."""

    scores: Mapping[_Ends, float]
    more: bool


def names_of(tx: Transaction, at: str) -> Names:
    """Read what a review is made of, as it is at an instant."""
    entities = tx.execute("SELECT id, key FROM entities ORDER BY id").fetchall()
    place_of = {entity_id: place for place, (entity_id, _) in enumerate(entities)}
    holds, held = holding(at)
    linked: dict[int, set[int]] = defaultdict(set)
    for source, target in tx.execute(
        f"SELECT r.source_id, r.target_id FROM relations r WHERE {holds} AND r.source_id <> r.target_id", held
    ):
        if source in place_of and target in place_of:  # a fact that leads nowhere is damage, which `check` tells of
            a, b = place_of[source], place_of[target]
            linked[a].add(b)
            linked[b].add(a)
    hubs = {place for place, others in linked.items() if len(others) > _HUB}
    return Names(
        [entity_id for entity_id, _ in entities],
        [key for _, key in entities],
        {place: frozenset(others - hubs) for place, others in linked.items()},
        len(hubs),
        frozenset(tx.execute("SELECT a, b FROM entities_apart")),
    )


def pairs_of(names: Names, limit: int, *, decidable: bool) -> Found:
    """Find the best pairs that are not kept apart; decidable: of those alone that a machine may decide.

    Who shares a neighbour is compared with each other; names alone have to be so much alike that no neighbour is
    needed. Names that a title tells apart are offered in any case, as if they were alike by 0.75 or more.
    """
    place_of = {entity_id: place for place, entity_id in enumerate(names.ids)}
    apart = {(place_of[a], place_of[b]) for a, b in names.apart}

    def wanted(a: int, b: int) -> bool:
        return (a, b) not in apart and (not decidable or machine_may_merge(names.keys[a], names.keys[b]))

    index = index_names(names.keys)
    scores: dict[_Ends, float] = {}
    more = False
    met: dict[int, list[int]] = defaultdict(list)
    for place, others in names.around.items():
        for other in others:
            met[other].append(place)
    blocks = [block for block in met.values() if len(block) > 1]
    for a, b, similarity in similar_within(index, blocks, least=_LEAST):
        score = _score(names, a, b, similarity)
        if score > OFFERED and (a, b) not in scores and wanted(a, b):
            scores[a, b] = score
            if len(scores) > limit + _KEPT:
                scores, more = best_of(scores, limit), True
    places = {key: place for place, key in enumerate(names.keys)}
    alike, whole = similar_pairs(
        index, least=OFFERED, most=limit + 1, accept=lambda a, b: wanted(*sorted((places[a], places[b])))
    )
    scores |= {(a, b): _score(names, a, b, similarity) for a, b, similarity in alike}
    for a, b in titled_pairs(names.keys):
        if wanted(a, b):
            similarity = max(OFFERED, bigram_similarity(names.keys[a], names.keys[b]))
            scores[a, b] = _score(names, a, b, similarity)
    return Found(best_of(scores, limit), more or not whole or len(scores) > limit)


def _score(names: Names, a: int, b: int, similarity: float) -> float:
    """Lift a similarity of names by the neighbours that both have; that the two are linked is no sign of it."""
    ours, theirs = (names.around.get(place, frozenset()) for place in (a, b))
    shared = len(ours & theirs)
    either = len((ours | theirs) - {a, b})
    return round(similarity + (1 - similarity) * _LIFT * (shared / either if either else 0.0), _DIGITS)


def describe(tx: Transaction, names: Names, found: Found) -> EntityReview:
    """Tell of pairs what a person needs to judge them; those of which one is gone meanwhile are left out."""
    pairs = []
    for (a, b), score in found.scores.items():
        entities = [_entity(tx, names.ids[place], names.keys[place]) for place in (a, b)]
        if None in entities:
            continue
        first, second = sorted(filter(None, entities), key=lambda one: (-one.mentions, one.id))
        keys = names.keys[a], names.keys[b]
        shared = names.around.get(a, frozenset()) & names.around.get(b, frozenset())
        pairs.append(
            EntityPair(
                first,
                second,
                score,
                similarity=round(bigram_similarity(*keys), _DIGITS),
                shared=_most_mentioned(tx, [names.ids[place] for place in shared]),
                titled=titled(*keys),
                machine=machine_may_merge(*keys),
            )
        )
    hubs = f"{names.hubs} entities have more than {_HUB} neighbours: to be linked to them counts for nothing"
    return EntityReview(
        tuple(pairs), found.more, len(names.ids), len(names.apart), remarks=(hubs,) if names.hubs else ()
    )


def _entity(tx: Transaction, entity_id: int, key: str) -> SimilarEntity | None:
    row = tx.execute(
        "SELECT id, name, mention_count FROM entities WHERE id = ? AND key = ?", (entity_id, key)
    ).fetchone()
    if row is None:
        return None
    told = tx.execute(
        """SELECT s.text FROM relations r
           JOIN evidence v ON v.relation_id = r.id JOIN sentences s ON s.id = v.sentence_id
           WHERE (r.source_id = ? OR r.target_id = ?) AND r.status IN ('active', 'superseded') AND s.text <> ''
           ORDER BY v.at DESC, v.id DESC LIMIT 1""",
        (entity_id, entity_id),
    ).fetchone()
    entity_id, name, mentions = row
    return SimilarEntity(entity_id, name, mentions, told[0] if told else "")


def _most_mentioned(tx: Transaction, entity_ids: Sequence[int]) -> tuple[str, ...]:
    rows = tx.execute(
        f"SELECT name FROM entities WHERE id IN {NUMBERS} ORDER BY mention_count DESC, id LIMIT {_SHOWN}",
        (json.dumps(entity_ids),),
    )
    return tuple(name for (name,) in rows)


# ---- what is decided


def two(tx: Transaction, a: str, b: str) -> _Ends:
    """Return the ids of two entities; raise NotFound for an unknown name, Conflict when both name one entity."""
    (first, name), (second, _) = (require(tx, given, None, argument=end) for end, given in (("a", a), ("b", b)))
    if first == second:
        raise Conflict(f"{a!r} and {b!r} are one entity: {name!r}; name two that are to stay apart")
    return first, second


def keep_apart(tx: Transaction, first: int, second: int, at: str, *, rounds: int | None, apart: bool) -> ApartReport:
    """Keep two entities apart, or no longer."""
    a, b = sorted((first, second))
    report = ApartReport(_name(tx, first), _name(tx, second), apart, rounds)
    known = rows_of(tx, "entities_apart", "a = ? AND b = ?", (a, b))
    if [row["rounds"] for row in known] == ([rounds] if apart else []):
        return report
    journal = Journal(tx)
    if not apart:
        journal.delete("entities_apart", known[0])
    elif known:
        journal.update("entities_apart", known[0], rounds=rounds, at=at)
    else:
        journal.insert("entities_apart", {"a": a, "b": b, "rounds": rounds, "at": at})
    kind, summary = ("keep apart", {"rounds": rounds or "all"}) if apart else ("let together", {})
    return ApartReport(report.a, report.b, apart, rounds, journal.close(kind, at, summary))


def _name(tx: Transaction, entity_id: int) -> str:
    return str(rows_of(tx, "entities", "id = ?", (entity_id,))[0]["name"])


def kept_apart(tx: Transaction) -> tuple[KeptApart, ...]:
    """Return all pairs that are kept apart, the latest first."""
    rows = tx.execute(
        """SELECT a.name, b.name, x.at, x.rounds FROM entities_apart x
           JOIN entities a ON a.id = x.a JOIN entities b ON b.id = x.b ORDER BY x.at DESC, x.a, x.b"""
    )
    return tuple(KeptApart(*row) for row in rows)


def pass_round(journal: Journal) -> int:
    """Count one round of those for which pairs are kept apart; return of how many. A pass of upkeep ends with it."""
    rows = rows_of(journal.tx, "entities_apart", "rounds IS NOT NULL", ())
    for row in rows:
        if row["rounds"] > 1:
            journal.update("entities_apart", row, rounds=row["rounds"] - 1)
        else:
            journal.delete("entities_apart", row)
    return len(rows)


def judge(arbiter: Arbiter, pair: EntityPair, before: int) -> str | None:
    """Return what an arbiter says of a pair; raise WriterFailed when it fails or answers what it may not.

    before: how many pairs it has judged, which the message tells.
    """
    stays = f"; what it said of {before} pairs before stays" if before else ""
    try:
        verdict: object = arbiter(pair)
    except Exception as error:
        told = str(error) if isinstance(error, WriterFailed) else f"the arbiter failed: {type(error).__name__}: {error}"
        raise WriterFailed(f"{_line(told, 4 * _SAID)}{stays}") from error
    if verdict is None or (isinstance(verdict, str) and verdict in _VERDICTS):
        return verdict
    raise WriterFailed(f"the arbiter said {_line(repr(verdict), _SAID)}, not 'merge', 'apart' or None{stays}")


def _line(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def settle(tx: Transaction, pair: EntityPair, verdict: str | None, at: str) -> Settlement:
    """Do what was said of a pair, unless it is no longer the pair that was judged."""
    ends = pair.b.id, pair.a.id
    if verdict is None:
        return Settlement(pair.a.name, pair.b.name, "leave")
    known = all(rows_of(tx, "entities", "id = ? AND name = ?", (one.id, one.name)) for one in (pair.a, pair.b))
    if not known or rows_of(tx, "entities_apart", "a = ? AND b = ?", sorted(ends)):
        return Settlement(pair.a.name, pair.b.name, "changed")
    if verdict == "merge":
        operation = merge_entities.merge(tx, *ends, at).operation
    else:
        operation = keep_apart(tx, *ends, at, rounds=None, apart=True).operation
    return Settlement(pair.a.name, pair.b.name, verdict, operation)
