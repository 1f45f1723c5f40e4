"""The picture of facts on a page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from graphmem.core import pictures
from graphmem.surfaces.output import printable
from graphmem.surfaces.panel.asking import Asked

_USUAL, _MOST = 80, 200


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as SVG. drawn, whole: how many entities are in it, and how many there are. colours: by kind.

    larger: the address of the page with as many as can be drawn, '' where there are no more.
    """

    svg: Markup
    drawn: int
    whole: int
    colours: Mapping[str, str]
    larger: str


def drawn(asked: Asked, name: str, **what: Any) -> Picture:
    """Return the picture of a part of a memory, in which each entity leads to the page about it.

    name: what it is a picture of. what: the part, as `Memory.picture` takes it.
    """
    nodes = asked.whole("nodes", _USUAL, low=1, high=_MOST)
    drawing = asked.memory.picture(**what, scopes=["all"], most=nodes)
    things = len(drawing.things)
    svg = pictures.linked(drawing, printable(name), _address, here=what.get("entity", ""))
    query = urlencode({**asked.given, "nodes": _MOST})
    larger = f"{asked.here.partition('?')[0]}?{query}" if things < min(drawing.whole, _MOST) else ""
    return Picture(Markup(svg), things, drawing.whole, drawing.colours, larger)  # noqa: S704 (it escapes all texts)


def _address(thing: pictures.Thing) -> str:
    return "/entity?" + urlencode({"name": thing.name})
