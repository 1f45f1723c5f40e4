"""One turn of an agent: policies (C1 to C7) and the flow from scene to brief to commit (W1 to W12)."""

import logging
import threading
from dataclasses import dataclass
from string import ascii_lowercase

import pytest
from support import dump

from graphmem import ChannelPolicy, Conflict, Event, InvalidInput, Memory, Part, Situation, StoreBusy, Triple
from graphmem.core.policies import effective_policy, payload_scenes

RULE = "QQ回复禁用Markdown格式"
FACT = Triple("老大", "偏好", RULE, sentence="老大说QQ上一律用纯文本。", confidence=0.9)
TOLD = f"老大 偏好 {RULE}: {FACT.sentence}"
BOSS = {"user_id": "boss"}


@dataclass(frozen=True)
class Document:
    id: str
    text: str
    scenes: tuple[str, ...]
    source: str
    at: str | None


class Archive(Memory):
    """A memory that keeps documents in a list."""

    documents: list[Document]

    def put_document(self, text, *, summary="", scenes=(), source="", tags=(), entities=(), blocks=(), at=None):
        document = Document(f"doc_{len(self.documents)}", text, tuple(scenes), source, at)
        self.documents.append(document)
        return document


@pytest.fixture
def archive(path, clock):
    with Archive.open(path, clock=clock) as memory:
        memory.documents = []
        yield memory


def event(source="qq", text="", **fields):
    return Event(source=source, payload=BOSS, text=text, **fields)


def live(memory, *events, **options):
    for one in events:
        with memory.turn(one, **options):
            pass


def strength(memory, key):
    return {scene.key: scene.strength for scene in memory.scenes()}.get(key, 0)


def objects(found):
    return [fact.object for fact in found.relations]


# ---- policies


@pytest.mark.parametrize("field", ["context_policy", "recall_policy", "scene_policy"])
@pytest.mark.parametrize("word", ["prune", "auto", "none", "", "AUTO", "yes", None, 1, ["none"]])
def test_a_policy_takes_the_words_it_knows_and_no_other(field, word):  # C5
    known = ("", "none", "prune") if field == "context_policy" else ("", "none", "auto")
    if word in known:
        assert getattr(ChannelPolicy(**{field: word}), field) == word
        return
    with pytest.raises(InvalidInput) as caught:
        ChannelPolicy(**{field: word})
    assert caught.value.argument == field


def test_no_memory_is_true_or_false():
    for refuse in (lambda: ChannelPolicy(no_memory=1), lambda: effective_policy({"no_memory": "yes"}, ChannelPolicy())):
        with pytest.raises(InvalidInput, match="no_memory"):
            refuse()


def test_nothing_said_is_the_default():  # C2, C4
    assert effective_policy(None, ChannelPolicy()) == ChannelPolicy(
        no_memory=False, context_policy="none", recall_policy="auto", scene_policy="auto"
    )


@pytest.mark.parametrize("field", ["context_policy", "recall_policy", "scene_policy"])
def test_the_payload_goes_before_the_channel_both_ways(field):  # C3
    other = "prune" if field == "context_policy" else "auto"
    for said, channel in (("none", other), (other, "none")):
        assert getattr(effective_policy({field: said}, ChannelPolicy(**{field: channel})), field) == said
        for nothing in ({}, {field: ""}, {field: None}):
            assert getattr(effective_policy(nothing, ChannelPolicy(**{field: channel})), field) == channel


def test_no_payload_makes_a_channel_keep_a_memory_that_keeps_none():
    assert effective_policy({"no_memory": False}, ChannelPolicy(no_memory=True)).no_memory
    assert effective_policy({"no_memory": True}, ChannelPolicy()).no_memory


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"scene_policy": "prune"}, "payload[scene_policy]"),
        ({"scene": 5}, "payload[scene]"),
        ({"scene": ["a", None]}, "payload[scene]"),
        ({"scene": "///"}, "payload[scene]"),
        ({"user_id": ["boss"]}, "payload[user_id]"),
        ("boss", "payload"),
    ],
)
def test_a_payload_that_cannot_be_used_is_refused_before_anything_is_written(memory, path, payload, named):
    before = dump(path)

    with pytest.raises(InvalidInput) as caught:
        memory.turn(Event(source="qq", payload=payload))

    assert caught.value.argument == named
    assert dump(path) == before


