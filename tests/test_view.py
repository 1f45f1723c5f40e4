"""The graph as networkx sees it: what is in it, ways through it, pictures of it."""

import json
import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import pytest
from conftest import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dump

from graphmem import InvalidInput, Memory, NotFound, Triple

RULE = Triple("老大", "偏好", "纯文本", sentence="老大说用纯文本。", confidence=0.9, valid_from="2026-01-01")
NASTY = 'a"b\\c\nd\x1b[2J<e>#f;|g]`h'


def named(graph):
    """Edges by names."""
    names = graph.nodes(data="name")
    return sorted((names[a], relation, names[b]) for a, b, relation in graph.edges(data="relation"))


def knows(memory, *pairs, **options):
    memory.commit([Triple(a, "knows", b) for a, b in pairs], **options)


def steps(path):
    return [(fact.subject, fact.object) for fact in path.steps]


# ---- graphs


def test_nodes_and_edges_carry_what_is_known_of_them(memory):
    (relation,) = memory.commit([RULE]).relations

    graph = memory.graph()

    assert isinstance(graph, nx.MultiDiGraph)
    (source, target), ((a, b, key, values),) = graph.nodes(data=True), graph.edges(keys=True, data=True)
    assert [source[1], target[1]] == [
        {"name": "老大", "type": "Concept", "mentions": 1},
        {"name": "纯文本", "type": "Concept", "mentions": 1},
    ]
    assert (a, b, key) == (source[0], target[0], relation)
    assert values == {
        "relation": "偏好",
        "sentence": "老大说用纯文本。",
        "confidence": 0.9,
        "valid_from": "2026-01-01T00:00:00.000Z",
        "valid_to": None,
    }


def test_several_facts_between_two_are_several_edges(memory):
    memory.commit([Triple("a", "likes", "b"), Triple("a", "knows", "b"), Triple("b", "likes", "a")])

    assert named(memory.graph()) == [("a", "knows", "b"), ("a", "likes", "b"), ("b", "likes", "a")]


def test_an_empty_memory_is_an_empty_graph(memory):
    assert len(memory.graph()) == 0


def test_a_scene_is_drawn_with_those_below_it_in_its_own_words(memory):
    for scene, sentence in (("chan:qq", "one"), ("chan:qq/peer:boss", "two"), ("chan:web", "three")):
        memory.commit([Triple("a", "knows", scene), Triple("a", "knows", "b", sentence=sentence)], scenes=scene)

    assert [each[2] for each in named(memory.graph(scene="chan:QQ"))] == ["b", "chan:qq", "chan:qq/peer:boss"]
    (told,) = (text for *_, text in memory.graph(scene="chan:qq/peer:boss").edges(data="sentence") if text)
    assert told == "two"


def test_of_several_scenes_the_words_of_the_heaviest_are_taken(memory):
    for scene, confidence in (("chan:qq/peer:a", 0.9), ("chan:qq/peer:b", 0.5)):
        memory.commit([Triple("a", "knows", "b", sentence=scene, confidence=confidence)], scenes=scene)

    assert [*memory.graph(scene="chan:qq").edges(data="sentence")] == [(1, 2, "chan:qq/peer:a")]


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_around_an_entity_lies_what_networkx_finds_within_as_many_hops(memory, depth):
    knows(memory, "ab", "cb", "cd", "da", "de", "ef", "bb", "xy")
    everything = memory.graph()
    (center,) = (node for node, name in everything.nodes(data="name") if name == "b")

    graph = memory.graph(entity="B", depth=depth)

    expected = nx.ego_graph(everything, center, radius=depth, undirected=True)
    assert (graph.nodes(data=True), sorted(graph.edges(keys=True))) == (
        expected.nodes(data=True),
        sorted(expected.edges(keys=True)),
    )


def test_around_an_entity_within_a_scene(memory):
    knows(memory, "ab", "bc", "cd", scenes="chan:qq")
    knows(memory, "be")
    knows(memory, "zz")

    assert named(memory.graph(scene="chan:qq", entity="b")) == [("a", "knows", "b"), ("b", "knows", "c")]
    assert [name for _, name in memory.graph(scene="chan:qq", entity="z").nodes(data="name")] == ["z"]


