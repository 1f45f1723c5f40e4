"""What notes look like as files of a tree: their pages, and the lists that are compiled of them.

A page holds what a person may want to read or change; what is counted (how often a note was told or used, and when
last) stays in the memory, so that no recall changes a file. Of the same notes the same text is made, an entry a line.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote

from graphmem.core import frontmatter
from graphmem.core.frontmatter import Document, Value
from graphmem.core.keys import place_key, slug
from graphmem.core.model import Note
from graphmem.core.model.notes import EDITABLE
from graphmem.errors import InvalidInput

FOLDERS: Mapping[str, str] = MappingProxyType(
    {
        "fact": "facts",
        "preference": "preferences",
        "decision": "decisions",
        "lesson": "lessons",
        "pitfall": "pitfalls",
        "rule": "rules",
        "checkpoint": "checkpoints",
    }
)
_KINDS = {folder: kind for kind, folder in FOLDERS.items()}
UID = re.compile(r"[0-9A-Za-z_-]{1,64}")  # what names a note on every machine
ROOT_PAGE = "ROOT.md"
INDEX_PAGE = "index.md"
# Two devices that each add a line to a list have both lines when git has merged them.
ATTRIBUTES = f"{INDEX_PAGE} merge=union\n{ROOT_PAGE} merge=union\n"
LISTED = frozenset({"title", "summary", "load_when"})  # what lists show of a note, beside its path and status
FIELDS = tuple(name for name in EDITABLE if name != "body")  # what stands above the text of a note
_LISTS = {"labels", "load_when"}
# What other systems call the same.
_NAMES = {"tags": "labels", "loadWhen": "load_when", "load-when": "load_when"}
_KNOWN = {*FIELDS, *_NAMES, "id", "status", "source", "created"}
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0", ""}
_BEGIN = "<!-- graphmem: what follows is compiled, and an edit of it is overwritten -->"
_END = "<!-- graphmem: end -->"
_NEW_ROOT = "# Memory\n\n## Goals\n\n## Hard rules\n\n"
# Copies that Dropbox, Syncthing, Nextcloud, OneDrive, editors, merges and this module itself leave beside a file.
_COPY = re.compile(
    r"""~\$.*|\.?\#.*|.*~|.*\.(?:orig|rej|bak|tmp|swp)|.*\.(?:orig|rej|bak|conflict|BACKUP|BASE|LOCAL|REMOTE)(?:[._]\d+)?\.md
        |.*\.sync-conflict-.*|.*\((?:.*\W)?conflict(?:ed)?(?:\W.*)?\).*|.*_conflict-\d.*""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MEANT = re.compile(r"[\\`|\[\]<*_]")  # what means something in a line of Markdown
