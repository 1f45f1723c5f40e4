"""AsyncMemory: the verbs of Memory as coroutines, with the loop free while SQLite works."""

import asyncio
import contextlib
import inspect
import io
import sqlite3
import threading
from pathlib import Path

import pytest

from graphmem import (
    AsyncMemory,
    AsyncTurn,
    Config,
    Conflict,
    InvalidInput,
    Memory,
    NotFound,
    Part,
    Situation,
    StoreFailed,
    Triple,
    Turn,
)
from graphmem.core.events import Event

HERE = Situation.of(chan="qq", peer="boss")
FACT = Triple("老大", "偏好", "纯文本", sentence="老大偏好纯文本。")
VERBS = [
    name
    for name, member in inspect.getmembers_static(Memory)
    if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod | staticmethod))
]

TALK = Path(__file__).parent.parent / "fixtures" / "talk.jsonl"
OBSERVED = Path(__file__).parent.parent / "fixtures" / "observed.jsonl"

# Verb, positional and keyword arguments; each line works on what the lines before it have done.
SCRIPT = [
    ("enter_scene", [HERE], {"declared": ["chan:qq"]}),
    ("evidence", [], {}),
    ("enter_scene", [HERE], {}),
    ("declare_scene", ["tool:shell"], {}),
    ("commit", [[FACT]], {"scenes": ["auto:peer:boss_chan:qq"], "session": "s1", "turn": 3}),
    ("tag_scene", ["chan:new"], {"glob": "老*"}),
    ("match_scenes", [HERE], {}),
    ("scenes", [], {"origin": "emergent"}),
    ("scopes", [], {}),
    ("recall", ["纯文本"], {"limit": 3}),
    ("remember", ["Deploy with pnpm"], {"kind": "lesson", "slot": "deploy"}),
    ("mirror", ["s1", [Part(id="m1", author="boss", text="Where does the panel run?")]], {}),
    ("remember", ["Never force push"], {"kind": "rule"}),
    ("remember", ["Never deploy on friday"], {"kind": "rule"}),
    ("propose", ['[{"title": "The panel is red", "body": "all of it"}]'], {}),
    ("approve", [2], {}),
    ("reject", [3], {}),
    ("rules_for", [HERE], {"text": "push"}),
    ("edit_note", [1], {"body": "npm breaks"}),
    ("forget", [1], {}),
    ("restore_note", [1], {}),
    ("notes", [], {"limit": 2}),
    ("ledger", [], {"limit": 3}),
    ("inspect", [], {}),
    ("inspect", [1], {}),
    ("record_failure", ["bash", "exit 1"], {"scope": "work"}),
    ("incidents", [], {"scopes": ["work"]}),
    ("forget_incident", [1], {}),
    ("remind", ["s1", "以后都用中文回答"], {}),
    ("reindex", [], {}),
    ("scan_secrets", [], {}),
    ("recall", ["panel pnpm"], {"situation": HERE, "explain": True}),
    ("neighbours", ["老大"], {"depth": 1}),
    ("draw", ["dot"], {"entity": "老大"}),
    ("picture", [], {"entity": "老大"}),
    ("export_to", ["jsonl", io.StringIO()], {}),
    ("shortest_path", ["老大", "纯文本"], {}),
    ("recall_by_scene", ["chan:new"], {"exact": True}),
    ("recall_by_situation", [HERE], {"declared": ["chan:qq"]}),
    ("brief", [HERE], {"declared": ["chan:qq"], "budget": 500}),
    ("tool_brief", [HERE, "shell"], {"text": "push"}),
    ("dedupe_scenes", [], {"dry_run": True}),
    ("operations", [], {"limit": 5}),
    ("put_block", ["排班表"], {"scenes": ["chan:qq"]}),
    ("put_document", ["一段对话"], {"scenes": ["chan:qq"]}),
    ("query_documents", ["对话"], {"limit": 1}),
    ("edit_relation", [1], {"object": "富文本"}),
    ("purge", [], {"session": "s1", "dry_run": True}),
    ("merge_entities", ["老大", "富文本"], {"dry_run": True}),
    ("upkeep", [], {"dry_run": True}),
    ("overview", [], {}),
    ("growth", [], {"days": 3}),
    ("scene", ["chan:qq"], {}),
    ("review_entities", [], {"limit": 3}),
    ("keep_apart", ["老大", "纯文本"], {"rounds": 2}),
    ("kept_apart", [], {}),
    ("settle_entities", [lambda pair: "apart"], {}),
    ("repair", [], {"dry_run": True}),
    ("check", [], {}),
    ("untag_scene", ["chan:new", [1]], {}),
    ("rename_scene", ["chan:new", "chan:newer"], {}),
    ("drop_scene", ["chan:qq"], {"below": True}),
    ("scene_health", [], {}),
    ("reset_scenes", [], {"dry_run": True}),
    ("delete_relation", [2], {"hard": True}),
    ("import_from", ["mcp-memory", OBSERVED], {}),
    ("harvest", [TALK], {}),
    ("export_tree", ["/nowhere/tree"], {"dry_run": True}),
    ("sync_tree", ["/nowhere/tree"], {"dry_run": True}),
    ("sessions", [], {"limit": 1}),
    ("history", ["panel"], {"floor": 0.5}),
    ("checkpoint", ["s1"], {"wait": False}),
    ("jobs", [], {"states": "queued"}),
    ("run_jobs", [], {"idle": True}),
    ("consolidate", [], {"force": True}),
    ("distill", [], {"dry_run": True}),
    ("part", ["m1"], {"session": "s1"}),
    ("parts", ["s1"], {"limit": 1}),
    ("delete_parts", ["s1", "m1"], {}),
    ("delete_session", ["s1"], {}),
    ("purge", [], {"subject_contains": "gone", "hard": True}),
]


