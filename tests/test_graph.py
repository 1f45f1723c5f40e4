"""The graph: what a commit writes and refuses, how facts are said again, replaced, tagged and found by words.

Ids in comments are those of the acceptance list in the specification and of the cases, as the design rules them.
"""

import contextlib
import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump, refuse, relent, sql

from graphmem import InvalidInput, Memory, NotFound, Situation, StoreFailed, Triple, entity_key

RULE = Triple("boss", "wants", "plain text", sentence="The boss wants plain text.")


def entities(path):
    return dict(sql(path, "SELECT name, mention_count FROM entities ORDER BY id"))


def column(path, table, name):
    return [value for (value,) in sql(path, f"SELECT {name} FROM {table} ORDER BY id")]


def numbers(report):
    return report.created, report.repeated, len(report.refused)


def objects(recollection):
    return [relation.object for relation in recollection.relations]


# ---- what a commit reports


def test_a_commit_tells_new_facts_from_known_and_refused_ones(memory):
    first = memory.commit([RULE, Triple("a", "b", "c"), Triple("", "b", "c")], scenes="chan:qq")
    second = memory.commit([Triple("x", "y", "z"), RULE])

    assert numbers(first) == (2, 0, 1)
    assert numbers(second) == (1, 1, 0)
    assert (first.written, second.written) == (2, 2)
    assert first.relations[2] is None
    assert second.relations[1] == first.relations[0]
    assert len({*first.relations[:2], *second.relations}) == 3
    assert first.scenes == ("chan:qq",)


def test_one_fact_twice_in_a_batch_is_one_fact(memory, path):
    report = memory.commit([RULE, RULE], scenes="chan:qq")

    assert numbers(report) == (1, 1, 0)
    assert report.relations[0] == report.relations[1]
    assert sql(path, "SELECT COUNT(*) FROM evidence") == [(2,)]


def test_nothing_written_is_reported_as_such_and_makes_no_scene(memory, path):  # W11
    before = dump(path)

    report = memory.commit([Triple("", "b", "c"), Triple("a", "b", " ")], scenes="chan:qq")

    assert report.written == 0
    assert [(refusal.index, refusal.triple.subject) for refusal in report.refused] == [(0, ""), (1, "a")]
    assert dump(path) == before
    assert memory.commit([], scenes="chan:qq").written == 0
    assert dump(path) == before


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "nothing"),
        (" \n\t", "nothing"),
        ("\u200b\ufeff\u00ad", "nothing"),  # only invisible characters
        ("\u202e", "nothing"),
        ("x" * 51, "51"),
        ("排" * 51, "51"),
        ("🎉" * 51, "51"),
        (None, "NoneType"),
        (8328, "int"),
        (b"bytes", "bytes"),
    ],
)
def test_a_bad_name_is_refused_with_its_reason_and_the_rest_is_written(memory, path, place, name, reason):
    names = ["a", "b", "c"]
    names[place] = name

    report = memory.commit([Triple("x", "y", "z"), Triple(*names), RULE])

    assert numbers(report) == (2, 0, 1)
    (refusal,) = report.refused
    assert refusal.index == 1
    assert ("subject", "relation", "object")[place] in refusal.reason
    assert reason in refusal.reason
    assert entities(path) == {"x": 1, "z": 1, "boss": 1, "plain text": 1}


@pytest.mark.parametrize(
    "name", ["x", "8", "8328", "！！！", "🎉", "-", "_", ".", "'", "%", "x" * 50, "排" * 50, "🎉" * 50]
)
def test_a_name_of_one_to_fifty_characters_is_accepted(memory, path, name):  # design 4, in place of G1
    report = memory.commit([Triple(name, name, "object")])

    assert numbers(report) == (1, 0, 0)
    assert entities(path) == {name: 1, "object": 1}
    assert [hit.text for hit in memory.recall("object")] == [f"{name} {name} object"]


# ---- names


