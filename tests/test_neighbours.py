"""What lies around a name: keywords, tiers, layers, orders and caps, against a plain search."""

import itertools
import re
import tempfile
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump, examples, sql

from graphmem import InvalidInput, Memory, Triple, entity_key


def names(report):
    return [entity.name for entity in report.entities]


def tiers(report):
    return {entity.name: entity.tier for entity in report.entities if not entity.hops}


def facts(report):
    return [f"{fact.subject} {fact.relation} {fact.object}" for fact in report.relations]


def chain(memory, *ends):
    memory.commit([Triple(a, "knows", b) for a, b in itertools.pairwise(ends)])


# ---- names


@pytest.mark.parametrize(
    ("depth", "reached"), [(0, "甲"), (1, "甲乙"), (2, "甲乙丙"), (3, "甲乙丙丁"), (2**62, "甲乙丙丁")]
)
def test_a_chain_is_followed_as_deep_as_asked(memory, depth, reached):  # G6
    chain(memory, *"甲乙丙丁")

    report = memory.neighbours("甲", depth=depth)

    assert "".join(names(report)) == reached
    assert [entity.hops for entity in report.entities] == list(range(len(reached)))
    assert len(report.relations) == len(reached) - 1


def test_facts_are_followed_in_both_directions_each_once(memory):
    memory.commit([Triple("a1", "likes", "b1"), Triple("c1", "likes", "a1"), Triple("a1", "is", "a1")])

    report = memory.neighbours("a1")

    assert sorted(names(report)) == ["a1", "b1", "c1"]
    assert sorted(facts(report)) == ["a1 is a1", "a1 likes b1", "c1 likes a1"]


def test_a_name_is_found_exactly_then_as_a_beginning_then_within(memory):
    chain(memory, "old panel", "panel", "panel port", "board")

    report = memory.neighbours("Ｐanel", depth=0)

    assert tiers(report) == {"panel": "exact", "panel port": "prefix", "old panel": "contains"}
    assert list(tiers(report)) == ["panel", "panel port", "old panel"]
    assert report.keywords == ("panel",)


def test_of_equal_tier_the_most_mentioned_then_the_shorter_comes_first(memory):
    memory.commit([Triple("x", "is", name) for name in ("port aa", "port b", "port cc", "port cc")])

    assert names(memory.neighbours("port", depth=0)) == ["port cc", "port b", "port aa"]


def test_a_name_that_a_merge_left_behind_finds_the_entity(memory, path):
    chain(memory, "boss", "tea")
    sql(path, "INSERT INTO entity_aliases VALUES ('the old man', 1)")

    assert tiers(memory.neighbours("The old man")) == {"boss": "exact"}


@pytest.mark.parametrize("wild", ["a%c", "a_c", "a\\c", "%", "_"])
def test_wildcards_are_plain_characters(memory, wild):
    chain(memory, "abc", "axxc")
    assert not memory.neighbours(wild)

    chain(memory, f"x{wild}x", "other")

    assert tiers(memory.neighbours(wild)) == {f"x{wild}x": "contains"}


def test_what_nobody_knows_gives_an_empty_answer(memory):
    report = memory.neighbours("nobody")

    assert not report
    assert (report.entities, report.relations, report.keywords) == ((), (), ("nobody",))


@pytest.mark.parametrize("number", ["8328", "7"])
def test_a_number_is_a_name(memory, number):  # G1
    chain(memory, "panel", number)

    assert tiers(memory.neighbours(number)) == {number: "exact"}


# ---- questions and lists


def test_a_question_finds_the_particular_before_the_generic(memory):  # G3
    chain(memory, "webui服务端口", "a")
    memory.commit([Triple("metrics服务端口8328", "是", "开")])
    for _ in range(3):  # more often mentioned
        chain(memory, "端口", "b")

    report = memory.neighbours("metrics服务的端口是多少", depth=0)

    assert names(report)[0] == "metrics服务端口8328"
    assert set(names(report)) == {"metrics服务端口8328", "端口", "webui服务端口"}


