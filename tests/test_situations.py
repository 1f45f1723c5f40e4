"""Situations: features, weights, labels, similarity, vetoes, times, settings (design section 5; S1 to S6; NUM-*)."""

import datetime as dt
import itertools
import json
import math
import subprocess
import sys
import time
import unicodedata
import zoneinfo
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem import Config, Feature, InvalidInput, Situation, normalize_key, similarity
from graphmem.core.keys import kind_of
from graphmem.core.situations import may_join, recall_ground, score, surplus_features
from graphmem.core.times import part_of_day, read_time, utc_text
from graphmem.core.tokens import content_words

SHANGHAI = zoneinfo.ZoneInfo("Asia/Shanghai")
NEW_YORK = zoneinfo.ZoneInfo("America/New_York")

NOT_WEIGHTS = [math.nan, math.inf, -math.inf, json.loads("1e999"), 10**400, -1, -0.5, True, "0.5", [1.0]]
NAMES_OF_NOT_WEIGHTS = [str(value)[:10] for value in NOT_WEIGHTS]

FAR_APART = [dt.datetime.fromisoformat(day) for day in ("0002-01-01", "9998-01-01")]


def close(value):
    return pytest.approx(value, abs=1e-9, rel=0)


features = st.builds(
    Feature,
    st.sampled_from(["chan", "peer", "peer_group", "tool", "topic", "part", "mood", ""]),
    st.sampled_from(["a", "A", "b", "c", "ｃ", "d", "x y", "me", "Assistant", "", " "]),
    st.one_of(st.none(), st.floats(0.001, 100)),
)
weights = st.dictionaries(
    st.sampled_from("abcdefgh"), st.one_of(st.floats(0, 2), st.floats(0, 1.7e308), st.integers(0, 5)), max_size=8
)


# ---- weights


def test_each_kind_has_its_weight():
    """S1, with people at 1.2."""
    here = Situation([Feature(kind, "x") for kind in ("chan", "peer", "peer_group", "tool", "topic", "part", "mood")])

    assert here.weights == {
        "peer:x": 1.2,
        "peer_group:x": 1.2,
        "chan:x": 1.0,
        "tool:x": 0.8,
        "mood:x": 0.4,
        "topic:x": 0.4,
        "part:x": 0.2,
    }


def test_values_of_one_kind_share_its_weight():
    here = Situation.of(chan="qq", peer=["a", "b"], topics=["x", "y", "z"])

    assert here.weights == {
        "chan:qq": 1.0,
        "peer:a": close(0.6),
        "peer:b": close(0.6),
        "topic:x": close(0.4 / 3),
        "topic:y": close(0.4 / 3),
        "topic:z": close(0.4 / 3),
    }


def test_a_given_weight_replaces_that_of_the_kind_and_is_shared_alike():
    here = Situation([Feature("topic", "a", 0.9), Feature("topic", "b"), Feature("chan", "qq", 3)])

    assert here.weights == {"chan:qq": 3.0, "topic:a": close(0.45), "topic:b": close(0.2)}


def test_a_given_weight_does_not_make_a_topic_say_who_and_where():
    here = Situation([Feature("topic", "a", 5.0), Feature("tool", "t", 0.1)])

    assert here.identity == ("tool:t",)


def test_a_repeated_feature_counts_once_with_its_greatest_given_weight():
    """S2."""
    here = Situation([Feature("topic", "a"), Feature("topic", "Ａ", 0.1), Feature("topic", " a ", 0.3)])

    assert here.weights == {"topic:a": close(0.3)}


@pytest.mark.parametrize("blank", ["", "  ", "\u200b"])
def test_blank_features_are_dropped(blank):
    """S2."""
    here = Situation([Feature("chan", blank), Feature(blank, "qq"), Feature("topic", "a"), Feature("topic", blank)])

    assert here.weights == {"topic:a": 0.4}
    assert not Situation([Feature("chan", blank)])
    assert not Situation()


def test_of_thirty_features_the_24_heaviest_are_kept():
    """S2."""
    moods = [Feature(f"mood{number:02}", "x") for number in range(28)]
    here = Situation([Feature("part", "morning"), *reversed(moods), Feature("chan", "qq")])

    assert list(here.weights) == ["chan:qq", *(f"mood{number:02}:x" for number in range(23))]


def test_situation_features_can_be_configured():
    here = Situation.of(chan="qq", topics=["c", "a", "b"], config=Config(situation_features=3))

    assert list(here.weights) == ["chan:qq", "topic:a", "topic:b"]


@given(st.lists(features, max_size=30), st.randoms(use_true_random=False))
def test_a_situation_does_not_depend_on_the_order_of_its_features(given_features, random):
    mixed = random.sample(given_features, len(given_features))
    one, other = Situation(given_features), Situation(mixed)

    assert list(one.weights.items()) == list(other.weights.items())
    assert one.identity == other.identity
    assert one.label() == other.label()
    assert one.derived_key == other.derived_key


@given(st.lists(features, max_size=40))
def test_a_situation_holds_at_most_24_features_heaviest_first(given_features):
    here = Situation(given_features)

    assert len(here.weights) <= 24
    assert list(here.weights) == sorted(here.weights, key=lambda key: (-here.weights[key], key))
    assert all(math.isfinite(weight) and weight > 0 for weight in here.weights.values())
    assert set(here.identity) <= set(here.weights)


