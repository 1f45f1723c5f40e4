"""That verbs about notes ask little, and nothing for which SQLite reads all notes of a store or of a scope."""

import itertools
import re

import pytest
from support import plans_of, plans_of_writing

from graphmem import Config, Memory, Situation

BOSS = Situation.of(chan="qq", peer="boss")
# A scope alone chooses as many notes as it holds; of those that bind there are few.
WHOLE = re.compile(r"SCAN (?:n|own|notes|ref|later)\b|SEARCH (?:n|own|ref) .*\((?:scope|kind)=\?\)$")


def whole_reads(plans):
    steps = {step for plan in plans for step in plan}
    return {step for step in steps if WHOLE.match(step) and "notes_resident" not in step}


@pytest.fixture(params=["nowhere", "project", "all"])
def reach(request):
    """Which scopes are read: those of a memory where nothing has one, of a project, and all."""
    return request.param


@pytest.fixture
def ledger(path, tmp_path, clock, reach):
    with Memory.open(path, clock=clock, project=tmp_path) as memory:
        scopes = itertools.cycle([None] if reach == "nowhere" else ["user", "project", "elsewhere"])
        for number in range(60):
            clock.advance(minutes=1)
            memory.remember(
                f"note {number}",
                body=f"body {number}",
                kind=("fact", "lesson", "decision")[number // 3 % 3],
                slot=f"slot {number}" * (number % 4 == 0),
                labels=["one", "two"],
                load_when=["tea"] * (number % 9 == 0),
                scenes=["chan:qq/peer:boss"] * (number % 7 == 0),
                scope="user" if reach == "nowhere" else next(scopes),
            )
        memory.remember("Never force push", kind="rule", labels="git", source="user")
        memory.remember("Be brief", slot="style", source="user")
        yield memory


READS = {
    "brief": (lambda memory, scopes: memory.brief(BOSS, declared="chan:qq/peer:boss", scopes=scopes), 28),
    "ledger": (lambda memory, scopes: memory.ledger(scopes=scopes), 12),
    "rules_for": (lambda memory, scopes: memory.rules_for(BOSS, tool="git", text="some tea", scopes=scopes), 11),
    "recall_by_scene": (lambda memory, scopes: memory.recall_by_scene("chan:qq", scopes=scopes), 9),
    "recall": (lambda memory, scopes: memory.recall("body note", kinds="note", scopes=scopes), 12),
}


@pytest.mark.sqlite
@pytest.mark.parametrize("verb", READS)
def test_a_verb_that_reads_notes_asks_little_and_by_indexes(ledger, reach, verb):
    act, most = READS[verb]

    plans = plans_of(ledger, lambda: act(ledger, "all" if reach == "all" else None))

    assert whole_reads(plans) == set()
    scopes_beside = 7 if reach == "all" else 0  # each scope that is read is looked up for facts and for lessons
    assert len(plans) <= most + scopes_beside


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("told", "most"),
    [
        # Every writer asks whether the memory has become a copy that is on its way.
        ({}, 8),
        # Each change of a note and of its labels is counted besides, by triggers, for the trees of files.
        ({"kind": "lesson", "slot": "new", "labels": ["a", "b"]}, 17),
        ({"slot": "slot 4", "scope": "user"}, 13),
        ({"kind": "rule", "source": "user"}, 9),
        ({"kind": "rule"}, 7),
    ],
)
def test_remember_asks_little_and_by_indexes(ledger, told, most):
    plans = plans_of_writing(ledger, lambda: ledger.remember("something new", body="and more of it", **told))

    assert whole_reads(plans) == set()
    assert len(plans) <= most


@pytest.mark.sqlite
def test_nothing_is_asked_of_slots_where_none_binds(path, clock):
    with Memory.open(path, clock=clock, config=Config(constraint_keys=())) as memory:
        memory.remember("Never force push", kind="rule", source="user")

        assert whole_reads(plans_of(memory, lambda: memory.brief(BOSS))) == set()
        assert "- Never force push" in memory.brief(BOSS).text


def test_a_ledger_reads_no_more_of_a_scope_than_it_returns(ledger, reach):
    facts = ledger.ledger(scopes="all", limit=7).facts
    every = ledger.ledger(scopes="all", limit=1000).facts

    assert facts == every[:7]
    assert [one.updated_at for one in every] == sorted((one.updated_at for one in every), reverse=True)
    assert len({one.scope for one in every}) == (1 if reach == "nowhere" else 3)
