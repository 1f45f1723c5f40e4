"""Entities that may be one: what a review offers, what is kept apart, what an arbiter decides."""

import dataclasses
import json
import shlex
import sys
import time
from pathlib import Path

import pytest
from support import Served, answer_of, dump, sql

from graphmem import (
    Conflict,
    InvalidInput,
    Memory,
    NotFound,
    Triple,
    WriterFailed,
    command_arbiter,
    endpoint_arbiter,
)
from graphmem.core.model import EntityPair, SimilarEntity
from graphmem.surfaces.cli import main
from graphmem.upkeep.journal import Journal
from graphmem.upkeep.review import pass_round

PAIR = EntityPair(
    SimilarEntity(1, "postgresql", 3, "postgresql runs."),
    SimilarEntity(2, "postgressql", 1, "关于 postgressql"),
    0.9, 0.9, ("panel",), titled=False, machine=True,
)  # fmt: skip


def know(memory, *names, of="x"):
    memory.commit([Triple(name, f"is {place}", of, sentence=f"{name} is here.") for place, name in enumerate(names)])


def offered(memory, **options):
    return [{pair.a.name, pair.b.name} for pair in memory.review_entities(**options).pairs]


def upkeep_pass(memory):
    """What a pass of upkeep does with pairs: look at them, then count the round."""
    pairs = offered(memory)
    with memory._store.write() as tx:
        journal = Journal(tx)
        if pass_round(journal):
            journal.close("round", memory._at(None), {})
    return pairs


@pytest.fixture
def typos(memory):
    """Two spellings, the first told of more often."""
    know(memory, "postgresql", "postgressql")
    memory.commit([Triple("postgresql", "runs on", "panel", sentence="postgresql runs on the panel.")])
    return memory


# ---- what is offered


def test_a_pair_comes_with_what_a_person_needs_to_judge_it(typos):
    report = typos.review_entities()

    (pair,) = report.pairs
    assert (pair.a.name, pair.b.name) == ("postgresql", "postgressql")
    assert (pair.a.mentions, pair.b.mentions) == (2, 1)
    assert (pair.a.sentence, pair.b.sentence) == ("postgresql runs on the panel.", "postgressql is here.")
    assert pair.shared == ("x",)
    assert pair.similarity == 0.9
    assert pair.score == pytest.approx(0.9 + 0.1 * 0.5 * 1 / 2)
    assert (pair.machine, pair.titled, report.more, report.entities, report.apart) == (True, False, False, 4, 0)


def test_a_review_writes_nothing(typos, path):
    before = dump(path)

    typos.review_entities()

    assert dump(path) == before


def test_names_that_are_one_key_are_one_entity_before_any_review(memory):  # DUP-01
    for session, name in enumerate(["XKB", "xkb ", "ＸＫＢ"]):
        memory.commit([Triple(name, f"is {session}", "something else")], session=f"s{session}")

    assert [one.mentions for one in memory.neighbours("XKB", depth=0).entities] == [3]
    assert offered(memory) == []


@pytest.mark.parametrize(
    ("a", "b", "pairs"),
    [
        ("RX4070", "RX4080", 0),
        ("群1", "群11", 0),
        ("v1.2", "v1.20", 0),
        ("cam-a1", "cam-a1r", 1),  # a person is asked
    ],
)
def test_where_digits_or_a_suffix_differ_no_machine_decides(memory, a, b, pairs):  # DUP-04
    know(memory, a, b)

    asked = []
    settled = memory.settle_entities(lambda pair: asked.append(pair) or "merge")

    assert [pair.machine for pair in memory.review_entities().pairs] == [False] * pairs
    assert (asked, settled.pairs) == ([], ())


def test_a_titled_name_is_offered_and_one_with_a_suffix_never(memory):  # DUP-06
    know(memory, "小王", "产品经理小王", "小王子")

    (pair,) = memory.review_entities().pairs

    assert {pair.a.name, pair.b.name} == {"小王", "产品经理小王"}
    assert pair.titled


@pytest.mark.parametrize(("a", "b", "is_offered"), [("abcde", "abcd", False), ("abcdefg", "abcdef", True)])
def test_a_similarity_of_three_quarters_is_not_enough(memory, a, b, is_offered):  # M1
    memory.commit([Triple(a, "is", "one"), Triple(b, "is", "two")])

    assert bool(offered(memory)) == is_offered