@pytest.mark.parametrize(
    "spellings",
    [
        ["학점인정", "\u1112\u1161\u11a8\u110c\u1165\u11b7\u110b\u1175\u11ab\u110c\u1165\u11bc"],  # KEY-07
        ["Café", "Cafe\u0301", "CAFÉ"],  # KEY-07
        ["ガ", "カ\u3099", "ｶﾞ"],  # KEY-07, KEY-08
        ["ＵＳＢ集线器", "USB集线器", "usb集线器"],  # KEY-08
        ["テスト", "ﾃｽﾄ"],  # KEY-08
        ["bob", "bob\u200b", "\ufeffbob", "bo\u00adb", "bob\u202e", " Bob "],  # KEY-11
        ["a b", "a   b", "a\u3000b", "a\tb"],
        ["straße", "STRASSE"],
        ["XKB", "xkb"],  # DUP-01
    ],
)
def test_spellings_of_one_name_are_one_entity_shown_as_first_written(memory, path, spellings):
    for turn, spelling in enumerate(spellings):
        memory.commit([Triple(spelling, "is", "known")], session=f"s{turn}", scenes="chan:qq")

    shown = spellings[0].strip()
    assert entities(path) == {shown: len(spellings), "known": len(spellings)}
    for spelling in spellings:
        assert [hit.text for hit in memory.recall(spelling)] == [f"{shown} is known"]
    assert len(memory.recall_by_scene("chan:qq").relations) == 1


def test_different_names_stay_different(memory, path):  # KEY-13, DUP-04
    names = ["C", "C++", "C#", ".NET", "NET", "🎉", "！！！", "项目甲", "项目乙", "群1", "群11", "𠮷野", "吉野"]
    names += ["RX4070", "RX4080", "v1.2", "v1.20", "cam-a1", "cam-a1r", "İ", "i", "a_b", "a b", "a-b", "a/b"]

    report = memory.commit([Triple(name, "is", "known") for name in names])

    assert report.created == len(names)
    assert entities(path).keys() == {*names, "known"}
    assert len(set(column(path, "entities", "key"))) == len(names) + 1


def test_relations_are_told_apart_by_their_canonical_form(memory, path):
    report = memory.commit([Triple("a", "Likes", "b"), Triple("a", " ｌｉｋｅｓ", "b"), Triple("a", "likes_", "b")])

    assert numbers(report) == (2, 1, 0)
    assert column(path, "relations", "relation_type") == ["Likes", "likes_"]


def test_an_alias_leads_to_the_entity_behind_it(memory, path):
    """A merge has written the alias; evidence keeps the name that was said."""
    memory.commit([Triple("Robert", "likes", "tea")])
    sql(path, "INSERT INTO entity_aliases SELECT 'bob', id FROM entities WHERE key = 'robert'")

    report = memory.commit([Triple("Ｂｏｂ", "likes", "tea"), Triple("mum", "calls", "BOB")])

    assert numbers(report) == (1, 1, 0)
    assert entities(path) == {"Robert": 3, "tea": 2, "mum": 1}
    assert sql(path, "SELECT source_key, target_key FROM evidence ORDER BY id") == [
        ("robert", "tea"),
        ("bob", "tea"),
        ("mum", "bob"),
    ]


# ---- said again


def test_each_saying_leaves_evidence(memory, path, clock):
    report = memory.commit([RULE], session="s1", turn=3)
    clock.advance(minutes=5)
    memory.commit([Triple("BOSS", "wants", "plain  text")], session="s2", turn=9, source="import")

    (relation_id,) = report.relations
    rows = sql(path, "SELECT relation_id, session, turn, source, source_key, target_key, at FROM evidence ORDER BY id")
    assert rows == [
        (relation_id, "s1", 3, "agent", "boss", "plain text", "2026-09-07T08:00:00.000Z"),
        (relation_id, "s2", 9, "import", "boss", "plain text", "2026-09-07T08:05:00.000Z"),
    ]
    assert sql(path, "SELECT COUNT(*) FROM relations") == [(1,)]
    assert sql(path, "SELECT s.text FROM evidence e LEFT JOIN sentences s ON s.id = e.sentence_id ORDER BY e.id") == [
        ("The boss wants plain text.",),
        (None,),
    ]


@pytest.mark.parametrize(
    ("later", "shown"), [("", "Said first."), ("Said later.", "Said later."), (" Said first. ", "Said first.")]
)
def test_the_last_sentence_is_shown_and_none_keeps_the_former(memory, path, later, shown):
    for sentence in ("Said first.", later):
        memory.commit([Triple("a", "b", "c", sentence=sentence)], scenes="chan:qq")

    assert memory.recall_by_scene("chan:qq").relations[0].sentence == shown
    assert column(path, "sentences", "text") == (["Said first.", later] if later == shown else ["Said first."])


