"""The schemas of the tools of MCP: they change only on purpose, and with the types that they are made of.

After a change on purpose: python tests/test_mcp_schemas.py writes them anew; their diff belongs into the review.
"""

import json
from pathlib import Path

import graphmem.surfaces.mcp
from graphmem.surfaces.mcp.tool_schemas import tool_schemas
from graphmem.surfaces.mcp.tools import OFFERED, own_tools

SHIPPED = Path(graphmem.surfaces.mcp.__file__).with_name("tools.json")


def test_what_is_shipped_is_what_the_types_say():
    assert json.loads(SHIPPED.read_text("utf-8")) == tool_schemas()


def test_each_tool_has_schemas():
    assert [tool.name for tool in own_tools()] == [*OFFERED] == [*tool_schemas()]


if __name__ == "__main__":
    SHIPPED.write_text(json.dumps(tool_schemas(), indent=1, ensure_ascii=False) + "\n", "utf-8")
