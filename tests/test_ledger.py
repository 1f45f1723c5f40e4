"""The ledger: who may write what binds, what a person decides, where notes come back, and what is left of them."""

import dataclasses

import pytest
from support import dump, sql, traces_of

from graphmem import Config, Conflict, InvalidInput, Memory, NotFound, Part, SecretRefused, Situation

NOW = "2026-09-07T08:00:00.000Z"
BOSS = Situation.of(chan="qq", peer="boss")
ANN = Situation.of(chan="qq", peer="ann")


def titles(notes):
    return [note.title for note in notes]


def here(memory, situation=BOSS, **options):
    return memory.recall_by_situation(situation, **options).notes


def rule(memory, title="Never force push", **options):
    return memory.remember(title, kind="rule", **{"source": "user", **options}).note


def proposal(memory, title="Always use pnpm", **options):
    return memory.remember(title, kind="rule", source="agent", **options).note


def rows_of_notes(path):
    tables = ("notes", "note_labels", "note_triggers")
    return [sql(path, f"SELECT * FROM {table}") for table in tables]


# ---- what a note holds


def test_a_note_holds_its_reason_and_where_it_comes_from(memory):
    note = memory.remember(
        "Deploy with pnpm", body="npm breaks the lock file", summary="pnpm for all deployments", highlight="pnpm only",
        load_when=["发布", "Tool:Shell"], reason="npm broke the build", source="user:ann", session="s1", message="m3",
        place="/work/web",
    ).note  # fmt: skip

    assert (note.summary, note.highlight, note.reason) == (
        "pnpm for all deployments",
        "pnpm only",
        "npm broke the build",
    )
    assert note.load_when == ("tool:shell", "发布")
    origin = note.origin
    assert (origin.seq, origin.act, origin.actor, origin.place) == (0, "remember", "user:ann", "/work/web")
    assert (origin.session, origin.message, origin.reason, origin.at) == ("s1", "m3", "npm broke the build", NOW)
    assert memory.inspect(note.id).note == note


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_a_reason_a_note_has_that_of_its_kind(tmp_path, language):  # C8.4
    with Memory.open(tmp_path / "m.db", config=Config(language=language)) as memory:
        reasons = {memory.remember("x", kind=kind).note.reason for kind in ("fact", "lesson", "rule", "decision")}

    assert len(reasons) == 4
    assert all(reason.isascii() == (language == "en") for reason in reasons)


def test_the_origin_stays_and_the_reason_may_change(memory, clock):  # C8.3
    note = memory.remember("Pen name: 墨白", reason="said so", session="s1", place="/work/a", source="user").note
    clock.advance(days=1)

    edited = memory.edit_note(note.id, reason="signs books", session="s2", place="/work/b").note

    assert (edited.reason, edited.origin) == ("signs books", note.origin)
    acts = memory.inspect(note.id).acts
    assert [(act.seq, act.act, act.place, act.session, act.reason) for act in acts] == [
        (0, "remember", "/work/a", "s1", "said so"),
        (1, "edit", "/work/b", "s2", "signs books"),
    ]


def test_every_hit_shows_reason_and_place(memory):  # C8.20
    memory.remember("Deploy with pnpm", reason="npm broke", place="/work/web")

    (hit,) = memory.recall("pnpm", kinds="note")

    assert (hit.reason, hit.place) == ("npm broke", "/work/web")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("load_when", ["!!!"]),
        ("load_when", [f"word{number}" for number in range(9)]),
        ("load_when", 3),
        ("summary", "x" * 101),
        ("highlight", None),
        ("reason", 3),
        ("quote", "ok"),
        ("quote", 3),
        ("said", 3),
        ("session", 3),
        ("place", None),
    ],
)
def test_what_a_note_cannot_hold_is_refused(memory, argument, value):
    before = dump(memory.path)

    with pytest.raises(InvalidInput, match=argument):
        memory.remember("x", **{argument: value})

    assert dump(memory.path) == before


# ---- what binds


def test_an_agent_can_only_propose_a_rule(memory):
    report = memory.remember("Always use pnpm", kind="rule")

    assert (report.note.status, report.created) == ("proposed", True)
    assert any("approves" in remark for remark in report.remarks)
    assert here(memory) == ()
    assert memory.recall("pnpm") == ()
    assert memory.rules_for(BOSS, text="pnpm") == ()
    assert titles(memory.inspect().proposals) == ["Always use pnpm"]


