"""The command config: every setting, its value, and where it comes from."""

import dataclasses
import os
from collections.abc import Iterator, Mapping

import click
from click.core import ParameterSource

from graphmem.config import Ranking
from graphmem.core.addresses import is_server, without_password
from graphmem.surfaces.cli.group import json_option
from graphmem.surfaces.opening import Session, default_settings_file
from graphmem.surfaces.output import print_table, printable, to_json

_DEFAULT = "default"
_Row = tuple[str, object, str]  # name, value and source of a setting


@click.command("config")
@json_option
@click.pass_context
def config_command(ctx: click.Context, /, as_json: bool) -> None:
    """Show which memory and which file of settings are in use, and every setting with where it comes from.

    Later ones win: default, file, environment, option. The memory need not exist, and nothing is written. Keys of
    models are no settings and are never shown.

    \b
    Example:
      graphmem config --json
    """
    session: Session = ctx.obj
    memory = {"path": _full(session.path()), "source": source_of_path(ctx, session)}
    read = session.settings_file
    file = {"path": _full(read or default_settings_file()), "source": _how_told(ctx, "config_file") or _DEFAULT}
    rows = list(_rows(session))
    if as_json:
        settings = [{"name": name, "value": value, "source": source} for name, value, source in rows]
        click.echo(to_json({"memory": memory, "file": {**file, "read": read is not None}, "settings": settings}))
        return
    click.echo(printable(f"memory: {memory['path']} ({memory['source']})"))
    state = "" if read is not None else ", there is none"
    click.echo(printable(f"settings: {file['path']} ({file['source']}{state})"))
    shown = [(name, to_json(value, one_line=True), source) for name, value, source in rows]
    print_table(["setting", "value", "from"], shown, empty="")


def _rows(session: Session) -> Iterator[_Row]:
    """Yield every setting; those that are tables are told entry by entry."""
    config, given = session.config(), session.given
    for name in (field.name for field in dataclasses.fields(config)):
        value = getattr(config, name)
        told = given.get(name)
        source = told.source if told else _DEFAULT
        if isinstance(value, Ranking):
            value = dataclasses.asdict(value)
        if isinstance(value, Mapping):
            for entry, worth in value.items():
                yield f"{name}.{entry}", worth, source if told and entry in told.value else _DEFAULT
        else:
            yield name, sorted(value) if isinstance(value, frozenset) else value, source


def source_of_path(ctx: click.Context, session: Session) -> str:
    """Return where the path of the memory comes from: option, environment, settings, default."""
    if told := _how_told(ctx, "db"):  # then settings that cannot be read do not matter
        return told
    folder = session.given.get("data_dir")
    return folder.source if folder and folder.value else _DEFAULT


def _how_told(ctx: click.Context, name: str) -> str:
    """Return how an option of the group was told, '' where it was not."""
    group = ctx.find_root()
    (option,) = (each for each in group.command.params if each.name == name)
    if group.get_parameter_source(name) is ParameterSource.ENVIRONMENT:
        return f"environment {option.envvar}"
    return f"option {option.opts[0]}" if group.get_parameter_source(name) is ParameterSource.COMMANDLINE else ""


def _full(path: str) -> str:
    if is_server(path):
        return without_password(path)
    return path if path == ":memory:" else os.path.realpath(os.path.expanduser(path))
