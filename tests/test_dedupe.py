"""Twin scenes: what a dedupe plans and does, and what an undo puts back and keeps.

Twins are planted as the reference engine left them: rows under keys that are not in canonical form. Ids in comments are
those of the acceptance list in the specification, read as section 5 of the design rules them.
"""

import dataclasses

import pytest
from support import dump, orphans, planting, refuse, relent, sql

from graphmem import Config, Conflict, InvalidInput, Memory, NotFound, Situation, StoreFailed, Triple, normalize_key
from graphmem.store import postings

TIME = "2026-08-01T00:00:00.000Z"
SCENE_TABLES = ("scenes", "scene_aliases", "scene_features", "scene_refs")


def scene_rows(path):
    """All rows of the tables that a dedupe changes."""
    return {table: sorted(sql(path, f"SELECT * FROM {table}")) for table in SCENE_TABLES}


def plant(path, key, *, strength=1, visits=1, origin="emergent", features=(), refs=(), at=TIME):
    """Write a scene as another program would; features are (key, weight, mass), refs (entity id, weight, clock)."""
    with planting(path) as connection:
        (scene_id,) = connection.execute(
            "INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
            " RETURNING id",
            (key, strength, visits, origin, at, at),
        ).fetchone()
        connection.executemany(
            "INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, ?, ?, ?)",
            [(scene_id, feature, weight, mass, visits) for feature, weight, mass in features],
        )
        connection.executemany(
            "INSERT INTO entities(id, name, key, created_at, updated_at) VALUES (?1, ?2, ?2, ?3, ?3)"
            " ON CONFLICT DO NOTHING",
            [(ref_id, f"planted {ref_id}", TIME) for ref_id, _, _ in refs],
        )
        connection.executemany(
            "INSERT INTO scene_refs(scene_id, kind, ref_id, weight, decayed_at, created_at)"
            " VALUES (?, 'entity', ?, ?, ?, ?)",
            [(scene_id, ref_id, weight, clock, TIME) for ref_id, weight, clock in refs],
        )
        postings.settle(connection, [scene_id])
    return scene_id


def scenes(path):
    return sql(path, "SELECT id, key, strength, visits, origin FROM scenes ORDER BY id")


def features(path, scene_id):
    rows = sql(path, "SELECT feature, weight, mass FROM scene_features WHERE scene_id = ?", scene_id)
    return {feature: (weight, mass) for feature, weight, mass in rows}


def refs(path, scene_id):
    rows = sql(path, "SELECT ref_id, weight, decayed_at FROM scene_refs WHERE scene_id = ?", scene_id)
    return {ref_id: (weight, clock) for ref_id, weight, clock in rows}


def clock_of(day):
    return f"2026-08-{day:02}T00:00:00.000Z"


def plain(report):
    """A report without what tells a plan from the deed."""
    return dataclasses.replace(report, applied=None, operation=None)


QQ = Situation.of(chan="qq", part="morning")
TWINS = ("auto:chan:qq+part:morning", "auto:chan:qq_part:morning")


@pytest.fixture
def twins(path, memory):
    """The chief twins of the reference: 270 visits and their features here, the refs of the writers there."""
    first = plant(
        path,
        TWINS[0],
        strength=270,
        visits=270,
        features=[("chan:qq", 1.0, 270.0), ("part:morning", 0.2, 50.0), ("topic:a", 0.1, 3.0)],
        refs=[(1, 0.5, clock_of(3))],
    )
    second = plant(
        path,
        TWINS[1],
        strength=1,
        visits=1,
        features=[("chan:qq", 0.7, 0.7), ("topic:b", 0.4, 0.4), ("topic:a", 0.3, 0.25)],
        refs=[(1, 0.9, clock_of(4)), (2, 0.4, clock_of(2)), (3, 1.0, clock_of(9))],
    )
    return first, second


# ---- dedupe


