"""Which emergent scenes fit a situation, exactly, asked of SQLite: nothing is held in memory, so nothing grows stale.

The column `posted` says which features lead to a scene (`store/postings.py`). A scene that names people can only answer
a situation that names one of them, so it is looked for by people. Other scenes are looked for by channels and then by
the heaviest features, those that many scenes share last, until the rest weighs too little to reach the score by itself.
Of what is found, what can reach the score by what is known of it is read and scored in full: how much it may share, and
how much its channels weigh, which a situation without channels never shares.
"""

import functools
import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from graphmem.config import Config
from graphmem.core.keys import PERSON_KINDS
from graphmem.core.situations import DIGITS, Situation, recall_ground
from graphmem.store.lists import EVERY_ROW, in_list, in_parts
from graphmem.store.postings import FOR_ALL, beside_channel, least_beside, of_channel, of_party
from graphmem.store.transaction import Transaction

# A feature that leads to more scenes is looked up only where the others do not suffice.
_COMMON = 64
# A channel that leads to so many scenes of people is looked up only by these.
_BUSY = 1000
# So many scenes are asked for ahead by words.
_LIKELY = 16
_ROUNDING = 0.5 * 10.0**-DIGITS
_PEOPLE = tuple(f"{kind}:" for kind in PERSON_KINDS)
_CHANNEL = "chan:"
_NAMES = (*_PEOPLE, _CHANNEL)

_VISITED = "s.origin = 'emergent' AND s.visits > 0"
_OF_FEATURE = f"""
    SELECT s.id, s.key, s.strength, s.visits FROM scene_features p CROSS JOIN scenes s ON s.id = p.scene_id
    WHERE {_VISITED} AND p.feature = ? AND p.posted BETWEEN ? AND ?"""
_WITH_ANOTHER = " AND EXISTS (SELECT 1 FROM scene_features other WHERE other.scene_id = s.id AND other.feature = ?)"
_OF_CROWD = f"""{_OF_FEATURE}{_WITH_ANOTHER} AND
    (SELECT COUNT(*) FROM (SELECT 1 FROM scene_features WHERE feature = ? AND posted = ? LIMIT ?) crowd) >= ?"""
_FEATURES = "SELECT feature, mass, touched FROM scene_features WHERE scene_id = ? ORDER BY feature"
# Id, key, strength and visits of a scene, and its features, each with its mass and last visit.
_Found = tuple[tuple[Any, ...], list[tuple[Any, ...]]]


class Candidate(NamedTuple):
    """A scene that may be joined or recalled: its score, rounded, and the ground of `recall_ground`.

    features: each with its mass and its last visit. masses: of each feature, in the order of their names. named: the
    people, groups and channels among them.
    """

    scene_id: int
    key: str
    score: float
    strength: int
    visits: int
    features: Sequence[tuple[str, float, int]]
    masses: dict[str, float]
    named: list[str]
    ground: str = "score"

    @property
    def rank(self) -> tuple[float, int, int]:
        """Sorts the best first: the highest score, then the strongest, then the oldest."""
        return -self.score, -self.strength, self.scene_id

    @property
    def people(self) -> list[str]:
        """The people and groups that the scene names."""
        return [feature for feature in self.named if feature.startswith(_PEOPLE)]

    @property
    def channels(self) -> dict[str, float]:
        """The channels that the scene names, with their masses."""
        return {feature: self.masses[feature] for feature in self.named if feature.startswith(_CHANNEL)}


def best(tx: Transaction, situation: Situation) -> Candidate | None:
    """Return the scene that the situation joins: the best score, then the strongest, then the oldest."""
    if situation.people:
        return _first(_of_party(tx, situation), situation)
    asked = _on_channels(tx, situation, limit=_COMMON)
    # The heaviest of the others most likely tells the scenes of a crowd apart.
    heaviest = next((feature for feature in situation.weights if feature not in situation.channels), None)
    of_crowd = _of_crowd(tx, situation, heaviest) if heaviest and tx.engine.is_remote else None
    beside = _beside_channels(tx, situation, situation.config.join_score)
    here = [list(each) for each in asked]
    is_crowd = [len(each) >= _COMMON for each in here]
    if any(is_crowd):
        if heaviest:
            of_crowd = of_crowd or _of_crowd(tx, situation, heaviest)
            likely = [crowd if crowded else each for each, crowd, crowded in zip(here, of_crowd, is_crowd, strict=True)]
            joined = _first(_of_nobody(tx, situation, _by_id(likely), beside), situation)
            if joined and not _suffices(situation, joined.score, *_rest(situation, [heaviest])):
                return joined
        here = [list(each) for each in _on_channels(tx, situation)]
    return _first(_of_nobody(tx, situation, _by_id(here), beside), situation)