def test_the_agent_itself_is_no_peer():
    here = Situation.of(chan="qq", peer=["ME", "assistant", "boss"])

    assert here.weights == {"chan:qq": 1.0, "peer:boss": 1.2}
    assert not Situation.of(peer="me")


def test_own_names_can_be_configured():
    config = Config(self_names={"小助手", "Jarvis X"})

    assert Situation.of(peer=["小助手", "jarvis x", "me"], config=config).peers == {"peer:me"}


def test_another_configuration_weighs_the_same_features_anew():
    heavy = Config(weights={"topic": 2.0}, self_names=())
    here = Situation.of(chan="qq", peer="me", topics=["a", "b"]).under(heavy)

    assert here.weights == {"peer:me": 1.2, "chan:qq": 1.0, "topic:a": 1.0, "topic:b": 1.0}
    assert here.identity == ("peer:me", "chan:qq", "topic:a", "topic:b")


@pytest.mark.parametrize("weight", [*NOT_WEIGHTS, 0, 0.0], ids=[*NAMES_OF_NOT_WEIGHTS, "0", "0.0"])
def test_a_weight_that_is_no_positive_finite_number_is_refused_by_name(weight):
    """NUM-01."""
    with pytest.raises(InvalidInput, match="topic:menu"):
        Feature("topic", "menu", weight)


@pytest.mark.parametrize("value", [None, 5, ["qq"], b"qq"])
def test_a_feature_that_is_no_text_is_refused(value):
    with pytest.raises(InvalidInput):
        Feature("chan", value)
    with pytest.raises(InvalidInput):
        Feature(value, "qq")


@pytest.mark.parametrize("given_features", [None, 5, Feature("chan", "qq"), ["chan:qq"], "chan:qq", [("chan", "qq")]])
def test_what_is_no_list_of_features_is_refused_by_name(given_features):
    with pytest.raises(InvalidInput, match="features = "):
        Situation(given_features)


@pytest.mark.parametrize("name", ["chan", "peer", "peer_group", "tool", "topics", "part"])
@pytest.mark.parametrize("value", [5, [5], [None]])
def test_values_that_are_no_texts_are_refused(name, value):
    with pytest.raises(InvalidInput):
        Situation.of(**{name: value})


def test_a_value_of_none_is_none_of_that_kind():
    assert Situation.of(chan="qq", peer=None, topics=None) == Situation.of(chan="qq")


def test_people_are_never_cut_for_topics():
    crowd = [Feature("peer", "bob", 0.01), *(Feature("topic", f"t{n}") for n in range(30))]

    here = Situation(crowd)

    assert here.people == ("peer:bob",)
    assert len(here.weights) == 24


def test_more_people_than_features_are_refused():
    with pytest.raises(InvalidInput, match="people"):
        Situation.of(peer=[f"p{n}" for n in range(25)])


@pytest.mark.parametrize(
    ("values", "key", "expected"),
    [
        ({"chan": "qq"}, "chan:qq", True),
        ({"chan": "qq"}, "chan:qq/peer:boss", True),
        ({"chan": "qq", "peer": "boss"}, "chan:qq", False),
        ({"chan": "qq", "peer": "boss"}, "chan:qq/peer:boss", True),
        ({"chan": "qq", "peer": "boss"}, "chan:qq/peer:boss2", False),
        ({"chan": "qq", "peer": ["a", "b"]}, "chan:qq/peer:a", False),  # what b says is not for a alone
        ({"chan": "qq", "peer": ["a", "b"]}, "chan:qq/peer:a/peer:b", True),
        ({"chan": "qq", "peer": "a"}, "chan:qq/peer:a/peer:b", False),  # b is not here
        ({"chan": "qq", "peer": "b", "peer_group": "h"}, "chan:qq/peer_group:g/peer:b", False),
        ({"chan": "qq", "peer_group": "g"}, "chan:qq/peer_group:g", True),
        ({"chan": "c" * 60, "peer": "p" * 50}, f"chan:{'c' * 60}/peer:{'p' * 50}", True),  # cut, and still theirs
        ({"chan": "c" * 60, "peer": "p" * 49 + "q"}, f"chan:{'c' * 60}/peer:{'p' * 50}", False),
    ],
)
def test_what_is_said_goes_to_keys_that_name_all_who_are_here_and_nobody_else(values, key, expected):
    assert Situation.of(**values).may_write_to(normalize_key(key)) == expected


def test_a_company_counts_its_visits_under_all_its_names():
    assert Situation.of(peer=["a", "b", "c"], chan="qq").growing_label == "peer:a_peer:b_peer:c"
    assert Situation.of(peer="a", chan="qq", tool="t").growing_label == "peer:a_chan:qq"


# ---- labels and derived keys


@pytest.mark.parametrize(
    ("values", "label"),
    [
        # S3
        ({"part": "morning", "chan": "qq"}, "chan:qq"),
        ({"topics": "a", "part": "m"}, "topic:a"),
        # people before channels before tools, then by key
        ({"chan": "qq", "peer": "boss", "tool": "t"}, "peer:boss_chan:qq"),
        ({"chan": "qq", "tool": "t"}, "chan:qq_tool:t"),
        ({"tool": ["u", "t"], "topics": "a"}, "tool:t_tool:u"),
        ({"peer": ["z", "b", "y"], "chan": "qq"}, "peer:b_peer:y"),
        ({"chan": "qq", "peer_group": "g"}, "peer_group:g_chan:qq"),
        # two identity features at most, others only without any
        ({"chan": "qq", "topics": ["a", "b"]}, "chan:qq"),
        ({"topics": ["c", "b", "a"]}, "topic:a_topic:b"),
        ({"part": "night"}, ""),
        ({}, ""),
    ],
)
def test_a_label_names_people_first_and_never_the_part_of_the_day(values, label):
    assert Situation.of(**values).label() == label


