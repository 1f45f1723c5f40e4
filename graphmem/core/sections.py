"""`MEMORY.md` and `sessions/<id>/checkpoint.md`, as opencode-promemory has them: many notes in one file.

In `MEMORY.md` a note is a section of the third level: its heading is the title, the heading above says what kind it is,
and a comment below it names the note, so that it stays the same one whatever else is changed. A bullet right below a
heading of the second level is a note too, as other programs append them, and becomes a section. In a checkpoint file
each `# Checkpoint` is one. A line of a note that would begin another one has a backslash before it in the file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from types import MappingProxyType

from graphmem.core import checkpoints, frontmatter
from graphmem.core.fenced import MARK, escaped, in_fences, lines_of, unescaped
from graphmem.core.frontmatter import Value
from graphmem.core.keys import slug
from graphmem.core.model import Note
from graphmem.core.pages import Page
from graphmem.core.parted import Piece, digest_of, named
from graphmem.core.times import foreign_time

MEMORY_FILE = "MEMORY.md"
_COPY_FILE = "MEMORY.conflict.md"
HEADINGS: Mapping[str, str] = MappingProxyType(
    {
        "rule": "Rules",
        "decision": "Architecture decisions",
        "fact": "Discovered durable knowledge",
        "preference": "Preferences",
        "lesson": "Lessons",
        "pitfall": "Pitfalls",
    }
)
KINDS = (*HEADINGS, "checkpoint")
_KINDS = {heading.casefold(): kind for kind, heading in HEADINGS.items()} | {
    "decisions": "decision",
    "project context": "fact",
    "global (cross-project facts)": "fact",
}
_NEW_FILE = "# Memory\n"
_CHECKPOINT = "# Checkpoint"
_NO_SESSION = "unknown"
_CHECKPOINT_FILE = re.compile(r"sessions/(?P<session>[^/]+)/checkpoint(?:\.conflict)?\.md")
_PLAIN_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_MARKED = re.compile(rf"(?:[ \t\r]*\n)*{MARK.pattern}(?:\n|\Z)")
_HEADING = re.compile(r"(?P<level>#{1,3})(?:[ \t]+(?P<text>.*))?")  # of a line without what is blank at its end
_BULLET = re.compile(r"[-*+•][ \t]+(?P<text>\S.*)")
_DATE = re.compile(r"^Date:[ \t]*(\S.*)$", re.MULTILINE)
# Lines that would begin something, by the file that they are in.
_OF_MEMORY = re.compile(r"\\*(?:#{1,3}(?:[ \t\r]|\Z)|[ ]{0,3}(?:`{3}|~{3}))")
_OF_CHECKPOINTS = re.compile(r"\\*(?:# Checkpoint[ \t\r]*\Z|[ ]{0,3}(?:`{3}|~{3}))")
_NO_DOCUMENT = frontmatter.parse("")


# ---- MEMORY.md


def is_file(path: str) -> bool:
    """Tell whether a path is a file of this form.

    >>> is_file("MEMORY.md"), is_file("sessions/s1/checkpoint.md"), is_file("notes/MEMORY.md")
    (True, True, False)
    """
    return path in (MEMORY_FILE, _COPY_FILE) or _CHECKPOINT_FILE.fullmatch(path) is not None


def kind_of_heading(heading: str) -> str | None:
    """Return the kind of the notes below a heading, None where it does not say.

    >>> kind_of_heading("Architecture decisions"), kind_of_heading("Deployment")
    ('decision', None)
    """
    return _KINDS.get(heading.strip().casefold())


def file_of(note: Note) -> str:
    """Return the file that a note belongs into."""
    if note.kind != "checkpoint":
        return MEMORY_FILE
    session = note.origin.session or _NO_SESSION
    safe = slug(session)
    is_safe = _PLAIN_SESSION.fullmatch(session) and safe == session.casefold()
    return f"sessions/{session if is_safe else safe}/checkpoint.md"


def part(text: str, path: str) -> list[Piece]:
    r"""Take a file apart.

    >>> pieces = part("# Memory\n\n## Rules\n\n- never push\n\n### Deploy\n\nWith pnpm.\n", "MEMORY.md")
    >>> [(piece.where, piece.page) for piece in pieces if piece.key]
    [('line 5', '## Rules\n- never push'), ('line 7', '## Rules\n### Deploy\n\nWith pnpm.')]
    """
    return named(_checkpoints(text) if _CHECKPOINT_FILE.fullmatch(path) else _sections(text))


@dataclass(slots=True)
class _Open:
    """A piece that goes on. begins: what its page begins with; None for a piece that is no note."""

    line: int
    begins: str | None = None
    lines: list[str] = field(default_factory=list)

    def piece(self) -> Piece:
        raw = "".join(self.lines)
        if self.begins is None:
            return Piece("", f"line {self.line}", "", raw)
        page = self.begins + raw.rstrip()
        mark = _MARKED.match(raw.partition("\n")[2])
        return Piece(mark["uid"] if mark else digest_of(page), f"line {self.line}", page, raw)


def _sections(text: str) -> Iterator[Piece]:
    now, group, has_section = _Open(1), "", False
    lines = lines_of(text)
    for number, (line, is_code) in enumerate(zip(lines, in_fences(lines), strict=True), 1):
        bare = line.rstrip("\n")
        heading = None if is_code else _HEADING.fullmatch(bare.rstrip())
        fresh: _Open | None = None
        if heading is not None and heading["level"] != "###":
            group = heading["text"] or "" if heading["level"] == "##" else ""
            has_section = False
            fresh = _Open(number)
        elif heading is not None:
            has_section = True
            fresh = _Open(number, f"## {group}\n")
        elif not has_section and group and not is_code:
            if _BULLET.fullmatch(bare.rstrip("\r")):
                fresh = _Open(number, f"## {group}\n")
            elif now.begins is not None and bare.strip() and not bare[0].isspace():
                fresh = _Open(number)
        if fresh is not None:
            yield now.piece()
            now = fresh
        now.lines.append(line)
    yield now.piece()


def joined(text: str, path: str, pages: Mapping[str, str | None]) -> str:
    r"""Return a file in which some notes say something else.

    A note stays where it is, and one that is new goes to the others of its heading, in the order of their names.

    >>> print(joined("", "MEMORY.md", {"ab": "## Rules\n### Deploy\n<!-- graphmem: ab -->\n\nWith pnpm."}), end="")
    # Memory
    <BLANKLINE>
    ## Rules
    <BLANKLINE>
    ### Deploy
    <!-- graphmem: ab -->
    <BLANKLINE>
    With pnpm.
    """
    of_checkpoints = _CHECKPOINT_FILE.fullmatch(path) is not None
    waiting = {key: page for key, page in pages.items() if page is not None}
    made: list[Piece] = []
    for piece in part(text or ("" if of_checkpoints else _NEW_FILE), path):
        page = pages.get(piece.key, piece.page) if piece.key else piece.page
        if page is None:
            continue
        if piece.key in waiting and _group(page) == _group(piece.page) and not _BULLET.match(piece.raw):
            del waiting[piece.key]
            made.append(_written(piece.key, page))
        elif piece.key not in waiting:
            made.append(piece)
    fresh = [_written(key, page) for key, page in sorted(waiting.items())]
    if of_checkpoints:
        return _put_together([*made, *fresh])
    blocks = _blocks(made)
    for group in sorted({_group(piece.page) for piece in fresh}):
        block = next((block for block in blocks if _group_of_block(block) == group), None)
        if block is None:
            block = [Piece("", "", "", f"## {group}\n\n")]
            blocks.insert(_place_of_heading(blocks, group), block)
        block[:] = _merged(block, [piece for piece in fresh if _group(piece.page) == group])
    return _put_together(piece for block in blocks for piece in block)


def _blocks(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Return pieces by the headings that they stand below."""
    found: list[list[Piece]] = [[]]
    for piece in pieces:
        heading = None if piece.key else _HEADING.fullmatch(piece.raw.partition("\n")[0].rstrip())
        if heading is not None and heading["level"] != "###":
            found.append([])
        found[-1].append(piece)
    return found