@pytest.mark.parametrize("source", ["agent", "tool:shell", "import", "extractor", "agent:user", ""])
def test_only_a_person_makes_a_rule_or_a_pin(memory, source):
    report = memory.remember("Always use pnpm", kind="rule", pinned=True, source=source)

    assert (report.note.status, report.note.pinned, len(report.remarks)) == ("proposed", False, 2)


def test_a_rule_of_a_person_is_in_force(memory):
    note = rule(memory, pinned=True)

    assert (note.status, note.pinned) == ("live", True)
    assert titles(here(memory)) == ["Never force push"]


def test_a_constraint_is_a_persons_too(memory):
    assert memory.remember("Pen name: 墨白", slot="Pen_Name").note.status == "proposed"
    assert memory.remember("Pen name: 墨白", slot="pen_name", source="user").note.status == "live"


def test_a_constraint_of_a_slot_is_superseded_and_kept(memory):  # C8.2
    old = memory.remember("墨白", slot="pen_name", source="user").note
    new = memory.remember("青石", slot="pen_name", source="user")

    assert new.superseded == (old.id,)
    assert [hit.text for hit in memory.recall("pen_name", kinds="note")] == ["青石"]
    assert titles(memory.inspect(new.note.id).versions) == ["墨白"]
    assert [hit.text for hit in memory.recall("former pen_name", kinds="note")].count("墨白") == 1


def test_a_quoted_statement_of_the_user_backs_a_rule(memory):
    report = memory.remember(
        "Answer in Chinese", kind="rule", pinned=True, quote="以后都用中文回答", said="好。 以后都用中文回答，谢谢"
    )

    assert (report.note.status, report.note.pinned) == ("live", True)
    assert report.note.origin.quote == "以后都用中文回答"


def test_a_quote_is_looked_for_in_what_the_user_said_in_the_session(memory):
    memory.mirror(
        "s1",
        [
            Part("m1", role="user", text="Always  use PNPM here"),
            Part("m2", role="assistant", text="I will never use npm"),
            Part("m3", role="tool", text="always deploy on friday"),
        ],
    )

    assert memory.remember("pnpm", kind="rule", quote="always use pnpm", session="s1").note.status == "live"
    for quote in ("never use npm", "always deploy on friday", "use yarn instead"):
        report = memory.remember(quote, kind="rule", quote=quote, session="s1")
        assert (report.note.status, report.note.origin.quote) == ("proposed", "")
        assert any("quote" in remark for remark in report.remarks)
    assert memory.remember("x", kind="rule", quote="always use pnpm", session="s2").note.status == "proposed"


def test_without_a_session_a_quote_is_looked_for_where_the_user_spoke_last(memory, clock):
    memory.mirror("s1", [Part("m1", role="user", text="Always use pnpm here")])
    assert memory.remember("pnpm", kind="rule", quote="always use pnpm").note.status == "live"

    memory.mirror("s2", [Part("m2", role="user", text="Run the tests")])
    assert memory.remember("use pnpm", kind="rule", quote="always use pnpm").note.status == "proposed"
    memory.mirror("s1", [Part("m3", role="user", text="Thanks")])
    clock.advance(hours=2)
    assert memory.remember("pnpm here", kind="rule", quote="always use pnpm").note.status == "proposed"


def test_what_a_person_approves_is_in_force_at_once(memory, clock):  # A6.13
    note = proposal(memory)
    clock.advance(hours=1)

    report = memory.approve(note.id, reason="yes")

    assert (report.note.status, report.created) == ("live", False)
    assert titles(here(memory)) == ["Always use pnpm"]
    assert [(act.act, act.actor, act.reason) for act in memory.inspect(note.id).acts[1:]] == [
        ("approve", "user", "yes")
    ]
    assert [hit.id for hit in memory.recall("pnpm")] == [note.id]


def test_what_is_rejected_is_gone_and_not_proposed_again(memory):  # A6.13
    note = proposal(memory)

    assert memory.reject(note.id).status == "forgotten"
    again = memory.remember("always  use PNPM", kind="rule", body="a new body")

    assert (again.created, again.note.id, again.note.status) == (False, note.id, "forgotten")
    assert any("rejected" in remark for remark in again.remarks)
    assert memory.inspect().proposals == ()
    assert here(memory) == ()


