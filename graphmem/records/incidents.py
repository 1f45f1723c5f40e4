"""Incidents: failures of tools that look alike, counted in each scope until a lesson resolves them."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmem.config import Config
from graphmem.core.keys import entity_key
from graphmem.core.model import Incident, IncidentReport, Note
from graphmem.core.times import days_before
from graphmem.errors import NotFound
from graphmem.late import late
from graphmem.store.lists import EVERY_ROW, of_scopes
from graphmem.store.transaction import Transaction

if TYPE_CHECKING:
    from graphmem.core.failures import Failure
    from graphmem.records import drafts
else:
    drafts = late("graphmem.records.drafts")

_COLUMNS = "id, scope, tool, signature, count, sample, first_at, last_at, resolved_at, note_id"


def record(tx: Transaction, failure: "Failure", scope: str, at: str, *, now: str, config: Config) -> IncidentReport:
    """Count a failure, told for a time; what is too old, or too much for its scope, is dropped.

    One that was resolved is opened anew by a failure after that, and not by an old one that is told late.
    """
    drop_expired(tx, now, config.incident_max_age_days, scope=scope)
    if at < days_before(now, config.incident_max_age_days):
        reason = f"older than incident_max_age_days ({config.incident_max_age_days:g}): nothing was recorded"
        return IncidentReport(remarks=(*failure.remarks, reason))
    known = _where(tx, "scope = ? AND signature = ?", (scope, failure.signature))
    reopened = bool(known and known[0].resolved_at is not None and at >= known[0].resolved_at)
    if not known:
        incident_id = _insert(tx, failure, scope, 1, (at, at))
    elif reopened:
        incident_id = known[0].id
        tx.execute(
            """UPDATE incidents SET tool = ?, count = 1, sample = ?, first_at = ?, last_at = ?, resolved_at = NULL,
                                    note_id = NULL
               WHERE id = ?""",
            (failure.tool, failure.sample, at, at, incident_id),
        )
    else:
        incident_id = known[0].id
        tx.execute(
            """UPDATE incidents SET count = count + 1, sample = CASE WHEN last_at <= ? THEN ? ELSE sample END,
                                    first_at = MIN(first_at, ?), last_at = MAX(last_at, ?)
               WHERE id = ?""",
            (at, failure.sample, at, at, incident_id),
        )
    _keep_latest(tx, scope, config)
    kept = _where(tx, "id = ?", (incident_id,))
    if not kept:
        reason = f"{config.max_incidents} kinds of failure in this scope were seen later: nothing was recorded"
        return IncidentReport(remarks=(*failure.remarks, reason))
    warns = kept[0].resolved_at is None and kept[0].count >= config.incident_threshold
    return IncidentReport(kept[0], created=not known, reopened=reopened, warns=warns, remarks=failure.remarks)


def _insert(
    tx: Transaction, failure: "Failure", scope: str, count: int, seen: tuple[str, str], resolved_at: str | None = None
) -> int:
    (incident_id,) = tx.execute(
        """INSERT INTO incidents(scope, signature, tool, count, sample, first_at, last_at, resolved_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (scope, failure.signature, failure.tool, count, failure.sample, *seen, resolved_at),
    ).fetchone()
    return int(incident_id)


def _keep_latest(tx: Transaction, scope: str, config: Config) -> None:
    tx.execute(
        """DELETE FROM incidents WHERE id IN (SELECT id FROM incidents WHERE scope = ?
               ORDER BY last_at DESC, id DESC LIMIT ? OFFSET ?)""",
        (scope, EVERY_ROW, config.max_incidents),
    )


def take_in(
    tx: Transaction,
    failure: "Failure",
    scope: str,
    count: int,
    seen: tuple[str, str],
    *,
    resolved: bool,
    now: str,
    config: Config,
) -> str:
    """Write an incident of another memory, or let a known one have happened as often; return what became of it.

    seen: when first and when last. That is added, changed or known, or refused for what is not kept here either.
    """
    first, last = seen
    if last < days_before(now, config.incident_max_age_days):
        return "refused"
    known = _where(tx, "scope = ? AND signature = ?", (scope, failure.signature))
    if known:
        incident_id = known[0].id
        tx.execute(
            """UPDATE incidents SET count = MAX(count, ?), first_at = MIN(first_at, ?), last_at = MAX(last_at, ?)
               WHERE id = ?""",
            (count, first, last, incident_id),
        )
    else:
        incident_id = _insert(tx, failure, scope, count, seen, last if resolved else None)
    _keep_latest(tx, scope, config)
    kept = _where(tx, "id = ?", (incident_id,))
    return "refused" if not kept else "added" if not known else "known" if kept == known else "changed"


