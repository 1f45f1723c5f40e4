"""What is shown of a long text that answers a query: the place where its words are."""

import re
from collections.abc import Sequence

from graphmem.core.tokens import query_words

REACH = 80  # characters on either side of the word
_BEGINNING = 160
_CUT = "..."
_MOST_PLACES = 2000


def snippet(text: str, query: str) -> str:
    """Return the place of a text with the most words of a query: one of them, and at most 80 characters either side.

    White space is one blank. A side that is cut ends in `...`. Without any of the words, the first 160 characters.

    >>> snippet("a " * 60 + "deploy with pnpm" + " b" * 60, "How to deploy?")[:8]
    '...a a a'
    >>> snippet("我们决定用 pnpm 部署前端", "怎么部署")
    '我们决定用 pnpm 部署前端'
    """
    line = " ".join(text.split())
    places = _places(line, query)
    if not places:
        return line if len(line) <= _BEGINNING else f"{line[:_BEGINNING]}{_CUT}"
    start, end = places[_best(places)][:2]
    first, last = max(0, start - REACH), min(len(line), end + REACH)
    return f"{_CUT if first else ''}{line[first:last]}{_CUT if last < len(line) else ''}"


def _places(line: str, query: str) -> list[tuple[int, int, int]]:
    """Return where words of a query stand: from, to, and which word."""
    found: list[tuple[int, int, int]] = []
    for number, word in enumerate(query_words(query)):
        for token in dict.fromkeys((word.text, *word.tokens)):
            beginning = r"(?<![^\W_])" if token.isascii() else ""
            for match in re.finditer(beginning + re.escape(token), line, re.IGNORECASE):
                found.append((*match.span(), number))
                if len(found) == _MOST_PLACES:
                    return sorted(found)
    return sorted(found)


def _best(places: Sequence[tuple[int, int, int]]) -> int:
    """Return which of some places, in order, has the most words around it; of equals the longest word, then the first.

    >>> _best([(0, 4, 0), (500, 504, 0), (510, 514, 1)])
    1
    """
    first = last = 0
    counts: dict[int, int] = {}
    scores: list[tuple[int, int]] = []
    for start, end, _ in places:
        while last < len(places) and places[last][0] < end + REACH:
            counts[places[last][2]] = counts.get(places[last][2], 0) + 1
            last += 1
        while places[first][0] < start - REACH:
            counts[places[first][2]] -= 1
            first += 1
        scores.append((sum(map(bool, counts.values())), end - start))
    return max(range(len(places)), key=lambda place: (*scores[place], -place))


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, with a mark where something is left out.

    >>> cut("memory", 4), cut("memory", 6)
    ('mem…', 'memory')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def above_floor(scores: Sequence[float], floor: float) -> int:
    """Return how many of some scores, the best first, are at least a share of the best; the first one always is.

    >>> above_floor([10, 2, 1], 0.15), above_floor([10, 2, 1], 0), above_floor([0.01], 0.5), above_floor([], 0.15)
    (2, 3, 1, 0)
    """
    return sum(score >= floor * scores[0] for score in scores)