def _group_of_block(block: Sequence[Piece]) -> str:
    return _group(block[0].raw) if block and not block[0].key else ""


def _merged(block: Iterable[Piece], fresh: Sequence[Piece]) -> list[Piece]:
    """Return the pieces below a heading with new ones, each before the first one that comes after it by its name."""
    left = list(reversed(fresh))
    found = []
    for piece in block:
        while left and piece.raw.startswith("###") and left[-1].key < piece.key:
            found.append(left.pop())
        found.append(piece)
    return [*found, *reversed(left)]


def _place_of_heading(blocks: Sequence[Sequence[Piece]], group: str) -> int:
    """Return where a heading goes: before the first one that comes after it in the usual order."""
    usual = list(HEADINGS.values())
    later = usual[usual.index(group) + 1 :] if group in usual else []
    return next((number for number, block in enumerate(blocks) if _group_of_block(block) in later), len(blocks))


def _written(key: str, page: str) -> Piece:
    return Piece(key, "", page, page.partition("\n")[2] + "\n\n" if page.startswith("## ") else page + "\n\n")


def _put_together(pieces: Iterable[Piece]) -> str:
    texts = [""]
    for piece in pieces:
        begins = piece.key != "" or piece.raw.startswith("#")
        if begins and texts[-1] and not texts[-1].endswith("\n\n"):
            texts.append("\n" if texts[-1].endswith("\n") else "\n\n")
        if piece.raw:
            texts.append(piece.raw)
    return "".join(texts).rstrip("\n") + "\n"


