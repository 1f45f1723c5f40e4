"""Remembering: notes, their slots and labels, and which of them recall finds."""

import contextlib
import itertools
import tempfile
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump, refuse, sql, text_index_of

from graphmem import InvalidInput, Memory, StoreFailed

KINDS = ["fact", "lesson", "rule", "preference", "decision", "pitfall", "checkpoint"]
STATUSES = ["live", "proposed", "archived", "superseded", "forgotten"]
NOW = "2026-09-07T08:00:00.000Z"


def found(memory, query, **options):
    return [hit.id for hit in memory.recall(query, kinds="note", **options)]


def stored(memory):
    """Id, status and successor of each note."""
    return sql(memory.path, "SELECT id, status, superseded_by FROM notes ORDER BY id")


def assert_index_equals_a_rebuild(memory):
    before = text_index_of(memory.path)
    memory.reindex()
    assert text_index_of(memory.path) == before


def test_a_note_holds_what_was_given(memory):
    body = "Never npm.\n  pnpm deploy"
    report = memory.remember(
        " Deploy with pnpm ", body=body, kind="lesson", slot="deploy", labels=["部署", "release"], scope="web",
        pinned=True, source="user:ann",
    )  # fmt: skip

    note = report.note
    assert (note.title, note.body, note.kind, note.slot) == ("Deploy with pnpm", body, "lesson", "deploy")
    assert (sorted(note.labels), note.scope, note.pinned, note.source) == (["release", "部署"], "web", True, "user:ann")
    assert (note.status, note.seen, note.superseded_by) == ("live", 1, None)
    assert (note.created_at, note.updated_at) == (NOW, NOW)
    assert (report.created, report.superseded, report.remarks) == (True, (), ())


def test_what_is_left_out_has_its_default(memory):
    note = memory.remember("Redis listens on 6380").note

    assert (note.body, note.kind, note.slot, note.labels, note.scope) == ("", "fact", "", (), "")
    assert (note.status, note.pinned, note.source) == ("live", False, "agent")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_kept_and_found(memory, kind):
    note = memory.remember("Redis listens on 6380", kind=kind, source="user").note

    assert note.kind == kind
    assert found(memory, "redis") == [note.id]


def test_the_same_title_of_another_kind_is_another_note(memory):
    made = {memory.remember("Redis listens on 6380", kind=kind).note.id for kind in KINDS}

    assert len(made) == len(KINDS)


@pytest.mark.parametrize("words", ["pnpm", "deployment", "部署", "never"])
def test_a_note_is_found_by_title_slot_labels_and_body(memory, words):
    note = memory.remember("Use pnpm", slot="deployment", labels="部署", body="Never use npm.").note
    memory.remember("Something else")

    assert found(memory, words, mode="keyword") == [note.id]


@pytest.mark.parametrize("status", STATUSES)
def test_recall_finds_live_notes_and_superseded_ones_where_it_asks_for_the_past(memory, status):
    note = memory.remember("The port is 6380", status=status).note

    assert note.status == status
    assert found(memory, "port") == [note.id] * (status == "live")
    assert found(memory, "the former port") == [note.id] * (status in ("live", "superseded"))
    assert_index_equals_a_rebuild(memory)
    assert found(memory, "port") == [note.id] * (status == "live")


def test_a_scoped_note_is_found_in_its_scope_alone(memory):
    web = memory.remember("The port is 6380", scope="web").note
    everywhere = memory.remember("The port is 6381").note

    assert sorted(found(memory, "port", scopes=["web"])) == [web.id, everywhere.id]
    assert found(memory, "port", scopes=["app"]) == [everywhere.id]


def test_a_scope_is_compared_as_it_is_given(memory):
    note = memory.remember("The port is 6380", scope=" web").note

    assert note.scope == " web"
    assert found(memory, "port", scopes=[" web"]) == [note.id]
    assert found(memory, "port", scopes=["web"]) == []


# ---- the same again


def test_the_same_note_again_is_seen_once_more(memory, clock):  # DUP-02
    first = memory.remember("Redis listens on 6380", scope="a", source="ann")
    clock.advance(hours=1)
    again = memory.remember("Redis listens on 6380  ", scope="a", source="bob")
    third = memory.remember(" REDIS  listens on 6380", scope="a")
    other = memory.remember("Redis listens on 6380", scope="b")

    assert [report.created for report in (first, again, third, other)] == [True, False, False, True]
    note = third.note
    assert (note.id, note.title, note.seen, note.source) == (first.note.id, "Redis listens on 6380", 3, "ann")
    assert (note.created_at, note.updated_at) == (NOW, "2026-09-07T09:00:00.000Z")
    assert other.note.seen == 1
    assert found(memory, "redis", scopes=["a"]) == [note.id]