def test_one_sentence_of_many_facts_is_stored_once(memory, path):
    memory.commit([Triple("a", "b", name, sentence="Both at once.") for name in "xy"])

    assert column(path, "sentences", "text") == ["Both at once."]
    assert {hit.text for hit in memory.recall("both")} == {f"a b {name}: Both at once." for name in "xy"}


@pytest.mark.parametrize("status", ["deleted", "archived"])
def test_a_fact_that_was_deleted_is_active_again_when_said_again(memory, path, status):  # G7
    report = memory.commit([RULE], scenes="chan:qq", session="s")
    sql(path, "UPDATE relations SET status = ?, closed_at = '2026-09-07T09:00:00.000Z'", status)
    assert not memory.recall_by_scene("chan:qq").relations

    again = memory.commit([RULE], scenes="chan:qq", session="s")

    assert again.relations == report.relations
    assert again.written == 1
    assert objects(memory.recall_by_scene("chan:qq")) == ["plain text"]
    assert sql(path, "SELECT status, closed_at FROM relations") == [("active", None)]


def test_the_last_confidence_holds(memory, path):
    for confidence in (0.9, 0.4):
        memory.commit([Triple("a", "b", "c", confidence=confidence)])

    assert column(path, "relations", "confidence") == [0.4]


def test_the_given_time_is_recorded(memory, path):
    memory.commit([RULE], at="2026-03-01T09:00:00+08:00", scenes="chan:qq")

    assert column(path, "relations", "recorded_at") == ["2026-03-01T01:00:00.000Z"]
    assert column(path, "evidence", "at") == ["2026-03-01T01:00:00.000Z"]
    assert sql(path, "SELECT day FROM active_days") == [("2026-03-01",)]


# ---- values that follow each other


def values(path):
    """What a functional relation held, in the order of time."""
    return sql(
        path,
        """SELECT name, status, substr(valid_from, 1, 10), substr(valid_to, 1, 10) FROM relations r
           JOIN entities e ON e.id = r.target_id ORDER BY COALESCE(valid_from, recorded_at), r.id""",
    )


def lives(place, **options):
    return Triple("Lin", "lives in", place, functional=True, **options)


def test_a_new_value_closes_the_old_one(memory, path, clock):
    memory.commit([lives("Hangzhou")], scenes="chan:qq")
    clock.advance(days=3)

    report = memory.commit([lives("Chengdu")], scenes="chan:qq")

    assert (report.created, report.superseded) == (1, 1)
    assert values(path) == [
        ("Hangzhou", "superseded", "2026-09-07", "2026-09-10"),
        ("Chengdu", "active", "2026-09-10", None),
    ]
    assert sql(path, "SELECT closed_at FROM relations WHERE status = 'superseded'") == [("2026-09-10T08:00:00.000Z",)]
    assert objects(memory.recall_by_scene("chan:qq")) == ["Chengdu"]


@pytest.mark.parametrize("told_by", ["valid_from", "at"])
def test_an_older_conversation_imported_later_changes_nothing_now(memory, path, told_by):  # TIM-03
    for place, when in (("Hangzhou", "2026-02-01"), ("Chengdu", "2024-05-01")):
        if told_by == "at":
            memory.commit([lives(place)], at=when, scenes="chan:qq")
        else:
            memory.commit([lives(place, valid_from=when)], scenes="chan:qq")

    assert objects(memory.recall_by_scene("chan:qq")) == ["Hangzhou"]
    (earlier, now) = values(path)
    assert earlier == ("Chengdu", "superseded", "2024-05-01", "2026-02-01")
    assert now[:2] == ("Hangzhou", "active")


@pytest.mark.parametrize("order", list(itertools.permutations([2020, 2022, 2024])))
def test_values_follow_each_other_whatever_the_order_of_telling(memory, path, order):  # TIM-03
    for year in order:
        memory.commit([lives(f"place of {year}", valid_from=f"{year}-01-01")])

    assert values(path) == [
        ("place of 2020", "superseded", "2020-01-01", "2022-01-01"),
        ("place of 2022", "superseded", "2022-01-01", "2024-01-01"),
        ("place of 2024", "active", "2024-01-01", None),
    ]


