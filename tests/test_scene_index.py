"""The scene index gives what a plain scan over the file gives, however the file came to be what it is.

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

from graphmem import Config, Feature, Memory, Situation
from graphmem.config import DEFAULT
from graphmem.core.situations import may_join, recall_ground, score
from graphmem.graph import scene_index

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
    """Compare index and scan on one state of the file; return how many scenes answered."""
    with memory._store.read() as tx:
        index = memory._read_index(tx)
        best = index.best(situation)
        answering = index.answering(situation)

        assert (best and (-best.score, -best.strength, best.scene_id)) == plain_best(tx, situation)
        found = [(-one.score, -one.strength, one.scene_id, one.ground) for one in answering]
        assert found == plain_answering(tx, situation)
        for one in answering:
            assert (type(one.scene_id), type(one.score), type(one.strength)) == (int, float, int)
    return len(found)


# ---- writing to the file behind the index's back


@contextlib.contextmanager
def raw(path):
    """A write of another program that keeps the change log: yields a connection and the set of changed scenes."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        changed = set()
        yield connection, changed
        (revision,) = connection.execute(
            "UPDATE counters SET value = value + 1 WHERE name = 'scene_revision' RETURNING value"
        ).fetchone()
        connection.executemany("INSERT INTO scene_changes VALUES (?, ?)", [(revision, each) for each in changed])


def import_scene(path, key, masses, *, visits, strength=1, origin="emergent"):
    with raw(path) as (connection, changed):
        (scene_id,) = connection.execute(
            "INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
            " RETURNING id",
            (key, strength, visits, origin, TIME, TIME),
        ).fetchone()
        connection.executemany(
            "INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, 1.0, ?, ?)",
            [(scene_id, feature, mass, visits) for feature, mass in masses.items()],
        )
        changed.add(scene_id)


def delete_scene(path, place):
    """Delete the scene at a place among all, if there is one."""
    with raw(path) as (connection, changed):
        ids = [scene_id for (scene_id,) in connection.execute("SELECT id FROM scenes ORDER BY id")]
        if ids:
            scene_id = ids[place % len(ids)]
            for table in ("scene_features", "scene_refs", "scene_aliases"):
                connection.execute(f"DELETE FROM {table} WHERE scene_id = ?", (scene_id,))
            connection.execute("DELETE FROM scenes WHERE id = ?", (scene_id,))
            changed.add(scene_id)


def trim_log(path):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM scene_changes")
        connection.execute(
            "UPDATE counters SET value = (SELECT value FROM counters WHERE name = 'scene_revision')"
            " WHERE name = 'scene_revision_trimmed'"
        )


@contextlib.contextmanager
def counted_loads():
    """Yield a list that grows by one whenever an index is emptied, to be loaded as a whole."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        clear = scene_index.SceneIndex._clear

        def counted(self):
            calls.append(self)
            clear(self)

        patch.setattr(scene_index.SceneIndex, "_clear", counted)
        yield calls


@contextlib.contextmanager
def tuned(**limits):
    """Set the limits at which the index goes another way; none of them may change a result."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(scene_index, name, value)
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


TUNINGS = st.sampled_from(
    [
        {},
        {"_LEAST_TO_PACK": 0},
        {"_LEAST_TO_PACK": 3, "_FEW": 0, "_BOUND_FROM": 0},
        {"_FEW": 0},
        {"_FEW": 1, "_BOUND_FROM": 2},
    ]
)


@settings(max_examples=100)
@given(st.sampled_from(CONFIGS), TUNINGS, st.lists(situations, min_size=1, max_size=25))
# A channel vetoes whatever its kind weighs.
@example(SOFT_CHANNELS, {}, [named("chan:x", "topic:p")] * 2 + [named("chan:y", "topic:p")])
@example(SOFT_CHANNELS, {"_FEW": 0}, [named("chan:x", "topic:p")] * 2 + [named("chan:y", "topic:p")])
# A visit may bring the first channel into a scene; from then on others veto.
@example(DEFAULT, {}, [named("peer:a", "tool:t", *channel) for channel in ([], [], ["chan:x"], ["chan:y"])])
def test_the_index_agrees_with_a_scan_before_every_visit(config, tuning, stream):
    with tuned(**tuning), fresh_file() as path, Memory.open(path, config=config) as memory:
        for features in stream:
            situation = Situation(features, config=config)
            check(memory, situation)
            memory.enter_scene(situation)
        for features in stream:
            check(memory, Situation(features, config=config))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), situations),
        st.tuples(st.just("enter"), situations),
        st.tuples(st.just("enter in another process"), situations),
        st.tuples(st.just("import"), imports),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("trim"), st.none()),
        st.tuples(st.just("declare"), st.integers(0, 9)),
        st.tuples(st.just("look"), situations),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=130)