def test_what_is_rejected_stays_so_until_it_is_approved(memory):
    note = proposal(memory)
    memory.reject(note.id)

    with pytest.raises(Conflict, match="is rejected already: 'approve' takes that back"):
        memory.reject(note.id)
    with pytest.raises(Conflict, match="'approve' takes that back"):
        memory.forget(note.id)
    with pytest.raises(Conflict, match="is rejected, not archived: 'approve' takes that back"):
        memory.restore_note(note.id)
    assert proposal(memory).status == "forgotten"

    assert memory.approve(note.id).note.status == "live"
    assert titles(here(memory)) == ["Always use pnpm"]


@pytest.mark.parametrize("verb", ["approve", "reject", "restore_note"])
def test_what_was_superseded_is_told_with_its_remedy(memory, verb):
    old = memory.remember("Use npm", slot="tool").note
    new = memory.remember("Use pnpm", slot="tool").note

    with pytest.raises(Conflict, match=rf"superseded by note {new.id}, not .*remember it anew"):
        getattr(memory, verb)(old.id)
    if verb == "approve":
        memory.forget(old.id)
        with pytest.raises(Conflict, match="is archived, not proposed: 'restore_note' brings it back"):
            memory.approve(old.id)


def test_no_edit_makes_one_note_of_two(memory):
    one = memory.remember("Use npm").note
    other = memory.remember("Use pnpm", labels="tool").note

    with pytest.raises(Conflict, match=f"note {one.id} says the same"):
        memory.edit_note(other.id, title="use  NPM.")
    assert memory.edit_note(other.id, title="use npm", body="or pnpm").operation
    assert memory.edit_note(other.id, labels="package").operation


@pytest.mark.parametrize("verb", ["restore_note", "approve"])
def test_what_comes_back_makes_no_twin_of_what_was_told_anew(memory, verb):
    old = proposal(memory)
    memory.reject(old.id) if verb == "approve" else memory.forget(memory.approve(old.id).note.id)
    new = rule(memory, "Always use pnpm")

    with pytest.raises(Conflict, match=f"note {new.id} says the same"):
        getattr(memory, verb)(old.id)


def test_a_person_may_still_say_what_was_rejected(memory):
    memory.reject(proposal(memory).id)

    assert rule(memory, "Always use pnpm").status == "live"


def test_a_proposal_that_the_user_says_is_in_force(memory):
    note = proposal(memory)

    report = memory.remember("Always use pnpm", kind="rule", source="user")

    assert (report.created, report.note.id, report.note.status) == (False, note.id, "live")
    assert any("in force" in remark for remark in report.remarks)


def test_what_is_in_force_is_not_proposed_again(memory):
    note = rule(memory, "Always use pnpm")

    report = memory.remember("Always use pnpm", kind="rule", body="since npm breaks")

    assert (report.created, report.note.id, report.note.status) == (False, note.id, "live")
    assert memory.inspect().proposals == ()


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_what_is_not_proposed_again_keeps_its_other_remarks(memory, verb):
    getattr(memory, verb)(proposal(memory).id)

    again = memory.remember("Always use pnpm", kind="rule", source="agent", body="half \ud83d", pinned=True)

    # It is no proposal that waits for a person.
    stays = "in force already" if verb == "approve" else "rejected before"
    assert [sum(word in remark for remark in again.remarks) for word in ("U+FFFD", "not pinned", stays)] == [1, 1, 1]
    assert len(again.remarks) == 3


def test_a_proposal_that_comes_into_force_tells_what_was_left_out(memory):
    triggers = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    proposal(memory, load_when=triggers)

    report = memory.remember("Always use pnpm", kind="rule", source="user", load_when="deploy")

    assert ["left out" in remark for remark in report.remarks] == [True, False]


def test_the_same_proposal_is_seen_once_more(memory):
    note = proposal(memory)

    assert (proposal(memory).id, memory.inspect(note.id).note.seen) == (note.id, 2)


def test_an_approved_rule_takes_the_slot(memory):
    old = rule(memory, "Use npm", slot="tool")
    new = proposal(memory, "Use pnpm", slot="tool")

    assert memory.approve(new.id).superseded == (old.id,)
    assert memory.inspect(old.id).note.status == "superseded"
    assert memory.inspect(old.id).note.superseded_by == new.id


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_only_a_person_decides_and_only_on_proposals(memory, verb):
    note = proposal(memory)
    for source in ("agent", "tool", "import", ""):
        with pytest.raises(InvalidInput, match="person"):
            getattr(memory, verb)(note.id, source=source)
    with pytest.raises(NotFound, match="note 99"):
        getattr(memory, verb)(99)
    live = rule(memory)
    with pytest.raises(Conflict, match="not proposed"):
        getattr(memory, verb)(live.id)
    assert memory.inspect(note.id).note.status == "proposed"


