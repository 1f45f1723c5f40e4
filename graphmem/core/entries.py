"""The ledger of dsh-memory-ledger as a file: a JSON object whose entries are notes, one each.

What other programs put into the file or an entry stays as it is. An entry is a fact or a lesson there; of which kind it
is here stands beside that. What is counted, such as how often a note was told, is not in it.
"""

import json
from bisect import bisect
from collections.abc import Mapping
from typing import Any

from graphmem.core import frontmatter
from graphmem.core.frontmatter import Value
from graphmem.core.model import Note
from graphmem.core.pages import UID, Page
from graphmem.core.parted import Piece, digest_of, named
from graphmem.core.times import foreign_time
from graphmem.errors import InvalidInput

LEDGER_FILE = "memory.json"
_COPY_FILE = "memory.conflict.json"
LISTS = ("entries", "items", "memories", "records")
CREATED = ("createdAt", "created_at", "created", "at")
FIELDS = ("title", "body", "kind", "slot", "labels", "pinned", "reason")
_KINDS = {
    "fact": "fact", "preference": "fact", "decision": "fact", "rule": "fact", "lesson": "lesson", "pitfall": "lesson",
}  # fmt: skip
KINDS = tuple(_KINDS)
OWN_KIND = "noteKind"
_NO_DOCUMENT = frontmatter.parse("")


def is_file(path: str) -> bool:
    """Tell whether a path is a file of this form."""
    return path in (LEDGER_FILE, _COPY_FILE)


def part(text: str, path: str) -> list[Piece]:
    """Take a file apart; raise InvalidInput for one that is no ledger.

    >>> [(piece.key, piece.where) for piece in part('{"entries": [{"id": "ab", "title": "x"}]}', "memory.json")]
    [('ab', 'entry 1')]
    """
    held = _entries(_read(text))
    listed = held.items() if isinstance(held, dict) else enumerate(held)
    found = []
    for number, (name, entry) in enumerate(listed, 1):
        if isinstance(held, dict) and isinstance(entry, dict):
            entry = {"id": name, **entry}
        page = _page(entry)
        uid = entry.get("id") if isinstance(entry, dict) else None
        key = uid if isinstance(uid, str) and UID.fullmatch(uid) else digest_of(page)
        found.append(Piece(key, f"entry {number}", page, ""))
    return named(found)


def joined(text: str, path: str, pages: Mapping[str, str | None]) -> str:
    """Return a file in which some entries say something else; new ones come in the order of their ids."""
    whole = _read(text) if text else {"entries": []}
    held = _entries(whole)
    keys = [piece.key for piece in part(text, path)] if text else []
    made: list[tuple[str, Any]] = []
    for key, (name, entry) in zip(keys, held.items() if isinstance(held, dict) else enumerate(held), strict=True):
        page = pages.get(key, "")
        if page is not None:
            made.append((key, json.loads(page) if page else {"id": name, **entry} if isinstance(held, dict) else entry))
    for key in sorted(set(pages) - set(keys)):
        page = pages[key]
        if page is not None:
            made.insert(bisect(made, key, key=lambda one: one[0]), (key, json.loads(page)))
    now: Any = [entry for _, entry in made]
    if isinstance(held, dict):
        now = {str(entry["id"]): {key: value for key, value in entry.items() if key != "id"} for entry in now}
    if isinstance(whole, list):
        whole = now
    else:
        whole[_name_of(whole)] = now
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def read_entry(data: bytes) -> Page:
    """Return what an entry says; raise InvalidInput naming what cannot be used.

    >>> dict(read_entry(b'{"id": "ab", "kind": "lesson", "title": "Deploy", "key": "deploy"}').told)
    {'kind': 'lesson', 'title': 'Deploy', 'slot': 'deploy'}
    """
    entry = json.loads(data)
    if not isinstance(entry, dict):
        raise InvalidInput("entry", entry, "give an object with a kind and a title")
    told: dict[str, Value | bool] = {}
    if kind := kind_of(_text(entry, "kind"), _text(entry, OWN_KIND)):
        told["kind"] = kind
    for name, key in (("title", "title"), ("slot", "key"), ("reason", "reason"), ("source", "source")):
        if text := _text(entry, key).strip():
            told[name] = text
    if "title" not in told:
        raise InvalidInput("title", "", "say in one line what to remember")
    tags = entry.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidInput("tags", "…", "give a list of texts")
    if tags:
        told["labels"] = tuple(tags)
    for name in ("pinned", "archived"):
        if not isinstance(entry.get(name, False), bool):
            raise InvalidInput(name, "…", "write true or false")
    if entry.get("pinned"):
        told["pinned"] = True
    if entry.get("archived"):
        told["status"] = "archived"
    origin = entry.get("origin")
    origin = origin if isinstance(origin, dict) else {}
    for name, key in (("place", "cwd"), ("session", "sessionId")):
        if text := _text(origin, key):
            told[name] = text
    at = foreign_time(origin.get("at")) or next((at for key in CREATED if (at := foreign_time(entry.get(key)))), "")
    if at:
        told["created"] = at
    uid = entry.get("id")
    return Page(uid if isinstance(uid, str) else "", told, _text(entry, "body").strip(), _NO_DOCUMENT, ())


def kind_of(kind: str, own: str) -> str:
    """Return the kind of a note by that of its entry, and by the one that stands beside it where both agree.

    >>> kind_of("fact", "rule"), kind_of("lesson", "rule"), kind_of("lesson", "")
    ('rule', 'lesson', 'lesson')
    """
    return own if _KINDS.get(own) == kind else kind


def compose_entry(note: Note, uid: str, usual_reason: str) -> str:
    """Return the entry of a note."""
    return _page({key: value for key, value in _told(note, uid).items() if value not in ("", [])})


def changed_entry(page: str, note: Note, uid: str, usual_reason: str) -> str:
    """Return an entry that is to say what a note is now, and keeps all else."""
    entry = json.loads(page)
    for key, value in _told(note, uid).items():
        if value not in ("", []) or key in entry:
            entry[key] = value
    return _page(entry)


def _told(note: Note, uid: str) -> dict[str, Any]:
    kind = _KINDS[note.kind]
    origin = {"cwd": note.origin.place, "sessionId": note.origin.session, "at": note.origin.at}
    return {
        "id": uid,
        "kind": kind,
        OWN_KIND: note.kind if note.kind != kind else "",
        "title": note.title,
        "body": note.body,
        "key": note.slot,
        "tags": list(note.labels),
        "pinned": note.pinned,
        "archived": False,
        "reason": note.reason,
        "source": note.source if note.source != "user" else "",
        "origin": {key: value for key, value in origin.items() if value},
        "createdAt": note.created_at,
    }


def _read(text: str) -> Any:
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        told = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "no numbers of JSON"
        raise InvalidInput("file", "…", f"is no JSON, {told}") from None
    if not isinstance(found, list | dict):
        raise InvalidInput("file", "…", "is no ledger: give an object with entries")
    return found


def _no_number(name: str) -> None:
    raise ValueError(name)


def _name_of(whole: Mapping[str, Any]) -> str:
    return next((name for name in LISTS if isinstance(whole.get(name), list | dict)), LISTS[0])


def _entries(whole: Any) -> Any:
    return whole if isinstance(whole, list) else whole.get(_name_of(whole), [])


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(key, "…", "give one text")
    return value or ""


def _page(entry: object) -> str:
    return json.dumps(entry, ensure_ascii=False, indent=2)
