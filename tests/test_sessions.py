"""Sessions: what was said comes back word for word, kept to its project, and goes when its host removes it."""

import pytest
from support import sql, text_index_of

from graphmem import Conflict, InvalidInput, Memory, NotFound, Part
from graphmem.core.injected import WRITER_MARK
from graphmem.core.payloads import LONGEST_OUTPUT
from graphmem.core.snippets import REACH, snippet

TALK = [
    Part("u1", author="Ann", role="user", text="Where does the staging server run?"),
    Part("a1", role="assistant", text="  It runs on harbour-7,\n\tport 8443. "),
    Part("t1", role="tool", tool="bash", outcome="failed", text="ping harbour-7: timeout", message="a2"),
    Part("a2", role="assistant", text="The ping fails.", message="a2"),
]


def parts_of(path, session="s1"):
    return [
        part
        for (part,) in sql(
            path,
            "SELECT part FROM parts WHERE session_id = (SELECT id FROM sessions WHERE name = ?) ORDER BY seq",
            session,
        )
    ]


@pytest.fixture
def talk(memory):
    memory.mirror("s1", TALK)
    return memory


def test_text_of_users_and_assistants_is_searchable_at_once_and_comes_back_byte_for_byte(talk):
    found = {hit.part.part: hit for hit in talk.history("harbour-7 staging")}

    assert {"u1", "a1"} <= found.keys()
    assert found["a1"].part.text == TALK[1].text
    assert talk.part("a1") == talk.part(found["a1"].part.id) == found["a1"].part
    assert "harbour-7" in found["a1"].snippet


def test_the_call_of_a_tool_is_kept_with_how_it_ended(talk):
    call = talk.part("t1")

    assert (call.tool, call.outcome, call.message, call.role) == ("bash", "failed", "a2", "tool")
    assert talk.mirror("s1", [Part("t1", text=TALK[2].text, outcome="done")]).changed == 1
    assert (talk.part("t1").tool, talk.part("t1").outcome) == ("bash", "done")


def test_an_outcome_that_does_not_exist_is_refused():
    with pytest.raises(InvalidInput, match="outcome = 'maybe': give 'done' or 'failed'"):
        Part("p", text="x", outcome="maybe")


# ---- projects


def test_a_part_of_another_scope_hides_none_and_its_session_is_not_named(memory):
    memory.mirror("falcon", [Part("m1", text="hidden")], scope="project:bbbbbbbbbbbb")
    memory.mirror("mine", [Part("m1", text="mine"), Part("m2", text="mine too")], scope="project:aaaaaaaaaaaa")

    assert memory.part("m1", scopes=["project:aaaaaaaaaaaa"]).text == "mine"
    with pytest.raises(Conflict, match="name its scope") as refused:
        memory.part("m1", scopes=["project:cccccccccccc"])
    assert "falcon" not in str(refused.value)
    with pytest.raises(Conflict, match="name its scope"):
        memory.part("m2")


@pytest.fixture
def two_projects(memory):
    memory.mirror("here", [Part("p1", text="The panel uses pnpm.")], scope="project:aaaaaaaaaaaa")
    memory.mirror("there", [Part("p2", text="The engine uses pnpm.")], scope="project:bbbbbbbbbbbb")
    memory.mirror("nowhere", [Part("p3", text="Everybody uses pnpm.")])
    return memory


def test_a_search_never_reaches_another_project_unless_it_is_named(two_projects):
    def found(**options):
        return {hit.part.part for hit in two_projects.history("pnpm", floor=0, **options)}

    assert found() == {"p3"}
    assert found(scopes=["project:aaaaaaaaaaaa"]) == {"p1", "p3"}
    assert found(scopes="all") == {"p1", "p2", "p3"}
    assert found(scopes="all", session="there") == {"p2"}


def test_a_part_of_another_project_is_refused_by_name(two_projects):
    with pytest.raises(Conflict, match="'p1' is of scope 'project:aaaaaaaaaaaa'"):
        two_projects.part("p1")
    assert two_projects.part("p1", scopes=["project:aaaaaaaaaaaa"]).text == "The panel uses pnpm."
    assert two_projects.part("p3").session == "nowhere"


def test_an_id_of_several_sessions_says_so(memory):
    for session in ("s1", "s2"):
        memory.mirror(session, [Part("m1", text=session)])

    with pytest.raises(Conflict, match="'m1' is in sessions 's1', 's2'"):
        memory.part("m1")
    assert memory.part("m1", session="s2").text == "s2"


@pytest.mark.parametrize("part", ["unknown", 99])
def test_an_unknown_part_is_not_found(talk, part):
    with pytest.raises(NotFound, match="no part"):
        talk.part(part)


@pytest.mark.parametrize("part", ["", "  ", 0, True, None, 1.0])
def test_what_is_no_id_of_a_part_is_refused(talk, part):
    with pytest.raises(InvalidInput, match="part"):
        talk.part(part)


def test_a_session_that_is_not_mirrored_is_no_empty_answer(talk):
    with pytest.raises(NotFound, match="no session 's9'"):
        talk.history("harbour", session="s9")


# ---- floor and snippets


def test_weak_hits_are_cut_off_below_the_floor_and_the_best_is_always_shown(memory):
    memory.mirror("s1", [Part("m1", text="zebra zebra crossing"), *[Part(f"f{n}", text="filler") for n in range(9)]])
    memory.mirror("s2", [Part("m2", text="A crossing of roads, far away, with many other words around it.")])
    every = memory.history("zebra crossing", floor=0)

    assert len(every) > 1
    assert [hit.part.part for hit in memory.history("zebra crossing", floor=1)] == ["m1"]
    assert all(hit.score >= 0.5 * every[0].score for hit in memory.history("zebra crossing", floor=0.5))


