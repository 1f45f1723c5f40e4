"""The document that the server gives of itself is true: what it says can be asked, and nothing else is answered."""

import contextlib
import json
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest
import schemathesis
from contract import CALLS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.python.asgi import shutdown_lifespans
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    status_code_conformance,
)
from test_http import HOST, MAY_WRITE, PORT, TOKEN, served
from test_store import fill

from graphmem import Config, Memory
from graphmem.surfaces.examples import examples_of
from graphmem.surfaces.http.app import create_app
from graphmem.surfaces.http.openapi import document
from graphmem.surfaces.schemas import arguments_schema
from graphmem.surfaces.verbs import CHANGING, READING, verb_of

DOCUMENT = json.loads(document(cookie="graphmem-1", private=False, prefix=Config().route_prefix))
OPERATIONS = {
    told["operationId"]: (path, method, told)
    for path, methods in DOCUMENT["paths"].items()
    for method, told in methods.items()
}


def nodes(value):
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(inner)


def resolved(reference):
    found = DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


def test_each_verb_is_told_with_the_methods_that_it_has():
    told = {path.removeprefix("/api/"): set(methods) for path, methods in DOCUMENT["paths"].items() if "/api/" in path}
    told = {name: methods for name, methods in told.items() if "/" not in name}

    assert told == {**{name: {"get", "post"} for name in READING}, **{name: {"post"} for name in CHANGING}}


def test_all_that_is_pointed_at_is_there():
    pointed = {node["$ref"] for node in nodes(DOCUMENT) if isinstance(node, dict) and "$ref" in node}

    assert pointed
    assert all(resolved(reference) for reference in pointed)


def test_each_schema_is_one():
    schemas = [node["schema"] for node in nodes(DOCUMENT) if isinstance(node, dict) and "responses" not in node
               and isinstance(node.get("schema"), dict)]  # fmt: skip
    for schema in [*schemas, *DOCUMENT["components"]["schemas"].values()]:
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", CALLS)
def test_examples_can_be_used(name):
    for example in examples_of(verb_of(name)):
        jsonschema.validate(example, arguments_schema(verb_of(name)))


def test_the_document_is_served_as_the_server_is(memory):
    with served(memory) as client, served(memory, private=True) as closed:
        told, private = (each.get("/openapi.json").json() for each in (client, closed))

    assert told["components"]["securitySchemes"]["cookie"]["name"] == f"graphmem-{PORT}"
    assert told["paths"]["/api/overview"]["get"]["security"] == []
    assert private["paths"]["/api/overview"]["get"]["security"] == [{"token": []}, {"cookie": []}]


def test_without_pages_the_ledger_is_not_told(tmp_path):
    with Memory.open(tmp_path / "m.db", config=Config(ui=False)) as memory, served(memory) as client:
        told = client.get("/openapi.json").json()["paths"]

    assert not [path for path in told if path.startswith(Config().route_prefix)]


# ---- what can be asked by it, drawn by schemathesis


def answered_as_told(context, response, case):
    """Schemathesis itself takes tuples of Draft 2020-12 for those of older drafts."""
    responses = DOCUMENT["paths"][case.operation.path][case.method.lower()]["responses"]
    told = responses[str(response.status_code)]
    told = resolved(told["$ref"]) if "$ref" in told else told
    if "content" in told:
        kind = response.headers["content-type"][0].partition(";")[0]
        schema = {**told["content"][kind]["schema"], "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator(schema).validate(response.json())


def wrong_data_is_refused(context, response, case):
    """In a query all is text, which schemathesis forgets: `true` is one of a list of texts, 3.0 a whole number."""
    given = parse_qs(urlsplit(response.request.url).query, keep_blank_values=True)
    if case.method == "GET" and is_right_as_text(case.operation.definition.raw["parameters"], given):
        return None
    return negative_data_rejection(context, response, case)


def is_right_as_text(told, given):
    """Tell whether texts of a query may be what is told of its parameters."""
    schemas = {each["name"]: each["schema"] for each in told if "schema" in each}  # others are JSON
    missing = {each["name"] for each in told if each.get("required")} - given.keys()
    return (
        not missing
        and given.keys() <= schemas.keys()
        and all(any(map(validator_of(schemas[name]).is_valid, readings(texts))) for name, texts in given.items())
    )


def validator_of(schema):
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def readings(texts):
    """Yield what the values of a parameter may mean: each is text, and one alone may be a number or a flag too."""
    yield texts
    if len(texts) == 1:
        yield texts[0]
        with contextlib.suppress(ValueError):
            yield json.loads(texts[0])


def test_texts_of_a_query_are_right_as_they_are_read():
    told = [each for each in OPERATIONS["get_ledger"][2]["parameters"] if "$ref" not in each]

    assert is_right_as_text(told, {"limit": ["122511332211288.0"], "scopes": ["true"]})
    assert not is_right_as_text(told, {"limit": ["1.5"]})
    assert not is_right_as_text(told, {"limit": ["many"]})
    assert not is_right_as_text(told, {"nothing": ["1"]})


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    answered_as_told,
]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """What schemathesis makes of the document, over a memory that holds something of everything."""
    plain = json.loads(json.dumps(DOCUMENT))
    for methods in plain["paths"].values():
        for told in methods.values():  # any text there is the folder of no project: nothing else would be tried
            told["parameters"] = [each for each in told.get("parameters", []) if "$ref" not in each]
    with Memory.open(tmp_path_factory.mktemp("drawn") / "memory.db") as memory:
        fill(memory)
        schema = schemathesis.openapi.from_dict(plain)
        schema.app = create_app(memory, port=PORT, token=TOKEN)
        yield {each.ok().definition.raw["operationId"]: each.ok() for each in schema.get_all_operations()}
        shutdown_lifespans()


def draw(operation, examples):
    for mode, checks in (
        (GenerationMode.POSITIVE, CHECKS),
        (GenerationMode.NEGATIVE, [*CHECKS, wrong_data_is_refused]),
    ):
        with contextlib.suppress(Unsatisfiable):  # nothing can be wrong where nothing is taken
            draw_mode(operation.as_strategy(generation_mode=mode), checks, examples)


def draw_mode(cases, checks, examples):
    @settings(max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(case=cases)
    def ask(case):
        case.call_and_validate(base_url=f"http://{HOST}", headers=MAY_WRITE, checks=checks)

    ask()


ENDING = [name for name in OPERATIONS if name != "events"]


@pytest.mark.parametrize("name", ENDING)
def test_what_is_told_can_be_asked(drawn, name):
    draw(drawn[name], 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDING)
def test_what_is_told_can_be_asked_at_length(drawn, name):
    draw(drawn[name], 60)