@pytest.mark.parametrize("given", [{"source": "qq"}, "qq", 5])
def test_a_turn_begins_with_an_event_or_none(memory, given):
    with pytest.raises(InvalidInput, match="event"):
        memory.turn(given)
    with pytest.raises(InvalidInput, match="channel"):
        memory.turn(None, channel=given)


def test_scene_policy_none_leaves_no_trace(memory, path):  # C1, C6
    memory.commit([FACT], scenes=["chan:qq"])
    before = dump(path)
    none = ChannelPolicy(scene_policy="none")

    for number in range(5):
        here = Event(source="qq", payload={**BOSS, "scene": "chan:qq"}, text="hello", tool="shell")
        with memory.turn(here, channel=none) as turn:
            turn.tool(f"tool{number}")
            seen = (turn.situation.features, turn.visit.keys, turn.read_keys, turn.write_keys, turn.brief().text)
            assert seen == ((), (), (), (), "")

    assert dump(path) == before
    with memory.turn(Event(source="qq", payload={"scene_policy": "auto"}), channel=none) as turn:
        assert turn.visit.keys == ("chan:qq",)


def test_no_memory_alone_does_not_stop_scenes(memory):  # C7
    quiet = ChannelPolicy(no_memory=True)

    live(memory, event(), event(), event(), channel=quiet)

    assert strength(memory, "auto:peer:boss_chan:qq") == 2
    with memory.turn(event(), channel=quiet) as turn, pytest.raises(Conflict, match="no_memory"):
        turn.commit([FACT])
    assert memory.recall("Markdown") == ()


def test_recall_none_tells_nothing_and_the_scene_still_grows(memory):  # W9
    memory.commit([FACT], scenes=["chan:qq/peer:boss"])
    none = ChannelPolicy(recall_policy="none")

    for _ in range(3):
        with memory.turn(event(text="Markdown"), channel=none) as turn:
            assert (turn.brief().text, turn.recall_message("Markdown").text, turn.recall_text) == ("", "", "")

    assert strength(memory, "auto:peer:boss_chan:qq") == 2
    assert [hit.text for hit in turn.recall("Markdown")] == [TOLD]  # asked for by the agent itself


def test_a_turn_without_event_takes_part_and_writes_nothing(memory, path):  # C4
    before = dump(path)

    with memory.turn(None) as turn:
        assert (turn.policy.recall_policy, turn.situation.features, turn.brief().text) == ("auto", (), "")

    assert dump(path) == before


def test_a_turn_without_event_has_its_tool_as_its_only_feature(memory):  # S5
    with memory.turn(None) as turn:
        assert list(turn.tool("shell").weights) == ["tool:shell"]
        assert turn.visit.keys == ("tool:shell",)


# ---- the scene of a turn


def test_a_turn_that_ends_has_visited_its_scene_once(memory):
    live(memory, event(), event())
    with memory.turn(event()) as turn:
        assert turn.visit is turn.visit
        turn.brief()
        turn.commit([FACT])
        turn.commit([FACT])

    assert turn.visit.key == "auto:peer:boss_chan:qq"
    assert (turn.visit.strength, strength(memory, turn.visit.key)) == (2, 2)


def test_three_tools_in_one_turn_count_once(memory):  # W1
    live(memory, event(), event())
    before = {scene.key: scene.strength for scene in memory.scenes()}

    with memory.turn(event()) as turn:
        turn.brief()
        for name in ("shell", "mail", "Shell", "web", "shell"):
            turn.tool(name)
            turn.recall_message("anything")

    after = {scene.key: scene.strength for scene in memory.scenes()}
    assert {key: after[key] - number for key, number in before.items()} == dict.fromkeys(before, 1)
    assert {key: after[key] for key in after.keys() - before.keys()} == {"tool:shell": 1, "tool:mail": 1, "tool:web": 1}


def test_tools_named_before_the_scene_is_entered_belong_to_it(memory):
    for _ in range(2):
        with memory.turn(Event(source="cli")) as turn:
            turn.brief()
            turn.tool("shell")

    assert turn.visit.key == "auto:chan:cli_tool:shell"


