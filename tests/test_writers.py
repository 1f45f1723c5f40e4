"""Writers: what a program and a model are told, what of their answers counts, and how often and until when they ask."""

import datetime as dt
import io
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Served, answer_of

from graphmem import Config, InvalidInput, StoreBusy, WriterFailed, WriterTask
from graphmem.asking import _TimedReads
from graphmem.writers import OwnBudget, command_writer, endpoint_writer, estimated_tokens, writer_of

TASK = WriterTask("checkpoint", "Write a digest, 按这个格式.", "USER: 我们用 pnpm 部署。", (), 10_240, "2026-11-30")
NEED = estimated_tokens(TASK.instructions) + estimated_tokens(TASK.text)
DAY = "2026-09-07"
PLENTY = 1_000_000
GOOD = answer_of("# Checkpoint\n用 pnpm", usage={"total_tokens": 321})


# ---- a program


def program(code):
    return [sys.executable, "-c", f"import os, subprocess, sys, time\n{code}"]


def test_a_program_gets_the_prompt_and_prints_the_text():
    write = command_writer(program("sys.stdout.buffer.write(b'<' + sys.stdin.buffer.read() + b'>\\n')"))

    assert write(TASK) == f"<{TASK.prompt}>\n"


def test_hooks_of_its_host_can_see_that_a_run_is_a_writers(monkeypatch):
    monkeypatch.setenv("SOMETHING_ELSE", "is kept")

    write = command_writer(program("print(os.environ['GRAPHMEM_WRITER'], os.environ['SOMETHING_ELSE'])"))

    assert write(TASK) == "1 is kept\n"


def test_a_program_may_print_up_to_a_mebibyte():
    assert len(command_writer(program("print('x' * (2**20 - 1))"))(TASK)) == 2**20


def test_the_last_words_of_a_program_that_fails_are_told():
    write = command_writer(program("sys.exit('noise ' * 1000 + '\\nno such model: m1')"))

    with pytest.raises(WriterFailed, match=r"failed with exit code 1: \.\.\..*noise no such model: m1$") as failed:
        write(TASK)

    assert len(str(failed.value)) < 300


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (program("sys.exit(3)"), "exit code 3$"),
        (program("pass"), "printed no text"),
        (program("print(' \\n')"), "printed no text"),
        (program("sys.stdout.buffer.write('部署'.encode('gbk'))"), "no UTF-8"),
        (program("print('x' * 2**20)"), "more than 1048576 bytes"),
        (program("time.sleep(60)"), "within 0.5 s"),
        (program("print('half', flush=True); time.sleep(60)"), "within 0.5 s"),
        (program("while True: print('.', end='', flush=True); time.sleep(0.01)"), "within 0.5 s"),
        (["/nonexistent/writer"], "cannot be run"),
    ],
)
def test_a_program_that_fails_is_one_line(argv, told):
    with pytest.raises(WriterFailed, match=told) as failed:
        command_writer(argv, timeout=0.5 if "within" in told else 30)(TASK)

    assert "\n" not in str(failed.value)


def test_a_program_is_killed_with_what_it_started(tmp_path):
    pid = tmp_path / "pid"
    code = f"child = subprocess.Popen(['sleep', '60']); open({str(pid)!r}, 'w').write(str(child.pid)); time.sleep(60)"

    with pytest.raises(WriterFailed):
        command_writer(program(code), timeout=1.0)(TASK)

    status = Path(f"/proc/{pid.read_text()}/status")
    for _ in range(100):
        if not status.exists() or "State:\tZ" in status.read_text():
            return
        time.sleep(0.02)
    pytest.fail("it is still there")


@pytest.mark.parametrize(("argv", "options"), [([], {}), ("claude -p", {}), (["a\0b"], {}), (["a"], {"timeout": 0})])
def test_what_is_no_program_is_refused(argv, options):
    with pytest.raises(InvalidInput):
        command_writer(argv, **options)


# ---- a model


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def budget():
    return OwnBudget()


@pytest.fixture
def writer(endpoint, clock, pauses, budget):
    """Make a writer that asks an endpoint with scripted answers; returns it and what was asked."""

    def make(*served, **options):
        address, asked = endpoint(*served)
        defaults = {"key": "secret-key", "timeout": 5, "budget": budget, "clock": clock, "chance": lambda: 0.0}
        return endpoint_writer(address, "m1", sleep=pauses.append, **defaults | options), asked

    return make


