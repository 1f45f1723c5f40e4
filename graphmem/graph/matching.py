"""Which emergent scenes fit a situation, exactly, asked of SQLite: nothing is held in memory, so nothing grows stale.

The column `posted` says which features lead to a scene (`store/postings.py`). A scene that names people can only answer
a situation that names one of them, so it is looked for by people. Other scenes are looked for by channels and then by
the heaviest features, those that many scenes share last, until the rest weighs too little to reach the score by itself.
What is found is read and scored in full.
"""

import functools
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphmem.core.keys import PERSON_KINDS
from graphmem.core.situations import DIGITS, Situation, recall_ground
from graphmem.store.lists import in_list
from graphmem.store.postings import FOR_ALL, WITHOUT_CHANNEL, of_channel, of_party

# A feature that leads to more scenes is looked up only where the others do not suffice.
_COMMON = 64
# A channel that leads to so many scenes of people is looked up only by these.
_BUSY = 1000
_NO_LIMIT = -1
_ROUNDING = 0.5 * 10.0**-DIGITS
_PEOPLE = tuple(f"{kind}:" for kind in PERSON_KINDS)
_CHANNEL = "chan:"

_VISITED = "s.origin = 'emergent' AND s.visits > 0"
_OF_FEATURE = f"""
    SELECT s.id, s.key, s.strength, s.visits FROM scene_features p CROSS JOIN scenes s ON s.id = p.scene_id
    WHERE {_VISITED} AND p.feature = ? AND p.posted BETWEEN ? AND ?"""
_WITH_ANOTHER = " AND EXISTS (SELECT 1 FROM scene_features other WHERE other.scene_id = s.id AND other.feature = ?)"
_Row = tuple[int, str, int, int]  # id, key, strength and visits of a scene


class Candidate(NamedTuple):
    """A scene that may be joined or recalled: its score, rounded, and the ground of `recall_ground`.

    masses: of each feature, in the order of their names.
    """

    scene_id: int
    key: str
    score: float
    strength: int
    visits: int
    masses: dict[str, float]
    ground: str = "score"

    @property
    def rank(self) -> tuple[float, int, int]:
        """Sorts the best first: the highest score, then the strongest, then the oldest."""
        return -self.score, -self.strength, self.scene_id

    @property
    def people(self) -> list[str]:
        """The people and groups that the scene names."""
        return [feature for feature in self.masses if feature.startswith(_PEOPLE)]

    @property
    def names_channel(self) -> bool:
        """Whether the scene names channels."""
        return any(feature.startswith(_CHANNEL) for feature in self.masses)


def best(tx: sqlite3.Connection, situation: Situation) -> Candidate | None:
    """Return the scene that the situation joins: the best score, then the strongest, then the oldest."""
    least = situation.config.join_score
    found = _of_party(tx, situation) if situation.people else _of_nobody(tx, situation, least)
    fit = [one for one in found if one.score >= least and not _vetoed(one, situation)]
    return min(fit, key=lambda one: one.rank) if fit else None


def answering(tx: sqlite3.Connection, situation: Situation) -> list[Candidate]:
    """Return the scenes that a situation recalls, best first."""
    least = situation.config.recall_score
    found = [one for one in _of_nobody(tx, situation, least) if one.score >= least and not _vetoed(one, situation)]
    return sorted([*found, *_of_anybody(tx, situation)], key=lambda one: one.rank)


def _vetoed(scene: Candidate, situation: Situation) -> bool:
    """Tell whether both name channels and share none."""
    return bool(situation.channels) and situation.channels.isdisjoint(scene.masses) and scene.names_channel


def _of_party(tx: sqlite3.Connection, situation: Situation) -> list[Candidate]:
    """Return the scenes that name just the people of a situation; of very many, those that no channel vetoes."""
    people = (*situation.peers, *situation.groups)
    any_of_them = FOR_ALL, of_party(len(people), channels=True)
    rows = _led_to(tx, *people, posted=any_of_them, limit=_COMMON)
    if len(rows) == _COMMON:
        here = situation.channels
        rows = _of_party_in(tx, people, here) if here else _led_to(tx, *people, posted=any_of_them)
    found = [_scored(tx, row, situation) for row in rows]
    # What another program wrote may name more people than it is posted for.
    return [one for one in found if len(one.people) == len(people)]


def _of_party_in(tx: sqlite3.Connection, people: Sequence[str], channels: Iterable[str]) -> list[_Row]:
    """Return the scenes of people that name one of some channels, or none."""
    apart, among = (of_party(len(people), channels=named) for named in (False, True))
    of_people = of_channel(len(people))
    rows = _led_to(tx, *people, posted=(FOR_ALL, FOR_ALL)) + _led_to(tx, *people, posted=(apart, apart))
    for channel in channels:
        some = tx.execute(
            "SELECT 1 FROM scene_features WHERE feature = ? AND posted = ? LIMIT ?", (channel, of_people, _BUSY)
        ).fetchall()
        if len(some) < _BUSY:
            rows += _led_to(tx, channel, *people, posted=(of_people, of_people))
        else:
            rows += _led_to(tx, *people, channel, posted=(among, among))
    return list(dict.fromkeys(rows))


