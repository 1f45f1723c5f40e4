"""Pictures to look at: what must not overlap does not, what is cut is told, and no name gets out of its place."""

import base64
import hashlib
import itertools
import json
import random
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem import Memory, Triple
from graphmem.core import pictures

NASTY = "</script><img src=x onerror=alert(1)>]]>&\"'"[:50]
SVG = "{http://www.w3.org/2000/svg}"


def facts(number, seed=1, loose=0.1):
    """Facts of so many things, of which few have many; some stand apart."""
    chance = random.Random(seed)
    names = [f"{chance.choice(['Ann', 'Service', '部署清单', 'Release notes of'])} {n}" for n in range(number)]
    told = [
        Triple(
            names[n],
            chance.choice(["knows", "偏好", "is part of"]),
            names[min(int(chance.paretovariate(1)) - 1, n - 1)],
        )
        for n in range(1, number)
        if chance.random() > loose
    ]
    pairs = [(n, (n + 1) % number) for n in range(number)]
    return [*told, *(Triple(names[a], "is near", names[b]) for a, b in pairs if chance.random() < 0.3 or loose)][
        : 4 * number
    ]


@pytest.fixture
def drawn():
    def draw(triples, form="svg", **options):
        with Memory.open(":memory:") as memory:
            memory.commit(triples)
            return memory.draw(form, **options)

    return draw


def circles(root):
    """The circle of each thing, as a box."""
    found = []
    for node in root.iter(f"{SVG}g"):
        (circle,) = node.iter(f"{SVG}circle")
        x, y, r = (float(circle.get(name)) for name in ("cx", "cy", "r"))
        found.append(pictures.Box(x - r, y - r, x + r, y + r))
    return found


def names(root):
    """The names that are shown, each with its box as it was written, a little smaller for what is rounded."""
    found = []
    for text in root.iter(f"{SVG}text"):
        x, y, size = (float(text.get(name)) for name in ("x", "y", "font-size"))
        half = pictures.width_of(text.text) * size / 2
        found.append((text.text, pictures.Box(x - half + 1, y - 0.9 * size, x + half - 1, y + 0.25 * size)))
    return found