def test_a_model_is_told_instructions_and_text_apart(writer):
    write, asked = writer(Served(GOOD))

    assert write(TASK) == "# Checkpoint\n用 pnpm"

    ((path, authorization, body),) = asked
    assert (path, authorization) == ("/v1/chat/completions", "Bearer secret-key")
    assert body == {
        "model": "m1",
        "messages": [
            {"role": "system", "content": TASK.instructions},
            {"role": "user", "content": TASK.text},
        ],
    }


def test_a_text_may_come_in_pieces(writer):
    pieces = [{"type": "text", "text": "one "}, {"type": "image"}, "three", {"type": "text", "text": "two"}]

    assert writer(Served(answer_of(pieces)))[0](TASK) == "one two"


def test_half_a_character_is_none(writer):
    assert writer(Served(answer_of("🎉 \ud83c!")))[0](TASK) == "🎉 ?!"


PASSING = {
    "500": Served(b"oops", status=500),
    "503": Served(status=503),
    "408": Served(status=408),
    "409": Served(status=409),
    "429": Served(b'{"error": {"message": "slow down"}}', status=429),
    "closed at once": Served(raw=b""),
    "closed behind the head": Served(b""),
    "closed within the head": Served(raw=b"HTTP/1.1 200 OK\r\nContent-Le"),
    "closed half way": Served(GOOD[:20], headers=[("Content-Length", str(len(GOOD)))]),
    "closed within a chunk": Served(b"20\r\n" + GOOD[:20], headers=[("Transfer-Encoding", "chunked")]),
    "no HTTP": Served(raw=b"220 mail.example ESMTP\r\n" * 50),
}


@pytest.mark.parametrize("failure", PASSING.values(), ids=PASSING)
def test_what_may_pass_is_asked_again(writer, pauses, failure):
    write, asked = writer(failure, failure, Served(GOOD))

    assert write(TASK) == "# Checkpoint\n用 pnpm"
    assert (len(asked), pauses) == (3, [1.0, 2.0])


@pytest.mark.parametrize("failure", PASSING.values(), ids=PASSING)
def test_it_is_asked_again_so_often_and_no_oftener(writer, pauses, failure):
    write, asked = writer(failure, retries=2)

    with pytest.raises(WriterFailed, match="it was asked 3 times") as failed:
        write(TASK)

    assert (len(asked), pauses) == (3, [1.0, 2.0])
    assert "\n" not in str(failed.value)
    assert len(str(failed.value)) < 400


@pytest.mark.parametrize(
    "slow",
    [
        Served(GOOD, delay=2.0),
        Served(GOOD, drip=0.02),
        Served(raw=b"HTTP/1.1 200 OK\r\n" + b"X-Drip: drip\r\n" * 50, drip=0.02),
        Served(status=500, raw=b"HTTP/1.1 500 No\r\n\r\n" + b"wait" * 100, drip=0.02),
    ],
    ids=["silent", "drips", "drips within the head", "drips within a refusal"],
)
def test_who_is_slow_is_left_at_the_deadline(writer, pauses, slow):
    write, asked = writer(slow, retries=1, timeout=0.4)

    with pytest.raises(WriterFailed, match=r"did not answer within 0\.4 s|refused: 500"):
        write(TASK)

    assert (len(asked), pauses) == (2, [1.0])


def test_each_read_has_what_is_left_of_the_time(monkeypatch):
    given = []
    monkeypatch.setattr("graphmem.asking.time", SimpleNamespace(monotonic=iter([10.0, 11.5, 13.0]).__next__))
    reads = _TimedReads(io.BytesIO(b"abc"), SimpleNamespace(settimeout=given.append), 13.0)

    assert (reads.read(1), reads.read(1), given) == (b"a", b"b", [3.0, 1.5])
    with pytest.raises(TimeoutError):
        reads.read(1)


def test_nobody_at_the_address_is_told(budget, pauses):
    with pytest.raises(WriterFailed, match=r"cannot be reached: .*check the address; it was asked 4 times"):
        endpoint_writer("http://127.0.0.1:1/v1", "m1", budget=budget, sleep=pauses.append, chance=lambda: 1.0)(TASK)

    assert pauses == [0.5, 1.0, 2.0]
    assert sum(map(budget.used, budget._tokens)) == 0


