"""The public face: its names and signatures change only on purpose.

After a change on purpose: python tests/test_public.py writes the snapshot anew; its diff belongs into the review.
"""

import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path

import graphmem
from graphmem.core import model

SNAPSHOT = Path(__file__).parent / "public_api.txt"


def public_face() -> str:
    lines = []
    for name in sorted(graphmem.__all__):
        member = getattr(graphmem, name)
        lines.append(f"{name}{signature(member)}" if not is_error(member) else f"{name}({bases(member)})")
        if inspect.isclass(member) and not is_error(member):
            lines += [f"    {line}" for line in members(member)]
    lines.append("")
    for name in sorted(model.__all__):
        member = getattr(model, name)
        if dataclasses.is_dataclass(member) and name not in graphmem.__all__:
            lines.append(f"{name}: {', '.join(attributes(member))}")
    return "\n".join(lines) + "\n"


def is_error(member: object) -> bool:
    return inspect.isclass(member) and issubclass(member, Exception)


def bases(member: type) -> str:
    return ", ".join(base.__name__ for base in member.__bases__)


def signature(member: object) -> str:
    """Names, kinds, types and plain defaults; other defaults have no lasting form."""
    found = inspect.signature(member, eval_str=True)
    parameters = [
        each
        if each.default is each.empty or isinstance(each.default, str | int | float | tuple | None)
        else each.replace(default=...)
        for each in found.parameters.values()
    ]
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", str(found.replace(parameters=parameters))).replace("Ellipsis", "...")


def members(owner: type) -> list[str]:
    found = []
    for name, member in inspect.getmembers_static(owner):
        if name.startswith("_"):
            continue
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        found.append(f"{name}{signature(plain)}" if inspect.isfunction(plain) else name)
    return found


def attributes(owner: type) -> list[str]:
    properties = [name for name, member in vars(owner).items() if isinstance(member, property)]
    return [field.name for field in dataclasses.fields(owner)] + properties


def test_the_public_face_is_the_one_in_the_snapshot():
    assert public_face() == SNAPSHOT.read_text("utf-8")


def test_every_public_name_has_a_docstring():
    for name in graphmem.__all__:
        member = getattr(graphmem, name)
        assert inspect.getdoc(member), name
        if name == "Memory":
            assert all(inspect.getdoc(getattr(member, verb)) for verb in dir(member) if not verb.startswith("_"))


def test_type_checkers_see_the_names_that_are_loaded_late():
    source = Path(graphmem.__file__).read_text("utf-8")

    for name, home in graphmem._HOMES.items():
        assert f"    from {home} import {name} as {name}\n" in source


def test_the_types_of_what_is_public_can_be_read_while_it_runs():
    """Frameworks make tools for agents of them."""
    for owner in [getattr(home, name) for home in (graphmem, model) for name in home.__all__]:
        typing.get_type_hints(owner)
        for name, member in inspect.getmembers(owner, inspect.isroutine):
            if not name.startswith("_"):
                typing.get_type_hints(member)


def test_every_value_is_found_in_the_module_of_values():
    source = Path(model.__file__).read_text("utf-8")

    for path in Path(model.__file__).parent.glob("*.py"):
        subject = importlib.import_module(f"graphmem.core.model.{path.stem}")
        for name, member in vars(subject).items():
            if getattr(member, "__module__", "") == subject.__name__ and not name.startswith("_"):
                assert getattr(model, name) is member
                assert f"    from {subject.__name__} import {name} as {name}\n" in source


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(graphmem, "Memroy")


def test_importing_graphmem_loads_nothing_heavy_and_touches_nothing(tmp_path):
    heavy = {"numpy", "networkx", "sqlite_utils", "rich", "click", "asyncio"}
    script = f"import sys, graphmem; graphmem.Memory; print(sorted({heavy} & sys.modules.keys()))"

    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert (ran.stdout, ran.stderr) == ("[]\n", "")
    assert list(tmp_path.iterdir()) == []


if __name__ == "__main__":
    SNAPSHOT.write_text(public_face(), "utf-8")
