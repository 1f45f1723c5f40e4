"""Scenes: how they emerge, who may enter and recall them, which keys a turn reads and writes.

Ids in comments are those of the acceptance list in the specification, read as section 5 of the design rules them.
"""

import itertools
import logging

import pytest
from support import dump, refuse, relent, sql

from graphmem import Config, Feature, InvalidInput, Memory, Part, Situation, StoreFailed, Triple, normalize_key

RULE = Triple("boss", "wants", "plain text", sentence="The boss wants plain text.")


def grow(memory, *situations):
    """Enter each situation twice and return the key of the scene that grew at the last."""
    for situation in situations:
        memory.enter_scene(situation)
        visit = memory.enter_scene(situation)
        assert visit.created, f"{situation} grew no scene of its own"
    return visit.key


def features(path, key):
    rows = sql(
        path,
        """SELECT feature, weight, mass, touched FROM scene_features f JOIN scenes s ON s.id = f.scene_id
           WHERE key = ?""",
        key,
    )
    return {feature: row for feature, *row in rows}


def refs(path, key):
    return sql(
        path,
        """SELECT kind, ref_id, weight, decayed_at FROM scene_refs r JOIN scenes s ON s.id = r.scene_id WHERE key = ?
           ORDER BY kind, ref_id""",
        key,
    )


def scene(memory, key):
    return next(found for found in memory.scenes() if found.key == key)


def objects(recollection):
    return [relation.object for relation in recollection.relations]


# ---- emergence


def test_a_scene_grows_at_the_second_visit_and_is_joined_at_the_third(memory):  # E1
    here = Situation.of(chan="qq", peer="boss")

    first, second, third = (memory.enter_scene(here) for _ in range(3))

    assert (first.key, first.created, first.strength) == ("", False, 0)
    assert (second.key, second.created, second.strength) == ("auto:peer:boss_chan:qq", True, 1)
    assert (third.key, third.created, third.strength, third.similarity) == (second.key, False, 2, 1.0)


def test_one_situation_stays_one_scene(memory, path):  # E2
    here = Situation.of(chan="qq", peer="boss", tool="shell", topics=["a", "b"], part="night")

    for _ in range(6):
        memory.enter_scene(here)

    assert [(s.key, s.strength, s.visits) for s in memory.scenes()] == [("auto:peer:boss_chan:qq", 5, 5)]
    assert features(path, "auto:peer:boss_chan:qq")["topic:a"] == [0.2, pytest.approx(1.0), 5]


def test_mass_adds_up_and_weight_is_the_greatest_that_a_turn_gave(memory, path):
    for topics in ("a", ["a", "b"], ["a", "b", "c", "d"]):
        memory.enter_scene(Situation.of(chan="qq", topics=topics))
    memory.enter_scene(Situation.of(chan="qq", topics="b"))

    found = features(path, "auto:chan:qq")
    assert found["topic:a"] == [0.2, pytest.approx(0.2 + 0.1), 2]
    assert found["topic:b"] == [0.4, pytest.approx(0.2 + 0.1 + 0.4), 3]
    assert found["topic:c"] == [0.1, 0.1, 2]
    assert found["chan:qq"] == [1.0, 3.0, 3]


def test_the_part_of_the_day_is_in_no_key_and_keeps_nothing_apart(memory):  # E3
    assert not memory.enter_scene(Situation.of(chan="qq", part="morning")).key

    visit = memory.enter_scene(Situation.of(chan="qq", part="evening"))

    assert (visit.key, visit.created) == ("auto:chan:qq", True)


def test_a_new_topic_joins(memory):  # E4
    key = grow(memory, Situation.of(chan="qq", peer="boss", tool="shell", topics="a"))

    visit = memory.enter_scene(Situation.of(chan="qq", peer="boss", tool="shell", topics="b"))

    assert (visit.key, visit.created) == (key, False)


def test_another_channel_grows_its_own_scene(memory):  # E5
    grow(memory, Situation.of(chan="qq"))

    assert grow(memory, Situation.of(chan="web")) == "auto:chan:web"


def test_a_taken_key_gets_a_suffix(memory):  # E6
    """Two people on three channels: one label, three situations that veto each other."""
    keys = [grow(memory, Situation.of(chan=chan, peer=["ann", "bob"])) for chan in ("qq", "web", "mail")]

    base = "auto:peer:ann_peer:bob"
    assert keys == [base, f"{base}.2", f"{base}.3"]


@pytest.mark.parametrize("name", ["排班" * 20, "a" * 90, "é" * 44, "x." * 44, "a_" * 44])
def test_suffixes_of_long_keys_fit_and_stay_fixed_points(memory, name):  # E6, KEY-14 of section 12
    keys = [grow(memory, Situation.of(chan=chan, peer=[name + "1", name + "2"])) for chan in ("qq", "web", "mail")]

    assert len(set(keys)) == 3
    for number, key in enumerate(keys[1:], 2):
        assert key.endswith(f".{number}")
    for key in keys:
        assert len(key.encode()) <= 96
        assert normalize_key(key) == key


@pytest.mark.parametrize(
    "empty",
    [Situation(), Situation([Feature("chan", ""), Feature("topic", " ")]), Situation.of(peer="assistant")],
    ids=["nothing", "blanks", "only the agent itself"],
)
def test_an_empty_situation_writes_nothing(memory, path, empty):  # E7, NUM-03
    memory.enter_scene(Situation.of(chan="qq"))
    before = dump(path)

    visits = [memory.enter_scene(empty), memory.enter_scene(empty)]

    assert [(visit.key, visit.created, visit.keys) for visit in visits] == [("", False, ())] * 2
    assert dump(path) == before


def test_a_situation_without_a_label_makes_neither_evidence_nor_scene(memory):  # E7, design 5
    for _ in range(3):
        assert memory.enter_scene(Situation.of(part="morning")).key == ""

    assert memory.evidence() == ()
    assert memory.scenes() == ()


# Pairs whose similarity is exactly 0.5 on paper; as sums of floats some come out a little below.
HALVES = [
    ([Feature("chan", "x")], [Feature("chan", "x"), Feature("tool", "t", weight=1.0)]),
    ([Feature("chan", "x"), Feature("tool", "t")], [Feature("chan", "x"), Feature("tool", "t", weight=2.6)]),
    (
        [Feature("a", "1", weight=0.1), Feature("b", "1", weight=0.2), Feature("c", "1", weight=0.3)],
        [Feature("a", "1", weight=0.1), Feature("b", "1", weight=0.2)],
    ),
    (
        [Feature("a", "1", weight=0.7), Feature("b", "1", weight=0.1), Feature("c", "1", weight=0.8)],
        [Feature("a", "1", weight=0.7), Feature("b", "1", weight=0.1)],
    ),
]


