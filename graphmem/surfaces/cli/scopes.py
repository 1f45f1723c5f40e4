"""The command scopes."""

from typing import TYPE_CHECKING

import click

from graphmem.surfaces.cli.group import json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import print_table, to_json

if TYPE_CHECKING:
    from graphmem.core.model import ScopeInfo


@click.command("scopes")
@json_option
@click.pass_obj
def scopes_command(session: Session, /, as_json: bool) -> None:
    """List the scopes and what they hold: the user's own, projects with their folders, sessions, named ones.

    --json shows also every other name that leads to a project: paths, remotes, ids of other memories.

    \b
    Example:
      graphmem scopes
    """
    with session.open(create=False) as memory:
        found = memory.scopes()
    if as_json:
        click.echo(to_json(found))
        return
    rows = [
        (
            one.key or "user",
            one.kind,
            "yes" if one.current else "",
            one.facts,
            one.notes,
            one.sessions,
            len(one.aliases),
            _told(one),
        )
        for one in found
    ]
    print_table(["scope", "kind", "current", "facts#", "notes#", "sessions#", "aliases#", "what~"], rows, empty="")


def _told(scope: "ScopeInfo") -> str:
    """Return what a scope is called, and where it lies or to what it belongs."""
    return " ".join(part for part in (scope.label, scope.place and f"at {scope.place}", scope.parent) if part)
