"""Recall by words: what is found, in which order, by whom, and why."""

import itertools
import json
import random
import re
import sqlite3
import subprocess
import sys
import unicodedata

import pytest
from support import place_of

from graphmem import Config, InvalidInput, Memory, Part, Situation, Triple
from graphmem.core.tokens import is_stop_token, tokens_of
from graphmem.graph import found
from graphmem.graph.found import Holding
from graphmem.records import history, provenance, standing
from graphmem.records.history import Turn
from graphmem.store import text_index

EVERYTHING = ["note", "relation", "part", "document", "block", "entity", "scene"]
ALICE = Situation.of(chan="qq", peer="alice")
BOB = Situation.of(chan="qq", peer="bob")


def texts(hits):
    return [hit.text for hit in hits]


def titles(hits):
    return [hit.text.split("\n")[0] for hit in hits]


def ids(hits):
    return [hit.id for hit in hits]


def say(memory, *said, session="s1", author="ann", scope=None, start=0):
    """Mirror what was said, in order, under the ids 0, 1, 2 and so on."""
    parts = [Part(id=str(start + place), author=author, text=text) for place, text in enumerate(said)]
    memory.mirror(session, parts, scope=scope)


# ---- every script

SENTENCES = {
    "Latin with accents": (
        "Le garçon préfère les crêpes à Orléans",
        ["crêpes", "crepes", "ORLÉANS", "pre\u0301fe\u0300re"],
    ),
    "Cyrillic": ("Сервер перезапускается каждую ночь", ["сервер", "НОЧЬ", "каждую"]),
    "Greek": ("Ο διακομιστής βρίσκεται στην Αθήνα", ["Αθήνα", "ΑΘΗΝΑ", "διακομιστής"]),
    "Arabic": ("الخادم موجود في القاهرة", ["القاهرة", "الخادم", "القَاهِرة"]),
    "Hebrew": ("השרת נמצא בירושלים", ["השרת", "בירושלים", "הַשֶּׁרֶת"]),
    "Devanagari": ("सर्वर दिल्ली में स्थित है", ["दिल्ली", "सर्वर"]),
    "Thai": ("เซิร์ฟเวอร์อยู่ที่กรุงเทพ", ["กรุงเทพ", "เซิร์ฟเวอร์"]),
    "Hangul": ("서버는 서울에 있습니다", ["서울", "서버", unicodedata.normalize("NFD", "서울")]),
    "kana": ("サーバーはとうきょうにあります", ["サーバー", "とうきょう", "ｻｰﾊﾞｰ"]),
    "Simplified": ("网关部署在杭州机房", ["网关", "部署", "杭州机房"]),
    "Traditional": ("閘道器佈署於臺北機房", ["閘道器", "臺北", "佈署"]),
    "Ext-B ideographs": ("𠮷野𠀋𡈽㐂寿", ["𠮷野", "𡈽", "㐂寿"]),
    "emoji": ("🎉 🦩 🚀", ["🎉", "🦩🚀"]),
    "mixed code": (
        "run getUserName() at v1.2 via gateway/run.py",
        ["getUserName", "username", "v1.2", "run.py", "gateway"],
    ),
}


@pytest.fixture
def babel(memory):
    for script, (sentence, _) in SENTENCES.items():
        memory.remember(script, body=sentence)
    return memory


MATRIX = [(script, query) for script, (_, queries) in SENTENCES.items() for query in queries if query != "username"]


@pytest.mark.parametrize(("script", "query"), MATRIX)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_a_sentence_is_found_by_its_words_and_by_no_other_script(babel, script, query, mode):
    assert titles(babel.recall(query, mode=mode)) == [script]


WRITES = {
    "note": lambda m, text: m.remember(text),
    "part": lambda m, text: m.mirror(text, [Part(id=text, text=text)]),
    "block": lambda m, text: m.put_block(text),
    "document": lambda m, text: m.put_document(text),
    "relation": lambda m, text: m.commit([Triple(text[:9], "zz", text[-9:], sentence=text)]),
}


@pytest.mark.parametrize("kind", WRITES)
def test_every_kind_of_text_is_found_in_every_script(memory, kind):
    for sentence, _ in SENTENCES.values():
        WRITES[kind](memory, sentence)
    for script, query in MATRIX:
        assert SENTENCES[script][0] in memory.recall(query, kinds=kind)[0].text
        (hit,) = memory.recall(query, kinds=kind, mode="keyword")
        assert SENTENCES[script][0] in hit.text


@pytest.mark.parametrize("query", ["今晚", "部署", "网关", "八点", "部署新网关", "点部", "晚", "关"])
def test_chinese_is_found_by_any_piece_of_it(memory, query):  # FTS-04
    memory.remember("今晚八点部署新网关")
    memory.remember("昨天的会取消了")
    assert titles(memory.recall(query))[0] == "今晚八点部署新网关"


@pytest.mark.parametrize(
    "query",
    [
        "multi-agent",
        "it's",
        "gateway/run.py",
        "user@host",
        "38.101",
        "a AND",
        "NOT",
        "NEAR(",
        'a"b',
        "chan:qq/peer:group_1",
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_everyday_text_is_no_query_language(memory, query, mode):  # FTS-01
    memory.remember("unrelated")
    memory.remember(f"we saw {query} today")
    assert titles(memory.recall(query, mode=mode))[:1] == [f"we saw {query} today"]


@pytest.mark.parametrize("query", ["build", "x7", "build-x7", "BUILD-X7", "清零"])
def test_an_identifier_glued_to_chinese_is_found(memory, query):  # FTS-05
    memory.remember("重跑build-x7后清零")
    assert titles(memory.recall(query)) == ["重跑build-x7后清零"]


@pytest.mark.parametrize("query", ["", "   ", "*", '"', "!!!", "。。", "\u200b"])
def test_a_query_without_words_is_refused_and_tells_so(memory, query):  # FTS-02
    memory.remember("something")
    with pytest.raises(InvalidInput, match="nothing to search for"):
        memory.recall(query)


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("peer 학점인정", unicodedata.normalize("NFD", "학점인정")),
        ("Cafe\u0301 au lait", "Café"),
        ("ガラス", unicodedata.normalize("NFD", "ガラス")),
        ("ＵＳＢ集线器", "USB集线器"),
        ("テスト", "ﾃｽﾄ"),
        ("bo\u00adb comes", "bob"),
        ("bob comes", "\ufeffbob"),
        ("bob comes", "bo\u200bb\u202e"),
        ("𠮷野さん", "𠮷野"),
        ("㐂寿司の店", "㐂寿"),
        ("かな", "かな"),
    ],
)
def test_other_spellings_of_a_word_find_it_and_it_is_shown_as_written(memory, stored, query):  # KEY-07, 08, 11, 15
    memory.remember("title", body=stored)
    memory.commit([Triple(stored, "is", "here")])
    for kind in ("note", "relation", "entity"):
        (hit,) = memory.recall(query, kinds=kind)
        assert stored in hit.text