@settings(max_examples=60)
@given(st.dictionaries(st.integers(2000, 2030), st.sampled_from("abc"), min_size=1, max_size=6))
def test_the_latest_value_is_the_only_current_one(tellings):  # TIM-03
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(path) as memory:
            for year, place in tellings.items():
                memory.commit([lives(place, valid_from=f"{year}-01-01")])

        assert [name for name, status, *_ in values(path) if status == "active"] == [tellings[max(tellings)]]
        for (_, _, _, ended), (_, _, begun, _) in itertools.pairwise(values(path)):
            assert ended <= begun


def test_a_value_that_comes_back_opens_anew_and_history_stays(memory, path, clock):
    for place in ("Hangzhou", "Chengdu", "Hangzhou"):
        report = memory.commit([lives(place)])
        clock.advance(days=1)

    assert (report.created, report.superseded) == (1, 1)
    assert [(name, status) for name, status, *_ in values(path)] == [
        ("Hangzhou", "superseded"),
        ("Chengdu", "superseded"),
        ("Hangzhou", "active"),
    ]


def test_an_old_value_imported_twice_is_one_fact(memory, path):
    memory.commit([lives("Hangzhou", valid_from="2026-02-01")])
    first = memory.commit([lives("Chengdu", valid_from="2024-05-01")])

    again = memory.commit([lives("Chengdu", valid_from="2024-05-01")])

    assert again.relations == first.relations
    assert numbers(again) == (0, 1, 0)
    assert len(values(path)) == 2


def test_an_older_time_of_the_current_value_does_not_end_it(memory):  # TIM-03
    """Lin lived in Hangzhou before Chengdu, too; that was told last."""
    memory.commit([lives("Chengdu", valid_from="2025-01-01")], scenes="chan:qq")
    memory.commit([lives("Hangzhou", valid_from="2026-01-01")], scenes="chan:qq")

    memory.commit([lives("Hangzhou", valid_from="2024-01-01")], scenes="chan:qq")

    assert objects(memory.recall_by_scene("chan:qq")) == ["Hangzhou"]


def test_a_value_said_again_closes_nothing(memory):
    memory.commit([lives("Hangzhou")])

    report = memory.commit([lives("hangzhou")])

    assert (report.created, report.repeated, report.superseded) == (0, 1, 0)


def test_only_values_of_the_same_subject_relation_and_scope_are_closed(memory, path):
    memory.commit([lives("a"), Triple("Mei", "lives in", "a"), Triple("Lin", "works in", "a")])
    memory.commit([lives("a")], scope="other")

    report = memory.commit([Triple("LIN", "Lives  in", "b", functional=True)])

    assert report.superseded == 1
    assert column(path, "relations", "status") == ["superseded", "active", "active", "active", "active"]


def test_a_relation_that_is_not_functional_keeps_all_its_values(memory, path):
    report = memory.commit([Triple("Lin", "likes", name) for name in ("tea", "rice")])

    assert report.superseded == 0
    assert column(path, "relations", "status") == ["active", "active"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lives("a", valid_to="2020-01-01"), lives("b")),  # ended before it was told
        (lives("a", valid_to="2020-01-01"), lives("b", valid_from="2019-01-01")),
        (lives("a", valid_from="2026-01-01"), lives("b", valid_from="2026-01-01")),
        (Triple("a", "b", "c", valid_to="2020-01-01"), Triple("a", "b", "c", valid_from="2021-01-01")),
        (Triple("a", "b", "c", valid_from="2021-01-01"), Triple("a", "b", "c", valid_to="2020-01-01")),
    ],
)
def test_times_that_were_told_apart_never_break_a_write(memory, path, first, second):
    memory.commit([first])

    report = memory.commit([second])

    assert report.written == 1
    assert not sql(path, "SELECT 1 FROM relations WHERE valid_to < valid_from")


