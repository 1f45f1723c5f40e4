"""The graph as networkx sees it: parts of it as a MultiDiGraph, ways through it, ranks, pictures of it as text."""

import itertools
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import networkx as nx
import numpy as np

from graphmem.core.choices import PICTURE_FORMS
from graphmem.core.model import FactPath
from graphmem.errors import InvalidInput, NotFound
from graphmem.graph.entities import require
from graphmem.graph.neighbours import Edge, Reading, facts_around, told
from graphmem.graph.scenes import below
from graphmem.late import late
from graphmem.store.lists import in_parts, rows_about
from graphmem.store.transaction import Transaction

if TYPE_CHECKING:
    from graphmem.core import pictures
else:
    pictures = late("graphmem.core.pictures")

Graph: TypeAlias = nx.MultiDiGraph

# Tables of facts, each with the sentence that tells it here: `told_in` of `_add_facts`.
_TOLD = "(SELECT id, sentence_id, 1.0 AS weight FROM relations)"
_TOLD_IN = """(SELECT ref.ref_id AS id, ref.sentence_id, ref.weight FROM scene_refs ref
               WHERE ref.kind = 'relation' AND ref.scene_id IN (SELECT id FROM ({scenes}) chosen))"""
_DAMPING, _STEPS = 0.85, 32
MOST_DRAWN = 400  # entities of a picture to look at
_LAYOUT_STEPS = 120
# What Mermaid would read as its own, or as HTML or Markdown.
_MERMAID = frozenset('"#&<>`*_~|[]{}()\\')
# Besides control characters, which `_line` replaces, XML has no place for these.
_NO_XML = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")


def graph(tx: Transaction, reading: Reading, *, scene: str | None, entity: str | None, depth: int) -> Graph:
    """Return the facts at and below a scene, or all, as a graph; around an entity, those within `depth` hops of it.

    A scene has its own words for a fact; of several scenes those of the heaviest ref are taken.
    """
    within = None if scene is None else below([scene])
    if within and not tx.execute(f"SELECT 1 FROM ({within.sql}) chosen LIMIT 1", within.parameters).fetchone():
        raise NotFound(f"scene: there is none at or below {scene!r}")
    center = None if entity is None else require(tx, entity, reading.scopes, argument="entity")[0]
    picture = nx.MultiDiGraph()
    if center is not None:
        picture.add_node(center)
    if within is not None:
        _add_facts(tx, picture, reading, _TOLD_IN.format(scenes=within.sql), within.parameters)
    elif center is None:
        _add_facts(tx, picture, reading, _TOLD, [])
    else:
        for ids, places in in_parts(_within_reach(tx, center, reading, depth)):
            _add_facts(tx, picture, reading, f"(SELECT * FROM {_TOLD} told WHERE id IN ({places}))", ids)
    if within is not None and center is not None:
        picture = nx.ego_graph(picture, center, radius=depth, undirected=True)
    asked = "SELECT id, name, type, mention_count FROM entities WHERE id IN ({marks})"
    for entity_id, name, kind, mentions in rows_about(tx, asked, list(picture)):
        picture.add_node(entity_id, name=name, type=kind, mentions=mentions)
    return picture


def _add_facts(tx: Transaction, picture: Graph, reading: Reading, told_in: str, parameters: Iterable[object]) -> None:
    condition, read = reading.condition()
    rows = tx.execute(
        f"""SELECT r.source_id, r.target_id, r.id, r.relation_type, COALESCE(t.text, ''), r.confidence,
                   r.valid_from, r.valid_to
            FROM {told_in} k JOIN relations r ON r.id = k.id LEFT JOIN sentences t ON t.id = k.sentence_id
            WHERE {condition} ORDER BY r.id, k.weight""",
        (*parameters, *read),
    )
    # Of several words for one fact the heaviest come last, and an edge that is added again takes them.
    for source, target, relation_id, relation, sentence, confidence, valid_from, valid_to in rows:
        picture.add_edge(
            source,
            target,
            relation_id,
            relation=relation,
            sentence=sentence,
            confidence=confidence,
            valid_from=valid_from,
            valid_to=valid_to,
        )


