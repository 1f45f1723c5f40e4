"""Precise recall: the notes that a query names, and none when it names none.

A note is named by its labels, its title and its slot, each as a whole. One rule a line, the same in every script:

- Words match whole, in order, however they are joined: `GitHub Actions`, `github-actions` and `githubActions` are one.
- Scripts without spaces match as a part of a run, from two characters on; a longer name swallows one that lies in it.
- A plural matches its singular. One edit in a word of five letters or more, whose first two agree, matches too,
  unless the word is spelt so in some other note. Digits are never a typo. Pasted text is matched as it is.
- Words of a title or slot may come in another order; function words may stand between them, but no other words.
- A name that is a function word or a single letter (`Go`, `R`) counts where it is written as a name: with a capital, or
  among characters of a script without spaces, or alone.
- Numbers match whole: `3号线` is not in `13号线`, nor `三班` in `十三班`; `3.1` is not `3.11`.
- A pinned note also comes up when its title holds a name that the query and another note's label share.
"""

import functools
import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import regex

from graphmem.core.keys import fold
from graphmem.core.spelling import SHORTEST_TYPO, one_edit
from graphmem.core.tokens import is_stop_word

WHOLE, REARRANGED, INFLECTED, ONE_EDIT, CARRIED = 1.0, 0.9, 0.9, 0.8, 0.7

_MIN_PLURAL = 3
_LONGEST_WORD = 64
_LONGEST_QUESTION = 256  # words, and characters of scripts without spaces
_LONGEST_NAME = 64  # what is longer is a text, and no name

# Katakana spells foreign words, which begin and end where the script does.
_KATAKANA = r"[\p{Katakana}ー]"
_UNSPACED = r"[[\p{Han}\p{Hiragana}\p{Hangul}\p{Bopomofo}\p{Yi}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]--[\p{M}ー]]"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}{_KATAKANA}]]"
_UNIT = regex.compile(
    rf"(?P<unspaced>{_UNSPACED}\p{{M}}*)|{_KATAKANA}+"
    # `3.11`, `don't`, `.net`, `c++` and `c#` are one word; other marks part words.
    rf"|(?:(?<!\S)\.(?=\p{{L}}))?{_LETTER}+(?:(?:(?<=\p{{N}})\.(?=\p{{N}})|'){_LETTER}+)*(?:\+\+|[+#](?!{_LETTER}))?"
    r"|[\p{S}--[\p{ASCII}\p{Sk}]]",
    regex.VERSION1,
)
_ACCENT = regex.compile(r"(?<=[\p{Latin}\p{Greek}]\p{M}*)\p{Mn}")
# `Mara's`, `James'`; and the s of `PRs`, which small letters would make a word of its own.
_ENDING = regex.compile(r"(?<=\w)['’]s?(?!\w)|(?<=\b\p{Lu}{2,})s(?!\w)")
# A full stop after a short word may be that of `Dr. Who`.
_CLAUSE_END = re.compile(r"[,;:!?。，、；：！？\n]|(?<=\w{4})\.(?=\s)")
_OPENING = re.compile(r"(?:^|[.!?:。！？：\n])[\s\"'(“‘]*$")
_CAPITALISED = regex.compile(r"\b(?!I(?:\s|['’]|$))\p{Lu}[\p{L}\p{M}]*")
_SPACE = re.compile(r"\s")
_LINKS = frozenset("a的之の")


@dataclass(frozen=True, slots=True)
class NoteText:
    """What precise recall reads of a note. key is the caller's; labels are its aliases."""

    key: str
    title: str
    slot: str = field(default="", kw_only=True)
    labels: tuple[str, ...] = field(default=(), kw_only=True)
    body: str = field(default="", kw_only=True)
    pinned: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Match:
    """A note that the query names: reason tells what matched how; strength is 1 for whole words, less for less."""

    item: NoteText
    reason: str
    strength: float


class _Unit(NamedTuple):
    """A word, or one character of a script without spaces; start and end are places in the plain text."""

    text: str
    start: int
    end: int
    spaced: bool


class _Name(NamedTuple):
    """One name of the note at a place in the list."""

    place: int
    kind: str
    text: str