# ---- forgetting


def test_what_is_forgotten_is_archived_and_comes_back(memory):  # C8.18, A6.20
    note = memory.remember("pelican-42", scenes="chan:qq").note

    report = memory.forget(note.id, reason="wrong")

    assert (report.title, report.hard) == ("pelican-42", False)
    assert memory.recall("pelican") == ()
    assert memory.recall_by_scene("chan:qq").notes == ()
    assert titles(memory.notes(statuses="archived")) == ["pelican-42"]
    assert [act.act for act in memory.inspect(note.id).acts] == ["remember", "forget"]
    with pytest.raises(Conflict, match="archived already"):
        memory.forget(note.id)

    assert memory.restore_note(note.id).status == "live"
    assert [hit.id for hit in memory.recall("pelican")] == [note.id]
    with pytest.raises(Conflict, match="not archived"):
        memory.restore_note(note.id)


def test_what_is_forgotten_for_good_leaves_no_trace(memory):  # FTS-08
    note = memory.remember(
        "pelican-42", body="secretword", labels="birdname", load_when="nestcall", slot="wingspan",
        reason="featherquill", session="beakline", place="/talon", scenes="chan:qq",
    ).note  # fmt: skip
    later = memory.remember("pelican-43", slot="wingspan").note
    memory.recall("pelican former")

    assert memory.forget(note.id, hard=True).hard

    with pytest.raises(NotFound):
        memory.inspect(note.id)
    assert memory.inspect(later.id).versions == ()
    fresh = memory.remember("plain note").note
    assert fresh.id > later.id
    assert [hit.id for hit in memory.recall("pelican")] == [later.id]
    assert memory.check().ok
    memory.close()
    for word in ("pelican-42", "secretword", "birdname", "nestcall", "featherquill", "beakline", "/talon"):
        assert traces_of(memory.path, word) == ()


def test_a_restored_note_cannot_take_a_slot_that_another_has(memory):
    old = memory.remember("Use npm", slot="tool").note
    memory.forget(old.id)
    memory.remember("Use pnpm", slot="tool")

    with pytest.raises(Conflict, match="has the slot"):
        memory.restore_note(old.id)


def test_a_restored_proposal_is_a_proposal(memory):
    note = proposal(memory)
    memory.forget(note.id)

    assert memory.restore_note(note.id).status == "proposed"
    approved = memory.approve(note.id).note
    memory.forget(approved.id)
    assert memory.restore_note(note.id).status == "live"


@pytest.mark.parametrize("verb", ["forget", "restore_note", "edit_note"])
def test_unknown_notes_are_not_found(memory, verb):
    options = {"title": "x"} if verb == "edit_note" else {}
    with pytest.raises(NotFound, match="note 7"):
        getattr(memory, verb)(7, **options)
    with pytest.raises(InvalidInput, match="note_id"):
        getattr(memory, verb)("7", **options)


# ---- editing


def test_an_edit_changes_what_is_given_alone(memory, clock):  # C8.16
    note = memory.remember("Use npm", body="b", slot="tool", labels=["ship", "send"], load_when="发布").note
    clock.advance(days=1)

    pinned = memory.edit_note(note.id, pinned=True).note

    assert dataclasses.replace(pinned, pinned=False, updated_at=note.updated_at) == note
    edited = memory.edit_note(note.id, title="Use pnpm", labels=["send", "rollout"], load_when=()).note
    assert (edited.title, edited.body, edited.labels, edited.load_when) == ("Use pnpm", "b", ("rollout", "send"), ())
    assert [hit.id for hit in memory.recall("rollout", kinds="note")] == [note.id]
    assert memory.recall("ship npm", kinds="note", mode="keyword") == ()
    assert memory.check().ok


def test_an_edit_is_undone(memory):
    note = memory.remember("Use npm", labels="ship", load_when="发布").note
    before = rows_of_notes(memory.path)

    report = memory.edit_note(note.id, title="Use pnpm", labels="rollout", load_when="deploy")
    memory.undo(report.operation)

    assert rows_of_notes(memory.path) == before
    assert [hit.id for hit in memory.recall("ship", kinds="note")] == [note.id]


def test_an_edit_of_labels_alone_is_undone_in_the_index_too(memory):
    note = memory.remember("Use npm", labels="ship").note

    memory.undo(memory.edit_note(note.id, labels="rollout").operation)

    assert [hit.id for hit in memory.recall("ship", kinds="note")] == [note.id]
    assert memory.check().ok


