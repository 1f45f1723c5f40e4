"""Upkeep: what fades, what goes, what is merged, what stops it, and that nobody waits for it."""

import datetime as dt
import logging
import sqlite3
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import another_process, dump, orphans, plant, sql, text_index_of

from graphmem import Config, Conflict, InvalidInput, Memory, Situation, StoreBusy, Triple
from graphmem.upkeep.decay import halvings
from graphmem.upkeep.loop import alarm

HERE = Situation.of(chan="qq", peer="boss")


def step(report, name):
    (found,) = (step for step in report.steps if step.name == name)
    return found


def tell(memory, number, *, scene="chan:qq", **options):
    memory.commit([Triple(f"thing {number}", "is", f"value {number}", **options)], scenes=scene)


def weights(path, kind="relation"):
    return [weight for (weight,) in sql(path, "SELECT weight FROM scene_refs WHERE kind = ? ORDER BY id", kind)]


def use(memory, clock, days):
    """Write something elsewhere on each of so many days."""
    for _ in range(days):
        clock.advance(days=1)
        memory.declare_scene("tool:shell")


def plant_twin(path, key):
    at = "2026-01-01T00:00:00.000Z"
    sql(path, "INSERT INTO scenes(key, origin, created_at, updated_at) VALUES (?, 'declared', ?, ?)", key, at, at)


# ---- decay


@pytest.fixture
def told(path, clock):
    """Ten facts in a scene, with a half-life of two days of use."""
    with Memory.open(path, clock=clock, config=Config(half_life_days=2, decay_floor=0.2)) as memory:
        for number in range(10):
            tell(memory, number)
        yield memory


def test_what_is_not_told_again_weighs_half_after_a_half_life_of_use(told, clock, path):  # F1
    use(told, clock, 2)

    report = told.upkeep()

    assert weights(path) == [0.5] * 10
    assert step(report, "decay").state == "done"
    assert step(report, "decay").operations == (1,)
    assert step(told.upkeep(), "decay").state == "nothing"
    assert weights(path) == [0.5] * 10


def test_a_missed_upkeep_catches_up_and_the_rest_of_a_half_life_is_kept(told, clock, path):  # F3, F5
    use(told, clock, 5)
    told.upkeep()
    assert weights(path) == [0.25] * 10

    use(told, clock, 1)
    told.upkeep(allow_shrink=True)
    assert weights(path) == []  # an eighth is below the floor


def test_an_idle_memory_loses_nothing_and_upkeep_itself_is_no_use(told, clock, path):  # TIM-04
    for _ in range(40):
        clock.advance(days=10)
        told.upkeep()

    assert weights(path) == [1.0] * 10
    assert len(told.recall_by_scene("chan:qq", limit=100).relations) == 10


def test_what_is_told_again_does_not_fade(told, clock, path):
    use(told, clock, 1)
    tell(told, 0)
    use(told, clock, 1)
    told.upkeep()

    assert weights(path) == [1.0, *[0.5] * 9]


def test_a_weak_ref_outlives_its_first_half_life_and_a_busy_scene_fades_too(told, clock, path):  # F2 falls
    tell(told, 99, confidence=0.1, scene="chan:weak")
    use(told, clock, 1)
    told.declare_scene("chan:qq")
    told.upkeep()
    assert 0.1 in weights(path)

    use(told, clock, 1)
    told.upkeep()
    assert min(weights(path)) == 0.5


def test_after_an_undo_the_same_fades_again(told, clock, path):
    use(told, clock, 2)
    first = told.upkeep()
    before = sql(path, "SELECT * FROM scene_refs ORDER BY id")

    told.undo(step(first, "decay").operations[0])
    again = told.upkeep()

    assert (step(again, "decay").told, step(again, "decay").after) == (
        step(first, "decay").told,
        step(first, "decay").after,
    )
    assert sql(path, "SELECT * FROM scene_refs ORDER BY id") == before


def test_days_of_use_that_count_for_nothing_any_more_go(told, clock, path):
    use(told, clock, 2)
    clock.advance(days=100)
    tell(told, 0)
    told.upkeep()

    assert sql(path, "SELECT day FROM active_days") == [("2026-12-18",)]


