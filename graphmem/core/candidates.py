"""Candidates: what a model proposes to remember, read out of its reply, compared with what is known, and screened.

A model is not trusted: its reply may be anything, it may tell a secret, tell again what is known, or claim a rule that
nobody made. Nothing here writes; who writes is told of each candidate what became of it, and why.
"""

import functools
import itertools
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from graphmem.core.keys import clean_text, entity_key, fold, slug, visible
from graphmem.core.model.notes import LONGEST_TITLE, MOST_TRIGGERS
from graphmem.core.redaction import REDACTED, find_secrets
from graphmem.core.tokens import tokens_of, words_of

DUPLICATE = 0.9
MOST_CANDIDATES = 100
LONGEST_SUMMARY = 500

# The keys under which hosts give what a model said.
_REPLY_KEYS = ("text", "content", "output", "result")
_DEEPEST_REPLY = 6
_FENCED = re.compile(r"^[ \t]*+```[^\n]*\n(.*?)^[ \t]*+```", re.DOTALL | re.MULTILINE)
# Where an array may begin: bounded, so that a reply of brackets takes no square of its length.
_MOST_BEGINNINGS = 64
# A string as a whole, so that a comma in it stays; one without end reaches to the end.
_STRING_OR_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|,(?=\s*+[\]}])', re.DOTALL)

_DEFAULT_CATEGORY = "facts"
_RULE_CATEGORY = "rules"
# Only a person makes rules; the root's own file is where the folder would be, on systems that fold case.
_RESERVED_CATEGORIES = frozenset({_RULE_CATEGORY, "proposals", "root.md", "index.md"})
_KIND_OF_CATEGORY = {"preferences": "preference", "decisions": "decision", "pitfalls": "pitfall"}
_KINDS_OF_A_MODEL = frozenset({"fact", "lesson", "preference", "decision", "pitfall"})
_LONGEST = {"title": LONGEST_TITLE, "summary": LONGEST_SUMMARY, "highlight": 500, "load_when": 500, "body": 10_000}

