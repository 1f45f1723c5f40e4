"""Commands about the programs in which agents work: claude, hook, opencode."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmem.errors import InvalidInput
from graphmem.late import late
from graphmem.surfaces.cli.group import dry_run_option, json_option
from graphmem.surfaces.extras import require
from graphmem.surfaces.opening import Session, current_folder
from graphmem.surfaces.output import printable, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmem.surfaces import claude_setup, hook
    from graphmem.surfaces.opencode import setup as opencode_setup
    from graphmem.surfaces.setting_up import Change
else:
    claude_setup = late("graphmem.surfaces.claude_setup")
    hook = late("graphmem.surfaces.hook")
    opencode_setup = late("graphmem.surfaces.opencode.setup")

# What programs start: a package that it needs, what it is, and the extra that installs it.
_SERVER = ("mcp", "the MCP server", "mcp")
_PLUGIN = ("uvicorn", "the plug-in", "http")


@click.command("claude")
@click.argument("act", type=click.Choice(["install", "uninstall"]))
@click.option("--user", "for_user", is_flag=True, help="In all projects.  [default]")
@click.option("--project", "for_project", is_flag=True, help="Only in the project that it is called in.")
@dry_run_option
@json_option
@click.pass_obj
def claude_command(
    session: Session, /, act: str, for_user: bool, for_project: bool, dry_run: bool, as_json: bool
) -> None:
    """Put hooks and the MCP server into the settings of Claude Code, or take them out.

    Nothing else in its files is touched, and uninstall leaves them as they were. An MCP server 'graphmem' that is not
    as install writes it is kept. A memory and settings that are named with --db and --config are those that Claude Code
    will use.

    \b
    Example:
      graphmem claude install --project
    """
    if for_user and for_project:
        raise click.UsageError("give --user or --project")
    _set_up(claude_setup, session, act, [_SERVER], for_project=for_project, dry_run=dry_run, as_json=as_json)


@click.command("opencode")
@click.argument("act", type=click.Choice(["install", "uninstall"]))
@click.option("--global", "for_user", is_flag=True, help="In all projects.  [default]")
@click.option("--project", "for_project", is_flag=True, help="Only in the project that it is called in.")
@click.option("--writer", "writes", is_flag=True, help="Let its model write checkpoints, in sessions of their own.")
@dry_run_option
@json_option
@click.pass_obj
def opencode_command(
    session: Session, /, act: str, for_user: bool, for_project: bool, writes: bool, dry_run: bool, as_json: bool
) -> None:
    """Put the plug-in, four commands and the MCP server into OpenCode, or take them out.

    Nothing else in its settings is touched, and uninstall leaves them as they were. An MCP server 'graphmem' that is
    not as install writes it is kept. A memory and settings that are named with --db and --config are those that
    OpenCode will use.

    \b
    Example:
      graphmem opencode install --project
    """
    if for_user and for_project:
        raise click.UsageError("give --global or --project")
    if writes and act == "uninstall":
        raise click.UsageError("--writer is for install")
    options = {"writes": writes} if act == "install" else {}
    needs = [_PLUGIN, _SERVER]
    _set_up(opencode_setup, session, act, needs, for_project=for_project, dry_run=dry_run, as_json=as_json, **options)


def _set_up(
    setup: Any,
    session: Session,
    act: str,
    needs: "Sequence[tuple[str, str, str]]",
    *,
    for_project: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Carry out an act of a module that puts graphmem into a program, and print what became of each file.

    needs: arguments of `require` for what the program will start; what is missing is told of.
    """
    project = _project(session) if for_project else None
    if act == "install":
        options |= {"database": session.database, "config_file": session.config_file}
    changes: Sequence[Change] = getattr(setup, act)(project, dry_run=dry_run, **options)
    if as_json:
        click.echo(to_json(changes))
        return
    for change in changes:
        would = "would be done: " if dry_run and change.changes else ""
        told = ", ".join(change.changes) or change.kept or "nothing to do"
        click.echo(printable(f"{change.file}: {would}{told}"))
    for need in needs if act == "install" else ():
        try:
            require(*need)
        except InvalidInput as missing:
            click.echo(f"still to be done: {missing.reason}", err=True)


def _project(session: Session) -> Path:
    folder = session.project() or current_folder()
    if not folder:
        raise InvalidInput("project", folder, "the current folder is gone; name one with 'graphmem --project FOLDER'")
    return Path(folder)


# A wrong option would end with exit code 2, by which a hook forbids what is about to happen.
@click.command("hook", context_settings={"ignore_unknown_options": True})
@click.argument("event", nargs=-1)
@click.pass_obj
def hook_command(session: Session, /, event: tuple[str, ...]) -> None:
    """Answer EVENT of Claude Code: it on standard input as JSON, the answer on standard output.

    The exit code is 0 whatever happens; what went wrong stands in hook.log in the user's folder of state. Claude Code
    calls 'graphmem-hook EVENT', which is the same and starts in a fraction of the time.

    \b
    Example:
      echo '{"session_id": "s1", "prompt": "Where does it run?"}' | graphmem hook UserPromptSubmit
    """
    options = (("--db", session.database), ("--config", session.config_file))
    words = [*(word for name, value in options if value for word in (name, value)), *event]
    click.echo(hook.answer(words).decode("ascii"), nl=False)
