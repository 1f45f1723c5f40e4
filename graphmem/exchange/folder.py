"""Import of a folder of notes: Markdown with frontmatter and links, such as a vault of Obsidian, the files of
basic-memory, the tree of another memory, or a bundle of the Open Knowledge Format.

A file is a note. It keeps its links as text, and the titles of what they lead to are labels of the note: whoever asks
for one of them finds those that point at it too, and the labels go with the note when it is edited, undone or purged.
Observations of basic-memory stay in the body as well: passages of it are found as they would be alone, and a file goes
out again as the one that it was. Its relations are facts, and so are those of entities in a bundle that we wrote.

A note is known again by what it says, and a file by its folder and its id, or its path: of a file that was changed the
note is changed, unless somebody changed it here. Nothing is taken away because a file is gone.
"""

import contextlib
import functools
import hashlib
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphmem.core import foreign_pages, pages
from graphmem.core.choices import NOTE_KINDS
from graphmem.core.foreign_pages import ForeignPage, Link
from graphmem.core.keys import entity_key
from graphmem.core.model import Triple
from graphmem.errors import Conflict, InvalidInput
from graphmem.exchange import to_okf
from graphmem.exchange.importing import Steps, Tally, Target, shown
from graphmem.exchange.naming import Names
from graphmem.exchange.noting import ForeignNote, take_in_note
from graphmem.exchange.rooted import Rooted, is_text, printable
from graphmem.records import notes, trees
from graphmem.store.transaction import Transaction

_AT_ONCE = 50  # files, in one transaction
_LIST, _LOG = pages.INDEX_PAGE, "log.md"
_DIGITS = 16  # of the hash that tells one version of a file from another
_SCOPES = "files name a scope, which counts for nothing here: 'scope' says whose all of them are"
_COPY = "another program left it as a copy: take over what is missing, and remove it"
_LEFT_OUT = "{}: {} was left out"
# What Obsidian shows within a note, by https://help.obsidian.md/file-formats: a link to it names no note.
_MEDIA = {
    ".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp", ".flac", ".m4a", ".mp3", ".ogg", ".wav", ".webm",
    ".3gp", ".mkv", ".mov", ".mp4", ".ogv", ".pdf", ".canvas", ".base",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Folder:
    """What lies in a folder. paths: of the files that may be notes, from the root. refused: others, with the reason.

    rules: of its first page, None where it has none. is_bundle: it is one of the Open Knowledge Format.
    """

    files: Rooted
    paths: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    rules: list[str] | None
    is_bundle: bool


@dataclass(frozen=True, slots=True)
class _File:
    """A file that can be read. version: its id or else its path, and a hash of what it holds."""

    path: str
    text: str
    version: str


@dataclass(slots=True)
class _Titles:
    """The titles of files: by path, by what a file is called, and by what else its note is called."""

    by_path: dict[str, str] = field(default_factory=dict)
    by_file: dict[str, str] = field(default_factory=dict)
    by_name: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, page: ForeignPage) -> None:
        """Note what a file is called; of two with one name links mean the one that came first."""
        self.by_path[path] = page.title
        bare = posixpath.splitext(path)[0]
        for names, titles in (
            ((bare, posixpath.basename(bare)), self.by_file),
            ((page.title, page.permalink, *page.aliases), self.by_name),
        ):
            for key in map(entity_key, names):
                titles.setdefault(key, page.title)

    def of(self, link: Link) -> str:
        """Return the title that a link leads to; a name that no file has is the name of something.

        '' for a link to a file that is no note.
        """
        if link.is_path:
            return self.by_path.get(link.target, "")
        bare, suffix = posixpath.splitext(link.target)
        bare = bare if suffix.lower() in foreign_pages.SUFFIXES else link.target
        name = posixpath.basename(bare)
        for key in map(entity_key, (bare, name)):
            if known := self.by_file.get(key) or self.by_name.get(key):
                return known
        return "" if suffix.lower() in _MEDIA else name