def test_twins_become_one_row_under_the_normalised_key(memory, path, twins):  # U1
    report = memory.dedupe_scenes()

    first, second = twins
    assert scenes(path) == [(first, TWINS[1], 271, 271, "emergent")]
    assert features(path, first) == {
        "chan:qq": (1.0, pytest.approx(270.7)),
        "part:morning": (0.2, 50.0),
        "topic:a": (0.3, pytest.approx(3.25)),
        "topic:b": (0.4, 0.4),
    }
    assert {ref: weight for ref, (weight, _) in refs(path, first).items()} == {1: 0.9, 2: 0.4, 3: 1.0}
    assert features(path, second) == refs(path, second) == {}
    assert (report.merged, report.scenes_before, report.scenes_after) == (1, 2, 1)
    assert report.applied


def test_the_report_tells_each_group(memory, twins):
    report = memory.dedupe_scenes(dry_run=True)

    (group,) = report.groups
    assert (group.key, group.origin, group.strength) == (TWINS[1], "emergent", 271)
    assert (group.features, group.refs, group.refs_moved, group.refs_folded) == (4, 3, 2, 1)
    assert [(twin.id, twin.key, twin.strength, twin.features, twin.refs) for twin in group.members] == [
        (twins[0], TWINS[0], 270, 3, 1),
        (twins[1], TWINS[1], 1, 3, 3),
    ]


def test_scenes_that_are_merely_alike_are_left_alone(memory, path):  # U2, DUP-04
    for key in ("auto:chan:qq", "auto:chan:qq.2", "chan:qq", "chan:webui", "chan:群1", "chan:群11", "auto:v1.2"):
        plant(path, key, features=[("chan:qq", 1.0, 1.0)])
    before = dump(path)

    report = memory.dedupe_scenes()

    assert (report.groups, report.rewritten, report.merged, report.operation) == ((), (), 0, None)
    assert scenes(path) == [row for row in scenes(path) if row[1] == normalize_key(row[1])]
    assert [line for line in dump(path) if "active_days" not in line] == [
        line for line in before if "active_days" not in line
    ]


def test_a_second_run_does_nothing(memory, path, twins):  # U3
    memory.dedupe_scenes()
    rows = scene_rows(path)

    again = memory.dedupe_scenes()

    assert (again.merged, again.groups, again.rewritten, again.operation) == (0, (), (), None)
    assert scene_rows(path) == rows
    assert len(memory.operations()) == 1


@pytest.mark.parametrize(
    ("keys", "origins", "origin"),
    [
        (("chan:QQ", "chan:qq"), ("emergent", "declared"), "declared"),  # U4, U6
        (("chan:QQ", "chan:qq"), ("declared", "emergent"), "declared"),
        (("chan:QQ", "chan:qq"), ("emergent", "emergent"), "emergent"),
        (("auto:x", "auto:X"), ("declared", "emergent"), "emergent"),  # U6
        (("auto:x", "auto:X"), ("declared", "declared"), "emergent"),
    ],
)
def test_declared_wins_as_origin_unless_the_key_is_automatic(memory, path, keys, origins, origin):
    for key, each in zip(keys, origins, strict=True):
        plant(path, key, origin=each)

    (group,) = memory.dedupe_scenes(dry_run=True).groups
    memory.dedupe_scenes()

    assert group.origin == origin
    assert scenes(path) == [(1, keys[0].lower(), 2, 2, origin)]


def test_a_lone_key_is_rewritten(memory, path):  # U5
    plant(path, " Chan:QQ//Peer:Boss ", strength=3, refs=[(1, 0.5, clock_of(1))])
    planned = memory.dedupe_scenes(dry_run=True)

    report = memory.dedupe_scenes()

    assert report.rewritten == planned.rewritten == ((" Chan:QQ//Peer:Boss ", "chan:qq/peer:boss"),)
    assert (report.merged, report.groups, report.scenes_after) == (0, (), 1)
    assert scenes(path) == [(1, "chan:qq/peer:boss", 3, 1, "emergent")]
    assert refs(path, 1) == {1: (0.5, clock_of(1))}
    assert report.operation is not None


