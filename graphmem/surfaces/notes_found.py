"""The notes behind hits: a hit tells what answers, a note all that is known of it."""

from collections.abc import Iterable, Sequence

from graphmem.core.model import Hit, Note
from graphmem.memory import Memory


def notes_of(
    memory: Memory,
    hits: Sequence[Hit],
    *,
    kinds: Iterable[str] = (),
    statuses: Iterable[str] = (),
    scope: str = "all",
) -> list[tuple[Hit, Note]]:
    """Return the notes that were found, each with its hit, in one read.

    kinds, statuses: only of these, all when empty. scope: only what is of it. What was removed since it was found is
    left out.
    """
    ids = [hit.id for hit in hits if isinstance(hit.id, int)]
    found = memory.notes(note_ids=ids, kinds=kinds, statuses=statuses, scopes=[scope], exact=True, limit=len(ids))
    known = {note.id: note for note in found}
    return [(hit, known[hit.id]) for hit in hits if isinstance(hit.id, int) and hit.id in known]
