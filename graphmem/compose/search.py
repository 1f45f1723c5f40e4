"""Search: candidates from the text index, scenes and the graph; their evidence scaled to 0..1, weighted and summed.

Words find candidates. What stands around them ranks them as well: the parts said right before and after, the whole
session, who and which day is named, the scene of the asker, what is linked to the entities named, what shares rare
words with the best hits, what was replaced. The weights are those of `Config.ranking`.
"""

import datetime as dt
import heapq
import itertools
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from graphmem.compose import evidence
from graphmem.compose.evidence import Corpus, Count, Item, Terms
from graphmem.compose.meaning import MeaningIndex, with_neighbours
from graphmem.config import Ranking
from graphmem.core.arbitration import Statement, abstains, superseded
from graphmem.core.dates import named_times
from graphmem.core.keys import text_list
from graphmem.core.model import Hit, Reason, Standing
from graphmem.core.precise import Match, NoteText, one_edit, precise_matches
from graphmem.core.ranking import cosine, inverse_frequency, scaled
from graphmem.core.situations import Situation
from graphmem.core.tokens import QueryWord, piece_of, query_words, tokens_of
from graphmem.errors import InvalidInput
from graphmem.graph import found
from graphmem.graph.found import Holding
from graphmem.graph.scenes import Selection, recall_by_candidates
from graphmem.records import history, notes
from graphmem.records.history import Turn
from graphmem.store import text_index
from graphmem.store.text_index import Passage

if TYPE_CHECKING:
    from graphmem.graph.scene_index import Candidate

DEFAULT_LIMIT = 10
KINDS = ("note", "relation", "part", "document", "block", "entity", "scene")
# Entities and scenes are names: what is known of them says more, so they come when they are asked for.
DEFAULT_KINDS = KINDS[:5]
MODES = ("hybrid", "keyword", "vector", "scene", "graph")

