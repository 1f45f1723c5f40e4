"""Scopes: what is read by default, by name and by word; what they hold; that nothing leaks."""

import asyncio
import contextlib
import json

import pytest
from support import dump, sql, sql_unchecked

from graphmem import AsyncMemory, Config, Conflict, Event, InvalidInput, Memory, NotFound, Part, Situation, Triple
from graphmem.store import schema
from graphmem.surfaces.cli import main

HERE = Situation.of(chan="qq", peer="boss")
KEY = "chan:qq/peer:boss"
OWNERS = ("user", "mine", "session", "theirs", "elsewhere", "named")


@pytest.fixture
def folders(tmp_path):
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    return {name: tmp_path / name for name in ("mine", "theirs")}


@pytest.fixture
def opened(path, clock, folders):
    """Open the memory for a project and a session."""

    def open_for(project="mine", session="now", **options):
        folder = folders.get(project)
        return Memory.open(path, clock=clock, project=folder, session=session, **options)

    return open_for


def fill(memory, owner, scope):
    name = f"zq{owner}"
    facts = [
        Triple(f"pelican {name}", "eats", f"fish {name}", sentence=f"Pelican {name} eats."),
        Triple("pelican", "is of", f"zoo {name}"),
        Triple("pelican", "lives at", f"sea {name}", functional=True),
    ]
    memory.commit(facts, scenes=KEY, scope=scope)
    memory.remember(f"pelican note {name}", scope=scope)
    memory.mirror(f"talk {name}", [Part("m1", text=f"a pelican part {name}")], scope=scope)


@pytest.fixture
def full(opened, path):
    """A memory with something in every scope; returns the path of it."""
    with opened("theirs", "before") as memory:
        fill(memory, "theirs", "project")
        fill(memory, "elsewhere", "session")
    with opened() as memory:
        fill(memory, "user", "user")
        fill(memory, "mine", "project")
        fill(memory, "session", "session")
        fill(memory, "named", "work")
    return path


def owners_in(told):
    return {owner for owner in OWNERS if f"zq{owner}" in told}


# Each verb that reads, as told by its representation: nothing of it may name what is not admitted.
READS = {
    "recall": lambda memory, scopes: memory.recall("pelican", scopes=scopes, limit=50),
    "recall keyword": lambda memory, scopes: memory.recall("pelican", scopes=scopes, mode="keyword", limit=50),
    "recall vector": lambda memory, scopes: memory.recall("pelican", scopes=scopes, mode="vector", limit=50),
    "recall scene": lambda memory, scopes: memory.recall(
        "", situation=HERE, scopes=scopes, mode="scene", scenes=KEY, limit=50
    ),
    "recall graph": lambda memory, scopes: memory.recall("pelican", scopes=scopes, mode="graph", limit=50),
    "recall names": lambda memory, scopes: memory.recall("pelican", scopes=scopes, kinds=["entity"], limit=50),
    "recall explained": lambda memory, scopes: memory.recall(
        "what did the pelican eat before", situation=HERE, scopes=scopes, explain=True, limit=50
    ),
    "recall precise": lambda memory, scopes: memory.recall("pelican note", scopes=scopes, precise=True, limit=50),
    "recall_by_scene": lambda memory, scopes: memory.recall_by_scene(KEY, scopes=scopes, limit=50),
    "recall_by_situation": lambda memory, scopes: memory.recall_by_situation(
        HERE, declared=KEY, scopes=scopes, limit=50
    ),
    "neighbours": lambda memory, scopes: memory.neighbours("pelican", scopes=scopes, depth=3, limit=50),
    "graph": lambda memory, scopes: sorted(memory.graph(scopes=scopes).edges(data=True, keys=True), key=repr),
    "graph around": lambda memory, scopes: memory.draw("json", entity="pelican", scopes=scopes),
    "draw": lambda memory, scopes: memory.draw(scopes=scopes),
    "shortest_path": lambda memory, scopes: [
        steps_to(memory, owner, scopes) for owner in OWNERS
    ],
    "brief": lambda memory, scopes: memory.brief(HERE, query="pelican", declared=KEY, scopes=scopes, budget=9000).text,
    "turn": lambda memory, scopes: turn(memory, scopes),
}  # fmt: skip
WHOLE = set(READS) - {"recall precise"}  # those that show all that they may


