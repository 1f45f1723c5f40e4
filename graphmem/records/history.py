"""Sessions and their parts: what was said, verbatim and in order."""

import datetime as dt
import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphmem.core.injected import is_for_a_writer, without_injected
from graphmem.core.keys import clean_text, entity_key
from graphmem.core.model import MirrorReport, Part, SessionInfo, StoredPart
from graphmem.core.payloads import LONGEST_OUTPUT, without_payloads, without_the_middle
from graphmem.core.redaction import REDACTED, find_secrets, redact, refuse_secrets
from graphmem.core.times import read_time, utc_text
from graphmem.errors import Conflict, InvalidInput, NotFound
from graphmem.records.scopes import PROJECT_PREFIX, USER
from graphmem.store import text_index
from graphmem.store.lists import in_list, in_parts, of_scopes, rows_about
from graphmem.store.transaction import Transaction

_AT_ONCE = 10_000
_DIGEST_BYTES = 16
_SOON_INDEXED = 1 << 16  # letters, that keep nobody waiting
_LAST_SAID = 200  # parts of the user: a statement further back backs nothing that is said now


# What the index will hold of a text, by the text.
Ready = Mapping[str, text_index.Tokens]


@dataclass(frozen=True, slots=True)
class Told:
    """A part that may be written: texts cleaned, time read."""

    part: str
    author: str
    role: str
    text: str
    at: str | None
    message: str = ""
    tool: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class _Stored:
    id: int
    seq: int
    length: int
    told: Told


class Turn(NamedTuple):
    """A stored part as search sees it: its place in its session, who said it when, its length in tokens."""

    id: int
    session_id: int
    seq: int
    author_key: str
    at: str
    length: int


def check_parts(parts: Iterable[Part], zone: dt.tzinfo, *, screened: bool = True) -> tuple[list[Told], tuple[str, ...]]:
    """Return the parts, those of one id as one, and remarks about what had to be replaced in their texts.

    What this memory put into the prompt itself is left out; a part that was nothing else is kept without a text, so
    that its place is known. screened: replace secrets. Of a payload in base64 a reference is left, and of what a tool
    printed at length the beginning and the end.

    Raises InvalidInput naming the place of what is no Part, or has a time that cannot be read; SecretRefused for an id
    that is a secret.
    """
    if not isinstance(parts, Iterable):
        raise InvalidInput("parts", parts, "give a list of Part(id, text=...) objects")
    told: dict[str, Told] = {}
    remarks: list[str] = []
    for place, part in enumerate(parts):
        if not isinstance(part, Part):
            raise InvalidInput(f"parts[{place}]", type(part), "give Part(id, text=...) objects")
        texts = (part.id, part.author, part.role, part.message, part.tool, part.text)
        name, author, role, message, tool, text = cleaned = tuple(clean_text(each) for each in texts)
        if cleaned != texts:
            remarks.append(f"parts[{place}]: characters that cannot be stored were replaced by U+FFFD")
        own = without_injected(text)
        if own != text:
            remarks.append(f"parts[{place}]: what this memory had recalled itself was left out")
            text = own
        whole, text = len(text), without_payloads(text)
        is_cut = len(text) < whole
        if screened and find_secrets("\n".join((name, author, role, message, tool, text))):
            refuse_secrets(**{f"parts[{place}].id": name})
            author, role, message, tool, text = map(redact, (author, role, message, tool, text))
            remarks.append(f"parts[{place}]: secrets were replaced by {REDACTED}")
        if (tool or role == "tool") and len(text) > LONGEST_OUTPUT:
            text, is_cut = without_the_middle(text), True
        if is_cut:
            remarks.append(f"parts[{place}]: of {whole} characters {len(text)} were kept, with a reference to the rest")
        at = None if part.at is None else utc_text(read_time(part.at, zone, argument=f"parts[{place}].at"))
        one = Told(name, author.strip(), role.strip(), text, at, message.strip(), tool.strip(), part.outcome)
        if name in told:
            if told[name].text != text:
                remarks.append(f"parts[{place}]: a second part {name!r}; its text takes the place of the first")
            one = _told_again(told[name], one)
        told[name] = one
    return list(told.values()), tuple(remarks)