@pytest.mark.parametrize(
    ("told", "stored"),
    [
        ("2026-03-01T09:00:00+08:00", "2026-03-01T01:00:00.000Z"),
        ("2026-03-01T02:00:00+00:00", "2026-03-01T02:00:00.000Z"),
        ("2026-03-01 09:00:00", "2026-03-01T09:00:00.000Z"),  # no offset: the configured zone, here UTC
        ("2026-03-01", "2026-03-01T00:00:00.000Z"),
    ],
)
def test_times_are_stored_in_utc(memory, path, told, stored):  # TIM-02
    memory.commit([Triple("a", "b", "c", valid_from=told, valid_to="2027-01-01")])

    assert sql(path, "SELECT valid_from, valid_to FROM relations") == [(stored, "2027-01-01T00:00:00.000Z")]


# ---- bad input


@pytest.mark.parametrize(
    "confidence", [float("nan"), float("inf"), -float("inf"), 1e999, 0, 0.0, -1, 1.0000001, 2, True, "0.5", None]
)
def test_a_confidence_is_a_number_above_zero_and_at_most_one(confidence):  # NUM-01
    with pytest.raises(InvalidInput, match="confidence"):
        Triple("a", "b", "c", confidence=confidence)


@pytest.mark.parametrize("confidence", [5e-324, 1e-9, 0.5, 1, 1.0])
def test_confidences_within_the_bounds_are_kept(memory, path, confidence):
    memory.commit([Triple("a", "b", "c", confidence=confidence)], scenes="chan:qq")

    assert column(path, "relations", "confidence") == [confidence]
    assert memory.recall_by_scene("chan:qq").relations[0].weight == confidence


@pytest.mark.parametrize(
    ("argument", "triples", "options"),
    [
        ("triples", RULE, {}),
        ("triples", None, {}),
        ("triples", [RULE, ("a", "b", "c")], {}),
        ("scenes", [RULE], {"scenes": ["chan:new", "///"]}),
        ("scenes", [RULE], {"scenes": 5}),
        ("session", [RULE], {"session": None}),
        ("source", [RULE], {"source": 1}),
        ("scope", [RULE], {"scope": 1}),
        ("turn", [RULE], {"turn": -1}),
        ("turn", [RULE], {"turn": 1.5}),
        ("turn", [RULE], {"turn": True}),
        ("turn", [RULE], {"turn": 2**70}),
        ("at", [RULE], {"at": "soon"}),
        ("at", [RULE], {"at": 0}),
    ],
)
def test_a_bad_argument_is_named_and_nothing_is_written(memory, path, argument, triples, options):
    before = dump(path)

    with pytest.raises(InvalidInput) as caught:
        memory.commit(triples, **{"scenes": "chan:new"} | options)

    assert caught.value.argument.startswith(argument)
    assert dump(path) == before


@pytest.mark.parametrize(
    "times",
    [
        {"valid_from": "2026-02-01", "valid_to": "2026-01-01"},
        {"valid_from": "2026-02-01T00:00:00+00:00", "valid_to": "2026-02-01T00:00:00+08:00"},
        {"valid_from": "yesterday"},
        {"valid_to": ""},
        {"valid_to": 5},
    ],
)
def test_a_time_that_cannot_be_is_refused_and_nothing_is_written(memory, path, times):
    before = dump(path)

    with pytest.raises(InvalidInput, match="valid_"):
        memory.commit([RULE, Triple("a", "b", "c", **times)], scenes="chan:new")

    assert dump(path) == before


def test_a_commit_that_fails_half_way_leaves_nothing(memory, path):
    memory.commit([RULE])
    before = dump(path)
    refuse(path, "INSERT ON evidence", when="NEW.target_key = 'z'")

    with pytest.raises(StoreFailed):
        memory.commit([RULE, Triple("x", "y", "z")], scenes="chan:new")

    relent(path, "INSERT ON evidence")
    assert dump(path) == before
    assert memory.commit([Triple("x", "y", "z")]).created == 1


@pytest.mark.parametrize("bad", ["\0", "\ud83d", "\0\ud83d"])
def test_what_cannot_be_stored_becomes_u_fffd_with_a_remark(memory, path, bad):  # TXT-01
    good = [Triple(f"s{i}", "r", "o") for i in range(9)]
    cut = Triple(f"a{bad}", f"b{bad}", f"c{bad}", sentence=f"ok {bad} 👍")

    report = memory.commit([*good, cut], scenes="chan:qq")

    mark = "\ufffd" * len(bad)
    assert numbers(report) == (10, 0, 0)
    assert len(report.remarks) == 1
    assert "triples[9]" in report.remarks[0]
    (found,) = memory.recall("ok")
    assert found.text == f"a{mark} b{mark} c{mark}: ok {mark} 👍"
    assert sql(path, "SELECT 1 FROM evidence WHERE source_key = ?", entity_key(f"a{mark}"))


