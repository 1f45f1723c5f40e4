"""The command line: `graphmem [--db PATH] COMMAND`.

Data goes to standard output, everything else to standard error. Exit codes: 0 done, also with nothing to do; 1 refused
or failed; 2 wrong usage; 3 not found; 4 busy; 130 interrupted; 141 the reader of a pipe went away.
"""

import io
import logging
import os
import sys

import click

from graphmem.errors import GraphmemError, NotFound, StoreBusy
from graphmem.surfaces.cli.group import graphmem
from graphmem.surfaces.output import printable, to_json

__all__ = ["graphmem", "main"]


def main(args: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    arguments = sys.argv[1:] if args is None else args
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no emoji is no reason to fail
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer has no reader; without this the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        result = graphmem.main(arguments, prog_name="graphmem", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        if as_json:
            _print_error("Usage", error.format_message())
        else:
            error.show()
        return error.exit_code
    except GraphmemError as error:
        logging.getLogger("graphmem").debug("failed", exc_info=True)
        if as_json:
            _print_error(type(error).__name__, str(error))
        else:
            click.echo(f"graphmem: {printable(str(error))}", err=True)
        return 3 if isinstance(error, NotFound) else 4 if isinstance(error, StoreBusy) else 1
    return result if isinstance(result, int) else 0


def _print_error(kind: str, message: str) -> None:
    click.echo(to_json({"error": {"type": kind, "message": message}}))
