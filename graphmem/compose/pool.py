"""What is asked, and what may be shown: candidates are admitted here before anything speaks for them."""

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from graphmem.compose.evidence import Item
from graphmem.core.choices import RECALL_KINDS, RECALL_MODES
from graphmem.core.dates import NamedTime, named_times
from graphmem.core.keys import text_list
from graphmem.core.situations import Situation
from graphmem.core.times import utc_text
from graphmem.core.trust import suffices
from graphmem.errors import InvalidInput
from graphmem.graph import found
from graphmem.graph.found import Holding
from graphmem.graph.neighbours import Edge, Reading, facts_around
from graphmem.records import history, standing
from graphmem.records.history import Turn
from graphmem.store.text_index import Passage, Vocabulary
from graphmem.store.transaction import Transaction

if TYPE_CHECKING:
    from graphmem.compose.meaning import MeaningIndex

_Told = TypeVar("_Told")

# Entities and scenes are names: what is known of them says more, so they come when they are asked for.
DEFAULT_KINDS = RECALL_KINDS[:5]

_LEAST_EFFORT, _MOST_EFFORT = 10, 1_000  # at six candidates each, what a statement of SQLite takes
_EVER = "9999-12-31T23:59:59.999Z"
_SAID_ONCE = ("part", "document", "block")  # what they say does not change, so it was known from then on
_ASKS_THE_PAST = re.compile(
    r"\b(?:replac\w*|former\w*|previous\w*|earlier|used to|supersed\w*|before)\b"
    r"|以前|之前|原来|原先|从前|曾经|旧的|替换|取代|替代|代替",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked, checked. as_of, since, until: stored times. now: the present in the memory's time zone.

    trust: the class of sources of which somebody must have told it, or a more trusted one; None for any. session: that
    parts must be of, '' for any.
    asks_the_past: whether what was superseded is wanted too. named_times: those that the text names.
    """

    text: str
    kinds: tuple[str, ...]
    scopes: Sequence[str] | None
    since: str | None
    until: str | None
    as_of: str | None
    now: dt.datetime
    mode: str
    precise: bool
    limit: int
    explain: bool
    situation: Situation | None
    trust: str | None
    session: str = ""
    asks_the_past: bool = field(init=False)
    named_times: tuple[NamedTime, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "named_times", named_times(self.text, self.now))
        object.__setattr__(self, "asks_the_past", not self.precise and bool(_ASKS_THE_PAST.search(self.text)))

    @property
    def effort(self) -> int:
        """How many hits the work is measured by: a long answer needs more candidates."""
        return min(max(self.limit, _LEAST_EFFORT), _MOST_EFFORT)

    @property
    def timeless(self) -> bool:
        """Whether what was told at any time is wanted."""
        return not (self.since or self.until or self.as_of)

    @property
    def asks_for_now(self) -> bool:
        """Whether all that is live is wanted, whenever it was told."""
        return self.timeless and not (self.asks_the_past or self.named_times)

    @property
    def moment(self) -> str:
        """The instant at which facts must hold."""
        return self.as_of or utc_text(self.now)

    @property
    def indexed_kinds(self) -> set[str]:
        """The kinds of texts that speak for what is wanted: sentences tell facts."""
        return {*self.kinds, *(["sentence"] if "relation" in self.kinds else [])}


def checked_kinds(kinds: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the kinds of hits that are wanted; raise InvalidInput for one that does not exist."""
    if kinds is None:
        return DEFAULT_KINDS
    chosen = tuple(dict.fromkeys(text_list(kinds, "kinds")))
    for kind in chosen:
        if kind not in RECALL_KINDS:
            raise InvalidInput("kinds", kind, f"give some of {', '.join(RECALL_KINDS)}")
    if not chosen:
        raise InvalidInput("kinds", kinds, f"give some of {', '.join(RECALL_KINDS)}, or leave it out")
    return chosen


def checked_mode(mode: str) -> str:
    """Return the mode; raise InvalidInput for one that does not exist."""
    if mode not in RECALL_MODES:
        raise InvalidInput("mode", mode, f"give one of {', '.join(RECALL_MODES)}")
    return mode


@dataclass(slots=True)
class Pool:
    """The items that may be shown, within one transaction.

    within: ids of the scenes that must hold an item, None for all. scene_scores: how well scenes answer the asker.
    told: when each item was said or written, '' where that is not asked for. turns: those that are parts, by id.
    holdings: the open scenes that hold an item; where everything is searched, those of items that are shown.
    passages: those with words of the query. ways: from an entity that is named to the fact, by the entities in between.
    meanings: the vectors of the memory, None without an embedder. nearest: the passage of an item that means the query.
    """

    tx: Transaction
    vocabulary: Vocabulary
    request: Request
    within: Collection[int] | None
    scene_scores: Mapping[int, float]
    meanings: "MeaningIndex | None" = None
    told: dict[Item, str] = field(default_factory=dict)
    turns: dict[int, Turn] = field(default_factory=dict)
    holdings: dict[Item, list[Holding]] = field(default_factory=dict)
    passages: list[tuple[Item, Passage]] = field(default_factory=list)
    ways: dict[Item, tuple[int, ...]] = field(default_factory=dict)
    nearest: dict[Item, Passage] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether no scene decides what may be shown: neither the asker's nor one that was asked for."""
        return self.within is None and self.request.situation is None


def admit(pool: Pool, items: Iterable[Item]) -> None:
    """Look up the items that are new and note those that may be shown."""
    by_kind: dict[str, set[int]] = {}
    for item in items:
        if item not in pool.told:
            by_kind.setdefault(item[0], set()).add(item[1])
    for kind in sorted(by_kind):
        ids = sorted(by_kind[kind])
        if kind == "part":
            if pool.within is None:  # scenes hold no parts
                admit_turns(pool, history.turns(pool.tx, ids, pool.request.scopes, pool.request.session))
            continue
        told = _trusted(pool, kind, _standing(pool, kind, ids))
        if not pool.request.timeless:
            told = {ref_id: at for ref_id, at in told.items() if in_time(pool.request, kind, at)}
        if not pool.is_open:
            seen = _holdings(pool, kind, list(told))
            pool.holdings |= {(kind, ref_id): holdings for ref_id, holdings in seen.items()}
            told = {ref_id: told[ref_id] for ref_id in seen}
        pool.told |= {(kind, ref_id): at for ref_id, at in told.items()}


def admit_turns(pool: Pool, turns: Mapping[int, Turn]) -> None:
    """Note those of some parts that may be shown."""
    request = pool.request
    turns = _trusted(pool, "part", turns)
    if not request.timeless:
        turns = {part: turn for part, turn in turns.items() if in_time(request, "part", turn.at)}
    pool.turns |= turns
    pool.told |= {("part", part): turn.at for part, turn in turns.items()}


def _trusted(pool: Pool, kind: str, told: Mapping[int, _Told]) -> Mapping[int, _Told]:
    """Leave out what nobody told who is trusted enough. Names of entities and scenes tell nothing."""
    least = pool.request.trust
    if least is None or kind in ("entity", "scene"):
        return told
    sources = found.sources(pool.tx, kind, list(told))
    trusted = {ref_id for ref_id, source in sources if suffices(source, least)}
    return {ref_id: each for ref_id, each in told.items() if ref_id in trusted}


def find_holdings(pool: Pool, kind: str, ids: Sequence[int]) -> None:
    """Look up the scenes that hold some items where that was not needed to admit them."""
    if pool.is_open and kind != "part":
        held = found.holders(pool.tx, kind, ids)
        pool.holdings |= {(kind, ref_id): holdings for ref_id, holdings in held.items()}


def admitted(pool: Pool, shares: Mapping[Item, float]) -> dict[Item, float]:
    """Return the shares of the items that may be shown, which are looked up when they are new."""
    admit(pool, shares)
    return {item: share for item, share in shares.items() if item in pool.told}


def visible_edges(pool: Pool, entity_ids: Collection[int], most: int) -> list[Edge]:
    """Return the facts around entities that may be shown: a way must not lead over what others alone know."""
    edges = facts_around(pool.tx, entity_ids, Reading(pool.request.moment, pool.request.scopes), most=most)
    admit(pool, (("relation", edge.id) for edge in edges))
    return [edge for edge in edges if ("relation", edge.id) in pool.told]


def heard(pool: Pool, passages: Sequence[Passage]) -> list[tuple[Item, Passage]]:
    """Return the items of passages that may be shown, which are looked up when they are new, each with its passage."""
    items = _items_of(pool.tx, passages)
    new = {item for item, _ in items if item not in pool.told}
    admit(pool, new)
    shown = items if new.issubset(pool.told) else [each for each in items if each[0] in pool.told]
    if pool.is_open:
        return shown
    shown = [(item, passage) for item, passage in shown if _may_be_heard(pool, item, passage)]
    # What only words found that were said where the asker does not read is not found.
    for item in new.difference(item for item, _ in shown):
        pool.told.pop(item, None)
        pool.holdings.pop(item, None)
    return shown


def _items_of(tx: Transaction, passages: Sequence[Passage]) -> list[tuple[Item, Passage]]:
    """Return the items that passages belong to: a sentence is part of the facts that it told."""
    items = [(passage.item, passage) for passage in passages]
    sentences = [item[1] for item, _ in items if item[0] == "sentence"]
    if not sentences:
        return items
    told = found.told_by(tx, sentences)
    return [
        (one, passage)
        for item, passage in items
        for one in ([("relation", fact) for fact in told.get(item[1], ())] if item[0] == "sentence" else [item])
    ]


def _may_be_heard(pool: Pool, item: Item, passage: Passage) -> bool:
    """Tell whether a sentence was said in a scene that is open here: others may have put the same fact differently."""
    if passage.item[0] != "sentence":
        return True
    return any(holding.sentence_id == passage.item[1] for holding in pool.holdings[item])


def _standing(pool: Pool, kind: str, ids: Sequence[int]) -> Mapping[int, str]:
    tx, request = pool.tx, pool.request
    if kind == "relation":
        return found.standing(tx, ids, request.moment, request.scopes, past=request.asks_the_past)
    if kind == "note" and request.asks_for_now and request.scopes is None:
        gone = standing.withdrawn(tx, ids)
        return {ref_id: "" for ref_id in ids if ref_id not in gone}
    if kind == "note":
        return standing.standing(tx, ids, request.as_of, request.scopes, past=request.asks_the_past)
    if kind == "entity":
        return found.entity_standing(tx, ids, request.scopes)
    if kind == "scene":
        return found.scene_standing(tx, ids)
    return found.text_standing(tx, kind, ids)


def _holdings(pool: Pool, kind: str, ids: Sequence[int]) -> dict[int, list[Holding]]:
    """Return the items that may be shown here, with the scenes that hold them and are open.

    What was told in no scene is for everybody; what only scenes of other people hold is not for this situation.
    """
    held = found.holders(pool.tx, kind, ids)
    situation, within = pool.request.situation, pool.within
    every = [holding for own in held.values() for holding in own]
    closed = set() if situation is None else found.closed_to(pool.tx, situation, every)
    seen: dict[int, list[Holding]] = {}
    for ref_id in ids:
        own = held.get(ref_id, [])
        opened = [one for one in own if one.scene_id not in closed and (within is None or one.scene_id in within)]
        if opened:
            seen[ref_id] = opened
    return seen


def in_time(request: Request, kind: str, at: str) -> bool:
    """Tell whether something told then is of the time that is asked for."""
    bounds = (request.since or at, request.until or _EVER, request.as_of or _EVER)
    return bounds[0] <= at < bounds[1] and (at <= bounds[2] or kind not in _SAID_ONCE)