def _told_again(before: Told, again: Told) -> Told:
    """Return a part as it is after it was told again: what is left out of it then is kept.

    >>> again = _told_again(Told("m1", "Ann", "user", "He", None), Told("m1", "", "", "Hello", None))
    >>> again.author, again.text
    ('Ann', 'Hello')
    """
    return Told(
        again.part,
        again.author or before.author,
        again.role or before.role,
        again.text,
        again.at or before.at,
        again.message or before.message,
        again.tool or before.tool,
        again.outcome or before.outcome,
    )


def unwritten(tx: Transaction, session: str, told: Sequence[Told]) -> list[str]:
    """Return the texts of parts that a session does not hold as they are; none where they are too short to matter."""
    if sum(len(part.text) for part in told) < _SOON_INDEXED:
        return []
    row = tx.execute("SELECT id FROM sessions WHERE name = ?", (session,)).fetchone()
    known = {} if row is None else _known(tx, row[0], [part.part for part in told])
    return [part.text for part in told if part.part not in known or known[part.part].told.text != part.text]


def prepare(texts: Iterable[str]) -> Ready:
    """Return what the index will hold of texts; it takes long, and nobody has to wait for it."""
    return {text: text_index.tokens(body=text) for text in texts}


def mirror(
    tx: Transaction,
    session: str,
    told: Sequence[Told],
    ready: Ready,
    at: str,
    *,
    scope: str | None,
    home: str,
) -> MirrorReport:
    """Write the parts of a session that are new or changed; new ones go behind the part they were told after.

    ready: what `prepare` made of their texts; what it lacks is made here. scope: that of the session, None where none
    is named; then it is `home`, '' where that is not known. Raises Conflict for a session of another one.
    """
    session_id = _session(tx, session, scope, home, at)
    known = _known(tx, session_id, [part.part for part in told])
    fresh = [part for part in told if part.part not in known]
    retold = ((known[part.part], part) for part in told if part.part in known)
    changed = [(stored, now) for stored, part in retold if (now := _told_again(stored.told, part)) != stored.told]
    grown = 0
    if fresh:
        (length,) = tx.execute("SELECT parts FROM sessions WHERE id = ?", (session_id,)).fetchone()
        places = _places([part.part for part in told], {name: stored.seq for name, stored in known.items()}, length)
        _make_room(tx, session_id, places, length)
        grown += _insert(tx, session_id, [place + shift for shift, place in enumerate(places)], fresh, ready, at)
    if changed:
        grown += _rewrite(tx, changed, ready)
    if fresh or changed:
        tx.execute(
            "UPDATE sessions SET parts = parts + ?, length = length + ?, updated_at = MAX(updated_at, ?) WHERE id = ?",
            (len(fresh), grown, at, session_id),
        )
        if any(is_for_a_writer(part.text) for part in told):
            _mark_own(tx, session_id)
    return MirrorReport(session, len(fresh), len(changed), len(told) - len(fresh) - len(changed))


def _mark_own(tx: Transaction, session_id: int) -> None:
    """Note whether a session is that of a writer at work: what it was told first says so, and nothing later."""
    first = tx.execute(
        "SELECT text FROM parts WHERE session_id = ? AND role IN ('user', 'system') ORDER BY seq LIMIT 1", (session_id,)
    ).fetchone()
    own = first is not None and is_for_a_writer(first[0])
    tx.execute("UPDATE sessions SET own = ? WHERE id = ?", (own, session_id))


class Place(NamedTuple):
    """Where parts of a transcript belong: the name of their session, and whether that was removed from this memory."""

    name: str
    removed: bool


def place_of(tx: Transaction, name: str, home: str) -> Place:
    """Return where parts of a session and a project belong; where another project has one of that name, beside it.

    home: the scope of the project, '' where it is not known.
    """
    while True:
        row = tx.execute("SELECT scope, named FROM sessions WHERE name = ?", (name,)).fetchone()
        if row is not None:
            scope, named = row
            fits, removed = home in (USER, scope) or (scope == USER and not named), False
        else:
            row = tx.execute("SELECT scope FROM removed_sessions WHERE name = ?", (_digest(name),)).fetchone()
            fits, removed = row is None or home == USER or row[0] in (_digest(home), _digest(USER)), row is not None
        if fits:
            return Place(name, removed)
        name = f"{name}@{home.removeprefix(PROJECT_PREFIX)}"


