"""What a text names exactly, which questions the memory has no record for, and which statement replaces an earlier one.

All of it is judged by the letters alone. Where that says nothing, nothing is held back: a doubtful question is answered
and a doubtful statement kept.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from graphmem.core.keys import fold
from graphmem.core.tokens import content_words

_LATIN = "a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_TOKEN = re.compile(f"[0-9{_LATIN}]+(?:\\.[0-9{_LATIN}]+)*")
_WORD = re.compile(f"[0-9{_LATIN}]*[{_LATIN}][0-9{_LATIN}]*")
# A number or a version, with a unit or without: 13010, v1.2.3, 8gb. 2nd and 9router are names.
_NUMBER = re.compile(r"v?(\d+(?:\.\d+)*)(?!st$|nd$|rd$|th$)[a-z]{0,3}")
_IN_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_CHINESE_NUMBER = re.compile("[零〇一二两三四五六七八九十百千万亿]+")
_CHINESE_DIGITS = {**{digit: value for value, digit in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}

# What was meant is elsewhere in the conversation, so the words of the question prove nothing.
_POINTING = re.compile(
    "[那这這](?:[个個些次条條件边邊里裡天位份种種张張段项項回])|之前|以前|先前|此前|上次|上回|上一|刚才|剛才|刚刚|剛剛|前面|上面"
    r"|\b(?:this|that|these|those|previous|previously|earlier|before|above|aforementioned|last time|the other day)\b"
)
# A number that is a bound need not be in any text.
_COMPARING = re.compile(
    "[高低大小多少早晚长長短快慢重轻輕远遠近][于於]|[以之][上下内內外间間]|超[过過]|不[到足]|[至最][多少]"
    r"|\b(?:than|over|under|above|below|between|at least|at most|up to|within|exceed\w*)\b"
)
_RETIRED = re.compile(
    "旧|舊|停用|作废|作廢|废弃|廢棄|弃用|棄用|不再"
    r"|\b(?:old|retired|deprecated|obsolete|formerly|former|no longer|out of use)\b"
)
_CHANGED = re.compile(
    "改|换|換|变更|變更|更新|升级|升級|迁|遷|替|取代|原|之前|以前|不用|不要"
    r"|\b(?:was|were|now|not|changed|replaced|replaces|instead|moved|switched|upgraded|previously|until)\b"
)
_ASSIGNS = re.compile(
    r"(?<!\d)[:=](?!//)|->|→|[改换換变變][成为為]|是|为|為|\b(?:changed to|moved to|is|are|was|were)\b"
)
_BEFORE = re.compile(r"从|從|\bfrom\b")  # ... 4379 改成 8328
_CLAUSE_END = re.compile(r",(?!\d)|[。;!?(]")
_AROUND = " \t\n,，、。.;；!！?？:：=()（）「」\"'"


def abstains(query: str, texts: Iterable[str]) -> bool:
    """Tell whether a question asks for what none of the texts names: then the memory has no record of it.

    A question with numbers or versions is about those; one without them and without Latin words, all Chinese, Japanese
    or Korean, is about its content words, and one pair of neighbouring characters of them is enough to be known.
    A question that points back ("那个", "the earlier one") or compares ("超过 175", "over 175") is never held back.

    >>> abstains("端口 13010 是谁的", ["网关端口是 4379"]), abstains("那个 13010 是谁的", ["网关端口是 4379"])
    (True, False)
    """
    folded = fold(query)
    if _POINTING.search(folded) or _COMPARING.search(folded):
        return False
    if asked := _numbers(folded):
        return not any(asked & _numbers(fold(text), single=True) for text in texts)
    if _latin_words(folded):
        return False
    terms = {word[place : place + 2] for word in content_words(query, len(query)) for place in range(len(word) - 1)}
    return bool(terms) and not any(term in text for text in map(fold, texts) for term in terms)


def _numbers(folded: str, *, single: bool = False) -> frozenset[str]:
    """Return the numbers and versions of a folded text; a single Chinese numeral, as in 一下, counts only on demand."""
    found = {match[1] for token in _TOKEN.findall(folded) if (match := _NUMBER.fullmatch(token))}
    found |= {match[0].replace(",", "") for match in _IN_THOUSANDS.finditer(folded)}
    found |= {number for run in _CHINESE_NUMBER.findall(folded) if (number := _chinese_number(run, single=single))}
    return frozenset(found)


def _chinese_number(run: str, *, single: bool) -> str:
    """Return the number that a run of Chinese numerals spells, '' where it is rather a word, such as 万一 or 千万."""
    units = [character for character in run if character in _CHINESE_UNITS]
    if len(run) == 1:
        spells = single and (run in _CHINESE_DIGITS or run == "十")
    else:
        spells = run[0] not in "百千万亿" if units else len(run) >= 3
    if not spells:
        return ""
    if not units:
        return "".join(str(_CHINESE_DIGITS[character]) for character in run)
    total = section = digit = 0
    for character in run:
        unit = _CHINESE_UNITS.get(character)
        if unit is None:
            digit = _CHINESE_DIGITS[character]
        elif unit < 10_000:
            section += (digit or 1) * unit
            digit = 0
        else:
            total = (total + section + digit) * unit
            section = digit = 0
    return str(total + section + digit)


def _latin_words(folded: str) -> frozenset[str]:
    tokens = [token for token in _TOKEN.findall(folded) if not _NUMBER.fullmatch(token)]
    pieces = [piece for token in tokens for piece in (token, *token.split("."))]
    return frozenset(piece for piece in pieces if len(piece) >= 3 and any(map(_WORD.fullmatch, piece.split("."))))


@dataclass(frozen=True, slots=True)
class Statement:
    """A text that may say what something is, to be weighed against others.

    at: when it was said, as sortable text, '' when unknown. sentence: what it was split from; statements of one
    sentence are siblings. subject, value: what it is about and what it says of that; read out of the text where ''.
    """

    id: str | int
    text: str
    at: str
    sentence: str = ""
    subject: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class _Reading:
    statement: Statement
    text: str
    subject: str
    value: str
    numbers: frozenset[str]
    retired: bool
    changed: bool


def superseded(statements: Iterable[Statement]) -> set[str | int]:
    """Return the ids of statements that a later one of the same subject replaces, since it names their value.

    Naming alone is not enough: the later one says another value, or that something changed. Siblings replace each other
    never, and one that only tells that something is out of use, beside a sibling, replaces nothing of other sentences:
    the sibling says what came after. A statement without time neither replaces nor is replaced.

    >>> old = Statement(1, "网关端口是 4379", "2026-01-01")
    >>> superseded([old, Statement(2, "网关端口从 4379 改成 8328", "2026-02-01")])
    {1}
    """
    readings = [_read(statement) for statement in statements if statement.at]
    sentences = [reading.statement.sentence for reading in readings]
    later = [
        reading
        for reading in readings
        if not (reading.retired and reading.statement.sentence and sentences.count(reading.statement.sentence) > 1)
    ]
    return {old.statement.id for old in readings if old.value and any(_replaces(new, old) for new in later)}


def _read(statement: Statement) -> _Reading:
    text = fold(statement.text)
    subject, value = fold(statement.subject), fold(statement.value)
    if not value:
        assigns = _ASSIGNS.search(text)
        number = next((match for match in _TOKEN.finditer(text) if _NUMBER.fullmatch(match[0])), None)
        if assigns and len(text[: assigns.start()].strip(_AROUND)) > 1:
            subject = subject or _BEFORE.split(text[: assigns.start()])[0]
            value = _CLAUSE_END.split(text[assigns.end() :])[0]
        elif number:
            subject, value = subject or text[: number.start()], number[0]
    subject, value = subject.strip(_AROUND), value.strip(_AROUND)
    if len(subject) < 2 and not statement.subject:
        value = ""  # about nothing that could be told
    return _Reading(
        statement,
        text,
        subject,
        value,
        _numbers(value),
        retired=bool(_RETIRED.search(text)),
        changed=bool(_CHANGED.search(text)),
    )


def _replaces(new: _Reading, old: _Reading) -> bool:
    ours, theirs = new.statement, old.statement
    if ours.at <= theirs.at or (ours.sentence and ours.sentence == theirs.sentence):
        return False
    named = new.subject == old.subject
    if not named and (ours.subject or old.subject not in new.text):
        return False
    if not (old.numbers <= _numbers(new.text, single=True) if old.numbers else _names(new.text, old.value)):
        return False
    return new.retired or new.changed or (named and bool(new.value) and not _same(new, old))


def _same(new: _Reading, old: _Reading) -> bool:
    return new.numbers == old.numbers if old.numbers else new.value == old.value


def _names(text: str, value: str) -> bool:
    """Tell whether a text holds a value, not merely as a part of longer Latin words."""
    return re.search(f"(?<![0-9{_LATIN}]){re.escape(value)}(?![0-9{_LATIN}])", text) is not None
