"""Graphs as pictures: where everything stands so that it can be read, and the SVG and HTML of it.

Up to `_ALL_NAMED` things everything bears its name and no two names overlap. Of more the weightiest do, and the others
where there is room; else a name is shown when the pointer rests on its thing. Every text of a memory is
escaped, and a picture loads nothing.
"""

import base64
import hashlib
import html as escaping
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_ALL_NAMED, _SOME_NAMED = 40, 25
_SIZE, _SMALL = 13.0, 11.0  # of letters, in pixels
_LINE = 1.3  # height of a line, in sizes
_LONGEST, _LONGEST_RELATION = 22.0, 20.0  # of a name, in sizes of a wide character
_EDGE, _MARGIN = 120.0, 24.0
_ROUNDS, _GROWTH = 60, 1.12
_MOST_TOLD = 5
_OTHER = "#8a8f98"
# Okabe and Ito, "Color Universal Design" (2008): told apart by who is colour-blind.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
_NARROW = frozenset("iIjl.,:;'|!()[]{} tfr-")
_WIDE = frozenset("mwMW@%&—…")
_NOWHERE = frozenset("\ufffe\uffff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_STYLE = (
    "text{fill:#1d2129;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}"
    ".fact{fill:none;stroke:#9aa1ab;stroke-width:1.2}.told{fill:#5b626d}.thin{display:none}"
)
_PAGE_STYLE = (
    "html,body{margin:0;height:100%;background:#fff}svg{display:block;width:100vw;height:100vh;cursor:grab;"
    "touch-action:none;user-select:none}.dim .node,.dim .fact,.dim .told{opacity:.15}.dim .near{opacity:1}"
    ".dim .near .thin{display:inline}.dim .fact.near{stroke:#1d2129}"
)
_SCRIPT = """
const svg = document.querySelector("svg"), whole = svg.getAttribute("viewBox").split(" ").map(Number);
let view = whole.slice(), held = null;
const show = () => svg.setAttribute("viewBox", view.join(" "));
const scale = () => Math.max(view[2] / svg.clientWidth, view[3] / svg.clientHeight);
function zoom(by, x, y) {
  const point = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM().inverse());
  view = [point.x + (view[0] - point.x) * by, point.y + (view[1] - point.y) * by, view[2] * by, view[3] * by];
  show();
}
svg.addEventListener("wheel", event => {
  event.preventDefault();
  zoom(Math.exp(event.deltaY * 0.0015), event.clientX, event.clientY);
}, { passive: false });
svg.addEventListener("pointerdown", event => { held = [event.clientX, event.clientY]; });
window.addEventListener("pointerup", () => { held = null; });
window.addEventListener("pointermove", event => {
  if (!held) return;
  view[0] -= (event.clientX - held[0]) * scale();
  view[1] -= (event.clientY - held[1]) * scale();
  held = [event.clientX, event.clientY];
  show();
});
svg.addEventListener("dblclick", () => { view = whole.slice(); show(); });
window.addEventListener("keydown", event => {
  const by = { "+": 0.8, "=": 0.8, "-": 1.25 }[event.key];
  if (by) zoom(by, svg.clientWidth / 2, svg.clientHeight / 2);
  if (event.key === "0") { view = whole.slice(); show(); }
});
const near = new Map();
for (const fact of svg.querySelectorAll("[data-of]")) {
  const ends = fact.dataset.of.split(" ");
  for (const end of ends) near.set(end, [...(near.get(end) || []), fact, ...ends]);
}
for (const node of svg.querySelectorAll(".node")) {
  const marked = (near.get(node.id) || []).concat(node).map(
    each => typeof each === "string" ? document.getElementById(each) : each);
  const mark = on => {
    svg.classList.toggle("dim", on);
    for (const each of marked) each.classList.toggle("near", on);
  };
  node.addEventListener("pointerenter", () => mark(true));
  node.addEventListener("pointerleave", () => mark(false));
}
"""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something in a picture: its number, its name, of which kind it is. weight: the more, the larger it is."""

    id: int
    name: str
    kind: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Tie:
    """What is told of two things, in one direction: the names of facts, and all that is known of them."""

    source: int
    target: int
    relations: tuple[str, ...]
    told: tuple[str, ...] = ()


class Box(NamedTuple):
    """A rectangle: its left, its top, its right and its bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Tell whether two rectangles have more in common than a border.

        >>> Box(0, 0, 2, 2).overlaps(Box(1, 1, 3, 3)), Box(0, 0, 2, 2).overlaps(Box(2, 0, 3, 2))
        (True, False)
        """
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def moved(self, x: float, y: float) -> "Box":
        """Return the rectangle so far to the right and down."""
        return Box(self.left + x, self.top + y, self.right + x, self.bottom + y)


class Label(NamedTuple):
    """A text that is shown: in the middle of its box, which starts one size above its line."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Plan:
    """Where everything stands: middles of things by number, names that are shown, names of facts by ends."""

    size: tuple[float, float]
    middles: Mapping[int, tuple[float, float]]
    names: Mapping[int, Label]
    relations: Mapping[tuple[int, int], Label] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph that has its places: things by number, what ties them, where they stand.

    whole: how many things there are, those that are left out of it included.
    """

    things: Mapping[int, Thing]
    ties: Sequence[Tie]
    placed: Plan
    whole: int

    @property
    def colours(self) -> dict[str, str]:
        """A colour for each of the kinds that there are most of, and one for all others, named ''."""
        return _colours(thing.kind for thing in self.things.values())


def width_of(text: str) -> float:
    """Return about how wide a text is, in sizes of its letters: rather too wide, since fonts differ.

    >>> width_of("老大"), round(width_of("Mill"), 2)
    (2.0, 2.0)
    """
    return sum(map(_width_of_one, text))


def _width_of_one(character: str) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in _NARROW:
        return 0.35
    return 0.95 if character in _WIDE else 0.75 if character.isupper() else 0.65


def cut(text: str, most: float) -> str:
    """Return a text on one line that is not wider than so many sizes; what is cut off is marked.

    >>> cut("a\\nlong name", 20), cut("a very long name", 5)
    ('a long name', 'a very l…')
    """
    line = " ".join(text.split())
    if width_of(line) <= most:
        return line
    room = most - width_of("…")
    kept = ""
    for character in line:
        room -= _width_of_one(character)
        if room < 0:
            break
        kept += character
    return f"{kept.rstrip()}…"


def radius_of(thing: Thing) -> float:
    """Return the radius of the circle of a thing, in pixels."""
    return min(6.0 + 2.0 * math.log2(1.0 + thing.weight), 18.0)


# ---- where everything stands


def plan(
    clusters: Sequence[Mapping[int, tuple[float, float]]], things: Mapping[int, Thing], ties: Sequence[Tie]
) -> Plan:
    """Return where things stand: clusters beside each other, each in its own layout, spread until nothing overlaps.

    clusters: places within -1 to 1 by number.
    """
    by_weight = sorted(things.values(), key=lambda thing: (-thing.weight, thing.id))
    all_named = len(things) <= _ALL_NAMED
    named = frozenset(thing.id for thing in (by_weight if all_named else by_weight[:_SOME_NAMED]))
    middles = _packed([_spread(cluster, things, named) for cluster in clusters], things, named)
    taken = [_circle(things[number], middle) for number, middle in middles.items()]
    names: dict[int, Label] = {}
    for thing in by_weight:
        for label in _beside(thing, middles[thing.id]):
            if not any(label.box.overlaps(box) for box in taken):
                names[thing.id] = label
                taken.append(label.box)
                break
    relations = dict(_told_on_ties(ties, middles, taken)) if all_named else {}
    boxes = [*taken, *(label.box for label in relations.values())]
    if not boxes:
        return Plan((320.0, 80.0), {}, {})
    left, top = min(box.left for box in boxes) - _MARGIN, min(box.top for box in boxes) - _MARGIN
    right, bottom = max(box.right for box in boxes) + _MARGIN, max(box.bottom for box in boxes) + _MARGIN
    return Plan(
        (right - left, bottom - top),
        {number: (x - left, y - top) for number, (x, y) in middles.items()},
        {number: Label(text, box.moved(-left, -top)) for number, (text, box) in names.items()},
        {ends: Label(text, box.moved(-left, -top)) for ends, (text, box) in relations.items()},
    )


def _circle(thing: Thing, middle: tuple[float, float]) -> Box:
    radius = radius_of(thing)
    return Box(middle[0] - radius, middle[1] - radius, middle[0] + radius, middle[1] + radius)


def _beside(thing: Thing, middle: tuple[float, float]) -> Iterator[Label]:
    """Yield the places of a name: below its circle, above it, to the right, to the left."""
    text = cut(thing.name, _LONGEST)
    half, height, radius = width_of(text) * _SIZE / 2, _SIZE * _LINE, radius_of(thing)
    box = Box(-half, 0.0, half, height).moved(*middle)
    yield Label(text, box.moved(0.0, radius + 1))
    yield Label(text, box.moved(0.0, -radius - height - 1))
    for side in (1, -1):
        yield Label(text, box.moved(side * (half + radius + 3), -height / 2))


def _footprint(thing: Thing, middle: tuple[float, float], named: Collection[int]) -> Box:
    """Return what a thing takes up: its circle and, where it has to be named, the name below, with some room around."""
    circle = _circle(thing, middle)
    name = next(_beside(thing, middle)).box if thing.id in named else circle
    room = 5.0 if thing.id in named else 3.0
    return Box(
        min(circle.left, name.left) - room, circle.top - room, max(circle.right, name.right) + room, name.bottom + room
    )


def _spread(
    cluster: Mapping[int, tuple[float, float]], things: Mapping[int, Thing], named: Collection[int]
) -> dict[int, tuple[float, float]]:
    """Return a layout in pixels in which nothing overlaps: what does is pushed apart, else all of it grows."""
    scale = (_EDGE if len(things) <= _ALL_NAMED else _EDGE / 3) * math.sqrt(len(cluster))
    # A turn of the golden angle for each keeps two that stand on one spot apart.
    at = {
        number: [x * scale + math.cos(turn * 2.4), y * scale + math.sin(turn * 2.4)]
        for turn, (number, (x, y)) in enumerate(cluster.items())
    }
    while True:
        for _ in range(_ROUNDS):
            if not _push_apart(at, things, named):
                return {number: (x, y) for number, (x, y) in at.items()}
        for middle in at.values():
            middle[:] = [_GROWTH * each for each in middle]


def _push_apart(at: dict[int, list[float]], things: Mapping[int, Thing], named: Collection[int]) -> bool:
    """Move each two that overlap half of the way that parts them; tell whether there were any."""
    boxes = sorted(
        ((_footprint(things[number], (x, y), named), number) for number, (x, y) in at.items()),
        key=lambda one: (one[0].left, one[1]),
    )
    any_moved = False
    for place, (box, number) in enumerate(boxes):
        for other_box, other in boxes[place + 1 :]:
            if other_box.left >= box.right:
                break
            if not box.overlaps(other_box):
                continue
            any_moved = True
            across = min(box.right, other_box.right) - max(box.left, other_box.left)
            down = min(box.bottom, other_box.bottom) - max(box.top, other_box.top)
            axis, way = (0, across) if across < down else (1, down)
            sign = 1.0 if (at[number][axis], number) <= (at[other][axis], other) else -1.0
            at[number][axis] -= sign * (way / 2 + 0.5)
            at[other][axis] += sign * (way / 2 + 0.5)
    return any_moved


def _packed(
    clusters: Sequence[dict[int, tuple[float, float]]], things: Mapping[int, Thing], named: Collection[int]
) -> dict[int, tuple[float, float]]:
    """Return the layouts of all clusters in one, in rows beneath each other, about four wide to three high."""
    bounds = []
    for cluster in clusters:
        boxes = [_footprint(things[number], middle, named) for number, middle in cluster.items()]
        bounds.append(
            Box(
                min(box.left for box in boxes),
                min(box.top for box in boxes),
                max(box.right for box in boxes) + _MARGIN,
                max(box.bottom for box in boxes) + _MARGIN,
            )
        )
    area = sum((box.right - box.left) * (box.bottom - box.top) for box in bounds)
    room = max([math.sqrt(area * 4 / 3), *(box.right - box.left for box in bounds)])
    x = y = height = 0.0
    packed: dict[int, tuple[float, float]] = {}
    for cluster, box in zip(clusters, bounds, strict=True):
        if x and x + box.right - box.left > room:
            x, y, height = 0.0, y + height, 0.0
        packed |= {number: (at[0] - box.left + x, at[1] - box.top + y) for number, at in cluster.items()}
        x, height = x + box.right - box.left, max(height, box.bottom - box.top)
    return packed


def _told_on_ties(
    ties: Sequence[Tie], middles: Mapping[int, tuple[float, float]], taken: list[Box]
) -> Iterator[tuple[tuple[int, int], Label]]:
    """Yield the names of facts that have room on their line."""
    taken = list(taken)
    both_ways = {(tie.source, tie.target) for tie in ties}
    for tie in ties:
        text = cut(", ".join(tie.relations), _LONGEST_RELATION)
        half, height = width_of(text) * _SMALL / 2, _SMALL * _LINE
        bent = (tie.target, tie.source) in both_ways
        for share in (0.5, 0.4, 0.6, 0.3, 0.7):
            x, y = _on_line(middles[tie.source], middles[tie.target], share, bent=bent)
            box = Box(x - half, y - height / 2, x + half, y + height / 2)
            if not any(box.overlaps(other) for other in taken):
                taken.append(box)
                yield (tie.source, tie.target), Label(text, box)
                break


_BEND = 22.0
_LOOP = 34.0


def _bent_point(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """Return the point that bends the line between two to its right, so that the way back has another."""
    (ax, ay), (bx, by) = start, end
    length = math.hypot(bx - ax, by - ay) or 1.0
    bend = 2 * min(_BEND, length / 6)
    return (ax + bx) / 2 - (by - ay) / length * bend, (ay + by) / 2 + (bx - ax) / length * bend


def _on_line(start: tuple[float, float], end: tuple[float, float], share: float, *, bent: bool) -> tuple[float, float]:
    """Return the point at a share of the way between two."""
    if start == end:
        return start[0], start[1] - _LOOP
    if not bent:
        return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
    over = _bent_point(start, end)
    weights = ((1 - share) ** 2, 2 * share * (1 - share), share**2)
    x, y = (sum(w * p[axis] for w, p in zip(weights, (start, over, end), strict=True)) for axis in (0, 1))
    return x, y


# ---- the picture


def svg(drawing: Drawing, *, hovers: bool = False) -> str:
    """Return a picture as SVG. Where things are left out of it, it tells so.

    hovers: names that have no room are in it too, and hidden, for `page`.
    """
    things, placed, colours = drawing.things, drawing.placed, drawing.colours
    left_out = f"{len(things)} of {drawing.whole} entities are drawn, those with the most facts"
    notes = [] if drawing.whole == len(things) else [left_out]
    if not things:
        notes = ["nothing to draw"]
    legend = list(colours.items()) if len(colours) > 1 else []
    lines = _SMALL * _LINE * 1.4
    width, height = placed.size
    width = max(width, *(width_of(cut(text, 60)) * _SMALL + 60 for text in (*notes, *(kind for kind, _ in legend), "")))
    height += lines * (len(notes) + len(legend))
    facts = sum(len(tie.relations) for tie in drawing.ties)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="system-ui, sans-serif">',
        f"<title>{len(things)} entities, {facts} facts</title>",
        f"<style>{_STYLE}</style>",
        _TIP,
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
        *_lines(drawing),
        *_nodes(drawing, hovers=hovers),
    ]
    y = placed.size[1]
    for kind, colour in legend:
        parts.append(f'<circle cx="{_MARGIN:.0f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        parts.append(_text(cut(kind or "other", 60), _MARGIN + 12, y + 4, _SMALL, anchor="start"))
        y += lines
    for note in notes:
        parts.append(_text(note, _MARGIN, y + 4, _SMALL, anchor="start"))
        y += lines
    return "\n".join([*parts, "</svg>"])


_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#9aa1ab"/></marker></defs>'
)


def linked(drawing: Drawing, name: str, address: Callable[[Thing], str], *, here: str = "") -> str:
    """Return a picture for a page that has styles of its own: its things are links. name: what it is a picture of.

    here: the name of the thing that the page is about.
    """
    width, height = drawing.placed.size
    return "\n".join(
        [
            f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="group" aria-label="{_escaped(name)}">',
            _TIP,
            *_lines(drawing),
            *_nodes(drawing, hovers=True, address=address, here=here),
            "</svg>",
        ]
    )


def _colours(kinds: Iterable[str]) -> dict[str, str]:
    """Return a colour for each of the kinds that there are most of, and one for all others, named ''.

    >>> _colours(["Person", "Person", "Place"])
    {'Person': '#0072b2', 'Place': '#e69f00'}
    """
    counted = sorted(Counter(kinds).items(), key=lambda one: (-one[1], one[0]))
    colours = {kind: colour for (kind, _), colour in zip(counted, _COLOURS, strict=False)}
    return colours if len(counted) <= len(_COLOURS) else {**colours, "": _OTHER}


def _lines(drawing: Drawing) -> Iterator[str]:
    placed, things, ties = drawing.placed, drawing.things, drawing.ties
    there = {(tie.source, tie.target) for tie in ties}
    for tie in ties:
        ends = f"n{tie.source} n{tie.target}"
        path = _path(placed, things, tie, bent=(tie.target, tie.source) in there)
        told = [*tie.told[:_MOST_TOLD], *(["…"] if len(tie.told) > _MOST_TOLD else [])]
        title = "\n".join(map(_escaped, told))
        yield f'<path class="fact" data-of="{ends}" d="{path}" marker-end="url(#tip)"><title>{title}</title></path>'
    for (source, target), (text, box) in placed.relations.items():
        middle = (box.left + box.right) / 2
        yield _text(
            text, middle, box.bottom - _SMALL * 0.35, _SMALL, more=f'class="told" data-of="n{source} n{target}"'
        )


def _path(placed: Plan, things: Mapping[int, Thing], tie: Tie, *, bent: bool) -> str:
    start, end = placed.middles[tie.source], placed.middles[tie.target]
    radius, far = radius_of(things[tie.source]), radius_of(things[tie.target])
    if tie.source == tie.target:
        (x, y), side = start, _LOOP * 0.6
        return f"M{x - radius * 0.6:.1f} {y - radius * 0.8:.1f}" + (
            f"C{x - side:.1f} {y - _LOOP * 1.2:.1f} {x + side:.1f} {y - _LOOP * 1.2:.1f} "
            f"{x + radius * 0.6:.1f} {y - radius * 0.8:.1f}"
        )
    over = _bent_point(start, end) if bent else None
    a, b = _towards(start, over or end, radius), _towards(end, over or start, far + 2)
    bend = f"Q{over[0]:.1f} {over[1]:.1f} " if over else "L"
    return f"M{a[0]:.1f} {a[1]:.1f}{bend}{b[0]:.1f} {b[1]:.1f}"


def _towards(start: tuple[float, float], end: tuple[float, float], way: float) -> tuple[float, float]:
    length = math.hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    return start[0] + (end[0] - start[0]) / length * way, start[1] + (end[1] - start[1]) / length * way


def _nodes(
    drawing: Drawing, *, hovers: bool, address: Callable[[Thing], str] | None = None, here: str = ""
) -> Iterator[str]:
    placed, colours = drawing.placed, drawing.colours
    for number, (x, y) in placed.middles.items():
        thing = drawing.things[number]
        title = _escaped(thing.name) + (f"\n{_escaped(thing.kind)}" if thing.kind else "")
        tag, leads = ("g", "") if address is None else ("a", f' href="{_escaped(address(thing))}"')
        current = ' aria-current="true"' if here and thing.name == here else ""
        yield f'<{tag} class="node" id="n{number}"{leads}{current}><title>{title}</title>'
        colour = colours.get(thing.kind, _OTHER)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius_of(thing):.1f}" fill="{colour}"/>'
        if number in placed.names:
            yield _name(placed.names[number])
        elif hovers:
            yield _name(next(_beside(thing, (x, y))), more='class="thin"')
        yield f"</{tag}>"


def _name(label: Label, more: str = "") -> str:
    middle = (label.box.left + label.box.right) / 2
    return _text(label.text, middle, label.box.bottom - _SIZE * 0.35, _SIZE, more=more)


def _text(text: str, x: float, y: float, size: float, *, anchor: str = "middle", more: str = "") -> str:
    attributes = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:.0f}" text-anchor="{anchor}"'
    return f"<text {attributes}{f' {more}' if more else ''}>{_escaped(text)}</text>"


def _escaped(text: str) -> str:
    """Return a text for XML, which has no place for some characters, and for HTML, without what turns lines around.

    >>> _escaped('<b a="1">\\x00')
    '&lt;b a=&quot;1&quot;&gt; '
    """
    kept = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in _NOWHERE else c for c in text)
    return escaping.escape(kept)


def page(picture: str) -> str:
    """Return an SVG picture as a page of its own: drag to move, turn the wheel to zoom, point to see what is near.

    Only the script of this page may run, and nothing may be loaded, whatever a name holds.
    """
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!DOCTYPE html>\n<html lang="und">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>graphmem</title>\n'
        f"<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n{picture}\n<script>{_SCRIPT}</script>\n</body>\n</html>"
    )