@pytest.mark.parametrize("name", ["session", "source", "scope"])
@pytest.mark.parametrize("bad", ["\0", "\ud83d"])
def test_a_damaged_label_of_a_commit_is_mended_or_refused(memory, path, name, bad):  # TXT-01
    """Either way no error of another library gets through, and no NUL gets in."""
    with contextlib.suppress(InvalidInput):
        memory.commit([RULE], **{name: f"a{bad}"})

    rows = sql(path, "SELECT e.session, e.source, r.scope FROM evidence e JOIN relations r ON r.id = e.relation_id")
    assert not [text for row in rows for text in row if "\0" in text]


@pytest.mark.parametrize("bad", ["\0", "\ud83d"])
def test_damaged_texts_in_questions_raise_no_foreign_error(memory, bad):  # TXT-01
    memory.commit([RULE], scenes="chan:qq")

    assert memory.recall(f"x{bad}") == ()
    assert memory.recall_by_scene([f"chan:x{bad}y"]).relations == ()
    assert memory.tag_scene("chan:qq", glob=f"x{bad}*", dry_run=True).attached == ()
    with contextlib.suppress(InvalidInput):
        assert memory.recall_by_scene("chan:qq", scopes=[f"x{bad}"]).relations


# ---- tagging


def names(memory, report):
    known = {relation.id: relation for relation in memory.recall_by_scene("", limit=100).relations}
    return [known[relation_id].subject for relation_id in report.attached]


@pytest.fixture
def talk(memory):
    """Facts about QQ, all in one other scene."""
    facts = [("QQ", "Q1"), ("my QQ", "x"), ("/home/newqqagent", "y"), ("w", "ＱＱ群"), ("qq2", "z"), ("a[1]", "q")]
    return memory.commit([Triple(subject, "r", name) for subject, name in facts], scenes="chan:other").relations


@pytest.mark.parametrize(
    ("pattern", "subjects"),
    [
        ("*QQ*", ["QQ", "my QQ"]),  # P10; names match as they are shown
        ("QQ", ["QQ"]),
        ("qq?", ["qq2"]),
        ("Q[0-9]", ["QQ"]),
        ("a[[]1]", ["a[1]"]),
        ("*群", ["w"]),
        ("*", ["QQ", "my QQ", "/home/newqqagent", "w", "qq2", "a[1]"]),
        ("*%*", []),
        ("", []),
        ("[", []),
    ],
)
def test_a_glob_tags_facts_with_a_matching_end(memory, path, talk, pattern, subjects):  # P10
    before = dump(path)

    planned = memory.tag_scene("chan:qq", glob=pattern, dry_run=True)

    assert dump(path) == before
    done = memory.tag_scene("chan:qq", glob=pattern)
    assert names(memory, done) == subjects
    assert (planned.attached, planned.known, planned.unknown) == (done.attached, (), ())
    assert (planned.applied, done.applied) == (False, True)
    assert {relation.subject for relation in memory.recall_by_scene("chan:qq").relations} == set(subjects)


def test_a_glob_passes_over_facts_that_are_not_active(memory, path, talk):
    sql(path, "UPDATE relations SET status = 'deleted' WHERE id = ?", talk[0])

    assert names(memory, memory.tag_scene("chan:qq", glob="*QQ*")) == ["my QQ"]


def test_ids_tag_known_facts_and_their_ends(memory, path, talk):
    first = memory.tag_scene("chan:QQ", [talk[0], 999, talk[0]])
    second = memory.tag_scene("chan:qq", [talk[1], talk[0]])

    assert (first.key, first.attached, first.known, first.unknown) == ("chan:qq", (talk[0],), (), (999,))
    assert (second.attached, second.known, second.unknown) == ((talk[1],), (talk[0],), ())
    recollection = memory.recall_by_scene("chan:qq")
    assert {relation.id for relation in recollection.relations} == {talk[0], talk[1]}
    assert {entity.name for entity in recollection.entities} == {"QQ", "Q1", "my QQ", "x"}


