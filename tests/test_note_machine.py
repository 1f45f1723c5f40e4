"""Any sequence of verbs on notes leaves what a plain model says, a sound file, and an index as a rebuild makes it."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support import assert_comes_back_whole, examples, sql, text_index_of

from graphmem import Conflict, InvalidInput, Memory, NotFound, Situation

ANN = Situation.of(chan="qq", peer="ann")
sources = st.sampled_from(["user", "user", "agent", "tool"])
kinds = st.sampled_from(["fact", "fact", "rule"])
slots = st.sampled_from(["", "deploy", "pen_name"])
texts = st.sampled_from(["use npm", "use pnpm", "用 yarn"])
scene_lists = st.sampled_from([(), (), ("peer:boss",), ("chan:qq",)])


def is_person(source):
    return source == "user"


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "memory.db"
        self.clock = FakeClock()
        self.memory = Memory.open(self.path, clock=self.clock)
        self.model = {}  # what is told of each note that is there
        self.edits = []  # operation, note, how it was, how it is

    def teardown(self):
        if hasattr(self, "memory"):
            assert_comes_back_whole(self.memory, self.path, self.clock)
            self.memory.close()
            self.folder.cleanup()

    def binds(self, one):
        return one["kind"] == "rule" or one["slot"] == "pen_name" or one["pinned"]

    def guarded(self, one, source):
        return not is_person(source) and one["status"] != "proposed" and self.binds(one)

    def holder(self, slot, but=None):
        return next(
            (
                key
                for key, one in self.model.items()
                if slot and one["slot"] == slot and one["status"] == "live" and key != but
            ),
            None,
        )

    def has_twin(self, told, but):
        return not told["slot"] and any(
            one["status"] == "live" and all(one[name] == told[name] for name in ("title", "slot", "kind"))
            for key, one in self.model.items() if key != but
        )  # fmt: skip

    def chosen(self, data):
        return data.draw(st.sampled_from([*self.model, 99]))

    def refused(self, expected):
        """A block that raises this error, or none where None is expected."""
        return contextlib.nullcontext() if expected is None else pytest.raises(expected)

    def supersede(self, old, new):
        if old is not None:
            self.model[old] |= {"status": "superseded", "by": new}

    @rule(title=texts, slot=slots, kind=kinds, pinned=st.booleans(), source=sources, scenes=scene_lists)
    def remember(self, title, slot, kind, pinned, source, scenes):
        self.clock.advance(minutes=1)
        report = self.memory.remember(title, slot=slot, kind=kind, pinned=pinned, source=source, scenes=scenes)
        decided, key = is_person(source), report.note.id
        pinned = pinned and decided
        status = "live" if decided or not (kind == "rule" or slot == "pen_name") else "proposed"
        told = {"title": title, "slot": slot, "kind": kind}
        holder = self.holder(slot) if status == "live" else None
        held = self.model.get(holder)
        same = {key for key, one in self.model.items() if all(one[name] == told[name] for name in told)}
        if held and holder not in same and not decided and (held["pinned"] or held["kind"] == "rule"):
            status, holder = "proposed", None
        if report.created:
            new = {**told, "pinned": pinned, "status": status, "by": None, "own": decided, "agreed": False}
            assert key not in self.model
            assert not {self.model[one]["status"] for one in same} & (
                {status} if status == "proposed" or not slot else set()
            )
            assert holder not in same
            self.supersede(holder, key)
            self.model[key] = {**new, "open": not scenes, "scenes": set(scenes)}
            return
        one = self.model[key]
        assert key in same
        if one["status"] == "proposed" and status == "live":
            self.supersede(self.holder(slot, key), key)
            one |= {"status": "live", "agreed": True}
        elif one["status"] != status:
            assert status == "proposed"
            assert one["status"] in ("live", "forgotten")
            return
        one["own"] |= decided
        if decided or not self.binds(one):
            one["scenes"] |= set(scenes)
            one["open"] |= not scenes
        elif one["status"] == "proposed":
            one["open"] |= not scenes and not one["pinned"]
        one["pinned"] |= pinned

    @precondition(lambda self: self.model)
    @rule(data=st.data(), source=sources, hard=st.sampled_from([False, False, False, True]))
    def forget(self, data, source, hard):
        key = self.chosen(data)
        one = self.model.get(key)
        if one is None:
            expected = NotFound
        elif (not hard and one["status"] in ("archived", "forgotten")) or self.guarded(one, source):
            expected = Conflict
        else:
            expected = None
        with self.refused(expected):
            self.memory.forget(key, hard=hard, source=source)
        if expected is None and hard:
            gone = self.model.pop(key)
            for other in self.model.values():
                if other["by"] == key:
                    other["by"] = gone["by"]
            self.edits = [edit for edit in self.edits if edit[1] != key]
        elif expected is None:
            one["status"] = "archived"

    @precondition(lambda self: self.model)
    @rule(data=st.data(), source=sources)
    def restore(self, data, source):
        key = self.chosen(data)
        one = self.model.get(key)
        expected, free = None, False
        if one is None:
            expected = NotFound
        else:
            needs = one["kind"] == "rule" or one["slot"] == "pen_name"
            free = not self.binds(one) or (is_person(source) and (one["own"] or one["agreed"] or not needs))
            if one["status"] != "archived" or self.holder(one["slot"], key) or (free and self.has_twin(one, key)):
                expected = Conflict
        with self.refused(expected):
            self.memory.restore_note(key, source=source)
        if expected is None:
            one |= {"status": "live" if free else "proposed", "by": None}

    @precondition(lambda self: self.model)
    @rule(data=st.data(), source=sources, verb=st.sampled_from(["approve", "approve", "reject"]))
    def decide(self, data, source, verb):
        key = self.chosen(data)
        one = self.model.get(key)
        expected = None
        if not is_person(source):
            expected = InvalidInput
        elif one is None:
            expected = NotFound
        elif one["status"] not in {"approve": ("proposed", "forgotten"), "reject": ("proposed",)}[verb] or (
            verb == "approve" and self.has_twin(one, key)
        ):
            expected = Conflict
        with self.refused(expected):
            getattr(self.memory, verb)(key, source=source)
        if expected is None and verb == "approve":
            self.supersede(self.holder(one["slot"], key), key)
            one |= {"status": "live", "agreed": True}
        elif expected is None:
            one |= {"status": "forgotten", "agreed": False}

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(),
        source=sources,
        changes=st.fixed_dictionaries(
            {}, optional={"title": texts, "slot": slots, "kind": kinds, "pinned": st.booleans(), "labels": texts}
        ).filter(bool),
    )
    def edit(self, data, source, changes):
        key = self.chosen(data)
        one = self.model.get(key)
        expected = None
        if one is None:
            expected = NotFound
        else:
            after = {**one, **{name: value for name, value in changes.items() if name != "labels"}}
            holder = self.holder(after["slot"], key) if one["status"] == "live" else None
            harmless = is_person(source) or changes.keys() <= {"labels"}
            if (not harmless and (
                one["pinned"] or after["pinned"]
                or (one["status"] != "proposed" and (self.binds(one) or self.binds(after)))
            )) or holder is not None:  # fmt: skip
                expected = Conflict
            says_otherwise = any(one[name] != after[name] for name in ("title", "slot", "kind"))
            if one["status"] == "live" and says_otherwise and self.has_twin(after, key):
                expected = Conflict
            told = ("title", "slot", "kind") if after["kind"] == "rule" or after["slot"] == "pen_name" else ("title",)
            if is_person(source):
                after["own"] = one["own"] or any(one[name] != after[name] for name in told)
            elif not harmless:
                after["own"] = False
        report = None
        with self.refused(expected):
            report = self.memory.edit_note(key, source=source, **changes)
        if report and report.operation is not None:
            self.edits.append((report.operation, key, dict(one), after))
            self.model[key] = {**after, "agreed": one["agreed"] and is_person(source)}

    @precondition(lambda self: self.edits)
    @rule()
    def undo(self):
        operation, key, before, after = self.edits.pop()
        one = self.model[key]
        names = ("title", "slot", "kind", "pinned", "own")
        back = {name: before[name] for name in names if before[name] != after[name] and one[name] == after[name]}
        slot = back.get("slot", one["slot"])
        taken = one["status"] == "live" and self.holder(slot, key) is not None
        with self.refused(Conflict if taken else None):
            self.memory.undo(operation)
        if not taken:
            one |= back

    @invariant()
    def the_file_is_as_the_model_says(self):
        if not hasattr(self, "memory"):
            return
        rows = sql(
            self.path, "SELECT id, title, slot, kind, pinned, status, superseded_by, openly FROM notes ORDER BY id"
        )
        names = ("title", "slot", "kind", "pinned", "status", "by", "open")
        assert rows == [(key, *(self.model[key][name] for name in names)) for key in sorted(self.model)]
        for key, one in self.model.items():
            assert set(self.memory.inspect(key).scenes) == one["scenes"]

    @invariant()
    def what_binds_is_what_a_person_wants(self):
        if not hasattr(self, "memory"):
            return
        found = self.memory.recall_by_situation(ANN).notes
        binding = {
            key for key, one in self.model.items()
            if one["status"] == "live" and self.binds(one) and (one["open"] or "chan:qq" in one["scenes"])
        }  # fmt: skip
        assert {note.id for note in found} >= binding
        assert all(self.model[note.id]["open"] or "chan:qq" in self.model[note.id]["scenes"] for note in found)

    @invariant()
    def the_file_is_sound(self):
        if not hasattr(self, "memory"):
            return
        assert self.memory.check().ok
        assert all(one["by"] in {None, *self.model} for one in self.model.values())
        told = text_index_of(self.path)
        self.memory.reindex()
        assert text_index_of(self.path) == told


def test_any_sequence_of_verbs_on_notes():
    run_state_machine_as_test(Machine, settings=settings(max_examples=examples(50), stateful_step_count=20))
