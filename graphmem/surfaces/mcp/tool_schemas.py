"""The schemas of tools, made of the types of their verbs, with what is told of arguments to a model.

A server reads them from `tools.json`, since it has to start quickly. After a change: python tests/test_mcp_schemas.py.
"""

from collections.abc import Mapping

from graphmem.surfaces import schemas
from graphmem.surfaces.mcp.tools import OFFERED, filled_in
from graphmem.surfaces.schemas import Schema
from graphmem.surfaces.verbs import verb_of

# What is told of an argument, where its name does not say enough to a model.
_TOLD: Mapping[str, str] = {
    "as_of": "what held at that time, ISO 8601; left out: now",
    "body": "as much as is needed beyond the title",
    "declared": "keys of scenes that are entered whatever else fits, such as chan:qq",
    "exact": "only these scenes, and none below them",
    "explain": "say what each score is made of",
    "floor": "share of the best score that a hit needs to be shown, 0 to 1",
    "force": "also where it failed three times in a row",
    "hard": "remove it for good; else it is archived and can be restored",
    "keys": "keys of scenes, such as chan:qq or peer:boss; '' for all",
    "labels": "other names that it is found by",
    "limit": "the most that is returned; left out: 10 (8 of each kind from scenes)",
    "load_when": "words, or features such as tool:shell, that call it to mind; at most 8",
    "mode": "left out: hybrid; keyword: every word has to be there",
    "note_id": "the number of a note, as recall returns it",
    "pinned": "goes first where little is shown; only the user pins, so quote them",
    "precise": "only what clearly answers, nothing where nothing does",
    "query": "the words to look for",
    "quote": "the user's own sentence that says so, word for word; a rule or a pin needs it to come into force",
    "reason": "why it is kept, or put away",
    "scenes": "keys of scenes; what is written comes back with them",
    "scope": "whose it is: user, project or session; left out: by its kind",
    "scopes": "of whom: user, project, session, all, or keys of scopes; left out: of the user and the current project",
    "session": "the name of a session",
    "since": "only what was said from this time on, ISO 8601",
    "slot": "what it is about, in a word; a new note of a slot takes the place of the old one",
    "summary": "one sentence, at most 100 characters",
    "title": "what to remember, in one line",
    "trust": "only from who is trusted as much",
    "triples": "facts: subject, relation, object, and in sentence how it was said",
    "until": "only what was said before this time, ISO 8601",
    "wait": "false puts it into the queue",
}


def tool_schemas() -> dict[str, dict[str, Schema]]:
    """Return the schemas of what each tool takes and answers, by its name."""
    return {name: {"arguments": _arguments(name), "answer": schemas.answer_schema(verb_of(name))} for name in OFFERED}


def _arguments(name: str) -> Schema:
    verb = verb_of(name)
    schema = schemas.arguments_schema(verb, without=frozenset(verb.arguments) - {*OFFERED[name]})
    told = {each: _for_model(each, of) for each, of in schema["properties"].items()}
    return {**schema, "properties": told, "required": sorted({*schema["required"]} - filled_in(name))}


def _for_model(name: str, schema: Schema) -> Schema:
    """Return the schema of an argument with what is told of it.

    Null is not told of, since an argument may be left out, and a client that knows one type makes a number of "5"; nor
    is the time of a situation, which is now.
    """
    forms = [_timeless(each) for each in schema.get("anyOf", (schema,)) if each != {"type": "null"}]
    beside = {each: of for each, of in schema.items() if each == "default"}
    told = {"description": _TOLD[name]} if name in _TOLD else {}
    return {**(forms[0] if len(forms) == 1 else {"anyOf": forms}), **beside, **told}


def _timeless(schema: Schema) -> Schema:
    if "at" not in schema.get("properties", {}):
        return schema
    return {**schema, "properties": {name: of for name, of in schema["properties"].items() if name != "at"}}
