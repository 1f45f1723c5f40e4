"""Observations of the MCP knowledge-graph server, texts about an entity, as notes and back."""

from collections.abc import Iterable

from graphmem.core.model.notes import LONGEST_TITLE

_SHORTENED = 200  # characters of a title whose whole text is in the body


def note_of(entity: str, observation: str) -> tuple[str, str]:
    """Return title and body of the note that an observation becomes; it has the entity for a label.

    >>> note_of("Ann", "likes tea")
    ('Ann: likes tea', '')
    >>> note_of("Ann", "first\\nsecond")
    ('Ann: first second', 'first\\nsecond')
    """
    line = " ".join(f"{entity}: {observation}".split())
    if line.endswith(f": {observation}") and len(line) <= LONGEST_TITLE:
        return line, ""
    return (line if len(line) <= _SHORTENED else f"{line[: _SHORTENED - 1]}…"), observation


def observation_of(title: str, body: str, labels: Iterable[str]) -> tuple[str, str] | None:
    """Return entity and observation of which `note_of` made a note, None for any other.

    >>> observation_of("Ann: likes tea", "", ["Ann"]), observation_of("Ann likes tea", "", ["Ann"])
    (('Ann', 'likes tea'), None)
    """
    for entity in labels:
        begin = " ".join(f"{entity}:".split()) + " "  # a title is one line
        if title.startswith(begin):
            return entity, body or title[len(begin) :]
    return None