def incidents(
    tx: Transaction, scopes: Sequence[str] | None, at: str, *, config: Config, state: str | None, least: int = 1
) -> list[Incident]:
    """Return incidents of scopes and of none, None for all, those seen most often and latest first.

    at: the present, as UTC text; what was seen last too long before it is left out. state: open, resolved, None for
    both. least: how often they must have been seen.
    """
    in_scope, parameters = of_scopes(scopes, column="scope")
    states = {"open": "AND resolved_at IS NULL", "resolved": "AND resolved_at IS NOT NULL", None: ""}
    return _where(
        tx,
        f"last_at >= ? AND count >= ? {in_scope} {states[state]} ORDER BY count DESC, last_at DESC, id DESC",
        (days_before(at, config.incident_max_age_days), least, *parameters),
    )


def warnings(tx: Transaction, scopes: Sequence[str] | None, at: str, config: Config) -> list[Incident]:
    """Return the open incidents that happened often enough to be warned of, most often and latest first."""
    return incidents(tx, scopes, at, config=config, state="open", least=config.incident_threshold)


def resolve_by(tx: Transaction, note: Note, at: str) -> tuple[int, ...]:
    """Resolve the open incidents of a note's scope whose tool it names, seen until then; return their ids.

    Only a live lesson or pitfall resolves. The name stands as a word in its title, body or labels.
    """
    if note.kind not in drafts.LESSONS or note.status != "live":
        return ()
    open_ones = _where(tx, "scope = ? AND resolved_at IS NULL AND last_at <= ?", (note.scope, at))
    told = entity_key("\n".join((note.title, note.body, *note.labels))) if open_ones else ""
    ids = tuple(one.id for one in open_ones if names_tool(told, entity_key(one.tool)))
    tx.executemany(
        "UPDATE incidents SET resolved_at = ?, note_id = ? WHERE id = ?", [(at, note.id, each) for each in ids]
    )
    return ids


def names_tool(text: str, tool: str) -> bool:
    """Tell whether a text names a tool as a word of its own; both as `entity_key` makes them.

    >>> [names_tool(text, "bash") for text in ("用bash时加引号", "bash: quote it", "bashrc", "bash-completion")]
    [True, True, False, False]
    """
    return re.search(rf"(?<![0-9a-z_])(?<![0-9a-z]-){re.escape(tool)}(?![0-9a-z_])(?!-[0-9a-z])", text) is not None


def forget(tx: Transaction, incident_id: int) -> Incident:
    """Remove an incident and return it; raise NotFound for an unknown one."""
    found = _where(tx, "id = ?", (incident_id,))
    if not found:
        raise NotFound(f"incident {incident_id}: there is none of this id; 'graphmem incidents --all' lists them")
    tx.execute("DELETE FROM incidents WHERE id = ?", (incident_id,))
    return found[0]


def count_expired(tx: Transaction, at: str, days: float) -> int:
    """Return how many incidents were seen last too long ago."""
    (count,) = tx.execute("SELECT COUNT(*) FROM incidents WHERE last_at < ?", (days_before(at, days),)).fetchone()
    return int(count)


def drop_expired(tx: Transaction, at: str, days: float, *, scope: str | None = None) -> None:
    """Remove the incidents that were seen last too long ago, of one scope or of all."""
    in_scope, parameters = ("", []) if scope is None else ("AND scope = ?", [scope])
    tx.execute(f"DELETE FROM incidents WHERE last_at < ? {in_scope}", (days_before(at, days), *parameters))


def _where(tx: Transaction, condition: str, parameters: Sequence[object]) -> list[Incident]:
    return [Incident(*row) for row in tx.execute(f"SELECT {_COLUMNS} FROM incidents WHERE {condition}", parameters)]
