"""Mirroring: what was said in a session stays verbatim, in order and once, and can be recalled."""

import contextlib
import datetime as dt
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump, place_of, plans_of_writing, refuse, sql, text_index_of

from graphmem import Config, Conflict, InvalidInput, Memory, NotFound, Part, StoreFailed
from graphmem.store import text_index

LUNCH = [
    Part("m1", author="Ann", role="user", text="Where shall we have lunch?", at="2026-09-01T10:00:00Z"),
    Part("m2", author="Bot", role="assistant", text="The ramen place has a free table.", at="2026-09-01T10:00:05Z"),
    Part("m3", author="Ann", role="user", text="Book it for noon, please."),
]


def ids(path, session="s1"):
    return [part for part, _ in texts(path, session)]


def texts(path, session="s1"):
    """Id and text of each part in order; their numbers have no gaps, and the session counts them."""
    rows = sql(
        path,
        """SELECT p.seq, p.part, p.text, p.length, s.parts, s.length FROM parts p JOIN sessions s ON s.id = p.session_id
           WHERE s.name = ? ORDER BY p.seq""",
        session,
    )
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert {row[4:] for row in rows} <= {(len(rows), sum(row[3] for row in rows))}
    return [(part, text) for _, part, text, *_ in rows]


def column(path, name, part="m1", session="s1"):
    rows = sql(
        path,
        f"SELECT p.{name} FROM parts p JOIN sessions s ON s.id = p.session_id WHERE s.name = ? AND p.part = ?",
        session,
        part,
    )
    return rows[0][0]


def found(memory, query, **options):
    return [hit.id for hit in memory.recall(query, kinds="part", **options)]


def numbers(report):
    return report.added, report.changed, report.known


def assert_index_equals_a_rebuild(memory):
    before = text_index_of(memory.path)
    memory.reindex()
    assert text_index_of(memory.path) == before


def test_parts_are_kept_verbatim_and_in_order(memory, path):
    report = memory.mirror("s1", LUNCH)

    assert (report.session, *numbers(report), report.remarks) == ("s1", 3, 0, 0, ())
    assert texts(path) == [(part.id, part.text) for part in LUNCH]
    (hit,) = memory.recall("ramen", kinds="part", limit=1)
    assert (hit.id, hit.text, hit.source, hit.at) == ("m2", LUNCH[1].text, "s1/Bot", "2026-09-01T10:00:05.000Z")


def test_white_space_around_a_text_is_kept(memory, path):
    memory.mirror("s1", [Part("m1", text="  indented\n\ttwice \n")])

    assert texts(path) == [("m1", "  indented\n\ttwice \n")]


def test_telling_the_same_again_changes_nothing(memory, path, clock):
    memory.mirror("s1", LUNCH)
    before = dump(path)
    clock.advance(minutes=5)

    assert numbers(memory.mirror("s1", LUNCH)) == (0, 0, 3)
    assert numbers(memory.mirror("s1", LUNCH[1:2])) == (0, 0, 1)
    assert dump(path) == before


def test_an_empty_list_leaves_no_trace(memory, path):
    before = dump(path)

    assert numbers(memory.mirror("s1", [])) == (0, 0, 0)
    assert dump(path) == before


def test_a_text_that_was_edited_is_found_by_its_new_words_alone(memory, path):
    memory.mirror("s1", LUNCH)

    report = memory.mirror("s1", [Part("m2", author="Bot", role="assistant", text="The sushi bar is open.")])

    assert numbers(report) == (0, 1, 0)
    assert [part for part, _ in texts(path)] == ["m1", "m2", "m3"]
    assert found(memory, "sushi")[0] == "m2"
    assert found(memory, "ramen", mode="keyword") == []
    assert_index_equals_a_rebuild(memory)


def test_an_edit_keeps_what_it_leaves_out(memory, path):
    memory.mirror("s1", LUNCH[:1])

    memory.mirror("s1", [Part("m1", text="Where shall we eat?")])

    kept = [column(path, name) for name in ("author", "author_key", "role", "at")]
    assert kept == ["Ann", "ann", "user", "2026-09-01T10:00:00.000Z"]


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [("author", "Bob", "Bob"), ("role", "tool", "tool"), ("at", "2026-09-02", "2026-09-02T00:00:00.000Z")],
)
def test_author_role_and_time_can_be_corrected_without_a_new_text(memory, path, field, value, stored):
    memory.mirror("s1", LUNCH[:1])

    report = memory.mirror("s1", [Part("m1", text=LUNCH[0].text, **{field: value})])

    assert numbers(report) == (0, 1, 0)
    assert column(path, field) == stored
    assert column(path, "author_key") == column(path, "author").lower()