@given(st.sampled_from(CONFIGS), TUNINGS, steps, st.lists(situations, min_size=3, max_size=3))
# A declaration strengthens a scene, and strength breaks ties.
@example(DEFAULT, {}, [("enter", named("chan:x"))] * 3 + [("declare", 0)], [named("chan:x")])
def test_the_index_agrees_with_a_scan_whoever_wrote(config, tuning, stream, probes):
    """Imports with odd masses, deletions, declarations, another process, a trimmed log."""
    with (
        tuned(**tuning),
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
            elif step == "trim":
                trim_log(path)
            elif step == "declare":
                for scene in other.scenes()[value : value + 1]:
                    other.declare_scene(scene.key)
            else:
                check(memory, Situation(value, config=config))
        for features in probes:
            check(memory, Situation(features, config=config))
            check(other, Situation(features, config=config))


def crowd(path, count, seed):
    """Import many scenes over a wider alphabet; return situations to ask for."""
    chance = random.Random(seed)
    names = [f"{kind}:{i}" for kind, n in (("chan", 4), ("peer", 9), ("tool", 12), ("topic", 60)) for i in range(n)]
    with raw(path) as (connection, changed):
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
            changed.add(scene_id)
    for _ in range(40):
        chosen = chance.sample(names, chance.randint(1, 5))
        yield Situation([Feature(*name.split(":"), weight=chance.choice([None, 0.2])) for name in chosen])


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("tuning", [{"_LEAST_TO_PACK": 0}, {"_LEAST_TO_PACK": 10**9}, {"_FEW": 10**9}])
def test_bounds_pass_over_no_scene_of_a_crowd(memory, path, seed, tuning):
    with tuned(**tuning):
        answered = [check(memory, situation) for situation in crowd(path, 800, seed)]

    assert max(answered) > 20
    assert min(answered) < 5


# ---- keeping current


def test_a_living_index_follows_the_log_and_is_never_loaded_again(path, clock):
    situations = [Situation.of(chan=chan, tool=tool) for chan in "xyz" for tool in "tuv"]
    with (
        counted_loads() as loads,
        Memory.open(path, clock=clock) as memory,
        Memory.open(path, clock=clock) as other,
    ):
        for each in (memory, other):
            check(each, situations[0])
        loads.clear()

        for round_ in range(4):
            for number, situation in enumerate(situations):
                (memory, other)[(number + round_) % 2].enter_scene(situation)
                check((memory, other)[number % 2], situation)
        import_scene(path, "auto:imported", {"chan:x": 1.0}, visits=1)
        delete_scene(path, 0)
        memory.declare_scene("chan:x")
        other.dedupe_scenes()
        for situation in situations:
            assert check(memory, situation) == check(other, situation)

    assert loads == []


def test_only_an_index_older_than_the_trimmed_log_is_loaded_again_and_once(path, clock):
    here = Situation.of(chan="x")
    with (
        Memory.open(path, clock=clock) as memory,
        Memory.open(path, clock=clock) as other,
    ):
        for each in (memory, other):
            each.match_scenes(here)
        for chan in "xxyy":
            memory.enter_scene(Situation.of(chan=chan))
        memory.match_scenes(here)
        trim_log(path)

        with counted_loads() as loads:
            for _ in range(3):
                assert check(memory, here) == check(other, here) == 1
            memory.enter_scene(here)
            other.enter_scene(here)
            assert check(memory, here) == check(other, here) == 1

        assert loads == [other._index]


def test_the_log_is_trimmed_as_it_grows_and_a_late_reader_still_agrees(path, clock):
    """Trimming keeps the last changes of some thousand revisions; the counter never goes back."""
    here = Situation.of(chan="x")
    with Memory.open(path, clock=clock) as memory, Memory.open(path, clock=clock) as late:
        for _ in range(3):
            memory.enter_scene(here)
        check(late, here)
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE counters SET value = 20998 WHERE name = 'scene_revision'")
        for chan in ("x", "y", "y"):
            memory.enter_scene(Situation.of(chan=chan))

        with contextlib.closing(sqlite3.connect(path)) as connection:
            (trimmed,) = connection.execute(
                "SELECT value FROM counters WHERE name = 'scene_revision_trimmed'"
            ).fetchone()
            (kept,) = connection.execute("SELECT MIN(revision) FROM scene_changes").fetchone()
        assert trimmed > 0
        assert kept > trimmed
        check(late, here)
        check(late, Situation.of(chan="y"))
        check(memory, Situation.of(chan="y"))


def test_packing_keeps_every_scene_and_forgets_features_of_none(path, clock):
    words = [f"word{i}" for i in range(400)]
    with (
        tuned(_LEAST_TO_PACK=0),
        Memory.open(path, clock=clock) as memory,
    ):
        for i in range(0, 400, 2):
            memory.enter_scene(Situation.of(chan="x", topics=words[i : i + 2]))
            memory.enter_scene(Situation.of(chan="y", peer="a", topics=words[i : i + 2]))

        index = memory._index
        for situation in (Situation.of(chan="x"), Situation.of(chan="y", peer="a"), Situation.of(topics=words[-2:])):
            check(memory, situation)

        assert len(index) == 2
        assert len(index._names) < 2 * 64 + 40


def test_a_rolled_back_visit_leaves_the_index_as_it_was(memory, path):
    here = Situation.of(chan="x", topics="a")
    for _ in range(3):
        memory.enter_scene(here)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TRIGGER fail BEFORE INSERT ON scene_changes BEGIN SELECT RAISE(ABORT, 'full'); END")

    for topic in ("b", "c"):
        with pytest.raises(OSError, match="full"):
            memory.enter_scene(Situation.of(chan="x", topics=topic))
        check(memory, here)

    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER fail")
    memory.enter_scene(here)
    check(memory, here)
    check(memory, Situation.of(chan="x", topics=["b", "c"]))


def test_threads_share_one_index(memory):
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


def test_a_memory_without_a_file_has_an_index(clock):
    with Memory.open(":memory:", clock=clock) as memory:
        for chan in "xxyyx":
            memory.enter_scene(Situation.of(chan=chan))

        assert check(memory, Situation.of(chan="x")) == 1
        assert check(memory, Situation.of(chan="z")) == 0
        assert check(memory, Situation()) == 0