def steps_to(memory, owner, scopes):
    try:
        return [step.object for step in memory.shortest_path("pelican", f"zoo zq{owner}", scopes=scopes).steps]
    except NotFound as error:
        return str(error).replace(f"zoo zq{owner}", "")


def turn(memory, scopes):
    event = Event(source="qq", payload={"user_id": "boss", "scene": KEY}, text="pelican")
    with memory.turn(event, scopes=scopes) as told:
        return told.recall("pelican", limit=50), told.brief(budget=9000).text, told.recall_message("pelican").text


ADMITTED = {
    "by default": (None, {"user", "mine", "session"}),
    "nothing more": ([], {"user"}),
    "the user's": (["user"], {"user"}),
    "the project's": ("project", {"user", "mine"}),
    "the session's": (["session"], {"user", "session"}),
    "another": (["work"], {"user", "named"}),
    "several": (["work", "project"], {"user", "named", "mine"}),
    "all": ("all", set(OWNERS)),
    "all and more": (["all", "nothing"], set(OWNERS)),
    "nobody's": (["nobody"], {"user"}),
}


@pytest.mark.parametrize(("scopes", "expected"), ADMITTED.values(), ids=ADMITTED)
@pytest.mark.parametrize("read", READS)
def test_nothing_leaks_through_any_verb_that_reads(full, opened, read, scopes, expected):
    with opened() as memory:
        told = repr(READS[read](memory, scopes))

    assert owners_in(told) <= expected
    if read in WHOLE:
        assert owners_in(told) == expected


@pytest.mark.parametrize("read", READS)
def test_without_a_project_and_a_session_the_users_own_is_read(full, opened, read):
    with opened(None, "") as memory:
        assert owners_in(repr(READS[read](memory, None))) <= {"user"}


ASYNC = {
    "recall": (("pelican",), {"limit": 50}),
    "recall_by_scene": ((KEY,), {"limit": 50}),
    "recall_by_situation": ((HERE,), {"declared": KEY, "limit": 50}),
    "neighbours": (("pelican",), {"limit": 50}),
    "draw": ((), {}),
    "brief": ((HERE,), {"query": "pelican", "declared": KEY, "budget": 9000}),
}


@pytest.mark.parametrize("verb", ASYNC)
def test_nothing_leaks_through_coroutines(full, clock, folders, verb):
    arguments, options = ASYNC[verb]

    async def run():
        async with AsyncMemory.open(full, clock=clock, project=folders["mine"], session="now") as memory:
            assert (memory.project.label, memory.session) == ("mine", "now")
            every = await getattr(memory, verb)(*arguments, **options, scopes="all")
            return owners_in(repr(await getattr(memory, verb)(*arguments, **options))), owners_in(repr(every))

    assert asyncio.run(run()) == ({"user", "mine", "session"}, set(OWNERS))


def test_nothing_leaks_through_a_turn_of_coroutines(full, clock, folders):
    async def run():
        async with (
            AsyncMemory.open(full, clock=clock, project=folders["mine"], session="now") as memory,
            await memory.turn(Event(source="qq", payload={"user_id": "boss"}, text="pelican")) as told,
        ):
            return owners_in(repr(await told.recall("pelican", limit=50)))

    assert asyncio.run(run()) == {"user", "mine", "session"}