def test_an_edit_that_changes_nothing_is_no_operation(memory):
    note = memory.remember("Use npm", labels="ship").note
    before = dump(memory.path)

    assert memory.edit_note(note.id, title="Use npm", labels="ship").operation is None
    assert dump(memory.path) == before


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"title": ""}, "title"),
        ({"kind": "x"}, "kind"),
        ({"pinned": 1}, "pinned"),
        ({}, "changes"),
        ({"id": 3}, "changes"),
    ],
)
def test_an_edit_refuses_what_no_note_can_have(memory, changes, told):  # C8.16
    note = memory.remember("Use npm").note
    before = dump(memory.path)

    with pytest.raises(InvalidInput, match=told):
        memory.edit_note(note.id, **changes)

    assert dump(memory.path) == before


def test_an_agent_does_not_edit_what_binds(memory):
    note = rule(memory)
    for changes in ({"title": "Force push"}, {"body": "but on friday"}, {"kind": "fact"}):
        with pytest.raises(Conflict, match="a person changes it"):
            memory.edit_note(note.id, source="agent", **changes)
    fact = memory.remember("Use npm").note
    for changes in ({"kind": "rule"}, {"pinned": True}, {"slot": "signature"}):
        with pytest.raises(Conflict, match="a person changes it"):
            memory.edit_note(fact.id, source="agent", **changes)
    assert memory.edit_note(note.id, source="agent", labels="git").note.labels == ("git",)
    assert memory.edit_note(fact.id, source="agent", title="Use pnpm").note.title == "Use pnpm"


def test_an_edit_takes_no_slot_that_is_taken(memory):
    memory.remember("Use npm", slot="tool")
    other = memory.remember("Use pnpm").note

    with pytest.raises(Conflict, match="has the slot"):
        memory.edit_note(other.id, slot="tool")


# ---- where notes come back


def test_a_note_comes_back_with_its_scene_alone(memory):
    memory.remember("Tea at four", scenes="chan:qq")

    assert titles(memory.recall_by_scene("chan:qq").notes) == ["Tea at four"]
    assert memory.recall_by_scene("chan:qq").notes[0].ground == "scene"
    assert titles(here(memory, declared="chan:qq")) == ["Tea at four"]
    assert memory.recall_by_scene("chan:wechat").notes == ()
    assert here(memory, Situation.of(chan="wechat")) == ()


def test_a_note_written_in_a_grown_scene_comes_back_with_its_situation(memory):
    for _ in range(2):
        visit = memory.enter_scene(BOSS)
    memory.remember("Tea at four", scenes=visit.write_keys)

    assert titles(here(memory)) == ["Tea at four"]
    assert [hit.kind for hit in memory.recall("", situation=BOSS)] == ["note"]
    assert here(memory, ANN) == ()
    assert memory.recall("tea", situation=ANN) == ()


def test_rules_and_pinned_notes_come_back_always(memory):
    rule(memory)
    memory.remember("Sign as 墨白", pinned=True, source="user")
    memory.remember("an ordinary fact")

    found = here(memory, Situation.of(chan="nowhere"))

    assert [(note.title, note.ground) for note in found] == [("Never force push", "always"), ("Sign as 墨白", "always")]


def test_what_was_told_among_other_people_is_no_rule_here(memory):
    rule(memory, "Call me chief", scenes="chan:qq/peer:boss")

    assert titles(here(memory, BOSS)) == ["Call me chief"]
    assert here(memory, ANN) == ()
    assert memory.rules_for(ANN, text="chief") == ()


@pytest.mark.parametrize(
    ("load_when", "text", "called"),
    [
        ("发布", "今晚发布新版本", True),  # A6.7
        ("发布", "今晚出发", False),
        ("deploy", "Deploying to production now", True),
        ("deploy production", "we deploy it to the production cluster", True),
        ("deploy production", "we deploy it", False),
        ("v1.2", "release v1.2 today", True),
        ("v1.2", "release v1.20 today", False),
    ],
)
def test_a_trigger_in_the_words_of_a_turn_calls_a_note(memory, load_when, text, called):
    memory.remember("Lock the versions", load_when=load_when)

    found = here(memory, Situation.of(chan="qq"), text=text)

    assert titles(found) == ["Lock the versions"] * called
    if called:
        assert (found[0].ground, found[0].load_when) == ("trigger", load_when)