def test_pinned_notes_and_rules_never_fade(told, clock, path):
    at = "2026-09-07T08:00:00.000Z"
    for options in ({"pinned": True}, {"kind": "rule"}, {"kind": "checkpoint"}, {}):
        note = told.remember(f"note {options}", source="user", **options).note
        sql(
            path,
            "INSERT INTO scene_refs(scene_id, kind, ref_id, decayed_at, created_at) VALUES (1, 'note', ?, ?, ?)",
            note.id, at, at,
        )  # fmt: skip
    use(told, clock, 2)

    told.upkeep()

    assert weights(path, "note") == [1.0, 1.0, 1.0, 0.5]


def test_a_decay_is_undone_and_what_was_told_since_is_kept(told, clock, path):  # F4
    before = sql(path, "SELECT * FROM scene_refs ORDER BY id")
    use(told, clock, 4)
    operation = step(told.upkeep(allow_shrink=True), "decay").operations[0]
    clock.advance(hours=1)
    tell(told, 3)

    told.undo(operation)

    after = sql(path, "SELECT * FROM scene_refs ORDER BY id")
    again = sql(path, "SELECT id FROM relations WHERE id = 4")
    assert [row for row in after if row not in before] != []
    assert {row[5] for row in after} == {1.0}
    assert len(after) == len(before)
    assert again == [(4,)]


@given(
    st.lists(st.dates(dt.date(2026, 1, 1), dt.date(2026, 12, 31)), unique=True).map(sorted),
    st.dates(dt.date(2026, 1, 1), dt.date(2026, 12, 31)),
    st.integers(1, 40),
)
def test_halvings_leave_less_than_a_half_life(days, clock, half_life):
    days = [day.isoformat() for day in days]
    times, until = halvings(days, clock.isoformat(), half_life)

    used = [day for day in days if day > clock.isoformat()]
    assert times == len(used) // half_life
    assert len([day for day in days if day > until]) == len(used) - times * half_life
    assert halvings(days, until, half_life) == (0, until)


# ---- the other steps


def test_a_planted_twin_is_gone_after_one_pass(memory, path):
    tell(memory, 1)
    plant_twin(path, " chan:QQ ")

    report = memory.upkeep()

    assert report.ok
    assert report.applied
    assert sql(path, "SELECT key FROM scenes") == [("chan:qq",)]
    assert step(report, "dedupe scenes").before["scenes"] == 2
    assert step(report, "dedupe scenes").after["scenes"] == 1
    (operation,) = step(report, "dedupe scenes").operations
    memory.undo(operation)
    assert len(sql(path, "SELECT key FROM scenes")) == 2


def test_an_entity_under_two_keys_becomes_one(memory, path):
    tell(memory, 1)
    at = "2026-01-01T00:00:00.000Z"
    sql(path, "INSERT INTO entities(name, key, created_at, updated_at) VALUES ('Thing 1', 'Thing  1', ?, ?)", at, at)
    sql(path, "UPDATE relations SET source_id = (SELECT id FROM entities WHERE key = 'Thing  1')")

    assert step(memory.upkeep(), "merge entities").state == "done"
    assert sql(path, "SELECT key FROM entities ORDER BY key") == [("thing 1",), ("value 1",)]
    assert orphans(path) == []


def test_a_fact_that_leads_nowhere_stops_no_pass(memory, path):
    tell(memory, 1)
    plant(path, "UPDATE relations SET target_id = 8888")

    assert memory.upkeep().ok
    assert not memory.check().ok


def test_similar_entities_are_listed_and_only_an_arbiter_merges_them(memory, path):
    memory.commit([Triple("panel server", "runs", "nginx"), Triple("panel servers", "runs", "nginx")])
    memory.commit([Triple("Jonathan Smith", "likes", "tea"), Triple("Jonathann Smith", "likes", "tea")])

    report = memory.upkeep()
    assert step(report, "review entities").told == "pairs that may be one: 2"
    assert step(report, "review entities").operations == ()
    asked = []

    def arbiter(pair):
        asked.append({pair.a.name, pair.b.name})
        return "merge"

    settled = memory.upkeep(arbiter=arbiter)

    assert asked == [{"Jonathan Smith", "Jonathann Smith"}]  # the other pair differs in a suffix
    assert len(step(settled, "review entities").operations) == 1
    assert len(memory.neighbours("Jonathan Smith", depth=1).relations) == 1


