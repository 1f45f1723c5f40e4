"""The acceptance list A6 and the cases MD and SCP, through files from end to end."""

import json

import pytest
from test_tree import change, files, page, put, whats

from graphmem import Memory
from graphmem.core.situations import Situation


@pytest.fixture
def root(tmp_path):
    return tmp_path / "tree"


def titles(memory, query, **options):
    return [memory.inspect(hit.id).note.title for hit in memory.recall(query, **options) if hit.kind == "note"]


@pytest.mark.parametrize("query", ["服务部署", "前端部署", "部署"])
def test_a_note_of_a_file_is_found_in_another_order_and_with_a_gap(memory, root, query):  # A6.5
    put(root, "facts/x.md", page("title: 怎么部署前端服务"))
    put(root, "facts/y.md", page("title: 怎么喝茶"))
    memory.sync_tree(root)
    assert titles(memory, query)[:1] == ["怎么部署前端服务"]


def test_one_slug_in_two_trees_is_two_notes_and_the_projects_goes_first(tmp_path, clock):  # A6.6
    work, config = tmp_path / "work", tmp_path / "config"
    work.mkdir()
    with Memory.open(tmp_path / "m.db", clock=clock, project=work) as memory:
        put(config, "facts/deploy.md", page("title: Deploy", body="with npm"))
        put(config, "rules/git.md", page("title: Never force push"))
        put(work / ".memory", "facts/deploy.md", page("title: Deploy", body="with pnpm"))
        put(work / ".memory", "facts/git.md", page("title: Never force push", body="here it is fine"))
        memory.sync_tree(config, scope="user", trust=True)
        memory.sync_tree(work / ".memory")
        (own,) = (hit for hit in memory.recall("deploy") if hit.kind == "note")
        assert memory.inspect(own.id).note.body == "with pnpm"
        assert (1, 3) in memory.inspect(scopes="all").overridden
        rules = memory.recall_by_situation(Situation.of(chan="cli")).notes
        assert [(note.title, note.scope, note.overridden) for note in rules if note.kind == "rule"] == [
            ("Never force push", "", False)
        ]
        assert (config / "facts/deploy.md").read_bytes() != (work / ".memory/facts/deploy.md").read_bytes()


def test_a_trigger_written_by_hand_routes_the_note_in(memory, root):  # A6.7
    memory.remember("Lock the versions")
    memory.export_tree(root)
    change(root, "facts/lock-the-versions.md", "kind: fact\n", "kind: fact\nloadWhen: [发布]\n")
    memory.sync_tree(root)
    found = memory.recall_by_situation(Situation.of(chan="qq"), text="今晚发布新版本").notes
    assert [(note.title, note.ground) for note in found] == [("Lock the versions", "trigger")]
    assert "| 发布 | [Lock the versions](facts/lock-the-versions.md) |" in (root / "ROOT.md").read_text("utf-8")


def test_titles_that_begin_alike_have_two_files_that_can_be_read(memory, root):  # A6.15, MD-04
    for title in ("部署脚本必须使用固定版本", "部署脚本必须使用最新镜像", "部署清单", "回滚步骤"):
        memory.remember(title)
    memory.export_tree(root)
    assert {path for path in files(root) if path.startswith("facts/")} == {
        "facts/index.md", "facts/部署脚本必须使用固定版本.md", "facts/部署脚本必须使用最新镜像.md", "facts/部署清单.md",
        "facts/回滚步骤.md",
    }  # fmt: skip


def test_what_is_forgotten_is_gone_from_everything_and_leaves_a_trace(memory, root):  # A6.20
    memory.remember("Likes tea", load_when="tea")
    memory.remember("Likes milk")
    memory.export_tree(root)
    memory.forget(1)
    memory.sync_tree(root)
    assert titles(memory, "tea") == []
    assert not any(b"tea" in data for data in files(root).values())
    detail = memory.inspect(1)
    assert (detail.note.status, detail.acts[-1].act) == ("archived", "forget")


MIXED = "title: no\ncountry: no\nid: {uid}\nclock: 12:30\nversion: 1.10\nwhen: 2026-03-01\non: yes\nslot: 0123\n"


@pytest.mark.parametrize(("head", "end"), [("", "\n"), ("\ufeff", "\n"), ("", "\r\n"), ("\n", "\n")])
def test_scalars_of_a_file_are_text_and_its_bytes_stay(memory, root, head, end):  # MD-01, MD-03
    data = (head + f"---\n{MIXED.format(uid='abc')}slot: 1e3\n---\n\nOne.\n".replace("\n", end)).encode()
    put(root, "facts/x.md", data)
    report = memory.sync_tree(root)
    assert files(root)["facts/x.md"] == data
    note = memory.inspect(1).note
    assert (note.title, note.slot) == ("no", "1e3")
    assert any("slot" in remark and "twice" in remark for remark in report.remarks)
    json.dumps(report.remarks)


@pytest.mark.parametrize(
    "title", ["../out", "..\\out", "/etc/x", "a/../../out", "con", "NUL", "aux.", "com1", "日志.", "..", "."]
)
def test_no_title_leads_out_or_makes_a_file_that_some_system_cannot_have(
    memory, root, tmp_path, title
):  # SCP-07, SCP-09
    memory.remember(f"{title}" if title.strip(".") else f"{title} dots")
    before = {path for path in tmp_path.rglob("*") if root not in path.parents}
    memory.export_tree(root)
    assert {path for path in tmp_path.rglob("*") if root not in path.parents} - before <= {root}
    (name,) = (path.rpartition("/")[2] for path in files(root) if path.startswith("facts/") and "index" not in path)
    stem = name.removesuffix(".md")
    assert stem.split(".")[0].casefold() not in {"con", "nul", "aux", "com1", ""}
    assert not stem.endswith((".", " "))
    assert not set(name) & set('/\\:*?"<>|')


def test_a_root_that_is_not_there_yet_is_made_and_a_linked_one_is_refused_before(memory, tmp_path):  # SCP-07
    memory.remember("Likes tea")
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/.memory").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="is a link"):
        memory.export_tree(tmp_path / "repo/.memory")
    assert not (tmp_path / "elsewhere").exists()
    memory.export_tree(tmp_path / "new/deep")
    assert (tmp_path / "new/deep/ROOT.md").exists()


def test_a_second_file_of_one_id_is_no_second_note(memory, root):  # MD-06
    memory.remember("Likes tea")
    memory.export_tree(root)
    put(root, "facts/likes-tea 2.md", (root / "facts/likes-tea.md").read_bytes() + b"\nMore.\n")
    assert whats(memory.sync_tree(root)) == [("facts/likes-tea 2.md", "copy")]
    assert titles(memory, "more") == []