@pytest.mark.parametrize(("grown", "met"), HALVES)
@pytest.mark.parametrize("visits", [0, 2, 5])
def test_a_similarity_of_exactly_one_half_joins(memory, grown, met, visits):  # E8
    key = grow(memory, Situation(grown))
    for _ in range(visits):
        memory.enter_scene(Situation(grown))

    visit = memory.enter_scene(Situation(met))

    assert (visit.key, visit.similarity) == (key, 0.5)


def test_a_similarity_just_below_one_half_does_not_join(memory):
    grow(memory, Situation.of(chan="x"))

    assert memory.enter_scene(Situation([Feature("chan", "x"), Feature("tool", "t", weight=1.00001)])).key == ""


def test_fresh_topics_never_split_a_channel(memory):  # E9, "twenty turns" of the issue
    words = (f"word{i}" for i in itertools.count())

    for _ in range(20):
        memory.enter_scene(Situation.of(chan="qq", topics=list(itertools.islice(words, 3))))

    assert [(s.key, s.visits) for s in memory.scenes()] == [("auto:chan:qq", 19)]


def test_two_peers_with_one_channel_and_tool_are_two_scenes_without_shared_recall(memory):  # E10
    ann, bob = (Situation.of(chan="qq", tool="shell", topics="a", peer=peer) for peer in ("ann", "bob"))
    for person, situation in (("ann", ann), ("bob", bob)):
        memory.commit([Triple(person, "likes", f"what {person} likes")], scenes=grow(memory, situation))

    recalled = [objects(memory.recall_by_situation(situation)) for situation in (ann, bob)]

    assert {s.key for s in memory.scenes()} == {"auto:peer:ann_chan:qq", "auto:peer:bob_chan:qq"}
    assert recalled == [["what ann likes"], ["what bob likes"]]


def test_six_channels_in_turn_grow_six_scenes(memory):  # V3, R5
    channels = [f"channel-{i}" for i in range(6)]

    for _ in range(3):
        for channel in channels:
            memory.enter_scene(Situation.of(chan=channel))

    assert {s.key: s.visits for s in memory.scenes()} == {f"auto:chan:{channel}": 2 for channel in channels}
    assert memory.evidence() == ()


def test_a_write_before_the_scene_grows_makes_one_scene_with_refs_and_features(memory, path):  # U7
    memory.commit([RULE], scenes="auto:chan:x")
    here = Situation.of(chan="x")

    visits = [memory.enter_scene(here) for _ in range(3)]

    (only,) = memory.scenes()
    assert (only.key, only.strength, only.visits, only.features, only.refs) == ("auto:chan:x", 3, 2, 1, 3)
    assert [(visit.key, visit.created, visit.strength) for visit in visits] == [
        ("", False, 0),
        ("auto:chan:x", True, 2),
        ("auto:chan:x", False, 3),
    ]
    assert objects(memory.recall_by_situation(here)) == ["plain text"]


def test_a_scene_keeps_at_most_64_features_the_lasting_and_the_newest_among_them(memory, path):
    words = (f"word{i}" for i in itertools.count())
    for _ in range(300):
        last = list(itertools.islice(words, 3))
        memory.enter_scene(Situation.of(chan="qq", topics=[*last, "every time"]))

    kept = features(path, "auto:chan:qq")

    assert len(kept) == 64
    assert kept["chan:qq"] == [1.0, pytest.approx(299.0), 299]
    assert kept["topic:every_time"] == [pytest.approx(0.1), pytest.approx(29.9), 299]
    assert {f"topic:{word}" for word in last} <= kept.keys()
    assert len({touched for _, _, touched in kept.values()} & set(range(295, 300))) == 5


def test_many_tools_freeze_out_neither_the_channel_nor_the_newest_word(memory, path):
    tools = (f"tool{i}" for i in itertools.count())
    key = grow(memory, Situation.of(chan="qq"))

    for turn in range(12):
        many = [Feature("tool", next(tools), weight=0.1) for _ in range(12)]
        memory.enter_scene(Situation([Feature("chan", "qq"), Feature("topic", f"word{turn}", weight=0.01), *many]))

        kept = features(path, key)
        assert len(kept) == min(64, 1 + 13 * (turn + 1))
        assert {"chan:qq", f"topic:word{turn}"} <= kept.keys()
    assert [s.visits for s in memory.scenes()] == [13]


def test_a_scene_that_met_200_topics_is_still_joined_with_five_of_them(memory):  # NUM-04
    words = [f"word{i}" for i in range(200)]
    for i in range(0, 200, 4):
        memory.enter_scene(Situation.of(chan="qq", topics=words[i : i + 4]))

    assert memory.enter_scene(Situation.of(chan="qq", topics=words[:5])).key == "auto:chan:qq"


def test_names_of_the_agent_itself_bring_no_two_groups_together(memory):  # NUM-04
    first = grow(memory, Situation.of(peer=["me", "assistant", "ann"]))
    second = grow(memory, Situation.of(peer=["me", "assistant", "bob"]))

    assert (first, second) == ("auto:peer:ann", "auto:peer:bob")


@pytest.mark.parametrize(("joined", "why"), [("b", "the stronger"), ("a", "the older")])
def test_ties_go_to_the_stronger_then_the_older_scene(memory, joined, why):
    for tool in "aabb":
        memory.enter_scene(Situation.of(chan="x", tool=tool))
    if why == "the stronger":
        memory.enter_scene(Situation.of(chan="x", tool="b"))

    assert memory.enter_scene(Situation.of(chan="x")).key == f"auto:chan:x_tool:{joined}"


def test_a_declaration_counts_as_strength_when_a_tie_is_broken(memory, path, clock):
    """Also for a memory that has looked before, in this process or another."""
    for tool in "aabb":
        memory.enter_scene(Situation.of(chan="x", tool=tool))
    here = Situation.of(chan="x")
    with Memory.open(path, clock=clock) as other:
        other.match_scenes(here)

        memory.declare_scene("auto:chan:x_tool:b")

        keys = [[match.key for match in each.match_scenes(here)] for each in (memory, other)]
        assert keys == [["auto:chan:x_tool:b", "auto:chan:x_tool:a"]] * 2
        assert other.enter_scene(here).key == "auto:chan:x_tool:b"


def test_a_turn_that_declares_the_scene_it_visits_tells_its_stored_strength(memory):
    here = Situation.of(chan="x")

    for _ in range(4):
        visit = memory.enter_scene(here, declared="auto:chan:x")

    assert visit.strength == scene(memory, "auto:chan:x").strength
    assert scene(memory, "auto:chan:x").visits == 3


