"""The group of all commands, its options, and what commands share."""

import contextlib
import importlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphmem.errors import InvalidInput, StoreFailed

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.core.situations import Situation
    from graphmem.memory import Memory

_Command = TypeVar("_Command", bound=Callable[..., Any])

_COMMANDS = {
    "enter": "scenes",
    "match": "scenes",
    "scenes": "scenes",
    "evidence": "scenes",
    "tag": "scenes",
    "untag": "scenes",
    "rename": "scenes",
    "drop": "scenes",
    "commit": "facts",
    "recall": "recall",
    "brief": "prompt",
    "turn": "prompt",
    "neighbours": "graph",
    "path": "graph",
    "graph": "graph",
    "replay": "facts",
    "block": "blocks",
    "document": "blocks",
    "upkeep": "upkeep",
    "reindex": "upkeep",
    "dedupe": "upkeep",
    "undo": "upkeep",
    "operations": "upkeep",
    "embed": "upkeep",
    "edit": "edit",
    "delete": "edit",
    "purge": "edit",
    "verify-forgotten": "edit",
    "overview": "edit",
    "entities": "entities",
    "backup": "files",
    "restore": "files",
    "check": "files",
    "repair": "files",
}


_READING = (
    "these need only to read it: 'graphmem check FILE', 'graphmem dedupe --dry-run FILE', "
    "'graphmem verify-forgotten TEXT FILE', 'graphmem backup DEST'"
)


@dataclass(frozen=True, slots=True)
class Session:
    """The options of the group, which every command needs."""

    database: str | None
    config_file: Path | None

    def path(self) -> str:
        """Return the path of the memory: the one that was named, else one in the user's data folder."""
        if self.database is not None:
            return self.database
        from platformdirs import user_data_path

        return str(user_data_path("graphmem", appauthor=False) / "memory.db")

    def config(self) -> "Config":
        """Return the settings: defaults, file, environment."""
        from graphmem.config import Config

        return Config.load(self.config_file)

    @contextlib.contextmanager
    def open(self, *, create: bool) -> "Iterator[Memory]":
        """Open the memory. A file that was named and is missing is made by commands that write, and by no other.

        The refusal of one that cannot be written names the commands that need no more than to read it.
        """
        from graphmem.memory import Memory

        config = self.config()
        try:
            with Memory.open(self.ready_path(), config=config, create=create or self.database is None) as memory:
                yield memory
        except StoreFailed as error:
            if not self.is_read_only():
                raise
            raise StoreFailed(f"{error}; {_READING}") from error

    def is_read_only(self) -> bool:
        """Tell whether the memory can be read, and it or its folder cannot be written."""
        file = Path(self.path()).expanduser()
        return os.access(file, os.R_OK) and not all(os.access(each, os.W_OK) for each in (file, file.resolve().parent))

    def ready_path(self) -> str:
        """Return the path of the memory; the folder in the user's data folder is made."""
        path = Path(self.path())
        if self.database is None:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise StoreFailed(f"{path.parent} cannot be made: {error.strerror}; name a file with --db") from error
        return self.path()


class _LazyGroup(click.Group):
    """Loads the module of a command when the command is run or its help is shown."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"graphmem.surfaces.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--db", metavar="PATH", envvar="GRAPHMEM_DB", help="The memory file.  [env: GRAPHMEM_DB]")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    envvar="GRAPHMEM_CONFIG",
    help="A TOML file of settings.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log decisions to standard error.")
@click.version_option(package_name="graphmem", prog_name="graphmem")
@click.pass_context
def graphmem(ctx: click.Context, db: str | None, config_file: Path | None, verbose: bool) -> None:
    """A scene-graph memory for AI agents, in one SQLite file.

    Without --db the file lies in the user's data folder.

    \b
    Example:
      graphmem --db home.db replay fixtures/week.jsonl
      graphmem --db home.db recall --chan qq --peer laoda

    \b
    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not found, 4 busy,
    130 interrupted, 141 the reader of the output went away.
    """
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, format="%(name)s: %(message)s")
    ctx.obj = Session(db, config_file)


class WholeNumber(click.ParamType[int]):
    """A whole number of at least `low` that a column of SQLite holds."""

    name = "integer"

    def __init__(self, low: int) -> None:
        self._low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number that was typed."""
        from graphmem.config import check_count

        number: int = click.INT.convert(value, param, ctx)
        try:
            check_count("", number, low=self._low)
        except InvalidInput as error:
            self.fail(f"{value!r}: {error.reason}", param, ctx)
        return number


scope_option = click.option(
    "--scope", "scopes", multiple=True, help="What is of this scope, or of none; may be repeated."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
scene_option = click.option("--scene", "scenes", multiple=True, metavar="KEY", help="A scene key; may be repeated.")


def situation_options(command: _Command) -> _Command:
    """Add the options that describe a situation; `situation_of` reads them."""
    for option in reversed(
        (
            click.option("--chan", multiple=True, help="The channel."),
            click.option("--peer", multiple=True, help="The person spoken with; may be repeated."),
            click.option("--group", multiple=True, help="The group spoken in."),
            click.option("--tool", multiple=True, help="The tool in use."),
            click.option("--topic", multiple=True, help="A topic; may be repeated."),
            click.option("--part", multiple=True, help="Part of the day: night, morning, afternoon, evening."),
            click.option("--at", metavar="TIME", help="When, in ISO 8601.  [default: now]"),
        )
    ):
        command = option(command)
    return command


def situation_of(options: dict[str, Any], config: "Config") -> "Situation":
    """Take the options of a situation out of a command's keyword arguments."""
    from graphmem.core.situations import Situation

    names = {"chan": "chan", "peer": "peer", "group": "peer_group", "tool": "tool", "topic": "topics", "part": "part"}
    given = {name: options.pop(option) for option, name in names.items()}
    return Situation.of(**given, at=options.pop("at"), config=config)