@pytest.mark.parametrize(
    ("load_when", "called"),
    [
        ("tool:shell", True),
        ("Tool: Shell", True),
        ("chan:qq", True),
        ("peer:ann", False),
        ("发布", True),
        ("tool:git", False),
    ],
)
def test_a_trigger_may_be_a_feature_or_a_topic(memory, load_when, called):
    memory.remember("Lock the versions", load_when=load_when)

    found = here(memory, Situation.of(chan="qq", tool="shell", topics=["发布"]))

    assert titles(found) == ["Lock the versions"] * called


def test_forgotten_notes_are_called_by_nothing(memory):
    note = memory.remember("Lock the versions", load_when="deploy", scenes="chan:qq").note
    memory.forget(note.id)

    assert here(memory, text="deploy", declared="chan:qq") == ()


def test_the_limit_counts_notes_and_rules_go_first(memory):
    for number in range(5):
        memory.remember(f"fact {number}", scenes="chan:qq")
    rule(memory, scenes="chan:qq")

    assert titles(memory.recall_by_scene("chan:qq", limit=2).notes)[0] == "Never force push"
    assert len(memory.recall_by_scene("chan:qq", limit=2).notes) == 2
    assert memory.recall_by_scene("chan:qq", limit=0).notes == ()


# ---- rules at the moment they govern


def test_rules_fire_by_tool_trigger_and_scene(memory):
    rule(memory, "Never force push", labels="git")
    rule(memory, "Ask before deleting", load_when="rm -rf")
    rule(memory, "Dry run first", load_when="tool:deploy")
    rule(memory, "Answer in Chinese")
    rule(memory, "No jokes with the boss", scenes="chan:qq/peer:boss")
    memory.remember("git is slow today", labels="git")

    def fired(situation=ANN, **options):
        return {note.title: note.ground for note in memory.rules_for(situation, **options)}

    assert fired(tool="git") == {"Never force push": "tool"}
    assert fired(tool="GIT") == {"Never force push": "tool"}
    assert fired(tool="bash", text="git push -f") == {"Never force push": "tool"}
    assert fired(tool="deploy") == {"Dry run first": "trigger"}
    assert fired(tool="shell", text="rm -rf build") == {"Ask before deleting": "trigger"}
    assert fired(tool="shell", text="ls") == {}
    assert fired(BOSS) == {"No jokes with the boss": "scene"}
    assert fired(Situation.of(chan="wechat"), declared="chan:qq/peer:boss") == {"No jokes with the boss": "scene"}
    assert fired(declared="chan:qq") == {}


@pytest.mark.parametrize(("argument", "value"), [("tool", 3), ("tool", "  "), ("text", None), ("declared", 3)])
def test_rules_for_refuses_what_it_cannot_use(memory, argument, value):
    with pytest.raises(InvalidInput, match=argument):
        memory.rules_for(BOSS, **{argument: value})
    with pytest.raises(InvalidInput, match="situation"):
        memory.rules_for(None)


# ---- a project's own go before the user's


def test_a_projects_note_goes_before_the_users_of_that_slot(memory):  # A6.6
    mine = memory.remember("Deploy with npm", slot="deploy").note
    own = memory.remember("Deploy with pnpm", slot="deploy", scope="web").note

    assert [hit.id for hit in memory.recall("deploy", scopes=["web"])] == [own.id]
    assert [hit.id for hit in memory.recall("deploy", scopes=["app"])] == [mine.id]
    assert memory.inspect(mine.id).overridden_by == own.id
    assert memory.inspect(scopes="all").overridden == ((mine.id, own.id),)


def test_without_slots_the_title_tells_what_goes_before(memory):
    memory.remember("Deploy", body="with npm")
    own = memory.remember("deploy", body="with pnpm", scope="web").note

    assert [hit.id for hit in memory.recall("deploy", scopes=["web"])] == [own.id]


def test_a_rule_of_the_user_stays_in_every_project(memory):  # A6.6
    rule(memory, "Never force push", slot="git")
    memory.remember("Force push to own branches", slot="git", scope="web", source="user")
    own = rule(memory, "Force push with lease", slot="git", scope="web", source="user")

    found = here(memory, scopes=["web"])

    assert [(note.title, note.overridden) for note in found] == [
        ("Force push with lease", False),
        ("Never force push", True),
    ]
    assert own.scope == "web"
    assert [(note.title, note.overridden) for note in here(memory, scopes=["app"])] == [("Never force push", False)]


def test_a_full_stop_makes_no_rule_another_one(memory):
    rule(memory, "Never force push.")
    rule(memory, "never force push", body="but with lease", scope="web")

    assert [note.overridden for note in here(memory, scopes=["web"])] == [False, True]


