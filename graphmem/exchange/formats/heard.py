"""What is read from a transcript, and how it is gathered into batches that can be stored one by one."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from graphmem.core.injected import is_for_a_writer
from graphmem.core.keys import clean_text
from graphmem.core.model import Part
from graphmem.errors import InvalidInput, StoreFailed
from graphmem.store.database import is_open_here

PARTS_AT_ONCE = 500
LETTERS_AT_ONCE = 1 << 22
_REMARKS_AT_ONCE = 20
_SESSIONS = 1000  # of one file that a cursor remembers
_CALLS = 100  # of tools, without an answer yet, that a cursor remembers


class Damaged(ValueError):
    """A line, a file or a conversation that cannot be understood; the message tells why."""


# What data of a form that nobody foresaw raises in who reads it.
FAULTS = (TypeError, ValueError, OverflowError, RecursionError, OSError)


def told_of(error: Exception) -> str:
    """Return what is wrong with data that a reader fell over.

    >>> told_of(Damaged("no id")), told_of(TypeError("unhashable type: 'list'"))
    ('no id', "not in the form that is known (TypeError: unhashable type: 'list')")
    """
    if isinstance(error, Damaged):
        return str(error)
    return f"not in the form that is known ({type(error).__name__}: {error})"


@dataclass(frozen=True, slots=True)
class Source:
    """What has one cursor: a file of lines, a session of OpenCode, an export.

    path: absolute. A session in the database of OpenCode is the path of the database, '/', and the session's id.
    unreadable: why nobody can tell what it is, '' where it is of a kind.
    """

    kind: str
    path: str
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """A run of parts of one session, in order. project: the absolute folder it was in, '' where that is not known."""

    session: str
    project: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What can be stored at once, and the cursor that holds once it is.

    done, whole: bytes that are read, and that there are. own: sessions left out because a writer of this memory wrote
    them. remarks: what was left out else, and where.
    """

    heard: tuple[Heard, ...]
    cursor: str
    done: int
    whole: int
    own: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """The call of a tool that has no answer yet, and the line it stands in."""

    session: str
    part: Part
    offset: int
    number: int


@dataclass(slots=True)
class Session:
    """What later parts of a session need to know. own: a writer of this memory; None before its user said anything."""

    project: str = ""
    own: bool | None = None


@dataclass(slots=True)
class Telling:
    """What was gathered since the last batch, and what a cursor has to remember of the source."""

    sessions: dict[str, Session] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    parts: int = 0
    letters: int = 0
    own: int = 0
    _fresh: dict[str, list[Part]] = field(default_factory=dict)
    _again: dict[str, list[Part]] = field(default_factory=dict)
    _places: dict[tuple[str, str], int] = field(default_factory=dict)
    _remarks: list[str] = field(default_factory=list)
    _left_out: dict[str, int] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether it is time for a batch."""
        return self.parts >= PARTS_AT_ONCE or self.letters >= LETTERS_AT_ONCE

    @property
    def remarked(self) -> bool:
        """Whether there is something to say that no part says."""
        return bool(self._remarks)

    @property
    def remembered(self) -> dict[str, Session]:
        """The sessions heard last; the others are forgotten with a batch, not before, since it needs those it holds."""
        return dict(list(self.sessions.items())[-_SESSIONS:])

    def session(self, name: str, project: str = "") -> Session:
        """Return what is known of a session; its first project stays."""
        known = self.sessions.pop(name) if name in self.sessions else Session()
        self.sessions[name] = known  # what was heard last stands last
        known.project = known.project or project
        return known

    def add(self, session: str, part: Part) -> bool:
        """Take the next part of a session; return whether it is taken, those of a writer's session are not."""
        known = self.session(session)
        if known.own is None and part.role in ("user", "system"):
            if is_for_a_writer(part.text):
                known.own = True
                self.own += 1
            elif part.role == "user":
                known.own = False
        if known.own:
            return False
        told = self._fresh.setdefault(session, [])
        self._places[session, part.id] = len(told)
        told.append(part)
        self._count(part)
        return True

    def add_call(self, name: str, call: Call) -> None:
        """Take the call of a tool; its answer may come later."""
        if self.add(call.session, call.part):
            while len(self.calls) >= _CALLS:
                del self.calls[next(iter(self.calls))]
            self.calls[name] = call

    def tell_again(self, session: str, part: Part) -> None:
        """Take a part that was told before, in this batch or an earlier one.

        An earlier batch's stands in a run of its own, since what follows a known part in a run goes behind that part.
        """
        place = self._places.get((session, part.id))
        if place is None:
            self._again.setdefault(session, []).append(part)
        else:
            self._fresh[session][place] = part
        self._count(part)

    def _count(self, part: Part) -> None:
        self.parts += 1
        self.letters += len(part.text)

    def remark(self, text: str) -> None:
        """Say what is wrong; of many remarks the first are kept, the others counted."""
        if len(self._remarks) < _REMARKS_AT_ONCE:
            self._remarks.append(text)
        else:
            self.leave_out("more that could not be read")

    def leave_out(self, what: str) -> None:
        """Count what nobody knows how to read."""
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def batch(self, path: str, cursor: dict[str, Any], done: int, whole: int) -> Batch:
        """Return what was gathered, and begin anew."""
        runs = [(name, parts) for told in (self._again, self._fresh) for name, parts in told.items()]
        heard = tuple(Heard(name, self.session(name).project, tuple(parts)) for name, parts in runs)
        self.sessions = self.remembered
        left_out = (f"{path}: {count} {what} left out" for what, count in self._left_out.items())
        made = Batch(heard, json.dumps(cursor), done, max(whole, done), self.own, (*self._remarks, *left_out))
        self._fresh, self._again, self._places, self._remarks, self._left_out = {}, {}, {}, [], {}
        self.parts = self.letters = self.own = 0
        return made


@contextlib.contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Tell which file cannot be read."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StoreFailed):
            raise
        where = error.filename if isinstance(error.filename, str) else path
        raise StoreFailed(f"{where} cannot be read: {error.strerror or error}; check the path") from error


def refuse_memory(path: str) -> None:
    """Raise InvalidInput for a file that SQLite has open here: to read it would drop SQLite's locks on it."""
    if os.path.exists(path) and is_open_here(path):
        raise InvalidInput("path", path, "is a memory that is open in this process, not a transcript")


def read_cursor(cursor: str) -> dict[str, Any]:
    """Return what a cursor holds, nothing at the beginning. Raises InvalidInput for what is none."""
    found: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(cursor or "{}")
    if not isinstance(found, dict):
        raise InvalidInput("cursor", cursor, "give the cursor of the last batch, or '' to read from the beginning")
    return found


def text_of(value: object) -> str:
    """Return a text, '' for what is none.

    >>> text_of("x"), text_of(None)
    ('x', '')
    """
    return value if isinstance(value, str) else ""


def object_of(value: object) -> dict[str, Any]:
    """Return an object of JSON, an empty one for what is none.

    >>> object_of({"a": 1}), object_of([1])
    ({'a': 1}, {})
    """
    return value if isinstance(value, dict) else {}


def folder_of(value: object) -> str:
    r"""Return an absolute folder, '' for what is none.

    >>> folder_of("/srv/app"), folder_of("C:\\app"), folder_of("app"), folder_of("/a\0b"), folder_of(None)
    ('/srv/app', 'C:\\app', '', '', '')
    """
    path = text_of(value)
    absolute = PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
    return path if absolute and clean_text(path) == path else ""
