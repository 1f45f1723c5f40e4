"""Replay: a log of turns runs through the memory, and what it learnt comes back where it belongs."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from graphmem import Config, GraphmemError, InvalidInput, Memory, Situation, StoreFailed, Triple
from graphmem.core.events import Event
from graphmem.exchange.events import read_events

ROOT = Path(__file__).parent.parent
WEEK = ROOT / "fixtures" / "week.jsonl"
SIX = ROOT / "fixtures" / "six_channels.jsonl"
LOCOMO = ROOT.parent / "shared" / "data" / "locomo" / "locomo10.json"
ALL = 10_000
GOOD = '{"at": "2026-09-07T08:00:00Z", "source": "qq", "facts": [{"subject": "a", "relation": "is", "object": "b"}]}'
FACT = '"subject": "a", "relation": "is", "object": "b"'

BROKEN_LINES = [
    "nonsense",
    "{",
    '{"source": "qq"',
    "{'source': 'qq'}",
    '{"source": "qq"} {"source": "qq"}',
    "5",
    "null",
    '"qq"',
    '["qq"]',
    '{"chan": "qq"}',
    '{"source": 5}',
    '{"text": null}',
    '{"tool": ["shell"]}',
    '{"session": 1}',
    '{"at": 5}',
    '{"source": "qq", "at": "yesterday"}',
    '{"source": "qq", "at": ""}',
    '{"source": "qq", "at": "0001-01-01T00:00:00+14:00"}',
    '{"payload": ["boss"]}',
    '{"payload": {"user_id": ["boss"]}}',
    '{"payload": {"user_id": {"name": "boss"}}}',
    '{"payload": {"user_id": NaN}}',
    '{"payload": {"user_id": Infinity}}',
    '{"payload": {"user_id": 1e999}}',
    '{"payload": {"user_id": ' + "9" * 5000 + "}}",
    '{"payload": {"deep": ' + "[" * 100_000 + "]" * 100_000 + "}}",
    '{"facts": {}}',
    '{"facts": "a is b"}',
    '{"facts": ["a is b"]}',
    '{"facts": [{"subject": "a", "relation": "is"}]}',
    '{"facts": [{"subject": "a", "relation": "is", "object": 5}]}',
    '{"facts": [{' + FACT + ', "weight": 1}]}',
    '{"facts": [{' + FACT + ', "sentence": 5}]}',
    '{"facts": [{' + FACT + ', "confidence": 0}]}',
    '{"facts": [{' + FACT + ', "confidence": 2}]}',
    '{"facts": [{' + FACT + ', "confidence": true}]}',
    '{"facts": [{' + FACT + ', "confidence": "high"}]}',
    '{"facts": [{' + FACT + ', "confidence": NaN}]}',
    '{"facts": [{' + FACT + ', "confidence": 1e999}]}',
    '{"facts": [{' + FACT + ', "functional": "no"}]}',
    '{"facts": [{' + FACT + ', "valid_from": "yesterday"}]}',
    '{"facts": [{' + FACT + ', "valid_to": 5}]}',
    '{"facts": [{' + FACT + ', "valid_from": "2026-02-02", "valid_to": "2026-02-01"}]}',
]


def write(folder, *lines, newline="\n", start=b""):
    """Write a log of these lines; a lone surrogate in one is written as JSON escapes it."""
    log = folder / "log.jsonl"
    log.write_bytes(start + newline.join([*lines, ""]).encode())
    return log


def person_of(event):
    """The channel and the features of the people of a turn."""
    payload = event.payload or {}
    chan = event.source.lower()
    if "user_id" in payload:
        return chan, "peer", str(payload["user_id"]).lower()
    return (chan, "peer_group", str(payload["group_id"])) if "group_id" in payload else (chan, "", "")


def situation_of(chan, kind, name):
    return Situation.of(chan=chan, **({kind: name} if kind else {}))


def told(fact):
    return fact.subject, fact.relation, fact.object


def objects(found):
    return [fact.object for fact in found.relations]


def emergent(memory):
    return {scene.key: scene for scene in memory.scenes(origin="emergent")}


# ---- the week of a household agent


@pytest.fixture(scope="module")
def events():
    return read_events(WEEK)


@pytest.fixture(scope="module")
def week(events):
    """The memory after the week, for tests that only read it, and what the replay reported."""
    with Memory.open(":memory:") as memory:
        report = memory.replay(WEEK)
        yield memory, report


def test_the_week_is_a_week_of_several_channels_people_and_languages(events):
    texts = [event.text for event in events]

    assert len(events) >= 150
    assert len({event.at[:10] for event in events}) == 7
    assert len({event.source.lower() for event in events}) >= 5
    assert len({person_of(event)[1:] for event in events}) >= 5
    assert sum(text.isascii() for text in texts) >= 20
    assert sum(not text.isascii() for text in texts) >= 100


def test_every_turn_is_replayed_and_no_fact_is_refused(week, events):
    _, report = week

    assert report.turns == len(events)
    assert report.facts == sum(len(event.facts) for event in events)
    assert (report.refused, report.remarks) == (0, ())


def test_every_situation_that_recurs_grows_its_scene(week, events):
    memory, report = week
    met = Counter(map(person_of, events))
    recurring = [where for where, times in met.items() if times > 1]

    answers = {where: memory.match_scenes(situation_of(*where)) for where in recurring}

    assert len(recurring) >= 10
    assert [where for where, matches in answers.items() if not matches or matches[0].strength < 2] == []
    assert {learnt.scene.key for learnt in report.learnt} == set(emergent(memory))
    assert report.unplaced < report.turns / 10


def test_the_report_shows_first_what_was_visited_most(week):
    _, report = week

    strengths = [learnt.scene.strength for learnt in report.learnt]
    assert strengths == sorted(strengths, reverse=True)
    assert report.learnt[0].scene.key == "auto:peer:laoda_chan:qq"
    assert all(1 <= len(learnt.relations) <= 3 for learnt in report.learnt)


def test_the_rule_of_a_situation_comes_back_with_an_empty_query(week):
    memory, _ = week

    found = memory.recall_by_situation(Situation.of(chan="qq", peer="laoda"))

    assert "QQ回复禁用Markdown格式" in objects(found)[:3]


def test_spellings_of_one_person_and_channel_are_one_scene(week, events):
    memory, _ = week
    spelt = {(event.source, (event.payload or {}).get("user_id")) for event in events}

    assert ("QQ", "laoda") in spelt
    assert ("qq", "Laoda") in spelt
    assert [key for key in emergent(memory) if "laoda" in key and "chan:qq" in key] == ["auto:peer:laoda_chan:qq"]


def test_what_a_person_said_elsewhere_is_there_on_their_first_turn_on_a_channel(events):
    first = next(n for n, event in enumerate(events) if person_of(event) == ("voice", "peer", "tom"))

    with Memory.open(":memory:") as memory:
        memory.replay(events[:first])
        found = memory.recall_by_situation(events[first].situation(memory.config))

    assert {"peanuts", "metric units"} <= set(objects(found))


def test_a_person_who_was_there_once_has_no_scene(week):
    memory, _ = week

    assert [key for key in emergent(memory) if "mei" in key] == []
    assert [bucket.count for bucket in memory.evidence() if bucket.label == "peer:mei_chan:qq"] == [1]


def test_nothing_that_one_person_said_is_recalled_for_another(week, events):
    memory, _ = week
    tellers = {}
    for event in events:
        for fact in event.facts:
            tellers.setdefault(told(fact), set()).add(person_of(event)[1:])

    leaks = [
        (where, told(fact))
        for where in set(map(person_of, events))
        for fact in memory.recall_by_situation(
            situation_of(*where), declared=situation_of(*where).derived_key, limit=ALL
        ).relations
        if where[1:] not in tellers[told(fact)]
    ]

    assert leaks == []


def test_everything_that_was_told_in_a_situation_is_recalled_in_it(week, events):
    memory, _ = week

    for event in events:
        found = memory.recall_by_situation(event.situation(memory.config), limit=ALL)
        grown = memory.match_scenes(event.situation(memory.config))
        assert not grown or {told(fact) for fact in event.facts} <= {told(fact) for fact in found.relations}


def test_replaying_twice_strengthens_and_does_not_duplicate(events):
    with Memory.open(":memory:") as memory:
        first = memory.replay(events)
        before, facts = emergent(memory), memory.recall_by_scene("", limit=ALL).relations
        second = memory.replay(events)
        after, facts_again = emergent(memory), memory.recall_by_scene("", limit=ALL).relations

    assert second.facts == first.facts
    assert sorted(map(told, facts_again)) == sorted(map(told, facts))
    assert [key for key in before if after[key].strength <= before[key].strength] == []
    assert [key for key in before if after[key].refs != before[key].refs] == []
    assert set(after) - set(before) == {"auto:peer:mei_chan:qq"}  # her second visit


def test_a_replay_in_parts_is_the_replay_of_the_whole(events):
    with Memory.open(":memory:") as whole, Memory.open(":memory:") as parts:
        whole.replay(events)
        for start in range(0, len(events), 50):
            parts.replay(events[start : start + 50])

        assert parts.scenes() == whole.scenes()


def test_six_channels_in_turn_grow_six_scenes():  # R5, V3
    with Memory.open(":memory:") as memory:
        report = memory.replay(SIX)

    assert (report.turns, report.unplaced, len(report.learnt)) == (18, 6, 6)


# ---- what a log may look like


def test_a_turn_is_written_with_its_time_session_and_number(tmp_path, path):
    other = '{"at": "2026-09-07T09:00:00+08:00", "source": "qq", "session": "s1", "facts": [{' + FACT + "}]}"

    with Memory.open(path) as memory:
        memory.replay(write(tmp_path, GOOD, other))
        (scene,) = memory.scenes("chan:qq")

    assert scene.updated_at == "2026-09-07T08:00:00.000Z"  # the later of the two, 01:00 UTC is the earlier
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT session, turn, source, at FROM evidence ORDER BY id").fetchall()
    assert rows == [
        ("", 1, "replay", "2026-09-07T08:00:00.000Z"),
        ("s1", 2, "replay", "2026-09-07T01:00:00.000Z"),
    ]


def test_a_time_without_offset_is_read_in_the_time_zone_of_the_settings(tmp_path):
    log = write(tmp_path, '{"source": "qq", "at": "2026-09-07T08:00:00"}')

    with Memory.open(":memory:", config=Config(timezone="Asia/Shanghai")) as memory:
        memory.replay(log)
        assert memory.scenes()[0].updated_at == "2026-09-07T00:00:00.000Z"


@pytest.mark.parametrize(
    ("newline", "start"),
    [("\n", b""), ("\r\n", b""), ("\n\n", b"\n \n"), ("\r\n\r\n", b"\xef\xbb\xbf"), ("\n", b"\xef\xbb\xbf")],
    ids=["lines", "CRLF", "blank lines", "BOM, CRLF and blank lines", "BOM"],
)
def test_byte_order_mark_line_ends_and_blank_lines_do_not_matter(tmp_path, newline, start):
    with Memory.open(":memory:") as memory:
        report = memory.replay(write(tmp_path, GOOD, GOOD, newline=newline, start=start))

    assert (report.turns, report.facts, len(report.learnt)) == (2, 2, 1)


def test_characters_that_end_lines_elsewhere_may_stand_in_a_text(tmp_path):
    line = json.dumps({"source": "qq", "text": "a\u2028b\u2029c\x85d\x0be"}, ensure_ascii=False)

    with Memory.open(":memory:") as memory:
        assert memory.replay(write(tmp_path, line)).turns == 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"[]"])
def test_an_empty_log_is_nothing_to_do(tmp_path, memory, content):
    log = tmp_path / "log.jsonl"
    log.write_bytes(content)

    report = memory.replay(log)

    assert (report.turns, report.facts, report.learnt) == (0, 0, ())


def test_turns_of_which_nothing_is_known_write_nothing_but_their_facts(tmp_path, memory):
    report = memory.replay(write(tmp_path, "{}", '{"text": ""}', '{"facts": [{' + FACT + "}]}"))

    assert (report.turns, report.unplaced, report.facts) == (3, 3, 1)
    assert memory.scenes() == memory.evidence() == ()
    assert [hit.text for hit in memory.recall("a")] == ["a is b"]


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00"])
def test_halves_of_emoji_are_stored_replaced_and_other_lines_are_untouched(tmp_path, memory, half):  # TXT-01
    fact = {"subject": "a", "relation": "says", "object": "ok HALF", "sentence": "a says ok HALF"}
    hurt = json.dumps({"source": "qq", "text": "ok HALF", "session": "s HALF", "facts": [fact]}).replace("HALF", half)
    others = [
        json.dumps({"source": "qq", "facts": [{"subject": "a", "relation": "says", "object": f"🎉{n}"}]})
        for n in range(9)
    ]

    report = memory.replay(write(tmp_path, *others[:4], hurt, *others[4:]))

    assert (report.turns, report.facts, report.refused) == (10, 10, 0)
    found = memory.recall_by_scene("chan:qq", limit=ALL).relations
    assert {fact.object for fact in found} == {"ok \ufffd"} | {f"🎉{n}" for n in range(9)}
    assert {fact.sentence for fact in found} == {"", "a says ok \ufffd"}
    assert len(report.remarks) == 1
    assert "U+FFFD" in report.remarks[0]
    assert "5" in report.remarks[0]  # the turn


@pytest.mark.parametrize(
    "field",
    [{"source": "x HALF"}, {"tool": "x HALF"}, {"session": "x HALF"}, {"payload": {"user_id": "boss HALF"}}],
    ids=lambda field: next(iter(field)),
)
def test_half_an_emoji_in_a_name_stops_nothing(tmp_path, memory, field):  # TXT-01
    event = {"source": "qq", **field, "facts": [{"subject": "a", "relation": "is", "object": "b"}]}
    line = json.dumps(event).replace("HALF", "\\ud83d")

    report = memory.replay(write(tmp_path, line, line))

    assert (report.turns, report.facts, len(report.learnt)) == (2, 2, 1)
    assert [hit.text for hit in memory.recall("a")] == ["a is b"]


def test_nul_in_a_fact_is_stored_replaced(tmp_path, memory):
    memory.replay(write(tmp_path, '{"facts": [{"subject": "a", "relation": "is", "object": "b\\u0000c"}]}'))

    assert [hit.text for hit in memory.recall("a")] == ["a is b\ufffdc"]


def test_a_fact_that_is_refused_is_told_with_its_turn_and_the_others_are_written(tmp_path, memory):
    long = GOOD.replace('"b"', '"' + "b" * 51 + '"')

    report = memory.replay(write(tmp_path, GOOD, long, GOOD))

    assert (report.turns, report.facts, report.refused) == (3, 2, 1)
    (remark,) = report.remarks
    assert "turn 2" in remark
    assert "50 characters" in remark


def test_progress_is_told_after_every_turn(memory):
    told_of = []

    memory.replay(SIX, progress=lambda done, turns: told_of.append((done, turns)))

    assert told_of == [(n, 18) for n in range(1, 19)]


def test_events_may_come_from_a_generator(memory):
    report = memory.replay(Event(source=f"c{n}", facts=(Triple("a", "is", f"b{n}"),)) for n in range(3))

    assert (report.turns, report.facts) == (3, 3)


# ---- bad logs


@pytest.mark.parametrize("line", BROKEN_LINES, ids=lambda line: line[:70])
def test_a_broken_line_is_refused_by_file_and_line_before_the_first_turn(tmp_path, memory, line):
    log = write(tmp_path, GOOD, "", line, GOOD)

    with pytest.raises(InvalidInput) as refusal:
        memory.replay(log)

    assert "log.jsonl" in str(refusal.value)
    assert "line 3" in str(refusal.value)
    assert len(str(refusal.value)) < 500
    assert memory.scenes() == memory.evidence() == ()


@pytest.mark.parametrize(
    "head", ["nonsense", "{", "[", "[5]", '["qq"]', "[" * 100_000, '[{"source": "qq"}]'], ids=lambda line: line[:20]
)
def test_a_broken_head_of_a_log_is_refused_by_file(tmp_path, memory, head):
    with pytest.raises(InvalidInput, match=r"log\.jsonl"):
        memory.replay(write(tmp_path, head, GOOD))

    assert memory.scenes() == memory.evidence() == ()


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{", b'{"text": "\xe4\xf6"}', b"\x00\x01"], ids=["UTF-16", "Latin-1", "binary"]
)
def test_a_log_that_is_no_utf_8_text_is_refused_by_name(tmp_path, memory, content):
    log = tmp_path / "log.jsonl"
    log.write_bytes(content)

    with pytest.raises(InvalidInput, match=r"log\.jsonl"):
        memory.replay(log)


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "missing/log.jsonl"])
def test_a_log_that_cannot_be_read_is_refused_by_name(tmp_path, memory, name):
    with pytest.raises(StoreFailed) as refusal:
        memory.replay(tmp_path / name)

    assert str(tmp_path / name) in str(refusal.value)


@pytest.mark.parametrize("log", [None, 5, [5], [None], ["{}"], [{"source": "qq"}]])
def test_what_is_no_log_is_invalid_input(memory, log):
    with pytest.raises(InvalidInput):
        memory.replay(log)

    assert memory.scenes() == memory.evidence() == ()


def test_the_memory_itself_named_as_a_log_is_refused_and_keeps_its_locks(path, memory):  # CON-06
    memory.declare_scene("chan:qq")

    with pytest.raises(GraphmemError):
        memory.replay(path)

    # Plain reading would have dropped the lock of this connection, and the next closer would take the -wal away.
    script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM scenes'); c.close()"
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert Path(f"{path}-wal").exists()


# ---- LoCoMo


def conversation(**changes):
    """Two sessions of two people, in the shape of a LoCoMo file."""
    whole = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_10_date_time": "9:05 am on 3 June, 2023",
        "session_10": [{"speaker": "Bob", "dia_id": "D10:1", "text": "The pottery class was great"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "Hey Bob! \ud83d"},
            {"speaker": "Bob", "dia_id": "D2:2", "text": "Hi Ann", "img_url": ["x"], "blip_caption": "a photo"},
            {"speaker": "Ann", "dia_id": "D2:3"},
        ],
        "session_2_summary": "They greet.",
    }
    return {**whole, **changes}


def locomo(folder, *conversations, **sample):
    samples = [
        {"sample_id": f"conv-{n}", "conversation": one, "qa": [], **sample} for n, one in enumerate(conversations, 1)
    ]
    log = folder / "locomo.json"
    log.write_text(json.dumps(samples), "utf-8")
    return log


def test_a_locomo_turn_is_one_on_its_conversation_with_the_listener(tmp_path):
    events = read_events(locomo(tmp_path, conversation()))

    assert [(event.source, event.payload["peer"], event.at, event.text) for event in events] == [
        ("conv-1", "Bob", "2023-05-08T13:56:00", "Hey Bob! \ufffd"),
        ("conv-1", "Ann", "2023-05-08T13:56:00", "Hi Ann"),
        ("conv-1", "Bob", "2023-05-08T13:56:00", ""),
        ("conv-1", "Ann", "2023-06-03T09:05:00", "The pottery class was great"),
    ]
    assert len({event.session for event in events}) == 2


def test_a_locomo_file_grows_a_scene_for_each_listener_of_each_conversation(tmp_path, memory):
    report = memory.replay(locomo(tmp_path, conversation(), conversation()))

    assert (report.turns, report.unplaced) == (8, 4)
    assert set(emergent(memory)) == {f"auto:peer:{name}_chan:conv-{n}" for name in ("ann", "bob") for n in (1, 2)}
    (scene,) = memory.scenes("auto:peer:ann_chan:conv-1")
    assert scene.updated_at == "2023-06-03T09:05:00.000Z"


@pytest.mark.parametrize(
    "changes",
    [
        {"speaker_a": None},
        {"speaker_b": {"name": "Bob"}},
        {"session_2_date_time": "yesterday"},
        {"session_2_date_time": None},
        {"session_2": "Hey Bob"},
        {"session_2": [5]},
        {"session_2": [{"text": "Hey"}]},
        {"session_2": [{"speaker": "Ann", "text": 5}]},
        {"session_2": 5},
        {"session_3": []},
    ],
    ids=str,
)
def test_a_broken_locomo_file_is_refused_by_name_before_the_first_turn(tmp_path, memory, changes):
    log = locomo(tmp_path, conversation(), conversation(**changes))

    with pytest.raises(InvalidInput, match=r"locomo\.json"):
        memory.replay(log)

    assert memory.scenes() == memory.evidence() == ()


@pytest.mark.parametrize(
    "sample", [{"conversation": None}, {"conversation": []}, {"sample_id": 5}, {"sample_id": None}], ids=str
)
def test_a_locomo_sample_without_its_parts_is_refused_by_name(tmp_path, memory, sample):
    with pytest.raises(InvalidInput, match=r"locomo\.json"):
        memory.replay(locomo(tmp_path, conversation(), **sample))

    assert memory.scenes() == memory.evidence() == ()


@pytest.mark.slow
@pytest.mark.skipif(not LOCOMO.exists(), reason="the LoCoMo file is not here")
def test_the_ten_conversations_of_locomo_grow_twenty_scenes(memory):
    report = memory.replay(LOCOMO)

    assert (report.turns, report.unplaced) == (5882, 20)
    assert len(emergent(memory)) == 20
    assert all(learnt.scene.features <= 64 for learnt in report.learnt)
    assert sum(learnt.scene.strength for learnt in report.learnt) == 5882 - 20
