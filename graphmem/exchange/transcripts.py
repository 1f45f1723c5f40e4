"""Transcripts that other programs wrote: find them, and read what is new in them, batch by batch."""

import contextlib
import datetime as dt
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from graphmem.core.addresses import refuse_server
from graphmem.core.keys import clean_text
from graphmem.errors import GraphmemError, InvalidInput, StoreFailed
from graphmem.exchange.formats import claude_code, exports, opencode, turns
from graphmem.exchange.formats.heard import FAULTS, Batch, Heard, Source, named_errors, told_of
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
    another, is passed over, and what may not be read is a source that says so. Raises InvalidInput naming the path when
    nothing is left, StoreFailed for a file or a folder that may not be read itself.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidInput("kind", kind, f"give one of {', '.join(KINDS)}")
    refuse_server("path", path)
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
    return tuple(sorted(map(_storable, found), key=lambda source: (source.kind, source.path)))


def usual_sources(kind: str | None = None) -> tuple[Source, ...]:
    """Return what lies where Claude Code and OpenCode keep their sessions. Raises InvalidInput where nothing does."""
    data = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
    config = os.environ.get("CLAUDE_CONFIG_DIR", "").strip() or "~/.claude"
    places = [Path(config, "projects").expanduser(), Path(data, "opencode").expanduser()]
    found: list[Source] = []
    for place in places:
        try:
            found += find_sources(place, kind)
        except InvalidInput:
            pass  # there need not be both
        except StoreFailed as error:
            found.append(Source("", str(place), str(error)))
    if not found:
        told = " and ".join(map(str, places))
        raise InvalidInput("path", None, f"no sessions of Claude Code or OpenCode in {told}; {_WANTED}")
    return tuple(found)


def is_newer(source: Source, moment: dt.datetime) -> bool:
    """Tell whether a source has been written to since a moment, or right before it; one that is gone has not."""
    file = Path(source.path)
    if source.kind == "opencode" and file.suffix != ".json":
        file = file.parent  # a session in a database
    try:
        written = [each.stat().st_mtime for each in (file, Path(f"{file}-wal")) if each.exists()]
    except OSError:
        return True  # who reads it tells why it cannot be read
    return max(written, default=0.0) > moment.timestamp() - _WHILE_READ


def read_source(source: Source, cursor: str = "") -> Iterator[Batch]:
    """Yield what is new behind a cursor, nothing where nothing is; '' is the beginning.

    Store each batch together with its cursor: then an interruption loses nothing and repeats nothing. A batch holds
    some 500 parts or 4 million letters, so memory is bounded by them and by the longest line or conversation.

    Raises InvalidInput for a source or a cursor that is none, and for an export that is damaged; StoreFailed for what
    may not be read.
    """
    if isinstance(source, Source) and source.unreadable:
        raise StoreFailed(source.unreadable)
    if not isinstance(source, Source) or source.kind not in KINDS:
        raise InvalidInput("source", source, f"give one that find_sources returned, of {', '.join(KINDS)}")
    if not isinstance(cursor, str):
        raise InvalidInput("cursor", cursor, "give the cursor of the last batch, or '' to read from the beginning")
    return _named(_READERS[source.kind](source, cursor), source.path)


def _named(batches: Iterator[Batch], path: str) -> Iterator[Batch]:
    """Tell of which source it is that nobody can read."""
    try:
        yield from batches
    except GraphmemError:
        raise
    except FAULTS as error:
        raise InvalidInput("source", path, told_of(error)) from error


def _storable(source: Source) -> Source:
    """Return a source, as one that is not read where its path cannot be stored."""
    path = clean_text(source.path)
    return source if path == source.path else Source("", path, f"{path}: its name is no UTF-8 text; give it another")


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

    def refuse(error: OSError) -> None:
        if error.filename == str(folder):
            raise error
        files.append(Source("", error.filename, f"{error.filename} cannot be read: {error.strerror}; check the path"))

    for place, folders, names in os.walk(folder, onerror=refuse):
        here = Path(place)
        if kind in (None, "opencode"):
            if opencode.DATABASE in names:
                rows += _tried(_in_database, here / opencode.DATABASE)
            if {"session", "message", "part"} <= set(folders):
                files += _tried(_in_storage, here)
                folders.clear()
                continue
        if kind != "opencode":
            for name in names:
                files += _tried(partial(_known, kind=kind), here / name)
    moved = {Path(row.path).name for row in rows}
    return rows + [file for file in files if file.kind != "opencode" or Path(file.path).stem not in moved]


def _tried(find: Callable[[Path], list[Source]], place: Path) -> list[Source]:
    """Return what is found at a place, or what says that it may not be read."""
    try:
        with named_errors(str(place)):
            return find(place)
    except (InvalidInput, StoreFailed) as error:
        return [Source("", str(place), str(error))]


def _known(file: Path, kind: str | None) -> list[Source]:
    """Return a file in a folder as a source; nothing for one that is not wanted or of which nobody knows what it is."""
    if not (file.suffix in (".jsonl", ".zip") or exports.NAMES.fullmatch(file.name)) or not file.is_file():
        return []
    with contextlib.suppress(InvalidInput):  # a ZIP of something else, or a memory
        if (own := _kind_of(file)) and kind in (None, own):
            return [Source(own, str(file))]
    return []


def _in_storage(storage: Path) -> list[Source]:
    return [source for folder in opencode.find_folders(storage) for source in _tried(_in_project, folder)]


def _in_project(folder: Path) -> list[Source]:
    return [Source("opencode", str(file)) for file in folder.iterdir() if file.suffix == ".json"]


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
