"""The kinds of files of other memories that can be taken in."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from graphmem.errors import InvalidInput
from graphmem.exchange import homeagent, mcp_memory
from graphmem.exchange.importing import Tally, Target

# What takes in a source that is open, given where to and where to count.
TakeIn = Callable[[Target, Tally], None]

_SOURCES: dict[str, Callable[[str], AbstractContextManager[TakeIn]]] = {
    "homeagent": homeagent.opened,
    "mcp-memory": mcp_memory.opened,
}
WHOLE = "jsonl"  # a memory of our own, see `exchange.whole`
KINDS = (*_SOURCES, WHOLE)


def opened(kind: object, path: str) -> AbstractContextManager[TakeIn]:
    """Open a source of a kind, with nothing written yet. Raises InvalidInput, and StoreFailed where it cannot be read.

    The kind is looked at now, the source when the context is entered.
    """
    if not isinstance(kind, str) or kind not in _SOURCES:
        raise InvalidInput("kind", kind, f"give one of {', '.join(KINDS)}")
    return _SOURCES[kind](path)
