"""Random edits of files and notes, in each form: both sides end up the same, and nothing a person wrote is lost."""

import json
import re
import shutil
import tempfile
from pathlib import Path

from conftest import FakeClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from graphmem import Conflict, Memory
from graphmem.exchange.tree_forms import form_of

WORDS = st.sampled_from(["tea", "milk", "```", "## Rules", "### x", "no", "a: b", "- item", "部署", "", "\\# y"])
PICK = st.integers(0, 1000)


class Trees(RuleBasedStateMachine):
    """A memory and one tree of it. told: texts that were written into files and are to be in the memory."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="graphmem-machine-"))
        self.root = self.folder / "root"
        self.memory = Memory.open(":memory:", clock=FakeClock())
        self.number = 0
        self.told = []
        self.is_synced = False

    def teardown(self):
        self.memory.close()
        shutil.rmtree(self.folder)

    @initialize(form=st.sampled_from(["notes", "promemory", "ledger"]))
    def begin(self, form):
        self.form = form
        self.memory.remember("First", body="One.", source="user")
        self.memory.export_tree(self.root, form=form)

    def fresh(self, word):
        self.number += 1
        self.is_synced = False
        return f"told{self.number} {word}".strip()

    # ---- the memory

    @rule(
        word=WORDS,
        kind=st.sampled_from(["fact", "rule", "lesson", "checkpoint"]),
        source=st.sampled_from(["user", "agent"]),
    )
    def remember(self, word, kind, source):
        self.memory.remember(self.fresh(word), body=f"{word}\n\n{word} again", kind=kind, source=source, session="s1")

    @rule(pick=PICK, word=WORDS)
    def edit(self, pick, word):
        notes = self.memory.notes(limit=200)
        if notes:
            note = notes[pick % len(notes)]
            self.told = [told for told in self.told if told not in note.body]
            self.memory.edit_note(note.id, body=self.fresh(word))

    @rule(pick=PICK)
    def forget(self, pick):
        notes = self.memory.notes(limit=200)
        if notes:
            self.fresh("")
            self.memory.forget(notes[pick % len(notes)].id)

    @rule(pick=PICK)
    def restore(self, pick):
        notes = self.memory.notes(statuses=["archived"], limit=200)
        if notes:
            self.fresh("")
            self.memory.restore_note(notes[pick % len(notes)].id)

    # ---- files

    def paths(self):
        ending = ".json" if self.form == "ledger" else ".md"
        return [
            path for path in sorted(self.root.rglob(f"*{ending}"))
            if path.name not in ("ROOT.md", "index.md") and ".conflict." not in path.name
        ]  # fmt: skip

    @rule(pick=PICK, word=WORDS)
    def write(self, pick, word):
        """Append a line to what some note says."""
        paths = self.paths()
        if not paths:
            return
        path, line = paths[pick % len(paths)], self.fresh(word)
        if self.form == "ledger":
            whole = json.loads(path.read_text("utf-8"))
            if not whole["entries"]:
                return
            entry = whole["entries"][pick % len(whole["entries"])]
            entry["body"] = f"{entry.get('body', '')}\n{line}".strip()
            path.write_text(json.dumps(whole), "utf-8")
        elif path.name == "MEMORY.md" and not path.read_text("utf-8").rpartition("\n## ")[2].count("\n### "):
            return
        else:
            with path.open("a", encoding="utf-8", newline="") as file:
                file.write(f"\n{line.partition(' ')[0]}\n")
        self.told.append(line.partition(" ")[0])

    @rule(word=WORDS)
    def add(self, word):
        title = self.fresh(word).partition(" ")[0]
        if self.form == "notes":
            path = self.root / "facts" / f"{title}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {title}\n\nText.\n", "utf-8")
        elif self.form == "promemory":
            path = self.root / "MEMORY.md"
            text = path.read_text("utf-8") if path.exists() else "# Memory\n"
            begin, mark, rest = text.partition("## ")
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{begin}## Decisions\n\n- {title}\n\n{mark}{rest}", "utf-8")
        else:
            path = self.root / "memory.json"
            whole = json.loads(path.read_text("utf-8")) if path.exists() else {"entries": []}
            path.parent.mkdir(exist_ok=True)
            whole["entries"].append({"title": title, "kind": "fact"})
            path.write_text(json.dumps(whole), "utf-8")
        self.told.append(title)

    @rule(pick=PICK)
    def remove(self, pick):
        paths = self.paths()
        if paths:
            self.fresh("")
            paths[pick % len(paths)].unlink()
            self.told.clear()

    @rule(pick=PICK)
    def settle_conflicts(self, pick):
        copies = sorted(self.root.rglob("*.conflict.*"))
        if copies:
            self.fresh("")
            copies[pick % len(copies)].unlink()

    # ---- both

    @rule()
    def sync(self):
        try:
            self.memory.sync_tree(self.root)
        except Conflict:  # all files are gone at once
            self.memory.export_tree(self.root)
        self.is_synced = True

    @precondition(lambda self: self.is_synced)
    @invariant()
    def both_sides_are_the_same(self):
        again = self.memory.sync_tree(self.root)
        waiting = {change.what for change in again.changes}
        assert waiting <= {"conflict"}, again.changes
        form = form_of(self.form)
        notes = self.memory.notes(statuses=form.statuses, kinds=form.kinds, limit=1000)
        text = "\n".join(path.read_text("utf-8") for path in self.paths())
        if not waiting:
            assert not list(self.root.rglob("*.conflict.*"))
            counts = {
                "promemory": text.count("<!-- graphmem: "),
                "ledger": text.count('"title": '),
                "notes": len(self.paths()),
            }
            assert counts[self.form] == len(notes)
            held = "\n".join(f"{note.title}\n{note.body}" for note in self.memory.notes(
                statuses=["live", "proposed", "archived"], limit=1000))  # fmt: skip
            for told in self.told:
                assert re.search(rf"\b{told}\b", held), told
        assert self.memory.check().problems == ()


TestTrees = Trees.TestCase
TestTrees.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
