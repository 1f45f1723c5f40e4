"""Files below one folder, read and written so that no name, no link and no race leads out of it.

Each folder on the way is opened from the one above it and never through a link, where the system can do that (POSIX);
elsewhere each is looked at first. What is written is written beside, made durable and renamed: a reader meets the old
file or the new one.
"""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphmem.core.addresses import refuse_server
from graphmem.errors import GraphmemError, InvalidInput, StoreFailed

LARGEST = 16 << 20  # bytes of a file that is read
_TEMPORARY = f".graphmem-{os.getpid()}.tmp"
_LEFTOVER = re.compile(r"\.graphmem-\d+\.tmp")
_LEFT_FOR = 60_000_000_000  # nanoseconds after which a temporary file is one that somebody left
_RACY = 2_000_000_000  # nanoseconds: the coarsest clock of a file system that is met, that of FAT
# What is wrong with one file or folder, and not with the system as a whole.
_OF_ONE_PLACE = {
    *(errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTEMPTY),
    *(errno.EEXIST, errno.EINVAL),
}
_BY_FOLDER = {os.open, os.mkdir, os.unlink, os.stat} <= os.supports_dir_fd
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | _NO_LINK | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True, slots=True)
class Walk:
    """The files below a folder: their stamps by path, with `/`; and what was passed over, with the reason.

    left: stamps of temporary files that somebody who died left, by path. unread: files whose notes are not known, with
    the reason.
    """

    stamps: dict[str, str]
    passed: tuple[tuple[str, str], ...]
    left: dict[str, str]
    unread: Mapping[str, str] = field(default_factory=dict)


def stamp_of(status: os.stat_result) -> str:
    """Return what changes when a file does: size, times and inode."""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"


def is_settled(stamp: str, now: int | None = None) -> bool:
    """Tell whether a file of this stamp cannot change any more without another one: it is old enough for any clock.

    now: nanoseconds as the file system counts them.
    """
    _, modified, changed, _ = map(int, stamp.split(":"))
    return max(modified, changed) < (time.time_ns() if now is None else now) - _RACY


def checked_root(path: str | os.PathLike[str]) -> str:
    """Return the real path of a root; raise InvalidInput for one that is a link, or no folder."""
    refuse_server("root", path)
    text = os.fspath(path)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidInput("root", path, "name a folder")
    whole = os.path.abspath(os.path.expanduser(text))
    if os.path.islink(whole):
        raise InvalidInput("root", text, "is a link, and may lead anywhere: name the folder itself")
    if os.path.lexists(whole) and not os.path.isdir(whole):
        raise InvalidInput("root", text, "is no folder: name one, or a place where one can be made")
    return os.path.realpath(whole)


