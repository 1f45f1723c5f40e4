"""Scenes and entities, and the facts around them."""

from dataclasses import replace

from graphmem.core.choices import SCENE_ORDERS
from graphmem.surfaces.panel.asking import Asked, Paging, Shown
from graphmem.surfaces.panel.picturing import drawn

_PAGE = 50
_FACTS = 100
ORIGINS = ("", "declared", "emergent")


def scenes(asked: Asked) -> Shown:
    """List scenes, a page at a time."""
    page = asked.whole("page", 1, low=1)
    chosen = {
        "prefix": asked.text("prefix"),
        "contains": asked.text("contains"),
        "sort": asked.one_of("sort", SCENE_ORDERS, "recent"),
    }
    origin = asked.one_of("origin", ORIGINS, "")
    found = asked.memory.scenes(**chosen, origin=origin or None, limit=_PAGE + 1, skip=(page - 1) * _PAGE)
    return Shown(
        "scenes.html",
        {
            "scenes": found[:_PAGE],
            "chosen": {**chosen, "origin": origin},
            "orders": SCENE_ORDERS,
            "origins": ORIGINS,
            "paging": Paging(page, _PAGE, len(found) > _PAGE),
        },
    )


def scene(asked: Asked) -> Shown:
    """Show one scene: what leads to it and what it holds."""
    key = asked.text("key")
    detail = asked.memory.scene(key)
    held = asked.memory.recall_by_scene(key, exact=True, limit=_FACTS + 1, scopes=["all"])
    return Shown(
        "scene.html",
        {
            "detail": detail,
            "held": replace(held, relations=held.relations[:_FACTS]),
            "most": _FACTS,
            "more": len(held.relations) > _FACTS,
            "picture": drawn(asked, key, scene=key) if held.relations else None,
        },
    )


def entity(asked: Asked) -> Shown:
    """Show what is known around an entity."""
    name = asked.text("name")
    depth = asked.whole("depth", 1, low=1, high=3)
    around = asked.memory.neighbours([name], depth=1, limit=_FACTS, scopes=["all"])
    return Shown(
        "entity.html",
        {
            "name": name,
            "depth": depth,
            "around": around,
            "picture": drawn(asked, name, entity=name, depth=depth),
        },
    )