@pytest.mark.parametrize("title", ["用 pnpm 部署", "用pnpm部署。", "用PNPM 部署 !"])
def test_spaces_beside_chinese_and_a_full_stop_make_no_other_note(memory, title):  # DUP-02
    first = memory.remember("用pnpm部署").note

    assert memory.remember(title).note.id == first.id
    assert memory.remember("用 npm 部署").created


@pytest.mark.parametrize("change", [{"body": "b"}, {"kind": "rule"}, {"slot": "s"}, {"status": "proposed"}])
def test_what_differs_is_another_note(memory, change):
    memory.remember("Redis listens on 6380")

    assert memory.remember("Redis listens on 6380", **change).created


def test_the_labels_of_the_same_note_are_united_and_found(memory):
    first = memory.remember("Use pnpm", labels=["部署", "release"]).note
    memory.remember("Something else")
    assert found(memory, "rollout", mode="keyword") == []

    report = memory.remember("use pnpm", labels=["Release", "rollout", "", "\u200b"])

    assert (report.created, report.note.id) == (False, first.id)
    assert sorted(report.note.labels) == ["release", "rollout", "部署"]
    for label in ("rollout", "部署", "release", "pnpm"):
        assert found(memory, label, mode="keyword") == [first.id]
    assert_index_equals_a_rebuild(memory)


def test_labels_of_one_key_are_one(memory):
    assert memory.remember("Use pnpm", labels=["Ship it", "ship  IT", " Ship it "]).note.labels == ("Ship it",)


def test_a_note_of_no_use_takes_labels_and_is_still_not_found(memory):
    memory.remember("Use pnpm", status="archived")

    assert memory.remember("Use pnpm", status="archived", labels="rollout").note.labels == ("rollout",)
    assert found(memory, "rollout pnpm") == []
    assert_index_equals_a_rebuild(memory)


def test_a_note_is_pinned_later_and_stays_so(memory):
    assert not memory.remember("Use pnpm").note.pinned
    assert memory.remember("Use pnpm", pinned=True, source="user").note.pinned
    assert memory.remember("Use pnpm").note.pinned
    assert [hit.pinned for hit in memory.recall("pnpm", kinds="note")] == [True]


def test_pinned_notes_come_first_where_precision_is_wanted(memory):
    for number in range(3):
        memory.remember(f"Install packages in way {number}", labels="pnpm")
    pinned = memory.remember("Lock the versions", labels="pnpm", pinned=True, source="user").note

    assert found(memory, "pnpm", precise=True, limit=1) == [pinned.id]


def test_a_note_that_was_put_away_does_not_stop_a_new_one(memory):
    for status in ("archived", "forgotten", "proposed"):
        memory.remember("Use pnpm", status=status)

    report = memory.remember("Use pnpm")

    assert (report.created, report.superseded, report.note.status) == (True, (), "live")


# ---- slots


def test_a_new_note_takes_the_slot_of_its_scope(memory):
    old = memory.remember("Use npm", slot="Deploy", scope="web").note
    apart = [memory.remember("Use npm", slot="deploy", scope=scope).note.id for scope in (None, "app")]

    report = memory.remember("Use pnpm", slot=" deploy ", scope="web")

    assert report.superseded == (old.id,)
    assert stored(memory) == [
        (old.id, "superseded", report.note.id),
        *((note_id, "live", None) for note_id in apart),
        (report.note.id, "live", None),
    ]
    assert found(memory, "deploy", scopes=["web"]) == [report.note.id]
    assert found(memory, "deploy", scopes=["docs"]) == [apart[0]]


def test_notes_without_a_slot_do_not_supersede_each_other(memory):
    memory.remember("Use npm")

    assert memory.remember("Use pnpm").superseded == ()
    assert memory.remember("Use yarn", slot="\u200b").superseded == ()


@pytest.mark.parametrize("status", STATUSES[1:])
def test_a_note_that_is_not_live_takes_no_slot(memory, status):
    live = memory.remember("Use npm", slot="deploy").note

    report = memory.remember("Use pnpm", slot="deploy", status=status)

    assert (report.created, report.superseded, report.note.status) == (True, (), status)
    assert found(memory, "deploy") == [live.id]