# The most that two texts come to that say different things.
_MOST_APART = 0.89
# Words without which a sentence says the same.
_FILLERS = frozenset(
    """
    a an the this that these those is are am been being of to for in at and so then there please just also really very
    simply it its 的 了 吧 啊 呀 嘛 呢 请 請 就 是
    """.split()  # noqa: SIM905 (a list of quoted words would be five times as long)
)
# Words that change what all others say, however many those are: negations, bounds, order, place, who.
_TELLING = frozenset(
    """
    not no never none nor neither nothing nobody nowhere without except unless only until till since before after but
    or either from if when over under above below between by with via per into within during because more less fewer
    most least all any some each every both always often sometimes rarely seldom must should shall may might can could
    would will ought need optional required first last next previous former formerly old new up down on off out inside
    outside against instead than was were he she him her his hers they them their theirs i me my mine you your yours
    we us our ours half double once twice today tomorrow yesterday now later soon
    不 没 沒 勿 别 別 禁 止 无 無 非 莫 未 免 否 除 只 仅 僅 必 须 須 应 應 该 該 可 能 要 会 會 先 后 後
    前 旧 舊 新 老 上 下 左 右 内 內 外 高 低 大 小 多 少 全 每 都 各 常 永 从 從 向 或 若 如 最 更 再 又
    半 我 你 您 他 她 它
    nicht kein keine nie ohne ne pas jamais sans nunca sin não nem не нет ни без 안 못
    """.split()  # noqa: SIM905 (likewise)
)
_NOT = re.compile(r"\b(?:cannot|[a-z]++(?<=n)['’]t)\b", re.IGNORECASE)
_NOT_SPELLINGS = {"cannot": "can not", "can't": "can not", "won't": "will not", "shan't": "shall not"}
# Comparisons, units, signs, ranges of versions. Tokens leave out what ASCII has of them.
_OPERATOR = re.compile(r"[<>]=?|[!=]=|[$%]|[~^](?=\d)|(?<!\S)[-!](?=\w)")
_CLITIC = re.compile(r"(?<=[a-z])['’](?:s|re|m)\b", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[a-z]+")


class StoredNote(Protocol):
    """What is read of a note that is stored already; `Note` is one."""

    @property
    def id(self) -> int: ...  # noqa: D102 (the names say it)
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def body(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Candidate:
    """A note that a model proposes. load_when: words that call it to mind."""

    category: str
    title: str
    body: str
    summary: str
    highlight: str
    load_when: tuple[str, ...]
    kind: str

    @property
    def status(self) -> Literal["live", "proposed"]:
        """The status with which it may be stored: a rule is only proposed."""
        return "proposed" if self.kind == "rule" else "live"


@dataclass(frozen=True, slots=True)
class Screened:
    """What became of a candidate. reason: why it was not accepted, '' when it was.

    Neither the reason nor the candidate shows anything of a secret: fields that hold one are redacted. score: how like
    it the nearest known text is, 0 to 1. same_id: the stored note that it repeats, or same_place: the place of the
    candidate in this reply that it repeats.
    """

    candidate: Candidate
    outcome: Literal["accepted", "duplicate", "refused"]
    reason: str = ""
    score: float = 0.0
    same_id: int | None = None
    same_place: int | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """A text, ready to be compared.

    words: stems, without fillers. shingles: these and their pairs. spelled: all words. telling: those that never differ
    between texts that say the same.
    """

    key: str
    words: tuple[str, ...]
    shingles: Counter[str | tuple[str, str]]
    spelled: Counter[str]
    telling: Counter[str]


# ---- the reply


def parse_candidates(reply: object) -> tuple[Candidate, ...]:
    """Return what a model's reply proposes, in its order; nothing for a reply that holds no array of entries.

    reply: a text, or what a host makes of it: an object with it under text, content, output or result, as a text, as
    pieces, or parsed already. In a text the first fenced block that holds an array counts, else the whole; brackets in
    the prose around and commas too many do no harm. An entry without a title or a body is dropped.

    >>> [found.title for found in parse_candidates('Sure! [{"title": "Use pnpm", "body": "npm breaks it"}]')]
    ['Use pnpm']
    >>> parse_candidates("nothing to keep")
    ()
    """
    entries = _entries(reply, _DEEPEST_REPLY)
    found = (candidate_of(entry) for entry in entries if isinstance(entry, Mapping))
    return tuple(candidate for candidate in found if candidate)


def entries_of(text: str) -> tuple[Mapping[str, object], ...] | None:
    """Return the entries of the array that a text holds, None where it holds none.

    >>> entries_of('```json\\n[{"title": "Use pnpm", "supersedes": [3],}]\\n```')
    ({'title': 'Use pnpm', 'supersedes': [3]},)
    >>> entries_of("[]"), entries_of("nothing to keep")
    ((), None)
    """
    found = _entries_of_text(text)
    return None if found is None else tuple(entry for entry in found if isinstance(entry, Mapping))


def _entries(reply: object, depth: int) -> Sequence[object]:
    if isinstance(reply, str):
        return _entries_of_text(reply) or ()
    if depth and isinstance(reply, Mapping):
        return next(filter(None, (_entries(reply.get(key), depth - 1) for key in _REPLY_KEYS)), ())
    if depth and isinstance(reply, list | tuple):
        if _holds_entries(reply):
            return reply
        return _entries_of_text("".join(_text(piece, depth - 1) for piece in reply)) or ()
    return ()


def _holds_entries(array: Sequence[object]) -> bool:
    return any(isinstance(entry, Mapping) and "title" in entry for entry in array)


def _text(piece: object, depth: int) -> str:
    """Return the text of a piece of a reply, '' where it has none."""
    if isinstance(piece, str):
        return piece
    if depth and isinstance(piece, Mapping):
        return next(filter(None, (_text(piece.get(key), depth - 1) for key in _REPLY_KEYS)), "")
    if depth and isinstance(piece, list | tuple):
        return "".join(_text(inner, depth - 1) for inner in piece)
    return ""


def _entries_of_text(text: str) -> Sequence[object] | None:
    for block in (*_FENCED.findall(text), text):
        found = _first_array(block)
        if found is None:
            found = _first_array(_STRING_OR_TRAILING_COMMA.sub(r"\1", block[max(0, block.find("[")) :]))
        if found is not None:
            return found
    return None


def _first_array(text: str) -> list[object] | None:
    """Return the first array of a text that holds an entry, else an empty one, else None."""
    empty: list[object] | None = None
    for array in _arrays(text):
        if _holds_entries(array):
            return array
        if not array:
            empty = array
    return empty


def _arrays(text: str) -> Iterator[list[object]]:
    decoder, place = json.JSONDecoder(), 0
    for _ in range(_MOST_BEGINNINGS):
        place = text.find("[", place)
        if place < 0:
            return
        try:
            array, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or thousands of brackets
            place += 1
        else:
            yield array


def candidate_of(entry: Mapping[str, object]) -> Candidate | None:
    """Return what an entry of a reply proposes; None for one without a title or a body that can be seen."""
    title, body = _field(entry, "title"), _field(entry, "body")
    # Like the title of a note: something has to be left of it that can be seen.
    if not entity_key(title) or not entity_key(body):
        return None
    is_rule = entry.get("proposeRule") is True
    category = _RULE_CATEGORY if is_rule else _category(entry.get("category"))
    kind = _KIND_OF_CATEGORY.get(category, "fact")
    if (given := fold(_field(entry, "kind"))) in _KINDS_OF_A_MODEL:
        kind = given
    return Candidate(
        category=category,
        title=title,
        body=body,
        summary=_field(entry, "summary") or title,
        highlight=_field(entry, "highlight"),
        load_when=_triggers(entry.get("loadWhen")),
        kind="rule" if is_rule else kind,
    )


def _field(entry: Mapping[str, object], name: str) -> str:
    value = entry.get(name)
    return clean_text(value).strip() if isinstance(value, str) else ""


def _category(given: object) -> str:
    r"""Return a category that is a safe name of a folder; the default one for a path and for what is reserved.

    >>> _category("Preferences"), _category("..\\x"), _category("rules"), _category("con")
    ('preferences', 'facts', 'facts', 'facts')
    """
    folded = fold(given) if isinstance(given, str) else ""
    name = "" if set("/\\:") & set(folded) else re.sub(r"[^a-z0-9._-]", "", folded)
    return name if name and slug(name) == name and name not in _RESERVED_CATEGORIES else _DEFAULT_CATEGORY


def _triggers(given: object) -> tuple[str, ...]:
    values = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    found: dict[str, str] = {}
    for value in values:
        if isinstance(value, str) and entity_key(value):
            found.setdefault(entity_key(value), clean_text(value).strip())
    return tuple(found.values())[:MOST_TRIGGERS]


# ---- likeness


def note_text(title: str, body: str) -> str:
    """Return the text of a note by which it is compared: title and body, a title that the body begins with once.

    >>> note_text("Use pnpm", "use pnpm, since npm breaks it")
    'use pnpm, since npm breaks it'
    """
    begun = words_of(fold(title))
    repeats = begun and words_of(fold(body))[: len(begun)] == begun
    return body if repeats else f"{title}\n{body}"


def likeness(a: str, b: str) -> float:
    """Return how alike two texts are, 0 to 1; from 0.9 on they say the same.

    It is the resemblance of their words and pairs of neighbouring words, what both have of what either has (Broder: On
    the resemblance and containment of documents, 1997); words are stems, without articles and other fillers; an
    ideograph is a word. However long the texts are, it stays below 0.9 unless the words of one are those of the other
    in the same order, with single ones put in that are no number, name, negation, bound, place nor operator.
    So a repeat told in other words counts as new: that costs a line, while a new fact taken for a repeat is lost.

    >>> likeness("Redis listens on 6380", "redis  listens on 6380.")
    1.0
    >>> likeness("use pnpm, not npm", "use npm, not pnpm") < 0.9
    True
    """
    return _likeness(_said(a), _said(b))


def repeats(texts: Sequence[tuple[str, str]]) -> tuple[tuple[int, int, float], ...]:
    """Return which of some notes, each a title and a body, say the same: pairs of places, and how alike they are.

    Of two texts that say the same, one has all words of the other. So each is compared only with those that have its
    rarest word, and not with all.

    >>> repeats([("Cache", "Redis listens on 6380"), ("Tools", "Use pnpm"), ("cache", "redis listens on 6380.")])
    ((0, 2, 1.0),)
    """
    said = [_said_of(title, body) for title, body in texts]
    having: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(said):
        for word in set(one.words or (one.key,)):
            having[word].append(place)
    found: dict[tuple[int, int], float] = {}
    for place, one in enumerate(said):
        rarest = min(one.words or (one.key,), key=lambda word: (len(having[word]), word))
        for other in having[rarest]:
            pair = (min(place, other), max(place, other))
            if place != other and pair not in found and (alike := _likeness(one, said[other])) >= DUPLICATE:
                found[pair] = alike
    return tuple((*pair, found[pair]) for pair in sorted(found))


def _likeness(a: _Said, b: _Said) -> float:
    if a.key == b.key:
        return 1.0
    shared = (a.shingles & b.shingles).total()
    either = a.shingles.total() + b.shingles.total() - shared
    score = shared / either if either else 0.0
    if score < DUPLICATE or (
        a.telling <= b.spelled and b.telling <= a.spelled and _adds_single_words(a.words, b.words)
    ):
        return score
    return _MOST_APART


def _adds_single_words(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether one text is the other with single words put in: two in a row are a phrase, and say something new.

    >>> _adds_single_words(["keep", "the", "log"], ["keep", "the", "whole", "log"])
    True
    >>> _adds_single_words(["keep", "it"], ["keep", "it", "for", "ever"]), _adds_single_words(["a", "b"], ["b", "a"])
    (False, False)
    """
    shorter, longer = sorted((a, b), key=len)
    place = 0
    for word in shorter:
        if word not in longer[place : place + 2]:
            return False
        place += 1 if longer[place] == word else 2
    return len(longer) - place <= 1


def _said_of(title: str, body: str) -> _Said:
    return _said(note_text(title, body))


def _said(text: str) -> _Said:
    plain = _CLITIC.sub("", unicodedata.normalize("NFKC", visible(text)))
    plain = _NOT.sub(lambda match: _spelled_out(match[0].lower().replace("’", "'")), plain)
    plain = _OPERATOR.sub(lambda match: f" op{match[0].encode().hex()} ", plain)
    written = words_of(plain)
    spelled = [word.casefold() for word in written]
    # A Latin word in a text of a script without spaces is a name or a term.
    mixed = any(not word.isascii() and len(word) == 1 for word in written)
    telling = Counter(
        word
        for word, as_written in zip(spelled, written, strict=True)
        if word not in _FILLERS and (word in _TELLING or _is_name(as_written, mixed=mixed))
    )
    words = tuple(_stem(word) for word in spelled if word not in _FILLERS)
    shingles = Counter[str | tuple[str, str]](itertools.chain(words, itertools.pairwise(words)))
    return _Said(entity_key(text), words, shingles, Counter(spelled), telling)


def _spelled_out(negation: str) -> str:
    """Return a negation as two words.

    >>> _spelled_out("doesn't"), _spelled_out("won't")
    ('does not', 'will not')
    """
    return _NOT_SPELLINGS.get(negation) or f"{negation[:-3]} not"


def _is_name(word: str, *, mixed: bool) -> bool:
    """Tell whether a word as written names or counts something: capitals, numerals, signs inside."""
    if any(map(str.isnumeric, word)) or word != word.lower() or not word.isalpha():
        return True
    return mixed and word.isascii()


def _stem(word: str) -> str:
    return tokens_of(word)[0] if _PLAIN_WORD.fullmatch(word) else word


# ---- screening


def screen(
    candidates: Iterable[Candidate], stored: Callable[[Candidate], Iterable[StoredNote]]
) -> tuple[Screened, ...]:
    """Return of each candidate what becomes of it, in order.

    stored: gives the stored notes that may be like a candidate; it is asked once for each that holds no secret.
    What holds a secret in any field is refused, then what is too long, then what repeats a stored note or a candidate
    accepted before; what a person put away does not come back, but what was superseded may. A reply of more than 100
    candidates is refused from there on.
    """
    # One stored note is like many candidates of a reply; no longer than this call is it kept.
    said_of = functools.cache(_said_of)
    found: list[Screened] = []
    accepted: dict[int, _Said] = {}
    for place, candidate in enumerate(candidates):
        screened = _refusal(candidate, place)
        if screened is None:
            said = said_of(candidate.title, candidate.body)
            screened = _compared(candidate, said, stored(candidate), accepted, said_of)
            if screened.outcome == "accepted":
                accepted[place] = said
        found.append(screened)
    return tuple(found)


def _refusal(candidate: Candidate, place: int) -> Screened | None:
    fields = {
        name: list(value) if isinstance(value := getattr(candidate, name), tuple) else [value]
        for name in ("title", "body", "summary", "highlight", "load_when", "category", "kind")
    }
    secret = [name for name, texts in fields.items() if any(_holds_secret(text) for text in texts)]
    long = [name for name, most in _LONGEST.items() if any(len(text) > most for text in fields[name])]
    if secret:
        blank = {name: (REDACTED,) if name == "load_when" else REDACTED for name in secret}
        candidate = replace(candidate, **blank)  # type: ignore[arg-type]  # names and types of the fields above
        return Screened(candidate, "refused", f"a secret in {', '.join(secret)}")
    if long:
        reason = ", ".join(f"{name} has more than {_LONGEST[name]} characters" for name in long)
        return Screened(candidate, "refused", reason)
    if place >= MOST_CANDIDATES:
        return Screened(candidate, "refused", f"more than {MOST_CANDIDATES} in one reply")
    return None


def _holds_secret(text: str) -> bool:
    """Tell whether a text holds a secret, as written or as a slug and a search would show it."""
    plain = unicodedata.normalize("NFKC", visible(text))
    return bool(find_secrets(text)) or (plain != text and bool(find_secrets(plain)))


def _compared(
    candidate: Candidate,
    said: _Said,
    stored: Iterable[StoredNote],
    accepted: Mapping[int, _Said],
    said_of: Callable[[str, str], _Said],
) -> Screened:
    score, note = 0.0, None
    for known in stored:
        # What was replaced may hold again.
        if known.status != "superseded":
            alike = _likeness(said, said_of(known.title, known.body))
            if alike > score:
                score, note = alike, known
    if note is not None and score >= DUPLICATE:
        reason = f"like note {note.id} ({note.status}), score {score:.2f}"
        return Screened(candidate, "duplicate", reason, score, same_id=note.id)
    for place, other in accepted.items():
        alike = _likeness(said, other)
        if alike >= DUPLICATE:
            reason = f"like candidate {place} of the same reply, score {alike:.2f}"
            return Screened(candidate, "duplicate", reason, alike, same_place=place)
        score = max(score, alike)
    return Screened(candidate, "accepted", score=score)