def _within_reach(tx: Transaction, center: int, reading: Reading, depth: int) -> list[int]:
    """Return the facts whose two ends lie within `depth` hops of an entity."""
    reached = {center}
    layer = {center}
    edges: dict[int, Edge] = {}
    for hops in range(depth + 1):
        around = facts_around(tx, layer, reading)
        edges |= {edge.id: edge for edge in around}
        if hops == depth or not layer:
            break
        layer = _ends(around) - reached
        reached |= layer
    return [edge.id for edge in edges.values() if edge.source in reached and edge.target in reached]


def _ends(edges: Iterable[Edge]) -> set[int]:
    return {end for edge in edges for end in (edge.source, edge.target)}


# ---- ways


def shortest_path(tx: Transaction, start: str, end: str, reading: Reading) -> FactPath:
    """Return the shortest way from one entity to another along facts, in either direction of each.

    It is looked for from both ends at once, the smaller front first, so that little of the graph is read.
    """
    (source, source_name), (target, target_name) = (
        require(tx, name, reading.scopes, argument=argument) for argument, name in (("start", start), ("end", end))
    )
    seen = nx.MultiGraph()
    seen.add_nodes_from((source, target))
    fronts = [{source}, {target}]
    reached = [{source}, {target}]
    while all(fronts) and reached[0].isdisjoint(reached[1]):
        side = int(len(fronts[1]) < len(fronts[0]))
        edges = facts_around(tx, fronts[side], reading)
        seen.add_edges_from((edge.source, edge.target, edge.id, {"edge": edge}) for edge in edges)
        fronts[side] = _ends(edges) - reached[side]
        reached[side] |= fronts[side]
    if not nx.has_path(seen, source, target):
        return FactPath(source_name, target_name, connected=False)
    way = nx.shortest_path(seen, source, target)
    steps = [_surest(data["edge"] for data in seen[here][there].values()) for here, there in itertools.pairwise(way)]
    return FactPath(source_name, target_name, connected=True, steps=told(tx, [step.id for step in steps]))


def _surest(edges: Iterable[Edge]) -> Edge:
    return max(edges, key=lambda edge: (edge.confidence, edge.updated_at, edge.id))


# ---- ranks


def page_rank(edges: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return the PageRank of the nodes of an undirected weighted graph; the ranks sum up to 1.

    Power iteration over the dense Google matrix, n x n: `networkx.pagerank` would need scipy. Whoever asks bounds n;
    a thousand nodes take 8 MB. Brin and Page, "The Anatomy of a Large-Scale Hypertextual Web Search Engine" (1998), at
    their damping of 0.85: 32 steps leave 0.85^32, half a percent, of the mass where it does not belong.

    >>> {node: round(rank, 2) for node, rank in page_rank({("a", "b"): 1.0, ("b", "c"): 1.0}).items()}
    {'a': 0.26, 'b': 0.49, 'c': 0.26}
    """
    if not edges:
        return {}
    picture = nx.Graph()
    picture.add_weighted_edges_from((one, other, weight) for (one, other), weight in edges.items())
    moves = nx.google_matrix(picture, alpha=_DAMPING)
    ranks = np.full(len(picture), 1 / len(picture))
    for _ in range(_STEPS):
        ranks = ranks @ moves
    return dict(zip(picture, ranks.tolist(), strict=True))


# ---- pictures


def draw(picture: Graph, form: str) -> str:
    """Return a graph as text in one of PICTURE_FORMS; raise InvalidInput for another form."""
    if not isinstance(form, str) or form not in PICTURE_FORMS:
        raise InvalidInput("form", form, f"give one of {', '.join(PICTURE_FORMS)}")
    return _WRITERS[form](picture)


def _dot(picture: Graph) -> str:
    lines = ["digraph memory {", "  rankdir=LR;"]
    lines += [f"  n{node} [label={_quoted(name)}];" for node, name in picture.nodes(data="name")]
    lines += [
        f"  n{source} -> n{target} [label={_quoted(relation)}];"
        for source, target, relation in picture.edges(data="relation")
    ]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    r"""Return a text as a string of the DOT language.

    >>> print(_quoted('say "hi" \\N'))
    "say \"hi\" \\N"
    """
    return '"' + _line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _mermaid(picture: Graph) -> str:
    lines = ["flowchart LR"]
    lines += [f'  n{node}["{_escaped(name)}"]' for node, name in picture.nodes(data="name")]
    lines += [
        f'  n{source} -->|"{_escaped(relation)}"| n{target}'
        for source, target, relation in picture.edges(data="relation")
    ]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Return a text with the characters of `_MERMAID` by number.

    >>> _escaped('<b>"C#"')
    '#60;b#62;#34;C#35;#34;'
    """
    return "".join(f"#{ord(c)};" if c in _MERMAID else c for c in _line(text))


def _line(text: str) -> str:
    """Return a text as one line that no control character breaks."""
    return "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)


def _json(picture: Graph) -> str:
    nodes = [{"id": node, **values} for node, values in picture.nodes(data=True)]
    edges = [
        {"id": key, "source": source, "target": target, **values}
        for source, target, key, values in picture.edges(keys=True, data=True)
    ]
    return json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False, indent=2)


