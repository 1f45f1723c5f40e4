"""The picture of facts on a page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from graphmem.core import pictures
from graphmem.memory import Memory
from graphmem.surfaces.output import printable

_MOST = 200


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as SVG. drawn, whole: how many entities are in it, and how many there are. colours: by kind."""

    svg: Markup
    drawn: int
    whole: int
    colours: Mapping[str, str]


def drawn(memory: Memory, name: str, **what: Any) -> Picture:
    """Return the picture of a part of a memory, in which each entity leads to the page about it.

    name: what it is a picture of. what: the part, as `Memory.picture` takes it.
    """
    drawing = memory.picture(**what, scopes=["all"], most=_MOST)
    svg = pictures.linked(drawing, printable(name), _address)
    return Picture(Markup(svg), len(drawing.things), drawing.whole, drawing.colours)  # noqa: S704 (it escapes all texts)


def _address(thing: pictures.Thing) -> str:
    return "/entity?" + urlencode({"name": thing.name})