@pytest.fixture
def cli(capsys, full, folders, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("PROJECT", "SESSION", "DB", "CONFIG"):
        monkeypatch.delenv(f"GRAPHMEM_{name}", raising=False)

    def run(*arguments, group=("--project", folders["mine"], "--session", "now")):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(["--db", str(full), *map(str, group), *arguments])
        told = capsys.readouterr()
        assert end.value.code == 0, told.err
        return told.out

    return run


COMMANDS = {
    "recall": ["pelican", "--limit", "50"],
    "recall by scene": ["--scene", KEY, "--limit", "50"],
    "recall by situation": ["--chan", "qq", "--peer", "boss", "--scene", KEY, "--limit", "50"],
    "brief": ["pelican", "--chan", "qq", "--peer", "boss", "--budget", "9000"],
    "turn": ['{"source": "qq", "payload": {"user_id": "boss"}, "text": "pelican"}', "--budget", "9000"],
    "neighbours": ["pelican", "--limit", "50"],
    "graph": [],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_leaks_through_commands(cli, command):
    words = [command.split()[0], *COMMANDS[command]]

    assert owners_in(cli(*words, "--json")) == {"user", "mine", "session"}
    assert owners_in(cli(*words, "--json", "--scope", "project")) == {"user", "mine"}
    assert owners_in(cli(*words, "--json", "--scope", "work", "--scope", "user")) == {"user", "named"}
    assert owners_in(cli(*words, "--json", "--scope", "all")) == set(OWNERS)
    assert owners_in(cli(*words, "--json", group=())) == {"user"}


def test_the_command_line_takes_the_working_tree_it_is_called_in(cli, folders, monkeypatch):
    for name in ("objects", "refs"):
        (folders["mine"] / ".git" / name).mkdir(parents=True)
    (folders["mine"] / ".git" / "HEAD").write_text("")
    (folders["mine"] / "src").mkdir()
    monkeypatch.chdir(folders["mine"] / "src")

    assert owners_in(cli("recall", "pelican", "--limit", "50", group=())) == {"user", "mine"}
    assert owners_in(cli("recall", "pelican", group=("--project", ""))) == {"user"}
    monkeypatch.setenv("HOME", str(folders["mine"]))
    assert owners_in(cli("recall", "pelican", group=())) == {"user"}
    monkeypatch.setenv("GRAPHMEM_PROJECT", str(folders["theirs"]))
    monkeypatch.setenv("GRAPHMEM_SESSION", "before")
    assert owners_in(cli("recall", "pelican", "--limit", "50", group=())) == {"user", "theirs", "elsewhere"}


def test_a_fact_is_told_into_a_scope_by_command(cli, opened, full):
    cli("commit", "pelican", "is", "grey", "--scope", "project")

    with opened() as memory:
        assert sql(full, "SELECT scope FROM relations ORDER BY id DESC LIMIT 1") == [(memory.project.key,)]


# ---- writing


def test_words_are_the_scopes_that_they_mean(full, opened, folders):
    with opened() as memory:
        key = memory.project.key
        assert [note for (note,) in sql(full, "SELECT scope FROM notes ORDER BY id")][2:] == [
            "", key, "session:now", "work",
        ]  # fmt: skip
        memory.commit([Triple("a", "b", "c")], scope="user")
        memory.commit([Triple("a", "b", "d")], scope=key)
    assert sql(full, "SELECT scope FROM relations ORDER BY id DESC LIMIT 2") == [(key,), ("",)]


WRONG = {
    "no project": lambda memory: memory.commit([Triple("a", "b", "c")], scope="project"),
    "no session": lambda memory: memory.remember("a", scope="session"),
    "all to write": lambda memory: memory.mirror("s1", [Part("m", text="a")], scope="all"),
    "all to purge": lambda memory: memory.purge(scope="all"),
    "no project to purge": lambda memory: memory.purge(scope="project"),
    "no text": lambda memory: memory.commit([Triple("a", "b", "c")], scope=3),
}
WRONG_READS = {
    "no project to read": lambda memory: memory.recall("a", scopes=["project"]),
    "no session to read": lambda memory: memory.recall_by_scene("a", scopes="session"),
    "no project for a turn": lambda memory: memory.turn(None, scopes="project"),
    "no list": lambda memory: memory.graph(scopes=3),
}


@pytest.mark.parametrize(("argument", "act"), [
    *(("scope", act) for act in WRONG.values()), *(("scopes", act) for act in WRONG_READS.values())
])  # fmt: skip
def test_what_is_no_scope_is_refused_and_changes_nothing(memory, path, argument, act):
    memory.commit([Triple("a", "is", "b")])
    before = dump(path)

    with pytest.raises(InvalidInput) as refused:
        act(memory)

    assert refused.value.argument == argument
    assert dump(path) == before


@pytest.mark.parametrize("wrong", [" ", 3, None])
def test_a_session_has_a_name(path, wrong):
    with pytest.raises(InvalidInput, match="session"):
        Memory.open(path, session=wrong)
    assert not path.exists()


def test_sessions_inherit_their_project(opened, path):
    with opened(session="") as memory:
        memory.mirror("s1", [Part("m1", text="ramen")])
        memory.mirror("s2", [Part("m1", text="ramen")], scope="user")
        key = memory.project.key
    with opened("theirs", session="") as memory:
        assert len(memory.recall("ramen")) == 1
        for options in ({}, {"scope": "project"}):
            with pytest.raises(Conflict, match=f"'s1' is of scope '{key}'"):
                memory.mirror("s1", [Part("m2", text="sushi")], **options)
        assert memory.mirror("s2", [Part("m2", text="sushi")]).remarks == ()
    assert sql(path, "SELECT name, scope FROM sessions ORDER BY id") == [("s1", key), ("s2", "")]


def test_the_scope_of_a_session_is_below_its_project(opened):
    with opened() as memory:
        found = {one.key: one for one in memory.scopes()}

        assert (found["session:now"].kind, found["session:now"].parent) == ("session", memory.project.key)
    with opened("theirs") as memory:
        assert {one.key: one for one in memory.scopes()}["session:now"] == found["session:now"]


# ---- listing and purging


def test_scopes_tell_what_they_hold(full, opened, folders):
    with opened() as memory:
        before = dump(full)
        found = {one.key: one for one in memory.scopes()}
        key = memory.project.key

        assert dump(full) == before
    assert list(found) == ["", key, *(one for one in found if one.startswith("project:") and one != key), "work",
                           "session:before", "session:now"]  # fmt: skip
    assert {(one.facts, one.notes, one.sessions) for one in found.values()} == {(3, 1, 1)}
    assert [one.key for one in found.values() if one.current] == ["", key, "session:now"]
    mine = found[key]
    assert (mine.kind, mine.label, mine.place) == ("project", "mine", str(folders["mine"]))
    assert ("path", str(folders["mine"])) in mine.aliases
    assert [found[one].kind for one in ("", "work", "session:now")] == ["user", "named", "session"]


def test_scopes_are_listed_by_command(cli, folders):
    (mine,) = (one for one in json.loads(cli("scopes", "--json")) if one["label"] == "mine")

    assert (mine["facts"], mine["current"], mine["place"]) == (3, True, str(folders["mine"]))
    table = cli("scopes")
    assert "user" in table
    assert mine["key"] in table


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("word", ["project", "session", "work", "user"])
def test_a_purge_of_a_scope_takes_just_that_and_says_how_many(full, opened, hard, word):
    """SCP-06."""
    owner = {"project": "mine", "work": "named"}.get(word, word)
    with opened() as memory:
        dry = memory.purge(scope=word, hard=hard, dry_run=True)
        report = memory.purge(scope=word, hard=hard)

        assert (len(dry.relations), len(dry.notes), dry.parts) == (3, 1, 1)
        assert (len(report.relations), len(report.notes), report.parts) == (3, 1, 1)
        assert owners_in(repr(memory.recall("pelican", scopes="all", limit=50))) == set(OWNERS) - {owner}
        assert owners_in(repr(memory.recall("pelican", limit=50))) == {"user", "mine", "session"} - {owner}
        with pytest.raises(InvalidInput, match="never of everything"):
            memory.purge(scope="")
        fill(memory, owner, word)
        assert owners_in(repr(memory.recall("pelican", scopes="all", limit=50))) == set(OWNERS)


def test_a_project_that_is_purged_for_good_leaves_no_name(full, opened, folders):
    with opened() as memory:
        key = memory.project.key
        memory.purge(scope="project", hard=True)
        assert key not in {one.key for one in memory.scopes()}
        # Where notes that stay were told first is theirs to keep.
        assert not any(str(folders["mine"]) in line for line in dump(full) if "provenance" not in line)
        memory.commit([Triple("a", "b", "c")], scope="project")
    with opened() as memory:
        assert memory.project.key == key
        assert memory.project.place == str(folders["mine"])
        assert memory.recall("a b c")


# ---- what leaving things out costs, and that it cannot be passed by


def statements_of(memory, act):
    said = []
    with memory._store.read() as tx:
        tx.set_trace_callback(said.append)
        act()
        tx.set_trace_callback(None)
    return said


@pytest.mark.sqlite
def test_where_all_that_is_stored_is_the_users_nothing_is_filtered(opened):
    with opened() as memory:
        memory.commit([Triple("a", "b", "d")], scenes=KEY)
        alone = statements_of(memory, lambda: memory.recall_by_scene(KEY))
        with opened("theirs", "before"):
            beside = statements_of(memory, lambda: memory.recall_by_scene(KEY))
        memory.commit([Triple("a", "b", "c")], scope="work")
        filtered = statements_of(memory, lambda: memory.recall_by_scene(KEY))

    assert not any("r.scope" in said for said in (*alone, *beside))
    assert any("r.scope" in said for said in filtered)
    assert len(alone) == len(filtered)
    assert sum("scopes" in said for said in alone) == 1


def test_what_another_memory_writes_is_left_out_at_once(opened):
    with opened() as mine, opened("theirs", "before") as theirs:
        assert mine.recall("pelican") == ()
        fill(theirs, "theirs", "project")

        assert mine.recall("pelican") == ()
        assert mine.recall("pelican", scopes="all")


def test_whoever_writes_a_scope_it_is_known(memory, path):
    at = "2026-09-01T00:00:00.000Z"
    memory.commit([Triple("a", "b", "c"), Triple("a", "b", "d")], scope="one")
    memory.remember("a", scope="two")
    sql(path, "UPDATE notes SET scope = 'three'")
    sql(path, f"INSERT INTO sessions(name, scope, created_at, updated_at) VALUES ('s', 'project:x', '{at}', '{at}')")
    sql(
        path,
        f"""INSERT INTO incidents(scope, signature, tool, first_at, last_at)
            VALUES ('session:y', 'f', 'b', '{at}', '{at}')""",
    )

    found = {one.key: one.kind for one in memory.scopes()}
    assert found == {"": "user", "one": "named", "two": "named", "three": "named", "project:x": "project",
                     "session:y": "session"}  # fmt: skip
    assert sql(path, "SELECT COUNT(*) FROM scopes WHERE filled = 1") == [(5,)]


@pytest.mark.sqlite
def test_the_look_at_other_scopes_reads_an_index(memory, path):
    plan = sql(path, "EXPLAIN QUERY PLAN SELECT 1 FROM scopes WHERE filled = 1 AND key NOT IN ('', 'a') LIMIT 1")

    assert "scopes_filled" in plan[0][-1]


def test_equal_texts_of_user_and_project_score_alike(opened):
    """C8.8."""
    with opened("theirs") as memory:
        memory.remember("pnpm deploys", scope="project")
    with opened() as memory:
        for scope in ("user", "project"):
            memory.remember("pnpm deploys", scope=scope)

        one, other = memory.recall("pnpm")
        assert one.score == other.score
        assert len(memory.recall("pnpm", scopes="all")) == 3


def test_a_memory_that_cannot_be_opened_for_its_project_is_closed(path, tmp_path, monkeypatch):
    from graphmem.records import scopes

    def fails(tx, signs):
        raise Conflict("no")

    monkeypatch.setattr(scopes, "find_project", fails)
    with pytest.raises(Conflict), contextlib.closing(Memory.open(path, project=tmp_path)):
        pass


@pytest.mark.sqlite
def test_a_file_of_before_knows_its_scopes(memory, path):
    memory.commit([Triple("a", "b", "c"), Triple("a", "b", "d")], scope="one")
    for act in ("written", "changed"):
        sql(path, f"DROP TRIGGER relations_scope_{act}")
    sql(path, "DELETE FROM scopes")
    assert memory.recall("a b c")

    for statement in schema._note_scopes_of("relations", "recorded_at").split(";\n"):
        sql(path, statement)

    assert memory.recall("a b c") == ()
    assert sql(path, "SELECT key, kind, filled FROM scopes") == [("one", "named", 1)]


@pytest.mark.parametrize("hard", [False, True])
def test_a_purge_of_a_scope_takes_its_incidents(memory, hard):  # SCP-06
    for scope in ("work", "play"):
        memory.record_failure("bash", "pelican-42 is missing", scope=scope)

    report = memory.purge(scope="work", hard=hard)

    assert report.incidents == 1
    assert [one.scope for one in memory.incidents(scopes="all")] == ["play"]
    if not hard:
        memory.undo(report.operation)
        assert len(memory.incidents(scopes="all")) == 2
    assert memory.check().ok


# ---- notes and failures have a home


def test_what_is_so_is_the_users_and_what_is_learnt_is_the_projects(opened):  # C8.1
    with opened() as memory:
        home = {
            kind: memory.remember(f"a {kind}", kind=kind, source="user").note.scope
            for kind in ("fact", "preference", "rule", "lesson", "pitfall", "decision", "checkpoint")
        }
        explicit = memory.remember("another lesson", kind="lesson", scope="user").note.scope
        failure = memory.record_failure("bash", "exit 1").incident.scope
        key = memory.project.key

    assert home == {
        **dict.fromkeys(("fact", "preference", "rule"), ""),
        **dict.fromkeys(("lesson", "pitfall", "decision", "checkpoint"), key),
    }
    assert (explicit, failure) == ("", key)


def test_project_memory_off_puts_everything_into_the_users_scope(tmp_path, clock):  # C8.1
    folder = tmp_path / "mine"
    folder.mkdir()
    config = Config(project_memory=False)
    with Memory.open(tmp_path / "m.db", clock=clock, project=folder, session="now", config=config) as memory:
        lesson = memory.remember("a lesson", kind="lesson").note
        named = memory.remember("a fact", scope="project").note
        memory.mirror("s1", [Part("m1", text="hello pelican")])

        assert (lesson.scope, named.scope) == ("", "")
        assert memory.remember("of today", scope="session").note.scope == ""
        assert memory.recall("pelican", scopes=[])


def test_a_note_knows_the_project_and_session_it_was_told_in(opened):
    with opened() as memory:
        origin = memory.remember("Tea at four").note.origin

        assert (origin.place, origin.session) == (memory.project.place, memory.session)


def test_a_lesson_resolves_the_failures_of_its_project_alone(opened):
    with opened() as memory:
        memory.record_failure("bash", "exit 1")
        memory.record_failure("bash", "exit 1", scope="user")

        assert len(memory.remember("bash: look first", kind="lesson").resolved) == 1
        assert [one.scope for one in memory.incidents()] == [""]


def test_an_overview_names_nothing_of_others(full, opened):
    with opened() as memory:
        told = memory.overview()
        assert owners_in(repr(told)) == {"user", "mine", "session"}
        assert told.relations == 3 * len(OWNERS)
    with opened(None, "") as memory:
        assert owners_in(repr(memory.overview())) == {"user"}


def test_scopes_that_hold_nothing_cost_nothing(full, opened):
    """Else each of thousands of names is looked up in each of the queries of a brief."""
    with opened() as memory, memory._store.read() as tx:
        assert memory._scopes(tx, ["work", *(f"nobody {number}" for number in range(4000))]) == ["work"]
        assert memory._scopes(tx, ["nobody"]) == []


def test_a_scope_of_which_nothing_can_be_seen_is_refused(memory):
    for write in (
        lambda: memory.remember("a", scope="  "),
        lambda: memory.commit([Triple("a", "is", "b")], scope=" "),
        lambda: memory.recall("a", scopes=[" \t"]),
    ):
        with pytest.raises(InvalidInput, match="scope"):
            write()
    assert memory.overview().notes == memory.overview().relations == 0


def test_a_read_only_memory_counts_no_uses_that_it_could_not_write(path, caplog):
    with Memory.open(path) as memory:
        memory.remember("the port is 80")
    with Memory.open(path, config=Config(read_only=True)) as memory:
        assert memory.recall("port")
    assert not caplog.records


def test_a_planted_alias_that_leads_to_no_project_shuts_nobody_out(path, opened, folders):
    with opened() as memory:
        memory.remember("a", scope="work")
    sql(path, "DELETE FROM scope_aliases")
    for number, scope in enumerate(("project:gone", "work")):
        sql_unchecked(path, "INSERT INTO scope_aliases VALUES ('path', ?, ?)", str(folders["theirs"]), scope)

        with opened("theirs", f"s{number}") as memory:
            assert memory.project.place == str(folders["theirs"])
            assert memory.check().ok
        sql(path, "DELETE FROM scope_aliases")
        sql(path, "DELETE FROM scopes WHERE kind = 'project'")
