"""Failures are counted by kind, warned of, resolved by a lesson, and dropped when they are old (C8.12 to C8.14)."""

import datetime as dt

import pytest
from conftest import FakeClock
from support import dump, sql

from graphmem import Config, InvalidInput, Memory, NotFound
from graphmem.records import incidents

GONE = "rm: cannot remove '{}': No such file or directory (exit {})"


def warned(memory, *, scopes=None):
    """The signatures that a brief would warn of now."""
    with memory._store.read() as tx:
        found = incidents.warnings(tx, scopes, memory._at(None), memory.config)
    return [one.signature for one in found]


def learn(memory, title, **note):
    """Remember a note, and return what it resolved."""
    return memory.remember(title, **{"kind": "lesson", **note}).resolved


def test_failures_that_differ_in_names_alone_are_one_and_warned_of_at_the_second(memory):
    first = memory.record_failure("bash", GONE.format("/srv/a1/b.txt", 1))
    quiet = warned(memory)
    second = memory.record_failure("Bash", GONE.format("C:\\x y\\3f2a9b1c", 127))

    assert (first.created, first.warns, first.incident.count) == (True, False, 1)
    assert quiet == []
    assert (second.created, second.warns, second.incident.count) == (False, True, 2)
    assert second.incident.id == first.incident.id
    assert warned(memory) == [second.incident.signature]
    assert memory.incidents(scopes="all") == (second.incident,)


def test_another_tool_and_another_scope_are_counted_apart(memory):
    for tool, scope in (("bash", ""), ("python", ""), ("bash", "work"), ("bash", "home")):
        assert memory.record_failure(tool, "exit 1", scope=scope).created

    assert [one.count for one in memory.incidents(scopes="all")] == [1, 1, 1, 1]
    assert {one.scope for one in memory.incidents(scopes=["work"])} == {"", "work"}
    assert warned(memory) == []


def test_a_failure_told_again_keeps_its_latest_sample_and_both_times(memory, clock):
    memory.record_failure("bash", "exit 1")
    clock.advance(hours=1)
    memory.record_failure("bash", "exit 2")
    memory.record_failure("bash", "exit 3", at="2026-09-06T08:00:00Z")

    (one,) = memory.incidents(scopes="all")
    assert (one.count, one.sample) == (3, "exit 2")
    assert (one.first_at, one.last_at) == ("2026-09-06T08:00:00.000Z", "2026-09-07T09:00:00.000Z")


@pytest.mark.parametrize("kind", ["lesson", "pitfall"])
@pytest.mark.parametrize(
    "note", [{"title": "Quote it", "labels": ["bash"]}, {"title": "用bash时加引号"}, {"title": "x", "body": "In BASH."}]
)
def test_a_lesson_that_names_the_tool_resolves_and_a_later_failure_reopens(memory, clock, note, kind):
    for _ in range(3):
        memory.record_failure("bash", "exit 1")
    memory.record_failure("python", "exit 1")
    clock.advance(minutes=1)

    (resolved,) = learn(memory, **note, kind=kind)

    assert [one.tool for one in memory.incidents(scopes="all")] == ["python"]
    (one,) = memory.incidents(scopes="all", status="resolved")
    assert (one.id, one.resolved_at, one.note_id) == (resolved, "2026-09-07T08:01:00.000Z", 1)
    assert warned(memory) == []

    late = memory.record_failure("bash", "exit 5", at="2026-09-07T08:00:30Z")
    assert (late.reopened, late.warns) == (False, False)

    again = memory.record_failure("bash", "exit 1")
    assert (again.created, again.reopened, again.warns, again.incident.count) == (False, True, False, 1)
    assert again.incident.id == resolved
    assert memory.record_failure("bash", "exit 1").warns


@pytest.mark.parametrize(
    "note",
    [
        {"title": "bashrc is read late"},
        {"title": "bash", "kind": "fact"},
        {"title": "bash", "status": "proposed"},
        {"title": "bash", "scope": "work"},
        {"title": "bash-completion is slow"},
        {"title": "quote file names"},
    ],
)
def test_what_names_no_tool_or_is_no_lesson_resolves_nothing(memory, note):
    memory.record_failure("bash", "exit 1")

    assert learn(memory, **note) == ()
    assert len(memory.incidents(scopes="all")) == 1


def test_a_lesson_of_an_earlier_time_resolves_no_later_failure(memory):
    memory.record_failure("bash", "exit 1")

    assert learn(memory, "bash: quote", at="2026-09-07T07:59:59Z") == ()


def test_what_resolved_stays_resolved_when_its_lesson_is_removed(memory):
    memory.record_failure("bash", "exit 1", scope="work")
    note = memory.remember("bash: quote", kind="lesson", scope="work").note
    memory.forget(note.id, hard=True)

    (one,) = memory.incidents(scopes="all", status="resolved")
    assert one.note_id is None