def test_of_one_id_twice_in_a_call_the_last_text_counts_at_the_first_place(memory, path):
    parts = [Part("a", author="Ann", text="on"), Part("b", text="two"), Part("a", text="one")]

    report = memory.mirror("s1", parts)

    assert numbers(report) == (2, 0, 0)
    assert texts(path) == [("a", "one"), ("b", "two")]
    assert column(path, "author", "a") == "Ann"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("abcd", "abcd"),
        ("bxcyd", "abxcyd"),  # between those they are told between
        ("xab", "xabcd"),  # in front of the first known one
        ("xb", "axbcd"),
        ("dx", "abcdx"),
        ("axy", "axybcd"),
        ("xy", "abcdxy"),  # without a known one, to the end
        ("cxay", "abcxyd"),  # a known one that is told late moves nothing
        ("xaybzcwdv", "xaybzcwdv"),
    ],
)
def test_new_parts_go_behind_the_part_they_are_told_after(memory, path, told, expected):
    memory.mirror("s1", [Part(name, text=f"text {name}") for name in "abcd"])

    memory.mirror("s1", [Part(name, text=f"text {name}") for name in told])

    assert "".join(ids(path)) == expected
    assert texts(path) == [(name, f"text {name}") for name in expected]
    assert_index_equals_a_rebuild(memory)


def test_the_same_id_in_two_sessions_is_two_parts(memory, path):
    memory.mirror("s1", [Part("m1", text="apples")])
    memory.mirror("s2", [Part("m1", text="pears"), Part("m2", text="plums")])
    memory.mirror("s1", [Part("m1", text="cherries")])

    assert texts(path, "s1") == [("m1", "cherries")]
    assert texts(path, "s2") == [("m1", "pears"), ("m2", "plums")]
    assert [hit.source for hit in memory.recall("pears", kinds="part", mode="keyword")] == ["s2"]


# ---- scopes


def test_a_session_is_found_within_its_scope_and_one_without_everywhere(memory):
    memory.mirror("s1", [Part("m1", text="the secret ramen place")], scope="alpha")
    memory.mirror("s2", [Part("m2", text="the public ramen place")])

    assert sorted(found(memory, "ramen", scopes=["alpha"])) == ["m1", "m2"]
    assert found(memory, "ramen", scopes=["beta"]) == ["m2"]
    assert found(memory, "ramen", scopes=[]) == found(memory, "ramen") == ["m2"]
    assert sorted(found(memory, "ramen", scopes="all")) == ["m1", "m2"]


def test_the_parts_of_a_session_are_read_in_order(memory):
    memory.mirror("s1", [Part(f"m{i}", text=f"text {i}\n") for i in range(5)])
    memory.mirror("s1", [Part("m1", text="text 1\n"), Part("m1b", text="between")])
    memory.mirror("s2", [Part("m0", text="elsewhere")])

    assert [each.part for each in memory.parts("s1")] == ["m0", "m1", "m1b", "m2", "m3", "m4"]
    assert [each.text for each in memory.parts("s1", limit=2, skip=1)] == ["text 1\n", "between"]
    assert memory.parts("s1", limit=0) == memory.parts("s1", skip=6) == ()
    assert memory.parts("s2") == (memory.part("m0", session="s2"),)


