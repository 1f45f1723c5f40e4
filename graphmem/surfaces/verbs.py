"""The verbs of Memory as other programs call them: by name, with arguments and answers in JSON."""

import binascii
import collections.abc
import datetime as dt
import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from graphmem.config import Config
from graphmem.core.events import Event, event_of, triple_of
from graphmem.core.model import Brief, CommitReport, Part, Triple, Visit
from graphmem.core.model.notes import EDITABLE
from graphmem.core.policies import ChannelPolicy, effective_policy
from graphmem.core.situations import Feature, Situation
from graphmem.errors import InvalidInput
from graphmem.memory import Memory

# What may be asked with no leave to write.
READING = (
    "block", "brief", "check", "draw", "evidence", "growth", "history", "incidents", "inspect", "jobs", "kept_apart",
    "ledger", "match_scenes", "neighbours", "notes", "observe", "operations", "overview", "part", "parts", "recall",
    "recall_by_scene", "recall_by_situation", "review_entities", "rules_for", "scene", "scene_health", "scenes",
    "scopes", "sessions", "shortest_path", "tool_brief",
)  # fmt: skip
CHANGING = (
    "approve", "archive_document", "checkpoint", "commit", "consolidate", "consume_document", "declare_scene",
    "dedupe_scenes", "delete_block", "delete_parts", "delete_relation", "delete_session", "distill", "drop_scene",
    "edit_note", "edit_relation", "embed", "enter_scene", "forget", "forget_incident", "keep_apart", "merge_entities",
    "mirror", "propose", "purge", "put_block", "put_document", "query_documents", "record_failure", "reindex", "reject",
    "remember", "remind", "rename_scene", "repair", "reset_scenes", "restore_note", "run_jobs", "scan_secrets",
    "tag_scene", "turn", "undo", "untag_scene", "upkeep",
)  # fmt: skip
# What is of Python alone: a function, the path of a file of the machine that the memory lies on.
_NOT_TOLD = frozenset({"progress", "measure", "arbiter", "report", "backup"})


@dataclass(frozen=True, slots=True)
class Argument:
    """What a verb takes under a name. annotation: its type in Python. default: `REQUIRED` where there is none.

    is_named: whether the verb knows it by its name in Python too.
    """

    name: str
    annotation: Any
    default: Any
    is_named: bool = True


REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb that is called by name. told: what it does. answer: the type of what it returns."""

    name: str
    told: str
    changes: bool
    arguments: Mapping[str, Argument]
    answer: Any
    run: Callable[..., Any]

    def __call__(self, memory: Memory, given: Mapping[str, object]) -> Any:
        """Run the verb with arguments as they are in JSON, and return what the verb of Memory returns.

        Raises what the verb raises, and InvalidInput for arguments that it does not know or lacks.
        """
        for name in given:
            if name not in self.arguments:
                raise InvalidInput(name, given[name], f"{self.name} takes {', '.join(self.arguments) or 'nothing'}")
        for name, argument in self.arguments.items():
            if argument.default is REQUIRED and name not in given:
                raise InvalidInput(name, None, f"{self.name} needs it")
        taken = {name: _taken(self.arguments[name], value, memory.config) for name, value in given.items()}
        unnamed = [taken.pop(name) for name, each in self.arguments.items() if not each.is_named]
        return self.run(memory, *unnamed, **taken)


@dataclass(frozen=True, slots=True)
class TurnReport:
    """One turn, told at once. commit: what became of the facts of its event, None where it had none."""

    visit: Visit
    brief: Brief
    commit: CommitReport | None


@functools.cache
def verb_of(name: str) -> Verb:
    """Return the verb of a name. Raises InvalidInput for another."""
    if name not in READING and name not in CHANGING:
        raise InvalidInput("verb", name, f"give one of {', '.join(sorted((*READING, *CHANGING)))}")
    run = _OWN.get(name) or getattr(Memory, name)
    signature = inspect.signature(run, eval_str=True)
    arguments = [
        Argument(each.name, each.annotation, each.default, each.kind is not each.POSITIONAL_ONLY)
        for each in list(signature.parameters.values())[1:]
        if each.kind is not each.VAR_KEYWORD and each.name not in _NOT_TOLD
    ]
    if name == "edit_note":
        written = inspect.signature(Memory.remember, eval_str=True).parameters
        arguments += [Argument(each, written[each].annotation, None) for each in EDITABLE]
    told = inspect.getdoc(getattr(Memory, name)) or ""
    named = {argument.name: argument for argument in arguments}
    return Verb(name, told, name in CHANGING, named, signature.return_annotation, run)


def run_turn(
    memory: Memory, event: Event, *, scopes: str | Iterable[str] | None = None, budget: int = 2000
) -> TurnReport:
    """Run one turn: enter the scene of the event, remember its facts as the user's, and return what to put in a prompt.

    budget: the length of that in characters.
    """
    if effective_policy(event.payload, ChannelPolicy()).no_memory and event.facts:
        raise InvalidInput(f"{event.place}: facts", len(event.facts), "no_memory is set; leave out one of them")
    with memory.turn(event, scopes=scopes) as turn:
        brief = turn.brief(budget=budget)
        commit = turn.commit(event.facts, source="user") if event.facts else None
    return TurnReport(turn.visit, brief, commit)


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known of a situation. situation: as a verb takes it, with its features and its time.

    weights: feature key -> weight, heaviest first. label, declared_keys: those of `Situation`.
    """

    situation: Mapping[str, Any]
    weights: Mapping[str, float]
    label: str
    declared_keys: tuple[str, ...]


