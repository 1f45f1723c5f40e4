"""The markdown tree of notes, both ways."""

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time

import pytest
from conftest import FakeClock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import sql

from graphmem import Conflict, InvalidInput, Memory, SecretRefused
from graphmem.core import pages
from graphmem.exchange import rooted, tree_lists
from graphmem.records import trees

KEY = "sk-" + "a1B2c3D4e5F6g7H8i9J0"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "tree"


def files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "/." not in path.as_posix()
    }


def whats(report):
    return [
        (change.path, change.what) for change in report.changes if not change.path.endswith(("index.md", "ROOT.md"))
    ]


def page(*lines, body="Text."):
    return "---\n" + "".join(f"{line}\n" for line in lines) + f"---\n\n{body}\n"


def put(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())


def change(root, path, old, new):
    text = (root / path).read_text("utf-8")
    assert old in text
    (root / path).write_text(text.replace(old, new), "utf-8", newline="")


@pytest.fixture
def filled(memory, root):
    memory.remember("Deploy with pnpm", body="Never npm.", kind="lesson", load_when="发布", labels=["redis", "no"])
    memory.remember("Likes tea", summary="Green tea.", source="user")
    memory.export_tree(root)
    return memory


# ---- out


def test_a_note_is_a_file_with_one_line_in_the_list_and_in_the_tables(filled, root):  # A6.1
    assert set(files(root)) == {
        *("ROOT.md", "facts/index.md", "facts/likes-tea.md", "lessons/deploy-with-pnpm.md", "lessons/index.md")
    }
    text = (root / "lessons/deploy-with-pnpm.md").read_text("utf-8")
    assert "title: Deploy with pnpm\nkind: lesson\nlabels:\n- 'no'\n- redis\nload_when:\n- 发布\n" in text
    assert text.endswith("---\n\nNever npm.\n")
    assert (root / "facts/index.md").read_text("utf-8").count("[Likes tea](likes-tea.md): Green tea.\n") == 1
    first = (root / "ROOT.md").read_text("utf-8")
    assert "| lessons | [index.md](lessons/index.md) |" in first
    assert "| 发布 | [Deploy with pnpm](lessons/deploy-with-pnpm.md) |" in first


def test_the_same_notes_make_the_same_bytes(filled, root, tmp_path):
    before = files(root)
    again = filled.export_tree(root)
    filled.export_tree(tmp_path / "other")

    assert again.changes == ()
    assert again.unchanged == 2
    assert files(root) == before == files(tmp_path / "other")


def test_a_dry_run_tells_the_same_and_changes_nothing(memory, root, path):
    memory.remember("Likes tea")
    dry = memory.export_tree(root, dry_run=True)
    assert not root.exists()
    wet = memory.export_tree(root)
    assert (dry.changes, dry.applied, wet.applied) == (wet.changes, False, True)

    change(root, "facts/likes-tea.md", "title: Likes tea", "title: Likes coffee")
    put(root, "rules/x.md", page("title: Never push"))
    before = files(root)
    tables = [sql(path, f"SELECT * FROM {table}") for table in ("notes", "tree_files", "provenance")]
    dry = memory.sync_tree(root, dry_run=True)
    assert files(root) == before
    assert [sql(path, f"SELECT * FROM {table}") for table in ("notes", "tree_files", "provenance")] == tables
    assert whats(dry) == whats(memory.sync_tree(root))


def test_recalls_change_no_file(filled, root):  # A6.3
    before = {path: os.stat(root / path).st_mtime_ns for path in files(root)}
    for _ in range(10):
        assert filled.recall("pnpm")
    filled.remember("Likes tea")  # seen once more
    assert filled.sync_tree(root).changes == ()
    assert {path: os.stat(root / path).st_mtime_ns for path in files(root)} == before
    assert filled.inspect(1).uses == 10


def test_titles_that_would_share_a_file_have_two(memory, root):  # A6.15
    for title in ("部署脚本必须使用固定版本", "部署脚本必须使用最新镜像", "Index", "n.conflict"):
        memory.remember(title)
    memory.remember("Same title", slot="a")
    memory.remember("Same title", slot="b")
    report = memory.export_tree(root)

    assert len({path for path in files(root) if path.startswith("facts/")}) == 7
    assert not any(change.what == "refused" for change in report.changes)
    assert memory.sync_tree(root).changes == ()