def test_shared_neighbours_lift_a_pair_over_the_line(memory):
    memory.commit([Triple("abcde", "is", "one"), Triple("abcd", "is", "one"), Triple("abcd", "is", "two")])

    (pair,) = memory.review_entities().pairs

    assert pair.score == pytest.approx(0.75 + 0.25 * 0.5 * 1 / 2)


def test_facts_that_hold_no_more_lift_nothing(memory):
    report = memory.commit([Triple("abcde", "is", "one"), Triple("abcd", "is", "one")])
    memory.delete_relation(report.relations[0])

    assert offered(memory) == []


def test_to_be_linked_to_a_hub_lifts_nothing_and_that_is_told(memory):
    memory.commit([Triple(chr(0x4E00 + n) * 3, "is", "hub") for n in range(40)])
    memory.commit([Triple("abcde", "is", "hub"), Triple("abcd", "is", "hub")])

    report = memory.review_entities()

    assert report.pairs == ()
    assert report.remarks == ("1 entities have more than 30 neighbours: to be linked to them counts for nothing",)


def test_the_best_pairs_come_first_and_the_limit_is_told(typos):
    know(typos, "kubernetes cluster", "kubernetes clusters", of="y")
    every = typos.review_entities()

    best = typos.review_entities(limit=1)

    assert [pair.score for pair in every.pairs] == sorted((pair.score for pair in every.pairs), reverse=True)
    assert (best.pairs, best.more, every.more) == (every.pairs[:1], True, False)
    assert typos.review_entities(limit=0).pairs == ()


def test_the_last_sentence_is_one_that_still_stands(typos):
    typos.commit([Triple("postgresql", "was", "slow", sentence="postgresql was slow.")])
    typos.purge(relation="was")

    (pair,) = typos.review_entities().pairs

    assert pair.a.sentence == "postgresql runs on the panel."


def test_an_empty_memory_has_nothing_to_review(memory):
    assert memory.review_entities().pairs == ()


@pytest.mark.parametrize("limit", [-1, 1.5, True, "2"])
def test_a_limit_is_a_count(memory, limit):
    with pytest.raises(InvalidInput, match="limit"):
        memory.review_entities(limit=limit)
    with pytest.raises(InvalidInput, match="limit"):
        memory.settle_entities(lambda pair: None, limit=limit)


# ---- kept apart


def test_a_pair_kept_apart_is_offered_no_more_and_not_merged(typos):
    report = typos.keep_apart("postgressql", "POSTGRESQL")

    assert (report.a, report.b, report.apart, report.rounds) == ("postgressql", "postgresql", True, None)
    assert upkeep_pass(typos) == upkeep_pass(typos) == offered(typos) == []
    assert typos.review_entities().apart == 1
    with pytest.raises(Conflict, match="kept apart"):
        typos.merge_entities("postgressql", "postgresql")


def test_apart_for_two_rounds_is_offered_in_the_third(typos):  # M2
    typos.keep_apart("postgresql", "postgressql", rounds=2)

    assert [len(upkeep_pass(typos)) for _ in range(4)] == [0, 0, 1, 1]


def test_a_review_counts_no_round(typos):
    typos.keep_apart("postgresql", "postgressql", rounds=1)

    assert offered(typos) == offered(typos) == []


def test_a_round_that_was_counted_can_be_undone(typos):
    typos.keep_apart("postgresql", "postgressql", rounds=1)
    upkeep_pass(typos)

    typos.undo(typos.operations()[0].id)

    assert offered(typos) == []


def test_being_apart_is_taken_back(typos):
    typos.keep_apart("postgresql", "postgressql")

    report = typos.keep_apart("postgressql", "postgresql", apart=False)

    assert not report.apart
    assert len(offered(typos)) == 1


def test_what_is_so_already_is_no_operation(typos):
    assert typos.keep_apart("postgresql", "postgressql", apart=False).operation is None
    typos.keep_apart("postgresql", "postgressql", rounds=3)

    assert typos.keep_apart("postgressql", "postgresql", rounds=3).operation is None
    assert typos.keep_apart("postgressql", "postgresql").operation is not None


