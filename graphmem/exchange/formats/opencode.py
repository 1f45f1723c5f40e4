"""Sessions of OpenCode: the files in its folder `storage`, and since version 1.2 its database `opencode.db`.

Facts: `session.sql.ts`, `message-v2.ts` of anomalyco/opencode (columns; what a part holds), descriptions of the folder
`storage/{session,message,part}/<parent>/<id>.json`. Ids grow with time, so they are the order of messages and parts.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote

from graphmem.core.model import Part
from graphmem.core.turns import moment_of
from graphmem.errors import InvalidInput, StoreFailed
from graphmem.exchange.formats.blocks import asked, with_answer
from graphmem.exchange.formats.heard import (
    FAULTS,
    Batch,
    Damaged,
    Source,
    Telling,
    folder_of,
    named_errors,
    object_of,
    read_cursor,
    refuse_memory,
    text_of,
    told_of,
)
from graphmem.late import late

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late("hashlib")

DATABASE = "opencode.db"
_WAIT_MS = 5000
_TABLES = {"session": "id, parent_id, directory", "message": "id, session_id, data", "part": "id, message_id, data"}
_SILENT = frozenset(
    {"reasoning", "file", "agent", "subtask", "retry", "compaction", "step-start", "step-finish", "snapshot", "patch"}
)
_OUTCOMES = {"completed": "done", "error": "failed"}


class Message(NamedTuple):
    """A message without its parts. size: bytes of it and of them. settled: its program is done with it."""

    id: str
    role: str
    at: object
    size: int
    settled: bool
    summary: bool


class Storage(Protocol):
    """Where one session lies."""

    @property
    def id(self) -> str:
        """Its id, unique among all sessions."""
        ...

    @property
    def directory(self) -> str:
        """The folder it was in."""
        ...

    @property
    def parent(self) -> str:
        """The id of the session that began it, '' for none."""
        ...

    def messages(self, after: str, telling: Telling) -> list[Message]:
        """Return the messages with greater ids, in order."""
        ...

    def parts(self, message: str, telling: Telling) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the parts of a message, in order, by id."""
        ...

    def check(self) -> None:
        """Raise StoreFailed when what was read may not be what was there."""
        ...


def read(source: Source, cursor: str) -> Iterator[Batch]:
    """Yield what is new in a session.

    A cursor names the last message that its program is done with. What stands behind it may grow: it is read again,
    and told again only when it has changed.
    """
    kept = read_cursor(cursor)
    after, rest, own = kept.get("message", ""), kept.get("rest", ""), kept.get("own")
    if not isinstance(after, str) or not isinstance(rest, str) or own not in (None, True, False):
        raise InvalidInput("cursor", cursor, "is none of a session of OpenCode; give '' to read from the beginning")
    if own:
        return
    with named_errors(source.path), _storage(source.path) as storage:
        telling = Telling()
        session = telling.session(storage.id, folder_of(storage.directory))
        session.own = own
        messages = storage.messages(after, telling)
        whole, done = sum(message.size for message in messages), 0
        settled = _settled(messages)
        for message in messages[:settled]:
            for part in _parts(storage, message, telling, source.path):
                telling.add(storage.id, part)
            after, done = message.id, done + message.size
            if telling.full and not session.own:
                storage.check()
                yield telling.batch(source.path, {"message": after, "rest": "", "own": session.own}, done, whole)
        last = [part for each in messages[settled:] for part in _parts(storage, each, telling, source.path)]
        now = hashlib.sha256(repr(last).encode("utf-8", "backslashreplace")).hexdigest()[:16] if last else ""
        if now != rest or settled:
            for part in last:
                telling.add(storage.id, part)
        if now != rest or settled or telling.remarked:
            storage.check()
            yield telling.batch(source.path, {"message": after, "rest": now, "own": session.own}, whole, whole)


def part_of(message: object, part: object, *, child: bool = False) -> Part | None:
    """Return a part as `read` tells it, of what OpenCode tells its plug-ins; None for one that is no speech.

    child: the session was begun by another one.

    >>> message = {"id": "m1", "role": "user", "time": {"created": 1000}}
    >>> part_of(message, {"id": "p1", "type": "text", "text": "Hello"}).role
    'user'
    """
    found, told = object_of(message), object_of(part)
    name = text_of(told.get("id"))
    of = _message(text_of(found.get("id")) or text_of(told.get("messageID")), found, 0)
    if not name or of.summary:
        return None
    return _part(name, told, of, _role(of, child=child), Telling())


