"""What a person looks at: one scene with all it holds, long lists of scenes in parts, and how the memory grew."""

import pytest

from graphmem import InvalidInput, NotFound, Part, Situation, Triple
from graphmem.core.model import GrowthDay, StrengthDay

HERE = Situation.of(chan="qq", peer="boss")


def test_a_scene_tells_its_features_with_what_a_visit_gives_each_on_average(memory):
    for _ in range(2):
        memory.enter_scene(HERE)
    visit = memory.enter_scene(HERE.with_tool("shell"))

    found = memory.scene(visit.key)

    assert (found.scene.key, found.scene.visits, found.scene.refs) == ("auto:peer:boss_chan:qq", 2, 0)
    assert [(each.feature, each.weight, round(each.share, 2)) for each in found.features] == [
        ("peer:boss", 1.2, 1.2),
        ("chan:qq", 1.0, 1.0),
        ("tool:shell", 0.8, 0.4),
    ]


def test_an_old_key_leads_to_the_scene(memory):
    memory.declare_scene("chan:qq")
    memory.rename_scene("chan:qq", "chan:tencent")

    assert memory.scene("chan:qq").scene.key == "chan:tencent"
    assert memory.scene("chan:tencent").aliases == ("chan:qq",)


def test_an_unknown_scene_is_not_found(memory):
    with pytest.raises(NotFound, match="chan:qq"):
        memory.scene("chan:qq")


def test_scenes_come_in_parts_in_the_order_asked_for(memory, clock):
    for n, key in enumerate(["chan:b", "chan:a", "chan:c"]):
        clock.advance(minutes=1)
        for _ in range(n + 1):
            memory.declare_scene(key)
    memory.commit([Triple("x", "is", "y")], scenes="chan:b")

    def keys(**options):
        return [scene.key for scene in memory.scenes(**options)]

    assert keys() == ["chan:b", "chan:a", "chan:c"]
    assert keys(sort="strength")[0] == "chan:c"
    assert keys(sort="key") == ["chan:a", "chan:b", "chan:c"]
    assert keys(sort="recent", limit=1) in (["chan:c"], ["chan:b"])
    assert keys(sort="key", limit=1, skip=1) == ["chan:b"]
    assert keys(contains="N:C") == ["chan:c"]
    assert keys(contains="%") == []
    assert keys(limit=0) == []
    with pytest.raises(InvalidInput, match=r"sort.*refs, strength, recent, key"):
        memory.scenes(sort="size")


def test_upkeep_notes_how_strong_scenes_are_once_a_day(memory, clock):
    memory.declare_scene("chan:qq")
    memory.upkeep()
    memory.declare_scene("chan:qq")
    memory.upkeep()
    assert memory.scene("chan:qq").strengths == (StrengthDay("2026-09-07", 2),)
    clock.advance(days=2)
    memory.upkeep()
    memory.declare_scene("chan:qq")
    memory.upkeep()

    assert memory.scene("chan:qq").strengths == (StrengthDay("2026-09-07", 2), StrengthDay("2026-09-09", 3))
    (step,) = (step for step in memory.upkeep().steps if step.name == "note strengths")
    assert step.state == "nothing"


def test_what_is_noted_of_strengths_does_not_grow_for_ever(memory, clock):
    for _ in range(130):
        memory.declare_scene("chan:qq")
        memory.upkeep()
        clock.advance(days=1)

    assert len(memory.scene("chan:qq").strengths) == 120


def test_growth_tells_each_day(memory, clock):
    memory.commit([Triple("a", "is", "b")], scenes="chan:qq")
    memory.remember("a note")
    memory.mirror("s1", [Part("m1", text="hello")])
    clock.advance(days=2)
    memory.commit([Triple("a", "is", "c"), Triple("a", "has", "d")])

    assert memory.growth(days=3) == (
        GrowthDay("2026-09-07", relations=1, notes=1, scenes=1, parts=1),
        GrowthDay("2026-09-08", 0, 0, 0, 0),
        GrowthDay("2026-09-09", 2, 0, 0, 0),
    )
    assert memory.growth(days=1) == (GrowthDay("2026-09-09", 2, 0, 0, 0),)


def test_a_growth_of_no_days_is_refused(memory):
    with pytest.raises(InvalidInput, match="days"):
        memory.growth(days=0)


def test_half_of_a_surrogate_pair_is_in_no_key(memory):
    memory.declare_scene("chan:qq")

    assert memory.scenes(contains="q\udcff") == ()