def test_a_label_counts_as_many_features_as_asked_for():
    here = Situation.of(chan="qq", peer="boss", tool="t", topics="a")

    assert [here.label(parts) for parts in (1, 2, 3, 9)] == [
        "peer:boss",
        "peer:boss_chan:qq",
        "peer:boss_chan:qq_tool:t",
        "peer:boss_chan:qq_tool:t",
    ]


def test_the_part_of_the_day_stays_out_of_a_label_at_any_weight():
    """R2: whatever the configuration."""
    config = Config(weights={"part": 0.9})

    assert Situation.of(chan="qq", part="morning", config=config).label() == "chan:qq"
    assert Situation.of(topics="a", part="morning", config=config).label() == "topic:a"


def test_others_stand_in_a_label_in_the_order_of_keys_not_of_weights():
    here = Situation([Feature("topic", "b", 2.0), Feature("topic", "a"), Feature("mood", "c", 0.001)])

    assert here.label() == "mood:c_topic:a"


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"chan": "QQ", "peer": "Boss"}, "chan:qq/peer:boss"),
        ({"chan": "qq"}, "chan:qq"),
        ({"peer": "boss"}, "peer:boss"),
        ({"chan": "qq", "peer": "me"}, "chan:qq"),
        ({"chan": ["wx", "qq"], "peer": ["z", "a"]}, "chan:qq/peer:a/peer:z"),
        ({"chan": "c" * 90, "peer": "boss"}, "peer:boss"),
        ({"chan": "c" * 90, "peer": ["boss", "guest"]}, "company:peer:boss_peer:guest"),
        ({"tool": "t", "topics": "a", "part": "night"}, ""),
    ],
)
def test_a_turn_has_the_key_of_its_channel_and_person(values, key):
    here = Situation.of(**values)

    assert here.derived_key == key
    assert normalize_key(key) == key


# ---- observing raw events


@pytest.mark.parametrize(
    ("payload", "person"),
    [
        # first of peer, peer_id, group_id, user_id, chat_id; only a group_id names a group
        ({"peer": "a", "peer_id": "b", "group_id": "c", "user_id": "d", "chat_id": "e"}, "peer:a"),
        ({"chat_id": "e", "user_id": "d", "group_id": "c", "peer_id": "b"}, "peer:b"),
        ({"chat_id": "e", "user_id": "d", "group_id": "c"}, "peer_group:c"),
        ({"chat_id": "e", "user_id": "d"}, "peer:d"),
        ({"chat_id": "e"}, "peer:e"),
        ({"peer": "", "peer_id": "  ", "group_id": None, "user_id": "d"}, "peer:d"),
        # S5
        ({"group_id": 1027993713.0}, "peer_group:1027993713"),
        ({"group_id": 1027993713}, "peer_group:1027993713"),
        ({"user_id": "1027993713"}, "peer:1027993713"),
        ({"peer": 2.5}, "peer:2.5"),
        ({"peer": -0.0}, "peer:0"),
        ({"nickname": "a"}, None),
        ({}, None),
    ],
)
def test_the_person_is_the_first_identifier_of_the_payload(payload, person):
    here = Situation.observe(source="qq", payload=payload)

    assert set(here.weights) == {"chan:qq", person} - {None}


@pytest.mark.parametrize("identifier", [math.nan, math.inf, ["a"], {"id": 1}, b"a"], ids=str)
def test_an_identifier_that_is_none_is_refused_by_name(identifier):
    with pytest.raises(InvalidInput, match="group_id"):
        Situation.observe(source="qq", payload={"group_id": identifier})


@pytest.mark.parametrize(
    "raw", [{"source": None}, {"payload": ["peer"]}, {"payload": "peer"}, {"text": None}, {"tool": 5}, {"at": 5}]
)
def test_a_raw_event_of_wrong_types_is_refused(raw):
    with pytest.raises(InvalidInput):
        Situation.observe(**{"source": "qq", **raw})


@pytest.mark.parametrize(
    ("hour", "minute", "part"),
    [
        (0, 0, "night"),
        (5, 59, "night"),
        (6, 0, "morning"),
        (11, 59, "morning"),
        (12, 0, "afternoon"),
        (17, 59, "afternoon"),
        (18, 0, "evening"),
        (23, 59, "evening"),
    ],
)
def test_the_parts_of_the_day(hour, minute, part):
    """S6."""
    moment = dt.datetime(2026, 9, 4, hour, minute, tzinfo=dt.UTC)
    here = Situation.observe(source="qq", at=moment)

    assert part_of_day(moment) == part
    assert set(here.weights) == {"chan:qq", f"part:{part}"}


@pytest.mark.parametrize(
    ("at", "part", "instant"),
    [
        ("2026-09-07T21:59:00Z", "night", "2026-09-07T21:59:00+00:00"),
        ("2026-09-07T22:00:00Z", "morning", "2026-09-07T22:00:00+00:00"),
        ("2026-09-07T05:59:00", "night", "2026-09-06T21:59:00+00:00"),
        ("2026-09-07T09:00:00+02:00", "afternoon", "2026-09-07T07:00:00+00:00"),
    ],
)
def test_the_part_of_the_day_is_told_by_the_configured_time_zone(at, part, instant):
    here = Situation.observe(source="qq", at=at, config=Config(timezone="Asia/Shanghai"))

    assert f"part:{part}" in here.weights
    assert here.at.isoformat() == instant