def known_as(tx: Transaction, name: str, told: Sequence[Told]) -> str:
    """Return the session that some parts of a source add to, or that has the first of them under another name; else ''.

    Nothing is added where all of them are known.
    """
    names = [part.part for part in told]
    session_id = tx.execute("SELECT id FROM sessions WHERE name = ?", (name,)).fetchone()
    if session_id is not None:
        return "" if _known(tx, session_id[0], names).keys() >= set(names) else name
    row = tx.execute(
        """SELECT s.name FROM parts p JOIN sessions s ON s.id = p.session_id
           WHERE p.part = ? AND p.text = ? AND p.role = ? LIMIT 1""",
        (told[0].part, told[0].text, told[0].role),
    ).fetchone()
    return "" if row is None else str(row[0])


def keep_out(tx: Transaction, session_ids: Iterable[int]) -> None:
    """Remember that sessions are removed, so that no transcript brings them back. A host that tells one anew may."""
    rows = rows_about(tx, "SELECT name, scope FROM sessions WHERE id IN ({marks})", session_ids)
    tx.executemany(
        """INSERT INTO removed_sessions(name, scope) VALUES (?, ?)
           ON CONFLICT (name) DO UPDATE SET scope = excluded.scope""",
        [(_digest(name), _digest(scope)) for name, scope in rows],
    )


def _digest(name: str) -> bytes:
    """Return what tells a name from others and not what it is; nothing for no name."""
    return hashlib.sha256(name.encode()).digest()[:_DIGEST_BYTES] if name else b""


def _session(tx: Transaction, name: str, scope: str | None, home: str, at: str) -> int:
    """Return the id of a session, made when it is new; one of which nobody said whose it is becomes that of the parts.

    Raises Conflict for a session of another scope than the parts.
    """
    row = tx.execute("SELECT id, scope, named FROM sessions WHERE name = ?", (name,)).fetchone()
    wanted = home if scope is None else scope
    if row is None:
        tx.execute("DELETE FROM removed_sessions WHERE name = ?", (_digest(name),))
        (session_id,) = tx.execute(
            "INSERT INTO sessions(name, scope, named, created_at, updated_at) VALUES (?, ?, ?, ?, ?) RETURNING id",
            (name, wanted, scope is not None, at, at),
        ).fetchone()
        return int(session_id)
    session_id, own, named = row
    if scope is None and (home == USER or (own == USER and named)):
        wanted = own  # nobody says whose the parts are, or somebody said before that they are the user's
    if wanted != own:
        if own != USER or named:
            raise Conflict(
                f"session {name!r} is of scope {own or 'user'!r}, and what is told of {wanted or 'user'!r}: "
                f"give it another name, or tell it with scope={own or 'user'!r}"
            )
        _move(tx, session_id, name, wanted)
    if scope is not None and not named:
        tx.execute("UPDATE sessions SET named = 1 WHERE id = ?", (session_id,))
    return int(session_id)


def _move(tx: Transaction, session_id: int, name: str, scope: str) -> None:
    """Give a session of the user to a scope, with what was made of it."""
    tx.execute("UPDATE sessions SET scope = ? WHERE id = ?", (scope, session_id))
    tx.execute("UPDATE jobs SET scope = ? WHERE session_id = ?", (scope, session_id))
    tx.execute(
        """UPDATE notes SET scope = ? WHERE kind = 'checkpoint' AND scope = ''
               AND id IN (SELECT ref_id FROM provenance WHERE kind = 'note' AND session = ?)""",
        (scope, name),
    )


def _known(tx: Transaction, session_id: int, names: Sequence[str]) -> dict[str, _Stored]:
    """Return the parts that are stored, by the id of their host."""
    found: dict[str, _Stored] = {}
    for start in range(0, len(names), _AT_ONCE):
        marks, chunk = in_list(names[start : start + _AT_ONCE])
        rows = tx.execute(
            f"""SELECT id, seq, length, part, author, role, text, at, message, tool, outcome FROM parts
                WHERE session_id = ? AND part IN ({marks})""",
            (session_id, *chunk),
        )
        found.update(
            {part: _Stored(part_id, seq, length, Told(part, *told)) for part_id, seq, length, part, *told in rows}
        )
    return found


