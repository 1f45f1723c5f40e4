"""What the server says of itself: a document of OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1)."""

import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from typing import Any

from graphmem.config import LARGEST_COUNT
from graphmem.surfaces.examples import examples_of, plain
from graphmem.surfaces.http import ledger
from graphmem.surfaces.http.bounds import EVENTS
from graphmem.surfaces.http.memories import PROJECT, SESSION
from graphmem.surfaces.http.refusals import JSON, KINDS
from graphmem.surfaces.schemas import Schema, answer_schemas, arguments_schema
from graphmem.surfaces.verbs import CHANGING, READING, Argument, Verb, item_of, members_of, verb_of

_SHAPES = "#/components/schemas/{model}"
_ABOUT = """Every verb of a memory by name, for programs and pages of this machine.

Arguments come as an object in JSON (RFC 8259) in UTF-8; verbs that only read are asked by a query too, where HEAD does
as GET. What a verb takes as text is that text in a query, all else is JSON; lists of texts name each by itself. What is
refused is told in one form, with the argument at fault where there is one.

A browser has to name its page: requests of pages of others, and by other names of this machine, get 403."""
_SAID = {
    400: "an argument, a header or the body cannot be used; nothing was changed",
    401: "the token is missing or is not that of this server",
    403: "another page asks, or the server is asked by another name than its own",
    404: "what was named is not there",
    408: "the body did not come in time",
    409: "it contradicts the present state of the memory; nothing was changed",
    413: "the body is too large",
    415: "the body is no JSON in UTF-8",
    422: "an argument holds a secret; nothing was changed",
    431: "the head of the request is too large",
    500: "the file of the memory, or the server, failed",
    502: "the writer failed; nothing of its answer is kept",
    503: "the memory, or the server, is busy: ask again",
}
_ANYBODY = (400, 403, 408, 431, 503)
_ASKING = (*_ANYBODY, 404, 409, 422, 500)
_SENDING = (413, 415)
_HEADERS = [{"$ref": f"#/components/parameters/{name}"} for name in (PROJECT, SESSION)]
_LEAVE: list[dict[str, list[str]]] = [{"token": []}, {"cookie": []}]


def document(*, cookie: str, private: bool, prefix: str) -> bytes:
    """Return the document in JSON. cookie: the name of the one that lets write. private: whether reading needs it too.

    prefix: of the routes of the ledger, '' where they are not served.
    """
    verbs = [verb_of(name) for name in sorted((*READING, *CHANGING))]
    answers, shapes = answer_schemas({**{verb.name: verb.answer for verb in verbs}, **ledger.ANSWERS}, _SHAPES)
    paths = {f"/api/{verb.name}": _path_of(verb, answers[verb.name], private=private) for verb in verbs}
    told = {
        "openapi": "3.1.0",
        "info": {"title": "graphmem", "version": importlib.metadata.version("graphmem"), "description": _ABOUT},
        "paths": {**_ledger(prefix, answers, private=private), **paths, **_own(private=private)},
        "components": {
            "schemas": {**shapes, "Error": _ERROR},
            "responses": {KINDS[status]: _refused(status) for status in _SAID},
            "parameters": {
                PROJECT: _header(
                    PROJECT,
                    "The folder of the project that the request is about, percent-encoded UTF-8; empty for none. "
                    "Without it, the project that the server was started for.",
                    "/home/ann/%E5%B7%A5%E4%BD%9C",
                ),
                SESSION: _header(SESSION, "The session that the request is about, percent-encoded UTF-8.", "s1"),
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "what 'graphmem serve' shows"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "what /enter gives"},
            },
        },
    }
    return json.dumps(told, ensure_ascii=False).encode()


def _operation(
    name: str,
    summary: str,
    answer: Schema,
    *,
    refused: Iterable[int] = _ANYBODY,
    leave: bool = False,
    description: str = "",
    parameters: Iterable[Schema] = (),
    body: Schema | None = None,
    examples: Iterable[Schema] = (),
) -> Schema:
    """Return what is told of one operation. answer: the response of success by its status. leave: whether it needs it.

    body: the schema of the JSON that is sent, None for none. refused: the other statuses that can come.
    """
    statuses = sorted({*refused, *((401,) if leave else ()), *(_SENDING if body else ())})
    told: Schema = {
        "operationId": name,
        "summary": summary,
        "security": _LEAVE if leave else [],
        "responses": {
            **answer,
            **{str(status): {"$ref": f"#/components/responses/{KINDS[status]}"} for status in statuses},
        },
    }
    if description:
        told["description"] = description
    if parameters := list(parameters):
        told["parameters"] = parameters
    if body is not None:
        shown = {str(number): {"value": value} for number, value in enumerate(examples, 1)}
        content = {"schema": body, **({"examples": shown} if shown else {})}
        told["requestBody"] = {"required": True, "content": {JSON: content}}
    return told


def _answered(schema: Schema, description: str, *, kind: str = JSON) -> Schema:
    """Return the response of success with a body."""
    return {"200": {"description": description, "content": {kind: {"schema": schema}}}}


def _path_of(verb: Verb, answer: Schema, *, private: bool) -> Schema:
    told = plain(verb.told)
    summary, _, _ = told.partition("\n\n")
    options: dict[str, Any] = {
        "summary": " ".join(summary.split()),
        "answer": _answered(answer, "what it answers"),
        "description": told,
        "refused": (*_ASKING, 502) if verb.changes else _ASKING,
        "leave": verb.changes or private,
    }
    posted = _operation(
        verb.name, parameters=_HEADERS, body=arguments_schema(verb), examples=examples_of(verb), **options
    )
    if verb.changes:
        return {"post": posted}
    query = [_in_query(argument, schema) for argument, schema in _queried(verb)]
    return {"post": posted, "get": _operation(f"get_{verb.name}", parameters=[*query, *_HEADERS], **options)}


