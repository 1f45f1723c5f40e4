"""Import of opencode-promemory: the tree of its markdown files, its index of them, and its mirror of sessions.

A bullet of `MEMORY.md` becomes a note, of the kind that its heading says; a checkpoint becomes one; the history becomes
mirrored sessions. Of the index, `memory.db`, only texts are taken whose files are not there. A project has the id that
its path gives it there, which for paths in plain form is its key here, so its folder finds what came.
"""

import contextlib
import functools
import itertools
import re
import sqlite3
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from graphmem.core import checkpoints
from graphmem.core.bullets import HEADING, Item, items
from graphmem.core.keys import clean_text
from graphmem.core.model import Part
from graphmem.core.redaction import redact, refuse_secrets
from graphmem.core.sections import kind_of_heading
from graphmem.core.times import foreign_time
from graphmem.errors import InvalidInput, SecretRefused
from graphmem.exchange.formats.heard import named_errors
from graphmem.exchange.importing import Steps, Tally, Target
from graphmem.exchange.noting import ForeignNote, take_in_note
from graphmem.records import history, scopes
from graphmem.records.drafts import LONGEST_SUMMARY
from graphmem.store.copies import open_copy
from graphmem.store.transaction import Transaction

_AT_ONCE = 500
_INDEX, _HISTORY = "memory.db", "history.db"
_PLACE = re.compile(r"(?:^|/)(?:(?P<kind>projects|sessions)/(?P<id>[^/]+)|global)/(?P<name>[^/]+)\.md$")
_CHECKPOINT = "# Checkpoint"
_DATE = re.compile(r"Date:[ \t]*(\S.*)")


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a session of a folder is here: of which scope, and its name, which another project may have there.

    is_taken: its parts are to come; those of one that was removed here are not.
    """

    scope: str
    session: str
    is_taken: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """What lies in a folder of promemory. texts: the markdown by place, such as 'global/MEMORY.md'."""

    texts: dict[str, str]
    history: Path | None


@contextlib.contextmanager
def opened(path: str) -> Iterator[Callable[[Target, Tally], None]]:
    """Open a folder, or one of its databases. Raises InvalidInput for one with nothing of promemory, StoreFailed."""
    place = Path(path)
    folder = place if place.is_dir() else place.parent
    index = folder / _INDEX if place.is_dir() else place if place.name == _INDEX else None
    mirror = folder / _HISTORY if place.is_dir() else place if place.name == _HISTORY else None
    texts = _indexed(index) if index is not None and index.exists() else {}
    if place.is_dir():
        texts |= _written(place)
    mirror = mirror if mirror is not None and mirror.exists() else None
    if not texts and mirror is None:
        wanted = (
            f"give its folder, with {_INDEX}, {_HISTORY}, global/, projects/ and sessions/, or one of the databases"
        )
        raise InvalidInput("path", path, f"holds nothing of opencode-promemory; {wanted}")
    yield functools.partial(_take_in, _Source(texts, mirror))


def _written(folder: Path) -> dict[str, str]:
    """Return the markdown files; links are not followed, as they may lead anywhere."""
    found: dict[str, str] = {}
    with named_errors(str(folder)):
        for pattern in ("global/*.md", "projects/*/*.md", "sessions/*/*.md"):
            for file in sorted(folder.glob(pattern)):
                parts = [file, *itertools.islice(file.parents, 2)]
                if file.is_file() and not any(part.is_symlink() for part in parts if part != folder):
                    found[file.relative_to(folder).as_posix()] = file.read_bytes().decode("utf-8-sig", "replace")
    return found


def _indexed(file: Path) -> dict[str, str]:
    with open_copy(file) as copy:
        return {
            match[0].lstrip("/"): str(body or "")
            for path, body in _rows(copy.connection, "memory_fts", "path, body")
            if (match := _PLACE.search(str(path).replace("\\", "/")))
        }


def _rows(
    connection: sqlite3.Connection, table: str, columns: str, order: str = "rowid"
) -> Generator[tuple[object, ...]]:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        yield from connection.execute(f"SELECT {columns} FROM {table} ORDER BY {order}")


def _take_in(source: _Source, target: Target, tally: Tally) -> None:
    steps = Steps(target.progress, [len(source.texts), 1])
    homes = _take_in_history(source.history, target, tally) if source.history is not None else {}
    steps.advance(1)
    for place, text in source.texts.items():
        match = _PLACE.search(place)
        assert match is not None
        with target.writing() as tx:
            try:
                home = _home_of_file(tx, match, homes, target)
            except SecretRefused as error:
                tally.refuse("file", place, str(error))
            else:
                _take_in_file(tx, text, home, target, tally)
        steps.advance(1)


def _take_in_file(tx: Transaction, text: str, home: _Home, target: Target, tally: Tally) -> None:
    memory, blocks = _parted(text.splitlines())
    for block in blocks:
        _take_in_checkpoint(tx, block, home.session, home.scope, target, tally)
    for item in items(memory):
        _take_in_item(tx, item, home.session, home.scope, target, tally)


def _home_of_file(
    tx: Transaction, match: re.Match[str], homes: dict[str, _Home | SecretRefused], target: Target
) -> _Home:
    """Return where a file belongs; raise SecretRefused for one of a project or a session that is refused."""
    name = clean_text(match["id"] or "")
    if match["kind"] != "sessions":
        return _Home(_project(tx, name, target), "", is_taken=True)
    home = homes.get(name, _Home(target.scope or "", name, is_taken=True))
    if isinstance(home, SecretRefused):
        raise home
    refuse_secrets(session=name)
    return home


def _project(tx: Transaction, project: object, target: Target) -> str:
    """Return the scope of a project; raise SecretRefused for a secret in its name, of which the scope would be made."""
    if target.scope is not None:
        return target.scope
    name = clean_text(str(project or ""))
    refuse_secrets(project=name)
    return scopes.key_of_other(tx, "promem", name) if name and target.config.project_memory else ""


# ---- sessions


def _take_in_history(file: Path, target: Target, tally: Tally) -> dict[str, _Home | SecretRefused]:
    """Mirror the sessions; return where each is, or why it is refused."""
    homes: dict[str, _Home | SecretRefused] = {}
    with open_copy(file) as copy:
        tally.remark(*copy.remarks)
        columns = "session_id, part_id, message_id, body, time_created, tool_name, project_id"
        rows = _rows(copy.connection, "history_fts", columns, "session_id, time_created, rowid")
        with contextlib.closing(rows):  # before the file is, where the import is broken off
            for session, group in itertools.groupby(rows, key=itemgetter(0)):
                while batch := list(itertools.islice(group, _AT_ONCE)):
                    with target.writing() as tx:
                        name = clean_text(str(session or ""))
                        if name not in homes:
                            homes[name] = _home_of_session(tx, name, batch[0][6], target, tally)
                        home = homes[name]
                        if isinstance(home, _Home) and home.is_taken:
                            _mirror(tx, home, batch, target, tally)
    return homes


def _home_of_session(
    tx: Transaction, name: str, project: object, target: Target, tally: Tally
) -> _Home | SecretRefused:
    try:
        refuse_secrets(session=name)
        scope = _project(tx, project, target)
    except SecretRefused as error:
        tally.refuse("session", name, str(error))
        return error
    here, is_removed = history.place_of(tx, name, scope)
    if is_removed:
        tally.refuse("session", here, "it was removed here; mirror takes it up again")
    elif here != name:
        tally.remark(f"session {name!r} is not of {scope}, whose own is {here!r}")
    return _Home(scope, here, is_taken=not is_removed)


def _mirror(tx: Transaction, home: _Home, rows: list[tuple[object, ...]], target: Target, tally: Tally) -> None:
    session = home.session
    parts = [
        Part(
            str(part),
            text=str(body or ""),
            at=foreign_time(at) or None,
            message=str(message or ""),
            tool=str(tool or ""),
            role="tool" if tool else "",
        )
        for _, part, message, body, at, tool, _ in rows
        if str(part or "").strip()
    ]
    try:
        told, remarks = history.check_parts(parts, target.config.zone, screened=target.config.redact_mirror)
    except SecretRefused as error:
        tally.refuse("part", session, str(error))
        return
    if not session.strip() or not told:
        tally.refuse("session", session, "has no name, or no parts")
        return
    report = history.mirror(tx, session, told, {}, target.at, scope=None, home=home.scope)
    for outcome, number in (("added", report.added), ("changed", report.changed), ("known", report.known)):
        tally.count("part", outcome, number)
    tally.remark(*(f"session {session}: {remark}" for remark in (*remarks, *report.remarks)))


# ---- files


def _parted(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the lines of a memory file, and the checkpoints in it, each with its lines.

    >>> _parted(["# Memory", "- a", "# Checkpoint", "## Facts", "- b", "## Rules", "- c"])
    (['# Memory', '- a', '## Rules', '- c'], [['# Checkpoint', '## Facts', '- b']])
    """
    memory: list[str] = []
    found: list[list[str]] = []
    into = memory
    for line in lines:
        heading = HEADING.fullmatch(line)
        if line.rstrip() == _CHECKPOINT:
            into = []
            found.append(into)
        elif heading and into is not memory and not (len(heading[1]) == 2 and heading[2] in checkpoints.HEADINGS):
            into = memory
        into.append(line)
    return memory, found