def test_refs_keep_their_decay_clocks(memory, path, twins):  # U6
    memory.dedupe_scenes()

    assert refs(path, twins[0]) == {1: (0.9, clock_of(4)), 2: (0.4, clock_of(2)), 3: (1.0, clock_of(9))}
    assert sql(path, "SELECT DISTINCT created_at FROM scene_refs") == [(TIME,)]


def test_a_merge_makes_no_scene_younger_than_it_was(memory, path):
    for day, key in ((5, "chan:QQ"), (2, "chan:qq"), (9, "Chan:qq")):
        plant(path, key, at=clock_of(day))

    memory.dedupe_scenes()

    assert sql(path, "SELECT created_at, updated_at FROM scenes") == [(clock_of(2), clock_of(9))]


def test_dry_and_real_run_tell_the_same_of_three_copies_and_a_near_one(memory, path):  # DUP-08
    for number, key in enumerate(("chan:A b", "chan:a_b", "chan:a+b", "chan:ab"), 1):
        plant(
            path,
            key,
            strength=number,
            features=[("chan:a_b", 1.0, 1.0), (f"topic:{number}", 0.4, 0.4)],
            refs=[(1, 0.5, TIME), (number, 0.3, TIME)][: 1 if number == 1 else 2],
        )
    plant(path, "LONE")
    before = dump(path)

    planned = memory.dedupe_scenes(dry_run=True)

    assert dump(path) == before
    done = memory.dedupe_scenes()
    assert plain(planned) == plain(done)
    assert (planned.applied, planned.operation, done.applied) == (False, None, True)
    assert (done.merged, done.scenes_before, done.scenes_after) == (2, 5, 3)
    (group,) = done.groups
    assert (group.strength, group.features, group.refs, group.refs_moved, group.refs_folded) == (6, 4, 3, 2, 2)
    assert [row[1:3] for row in scenes(path)] == [("chan:a_b", 6), ("chan:ab", 4), ("lone", 1)]


@pytest.mark.parametrize("spelling", [*TWINS, "AUTO:chan:qq part:morning/"])
def test_every_old_spelling_leads_to_the_survivor(memory, path, twins, spelling):
    memory.dedupe_scenes()

    memory.commit([Triple("boss", "wants", "plain text")], scenes=spelling)

    recollection = memory.recall_by_scene(spelling, exact=True)
    assert recollection.scenes == (TWINS[1],)
    assert [relation.object for relation in recollection.relations] == ["plain text"]
    assert len(scenes(path)) == 1


def test_old_keys_become_aliases_and_older_aliases_follow(memory, path, twins):
    sql(path, "INSERT INTO scene_aliases VALUES ('chan:ancient', ?), ('chan:of-the-first', ?)", twins[1], twins[0])

    memory.dedupe_scenes()

    assert sql(path, "SELECT key, scene_id FROM scene_aliases ORDER BY key") == [
        (TWINS[0], twins[0]),
        ("chan:ancient", twins[0]),
        ("chan:of-the-first", twins[0]),
    ]
    assert memory.recall_by_scene("chan:ancient").scenes == (TWINS[1],)


@pytest.mark.parametrize(
    "long_key",
    ["a" * 95 + "_b", "chan:" + "排" * 31, "auto:chan:qq_topic:" + "x" * 90, "chan:" + "é " * 60],
)
def test_long_keys_are_rewritten_and_merged_with_their_cut_form(memory, path, long_key):  # K6
    plant(path, long_key, strength=2)
    plant(path, normalize_key(long_key), strength=3)
    plant(path, long_key + "z", strength=4)

    report = memory.dedupe_scenes()

    assert [(group.key, group.strength) for group in report.groups] == [(normalize_key(long_key), 5)]
    assert report.rewritten == ((long_key + "z", normalize_key(long_key + "z")),)
    assert [row[1] for row in scenes(path)] == [normalize_key(long_key), normalize_key(long_key + "z")]
    assert all(len(row[1].encode()) <= 96 for row in scenes(path))