@pytest.mark.parametrize(
    ("after", "pause"),
    [
        ("20", 20.0),
        ("0", 1.0),
        ("0.2", 1.0),
        ("60", 60.0),
        ("Mon, 07 Sep 2026 08:00:45 GMT", 45.0),
        ("Mon, 07 Sep 2026 08:00:45 -0000", 45.0),
        ("Mon, 07 Sep 2020 08:00:45 GMT", 1.0),
        ("Mon, 99 Sep 2026 08:00:45 GMT", 1.0),
        ("-5", 1.0),
        ("soon", 1.0),
        ("nan", 1.0),
        ("٣", 1.0),
    ],
)
def test_a_pause_is_as_long_as_the_endpoint_asks_for(writer, pauses, after, pause):
    write, _ = writer(Served(status=429, headers=[("Retry-After", after)]), Served(GOOD))

    write(TASK)

    assert pauses == [pause]


@pytest.mark.parametrize("after", ["61", "9" * 400, "Tue, 08 Sep 2026 08:00:45 GMT"])
def test_who_asks_for_a_long_rest_is_not_asked_again(writer, pauses, after):
    write, asked = writer(Served(status=429, headers=[("Retry-After", after)]))

    with pytest.raises(WriterFailed, match=r"asks for (61|inf|86445) s of rest$"):
        write(TASK)

    assert (len(asked), pauses) == (1, [])


@pytest.mark.parametrize(
    ("served", "told"),
    [
        (Served(b'{"error": {"message": "too long"}}', status=400), "refused: 400 .*too long; .*the name of the model"),
        (Served(b'{"error": {"message": "bad key secret-key"}}', status=401), r"bad key \(hidden\); check the key$"),
        (Served(b"x" * 150 + b"secret-key", status=401), r"x\.\.\."),
        (Served(raw=b"HTTP/1.1 401 " + b"secret-key" * 999 + b"\r\n\r\n"), r"refused: 401 \(hidden\)"),
        (Served(status=403), "refused: 403 .*check the key"),
        (Served(b"<h1>Not\nfound</h1>", status=404), "refused: 404 .*<h1>Not found</h1>; check the address"),
        (Served(status=422), "refused: 422"),
        (Served(status=302, headers=[("Location", "/other")]), "the address to which it sends: /other"),
        (Served(status=307, headers=[("Location", "http://127.0.0.1:1/")]), "refused: 307"),
        (Served(status=308, headers=[("Location", "file:///etc/passwd")]), "refused: 308"),
        (Served(status=307), "refused: 307"),
        (Served(b"<html>\n<body>secret-key"), r"no answer of a model: <html> <body>\(hidden\)"),
        (Served(b"\xff\xfe\x00"), "no answer of a model"),
        (Served(b"[" * 100_000), "no answer of a model"),
        (Served(b"[]"), "no answer of a model"),
        (Served(b'{"choices": [7]}'), "no answer of a model"),
        (Served(b'{"error": {"message": "overloaded"}}'), "overloaded"),
        (Served(b" " * 2**21), "more than 1048576 bytes"),
        (Served(answer_of("# Checkp", finish_reason="length")), "m1 was cut off"),
        (Served(answer_of("", finish_reason="length")), "m1 was cut off"),
        (Served(answer_of("# Checkp", finish_reason="content_filter")), "m1 left something out"),
        (Served(answer_of("")), "its text is empty"),
        (Served(answer_of(" \n")), "its text is empty"),
        (Served(answer_of(None)), "its text is empty"),
        (Served(answer_of({"text": "x"})), "its text is empty"),
        (Served(answer_of([])), "its text is empty"),
    ],
)
def test_what_does_not_pass_is_asked_once_and_is_one_line_without_the_key(writer, pauses, served, told):
    write, asked = writer(served)

    with pytest.raises(WriterFailed, match=told) as failed:
        write(TASK)

    assert (len(asked), pauses) == (1, [])
    assert "\n" not in str(failed.value)
    assert "secret" not in str(failed.value)
    assert len(str(failed.value)) < 400


