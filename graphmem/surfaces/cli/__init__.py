"""The command line: `graphmem [--db PATH] COMMAND`.

Data goes to standard output, everything else to standard error. Exit codes: 0 done, also with nothing to do; 1 refused
or failed; 2 wrong usage; 3 not found; 4 busy; 130 interrupted; 141 the reader of a pipe went away.
"""

import atexit
import contextlib
import gc
import io
import os
import re
import sys
from typing import TYPE_CHECKING

import click

from graphmem.core.addresses import is_server
from graphmem.errors import GraphmemError
from graphmem.late import late
from graphmem.surfaces import wire
from graphmem.surfaces.cli.group import graphmem
from graphmem.surfaces.output import printable, to_json

if TYPE_CHECKING:
    import logging

    from graphmem.surfaces.cli import completion
else:
    completion = late("graphmem.surfaces.cli.completion")
    logging = late("logging")

__all__ = ["graphmem", "main"]


def main(args: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    arguments = sys.argv[1:] if args is None else args
    if args is None:
        # What a process makes while it starts stays to its end: looking for garbage in it, then and when it ends, finds
        # none and takes a tenth of the time of a short command.
        gc.set_threshold(50_000)
        atexit.register(gc.freeze)
    if sys.stdout is None:  # started with it closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 (it stays open to the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no emoji is no reason to fail
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except OSError as error:
        # What is still in the buffer cannot be written either, and the interpreter would complain of it at its end.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141 if isinstance(error, BrokenPipeError) else 1
        if code == 1:
            click.echo(f"graphmem: the output cannot be written: {error.strerror}", err=True)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    if asked := os.environ.get("_GRAPHMEM_COMPLETE"):
        return completion.complete(graphmem, asked)
    try:
        # Not through click's own main, which ends the process itself when a pipe breaks.
        with graphmem.make_context("graphmem", list(arguments)) as context:
            result = graphmem.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("interrupted", err=True)
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        _print_error(wire.refusal("Usage", _told(error)), as_json=as_json)
        return error.exit_code
    except GraphmemError as error:
        logging.getLogger("graphmem").debug("failed", exc_info=True)
        _print_error(wire.refusal_of(error), as_json=as_json)
        return wire.exit_code(error)
    return result if isinstance(result, int) else 0


def _told(error: click.ClickException) -> str:
    """Return what is wrong with a command line. Who puts a memory behind a command is told where it belongs."""
    told = error.format_message()
    extra = re.fullmatch(r"Got unexpected extra arguments? \((\S*).*\)", told)
    if extra is None or not (is_server(extra[1]) or os.path.isfile(extra[1])):  # noqa: PTH113 (loads pathlib)
        return told
    return f"{told}: name a memory before the command, with --db"


def _print_error(refusal: dict[str, dict[str, str]], *, as_json: bool) -> None:
    if as_json:
        # On one line, since it may follow others: `upkeep --every` prints one document a line.
        click.echo(to_json(refusal, one_line=True))
    else:
        click.echo(f"graphmem: {printable(refusal['error']['message'])}", err=True)
