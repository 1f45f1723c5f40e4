"""What is attached to scenes fades when it is not told again: by half for each half-life of days of use.

A day of use is a UTC day with a write: an idle memory loses nothing, and an upkeep that was missed catches up. What
falls below the floor leaves its scene; its row stays in the journal, and the fact itself stays anyway.
"""

import bisect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphmem.config import Config
from graphmem.store.transaction import Transaction
from graphmem.upkeep.journal import FADING, NUMBERS, Journal, rows_of

# Pinned notes, rules, checkpoints and procedures never fade.
_FADES = """NOT (kind = 'note' AND ref_id IN (
    SELECT id FROM notes WHERE pinned = 1 OR kind IN ('rule', 'checkpoint', 'skill', 'agent', 'command')))"""


class Fading(NamedTuple):
    """How a ref fades: the day its clock stands on, by how many halves, and the day that its clock moves to."""

    day: str
    halvings: int
    until: str


@dataclass(frozen=True, slots=True)
class DecayPlan:
    """What a decay would do. refs: all refs there are. archived: how many fall below the floor."""

    fading: Sequence[tuple[int, Fading]]
    refs: int
    archived: int


def halvings(days: Sequence[str], clock: str, half_life: int) -> tuple[int, str]:
    """Return how often a ref has to fade, and the day that its clock moves to.

    days: the days of use, sorted. clock: the day since which it was not told again.

    >>> halvings(["2026-01-01", "2026-01-02", "2026-01-05", "2026-03-01"], "2026-01-01", 2)
    (1, '2026-01-05')
    """
    first = bisect.bisect_right(days, clock)
    times = (len(days) - first) // half_life
    return times, days[first + times * half_life - 1] if times else clock


def plan_decay(tx: Transaction, config: Config) -> DecayPlan:
    """Return which refs fade, and how far."""
    days = [day for (day,) in tx.execute("SELECT day FROM active_days ORDER BY day")]
    refs = archived = 0
    fading: list[tuple[int, Fading]] = []
    for day, count in tx.execute(
        "SELECT substr(decayed_at, 1, 10), COUNT(*) FROM scene_refs GROUP BY 1 ORDER BY 1"
    ).fetchall():
        refs += count
        how = Fading(day, *halvings(days, day, config.half_life_days))
        if how.halvings:
            rows = tx.execute(
                f"SELECT id, weight FROM scene_refs WHERE substr(decayed_at, 1, 10) = ? AND {_FADES} ORDER BY id",
                (day,),
            )
            for ref_id, weight in rows:
                fading.append((ref_id, how))
                archived += weight * 0.5**how.halvings < config.decay_floor
    return DecayPlan(fading, refs, archived)


def apply_decay(tx: Transaction, part: Sequence[tuple[int, Fading]], config: Config, at: str) -> int | None:
    """Let some of the refs fade that were not told again since the plan; return the operation, None without any."""
    journal = Journal(tx)
    planned = dict(part)
    archived = 0
    for ref in rows_of(tx, "scene_refs", f"id IN {NUMBERS} AND {_FADES}", (json.dumps(list(planned)),)):
        how = planned[ref["id"]]
        weight = ref["weight"] * 0.5**how.halvings
        if not ref["decayed_at"].startswith(how.day):
            continue
        if weight < config.decay_floor:
            archived += 1
            journal.delete("scene_refs", ref)
        else:
            journal.update("scene_refs", ref, weight=weight, decayed_at=how.until + ref["decayed_at"][len(how.day) :])
    if not journal.images:
        return None
    return journal.close(FADING, at, {"faded": len(journal.images), "archived": archived})
