"""Every setting, in one frozen value: defaults < file < environment < arguments."""

import dataclasses
import datetime as dt
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from graphmem import log
from graphmem.errors import Conflict, InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    import shlex
    import tomllib
    import urllib.parse as addresses
    import zoneinfo
else:
    shlex = late("shlex")
    tomllib = late("tomllib")
    addresses = late("urllib.parse")
    zoneinfo = late("zoneinfo")

# Weights of the reference engine, but for peer and peer_group, which lead: at the channel's own weight a channel
# hides the person who speaks in it.
KIND_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"chan": 1.0, "peer": 1.2, "peer_group": 1.2, "tool": 0.8, "topic": 0.4, "part": 0.2}
)
_KIND = re.compile(r"[^\W_A-Z](?:[^\W_A-Z]|[-._](?=[^\W_A-Z]))*")
SELF_NAMES = frozenset({"me", "self", "assistant", "agent", "bot", "system", "default", "unknown", "anonymous"})
LANGUAGES = ("en", "zh")
# How words can be looked for without knowing who asks.
SEARCH_MODES = ("hybrid", "keyword", "vector", "graph")

LONGEST_WAIT = 3600.0  # seconds for one answer of a model or a program
LARGEST_COUNT = 2**63 - 1  # what a column of SQLite holds

ENVIRONMENT = "GRAPHMEM_"
# Read elsewhere, or told to the program of a writer.
_OTHER_VARIABLES = frozenset(
    {
        "DB",
        "CONFIG",
        "PROJECT",
        "SESSION",
        "ARBITER_KEY",
        "WRITER_KEY",
        "WRITER",
        "HOOK_ALONE",
        "POSTGRES",
        "POSTGRES_DURABLE",
        "TEST_STORE",
    }
)
_NO_VARIABLES = frozenset({"weights", "ranking"})  # tables
_COMMANDS = frozenset({"writer_command"})  # written in a variable as for a shell
_ROUTE = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")

_SHARE = (0.0, 1.0)
_SCORE = (1e-6, 1.0)
_TIME = (0.0, 1e6)  # seconds or days
_INTERVAL = (0.01, 1e6)  # of what is done again and again, so not nothing
_ANY_COUNT = (0, LARGEST_COUNT)
_SOME = (1, LARGEST_COUNT)
# The least and the greatest value of each setting that is a number.
_BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "other_weight": (1e-6, 1e6),
        "identity_floor": _SCORE,
        "join_score": _SCORE,
        "recall_score": _SCORE,
        "visits_to_grow": _SOME,
        "evidence_days": _TIME,
        "situation_features": _SOME,
        "scene_features": _SOME,
        "scene_identity_features": _SOME,
        "scene_recent_features": _SOME,
        "half_life_days": _SOME,
        "decay_floor": _SHARE,
        "shrink_limit": _SHARE,
        "journal_days": _TIME,
        "busy_timeout": _TIME,
        "max_prompt_chars": _ANY_COUNT,
        "max_lessons_in_prompt": _ANY_COUNT,
        "max_constraint_chars": _ANY_COUNT,
        "section_order": _ANY_COUNT,
        "incident_threshold": _SOME,
        "max_incidents": _SOME,
        "incident_max_age_days": _TIME,
        "search_score_floor": _SHARE,
        "writer_timeout": (0.01, LONGEST_WAIT),
        "writer_max_retries": (0, 100),
        "writer_tokens_per_day": _ANY_COUNT,
        "checkpoint_input_bytes": (1000, 10_000_000),
        "checkpoint_output_bytes": (500, 10_000_000),
        "extract_min_turns": _ANY_COUNT,
        "extract_max_messages": _SOME,
        "idle_checkpoint_after": _TIME,
        "idle_check_every": _INTERVAL,
        "retention_days": _TIME,
        "retention_check_every_days": _INTERVAL,
        "dream_interval_days": _TIME,
        "distill_interval_days": _TIME,
    }
)
_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "language": LANGUAGES,
        "search_mode": SEARCH_MODES,
        "project_identity": ("repository", "folder"),
    }
)


def check_number(name: str, value: object, *, low: float, high: float) -> None:
    """Raise InvalidInput unless the value is a finite number within the bounds; booleans and text are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(name, value, "give a number")
    if not low <= value <= high:
        raise InvalidInput(name, value, f"give a number from {low:g} to {high:g}")


def check_count(name: str, value: object, *, low: int = 0, high: int = LARGEST_COUNT) -> None:
    """Raise InvalidInput unless the value is a whole number within the bounds; the greatest is what SQLite holds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(name, value, "give a whole number")
    if not low <= value <= high:
        raise InvalidInput(name, value, f"give a whole number from {low} to {high}")