# ---- whatever is typed

PIECES = [
    "redis", "gateway/run.py", "GOALS.md", "v1.2", "build-x7", "getUserName", "C++", "user@host", "部署网关",
    "杭州机房", "café", "сервер", "서버", "サーバー", "🎉",
    "9router", "chan:qq/peer:group_1", "it's", "80%", "C:\\temp\\a.txt",
    "YouTube", "TypeScript", "pnpm", "周报", "排班表", "会议室", "Müller", "naïve", "O'Brien", "$PATH",
]  # fmt: skip
NOISE = ['"', "'", "AND", "OR", "NOT", "NEAR(", ")", "*", "^", ":", "-", "title:", "\0", "\ud83d", "--", "/*", "%", "_",
         "{", "}", "\\", "\n", "\t", "(", "«", "”", "’", "的", "是什么", "the", "?", "？",
         "。", "+", "~", "|", "&"]  # fmt: skip


def everyday_texts(rng, number):
    plain = [
        "server",
        "restarts",
        "night",
        "coffee",
        "red",
        "blue",
        "今天",
        "下雨",
        "小王",
        "买了",
        "苹果",
        "lives",
        "near",
    ]
    return [
        " ".join(rng.choices(plain, k=rng.randint(2, 8)) + rng.choices(PIECES, k=rng.randint(1, 3)))
        for _ in range(number)
    ]


def everyday_queries(rng, number):
    for _ in range(number):
        parts = rng.choices(PIECES, k=rng.randint(0, 2)) + rng.choices(NOISE, k=rng.randint(0, 4))
        rng.shuffle(parts)
        query = rng.choice([" ", "", " "]).join(parts)
        if rng.random() < 0.1:
            start = rng.randrange(len(query) + 1)
            query = query[start:]
        yield query


def plain_scan(query, stored):
    """What a reader finds with the eye: a casefolded whole word, or two and more characters of Chinese."""
    asked = unicodedata.normalize("NFKC", query).casefold()
    words = set(re.findall(r"[^\W_\u3040-\u9fff]{2,}", asked))
    runs = {run[i : i + 2] for run in re.findall(r"[\u4e00-\u9fff]{2,}", asked) for i in range(len(run) - 1)}
    return [
        text
        for text in stored
        if words & set(re.findall(r"[^\W_\u3040-\u9fff]{2,}", text.casefold()))
        or any(run in text.casefold() for run in runs)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_no_everyday_query_fails_or_comes_back_empty_where_a_plain_scan_finds_its_words(memory, seed):
    rng = random.Random(seed)
    stored = everyday_texts(rng, 300)
    memory.mirror("s", [Part(id=str(number), text=text) for number, text in enumerate(stored)])
    for query in everyday_queries(rng, 500):
        try:
            hits = memory.recall(query, mode=rng.choice(["hybrid", "hybrid", "vector"]))
        except InvalidInput as error:
            assert "nothing to search for" in str(error)  # noqa: PT017 (most queries raise nothing)
            hits = ()
        # Stop words alone find only who says them so (C8.5).
        if plain_scan(query, stored) and not all(map(is_stop_token, tokens_of(query))):
            assert hits, f"nothing for {query!r}"


def test_every_text_is_found_by_all_of_its_words(memory):
    stored = everyday_texts(random.Random(5), 300)
    memory.mirror("s", [Part(id=str(number), text=text) for number, text in enumerate(stored)])
    for number, text in enumerate(stored):
        assert str(number) in ids(memory.recall(text, mode="keyword", limit=300))
        assert text in texts(memory.recall(text, limit=20)) + texts(memory.recall(text, limit=1, mode="vector"))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [{"precise": True}, {"mode": "keyword"}, {"mode": "graph"}, {"situation": ALICE}])
def test_no_everyday_query_fails_in_any_mode(memory, seed, options):
    rng = random.Random(seed)
    for text in everyday_texts(rng, 40):
        memory.remember(text[:40], body=text, labels=rng.choices(PIECES, k=2))
    memory.commit(
        [Triple(one, "uses", other) for one, other in itertools.pairwise(PIECES)], scenes="chan:qq/peer:alice"
    )
    for query in everyday_queries(rng, 150):
        try:
            memory.recall(query, **options)
        except InvalidInput as error:
            assert "nothing to search for" in str(error)  # noqa: PT017


@pytest.mark.parametrize("options", [{}, {"mode": "keyword"}, {"mode": "vector"}, {"mode": "graph"}, {"precise": True}])
def test_a_pasted_log_of_100_kb_is_a_query(memory, options):
    rng = random.Random(7)
    stored = everyday_texts(rng, 200)
    memory.mirror("s", [Part(id=str(number), text=text) for number, text in enumerate(stored)])
    memory.remember("redis", body="the cache")
    memory.commit([Triple("redis", "runs on", "杭州机房")])
    paste = " ".join(f"{rng.choice(PIECES)} w{rng.randrange(10**6)} {rng.choice(NOISE)}" for _ in range(6_000))[
        :100_000
    ]
    hits = memory.recall(paste, **options)
    assert options.get("mode") == "keyword" or options.get("precise") or hits


def test_two_thousand_known_words_are_a_query(memory):
    for first in range(0, 2_000, 100):
        memory.mirror(
            "s", [Part(id=str(first), text=" ".join(f"wörd{number}" for number in range(first, first + 100)))]
        )
    assert len(memory.recall(" ".join(f"wörd{number}" for number in range(2_000)), limit=50)) == 20


@pytest.mark.parametrize("bad", ["\ud83d", "\0", "ok \ud83d"])
def test_half_an_emoji_is_stored_as_lost_and_the_others_untouched(memory, bad):  # TXT-01
    report = memory.mirror("s", [Part(id=str(n), text=f"word{n}" if n else f"{bad} pelican") for n in range(10)])
    assert report.added == 10
    assert report.remarks
    assert "\ufffd" in memory.recall("pelican")[0].text
    assert all(ids(memory.recall(f"word{n}"))[:1] == [str(n)] for n in range(1, 10))


# ---- fields, lengths, words


