"""Turns in a form of our own: JSON objects with role and text, and if known id, author, at, message, tool, outcome."""

import contextlib
import datetime as dt
import hashlib
import json
from collections.abc import Mapping

from graphmem.core.model import Part
from graphmem.errors import InvalidInput

_TEXTS = ("author", "message", "tool", "outcome")


def is_turn(found: Mapping[str, object]) -> bool:
    """Tell whether an object looks like a turn.

    >>> is_turn({"role": "user", "text": "Hello"}), is_turn({"role": "user"})
    (True, False)
    """
    return isinstance(found.get("role"), str) and isinstance(found.get("text"), str)


def part_of(found: Mapping[str, object], fallback: str) -> Part:
    """Return a turn as a part. fallback: the id of one that has none. A time that is none is left out.

    Raises InvalidInput for what is no turn.

    >>> part_of({"role": "user", "text": "Hello", "id": 7}, "").id
    '7'
    """
    if not is_turn(found):
        raise InvalidInput("turn", sorted(found), "a turn needs role and text, each a text")
    texts = {}
    for name in _TEXTS:
        value = found.get(name) or ""
        if not isinstance(value, str):
            raise InvalidInput(name, value, "give a text")
        texts[name] = value
    role, text = found["role"], found["text"]
    assert isinstance(role, str)
    assert isinstance(text, str)
    return Part(_id_of(found.get("id")) or fallback, role=role, text=text, at=moment_of(found.get("at")), **texts)


def _id_of(value: object) -> str:
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidInput("id", value, "give a text or a number")


def parse_turns(text: str, place: str) -> tuple[list[Part], tuple[str, ...]]:
    """Return the turns of JSON Lines, and what is to be said of lines that were skipped: place, number and reason.

    A turn without an id has one of its line and its number, so that telling the same lines again adds nothing.

    >>> parts, remarks = parse_turns('{"role": "user", "text": "Hello"}\\n{"role"', "talk.jsonl")
    >>> parts[0].text, remarks[0][:28]
    ('Hello', 'talk.jsonl line 2 is skipped')
    """
    parts: list[Part] = []
    remarks: list[str] = []
    # Not splitlines: a text may hold U+2028, which JSON allows within a line.
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{place} line {number}"
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                raise InvalidInput("turn", found, "give a JSON object")
            digest = hashlib.sha256(f"{number} {line}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
            parts.append(part_of(found, digest))
        except (ValueError, RecursionError) as error:  # InvalidInput is a ValueError
            remarks.append(f"{where} is skipped: {error}")
        else:
            if parts[-1].at is None and found.get("at") is not None:
                remarks.append(f"{where}: at is no time, the turn is kept without")
    return parts, tuple(remarks)


def moment_of(value: object) -> dt.datetime | str | None:
    """Return a time that a part can have, of a text in ISO 8601 or of seconds since 1970; None for what is no time.

    A text without offset stays one, since the memory knows in which zone to read it.

    >>> moment_of(1.5).isoformat(), moment_of("2026-09-01T10:00+08:00").isoformat()
    ('1970-01-01T00:00:01.500000+00:00', '2026-09-01T02:00:00+00:00')
    >>> moment_of("2026-09-01 10:00"), moment_of("soon")
    ('2026-09-01 10:00', None)
    """
    with contextlib.suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str):
            moment = dt.datetime.fromisoformat(value.strip())
            if not dt.MINYEAR < moment.year < dt.MAXYEAR:  # in some zone it is in no year at all
                return None
            return moment.astimezone(dt.UTC) if moment.tzinfo else value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return dt.datetime.fromtimestamp(value, dt.UTC)
    return None