# ---- use


def test_uses_are_counted_beside_the_note(memory, clock):  # A6.3
    note = memory.remember("Deploy with pnpm").note
    for _ in range(10):
        memory.recall("pnpm")
    rows = sql(memory.path, "SELECT * FROM notes")

    clock.advance(days=1)
    memory.remember("something else")

    detail = memory.inspect(note.id)
    assert (detail.uses, detail.last_used) == (10, "2026-09-08T08:00:00.000Z")
    assert sql(memory.path, "SELECT * FROM notes WHERE id = 1") == rows
    assert detail.note == note


def test_uses_are_written_at_the_end(tmp_path, clock):
    path = tmp_path / "m.db"
    with Memory.open(path, clock=clock) as memory:
        note = memory.remember("Deploy with pnpm", scenes="chan:qq").note
    with Memory.open(path, clock=clock) as memory:
        memory.recall("pnpm")
        memory.recall_by_scene("chan:qq")
        before = dump(str(path))
        memory.recall("pnpm")
        assert dump(str(path)) == before
    with Memory.open(path, clock=clock) as memory:
        assert memory.inspect(note.id).uses == 3


# ---- looking over


def test_inspect_tells_counts_rules_proposals_routes_and_what_is_odd(memory, clock):
    old = memory.remember("Use npm").note
    clock.advance(days=181)
    own = rule(memory, load_when="git")
    waiting = proposal(memory)
    memory.remember("Lock versions", load_when=["git", "发布"])
    twins = [memory.remember("Port", body=body).note.id for body in ("6380", "6381")]

    state = memory.inspect()

    counts = {(count.kind, count.status): count.notes for count in state.counts}
    assert counts == {("fact", "live"): 4, ("rule", "live"): 1, ("rule", "proposed"): 1}
    assert [note.id for note in state.rules] == [own.id]
    assert [note.id for note in state.proposals] == [waiting.id]
    assert {route.load_when: len(route.notes) for route in state.routes} == {"git": 2, "发布": 1}
    assert state.repeated == (tuple(twins),)
    assert state.stale == (old.id,)


def test_what_is_used_is_not_stale(memory, clock):
    memory.remember("Use npm")
    clock.advance(days=181)
    memory.recall("npm")
    memory.remember("Use pnpm")

    assert memory.inspect().stale == ()


def test_notes_are_listed_the_latest_first(memory, clock):
    for number in range(3):
        memory.remember(f"note {number}", kind=("fact", "lesson", "fact")[number], scope=("", "web", "app")[number])
        clock.advance(hours=1)

    assert titles(memory.notes()) == ["note 0"]
    assert titles(memory.notes(scopes="all")) == ["note 2", "note 1", "note 0"]
    assert titles(memory.notes(kinds="fact", limit=1, scopes="all")) == ["note 2"]
    assert titles(memory.notes(scopes=["web"])) == ["note 1", "note 0"]
    assert memory.notes(statuses="archived") == ()
    with pytest.raises(InvalidInput, match="kinds"):
        memory.notes(kinds="facts")
    with pytest.raises(InvalidInput, match="statuses"):
        memory.notes(statuses="dead")


def test_constraint_slots_come_back_always(tmp_path, clock):
    with Memory.open(tmp_path / "m.db", clock=clock, config=Config(constraint_keys=("motto",))) as memory:
        memory.remember("Slow is smooth", slot="Motto", source="user")
        memory.remember("Signed: 墨白", slot="signature")

        assert titles(here(memory)) == ["Slow is smooth"]


# ---- secrets

KEY = "sk-proj-" + "a1B2c3D4e5" * 4


@pytest.mark.parametrize(
    "field",
    [
        *(
            "body",
            "slot",
            "labels",
            "load_when",
            "summary",
            "highlight",
            "scope",
            "scenes",
            "reason",
            "quote",
            "source",
        ),
        *("session", "message", "place", "title"),
    ],
)
def test_no_field_of_a_note_takes_a_secret(memory, field):  # A6.12
    note = {"title": "Deploy with pnpm", "scenes": ()} | {field: f"key {KEY}" if field != "summary" else KEY}
    before = dump(memory.path)

    with pytest.raises(SecretRefused) as caught:
        memory.remember(**note)

    assert caught.value.argument == field
    assert not any(KEY[start : start + 6] in str(caught.value) for start in range(8, len(KEY) - 6))
    assert dump(memory.path) == before