def test_the_part_of_the_day_follows_summer_time():
    config = Config(timezone="America/New_York")
    before, after = (Situation.observe(source="qq", at=f"2026-03-0{day}T10:30Z", config=config) for day in (7, 8))

    assert "part:night" in before.weights
    assert "part:morning" in after.weights


def test_a_tool_without_an_event_is_one_feature():
    """S5."""
    assert Situation.observe(tool="QQ_get", at="2026-09-07T08:00:00Z").weights == {"tool:qq_get": 0.8}


def test_an_event_without_words_loads_nothing_that_reads_words():
    script = """if True:
        import sys
        from graphmem import Situation
        Situation.observe(source="qq", payload={"user_id": "boss"}, tool="shell")
        print({"graphmem.core.redaction", "graphmem.core.tokens"} & sys.modules.keys())"""

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "set()\n"


def test_a_whole_event_has_channel_person_part_tool_and_three_topics():
    """S5."""
    here = Situation.observe(
        source="QQ",
        payload={"user_id": 7.0},
        text="Please restart nginx, rotate certificates and check backups on storage",
        tool="shell",
        at="2026-09-07T20:00:00Z",
    )
    topics = [key for key in here.weights if key.startswith("topic:")]

    assert sorted(topics) == ["topic:nginx", "topic:restart", "topic:rotate"]
    assert set(here.weights) - set(topics) == {"chan:qq", "peer:7", "part:evening", "tool:shell"}
    assert sum(here.weights[key] for key in topics) == close(0.4)


@pytest.mark.parametrize("limit", [1, 3, 9])
def test_content_words_are_at_most_as_many_as_asked_for(limit):
    words = ("restart", "nginx", "rotate", "logs")

    assert content_words("Restart nginx and rotate the logs, nginx 8328!", limit) == words[:limit]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café menu", unicodedata.normalize("NFD", "Café menu")),  # KEY-07
        ("학점인정", unicodedata.normalize("NFD", "학점인정")),
        ("usb server", "ＵＳＢ ｓｅｒｖｅｒ"),  # KEY-08
        ("テスト", "ﾃｽﾄ"),
        ("usb hub port cable", "ＵＳＢ usb hub port cable"),
        ("server", "ser\u200bver"),  # KEY-11
        ("server", "ser\u00adver"),
    ],
)
def test_spellings_of_one_text_have_the_same_topics(one, other):
    assert set(Situation.observe(text=one).weights) == set(Situation.observe(text=other).weights)


@pytest.mark.parametrize(
    "character", [*"排㐂𠮷\U0002a700\U0002b740\U0002b820\U0002ceb0\U00030000\U00031350", *"豈\U0002f800かカ한"]
)
def test_words_end_where_cjk_begins(character):
    """KEY-15: extensions A to H and the compatibility forms, kana and hangul."""
    assert {"ab", "cd"} <= set(content_words(f"ab{character}cd", 3))


# ---- similarity


def plain(*keys):
    """Weights of the reference engine, where a peer weighs as much as a channel."""
    of_kind = {"chan": 1.0, "peer": 1.0, "tool": 0.8, "topic": 0.4, "part": 0.2}
    return {key: of_kind[key.split(":")[0]] for key in keys}


def jaccard(one, other):
    """The definition, in exact numbers."""
    both = one.keys() | other.keys()
    pairs = [(Fraction(one.get(key, 0)), Fraction(other.get(key, 0))) for key in both]
    union = sum(max(pair) for pair in pairs)
    if not one or not other or not union:
        return 0.0
    return float(sum(min(pair) for pair in pairs) / union)


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        # S4
        (plain("chan:qq", "part:morning"), plain("chan:qq", "part:evening"), 1.0 / 1.4),
        (
            plain("chan:qq", "peer:a", "part:morning"),
            plain("chan:qq", "peer:b", "part:morning"),
            0.375,
        ),
        (
            plain("chan:qq", "peer:a", "part:morning", "tool:t"),
            plain("chan:qq", "peer:b", "part:morning", "tool:t"),
            0.5,
        ),
        (
            plain("chan:qq", "peer:a", "part:morning", "tool:t", "topic:x"),
            plain("chan:qq", "peer:b", "part:morning", "tool:t", "topic:x"),
            2.4 / 4.4,
        ),
        (plain("chan:qq", "peer:a", "part:morning"), plain("chan:wx", "peer:a", "part:morning"), 0.375),
        *(
            (
                plain("chan:qq", "part:m", *(f"topic:a{n}" for n in range(fresh))),
                plain("chan:qq", "part:m", *(f"topic:b{n}" for n in range(fresh))),
                1.2 / (1.2 + 0.8 * fresh),
            )
            for fresh in (1, 2, 3)
        ),
        ({"a": 1.0}, {"b": 1.0}, 0.0),
        ({"a": 3}, {"a": 1}, 1 / 3),
        # NUM-03
        ({}, {}, 0.0),
        ({"a": 1.0}, {}, 0.0),
        ({"a": 0.0, "b": 0}, {"a": 0.0}, 0.0),
        ({"a": 1.0}, {"a": 0.0}, 0.0),
    ],
)
def test_similarity_is_weighted_jaccard(one, other, value):
    assert similarity(one, other) == close(value)
    assert similarity(other, one) == close(value)