@contextlib.contextmanager
def opened(path: str) -> Iterator[Callable[[Target, Tally], None]]:
    """Open a folder. Raises InvalidInput for one that is none, or holds no Markdown."""
    if not is_text(path):
        raise InvalidInput("path", printable(path), "its name is no UTF-8: give the folder another one")
    if not Path(path).is_dir():
        raise InvalidInput("path", path, "is no folder: give the folder of the notes")
    files = Rooted(path)
    walk = files.walk("")
    copies = [place for place in walk.stamps if ".md" in place and pages.is_copy(posixpath.basename(place))]
    # Of two files with one id or name the one of the shorter path comes: the other may be a copy of it.
    found = sorted(
        {place for place in walk.stamps if place.lower().endswith(foreign_pages.SUFFIXES)}.difference(copies),
        key=lambda place: (len(place), place),
    )
    if not found:
        raise InvalidInput("path", path, "holds no Markdown: give the folder of the notes")
    refused = sorted([*walk.passed, *((place, _COPY) for place in copies)])
    yield functools.partial(
        _take_in,
        _Folder(
            files,
            tuple(found),
            tuple(refused),
            foreign_pages.rules_of(_text(files, pages.ROOT_PAGE)),
            foreign_pages.is_bundle(_text(files, _LIST)),
        ),
    )


def _text(files: Rooted, path: str) -> str:
    """Return the text of a file, '' for one that cannot be read."""
    with contextlib.suppress(InvalidInput):
        read = files.read(path)
        return "" if read is None else pages.readable(read[0])
    return ""


def _take_in(folder: _Folder, target: Target, tally: Tally) -> None:
    with target.writing() as tx:
        if trees.tree_of(tx, folder.files.root) is not None:
            raise Conflict(f"{folder.files.root} is a tree of this memory: 'sync_tree' takes over what changed in it")
    _Import(folder, target, tally).run()