def test_a_word_of_a_title_counts_more_than_one_of_labels_and_that_more_than_one_of_the_body(memory):  # C8.6
    body = "the tool of this house is chosen by vote"  # the same in all: rare words that some share would lift these
    memory.remember("one", body=f"{body} pnpm")
    memory.remember("two", body=body, labels=["pnpm"])
    memory.remember("pnpm", body=body)
    memory.remember("three", body=body, slot="pnpm")
    hits = titles(memory.recall("pnpm"))
    assert set(hits[:2]) == {"pnpm", "three"}
    assert hits[2:] == ["two", "one"]


def test_a_short_text_goes_before_a_long_one_that_says_it_once(memory):
    for number, text in enumerate(["the pelican " + "and much more about boats " * 6, "a pelican"]):
        say(memory, text, session=text, start=number)
    assert ids(memory.recall("pelican")) == ["1", "0"]


@pytest.mark.parametrize("place", [0, 50, 400, 799])
def test_a_long_text_is_found_by_any_passage(memory, place):
    lines = [f"Line number {number} says nothing of note here." for number in range(800)]
    lines[place] += " The pelican landed."
    memory.put_document("\n".join(lines), summary="log")
    memory.remember("log of a day", body="\n".join(lines))
    memory.mirror("s", [Part(id="m", text="\n".join(lines))])
    hits = memory.recall("pelican landed")
    assert {hit.kind for hit in hits} == {"document", "note", "part"}
    (document,) = (hit for hit in hits if hit.kind == "document")
    assert "The pelican landed." in document.text


def test_a_common_word_still_counts(memory):
    """An inverse frequency that reaches zero would find nothing by a word that every text holds."""
    for number in range(20):
        memory.remember(f"redis {number}")
    hits = memory.recall("redis", limit=20)
    assert len(hits) == 20
    assert all(hit.score > 0 for hit in hits)


def test_a_rare_word_says_more_than_a_common_one(memory):
    say(memory, *[f"deploy {number}" for number in range(20)], "albatross")
    assert memory.recall("deploy albatross")[0].text == "albatross"


def test_words_side_by_side_count_more_than_apart(memory):
    memory.remember("the lamp is red and the table large")
    memory.remember("the red lamp is on and table large")
    assert titles(memory.recall("red lamp"))[0] == "the red lamp is on and table large"


def test_a_misspelt_word_finds_what_it_is_one_edit_from(memory):
    memory.remember("kubernetes runs")
    assert titles(memory.recall("kubernets")) == ["kubernetes runs"]
    assert memory.recall("kuxernexes") == ()


# ---- what stands around


def test_the_turn_beside_a_match_comes_before_an_unrelated_one(memory):
    say(memory, "Which city did you choose?", "Lisbon, in the end.", session="a")
    say(memory, "It rained.", "So we stayed in.", session="b", start=10)
    hits = memory.recall("city chosen or choose")
    assert ids(hits)[:2] == ["0", "1"]
    assert "10" not in ids(hits)


def test_a_neighbour_never_lies_in_another_session(memory):
    say(memory, "the pelican", session="a")
    say(memory, "an answer", session="b", start=1)
    assert ids(memory.recall("pelican")) == ["0"]


def test_of_two_equal_turns_that_of_the_session_about_it_comes_first(memory):
    say(memory, *["weather"] * 6, "the tickets are booked", *["weather"] * 6, session="a")
    say(
        memory,
        "we go to Lisbon",
        "Lisbon is warm",
        *["weather"] * 4,
        "the tickets are booked",
        "cold",
        session="b",
        start=100,
    )
    hits = memory.recall("tickets booked for Lisbon")
    assert ids(hits).index("106") < ids(hits).index("6")


def test_who_is_named_is_lifted_and_nobody_is_left_out(memory):
    for number, author in enumerate(["Caroline", "Melanie"]):
        say(memory, "I adopted a dog", session=author, author=author, start=number)
    assert ids(memory.recall("What did Caroline adopt?")) == ["0", "1"]
    assert ids(memory.recall("What did Melanie adopt?")) == ["1", "0"]
    assert len(memory.recall("What did nobody adopt?")) == 2


def test_the_wrong_speaker_does_not_hide_the_only_answer(memory):
    say(memory, "hello there", "nice day", author="Caroline", session="a")
    say(memory, "I bought a violin in Oslo", author="Melanie", session="b", start=10)
    assert ids(memory.recall("Where did Caroline buy the violin?"))[0] == "10"


@pytest.mark.parametrize(
    "query",
    [
        "report of May 2026",
        "report on 3 May 2026",
        "report 2026年5月",
        "report 2026-05-03",
        "report last May",
        "report 5月3日",
    ],
)
def test_a_named_time_lifts_what_was_said_then(memory, query):
    for month in (3, 4, 5, 6):
        memory.mirror(
            f"s{month}", [Part(id=str(month), text="the report is done", at=f"2026-{month:02d}-03T10:00:00Z")]
        )
    hits = memory.recall(query)
    assert ids(hits)[0] == "5"
    assert len(hits) == 4


@pytest.mark.parametrize(("query", "day"), [("report yesterday", "06"), ("昨天的report", "06"), ("report today", "07")])
def test_a_relative_time_is_reckoned_from_now(memory, query, day):
    for each in ("05", "06", "07"):
        memory.mirror(each, [Part(id=each, text="the report is done", at=f"2026-09-{each}T06:00:00Z")])
    assert ids(memory.recall(query))[0] == day


def test_the_scene_of_the_asker_is_lifted(memory):
    memory.commit([Triple("deploy", "uses", "bun")], scenes="chan:web")
    memory.commit([Triple("deploy", "uses", "npm")], scenes="chan:qq")
    for chan, first in (("web", "deploy uses bun"), ("qq", "deploy uses npm")):
        assert texts(memory.recall("deploy uses", situation=Situation.of(chan=chan)))[0] == first


def test_a_fact_two_hops_from_a_named_entity_is_found_below_the_direct_hit(memory):
    memory.commit(
        [Triple("Ann", "works at", "Acme"), Triple("Acme", "sits in", "Oslo"), Triple("Oslo", "has", "trams")]
    )
    memory.commit([Triple("Bob", "owns", "boat")])
    assert texts(memory.recall("Ann")) == ["Ann works at Acme", "Acme sits in Oslo"]
    assert texts(memory.recall("ann", mode="graph"))[:2] == ["Ann works at Acme", "Acme sits in Oslo"]