def test_only_what_holds_and_may_be_read_is_drawn(memory):
    memory.commit([Triple("a", "was", "b", valid_to="2026-01-01"), Triple("a", "is", "c")])
    memory.commit([Triple("a", "hides", "d")], scope="private")

    assert [relation for _, relation, _ in named(memory.graph(scopes="all"))] == ["hides", "is"]
    assert [relation for _, relation, _ in named(memory.graph(at="2025-06-01", scopes="all"))] == ["hides", "is", "was"]
    assert [relation for _, relation, _ in named(memory.graph(entity="a", scopes=["other"]))] == ["is"]


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"entity": "nobody"}, NotFound, "'nobody'"),
        ({"entity": " "}, InvalidInput, "entity"),
        ({"entity": 5}, InvalidInput, "entity"),
        ({"scene": "chan:nope"}, NotFound, "chan:nope"),
        ({"scene": ""}, InvalidInput, "scene"),
        ({"depth": -1}, InvalidInput, "depth"),
        ({"at": "soon"}, InvalidInput, "at = "),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(memory, options, error, told):
    with pytest.raises(error, match=re.escape(told)):
        memory.graph(**options)


def test_drawing_and_looking_for_ways_write_nothing(memory, path):
    knows(memory, "ab", scenes="chan:qq")
    before = dump(path)

    memory.graph(scene="chan:qq").clear()
    memory.draw("dot")
    memory.shortest_path("a", "b")

    assert dump(path) == before


# ---- ways


def test_a_way_follows_facts_in_either_direction(memory):
    knows(memory, "ab", "cb", "cd", "ax", "xy", "yz", "zd")

    path = memory.shortest_path("A", " d ")

    assert (path.start, path.end, path.connected) == ("a", "d", True)
    assert steps(path) == [("a", "b"), ("c", "b"), ("c", "d")]


def test_of_several_facts_between_two_the_surest_is_told(memory):
    memory.commit([Triple("a", "may be", "b", confidence=0.3), RULE, Triple("b", "is", "a", confidence=0.8)])

    (step,) = memory.shortest_path("a", "b").steps

    assert step.relation == "is"


def test_no_way_is_said_and_no_error(memory):
    knows(memory, "ab", "cd")

    path = memory.shortest_path("a", "d")

    assert (path.connected, path.steps) == (False, ())


def test_the_way_to_itself_has_no_steps(memory):
    knows(memory, "ab")

    path = memory.shortest_path("a", "A")

    assert (path.connected, path.steps) == (True, ())


def test_a_way_holds_at_an_instant_and_within_scopes(memory):
    memory.commit([Triple("a", "knew", "b", valid_to="2026-01-01")])
    memory.commit([Triple("a", "hides", "c")], scope="private")
    memory.commit([Triple("c", "is", "d")])

    assert [memory.shortest_path("a", "b", at=at).connected for at in (None, "2025-01-01")] == [False, True]
    assert [memory.shortest_path("a", "c", scopes=scopes).connected for scopes in ("all", ["other"])] == [True, False]


@pytest.mark.parametrize(
    ("unknown", "told"),
    [
        ("marakesh", "Marrakesh"),
        ("老大爷", "老大"),
        ("boss2", "boss"),
        ("qqqqqq", None),
        ("\ud83d", None),
        ("x" * 5000, None),
    ],
)
def test_an_unknown_name_is_told_with_those_close_to_it(memory, unknown, told):
    knows(memory, ("Marrakesh", "老大"), ("boss", "Eve"))

    with pytest.raises(NotFound) as error:
        memory.shortest_path("boss", unknown)

    assert str(error.value).startswith("end: ")
    assert ("close to it" in str(error.value)) == (told is not None)
    assert told is None or told in str(error.value)


def test_names_of_other_scopes_are_neither_known_nor_told(memory):
    knows(memory, ("boss", "Evelyn"), scope="private")

    with pytest.raises(NotFound, match=r"Evelyn'$"):
        memory.shortest_path("Evelyn", "boss", scopes=["other"])
    with pytest.raises(NotFound, match=r"Evelin'$"):
        memory.shortest_path("Evelin", "boss", scopes=["other"])


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from("abcdefg")), max_size=12))
def test_a_way_is_as_short_as_networkx_finds_it(pairs):
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "m.db", clock=FakeClock()) as memory:
        knows(memory, ("a", "a"), ("g", "g"), *pairs)
        path = memory.shortest_path("a", "g")

    plain = nx.Graph([("a", "a"), ("g", "g"), *pairs])
    assert path.connected == nx.has_path(plain, "a", "g")
    if path.connected:
        assert len(path.steps) == nx.shortest_path_length(plain, "a", "g")
        here = "a"
        for a, b in steps(path):
            assert here in (a, b)
            here = b if here == a else a
        assert here == "g"


