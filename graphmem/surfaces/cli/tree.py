"""Commands about the tree of notes as files: tree export, tree sync, tree watch."""

import contextlib
import os
import threading
from typing import TYPE_CHECKING

import click

from graphmem.surfaces import places
from graphmem.surfaces.cli.group import FilePath, json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_remarks, printable, progress_bar, to_json

if TYPE_CHECKING:
    from graphmem.core.model import TreeReport
    from graphmem.memory import Memory

_FOLDER = "memory"
_ATTENTION = ("refused", "conflict")

_root_argument = click.argument("root", metavar="[ROOT]", required=False, type=FilePath())
_scope_option = click.option("--scope", help="The scope of the notes: user, project, or the key of one.")
_form_option = click.option(
    "--form",
    type=click.Choice(["notes", "promemory", "ledger"]),
    help="How notes are files: a page each, MEMORY.md and checkpoints, or JSON.  [default: that of ROOT, else notes]",
)
_trust_option = click.option(
    "--trust/--no-trust", default=None, help="Whether only you write there, so that rules in files hold; is remembered."
)
_dry_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")


@click.group("tree")
def tree_command() -> None:
    """Keep notes as files that people and git can read and change. Each command takes --json.

    ROOT is `.memory` in the current project, or `memory` beside the settings of the user, when left out.

    \b
    Example:
      graphmem tree sync
    """


@tree_command.command("export")
@_root_argument
@_scope_option
@_form_option
@_dry_option
@json_option
@click.pass_obj
def export_command(
    session: Session, /, root: str | None, scope: str | None, form: str | None, dry_run: bool, as_json: bool
) -> int:
    """Write notes as files; what was changed in a file stays, and is told of.

    \b
    Example:
      graphmem tree export notes --scope user
      graphmem tree export ledger --form ledger
    """
    with session.open(create=False) as memory, progress_bar("writing") as progress:
        report = memory.export_tree(
            _root(memory, root, scope), scope=scope, form=form, dry_run=dry_run, progress=progress
        )
    return _print_report(report, as_json=as_json)


@tree_command.command("sync")
@_root_argument
@_scope_option
@_form_option
@_trust_option
@_dry_option
@json_option
@click.pass_obj
def sync_command(
    session: Session,
    /,
    root: str | None,
    scope: str | None,
    form: str | None,
    trust: bool | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Take over what was changed in files, and write what changed in notes.

    Where both changed both stay, with the note in NAME.conflict.md beside the file: remove that to keep the file, move
    it over the file to keep the note. In files that anybody may have written, such as a clone, nobody approves and no
    rule comes into force: it is proposed. --trust says that only you write there.

    \b
    Example:
      graphmem tree sync --dry-run
    """
    with session.open(create=False) as memory, progress_bar("syncing") as progress:
        report = memory.sync_tree(
            _root(memory, root, scope), scope=scope, form=form, trust=trust, dry_run=dry_run, progress=progress
        )
    return _print_report(report, as_json=as_json)


@tree_command.command("watch")
@_root_argument
@_scope_option
@_form_option
@_trust_option
@click.option("--for", "seconds", type=click.FloatRange(min=0), help="Stop after so many seconds.  [default: never]")
@json_option
@click.pass_obj
def watch_command(
    session: Session,
    /,
    root: str | None,
    scope: str | None,
    form: str | None,
    trust: bool | None,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Sync whenever a file changes, until it is stopped. With --json each report is one line.

    It needs `pip install 'graphmem[tree]'`.

    \b
    Example:
      graphmem tree watch notes --for 1
    """

    def tell(report: "TreeReport") -> None:
        if as_json:
            click.echo(to_json(report, one_line=True))
        else:
            _print_changes(report)

    stop = threading.Event()
    timer = threading.Timer(seconds or 0, stop.set)
    timer.daemon = True
    with session.open(create=False) as memory, contextlib.suppress(KeyboardInterrupt):
        if seconds is not None:
            timer.start()
        memory.watch_tree(_root(memory, root, scope), tell, scope=scope, form=form, trust=trust, stop=stop)
    timer.cancel()


def _root(memory: "Memory", root: str | None, scope: str | None) -> str:
    """Return the folder that is meant."""
    if root is not None:
        return root
    if memory.project is not None and scope in (None, "project"):
        return os.path.join(memory.project.place, f".{_FOLDER}")  # noqa: PTH118 (as a place is written)
    if scope not in (None, "user"):
        raise click.UsageError("name ROOT: there is a usual one only for the user's notes and those of a project")
    return os.path.join(places.settings_folder(), _FOLDER)  # noqa: PTH118 (likewise)


def _print_report(report: "TreeReport", *, as_json: bool) -> int:
    print_remarks(report.remarks)
    if as_json:
        click.echo(to_json(report))
    else:
        _print_changes(report)
        would = "" if report.applied else "would be "
        click.echo(printable(f"{report.root}: {would}{_numbers(report)}"))
    return 1 if any(change.what in _ATTENTION for change in report.changes) else 0


def _print_changes(report: "TreeReport") -> None:
    for change in report.changes:
        note = "" if change.note_id is None else f" (note {change.note_id})"
        reason = f": {change.reason}" if change.reason else ""
        click.echo(printable(f"{change.what:<9} {change.path}{note}{reason}"))


def _numbers(report: "TreeReport") -> str:
    counts: dict[str, int] = {}
    for change in report.changes:
        counts[change.what] = counts.get(change.what, 0) + 1
    told = [f"{number} {what}" for what, number in sorted(counts.items())]
    return ", ".join([*told, f"{counted(report.unchanged, 'file')} of notes unchanged"])