def test_a_redirection_gets_no_key(writer, endpoint):
    elsewhere, seen = endpoint(Served(GOOD))

    with pytest.raises(WriterFailed, match="307"):
        writer(Served(status=307, headers=[("Location", elsewhere)]))[0](TASK)

    assert seen == []


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:11434"},
        {"base_url": "http://me:secret@localhost"},
        {"model": " "},
        {"key": "secret\n"},
        {"timeout": 0},
        {"timeout": 3601},
        {"retries": -1},
        {"retries": 101},
        {"retries": True},
        {"tokens_per_day": -1},
        {"tokens_per_day": 1.5},
    ],
)
def test_what_is_no_endpoint_is_refused(options):
    with pytest.raises(InvalidInput) as refused:
        endpoint_writer(**{"base_url": "http://localhost/v1", "model": "m1"} | options)

    assert refused.value.argument in options
    assert "secret" not in str(refused.value)


# ---- tokens of a day


def test_without_a_limit_nothing_is_counted(endpoint, clock):
    class Untouched:
        def used(self, day):
            pytest.fail("it was read")

        def add(self, day, tokens):
            pytest.fail("it was counted")

    assert endpoint_writer(endpoint(Served(GOOD))[0], "m1", budget=Untouched(), clock=clock)(TASK)


def test_a_paid_answer_is_kept_where_its_count_cannot_be_set_right(endpoint, clock, caplog):
    class Busy(OwnBudget):
        def add(self, day, tokens):
            if self.used(day):
                raise StoreBusy("another process writes")
            super().add(day, tokens)

    counted = Busy()
    write = endpoint_writer(endpoint(Served(GOOD))[0], "m1", tokens_per_day=PLENTY, budget=counted, clock=clock)

    assert write(TASK) == "# Checkpoint\n用 pnpm"
    assert counted.used(DAY) == NEED
    assert caplog.messages == [
        f"of the 321 tokens of an answer {NEED} are counted, as it was estimated: another process writes"
    ]


def test_the_endpoints_own_count_is_what_is_counted(writer, budget):
    write, _ = writer(Served(GOOD), tokens_per_day=PLENTY)

    write(TASK)
    write(TASK)

    assert budget.used(DAY) == 642


@pytest.mark.parametrize(
    "usage", [None, [], {}, *({"total_tokens": bad} for bad in (None, "9", -1, True, 1.5, 10**30))]
)
def test_without_a_count_it_is_estimated(writer, budget, usage):
    write, _ = writer(Served(answer_of("四个汉字 four", usage=usage)), tokens_per_day=PLENTY)

    write(TASK)

    assert budget.used(DAY) == NEED + 4 + 2


@pytest.mark.parametrize(
    ("served", "cost"),
    [
        (Served(answer_of("", usage={"total_tokens": 99})), 99),
        (Served(answer_of("# Ch", finish_reason="length", usage={"total_tokens": 98})), 98),
        (Served(answer_of("")), NEED),
        (Served(b"<html>"), NEED),
        (Served(GOOD, delay=2.0), NEED),
        (Served(raw=b""), NEED),
        (Served(status=401), 0),
        (Served(status=500), 0),
    ],
)
def test_what_fails_is_counted_where_it_may_have_cost_something(writer, budget, served, cost):
    write, _ = writer(served, retries=0, timeout=0.4 if served.delay else 5, tokens_per_day=PLENTY)

    with pytest.raises(WriterFailed):
        write(TASK)

    assert budget.used(DAY) == cost


def test_who_is_killed_while_asking_has_counted_the_question(endpoint, budget, clock):
    seen = []

    class Watched:
        used = budget.used

        def add(self, day, tokens):
            seen.append((tokens, len(asked)))

    address, asked = endpoint(Served(GOOD))
    endpoint_writer(address, "m1", tokens_per_day=PLENTY, budget=Watched(), clock=clock)(TASK)

    assert seen == [(NEED, 0), (321 - NEED, 1)]


def test_a_day_that_is_used_up_asks_nobody_and_the_next_one_is_free(writer, clock):
    write, asked = writer(Served(GOOD), tokens_per_day=400 + NEED)
    write(TASK)
    write(TASK)

    with pytest.raises(WriterFailed) as failed:
        write(TASK)

    assert str(failed.value) == (
        f"the budget of {400 + NEED} tokens for {DAY} is used up (642, and this needs about {NEED}): "
        "it is free again tomorrow (UTC), or raise writer_tokens_per_day"
    )
    assert len(asked) == 2
    clock.now = dt.datetime.fromisoformat("2026-09-08T07:59:00+08:00")
    with pytest.raises(WriterFailed, match=DAY):
        write(TASK)
    clock.advance(minutes=1)
    assert write(TASK)
    assert len(asked) == 3


