"""Commands about files of other memories and programs: import, export."""

import codecs
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphmem.surfaces.cli.group import FilePath, WholeNumber, at_option, dry_run_option, json_option, scope_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_remarks, print_table, printable, progress_bar, to_json

if TYPE_CHECKING:
    from graphmem.core.model import ExportReport, ImportReport
    from graphmem.files import Texts

_IMPORTS = ["homeagent", "mcp-memory", "ledger", "promemory", "tree", "jsonl"]
_EXPORTS = ["jsonl", "mcp-memory", "okf", "mermaid", "dot", "json", "graphml", "svg", "html"]
_SHOWN = 20


@click.command("import")
@click.argument("kind", metavar="KIND", type=click.Choice(_IMPORTS))
@click.argument("path", type=FilePath(path_type=Path))
@click.option(
    "--scope", help="Whose it is: user, project, session or the key of a scope.  [default: as the source says]"
)
@dry_run_option
@json_option
@click.pass_obj
def import_command(session: Session, /, kind: str, path: Path, scope: str | None, dry_run: bool, as_json: bool) -> None:
    """Take in what another memory kept at PATH, and tell what came, what was merged, what was refused and why.

    KIND is homeagent (the graph.db of the HomeAgent engine), mcp-memory (the memory.jsonl of the MCP knowledge-graph
    server), ledger (the JSON of dsh-memory-ledger, a file or the folder), promemory (the folder of opencode-promemory),
    tree (a folder of Markdown notes: Obsidian, basic-memory, a tree or an okf bundle of another memory) or jsonl (a
    whole memory that 'graphmem export jsonl' wrote, into an empty one). Nothing at PATH changes. The same again adds
    nothing, and an import that was broken off goes on where it was. Rules and pins wait for 'graphmem approve'.

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


@click.command("export")
@click.argument("kind", metavar="KIND", type=click.Choice(_EXPORTS))
@click.argument("path", type=FilePath(), default="-")
@click.option("--scene", metavar="KEY", help="Facts of this scene and of those below it.")
@click.option("--entity", metavar="NAME", help="Facts around this name.")
@click.option("--depth", type=WholeNumber(0), default=1, help="How far around the name.  [default: 1]")
@at_option
@scope_option
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
@click.pass_obj
def export_command(
    session: Session,
    /,
    kind: str,
    path: str,
    scene: str | None,
    entity: str | None,
    depth: int,
    at: str | None,
    scopes: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Write what is known into the file PATH, or to standard output.

    KIND jsonl is the whole memory, with all that it holds, for 'graphmem import jsonl'; mcp-memory is a file of the MCP
    knowledge-graph server, okf a folder of Markdown files in the Open Knowledge Format. mermaid, dot, json, graphml,
    svg and html are pictures of the facts, as 'graphmem graph' draws them.

    \b
    Example:
      graphmem export jsonl memory.jsonl
      graphmem export html boss.html --entity 老大
    """
    if as_json and path == "-":
        raise click.UsageError("--json tells what was written to a file: name its PATH")
    with session.open(create=False) as memory, progress_bar("exporting") as progress:
        report = memory.export_to(
            kind, _stream() if path == "-" else path, scene=scene, entity=entity, depth=depth, at=at,
            scopes=scopes or None, force=force, progress=progress,
        )  # fmt: skip
    if as_json:
        click.echo(to_json(report))
        return
    if path != "-":
        click.echo(printable(f"{report.path}: {_told(report)}"))
    print_remarks(report.remarks)


def _told(report: "ExportReport") -> str:
    told = [f"{count} {what.replace('_', ' ')}" for what, count in report.counts.items() if count]
    return ", ".join(told) or "nothing in it"


class _Terminal:
    """A stream to a terminal, on which nothing that is written drives it."""

    def write(self, text: str) -> None:
        click.echo("\n".join(map(printable, text.split("\n"))), nl=False)


def _stream() -> "Texts":
    """Return standard output for text: UTF-8 whatever the code page, unless somebody looks at it."""
    if sys.stdout.isatty():
        return _Terminal()
    sys.stdout.flush()
    return codecs.getwriter("utf-8")(sys.stdout.buffer)
