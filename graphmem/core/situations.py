"""Situations: what can be observed of one turn, as a small set of weighted features.

A situation names who speaks (peer, peer_group), where (chan), with which tool, about what (topic) and at which part of
the day. The first four say which situation it is (identity features); the others may draw situations together and
never keep them apart. Two situations, or a situation and a scene, are compared by weighted Jaccard similarity.
"""

import datetime as dt
import functools
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphmem.config import DEFAULT, Config, check_number
from graphmem.core.keys import (
    PERSON_KINDS,
    feature_key,
    join_label,
    kind_of,
    layered_key,
    names_peer,
    normalize_key,
    text_list,
)
from graphmem.core.times import part_of_day, read_time
from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    from graphmem.core import redaction, tokens
else:
    redaction = late("graphmem.core.redaction")
    tokens = late("graphmem.core.tokens")

# Scores are sums of floats: exactly 0.5 on paper may come out as 0.4999999999999999. So they are compared rounded.
DIGITS = 9

# Added to the place of a kind that says nothing about identity; see place_of.
SOFT = 8

_TOPICS_OF_A_TEXT = 3
_LARGEST_IDENTIFIER = 10**48
_PEER_FIELDS = ("peer", "peer_id", "group_id", "user_id", "chat_id")
_PLACES = {"peer": 0, "peer_group": 1, "chan": 2, "tool": 3}
_PLACE_OF_OTHERS = 4


@dataclass(frozen=True, slots=True)
class Feature:
    """One observable of a turn. Its key is `kind:value` in canonical form, '' when either part is blank.

    Raises InvalidInput for a weight that is not a finite number from 1e-6 to 1e6.

    >>> Feature("chan", "QQ").key
    'chan:qq'
    """

    kind: str = field(compare=False)
    value: str = field(compare=False)
    weight: float | None = None
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", feature_key(self.kind, self.value))
        if self.weight is not None:
            check_number(f"weight of {self.key}", self.weight, low=1e-6, high=1e6)