def test_generic_words_alone_keep_their_tiers(memory):
    chain(memory, "旧端口", "端口", "端口表")

    assert list(tiers(memory.neighbours("端口"))) == ["端口", "端口表", "旧端口"]


def test_what_more_words_find_comes_first(memory):
    chain(memory, "metrics", "metrics panel", "metrics panel url")

    assert names(memory.neighbours(["metrics p", "panel"], depth=0))[:2] == ["metrics panel", "metrics panel url"]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("老大喜欢什么", "老大"),
        ("Who lives with Mei Lin?", "Mei Lin"),
        ("what does C++ need", "C++"),
        ("8328端口是谁的", "8328"),
        ("what runs on 4324?", "4324"),
        ("what reads the New York Times", "New York Times"),
    ],
)
def test_names_in_a_question_are_found_exactly(memory, question, found):
    chain(memory, "老大", "Mei Lin", "C++", "8328", "4324", "New York Times", "New York", "cat")

    report = memory.neighbours(question, depth=0)

    assert (report.entities[0].name, report.entities[0].tier) == (found, "exact")


def test_a_name_within_another_word_is_not_in_the_question(memory):
    chain(memory, "cat", "dog")

    assert not memory.neighbours("concatenate everything")


@pytest.mark.parametrize("listed", ["tea, rice", "tea，rice", "tea、rice", "tea;rice;", ["tea", " ", "RICE"]])
def test_a_list_names_several(memory, listed):
    chain(memory, "tea", "boss", "rice")

    assert tiers(memory.neighbours(listed)) == {"tea": "exact", "rice": "exact"}


def test_a_name_with_a_comma_is_one_name(memory):
    chain(memory, "Paris, Texas", "Paris")

    assert tiers(memory.neighbours("Paris, Texas")) == {"Paris, Texas": "exact"}


def test_a_long_run_without_spaces_is_looked_for_as_it_is(memory):
    chain(memory, "部署服务器端口配置", "a")

    assert tiers(memory.neighbours("部署服务器端口配")) == {"部署服务器端口配置": "prefix"}


def test_words_within_a_name_that_was_found_are_not_looked_for(memory):
    chain(memory, "部件77号", "部件78号", "77", "部件")

    assert memory.neighbours("部件77号的端口是多少").keywords == ("部件77号", "端口")


# ---- caps and orders


def test_at_most_twenty_entities_and_facts_come_back(memory):  # G2
    memory.commit([Triple(f"server {number}", "runs", f"job {number}") for number in range(30)])

    report = memory.neighbours("server")

    assert (len(report.entities), len(report.relations)) == (20, 20)
    assert len(memory.neighbours("server", limit=25).entities) == 25
    assert not memory.neighbours("server", limit=0)


def test_a_hub_shows_the_most_mentioned_and_the_facts_that_lead_there(memory):
    memory.commit([Triple("hub", "has", f"n{number}") for number in range(50)])
    memory.commit([Triple("x", "has", f"n{number}") for number in range(40, 50)])

    report = memory.neighbours("hub", depth=1, limit=11)

    assert set(names(report)) == {"hub", *(f"n{number}" for number in range(40, 50))}
    assert {fact.object for fact in report.relations[:10]} == set(names(report)) - {"hub"}


def test_the_facts_of_what_fits_best_come_first(memory):
    memory.commit([Triple(f"panel {number}", "is", f"x{number}") for number in range(30)])
    memory.commit([Triple("panel", "runs on", "8328", confidence=0.5)])

    assert facts(memory.neighbours("panel"))[0] == "panel runs on 8328"


def test_of_two_facts_of_one_moment_the_later_turn_is_the_more_recent(memory):  # G4
    memory.commit([Triple("panel", "port", "8329")], session="s", turn=2)
    memory.commit([Triple("panel", "port", "8328")], session="s", turn=1)

    assert facts(memory.neighbours("panel", sort="recent")) == ["panel port 8329", "panel port 8328"]
    memory.commit([Triple("panel", "port", "8328")], session="s", turn=3)
    assert facts(memory.neighbours("panel", sort="recent")) == ["panel port 8328", "panel port 8329"]
    assert facts(memory.neighbours("panel")) == ["panel port 8329", "panel port 8328"]


