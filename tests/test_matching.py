"""Matching gives what a plain scan over the file gives, however the file came to be what it is.

The scan is the oracle: slow, readable, and built from the pure functions that say what a score and a veto are.
"""

import contextlib
import random
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlite_utils import Database
from support import examples

from graphmem import Config, Conflict, Feature, Memory, Situation
from graphmem.config import DEFAULT
from graphmem.core.situations import may_join, recall_ground, score
from graphmem.graph import matching
from graphmem.store import postings, schema, sqlite

TIME = "2026-08-01T00:00:00.000Z"
ALPHABET = {"chan": "xy", "peer": "ab", "peer_group": "gh", "tool": "tu", "topic": "pqrs", "part": "m", "place": "12"}
FEATURES = [(kind, value) for kind, values in ALPHABET.items() for value in values]
SOFT_CHANNELS = Config(weights={"chan": 0.3, "topic": 0.9}, identity_floor=0.4)
CONFIGS = [
    DEFAULT,
    Config(join_score=0.7, recall_score=0.2),
    SOFT_CHANNELS,
    Config(identity_floor=1.0, join_score=0.3, recall_score=0.5),
    Config(scene_features=7, scene_identity_features=4, scene_recent_features=2),
]


# ---- the oracle


def scan(connection):
    """All scenes that are in the similarity space: id, strength, profile."""
    scenes = connection.execute(
        "SELECT id, strength, visits FROM scenes WHERE origin = 'emergent' AND visits > 0 ORDER BY id"
    ).fetchall()
    for scene_id, strength, visits in scenes:
        masses = connection.execute("SELECT feature, mass FROM scene_features WHERE scene_id = ?", (scene_id,))
        if profile := {feature: mass / visits for feature, mass in masses}:
            yield scene_id, strength, profile


def plain_best(connection, situation):
    fits = [
        (-found, -strength, scene_id)
        for scene_id, strength, profile in scan(connection)
        if may_join(situation, profile) and (found := score(situation, profile)) >= situation.config.join_score
    ]
    return min(fits, default=None)


def plain_answering(connection, situation):
    fits = [
        (-found, -strength, scene_id, ground)
        for scene_id, strength, profile in scan(connection)
        for found, ground in [(score(situation, profile), recall_ground(situation, profile))]
        if ground == "person" or (ground and found >= situation.config.recall_score)
    ]
    return sorted(fits)


def check(memory, situation):
    """Compare matching and scan on one state of the file; return how many scenes answered."""
    with memory._store.read() as tx:
        best = matching.best(tx, situation)
        answering = matching.answering(tx, situation)

        assert (best and (-best.score, -best.strength, best.scene_id)) == plain_best(tx, situation)
        found = [(-one.score, -one.strength, one.scene_id, one.ground) for one in answering]
        assert found == plain_answering(tx, situation)
        for one in answering:
            assert (type(one.scene_id), type(one.score), type(one.strength)) == (int, float, int)
    return len(found)


# ---- writing to the file behind the memory's back


def raw(path):
    """A write of another program, which knows nothing of postings."""
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))


def import_scene(path, key, masses, *, visits, strength=1, origin="emergent"):
    with raw(path) as connection:
        (scene_id,) = connection.execute(
            "INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
            " RETURNING id",
            (key, strength, visits, origin, TIME, TIME),
        ).fetchone()
        connection.executemany(
            "INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, 1.0, ?, ?)",
            [(scene_id, feature, mass, visits) for feature, mass in masses.items()],
        )


def delete_scene(path, place):
    """Delete the scene at a place among all, if there is one."""
    with raw(path) as connection:
        ids = [scene_id for (scene_id,) in connection.execute("SELECT id FROM scenes ORDER BY id")]
        if ids:
            scene_id = ids[place % len(ids)]
            for table in ("scene_features", "scene_refs", "scene_aliases"):
                connection.execute(f"DELETE FROM {table} WHERE scene_id = ?", (scene_id,))
            connection.execute("DELETE FROM scenes WHERE id = ?", (scene_id,))


def settle(path):
    with raw(path) as connection:
        postings.settle_all(connection)


def wrong_scenes(path):
    with raw(path) as connection:
        return postings.wrong_scenes(connection)


