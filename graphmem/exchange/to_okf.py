"""Export as a bundle of the Open Knowledge Format, version 0.2: a folder of Markdown files with frontmatter.

Format: https://github.com/GoogleCloudPlatform/knowledge-catalog/blob/main/okf/SPEC.md. Each file is a concept, whose
`type` alone is required; `index.md` lists a folder. A note is a file of the folder of its kind, an entity one of
`entities`, with its facts as links to the other entities. What the format has no field for stands in fields of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from graphmem.core.keys import slug
from graphmem.core.lines import json_line
from graphmem.core.model import Note
from graphmem.exchange import knowledge
from graphmem.graph.neighbours import Reading
from graphmem.store.transaction import Transaction

VERSION = "0.2"
_RESERVED = frozenset({"index", "log"})
_ENTITIES = "entities"
_FACTS, _REACHED = "Facts", "Told of it"
_PART = r"(?:\\.|[^\\\[\]])*"  # of a line, escaped as `_inline` does
_FACT = re.compile(
    rf"\* (?P<relation>{_PART}) \[{_PART}\]\(/(?P<path>{_ENTITIES}/[^()\s]+\.md)\)(?:: (?P<sentence>.*))?"
)
_OTHER = re.compile(rf"\* \[{_PART}\]\(/{_ENTITIES}/[^()\s]+\.md\) .*|# (?:{_FACTS}|{_REACHED})|")
_STATUS = {"live": "stable", "proposed": "draft"}


def to_files(tx: Transaction, reading: Reading, counts: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the files of a bundle: the path of each within it, with `/`, and its text."""
    listed: dict[str, list[str]] = {}
    names = _Names()
    notes = knowledge.notes(tx, reading)
    for note in notes:
        folder = slug(note.kind)
        place = names.new(folder, note.title, note.id)
        listed.setdefault(folder, []).append(_item(note.title, f"{place}.md", note.summary))
        yield f"{folder}/{place}.md", _concept(_note_fields(note), note.body or note.title)
    entities = {entity.id: entity for entity in knowledge.entities(tx, reading)}
    places = {number: names.new(_ENTITIES, entity.name, number) for number, entity in entities.items()}
    links = {number: f"[{_inline(entities[number].name)}](/{_ENTITIES}/{place}.md)" for number, place in places.items()}
    told: dict[int, list[str]] = {}
    reached: dict[int, list[str]] = {}
    counts |= {"notes": len(notes), "entities": len(entities), "facts": 0}
    for fact in knowledge.facts(tx, reading):
        counts["facts"] += 1
        sentence = f": {_inline(fact.sentence)}" if fact.sentence else ""
        told.setdefault(fact.source, []).append(f"* {_inline(fact.relation)} {links[fact.target]}{sentence}")
        reached.setdefault(fact.target, []).append(f"* {links[fact.source]} {_inline(fact.relation)}")
    for number, entity in entities.items():
        body = "\n\n".join(
            "\n".join([f"# {head}", "", *lines[number]])
            for head, lines in ((_FACTS, told), (_REACHED, reached))
            if number in lines
        )
        listed.setdefault(_ENTITIES, []).append(_item(entity.name, f"{places[number]}.md", ""))
        yield (
            f"{_ENTITIES}/{places[number]}.md",
            _concept({"type": entity.type or "Concept", "title": entity.name}, body),
        )
    for folder, items in listed.items():
        yield f"{folder}/index.md", _listing(folder, items)
    root = _listing("Memory", [_item(folder, f"{folder}/", f"{len(items)} files") for folder, items in listed.items()])
    yield "index.md", f'---\nokf_version: "{VERSION}"\n---\n\n{root}'


class _Names:
    """The names of files that are given, so that none is given twice in a folder."""

    def __init__(self) -> None:
        self._given: set[tuple[str, str]] = set()

    def new(self, folder: str, title: str, number: int) -> str:
        """Return the name of a file for a title, with the number of what it is where another one has that name."""
        name = slug(title)
        if name in _RESERVED or (folder, name) in self._given:
            name = f"{name}-{number}"
            while (folder, name) in self._given:
                name += "-"
        self._given.add((folder, name))
        return name


def _note_fields(note: Note) -> dict[str, object]:
    """Return the frontmatter of a note; what is empty is left out."""
    fields: dict[str, object] = {
        "type": note.kind, "title": note.title, "description": note.summary, "tags": list(note.labels),
        "status": _STATUS[note.status], "generated": {"by": _actor(note.source), "at": note.updated_at},
        "highlight": note.highlight, "slot": note.slot, "scope": note.scope, "load_when": list(note.load_when),
        "pinned": note.pinned,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value}


def _actor(source: str) -> str:
    """Return who says so as the format writes it.

    >>> _actor("user"), _actor("user:ann"), _actor("agent"), _actor("import:homeagent")
    ('human:user', 'human:ann', 'process:agent', 'process:import:homeagent')
    """
    kind, _, name = source.partition(":")
    return f"human:{name or kind}" if kind == "user" else f"process:{source or 'graphmem'}"


def _concept(fields: Mapping[str, object], body: str) -> str:
    head = "\n".join(f"{name}: {json_line(value)}" for name, value in fields.items())
    return f"---\n{head}\n---\n\n{body.rstrip()}\n" if body.strip() else f"---\n{head}\n---\n"


def facts_of(path: str, body: str) -> list[tuple[str, str, str]] | None:
    r"""Return relation, path of the target and sentence of the facts that a file of an entity tells.

    None for a file that is not as `to_files` makes those of entities.

    >>> facts_of("entities/a.md", "# Facts\n\n* is\\_in [b](/entities/b.md): So it is.")
    [('is_in', 'entities/b.md', 'So it is.')]
    """
    lines = body.split("\n")
    matches = [_FACT.fullmatch(line) for line in lines]
    if not path.startswith(f"{_ENTITIES}/") or not all(
        match or _OTHER.fullmatch(line) for match, line in zip(matches, lines, strict=True)
    ):
        return None
    return [(_plain(match["relation"]), match["path"], _plain(match["sentence"] or "")) for match in matches if match]


def _plain(text: str) -> str:
    r"""Return what `_inline` made a text within a line of."""
    return re.sub(r"\\([\\\[\]<*_`])", r"\1", text)


def _listing(head: str, items: Iterable[str]) -> str:
    return "\n".join([f"# {head}", "", *items, ""])


def _item(title: str, link: str, told: str) -> str:
    return f"* [{_inline(title)}]({link})" + (f" - {_inline(told)}" if told else "")


def _inline(text: str) -> str:
    r"""Return a text as Markdown within a line, none of it read as more than text.

    >>> print(_inline("a [b](c)\n<i>*x*"))
    a \[b\](c) \<i>\*x\*
    """
    line = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\[]<*_`" else c for c in line)