@pytest.mark.parametrize("key", ["", "///", " \u200b "])
def test_a_key_of_which_nothing_is_left_is_named_and_left_alone(memory, path, key):
    plant(path, key)
    plant(path, "chan:QQ")

    report = memory.dedupe_scenes()

    assert len(report.remarks) == 1
    assert "scene 1" in report.remarks[0]
    assert [row[1] for row in scenes(path)] == [key, "chan:qq"]


def test_a_key_that_cannot_be_normalised_is_named_and_left_alone(memory, path):
    key = "chan:" + "c" * 90 + "/peer:" + "p" * 20
    with pytest.raises(InvalidInput):
        normalize_key(key)
    plant(path, key)
    plant(path, key.upper())

    report = memory.dedupe_scenes()

    assert (report.merged, len(report.remarks)) == (0, 2)
    assert len(scenes(path)) == 2


def test_a_merged_scene_keeps_to_its_number_of_features(path, clock):
    config = Config(scene_features=8, scene_identity_features=2, scene_recent_features=2)
    with Memory.open(path, config=config, clock=clock) as memory:
        for key, words in (("chan:QQ", "abcdef"), ("chan:qq", "defghi")):
            plant(path, key, features=[("chan:qq", 1.0, 1.0), *((f"topic:{word}", 0.1, 0.1) for word in words)])

        memory.dedupe_scenes()

        assert len(features(path, 1)) == 8
        assert {"chan:qq", "topic:d", "topic:e", "topic:f"} <= features(path, 1).keys()


def test_a_dedupe_that_fails_leaves_everything(memory, path, twins):
    before = dump(path)
    refuse(path, "INSERT ON operation_rows")

    with pytest.raises(StoreFailed):
        memory.dedupe_scenes()

    relent(path, "INSERT ON operation_rows")
    assert dump(path) == before


# ---- what a turn sees


def test_a_turn_sees_a_dedupe_and_its_undo(memory, path, clock):
    """In the memory that did it and in another one on the same file."""
    plant(path, TWINS[0], strength=4, visits=4, features=[("chan:qq", 1.0, 4.0), ("tool:t", 0.8, 3.2)])
    plant(path, TWINS[1], strength=1, visits=1, features=[("chan:qq", 1.0, 1.0)])
    here = Situation.of(chan="qq")

    with Memory.open(path, clock=clock) as other:

        def seen():
            found = [
                [(match.key, match.strength, round(match.score, 6)) for match in each.match_scenes(here)]
                for each in (memory, other)
            ]
            assert found[0] == found[1]
            return found[0]

        apart = [(TWINS[1], 1, 1.0), (TWINS[0], 4, round(1 / 1.8, 6))]
        assert seen() == apart
        operation = other.dedupe_scenes().operation
        assert seen() == [(TWINS[1], 5, round(1 / 1.64, 6))]
        assert memory.enter_scene(here).strength == 6
        memory.undo(operation)
        assert [row[0] for row in seen()] == [row[0] for row in apart]
        assert other.enter_scene(here).key == TWINS[1]


# ---- undo


def test_undo_restores_exactly_the_rows_of_all_scene_tables(memory, path, twins):
    plant(path, "LONE", features=[("chan:lone", 1.0, 0.1 + 0.2)], refs=[(1, 1 / 3, clock_of(4))])
    plant(path, "auto:Chan:qq+part:morning", strength=7, visits=3, features=[("chan:qq", 1.0, 1 / 7)])
    sql(path, "INSERT INTO scene_aliases VALUES ('chan:ancient', ?)", twins[1])
    before = scene_rows(path)
    done = memory.dedupe_scenes()
    assert scene_rows(path) != before

    report = memory.undo(done.operation)

    assert scene_rows(path) == before
    assert (report.operation, report.kind, report.applied) == (done.operation, "dedupe", True)
    assert memory.operations()[0].undone_at is not None


def test_the_journal_tells_numbers_and_when(memory, clock, twins):
    clock.advance(hours=2)

    report = memory.dedupe_scenes()

    (operation,) = memory.operations()
    assert (operation.id, operation.kind, operation.at) == (report.operation, "dedupe", "2026-09-07T10:00:00.000Z")
    assert operation.undone_at is None
    assert operation.summary["merged"] == 1
    assert memory.operations(limit=0) == ()