def test_a_pair_that_is_kept_apart_for_rounds_is_offered_again(memory):  # M2
    memory.commit([Triple("Jonathan Smith", "likes", "tea"), Triple("Jonathann Smith", "likes", "tea")])
    memory.keep_apart("Jonathan Smith", "Jonathann Smith", rounds=2)

    states = [step(memory.upkeep(), "review entities").told for _ in range(3)]

    assert [told == "pairs that may be one: 1" for told in states] == [False, False, True]


def test_an_arbiter_that_fails_stops_its_step_alone(memory):
    memory.commit([Triple("Jonathan Smith", "likes", "tea"), Triple("Jonathann Smith", "likes", "tea")])

    report = memory.upkeep(arbiter=lambda pair: "perhaps")

    assert not report.ok
    assert step(report, "review entities").state == "stopped"
    assert "perhaps" in step(report, "review entities").told
    assert step(report, "quick check").state == "done"


def test_evidence_expires_label_by_label(memory, clock, path):
    memory.enter_scene(HERE)
    clock.advance(days=20)
    memory.enter_scene(Situation.of(chan="mail"))
    clock.advance(days=11)

    report = memory.upkeep()

    assert sql(path, "SELECT label FROM situation_evidence") == [("chan:mail",)]
    memory.undo(step(report, "expire evidence").operations[0])
    assert len(memory.evidence()) == 2


def test_refs_sentences_and_entities_of_nothing_go_and_come_back(memory, path):
    for number in range(10):
        tell(memory, number, sentence=f"told {number}")
    for statement in (
        "DELETE FROM evidence WHERE relation_id = 1",
        "UPDATE scene_refs SET sentence_id = NULL WHERE kind = 'relation' AND ref_id = 1",
        "DELETE FROM relations WHERE id = 1",
        "DELETE FROM scene_refs WHERE kind = 'entity' AND ref_id IN (1, 2)",
    ):
        sql(path, statement)
    memory.reindex()
    before, index = dump(path), text_index_of(path)

    report = memory.upkeep()

    told = [step(report, f"purge {name}").told for name in ("stale refs", "sentences", "entities")]
    assert [line.split()[-1] for line in told] == ["1", "1", "2"]
    assert sql(path, "SELECT MIN(id) FROM sentences") == [(2,)]
    operations = [operation for each in report.steps for operation in each.operations]
    for operation in reversed(operations):
        memory.undo(operation)
    kept = ('INSERT INTO "sentences"', 'INSERT INTO "entities"', 'INSERT INTO "relations"')
    assert [line for line in dump(path) if line.startswith(kept)] == [line for line in before if line.startswith(kept)]
    assert text_index_of(path) == index


def test_a_sentence_that_an_undo_needs_stays(memory, path):
    tell(memory, 1, sentence="told once")
    memory.edit_relation(1, sentence="told again")
    sql(path, "UPDATE evidence SET sentence_id = 2")
    sql(path, "UPDATE relations SET sentence_id = 2")

    memory.upkeep()

    assert len(sql(path, "SELECT id FROM sentences")) == 2


@pytest.mark.parametrize("name", ["evidence_days", "journal_days", "incident_max_age_days"])
def test_a_time_that_began_before_all_calendars_ends_nothing(path, clock, name):
    with Memory.open(path, clock=clock, config=Config(**{name: 1e6})) as memory:
        memory.enter_scene(HERE)
        memory.record_failure("bash", "no such file")
        memory.edit_note(memory.remember("a note").note.id, body="more")
        assert memory.upkeep().ok

    for table in ("situation_evidence", "operations", "incidents"):
        assert sql(path, f"SELECT COUNT(*) FROM {table}") == [(1,)]


