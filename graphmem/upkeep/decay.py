"""What is attached to scenes fades when it is not told again: by half for each half-life of days of use.

A day of use is a UTC day with a write: an idle memory loses nothing, and an upkeep that was missed catches up. What
falls below the floor leaves its scene; its row stays in the journal, and the fact itself stays anyway.
"""

import bisect
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from graphmem.config import Config
from graphmem.upkeep.journal import VALUES, Journal, rows_of

# Pinned notes and rules never fade.
_FADES = """NOT (kind = 'note' AND ref_id IN (SELECT id FROM notes WHERE pinned = 1 OR kind = 'rule'))"""


@dataclass(frozen=True, slots=True)
class Fading:
    """Refs whose clock stands on one day: their ids, by how many halves they fade, and the day their clock moves to."""

    day: str
    halvings: int
    until: str
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class DecayPlan:
    """What a decay would do. refs: all refs there are. archived: how many fall below the floor."""

    fading: Sequence[Fading]
    refs: int
    faded: int
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


def plan_decay(tx: sqlite3.Connection, config: Config) -> DecayPlan:
    """Return which refs fade, and how far."""
    days = [day for (day,) in tx.execute("SELECT day FROM active_days ORDER BY day")]
    refs = 0
    fading = []
    archived = 0
    for day, count in tx.execute("SELECT substr(decayed_at, 1, 10), COUNT(*) FROM scene_refs GROUP BY 1").fetchall():
        refs += count
        times, until = halvings(days, day, config.half_life_days)
        if times:
            rows = tx.execute(
                f"SELECT id, weight FROM scene_refs WHERE substr(decayed_at, 1, 10) = ? AND {_FADES} ORDER BY id",
                (day,),
            ).fetchall()
            archived += sum(weight * 0.5**times < config.decay_floor for _, weight in rows)
            fading.append(Fading(day, times, until, [ref_id for ref_id, _ in rows]))
    return DecayPlan(fading, refs, sum(len(one.ids) for one in fading), archived)


def apply_decay(tx: sqlite3.Connection, fading: Fading, ids: Sequence[int], config: Config, at: str) -> int | None:
    """Let some of the refs fade that were not told again since the plan; return the operation, None without any."""
    journal = Journal(tx)
    condition = f"id IN {VALUES} AND substr(decayed_at, 1, 10) = ? AND {_FADES}"
    archived = 0
    for ref in rows_of(tx, "scene_refs", condition, (json.dumps(ids), fading.day)):
        weight = ref["weight"] * 0.5**fading.halvings
        if weight < config.decay_floor:
            archived += 1
            journal.delete("scene_refs", ref)
        else:
            journal.update("scene_refs", ref, weight=weight, decayed_at=fading.until + ref["decayed_at"][10:])
    if not journal.images:
        return None
    return journal.close("decay", at, {"faded": len(journal.images), "archived": archived, "halvings": fading.halvings})
