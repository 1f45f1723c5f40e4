"""The verbs of Memory about the tree of its notes, which people and git read and change."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphmem.config import check_flags
from graphmem.core import model
from graphmem.errors import Conflict, StoreFailed
from graphmem.late import late
from graphmem.sessions import Sessions
from graphmem.store.transaction import Transaction

if TYPE_CHECKING:
    from graphmem import projects
    from graphmem.core import redaction
    from graphmem.exchange import rooted, tree, tree_forms, tree_run, watching
    from graphmem.records import trees
    from graphmem.upkeep import edit_notes
else:
    edit_notes = late("graphmem.upkeep.edit_notes")
    projects = late("graphmem.projects")
    redaction = late("graphmem.core.redaction")
    rooted = late("graphmem.exchange.rooted")
    tree = late("graphmem.exchange.tree")
    tree_forms = late("graphmem.exchange.tree_forms")
    tree_run = late("graphmem.exchange.tree_run")
    trees = late("graphmem.records.trees")
    watching = late("graphmem.exchange.watching")


_NOBODY = "import:tree"  # who says what is in files that anybody may have written


class Trees(Sessions):
    """The notes of a memory as files, both ways."""

    def export_tree(
        self,
        root: str | os.PathLike[str],
        *,
        scope: str | None = None,
        form: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, files: None,
    ) -> model.TreeReport:
        """Write the notes of a scope as files that people and git can read. What is counted is in none of them.

        form: how notes are files, that of the tree when left out, else "notes": `<folder>/<title>.md`, one note each,
        beside them `index.md` in each folder and `ROOT.md` with tables of folders and of what to read when; what people
        write into `ROOT.md` outside of the tables stays as it is. "promemory": `MEMORY.md`, a section a note, and
        `sessions/<id>/checkpoint.md`. "ledger": `memory.json` of facts and lessons. The last two hold what is in force,
        each kind that they know, and of it title, body and kind; a ledger slot, labels, pin and reason too. What people
        or programs write between the notes stays.

        A file keeps its place for good. What was changed in a file is not overwritten, but told of: `sync_tree` takes
        it over. Nothing leads out of the root: links are neither followed nor overwritten. Twice the same notes make
        twice the same bytes.

        scope: "user", "project" or the key of one; without it that of the tree, else of the current project, else the
        user's own. progress: is told how many files are done, and how many there are.

        Raises InvalidInput for a root that is a link or no folder, Conflict for one that holds another scope or has
        another form, StoreFailed for files that cannot be written.
        """
        return self._tree(root, scope, form, None, dry_run, progress, "export")

    def sync_tree(
        self,
        root: str | os.PathLike[str],
        *,
        scope: str | None = None,
        form: str | None = None,
        trust: bool | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, files: None,
    ) -> model.TreeReport:
        """Bring a tree of files and the notes of its scope together, by what changed on either side since last time.

        A file that was changed is taken over as an edit, a new one as a note, `status: live` in a proposal as its
        approval; a file that was removed archives its note, and one that comes back restores it. A note that changed is
        written, and the file of one that is gone removed. Where both changed both stay: the note is laid beside the
        file as `NAME.conflict.md`, and `inspect` lists it; take that copy away to keep the file, move it over the file
        to keep the note. A moved file is known by its id or by what it holds. Copies that sync programs leave are told
        of and not read. What cannot be taken over, a secret first of all, is refused by name, and the rest goes on. In
        files of many notes all this is so for each note.

        trust: whether a person speaks in these files. By itself that is so only in a tree that this memory has begun in
        an empty place, and while it lies in no git working tree: what is cloned or pulled anybody may have written. In
        any other one files speak as an import does: what binds (a rule, a pin, a procedure, a note of a constraint)
        comes in as a proposal, changes and removals of what binds are refused, and nothing is approved. All else is
        taken over. True says that only you write there, or people whose rules are yours; False takes that back. It is
        remembered with the tree. scope, form, progress: as in `export_tree`.

        Raises what `export_tree` does, and Conflict where all files are gone at once.
        """
        return self._tree(root, scope, form, trust, dry_run, progress, "sync")

    def watch_tree(
        self,
        root: str | os.PathLike[str],
        report: Callable[[model.TreeReport], None] = lambda report: None,
        *,
        scope: str | None = None,
        form: str | None = None,
        trust: bool | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Sync a tree now, whenever a file of it changes, and every ten seconds, until `stop` is set.

        Without `stop` that is when the memory is closed. report: is told of the first sync, and of each that changed
        anything or failed, with the reason as a remark; it goes on after that. Raises InvalidInput where the extra
        `graphmem[tree]` is not installed, and what the first sync raises.
        """
        watching.require()
        place = rooted.checked_root(root)
        report(self.sync_tree(place, scope=scope, form=form, trust=trust))
        failed: model.TreeReport | None = None
        for _ in watching.changes(place, self._closing if stop is None else stop):
            try:
                told = self.sync_tree(place)
            except (Conflict, StoreFailed) as error:  # a folder that is away for a moment, a full disk
                told = model.TreeReport(place, scope or "", (), 0, applied=False, remarks=(str(error),))
                if told != failed:  # and not every ten seconds
                    report(told)
                failed = told
            else:
                failed = None
                if told.changes:
                    report(told)

    # ---- within

    def _tree(
        self,
        root: str | os.PathLike[str],
        scope: str | None,
        form: str | None,
        trust: bool | None,
        dry_run: bool,
        progress: Callable[[int, int], None],
        verb: str,
    ) -> model.TreeReport:
        check_flags(dry_run=dry_run, trust=bool(trust) if trust is None else trust)
        if form is not None:
            tree_forms.form_of(form)
        place = rooted.checked_root(root)
        redaction.refuse_secrets(root=place, scope=scope)
        at = self._at(None)
        with self._store.read() as tx:
            known = trees.tree_of(tx, place)
        wanted = self._wanted(place, known, scope, form, trust)
        is_own = wanted.trust == trees.BEGUN and projects.working_tree(place) is None
        source = "user" if is_own or wanted.trust == trees.TOLD else _NOBODY
        run = tree.export if verb == "export" else tree.sync
        act = functools.partial(self._done, source=source, at=at, reason="", session="", place=place)
        if not dry_run:
            self._store.require_writing()
            read, write = self._store.read, functools.partial(self._writing, at)
            return run(place, wanted, tree_run.Hands(read, write, self._edit, act, source, self.config, True, progress))
        # A rehearsal does all of it and keeps nothing: so it meets what would be refused.
        with self._store.write(keep=False):
            within = self._store.write
            return run(
                place, wanted, tree_run.Hands(within, within, self._edit, act, source, self.config, False, progress)
            )

    def _wanted(
        self, place: str, known: trees.Tree | None, scope: str | None, form: str | None, trust: bool | None
    ) -> trees.Tree:
        """Return what a tree is to be; raise Conflict where it is another one."""
        told = None if scope is None else self._scope(scope)
        if known is None:
            own = "" if self._project is None else self._own_scope("project")
            return trees.Tree(own if told is None else told, form or "notes", trees.TOLD if trust else 0)
        if told not in (None, known.scope):
            raise Conflict(
                f"{place}: holds the notes of scope {known.scope or 'user'}: choose another folder for this one"
            )
        if form not in (None, known.form):
            raise Conflict(f"{place}: holds notes in the form {known.form}: choose another folder for this one")
        return known if trust is None else replace(known, trust=trees.TOLD if trust else 0)

    def _edit(
        self, tx: Transaction, note_id: int, changes: Mapping[str, Any], act: model.Provenance
    ) -> model.NoteEditReport:
        return edit_notes.edit(tx, note_id, changes, act, self.config)
