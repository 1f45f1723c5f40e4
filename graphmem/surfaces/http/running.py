"""Which server runs for a memory, and its token: told in a file for the user alone, where hooks and plug-ins look.

It loads no server, so that who only calls one starts quickly.
"""

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from graphmem.core.addresses import tenant_of
from graphmem.errors import Conflict, StoreFailed
from graphmem.surfaces.places import make_state_folder, state_folder

_RECORDS = "servers"
_TRIES, _PAUSE = 5, 0.02  # seconds


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs. memory: the real path of the file. url: its address, without a path. token: for writing."""

    memory: str
    url: str
    port: int
    token: str
    pid: int

    @property
    def entrance(self) -> str:
        """The address that lets a browser in, for writing too."""
        return f"{self.url}/enter?token={self.token}"


def record_of(memory: str) -> Path:
    """Return the path of the file that tells of the server of a memory, whether or not there is one."""
    place = tenant_of(memory) or os.path.normcase(os.path.realpath(os.path.expanduser(memory)))
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return Path(state_folder(), _RECORDS, f"{name}.json")


def find(memory: str) -> Running | None:
    """Return the server of a memory, None where none is told of. One that was killed may still be told of."""
    try:
        return Running(**json.loads(record_of(memory).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def alive(memory: str) -> Running | None:
    """Return the server of a memory that runs, None where none does.

    What answers at the address of one that was killed may be the program of another user, who would be sent the token
    and all that is told to a server. So it counts that somebody holds the lock.
    """
    found = find(memory)
    if found is None:
        return None
    try:
        descriptor = os.open(_lock_of(record_of(memory)), os.O_RDWR)
    except OSError:
        return None
    try:
        return None if _locked(descriptor, shared=True) else found
    finally:
        os.close(descriptor)


def _lock_of(record: Path) -> Path:
    return record.with_suffix(".lock")


@contextlib.contextmanager
def only_server(memory: str) -> Iterator[Path]:
    """Be the only server of a memory; yield the path under which `tell` tells of it, which is gone at the end.

    Raises Conflict where another one runs, naming its address.
    """
    record = record_of(memory)
    try:
        make_state_folder(_RECORDS)
        descriptor = os.open(_lock_of(record), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreFailed(
            f"{record.parent} cannot be used: {error.strerror}; a server tells there of itself"
        ) from error
    try:
        if not _locked_soon(descriptor):
            other = find(memory)
            place = "by a server that is just starting" if other is None else f"at {other.url} by process {other.pid}"
            raise Conflict(f"the memory {memory} is served already {place}: use that, or stop it")
        record.unlink(missing_ok=True)  # of one that was killed
        try:
            yield record
        finally:
            record.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def tell(record: Path, running: Running) -> None:
    """Write what runs into a file for the user alone; who reads it meets all of it or nothing."""
    draft = record.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(asdict(running), file)
    draft.replace(record)


def _locked_soon(descriptor: int) -> bool:
    """Take the lock of a file; who only looks whether somebody has it has it for a moment."""
    for _ in range(_TRIES):
        if _locked(descriptor):
            return True
        time.sleep(_PAUSE)
    return False


def _locked(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock of a file, which the system gives back when the process ends, however it does.

    shared: others may have it in this way too, where the system knows that.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