def test_a_visit_and_a_declaration_of_one_scene_both_count_when_a_tie_is_broken(memory):
    for tool in "aaabb":
        memory.enter_scene(Situation.of(chan="x", tool=tool))

    memory.enter_scene(Situation.of(chan="x", tool="b"), declared="auto:chan:x_tool:b")

    assert scene(memory, "auto:chan:x_tool:b").strength == scene(memory, "auto:chan:x_tool:a").strength + 1
    assert memory.enter_scene(Situation.of(chan="x")).key == "auto:chan:x_tool:b"


@pytest.mark.sqlite
def test_a_visit_that_fails_to_be_written_leaves_no_trace(memory, path):
    here = Situation.of(chan="x")
    grow(memory, here)
    before = dump(path)
    refuse(path, "UPDATE ON scene_features")

    with pytest.raises(StoreFailed):
        memory.enter_scene(here, declared=["chan:x", "chan:new"])

    relent(path, "UPDATE ON scene_features")
    assert dump(path) == before
    assert memory.enter_scene(here).strength == 2
    (match,) = memory.match_scenes(here)
    assert (match.strength, match.score) == (2, 1.0)


# ---- evidence


def test_growing_a_scene_clears_its_own_evidence_alone(memory):  # V1, V2
    memory.enter_scene(Situation.of(chan="b"))

    grow(memory, Situation.of(chan="a"))

    assert [(bucket.label, bucket.count) for bucket in memory.evidence()] == [("chan:b", 1)]


def test_a_joined_turn_adds_no_evidence(memory):  # V4
    grow(memory, Situation.of(chan="a"))

    memory.enter_scene(Situation.of(chan="a", topics="new"))

    assert memory.evidence() == ()


@pytest.mark.parametrize(("apart", "grows"), [({"days": 30}, True), ({"days": 30, "milliseconds": 1}, False)])
@pytest.mark.parametrize("told_by", ["clock", "situation"])
def test_evidence_counts_within_its_lifetime(memory, clock, apart, grows, told_by):  # E11
    def here():
        return Situation.of(chan="a", at=clock.now if told_by == "situation" else None)

    memory.enter_scene(here())
    clock.advance(**apart)
    visit = memory.enter_scene(here())

    assert visit.created == grows
    if not grows:  # the second visit is the first of a new count
        assert [bucket.count for bucket in memory.evidence()] == [1]
        clock.advance(days=29)
        assert memory.enter_scene(here()).created


def test_evidence_expires_label_by_label(memory, clock):
    memory.enter_scene(Situation.of(chan="old"))
    clock.advance(days=20)
    memory.enter_scene(Situation.of(chan="young"))
    clock.advance(days=20)

    assert not memory.enter_scene(Situation.of(chan="old")).created
    assert memory.enter_scene(Situation.of(chan="young")).created


# ---- declared scenes and the keys of a visit


def test_the_first_turn_reads_the_declared_scene(memory):  # D1
    visit = memory.enter_scene(Situation.of(chan="qq"), declared=["chan:qq"])

    assert (visit.primary, visit.emergent, visit.declared_created) == ("chan:qq", False, ("chan:qq",))
    assert (visit.keys, visit.write_keys) == (("chan:qq",), ("chan:qq",))


def test_the_second_turn_leads_with_the_scene_that_grew(memory):  # D2
    for _ in range(2):
        visit = memory.enter_scene(Situation.of(chan="qq"), declared=["chan:qq"])

    assert (visit.primary, visit.emergent, visit.declared_created) == ("auto:chan:qq", True, ())
    assert visit.keys == ("chan:qq", "auto:chan:qq")
    assert visit.write_keys == ("auto:chan:qq", "chan:qq")


def test_a_declared_scene_starts_at_one_and_gains_one_a_call(memory):  # D3 as design 5 rules it
    assert [memory.declare_scene("chan:QQ").strength for _ in range(2)] == [1, 2]

    memory.enter_scene(Situation(), declared=["chan:qq"])

    declared = scene(memory, "chan:qq")
    assert (declared.origin, declared.strength, declared.visits) == ("declared", 3, 0)


def test_a_declared_scene_answers_its_key_and_no_situation(memory):  # D4, P9
    memory.commit([RULE], scenes="chan:qq/peer:boss")
    here = Situation.of(chan="qq", peer="boss")

    assert memory.recall_by_situation(here).scenes == ()
    assert memory.match_scenes(here) == ()
    assert objects(memory.recall_by_scene("chan:qq")) == ["plain text"]


def test_declared_keys_are_normalised_once_each_and_in_order(memory):  # D5
    visit = memory.enter_scene(Situation(), declared=["Tool: Shell", "chan:QQ", "", "  ", "chan:qq/", "tool:_shell"])

    assert visit.keys == ("tool:_shell", "chan:qq")
    assert visit.declared_created == visit.keys


def test_an_unknown_key_is_declared_by_a_write_unless_it_is_automatic(memory):  # D6
    memory.commit([RULE], scenes=["chan:x", "auto:x", "AUTO:y", "automatic"])

    assert {s.key: s.origin for s in memory.scenes()} == {
        "chan:x": "declared",
        "auto:x": "emergent",
        "auto:y": "emergent",
        "automatic": "declared",
    }


def test_a_declared_scene_has_the_features_that_its_key_spells(memory, path):
    memory.declare_scene("chan:QQ/peer:Boss/menu")

    assert features(path, "chan:qq/peer:boss/menu") == {"chan:qq": [1.0, 0.0, 0], "peer:boss": [1.2, 0.0, 0]}


BOSS = Situation.of(chan="qq", peer="boss")
LONG_PEER = Situation.of(chan="c" * 50, peer="p" * 60)
LONG_CHANNEL = Situation.of(chan="c" * 88, peer="boss")