_NAMES_COMPARED = 1_000
_SHORTEST_TYPO = 5
_LONGEST_QUESTION = 256
# A number that names something, not one that counts.
_IDENTIFIES = re.compile(r"\d{3}|\d\.\d")
_ASKS_THE_PAST = re.compile(
    r"\b(?:replac\w*|former\w*|previous\w*|earlier|used to|supersed\w*|before (?:that|this|it))\b"
    r"|以前|之前|原来|原先|从前|曾经|旧的|替换|取代|替代|代替",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked, checked. as_of, since, until: stored times. now: the present in the memory's time zone."""

    text: str
    kinds: tuple[str, ...]
    scopes: Sequence[str] | None
    since: str | None
    until: str | None
    as_of: str
    now: dt.datetime
    mode: str
    precise: bool
    limit: int
    explain: bool
    situation: Situation | None

    @property
    def asks_the_past(self) -> bool:
        """Whether what was superseded is wanted too."""
        return not self.precise and bool(_ASKS_THE_PAST.search(self.text))


def checked_kinds(kinds: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the kinds of hits that are wanted; raise InvalidInput for one that does not exist."""
    if kinds is None:
        return DEFAULT_KINDS
    chosen = tuple(dict.fromkeys(text_list(kinds, "kinds")))
    for kind in chosen:
        if kind not in KINDS:
            raise InvalidInput("kinds", kind, f"give some of {', '.join(KINDS)}")
    if not chosen:
        raise InvalidInput("kinds", kinds, f"give some of {', '.join(KINDS)}, or leave it out")
    return chosen


def checked_mode(mode: str) -> str:
    """Return the mode; raise InvalidInput for one that does not exist."""
    if mode not in MODES:
        raise InvalidInput("mode", mode, f"give one of {', '.join(MODES)}")
    return mode


@dataclass(slots=True)
class _Pool:
    """What was found: how its words match, when it was said, the scenes that show it, its best passage."""

    matches: dict[Item, Count] = field(default_factory=dict)
    held: dict[Item, set[str]] = field(default_factory=dict)
    rows: dict[Item, Turn | Standing] = field(default_factory=dict)
    holdings: dict[Item, list[Holding]] = field(default_factory=dict)
    passages: dict[Item, Passage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Access:
    """What may be shown: what these scenes hold (None for everything), and how well scenes answer the asker."""

    within: Collection[int] | None
    scores: Mapping[int, float]


def search(
    tx: sqlite3.Connection,
    request: Request,
    ranking: Ranking,
    *,
    within: Selection | None = None,
    answering: "Sequence[Candidate]" = (),
    meanings: MeaningIndex | None = None,
) -> tuple[Hit, ...]:
    """Return what answers a request, the best first.

    within: the scenes that must hold a hit, None for all. answering: the scenes that answer the asker's situation.
    meanings: the vectors of the memory where it has an embedder.
    """
    words = query_words(request.text)
    if request.mode == "scene" or (not words and request.situation):
        return _by_scene(tx, request, answering)
    if not words:
        raise InvalidInput("query", request.text, "nothing to search for; give a word, or a situation")
    access = _access(tx, request, within, answering)
    if request.precise:
        return _precise(tx, request, access, ranking)
    corpus = evidence.corpus_of(tx)
    words = _respelt(tx, words)
    known = _known(tx, words)
    terms = _terms(words, known, corpus, ranking)
    pool = _gather(tx, request, access, words, known, terms, ranking)
    if request.mode == "keyword":
        pool.matches = {item: match for item, match in pool.matches.items() if _holds_all(pool, item, words)}
    values = _evidence(tx, request, access, words, pool, terms, corpus, ranking)
    if meanings is not None and request.mode == "hybrid":
        values["meaning"] = _meant(tx, request, access, pool, meanings, ranking)
    hits = _ranked(tx, request, values, pool, terms, ranking)
    return () if _asks_the_unknown(request, hits) else _without_replaced(request, hits)


def _ranked(
    tx: sqlite3.Connection,
    request: Request,
    values: Mapping[str, Mapping[Item, float]],
    pool: _Pool,
    terms: Terms,
    ranking: Ranking,
) -> tuple[Hit, ...]:
    """Weigh and sum the evidence and return the best as hits."""
    weights: dict[str, float] = {name: getattr(ranking, name) for name, shares in values.items() if shares}
    totals: dict[Item, float] = {}
    for name, weight in weights.items():
        for item, share in values[name].items():
            if item in pool.rows:
                totals[item] = totals.get(item, 0.0) + weight * share
    best = heapq.nsmallest(request.limit, totals, key=lambda item: (-totals[item], item))
    whole = sum(weights.values())
    hits = _shown(tx, pool, best)
    return tuple(
        replace(
            hits[item],
            score=round(totals[item] / whole, 6),
            why=_reasons(item, values, weights, pool, terms) if request.explain else (),
        )
        for item in best
    )


def _access(
    tx: sqlite3.Connection, request: Request, within: Selection | None, answering: "Sequence[Candidate]"
) -> _Access:
    scores = {candidate.scene_id: candidate.score for candidate in answering}
    if request.situation is not None:
        scores |= dict.fromkeys(found.scenes_of_keys(tx, request.situation.declared_keys), 1.0)
    if within is None:
        return _Access(None, scores)
    return _Access({row[0] for row in tx.execute(within.sql, within.parameters)}, scores)


# ---- candidates


def _known(tx: sqlite3.Connection, words: Iterable[QueryWord]) -> dict[str, int]:
    """Return the frequencies of the tokens of a query."""
    whole = {token for word in words if not word.prefix for token in word.tokens}
    beginnings = {part for word in words if word.prefix for part in word.parts} - whole
    return text_index.frequencies(tx, whole) | {part: text_index.prefix_frequency(tx, part) for part in beginnings}


def _respelt(tx: sqlite3.Connection, words: Iterable[QueryWord]) -> tuple[QueryWord, ...]:
    """Return the words, for one that no text holds the commonest that is one edit away, where there is such a one."""
    respelt: list[QueryWord] = []
    for word in words:
        (token, *others) = word.parts
        plain = len(token) >= _SHORTEST_TYPO and token.isalpha() and not (others or word.whole or word.prefix)
        if plain and not text_index.frequencies(tx, [token])[token]:
            near = [other for other in text_index.spellings(tx, token) if one_edit(token, other)]
            known = text_index.frequencies(tx, near)
            if near:
                word = replace(word, parts=(max(near, key=lambda other: (known[other], other)),))
        respelt.append(word)
    return tuple(respelt)


def _terms(words: Iterable[QueryWord], known: Mapping[str, int], corpus: Corpus, ranking: Ranking) -> Terms:
    """Return the tokens of a query that the index knows, and as terms of their own those that stand side by side."""
    worth = {token: inverse_frequency(corpus.texts, known[token]) for token in known if known[token]}
    prefixes = {part for word in words if word.prefix for part in word.parts}
    tokens = list(worth)
    patterns = [f" {token}" if token in prefixes else f" {token} " for token in tokens]
    weights = list(worth.values())
    for one, other in itertools.pairwise(part for word in words for part in word.parts):
        if one in worth and other in worth and not prefixes & {one, other}:
            tokens.append(f"{one} {other}")
            patterns.append(f" {one}  {other} ")
            weights.append(ranking.pair * (worth[one] + worth[other]) / 2)
    return Terms(tuple(tokens), tuple(patterns), tuple(weights))


def _gather(
    tx: sqlite3.Connection,
    request: Request,
    access: _Access,
    words: Iterable[QueryWord],
    known: Mapping[str, int],
    terms: Terms,
    ranking: Ranking,
) -> _Pool:
    """Take candidates from the text index until there are enough that may be shown."""
    pool = _Pool()
    kinds = _indexed_kinds(request)
    tokens = {token: word.prefix for word in words for token in word.tokens}
    passages = text_index.candidates(tx, tokens, known, kinds)
    while len(pool.matches) < ranking.candidates and (batch := list(itertools.islice(passages, ranking.candidates))):
        told = found.told_by(tx, [passage.ref_id for passage in batch if passage.kind == "sentence"])
        items = [(item, passage) for passage in batch for item in _items_of(passage, told)]
        _admit(tx, request, access, pool, {item for item, _ in items})
        for item, passage in items:
            if item in pool.rows and _may_be_heard(pool, item, passage):
                _take(pool, item, passage, evidence.count(passage, terms, ranking), terms)
    return pool


def _indexed_kinds(request: Request) -> set[str]:
    return {*request.kinds, *(["sentence"] if "relation" in request.kinds else [])}


def _items_of(passage: Passage, told: Mapping[int, Iterable[int]]) -> list[Item]:
    if passage.kind == "sentence":
        return [("relation", relation) for relation in told.get(passage.ref_id, ())]
    return [(passage.kind, passage.ref_id)]


def _may_be_heard(pool: _Pool, item: Item, passage: Passage) -> bool:
    """Tell whether a sentence was said in a scene that is open here: others may have put the same fact differently."""
    if passage.kind != "sentence" or not pool.holdings.get(item):
        return True
    return any(holding.sentence_id == passage.ref_id for holding in pool.holdings[item])


def _take(pool: _Pool, item: Item, passage: Passage, match: Count, terms: Terms) -> None:
    """Note how a passage of an item matches: of a fact all its words count, of a longer text its best passage."""
    pool.held.setdefault(item, set()).update(
        token for token, count in zip(terms.tokens, match.counts, strict=True) if count
    )
    before = pool.matches.get(item)
    if before is not None and item[0] == "relation":
        counts = [max(pair) for pair in zip(before.counts, match.counts, strict=True)]
        pool.matches[item] = Count(counts, max(before.length, match.length))
    elif before is None or _worth(match, terms) > _worth(before, terms):
        pool.matches[item] = match
        pool.passages[item] = passage


def _worth(match: Count, terms: Terms) -> float:
    worth = sum(weight for weight, count in zip(terms.weights, match.counts, strict=True) if count)
    return worth / math.log2(match.length + 2)


def _holds_all(pool: _Pool, item: Item, words: Iterable[QueryWord]) -> bool:
    return all(pool.held[item].issuperset(word.parts) for word in words)


def _admit(tx: sqlite3.Connection, request: Request, access: _Access, pool: _Pool, items: Iterable[Item]) -> None:
    """Look up the items that are new and note those that may be shown."""
    by_kind: dict[str, list[int]] = {}
    for item in sorted(items):
        if item not in pool.rows:
            by_kind.setdefault(item[0], []).append(item[1])
    for kind, ids in by_kind.items():
        rows = _standing(tx, request, access, kind, ids)
        holdings = _holdings(tx, request, access, kind, list(rows))
        for ref_id, row in rows.items():
            if _in_time(request, row) and ref_id in holdings:
                pool.rows[kind, ref_id] = row
                pool.holdings[kind, ref_id] = holdings[ref_id]


def _standing(
    tx: sqlite3.Connection, request: Request, access: _Access, kind: str, ids: Sequence[int]
) -> Mapping[int, Turn] | Mapping[int, Standing]:
    past = request.asks_the_past
    if kind == "part":
        return history.turns(tx, ids, request.scopes) if access.within is None else {}
    if kind == "relation":
        return found.standing(tx, ids, request.as_of, request.scopes, past=past)
    if kind == "note":
        return notes.standing(tx, ids, request.as_of, request.scopes, past=past)
    if kind == "entity":
        return found.entity_standing(tx, ids)
    if kind in ("block", "document"):
        return found.text_standing(tx, kind, ids, request.as_of)
    return found.scene_standing(tx, ids)


def _holdings(
    tx: sqlite3.Connection, request: Request, access: _Access, kind: str, ids: Sequence[int]
) -> Mapping[int, list[Holding]]:
    """Return the items that may be shown here, with the scenes that hold them and are open.

    What no scene holds is for everybody; what only scenes of other people hold is not for this situation.
    """
    if kind == "part":
        return {part: [] for part in ids}
    held = found.holders(tx, kind, ids)
    every = [holding for own in held.values() for holding in own]
    closed = set() if request.situation is None else found.closed_to(tx, request.situation, every)
    seen: dict[int, list[Holding]] = {}
    for ref_id in ids:
        own = held.get(ref_id, [])
        open_ones = [
            one
            for one in own
            if one.scene_id not in closed and (access.within is None or one.scene_id in access.within)
        ]
        if open_ones or (not own and access.within is None):
            seen[ref_id] = open_ones
    return seen


def _in_time(request: Request, row: Turn | Standing) -> bool:
    at = row.at or ""
    return not (request.since and at < request.since) and not (request.until and at >= request.until)


def _precise(tx: sqlite3.Connection, request: Request, access: _Access, ranking: Ranking) -> tuple[Hit, ...]:
    """Return only what the query names: notes by title, slot and labels, facts by their ends, texts by every word."""
    hits: list[Hit] = []
    if "note" in request.kinds:
        hits += _named_notes(tx, request, access)
    if "relation" in request.kinds:
        hits += _facts_of_named(tx, request, access, ranking)
    texts = tuple(kind for kind in request.kinds if kind not in ("note", "relation"))
    if texts:
        hits += search(tx, replace(request, kinds=texts, precise=False, mode="keyword"), ranking)
    return tuple(sorted(hits, key=lambda hit: (not hit.pinned, -hit.score))[: request.limit])


def _holding_words_of(tx: sqlite3.Connection, text: str, kind: str) -> Iterator[Passage]:
    """Yield the passages that hold a word of a text, stop words included, or one spelt much like an unknown one."""
    tokens = set(tokens_of(text))
    known = text_index.frequencies(tx, tokens)
    for token in [token for token in tokens if not known[token] and token.isalpha() and token.isascii()]:
        known |= text_index.frequencies(tx, text_index.spellings(tx, token))
    passages = text_index.candidates(tx, dict.fromkeys(known, False), known, [kind])
    return itertools.islice(passages, _NAMES_COMPARED)


def _named_notes(tx: sqlite3.Connection, request: Request, access: _Access) -> list[Hit]:
    pool = _Pool()
    ids = {passage.ref_id for passage in _holding_words_of(tx, request.text, "note")} | notes.pinned(tx)
    _admit(tx, request, access, pool, (("note", note_id) for note_id in ids))
    stored = notes.notes(tx, [note_id for _, note_id in pool.rows])
    texts = [
        NoteText(str(note.id), note.title, slot=note.slot, labels=note.labels, body=note.body, pinned=note.pinned)
        for note in stored.values()
    ]
    matches = {int(match.item.key): match for match in precise_matches(request.text, texts)}
    shown = _show_notes(tx, list(matches), pool)
    return [_told(shown[note_id], match, request) for note_id, match in matches.items()]


def _facts_of_named(tx: sqlite3.Connection, request: Request, access: _Access, ranking: Ranking) -> list[Hit]:
    names = found.entity_names(tx, [passage.ref_id for passage in _holding_words_of(tx, request.text, "entity")])
    texts = [NoteText(str(entity_id), name) for entity_id, (name, _) in names.items()]
    named = {int(match.item.key): match for match in precise_matches(request.text, texts)}
    pool = _Pool()
    edges = found.edges_around(tx, named, request.as_of, request.scopes, ranking.edges) if named else []
    _admit(tx, request, access, pool, (("relation", edge.id) for edge in edges))
    shown = _show_facts(tx, [relation_id for _, relation_id in pool.rows], pool)
    hits: list[Hit] = []
    for edge in edges:
        if edge.id in shown:
            ends = [named[end] for end in (edge.source_id, edge.target_id) if end in named]
            hits.append(_told(shown[edge.id], max(ends, key=lambda match: match.strength), request))
    return hits


def _told(hit: Hit, match: Match, request: Request) -> Hit:
    why = (Reason("named", match.strength, 1.0, match.reason),) if request.explain else ()
    return replace(hit, score=match.strength, why=why)


# ---- answers that are none


def _asks_the_unknown(request: Request, hits: Sequence[Hit]) -> bool:
    """Tell whether the query is about a number or a version that nothing names: the memory has no record of it."""
    asked = request.text
    if len(asked) > _LONGEST_QUESTION:
        return False
    for time in named_times(asked, request.now):
        asked = asked.replace(time.text, " ")
    return bool(_IDENTIFIES.search(asked)) and abstains(asked, (hit.text for hit in hits))


def _without_replaced(request: Request, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Leave out blocks whose value a later one replaces, unless the query asks for the past."""
    if request.asks_the_past:
        return hits
    gone = superseded(Statement(hit.id, hit.text, hit.at) for hit in hits if hit.kind == "block")
    return tuple(hit for hit in hits if hit.kind != "block" or hit.id not in gone)


# ---- evidence


def _evidence(
    tx: sqlite3.Connection,
    request: Request,
    access: _Access,
    words_asked: Iterable[QueryWord],
    pool: _Pool,
    terms: Terms,
    corpus: Corpus,
    ranking: Ranking,
) -> dict[str, Mapping[Item, float]]:
    """Return what speaks for the items, by name; every share lies within 0..1."""
    if request.mode == "vector":
        return {"vector": _vector(tx, pool, words_asked, corpus)}
    said = set(tokens_of(request.text))
    if request.mode == "graph":
        linked = _linked(tx, request, said, corpus, ranking)
        _admit(tx, request, access, pool, linked)
        return {"graph": linked}
    turns = {item[1]: row for item, row in pool.rows.items() if isinstance(row, Turn)}
    speakers = evidence.said_in_full(
        {key: tokens_of(key) for key in {row.author_key for row in turns.values()} - {""}}, said
    )
    # Who is named speaks more often than is spoken of: the name tells the speaker, not the words.
    of_parts = _lighter(terms, {token for tokens in speakers.values() for token in tokens}, ranking.name)
    parts = {item: match for item, match in pool.matches.items() if item[0] == "part"}
    others = {item: match for item, match in pool.matches.items() if item[0] != "part"}
    scores = evidence.of_words(parts, of_parts, [corpus.average("part")] * len(parts), ranking)
    scores |= evidence.of_words(others, terms, [corpus.average(kind) for kind, _ in others], ranking)
    words = scaled(scores)
    values: dict[str, Mapping[Item, float]] = {"words": words, "symbol": evidence.of_symbols(pool.matches, terms)}
    if request.mode == "keyword":
        return values
    if turns:
        nearest = sorted(turns, key=lambda part: -words["part", part])[: ranking.neighbours_of]
        near = history.around(tx, [turns[part] for part in nearest])
        pool.rows |= {("part", turn.id): turn for turn in near if _in_time(request, turn)}
        turns |= {turn.id: turn for turn in near}
        values |= evidence.of_turns(tx, turns, pool.matches, words, of_parts, corpus, ranking)
        values["speaker"] = evidence.of_speaker(turns, speakers)
    best = sorted(words, key=lambda item: (-words[item], item))[: ranking.association_of]
    shared = evidence.of_association(
        tx, [(pool.passages[item], words[item]) for item in best], said, request.kinds, corpus, ranking
    )
    _admit(tx, request, access, pool, shared)
    values["association"] = shared
    if "relation" in request.kinds:
        values["graph"] = _linked(tx, request, said, corpus, ranking)
        _admit(tx, request, access, pool, values["graph"])
    values["scene"] = _in_scene(access, pool)
    values["replaced"] = _replaced(tx, request, access, pool, words)
    values["date"] = evidence.of_dates(pool.rows, named_times(request.text, request.now), request.now.tzinfo or dt.UTC)
    return values


def _lighter(terms: Terms, tokens: Collection[str], share: float) -> Terms:
    if not tokens:
        return terms
    weights = (
        weight * share if token in tokens else weight for token, weight in zip(terms.tokens, terms.weights, strict=True)
    )
    return replace(terms, weights=tuple(weights))


def _vector(tx: sqlite3.Connection, pool: _Pool, words: Iterable[QueryWord], corpus: Corpus) -> dict[Item, float]:
    """Compare the query with each passage as vectors of counts times inverse frequencies."""
    lines = {item: [*one.title.split(), *one.labels.split(), *one.body.split()] for item, one in pool.passages.items()}
    asked = [token for word in words for token in word.tokens]
    known = text_index.frequencies(tx, {*itertools.chain(*lines.values()), *asked})

    def vector(tokens: Sequence[str]) -> dict[str, float]:
        return {
            token: count * inverse_frequency(corpus.texts, known[token]) for token, count in Counter(tokens).items()
        }

    query = vector(asked)
    return {item: cosine(query, vector(line)) for item, line in lines.items()}


def _linked(
    tx: sqlite3.Connection, request: Request, said: Collection[str], corpus: Corpus, ranking: Ranking
) -> dict[Item, float]:
    """Score facts that are linked to the entities named in the query, one and two hops away."""
    if "entity" not in corpus.sizes:
        return {}
    known = text_index.frequencies(tx, said)
    passages = text_index.candidates(tx, dict.fromkeys(said, False), known, ["entity"])
    names = {passage.ref_id: passage.title.split() for passage in itertools.islice(passages, ranking.candidates)}
    seeds = evidence.said_in_full(names, said)
    if not seeds:
        return {}
    first = found.edges_around(tx, seeds, request.as_of, request.scopes, ranking.edges)
    ends = {end for edge in first for end in (edge.source_id, edge.target_id)}
    second = found.edges_around(tx, ends, request.as_of, request.scopes, ranking.edges)
    edges = {edge.id: edge for edge in (*first, *second)}
    return evidence.of_graph(list(edges.values()), seeds)


def _meant(
    tx: sqlite3.Connection, request: Request, access: _Access, pool: _Pool, meanings: MeaningIndex, ranking: Ranking
) -> dict[Item, float]:
    """Score what means much the same as the query, and what was said beside it."""
    shares: dict[Item, float] = {}
    for batch in meanings.nearest(tx, request.text, _indexed_kinds(request), ranking.candidates):
        told = found.told_by(tx, [near.passage.ref_id for near in batch if near.passage.kind == "sentence"])
        items = [(item, near) for near in batch for item in _items_of(near.passage, told)]
        _admit(tx, request, access, pool, {item for item, _ in items})
        for item, near in items:
            if item in pool.rows and _may_be_heard(pool, item, near.passage):
                pool.passages.setdefault(item, near.passage)
                shares.setdefault(item, near.share)
        if len(shares) >= ranking.candidates:
            break
    turns = {item[1]: row for item, row in pool.rows.items() if isinstance(row, Turn) and item in shares}
    near_by = {turn.id: turn for turn in history.around(tx, list(turns.values())) if _in_time(request, turn)}
    pool.rows |= {("part", turn.id): turn for turn in near_by.values()}
    return with_neighbours(shares, turns | near_by, ranking.meaning_beside)


def _in_scene(access: _Access, pool: _Pool) -> dict[Item, float]:
    """Score what the scenes of the asker hold, by how well they answer the situation."""
    return scaled(
        {
            item: max(access.scores.get(one.scene_id, 0.0) * one.weight for one in holdings)
            for item, holdings in pool.holdings.items()
            if holdings
        }
    )


def _replaced(
    tx: sqlite3.Connection, request: Request, access: _Access, pool: _Pool, words: Mapping[Item, float]
) -> dict[Item, float]:
    """Where the query asks for the past, score what was superseded by what its words find."""
    if not request.asks_the_past:
        return {}
    before: dict[Item, float] = {}
    for kind, predecessors in (("relation", found.predecessors), ("note", notes.predecessors)):
        ids = [item[1] for item in words if item[0] == kind]
        for old, new in predecessors(tx, ids).items():
            before[(kind, old)] = words[(kind, new)]
    _admit(tx, request, access, pool, before)
    return before


# ---- hits


def _by_scene(tx: sqlite3.Connection, request: Request, answering: "Sequence[Candidate]") -> tuple[Hit, ...]:
    """Return what a situation brings back, without looking at words."""
    if request.situation is None:
        raise InvalidInput("situation", None, "mode 'scene' needs to know who asks and where")
    keys = request.situation.declared_keys
    recalled = recall_by_candidates(tx, keys, answering, limit=request.limit, scopes=request.scopes, at=request.as_of)
    hits = [
        Hit("relation", one.id, f"{one.subject} {one.relation} {one.object}", min(one.weight, 1.0), at=one.updated_at)
        for one in recalled.relations
    ]
    return tuple(hit for hit in hits if "relation" in request.kinds)


_TOLD = {
    "words": "its words match: {}",
    "vector": "its words weigh alike",
    "symbol": "names the very number or version",
    "window": "matches together with what was said right before and after",
    "neighbours": "what was said beside it matches",
    "session": "its session is about this",
    "speaker": "said by somebody who is named",
    "meaning": "means much the same, or was said right beside what does",
    "date": "said at a time that is named",
    "scene": "held by a scene that answers the situation",
    "graph": "linked to an entity that is named",
    "association": "shares rare words with the best hits",
    "replaced": "superseded by what the words find",
}


def _reasons(
    item: Item,
    values: Mapping[str, Mapping[Item, float]],
    weights: Mapping[str, float],
    pool: _Pool,
    terms: Terms,
) -> tuple[Reason, ...]:
    """Return what the score of an item is made of, the heaviest part first."""
    held = ", ".join(token for token in terms.tokens if token in pool.held.get(item, ()))
    reasons = [
        Reason(name, round(values[name][item], 6), weight, _TOLD[name].format(held))
        for name, weight in weights.items()
        if values[name].get(item)
    ]
    return tuple(sorted(reasons, key=lambda reason: -reason.value * reason.weight))


def _shown(tx: sqlite3.Connection, pool: _Pool, items: Sequence[Item]) -> dict[Item, Hit]:
    """Return the hits, their texts read."""
    by_kind: dict[str, list[int]] = {}
    for item in items:
        by_kind.setdefault(item[0], []).append(item[1])
    hits: dict[Item, Hit] = {}
    for kind, ids in by_kind.items():
        hits |= {(kind, ref_id): hit for ref_id, hit in _SHOW[kind](tx, ids, pool).items()}
    return hits


def _show_parts(tx: sqlite3.Connection, ids: Sequence[int], pool: _Pool) -> dict[int, Hit]:
    return {
        ref_id: Hit("part", part.part, part.text, 0.0, "/".join(filter(None, (part.session, part.author))), part.at)
        for ref_id, part in history.parts(tx, ids).items()
    }


def _show_notes(tx: sqlite3.Connection, ids: Sequence[int], pool: _Pool) -> dict[int, Hit]:
    return {
        ref_id: Hit(
            "note", ref_id, "\n".join(filter(None, (note.title, note.body))), 0.0, note.source, note.updated_at,
            _keys(pool, ("note", ref_id)), note.status, note.pinned,
        )
        for ref_id, note in notes.notes(tx, ids).items()
    }  # fmt: skip


def _show_facts(tx: sqlite3.Connection, ids: Sequence[int], pool: _Pool) -> dict[int, Hit]:
    facts = found.facts(tx, ids)
    heard: dict[int, int | None] = {}
    for ref_id, fact in facts.items():
        holdings = pool.holdings.get(("relation", ref_id))
        heard[ref_id] = holdings[0].sentence_id if holdings else fact.sentence_id
    sentences = found.sentences(tx, [sentence for sentence in heard.values() if sentence is not None])
    hits: dict[int, Hit] = {}
    for ref_id, fact in facts.items():
        told = f"{fact.subject} {fact.relation} {fact.object}"
        text = ": ".join(filter(None, (told, sentences.get(heard[ref_id] or 0, ""))))
        keys = _keys(pool, ("relation", ref_id))
        hits[ref_id] = Hit("relation", ref_id, text, 0.0, fact.source, fact.at, keys, fact.status)
    return hits


def _show_entities(tx: sqlite3.Connection, ids: Sequence[int], pool: _Pool) -> dict[int, Hit]:
    return {
        ref_id: Hit("entity", ref_id, name, 0.0, "", at, _keys(pool, ("entity", ref_id)))
        for ref_id, (name, at) in found.entity_names(tx, ids).items()
    }


def _show_scenes(tx: sqlite3.Connection, ids: Sequence[int], pool: _Pool) -> dict[int, Hit]:
    return {
        ref_id: Hit("scene", key, key, 0.0, "", at, (key,)) for ref_id, (key, at) in found.scene_keys(tx, ids).items()
    }


def _show_blocks(tx: sqlite3.Connection, ids: Sequence[int], pool: _Pool) -> dict[int, Hit]:
    return {
        ref_id: Hit("block", block.id, block.text, 0.0, block.source, block.at, _keys(pool, ("block", ref_id)))
        for ref_id, block in found.texts(tx, "block", ids).items()
    }


def _show_documents(tx: sqlite3.Connection, ids: Sequence[int], pool: _Pool) -> dict[int, Hit]:
    hits: dict[int, Hit] = {}
    for ref_id, document in found.texts(tx, "document", ids).items():
        item = ("document", ref_id)
        piece = piece_of(document.text, pool.passages[item].place) if item in pool.passages else document.title
        hits[ref_id] = Hit("document", document.id, piece, 0.0, document.source, document.at, _keys(pool, item))
    return hits


def _keys(pool: _Pool, item: Item) -> tuple[str, ...]:
    return tuple(holding.key for holding in pool.holdings.get(item, ()))


_SHOW: Mapping[str, Callable[[sqlite3.Connection, Sequence[int], _Pool], dict[int, Hit]]] = {
    "part": _show_parts,
    "note": _show_notes,
    "relation": _show_facts,
    "entity": _show_entities,
    "scene": _show_scenes,
    "block": _show_blocks,
    "document": _show_documents,
}
