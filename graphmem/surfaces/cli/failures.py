"""Commands about failures of tools: record-failure, incidents."""

import sys
from typing import TYPE_CHECKING

import click

from graphmem.surfaces.cli.group import WholeNumber, json_option, scope_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_remarks, print_table, printable, to_json

if TYPE_CHECKING:
    from graphmem.core.model import IncidentReport


@click.command("record-failure")
@click.argument("tool", metavar="TOOL")
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--scope", help="The scope it belongs to.")
@click.option("--at", metavar="TIME", help="When, in ISO 8601.  [default: now]")
@json_option
@click.pass_obj
def record_failure_command(
    session: Session, /, tool: str, text: str | None, scope: str | None, at: str | None, as_json: bool
) -> None:
    """Count a failure of TOOL with those that look alike. TEXT is what it said, - or nothing for standard input.

    \b
    Example:
      graphmem record-failure bash "rm: cannot remove 'a': No such file"
    """
    if text in (None, "-"):
        if text is None and (sys.stdin is None or sys.stdin.isatty()):  # closed, or nobody pipes anything in
            raise click.UsageError("give TEXT, or pipe it into standard input")
        # What a tool prints need not be UTF-8.
        text = click.open_file("-", encoding="utf-8", errors="replace").read()
    report = session.run(lambda memory: memory.record_failure(tool, text or "", scope=scope, at=at))
    if as_json:
        click.echo(to_json(report))
    else:
        _print_report(report)


def _print_report(report: "IncidentReport") -> None:
    print_remarks(report.remarks)
    incident = report.incident
    if incident is None:
        return
    state = "new" if report.created else "open again" if report.reopened else "known"
    resolved = ", resolved" if incident.resolved_at else ""
    warned = "; it is warned of" if report.warns else ""
    click.echo(
        printable(f"incident {incident.id}: {state}{resolved}, seen {counted(incident.count, 'time')}{warned}: ")
        + printable(incident.signature)
    )


@click.command("incidents")
@click.option("--all", "everything", is_flag=True, help="Those that are resolved as well.")
@scope_option
@click.option("--forget", "forgotten", type=WholeNumber(1), metavar="ID", help="Remove one for good.")
@json_option
@click.pass_obj
def incidents_command(
    session: Session, /, everything: bool, scopes: tuple[str, ...], forgotten: int | None, as_json: bool
) -> None:
    """List the failures of tools that look alike, those seen most often first.

    \b
    Example:
      graphmem incidents --all
    """
    if forgotten is not None and (everything or scopes):
        raise click.UsageError("--forget takes one incident away and goes with neither --all nor --scope")
    with session.open(create=False) as memory:
        if forgotten is not None:
            gone = memory.forget_incident(forgotten)
            click.echo(to_json(gone) if as_json else printable(f"forgotten: {gone.signature}"))
            return
        found = memory.incidents(scopes=scopes or None, status=None if everything else "open")
    if as_json:
        click.echo(to_json(found))
        return
    rows = [
        (
            one.id,
            one.count,
            one.tool,
            "open" if one.resolved_at is None else f"note {one.note_id}" if one.note_id else "resolved",
            one.last_at[:19],
            one.scope or "user",
            one.sample or "(failed without a word)",
        )
        for one in found
    ]
    columns = ["id#", "times#", "tool", "state", "last (UTC)", "scope", "said~"]
    print_table(columns, rows, empty="no incidents" if everything else "no open incidents; --all shows the others too")