@settings(max_examples=400)
@given(weights, weights)
def test_similarity_equals_the_definition(one, other):
    value = similarity(one, other)

    assert value == close(jaccard(one, other))
    assert value == close(similarity(other, one))
    assert 0.0 <= value <= 1.0


def test_similarity_never_exceeds_one():
    """Sums of floats in two orders may differ in the last place."""
    one = plain("peer:a", "chan:b", "tool:c", "topic:d", "part:e")

    assert all(
        similarity(few, few) <= 1.0
        for size in range(1, 6)
        for few in (dict(items) for items in itertools.permutations(one.items(), size))
    )


@given(weights)
def test_what_has_weight_is_wholly_similar_to_itself(one):
    expected = 1.0 if any(one.values()) else 0.0

    assert similarity(one, dict(reversed(one.items()))) == close(expected)


@pytest.mark.parametrize("huge", [1.7e308, 10**308, 5e-324])
def test_similarity_neither_overflows_nor_vanishes(huge):
    one, other = {"a": huge, "b": huge, "c": huge}, {"a": huge}

    assert similarity(one, other) == close(1 / 3)
    assert similarity(one, one) == close(1.0)


@pytest.mark.parametrize("weight", NOT_WEIGHTS, ids=NAMES_OF_NOT_WEIGHTS)
def test_similarity_refuses_what_is_no_weight_by_name(weight):
    """NUM-01."""
    bad, good = {"topic:menu": weight}, {"topic:menu": 1.0}

    for one, other in ((bad, good), (good, bad), (bad, {}), ({}, bad)):
        with pytest.raises(InvalidInput, match="topic:menu"):
            similarity(one, other)


# ---- score


def test_soft_features_may_draw_together_and_never_keep_apart():
    here = Situation.of(chan="qq", tool="t", topics=["a", "b", "c"], part="night")
    same_words = {"tool:u": 0.8, "chan:qq": 1.0, "topic:a": 0.4, "topic:b": 0.4}
    other_words = {"chan:qq": 1.0, "tool:t": 0.8, **{f"topic:x{number}": 0.4 for number in range(50)}}

    assert score(here, other_words) == 1.0
    assert score(here, same_words) > similarity({"chan:qq": 1.0, "tool:t": 0.8}, {"chan:qq": 1.0, "tool:u": 0.8})


def test_a_situation_without_identity_is_compared_by_its_soft_features():
    assert score(Situation.of(topics="a"), {"topic:a": 0.4, "part:night": 0.2}) == close(0.4 / 0.6)
    assert score(Situation.of(topics="a"), {"chan:qq": 1.0}) == 0.0


def test_nothing_is_not_similar_to_nothing():
    """NUM-03."""
    assert score(Situation(), {}) == 0.0
    assert score(Situation(), {"chan:qq": 1.0}) == 0.0
    assert score(Situation.of(chan="qq"), {}) == 0.0
    assert score(Situation.of(chan="qq"), {"chan:qq": 0.0}) == 0.0


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_a_score_of_a_half_on_paper_is_a_half(shares, random):
    """E8: a profile with as much foreign weight as own, in whatever pieces and order."""
    here = Situation.of(chan="qq", tool=["a", "b", "c"], peer=["d", "e"])
    foreign = {f"tool:x{number}": 3.0 * share / sum(shares) for number, share in enumerate(shares)}
    profile = [*here.weights.items(), *foreign.items()]
    random.shuffle(profile)

    assert sum(here.weights.values()) == close(3.0)
    assert score(here, dict(profile)) == 0.5


def test_a_scene_that_met_many_topics_still_fits_its_own_situation():
    """NUM-04."""
    visits = 70
    profile = {"chan:qq": 1.0, **{f"topic:word{number}": 0.4 / 3 / visits for number in range(200)}}
    here = Situation.of(chan="qq", topics=[f"word{number}" for number in range(5)])

    assert score(here, profile) == 1.0
    assert may_join(here, profile)


def test_groups_that_share_only_the_agent_stay_apart():
    """NUM-04."""
    one = Situation.of(peer_group="family", peer=["me", "assistant"])
    other = Situation.of(peer_group="work", peer=["me", "assistant"])

    assert score(one, other.weights) == 0.0
    assert not may_join(one, other.weights)


@given(st.lists(features, max_size=8), st.dictionaries(st.sampled_from("abcd").map("topic:{}".format), st.floats(0, 9)))
def test_a_score_does_not_depend_on_the_order_of_features(given_features, profile):
    """NUM-04."""
    profile = {"chan:a": 1.0, **profile, "peer:b": 0.3}

    assert score(Situation(given_features), profile) == score(
        Situation(given_features[::-1]), dict(reversed(profile.items()))
    )


# ---- vetoes