def test_old_journals_are_dropped_and_told_of(memory, clock, path):
    tell(memory, 1)
    memory.delete_relation(1)
    clock.advance(days=89)
    assert step(memory.upkeep(), "drop journal").state == "nothing"
    clock.advance(days=2)

    report = memory.upkeep()

    assert step(report, "drop journal").state == "done"
    assert [operation.kind for operation in memory.operations()] == ["drop journal"]
    assert sql(path, "SELECT COUNT(*) FROM operation_rows") == [(0,)]


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(told, clock, path):
    use(told, clock, 2)
    plant_twin(path, "Chan:QQ")
    told.enter_scene(HERE)
    clock.advance(days=40)
    before = dump(path)

    planned = told.upkeep(dry_run=True)

    assert dump(path) == before
    assert not planned.applied
    done = told.upkeep()
    for would, did in zip(planned.steps[:9], done.steps[:9], strict=True):
        assert (would.name, would.told, would.before, would.after) == (did.name, did.told, did.before, did.after)
        assert (would.state, did.state) in (("would", "done"), ("nothing", "nothing"))


# ---- the loss alarm


def test_a_step_that_would_lose_too_much_stops_and_the_others_go_on(told, clock, path):
    plant_twin(path, "Chan:QQ")
    use(told, clock, 6)
    before = sql(path, "SELECT * FROM scene_refs ORDER BY id")

    report = told.upkeep()

    stopped = step(report, "decay")
    assert not report.ok
    assert (stopped.state, stopped.operations) == ("stopped", ())
    assert "refs from 30 to 0" in stopped.told
    assert (stopped.before["refs"], stopped.after["refs"]) == (30, 0)
    assert sql(path, "SELECT * FROM scene_refs ORDER BY id") == before
    assert step(report, "dedupe scenes").state == "done"
    assert step(told.upkeep(allow_shrink=True), "decay").state == "done"
    assert weights(path) == []


def test_small_losses_that_come_to_much_in_a_day_stop_too(memory, clock, path):
    for number in range(20):
        tell(memory, number)

    def lose_some():
        sql(path, "DELETE FROM evidence WHERE relation_id = (SELECT MIN(id) FROM relations)")
        sql(path, "DELETE FROM relations WHERE id = (SELECT MIN(id) FROM relations)")
        clock.advance(hours=1)
        return step(memory.upkeep(), "purge stale refs").state

    states = [lose_some() for _ in range(16)]
    assert states == ["done"] * 12 + ["stopped"] * 4  # a fifth of 60 refs

    assert step(memory.upkeep(allow_shrink=True), "purge stale refs").state == "done"
    assert lose_some() == "done"
    clock.advance(days=1)
    assert lose_some() == "done"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"refs": 100}, {"refs": 80}, ""),
        ({"refs": 100}, {"refs": 79}, "refs from 100 to 79"),
        ({"refs": 3}, {"refs": 2}, ""),
        ({"refs": 3, "scenes": 1}, {"refs": 1, "scenes": 0}, "refs from 3 to 1, scenes from 1 to 0"),
        ({"refs": 0}, {"refs": 0}, ""),
    ],
)
def test_the_alarm(before, after, told):
    assert alarm(before, after, 0.2) == told


# ---- beside others


def test_one_pass_at_a_time_works_on_a_file(memory, clock, path):
    sql(path, "INSERT INTO leases VALUES ('upkeep', 'another', ?)", "2026-09-07T08:01:00.000Z")
    before = dump(path)

    with pytest.raises(StoreBusy, match="at work on this memory elsewhere"):
        memory.upkeep()

    assert dump(path) == before
    assert memory.upkeep(dry_run=True)
    clock.advance(minutes=1)  # the other died
    assert memory.upkeep().ok
    assert sql(path, "SELECT * FROM leases") == []


@pytest.mark.sqlite
def test_readers_and_upkeep_do_not_wait_for_each_other(memory, path):
    for number in range(5):
        tell(memory, number)
    with another_process(path, "BEGIN", "SELECT * FROM relations"):
        assert memory.upkeep().ok


def test_upkeep_runs_in_a_thread_that_ends_with_the_memory(path, clock, caplog):
    reports = []
    done = threading.Event()

    def told(report):
        reports.append(report)
        done.set()

    with Memory.open(path, clock=clock) as memory:
        tell(memory, 1)
        memory.start_upkeep(every=3600, report=told)
        assert done.wait(20)
        with pytest.raises(Conflict, match="runs already"):
            memory.start_upkeep()
    assert reports[0].ok
    assert not [thread for thread in threading.enumerate() if thread.name == "graphmem-upkeep"]