def test_what_fits_exactly_is_asked(writer):
    assert writer(Served(GOOD), tokens_per_day=NEED)[0](TASK)


def test_what_never_fits_is_not_put_off_until_tomorrow(writer):
    write, asked = writer(Served(GOOD), tokens_per_day=NEED - 1)

    with pytest.raises(WriterFailed, match=f"about {NEED} tokens, more than the budget of {NEED - 1} a day: raise"):
        write(TASK)

    assert asked == []


def test_to_ask_again_needs_tokens_too(writer):
    write, asked = writer(Served(raw=b""), tokens_per_day=2 * NEED, retries=9)

    with pytest.raises(WriterFailed, match="used up"):
        write(TASK)

    assert len(asked) == 2


def test_a_writer_without_a_budget_counts_for_itself(endpoint, clock):
    write = endpoint_writer(endpoint(Served(GOOD))[0], "m1", tokens_per_day=300, clock=clock)
    write(TASK)

    with pytest.raises(WriterFailed, match="used up"):
        write(TASK)


@given(st.text(), st.text())
def test_an_estimate_is_nothing_for_nothing_and_adds_up(one, other):
    both = estimated_tokens(one + other)

    assert (estimated_tokens(one) == 0) == (one == "")
    assert both <= estimated_tokens(one) + estimated_tokens(other) <= both + 1


# ---- the one of the settings


def test_without_settings_there_is_none(budget):
    assert writer_of(Config(), budget, {"GRAPHMEM_WRITER_KEY": "k", "OPENAI_API_KEY": "k"}) is None


def test_a_command_of_the_settings(budget):
    write = writer_of(Config(writer_command=program("time.sleep(60)"), writer_timeout=0.5), budget, {})

    with pytest.raises(WriterFailed, match=r"within 0\.5 s"):
        write(TASK)


def test_an_endpoint_of_the_settings(endpoint, budget, clock):
    address, asked = endpoint(Served(GOOD), Served(status=500))
    config = Config(writer_url=address, writer_model="m1", writer_max_retries=0, writer_tokens_per_day=500)
    write = writer_of(config, budget, {"GRAPHMEM_WRITER_KEY": " own-key\n"}, clock=clock)

    assert write(TASK)
    assert (asked[0].authorization, budget.used(DAY)) == ("Bearer own-key", 321)
    with pytest.raises(WriterFailed, match=r"refused: 500 .*; try again later$"):
        write(TASK)
    budget.add(DAY, 200)
    with pytest.raises(WriterFailed, match="the budget of 500 tokens"):
        write(TASK)


@pytest.mark.parametrize(
    ("url", "environ", "key"),
    [
        ("https://api.openai.com/v1", {"OPENAI_API_KEY": "theirs"}, "theirs"),
        ("https://API.openai.com:443/v1", {"OPENAI_API_KEY": "theirs"}, "theirs"),
        ("https://api.openai.com/v1", {"OPENAI_API_KEY": "theirs", "GRAPHMEM_WRITER_KEY": "own"}, "own"),
        ("https://api.openai.com/v1", {"OPENAI_API_KEY": "theirs", "GRAPHMEM_WRITER_KEY": " "}, "theirs"),
        ("https://api.openai.com/v1", {"OPENAI_API_KEY": ""}, None),
        ("http://api.openai.com/v1", {"OPENAI_API_KEY": "theirs"}, None),
        ("https://api.openai.com.example/v1", {"OPENAI_API_KEY": "theirs"}, None),
        ("https://example.com/api.openai.com", {"OPENAI_API_KEY": "theirs"}, None),
        ("http://localhost:11434/v1", {"OPENAI_API_KEY": "theirs"}, None),
        ("http://localhost:11434/v1", {"GRAPHMEM_WRITER_KEY": "own"}, "own"),
    ],
)
def test_the_key_of_one_endpoint_is_told_to_no_other(monkeypatch, budget, url, environ, key):
    made = []
    monkeypatch.setattr("graphmem.writers.endpoint_writer", lambda *_, **options: made.append(options["key"]))

    writer_of(Config(writer_url=url, writer_model="m1"), budget, environ)

    assert made == [key]
