"""The verbs of Memory that correct what is stored and keep it in order, and what all of its verbs stand on."""

import contextlib
import datetime as dt
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmem.config import Config, check_count
from graphmem.core.embedding import Embedder
from graphmem.core.model import (
    DedupeReport,
    EditReport,
    EntityMergeReport,
    ForgottenReport,
    Operation,
    Overview,
    PurgeReport,
    UndoReport,
)
from graphmem.core.times import Clock, read_time, utc_text
from graphmem.errors import InvalidInput
from graphmem.graph import scenes as scene_graph
from graphmem.store import text_index, traces, vectors
from graphmem.store.copies import open_copy
from graphmem.store.database import Store, full_path
from graphmem.store.schema import refuse_newer
from graphmem.upkeep import edit, journal, merge, merge_entities, overview, purge
from graphmem.upkeep.purge import Plan

if TYPE_CHECKING:
    import sqlite3


class Maintenance:
    """The upkeep of a memory: the half of `Memory` that a turn never calls."""

    def __init__(self, store: Store, *, config: Config, clock: Clock, embedder: Embedder | None = None) -> None:
        self._store = store
        self._clock = clock
        self._embedder = embedder
        self._last_day = ""
        self.config = config

    @property
    def path(self) -> str:
        """The absolute path of the file, or ':memory:'."""
        return self._store.path

    # ---- facts

    def edit_relation(
        self,
        relation_id: int,
        *,
        subject: str | None = None,
        relation: str | None = None,
        object: str | None = None,  # noqa: A002 (its name in a triple)
        sentence: str | None = None,
        confidence: float | None = None,
    ) -> EditReport:
        """Correct one active fact, and no other; what is not given is kept, so are all its scenes. `undo` reverses it.

        The fact as it was becomes a deleted one. An active fact that is equal to the new one takes its place, in the
        scenes of both. sentence: '' for none; else it told the fact in every scene. Raises NotFound for an id of no
        active fact, InvalidInput for nothing to change and for what no fact can have.
        """
        check_count("relation_id", relation_id, low=1)
        changes = edit.check_changes(edit.Changes(subject, relation, object, sentence, confidence))
        at = self._at(None)
        with self._writing(at) as tx:
            return edit.edit(tx, relation_id, changes, at)

    def delete_relation(self, relation_id: int, *, hard: bool = False) -> PurgeReport:
        """Delete one fact: it is found no more, until it is told again or `undo` brings it back.

        hard: for good, as `purge` does. Raises NotFound for an unknown fact, and for a deleted one unless it is to go
        for good.
        """
        check_count("relation_id", relation_id, low=1)
        return self._purge(lambda tx: purge.plan_delete(tx, relation_id, hard=hard), "delete", hard=hard)

    def purge(
        self,
        *,
        subject_contains: str = "",
        object_contains: str = "",
        relation: str = "",
        entity: str = "",
        session: str = "",
        scope: str = "",
        scene: str = "",
        hard: bool = False,
        dry_run: bool = False,
    ) -> PurgeReport:
        """Forget the facts that meet all criteria, softly, so that `undo` brings them back, or for good.

        subject_contains, object_contains: a part of the name, whatever its letter case and width; no wildcards.
        relation: its whole name. entity: the whole name, or an alias, of what is at either end. session: one they were
        told in, perhaps not the only one. scope: exactly that one. scene: they were told in the scenes at and below
        this key, and nowhere else, also not openly.

        With scope alone its notes go too; with session or scope or both, and nothing else, the sessions of that name
        and scope with their parts, and when the scene alone is given for good the scenes themselves.

        hard: for good, also what was deleted before: with evidence, images in the journal, and the sentences, entities
        and aliases that told of nothing else. The file is then written anew and its -wal emptied, which takes room and
        time as the whole file does; `verify_forgotten` proves it. What is left, such as a sentence that tells other
        facts too, is in the report. An operation whose images went brings back only the others.

        Raises InvalidInput without any criterion, NotFound for an unknown entity, StoreFailed where there is no room.
        """
        criteria = purge.check_criteria(
            subject_contains=subject_contains,
            object_contains=object_contains,
            relation=relation,
            entity=entity,
            session=session,
            scope=scope,
            scene=scene,
        )

        def plan(tx: "sqlite3.Connection") -> Plan:
            return purge.plan_purge(tx, criteria, hard=hard)

        if dry_run:
            with self._store.read() as tx:
                return plan(tx).report
        return self._purge(plan, "purge", hard=hard)

    def overview(self) -> Overview:
        """Return what the memory holds in numbers, and what is mentioned most. Writes nothing."""
        with self._store.read() as tx:
            return overview.overview(tx, self._at(None))

    # ---- upkeep

    def dedupe_scenes(self, *, dry_run: bool = False) -> DedupeReport:
        """Merge scenes whose keys are one in canonical form, rewrite lone keys that are not. `undo` reverses it."""
        if dry_run:
            with self._store.read() as tx:
                return merge.plan_dedupe(tx, self.path)
        at = self._at(None)
        with self._writing(at) as tx:
            report, changed = merge.apply_dedupe(tx, merge.plan_dedupe(tx, self.path), at, self.config)
            _scenes_changed(tx, changed)
        return report

    @staticmethod
    def preview_dedupe(path: str | os.PathLike[str]) -> DedupeReport:
        """Return what a dedupe of a file would do, without changing a byte of the file or its folder.

        Works on backup copies of memories and on files of the reference engine, with or without a -wal beside them.
        Raises Conflict when the file is open in this process or is being written.
        """
        with open_copy(path) as copy:
            refuse_newer(copy.connection, str(path))
            report = merge.plan_dedupe(copy.connection, str(path))
            return replace(report, remarks=(*copy.remarks, *report.remarks))

    def reindex(self, *, progress: Callable[[int, int], None] = lambda done, texts: None) -> int:
        """Make the text index anew from what is stored, also where it is damaged; return the number of texts.

        progress is called with the number of texts done so far and of all texts.
        """
        done = 0
        with self._store.write() as tx:
            text_index.clear(tx)
            texts = text_index.stored(tx)
            for done in text_index.fill(tx):
                progress(done, texts)
        return done

    def embed(self, *, progress: Callable[[int, int], None] = lambda done, texts: None) -> int:
        """Make the vectors of the texts that have none of this embedder; return the number of these texts.

        Each batch is a transaction, so that an embedding that was broken off goes on where it was. progress is called
        with the number of texts done and of all. Raises InvalidInput for a memory without an embedder.
        """
        embedder = self._embedder
        if embedder is None:
            reason = (
                "open the memory with one, or with Config(semantic=True), in a settings file semantic = true, in the "
                "environment GRAPHMEM_SEMANTIC=true; the model of these needs pip install 'graphmem[semantic]'"
            )
            raise InvalidInput("embedder", None, reason)
        done = 0
        with self._store.read() as tx:
            lacking = vectors.count_lacking(tx, embedder.fingerprint)
        for kind in vectors.KINDS:
            last = 0
            while True:
                with self._store.read() as tx:
                    texts = vectors.lacking(tx, embedder.fingerprint, kind, last)
                if not texts:
                    break
                made = vectors.embedded(embedder, texts)
                with self._store.write() as tx:
                    vectors.put_unchanged(tx, embedder.fingerprint, kind, texts, made)
                last = texts[-1].ref_id
                done += len(texts)
                progress(done, max(done, lacking))
        return done

    def operations(self, *, limit: int | None = None) -> tuple[Operation, ...]:
        """Return the journaled operations, the latest first; limit None for all."""
        if limit is not None:
            check_count("limit", limit)
        with self._store.read() as tx:
            return journal.list_operations(tx, limit)

    def undo(self, operation: int, *, dry_run: bool = False) -> UndoReport:
        """Reverse a journaled operation and keep what was written since.

        Raises NotFound for an unknown one; Conflict when it was undone before, when a later operation changed the same
        rows, or when what it removed cannot come back, as after a hard purge.
        """
        check_count("operation", operation, low=1)
        at = self._at(None)
        # A rehearsal does all of it and keeps nothing: so it tells the same numbers, and what stands in the way.
        with self._writing(at, keep=not dry_run) as tx:
            report, changed = journal.undo(tx, operation, at)
            if report.kind == merge_entities.KIND:
                report = replace(report, remarks=merge_entities.give_back(tx, operation))
            merge.settle_features(tx, changed, self.config)
            scene_graph.sweep_refs(tx)  # the journal brings back refs to what was deleted since
            _scenes_changed(tx, changed)
        return replace(report, applied=not dry_run)

    # ---- entities

    def merge_entities(self, source: str, target: str, *, dry_run: bool = False) -> EntityMergeReport:
        """Let two entities be one: what names `source` names `target` from now on, and `source` stays as another name.

        Facts that both had become one, with the greater confidence, the wider time and the evidence of both; facts
        between the two are deleted; of the places in scenes the greater weight is kept. `undo` reverses it, and what
        was told since goes back to the name it was told with. Raises NotFound for an unknown name, Conflict when both
        are one entity already or were said to be apart.
        """
        at = self._at(None)
        with self._store.read() if dry_run else self._writing(at) as tx:
            ids = merge_entities.pair(tx, source, target)
            return merge_entities.plan(tx, *ids) if dry_run else merge_entities.merge(tx, *ids, at)

    # ---- forgetting

    @staticmethod
    def verify_forgotten(path: str | os.PathLike[str], text: str) -> ForgottenReport:
        """Look for a text in all of a file, its -wal and -journal and its payloads; write nothing.

        Looked at are every column of every row, what the text index kept of texts that are gone, and all bytes, free
        pages included; for the text as it is typed, in other letter case and width, as a name, as a key and in JSON.
        What lies in two free pages, a piece in each, is not seen: after a purge for good there are none. Works on
        backup copies too. Raises InvalidInput for a text of which nothing can be seen, StoreFailed for a file that is
        no memory, Conflict when the file is open in this process or is being written.
        """
        wanted = traces.check_text(text)
        with open_copy(path) as copy:
            return ForgottenReport(traces.find(copy, full_path(path), wanted), copy.remarks)

    def _purge(self, plan: "Callable[[sqlite3.Connection], Plan]", kind: str, *, hard: bool) -> PurgeReport:
        at = self._at(None)
        if not hard:
            with self._writing(at) as tx:
                return purge.apply_purge(tx, plan(tx), kind, at)
        traces.require_room(self.path)
        with self._writing(at) as tx, traces.overwriting(tx):
            planned = plan(tx)
            report = purge.apply_purge(tx, planned, kind, at)
            _scenes_changed(tx, planned.gone["scene"])
        return replace(report, remarks=traces.clean(self._store))

    # ---- within

    def _at(self, given: dt.datetime | str | None, argument: str = "at") -> str:
        return utc_text(read_time(self._clock() if given is None else given, self.config.zone, argument=argument))

    @contextlib.contextmanager
    def _writing(self, at: str, *, keep: bool = True) -> "Iterator[sqlite3.Connection]":
        """Open a write transaction whose day is marked as one of use; with keep=False a rehearsal."""
        with self._store.write(keep=keep) as tx:
            yield tx
            self._mark_day(tx, at)
        if keep:
            self._last_day = at[:10]

    def _mark_day(self, tx: "sqlite3.Connection", at: str) -> None:
        if at[:10] != self._last_day:
            tx.execute("INSERT INTO active_days(day) VALUES (?) ON CONFLICT (day) DO NOTHING", (at[:10],))


def _scenes_changed(tx: "sqlite3.Connection", changed: set[int]) -> None:
    """Tell the indexes of scenes and of texts which scenes an operation changed, made or removed."""
    if changed:
        revision = scene_graph.begin_revision(tx)
        revision.changed |= changed
        scene_graph.end_revision(tx, revision)
        text_index.replace(tx, "scene", changed)