def test_a_pass_that_fails_in_the_thread_is_logged(path, clock, caplog):
    caplog.set_level(logging.WARNING, "graphmem")
    with Memory.open(path, clock=clock) as memory:
        sql(path, "INSERT INTO leases VALUES ('upkeep', 'another', '2026-09-07T08:00:30.000Z')")
        memory.start_upkeep()
        limit = time.monotonic() + 20
        while not caplog.records and time.monotonic() < limit:
            time.sleep(0.01)
    assert "at work on this memory elsewhere" in caplog.text


def test_closing_does_not_wait_for_the_rest_of_a_pass(path, clock):
    with Memory.open(path, clock=clock, config=Config(half_life_days=1)) as memory:
        for number in range(3000):
            memory.commit([Triple(f"thing {number}", "is", "x")], scenes="chan:qq")
        use(memory, clock, 1)
        memory.start_upkeep()
        limit = time.monotonic() + 20
        while not sql(path, "SELECT 1 FROM operations") and time.monotonic() < limit:
            time.sleep(0.002)
    left = sql(path, "SELECT COUNT(*) FROM scene_refs WHERE weight = 1.0")
    assert left[0][0] > 0
    assert sql(path, "SELECT * FROM leases") == []
    with pytest.raises(Conflict, match="closed"):
        memory.start_upkeep()


def test_a_lease_of_another_clock_keeps_nobody_out(memory, path):
    sql(path, "INSERT INTO leases VALUES ('upkeep', 'another', '2036-09-07T08:01:00.000Z')")

    assert memory.upkeep().ok


@pytest.mark.parametrize("every", [0, 0.5, "1h", float("nan"), True])
def test_an_interval_that_cannot_be(memory, every):
    with pytest.raises(InvalidInput, match="every"):
        memory.start_upkeep(every=every)


def test_what_others_change_after_the_plan_is_looked_at_again(told, clock, path, monkeypatch):
    """Another process tells a fact between the plan of the decay and its work."""
    use(told, clock, 2)
    write = told._store.write

    def other(*arguments, **options):
        sql(path, "UPDATE scene_refs SET decayed_at = '2026-09-09T08:00:00.000Z' WHERE id = 1")
        return write(*arguments, **options)

    monkeypatch.setattr(told._store, "write", other)
    told.upkeep()

    assert weights(path) == [1.0, *[0.5] * 9]


@pytest.mark.sqlite
def test_the_log_is_cut_when_it_has_grown(memory, path, monkeypatch):
    monkeypatch.setattr("graphmem.store.database.LARGEST_IDLE_LOG", 1000)
    for number in range(5):
        tell(memory, number)

    report = memory.upkeep()

    assert "its size: 0 bytes" in step(report, "checkpoint").told
    assert sqlite3.connect(path).execute("SELECT COUNT(*) FROM relations").fetchone() == (5,)


def test_operations_tell_what_they_were_about_until_it_is_purged(memory):
    memory.commit([Triple("Ann", "is", "x"), Triple("Anne", "is", "y"), Triple("Bob", "is", "z")], scenes="chan:qq")
    memory.merge_entities("Ann", "Anne")
    memory.rename_scene("chan:qq", "chan:tencent")
    memory.keep_apart("Anne", "Bob")
    memory.delete_relation(3)

    about = [operation.about for operation in memory.operations()]
    assert about == [("fact 3",), ("Anne, Bob",), ("chan:qq -> chan:tencent",), ("Ann", "Anne", "fact 1")]

    memory.purge(entity="Anne", hard=True)
    assert "Ann" not in str(memory.operations())


# ---- telling of changes


@pytest.mark.parametrize("name", [":memory:", "memory.db"])
def test_a_memory_tells_of_what_stays_and_not_of_what_was_rolled_back(tmp_path, clock, name):
    where = name if name == ":memory:" else tmp_path / name
    with Memory.open(where, clock=clock) as memory, memory.watch() as is_changed:
        tell(memory, 1)
        assert (is_changed(), is_changed()) == (True, False)
        memory.check()
        memory.repair(dry_run=True)
        memory.upkeep(dry_run=True)
        assert not is_changed()
        tell(memory, 2)
        assert is_changed()
