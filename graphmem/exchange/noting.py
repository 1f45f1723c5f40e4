"""Notes that come in from other memories."""

import sqlite3
from dataclasses import dataclass

from graphmem.core.keys import clean_text
from graphmem.core.model import Provenance
from graphmem.core.model.notes import LONGEST_TITLE, MOST_TRIGGERS
from graphmem.core.redaction import refuse_secrets
from graphmem.errors import InvalidInput, SecretRefused
from graphmem.exchange.importing import Tally, Target
from graphmem.records import drafts, notes

_SHORTENED = 200  # characters of a title that is too long: all of it stands in the body then
_BINDS = "notes that bind wait for a person: 'graphmem notes --status proposed' lists them, 'graphmem approve' decides"
_PINNED = "{} was pinned there; 'graphmem notes edit' pins it here, which is for a person to do"


@dataclass(frozen=True, slots=True)
class ForeignNote:
    """A note of another memory, with its origin there. at, updated_at: as stored, '' where that is not known."""

    title: str
    body: str = ""
    kind: str = "fact"
    slot: str = ""
    labels: tuple[str, ...] = ()
    load_when: tuple[str, ...] = ()
    summary: str = ""
    highlight: str = ""
    pinned: bool = False
    archived: bool = False
    reason: str = ""
    place: str = ""
    session: str = ""
    message: str = ""
    at: str = ""
    updated_at: str = ""


def take_in_note(
    tx: sqlite3.Connection, foreign: ForeignNote, scope: str, target: Target, tally: Tally, what: str = "note"
) -> int | None:
    """Write a note unless it is known, whatever became of it here; return its id, None where it was refused.

    What binds is proposed, as from any source that is no person.
    """
    title, body = _fitting(clean_text(foreign.title).strip(), clean_text(foreign.body).strip())
    try:
        refuse_secrets(
            title=title, body=body, slot=foreign.slot, labels=foreign.labels, load_when=foreign.load_when,
            summary=foreign.summary, highlight=foreign.highlight, reason=foreign.reason, place=foreign.place,
            session=foreign.session, message=foreign.message,
        )  # fmt: skip
        draft = drafts.check_note(
            title, body=body, kind=foreign.kind, slot=foreign.slot, labels=foreign.labels,
            load_when=foreign.load_when[:MOST_TRIGGERS], summary=foreign.summary, highlight=foreign.highlight,
            scope=scope, pinned=foreign.pinned, status="archived" if foreign.archived else "live",
            source=target.source, reason=foreign.reason, config=target.config,
        )  # fmt: skip
    except SecretRefused as error:
        tally.refuse(what, title, str(error))
        return None
    except InvalidInput as error:
        tally.refuse(what, title, f"{error.argument}: {error.reason}")
        return None
    known = notes.same_as(tx, draft)
    if known is not None:
        tally.count(what, "known")
        return known
    draft = drafts.ruled(draft, backed=False)
    origin = Provenance(
        0, "remember", target.source, clean_text(foreign.place), clean_text(foreign.session),
        clean_text(foreign.message), "", draft.reason, foreign.at or target.at,
    )  # fmt: skip
    report = notes.remember(tx, draft, origin, at_is_given=bool(foreign.at))
    if foreign.updated_at:
        notes.confirm(tx, report.note.id, foreign.updated_at)
    if foreign.pinned:
        tally.remark(_PINNED.format(f"note {report.note.id}"))
    if report.note.status == "proposed":
        tally.remark(_BINDS)
    if report.created:
        tally.count(what, "added")
    else:
        tally.merge(what, title, f"note {report.note.id}")
    return report.note.id


def _fitting(title: str, body: str) -> tuple[str, str]:
    """Return title and body, all of a title that is too long in the body.

    >>> _fitting("short", "text"), len(_fitting("x" * 501, "text")[0])
    (('short', 'text'), 200)
    """
    line = " ".join(title.split())
    if len(line) <= LONGEST_TITLE:
        return line, body
    return f"{line[: _SHORTENED - 1]}…", f"{title}\n\n{body}".strip()
