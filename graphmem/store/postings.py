"""Which features lead to a scene: the column `scene_features.posted`, and the partial index on it.

Few features of a scene have to lead to it. One that names people is joined and recalled by these alone, so it is posted
under them, and under its channels for people who have many scenes; a channel with 100 000 people and a person in 5 000
conversations stay cheap. One that names a channel and nobody is posted under its channels, and under all else only for
situations without a channel: others share the channel or are vetoed. Any other scene is posted under all of its
features. Scenes that are declared, or that no turn visited, are found by key alone.
"""

import itertools
import sqlite3
from collections.abc import Iterable, Iterator
from operator import itemgetter

from graphmem.core.keys import PERSON_KINDS, kind_of
from graphmem.store.lists import in_parts

# Values of `posted`, besides NULL, which leads nowhere, and those of `of_party` and `of_channel`.
FOR_ALL = 0
WITHOUT_CHANNEL = -1


def of_party(people: int, *, channels: bool) -> int:
    """Return what the people of a scene are posted as: rises with their number, the odd ones name channels."""
    return 2 * people + channels


def of_channel(people: int) -> int:
    """Return what the channels of a scene that names people are posted as."""
    return WITHOUT_CHANNEL - people


def posting(kind: str, *, people: int, channels: bool) -> int | None:
    """Return what a feature of a scene is posted as, given how many people the scene names and whether any channel.

    >>> [posting(kind, people=2, channels=True) for kind in ("peer", "chan", "topic")]
    [5, -3, None]
    >>> [posting(kind, people=0, channels=True) for kind in ("chan", "topic")]
    [0, -1]
    """
    if not people:
        return FOR_ALL if kind == "chan" or not channels else WITHOUT_CHANNEL
    if kind in PERSON_KINDS:
        return of_party(people, channels=channels)
    return of_channel(people) if kind == "chan" else None


def settle(tx: sqlite3.Connection, scene_ids: Iterable[int]) -> None:
    """Post scenes as their features say."""
    for part, marks in in_parts(scene_ids):
        wrong = [(right, scene_id, feature) for scene_id, feature, right in _wrong(tx, part, marks)]
        tx.executemany("UPDATE scene_features SET posted = ? WHERE scene_id = ? AND feature = ?", wrong)


def settle_all(tx: sqlite3.Connection) -> None:
    """Post all scenes as their features say."""
    settle(tx, _all(tx))


def wrong_scenes(tx: sqlite3.Connection) -> list[int]:
    """Return the scenes that are posted otherwise than their features say."""
    return list(
        dict.fromkeys(scene_id for part, marks in in_parts(_all(tx)) for scene_id, _, _ in _wrong(tx, part, marks))
    )


def _all(tx: sqlite3.Connection) -> list[int]:
    return [scene_id for (scene_id,) in tx.execute("SELECT id FROM scenes ORDER BY id")]


def _wrong(tx: sqlite3.Connection, scene_ids: list[int], marks: str) -> Iterator[tuple[int, str, int | None]]:
    """Yield scene, feature and what it should be posted as, where it is not."""
    rows = tx.execute(
        f"""SELECT f.scene_id, f.feature, f.posted, s.origin = 'emergent' AND s.visits > 0
            FROM scene_features f JOIN scenes s ON s.id = f.scene_id
            WHERE f.scene_id IN ({marks}) ORDER BY f.scene_id""",
        scene_ids,
    ).fetchall()
    for scene_id, scene in itertools.groupby(rows, key=itemgetter(0)):
        features = [(feature, kind_of(feature), posted, is_met) for _, feature, posted, is_met in scene]
        people = sum(kind in PERSON_KINDS for _, kind, _, _ in features)
        channels = any(kind == "chan" for _, kind, _, _ in features)
        for feature, kind, posted, is_met in features:
            right = posting(kind, people=people, channels=channels) if is_met else None
            if right != posted:
                yield scene_id, feature, right
