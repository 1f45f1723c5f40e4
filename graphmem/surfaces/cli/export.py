"""The command that writes what a memory knows into files of other programs."""

import codecs
import sys
from typing import TYPE_CHECKING

import click

from graphmem.surfaces.cli.group import Session, WholeNumber, at_option, json_option, scope_option
from graphmem.surfaces.output import print_remarks, printable, progress_bar, to_json

if TYPE_CHECKING:
    from graphmem.core.model import ExportReport
    from graphmem.files import Texts

_KINDS = ["jsonl", "mcp-memory", "okf", "mermaid", "dot", "json", "graphml", "svg", "html"]


@click.command("export")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("path", type=click.Path(), default="-")
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
    knowledge-graph server, okf a folder of Markdown files in the Open Knowledge Format. The others are pictures of the
    facts, as 'graphmem graph' draws them.

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