def _first(found: Iterable[Candidate], situation: Situation) -> Candidate | None:
    fit = [one for one in found if one.score >= situation.config.join_score and not _vetoed(one, situation)]
    return min(fit, key=lambda one: one.rank) if fit else None


def answering(tx: Transaction, situation: Situation) -> list[Candidate]:
    """Return the scenes that a situation recalls, best first."""
    least = situation.config.recall_score
    without_people = _rest(situation, situation.peers | situation.groups)
    on_channels = _on_channels(tx, situation) if _suffices(situation, least, *without_people) else []
    of_anybody = _of_anybody(tx, situation)
    beside = _beside_channels(tx, situation, least)
    of_nobody = _of_nobody(tx, situation, _by_id(on_channels), beside)
    found = [one for one in of_nobody if one.score >= least and not _vetoed(one, situation)]
    of_people = (_scored(one, situation) for one in of_anybody)
    grounded = ((one, recall_ground(situation, one.people)) for one in of_people)
    found += [one._replace(ground=ground) for one, ground in grounded if ground]
    return sorted(found, key=lambda one: one.rank)


def _vetoed(scene: Candidate, situation: Situation) -> bool:
    """Tell whether both name channels and share none."""
    return bool(situation.channels) and situation.channels.isdisjoint(scene.masses) and bool(scene.channels)


def _of_party(tx: Transaction, situation: Situation) -> list[Candidate]:
    """Return the scenes that name just the people of a situation; of very many, those that no channel vetoes."""
    people = (*situation.peers, *situation.groups)
    any_of_them = FOR_ALL, of_party(len(people), channels=True)
    led = list(_led_to(tx, *people, posted=any_of_them, limit=_COMMON))
    if len(led) == _COMMON:
        here = situation.channels
        led = _of_party_in(tx, people, here) if here else list(_led_to(tx, *people, posted=any_of_them))
    found = [_scored(one, situation) for one in led]
    # What another program wrote may name more people than it is posted for.
    return [one for one in found if len(one.people) == len(people)]


def _of_party_in(tx: Transaction, people: Sequence[str], channels: Collection[str]) -> list[_Found]:
    """Return the scenes of people that name one of some channels, or none."""
    apart, among = (of_party(len(people), channels=named) for named in (False, True))
    of_people = of_channel(len(people))
    asked = [_led_to(tx, *people, posted=(posted, posted)) for posted in (FOR_ALL, apart)]
    some = tx.engine.each(
        tx,
        "SELECT 1 FROM scene_features WHERE feature = ? AND posted = ? LIMIT ?",
        [(channel, of_people, _BUSY) for channel in channels],
    )
    for channel, found in zip(channels, some, strict=True):
        if len(found) < _BUSY:
            asked.append(_led_to(tx, channel, *people, posted=(of_people, of_people)))
        else:
            asked.append(_led_to(tx, *people, channel, posted=(among, among)))
    return [*_by_id(asked).values()]


def _led_to(
    tx: Transaction, feature: str, *others: str, posted: tuple[int, int], limit: int = EVERY_ROW
) -> Iterable[_Found]:
    """Ask for the scenes that a feature leads to, posted from one value to another, and that have others as well.

    Where there are as many as the limit, their features are not told.
    """
    return tx.engine.nested(tx, _of_feature(len(others)), (feature, *posted, *others, limit), _FEATURES, limit)


def _by_id(asked: Iterable[Iterable[_Found]]) -> dict[int, _Found]:
    return {one[0][0]: one for each in asked for one in each}


@functools.cache
def _of_feature(others: int) -> str:
    return f"{_OF_FEATURE}{_WITH_ANOTHER * others} LIMIT ?"