def test_two_scopes_have_two_trees(memory, root, tmp_path):
    memory.remember("Of the user")
    memory.remember("Of work", scope="work")
    memory.export_tree(root)
    memory.export_tree(tmp_path / "work", scope="work")

    assert "facts/of-work.md" not in files(root)
    assert "facts/of-work.md" in files(tmp_path / "work")
    assert memory.sync_tree(tmp_path / "work").scope == "work"
    with pytest.raises(Conflict, match="holds the notes of scope work"):
        memory.export_tree(tmp_path / "work", scope="user")


# ---- in


def test_an_edit_by_hand_is_taken_over_and_the_lists_follow(filled, root):  # A6.2
    change(root, "ROOT.md", "## Goals\n", "## Goals\r\n\r\nBe kind.  \r\n")
    change(root, "ROOT.md", "## Folders", "## Folders\n\nmine")
    change(root, "facts/index.md", "- [", "- mine\n- [")
    change(root, "facts/likes-tea.md", "summary: Green tea.", "summary: Black tea.")
    human = (root / "ROOT.md").read_bytes().partition(b"<!-- graphmem")[0]
    report = filled.sync_tree(root)

    assert whats(report) == [("facts/likes-tea.md", "edited")]
    note = filled.inspect(2)
    assert note.note.summary == "Black tea."
    assert (note.acts[-1].act, note.acts[-1].actor, note.acts[-1].place) == ("edit", "user", str(root))
    assert ": Black tea." in (root / "facts/index.md").read_text("utf-8")
    first = (root / "ROOT.md").read_bytes()
    assert first.startswith(human)
    assert b"mine" not in first
    assert b"mine" not in (root / "facts/index.md").read_bytes()
    assert filled.sync_tree(root).changes == ()


def test_what_people_wrote_stays_where_the_marks_were_taken_away(filled, root):
    for text in (
        "Mine.\n",
        "Mine.",
        "",
        "# A\n\n" + (root / "ROOT.md").read_text("utf-8").partition("<!-- graphmem: end")[0],
    ):
        put(root, "ROOT.md", text + "\nMore of mine.\n")
        filled.sync_tree(root)
        now = (root / "ROOT.md").read_text("utf-8")
        assert now.startswith(text.partition("<!--")[0])
        assert "More of mine." in now
        assert now.count("## Folders") == 1


def test_a_new_file_is_a_note_and_keeps_its_bytes(filled, root):  # MD-01, MD-03
    text = b"\xef\xbb\xbf---\r\ntitle: no\r\ncountry: no\r\ntags: [on, 0123]\r\nkind:\tfact\r\n---\r\nOne\r\ntwo\r\n"
    put(root, "facts/odd name.md", text)
    put(root, "lessons/bare.md", "# A heading\n\nText: with a colon.")
    report = filled.sync_tree(root)

    assert ("facts/odd name.md", "added") in whats(report)
    assert any("country" in remark for remark in report.remarks)
    odd, bare = filled.inspect(3).note, filled.inspect(4).note
    assert (odd.title, odd.body, odd.labels, odd.source) == ("no", "One\ntwo", ("0123", "on"), "user")
    assert (bare.title, bare.kind) == ("A heading", "lesson")
    assert (root / "facts/odd name.md").read_bytes() == text
    assert "](odd%20name.md)" in (root / "facts/index.md").read_text("utf-8")

    filled.edit_note(3, title="yes")
    filled.sync_tree(root)
    now = (root / "facts/odd name.md").read_bytes()
    assert now.startswith(b"\xef\xbb\xbf---\r\ntitle: 'yes'\r\ncountry: no\r\ntags: [on, 0123]\r\nkind:\tfact\r\n")
    assert now.endswith(b"---\r\nOne\r\ntwo\r\n")
    assert filled.sync_tree(root).changes == ()


def test_a_file_that_is_gone_archives_its_note_and_one_that_comes_back_restores_it(filled, root):
    kept = (root / "facts/likes-tea.md").read_bytes()
    (root / "facts/likes-tea.md").unlink()
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "archived")]
    assert filled.inspect(2).note.status == "archived"
    assert "facts/index.md" not in files(root)

    put(root, "facts/likes-tea.md", kept)
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "restored")]
    assert filled.inspect(2).note.status == "live"
    assert filled.sync_tree(root).changes == ()


