"""The values that come in and go out: triples, visits, what is recalled, reports. All frozen, all plain Python."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphmem.config import check_number
from graphmem.core.keys import name_problem
from graphmem.core.times import read_time
from graphmem.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact to remember: subject, relation, object, and the sentence that said it.

    confidence lies above 0 and is at most 1. valid_from and valid_to (half-open) say when the fact holds in the world.
    A functional relation has one value at a time: a new one closes the old one. One that had successive values stays
    functional, also when that is left out.

    >>> Triple("老大", "偏好", "纯文本", confidence=0.9).object
    '纯文本'
    """

    subject: str
    relation: str
    object: str
    sentence: str = field(default="", kw_only=True)
    confidence: float = field(default=1.0, kw_only=True)
    valid_from: dt.datetime | str | None = field(default=None, kw_only=True)
    valid_to: dt.datetime | str | None = field(default=None, kw_only=True)
    functional: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.sentence, str):
            raise InvalidInput("sentence", self.sentence, "give the sentence as text")
        check_number("confidence", self.confidence, low=0.0, high=1.0)
        if not self.confidence:
            raise InvalidInput("confidence", self.confidence, "give a number above 0; leave it out when it is unknown")
        if not isinstance(self.functional, bool):
            raise InvalidInput("functional", self.functional, "give true or false")
        for name in ("valid_from", "valid_to"):
            if getattr(self, name) is not None:
                read_time(getattr(self, name), dt.UTC, argument=name)


def triple_problem(triple: Triple) -> str:
    """Return why a triple cannot be written, '' when it can.

    >>> triple_problem(Triple("", "likes", "tea"))
    'subject: nothing that can be seen is left of the name'
    """
    names = {"subject": triple.subject, "relation": triple.relation, "object": triple.object}
    return next((f"{end}: {reason}" for end, name in names.items() if (reason := name_problem(name))), "")


@dataclass(frozen=True, slots=True)
class Visit:
    """What entering a scene came to.

    key: the scene that grew from such situations, '' while there is none (and '' given to a recall means all scenes).
    created: it grew just now. keys: declared keys, then the visited scene; for reading them exactly, and never for
    writing, since others read them too. write_keys: where new facts of this turn belong, and nowhere else.
    similarity: how well the scene fitted before this visit, 0 to 1. strength: the scene's, this visit counted.
    """

    key: str = ""
    created: bool = False
    similarity: float = 0.0
    strength: int = 0
    keys: tuple[str, ...] = ()
    write_keys: tuple[str, ...] = ()
    declared_created: tuple[str, ...] = ()

    @property
    def primary(self) -> str:
        """The visited scene, else the first declared one, else ''."""
        return self.key or next(iter(self.keys), "")

    @property
    def emergent(self) -> bool:
        """Whether a scene that grew by itself was visited."""
        return bool(self.key)


@dataclass(frozen=True, slots=True)
class DeclaredScene:
    """A scene that a person or a program named."""

    key: str
    created: bool
    strength: int


@dataclass(frozen=True, slots=True)
class Scene:
    """One row of `scenes`. features and refs are counts; refs to relations that do not hold now do not count."""

    key: str
    origin: str
    strength: int
    visits: int
    features: int
    refs: int
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class SharedFeature:
    """A feature that a situation and a scene have in common, with its weight in each."""

    feature: str
    here: float
    there: float


