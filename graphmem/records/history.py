"""Sessions and their parts: what was said, verbatim and in order."""

import bisect
import datetime as dt
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphmem.core.keys import clean_text, entity_key
from graphmem.core.model import MirrorReport, Part
from graphmem.core.times import read_time, utc_text
from graphmem.errors import InvalidInput
from graphmem.store import text_index
from graphmem.store.text_index import Tokens

_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Told:
    """A part that may be written: texts cleaned, time read."""

    part: str
    author: str
    role: str
    text: str
    at: str | None
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class _Stored:
    id: int
    seq: int
    text: str
    length: int


class Turn(NamedTuple):
    """A stored part as search sees it: its place in its session, who said it when, its length in tokens."""

    id: int
    session_id: int
    seq: int
    author_key: str
    at: str | None
    length: int


def check_parts(parts: Iterable[Part], zone: dt.tzinfo) -> tuple[list[Told], tuple[str, ...]]:
    """Return the parts, the last of those with one id, and remarks about what had to be replaced in their texts."""
    if not isinstance(parts, Iterable):
        raise InvalidInput("parts", parts, "give a list of Part(id, text=...) objects")
    told: dict[str, Told] = {}
    remarks: list[str] = []
    for place, part in enumerate(parts):
        if not isinstance(part, Part):
            raise InvalidInput(f"parts[{place}]", part, "give Part(id, text=...) objects")
        texts = (part.id, part.author, part.role, part.text)
        name, author, role, text = (clean_text(each) for each in texts)
        if (name, author, role, text) != texts:
            remarks.append(f"parts[{place}]: characters that cannot be stored were replaced by U+FFFD")
        at = None if part.at is None else utc_text(read_time(part.at, zone, argument=f"parts[{place}].at"))
        told[name] = Told(name, author.strip(), role.strip(), text, at, text_index.tokens(body=text))
    return list(told.values()), tuple(remarks)


def mirror(tx: sqlite3.Connection, session: str, scope: str, told: Sequence[Told], at: str) -> MirrorReport:
    """Write the parts of a session that are new or changed; new ones go behind the part they were told after."""
    session_id = _session(tx, session, scope, at)
    known = _known(tx, session_id, [part.part for part in told])
    fresh = [part for part in told if part.part not in known]
    changed = [part for part in told if part.part in known and known[part.part].text != part.text]
    if fresh:
        _insert(tx, session_id, told, known, fresh, at)
    if changed:
        _rewrite(tx, [(known[part.part].id, part) for part in changed])
    if fresh or changed:
        grown = sum(part.tokens.length for part in (*fresh, *changed))
        grown -= sum(known[part.part].length for part in changed)
        tx.execute(
            "UPDATE sessions SET parts = parts + ?, length = length + ?, updated_at = MAX(updated_at, ?) WHERE id = ?",
            (len(fresh), grown, at, session_id),
        )
    return MirrorReport(session, len(fresh), len(changed), len(told) - len(fresh) - len(changed))


def _session(tx: sqlite3.Connection, name: str, scope: str, at: str) -> int:
    row = tx.execute("SELECT id FROM sessions WHERE name = ?", (name,)).fetchone()
    if row is None:
        row = tx.execute(
            "INSERT INTO sessions(name, scope, created_at, updated_at) VALUES (?, ?, ?, ?) RETURNING id",
            (name, scope, at, at),
        ).fetchone()
    return int(row[0])


def _known(tx: sqlite3.Connection, session_id: int, names: Sequence[str]) -> dict[str, _Stored]:
    """Return the parts that are stored, by the id of their host."""
    found: dict[str, _Stored] = {}
    for start in range(0, len(names), _AT_ONCE):
        chunk = names[start : start + _AT_ONCE]
        rows = tx.execute(
            f"""SELECT part, id, seq, text, length FROM parts
                WHERE session_id = ? AND part IN ({", ".join("?" * len(chunk))})""",
            (session_id, *chunk),
        )
        found.update({part: _Stored(*row) for part, *row in rows})
    return found


