"""Which project a folder is: paths, git repositories, remotes, moves."""

import hashlib
import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import dump, sql

from graphmem import Config, InvalidInput, Memory, Triple
from graphmem.projects import canonical_path, is_one_folder, project_id, read_signs, remote_form

GIT = shutil.which("git")
APART = Config(project_identity="folder")
REMOTE = "https://example.org/ann/app.git"


def git(folder, *arguments):
    command = [GIT, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def plain_repository(folder, url=""):
    """A repository of hand-made files, as git would make them."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    remote = f'[remote "origin"]\n\turl = {url}\n' if url else ""
    (folder / ".git" / "config").write_text(f"[core]\n\tbare = false\n{remote}")
    return folder


def linked_worktree(folder, repository):
    own = repository / ".git" / "worktrees" / folder.name
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/other\n")
    (own / "commondir").write_text("../..\n")
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {own}\n")
    return folder


@pytest.fixture
def project(path, clock):
    """Return the project that a folder is, as the one memory of these tests knows it."""

    def found(folder, **config):
        with Memory.open(path, clock=clock, project=folder, config=Config(**config)) as memory:
            return memory.project

    return found


# ---- paths


def test_ids_of_paths_are_those_that_are_written_down():
    assert project_id("/a/b") == "662b7b62a798"
    assert {project_id(path) for path in ("/a/b/", "/a//b", "/a/./b", "//a/b")} == {"662b7b62a798"}
    assert len({project_id(path) for path in ("D:\\X", "D:/X", "d:/X", "d:\\x\\")}) == 1
    assert project_id("/a/B") != project_id("/a/b")
    assert project_id("/a\\b") != project_id("/a/b")


@given(st.text().map(lambda text: "/" + text))
def test_a_canonical_path_is_a_fixed_point(path):
    assert canonical_path(canonical_path(path)) == canonical_path(path)


def test_names_without_ascii_stay_apart(tmp_path, project):
    """SCP-01."""
    folders = [tmp_path / name for name in ("项目甲", "项目乙", "근평", "---")]
    for folder in folders:
        folder.mkdir()

    found = [project(folder) for folder in folders]

    assert len({one.key for one in found}) == 4
    assert [one.label for one in found] == ["项目甲", "项目乙", "근평", "---"]
    assert all(one.key.removeprefix("project:") for one in found)


def test_every_spelling_of_a_folder_is_one_project(tmp_path, project, monkeypatch):
    folder = tmp_path / "app"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)

    spellings = [folder, f"{folder}/", f"{tmp_path}//app", f"{tmp_path}/./app", tmp_path / "link", "app"]
    found = [project(spelling) for spelling in spellings]

    assert {one.key for one in found} == {f"project:{project_id(str(folder))}"}
    assert all(one.remarks == () for one in found)
    assert {("path", str(folder)), ("path", str(tmp_path / "link"))} <= set(found[-1].aliases)


def test_ids_that_other_memories_gave_lead_to_the_project(tmp_path, path, project):
    folder = tmp_path / "app"
    folder.mkdir()
    key = project(f"{folder}/").key

    def digits(text):
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    known = sql(path, "SELECT scheme, value FROM scope_aliases WHERE scope = ?", key)
    assert ("promem", digits(f"{folder}/")) in known
    assert ("promem", digits(str(folder))) in known
    assert ("dsh", digits(str(folder))) in known


def test_folders_that_differ_in_letter_case_are_one_only_where_the_file_system_says_so(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "App").symlink_to(tmp_path / "app")
    (tmp_path / "APP").mkdir()
    small, linked, large = (str(tmp_path / name) for name in ("app", "App", "APP"))

    assert is_one_folder(small, linked)
    assert not is_one_folder(small, large)
    assert not is_one_folder(small, str(tmp_path / "aPP"))


def test_a_name_that_is_no_text_is_a_project_too(tmp_path, project):
    folders = [tmp_path / name for name in ("a\udcff", "a\udcfe")]
    for folder in folders:
        folder.mkdir()

    assert len({project(folder).key for folder in folders}) == 2
    assert len({project(folder).key for folder in folders}) == 2


def test_folders_of_one_name_are_two_projects(tmp_path, project):
    """SCP-03."""
    for name in ("a", "b"):
        (tmp_path / name / "app").mkdir(parents=True)

    one, other = (project(tmp_path / name / "app") for name in ("a", "b"))

    assert one.key != other.key
    assert one.label == other.label == "app"


@pytest.mark.parametrize("wrong", ["", " ", "missing", "file", "a\0b", 3, b"x"])
def test_what_is_no_folder_is_refused_and_makes_nothing(tmp_path, path, wrong, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidInput) as refused:
        Memory.open(path, project=wrong)

    assert refused.value.argument == "project"
    assert not path.exists()


def test_identity_is_one_of_two():
    with pytest.raises(InvalidInput, match="project_identity"):
        Config(project_identity="name")


# ---- repositories


def test_a_folder_inside_a_working_tree_is_its_project(tmp_path, project):
    app = plain_repository(tmp_path / "app")
    inside = app / "src" / "deep"
    inside.mkdir(parents=True)

    assert project(inside).key == project(app).key
    assert project(app / ".git" / "refs").key == project(app).key
    assert project(app).place == str(app)


def test_a_folder_that_becomes_a_repository_stays_the_project(tmp_path, project):
    folder = tmp_path / "app"
    folder.mkdir()
    before = project(folder).key

    plain_repository(folder, REMOTE)

    assert project(folder).key == before


def test_worktrees_are_one_project_with_their_name_as_a_tag(tmp_path, path, project):
    app = plain_repository(tmp_path / "app")
    tree = linked_worktree(tmp_path / "tree", app)

    linked, main = project(tree), project(app)

    assert linked.key == main.key == f"project:{project_id(str(app))}"
    assert (linked.worktree, main.worktree) == ("tree", "")
    assert linked.place == str(app)
    assert linked.remarks == ()


def test_worktrees_and_clones_can_be_kept_apart(tmp_path, project):
    app = plain_repository(tmp_path / "app", REMOTE)
    places = [app, linked_worktree(tmp_path / "tree", app), plain_repository(tmp_path / "clone", REMOTE)]
    shared = {project(place).key for place in places}

    apart = [project(place, project_identity="folder").key for place in places]

    assert len(shared) == 1
    assert len(set(apart)) == 3
    assert apart[0] in shared
    assert [project(place, project_identity="folder").key for place in places] == apart


@pytest.mark.skipif(GIT is None, reason="needs git")
def test_what_git_makes_is_read_as_git_means_it(tmp_path, path, clock):
    """SCP-04."""
    library, app, trees = tmp_path / "library", tmp_path / "app", [tmp_path / "one", tmp_path / "two"]
    for folder in (library, app):
        folder.mkdir()
        git(folder, "init", "-q")
        git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    git(app, "submodule", "add", "-q", str(library), "lib")
    git(app, "commit", "-q", "-am", "lib")
    for tree in trees:
        git(app, "worktree", "add", "-q", str(tree))
    git(tmp_path, "clone", "-q", "--bare", str(app), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "of-bare"))

    def opened(folder, **options):
        return Memory.open(path, clock=clock, project=folder, **options)

    files = {each: each.stat().st_mtime_ns for each in trees[0].rglob("*")}
    with opened(trees[0]) as memory:
        key = memory.project.key
        assert memory.project.worktree == "one"
        memory.commit([Triple("panel", "uses", "pnpm")], scope="project")
    assert {each: each.stat().st_mtime_ns for each in trees[0].rglob("*")} == files
    git(app, "worktree", "remove", str(trees[0]))
    with opened(trees[1]) as memory:
        assert [hit.text for hit in memory.recall("panel")] == ["panel uses pnpm"]
    with opened(app) as memory:
        assert memory.project.key == key
        assert memory.recall("panel")
    with opened(app / "lib") as memory:
        assert memory.project.key != key
        assert memory.project.place == str(app / "lib")
        assert not memory.recall("panel")
    with opened(tmp_path / "bare.git") as bare, opened(tmp_path / "of-bare") as tree:
        assert bare.project.key == tree.project.key == key  # a clone of it
    with opened(trees[1], config=APART) as memory:
        assert memory.project.key != key
        assert not memory.recall("panel")


# ---- remotes


@pytest.mark.parametrize(
    "url",
    [
        "git@example.org:ann/app.git",
        "example.org:ann/app",
        "ssh://git@example.org/ann/app.git",
        "ssh://git@example.org:2222/ann/app",
        "https://example.org/ann/app/",
        "https://EXAMPLE.org:443/ann/app.git",
        "https://ann:ghp_secret@example.org/ann/app.git?token=secret#x",
        "git://example.org/ann/app.git/",
        " https://example.org//ann/./app ",
    ],
)
def test_a_remote_has_one_form(url):
    assert remote_form(url) == "example.org/ann/app"


def test_remotes_that_differ_stay_apart():
    urls = ["a.org:ann/app", "a.org:ann/App", "b.org:ann/app", "a.org:bob/app", "/ann/app", "C:/ann/app", "[::1]:app"]

    assert len({remote_form(url) for url in urls}) == len(urls)
    assert remote_form("https://[bad/app") == remote_form("") == ""
    assert remote_form("C:\\Srv\\app.git") == remote_form("c:/srv/app")


@given(st.text())
def test_any_text_has_a_form_and_that_is_one(url):
    assert isinstance(remote_form(url), str)


def test_clones_of_one_remote_are_one_project_and_the_user_is_told(tmp_path, path, project, caplog):
    """SCP-03."""
    first = project(plain_repository(tmp_path / "a" / "app", "git@example.org:ann/app.git"))
    clone = plain_repository(tmp_path / "b" / "app", "https://tok3n@Example.org/ann/app")

    second = project(clone)

    assert second.key == first.key
    assert second.place == first.place
    (remark,) = second.remarks
    assert "another clone" in remark
    assert str(clone) in remark
    assert remark in caplog.text
    assert project(clone).remarks == ()
    assert "tok3n" not in "".join(dump(path))


def test_a_moved_repository_is_found_by_its_remote_and_the_user_is_told(tmp_path, path, clock, project):
    old = plain_repository(tmp_path / "old" / "app", REMOTE)
    with Memory.open(path, clock=clock, project=old) as memory:
        memory.commit([Triple("panel", "uses", "pnpm")], scope="project")
        key = memory.project.key
    new = tmp_path / "new"
    shutil.move(old, new)

    with Memory.open(path, clock=clock, project=new) as memory:
        assert memory.project.key == key
        assert (memory.project.place, memory.project.label) == (str(new), "new")
        (remark,) = memory.project.remarks
        assert str(old) in remark
        assert str(new) in remark
        assert memory.recall("panel")
    old.mkdir(parents=True)
    assert project(old).key != key
    assert project(new).remarks == ()


@pytest.mark.parametrize("remote", ["", REMOTE])
def test_a_clone_of_a_folder_is_its_project(tmp_path, project, remote):
    app = plain_repository(tmp_path / "app", remote)
    key = project(app).key

    clone = project(plain_repository(tmp_path / "clone", str(app)))

    assert clone.key == key
    assert "another clone" in clone.remarks[0]
    assert project(plain_repository(tmp_path / "other", str(tmp_path / "elsewhere"))).key != key


def test_a_folder_with_another_remote_holds_another_project(tmp_path, path, project):
    """The same path in each container, another repository in it."""
    folder = plain_repository(tmp_path / "workspace", "a.org:ann/one")
    one = project(folder)
    shutil.rmtree(folder)
    other = project(plain_repository(folder, "a.org:ann/two"))

    assert one.key != other.key
    assert "another remote" in other.remarks[0]
    assert "git remote add was a.org/ann/one" in other.remarks[0]
    assert project(folder).key == other.key
    assert project(folder).remarks == ()
    with (folder / ".git" / "config").open("a") as config:
        config.write('[remote "was"]\n\turl = a.org/ann/one\n')
    assert project(folder).key == one.key


def test_a_project_that_was_cloned_before_its_first_remote_stays_the_one_it_is(tmp_path, project):
    app = plain_repository(tmp_path / "app")
    key = project(app).key
    clone = plain_repository(tmp_path / "clone", str(app))
    assert project(clone).key == key

    with (app / ".git" / "config").open("a") as config:
        config.write(f'[remote "origin"]\n\turl = {REMOTE}\n')

    assert project(app).key == key
    assert project(clone).key == key
    assert project(plain_repository(tmp_path / "third", REMOTE)).key == key


def test_a_path_that_was_a_worktree_is_not_the_project_of_what_lies_there_later(tmp_path, project):
    app = plain_repository(tmp_path / "app")
    tree = linked_worktree(tmp_path / "tree", app)
    shared = project(tree).key
    shutil.rmtree(tree)

    assert project(plain_repository(tree)).key != shared


def test_a_link_that_leads_elsewhere_now_leads_to_another_project(tmp_path, project):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "one")
    one = project(link)
    link.unlink()
    link.symlink_to(tmp_path / "two")

    assert project(link).key != one.key


def test_a_folder_behind_a_link_may_move_with_the_link(tmp_path, project):
    (tmp_path / "disk1").mkdir()
    link = tmp_path / "app"
    link.symlink_to(tmp_path / "disk1")
    one = project(link)
    (tmp_path / "disk1").rename(tmp_path / "disk2")
    link.unlink()
    link.symlink_to(tmp_path / "disk2")

    moved = project(link)

    assert moved.key == one.key
    assert moved.remarks


def test_a_known_project_is_opened_without_a_write(tmp_path, path, project):
    app = plain_repository(tmp_path / "app", REMOTE)
    project(app)
    before = dump(path)

    project(app)

    assert dump(path) == before


@pytest.mark.parametrize("marker", ["", "junk", "gitdir: /nowhere", "gitdir: ."])
def test_a_broken_git_file_is_no_repository(tmp_path, marker):
    (tmp_path / ".git").write_text(marker)

    signs = read_signs(tmp_path, whole_repository=True)

    assert (signs.place, signs.common, signs.remote) == (str(tmp_path), "", "")


@pytest.mark.parametrize("name", ["HEAD", "commondir", "config", "config.worktree"])
def test_what_is_no_file_of_git_is_neither_waited_for_nor_trusted(tmp_path, name):
    """A pipe would be read for ever; no path holds a NUL."""
    for kind in ("pipe", "nul"):
        kept = tmp_path / kind / ".git"
        for part in ("objects", "refs"):
            (kept / part).mkdir(parents=True)
        (kept / "HEAD").write_text("ref: refs/heads/main\n")
        (kept / name).unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(kept / name)
        else:
            (kept / name).write_text('[core]\n\tworktree = /x\0y\n[remote "origin"]\n\turl = ./a\0b\n')

        signs = read_signs(kept.parent, whole_repository=True)

        assert (signs.root, signs.remotes) == (str(kept.parent), ())
