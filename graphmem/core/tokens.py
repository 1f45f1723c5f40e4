"""Words of a text: which of them carry content."""

import functools
import importlib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from graphmem.core.keys import fold

# Ideographs with their extensions A to H and the compatibility forms; kana and hangul.
_HAN = re.compile("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA_OR_HANGUL = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af]")
# Characters that mostly carry grammar; content lies between them.
_FUNCTION_CHARACTERS = re.compile(
    "[的了是在我你您他她它们这那就都也不还和与或吗呢吧啊呀嘛把被给对从到要会能可很再又才只让请个些么什怎谁哪几多少]+"
)
_STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can could did do does
    doing done for from get go got had has have having he her here hers him his how i if in into is it its just let
    like me more most my no not now of off on once only or other our ours out over own please really same she should
    so some such than that the their them then there these they this those to too under until up us very was we were
    what when where which while who whom why will with would yes you your yours ok okay hi hello hey thanks thank
    一个 一下 一些 一样 什么 怎么 怎样 为什么 可以 可能 应该 需要 没有 不是 就是 还是 但是 因为 所以 如果 然后 现在 已经
    这个 那个 这些 那些 这里 那里 我们 你们 他们 自己 知道 觉得 东西 时候 今天 明天 昨天 谢谢 你好 好的 请问 帮我
    """.split()  # noqa: SIM905 (a list of quoted words would be five times as long)
)
# Word classes of jieba's tag set that name things and acts.
_CONTENT_TAGS = ("n", "v", "a", "eng", "x", "j", "i", "l")


def content_words(text: str, limit: int) -> tuple[str, ...]:
    """Return the first `limit` content words, in lower case: two characters or more, no stop words, no bare numbers.

    Chinese is cut by `rjieba` where the extra `zh` is installed; else words are the runs of 2 to 6 characters
    between function characters.

    >>> content_words("Please restart the nginx server", 3)
    ('restart', 'nginx', 'server')
    """
    found: dict[str, None] = {}
    for word in _words(fold(text)):
        if len(found) >= limit:
            break
        if len(word) >= 2 and word not in _STOP_WORDS and not word.replace(".", "").replace("-", "").isdigit():
            found.setdefault(word)
    return tuple(found)


def _words(text: str) -> Iterator[str]:
    cut = _chinese_cutter()
    for script, characters in itertools.groupby(text, _script):
        run = "".join(characters)
        if script == "han":
            yield from cut(run)
        elif script == "kana or hangul":
            yield from _runs_between_function_characters(run)
        elif script == "other":
            yield run.strip(".-")


def _script(character: str) -> str:
    if _HAN.match(character):
        return "han"
    if _KANA_OR_HANGUL.match(character):
        return "kana or hangul"
    return "other" if character in ".-" or unicodedata.category(character)[0] in "LMN" else ""


@functools.cache
def _chinese_cutter() -> Callable[[str], Iterable[str]]:
    try:
        rjieba = importlib.import_module("rjieba")
    except ImportError:
        return _runs_between_function_characters
    tag = cast("Callable[[str], list[tuple[str, str]]]", rjieba.tag)
    return lambda run: [word for word, kind in tag(run) if kind.startswith(_CONTENT_TAGS)]


def _runs_between_function_characters(run: str) -> list[str]:
    return [piece for piece in _FUNCTION_CHARACTERS.split(run) if 2 <= len(piece) <= 6]


def is_stop_word(word: str) -> bool:
    """Tell whether a word in lower case only holds a sentence together.

    >>> is_stop_word("with"), is_stop_word("redis")
    (True, False)
    """
    return word in _STOP_WORDS
