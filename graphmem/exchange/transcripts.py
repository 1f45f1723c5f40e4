"""Transcripts that other programs wrote: find them, and read what is new in them, batch by batch."""

import contextlib
import datetime as dt
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from graphmem.errors import InvalidInput, StoreFailed
from graphmem.exchange.formats import claude_code, exports, opencode, turns
from graphmem.exchange.formats.heard import Batch, Heard, Source, named_errors
from graphmem.exchange.formats.lines import first_objects

__all__ = ["KINDS", "Batch", "Heard", "Source", "find_sources", "read_source"]

_READERS: dict[str, Callable[[Source, str], Iterator[Batch]]] = {
    "claude-code": claude_code.read,
    "opencode": opencode.read,
    "turns": turns.read,
    "chatgpt": exports.read_chatgpt,
    "claude": exports.read_claude,
}
KINDS = tuple(_READERS)
_LINES = {"claude-code": claude_code.is_one, "turns": turns.is_one}
_WHILE_READ = 2.0  # seconds in which a source may have grown while it was read and stored
_FIRST_LINES = 50  # that may tell what a file is
_WANTED = (
    "give a transcript of Claude Code (.jsonl), OpenCode's folder or database, turns as JSON Lines with role and text, "
    "or an export of ChatGPT or Claude (conversations.json or its .zip), or a folder that holds some"
)


def find_sources(path: str | os.PathLike[str], kind: str | None = None) -> tuple[Source, ...]:
    """Return what can be read at a path: a file, or all there is in a folder and below; sorted.

    kind: of KINDS; without one it is recognised from what the files hold. In a folder, what is of no kind, or of
    another, is passed over. Raises InvalidInput naming the path when nothing is left, StoreFailed for a file or a
    folder that may not be read.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidInput("kind", kind, f"give one of {', '.join(KINDS)}")
    place = Path(path).expanduser().absolute()
    with named_errors(str(place)):
        if place.is_dir():
            found = _in_folder(place, kind)
        elif place.is_file():
            found = _in_file(place, kind)
        else:
            raise InvalidInput("path", str(place), f"there is no such file or folder; {_WANTED}")
    if not found:
        raise InvalidInput("path", str(place), f"holds no {kind or 'known'} transcript; {_WANTED}")
    return tuple(sorted(found, key=lambda source: (source.kind, source.path)))


def usual_sources(kind: str | None = None) -> tuple[Source, ...]:
    """Return what lies where Claude Code and OpenCode keep their sessions. Raises InvalidInput where nothing does."""
    data = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
    config = os.environ.get("CLAUDE_CONFIG_DIR", "").strip() or "~/.claude"
    places = [Path(config, "projects").expanduser(), Path(data, "opencode").expanduser()]
    found: list[Source] = []
    for place in places:
        with contextlib.suppress(InvalidInput):  # there need not be both
            found += find_sources(place, kind)
    if not found:
        told = " and ".join(map(str, places))
        raise InvalidInput("path", None, f"no sessions of Claude Code or OpenCode in {told}; {_WANTED}")
    return tuple(found)


def is_newer(source: Source, moment: dt.datetime) -> bool:
    """Tell whether a source has been written to since a moment, or right before it; one that is gone has not."""
    file = Path(source.path)
    if not file.exists():
        file = file.parent  # a session in a database
    written = [each.stat().st_mtime for each in (file, Path(f"{file}-wal")) if each.exists()]
    return max(written, default=0.0) > moment.timestamp() - _WHILE_READ


def read_source(source: Source, cursor: str = "") -> Iterator[Batch]:
    """Yield what is new behind a cursor, nothing where nothing is; '' is the beginning.

    Store each batch together with its cursor: then an interruption loses nothing and repeats nothing. A batch holds
    some 500 parts or 4 million letters, so memory is bounded by them and by the longest line or conversation.

    Raises InvalidInput for a source or a cursor that is none, and for an export that is damaged; StoreFailed for what
    may not be read.
    """
    if not isinstance(source, Source) or source.kind not in KINDS:
        raise InvalidInput("source", source, f"give one that find_sources returned, of {', '.join(KINDS)}")
    if not isinstance(cursor, str):
        raise InvalidInput("cursor", cursor, "give the cursor of the last batch, or '' to read from the beginning")
    return _READERS[source.kind](source, cursor)


def _in_file(file: Path, kind: str | None) -> list[Source]:
    if file.suffix == ".db":
        return _in_database(file) if kind in (None, "opencode") else []
    if kind == "opencode":
        raise InvalidInput("path", str(file), f"give OpenCode's folder, its folder storage, or {opencode.DATABASE}")
    if not (of_kind := kind or _kind_of(file)):
        raise InvalidInput("path", str(file), f"is of no known kind; {_WANTED}")
    return [Source(of_kind, str(file))]


def _in_folder(folder: Path, kind: str | None) -> list[Source]:
    """Return what is in a folder, without files of sessions that OpenCode has moved into its database."""
    files: list[Source] = []
    rows: list[Source] = []
    for place, folders, names in os.walk(folder, onerror=_refuse):
        here = Path(place)
        if kind in (None, "opencode"):
            if opencode.DATABASE in names:
                rows += _in_database(here / opencode.DATABASE)
            if {"session", "message", "part"} <= set(folders):
                files += [Source("opencode", file) for file in opencode.find_files(here)]
                folders.clear()
                continue
        if kind != "opencode":
            files += [Source(own, str(file)) for file in map(here.joinpath, names) if (own := _known(file, kind))]
    moved = {Path(row.path).name for row in rows}
    return rows + [file for file in files if file.kind != "opencode" or Path(file.path).stem not in moved]


def _known(file: Path, kind: str | None) -> str:
    """Return of which kind a file in a folder is, '' for one that is not wanted or of which nobody knows what it is."""
    if not (file.suffix in (".jsonl", ".zip") or exports.NAMES.fullmatch(file.name)) or not file.is_file():
        return ""
    with contextlib.suppress(InvalidInput):  # a ZIP of something else, or a memory
        own = _kind_of(file)
        return own if kind in (None, own) else ""
    return ""


def _refuse(error: OSError) -> None:
    raise StoreFailed(f"{error.filename} cannot be read: {error.strerror}; check its permissions") from error


def _in_database(database: Path) -> list[Source]:
    return [Source("opencode", f"{database}/{name}") for name in opencode.find_rows(database)]


def _kind_of(file: Path) -> str:
    """Return of which kind a file is, from what it holds; '' for an unknown one."""
    if file.suffix in (".json", ".zip"):
        return exports.kind_of(str(file))
    for found in first_objects(str(file), _FIRST_LINES):
        for kind, is_one in _LINES.items():
            if is_one(found):
                return kind
    return ""
