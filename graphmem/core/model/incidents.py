"""Failures of tools that look alike. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Incident:
    """Failures of one tool that look alike. signature: what they have in common; sample: the last one, in one line.

    count: how often since it was first seen, or reopened. resolved_at: None while it is open. note_id: the lesson that
    resolved it, None for none or one that was removed.
    """

    id: int
    scope: str
    tool: str
    signature: str
    count: int
    sample: str
    first_at: str
    last_at: str
    resolved_at: str | None = None
    note_id: int | None = None


@dataclass(frozen=True, slots=True)
class IncidentReport:
    """What recording a failure came to. incident: None where nothing was recorded, as the remarks say.

    created: this kind was not known. reopened: it had been resolved. warns: it is common enough for a warning.
    """

    incident: Incident | None = None
    created: bool = False
    reopened: bool = False
    warns: bool = False
    remarks: tuple[str, ...] = ()
