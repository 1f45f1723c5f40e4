"""Where the memory, the settings and what is told of servers lie, who may read them, and whether that place is safe."""

import http.client
import os
import shutil
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from shlex import quote

from graphmem.core.addresses import is_server, require_ours, without_password
from graphmem.core.model import FileState
from graphmem.errors import Conflict, GraphmemError, InvalidInput, SchemaTooNew, StoreBusy, StoreCorrupt
from graphmem.memory import Memory
from graphmem.surfaces import places
from graphmem.surfaces.doctor import copies
from graphmem.surfaces.doctor.findings import Finding, good, note, problem, reason_of, size
from graphmem.surfaces.http import running, starting
from graphmem.surfaces.opening import Session, default_settings_file

IN_MEMORY = ":memory:"
_LEAST_ROOM = 64 << 20
_LARGEST_LOG = 64 << 20
_PATIENCE = 3  # seconds for a server to answer
# Types of file systems of other machines, on which SQLite's locks and shared memory do not hold.
_DISTANT = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "davfs", "fuse.sshfs", "fuse.rclone", "fuse.davfs2"}
# How folders of sync programs are named, and what those leave in them.
_SYNCED = {
    "dropbox": "Dropbox", "onedrive": "OneDrive", "mobile documents": "iCloud Drive", "icloud drive": "iCloud Drive",
    "iclouddrive": "iCloud Drive", "cloudstorage": "a cloud drive", "google drive": "Google Drive",
    "googledrive": "Google Drive", "my drive": "Google Drive", "nextcloud": "Nextcloud", "owncloud": "ownCloud",
}  # fmt: skip
_MARKS = {
    ".stfolder": "Syncthing", ".dropbox": "Dropbox", ".dropbox.cache": "Dropbox",
    ".nextcloudsync.log": "Nextcloud", ".owncloudsync.log": "ownCloud", ".tmp.drivedownload": "Google Drive",
}  # fmt: skip
_ELSEWHERE = "name a file on this machine's own disk with --db or data_dir; sync a backup of it, or a tree"


def look(session: Session, source: Callable[[], str]) -> Iterator[Finding | FileState]:
    """Yield what there is to say of files, and the state of the memory when it could be read.

    source: returns where the path of the memory comes from.
    """
    is_readable = yield from _settings(session)
    yield from _state_folder()
    if not is_readable and session.database is None:
        return
    path = session.path()
    if path == IN_MEMORY:
        yield note("memory", f"in memory alone ({source()}): gone with each command", "name a file with --db")
        return
    if is_server(path):
        try:
            require_ours(path)
        except InvalidInput as error:
            yield problem("memory", f"{reason_of(error)} ({source()})", "correct it there")
            return
        yield from _on_server(path, source())
        yield from _server(path)
        return
    file = Path(os.path.realpath(os.path.expanduser(path)))
    must_write = not (is_readable and session.config().read_only)
    yield from _memory(file, source(), is_stuck=must_write and session.is_unwritable())
    yield from _place(file)
    yield from _server(str(file))


# ---- settings and state


def _settings(session: Session) -> Generator[Finding, None, bool]:
    """Yield what there is to say of the settings; return whether they can be read."""
    file = session.settings_file
    where = file or f"{default_settings_file()}, there is none"
    try:
        is_read_only = session.config().read_only
    except GraphmemError as error:
        yield problem("settings", f"{where}: {reason_of(error)}", "correct that setting, or take it out")
        return False
    if is_read_only:
        yield note("settings", f"{where}; read_only is set, so nothing is remembered", "take read_only out to write")
    else:
        yield good("settings", where)
    if file:
        yield from _kept(Path(file), "settings", 0o022, "go-w")
    return True


def _state_folder() -> Iterator[Finding]:
    folder = Path(places.state_folder())
    if not folder.is_dir():
        yield good("state folder", f"{folder}, there is none yet")
        return
    yield good("state folder", str(folder))
    yield from _kept(folder, "state folder", 0o077, "700")
    for record in sorted(folder.glob("servers/*.json")):  # it holds the token for writing
        yield from _kept(record, "server record", 0o077, "600")


def _kept(path: Path, what: str, closed: int, mode: str) -> Iterator[Finding]:
    """Yield that others may do with a path what they should not. closed: bits of its mode that must not be set."""
    if sys.platform == "win32":
        return
    try:
        bits = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return
    if bits & closed:
        does = "read" if bits & closed & 0o055 else "write"
        yield problem(
            f"{what} permissions", f"{path} has mode {bits:o}: others may {does} it", f"chmod {mode} {quote(str(path))}"
        )


# ---- the memory


def _memory(file: Path, source: str, *, is_stuck: bool) -> Iterator[Finding | FileState]:
    if not file.exists():
        folder = file.parent
        if folder != _own_folder() and not folder.is_dir():
            told = f"{file} ({source}): its folder does not exist"
            yield problem("memory", told, f"mkdir -m 700 -p {quote(str(folder))}")
        else:
            yield note("memory", f"{file} ({source}): there is none yet", "the first command that writes makes it")
        yield from _folder(folder)
        return
    yield good("memory", f"{file} ({source}), {size(file.stat().st_size)}")
    yield from _content(file)
    for side in ("", "-wal", "-shm"):
        yield from _kept(file.with_name(file.name + side), "memory", 0o077, "600")
    yield from _kept(file.with_name(f"{file.name}.blobs"), "payload folder", 0o077, "700")
    yield from _folder(file.parent)
    if is_stuck:
        remedy = f"chmod u+rwX {quote(str(file.parent))} {quote(str(file))}"
        yield problem("memory permissions", f"{file} or its folder cannot be written", remedy)
    yield from _room(file)