_UNSAFE = re.compile(r"[^\w/.~\-\x80-\U0010ffff]+")  # in the address of a link
_MERGE_MARKS = re.compile(r"^<{7}(?: .*)?$.*^>{7}(?: .*)?$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """What a file says of a note. uid: '' where it names none. told: of `FIELDS` and the rest what it tells, in the
    names of notes; what it does not tell is missing.
    """

    uid: str
    told: Mapping[str, Value | bool]
    body: str
    document: Document
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A note as lists show it. path: of its file, with `/` between folders."""

    path: str
    title: str
    summary: str
    load_when: tuple[str, ...]
    proposed: bool


# ---- a note


def make_uid(note: Note) -> str:
    """Return what names a note in files, on every device: twelve hex digits of when and as what it was told first."""
    told = f"{note.id}\n{note.created_at}\n{note.title}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def compose_page(note: Note, uid: str, usual_reason: str) -> str:
    """Return the page of a note. usual_reason: one that need not be told."""
    told = {key: value for key, value in _told(note, uid, usual_reason).items() if value}
    return frontmatter.compose(told, note.body)


def changed_page(document: Document, note: Note, uid: str, usual_reason: str) -> str:
    """Return the text of a page that is to say what a note is now, and keeps the bytes of all else."""
    page = _page(document)
    named = title_of(page, "") if document.opening else None
    names = {_NAMES.get(key, key): key for key in document.values()}
    wanted: dict[str, Value | None] = {}
    for key, value in _told(note, uid, usual_reason).items():
        said = page.uid if key == "id" else page.told.get(key, "")
        if is_same(said, value == "true" if key == "pinned" else value) or (key == "title" and value == named):
            continue
        wanted[names.get(key, key)] = value or None
    return frontmatter.changed(document, wanted, note.body).text()


def _told(note: Note, uid: str, usual_reason: str) -> dict[str, Value]:
    return {
        "id": uid,
        "title": note.title,
        "kind": note.kind,
        "slot": note.slot,
        "labels": note.labels,
        "load_when": note.load_when,
        "summary": note.summary,
        "highlight": note.highlight,
        "pinned": "true" if note.pinned else "",
        "status": note.status if note.status != "live" else "",
        "reason": note.reason if note.reason != usual_reason else "",
        "source": note.source if note.source != "user" else "",
        "created": note.created_at,
    }


def read_page(data: bytes) -> Page:
    r"""Return what a file says; raise InvalidInput for what cannot be read.

    >>> page = read_page("---\ntitle: 部署\ntags: a\n---\nText.".encode())
    >>> page.told["title"], page.told["labels"], page.body
    ('部署', ('a',), 'Text.')
    """
    return _page(frontmatter.parse(readable(data)))


def readable(data: bytes) -> str:
    """Return the text of a file; raise InvalidInput for one that nobody finished, or that is no text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("file", data[:20], f"no UTF-8 at byte {error.start}: save it as UTF-8") from None
    if _MERGE_MARKS.search(text.replace("\r\n", "\n")):
        raise InvalidInput("file", "<<<<<<<", "it holds the marks of a merge: choose what is to stay, and sync again")
    if not text.strip():  # an editor may be about to write it
        raise InvalidInput("file", text, "is empty: remove it to archive what it held")
    return text


def _page(document: Document) -> Page:
    told: dict[str, Value | bool] = {}
    unknown = []
    for key, value in document.values().items():
        name = _NAMES.get(key, key)
        if key not in _KNOWN:
            unknown.append(key)
        elif value is None:
            raise InvalidInput(key, "…", "give a text, or a list of texts")
        elif name in _LISTS:
            told[name] = tuple(one for one in ((value,) if isinstance(value, str) else value) if one.strip())
        elif not isinstance(value, str):
            raise InvalidInput(key, value, "give one text")
        elif name == "pinned":
            told[name] = _flag(value)
        else:
            told[name] = value.strip()
    uid = told.pop("id", "")
    remarks = list(document.remarks())
    if unknown:
        remarks.append(f"left in the file, since they mean nothing here: {', '.join(unknown)}")
    return Page(uid if isinstance(uid, str) else "", told, document.body, document, tuple(remarks))


def _flag(value: str) -> bool:
    flag = flag_of(value)
    if flag is None:
        raise InvalidInput("pinned", value, "write true or false")
    return flag


def flag_of(value: str) -> bool | None:
    """Return what a word says, None where that is neither yes nor no.

    >>> flag_of("Yes"), flag_of(""), flag_of("soon")
    (True, False, None)
    """
    word = value.strip().casefold()
    return word in _TRUE if word in _TRUE | _FALSE else None


def edits_of(page: Page, note: Note, usual_reasons: Mapping[str, str]) -> dict[str, Value | bool]:
    """Return what a file says otherwise than a note does. What names and sorts a note is kept where a file is silent;
    any other key that is gone is taken away. usual_reasons: by kind, what stands where no reason is told.
    """
    empty: dict[str, Value | bool] = {"labels": (), "load_when": (), "pinned": False}
    wanted = {key: page.told.get(key, empty.get(key, "")) for key in FIELDS}
    for key in ("title", "kind"):
        wanted[key] = wanted[key] or getattr(note, key)
    wanted["reason"] = wanted["reason"] or usual_reasons.get(str(wanted["kind"]), "")
    wanted["body"] = page.body
    return {key: value for key, value in wanted.items() if not is_same(value, getattr(note, key))}


def is_same(value: Value | bool, other: Value | bool) -> bool:
    """Tell whether two values say the same: the order of a list says nothing, and what is empty is empty."""
    if isinstance(value, tuple) and isinstance(other, tuple):
        return sorted(value) == sorted(other)
    return value == other or not (value or other)


def title_of(page: Page, path: str) -> str:
    """Return the title of a page: as told, else its first heading, else the name of the file.

    >>> title_of(read_page(b"# Deploy\\n\\nText."), "facts/x.md"), title_of(read_page(b"Text."), "facts/use-pnpm.md")
    ('Deploy', 'use pnpm')
    """
    if title := page.told.get("title"):
        return str(title)
    heading = re.match(r"#{1,6}[ \t]+([^\n]*\S)", page.body)
    return heading[1] if heading else path.rpartition("/")[2].removesuffix(".md").replace("-", " ")


def kind_of(page: Page, path: str) -> str:
    """Return the kind of a page: as told, else that of its folder, else fact."""
    return str(page.told.get("kind") or kind_of_folder(path))


def kind_of_folder(path: str) -> str:
    """Return the kind of the notes that lie in the first folder of a path, fact for any other folder.

    >>> kind_of_folder("lessons/a.md"), kind_of_folder("diary/lessons/a.md")
    ('lesson', 'fact')
    """
    return _KINDS.get(path.partition("/")[0], "fact")


# ---- names of files


def is_copy(name: str) -> bool:
    """Tell whether a file is a copy that a program left, and no page of its own.

    >>> [is_copy(name) for name in ("n (Ann's conflicted copy 2026-03-01).md", "n.sync-conflict-20260301-1-A.md")]
    [True, True]
    >>> [is_copy(name) for name in ("~$n.md", "n.md.orig", "n.md~", "n.conflict.md", "conflict.md", "n.md")]
    [True, True, True, True, False, False]
    """
    return _COPY.fullmatch(name) is not None


def conflict_path(path: str) -> str:
    """Return where the other side of a conflict is laid: beside the file, and never read as a note.

    >>> conflict_path("facts/a.md")
    'facts/a.conflict.md'
    """
    return path.removesuffix(".md") + ".conflict.md"


def new_path(note: Note, uid: str, taken: Iterable[str]) -> str:
    """Return a path for a note that none of the taken ones is, also where case and accents are told apart by nobody."""
    used = set(taken)
    name = slug(note.title)
    if is_copy(f"{name}.md") or f"{name}.md" == INDEX_PAGE:
        name = f"{name.replace('.', '-')}-{uid}"
    path = f"{FOLDERS[note.kind]}/{name}.md"
    return path if place_key(path) not in used else f"{FOLDERS[note.kind]}/{name}-{uid}.md"


# ---- what is compiled


def index_path(path: str) -> str:
    """Return the path of the list that shows a file.

    >>> index_path("facts/tea.md")
    'facts/index.md'
    """
    return f"{path.rpartition('/')[0]}/{INDEX_PAGE}"


def index_page(folder: str, listed: Iterable[Listed]) -> str:
    """Return the list of a folder: one line a note."""
    lines = [f"- {_link(one, one.path.rpartition('/')[2])}{_tail(one)}\n" for one in _sorted(listed)]
    return f"# {_plain(folder)}\n\n{_BEGIN}\n\n{''.join(lines)}"


def is_compiled(text: str) -> bool:
    """Tell whether a page is one that is compiled."""
    return _BEGIN in text


def root_page(text: str, folders: Iterable[str], routed: Iterable[Listed]) -> str:
    """Return the first page of a tree: what people wrote there byte for byte, and two tables that are compiled.

    text: as it is now, '' for none. folders: that have a list. routed: notes that tell when they are to be
    read. Where the marks of the tables are missing they go to the end.
    """
    newline = "\r\n" if "\r\n" in text and text.count("\n") == text.count("\r\n") else "\n"
    tables = newline.join(_tables(folders, routed))
    begin, end = re.escape(_BEGIN), re.escape(_END)
    # Where the end was taken away only what is certainly ours goes.
    ours = r"(?:\r?\n(?:\|[^\n]*|## Folders\r?|## What to read when\r?|[ \t\r]*)(?=\n|\Z))*"
    found = re.search(rf"^{begin}\r?$.*?^{end}(?=\r?$)", text, re.MULTILINE | re.DOTALL)
    found = found or re.search(rf"^{begin}{ours}", text, re.MULTILINE)
    if found:
        return text[: found.start()] + tables + text[found.end() :]
    human = text or _NEW_ROOT
    gap = "" if human.endswith(newline * 2) else newline if human.endswith("\n") else newline * 2
    return human + gap + tables + newline


def _tables(folders: Iterable[str], routed: Iterable[Listed]) -> list[str]:
    routes = sorted({(trigger, one.path, one) for one in routed for trigger in one.load_when}, key=lambda row: row[:2])
    return [
        _BEGIN, "", "## Folders", "", "| folder | list |", "| --- | --- |",
        *(f"| {_plain(folder)} | [{INDEX_PAGE}]({_address(f'{folder}/{INDEX_PAGE}')}) |" for folder in sorted(folders)),
        "", "## What to read when", "", "| when | file | what |", "| --- | --- | --- |",
        *(f"| {_plain(trigger)} | {_link(one, path)} | {_plain(one.summary)} |" for trigger, path, one in routes),
        "", _END,
    ]  # fmt: skip


def _sorted(listed: Iterable[Listed]) -> list[Listed]:
    return sorted(listed, key=lambda one: one.path)


def _link(one: Listed, target: str) -> str:
    return f"[{_plain(one.title)}]({_address(target)})"


def _tail(one: Listed) -> str:
    said = f": {_plain(one.summary)}" if one.summary else ""
    return said + " (proposed)" * one.proposed


def _plain(text: str) -> str:
    r"""Return a text as one line of Markdown that means nothing but itself.

    >>> print(_plain("a|b [c]\n<d>"))
    a\|b \[c\] \<d>
    """
    line = " ".join(text.split())
    return _MEANT.sub(r"\\\g<0>", line) if _MEANT.search(line) else line


def _address(path: str) -> str:
    """Return a path as the address of a link; letters of every script stay as they are.

    >>> _address("facts/部署 (1).md")
    'facts/部署%20%281%29.md'
    """
    return _UNSAFE.sub(lambda match: quote(match[0]), path) if _UNSAFE.search(path) else path