def test_a_chain_of_notes_of_one_slot_is_followed_back(memory, clock):
    made = []
    for tool in ("npm", "yarn", "pnpm"):
        made.append(memory.remember(f"Deploy with {tool}", slot="deploy").note.id)
        clock.advance(days=1)

    assert stored(memory) == [(1, "superseded", 2), (2, "superseded", 3), (3, "live", None)]
    assert found(memory, "deploy") == [made[2]]
    assert sorted(found(memory, "what was replaced by deploy with pnpm")) == made
    assert found(memory, "deploy", as_of="2026-09-07T09:00:00Z") == [made[0]]
    assert found(memory, "deploy", as_of="2026-09-08T09:00:00Z") == [made[1]]
    assert found(memory, "deploy", as_of="2026-09-06") == []


def test_a_value_that_comes_back_is_a_new_note(memory):
    first = memory.remember("Use npm", slot="deploy").note
    second = memory.remember("Use pnpm", slot="deploy").note

    third = memory.remember("Use npm", slot="deploy")

    assert (third.created, third.superseded) == (True, (second.id,))
    assert stored(memory) == [(first.id, "superseded", 2), (2, "superseded", 3), (3, "live", None)]


def test_the_same_note_in_its_slot_is_seen_once_more(memory):
    first = memory.remember("Use npm", slot="deploy").note

    again = memory.remember("use  NPM", slot="DEPLOY", labels="ship", pinned=True, source="user")

    assert (again.created, again.superseded, again.note.id, again.note.seen) == (False, (), first.id, 2)
    assert (again.note.labels, again.note.pinned) == (("ship",), True)


def test_a_superseded_note_keeps_its_own_time(memory, clock):
    memory.remember("Use npm", slot="deploy")
    clock.advance(days=30)
    memory.remember("Use pnpm", slot="deploy")

    hits = {hit.text: hit.at for hit in memory.recall("deploy, formerly npm, previously", kinds="note")}

    assert hits == {"Use npm": NOW, "Use pnpm": "2026-10-07T08:00:00.000Z"}


# ---- the time of a note


def test_a_note_of_the_past_that_is_imported_late_changes_nothing_now(memory):
    live = memory.remember("Use pnpm", slot="deploy", at="2026-09-01").note

    late = memory.remember("Use npm", slot="deploy", at="2026-01-01")

    assert (late.created, late.superseded) == (True, ())
    assert (late.note.status, late.note.superseded_by, late.note.created_at[:10]) == (
        "superseded",
        live.id,
        "2026-01-01",
    )
    assert found(memory, "deploy") == [live.id]
    assert found(memory, "deploy", as_of="2026-03-01") == [late.note.id]


def test_a_note_goes_to_its_place_among_those_before(memory):
    for title, at in (("A", "2026-01-01"), ("C", "2026-03-01"), ("B", "2026-02-01"), ("early", "2025-01-01")):
        memory.remember(f"Use {title}", slot="deploy", at=at)

    assert stored(memory) == [
        (1, "superseded", 3),
        (2, "live", None),
        (3, "superseded", 2),
        (4, "superseded", 1),
    ]
    asked = [found(memory, "deploy", as_of=at) for at in ("2025-06-01", "2026-01-15", "2026-02-15", "2026-03-15")]
    assert asked == [[4], [1], [3], [2]]


def test_a_log_that_is_imported_again_makes_no_note_anew(memory):
    log = [("Use npm", "2026-01-01"), ("Use yarn", "2026-02-01"), ("Use npm", "2026-03-01")]
    for title, at in log:
        assert memory.remember(title, slot="deploy", at=at).created
    before = stored(memory)

    for title, at in log:
        assert not memory.remember(title, slot="deploy", at=at).created

    assert stored(memory) == before


def test_the_same_note_told_for_an_earlier_time_holds_since_then(memory):
    memory.remember("Use pnpm", slot="deploy", at="2026-09-01")
    memory.remember("The boss likes tea", at="2026-09-01")

    for title, slot in (("Use pnpm", "deploy"), ("The boss likes tea", "")):
        report = memory.remember(title, slot=slot, at="2026-03-01")
        assert (report.created, report.note.created_at[:10]) == (False, "2026-03-01")
        assert report.note.updated_at[:10] == "2026-09-01"

    assert found(memory, "tea", as_of="2026-05-01") == [2]


def test_a_note_without_a_time_takes_the_slot_also_of_one_of_the_future(memory):
    """Clocks of two machines differ: what is told last counts."""
    ahead = memory.remember("Use npm", slot="deploy", at="2026-09-07T08:01:00Z").note

    assert memory.remember("Use pnpm", slot="deploy").superseded == (ahead.id,)
    assert found(memory, "deploy") == [2]


