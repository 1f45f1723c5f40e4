"""What holds when: the one condition by which every reader tells facts that hold from those that do not.

The time here is that of the world: a fact holds from `valid_from` on and until just before `valid_to`, and an open end
has no limit. A superseded fact is one whose end a later value set: inside its time it holds, and without an end never.
One that was deleted or archived never does.
"""


def holding(at: str) -> tuple[str, list[str]]:
    """Return the condition that a relation `r` holds at an instant, and its parameters.

    >>> holding("2026-09-07T08:00:00.000Z")[1]
    ['2026-09-07T08:00:00.000Z', '2026-09-07T08:00:00.000Z']
    """
    condition = """(r.status IN ('active', 'superseded')
        AND (r.valid_from IS NULL OR r.valid_from <= ?)
        AND (r.valid_to > ? OR (r.valid_to IS NULL AND r.status = 'active')))"""
    return condition, [at, at]
