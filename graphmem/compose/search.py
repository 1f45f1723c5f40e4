"""Search: candidates from the text index, scenes and the graph; their evidence scaled to 0..1, weighted and summed.

Words find candidates. What stands around them ranks them as well: the parts said right before and after, the whole
session, who and which day is named, the scene of the asker, what is linked to the entities named, what shares rare
words with the best hits, what was replaced. The weights are those of `Config.ranking`.
"""

import datetime as dt
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphmem.compose import evidence
from graphmem.compose.evidence import Corpus, Item, Matches, Terms
from graphmem.compose.meaning import MeaningIndex, of_meaning
from graphmem.compose.pool import Pool, Request, admit_turns, admitted, heard, visible_edges
from graphmem.compose.shown import reasons_of, shown
from graphmem.config import Ranking
from graphmem.core.model import Hit
from graphmem.core.ranking import cosine, inverse_frequency, scaled
from graphmem.core.spelling import SHORTEST_TYPO, one_edit
from graphmem.core.tokens import QueryWord, is_stop_token, query_words, tokens_of
from graphmem.errors import InvalidInput
from graphmem.graph import found
from graphmem.graph.scenes import Selection, chosen, noted, recall
from graphmem.late import late
from graphmem.records import history, standing
from graphmem.store import text_index
from graphmem.store.text_index import Passage, Vocabulary
from graphmem.store.transaction import Transaction

if TYPE_CHECKING:
    from graphmem.compose import naming
    from graphmem.core import arbitration
    from graphmem.graph.matching import Candidate
else:
    arbitration = late("graphmem.core.arbitration")
    naming = late("graphmem.compose.naming")

DEFAULT_LIMIT = 10

_MOST_TOKENS = 4_096
_MOST_HITS = 10_000
_LONGEST_QUESTION = 256  # characters
_BLOCKS_WEIGHED = 32  # looked at beyond the limit, since some replace others
# A number that names something, not one that counts.
_IDENTIFIES = re.compile(r"\d{3}|\d\.\d")