def _take_in_item(tx: Transaction, item: Item, session: str, scope: str, target: Target, tally: Tally) -> None:
    if item.text in checkpoints.NOTHING.values() or item.text in ("-->", checkpoints.DONE):
        return
    title, _, rest = item.text.partition("\n")
    note = ForeignNote(
        title, rest, kind=kind_of_heading(item.heading) or "fact", session=session,
        labels=(item.heading,) if item.heading else (),
    )  # fmt: skip
    take_in_note(tx, note, scope, target, tally)


def _take_in_checkpoint(
    tx: Transaction, lines: list[str], session: str, scope: str, target: Target, tally: Tally
) -> None:
    text = "\n".join(line for line in lines if line.strip() != checkpoints.DONE).strip()
    plain = redact(clean_text(text))
    if plain != text:
        tally.remark(f"checkpoint of {session or 'a project'}: secrets in it were replaced")
    date = next((match[1] for line in lines if (match := _DATE.fullmatch(line.rstrip()))), "")
    at = foreign_time(date)
    note = ForeignNote(
        f"Checkpoint of {session or 'a project'}, {(at or date)[:16].replace('T', ' ')}", plain, kind="checkpoint",
        summary=checkpoints.summary_of(plain, LONGEST_SUMMARY), session=session, at=at,
    )  # fmt: skip
    take_in_note(tx, note, scope, target, tally, "checkpoint")
