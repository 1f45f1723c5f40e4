"""Every setting, in one frozen value: defaults < file < environment < arguments."""

import dataclasses
import datetime as dt
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from graphmem import log
from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    import pathlib
    import tomllib
    import zoneinfo
else:
    pathlib = late("pathlib")
    tomllib = late("tomllib")
    zoneinfo = late("zoneinfo")

# Weights of the reference engine, but for peer and peer_group, which lead: at the channel's own weight a channel
# hides the person who speaks in it.
KIND_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"chan": 1.0, "peer": 1.2, "peer_group": 1.2, "tool": 0.8, "topic": 0.4, "part": 0.2}
)
_KIND = re.compile(r"[^\W_A-Z](?:[^\W_A-Z]|[-._](?=[^\W_A-Z]))*")
SELF_NAMES = frozenset({"me", "self", "assistant", "agent", "bot", "system", "default", "unknown", "anonymous"})
LANGUAGES = ("en", "zh")
IDENTITIES = ("repository", "folder")

_LARGEST_COUNT = 2**63 - 1  # what a column of SQLite holds

_ENVIRONMENT = "GRAPHMEM_"
_OTHER_VARIABLES = frozenset({"DB", "CONFIG", "PROJECT", "SESSION", "ARBITER_KEY"})  # read by the command line