def search(
    tx: Transaction,
    vocabulary: Vocabulary,
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
    inside = None if within is None else {row[0] for row in tx.execute(within.sql, within.parameters)}
    scores = {candidate.scene_id: candidate.score for candidate in answering}
    if request.situation is not None:
        scores |= dict.fromkeys(found.scenes_of_keys(tx, request.situation.declared_keys), 1.0)
    pool = Pool(tx, vocabulary, request, inside, scores, meanings)
    if request.mode == "scene" or (not words and request.situation):
        return _by_scene(pool, answering)
    if not words:
        raise InvalidInput("query", request.text, "nothing to search for; give a word, or a situation")
    if request.precise:
        return _precise(pool, words, ranking)
    tokens = tokens_of(request.text)
    if all(map(is_stop_token, tokens)):
        plain = Pool(tx, vocabulary, replace(request, mode="keyword"), inside, scores)
        return tuple(hit for hit in _by_words(plain, words, ranking) if _says(hit.text, tokens))
    hits = _by_words(pool, words, ranking)
    if hits or pool.passages:
        return hits
    every = query_words(request.text, all_words=True)
    return hits if every == words else _by_words(pool, every, ranking)


def _says(text: str, tokens: Sequence[str]) -> bool:
    """Tell whether a text says words one after the other: stop words alone say nothing otherwise.

    >>> _says("To be or not to be", ["not", "to"]), _says("To be or not to be", ["be", "to"])
    (True, False)
    """
    said = tokens_of(text)
    places = range(len(said) - len(tokens) + 1)
    return any(said[place : place + len(tokens)] == list(tokens) for place in places)


@dataclass(frozen=True, slots=True)
class Sought:
    """A query and what its words found: terms, how often they are in the items, the best passage of each."""

    words: Sequence[QueryWord]
    known: Mapping[str, int]
    terms: Terms
    corpus: Corpus
    matches: Matches
    best: Mapping[Item, Passage]


def _by_words(pool: Pool, words: Sequence[QueryWord], ranking: Ranking) -> tuple[Hit, ...]:
    request = pool.request
    corpus = evidence.corpus_of(pool.tx)
    pool.vocabulary.notice(corpus.texts)
    words, known = _respelt(pool, words, _known(pool, words))
    if len(known) > _MOST_TOKENS:  # a pasted text: what is in the fewest passages tells most
        known = dict(sorted(((token, n) for token, n in known.items() if n), key=lambda one: one[1])[:_MOST_TOKENS])
    if not corpus.texts or not any(known.values()):
        text_index.check(pool.tx)
    terms = _terms(words, known, corpus, ranking)
    _gather(pool, words, known, ranking)
    if request.mode == "keyword":
        _keep_those_with_all(pool, words)
    matches, best = evidence.matches_of(pool.passages, terms, corpus, ranking)
    sought = Sought(words, known, terms, corpus, matches, best)
    values = _evidence(pool, sought, ranking)
    hits = _ranked(pool, values, replace(sought, best={**pool.nearest, **best}), ranking)
    return () if _asks_the_unknown(pool, known, hits) else hits


def _precise(pool: Pool, words: Sequence[QueryWord], ranking: Ranking) -> tuple[Hit, ...]:
    """Return only what the query names: notes by title, slot and labels, facts by their ends, texts by every word."""
    request = pool.request
    hits: list[Hit] = []
    if "note" in request.kinds:
        hits += naming.named_notes(pool)
    if "relation" in request.kinds:
        hits += naming.facts_of_named(pool, ranking)
    texts = tuple(kind for kind in request.kinds if kind != "note")
    if texts:
        plain = replace(request, kinds=texts, precise=False, mode="keyword")
        hits += _by_words(Pool(pool.tx, pool.vocabulary, plain, pool.within, pool.scene_scores), words, ranking)
    once: dict[tuple[str, int | str, str], Hit] = {}
    for hit in sorted(hits, key=lambda hit: (not hit.pinned, -hit.score)):
        once.setdefault((hit.kind, hit.id, hit.source if hit.kind == "part" else ""), hit)
    return tuple(once.values())[: request.limit]


def _ranked(
    pool: Pool, values: Mapping[str, Mapping[Item, float]], sought: Sought, ranking: Ranking
) -> tuple[Hit, ...]:
    """Weigh and sum the evidence and return the best as hits."""
    weights: dict[str, float] = {name: getattr(ranking, name) for name, shares in values.items() if shares}
    whole = sum(weights.values())
    weights = {name: weight / whole for name, weight in weights.items()}
    totals: dict[Item, float] = {}
    for name, weight in weights.items():
        for item, share in values[name].items():
            totals[item] = totals.get(item, 0.0) + weight * share
    request = pool.request
    spare = _BLOCKS_WEIGHED if any(kind == "block" for kind, _ in totals) else 0
    hits = shown(
        pool, {item: totals[item] for item in _first(totals, min(request.limit, _MOST_HITS) + spare)}, sought.best
    )
    if spare and not request.asks_the_past:
        blocks = (hit for hit in hits.values() if hit.kind == "block")
        gone = arbitration.superseded(arbitration.Statement(hit.id, hit.text, hit.at) for hit in blocks)
        hits = {item: hit for item, hit in hits.items() if hit.kind != "block" or hit.id not in gone}
    chosen = sorted(hits, key=_best_first(totals))[: request.limit]
    if not request.explain:
        return tuple(hits[item] for item in chosen)
    return tuple(
        replace(hits[item], why=reasons_of(item, values, weights, _details(pool, item, sought))) for item in chosen
    )


def _first(scores: Mapping[Item, float], most: int) -> list[Item]:
    """Return the best items in order; on a few hundred items this takes a third of the time of heapq.nsmallest."""
    if len(scores) > most:
        least = sorted(scores.values(), reverse=True)[most - 1] if most else math.inf
        scores = {item: score for item, score in scores.items() if score >= least}
    return sorted(scores, key=_best_first(scores))[:most]


def _details(pool: Pool, item: Item, sought: Sought) -> dict[str, str]:
    """Return what is to be told of the evidence for an item: the words it holds, and the way that leads to it."""
    row = sought.matches.places.get(item)
    counts = {} if row is None else sought.matches.counts[row]
    held = {sought.terms.tokens[term] for term in counts}
    words = [
        each
        for word in sought.words
        for each in ([word.text] if held.issuperset(word.parts) else filter(held.__contains__, word.parts))
    ]
    way = pool.ways.get(item, ())
    names = found.entity_names(pool.tx, way)
    return {"words": ", ".join(words), "graph": " → ".join(names[entity][0] for entity in way)}


def _best_first(scores: Mapping[Item, float]) -> Callable[[Item], tuple[float, str, int]]:
    """Return the key to sort items by; of those that score alike the one written last comes first."""
    return lambda item: (-scores[item], item[0], -item[1])


# ---- candidates


def _known(pool: Pool, words: Iterable[QueryWord]) -> dict[str, int]:
    """Return the frequencies of the tokens of a query, in its order."""
    whole = dict.fromkeys(token for word in words if not word.prefix for token in word.tokens)
    beginnings = dict.fromkeys(part for word in words if word.prefix for part in word.parts if part not in whole)
    known = pool.vocabulary.frequencies(pool.tx, whole)
    return known | {part: text_index.prefix_frequency(pool.tx, part) for part in beginnings}


def _respelt(
    pool: Pool, words: Sequence[QueryWord], known: Mapping[str, int]
) -> tuple[Sequence[QueryWord], Mapping[str, int]]:
    """Put in the place of a word that no text holds the commonest that is one edit away, where there is such a one."""
    respelt: list[QueryWord] = []
    for word in words:
        (token, *others) = word.parts
        plain = len(token) >= SHORTEST_TYPO and token.isalpha() and not (others or word.whole or word.prefix)
        if plain and not known[token]:
            near = [other for other in text_index.spellings(pool.tx, token) if one_edit(token, other)]
            found_near = pool.vocabulary.frequencies(pool.tx, near)
            if near:
                respelt.append(replace(word, parts=(max(near, key=lambda other: (found_near[other], other)),)))
                known = {**known, **found_near}
                continue
        respelt.append(word)
    return respelt, {token: known[token] for word in respelt for token in word.tokens}


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


def _gather(pool: Pool, words: Iterable[QueryWord], known: Mapping[str, int], ranking: Ranking) -> None:
    """Take candidates from the text index until there are enough that may be shown."""
    kinds = pool.request.indexed_kinds
    tokens = {token: word.prefix for word in words for token in word.tokens if token in known}
    most = ranking.candidates * pool.request.effort
    for batch in text_index.candidates(pool.tx, tokens, known, kinds, most):
        pool.passages += heard(pool, batch)
        if len(pool.passages) >= most:
            break


def _keep_those_with_all(pool: Pool, words: Iterable[QueryWord]) -> None:
    """Keep the passages of items that hold every word, be it in several passages."""
    held: dict[Item, set[str]] = {}
    for item, passage in pool.passages:
        held.setdefault(item, set()).update(passage.title.split(), passage.labels.split(), passage.body.split())

    def holds(tokens: Collection[str], word: QueryWord) -> bool:
        if word.prefix:
            return any(token.startswith(word.parts) for token in tokens)
        return word.whole in tokens or all(part in tokens for part in word.parts)

    complete = {item for item, tokens in held.items() if all(holds(tokens, word) for word in words)}
    pool.passages = [(item, passage) for item, passage in pool.passages if item in complete]


def _asks_the_unknown(pool: Pool, known: Mapping[str, int], hits: Sequence[Hit]) -> bool:
    """Tell whether the query is about a number or a version that nothing names: the memory has no record of it."""
    asked = pool.request.text
    if len(asked) > _LONGEST_QUESTION or not _IDENTIFIES.search(asked):
        return False
    for time in pool.request.named_times:
        asked = asked.replace(time.text, " ")
    if not _IDENTIFIES.search(asked) or not arbitration.abstains(asked, (hit.text for hit in hits)):
        return False
    numbers = [token for token in tokens_of(asked) if _IDENTIFIES.search(token)]
    return not any(known.get(token) or text_index.prefix_frequency(pool.tx, token) for token in numbers)


# ---- evidence


def _evidence(pool: Pool, sought: Sought, ranking: Ranking) -> dict[str, Mapping[Item, float]]:
    """Return what speaks for the items, by name; every share lies within 0..1."""
    terms, matches, best, corpus = sought.terms, sought.matches, sought.best, sought.corpus
    tx, request = pool.tx, pool.request
    said = set(tokens_of(request.text))
    if request.mode == "graph":
        return {"graph": admitted(pool, _linked(pool, said, corpus, ranking))}
    if request.mode == "vector":
        return {"vector": _vector(pool, sought)}
    turns = pool.turns
    names = {key: tokens_of(key) for key in {turn.author_key for turn in turns.values()} - {""}}
    speakers = evidence.said_in_full(names, said)
    # Who is named speaks more often than is spoken of: the name tells the speaker, not the words.
    named = {token for tokens in speakers.values() for token in tokens}
    of_parts = [
        weight * ranking.name if token in named else weight
        for token, weight in zip(terms.tokens, terms.weights, strict=True)
    ]
    found_words = evidence.of_words(
        matches, {**dict.fromkeys(request.kinds, terms.weights), "part": of_parts}, corpus, ranking
    )
    values: dict[str, Mapping[Item, float]] = {
        "words": found_words,
        "symbol": evidence.of_symbols(matches, terms),
    }
    if request.mode == "keyword":
        return values
    if turns:
        most = ranking.neighbours_of * request.effort
        nearest = _first({("part", part): found_words.get(("part", part), 0.0) for part in turns}, most)
        admit_turns(pool, history.beside(tx, [turns[part] for _, part in nearest]))
        values |= evidence.of_turns(tx, turns, matches, found_words, of_parts, corpus, ranking)
        values["speaker"] = evidence.of_speaker(turns, speakers)
    top = _first(found_words, ranking.association_of)
    shared = evidence.of_association(
        tx,
        pool.vocabulary,
        [(item, best[item], found_words[item]) for item in top],
        said,
        request.kinds,
        corpus,
        ranking,
    )
    values["association"] = admitted(pool, shared)
    if "relation" in request.kinds:
        values["graph"] = admitted(pool, _linked(pool, said, corpus, ranking))
    if pool.meanings is not None:
        values["meaning"] = of_meaning(pool, pool.meanings, ranking)
    values["scene"] = _in_scene(pool)
    values["replaced"] = admitted(pool, _replaced(pool, found_words))
    values["date"] = evidence.of_dates(pool.told, request.named_times, request.now.tzinfo or dt.UTC)
    return values


def _vector(pool: Pool, sought: Sought) -> dict[Item, float]:
    """Compare the query with the best passage of each item, as vectors of counts times inverse frequencies."""
    lines = {item: [*one.title.split(), *one.labels.split(), *one.body.split()] for item, one in sought.best.items()}
    asked = [token for word in sought.words for token in word.tokens]
    known = pool.vocabulary.frequencies(pool.tx, {*itertools.chain(*lines.values()), *asked})

    def vector(tokens: Sequence[str]) -> dict[str, float]:
        return {
            token: count * inverse_frequency(sought.corpus.texts, known[token])
            for token, count in Counter(tokens).items()
        }

    query = vector(asked)
    return {item: cosine(query, vector(line)) for item, line in lines.items()}


def _linked(pool: Pool, said: Collection[str], corpus: Corpus, ranking: Ranking) -> dict[Item, float]:
    """Score facts that are linked to the entities named in the query, one and two hops away."""
    tx, request = pool.tx, pool.request
    if "entity" not in corpus.sizes:
        return {}
    known = pool.vocabulary.frequencies(tx, said)
    passages = text_index.first_candidates(tx, said, known, ["entity"], ranking.edges)
    names = {passage.item[1]: passage.title.split() for passage in passages}
    seeds = evidence.said_in_full(names, said)
    if not seeds:
        return {}
    first = visible_edges(pool, seeds, ranking.edges)
    ends = {end for edge in first for end in (edge.source, edge.target)}
    edges = list({edge.id: edge for edge in (*first, *visible_edges(pool, ends, ranking.edges))}.values())
    if request.explain:
        pool.ways |= evidence.ways_to(edges, seeds)
    return evidence.of_graph(edges, seeds)


def _in_scene(pool: Pool) -> dict[Item, float]:
    """Score what the scenes of the asker hold, by how well they answer the situation."""
    if not pool.scene_scores:
        return {}
    shares = {
        item: max((pool.scene_scores.get(one.scene_id, 0.0) * one.weight for one in holdings), default=0.0)
        for item, holdings in pool.holdings.items()
    }
    return scaled({item: share for item, share in shares.items() if share})


def _replaced(pool: Pool, words: Mapping[Item, float]) -> dict[Item, float]:
    """Where the query asks for the past, score what was superseded by what its words find."""
    if not pool.request.asks_the_past:
        return {}
    before: dict[Item, float] = {}
    for kind, predecessors in (("relation", found.predecessors), ("note", standing.predecessors)):
        ids = [ref_id for each, ref_id in words if each == kind]
        for old, new in predecessors(pool.tx, ids).items():
            before[kind, old] = words[kind, new]
    return before


def _by_scene(pool: Pool, answering: "Sequence[Candidate]") -> tuple[Hit, ...]:
    """Return what a situation brings back, without looking at words."""
    tx, request = pool.tx, pool.request
    if request.situation is None:
        raise InvalidInput("situation", None, "mode 'scene' needs to know who asks and where")
    keys: Sequence[str] = request.situation.declared_keys
    if pool.within is not None:
        keys = [key for key in keys if set(found.scenes_of_keys(tx, [key])).issubset(pool.within)]
        answering = [candidate for candidate in answering if candidate.scene_id in pool.within]
    selection = chosen(tx, keys, answering)
    if selection is None:
        return ()
    recalled = recall(tx, selection, limit=request.limit, scopes=request.scopes, at=request.moment)
    weights: dict[Item, float] = {("note", note_id): weight for note_id, weight in noted(tx, selection).items()}
    weights |= {("relation", one.id): one.weight for one in recalled.relations}
    weights |= {("entity", one.id): one.weight for one in recalled.entities}
    for kind, texts in (("block", recalled.blocks), ("document", recalled.documents)):
        numbers = found.numbers_of(tx, kind, [one.id for one in texts])
        weights |= {(kind, numbers[one.id]): one.weight for one in texts}
    shares = admitted(pool, {item: min(weight, 1.0) for item, weight in weights.items() if item[0] in request.kinds})
    hits = shown(pool, shares, {})
    first = sorted(hits, key=lambda item: -shares[item])[: request.limit]
    if not request.explain:
        return tuple(hits[item] for item in first)
    return tuple(replace(hits[item], why=reasons_of(item, {"scene": shares}, {"scene": 1.0}, {})) for item in first)