@pytest.mark.parametrize("again", [{"rounds": 5}, {"apart": False}, {}])
def test_keeping_apart_is_undone(typos, path, again):
    typos.keep_apart("postgresql", "postgressql", rounds=2)
    before = sql(path, "SELECT * FROM entities_apart")

    typos.undo(typos.keep_apart("postgresql", "postgressql", **again).operation)

    assert sql(path, "SELECT * FROM entities_apart") == before
    typos.undo(1)
    assert sql(path, "SELECT * FROM entities_apart") == []


def test_the_journal_of_it_holds_no_name_in_its_summary(typos):
    typos.keep_apart("postgresql", "postgressql")
    typos.keep_apart("postgresql", "postgressql", apart=False)

    assert [(one.kind, dict(one.summary)) for one in typos.operations()] == [
        ("let together", {}),
        ("keep apart", {"rounds": "all"}),
    ]


@pytest.mark.parametrize(
    ("names", "options", "error"),
    [
        (("postgresql", "nobody"), {}, NotFound),
        (("nobody", "postgresql"), {}, NotFound),
        (("postgresql", "PostgreSQL "), {}, Conflict),
        (("", "postgresql"), {}, InvalidInput),
        (("postgresql", None), {}, InvalidInput),
        (("postgresql", "postgressql"), {"rounds": 0}, InvalidInput),
        (("postgresql", "postgressql"), {"rounds": 1.0}, InvalidInput),
        (("postgresql", "postgressql"), {"apart": 0}, InvalidInput),
        (("postgresql", "postgressql"), {"apart": False, "rounds": 2}, InvalidInput),
    ],
)
def test_equal_or_unknown_names_are_refused(typos, path, names, options, error):  # M3
    before = dump(path)

    with pytest.raises(error):
        typos.keep_apart(*names, **options)

    assert dump(path) == before


def test_an_alias_is_the_same_entity(typos):  # M3
    typos.merge_entities("postgressql", "postgresql")

    with pytest.raises(Conflict, match="one entity"):
        typos.keep_apart("postgressql", "postgresql")


# ---- an arbiter


def test_an_arbiter_merges_into_the_one_that_is_mentioned_more(typos):
    report = typos.settle_entities(lambda pair: "merge")

    (settled,) = report.pairs
    assert (settled.a, settled.b, settled.outcome) == ("postgresql", "postgressql", "merge")
    assert (report.merged, report.apart, report.left, report.changed) == (1, 0, 0, 0)
    assert [one.name for one in typos.neighbours("postgressql", depth=0).entities] == ["postgresql"]
    typos.undo(settled.operation)
    assert len(offered(typos)) == 1


def test_an_arbiter_keeps_apart_or_leaves_to_a_person(typos, path):
    before = dump(path)
    assert [one.outcome for one in typos.settle_entities(lambda pair: None).pairs] == ["leave"]
    assert dump(path) == before

    report = typos.settle_entities(lambda pair: "apart")

    assert (report.apart, offered(typos)) == (1, [])
    typos.undo(report.pairs[0].operation)
    assert len(offered(typos)) == 1


def test_an_arbiter_is_asked_about_five_pairs_at_the_most(memory):  # M1
    for n in range(8):
        stem = "".join(chr(0x4E00 + 20 * n + m) for m in range(8))
        know(memory, f"{stem[:4]}{stem[5:]}", stem, of=f"x{n}")
    know(memory, "cam-a1", "cam-a1r")
    asked = []

    memory.settle_entities(lambda pair: asked.append(pair))

    assert len(asked) == 5
    assert all(pair.machine for pair in asked)


def test_an_arbiter_holds_no_lock(typos, path, clock):
    def arbiter(pair):
        with Memory.open(path, clock=clock) as another:
            another.commit([Triple("somebody", "is", "here")])
        return "merge"

    assert typos.settle_entities(arbiter).merged == 1


