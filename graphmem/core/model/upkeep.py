"""Passes of upkeep, dedupe, the journal, and the memory in numbers. See `graphmem.core.model`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    incidents: int
    sessions: int
    parts: int
    blocks: int
    documents: int
    most_mentioned: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GrowthDay:
    """How many facts, notes, scenes and parts of sessions a day (UTC) brought, of those that are still here."""

    day: str
    relations: int
    notes: int
    scenes: int
    parts: int


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