@pytest.mark.parametrize(
    ("situation", "declared", "keys", "write_keys"),
    [
        (Situation.of(chan="qq"), ["chan:qq", "tool:x"], ["chan:qq", "tool:x"], ["chan:qq", "tool:x"]),
        (BOSS, [], [], []),
        (BOSS, ["chan:qq"], ["chan:qq", "chan:qq/peer:boss"], ["chan:qq/peer:boss"]),
        (BOSS, ["chan:qq", "peer:boss"], ["chan:qq", "peer:boss"], ["peer:boss"]),
        (BOSS, ["chan:QQ/Peer:BOSS/topic:x"], ["chan:qq/peer:boss/topic:x"], ["chan:qq/peer:boss/topic:x"]),
        (BOSS, ["chan:qq/peer:boss2"], ["chan:qq/peer:boss2", "chan:qq/peer:boss"], ["chan:qq/peer:boss"]),
        (BOSS, ["x:peer:boss"], ["x:peer:boss", "chan:qq/peer:boss"], ["chan:qq/peer:boss"]),
        (Situation.of(peer="boss"), ["chan:qq"], ["chan:qq", "peer:boss"], ["peer:boss"]),
        (
            Situation.of(chan="qq", peer_group="g"),
            ["chan:qq"],
            ["chan:qq", "chan:qq/peer_group:g"],
            ["chan:qq/peer_group:g"],
        ),
        # The joined key is cut, so no segment of it is the peer's key; it names the peer all the same.
        (
            LONG_PEER,
            [f"chan:{'c' * 50}/peer:{'p' * 60}", "chan:qq"],
            [normalize_key(f"chan:{'c' * 50}/peer:{'p' * 60}"), "chan:qq"],
            [normalize_key(f"chan:{'c' * 50}/peer:{'p' * 60}")],
        ),
        # The joined key would be refused: the peer's own key stands for it.
        (LONG_CHANNEL, ["chan:qq"], ["chan:qq", "peer:boss"], ["peer:boss"]),
    ],
)
def test_a_turn_writes_only_to_keys_that_name_its_peer(memory, situation, declared, keys, write_keys):
    visit = memory.enter_scene(situation, declared=declared)

    assert visit.keys == tuple(keys)
    assert visit.write_keys == tuple(write_keys)
    assert {s.key for s in memory.scenes()} == set(keys)


def test_the_visited_scene_is_read_last_and_written_first(memory):
    for _ in range(2):
        visit = memory.enter_scene(BOSS, declared="chan:qq")

    assert visit.keys == ("chan:qq", "chan:qq/peer:boss", "auto:peer:boss_chan:qq")
    assert visit.write_keys == ("auto:peer:boss_chan:qq", "chan:qq/peer:boss")


def test_a_rule_of_one_peer_reaches_nobody_else_through_the_channel(memory):
    ann = Situation.of(chan="qq", peer="ann")
    for _ in range(3):
        visit = memory.enter_scene(BOSS, declared="chan:qq")
        memory.commit([RULE], scenes=visit.write_keys)
        other = memory.enter_scene(ann, declared="chan:qq")

    assert objects(memory.recall_by_scene(other.keys, exact=True)) == []
    assert objects(memory.recall_by_situation(ann, declared=other.keys)) == []
    assert objects(memory.recall_by_scene(visit.keys, exact=True)) == ["plain text"]


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.enter_scene("chan:qq"),
        lambda memory: memory.enter_scene(Situation.of(chan="qq"), declared=["chan:qq", "///"]),
        lambda memory: memory.enter_scene(Situation.of(chan="qq"), declared=[7]),
        lambda memory: memory.enter_scene(Situation.of(chan="qq"), declared=7),
        lambda memory: memory.declare_scene(""),
        lambda memory: memory.declare_scene(" / "),
        lambda memory: memory.declare_scene(None),
        lambda memory: memory.match_scenes(None),
        lambda memory: memory.recall_by_situation({"chan": "qq"}),
        lambda memory: memory.recall_by_scene(["chan:qq", "/"]),
        lambda memory: memory.recall_by_scene(None),
        lambda memory: memory.recall_by_scene("chan:qq", limit=-1),
        lambda memory: memory.recall_by_scene("chan:qq", limit=2.0),
        lambda memory: memory.recall_by_scene("chan:qq", limit=True),
        lambda memory: memory.recall_by_scene("chan:qq", limit=2**70),
        lambda memory: memory.recall_by_scene("chan:qq", scopes=[1]),
        lambda memory: memory.recall_by_scene("chan:qq", scopes=1),
        lambda memory: memory.recall_by_situation(Situation.of(chan="qq"), limit="8"),
        lambda memory: memory.scenes("///"),
        lambda memory: memory.scenes(7),
        lambda memory: memory.scenes(origin="imported"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(memory, path, call):
    before = dump(path)

    with pytest.raises(InvalidInput):
        call(memory)

    assert dump(path) == before


# ---- attaching


def test_a_commit_attaches_the_relation_and_its_ends(memory, path):  # A1
    memory.commit([Triple("cat", "likes", "fish")], scenes=[])
    memory.commit([RULE], scenes="chan:qq")

    assert [kind for kind, *_ in refs(path, "chan:qq")] == ["entity", "entity", "relation"]
    assert objects(memory.recall_by_scene("chan:qq")) == ["plain text"]


def test_scene_keys_of_a_commit_are_normalised_once_each_and_in_order(memory):  # A2
    report = memory.commit([RULE], scenes=["auto:a", "chan:QQ", "", "chan:qq "])

    assert report.scenes == ("auto:a", "chan:qq")


def test_said_again_with_less_confidence_keeps_the_weight_and_restarts_the_clock(memory, path, clock):  # A3
    memory.commit([Triple("a", "b", "c", confidence=0.9)], scenes="chan:qq")
    clock.advance(days=3)

    memory.commit([Triple("a", "b", "c", confidence=0.4)], scenes="chan:qq")

    assert [row[2:] for row in refs(path, "chan:qq")] == [(0.9, "2026-09-10T08:00:00.000Z")] * 3


def test_an_old_log_turns_no_clock_back(memory, path, clock):
    memory.commit([RULE], scenes="chan:qq")

    memory.commit([RULE], scenes="chan:qq", at="2020-01-01T00:00:00Z")

    assert [row[3] for row in refs(path, "chan:qq")] == ["2026-09-07T08:00:00.000Z"] * 3


# ---- recall by scene


def test_a_recalled_relation_has_both_names_and_the_sentence(memory):  # P1
    memory.commit([RULE], scenes="chan:qq")

    recollection = memory.recall_by_scene("chan:qq")

    (relation,) = recollection.relations
    assert (relation.subject, relation.relation, relation.object) == ("boss", "wants", "plain text")
    assert relation.sentence == "The boss wants plain text."
    assert {entity.name for entity in recollection.entities} == {"boss", "plain text"}
    assert recollection.scenes == ("chan:qq",)


# Each key holds one fact whose object is the key; the keys differ in what a wildcard or a bare prefix would confuse.
KEYS = ["chan:qq", "chan:qq2", "chan:qq/peer:group_1", "chan:qq/peer:group_1/topic:menu", "chan:qq/peer:group_10",
        "chan:qq/peer:groupx1", "chan:a_b/y", "chan:axb/y"]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "exact", "found"),
    [
        ("chan:qq", False, [KEYS[0], *KEYS[2:6]]),  # P2
        ("chan:QQ / ", False, [KEYS[0], *KEYS[2:6]]),
        ("chan:qq", True, [KEYS[0]]),
        ("chan:qq/peer:group_1", False, KEYS[2:4]),  # P2, KEY-01
        ("chan:qq/peer:group_1", True, KEYS[2:3]),
        ("chan:a_b", False, ["chan:a_b/y"]),  # P6, KEY-02
        ("chan:a_b", True, []),
        ("%", False, []),  # KEY-02
        ("chan:%", False, []),
        ("chan:q_", False, []),
        ("chan:a%", False, []),
        ("*", False, []),
        ("chan", False, []),
        ("", False, KEYS),  # KEY-04
        ("  ", False, KEYS),
        ([], False, []),  # P4
        (["", " "], False, []),
        (["chan:qq2", "chan:qq/peer:group_1", "chan:qq2"], False, [KEYS[1], *KEYS[2:4]]),
    ],
)
def test_a_key_recalls_itself_and_what_lies_below(memory, keys, exact, found):
    for key in KEYS:
        memory.commit([Triple("fact", "of", key)], scenes=key)

    recollection = memory.recall_by_scene(keys, exact=exact, limit=100)

    assert sorted(objects(recollection)) == sorted(found)
    assert sorted(recollection.scenes) == sorted(found)
    if isinstance(keys, str) and not exact:
        assert sorted(s.key for s in memory.scenes(keys)) == sorted(found)