@pytest.mark.parametrize("verdict", ["merge", "apart"])
@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda memory: memory.merge_entities("postgressql", "panel"),
        lambda memory: memory.keep_apart("postgresql", "postgressql", rounds=2),
    ],
)
def test_a_pair_that_changed_meanwhile_stays_as_it_is(typos, path, verdict, meanwhile):
    after = []

    def arbiter(pair):
        meanwhile(typos)
        after.append(dump(path))
        return verdict

    report = typos.settle_entities(arbiter)

    assert [one.outcome for one in report.pairs] == ["changed"]
    assert dump(path) == after[0]


@pytest.mark.parametrize("answer", ["yes", "", True, 1, ["merge"], "MERGE", b"merge"])
def test_any_other_answer_is_refused_and_changes_nothing(typos, path, answer):
    before = dump(path)

    with pytest.raises(WriterFailed, match="not 'merge', 'apart' or None"):
        typos.settle_entities(lambda pair: answer)

    assert dump(path) == before


def test_an_arbiter_that_fails_is_told_with_its_reason_and_what_was_done_stays(typos):
    know(typos, "kubernetes", "kubernetees", of="y")
    answers = iter(["apart"])

    with pytest.raises(WriterFailed, match=r"StopIteration.*1 pairs before stays"):
        typos.settle_entities(lambda pair: next(answers))

    assert len(offered(typos)) == 1


def test_only_what_can_be_called_is_an_arbiter(memory):
    with pytest.raises(InvalidInput, match="arbiter"):
        memory.settle_entities("merge")


# ---- a program as arbiter


def program(code):
    return [sys.executable, "-c", f"import json, sys, time\npair = json.load(sys.stdin)\n{code}"]


@pytest.mark.parametrize(("word", "verdict"), [("merge", "merge"), ("Apart.\n", "apart"), ("leave", None)])
def test_a_program_gets_the_pair_and_says_a_word(word, verdict):
    told = command_arbiter(program(f"assert pair['b']['sentence'] == '关于 postgressql'\nprint({word!r})"))

    assert told(PAIR) == verdict


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (program("print('maybe')"), "said 'maybe', not one of merge, apart, leave"),
        (program("print('x' * 10_000)"), r"x\.\.\.'"),
        (program("sys.exit('no idea')"), "exit code 1: no idea"),
        (program("sys.exit(1)"), "exit code 1$"),
        (["yes"], "yes printed more than 16384 bytes"),
        (program("while True: sys.stderr.write('no ' * 1000)"), "printed more than 16384 bytes"),
        (program("sys.stdout.close(), sys.stderr.close(), time.sleep(60)"), "within 1.5 s"),
        (program("time.sleep(60)"), "within 1.5 s"),
        (["/nonexistent/arbiter"], "cannot be run"),
    ],
)
def test_a_program_that_fails_is_one_line(argv, told):
    with pytest.raises(WriterFailed, match=told) as failed:
        command_arbiter(argv, timeout=1.5)(PAIR)

    assert "\n" not in str(failed.value)
    assert len(str(failed.value)) < 300


@pytest.mark.parametrize("act", ["time.sleep(60)", "print('x' * 100_000)"])
def test_a_program_is_killed_with_all_that_it_started(tmp_path, act):
    pid = tmp_path / "pid"
    start = (
        f"import subprocess; child = subprocess.Popen(['sleep', '60']); open({str(pid)!r}, 'w').write(str(child.pid))"
    )

    with pytest.raises(WriterFailed):
        command_arbiter(program(f"{start}\n{act}"), timeout=1.5)(PAIR)

    for _ in range(100):
        status = Path(f"/proc/{pid.read_text()}/status")
        if not status.exists() or "State:\tZ" in status.read_text():
            return
        time.sleep(0.02)
    pytest.fail("it is still there")


def test_a_program_gets_a_pair_of_any_length_and_need_not_read_it():
    pair = dataclasses.replace(PAIR, shared=("x" * 1_000_000,))

    assert (
        command_arbiter(program("print('merge' if len(pair['shared'][0]) == 1_000_000 else 'apart')"))(pair) == "merge"
    )
    assert command_arbiter(["echo", "apart"])(pair) == "apart"


@pytest.mark.parametrize("argv", [[], "merge", [1], ["a\0b"]])
def test_a_program_has_a_name(argv):
    with pytest.raises(InvalidInput, match="argv"):
        command_arbiter(argv)


# ---- a model as arbiter