def overlapping(boxes):
    return [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number", [2, 10, 38])
def test_of_a_few_things_each_bears_its_name_and_nothing_overlaps(drawn, number, seed):
    root = ET.fromstring(drawn(facts(number, seed)))  # noqa: S314 (our own words)

    things, shown = circles(root), names(root)
    assert len([text for text, _ in shown if re.search(r"\d$|…$", text)]) >= len(things)
    assert overlapping([*things, *(box for _, box in shown)]) == []


@pytest.mark.parametrize("seed", range(2))
def test_of_two_hundred_the_weightiest_bear_their_names_and_nothing_overlaps(drawn, seed):
    triples = facts(200, seed)
    root = ET.fromstring(drawn(triples))  # noqa: S314

    things, shown = circles(root), names(root)
    count = {}
    for triple in triples:
        for name in (triple.subject, triple.object):
            count[name] = count.get(name, 0) + 1
    heaviest = sorted(count, key=count.get, reverse=True)[:15]
    assert {pictures.cut(name, 22) for name in heaviest} <= {text for text, _ in shown}
    assert 60 < len(shown) <= len(things) == len(count)
    assert overlapping([*things, *(box for _, box in shown)]) == []


def test_all_of_it_lies_within_the_picture(drawn):
    for number in (1, 10, 200):
        root = ET.fromstring(drawn(facts(number) or [Triple("a", "is", "b")]))  # noqa: S314
        _, _, width, height = map(float, root.get("viewBox").split())
        for box in [*circles(root), *(box for _, box in names(root))]:
            assert 0 <= box.left < box.right <= width
            assert 0 <= box.top < box.bottom <= height


def test_the_same_graph_is_the_same_picture(drawn):
    assert drawn(facts(60)) == drawn(facts(60))


def test_of_too_many_those_with_the_most_facts_are_drawn_and_that_is_told(drawn):
    picture = drawn([Triple("hub", "knows", f"leaf {n}") for n in range(500)])

    root = ET.fromstring(picture)  # noqa: S314
    assert len(circles(root)) == 400
    assert "400 of 501 entities are drawn, those with the most facts" in [text for text, _ in names(root)]


def test_what_has_no_room_is_told_under_the_pointer(drawn):
    long = "a name that is as long as fifty characters can be."
    told = [Triple("a", "knows", long, sentence="As <b>Ann</b> said."), Triple("a", "likes", long)]
    root = ET.fromstring(drawn(told))  # noqa: S314

    told = [title.text for title in root.iter(f"{SVG}title")]
    assert f"a - knows -> {long}: As <b>Ann</b> said.\na - likes -> {long}" in told
    assert f"{long}\nConcept" in told
    assert "knows, likes" in [text for text, _ in names(root)]


def test_kinds_have_colours_and_a_legend(memory):
    memory.commit([Triple("a", "knows", "b")])
    with memory._store.write() as tx:
        tx.execute("UPDATE entities SET type = 'Person' WHERE name = 'a'")

    root = ET.fromstring(memory.draw("svg"))  # noqa: S314

    assert {"Person", "Concept"} <= {text for text, _ in names(root)}
    assert len({circle.get("fill") for circle in root.iter(f"{SVG}circle")}) == 2


@pytest.mark.parametrize("form", ["svg", "html"])
def test_no_name_is_read_as_markup(drawn, form):
    picture = drawn([Triple(NASTY, NASTY, "\x00\x1b\ufffe\u2028", sentence=NASTY)], form)

    assert "<img" not in picture
    assert picture.count("</script>") == (form == "html")
    assert not re.search("[\x00\x1b\ufffe\u2028]", picture)


def test_things_of_a_picture_on_a_page_lead_where_they_are_told_of(memory):
    memory.commit(facts(60))
    drawing = memory.picture()
    (heaviest, *_) = sorted(drawing.things.values(), key=lambda thing: -thing.weight)

    svg = pictures.linked(drawing, 'of "all"', lambda thing: f"/x?{thing.id}&y", here=heaviest.name)

    root = ET.fromstring(svg)  # noqa: S314 (our own)
    assert root.get("aria-label") == 'of "all"'
    links = {node.get("href"): node for node in root.iter("a")}
    assert links.keys() == {f"/x?{number}&y" for number in drawing.things}
    assert [href for href, node in links.items() if node.get("aria-current")] == [f"/x?{heaviest.id}&y"]
    assert not [node for node in root.iter() if node.tag in ("style", "script") or node.get("style")]


def test_what_turns_lines_around_is_in_no_picture(memory):
    memory.commit([Triple("a\u202eb", "is\u2066", "c")])

    assert not {"\u202e", "\u2066"} & set(memory.draw("svg"))


def test_a_page_runs_its_own_script_and_loads_nothing(drawn):
    page = drawn(facts(60), "html")

    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert not re.search(r"(?:src|href)=|@import|url\((?!#)", page)
    assert [url for url in re.findall("https?://[^\"' ]*", page) if url != "http://www.w3.org/2000/svg"] == []
    assert page.count('class="thin"') + len(names(ET.fromstring(drawn(facts(60))))) >= 60  # noqa: S314


@pytest.mark.needs_node
@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_the_script_of_a_page_marks_what_is_near_and_moves_the_picture(drawn, tmp_path):
    page = drawn([Triple("a", "knows", "b"), Triple("c", "knows", "d")], "html")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    (tmp_path / "page.js").write_text(DOCUMENT + script + ACTS, "utf-8")

    ran = subprocess.run(["node", tmp_path / "page.js"], capture_output=True, text=True, check=True)

    assert json.loads(ran.stdout) == {
        "near": ["n1", "n1 n2", "n2"],
        "after": [],
        "moved": "-10 -20 100 50",
        "whole": "0 0 100 50",
    }


# As much of a page as the script asks for.
DOCUMENT = """
const on = {};
function made(id, of) {
  const own = { id, dataset: { of }, marks: new Set(), heard: {} };
  own.classList = { toggle: (name, is) => is ? own.marks.add(name) : own.marks.delete(name) };
  own.addEventListener = (name, act) => { own.heard[name] = act; };
  return own;
}
const nodes = ["n1", "n2", "n3", "n4"].map(id => made(id)), ties = [made("", "n1 n2"), made("", "n3 n4")];
const picture = { ...made("svg"), attributes: { viewBox: "0 0 100 50" }, clientWidth: 100, clientHeight: 50,
  getAttribute: name => picture.attributes[name],
  setAttribute: (name, value) => { picture.attributes[name] = value; },
  querySelectorAll: what => what === ".node" ? nodes : ties };
const document = { querySelector: () => picture, getElementById: id => nodes.find(node => node.id === id) };
const window = { addEventListener: (name, act) => { on[name] = act; } };
"""
ACTS = """
const marked = () => [...nodes, ...ties].filter(each => each.marks.has("near")).map(each => each.id || each.dataset.of);
nodes[0].heard.pointerenter();
const shown = [...new Set(marked())].sort();
nodes[0].heard.pointerleave();
const after = marked();
picture.heard.pointerdown({ clientX: 0, clientY: 0 });
on.pointermove({ clientX: 10, clientY: 20 });
const moved = picture.attributes.viewBox;
picture.heard.dblclick();
console.log(JSON.stringify({ near: shown, after, moved, whole: picture.attributes.viewBox }));
"""


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.text(max_size=30)), min_size=1, max_size=40),
    st.booleans(),
)
def test_wherever_a_layout_puts_things_no_two_overlap(places, together):
    things = {number: pictures.Thing(number, name) for number, (_, _, name) in enumerate(places)}
    at = {number: (x, y) for number, (x, y, _) in enumerate(places)}
    clusters = [at] if together else [{number: place} for number, place in at.items()]

    plan = pictures.plan(clusters, things, [])

    boxes = [pictures._circle(things[number], middle) for number, middle in plan.middles.items()]
    assert len(plan.names) == len(things)
    shown = [label.box for label in plan.names.values() if label.text]
    assert overlapping([*boxes, *shown]) == []