@pytest.mark.parametrize(
    ("here", "scene", "joins"),
    [
        ({"chan": "qq"}, ["chan:qq"], True),
        ({"chan": "qq"}, ["chan:wx"], False),
        ({"chan": ["qq", "wx"]}, ["chan:wx", "chan:tg"], True),
        ({"chan": "qq"}, ["tool:t"], True),
        ({"tool": "t"}, ["chan:qq", "tool:t"], True),
        ({"chan": "qq", "peer": "a"}, ["chan:qq", "peer:a"], True),
        ({"chan": "qq", "peer": "a"}, ["chan:wx", "peer:a"], False),
        ({"peer": "a"}, ["chan:qq", "peer:a"], True),
        ({"chan": "qq", "peer": "a"}, ["chan:qq", "peer:b"], False),
        ({"chan": "qq", "peer": "a"}, ["chan:qq"], False),
        ({"chan": "qq"}, ["chan:qq", "peer:a"], False),
        ({"peer": ["a", "b"]}, ["peer:b", "peer:a"], True),
        ({"peer": ["a", "b"]}, ["peer:a"], False),
        ({"peer": "a"}, ["peer:a", "peer:b"], False),
        ({"chan": "qq", "peer_group": "g"}, ["chan:qq", "peer_group:g"], True),
        ({"chan": "qq", "peer_group": "g"}, ["chan:qq", "peer_group:h"], False),
        ({"chan": "qq", "peer_group": "g"}, ["chan:qq"], False),
        ({"chan": "qq"}, ["chan:qq", "peer_group:g"], False),
        ({"peer": "a", "peer_group": "g"}, ["peer:a"], False),
        ({"peer": "a", "peer_group": "g"}, ["peer:a", "peer_group:g"], True),
        ({"peer": "x"}, ["peer_group:x"], False),
    ],
)
def test_a_situation_joins_a_scene_of_the_same_people_on_no_foreign_channel(here, scene, joins):
    assert may_join(Situation.of(**here), scene) is joins


@pytest.mark.parametrize(
    ("here", "scene", "ground"),
    [
        # a scene of people answers where one of them is named, whatever else differs
        ({"peer": "a"}, ["peer:a"], "person"),
        ({"peer": "a", "chan": "wx", "tool": "u"}, ["peer:a", "chan:qq", "tool:t"], "person"),
        ({"peer": ["a", "c"]}, ["peer:a", "peer:b"], "person"),
        ({"peer": "b", "chan": "qq"}, ["peer:a", "chan:qq"], ""),
        ({"chan": "qq"}, ["peer:a", "chan:qq"], ""),
        ({}, ["peer:a"], ""),
        # a scene of groups alone answers where one of them is named
        ({"peer_group": "g"}, ["peer_group:g"], "person"),
        ({"peer_group": "g", "peer": "a", "chan": "wx"}, ["peer_group:g", "chan:qq"], "person"),
        ({"peer_group": "h", "chan": "qq"}, ["peer_group:g", "chan:qq"], ""),
        ({"chan": "qq"}, ["peer_group:g", "chan:qq"], ""),
        ({"peer": "g", "chan": "qq"}, ["peer_group:g", "chan:qq"], ""),
        # people and groups: a person is asked for, and differing groups veto
        ({"peer": "a", "peer_group": "g"}, ["peer:a", "peer_group:g"], "person"),
        ({"peer": "a"}, ["peer:a", "peer_group:g"], "person"),
        ({"peer": "a", "peer_group": "g"}, ["peer:a"], "person"),
        ({"peer": "a", "peer_group": "h"}, ["peer:a", "peer_group:g"], ""),
        ({"peer_group": "g"}, ["peer:a", "peer_group:g"], ""),
        ({"peer": "b", "peer_group": "g"}, ["peer:a", "peer_group:g"], ""),
        # a scene of nobody: vetoed only where both name channels and share none
        ({"chan": "qq"}, ["chan:qq"], "score"),
        ({"chan": "qq", "peer": "a"}, ["chan:qq"], "score"),
        ({"chan": "qq", "peer": "a", "peer_group": "g"}, ["chan:qq", "tool:t"], "score"),
        ({"chan": "wx", "tool": "t"}, ["chan:qq", "tool:t"], ""),
        ({"chan": ["qq", "wx"]}, ["chan:wx", "chan:tg"], "score"),
        ({"tool": "t"}, ["chan:qq", "tool:t"], "score"),
        ({"chan": "qq"}, ["tool:t"], "score"),
    ],
)
def test_a_scene_answers_only_where_its_people_may_be_recalled(here, scene, ground):
    assert recall_ground(Situation.of(**here), scene) == ground


# ---- what a scene keeps


def kept_features(features, config):
    """Return which features a scene keeps, given the mass and the last visit of each."""
    return features.keys() - set(surplus_features(features, config))


def test_a_scene_of_up_to_64_features_keeps_all():
    features = {f"topic:{number}": (0.001, 1) for number in range(64)}

    assert kept_features(features, Config()) == set(features)


def test_a_new_word_finds_room_among_heavy_old_ones():
    old = {f"topic:old{number:02}": (10.0 + number, 5) for number in range(64)}
    kept = kept_features({"chan:qq": (20.0, 100), **old, "topic:new": (0.01, 100)}, Config())

    assert len(kept) == 64
    assert old.keys() - kept == {"topic:old00", "topic:old01"}


def test_people_are_kept_before_channels_before_heavier_tools():
    tools = {f"tool:{number:02}": (100.0 + number, 9) for number in range(60)}
    channels = {f"chan:{number:02}": (10.0 + number, 1) for number in range(20)}
    people = {f"peer:{number:02}": (1.0 + number, 1) for number in range(20)}
    kept = kept_features({**tools, **channels, **people}, Config())

    assert people.keys() | channels.keys() <= kept
    assert tools.keys() - kept < {f"tool:{number:02}" for number in range(40)}


