"""Harvest: transcripts of other programs are mirrored from where the last harvest ended, in their own projects."""

import json
import os
from pathlib import Path

import pytest
from support import sql

from graphmem import Config, Conflict, InvalidInput, Memory, Part
from graphmem.exchange.formats.turns import session_of

FIRST = {"id": "m1", "role": "user", "author": "Ann", "text": "Where does the panel run?", "at": "2026-09-01T10:00:00Z"}
SECOND = {"id": "m2", "role": "assistant", "text": "On harbour-7."}


def write(file, *turns, end="\n"):
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write("".join(json.dumps(turn) + "\n" for turn in turns[:-1]))
        stream.write(json.dumps(turns[-1]) + end)


def claude_line(uuid, text, *, kind="user", cwd="/work/panel", session="c1"):
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": session,
        "cwd": cwd,
        "timestamp": "2026-09-01T10:00:00.000Z",
        "message": {"role": kind, "content": text},
    }


def numbers(report):
    return report.sources, report.sessions, report.added, report.changed, report.known


@pytest.fixture
def talk(tmp_path):
    file = tmp_path / "talks" / "talk.jsonl"
    write(file, FIRST, SECOND)
    return file


def test_only_what_is_new_is_read(memory, talk):
    assert numbers(memory.harvest(talk)) == (1, 1, 2, 0, 0)
    assert numbers(memory.harvest(talk)) == (1, 0, 0, 0, 0)
    write(talk, {"id": "m3", "role": "user", "text": "Thanks."})
    assert numbers(memory.harvest(talk.parent)) == (1, 1, 1, 0, 0)

    assert [memory.part(f"m{n}").text for n in (1, 2, 3)] == [FIRST["text"], SECOND["text"], "Thanks."]
    assert memory.part("m1").author == "Ann"
    assert memory.part("m1").at == "2026-09-01T10:00:00.000Z"


def test_a_torn_last_line_is_taken_up_the_next_time(memory, talk):
    write(talk, {"id": "m3", "role": "user", "text": "Thanks a lot."}, end="")
    whole = talk.read_text("utf-8")
    talk.write_text(whole[:-5], "utf-8")
    assert memory.harvest(talk).added == 2

    talk.write_text(whole + "\n", "utf-8")
    assert memory.harvest(talk).added == 1
    assert memory.part("m3").text == "Thanks a lot."


def test_a_damaged_line_is_skipped_and_named(memory, talk):
    with talk.open("a") as stream:
        stream.write("{not json\n")
    write(talk, {"id": "m3", "role": "user", "text": "ok \ud83d"})

    report = memory.harvest(talk)

    assert report.added == 3
    assert any("line 3" in remark and talk.name in remark for remark in report.remarks)
    assert any("U+FFFD" in remark for remark in report.remarks)
    assert memory.part("m3").text == "ok \ufffd"


