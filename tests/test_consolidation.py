"""Consolidating and distilling: what stays true and what repeats, by a writer or by rules, when it is due."""

import datetime as dt
import json
import re
import shlex
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Served, answer_of, die_at, dump, place_of, sql, sql_unchecked

from graphmem import Config, Conflict, InvalidInput, Memory, Part, StoreBusy, StoreFailed, WriterFailed
from graphmem.config import DEFAULT
from graphmem.core import consolidating, distilling
from graphmem.core.candidates import DUPLICATE, likeness, note_text, repeats
from graphmem.core.injected import WRITER_MARK
from graphmem.core.times import utc_text
from graphmem.errors import BudgetSpent
from graphmem.surfaces.cli import main

PROJECT = "project:aaaaaaaaaaaa"


class Scripted:
    """A writer that says what it was told to say, one reply after the other, the last one for ever."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.tasks = []

    def __call__(self, task):
        self.tasks.append(task)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply(task) if callable(reply) else reply


@pytest.fixture
def opened(path, clock):
    """Open the memory, with a writer where there are replies."""
    memories = []

    def open_with(*replies, config=DEFAULT, **options):
        writer = Scripted(*replies) if replies else None
        memories.append(Memory.open(path, clock=clock, config=config, writer=writer, **options))
        return memories[-1], writer

    yield open_with
    for memory in memories:
        memory.close()


def entry(title, body="So it is.", **more):
    return {"title": title, "body": body, **more}


def reply(*entries):
    return f"Here you are:\n```json\n{json.dumps(entries, ensure_ascii=False)}\n```"


def told(memory, *titles, scope="user", **options):
    """Notes of an agent, by id."""
    return [memory.remember(title, scope=scope, **options).note.id for title in titles]


def statuses(memory, *ids):
    return [memory.inspect(note_id).note.status for note_id in ids]


def sources(path, note_id):
    return [one for (one,) in sql(path, "SELECT source_id FROM note_sources WHERE note_id = ? ORDER BY 1", note_id)]


def outcomes(report):
    return [one.outcome for one in report.conclusions]


def checkpoint(memory, session, *, decisions=(), facts=(), scope="user"):
    """A note as a checkpoint of a session is."""
    listed = ["\n".join(f"- {line}" for line in lines) or "(none)" for lines in (decisions, facts)]
    body = (
        f"# Checkpoint\n## Summary\nWork.\n## Decisions\n{listed[0]}\n## Facts\n{listed[1]}\n## Open\n(none)\n"
        "## Files\n(none)\n## Notes\n(none)"
    )
    report = memory.remember(f"Checkpoint of {session}", body=body, kind="checkpoint", session=session, scope=scope)
    return report.note.id


def many(memory, count=10, scope="user"):
    """Notes that nothing is done with, so that the loss alarm has something to count."""
    words = ("anchor", "basil", "copper", "dune", "ember", "fjord", "garnet", "heron", "iris", "jasper")
    return told(memory, *(f"{word} is kept in room {n}" for n, word in enumerate(words[:count])), scope=scope)


def run_calls(memory, session, *commands, scope=None, outcome="done", tool="bash"):
    parts = [Part("u", role="user", text="Go on.")]
    parts += [Part(f"t{n}", role="tool", tool=tool, outcome=outcome, text=text) for n, text in enumerate(commands)]
    memory.mirror(session, parts, scope=scope)


# ---- when it is due


@pytest.mark.parametrize(("verb", "days"), [("consolidate", 7), ("distill", 30)])
def test_it_is_due_again_after_its_days_for_each_scope(opened, path, clock, verb, days):  # B8.16
    memory, writer = opened(reply())
    many(memory, 2)
    many(memory, 2, scope=PROJECT)
    for scope in ("user", PROJECT):
        run_calls(memory, f"s {scope}", "make", scope=scope)

    assert getattr(memory, verb)().state == "unchanged"
    clock.advance(days=2.2)
    before = dump(path)
    early = getattr(memory, verb)()

    assert (early.state, early.days_left, early.applied) == ("early", days - 2, False)
    assert early.due_at == f"2026-{'09-14' if days == 7 else '10-07'}T08:00:00.000Z"
    assert (len(writer.tasks), dump(path)) == (1, before)
    assert getattr(memory, verb)(dry_run=True).state == "early"
    assert getattr(memory, verb)(scope=PROJECT).state == "unchanged"
    assert len(writer.tasks) == 2
    assert getattr(memory, verb)(force=True).state == "unchanged"
    clock.advance(days=days - 0.01)
    assert getattr(memory, verb)().days_left == 1
    clock.advance(days=0.01)
    run_calls(memory, "s2", "make")
    assert getattr(memory, verb)().state == "unchanged"


def test_the_same_day_it_is_due_in_about_seven_days(opened):  # B8.16
    memory, _ = opened()
    many(memory, 2)
    memory.consolidate()

    assert memory.consolidate().days_left == 7


def test_a_failure_does_not_use_up_the_interval(opened):  # B8.16
    memory, writer = opened(WriterFailed("no answer"), "no JSON at all", reply())
    many(memory, 2)

    assert [memory.consolidate().state for _ in range(4)] == ["failed", "failed", "unchanged", "early"]
    assert [job.state for job in memory.jobs()] == ["done", "failed", "failed"]
    assert len(writer.tasks) == 3


def test_a_budget_that_is_spent_is_no_failure(opened):
    memory, writer = opened(*[BudgetSpent("spent")] * 4, reply())
    many(memory, 2)

    assert [memory.consolidate().state for _ in range(4)] == ["waiting"] * 4
    assert [job.state for job in memory.jobs()] == ["queued"]
    assert memory.consolidate().state == "unchanged"
    assert [job.state for job in memory.jobs()] == ["done"]
    assert len(writer.tasks) == 5


def test_after_three_failures_in_a_row_a_scope_is_left_alone(opened):
    memory, writer = opened(*[WriterFailed("no")] * 3, reply())
    many(memory, 2)

    assert [memory.consolidate().state for _ in range(4)] == ["failed"] * 3 + ["suppressed"]
    assert memory.consolidate(force=True).state == "unchanged"
    assert len(writer.tasks) == 4


def test_a_failure_is_told_and_logged_in_one_line(opened, caplog):
    memory, _ = opened(ZeroDivisionError("oops"))
    many(memory, 2)

    report = memory.consolidate()

    assert "ZeroDivisionError: oops" in report.error
    assert [record.getMessage() for record in caplog.records] == [f"consolidate of scope '': {report.error}"]


@pytest.mark.parametrize("verb", ["consolidate", "distill"])
@pytest.mark.parametrize("replies", [(), (reply(),)], ids=["rules", "writer"])
def test_where_there_is_nothing_to_read_nothing_is_done(opened, path, verb, replies):
    memory, writer = opened(*replies)

    assert getattr(memory, verb)().state == "nothing"
    assert getattr(memory, verb)(dry_run=True).state == "nothing"
    assert sql(path, "SELECT COUNT(*) FROM jobs") == [(0,)]
    assert writer is None or not writer.tasks


def test_the_current_project_is_meant_where_there_is_one(opened, tmp_path):
    memory, _ = opened(project=tmp_path)

    assert memory.consolidate().scope == memory.project.key
    assert memory.consolidate(scope="user").scope == ""


def test_mistakes_are_told(opened):
    memory, _ = opened()
    with pytest.raises(InvalidInput, match="there is no current project"):
        memory.consolidate(scope="project")
    with pytest.raises(InvalidInput, match="force"):
        memory.distill(force="yes")


def test_a_read_only_memory_shows_and_does_nothing(opened):
    memory, _ = opened()
    many(memory, 2)
    reader, _ = opened(config=Config(read_only=True))

    assert reader.consolidate(dry_run=True).state == "unchanged"
    for verb in (reader.consolidate, reader.distill):
        with pytest.raises(Conflict, match="read-only"):
            verb()


# ---- what a writer concludes


def test_a_conclusion_takes_the_place_of_notes_and_knows_its_sources(opened, path):
    memory, writer = opened("")
    many(memory)
    old = told(memory, "The panel listens on 80", "The panel listens on 8080 now", source="agent")
    memory.remember("The panel listens on 80", source="agent")
    proof = checkpoint(memory, "s1", facts=["the panel answers on 8080"])
    new = entry(
        "The panel listens on 8080",
        "It was 80 until September.",
        supersedes=old,
        evidence=[f"[{proof}]"],
        loadWhen=["port"],
    )
    writer.replies = [reply(new)]

    report = memory.consolidate()

    assert (report.state, report.by, report.applied) == ("revised", "writer", True)
    (one,) = report.conclusions
    assert (one.outcome, one.supersedes, one.sources) == ("written", tuple(old), (*old, proof))
    note = memory.inspect(one.note_id).note
    assert (note.title, note.kind, note.status, note.seen) == ("The panel listens on 8080", "fact", "live", 4)
    assert (note.load_when, note.source) == (("port",), "agent:writer")
    assert statuses(memory, *old) == ["superseded", "superseded"]
    assert [memory.inspect(each).note.superseded_by for each in old] == [one.note_id] * 2
    assert sources(path, one.note_id) == [*old, proof]
    assert next(hit.id for hit in memory.recall("panel listens", kinds="note")) == one.note_id
    assert memory.check().problems == ()


def test_an_undo_lets_the_old_notes_live_and_archives_the_new(opened, path):
    memory, writer = opened("")
    many(memory)
    old = told(memory, "The panel listens on 80", "The panel is on 8080", load_when="port", slot="")
    writer.replies = [reply(entry("The panel listens on 8080", supersedes=old))]
    report = memory.consolidate()

    assert memory.operations()[0].about[0] == "The panel listens on 8080"
    undone = memory.undo(report.operation)

    new = report.conclusions[0].note_id
    assert undone.changed == 3
    assert statuses(memory, *old, new) == ["live", "live", "archived"]
    assert [memory.inspect(each).note.superseded_by for each in old] == [None, None]
    assert sources(path, new) == []
    assert {hit.id for hit in memory.recall("panel", kinds="note")} == set(old)
    assert memory.check().problems == ()
    assert memory.restore_note(new).status == "live"


def test_what_is_found_by_a_note_finds_what_took_its_place(opened):
    memory, writer = opened("")
    many(memory)
    (old,) = told(memory, "npm breaks", labels="打包", load_when="发布", scenes=["chan:qq"], slot="tool")
    memory.remember("npm breaks", slot="tool")  # for everybody as well
    writer.replies = [reply(entry("Deploy with pnpm", supersedes=[old], loadWhen=["ship"]))]

    (one,) = memory.consolidate().conclusions

    note = memory.inspect(one.note_id)
    assert (note.note.labels, note.note.load_when, note.note.slot) == (("打包",), ("ship", "发布"), "tool")
    assert note.scenes == ("chan:qq",)
    assert [version.id for version in note.versions] == [old]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"source": "user:ann"}, "a person said it"),
        ({"source": "user", "pinned": True}, "it binds"),
        ({"source": "user", "slot": "pen_name"}, "it binds"),
    ],
)
def test_what_a_person_said_or_what_binds_is_not_superseded(opened, options, why):
    memory, writer = opened("")
    many(memory)
    (kept,) = told(memory, "Answer in German", **options)
    writer.replies = [reply(entry("Answer in English", supersedes=[kept]))]

    report = memory.consolidate()

    (one,) = report.conclusions
    assert (report.state, one.outcome, one.supersedes) == ("appended", "proposed", ())
    assert one.reason == f"it would take the place of note {kept}: {why}"
    assert statuses(memory, kept, one.note_id) == ["live", "proposed"]


def test_rules_are_proposed_and_secrets_refused(opened):
    memory, writer = opened("")
    ids = many(memory)
    writer.replies = [
        reply(
            entry("Never deploy on friday", proposeRule=True, evidence=ids[:2], supersedes=ids[:1]),
            entry("The key", "password: hunter2hunter2", evidence=ids[:1]),
        )
    ]

    report = memory.consolidate()

    assert outcomes(report) == ["proposed", "refused"]
    assert "hunter2" not in str(report)
    assert memory.inspect(report.conclusions[0].note_id).note.kind == "rule"
    assert statuses(memory, *ids) == ["live"] * 10


def test_only_what_the_writer_was_shown_counts(opened):
    memory, writer = opened("")
    ids = many(memory)
    others = many(memory, 1, scope=PROJECT)
    (secret,) = told(memory, "Ann is pregnant", scenes=["chan:qq/peer:ann"])
    writer.replies = [
        reply(
            entry("All is well", supersedes=[*others, secret, 999]),
            entry("All rooms are numbered", supersedes=[*others, ids[0]], evidence="all"),
            entry("Out of thin air"),
        )
    ]

    report = memory.consolidate()

    assert "pregnant" not in writer.tasks[0].text
    assert outcomes(report) == ["refused", "written", "refused"]
    assert report.superseded == (ids[0],)
    assert report.conclusions[0].reason == "it names no evidence that was shown"
    assert f"names what was not shown, or is not as it was: {others[0]}, {secret}, 999" in report.remarks[0]
    assert statuses(memory, *others, secret) == ["live", "live"]


def test_a_conclusion_that_is_known_lets_the_known_note_take_the_others_in(opened, path):
    memory, writer = opened("")
    many(memory)
    ids = told(memory, "Deploy with pnpm", "pnpm, not npm, deploys the panel")
    proof = checkpoint(memory, "s1", decisions=["pnpm"])
    writer.replies = [reply(entry("Deploy with pnpm", "deploy with pnpm", supersedes=ids, evidence=[proof]))]

    first = memory.consolidate()
    again = memory.consolidate(force=True)

    (one,) = first.conclusions
    assert (one.outcome, one.note_id, one.supersedes, one.seen) == ("merged", ids[0], (ids[1],), 3)
    assert memory.inspect(ids[0]).note.seen == 3
    assert sources(path, ids[0]) == [ids[1], proof]
    assert (again.state, outcomes(again)) == ("unchanged", ["known"])
    assert memory.inspect(ids[0]).note.seen == 3


def test_what_a_person_put_away_does_not_come_back(opened):
    memory, writer = opened("")
    ids = many(memory)
    (gone,) = told(memory, "The door code is written down")
    memory.forget(gone)
    writer.replies = [reply(entry("The door code is written down", "the door code is written down", evidence=ids[:1]))]

    report = memory.consolidate()

    assert (report.state, outcomes(report)) == ("unchanged", ["known"])
    assert statuses(memory, gone) == ["archived"]


def test_one_note_is_replaced_once(opened):
    memory, writer = opened("")
    ids = many(memory)
    writer.replies = [reply(entry("First of all", supersedes=ids[:1]), entry("Second thoughts", supersedes=ids[:1]))]

    report = memory.consolidate()

    assert [one.supersedes for one in report.conclusions] == [(ids[0],), ()]
    assert memory.inspect(ids[0]).note.superseded_by == report.conclusions[0].note_id


def test_what_one_conclusion_replaced_takes_no_others_in(opened):
    memory, writer = opened("")
    ids = many(memory)
    said = memory.inspect(ids[0]).note.title
    writer.replies = [reply(entry("First of all", supersedes=ids[:1]), entry(said, said, supersedes=ids[1:2]))]

    report = memory.consolidate()

    assert outcomes(report) == ["written", "known"]
    assert statuses(memory, *ids[:2]) == ["superseded", "live"]


def test_notes_of_several_slots_keep_them(opened):
    memory, writer = opened("")
    many(memory)
    ids = [*told(memory, "one", slot="a"), *told(memory, "two", slot="b")]
    writer.replies = [reply(entry("One and two", supersedes=ids))]

    assert outcomes(memory.consolidate()) == ["left"]
    assert statuses(memory, *ids) == ["live", "live"]


def test_a_plan_that_would_retire_much_stops(opened, path):
    memory, writer = opened("")
    ids = many(memory)
    writer.replies = [reply(entry("All rooms", supersedes=ids[:5]))]
    notes = sql(path, "SELECT * FROM notes")

    report = memory.consolidate()

    assert (report.state, report.applied) == ("stopped", False)
    assert "notes from 10 to 5" in report.error
    assert report.superseded == tuple(ids[:5])
    assert sql(path, "SELECT * FROM notes") == notes
    assert memory.consolidate(dry_run=True).state == "stopped"
    assert memory.consolidate(allow_shrink=True).state == "revised"


def test_a_writer_reads_notes_and_what_is_new_of_checkpoints(opened, clock):
    memory, writer = opened(reply())
    (note,) = told(memory, "Deploy with pnpm")
    memory.remember("Deploy with pnpm")
    first = checkpoint(memory, "s1", facts=["port 80"])
    memory.consolidate()
    clock.advance(days=8)
    second = checkpoint(memory, "s2", facts=["port 8080"])
    memory.consolidate()

    task = writer.tasks[0]
    assert task.text.startswith(
        f"[{note}] fact, told 2 times, by agent, last 2026-09-07: Deploy with pnpm\n\n[{first}]"
    )
    assert task.instructions.startswith(WRITER_MARK)
    assert (task.kind, task.date, task.limit) == ("consolidate", "2026-09-07T08:00:00Z", 10_240)
    assert f"[{second}]" in writer.tasks[1].text
    assert f"[{first}]" not in writer.tasks[1].text


def test_what_has_no_room_is_told(opened):
    memory, writer = opened(reply(), config=Config(checkpoint_input_bytes=1000))
    told(memory, *(f"{'x' * 300} {n}" for n in range(5)))
    checkpoint(memory, "s1")

    report = memory.consolidate()

    assert len(writer.tasks[0].text.encode()) <= 1000
    assert "Checkpoint of s1" in writer.tasks[0].text
    assert report.remarks == (
        "notes and checkpoints that had no room: 3; raise checkpoint_input_bytes to read more at once",
    )


def test_each_checkpoint_is_read_once_the_oldest_first(opened, path):
    memory, writer = opened(reply(), WriterFailed("no"), reply(), config=Config(checkpoint_input_bytes=1000))
    made = [checkpoint(memory, f"s{number}", facts=["x" * 200]) for number in range(5)]

    states = [memory.consolidate(force=True).state for _ in range(4)]

    read = [[int(number) for number in re.findall(r"^\[(\d+)\]", task.text, re.MULTILINE)] for task in writer.tasks]
    assert states == ["unchanged", "failed", "unchanged", "unchanged"]
    assert read == [made[:2], made[2:4], made[2:4], made[4:]]
    assert [job.note_id for job in memory.jobs()] == [made[4], made[3], made[3], made[1]]
    assert memory.consolidate(force=True).state == "nothing"
    by_rules, _ = opened()
    by_rules.consolidate(force=True)
    sql(path, "DELETE FROM jobs WHERE id < (SELECT MAX(id) FROM jobs)")
    checkpoint(memory, "s5")
    memory.consolidate(force=True)
    assert re.findall(r"^\[(\d+)\] checkpoint", writer.tasks[-1].text, re.MULTILINE) == ["7"]


def test_a_checkpoint_that_has_no_room_is_read_in_part_and_holds_up_no_other(opened):
    memory, writer = opened(reply(), config=Config(checkpoint_input_bytes=1000))
    long, short = checkpoint(memory, "s1", facts=["读" * 900]), checkpoint(memory, "s2")

    report = memory.consolidate()
    memory.consolidate(force=True)

    assert [len(task.text.encode()) <= 1000 for task in writer.tasks] == [True, True]
    assert writer.tasks[0].text.startswith(f"[{long}] checkpoint")
    assert writer.tasks[1].text.startswith(f"[{short}] checkpoint")
    assert report.remarks[0].startswith("notes and checkpoints that had no room: 2;")


def test_a_note_that_has_no_room_hides_no_others(opened, clock):
    memory, writer = opened(reply(), config=Config(checkpoint_input_bytes=1000))
    told(memory, "Deploy with pnpm", "Redis listens on 6380")
    clock.advance(minutes=1)
    told(memory, "The whole handbook", body="x" * 2000)

    report = memory.consolidate()

    assert "Deploy with pnpm" in writer.tasks[0].text
    assert "Redis listens on 6380" in writer.tasks[0].text
    assert "handbook" not in writer.tasks[0].text
    assert report.remarks[0].startswith("notes and checkpoints that had no room: 1;")


@pytest.mark.parametrize(("language", "words"), [("en", "Answer with one JSON array"), ("zh", "只回答一个 JSON 数组")])
@pytest.mark.parametrize("verb", ["consolidate", "distill"])
def test_a_model_is_asked_in_the_language_of_the_memory(opened, language, words, verb):
    memory, writer = opened(reply(), config=Config(language=language))
    many(memory, 1)
    run_calls(memory, "s1", "make")

    getattr(memory, verb)()

    assert words in writer.tasks[0].instructions


def test_a_dry_run_asks_and_writes_nothing(opened, path):
    memory, writer = opened("")
    ids = many(memory)
    writer.replies = [reply(entry("All rooms", supersedes=ids[:1]))]
    before = dump(path)

    report = memory.consolidate(dry_run=True)

    assert (report.state, report.applied, report.operation) == ("revised", False, None)
    assert [(one.outcome, one.note_id, one.supersedes) for one in report.conclusions] == [
        ("written", None, (ids[0],)),
    ]
    assert (len(writer.tasks), dump(path)) == (1, before)
    writer.replies = [WriterFailed("no")]
    assert memory.consolidate(dry_run=True).state == "failed"
    writer.replies = ["no JSON"]
    assert memory.consolidate(dry_run=True).state == "failed"
    assert dump(path) == before


# ---- one at a time, and crashes


def test_while_one_is_at_work_no_other_begins(opened):
    def meanwhile(task):
        assert (other.consolidate().state, other.consolidate(force=True).state) == ("busy", "busy")
        assert other.consolidate(scope=PROJECT).state == "unchanged"
        return reply()

    memory, _writer = opened(meanwhile)
    other, idle = opened(reply())
    many(memory, 2)
    many(memory, 2, scope=PROJECT)

    assert memory.consolidate().state == "unchanged"
    assert len(idle.tasks) == 1


@pytest.mark.parametrize(("moment", "asked"), [("asked", 1), ("answered", 0), ("settled", 0)])
def test_a_process_that_is_killed_leaves_its_job_to_the_next(opened, path, clock, moment, asked):
    memory, writer = opened("")
    ids = many(memory)
    said = reply(entry("All rooms", supersedes=[*ids[:2], 12]))
    writer.replies = [said]
    die_at(moment, path, said, "graphmem.compose.consolidating", "consolidate")
    clock.advance(minutes=1)
    memory.remember(memory.inspect(ids[1]).note.title)  # told once more since
    (unseen,) = told(memory, "Not shown to the writer")
    assert unseen in (11, 12)  # PostgreSQL gives no number again that was taken back

    report = memory.consolidate()

    assert len(writer.tasks) == asked
    assert report.superseded == (tuple(ids[:2]) if asked else (ids[0],))
    assert [job.state for job in memory.jobs()] == ["done"]
    assert memory.consolidate().state == "early"
    assert memory.check().problems == ()


def test_a_job_that_ends_every_process_is_given_up(opened, path):
    memory, _writer = opened(WriterFailed("no"), reply())
    many(memory, 2)
    memory.consolidate()
    sql(
        path,
        """UPDATE jobs SET state = 'asked', owner = 'elsewhere:1:x', lease_until = '2026-09-07T07:00:00.000Z',
                           attempts = 3""",
    )

    assert memory.consolidate().state == "unchanged"
    assert [job.state for job in memory.jobs()] == ["done", "failed"]


def test_while_it_reads_what_a_writer_is_asked_others_can_write(opened, monkeypatch):
    memory, writer = opened(reply())
    other, _ = opened(config=Config(busy_timeout=0.1))
    many(memory, 2)
    from graphmem.compose import consolidating as compose

    ask = compose.ask

    def meanwhile(*given):
        asked = ask(*given)
        told(other, "Deploy with pnpm")
        return asked

    monkeypatch.setattr(compose, "ask", meanwhile)

    assert memory.consolidate().state == "unchanged"
    assert "pnpm" not in writer.tasks[0].text


def test_a_reply_that_another_settles_meanwhile_is_settled_once(opened, monkeypatch):
    memory, writer = opened(BudgetSpent("spent"), reply())
    other, _ = opened(reply())
    many(memory, 2)
    memory.consolidate()
    sql(memory.path, "UPDATE jobs SET state = 'answered', reply = '[[], \"[]\"]'")
    from graphmem.compose import consolidating as compose

    look = compose.ask_unless_answered

    def meanwhile(*given):
        found = look(*given)
        if found is None:
            monkeypatch.setattr(compose, "ask_unless_answered", look)
            assert other.consolidate().state == "unchanged"
        return found

    monkeypatch.setattr(compose, "ask_unless_answered", meanwhile)

    assert memory.consolidate(force=True).state == "busy"
    assert len(writer.tasks) == 1


def test_for_a_reply_that_waits_nothing_is_read(opened, monkeypatch):
    memory, writer = opened("")
    ids = many(memory)
    writer.replies = [reply(entry("All rooms", supersedes=ids[:1]))]
    from graphmem.compose import consolidating as compose

    def full(*_):
        raise StoreFailed("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(compose, "settle", full)
        with pytest.raises(StoreFailed):
            memory.consolidate()
    monkeypatch.setattr(compose, "ask", lambda *_: pytest.fail("it was read again"))

    assert memory.consolidate().state == "revised"


ASKED_AND_LEFT = """UPDATE jobs SET state = 'asked', owner = 'elsewhere:1:x', attempts = 1,
                    lease_until = '2026-09-07T07:00:00.000Z' WHERE id = (SELECT MAX(id) FROM jobs)"""


@pytest.mark.parametrize("case", ["early", "early by rules", "nothing", "nothing by rules"])
def test_a_job_that_was_left_is_ended_where_nobody_is_asked_again(opened, path, case):
    memory, _ = opened(reply(), WriterFailed("no"))
    ids = many(memory, 2)
    if case.startswith("early"):
        memory.consolidate()
    else:
        memory, _ = opened(WriterFailed("no"))
    memory.consolidate(force=True)
    sql(path, ASKED_AND_LEFT)
    if case.startswith("nothing"):
        for note_id in ids:
            memory.forget(note_id)
    if case.endswith("rules"):
        memory, _ = opened()
    before = dump(path)

    assert memory.consolidate(dry_run=True).state == case.split()[0]
    assert dump(path) == before
    assert memory.consolidate().state == case.split()[0]
    assert (memory.jobs()[0].state, memory.jobs()[0].error) == ("failed", "left before it was done")
    assert memory.jobs(states=["queued", "asked", "answered"]) == ()


def test_nothing_is_loaded_while_nobody_else_can_write(path):
    program = """if True:
        import sys
        from graphmem import Memory
        from graphmem.store.database import SqliteStore as Store
        write = Store.write
        loaded = []
        class Writing:
            def __init__(self, block): self.block = block
            def __enter__(self):
                self.tx = self.block.__enter__()
                self.before = {name for name in sys.modules if name.startswith("graphmem")}
                return self.tx
            def __exit__(self, *error):
                loaded.extend(sorted({name for name in sys.modules if name.startswith("graphmem")} - self.before))
                return self.block.__exit__(*error)
        with Memory.open(sys.argv[1], writer=lambda task: "[]") as memory:
            memory.remember("Deploy with pnpm")
            Store.write = lambda *given, **options: Writing(write(*given, **options))
            assert memory.consolidate().state == "unchanged"
        print(loaded)
    """
    ran = subprocess.run([sys.executable, "-c", program, place_of(path)], check=True, capture_output=True, text=True)

    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("error", [Conflict("read-only"), StoreBusy("somebody writes")])
def test_what_is_wrong_with_the_memory_is_no_failure_of_the_writer(opened, error):
    memory, writer = opened(error, reply())
    many(memory, 2)

    for dry_run in (True, False):
        writer.replies = [error]
        with pytest.raises(type(error), match=str(error)):
            memory.consolidate(dry_run=dry_run)
    writer.replies = [reply()]

    assert memory.consolidate().state == "unchanged"
    assert [job.state for job in memory.jobs()] == ["done"]


def test_a_dry_run_of_a_read_only_memory_counts_tokens_for_itself(opened, path, endpoint):
    memory, _ = opened()
    many(memory, 2)
    address, asked = endpoint(Served(answer_of(reply(), usage={"total_tokens": 900})))
    settings = {"writer_url": address, "writer_model": "m1", "writer_tokens_per_day": 1000}
    reader, _ = opened(config=Config(read_only=True, **settings))
    before = dump(path)

    assert reader.consolidate(dry_run=True).state == "unchanged"
    assert "the budget of 1000 tokens" in reader.consolidate(dry_run=True).error
    assert (len(asked), dump(path)) == (1, before)
    counting, _ = opened(config=Config(**settings))
    assert counting.consolidate(dry_run=True).state == "unchanged"
    assert sql(path, "SELECT tokens FROM writer_usage") == [(900,)]
    free, _ = opened(config=Config(**{**settings, "writer_tokens_per_day": 0}))
    before = dump(path)
    assert free.consolidate(dry_run=True).state == "unchanged"
    assert dump(path) == before


def test_what_cannot_be_written_leaves_the_reply_to_the_next(opened, monkeypatch):
    memory, writer = opened("")
    ids = many(memory)
    writer.replies = [reply(entry("All rooms", supersedes=ids[:1]))]
    from graphmem.records import notes

    def full(*_, **__):
        raise StoreFailed("the disk is full")

    monkeypatch.setattr(notes, "remember", full)
    with pytest.raises(StoreFailed):
        memory.consolidate()
    monkeypatch.undo()

    assert statuses(memory, *ids) == ["live"] * 10
    assert memory.consolidate().state == "revised"
    assert len(writer.tasks) == 1


# ---- by rules


def test_notes_that_say_the_same_become_one(opened, path):
    memory, _ = opened()
    many(memory)
    ids = told(memory, "Redis listens on 6380", "Redis is listening on 6380", "Redis is listening on the 6380")
    memory.remember("Redis is listening on 6380")
    told(memory, "Redis listens on 6381", "Redis does not listen on 6380")

    report = memory.consolidate()

    (one,) = report.conclusions
    assert (report.state, report.by, one.outcome) == ("revised", "rules", "merged")
    assert (one.note_id, one.supersedes, one.seen) == (ids[1], (ids[0], ids[2]), 4)
    assert statuses(memory, *ids) == ["superseded", "live", "superseded"]
    assert sources(path, ids[1]) == [ids[0], ids[2]]
    before = dump(path)
    assert memory.consolidate(force=True).state == "unchanged"
    assert [line for line in dump(path) if "jobs" not in line] == [line for line in before if "jobs" not in line]
    memory.undo(report.operation)
    assert statuses(memory, *ids) == ["live"] * 3
    assert memory.inspect(ids[1]).note.seen == 2
    assert memory.check().problems == ()


def test_what_a_person_took_back_is_not_done_again(opened):
    memory, _ = opened()
    many(memory)
    ids = told(memory, "Redis listens on 6380", "Redis is listening on 6380")
    memory.undo(memory.consolidate().operation)

    assert memory.consolidate(force=True).state == "unchanged"
    assert statuses(memory, *ids) == ["live", "live"]


def test_a_slot_keeps_its_order_when_its_note_takes_others_in(opened):
    memory, _ = opened()
    many(memory)
    told(memory, "Redis is listening on 6380", at="2026-09-01")
    old = told(memory, "Redis listens on 6379", slot="redis", at="2026-09-02")[0]
    told(memory, "Redis listens on 6380", slot="redis", at="2026-09-03")

    assert memory.consolidate().superseded == (11,)
    assert next(hit.id for hit in memory.recall("Redis listens", kinds="note", as_of="2026-09-02T12:00")) == old


@pytest.mark.parametrize(
    ("first", "second", "lost"),
    [
        ({}, {}, 1),
        ({"source": "agent"}, {"source": "user"}, 0),
        ({"source": "user"}, {"source": "user"}, 1),
        ({"source": "agent"}, {"slot": "port"}, 0),
        ({"slot": "a"}, {"slot": "b"}, None),
        ({"source": "user"}, {"source": "agent", "slot": "b"}, None),
        ({"kind": "lesson"}, {"kind": "fact"}, None),
        ({"pinned": True, "source": "user"}, {"pinned": True, "source": "user"}, None),
        ({"pinned": True, "source": "user"}, {"source": "agent"}, 1),
        ({"scenes": ["chan:qq"]}, {}, 0),
        ({"scenes": ["chan:qq"]}, {"scenes": ["chan:qq"]}, 1),
        ({"scenes": ["chan:qq"]}, {"scenes": ["chan:mail"]}, None),
        ({"scope": PROJECT}, {}, None),
    ],
)
def test_which_of_two_gives_way(opened, first, second, lost):
    memory, _ = opened()
    many(memory)
    pair = [
        memory.remember(title, **{"scope": "user", **options}).note.id
        for title, options in (("Redis listens on 6380", first), ("Redis is listening on 6380", second))
    ]

    report = memory.consolidate()

    assert report.superseded == (() if lost is None else (pair[lost],))


def test_a_bare_title_gives_way_and_other_titles_are_told(opened):
    memory, _ = opened()
    many(memory)
    bare, full = told(memory, "Deploy", scenes=())[0], memory.remember("Deploy", body="with pnpm").note.id
    ports = [memory.remember("Port", body=body).note.id for body in ("80 inside", "443 outside")]

    report = memory.consolidate()

    assert report.superseded == (bare,)
    assert statuses(memory, full, *ports) == ["live"] * 3
    assert report.remarks == (f"notes of one title that say different things: {ports[1]} and {ports[0]}",)


def test_what_checkpoints_of_two_sessions_say_becomes_a_note(opened, path):
    memory, _ = opened()
    one = checkpoint(memory, "s1", decisions=["Deploy with pnpm, since npm breaks"], facts=["port 8443"])
    memory.consolidate()
    same = checkpoint(memory, "s1", facts=["port 8443", "port 9000"])
    two = checkpoint(memory, "s2", decisions=["deploy with pnpm, since npm breaks."])

    report = memory.consolidate(force=True)

    (found,) = report.conclusions
    assert (report.state, found.outcome, found.kind, found.sources) == ("appended", "written", "decision", (one, two))
    note = memory.inspect(found.note_id).note
    assert (note.title, note.seen, note.source) == ("deploy with pnpm, since npm breaks.", 2, "agent:rules")
    assert memory.consolidate(force=True).state == "unchanged"
    three = checkpoint(memory, "s3", decisions=["Deploy with pnpm, since npm breaks"])
    again = memory.consolidate(force=True)
    assert (again.state, outcomes(again)) == ("appended", ["confirmed"])
    assert sources(path, found.note_id) == [one, two, three]
    assert memory.inspect(found.note_id).note.seen == 3
    assert memory.consolidate(force=True).state == "unchanged"
    memory.undo(again.operation)
    assert (sources(path, found.note_id), memory.inspect(found.note_id).note.seen) == ([one, two], 2)
    assert statuses(memory, one, same, two, three) == ["live"] * 4
    assert memory.check().problems == ()


def test_a_secret_of_two_sessions_is_refused(opened):
    memory, _ = opened()
    for session in ("s1", "s2"):
        checkpoint(memory, session, facts=["the panel is red"])
    with memory._store.write() as tx:
        tx.execute("UPDATE notes SET body = replace(body, 'the panel is red', 'password: Tr0ub4dor&3xyz')")

    report = memory.consolidate()

    assert (report.state, outcomes(report)) == ("unchanged", ["refused"])
    assert "Tr0ub4dor" not in str(report)


def test_a_dry_run_by_rules_shows_all_and_writes_nothing(opened, path):
    memory, _ = opened()
    many(memory)
    ids = told(memory, "Redis listens on 6380", "Redis is listening on 6380")
    before = dump(path)

    report = memory.consolidate(dry_run=True)

    assert (report.state, report.applied, report.superseded) == ("revised", False, (ids[1],))
    assert dump(path) == before


def test_repeats_are_stopped_where_they_are_most_of_what_there_is(opened):
    memory, _ = opened()
    told(memory, "Redis listens on 6380", "Redis is listening on 6380", "Redis is listening on the 6380")

    assert memory.consolidate().state == "stopped"
    assert memory.jobs() == ()
    assert memory.consolidate(allow_shrink=True).state == "revised"


def test_what_changed_since_it_was_planned_is_left(opened, monkeypatch):
    memory, _ = opened()
    many(memory)
    ids = told(memory, "Redis listens on 6380", "Redis is listening on 6380")
    from graphmem.compose import consolidating as compose

    plan = compose.plan_by_rules

    def and_then(*arguments):
        planned = plan(*arguments)
        sql(memory.path, "UPDATE notes SET updated_at = '2026-09-07T09:00:00.000Z' WHERE id = ?", ids[1])
        return planned

    monkeypatch.setattr(compose, "plan_by_rules", and_then)
    report = memory.consolidate()

    assert (report.state, outcomes(report)) == ("unchanged", ["left"])
    assert report.conclusions[0].reason == f"note {ids[1]} was changed meanwhile"
    assert statuses(memory, *ids) == ["live", "live"]


WORDS = st.lists(st.sampled_from(["redis", "the", "port", "6380", "not", "panel", "on", "Ann"]), max_size=5)


@given(st.lists(st.tuples(WORDS.map(" ".join), WORDS.map(" ".join)), max_size=8))
def test_repeats_are_all_pairs_that_are_alike(texts):
    pairs = {
        (a, b)
        for b in range(len(texts))
        for a in range(b)
        if likeness(*(note_text(*texts[each]) for each in (a, b))) >= DUPLICATE
    }

    assert {(a, b) for a, b, _ in repeats(texts)} == pairs


@given(st.text(max_size=400))
def test_any_reply_is_read_without_an_error(text):
    for plan in (
        consolidating.plan_of_reply(text, {}, consolidating.Ground(), lambda candidate: ()),
        distilling.plan_of_reply(text, {}, lambda candidate: ()),
    ):
        assert plan is None or all(step.shown.outcome != "written" for step in plan.steps)


# ---- what stays beside notes


def test_a_note_that_is_removed_for_good_leaves_no_source(opened, path):
    memory, writer = opened("")
    many(memory)
    old = told(memory, "The panel listens on 80", "The panel is on 8080")
    writer.replies = [reply(entry("The panel listens on 8080", supersedes=old))]
    report = memory.consolidate()
    new = report.conclusions[0].note_id

    memory.forget(old[0], hard=True)
    assert sources(path, new) == [old[1]]
    assert sql(path, "SELECT COUNT(*) FROM operation_rows WHERE row LIKE ?", f"%{old[0]}%") == [(0,)]
    memory.undo(report.operation)
    assert statuses(memory, old[1], new) == ["live", "archived"]
    memory.forget(new, hard=True)
    assert sql(path, "SELECT COUNT(*) FROM note_sources") == [(0,)]
    assert memory.check().problems == ()


def test_sources_of_nothing_are_found_and_mended(opened, path):
    memory, _ = opened()
    many(memory, 1)
    memory.close()
    sql_unchecked(path, "INSERT INTO note_sources VALUES (1, 99), (98, 1)")
    memory, _ = opened()

    assert any("note_sources" in problem for problem in memory.check().problems)
    memory.repair()
    assert memory.check().problems == ()
    assert sql(path, "SELECT COUNT(*) FROM note_sources") == [(0,)]


# ---- distilling

SHIP = ("command: npm test", "command: git add -A", 'command: git commit -m "{}"', "command: git push origin main")


def shipped(memory, *sessions, scope=None):
    for number, session in enumerate(sessions):
        run_calls(memory, session, *(text.format(number) for text in SHIP), scope=scope)


def test_calls_that_repeat_become_a_proposed_skill(opened, path):
    memory, _ = opened()
    shipped(memory, "s1", "s2", "s3")

    report = memory.distill()

    assert (report.kind, report.state, report.by) == ("distill", "appended", "rules")
    (one,) = report.conclusions
    assert (one.outcome, one.kind, one.seen) == ("proposed", "skill", 3)
    assert one.reason == "done 3 times in 3 sessions"
    note = memory.inspect(one.note_id).note
    assert (note.status, note.kind, note.title) == ("proposed", "skill", "npm-test-git-add-git-commit-git-push")
    front, _, body = note.body.removeprefix("---\n").partition("\n---\n")
    name, description = front.splitlines()
    assert name == "name: npm-test-git-add-git-commit-git-push"
    assert json.loads(description.removeprefix("description: ")).startswith("`npm test`, then `git add -A`, then")
    assert "1. bash: `npm test`\n2. bash: `git add -A`\n3. bash: `git commit -m <q>`\n4. bash: `git push" in body
    assert "Found by rules, not by a model" in body
    assert memory.recall("npm", kinds="note") == ()
    memory.approve(one.note_id)
    assert statuses(memory, one.note_id) == ["live"]
    assert memory.check().problems == ()


@pytest.mark.parametrize("fate", ["proposed", "rejected", "approved", "archived"])
def test_what_is_known_is_not_proposed_again(opened, clock, fate):
    memory, _ = opened()
    shipped(memory, "s1", "s2", "s3")
    (one,) = memory.distill().conclusions
    if fate == "rejected":
        memory.reject(one.note_id)
    elif fate != "proposed":
        memory.approve(one.note_id)
    if fate == "archived":
        memory.forget(one.note_id)
    clock.advance(days=29)
    shipped(memory, "s4", "s5", "s6")
    clock.advance(days=2)

    report = memory.distill()

    assert (report.state, outcomes(report)) == ("unchanged", ["known"])
    assert report.conclusions[0].reason.startswith(f"note {one.note_id} has this name")


def test_an_undo_archives_what_was_proposed(opened):
    memory, _ = opened()
    shipped(memory, "s1", "s2", "s3")
    report = memory.distill()

    memory.undo(report.operation)

    assert statuses(memory, report.conclusions[0].note_id) == ["archived"]
    assert memory.check().problems == ()


def test_three_times_in_one_session_are_enough_and_twice_are_not(opened):
    memory, _ = opened()
    for turn in range(3):
        parts = [
            Part(f"{turn}u", role="user", text="again"),
            Part(f"{turn}a", tool="bash", outcome="done", text="make all"),
            Part(f"{turn}b", tool="bash", outcome="done", text="./deploy.sh staging now"),
        ]
        memory.mirror("s1", parts)
        assert len(memory.distill(force=True).conclusions) == (1 if turn == 2 else 0)


@pytest.mark.parametrize(
    ("calls", "outcome", "scope"),
    [
        (SHIP, "failed", None),
        (SHIP, "", None),
        (SHIP, "done", PROJECT),
        (("filePath: src/a.py", "filePath: src/b.py"), "done", None),
        (("git status",), "done", None),
        (("git status", "git status"), "done", None),
    ],
    ids=["failed", "unknown", "elsewhere", "no words", "short", "one call"],
)
def test_what_is_no_procedure(opened, calls, outcome, scope):
    memory, _ = opened()
    for session in ("s1", "s2", "s3"):
        run_calls(memory, session, *calls, outcome=outcome, scope=scope)

    assert memory.distill().conclusions == ()


def test_what_was_done_long_ago_does_not_count(opened, clock):
    memory, _ = opened()
    shipped(memory, "s1", "s2")
    clock.advance(days=31)
    shipped(memory, "s3")

    assert memory.distill().conclusions == ()


def test_a_long_command_by_itself_becomes_a_command(opened):
    memory, _ = opened()
    for session in ("s1", "s2", "s3"):
        run_calls(memory, session, '{"command": "docker compose -f prod.yml up -d --build", "timeout": 5}')

    (one,) = memory.distill().conclusions

    assert (one.kind, one.title) == ("command", "docker-compose-f-up-d-build")
    assert one.body.startswith("---\ndescription: ")
    assert "1. bash: `docker compose -f prod.yml up -d --build`" in one.body


def test_steps_without_a_word_in_ascii_have_a_name(opened):
    memory, _ = opened()
    for session in ("s1", "s2", "s3"):
        run_calls(memory, session, "构建面板", "部署面板", tool="执行")

    (one,) = memory.distill().conclusions

    assert re.fullmatch(r"skill-[0-9a-f]{8}", one.title)
    assert "1. 执行: `构建面板`\n2. 执行: `部署面板`" in one.body


def test_procedures_of_the_same_calls_are_proposed_once_and_few_at_a_time(opened):
    memory, _ = opened()
    for session in ("s1", "s2", "s3"):
        for number in range(8):
            word = "abcdefgh"[number] * 4
            calls = [f"build {word}", f"check {word}", f"ship {word}"]
            parts = [Part(f"{word}u", role="user", text="go")]
            parts += [Part(f"{word}{n}", tool="bash", outcome="done", text=call) for n, call in enumerate(calls)]
            memory.mirror(session, parts)

    report = memory.distill()

    assert outcomes(report) == ["proposed"] * 5
    assert report.remarks == ("procedures that are left for the next time: 3",)
    assert outcomes(memory.distill(force=True)) == ["known"] * 5 + ["proposed"] * 3
    assert all(one.body.count("\n2. ") == 1 for one in report.conclusions)


def test_a_dry_run_of_distill_writes_nothing(opened, path):
    memory, _ = opened()
    shipped(memory, "s1", "s2", "s3")
    before = dump(path)

    report = memory.distill(dry_run=True)

    assert (report.state, report.applied, outcomes(report)) == ("appended", False, ["proposed"])
    assert dump(path) == before


def test_a_writer_proposes_files(opened):
    memory, writer = opened("")
    shipped(memory, "s1", "s2")
    writer.replies = [
        reply(
            entry("Ship it!", "---\nname: x\n---\nRun the tests.", kind="command", description="Ships\nthe panel"),
            entry("review", "Look twice.", kind="agent", description='A "reviewer"'),
            entry("Ship it", "Run nothing.", kind="skill"),
            entry("leak", "export TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345", kind="skill"),
            entry("部署", "没有名字"),
        )
    ]

    report = memory.distill()

    assert outcomes(report) == ["proposed", "proposed", "known", "refused"]
    command, agent = (memory.inspect(one.note_id).note for one in report.conclusions[:2])
    assert (command.kind, command.title, command.status) == ("command", "ship-it", "proposed")
    assert command.body == '---\ndescription: "Ships the panel"\n---\n\nRun the tests.'
    assert agent.body == '---\nname: review\ndescription: "A \\"reviewer\\""\n---\n\nLook twice.'
    assert report.remarks == ("entries without a name or a body: 1",)
    assert "ghp_" not in str(report)
    task = writer.tasks[0]
    assert task.text.startswith("[s1 2026-09-07]\nuser: Go on.\n- bash: command: npm test\n- bash: command: git add -A")
    memory.distill(force=True)
    assert "not to be proposed again: review, ship-it" in writer.tasks[1].instructions


def test_of_a_run_that_has_no_room_a_writer_reads_the_last_calls(opened, clock):
    memory, writer = opened(reply(), config=Config(checkpoint_input_bytes=1000))
    run_calls(memory, "old", "make")
    clock.advance(minutes=1)
    run_calls(memory, "long", *(f"step {number:03}" for number in range(200)))
    clock.advance(minutes=1)
    run_calls(memory, "new", "make check")

    report = memory.distill()

    first, *_, last = writer.tasks[0].text.split("\n\n")
    assert last == "[new 2026-09-07]\nuser: Go on.\n- bash: make check"
    head, *calls = first.splitlines()
    assert head == "[long 2026-09-07]"
    assert calls == [f"- bash: step {number:03}" for number in range(200 - len(calls), 200)]
    assert 980 <= len(writer.tasks[0].text.encode()) <= 1000
    assert report.remarks == ("runs of calls that had no room: 2; raise checkpoint_input_bytes to read more at once",)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "bash", "读"]), st.text(max_size=30)), max_size=20),
    st.integers(0, 400),
)
def test_what_a_model_reads_of_calls_has_room(parts, budget):
    said = [distilling.Said(session, "", tool, text, "2026-09-07") for session, tool, text in parts]
    text, left = distilling.material_of(said, budget)
    whole, none_left = distilling.material_of(said, 1_000_000)

    assert len(text.encode()) <= budget
    assert none_left == 0
    assert (left == 0) == (text == whole)
    assert whole.endswith(text.partition("\n")[2])


def test_a_long_description_is_cut_and_refuses_nothing(opened):
    memory, writer = opened("")
    shipped(memory, "s1")
    leaked = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    writer.replies = [
        reply(
            entry("ship", "Run it.", description="ships the panel " * 100),
            entry("leak", "Run it.", description="x " * 300 + leaked),
            entry("half", "Run it.", description="x " * 505 + leaked),
        )
    ]

    report = memory.distill()

    assert outcomes(report) == ["proposed", "refused", "proposed"]
    note = memory.inspect(report.conclusions[0].note_id).note
    assert len(json.loads(note.body.splitlines()[2].removeprefix("description: "))) == 1024 - 1
    assert note.summary == ("ships the panel " * 100)[:100].strip()
    assert "ghp_" not in str(report.conclusions[2])


@pytest.mark.parametrize("kind", ["skill", "agent", "command"])
def test_a_procedure_of_an_agent_waits_for_a_person(memory, kind):
    assert memory.remember("ship", body="Run it.", kind=kind).note.status == "proposed"
    own = memory.remember("own", body="Run it.", kind=kind, source="user").note
    assert own.status == "live"
    with pytest.raises(Conflict, match="binds"):
        memory.edit_note(own.id, body="Run something else.", source="agent")


# ---- commands


@pytest.fixture
def cli(capsys, path, monkeypatch, tmp_path):
    """The command line in this process, outside of any project, on the memory at `path`: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(["--db", str(path), *map(str, arguments)])
        return (end.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def repeated(cli, path):
    """A memory with a repeat in it."""
    with Memory.open(path) as memory:
        many(memory)
        told(memory, "Redis listens on 6380", "Redis is listening on 6380")
    return cli


def test_consolidate_tells_what_it_did_and_how_to_reverse_it(repeated):
    code, out, err = repeated("consolidate")

    assert code == 0
    assert "consolidated by rules, without a model: 1 merged, 1 note superseded\n" in out
    assert "'graphmem undo 1' reverses it" in out
    assert "Redis listens on 6380" in out
    assert err == ""
    assert repeated("undo", "1")[0] == 0


def test_consolidate_says_when_it_is_due(repeated, path):
    repeated("consolidate")
    sql(path, "UPDATE jobs SET updated_at = ?", utc_text(dt.datetime.now(dt.UTC) - dt.timedelta(days=2.2)))

    assert repeated("consolidate") == (
        0,
        "consolidated 2 days ago; due in about 5 days; --force does it now\n",
        "",
    )
    assert "nothing to change" in repeated("consolidate", "--force")[1]
    assert "consolidated less than a day ago; due in about 7 days" in repeated("consolidate")[1]


def test_a_dry_run_of_consolidate_shows_what_would_be_done(repeated, path):
    before = dump(path)
    code, out, _ = repeated("consolidate", "--dry-run", "--json")

    assert (code, dump(path)) == (0, before)
    assert (json.loads(out)["state"], json.loads(out)["superseded"]) == ("revised", [12])
    assert "would be consolidated by rules, without a model: 1 merged" in repeated("consolidate", "--dry-run")[1]


def test_what_stops_consolidate_is_told_with_what_helps(cli, path):
    with Memory.open(path) as memory:
        told(memory, "Redis listens on 6380", "Redis is listening on 6380", "Redis is listening on the 6380")

    code, out, _ = cli("consolidate")

    assert code == 1
    assert "stopped before it began, since it would bring notes from 3 to 1; --allow-shrink lets it go on" in out
    assert cli("consolidate", "--allow-shrink")[0] == 0


def test_a_writer_of_the_settings_consolidates(repeated, monkeypatch, path):
    program = f"import sys; sys.stdin.read(); print({reply(entry('All rooms', supersedes=[1, 2]))!r})"
    monkeypatch.setenv("GRAPHMEM_WRITER_COMMAND", shlex.join([sys.executable, "-c", program]))

    code, out, _ = repeated("consolidate")

    assert code == 0
    assert "consolidated: 1 written, 2 notes superseded" in out


def test_a_writer_that_fails_ends_the_command_with_1(repeated, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_WRITER_COMMAND", shlex.join([sys.executable, "-c", "raise SystemExit(3)"]))

    code, out, _ = repeated("consolidate")

    assert code == 1
    assert out.startswith("failed: ")


def test_distill_proposes_and_says_who_decides(cli, path):
    with Memory.open(path) as memory:
        shipped(memory, "s1", "s2", "s3")

    code, out, _ = cli("distill")

    assert code == 0
    assert "npm-test-git-add-git-commit-git-push" in out
    assert "distilled by rules, without a model: 1 proposed: 'graphmem approve' lets a proposal come into force" in out
    assert "skill" in cli("notes", "--kind", "skill", "--status", "proposed")[1]
    assert cli("approve", "1")[0] == 0


@pytest.mark.parametrize("command", ["consolidate", "distill"])
def test_an_empty_memory_has_nothing_to_read(cli, path, command):
    Memory.open(path).close()

    assert cli(command) == (0, "there is nothing to read in this scope\n", "")