class _Import:
    def __init__(self, folder: _Folder, target: Target, tally: Tally) -> None:
        self._folder = folder
        self._target = target
        self._tally = tally
        self._scope = target.scope or ""
        self._names = Names(target, tally)
        self._titles = _Titles()
        self._ids: dict[str, str] = {}  # of files, by path
        self._known: dict[str, tuple[int, str]] = {}  # by the id or the path of a file: its note, its version then

    def run(self) -> None:
        """Take in all files: first look what each is called, since links lead to those that come later too."""
        for path, reason in self._folder.refused:
            self._tally.refuse("file", printable(path), reason)
        steps = Steps(self._target.progress, [len(self._folder.paths)] * 2)
        paths, places = [], dict[str, str]()
        for path in self._folder.paths:
            if self._is_one(path, places):
                paths.append(path)
            steps.advance(1)
        root = self._folder.files.root
        with self._target.writing() as tx:
            self._names.begin(tx)
            for note_id, version in notes.told_in(tx, self._scope, self._target.source, root):
                self._known[version.rpartition("@")[0]] = (note_id, version)
            for rule in self._folder.rules or ():
                note = ForeignNote(rule, kind="rule", place=root, message=pages.ROOT_PAGE)
                take_in_note(tx, note, self._scope, self._target, self._tally, "rule")
        for start in range(0, len(paths), _AT_ONCE):
            part = paths[start : start + _AT_ONCE]
            read = [each for path in part if (each := self._looked_at(path)) is not None]
            with self._target.writing() as tx:
                for file, page in read:
                    self._take_in(tx, file, page)
            steps.advance(len(part))
        steps.finish()

    def _read(self, path: str) -> _File | None:
        """Return a file, None where there is none any more; raise InvalidInput for one that cannot be a note."""
        read = self._folder.files.read(path)
        if read is None:
            return None
        digest = hashlib.sha256(read[0]).hexdigest()[:_DIGITS]
        return _File(path, pages.readable(read[0]), f"{self._ids.get(path, path)}@{digest}")

    def _page(self, file: _File) -> ForeignPage:
        return foreign_pages.read(file.text, file.path, kinds=NOTE_KINDS, is_bundle=self._folder.is_bundle)

    def _refuse(self, path: str, error: InvalidInput) -> None:
        # Never the value itself, which may be part of a secret.
        self._tally.refuse("file", path, f"{error.argument}: {error.reason}")

    def _is_one(self, path: str, places: dict[str, str]) -> bool:
        """Tell whether a file is to be taken in, and note what it is called. places: the file that has an id."""
        try:
            file = self._read(path)
            if file is None or not self._is_note(file):
                return False
            page = self._page(file)
            if page.uid and (first := places.setdefault(page.uid, path)) != path:
                raise InvalidInput("id", page.uid, f"{shown(first)} has the same one: remove one of both, or its id")
        except InvalidInput as error:
            self._refuse(path, error)
            return False
        if page.uid:
            self._ids[path] = page.uid
        self._titles.add(path, page)
        return True

    def _is_note(self, file: _File) -> bool:
        """Tell whether a file is one of a note, and not one of those that list or log others."""
        name = posixpath.basename(file.path)
        if file.path == pages.ROOT_PAGE and self._folder.rules is not None:
            self._tally.remark(_LEFT_OUT.format(shown(file.path), "all but its hard rules"))
            return False
        if name == _LOG and self._folder.is_bundle:
            self._tally.remark(_LEFT_OUT.format(shown(file.path), "the log of a bundle"))
            return False
        if name != _LIST or foreign_pages.is_listing(file.text):
            return name != _LIST
        is_reserved = self._folder.is_bundle or (self._folder.rules is not None and "/" in file.path)
        if is_reserved:
            self._tally.remark(_LEFT_OUT.format(shown(file.path), "the list of a folder"))
        return not is_reserved

    def _looked_at(self, path: str) -> tuple[_File, ForeignPage] | None:
        """Return what a file says, None for one that is as it was when it was taken in."""
        try:
            file = self._read(path)
            if file is None:
                return None
            if self._known.get(self._ids.get(path, path), (0, ""))[1] == file.version:
                self._tally.count("note", "known")
                return None
            return file, self._page(file)
        except InvalidInput as error:  # it was changed since
            self._refuse(path, error)
            return None

    def _take_in(self, tx: Transaction, file: _File, page: ForeignPage) -> None:
        self._tally.remark(*(f"{shown(file.path)}: {odd}" for odd in page.odd))
        facts = to_okf.facts_of(file.path, page.body) if self._folder.is_bundle else None
        if facts is not None:
            self._names.take_in_entity(tx, page.title, page.type)
            for relation, place, sentence in facts:
                end = self._titles.by_path.get(place, "")
                self._names.take_in_fact(tx, Triple(page.title, relation, end, sentence=sentence))
            return
        if page.scope:
            self._tally.remark(_SCOPES)
        own = entity_key(page.title)
        linked = (self._titles.of(link) for link in foreign_pages.links(page.body, file.path))
        labels = {one: None for one in (*page.labels, *linked) if entity_key(one) not in ("", own)}
        note = ForeignNote(
            title=page.title, body=page.body, kind=page.kind, slot=page.slot, load_when=page.load_when,
            summary=page.summary, labels=tuple(labels),
            highlight=page.highlight, pinned=page.pinned, archived=page.status == "archived",
            proposed=page.status == "proposed", reason=page.reason, place=self._folder.files.root,
            message=file.version, at=page.created or page.updated, updated_at=page.updated, name=file.path,
        )  # fmt: skip
        before, _ = self._known.get(self._ids.get(file.path, file.path), (None, ""))
        if take_in_note(tx, note, self._scope, self._target, self._tally, before=before) is None:
            return
        for relation, target, sentence in page.related:
            end = self._titles.of(target)
            self._names.take_in_fact(tx, Triple(page.title, relation, end, sentence=sentence))
