"""What a writer is asked, and what it is. See `graphmem.core.model`."""

from dataclasses import dataclass
from typing import Protocol

from graphmem.core.model.notes import Note, Proposed
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


JOB_STATES = ("queued", "asked", "answered", "done", "failed")


@dataclass(frozen=True, slots=True)
class Job:
    """Something that is to be written, is being written, or was.

    kind: 'checkpoint', 'consolidate' or 'distill'. session: '' for a kind that is of a scope, and where the session is
    gone. cause: 'manual', 'idle' or 'compaction'. state: queued; asked, a writer is at work until lease_until;
    answered, the reply waits to be kept; done; failed, and why in `error`. attempts: how often a writer was asked.
    parts: how many it reads or has read. note_id: of the checkpoint that came of it; of 'consolidate' the last one that
    a writer has read.
    """

    id: int
    kind: str
    session: str
    scope: str
    cause: str
    state: str
    attempts: int
    parts: int
    note_id: int | None
    error: str
    lease_until: str | None
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """What a checkpoint of a session came to.

    state: written; nothing (nothing new was said); short (too few turns for an idle session); queued; busy (another is
    at work on it); suppressed (it failed too often in a row); own (it is the session of a writer); gone (the session
    was removed meanwhile); failed, and why in `error`. notes: the checkpoints, one for each part of the session that a
    writer reads at once. proposed: what became of what it found worth remembering. left: parts that are not digested
    yet.
    """

    session: str
    state: str
    notes: tuple[Note, ...] = ()
    proposed: tuple[Proposed, ...] = ()
    left: int = 0
    error: str = ""
    remarks: tuple[str, ...] = ()