def test_undo_keeps_what_was_written_since(memory, path, clock, twins):
    first, second = twins
    operation = memory.dedupe_scenes().operation
    clock.advance(days=1)
    for topic in ("a", "b", "new"):  # 3 visits
        visit = memory.enter_scene(Situation.of(chan="qq", part="morning", topics=topic))
        assert visit.key == TWINS[1]
    memory.commit([Triple("planted 1", "wants", "planted 2")], scenes=TWINS[0])  # entities 1 and 2, relation 1

    memory.undo(operation)

    assert scenes(path) == [(first, TWINS[0], 273, 273, "emergent"), (second, TWINS[1], 1, 1, "emergent")]
    assert features(path, first) == {
        "chan:qq": (1.0, pytest.approx(273.0)),
        "part:morning": (0.2, pytest.approx(50.6)),
        "topic:a": (0.4, pytest.approx(3.4)),
        "topic:b": (0.4, pytest.approx(0.4)),
        "topic:new": (0.4, pytest.approx(0.4)),
    }
    assert features(path, second) == {"chan:qq": (0.7, 0.7), "topic:b": (0.4, 0.4), "topic:a": (0.3, 0.25)}
    kept = {(kind, ref) for kind, ref in sql(path, "SELECT kind, ref_id FROM scene_refs")}
    assert kept == {("entity", 1), ("entity", 2), ("entity", 3), ("relation", 1)}
    assert sql(path, "SELECT scene_id FROM scene_refs WHERE kind = 'relation'") == [(first,)]
    assert refs(path, first)[1] == (1.0, "2026-09-08T08:00:00.000Z")  # said again since: weight and clock stay
    assert memory.recall_by_scene(TWINS[1], exact=True).scenes == (TWINS[1],)


def test_a_scene_strengthened_since_keeps_that(memory, path):
    plant(path, "chan:QQ", strength=2, visits=0, origin="declared")
    plant(path, "chan:qq", strength=3, visits=0, origin="declared")
    operation = memory.dedupe_scenes().operation

    assert memory.declare_scene("chan:qq").strength == 6
    memory.undo(operation)

    assert [row[1:3] for row in scenes(path)] == [("chan:QQ", 3), ("chan:qq", 3)]


@pytest.mark.parametrize("topics", ["a", "e", "f", "i", "new", "fghi", "klmnopq", "aklmnopq"])
def test_undo_works_after_turns_that_touched_what_the_merge_let_go(path, clock, topics):
    """A merge drops features beyond the limit, and so does a later turn; neither makes the merge irreversible."""
    config = Config(scene_features=6, scene_identity_features=2, scene_recent_features=2)
    with Memory.open(path, config=config, clock=clock) as memory:
        for key, words in (("auto:chan:QQ", "abcde"), ("auto:chan:qq", "efghi")):
            plant(path, key, features=[("chan:qq", 1.0, 1.0), *((f"topic:{word}", 0.08, 0.08) for word in words)])
        _, before = (row for row in scene_rows(path)["scenes"])
        own = features(path, 2)
        operation = memory.dedupe_scenes().operation
        turns = [topics] if topics == "new" else topics
        for topic in turns:
            memory.enter_scene(Situation.of(chan="qq", topics=topic))

        memory.undo(operation)

        assert scenes(path)[0][1:4] == ("auto:chan:QQ", 1 + len(turns), 1 + len(turns))
        assert scene_rows(path)["scenes"][1] == before
        assert features(path, 1)["chan:qq"] == (1.0, pytest.approx(1.0 + len(turns)))
        assert features(path, 2) == own


def test_undo_leaves_no_visit_number_beyond_the_visits(memory, path):
    """Else words of that visit would pass as the last touched ones for as many visits as the twin had."""
    plant(path, "auto:chan:QQ", visits=2, features=[("chan:qq", 1.0, 2.0)])
    plant(path, "auto:chan:qq", visits=1000, features=[("chan:qq", 1.0, 1000.0)])
    operation = memory.dedupe_scenes().operation
    memory.enter_scene(Situation.of(chan="qq", topics="a"))

    memory.undo(operation)

    beyond = "SELECT key, feature FROM scene_features f JOIN scenes s ON s.id = f.scene_id WHERE touched > visits"
    assert sql(path, beyond) == []


