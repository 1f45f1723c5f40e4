"""JSON Schemas of what verbs take and answer, made of their types in Python."""

import datetime as dt
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pydantic
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from graphmem.config import LARGEST_COUNT
from graphmem.core import choices
from graphmem.core.events import Event
from graphmem.core.model import Part, Triple
from graphmem.core.model.records import OUTCOMES
from graphmem.core.model.writing import JOB_STATES
from graphmem.core.situations import Situation
from graphmem.surfaces.verbs import REQUIRED, SITUATION_FIELDS, Verb, item_of, members_of
from graphmem.surfaces.wire import told_names

Schema = dict[str, Any]

_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST_COUNT}
_BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
_TEXTS: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_FEATURE: Schema = {
    "type": "object",
    "properties": {
        "kind": {"type": "string"},
        "value": {"type": "string"},
        "weight": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]},
    },
    "required": ["kind", "value"],
    "additionalProperties": False,
}
_SITUATION: Schema = {
    "type": "object",
    "description": "Who, where, with what, about what; at: when, in ISO 8601",
    "properties": {
        **{name: {"anyOf": [*_TEXTS["anyOf"], {"type": "null"}]} for name in SITUATION_FIELDS},
        "features": {"type": "array", "items": _FEATURE},
        "at": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "additionalProperties": False,
}
# The words of which an argument of a verb, or a field of a value, takes one or some.
CHOICES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Part": {"outcome": OUTCOMES},
    "checkpoint": {"cause": choices.CHECKPOINT_CAUSES},
    "draw": {"form": choices.PICTURE_FORMS},
    "edit_note": {"kind": choices.NOTE_KINDS},
    "incidents": {"status": choices.INCIDENT_STATES},
    "jobs": {"states": JOB_STATES},
    "notes": {"kinds": choices.NOTE_KINDS, "statuses": choices.NOTE_STATUSES},
    "put_block": {"modality": choices.MODALITIES},
    "recall": {"kinds": choices.RECALL_KINDS, "mode": choices.RECALL_MODES, "trust": choices.SOURCE_CLASSES},
    "remember": {"kind": choices.NOTE_KINDS, "status": choices.NOTE_STATUSES},
    "scenes": {"origin": choices.SCENE_ORIGINS, "sort": choices.SCENE_ORDERS},
}


def arguments_schema(verb: Verb, *, without: frozenset[str] = frozenset()) -> Schema:
    """Return the schema of the object that holds the arguments of a verb. without: arguments that are not offered."""
    offered = {name: argument for name, argument in verb.arguments.items() if name not in without}
    known = CHOICES.get(verb.name, {})
    return {
        "type": "object",
        "properties": {
            name: _from_one(taken) if name == "operation" or name.endswith(("_id", "_ids")) else taken
            for name, argument in offered.items()
            for taken in [_taken(argument.annotation, argument.default, known.get(name, ()))]
        },
        "required": [name for name, argument in offered.items() if argument.default is REQUIRED],
        "additionalProperties": False,
    }


def _taken(annotation: Any, default: Any, known: Sequence[str]) -> Schema:
    kinds = members_of(annotation)
    forms = [_chosen(form, known) for kind in kinds for form in _form(kind).get("anyOf", [_form(kind)])]
    forms = [form for i, form in enumerate(forms) if form not in forms[:i]]
    schema = dict(forms[0]) if len(forms) == 1 else {"anyOf": forms}
    return schema if default is REQUIRED or default is None else {**schema, "default": _told(default)}


def _from_one(schema: Schema) -> Schema:
    """Return the schema of the number of a row, or of several: they begin with 1."""
    if schema == _COUNT:
        return {**schema, "minimum": 1}
    if "items" in schema:
        return {**schema, "items": _from_one(schema["items"])}
    return {**schema, "anyOf": [_from_one(form) for form in schema["anyOf"]]} if "anyOf" in schema else schema


def _chosen(form: Schema, known: Sequence[str]) -> Schema:
    """Return the schema of a text, or of a list of texts, that knows only some words, where it does."""
    if known and form == {"type": "string"}:
        return {**form, "enum": list(known)}
    return {**form, "items": _chosen(form["items"], known)} if known and "items" in form else form


def _form(kind: Any) -> Schema:
    if kind is Situation:
        return _SITUATION
    if kind is bytes:
        return _BASE64
    if kind is int:
        return _COUNT
    if kind is dt.datetime:  # as text in ISO 8601, which a verb reads in the time zone of the memory where none is told
        return {"type": "string"}
    if kind in (Event, Triple, Part):
        return _closed(kind)
    if (item := item_of(kind)) is not None:
        return _TEXTS if item is str else {"type": "array", "items": _form(item)}
    return _answered(kind)


def _closed(kind: Any) -> Schema:
    """Return the schema of a value of the model that is given: its fields, and no other."""
    parameters = inspect.signature(kind, eval_str=True).parameters
    given = {name: each for name, each in parameters.items() if name != "place"}
    known = CHOICES.get(kind.__name__, {})
    return {
        "type": "object",
        "properties": {
            name: _taken(each.annotation, each.default, known.get(name, ())) for name, each in given.items()
        },
        "required": [name for name, each in given.items() if each.default is REQUIRED],
        "additionalProperties": False,
    }


def _told(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default


def answer_schema(verb: Verb) -> Schema:
    """Return the schema of what a verb answers, with the shapes of its parts in $defs."""
    return _answered(verb.answer)


def answer_schemas(answers: Mapping[str, Any], place: str) -> tuple[dict[str, Schema], dict[str, Schema]]:
    """Return the schemas of types that are answered, and the shapes that they share by the names of these.

    place: how a shape is pointed at, with `{model}` for its name.
    """
    mode: Literal["serialization"] = "serialization"
    asked = [(name, mode, pydantic.TypeAdapter(kind)) for name, kind in answers.items()]
    found, shared = pydantic.TypeAdapter.json_schemas(asked, ref_template=place, schema_generator=_AsTold)
    return {name: schema for (name, _), schema in found.items()}, shared.get("$defs", {})


def _answered(kind: Any) -> Schema:
    return pydantic.TypeAdapter(kind).json_schema(mode="serialization", schema_generator=_AsTold)


class _AsTold(GenerateJsonSchema):
    """Schemas of values as `surfaces.wire` tells them: with their properties, all fields there, bytes in Base64."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        """Return the schema of a value of the model, what its properties give included."""
        found = super().dataclass_schema(schema)
        kind = schema["cls"]
        for name in told_names(kind):
            if name not in found["properties"]:
                found["properties"][name] = self.generate_inner(_property(kind, name))
        found["required"] = list(told_names(kind))
        return found

    def bytes_schema(self, schema: core_schema.BytesSchema) -> Schema:
        """Return the schema of bytes as they are told."""
        return dict(_BASE64)


def _property(kind: type[Any], name: str) -> Any:
    getter = vars(kind)[name].fget
    return pydantic.TypeAdapter(inspect.signature(getter, eval_str=True).return_annotation).core_schema