def test_what_is_forgotten_loses_its_file_and_comes_back_with_it(filled, root):
    filled.forget(2)
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "removed")]
    assert "Likes tea" not in (root / "ROOT.md").read_text("utf-8")
    filled.restore_note(2)
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "written")]


def test_what_is_purged_does_not_come_back_from_a_file(filled, root, path):
    kept = (root / "facts/likes-tea.md").read_bytes()
    filled.forget(2, hard=True)
    assert "likes-tea" not in str(sql(path, "SELECT * FROM tree_files"))
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "removed")]
    put(root, "facts/likes-tea.md", kept)
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "refused")]
    assert [note.title for note in filled.notes()] == ["Deploy with pnpm"]


@pytest.mark.parametrize("place", ["facts/tea.md", "deep/er/tea.md"])
@pytest.mark.parametrize("with_id", [True, False])
def test_a_file_that_is_moved_is_the_same_note(filled, root, place, with_id):
    name = "facts/likes-tea.md"
    if not with_id:
        name = "facts/mine.md"
        put(root, name, "Mine.")
        filled.sync_tree(root)
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / name).rename(root / place)
    count = len(filled.notes())
    assert whats(filled.sync_tree(root)) == [(place, "moved")]
    assert len(filled.notes()) == count
    filled.edit_note(3 - with_id, body="More.")
    assert whats(filled.sync_tree(root)) == [(place, "written")]


def test_files_that_change_places_stay_what_they_are(filled, root):
    one, two = root / "facts/likes-tea.md", root / "lessons/deploy-with-pnpm.md"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    assert {what for _, what in whats(filled.sync_tree(root))} == {"moved"}
    assert [filled.inspect(number).note.title for number in (1, 2)] == ["Deploy with pnpm", "Likes tea"]
    assert filled.sync_tree(root).changes == ()


# ---- both


def clash(memory, root):
    change(root, "facts/likes-tea.md", "title: Likes tea", "title: Likes coffee")
    memory.edit_note(2, title="Likes milk")
    return memory.sync_tree(root)


def test_where_both_changed_both_stay_and_are_listed(filled, root):
    report = clash(filled, root)

    assert whats(report) == [("facts/likes-tea.md", "conflict")]
    assert "title: Likes coffee" in (root / "facts/likes-tea.md").read_text("utf-8")
    assert "title: Likes milk" in (root / "facts/likes-tea.conflict.md").read_text("utf-8")
    assert filled.inspect(2).note.title == "Likes milk"
    (conflict,) = filled.inspect().conflicts
    assert (conflict.root, conflict.path, conflict.note_id) == (str(root), "facts/likes-tea.md", 2)
    filled.edit_note(2, title="Likes water")
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "conflict")]
    assert "title: Likes water" in (root / "facts/likes-tea.conflict.md").read_text("utf-8")


def test_a_conflict_ends_for_the_file_where_the_copy_goes(filled, root):
    clash(filled, root)
    (root / "facts/likes-tea.conflict.md").unlink()
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "edited")]
    assert filled.inspect(2).note.title == "Likes coffee"
    assert filled.inspect().conflicts == ()


def test_a_conflict_ends_for_the_note_where_the_copy_is_moved_over_the_file(filled, root):
    clash(filled, root)
    (root / "facts/likes-tea.conflict.md").replace(root / "facts/likes-tea.md")
    filled.sync_tree(root)
    assert filled.inspect(2).note.title == "Likes milk"
    assert filled.inspect().conflicts == ()
    assert filled.sync_tree(root).changes == ()


@pytest.mark.parametrize("verb", ["sync_tree", "export_tree"])
@pytest.mark.parametrize("is_forgotten", [True, False])
def test_a_conflict_ends_where_the_file_goes(filled, root, verb, is_forgotten):
    clash(filled, root)
    (root / "facts/likes-tea.md").unlink()
    if is_forgotten:
        filled.forget(2)
    getattr(filled, verb)(root)
    assert not list(root.rglob("*.conflict.md"))
    assert ("facts/likes-tea.md" in files(root)) is not is_forgotten
    assert filled.inspect().conflicts == ()
    assert filled.sync_tree(root).changes == ()


