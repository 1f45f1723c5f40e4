"""The forms that notes have as files: pages of their own, the files of opencode-promemory, a ledger in JSON."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from graphmem.core import entries, frontmatter, pages, sections
from graphmem.core.choices import NOTE_KINDS
from graphmem.core.frontmatter import Value
from graphmem.core.model import Note
from graphmem.core.pages import Page
from graphmem.core.parted import Parting
from graphmem.errors import InvalidInput
from graphmem.records import drafts

NAMES = ("notes", "promemory", "ledger")

Edits = dict[str, Value | bool]


@dataclass(frozen=True, slots=True)
class Form:
    """How notes are files. part: of the names of all files. statuses, kinds: of the notes that have one.

    read: returns what a page says; given its bytes and path. compose: returns the page of a note; given its uid and the
    reason that need not be told. changed: returns a page that says something else; given the old one first. edits:
    returns what a page says otherwise than its note; given the usual reasons by kind. place: returns the path of a new
    note; given its uid and the taken ones. copy: returns where the note of a conflict is laid; settles: tells how
    people end one. parting: how a file of many notes is taken apart, None where each is one note.
    """

    name: str
    part: str
    statuses: tuple[str, ...]
    kinds: tuple[str, ...]
    read: Callable[[bytes, str], Page]
    compose: Callable[[Note, str, str], str]
    changed: Callable[[str, Note, str, str], str]
    edits: Callable[[Page, Note, Mapping[str, str]], Edits]
    place: Callable[[Note, str, Iterable[str]], str]
    copy: Callable[[str], str]
    settles: str
    parting: Parting | None = None


@functools.cache
def form_of(name: str) -> Form:
    """Return a form by its name; raise InvalidInput for an unknown one."""
    if name not in NAMES:
        raise InvalidInput("form", name, f"give one of {', '.join(NAMES)}")
    return {"notes": _notes, "promemory": _promemory, "ledger": _ledger}[name]()


# ---- a file each


def _notes() -> Form:
    def changed(page: str, note: Note, uid: str, usual_reason: str) -> str:
        return pages.changed_page(frontmatter.parse(page), note, uid, usual_reason)

    return Form(
        "notes", ".md", ("live", "proposed"), NOTE_KINDS, lambda data, path: pages.read_page(data),
        pages.compose_page, changed, pages.edits_of, pages.new_path, pages.conflict_path,
        "take it away or move it over the file",
    )  # fmt: skip


# ---- files of many


def _promemory() -> Form:
    def read(data: bytes, path: str) -> Page:
        return sections.read_checkpoint(data, path) if data.startswith(b"# ") else sections.read_memory(data)

    def compose(note: Note, uid: str, usual_reason: str) -> str:
        return sections.compose_checkpoint(note, uid) if _in_session(note) else sections.compose_memory(note, uid)

    def changed(page: str, note: Note, uid: str, usual_reason: str) -> str:
        return compose(note, uid, "") if _in_session(note) else sections.changed_memory(page, note, uid)

    def edits(page: Page, note: Note, usual_reasons: Mapping[str, str]) -> Edits:
        return _edits_of_checkpoint(page, note) if _in_session(note) else _edits_of_section(page, note)

    return Form(
        "promemory", ".md", ("live",), sections.KINDS, read, compose, changed, edits,
        lambda note, uid, taken: f"{sections.file_of(note)}#{uid}", _copy_of_piece, _SETTLES,
        Parting(sections.is_file, sections.part, sections.joined),
    )  # fmt: skip


def _in_session(note: Note) -> bool:
    return note.kind == "checkpoint"


def _edits_of_section(page: Page, note: Note) -> Edits:
    wanted: Edits = {"kind": page.told.get("kind", note.kind), "body": page.body, "title": page.told["title"]}
    if wanted["title"] == sections.one_line(note.title):
        wanted["title"] = note.title
    return _others(wanted, note)


def _edits_of_checkpoint(page: Page, note: Note) -> Edits:
    text = sections.text_of_checkpoint(page.body)
    if text == sections.text_of_checkpoint(note.body):
        return {}
    # The form stays what it was, and so does a summary that somebody wrote.
    wanted: Edits = {"body": page.body if note.body != sections.text_of_checkpoint(note.body) else text}
    if note.summary == sections.summary_of(note.body, drafts.LONGEST_SUMMARY):
        wanted["summary"] = sections.summary_of(page.body, drafts.LONGEST_SUMMARY)
    return _others(wanted, note)


def _ledger() -> Form:
    def edits(page: Page, note: Note, usual_reasons: Mapping[str, str]) -> Edits:
        wanted: Edits = {"slot": "", "labels": (), "pinned": False, "reason": "", "kind": note.kind, "body": page.body}
        wanted |= {key: value for key, value in page.told.items() if key in entries.FIELDS}
        wanted["reason"] = wanted["reason"] or usual_reasons.get(str(wanted["kind"]), "")
        return _others(wanted, note)

    return Form(
        "ledger", ".json", ("live",), entries.KINDS, lambda data, path: entries.read_entry(data),
        entries.compose_entry, entries.changed_entry, edits, lambda note, uid, taken: f"{entries.LEDGER_FILE}#{uid}",
        _copy_of_piece, _SETTLES, Parting(entries.is_file, entries.part, entries.joined),
    )  # fmt: skip


_SETTLES = "take it out of there to keep the file, or move it from there into the file to keep the note"


def _copy_of_piece(path: str) -> str:
    """Return where the note of a conflict is laid: under its name in a file beside the one that was changed.

    >>> _copy_of_piece("sessions/a.b/checkpoint.md#0a1b")
    'sessions/a.b/checkpoint.conflict.md#0a1b'
    """
    file, _, key = path.rpartition("#")
    stem, _, ending = file.rpartition(".")
    return f"{stem}.conflict.{ending}#{key}"


def _others(wanted: Edits, note: Note) -> Edits:
    return {key: value for key, value in wanted.items() if not pages.is_same(value, getattr(note, key))}
