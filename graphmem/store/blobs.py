"""Large payloads as files beside the database: `<database>.blobs/aa/<digest>`, named by the SHA-256 of what they hold.

A file is written before the transaction that tells of it ends, and removed after the one that forgets it: whatever
fails in between leaves a file that nobody names, never a row without its file.
"""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from graphmem.errors import StoreCorrupt, StoreFailed
from graphmem.store.database import MEMORY_PATH

LARGEST_IN_ROW = 64 * 1024


def lies_in_row(database: str, size: int) -> bool:
    """Tell whether a payload of so many bytes is kept in its row; a memory without a file keeps all there."""
    return size <= LARGEST_IN_ROW or database == MEMORY_PATH


def blob_path(database: str, digest: str) -> Path:
    """Return where the payload of a digest lies."""
    return Path(f"{database}.blobs", digest[:2], digest)


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
            _sync_folder(folder)
    except OSError as error:
        reason = f"{error.strerror}; check its folder and the room on the disk; nothing was changed"
        raise StoreFailed(f"{file} cannot be written: {reason}") from error


def _sync_folder(folder: Path) -> None:
    # A name lasts only when its folder is synced. Some file systems cannot, and there the name lasts anyway.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
