"""Logs of events: one JSON object a line, or the conversations of the LoCoMo benchmark."""

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphmem.config import Config
from graphmem.core.keys import clean_text
from graphmem.core.model import Triple
from graphmem.core.situations import Situation
from graphmem.errors import InvalidInput

_FIELDS = frozenset({"at", "source", "payload", "text", "tool", "session", "facts"})
_FACT_FIELDS = frozenset(
    {"subject", "relation", "object", "sentence", "confidence", "valid_from", "valid_to", "functional"}
)
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Event:
    """One turn of a log: what was observed, and the facts that were learnt in it."""

    at: str | None = None
    source: str = ""
    payload: Mapping[str, Any] | None = None
    text: str = ""
    tool: str = ""
    session: str = ""
    facts: tuple[Triple, ...] = ()
    place: str = "event"  # where it stands, for errors

    def situation(self, config: Config) -> Situation:
        """Return the situation of this turn."""
        return Situation.observe(
            source=self.source, payload=self.payload, text=self.text, tool=self.tool, at=self.at, config=config
        )


@dataclass(frozen=True, slots=True)
class Log:
    """The turns of a log with their situations under a configuration: read and checked, ready for a replay."""

    turns: tuple[tuple[Event, Situation], ...]
    config: Config

    def __len__(self) -> int:
        return len(self.turns)


def parse_events(text: str, name: str) -> list[Event]:
    """Return the events of a log: JSON Lines, or a LoCoMo file (a JSON array of conversations).

    Each line holds some of at, source, payload, text, tool, session and facts, a list of objects with subject,
    relation, object and, where known, sentence, confidence, valid_from, valid_to, functional. Raises InvalidInput,
    naming the file and the line, for one that cannot be understood.

    >>> parse_events('{"source": "qq", "text": "hello"}', "log")[0].source
    'qq'
    """
    if text.lstrip().startswith("["):
        return list(_locomo(text, name))
    lines = ((f"{name} line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    return [event_of(parse_json(line, place), place) for place, line in lines]


def event_of(found: object, place: str) -> Event:
    """Return the event of a JSON object, see `parse_events`; raise InvalidInput naming the place when it is none."""
    _check_fields(found, _FIELDS, place)
    assert isinstance(found, dict)
    for name in _FIELDS - {"payload", "facts"}:
        if not isinstance(found.get(name, ""), str):
            raise InvalidInput(f"{place}: {name}", found[name], "give a text")
    if not isinstance(found.get("payload", {}), dict):
        raise InvalidInput(f"{place}: payload", found["payload"], 'give an object such as {"user_id": "boss"}')
    facts = found.get("facts", [])
    if not isinstance(facts, list):
        raise InvalidInput(f"{place}: facts", facts, "give a list of facts")
    triples = tuple(triple_of(fact, f"{place}: facts[{i}]") for i, fact in enumerate(facts))
    return Event(**{**found, "text": clean_text(found.get("text", "")), "facts": triples, "place": place})


def parse_json(text: str, place: str) -> Any:
    """Return what a JSON text holds; raise InvalidInput naming the place when it is none."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(place, text.strip(), f"is no JSON: {error}") from None


def triple_of(fact: object, place: str) -> Triple:
    """Return the triple of a JSON object; raise InvalidInput naming the place when it is none."""
    _check_fields(fact, _FACT_FIELDS, place)
    assert isinstance(fact, dict)
    if missing := [name for name in ("subject", "relation", "object") if not isinstance(fact.get(name), str)]:
        raise InvalidInput(place, fact, f"needs {', '.join(missing)} as text")
    try:
        return Triple(**fact)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error.argument}", error.value, error.reason) from None


def _check_fields(found: object, known: frozenset[str], place: str) -> None:
    if not isinstance(found, dict):
        raise InvalidInput(place, found, "give a JSON object")
    if unknown := sorted(found.keys() - known):
        raise InvalidInput(place, unknown, f"unknown fields; known are {', '.join(sorted(known))}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _locomo(text: str, name: str) -> Iterator[Event]:
    """Conversations of LoCoMo: the channel is the conversation, the peer the speaker who listens."""
    try:
        for sample in parse_json(text, name):
            conversation = sample["conversation"]
            speakers = [_text(conversation[key]) for key in ("speaker_a", "speaker_b")]
            sessions = [key for key in conversation if key.startswith("session_") and key[8:].isdigit()]
            for session in sorted(sessions, key=lambda session: int(session[8:])):
                told = conversation[f"{session}_date_time"]
                at = dt.datetime.strptime(told, _LOCOMO_TIME).isoformat()  # noqa: DTZ007 (the log has local times)
                for turn in conversation[session]:
                    listener = speakers[turn["speaker"] == speakers[0]]
                    yield Event(
                        at=at,
                        source=_text(sample["sample_id"]),
                        payload={"peer": listener},
                        text=clean_text(_text(turn.get("text", ""))),
                        session=f"{sample['sample_id']}/{session}",
                        place=f"{name} {sample['sample_id']} {session}",
                    )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InvalidInput("file", name, f"neither JSON Lines of events nor a LoCoMo file: {error!r}") from error
