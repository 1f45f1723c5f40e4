"""How often a verb waits for the server: each time takes as long as the way there and back."""

import os
import secrets

import pytest

from graphmem import Memory, Situation

ADDRESS = os.environ.get("GRAPHMEM_POSTGRES")
pytestmark = pytest.mark.skipif(not ADDRESS, reason="needs a server: scripts/postgres run ...")

PERSON = Situation.of(chan="qq", peer="ann", topics=["tea", "rain"])
ROOM = Situation.of(chan="room", tool="editor", topics=["tea", "rain"])
NO_CHANNEL = Situation.of(tool="editor", topics=["tea", "rain"])


@pytest.fixture
def memory():
    import psycopg

    from graphmem.store.postgres import tenants
    from graphmem.store.postgres.address import parsed

    address = f"{ADDRESS}?tenant=trips_{secrets.token_hex(8)}"
    with Memory.open(address) as memory:
        yield memory
    with psycopg.connect(ADDRESS, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        tenants.remove(connection, parsed(address))


@pytest.fixture
def waits(monkeypatch):
    """Return what counts how often a call waits for the server."""
    from graphmem.store.postgres.connecting import Connection

    waited = []
    settle = Connection.settle
    monkeypatch.setattr(Connection, "settle", lambda self: (waited.append(1), settle(self)))

    def count(act):
        waited.clear()
        act()
        return len(waited)

    return count


def grow(memory, here):
    for _ in range(3):
        visit = memory.enter_scene(here)
    assert visit.key
    assert not visit.created
    return visit


@pytest.mark.parametrize("here", [PERSON, ROOM])
def test_a_turn_that_joins_its_scene_takes_two(memory, waits, here):
    grow(memory, here)

    assert waits(lambda: memory.enter_scene(here)) == 2


@pytest.mark.parametrize("here", [PERSON, ROOM])
def test_a_turn_that_brings_a_new_word_takes_two(memory, waits, here):
    grow(memory, here)
    other = Situation.of(**{feature.kind: feature.value for feature in here.given if feature.kind != "topic"},
                         topics=["tea", "snow"])  # fmt: skip

    assert waits(lambda: memory.enter_scene(other)) == 2


def test_a_turn_that_declares_scenes_which_are_there_takes_two(memory, waits):
    grow(memory, PERSON)
    memory.enter_scene(PERSON, declared=["project:tea", "chan:qq"])

    assert waits(lambda: memory.enter_scene(PERSON, declared=["project:tea", "chan:qq"])) == 2


def test_people_with_several_scenes_cost_no_more(memory, waits):
    for channel in "abcdefgh":
        grow(memory, Situation.of(chan=channel, peer="ann"))

    assert waits(lambda: memory.enter_scene(Situation.of(chan="c", peer="ann"))) == 2


@pytest.mark.parametrize("here", [PERSON, ROOM, NO_CHANNEL])
def test_a_turn_for_whose_words_a_scene_has_no_more_room_takes_two(memory, waits, here):
    named = {feature.kind: feature.value for feature in here.given if feature.kind != "topic"}
    grow(memory, here)
    for turn in range(40):
        memory.enter_scene(Situation.of(**named, topics=["tea", "rain", f"word{turn}", f"other{turn}"]))
    (scene,) = memory.scenes(origin="emergent")
    assert len(memory.scene(scene.key).features) == memory.config.scene_features

    assert waits(lambda: memory.enter_scene(Situation.of(**named, topics=["tea", "rain", "snow"]))) == 2


def test_a_turn_without_a_channel_takes_two(memory, waits):
    """The scenes that most of its words lead to come with what they are made of."""
    grow(memory, NO_CHANNEL)

    assert waits(lambda: memory.enter_scene(NO_CHANNEL)) == 2


def test_a_turn_on_a_channel_of_many_scenes_takes_two(memory, waits):
    for tool in range(80):
        grow(memory, Situation.of(chan="room", tool=f"tool{tool}", topics=[f"topic{tool}"]))

    assert waits(lambda: memory.enter_scene(Situation.of(chan="room", tool="tool7", topics=["topic7"]))) == 2


@pytest.mark.parametrize("here", [PERSON, ROOM, NO_CHANNEL])
def test_a_turn_that_joins_nothing_takes_two(memory, waits, here):
    """What was counted before is asked for along with the scenes."""
    memory.enter_scene(Situation.of(chan="elsewhere"))

    assert waits(lambda: memory.enter_scene(here)) == 2


@pytest.mark.parametrize("here", [PERSON, ROOM, NO_CHANNEL])
def test_the_turn_that_makes_a_scene_takes_two(memory, waits, here):
    memory.enter_scene(here)

    assert waits(lambda: memory.enter_scene(here)) == 2
    assert memory.enter_scene(here).strength == 2


def test_a_turn_that_declares_new_scenes_takes_two(memory, waits):
    assert waits(lambda: memory.enter_scene(PERSON, declared=["project:tea", "chan:qq"])) == 2


def test_a_scene_that_is_declared_in_the_turn_that_makes_it_is_made_once(memory):
    """Its number was asked for while its key was free."""
    memory.enter_scene(ROOM)
    visit = memory.enter_scene(ROOM, declared=["auto:chan:room_tool:editor"])

    assert (visit.key, visit.strength) == ("auto:chan:room_tool:editor", 2)
    assert memory.check().problems == ()


def test_to_look_which_scenes_answer_takes_three(memory, waits):
    """Which one is joined, which ones answer, and the end: a connection is given back when it is free again."""
    grow(memory, PERSON)

    assert waits(lambda: memory.match_scenes(PERSON)) == 3