def test_who_looks_uses_nothing(path):
    async def main():
        async with await AsyncMemory.open(path) as memory:
            await memory.remember("The panel runs on port 8443")
            with await memory.looking():
                await memory.recall("panel")
            await memory.remember("Uses are written with the next write")
            looked = (await memory.inspect(1)).uses
            await memory.recall("panel")
            await memory.remember("Again")
            return looked, (await memory.inspect(1)).uses

    assert asyncio.run(main()) == (0, 1)


def run_sync(path, clock):
    with Memory.open(path, clock=clock) as memory:
        return [getattr(memory, verb)(*arguments, **options) for verb, arguments, options in SCRIPT]


async def run_async(path, clock):
    async with await AsyncMemory.open(path, clock=clock) as memory:
        return [await getattr(memory, verb)(*arguments, **options) for verb, arguments, options in SCRIPT]


@contextlib.contextmanager
def lock(path):
    """Hold the write lock of a file from outside; yields a function that lets go of it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield lambda: connection.execute("ROLLBACK")


async def opened(path, **options):
    return await AsyncMemory.open(path, **options)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_memory_is_there_with_the_same_signature(verb):
    own, theirs = getattr(AsyncMemory, verb, None), getattr(Memory, verb)

    assert inspect.iscoroutinefunction(own) or verb == "open", f"AsyncMemory has no coroutine {verb}"
    signatures = [inspect.signature(each, eval_str=True) for each in (own, theirs)]
    assert list(signatures[0].parameters.values()) == list(signatures[1].parameters.values())
    assert inspect.getdoc(own)


def test_there_is_no_verb_that_memory_does_not_have():
    assert {name for name in vars(AsyncMemory) if not name.startswith("_")} <= {
        *VERBS,
        "path",
        "config",
        "project",
        "session",
    }


def test_a_memory_is_opened_with_the_block_or_before_it(path):
    async def use():
        async with AsyncMemory.open(path) as memory:
            await memory.declare_scene("chan:qq")
        async with await AsyncMemory.open(path) as memory:
            return memory.path, [scene.key for scene in await memory.scenes()]

    assert asyncio.run(use()) == (str(path), ["chan:qq"])


def test_the_verbs_return_what_those_of_memory_return(tmp_path, clock):
    expected = run_sync(tmp_path / "sync.db", clock)

    actual = asyncio.run(run_async(tmp_path / "async.db", clock))

    assert actual == expected


def test_a_memory_that_is_open_can_be_used_both_ways(memory):
    async def use():
        asynchronous = AsyncMemory(memory)
        await asynchronous.commit([FACT])
        return memory.recall("纯文本"), await asynchronous.recall("纯文本")

    ours, theirs = asyncio.run(use())

    assert ours == theirs
    assert ours


def test_a_memory_outlives_the_loop_that_opened_it(path):
    memory = asyncio.run(opened(path))
    asyncio.run(memory.declare_scene("chan:qq"))
    (scene,) = asyncio.run(memory.scenes())
    asyncio.run(memory.close())

    assert scene.key == "chan:qq"


def test_a_database_in_memory_serves_all_threads():
    async def use():
        async with await AsyncMemory.open(":memory:") as memory:
            await asyncio.gather(*(memory.declare_scene(f"chan:c{n}") for n in range(20)))
            return await memory.scenes()

    assert len(asyncio.run(use())) == 20


def test_a_log_is_replayed_with_its_progress(path):
    async def use():
        told = []
        async with await AsyncMemory.open(path) as memory:
            report = await memory.replay([Event(source="qq")] * 3, progress=lambda *counts: told.append(counts))
        return report, told

    report, told = asyncio.run(use())

    assert report.turns == 3
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_turns_at_once_are_all_counted(path):
    async def use():
        async with await AsyncMemory.open(path) as memory:
            await asyncio.gather(
                *(memory.enter_scene(HERE) for _ in range(40)),
                *(memory.commit([Triple("boss", "said", f"word {n}")], scenes="chan:qq") for n in range(40)),
                *(memory.match_scenes(HERE) for _ in range(40)),
            )
            return await memory.scenes(), await memory.recall_by_scene("chan:qq", limit=100)

    scenes, found = asyncio.run(use())

    # The first of 40 turns is counted as evidence; the scene grows at the second.
    assert {scene.key: scene.strength for scene in scenes} == {"auto:peer:boss_chan:qq": 39, "chan:qq": 1}
    assert len(found.relations) == 40


def test_the_loop_goes_on_while_a_verb_waits_for_the_lock(path):
    async def use():
        async with await AsyncMemory.open(path, config=Config(busy_timeout=20.0)) as memory:
            with lock(path) as let_go:
                waiting = asyncio.create_task(memory.enter_scene(HERE, declared=["chan:qq"]))
                read = await memory.scenes()
                let_go()
                return read, await waiting

    read, visit = asyncio.run(use())

    assert read == ()
    assert visit.declared_created == ("chan:qq", "chan:qq/peer:boss")


@pytest.mark.parametrize(
    ("verb", "arguments", "error"),
    [("undo", [99], NotFound), ("declare_scene", ["///"], InvalidInput), ("scenes", [5], InvalidInput)],
)
def test_errors_come_through_as_they_are(path, verb, arguments, error):
    async def use():
        async with await AsyncMemory.open(path) as memory:
            await getattr(memory, verb)(*arguments)

    with pytest.raises(error):
        asyncio.run(use())


def test_a_file_that_is_missing_is_not_made_unless_wished(path):
    with pytest.raises(StoreFailed):
        asyncio.run(opened(path, create=False))

    assert not path.exists()


def test_a_failure_in_the_block_closes_the_memory(path):
    opened = []

    async def use():
        async with await AsyncMemory.open(path) as memory:
            opened.append(memory)
            await memory.declare_scene("chan:qq")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(use())

    with pytest.raises(Conflict):
        opened[0].memory.scenes()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("graphmem")] == []


def test_closing_waits_for_the_verbs_that_run(path):
    async def use():
        memory = await AsyncMemory.open(path)
        running = [asyncio.create_task(memory.declare_scene(f"chan:c{n}")) for n in range(20)]
        await asyncio.sleep(0)
        await memory.close()
        return await asyncio.gather(*running)

    made = asyncio.run(use())

    assert all(scene.created for scene in made)
    with Memory.open(path) as memory:
        assert len(memory.scenes()) == 20


def test_closing_twice_does_nothing_and_other_verbs_raise_conflict(path):
    async def use():
        memory = await AsyncMemory.open(path)
        await memory.close()
        await memory.close()
        with pytest.raises(Conflict):
            await memory.scenes()
        with pytest.raises(Conflict):
            await memory.enter_scene(HERE)

    asyncio.run(use())


def test_a_caller_who_gives_up_leaves_the_memory_usable(path):
    async def use():
        async with await AsyncMemory.open(path, config=Config(busy_timeout=20.0)) as memory:
            with lock(path) as let_go:
                waiting = asyncio.create_task(memory.declare_scene("chan:a"))
                await asyncio.sleep(0.01)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                let_go()
            await memory.declare_scene("chan:b")
            return {scene.key for scene in await memory.scenes()}

    assert asyncio.run(use()) >= {"chan:b"}


def test_a_turn_has_the_methods_of_a_turn_as_coroutines(path):
    async def use():
        async with AsyncMemory.open(path) as memory:
            for _ in range(2):
                async with await memory.turn(Event(source="qq")) as turn:
                    report = await turn.commit([FACT])
                    await turn.tool("shell")
            assert (await turn.visit()).key == "auto:chan:qq"
            assert report.scenes == ("auto:chan:qq", "chan:qq")
            assert await turn.read_keys() == ("chan:qq", "tool:shell", "auto:chan:qq")
            assert await turn.write_keys() == ("auto:chan:qq", "chan:qq", "tool:shell")
            return await turn.brief(), await turn.recall("纯文本"), await turn.recall_message(""), await turn.prune([])

    brief, found, message, pruned = asyncio.run(use())

    assert "纯文本" in brief.text
    assert [hit.text for hit in found] == ["老大 偏好 纯文本: 老大偏好纯文本。"]
    assert (message.text, pruned.events) == ("", ())


def test_every_method_of_a_turn_is_a_coroutine_of_the_other():
    for name, member in vars(Turn).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            assert inspect.iscoroutinefunction(getattr(AsyncTurn, name)), name
            assert inspect.signature(getattr(AsyncTurn, name)).parameters == inspect.signature(member).parameters
