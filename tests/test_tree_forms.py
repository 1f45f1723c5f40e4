"""MEMORY.md, checkpoint.md and the ledger's JSON, both ways."""

import contextlib
import json
import queue
import threading

import pytest
from conftest import FakeClock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_tree import KEY, LINES, files
from test_tree_attacks import git

from graphmem import Conflict, InvalidInput, Memory, SecretRefused
from graphmem.core import entries, sections
from graphmem.exchange import pieces, rooted
from graphmem.records import trees

CHECKPOINT = "# Checkpoint\nDate: 2026-03-01\n## Summary\n- All done.\n## Decisions\n- pnpm\n## Facts\n- port 8080"
FORMS = ("promemory", "ledger")
FILE = {"promemory": "MEMORY.md", "ledger": "memory.json"}


@pytest.fixture
def root(tmp_path):
    return tmp_path / "files"


@pytest.fixture
def filled(memory, root):
    memory.remember("Deploy with pnpm", body="Never npm.", kind="lesson", labels=["redis"])
    memory.remember("Likes tea", source="user", slot="drink")
    memory.remember("Never push", kind="rule", source="user", body="## Why\n\nIt is public.")
    memory.remember("Never pull", kind="rule")  # proposed, so in no file that agents read
    memory.remember("Checkpoint of s1, 2026-03-01", kind="checkpoint", body=CHECKPOINT, session="s1")
    return memory


def whats(report):
    return [(change.path.partition("#")[0], change.what) for change in report.changes]