@contextlib.contextmanager
def asking(limit, *, ahead=False):
    """Set from how many scenes on a feature is common, and whether to ask as of a server; no result may change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_COMMON", limit)
        patch.setattr(matching, "_BUSY", limit)
        patch.setattr(matching, "_LIKELY", min(limit, matching._LIKELY))
        patch.setattr(sqlite, "is_remote", ahead)
        yield


@contextlib.contextmanager
def fresh_file():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "memory.db"


# ---- strategies

weights = st.sampled_from([None, None, None, 0.05, 0.3, 0.5, 1.0, 1.7])
feature_sets = st.lists(st.sampled_from(FEATURES), min_size=1, max_size=6, unique=True)
situations = st.builds(
    lambda chosen, given: [Feature(*name, weight=weight) for name, weight in zip(chosen, given, strict=False)],
    feature_sets,
    st.lists(weights, min_size=6, max_size=6),
)
imports = st.fixed_dictionaries(
    {
        "masses": st.dictionaries(
            st.sampled_from([f"{kind}:{value}" for kind, value in FEATURES]),
            st.sampled_from([0.0, 1e-9, 0.1, 0.3, 1.0, 2.5, 7.0, 1e6]),
            min_size=0,
            max_size=7,
        ),
        "visits": st.sampled_from([0, 1, 2, 3, 7, 1000]),
        "strength": st.integers(0, 3),
        "origin": st.sampled_from(["emergent", "emergent", "emergent", "declared"]),
    }
)


def named(*keys):
    return [Feature(*key.split(":")) for key in keys]


FULL = matching._COMMON, False
WAYS = st.sampled_from([FULL, (1, False), (2, False), (matching._COMMON, True), (1, True), (2, True)])


@settings(max_examples=examples(100))
@given(st.sampled_from(CONFIGS), WAYS, st.lists(situations, min_size=1, max_size=25))
# A channel vetoes whatever its kind weighs.
@example(SOFT_CHANNELS, FULL, [named("chan:x", "topic:p")] * 2 + [named("chan:y", "topic:p")])
# A visit may bring the first channel into a scene; from then on others veto.
@example(DEFAULT, FULL, [named("peer:a", "tool:t", *channel) for channel in ([], [], ["chan:x"], ["chan:y"])])
@example(DEFAULT, FULL, [named("tool:t", *channel) for channel in ([], [], ["chan:x"], ["chan:y"], [])])
# A channel weighs less at a visit with each turn that does not name it, and more situations may reach the scene.
@example(DEFAULT, FULL, [[*named("tool:t"), Feature("chan", "x", weight=0.3)]] * 2 + [named("tool:t")] * 4)
def test_matching_agrees_with_a_scan_before_every_visit(config, way, stream):
    limit, ahead = way
    with asking(limit, ahead=ahead), fresh_file() as path, Memory.open(path, config=config) as memory:
        for features in stream:
            situation = Situation(features, config=config)
            check(memory, situation)
            memory.enter_scene(situation)
            assert wrong_scenes(path) == []
        for features in stream:
            check(memory, Situation(features, config=config))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), situations),
        st.tuples(st.just("enter"), situations),
        st.tuples(st.just("enter in another process"), situations),
        st.tuples(st.just("import"), imports),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("settle"), st.none()),
        st.tuples(st.just("declare"), st.integers(0, 9)),
        st.tuples(st.just("rename"), st.tuples(st.integers(0, 9), st.sampled_from(["chan:x", "auto:new", "peer:a"]))),
        st.tuples(st.just("look"), situations),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=examples(130))
@given(st.sampled_from(CONFIGS), WAYS, steps, st.lists(situations, min_size=3, max_size=3))
# A declaration strengthens a scene, and strength breaks ties.
@example(DEFAULT, FULL, [("enter", named("chan:x"))] * 3 + [("declare", 0)], [named("chan:x")])
# A key takes a scene out of those that are matched, and puts it back.
@example(
    DEFAULT,
    FULL,
    [("enter", named("chan:x"))] * 3
    + [("rename", (0, "peer:a")), ("look", named("chan:x")), ("rename", (0, "auto:new"))],
    [named("chan:x")],
)
def test_matching_agrees_with_a_scan_whoever_wrote(config, way, stream, probes):
    """Imports with odd masses, deletions, declarations, renames, another process."""
    limit, ahead = way
    with (
        asking(limit, ahead=ahead),
        fresh_file() as path,
        Memory.open(path, config=config) as memory,
        Memory.open(path, config=config) as other,
    ):
        for number, (step, value) in enumerate(stream):
            if step == "enter":
                memory.enter_scene(Situation(value, config=config))
            elif step == "enter in another process":
                other.enter_scene(Situation(value, config=config))
            elif step == "import":
                import_scene(path, f"auto:imported:{number}", **value)
            elif step == "delete":
                delete_scene(path, value)
            elif step == "settle":
                settle(path)
                assert wrong_scenes(path) == []
            elif step == "declare":
                for scene in other.scenes()[value : value + 1]:
                    other.declare_scene(scene.key)
            elif step == "rename":
                place, key = value
                for scene in other.scenes()[place : place + 1]:
                    with contextlib.suppress(Conflict):
                        other.rename_scene(scene.key, key)
            else:
                check(memory, Situation(value, config=config))
        for features in probes:
            check(memory, Situation(features, config=config))
            check(other, Situation(features, config=config))


def crowd(path, count, seed):
    """Import many scenes over a wider alphabet; return situations to ask for."""
    chance = random.Random(seed)
    names = [f"{kind}:{i}" for kind, n in (("chan", 4), ("peer", 9), ("tool", 12), ("topic", 60)) for i in range(n)]
    with raw(path) as connection:
        for scene_id in range(1, count + 1):
            visits = chance.randint(1, 9)
            connection.execute(
                "INSERT INTO scenes(id, key, strength, visits, origin, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, 'emergent', ?, ?)",
                (scene_id, f"auto:{scene_id}", chance.randint(1, 3), visits, TIME, TIME),
            )
            connection.executemany(
                "INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, 1.0, ?, 1)",
                [(scene_id, name, chance.choice([0.1, 0.4, 1.0]) * visits) for name in chance.sample(names, 5)],
            )
    for _ in range(40):
        chosen = chance.sample(names, chance.randint(1, 5))
        yield Situation([Feature(*name.split(":"), weight=chance.choice([None, 0.2])) for name in chosen])


@pytest.mark.parametrize(("seed", "ahead"), [(1, False), (2, True)])
@pytest.mark.parametrize("limit", [1, 32, 10**6])
@pytest.mark.parametrize("settled", [True, False])
def test_bounds_pass_over_no_scene_of_a_crowd(memory, path, seed, ahead, limit, settled):
    with asking(limit, ahead=ahead):
        asked = [*crowd(path, 400, seed)]
        if settled:
            settle(path)
        answered = [check(memory, situation) for situation in asked]

    assert max(answered) > 10
    assert min(answered) < 3


# ---- what a turn reads


@contextlib.contextmanager
def scored():
    """Yield a list that grows by one for each scene that is read and scored."""
    with pytest.MonkeyPatch.context() as patch:
        calls = []
        score = matching._score
        patch.setattr(matching, "_score", lambda *each: calls.append(each) or score(*each))
        yield calls


def scored_to_enter(memory, situation):
    with scored() as calls:
        memory.enter_scene(situation)
    return len(calls)


def test_a_person_on_a_crowded_channel_is_found_by_name_alone(memory):
    for n in range(300):
        for _ in range(2):
            memory.enter_scene(Situation.of(chan="x", peer=f"p{n}", topics=["a", "b"]))

    assert scored_to_enter(memory, Situation.of(chan="x", peer="p7", topics=["a", "b"])) == 1
    assert scored_to_enter(memory, Situation.of(chan="x", topics=["a", "b"])) == 0


def test_a_channel_among_many_on_one_subject_is_found_by_channel_alone(memory):
    for n in range(300):
        for _ in range(2):
            memory.enter_scene(Situation.of(chan=f"room{n}", tool="t", topics=["a", "b"]))

    assert scored_to_enter(memory, Situation.of(chan="room7", tool="t", topics=["a", "b"])) == 1


@contextlib.contextmanager
def stepping(memory):
    """Yield a transaction and a list that grows by one for each step of a statement on it."""
    with memory._store.read() as tx:
        steps = []
        tx.set_progress_handler(lambda: steps.append(1), 1)
        yield tx, steps
        tx.set_progress_handler(None, 1)


@pytest.mark.parametrize("named", [{"tool": "t"}, {"tool": "t", "topics": ["a", "b"]}])
def test_a_tool_alone_joins_without_reading_about_the_channels_where_it_is_used(memory, named):
    for n in range(150):
        for _ in range(2):
            memory.enter_scene(Situation.of(chan=f"room{n}", tool="t", topics=[f"a{n}", f"b{n}"]))

    assert scored_to_enter(memory, Situation.of(**named)) == 0
    with scored() as calls:
        assert len(memory.match_scenes(Situation.of(**named))) == len(calls) == 150  # each of them answers


@pytest.mark.sqlite
@pytest.mark.parametrize("find", [matching.best, matching.answering])
def test_topics_alone_take_no_step_more_among_more_channels(memory, find):
    taken = []
    for start in (0, 40, 80):
        for n in range(start, start + 40):
            for _ in range(2):
                memory.enter_scene(Situation.of(chan=f"room{n}", tool="t", topics=["a", "b"]))
        with stepping(memory) as (tx, steps):
            assert not find(tx, Situation.of(topics=["a", "b"]))
        taken.append(len(steps))

    assert taken[0] == taken[1] == taken[2]


def test_one_tool_of_many_on_a_channel_without_people_joins_without_reading_about_the_others(memory):
    for n in range(100):
        for _ in range(2):
            memory.enter_scene(Situation.of(chan="x", tool=f"t{n}", topics=["a", "b"]))

    assert scored_to_enter(memory, Situation.of(chan="x", tool="t7", topics=["a", "c"])) == 1
    check(memory, Situation.of(chan="x", tool="t7", topics=["a", "c"]))


def test_a_person_in_many_channels_is_found_in_one_without_reading_about_the_others(memory):
    for n in range(100):
        for _ in range(2):
            memory.enter_scene(Situation.of(chan=f"talk{n}", peer="boss", topics=["a", "b"]))

    assert scored_to_enter(memory, Situation.of(chan="talk7", peer="boss", topics=["a", "b"])) == 1
    assert scored_to_enter(memory, Situation.of(chan="new", peer="boss", topics=["a", "b"])) == 0


def test_one_person_in_much_company_joins_without_reading_about_all_of_it(memory):
    for n in range(100):
        for _ in range(2):
            memory.enter_scene(Situation.of(chan="x", peer=["boss", f"p{n}"]))
    for _ in range(2):
        memory.enter_scene(Situation.of(chan="x", peer="boss"))

    assert scored_to_enter(memory, Situation.of(chan="x", peer="boss")) == 1
    assert scored_to_enter(memory, Situation.of(chan="x", peer=["boss", "p7"])) == 1


def test_a_member_of_a_large_group_recalls_without_reading_about_all_others(memory):
    for n in range(100):
        for _ in range(2):
            memory.enter_scene(Situation.of(peer=f"p{n}", peer_group="g"))
    for _ in range(2):
        memory.enter_scene(Situation.of(peer_group="g"))

    with scored() as calls:
        memory.recall_by_situation(Situation.of(peer="p7", peer_group="g"))
    assert len(calls) == 2


@pytest.mark.sqlite
@pytest.mark.parametrize("named", [{"chan": "x", "peer": "a"}, {"chan": "x"}, {"peer": ["a", "b"]}])
def test_a_look_up_goes_by_an_index(memory, named):
    for _ in range(3):
        memory.enter_scene(Situation.of(**named, topics="a"))
    asked = []
    with memory._store.write() as tx:
        tx.set_trace_callback(asked.append)
        matching.best(tx, Situation.of(**named, topics="a"))
        tx.set_trace_callback(None)
        plans = [line for query in asked for *_, line in tx.execute(f"EXPLAIN QUERY PLAN {query}")]

    assert plans
    assert not [line for line in plans if line.startswith("SCAN")]


# ---- whatever happened before


@pytest.mark.sqlite
def test_a_visit_that_cannot_be_written_leaves_all_as_it_was(memory, path):
    here = Situation.of(chan="x", topics="a")
    for _ in range(3):
        memory.enter_scene(here)
    with raw(path) as connection:
        connection.execute("CREATE TRIGGER fail BEFORE INSERT ON scene_features BEGIN SELECT RAISE(ABORT, 'full'); END")
    before = memory.match_scenes(here)

    for topic in ("b", "c"):
        with pytest.raises(OSError, match="full"):
            memory.enter_scene(Situation.of(chan="x", topics=topic))
    assert memory.match_scenes(here) == before

    with raw(path) as connection:
        connection.execute("DROP TRIGGER fail")
    memory.enter_scene(here)
    check(memory, here)
    check(memory, Situation.of(chan="x", topics=["b", "c"]))


def test_nobody_joins_a_scene_that_another_program_made_about_somebody_else_too(memory, path):
    here = Situation.of(peer="a")
    for _ in range(2):
        memory.enter_scene(here)
    with raw(path) as connection:
        connection.execute(
            "INSERT INTO scene_features(scene_id, feature, weight, mass, touched)"
            " SELECT id, 'peer:b', 1, 1, 1 FROM scenes WHERE key = 'auto:peer:a'"
        )

    check(memory, here)
    assert memory.enter_scene(here).key == ""


def test_masses_that_another_program_changed_are_found_and_mended(memory, path):
    for _ in range(2):
        memory.enter_scene(Situation.of(chan="x", tool="t"))
    with raw(path) as connection:
        connection.execute("UPDATE scene_features SET mass = mass / 10 WHERE feature = 'chan:x'")

    assert len(wrong_scenes(path)) == 1
    memory.repair()
    assert wrong_scenes(path) == []
    assert check(memory, Situation.of(tool="t")) == 1


def test_threads_enter_scenes_together(memory):
    situations = [Situation.of(chan=chan, topics=topic) for chan in "xyz" for topic in "abc"]
    failures = []

    def work(start):
        try:
            for number in range(40):
                situation = situations[(start + number) % len(situations)]
                memory.enter_scene(situation)
                memory.match_scenes(situation)
        except BaseException as error:  # noqa: BLE001 (told to the main thread)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert sum(scene.visits for scene in memory.scenes()) == 4 * 40 - 3  # the first visit of each grew no scene
    for situation in situations:
        check(memory, situation)


def test_a_memory_without_a_file_matches_too(clock):
    with Memory.open(":memory:", clock=clock) as memory:
        for chan in "xxyyx":
            memory.enter_scene(Situation.of(chan=chan))

        assert check(memory, Situation.of(chan="x")) == 1
        assert check(memory, Situation.of(chan="z")) == 0
        assert check(memory, Situation()) == 0


@pytest.mark.sqlite
def test_a_file_of_before_is_posted_when_it_is_opened(path):
    with raw(path) as connection:
        schema._migrations().apply(Database(connection), stop_before="m006_speed")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 5")
    import_scene(path, "auto:peer:a_chan:x", {"peer:a": 2.4, "chan:x": 2.0, "topic:p": 0.4}, visits=2)
    import_scene(path, "auto:chan:x", {"chan:x": 2.0, "topic:p": 0.4}, visits=2)
    import_scene(path, "auto:topic:p", {"topic:p": 0.8}, visits=2)
    import_scene(path, "chan:x/peer:a", {"chan:x": 0.0, "peer:a": 0.0}, visits=0, origin="declared")

    with Memory.open(path) as memory:
        assert memory.enter_scene(Situation.of(chan="x", peer="a")).strength == 2
        check(memory, Situation.of(chan="x", topics="p"))

    posted = "SELECT s.key, f.feature, f.posted FROM scene_features f JOIN scenes s ON s.id = f.scene_id"
    with raw(path) as connection:
        rows = {(key, feature): value for key, feature, value in connection.execute(posted) if value is not None}
    assert rows == {
        ("auto:peer:a_chan:x", "peer:a"): postings.of_party(1, channels=True),
        ("auto:peer:a_chan:x", "chan:x"): postings.of_channel(1),
        ("auto:chan:x", "chan:x"): postings.FOR_ALL,
        ("auto:chan:x", "topic:p"): postings.beside_channel(1.0),
        ("auto:topic:p", "topic:p"): postings.FOR_ALL,
    }
