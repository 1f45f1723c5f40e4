"""Which features lead to a scene: the column `scene_features.posted`, and the partial index on it.

Few features of a scene have to lead to it. One that names people is joined and recalled by these alone, so it is posted
under them, and under its channels for people who have many scenes; a channel with 100 000 people and a person in 5 000
conversations stay cheap. One that names a channel and nobody is posted under its channels, and under all else only for
situations without a channel: others share the channel or are vetoed. Such a situation never shares what the channels
weigh, so these postings tell how much that is, and a crowd of scenes is passed over in the index. Any other scene is
posted under all of its features. Scenes that are declared, or that no turn visited, are found by key alone.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter

from graphmem.core.keys import PERSON_KINDS, kind_of
from graphmem.store.lists import in_parts
from graphmem.store.transaction import Transaction

# Values of `posted`, besides NULL, which leads nowhere, and those of the functions below.
FOR_ALL = 0

_APART = -1
# Steps of a weight of one. A channel weighs one, which lies in the middle of a step: what it weighs at a visit may move
# a little without a row being posted anew, and yet it is more than a tool, or topics, can make up for.
_STEPS = 4
_HEAVIEST = 1e6


def of_party(people: int, *, channels: bool) -> int:
    """Return what the people of a scene are posted as: rises with their number, the odd ones name channels."""
    return 2 * people + channels


def of_channel(people: int) -> int:
    """Return what the channels of a scene that names people are posted as."""
    return _APART - people


def beside_channel(weight: float) -> int:
    """Return what is posted beside channels that have this weight at a visit: falls as the weight rises.

    >>> [beside_channel(weight) for weight in (0.0, 0.8, 1.0, 1.1)]
    [-1, -4, -5, -5]
    """
    return _APART - math.floor(_STEPS * min(max(weight, 0.0), _HEAVIEST) + 0.5)


def least_beside(posted: int) -> float:
    """Return what the channels of a scene without people weigh at a visit at the least, given a posting.

    >>> [least_beside(posted) for posted in (FOR_ALL, beside_channel(0.0), beside_channel(1.0))]
    [0.0, 0.0, 0.875]
    """
    return max(_APART - posted - 0.5, 0.0) / _STEPS


def posting(kind: str, *, people: int, channels: float | None) -> int | None:
    """Return what a feature of a scene is posted as, given how many people the scene names.

    channels: what its channels weigh at a visit, None for a scene that names none.

    >>> [posting(kind, people=2, channels=1.0) for kind in ("peer", "chan", "topic")]
    [5, -3, None]
    >>> [posting(kind, people=0, channels=1.0) for kind in ("chan", "topic")]
    [0, -5]
    """
    if not people:
        return FOR_ALL if kind == "chan" or channels is None else beside_channel(channels)
    if kind in PERSON_KINDS:
        return of_party(people, channels=channels is not None)
    return of_channel(people) if kind == "chan" else None


def moved(
    features: Iterable[str], before: float | None, after: float | None, *, people: int
) -> Iterator[tuple[int | None, str]]:
    """Yield what features of a scene are posted as, and which, where its channels weigh something else; see `posting`.

    >>> list(moved(["chan:x", "topic:tea"], 1.0, 0.5, people=0))
    [(-3, 'topic:tea')]
    """
    if before == after:
        return
    if before is not None and after is not None and (people or beside_channel(before) == beside_channel(after)):
        return
    for feature in features:
        kind = kind_of(feature)
        now = posting(kind, people=people, channels=after)
        if now != posting(kind, people=people, channels=before):
            yield now, feature


def at_a_visit(masses: Collection[float], visits: int) -> float | None:
    """Return what the channels of a scene weigh at a visit, given the mass of each; None when it names none.

    >>> at_a_visit([3.0], visits=4)
    0.75
    """
    return math.fsum(masses) / visits if masses else None  # the same in whatever order


def settle(tx: Transaction, scene_ids: Iterable[int]) -> None:
    """Post scenes as their features say."""
    for part, marks in in_parts(scene_ids):
        wrong = [(right, scene_id, feature) for scene_id, feature, right in _wrong(tx, part, marks)]
        tx.executemany("UPDATE scene_features SET posted = ? WHERE scene_id = ? AND feature = ?", wrong)


def settle_all(tx: Transaction) -> None:
    """Post all scenes as their features say."""
    settle(tx, _all(tx))


def wrong_scenes(tx: Transaction) -> list[int]:
    """Return the scenes that are posted otherwise than their features say."""
    return list(
        dict.fromkeys(scene_id for part, marks in in_parts(_all(tx)) for scene_id, _, _ in _wrong(tx, part, marks))
    )


def _all(tx: Transaction) -> list[int]:
    return [scene_id for (scene_id,) in tx.execute("SELECT id FROM scenes ORDER BY id")]


def _wrong(tx: Transaction, scene_ids: list[int], marks: str) -> Iterator[tuple[int, str, int | None]]:
    """Yield scene, feature and what it should be posted as, where it is not."""
    rows = tx.execute(
        f"""SELECT f.scene_id, f.feature, f.posted, f.mass, s.visits, s.origin = 'emergent' AND s.visits > 0
            FROM scene_features f JOIN scenes s ON s.id = f.scene_id
            WHERE f.scene_id IN ({marks}) ORDER BY f.scene_id""",
        scene_ids,
    ).fetchall()
    for scene_id, group in itertools.groupby(rows, key=itemgetter(0)):
        scene = list(group)
        *_, visits, is_met = scene[0]
        kinds = [kind_of(feature) for _, feature, *_ in scene]
        people = sum(kind in PERSON_KINDS for kind in kinds)
        masses = [mass for (*_, mass, _, _), kind in zip(scene, kinds, strict=True) if kind == "chan"]
        channels = at_a_visit(masses, visits) if is_met else None
        for (_, feature, posted, *_), kind in zip(scene, kinds, strict=True):
            right = posting(kind, people=people, channels=channels) if is_met else None
            if right != posted:
                yield scene_id, feature, right