def test_a_dry_run_of_tagging_by_ids_tells_the_same_and_writes_nothing(memory, path, talk):
    memory.tag_scene("chan:qq", [talk[0]])
    before = dump(path)

    planned = memory.tag_scene("chan:qq", [talk[0], talk[1], 999], dry_run=True)

    assert dump(path) == before
    done = memory.tag_scene("chan:qq", [talk[0], talk[1], 999])
    assert (planned.attached, planned.known, planned.unknown) == (done.attached, done.known, done.unknown)


@pytest.mark.parametrize("dry_run", [True, False])
def test_tagging_facts_that_do_not_exist_is_not_found_and_makes_no_scene(memory, path, dry_run):
    memory.commit([RULE])
    before = dump(path)

    with pytest.raises(NotFound, match="998"):
        memory.tag_scene("chan:new", [998, 999], dry_run=dry_run)

    assert dump(path) == before


def test_tagging_weighs_by_confidence_and_never_lowers(memory, path):
    (relation_id,) = memory.commit([Triple("a", "b", "c", confidence=0.9)], scenes="chan:qq").relations
    memory.commit([Triple("a", "b", "c", confidence=0.2)])

    memory.tag_scene("chan:qq", [relation_id])
    memory.tag_scene("chan:new", [relation_id])

    assert [memory.recall_by_scene(key).relations[0].weight for key in ("chan:qq", "chan:new")] == [0.9, 0.2]


