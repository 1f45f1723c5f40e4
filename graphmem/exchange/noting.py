"""Notes that come in from other memories."""

from dataclasses import dataclass, replace

from graphmem.core.keys import clean_text
from graphmem.core.model import Note, Provenance
from graphmem.core.model.notes import LONGEST_TITLE, MOST_TRIGGERS
from graphmem.core.pages import is_same
from graphmem.core.redaction import refuse_secrets
from graphmem.errors import Conflict, InvalidInput, SecretRefused
from graphmem.exchange.importing import Tally, Target
from graphmem.records import drafts, notes, provenance
from graphmem.records.drafts import Draft
from graphmem.store.transaction import Transaction

_FOLLOWED = ("title", "body", "kind", "slot", "labels", "load_when", "summary", "highlight")
_SHORTENED = 200  # characters of a title that is too long: all of it stands in the body then
_BINDS = (
    "notes that bind, and those that were proposals, wait for a person: 'graphmem notes --status proposed' lists them, "
    "'graphmem approve' decides"
)
_PINNED = "{} was pinned there; 'graphmem notes edit' pins it here, which is for a person to do"


@dataclass(frozen=True, slots=True)
class ForeignNote:
    """A note of another memory, with its origin there. at, updated_at: as stored, '' where that is not known.

    name: what a report calls it, '' for its title. proposed: a person is to decide on it.
    """

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
    proposed: bool = False
    name: str = ""


def take_in_note(
    tx: Transaction,
    foreign: ForeignNote,
    scope: str,
    target: Target,
    tally: Tally,
    what: str = "note",
    *,
    before: int | None = None,
) -> int | None:
    """Write a note unless it is known, whatever became of it here; return its id, None where it was refused.

    What binds is proposed, as from any source that is no person. before: the note that the same thing was when it was
    taken in last; where it is still as the import left it, it becomes what it is told to be now.
    """
    name = foreign.name or foreign.title
    title, body = _fitting(clean_text(foreign.title).strip(), clean_text(foreign.body).strip())
    summary, body = _with_summary(clean_text(foreign.summary).strip(), body)
    try:
        refuse_secrets(
            title=title, body=body, slot=foreign.slot, labels=foreign.labels, load_when=foreign.load_when,
            summary=foreign.summary, highlight=foreign.highlight, reason=foreign.reason, place=foreign.place,
            session=foreign.session, message=foreign.message,
        )  # fmt: skip
        draft = drafts.check_note(
            title, body=body, kind=foreign.kind, slot=foreign.slot, labels=foreign.labels,
            load_when=foreign.load_when[:MOST_TRIGGERS], summary=summary, highlight=foreign.highlight,
            scope=scope, pinned=foreign.pinned,
            status="archived" if foreign.archived else "proposed" if foreign.proposed else "live",
            source=target.source, reason=foreign.reason, config=target.config,
        )  # fmt: skip
    except SecretRefused as error:
        tally.refuse(what, name, str(error))
        return None
    except InvalidInput as error:
        tally.refuse(what, name, f"{error.argument}: {error.reason}")
        return None
    stored = None if before is None else notes.notes(tx, [before]).get(before)
    if stored is not None and stored.scope == scope:
        return _follow(tx, stored, draft, foreign, target, tally, what)
    known = notes.same_as(tx, draft)
    if known is not None:
        tally.count(what, "known")
        return known
    draft = drafts.ruled(draft, backed=False)
    origin = replace(_act(foreign, target, "remember"), reason=draft.reason, at=foreign.at or target.at)
    report = notes.remember(tx, draft, origin, at_is_given=bool(foreign.at))
    if foreign.updated_at:
        notes.confirm(tx, report.note.id, foreign.updated_at)
    if len(foreign.load_when) > MOST_TRIGGERS:
        tally.remark(f"note {report.note.id} has more than {MOST_TRIGGERS} triggers: the first of them came")
    if foreign.pinned:
        tally.remark(_PINNED.format(f"note {report.note.id}"))
    if report.note.status == "proposed":
        tally.remark(_BINDS)
    if report.created:
        tally.count(what, "added")
    else:
        tally.merge(what, name, f"note {report.note.id}")
    return report.note.id


def _follow(
    tx: Transaction,
    stored: Note,
    draft: Draft,
    foreign: ForeignNote,
    target: Target,
    tally: Tally,
    what: str,
) -> int | None:
    """Let a note be what it is told to be by now, unless somebody else changed it or put it away meanwhile."""
    told = {field: getattr(draft, field) for field in _FOLLOWED}
    changes = {field: value for field, value in told.items() if not is_same(value, getattr(stored, field))}
    puts_away = foreign.archived and stored.status == "live"
    if not changes and not puts_away:
        tally.count(what, "known")
        return stored.id
    act = _act(foreign, target, "edit")
    try:
        _require_untouched(tx, stored, act)
        if changes:
            target.edit(tx, stored.id, changes, act)
        if puts_away:
            notes.put_away(tx, stored.id, replace(act, act="forget"), target.config)
    except Conflict as error:
        tally.refuse(what, foreign.name or foreign.title, str(error))
        return None
    if foreign.updated_at:
        notes.confirm(tx, stored.id, foreign.updated_at)
    tally.count(what, "changed")
    return stored.id


def _require_untouched(tx: Transaction, stored: Note, act: Provenance) -> None:
    """Raise Conflict for a note that is out of force, or that was changed since who acts took it in last."""
    if stored.status not in ("live", "proposed"):
        raise Conflict(f"note {stored.id}, which it was, is {stored.status} here, and it was changed since")
    acts = provenance.acts(tx, "note", stored.id)
    own = max(each.seq for each in acts if (each.actor, each.place) == (act.actor, act.place))
    if any(each.act == "edit" and each.seq > own for each in acts):
        raise Conflict(
            f"note {stored.id}, which it was, was changed here too: 'graphmem notes edit' brings both together"
        )


def _act(foreign: ForeignNote, target: Target, act: str) -> Provenance:
    place, session, message = map(clean_text, (foreign.place, foreign.session, foreign.message))
    return Provenance(0, act, target.source, place, session, message, "", "", target.at)


def _fitting(title: str, body: str) -> tuple[str, str]:
    """Return title and body, all of a title that is too long in the body.

    >>> _fitting("short", "text"), len(_fitting("x" * 501, "text")[0])
    (('short', 'text'), 200)
    """
    line = " ".join(title.split())
    if len(line) <= LONGEST_TITLE:
        return line, body
    return f"{line[: _SHORTENED - 1]}…", f"{title}\n\n{body}".strip()


def _with_summary(summary: str, body: str) -> tuple[str, str]:
    """Return summary and body, all of a summary that is too long at the head of the body.

    >>> _with_summary("short", "Text."), _with_summary("x" * 101, "Text.")[1][-8:]
    (('short', 'Text.'), 'x\\n\\nText.')
    """
    line = " ".join(summary.split())
    if len(line) <= drafts.LONGEST_SUMMARY:
        return line, body
    return f"{line[: drafts.LONGEST_SUMMARY - 1]}…", body if summary in body else f"{summary}\n\n{body}".strip()
