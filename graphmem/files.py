"""The verbs of Memory about files that other programs and people read, and about pictures."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from graphmem import arguments
from graphmem.config import DEFAULT, Config, check_count, check_flags
from graphmem.core import model
from graphmem.core.keys import require_key
from graphmem.errors import Conflict, InvalidInput
from graphmem.late import late
from graphmem.store.transaction import Transaction
from graphmem.trees import Trees

if TYPE_CHECKING:
    from graphmem import projects
    from graphmem.core import pictures, redaction
    from graphmem.exchange import copying, importing, kinds, to_mcp_memory, to_okf, whole
    from graphmem.graph import neighbours as around
    from graphmem.graph import view
    from graphmem.store import blobs, database, placing
    from graphmem.upkeep import screening
else:
    blobs = late("graphmem.store.blobs")
    around = late("graphmem.graph.neighbours")
    pictures = late("graphmem.core.pictures")
    copying = late("graphmem.exchange.copying")
    database = late("graphmem.store.database")
    importing = late("graphmem.exchange.importing")
    kinds = late("graphmem.exchange.kinds")
    placing = late("graphmem.store.placing")
    projects = late("graphmem.projects")
    redaction = late("graphmem.core.redaction")
    screening = late("graphmem.upkeep.screening")
    to_mcp_memory = late("graphmem.exchange.to_mcp_memory")
    to_okf = late("graphmem.exchange.to_okf")
    view = late("graphmem.graph.view")
    whole = late("graphmem.exchange.whole")

EXPORTS = ("jsonl", "mcp-memory", "okf", "mermaid", "dot", "json", "graphml", "svg", "html")
_HELD = (
    "it holds all that the memory holds, what was mirrored word for word and what undo could bring back included: "
    "keep it as you keep the memory"
)


class Texts(Protocol):
    """Something that takes text, such as an open file."""

    def write(self, text: str, /) -> object:
        """Take a text."""


class Files(Trees):
    """What a memory shows of itself in files and pictures, and what it takes in from files of others."""

    # ---- pictures

    def graph(
        self,
        *,
        scene: str | None = None,
        entity: str | None = None,
        depth: int = 1,
        at: dt.datetime | str | None = None,
        scopes: Iterable[str] | None = None,
    ) -> view.Graph:
        """Return facts as a networkx MultiDiGraph: all, those of a scene and the scenes below it, or around an entity.

        Nodes are the ids of entities, with name, type and mentions; edges have the ids of facts as keys, with relation,
        sentence, confidence, valid_from and valid_to. depth: hops around the entity. at: what held at that instant,
        None for now. scopes: as in `recall_by_scene`. It is a copy: changing it changes nothing here. Raises NotFound
        for an unknown scene, and for an unknown entity, telling the names close to it.
        """
        check_count("depth", depth)
        key = None if scene is None else require_key(scene, "scene")
        moment = self._at(at)
        # networkx takes 100 ms to import: only the verbs about pictures and ways pay it.
        with self._store.read() as tx:
            reading = around.Reading(moment, self._scopes(tx, scopes))
            return view.graph(tx, reading, scene=key, entity=entity, depth=depth)

    def draw(
        self,
        form: str = "mermaid",
        *,
        scene: str | None = None,
        entity: str | None = None,
        depth: int = 1,
        at: dt.datetime | str | None = None,
        scopes: Iterable[str] | None = None,
    ) -> str:
        """Return what `graph` returns as a picture: 'mermaid', 'dot' (Graphviz), 'json', 'graphml', 'svg' or 'html'."""
        return view.draw(self.graph(scene=scene, entity=entity, depth=depth, at=at, scopes=scopes), form)

    def picture(
        self,
        *,
        scene: str | None = None,
        entity: str | None = None,
        depth: int = 1,
        at: dt.datetime | str | None = None,
        scopes: Iterable[str] | None = None,
        most: int = 200,
    ) -> pictures.Drawing:
        """Return what `graph` returns with a place for everything, for programs that draw it themselves.

        most: of more entities than these, up to 400, those with the most facts are in it.
        """
        check_count("most", most, high=view.MOST_DRAWN)
        return view.drawing(self.graph(scene=scene, entity=entity, depth=depth, at=at, scopes=scopes), most)

    # ---- files

    def export_to(
        self,
        kind: str,
        path: str | os.PathLike[str] | Texts,
        *,
        scene: str | None = None,
        entity: str | None = None,
        depth: int = 1,
        at: dt.datetime | str | None = None,
        scopes: Iterable[str] | None = None,
        force: bool = False,
        progress: Callable[[int, int], None] = lambda done, whole: None,
    ) -> model.ExportReport:
        """Write what is known into a file that others read, and return what was written.

        kind: 'jsonl' is the whole memory, with every row of every scope and the payload files, for `import_from`.
        'mcp-memory' is a file of the MCP knowledge-graph server, and 'okf' a folder of Markdown files, a bundle of the
        Open Knowledge Format: what holds at an instant and may be read, `at` and `scopes` as in `graph`. The others are
        those of `draw`, with its arguments.

        path: a file, but for 'okf' also a stream of text. It has its name when it is whole; a file that is there is
        replaced with force alone, a folder never. progress is told how much is done and of how much.

        Raises InvalidInput for an unknown kind and for what the kind cannot be limited by, Conflict for a file that is
        there, StoreFailed.
        """
        if not isinstance(kind, str) or kind not in EXPORTS:
            raise InvalidInput("kind", kind, f"give one of {', '.join(EXPORTS)}")
        check_flags(force=force)
        unlimited = {"jsonl": ("scene", "entity", "at", "scopes"), "mcp-memory": ("scene", "entity")}
        unlimited["okf"] = unlimited["mcp-memory"]
        given = {"scene": scene, "entity": entity, "at": at, "scopes": scopes}
        for name in unlimited.get(kind, ()):
            if given[name] is not None:
                raise InvalidInput(
                    name, given[name], f"{kind} is not limited by it: leave it out, or give another kind"
                )
        if kind == "jsonl":
            return self._export_whole(path, force=force, progress=progress)
        if kind in unlimited:
            moment = self._at(at)
            with self._store.read() as tx:
                reading = around.Reading(moment, self._scopes(tx, scopes))
                report = self._export_known(tx, kind, path, reading, force=force)
            progress(1, 1)
            return report
        picture = self.graph(scene=scene, entity=entity, depth=depth, at=at, scopes=scopes)
        place = self._write_text(path, iter([view.draw(picture, kind), "\n"]), force=force)
        progress(1, 1)
        return model.ExportReport(kind, place, {"entities": len(picture), "facts": picture.number_of_edges()})

    def import_from(
        self,
        kind: str,
        path: str | os.PathLike[str],
        *,
        scope: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, whole: None,
    ) -> model.ImportReport:
        """Take in what another memory kept in a file or a folder, and report what came, what was merged or refused.

        kind: 'homeagent', the database of the HomeAgent engine, in both eras of its schema; 'mcp-memory', the JSON
        Lines of the MCP knowledge-graph server, whose observations become notes; 'ledger', the JSON of
        dsh-memory-ledger, one file or the folder of all; 'promemory', the folder of opencode-promemory; 'tree', a
        folder of Markdown notes, such as a vault of Obsidian, the files of basic-memory, a tree of another memory or a
        bundle of the Open Knowledge Format. scope: whose it is, as in `commit`; left out, what the source says, else
        the user's own. progress: is told how much is done and of how much.

        A file of a 'tree' is a note. Links stay in its text, and the titles that they lead to are labels of the note;
        keys of the frontmatter that mean nothing here stand at the end of its body. A file that was changed changes its
        note, unless that was changed here as well, which is told.

        What is here already stays as it is, so the same source can be taken in again, also after an interruption: each
        batch is one transaction. Counts are not added to those here, the greater one stays. The source is opened for
        reading only. Secrets are taken out of texts, and names with secrets are refused. With dry_run everything is
        done, and nothing of it stays.

        'jsonl' is a whole memory that `export_to` wrote. It is read into an empty memory alone, in one transaction, and
        comes back row by row, what is derived made anew: in two memories equal numbers mean different things. Nothing
        is cut out of it; that it holds secrets is remarked, and `scan_secrets` takes them out.

        Raises InvalidInput for an unknown kind and for a source that is none or is damaged, StoreFailed for one that
        cannot be read, Conflict for one that is open here or is being written, and for 'jsonl' where the memory is not
        empty, SchemaTooNew for a file of a newer graphmem.
        """
        check_flags(dry_run=dry_run)
        if kind == kinds.WHOLE:
            if scope is not None:
                raise InvalidInput("scope", scope, "what a whole memory holds keeps its scopes: leave it out")
            return self._import_whole(path, dry_run=dry_run, progress=progress)
        redaction.refuse_secrets(scope=scope)
        place = database.real_path(path)
        source = kinds.opened(kind, place)
        whose = None if scope is None else self._scope(scope)
        at = self._at(None)
        if not dry_run:
            self._store.require_writing()
        target = importing.Target(
            # Within a rehearsal no day may be noted as one of use: it would be believed to be written.
            writing=self._store.write if dry_run else lambda: self._writing(at),
            config=self.config,
            source=f"import:{kind}",
            scope=whose,
            scope_of=self._scope_at,
            at=at,
            progress=progress,
            edit=self._edit,
            keep_payload=functools.partial(self._keep_payload, keep=not dry_run),
        )
        tally = importing.Tally()
        rehearsal: AbstractContextManager[Transaction | None] = (
            self._store.write(keep=False) if dry_run else contextlib.nullcontext()
        )
        with source as take_in, rehearsal:
            take_in(target, tally)
        return tally.report(kind, place, applied=not dry_run)

    @staticmethod
    def copy(
        source: str | os.PathLike[str],
        dest: str | os.PathLike[str],
        *,
        anew: bool = False,
        config: Config = DEFAULT,
        progress: Callable[[int, int], None] = lambda done, steps: None,
    ) -> model.CopyReport:
        """Copy a memory into an empty one, each of them a file or the address of a tenant on a PostgreSQL server.

        The source is seen in one state, and nothing of it changes. Every row comes under its own number, vectors and
        the journal included; the text index is made anew. A copy that was broken off goes on where it was when it is
        begun again, or anew where the source is not what it was. Until it is finished dest cannot be opened, who had it
        open before writes nothing there, and `check_copy` tells of it. At the end the rows of both are compared, table
        by table; the same again finds nothing to do. progress is told steps done and all.

        anew: where dest is a copy of another source that is not finished, nothing of it stays. Such a one is refused
        else, and what is no unfinished copy always.

        Raises Conflict where dest holds something else or another copy goes on there, InvalidInput naming the row for a
        text with NUL characters, which PostgreSQL cannot keep, StoreFailed for a source that is not there and for rows
        that dest does not take, StoreCorrupt where both differ after all, and what `open` raises.
        """
        check_flags(anew=anew)
        arguments.check_config(config)
        places = copying.place_of("source", source), copying.place_of("dest", dest)
        return copying.copy(*places, config=config, anew=anew, progress=progress)

    @staticmethod
    def copy_tenants(
        source: str | os.PathLike[str],
        dest: str | os.PathLike[str],
        *,
        anew: bool = False,
        config: Config = DEFAULT,
        progress: Callable[[int, int], None] = lambda done, steps: None,
    ) -> tuple[model.CopyReport, ...]:
        """Copy every tenant of a server into a file of a folder, or back, or to another server, as `copy` does.

        The address of a server names no tenant here. A tenant has a file of its name, with what no file name can hold
        in percent encoding; one that is too long is cut short, and a file beside it keeps the whole one. The first copy
        that fails ends it; the same again goes on there.
        """
        check_flags(anew=anew)
        arguments.check_config(config)
        places = copying.place_of("source", source), copying.place_of("dest", dest)
        return copying.copy_tenants(*places, config=config, anew=anew, progress=progress)

    @staticmethod
    def check_source(kind: str, path: str | os.PathLike[str]) -> None:
        """Raise what `import_from` raises for a source that is none, without reading all of it."""
        place = database.real_path(path)
        if kind == kinds.WHOLE:
            whole.check_head(place)
        else:
            with kinds.opened(kind, place):
                pass

    def _scope_at(self, folder: str) -> str:
        """Return the scope of what was told in a folder, which need not be there any more."""
        if not self.config.project_memory:
            return ""
        signs = projects.signs_of(folder, whole_repository=self.config.project_identity == "repository")
        return self._known_project(signs).project.key

    def _keep_payload(self, digest: str, payload: bytes, *, keep: bool = True) -> bool:
        """Write a payload beside the memory where it is too large for its row; tell whether it is not."""
        in_row = blobs.lies_in_row(self.path, len(payload))
        if keep and not in_row:
            blobs.write_blob(self.path, digest, payload)
        return in_row

    def _import_whole(
        self, path: str | os.PathLike[str], *, dry_run: bool, progress: Callable[[int, int], None]
    ) -> model.ImportReport:
        place = database.real_path(path)
        tally = whole.Tally()
        with whole.open_lines(place, progress) as lines, self._store.write(keep=not dry_run) as tx:
            whole.load(tx, lines, place, database=self.path, keep=not dry_run, tally=tally)
            found, _ = screening.screen(tx, screening.finder(None), lambda done, tables: None, redact=False)
        if found:
            tally.remarks.append(
                f"{len({(each.table, each.id) for each in found})} rows hold secrets: 'graphmem secrets scan' tells "
                "which, and takes them out"
            )
        if not dry_run:
            self._last_day = ""
            self._settle_again()
        counts = tuple(
            model.ImportCount(what, added=rows, merged=0, changed=0, known=0, refused=0)
            for what, rows in {**tally.rows, "payloads": tally.payloads}.items()
            if what != "sqlite_sequence"
        )
        return model.ImportReport("jsonl", place, counts, (), (), applied=not dry_run, remarks=tuple(tally.remarks))

    def _export_whole(
        self, path: str | os.PathLike[str] | Texts, *, force: bool, progress: Callable[[int, int], None]
    ) -> model.ExportReport:
        tally = whole.Tally()
        with self._store.read() as tx:
            lines = whole.to_lines(tx, self.path, self._at(None), tally, progress)
            place = self._write_text(path, lines, force=force)
        counts = {**tally.rows, "payloads": tally.payloads}
        return model.ExportReport("jsonl", place, counts, (_HELD, *tally.remarks))

    def _export_known(
        self,
        tx: Transaction,
        kind: str,
        path: str | os.PathLike[str] | Texts,
        reading: around.Reading,
        *,
        force: bool,
    ) -> model.ExportReport:
        counts: dict[str, int] = {}
        remarks: list[str] = []
        if kind == "mcp-memory":
            lines = to_mcp_memory.to_lines(tx, reading, counts, remarks)
            place = self._write_text(path, lines, force=force)
            return model.ExportReport(kind, place, counts, tuple(remarks))
        if not isinstance(path, str | os.PathLike):
            raise InvalidInput("path", "a stream", "okf is a folder of files: give the path of one")
        if force:
            raise InvalidInput("force", force, "a folder is never replaced: name a new one, or remove it")
        place = self._place_beside(path)
        with placing.new_folder(place) as folder:
            for name, text in to_okf.to_files(tx, reading, counts):
                file = folder / name
                file.parent.mkdir(mode=0o700, exist_ok=True)
                with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:  # noqa: PTH123
                    stream.write(text.encode())
        return model.ExportReport(kind, place, counts)

    def _write_text(self, path: str | os.PathLike[str] | Texts, texts: Iterator[str], *, force: bool) -> str:
        """Write texts one after the other to a file, or to a stream; return the path of the file."""
        if not isinstance(path, str | os.PathLike):
            if not callable(getattr(path, "write", None)):
                raise InvalidInput("path", path, "give the path of a file, or a stream of text")
            for text in texts:
                path.write(text)
            return ""
        place = self._place_beside(path)
        with placing.new_file(place, force=force) as stream:
            for text in texts:
                stream.write(text.encode())
        return place

    def _place_beside(self, path: str | os.PathLike[str]) -> str:
        """Return the real path of a file that is to be made; refuse the memory itself, and what is a part of it."""
        place = database.real_path(path)
        if place == self.path or database.is_open_here(place):
            raise Conflict(f"{place} is a memory that is open: name another file")
        placing.refuse_part(self.path, place, "path")
        return place
