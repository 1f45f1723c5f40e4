"""Scenes changed by hand: rename, drop, tag, untag, reset, what an undo puts back, and how scenes do."""

import dataclasses
import json
import tempfile
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, orphans, sql, text_index_of

from graphmem import Conflict, InvalidInput, Memory, NotFound, Situation, StoreFailed, Triple
from graphmem.core.model import DropReport, RenameReport, SceneHealth
from graphmem.surfaces.cli import main

BOSS = Situation.of(chan="qq", peer="boss")
ANN = Situation.of(chan="qq", peer="ann")
GROWN = "auto:peer:boss_chan:qq"
RULE = Triple("老大", "偏好", "纯文本", sentence="老大偏好纯文本。")
OTHER = Triple("老大", "喜欢", "咖啡", sentence="老大喜欢咖啡。")

# What an undo need not bring back: the journal, what is counted, and the day it was.
OWN_TABLES = {"operations", "operation_rows", "counters", "active_days", "sqlite_sequence"}


def stored(path):
    """Every row of every table, apart from those of the journal and of derived tables; and the text index."""
    names = sql(path, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
    tables = {name for (name,) in names} - OWN_TABLES - {"sqlite_schema", "text_sizes"}
    return {name: sorted(sql(path, f"SELECT * FROM {name}"), key=repr) for name in tables}, text_index_of(path)


def keys(memory, **options):
    return sorted(scene.key for scene in memory.scenes(**options))


def told(memory, key):
    return sorted(fact.object for fact in memory.recall_by_scene(key, exact=True).relations)


def names(memory, key):
    return sorted(entity.name for entity in memory.recall_by_scene(key, exact=True).entities)


def heard(memory, situation, words="纯文本"):
    return [hit.text for hit in memory.recall(words, situation=situation, kinds=["relation", "entity"])]


@pytest.fixture
def grown(memory):
    """A scene that grew from the boss on QQ and holds the rule; the rule is told nowhere else."""
    memory.enter_scene(BOSS)
    memory.enter_scene(BOSS)
    memory.commit([RULE], scenes=[GROWN], session="s1", turn=1)
    return memory


@pytest.fixture
def other(path, clock):
    """Another process on the same file, with an index of its own."""
    with Memory.open(path, clock=clock) as opened:
        opened.match_scenes(BOSS)
        yield opened


# ---- rename


def test_a_renamed_scene_is_found_by_both_keys(memory, path):
    memory.commit([RULE], scenes=["chan:qq"])

    report = memory.rename_scene(" chan:QQ ", "Chan:Tencent")

    assert report == RenameReport("chan:qq", "chan:tencent", "declared", "declared", True, 1)
    assert keys(memory) == ["chan:tencent"]
    assert told(memory, "chan:qq") == told(memory, "chan:tencent") == ["纯文本"]
    memory.commit([OTHER], scenes=["chan:qq"])
    assert told(memory, "chan:tencent") == ["咖啡", "纯文本"]
    assert [hit.id for hit in memory.recall("tencent", kinds=["scene"])] == ["chan:tencent"]
    assert memory.recall("qq", kinds=["scene"]) == ()
    assert sql(path, "SELECT feature, mass FROM scene_features") == [("chan:tencent", 0.0)]


def test_a_rename_leaves_the_scenes_below_where_they_are(memory):
    memory.commit([RULE], scenes=["chan:qq/peer:boss"])
    memory.declare_scene("chan:qq")

    memory.rename_scene("chan:qq", "chan:tencent")

    assert keys(memory) == ["chan:qq/peer:boss", "chan:tencent"]
    assert memory.recall_by_scene("chan:qq").scenes == ("chan:qq/peer:boss", "chan:tencent")
    assert memory.recall_by_scene("chan:tencent").scenes == ("chan:tencent",)


def test_renaming_back_takes_the_alias(memory, path):
    memory.declare_scene("chan:a")
    before = stored(path)
    memory.rename_scene("chan:a", "chan:b")

    report = memory.rename_scene("chan:a", "chan:a")  # found by its alias

    assert (report.old, report.new) == ("chan:b", "chan:a")
    assert sql(path, "SELECT key FROM scene_aliases") == [("chan:b",)]
    memory.undo(2)
    memory.undo(1)
    assert stored(path) == before


def test_a_rename_to_its_own_key_does_nothing(memory, path):
    memory.declare_scene("chan:qq")
    before = stored(path)

    assert memory.rename_scene("chan:qq", "chan:QQ").operation is None
    assert stored(path) == before
    assert memory.operations() == ()


@pytest.mark.parametrize("taken", ["chan:b", "chan:old"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_key_or_an_alias_of_another_scene_is_refused_by_name(memory, path, taken, dry_run):
    memory.declare_scene("chan:a")
    memory.declare_scene("chan:old")
    memory.rename_scene("chan:old", "chan:b")
    before = stored(path)

    with pytest.raises(Conflict, match="chan:b") as caught:
        memory.rename_scene("chan:a", taken, dry_run=dry_run)

    assert ("dedupe" in str(caught.value)) == (taken == "chan:b")
    assert stored(path) == before


@pytest.mark.parametrize("act", ["rename", "drop", "untag"])
def test_an_unknown_scene_is_not_found(memory, path, act):
    memory.commit([RULE], scenes=["chan:qq"])
    before = stored(path)
    calls = {
        "rename": lambda **dry: memory.rename_scene("chan:nope", "chan:new", **dry),
        "drop": lambda **dry: memory.drop_scene("chan:nope", **dry),
        "untag": lambda **dry: memory.untag_scene("chan:nope", [1], **dry),
    }

    for dry in ({}, {"dry_run": True}):
        with pytest.raises(NotFound, match="chan:nope"):
            calls[act](**dry)
    assert stored(path) == before


@pytest.mark.parametrize("blank", ["", "  ", "///", "chan:"])
def test_a_blank_key_is_refused(memory, path, blank):
    memory.commit([RULE], scenes=["chan:qq"])
    before = stored(path)

    for act in (
        lambda: memory.rename_scene("chan:qq", blank),
        lambda: memory.rename_scene(blank, "chan:new"),
        lambda: memory.drop_scene(blank),
        lambda: memory.drop_scene(blank, below=True),
        lambda: memory.untag_scene(blank, [1]),
    ):
        with pytest.raises(InvalidInput, match="key"):
            act()
    assert stored(path) == before


def test_a_grown_scene_that_gets_a_name_answers_no_situation_and_does_again_when_renamed_back(grown, other):
    report = grown.rename_scene(GROWN, "project:panel/peer:boss")

    assert (report.old_origin, report.origin) == ("emergent", "declared")
    for memory in (grown, other):
        assert memory.match_scenes(BOSS) == ()
        assert told(memory, GROWN) == told(memory, "project:panel/peer:boss") == ["纯文本"]
    assert [other.enter_scene(BOSS).key for _ in range(3)] == ["", f"{GROWN}.2", f"{GROWN}.2"]
    other.drop_scene(f"{GROWN}.2")

    grown.rename_scene("project:panel/peer:boss", GROWN)

    assert [scene.origin for scene in grown.scenes()] == ["emergent"]
    for memory in (grown, other):
        assert memory.match_scenes(BOSS)[0].key == GROWN
    assert other.enter_scene(BOSS).strength == 2


def test_a_grown_scene_under_another_auto_key_is_joined_on(grown, other):
    grown.rename_scene(GROWN, "auto:boss at work")

    assert grown.enter_scene(BOSS).key == other.enter_scene(BOSS).key == "auto:boss_at_work"
    assert told(grown, GROWN) == ["纯文本"]


@pytest.mark.parametrize("key", ["chan:qq", "auto:waiting"])
def test_a_scene_that_no_turn_has_visited_gets_no_auto_key(memory, path, key):
    memory.commit([RULE], scenes=[key])
    before = stored(path)

    with pytest.raises(Conflict, match="no turn has visited"):
        memory.rename_scene(key, "auto:chan:qq")

    assert stored(path) == before
    assert memory.rename_scene(key, "project:x").origin == "declared"


def test_a_rename_opens_nothing(grown, path):
    """A key that names nobody is read by everybody; another name in the key counts."""
    grown.commit([OTHER], scenes=["chan:qq/peer:boss"])
    before = stored(path)
    for old, new in ((GROWN, "project:panel"), ("chan:qq/peer:boss", "chan:qq")):
        with pytest.raises(Conflict, match="everybody reads"):
            grown.rename_scene(old, new)
    assert stored(path) == before

    grown.rename_scene("chan:qq/peer:boss", "chan:qq/peer:ann")

    assert heard(grown, BOSS, "咖啡") == []
    assert heard(grown, ANN, "咖啡")


def test_a_renamed_scene_keeps_to_the_number_of_features(memory, path):
    topics = [[f"t{turn}x{n}" for n in range(3)] for turn in range(40)]
    for each in topics:
        memory.enter_scene(Situation.of(chan="qq", peer="boss", topics=each))
    before = stored(path)

    memory.rename_scene(GROWN, "tool:a/tool:b/tool:c/tool:d/peer:boss")

    spelt = dict(sql(path, "SELECT feature, mass FROM scene_features WHERE feature LIKE 'tool:%'"))
    assert spelt == dict.fromkeys(["tool:a", "tool:b", "tool:c", "tool:d"], 0.0)
    assert sql(path, "SELECT COUNT(*) FROM scene_features") == [(64,)]
    memory.declare_scene("chan:other")
    memory.tag_scene("chan:other", glob="*")
    memory.drop_scene("chan:other")
    memory.undo(1)
    assert stored(path) == before


# ---- drop


def test_a_dropped_scene_goes_with_all_it_has_and_its_facts_stay(grown, other, path):
    grown.commit([OTHER], scenes=[GROWN, "chan:qq"])
    grown.rename_scene(GROWN, "auto:boss")

    report = grown.drop_scene(GROWN)

    assert report == DropReport(("auto:boss",), 2, 5, 1, 1, True, 2)
    assert keys(grown) == ["chan:qq"]
    assert other.match_scenes(BOSS) == ()
    assert sql(path, "SELECT COUNT(*) FROM relations WHERE status = 'active'") == [(2,)]
    assert {hit.id for hit in grown.recall("纯文本", kinds=["relation"])} == {1, 2}  # asked by nobody in particular
    assert told(grown, "chan:qq") == ["咖啡"]
    for table in ("scene_features", "scene_refs", "scene_aliases"):
        assert sql(path, f"SELECT COUNT(*) FROM {table} WHERE scene_id = 1") == [(0,)]


def test_a_dropped_scene_makes_nothing_readable_for_others(grown):
    """PRIV: what was told in a scene alone is not told openly because the scene is gone."""
    grown.put_block("boss's 排班表", scenes=[GROWN])
    grown.put_document("老大的对话", scenes=[GROWN])
    everything = ["relation", "entity", "block", "document", "scene"]
    words = "老大 纯文本 排班表 对话"
    assert grown.recall(words, situation=ANN, kinds=everything) == ()

    grown.drop_scene(GROWN)

    for who in (ANN, BOSS, Situation.of(chan="qq")):
        assert grown.recall(words, situation=who, kinds=everything) == ()
        assert not grown.recall_by_situation(who, declared=["chan:qq"])
        assert not grown.brief(who, query=words, declared=["chan:qq"])
    assert not grown.recall_by_scene("")
    assert {hit.kind for hit in grown.recall(words, kinds=everything)} == {"relation", "entity", "block", "document"}


def test_what_was_told_openly_too_stays_open(grown):
    grown.commit([RULE])

    assert grown.drop_scene(GROWN).unplaced == 0
    assert heard(grown, ANN)


def test_below_takes_all_below_and_no_neighbour(memory):
    for key in ("chan:qq/peer:boss", "chan:qq/peer:ann", "chan:qq2", "chan:q", "tool:x/chan:qq"):
        memory.declare_scene(key)

    with pytest.raises(NotFound):
        memory.drop_scene("chan:qq")  # there is none of this very key
    report = memory.drop_scene("chan:QQ", below=True)

    assert report.scenes == ("chan:qq/peer:ann", "chan:qq/peer:boss")
    assert keys(memory) == ["chan:q", "chan:qq2", "tool:x/chan:qq"]


def test_the_undo_of_a_drop_puts_back_all(grown, other, path):
    grown.declare_scene(f"{GROWN}/part:morning")
    before = stored(path)
    grown.drop_scene(GROWN, below=True)

    grown.undo(1)

    assert stored(path) == before
    assert [memory.enter_scene(BOSS).key for memory in (grown, other)] == [GROWN, GROWN]


def test_the_undo_of_a_drop_waits_while_its_key_is_taken(memory, path):
    memory.commit([RULE], scenes=["chan:qq"])
    memory.drop_scene("chan:qq")
    memory.commit([OTHER], scenes=["chan:qq"])
    before = stored(path)

    with pytest.raises(Conflict, match="there is a scene 'chan:qq' again: rename or drop it first"):
        memory.undo(1)
    assert stored(path) == before

    memory.rename_scene("chan:qq", "chan:newer")
    memory.undo(1)
    assert (told(memory, "chan:qq"), told(memory, "chan:newer")) == (["纯文本"], ["咖啡"])


def test_an_alias_that_came_to_be_a_scene_does_not_come_back_beside_it(memory, path):
    memory.commit([RULE], scenes=["chan:old"])
    memory.rename_scene("chan:old", "chan:new")
    memory.drop_scene("chan:new")
    memory.commit([OTHER], scenes=["chan:old"])
    before = stored(path)

    with pytest.raises(Conflict, match="'chan:old', which was an alias"):
        memory.undo(2)
    assert stored(path) == before

    memory.drop_scene("chan:old")
    memory.undo(2)
    assert told(memory, "chan:new") == told(memory, "chan:old") == ["纯文本"]
    memory.undo(3)
    assert (told(memory, "chan:new"), told(memory, "chan:old")) == (["纯文本"], ["咖啡"])
    assert sql(path, "SELECT key FROM scene_aliases") == []


# ---- tag and untag


@pytest.fixture
def talk(memory):
    """Two facts with a name in common, in one scene; a third one elsewhere."""
    memory.commit([RULE, OTHER], scenes=["chan:qq"])
    memory.commit([Triple("小雨", "上", "小学")], scenes=["chan:mail"])
    return memory


def test_an_untagged_fact_goes_with_the_names_that_no_other_fact_there_has(talk, path):
    report = talk.untag_scene("chan:QQ", [1, 3, 999])

    assert (report.removed, report.absent, report.unknown, report.entities) == ((1,), (3,), (999,), 1)
    assert told(talk, "chan:qq") == ["咖啡"]
    assert names(talk, "chan:qq") == ["咖啡", "老大"]
    assert talk.untag_scene("chan:qq", [2]).entities == 2
    assert not talk.recall_by_scene("chan:qq")
    assert sql(path, "SELECT COUNT(*) FROM relations WHERE status = 'active'") == [(3,)]
    assert keys(talk) == ["chan:mail", "chan:qq"]


def test_untagging_by_a_glob_looks_at_the_facts_of_the_scene_alone(talk):
    assert talk.untag_scene("chan:qq", glob="小*").removed == ()
    assert talk.untag_scene("chan:qq", glob="纯*").removed == (1,)
    assert talk.untag_scene("chan:qq", glob="*").removed == (2,)
    assert told(talk, "chan:mail") == ["小学"]


def test_a_deleted_fact_is_untagged_too(talk):
    talk.delete_relation(1)

    talk.untag_scene("chan:qq", [1])
    talk.undo(2)
    talk.untag_scene("chan:qq", glob="纯*")
    talk.undo(1)

    assert told(talk, "chan:qq") == ["咖啡"]


def test_untagging_makes_nothing_readable_for_others(grown):
    grown.untag_scene(GROWN, [1])

    for who in (ANN, BOSS):
        assert heard(grown, who) == heard(grown, who, "老大") == []
    assert not grown.recall_by_scene("")


def test_untagging_what_is_not_there_writes_nothing(talk, path):
    before = stored(path)

    assert talk.untag_scene("chan:qq", [3]).operation is None
    with pytest.raises(NotFound, match="998, 999"):
        talk.untag_scene("chan:qq", [998, 999])
    assert stored(path) == before
    assert talk.operations() == ()


@pytest.mark.parametrize(
    ("ids", "glob"), [((), None), ([1], "*"), ([0], None), (["1"], None), (1, None), ((), 5), ([True], None)]
)
def test_bad_arguments_of_untagging_are_refused(talk, path, ids, glob):
    before = stored(path)

    with pytest.raises(InvalidInput):
        talk.untag_scene("chan:qq", ids, glob=glob)

    assert stored(path) == before


def test_the_undo_of_untagging_puts_the_facts_back_with_their_clocks(talk, path, clock):
    before = stored(path)
    clock.advance(days=3)
    talk.untag_scene("chan:qq", glob="*")

    talk.undo(1)

    assert stored(path) == before


def test_a_fact_that_was_told_again_since_it_was_untagged_stays_once(talk, clock):
    talk.untag_scene("chan:qq", [1])
    clock.advance(days=1)
    talk.commit([dataclasses.replace(RULE, sentence="纯文本，谢谢。", confidence=0.5)], scenes=["chan:qq"])

    talk.undo(1)

    (rule,) = (fact for fact in talk.recall_by_scene("chan:qq").relations if fact.id == 1)
    assert (rule.sentence, rule.weight) == ("纯文本，谢谢。", 1.0)
    assert names(talk, "chan:qq") == ["咖啡", "纯文本", "老大"]


@pytest.mark.parametrize("key", ["chan:new/peer:boss", "chan:qq", "chan:mail"])
def test_the_undo_of_tagging_takes_out_what_it_put_in(talk, path, clock, key):
    before = stored(path)
    clock.advance(days=3)
    report = talk.tag_scene(key, [1])
    assert report.operation == 1
    assert stored(path) != before

    talk.undo(1)

    assert stored(path) == before


def test_tagging_what_changes_nothing_is_no_operation(talk):
    talk.tag_scene("chan:qq", [1])

    assert talk.tag_scene("chan:qq", [1]).operation is None
    assert talk.tag_scene("chan:qq", glob="nothing*").operation is None


@pytest.mark.parametrize("later", ["commit", "declare", "same fact", "alias"])
def test_a_scene_that_tagging_made_stays_where_later_writes_use_it(talk, path, clock, later):
    talk.tag_scene("chan:new", [1])
    clock.advance(minutes=1)
    if later == "commit":
        talk.commit([Triple("小雨", "上", "小学")], scenes=["chan:new"])
    elif later == "declare":
        talk.declare_scene("chan:new")
    elif later == "same fact":
        talk.commit([RULE], scenes=["chan:new"])
    else:
        sql(path, "INSERT INTO scene_aliases SELECT 'chan:newer', id FROM scenes WHERE key = 'chan:new'")

    talk.undo(1)

    (scene,) = talk.scenes("chan:new")
    assert (scene.strength, scene.features) == (1, 1)
    assert told(talk, "chan:new") == {"commit": ["小学"], "same fact": ["纯文本"]}.get(later, [])
    assert len(names(talk, "chan:new")) == {"commit": 2, "same fact": 2}.get(later, 0)


# ---- reset


@pytest.fixture
def lived_in(grown):
    """A grown scene with an alias, one that waits for it, declared ones with facts of their own."""
    grown.commit([OTHER], scenes=[GROWN, "chan:qq"])
    grown.rename_scene(GROWN, "auto:boss")
    grown.enter_scene(Situation.of(chan="mail", peer="ann"))
    grown.enter_scene(Situation.of(chan="voice"))
    return grown


def declared_rows_and_graph(path):
    mine = "(SELECT id FROM scenes WHERE origin = 'declared')"
    owners = {"scenes": "id", "scene_features": "scene_id", "scene_refs": "scene_id", "scene_aliases": "scene_id"}
    graph = ("entities", "relations", "sentences", "evidence")
    return [
        *(
            sql(path, f"SELECT * FROM {table} WHERE {column} IN {mine} ORDER BY 1, 2")
            for table, column in owners.items()
        ),
        *(sql(path, f"SELECT * FROM {table} ORDER BY 1") for table in graph),
    ]


def test_a_reset_takes_all_that_grew_and_nothing_else(lived_in, other, path):
    before = declared_rows_and_graph(path)
    planned = lived_in.reset_scenes(dry_run=True)
    assert declared_rows_and_graph(path) == before
    assert lived_in.operations(limit=1)[0].kind == "rename"

    report = lived_in.reset_scenes()

    assert (report.scenes, report.features, report.refs, report.aliases, report.labels) == (1, 2, 5, 1, 2)
    assert dataclasses.replace(planned, applied=True, operation=2, backup=report.backup) == report
    assert (planned.backup, planned.operation) == ("", None)
    assert declared_rows_and_graph(path) == before
    assert keys(lived_in) == ["chan:qq"]
    assert lived_in.evidence() == ()
    assert other.match_scenes(BOSS) == ()
    assert other.recall("boss", kinds=["scene"]) == ()
    assert len(lived_in.operations()) == 2


def test_after_two_visits_and_a_commit_the_scene_is_back(lived_in, other):
    lived_in.reset_scenes()

    visits = [memory.enter_scene(BOSS) for memory in (lived_in, other)]
    lived_in.commit([RULE], scenes=visits[1].write_keys)

    assert [visit.key for visit in visits] == ["", GROWN]
    (scene,) = lived_in.scenes(origin="emergent")
    assert (scene.features, scene.refs) == (2, 3)
    assert other.enter_scene(BOSS).strength == 2
    assert other.recall_by_situation(BOSS).relations[0].object == "纯文本"


def test_the_undo_of_a_reset_brings_all_back(lived_in, other, path):
    before = stored(path)
    lived_in.reset_scenes()

    lived_in.undo(2)

    assert stored(path) == before
    assert lived_in.enter_scene(BOSS).key == other.enter_scene(BOSS).key == "auto:boss"


def test_the_undo_of_a_reset_keeps_what_was_counted_since(lived_in, path):
    lived_in.reset_scenes()
    lived_in.enter_scene(Situation.of(chan="voice"))

    lived_in.undo(2)

    assert dict(sql(path, "SELECT label, count FROM situation_evidence")) == {"peer:ann_chan:mail": 1, "chan:voice": 2}


def test_before_a_reset_a_backup_is_made_that_can_be_opened(lived_in, path, tmp_path):
    before = stored(path)

    report = lived_in.reset_scenes()

    assert report.backup == f"{path}.before-reset-20260907T080000Z"
    assert Path(report.backup).stat().st_mode & 0o777 == 0o600
    with Memory.open(report.backup) as backup:
        assert keys(backup) == ["auto:boss", "chan:qq"]
    assert stored(report.backup) == before
    lived_in.undo(2)
    assert lived_in.reset_scenes().backup == f"{report.backup}.2"
    lived_in.undo(3)
    assert lived_in.reset_scenes(backup=tmp_path / "mine.db").backup == str(tmp_path / "mine.db")


def test_a_backup_that_cannot_be_made_leaves_all_as_it_is(lived_in, path, tmp_path):
    before = stored(path)

    for dest in (tmp_path / "missing" / "backup.db", tmp_path, path):
        with pytest.raises((StoreFailed, Conflict)):
            lived_in.reset_scenes(backup=dest)

    assert stored(path) == before


def test_a_reset_of_nothing_makes_no_backup(memory, path):
    memory.declare_scene("chan:qq")

    report = memory.reset_scenes()

    assert (report.applied, report.operation, report.backup) == (True, None, "")
    assert [file.name for file in path.parent.glob("*before*")] == []


def test_a_memory_in_memory_is_reset_without_a_backup(clock):
    with Memory.open(":memory:", clock=clock) as memory:
        memory.enter_scene(BOSS)
        memory.enter_scene(BOSS)

        report = memory.reset_scenes()

        assert (report.scenes, report.backup, keys(memory)) == (1, "", [])
        memory.undo(report.operation)
        assert keys(memory) == [GROWN]


# ---- health


def test_the_health_of_no_scenes_is_all_zeros(memory):
    health = memory.scene_health()

    assert {name for name, value in dataclasses.asdict(health).items() if value} == set()
    assert (health.oldest_visit, health.newest_visit) == (None, None)


LONG_AGO = "2026-09-01T00:00:00.000Z"


def plant(path, key):
    """Write a scene under a key as another program would."""
    sql(
        path,
        "INSERT INTO scenes(key, origin, created_at, updated_at) VALUES (?, 'declared', ?, ?)",
        key,
        *[LONG_AGO] * 2,
    )


def test_health_tells_what_is_wrong(grown, path, clock):
    for _ in range(3):
        grown.enter_scene(Situation.of(chan="mail", peer="ann"))  # a scene that holds nothing
    grown.enter_scene(Situation.of(tool="shell"))
    grown.commit([OTHER], scenes=["project panel", "chan:qq/peer:boss"])  # no feature is spelt by the first
    clock.advance(days=2)
    grown.declare_scene("chan:voice")
    for key in ("chan:Voice", "tool:Shell"):
        plant(path, key)

    assert grown.scene_health() == SceneHealth(
        scenes=7,
        emergent=2,
        declared=5,
        holding_nothing=4,
        visits_for_nothing=2,
        strength_for_nothing=5,
        without_features=1,
        some_without_features=("project_panel",),
        kinds=(("chan", 3), ("auto:peer", 2), ("", 1), ("tool", 1)),
        twins=1,
        not_canonical=2,
        labels_waiting=1,
        oldest_visit=LONG_AGO,
        newest_visit="2026-09-09T08:00:00.000Z",
    )


def test_a_dedupe_leaves_no_twins(memory, path):
    for key in ("chan:A", "chan:a", "chan:B"):
        plant(path, key)
    assert (memory.scene_health().twins, memory.scene_health().not_canonical) == (1, 2)

    memory.dedupe_scenes()

    assert (memory.scene_health().twins, memory.scene_health().not_canonical) == (0, 0)


# ---- any sequence

some_key = st.sampled_from(
    ["chan:qq", "chan:qq/peer:boss", "project x", "tool:shell", GROWN, "auto:boss", "auto:chan:qq"]
)
situation = st.builds(
    lambda chan, peer, topics: Situation.of(chan=chan, peer=peer, topics=topics),
    st.sampled_from(["qq", "qq", "mail"]),
    st.sampled_from(["boss", "boss", "boss", "ann", None]),
    st.lists(st.sampled_from("abc"), max_size=2),
)
turns = st.one_of(
    st.tuples(st.just("enter_scene"), situation),
    st.tuples(st.just("declare_scene"), some_key),
    st.tuples(st.just("commit"), st.tuples(st.sampled_from([RULE, OTHER]), st.lists(some_key, max_size=2))),
)
changes = st.one_of(
    st.tuples(st.just("tag_scene"), some_key, st.lists(st.integers(1, 3), min_size=1)),
    st.tuples(st.just("untag_scene"), some_key, st.lists(st.integers(1, 3), min_size=1)),
    st.tuples(st.just("rename_scene"), some_key, st.one_of(some_key, st.sampled_from(["new:a", "new:b"]))),
    st.tuples(st.just("drop_scene"), some_key, st.booleans()),
    st.tuples(st.just("reset_scenes")),
)

LIVED_IN = [
    *[("enter_scene", BOSS)] * 2,
    ("commit", (RULE, [GROWN, "chan:qq"])),
    ("commit", (OTHER, ["chan:qq"])),
]


def do(memory, step):
    """Do one step; return the number of its operation, None where there was none."""
    verb, *arguments = step
    memory._clock.advance(minutes=1)
    if verb == "commit":
        memory.commit([arguments[0][0]], scenes=arguments[0][1])
        return None
    options = {"below": arguments.pop()} if verb == "drop_scene" else {}
    try:
        return getattr(getattr(memory, verb)(*arguments, **options), "operation", None)
    except (NotFound, Conflict):
        return None


@given(st.lists(turns, max_size=12), st.lists(changes, min_size=1, max_size=8))
@settings(max_examples=examples(60))
def test_changes_undone_in_reverse_order_leave_no_trace(before, steps):
    with tempfile.TemporaryDirectory() as folder, Memory.open(f"{folder}/m.db", clock=FakeClock()) as memory:
        for step in LIVED_IN + before:
            do(memory, step)
        states = [stored(memory.path)]
        operations = []
        for step in steps:
            operation = do(memory, step)
            if operation is None:
                assert stored(memory.path) == states[-1]
            else:
                operations.append(operation)
                states.append(stored(memory.path))
        for operation in reversed(operations):
            assert stored(memory.path) == states.pop()
            memory.undo(operation)
        assert stored(memory.path) == states.pop()


@given(st.lists(st.one_of(turns, changes), min_size=3, max_size=16))
@settings(max_examples=examples(60))
def test_what_is_undone_between_other_writes_leaves_a_whole_file(steps):
    """Indexes agree with the file, keys lead to one scene each, and what was written since the operation is there."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.db"
        clock = FakeClock()
        with Memory.open(path, clock=clock) as memory, Memory.open(path, clock=clock) as other:
            operations = [operation for step in LIVED_IN + steps if (operation := do(memory, step))]
            for operation in reversed(operations):
                facts = sql(path, "SELECT id, status FROM relations ORDER BY id")
                try:
                    memory.undo(operation)
                except Conflict:
                    continue
                assert sql(path, "SELECT id, status FROM relations ORDER BY id") == facts
            assert orphans(path) == []
            assert sql(path, "SELECT key FROM scenes INTERSECT SELECT key FROM scene_aliases") == []
            assert sql(path, "SELECT key FROM scenes WHERE strength < 1") == []
            index = text_index_of(path)
            memory.reindex()
            assert text_index_of(path) == index
            with Memory.open(path, clock=clock) as fresh:
                for here in (BOSS, ANN, Situation.of(chan="qq"), Situation.of(chan="mail", topics=["a"])):
                    assert memory.match_scenes(here) == other.match_scenes(here) == fresh.match_scenes(here)


# ---- the command line


@pytest.fixture
def cli(path, capsys, monkeypatch):
    monkeypatch.delenv("GRAPHMEM_DB", raising=False)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(["--db", str(path), *arguments])
        out, err = capsys.readouterr()
        return end.value.code, out if "--json" not in arguments else json.loads(out), err

    return run


def test_the_commands_rename_drop_untag(grown, cli):
    assert cli("rename", GROWN, "chan:qq/peer:boss", "--dry-run") == (
        0,
        f"{GROWN} would be now chan:qq/peer:boss\nit would be declared, and was emergent\n",
        "",
    )
    assert cli("rename", GROWN, "auto:boss")[1].splitlines() == [
        f"{GROWN} is now auto:boss",
        "operation 1: 'graphmem undo 1' reverses it",
    ]
    assert cli("rename", GROWN, "auto:boss") == (0, "nothing to do: auto:boss is its key already\n", "")
    assert cli("untag", "auto:boss", "--relation", "1", "--relation", "9") == (
        0,
        "took 1 fact and 2 names out of auto:boss; not there: 0\noperation 2: 'graphmem undo 2' reverses it\n",
        "unknown: 9\n",
    )
    assert cli("undo", "2")[0] == 0
    code, out, _ = cli("drop", "auto:boss")
    assert (code, out.splitlines()) == (
        0,
        [
            "auto:boss dropped",
            "2 features, 3 refs and 1 alias removed with them",
            "1 fact left in no scene: recalled only without a situation",
            "operation 3: 'graphmem undo 3' reverses it",
        ],
    )


def test_scenes_lists_resets_and_tells_its_health(grown, cli, path):
    grown.declare_scene("chan:qq")

    assert [row["key"] for row in cli("scenes", "--json")[1]] == [GROWN, "chan:qq"]
    for arguments in (["chan:qq", "--json"], ["--json", "chan:qq"], ["--origin", "declared", "--json"]):
        assert [row["key"] for row in cli("scenes", *arguments)[1]] == ["chan:qq"]
    assert cli("scenes", "--health", "--json")[1]["kinds"] == [["auto:peer", 1], ["chan", 1]]
    code, shown, _ = cli("scenes", "--health")
    assert code == 0
    assert "holding nothing" in shown
    assert "50%" in shown
    for arguments in (["reset"], ["--json", "reset"], ["reset", "--dry-run"]):
        assert cli("scenes", *arguments)[0] == 2
    assert cli("scenes", "--json", "reset", "--emergent", "--dry-run")[1]["applied"] is False

    code, out, _ = cli("scenes", "reset", "--emergent")

    assert code == 0
    assert "1 emergent scene removed, with 2 features, 3 refs and 0 aliases" in out
    backup = next(line for line in out.splitlines() if line.startswith("backup: "))
    assert Path(backup.removeprefix("backup: ")).parent == path.parent
    assert "'graphmem undo 1' reverses it" in out
    assert [row["key"] for row in cli("scenes", "--json")[1]] == ["chan:qq"]


def test_the_help_of_scenes_tells_the_way_to_reset(cli):
    code, shown, _ = cli("scenes", "--help")

    assert code == 0
    assert "scenes [OPTIONS] [PREFIX | reset --emergent]" in shown
    assert cli("scenes", "reset", "--help")[1].startswith("Usage: graphmem scenes reset [OPTIONS]")


def test_the_journal_keeps_a_row_that_was_put_in_as_it_is_read(memory, path):
    memory.commit([Triple("boss", "likes", "pnpm")], scenes="chan:qq")
    memory.edit_relation(1, confidence=0.9)

    ((image,),) = sql(path, "SELECT after FROM operation_rows WHERE name = 'scene_refs' AND before IS NULL")
    row = json.loads(image)
    ((weight,),) = sql(path, "SELECT weight FROM scene_refs WHERE id = ?", row["id"])
    assert repr(row["weight"]) == repr(weight) == "1.0"