def run_observe(
    memory: Memory,
    *,
    source: str = "",
    payload: Mapping[str, Any] | None = None,
    text: str = "",
    tool: str = "",
    at: str | None = None,
) -> Observed:
    """Return the situation of a raw event, as `Memory.observe` does."""
    here = memory.observe(source=source, payload=payload, text=text, tool=tool, at=at)
    features = [{"kind": each.kind, "value": each.value, "weight": each.weight} for each in here.features]
    told = {"features": features, "at": None if here.at is None else here.at.isoformat()}
    return Observed(told, here.weights, here.label(), here.declared_keys)


# What answers with a value that holds no more than Python can use.
_OWN: dict[str, Callable[..., Any]] = {"turn": run_turn, "observe": run_observe}


def situation_of(value: object, config: Config, place: str = "situation") -> Situation:
    """Return the situation of a JSON object; raise InvalidInput naming the place when it is none.

    Its fields are those of `Situation.of`, and features, a list of objects with kind, value and, to weigh it, weight.

    >>> situation_of({"chan": "qq", "features": [{"kind": "mood", "value": "calm"}]}, Config()).weights
    {'chan:qq': 1.0, 'mood:calm': 0.4}
    """
    if not isinstance(value, dict):
        raise InvalidInput(place, value, 'give an object such as {"chan": "qq", "peer": "boss"}')
    known = (*SITUATION_FIELDS, "features", "at")
    for name in value:
        if name not in known:
            raise InvalidInput(f"{place}: {name}", value[name], f"known are {', '.join(known)}")
    plain = Situation.of(**{name: listed(value.get(name)) for name in SITUATION_FIELDS}, config=config)
    features = value.get("features") or []
    if not isinstance(features, list):
        raise InvalidInput(f"{place}: features", features, "give a list of objects with kind and value")
    return Situation(
        (*plain.given, *(_made(Feature, each, f"{place}: features[{i}]") for i, each in enumerate(features))),
        at=value.get("at"),
        config=config,
    )


SITUATION_FIELDS = ("chan", "peer", "peer_group", "tool", "topics", "part")


def _taken(argument: Argument, value: object, config: Config) -> object:
    """Return a value of JSON as the verb takes it; raise InvalidInput for one of another type."""
    name = argument.name
    kinds = members_of(argument.annotation)
    if value is None and (NoneType in kinds or object in kinds):
        return None
    if Situation in kinds:
        return situation_of(value, config, name)
    if Event in kinds:
        return event_of(value, name)
    if bytes in kinds:
        return _bytes_of(value, name)
    # JSON Schema has 8.0 for an integer too. From 2**53 on one float stands for several: an id would be another one's.
    if int in kinds and isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    item = item_of(argument.annotation)
    found = value if item is None else listed(value)
    if not any(_fits(found, kind) for kind in kinds):
        called = dict.fromkeys(_called(kind) for kind in kinds if not (kind is str and Iterable[str] in kinds))
        raise InvalidInput(name, value, f"give {' or '.join(called)}")
    if item in _ITEMS:
        assert isinstance(found, list)
        return [_ITEMS[item](each, f"{name}[{i}]") for i, each in enumerate(found)]
    return found


_EXACT = 2.0**53

# What a type is in JSON, and how people call that.
_IN_JSON: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    dt.datetime: ((str,), "a text"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    NoneType: ((NoneType,), "null"),
    object: ((object,), "a value"),
}


def _fits(value: object, kind: Any) -> bool:
    """Tell whether a value of JSON can be one of a type; what is in it is for the verb to say."""
    if item_of(kind) is not None:
        return isinstance(value, list) or (item_of(kind) is str and isinstance(value, str))
    if kind not in _IN_JSON:
        return isinstance(value, dict)
    found, _ = _IN_JSON[kind]
    return isinstance(value, found) and (not isinstance(value, bool) or kind in (bool, object))


def _called(kind: Any) -> str:
    if item_of(kind) is not None:
        return "a text or a list of texts" if item_of(kind) is str else "a list"
    _, name = _IN_JSON.get(kind, ((dict,), "an object"))
    return name


def members_of(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type there is.

    >>> members_of(int | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    return typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)


def item_of(annotation: Any) -> Any:
    """Return of what a list is that may be given, None where none may.

    >>> item_of(str | Iterable[int]), item_of(str)
    (<class 'int'>, None)
    """
    lists = [each for each in members_of(annotation) if typing.get_origin(each) in (collections.abc.Iterable, tuple)]
    return typing.get_args(lists[0])[0] if lists else None


def listed(value: object) -> Any:
    """Return a list that came as a text of JSON, which some clients make of it; all else as it is."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            found = json.loads(value)
        except ValueError:
            return value
        return found if isinstance(found, list) else value
    return value


def _bytes_of(value: object, name: str) -> bytes:
    try:
        return binascii.a2b_base64(value, strict_mode=True)  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        raise InvalidInput(name, value, f"give bytes in Base64: {error}") from None


def _made(kind: type, value: object, place: str) -> Any:
    """Return a value of the model, made of a JSON object that holds its fields."""
    if not isinstance(value, dict):
        raise InvalidInput(place, value, "give an object")
    known = tuple(inspect.signature(kind).parameters)
    for name in value:
        if name not in known:
            raise InvalidInput(f"{place}: {name}", value[name], f"known are {', '.join(known)}")
    try:
        return kind(**value)
    except TypeError as error:
        raise InvalidInput(place, value, f"{error}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error.argument}", error.value, error.reason) from None


_ITEMS: dict[Any, Callable[[object, str], Any]] = {
    Triple: triple_of,
    Part: functools.partial(_made, Part),
}
