"""Embeddings: texts as vectors whose cosine tells how close their meanings are, and what makes them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from graphmem.core import tokens
else:
    tokens = late("graphmem.core.tokens")

_LONGEST_FINGERPRINT = 100


class Embedder(Protocol):
    """What turns texts into vectors.

    fingerprint: names the model, its version and whatever else changes its vectors; those of two fingerprints are never
    compared. dimensions: the length of a vector.
    """

    @property
    def fingerprint(self) -> str:
        """The name of this way to make vectors, at most 100 characters."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> "ArrayLike":
        """Return one vector for each text (n x dimensions); any thread may call it."""
        ...


def check_embedder(embedder: Embedder) -> None:
    """Raise InvalidInput for what cannot be used as an embedder."""
    name = getattr(embedder, "fingerprint", None)
    if not isinstance(name, str) or not 0 < len(name.strip()) <= _LONGEST_FINGERPRINT:
        raise InvalidInput("embedder", embedder, "its fingerprint has to be a text of 1 to 100 characters")
    size = getattr(embedder, "dimensions", None)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidInput("embedder", embedder, "its dimensions have to be a whole number of at least 1")


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """Return the vectors of texts (n x dimensions), of unit length; all zeros where a text has no direction.

    Raises InvalidInput when the embedder returns another shape, or no numbers.
    """
    import numpy as np  # takes 60 ms: only who embeds pays it

    shape = (len(texts), embedder.dimensions)
    made = np.asarray(embedder.embed(texts) if texts else np.empty(shape), dtype=np.float32)
    if made.shape != shape:
        raise InvalidInput("embedder", embedder.fingerprint, f"returned vectors of shape {made.shape}, not {shape}")
    made = np.nan_to_num(made, nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.linalg.norm(made, axis=1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(made, lengths, out=np.zeros_like(made), where=lengths > 0)
    return unit


def embedded_passages(head: str, body: str) -> list[str]:
    """Return the texts whose vectors stand for a text, one for each passage of the body; the first one with the head.

    >>> embedded_passages("editor", "vim")
    ['editor\\nvim']
    """
    first, *others = tokens.pieces_of(body)
    return [f"{head}\n{first}".strip(), *others]