def _insert(tx: Transaction, session_id: int, seqs: Sequence[int], fresh: Sequence[Told], ready: Ready, at: str) -> int:
    """Write new parts to their places, which are free; return their length in tokens."""
    tokens = [_tokens(part.text, ready) for part in fresh]
    tx.executemany(
        """INSERT INTO parts(session_id, seq, part, author, author_key, role, text, length, at, recorded_at, message,
                             tool, outcome)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        [
            (session_id, seq, part.part, part.author, entity_key(part.author), part.role, part.text, own.length,
             part.at, at, part.message, part.tool, part.outcome)
            for seq, part, own in zip(seqs, fresh, tokens, strict=True)
        ],
    )  # fmt: skip
    ids = dict(
        tx.execute(
            "SELECT seq, id FROM parts WHERE session_id = ? AND seq BETWEEN ? AND ?", (session_id, seqs[0], seqs[-1])
        ).fetchall()
    )
    text_index.put(tx, "part", [(ids[seq], own) for seq, own in zip(seqs, tokens, strict=True)])
    return sum(own.length for own in tokens)


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


def _make_room(tx: Transaction, session_id: int, places: Sequence[int], stored: int) -> None:
    """Move stored parts back to where the new ones, each before its place, let them be."""
    counts = Counter(places)
    gaps = itertools.pairwise([*sorted(counts), stored])
    shifts = itertools.accumulate(counts[place] for place in sorted(counts))
    _shift(tx, session_id, [(first, end, by) for (first, end), by in zip(gaps, shifts, strict=True)])


def _shift(tx: Transaction, session_id: int, moves: Iterable[tuple[int, int, int]]) -> None:
    """Move the parts from a place on, up to another, by so many places, for each of some moves."""
    steps = [(by, session_id, first, end) for first, end, by in moves if first < end]
    if not steps:
        return
    # By way of negative places, so that no two parts are ever in one.
    tx.executemany("UPDATE parts SET seq = -1 - seq - ? WHERE session_id = ? AND seq >= ? AND seq < ?", steps)
    tx.execute("UPDATE parts SET seq = -1 - seq WHERE session_id = ? AND seq < 0", (session_id,))


def _tokens(text: str, ready: Ready) -> text_index.Tokens:
    return ready[text] if text in ready else text_index.tokens(body=text)


def _rewrite(tx: Transaction, changed: Sequence[tuple[_Stored, Told]], ready: Ready) -> int:
    """Write parts as they are now; return by how many tokens they grew. What says something else is digested again."""
    texts = [(stored.id, _tokens(now.text, ready)) for stored, now in changed]
    text_index.drop(tx, "part", [part_id for part_id, _ in texts])
    text_index.put(tx, "part", texts)
    tx.executemany(
        """UPDATE parts SET job_id = CASE text WHEN ? THEN job_id END, text = ?, length = ?, author = ?, author_key = ?,
                            role = ?, at = ?, message = ?, tool = ?, outcome = ?
           WHERE id = ?""",
        [
            (now.text, now.text, own.length, now.author, entity_key(now.author), now.role, now.at, now.message,
             now.tool, now.outcome, part_id)
            for (part_id, own), (_, now) in zip(texts, changed, strict=True)
        ],
    )  # fmt: skip
    return sum(own.length for _, own in texts) - sum(stored.length for stored, _ in changed)


# Who does not know when a part was said knows when it was recorded.
_TURN = "p.id, p.session_id, p.seq, p.author_key, COALESCE(p.at, p.recorded_at), p.length"


def turns(tx: Transaction, part_ids: Sequence[int], scopes: Sequence[str] | None, session: str) -> dict[int, Turn]:
    """Return parts by id, those of sessions of these scopes and of none; None for all. session: '' for any."""
    within, parameters = of_scopes(scopes, column="s.scope")
    if session:
        within, parameters = f"{within} AND s.name = ?", [*parameters, session]
    sessions = "JOIN sessions s ON s.id = p.session_id" if within else ""
    asked = f"SELECT {_TURN} FROM parts p {sessions} WHERE p.id IN ({{marks}}) {within}"
    return {row[0]: Turn._make(row) for row in rows_about(tx, asked, part_ids, *parameters)}


def beside(tx: Transaction, these: Sequence[Turn]) -> dict[int, Turn]:
    """Return the parts right before and right after some."""
    places = {(turn.session_id, turn.seq + step) for turn in these for step in (-1, 1)}
    places -= {(turn.session_id, turn.seq) for turn in these}
    found: dict[int, Turn] = {}
    for part, _ in in_parts(sorted(places)):
        rows = tx.execute(
            f"""SELECT {_TURN} FROM (VALUES {", ".join(["(?, ?)"] * len(part))}) AS k
                JOIN parts p ON p.session_id = k.column1 AND p.seq = k.column2""",
            [value for place in part for value in place],
        )
        found |= {row[0]: Turn._make(row) for row in rows}
    return found


def session_lengths(tx: Transaction, session_ids: Sequence[int]) -> tuple[dict[int, int], int]:
    """Return the lengths of some sessions in tokens, and how many sessions there have been."""
    lengths = dict(rows_about(tx, "SELECT id, length FROM sessions WHERE id IN ({marks})", session_ids))
    (sessions,) = tx.execute("SELECT MAX(id) FROM sessions").fetchone()
    return lengths, sessions


_STORED = """SELECT p.id, p.part, s.name, s.scope, p.message, p.author, p.role, p.tool, p.outcome, p.text,
                    COALESCE(p.at, p.recorded_at)
             FROM parts p JOIN sessions s ON s.id = p.session_id"""


def parts(tx: Transaction, part_ids: Sequence[int]) -> dict[int, StoredPart]:
    """Return stored parts by id."""
    found = (StoredPart(*row) for row in rows_about(tx, f"{_STORED} WHERE p.id IN ({{marks}})", part_ids))
    return {part.id: part for part in found}


def stored_parts(tx: Transaction, condition: str, parameters: Sequence[object]) -> Iterator[StoredPart]:
    """Yield the parts p that meet a condition in SQL, which may say their order."""
    return (StoredPart(*row) for row in tx.execute(f"{_STORED} WHERE {condition}", parameters))


def parts_of_session(
    tx: Transaction, name: str, scopes: Sequence[str] | None, *, limit: int, skip: int
) -> tuple[StoredPart, ...]:
    """Return parts of a session in order. Raises NotFound, Conflict for a session that is of another scope."""
    session = require_session(tx, name)
    if scopes is not None and session.scope not in ("", *scopes):
        raise Conflict(f"session {name!r} is of scope {session.scope!r}, and what is read is of others: name its scope")
    return tuple(stored_parts(tx, "p.session_id = ? ORDER BY p.seq LIMIT ? OFFSET ?", (session.id, limit, skip)))


def find_part(tx: Transaction, part: int | str, session: str, scopes: Sequence[str] | None) -> StoredPart:
    """Return the part of a number in this memory, or of the id that its host gave it, in sessions of these scopes.

    session: the one it is in, '' for any. scopes: None for all. Raises NotFound, Conflict for an id that parts of
    several sessions have, and for a part that is of another scope only.
    """
    column = "p.id" if isinstance(part, int) else "p.part"
    condition, parameters = ("AND s.name = ?", (session,)) if session else ("", ())
    within, kept_to = of_scopes(scopes, column="s.scope")
    order = "ORDER BY p.id LIMIT 3"
    found = list(stored_parts(tx, f"{column} = ? {condition} {within} {order}", (part, *parameters, *kept_to)))
    if len(found) > 1:
        names = ", ".join(repr(each.session) for each in found[:2])
        raise Conflict(f"part {part!r} is in sessions {names} and maybe more: name one")
    if found:
        return found[0]
    if others := list(stored_parts(tx, f"{column} = ? {condition} {order}", (part, *parameters))):
        raise Conflict(f"part {part!r} is of scope {others[0].scope!r}, and what is read is of others: name its scope")
    told = f" of session {session!r}" if session else ""
    raise NotFound(f"no part {part!r}{told}: history finds parts by their words")


def parts_of_hosts(tx: Transaction, names: Sequence[tuple[str, str]]) -> list[StoredPart]:
    """Return parts, in this order, by their sessions and the ids that their hosts gave them."""
    found: dict[tuple[str, str], StoredPart] = {}
    for pairs, _ in in_parts(names):
        wanted = f"(s.name, p.part) IN (VALUES {', '.join(['(?, ?)'] * len(pairs))})"
        values = [value for pair in pairs for value in pair]
        found |= {(part.session, part.part): part for part in stored_parts(tx, wanted, values)}
    return [found[name] for name in names]


def delete_parts(tx: Transaction, session: str, names: Sequence[str], messages: Sequence[str]) -> int:
    """Remove the parts of these ids, and those of these messages, from a session; return how many there were.

    Raises NotFound for a session that is not mirrored. The places of the others close up.
    """
    session_id = require_session(tx, session).id
    gone: dict[int, tuple[int, int]] = {}
    for column, wanted in (("part", names), ("message", messages)):
        for chunk, marks in in_parts([name for name in wanted if name]):
            gone |= _by_place(tx, f"session_id = ? AND {column} IN ({marks})", (session_id, *chunk))
    _remove(tx, session_id, gone)
    if tx.execute("SELECT own FROM sessions WHERE id = ?", (session_id,)).fetchone() == (1,):
        _mark_own(tx, session_id)
    return len(gone)


def delete_session(tx: Transaction, session: str) -> int:
    """Remove a session with all its parts; return how many there were. What was distilled of it stays."""
    session_id = require_session(tx, session).id
    gone = _by_place(tx, "session_id = ?", (session_id,))
    _remove(tx, session_id, gone)
    tx.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    return len(gone)


class Session(NamedTuple):
    """A stored session. failures: of checkpoints, in a row. own: it is that of a writer of this memory."""

    id: int
    scope: str
    failures: int
    own: bool


def require_session(tx: Transaction, name: str) -> Session:
    """Return a session; raise NotFound for one that is not mirrored."""
    row = tx.execute("SELECT id, scope, failures, own FROM sessions WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise NotFound(f"no session {name!r}: nothing of it is mirrored")
    return Session(*row)


def _by_place(tx: Transaction, condition: str, parameters: Sequence[object]) -> dict[int, tuple[int, int]]:
    rows = tx.execute(f"SELECT seq, id, length FROM parts WHERE {condition}", parameters)
    return {seq: (part_id, length) for seq, part_id, length in rows}


def _remove(tx: Transaction, session_id: int, gone: Mapping[int, tuple[int, int]]) -> None:
    """Remove parts by their places, with id and length of each, and close up the places behind."""
    text_index.drop(tx, "part", [part_id for part_id, _ in gone.values()])
    tx.executemany("DELETE FROM parts WHERE id = ?", [(part_id,) for part_id, _ in gone.values()])
    (stored,) = tx.execute("SELECT parts FROM sessions WHERE id = ?", (session_id,)).fetchone()
    places = sorted(gone)
    gaps = itertools.pairwise([*places, stored])
    _shift(tx, session_id, [(place + 1, end, -by) for by, (place, end) in enumerate(gaps, 1)])
    tx.execute(
        "UPDATE sessions SET parts = parts - ?, length = length - ? WHERE id = ?",
        (len(gone), sum(length for _, length in gone.values()), session_id),
    )


def said_by_user(tx: Transaction, session: str) -> list[str]:
    """Return what the user said last in a session, the latest first; nothing for a session that is not mirrored."""
    rows = tx.execute(
        """SELECT p.text FROM sessions s JOIN parts p ON p.session_id = s.id
           WHERE s.name = ? AND p.role = 'user' ORDER BY p.seq DESC LIMIT ?""",
        (session, _LAST_SAID),
    )
    return [text for (text,) in rows]


def speaking(tx: Transaction, scopes: Sequence[str] | None, since: str) -> str:
    """Return the session of some scopes in which the user spoke last, '' where nobody did since a time."""
    within, parameters = of_scopes(scopes, column="s.scope")
    row = tx.execute(
        f"""SELECT s.name FROM (SELECT id, session_id, COALESCE(at, recorded_at) AS said_at FROM parts
                                WHERE role = 'user' ORDER BY id DESC LIMIT ?) p
            JOIN sessions s ON s.id = p.session_id
            WHERE p.said_at >= ? AND s.own = 0 {within} ORDER BY p.said_at DESC, p.id DESC LIMIT 1""",
        (_LAST_SAID, since, *parameters),
    ).fetchone()
    return "" if row is None else str(row[0])


def said_lately(tx: Transaction, session: str, since: str) -> list[tuple[str, str]]:
    """Return what the user said in a session since a time, the latest first, each with when."""
    rows = tx.execute(
        """SELECT p.text, COALESCE(p.at, p.recorded_at) AS said_at FROM sessions s JOIN parts p ON p.session_id = s.id
           WHERE s.name = ? AND p.role = 'user' AND COALESCE(p.at, p.recorded_at) >= ?
           ORDER BY p.seq DESC LIMIT ?""",
        (session, since, _LAST_SAID),
    )
    return rows.fetchall()


def list_sessions(tx: Transaction, scopes: Sequence[str] | None, limit: int) -> tuple[SessionInfo, ...]:
    """Return sessions, those in which something was said last first."""
    within, parameters = of_scopes(scopes, column="s.scope")
    said = "SELECT COALESCE(p.at, p.recorded_at) FROM parts p WHERE p.session_id = s.id ORDER BY p.seq"
    rows = tx.execute(
        f"""SELECT s.name, s.scope, s.parts,
                   (SELECT COUNT(*) FROM parts p WHERE p.session_id = s.id AND p.job_id IS NULL)
                   + (SELECT COUNT(*) FROM jobs j JOIN parts p ON p.job_id = j.id
                      WHERE j.session_id = s.id AND j.state IN ('asked', 'answered')), s.failures, s.own,
                   COALESCE(({said} LIMIT 1), s.created_at), COALESCE(({said} DESC LIMIT 1), s.updated_at)
            FROM sessions s WHERE TRUE {within} ORDER BY 8 DESC, s.id DESC LIMIT ?""",
        (*parameters, limit),
    )
    return tuple(
        SessionInfo(name, scope, parts, undigested, failures, bool(own), first, last)
        for name, scope, parts, undigested, failures, own, first, last in rows
    )


# ---- transcripts of other programs


def cursor_of(tx: Transaction, path: str, kind: str) -> str:
    """Return how far a transcript was read, '' for the beginning."""
    row = tx.execute("SELECT cursor FROM transcripts WHERE path = ? AND kind = ?", (path, kind)).fetchone()
    return "" if row is None else str(row[0])


class Harvested(NamedTuple):
    """A transcript that was read. redact: whether its secrets are replaced, None as the settings say. at: when it was
    looked at last, before it was read."""

    path: str
    kind: str
    redact: bool | None
    at: str


def harvested(tx: Transaction) -> list[Harvested]:
    """Return the transcripts that were read."""
    rows = tx.execute("SELECT path, kind, redact, updated_at FROM transcripts ORDER BY path, kind")
    return [Harvested(path, kind, None if redact is None else bool(redact), at) for path, kind, redact, at in rows]


def keep_cursor(tx: Transaction, look: Harvested, cursor: str) -> None:
    """Note how far a transcript is read, and how the next search goes on with it."""
    tx.execute(
        """INSERT INTO transcripts(path, kind, cursor, redact, updated_at) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT (path, kind) DO UPDATE SET cursor = excluded.cursor, redact = excluded.redact,
                                                  updated_at = excluded.updated_at""",
        (look.path, look.kind, cursor, look.redact, look.at),
    )


def forget_transcripts(tx: Transaction, names: Iterable[str]) -> int:
    """Drop what is kept of the transcripts that tell of sessions, in their paths or else; return of how many it was."""
    spelled = {form for name in names for form in (name, json.dumps(name)[1:-1])}
    told = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, spelled))})(?!\w)") if spelled else None
    dropped = [
        (path, kind)
        for path, kind, cursor in tx.execute("SELECT path, kind, cursor FROM transcripts")
        if told and (told.search(path) or told.search(cursor))
    ]
    tx.executemany("DELETE FROM transcripts WHERE path = ? AND kind = ?", dropped)
    return len(dropped)


def note_looks(tx: Transaction, looks: Sequence[Harvested]) -> None:
    """Note that there is nothing new in transcripts; how far they are read stays as it is."""
    tx.executemany(
        """INSERT INTO transcripts(path, kind, cursor, redact, updated_at) VALUES (?, ?, '', ?, ?)
           ON CONFLICT (path, kind) DO UPDATE SET redact = excluded.redact, updated_at = excluded.updated_at""",
        looks,
    )
