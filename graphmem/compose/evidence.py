"""What speaks for an item: its words, and what stands around them. Shares of 0 to 1, for the items it speaks for."""

import datetime as dt
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from graphmem.config import Ranking
from graphmem.core.dates import NamedTime
from graphmem.core.ranking import bm25, inverse_frequency, scaled, walk
from graphmem.core.tokens import is_stop_token, telling_tokens
from graphmem.graph.neighbours import Edge
from graphmem.records import history
from graphmem.records.history import Turn
from graphmem.store import text_index
from graphmem.store.text_index import Passage, Vocabulary
from graphmem.store.transaction import Transaction

# What may be a hit: its kind, and its id within the kind.
Item = tuple[str, int]

_Key = TypeVar("_Key", bound=Hashable)
_HAS_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Terms:
    """What is counted in lines of tokens: tokens, as they stand between spaces, and how telling each is."""

    tokens: tuple[str, ...]
    patterns: tuple[str, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Matches:
    """How often terms are in the texts of items, by the place of the term, those that are in it; and lengths in tokens.

    places: the row of each item in both.
    """

    places: Mapping[Item, int]
    counts: Sequence[Mapping[int, float]]
    lengths: Sequence[float]


@dataclass(frozen=True, slots=True)
class Corpus:
    """How many passages there are, and of each kind how many and how many tokens in all."""

    texts: int
    sizes: Mapping[str, tuple[int, int]]

    def average(self, kind: str) -> float:
        """Return how long a passage of a kind is on average."""
        texts, tokens = self.sizes.get(kind, (0, 0))
        return max(tokens, 1) / max(texts, 1)


def corpus_of(tx: Transaction) -> Corpus:
    """Return the sizes of the text index."""
    sizes = text_index.sizes(tx)
    return Corpus(sum(texts for texts, _ in sizes.values()), sizes)


def _count(passages: Sequence[Passage], terms: Terms, ranking: Ranking) -> tuple[list[dict[int, float]], list[float]]:
    """Return how often each term is in each passage, in titles and labels as often as the ranking says; and lengths."""
    counts: list[dict[int, float]] = [{} for _ in passages]
    lengths = [0.0] * len(passages)
    _, titles, labels, bodies = zip(*passages, strict=True) if passages else ((), (), (), ())
    for lines, weight in ((bodies, 1.0), (titles, ranking.title), (labels, ranking.labels)):
        if any(lines):
            for term, pattern in enumerate(terms.patterns if weight else ()):
                # Few hold it, and asking takes a fifth of the time of counting.
                for row in [row for row, line in enumerate(lines) if pattern in line]:
                    counts[row][term] = counts[row].get(term, 0.0) + weight * lines[row].count(pattern)
            lengths = [length + line.count("  ") + 1 for length, line in zip(lengths, lines, strict=True)]
    return counts, lengths


def matches_of(
    passages: Sequence[tuple[Item, Passage]], terms: Terms, corpus: Corpus, ranking: Ranking
) -> tuple[Matches, dict[Item, Passage]]:
    """Count terms in the passages of items; return the counts of the best passage of each, and which one it is.

    A fact is its words and the sentences that told it, so its passages count together; the best sentence is shown.
    """
    counts, lengths = _count([passage for _, passage in passages], terms, ranking)
    places: dict[Item, int] = {}
    telling: dict[Item, int] = {}
    again: list[tuple[int, Item]] = []
    for row, (item, _) in enumerate(passages):
        if places.setdefault(item, row) != row:
            again.append((row, item))
    if again:
        averages = _averages(corpus, (item for item, _ in passages))
        relative = [length / averages[item[0]] for length, (item, _) in zip(lengths, passages, strict=True)]
        scores = bm25(counts, terms.weights, relative, k1=ranking.k1, b=ranking.b)
        for row, item in again:
            first = places[item]
            if item[0] == "relation":
                known = telling.get(item, first)
                if passages[known][1].item[0] != "sentence" or scores[row] > scores[known]:
                    telling[item] = row if passages[row][1].item[0] == "sentence" else known
                for term, count in counts[row].items():
                    counts[first][term] = max(count, counts[first].get(term, 0.0))
                lengths[first] = max(lengths[first], lengths[row])
            elif scores[row] > scores[first]:
                places[item] = row
        best = list(places.values())
        counts, lengths = [counts[row] for row in best], [lengths[row] for row in best]
    rows = {item: row for row, item in enumerate(places)}
    shown = {item: passages[row][1] for item, row in (places | telling).items()}
    return Matches(rows, counts, lengths), shown


def _averages(corpus: Corpus, items: Iterable[Item]) -> dict[str, float]:
    return {kind: corpus.average(kind) for kind in {kind for kind, _ in items}}


def of_words(
    matches: Matches, weights: Mapping[str, Sequence[float]], corpus: Corpus, ranking: Ranking
) -> dict[Item, float]:
    """Score items by BM25. weights: of the terms, by kind of item."""
    averages = _averages(corpus, matches.places)
    relative = [length / averages[kind] for (kind, _), length in zip(matches.places, matches.lengths, strict=True)]
    scores: dict[Item, float] = {}
    for telling in {tuple(weights[kind]) for kind in averages}:
        found = bm25(matches.counts, telling, relative, k1=ranking.k1, b=ranking.b)
        scores |= {item: found[row] for item, row in matches.places.items() if tuple(weights[item[0]]) == telling}
    return scaled(scores)


def of_symbols(matches: Matches, terms: Terms) -> dict[Item, float]:
    """Mark what names every number and version of the query: an exact symbol is no matter of degree."""
    columns = [place for place, token in enumerate(terms.tokens) if len(token) > 2 and _HAS_DIGIT.search(token)]
    if not columns:
        return {}
    return {item: 1.0 for item, row in matches.places.items() if all(map(matches.counts[row].get, columns))}


def of_turns(
    tx: Transaction,
    turns: Mapping[int, Turn],
    matches: Matches,
    words: Mapping[Item, float],
    weights: Sequence[float],
    corpus: Corpus,
    ranking: Ranking,
) -> dict[str, dict[Item, float]]:
    """Return what speaks for turns by what was said around them. weights: of the terms.

    window: each turn with its two neighbours as one text, since an answer seldom repeats the words of its question.
    neighbours: the score of the better turn beside it, and a share of the better one of the two beyond.
    session: its session as one long text.
    """
    items = [("part", part) for part in turns]
    missing = len(items)  # one row more, for the neighbour that is not there
    counts = [matches.counts[row] if (row := matches.places.get(item)) is not None else {} for item in items] + [{}]
    scores = [*(words.get(item, 0.0) for item in items), 0.0]
    lengths = [*(turn.length for turn in turns.values()), 0]
    rows = {(turn.session_id, turn.seq): row for row, turn in enumerate(turns.values())}

    def beside(step: int) -> list[int]:
        return [rows.get((session, seq + step), missing) for session, seq in rows]

    before, after = beside(-1), beside(1)
    around = list(zip(range(missing), before, after, strict=True))
    whole = 3 * corpus.average("part")
    window = bm25(
        [_sum(counts[row] for row in three) for three in around],
        weights,
        [sum(lengths[row] for row in three) / whole for three in around],
        k1=ranking.k1,
        b=ranking.b,
    )
    neighbours = [
        max(scores[one], scores[other]) + ranking.beyond * max(scores[second], scores[second_other])
        for one, other, second, second_other in zip(before, after, beside(-2), beside(2), strict=True)
    ]
    said: dict[int, list[Mapping[int, float]]] = {}
    for (session, _), row in rows.items():
        said.setdefault(session, []).append(counts[row])
    stored, ever = history.session_lengths(tx, list(said))
    average = corpus.sizes["part"][1] / ever
    of_sessions = bm25(
        [_sum(each) for each in said.values()],
        weights,
        [stored[session] / average for session in said],
        k1=ranking.k1,
        b=ranking.b,
    )
    by_session = dict(zip(said, of_sessions, strict=True))
    told = [by_session[session] for session, _ in rows]
    # What stands around a match is worth no more than the match.
    best = max(scores)
    found: dict[str, dict[Item, float]] = {}
    for name, values in (("window", window), ("neighbours", neighbours), ("session", told)):
        share = best / (max(values) or 1.0)
        found[name] = {item: value * share for item, value in zip(items, values, strict=True)}
    return found


def _sum(counts: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Add up counts.

    >>> _sum([{0: 1.0, 2: 1.0}, {}, {2: 2.0}])
    {0: 1.0, 2: 3.0}
    """
    total: dict[int, float] = {}
    for each in counts:
        for term, count in each.items():
            total[term] = total.get(term, 0.0) + count
    return total


def said_in_full(names: Mapping[_Key, Sequence[str]], said: Collection[str]) -> dict[_Key, tuple[str, ...]]:
    """Return those of the names, given by their tokens, that are said in full, with the tokens that say them.

    >>> said_in_full({"caroline": ["carolin"], "老大": ["老大", "大"]}, {"carolin", "research", "大"})
    {'caroline': ('carolin',)}
    """
    tokens = {key: telling_tokens(own) for key, own in names.items()}
    return {key: own for key, own in tokens.items() if own and all(token in said for token in own)}


def of_speaker(turns: Mapping[int, Turn], speakers: Collection[str]) -> dict[Item, float]:
    """Mark what somebody said who is named. It lifts and never filters, since a question may name the wrong one."""
    return {("part", turn.id): 1.0 for turn in turns.values() if turn.author_key in speakers} if speakers else {}


def of_dates(told: Mapping[Item, str], times: Sequence[NamedTime], zone: dt.tzinfo) -> dict[Item, float]:
    """Mark what was said at a time that is named. told: when each item was said."""
    if not times:
        return {}
    moments = {at: dt.datetime.fromisoformat(at).astimezone(zone) for at in told.values()}
    named = {at for at, moment in moments.items() if any(time.holds(moment) for time in times)}
    return {item: 1.0 for item, at in told.items() if at in named}


def of_association(
    tx: Transaction,
    vocabulary: Vocabulary,
    best: Iterable[tuple[Item, Passage, float]],
    said: Collection[str],
    kinds: Collection[str],
    corpus: Corpus,
    ranking: Ranking,
) -> dict[Item, float]:
    """Score what shares rare words with the best hits: the second step of a question that takes two."""
    shares: dict[str, float] = {}
    sources: dict[str, set[Item]] = {}
    for item, passage, share in best:
        for token in {*passage.title.split(), *passage.body.split()}.difference(said):
            if len(token) > 1 and not is_stop_token(token):
                shares[token] = max(share, shares.get(token, 0.0))
                sources.setdefault(token, set()).add(item)
    # A token of one text links it to none, and one of many says nothing.
    most = min(max(int(corpus.texts * ranking.association_share), 2), ranking.association_frequency)
    worth = {
        token: shares[token] * inverse_frequency(corpus.texts, number)
        for token, number in vocabulary.rare(tx, shares, most).items()
        if number > 1
    }
    chosen = sorted(worth, key=lambda token: (-worth[token], token))[: ranking.association_terms]
    if not chosen:
        return {}
    passages = text_index.latest_candidates(tx, chosen, kinds, ranking.association_candidates)
    items = [passage.item for passage in passages]
    lines = [passage.title + passage.body for passage in passages]
    shared = [0.0] * len(passages)
    for token in chosen:
        pattern, found_in = f" {token} ", sources[token]
        for row in [row for row, line in enumerate(lines) if pattern in line]:
            if found_in != {items[row]}:  # nothing is linked to itself
                shared[row] += worth[token]
    scores: dict[Item, float] = {}
    for item, score in zip(items, shared, strict=True):
        if score:
            scores[item] = max(score, scores.get(item, 0.0))
    return scaled(scores)


def ways_to(edges: Sequence[Edge], seeds: Collection[int]) -> dict[Item, tuple[int, ...]]:
    """Return for each fact the entities on the shortest way to it from one that is named, its own ends included."""
    ways: dict[int, tuple[int, ...]] = {seed: (seed,) for seed in seeds}
    found: dict[Item, tuple[int, ...]] = {}
    for _ in range(2):
        near = dict(ways)
        for edge in edges:
            for one, other in ((edge.source, edge.target), (edge.target, edge.source)):
                if one in near and ("relation", edge.id) not in found:
                    found["relation", edge.id] = (*near[one], other)
                    ways.setdefault(other, (*near[one], other))
    return found


def of_graph(edges: Sequence[Edge], seeds: Collection[int]) -> dict[Item, float]:
    """Score facts by how often a walker from the named entities comes by; direct ones more than those two hops away."""
    mass = walk(seeds, [(edge.source, edge.target, edge.confidence) for edge in edges])
    return scaled(
        {
            ("relation", edge.id): edge.confidence * (mass.get(edge.source, 0.0) + mass.get(edge.target, 0.0))
            for edge in edges
        }
    )
