"""Words of a text: tokens for the text index, the words of a query, and which words carry content.

A token is what the text index holds. Scripts that write no spaces (Chinese, kana, hangul, Thai, Lao, Khmer, Burmese)
give pairs of neighbouring characters; the last character of a run stands alone as well, so that every character begins
a token and a query of one character is a prefix. Words of other scripts are tokens, stemmed where the script is
Latin. Identifiers (`GOALS.md`, `v1.2`, `build-x7`, `getUserName`) are tokens as a whole and in their parts.
"""

import functools
import importlib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from graphmem.core.keys import clean_text, fold, visible

if TYPE_CHECKING:
    import regex

# Long enough for what it says to stand together, short enough that its length says nothing about its worth.
PASSAGE_TOKENS = 160
_LONGEST_TOKEN = 64

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Bopomofo}\p{Yi}"
_SPACED = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}]]"
_JOINTS = r"[-._/:@&+#'’\\]{1,2}"
# What the word of `_run` comes to in ASCII, where most texts are.
_ASCII_WORD = re.compile(rf"[A-Za-z0-9]+(?:{_JOINTS}[A-Za-z0-9]+)*[+#]*")
_LETTERS = re.compile("[a-z]+")
_CLITIC = re.compile(r"['’](?:s|t|d|m|ll|re|ve)$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[。！？!?\n])|(?<=[.;；])(?=\s)")
# English forms that no stemmer leads back; the last word of each group is the one they are forms of.
_IRREGULAR = {
    form: forms.split()[-1]
    for forms in (
        "went gone go",
        "bought buy",
        "brought bring",
        "thought think",
        "took taken take",
        "gave given give",
        "saw seen see",
        "came come",
        "made make",
        "got gotten get",
        "told tell",
        "said say",
        "knew known know",
        "found find",
        "felt feel",
        "left leave",
        "met meet",
        "began begun begin",
        "wrote written write",
        "ran run",
        "sang sung sing",
        "swam swum swim",
        "drove driven drive",
        "rode ridden ride",
        "flew flown fly",
        "grew grown grow",
        "drew drawn draw",
        "ate eaten eat",
        "drank drunk drink",
        "spoke spoken speak",
        "broke broken break",
        "chose chosen choose",
        "won win",
        "lost lose",
        "sent send",
        "spent spend",
        "built build",
        "taught teach",
        "caught catch",
        "sold sell",
        "held hold",
        "kept keep",
        "slept sleep",
        "stood stand",
        "understood understand",
        "heard hear",
        "paid pay",
        "led lead",
        "fell fallen fall",
        "forgot forgotten forget",
        "hid hidden hide",
        "wore worn wear",
        "tore torn tear",
        "threw thrown throw",
        "woke woken wake",
        "became become",
        "did done do",
        "was were been be",
        "had has have",
        "shot shoot",
        "sat sit",
        "lay lain lie",
        "rose risen rise",
        "shook shaken shake",
        "stole stolen steal",
        "struck strike",
        "swore sworn swear",
        "bit bitten bite",
        "blew blown blow",
        "dealt deal",
        "dug dig",
        "fought fight",
        "fed feed",
        "froze frozen freeze",
        "hung hang",
        "lent lend",
        "meant mean",
        "rang rung ring",
        "sought seek",
        "sank sunk sink",
        "stuck stick",
        "swept sweep",
        "wept weep",
        "children child",
        "men man",
        "women woman",
        "people person",
        "feet foot",
        "teeth tooth",
        "mice mouse",
        "wives wife",
        "lives life",
        "better best good",
        "worse worst bad",
    )
    for form in forms.split()[:-1]
}
# What asks or only holds a sentence together. In a run of Chinese they part the words around them.
_CHINESE_STOP_WORDS = re.compile(
    "什么时候|为什么|是什么|有没有|是不是|能不能|怎么样|什么样|什么|怎么|怎样|哪里|哪儿|哪个|哪些|哪位|多少|几个|如何"
    "|一个|一下|一些|这个|那个|这些|那些|我们|你们|他们|她们|它们|因为|所以|但是|还是|就是|可以|请问|帮我|告诉"
    "|[的了是在我你您他她它们这那就都也不还和与或吗呢吧啊呀嘛把被给对从到要会能很再又才只让请么谁哪几]"
)


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query. A text holds it when it holds all `parts`; `whole` is an identifier as one token, else ''.

    prefix: its one part is the beginning of a token, a single character of a script without spaces. tokens: all tokens
    by which it may be found.
    """

    text: str
    parts: tuple[str, ...]
    whole: str = ""
    prefix: bool = False
    tokens: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", (self.whole, *self.parts) if self.whole else self.parts)


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text in order, repeats included.

    >>> tokens_of("用pnpm部署 GOALS.md")
    ['用', 'pnpm', '部署', '署', 'goals.md', 'goal', 'md']
    """
    if text.isascii():  # a loop of its own, since most of the time of an ingest is spent here
        return [token for run in _ASCII_WORD.findall(text) for token in _word(run).tokens]
    found: list[str] = []
    for kind, run in _runs(text):
        if kind == "unspaced":
            found += [run[place : place + 2] for place in range(len(run))]
        else:
            found += _word(run).tokens
    return found


