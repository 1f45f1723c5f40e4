"""Quotes of a user, as evidence that a note may bind. A piece that says something else than the whole is none."""

import re
from collections.abc import Iterable

from graphmem.core.keys import clean_text, entity_key
from graphmem.core.tokens import query_words
from graphmem.errors import InvalidInput

_LEAST = 4  # characters: of less the same is said by chance
_MOST_PLACES = 64  # where a quote is looked at in one text: a text of repeats takes no square of its length
_SENTENCE_END = re.compile(r"[。！？!?;；…]|\.(?=\s|$)")
_ENDS = "。！？!?;；…."
_QUESTION = ("?", "？")
_FEW = 2  # telling words: a single one stands in sentences of all kinds
_FAR = 500  # characters of a sentence to either side of a quote
# What around a quote turns what it says: negations, conditions, exceptions. Whoever drops them misquotes.
_TURNS = re.compile(
    r"\b(?:not|never|cannot|no longer|no need|without|nor|neither|unless|except|if|stop|instead of|rather than"
    r"|[a-z]{2,8}n['’]?t)\b|不|没|沒|别|別|勿|莫|未|无|無|非|禁|除|如果|假如|要是|停"
)

# Words that tell how something is wanted, and not what.
_HOW = (
    "always never must shall every whenever use using used want wants prefer like make sure keep remember please stop "
    "今后 以后 从今 总是 一直 永远 一律 必须 务必 记住 记得 使用 需要 希望 喜欢 不要 不用 禁止 应该"
)


def check_quote(quote: str) -> str:
    """Return what the user is said to have said; raise InvalidInput for what is too short to tell anything."""
    if not isinstance(quote, str):
        raise InvalidInput("quote", quote, "give the words of the user")
    if quote and len(entity_key(quote)) < _LEAST:
        raise InvalidInput("quote", quote, f"at least {_LEAST} characters; quote the sentence that says so")
    return clean_text(quote).strip()


def is_said(quote: str, said: Iterable[str]) -> bool:
    """Tell whether a text was said, whatever its spaces, width and letter case.

    It is a whole sentence, or whole words of one, two that tell something among them, that asks nothing and that has
    nothing around it that negates or limits what it says.

    >>> is_said("always use pnpm", ["Please ALWAYS use\\n pnpm."]), is_said("force push", ["Never force push."])
    (True, False)
    >>> is_said("tabs", ["I closed the tabs."]), is_said("Be brief", ["Thanks! Be brief."])
    (False, True)
    """
    key = entity_key(quote)
    whole = len(_telling(quote)) < _FEW
    return bool(key) and any(
        _is_in(key, entity_key(piece), whole) for text in said for piece in dict.fromkeys((*text.splitlines(), text))
    )


def is_about(quote: str, text: str) -> bool:
    """Tell whether a quote has a telling word of a text, where both have words in letters of one kind.

    Words that tell only how something is wanted are none. What is written in other letters cannot be compared.

    >>> is_about("always use pnpm", "Deploy by pnpm"), is_about("always use pnpm", "Always use force")
    (True, False)
    >>> is_about("以后都用中文回答", "Answer in Chinese")
    True
    """
    quoted, told = _telling(quote), _telling(text)
    comparable = {word.isascii() for word in quoted} & {word.isascii() for word in told}
    return not comparable or not (quoted & told).isdisjoint(quoted - _telling(_HOW))


def _telling(text: str) -> set[str]:
    """Return the words of a text that tell something, as search compares them; pairs of Chinese characters."""
    return {part for word in query_words(text) for part in word.parts}


def _is_in(key: str, text: str, whole: bool) -> bool:
    place = -1
    for _ in range(_MOST_PLACES):
        place = text.find(key, place + 1)
        if place < 0:
            return False
        if _stands(text, place, place + len(key), whole):
            return True
    return False


def _stands(text: str, begin: int, end: int, whole: bool) -> bool:
    """Tell whether a piece of a text says by itself what it says there. whole: whether it has to be a sentence."""
    if _cuts_a_word(text, begin) or _cuts_a_word(text, end):
        return False
    before = _SENTENCE_END.split(text[max(begin - _FAR, 0) : begin])[-1]
    if whole and before.strip():
        return False
    if text[end - 1] in _ENDS:
        return text[end - 1] not in _QUESTION and not _TURNS.search(before)
    ended = _SENTENCE_END.search(text, end, end + _FAR)
    after = text[end : ended.end() if ended else end + _FAR]
    if whole and after.strip(f" {_ENDS}"):
        return False
    return not (after.endswith(_QUESTION) or _TURNS.search(before) or _TURNS.search(after))


def _cuts_a_word(text: str, place: int) -> bool:
    """Tell whether a border lies within a word of a script that writes spaces.

    >>> _cuts_a_word("pnpm", 1), _cuts_a_word("用pnpm", 1)
    (True, False)
    """
    beside = text[max(place - 1, 0) : place + 1]
    return len(beside) == 2 and 0 < place < len(text) and beside.isascii() and beside.isalnum()
