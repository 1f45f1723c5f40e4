"""The command that looks whether all is well: doctor."""

from typing import TYPE_CHECKING

import click

from graphmem.late import late
from graphmem.surfaces.cli import config
from graphmem.surfaces.cli.group import json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_table, printable, to_json

if TYPE_CHECKING:
    from graphmem.surfaces.doctor import examining
else:
    examining = late("graphmem.surfaces.doctor.examining")


@click.command("doctor")
@click.option("--quick", is_flag=True, help="Start no server and try no surface.")
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, /, quick: bool, as_json: bool) -> int:
    """Look whether all is well: versions, files, who may read them, clients, and a trip through each surface.

    Nothing is changed: the trips go through a temporary memory. The exit code is 1 when there is a problem; each comes
    with what mends it.

    \b
    Example:
      graphmem doctor --quick
    """
    session: Session = ctx.obj
    examined = examining.examine(session, lambda: config.source_of_path(ctx, session), quick=quick)
    if as_json:
        click.echo(to_json(examined))
        return int(not examined.ok)
    print_table(["state", "what", "told"], [(each.state, each.what, each.told) for each in examined.findings], empty="")
    # Not in the table, which would break a command in the middle.
    click.echo()
    for each in examined.findings:
        for line in (f"{each.what}: {each.remedy}", *each.diff) if each.remedy else ():
            click.echo(printable(line))
    problems = sum(each.state == "problem" for each in examined.findings)
    click.echo(counted(problems, "problem") if problems else "no problem")
    return int(not examined.ok)