def test_behind_people_and_channels_identity_features_are_kept_by_mass_alone():
    config = Config(weights={"room": 0.9}, scene_features=6, scene_identity_features=4, scene_recent_features=1)
    rooms = {f"room:{number}": (10.0, 1) for number in range(4)}
    tools = {f"tool:{number}": (1.0, 1) for number in range(4)}
    late = {"topic:late": (0.1, 9), "topic:later": (0.1, 10)}
    kept = kept_features({**tools, **rooms, **late}, config)

    assert rooms.keys() <= kept


def test_of_many_people_48_then_16_recent_are_kept():
    people = {f"peer:{number:03}": (1.0 + number, 1) for number in range(100)}
    topics = {f"topic:{number:03}": (0.01, 100 + number) for number in range(40)}
    kept = kept_features({**people, **topics}, Config())

    assert kept == {f"peer:{number:03}" for number in range(52, 100)} | {f"topic:{n:03}" for n in range(24, 40)}


def test_what_room_remains_goes_to_the_heaviest():
    old = {f"topic:old{number:03}": (float(number), 1) for number in range(100)}
    recent = {f"topic:new{number:02}": (0.5, 50) for number in range(16)}
    kept = kept_features({"peer:a": (60.0, 60), "chan:qq": (50.0, 60), **old, **recent}, Config())

    assert kept == {"peer:a", "chan:qq", *recent, *(f"topic:old{number:03}" for number in range(54, 100))}


def keep_by_the_design(features):
    """Keep in the order of the design, where all masses differ."""

    def of(kind):
        return sorted((key for key in features if kind_of(key) == kind), key=by_mass)

    def by_mass(key):
        return -features[key][0]

    def by_last_touch(key):
        return -features[key][1], by_mass(key)

    kept = [*of("peer"), *of("chan"), *of("tool")][:48]
    kept += sorted(features.keys() - set(kept), key=by_last_touch)[:16]
    kept += sorted(features.keys() - set(kept), key=by_mass)
    return set(kept[:64])


@given(st.tuples(*(st.integers(0, most) for most in (70, 40, 40, 80))), st.randoms(use_true_random=False))
def test_a_scene_keeps_what_the_design_says(counts, random):
    kinds = ("peer", "chan", "tool", "topic")
    keys = [f"{kind}:{number}" for kind, count in zip(kinds, counts, strict=True) for number in range(count)]
    masses = random.sample(range(1, 1000), len(keys))
    features = {key: (mass / 7, random.randint(1, 50)) for key, mass in zip(keys, masses, strict=True)}

    kept = kept_features(features, Config())

    assert kept == keep_by_the_design(features)
    assert len(kept) == min(len(features), 64)


# ---- times


@pytest.mark.parametrize(
    ("value", "zone", "stored"),
    [
        # TIM-02
        ("2026-03-01T09:00:00+08:00", NEW_YORK, "2026-03-01T01:00:00.000Z"),
        ("2026-03-01T02:00:00+00:00", NEW_YORK, "2026-03-01T02:00:00.000Z"),
        ("2026-03-01T02:00:00Z", NEW_YORK, "2026-03-01T02:00:00.000Z"),
        ("2026-03-01 09:00:00", dt.UTC, "2026-03-01T09:00:00.000Z"),
        ("2026-03-01 09:00:00", SHANGHAI, "2026-03-01T01:00:00.000Z"),
        ("2026-03-01 09:00:00", NEW_YORK, "2026-03-01T14:00:00.000Z"),
        ("2026-03-08 09:00:00", NEW_YORK, "2026-03-08T13:00:00.000Z"),
        ("2026-03-08 01:30:00", NEW_YORK, "2026-03-08T06:30:00.000Z"),
        *((date, zone, "2026-03-01T00:00:00.000Z") for date in ("2026-03-01", " 2026-03-01 ", "20260301", "2026-W09-7")
          for zone in (dt.UTC, SHANGHAI, NEW_YORK)),
        (dt.datetime.fromisoformat("2026-03-01T09:00"), SHANGHAI, "2026-03-01T01:00:00.000Z"),
        (dt.datetime(2026, 3, 1, 9, tzinfo=NEW_YORK), SHANGHAI, "2026-03-01T14:00:00.000Z"),
        ("2026-03-01T09:00:00.123456Z", SHANGHAI, "2026-03-01T09:00:00.123Z"),
        ("0999-03-01T09:00:00Z", SHANGHAI, "0999-03-01T09:00:00.000Z"),
    ],
)  # fmt: skip
def test_times_are_stored_as_utc_text_and_a_bare_date_stays_that_date(value, zone, stored):
    moment = read_time(value, zone)

    assert moment.utcoffset() == dt.timedelta(0)
    assert utc_text(moment) == stored


def test_the_time_zone_of_the_process_plays_no_part(monkeypatch):
    """TIM-02: on a day of the change to summer time."""
    naive = "2026-03-08 02:30:00"
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "America/New_York")
        time.tzset()
        texts = [utc_text(read_time(value, SHANGHAI)) for value in (naive, dt.datetime.fromisoformat(naive))]
    time.tzset()

    assert texts == ["2026-03-07T18:30:00.000Z"] * 2


