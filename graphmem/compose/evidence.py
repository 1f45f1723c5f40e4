"""What speaks for an item: its words, and what stands around them. Shares of 0 to 1, for the items it speaks for."""

import datetime as dt
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    """How often each term (m) is in the texts (n) of items: counts is n x m, lengths are in tokens.

    places: the row of each item.
    """

    places: Mapping[Item, int]
    counts: "NDArray[np.float64]"
    lengths: "NDArray[np.float64]"


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


def _count(
    passages: Sequence[Passage], terms: Terms, ranking: Ranking
) -> tuple["NDArray[np.float64]", "NDArray[np.float64]"]:
    """Return how often each term is in each passage, in titles and labels as often as the ranking says; and lengths."""
    import numpy as np  # takes 60 ms: only who searches pays it

    counts = [[0.0] * len(passages) for _ in terms.patterns]
    lengths = np.zeros(len(passages))
    _, titles, labels, bodies = zip(*passages, strict=True) if passages else ((), (), (), ())
    for lines, weight in ((bodies, 1.0), (titles, ranking.title), (labels, ranking.labels)):
        if any(lines):
            for counted, pattern in zip(counts, terms.patterns, strict=True):
                # Few hold it, and asking takes a fifth of the time of counting.
                for row in [row for row, line in enumerate(lines) if pattern in line]:
                    counted[row] += weight * lines[row].count(pattern)
            lengths += [line.count("  ") + 1 for line in lines]
    return np.ascontiguousarray(np.array(counts).reshape(len(counts), len(passages)).T), lengths


def matches_of(
    passages: Sequence[tuple[Item, Passage]], terms: Terms, corpus: Corpus, ranking: Ranking
) -> tuple[Matches, dict[Item, Passage]]:
    """Count terms in the passages of items; return the counts of the best passage of each, and which one it is.

    A fact is its words and the sentences that told it, so its passages count together; the best sentence is shown.
    """
    import numpy as np

    counts, lengths = _count([passage for _, passage in passages], terms, ranking)
    places: dict[Item, int] = {}
    telling: dict[Item, int] = {}
    again: list[tuple[int, Item]] = []
    for row, (item, _) in enumerate(passages):
        if places.setdefault(item, row) != row:
            again.append((row, item))
    if again:
        relative = lengths / np.array([corpus.average(item[0]) for item, _ in passages])
        scores = bm25(counts, np.array(terms.weights), relative, k1=ranking.k1, b=ranking.b)
        for row, item in again:
            first = places[item]
            if item[0] == "relation":
                known = telling.get(item, first)
                if passages[known][1].item[0] != "sentence" or scores[row] > scores[known]:
                    telling[item] = row if passages[row][1].item[0] == "sentence" else known
                counts[first] = np.maximum(counts[first], counts[row])
                lengths[first] = max(lengths[first], lengths[row])
            elif scores[row] > scores[first]:
                places[item] = row
        best = list(places.values())
        counts, lengths = counts[best], lengths[best]
    rows = {item: row for row, item in enumerate(places)}
    shown = {item: passages[row][1] for item, row in (places | telling).items()}
    return Matches(rows, counts, lengths), shown


def of_words(
    matches: Matches, weights: Mapping[str, Sequence[float]], corpus: Corpus, ranking: Ranking
) -> dict[Item, float]:
    """Score items by BM25. weights: of the terms, by kind of item."""
    import numpy as np

    kinds = [kind for kind, _ in matches.places]
    averages = {kind: corpus.average(kind) for kind in {*kinds}}
    relative = matches.lengths / [averages[kind] for kind in kinds]
    scores: dict[Item, float] = {}
    for telling in {tuple(weights[kind]) for kind in averages}:
        found = bm25(matches.counts, np.array(telling), relative, k1=ranking.k1, b=ranking.b).tolist()
        scores |= {item: found[row] for item, row in matches.places.items() if tuple(weights[item[0]]) == telling}
    return scaled(scores)


def of_symbols(matches: Matches, terms: Terms) -> dict[Item, float]:
    """Mark what names every number and version of the query: an exact symbol is no matter of degree."""
    columns = [place for place, token in enumerate(terms.tokens) if len(token) > 2 and _HAS_DIGIT.search(token)]
    if not columns:
        return {}
    named = matches.counts[:, columns].min(axis=1).tolist()
    return {item: 1.0 for item, row in matches.places.items() if named[row]}


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
    import numpy as np

    items = [("part", part) for part in turns]
    missing = len(items)  # one row more, for the neighbour that is not there
    counts = np.zeros((missing + 1, len(weights)))
    known = [(row, matches.places[item]) for row, item in enumerate(items) if item in matches.places]
    counts[[row for row, _ in known]] = matches.counts[[row for _, row in known]]
    scores = np.array([*(words.get(item, 0.0) for item in items), 0.0])
    lengths = np.array([*(turn.length for turn in turns.values()), 0])
    rows = {(turn.session_id, turn.seq): row for row, turn in enumerate(turns.values())}

    def beside(step: int) -> list[int]:
        return [rows.get((session, seq + step), missing) for session, seq in rows]

    before, after = beside(-1), beside(1)
    telling = np.array(weights)
    window = bm25(
        counts[:-1] + counts[before] + counts[after],
        telling,
        (lengths[:-1] + lengths[before] + lengths[after]) / (3 * corpus.average("part")),
        k1=ranking.k1,
        b=ranking.b,
    )
    near = np.maximum(scores[before], scores[after])
    far = np.maximum(scores[beside(-2)], scores[beside(2)])
    sessions = {session: place for place, session in enumerate(dict.fromkeys(session for session, _ in rows))}
    session_of = [sessions[session] for session, _ in rows]
    sums = np.zeros((len(sessions), len(weights)))
    np.add.at(sums, session_of, counts[:-1])
    stored, ever = history.session_lengths(tx, list(sessions))
    relative = np.array([stored[session] for session in sessions]) / (corpus.sizes["part"][1] / ever)
    whole = bm25(sums, telling, relative, k1=ranking.k1, b=ranking.b)
    found = {"window": window, "neighbours": near + ranking.beyond * far, "session": whole[session_of]}
    # What stands around a match is worth no more than the match.
    best = scores.max()
    return {
        name: dict(zip(items, (values * (best / (values.max() or 1.0))).tolist(), strict=True))
        for name, values in found.items()
    }


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
