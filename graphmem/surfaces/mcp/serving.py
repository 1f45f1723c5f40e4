"""Starting the server: standard output is kept for the protocol first, and the memory is opened beside all else."""

import gc
import importlib.util
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmem.errors import InvalidInput
from graphmem.late import late
from graphmem.surfaces.mcp.desk import PLAIN_INSTRUCTIONS, Desk
from graphmem.surfaces.mcp.stdio import Wire

if TYPE_CHECKING:
    from graphmem.surfaces import schemas
    from graphmem.surfaces.mcp import server, tools
else:
    schemas = late("graphmem.surfaces.schemas")
    server = late("graphmem.surfaces.mcp.server")
    tools = late("graphmem.surfaces.mcp.tools")

PORT = 8766
_LONGEST_NAME = 64  # characters of the name of a tool, as clients take it
_OPENING = 0.3  # seconds that the first answer may wait for a memory that is slow to open, as one that is migrated


def check(prefix: str) -> None:
    """Raise InvalidInput for a prefix that no client takes, and where the package of the extra is not installed."""
    longest = _LONGEST_NAME - max(len(tool.name) for tool in tools.own_tools())
    if not re.fullmatch(r"[A-Za-z0-9_-]*", prefix) or len(prefix) > longest:
        raise InvalidInput("prefix", prefix, f"give at most {longest} letters from A to Z, digits, - and _")
    if importlib.util.find_spec("mcp") is None:
        raise InvalidInput("mcp", None, "serving it needs the package mcp: pip install 'graphmem[mcp]'")


def serve_stdio(desk: Desk, *, prefix: str = "") -> None:
    """Serve the one client on standard input and output, until it goes."""
    try:
        wire = Wire()
    except OSError:  # both were closed before it began
        return
    told: list[str] = []
    opening = threading.Thread(target=lambda: told.append(desk.instructions()), daemon=True)
    opening.start()
    gc.disable()  # hundreds of classes are made, and none of them is garbage
    schemas.defer_models()
    built = server.build_server(desk, tools.own_tools(), prefix=prefix)
    gc.enable()
    opening.join(_OPENING)
    built.instructions = told[0] if told else f"{PLAIN_INSTRUCTIONS}\n\n(The memory is still being opened.)"
    try:
        server.run_stdio(built, wire)
    finally:
        desk.close()


def serve_http(desk: Desk, ready: Callable[[str], object], *, port: int = PORT, prefix: str = "") -> None:
    """Serve streamable HTTP on the loopback interface, until the process is told to end; ready: is told the address."""
    built = server.build_server(desk, tools.own_tools(), prefix=prefix)
    built.instructions = desk.instructions()
    try:
        server.run_http(built, port, ready)
    finally:
        desk.close()