# ---- pictures


def test_a_picture_has_a_place_for_everything_in_it(memory):
    knows(memory, ("ann", "bo"), ("bo", "cy"), ("cy", "ann"), ("bo", "di"), scenes=["chan:qq"])
    knows(memory, ("x", "y"))

    picture = memory.picture(scene="chan:qq")

    assert sorted(thing.name for thing in picture.things.values()) == ["ann", "bo", "cy", "di"]
    assert picture.placed.middles.keys() == picture.things.keys()
    assert (picture.whole, len(picture.ties)) == (4, 4)
    assert memory.picture(scene="chan:qq") == picture
    fewer = memory.picture(scene="chan:qq", most=1)
    assert ([thing.name for thing in fewer.things.values()], fewer.whole, fewer.ties) == (["bo"], 4, [])
    assert len(memory.picture().things) == 6
    assert sorted(thing.name for thing in memory.picture(entity="x").things.values()) == ["x", "y"]


@pytest.mark.parametrize("most", [-1, 401, True, None, "3"])
def test_how_many_a_picture_may_hold_is_bounded(memory, most):
    with pytest.raises(InvalidInput, match="most"):
        memory.picture(most=most)


def test_a_picture_in_mermaid(memory):
    knows(memory, "ab")

    assert memory.draw() == 'flowchart LR\n  n1["a"]\n  n2["b"]\n  n1 -->|"knows"| n2'


def test_a_picture_in_dot(memory):
    knows(memory, "ab")

    assert memory.draw("dot").splitlines() == [
        "digraph memory {",
        "  rankdir=LR;",
        '  n1 [label="a"];',
        '  n2 [label="b"];',
        '  n1 -> n2 [label="knows"];',
        "}",
    ]


def test_no_name_breaks_a_line_of_a_picture(memory):
    memory.commit([Triple(NASTY, NASTY, "b")])

    dot, mermaid = memory.draw("dot").splitlines(), memory.draw("mermaid").splitlines()

    assert [line.split("label=")[1] for line in (dot[2], dot[4])] == ['"a\\"b\\\\c d [2J<e>#f;|g]`h"];'] * 2
    assert len(mermaid) == 4
    assert mermaid[1].startswith('  n1["a#34;b#92;c d #91;2J#60;e#62;#35;f;')
    assert all(line.count('"') == 2 for line in mermaid[1:])


def test_a_picture_in_json_holds_all_that_the_graph_holds(memory):
    memory.commit([RULE, Triple(NASTY, NASTY, "b", sentence=NASTY)])
    graph = memory.graph()

    drawn = json.loads(memory.draw("json"))

    assert drawn["nodes"] == [{"id": node, **values} for node, values in graph.nodes(data=True)]
    assert drawn["edges"] == [
        {"id": key, "source": a, "target": b, **values} for a, b, key, values in graph.edges(keys=True, data=True)
    ]


def test_a_picture_in_graphml_is_read_again_by_networkx(memory):
    memory.commit([RULE, Triple(NASTY, "is", "\x01\ufffe\uffff\x0b", sentence=NASTY)])

    text = memory.draw("graphml")

    ET.fromstring(text)  # noqa: S314 (our own words)
    read = nx.parse_graphml(text, node_type=int, force_multigraph=True)
    assert {name for _, name in read.nodes(data="name")} >= {
        "老大",
        "纯文本",
        NASTY.replace("\n", " ").replace("\x1b", " "),
    }
    assert [key for *_, key in read.edges(keys=True)] == [key for *_, key in memory.graph().edges(keys=True)]


@pytest.mark.parametrize("form", ["png", "", None, ["dot"]])
def test_an_unknown_form_is_refused_by_name(memory, form):
    with pytest.raises(InvalidInput, match="form"):
        memory.draw(form)


@pytest.mark.parametrize("form", ["mermaid", "dot", "json", "graphml"])
def test_an_empty_memory_is_an_empty_picture(memory, form):
    assert memory.draw(form)