@pytest.mark.parametrize("sort", ["recent", " Recent ", "TIME", "newest"])
@pytest.mark.parametrize("other", ["relevance", "", "latest", None, 5])
def test_three_words_mean_the_latest_first_and_all_else_relevance(memory, clock, sort, other):  # G5
    for number in (1, 2):
        memory.commit([Triple("panel", "port", f"832{number}", confidence=1 / number)])
        clock.advance(seconds=1)

    assert [fact[-1] for fact in facts(memory.neighbours("panel", sort=sort))] == ["2", "1"]
    assert [entity.name for entity in memory.neighbours("832", depth=0, sort=sort).entities] == ["8322", "8321"]
    assert [fact[-1] for fact in facts(memory.neighbours("panel", sort=other))] == ["1", "2"]


# ---- what may be read


def test_only_facts_that_hold_are_followed(memory, path):
    memory.commit([Triple("Lin", "lives in", "Rome", valid_to="2026-01-01"), Triple("Rome", "is in", "Italy")])

    assert names(memory.neighbours("Lin")) == ["Lin"]
    assert names(memory.neighbours("Lin", at="2025-06-01")) == ["Lin", "Rome", "Italy"]
    sql(path, "UPDATE relations SET status = 'deleted'")
    assert names(memory.neighbours("Lin", at="2025-06-01")) == ["Lin"]


def test_facts_and_names_of_other_scopes_are_not_seen(memory):
    memory.commit([Triple("boss", "argues with", "Eve")], scope="private")
    memory.commit([Triple("boss", "likes", "tea")])

    assert sorted(names(memory.neighbours("boss", scopes=["other"]))) == ["boss", "tea"]
    assert not memory.neighbours("Eve", scopes=["other"])
    assert not memory.neighbours("is Eve here?", scopes=[])
    assert names(memory.neighbours("Eve", scopes=["private"], depth=1)) == ["Eve", "boss"]
    assert names(memory.neighbours("Eve", depth=1, scopes="all")) == ["Eve", "boss"]
    assert not memory.neighbours("Eve")


def test_nothing_is_written(memory, path):
    chain(memory, "a1", "b1")
    before = dump(path)

    memory.neighbours("a1")

    assert dump(path) == before


# ---- bad and odd input


@pytest.mark.parametrize("nothing", ["", "  ", "\u200b", ",，", [], [" "]])
def test_nothing_to_look_for_is_refused(memory, nothing):
    with pytest.raises(InvalidInput, match="names"):
        memory.neighbours(nothing)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"names": 5}, "names"),
        ({"names": ["a", 5]}, "names"),
        ({"names": [f"n{number}" for number in range(101)]}, "names"),
        ({"depth": -1}, "depth"),
        ({"depth": 1.5}, "depth"),
        ({"limit": -1}, "limit"),
        ({"at": "yesterday"}, "at"),
    ],
)
def test_bad_input_is_refused_by_name(memory, options, argument):
    with pytest.raises(InvalidInput, match=f"^{argument}"):
        memory.neighbours(**{"names": "a", **options})


@pytest.mark.parametrize("odd", ["a\0b", "\ud83d", "x" * 100_000, "的" * 5000, "'; DROP TABLE entities; --", "\\", '"'])
def test_odd_text_is_only_text(memory, odd):
    chain(memory, "a", "b")

    assert not memory.neighbours([odd])
    memory.neighbours(odd)


# ---- against a plain search

ENDS = ["ab", "abc", "b", "bc", "xab", "port"]
EDGES = st.lists(
    st.tuples(st.sampled_from(ENDS), st.sampled_from(["r", "s"]), st.sampled_from(ENDS), st.sampled_from([0.5, 1.0])),
    max_size=14,
)


