"""Notes, where they come from, and what became of them. See `graphmem.core.model`."""

from dataclasses import dataclass

from graphmem.core.model.planted import TreeConflict

LONGEST_TITLE = 500
MOST_TRIGGERS = 8
# What `edit_note` changes.
EDITABLE = ("title", "body", "kind", "slot", "labels", "load_when", "summary", "highlight", "pinned", "reason")


@dataclass(frozen=True, slots=True)
class Provenance:
    """One thing that was done to a note, and by whom. seq 0 is its origin, which never changes.

    act: remember, approve, reject, forget, restore or edit. actor: the source that did it. place: the folder it was
    done in. session, message: of the conversation. quote: what the user said that backs it.
    """

    seq: int
    act: str
    actor: str
    place: str
    session: str
    message: str
    quote: str
    reason: str
    at: str


@dataclass(frozen=True, slots=True)
class Note:
    """A curated memory: a fact, a lesson, a rule. slot: what it is about, one live note of a scope each.

    status: live, proposed, archived, superseded or forgotten (rejected, or purged). seen: how often the same was
    remembered. superseded_by: the id of the note that took its slot. created_at, updated_at: for when it was told
    first, and last. load_when: features and words that call it to mind. reason: why it is kept, as of now; why it was
    written is in its origin.
    """

    id: int
    kind: str
    title: str
    body: str
    slot: str
    labels: tuple[str, ...]
    load_when: tuple[str, ...]
    summary: str
    highlight: str
    scope: str
    status: str
    pinned: bool
    source: str
    reason: str
    seen: int
    created_at: str
    updated_at: str
    superseded_by: int | None
    origin: Provenance


@dataclass(frozen=True, slots=True)
class RememberReport:
    """What remembering came to: the note; whether it is new; the ids of the notes whose slot it took.

    resolved: the ids of the incidents that a lesson resolved.
    """

    note: Note
    created: bool
    superseded: tuple[int, ...] = ()
    resolved: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """What became of something that a model proposed to remember.

    outcome: accepted, duplicate or refused; reason: why, '' where it was accepted; nothing of a secret is shown. score:
    how like it the nearest known text is, 0 to 1. note: the one that was written, or that says the same.
    """

    title: str
    body: str
    kind: str
    outcome: str
    reason: str
    score: float
    note: Note | None


@dataclass(frozen=True, slots=True)
class NoteEditReport:
    """What an edit made of a note. operation: its number, for undo; None where it was so already."""

    note: Note
    operation: int | None


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What forgetting did. hard: the note is gone for good. remarks: what could not be cleaned of the file."""

    id: int
    title: str
    hard: bool
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteDetail:
    """Everything about a note. acts: its origin, then what was done to it. versions: what had its slot before, latest
    first. scenes: keys of those that hold it. uses: how often recalls returned it, last_used: when last.

    overridden_by: the note of a project that goes before it there, None where there is none. sources: ids of the notes
    and checkpoints that it was made of. source_gone: it was made of a session that is not mirrored any more.
    """

    note: Note
    acts: tuple[Provenance, ...]
    versions: tuple[Note, ...]
    scenes: tuple[str, ...]
    uses: int
    last_used: str | None
    overridden_by: int | None
    sources: tuple[int, ...] = ()
    source_gone: bool = False


@dataclass(frozen=True, slots=True)
class NoteCount:
    """How many notes of a scope, a kind and a status there are."""

    scope: str
    kind: str
    status: str
    notes: int


@dataclass(frozen=True, slots=True)
class Route:
    """What calls notes to mind, with their ids."""

    load_when: str
    notes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of the ledger. counts: of all notes. rules: those in force. proposals: what waits for a person.

    routes: which triggers lead where. repeated: ids of live notes of one scope that say the same title. stale: ids of
    live notes that nobody told or used for 180 days, the oldest first; rules and pinned notes are never stale.
    overridden: pairs of ids, a user's note and the project's one that goes before it there. conflicts: files of trees
    that changed while their notes did.
    """

    counts: tuple[NoteCount, ...]
    rules: tuple[Note, ...]
    proposals: tuple[Note, ...]
    routes: tuple[Route, ...]
    repeated: tuple[tuple[int, ...], ...]
    stale: tuple[int, ...]
    overridden: tuple[tuple[int, int], ...]
    conflicts: tuple[TreeConflict, ...]
