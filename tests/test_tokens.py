"""What counts as a word: tokens of texts, words of queries, in every script. And the formulas of ranking."""

import itertools
import math
import sys
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphmem.core.ranking import bm25, cosine, inverse_frequency, scaled, walk
from graphmem.core.tokens import PASSAGE_TOKENS, passages_of, piece_of, query_words, tokens_of

IDENTIFIERS = [
    "GOALS.md",
    "9router",
    "v1.2",
    "build-x7",
    "getUserName",
    "C++",
    "C#",
    "user@host",
    "gateway/run.py",
    "chan:qq/peer:group_1",
    "38.101",
    "multi-agent",
    "HTTPServer",
    "snake_case_name",
    "YouTube",
    "C:\\Users\\me",
]
CJK = [
    (0x3041, 0x3096), (0x30A1, 0x30FA), (0xAC00, 0xD7A3), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0x20000, 0x2A6DF), (0x2A700, 0x2B739), (0x30000, 0x3134A), (0x31350, 0x323AF),
]  # fmt: skip
cjk_characters = st.one_of(
    st.integers(first, last).map(chr).filter(lambda c: unicodedata.normalize("NFKC", c) == c) for first, last in CJK
)
words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.one_of(words, st.sampled_from(IDENTIFIERS), st.text(cjk_characters, max_size=5))).map(" ".join),
    st.text("aB1.-_/:@&+#'\\ \u0301部の🎉", max_size=30),
)


def asked(query):
    return [word.tokens for word in query_words(query)]


def finds(query, text):
    """Whether some word of the query has all its parts in the text, or is there as a whole."""
    held = tokens_of(text)

    def is_held(word):
        if word.prefix:
            return any(token.startswith(word.parts[0]) for token in held)
        return set(word.parts) <= set(held) or word.whole in held

    return any(map(is_held, query_words(query)))


# ---- tokens


@given(texts)
@example("x\0y\ud83d")
def test_tokens_are_what_the_index_can_hold(text):
    for token in tokens_of(text):
        assert token
        assert not any(c.isspace() or c == "\0" or "\ud800" <= c <= "\udfff" for c in token)
        assert token == token.casefold()
        assert len(token) <= 64


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_a_text_in_ascii_has_the_same_tokens_beside_other_scripts(text):
    assert tokens_of(text + " 部") == [*tokens_of(text), "部"]


@given(texts)
def test_both_unicode_forms_of_a_text_have_the_same_tokens(text):  # KEY-07
    composed, apart = (tokens_of(unicodedata.normalize(form, text)) for form in ("NFC", "NFD"))
    assert composed == apart


@given(texts, texts)
def test_a_line_break_parts_tokens(one, other):
    assert tokens_of(f"{one}\n{other}") == tokens_of(one) + tokens_of(other)


@given(st.text(cjk_characters, min_size=1, max_size=12))
def test_a_run_without_spaces_is_pairs_and_its_last_character(run):
    assert [*tokens_of(run)] == [*(a + b for a, b in itertools.pairwise(run)), run[-1]]


@given(st.text(cjk_characters, min_size=2, max_size=12), st.data())
def test_every_substring_of_a_run_finds_it(run, data):  # KEY-15
    start = data.draw(st.integers(0, len(run) - 1))
    end = data.draw(st.integers(start + 1, len(run)))
    assert finds(run[start:end], run)


def test_threads_that_read_texts_at_once_have_the_tokens_of_each():
    words = [*map("".join, itertools.product("bdfgl", "aeiou", "mnprst", ("ational", "ization", "fulness", "ement")))]
    texts = [" ".join(thread + word for word in words) for thread in "xyz"]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(texts)) as threads:
            found = list(threads.map(tokens_of, texts))
    finally:
        sys.setswitchinterval(interval)

    alone = snowballstemmer.stemmer("porter")
    assert found == [[alone.stemWord(word) for word in text.split()] for text in texts]


@pytest.mark.parametrize("name", IDENTIFIERS)
@pytest.mark.parametrize("frame", ["{}", "see {} now", "用{}而", "(“{}”)", "重跑{}后清零"])
def test_an_identifier_is_found_as_a_whole_in_any_case_and_glued_to_chinese(name, frame):  # FTS-05
    for query in (name, name.lower(), name.upper()):
        assert finds(query, frame.format(name)), query


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("GOALS.md", ["goals", "md"]),
        ("9router", ["router"]),
        ("build-x7", ["build", "x7"]),
        ("getUserName", ["get", "user", "name", "userName"]),
        ("user@host", ["user", "host"]),
        ("gateway/run.py", ["gateway", "run", "run.py", "gateway/run"]),
        ("chan:qq/peer:group_1", ["chan:qq", "qq", "peer", "group_1", "group"]),
        ("HTTPServer", ["http", "server"]),
        ("XMLHttpRequest", ["xml", "http", "request"]),
        ("YouTube", ["tube"]),
    ],
)
def test_an_identifier_is_found_by_its_parts(name, parts):
    for part in parts:
        assert finds(part, f"das {name} da"), part