def test_the_same_change_on_both_sides_is_no_conflict(filled, root):
    change(root, "facts/likes-tea.md", "title: Likes tea", "title: Likes milk")
    filled.edit_note(2, title="Likes milk")
    filled.sync_tree(root)
    assert filled.inspect().conflicts == ()
    assert filled.sync_tree(root).changes == ()


def test_a_changed_file_of_an_archived_note_stays(filled, root):
    change(root, "facts/likes-tea.md", "title: Likes tea", "title: Likes coffee")
    filled.forget(2)
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "conflict")]
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "conflict")]
    assert "Likes coffee" in (root / "facts/likes-tea.md").read_text("utf-8")
    (root / "facts/likes-tea.md").unlink()
    filled.sync_tree(root)
    assert filled.inspect().conflicts == ()


def test_an_export_leaves_what_was_changed_by_hand(filled, root):
    change(root, "facts/likes-tea.md", "title: Likes tea", "title: Likes coffee")
    put(root, "facts/new.md", "New.")
    filled.edit_note(2, title="Likes milk")
    (root / "lessons/deploy-with-pnpm.md").unlink()
    report = filled.export_tree(root)
    assert whats(report) == [("facts/likes-tea.md", "refused"), ("lessons/deploy-with-pnpm.md", "written")]
    assert "title: Likes coffee" in (root / "facts/likes-tea.md").read_text("utf-8")
    assert len(filled.notes()) == 2


# ---- what is refused


