"""What holds when: facts have a time in the world, and every reader asks for an instant of it."""

import tempfile
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import sql

from graphmem import Config, InvalidInput, Memory, Situation, Triple
from graphmem.core.events import Event

HERE = Situation.of(chan="qq")
READERS = {
    "recall_by_scene": lambda memory, at=None: memory.recall_by_scene("chan:qq", as_of=at),
    "recall_by_situation": lambda memory, at=None: memory.recall_by_situation(HERE, declared="chan:qq", as_of=at),
    "neighbours": lambda memory, at=None: memory.neighbours("Lin", at=at),
    "graph": lambda memory, at=None: memory.graph(entity="Lin", at=at),
}
each_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


def lives(place, **options):
    return Triple("Lin", "lives in", place, functional=True, **options)


def places(found):
    """Where Lin lives by what a reader returned."""
    if hasattr(found, "relations"):
        return sorted(fact.object for fact in found.relations)
    return sorted(found.nodes[target]["name"] for _, target in found.edges())


# ---- the present


@each_reader
def test_a_value_of_the_future_does_not_hold_yet_and_the_present_one_does(memory, clock, read):
    memory.commit([lives("Hangzhou")], scenes="chan:qq")
    memory.commit([lives("Chengdu", valid_from="2027-01-01")], scenes="chan:qq")

    assert places(read(memory)) == ["Hangzhou"]
    clock.advance(days=200)
    assert places(read(memory)) == ["Chengdu"]


@each_reader
def test_a_fact_holds_from_its_beginning_until_just_before_its_end(memory, read):
    memory.commit([lives("Rome", valid_from="2026-03-01", valid_to="2026-03-02")], scenes="chan:qq")

    held = [
        bool(places(read(memory, at)))
        for at in ("2026-02-28T23:59:59.999Z", "2026-03-01", "2026-03-01T23:59:59.999Z", "2026-03-02", None)
    ]
    assert held == [False, True, True, False, False]


@each_reader
@pytest.mark.parametrize("status", ["deleted", "archived"])
def test_what_was_deleted_or_archived_never_holds(memory, path, read, status):
    memory.commit([lives("Rome")], scenes="chan:qq")
    sql(path, "UPDATE relations SET status = ?", status)

    assert [places(read(memory, at)) for at in (None, "2026-09-07T08:00:00Z", "2030-01-01")] == [[], [], []]


def test_an_end_of_the_future_is_an_end_only_then(memory, clock):
    memory.commit([lives("Rome", valid_to="2026-09-08")], scenes="chan:qq")

    assert places(memory.recall_by_scene("chan:qq")) == ["Rome"]
    clock.advance(days=1)
    assert not memory.recall_by_scene("chan:qq")  # nor its names


def test_the_refs_of_a_scene_count_what_holds(memory, clock):
    memory.commit([lives("Rome", valid_to="2026-09-08")], scenes="chan:qq")

    before = memory.scenes()[0].refs
    clock.advance(days=1)

    assert (before, memory.scenes()[0].refs) == (3, 2)


def test_the_present_value_is_tagged_although_a_later_one_is_known(memory):
    now, later = memory.commit([lives("Rome"), lives("Oslo", valid_from="2027-01-01")]).relations

    assert memory.tag_scene("chan:a", [now, later]).attached == (now, later)
    assert memory.tag_scene("chan:b", glob="Rome").attached == (now,)


# ---- the past


@each_reader
def test_the_past_is_told_as_it_was(memory, clock, read):
    for place in ("Hangzhou", "Chengdu", "Rome"):
        memory.commit([lives(place)], scenes="chan:qq")
        clock.advance(days=1)

    days = ["2026-09-07T08:00:00Z", "2026-09-08T07:59:59.999Z", "2026-09-08T08:00:00Z", "2026-09-09T09:00:00Z", None]
    assert [places(read(memory, day)) for day in days] == [["Hangzhou"]] * 2 + [["Chengdu"], ["Rome"], ["Rome"]]