def test_the_parts_of_a_session_are_read_within_its_scope(memory):
    memory.mirror("s1", [Part("m1", text="ramen")], scope="alpha")

    assert [each.part for each in memory.parts("s1", scopes=["alpha"])] == ["m1"]
    assert [each.part for each in memory.parts("s1", scopes="all")] == ["m1"]
    for scopes in (None, ["beta"]):
        with pytest.raises(Conflict, match="alpha"):
            memory.parts("s1", scopes=scopes)
    with pytest.raises(NotFound, match="nope"):
        memory.parts("nope")
    for wrong in ({"limit": -1}, {"skip": -1}, {"skip": "x"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            memory.parts("s1", scopes="all", **wrong)


def test_a_session_takes_the_scope_of_the_first_call_that_names_one(memory):
    memory.mirror("s1", [Part("m1", text="ramen")])
    assert found(memory, "ramen", scopes=["beta"]) == ["m1"]

    memory.mirror("s1", [Part("m2", text="sushi")], scope="alpha")

    assert found(memory, "ramen", scopes=["beta"]) == []
    assert sorted(found(memory, "ramen sushi", scopes=["alpha"])) == ["m1", "m2"]


def test_another_scope_is_refused_and_changes_nothing(memory, path):
    memory.mirror("s1", [Part("m1", text="ramen")], scope="alpha")
    before = dump(path)

    with pytest.raises(Conflict, match=r"'alpha'.*'beta'"):
        memory.mirror("s1", [Part("m2", text="sushi")], scope="beta")

    assert dump(path) == before
    assert numbers(memory.mirror("s1", [Part("m2", text="sushi")], scope="alpha")) == (1, 0, 0)


# ---- times


@pytest.mark.parametrize(
    ("at", "stored"),
    [
        ("2026-09-01T10:00:00", "2026-09-01T02:00:00.000Z"),
        ("2026-09-01T10:00:00+02:00", "2026-09-01T08:00:00.000Z"),
        ("2026-09-01", "2026-09-01T00:00:00.000Z"),
        (dt.datetime.fromisoformat("2026-09-01T10:00"), "2026-09-01T02:00:00.000Z"),
        (dt.datetime(2026, 9, 1, 10, 0, 0, 1999, tzinfo=dt.UTC), "2026-09-01T10:00:00.001Z"),
        (None, None),
    ],
)
def test_times_with_and_without_offset(path, clock, at, stored):
    config = Config(timezone="Asia/Shanghai")
    with Memory.open(path, config=config, clock=clock) as memory:
        memory.mirror("s1", [Part("m1", text="ramen", at=at)])
        (hit,) = memory.recall("ramen", kinds="part")

    assert column(path, "at") == stored
    assert hit.at == (stored or "2026-09-07T08:00:00.000Z")


def test_at_says_when_it_was_recorded(memory, path):
    memory.mirror("s1", [Part("m1", text="ramen")], at="2026-08-01T12:00:00Z")

    assert column(path, "recorded_at") == "2026-08-01T12:00:00.000Z"
    assert sql(path, "SELECT created_at, updated_at FROM sessions") == [("2026-08-01T12:00:00.000Z",) * 2]


# ---- what cannot be used


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("session", lambda memory: memory.mirror("", LUNCH)),
        ("session", lambda memory: memory.mirror(" \n", LUNCH)),
        ("session", lambda memory: memory.mirror(None, LUNCH)),
        ("parts", lambda memory: memory.mirror("s1", None)),
        ("parts[1]", lambda memory: memory.mirror("s1", [LUNCH[0], "hello"])),
        ("parts[0]", lambda memory: memory.mirror("s1", "hello")),
        ("scope", lambda memory: memory.mirror("s1", LUNCH, scope=3)),
        ("at", lambda memory: memory.mirror("s1", LUNCH, at="yesterday")),
        ("id", lambda memory: Part(" ", text="hello")),
        ("id", lambda memory: Part(7, text="hello")),
        ("text", lambda memory: Part("m1", text=None)),
        ("author", lambda memory: Part("m1", author=None, text="hello")),
        ("at", lambda memory: Part("m1", text="hello", at="noon")),
        ("parts[0].at", lambda memory: memory.mirror("s1", [Part("m1", text="a", at="0001-01-01T00:00")])),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_changes_nothing(path, clock, argument, call):
    with Memory.open(path, config=Config(timezone="Asia/Shanghai"), clock=clock) as memory:
        before = dump(path)

        with pytest.raises(InvalidInput) as caught:
            call(memory)

        assert caught.value.argument == argument
        assert dump(path) == before


def test_half_an_emoji_and_nul_are_replaced_with_a_remark_and_the_others_untouched(memory, path):  # TXT-01
    parts = [Part(f"m{number}", text=f"message {number} 🎉") for number in range(10)]
    parts[3] = Part("m3", text="ok \ud83d")
    parts[7] = Part("m7", author="An\0n", text="fine")

    report = memory.mirror("s1", parts)

    assert numbers(report) == (10, 0, 0)
    assert [remark.partition(":")[0] for remark in report.remarks] == ["parts[3]", "parts[7]"]
    stored = dict(texts(path))
    assert stored["m3"] == "ok \ufffd"
    assert column(path, "author", "m7") == "An\ufffdn"
    assert all(stored[part.id] == part.text for part in parts if part.id != "m3")
    assert numbers(memory.mirror("s1", parts)) == (0, 0, 10)


def test_a_part_of_100_kb_is_whole_and_found_by_its_last_word(memory, path):
    text = " ".join(f"filler{number % 500}" for number in range(10_000)) + " pelican"
    assert len(text) > 90_000

    memory.mirror("s1", [Part("m1", text=text), Part("m2", text="short")])

    assert texts(path)[0] == ("m1", text)
    assert found(memory, "pelican")[0] == "m1"
    memory.mirror("s1", [Part("m1", text="a heron")])
    assert found(memory, "pelican", mode="keyword") == []
    assert_index_equals_a_rebuild(memory)


def test_ten_thousand_parts_in_one_call(memory, path):
    parts = [Part(f"m{number}", text=f"w{number % 100} n{number}") for number in range(10_001)]
    assert numbers(memory.mirror("s1", parts)) == (10_001, 0, 0)

    parts[5_000:5_000] = [Part("new", text="w0 needle")]
    parts[0] = Part("m0", text="w0 edited")
    report = memory.mirror("s1", parts)

    assert numbers(report) == (1, 1, 10_000)
    assert ids(path) == [part.id for part in parts]
    assert found(memory, "needle", limit=1) == ["new"]
    assert found(memory, "n9999", mode="keyword") == ["m9999"]


@pytest.mark.sqlite
def test_what_moves_for_a_part_in_front_or_behind_one_that_goes_is_told_in_few_statements(memory, path):
    memory.mirror("s1", [Part(f"m{n}", text=f"text {n}") for n in range(500)])

    def statements(act):
        return len(plans_of_writing(memory, act))

    in_front = statements(lambda: memory.mirror("s1", [Part("new", text="new"), Part("m0", text="text 0")]))
    first = statements(lambda: memory.delete_parts("s1", "new"))
    last = statements(lambda: memory.delete_parts("s1", "m499"))

    assert max(in_front, first) < 40
    assert last < first
    assert ids(path) == [f"m{n}" for n in range(499)]


@pytest.mark.sqlite
def test_the_words_of_long_texts_are_made_before_anybody_has_to_wait(memory, monkeypatch):
    made = []
    tokens = text_index.tokens

    def noted(**texts):
        made.append(memory._store._writer.in_transaction)
        return tokens(**texts)

    monkeypatch.setattr(text_index, "tokens", noted)
    long = [Part(f"m{n}", text=f"word{n} " * 10_000) for n in range(3)]
    memory.mirror("s1", long)
    memory.mirror("s1", [*long, Part("m9", text="another " * 10_000)])

    assert made == [False] * 4


@given(st.lists(st.integers(0, 30), unique=True), st.integers(0, 30))
@settings(max_examples=30)
def test_places_close_up_behind_whatever_goes(gone, extra):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.db"
        with Memory.open(path) as memory:
            memory.mirror("s1", [Part(f"m{n}", text=f"text {n}") for n in range(30)])
            memory.delete_parts("s1", [f"m{n}" for n in (*gone, extra)])
        assert ids(path) == [f"m{n}" for n in range(30) if n not in (*gone, extra)]


# ---- failures and others


def test_what_fails_half_way_leaves_nothing(memory, path):
    memory.mirror("s1", LUNCH[:1])
    refuse(path, "INSERT ON parts", when="NEW.part = 'm3'")
    before = dump(path)

    with pytest.raises(StoreFailed):
        memory.mirror("s1", [Part("m1", text="edited"), *LUNCH[1:]], scope="alpha")
    with pytest.raises(StoreFailed):
        memory.mirror("s2", LUNCH)

    assert dump(path) == before
    assert found(memory, "ramen") == []


def test_a_block_around_it_that_is_rolled_back_leaves_nothing(memory, path):
    memory.mirror("s1", LUNCH[:1])
    before = dump(path)

    with contextlib.suppress(ZeroDivisionError), memory._store.write():
        memory.mirror("s1", [Part("m1", text="edited"), *LUNCH[1:]])
        memory.mirror("s2", LUNCH)
        raise ZeroDivisionError

    assert dump(path) == before


def test_a_source_of_parts_that_fails_leaves_nothing(memory, path):
    before = dump(path)

    def broken():
        yield LUNCH[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        memory.mirror("s1", broken())

    assert dump(path) == before


def test_several_processes_mirror_one_session_at_once(path):
    """Each tells what all share and what it alone saw, in small calls: nothing is lost, doubled or out of order."""
    script = """if True:
        import sys
        from graphmem import Memory, Part
        path, who = sys.argv[1:]
        with Memory.open(path) as memory:
            print("ready", flush=True)
            sys.stdin.read()
            for start in range(0, 40, 4):
                shared = [Part(f"all-{n:02}", text=f"shared {n}") for n in range(start, start + 4)]
                own = [Part(f"{who}-{n:02}", author=who, text=f"{who} says {n}") for n in range(start, start + 4)]
                memory.mirror("s1", [part for pair in zip(shared, own) for part in pair])"""
    Memory.open(path).close()
    others = [
        subprocess.Popen(
            [sys.executable, "-c", script, place_of(path), who],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("ann", "bob", "cid")
    ]
    for other in others:
        assert other.stdout.readline() == "ready\n"
    for other in others:
        other.stdin.close()
    assert [other.wait() for other in others] == [0, 0, 0]
    for other in others:
        other.stdout.close()

    order = ids(path)
    assert sorted(order) == sorted(f"{who}-{n:02}" for who in ("all", "ann", "bob", "cid") for n in range(40))
    for who in ("all", "ann", "bob", "cid"):
        own = [name for name in order if name.startswith(who)]
        assert own == sorted(own)
    with Memory.open(path) as memory:
        assert found(memory, "cid says 39")[0] == "cid-39"
        assert_index_equals_a_rebuild(memory)


# ---- any sequence of calls


class Model:
    """Sessions as plain lists of [id, author, text]."""

    def __init__(self):
        self.sessions = {}

    def mirror(self, session, told):
        """The rule, part by part: a new part goes behind the furthest known or new part that was told before it."""
        merged = {}
        for name, author, text in told:
            merged[name] = (author or merged.get(name, ("", ""))[0], text)
        if not merged:
            return 0, 0, 0
        order = self.sessions.setdefault(session, [])
        known = {row[0]: row for row in order}
        first = next((name for name in merged if name in known), None)
        place = len(order) if first is None else order.index(known[first])
        added = changed = 0
        for name, (author, text) in merged.items():
            if name in known:
                row = known[name]
                place = max(place, order.index(row) + 1)
                changed += row[1:] != [author or row[1], text]
                row[1:] = [author or row[1], text]
            else:
                order.insert(place, [name, author, text])
                place += 1
                added += 1
        return added, changed, len(merged) - added - changed

    def rows(self):
        return [(session, *row) for session in sorted(self.sessions) for row in self.sessions[session]]


def part_rows(path):
    return sql(
        path,
        """SELECT s.name, p.part, p.author, p.text FROM parts p JOIN sessions s ON s.id = p.session_id
           ORDER BY s.name, p.seq""",
    )


parts = st.tuples(
    st.sampled_from("abcdefgh"), st.sampled_from(["", "Ann", "Bob"]), st.sampled_from(["", "red", "a blue fox", "红色"])
)
calls = st.tuples(st.sampled_from(["s1", "s2"]), st.lists(parts, max_size=6))


@settings(max_examples=40)
@given(st.lists(calls, max_size=8))
def test_any_sequence_of_calls_leaves_what_a_plain_list_would_hold(calls):
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(path, clock=FakeClock()) as memory:
            for session, told in calls:
                report = memory.mirror(session, [Part(name, author=who, text=text) for name, who, text in told])

                assert numbers(report) == model.mirror(session, told)

            assert part_rows(path) == model.rows()
            for session in model.sessions:
                assert len(texts(path, session)) == len(model.sessions[session])
            assert {name for (name,) in sql(path, "SELECT name FROM sessions")} == set(model.sessions)
            assert_index_equals_a_rebuild(memory)


def test_two_parts_of_one_id_in_a_call_are_remarked(memory):
    report = memory.mirror("s", [Part(id="m", text="apple"), Part(id="m", text="banana")])

    assert report.added == 1
    assert "'m'" in report.remarks[0]