def _graphml(picture: Graph) -> str:
    """Return GraphML; it knows no empty values, and XML no control characters."""
    plain = nx.MultiDiGraph()
    plain.add_nodes_from((node, _written(values)) for node, values in picture.nodes(data=True))
    plain.add_edges_from(
        (source, target, key, _written(values)) for source, target, key, values in picture.edges(keys=True, data=True)
    )
    return "\n".join(nx.generate_graphml(plain))


def _written(values: dict[str, object]) -> dict[str, object]:
    return {
        name: _line(value).translate(_NO_XML) if isinstance(value, str) else value
        for name, value in values.items()
        if value is not None
    }


def _svg(picture: Graph, *, hovers: bool = False) -> str:
    return pictures.svg(drawing(picture, MOST_DRAWN), hovers=hovers)


def drawing(picture: Graph, most: int) -> pictures.Drawing:
    """Return where things stand in a picture; of more entities than `most` those with the most facts are in it."""
    drawn = picture
    if len(picture) > most:
        heaviest = sorted(picture.degree, key=lambda each: (-each[1], each[0]))[:most]
        drawn = picture.subgraph(node for node, _ in heaviest)
    things = {
        node: pictures.Thing(node, _line(values["name"]), values["type"], drawn.degree(node))
        for node, values in sorted(drawn.nodes(data=True))
    }
    facts: dict[tuple[int, int], dict[str, list[str]]] = {}
    for source, target, _, values in sorted(drawn.edges(keys=True, data=True), key=lambda edge: edge[2]):
        told = f"{things[source].name} - {_line(values['relation'])} -> {things[target].name}"
        sentence = f": {_line(values['sentence'])}" if values["sentence"] else ""
        facts.setdefault((source, target), {}).setdefault(_line(values["relation"]), []).append(told + sentence)
    ties = [
        pictures.Tie(*ends, tuple(relations), tuple(itertools.chain(*relations.values())))
        for ends, relations in facts.items()
    ]
    plain = nx.Graph()
    plain.add_nodes_from(things)
    plain.add_edges_from(ends for ends in facts if ends[0] != ends[1])
    clusters = [
        _layout(plain, sorted(cluster))
        for cluster in sorted(nx.connected_components(plain), key=lambda cluster: (-len(cluster), min(cluster)))
    ]
    return pictures.Drawing(things, ties, pictures.plan(clusters, things, ties), whole=len(picture))


def _layout(plain: nx.Graph, cluster: list[int]) -> dict[int, tuple[float, float]]:
    """Return places within -1 to 1, the same ones for the same graph.

    Fruchterman and Reingold, "Graph Drawing by Force-directed Placement" (1991); networkx has it without scipy for
    fewer than 500 nodes.
    """
    part = nx.Graph()
    part.add_nodes_from(cluster)
    part.add_edges_from(sorted(plain.edges(cluster)))
    places = nx.spring_layout(part, seed=1, iterations=_LAYOUT_STEPS)
    return {node: (float(x), float(y)) for node, (x, y) in places.items()}


def _html(picture: Graph) -> str:
    return pictures.page(_svg(picture, hovers=True))


_WRITERS: dict[str, Callable[[Graph], str]] = {
    "dot": _dot,
    "mermaid": _mermaid,
    "json": _json,
    "graphml": _graphml,
    "svg": _svg,
    "html": _html,
}