def _of_anybody(tx: Transaction, situation: Situation) -> Iterable[_Found]:
    """Ask for the scenes that name some of the people of a situation and may answer for that, whatever their score."""
    if not situation.people:
        return []
    peer_marks, peers = in_list(situation.peers)
    group_marks, groups = in_list(situation.groups)
    # A scene that names peers answers for one of them alone, whoever else is in its groups.
    return tx.engine.nested(
        tx,
        f"""SELECT s.id, s.key, s.strength, s.visits FROM scenes s WHERE {_VISITED} AND s.id IN (
                SELECT scene_id FROM scene_features WHERE feature IN ({peer_marks}) AND posted >= {FOR_ALL}
                UNION
                SELECT scene_id FROM scene_features p WHERE feature IN ({group_marks}) AND posted >= {FOR_ALL}
                    AND NOT EXISTS (SELECT 1 FROM scene_features peer WHERE peer.scene_id = p.scene_id
                                    AND peer.feature >= 'peer:' AND peer.feature < 'peer;'))""",
        [*peers, *groups],
        _FEATURES,
        EVERY_ROW,
    )


def _of_nobody(
    tx: Transaction, situation: Situation, here: dict[int, _Found], beside: dict[int, _Found | None]
) -> list[Candidate]:
    """Return those that name no people of the scenes on the channels of a situation and of others."""
    others = {scene_id: known for scene_id, known in beside.items() if scene_id not in here}
    asked: list[Iterable[_Found]] = [here.values(), [known for known in others.values() if known]]
    for part, marks in in_parts([scene_id for scene_id, known in others.items() if not known]):
        among = f"SELECT s.id, s.key, s.strength, s.visits FROM scenes s WHERE {_VISITED} AND s.id IN ({marks})"
        asked.append(tx.engine.nested(tx, among, part, _FEATURES, EVERY_ROW))
    scored = (_scored(one, situation) for one in itertools.chain.from_iterable(asked))
    return [one for one in scored if not one.people]


def _on_channels(tx: Transaction, situation: Situation, *others: str, limit: int = EVERY_ROW) -> list[Iterable[_Found]]:
    """Ask for the scenes without people on each channel of a situation that have other features as well.

    limit: of each channel; see `_led_to`.
    """
    posted = FOR_ALL, FOR_ALL
    return [_led_to(tx, each, *others, posted=posted, limit=limit) for each in situation.channels]


def _of_crowd(tx: Transaction, situation: Situation, other: str) -> list[Iterable[_Found]]:
    """Ask for the scenes without people on each channel that have another feature; for none of a channel of a few."""
    return [
        tx.engine.nested(
            tx,
            _OF_CROWD,
            (each, FOR_ALL, FOR_ALL, other, each, FOR_ALL, _COMMON, _COMMON),
            _FEATURES,
            EVERY_ROW,
        )
        for each in situation.channels
    ]


def _rest(situation: Situation, without: Iterable[str]) -> tuple[float, float]:
    """Return what a situation weighs without some of its features: all of it, and its identity features."""
    rest, rest_identity = situation.weight, situation.identity_weight
    for feature in without:
        rest -= situation.weights[feature]
        rest_identity -= situation.weights[feature] if feature in situation.identity else 0.0
    return rest, rest_identity


def _suffices(situation: Situation, least: float, shared: float, shared_identity: float, beside: float = 0.0) -> bool:
    """Tell whether a scene may reach a score that shares at most so much, of all features and of identity features.

    beside: what the channels of the scene weigh at least, when the situation names none.
    """
    config, enough = situation.config, least - _ROUNDING
    if shared >= enough * (situation.weight + beside):
        return True
    identifies = beside and config.weight_of("chan") >= config.identity_floor
    return 0 < enough * (situation.identity_weight + (beside if identifies else 0.0)) <= shared_identity


def _most_beside(situation: Situation, least: float, shared: float, shared_identity: float) -> float:
    """Return how much the channels of a scene may weigh beside what is shared; the bound of `_suffices`."""
    config, enough = situation.config, least - _ROUNDING
    most = shared_identity / enough - situation.identity_weight
    if most > 0 and config.weight_of("chan") < config.identity_floor:
        return math.inf
    return max(most, shared / enough - situation.weight)


