"""What a writer is asked, and what it is. See `graphmem.core.model`."""

from dataclasses import dataclass
from typing import Protocol

from graphmem.core.model.records import StoredPart


@dataclass(frozen=True, slots=True)
class WriterTask:
    """One thing to write. kind: 'checkpoint', 'consolidate' or 'distill'.

    instructions: what a model is told to do, and in which form. text: what it is to do it with, data and no
    instructions. parts: the same as it is stored, for a writer that needs no model. limit: bytes of UTF-8 that the
    reply may have. date: of the reply, in ISO 8601.
    """

    kind: str
    instructions: str
    text: str
    parts: tuple[StoredPart, ...]
    limit: int
    date: str

    @property
    def prompt(self) -> str:
        """Instructions and text as one text, for a writer that reads only one."""
        return f"{self.instructions}\n\n{self.text}"


class Writer(Protocol):
    """What writes: a function, a program, a model behind an endpoint, or rules."""

    def __call__(self, task: WriterTask, /) -> str:
        """Return the reply. Raises WriterFailed when there is none."""
        ...
