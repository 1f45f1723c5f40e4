"""Formulas of ranking: BM25, scaling, cosine, the walk over a graph."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_RESTART, _STEPS = 0.5, 8


def inverse_frequency(texts: int, frequency: int) -> float:
    """Return how telling a token is that `frequency` of `texts` hold; above 0 also when all hold it.

    ln(1 + (N - n + 0.5) / (n + 0.5)), the form of Lucene's BM25Similarity.

    >>> round(inverse_frequency(100, 1), 2), round(inverse_frequency(100, 100), 3)
    (4.21, 0.005)
    """
    return math.log1p((texts - frequency + 0.5) / (frequency + 0.5))


def bm25(
    counts: Sequence[Mapping[int, float]],
    weights: Sequence[float],
    relative_lengths: Sequence[float],
    *,
    k1: float,
    b: float,
) -> list[float]:
    """Return the BM25 score of each text from the counts of the terms in it, by their places in their weights.

    weights: inverse frequencies. relative_lengths: 1 for the average length. After Robertson and Zaragoza, "The
    Probabilistic Relevance Framework: BM25 and Beyond" (2009), 3.4; counts may be sums over weighted fields (3.6).
    A text holds few of the terms, so that loops over those take no longer than matrices, and load nothing.

    >>> bm25([{0: 1.0}, {}], [2.0, 3.0], [1.0, 0.5], k1=0.9, b=0.4)
    [2.0, 0.0]
    """
    scores: list[float] = []
    for held, length in zip(counts, relative_lengths, strict=True):
        damping, score = k1 * (1 - b + b * length), 0.0
        for term, count in held.items():
            score += weights[term] * (count * (k1 + 1) / (count + damping))
        scores.append(score)
    return scores


def scaled(values: Mapping[_Key, float]) -> dict[_Key, float]:
    """Return values as shares of the greatest one.

    >>> scaled({"a": 4.0, "b": 1.0})
    {'a': 1.0, 'b': 0.25}
    """
    greatest = max(values.values(), default=0.0)
    return {key: value / greatest for key, value in values.items()} if greatest > 0 else {}


def cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the cosine of two sparse vectors, 0 when one of them is empty.

    >>> cosine({"a": 1.0}, {"a": 2.0, "b": 0.0})
    1.0
    """
    product = sum(value * other[key] for key, value in one.items() if key in other)
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    return product / lengths if lengths else 0.0


def walk(seeds: Iterable[_Key], edges: Iterable[tuple[_Key, _Key, float]]) -> dict[_Key, float]:
    """Return how often a walker who starts at the seeds, and goes back to them now and then, is at each node.

    Personalised PageRank over undirected weighted edges by power iteration; eight steps leave less than 0.4 % of the
    mass where it does not belong at a restart of 0.5.

    >>> found = walk(["a"], [("a", "b", 1.0), ("b", "c", 1.0)])
    >>> found["a"] > found["b"] > found["c"]
    True
    """
    near: dict[_Key, list[tuple[_Key, float]]] = defaultdict(list)
    for one, other, weight in edges:
        near[one].append((other, weight))
        near[other].append((one, weight))
    start = dict.fromkeys(seeds, 1.0)
    start = {node: 1.0 / len(start) for node in start}
    mass = dict(start)
    for _ in range(_STEPS):
        moved = {node: _RESTART * share for node, share in start.items()}
        for node, share in mass.items():
            around = near.get(node, ())
            total = sum(weight for _, weight in around)
            for other, weight in around:
                moved[other] = moved.get(other, 0.0) + (1 - _RESTART) * share * weight / total
        mass = moved
    return mass