@pytest.mark.parametrize(
    "name", ["YouTube", "TypeScript", "PowerShell", "iPhones", "JavaScript", "OneNote", "MacBooks"]
)
def test_a_name_with_inner_capitals_is_found_in_small_letters_and_the_reverse(name):
    assert finds(name.lower(), name)
    assert finds(name, name.lower())


def test_names_that_differ_in_marks_are_told_apart_as_wholes():
    wholes = {name: {word.whole or word.parts[0] for word in query_words(name)} for name in ("C++", "C#", "C")}
    assert wholes == {"C++": {"c++"}, "C#": {"c#"}, "C": {"c"}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＵＳＢ集线器", "USB集线器"),
        ("ﾃｽﾄ", "テスト"),
        ("bo\u00adb", "bob"),
        ("\ufeffbob", "bob"),
        ("bob\u202e", "bob"),
        ("b\u200bob", "bob"),
        ("학점인정", unicodedata.normalize("NFD", "학점인정")),
        ("Café", "CAFE\u0301"),
        ("Straße", "STRASSE"),
        ("Ёлка", "ёлка"),
        ("ΚΟΣΜΟΣ", "κόσμος"),
        ("שָׁלוֹם", "שלום"),
        ("مَرْحَبًا", "مرحبا"),
        ("ＧＯＡＬＳ．ｍｄ", "GOALS.md"),
        ("❤\ufe0f", "❤"),
        ("豈", "豈"),
    ],
)
def test_spellings_of_one_word_are_one(one, other):  # KEY-07, KEY-08, KEY-11
    assert tokens_of(one) == tokens_of(other) != []


@pytest.mark.parametrize("lost", ["\0", "\ud83d", "\0\ud83d"])
def test_what_cannot_be_stored_is_no_word(lost):  # TXT-01
    assert query_words(lost) == ()
    assert asked(f"red{lost}is cache") == asked("red is cache")
    assert tokens_of(f"ok {lost}") == ["ok"]


@pytest.mark.parametrize("base", ["a", "ש", "م", "क", "Е"])
@pytest.mark.parametrize("mark", ["\u0301", "\u05b0", "\u064b", "\u0951", "\u0308"])
def test_a_letter_under_very_many_marks_is_read_at_once(base, mark):
    """Linear: what looked back over all marks at each of them took minutes here, and the time limit of the run."""
    assert len(tokens_of(base + mark * 50_000)) <= 2


# ---- queries


@pytest.mark.parametrize("query", ["", "   ", "*", '"', "!!!", "()[]{}", "。，！", "\u200b", "\n\t", "---", "...", "'"])
def test_a_query_of_marks_has_no_words(query):  # FTS-02
    assert query_words(query) == ()


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("what is the redis port", {"redi", "port"}),
        ("部署 的 网关", {"部署", "网关"}),
        ("什么是部署", {"部署"}),
        ("How do you deploy it?", {"deploi"}),
    ],
)
def test_stop_words_are_dropped_from_a_query(query, kept):
    assert {token for word in query_words(query) for token in word.tokens} == kept


@pytest.mark.parametrize(
    "query", ["to be or not to be", "what is it", "NOT", "a AND", "的", "是什么", "什么时候", "我们"]
)
def test_a_query_of_stop_words_keeps_them(query):
    assert query_words(query)
    assert finds(query, query)


@pytest.mark.parametrize("text", ["to be or not to be", "这是什么", "what is the port"])
def test_stop_words_are_kept_in_a_text(text):
    assert set(tokens_of("to be 这是")) & set(tokens_of(text)) or "what" in tokens_of(text)
    assert len(passages_of(text)[0]) >= 4


@pytest.mark.parametrize("word", ["会议", "要求", "在线", "能力", "对话", "就业", "请假", "和平", "都市", "几何"])
@pytest.mark.parametrize("frame", ["{}", "部署 {}", "明天{}"])
def test_a_word_with_a_character_that_is_a_stop_word_elsewhere_is_asked_for(word, frame):
    """By a plain scan `部署 会议` finds what says 会议."""
    assert finds(frame.format(word), f"新的{word}改了")


@pytest.mark.parametrize("query", ["部署，会议", "部署：要求"])
def test_a_word_with_a_stop_character_is_asked_for_beside_others(query):
    assert finds(query, f"新的{query[-2:]}改了")


@pytest.mark.parametrize("character", ["猫", "部", "𠮷", "㐂", "か", "ガ", "한", "〇", "々"])
def test_a_query_of_one_character_finds_it_anywhere_in_a_run(character):
    for text in (character, f"大{character}", f"{character}大", f"大{character}大", f"x{character}y"):
        assert finds(character, text), text
    assert not finds(character, "大小多少")


@given(texts)
def test_a_query_asks_for_nothing_that_its_own_text_does_not_hold(text):
    held = tokens_of(text)
    for word in query_words(text):
        for part in word.tokens:
            assert any(token.startswith(part) for token in held) if word.prefix else part in held


