"""Turns in a form of our own, see `core.turns`; each may say its session and its project besides.

Where none is named, a session has the name of its file and a digest of the whole path: `talk.jsonl` in two folders is
two sessions, and each has always the same name.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from graphmem.core.turns import is_turn, part_of
from graphmem.errors import InvalidInput
from graphmem.exchange.formats.heard import Batch, Damaged, Source, Telling, folder_of
from graphmem.exchange.formats.lines import Line, read_lines
from graphmem.late import late

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late("hashlib")

is_one = is_turn
_DIGITS = 8


def read(source: Source, cursor: str) -> Iterator[Batch]:
    """Yield what is new in a file of turns."""
    return read_lines(source, cursor, partial(_hear, path=source.path, name=session_of(source.path)))


def session_of(path: str) -> str:
    """Return the session of turns that name none, by the absolute path of their file.

    >>> session_of("/logs/talk.jsonl")
    'talk-141c3db2'
    """
    return f"{Path(path).stem}-{hashlib.sha256(path.encode()).hexdigest()[:_DIGITS]}"


def _hear(line: Line, telling: Telling, *, path: str, name: str) -> None:
    found = line.found
    for each in ("session", "project"):
        if not isinstance(found.get(each) or "", str):
            raise Damaged(f"{each} is no text")
    session = (found.get("session") or "").strip() or name
    project = folder_of(found.get("project"))
    try:
        part = part_of(found, line.digest)
    except InvalidInput as error:
        raise Damaged(str(error)) from None
    if part.at is None and found.get("at") is not None:
        telling.remark(f"{path} line {line.number}: at is no time, the turn is kept without")
    if not project and found.get("project"):
        telling.remark(f"{path} line {line.number}: project is no absolute folder, the turn is kept without")
    telling.session(session, project)
    telling.add(session, part)
