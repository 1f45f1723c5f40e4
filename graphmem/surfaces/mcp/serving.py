"""Starting the server: standard output is kept for the protocol first, and the memory is opened beside all else."""

import gc
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmem.errors import GraphmemError, InvalidInput
from graphmem.late import late
from graphmem.surfaces.mcp.desk import Desk
from graphmem.surfaces.mcp.stdio import Wire

if TYPE_CHECKING:
    from graphmem.surfaces.mcp import profiles, server
else:
    profiles = late("graphmem.surfaces.mcp.profiles")
    server = late("graphmem.surfaces.mcp.server")

PORT = 8766
_LONGEST_NAME = 64  # characters of the name of a tool, as clients take it
_OPENING = 0.3  # seconds that the first answer may wait for a memory that is slow to open, as one that is migrated


def check(prefix: str, profile: str) -> None:
    """Raise InvalidInput for a prefix that no client takes."""
    longest = _LONGEST_NAME - max(len(tool.name) for tool in profiles.PROFILES[profile].tools())
    if not re.fullmatch(r"[A-Za-z0-9_-]*", prefix) or len(prefix) > longest:
        raise InvalidInput("prefix", prefix, f"give at most {longest} letters from A to Z, digits, - and _")


def serve_stdio(desk: Desk, *, prefix: str = "", profile: str = "graphmem") -> None:
    """Serve the one client on standard input and output, until it goes."""
    try:
        wire = Wire()
    except OSError:  # both were closed before it began
        return
    told: list[str] = []
    opening = threading.Thread(target=lambda: told.append(_rules(desk)), daemon=True)
    opening.start()
    gc.disable()  # hundreds of classes are made, and none of them is garbage
    _defer_models()
    built = server.build_server(desk, prefix=prefix, profile=profile)
    gc.enable()
    opening.join(_OPENING)
    server.instruct(built, told[0] if told else "(The memory is still being opened.)")
    try:
        server.run_stdio(built, wire)
    finally:
        desk.close()


def _defer_models() -> None:
    """Let pydantic build models when they are first used; the SDK of MCP has some hundred, most of them never used.

    It holds for models that are defined from now on, in the whole process, so it is for a process that serves alone.
    """
    import pydantic

    pydantic.BaseModel.model_config["defer_build"] = True


def serve_http(
    desk: Desk, ready: Callable[[str], object], *, port: int = PORT, prefix: str = "", profile: str = "graphmem"
) -> None:
    """Serve streamable HTTP on the loopback interface, until the process is told to end; ready: is told the address."""
    built = server.build_server(desk, prefix=prefix, profile=profile)

    def begin(url: str) -> None:
        server.instruct(built, _rules(desk))
        ready(url)

    try:
        server.run_http(built, port, begin)
    finally:
        desk.close()


def _rules(desk: Desk) -> str:
    """Return what binds, or why that is not known; each tool tells it then too, and one that is busy may open later."""
    try:
        return desk.rules()
    except GraphmemError as error:
        return f"(The memory cannot be used now: {error})"