def test_the_heaviest_come_first_and_the_limit_cuts(memory):  # P3
    for confidence in (0.2, 0.9, 0.5):
        memory.commit([Triple("a", "weighs", f"{confidence}", confidence=confidence)], scenes="chan:qq")

    recollection = memory.recall_by_scene("chan:qq", limit=2)

    assert [relation.weight for relation in recollection.relations] == [0.9, 0.5]
    assert [entity.weight for entity in recollection.entities] == [0.9, 0.9]


@pytest.mark.parametrize(("limit", "count"), [(None, 8), (0, 0), (1, 1), (9, 9), (50, 10)])
def test_a_limit_of_none_is_eight_and_of_zero_none(memory, limit, count):  # P4 as design 5 rules it
    here = Situation.of(chan="qq")
    memory.commit([Triple(f"s{i}", "r", f"o{i}") for i in range(10)], scenes=grow(memory, here))

    by_scene = memory.recall_by_scene("auto:chan:qq", limit=limit)
    by_situation = memory.recall_by_situation(here, limit=limit)

    assert (len(by_scene.relations), len(by_situation.relations)) == (count, count)
    assert len(by_scene.entities) == len(by_situation.entities) == min(20, 8 if limit is None else limit)


def test_equal_weights_are_ordered_by_time_then_by_id(memory, clock):
    memory.commit([Triple("a", "r", "first"), Triple("a", "r", "second")], scenes="chan:qq")
    clock.advance(hours=1)
    memory.commit([Triple("a", "r", "third")], scenes="chan:qq")
    memory.commit([Triple("a", "r", "first")], scenes="chan:qq")

    assert objects(memory.recall_by_scene("chan:qq")) == ["third", "first", "second"]


def test_a_fact_in_two_matching_scenes_comes_once_with_the_greater_weight(memory):  # P5
    memory.commit([Triple("a", "r", "b", confidence=0.4)], scenes="chan:qq")
    memory.commit([Triple("a", "r", "b", confidence=0.7)], scenes="chan:qq/peer:x")

    recollection = memory.recall_by_scene("chan:qq")

    assert [relation.weight for relation in recollection.relations] == [0.7]
    assert sorted(entity.name for entity in recollection.entities) == ["a", "b"]


@pytest.mark.parametrize("status", ["deleted", "archived", "superseded"])
def test_only_active_facts_are_recalled_and_counted(memory, path, status):  # P7
    here = Situation.of(chan="qq")
    memory.commit([RULE, Triple("a", "b", "c")], scenes=grow(memory, here))
    sql(path, "UPDATE relations SET status = ? WHERE relation_type = 'wants'", status)

    assert objects(memory.recall_by_scene("auto:chan:qq")) == ["c"]
    assert objects(memory.recall_by_situation(here)) == ["c"]
    assert scene(memory, "auto:chan:qq").refs == 5


def test_a_relation_that_is_gone_is_passed_over(memory, path):
    memory.commit([RULE, Triple("a", "b", "c")], scenes="chan:qq")
    sql(path, "DELETE FROM evidence")
    sql(path, "DELETE FROM relations WHERE relation_type = 'wants'")

    assert objects(memory.recall_by_scene("chan:qq")) == ["c"]


@pytest.mark.parametrize(
    ("scopes", "found", "names"),
    [
        ("all", ["of all", "of p", "of q"], ["a", "of all", "of p", "of q"]),
        (None, ["of all"], ["a", "of all"]),
        ([], ["of all"], ["a", "of all"]),
        (["p"], ["of all", "of p"], ["a", "of all", "of p"]),
        ("q", ["of all", "of q"], ["a", "of all", "of q"]),
        (["p", "q", "none such"], ["of all", "of p", "of q"], ["a", "of all", "of p", "of q"]),
    ],
)
def test_scopes_bring_back_their_facts_and_those_of_none(memory, scopes, found, names):
    here = Situation.of(chan="qq")
    key = grow(memory, here)
    for scope, name in ((None, "of all"), ("p", "of p"), ("q", "of q")):
        memory.commit([Triple("a", "r", name)], scenes=key, scope=scope)

    for recollection in (
        memory.recall_by_scene(key, scopes=scopes),
        memory.recall_by_situation(here, scopes=scopes),
        memory.recall_by_situation(Situation(), declared=key, scopes=scopes),
    ):
        assert sorted(objects(recollection)) == found
        assert sorted(entity.name for entity in recollection.entities) == names


def test_one_fact_in_two_scopes_is_two_facts(memory):
    reports = [memory.commit([RULE], scenes="chan:qq", scope=scope) for scope in ("p", "q", "p")]

    assert [(report.created, report.repeated) for report in reports] == [(1, 0), (1, 0), (0, 1)]
    assert objects(memory.recall_by_scene("chan:qq", scopes=["q"])) == ["plain text"]


