"""Check and repair of scopes and of what stands beside notes; a planted loop of successors hangs nothing (MRG-04)."""

import contextlib

import pytest
from support import plant, sql

from graphmem import Memory, Situation, StoreCorrupt, Triple

AT = "2026-09-01T00:00:00.000Z"
HERE = Situation.of(chan="qq", peer="boss")


@pytest.fixture
def filled(memory):
    memory.remember("first value", slot="port", load_when="shell words", labels="gate")
    memory.remember("second value", slot="port")
    memory.remember("third value", slot="port")
    memory.remember("of work", scope="work")
    memory.commit([Triple("Ann", "likes", "tea")], scope="project:0123456789ab")
    memory.record_failure("bash", "no such file")
    return memory


DAMAGE = {
    "provenance of no note": (
        f"INSERT INTO provenance(kind, ref_id, seq, act, at) VALUES ('note', 99, 0, 'remember', '{AT}')",
        "provenance, row 99",
    ),
    "no origin": ("DELETE FROM provenance WHERE ref_id = 1 AND seq = 0", "notes, row 1"),
    "label": ("INSERT INTO note_labels VALUES (99, 'x')", "note_labels, 1 rows"),
    "trigger": ("INSERT INTO note_triggers VALUES (99, 'x', 'x')", "note_triggers, 1 rows"),
    "usage": (f"INSERT INTO note_usage VALUES (99, 1, '{AT}')", "note_usage, row 99"),
    "token": ("UPDATE note_triggers SET token = 'nothing'", "note_triggers, row 1"),
    "incident": ("UPDATE incidents SET note_id = 99", "incidents, row 1"),
    "alias of no scope": ("INSERT INTO scope_aliases VALUES ('path', '/x', 'project:gone')", "scope_aliases, 1 rows"),
    "scopes lost": ("DELETE FROM scopes", "scopes, rows project:0123456789ab, work"),
    "scopes said to be empty": ("UPDATE scopes SET filled = 0 WHERE key = 'work'", "scopes, row work"),
    "successor gone": ("UPDATE notes SET superseded_by = 99 WHERE id = 1", "notes, row 1"),
    "loop of two": ("UPDATE notes SET superseded_by = 1 WHERE id = 2", "notes, rows 1, 2"),
    "loop with the live one": ("UPDATE notes SET superseded_by = 1 WHERE id = 3", "notes, rows 1, 2, 3"),
    "loop of one": ("UPDATE notes SET superseded_by = 3 WHERE id = 3", "notes, row 3"),
}


@pytest.mark.parametrize(("statement", "told"), DAMAGE.values(), ids=DAMAGE)
def test_what_follows_from_the_rest_is_found_and_mended(filled, path, statement, told):
    before = filled.notes(statuses=(), scopes="all")
    plant(filled.path, statement)

    (problem,) = filled.check().problems
    assert problem.startswith(told)
    assert "'graphmem repair'" in problem
    filled.notes(statuses=(), scopes="all")
    dry, real = filled.repair(dry_run=True), filled.repair()

    assert dry.mended == real.mended == (problem.rsplit(": ", 1)[0],)
    assert real.left == ()
    assert filled.check().ok
    assert [note.title for note in filled.notes(statuses=(), scopes="all")] == [note.title for note in before]
    assert not sql(
        path, "SELECT 1 FROM incidents WHERE note_id = 99 UNION SELECT 1 FROM scope_aliases WHERE scope LIKE '%gone'"
    )


def test_a_mended_trigger_calls_and_a_mended_scope_is_kept_apart(filled):
    plant(filled.path, "UPDATE note_triggers SET token = 'nothing', note_id = 3", "UPDATE scopes SET filled = 0")
    filled.repair()

    told = filled.recall_by_situation(HERE, text="run the shell words now")
    assert [note.title for note in told.notes] == ["third value"]
    assert not filled.recall("work")
    assert [scope.kind for scope in filled.scopes()] == ["user", "project", "named"]


@pytest.mark.parametrize("name", [name for name in DAMAGE if name.startswith("loop")])
def test_a_planted_loop_of_successors_hangs_nothing(filled, name):
    plant(filled.path, DAMAGE[name][0])

    with contextlib.suppress(StoreCorrupt):
        filled.remember("told late", slot="port", at="2020-01-01")
    for note_id in (1, 2, 3):
        assert len(filled.inspect(note_id).versions) <= 4
    assert filled.inspect().counts
    filled.recall("value before", as_of="2026-12-01", explain=True)
    assert filled.upkeep().ok


def test_what_is_told_late_into_a_loop_is_an_error_with_its_remedy(filled):
    plant(filled.path, DAMAGE["loop with the live one"][0])

    with pytest.raises(StoreCorrupt, match="repair"):
        filled.remember("told late", slot="port", at="2020-01-01")
    filled.repair()
    assert filled.remember("told late", slot="port", at="2020-01-01").note.superseded_by == 1


def test_a_memory_without_a_file_is_mended_too():
    with Memory.open(":memory:") as memory:
        memory.remember("one", load_when="words")
        assert memory.repair().mended == ()
