"""Large payloads as files beside the database: `<database>.blobs/aa/<digest>`, named by the SHA-256 of what they hold.

A file is written before the transaction that tells of it ends, and removed after the one that forgets it: whatever
fails in between leaves a file that nobody names, never a row without its file.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from graphmem.errors import NotFound, StoreCorrupt, StoreFailed
from graphmem.late import late
from graphmem.store.opening import is_file

if TYPE_CHECKING:
    import hashlib
    import pathlib
    import secrets
    import shutil
    from pathlib import Path
else:
    hashlib = late("hashlib")
    pathlib = late("pathlib")
    secrets = late("secrets")
    shutil = late("shutil")

LARGEST_IN_ROW = 64 * 1024


def lies_in_row(database: str, size: int) -> bool:
    """Tell whether a payload of so many bytes is kept in its row; a memory without a file keeps all there."""
    return size <= LARGEST_IN_ROW or not is_file(database)


def blob_path(database: str, digest: str) -> Path:
    """Return where the payload of a digest lies."""
    return pathlib.Path(f"{database}.blobs", digest[:2], digest)


def write_blob(database: str, digest: str, payload: bytes) -> None:
    """Write a payload for its owner alone and make it last; one that is there already is left as it is.

    Call it inside the write transaction, so that no deletion comes between. Raises StoreFailed.
    """
    file = blob_path(database, digest)
    draft = file.with_name(f".{digest}.{secrets.token_hex(4)}")
    try:
        if file.exists() and file.stat().st_size == len(payload):
            return
        for folder in (file.parent.parent, file.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        try:
            with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:  # noqa: PTH123
                stream.write(payload)
                stream.flush()
                os.fsync(stream.fileno())
            draft.rename(file)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        for folder in (file.parent, file.parent.parent, file.parent.parent.parent):
            sync_folder(folder)
    except OSError as error:
        reason = f"{error.strerror}; check its folder and the room on the disk; nothing was changed"
        raise StoreFailed(f"{file} cannot be written: {reason}") from error


def sync_file(file: Path) -> None:
    """Make what was written to a file outlast a power cut. Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power cut. Some file systems cannot, and there they last anyway."""
    with contextlib.suppress(OSError):
        sync_file(folder)


def read_blob(database: str, digest: str) -> bytes | None:
    """Return a payload, None where its file is missing. Raises StoreFailed, and StoreCorrupt for a changed file."""
    file = blob_path(database, digest)
    try:
        payload = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreFailed(f"{file} cannot be read: {error.strerror}; check its permissions") from error
    if hashlib.sha256(payload).hexdigest() != digest:
        raise StoreCorrupt(f"{file} is damaged: restore it from a backup, or put the block again after deleting it")
    return payload


def remove_blob(database: str, digest: str) -> None:
    """Remove a payload and the folders that are empty without it; a missing one is fine. Raises StoreFailed."""
    file = blob_path(database, digest)
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise StoreFailed(f"{file} cannot be removed: {error.strerror}; remove it by hand") from error
    with contextlib.suppress(OSError):
        file.parent.rmdir()
        file.parent.parent.rmdir()


def copy_blob(database: str, digest: str, target: str) -> bool:
    """Copy a payload to beside another database and read it there; return False where a sound one is there already.

    Raises NotFound for one that is missing, StoreCorrupt for one that is damaged, StoreFailed.
    """
    with contextlib.suppress(StoreCorrupt):
        if read_blob(target, digest) is not None:
            return False
    payload = read_blob(database, digest)
    if payload is None:
        raise NotFound(f"{blob_path(database, digest)} is missing: put the block again, or restore a backup")
    remove_blob(target, digest)
    write_blob(target, digest, payload)
    read_blob(target, digest)
    return True


def blob_sizes(database: str) -> dict[str, int]:
    """Return the bytes of each payload file of a database, by digest, whether or not a block names it."""
    sizes: dict[str, int] = {}
    for file in pathlib.Path(f"{database}.blobs").glob("[0-9a-f][0-9a-f]/[0-9a-f]*"):
        with contextlib.suppress(FileNotFoundError):  # its block is being deleted
            sizes[file.name] = file.stat().st_size
    return sizes


def keep_blobs(database: str, kept: str) -> None:
    """Put all payloads of a database beside another one too: as second names of the files, or as copies."""
    for digest in blob_sizes(database):
        file = blob_path(kept, digest)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.link(blob_path(database, digest), file)
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            shutil.copyfile(blob_path(database, digest), file)


def remove_blobs(database: str) -> None:
    """Remove all payloads of a database that was given up."""
    shutil.rmtree(f"{database}.blobs", ignore_errors=True)