def test_a_secret_is_refused_by_name_and_the_rest_goes_on(filled, root):
    put(root, "facts/secret.md", page("title: The key", body=f"It is {KEY}"))
    put(root, f"facts/{KEY}.md", page("title: Another"))
    put(root, "facts/good.md", page("title: Good"))
    change(root, "facts/likes-tea.md", "Green tea.", f"key {KEY}")
    report = filled.sync_tree(root)

    by_path = dict(whats(report))
    assert by_path["facts/secret.md"] == by_path["facts/likes-tea.md"] == "refused"
    assert by_path["facts/good.md"] == "added"
    assert KEY[:8] not in repr(report)
    assert len(filled.notes()) == 3
    assert KEY in (root / "facts/likes-tea.md").read_text("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: x\n", "---\n- a\n---\n", '---\ntitle: "x\n---\n', "---\ntitle: [a]\n---\n", "---\nkind: x\n---\n",
        "---\npinned: perhaps\n---\n", b"\xff\xfe", "---\nlabels: {a: b}\n---\n", "---\nx: " + "[" * 5000 + "\n---\n",
        "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n", "---\nstatus: archived\n---\n", "---\ncreated: soon\n---\n",
        "---\nx: !!python/object/apply:os.system [ls]\ntitle: &a [*a]\n---\n", "",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_and_stays(filled, root, text):
    put(root, "facts/- -.md", text)
    before = files(root)["facts/- -.md"]
    assert whats(filled.sync_tree(root)) == [("facts/- -.md", "refused")]
    assert files(root)["facts/- -.md"] == before
    put(root, "facts/likes-tea.md", text or "---\n")
    filled.sync_tree(root)
    assert (filled.inspect(2).note.status, filled.inspect(2).note.title) == ("live", "Likes tea")


COPIES = (
    "likes-tea.sync-conflict-20260301-101010-ABCDEFG.md", "likes-tea (Ann's conflicted copy 2026-03-01).md",
    "likes-tea 2.md", "likes-tea.md.orig", "~$likes-tea.md", "likes-tea.md~",
)  # fmt: skip


def test_copies_of_sync_programs_are_told_of_and_not_read(filled, root):  # MD-06
    for name in COPIES:
        put(root, f"facts/{name}", (root / "facts/likes-tea.md").read_bytes())
    report = filled.sync_tree(root)
    assert whats(report) == sorted((f"facts/{name}", "copy") for name in COPIES)
    assert len(filled.notes()) == 2


def test_nothing_leads_out_of_the_root(filled, root, tmp_path):  # SCP-07
    outside = tmp_path / "outside"
    outside.mkdir()
    put(outside, "x.md", page("title: Outside"))
    (root / "linked").symlink_to(outside)
    (root / "facts/linked.md").symlink_to(outside / "x.md")
    os.mkfifo(root / "facts/pipe.md")
    report = filled.sync_tree(root)
    assert len(filled.notes()) == 2
    assert sum("is a link" in remark for remark in report.remarks) == 2
    assert whats(report) == [("facts/pipe.md", "refused")]

    (root / "decisions").symlink_to(outside)
    filled.remember("Away", kind="decision")
    assert ("decisions/away.md", "refused") in whats(filled.sync_tree(root))
    assert list(outside.iterdir()) == [outside / "x.md"]


def test_a_root_that_is_a_link_is_refused_and_one_below_a_link_is_not(memory, tmp_path):  # SCP-07
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for name in ("link", "file", "a\0b", " "):
        with pytest.raises(InvalidInput, match="root"):
            memory.export_tree(tmp_path / name if name.strip() else name)
    memory.remember("Likes tea")
    memory.export_tree(tmp_path / "link" / "tree")
    assert (tmp_path / "real/tree/facts/likes-tea.md").exists()


def test_all_files_gone_at_once_is_no_wish(filled, root):
    for path in files(root):
        (root / path).unlink()
    with pytest.raises(Conflict, match="gone at once"):
        filled.sync_tree(root)
    filled.export_tree(root)
    assert len(files(root)) == 5


# ---- what binds


def test_a_person_makes_and_approves_rules_in_files(memory, root):
    memory.remember("Never push", kind="rule")
    memory.export_tree(root)
    change(root, "rules/never-push.md", "status: proposed", "status: live")
    put(root, "rules/mine.md", page("title: Never deploy on friday", "pinned: yes"))
    put(root, "rules/theirs.md", page("title: Never sleep", "source: agent"))
    report = memory.sync_tree(root)
    assert ("rules/never-push.md", "approved") in whats(report)
    assert {(note.title, note.status) for note in memory.notes(statuses=["live", "proposed"])} == {
        ("Never push", "live"), ("Never deploy on friday", "live"), ("Never sleep", "proposed")}  # fmt: skip


# ---- devices


def test_two_devices_merge_their_trees_with_git(tmp_path, clock):
    def git(at, *arguments):
        told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *arguments]
        subprocess.run(told, cwd=at, check=True, capture_output=True)

    one, two = tmp_path / "one", tmp_path / "two"
    first, second = Memory.open(tmp_path / "1.db", clock=clock), Memory.open(tmp_path / "2.db", clock=clock)
    with first, second:
        first.remember("Likes tea", load_when="tea", source="user")
        first.export_tree(one)
        first.sync_tree(one, trust=True)  # as it lies in a git working tree from now on
        git(one, "init")
        git(one, "add", "-A")
        git(one, "commit", "-m", "1")
        git(tmp_path, "clone", str(one), str(two))
        assert [change.what for change in second.sync_tree(two, trust=True).changes] == ["added"]
        assert files(one) == files(two)
        for memory, root, title in ((first, one, "Adores milk"), (second, two, "Zaps flies")):
            memory.remember(title, load_when=title.split()[0])
            memory.edit_note(1, **({"summary": "Green."} if root == one else {"body": "A lot."}))
            memory.sync_tree(root)
            git(root, "add", "-A")
            git(root, "commit", "-m", title)
        git(two, "pull", "--no-rebase", "--no-edit", str(one), "main")
        second.sync_tree(two)
        assert {note.title for note in second.notes()} == {"Likes tea", "Adores milk", "Zaps flies"}
        assert (second.inspect(1).note.summary, second.inspect(1).note.body) == ("Green.", "A lot.")
        git(two, "add", "-A")
        git(two, "commit", "-m", "lists")
        git(one, "pull", "--no-rebase", str(two), "main")
        first.sync_tree(one)
        assert files(one) == files(two)
        assert first.inspect().conflicts == second.inspect().conflicts == ()


# ---- round trips

