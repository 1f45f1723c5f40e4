"""The verbs by name, with arguments and answers in JSON: what MCP, HTTP and hooks are made of."""

import inspect
import json

import jsonschema
import pytest
from contract import CALLS, HERE, REFUSED
from test_store import NO_VERBS, fill

from graphmem import GraphmemError, InvalidInput, Memory, Situation
from graphmem.errors import NotFound, StoreFailed
from graphmem.surfaces.schemas import CHOICES, answer_schema, arguments_schema
from graphmem.surfaces.verbs import CHANGING, READING, verb_of
from graphmem.surfaces.wire import refusal_of, to_json

# They name files of the machine, or are of Python alone.
ELSEWHERE = {
    "export_to",
    "export_tree",
    "graph",
    "harvest",
    "import_from",
    "picture",
    "replay",
    "settle_entities",
    "sync_tree",
}
ELSEWHERE |= NO_VERBS - {"embed", "observe", "run_jobs", "turn"}


@pytest.fixture
def filled(memory):
    fill(memory)
    return memory


def test_each_public_verb_is_told_or_left_out_on_purpose():
    assert not set(READING) & set(CHANGING)
    public = {name for name, _ in inspect.getmembers(Memory) if not name.startswith("_")}
    assert public - ELSEWHERE == {*READING, *CHANGING} == {*CALLS, "embed"}


@pytest.mark.parametrize("name", CALLS)
def test_the_schemas_tell_what_a_verb_takes_and_answers(filled, name):
    verb = verb_of(name)
    jsonschema.Draft202012Validator.check_schema(answer_schema(verb))
    jsonschema.validate(CALLS[name], arguments_schema(verb))

    answer = json.loads(to_json(verb(filled, CALLS[name])))

    jsonschema.validate(answer, answer_schema(verb))


@pytest.mark.parametrize(("name", "arguments", "kind", "argument"), REFUSED)
def test_what_cannot_be_used_is_refused_by_name(filled, name, arguments, kind, argument):
    with pytest.raises(GraphmemError) as caught:
        verb_of(name)(filled, arguments)

    told = refusal_of(caught.value)["error"]
    assert (told["type"], told.get("argument", "")) == (kind, argument)


WRONG = [
    None,
    True,
    0,
    -1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    10**30,
    1.5,
    2.0**53,
    1e300,
    "",
    "x",
    [],
    ["x"],
    [1],
    [None],
    {},
    {"a": 1},
    [{}],
]


@pytest.mark.parametrize("name", CALLS)
def test_whatever_is_given_in_json_is_taken_or_refused(filled, name):
    verb = verb_of(name)
    schemas = arguments_schema(verb)["properties"]
    for argument, schema in schemas.items():
        for value in WRONG:
            try:
                verb(filled, {**CALLS[name], argument: value})
            except StoreFailed:
                pytest.fail(f"{argument} = {value!r} reached the file")
            except GraphmemError:
                continue
            assert jsonschema.Draft202012Validator(schema).is_valid(value), f"{argument} = {value!r} was taken"


OFFERED = [(name, argument, known) for name in CHOICES if name != "Part" for argument, known in CHOICES[name].items()]


@pytest.mark.parametrize(("name", "argument", "known"), OFFERED)
def test_the_words_that_are_offered_are_those_that_are_taken(filled, name, argument, known):
    schema = arguments_schema(verb_of(name))["properties"][argument]
    assert list(known) in [form.get("enum") or form.get("items", {}).get("enum") for form in of(schema)]
    with pytest.raises(InvalidInput) as refused:
        verb_of(name)(filled, {**CALLS[name], argument: "nonsense"})

    assert refused.value.argument == argument
    assert all(word in refused.value.reason for word in known)
    at_fault = set()
    for word in known:
        try:
            verb_of(name)(filled, {**CALLS[name], argument: word})
        except GraphmemError as error:
            at_fault.add(getattr(error, "argument", ""))
    assert argument not in at_fault


def of(schema):
    return schema.get("anyOf", [schema])


def test_fields_of_values_are_chosen_from_words_too():
    outcome = arguments_schema(verb_of("mirror"))["properties"]["parts"]["items"]["properties"]["outcome"]
    assert outcome["enum"] == ["", "done", "failed"]


def test_an_unknown_verb_is_told_what_there_is():
    with pytest.raises(InvalidInput, match="recall_by_scene"):
        verb_of("recal")


NUMBERS = [2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63, 10**30, 10**5000, -(10**30), 2.0**53, 2.0**63, 1e300]


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        *((name, "note_id") for name in ("inspect", "forget", "edit_note", "approve", "reject", "restore_note")),
        ("forget_incident", "incident_id"), ("delete_relation", "relation_id"), ("undo", "operation"), ("part", "part"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{float(min(number, 1e300)):.4g}-{number % 2}")
def test_a_number_that_none_of_ours_has_is_not_found_or_refused(filled, name, argument, number):
    with pytest.raises((NotFound, InvalidInput)) as caught:
        verb_of(name)(filled, {**CALLS.get(name, {}), argument: number})

    assert str(caught.value)


def test_a_float_that_stands_for_several_numbers_is_none_of_them(filled):
    with pytest.raises(InvalidInput, match="give a whole number"):
        verb_of("inspect")(filled, {"note_id": float(2**53 + 1)})


def test_lists_may_come_as_texts_of_json(filled):
    asked = verb_of("recall_by_scene")
    assert asked(filled, {"keys": '["chan:qq"]'}) == asked(filled, {"keys": ["chan:qq"]})
    assert asked(filled, {"keys": "chan:qq"}) == asked(filled, {"keys": ["chan:qq"]})
    told, listed = ({"chan": "qq", "topics": topics} for topics in ('["a", "b"]', ["a", "b"]))
    asked = verb_of("match_scenes")
    assert asked(filled, {"situation": told}) == asked(filled, {"situation": listed})


def test_a_whole_number_may_come_as_a_float(filled):
    assert verb_of("notes")(filled, {"limit": 1.0}) == filled.notes(limit=1)


def test_what_is_observed_can_be_given_back(filled):
    seen = verb_of("observe")(filled, CALLS["observe"])

    told = json.loads(to_json(seen))
    assert verb_of("match_scenes")(filled, {"situation": told["situation"]}) == filled.match_scenes(
        filled.observe(**CALLS["observe"])
    )


def test_a_situation_is_weighed_by_the_settings_of_the_memory(filled):
    assert verb_of("match_scenes")(filled, {"situation": HERE}) == filled.match_scenes(
        Situation.of(**HERE, config=filled.config)
    )


@pytest.mark.parametrize(
    ("name", "argument"), [("inspect", "note_id"), ("undo", "operation"), ("tag_scene", "relation_ids")]
)
def test_rows_are_numbered_from_one(filled, name, argument):
    given = {**CALLS[name], argument: [0] if argument.endswith("s") else 0}
    assert not jsonschema.Draft202012Validator(arguments_schema(verb_of(name))).is_valid(given)
    with pytest.raises(InvalidInput, match=argument):
        verb_of(name)(filled, given)


def test_a_list_of_texts_is_asked_for_in_few_words(filled):
    with pytest.raises(InvalidInput, match=r"give a text or a list of texts$"):
        verb_of("remember")(filled, {"title": "Tea", "labels": {"x": 1}})
