"""Export for the MCP knowledge-graph server, `@modelcontextprotocol/server-memory`: a line an entity, a line a fact.

What it calls observations are the notes that `core.observations` makes of them, so that what came from such a file goes
back into one. Other notes, sentences, times and confidences have no place there, and that is remarked.
"""

from collections.abc import Iterator

from graphmem.core.keys import entity_key
from graphmem.core.lines import json_line
from graphmem.core.observations import observation_of
from graphmem.exchange import knowledge
from graphmem.graph.neighbours import Reading
from graphmem.store.transaction import Transaction


def to_lines(tx: Transaction, reading: Reading, counts: dict[str, int], remarks: list[str]) -> Iterator[str]:
    """Yield the lines, each with its end; what was written and what was not is told in counts and remarks."""
    observed: dict[str, tuple[str, list[str]]] = {}
    passed_over = 0
    for note in knowledge.notes(tx, reading):
        found = observation_of(note.title, note.body, note.labels) if note.status == "live" else None
        if found is None:
            passed_over += 1
        else:
            name, observation = found
            observed.setdefault(entity_key(name), (name, []))[1].append(observation)
    counts |= {"entities": 0, "facts": 0, "observations": sum(len(texts) for _, texts in observed.values())}
    names: dict[int, str] = {}
    for entity in knowledge.entities(tx, reading):
        names[entity.id] = entity.name
        _, texts = observed.pop(entity.key, ("", []))
        counts["entities"] += 1
        yield _entity(entity.name, entity.type, texts)
    for name, texts in observed.values():  # about what is no entity here
        counts["entities"] += 1
        yield _entity(name, "Concept", texts)
    sentences = 0
    for fact in knowledge.facts(tx, reading):
        counts["facts"] += 1
        sentences += bool(fact.sentence)
        line = {"from": names[fact.source], "to": names[fact.target], "relationType": fact.relation}
        yield json_line({"type": "relation", **line}) + "\n"
    if passed_over or sentences:
        remarks.append(
            f"{sentences} sentences and {passed_over} notes have no place in this format and were left out, as were "
            "times, confidences and scenes"
        )


def _entity(name: str, kind: str, observations: list[str]) -> str:
    told = {"name": name, "entityType": kind, "observations": list(dict.fromkeys(observations))}
    return json_line({"type": "entity", **told}) + "\n"
