"""graphmem: a scene-graph memory for AI agents, in one SQLite file."""

from graphmem.config import Config
from graphmem.core.keys import entity_key, normalize_key
from graphmem.core.model import Triple
from graphmem.core.situations import Feature, Situation, similarity
from graphmem.errors import (
    Conflict,
    GraphmemError,
    InvalidInput,
    NotFound,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
)
from graphmem.memory import AsyncMemory, Memory

__version__ = "0.1.0"

__all__ = [
    "AsyncMemory",
    "Config",
    "Conflict",
    "Feature",
    "GraphmemError",
    "InvalidInput",
    "Memory",
    "NotFound",
    "SchemaTooNew",
    "Situation",
    "StoreBusy",
    "StoreCorrupt",
    "StoreFailed",
    "Triple",
    "entity_key",
    "normalize_key",
    "similarity",
]