def check_program(name: str, argv: object) -> None:
    """Raise InvalidInput unless the value is a program and its arguments, as no shell reads them."""
    words = argv if isinstance(argv, Sequence) and not isinstance(argv, str) else ()
    told = all(isinstance(word, str) and "\0" not in word for word in words)
    if not words or not told or not words[0].strip():
        raise InvalidInput(name, argv, "give a list of texts: the program and its arguments")


def check_address(name: str, value: object) -> None:
    """Raise InvalidInput unless the value is an address of HTTP, with nothing in it that may be a secret."""
    form = "give an address such as http://localhost:11434/v1, with http:// or https://"
    if not isinstance(value, str):
        raise InvalidInput(name, value, form)
    if any(mark in value for mark in "@?#"):
        raise InvalidInput(name, "(hidden)", f"{form}; a user, a password or a key is no part of it")
    try:
        parts = addresses.urlsplit(value)
        written = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        written = False
    if not written or not value.isascii() or not value.isprintable() or " " in value:
        raise InvalidInput(name, value, form)


def check_flags(**flags: object) -> None:
    """Raise InvalidInput naming the first argument that is neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidInput(name, value, "give true or false")


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


class Given(NamedTuple):
    """A setting as it was given, not checked yet. source: where, as in 'file PATH' and 'environment VARIABLE'."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of a memory. Raises InvalidInput naming the setting when a value cannot be used.

    Situations and scenes. weights: weight of a feature by kind; kinds not listed weigh `other_weight`.
    identity_floor: a kind that weighs this much or more says who and where; the others are soft.
    self_names: peers that are the agent itself or nobody; they are dropped from situations.
    join_score, recall_score: least score to join a scene, to be recalled by situation (0 to 1, inclusive).
    visits_to_grow: visits of one label until its scene grows. evidence_days: how far apart they may lie.
    situation_features, scene_features: features kept of a turn, of a scene; of the latter at most
    `scene_identity_features` identity features and at least `scene_recent_features` of those met last.

    Language and time. timezone: IANA name; naive times are read in it, and the part of the day is told by it.
    language: of what is written for a prompt, "en" or "zh".

    Upkeep. half_life_days: days of use until what is attached to a scene and not told again weighs half; decay_floor:
    what weighs less is archived. shrink_limit: a step of upkeep that would remove a greater share of what there is
    stops. journal_days: how long operations can be undone.

    The file. busy_timeout: seconds to wait for another writer. durable: fsync each commit (PRAGMA synchronous=FULL).
    read_only: every write is refused with Conflict, scenes included; reading works, and a file is neither made nor
    migrated. data_dir: absolute folder of the memory that the command line uses when none is named, '' for the user's
    data folder.

    Search. ranking: the weights of text recall; a file may hold a table of some of them. search_mode: how words are
    looked for where no mode is given. semantic: embed what is written with the model of the extra `semantic`, and
    recall by meaning as well. search_score_floor: share of the best score that a hit of the search in past sessions
    needs to be shown; recall cuts nothing off but where it is asked to be precise.
    reconcile_on_search: bring the mirror up to date before such a search.

    Scopes and notes. project_memory: False puts everything into the user's own scope. project_identity: what makes two
    folders one project, 'repository' or 'folder'. redact_mirror: secrets in what is mirrored are blackened.
    capture_failures: count failures of tools. incident_threshold: failures that look alike until a warning.
    max_incidents: kept of each scope. incident_max_age_days: days until one that did not come back is dropped.
    remind_unrecorded: remind of a standing wish that nobody wrote down.

    Prompt. inject: False makes every brief empty, for hosts that ask by themselves. max_prompt_chars,
    max_constraint_chars: characters of the ledger and of the constraints; max_lessons_in_prompt: lessons in the former.
    constraint_keys: slots whose notes are constraints. include_usage_hint: say how to remember more. section_order:
    place of the section among those of a host, rising, for hosts that order theirs; none of ours does.

    Writers, who turn sessions into checkpoints and notes. writer_command: a program and its arguments, which reads a
    prompt and prints a text. Or writer_url and writer_model: the address of an OpenAI-compatible endpoint, such as
    http://localhost:11434/v1, and a model there. Its key is no setting: it is read from GRAPHMEM_WRITER_KEY. Without
    either rules write, and nothing leaves this machine. writer_timeout: seconds for one answer. writer_max_retries: how
    often an endpoint that fails is asked again. writer_tokens_per_day: tokens of a day in UTC, question and answer,
    beyond which an endpoint is not asked; 0 for no limit.

    Checkpoints. checkpoint_input_bytes, checkpoint_output_bytes: of what a writer reads at once, and of a checkpoint;
    they belong together. extract_min_turns: how often the user has to have spoken until an idle session gets one;
    extract_max_messages: the newest of which a model is asked for candidates. idle_checkpoint_after: seconds of silence
    until a session gets one; idle_check_every: seconds between two looks. retention_days: days that sessions are kept,
    0 for ever; retention_check_every_days: days between two looks. dream_interval_days, distill_interval_days: days
    from one consolidation of a project, and from one distilling of skills, to the next.

    Hosts (issue 9). ui: serve the panel. route_prefix: path of the older HTTP interface.
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
    read_only: bool = False
    data_dir: str = ""
    ranking: Ranking = Ranking()
    search_mode: str = "hybrid"
    semantic: bool = False
    search_score_floor: float = 0.15
    reconcile_on_search: bool = True
    project_memory: bool = True
    project_identity: str = "repository"
    redact_mirror: bool = True
    capture_failures: bool = True
    incident_threshold: int = 2
    max_incidents: int = 40
    incident_max_age_days: float = 60.0
    remind_unrecorded: bool = True
    inject: bool = True
    max_prompt_chars: int = 1600
    max_constraint_chars: int = 300
    max_lessons_in_prompt: int = 8
    constraint_keys: tuple[str, ...] = ("pen_name", "signature")
    include_usage_hint: bool = True
    section_order: int = 100
    writer_command: tuple[str, ...] = ()
    writer_url: str = ""
    writer_model: str = ""
    writer_tokens_per_day: int = 0
    writer_timeout: float = 120.0
    writer_max_retries: int = 3
    idle_checkpoint_after: float = 3600.0
    idle_check_every: float = 600.0
    retention_days: float = 0.0
    retention_check_every_days: float = 1.0
    dream_interval_days: float = 7.0
    distill_interval_days: float = 30.0
    checkpoint_input_bytes: int = 24_000
    checkpoint_output_bytes: int = 10_240
    extract_min_turns: int = 4
    extract_max_messages: int = 24
    ui: bool = True
    route_prefix: str = "/dsh-memory/api/v1"

    def __post_init__(self) -> None:
        if isinstance(self.ranking, Mapping):
            object.__setattr__(self, "ranking", _ranking_of(self.ranking))
        if not isinstance(self.ranking, Ranking):
            raise InvalidInput("ranking", self.ranking, "give a Ranking, or a table of some of its fields")
        if not isinstance(self.weights, Mapping):
            raise InvalidInput("weights", self.weights, "give a table of kinds and their weights")
        object.__setattr__(self, "weights", MappingProxyType({**KIND_WEIGHTS, **self.weights}))
        object.__setattr__(self, "self_names", frozenset(_names("self_names", self.self_names)))
        object.__setattr__(self, "constraint_keys", _names("constraint_keys", self.constraint_keys))
        object.__setattr__(self, "writer_command", _names("writer_command", self.writer_command))
        for each in dataclasses.fields(self):
            _check(each.name, each.type, getattr(self, each.name))
        for kind, weight in self.weights.items():
            if not isinstance(kind, str) or not _KIND.fullmatch(kind):
                raise InvalidInput("weights", kind, "write a kind as in the keys of features, in small letters: 'chan'")
            check_number(f"weights[{kind}]", weight, low=1e-6, high=1e6)
        for kind in ("peer", "peer_group"):
            if self.weights[kind] < self.identity_floor:
                reason = f"lighter than identity_floor ({self.identity_floor}); people say which situation it is"
                raise InvalidInput(f"weights[{kind}]", self.weights[kind], reason)
        if self.scene_identity_features + self.scene_recent_features > self.scene_features:
            reason = f"more than scene_features ({self.scene_features}) with scene_recent_features; lower one of them"
            raise InvalidInput("scene_identity_features", self.scene_identity_features, reason)
        if "\0" in self.data_dir or (self.data_dir and not os.path.isabs(os.path.expanduser(self.data_dir))):  # noqa: PTH117
            # Relative to the working folder each folder would have a memory of its own.
            raise InvalidInput("data_dir", self.data_dir, "give an absolute path, or one that begins with ~")
        if not _ROUTE.fullmatch(self.route_prefix):
            raise InvalidInput(
                "route_prefix", self.route_prefix, "give a path such as '/memory/v1', with no '/' behind"
            )
        self._check_writer()
        try:
            self.zone  # noqa: B018 (it is looked for)
        except (ValueError, TypeError, OSError, zoneinfo.ZoneInfoNotFoundError):
            raise InvalidInput("timezone", self.timezone, "not a known IANA time zone; try 'Asia/Shanghai'") from None

    def _check_writer(self) -> None:
        if self.writer_command:
            check_program("writer_command", self.writer_command)
        if self.writer_url:
            check_address("writer_url", self.writer_url)
            if self.writer_command:
                raise InvalidInput(
                    "writer_url", self.writer_url, "there is a writer_command too; leave out one of both"
                )
            if not self.writer_model.strip():
                raise InvalidInput("writer_model", self.writer_model, "give the name of a model at writer_url")
        elif self.writer_model:
            raise InvalidInput("writer_model", self.writer_model, "give the writer_url where it is, or leave it out")

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
        cls, path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ, **arguments: Any
    ) -> "Config":
        """Build a Config from a TOML file, GRAPHMEM_* variables and arguments, the later ones winning.

        See `read_settings`; the names of arguments are those of the fields.
        """
        _require_known(arguments)
        return cls(**{name: given.value for name, given in read_settings(path, environ).items()} | arguments)


