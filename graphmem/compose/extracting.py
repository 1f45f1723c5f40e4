"""The writer that needs no model: what a session came to, in its own sentences, and what its users hold to.

Sentences are chosen by what they cover: a greedy choice of those that say most of what is not said yet for each byte
they take. A word weighs the cube root of its PageRank in the graph of the words that stand in one sentence (Mihalcea
and Tarau, "TextRank: Bringing Order into Texts", 2004), twice that where it belongs to a name or an exact value. The
gain of a choice only falls as others are made, so greed comes near to the best (Lin and Bilmes, "A Class of Submodular
Functions for Document Summarization", 2011). What was tried besides is in `scripts/benchmarks/digesting.py`.
"""

import functools
import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from graphmem.core.checkpoints import SECTION_BYTES
from graphmem.core.gist import (
    MOST_COLUMNS,
    Sentence,
    columns,
    files_of,
    is_absolute,
    is_binding,
    is_form,
    is_settled,
    is_standing,
    names_in,
    sentences_of,
    shortened,
)
from graphmem.core.keys import entity_key
from graphmem.core.model import StoredPart
from graphmem.core.telling import telling_lines
from graphmem.core.tokens import tokens_of
from graphmem.late import late

if TYPE_CHECKING:
    from graphmem.graph import view
else:
    view = late("graphmem.graph.view")

SUMMARY, DECISIONS, FACTS, OPEN, FILES, NOTES = SECTION_BYTES
_USUAL_LIMIT = 10_240  # of a checkpoint of that size; one that may be longer has longer sections
_MOST_IN_SUMMARY, _LEAST_IN_SUMMARY = 5, 2
_SHARE_OF_SUMMARY, _SHARE_OF_FILES = 0.15, 0.15
_MOST_FAILURES = 5
_MOST_NODES = 512  # of the graph: the words that stand in most sentences
_MOST_WORDS = 32  # of a sentence that are linked with each other
_SECTION_OF_KIND = MappingProxyType({"decision": DECISIONS, "open": OPEN, "exact": FACTS, "filler": ""})
# How much more is said by a sentence of this kind than by its words alone.
_WORTH = MappingProxyType({"decision": 1.5, "open": 1.5, "exact": 1.0, "plain": 1.0, "question": 0.5, "filler": 1.5})
# Where it matters who said it, also of an agent; and what was said in part already still counts a little.
_WHOSE = frozenset({DECISIONS, OPEN})
_REPEATED = 0.25
_LABEL_COLUMNS = 40
_GAP = " … "
_WIDE_ENDS = ("。", "！", "？", "；")

_TITLE_COLUMNS = 80
_MOST_CANDIDATES = 24
_MOST_TRIGGERS = 4


@dataclass(frozen=True)
class _Said:
    """A sentence of a part. place: of the part; author: who said it, '' where that goes without saying."""

    place: int
    author: str
    sentence: Sentence
    section: str

    @property
    def line(self) -> str:
        told = self.sentence.text
        return shortened(f"{self.author}: {told}" if self.author else told, MOST_COLUMNS)

    @functools.cached_property
    def size(self) -> int:
        """Bytes of it as a line of its own, a point in front of it."""
        return _size([self.line])


# ---- the sections


def extract(parts: Sequence[StoredPart], *, limit: int) -> Mapping[str, tuple[str, ...]]:
    """Return the lines of each section of a digest, in the order of a checkpoint, at most `limit` bytes as points.

    Each line is what one part said, in sentences as they were said, with its author where that is a user; an ellipsis
    stands for what is left out between them. Of tools only the files they name and how they failed are told. The same
    parts give the same lines. Takes time linear in the text, besides the graph of at most 512 words.
    """
    spoken = _spoken(parts)
    weights = _weights([said.sentence for said in spoken])
    lines = _Lines(limit, weights, covered=frozenset(token for part in parts for token in tokens_of(part.author)))
    for kind in ("plain", "exact"):
        lines.summarise([said for said in spoken if said.sentence.kind == kind and said.section in (FACTS, NOTES)])
    lines.put(FILES, _files(parts), share=_SHARE_OF_FILES)
    lines.put(NOTES, _failures(parts), share=_SHARE_OF_FILES)
    lines.take(spoken)
    return lines.sections()


def _spoken(parts: Sequence[StoredPart]) -> list[_Said]:
    """Return what persons and agents said, each sentence once, without filler."""
    found: dict[str, _Said] = {}
    unanswered = _unanswered(parts)
    for place, part in enumerate(parts):
        if part.role in ("tool", "system"):
            continue
        for sentence in sentences_of(part.text):
            section = _section(part, sentence, unanswered=place >= unanswered)
            if not section:
                continue
            author = "" if part.role == "assistant" and section not in _WHOSE else _label(part)
            found.setdefault(entity_key(sentence.text), _Said(place, author, sentence, section))
    return list(found.values())