def _queried(verb: Verb) -> Iterable[tuple[Argument, tuple[Schema, bool]]]:
    schema = arguments_schema(verb)
    for name, argument in verb.arguments.items():
        yield argument, (schema["properties"][name], name in schema["required"])


def _in_query(argument: Argument, told: tuple[Schema, bool]) -> Schema:
    """Return how an argument is given in a query, see `bodies.arguments_of`."""
    schema, required = told
    kinds = members_of(argument.annotation)
    place = {"name": argument.name, "in": "query", "required": required}
    forms = schema.get("anyOf", [schema])
    if item_of(argument.annotation) is str or str in kinds:
        as_told = "array" if item_of(argument.annotation) is str else "string"
        return {**place, "schema": next(form for form in forms if form.get("type") == as_told)}
    if all(form.get("type") in _PLAIN for form in forms):
        return {**place, "schema": schema}
    return {**place, "content": {JSON: {"schema": schema}}}


def _own(*, private: bool) -> dict[str, Schema]:
    """Return the paths of what is served beside verbs and the ledger."""
    return {
        "/health": {
            "get": _operation(
                "health",
                "Tell that the server runs.",
                _answered(
                    {
                        "type": "object",
                        "properties": {
                            "status": {"const": "ok"},
                            "version": {"type": "string"},
                            "pid": {"type": "integer"},
                        },
                        "required": ["status", "version", "pid"],
                        "additionalProperties": False,
                    },
                    "it runs",
                ),
            )
        },
        "/enter": {
            "get": _operation(
                "enter",
                "Give a browser the cookie that lets it write.",
                {"303": {"description": "the cookie, and the way to the first page"}},
                refused=(*_ANYBODY, 401),
                parameters=[{"name": "token", "in": "query", "required": True, "schema": {"type": "string"}}],
            )
        },
        EVENTS: {
            "get": _operation(
                "events",
                "Stream server-sent events: hello at the start, change after each change of the memory.",
                _answered({"type": "string"}, "events without an end of their own", kind="text/event-stream"),
                leave=private,
                parameters=[
                    {
                        "name": "Last-Event-ID",
                        "in": "header",
                        "description": "The event that was met last: where others came since, the first is a change.",
                        "schema": {"type": "string"},
                    }
                ],
            )
        },
        "/openapi.json": {
            "get": _operation("openapi", "Return this document.", _answered({"type": "object"}, "the document"))
        },
    }


_PLAIN = ("integer", "number", "boolean", "null")  # in a query they are written as in JSON
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "the class of the error"},
                "message": {"type": "string"},
                "argument": {"type": "string", "description": "the argument at fault"},
            },
            "required": ["type", "message"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}
# Answered by the server itself before the application sees the request: one that is no HTTP, too many connections.
_PLAINLY = (400, 503)


def _refused(status: int) -> Schema:
    kinds = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    if status in _PLAINLY:
        kinds["text/plain"] = {"schema": {"type": "string"}}
    told: Schema = {"description": _SAID[status], "content": kinds}
    if status == 401:
        told["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}}
    return told


def _header(name: str, description: str, example: str) -> Schema:
    return {
        "name": name, "in": "header", "required": False, "description": description, "example": example,
        "schema": {"type": "string"},
    }  # fmt: skip


def _ledger(prefix: str, answers: Mapping[str, Schema], *, private: bool) -> dict[str, Schema]:
    """Return the paths of the ledger, see `ledger`; none without a prefix."""
    if not prefix:
        return {}
    note = {"id": {"type": "integer", "minimum": 1, "maximum": LARGEST_COUNT}}
    edit = arguments_schema(verb_of("edit_note"))["properties"]
    away = {"archived": {"type": "boolean", "description": "whether it is put away"}}
    changes = {**{old: edit[new] for old, new in ledger.CHANGED.items()}, **away}
    return {
        f"{prefix}/ledger": {
            "get": _operation(
                "entries",
                "Return entries of the user and the current project.",
                _answered(answers["entries"], "what was found"),
                refused=_ASKING,
                leave=private,
                parameters=[
                    *(
                        {"name": name, "in": "query", "description": _QUERIES[name], "schema": {"type": "string"}}
                        for name in ledger.ASKED
                    ),
                    *_HEADERS,
                ],
            )
        },
        f"{prefix}/update": {
            "post": _operation(
                "update_entry",
                "Change what is given of an entry; its scope and its origin stay.",
                _answered(answers["update_entry"], "the entry"),
                refused=_ASKING,
                leave=True,
                parameters=_HEADERS,
                body=_object({**note, **changes}),
            )
        },
        f"{prefix}/forget": {
            "post": _operation(
                "forget_entry",
                "Put an entry away, or remove it for good.",
                _answered(answers["forget_entry"], "the entry, null where it is gone"),
                refused=_ASKING,
                leave=True,
                parameters=_HEADERS,
                body=_object({**note, "hard": {"type": "boolean", "default": False}}),
            )
        },
    }


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": ["id"], "additionalProperties": False}


_QUERIES = {
    "q": "words; without any, what was told last comes first",
    "mode": f"how they are looked for: {', '.join(ledger.MODES)}",
    "scope": "user, project or the key of one: what is of that alone; all for everything",
    "cwd": "the folder of the project; it goes before the header",
    "archived": "1 for what was put away too",
}
