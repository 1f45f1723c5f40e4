"""Import of the JSON Lines of the MCP knowledge-graph server (`@modelcontextprotocol/server-memory`).

A line is an entity (name, entityType, observations) or a relation (from, to, relationType). Entities and relations are
entities and facts here. An observation becomes a note about its entity: `core.observations` says how. What no fact may
be, since a name of it is too long, becomes a note as well, so that it is found by its words.
"""

import contextlib
import functools
import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graphmem.core.keys import clean_text, name_problem
from graphmem.core.model import Refusal, Triple
from graphmem.core.observations import note_of
from graphmem.core.redaction import find_secrets
from graphmem.errors import InvalidInput
from graphmem.exchange.formats.heard import named_errors, refuse_memory
from graphmem.exchange.importing import Steps, Tally, Target
from graphmem.exchange.noting import ForeignNote, take_in_note
from graphmem.graph import entities, relations, taken_in

_AT_ONCE = 500
_BOM = b"\xef\xbb\xbf"


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
        self._scope = target.scope or ""
        self._newest: int | None = None
        self._came: set[int] = set()

    def take_in(self, tx: sqlite3.Connection, number: int, line: bytes) -> None:
        """Take in a line."""
        if self._newest is None:
            self._newest = entities.newest(tx)
        if not line.strip().removeprefix(_BOM):
            return
        found = _object(line)
        if not _is_one(found):
            self._tally.refuse("line", f"line {number}", "is no JSON object of an entity or a relation")
        elif found["type"] == "entity":
            self._take_in_entity(tx, found)
        else:
            self._take_in_relation(tx, found)

    def _take_in_entity(self, tx: sqlite3.Connection, found: dict[str, Any]) -> None:
        name, at = clean_text(found["name"]).strip(), self._target.at
        type_ = clean_text(found["entityType"]).strip() if isinstance(found.get("entityType"), str) else ""
        secrets = find_secrets(f"{name}\n{type_}")
        reason = f"it holds a secret ({secrets[0].kind})" if secrets else name_problem(name)
        if reason:
            self._tally.refuse("entity", name, reason)
        else:
            foreign = taken_in.ForeignEntity(name, type_, 0, at, at, is_dated=False)
            (outcome,) = taken_in.take_in_entities(tx, [foreign], self._newest or 0, self._came)
            if outcome == "merged":
                self._tally.merge("entity", name, name)
            else:
                self._tally.count("entity", outcome)
        observations = found.get("observations")
        for observation in observations if isinstance(observations, list) else []:
            if isinstance(observation, str) and name:
                title, body = note_of(name, clean_text(observation).strip())
                note = ForeignNote(title, body, labels=(name,))
                take_in_note(tx, note, self._scope, self._target, self._tally, "observation")
            else:
                self._tally.refuse("observation", f"{name}: {observation}", "is no text about a name")

    def _take_in_relation(self, tx: sqlite3.Connection, found: dict[str, Any]) -> None:
        names = [clean_text(found[name]).strip() for name in ("from", "relationType", "to")]
        (fact,), _ = relations.check_triples([Triple(*names)], self._target.config.zone)
        told = " ".join(names)
        if isinstance(fact, Refusal):
            self._tally.refuse("fact", told, fact.reason)
            if not find_secrets(told) and any(len(name) for name in names):
                note = ForeignNote(told, labels=(names[0], names[2]))
                take_in_note(tx, note, self._scope, self._target, self._tally, "note of a fact")
            return
        saying = relations.Saying("", 0, self._target.source, self._scope, self._target.at, ())
        if taken_in.told_before(tx, fact, saying, at_any_time=True) is not None:
            self._tally.count("fact", "known")
            return
        (outcome,) = relations.tell(tx, [fact], saying, [])
        if outcome.created:
            self._tally.count("fact", "added")
        else:
            self._tally.merge("fact", told, f"fact {outcome.relation_id}, which says the same")


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line, an empty one where there is none."""
    try:
        found = json.loads(line.strip().removeprefix(_BOM).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