def _label(part: StoredPart) -> str:
    """Return who said a part, in one short line; the role where the name is none or would be read as form."""
    author = shortened(" ".join(part.author.split()), _LABEL_COLUMNS)
    return author if author and not is_form(author) else part.role


def _section(part: StoredPart, sentence: Sentence, *, unanswered: bool) -> str:
    """Return where a sentence belongs, '' where it says nothing worth keeping."""
    if part.role == "user" and is_binding(sentence.text):
        return DECISIONS
    if sentence.kind in _SECTION_OF_KIND:
        return _SECTION_OF_KIND[sentence.kind]
    if sentence.kind == "question":
        # What an agent asked, and was answered, is in the answer.
        return OPEN if unanswered else "" if part.role == "assistant" else NOTES
    # A user states facts; an agent remarks, unless it names something.
    stated = part.role != "assistant" and not sentence.text.endswith(("!", "！"))
    return FACTS if stated or sentence.telling else NOTES


def _unanswered(parts: Sequence[StoredPart]) -> int:
    """Return the place behind which nobody but the last who spoke said anything."""
    last, place = None, len(parts)
    for number in range(len(parts) - 1, -1, -1):
        part = parts[number]
        if part.role in ("tool", "system"):
            continue
        if last not in (None, (part.role, part.author)):
            break
        last, place = (part.role, part.author), number
    return place


def _weights(sentences: Sequence[Sentence]) -> dict[str, float]:
    """Return how much each word says; one that stands in a single sentence as little as the least of the graph."""
    counts = Counter(word for sentence in sentences for word in sentence.words)
    repeated = sorted((-count, word) for word, count in counts.items() if count > 1)
    nodes = {word for _, word in repeated[:_MOST_NODES]}
    edges: Counter[tuple[str, str]] = Counter()
    for sentence in sentences:
        edges.update(itertools.combinations(sorted(nodes & sentence.words)[:_MOST_WORDS], 2))
    ranks = view.page_rank(edges)
    least = min(ranks.values(), default=1.0)
    telling = {word for sentence in sentences for word in sentence.telling}
    return {word: math.cbrt(ranks.get(word, least)) * (2 if word in telling else 1) for word in counts}


def _files(parts: Sequence[StoredPart]) -> list[str]:
    """Return the files that are spoken of, then those that only tools name: a listing names thousands."""
    spoken = files_of(part.text for part in parts if part.role != "tool")
    return list(dict.fromkeys([*spoken, *files_of(part.text for part in parts if part.role == "tool")]))


def _failures(parts: Sequence[StoredPart]) -> list[str]:
    """Return what tells of the last calls that failed, each once."""
    found: dict[str, None] = {}
    for part in parts:
        if part.outcome == "failed":
            told = "".join(telling_lines(part.text)[0][:1])
            line = shortened(" ".join(f"{part.tool or 'tool'} failed: {told}".split()), MOST_COLUMNS)
            found.pop(line, None)
            found[line] = None
    return list(found)[-_MOST_FAILURES:]