@pytest.mark.parametrize("fan", [1, 5, 40])
def test_a_direct_hit_goes_above_all_that_is_only_linked(memory, fan):
    memory.commit([Triple("Ann", "knows", f"friend {number}") for number in range(fan)])
    memory.commit([Triple(f"friend {number}", "likes", f"thing {number}") for number in range(fan)])
    memory.commit([Triple("weather", "was", "stormy", sentence="Ann saw a storm over the sea.")])
    assert memory.recall("Ann stormy weather", limit=1)[0].text.startswith("weather was stormy")
    hits = memory.recall("stormy sea of Ann", limit=50)
    assert hits[0].text.startswith("weather was stormy")


@pytest.mark.parametrize(
    "query",
    [
        "redis cache service",
        "What did Caroline say of the redis cache service?",
    ],
)
def test_the_neighbour_of_a_weak_match_stays_below_it_and_below_what_holds_every_word(memory, query):
    memory.remember("redis is our cache in every service")
    say(memory, "the cache is full", "ok then", author="Caroline")
    said = texts(memory.recall(query))
    assert said.index("redis is our cache in every service") < said.index("ok then")
    assert said.index("the cache is full") < said.index("ok then")


# ---- what it was before


def test_a_question_about_the_past_finds_the_note_that_was_replaced(memory):
    memory.remember("Deploy with npm", slot="deploy")
    memory.remember("Deploy with pnpm", slot="deploy")
    assert titles(memory.recall("deploy")) == ["Deploy with pnpm"]
    for query in ("what did pnpm replace for deploy?", "what was used to deploy previously?", "pnpm以前deploy用什么"):
        hit = memory.recall(query)[0]
        assert (hit.text, hit.status) == ("Deploy with npm", "superseded")


def test_a_question_about_the_past_finds_the_earlier_value_of_a_fact(memory, clock):
    memory.commit([Triple("Boss", "lives in", "Hangzhou", functional=True)])
    clock.advance(days=9)
    memory.commit([Triple("Boss", "lives in", "Chengdu", functional=True)])
    assert texts(memory.recall("where Boss lives")) == ["Boss lives in Chengdu"]
    hits = memory.recall("where did Boss live previously?")
    assert [(hit.text, hit.status) for hit in hits] == [
        ("Boss lives in Hangzhou", "superseded"),
        ("Boss lives in Chengdu", "active"),
    ]


def test_an_old_conversation_imported_late_does_not_change_what_holds(memory):  # TIM-03
    memory.commit([Triple("Boss", "lives in", "Hangzhou", functional=True, valid_from="2026-02-01")])
    memory.commit([Triple("Boss", "lives in", "Chengdu", functional=True, valid_from="2024-05-01")])
    assert texts(memory.recall("Boss lives")) == ["Boss lives in Hangzhou"]
    assert texts(memory.recall("Boss lives", as_of="2025-01-01")) == ["Boss lives in Chengdu"]
    assert memory.recall("Boss lives", as_of="2023-01-01") == ()


def test_precise_recall_never_returns_what_was_replaced(memory):
    memory.remember("npm", slot="deploy tool")
    memory.remember("pnpm", slot="deploy tool")
    assert titles(memory.recall("what did npm replace as deploy tool previously?", precise=True)) == ["pnpm"]


# ---- numbers


def test_an_exact_number_goes_before_what_shares_more_words(memory):  # B6, G3
    memory.remember("the metrics service and its port, the port of the metrics service")
    memory.remember("metrics服务端口8328")
    memory.remember("port 8328")
    assert titles(memory.recall("metrics service port 8328"))[0] in ("port 8328", "metrics服务端口8328")
    hits = titles(memory.recall("metrics服务的端口8328是多少"))
    assert hits[0] == "metrics服务端口8328"


def test_generic_words_alone_come_later_and_still_come(memory):  # G3
    memory.commit([Triple("metrics服务端口8328", "属于", "metrics服务"), Triple("服务", "使用", "端口")])
    hits = texts(memory.recall("metrics服务的端口是多少"))
    assert hits[0].startswith("metrics服务端口8328")
    assert "服务 使用 端口" in hits


@pytest.mark.parametrize("query", ["端口 13010", "port 13010", "version 9.9.9 of the gateway", "网关 13010 是谁的"])
def test_an_unknown_number_has_no_answer(memory, query):  # B7
    memory.remember("网关端口是 4379")
    memory.remember("the port of the gateway, version 1.2")
    assert memory.recall(query) == ()


@pytest.mark.parametrize(
    "query", ["那个端口 13010", "the earlier port 13010", "之前的端口 13010", "that gateway port 13010"]
)
def test_a_pointing_word_is_never_held_back(memory, query):  # B7
    memory.remember("网关端口是 4379")
    memory.remember("the port of the gateway")
    assert memory.recall(query)


@pytest.mark.parametrize(
    "query", ["gateway on 2026-05-03", "gateway in May 2025", "2025年5月3日 gateway", "gateway 2 times", "7 gateways"]
)
def test_a_date_or_a_count_is_no_unknown_number(memory, query):
    memory.remember("the gateway")
    assert memory.recall(query)


@pytest.mark.parametrize(
    ("write", "query"),
    [
        pytest.param(lambda m: m.remember("gateway", labels=["8328"]), "8328", id="label"),
        pytest.param(lambda m: m.remember("gateway", slot="port 9443"), "gateway 9443", id="slot"),
        pytest.param(lambda m: m.remember("look at rev1027 of it"), "1027", id="part of an identifier"),
        pytest.param(lambda m: m.remember("python 3.11.4 is installed"), "python 3.11", id="beginning of a version"),
        pytest.param(lambda m: m.put_document("text", summary="Report 4711"), "4711", id="summary of a document"),
    ],
)
def test_a_number_that_is_stored_anywhere_is_no_unknown_one(memory, write, query):
    write(memory)
    assert memory.recall(query)


# ---- blocks that replace one another


def test_a_later_block_that_names_the_old_value_replaces_it(memory, clock):  # B8
    memory.put_block("网关端口是 4379")
    clock.advance(days=1)
    memory.put_block("网关端口从 4379 改成 8328")
    memory.put_block("网关在杭州")
    assert set(texts(memory.recall("网关端口"))) == {"网关端口从 4379 改成 8328", "网关在杭州"}
    assert "网关端口是 4379" in texts(memory.recall("网关端口以前是多少"))


def test_blocks_that_agree_stay(memory, clock):
    memory.put_block("the gateway port is 4379")
    clock.advance(days=1)
    memory.put_block("the printer port is 9100")
    assert len(memory.recall("port")) == 2


