"""Who told something, and recall that asks for a least trust."""

import pytest

from graphmem import InvalidInput, Part, Triple

ALL = {"user", "agent", "tool", "import"}


def fill(memory):
    for source in sorted(ALL):
        memory.commit([Triple("pelican", "seen by", source)], source=f"{source}:x")
        memory.remember(f"pelican note of {source}", source=source)
        memory.put_document(f"a pelican text of {source}", source=source)
    memory.put_block("a pelican block of tool", tool="web")
    memory.put_block("a pelican block of import", source="import")
    memory.mirror(
        "s1",
        [
            Part("m1", role="user", text="the pelican of user"),
            Part("m2", role="assistant", text="the pelican of agent"),
            Part("m3", role="tool", text="the pelican of tool"),
        ],
    )


def tellers(memory, **options):
    return {source for hit in memory.recall("pelican", limit=50, **options) for source in ALL if source in hit.text}


@pytest.mark.parametrize(
    ("trust", "told"),
    [
        (None, ALL),
        ("import", ALL),
        ("tool", {"user", "agent", "tool"}),
        ("agent", {"user", "agent"}),
        ("user", {"user"}),
    ],
)
@pytest.mark.parametrize("kinds", [None, "relation", "note", "document"])
def test_recall_asks_for_a_least_trust(memory, trust, told, kinds):
    fill(memory)

    assert tellers(memory, trust=trust, kinds=kinds) == told


def test_parts_are_told_in_a_role_and_blocks_by_a_tool(memory):
    fill(memory)

    assert tellers(memory, trust="user", kinds="part") == {"user"}
    assert tellers(memory, trust="agent", kinds="part") == {"user", "agent"}
    assert tellers(memory, trust="tool", kinds="block") == {"tool"}
    assert tellers(memory, trust="agent", kinds="block") == set()


def test_a_fact_is_as_trusted_as_its_best_teller(memory):
    memory.commit([Triple("pelican", "is", "white")], source="tool:web")
    assert memory.recall("pelican", trust="user") == ()

    memory.commit([Triple("pelican", "is", "white")], source="user")
    assert len(memory.recall("pelican", trust="user")) == 1


def test_an_unknown_trust_is_refused(memory):
    with pytest.raises(InvalidInput, match="trust"):
        memory.recall("pelican", trust="friend")
