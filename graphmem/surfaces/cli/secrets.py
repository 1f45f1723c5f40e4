"""The command that looks for secrets in what is stored: secrets scan."""

import click

from graphmem.surfaces.cli.group import json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_remarks, print_table, progress_bar, to_json


@click.group("secrets")
def secrets_command() -> None:
    """Find secrets in what is stored, and take them out. Each command takes --json.

    \b
    Example:
      graphmem secrets scan
    """


@secrets_command.command("scan")
@click.option("--redact", is_flag=True, help="Take them out for good; no undo brings them back.")
@json_option
@click.pass_obj
def scan_command(session: Session, /, redact: bool, as_json: bool) -> None:
    """List what holds a secret: table, id and kind, and nothing of the secret itself.

    With --redact each is replaced by [REDACTED] and the file is written anew. `pip install 'graphmem[secrets]'` adds
    the detectors of detect-secrets.

    \b
    Example:
      graphmem secrets scan --redact
    """
    with session.open(create=False) as memory, progress_bar("scanning") as progress:
        report = memory.scan_secrets(redact=redact, progress=progress)
    if as_json:
        click.echo(to_json(report))
        return
    rows = [(one.table, "" if one.id is None else str(one.id), one.kind) for one in report.found]
    print_table(["table", "id", "kind"], rows, empty="no secrets found")
    print_remarks(report.remarks)
    if report.applied and report.found:
        click.echo(f"taken out of {counted(report.redacted, 'row')}", err=True)
    elif report.found:
        click.echo("--redact takes them out", err=True)
