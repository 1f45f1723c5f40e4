"""Notes that share files, each as if it were a file of its own: `FILE#NAME`, stamped by what it says.

What is written is kept until `settle`, and each file is then written once. Where somebody changed a file meanwhile it
is read anew: what they did not touch is written, and the rest told of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphmem.core import pages
from graphmem.core.parted import Parting, Piece
from graphmem.errors import InvalidInput
from graphmem.exchange.rooted import Rooted, Walk

LARGEST = 64 << 20  # bytes of a file, as it holds many notes
_TRIES = 3


@dataclass(slots=True)
class _Held:
    """A file as it was read. stamp: None for one that is not there. now: pages by key, what is to be written among
    them. was: what they were. by: the key that a note has in the file, where it is to have another one. problem: why
    it cannot be read.
    """

    text: str = ""
    stamp: str | None = None
    head: str = ""
    newline: str = "\n"
    problem: str = ""
    pieces: list[Piece] = field(default_factory=list)
    was: dict[str, str] = field(default_factory=dict)
    now: dict[str, str] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)

    def changed(self) -> dict[str, str | None]:
        """Return the pages that are to be others in the file, by the key that they have there."""
        named = {self.by.get(key, key): page for key, page in self.now.items()}
        return {key: named.get(key) for key in {*self.was, *named} if self.was.get(key) != named.get(key)}


@dataclass(slots=True)
class Pieces:
    """The notes in the files of a root; the counterpart of `Rooted`."""

    files: Rooted
    parting: Parting
    held: dict[str, _Held] = field(default_factory=dict)
    at_once = 100_000  # a file is written once, not once for so many notes of it

    def walk(self, part: str) -> Walk:
        """Return the notes in all files; files that cannot be read are told of."""
        walk = self.files.walk(part)
        stamps: dict[str, str] = {}
        unread: dict[str, str] = {}
        for path in sorted(filter(self.parting.is_file, walk.stamps)):
            held = self._hold(path)
            if held.problem:
                unread[path] = held.problem
            stamps |= {f"{path}#{key}": _digest(page) for key, page in held.now.items()}
        return Walk(stamps, walk.passed, walk.left, unread)

    def read(self, path: str) -> tuple[bytes, str] | None:
        """Return what a note says in its file, and the stamp of that."""
        file, key = _split(path)
        page = self._hold(file).now.get(key)
        return None if page is None else (page.encode(), _digest(page))

    def write(self, path: str, data: bytes, expected: str | None) -> str | None:
        """Let a note say something else; return its stamp, None where it is not what was expected."""
        file, key = _split(path)
        held = self._hold(file)
        if held.problem:
            raise InvalidInput("file", file, held.problem)
        known = held.now.get(key)
        if (None if known is None else _digest(known)) != expected:
            return None
        held.now[key] = data.decode()
        return _digest(held.now[key])

    def remove(self, path: str, expected: str) -> bool:
        """Take a note out of its file; tell whether it was what was expected."""
        file, key = _split(path)
        known = self._hold(file).now.get(key)
        if known is not None and _digest(known) != expected:
            return False
        self._hold(file).now.pop(key, None)
        return True

    def name(self, path: str, uid: str) -> str:
        """Give a note the name that it is to have in its file; return its new path."""
        file, key = _split(path)
        if key == uid:
            return path
        held = self._hold(file)
        if key in held.now and uid not in held.now:
            held.by[uid] = held.by.pop(key, key)
            held.now[uid] = held.now.pop(key)
        return f"{file}#{uid}"

    def settle(self) -> dict[str, str]:
        """Write all files that changed; return the notes that could not be written after all, with the reason."""
        lost: dict[str, str] = {}
        for file in sorted(self.held):
            try:
                left = self._settled(file)
                reason = "was changed meanwhile: sync again"
            except InvalidInput as error:
                left, reason = list(self.held[file].changed()), error.reason
                self._hold(file, anew=True)
            lost |= {f"{file}#{key}": reason for key in left}
        self.files.settle()
        return lost

    def _settled(self, file: str) -> list[str]:
        """Write a file where it changed; return the notes that somebody else changed meanwhile."""
        lost: list[str] = []
        for _ in range(_TRIES):
            held = self.held[file]
            if not (changed := held.changed()) or self._wrote(file, held, changed):
                return lost
            lost += self._renew(file, changed)
        lost += self.held[file].changed()
        self._hold(file, anew=True)
        return lost

    def kept(self, stamp: str) -> str:
        """Return the stamp by which a note is known from now on."""
        return stamp

    def shown(self, path: str) -> str:
        """Return a path as people are told it, with the line where a note has no name."""
        file, key = _split(path)
        if len(key) < len(_digest("")):
            return path
        where = next((piece.where for piece in self._hold(file).pieces if piece.key == key), "")
        return f"{file}, {where}" if where else path

    # ---- within

    def _hold(self, file: str, *, anew: bool = False) -> _Held:
        if file not in self.held or anew:
            self.held[file] = self._read(file)
        return self.held[file]

    def _read(self, file: str) -> _Held:
        held = _Held()
        try:
            found = self.files.read(file, LARGEST)
            if found is None:
                return held
            data, held.stamp = found
            text = pages.readable(data)
            if text.startswith("\ufeff"):
                held.head, text = "\ufeff", text[1:]
            if "\r\n" in text and text.count("\n") == text.count("\r\n"):
                held.newline, text = "\r\n", text.replace("\r\n", "\n")
            held.text = text
            held.pieces = [piece for piece in self.parting.part(text, file) if piece.key]
            held.was = {piece.key: piece.page for piece in held.pieces}
            held.now = dict(held.was)
        except InvalidInput as error:
            held.problem = error.reason
        except UnicodeEncodeError:
            held.problem = "holds half of a character"
        except RecursionError:
            held.problem = "is nested too deeply"
        return held

    def _wrote(self, file: str, held: _Held, changed: dict[str, str | None]) -> bool:
        text = self.parting.joined(held.text, file, changed)
        if not held.now and (".conflict." in file or not text.strip()):
            if held.stamp is not None and not self.files.remove(file, held.stamp):
                return False
            self.held[file] = _Held()
            return True
        if text != held.text:
            whole = held.head + (text if held.newline == "\n" else text.replace("\n", held.newline))
            stamp = self.files.write(file, whole.encode(), held.stamp, LARGEST)
            if stamp is None:
                return False
        self._hold(file, anew=True)
        return True

    def _renew(self, file: str, changed: dict[str, str | None]) -> Iterator[str]:
        """Read a file again that somebody changed; yield what was to be changed and is not what it was."""
        old, held = self.held[file], self._hold(file, anew=True)
        names = {key: name for name, key in old.by.items()}
        for key, page in changed.items():
            if held.problem or held.was.get(key) != old.was.get(key):
                yield names.get(key, key)
            elif page is None:
                held.now.pop(key, None)
            else:
                name = names.get(key, key)
                held.now.pop(key, None)
                held.now[name] = page
                held.by[name] = key


def _split(path: str) -> tuple[str, str]:
    file, _, key = path.rpartition("#")
    return file, key


def _digest(page: str) -> str:
    return hashlib.sha256(page.encode()).hexdigest()
