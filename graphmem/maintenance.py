"""The verbs of Memory that correct what is stored and keep it in order, and what all of its verbs stand on."""

from __future__ import annotations

import contextlib
import contextvars
import datetime as dt
import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmem import arguments, log
from graphmem.config import Config, check_count, check_flags, check_number
from graphmem.core import model
from graphmem.core.addresses import is_server
from graphmem.core.keys import clean_text, require_key, require_texts, text_list
from graphmem.core.times import Clock, read_time, utc_text
from graphmem.errors import Conflict, GraphmemError, InvalidInput
from graphmem.graph import scenes as scene_graph
from graphmem.late import late
from graphmem.store.database import full_path
from graphmem.store.opening import ON_SERVER, is_file, open_store, state_on_server
from graphmem.store.schema import VERSION, is_current, refuse_newer, require_memory
from graphmem.store.transaction import Store, Transaction

if TYPE_CHECKING:
    from graphmem.core import embedding, redaction
    from graphmem.records import scopes as scope_rows
    from graphmem.records import trees as tree_rows
    from graphmem.records import usage
    from graphmem.store import backups, copies, postings, text_index, traces, vectors
    from graphmem.upkeep import (
        check,
        detectors,
        edit,
        journal,
        loop,
        merge,
        merge_entities,
        overview,
        purge,
        repeating,
        review,
        scenes,
        screening,
    )
    from graphmem.upkeep.purge import Plan
    from graphmem.upkeep.repeating import Repeating
else:
    backups = late("graphmem.store.backups")
    check = late("graphmem.upkeep.check")
    copies = late("graphmem.store.copies")
    detectors = late("graphmem.upkeep.detectors")
    edit = late("graphmem.upkeep.edit")
    embedding = late("graphmem.core.embedding")
    journal = late("graphmem.upkeep.journal")
    loop = late("graphmem.upkeep.loop")
    merge = late("graphmem.upkeep.merge")
    merge_entities = late("graphmem.upkeep.merge_entities")
    overview = late("graphmem.upkeep.overview")
    postings = late("graphmem.store.postings")
    purge = late("graphmem.upkeep.purge")
    redaction = late("graphmem.core.redaction")
    repeating = late("graphmem.upkeep.repeating")
    review = late("graphmem.upkeep.review")
    scope_rows = late("graphmem.records.scopes")
    tree_rows = late("graphmem.records.trees")
    scenes = late("graphmem.upkeep.scenes")
    screening = late("graphmem.upkeep.screening")
    text_index = late("graphmem.store.text_index")
    traces = late("graphmem.store.traces")
    usage = late("graphmem.records.usage")
    vectors = late("graphmem.store.vectors")

_LOOKING = contextvars.ContextVar("looking", default=False)  # see `Maintenance.looking`
_MOST_DAYS = 3_660
_NO_BACKUP = f"no backup is made before a reset on a server, and 'graphmem undo' reverses it; {ON_SERVER}"