def require_writing(config: Config, path: str) -> None:
    """Raise Conflict where the settings say that the memory at a path is not to be written."""
    if config.read_only:
        remedy = "leave out the setting read_only, or GRAPHMEM_READ_ONLY, to write to it"
        raise Conflict(f"the memory {path} is read-only, nothing was changed: {remedy}")


def read_settings(
    path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> dict[str, Given]:
    """Return what a TOML file and GRAPHMEM_* variables set, by name; the variables win.

    A file that was named must exist; None reads no file. An unknown setting of the file is refused by name, an unknown
    variable is only logged. Lists are written with commas in a variable, a command as for a shell; `weights` and
    `ranking` have none. Raises InvalidInput.
    """
    found: dict[str, Given] = {}
    if path is not None:
        found = {name: Given(value, f"file {os.fspath(path)}") for name, value in _read_file(path).items()}
        _require_known(found)
    for name, kind in _types().items():
        variable = ENVIRONMENT + name.upper()
        text = None if name in _NO_VARIABLES else environ.get(variable)
        if text is not None:
            found[name] = Given(_parse(name, text, kind), f"environment {variable}")
    known = {name.upper() for name in _types().keys() - _NO_VARIABLES}
    for variable in environ:
        name = variable.removeprefix(ENVIRONMENT)
        if name != variable and name not in _OTHER_VARIABLES and name not in known:
            log.warning("%s is no setting; known are %s", variable, ", ".join(sorted(known)).lower())
    return found


def _types() -> dict[str, Any]:
    return {each.name: each.type for each in dataclasses.fields(Config)}


def _require_known(names: Iterable[str]) -> None:
    known = _types()
    for name in names:
        if name not in known:
            raise InvalidInput("setting", name, f"unknown; the settings are {', '.join(sorted(known))}")


def _read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib takes longer to load than a command may take)
            return tomllib.loads(file.read().decode("utf-8-sig"))  # editors of Windows begin a file with its mark
    except OSError as error:
        raise InvalidInput("config", os.fspath(path), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput("config", os.fspath(path), f"is no TOML: {error}") from error


def _check(name: str, kind: object, value: object) -> None:
    """Raise InvalidInput unless a value is of the kind of its setting and within its bounds."""
    if kind is bool:
        check_flags(**{name: value})
    elif kind is int:
        low, high = _BOUNDS[name]
        check_count(name, value, low=int(low), high=int(high))
    elif kind is float:
        low, high = _BOUNDS[name]
        check_number(name, value, low=low, high=high)
    elif kind is str:
        if not isinstance(value, str):
            raise InvalidInput(name, value, "give a text")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise InvalidInput(name, value, f"give one of {', '.join(_CHOICES[name])}")


def _names(setting: str, value: object) -> tuple[str, ...]:
    """Return the names of a list; raise InvalidInput for what is none."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(setting, value, "give a list of names")
    names = tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(setting, value, "give a list of names")
    return names


def _ranking_of(values: Mapping[str, Any]) -> Ranking:
    known = [each.name for each in dataclasses.fields(Ranking)]
    for name in values:
        if name not in known:
            raise InvalidInput("ranking", name, f"unknown; its fields are {', '.join(known)}")
    return Ranking(**values)


def _config_of(values: dict[str, Any]) -> Config:
    return Config(**values)


def _parse(name: str, text: str, kind: Any) -> Any:
    readers: dict[Any, tuple[Callable[[str], Any], str]] = {
        int: (int, "a whole number"),
        float: (float, "a number"),
        bool: (
            lambda text: {"1": True, "true": True, "0": False, "false": False}[text.strip().lower()],
            "true or false",
        ),
        str: (str, "a text"),
    }
    read, form = readers.get(kind, (_parts, "names with commas between them"))
    if name in _COMMANDS:
        read, form = shlex.split, "a command as a shell reads it, each quotation closed"
    try:
        return read(text)
    except (ValueError, KeyError):
        raise InvalidInput(ENVIRONMENT + name.upper(), text, f"give {form}") from None


def _parts(text: str) -> tuple[str, ...]:
    """Return the parts of a list that is written with commas.

    >>> _parts("pen_name, signature,")
    ('pen_name', 'signature')
    """
    return tuple(part for part in map(str.strip, text.split(",")) if part)


DEFAULT = Config()