def plain_neighbours(told, keywords, depth, limit):
    """Entities as (name, hops) and facts in order, by walking over plain dictionaries."""
    mentions, order, known = {}, {}, {}
    for number, (a, relation, b, confidence) in enumerate(told):
        for end in (a, b):
            mentions[end] = mentions.get(end, 0) + 1
            order.setdefault(end, len(order))
        first = known.get((a, relation, b), (0, number))[1]
        known[a, relation, b] = (confidence, first)

    def tier(name, word):
        return 0 if name == word else 1 if name.startswith(word) else 2 if word in name else None

    ranks = {}
    for name in order:
        specific = [t for word in keywords if word != "port" and (t := tier(name, word)) is not None]
        every = [t for word in keywords if (t := tier(name, word)) is not None]
        if every:
            ranks[name] = (not specific, min(specific or every), -len(specific))

    def rank(name):
        return (ranks.get(name, (True, 3, 0)), -mentions[name], len(name), order[name])

    hops = {}
    layer = sorted(ranks, key=rank)
    for distance in range(depth + 1):
        layer = layer[: limit - len(hops)]
        hops |= dict.fromkeys(layer, distance)
        ends = {end for a, _, b in known for end in (a, b) if a in layer or b in layer}
        layer = sorted(ends - hops.keys(), key=rank)
    expanded = {name for name, distance in hops.items() if distance < depth}

    def nearness(fact):
        a, _, b = fact
        place = min((hops[end], ranks.get(end, (True, 3, 0))) for end in (a, b) if end in hops)
        return place, not (a in hops and b in hops), -known[fact][0], known[fact][1]

    chosen = sorted((fact for fact in known if {fact[0], fact[2]} & expanded), key=nearness)
    return list(hops.items()), [" ".join(fact) for fact in chosen[:limit]]


@settings(max_examples=examples(150))
@given(EDGES, st.lists(st.sampled_from([*ENDS, "a", "c"]), min_size=1, max_size=2, unique=True), st.integers(0, 4),
       st.integers(0, 8))  # fmt: skip
def test_a_walk_equals_that_of_a_plain_search(told, keywords, depth, limit):
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "memory.db", clock=FakeClock()) as memory,
    ):
        memory.commit([Triple(a, relation, b, confidence=confidence) for a, relation, b, confidence in told])

        report = memory.neighbours(keywords, depth=depth, limit=limit)

    entities, expected = plain_neighbours(told, keywords, depth, limit)
    assert [(entity.name, entity.hops) for entity in report.entities] == entities
    assert facts(report) == expected


@settings(max_examples=60)
@given(st.lists(st.text("ab_%\\é中", min_size=1, max_size=4), min_size=1, max_size=8), st.text("ab_%\\é中", min_size=1))
def test_a_name_is_found_just_when_it_holds_the_keyword(stored, keyword):
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "memory.db") as memory:
        memory.commit([Triple(name, "is", "zz") for name in stored])

        found = {entity_key(name) for name in tiers(memory.neighbours([keyword], depth=0, limit=100))}

    assert found == {key for name in stored if entity_key(keyword) in (key := entity_key(name))}


@pytest.mark.sqlite
def test_no_fact_and_no_entity_is_read_without_an_index_but_for_one_scan_of_names(memory):
    memory.commit([Triple(f"e{number}", "r", f"e{number + 1}") for number in range(30)])
    statements = []
    with memory._store.read() as tx:
        tx.set_trace_callback(statements.append)
        memory.neighbours("e1")
        tx.set_trace_callback(None)
        selects = [s for s in statements if s.lstrip().startswith("SELECT")]
        plans = [[row[3] for row in tx.execute(f"EXPLAIN QUERY PLAN {statement}")] for statement in selects]

    scans = [step for plan in plans for step in plan if re.match(r"SCAN (e|r|v|relations|entities|evidence)\b", step)]
    assert len(scans) == 1, scans