def telling_tokens(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the tokens of a name that tell something: the last character of a run of Chinese, a token too, does not.

    >>> telling_tokens(["老大", "大"]), telling_tokens(["大"])
    (('老大',), ('大',))
    """
    return tuple(token for token in tokens if len(token) > 1 or len(tokens) == 1)


def words_of(text: str) -> list[str]:
    """Return the words of a text as written, in order; of scripts that write no spaces, each character.

    >>> words_of("用pnpm部署 GOALS.md!")
    ['用', 'pnpm', '部', '署', 'GOALS.md']
    """
    return [word for kind, run in _runs(text) for word in (run if kind == "unspaced" else (run,))]


def passages_of(text: str) -> list[list[str]]:
    """Return the tokens of a text, cut at sentences into passages of at most 160 tokens; one empty one for no tokens.

    >>> passages_of("to be"), passages_of("")
    ([['to', 'be']], [[]])
    """
    return [tokens for _, tokens in _pieces(text)]


def pieces_of(text: str) -> list[str]:
    """Return the words of each passage of a text as they stand there.

    >>> pieces_of("To be."), len(pieces_of("To be. Or not. " * 60))
    (['To be.'], 2)
    """
    return [said.strip() for said, _ in _pieces(text)]


def piece_of(text: str, place: int) -> str:
    """Return the words of one passage of a text as they stand there.

    >>> piece_of("To be. Or not. " * 60, 1).split(". ")[0]
    'To be'
    """
    pieces = pieces_of(text)
    return pieces[min(place, len(pieces) - 1)]


def _pieces(text: str) -> list[tuple[str, list[str]]]:
    tokens = tokens_of(text)
    if len(tokens) <= PASSAGE_TOKENS:
        return [(text, tokens)]
    pieces: list[tuple[str, list[str]]] = [("", [])]
    for sentence in _SENTENCE_END.split(text):
        found = tokens_of(sentence)
        said, before = pieces[-1]
        if before and len(before) + len(found) > PASSAGE_TOKENS:
            said, before = "", []
            pieces.append((said, before))
        pieces[-1] = (said + sentence, before + found[:PASSAGE_TOKENS])
        # The rest of an endless sentence: it is found here, and shown as a whole.
        pieces += [
            (sentence, found[place : place + PASSAGE_TOKENS])
            for place in range(PASSAGE_TOKENS, len(found), PASSAGE_TOKENS)
        ]
    return pieces


def query_words(text: str, *, all_words: bool = False) -> tuple[QueryWord, ...]:
    """Return the words of a query, each once. Stop words are left out, unless there is nothing else or `all_words`.

    >>> [word.parts for word in query_words("部署用的是什么 tools?")]
    [('部署', '署用'), ('tool',)]
    """
    return tuple(_query_words(text, all_words=all_words)) or tuple(_query_words(text, all_words=True))


def _query_words(text: str, *, all_words: bool) -> Iterable[QueryWord]:
    found: dict[tuple[str, ...], QueryWord] = {}
    lone: dict[tuple[str, ...], QueryWord] = {}
    alone = set(text.split())
    for kind, run in _runs(clean_text(text)):
        if kind != "unspaced":
            word = _word(run)
            if all_words or word.text not in _STOP_WORDS:
                found.setdefault(word.tokens, word)
            continue
        pieces = [run] if all_words else [piece for piece in _CHINESE_STOP_WORDS.split(run) if piece]
        if pieces and len(run) > 1 and all(len(piece) == 1 for piece in pieces):
            pieces = [run]  # a word that a stop word is part of, such as 会议
        for piece in pieces:
            pairs = tuple(piece[place : place + 2] for place in range(len(piece) - 1))
            if pairs:
                found.setdefault(pairs, QueryWord(piece, pairs))
            else:
                places = found if run in alone else lone
                places.setdefault((piece,), QueryWord(piece, (piece,), prefix=True))
    # A single character left of a sentence is in every text: it counts when it is all there is, or in a run that stands
    # between spaces, where it is more likely a part of a word, as 议 in 明天会议.
    return found.values() or lone.values()


def _runs(text: str) -> Iterator[tuple[str | None, str]]:
    if text.isascii():
        return (("word", run) for run in _ASCII_WORD.findall(text))
    return ((match.lastgroup, match[0]) for match in _run().finditer(unicodedata.normalize("NFKC", visible(text))))


@functools.cache
def _run() -> "regex.Pattern[str]":
    """Return the expression for a run of characters that make tokens; its groups say which kind it is."""
    import regex  # takes 11 ms: only what searches or writes pays it

    return regex.compile(
        rf"(?P<unspaced>[{_UNSPACED}]+|\p{{Thai}}+|\p{{Lao}}+|\p{{Khmer}}+|\p{{Myanmar}}+)"
        rf"|(?P<word>{_SPACED}+(?:{_JOINTS}{_SPACED}+)*[+#]*)"
        # U+FFFD only says that something was lost there.
        r"|(?P<symbol>[\p{S}--[\p{ASCII}\p{Sk}\uFFFD]])",
        regex.VERSION1,
    )


@functools.cache
def _part() -> "regex.Pattern[str]":
    """Return the expression for a part of an identifier: letters of one script, or digits.

    A capital after a small letter begins a new one.
    """
    import regex

    return regex.compile(
        r"\p{N}+|(?:\p{Lu}(?=\p{Ll}))?(?:[\p{Latin}--\p{Lu}]\p{M}*)+|(?:[\p{Latin}&&\p{Lu}](?!\p{Ll}))+"
        r"|(?:[\p{L}--\p{Latin}]\p{M}*)+|\p{Lu}",
        regex.VERSION1,
    )


@functools.cache
def _optional_marks() -> "regex.Pattern[str]":
    """Return the expression for marks that readers leave out: of Latin and Greek, Hebrew points, Arabic vowel signs."""
    import regex

    return regex.compile(
        r"[\p{Latin}\p{Greek}]\K\p{Mn}+|[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]+|(?<=[Ее])\u0308"
    )


@functools.lru_cache(maxsize=1 << 16)
def _word(run: str) -> QueryWord:
    """Return a word or an identifier as the text index holds it."""
    name = _CLITIC.sub("", run)
    plain = _plain(name)
    if _LETTERS.fullmatch(plain) and (name.islower() or name.isupper() or name.istitle()):
        return QueryWord(plain, (_stem(plain),))
    parts = tuple(_stem(plain_part) for part in _part().findall(name) if (plain_part := _plain(part)))
    whole = _stem(plain)  # `YouTube` is `youtube`
    if parts in ((), (whole,)):
        return QueryWord(plain, (whole,))
    return QueryWord(plain, parts, whole)


def _plain(name: str) -> str:
    """Return a word in small letters, without the marks that readers leave out."""
    if name.isascii():
        return name.lower()
    apart = unicodedata.normalize("NFD", name)
    return fold(unicodedata.normalize("NFC", _optional_marks().sub("", apart)))


def _stem(word: str) -> str:
    if len(word) < 3 or not _LETTERS.fullmatch(word):
        return word[:_LONGEST_TOKEN]
    return _porter(_IRREGULAR.get(word, word)[:_LONGEST_TOKEN])


# The words that scene keys and identifiers are made of are few, and a word takes 60 microseconds.
@functools.lru_cache(maxsize=1 << 14)
def _porter(word: str) -> str:
    import snowballstemmer  # type: ignore[import-untyped]  # takes 9 ms: only what searches or writes pays it

    # A new one for each word: a stemmer holds the word it is at, and threads that share one mix up theirs.
    stem: str = snowballstemmer.stemmer("porter").stemWord(word)
    return stem


# ---- content words

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


@functools.lru_cache(maxsize=1 << 14)
def is_stop_token(token: str) -> bool:
    """Tell whether a token of the index only holds sentences together.

    >>> is_stop_token("veri"), is_stop_token("我们"), is_stop_token("redi")
    (True, True, False)
    """
    return token in _stop_tokens(is_ascii=token.isascii()) or not _CHINESE_STOP_WORDS.sub("", token)


@functools.cache
def _stop_tokens(*, is_ascii: bool) -> frozenset[str]:
    # Apart, since those of English load nothing of what cuts the others.
    return frozenset(token for word in _STOP_WORDS if word.isascii() is is_ascii for token in tokens_of(word))


def is_stop_word(word: str) -> bool:
    """Tell whether a word in lower case only holds a sentence together.

    >>> is_stop_word("with"), is_stop_word("redis")
    (True, False)
    """
    return word in _STOP_WORDS