SCRIPTS = (
    "abcXYZ 019", "äöüßéñ", "部署用清单回滚", "はかなカナ", "한국어근평",
    "кириллица", "ελληνικά", "עברית", "العربية", "हिन्दीक",
)  # fmt: skip
LINES = st.one_of(
    *(st.text(letters + " -.,:#'\"|[]()<>*_`\\/!?&%@{}~=", min_size=1, max_size=40) for letters in SCRIPTS),
    st.sampled_from(
        ["no", "0123", "12:30", "1e3", "2026-03-01", "---", "# A", "a\tb", "~", "- x", "\u2028", "😀", "con"]
    ),
)
TOLD = st.fixed_dictionaries(
    {
        "title": LINES,
        "body": st.lists(LINES, max_size=4).flatmap(
            lambda lines: st.sampled_from(["\n", "\n\n", "\r\n"]).map(lambda end: end.join(lines))
        ),
        "kind": st.sampled_from(["fact", "lesson", "rule", "preference", "decision", "pitfall"]),
        "slot": st.one_of(st.just(""), LINES),
        "labels": st.lists(LINES, max_size=3),
        "load_when": st.lists(LINES, max_size=2),
        "summary": st.one_of(st.just(""), LINES),
        "highlight": st.one_of(st.just(""), LINES),
        "pinned": st.booleans(),
        "reason": st.one_of(st.just(""), LINES),
        "source": st.sampled_from(["user", "agent", "import:x"]),
    }
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(TOLD, min_size=40, max_size=40))
def test_a_tree_that_goes_through_a_memory_keeps_its_bytes(tmp_path_factory, told):
    """25 times 40 notes, from tree to memory to tree."""
    folder = tmp_path_factory.mktemp("round")
    with Memory.open(":memory:", clock=FakeClock()) as first, Memory.open(":memory:", clock=FakeClock()) as second:
        for one in told:
            with contextlib.suppress(InvalidInput, SecretRefused):
                first.remember(**one)
        first.export_tree(folder / "one")
        report = second.sync_tree(folder / "one", trust=True)
        assert [change for change in report.changes if change.what not in ("added", "written")] == []
        assert files(folder / "one") == (before := files(folder / "one"))
        second.export_tree(folder / "two")
        assert files(folder / "two") == before
        assert first.sync_tree(folder / "one").changes == second.sync_tree(folder / "two").changes == ()
        names = (
            "kind",
            "title",
            "body",
            "slot",
            "labels",
            "load_when",
            "summary",
            "highlight",
            "status",
            "pinned",
            "reason",
        )
        ours, theirs = (
            sorted(
                tuple(getattr(note, name) for name in names)
                for note in memory.notes(statuses=["live", "proposed"], limit=99)
            )
            for memory in (first, second)
        )
        assert ours == theirs


# ---- what an edit costs, and what a sync that was broken off leaves


@pytest.fixture
def made(filled, root, monkeypatch):
    """The lists that are made from now on."""
    old = time.time() - 100
    for path in files(root):
        os.utime(root / path, (old, old))
    monkeypatch.setattr(rooted, "is_settled", lambda stamp: True)
    filled.sync_tree(root)
    folders = []
    for name in ("index_page", "root_page"):
        monkeypatch.setattr(pages, name, _noting(folders, getattr(pages, name)))
    return folders


def _noting(folders, make):
    def noted(first, *others):
        folders.append(first if make.__name__ == "index_page" else "ROOT")
        return make(first, *others)

    return noted


def test_an_edit_that_no_list_shows_makes_no_list(made, filled, root):
    change(root, "lessons/deploy-with-pnpm.md", "Never npm.", "Never, ever npm.")
    assert whats(filled.sync_tree(root)) == [("lessons/deploy-with-pnpm.md", "edited")]
    assert made == []


def test_an_edit_makes_the_list_of_its_folder_and_the_tables(made, filled, root):
    change(root, "lessons/deploy-with-pnpm.md", "Deploy with pnpm", "Deploy with yarn")
    filled.sync_tree(root)
    assert made == ["lessons", "ROOT"]
    assert "Deploy with yarn" in (root / "lessons/index.md").read_text("utf-8")
    filled.sync_tree(root)
    assert made == ["lessons", "ROOT"]


def test_a_move_makes_the_lists_of_both_folders(made, filled, root):
    (root / "lessons/deploy-with-pnpm.md").rename(root / "facts/deploy.md")
    (root / "facts/likes-tea.md").rename(root / "facts/tea.md")
    filled.sync_tree(root)
    assert sorted(made) == ["ROOT", "facts"]
    assert not (root / "lessons/index.md").exists()
    assert "| facts |" in (root / "ROOT.md").read_text("utf-8")
    assert "lessons" not in (root / "ROOT.md").read_text("utf-8")


def test_an_edit_reads_what_is_kept_of_all_files_once(made, filled, root, monkeypatch):
    change(root, "facts/likes-tea.md", "Green tea.", "Black tea.")
    asked, rows = [], trees.rows
    monkeypatch.setattr(trees, "rows", lambda tx, root: asked.append(root) or rows(tx, root))
    assert whats(filled.sync_tree(root)) == [("facts/likes-tea.md", "edited")]
    assert len(asked) == 1