@each_reader
@pytest.mark.parametrize("told_by", ["valid_from", "at"])
def test_an_older_conversation_imported_later_changes_nothing_now(memory, read, told_by):  # TIM-03
    for place, when in (("Hangzhou", "2026-02-01"), ("Chengdu", "2024-05-01")):
        times = {"valid_from": when} if told_by == "valid_from" else {}
        memory.commit([lives(place, **times)], scenes="chan:qq", at=when if told_by == "at" else None)

    assert places(read(memory)) == ["Hangzhou"]
    assert places(read(memory, "2025-01-01")) == ["Chengdu"]
    assert places(read(memory, "2024-01-01")) == []


def test_the_past_of_a_scene_is_what_is_known_today(memory):
    """Not what was known then: the value of January was told in September."""
    memory.commit([lives("Rome", valid_from="2026-01-01")], scenes="chan:qq")

    assert places(memory.recall_by_scene("chan:qq", as_of="2026-02-01")) == ["Rome"]


def test_a_situation_of_the_past_reads_what_holds_now(memory):
    memory.commit([lives("Rome", valid_to="2026-01-01"), lives("Oslo", valid_from="2026-01-01")], scenes="chan:qq")
    then = Situation.of(chan="qq", at="2025-06-01")

    assert places(memory.recall_by_situation(then, declared="chan:qq")) == ["Oslo"]
    assert places(memory.recall_by_situation(then, declared="chan:qq", as_of="2025-06-01")) == ["Rome"]


@pytest.mark.parametrize(
    "read",
    [
        lambda memory, at: memory.recall_by_scene("chan:qq", as_of=at),
        lambda memory, at: memory.recall_by_situation(HERE, as_of=at),
    ],
)
@pytest.mark.parametrize("bad", ["yesterday", 5, ""])
def test_a_bad_instant_is_refused_by_name(memory, read, bad):
    with pytest.raises(InvalidInput, match=r"^as_of"):
        read(memory, bad)


def test_a_time_without_offset_is_read_in_the_zone_of_the_settings(tmp_path, clock):  # TIM-02
    with Memory.open(tmp_path / "m.db", clock=clock, config=Config(timezone="Asia/Shanghai")) as memory:
        memory.commit([lives("Rome", valid_from="2026-03-01 09:00:00")], scenes="chan:qq")

        held = [
            bool(memory.recall_by_scene("chan:qq", as_of=at))
            for at in ("2026-03-01 08:59:59", "2026-03-01 09:00:00", "2026-03-01T01:00:00Z", "2026-03-01T00:59:59Z")
        ]

    assert held == [False, True, True, False]


def test_a_replay_of_days_to_come_shows_what_holds_at_their_end(memory):
    log = [
        Event(source="qq", at=f"2027-01-0{day}T00:00:00Z", facts=(lives(place),))
        for day, place in enumerate(["A", "B", "C"], 1)
    ]

    (learnt,) = memory.replay(log).learnt

    assert [fact.object for fact in learnt.relations] == ["C"]


# ---- told again


def test_the_present_value_told_again_is_the_same_fact(memory):
    first = memory.commit([lives("Hangzhou")]).relations
    memory.commit([lives("Chengdu", valid_from="2027-01-01")])

    again = memory.commit([lives("Hangzhou")])

    assert (again.relations, again.repeated, again.superseded) == (first, 1, 0)


def test_a_value_of_the_future_told_as_of_now_holds_now(memory):
    memory.commit([lives("Hangzhou"), lives("Chengdu", valid_from="2027-01-01")])

    memory.commit([lives("Chengdu")])

    assert places(memory.neighbours("Lin")) == ["Chengdu"]
    assert places(memory.neighbours("Lin", at="2028-01-01")) == ["Chengdu"]