def test_a_tool_named_after_it_refines_what_is_read(memory):
    with memory.turn(event()) as turn:
        visit = turn.visit
        assert "tool:shell" in turn.tool("shell").weights
        assert turn.visit is visit
        assert turn.read_keys == ("chan:qq", "chan:qq/peer:boss", "tool:shell")

    assert strength(memory, "tool:shell") == 1


@pytest.mark.parametrize("name", ["", "  ", "\u200b", None, 5])
def test_a_tool_has_a_name(memory, name):
    with memory.turn(event()) as turn, pytest.raises(InvalidInput):
        turn.tool(name)


def test_threads_of_one_turn_enter_once(memory):
    live(memory, event(), event())
    with memory.turn(event()) as turn:
        threads = [threading.Thread(target=lambda: turn.visit) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert strength(memory, "auto:peer:boss_chan:qq") == 2


def test_a_turn_that_fails_is_not_counted(memory, path):
    before = dump(path)

    with pytest.raises(ZeroDivisionError), memory.turn(event()):
        1 / 0  # noqa: B018

    assert dump(path) == before


def test_keys_are_read_in_order_and_each_once(memory):  # W2, W3
    live(memory, event(tool="shell"), event(tool="shell"))
    payload = {**BOSS, "scene": ["Proj:X", "CHAN:qq", "proj:x", ""]}

    with memory.turn(Event(source="qq", payload=payload, tool="shell")) as turn:
        turn.tool("web")

    assert turn.read_keys == (
        "proj:x",
        "chan:qq",
        "chan:qq/peer:boss",
        "tool:shell",
        "tool:web",
        "auto:peer:boss_chan:qq",
    )
    assert payload_scenes({"scene": "Proj:X "}) == ("proj:x",)  # a single text too


def test_what_a_person_says_goes_to_their_own_scenes_alone(memory):
    live(memory, event(), event())
    with memory.turn(event(tool="shell")) as turn:
        assert turn.write_keys == ("auto:peer:boss_chan:qq", "chan:qq/peer:boss")
    with memory.turn(Event(source="qq")) as turn:
        turn.visit  # noqa: B018
        turn.tool("shell")
        assert turn.write_keys == ("chan:qq", "tool:shell")


def test_where_the_scene_fails_the_declared_keys_are_still_used(memory, monkeypatch, caplog):  # W10
    memory.commit([FACT], scenes=["chan:qq/peer:boss"])

    def fail(*args, **options):
        raise StoreBusy("held by another")

    monkeypatch.setattr(memory, "enter_scene", fail)
    monkeypatch.setattr(memory, "declare_scene", fail)
    with caplog.at_level(logging.WARNING), memory.turn(event()) as turn:
        assert turn.visit.key == ""
        turn.tool("shell")
        assert turn.read_keys == ("chan:qq", "chan:qq/peer:boss", "tool:shell")
        assert RULE in turn.brief().text
        assert turn.commit([Triple("a", "b", "c")]).scenes == ("chan:qq/peer:boss",)

    assert caplog.text.count("held by another") == 2


# ---- what it tells


def test_the_rule_of_the_channel_comes_first_without_any_word(memory):  # spec 11, P8
    noise = [Triple(f"QQ消息主题{n}", "使用", f"服务{n}", confidence=0.5) for n in range(100)]
    memory.commit(noise, scenes=["chan:qq"])
    memory.commit([Triple("老大", "偏好", RULE, confidence=0.95)], scenes=["chan:qq"])

    for here in (Event(source="qq"), event()):
        with memory.turn(here) as turn:
            assert turn.brief().text.split("\n")[2] == f"- 老大 --偏好--> {RULE}"


def test_a_rule_told_in_one_turn_comes_back_in_the_next_whatever_the_words(memory):  # W4
    live(memory, event(text="排班"))
    with memory.turn(event(text="用纯文本")) as turn:
        turn.commit([FACT])

    with memory.turn(event(text="明天的天气")) as turn:
        assert RULE in turn.brief().text
    for other in (Event(source="qq", payload={"user_id": "anna"}), Event(source="mail")):
        with memory.turn(other) as turn:
            assert turn.brief(f"老大 {RULE}").text == ""


def test_a_person_is_recognised_on_another_channel(memory):  # W12
    for _ in range(2):
        with memory.turn(event()) as turn:
            turn.commit([FACT])

    with memory.turn(event(source="webui")) as turn:
        assert RULE in turn.brief().text


def test_exact_keys_come_before_what_the_situation_recalls(memory):  # W12
    for _ in range(2):
        with memory.turn(event()) as turn:
            turn.commit([Triple("by", "situation", "strong")], scenes=turn.visit.key or "chan:x")
    memory.commit([Triple("by", "key", "weak", confidence=0.1)], scenes=["proj:x"])

    with memory.turn(Event(source="qq", payload={**BOSS, "scene": "proj:x"})) as turn:
        brief = turn.brief()

    assert [line for line in brief.text.split("\n") if line.startswith("- ")] == [
        "- by --key--> weak",
        "- by --situation--> strong",
    ]


def test_the_words_of_the_event_are_looked_for_unless_others_are_given(memory):
    memory.commit([Triple(f"a{n}", "r", "b") for n in range(20)], scenes=["chan:qq"])
    memory.commit([Triple("panel", "uses", "pnpm", sentence="It is pnpm.", confidence=0.1)], scenes=["chan:qq"])

    with memory.turn(Event(source="qq", text="pnpm")) as turn:
        assert "- [relation] panel uses pnpm: It is pnpm." in turn.brief().text
        assert "It is pnpm." not in turn.brief("").text
        assert "It is pnpm." in turn.brief("panel").text
        assert len(turn.brief(budget=120).text) <= 120
        assert turn.brief(budget=12, measure=lambda text: len(text.split())).text.count(" ") <= 12


def test_what_was_recalled_in_this_turn_is_not_found_again_and_in_another_turn_it_is(memory):
    memory.commit([Triple(f"a{n}", "r", "b") for n in range(20)], scenes=["chan:qq"])
    memory.commit([Triple("panel", "uses", "pnpm", confidence=0.1)], scenes=["chan:qq"])

    with memory.turn(Event(source="qq", text="pnpm")) as turn:
        assert [hit.text for hit in turn.recall("pnpm")] == ["panel uses pnpm"]
        assert "[relation]" not in turn.brief().text
    with memory.turn(Event(source="qq", text="pnpm")) as other:
        assert "[relation] panel uses pnpm" in other.brief().text


def test_recall_in_a_turn_stays_in_its_scenes(memory):
    memory.commit([FACT], scenes=["chan:qq/peer:anna"])

    with memory.turn(event()) as turn:
        assert turn.recall("Markdown") == turn.recall("Markdown", scenes="chan:qq") == ()
        assert [hit.text for hit in turn.recall("Markdown", situation=None)] == [TOLD]


def test_a_second_recall_message_takes_the_place_of_the_first(memory):  # W6
    memory.commit([Triple(letter * 3, "r", letter * 5) for letter in ascii_lowercase], scenes=["chan:qq"])
    memory.commit([Triple("make", "needs", "cmake")], scenes=["tool:shell"])

    with memory.turn(Event(source="qq")) as turn:
        turn.brief()
        first = turn.recall_message("bbb bbbbb")
        turn.tool("shell")
        second = turn.recall_message("ccc ccccc")

    assert turn.recall_text == second.text != first.text
    assert first.text.split("\n")[1:3] == ["Found for the words of this turn:", "- [relation] bbb r bbbbb"]
    # What the tool brings along, and what its words find; the rules of the channel are in the prompt.
    assert second.text.split("\n") == [
        "<recalled-memory>",
        "Scene memory of chan:qq, tool:shell:",
        "- make --needs--> cmake",
        "These are standing rules; keep to them.",
        "Found for the words of this turn:",
        "- [relation] ccc r ccccc",
        "</recalled-memory>",
    ]


def test_a_recall_message_does_not_repeat_what_the_prompt_holds(memory):  # W6
    memory.commit([FACT], scenes=["chan:qq"])

    with memory.turn(Event(source="qq")) as turn:
        assert RULE in turn.recall_message("Markdown").text
        turn.brief()
        assert turn.recall_message("Markdown").text == turn.recall_text == ""


# ---- what it writes


def test_a_commit_goes_to_the_turn_and_with_scenes_to_those_only(memory):  # W7
    live(memory, event(), event())
    here = event(session="s1", at="2026-09-01T09:00:00+00:00")

    with memory.turn(here) as turn:
        own = turn.commit([FACT])
        given = turn.commit([Triple("a", "b", "c")], scenes=["proj:x"])
        nowhere = turn.commit([Triple("d", "e", "f")], scenes=[])

    assert (own.scenes, given.scenes, nowhere.scenes) == (turn.write_keys, ("proj:x",), ())
    (hit,) = memory.recall("Markdown")
    assert hit.at == "2026-09-01T09:00:00.000Z"


def test_a_commit_that_writes_nothing_says_so(memory):  # W11
    with memory.turn(event()) as turn:
        report = turn.commit([Triple("", "b", "c")])

    assert (report.written, len(report.refused)) == (0, 1)


# ---- a context that grows too long

PRUNE = ChannelPolicy(context_policy="prune")
CONTEXT = [
    Event(source="qq", payload=BOSS, text=f"small talk number {n}", at="2026-09-01T09:00:00Z") for n in range(30)
]
CONTEXT[3] = Event(source="qq", text="we deploy the panel with pnpm")


def test_pruning_keeps_the_closest_and_the_last_ten_and_archives_the_rest_as_one_document(archive):
    with archive.turn(event(text="deploy with pnpm"), channel=PRUNE) as turn:
        pruned = turn.prune(CONTEXT, keep=1)

    assert pruned.events == (CONTEXT[3], *CONTEXT[-10:])
    assert pruned.archived == (*CONTEXT[:3], *CONTEXT[4:20])
    (document,) = archive.documents
    assert (document.id, document.source) == (pruned.document, "context_archived")
    assert document.scenes == turn.write_keys == ("chan:qq/peer:boss",)
    assert document.text.split("\n")[0] == "2026-09-01T09:00:00Z qq peer:boss: small talk number 0"


def test_without_words_the_latest_are_kept(archive):
    with archive.turn(event(), channel=PRUNE) as turn:
        assert turn.prune(CONTEXT, keep=5).events == tuple(CONTEXT[15:])


@pytest.mark.parametrize(
    ("channel", "context"),
    [
        (ChannelPolicy(), CONTEXT),
        (ChannelPolicy(context_policy="none"), CONTEXT),
        (ChannelPolicy(context_policy="prune", no_memory=True), CONTEXT),
        (PRUNE, CONTEXT[:11]),
        (PRUNE, []),
    ],
)
def test_nothing_is_pruned_where_nothing_may_or_need_be(archive, channel, context):  # C4
    with archive.turn(event(), channel=channel) as turn:
        pruned = turn.prune(context, keep=1)

    assert (pruned.events, pruned.archived, pruned.document) == (tuple(context), (), "")
    assert archive.documents == []


def test_a_context_is_a_list_of_events(archive):
    with archive.turn(event(), channel=PRUNE) as turn:
        for bad in ({"events": ["hello"]}, {"events": CONTEXT, "keep": -1}):
            with pytest.raises(InvalidInput):
                turn.prune(**bad)


def test_the_situation_is_under_the_settings_and_the_clock_of_the_memory(memory, clock):
    with memory.turn(event()) as turn:
        assert turn.situation == Situation.of(chan="qq", peer="boss", part="morning", at=clock.now)


def test_a_turn_reads_what_is_of_its_scopes_and_of_none(memory):
    memory.mirror("alice", [Part(id="1", author="alice", text="my salary is 91000")], scope="alice")
    memory.remember("Alice's salary is 91000", scope="alice")
    memory.remember("Salary day is the 25th")
    event = Event(source="qq", payload={"user_id": "bob"}, text="what is the salary")

    with memory.turn(event, scopes="bob") as turn:
        assert "91000" not in turn.brief().text
        assert "25th" in turn.brief().text
        assert [hit.text for hit in turn.recall("salary")] == ["Salary day is the 25th"]
    with memory.turn(event) as turn:
        assert "91000" not in turn.brief().text
    with memory.turn(event, scopes="all") as turn:
        assert "91000" in turn.brief().text


def test_a_brief_says_who_said_a_part_and_when_and_the_same_words_once(memory):
    said = [Part(id=str(day), author="alice", text="the salary came", at=f"2026-09-0{day}") for day in (1, 2)]
    memory.mirror("s", said)

    text = memory.brief(Situation.of(chan="qq"), query="salary").text

    assert text.count("the salary came") == 1
    assert "- [part s/alice, 2026-09-0" in text