def test_an_alias_reads_and_writes_the_scene_behind_it(memory, path):
    memory.commit([RULE], scenes=["chan:new", "chan:new/peer:x"])
    sql(path, "INSERT INTO scene_aliases SELECT 'chan:old', id FROM scenes WHERE key = 'chan:new'")

    memory.commit([Triple("a", "b", "c")], scenes="chan:old")
    visit = memory.enter_scene(Situation(), declared="chan:Old")

    assert sorted(s.key for s in memory.scenes()) == ["chan:new", "chan:new/peer:x"]
    assert sorted(objects(memory.recall_by_scene("chan:old", exact=True))) == ["c", "plain text"]
    assert sorted(objects(memory.recall_by_situation(Situation(), declared="chan:old"))) == ["c", "plain text"]
    assert (visit.keys, visit.declared_created) == (("chan:new",), ())
    assert memory.declare_scene("chan:old").key == "chan:new"
    assert [s.key for s in memory.scenes("chan:old")] == ["chan:new"]


# ---- recall by situation


def test_a_situation_recalls_its_rule_without_a_word(memory):  # P8, U7
    memory.commit([RULE], scenes=grow(memory, Situation.of(chan="qq", peer="boss", topics="a")))

    again = memory.recall_by_situation(Situation.of(chan="qq", peer="boss", topics=["x", "y"], part="night"))
    elsewhere = memory.recall_by_situation(Situation.of(chan="web", topics="a"))

    assert objects(again) == ["plain text"]
    assert not elsewhere


X, Y = {"chan": "x"}, {"chan": "y"}


@pytest.mark.parametrize(
    ("grown", "asked", "ground"),
    [
        # A scene that names a peer answers only where one of them is named again, and then always.
        (X | {"peer": "ann"}, X | {"peer": "ann"}, "person"),
        (X | {"peer": "ann"}, Y | {"peer": "ann", "tool": ["a", "b"], "topics": ["c", "d"]}, "person"),
        (X | {"peer": ["ann", "bob"]}, Y | {"peer": ["bob", "eve"]}, "person"),
        (X | {"peer": "ann", "tool": "t"}, X | {"tool": "t"}, ""),
        (X | {"peer": "ann", "tool": "t"}, X | {"peer": "bob", "tool": "t"}, ""),
        # A scene that names only groups answers where one of them is.
        (X | {"peer_group": "g"}, Y | {"peer_group": "g"}, "person"),
        (X | {"peer_group": "g"}, Y | {"peer_group": ["g", "h"], "peer": "ann"}, "person"),
        (X | {"peer_group": "g"}, X, ""),
        (X | {"peer_group": "g"}, X | {"peer": "ann"}, ""),
        (X | {"peer_group": "g"}, X | {"peer": "g"}, ""),
        # Differing groups veto; a group alone is not its members.
        (X | {"peer": "ann", "peer_group": "g"}, X | {"peer": "ann", "peer_group": "h"}, ""),
        (X | {"peer": "ann", "peer_group": "g"}, X | {"peer_group": "g"}, ""),
        (X | {"peer": "ann", "peer_group": "g"}, Y | {"peer": "ann"}, "person"),
        (X | {"peer": "ann"}, Y | {"peer": "ann", "peer_group": "g"}, "person"),
        # A scene without people answers by its score, unless both name channels and share none.
        (X, X | {"peer": "ann"}, "score"),
        (X | {"tool": "t"}, Y | {"tool": "t"}, ""),
        (X | {"tool": "t"}, {"tool": "t"}, "score"),
        ({"tool": "t"}, Y | {"tool": "t"}, "score"),
        ({"tool": "t"}, {"tool": "u"}, ""),
        ({"topics": ["a", "b"]}, {"topics": ["a", "c"]}, ""),
        ({"topics": ["a", "b"]}, {"topics": ["a", "b", "c"]}, "score"),
    ],
)
def test_who_may_recall_a_scene(memory, grown, asked, ground):
    key = grow(memory, Situation.of(**grown))
    memory.commit([RULE], scenes=key)
    here = Situation.of(**asked)

    recollection = memory.recall_by_situation(here)

    assert objects(recollection) == (["plain text"] if ground else [])
    assert recollection.scenes == ((key,) if ground else ())
    assert [(match.key, match.ground) for match in memory.match_scenes(here)] == ([(key, ground)] if ground else [])


@pytest.mark.parametrize(
    ("grown", "met", "joins"),
    [
        (X | {"peer": "ann"}, X | {"peer": "ann", "tool": "t"}, True),
        (X | {"peer": "ann"}, {"peer": "ann"}, True),
        ({"peer": "ann"}, X | {"peer": "ann"}, True),
        (X | {"peer": "ann"}, Y | {"peer": "ann"}, False),
        (X | {"peer": "ann", "tool": "t"}, X | {"tool": "t"}, False),
        (X | {"tool": "t"}, X | {"peer": "ann", "tool": "t"}, False),
        (X | {"peer": ["ann", "bob"]}, X | {"peer": "ann"}, False),
        (X | {"peer": "ann"}, X | {"peer": ["ann", "bob"]}, False),
        (X | {"peer": "ann", "peer_group": "g"}, X | {"peer": "ann"}, False),
        (X | {"peer_group": "g"}, X | {"peer_group": "h"}, False),
        (X | {"tool": "t", "topics": "a"}, Y | {"tool": "t", "topics": "a"}, False),
        ({"chan": ["x", "y"], "tool": "t"}, Y | {"tool": "t"}, True),
    ],
)
def test_who_may_join_a_scene(memory, grown, met, joins):
    key = grow(memory, Situation.of(**grown))
    here = Situation.of(**met)

    matches = memory.match_scenes(here)
    visit = memory.enter_scene(here)

    assert visit.key == (key if joins else "")
    assert any(match.joins for match in matches) == joins


def test_a_scene_that_came_to_a_channel_is_joined_from_no_other(memory):
    somewhere = {"peer": "ann", "tool": "t"}
    key = grow(memory, Situation.of(**somewhere))
    assert memory.enter_scene(Situation.of(**somewhere, chan="x")).key == key

    elsewhere = Situation.of(**somewhere, chan="y")

    assert [match.joins for match in memory.match_scenes(elsewhere)] == [False]
    assert memory.enter_scene(elsewhere).key == ""


@pytest.mark.parametrize(("weight", "found"), [(13 / 7, True), (1.85715, False)])
def test_a_score_of_exactly_035_is_recalled(memory, weight, found):  # P9
    """1 shared of 1 + 13/7 is 0.35."""
    grow(memory, Situation.of(chan="x"))

    matches = memory.match_scenes(Situation([Feature("chan", "x"), Feature("tool", "t", weight=weight)]))

    assert [match.score for match in matches] == ([0.35] if found else [])


