"""The kinds of files of other memories that can be taken in."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from graphmem.errors import InvalidInput
from graphmem.exchange import folder, homeagent, ledger, mcp_memory, promemory
from graphmem.exchange.importing import Tally, Target

# What takes in a source that is open, given where to and where to count.
TakeIn = Callable[[Target, Tally], None]

_SOURCES: dict[str, Callable[[str], AbstractContextManager[TakeIn]]] = {
    "homeagent": homeagent.opened,
    "mcp-memory": mcp_memory.opened,
    "ledger": ledger.opened,
    "promemory": promemory.opened,
    "tree": folder.opened,
}
# A whole memory of our own, which takes no part in one that is there: `exchange.whole` reads it.
WHOLE = "jsonl"
KINDS = (*_SOURCES, WHOLE)


def opened(kind: object, path: str) -> AbstractContextManager[TakeIn]:
    """Open a source of a kind, with nothing written yet. Raises InvalidInput, and StoreFailed where it cannot be read.

    The kind is looked at now, the source when the context is entered.
    """
    if not isinstance(kind, str) or kind not in _SOURCES:
        raise InvalidInput("kind", kind, f"give one of {', '.join(KINDS)}")
    return _SOURCES[kind](path)