@pytest.mark.parametrize("floor", [-0.1, 1.1, "x", True])
def test_a_floor_that_is_no_share_is_refused(talk, floor):
    with pytest.raises(InvalidInput, match="floor"):
        talk.history("harbour", floor=floor)


def test_a_snippet_of_chinese_shows_the_words_that_were_asked_for():
    text = "今天天气很好，" * 40 + "最后我们决定把前端部署在港口七号服务器上。" + "然后大家去吃饭了。" * 40

    shown = snippet(text, "怎么部署前端")

    assert "部署" in shown
    assert "前端" in shown
    assert shown.startswith("...")
    assert shown.endswith("...")
    assert len(shown) <= 2 * REACH + len("...") * 2 + 4
    assert shown.strip(".") in text


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("short", "short", "short"),
        ("no word of it", "zebra", "no word of it"),
        ("a " * 100 + "b", "zebra", "a " * 80 + "..."),
        ("Deploying\n\n  it", "deploy", "Deploying it"),
        ("x" * 200 + " pnpm", "pnpm", "..." + "x" * 79 + " pnpm"),
        ("pnpm " + "x" * 200, "PNPM", "pnpm " + "x" * 79 + "..."),
    ],
)
def test_a_snippet_is_marked_on_the_sides_that_are_cut(text, query, shown):
    assert snippet(text, query) == shown


# ---- what is too large


def test_a_payload_leaves_its_size_and_digest(memory):
    payload = "QUJD" * 1000
    report = memory.mirror("s1", [Part("m1", role="user", text=f"See data:image/png;base64,{payload} please.")])

    text = memory.part("m1").text
    assert text.startswith("See data:image/png;base64,[4000 characters, sha256 ")
    assert text.endswith("] please.")
    assert report.remarks == ("parts[0]: of 4034 characters 76 were kept, with a reference to the rest",)
    again = memory.mirror("s1", [Part("m1", role="user", text=f"See data:image/png;base64,{payload} please.")])
    assert (again.changed, again.known) == (0, 1)


def test_long_output_of_a_tool_keeps_its_ends_and_what_people_say_is_never_cut(memory):
    output = "".join(f"line {number}\n" for number in range(9000))
    memory.mirror("s1", [Part("t1", tool="bash", text=output), Part("u1", role="user", text=output)])

    kept = memory.part("t1").text
    assert kept.startswith("line 0\n")
    assert kept.endswith("line 8999\n")
    assert f"{len(output) - LONGEST_OUTPUT} characters left out" in kept
    assert memory.part("u1").text == output


def test_a_secret_at_the_cut_is_replaced_whole(memory):
    token = "ghp_" + "a1B2" * 9
    half = LONGEST_OUTPUT // 2
    memory.mirror("s1", [Part("t1", tool="bash", text="x" * (half - 11) + " " + token + " " + "y" * 2 * half)])

    kept = memory.part("t1").text
    assert "ghp_" not in kept
    assert "a1B2" not in kept


# ---- removal


def test_parts_and_messages_go_as_their_host_removes_them(talk, path):
    assert talk.delete_parts("s1", "u1").removed == 1
    assert talk.delete_parts("s1", messages="a2").removed == 2
    assert talk.delete_parts("s1", ["u1", "never"]).removed == 0

    assert parts_of(path) == ["a1"]
    assert not talk.history("staging", floor=0)
    assert talk.check().problems == ()
    before = text_index_of(talk.path)
    talk.reindex()
    assert text_index_of(talk.path) == before
    assert talk.mirror("s1", TALK).added == 3
    assert parts_of(path) == ["u1", "a1", "t1", "a2"]


def test_a_session_goes_with_its_parts_and_what_was_made_of_it_stays(talk, path):
    talk.remember("The staging server is harbour-7", session="s1", source="user")

    assert talk.delete_session("s1").removed == 4

    assert sql(path, "SELECT (SELECT COUNT(*) FROM parts), (SELECT COUNT(*) FROM sessions)") == [(0, 0)]
    assert [hit.kind for hit in talk.recall("harbour-7")] == ["note"]
    with pytest.raises(NotFound, match="no session 's1'"):
        talk.delete_session("s1")


def test_to_remove_nothing_in_particular_is_refused(talk):
    with pytest.raises(InvalidInput, match="name parts or messages"):
        talk.delete_parts("s1")


# ---- what a later digest reads


def undigested(path):
    return [part for (part,) in sql(path, "SELECT part FROM parts WHERE job_id IS NULL ORDER BY id")]


def test_a_part_that_says_something_else_is_read_again(talk, path):
    sql(path, "UPDATE parts SET job_id = 1")

    talk.mirror("s1", [Part("a1", text="It moved to harbour-9."), Part("u1", text=TALK[0].text, author="Anna")])

    assert undigested(path) == ["a1"]


def test_the_session_of_a_writer_is_known_by_what_it_was_asked(memory, path):
    memory.mirror("w1", [Part("m1", role="user", text=f"{WRITER_MARK}\nSum up the session.")])
    memory.mirror("s1", [Part("m1", role="user", text=f"What is {WRITER_MARK}?")])

    assert sql(path, "SELECT name, own FROM sessions ORDER BY name") == [("s1", 0), ("w1", 1)]


def test_a_read_only_memory_is_searched_and_not_mirrored_into(talk, path):
    from graphmem import Config

    with Memory.open(path, config=Config(read_only=True)) as reader:
        assert reader.history("staging")
        for write in (
            lambda: reader.mirror("s1", [Part("m9", text="x")]),
            lambda: reader.delete_parts("s1", "u1"),
            lambda: reader.delete_session("s1"),
        ):
            with pytest.raises(Conflict, match="read-only"):
                write()
