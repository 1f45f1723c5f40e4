"""What editors, sync programs, version control and strangers do to a tree."""

import os
import queue
import subprocess
import threading
import time
from pathlib import Path

import pytest
from test_tree import change, files, page, put, whats

from graphmem import GraphmemError, Memory
from graphmem.exchange import rooted


@pytest.fixture
def root(tmp_path):
    return tmp_path / "tree"


@pytest.fixture
def filled(memory, root):
    memory.remember("Likes tea", source="user")
    memory.remember("Deploy with pnpm", body="Never npm.", kind="lesson")
    memory.export_tree(root)
    return memory


def live(memory):
    return {note.title for note in memory.notes()}


# ---- odd files


def test_folders_that_are_named_like_files_stop_nothing(memory, root):
    for path in ("ROOT.md", "facts/likes-tea.md", "facts/index.md", ".gitattributes", "rules/index.md", "x.md/deep.md"):
        (root / path).mkdir(parents=True)
    put(root, "x.md/deep.md/a.md", page("title: In a folder"))
    memory.remember("Likes tea")
    memory.remember("Likes milk")
    report = memory.export_tree(root)
    assert dict(whats(report))["facts/likes-tea.md"] == "refused"
    assert (root / "facts/likes-milk.md").is_file()
    report = memory.sync_tree(root)
    assert ("x.md/deep.md/a.md", "added") in whats(report)
    (root / "facts/likes-tea.md").rmdir()
    memory.sync_tree(root)
    assert (root / "facts/likes-tea.md").is_file()


def test_a_list_that_became_a_folder_stops_nothing(filled, root):
    (root / "facts/index.md").unlink()
    (root / "facts/index.md").mkdir()
    filled.forget(1)
    filled.remember("Hates milk", kind="lesson")
    filled.sync_tree(root)
    assert (root / "lessons/hates-milk.md").exists()


def test_a_file_that_is_too_large_is_not_read(filled, root, monkeypatch):
    with (root / "facts/big.md").open("wb") as file:
        file.truncate(100 << 20)
    with (root / "facts/likes-tea.md").open("ab") as file:
        file.truncate(100 << 20)
    taken = []
    real = os.fstat

    def fstat(descriptor):
        status = real(descriptor)
        if status.st_size > rooted.LARGEST:
            taken.append(os.lseek(descriptor, 0, os.SEEK_CUR))
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    report = filled.sync_tree(root)
    assert whats(report) == [("facts/big.md", "refused"), ("facts/likes-tea.md", "refused")]
    assert live(filled) == {"Likes tea", "Deploy with pnpm"}


def test_a_file_that_may_not_be_read_keeps_its_note(filled, root, monkeypatch):
    real = os.open

    def guarded(path, flags, *rest, **options):
        if str(path) == "likes-tea.md":
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", guarded)
    os.utime(root / "facts/likes-tea.md")
    filled.remember("Hates milk")
    report = filled.sync_tree(root)
    assert ("facts/likes-tea.md", "refused") in whats(report)
    assert live(filled) == {"Likes tea", "Deploy with pnpm", "Hates milk"}
    assert (root / "facts/hates-milk.md").exists()


def test_a_folder_that_may_not_be_written_holds_up_no_other(filled, root, monkeypatch):
    real = os.open

    def guarded(path, flags, *rest, **options):
        if flags & os.O_CREAT and "facts" in str(Path(f"/proc/self/fd/{options['dir_fd']}").readlink()):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *rest, **options)

    filled.remember("Hates milk")
    filled.remember("Test first", kind="lesson")
    monkeypatch.setattr(os, "open", guarded)
    report = filled.sync_tree(root)
    assert ("facts/hates-milk.md", "refused") in whats(report)
    assert (root / "lessons/test-first.md").exists()
    monkeypatch.undo()
    filled.sync_tree(root)
    assert (root / "facts/hates-milk.md").exists()


def test_pipes_devices_and_sockets_are_not_waited_for(filled, root):
    os.mkfifo(root / "facts/pipe.md")
    (root / "facts/likes-tea.md").unlink()
    os.mkfifo(root / "facts/likes-tea.md")
    report = filled.sync_tree(root)
    assert dict(whats(report)) == {"facts/pipe.md": "refused", "facts/likes-tea.md": "refused"}
    assert "Likes tea" in live(filled)


def test_a_file_that_grows_while_it_is_read_is_read_again(filled, root, monkeypatch):
    real = rooted.stamp_of

    def growing(status):
        stamp = real(status)
        if status.st_size == size and len(grown) < 1:
            grown.append(1)
            with (root / "facts/likes-tea.md").open("a") as file:
                file.write("\nand more.\n")
        return stamp

    put(root, "facts/likes-tea.md", (root / "facts/likes-tea.md").read_bytes() + b"\nA first line")
    size, grown = (root / "facts/likes-tea.md").stat().st_size, []
    monkeypatch.setattr(rooted, "stamp_of", growing)
    filled.sync_tree(root)
    monkeypatch.undo()
    filled.sync_tree(root)
    assert filled.inspect(1).note.body == "A first line\nand more."


