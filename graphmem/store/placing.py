"""Files that get their name when they are whole: a draft is written beside the place, synced, and renamed last.

Whatever fails in between, a killed process included, leaves what was there under the final name, and at most a draft.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from graphmem.errors import Conflict, GraphmemError, InvalidInput, StoreFailed
from graphmem.store.blobs import sync_file, sync_folder
from graphmem.store.copies import DRAFT
from graphmem.store.database import real_path


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write, for its owner alone, that has its name after the block; on an error nothing of it stays.

    force: a file of that name is replaced. Raises Conflict for a name that is taken, StoreFailed.
    """
    target = Path(real_path(path))
    if not force:
        refuse_taken(target)
    elif target.is_dir():
        raise Conflict(f"{target} is a folder: name a file")
    with draft_beside(target) as draft, explained(target):
        with draft.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if force:
            draft.replace(target)
            sync_folder(target.parent)
        else:
            publish(draft, target)


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a folder to fill, for its owner alone, that has its name after the block; on an error nothing of it stays.

    Raises Conflict for a name that is taken, StoreFailed.
    """
    target = Path(real_path(path))
    refuse_taken(target)
    draft = target.with_name(f"{DRAFT}{secrets.token_hex(8)}")
    with explained(target):
        draft.mkdir(mode=0o700)
        try:
            yield draft
            for folder, _, files in os.walk(draft):
                for name in files:
                    sync_file(Path(folder, name))
                sync_folder(Path(folder))
            refuse_taken(target)
            draft.rename(target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(target.parent)


@contextlib.contextmanager
def draft_beside(target: Path) -> Iterator[Path]:
    """Yield a new empty file beside a file, for its owner alone; it goes at the end, unless it has another name."""
    draft = target.with_name(f"{DRAFT}{secrets.token_hex(8)}")
    with explained(target):
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield draft
    finally:
        for left in (draft, *sides_of(draft)):
            with contextlib.suppress(OSError):
                left.unlink()


def publish(draft: Path, target: Path, *sides: Path) -> None:
    """Give a draft its name, if that is still free, and those of what would belong to it."""
    with explained(target):
        try:
            os.link(draft, target)
        except OSError:  # taken meanwhile, or a file system without links
            refuse_taken(target, *sides)
            draft.rename(target)
    sync_folder(target.parent)


@contextlib.contextmanager
def explained(target: Path) -> Iterator[None]:
    """Raise StoreFailed, which names the file that was to be made, in place of an OSError."""
    try:
        yield
    except GraphmemError:  # StoreFailed is an OSError too
        raise
    except OSError as error:
        reason = f"{error.strerror}; check its folder and the room on the disk; nothing was changed"
        raise StoreFailed(f"{target} cannot be made: {reason}") from error


def refuse_taken(*places: Path) -> None:
    """Raise Conflict for the first of some places where something is."""
    for taken in places:
        if os.path.lexists(taken):
            raise Conflict(f"{taken} exists and stays as it is: name another file, or remove it")


def refuse_part(database: str, place: str | os.PathLike[str], argument: str = "dest") -> None:
    """Raise InvalidInput for a place that is a part of a memory, or in the folder of its payloads."""
    file = Path(real_path(place))
    folder = Path(f"{database}.blobs")
    if file in (*sides_of(Path(database)), folder) or folder in file.parents:
        raise InvalidInput(argument, os.fspath(place), f"is a part of the memory {database}: name another file")


def sides_of(file: Path) -> list[Path]:
    """Return where SQLite keeps what belongs to a file."""
    return [Path(f"{file}{side}") for side in ("-wal", "-shm", "-journal")]
