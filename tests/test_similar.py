"""Names that may mean one thing: how alike they are, and that blocking finds what a comparison of all pairs finds."""

import itertools
import time
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphmem.core import similar
from graphmem.core.keys import entity_key
from graphmem.core.similar import (
    best_of,
    bigram_similarity,
    index_names,
    machine_may_merge,
    similar_pairs,
    similar_within,
    titled,
    titled_pairs,
)

# Few letters and short stems, so that many names are alike.
NAMES = st.lists(
    st.one_of(
        st.text("ab1 -王", max_size=8),
        st.tuples(st.sampled_from(["panel", "红米手机", "x@mail.com"]), st.text("aeln12机", max_size=3)).map("".join),
    ).map(entity_key),
    unique=True,
    max_size=40,
)
LEAST = st.sampled_from([0.0, 0.3, 0.5, 0.6, 0.75, 0.9, 0.99])
KEYS = st.text(max_size=12).map(entity_key)


def digits_of(key):
    return similar._DIGITS.findall(key)


def all_pairs(keys, least):
    """The oracle: every pair, compared."""
    return {
        (a, b): bigram_similarity(keys[a], keys[b])
        for a, b in itertools.combinations(range(len(keys)), 2)
        if bigram_similarity(keys[a], keys[b]) > least and digits_of(keys[a]) == digits_of(keys[b])
    }


@given(KEYS, KEYS)
@example("", "")
@example("aa", "aaa")
def test_similarity_is_symmetric_and_within_0_and_1(a, b):
    assert bigram_similarity(a, b) == bigram_similarity(b, a)
    assert 0 <= bigram_similarity(a, b) <= 1
    assert bigram_similarity(a, a) == 1
    assert machine_may_merge(a, b) == machine_may_merge(b, a)
    assert titled(a, b) == titled(b, a)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("night", "nacht", 1 / 7),
        ("a", "ab", 0.0),
        ("a", "b", 0.0),
        ("小王", "产品经理小王", 0.2),
        ("aab", "aba", 1 / 3),
    ],
)
def test_similarity_is_jaccard_of_bigrams(a, b, expected):
    assert bigram_similarity(a, b) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("RX4070", "RX4080"),
        ("cam-a1", "cam-a1r"),
        ("群1", "群11"),
        ("v1.2", "v1.20"),
        ("小王", "小王子"),
        ("一号楼", "二号楼"),
        ("方案甲", "方案乙"),
        ("server-east", "server-west"),
        ("henry iv of castile", "henry vi of castile"),
        ("alice.w@example.com", "alice.v@example.com"),
        ("panel", "panels"),
        ("a1-cam", "b1-cam"),
    ],
)
def test_digits_a_version_or_a_suffix_are_for_a_person_to_judge(a, b):  # DUP-04
    assert not machine_may_merge(entity_key(a), entity_key(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [("postgresql", "postgressql"), ("foo_bar_2", "foo-bar-2"), ("产品经理小王", "小王"), ("c++ 17", "c++17")],
)
def test_what_differs_in_spelling_alone_a_machine_may_judge(a, b):
    assert machine_may_merge(a, b)


def test_a_title_before_the_whole_name_is_seen():  # DUP-06
    keys = ["小王", "产品经理小王", "小王子", "dr. smith", "smith", "senior software engineer smith", "drsmith"]

    assert {(keys[a], keys[b]) for a, b in titled_pairs(keys)} == {
        ("小王", "产品经理小王"),
        ("dr. smith", "smith"),
        ("smith", "senior software engineer smith"),
    }
    assert [titled(a, b) for a, b in itertools.combinations(keys[:3], 2)] == [True, False, False]


def test_titles_have_one_reading_so_that_no_name_takes_long():
    start = time.perf_counter()
    for word in ("总经理", "副总裁", "assistant manager ", "产品"):
        assert titled_pairs([word * 40, "x"]) == []

    assert time.perf_counter() - start < 1


@given(NAMES)
def test_titled_pairs_are_those_that_a_comparison_of_all_finds(keys):
    keys = list(dict.fromkeys([*keys, *(f"经理{key}" for key in keys), *(f"dr. {key}" for key in keys)]))

    assert set(titled_pairs(keys)) == {
        (a, b) for a, b in itertools.combinations(range(len(keys)), 2) if titled(keys[a], keys[b])
    }


@pytest.mark.parametrize("small", [1, 64])  # blocks of every size, and as they are
@given(keys=NAMES, least=LEAST)
def test_blocking_finds_what_a_comparison_of_all_pairs_finds(keys, least, small):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar, "_SMALL", small)
        patch.setattr(similar, "_CELLS", 8)
        pairs, whole = similar_pairs(index_names(keys), least=least)

    assert whole
    assert {(a, b): similarity for a, b, similarity in pairs} == all_pairs(keys, least)
    assert [pair.similarity for pair in pairs] == sorted((pair.similarity for pair in pairs), reverse=True)