def change(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8", newline="")


def titles(memory):
    return {note.title for note in memory.notes()}


def quiet(memory, root):
    """Tell whether nothing is left to be done."""
    return memory.sync_tree(root).changes == ()


# ---- out


def test_memory_md_has_a_section_a_note_below_the_headings_of_promemory(filled, root):
    filled.export_tree(root, form="promemory")
    assert set(files(root)) == {"MEMORY.md", "sessions/s1/checkpoint.md"}
    text = (root / "MEMORY.md").read_text("utf-8")
    uids = [line for line in text.splitlines() if line.startswith("<!-- graphmem: ")]
    assert len(uids) == 3
    plain = "\n".join(line for line in text.splitlines() if line not in uids)
    assert plain == (
        "# Memory\n\n## Rules\n\n### Never push\n\n\\## Why\n\nIt is public.\n\n"
        "## Discovered durable knowledge\n\n### Likes tea\n\n## Lessons\n\n### Deploy with pnpm\n\nNever npm."
    )
    kept = (root / "sessions/s1/checkpoint.md").read_text("utf-8").splitlines()
    assert kept[0] == "# Checkpoint"
    assert kept[1].startswith("<!-- graphmem: ")
    assert "\n".join(kept[:1] + kept[2:]) == CHECKPOINT


def test_a_ledger_is_json_of_facts_and_lessons(filled, root):
    filled.export_tree(root, form="ledger")
    assert set(files(root)) == {"memory.json"}
    found = {entry["title"]: entry for entry in json.loads((root / "memory.json").read_bytes())["entries"]}
    assert set(found) == {"Deploy with pnpm", "Likes tea", "Never push"}
    assert (found["Deploy with pnpm"]["kind"], found["Deploy with pnpm"]["tags"]) == ("lesson", ["redis"])
    assert (found["Likes tea"]["key"], found["Likes tea"]["pinned"]) == ("drink", False)
    assert (found["Never push"]["kind"], found["Never push"]["noteKind"]) == ("fact", "rule")


@pytest.mark.parametrize("form", FORMS)
def test_twice_the_same_notes_make_the_same_bytes_and_recalls_change_none(filled, root, tmp_path, form):
    filled.export_tree(root, form=form)
    before = files(root)
    assert filled.recall("pnpm")
    filled.remember("Likes tea", slot="drink")
    assert filled.export_tree(root).changes == ()
    assert quiet(filled, root)
    filled.export_tree(tmp_path / "other", form=form)
    assert files(root) == before == files(tmp_path / "other")


def test_the_form_is_remembered_with_the_root(filled, root):
    assert filled.export_tree(root, form="ledger").form == "ledger"
    assert filled.sync_tree(root).form == "ledger"
    with pytest.raises(Conflict, match="in the form ledger"):
        filled.export_tree(root, form="notes")
    with pytest.raises(InvalidInput, match="notes, promemory, ledger"):
        filled.export_tree(root, form="yaml")


@pytest.mark.parametrize("form", FORMS)
def test_a_dry_run_tells_the_same_and_changes_nothing(filled, root, form):
    dry = filled.export_tree(root, form=form, dry_run=True)
    assert not root.exists()
    wet = filled.export_tree(root, form=form)
    assert (dry.changes, dry.applied, wet.applied) == (wet.changes, False, True)
    change(root / FILE[form], "Likes tea", "Likes coffee")
    filled.edit_note(1, body="Never ever npm.")
    before = files(root)
    dry = filled.sync_tree(root, dry_run=True)
    assert files(root) == before
    assert "Likes tea" in titles(filled)
    assert dry.changes == filled.sync_tree(root).changes


# ---- in


@pytest.mark.parametrize("form", FORMS)
def test_an_edit_by_hand_is_seen_by_the_next_read(filled, root, form):
    """C8.11, B8.24."""
    filled.export_tree(root, form=form)
    change(root / FILE[form], "Never npm.", "Never, ever npm, use zebras.")
    assert [change.what for change in filled.sync_tree(root).changes] == ["edited"]
    assert any((hit.kind, hit.id) == ("note", 1) for hit in filled.recall("zebras"))
    assert "zebras" in (root / FILE[form]).read_text("utf-8")
    assert quiet(filled, root)


def test_a_deleted_memory_md_takes_its_hits_with_it(filled, root):
    """B8.24."""
    filled.export_tree(root, form="promemory")
    (root / "MEMORY.md").unlink()
    report = filled.sync_tree(root)
    assert {change.what for change in report.changes} == {"archived"}
    assert [hit.id for hit in filled.recall("pnpm")] == [5]
    assert titles(filled) == {"Checkpoint of s1, 2026-03-01"}
    assert quiet(filled, root)
    assert "MEMORY.md" not in files(root)


def test_a_root_that_is_gone_is_no_wish(filled, root, tmp_path):
    filled.export_tree(root, form="ledger")
    root.rename(tmp_path / "away")
    with pytest.raises(Conflict, match="gone at once"):
        filled.sync_tree(root)
    (tmp_path / "away").rename(root)
    assert quiet(filled, root)


def test_sections_and_bullets_that_people_add_become_notes_with_a_name(filled, root):
    filled.export_tree(root, form="promemory")
    change(root / "MEMORY.md", "# Memory\n", "# Memory\n\nMine, and no note.\n\n## Deployment\n\nHow we do it.\n\n"
           "- use blue green\n  with care\n* roll back by tag\n\n### Ask Ann first\n\nShe knows.\n")  # fmt: skip
    report = filled.sync_tree(root)
    assert {change.what for change in report.changes} == {"added", "written"}
    notes = {note.title: note for note in filled.notes()}
    assert (notes["use blue green"].body, notes["use blue green"].kind) == ("with care", "fact")
    assert {"roll back by tag", "Ask Ann first"} <= set(notes)
    text = (root / "MEMORY.md").read_text("utf-8")
    assert text.startswith("# Memory\n\nMine, and no note.\n\n## Deployment\n\nHow we do it.\n\n### ")
    assert text.count("### ") == text.count("<!-- graphmem: ") == 6
    assert quiet(filled, root)
    # It stays the same note whatever a person does to its section.
    change(root / "MEMORY.md", "### use blue green", "### Use blue and green")
    change(root / "MEMORY.md", "with care", "with great care")
    report = filled.sync_tree(root)
    assert [(one.what, one.note_id) for one in report.changes] == [("edited", notes["use blue green"].id)]


def test_a_section_that_moves_below_another_heading_is_of_its_kind(filled, root):
    filled.export_tree(root, form="promemory")
    text = (root / "MEMORY.md").read_text("utf-8")
    start = text.index("### Likes tea")
    end = text.index("## Lessons")
    section = text[start:end]
    text = text[:start] + text[end:]
    (root / "MEMORY.md").write_text(text + "\n## Preferences\n\n" + section, "utf-8")
    filled.sync_tree(root)
    assert filled.inspect(2).note.kind == "preference"
    filled.edit_note(2, kind="decision")
    filled.sync_tree(root)
    text = (root / "MEMORY.md").read_text("utf-8")
    assert text.index("## Architecture decisions") < text.index("### Likes tea")
    assert quiet(filled, root)


def test_a_checkpoint_that_is_edited_is_the_same_note(filled, root):
    filled.export_tree(root, form="promemory")
    path = root / "sessions/s1/checkpoint.md"
    change(path, "All done.", "Nearly all done.")
    assert whats(filled.sync_tree(root)) == [("sessions/s1/checkpoint.md", "edited")]
    note = filled.inspect(5).note
    assert "Nearly all done." in note.body
    assert note.body.startswith("# Checkpoint\nDate: 2026-03-01")
    assert note.origin.session == "s1"
    # Another program appends one.
    path.write_text(path.read_text("utf-8") + "\n" + CHECKPOINT.replace("03-01", "03-02").replace("8080", "9090"))
    assert {one.what for one in filled.sync_tree(root).changes} == {"added", "written"}
    fresh = filled.notes(kinds=["checkpoint"])
    assert {note.origin.session for note in fresh} == {"s1"}
    assert path.read_text("utf-8").count("<!-- graphmem: ") == 2
    assert quiet(filled, root)


def test_what_other_programs_put_into_a_ledger_stays(filled, root):
    root.mkdir()
    (root / "memory.json").write_text(json.dumps({
        "version": 7,
        "entries": [{"id": "01J", "kind": "fact", "title": "Port 8080", "mood": "blue", "key": "port",
                     "origin": {"cwd": "/x", "at": "2026-01-02T03:04:05Z"}}, {"kind": "lesson", "title": "Bare"}],
        "incidents": [{"signature": "bash|x", "count": 3}]}))  # fmt: skip
    filled.sync_tree(root, form="ledger")
    whole = json.loads((root / "memory.json").read_bytes())
    assert (whole["version"], whole["incidents"]) == (7, [{"signature": "bash|x", "count": 3}])
    found = {entry["title"]: entry for entry in whole["entries"]}
    assert found["Port 8080"]["mood"] == "blue"
    assert found["Port 8080"]["id"] == "01J"
    assert len(found["Bare"]["id"]) == 12
    (note,) = (note for note in filled.notes() if note.title == "Port 8080")
    assert (note.slot, note.created_at[:10], note.origin.place) == ("port", "2026-01-02", "/x")
    filled.edit_note(note.id, body="And 8081.")
    filled.sync_tree(root)
    found = {entry["title"]: entry for entry in json.loads((root / "memory.json").read_bytes())["entries"]}
    assert (found["Port 8080"]["body"], found["Port 8080"]["mood"]) == ("And 8081.", "blue")
    assert quiet(filled, root)


def test_archived_in_a_ledger_archives(filled, root):
    filled.export_tree(root, form="ledger")
    whole = json.loads((root / "memory.json").read_bytes())
    for entry in whole["entries"]:
        entry["archived"] = entry["title"] == "Likes tea"
    (root / "memory.json").write_text(json.dumps(whole))
    report = filled.sync_tree(root)
    assert [one.what for one in report.changes] == ["archived", "removed"]
    assert filled.inspect(2).note.status == "archived"
    assert "Likes tea" not in (root / "memory.json").read_text()
    assert quiet(filled, root)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_forgotten_goes_and_what_is_new_comes(filled, root, form):
    filled.export_tree(root, form=form)
    filled.forget(2)
    filled.remember("Hates milk")
    assert {one.what for one in filled.sync_tree(root).changes} == {"removed", "written"}
    text = (root / FILE[form]).read_text("utf-8")
    assert "Likes tea" not in text
    assert "Hates milk" in text
    filled.restore_note(2)
    filled.sync_tree(root)
    assert "Likes tea" in (root / FILE[form]).read_text("utf-8")
    filled.forget(2, hard=True)
    filled.sync_tree(root)
    assert "Likes tea" not in (root / FILE[form]).read_text("utf-8")
    assert quiet(filled, root)


def test_a_proposal_comes_into_memory_md_when_it_is_approved(filled, root):
    filled.export_tree(root, form="promemory")
    assert "Never pull" not in (root / "MEMORY.md").read_text("utf-8")
    filled.approve(4)
    filled.sync_tree(root)
    assert "Never pull" in (root / "MEMORY.md").read_text("utf-8")


# ---- both


@pytest.mark.parametrize("form", FORMS)
def test_where_both_changed_both_stay(filled, root, form):
    filled.export_tree(root, form=form)
    file = root / FILE[form]
    copy = root / FILE[form].replace(".", ".conflict.")
    change(file, "Likes tea", "Likes coffee")
    filled.edit_note(2, title="Likes milk")
    filled.edit_note(1, title="Deploy by hand")
    assert {one.what for one in filled.sync_tree(root).changes} == {"conflict", "written"}
    assert "Likes coffee" in file.read_text("utf-8")
    assert "Likes milk" in copy.read_text("utf-8")
    assert "Deploy by hand" in file.read_text("utf-8")
    assert [conflict.note_id for conflict in filled.inspect().conflicts] == [2]
    assert {one.what for one in filled.sync_tree(root).changes} == {"conflict"}
    copy.unlink()
    filled.sync_tree(root)
    assert filled.inspect(2).note.title == "Likes coffee"
    assert filled.inspect().conflicts == ()
    assert quiet(filled, root)
    # And for the note, where its page is put into the file.
    change(file, "Likes coffee", "Likes cocoa")
    filled.edit_note(2, title="Likes water")
    filled.sync_tree(root)
    change(file, "Likes cocoa", "Likes water")
    filled.sync_tree(root)
    assert filled.inspect().conflicts == ()
    assert not copy.exists()
    assert quiet(filled, root)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_changes_while_it_is_written_loses_nothing(filled, root, form, monkeypatch):
    filled.export_tree(root, form=form)
    filled.edit_note(1, body="Never ever npm.")
    once = []
    settle = pieces.Pieces.settle

    def late(self):
        if self.held and any(held.changed() for held in self.held.values()) and not once:
            once.append(1)
            change(root / FILE[form], "Likes tea", "Likes coffee")
        return settle(self)

    monkeypatch.setattr(pieces.Pieces, "settle", late)
    filled.sync_tree(root)
    text = (root / FILE[form]).read_text("utf-8")
    assert "Likes coffee" in text
    assert "Never ever npm." in text
    filled.sync_tree(root)
    assert filled.inspect(2).note.title == "Likes coffee"
    assert quiet(filled, root)


# ---- what is refused


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_refused_by_name_and_the_rest_goes_on(filled, root, form):
    filled.export_tree(root, form=form)
    change(root / FILE[form], "Never npm.", f"key {KEY}")
    change(root / FILE[form], "Likes tea", "Likes coffee")
    report = filled.sync_tree(root)
    assert {one.note_id: one.what for one in report.changes} == {1: "refused", 2: "edited"}
    assert KEY not in repr(report)
    assert filled.inspect(1).note.body == "Never npm."
    assert KEY in (root / FILE[form]).read_text("utf-8")


UNREADABLE = (b"", b"\xff", b"<<<<<<< a\n=======\n>>>>>>> b\n")
NO_LEDGER = (b"{", b"7", b'["\\ud800"]', b"[NaN]", b"[" * 100_000)


@pytest.mark.parametrize(
    ("form", "text"),
    [*(("promemory", text) for text in UNREADABLE), *(("ledger", text) for text in (*UNREADABLE, *NO_LEDGER))],
)
def test_a_file_that_cannot_be_read_takes_no_note_with_it(filled, root, form, text):
    filled.export_tree(root, form=form)
    before = titles(filled)
    kept = (root / FILE[form]).read_bytes()
    (root / FILE[form]).write_bytes(text)
    filled.remember("Hates milk")
    report = filled.sync_tree(root)
    assert (FILE[form], "refused") in whats(report)
    assert titles(filled) == before | {"Hates milk"}
    assert (root / FILE[form]).read_bytes() == text
    (root / FILE[form]).write_bytes(kept)
    filled.sync_tree(root)
    assert "Hates milk" in (root / FILE[form]).read_text("utf-8")
    assert quiet(filled, root)


ODD = (
    7, "x", {"kind": "fact"}, {"title": 7}, {"title": "x", "kind": "poem"}, {"title": "x", "tags": "a"},
    {"title": "x", "pinned": "yes"}, {"title": ["x"]},
)  # fmt: skip


@pytest.mark.parametrize("entry", ODD)
def test_an_entry_that_cannot_be_used_is_told_and_stays(filled, root, entry):
    filled.export_tree(root, form="ledger")
    whole = json.loads((root / "memory.json").read_bytes())
    whole["entries"].insert(0, entry)
    (root / "memory.json").write_text(json.dumps(whole))
    report = filled.sync_tree(root)
    assert whats(report) == [("memory.json, entry 1", "refused")]
    filled.edit_note(2, title="Likes milk")
    filled.sync_tree(root)
    assert entry in json.loads((root / "memory.json").read_bytes())["entries"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["denied", "large"])
def test_a_file_that_cannot_be_written_is_told_and_nothing_is_lost(filled, root, form, how, monkeypatch):
    filled.export_tree(root, form=form)
    filled.remember("Hates milk")
    filled.forget(1)
    before = files(root)
    if how == "large":
        monkeypatch.setattr(pieces, "LARGEST", len(before[FILE[form]]) + 10)
        filled.remember("Hates wine", body="A long story. " * 40)
    else:
        real = rooted.Rooted.write

        def denied(self, path, *rest):
            if path == FILE[form]:
                raise InvalidInput("file", path, "cannot be written (Permission denied)")
            return real(self, path, *rest)

        monkeypatch.setattr(rooted.Rooted, "write", denied)
    report = filled.sync_tree(root)
    assert "refused" in {one.what for one in report.changes}
    assert files(root)[FILE[form]] == before[FILE[form]]
    monkeypatch.undo()
    filled.sync_tree(root)
    text = (root / FILE[form]).read_text("utf-8")
    assert "Hates milk" in text
    assert "pnpm" not in text
    assert quiet(filled, root)


@pytest.mark.parametrize("form", FORMS)
def test_where_the_other_side_cannot_be_laid_beside_both_stay(filled, root, form, monkeypatch):
    filled.export_tree(root, form=form)
    change(root / FILE[form], "Likes tea", "Likes coffee")
    filled.edit_note(2, title="Likes milk")
    real = rooted.Rooted.write

    def denied(self, path, *rest):
        if ".conflict." in path:
            raise InvalidInput("file", path, "cannot be written (Permission denied)")
        return real(self, path, *rest)

    monkeypatch.setattr(rooted.Rooted, "write", denied)
    for _ in range(2):
        assert "refused" in {one.what for one in filled.sync_tree(root).changes}
        assert filled.inspect(2).note.title == "Likes milk"
        assert "Likes coffee" in (root / FILE[form]).read_text("utf-8")
    monkeypatch.undo()
    assert {one.what for one in filled.sync_tree(root).changes} == {"conflict"}


def test_links_and_odd_sessions_lead_nowhere(memory, root, tmp_path):
    memory.remember("a", kind="checkpoint", session="../../out", body="x")
    memory.remember("b", kind="checkpoint", session="CON", body="y")
    memory.remember("c", kind="checkpoint", body="z")
    memory.remember("Likes tea")
    (tmp_path / "outside.md").write_text("mine")
    root.mkdir()
    (root / "MEMORY.md").symlink_to(tmp_path / "outside.md")
    report = memory.export_tree(root, form="promemory")
    assert ("MEMORY.md", "refused") in whats(report)
    assert (tmp_path / "outside.md").read_text() == "mine"
    assert not (tmp_path.parent / "out").exists()
    names = {path.rpartition("/")[0].casefold() for path in files(root) if path.startswith("sessions/")}
    assert len(names) == 3
    assert "sessions/con" not in names


# ---- what people and programs do to files


@pytest.mark.parametrize("form", FORMS)
def test_a_mark_and_other_line_ends_stay(filled, root, form):  # MD-01
    filled.export_tree(root, form=form)
    file = root / FILE[form]
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert quiet(filled, root)
    filled.edit_note(1, body="One.\nTwo.")
    filled.sync_tree(root)
    data = file.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    assert data.count(b"\n") == data.count(b"\r\n") > 5
    assert quiet(filled, root)
    assert filled.inspect(1).note.body == "One.\nTwo."


def test_a_fence_that_is_not_closed_yet_hides_no_other_note(filled, root):
    filled.export_tree(root, form="promemory")
    text = (root / "MEMORY.md").read_text("utf-8")
    place = text.index("## Lessons")
    (root / "MEMORY.md").write_text(f"{text[:place]}Do:\n\n```sh\n## a comment\n\n{text[place:]}", "utf-8")
    report = filled.sync_tree(root)
    assert "archived" not in {one.what for one in report.changes}
    text = (root / "MEMORY.md").read_text("utf-8").replace("## a comment\n", "## a comment\nls\n```\n")
    (root / "MEMORY.md").write_text(text, "utf-8")
    filled.sync_tree(root)
    assert titles(filled) >= {"Likes tea", "Deploy with pnpm", "Never push"}


@pytest.mark.parametrize("form", FORMS)
def test_two_devices_merge_their_files_with_git(tmp_path, clock, form):
    one, two = tmp_path / "one", tmp_path / "two"
    with Memory.open(tmp_path / "1.db", clock=clock) as first, Memory.open(tmp_path / "2.db", clock=clock) as second:
        for number in range(6):
            first.remember(f"Known {number}", body="Line.", kind=("fact", "lesson")[number % 2], source="user")
        first.export_tree(one, form=form)
        first.sync_tree(one, trust=True)
        git(one, "init")
        git(one, "add", "-A")
        git(one, "commit", "-m", "1")
        git(tmp_path, "clone", str(one), str(two))
        second.sync_tree(two, form=form, trust=True)
        assert git(two, "status", "--porcelain") == ""
        first.edit_note(1, body="Other line.")
        first.sync_tree(one)
        git(one, "commit", "-am", "2")
        (far,) = (note.id for note in second.notes() if note.title == "Known 4")
        second.edit_note(far, body="Far line.")
        second.sync_tree(two)
        git(two, "commit", "-am", "3")
        git(two, "pull", "--no-rebase", "--no-edit", str(one), "main")
        second.sync_tree(two)
        bodies = {note.title: note.body for note in second.notes()}
        assert (bodies["Known 0"], bodies["Known 4"]) == ("Other line.", "Far line.")
        git(one, "pull", "--no-rebase", str(two), "main")
        first.sync_tree(one)
        assert {note.title: note.body for note in first.notes()} == bodies
        assert files(one) == files(two)
        assert quiet(first, one)
        assert quiet(second, two)


@pytest.mark.parametrize("form", FORMS)
def test_two_memories_on_one_file_end_up_the_same(tmp_path, clock, root, form):
    with Memory.open(tmp_path / "1.db", clock=clock) as one, Memory.open(tmp_path / "2.db", clock=clock) as two:
        one.remember("Likes tea", source="user")
        one.export_tree(root, form=form)
        two.sync_tree(root, form=form, trust=True)
        two.edit_note(1, body="Green.")
        two.remember("Hates milk")
        one.remember("Deploy", kind="lesson")
        for memory in (one, two, one, two):
            memory.sync_tree(root)
        assert titles(one) == titles(two) == {"Likes tea", "Hates milk", "Deploy"}
        one.forget(1)
        for memory in (one, two):
            memory.sync_tree(root)
        assert titles(two) == {"Hates milk", "Deploy"}
        assert quiet(one, root)
        assert quiet(two, root)


# ---- round trips


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "title": LINES,
                "body": st.lists(
                    st.one_of(
                        LINES,
                        st.sampled_from(
                            [
                                "## Rules",
                                "### x",
                                "# Checkpoint",
                                "```",
                                "~~~~",
                                "\\## y",
                                "\\\\# z",
                                "<!-- graphmem: abc -->",
                                "- a",
                                "```sh",
                                "  ``` ",
                                "#",
                                "\\```",
                            ]
                        ),
                    ),
                    max_size=8,
                ).flatmap(lambda lines: st.sampled_from(["\n", "\n\n", "\r\n"]).map(lambda end: end.join(lines))),
                "kind": st.sampled_from(["fact", "lesson", "rule", "preference", "decision", "pitfall", "checkpoint"]),
                "slot": st.one_of(st.just(""), LINES),
                "labels": st.lists(LINES, max_size=2),
                "source": st.sampled_from(["user", "agent"]),
            }
        ),
        min_size=15,
        max_size=15,
    ),
    st.sampled_from(FORMS),
)
def test_files_that_go_through_a_memory_keep_their_bytes(tmp_path_factory, told, form):
    folder = tmp_path_factory.mktemp("round")
    with Memory.open(":memory:", clock=FakeClock()) as first, Memory.open(":memory:", clock=FakeClock()) as second:
        for number, one in enumerate(told):
            # What a form does not show cannot tell two notes apart there.
            same = {"slot": "", "body": f"{one['body']}\n\n{number}"} if form == "promemory" else {}
            with contextlib.suppress(InvalidInput, SecretRefused):
                first.remember(**one | same, session="s1")
        first.export_tree(folder / "one", form=form)
        before = files(folder / "one")
        report = second.sync_tree(folder / "one", form=form, trust=True)
        assert [change for change in report.changes if change.what != "added"] == []
        assert files(folder / "one") == before
        second.export_tree(folder / "two", form=form)
        assert first.sync_tree(folder / "one").changes == second.sync_tree(folder / "two").changes == ()
        names = (
            ("kind", "body", "title") if form == "promemory" else ("kind", "body", "title", "slot", "labels", "pinned")
        )
        ours, theirs = (
            sorted(
                tuple(sections.one_line(note.title) if name == "title" and form == "promemory"
                      else sections.text_of_checkpoint(note.body) if name == "body" else getattr(note, name)
                      for name in names)
                for note in memory.notes(kinds=entries.KINDS if form == "ledger" else sections.KINDS, limit=99)
            )
            for memory in (first, second)
        )  # fmt: skip
        if form == "promemory":  # the title of a checkpoint is not in its file
            ours, theirs = ([one for one in side if one[0] != "checkpoint"] for side in (ours, theirs))
        assert ours == theirs


