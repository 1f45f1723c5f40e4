"""Import of the ledgers of dsh-memory-ledger: the user's `memory.json`, and one JSON file a project.

An entry becomes a note: its key is the slot, and where it was told first is its origin. Ledgers are edited by hand, so
what is missing in them is passed over, and each entry that cannot be used is told.
"""

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from graphmem.core.choices import NOTE_KINDS
from graphmem.core.entries import CREATED, LEDGER_FILE, LISTS, OWN_KIND, kind_of
from graphmem.core.failures import Failure, check_failure
from graphmem.core.keys import clean_text
from graphmem.core.redaction import refuse_secrets
from graphmem.core.times import foreign_time
from graphmem.errors import GraphmemError, InvalidInput, SecretRefused
from graphmem.exchange.formats.heard import named_errors, refuse_memory
from graphmem.exchange.importing import Steps, Tally, Target
from graphmem.exchange.noting import ForeignNote, take_in_note
from graphmem.graph.taken_in import usable_count
from graphmem.records import incidents, scopes
from graphmem.store.transaction import Transaction

_AT_ONCE = 500
_LONGEST_SIGNATURE = 300  # characters; ours are shorter
_OF_PROJECT = re.compile(r"(?P<label>.+)-(?P<hash>[0-9a-f]{6,64})\.json")
_UPDATED = ("updatedAt", "updated_at", "updated")
_FIRST = ("firstAt", "first_at", "first", "firstSeen", *CREATED)
_LAST = ("lastAt", "last_at", "last", "lastSeen", *_UPDATED, *_FIRST)


@contextlib.contextmanager
def opened(path: str) -> Iterator[Callable[[Target, Tally], None]]:
    """Open a ledger, or the folder of all: `memory.json`, `projects/`. Raises InvalidInput for neither, StoreFailed."""
    place = Path(path)
    files = sorted([place / LEDGER_FILE, *place.glob("projects/*.json")]) if place.is_dir() else [place]
    ledgers = [(file, _read(file)) for file in files if file.exists() or not place.is_dir()]
    if not ledgers:
        raise InvalidInput(
            "path", path, f"holds no ledger; give a {LEDGER_FILE}, or the folder with it and its projects/"
        )
    yield functools.partial(_take_in, ledgers)


def _read(file: Path) -> dict[str, Any]:
    """Return a ledger as an object."""
    refuse_memory(str(file))
    with named_errors(str(file)):
        raw = file.read_bytes()
    try:
        found = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput("path", str(file), f"is no JSON of a ledger: {error}") from None
    if isinstance(found, list):
        found = {"entries": found}
    if not isinstance(found, dict) or not any(name in found for name in (*LISTS, "incidents")):
        raise InvalidInput("path", str(file), f"is no ledger: none of {', '.join(LISTS)} and incidents is in it")
    return found


def _take_in(ledgers: list[tuple[Path, dict[str, Any]]], target: Target, tally: Tally) -> None:
    read = [
        (file, [entry for name in LISTS for entry in _listed(found.get(name))], _listed(found.get("incidents")))
        for file, found in ledgers
    ]
    steps = Steps(target.progress, [len(entries) + len(failures) for _, entries, failures in read])
    for file, entries, failures in read:
        scope = _scope_of(file, entries, target, tally)
        things = [(_take_in_entry, each) for each in entries] + [(_take_in_incident, each) for each in failures]
        for start in range(0, len(things), _AT_ONCE):
            batch = things[start : start + _AT_ONCE]
            with target.writing() as tx:
                for take_in, found in batch:
                    take_in(tx, found, scope, target, tally)
            steps.advance(len(batch))


def _listed(found: object) -> list[Any]:
    """Return what a ledger lists, as a list or by id.

    >>> _listed({"a": {"title": "x"}}), _listed([1]), _listed(None)
    ([{'id': 'a', 'title': 'x'}], [1], [])
    """
    if isinstance(found, dict):
        return [{"id": name, **value} if isinstance(value, dict) else value for name, value in found.items()]
    return found if isinstance(found, list) else []


def _scope_of(file: Path, entries: list[Any], target: Target, tally: Tally) -> str:
    """Return whose a ledger is: of the project of its hash, by the paths that its entries tell, else the user's."""
    match = _OF_PROJECT.fullmatch(file.name)
    if target.scope is not None:
        return target.scope
    if match is None or not target.config.project_memory:
        return ""
    paths = {_text(_origin(entry).get("cwd")) for entry in entries if isinstance(entry, dict)}
    if path := scopes.path_of_other("dsh", match["hash"], paths):
        try:
            return target.scope_of(path)
        except SecretRefused as error:  # its notes are the project's nevertheless
            tally.remark(str(error))
    with target.writing() as tx:
        return scopes.key_of_other(tx, "dsh", match["hash"])


def _take_in_entry(tx: Transaction, entry: object, scope: str, target: Target, tally: Tally) -> None:
    if not isinstance(entry, dict) or not _text(entry.get("title")).strip():
        tally.refuse("note", _name(entry), "has no title")
        return
    kind = kind_of(_text(entry.get("kind")) or "fact", _text(entry.get(OWN_KIND)))
    if kind not in NOTE_KINDS:
        tally.refuse("note", _name(entry), f"kind: give one of {', '.join(NOTE_KINDS)}")
        return
    origin = _origin(entry)
    tags = entry.get("tags")
    note = ForeignNote(
        title=_text(entry["title"]),
        body=_text(entry.get("body")),
        kind=kind,
        slot=_text(entry.get("key")),
        labels=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        pinned=entry.get("pinned") is True,
        archived=bool(entry.get("archived")),
        reason=_text(entry.get("reason")),
        place=_text(origin.get("cwd")),
        session=_text(origin.get("sessionId")),
        message=_text(entry.get("id")),
        at=_time(origin, ("at",)) or _time(entry, CREATED),
        updated_at=_time(entry, _UPDATED),
    )
    take_in_note(tx, note, scope, target, tally)


def _take_in_incident(tx: Transaction, found: object, scope: str, target: Target, tally: Tally) -> None:
    incident = found if isinstance(found, dict) else {}
    tool, sample = _text(incident.get("tool")), _text(incident.get("sample"))
    written = " ".join(_text(incident.get("signature")).split())
    try:
        refuse_secrets(signature=written)
        failure = check_failure(tool or written.partition("|")[0], sample)
    except GraphmemError as error:
        tally.refuse("incident", written or _name(found), str(error))
        return
    if not sample and written:  # nothing to make our own of
        failure = Failure(failure.tool, written[:_LONGEST_SIGNATURE], "", ())
    count = usable_count(incident.get("count")) or 1
    first, last = _time(incident, _FIRST) or target.at, _time(incident, _LAST) or target.at
    resolved = bool(incident.get("resolved") or incident.get("resolvedAt"))
    outcome = incidents.take_in(
        tx, failure, scope, count, (min(first, last), last), resolved=resolved, now=target.at, config=target.config
    )
    if outcome == "refused":
        tally.refuse("incident", failure.signature, "it was seen last too long ago, or others of its scope were later")
    else:
        tally.count("incident", outcome)


def _origin(entry: dict[str, Any]) -> dict[str, Any]:
    origin = entry.get("origin")
    return origin if isinstance(origin, dict) else {}


def _time(found: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((time for name in names if (time := foreign_time(found.get(name)))), "")


def _text(value: object) -> str:
    return clean_text(value) if isinstance(value, str) else ""


def _name(entry: object) -> str:
    return _text(entry.get("title")) or str(entry.get("id", "?")) if isinstance(entry, dict) else repr(entry)
