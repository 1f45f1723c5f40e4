"""What was said: sessions, their parts, and where words are in them."""

from graphmem.surfaces.panel.asking import Asked, Paging, Shown

_LISTED, _MOST = 50, 500
_HITS = 30
_PARTS = 40


def history(asked: Asked) -> Shown:
    """Show sessions, or the parts of them that answer a search."""
    query, session = asked.text("q"), asked.text("session")
    told = {"chosen": {"q": query, "session": session}}
    if query:
        hits = asked.memory.history(query, session=session, scopes=["all"], limit=_HITS)
        return Shown("history.html", {**told, "hits": hits})
    limit = asked.whole("limit", _LISTED, low=1, high=_MOST)
    found = asked.memory.sessions(scopes=["all"], limit=limit + 1)
    return Shown(
        "history.html", {**told, "hits": None, "sessions": found[:limit], "limit": limit, "more": len(found) > limit}
    )


def session(asked: Asked) -> Shown:
    """Show the parts of a session in order."""
    name = asked.text("name")
    page = asked.whole("page", 1, low=1)
    found = asked.memory.parts(name, scopes=["all"], limit=_PARTS + 1, skip=(page - 1) * _PARTS)
    return Shown(
        "session.html",
        {"name": name, "listed": found[:_PARTS], "paging": Paging(page, _PARTS, len(found) > _PARTS)},
    )


def part(asked: Asked) -> Shown:
    """Show one part, whole."""
    return Shown("part.html", {"part": asked.memory.part(asked.number, scopes=["all"])})
