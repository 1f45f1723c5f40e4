"""The command that serves a memory over HTTP."""

from typing import TYPE_CHECKING

import click

from graphmem.late import late
from graphmem.surfaces.cli.group import WholeNumber, json_option
from graphmem.surfaces.extras import required
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import printable, to_json

if TYPE_CHECKING:
    from graphmem.surfaces.http import starting
    from graphmem.surfaces.http.running import Running
else:
    starting = late("graphmem.surfaces.http.starting")

_PORT = 7345


@click.command("serve")
@click.option("--host", default="127.0.0.1", help="The address of this machine: 127.0.0.1, ::1 or localhost.")
@click.option(
    "--port", type=WholeNumber(0), default=_PORT, help=f"The port, 0 for one that is free.  [default: {_PORT}]"
)
@click.option("--idle", type=click.FloatRange(min=0), metavar="MINUTES", help="End when nobody asked for so long.")
@click.option("--private", is_flag=True, help="Let nobody read without the token either.")
@click.option("--detach", is_flag=True, help="Start it apart, unless it runs already, and tell where it is.")
@json_option
@click.pass_obj
def serve_command(
    session: Session,
    /,
    host: str,
    port: int,
    idle: float | None,
    private: bool,
    detach: bool,
    as_json: bool,
) -> None:
    """Serve the memory to programs and browsers of this machine, until it is stopped.

    Writing needs the token that is shown, which is new at each start. Reading needs nothing, so that each user and each
    program of this machine can read; with --private it needs the token too. A browser that opens the address with the
    token shows the panel, in which notes are edited and decided upon. It needs `pip install 'graphmem[http]'`.

    \b
    Example:
      graphmem serve --port 0 --idle 0.01
    """

    def tell(running: "Running") -> None:
        if as_json:
            click.echo(to_json(running, one_line=True))
        else:
            end = f"process {running.pid} until that is ended" if detach else "ctrl-c ends it"
            click.echo(printable(f"{running.memory} is served at {running.url}, {end}"))
            click.echo(f"token: {running.token}")
            click.echo(f"open in a browser: {running.entrance}")

    if detach:
        options = ["--host", host, "--port", str(port), *([] if idle is None else ["--idle", str(idle)])]
        options += ["--private"] if private else []
        tell(starting.started(session, options))
        return
    server = required("graphmem.surfaces.http.server", "serving", "http")
    panel = required("graphmem.surfaces.panel.pages", "serving", "http")
    with session.open(create=True) as memory:
        seconds = None if idle is None else idle * 60
        server.serve(
            memory,
            session.ready_path(),
            host=host,
            port=port,
            idle=seconds,
            private=private,
            ready=tell,
            pages=panel.routes(),
            error_page=panel.refused,
        )