def _beside_channels(tx: Transaction, situation: Situation, least: float) -> dict[int, _Found | None]:
    """Return the scenes without people that may share enough, looked for by all but the channels of a situation.

    Features are looked up until the rest, shared in full, would not suffice. From a server the scenes that most of them
    lead to come along; for others there is None.
    """
    weights, identity, channels = situation.weights, situation.identity, situation.channels
    apart = channels | situation.peers | situation.groups
    rest, rest_identity = _rest(situation, apart)
    if not _suffices(situation, least, rest, rest_identity):
        return {}
    left = [feature for feature in weights if feature not in apart]
    # Beside its channels a situation only misses scenes without any; those with others are vetoed.
    lowest = FOR_ALL if channels else beside_channel(_most_beside(situation, least, rest, rest_identity))
    likely: Iterable[_Found] = ()
    if tx.engine.is_remote and not channels:  # else hardly ever are there any
        likely = _most_led_to(tx, _needed(situation, least, left, rest, rest_identity), lowest)
    found: dict[int, tuple[float, float, int]] = {}  # at most what is shared, of all and identity features; posted
    for limit in (_COMMON, EVERY_ROW):
        common = []
        while needed := _needed(situation, least, left, rest, rest_identity):
            left = left[len(needed) :]
            asked = tx.engine.each(
                tx,
                "SELECT scene_id, posted FROM scene_features WHERE feature = ? AND posted BETWEEN ? AND ? LIMIT ?",
                [(feature, lowest, FOR_ALL, limit) for feature in needed],
            )
            for feature, rows in zip(needed, asked, strict=True):
                if len(rows) == limit:
                    common.append(feature)
                    continue
                weight = weights[feature]
                weight_identity = weight if feature in identity else 0.0
                rest -= weight
                rest_identity -= weight_identity
                for scene_id, posted in rows:
                    shared, shared_identity, _ = found.get(scene_id, (0.0, 0.0, posted))
                    found[scene_id] = shared + weight, shared_identity + weight_identity, posted
        left = common
    known = _by_id([likely])
    return {
        scene_id: known.get(scene_id)
        for scene_id, (shared, shared_identity, posted) in found.items()
        if _suffices(situation, least, shared + rest, shared_identity + rest_identity, least_beside(posted))
    }


def _most_led_to(tx: Transaction, features: Sequence[str], lowest: int) -> Iterable[_Found]:
    """Ask for the scenes to which most of some features lead."""
    if not features:
        return ()
    asked: list[str | int] = [each for feature in features for each in (feature, lowest, FOR_ALL, _COMMON)]
    return tx.engine.nested(tx, _of_most(len(features)), (*asked, _LIKELY), _FEATURES, EVERY_ROW)


@functools.cache
def _of_most(features: int) -> str:
    of_one = """SELECT scene_id FROM
        (SELECT scene_id FROM scene_features WHERE feature = ? AND posted BETWEEN ? AND ? LIMIT ?) led"""
    return f"""
        SELECT s.id, s.key, s.strength, s.visits FROM scenes s JOIN
            (SELECT scene_id, COUNT(*) AS places FROM ({" UNION ALL ".join([of_one] * features)}) led
             GROUP BY scene_id ORDER BY places DESC, scene_id LIMIT ?) likely ON likely.scene_id = s.id
        WHERE {_VISITED}"""


def _needed(
    situation: Situation, least: float, features: Sequence[str], rest: float, rest_identity: float
) -> Sequence[str]:
    """Return the first of some features, which have to be looked up even if no scene is led to by any before them."""
    for count, feature in enumerate(features):
        if not _suffices(situation, least, rest, rest_identity):
            return features[:count]
        rest -= situation.weights[feature]
        rest_identity -= situation.weights[feature] if feature in situation.identity else 0.0
    return features


def _scored(scene: _Found, situation: Situation) -> Candidate:
    (scene_id, key, strength, visits), features = scene
    masses: dict[str, float] = {feature: mass for feature, mass, _ in features}
    named = [feature for feature in masses if feature.startswith(_NAMES)]
    return Candidate(scene_id, key, _score(situation, masses, visits), strength, visits, features, masses, named)


def _score(situation: Situation, masses: dict[str, float], visits: int) -> float:
    """What `situations.score` says readably, for a profile of masses divided by visits."""
    identity = situation.identity
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
        theirs = _identity_mass(situation.config, masses) / visits
        score = max(score, shared_identity / (situation.identity_weight + theirs - shared_identity))
    return round(score, DIGITS)


def _identity_mass(config: Config, masses: dict[str, float]) -> float:
    floor = config.identity_floor
    others_identify = config.other_weight >= floor
    # The kinds that are listed, and unlike all that are not.
    unlike = tuple([f"{kind}:" for kind, weight in config.weights.items() if (weight >= floor) != others_identify])
    return sum([mass for feature, mass in masses.items() if feature.startswith(unlike) != others_identify])