@dataclass(slots=True)
class Rooted:
    """The files below a root. touched: folders that were written to and are not known to be durable yet."""

    root: str
    touched: set[str] = field(default_factory=set)
    at_once = 50  # files, between two transactions

    def exists(self) -> bool:
        """Tell whether the root is there."""
        return os.path.isdir(self.root)

    def walk(self, part: str) -> Walk:
        """Return the files with this part in their names; what is hidden is passed over, and so are links."""
        stamps: dict[str, str] = {}
        passed: list[tuple[str, str]] = []
        left: dict[str, str] = {}
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                entries = os.scandir(os.path.join(self.root, folder))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                passed.append((folder or ".", f"cannot be read ({error.strerror})"))
                continue
            with entries:
                for entry in entries:
                    name = entry.name
                    path = f"{folder}{name}"
                    if name.startswith("."):
                        if _LEFTOVER.fullmatch(name):
                            left |= _left(path, entry)
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/")
                    elif entry.is_symlink():
                        passed.append((printable(path), "is a link, and links are not followed"))
                    elif part in name:
                        if not path.isascii() and not is_text(path):
                            passed.append((printable(path), "its name is no UTF-8"))
                            continue
                        try:
                            stamps[path] = stamp_of(entry.stat(follow_symlinks=False))
                        except FileNotFoundError:  # it is gone since
                            continue
        return Walk(stamps, tuple(sorted(passed)), left)

    def read(self, path: str, largest: int | None = None) -> tuple[bytes, str] | None:
        """Return what a file holds and its stamp, None where there is none; raise InvalidInput for no plain file.

        largest: bytes that it may have, None for those of a text.
        """
        most = LARGEST if largest is None else largest
        folder, name = _split(path)
        try:
            with self._folder(folder) as place:
                descriptor = place.open(name, os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput("file", path, f"cannot be read ({error.strerror})") from None
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise InvalidInput("file", path, "is no plain file")
        with open(descriptor, "rb") as stream:
            data = stream.read(most + 1) if status.st_size <= most else b""
        if max(len(data), status.st_size) > most:
            raise InvalidInput("file", path, f"has more than {most} bytes")
        return data, stamp_of(status)

    def write(self, path: str, data: bytes, expected: str | None, largest: int | None = None) -> str | None:
        """Write a file and return its stamp; None where it is not what was expected, None for no file.

        Raises InvalidInput where it cannot be written in its place, or would not be read, StoreFailed where nothing can
        be written.
        """
        most = LARGEST if largest is None else largest
        if len(data) > most:
            raise InvalidInput("file", path, f"would have more than {most} bytes, and not be read any more")
        folder, name = _split(path)
        try:
            with self._folder(folder, create=True) as place:
                with contextlib.suppress(FileNotFoundError):
                    place.unlink(_TEMPORARY)
                descriptor = place.open(_TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600)
                with open(descriptor, "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(descriptor)
                known = place.status(name)
                if (known and stamp_of(known)) != expected:
                    place.unlink(_TEMPORARY)
                    return None
                if known is not None:
                    place.permit(_TEMPORARY, known)
                place.rename(_TEMPORARY, name)
                self.touched.add(folder)
                return place.stamp(name)
        except OSError as error:
            raise self._failed(path, "written", error) from error

    def remove(self, path: str, expected: str) -> bool:
        """Remove a file; tell whether it was what was expected. One that is gone already is removed.

        Raises InvalidInput where it cannot be removed, StoreFailed where nothing can.
        """
        folder, name = _split(path)
        try:
            with self._folder(folder) as place:
                found = place.stamp(name)
                if found not in (None, expected):
                    return False
                if found is not None:
                    place.unlink(name)
                    self.touched.add(folder)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise self._failed(path, "removed", error) from error
        return True

    def _failed(self, path: str, done: str, error: OSError) -> GraphmemError:
        if error.errno in _OF_ONE_PLACE and os.access(self.root, os.W_OK | os.X_OK):
            return InvalidInput("file", path, f"cannot be {done} ({error.strerror})")
        return StoreFailed(f"{os.path.join(self.root, path)}: cannot be {done} ({error.strerror})")

    def settle(self) -> dict[str, str]:
        """Make durable which files there are; without it a power cut may take back what was renamed.

        Return what could not be written after all: nothing, here.
        """
        for folder in sorted(self.touched) if _BY_FOLDER else ():
            with contextlib.suppress(FileNotFoundError), self._folder(folder) as place:
                place.sync()
        self.touched.clear()
        return {}

    def name(self, path: str, uid: str) -> str:
        """Return the path of a note that has a name now: a file keeps its own."""
        return path

    def kept(self, stamp: str) -> str:
        """Return the stamp by which a file is known from now on, '' where it has to be read once more."""
        return stamp if stamp and is_settled(stamp) else ""

    def shown(self, path: str) -> str:
        """Return a path as people are told it."""
        return path

    @contextlib.contextmanager
    def _folder(self, folder: str, *, create: bool = False) -> Iterator["_Place"]:
        if create:
            os.makedirs(self.root, mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as opened:
            place = _Place(self.root, os.open(self.root, _FOLDER) if _BY_FOLDER else None)
            opened.callback(place.close)
            for name in folder.split("/") if folder else ():
                place = place.below(name, create=create)
                opened.callback(place.close)
            yield place


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder. descriptor: None where the system opens nothing relative to a folder; then it is its path."""

    path: str
    descriptor: int | None

    def below(self, name: str, *, create: bool) -> "_Place":
        """Return the folder of this name."""
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._name(name), 0o700, **self._here)
        if self.descriptor is not None:
            return _Place(os.path.join(self.path, name), os.open(name, _FOLDER, dir_fd=self.descriptor))
        status = os.lstat(self._name(name))
        if not stat.S_ISDIR(status.st_mode) or getattr(status, "st_reparse_tag", 0) != 0:
            raise NotADirectoryError(errno.ENOTDIR, "a link, or no folder", self._name(name))
        return _Place(os.path.join(self.path, name), None)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        return os.open(self._name(name), flags, mode, **self._here)

    def unlink(self, name: str) -> None:
        os.unlink(self._name(name), **self._here)

    def rename(self, name: str, new: str) -> None:
        folders = {} if self.descriptor is None else {"src_dir_fd": self.descriptor, "dst_dir_fd": self.descriptor}
        os.replace(self._name(name), self._name(new), **folders)

    def permit(self, name: str, like: os.stat_result) -> None:
        os.chmod(self._name(name), stat.S_IMODE(like.st_mode), **self._here)

    def status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(self._name(name), follow_symlinks=False, **self._here)
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> str | None:
        status = self.status(name)
        return None if status is None else stamp_of(status)

    def sync(self) -> None:
        if self.descriptor is not None:
            os.fsync(self.descriptor)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

    def _name(self, name: str) -> str:
        return name if self.descriptor is not None else os.path.join(self.path, name)

    @property
    def _here(self) -> dict[str, Any]:
        return {} if self.descriptor is None else {"dir_fd": self.descriptor}


def is_text(path: str) -> bool:
    """Tell whether a path is text, and no bytes that are none."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(path: str) -> str:
    """Return a path that may be no text as one that is."""
    return path.encode("utf-8", "backslashreplace").decode()


def _left(path: str, entry: "os.DirEntry[str]") -> dict[str, str]:
    with contextlib.suppress(FileNotFoundError):
        status = entry.stat(follow_symlinks=False)
        if status.st_mtime_ns < time.time_ns() - _LEFT_FOR:
            return {path: stamp_of(status)}
    return {}


def _split(path: str) -> tuple[str, str]:
    """Return the folder and the name of a path below a root; raise InvalidInput for one that would lead out of it."""
    folder, _, name = path.rpartition("/")
    for part in path.split("/"):
        if part in ("", ".", "..") or "\0" in part or (os.sep != "/" and (os.sep in part or ":" in part)):
            raise InvalidInput("path", path, "leads out of the tree")
    return folder, name
