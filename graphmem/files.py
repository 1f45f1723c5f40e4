"""The verbs of Memory about files that others read and write: what comes in from them, and what goes out to them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from graphmem.config import check_flags
from graphmem.core import model
from graphmem.late import late
from graphmem.sessions import Sessions
from graphmem.store.database import real_path

if TYPE_CHECKING:
    import sqlite3

    from graphmem import projects
    from graphmem.exchange import importing, kinds
else:
    importing = late("graphmem.exchange.importing")
    kinds = late("graphmem.exchange.kinds")
    projects = late("graphmem.projects")


class Files(Sessions):
    """What a memory exchanges with files."""

    def import_from(
        self,
        kind: str,
        path: str | os.PathLike[str],
        *,
        scope: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, rows: None,
    ) -> model.ImportReport:
        """Take in what another memory kept in a file or a folder, and report what came, what was merged or refused.

        kind: 'homeagent', the database of the HomeAgent engine, in both eras of its schema; 'mcp-memory', the JSON
        Lines of the MCP knowledge-graph server, whose observations become notes; 'ledger', the JSON of
        dsh-memory-ledger, one file or the folder of all; 'promemory', the folder of opencode-promemory. scope: whose it
        is, as in `commit`; left out, what the source says. progress: is told how much is done and of how much.

        What is here already stays as it is, so the same source can be taken in again, also after an interruption: each
        batch is one transaction. Counts are not added to those here, the greater one stays. The source is opened for
        reading only. Secrets are taken out of texts, and names with secrets are refused. With dry_run everything is
        done, and nothing of it stays.

        Raises InvalidInput for an unknown kind and for a source that is none, StoreFailed for one that cannot be read,
        Conflict for one that is open here or is being written.
        """
        check_flags(dry_run=dry_run)
        place = real_path(path)
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
        )
        tally = importing.Tally()
        rehearsal: AbstractContextManager[sqlite3.Connection | None] = (
            self._store.write(keep=False) if dry_run else contextlib.nullcontext()
        )
        with source as take_in, rehearsal:
            take_in(target, tally)
        return tally.report(kind, place, applied=not dry_run)

    @staticmethod
    def check_source(kind: str, path: str | os.PathLike[str]) -> None:
        """Raise what `import_from` raises for a source that is none, without reading all of it."""
        with kinds.opened(kind, real_path(path)):
            pass

    def _scope_at(self, folder: str) -> str:
        """Return the scope of what was told in a folder, which need not be there any more."""
        if not self.config.project_memory:
            return ""
        signs = projects.signs_of(folder, whole_repository=self.config.project_identity == "repository")
        return self._known_project(signs).project.key