def test_sessions_are_of_the_project_they_were_in(memory, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    write(tmp_path / "c" / "a.jsonl", claude_line("u1", "The panel uses pnpm.", cwd=str(here)))
    write(tmp_path / "c" / "b.jsonl", claude_line("u2", "The engine uses pnpm.", cwd=str(there), session="c2"))

    memory.harvest(tmp_path / "c")

    scopes = {scope.label: scope.key for scope in memory.scopes()}
    assert {"here", "there"} <= scopes.keys()  # also of a folder that is not on this machine
    assert memory.history("pnpm") == ()
    assert [hit.part.part for hit in memory.history("pnpm", scopes=[scopes["here"]])] == ["u1"]
    with Memory.open(memory.path, project=here) as inside:
        assert [hit.part.part for hit in inside.history("pnpm")] == ["u1"]


def test_a_folder_with_a_secret_in_its_name_is_no_project(memory, tmp_path):
    write(tmp_path / "a.jsonl", claude_line("u1", "Hello.", cwd="/work/ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"))

    report = memory.harvest(tmp_path / "a.jsonl")

    assert report.added == 1
    assert "of no project" in report.remarks[0]
    assert "a1B2" not in str(report)


def test_secrets_are_replaced_unless_raw_is_asked_for(memory, talk):
    token = "ghp_" + "a1B2" * 9
    write(talk, {"id": "m3", "role": "user", "text": f"use {token}"})
    report = memory.harvest(talk)
    assert token not in memory.part("m3").text
    assert f"{session_of(str(talk))}: parts[2]: secrets were replaced by [REDACTED]" in report.remarks

    write(talk, {"id": "m4", "role": "user", "text": f"use {token}"})
    memory.harvest(talk, redact=False)
    assert token in memory.part("m4").text


def test_the_session_of_a_writer_is_left_out(memory, tmp_path):
    asked = claude_line("u1", "<!-- graphmem:writer -->\nSum up.")
    write(tmp_path / "w.jsonl", asked, claude_line("u2", "# Checkpoint", kind="assistant"))

    report = memory.harvest(tmp_path / "w.jsonl")

    assert (report.added, report.own) == (0, 1)


def test_a_search_reads_first_what_was_written_since(memory, talk):
    memory.harvest(talk)
    write(talk, {"id": "m3", "role": "user", "text": "Then move it to lighthouse-2."})

    assert [hit.part.part for hit in memory.history("lighthouse", limit=1)] == ["m3"]


def test_a_search_reads_nothing_where_the_settings_say_so(path, talk, clock):
    with Memory.open(path, clock=clock, config=Config(reconcile_on_search=False)) as memory:
        memory.harvest(talk)
        write(talk, {"id": "m3", "role": "user", "text": "Then move it to lighthouse-2."})

        assert not any(hit.part.part == "m3" for hit in memory.history("lighthouse"))


def test_a_transcript_that_is_gone_ends_no_search(memory, talk):
    memory.harvest(talk)
    talk.unlink()

    assert memory.history("panel")


def test_a_source_that_cannot_be_read_is_told_and_the_others_go_on(memory, talk, monkeypatch):
    from graphmem.exchange import transcripts

    write(talk.parent / "other.jsonl", {"id": "x1", "role": "user", "text": "Hello there."})
    read = transcripts.read_source

    def broken(source, cursor=""):
        if source.path.endswith("other.jsonl"):
            raise InvalidInput("source", source.path, "is damaged")
        yield from read(source, cursor)

    monkeypatch.setattr(transcripts, "read_source", broken)
    report = memory.harvest(talk.parent)

    assert report.added == 2
    assert len(report.failed) == 1
    assert "other.jsonl" in report.failed[0]
    assert "is damaged" in report.failed[0]


def test_an_interrupted_harvest_loses_and_repeats_nothing(memory, tmp_path, path):
    file = tmp_path / "long.jsonl"
    write(file, *[{"id": f"m{n}", "role": "user", "text": f"Turn number {n}"} for n in range(1700)])

    def stop(done, whole):
        if done >= whole // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.harvest(file, progress=stop)
    (before,) = sql(path, "SELECT COUNT(*) FROM parts")[0]
    assert 0 < before < 1700

    report = memory.harvest(file)

    assert (report.added, report.known) == (1700 - before, 0)
    assert sql(path, "SELECT COUNT(*), MAX(seq) FROM parts") == [(1700, 1699)]
    names = sql(path, "SELECT part FROM parts ORDER BY seq")
    assert [name for (name,) in names] == [f"m{n}" for n in range(1700)]


def test_progress_reaches_its_end(memory, talk):
    told = []
    memory.harvest(talk, progress=lambda done, whole: told.append((done, whole)))

    assert told[-1] == (1000, 1000)
    assert told == sorted(told)


def test_the_usual_places_are_read_where_none_is_named(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(InvalidInput, match="no sessions of Claude Code or OpenCode"):
        memory.harvest()
    write(tmp_path / "claude" / "projects" / "p" / "c1.jsonl", claude_line("u1", "Hello there."))

    assert memory.harvest().added == 1
    assert memory.harvest(kind="claude-code").added == 0


@pytest.mark.parametrize(("name", "reason"), [("missing", "no such file"), ("empty", "holds no known transcript")])
def test_a_path_with_nothing_to_read_is_refused(memory, tmp_path, name, reason):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=reason):
        memory.harvest(tmp_path / name)


def test_a_read_only_memory_harvests_nothing(memory, talk, path):
    with Memory.open(path, config=Config(read_only=True)) as reader, pytest.raises(Conflict, match="read-only"):
        reader.harvest(talk)


# ---- what others wrote ends neither a harvest nor a search


@pytest.mark.parametrize("folder", ["/a\0b", "/a\ud800b", "/" + "a" * 300 + "/b" * 3000])
def test_a_folder_that_cannot_be_is_no_project(memory, tmp_path, folder):
    write(tmp_path / "a.jsonl", {**FIRST, "project": folder}, SECOND)

    assert memory.harvest(tmp_path / "a.jsonl").added == 2


def test_a_file_whose_name_is_no_text_is_told(memory, talk):
    odd = os.fsencode(talk.parent) + b"/a\xff.jsonl"
    with open(odd, "w") as stream:  # noqa: PTH123 (no text is a path of it)
        stream.write(json.dumps(FIRST) + "\n")

    report = memory.harvest(talk.parent)

    assert (report.added, len(report.failed)) == (2, 1)
    assert "give it another" in report.failed[0]
    report.failed[0].encode()


def test_a_part_with_a_secret_as_its_id_is_left_out_and_told(memory, talk):
    write(talk, {"id": "ghp_" + "a1B2" * 9, "role": "user", "text": "Hello."})

    report = memory.harvest(talk)

    assert report.added == 2
    assert "a part is left out" in report.remarks[0]
    assert "a1B2" not in str(report)


def test_a_time_that_is_none_in_some_zone_is_no_time(path, talk, clock):
    write(talk, {**FIRST, "id": "m3", "at": "0001-01-01"}, {**FIRST, "id": "m4", "at": "9999-12-31T23:00"})
    for zone in ("Asia/Shanghai", "America/New_York"):
        with Memory.open(":memory:", config=Config(timezone=zone), clock=clock) as memory:
            assert memory.harvest(talk).added == 4


def test_a_line_of_no_known_form_ends_no_search(memory, tmp_path):
    file = tmp_path / "a.jsonl"
    write(file, claude_line("u1", "The panel uses pnpm.", cwd=""))
    memory.harvest(file)
    write(file, claude_line("u2", [{"type": ["text"]}], cwd=""), claude_line("u3", "pnpm it is.", cwd=""))

    assert {hit.part.part for hit in memory.history("pnpm")} == {"u1", "u3"}


def test_what_nobody_foresaw_is_one_line_a_source_in_the_log(memory, talk, monkeypatch, caplog):
    from graphmem.exchange import transcripts

    write(talk.parent / "other.jsonl", {"id": "x1", "role": "user", "text": "Hello there."})
    memory.harvest(talk.parent)

    def broken(source, cursor):
        raise TypeError("unhashable type: 'list'")
        yield

    monkeypatch.setitem(transcripts._READERS, "turns", broken)
    assert memory.history("hello")
    assert [record.message.count(".jsonl") for record in caplog.records] == [2, 2]
    assert len(memory.harvest(talk.parent).failed) == 2


def test_a_folder_that_may_not_be_looked_into_ends_no_search(memory, talk, monkeypatch, caplog):
    memory.harvest(talk)
    exists = Path.exists

    def refuse(file):
        if str(file).startswith(str(talk)):
            raise PermissionError(13, "Permission denied", str(file))
        return exists(file)

    monkeypatch.setattr(Path, "exists", refuse)
    assert memory.history("panel")


# ---- whose a session is


def scopes_of(path):
    return dict(sql(path, "SELECT name, scope FROM sessions ORDER BY id"))


def test_sessions_of_one_name_in_two_projects_stay_apart(memory, tmp_path, path):
    for name in "ab":
        turn = {"id": "1", "session": "talk", "role": "user", "text": f"the plan of {name}"}
        write(tmp_path / name / "t.jsonl", {**turn, "project": str(tmp_path / name)})

    report = memory.harvest(tmp_path)
    again = memory.harvest(tmp_path)

    first, second = scopes_of(path).items()
    assert first[0] == "talk"
    assert second[0] == f"talk@{second[1].removeprefix('project:')}"
    assert (report.added, report.sessions, again.added) == (2, 2, 0)
    assert any(second[0] in remark for remark in report.remarks)
    for name in "ab":
        with Memory.open(path, project=tmp_path / name) as inside:
            assert [hit.part.text for hit in inside.history("plan")] == [f"the plan of {name}"]

    write(tmp_path / "b" / "t.jsonl", {"session": "talk", "role": "user", "text": "go", "project": str(tmp_path / "b")})
    memory.harvest(tmp_path)
    assert list(scopes_of(path)) == ["talk", second[0]]


def test_a_host_tells_no_session_of_another_project(memory, tmp_path, path):
    for name in "ab":
        (tmp_path / name).mkdir()
    with Memory.open(path, project=tmp_path / "a") as inside:
        inside.mirror("talk", [Part("m1", text="the plan of a")])
    (own,) = scopes_of(path).values()
    with Memory.open(path, project=tmp_path / "b") as inside:
        with pytest.raises(Conflict, match=f"scope {own!r}.*another name.*scope={own!r}"):
            inside.mirror("talk", [Part("m2", text="the plan of b")])
        assert inside.mirror("talk", [Part("m2", text="for a")], scope=own).added == 1
    assert memory.mirror("talk", [Part("m3", text="of nobody knows whom")]).added == 1
    with pytest.raises(Conflict, match="is of scope"):
        memory.mirror("talk", [Part("m4", text="for all")], scope="user")


def test_a_session_that_is_told_in_a_project_later_takes_what_was_made_of_it_along(memory, tmp_path, path):
    memory.mirror("talk", [Part(f"m{n}", role="user", text=f"We decided on port {n}000.") for n in range(6)])
    memory.checkpoint("talk")
    memory.mirror("talk", [Part("m9", role="user", text="We decided on harbour-7 then.")])
    memory.checkpoint("talk", wait=False)
    memory.remember("For everybody", kind="checkpoint")

    (tmp_path / "a").mkdir()
    with Memory.open(path, project=tmp_path / "a") as inside:
        inside.mirror("talk", [Part("m10", role="user", text="Here.")])
        (own,) = scopes_of(path).values()
        assert own.startswith("project:")
        assert {scope for (scope,) in sql(path, "SELECT scope FROM jobs")} == {own}
        assert sql(path, "SELECT scope FROM notes WHERE kind = 'checkpoint' ORDER BY id") == [(own,), ("",)]
        assert [report.state for report in inside.run_jobs()] == ["written"]


def test_a_session_that_is_the_users_by_name_stays_the_users(memory, tmp_path, path):
    memory.mirror("talk", [Part("m1", text="hello")], scope="user")
    (tmp_path / "a").mkdir()
    with Memory.open(path, project=tmp_path / "a") as inside:
        inside.mirror("talk", [Part("m2", text="hello again")])
    assert scopes_of(path) == {"talk": ""}

    write(tmp_path / "t.jsonl", {**FIRST, "session": "talk", "project": str(tmp_path / "a")})
    memory.harvest(tmp_path / "t.jsonl")
    assert [name.partition("@")[0] for name in scopes_of(path)] == ["talk", "talk"]


def test_lines_before_their_folder_is_known_go_with_those_behind(memory, tmp_path, path):
    file = tmp_path / "c.jsonl"
    write(file, claude_line("u1", "The first line.", cwd=""))
    memory.harvest(file)
    write(file, claude_line("u2", "A secret plan.", cwd=str(tmp_path)))
    memory.harvest(file)

    assert list(scopes_of(path)) == ["c1"]
    assert scopes_of(path)["c1"].startswith("project:")


# ---- what was removed stays removed


@pytest.fixture
def export(tmp_path):
    def conversation(name, text):
        return {"uuid": name, "chat_messages": [{"uuid": f"{name}-u1", "sender": "human", "text": text}]}

    def write_export(extra=""):
        file = tmp_path / "conversations.json"
        told = [conversation("xyzzy", f"my private diary{extra}"), conversation("other", f"the public diary{extra}")]
        file.write_text(json.dumps(told))
        return file

    return write_export


@pytest.mark.parametrize("removed", ["delete", "purge", "for good"])
def test_a_session_that_was_removed_comes_back_with_no_transcript(memory, export, path, removed):
    file = export()
    memory.harvest(file)
    if removed == "delete":
        memory.delete_session("xyzzy")
    else:
        memory.purge(session="xyzzy", hard=removed == "for good")
    export(", and more")
    assert [hit.part.session for hit in memory.history("diary")] == ["other"]
    export(", and even more")
    (remark,) = memory.harvest(file).remarks
    assert "'xyzzy' was removed here" in remark
    assert "mirror" in remark
    assert [hit.part.session for hit in memory.history("diary")] == ["other"]

    memory.mirror("xyzzy", [Part("m1", text="a new diary")])
    export(", and still more")
    assert memory.harvest(file).remarks == ()
    assert {hit.part.session for hit in memory.history("diary")} == {"xyzzy", "other"}


def test_a_purge_for_good_leaves_no_name_of_a_session(memory, tmp_path, path):
    write(tmp_path / "in" / "plan-xyzzy.jsonl", claude_line("u1", "Hello.", session="plan-xyzzy"))
    write(tmp_path / "in" / "other.jsonl", claude_line("u2", "Hello.", session="other"))
    memory.harvest(tmp_path / "in")

    report = memory.purge(session="plan-xyzzy", hard=True)

    memory.close()
    assert Memory.verify_forgotten(path, "plan-xyzzy").found == ()
    assert any("harvested again: 1" in remark for remark in report.remarks)
    assert sql(path, "SELECT path FROM transcripts") == [(str(tmp_path / "in" / "other.jsonl"),)]
    with Memory.open(path) as memory:
        assert any("was removed here" in remark for remark in memory.harvest(tmp_path / "in").remarks)


def test_an_undo_takes_back_that_a_session_was_removed(memory, export):
    file = export()
    memory.harvest(file)
    operation = memory.purge(session="xyzzy").operation
    memory.undo(operation)
    export(", and more")

    memory.harvest(file)
    assert memory.part("xyzzy-u1").text == "my private diary, and more"


def test_the_session_of_another_project_stays_when_its_namesake_is_removed(memory, tmp_path, path):
    for name in "ab":
        turn = {"id": "1", "session": "talk", "role": "user", "text": f"the plan of {name}"}
        write(tmp_path / name / "t.jsonl", {**turn, "project": str(tmp_path / name)})
    memory.harvest(tmp_path)
    memory.delete_session("talk")
    for name in "ab":
        turn = {"id": "2", "session": "talk", "role": "user", "text": f"more of {name}"}
        write(tmp_path / name / "t.jsonl", {**turn, "project": str(tmp_path / name)})

    memory.harvest(tmp_path)

    assert sql(path, "SELECT text FROM parts ORDER BY seq") == [("the plan of b",), ("more of b",)]


# ---- secrets in names

TOKEN = "ghp_" + "a1B2" * 9


def test_a_session_with_a_secret_in_its_name_is_left_out_and_told(memory, talk, path):
    write(talk, {**FIRST, "id": "m3", "session": f"s-{TOKEN}"})
    for _ in range(2):
        report = memory.harvest(talk)
        assert any("name holds a secret" in remark for remark in report.remarks)
        assert "a1B2" not in str(report)
    assert memory.history("panel")

    assert len(memory.sessions()) == 1
    assert "a1B2" not in str(sql(path, "SELECT * FROM transcripts"))
    memory.close()
    assert b"a1B2" not in path.read_bytes()


def test_of_a_path_with_a_secret_nothing_is_kept(memory, tmp_path, path):
    file = tmp_path / f"token={TOKEN}" / "talk.jsonl"
    write(file, {**FIRST, "session": "s1"})

    first, again = memory.harvest(file), memory.harvest(file)

    assert (first.added, again.added, again.known) == (1, 0, 1)
    assert sql(path, "SELECT path FROM transcripts") == []
    assert "a1B2" not in str(first)
    file.write_text("[")
    assert "a1B2" not in str(memory.harvest(file, kind="claude"))


# ---- told twice


def test_a_copy_of_a_transcript_is_remarked_on(memory, talk):
    turn = {"role": "user", "text": "Hello there."}
    file = talk.parent / "no-ids.jsonl"
    write(file, turn, SECOND)
    assert memory.harvest(talk.parent).remarks == ()

    file.rename(talk.parent / "renamed.jsonl")
    (remark,) = memory.harvest(talk.parent).remarks
    assert "renamed.jsonl" in remark
    assert session_of(str(file)) in remark
    assert memory.harvest(talk.parent).remarks == ()


def test_another_source_of_a_session_is_remarked_on(memory, tmp_path):
    for name in ("s1", "s2", "s3"):
        write(tmp_path / "a.jsonl", {**FIRST, "session": name})
    memory.harvest(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes())
    assert memory.harvest(tmp_path / "b.jsonl").remarks == ()  # all of it is known

    for name in ("s1", "s2", "s3"):
        write(tmp_path / "c.jsonl", {**SECOND, "session": name})
    (remark,) = memory.harvest(tmp_path / "c.jsonl").remarks
    assert "'s1' and 2 others" in remark


# ---- searches that read on


def times(path):
    return [at for (at,) in sql(path, "SELECT updated_at FROM transcripts ORDER BY path")]


def counted_reads(monkeypatch):
    from graphmem.exchange import transcripts

    read, opened = transcripts.read_source, []
    monkeypatch.setattr(
        transcripts, "read_source", lambda source, cursor="": (opened.append(source.path), read(source, cursor))[1]
    )
    return opened


@pytest.mark.parametrize("redact", [True, False])
def test_a_search_replaces_secrets_as_the_last_harvest_did(path, talk, clock, redact):
    token = "ghp_" + "a1B2" * 9
    with Memory.open(path, clock=clock, config=Config(redact_mirror=not redact)) as memory:
        memory.harvest(talk, redact=redact)
        write(talk, {"id": "m3", "role": "user", "text": f"the key is {token}"})
        memory.history("key")
        assert (token in memory.part("m3").text) != redact

        memory.harvest(talk)
        write(talk, {"id": "m4", "role": "user", "text": f"the key is {token}"})
        memory.history("key")
        assert (token in memory.part("m4").text) == redact


def test_what_did_not_change_is_looked_at_once(memory, talk, clock, path, monkeypatch):
    memory.harvest(talk)
    now = clock().timestamp()
    os.utime(talk, (now + 10, now + 10))
    opened = counted_reads(monkeypatch)
    clock.advance(seconds=20)
    for _ in range(3):
        memory.history("panel")

    assert opened == [str(talk)]
    assert times(path) == ["2026-09-07T08:00:20.000Z"]


def test_what_grows_while_it_is_stored_is_read_with_the_next_search(memory, talk, clock, path):
    def grow(done, whole):
        clock.advance(seconds=60)
        if len(talk.read_text().splitlines()) == 2:
            write(talk, {"id": "m3", "role": "user", "text": "Then move it to lighthouse-2."})
            os.utime(talk, (clock().timestamp() - 30,) * 2)

    memory.harvest(talk, progress=grow)

    assert [hit.part.part for hit in memory.history("lighthouse", limit=1)] == ["m3"]


def test_an_empty_transcript_is_read_when_something_is_said(memory, talk):
    file = talk.parent / "empty.jsonl"
    file.touch()
    memory.harvest(file, kind="turns")
    write(file, {"id": "m3", "role": "user", "text": "Then move it to lighthouse-2."})

    assert [hit.part.part for hit in memory.history("lighthouse", limit=1)] == ["m3"]


def test_a_transcript_that_is_gone_is_silent_though_its_folder_is_busy(memory, talk, monkeypatch, caplog):
    memory.harvest(talk)
    talk.unlink()
    (talk.parent / "other").touch()
    opened = counted_reads(monkeypatch)

    assert memory.history("panel")
    assert (opened, caplog.records) == ([], [])