class Maintenance:
    """The upkeep of a memory, and what all its verbs share: transactions, scopes, times, uses."""

    def __init__(
        self, store: Store, *, config: Config, clock: Clock, embedder: embedding.Embedder | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._embedder = embedder
        self._last_day = ""
        self._uses: Counter[int] = Counter()  # of notes, until the next write
        self._uses_lock = threading.Lock()
        self._project: model.Project | None = None
        self._session = ""
        self._upkeep: Repeating[model.UpkeepReport] | None = None
        self._closing = threading.Event()
        self.config = config

    def close(self) -> None:
        """Close the file. Closing twice does nothing; any other verb on a closed memory raises Conflict."""
        self._closing.set()
        if self._upkeep is not None:
            self._upkeep.stop()
        if self._uses:
            self._write_last_uses()
        self._store.close()

    @property
    def path(self) -> str:
        """The absolute path of the file, ':memory:', or the address of the tenant without its password."""
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
    ) -> model.EditReport:
        """Correct one active fact, and no other; what is not given is kept, so are all its scenes. `undo` reverses it.

        The fact as it was becomes a deleted one. An active fact that is equal to the new one takes its place, in the
        scenes of both. sentence: '' for none; else it told the fact in every scene. Raises NotFound for an id of no
        active fact, InvalidInput for nothing to change and for what no fact can have, SecretRefused for a secret.
        """
        check_count("relation_id", relation_id, low=1)
        redaction.refuse_secrets(subject=subject, relation=relation, object=object, sentence=sentence)
        changes = edit.check_changes(edit.Changes(subject, relation, object, sentence, confidence))
        at = self._at(None)
        with self._writing(at) as tx:
            return edit.edit(tx, relation_id, changes, at)

    def delete_relation(self, relation_id: int, *, hard: bool = False) -> model.PurgeReport:
        """Delete one fact: it is found no more, until it is told again or `undo` brings it back.

        hard: for good, as `purge` does. Raises NotFound for an unknown fact, and for a deleted one unless it is to go
        for good.
        """
        check_flags(hard=hard)
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
    ) -> model.PurgeReport:
        """Forget the facts that meet all criteria, softly, so that `undo` brings them back, or for good.

        subject_contains, object_contains: a part of the name, whatever its letter case and width; no wildcards.
        relation: its whole name. entity: the whole name, or an alias, of what is at either end. session: they were told
        in this session, and in no other. scope: exactly that one, by its key or by "user", "project" or "session".
        scene: they were told in the scenes at and below this key, and nowhere else, also not openly. Facts told
        elsewhere too are spared, as the report says; for good, what the session told of them goes, with its sentences
        that nothing else uses. To take these too, name an entity, or purge for good by each session or scene that tells
        them.

        With scope alone its notes and incidents go too; with session or scope or both, and nothing else, the sessions
        of that name and scope with their parts, and when the scene alone is given for good the scenes themselves.

        hard: for good, also what was deleted before: with evidence, images in the journal, and the sentences, entities
        and aliases that told of nothing else. The file is then written anew and its -wal emptied, which takes room and
        time as the whole file does; `verify_forgotten` proves it. What is left, such as a sentence that tells other
        facts too, is in the report, as are copies that graphmem left beside the file: they are never removed. An
        operation whose images went brings back only the others.

        Raises InvalidInput without any criterion, NotFound for an entity, session, scope or scene of which nothing is
        known, also not of what was deleted, StoreFailed where there is no room.
        """
        check_flags(hard=hard, dry_run=dry_run)
        criteria = purge.check_criteria(
            subject_contains=subject_contains,
            object_contains=object_contains,
            relation=relation,
            entity=entity,
            session=session,
            scope=None if scope == "" else self._scope(scope),
            scene=scene,
        )

        def plan(tx: Transaction) -> Plan:
            return purge.plan_purge(tx, criteria, hard=hard)

        if dry_run:
            with self._store.read() as tx:
                report = plan(tx).report
            return replace(report, remarks=traces.copies_remark(self.path)) if hard else report
        return self._purge(plan, "purge", hard=hard)

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Let nothing that is brought back here count as used: a person looks, and no agent is helped by it.

        >>> from graphmem.memory import Memory
        >>> with Memory.open(":memory:") as memory, memory.looking():
        ...     memory.recall("panel")
        ()
        """
        token = _LOOKING.set(True)
        try:
            yield
        finally:
            _LOOKING.reset(token)

    def watch(self) -> AbstractContextManager[Callable[[], bool]]:
        """Return a context with a function: was the memory changed since it was asked last, by whatever process?

        >>> from graphmem import Memory
        >>> with Memory.open(":memory:") as memory, memory.watch() as is_changed:
        ...     told = memory.remember("Deploy with pnpm")
        ...     is_changed(), is_changed()
        (True, False)
        """
        return self._store.watching()

    def overview(self) -> model.Overview:
        """Return what the memory holds in numbers, in all scopes, and what is mentioned most. Writes nothing.

        Named are those that the user's own facts tell of, or facts of the current project and session.
        """
        with self._store.read() as tx:
            return overview.overview(tx, self._at(None), self._scopes(tx, None))

    def growth(self, *, days: int = 30) -> tuple[model.GrowthDay, ...]:
        """Return what each of the last days (UTC) brought, today last, in all scopes. Writes nothing."""
        check_count("days", days, low=1, high=_MOST_DAYS)
        with self._store.read() as tx:
            return overview.growth(tx, self._at(None), days)

    # ---- upkeep

    def dedupe_scenes(self, *, dry_run: bool = False) -> model.DedupeReport:
        """Merge scenes whose keys are one in canonical form, rewrite lone keys that are not. `undo` reverses it."""
        check_flags(dry_run=dry_run)
        if dry_run:
            with self._store.read() as tx:
                return merge.plan_dedupe(tx, self.path)
        at = self._at(None)
        with self._writing(at) as tx:
            report, changed = merge.apply_dedupe(tx, merge.plan_dedupe(tx, self.path), at, self.config)
            _scenes_changed(tx, changed)
        return report

    @staticmethod
    def preview_dedupe(path: str | os.PathLike[str], *, copied: bool = True) -> model.DedupeReport:
        """Return what a dedupe of a file would do, without changing a byte of the file or its folder.

        Works on backup copies of memories and on files of the reference engine, with or without a -wal beside them.
        copied: False for a memory where it was made, so that no -wal is missed. Raises Conflict when the file is open
        in this process or is being written.
        """
        check_flags(copied=copied)
        with copies.open_copy(path, copied=copied) as copy:
            refuse_newer(copy.connection, str(path))
            report = merge.plan_dedupe(copy.connection, str(path))
            return replace(report, remarks=(*copy.remarks, *report.remarks))

    def reindex(self, *, progress: Callable[[int, int], None] = lambda done, texts: None) -> int:
        """Make the text index anew from what is stored, also where it is damaged; return the number of texts.

        progress is called with the number of texts done so far and of all texts.
        """
        done = 0
        with self._store.write() as tx:
            tx.words.clear(tx)
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
        self._store.require_writing()
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

    def operations(self, *, limit: int | None = None) -> tuple[model.Operation, ...]:
        """Return the journaled operations, the latest first; limit None for all."""
        if limit is not None:
            check_count("limit", limit)
        with self._store.read() as tx:
            return journal.list_operations(tx, limit)

    def undo(self, operation: int, *, dry_run: bool = False) -> model.UndoReport:
        """Reverse a journaled operation and keep what was written since.

        Raises NotFound for an unknown one; Conflict when it was undone before, when a later operation changed the same
        rows, or when what it removed cannot come back, as after a hard purge.
        """
        check_flags(dry_run=dry_run)
        check_count("operation", operation, low=1)
        at = self._at(None)
        # A rehearsal does all of it and keeps nothing: so it tells the same numbers, and what stands in the way.
        with self._writing(at, keep=not dry_run) as tx:
            report, changed = journal.undo(tx, operation, at, {merge_entities.KIND: merge_entities.put_back})
            merge.settle_features(tx, changed, self.config)
            scene_graph.sweep_refs(tx)  # the journal brings back refs to what was deleted since
            _scenes_changed(tx, changed)
        return replace(report, applied=not dry_run)

    def upkeep(
        self, *, dry_run: bool = False, allow_shrink: bool = False, arbiter: model.Arbiter | None = None
    ) -> model.UpkeepReport:
        """Put the memory in order, in steps that each take a short time and can each be undone.

        Twin scenes and entities under two keys are merged, what is attached to scenes fades, what nothing uses goes,
        the text index and the write-ahead log are tidied, the file is checked. A step that would remove more than
        `config.shrink_limit` of the facts, notes, refs or scenes there are, or the last one, stops before it begins,
        unless `allow_shrink` is given; the others go on. arbiter: decides similar entities, as in `settle_entities`;
        without one they are only counted. One pass is at work on a file at a time: raises StoreBusy
        when another is.
        """
        check_flags(dry_run=dry_run, allow_shrink=allow_shrink)
        hands = loop.Hands(
            self.path,
            self.config,
            now=lambda: self._at(None),
            read=self._store.read,
            write=self._store.write,
            changed=_scenes_changed,
            review=self.review_entities,
            settle=self.settle_entities,
            checkpoint=self._store.checkpoint,
            quick_check=self._store.quick_check,
            closing=self._closing.is_set,
        )
        return loop.run(hands, dry_run=dry_run, allow_shrink=allow_shrink, arbiter=arbiter)

    def start_upkeep(
        self,
        *,
        every: float = 1800.0,
        arbiter: model.Arbiter | None = None,
        report: Callable[[model.UpkeepReport], None] = lambda report: None,
    ) -> None:
        """Run `upkeep` now and then every so many seconds in a thread, which ends when the memory is closed.

        report is called with what each pass did. A pass that fails, or finds another at work, is logged and tried again
        at its time. Raises InvalidInput for less than a second, Conflict when it runs already or the memory is
        read-only.
        """
        check_number("every", every, low=1.0, high=1e9)
        self._store.require_writing()
        if self._closing.is_set():
            raise Conflict(f"the memory {self.path} is closed: open it again")
        if self._upkeep is not None:
            raise Conflict("upkeep runs already: it ends when the memory is closed")
        self._upkeep = repeating.Repeating(lambda: self.upkeep(arbiter=arbiter), every, report)

    # ---- entities

    def merge_entities(self, source: str, target: str, *, dry_run: bool = False) -> model.EntityMergeReport:
        """Let two entities be one: what names `source` names `target` from now on, and `source` stays as another name.

        Facts that both had become one, with the greater confidence, the wider time and the evidence of both; facts
        between the two are deleted; of the places in scenes the greater weight is kept. `undo` reverses it, and what
        was told since goes back to the name it was told with. Raises NotFound for an unknown name, Conflict when both
        are one entity already or were said to be apart.
        """
        check_flags(dry_run=dry_run)
        at = self._at(None)
        with self._store.read() if dry_run else self._writing(at) as tx:
            ids = merge_entities.pair(tx, source, target)
            return merge_entities.plan(tx, *ids) if dry_run else merge_entities.merge(tx, *ids, at)

    # ---- similar entities

    def review_entities(self, *, limit: int = 20) -> model.EntityReview:
        """Return pairs of entities that may be one, best first, without those that are kept apart. Writes nothing.

        A pair is offered when its score, how alike the names are, lifted by the neighbours that both have, is over
        0.75, or when one name is the other behind a title. Names whose digits differ are never offered.
        """
        check_count("limit", limit)
        return self._review(limit, decidable=False)

    def keep_apart(self, a: str, b: str, *, rounds: int | None = None, apart: bool = True) -> model.ApartReport:
        """Say of two entities that they are not one, for good or for a number of rounds. `undo` reverses it.

        No review offers them and no merge joins them while it holds. rounds: passes of upkeep that pass them over.
        apart: False takes it back. Raises NotFound for an unknown name, Conflict when both name one entity.
        """
        if rounds is not None:
            check_count("rounds", rounds, low=1)
        check_flags(apart=apart)
        if rounds is not None and not apart:
            raise InvalidInput("rounds", rounds, "leave it out where being apart is taken back")
        at = self._at(None)
        with self._writing(at) as tx:
            return review.keep_apart(tx, *review.two(tx, a, b), at, rounds=rounds, apart=apart)

    def settle_entities(self, arbiter: model.Arbiter, *, limit: int = 5) -> model.SettleReport:
        """Ask an arbiter about the best pairs that a machine may decide, and do what it says, each pair by itself.

        arbiter: takes an `EntityPair`, with sentences of the memory in it; `command_arbiter` and `endpoint_arbiter`
        make one of a program or a model. It is asked outside of any transaction; pairs that changed meanwhile stay as
        they are. limit: how many pairs. Raises WriterFailed when the arbiter fails or answers anything else than it
        may; what was decided before that stays.
        """
        if not callable(arbiter):
            raise InvalidInput("arbiter", arbiter, "give a callable that takes a pair of entities")
        check_count("limit", limit)
        settled: list[model.Settlement] = []
        for pair in self._review(limit, decidable=True).pairs:
            verdict = review.judge(arbiter, pair, len(settled))
            at = self._at(None)
            with self._store.read() if verdict is None else self._writing(at) as tx:
                settled.append(review.settle(tx, pair, verdict, at))
        return model.SettleReport(tuple(settled))

    def _review(self, limit: int, *, decidable: bool) -> model.EntityReview:
        # Looking for pairs takes seconds in a large memory: no transaction is open meanwhile.
        at = self._at(None)
        with self._store.read() as tx:
            names = review.names_of(tx, at)
        found = review.pairs_of(names, limit, decidable=decidable)
        with self._store.read() as tx:
            return review.describe(tx, names, found)

    # ---- files

    def backup(
        self, dest: str | os.PathLike[str], *, progress: Callable[[int, int], None] = lambda done, pages: None
    ) -> model.BackupReport:
        """Copy the memory into a new file, while it is read and written: the state of one instant, in one file.

        Payload files are copied to `<dest>.blobs`. The copy is read and compared before it gets its name. Writers wait
        only where the file system allows no write-ahead log. progress is called with the number of pages done and of
        all. Raises Conflict when there is such a file already, StoreFailed when it cannot be made, as on a full disk,
        StoreCorrupt when the memory is damaged.
        """
        return backups.back_up(self._store, dest, progress)

    @staticmethod
    def backup_copy(src: str | os.PathLike[str], dest: str | os.PathLike[str]) -> model.BackupReport:
        """Copy a memory that cannot be written, as on a read-only medium, into a new file, as `backup` does.

        Not a byte of src or of its folder changes. Raises Conflict also when src is open in this process or is being
        written, StoreFailed when it is no memory.
        """
        return backups.back_up_copy(src, dest)

    @staticmethod
    def restore(
        src: str | os.PathLike[str], dest: str | os.PathLike[str], *, without_payloads: bool = False
    ) -> model.RestoreReport:
        """Make the memory at dest anew from a backup of one; what was there is kept as `<dest>.before-restore`.

        At every moment, also when the process is killed, dest is the old memory or the new one. It must be open
        nowhere: raises Conflict when it is in this process, StoreBusy when it is in another; StoreFailed when src is no
        memory or dest the database of another program, StoreCorrupt when src is damaged, SchemaTooNew. StoreCorrupt
        also when payload files of src are missing or damaged, unless without_payloads: then the report tells which.
        """
        check_flags(without_payloads=without_payloads)
        return backups.restore(src, dest, without_payloads=without_payloads)

    def check(self) -> model.CheckReport:
        """Look for damage: the file, the text index, keys, aliases, references, scopes, notes, the journal, payloads.

        Nothing is changed. Writers wait while FTS5 checks its words, a second for some 100 000 texts.
        """
        with self._store.write(keep=False) as tx:
            found = check.find_locked(tx, self.path)
        with self._store.read() as tx:
            found += check.find(tx, self.path)
            # A read-only memory is not brought into write-ahead mode, so it says nothing of the file system.
            remarks = () if self.config.read_only else check.without_log(tx, self.path)
            return check.report(tx, self.path, found, remarks)

    @staticmethod
    def check_copy(path: str | os.PathLike[str]) -> model.CheckReport:
        """Look for damage in a backup, as `check` does, without changing a byte of it or its folder.

        Raises Conflict when the file is open in this process or is being written, StoreFailed when it is no memory,
        StoreCorrupt when it is too damaged to be read.
        """
        with copies.open_scratch(path) as copy:
            found = check.find_all(copy.connection, str(path))
            return check.report(copy.connection, str(path), found, copy.remarks)

    @staticmethod
    def file_state(path: str | os.PathLike[str]) -> model.FileState:
        """Return what a memory says of itself, without changing a byte of it or its folder.

        SQLite's quick check is run over a file; a memory on a server is opened. Raises Conflict when the file is open
        in this process or is being written, StoreFailed when it cannot be read or is no memory, StoreCorrupt when it is
        damaged, SchemaTooNew, StoreBusy when the server cannot be reached.
        """
        if is_server(path):
            return _state_on_server(os.fspath(path))
        with copies.open_copy(path, copied=False) as copy:
            tx = copy.connection
            require_memory(tx, str(path))
            _, schema = refuse_newer(tx, str(path))
            current = is_current(tx, str(path))
            return model.FileState(schema, current, tree_rows.states(tx) if current else (), copy.remarks)

    def repair(self, *, dry_run: bool = False) -> model.RepairReport:
        """Mend what `check` finds, where it follows from the rest: indexes, counts, keys, aliases, refs to nothing.

        It is one transaction, and writers wait for it, a dry run too. Merged scenes and removed references come back by
        `undo`. What cannot be mended is listed with its remedy; a file with damaged pages is StoreCorrupt, and nothing
        is changed.
        """
        check_flags(dry_run=dry_run)
        at = self._at(None)
        with self._writing(at, keep=not dry_run) as tx:
            found = check.find_all(tx, self.path)
            mended = check.mend(tx, found, self.path, at, self.config)
            _scenes_changed(tx, {*mended.scenes})
            left = check.find_all(tx, self.path) if found else []
        return check.repaired(found, left, mended, applied=not dry_run)

    # ---- scenes

    def tag_scene(
        self, key: str, relation_ids: Iterable[int] = (), *, glob: str | None = None, dry_run: bool = False
    ) -> model.TagReport:
        """Attach known relations and their ends to a scene: by id, or those with an end whose name matches a glob.

        The glob is case-sensitive and knows `*`, `?` and `[...]`. `undo` reverses it. Raises NotFound when none of the
        ids exists.
        """
        check_flags(dry_run=dry_run)
        name, ids = arguments.new_key(key), scenes.check_choice(relation_ids, glob)
        at = self._at(None)
        with self._store.read() if dry_run else self._writing(at) as tx:
            return scenes.tag(tx, name, ids, glob, at, self.config, dry_run=dry_run)

    def untag_scene(
        self, key: str, relation_ids: Iterable[int] = (), *, glob: str | None = None, dry_run: bool = False
    ) -> model.UntagReport:
        """Take facts out of a scene: by id, or those with an end whose name matches a glob. `undo` reverses it.

        The names at their ends go with them, unless another fact of the scene has them. A fact that was in this scene
        alone is then recalled only without a situation. Raises NotFound for an unknown scene, and when none of the ids
        exists.
        """
        check_flags(dry_run=dry_run)
        name, ids = require_key(key), scenes.check_choice(relation_ids, glob)
        at = self._at(None)
        with self._store.read() if dry_run else self._writing(at) as tx:
            return scenes.untag(tx, name, ids, glob, at, dry_run=dry_run)

    def rename_scene(self, key: str, new_key: str, *, dry_run: bool = False) -> model.RenameReport:
        """Give a scene another key; the old one goes on leading to it. Scenes below keep theirs. `undo` reverses it.

        Under an `auto:` key a scene is emergent and is joined by the situations it fits; under any other it is
        declared, found by its keys alone, and such situations grow a scene anew. Raises NotFound for an unknown scene;
        Conflict for a key or an alias of another, for an `auto:` key of a scene that no turn has visited, and for one
        that names nobody where the scene is about somebody: everybody would read it.
        """
        check_flags(dry_run=dry_run)
        old, new = require_key(key), arguments.new_key(new_key, "new_key")
        at = self._at(None)
        with self._store.read() if dry_run else self._writing(at) as tx:
            report = scenes.plan_rename(tx, old, new)
            if not dry_run:
                report, changed = scenes.apply_rename(tx, report, at, self.config)
                _scenes_changed(tx, changed)
        return report

    def drop_scene(self, key: str, *, below: bool = False, dry_run: bool = False) -> model.DropReport:
        """Remove a scene, and with `below` all scenes below its key, with features, refs and aliases; facts stay.

        A fact that was told in these scenes alone is then recalled only without a situation. `undo` reverses it. Raises
        InvalidInput for an empty key, NotFound when there is no such scene.
        """
        check_flags(below=below, dry_run=dry_run)
        name = require_key(key)
        at = self._at(None)
        with self._store.read() if dry_run else self._writing(at) as tx:
            report, ids = scenes.plan_drop(tx, name, below=below)
            if not dry_run:
                report = scenes.apply_drop(tx, report, ids, at)
                _scenes_changed(tx, set(ids))
        return report

    def reset_scenes(self, *, dry_run: bool = False, backup: str | os.PathLike[str] | None = None) -> model.ResetReport:
        """Remove all emergent scenes, so that they grow anew, and every label that waits for one. `undo` reverses it.

        Declared scenes and facts stay as they are. Before it a verified backup is made: where `backup` says, else
        beside the file; a memory in ':memory:' needs none. Of one on a server none is made, which a remark says.
        """
        check_flags(dry_run=dry_run)
        if not dry_run:
            self._store.require_writing()
        with self._store.read() as tx:
            report, ids = scenes.plan_reset(tx)
        if not (ids or report.labels):
            return replace(report, applied=not dry_run)
        remarks = (_NO_BACKUP,) if backup is None and is_server(self.path) else ()
        if dry_run:
            return replace(report, applied=False, remarks=remarks)
        at = self._at(None)
        made = ""
        if backup is not None or is_file(self.path):
            made = self.backup(_free_path(f"{self.path}.before-reset-", at) if backup is None else backup).path
        with self._writing(at) as tx:
            report, ids = scenes.plan_reset(tx)
            report = scenes.apply_reset(tx, report, ids, at)
            _scenes_changed(tx, set(ids))
        return replace(report, backup=made, remarks=remarks)

    def scene_health(self) -> model.SceneHealth:
        """Return how well scenes do their work, in numbers. Writes nothing."""
        with self._store.read() as tx:
            return scenes.health(tx, self.path, self._at(None))

    # ---- forgetting

    @staticmethod
    def verify_forgotten(path: str | os.PathLike[str], text: str, *, copied: bool = True) -> model.ForgottenReport:
        """Look for a text in all of a file, its -wal and -journal and its payloads; write nothing.

        So are the copies that graphmem itself left beside it looked at: those kept before a reset or a restore, and
        drafts of backups that never came to an end. Copies in other places are yours to look at.

        Looked at are every column of every row, what the text index kept of texts that are gone, and all bytes, free
        pages included; for the text as it is typed, in other letter case and width, as a name, as a key and in JSON.
        What lies in two free pages, a piece in each, is not seen: after a purge for good there are none. Works on
        backup copies too; copied as in `preview_dedupe`. Raises InvalidInput for a text of which nothing can be seen,
        StoreFailed for a file that is no memory, Conflict when the file is open in this process or is being written.
        """
        check_flags(copied=copied)
        wanted = traces.check_text(text)
        with copies.open_copy(path, copied=copied) as copy:
            found, remarks = traces.find(copy, full_path(path), wanted), copy.remarks
        found_beside, remarks_beside = traces.find_beside(full_path(path), wanted)
        return model.ForgottenReport(found + found_beside, remarks + remarks_beside)

    def scan_secrets(
        self, *, redact: bool = False, progress: Callable[[int, int], None] = lambda done, tables: None
    ) -> model.SecretReport:
        """Look for secrets in all that is stored, in the journal too; with `redact` take them out for good.

        They are replaced in place, no undo brings them back, and the file is then written anew as after a purge for
        good. Names of things and of scenes that hold one are replaced as well, with a number where that is taken. The
        extra `graphmem[secrets]` adds the detectors of detect-secrets. progress is called with the number of tables
        done so far and of all tables. Raises StoreFailed where there is no room to write the file anew.
        """
        check_flags(redact=redact)
        with detectors.detecting() as more:
            find = screening.finder(more)
            if not redact:
                with self._store.read() as tx:
                    found, redacted = screening.screen(tx, find, progress, redact=False)
            else:
                traces.require_room(self.path)
                with self._writing(self._at(None)) as tx, tx.engine.overwriting(tx):
                    found, redacted = screening.screen(tx, find, progress, redact=True)
        remarks: tuple[str, ...] = ()
        if more is None:
            remarks += ("looked with graphmem's own patterns alone: 'graphmem[secrets]' adds others",)
        if redact and any(one.table in screening.DROPPED for one in found):
            remarks += (
                "transcripts whose path or names hold a secret are followed no longer: rename, then harvest them",
            )
        if redact:
            remarks += self._store.clean() + traces.copies_remark(self.path)
        return model.SecretReport(found, redacted, applied=redact, remarks=remarks)

    def _purge(self, plan: Callable[[Transaction], Plan], kind: str, *, hard: bool) -> model.PurgeReport:
        at = self._at(None)
        if not hard:
            with self._writing(at) as tx:
                return purge.apply_purge(tx, plan(tx), kind, at)
        traces.require_room(self.path)
        with self._writing(at) as tx, tx.engine.overwriting(tx):
            planned = plan(tx)
            report = purge.apply_purge(tx, planned, kind, at)
            _scenes_changed(tx, planned.gone["scene"])
        return replace(report, remarks=report.remarks + self._store.clean() + traces.copies_remark(self.path))

    # ---- kept apart

    def kept_apart(self) -> tuple[model.KeptApart, ...]:
        """Return the pairs of entities that are kept apart, those said last first. Writes nothing."""
        with self._store.read() as tx:
            return review.kept_apart(tx)

    # ---- within

    def _scopes(self, tx: Transaction, scopes: Iterable[str] | None) -> Sequence[str] | None:
        """Return the scopes that a reading verb is kept to beside the user's own; None where all may be read.

        The one way from the argument of a verb to what is read. None also where nothing is stored of any other scope:
        then leaving nothing out costs nothing.
        """
        return scope_rows.needed(tx, self._reach(scopes))

    def _reach(self, scopes: Iterable[str] | None) -> Sequence[str] | None:
        """Return the scopes that are meant, as they are stored; None for all. None means the default reach."""
        if scopes is None:
            return [
                self._own_scope(word) for word, own in (("project", self._project), ("session", self._session)) if own
            ]
        names = text_list(scopes, "scopes")
        if len(names) > scene_graph.KEYS_IN_A_RECALL:
            raise scene_graph.too_many("scopes", names)
        if scope_rows.EVERY_SCOPE in names:
            return None
        return [self._scope(name, "scopes") for name in names]

    def _scope(self, scope: str, argument: str = "scope") -> str:
        """Return a scope that is meant by a word or named itself, as it is stored.

        Raises InvalidInput for the current project or session where there is none, and for "all".
        """
        require_texts(**{argument: scope})
        if scope == scope_rows.EVERY_SCOPE:
            raise InvalidInput(argument, scope, "name one scope: user, project, session, or the key of one")
        if scope and not scope.strip():
            raise InvalidInput(argument, scope, "nothing can be seen of it; give '' for the user's own")
        return self._own_scope(scope, argument) if scope in ("user", "project", "session") else clean_text(scope)

    def _own_scope(self, word: str, argument: str = "scope") -> str:
        if word == "user" or not self.config.project_memory:
            return scope_rows.USER
        if word == "project":
            if self._project is None:
                raise InvalidInput(
                    argument, word, "there is no current project: name its folder, with project= or --project"
                )
            return self._project.key
        if not self._session:
            raise InvalidInput(argument, word, "there is no current session: open the memory with session=NAME")
        return scope_rows.SESSION_PREFIX + self._session

    def _at(self, given: dt.datetime | str | None, argument: str = "at") -> str:
        return utc_text(read_time(self._clock() if given is None else given, self.config.zone, argument=argument))

    def _writing(self, at: str, *, keep: bool = True) -> AbstractContextManager[Transaction]:
        """Open a write transaction whose day is marked as one of use; with keep=False a rehearsal."""
        if at[:10] == self._last_day and not self._uses:
            return self._store.write(keep=keep)
        return self._writing_more(at, keep=keep)

    @contextlib.contextmanager
    def _writing_more(self, at: str, *, keep: bool) -> Iterator[Transaction]:
        with self._store.write(keep=keep) as tx:
            yield tx
            self._mark_day(tx, at)
            if keep and self._uses:
                usage.count(tx, self._take_uses(), at)
        if keep:
            self._last_day = at[:10]

    def _write_last_uses(self) -> None:
        try:
            with self._store.write() as tx:
                usage.count(tx, self._take_uses(), self._at(None))
        except GraphmemError as error:  # it only ranks, so it is no reason to fail
            log.warning("how often notes were used since the last write is lost: %s", error)

    def _count_uses(self, note_ids: Iterable[int]) -> None:
        """Count that notes were brought back. It is written with the next write: a read never waits for a writer."""
        if self.config.read_only or _LOOKING.get():
            return
        with self._uses_lock:
            self._uses.update(note_ids)

    def _take_uses(self) -> dict[int, int]:
        with self._uses_lock:
            uses = dict(self._uses)
            self._uses.clear()
        return uses

    def _mark_day(self, tx: Transaction, at: str) -> None:
        if at[:10] != self._last_day:
            tx.execute("INSERT INTO active_days(day) VALUES (?) ON CONFLICT (day) DO NOTHING", (at[:10],))


def _state_on_server(address: str) -> model.FileState:
    config = Config(read_only=True)
    server, schema = state_on_server(address, config)
    if schema != VERSION:
        return model.FileState(schema or 0, False, (), server=server)
    store = open_store(address, config=config, create=False)
    with contextlib.closing(store), store.read() as tx:
        return model.FileState(schema, True, tree_rows.states(tx), server=server)


def _free_path(prefix: str, at: str) -> str:
    """Return the path of no file yet, named by a time.

    >>> _free_path("/nowhere/memory.db.before-reset-", "2026-09-07T08:00:00.000Z")
    '/nowhere/memory.db.before-reset-20260907T080000Z'
    """
    path = f"{prefix}{at[:19].replace('-', '').replace(':', '')}Z"
    numbered = (f"{path}.{number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([path], numbered) if not os.path.lexists(free))


def _scenes_changed(tx: Transaction, changed: set[int]) -> None:
    """Bring up to date what leads to scenes that an operation changed, made or removed."""
    if changed:
        postings.settle(tx, changed)
        text_index.replace(tx, "scene", changed)