@pytest.mark.parametrize(
    ("ids", "options"),
    [
        ([], {}),
        ([1], {"glob": "*"}),
        ([0], {}),
        ([-1], {}),
        ([1.0], {}),
        ([True], {}),
        (["1"], {}),
        ([2**70], {}),
        (5, {}),
        ([], {"glob": 5}),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_bad_arguments_of_tagging_are_refused(memory, path, talk, ids, options, dry_run):
    before = dump(path)

    with pytest.raises(InvalidInput):
        memory.tag_scene("chan:new", ids, **options, dry_run=dry_run)

    assert dump(path) == before


# ---- found by words


SENTENCES = [
    "use a multi-agent plan", "it's done", "see gateway/run.py", "write to user@host", "version 38.101", "a AND b",
    "NOT now", "call NEAR( me", 'an a"b pair', "in chan:qq/peer:group_1", "100% sure_thing", "今晚八点部署新网关",
    "重跑build-x7后清零", "住在𠮷野", "㐂寿司很好", "かなを書く", "학점인정 완료",
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("multi-agent", 0),  # FTS-01
        ("it's", 1),
        ("gateway/run.py", 2),
        ("user@host", 3),
        ("38.101", 4),
        ("a AND", 5),
        ("NOT", 6),
        ("NEAR(", 7),
        ('a"b', 8),
        ("chan:qq/peer:group_1", 9),
        ("100%", 10),  # no wildcards
        ("sure_thing", 10),
        ("部署", 11),  # FTS-04
        ("网关", 11),
        ("八点", 11),
        ("部署新网关", 11),
        ("build", 12),  # FTS-05
        ("x7", 12),
        ("ＢＵＩＬＤ－Ｘ７", 12),
        ("𠮷野", 13),  # KEY-15
        ("㐂寿", 14),
        ("かな", 15),
        ("\u1112\u1161\u11a8\u110c\u1165\u11b7", 16),  # KEY-07
        ("plan MULTI-AGENT", 0),  # in any order
    ],
)
def test_everyday_text_finds_its_fact(memory, query, found):
    memory.commit([Triple(f"fact {i}", "r", "o", sentence=text) for i, text in enumerate(SENTENCES)])

    # 'a"b' says as much as "a AND b".
    assert f"fact {found} r o: {SENTENCES[found]}" in [hit.text for hit in memory.recall(query)[:2]]


@pytest.mark.parametrize("query", ["nowhere", "s%e", "s_re", "点署", "gate%"])
def test_words_that_do_not_occur_find_nothing(memory, query):
    memory.commit([Triple("fact", "r", "o", sentence=text) for text in SENTENCES])

    assert memory.recall(query) == ()


def test_by_keyword_every_word_has_to_occur(memory):
    memory.commit([Triple(f"fact {i}", "r", "o", sentence=text) for i, text in enumerate(SENTENCES)])

    assert len(memory.recall("agent plan", mode="keyword")) == 1
    assert memory.recall("agent plan nowhere", mode="keyword") == ()
    assert memory.recall("agent plan nowhere")


@pytest.mark.parametrize("query", ["", "   ", "\u200b", "\n", "!!!", '"', "*", "(", "。、？", "-_-"])
def test_a_query_without_words_is_refused_as_nothing_to_search_for(memory, query):  # FTS-02
    with pytest.raises(InvalidInput, match="nothing to search for"):
        memory.recall(query)


@pytest.mark.parametrize("query", [None, 7, b"port"])
def test_a_query_is_a_text(memory, query):
    with pytest.raises(InvalidInput, match=r"^query = .*text"):
        memory.recall(query)


@pytest.mark.parametrize(("limit", "count"), [(None, 10), (0, 0), (3, 3), (50, 12)])
def test_of_facts_that_answer_alike_the_latest_come_first_up_to_the_limit(memory, clock, limit, count):
    for i in range(12):
        memory.commit([Triple(f"s{i}", "uses", "port")])
        clock.advance(minutes=1)

    found = [hit.text for hit in memory.recall("port", limit=limit)]

    assert found == [f"s{i} uses port" for i in range(11, -1, -1)][:count]


def test_a_query_finds_names_and_relations_of_active_facts_only(memory, path):
    memory.commit([Triple("metrics", "端口", "8328"), Triple("metrics", "端口", "4324")])
    sql(path, "UPDATE relations SET status = 'deleted' WHERE id = 2")

    found = [[hit.text for hit in memory.recall(query)] for query in ("Metrics", "端口", "8328", "4324")]
    assert found == [["metrics 端口 8328"]] * 3 + [[]]


@pytest.mark.parametrize("limit", [-1, 1.5, True, "8"])
def test_a_limit_is_a_whole_number(memory, limit):
    with pytest.raises(InvalidInput, match="limit"):
        memory.recall("x", limit=limit)


def test_facts_of_one_process_are_known_to_the_other(memory, path, clock):
    memory.commit([RULE], scenes="chan:qq")

    with Memory.open(path, clock=clock) as other:
        assert numbers(other.commit([RULE], scenes="chan:qq")) == (0, 1, 0)
        assert [hit.id for hit in other.recall("boss")] == [1]

    assert entities(path) == {"boss": 2, "plain text": 2}


# ---- what was found by telling at random


def test_the_current_value_told_of_an_earlier_end_stays_current(memory):
    memory.commit([lives("Paris", valid_from="2026-09-01")], at="2026-08-01", scenes="chan:qq")
    memory.commit([lives("Rome", valid_from="2026-08-15")], at="2026-08-15", scenes="chan:qq")

    memory.commit([lives("Paris", valid_to="2026-08-20")], at="2026-08-21", scenes="chan:qq")

    assert objects(memory.recall_by_scene("chan:qq")) == ["Paris"]


def test_a_relation_that_had_successive_values_stays_functional(memory):
    for place, year in (("A", 2020), ("B", 2021)):
        memory.commit([lives(place, valid_from=f"{year}-01-01")], scenes="chan:qq")

    memory.commit([Triple("Lin", "lives in", "C", valid_from="2022-01-01")], scenes="chan:qq")

    assert objects(memory.recall_by_scene("chan:qq")) == ["C"]


def test_only_facts_that_hold_are_tagged(memory, path):
    first = memory.commit([lives("A", valid_from="2020-01-01")]).relations[0]
    second = memory.commit([lives("B", valid_from="2021-01-01")]).relations[0]

    report = memory.tag_scene("chan:qq", [first, second])

    assert (report.attached, report.unknown) == ((second,), (first,))


def test_more_scopes_and_keys_than_a_statement_takes_are_refused_by_name(memory):
    many = [f"n{number}" for number in range(5001)]
    for act in (
        lambda: memory.recall_by_scene("chan:qq", scopes=many),
        lambda: memory.recall("a", scopes=many),
        lambda: memory.recall_by_scene(many),
        lambda: memory.recall_by_situation(Situation.of(chan="qq"), declared=many),
    ):
        with pytest.raises(InvalidInput, match="5001"):
            act()