@pytest.mark.parametrize("times", [{"valid_to": "2026-01-01"}, {"valid_from": "2027-01-01"}])
@pytest.mark.parametrize("functional", [True, False])
def test_a_fact_told_again_outside_of_its_time_holds(memory, times, functional):
    memory.commit([Triple("Lin", "likes", "tea", functional=functional, **times)])
    assert not memory.neighbours("Lin").relations

    memory.commit([Triple("Lin", "likes", "tea", functional=functional)])

    assert places(memory.neighbours("Lin")) == ["tea"]
    assert places(memory.neighbours("Lin", at="2025-06-01")) == (
        ["tea"] if "valid_to" in times or not functional else []
    )


@pytest.mark.parametrize("first", [0, 1])
def test_a_value_that_had_ended_before_it_was_told_closes_nothing(memory, first):
    values = [lives("Rome", valid_to="2026-01-01"), lives("Oslo", valid_from="2025-01-01")]
    memory.commit([values[first], values[1 - first]])

    assert places(memory.neighbours("Lin")) == ["Oslo"]
    assert places(memory.neighbours("Lin", at="2024-01-01")) == ["Rome"]


def test_a_value_confirmed_later_outlives_an_older_one_imported_last(memory):  # TIM-03
    for place, when in (("Hangzhou", "2024-01-01"), ("Hangzhou", "2026-02-01"), ("Chengdu", "2024-05-01")):
        memory.commit([lives(place)], at=when, scenes="chan:qq")

    told = {at: places(memory.recall_by_scene("chan:qq", as_of=at)) for at in ("2024-02-01", "2025-01-01", None)}
    assert told == {"2024-02-01": ["Hangzhou"], "2025-01-01": ["Chengdu"], None: ["Hangzhou"]}


def test_what_is_told_now_of_the_past_corrects_what_was_said_since(memory):
    for when in ("2026-01-01", "2026-03-01"):
        memory.commit([lives("Hangzhou")], at=when)

    memory.commit([lives("Chengdu", valid_from="2026-02-01")])

    assert places(memory.neighbours("Lin")) == ["Chengdu"]


# ---- one value in several scenes


def test_a_value_that_was_replaced_elsewhere_is_over_everywhere_and_the_new_one_stays_where_it_was_told(memory, clock):
    """A scene neither repeats what is known to be over, nor tells what only another scene was told."""
    memory.commit([lives("Hangzhou")], scenes="chan:old")
    clock.advance(days=1)
    memory.commit([lives("Chengdu")], scenes="chan:new")

    assert not memory.recall_by_scene("chan:old")
    assert places(memory.recall_by_scene("chan:new")) == ["Chengdu"]
    assert places(memory.recall_by_scene("chan:old", as_of="2026-09-07T09:00:00Z")) == ["Hangzhou"]


def test_values_of_different_scopes_do_not_replace_each_other(memory, clock):
    memory.commit([lives("Hangzhou")], scenes="chan:old", scope="one")
    clock.advance(days=1)
    memory.commit([lives("Chengdu")], scenes="chan:new", scope="two")

    assert places(memory.recall_by_scene("chan:old", scopes="all")) == ["Hangzhou"]


# ---- at random


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(1, 28), st.sampled_from("abc")), min_size=1, max_size=8),
    st.sampled_from(["valid_from", "at"]),
)
@example([(1, "b"), (2, "b"), (3, "a"), (3, "b"), (1, "b"), (1, "a")], "at")
def test_at_every_instant_one_value_holds_the_last_that_had_begun(tellings, told_by):  # TIM-03
    """Whatever the order of telling. Of values told of one instant any may hold."""
    clock = FakeClock("2026-03-30T00:00:00+00:00")
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "memory.db", clock=clock) as memory:
        for day, place in tellings:
            when = f"2026-03-{day:02}"
            if told_by == "valid_from":
                memory.commit([lives(place, valid_from=when)])
            else:
                memory.commit([lives(place)], at=when)
        held = {day: places(memory.neighbours("Lin", at=f"2026-03-{day:02}")) for day in range(1, 29)}

    for day, values in held.items():
        begun = [other for other, _ in tellings if other <= day]
        assert len(values) == 1 if begun else len(values) <= 1
        assert not begun or values[0] in {place for other, place in tellings if other == max(begun)}, day
