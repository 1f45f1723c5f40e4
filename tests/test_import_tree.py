"""Import of folders of Markdown notes: Obsidian, basic-memory, trees, bundles of the Open Knowledge Format."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import dump, sql
from test_import_others import assert_a_rehearsal_tells_the_same, assert_again_adds_nothing

from graphmem import Conflict, InvalidInput, Memory, Triple
from graphmem.core import foreign_pages
from graphmem.core.choices import NOTE_KINDS

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def vault(tmp_path):
    return tmp_path / "vault"


def put(vault, files):
    for place, text in files.items():
        file = vault / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return vault


def notes_of(memory, **options):
    return {note.title: note for note in memory.notes(limit=1000, **options)}


def counts(report):
    return {each.what: (each.added, each.merged, each.changed, each.known, each.refused) for each in report.counts}


def reasons(report):
    return {each.name: each.reason for each in report.refused}


# ---- a file is a note


OBSIDIAN = {
    "Home.md": "Start at [[Deploy]] or [[people/Ann Li|Ann]], and see ![[plan.png]] and [[Bob]].\n",
    "Deploy.md": (
        "---\ntags: [ops, '#ci']\naliases: [Rollout]\ncreated: 2026-03-01\ndue: soon\ncountry: no\n---\n"
        "# Deploy\n\nUse [the list](people/Ann%20Li.md). `[[no link]]`\n"
    ),
    "people/Ann Li.md": "# Ann of the panel\n\nShe knows [[rollout#Steps]].\n",
    ".obsidian/app.md": "settings",
    ".trash/old.md": "gone",
    "plan.png": b"\x89PNG",
}


def test_each_file_of_a_vault_is_a_note(memory, path, vault):
    report = assert_a_rehearsal_tells_the_same(memory, "tree", put(vault, OBSIDIAN))

    assert counts(report) == {"note": (3, 0, 0, 0, 0)}
    notes = notes_of(memory)
    assert set(notes) == {"Home", "Deploy", "Ann of the panel"}
    deploy = notes["Deploy"]
    assert deploy.body == "Use [the list](people/Ann%20Li.md). `[[no link]]`\n\ndue: soon\n\ncountry: no"
    assert set(deploy.labels) == {"ops", "ci", "Rollout", "Ann of the panel"}
    assert (deploy.created_at, deploy.source) == ("2026-03-01T00:00:00.000Z", "import:tree")
    assert (deploy.origin.place, deploy.origin.message.split("@")[0]) == (str(vault), "Deploy.md")
    assert notes["Ann of the panel"].body == "She knows [[rollout#Steps]]."
    assert_again_adds_nothing(memory, "tree", vault)
    assert memory.check().ok


def test_what_a_name_leads_to_comes_with_what_points_at_it(memory, vault):
    memory.import_from("tree", put(vault, OBSIDIAN))

    notes = notes_of(memory)
    assert set(notes["Home"].labels) == {"Deploy", "Ann of the panel", "Bob"}
    assert notes["Ann of the panel"].labels == ("Deploy",)
    assert {hit.text.partition("\n")[0] for hit in memory.recall("Bob", precise=True)} == {"Home"}


def test_a_heading_goes_only_where_it_is_the_title(memory, vault):
    put(vault, {
        "a.md": "---\ntitle: Deploy\n---\n# Steps\n\n1. pull\n",
        "b.md": "---\ntitle: Rollback\n---\n# rollback\n\nText.\n",
        "2026-03-01.md": "Daily.\n", "c.md": "---\ntitle: same\n---\nsame\n",
    })  # fmt: skip

    memory.import_from("tree", vault)

    assert {title: note.body for title, note in notes_of(memory).items()} == {
        "Deploy": "# Steps\n\n1. pull", "Rollback": "Text.", "2026-03-01": "Daily.", "same": "",
    }  # fmt: skip


@pytest.mark.parametrize("change", [lambda data: b"\xef\xbb\xbf" + data, lambda data: data.replace(b"\n", b"\r\n")])
def test_marks_and_line_ends_hide_nothing(memory, vault, change):  # MD-01, MD-03
    text = b"---\ntitle: no\ntags: [0123, yes]\nclock: 12:30\nclock: 13:30\n---\n\nText\nmore.\n"
    report = memory.import_from("tree", put(vault, {"a.md": change(text)}))

    (note,) = memory.notes()
    assert (note.title, set(note.labels), note.body) == ("no", {"0123", "yes"}, "Text\nmore.\n\nclock: 13:30")
    assert "comes twice" in " ".join(report.remarks)


def test_states_and_kinds_are_those_of_the_file(memory, vault):
    put(vault, {
        "a.md": "---\nstatus: archived\n---\nA.", "b.md": "---\narchived: yes\n---\nB.",
        "c.md": "---\nkind: lesson\npinned: true\nslot: c\nhighlight: H\nreason: R\n---\nC.",
        "lessons/d.md": "D.", "e.md": "---\ntype: Playbook\nstatus: in progress\nsource: https://x.y\n---\nE.",
        "rules/f.md": "---\nkind: rule-proposal\n---\nF.", "g.md": "---\nstatus: proposed\n---\nG.",
        "h.md": f"---\nsummary: {'long ' * 30}\nloadWhen: [w1, w2, w3, w4, w5, w6, w7, w8, w9]\n---\nH.",
    })  # fmt: skip

    report = memory.import_from("tree", vault)

    notes = notes_of(memory, statuses=["live", "proposed", "archived"])
    assert {title: (note.kind, note.status) for title, note in notes.items()} == {
        "a": ("fact", "archived"), "b": ("fact", "archived"), "c": ("lesson", "live"), "d": ("lesson", "live"),
        "e": ("fact", "live"), "f": ("rule", "proposed"), "g": ("fact", "proposed"), "h": ("fact", "live"),
    }  # fmt: skip
    assert (notes["c"].slot, notes["c"].highlight, notes["c"].reason, notes["c"].pinned) == ("c", "H", "R", False)
    assert (notes["e"].labels, notes["e"].body) == (
        ("Playbook",),
        "E.\n\nstatus: in progress\n\nsource: https://x.y",
    )
    assert notes["h"].body.startswith("long long") and notes["h"].summary.endswith("…")  # noqa: PT018
    assert len(notes["h"].load_when) == 8
    assert {"pinned", "triggers", "approve"} <= {word.strip("':,") for word in " ".join(report.remarks).split()}


def test_relations_of_basic_memory_are_facts(memory, path, vault):
    put(vault, {
        "coffee.md": (
            "---\ntitle: Coffee\ntype: note\npermalink: drinks/coffee\n---\n# Coffee\n\n## Observations\n"
            "- [method] Pour over is clear #brewing\n\n## Relations\n- pairs_with [[Cake]] (on Sundays)\n"
            "- 'made of' [[Beans]]\n- see how [[Tea]] does\n```\n- in_code [[No]]\n```\n"
        ),
        "cake.md": "---\ntitle: Cake\n---\n- likes [[Coffee]]\n",
    })  # fmt: skip

    report = memory.import_from("tree", vault)

    assert counts(report)["fact"] == (2, 0, 0, 0, 0)
    told = sql(path, """SELECT a.name, r.relation_type, b.name FROM relations r JOIN entities a ON a.id = r.source_id
                        JOIN entities b ON b.id = r.target_id ORDER BY r.id""")  # fmt: skip
    assert told == [("Coffee", "pairs_with", "Cake"), ("Coffee", "made of", "Beans")]
    assert "- [method] Pour over is clear #brewing" in notes_of(memory)["Coffee"].body
    assert set(notes_of(memory)["Coffee"].labels) == {"Cake", "Beans", "Tea"}
    assert_again_adds_nothing(memory, "tree", vault)
    assert memory.recall("pour over", limit=1)[0].kind == "note"


# ---- trees and bundles of memories


@pytest.fixture
def other(tmp_path, clock):
    with Memory.open(tmp_path / "other.db", clock=clock) as opened:
        opened.remember("Deploy with pnpm", body="npm *breaks* [it](x)", kind="lesson", slot="deploy", labels=["部署"],
                        load_when=["tool:shell"], summary="Use pnpm", highlight="pnpm!")  # fmt: skip
        opened.remember("Be brief.", kind="rule", source="user")
        opened.remember("nothing below")
        opened.commit(
            [Triple("老大", "偏好_x", "纯[文]本", sentence="老大说用纯文本。"), Triple("panel", "runs on", "8328")]
        )
        yield opened


def same(one, two):
    return {
        title: (note.kind, note.body, note.slot, note.labels, note.load_when, note.summary, note.highlight,
                note.created_at if two else "")
        for title, note in notes_of(one, statuses=["live", "proposed"]).items()
    }  # fmt: skip


def test_a_tree_of_another_memory_comes_whole(memory, other, tmp_path):
    other.export_tree(tmp_path / "tree")

    report = memory.import_from("tree", tmp_path / "tree")

    assert counts(report) == {"note": (3, 0, 0, 0, 0)}
    assert same(memory, True) == same(other, True)
    assert notes_of(memory, statuses=["proposed"]).keys() == {"Be brief."}
    assert_again_adds_nothing(memory, "tree", tmp_path / "tree")


def test_a_bundle_that_we_wrote_comes_back_with_its_facts(memory, path, other, tmp_path):
    with other._store.write() as tx:
        tx.execute("UPDATE entities SET type = 'person' WHERE name = '老大'")
    other.export_to("okf", tmp_path / "okf")

    report = memory.import_from("tree", tmp_path / "okf")

    assert counts(report)["note"] == (3, 0, 0, 0, 0)
    assert same(memory, False) == same(other, False)
    facts = """SELECT a.name, a.type, r.relation_type, b.name, s.text FROM relations r
        JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
        LEFT JOIN sentences s ON s.id = r.sentence_id ORDER BY a.name"""
    assert sql(path, facts) == sql(other.path, facts)
    assert_again_adds_nothing(memory, "tree", tmp_path / "okf")


def test_a_bundle_of_others_keeps_what_it_says(memory, vault):
    put(vault, {
        "index.md": '---\nokf_version: "0.2"\n---\n\n# Bundle\n\n* [tables](tables/) - all of them\n',
        "log.md": "# Log\n\n## 2026-05-22\n* **Update**: something\n",
        "tables/index.md": "# Tables\n\n* [Orders](orders.md) - one row an order\n",
        "tables/orders.md": (
            "---\ntype: BigQuery Table\ntitle: Orders\ndescription: One row an order.\ntags: [sales]\n"
            "generated: { by: agent/1, at: 2026-05-28T14:30:00Z }\nresource: https://x.y/z\n"
            "sources:\n  - id: a\n    resource: https://s\n---\n\n# Schema\n\nSee [customers](/tables/customers.md).\n"
        ),
        "tables/customers.md": "---\ntype: Reference\nstatus: draft\n---\nWho buys.\n",
        "entities/acme.md": "---\ntype: Company\n---\n\n# About\n\nA company.\n",
        "old.md": "---\ntype: Metric\nstatus: deprecated\n---\nWas counted.\n",
    })  # fmt: skip

    report = memory.import_from("tree", vault)

    notes = notes_of(memory, statuses=["live", "proposed", "archived"])
    assert {title: note.status for title, note in notes.items()} == {
        "Orders": "live", "customers": "proposed", "acme": "live", "old": "archived",
    }  # fmt: skip
    orders = notes["Orders"]
    assert orders.body == (
        "# Schema\n\nSee [customers](/tables/customers.md).\n\nresource: https://x.y/z\n\n"
        "sources:\n  - id: a\n    resource: https://s"
    )
    assert (orders.summary, set(orders.labels)) == ("One row an order.", {"sales", "BigQuery Table", "customers"})
    assert orders.created_at == orders.updated_at == "2026-05-28T14:30:00.000Z"
    assert "log.md" in " ".join(report.remarks)


def test_the_first_page_of_a_tree_proposes_its_hard_rules(memory, vault):
    put(vault, {
        "ROOT.md": "# Memory\n\n## Goals\n\n- ship\n\n## Hard rules\n\n- never push\n  to main\n* be brief\n\n"
                   "## Folders\n\n| folder |\n| --- |\n| [facts](facts/index.md) |\n",
        "facts/index.md": "# Facts\n\n- [A](a.md): about a\n- [[b]]\n",
        "facts/a.md": "---\ntitle: A\nsummary: about a\n---\nText.",
        "facts/sub/index.md": "# Sub\n\n- b: about b\n",
    })  # fmt: skip

    report = memory.import_from("tree", vault)

    assert notes_of(memory, statuses=["proposed"]).keys() == {"never push to main", "be brief"}
    assert notes_of(memory).keys() == {"A"}
    assert counts(report)["rule"] == (2, 0, 0, 0, 0)
    assert {remark.split(":")[0] for remark in report.remarks} >= {"ROOT.md", "facts/sub/index.md"}
    assert_again_adds_nothing(memory, "tree", vault)


def test_a_list_that_says_more_and_a_root_of_something_else_are_notes(memory, vault):
    put(vault, {
        "index.md": "# Index\n\nWhat I think of [A](a.md).\n", "a/index.md": "# All\n\n- [A](../a.md)\n",
        "ROOT.md": "# Root\n\nThe square one.\n", "log.md": "# Log\n\nOf today.\n",
    })  # fmt: skip
    memory.import_from("tree", vault)
    assert notes_of(memory).keys() == {"Index", "Root", "Log"}


def test_a_name_means_a_file_before_what_else_a_note_is_called(memory, vault):
    put(vault, {
        "a.md": "---\naliases: [Deploy, Other]\n---\nA.", "x/Deploy.md": "# How to deploy\n\nD.",
        "from.md": "[[Deploy]] [[y/deploy]] [[other]] [[z/New one]] [[song.mp3]] [[Node.js]]",
    })  # fmt: skip
    memory.import_from("tree", vault)
    assert set(notes_of(memory)["from"].labels) == {"How to deploy", "a", "New one", "Node.js"}


# ---- what does not come


def test_what_cannot_come_is_told_by_name_and_the_rest_goes_on(memory, path, vault, tmp_path, monkeypatch):
    monkeypatch.setattr("graphmem.exchange.rooted.LARGEST", 2000)
    put(vault, {
        "good.md": "Good.", "large.md": "x" * 2001, "latin.md": "d\xe9j\xe0".encode("latin-1"), "empty.md": " \n",
        "open.md": "---\ntitle: x\n", "broken.md": "---\ntitle: [a\n---\nx", "token.md": f"It is {SECRET}.",
        "a.md": "---\nid: one\n---\nA.", "a 2.md": "---\nid: one\n---\nB.",
        "long.md": f"---\ntitle: {'x' * 600}\n---\nL.",
        "merge.md": "<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n", "n.sync-conflict-20260301-101010-ABCDEFG.md": "Copy.",
        "n (Ann's conflicted copy 2026-03-01).md": "Copy.", "n.md.orig": "Copy.",
        "slot.md": "---\nloadWhen: ['!']\n---\nS.",
    })  # fmt: skip
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("from outside")
    (vault / "out").symlink_to(tmp_path / "outside")
    (vault / "y.md").symlink_to(tmp_path / "outside" / "x.md")

    report = memory.import_from("tree", vault)

    assert notes_of(memory).keys() == {"good", "a", "x" * 199 + "…"}
    told = reasons(report)
    assert set(told) == {
        "large.md", "latin.md", "empty.md", "open.md", "broken.md", "token.md", "a 2.md", "merge.md", "slot.md",
        "n.sync-conflict-20260301-101010-ABCDEFG.md", "n (Ann's conflicted copy 2026-03-01).md", "n.md.orig", "out",
        "y.md",
    }  # fmt: skip
    assert "UTF-8" in told["latin.md"]
    assert "a.md" in told["a 2.md"]
    assert "link" in told["out"]
    assert SECRET[4:16] not in repr(report)
    assert SECRET[4:16] not in "\n".join(dump(path))


def test_a_secret_in_the_name_of_a_file_is_shown_nowhere(memory, path, vault):
    put(vault, {
        f"{SECRET}.md": "---\nid: one\nid: one\n---\nText.", f"x/{SECRET}.md": "---\nid: one\n---\nText.",
        "a.md": f"[[{SECRET}]]", "b.md": f"[b]({SECRET}.md)",
    })  # fmt: skip

    report = memory.import_from("tree", vault)

    assert counts(report) == {"file": (0, 0, 0, 0, 1), "note": (0, 0, 0, 0, 3)}
    assert SECRET[4:16] not in repr(report)
    assert SECRET[4:16] not in "\n".join(dump(path))


@pytest.mark.parametrize("make", [
    lambda place: place.mkdir(), lambda place: place.write_text("x"), lambda place: None,
    lambda place: put(place, {"a.txt": "x"}),
])  # fmt: skip
def test_what_is_no_folder_of_notes_is_refused(memory, path, vault, make):
    make(vault)
    before = dump(path)
    with pytest.raises(InvalidInput):
        memory.import_from("tree", vault)
    assert dump(path) == before


def test_a_tree_of_this_memory_is_for_sync(memory, vault):
    memory.remember("A", source="user")
    memory.export_tree(vault)
    with pytest.raises(Conflict, match="sync_tree"):
        memory.import_from("tree", vault)


# ---- again


def test_a_file_that_was_changed_changes_its_note(memory, vault, clock):
    put(vault, {"a.md": "---\ntags: [x]\n---\nOne.", "b.md": "B."})
    memory.import_from("tree", vault)
    note = notes_of(memory)["a"]
    clock.advance(days=1)
    put(vault, {"a.md": "---\ntags: [y]\n---\n# New title\n\nTwo. [[b]]"})

    report = assert_a_rehearsal_tells_the_same(memory, "tree", vault)

    assert counts(report) == {"note": (0, 0, 1, 1, 0)}
    changed = notes_of(memory)["New title"]
    assert (changed.id, changed.body, set(changed.labels)) == (note.id, "Two. [[b]]", {"y", "b"})
    assert changed.source == "import:tree"
    assert_again_adds_nothing(memory, "tree", vault)
    memory.undo(memory.operations(limit=1)[0].id)
    assert notes_of(memory)["a"].body == "One."


def test_what_was_changed_here_too_stays_and_is_told(memory, vault):
    put(vault, {"a.md": "One.", "b.md": "One b.", "c.md": "One c.", "d.md": "One d."})
    memory.import_from("tree", vault)
    ids = {title: note.id for title, note in notes_of(memory).items()}
    memory.edit_note(ids["a"], body="Mine.")
    memory.edit_note(ids["b"], body="Mine b.")
    memory.forget(ids["c"])
    memory.forget(ids["d"])
    put(vault, {"a.md": "Two.", "c.md": "Two c."})

    report = memory.import_from("tree", vault)

    assert counts(report) == {"note": (0, 0, 0, 2, 2)}
    assert f"note {ids['a']}" in reasons(report)["a.md"]
    assert "archived" in reasons(report)["c.md"]
    assert {note.body for note in memory.notes()} == {"Mine.", "Mine b."}


def test_a_change_of_state_follows_and_a_binding_note_waits(memory, vault):
    put(vault, {"a.md": "One.", "rules/r.md": "Never."})
    memory.import_from("tree", vault)
    memory.approve(notes_of(memory, statuses=["proposed"])["r"].id)
    put(vault, {"a.md": "---\nstatus: archived\n---\nOne.", "rules/r.md": "Always."})

    report = memory.import_from("tree", vault)

    assert notes_of(memory, statuses=["archived"]).keys() == {"a"}
    assert notes_of(memory)["r"].body == "Never."
    assert "binds" in reasons(report)["rules/r.md"]
    assert counts(report) == {"note": (0, 0, 1, 0, 1)}


def test_a_file_with_an_id_is_known_where_it_lies_now(memory, vault):
    put(vault, {"a.md": "---\nid: one\n---\nOne."})
    memory.import_from("tree", vault)
    (vault / "a.md").unlink()
    put(vault, {"x/b.md": "---\nid: one\n---\nTwo."})

    report = memory.import_from("tree", vault)

    assert counts(report) == {"note": (0, 0, 1, 0, 0)}
    assert [note.body for note in memory.notes()] == ["Two."]


def test_two_scopes_have_their_own_notes(memory, vault):
    put(vault, {"a.md": "One."})
    assert memory.import_from("tree", vault).added == 1
    assert memory.import_from("tree", vault, scope="work").added == 1
    assert [note.scope for note in memory.notes(scopes="all")].count("work") == 1


def test_an_import_that_was_broken_off_goes_on(memory, path, vault, tmp_path, clock):
    put(vault, {f"f{number}.md": f"Text {number}, see [[f{(number * 7) % 120}]]." for number in range(120)})

    class BrokenOff(Exception):
        pass

    def stop_at(limit):
        def progress(done, whole):
            if done >= limit:
                raise BrokenOff

        return progress

    for limit in (50, 170, 220):
        with pytest.raises(BrokenOff):
            memory.import_from("tree", vault, progress=stop_at(limit))
    steps = []
    memory.import_from("tree", vault, progress=lambda done, whole: steps.append((done, whole)))

    assert steps[0] == (0, 240)
    assert steps[-1] == (240, 240)
    with Memory.open(tmp_path / "whole.db", clock=clock) as whole:
        whole.import_from("tree", vault)
        assert [(n.id, n.title, n.body, n.labels) for n in whole.notes(limit=200)] == [
            (n.id, n.title, n.body, n.labels) for n in memory.notes(limit=200)
        ]


# ---- whatever a file holds


FILES = st.text(st.one_of(st.sampled_from("#-[]|()`~*:\"'\n\\ ^!"), st.characters(codec="utf-8")), max_size=60)


@given(FILES, st.booleans())
def test_any_text_is_read_or_refused(text, is_bundle):
    try:
        page = foreign_pages.read(text, "a/b.md", kinds=NOTE_KINDS, is_bundle=is_bundle)
        foreign_pages.is_listing(text)
    except InvalidInput:
        return
    foreign_pages.rules_of(text)
    for link in foreign_pages.links(page.body, "a/b.md"):
        assert link.target
        assert not (link.is_path and (link.target.startswith(("/", "..")) or os.sep * 2 in link.target))