def _led_to(
    tx: sqlite3.Connection, feature: str, *others: str, posted: tuple[int, int], limit: int = _NO_LIMIT
) -> list[_Row]:
    """Return the scenes that a feature leads to, posted from one value to another, and that have others as well."""
    return tx.execute(_of_feature(len(others)), (feature, *posted, *others, limit)).fetchall()


@functools.cache
def _of_feature(others: int) -> str:
    return f"{_OF_FEATURE}{_WITH_ANOTHER * others} LIMIT ?"


def _of_anybody(tx: sqlite3.Connection, situation: Situation) -> Iterator[Candidate]:
    """Yield the scenes that name some of the people of a situation and answer for that, whatever their score."""
    peer_marks, peers = in_list(situation.peers)
    group_marks, groups = in_list(situation.groups)
    # A scene that names peers answers for one of them alone, whoever else is in its groups.
    rows = tx.execute(
        f"""SELECT s.id, s.key, s.strength, s.visits FROM scenes s WHERE {_VISITED} AND s.id IN (
                SELECT scene_id FROM scene_features WHERE feature IN ({peer_marks}) AND posted >= {FOR_ALL}
                UNION
                SELECT scene_id FROM scene_features p WHERE feature IN ({group_marks}) AND posted >= {FOR_ALL}
                    AND NOT EXISTS (SELECT 1 FROM scene_features peer WHERE peer.scene_id = p.scene_id
                                    AND peer.feature >= 'peer:' AND peer.feature < 'peer;'))""",
        [*peers, *groups],
    )
    for row in rows.fetchall():
        one = _scored(tx, row, situation)
        if ground := recall_ground(situation, one.people):
            yield one._replace(ground=ground)


def _of_nobody(tx: sqlite3.Connection, situation: Situation, least: float) -> list[Candidate]:
    """Return scenes that name no people: all that reach a score, and others.

    Features are looked up until the rest, shared in full, would not suffice.
    """
    weights, identity, channels = situation.weights, situation.identity, situation.channels
    people = situation.peers | situation.groups
    left = [*people, *sorted(channels), *(each for each in weights if each not in people and each not in channels)]
    rest, rest_identity = situation.weight, situation.identity_weight
    enough, enough_identity = (least - _ROUNDING) * rest, (least - _ROUNDING) * rest_identity
    # Beside its channels a situation only misses scenes without any; those with others are vetoed.
    lowest = FOR_ALL if channels else WITHOUT_CHANNEL
    found: dict[_Row, tuple[float, float]] = {}  # at most what is shared, of all features and of identity features

    def suffices(shared: float, shared_identity: float) -> bool:
        return shared + rest >= enough or 0 < enough_identity <= shared_identity + rest_identity

    for limit in (_COMMON, _NO_LIMIT):
        common = []
        for feature in left:
            if not suffices(0.0, 0.0):
                break
            weight, weight_identity = weights[feature], weights[feature] if feature in identity else 0.0
            if feature not in people:  # which lead to no scene without people
                at_most = _NO_LIMIT if feature in channels else limit
                rows = _led_to(tx, feature, posted=(lowest, FOR_ALL), limit=at_most)
                if len(rows) == at_most:
                    common.append(feature)
                    continue
                # What shares a channel is not looked for by the rest, and may share all of it.
                given, given_identity = (math.inf, math.inf) if feature in channels else (weight, weight_identity)
                for scene in rows:
                    shared, shared_identity = found.get(scene, (0.0, 0.0))
                    found[scene] = shared + given, shared_identity + given_identity
            rest -= weight
            rest_identity -= weight_identity
        left = common
    scored = (_scored(tx, scene, situation) for scene, shared in found.items() if suffices(*shared))
    return [one for one in scored if not one.people]


def _scored(tx: sqlite3.Connection, scene: _Row, situation: Situation) -> Candidate:
    scene_id, key, strength, visits = scene
    masses = dict(tx.execute("SELECT feature, mass FROM scene_features WHERE scene_id = ?", (scene_id,)).fetchall())
    return Candidate(scene_id, key, _score(situation, masses, visits), strength, visits, masses)


def _score(situation: Situation, masses: dict[str, float], visits: int) -> float:
    """What `situations.score` says readably, for a profile of masses divided by visits."""
    config, identity = situation.config, situation.identity
    shared = shared_identity = 0.0
    for feature, own in situation.weights.items():
        if feature in masses:
            there = masses[feature] / visits
            least = own if own < there else there
            shared += least
            if feature in identity:
                shared_identity += least
    score = shared / (situation.weight + sum(masses.values()) / visits - shared)
    if shared_identity:
        weight_of, other, floor = config.weights.get, config.other_weight, config.identity_floor
        theirs = sum([mass for feature, mass in masses.items() if weight_of(feature.partition(":")[0], other) >= floor])
        score = max(score, shared_identity / (situation.identity_weight + theirs / visits - shared_identity))
    return round(score, DIGITS)