def test_before_the_time_of_a_note_of_the_future_the_one_before_it_holds(memory):
    now = memory.remember("Use npm", slot="deploy").note
    later = memory.remember("Use pnpm", slot="deploy", at="2026-10-01").note

    assert found(memory, "deploy", as_of="2026-09-10") == [now.id]
    assert found(memory, "deploy", as_of="2026-10-01") == [later.id]


def test_a_bare_date_and_an_offset_are_read(memory):
    assert memory.remember("a tea", at="2026-01-01").note.created_at == "2026-01-01T00:00:00.000Z"
    assert memory.remember("b tea", at="2026-01-01T08:00:00+08:00").note.created_at == "2026-01-01T00:00:00.000Z"


# ---- what cannot be used


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("title", {"title": ""}),
        ("title", {"title": " \n"}),
        ("title", {"title": "\u200b\u00ad"}),
        ("title", {"title": None}),
        ("body", {"body": 7}),
        ("kind", {"kind": "Fact"}),
        ("kind", {"kind": ["fact"]}),
        ("slot", {"slot": None}),
        ("labels", {"labels": 7}),
        ("labels", {"labels": ["a", None]}),
        ("scope", {"scope": 7}),
        ("pinned", {"pinned": 1}),
        ("status", {"status": "active"}),
        ("source", {"source": None}),
        ("at", {"at": "yesterday"}),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_changes_nothing(memory, path, argument, given):
    before = dump(path)

    with pytest.raises(InvalidInput) as caught:
        memory.remember(**{"title": "Use pnpm", **given})

    assert caught.value.argument == argument
    assert dump(path) == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"title": "ok \ud83d"}, True),
        ({"title": "already \ufffd and \0"}, True),
        ({"title": "ok", "body": "half \ud83d"}, True),
        ({"title": "ok", "labels": ["a\0b"]}, True),
        ({"title": "ok", "slot": "s\0"}, True),
        ({"title": "ok", "load_when": "deploy\ud83d now"}, True),
        ({"title": "ok", "load_when": ["deploy", "tool:sh\0"]}, True),
        ({"title": "ok \ufffd 🎉 ", "labels": ["\u200b"], "load_when": [" a\u200b "]}, False),
    ],
)
def test_characters_that_cannot_be_stored_are_replaced_with_a_remark(memory, given, told):
    report = memory.remember(**given)

    assert [("U+FFFD" in remark) for remark in report.remarks] == [True] * told
    assert report.note.title == given["title"].replace("\ud83d", "\ufffd").replace("\0", "\ufffd").strip()
    again = memory.remember(**given)
    assert (again.created, again.remarks) == (False, report.remarks)


def test_what_fails_half_way_leaves_nothing(memory, path):
    memory.remember("Use npm", slot="deploy")
    refuse(path, "INSERT ON note_labels")
    before = dump(path)

    with pytest.raises(StoreFailed):
        memory.remember("Use pnpm", slot="deploy", labels="ship")
    with pytest.raises(StoreFailed):
        memory.remember("Use npm", slot="deploy", labels="ship")

    assert dump(path) == before


def test_a_block_around_it_that_is_rolled_back_leaves_nothing(memory, path):
    memory.remember("Use npm", slot="deploy")
    before = dump(path)

    with contextlib.suppress(ZeroDivisionError), memory._store.write():
        memory.remember("Use pnpm", slot="deploy", labels="ship")
        raise ZeroDivisionError

    assert dump(path) == before


# ---- any sequence of calls


class Model:
    """Notes as dictionaries; those of a slot as a list in the order of their times."""

    def __init__(self):
        self.notes = []
        self.slots = {}

    def remember(self, title, slot, scope, status, labels, pinned, now, at):
        given = {"title": title, "slot": slot, "scope": scope, "status": status}
        told = at or now
        chain = self.slots.setdefault((scope, slot), []) if slot and status == "live" else None
        if chain is None:
            same = next((note for note in self.notes if all(note[name] == given[name] for name in given)), None)
        else:
            place = len(chain)
            while at and place and chain[place - 1]["created"] > at:
                place -= 1
            beside = chain[max(place - 1, 0) : place + 1]
            same = next((note for note in beside if note["title"] == title), None)
        if same:
            same["seen"] += 1
            same["labels"] |= labels
            same["pinned"] |= pinned
            same["created"] = min(same["created"], told)
            return same, False
        note = {**given, "labels": set(labels), "pinned": pinned, "seen": 1, "created": told, "id": len(self.notes) + 1}
        self.notes.append(note)
        if chain is not None:
            chain.insert(place, note)
            for one in chain:
                one["status"] = "live" if one is chain[-1] else "superseded"
        return note, True

    def rows(self):
        after = {one["id"]: later["id"] for chain in self.slots.values() for one, later in itertools.pairwise(chain)}
        names = ["id", "title", "slot", "scope", "status", "seen", "pinned", "created"]
        return [
            (*(note[name] for name in names), "".join(sorted(note["labels"])), after.get(note["id"]))
            for note in self.notes
        ]