def _role(message: Message, *, child: bool) -> str:
    """Return who speaks: what a session of a subagent is asked, an assistant asks."""
    return "assistant" if child and message.role == "user" else message.role


def find_folders(storage: Path) -> list[Path]:
    """Return the folders, one a project, in which a folder `storage` has its sessions."""
    return [each for each in (storage / "session").iterdir() if each.is_dir()]


def find_rows(database: Path) -> list[str]:
    """Return the ids of the sessions in a database. Raises InvalidInput for one that is not OpenCode's."""
    with _opened(database) as (connection, check):
        found = [name for (name,) in connection.execute("SELECT id FROM session ORDER BY id")]
        check()
        return found


def _settled(messages: list[Message]) -> int:
    """Return how many messages nobody works on any more: an assistant begins its next one when it is done with one.

    >>> def message(name, role, settled):
    ...     return Message(name, role, None, 0, settled, False)
    >>> _settled([message("1", "user", True), message("2", "assistant", False)])
    1
    >>> _settled([message("2", "assistant", False), message("3", "user", True), message("4", "assistant", True)])
    3
    """
    assistants = [place for place, message in enumerate(messages) if message.role == "assistant"]
    if assistants and not messages[assistants[-1]].settled:
        return assistants[-1]
    return len(messages)


def _parts(storage: Storage, message: Message, telling: Telling, path: str) -> Iterator[Part]:
    if message.summary:  # of a session that became too long: what it says was said before
        return
    role = _role(message, child=bool(storage.parent))
    for name, found in storage.parts(message.id, telling):
        try:
            part = _part(name, found, message, role, telling)
        except FAULTS as error:
            telling.remark(f"{path} part {name}: {told_of(error)}, passed over")
            continue
        if part is not None:
            yield part


def _part(name: str, found: dict[str, Any], message: Message, role: str, telling: Telling) -> Part | None:
    kind = text_of(found.get("type"))
    at = moment_of(_seconds(object_of(found.get("time")).get("start"))) or moment_of(_seconds(message.at))
    if kind == "text":
        text = text_of(found.get("text"))
        if text.strip() and found.get("synthetic") is not True and found.get("ignored") is not True:
            return Part(name, message=message.id, role=role, text=text, at=at)
    elif kind == "tool":
        state = object_of(found.get("state"))
        answer = text_of(state.get("error" if state.get("status") == "error" else "output"))
        return Part(
            name,
            message=message.id,
            role="tool",
            tool=text_of(found.get("tool")),
            outcome=_OUTCOMES.get(text_of(state.get("status")), ""),
            text=with_answer(asked(state.get("input")), answer),
            at=at,
        )
    elif kind not in _SILENT:
        telling.leave_out(f"parts of type {kind[:40]!r}")
    return None


def _seconds(milliseconds: object) -> object:
    with contextlib.suppress(OverflowError):
        if isinstance(milliseconds, int | float):
            return milliseconds / 1000
    return None


def _message(name: str, found: dict[str, Any], size: int) -> Message:
    time = object_of(found.get("time"))
    role = text_of(found.get("role"))
    settled = role != "assistant" or time.get("completed") is not None or found.get("error") is not None
    return Message(name, role, time.get("created"), size, settled, found.get("summary") is True)


@contextlib.contextmanager
def _storage(path: str) -> Iterator[Storage]:
    if path.endswith(".json"):
        yield _Files(Path(path))
        return
    database, session = os.path.split(path)
    with _opened(Path(database)) as (connection, check):
        row = connection.execute("SELECT directory, parent_id FROM session WHERE id = ?", (session,)).fetchone()
        if row is None:
            raise InvalidInput("path", path, "there is no such session in this database any more")
        yield _Rows(connection, check, path, session, text_of(row[0]), text_of(row[1]))