@pytest.mark.parametrize(("content", "verdict"), [("merge", "merge"), (" Apart.\n", "apart"), ("leave", None)])
def test_a_model_gets_the_pair_and_says_a_word(endpoint, content, verdict):
    address, asked = endpoint(Served(answer_of(content)))

    assert endpoint_arbiter(address + "/", "m1", key="secret-key")(PAIR) == verdict

    ((path, authorization, body),) = asked
    assert (path, authorization, body["model"]) == ("/v1/chat/completions", "Bearer secret-key", "m1")
    assert json.loads(body["messages"][-1]["content"])["b"]["name"] == "postgressql"


def test_without_a_key_none_is_sent(endpoint):
    address, asked = endpoint(Served(answer_of("leave")))

    endpoint_arbiter(address, "m1")(PAIR)

    assert asked[0].authorization is None


@pytest.mark.parametrize(
    ("served", "told"),
    [
        (Served(answer_of("They are the same.")), "said 'They are the same.', not one of"),
        (Served(b"<html>\n<body>"), "no answer of a model: <html> <body>"),
        (Served(b"[]"), "no answer of a model"),
        (Served(b'{"choices": []}'), "no answer of a model"),
        (Served(answer_of(None)), "no answer of a model"),
        (Served(b"\xff\xfe"), "no answer of a model"),
        (Served(status=401), "refused: 401"),
        (Served(status=500), "refused: 500"),
        (Served(status=307, headers=[("Location", "/elsewhere")]), "refused: 307"),
        (Served(status=302, headers=[("Location", "/elsewhere")]), "refused: 302"),
        (Served(answer_of("merge"), delay=2.0), "within 0.5 s"),
        (Served(answer_of("merge") * 10, drip=0.02), "within 0.5 s"),
        (Served(answer_of("merge")[:-3], headers=[("Content-Length", "99")]), "no answer of a model"),
    ],
)
def test_an_endpoint_that_fails_is_one_line_without_the_key(endpoint, served, told):
    address, asked = endpoint(served)

    with pytest.raises(WriterFailed, match=told) as failed:
        endpoint_arbiter(address, "m1", key="secret-key", timeout=0.5)(PAIR)

    assert "\n" not in str(failed.value)
    assert "secret-key" not in str(failed.value)
    assert len(asked) == 1


def test_an_endpoint_that_is_not_there_is_told():
    with pytest.raises(WriterFailed, match="cannot be reached"):
        endpoint_arbiter("http://127.0.0.1:1/v1", "m1")(PAIR)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("file:///etc/passwd", "m"), {}),
        (("localhost:11434", "m"), {}),
        ((None, "m"), {}),
        (("http://localhost", ""), {}),
        (("http://localhost", "m"), {"key": "secret\n"}),
        (("http://localhost", "m"), {"timeout": 0}),
    ],
)
def test_what_is_no_endpoint_is_refused(arguments, options):
    with pytest.raises(InvalidInput) as refused:
        endpoint_arbiter(*arguments, **options)

    assert "secret" not in str(refused.value)


# ---- the command line


@pytest.fixture
def cli(capsys, path):
    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(["--db", str(path), "entities", *map(str, arguments)])
        return (end.value.code, *capsys.readouterr())

    return run


def test_review_shows_pairs_and_who_may_decide(typos, cli):
    know(typos, "cam-a1", "cam-a1r", of="y")

    code, out, _ = cli("review")

    assert code == 0
    assert "postgressql is here." in out
    assert [line.rstrip().endswith("a person") for line in out.splitlines() if "cam-a1" in line] == [True]
    assert [pair["machine"] for pair in json.loads(cli("review", "--json")[1])["pairs"]] == [True, False]


def test_review_says_when_there_is_nothing_and_when_there_is_more(typos, cli):
    know(typos, "cam-a1", "cam-a1r", of="y")

    assert "there are more" in cli("review", "--limit", 1)[2]
    typos.keep_apart("cam-a1", "cam-a1r")
    typos.keep_apart("postgresql", "postgressql")
    assert cli("review")[1] == (
        "nothing to review: 7 entities; 2 pairs are kept apart, 'graphmem entities apart' lists them\n"
    )