def test_names_that_one_system_takes_for_one_are_two_files(memory, root):
    for slot, title in enumerate(("Straße", "STRASSE", "ﬁle", "file", "é", "e\u0301 2", "İ", "i", "ſ", "S")):
        memory.remember(title, slot=f"s{slot}")
    memory.export_tree(root)
    names = [path for path in files(root) if path.startswith("facts/")]
    assert len({name.casefold() for name in names}) == len(names) == 11
    assert memory.sync_tree(root).changes == ()


def test_a_file_whose_name_is_spelled_in_another_form_is_the_same(memory, root):
    memory.remember("Crème brûlée")
    memory.export_tree(root)
    (path,) = (root / "facts").glob("cr*.md")
    import unicodedata

    path.rename(path.with_name(unicodedata.normalize("NFD", path.name)))
    memory.sync_tree(root)
    assert len(memory.notes()) == 1
    assert memory.sync_tree(root).changes == ()


# ---- links


@pytest.mark.parametrize("name", ["facts", "lessons/deploy-with-pnpm.md"])
def test_a_link_that_is_put_there_meanwhile_is_not_followed(filled, root, tmp_path, monkeypatch, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    put(outside, "likes-tea.md", page("title: Outside"))
    put(outside, "deploy-with-pnpm.md", page("title: Outside"))
    filled.edit_note(1, body="More.")
    filled.edit_note(2, body="More.")
    walk = rooted.Rooted.walk
    once = []

    def swapping(self, part):
        found = walk(self, part)
        if not once:
            once.append(1)
            (root / name).rename(tmp_path / "away")
            (root / name).symlink_to(outside / "deploy-with-pnpm.md" if name.endswith(".md") else outside)
        return found

    monkeypatch.setattr(rooted.Rooted, "walk", swapping)
    before = files(outside)
    filled.sync_tree(root)
    assert files(outside) == before
    assert live(filled) == {"Likes tea", "Deploy with pnpm"}


# ---- editors


def test_what_editors_leave_is_no_note(filled, root):
    text = (root / "facts/likes-tea.md").read_bytes()
    for name in (
        "likes-tea.md~", ".likes-tea.md.swp", ".likes-tea.md.un~", "4913", "#likes-tea.md#", ".#likes-tea.md.x",
        "likes-tea.md.tmp", "likes-tea.md___jb_tmp___", "likes-tea.md___jb_old___", "likes-tea.md.sb-1a2b-Xy",
        "likes-tea.md.1234.5678", ".goutputstream-ABC", "likes-tea.md.save", "likes-tea.md.kate-swp", "~likes-tea.md",
        "likes-tea.md.crswap", "likes-tea.bak.md", "likes-tea.tmp.md",
    ):  # fmt: skip
        put(root, f"facts/{name}", text.replace(b"id:", b"uid:"))
    filled.sync_tree(root)
    assert live(filled) == {"Likes tea", "Deploy with pnpm"}


def test_a_file_that_is_gone_for_a_moment_while_it_is_saved_comes_back_whole(filled, root):
    path = root / "facts/likes-tea.md"
    path.rename(root / "facts/likes-tea.md~")
    filled.sync_tree(root)
    path.write_bytes((root / "facts/likes-tea.md~").read_bytes() + b"\nMore.\n")
    filled.sync_tree(root)
    note = filled.inspect(1).note
    assert (note.status, note.body) == ("live", "More.")


def test_a_hundred_saves_a_second_end_in_the_last_one(filled, root):
    told, stop = queue.Queue(), threading.Event()
    watching = threading.Thread(target=lambda: filled.watch_tree(root, told.put, stop=stop))
    watching.start()
    path = root / "facts/likes-tea.md"
    text = path.read_text("utf-8")
    try:
        told.get(timeout=30)
        for turn in range(200):
            beside = root / "facts/.beside"
            beside.write_text(f"{text}\nTurn {turn}.\n", "utf-8")
            beside.replace(path)
            time.sleep(0.01)
        deadline = time.monotonic() + 30
        while filled.inspect(1).note.body != "Turn 199." and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        stop.set()
        watching.join(30)
    assert filled.inspect(1).note.body == "Turn 199."
    assert not watching.is_alive()
    assert path.read_text("utf-8") == f"{text}\nTurn 199.\n"


def test_watching_goes_on_where_a_sync_fails(filled, root, tmp_path):
    told, stop = queue.Queue(), threading.Event()
    failed = []

    def watch():
        try:
            filled.watch_tree(root, told.put, stop=stop)
        except GraphmemError as error:
            failed.append(error)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        told.get(timeout=30)
        root.rename(tmp_path / "away")
        time.sleep(0.5)
        (tmp_path / "away").rename(root)
        time.sleep(0.5)
        change(root, "facts/likes-tea.md", "Likes tea", "Likes milk")
        deadline = time.monotonic() + 15
        while filled.inspect(1).note.title != "Likes milk" and not failed and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        stop.set()
        watching.join(30)
    assert failed == []
    assert filled.inspect(1).note.title == "Likes milk"


# ---- clocks


def test_a_clock_that_stands_still_hides_no_change(filled, root):
    path = root / "facts/likes-tea.md"
    at = 1_000_000_000_000_000_000
    for word in ("milk", "wine", "soup"):
        data = path.read_bytes()
        path.write_bytes(data[: data.index(b"title: Likes ") + 13] + word.encode() + data[data.index(b"\nkind:") :])
        os.utime(path, ns=(at, at))
        filled.sync_tree(root)
        assert filled.inspect(1).note.title == f"Likes {word}"


@pytest.mark.parametrize("years", [-40, 40])
def test_files_of_another_time_are_followed(filled, root, years):
    path = root / "facts/likes-tea.md"
    at = time.time_ns() + years * 31_536_000_000_000_000
    os.utime(path, ns=(at, at))
    filled.sync_tree(root)
    change(root, "facts/likes-tea.md", "Likes tea", "Likes pie")
    os.utime(path, ns=(at, at))
    filled.sync_tree(root)
    assert filled.inspect(1).note.title == "Likes pie"


# ---- several memories, several trees


def test_two_memories_on_one_root_end_up_the_same(tmp_path, clock, root):
    with Memory.open(tmp_path / "1.db", clock=clock) as one, Memory.open(tmp_path / "2.db", clock=clock) as two:
        one.remember("Likes tea", source="user")
        one.export_tree(root)
        two.sync_tree(root, trust=True)
        two.edit_note(1, body="Green.")
        two.remember("Hates milk")
        one.remember("Deploy", kind="lesson")
        for memory in (one, two, one, two):
            memory.sync_tree(root)
        assert live(one) == live(two) == {"Likes tea", "Hates milk", "Deploy"}
        assert one.inspect(1).note.body == two.inspect(1).note.body == "Green."
        one.forget(1)
        for memory in (one, two, one):
            memory.sync_tree(root)
        assert live(one) == live(two) == {"Hates milk", "Deploy"}
        assert one.sync_tree(root).changes == two.sync_tree(root).changes == ()
        assert one.inspect().conflicts == two.inspect().conflicts == ()


@pytest.mark.parametrize("form", ["notes", "promemory", "ledger"])
def test_one_memory_with_two_roots_keeps_both(filled, root, tmp_path, form):
    other = tmp_path / "other"
    filled.export_tree(other, form=form)
    (path,) = {"notes": other.glob("facts/likes*"), "promemory": other.glob("*.md"), "ledger": other.glob("*.json")}[
        form
    ]
    path.write_text(path.read_text("utf-8").replace("Likes tea", "Likes milk"), "utf-8")
    filled.sync_tree(other)
    filled.sync_tree(root)
    assert "Likes milk" in (root / "facts/likes-tea.md").read_text("utf-8")
    # Both at once, otherwise: both stay.
    change(root, "facts/likes-tea.md", "Likes milk", "Likes wine")
    path.write_text(path.read_text("utf-8").replace("Likes milk", "Likes beer"), "utf-8")
    filled.sync_tree(root)
    report = filled.sync_tree(other)
    assert [change.what for change in report.changes if change.what == "conflict"] == ["conflict"]
    assert filled.inspect(1).note.title == "Likes wine"
    assert "Likes beer" in path.read_text("utf-8")


# ---- version control


def git(at, *arguments):
    told = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(told, cwd=at, check=True, capture_output=True, text=True).stdout


def test_an_older_commit_loses_no_newer_note_for_good(filled, root, tmp_path):
    filled.sync_tree(root, trust=True)
    (tmp_path / ".gitignore").write_text("*.db*\n")
    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "1")
    filled.remember("Hates milk")
    filled.edit_note(1, body="Green.")
    filled.sync_tree(root)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "2")
    git(tmp_path, "checkout", "HEAD~1")
    report = filled.sync_tree(root)
    assert dict(whats(report)) == {"facts/hates-milk.md": "archived", "facts/likes-tea.md": "edited"}
    assert filled.inspect(3).note.status == "archived"
    assert [act.act for act in filled.inspect(1).acts][-1] == "edit"
    git(tmp_path, "checkout", "main")
    filled.sync_tree(root)
    assert live(filled) == {"Likes tea", "Deploy with pnpm", "Hates milk"}
    assert filled.inspect(1).note.body == "Green."
    assert git(tmp_path, "status", "--porcelain") == ""


def test_a_note_that_was_never_committed_stays_when_branches_change(filled, root):
    filled.sync_tree(root, trust=True)
    git(root, "init")
    git(root, "add", "-A")
    git(root, "commit", "-m", "1")
    git(root, "checkout", "-b", "other")
    filled.remember("Hates milk")
    git(root, "checkout", "main")
    filled.sync_tree(root)
    assert "Hates milk" in live(filled)
    assert (root / "facts/hates-milk.md").exists()