class _Files:
    """A session in the folder `storage`."""

    def __init__(self, file: Path) -> None:
        try:
            found = _load(file)
        except Damaged as error:
            raise InvalidInput("path", str(file), f"is no session of OpenCode: {error}") from None
        self._folder = file.parents[2]
        self.id = text_of(found.get("id")) or file.stem
        self.directory = text_of(found.get("directory"))
        self.parent = text_of(found.get("parentID"))

    def messages(self, after: str, telling: Telling) -> list[Message]:
        """Return the messages with greater ids; one whose file is damaged is passed over, the last one waits."""
        names = [name for name in self._names("message", self.id) if name > after]
        messages = []
        for name in names:
            file = self._file("message", self.id, name)
            files = [file, *(self._file("part", name, part) for part in self._names("part", name))]
            try:
                messages.append(_message(name, _load(file), sum(each.stat().st_size for each in files)))
            except Damaged as error:
                last = name == names[-1]
                telling.remark(f"{file}: {error}, {'it is read next time' if last else 'passed over'}")
        return messages

    def parts(self, message: str, telling: Telling) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the parts of a message; one whose file is damaged is passed over."""
        for name in self._names("part", message):
            try:
                yield name, _load(self._file("part", message, name))
            except Damaged as error:
                telling.remark(f"{self._file('part', message, name)}: {error}, passed over")

    def check(self) -> None:
        """A file that changed is a message that somebody works on, and is read again."""

    def _file(self, kind: str, parent: str, name: str) -> Path:
        return self._folder / kind / parent / f"{name}.json"

    def _names(self, kind: str, parent: str) -> list[str]:
        folder = self._folder / kind / parent
        return sorted(each.stem for each in folder.iterdir() if each.suffix == ".json") if folder.is_dir() else []


def _load(file: Path) -> dict[str, Any]:
    refuse_memory(str(file))
    return _object(file.read_bytes())


def _object(raw: object) -> dict[str, Any]:
    text = raw if isinstance(raw, str | bytes) else b""
    try:
        found = json.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"no JSON ({error})") from None
    if not isinstance(found, dict):
        raise Damaged("no JSON object")
    return found


@dataclass(frozen=True, slots=True)
class _Rows:
    """A session in the database."""

    connection: sqlite3.Connection
    check: Callable[[], None]
    path: str
    id: str
    directory: str
    parent: str

    def messages(self, after: str, telling: Telling) -> list[Message]:
        """Return the messages with greater ids; one whose row is damaged is passed over."""
        rows = self.connection.execute(
            """SELECT m.id, m.data, coalesce(length(m.data), 0) + (SELECT coalesce(sum(length(p.data)), 0) FROM part p
                                                      WHERE p.message_id = m.id)
               FROM message m WHERE m.session_id = ? AND m.id > ? ORDER BY m.id""",
            (self.id, after),
        )
        messages = []
        for name, data, size in rows:
            try:
                messages.append(_message(name, _object(data), size))
            except Damaged as error:
                telling.remark(f"{self.path} message {name}: {error}, passed over")
        return messages

    def parts(self, message: str, telling: Telling) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the parts of a message; one whose row is damaged is passed over."""
        query = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
        for name, data in self.connection.execute(query, (message,)).fetchall():
            try:
                yield name, _object(data)
            except Damaged as error:
                telling.remark(f"{self.path} part {name}: {error}, passed over")


@contextlib.contextmanager
def _opened(database: Path) -> Iterator[tuple[sqlite3.Connection, Callable[[], None]]]:
    """Open a database for reading only, so that its program neither waits nor finds a file that it did not make.

    Gives the connection, and what raises StoreFailed when something was written that it may have read by halves.

    While it is in use it has a -wal, and SQLite's own locks keep readers and writers apart. Without one SQLite would
    make one and leave it behind, so the file is read as one that nobody changes, and then looked at whether anybody
    did.
    """
    path = str(database)
    refuse_memory(path)
    before = _state(path)
    in_use = any(os.path.exists(f"{path}-{side}") for side in ("wal", "journal"))
    mode = "mode=ro" if in_use else "mode=ro&immutable=1"

    def check() -> None:
        if not in_use and _state(path) != before:
            raise StoreFailed(f"{path} was written while it was read: try again")

    try:
        connection = sqlite3.connect(f"file:{quote(path)}?{mode}", uri=True, timeout=_WAIT_MS / 1000)
        with contextlib.closing(connection):
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            _require_opencode(connection, path)
            yield connection, check
    except sqlite3.Error as error:
        raise StoreFailed(f"{path} cannot be read: {error}") from error


def _state(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _require_opencode(connection: sqlite3.Connection, path: str) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, columns in _TABLES.items():
        found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} if table in tables else set()
        if missing := set(columns.split(", ")) - found:
            reason = f"is no database of OpenCode: no {', '.join(sorted(missing))} in a table {table}"
            raise InvalidInput("path", path, reason)
