"""Commands about files of other memories: import."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphmem.surfaces.cli.group import Session, dry_run_option, json_option
from graphmem.surfaces.output import counted, print_remarks, print_table, printable, progress_bar, to_json

if TYPE_CHECKING:
    from graphmem.core.model import ImportReport

_KINDS = ["homeagent", "mcp-memory", "ledger", "promemory", "jsonl"]
_SHOWN = 20


@click.command("import")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--scope", help="Whose it is: user, project, session or the key of a scope.  [default: as the source says]"
)
@dry_run_option
@json_option
@click.pass_obj
def import_command(session: Session, /, kind: str, path: Path, scope: str | None, dry_run: bool, as_json: bool) -> None:
    """Take in what another memory kept at PATH, and tell what came, what was merged, what was refused and why.

    KIND is homeagent (the graph.db of the HomeAgent engine), mcp-memory (the memory.jsonl of the MCP knowledge-graph
    server), ledger (the JSON of dsh-memory-ledger, a file or the folder), promemory (the folder of opencode-promemory)
    or jsonl (a whole memory that 'graphmem export jsonl' wrote, into an empty one). Nothing at PATH changes. The same
    again adds nothing, and an import that was broken off goes on where it was. Rules and pins wait for 'graphmem
    approve'.

    \b
    Example:
      graphmem import mcp-memory fixtures/observed.jsonl
    """

    from graphmem.memory import Memory

    Memory.check_source(kind, path)  # what is refused makes no file
    opened = session.rehearsing() if dry_run else session.open(create=True)
    with opened as memory, progress_bar("importing") as progress:
        report = memory.import_from(kind, path, scope=scope, dry_run=dry_run, progress=progress)
    if as_json:
        click.echo(to_json(report))
    else:
        _print_import(report)


def _print_import(report: "ImportReport") -> None:
    rows = [
        (count.what, count.read, count.added, count.merged, count.changed, count.known, count.refused)
        for count in report.counts
    ]
    columns = ["what", "read#", "new#", "merged#", "changed#", "known#", "refused#"]
    print_table(columns, rows, empty="nothing to take in: the source is empty")
    for told, lines in (
        ("merged", [f"{each.what} {each.name!r} into {each.into!r}" for each in report.merged]),
        ("refused", [f"{each.what} {each.name!r}: {each.reason}" for each in report.refused]),
    ):
        for line in lines[:_SHOWN]:
            click.echo(printable(f"{told} {line}"), err=True)
        if len(lines) > _SHOWN:
            click.echo(f"{len(lines) - _SHOWN} more {told}; --json lists them", err=True)
    print_remarks(report.remarks)
    if not report.applied:
        click.echo(f"nothing was changed; {counted(report.added, 'thing')} would be new")
