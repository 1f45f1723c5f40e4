"""Files of one JSON object a line that grow at their end."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from graphmem.errors import InvalidInput
from graphmem.exchange.formats.heard import (
    FAULTS,
    Batch,
    Damaged,
    Session,
    Source,
    Telling,
    named_errors,
    read_cursor,
    refuse_memory,
    told_of,
)
from graphmem.late import late

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late("hashlib")

LONGEST_LINE = 1 << 26  # bytes; a longer line is passed over
_BYTES_AT_ONCE = 1 << 23  # that hold nothing to store, before a cursor says that they are read
_HEAD = 4096
_TAIL = 1024
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file: the object it holds, its number from 1, where it begins, its bytes."""

    found: dict[str, Any]
    number: int
    offset: int
    raw: bytes

    @property
    def digest(self) -> str:
        """An id for what has none: of the line and its number, which stay as they are while a file grows."""
        return hashlib.sha256(b"%d %b" % (self.number, self.raw)).hexdigest()[:16]


def read_lines(source: Source, cursor: str, hear: Callable[[Line, Telling], None]) -> Iterator[Batch]:
    """Yield what is new behind a cursor: whole lines only, one without its newline is read when it has it.

    A cursor says how many bytes are read, and what the first and the last of these are: a file that was replaced or cut
    short is read from its beginning. hear: takes up a line, or raises Damaged; such a line is passed over with a
    remark.
    """
    refuse_memory(source.path)
    kept = read_cursor(cursor)
    with named_errors(source.path), Path(source.path).open("rb") as stream:
        whole = os.fstat(stream.fileno()).st_size
        telling = Telling()
        offset, number = _resume(stream, kept, whole, hear, telling, source.path)
        if not offset and kept.get("offset"):
            telling.remark(f"{source.path} was replaced or cut short: it is read anew, and what has no id comes twice")
        begun = offset
        for raw, ended in _raw_lines(stream, offset):
            if not ended:
                telling.remark(f"{source.path} line {number + 1}: no newline yet, it is read next time")
                break
            number += 1
            if raw is None:
                telling.remark(f"{source.path} line {number}: longer than {LONGEST_LINE} bytes, passed over")
            else:
                _hear(raw, number, offset, hear, telling, source.path)
            offset = ended
            if telling.full or offset - begun >= _BYTES_AT_ONCE:
                begun = offset
                yield telling.batch(source.path, _cursor(stream, offset, number, telling), offset, whole)
                stream.seek(offset)
        if offset > begun or telling.remarked:
            yield telling.batch(source.path, _cursor(stream, offset, number, telling), offset, whole)


def first_objects(path: str, most: int) -> Iterator[dict[str, Any]]:
    """Yield the objects in the first lines of a file, without a word about what is none."""
    refuse_memory(path)
    with named_errors(path), Path(path).open("rb") as stream:
        for place, (raw, _) in enumerate(_raw_lines(stream, 0)):
            if place == most:
                return
            try:
                found = json.loads((raw or b"").removeprefix(BOM).decode())
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def _raw_lines(stream: BinaryIO, offset: int) -> Iterator[tuple[bytes | None, int]]:
    """Yield each line, None for one that is too long, and where it ends, 0 for one that has not ended."""
    while raw := stream.readline(LONGEST_LINE):
        offset += len(raw)
        long = len(raw) == LONGEST_LINE and not raw.endswith(b"\n")
        while long and not raw.endswith(b"\n") and (raw := stream.readline(LONGEST_LINE)):
            offset += len(raw)
        yield None if long else raw, offset if raw.endswith(b"\n") else 0


def _hear(
    raw: bytes, number: int, offset: int, hear: Callable[[Line, Telling], None], telling: Telling, path: str
) -> None:
    text = raw.removeprefix(BOM) if number == 1 else raw
    if not text.strip():
        return
    try:
        hear(Line(_object(text), number, offset, text.rstrip(b"\r\n")), telling)
    except FAULTS as error:
        telling.remark(f"{path} line {number}: {told_of(error)}, passed over")


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text.decode())
    except UnicodeDecodeError as error:
        raise Damaged(f"no UTF-8 text ({error.reason})") from None
    except (ValueError, RecursionError) as error:
        raise Damaged(f"no JSON ({error})") from None
    if not isinstance(found, dict):
        raise Damaged("no JSON object")
    return found


def _cursor(stream: BinaryIO, offset: int, number: int, telling: Telling) -> dict[str, Any]:
    return {
        "offset": offset,
        "line": number,
        "mark": _mark(stream, offset),
        "sessions": {name: [known.project, known.own] for name, known in telling.remembered.items()},
        "calls": {name: [call.offset, call.number] for name, call in telling.calls.items()},
    }


def _mark(stream: BinaryIO, offset: int) -> str:
    """Return what identifies the first `offset` bytes of a file: some of their first and of their last."""
    stream.seek(0)
    head = stream.read(min(offset, _HEAD))
    stream.seek(max(offset - _TAIL, 0))
    return str(hashlib.sha256(head + stream.read(min(offset, _TAIL))).hexdigest()[:16])


def _resume(
    stream: BinaryIO,
    kept: dict[str, Any],
    whole: int,
    hear: Callable[[Line, Telling], None],
    telling: Telling,
    path: str,
) -> tuple[int, int]:
    """Bring back what a cursor remembers; return the place and the number of lines read, 0 where the file is another.

    Calls without an answer are heard again, from their own lines.
    """
    try:
        offset, number = int(kept.get("offset", 0)), int(kept.get("line", 0))
        sessions = {name: Session(project, own) for name, (project, own) in kept.get("sessions", {}).items()}
        calls = {name: (int(start), int(line)) for name, (start, line) in kept.get("calls", {}).items()}
    except (TypeError, ValueError, AttributeError):
        raise InvalidInput("cursor", kept, "is none of a file of lines; give '' to read from the beginning") from None
    if not 0 <= offset <= whole or (offset and kept.get("mark") != _mark(stream, offset)):
        stream.seek(0)
        return 0, 0
    scratch = Telling()
    for start, line in sorted(set(calls.values())):
        stream.seek(start)
        _hear(stream.readline(LONGEST_LINE), line, start, hear, scratch, path)
    telling.sessions = sessions
    telling.calls = {name: scratch.calls[name] for name in calls if name in scratch.calls}
    stream.seek(offset)
    return offset, number