@dataclass(frozen=True, slots=True, init=False)
class Situation:
    """The features of one turn, at most 24, with the weight of a kind shared by its values.

    given, given_at: what it was built from. features: those kept, without blanks, repeats and the agent's own names.
    weights: feature key -> weight, heaviest first.
    identity: the keys that say which situation this is, people first.
    peers, groups, channels: the keys of these kinds. people: those of the peers, of the groups when there is no peer.
    weight, identity_weight: sums of all weights, and of those of the identity features.
    at: when, in UTC; None lets the memory's clock decide.

    >>> Situation([Feature("chan", "qq"), Feature("topic", "a"), Feature("topic", "b")]).weights
    {'chan:qq': 1.0, 'topic:a': 0.2, 'topic:b': 0.2}
    """

    given: tuple[Feature, ...] = field(compare=False, repr=False)
    given_at: dt.datetime | str | None = field(compare=False, repr=False)
    features: tuple[Feature, ...]
    at: dt.datetime | None
    weights: dict[str, float] = field(compare=False, repr=False)
    identity: tuple[str, ...] = field(compare=False, repr=False)
    weight: float = field(compare=False, repr=False)
    identity_weight: float = field(compare=False, repr=False)
    peers: frozenset[str] = field(compare=False, repr=False)
    groups: frozenset[str] = field(compare=False, repr=False)
    channels: frozenset[str] = field(compare=False, repr=False)
    people: tuple[str, ...] = field(compare=False, repr=False)
    config: Config = field(compare=False, repr=False)

    def __init__(
        self, features: Iterable[Feature] = (), *, at: dt.datetime | str | None = None, config: Config = DEFAULT
    ) -> None:
        if not isinstance(features, Iterable):
            raise InvalidInput("features", features, "give a list of Feature(kind, value) objects")
        given = tuple(features)
        kept: dict[str, Feature] = {}
        selves = _self_keys(config.self_names)
        for feature in given:
            if not isinstance(feature, Feature):
                raise InvalidInput("features", feature, "give Feature(kind, value) objects")
            known = kept.get(feature.key)
            if feature.key and feature.key not in selves and (known is None or _given(feature) > _given(known)):
                kept[feature.key] = feature
        kinds = {key: kind_of(key) for key in kept}
        sharing = Counter(kinds.values())
        shared = {
            key: (config.weight_of(kinds[key]) if feature.weight is None else float(feature.weight))
            / sharing[kinds[key]]
            for key, feature in kept.items()
        }
        people = [key for key in kept if kinds[key] in PERSON_KINDS]
        room = min(config.situation_features, config.scene_identity_features)
        if len(people) > room:
            raise InvalidInput("features", len(people), f"more than {room} people in one turn")
        others = sorted(shared.keys() - set(people), key=lambda key: (-shared[key], key))
        heaviest = people + others[: config.situation_features - len(people)]
        heaviest.sort(key=lambda key: (-shared[key], key))
        identity = [key for key in heaviest if config.weight_of(kinds[key]) >= config.identity_floor]
        put = object.__setattr__
        put(self, "given", given)
        put(self, "features", tuple(kept[key] for key in heaviest))
        put(self, "given_at", at)
        put(self, "at", None if at is None else read_time(at, config.zone))
        put(self, "weights", {key: shared[key] for key in heaviest})
        put(self, "identity", tuple(sorted(identity, key=lambda key: (place_of(kinds[key], config), key))))
        put(self, "weight", sum(self.weights.values()))
        put(self, "identity_weight", sum(shared[key] for key in identity))
        for name, kind in (("peers", "peer"), ("groups", "peer_group"), ("channels", "chan")):
            put(self, name, frozenset(key for key in heaviest if kinds[key] == kind))
        put(self, "people", tuple(sorted(self.peers or self.groups)))
        put(self, "config", config)

    @classmethod
    def of(
        cls,
        *,
        chan: str | Iterable[str] | None = None,
        peer: str | Iterable[str] | None = None,
        peer_group: str | Iterable[str] | None = None,
        tool: str | Iterable[str] | None = None,
        topics: str | Iterable[str] | None = None,
        part: str | Iterable[str] | None = None,
        at: dt.datetime | str | None = None,
        config: Config = DEFAULT,
    ) -> "Situation":
        """Build a situation from plain values: none, one or several of each kind.

        >>> Situation.of(chan="QQ", peer="boss", topics=["排班"]).label()
        'peer:boss_chan:qq'
        """
        given = {"chan": chan, "peer": peer, "peer_group": peer_group, "tool": tool, "topic": topics, "part": part}
        features = [
            Feature(kind, value)
            for kind, values in given.items()
            for value in text_list(() if values is None else values, kind)
        ]
        return cls(features, at=at, config=config)

    @classmethod
    def observe(
        cls,
        *,
        source: str = "",
        payload: Mapping[str, Any] | None = None,
        text: str = "",
        tool: str = "",
        at: dt.datetime | str | None = None,
        config: Config = DEFAULT,
    ) -> "Situation":
        """Build a situation from a raw event: its channel, the person in the payload, the part of the day, topics.

        The person is the first of peer, peer_id, group_id, user_id and chat_id that is not blank; a group_id names a
        group. Topics are the first three content words of the text. The part of the day is that of `at` in
        `config.timezone`, for an event only; without source and payload (a tool on its own) there is none.

        >>> sorted(Situation.observe(source="qq", payload={"group_id": 1027993713.0}).weights)
        ['chan:qq', 'peer_group:1027993713']
        """
        if payload is not None and not isinstance(payload, Mapping):
            raise InvalidInput("payload", payload, "give a mapping such as {'user_id': 'boss'}")
        if not isinstance(text, str):
            raise InvalidInput("text", text, "give the words of the event as text")
        features = [Feature("chan", source)]
        for name in _PEER_FIELDS:
            person = Feature(
                "peer_group" if name == "group_id" else "peer", _identifier(name, (payload or {}).get(name))
            )
            if person.key and person.key not in _self_keys(config.self_names):
                features.append(person)
                break
        if at is not None and (source or payload is not None):
            features.append(Feature("part", part_of_day(read_time(at, config.zone).astimezone(config.zone))))
        features.append(Feature("tool", tool))
        if text:
            said = redaction.redact(text).replace(redaction.REDACTED, " ")  # else a key would be what the turn is about
            features += [Feature("topic", word) for word in tokens.content_words(said, _TOPICS_OF_A_TEXT)]
        return cls(features, at=at, config=config)

    def __bool__(self) -> bool:
        return bool(self.features)

    def under(self, config: Config) -> "Situation":
        """Return this situation weighed by another configuration."""
        same = config is self.config or config == self.config
        return self if same else Situation(self.given, at=self.given_at, config=config)

    def with_tool(self, name: str) -> "Situation":
        """Return this situation with a tool that is used in it.

        >>> Situation.of(chan="qq").with_tool("shell").weights
        {'chan:qq': 1.0, 'tool:shell': 0.8}
        """
        return Situation((*self.given, Feature("tool", name)), at=self.given_at, config=self.config)

    def label(self, parts: int = 2) -> str:
        """Return the first `parts` identity features joined by `_`, else as many others but the part of the day.

        >>> Situation.of(topics="a", part="morning").label()
        'topic:a'
        """
        identity = [key for key in self.identity if kind_of(key) != "part"]
        others = sorted(key for key in self.weights if kind_of(key) != "part")
        return join_label((identity or others)[:parts])

    @property
    def growing_label(self) -> str:
        """The label under which its visits are counted: two identity features, or all the people if they are more.

        Else a company of three would share evidence, and a scene made in advance, with two of them.
        """
        return self.label(max(2, len(self.peers) + len(self.groups)))

    @property
    def derived_key(self) -> str:
        """The declared key of this situation: `chan:X/peer:Y` with all its people, or what there is of these.

        >>> Situation.of(chan="qq", peer="boss").derived_key
        'chan:qq/peer:boss'
        """
        channel = min(self.channels, default="")
        if not self.people:
            return channel
        return layered_key(channel, self.people[0]) if len(self.people) == 1 else self._joint_key(channel)

    @property
    def declared_keys(self) -> tuple[str, ...]:
        """The keys that a turn declares by itself: its channels, then its derived key, then its tools.

        >>> Situation.of(chan="qq", peer="boss", tool="shell").declared_keys
        ('chan:qq', 'chan:qq/peer:boss', 'tool:shell')
        """
        own = (self.derived_key,) if self.derived_key else ()
        return tuple(dict.fromkeys((*sorted(self.channels), *own, *sorted(of_kind(self.weights, "tool")))))

    def _joint_key(self, channel: str) -> str:
        try:
            return normalize_key("/".join([*([channel] if channel else []), *self.people]))
        except InvalidInput:  # a kind of its own, so that it is nobody's own key
            return normalize_key(f"company:{join_label(list(self.people))}")

    def may_write_to(self, key: str) -> bool:
        """Tell whether what is said here may go to a declared scene: it names all people here and nobody else.

        >>> Situation.of(chan="qq", peer="boss").may_write_to("chan:qq")
        False
        """
        if not self.people or key == self.derived_key:
            return True
        if not all(names_peer(key, person) for person in self.people):
            return False
        here = self.peers | self.groups
        parent, _, last = key.rpartition("/")
        cut = last not in here and any(key == layered_key(parent, person) for person in self.people)
        named = [one for one in (parent if cut else key).split("/") if kind_of(one) in PERSON_KINDS]
        return here.issuperset(named)


