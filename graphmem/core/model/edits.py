"""What was changed by hand: facts and scenes edited, dropped, purged. See `graphmem.core.model`."""

from dataclasses import dataclass


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
    for good. operation: its number, None for a dry run or when there was nothing to do. notes: the ids of notes.
    incidents: how many kinds of failures. parts: how many parts of sessions. scenes: the keys of scenes that are gone.
    entities: the names of entities that are gone. left: what stays and still tells of it, as pairs of kind and id:
    sentences that tell other facts too, documents that name an entity that is gone, notes that were told in a session
    that is. remarks: what could not be cleaned of the file, and the copies beside it, with the remedy. spared: the ids
    of facts that meet the criteria and stay, since they were told elsewhere too: in another session, outside of the
    scenes or openly. spared_in: at most ten keys of other scenes that hold those a purge by scene spared, the one that
    holds most first. sayings: how often spared facts were told in a session that is gone for good.
    """

    relations: tuple[int, ...]
    orphaned: tuple[str, ...]
    hard: bool
    applied: bool
    operation: int | None = None
    notes: tuple[int, ...] = ()
    incidents: int = 0
    parts: int = 0
    scenes: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    left: tuple[tuple[str, int | str], ...] = ()
    remarks: tuple[str, ...] = ()
    spared: tuple[int, ...] = ()
    spared_in: tuple[str, ...] = ()
    sayings: int = 0


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
    remarks: tuple[str, ...] = ()