def test_facts_rank_by_score_times_weight_each_once(memory):
    best = grow(memory, Situation.of(chan="x", tool="t"))
    other = grow(memory, Situation.of(chan="x", tool="u"))
    memory.commit([Triple("a", "r", "light and near", confidence=0.3)], scenes=best)
    memory.commit([Triple("a", "r", "heavy and far", confidence=0.9)], scenes=other)
    memory.commit([Triple("a", "r", "in both", confidence=0.5)], scenes=[best, other])
    memory.commit([Triple("a", "r", "light and far", confidence=0.4)], scenes=other)

    recollection = memory.recall_by_situation(Situation.of(chan="x", tool="t"))

    far = 1 / (1 + 0.8 + 0.8)
    assert recollection.scenes == (best, other)
    assert [(relation.object, relation.weight) for relation in recollection.relations] == [
        ("in both", 0.5),
        ("heavy and far", pytest.approx(0.9 * far)),
        ("light and near", 0.3),
        ("light and far", pytest.approx(0.4 * far)),
    ]
    assert recollection.entities[0].name == "in both" or recollection.entities[0].name == "a"


def test_declared_keys_come_first_and_are_read_exactly(memory):
    here = Situation.of(chan="qq", peer="boss")
    memory.commit([Triple("a", "r", "grown")], scenes=grow(memory, here))
    memory.commit([Triple("a", "r", "declared", confidence=0.1)], scenes="chan:qq")
    memory.commit([Triple("a", "r", "below")], scenes="chan:qq/peer:ann")

    recollection = memory.recall_by_situation(here, declared=["chan:QQ", "chan:none-such"])

    assert objects(recollection) == ["declared", "grown"]
    assert recollection.scenes == ("chan:qq", "auto:peer:boss_chan:qq")
    assert memory.recall_by_situation(here, declared="chan:qq", limit=1).relations[0].object == "declared"


def test_a_declared_key_that_also_answers_counts_once_and_first(memory):
    here = Situation.of(chan="x", tool="t")
    near, far = grow(memory, here), grow(memory, Situation.of(chan="x", tool="u"))
    memory.commit([Triple("a", "r", "near")], scenes=near)
    memory.commit([Triple("a", "r", "far", confidence=0.1)], scenes=far)

    recollection = memory.recall_by_situation(here, declared=far)

    assert objects(recollection) == ["far", "near"]
    assert [relation.weight for relation in recollection.relations] == [0.1, 1.0]


def test_matching_tells_by_which_features_and_how_strongly(memory):
    for tool in ("t", "t", "u"):
        memory.enter_scene(Situation.of(chan="x", peer="ann", tool=tool))

    (match,) = memory.match_scenes(Situation.of(chan="x", peer="ann", tool="t", topics="a"))

    assert (match.key, match.strength, match.joins) == ("auto:peer:ann_chan:x", 2, True)
    assert match.score == pytest.approx((1 + 1.2 + 0.4) / (1 + 1.2 + 0.8 + 0.4))
    assert [(one.feature, one.here, one.there) for one in match.shared] == [
        ("peer:ann", 1.2, pytest.approx(1.2)),
        ("chan:x", 1.0, pytest.approx(1.0)),
        ("tool:t", 0.8, pytest.approx(0.4)),
    ]


def test_looking_writes_nothing(memory, path):
    here = Situation.of(chan="x", topics="a")
    memory.commit([RULE], scenes=grow(memory, here))
    memory.enter_scene(Situation.of(chan="y"))
    before = dump(path)

    memory.match_scenes(here)
    memory.match_scenes(Situation.of(chan="never met"))
    memory.match_scenes(Situation())
    memory.recall_by_situation(here, declared="chan:never-met")
    memory.recall_by_situation(Situation())
    memory.recall_by_scene("chan:never-met")
    memory.recall("plain")
    memory.scenes()
    memory.evidence()
    memory.operations()

    assert dump(path) == before


def test_scenes_are_listed_by_refs_and_filtered_by_origin(memory):
    memory.commit([RULE], scenes="chan:b")
    grow(memory, Situation.of(chan="a"))
    memory.declare_scene("chan:a")

    assert [s.key for s in memory.scenes()] == ["chan:b", "auto:chan:a", "chan:a"]
    assert [s.key for s in memory.scenes(origin="emergent")] == ["auto:chan:a"]
    assert [s.key for s in memory.scenes("chan:A", origin="declared")] == ["chan:a"]
    assert memory.scenes("chan:a", origin="emergent") == ()


def test_the_log_tells_decisions_and_no_stored_text(memory, caplog):
    caplog.set_level(logging.DEBUG, "graphmem")

    memory.commit([RULE], scenes=grow(memory, Situation.of(chan="qq")))
    memory.enter_scene(Situation.of(chan="qq"))
    memory.recall_by_scene("auto:chan:qq")

    assert "auto:chan:qq" in caplog.text
    assert "plain text" not in caplog.text
    assert {record.name for record in caplog.records} == {"graphmem"}


# ---- what one person said never reaches another


BOB, ALICE = (Situation.of(chan="qq", peer=peer) for peer in ("bob", "alice"))
PARTY = Triple("party", "is on", "Friday", sentence="Bob: the party is on Friday.")
SECRET = Triple("party", "is on", "Friday", sentence="Alice confided: I will propose on Friday.")


def test_one_fact_comes_back_to_each_in_the_words_of_their_own_scene(memory):
    for here, told in ((BOB, PARTY), (ALICE, SECRET)):
        grow(memory, here)
        memory.commit([told], scenes=memory.enter_scene(here).write_keys)

    sentences = {here: memory.recall_by_situation(here).relations[0].sentence for here in (BOB, ALICE)}

    assert sentences == {BOB: PARTY.sentence, ALICE: SECRET.sentence}


def test_a_fact_told_here_without_a_sentence_borrows_none(memory):
    memory.commit([SECRET], scenes="chan:qq/peer:alice")

    memory.commit([Triple("party", "is on", "Friday")], scenes="chan:qq/peer:bob")

    assert memory.recall_by_scene("chan:qq/peer:bob").relations[0].sentence == ""


def test_two_of_a_company_neither_share_its_evidence_nor_take_its_row(memory):
    three, two = Situation.of(peer=["a", "b", "c"]), Situation.of(peer=["a", "b"])
    memory.commit([PARTY], scenes="auto:peer:a_peer:b")
    memory.enter_scene(three)

    assert not memory.enter_scene(two).created
    assert memory.enter_scene(three).key == "auto:peer:a_peer:b_peer:c"
    assert not memory.recall_by_situation(Situation.of(peer="c"))
    assert memory.enter_scene(two).key == "auto:peer:a_peer:b"
    assert memory.recall_by_situation(two)