def test_blocks_are_arbitrated_before_the_cut(memory, clock):  # spec 6.4.5
    memory.put_block("gateway port is 4379")
    clock.advance(days=1)
    memory.put_block(
        "after the long meeting of yesterday we heard that gateway port is now 8328, and no more 4379 at all"
    )
    assert texts(memory.recall("gateway port", limit=1)) == [
        "after the long meeting of yesterday we heard that gateway port is now 8328, and no more 4379 at all"
    ]


# ---- scores and reasons


@pytest.fixture
def rich(memory, clock):
    rng = random.Random(3)
    say(memory, *everyday_texts(rng, 40), author="Caroline")
    for number, text in enumerate(everyday_texts(rng, 40)):
        memory.remember(text[:30], body=text, slot=f"slot {number % 9}", labels=[PIECES[number % 9]])
        memory.put_block(text + " block", scenes="chan:qq")
        clock.advance(hours=3)
    names = ["redis", "pnpm", "YouTube", "Caroline", "server"]
    memory.commit(
        [Triple(a, "uses", b, sentence=f"{a} needs {b}") for a in names for b in names if a != b], scenes="chan:qq"
    )
    memory.put_document("\n".join(everyday_texts(rng, 60)), summary="server night")
    return memory


QUERIES = [
    "redis server",
    "What did Caroline buy yesterday?",
    "杭州机房 下雨",
    "what did pnpm replace",
    "GOALS.md v1.2",
    "YouTube",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "options", [{}, *({"mode": m} for m in ("keyword", "vector", "graph", "scene")), {"precise": True}]
)
@pytest.mark.parametrize("situation", [None, Situation.of(chan="qq")])
def test_scores_lie_within_one_and_fall_and_no_hit_comes_twice(rich, query, options, situation):
    if options == {"mode": "scene"} and situation is None:
        with pytest.raises(InvalidInput, match="situation"):
            rich.recall(query, **options)
        return
    hits = rich.recall(query, situation=situation, limit=30, explain=True, **options)
    scores = [(not hit.pinned if options.get("precise") else 0, -hit.score) for hit in hits]
    assert scores == sorted(scores)
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert all(type(hit.score) is float for hit in hits)
    assert len({(hit.kind, hit.id) for hit in hits}) == len(hits)
    assert all(0 <= reason.value <= 1 for hit in hits for reason in hit.why)


@pytest.mark.parametrize("query", QUERIES)
def test_a_smaller_limit_gives_the_beginning_of_the_answer(rich, query):
    whole = list(rich.recall(query, limit=30, kinds=["note", "part", "relation"]))
    for limit in (0, 1, 5):
        assert list(rich.recall(query, limit=limit, kinds=["note", "part", "relation"])) == whole[:limit]
    assert list(rich.recall(query, kinds=["note", "part", "relation"])) == whole[:10]


@pytest.mark.parametrize("query", QUERIES)
def test_the_parts_of_a_score_add_up_in_proportion(rich, query):
    hits = [hit for hit in rich.recall(query, explain=True, limit=30) if hit.score]
    ratios = [sum(reason.value * reason.weight for reason in hit.why) / hit.score for hit in hits]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-3)
    for hit in hits:
        shares = [reason.value * reason.weight for reason in hit.why]
        assert shares == sorted(shares, reverse=True)


def test_the_parts_of_a_score_sum_to_the_score(rich):
    for hit in rich.recall("redis server", explain=True):
        assert sum(reason.value * reason.weight for reason in hit.why) == pytest.approx(hit.score, abs=1e-4)


def test_reasons_are_told_only_when_asked_for_and_change_nothing(rich):
    plain = rich.recall("redis server")
    told = rich.recall("redis server", explain=True)
    assert [(h.kind, h.id, h.score) for h in plain] == [(h.kind, h.id, h.score) for h in told]
    assert all(hit.why == () for hit in plain)
    assert all(hit.why for hit in told)


def test_a_linked_hit_tells_the_path_that_led_to_it(memory):
    memory.commit([Triple("Ann", "works at", "Acme"), Triple("Acme", "sits in", "Oslo")])
    told = " ".join(reason.told for reason in memory.recall("Ann", explain=True)[1].why)
    assert "Ann" in told
    assert "Acme" in told