class _Lines:
    """The lines of a digest as they are chosen: those of one part and one section stand together."""

    def __init__(self, limit: int, weights: Mapping[str, float], covered: frozenset[str]) -> None:
        self._left = limit
        longer = max(1.0, limit / _USUAL_LIMIT)
        self._room = {section: min(limit, int(most * longer)) for section, most in SECTION_BYTES.items()}
        # What is kept from the summary once it has its least: the share of the other sections.
        self._room_beside_summary = self._room[SUMMARY] - min(self._room[SUMMARY], int(limit * _SHARE_OF_SUMMARY))
        self._limit = limit
        self._weights = weights
        self._covered = set(covered)
        self._put: dict[str, list[str]] = defaultdict(list)
        self._taken: dict[tuple[str, int], list[_Said]] = defaultdict(list)
        self._used: set[_Said] = set()

    def put(self, section: str, lines: Sequence[str], *, share: float) -> None:
        """Put lines into a section, the first ones that have room in this share of the whole."""
        room = int(self._limit * share)
        for line in lines:
            size = _size([line])
            if size <= min(room, self._left, self._room[section]) and not is_form(line):
                room -= size
                self._spend(section, size)
                self._put[section].append(line)

    def summarise(self, spoken: Sequence[_Said]) -> None:
        """Take up to five sentences into the summary, until it has its share; no more when it has two already."""
        if self._count(SUMMARY) < _LEAST_IN_SUMMARY:
            self.take(spoken, SUMMARY)

    def take(self, spoken: Iterable[_Said], section: str = "") -> None:
        """Take the sentences that say most of what is not said yet, into a section or each into its own."""
        left = [said for said in spoken if said not in self._used]
        queue = [(-self._value(said, section), number) for number, said in enumerate(left)]
        heapq.heapify(queue)
        while queue and not (section == SUMMARY and self._count(SUMMARY) == _MOST_IN_SUMMARY):
            before, number = heapq.heappop(queue)
            said, place = left[number], section or left[number].section
            value = self._value(said, section)
            if -value > before:  # others said a part of it since
                heapq.heappush(queue, (-value, number))
            elif value > 0 and self._has_room(place, size := self._size(said, place)):
                self._spend(place, size)
                self._taken[place, said.place].append(said)
                self._used.add(said)
                self._covered |= said.sentence.words

    def _count(self, section: str) -> int:
        return sum(len(taken) for (place, _), taken in self._taken.items() if place == section)

    def _has_room(self, section: str, size: int) -> bool:
        room = self._room[section]
        if section == SUMMARY and self._count(SUMMARY) >= _LEAST_IN_SUMMARY:
            room -= self._room_beside_summary
        return size <= min(self._left, room)

    def _spend(self, section: str, size: int) -> None:
        self._left -= size
        self._room[section] -= size

    def _value(self, said: _Said, section: str) -> float:
        """Return what a sentence would add for each byte."""
        place, words = section or said.section, said.sentence.words
        gain = sum(self._weights[word] for word in sorted(words - self._covered))
        if place in _WHOSE:
            gain += _REPEATED * sum(self._weights[word] for word in sorted(words & self._covered))
        size = self._size(said, place)
        # A summary is for who reads nothing else: a full sentence tells more of the whole than two short ones.
        return gain * _WORTH[said.sentence.kind] / (math.sqrt(size) if section == SUMMARY else size)

    def _size(self, said: _Said, section: str) -> int:
        beside = self._taken.get((section, said.place), [])
        return max(1, _size(_told([*beside, said])) - _size(_told(beside))) if beside else said.size

    def sections(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = dict.fromkeys(SECTION_BYTES, ())
        for section, place in sorted(self._taken):
            found[section] = (*found[section], *_told(self._taken[section, place]))
        return {section: (*found[section], *self._put[section]) for section in SECTION_BYTES}


def _size(lines: Sequence[str]) -> int:
    """Return the bytes of lines with their ends, and with the point and the blank in front that a checkpoint gives."""
    return sum(len(line.encode()) + 3 for line in lines)


def _told(spoken: Sequence[_Said]) -> list[str]:
    """Return sentences of one part as lines, as many in each as have room."""
    lines: list[str] = []
    before: _Said | None = None
    for said in sorted(spoken, key=lambda one: one.sentence.place):
        text = said.sentence.text
        if before is not None:
            beside = "" if lines[-1].endswith(_WIDE_ENDS) else " "
            gap = beside if said.sentence.place == before.sentence.place + 1 else _GAP
            if columns(lines[-1] + gap + text) <= MOST_COLUMNS:
                lines[-1] += gap + text
                before = said
                continue
        lines.append(said.line)
        before = said
    return lines


# ---- candidates


def extract_candidates(parts: Sequence[StoredPart]) -> tuple[dict[str, object], ...]:
    """Return what users hold to, as entries that `core.candidates` reads: the newest 24, in the order of the parts.

    Only a standing setting or a decision of a user, told in a sentence of its own, makes an entry; in doubt there is
    none. What holds without exception is proposed as a rule.
    """
    found: dict[str, dict[str, object]] = {}
    for part in parts:
        if part.role != "user":
            continue
        for sentence in sentences_of(part.text):
            entry = _entry(sentence)
            if entry is not None:
                found.pop(entity_key(sentence.text), None)
                found[entity_key(sentence.text)] = entry
    return tuple(found.values())[-_MOST_CANDIDATES:]


def _entry(sentence: Sentence) -> dict[str, object] | None:
    said = sentence.text
    if sentence.kind in ("question", "open") or said.endswith("…"):
        return None
    settled, standing = is_settled(said), is_standing(said)
    if not settled and not standing:
        return None
    return {
        "title": shortened(said, _TITLE_COLUMNS).rstrip(".。!！"),
        "body": said,
        "category": "decisions" if settled else "preferences",
        "loadWhen": list(names_in(said)[:_MOST_TRIGGERS]),
        "proposeRule": standing and is_absolute(said),
    }