def test_a_name_comes_back_only_with_a_fact_of_the_scene_that_may(memory):
    memory.commit([Triple("boss", "argues with", "Eve")], scenes="chan:a", scope="private")
    memory.commit([Triple("Eve", "works in", "HR")], scenes="chan:b")

    assert not memory.recall_by_scene("chan:a", scopes=["other"])
    assert not memory.recall("argues", scopes=["other"])
    assert memory.recall("argues", scopes=["private"])
    for entities in ({"kinds": "entity"}, {"kinds": "entity", "precise": True}):
        told = [
            {hit.text for name in ("boss", "Eve") for hit in memory.recall(name, scopes=[scope], **entities)}
            for scope in ("other", "private")
        ]
        assert told == [{"Eve"}, {"boss", "Eve"}]


def test_the_end_of_a_fact_that_no_longer_holds_is_not_recalled(memory):
    for code in ("1111", "2222"):
        memory.commit([Triple("door", "code", code, functional=True)], scenes="chan:door")

    assert {entity.name for entity in memory.recall_by_scene("chan:door").entities} == {"door", "2222"}


def test_an_old_log_read_late_grows_its_scene(memory):
    days = ["2026-09-30", "2026-01-01", "2026-01-02"]

    visits = [memory.enter_scene(Situation.of(chan="qq", at=day)) for day in days]

    assert [visit.created for visit in visits] == [False, False, True]


def test_words_of_one_scene_are_neither_shown_nor_searched_in_another(memory):
    for here, told in (("bob", PARTY), ("alice", SECRET)):
        memory.commit([told], scenes=f"chan:qq/peer:{here}")
    memory.tag_scene("chan:qq/peer:bob", [1])

    for here in ({"scenes": "chan:qq/peer:bob"}, {"situation": BOB}):
        (hit,) = memory.recall("party", **here)
        assert hit.text == f"party is on Friday: {PARTY.sentence}"
        assert hit.scenes == ("chan:qq/peer:bob",)
        assert not memory.recall("propose", **here)
        assert not memory.recall("propose party", mode="keyword", **here)
    assert memory.recall_by_scene("chan:qq/peer:bob").relations[0].sentence == PARTY.sentence


@pytest.mark.parametrize("precise", [False, True])
def test_words_are_looked_for_only_in_the_scenes_that_were_named(memory, precise):
    for key in ("chan:qq", "chan:qq/peer:bob", "chan:mail"):
        memory.commit([Triple("panel", "port of", key.replace("/", "-"))], scenes=key)
        memory.put_document(f"The panel of {key}.", scenes=key)
        memory.put_block(f"A picture of the panel of {key}.", scenes=key)
    memory.mirror("s1", [Part(id="m1", text="Where is the panel?")])

    def places(**within):
        return {(hit.kind, hit.scenes) for hit in memory.recall("panel", precise=precise, **within)}

    def all_of(*keys):
        return {(kind, (key,)) for key in keys for kind in ("relation", "document", "block")}

    assert places() == all_of("chan:qq", "chan:qq/peer:bob", "chan:mail") | {("part", ())}
    assert places(scenes="chan:qq") == all_of("chan:qq", "chan:qq/peer:bob")
    assert places(scenes="chan:qq", exact=True) == all_of("chan:qq")
    assert places(scenes=["chan:mail", "chan:nope"]) == all_of("chan:mail")
    assert places(scenes="chan:nope") == places(scenes=[]) == set()
    assert places(situation=ALICE) == all_of("chan:qq", "chan:mail") | {("part", ())}


@pytest.mark.parametrize("query", ["", "?!", "nothing of this"])
def test_a_situation_without_words_brings_back_what_its_scenes_hold(memory, query):
    memory.commit([PARTY], scenes="chan:qq/peer:bob")
    memory.commit([Triple("a", "b", "c")], scenes="chan:mail")
    memory.put_block("A picture.", scenes="chan:qq/peer:bob")
    document = memory.put_document("A long talk.", scenes="chan:qq/peer:bob").id
    mode = "scene" if query == "nothing of this" else "hybrid"

    hits = memory.recall(query, situation=BOB, mode=mode, explain=True)

    assert {hit.kind for hit in hits} == {"relation", "block", "document"}
    assert f"party is on Friday: {PARTY.sentence}" in [hit.text for hit in hits]
    assert {reason.part for hit in hits for reason in hit.why} == {"scene"}
    assert [hit.id for hit in memory.recall(query, situation=BOB, mode=mode, kinds="document")] == [document]
    assert memory.recall(query, situation=BOB, mode=mode, scenes="chan:mail") == ()
    assert memory.recall(query, situation=ALICE, mode=mode) == ()
    assert len(memory.recall(query, situation=BOB, mode=mode, limit=1)) == 1
    assert memory.recall(query, situation=BOB, mode=mode, until="2026-01-01") == ()


def test_a_row_of_a_suffixed_key_is_nobody_elses_to_adopt(memory):
    bob, elsewhere = Situation.of(peer="bob"), Situation.of(peer="bob", chan="qq", tool="t")
    memory.commit([SECRET], scenes="auto:peer:bob.2")
    grow(memory, bob)
    for _ in range(60):
        memory.enter_scene(elsewhere)

    memory.enter_scene(bob)
    visit = memory.enter_scene(bob)

    assert visit.key != "auto:peer:bob.2"
    assert not memory.recall_by_situation(bob)


def test_a_name_that_spells_two_features_has_a_label_of_its_own(memory):
    memory.commit([SECRET], scenes="auto:peer:alice_chan:qq")
    memory.enter_scene(Situation.of(peer="alice", chan="qq"))
    stranger = Situation.of(peer="alice_chan:qq")

    assert not memory.enter_scene(stranger).created
    assert memory.enter_scene(stranger).key != "auto:peer:alice_chan:qq"
    assert not memory.recall_by_situation(stranger)


@pytest.mark.parametrize("key", ["chan:", "chan:qq/peer:", "tool:/chan:qq"])
def test_a_key_that_names_nothing_behind_its_kind_is_refused(memory, key):
    with pytest.raises(InvalidInput, match="names nothing"):
        memory.declare_scene(key)


def test_tagging_nothing_makes_no_scene(memory):
    memory.tag_scene("chan:new", glob="nothing*")

    assert memory.scenes() == ()


def test_a_situation_is_read_in_the_zone_of_the_memory(path):
    told = "2026-09-04T09:00"
    with Memory.open(path, config=Config(timezone="Asia/Shanghai")) as memory:
        memory.enter_scene(Situation.of(chan="qq", at=told))

        assert memory.evidence()[0].updated_at == "2026-09-04T01:00:00.000Z"
        assert "part:morning" in memory.observe(source="qq", at=told).weights
