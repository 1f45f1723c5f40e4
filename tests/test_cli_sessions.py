"""Commands about sessions: mirror, harvest, sessions, history, part, checkpoint, jobs."""

import io
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import NamedTuple

import pytest

from graphmem import Memory, Part
from graphmem.surfaces.cli import main

TALK = Path(__file__).parent.parent / "fixtures" / "talk.jsonl"
TURNS = [json.loads(line) for line in TALK.read_text("utf-8").splitlines()]


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys, path, monkeypatch, tmp_path):
    """The command line in this process, outside of any project, on the memory at `path`."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, given=None):
        capsys.readouterr()
        if given is not None:
            stream = types.SimpleNamespace(
                buffer=io.BytesIO(given.encode("utf-8", "surrogatepass")), isatty=lambda: False
            )
            stream.read = lambda: stream.buffer.read().decode()
            monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(SystemExit) as end:
            main(["--db", str(path), *map(str, arguments)])
        return Result(end.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def told(cli):
    assert cli("mirror", "panel-deploy", TALK).code == 0
    return cli


def test_a_session_is_mirrored_once(cli):
    first, second = cli("mirror", "panel-deploy", TALK), cli("mirror", "panel-deploy", TALK)

    assert first == (0, "session panel-deploy: 10 new, 0 changed, 0 known\n", "")
    assert second.out == "session panel-deploy: 0 new, 0 changed, 10 known\n"


def test_turns_are_piped_in_and_damaged_lines_are_named(cli):
    lines = [
        TALK.read_text("utf-8").splitlines()[0],
        "{broken",
        '{"role": "user"}',
        '{"role": "user", "text": "ok \\ud83d"}',
    ]

    result = cli("mirror", "s1", given="\n".join(lines) + "\n")

    assert result.out == "session s1: 2 new, 0 changed, 0 known\n"
    assert "standard input line 2 is skipped" in result.err
    assert "standard input line 3 is skipped" in result.err
    assert "U+FFFD" in result.err


def test_nothing_is_made_by_a_mistake(cli, path):
    assert cli("mirror", "s1", "/nowhere").code == 1
    assert cli("mirror", " ", TALK).code == 1
    assert cli("mirror", "s1", TALK, "--delete", "t1").code == 2
    assert cli("harvest", "/nowhere").code == 1
    assert not path.exists()


def test_parts_messages_and_sessions_are_removed(told):
    assert told("mirror", "panel-deploy", "--delete", "t1", "--delete", "t2").out == "2 parts removed\n"
    assert told("mirror", "panel-deploy", "--delete-message", "none").out == "0 parts removed\n"
    assert told("mirror", "panel-deploy", "--delete-session").out == "8 parts removed\n"
    assert told("mirror", "panel-deploy", "--delete-session").code == 3


def test_sessions_are_listed_with_what_is_left_to_digest(told):
    out = told("sessions").out
    assert "panel-deploy" in out
    assert "2026-09-01T09:05" in out
    told("checkpoint", "panel-deploy")
    (one,) = json.loads(told("sessions", "--json").out)
    assert (one["parts"], one["undigested"]) == (10, 0)


def test_without_sessions_it_says_how_to_get_some(cli, path):
    Memory.open(path).close()

    assert "'graphmem harvest'" in cli("sessions").out


def test_history_shows_the_place_and_part_the_exact_text(told):
    found = told("history", "smoke", "test", "--limit", "1")
    assert "scripts/smoke.sh" in found.out
    assert told("part", "t7").out == TURNS[6]["text"]
    number = json.loads(told("history", "smoke", "test", "--limit", "1", "--json").out)["hits"][0]["part"]["id"]
    assert told("part", number).out == TURNS[6]["text"]
    assert "nobody said so here" in told("history", "zeppelin").out
    assert told("history", "panel", "--limit", "0").out == "--limit 0 shows none\n"
    assert told("history", "panel", "--session", "none").code == 3
    assert told("part", "none").code == 3


def test_a_part_of_another_project_is_refused(cli, path):
    with Memory.open(path) as memory:
        memory.mirror("s1", [Part("m1", text="secret plan")], scope="project:aaaaaaaaaaaa")

    refused = cli("part", "m1")

    assert refused.code == 1
    assert "project:aaaaaaaaaaaa" in refused.err
    assert cli("part", "m1", "--scope", "project:aaaaaaaaaaaa").out == "secret plan"


def test_a_text_that_drives_the_terminal_is_shown_as_it_is_written(told, monkeypatch, cli):
    cli("mirror", "s1", given='{"id": "x", "role": "user", "text": "a\\u001b[2Jb\\nc"}\n')
    assert cli("part", "x").out == "a\x1b[2Jb\nc"
    monkeypatch.setattr(
        "graphmem.surfaces.cli.sessions.sys", types.SimpleNamespace(stdout=types.SimpleNamespace(isatty=lambda: True))
    )
    assert cli("part", "x").out == "a\\x1b[2Jb\nc\n"


def test_a_checkpoint_says_what_it_came_to(told):
    result = told("checkpoint", "panel-deploy")

    assert result.code == 0
    assert "checkpoint in note " in result.out
    assert "notes learnt" in result.out
    assert "wait for 'graphmem approve'" in result.out
    note = result.out.partition("note ")[2].partition(";")[0].split()[0]
    assert "harbour-7" in told("notes", "show", note).out
    assert told("checkpoint", "panel-deploy").out == "session panel-deploy: nothing new was said\n"


def test_a_checkpoint_can_wait(told):
    assert "queued; 'graphmem jobs --run' does it" in told("checkpoint", "panel-deploy", "--queue").out
    assert "queued" in told("jobs").out
    assert "checkpoint in note" in told("jobs", "--run").out
    assert "done" in told("jobs", "--state", "done").out
    assert told("jobs", "--run").out.startswith("nothing to do")
    assert told("jobs", "--state", "queued").out == "no jobs\n"


def test_idle_sessions_get_one(told):
    assert "checkpoint in note" in told("checkpoint", "--idle").out  # what was said lies months back
    assert told("checkpoint", "--idle").out.startswith("nothing to do")


@pytest.mark.parametrize(
    "arguments",
    [["checkpoint"], ["checkpoint", "s1", "--idle"], ["checkpoint", "--idle", "--force"], ["history"],
     ["jobs", "--run", "--limit", "3"], ["jobs", "--state", "lost"]],
)  # fmt: skip
def test_what_has_no_meaning_together_is_wrong_usage(told, arguments):
    assert told(*arguments).code == 2


def test_a_writer_that_fails_is_told_and_ends_with_1(told, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_WRITER_COMMAND", "false")

    failed = told("checkpoint", "panel-deploy")

    assert failed.code == 1
    assert "session panel-deploy: failed: false failed with exit code 1" in failed.out
    assert "failed 1 time" in told("sessions").out
    assert "failed" in told("jobs").out


def test_a_program_of_the_settings_writes(told, monkeypatch, tmp_path):
    program = tmp_path / "writer.py"
    program.write_text(
        "import os, sys\n"
        "asked = sys.stdin.read()\n"
        "assert os.environ['GRAPHMEM_WRITER'] == '1' and '[user t1]' in asked\n"
        "print('# Checkpoint')\n"
        "for heading in ('Summary', 'Decisions', 'Facts', 'Open', 'Files', 'Notes'):\n"
        "    print(f'## {heading}\\nWritten by a program.')\n"
    )
    monkeypatch.setenv("GRAPHMEM_WRITER_COMMAND", f"{sys.executable} {program}")

    assert "checkpoint in note" in told("checkpoint", "panel-deploy").out
    assert "Written by a program." in told("recall", "written", "program", "--kind", "note").out


def test_a_folder_of_transcripts_is_harvested_with_numbers(cli, tmp_path):
    (tmp_path / "talks").mkdir()
    (tmp_path / "talks" / "a.jsonl").write_text(TALK.read_text("utf-8") + "{torn", "utf-8")

    first, second = cli("harvest", tmp_path / "talks"), cli("harvest", tmp_path / "talks", "--kind", "turns")

    assert first.out == "1 source, 1 session with something new: 10 new, 0 changed, 0 known\n"
    assert "no newline yet" in first.err
    assert second.out == "1 source, 0 sessions with something new: 0 new, 0 changed, 0 known\n"


def test_an_interrupt_leaves_what_was_read(path, tmp_path):
    file = tmp_path / "long.jsonl"
    file.write_text(
        "".join(json.dumps({"id": f"m{n}", "role": "user", "text": f"Turn {n}"}) + "\n" for n in range(3000))
    )
    script = (
        "import os, signal, sys\n"
        "from graphmem import sessions\n"
        "from graphmem.surfaces.cli import main\n"
        "store = sessions.Sessions._store_batch\n"
        "def stop(*arguments):\n"
        "    store(*arguments)\n"
        "    raise KeyboardInterrupt\n"
        "sessions.Sessions._store_batch = stop\n"
        "main(sys.argv[1:])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, "--db", path, "harvest", file],
        check=False,
        capture_output=True,
        env=dict(os.environ),
    )
    assert ended.returncode == 130
    with Memory.open(path) as memory:
        read = memory.sessions()[0].parts
        assert 0 < read < 3000
        assert memory.harvest(file).added == 3000 - read


@pytest.mark.parametrize("number", ["²", "٣", "9" * 19, "9" * 5000, "0", "-1"])
def test_what_is_no_number_of_a_part_is_not_found(told, number):
    found = told("part", "--", number)

    assert found.code == 3 or "whole number" in found.err
    assert "Traceback" not in found.err


def test_a_number_is_that_of_this_memory_first_then_that_of_the_host(cli, path):
    with Memory.open(path) as memory:
        memory.mirror("s1", [Part("2", text="called 2"), Part("7", text="called 7"), Part("x", text="third")])

    assert cli("part", "2").out == "called 7"
    assert cli("part", "7").out == "called 7"
    assert cli("part", "2", "--session", "s1").out == "called 7"
    assert cli("part", "9").code == 3


def test_standard_input_that_is_no_text_is_named(path):
    done = subprocess.run(
        [sys.executable, "-c", "from graphmem.surfaces.cli import main; main()", "--db", str(path), "mirror", "s1"],
        input=b"\xff", capture_output=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert "FILE = '-': is no UTF-8 text at byte 0" in done.stderr.decode()
