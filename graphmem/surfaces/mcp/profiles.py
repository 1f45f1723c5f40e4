"""Tools under the names and with the arguments of two other memories, for agents and prompts that know those.

promemory: `memory` and `history` of opencode-promemory. ledger: `memory_save`, `memory_search` and `memory_forget` of
dsh-memory-ledger. What they do is what the verbs do, and what they write is the agent's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphmem.core.model import Hit, Note, StoredPart
from graphmem.core.snippets import above_floor, snippet
from graphmem.errors import InvalidInput, NotFound, SecretRefused
from graphmem.memory import Memory
from graphmem.surfaces.mcp.tools import SOURCE, Tool, own_tools
from graphmem.surfaces.notes_found import notes_of
from graphmem.surfaces.wire import whole_number

if TYPE_CHECKING:
    from graphmem.surfaces.schemas import Schema

_SHOWN = 10
_LOOKED_AT = 50
_TEXT: "Schema" = {"type": "string"}
_FLAG: "Schema" = {"type": "boolean", "default": False}
_COUNT: "Schema" = {"type": "integer", "minimum": 1, "maximum": _LOOKED_AT}

_ESCALATION = (
    "Nothing found. Try rarer or fewer words; search files for literal strings; then widen: scope sessions, then "
    "projects, then global; then the history tool, which holds what was said word for word."
)


@dataclass(frozen=True, slots=True)
class Profile:
    """What is offered under which names. search, save: the tools that instructions name, '' for none."""

    tools: Callable[[], tuple[Tool, ...]]
    search: str
    save: str


# ---- opencode-promemory

_SCOPES = {"global": "user", "projects": "project", "sessions": "session"}
_TYPES = ("memory", "checkpoint")
_WORDED: "Schema" = {
    "type": "object",
    "properties": {
        "title": _TEXT,
        "output": _TEXT,
        "metadata": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
    },
    "required": ["title", "output", "metadata"],
}


def _promemory() -> tuple[Tool, ...]:
    return (
        Tool(
            "memory",
            "Search memory",
            "Search what is remembered: durable notes of the user, of projects, and checkpoints of sessions. Without a "
            "scope, of the user and the current project.",
            _arguments(
                {
                    "operation": {"type": "string", "enum": ["search"]},
                    "query": {**_TEXT, "description": "the words to look for"},
                    "scope": {"type": "string", "enum": list(_SCOPES)},
                    "scope_id": {**_TEXT, "description": "the id of a project or session; left out: the current one"},
                    "type": {"type": "string", "enum": list(_TYPES)},
                    "limit": _COUNT,
                },
                "operation",
                "query",
            ),
            lambda: _WORDED,
            _memory,
            reads=True,
            words=_words,
        ),
        Tool(
            "history",
            "Search or get history",
            "Search what was said in sessions (operation search, with query), or get the exact text of one part "
            "(operation get, with part_id). Without project_id, of the current project.",
            _arguments(
                {
                    "operation": {"type": "string", "enum": ["search", "get"]},
                    "query": {**_TEXT, "description": "for search: the words to look for"},
                    "session_id": {**_TEXT, "description": "only of this session"},
                    "project_id": {**_TEXT, "description": "of another project, by its id"},
                    "part_id": {**_TEXT, "description": "for get: the id of a part, as search returns it"},
                    "limit": _COUNT,
                },
                "operation",
            ),
            lambda: _WORDED,
            _history,
            reads=True,
            words=_words,
        ),
    )


def _memory(memory: Memory, given: Mapping[str, Any]) -> dict[str, Any]:
    _require(given, "operation", "search")
    scopes = _scopes_of(given)
    wanted = given.get("type")
    if wanted is not None and wanted not in _TYPES:
        raise InvalidInput("type", wanted, f"give one of {', '.join(_TYPES)}, or leave it out")
    limit = _limit(given)
    looked_at = _LOOKED_AT
    while True:  # until there are enough of the type, or no more
        hits = memory.recall(given["query"], kinds="note", scopes=scopes, limit=looked_at)
        found = [(hit, note) for hit, note in notes_of(memory, hits) if wanted is None or _type_of(note) == wanted]
        if len(found) >= limit or len(hits) < looked_at:
            break
        looked_at *= 4
    found = found[: above_floor([hit.score for hit, _ in found], memory.config.search_score_floor)][:limit]
    told = [
        f"graphmem://notes/{note.id}\nScope: {note.scope or 'global'}  Type: {_type_of(note)}  Score: {hit.score:.3f}\n"
        f"{snippet(f'{note.title} {note.body}', given['query'])}"
        for hit, note in found
    ]
    intro = (
        "A hit is authoritative: somebody wrote it down. Read the whole note by its address. For exact values use "
        "history with operation get."
    )
    return _worded(f"Memory search: {len(found)} result(s)", [intro, *told] if found else [_ESCALATION], len(found))


def _type_of(note: Note) -> str:
    return "checkpoint" if note.kind == "checkpoint" else "memory"


def _scopes_of(given: Mapping[str, Any]) -> list[str] | None:
    """Return the scopes that are meant by scope and scope_id."""
    scope, name = given.get("scope"), given.get("scope_id")
    if scope is None:
        if name is not None:
            raise InvalidInput("scope_id", name, f"give scope as well: {', '.join(_SCOPES)}")
        return None
    if scope not in _SCOPES:
        raise InvalidInput("scope", scope, f"give one of {', '.join(_SCOPES)}")
    word = _SCOPES[scope]
    return [word if name is None or word == "user" else _keyed(word, name)]


def _keyed(kind: str, name: str) -> str:
    return name if name.startswith(f"{kind}:") else f"{kind}:{name}"


def _history(memory: Memory, given: Mapping[str, Any]) -> dict[str, Any]:
    _require(given, "operation", "search", "get")
    project = given.get("project_id")
    scopes = None if project is None else [_keyed("project", project)]
    session = given.get("session_id") or ""
    if given["operation"] == "get":
        return _part(memory, given.get("part_id"), session, scopes)
    if not given.get("query"):
        return _worded("History search", ["search needs query: give the words to look for"], 0)
    try:
        hits = memory.history(given["query"], session=session, scopes=scopes, limit=_limit(given))
    except NotFound as error:
        return _worded("History search: 0 result(s)", [f"not found: {error}"], 0)
    told = [f"{_line(hit.part)} score={hit.score:.3f}\n{hit.snippet}" for hit in hits]
    return _worded(f"History search: {len(hits)} result(s)", told or [_ESCALATION], len(hits))


def _part(memory: Memory, name: object, session: str, scopes: Sequence[str] | None) -> dict[str, Any]:
    if not isinstance(name, str) or not name:
        return _worded("History get", ["get needs part_id: give the id of a part, as search returns it"], 0)
    try:
        part = memory.part(name, session=session, scopes=scopes)
    except NotFound as error:
        return _worded("History get", [f"not found: {error}"], 0)
    return {"title": f"History get: {_line(part)}", "output": part.text, "metadata": {"count": 1}}


def _line(part: StoredPart) -> str:
    return f"session={part.session} message={part.message} part={part.part} time={part.at} project_id={part.scope}"


def _worded(title: str, paragraphs: Sequence[str], count: int) -> dict[str, Any]:
    return {"title": title, "output": "\n\n".join(paragraphs), "metadata": {"count": count}}


def _words(answer: Mapping[str, Any]) -> str:
    return f"{answer['title']}\n\n{answer['output']}"


# ---- dsh-memory-ledger

_RENAMED = {"slot": "key", "labels": "tags", "note_id": "id", "scopes": "scope"}
_ENTRY: "Schema" = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        **dict.fromkeys(("kind", "title", "body", "key", "scope", "status", "reason"), _TEXT),
        "tags": {"type": "array", "items": _TEXT},
        "pinned": {"type": "boolean"},
        "origin": {
            "type": "object",
            "properties": dict.fromkeys(("cwd", "label", "sessionId", "at"), _TEXT),
            "required": ["cwd", "label", "sessionId", "at"],
        },
        "score": {"type": "number"},
    },
    "required": ["id", "kind", "title", "body", "key", "scope", "status", "reason", "tags", "pinned", "origin"],
}


def _ledger() -> tuple[Tool, ...]:
    return (
        Tool(
            "memory_save",
            "Save to the ledger",
            "Save a fact (a stable setting) or a lesson (a verified problem and its solution), with the reason why. "
            "The same key overwrites. Facts are the user's, lessons the project's, unless scope says otherwise.",
            _arguments(
                {
                    "kind": {"type": "string", "enum": ["fact", "lesson"]},
                    "title": {**_TEXT, "description": "in one line"},
                    "body": _TEXT,
                    "key": {**_TEXT, "description": "what it is about, such as pen_name; the same key overwrites"},
                    "tags": {"type": "array", "items": _TEXT},
                    "pinned": _FLAG,
                    "scope": {"type": "string", "enum": ["user", "project"]},
                    "reason": {**_TEXT, "description": "why it is kept"},
                },
                "kind",
                "title",
            ),
            lambda: {**_ENTRY, "properties": {**_ENTRY["properties"], "created": {"type": "boolean"}}},
            _renaming(_save),
            destroys=True,
            repeats=True,
        ),
        Tool(
            "memory_search",
            "Search the ledger",
            "Search facts and lessons of the user and the current project; scope all searches every project. Each "
            "result tells where it is from and why it is kept.",
            _arguments(
                {
                    "query": {**_TEXT, "description": "the words to look for"},
                    "mode": {"type": "string", "enum": ["hybrid", "keyword", "vector"], "default": "hybrid"},
                    "scope": {"type": "string", "enum": ["user", "project", "all"]},
                },
                "query",
            ),
            lambda: {"type": "array", "items": _ENTRY},
            _renaming(_search),
            reads=True,
        ),
        Tool(
            "memory_forget",
            "Forget from the ledger",
            "Archive an entry; hard removes it for good.",
            _arguments({"id": {"anyOf": [{"type": "integer"}, _TEXT]}, "hard": _FLAG}, "id"),
            lambda: {
                "type": "object",
                "properties": {"id": {"type": "integer"}, "title": _TEXT, "hard": {"type": "boolean"}},
                "required": ["id", "title", "hard"],
            },
            _renaming(_forget),
            destroys=True,
        ),
    )


def _save(memory: Memory, given: Mapping[str, Any]) -> dict[str, Any]:
    _require(given, "kind", "fact", "lesson")
    if given.get("scope") is not None:
        _require(given, "scope", "user", "project")
    told = {"slot": given.get("key"), "labels": given.get("tags")}
    told |= {name: given.get(name) for name in ("kind", "body", "pinned", "scope", "reason")}
    report = memory.remember(
        given["title"], source=SOURCE, **{name: value for name, value in told.items() if value is not None}
    )
    return {**_entry(report.note), "created": report.created}


def _search(memory: Memory, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    mode, scope = given.get("mode") or "hybrid", given.get("scope")
    _require({"mode": mode}, "mode", "hybrid", "keyword", "vector")
    if scope is not None:
        _require(given, "scope", "user", "project", "all")
    hits: Sequence[Hit] = memory.recall(
        given["query"], kinds="note", mode=mode, scopes=None if scope is None else [scope], limit=_SHOWN
    )
    return [{**_entry(note), "score": hit.score} for hit, note in notes_of(memory, hits)]


def _forget(memory: Memory, given: Mapping[str, Any]) -> dict[str, Any]:
    name = given["id"]
    number = whole_number(name) if isinstance(name, str) else None
    report = memory.forget(name if number is None else number, hard=given.get("hard") or False, source=SOURCE)
    return {"id": report.id, "title": report.title, "hard": report.hard}


def _entry(note: Note) -> dict[str, Any]:
    origin = note.origin
    return {
        "id": note.id,
        "kind": note.kind,
        "title": note.title,
        "body": note.body,
        "key": note.slot,
        "tags": list(note.labels),
        "pinned": note.pinned,
        "scope": note.scope or "user",
        "status": note.status,
        "reason": note.reason,
        "origin": {"cwd": origin.place, "label": origin.actor, "sessionId": origin.session, "at": origin.at},
    }


# ---- of both

_Run = Callable[[Memory, Mapping[str, Any]], Any]


def _renaming(run: _Run) -> _Run:
    """Return a tool that names its own arguments in what it refuses."""

    def renamed(memory: Memory, given: Mapping[str, Any]) -> Any:
        try:
            return run(memory, given)
        except InvalidInput as error:
            raise InvalidInput(_RENAMED.get(error.argument, error.argument), error.value, error.reason) from None
        except SecretRefused as error:
            raise SecretRefused(_RENAMED.get(error.argument, error.argument), error.kind) from None

    return renamed


def _arguments(properties: "Mapping[str, Schema]", *required: str) -> "Callable[[], Schema]":
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return lambda: schema


def _require(given: Mapping[str, Any], argument: str, *words: str) -> None:
    if given[argument] not in words:
        raise InvalidInput(argument, given[argument], f"give {' or '.join(words)}")


def _limit(given: Mapping[str, Any]) -> int:
    limit = given.get("limit")
    limit = _SHOWN if limit is None else limit
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _LOOKED_AT:
        raise InvalidInput("limit", limit, f"give a whole number from 1 to {_LOOKED_AT}")
    return limit


PROFILES: Mapping[str, Profile] = {
    "graphmem": Profile(own_tools, "recall", "remember"),
    "promemory": Profile(_promemory, "memory", ""),
    "ledger": Profile(_ledger, "memory_search", "memory_save"),
}
