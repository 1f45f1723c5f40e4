"""Turns in a form of our own: JSON Lines with role and text, and where known id, session, author, at, tool, outcome,
project. A session is the name of its file where none is named."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from graphmem.core.model import Part
from graphmem.errors import InvalidInput
from graphmem.exchange.formats.heard import Batch, Damaged, Source, Telling, folder_of, moment_of
from graphmem.exchange.formats.lines import Line, read_lines

_TEXTS = ("session", "author", "tool", "outcome", "project")


def read(source: Source, cursor: str) -> Iterator[Batch]:
    """Yield what is new in a file of turns."""

    return read_lines(source, cursor, partial(_hear, path=source.path, name=Path(source.path).stem))


def is_one(found: dict[str, Any]) -> bool:
    """Tell whether an object looks like a turn.

    >>> is_one({"role": "user", "text": "Hello"}), is_one({"role": "user"})
    (True, False)
    """
    return isinstance(found.get("role"), str) and isinstance(found.get("text"), str)


def _hear(line: Line, telling: Telling, *, path: str, name: str) -> None:
    found = line.found
    if not is_one(found):
        raise Damaged("a turn needs role and text, each a text")
    for each in _TEXTS:
        if not isinstance(found.get(each) or "", str):
            raise Damaged(f"{each} is no text")
    session = (found.get("session") or "").strip() or name
    at, project = moment_of(found.get("at")), folder_of(found.get("project"))
    try:
        part = Part(
            _id_of(found.get("id")) or line.digest,
            author=found.get("author") or "",
            role=found["role"],
            text=found["text"],
            at=at,
            tool=found.get("tool") or "",
            outcome=found.get("outcome") or "",
        )
    except InvalidInput as error:
        raise Damaged(str(error)) from None
    if at is None and found.get("at") is not None:
        telling.remark(f"{path} line {line.number}: at is no time, the turn is kept without")
    if not project and found.get("project"):
        telling.remark(f"{path} line {line.number}: project is no absolute folder, the turn is kept without")
    telling.session(session, project)
    telling.add(session, part)


def _id_of(value: object) -> str:
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Damaged("id is neither text nor number")