@given(texts)
def test_what_has_tokens_can_be_asked_for_and_the_reverse(text):
    assert bool(tokens_of(text)) == bool(query_words(text))


@given(texts)
def test_no_word_is_asked_for_twice(text):
    found = asked(text)
    assert len(found) == len(set(found))


def test_a_pasted_log_is_read():
    line = "2026-09-07T08:00:00Z ERROR gateway/run.py:42 it's «broken» 部署失败 \0 \ud83d 🎉\n"
    paste = line * (100_000 // len(line))
    assert {"gateway/run.py:42", "🎉"} <= {word.whole or word.text for word in query_words(paste)}


# ---- passages


@given(st.lists(st.sampled_from(["word. ", "部署。", "x" * 70 + " ", "a b c\n", "你好吗？", "1.5 "]), max_size=400))
@settings(max_examples=50)
def test_passages_hold_all_tokens_of_a_text_in_order_and_are_short(pieces):
    text = "".join(pieces)
    passages = passages_of(text)
    assert all(len(passage) <= PASSAGE_TOKENS for passage in passages)
    assert [token for passage in passages for token in passage] == tokens_of(text)


@given(
    st.lists(st.sampled_from(["One sentence here. ", "部署新网关。", "no end "]), min_size=100, max_size=300), st.data()
)
@settings(max_examples=30)
def test_the_piece_of_a_passage_holds_its_words_as_they_stand(pieces, data):
    text = "".join(pieces)
    passages = passages_of(text)
    place = data.draw(st.integers(0, len(passages) - 1))
    piece = piece_of(text, place)
    assert piece in text
    assert set(passages[place]) <= set(tokens_of(piece))


# ---- formulas


shares = st.floats(0.001, 50)


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=5),
    st.lists(shares, min_size=3, max_size=3),
    st.data(),
    st.floats(0, 3),
    st.floats(0, 1),
)
def test_bm25_is_the_formula_in_loops(counts, weights, data, k1, b):
    lengths = data.draw(st.lists(st.floats(0.1, 20), min_size=len(counts), max_size=len(counts)))

    def plain(row, length):
        total = 0.0
        for count, weight in zip(row, weights, strict=True):
            if count:
                total += weight * count * (k1 + 1) / (count + k1 * (1 - b + b * length))
        return total

    held = [{term: float(count) for term, count in enumerate(row) if count} for row in counts]
    found = bm25(held, weights, lengths, k1=k1, b=b)
    assert found == pytest.approx([plain(row, length) for row, length in zip(counts, lengths, strict=True)])


@given(st.integers(1, 10**6), st.data())
def test_an_inverse_frequency_never_reaches_zero_and_falls_with_the_frequency(number, data):
    common = data.draw(st.integers(1, number))
    rare = data.draw(st.integers(0, common - 1))
    assert inverse_frequency(number, rare) > inverse_frequency(number, common) > 0


@given(st.dictionaries(words, st.floats(0, 1e9)))
def test_scaled_values_lie_within_one_and_keep_their_order(values):
    found = scaled(values)
    assert found == {} if not any(values.values()) else max(found.values()) == 1
    assert all(0 <= share <= 1 for share in found.values())
    for one in found:
        for other in found:
            assert not (values[one] > values[other] and found[one] < found[other])


def vector_of(text):
    return {token: float(count) for token, count in Counter(text).items()}


@given(st.text("abc"), st.text("abc"))
def test_cosine_is_that_of_dense_vectors(one, other):
    dense = [[text.count(c) for c in "abc"] for text in (one, other)]
    lengths = math.prod(math.sqrt(sum(x * x for x in each)) for each in dense)
    expected = sum(a * b for a, b in zip(*dense, strict=True)) / lengths if lengths else 0.0
    assert cosine(vector_of(one), vector_of(other)) == pytest.approx(expected)


edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0.01, 1)), max_size=15)


@given(st.sets(st.integers(0, 6), min_size=1), edges)
def test_a_walk_is_that_of_a_dense_matrix(seeds, links):
    matrix = [[0.0] * 7 for _ in range(7)]
    for one, other, weight in links:
        matrix[one][other] += weight
        matrix[other][one] += weight
    start = [1 / len(seeds) if node in seeds else 0.0 for node in range(7)]
    mass = start
    for _ in range(8):
        moved = [0.5 * share for share in start]
        for one in range(7):
            for other in range(7):
                if total := sum(matrix[one]):
                    moved[other] += 0.5 * mass[one] * matrix[one][other] / total
        mass = moved
    found = walk(seeds, links)
    assert [found.get(node, 0.0) for node in range(7)] == pytest.approx(mass)


@given(st.sets(st.integers(0, 6), min_size=1), edges)
def test_a_walk_loses_no_more_than_what_ends_nowhere(seeds, links):
    found = walk(seeds, links)
    assert all(share >= 0 for share in found.values())
    linked = {end for link in links for end in link[:2]}
    if seeds <= linked:
        assert sum(found.values()) == pytest.approx(1)


def test_nobody_walks_without_a_seed():
    assert walk([], [("a", "b", 1.0)]) == {}