def test_review_of_none_does_not_say_that_there_are_none(typos, cli):
    code, out, err = cli("review", "--limit", 0)

    assert (code, out) == (0, "--limit 0 shows none\n")
    assert "there are more" in err


def test_what_is_kept_apart_is_listed(typos, cli, clock):
    know(typos, "cam-a1", "cam-a1r", of="y")
    assert cli("apart")[1] == "no two entities are kept apart\n"
    typos.keep_apart("cam-a1", "cam-a1r", rounds=3)
    clock.advance(hours=1)
    typos.keep_apart("postgresql", "postgressql")

    last, first = typos.kept_apart()

    assert (first.a, first.b, first.since, first.rounds) == ("cam-a1", "cam-a1r", "2026-09-07T08:00:00.000Z", 3)
    assert (last.a, last.b, last.rounds) == ("postgresql", "postgressql", None)
    assert "for good" in cli("apart")[1]
    assert [pair["rounds"] for pair in json.loads(cli("apart", "--json")[1])] == [None, 3]


def test_a_merge_that_is_refused_names_the_whole_command(memory, cli):
    know(memory, "it's a panel", "-- panel")
    memory.keep_apart("it's a panel", "-- panel")

    with pytest.raises(Conflict) as refused:
        memory.merge_entities("it's a panel", "-- panel")

    remedy = str(refused.value).partition("to take it back: ")[2]
    assert remedy.startswith("graphmem entities keep-apart")
    assert cli(*shlex.split(remedy)[2:])[0] == 0
    assert memory.kept_apart() == ()


def test_merge_tells_what_it_did_and_undo_reverses_it(typos, cli):
    assert "would be merged into postgresql" in cli("merge", "postgressql", "postgresql", "--dry-run")[1]

    _, out, _ = cli("merge", "postgressql", "postgresql")

    assert "postgressql merged into postgresql: 3 mentions" in out
    assert "'graphmem undo 1' reverses it" in out
    assert json.loads(cli("merge", "panel", "x", "--dry-run", "--json")[1])["applied"] is False


def test_keep_apart_says_for_how_long_and_off_takes_it_back(typos, cli):
    pair = ["postgresql", "postgressql"]

    assert "are kept apart for 2 rounds\n" in cli("keep-apart", *pair, "--rounds", 2)[1]
    assert "are kept apart\n" in cli("keep-apart", *pair)[1]
    assert "are kept apart already\n" in cli("keep-apart", *pair)[1]
    assert json.loads(cli("keep-apart", *pair, "--off", "--json")[1])["apart"] is False
    assert cli("keep-apart", *pair, "--off", "--rounds", 2)[0] == 2
    assert cli("keep-apart", "postgresql", "nobody")[0] == 3
    assert cli("keep-apart", "postgresql", "PostgreSQL")[0] == 1


def test_settle_asks_a_program(typos, cli, tmp_path):
    script = tmp_path / "an arbiter.py"
    script.write_text("print('apart')")

    code, out, _ = cli("settle", "--command", f"'{sys.executable}' '{script}'")

    assert code == 0
    assert "apart" in out
    assert cli("settle", "--command", "true")[1] == "nothing to settle\n"


def test_settle_asks_a_model_with_the_key_of_the_environment(typos, cli, endpoint, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_ARBITER_KEY", "secret-key")
    address, asked = endpoint(Served(answer_of("merge")))

    _, out, _ = cli("settle", "--endpoint", address, "--model", "m1", "--json")

    assert json.loads(out)["merged"] == 1
    assert asked[0].authorization == "Bearer secret-key"


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ([], 2, "--command"),
        (["--command", "a", "--model", "m"], 2, "--command"),
        (["--endpoint", "http://localhost"], 2, "--model"),
        (["--command", "'"], 1, "--command"),
        (["--command", ""], 1, "--command"),
        (["--command", "a", "--timeout", "0"], 1, "--timeout"),
        (["--command", "/nonexistent"], 1, "cannot be run"),
        (["--endpoint", "localhost", "--model", "m"], 1, "--endpoint"),
    ],
)
def test_a_wrong_arbiter_is_one_clear_line(typos, cli, options, code, told):
    result = cli("settle", *options)

    assert result[:2] == (code, "")
    assert told in result[2].splitlines()[-1]