def test_undo_twice_is_a_conflict(memory, path, twins):
    operation = memory.dedupe_scenes().operation
    memory.undo(operation)
    before = dump(path)

    for dry_run in (False, True):
        with pytest.raises(Conflict):
            memory.undo(operation, dry_run=dry_run)

    assert dump(path) == before


@pytest.mark.parametrize("operation", [1, 99])
@pytest.mark.parametrize("dry_run", [True, False])
def test_undo_of_an_unknown_operation_is_not_found(memory, operation, dry_run):
    with pytest.raises(NotFound, match=str(operation)):
        memory.undo(operation, dry_run=dry_run)


@pytest.mark.parametrize("operation", [0, -1, None, "1", True, 1.0, 2**70])
def test_an_operation_is_a_positive_whole_number(memory, operation):
    with pytest.raises(InvalidInput):
        memory.undo(operation)


def test_undo_waits_for_a_later_dedupe_of_the_same_rows(memory, path, twins):
    before = scene_rows(path)
    first = memory.dedupe_scenes().operation
    third = plant(path, "auto:chan:QQ+part:morning", strength=5)
    between = scene_rows(path)
    second = memory.dedupe_scenes().operation
    after = dump(path)

    for dry_run in (True, False):
        with pytest.raises(Conflict, match=f"undo {second} first"):
            memory.undo(first, dry_run=dry_run)
    assert dump(path) == after

    memory.undo(second)
    assert scene_rows(path) == between
    memory.undo(first)
    assert [row for row in scene_rows(path)["scenes"] if row[0] != third] == before["scenes"]


def test_a_later_dedupe_of_other_rows_does_not_matter(memory, path, twins):
    before = scene_rows(path)["scenes"]
    first = memory.dedupe_scenes().operation
    for key in ("chan:WEB", "chan:web"):
        plant(path, key)
    memory.dedupe_scenes()

    memory.undo(first)

    assert [row for row in scene_rows(path)["scenes"] if row[0] in twins] == before


def test_a_dedupe_after_an_undo_merges_again(memory, path, twins):
    first = memory.dedupe_scenes()
    rows = scene_rows(path)
    memory.undo(first.operation)

    again = memory.dedupe_scenes()

    assert plain(again) == plain(first)
    assert again.operation != first.operation
    assert scene_rows(path) == rows
    with pytest.raises(Conflict):
        memory.undo(first.operation)
    assert memory.undo(again.operation).applied


def test_a_dry_run_of_undo_tells_the_same_and_changes_nothing(memory, path, twins):
    plant(path, "LONE")
    operation = memory.dedupe_scenes().operation
    before = dump(path)

    planned = memory.undo(operation, dry_run=True)

    assert dump(path) == before
    done = memory.undo(operation)
    assert dataclasses.replace(done, applied=False) == planned
    assert done.restored
    assert done.removed
    assert done.changed


def test_an_undo_whose_place_is_taken_is_a_conflict_and_changes_nothing(memory, path):
    plant(path, "chan:QQ")
    operation = memory.dedupe_scenes().operation
    plant(path, "chan:QQ")
    before = dump(path)

    for dry_run in (True, False):
        with pytest.raises(Conflict):
            memory.undo(operation, dry_run=dry_run)

    assert dump(path) == before


def test_an_undo_that_fails_changes_nothing(memory, path, twins):
    operation = memory.dedupe_scenes().operation
    before = dump(path)
    refuse(path, "UPDATE ON operations")

    with pytest.raises(StoreFailed):
        memory.undo(operation)

    relent(path, "UPDATE ON operations")
    assert dump(path) == before
    assert memory.undo(operation).applied


def test_no_orphans_are_left(memory, path, twins):
    operation = memory.dedupe_scenes().operation
    assert orphans(path) == []

    memory.undo(operation)

    assert orphans(path) == []