class _Hit(NamedTuple):
    name: _Name
    strength: float
    start: int
    end: int
    how: str


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a list of notes, by what a query has to hold.

    whole, rearranged: by their words joined, in order and in any order. carried: titles of pinned notes, by each run of
    their words. beginnings: the first one and two characters of `whole`; pieces: the words of `rearranged`: where these
    fail a search ends. holders: the places of the notes that have a word in a name. plurals: words by their singular.
    alike: words by their first two letters, for typos.
    """

    whole: dict[str, list[_Name]] = field(default_factory=lambda: defaultdict(list))
    rearranged: dict[str, list[_Name]] = field(default_factory=lambda: defaultdict(list))
    carried: dict[str, list[_Name]] = field(default_factory=lambda: defaultdict(list))
    beginnings: set[str] = field(default_factory=set)
    pieces: set[str] = field(default_factory=set)
    holders: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    plurals: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    alike: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def precise_matches(query: str, items: Sequence[NoteText]) -> list[Match]:
    """Return the items that the query names: pinned ones first, then the strongest, then the longest name.

    A blank query and a query without words name nothing. Which items may be seen at all (scope, status) is for the
    caller to choose.

    >>> notes = [NoteText("1", "kubernetes", labels=("k8s",)), NoteText("2", "Release day", labels=("发布日",))]
    >>> [(match.item.key, match.reason) for match in precise_matches("Where do the kubernets run?", notes)]
    [('1', "title 'kubernetes' is one edit from 'kubernets'")]
    >>> [match.item.key for match in precise_matches("发布日是哪天", notes)]
    ['2']
    >>> precise_matches("k9s", notes)
    []
    """
    plain = _plain(query)
    units = _units(plain)
    notes = tuple(items)
    written = _written_as_names(query, units)
    hits = [h for h in _hits(units, notes) if _stands(h, units, plain) and not _is_vague(h, units, plain, written)]
    best: dict[int, _Hit] = {}
    for hit in sorted(_without_swallowed(hits, units), key=_rank):
        best.setdefault(hit.name.place, hit)
    ordered = sorted(best.values(), key=lambda hit: (not notes[hit.name.place].pinned, *_rank(hit)))
    return [Match(notes[h.name.place], f"{h.name.kind} {h.name.text!r} {h.how}", h.strength) for h in ordered]


def _rank(hit: _Hit) -> tuple[float, int, int, int]:
    return -hit.strength, -len(hit.name.text), hit.start, hit.name.place


# ---- words


def _plain(text: str) -> str:
    """Return the text folded, without possessives and without the accents of Latin and Greek."""
    folded = fold(_ENDING.sub("", text)).replace("’", "'")
    if folded.isascii():
        return folded
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", folded)))


def _units(plain: str) -> list[_Unit]:
    return [_Unit(m[0], m.start(), m.end(), m["unspaced"] is None) for m in _UNIT.finditer(plain)]


@functools.lru_cache(maxsize=1 << 16)
def _name_units(name: str) -> tuple[_Unit, ...]:
    return tuple(_units(_plain(name)))


def _is_function_word(word: str) -> bool:
    """Tell whether a word says nothing by itself: a stop word or a single letter."""
    return (len(word) == 1 and word.isalnum()) or is_stop_word(word)


def _joined(left: str, right: str) -> str:
    """Put two pieces together, but never two numbers."""
    return f"{left} {right}" if left[-1:].isdigit() and right[:1].isdigit() else left + right


def _key(units: Iterable[_Unit]) -> str:
    return functools.reduce(_joined, (unit.text for unit in units), "")


def _content(units: Iterable[_Unit]) -> list[_Unit]:
    return [unit for unit in units if not _only_links(unit)]


def _only_links(unit: _Unit) -> bool:
    """Tell whether a unit may be left out of a name; single letters and digits (`plan B`, `hall 7`) may not."""
    if not unit.spaced or len(unit.text) == 1:
        return unit.text in _LINKS
    return _is_function_word(unit.text)


def _rearranged_key(units: Sequence[_Unit]) -> str:
    """Return one key for all orders of words; characters without spaces between them keep theirs."""
    if all(unit.spaced for unit in units):
        return " ".join(sorted(unit.text for unit in units))
    return _key(units)


def _singulars(word: str) -> list[str]:
    """What an English plural may be the plural of; [] for a function word.

    >>> _singulars("boxes"), _singulars("entries")
    (['boxe', 'box'], ['entrie', 'entry'])
    """
    if not word.endswith("s") or word.endswith("ss") or not word.isalpha() or _is_function_word(word):
        return []
    found = [word[:-1]]
    if word.endswith("ies"):
        found.append(word[:-3] + "y")
    elif re.search("(?:s|x|z|ch|sh)es$", word):
        found.append(word[:-2])
    return [singular for singular in found if len(singular) >= _MIN_PLURAL]


# ---- names


@functools.lru_cache(maxsize=8)
def _names_of(notes: tuple[NoteText, ...]) -> _Names:
    names = _Names()
    for place, note in enumerate(notes):
        for kind, text in [*(("label", label) for label in note.labels), ("title", note.title), ("slot", note.slot)]:
            units = _name_units(text)
            if 0 < len(units) <= _LONGEST_NAME:
                _add(names, _Name(place, kind, text), units)
        if note.pinned:
            title = _name_units(note.title)[:_LONGEST_NAME]
            for start in range(len(title)):
                for end in range(start + 1, len(title) + 1):
                    names.carried[_key(title[start:end])].append(_Name(place, "title", note.title))
    for word in names.holders:
        for singular in _singulars(word):
            if len(singular) >= SHORTEST_TYPO:
                names.plurals[singular].add(word)
        if len(word) >= SHORTEST_TYPO and word.isalpha():
            names.alike[word[:2]].add(word)
    return names


def _add(names: _Names, name: _Name, units: Sequence[_Unit]) -> None:
    key = _key(units)
    names.whole[key].append(name)
    names.beginnings.update((key[:1], key[:2]))
    for unit in units:
        if unit.spaced:
            names.holders[unit.text].add(name.place)
    content = _content(units)
    if len(content) > 1 and (name.kind != "label" or not all(unit.spaced for unit in content)):
        names.rearranged[_rearranged_key(content)].append(name)
        names.pieces.update(unit.text for unit in content)


# ---- matching


def _hits(units: list[_Unit], notes: tuple[NoteText, ...]) -> Iterator[_Hit]:
    """Yield every name that the query holds, wherever it stands in it."""
    names = _names_of(notes)
    longest = max(map(len, names.whole), default=0)

    def find(strength: float, how: str, at: int | None = None, instead: str = "") -> Iterator[_Hit]:
        for start, end, key in _windows(units, names.beginnings, longest, at, instead):
            found = names.whole.get(key, ())
            yield from (_Hit(name, strength, start, end, how) for name in found)
            if any(name.kind == "label" for name in found):
                yield from (_Hit(n, CARRIED, start, end, f"holds {key!r}") for n in names.carried.get(key, ()))

    yield from find(WHOLE, "is there")
    # Pasted text is no question: it has words that are near to any name.
    for at, unit in enumerate(units if len(units) <= _LONGEST_QUESTION else ()):
        for word, strength, how in _variants(unit, names, notes):
            yield from find(strength, f"is {how} {unit.text!r}", at, word)
    yield from _rearranged(units, names)


def _windows(
    units: list[_Unit], beginnings: set[str], longest: int, at: int | None, instead: str
) -> Iterator[tuple[int, int, str]]:
    """Yield runs of units, joined, that may be names; with `at` those that hold this unit, `instead` in its place."""
    for start in range(len(units)) if at is None else range(max(0, at - longest), at + 1):
        key = ""
        for end in range(start, len(units)):
            key = _joined(key, instead if end == at else units[end].text)
            if len(key) > longest or key[:2] not in beginnings:
                break
            if at is None or end >= at:
                yield start, end + 1, key


def _variants(unit: _Unit, names: _Names, notes: tuple[NoteText, ...]) -> Iterator[tuple[str, float, str]]:
    """Yield words of names that this word of the query may stand for."""
    word = unit.text
    if word[0] == "." and len(word) > 1:
        yield word[1:], WHOLE, "there as"
    if not unit.spaced or not word.isalpha() or _is_function_word(word):
        return
    related = {s for s in _singulars(word) if s in names.holders} | names.plurals.get(word, set())
    yield from ((other, INFLECTED, "a form of") for other in sorted(related))
    if word in names.holders:
        return
    for other in sorted(names.alike.get(word[:2], set()) - related):
        if one_edit(word, other) and not _spelt_elsewhere(word, notes, names.holders[other]):
            yield other, ONE_EDIT, "one edit from"


def _spelt_elsewhere(word: str, notes: tuple[NoteText, ...], holders: set[int]) -> bool:
    """Tell whether a note that does not hold the name spells the word in its body: then it is a word, and no typo."""
    whole = re.compile(rf"\b{word}\b")
    bodies = (fold(note.body) for place, note in enumerate(notes) if place not in holders)
    return any(word in body and whole.search(body) for body in bodies)


def _rearranged(units: list[_Unit], names: _Names) -> Iterator[_Hit]:
    content = [(place, unit) for place, unit in enumerate(units) if not _only_links(unit)]
    for first, (start, _) in enumerate(content):
        window: list[_Unit] = []
        for end, unit in (content[place] for place in range(first, len(content))):
            if unit.text not in names.pieces:
                break
            window.append(unit)
            found = names.rearranged.get(_rearranged_key(window), ())
            yield from (_Hit(name, REARRANGED, start, end + 1, "has its words there") for name in found)


def _written_as_names(query: str, units: list[_Unit]) -> set[str]:
    """Return words as written where only names are: in capitals, with one inside a sentence, among unspaced ones.

    >>> text = "Go to Bob, or ask IT. Will you? I do"
    >>> sorted(_written_as_names(text, _units(_plain(text))))
    ['Bob', 'IT']
    """
    pairs = itertools.pairwise(units)
    found = {unit.text for pair in pairs if pair[0].spaced != pair[1].spaced for unit in pair}
    if query.isupper() and len(units) > 2:
        return found
    for match in _CAPITALISED.finditer(query):
        word = match[0]
        following = _units(_plain(query[match.end() :][:_LONGEST_WORD]))[:1]
        in_a_phrase = following and not _is_function_word(following[0].text)
        if in_a_phrase or (len(word) > 1 and word.isupper()) or not _OPENING.search(query[: match.start()]):
            found.add(word)
    return found


def _is_vague(hit: _Hit, units: list[_Unit], plain: str, written: set[str]) -> bool:
    """Tell whether a hit is made of function words that are not written as a name."""
    window = units[hit.start : hit.end]
    if len(window) == len(units) or not all(unit.spaced and _is_function_word(unit.text) for unit in window):
        return False
    # `r&d` and `to-do` are one word, `to do` is two.
    if len(window) > 1 and not _SPACE.search(plain, window[0].start, window[-1].end):
        return False
    # `It` at the beginning of a sentence is not `IT`.
    spellings = ({word, fold(word), word.upper(), word[:1].upper() + word[1:]} for word in hit.name.text.split())
    return any(written.isdisjoint(spelling) for spelling in spellings)


def _stands(hit: _Hit, units: list[_Unit], plain: str) -> bool:
    """Tell whether the place of a hit is its own: in one clause, not a part of a number, nor of a run if too short."""
    first, last = units[hit.start], units[hit.end - 1]
    if _CLAUSE_END.search(plain, first.start, last.end) and not _CLAUSE_END.search(_plain(hit.name.text)):
        return False
    lone = first is last and not first.spaced

    def cuts(before: _Unit, after: _Unit) -> bool:
        touch = before.end == after.start and not before.spaced and not after.spaced
        return touch and (lone or (before.text.isnumeric() and after.text.isnumeric()))

    begins_inside = hit.start > 0 and cuts(units[hit.start - 1], first)
    ends_inside = hit.end < len(units) and cuts(last, units[hit.end])
    return not (begins_inside or ends_inside)


def _without_swallowed(hits: list[_Hit], units: list[_Unit]) -> list[_Hit]:
    """Drop names in a script without spaces that lie inside a longer one: nothing shows that they are words."""
    spans = {(hit.start, hit.end) for hit in hits}

    def swallowed(hit: _Hit) -> bool:
        if any(unit.spaced for unit in units[hit.start : hit.end]):
            return False
        span = (hit.start, hit.end)
        return any(start <= span[0] and span[1] <= end and span != (start, end) for start, end in spans)

    return [hit for hit in hits if not swallowed(hit)]