@dataclass(frozen=True, slots=True)
class SceneMatch:
    """A scene that answers a situation: its score, the features they share, and whether it is the one to be joined.

    ground: 'person' when it answers because it names the same people, else 'score'.
    """

    key: str
    score: float
    joins: bool
    ground: str
    strength: int
    shared: tuple[SharedFeature, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Visits that no scene answered yet, counted under the label of the scene that may grow from them."""

    label: str
    count: int
    updated_at: str


@dataclass(frozen=True, slots=True)
class RecalledRelation:
    """A fact brought back. weight ranks it: of its ref in the scene, times the scene's score where there is one.

    sentence: the last one that told it in that scene. valid_from, valid_to: when it holds, None where that is open.
    """

    id: int
    subject: str
    relation: str
    object: str
    sentence: str
    confidence: float
    weight: float
    updated_at: str
    valid_from: str | None
    valid_to: str | None


@dataclass(frozen=True, slots=True)
class RecalledEntity:
    """An entity brought back."""

    id: int
    name: str
    type: str
    mentions: int
    weight: float


@dataclass(frozen=True, slots=True)
class RecalledBlock:
    """A block brought back, without its payload: `Memory.block` gives that."""

    id: str
    modality: str
    text: str
    mime: str
    size: int
    source: str
    semantic_type: str
    weight: float
    created_at: str


@dataclass(frozen=True, slots=True)
class RecalledDocument:
    """A document brought back by its summary: `Memory.query_documents` and `consume_document` give the text."""

    id: str
    summary: str
    source: str
    weight: float
    created_at: str


@dataclass(frozen=True, slots=True)
class Recollection:
    """What scenes brought back, best first. scenes: the keys of those that took part."""

    scenes: tuple[str, ...] = ()
    relations: tuple[RecalledRelation, ...] = ()
    entities: tuple[RecalledEntity, ...] = ()
    blocks: tuple[RecalledBlock, ...] = ()
    documents: tuple[RecalledDocument, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.relations or self.entities or self.blocks or self.documents)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A triple that was not written: its place in the batch, itself, and why."""

    index: int
    triple: Triple
    reason: str


@dataclass(frozen=True, slots=True)
class CommitReport:
    """What a commit wrote. relations holds an id for each triple in order, None for a refused one.

    created: facts new to the memory, or active again. repeated: facts that were known. superseded: older values closed.
    """

    created: int
    repeated: int
    superseded: int
    refused: tuple[Refusal, ...]
    relations: tuple[int | None, ...]
    scenes: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def written(self) -> int:
        """The number of triples that were written; 0 means that nothing was remembered."""
        return self.created + self.repeated


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a session, verbatim: a message, or what a tool answered.

    id: what its host calls it, unique within the session. at: when it was said, None where that is unknown.
    """

    id: str
    author: str = field(default="", kw_only=True)
    role: str = field(default="", kw_only=True)
    text: str = field(kw_only=True)
    at: dt.datetime | str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("id", "author", "role", "text"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(name, getattr(self, name), "give a text")
        if not self.id.strip():
            raise InvalidInput("id", self.id, "give each part an id, so that telling it twice changes nothing")
        if self.at is not None:
            read_time(self.at, dt.UTC)


@dataclass(frozen=True, slots=True)
class MirrorReport:
    """What mirroring came to: new parts, parts told otherwise than before, parts that were known."""

    session: str
    added: int
    changed: int
    known: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A curated memory: a fact, a lesson, a rule. slot: what it is about, one live note of a scope each.

    status: live, proposed, archived, superseded or forgotten. seen: how often the same was remembered.
    superseded_by: the id of the note that took its slot. created_at, updated_at: for when it was told first, and last.
    """

    id: int
    kind: str
    title: str
    body: str
    slot: str
    labels: tuple[str, ...]
    scope: str
    status: str
    pinned: bool
    source: str
    seen: int
    created_at: str
    updated_at: str
    superseded_by: int | None


@dataclass(frozen=True, slots=True)
class RememberReport:
    """What remembering came to: the note; whether it is new; the ids of the notes whose slot it took."""

    note: Note
    created: bool
    superseded: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """What search needs to know of an item: when it was said or written, and whether it is current or superseded."""

    at: str | None
    current: bool


@dataclass(frozen=True, slots=True)
class Reason:
    """One part of a hit's score: value (0 to 1) times weight was added. told: how it came to it, for people."""

    part: str
    value: float
    weight: float
    told: str


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that answers a query. id: that of its kind; the given id for a part, a key for a scene.

    score: 0 to 1, comparable within one answer. source: who told it, for a part `session/author`. at: when it was said
    or written, UTC. scenes: keys of scenes that hold it. status: live or active, or superseded where the query asks for
    the past. why: what the score is made of, heaviest first; empty unless asked for.
    """

    kind: str
    id: int | str
    text: str
    score: float
    source: str = ""
    at: str = ""
    scenes: tuple[str, ...] = ()
    status: str = "active"
    pinned: bool = False
    why: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class TagReport:
    """What tagging attached: relations newly in the scene, those that were there, ids of no active fact.

    created: the scene is new, or with applied=False would be. operation: its number, for undo; None for a dry run or
    when nothing changed.
    """

    key: str
    attached: tuple[int, ...]
    known: tuple[int, ...]
    unknown: tuple[int, ...]
    applied: bool
    operation: int | None = None
    created: bool = False


@dataclass(frozen=True, slots=True)
class TwinScene:
    """One spelling of a scene within a group of twins."""

    id: int
    key: str
    origin: str
    strength: int
    features: int
    refs: int


@dataclass(frozen=True, slots=True)
class TwinGroup:
    """Scenes whose normalised keys are equal; the first one survives under that key and takes in the others."""

    key: str
    origin: str
    strength: int
    features: int
    refs: int
    refs_moved: int
    refs_folded: int
    members: tuple[TwinScene, ...]


@dataclass(frozen=True, slots=True)
class DedupeReport:
    """What a dedupe did, or with applied=False what it would do; the numbers are the same.

    merged: rows removed. rewritten: (old, new) keys of lone scenes whose key was not normalised.
    operation: its number, for undo; None for a dry run or when there was nothing to do.
    """

    groups: tuple[TwinGroup, ...]
    rewritten: tuple[tuple[str, str], ...]
    merged: int
    scenes_before: int
    scenes_after: int
    applied: bool
    operation: int | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EditReport:
    """What an edit did: the id of the fact as it was, which is deleted, and of the fact in its place.

    They are equal, and there is no operation, when the fact was so already. scenes: the keys of those that hold it.
    operation: its number, for undo.
    """

    old: int
    new: int
    scenes: tuple[str, ...]
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge or a deletion removed, or with applied=False what it would.

    relations: the ids of the facts. orphaned: names of entities that are left without a fact; they stay. hard: removed
    for good. operation: its number, None for a dry run or when there was nothing to do. notes: the ids of notes. parts:
    how many parts of sessions. scenes: the keys of scenes that are gone. entities: the names of entities that are gone.
    left: what stays and still tells of it, as pairs of kind and id: sentences that tell other facts too, documents that
    name an entity that is gone. remarks: what could not be cleaned of the file, and the copies beside it, with the
    remedy. spared: the ids of
    facts that meet the criteria and stay, since they were told elsewhere too: in another session, outside of the scenes
    or openly. spared_in: at most ten keys of other scenes that hold those a purge by scene spared, the one that holds
    most first. sayings: how often spared facts were told in a session that is gone for good.
    """

    relations: tuple[int, ...]
    orphaned: tuple[str, ...]
    hard: bool
    applied: bool
    operation: int | None = None
    notes: tuple[int, ...] = ()
    parts: int = 0
    scenes: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    left: tuple[tuple[str, int | str], ...] = ()
    remarks: tuple[str, ...] = ()
    spared: tuple[int, ...] = ()
    spared_in: tuple[str, ...] = ()
    sayings: int = 0


@dataclass(frozen=True, slots=True)
class FoldedFact:
    """Two facts that became equal: the id of the one that is gone, and of the one that took it in."""

    gone: int
    kept: int


@dataclass(frozen=True, slots=True)
class EntityMergeReport:
    """What merging one entity into another did, or with applied=False what it would.

    source, target: their names. moved: ids of the facts that now name the target. folded: facts that both had. loops:
    ids of facts between the two, which are deleted. refs_moved, refs_folded: places in scenes. aliases: names, in
    canonical form, that mean the target from now on. mentions: of both together. operation: its number, for undo.
    """

    source: str
    target: str
    moved: tuple[int, ...]
    folded: tuple[FoldedFact, ...]
    loops: tuple[int, ...]
    refs_moved: int
    refs_folded: int
    aliases: tuple[str, ...]
    mentions: int
    applied: bool
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class UpkeepStep:
    """One step of a pass. state: done, nothing (to do), would (a dry run), stopped (it would have lost too much).

    told: in one line what was done, would be done, or stopped it. before, after: rows by kind, of what it shrinks.
    operations: their numbers, for undo.
    """

    name: str
    state: str
    told: str
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    operations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """What a pass of upkeep did, or with applied=False what it would do, step by step.

    ok: no step was stopped, and the file is sound.
    """

    steps: tuple[UpkeepStep, ...]
    ok: bool
    applied: bool


@dataclass(frozen=True, slots=True)
class WalState:
    """What a checkpoint left of the write-ahead log. frames: pages in it; copied: those that are in the database too.

    busy: readers or a writer kept it from being done. size: bytes of the log.
    """

    busy: bool
    frames: int
    copied: int
    size: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What a memory holds, in numbers. relations: facts that hold now; relations_total: of every time and status.

    most_mentioned: pairs of name and mentions, at most ten, the most mentioned first.
    """

    entities: int
    relations: int
    relations_total: int
    scenes: int
    sentences: int
    notes: int
    sessions: int
    parts: int
    blocks: int
    documents: int
    most_mentioned: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """A journaled change: when, what, in numbers, and whether it was undone. about: names of some that it changed."""

    id: int
    kind: str
    at: str
    summary: Mapping[str, Any]
    undone_at: str | None
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UndoReport:
    """What an undo put back, or with applied=False what it would: rows restored, removed, changed back.

    remarks: what later writes made of it that stays as it is, each with the remedy.
    """

    operation: int
    kind: str
    restored: int
    removed: int
    changed: int
    applied: bool
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """Text for a prompt, '' when there is nothing to tell.

    shown, left_out: what it tells of, and what was recalled and found no room, as pairs of kind and id, best first.
    scenes: the keys of the scenes that took part.
    """

    text: str = ""
    shown: tuple[tuple[str, int | str], ...] = ()
    left_out: tuple[tuple[str, int | str], ...] = ()
    scenes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a replay left behind in one scene: the scene, and the facts it brings back."""

    scene: Scene
    relations: tuple[RecalledRelation, ...]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replayed log came to."""

    turns: int
    unplaced: int
    facts: int
    refused: int
    seconds: float
    learnt: tuple[Learnt, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity of a neighbourhood: hops from what was looked for, 0 for what was found by its name.

    tier: how its name was found, 'exact', 'prefix' or 'contains'; '' for one that was reached by a fact.
    """

    id: int
    name: str
    type: str
    mentions: int
    hops: int
    tier: str


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities found by their names and what facts lead to from there, the nearest first. Falsy when nothing was found.

    keywords: what was looked for, in canonical form. relations: facts of the entities within reach, each once.
    """

    keywords: tuple[str, ...] = ()
    entities: tuple[Neighbour, ...] = ()
    relations: tuple[RecalledRelation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entities)


@dataclass(frozen=True, slots=True)
class FactPath:
    """The shortest way of facts from one entity to another. connected: whether there is one.

    steps: its facts in order, each told in its own direction; none when the two are one entity, or not connected.
    """

    start: str
    end: str
    connected: bool
    steps: tuple[RecalledRelation, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A text, or a picture, video or sound with the text that describes it.

    id: made of the content. digest: SHA-256 of the payload in hex, '' without one. size: bytes of the payload.
    width, height: pixels. payload: None when there is none or it was not asked for.
    """

    id: str
    modality: str
    text: str
    mime: str
    size: int
    digest: str
    width: int | None
    height: int | None
    source: str
    tool: str
    semantic_type: str
    scenes: tuple[str, ...]
    created_at: str
    updated_at: str
    payload: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """A text kept as a whole, with what it is about. id: made of the text. blocks: the ids of the blocks it came with.

    access_count, last_access: how often `query_documents` returned it, and when last.
    """

    id: str
    summary: str
    text: str
    source: str
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    blocks: tuple[str, ...]
    scenes: tuple[str, ...]
    access_count: int
    last_access: str | None
    created_at: str


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What became of a document turned into facts.

    bound: blocks put into the scenes of the facts. unbound: blocks that are in no scene, for which it is kept.
    removed: the document is gone, since something was written and every block of it is in a scene.
    """

    id: str
    facts: CommitReport
    bound: tuple[str, ...]
    unbound: tuple[str, ...]
    removed: bool


@dataclass(frozen=True, slots=True)
class SimilarEntity:
    """One entity of a pair. sentence: the last one that told a fact of it, '' where there is none."""

    id: int
    name: str
    mentions: int
    sentence: str


@dataclass(frozen=True, slots=True)
class EntityPair:
    """Two entities that may be one; `a` is the one mentioned more, into which the other would be merged.

    similarity: of their names, 0 to 1. score: that, lifted by the neighbours that both have. shared: names of some of
    these, the most mentioned first. titled: one name is the other behind a title. machine: an arbiter may decide it;
    where digits, a version or a suffix differ, only a person may.
    """

    a: SimilarEntity
    b: SimilarEntity
    score: float
    similarity: float
    shared: tuple[str, ...]
    titled: bool
    machine: bool


@dataclass(frozen=True, slots=True)
class EntityReview:
    """Pairs of entities that may be one, best first. more: there are further ones. apart: pairs that are kept apart."""

    pairs: tuple[EntityPair, ...]
    more: bool
    entities: int
    apart: int
    remarks: tuple[str, ...] = ()


class Arbiter(Protocol):
    """What decides whether two entities are one."""

    def __call__(self, pair: EntityPair, /) -> str | None:
        """Return 'merge', 'apart', or None to leave the pair to a person."""
        ...


@dataclass(frozen=True, slots=True)
class ApartReport:
    """What keeping two entities apart came to: their names, and whether they are apart now.

    rounds: reviews of upkeep that still pass them over, None for all. operation: its number, for undo; None when it was
    so already.
    """

    a: str
    b: str
    apart: bool
    rounds: int | None
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of a pair that an arbiter was asked about.

    outcome: merge, apart, leave (to a person), or changed: others changed the pair meanwhile, and it stays as it is.
    operation: its number, for undo; None when nothing was changed.
    """

    a: str
    b: str
    outcome: str
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class SettleReport:
    """What an arbiter decided, pair by pair, and how many of each outcome there were."""

    pairs: tuple[Settlement, ...]

    @property
    def merged(self) -> int:
        """The number of pairs that are one now."""
        return self._count("merge")

    @property
    def apart(self) -> int:
        """The number of pairs that are kept apart now."""
        return self._count("apart")

    @property
    def left(self) -> int:
        """The number of pairs that a person has to decide."""
        return self._count("leave")

    @property
    def changed(self) -> int:
        """The number of pairs that others changed meanwhile."""
        return self._count("changed")

    def _count(self, outcome: str) -> int:
        return sum(pair.outcome == outcome for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds. bytes: of the file. counts: its rows by table. payloads: files copied to `<path>.blobs`."""

    path: str
    bytes: int
    counts: Mapping[str, int]
    payloads: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored from where. kept: where the old file lies now, '' when there was none; the rest as in a backup.

    remarks: on how the source was read, and on payloads that it lacks.
    """

    path: str
    source: str
    kept: str
    bytes: int
    counts: Mapping[str, int]
    payloads: int
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found. problems: a line each, with table, row and remedy; none when the memory is sound.

    sizes: bytes of the database, of its -wal, of its payload files.
    """

    problems: tuple[str, ...]
    sizes: Mapping[str, int]
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair mended, or with applied=False what it would. left: what it cannot mend, with the remedy.

    operations: those that `undo` reverses; the others made anew what is derived.
    """

    mended: tuple[str, ...]
    left: tuple[str, ...]
    applied: bool
    operations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RenameReport:
    """What a rename did, or with applied=False what it would: the keys and the origins before and after.

    operation: its number, for undo; None for a dry run or when the scene has that key already.
    """

    old: str
    new: str
    old_origin: str
    origin: str
    applied: bool
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class DropReport:
    """The keys of the scenes that were dropped, or with applied=False would be, and what went with them, in numbers.

    unplaced: facts that are then in no scene and were not told openly; they are recalled only without a situation.
    operation: its number, for undo; None for a dry run.
    """

    scenes: tuple[str, ...]
    features: int
    refs: int
    aliases: int
    unplaced: int
    applied: bool
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class UntagReport:
    """What was taken out of a scene: its facts, those that were not there, ids of no fact.

    entities: how many went with them, since no other fact of the scene has them as an end. operation: its number, for
    undo; None for a dry run or when nothing changed.
    """

    key: str
    removed: tuple[int, ...]
    absent: tuple[int, ...]
    unknown: tuple[int, ...]
    entities: int
    applied: bool
    operation: int | None = None


@dataclass(frozen=True, slots=True)
class ResetReport:
    """What a reset of the emergent scenes removed, or with applied=False would remove, in numbers.

    labels: situations without a scene yet. unplaced: as in `DropReport`. operation: its number, for undo; None for a
    dry run or when there was nothing to do. backup: the path of the backup made before, '' where none was.
    """

    scenes: int
    features: int
    refs: int
    aliases: int
    labels: int
    unplaced: int
    applied: bool
    operation: int | None = None
    backup: str = ""


@dataclass(frozen=True, slots=True)
class SceneHealth:
    """How well scenes do their work, in numbers.

    holding_nothing: scenes without a ref to what holds now, with the sums of their visits and of their strength.
    without_features: scenes that hold something and have no features, so that no situation leads to them; at most ten
    of their keys. kinds: how many keys begin with each kind, the most first; 'auto:chan' for one that grew from a
    channel, '' and 'auto:' for one of no kind. twins: groups that a dedupe would merge. not_canonical: keys that
    normalising would change. labels_waiting: situations without a scene yet. oldest_visit, newest_visit: when the scene
    left longest ago, and the latest one, was visited last or made.
    """

    scenes: int
    emergent: int
    declared: int
    holding_nothing: int
    visits_for_nothing: int
    strength_for_nothing: int
    without_features: int
    some_without_features: tuple[str, ...]
    kinds: tuple[tuple[str, int], ...]
    twins: int
    not_canonical: int
    labels_waiting: int
    oldest_visit: str | None
    newest_visit: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a text still is: a column as `table.column`, the text index, or a file; in a copy after its path and `: `.

    count: rows, terms, or pages of 4 KiB. offset: of the first one in a file, in bytes; None elsewhere.
    """

    where: str
    count: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class ForgottenReport:
    """What is left of a text in a file and in those beside it. remarks: on how the files were read."""

    found: tuple[Trace, ...]
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is left."""
        return not self.found


@dataclass(frozen=True, slots=True)
class KeptApart:
    """Two entities that are kept apart since a time, in UTC. rounds: how many passes of upkeep yet, None for all."""

    a: str
    b: str
    since: str
    rounds: int | None