def note_rows(path):
    return sql(
        path,
        """SELECT id, lower(title), lower(slot), scope, status, seen, pinned, created_at,
               COALESCE((SELECT group_concat(label, '') FROM note_labels WHERE note_id = id), ''), superseded_by
           FROM notes ORDER BY id""",
    )


calls = st.tuples(
    st.sampled_from(["use npm", "use pnpm", "用 yarn"]),
    st.sampled_from(["", "deploy", "deploy", "build"]),
    st.sampled_from(["", "web"]),
    st.sampled_from(["live", "live", "live", "proposed"]),
    st.sets(st.sampled_from(["ship", "部署"]), max_size=1),
    st.booleans(),
    st.sampled_from([None, None, *(f"2026-09-{day:02}T00:00:00.000Z" for day in (1, 3, 8, 12))]),
)


def remember_in_both(memory, model, call):
    """The id of a note, and whether it is new, as the memory and as the model tell it."""
    title, slot, scope, status, labels, pinned, at = call
    now = memory._clock().strftime("%Y-%m-%dT%H:%M:%S.000Z")
    report = memory.remember(
        title.title(), slot=slot.upper(), scope=scope, status=status, labels=labels, pinned=pinned, source="user",
        at=at,
    )  # fmt: skip
    note, created = model.remember(title, slot, scope, status, labels, pinned, now, at)
    return (report.note.id, report.created), (note["id"], created)


@settings(max_examples=40)
@given(st.lists(calls, max_size=10))
def test_any_sequence_of_calls_leaves_what_the_model_says(calls):
    model = Model()
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "memory.db", clock=clock) as memory:
        for call in calls:
            told, expected = remember_in_both(memory, model, call)
            assert told == expected
            clock.advance(days=1)

        assert note_rows(memory.path) == model.rows()
        assert_index_equals_a_rebuild(memory)


def test_notes_are_listed_a_page_at_a_time(memory):
    ids = [memory.remember(f"Fact {i}").note.id for i in range(5)]

    assert [note.id for note in memory.notes(limit=2)] == [ids[4], ids[3]]
    assert [note.id for note in memory.notes(limit=2, skip=2)] == [ids[2], ids[1]]
    assert [note.id for note in memory.notes(skip=4)] == [ids[0]]
    assert memory.notes(skip=5) == ()
    with pytest.raises(InvalidInput, match="skip"):
        memory.notes(skip=-1)


def test_notes_are_listed_by_their_ids(memory):
    fact, lesson = memory.remember("Fact").note, memory.remember("Lesson", kind="lesson").note
    away = memory.inspect(memory.forget(memory.remember("Away").note.id).id).note
    other = memory.remember("Other", scope="project:other").note
    every = [fact.id, lesson.id, away.id, other.id, 99]

    assert memory.notes(note_ids=every) == (lesson, fact)
    assert memory.notes(note_ids=iter(every), statuses=(), scopes=["all"]) == (other, away, lesson, fact)
    assert memory.notes(note_ids=every, kinds="lesson", scopes=["project:other"]) == (lesson,)
    assert memory.notes(note_ids=every, limit=1, skip=1) == (fact,)
    assert memory.notes(note_ids=[]) == ()
    for wrong in ([0], ["1"], 3, "12"):
        with pytest.raises(InvalidInput, match="note_ids"):
            memory.notes(note_ids=wrong)


def test_notes_of_a_scope_are_listed_without_those_of_the_user(memory):
    own, other = memory.remember("Own").note, memory.remember("Other", scope="project:other").note
    kept = {"scopes": ["project:other"], "exact": True}

    assert memory.notes(**kept) == (other,)
    assert memory.notes(scopes=["user"], exact=True) == (own,)
    assert memory.notes(scopes=["user", "project:other"], exact=True) == (other, own)
    assert memory.notes(scopes=["all"], exact=True) == (other, own)
    assert memory.notes(exact=True) == memory.notes(scopes=["project:unknown"], exact=True) == ()
    assert memory.notes(note_ids=[own.id, other.id], **kept) == (other,)
    with pytest.raises(InvalidInput, match="exact"):
        memory.notes(exact=1)


def test_any_number_of_notes_is_listed_by_id_in_one_read(memory):
    note = memory.remember("Fact").note

    assert memory.notes(note_ids=range(1, 100_000), limit=100_000) == (note,)
