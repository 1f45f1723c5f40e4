"""What the memory holds and what waits for a person."""

from graphmem.surfaces.panel.asking import Asked, Done, Shown

_DAYS = 30
_SOME, _MANY, _MOST = 8, 50, 500
GROWING = ("relations", "notes", "scenes", "parts")


def overview(asked: Asked) -> Shown:
    """Show the numbers, how they grew, and what waits."""
    memory = asked.memory
    proposals = memory.notes(statuses="proposed", scopes=["all"], limit=_MANY)
    return Shown(
        "overview.html",
        {
            "counts": memory.overview(),
            "growth": memory.growth(days=_DAYS),
            "growing": GROWING,
            "proposals": proposals,
            "incidents": memory.incidents(scopes=["all"])[:_MANY],
            "operations": memory.operations(limit=_SOME),
        },
    )


def operations(asked: Asked) -> Shown:
    """Show what was changed and can be undone."""
    limit = asked.whole("limit", _MANY, low=1, high=_MOST)
    found = asked.memory.operations(limit=limit + 1)
    return Shown("operations.html", {"operations": found[:limit], "limit": limit, "more": len(found) > limit})


def undo(asked: Asked) -> Done | Shown:
    """Rehearse an undo and tell what it would come to; once that is confirmed, do it."""
    if asked.text("confirmed"):
        asked.memory.undo(asked.number)
        return Done("undone", asked.number)
    report = asked.memory.undo(asked.number, dry_run=True)
    return Shown("undo.html", {"report": report})


def forget_incident(asked: Asked) -> Done:
    """Remove an incident for good."""
    asked.memory.forget_incident(asked.number)
    return Done("incident_forgotten")