def _group(page: str) -> str:
    return page.partition("\n")[0].removeprefix("##").strip() if page.startswith("## ") else ""


def read_memory(data: bytes) -> Page:
    r"""Return what a section says, or a bullet.

    >>> page = read_memory(b"## Rules\n### Deploy\n<!-- graphmem: ab -->\n\nWith pnpm.")
    >>> page.uid, dict(page.told), page.body
    ('ab', {'kind': 'rule', 'title': 'Deploy'}, 'With pnpm.')
    """
    group, _, rest = data.decode().partition("\n")
    first, _, body = rest.partition("\n")
    told: dict[str, Value | bool] = {}
    if kind := kind_of_heading(group.removeprefix("##")):
        told["kind"] = kind
    bullet = _BULLET.fullmatch(first.rstrip("\r"))
    told["title"] = (bullet["text"] if bullet else first.lstrip("#")).strip()
    uid, body = _after_mark(body)
    return Page(uid, told, dedent(body).strip() if bullet else unescaped(body, _OF_MEMORY).strip(), _NO_DOCUMENT, ())


def compose_memory(note: Note, uid: str) -> str:
    """Return the page of a note in `MEMORY.md`."""
    return f"## {HEADINGS[note.kind]}\n" + _section(note, uid)


def changed_memory(page: str, note: Note, uid: str) -> str:
    """Return the page of a note that stays below its heading, unless that says that it is of another kind."""
    group = _group(page)
    return (
        f"## {group}\n{_section(note, uid)}"
        if kind_of_heading(group) in (None, note.kind) and group
        else (compose_memory(note, uid))
    )


def _section(note: Note, uid: str) -> str:
    body = f"\n\n{escaped(note.body, _OF_MEMORY)}" if note.body else ""
    return f"### {one_line(note.title)}\n<!-- graphmem: {uid} -->{body}"


def one_line(title: str) -> str:
    """Return a title as a heading has it."""
    return " ".join(title.split())


# ---- checkpoint.md


def _checkpoints(text: str) -> Iterator[Piece]:
    now = _Open(1)
    lines = lines_of(text)
    for number, (line, is_code) in enumerate(zip(lines, in_fences(lines), strict=True), 1):
        if not is_code and line.rstrip() == _CHECKPOINT:
            yield now.piece()
            now = _Open(number, "")
        now.lines.append(line)
    yield now.piece()


def read_checkpoint(data: bytes, path: str) -> Page:
    """Return what a checkpoint says. path: of its file, which names the session."""
    _, _, rest = data.decode().partition("\n")
    uid, rest = _after_mark(rest)
    text = unescaped(rest, _OF_CHECKPOINTS).strip()
    match = _CHECKPOINT_FILE.match(path)
    session = "" if match is None or match["session"] == _NO_SESSION else match["session"]
    date = _DATE.search(text)
    told_date = date[1].strip() if date else ""
    at = foreign_time(told_date)
    shown = (at or told_date)[:16].replace("T", " ")
    told: dict[str, Value | bool] = {
        "kind": "checkpoint",
        "title": ", ".join(filter(None, (f"Checkpoint of {session or 'a session'}", shown))),
        "session": session,
        "created": at,
    }
    return Page(uid, told, f"{_CHECKPOINT}\n{text}", _NO_DOCUMENT, ())


def compose_checkpoint(note: Note, uid: str) -> str:
    """Return a checkpoint as its file has it."""
    text = escaped(text_of_checkpoint(note.body), _OF_CHECKPOINTS)
    return f"{_CHECKPOINT}\n<!-- graphmem: {uid} -->" + (f"\n{text}" if text else "")


def text_of_checkpoint(body: str) -> str:
    """Return what a checkpoint says below its first heading."""
    first, _, rest = body.partition("\n")
    return rest.strip() if first.rstrip() == _CHECKPOINT else body


def summary_of(body: str, most: int) -> str:
    """Return the summary of a checkpoint, as it is made when one is written."""
    return checkpoints.summary_of(body, most)


def _after_mark(text: str) -> tuple[str, str]:
    mark = _MARKED.match(text)
    return (mark["uid"], text[mark.end() :]) if mark else ("", text)
