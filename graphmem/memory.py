"""Memory, the facade: one method a verb, and the only opener of transactions."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from graphmem import log
from graphmem.arguments import (
    check_config,
    checked_limit,
    checked_situation,
    is_blank,
    named,
    new_key,
    new_keys,
    refuse_secret_names,
)
from graphmem.config import DEFAULT, Config, check_count, check_flags
from graphmem.core import model
from graphmem.core.keys import (
    channel_key,
    clean_text,
    entity_key,
    fold,
    key_list,
    require_key,
    require_texts,
    text_list,
)
from graphmem.core.policies import ChannelPolicy
from graphmem.core.situations import Situation
from graphmem.core.times import Clock, system_clock, utc_text
from graphmem.errors import InvalidInput, StoreBusy, StoreCorrupt, StoreFailed
from graphmem.files import Files
from graphmem.graph import matching
from graphmem.graph import scenes as scene_graph
from graphmem.late import late
from graphmem.store.blobs import lies_in_row, read_blob, remove_blob
from graphmem.store.opening import open_store

if TYPE_CHECKING:
    from graphmem import projects
    from graphmem.compose import brief as briefs
    from graphmem.compose import grounds
    from graphmem.compose import turn as agent_turns
    from graphmem.core import choices, embedding, redaction
    from graphmem.core import events as log_events
    from graphmem.exchange import events as log_files
    from graphmem.graph import blocks as block_rows
    from graphmem.graph import documents as document_rows
    from graphmem.graph import neighbours as around
    from graphmem.graph import relations, view
    from graphmem.records import notes as note_rows
    from graphmem.records import scopes as scope_rows
    from graphmem.store import text_index
else:
    agent_turns = late("graphmem.compose.turn")
    around = late("graphmem.graph.neighbours")
    block_rows = late("graphmem.graph.blocks")
    briefs = late("graphmem.compose.brief")
    choices = late("graphmem.core.choices")
    grounds = late("graphmem.compose.grounds")
    document_rows = late("graphmem.graph.documents")
    embedding = late("graphmem.core.embedding")
    log_events = late("graphmem.core.events")
    log_files = late("graphmem.exchange.events")
    note_rows = late("graphmem.records.notes")
    projects = late("graphmem.projects")
    redaction = late("graphmem.core.redaction")
    relations = late("graphmem.graph.relations")
    scope_rows = late("graphmem.records.scopes")
    text_index = late("graphmem.store.text_index")
    view = late("graphmem.graph.view")


class Memory(Files):
    """A memory in one SQLite file, or a tenant of a PostgreSQL server. Any number of threads and processes may use it.

    A verb is one transaction: on an error nothing of it stays. Those that go on for long (imports, exports, upkeep,
    harvests, checkpoints, copies, `replay`, `embed`) are one for each of their steps. Errors are those of
    `graphmem.errors`.
    """

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        config: Config = DEFAULT,
        clock: Clock = system_clock,
        create: bool = True,
        embedder: embedding.Embedder | None = None,
        project: str | os.PathLike[str] | None = None,
        session: str = "",
        writer: model.Writer | None = None,
    ) -> Self:
        """Open a memory file, made and migrated when needed; ':memory:' for one that is gone when closed.

        project: the folder of the current project, or one inside it; a git repository is one project with all its
        worktrees and clones, see `config.project_identity`. session: the name of the current session. What is read is
        the user's own and theirs, and of other projects and sessions only what is named. A project that is met for the
        first time, or at a new place, is noted in the file, and nothing ever in the folder.

        embedder: makes vectors of what is written, so that `recall` finds what means the same in other words; None for
        that of the extra `graphmem[semantic]` where `config.semantic` is set, else for none. Texts written without it
        have no vectors until `embed` makes them.

        writer: what digests sessions; None for that of the settings, else rules that need no model.

        Raises InvalidInput for an embedder that cannot be used or is not installed, and for a project that is no folder
        that can be read, SecretRefused for a new one whose path holds a secret, and for such a session, StoreFailed
        when the file cannot be used (or is missing and `create` is false, or would have to be made or migrated where
        `config.read_only` is set), StoreCorrupt when it is damaged or no database, SchemaTooNew when a newer graphmem
        wrote it, StoreBusy when it stays locked.
        """
        check_flags(create=create)
        check_config(config)
        if embedder is None and config.semantic:
            from graphmem.semantic import bundled_embedder

            embedder = bundled_embedder()
        if embedder is not None:
            embedding.check_embedder(embedder)
        if not isinstance(session, str) or (session and is_blank(session)):
            raise InvalidInput("session", session, "give the session a name, '' for none")
        signs = None
        if project is not None:
            signs = projects.read_signs(project, whole_repository=config.project_identity == "repository")
        store = open_store(path, config=config, create=create, embedder=embedder)
        memory = cls(store, config=config, clock=clock, embedder=embedder)
        memory._writer = writer
        try:
            memory._settle_in(signs, clean_text(session))
        except BaseException:
            memory.close()
            raise
        return memory

    @property
    def project(self) -> model.Project | None:
        """The project that the memory was opened for."""
        return self._project

    @property
    def session(self) -> str:
        """The name of the session that the memory was opened for, '' for none."""
        return self._session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- scenes

    def enter_scene(self, situation: Situation, *, declared: str | Iterable[str] = ()) -> model.Visit:
        """Enter the scene of a turn: the best fitting one is joined, or a new one grows at the second such turn.

        Each declared key is made to exist. An empty situation writes nothing but those. Where `config.read_only` is set
        nothing is written: the answer is the scene that would be joined, with its strength as it is.
        """
        situation = checked_situation(situation).under(self.config)
        keys = () if declared == () else scene_graph.with_derived(new_keys(declared, "declared"), situation)
        if not situation and not keys:
            return model.Visit()
        if self.config.read_only:
            with self._store.read() as tx:
                return scene_graph.foresee(tx, situation, keys)
        at = utc_text(situation.at) if situation.at else self._at(None)
        with self._writing(at) as tx:
            entered, made = scene_graph.visit(tx, situation, keys, at, self.config)
            if entered.is_news:  # what is known was looked at when it came
                names = [named(feature.kind, ":", feature.value) for feature in situation.given]
                refuse_secret_names("situation", names)
        return scene_graph.visit_of(entered, made, situation)

    def declare_scene(self, key: str) -> model.DeclaredScene:
        """Make a scene exist under a key; one that exists is strengthened by one."""
        name = new_key(key)
        at = self._at(None)
        with self._writing(at) as tx:
            return scene_graph.declare(tx, name, at, self.config)

    def match_scenes(self, situation: Situation) -> tuple[model.SceneMatch, ...]:
        """Return the scenes that answer a situation, best first, by which features and how strongly. Writes nothing."""
        situation = checked_situation(situation).under(self.config)
        with self._store.read() as tx:
            return scene_graph.match(tx, situation)

    def scenes(
        self,
        prefix: str = "",
        *,
        origin: str | None = None,
        contains: str = "",
        sort: str = "refs",
        limit: int | None = None,
        skip: int = 0,
    ) -> tuple[model.Scene, ...]:
        """Return the scenes at and below a key, '' for all, those with most refs first.

        contains: what their keys have in them. sort: 'refs', 'strength', 'recent' (the one visited last first) or
        'key'. limit: None for all; skip: so many of the first. With a limit the orders other than by refs read no more
        scenes than they return.
        """
        if origin not in (None, *choices.SCENE_ORIGINS):
            raise InvalidInput("origin", origin, f"give one of {', '.join(choices.SCENE_ORIGINS)}, or None")
        if sort not in choices.SCENE_ORDERS:
            raise InvalidInput("sort", sort, f"give one of {', '.join(choices.SCENE_ORDERS)}")
        require_texts(contains=contains)
        check_count("skip", skip)
        key = "" if is_blank(prefix) else require_key(prefix, "prefix")
        most = checked_limit(limit, default=scene_graph.MOST_ROWS)
        with self._store.read() as tx:
            return scene_graph.list_scenes(
                tx,
                key,
                self._at(None),
                origin=origin,
                contains=fold(clean_text(contains)),
                sort=sort,
                limit=most,
                skip=skip,
            )

    def scene(self, key: str) -> model.SceneDetail:
        """Return one scene: its features, the other keys that lead to it, and its strength by day as upkeep noted it.

        What it holds `recall_by_scene(key, exact=True)` tells. Raises NotFound.
        """
        with self._store.read() as tx:
            return scene_graph.detail(tx, require_key(key, "key"), self._at(None))

    def evidence(self) -> tuple[model.Bucket, ...]:
        """Return the labels that were met and have no scene yet, the latest first."""
        with self._store.read() as tx:
            return scene_graph.list_evidence(tx)

    def recall_by_scene(
        self,
        keys: str | Iterable[str],
        *,
        limit: int | None = None,
        exact: bool = False,
        scopes: Iterable[str] | None = None,
        as_of: dt.datetime | str | None = None,
    ) -> model.Recollection:
        """Return what scenes hold, the heaviest first: those of the keys and, unless `exact`, all below them.

        '' means all scenes, an empty list none. limit counts relations, entities, blocks, documents and notes, each on
        their own: None for 8, 0 for none. scopes: what is of these scopes and the user's own; None for those of the
        current project and session too, "all" for all, see `scopes`. as_of: only what held at that instant, as far as
        is known today; None for now.
        """
        check_flags(exact=exact)
        at = self._at(as_of, "as_of")
        everything = isinstance(keys, str) and is_blank(keys)
        names = None if everything else key_list(keys, "keys")
        if everything and exact:
            raise InvalidInput("keys", keys, "no scene has an empty key; name one, or leave out exact")
        most = checked_limit(limit)
        selection = scene_graph.EVERY_SCENE if names is None else scene_graph.below(names, exact=exact)
        with self._store.read() as tx:
            wanted = self._scopes(tx, scopes)
            found = scene_graph.recall(tx, selection, limit=most, scopes=wanted, at=at)
            if scene_graph.are_notes(tx) and (held := scene_graph.noted(tx, selection)):
                past = None if as_of is None else at
                found = replace(found, notes=grounds.of_scenes(tx, held, limit=most, scopes=wanted, as_of=past))
        self._count_uses(one.id for one in found.notes)
        return found

    def recall_by_situation(
        self,
        situation: Situation,
        *,
        declared: str | Iterable[str] = (),
        text: str = "",
        limit: int | None = None,
        scopes: Iterable[str] | None = None,
        as_of: dt.datetime | str | None = None,
    ) -> model.Recollection:
        """Return what the scenes that answer a situation hold, ranked by score times weight, each thing once.

        Notes come from these scenes, by the triggers that are features of the situation or in its topics or in the
        text, the words of the turn; rules and pinned notes come always. Declared keys are read exactly and come first.
        limit, scopes and as_of are those of `recall_by_scene`; what holds now is meant, whatever the time of the
        situation.
        """
        at = self._at(as_of, "as_of")
        past = None if as_of is None else at
        situation = checked_situation(situation).under(self.config)
        keys = key_list(declared, "declared")
        if not isinstance(text, str):
            raise InvalidInput("text", text, "give the words of the turn as text")
        most = checked_limit(limit)
        with self._store.read() as tx:
            candidates = matching.answering(tx, situation) if situation else []
            wanted = self._scopes(tx, scopes)
            selection = scene_graph.chosen(tx, keys, candidates)
            recalled = model.Recollection()
            if selection is not None:
                recalled = scene_graph.recall(tx, selection, limit=most, scopes=wanted, at=at)
            here = grounds.of_situation(tx, situation, selection, text, limit=most, scopes=wanted, as_of=past)
        self._count_uses(one.id for one in here if one.ground != "always")
        return replace(recalled, notes=here)

    def observe(
        self,
        *,
        source: str = "",
        payload: Mapping[str, Any] | None = None,
        text: str = "",
        tool: str = "",
        at: dt.datetime | str | None = None,
    ) -> Situation:
        """Build the situation of a raw event under this memory's settings, now unless `at` says when. Writes nothing.

        See `Situation.observe`, which knows neither the clock nor the settings.
        """
        moment = self._clock() if at is None else at
        return Situation.observe(source=source, payload=payload, text=text, tool=tool, at=moment, config=self.config)

    # ---- graph

    def commit(
        self,
        triples: Iterable[model.Triple],
        *,
        scenes: str | Iterable[str] = (),
        session: str = "",
        turn: int = 0,
        scope: str | None = None,
        at: dt.datetime | str | None = None,
        source: str = "agent",
    ) -> model.CommitReport:
        """Remember facts and attach them to scenes, which are made when they are new.

        scope: whose facts they are, "user" (as without it), "project", "session", or the key of a scope. A triple whose
        names cannot be used, or hold a secret, is refused in the report and the others are written;
        `report.written == 0` means that nothing was remembered. A secret in a sentence is replaced, which a remark
        tells. Raises SecretRefused for one in another argument.
        """
        told = {"session": session, "source": source}
        require_texts(**told)
        redaction.refuse_secrets(**told, scope=scope)
        home = "" if scope is None else self._scope(scope)
        check_count("turn", turn)
        keys = new_keys(scenes, "scenes")
        checked, remarks = relations.check_triples(triples, self.config.zone)
        moment = self._at(at)
        refused = tuple(fact for fact in checked if isinstance(fact, model.Refusal))
        if len(refused) == len(checked):
            return model.CommitReport(0, 0, 0, refused, (None,) * len(checked), (), remarks)
        texts = {name: clean_text(value) for name, value in told.items()}
        saying = relations.Saying(**texts, scope=home, turn=turn, at=moment, scenes=keys)
        with self._writing(moment) as tx:
            scene_ids = scene_graph.ensure_scenes(tx, keys, moment, self.config)
            report = relations.commit(tx, checked, saying, scene_ids)
        return replace(report, scenes=keys, remarks=remarks)

    # ---- scopes

    def scopes(self) -> tuple[model.ScopeInfo, ...]:
        """Return every scope and how much it holds, the user's own first, then projects, named ones and sessions.

        A scope that a verb takes is one of their keys, or a word: "user", "project" and "session" for the current ones,
        and, where something is read, "all". Writes nothing.
        """
        with self._store.read() as tx:
            return scope_rows.list_scopes(tx, self._reach(None) or ())

    # ---- recall

    def recall(
        self,
        query: str,
        *,
        situation: Situation | None = None,
        kinds: str | Iterable[str] | None = None,
        scopes: Iterable[str] | None = None,
        scenes: str | Iterable[str] = "",
        exact: bool = False,
        since: dt.datetime | str | None = None,
        until: dt.datetime | str | None = None,
        as_of: dt.datetime | str | None = None,
        mode: str | None = None,
        precise: bool = False,
        trust: str | None = None,
        limit: int | None = None,
        explain: bool = False,
    ) -> tuple[model.Hit, ...]:
        """Return what answers a query, the best first.

        situation: who asks and where. What its scenes hold ranks higher, what scenes of other people alone hold is left
        out, and without any words its scenes are recalled. kinds: of note, relation, part, document, block (all of
        these when left out), entity and scene. scopes: items of these scopes and the user's own, "all" for all; None
        for those of the current project and session too. scenes: only what these scenes hold and, unless `exact`, those
        below them; '' for everything. since, until: only what was said or written from, and before, these times. as_of:
        what held then.

        mode: 'hybrid' weighs all evidence, the meaning of texts as well where the memory has an embedder; 'keyword'
        wants every word of the query; 'vector' compares texts as TF-IDF vectors; 'scene' brings back what the situation
        does, whatever the words; 'graph' what is linked to the entities that are named; None for that of
        `config.search_mode`. precise: only what clearly answers, nothing when nothing does, pinned notes first.

        trust: only what somebody told who is trusted as much, 'user', 'agent', 'tool' or 'import', the first the most;
        a fact by its best teller, a part by its role. limit: None for 10, 0 for none. explain: each hit says what its
        score is made of.

        Raises InvalidInput for a query without words and without a situation, and for an unknown kind or mode.
        """
        check_flags(exact=exact, precise=precise, explain=explain)
        keys = None if is_blank(scenes) else key_list(scenes, "scenes")
        within = None if keys is None else scene_graph.below(keys, exact=exact)
        from graphmem.compose import search

        with self._store.read() as tx:
            request = self._request(
                query, kinds=kinds, limit=limit, situation=situation, scopes=self._scopes(tx, scopes), since=since,
                until=until, as_of=as_of, mode=mode, precise=precise, trust=trust, explain=explain,
            )  # fmt: skip
            here = request.situation
            answering = matching.answering(tx, here) if here else []
            hits = search.search(
                tx, self._vocabulary, request, self.config.ranking,
                within=within, answering=answering, meanings=self._meanings,
            )  # fmt: skip
        self._count_uses(hit.id for hit in hits if hit.kind == "note" and isinstance(hit.id, int))
        return hits

    # ---- blocks and documents

    def put_block(
        self,
        text: str = "",
        *,
        modality: str = "text",
        payload: bytes | None = None,
        mime: str = "",
        width: int | None = None,
        height: int | None = None,
        scenes: str | Iterable[str] = (),
        source: str = "",
        tool: str = "",
        semantic_type: str = "",
        at: dt.datetime | str | None = None,
    ) -> model.Block:
        """Keep a text, or an image, video or audio payload with a text about it, and attach it to scenes.

        The same content is the same block: writing it again adds what is given and clears nothing. Another text about
        the same payload makes another block. Payloads above 64 KiB are files in the folder `<file>.blobs`. Secrets in
        the text are replaced before its id is made of it.
        """
        labels = {"mime": mime, "source": source, "tool": tool, "semantic_type": semantic_type}
        new = block_rows.check_block(text, modality=modality, payload=payload, width=width, height=height, **labels)
        keys = new_keys(scenes, "scenes")
        moment = self._at(at)
        with self._writing(moment) as tx:
            in_row = self._keep_payload(new.digest, payload or b"")
            scene_ids = scene_graph.ensure_scenes(tx, keys, moment, self.config)
            block = block_rows.put(tx, new, scene_ids, moment, at_is_given=at is not None, in_row=in_row)
        return replace(block, payload=payload)

    def block(self, block_id: str, *, payload: bool = True) -> model.Block:
        """Return a block, with its payload unless that is not wanted.

        Raises NotFound for an unknown id, StoreCorrupt when the file of the payload is missing or damaged.
        """
        check_flags(payload=payload)
        name = block_rows.checked_text("block_id", block_id)
        with self._store.read() as tx:
            found = block_rows.get(tx, name)
            if not payload or not found.digest or found.payload is not None:
                return found if payload else replace(found, payload=None)
            data = read_blob(self.path, found.digest)
        if data is None:
            with self._store.read() as tx:  # deleted just now: then it is not found
                block_rows.get(tx, name)
            raise StoreCorrupt(f"{self.path} has lost the payload of block {name}: restore its folder from a backup")
        return replace(found, payload=data)

    def delete_block(self, block_id: str) -> None:
        """Remove a block for good, from its scenes and documents too. Raises NotFound for an unknown id."""
        name = block_rows.checked_text("block_id", block_id)
        at = self._at(None)
        with self._writing(at) as tx:
            block = block_rows.delete(tx, name)
        if not lies_in_row(self.path, block.size):
            self._forget_payload(block.digest)

    def put_document(
        self,
        text: str,
        *,
        summary: str = "",
        scenes: str | Iterable[str] = (),
        source: str = "",
        tags: str | Iterable[str] = (),
        entities: str | Iterable[str] = (),
        blocks: str | Iterable[str] = (),
        at: dt.datetime | str | None = None,
    ) -> model.Document:
        """Keep a text as a whole, with the ids of the blocks that belong to it, and attach it to scenes.

        The same text is the same document: writing it again adds what is given and clears nothing. The first 10 tags
        and 20 entities are kept; without a summary one is made of the source and the words. Secrets are replaced before
        its id is made of the text. Raises NotFound for an unknown block.
        """
        new = document_rows.check_document(
            text, summary=summary, source=source, tags=tags, entities=entities, blocks=blocks
        )
        keys = new_keys(scenes, "scenes")
        moment = self._at(at)
        with self._writing(moment) as tx:
            scene_ids = scene_graph.ensure_scenes(tx, keys, moment, self.config)
            return document_rows.put(tx, new, scene_ids, moment, at_is_given=at is not None)

    def query_documents(self, query: str, *, limit: int = 3) -> tuple[model.Document, ...]:
        """Return the documents that answer a query, the best first, and count the access.

        A read-only memory counts nothing. Raises InvalidInput for a query without words.
        """
        from graphmem.compose import search

        check_count("limit", limit)
        request = self._request(query, kinds="document", limit=limit)
        at = self._at(None)
        with self._store.read() if self.config.read_only else self._writing(at) as tx:
            hits = search.search(tx, self._vocabulary, request, self.config.ranking, meanings=self._meanings)
            found = [str(hit.id) for hit in hits]
            if not self.config.read_only:
                document_rows.count_access(tx, found, at)
            return tuple(document_rows.get(tx, document_id) for document_id in found)

    def consume_document(self, document_id: str) -> model.Document:
        """Return a document and remove it for good; its blocks stay. Raises NotFound for an unknown id."""
        name = block_rows.checked_text("document_id", document_id)
        at = self._at(None)
        with self._writing(at) as tx:
            return document_rows.delete(tx, name)

    def archive_document(
        self,
        document_id: str,
        triples: Iterable[model.Triple],
        *,
        scenes: str | Iterable[str] = (),
        session: str = "",
        turn: int = 0,
        scope: str | None = None,
        at: dt.datetime | str | None = None,
        source: str = "agent",
    ) -> model.ArchiveReport:
        """Turn a document into facts, put its loose blocks into their scenes, and remove it when all went well.

        scenes: else those of the document, else the channel of its source. It is kept when no fact was written or a
        block of it is in no scene; the facts stay in any case, and archiving again repeats none. Raises NotFound for
        an unknown id.
        """
        name = block_rows.checked_text("document_id", document_id)
        keys = new_keys(scenes, "scenes")
        moment = self._at(at)
        with self._store.write() as tx:
            document = document_rows.get(tx, name)
            keys = keys or document.scenes or key_list(channel_key(document.source), "source")
            facts = self.commit(triples, scenes=keys, session=session, turn=turn, scope=scope, at=moment, source=source)
            self._last_day = ""  # its day may yet be rolled back
            if not facts.written:
                return model.ArchiveReport(name, facts, (), (), removed=False)
            scene_ids = scene_graph.ensure_scenes(tx, keys, moment, self.config)
            bound, unbound = block_rows.bind(tx, document.blocks, scene_ids, moment)
            if not unbound:
                document_rows.delete(tx, name)
        return model.ArchiveReport(name, facts, bound, unbound, removed=not unbound)

    def neighbours(
        self,
        names: str | Iterable[str],
        *,
        depth: int = 2,
        at: dt.datetime | str | None = None,
        limit: int = 20,
        sort: str = "relevance",
        scopes: Iterable[str] | None = None,
    ) -> model.Neighbourhood:
        """Return the entities that names, words or a question find, and the facts and entities around them.

        A text is a name when it is known as one, a list of names with commas, else a question. A name is found exactly,
        as the beginning of another, or within another, in this order; words that name every second thing, such as
        'port', come last. From there facts are followed in both directions, depth times, the nearest first. limit
        counts entities and facts each. sort: 'recent' (or 'time', 'newest') for the latest first, anything else for
        the best first. at: only what holds at that instant, None for now. scopes: as in `recall_by_scene`.

        This is a search: what nobody knows gives an empty, falsy answer and no NotFound. Writes nothing.
        """
        check_count("depth", depth)
        check_count("limit", limit)
        wanted = names if isinstance(names, str) else text_list(names, "names")
        recent = isinstance(sort, str) and sort.strip().casefold() in ("recent", "time", "newest")
        moment = self._at(at)
        with self._store.read() as tx:
            reading = around.Reading(moment, self._scopes(tx, scopes))
            return around.neighbours(tx, wanted, reading, depth=depth, limit=limit, recent=recent)

    def shortest_path(
        self,
        start: str,
        end: str,
        *,
        at: dt.datetime | str | None = None,
        scopes: Iterable[str] | None = None,
    ) -> model.FactPath:
        """Return the shortest way of facts between two entities, each fact followed in either direction.

        `connected` is false, and there are no steps, when no fact leads from one to the other. at and scopes are those
        of `graph`. Raises NotFound for an unknown name, telling the names close to it.
        """
        moment = self._at(at)
        with self._store.read() as tx:
            reading = around.Reading(moment, self._scopes(tx, scopes))
            return view.shortest_path(tx, start, end, reading)

    # ---- prompt

    def brief(
        self,
        situation: Situation,
        *,
        query: str = "",
        declared: str | Iterable[str] = (),
        budget: int = 2000,
        measure: Callable[[str], int] = len,
        scopes: Iterable[str] | None = None,
        checkpoint: str | None = None,
    ) -> model.Brief:
        """Return what belongs into a prompt: the rules of the scenes, what a query finds, the names known besides.

        declared and scopes are those of `recall_by_situation`; a query without words finds nothing. checkpoint: the
        session whose last checkpoint is told too, where it has none the last of all; '' for that one, None for none.
        The text is written in `config.language`, tells how much was left out, and measures at most `budget` by
        `measure`, a function from a text to its length, which never falls as a text grows. Stored text in it cannot
        forge its marks. Empty where `config.inject` is false.
        """
        if checkpoint is not None:
            require_texts(checkpoint=checkpoint)
        with self._store.read() as tx:
            last = None
            if checkpoint is not None and self.config.inject:
                last = note_rows.last_checkpoint(tx, clean_text(checkpoint), self._scopes(tx, scopes))
            return briefs.brief_of(
                self,
                checked_situation(situation),
                query=query,
                declared=declared,
                budget=budget,
                measure=measure,
                scopes=None if scopes is None else text_list(scopes, "scopes"),
                checkpoint=last,
            )

    def tool_brief(
        self,
        situation: Situation,
        tool: str,
        *,
        text: str = "",
        declared: str | Iterable[str] = (),
        budget: int = 1000,
        measure: Callable[[str], int] = len,
        scopes: Iterable[str] | None = None,
    ) -> model.Brief:
        """Return what belongs into a prompt before a tool runs: the rules for it, and how it failed again and again.

        text: what it is about to do, such as a command. The rules are those of `rules_for`, the failures those that are
        warned of. budget and measure are those of `brief`. Empty where `config.inject` is false.
        """
        if not self.config.inject:
            return model.Brief()
        wanted = None if scopes is None else text_list(scopes, "scopes")
        with self._store.read():
            rules = self.rules_for(situation, tool=tool, text=text, declared=declared, scopes=wanted)
            warned = self.ledger(scopes=wanted).incidents
        own = [one for one in warned if entity_key(one.tool) == entity_key(tool)]
        return briefs.brief_of_tool(tool, rules, own, config=self.config, budget=budget, measure=measure)

    def turn(
        self,
        event: log_events.Event | None,
        *,
        channel: ChannelPolicy = ChannelPolicy(),  # noqa: B008
        scopes: str | Iterable[str] | None = None,
    ) -> agent_turns.Turn:
        """Begin a turn of an agent, None for one without an event: `with memory.turn(event) as turn`.

        scopes: what it reads, as in `recall`. Scenes keep people's facts apart, and scopes their notes and sessions,
        which no scene holds.

        What the payload of the event says of policies goes before what the channel says. Raises InvalidInput for a
        policy, a scene key or a person in the payload that cannot be used.
        """
        if not isinstance(event, log_events.Event | None):
            raise InvalidInput("event", event, "give an Event, such as Event(source='qq', text='…'), or None")
        if not isinstance(channel, ChannelPolicy):
            raise InvalidInput("channel", channel, "give a ChannelPolicy")
        names = None if scopes is None else text_list(scopes, "scopes")
        self._reach(names)
        return agent_turns.Turn(self, event or log_events.Event(), channel, scopes=names)

    # ---- files

    @staticmethod
    def read_log(path: str | os.PathLike[str], *, config: Config = DEFAULT) -> log_events.Log:
        """Return the turns of a log, see `graphmem.core.events.parse_events`, each of them checked.

        Raises StoreFailed when the file cannot be read, InvalidInput naming the line when it cannot be understood.
        """
        check_config(config)
        return _checked(log_files.read_events(path), config)

    def replay(
        self,
        log: str | os.PathLike[str] | log_events.Log | Iterable[log_events.Event],
        *,
        progress: Callable[[int, int], None] = lambda done, turns: None,
    ) -> model.ReplayReport:
        """Run a log, a file or what `read_log` returns, through the memory, turn by turn, and report what it learnt.

        progress is called with the number of turns done and of all turns. Raises InvalidInput before the first turn.
        """
        self._store.require_writing()
        events = log_files.read_events(log) if isinstance(log, str | os.PathLike) else log
        turns = events.turns if isinstance(events, log_events.Log) and events.config == self.config else None
        turns = turns or _checked(events, self.config).turns
        started = time.perf_counter()
        unplaced = facts = refused = 0
        remarks: list[str] = []
        visited: dict[str, None] = {}
        for turn, (event, situation) in enumerate(turns, 1):
            visit = self.enter_scene(situation, declared=situation.derived_key)
            if visit.key:
                visited.setdefault(visit.key)
            else:
                unplaced += 1
            if event.facts:
                at = situation.at
                report = self.commit(
                    event.facts, scenes=visit.write_keys, session=event.session, turn=turn, at=at, source="replay"
                )
                facts += report.written
                refused += len(report.refused)
                told = (*report.remarks, *(refusal.reason for refusal in report.refused))
                remarks += [f"turn {turn}, {event.place}: {each}" for each in told]
            progress(turn, len(turns))
        seconds = time.perf_counter() - started
        end = max([self._clock(), *(situation.at for _, situation in turns if situation.at)])
        grown = {scene.key: scene for scene in self.scenes("", origin="emergent")}
        learnt = [
            model.Learnt(grown[key], self.recall_by_scene(key, exact=True, limit=3, as_of=end).relations)
            for key in visited
            if key in grown
        ]
        learnt.sort(key=lambda one: (-one.scene.strength, one.scene.key))
        return model.ReplayReport(len(turns), unplaced, facts, refused, seconds, tuple(learnt), tuple(remarks))

    # ---- within

    def _forget_payload(self, digest: str) -> None:
        """Remove the file of a payload that no block has any more, while nobody can put such a block anew."""
        try:
            self._store.sync()  # a power cut must not bring back the row and leave the file removed
            with self._store.write(keep=False) as tx:
                if not block_rows.uses_payload(tx, digest):
                    remove_blob(self.path, digest)
        except (StoreBusy, StoreFailed) as error:
            log.warning("the block is deleted, its payload is not: %s", error)


def _checked(log: log_events.Log | Iterable[log_events.Event], config: Config) -> log_events.Log:
    """Return the turns of a log with their situations; raise InvalidInput, naming the place, for what is wrong."""
    events = [event for event, _ in log.turns] if isinstance(log, log_events.Log) else log
    if not isinstance(events, Iterable):
        raise InvalidInput("log", log, "give a file, or what read_log returns")
    turns: list[tuple[log_events.Event, Situation]] = []
    for event in events:
        if not isinstance(event, log_events.Event):
            raise InvalidInput("log", event, "give a file, or what read_log returns")
        try:
            turns.append((event, event.situation(config)))
            relations.check_triples(event.facts, config.zone)
        except InvalidInput as error:
            raise InvalidInput(f"{event.place}: {error.argument}", error.value, error.reason) from None
    return log_events.Log(tuple(turns), config)