@given(keys=NAMES, most=st.integers(0, 6), least=LEAST)
def test_of_many_pairs_the_best_accepted_are_found(keys, most, least):
    def accept(a, b):
        return len(a + b) % 3 != 0

    pairs, whole = similar_pairs(index_names(keys), least=least, most=most, accept=accept)

    expected = {(a, b): one for (a, b), one in all_pairs(keys, least).items() if accept(keys[a], keys[b])}
    assert [pair.similarity for pair in pairs] == sorted(expected.values(), reverse=True)[:most]
    assert all(expected[pair.first, pair.second] == pair.similarity for pair in pairs)
    assert not whole or len(expected) <= most


@given(keys=NAMES, least=LEAST, data=st.data())
def test_within_blocks_every_pair_is_compared(keys, least, data):
    places = st.lists(st.integers(0, len(keys) - 1), unique=True, max_size=6) if keys else st.just([])
    blocks = data.draw(st.lists(places, max_size=5))

    found = {(a, b): similarity for a, b, similarity in similar_within(index_names(keys), blocks, least=least)}

    together = {pair for block in blocks for pair in itertools.combinations(sorted(block), 2)}
    assert found == {pair: one for pair, one in all_pairs(keys, least).items() if pair in together}


def test_long_names_are_compared_too():
    keys = [f"{''.join(map(chr, range(0x4E00, 0x4E00 + 800)))}{end}" for end in "ab"] + ["x" * 900]

    pairs, _ = similar_pairs(index_names(keys), least=0.9)

    assert [(a, b) for a, b, _ in pairs] == [(0, 1)]


def test_names_that_are_all_alike_end_the_search_and_that_is_told(monkeypatch):
    monkeypatch.setattr(similar, "_LOOKED_AT", 100)
    keys = ["ab" * repeats for repeats in range(2, 60)]  # all have the same two bigrams

    pairs, whole = similar_pairs(index_names(keys), least=0.75, most=10)

    assert [pair.similarity for pair in pairs] == [1.0] * 10
    assert not whole


def test_the_best_of_some():
    assert best_of({}, 3) == {}
    assert best_of({(0, 1): 0.8}, 0) == {}


def test_ten_thousand_names_are_never_compared_one_by_one(monkeypatch):  # M6
    keys = [f"{chr(0x4E00 + n % 97)}{chr(0x5000 + n * 7 % 1999)}{chr(0x6000 + n % 4001)}" for n in range(10_000)]
    looked_at = []
    monkeypatch.setattr(similar, "_near", lambda *given, near=similar._near: map(counted, near(*given)))

    def counted(pairs):
        looked_at.append(len(pairs[0]))
        return pairs

    tracemalloc.start()
    similar_pairs(index_names(keys), least=0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert sum(looked_at) < 10 * len(keys)
    assert peak < 50e6