def _insert(
    tx: sqlite3.Connection,
    session_id: int,
    told: Sequence[Told],
    known: Mapping[str, _Stored],
    fresh: Sequence[Told],
    at: str,
) -> None:
    (stored,) = tx.execute("SELECT parts FROM sessions WHERE id = ?", (session_id,)).fetchone()
    places = _places([part.part for part in told], {name: part.seq for name, part in known.items()}, stored)
    _make_room(tx, session_id, places)
    indexed: list[tuple[int, Tokens]] = []
    for shift, part in enumerate(fresh):
        (part_id,) = tx.execute(
            """INSERT INTO parts(session_id, seq, part, author, author_key, role, text, length, at, recorded_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
            (session_id, places[shift] + shift, part.part, part.author, entity_key(part.author), part.role,
             part.text, part.tokens.length, part.at, at),
        ).fetchone()  # fmt: skip
        indexed.append((part_id, part.tokens))
    text_index.put(tx, "part", indexed)


def _places(told: Sequence[str], known: Mapping[str, int], stored: int) -> list[int]:
    """Return for each new part, in order, before which of the stored places it belongs.

    That is behind the known part told before it; what is told before all known ones belongs in front of the first of
    them, and what is told without any known part belongs behind everything.

    >>> _places(["new", "b", "newer"], {"b": 1}, 3)
    [1, 2]
    """
    place = next((known[name] for name in told if name in known), stored)
    places: list[int] = []
    for name in told:
        if name in known:
            place = max(place, known[name] + 1)
        else:
            places.append(place)
    return places


def _make_room(tx: sqlite3.Connection, session_id: int, places: Sequence[int]) -> None:
    """Move stored parts back to where the new ones, each before its place, let them be."""
    rows = tx.execute(
        "SELECT id, seq FROM parts WHERE session_id = ? AND seq >= ? ORDER BY seq DESC", (session_id, places[0])
    ).fetchall()
    # From the last one on, so that no two are ever in one place.
    tx.executemany(
        "UPDATE parts SET seq = ? WHERE id = ?",
        [(seq + bisect.bisect_right(places, seq), part_id) for part_id, seq in rows],
    )


def _rewrite(tx: sqlite3.Connection, changed: Sequence[tuple[int, Told]]) -> None:
    text_index.drop(tx, "part", [part_id for part_id, _ in changed])
    text_index.put(tx, "part", [(part_id, part.tokens) for part_id, part in changed])
    tx.executemany(
        """UPDATE parts SET text = ?, length = ?, author = ?, author_key = ?, role = ?, at = COALESCE(?, at)
           WHERE id = ?""",
        [
            (part.text, part.tokens.length, part.author, entity_key(part.author), part.role, part.at, part_id)
            for part_id, part in changed
        ],
    )


_TURN = "p.id, p.session_id, p.seq, p.author_key, p.at, p.length"


def turns(tx: sqlite3.Connection, part_ids: Sequence[int], scopes: Sequence[str] | None) -> dict[int, Turn]:
    """Return parts by id, those of sessions of these scopes and of none; None for all."""
    marks = ", ".join("?" * len(part_ids))
    if scopes is None:
        rows = tx.execute(f"SELECT {_TURN} FROM parts p WHERE p.id IN ({marks})", part_ids)
    else:
        rows = tx.execute(
            f"""SELECT {_TURN} FROM parts p JOIN sessions s ON s.id = p.session_id
                WHERE p.id IN ({marks}) AND s.scope IN ({", ".join(["?"] * (len(scopes) + 1))})""",
            (*part_ids, "", *scopes),
        )
    return {row[0]: Turn._make(row) for row in rows}


def beside(tx: sqlite3.Connection, these: Sequence[Turn]) -> dict[int, Turn]:
    """Return the parts right before and right after some."""
    places = {(turn.session_id, turn.seq + step) for turn in these for step in (-1, 1)}
    places -= {(turn.session_id, turn.seq) for turn in these}
    if not places:
        return {}
    rows = tx.execute(
        f"""SELECT {_TURN} FROM (VALUES {", ".join(["(?, ?)"] * len(places))}) AS k
            JOIN parts p ON p.session_id = k.column1 AND p.seq = k.column2""",
        [value for place in sorted(places) for value in place],
    )
    return {row[0]: Turn._make(row) for row in rows}


def session_lengths(tx: sqlite3.Connection, session_ids: Sequence[int]) -> tuple[dict[int, int], int]:
    """Return the lengths of some sessions in tokens, and how many sessions there have been."""
    marks = ", ".join("?" * len(session_ids))
    lengths = dict(tx.execute(f"SELECT id, length FROM sessions WHERE id IN ({marks})", session_ids))
    (sessions,) = tx.execute("SELECT MAX(id) FROM sessions").fetchone()
    return lengths, sessions


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part as it was mirrored, with its session."""

    part: str
    session: str
    author: str
    text: str
    at: str


def parts(tx: sqlite3.Connection, part_ids: Sequence[int]) -> dict[int, StoredPart]:
    """Return stored parts by id; the time is that of recording where it is not known when it was said."""
    rows = tx.execute(
        f"""SELECT p.id, p.part, s.name, p.author, p.text, COALESCE(p.at, p.recorded_at)
            FROM parts p JOIN sessions s ON s.id = p.session_id WHERE p.id IN ({", ".join("?" * len(part_ids))})""",
        part_ids,
    )
    return {part_id: StoredPart(*row) for part_id, *row in rows}