@pytest.mark.parametrize("what", ["taken", "given"])
def test_lists_that_a_sync_did_not_come_to_are_made_by_the_next(made, filled, root, monkeypatch, what):
    if what == "taken":
        change(root, "facts/likes-tea.md", "Green tea.", "Black tea.")
    else:
        filled.edit_note(2, summary="Black tea.")
    with monkeypatch.context() as patched:
        patched.setattr(tree_lists, "compile_lists", None)
        with pytest.raises(TypeError):
            filled.sync_tree(root)
    assert "Green tea." in (root / "facts/index.md").read_text("utf-8")
    filled.sync_tree(root)
    assert "Black tea." in (root / "facts/index.md").read_text("utf-8")


def test_lists_show_what_notes_say_that_are_in_conflict(made, filled, root):
    change(root, "facts/likes-tea.md", "title: Likes tea", "title: Likes coffee")
    for title in ("Likes milk", "Likes water"):
        filled.edit_note(2, title=title)
        filled.sync_tree(root)
        assert f"[{title}](likes-tea.md)" in (root / "facts/index.md").read_text("utf-8")


def test_lists_show_a_file_that_came_from_another_tree_of_the_scope(made, filled, root, tmp_path):
    other = tmp_path / "other"
    filled.remember("Never here", kind="pitfall")
    filled.sync_tree(other)
    (root / "lessons/deploy-with-pnpm.md").unlink()
    filled.sync_tree(root)
    put(other, "pitfalls/deploy.md", (other / "lessons/deploy-with-pnpm.md").read_bytes())
    (other / "lessons/deploy-with-pnpm.md").unlink()
    put(root, "pitfalls/tea.md", (root / "facts/likes-tea.md").read_bytes())
    (root / "facts/likes-tea.md").unlink()
    for tree in (other, root):
        filled.sync_tree(tree)
        listed = (tree / "pitfalls/index.md").read_text("utf-8")
        kept = sorted(path.name for path in (tree / "pitfalls").iterdir() if path.name != "index.md")
        assert [name for name in kept if f"]({name})" not in listed] == []


def test_lists_do_not_show_a_note_that_was_purged_and_whose_file_was_removed(made, filled, root):
    filled.forget(2, hard=True)
    (root / "facts/likes-tea.md").unlink()
    told = [(one.path, one.what) for one in filled.sync_tree(root).changes]
    assert told == [("ROOT.md", "written"), ("facts/index.md", "removed")]
    assert not (root / "facts/index.md").exists()
    assert "facts" not in (root / "ROOT.md").read_text("utf-8")


# ---- watch


def test_a_file_that_changes_is_followed(filled, root):
    told, stop = queue.Queue(), threading.Event()
    watching = threading.Thread(target=lambda: filled.watch_tree(root, told.put, stop=stop))
    watching.start()
    try:
        assert told.get(timeout=30).changes == ()
        change(root, "facts/likes-tea.md", "title: Likes tea", "title: Likes coffee")
        while whats(report := told.get(timeout=30)) != [("facts/likes-tea.md", "edited")]:
            # It may be met while it is written.
            assert whats(report) == [("facts/likes-tea.md", "refused")]
    finally:
        stop.set()
        watching.join(30)
    assert not watching.is_alive()
    assert filled.inspect(2).note.title == "Likes coffee"


def test_watching_needs_its_extra(filled, root, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(InvalidInput, match=r"pip install 'graphmem\[tree\]'"):
        filled.watch_tree(root)


def test_an_unchanged_tree_is_told_by_two_reads(filled, root, monkeypatch):
    old = time.time() - 100
    for path in files(root):
        os.utime(root / path, (old, old))
    monkeypatch.setattr(rooted, "is_settled", lambda stamp: True)
    filled.sync_tree(root)
    monkeypatch.setattr(rooted.Rooted, "read", None)
    monkeypatch.setattr(trees, "rows", None)
    asked = []
    filled._store._writer.set_trace_callback(asked.append)
    report = filled.sync_tree(root)
    filled._store._writer.set_trace_callback(None)
    assert (report.changes, report.unchanged, asked) == ((), 2, [])