@given(st.datetimes(*FAR_APART, timezones=st.timezones()), st.timezones())
def test_text_orders_as_instants_do_and_has_one_width(moment, zone):
    later = moment.astimezone(dt.UTC) + dt.timedelta(milliseconds=1)
    text = utc_text(read_time(moment, zone))

    assert len(text) == 24
    assert text < utc_text(later)
    assert read_time(text, zone) == moment.astimezone(dt.UTC).replace(microsecond=moment.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    "value",
    ["", "yesterday", "2026-13-01", "2026-02-30", 5, None, True, b"2026-03-01", "0001-01-01T00:00:00+14:00",
     "9999-12-31T23:59:59-10:00", dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1)))],
)  # fmt: skip
def test_what_is_no_time_is_refused_by_name(value):
    with pytest.raises(InvalidInput, match="since = "):
        read_time(value, dt.UTC, argument="since")


# ---- settings


def refused(name):
    return pytest.raises(InvalidInput, match=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *itertools.product(
            ("other_weight", "identity_floor", "join_score", "recall_score", "evidence_days", "busy_timeout"),
            (math.nan, math.inf, -1, True, "0.5", None),
        ),
        *itertools.product(("join_score", "recall_score"), (0, 1.01)),
        ("other_weight", 0),
        ("evidence_days", 10**400),
        *itertools.product(
            ("visits_to_grow", "situation_features", "scene_features", "scene_recent_features"),
            (0, -1, 1.5, True, "2", None, math.nan),
        ),
        ("scene_identity_features", 49),
        *(("timezone", zone) for zone in ("", "Mars/Base", "../../etc/passwd", "Asia", 5, None, "a\0b")),
        *(("weights", weights) for weights in ({"chan": math.nan}, {"topic": -1}, {"x": "1"}, {"x": 0}, None, [1])),
        *(("self_names", names) for names in ("jarvis", None, 5, [5])),
        ("durable", "no"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(name, value):
    with refused(name):
        Config(**{name: value})


def test_weights_that_are_not_given_keep_their_default():
    config = Config(weights={"topic": 0.7, "mood": 0.1})

    assert [config.weight_of(kind) for kind in ("chan", "topic", "mood", "other")] == [1.0, 0.7, 0.1, 0.4]


def test_defaults_are_those_of_the_design():
    config = Config()

    assert (config.join_score, config.recall_score, config.identity_floor) == (0.5, 0.35, 0.5)
    assert (config.visits_to_grow, config.evidence_days, config.situation_features) == (2, 30, 24)
    assert (config.scene_features, config.scene_identity_features, config.scene_recent_features) == (64, 48, 16)
    assert not config.durable
    assert Config.load(environ={}) == config


@pytest.fixture
def settings_file(tmp_path):
    path = tmp_path / "graphmem.toml"
    path.write_text(
        "join_score = 0.6\nrecall_score = 0.4\nvisits_to_grow = 3\nevidence_days = 7\n"
        'timezone = "Asia/Shanghai"\nself_names = ["jarvis"]\n[weights]\ntool = 0.9\n',
        "utf-8",
    )
    return path


def test_arguments_win_over_the_environment_over_the_file(settings_file):
    environ = {"GRAPHMEM_JOIN_SCORE": "0.7", "GRAPHMEM_RECALL_SCORE": "0.45", "GRAPHMEM_DB": "/somewhere", "PATH": ""}
    config = Config.load(settings_file, environ, join_score=0.8)

    assert (config.join_score, config.recall_score, config.visits_to_grow) == (0.8, 0.45, 3)
    assert (config.timezone, config.self_names, config.evidence_days) == ("Asia/Shanghai", {"jarvis"}, 7)
    assert (config.weight_of("tool"), config.weight_of("chan")) == (0.9, 1.0)


def test_the_process_environment_is_read_by_default(monkeypatch):
    monkeypatch.setenv("GRAPHMEM_TIMEZONE", "Europe/Berlin")
    monkeypatch.setenv("GRAPHMEM_DURABLE", "True")

    assert Config.load() == Config(timezone="Europe/Berlin", durable=True)


@pytest.mark.parametrize(
    ("text", "durable"), [("1", True), ("true", True), (" TRUE ", True), ("0", False), ("false", False)]
)
def test_truth_in_the_environment(text, durable):
    assert Config.load(environ={"GRAPHMEM_DURABLE": text}).durable is durable


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DURABLE", "yes"),
        ("JOIN_SCORE", "half"),
        ("JOIN_SCORE", ""),
        ("JOIN_SCORE", "nan"),
        ("VISITS_TO_GROW", "2.0"),
        ("VISITS_TO_GROW", "0"),
        ("TIMEZONE", "Nowhere"),
    ],
)
def test_a_variable_that_cannot_be_used_is_refused_by_name(name, text):
    with refused(f"(?i){name}"):
        Config.load(environ={f"GRAPHMEM_{name}": text})


def test_an_unknown_setting_is_refused_by_name(tmp_path):
    path = tmp_path / "graphmem.toml"
    path.write_text("colour = 1\n", "utf-8")

    with refused("colour"):
        Config.load(path, {})
    with refused("flavour"):
        Config.load(environ={}, flavour=1)


@pytest.mark.parametrize("content", [b"join_score =", b"\xff\xfe", b"join_score = 2\n", b"weights = 1\n"])
def test_a_file_that_cannot_be_used_is_refused(tmp_path, content):
    path = tmp_path / "graphmem.toml"
    path.write_bytes(content)

    with pytest.raises(InvalidInput):
        Config.load(path, {})


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_refused_by_its_path(tmp_path, name):
    with pytest.raises(InvalidInput, match="cannot be read"):
        Config.load(tmp_path / name, {})
