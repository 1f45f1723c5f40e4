"""The command that serves the Model Context Protocol: mcp."""

from typing import TYPE_CHECKING

import click

from graphmem.late import late
from graphmem.surfaces.cli.group import WholeNumber
from graphmem.surfaces.extras import require
from graphmem.surfaces.opening import Session

if TYPE_CHECKING:
    from graphmem.surfaces.mcp import desk, serving
else:
    desk = late("graphmem.surfaces.mcp.desk")
    serving = late("graphmem.surfaces.mcp.serving")


@click.command("mcp")
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP on this machine alone, at /mcp.")
@click.option("--port", type=WholeNumber(0), default=None, help="Its port, 0 for a free one.  [default: 8766]")
@click.option("--prefix", default="", help="Put this before the names of tools, as in graphmem_.")
@click.option(
    "--profile",
    type=click.Choice(["graphmem", "promemory", "ledger"]),
    default="graphmem",
    help="Offer the tools of another memory: memory and history, or memory_save, memory_search and memory_forget.",
)
@click.pass_obj
def mcp_command(session: Session, /, over_http: bool, port: int | None, prefix: str, profile: str) -> None:
    """Offer the memory to an agent, as a server of the Model Context Protocol.

    Agents start it themselves and talk to it over standard input and output; it ends when they do. The current project
    is the one it is started in, that of --project, or the first root that the client offers.

    \b
    Example:
      graphmem mcp
      graphmem --db home.db mcp --http --port 8766
    """
    if port is not None and not over_http:
        raise click.UsageError("--port is for --http")
    for package in ("mcp", "pydantic"):
        require(package, "serving MCP", "mcp")
    serving.check(prefix, profile)
    session.config()  # what is wrong with the settings is told at once
    table = desk.Desk(
        lambda folder, writer: session.within(folder).open(create=True, writer=writer),
        session.project(),
        is_fixed=session.names_project or over_http,  # over HTTP there may be several clients
    )
    if over_http:
        port = serving.PORT if port is None else port
        serving.serve_http(
            table, lambda url: click.echo(f"serving at {url}", err=True), port=port, prefix=prefix, profile=profile
        )
    else:
        serving.serve_stdio(table, prefix=prefix, profile=profile)