def test_three_secrets_in_a_row_are_all_refused(memory):  # A6.12
    for secret in (KEY, "ghp_" + "A1b2C3d4" * 5, "我的密码：夏天2026"):
        with pytest.raises(SecretRefused):
            memory.remember("a note", body=secret)
    assert memory.notes() == ()


@pytest.mark.parametrize(
    "act",
    [
        lambda memory: memory.edit_note(1, body=KEY),
        lambda memory: memory.edit_note(1, labels=["a", KEY]),
        lambda memory: memory.edit_note(1, title="b", place=KEY),
        lambda memory: memory.forget(1, reason=KEY),
        lambda memory: memory.approve(2, reason=KEY),
        lambda memory: memory.reject(2, reason=KEY),
        lambda memory: memory.record_failure(KEY, "exit 1"),
    ],
)
def test_no_act_on_a_note_takes_a_secret(memory, act):
    memory.remember("a note")
    proposal(memory)
    before = dump(memory.path)

    with pytest.raises(SecretRefused):
        act(memory)

    assert dump(memory.path) == before


def test_what_a_tool_said_is_kept_without_its_secrets(memory):
    report = memory.record_failure("curl", f"401 for https://h/x?api_key={KEY}")

    assert KEY not in repr(report)
    memory.close()
    assert traces_of(memory.path, KEY) == ()


# ---- found by words


@pytest.mark.parametrize("query", ["the of", "的 了", "what is the"])
def test_stop_words_alone_find_nothing(memory, query):  # C8.5
    memory.remember("Deploy the panel", body="with the lock of pnpm. What is more: 的确，了")

    assert memory.recall(query, kinds="note") == ()


def test_stop_words_that_somebody_said_so_are_found(memory):
    note = memory.remember("To be or not to be").note
    memory.remember("It is not to the point, or to be seen")

    assert found_ids(memory, "not to be") == [note.id]


def found_ids(memory, query, **options):
    return [hit.id for hit in memory.recall(query, kinds="note", **options)]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("部署", "部署脚本用 pnpm 而不是 npm"),
        ("脚本", "部署脚本用 pnpm 而不是 npm"),
        ("pnpm", "部署脚本用pnpm而不是npm"),
        ("服务部署", "怎么部署前端服务"),
    ],
)
def test_chinese_words_are_found_whatever_stands_between(memory, query, text):  # A6.4, A6.5
    note = memory.remember(text).note
    memory.remember("something else")

    assert found_ids(memory, query)[0] == note.id


def test_a_title_and_a_slot_count_more_than_labels_and_these_more_than_a_body(memory):  # C8.6
    filler = "of the panel and its many parts, none of which matter here"
    body = memory.remember("first note", body=f"pelican {filler}").note
    label = memory.remember("second note", body=filler, labels="pelican").note
    slot = memory.remember("third note", body=filler, slot="pelican").note
    title = memory.remember("pelican note", body=filler).note

    found = found_ids(memory, "pelican")

    assert {*found[:2]} == {title.id, slot.id}
    assert found[2:] == [label.id, body.id]


def test_keyword_mode_wants_every_word(memory):  # C8.7
    both = memory.remember("部署用 pnpm").note
    one = memory.remember("pnpm is fast").note

    assert found_ids(memory, "pnpm 部署", mode="keyword") == [both.id]
    assert found_ids(memory, "pnpm 部署") == [both.id, one.id]


def test_of_equal_texts_the_newer_comes_first(memory, clock):  # A6.19
    old = memory.remember("Deploy with pnpm", scope="web").note
    clock.advance(days=30)
    new = memory.remember("Deploy with pnpm", scope="app").note

    assert found_ids(memory, "pnpm", scopes="all") == [new.id, old.id]


def test_what_was_told_openly_stays_so_and_a_dropped_scene_opens_nothing(memory):
    memory.remember("Tea at four", scenes="chan:qq/peer:boss")
    memory.remember("Tea at five")
    memory.remember("Tea at five", scenes="chan:qq/peer:boss")

    assert sorted(titles(here(memory, declared="chan:qq/peer:boss"))) == ["Tea at five", "Tea at four"]
    memory.drop_scene("chan:qq/peer:boss")

    assert titles(memory.ledger().facts) == ["Tea at five"]
    assert [hit.text for hit in memory.recall("tea", situation=ANN)] == ["Tea at five"]
    assert sorted(hit.text for hit in memory.recall("tea")) == ["Tea at five", "Tea at four"]
    memory.remember("Tea at four")
    assert sorted(hit.text for hit in memory.recall("tea", situation=ANN)) == ["Tea at five", "Tea at four"]
