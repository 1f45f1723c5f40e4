"""The situation explorer: which scenes answer a situation, why, and what would be recalled in it."""

from typing import Any

from graphmem.errors import GraphmemError, InvalidInput
from graphmem.surfaces.panel.asking import Asked, Shown
from graphmem.surfaces.verbs import SITUATION_FIELDS, situation_of
from graphmem.surfaces.wire import http_status

_RECALLED = 20
_MATCHES = 50
PARTS = ("", "morning", "afternoon", "evening", "night")


def situation(asked: Asked) -> Shown:
    """Show the form of a situation and, once it is filled in, what answers."""
    entered = {name: asked.text(name) for name in SITUATION_FIELDS}
    told: dict[str, Any] = {
        "entered": entered,
        "text": asked.text("text"),
        "parts_of_day": PARTS,
        "error": "",
        "wrong": "",
    }
    if not any(entered.values()) and not told["text"]:
        return Shown("situation.html", {**told, "here": None})
    try:
        here = situation_of({**entered, "topics": _listed(entered["topics"])}, asked.memory.config)
        matches = asked.memory.match_scenes(here)
        held = asked.memory.recall_by_situation(here, text=asked.text("text"), limit=_RECALLED, scopes=["all"])
    except GraphmemError as error:
        wrong = error.argument if isinstance(error, InvalidInput) else ""
        told |= {"here": None, "error": str(error), "wrong": wrong}
        return Shown("situation.html", told, http_status(error))
    return Shown(
        "situation.html", {**told, "here": here, "matches": matches[:_MATCHES], "held": held, "whole": len(matches)}
    )


def _listed(text: str) -> list[str]:
    """Return topics, which people separate by commas of some kind.

    >>> _listed("deploy, 周报、发票")
    ['deploy', '周报', '发票']
    """
    for comma in "，、;；":
        text = text.replace(comma, ",")
    return [part.strip() for part in text.split(",") if part.strip()]
