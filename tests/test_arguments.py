"""Arguments that many verbs take: what is of the wrong kind is refused by name, whichever verb it is."""

import inspect

import pytest
from support import dump

from graphmem import InvalidInput, Memory

# What each verb is given for the arguments that it needs.
NEEDED = {
    "a": "Ann", "b": "Bob", "block_id": "blk_1", "dest": "copy.db", "key": "chan:qq", "keys": "chan:qq",
    "kind": "jsonl", "new_key": "chan:a", "note_id": 1, "operation": 1, "parts": [], "path": "memory.db",
    "query": "tea", "relation_id": 1, "root": "tree", "said": "tea", "session": "s1", "source": "Ann",
    "src": "memory.db", "target": "Bob", "text": "tea", "title": "tea",
}  # fmt: skip
FLAGS = [
    (name, parameter.name)
    for name, verb in inspect.getmembers(Memory, callable)
    if not name.startswith("_")
    for parameter in inspect.signature(verb).parameters.values()
    if str(parameter.annotation).startswith("bool")
]


def test_the_flags_of_the_verbs_are_found():
    assert {("forget", "hard"), ("purge", "dry_run"), ("open", "create"), ("recall", "exact")} <= set(FLAGS)
    assert len(FLAGS) >= 30


@pytest.mark.parametrize("wrong", ["no", 1, []])
@pytest.mark.parametrize(("verb", "flag"), FLAGS)
def test_a_flag_is_true_or_false(memory, path, verb, flag, wrong):
    act = getattr(memory, verb)
    needed = {
        name: NEEDED[name]
        for name, parameter in inspect.signature(act).parameters.items()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }
    before = dump(path)

    with pytest.raises(InvalidInput, match=rf"^{flag} = .*give true or false"):
        act(**needed, **{flag: wrong})
    assert dump(path) == before


def test_a_pin_of_an_edit_is_a_flag_too(memory):
    note = memory.remember("tea").note

    with pytest.raises(InvalidInput, match=r"^pinned = .*give true or false"):
        memory.edit_note(note.id, pinned="no")


@pytest.mark.parametrize("wrong", [5, None, {"language": "zh"}])
def test_settings_are_a_config(tmp_path, wrong):
    for act in (Memory.open, Memory.read_log):
        with pytest.raises(InvalidInput, match=r"^config = .*give a Config"):
            act(tmp_path / "m.db", config=wrong)
    assert list(tmp_path.iterdir()) == []
