"""Examples of calls, taken from the docstrings of verbs, where they are run as tests."""

import ast
import doctest
import inspect
from collections.abc import Iterator
from typing import Any

from graphmem.core.model import Part, Triple
from graphmem.core.situations import Situation
from graphmem.surfaces.verbs import Verb

_MADE = {kind.__name__: kind for kind in (Part, Triple, Situation.of)}


def plain(told: str) -> str:
    """Return a docstring without its examples.

    >>> plain("Remember it.\\n\\n>>> 1 + 1\\n2\\n")
    'Remember it.'
    """
    return told.partition("\n>>> ")[0].strip()


def examples_of(verb: Verb) -> list[dict[str, Any]]:
    """Return arguments, as they are in JSON, with which the docstring of a verb calls it; none where they are made up.

    >>> from graphmem.surfaces.verbs import verb_of
    >>> examples_of(verb_of("remember"))[-1]
    {'title': 'Never force push', 'kind': 'rule'}
    """
    return [
        found
        for example in doctest.DocTestParser().get_examples(verb.told)
        for found in _calls(verb, ast.parse(example.source))
    ]


def _calls(verb: Verb, tree: ast.AST) -> Iterator[dict[str, Any]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == verb.name:
            try:
                yield _named(node, tuple(verb.arguments))
            except ValueError:  # made of a variable
                continue


def _named(call: ast.Call, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a call by their names."""
    given = zip(names, call.args, strict=False)
    named = ((each.arg, each.value) for each in call.keywords)
    return {name: _value(node) for name, node in (*given, *named) if name is not None}


def _value(node: ast.expr) -> Any:
    """Return the value of a literal, or of a call that makes a value of the model; raise ValueError for another."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(each) for each in node.elts]
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in _MADE:
            raise ValueError(name)
        return _named(node, tuple(inspect.signature(_MADE[name]).parameters))
    return ast.literal_eval(node)
