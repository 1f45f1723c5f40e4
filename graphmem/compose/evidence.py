"""What speaks for an item besides its own words. Each function returns a share of 0..1 for the items it knows of."""

import datetime as dt
import itertools
import re
import sqlite3
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from graphmem.config import Ranking
from graphmem.core.dates import NamedTime
from graphmem.core.model import Standing
from graphmem.core.ranking import bm25, inverse_frequency, scaled, walk
from graphmem.graph.found import Edge
from graphmem.records import history
from graphmem.records.history import Turn
from graphmem.store import text_index
from graphmem.store.text_index import Passage

_Key = TypeVar("_Key", bound=Hashable)
_HAS_DIGIT = re.compile(r"\d")
# What may be a hit: its kind, and its id within the kind.
Item = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Terms:
    """What is counted in lines of tokens: tokens, as they stand between spaces, and how telling each is."""

    tokens: tuple[str, ...]
    patterns: tuple[str, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """How often each term is in a text, and its length in tokens."""

    counts: Sequence[float]
    length: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """How many passages there are, and of each kind how many and how many tokens in all."""

    texts: int
    sizes: Mapping[str, tuple[int, int]]

    def average(self, kind: str) -> float:
        """Return how long a passage of a kind is on average."""
        texts, tokens = self.sizes.get(kind, (0, 0))
        return max(tokens, 1) / max(texts, 1)


def corpus_of(tx: sqlite3.Connection) -> Corpus:
    """Return the sizes of the text index."""
    sizes = text_index.sizes(tx)
    return Corpus(sum(texts for texts, _ in sizes.values()), sizes)


def count(passage: Passage, terms: Terms, ranking: Ranking) -> Count:
    """Count terms in a passage; one in the title counts threefold, one in the labels twice."""
    counts = [0.0] * len(terms.patterns)
    length = 0
    for column, weight in ((passage.title, ranking.title), (passage.labels, ranking.labels), (passage.body, 1.0)):
        if column:
            line = f" {column} "
            length += line.count("  ") + 1
            for place, pattern in enumerate(terms.patterns):
                counts[place] += weight * line.count(pattern)
    return Count(counts, length)


def of_words(
    matches: Mapping[_Key, Count], terms: Terms, averages: Sequence[float], ranking: Ranking
) -> dict[_Key, float]:
    """Score matches by BM25; averages: the length of a text of each one's kind."""
    import numpy as np  # takes 60 ms: only who searches pays it

    if not matches:
        return {}
    counts = np.array([match.counts for match in matches.values()])
    lengths = np.array([match.length for match in matches.values()]) / np.array(averages)
    scores = bm25(counts, np.array(terms.weights), lengths, k1=ranking.k1, b=ranking.b)
    return dict(zip(matches, scores.tolist(), strict=True))


def of_symbols(matches: Mapping[Item, Count], terms: Terms) -> dict[Item, float]:
    """Mark what names every number and version of the query: an exact symbol is no matter of degree."""
    places = [place for place, token in enumerate(terms.tokens) if len(token) > 2 and _HAS_DIGIT.search(token)]
    return {item: 1.0 for item, match in matches.items() if places and all(match.counts[place] for place in places)}


def of_turns(
    tx: sqlite3.Connection,
    turns: Mapping[int, Turn],
    matches: Mapping[Item, Count],
    words: Mapping[Item, float],
    terms: Terms,
    corpus: Corpus,
    ranking: Ranking,
) -> dict[str, dict[Item, float]]:
    """Return what speaks for turns by what was said around them.

    window: each turn with its two neighbours as one text, since an answer seldom repeats the words of its question.
    neighbours: the score of the better turn beside it, and a share of the better one of the two beyond.
    session: its session as one long text.
    """
    import numpy as np

    items: list[Item] = [("part", part) for part in turns]
    # One row more, for the neighbour that is not there or says nothing of this.
    counts = np.zeros((len(items) + 1, len(terms.weights)))
    lengths = np.zeros(len(items) + 1)
    scores = np.zeros(len(items) + 1)
    for row, (item, turn) in enumerate(zip(items, turns.values(), strict=True)):
        lengths[row] = turn.length
        if item in matches:
            counts[row] = matches[item].counts
            scores[row] = words[item]
    rows = {(turn.session_id, turn.seq): row for row, turn in enumerate(turns.values())}
    near = {
        step: [rows.get((turn.session_id, turn.seq + step), -1) for turn in turns.values()] for step in (-2, -1, 1, 2)
    }
    own = slice(len(items))
    window = bm25(
        counts[own] + counts[near[-1]] + counts[near[1]],
        np.array(terms.weights),
        (lengths[own] + lengths[near[-1]] + lengths[near[1]]) / (3 * corpus.average("part")),
        k1=ranking.k1,
        b=ranking.b,
    )
    beside = np.maximum(scores[near[-1]], scores[near[1]])
    beyond = np.maximum(scores[near[-2]], scores[near[2]])
    sessions, session_of = np.unique([turn.session_id for turn in turns.values()], return_inverse=True)
    sums = np.zeros((len(sessions), len(terms.weights)))
    np.add.at(sums, session_of, counts[own])
    stored, ever = history.session_lengths(tx, sessions.tolist())
    whole = bm25(
        sums,
        np.array(terms.weights),
        np.array([stored[session] for session in sessions.tolist()]) / (corpus.sizes["part"][1] / ever),
        k1=ranking.k1,
        b=ranking.b,
    )
    found = {"window": window, "neighbours": beside + ranking.beyond * beyond, "session": whole[session_of]}
    return {name: scaled(dict(zip(items, values.tolist(), strict=True))) for name, values in found.items()}


def said_in_full(names: Mapping[_Key, Sequence[str]], said: Collection[str]) -> dict[_Key, tuple[str, ...]]:
    """Return those of the names, given by their tokens, that are said in full, with the tokens that say them.

    The last character of a run of Chinese, which is a token as well, says nothing by itself.

    >>> said_in_full({"caroline": ["carolin"], "老大": ["老大", "大"]}, {"carolin", "research", "大"})
    {'caroline': ('carolin',)}
    """
    telling = {
        key: tuple(token for token in tokens if len(token) > 1 or len(tokens) == 1) for key, tokens in names.items()
    }
    return {key: tokens for key, tokens in telling.items() if tokens and all(token in said for token in tokens)}


def of_speaker(turns: Mapping[int, Turn], speakers: Collection[str]) -> dict[Item, float]:
    """Mark what somebody said who is named. It lifts and never filters, since a question may name the wrong one."""
    return {("part", turn.id): 1.0 for turn in turns.values() if turn.author_key in speakers}


def of_dates(items: Mapping[Item, Turn | Standing], times: Sequence[NamedTime], zone: dt.tzinfo) -> dict[Item, float]:
    """Mark what was said at a time that is named."""
    marked: dict[Item, float] = {}
    for item, row in items.items():
        if row.at is not None and times:
            moment = dt.datetime.fromisoformat(row.at).astimezone(zone)
            if any(time.holds(moment) for time in times):
                marked[item] = 1.0
    return marked


def of_association(
    tx: sqlite3.Connection,
    best: Iterable[tuple[Passage, float]],
    query_tokens: Collection[str],
    kinds: Collection[str],
    corpus: Corpus,
    ranking: Ranking,
) -> dict[Item, float]:
    """Score what shares rare words with the best hits: the second step of a question that takes two."""
    shares: dict[str, float] = {}
    for passage, share in best:
        for token in {*passage.title.split(), *passage.body.split()}.difference(query_tokens):
            if len(token) > 1:
                shares[token] = max(share, shares.get(token, 0.0))
    known = text_index.frequencies(tx, shares)
    # A token of one text links it to none, and one of many says nothing.
    most = max(ranking.association_share * corpus.texts, 2)
    worth = {
        token: share * inverse_frequency(corpus.texts, known[token])
        for token, share in shares.items()
        if 1 < known[token] <= most
    }
    chosen = sorted(worth, key=lambda token: (-worth[token], token))[: ranking.association_terms]
    terms = Terms(tuple(chosen), tuple(f" {token} " for token in chosen), tuple(worth[token] for token in chosen))
    passages = text_index.candidates(tx, dict.fromkeys(chosen, False), known, kinds)
    taken = list(itertools.islice(passages, ranking.association_candidates))
    matches = {(passage.kind, passage.ref_id): count(passage, terms, ranking) for passage in taken}
    averages = [corpus.average(kind) for kind, _ in matches]
    return scaled(of_words(matches, terms, averages, ranking))


def of_graph(edges: Sequence[Edge], seeds: Collection[int]) -> dict[Item, float]:
    """Score facts by how often a walker from the named entities comes by; direct ones more than those two hops away."""
    mass = walk(seeds, [(edge.source_id, edge.target_id, edge.confidence) for edge in edges])
    return scaled(
        {
            ("relation", edge.id): edge.confidence * (mass.get(edge.source_id, 0.0) + mass.get(edge.target_id, 0.0))
            for edge in edges
        }
    )
