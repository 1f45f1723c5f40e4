"""The command completion: what a shell needs to complete commands and options."""

import click
from click import shell_completion

from graphmem.surfaces.cli.group import json_option
from graphmem.surfaces.output import to_json

VARIABLE = "_GRAPHMEM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def completion_command(ctx: click.Context, /, shell: str, as_json: bool) -> None:
    """Print what SHELL reads to complete the words of graphmem.

    For bash and zsh write eval "$(graphmem completion bash)" into ~/.bashrc, or with zsh into ~/.zshrc; for fish write
    what is printed into ~/.config/fish/completions/graphmem.fish.

    \b
    Example:
      graphmem completion bash
    """
    completer = shell_completion.get_completion_class(shell)
    group = ctx.find_root().command
    assert completer is not None
    assert isinstance(group, click.Group)
    script = completer(group, {}, "graphmem", VARIABLE).source()
    click.echo(to_json({"shell": shell, "script": script}) if as_json else script)


def complete(group: click.Group, asked: str) -> int:
    """Print what the word under the cursor may become; asked: what the script of the shell put into `VARIABLE`."""
    return shell_completion.shell_complete(group, {}, "graphmem", VARIABLE, asked)