def check_number(name: str, value: object, *, low: float, high: float) -> None:
    """Raise InvalidInput unless the value is a finite number within the bounds; booleans and text are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(name, value, "give a number")
    if not low <= value <= high:
        raise InvalidInput(name, value, f"give a number from {low:g} to {high:g}")


def check_count(name: str, value: object, *, low: int = 0) -> None:
    """Raise InvalidInput unless the value is a whole number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(name, value, "give a whole number")
    if not low <= value <= _LARGEST_COUNT:
        raise InvalidInput(name, value, f"give a whole number from {low} to {_LARGEST_COUNT}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How text recall weighs what speaks for a hit. Chosen on the first five LoCoMo conversations; see PLAN.md.

    Weights of evidence, each kind of which is 0 to 1 before: words, vector, symbol, window, neighbours, session,
    speaker, date, scene, graph, replaced, association, meaning.

    Within a kind of evidence. k1, b: of BM25. title, labels: how often a word of a title, of labels counts. pair: what
    two words of the query that stand side by side add, as a share of their own worth. name: what is left of the worth
    of a speaker's name. beyond: share of turns two steps away. meaning_beside: share of what is said beside something
    that means much the same. association_frequency, association_share: words of more texts, or of a greater share of
    all texts, link nothing.

    Bounds of the work. candidates: texts that are looked at, for each hit that is wanted. neighbours_of: turns whose
    neighbours are looked up, meaning_of: texts nearest in meaning, likewise. association_of: best hits whose words are
    followed. association_terms: how many words at most. association_candidates: texts looked at. edges: facts looked at
    in each hop.
    """

    k1: float = 0.9
    b: float = 0.4
    title: float = 3.0
    labels: float = 2.0
    pair: float = 0.5
    name: float = 0.2
    candidates: int = 6
    words: float = 1.0
    vector: float = 1.0
    symbol: float = 1.0
    window: float = 0.2
    neighbours: float = 0.5
    beyond: float = 0.5
    neighbours_of: int = 3
    session: float = 0.6
    speaker: float = 0.75
    date: float = 0.9
    scene: float = 0.3
    graph: float = 0.3
    replaced: float = 1.0
    association: float = 0.5
    association_of: int = 2
    association_terms: int = 6
    association_frequency: int = 30
    association_share: float = 0.2
    association_candidates: int = 24
    edges: int = 200
    meaning: float = 1.0
    meaning_of: int = 12
    meaning_beside: float = 0.8

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if each.type is int:
                check_count(f"ranking.{each.name}", value, low=1)
            else:
                check_number(f"ranking.{each.name}", value, low=0.0, high=1.0 if each.name == "b" else 1e3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of a memory. Raises InvalidInput naming the setting when a value cannot be used.

    weights: weight of a feature by kind; kinds not listed weigh `other_weight`.
    identity_floor: a kind that weighs this much or more says who and where; the others are soft.
    self_names: peers that are the agent itself or nobody; they are dropped from situations.
    join_score, recall_score: least score to join a scene, to be recalled by situation (0 to 1, inclusive).
    visits_to_grow: visits of one label until its scene grows. evidence_days: how far apart they may lie.
    situation_features, scene_features: features kept of a turn, of a scene; of the latter at most
    `scene_identity_features` identity features and at least `scene_recent_features` of those met last.
    timezone: IANA name; naive times are read in it, and the part of the day is told by it.
    language: of what is written for a prompt, "en" or "zh".
    ranking: the weights of text recall; a file may hold a table of some of them.
    half_life_days: days of use until what is attached to a scene and not told again weighs half; decay_floor: what
    weighs less is archived. shrink_limit: a step of upkeep that would remove a greater share of what there is stops.
    journal_days: how long operations can be undone.
    busy_timeout: seconds to wait for another writer. durable: fsync each commit (PRAGMA synchronous=FULL).
    semantic: embed what is written with the model of the extra `semantic`, and recall by meaning as well.
    project_identity: "repository" takes worktrees and clones of a git repository for one project, "folder" each for
    one of its own.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: KIND_WEIGHTS, hash=False)
    other_weight: float = 0.4
    identity_floor: float = 0.5
    self_names: frozenset[str] = SELF_NAMES
    join_score: float = 0.5
    recall_score: float = 0.35
    visits_to_grow: int = 2
    evidence_days: float = 30.0
    situation_features: int = 24
    scene_features: int = 64
    scene_identity_features: int = 48
    scene_recent_features: int = 16
    timezone: str = "UTC"
    language: str = "en"
    half_life_days: int = 30
    decay_floor: float = 0.05
    shrink_limit: float = 0.2
    journal_days: float = 90.0
    busy_timeout: float = 5.0
    durable: bool = False
    semantic: bool = False
    project_identity: str = "repository"
    ranking: Ranking = Ranking()

    def __post_init__(self) -> None:
        if isinstance(self.ranking, Mapping):
            object.__setattr__(self, "ranking", _ranking_of(self.ranking))
        if not isinstance(self.ranking, Ranking):
            raise InvalidInput("ranking", self.ranking, "give a Ranking, or a table of some of its fields")
        if not isinstance(self.weights, Mapping):
            raise InvalidInput("weights", self.weights, "give a table of kinds and their weights")
        object.__setattr__(self, "weights", MappingProxyType({**KIND_WEIGHTS, **self.weights}))
        names: object = self.self_names
        if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(n, str) for n in names):
            raise InvalidInput("self_names", names, "give a list of names")
        object.__setattr__(self, "self_names", frozenset(names))
        for name in ("durable", "semantic"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(name, getattr(self, name), "give true or false")
        for kind, weight in self.weights.items():
            if not isinstance(kind, str) or not _KIND.fullmatch(kind):
                raise InvalidInput("weights", kind, "write a kind as in the keys of features, in small letters: 'chan'")
            check_number(f"weights[{kind}]", weight, low=1e-6, high=1e6)
        check_number("other_weight", self.other_weight, low=1e-6, high=1e6)
        for name in ("identity_floor", "join_score", "recall_score"):
            check_number(name, getattr(self, name), low=1e-6, high=1.0)
        for name in ("decay_floor", "shrink_limit"):
            check_number(name, getattr(self, name), low=0.0, high=1.0)
        for name in ("evidence_days", "journal_days", "busy_timeout"):
            check_number(name, getattr(self, name), low=0.0, high=1e6)
        counts = (
            "half_life_days",
            "visits_to_grow",
            "situation_features",
            "scene_features",
            "scene_identity_features",
            "scene_recent_features",
        )
        for name in counts:
            check_count(name, getattr(self, name), low=1)
        if self.language not in LANGUAGES:
            raise InvalidInput("language", self.language, f"give one of {', '.join(LANGUAGES)}")
        if self.project_identity not in IDENTITIES:
            raise InvalidInput("project_identity", self.project_identity, f"give one of {', '.join(IDENTITIES)}")
        for kind in ("peer", "peer_group"):
            if self.weights[kind] < self.identity_floor:
                reason = f"lighter than identity_floor ({self.identity_floor}); people say which situation it is"
                raise InvalidInput(f"weights[{kind}]", self.weights[kind], reason)
        if self.scene_identity_features + self.scene_recent_features > self.scene_features:
            reason = f"more than scene_features ({self.scene_features}) with scene_recent_features; lower one of them"
            raise InvalidInput("scene_identity_features", self.scene_identity_features, reason)
        try:
            self.zone  # noqa: B018 (it is looked for)
        except (ValueError, TypeError, OSError, zoneinfo.ZoneInfoNotFoundError):
            raise InvalidInput("timezone", self.timezone, "not a known IANA time zone; try 'Asia/Shanghai'") from None

    def __reduce__(self) -> tuple[Callable[..., "Config"], tuple[dict[str, Any]]]:
        # A read-only mapping can be neither pickled nor copied.
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return _config_of, ({**values, "weights": dict(self.weights)},)

    def weight_of(self, kind: str) -> float:
        """Return the weight of a feature kind."""
        return self.weights.get(kind, self.other_weight)

    @property
    def zone(self) -> dt.tzinfo:
        """The time zone as a tzinfo."""
        # UTC is known without the files of time zones.
        return dt.UTC if self.timezone == "UTC" else zoneinfo.ZoneInfo(self.timezone)

    @classmethod
    def load(
        cls, path: "pathlib.Path | None" = None, environ: Mapping[str, str] = os.environ, **arguments: Any
    ) -> "Config":
        """Build a Config from a TOML file, GRAPHMEM_* variables and arguments, the later ones winning.

        A file that was named must exist; None reads no file. An unknown setting of the file is refused by name, an
        unknown variable is only logged. `weights`, `self_names` and `ranking` have no variables.
        """
        settings: dict[str, Any] = {}
        if path is not None:
            try:
                settings.update(tomllib.loads(path.read_text("utf-8")))
            except OSError as error:
                raise InvalidInput("config", str(path), f"cannot be read: {error.strerror}") from error
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise InvalidInput("config", str(path), f"is no TOML: {error}") from error
        simple = {f.name: f.type for f in dataclasses.fields(cls) if f.name not in ("weights", "self_names", "ranking")}
        for name, kind in simple.items():
            text = environ.get(_ENVIRONMENT + name.upper())
            if text is not None:
                settings[name] = _parse(name, text, kind)
        known = {f.name for f in dataclasses.fields(cls)}
        for variable in environ:
            name = variable.removeprefix(_ENVIRONMENT)
            if name != variable and name not in _OTHER_VARIABLES and name.lower() not in simple:
                log.warning("%s is no setting; known are %s", variable, ", ".join(sorted(simple)))
        settings.update(arguments)
        for name in settings:
            if name not in known:
                raise InvalidInput("setting", name, f"unknown; the settings are {', '.join(sorted(known))}")
        return cls(**settings)


def _ranking_of(values: Mapping[str, Any]) -> Ranking:
    known = [each.name for each in dataclasses.fields(Ranking)]
    for name in values:
        if name not in known:
            raise InvalidInput("ranking", name, f"unknown; its fields are {', '.join(known)}")
    return Ranking(**values)


def _config_of(values: dict[str, Any]) -> Config:
    return Config(**values)


def _parse(name: str, text: str, kind: Any) -> Any:
    readers: dict[Any, Any] = {
        int: int,
        float: float,
        bool: {"1": True, "true": True, "0": False, "false": False}.__getitem__,
    }
    try:
        return readers.get(kind, str)(text.strip().lower() if kind is bool else text)
    except (ValueError, KeyError):
        raise InvalidInput(_ENVIRONMENT + name.upper(), text, f"not a value of type {kind.__name__}") from None


DEFAULT = Config()