def test_the_order_does_not_hang_on_the_hashes_of_a_process(rich):
    script = """if True:
        import json, sys
        from graphmem import Memory, Situation
        with Memory.open(sys.argv[1]) as memory:
            told = [[(h.kind, h.id, h.score) for h in memory.recall(q, situation=Situation.of(chan="qq"), limit=40)]
                    for q in json.loads(sys.argv[2])]
        print(json.dumps(told))"""
    answers = {
        subprocess.run(
            [sys.executable, "-c", script, place_of(rich.path), json.dumps(QUERIES)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, capture_output=True, check=True, text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(answers) == 1


# ---- modes


def test_keyword_mode_wants_every_word(memory):  # C8.7
    memory.remember("pnpm only")
    memory.remember("部署 only")
    memory.remember("部署用pnpm")
    memory.commit([Triple("pnpm", "is for", "speed", sentence="So 部署 it.")])
    hits = memory.recall("pnpm 部署", mode="keyword")
    assert {hit.text for hit in hits} == {"部署用pnpm", "pnpm is for speed: So 部署 it."}
    assert len(memory.recall("pnpm 部署")) == 4


@pytest.mark.parametrize("mode", ["keyword", "vector"])
def test_these_modes_return_nothing_that_shares_no_word(memory, mode):
    say(memory, "the pelican", "an answer")
    memory.commit([Triple("pelican", "eats", "fish"), Triple("fish", "swims in", "sea")])
    assert {hit.text for hit in memory.recall("pelican", mode=mode)} == {"the pelican", "pelican eats fish"}


def test_keyword_mode_finds_words_that_lie_in_passages_far_apart(memory):
    memory.put_document("the pelican. " + "nothing here. " * 400 + "the albatross.", summary="log")
    assert len(memory.recall("pelican albatross", mode="keyword")) == 1


def test_keyword_mode_finds_the_one_text_with_every_word_among_many_with_one(memory):
    say(memory, *["alpha alpha alpha"] * 150, *["beta beta beta"] * 150, session="short")
    say(memory, "alpha " + "filler " * 100 + "beta", session="long", start=1_000)
    assert ids(memory.recall("alpha beta", mode="keyword")) == ["1000"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_a_text_with_both_of_two_very_common_words_is_found(memory, mode, monkeypatch):
    monkeypatch.setattr(text_index, "MOST_MATCHES", 400)
    say(memory, "alpha beta together", session="both", start=9_000)
    say(memory, *["alpha"] * 450, *["beta"] * 450, session="one")
    assert ids(memory.recall("alpha beta", mode=mode))[0] == "9000"


def test_keyword_mode_takes_an_identifier_as_a_whole(memory):
    memory.remember("see youtube")
    assert titles(memory.recall("YouTube", mode="keyword")) == ["see youtube"]


def test_vector_mode_ranks_by_the_angle(memory):
    memory.remember("redis cache")
    memory.remember("redis cache and many other words which say something else")
    memory.remember("redis cache redis cache")
    hits = memory.recall("redis cache", mode="vector")
    assert [hit.score for hit in hits[:2]] == pytest.approx([1, 1])
    assert hits[2].score < 1


def test_scene_mode_returns_what_the_situation_does_whatever_the_words(memory):
    memory.commit([Triple("rule", "is", "plain text", confidence=0.9)], scenes="chan:qq")
    memory.commit([Triple("tea", "is", "hot")], scenes="chan:web")
    hits = memory.recall("tea", situation=Situation.of(chan="qq"), mode="scene")
    assert [hit.id for hit in hits] == [fact.id for fact in memory.recall_by_scene("chan:qq", exact=True).relations]


def test_a_query_without_words_and_with_a_situation_is_scene_recall(memory):
    memory.commit([Triple("rule", "is", "plain text")], scenes="chan:qq")
    for query in ("", "  ", "!!!"):
        assert [hit.text.split(":")[0] for hit in memory.recall(query, situation=Situation.of(chan="qq"))] == [
            "rule is plain text"
        ]


def test_scene_recall_gives_hits_like_those_of_words(memory):
    memory.commit([Triple("rule", "is", "plain text", sentence="No Markdown.")], scenes="chan:qq")
    (by_words,) = memory.recall("rule")
    (by_scene,) = memory.recall("", situation=Situation.of(chan="qq"), explain=True)
    assert (by_scene.text, by_scene.scenes, by_scene.source) == (by_words.text, by_words.scenes, by_words.source)
    assert by_scene.why


def test_scene_recall_brings_blocks_and_documents_back(memory):
    memory.put_block("a block", scenes="chan:qq")
    memory.put_document("a document", scenes="chan:qq")
    assert {hit.kind for hit in memory.recall("", situation=Situation.of(chan="qq"))} == {"block", "document"}


def test_scene_recall_keeps_to_the_time(memory):
    memory.commit([Triple("rule", "is", "plain text")], scenes="chan:qq", at="2026-01-01")
    assert memory.recall("", situation=Situation.of(chan="qq"), since="2026-05-01") == ()


def test_scene_recall_keeps_to_the_scenes(memory):
    memory.commit([Triple("rule", "is", "plain text")], scenes="chan:qq")
    memory.declare_scene("chan:web")
    assert memory.recall("", situation=Situation.of(chan="qq"), scenes="chan:web") == ()


# ---- time and scope


def test_since_and_until_are_half_open(memory):
    for day in (1, 2, 3):
        memory.mirror("s", [Part(id=str(day), text="pelican", at=f"2026-09-0{day}T00:00:00Z")])
        memory.remember(f"pelican {day}", at=f"2026-09-0{day}T00:00:00Z")
    hits = memory.recall("pelican", since="2026-09-02", until="2026-09-03")
    assert sorted(map(str, texts(hits))) == ["pelican", "pelican 2"]
    assert len(memory.recall("pelican", since="2026-09-02")) == 4
    assert len(memory.recall("pelican", until="2026-09-02")) == 2


@pytest.mark.parametrize(
    "at", ["2026-03-01T09:00:00+08:00", "2026-03-01T01:00:00Z", "2026-03-01 01:00:00", "2026-03-01"]
)
def test_times_are_compared_as_instants(memory, at):  # TIM-02
    memory.mirror("s", [Part(id="m", text="pelican", at=at)])
    assert memory.recall("pelican", since="2026-03-01", until="2026-03-01T09:00:01+08:00")
    assert memory.recall("pelican", until="2026-03-01") == ()


@pytest.mark.parametrize("options", [{"since": "2020-01-01"}, pytest.param({"until": "2020-01-01"})])
def test_a_part_without_a_time_counts_as_said_when_it_was_recorded(memory, options):
    say(memory, "the pelican")
    (hit,) = memory.recall("pelican")
    expected = hit.at >= "2020" if "since" in options else hit.at < "2020"
    assert bool(memory.recall("pelican", **options)) == expected


def test_as_of_is_what_was_known_then(memory, clock):
    memory.remember("pelican one", slot="bird")
    clock.advance(days=10)
    memory.remember("pelican two", slot="bird")
    memory.put_block("pelican block")
    memory.put_document("pelican document")
    assert titles(memory.recall("pelican", as_of="2026-09-10")) == ["pelican one"]
    assert len(memory.recall("pelican")) == 3


def test_as_of_leaves_out_what_was_said_later(memory):
    say(memory, "the pelican")
    assert memory.recall("pelican", as_of="2020-01-01") == ()


@pytest.fixture
def scoped(memory):
    for scope in ("", "a", "b"):
        memory.remember(f"pelican note <{scope}>", scope=scope or None, slot="bird", pinned=True)
        memory.commit(
            [Triple("pelican", "is", f"bird <{scope}>", sentence=f"pelican of <{scope}>.")], scope=scope or None
        )
        say(memory, f"a pelican <{scope}>", f"answer <{scope}>", session=f"s{scope}", scope=scope or None)
    return memory


@pytest.mark.parametrize(
    ("scopes", "seen"),
    [("all", {"", "a", "b"}), (None, {""}), ([], {""}), (["a"], {"", "a"}), (["b", "x"], {"", "b"}), (["x"], {""})],
)
@pytest.mark.parametrize("options", [{}, {"mode": "keyword"}, {"mode": "vector"}, {"mode": "graph"}, {"precise": True}])
def test_scopes_never_leak(scoped, scopes, seen, options):
    hits = scoped.recall("pelican", scopes=scopes, limit=50, **options)
    assert {scope for hit in hits for scope in re.findall("<(.*?)>", hit.text)} == seen


def test_one_text_in_two_scopes_scores_the_same(memory):  # C8.8
    for scope in ("a", "b"):
        memory.remember("pnpm deploys", scope=scope)
    one, other = memory.recall("pnpm", scopes=["a", "b"])
    assert one.score == other.score


def test_names_that_only_a_foreign_scope_knows_do_not_come_back(memory):
    memory.commit([Triple("Secretplan", "is", "ready")], scope="b")
    assert memory.recall("Secretplan", kinds="entity", scopes=["a"]) == ()


# ---- privacy


@pytest.fixture
def shared(memory):
    """Alice and Bob told things on one channel, each in a scene of their own."""
    for peer in ("alice", "bob"):
        for _ in range(3):
            memory.enter_scene(Situation.of(chan="qq", peer=peer))
        scene = f"chan:qq/peer:{peer}"
        memory.commit(
            [Triple(f"{peer}secret", "hides", f"{peer}gold", sentence=f"The pelican of {peer}.")], scenes=scene
        )
        # One fact that both know, in the words of each.
        memory.commit([Triple("harbour", "holds", "pelican", sentence=f"So {peer}whisper said.")], scenes=scene)
        memory.put_block(f"pelican block of {peer}", scenes=scene)
        memory.put_document(f"pelican document of {peer}. {peer}word", scenes=scene)
    memory.put_block("pelican block of all", scenes="chan:qq")
    return memory


PRIVATE = ["pelican", "bobsecret", "bobgold", "bobwhisper", "bobword", "bob", "harbour", "who hides", "pelican of bob"]


@pytest.mark.parametrize("query", PRIVATE)
@pytest.mark.parametrize(
    "options", [{}, *({"mode": m} for m in ("keyword", "vector", "graph", "scene")), {"precise": True}]
)
def test_what_another_person_told_never_comes_back(shared, query, options):
    for explain in (False, True):
        hits = shared.recall(query, situation=ALICE, kinds=EVERYTHING, limit=100, explain=explain, **options)
        assert not [hit for hit in hits if "bob" in hit.text or any("bob" in key for key in hit.scenes)]


@pytest.mark.parametrize("query", ["bobsecret", "bobgold", "bobword", "bobwhisper"])
def test_a_word_that_only_another_person_used_finds_nothing_of_one_s_own(shared, query):
    assert shared.recall(query, situation=ALICE, kinds=EVERYTHING, limit=100) == ()


def test_each_reads_a_fact_that_both_know_in_the_own_words(shared):
    for situation, name in ((ALICE, "alice"), (BOB, "bob")):
        (hit,) = (h for h in shared.recall("harbour", situation=situation) if h.kind == "relation")
        assert hit.text == f"harbour holds pelican: So {name}whisper said."


def test_without_a_situation_everything_is_found(shared):
    found = {hit.text for hit in shared.recall("pelican", limit=100)}
    assert {"pelican block of bob", "pelican block of alice", "pelican block of all"} <= found


def test_what_no_scene_holds_is_for_everybody(memory):
    memory.remember("pelican note")
    memory.commit([Triple("pelican", "is", "bird")])
    assert len(memory.recall("pelican", situation=ALICE)) == 2


@pytest.mark.parametrize("options", [{}, {"mode": "keyword"}, {"mode": "vector"}, {"mode": "graph"}])
def test_scenes_are_a_filter_at_and_below_a_key(shared, options):
    hits = shared.recall("pelican harbour", scenes="chan:qq/peer:bob", kinds=EVERYTHING, limit=100, **options)
    assert hits
    assert all("chan:qq/peer:bob" in hit.scenes for hit in hits)
    assert not shared.recall("pelican harbour", scenes="chan:web", kinds=EVERYTHING, **options)
    exact = shared.recall("pelican", scenes="chan:qq", exact=True, limit=100)
    assert options == {"mode": "graph"} or texts(exact) == ["pelican block of all"]


def test_scenes_are_a_filter_of_precise_recall_too(shared):
    hits = shared.recall(
        "pelican", scenes="chan:qq/peer:bob", kinds=["block", "document", "part", "entity"], precise=True
    )
    assert all("chan:qq/peer:bob" in hit.scenes for hit in hits)


def test_a_fact_is_found_by_every_sentence_that_told_it(memory):
    for sentence in ("Seen by the pelican.", "Seen by the heron."):
        memory.commit([Triple("Ann", "owns", "boat", sentence=sentence)], scenes="chan:qq")
    assert memory.recall("heron")
    assert memory.recall("pelican")


def test_a_fact_is_shown_with_the_sentence_that_was_found(memory):
    for key, sentence, confidence in (("chan:qq", "A heron.", 0.5), ("chan:qq/peer:alice", "A pelican.", 0.9)):
        memory.commit([Triple("Ann", "owns", "boat", sentence=sentence, confidence=confidence)], scenes=key)
    assert texts(memory.recall("pelican", situation=ALICE)) == ["Ann owns boat: A pelican."]
    assert texts(memory.recall("heron", situation=ALICE)) == ["Ann owns boat: A heron."]


def test_a_fact_that_was_told_to_everybody_stays_open(memory):
    memory.commit([Triple("Ann", "owns", "boat", sentence="A heron.")])
    assert memory.recall("boat", situation=ALICE)
    memory.commit([Triple("Ann", "owns", "boat", sentence="A pelican.")], scenes="chan:qq/peer:bob")
    assert texts(memory.recall("boat", situation=ALICE)) == ["Ann owns boat: A heron."]


def test_no_link_of_another_person_leads_anywhere(memory):
    memory.commit([Triple("Ann", "works at", "Hidden")], scenes="chan:qq/peer:bob")
    memory.commit([Triple("Hidden", "sits in", "Oslo")])
    assert memory.recall("Ann", situation=ALICE) == ()


# ---- the failure of the reference


@pytest.fixture
def homeagent(memory):
    """A store of the shape on which the reference failed: 868 facts, names that share most characters, one rule."""
    rng = random.Random(20260926)
    rule = "QQ回复禁用Markdown格式"
    names = [
        "老大",
        rule,
        "纯文本不用Markdown",
        *(f"QQ群成员{i}" for i in range(1, 31)),
        *(f"QQ消息主题{i}" for i in range(1, 118)),
    ]
    names += [
        f"{rng.choice(['服务', '端口', '脚本', '插件', 'Server', 'Room', 'Task', 'Doc'])} {i}" for i in range(1, 1_030)
    ]
    facts = [
        Triple(rule, "规定", "纯文本不用Markdown", sentence="回QQ消息时不要用Markdown，用纯文本。", confidence=0.95),
        Triple("老大", "偏好", rule, sentence="老大说QQ上的回复一律禁用Markdown格式。", confidence=0.9),
    ]
    for number in range(2, 868):
        one, other = rng.sample(names, 2)
        relation = rng.choice(["位于", "使用", "属于", "依赖", "likes", "runs_on"])
        sentence = f"记录 {number}：{one} 与 {other} 有关。"
        facts.append(Triple(one, relation, other, sentence=sentence, confidence=round(rng.uniform(0.3, 1.0), 2)))
    memory.commit(facts[:2], scenes="chan:qq")
    memory.commit(
        [Triple(f.subject, f.relation, f.object, sentence=f.sentence, confidence=0.5) for f in facts[2:108]],
        scenes="chan:qq",
    )
    memory.commit(facts[108:])
    return memory


@pytest.mark.parametrize("situation", [None, Situation.of(chan="qq"), Situation.of(chan="qq", peer="boss")])
def test_the_rule_is_among_the_first_three(homeagent, situation):
    hits = homeagent.recall("QQ回复格式", situation=situation)
    assert any("QQ回复禁用Markdown格式" in hit.text for hit in hits[:3])
    entities = homeagent.recall("QQ回复格式", situation=situation, kinds=["entity"])
    assert "QQ回复禁用Markdown格式" in texts(entities)[:3]


def test_a_turn_on_the_channel_without_a_text_puts_the_rule_first(homeagent):
    hits = homeagent.recall("", situation=Situation.of(chan="qq"))
    assert hits[0].text.startswith("QQ回复禁用Markdown格式 规定")


# ---- arguments


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("kinds", "sentence"), ("kinds", ["note", "x"]), ("kinds", []), ("mode", "fuzzy"), ("limit", -1),
        ("limit", 1.5),        ("since", "soon"), ("until", 5), ("as_of", "x"), ("scopes", 5), ("situation", "qq"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_by_name(memory, argument, value):
    with pytest.raises(InvalidInput, match=argument):
        memory.recall("word", **{argument: value})


@pytest.mark.parametrize("query", [None, 5, b"x", ["a"]])
def test_a_query_is_a_text(memory, query):
    with pytest.raises(InvalidInput, match="query"):
        memory.recall(query)


def test_an_empty_memory_answers_with_nothing(memory):
    for mode in ("hybrid", "keyword", "vector", "graph"):
        assert memory.recall("anything at all", mode=mode) == ()
    assert memory.recall("anything", precise=True) == ()
    assert memory.recall("", situation=ALICE) == ()


# ---- bounds


@pytest.mark.parametrize("limit", [2_000, 2**31, 2**63 - 1])
def test_a_large_limit_is_no_error(memory, limit):
    memory.mirror("s", [Part(id=str(n), text=f"pelican {n}") for n in range(300)])
    assert len(memory.recall("pelican", limit=limit)) == 300


def test_nothing_lies_between_a_time_and_an_earlier_one(memory):
    with pytest.raises(InvalidInput, match="until"):
        memory.recall("pelican", since="2026-09-02", until="2026-09-01")


def test_a_bare_date_is_the_day_where_the_memory_is(path, clock):
    with Memory.open(path, clock=clock, config=Config(timezone="Asia/Shanghai")) as memory:
        memory.mirror("s", [Part(id="1", text="hiking", at="2026-08-29T00:30:00+08:00")])
        assert memory.recall("hiking", since="2026-08-29")
        assert memory.recall("hiking", until="2026-08-29") == ()


def test_a_long_title_is_refused_and_a_long_body_is_found(memory):
    with pytest.raises(InvalidInput, match="title"):
        memory.remember("pelican " * 100)
    memory.remember("birds", body="heron " * 5_000 + "pelican")
    assert memory.recall("pelican")[0].text.startswith("birds")


def test_association_follows_no_stop_words_and_links_nothing_to_itself(memory):
    memory.remember("config is in GOALS.md")
    memory.remember("a walk in the rain")
    assert texts(memory.recall("GOALS.md", explain=True)) == ["config is in GOALS.md"]
    assert [reason.part for reason in memory.recall("GOALS.md", explain=True)[0].why] == ["words"]


def test_precise_facts_answer_what_is_asked_of_a_name(memory):
    memory.commit(
        [Triple("Bob", "plays", "tennis"), Triple("Bob", "salary", "91000"), Triple("Ann", "card number", "4417")]
    )
    assert texts(memory.recall("what is Bob's salary", precise=True)) == ["Bob salary 91000"]
    assert texts(memory.recall("card number", precise=True)) == ["Ann card number 4417"]
    assert set(texts(memory.recall("Bob", precise=True))) == {"Bob salary 91000", "Bob plays tennis"}
    assert memory.recall("does Bob eat shellfish", precise=True) == ()


NOW = "2026-09-07T08:00:00.000Z"


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "look",
    [
        lambda tx, many: found.standing(tx, many, NOW, None, past=True),
        lambda tx, many: found.holders(tx, "relation", many),
        lambda tx, many: found.closed_to(tx, ALICE, (Holding(number, "chan:qq", None, 1.0) for number in many)),
        lambda tx, many: found.predecessors(tx, many),
        lambda tx, many: found.told_by(tx, many),
        lambda tx, many: found.facts(tx, many),
        lambda tx, many: found.sentences(tx, many),
        lambda tx, many: found.entity_names(tx, many),
        lambda tx, many: found.entity_standing(tx, many, ["team"]),
        lambda tx, many: found.texts(tx, "block", many),
        lambda tx, many: found.numbers_of(tx, "document", [str(number) for number in many]),
        lambda tx, many: found.sources(tx, "note", many),
        lambda tx, many: found.text_standing(tx, "block", many),
        lambda tx, many: found.scene_keys(tx, many),
        lambda tx, many: provenance.origins(tx, "note", many),
        lambda tx, many: standing.shown(tx, many),
        lambda tx, many: standing.standing(tx, many, NOW, ["team"], past=False),
        lambda tx, many: standing.withdrawn(tx, many),
        lambda tx, many: standing.predecessors(tx, many),
        lambda tx, many: history.keep_out(tx, many),
        lambda tx, many: history.parts(tx, many),
        lambda tx, many: history.session_lengths(tx, many)[0],
        lambda tx, many: history.turns(tx, many, ["team"], "s1"),
        lambda tx, many: history.beside(tx, [Turn(number, 1, 3 * number, "", NOW, 1) for number in many]),
    ],
)
def test_a_long_answer_takes_no_more_values_than_a_statement_of_sqlite(memory, look):
    with memory._store.read() as tx:
        tx.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)  # as it is built where nobody asks for more
        assert not look(tx, range(1, 20_001))
