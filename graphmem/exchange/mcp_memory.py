"""Import of the JSON Lines of the MCP knowledge-graph server (`@modelcontextprotocol/server-memory`).

A line is an entity (name, entityType, observations) or a relation (from, to, relationType). Entities and relations are
entities and facts here. An observation becomes a note about its entity: `core.observations` says how. What no fact may
be, since a name of it is too long, becomes a note as well, so that it is found by its words.
"""

import contextlib
import functools
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graphmem.core.keys import clean_text
from graphmem.core.model import Triple
from graphmem.core.observations import note_of
from graphmem.core.redaction import find_secrets
from graphmem.errors import InvalidInput
from graphmem.exchange.formats.heard import named_errors, refuse_memory
from graphmem.exchange.formats.lines import BOM
from graphmem.exchange.importing import Steps, Tally, Target
from graphmem.exchange.naming import Names
from graphmem.exchange.noting import ForeignNote, take_in_note
from graphmem.store.transaction import Transaction

_AT_ONCE = 500


@contextlib.contextmanager
def opened(path: str) -> Iterator[Callable[[Target, Tally], None]]:
    """Open a file. Raises InvalidInput for one that does not begin with an entity or a relation, StoreFailed."""
    refuse_memory(path)
    looked_at = [line for line in next(_batches(path), []) if line.strip()]
    if looked_at and not any(_is_one(_object(line)) for line in looked_at):
        raise InvalidInput("path", path, "no line of it is an entity or a relation; give a memory.jsonl")
    with named_errors(path):
        size = Path(path).stat().st_size
    yield functools.partial(_take_in, path, size)


def _take_in(path: str, size: int, target: Target, tally: Tally) -> None:
    importing = _Import(target, tally)
    steps = Steps(target.progress, [size])
    number = 0
    for batch in _batches(path):
        with target.writing() as tx:
            for line in batch:
                number += 1
                importing.take_in(tx, number, line)
        steps.advance(sum(map(len, batch)))


def _batches(path: str) -> Iterator[list[bytes]]:
    with named_errors(path), Path(path).open("rb") as stream:
        while batch := list(itertools.islice(stream, _AT_ONCE)):
            yield batch


def _is_one(found: dict[str, Any]) -> bool:
    """Tell whether an object is an entity or a relation."""
    names = {"entity": ("name",), "relation": ("from", "to", "relationType")}.get(str(found.get("type")), ())
    return bool(names) and all(isinstance(found.get(name), str) for name in names)


class _Import:
    def __init__(self, target: Target, tally: Tally) -> None:
        self._target = target
        self._tally = tally
        self._names = Names(target, tally)

    def take_in(self, tx: Transaction, number: int, line: bytes) -> None:
        """Take in a line."""
        self._names.begin(tx)
        if not line.strip().removeprefix(BOM):
            return
        found = _object(line)
        if not _is_one(found):
            self._tally.refuse("line", f"line {number}", "is no JSON object of an entity or a relation")
        elif found["type"] == "entity":
            self._take_in_entity(tx, found)
        else:
            self._take_in_relation(tx, found)

    def _take_in_entity(self, tx: Transaction, found: dict[str, Any]) -> None:
        name = clean_text(found["name"]).strip()
        type_ = clean_text(found["entityType"]).strip() if isinstance(found.get("entityType"), str) else ""
        self._names.take_in_entity(tx, name, type_)
        observations = found.get("observations")
        for observation in observations if isinstance(observations, list) else []:
            if isinstance(observation, str) and name:
                title, body = note_of(name, clean_text(observation).strip())
                self._take_in_note(tx, ForeignNote(title, body, labels=(name,)), "observation")
            else:
                self._tally.refuse("observation", f"{name}: {observation}", "is no text about a name")

    def _take_in_relation(self, tx: Transaction, found: dict[str, Any]) -> None:
        names = [clean_text(found[name]).strip() for name in ("from", "relationType", "to")]
        told = " ".join(names)
        if not self._names.take_in_fact(tx, Triple(*names)) and not find_secrets(told) and any(names):
            self._take_in_note(tx, ForeignNote(told, labels=(names[0], names[2])), "note of a fact")

    def _take_in_note(self, tx: Transaction, note: ForeignNote, what: str) -> None:
        take_in_note(tx, note, self._target.scope or "", self._target, self._tally, what)


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line, an empty one where there is none."""
    try:
        found = json.loads(line.strip().removeprefix(BOM).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