def _content(file: Path) -> Iterator[Finding | FileState]:
    try:
        state = Memory.file_state(file)
    except Conflict:
        yield note("memory content", "it is being written just now and was not read", "look again in a moment")
    except SchemaTooNew as error:
        yield problem("memory content", reason_of(error), "pip install --upgrade graphmem")
    except StoreCorrupt as error:
        yield problem("memory content", reason_of(error), "'graphmem restore BACKUP' makes it anew, and keeps this one")
    except GraphmemError as error:
        yield problem("memory content", reason_of(error), "name another file with --db")
    else:
        if state.is_current:
            yield good("memory content", f"sound, schema {state.schema}")
        else:
            told = f"sound, schema {state.schema} of an older graphmem"
            yield note("memory content", told, "the next command that opens it brings it up to date; back it up first")
        yield state


def _on_server(address: str, source: str) -> Iterator[Finding | FileState]:
    place = f"{without_password(address)} ({source})"
    try:
        state = Memory.file_state(address)
    except SchemaTooNew as error:
        yield problem("memory", reason_of(error), "pip install --upgrade graphmem")
    except StoreBusy as error:
        yield problem("memory", reason_of(error), "see that the server runs and can be reached, or correct the address")
    except GraphmemError as error:
        yield problem("memory", reason_of(error), f"mend that, or name another memory: this one is from {source}")
    else:
        if not state.schema:
            told = f"{place}, {state.server}: there is none yet"
            yield note("memory", told, "the first command that writes makes it")
        elif state.is_current:
            yield good("memory", f"{place}, {state.server}, schema {state.schema}; 'graphmem check' looks into it")
        else:
            told = f"{place}, {state.server}, schema {state.schema} of an older graphmem"
            yield note("memory", told, "the next command that opens it brings it up to date; pg_dump it first")
        yield state


def _folder(folder: Path) -> Iterator[Finding]:
    """Yield who may do what in the folder of a memory: one of graphmem's own is closed, in others nobody may write."""
    if folder == _own_folder():
        yield from _kept(folder, "memory folder", 0o077, "700")
    elif folder.is_dir() and not folder.stat().st_mode & stat.S_ISVTX:
        yield from _kept(folder, "memory folder", 0o022, "go-w")


def _own_folder() -> Path:
    return Path(os.path.realpath(places.data_folder()))


def _room(file: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(file.parent).free
    if free < _LEAST_ROOM:
        yield problem("disk", f"{size(free)} are free", "make room: a memory on a full disk cannot be written")
    elif free < file.stat().st_size:
        yield note("disk", f"{size(free)} are free, less than a backup takes", "make room, or back up elsewhere")
    else:
        yield good("disk", f"{size(free)} are free")
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and (length := log.stat().st_size) > _LARGEST_LOG:
        yield note("write-ahead log", f"{log} has grown to {size(length)}", "graphmem upkeep")


# ---- its place


def _place(file: Path) -> Iterator[Finding]:
    """Yield whether the memory lies where programs that copy files or other machines use it (MD-06)."""
    program = synced_by(file)
    if program:
        told = f"{file} lies in a folder that {program} syncs: a copy of a database in use is a broken one"
        yield problem("place", told, _ELSEWHERE)
    if kind := _distant(file):
        told = f"{file} lies on a file system of another machine ({kind}), where SQLite's locks do not hold"
        yield problem("place", told, _ELSEWHERE)
    if not program and not kind:
        yield good("place", "on a disk of this machine, in no folder that is known to be synced")
    for copy in copies.copies_of(file, numbered=bool(program)):
        told = f"{copy} was left by a sync program: it holds what another device wrote, or a part of it"
        yield problem(
            "conflict copy", told, f"graphmem check {quote(str(copy))} tells whether it is sound; then move it away"
        )


def synced_by(file: Path) -> str:
    """Return which program syncs the folder of a file, '' where none is known to."""
    home = Path(os.path.realpath(Path.home()))
    for folder in file.parents:
        is_home = folder == home
        name = "" if is_home else folder.name.casefold()  # which is that of a person, or of a service
        for start, program in _SYNCED.items():
            if name == start or name.startswith((f"{start} (", f"{start} -", f"{start}-")):
                return program
        for mark, program in _MARKS.items():
            if os.path.lexists(folder / mark) and not (is_home and mark == ".dropbox"):
                return program  # in a home .dropbox is where the program keeps its own state
        if is_home:
            break
    return ""


def _distant(file: Path) -> str:
    """Return the type of the file system of a file where that is of another machine, '' for any other."""
    if str(file).startswith("\\\\"):
        return "a network share"
    best, found = "", ""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        if len(point) >= len(best) and file.is_relative_to(point):
            best, found = point, after.split()[0]
    return found if found in _DISTANT else ""


# ---- its server


def _server(memory: str) -> Iterator[Finding]:
    told = running.find(memory)
    if told is None:
        yield good("server", "none runs for this memory")
        return
    try:
        answer = starting.health(told.url, pid=told.pid, patience=_PATIENCE)
    except (OSError, http.client.HTTPException, ValueError) as error:
        gone = f"{told.url} (process {told.pid}) is told of and does not answer: {reason_of(error)}"
        yield note("server", gone, "'graphmem serve' starts another one, which takes its place")
        return
    if running.alive(memory) is None:
        other = f"{told.url} is told of, and its server ended: something else answers there"
        yield note("server", other, "'graphmem serve' starts another one, which takes its place")
        return
    yield good("server", f"{told.url} (process {told.pid}) answers, version {answer.get('version')}")