@pytest.mark.parametrize("form", FORMS)
def test_what_is_added_and_edited_before_it_has_its_name_is_no_conflict(filled, root, form, monkeypatch):
    """Who names it may die before that is kept."""
    filled.export_tree(root, form=form)
    file = root / FILE[form]
    if form == "ledger":
        change(file, '"entries": [', '"entries": [{"title": "Fresh", "kind": "fact"},')
    else:
        change(file, "# Memory\n", "# Memory\n\n## Decisions\n\n### Fresh\n")
    monkeypatch.setattr(trees, "settle", lambda *arguments: None)
    filled.sync_tree(root)
    monkeypatch.undo()
    change(file, "Fresh", "Fresher")
    assert {one.what for one in filled.sync_tree(root).changes} <= {"edited", "written"}
    assert "Fresher" in titles(filled)
    assert quiet(filled, root)


@pytest.mark.parametrize("form", FORMS)
def test_an_edit_by_hand_is_followed(filled, root, form):
    """C8.11 and B8.24, by watch."""
    filled.export_tree(root, form=form)
    told, stop = queue.Queue(), threading.Event()
    watching = threading.Thread(target=lambda: filled.watch_tree(root, told.put, stop=stop))
    watching.start()
    try:
        told.get(timeout=30)
        text = (root / FILE[form]).read_text("utf-8").replace("Likes tea", "Likes zebras")
        (root / ".beside").write_text(text, "utf-8")
        (root / ".beside").replace(root / FILE[form])
        assert "edited" in {one.what for one in told.get(timeout=30).changes}
        assert [hit.id for hit in filled.recall("zebras")] == [2]
    finally:
        stop.set()
        watching.join(30)
    assert not watching.is_alive()