def test_forty_kinds_are_kept_in_a_scope_those_seen_last(memory, clock):
    memory.record_failure("bash", "elsewhere", scope="work")
    words = [chr(ord("a") + number // 26) + chr(ord("a") + number % 26) for number in range(41)]
    for word in words:
        clock.advance(minutes=1)
        memory.record_failure("bash", f"{word} is wrong")

    samples = [one.sample for one in memory.incidents(scopes="all")]

    assert len(samples) == 41
    assert "elsewhere" in samples
    assert "aa is wrong" not in samples
    old = memory.record_failure("bash", "quite another thing", at="2026-09-07T08:00:00Z")
    assert old.incident is None
    assert "40 kinds" in old.remarks[0]
    assert [one.sample for one in memory.incidents(scopes="all")] == samples


def test_what_was_seen_last_61_days_ago_is_dropped(memory, clock, path):
    memory.record_failure("bash", "one thing")
    memory.record_failure("bash", "another thing", scope="work")
    clock.advance(days=60)
    assert len(memory.incidents(scopes="all")) == 2
    clock.advance(days=1)

    assert memory.incidents(scopes="all", status=None) == ()
    assert warned(memory) == []
    assert len(sql(path, "SELECT id FROM incidents")) == 2, "reading wrote"

    assert memory.record_failure("bash", "one thing").created
    assert sql(path, "SELECT scope FROM incidents ORDER BY scope") == [("",), ("work",)]
    step = {one.name: one for one in memory.upkeep(dry_run=True).steps}["expire incidents"]
    assert (step.state, step.told) == ("would", "kinds of failure not seen for 60 days: 1")
    memory.upkeep()
    assert sql(path, "SELECT scope FROM incidents") == [("",)]


def test_a_failure_that_is_too_old_is_not_recorded(memory):
    report = memory.record_failure("bash", "exit 1", at="2026-07-01T00:00:00Z")

    assert report.incident is None
    assert "incident_max_age_days" in report.remarks[0]
    assert memory.incidents(scopes="all", status=None) == ()


def test_nothing_is_recorded_where_that_is_switched_off(path):
    with Memory.open(path, clock=FakeClock(), config=Config(capture_failures=False)) as memory:
        before = dump(path)
        report = memory.record_failure("bash", "exit 1")

        assert report.incident is None
        assert "capture_failures" in report.remarks[0]
        assert dump(path) == before


def test_thresholds_are_settings(path):
    config = Config(incident_threshold=1, max_incidents=1, incident_max_age_days=1.0)
    with Memory.open(path, clock=FakeClock(), config=config) as memory:
        assert memory.record_failure("bash", "one thing").warns
        memory.record_failure("bash", "another thing")
        assert [one.sample for one in memory.incidents(scopes="all")] == ["another thing"]
    for name in ("incident_threshold", "max_incidents"):
        with pytest.raises(InvalidInput, match=name):
            Config(**{name: 0})


def test_an_age_beyond_all_dates_keeps_everything(path):
    with Memory.open(path, clock=FakeClock(), config=Config(incident_max_age_days=1e6)) as memory:
        memory.record_failure("bash", "exit 1", at="0001-01-01T00:00:00Z")
        assert len(memory.incidents(scopes="all")) == 1


def test_a_sample_is_one_line_and_half_an_emoji_is_told(memory):
    report = memory.record_failure("bash", "\x1b[31mok \ud83d\x1b[0m\n" + "x " * 1000)

    assert report.incident.sample.startswith("ok \ufffd x x")
    assert len(report.incident.sample) == 500
    assert report.remarks == ("characters that cannot be stored were replaced by U+FFFD",)


def test_a_silent_failure_is_a_kind_of_its_own(memory):
    assert memory.record_failure("grep", "").incident.signature == "grep|"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("", "x"), "tool"),
        (("  ", "x"), "tool"),
        (("b" * 101, "x"), "tool"),
        ((None, "x"), "tool"),
        (("bash", None), "text"),
        (("bash", b"x"), "text"),
    ],
)
def test_bad_failures_are_refused_by_name_and_change_nothing(memory, path, arguments, named):
    before = dump(path)

    with pytest.raises(InvalidInput) as caught:
        memory.record_failure(*arguments)

    assert caught.value.argument == named
    assert dump(path) == before


def test_bad_scopes_times_and_states_are_refused(memory):
    for options in ({"scope": 1}, {"at": "soon"}):
        with pytest.raises(InvalidInput):
            memory.record_failure("bash", "x", **options)
    with pytest.raises(InvalidInput, match="status"):
        memory.incidents(scopes="all", status="closed")


def test_an_incident_can_be_forgotten(memory):
    made = memory.record_failure("bash", "exit 1").incident

    assert memory.forget_incident(made.id) == made
    assert memory.incidents(scopes="all", status=None) == ()
    with pytest.raises(NotFound, match="incident 1"):
        memory.forget_incident(made.id)
    assert memory.record_failure("bash", "exit 1").created


def test_two_writers_lose_no_count(path):
    clock = FakeClock()
    with Memory.open(path, clock=clock) as one, Memory.open(path, clock=clock) as other:
        for _ in range(5):
            one.record_failure("bash", "exit 1")
            clock.advance(seconds=1)
            other.record_failure("bash", "exit 2")
        assert one.incidents()[0].count == 10


def test_the_most_frequent_and_latest_are_warned_of_first(memory, clock):
    for text, times in (("one thing", 2), ("another thing", 3), ("a third thing", 2)):
        for _ in range(times):
            clock.advance(seconds=1)
            memory.record_failure("bash", text)

    assert warned(memory) == ["bash|another thing", "bash|a third thing", "bash|one thing"]
    assert dt.datetime.fromisoformat(memory.incidents(scopes="all")[0].last_at) < clock.now