@functools.lru_cache(maxsize=64)
def _self_keys(names: frozenset[str]) -> frozenset[str]:
    return frozenset(feature_key("peer", name) for name in names)


def _given(feature: Feature) -> float:
    return feature.weight or 0.0


def _identifier(name: str, value: object) -> str:
    """Return a payload's identifier as text; whole floats lose their decimals, absent and blank ones are ''."""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"payload[{name}]", value, "no identifier; give a text or a finite number")
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, str) or (isinstance(value, int) and abs(value) < _LARGEST_IDENTIFIER):
        return str(value).strip()
    raise InvalidInput(f"payload[{name}]", value, "no identifier; give a text or a number")


def similarity(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Weighted Jaccard similarity of two mappings, 0 for an empty or weightless side.

    Sum of minima over sum of maxima (Ioffe, ICDM 2010, eq. 1). Raises InvalidInput for a weight that is negative or not
    finite.

    >>> round(similarity({"chan:qq": 1.0, "part:morning": 0.2}, {"chan:qq": 1.0, "part:evening": 0.2}), 3)
    0.714
    """
    for weights in (a, b):
        for key, weight in weights.items():
            check_number(f"weight of {key}", weight, low=0.0, high=sys.float_info.max)
    largest = max((*a.values(), *b.values()), default=0.0)
    if not a or not b or not largest:
        return 0.0
    # Scaled by the largest weight, so that no sum overflows.
    shared = sum(min(weight, b[key]) / largest for key, weight in a.items() if key in b)
    union = sum(weight / largest for weight in (*a.values(), *b.values())) - shared
    return min(shared / union, 1.0)


def score(situation: Situation, profile: Mapping[str, float]) -> float:
    """How well a scene's profile fits a situation: the better of all features and the identity features alone.

    0 to 1, rounded to nine decimals.
    """
    config = situation.config
    own = {key: situation.weights[key] for key in situation.identity}
    theirs = {key: weight for key, weight in profile.items() if config.weight_of(kind_of(key)) >= config.identity_floor}
    return round(max(similarity(situation.weights, profile), similarity(own, theirs)), DIGITS)


def of_kind(keys: Iterable[str], kind: str) -> frozenset[str]:
    """Return the feature keys of one kind.

    >>> of_kind(["chan:a", "tool:b"], "chan")
    frozenset({'chan:a'})
    """
    return frozenset(key for key in keys if kind_of(key) == kind)


# `score` and `may_join` say readably what graph/matching.py does by look-ups and in one pass; tests hold both equal.
def may_join(situation: Situation, features: Iterable[str]) -> bool:
    """Tell whether a situation may join a scene of these features: same people, same groups, no foreign channel."""
    features = tuple(features)
    channels = of_kind(features, "chan")
    return (
        of_kind(features, "peer") == situation.peers
        and of_kind(features, "peer_group") == situation.groups
        and not (channels and situation.channels and channels.isdisjoint(situation.channels))
    )


def recall_ground(situation: Situation, features: Iterable[str]) -> str:
    """Return on which ground a scene of these features may answer: 'person', 'score', or '' when it may not.

    A scene that names people answers only where one of them is named again, and then whatever else differs. A scene
    that names nobody answers by its score, unless both name channels and share none.
    """
    features = tuple(features)
    peers, groups, channels = (of_kind(features, kind) for kind in ("peer", "peer_group", "chan"))
    if groups and situation.groups and groups.isdisjoint(situation.groups):
        return ""
    if peers:
        return "" if peers.isdisjoint(situation.peers) else "person"
    if groups:
        return "" if groups.isdisjoint(situation.groups) else "person"
    return "" if channels and situation.channels and channels.isdisjoint(situation.channels) else "score"


def place_of(kind: str, config: Config) -> int:
    """Return the rank of a feature's kind: people, groups, channels, tools, other kinds; with SOFT for a soft kind.

    >>> place_of("chan", DEFAULT), place_of("topic", DEFAULT)
    (2, 12)
    """
    place = _PLACES.get(kind, _PLACE_OF_OTHERS)
    return place if config.weight_of(kind) >= config.identity_floor else place + SOFT


def surplus_features(features: Mapping[str, tuple[float, int]], config: Config) -> list[str]:
    """Return which features a scene gives up, given the mass and the last visit of each.

    It keeps identity features first (people, of whom no turn names more than there is room for, then channels, then by
    mass), then those met last, then the heaviest. A plain "heaviest 64" would freeze out every new word.
    """
    if len(features) <= config.scene_features:
        return []
    kinds = {key: kind_of(key) for key in features}
    places = {kind: place_of(kind, config) for kind in set(kinds.values())}
    identity = [key for key, kind in kinds.items() if places[kind] < SOFT]
    if len(identity) > config.scene_identity_features:
        identity.sort(key=lambda key: (min(places[kinds[key]], _PLACES["tool"]), -features[key][0], key))
        del identity[config.scene_identity_features :]
    kept = set(identity)
    rest = sorted((-touched, -mass, key) for key, (mass, touched) in features.items() if key not in kept)
    old = sorted((mass, key) for _, mass, key in rest[config.scene_recent_features :])
    room = config.scene_features - len(kept) - config.scene_recent_features
    return [key for _, key in old[room:]]
