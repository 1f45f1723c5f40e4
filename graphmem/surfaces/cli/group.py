"""The group of all commands, its options, and what commands share."""

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphmem import log
from graphmem.core.addresses import is_server, without_password
from graphmem.errors import InvalidInput
from graphmem.late import late
from graphmem.surfaces.opening import Session

if TYPE_CHECKING:
    import logging

    from graphmem import config as settings
    from graphmem.config import Config
    from graphmem.core import situations
    from graphmem.core.situations import Situation
else:
    logging = late("logging")
    settings = late("graphmem.config")
    situations = late("graphmem.core.situations")

_Command = TypeVar("_Command", bound=Callable[..., Any])

# The module of each command, and what the list of commands says of it, which so needs none of the modules.
_COMMANDS = {
    "enter": ("scenes", "Enter the scene of a turn."),
    "match": ("scenes", "Show which scenes answer a situation."),
    "scenes": ("scenes", "List scenes at and below a key."),
    "scene": ("scenes", "Show one scene."),
    "scopes": ("scopes", "List the scopes: the user's own, projects, sessions."),
    "evidence": ("scenes", "List situations without a scene yet."),
    "tag": ("scenes", "Attach known facts to a scene."),
    "untag": ("scenes", "Take facts out of a scene."),
    "rename": ("scenes", "Give a scene another key."),
    "drop": ("scenes", "Remove a scene; its facts stay."),
    "commit": ("facts", "Remember a fact, or a list of them."),
    "recall": ("recall", "Bring back what is known."),
    "remember": ("notes", "Write a note: a fact, a lesson, a rule."),
    "notes": ("notes", "List, search, show and edit notes."),
    "rules": ("notes", "List rules, or those that govern a situation."),
    "approve": ("notes", "Let a proposal come into force."),
    "reject": ("notes", "Put a proposal away."),
    "forget": ("notes", "Archive a note, or remove it for good."),
    "restore-note": ("notes", "Bring an archived note back."),
    "brief": ("prompt", "Show what belongs into a prompt."),
    "turn": ("prompt", "Run one turn: an event in, the brief out."),
    "neighbours": ("graph", "Show what is known around a name."),
    "path": ("graph", "Show how two things are connected."),
    "graph": ("graph", "Draw the facts of a scene, or around a name."),
    "replay": ("facts", "Run a log of turns through the memory."),
    "block": ("blocks", "Keep texts, pictures, videos and sounds."),
    "document": ("blocks", "Keep whole texts until they are used."),
    "upkeep": ("upkeep", "Put the memory in order."),
    "reindex": ("upkeep", "Make the text index anew."),
    "dedupe": ("upkeep", "Merge scenes that are one under several keys."),
    "undo": ("upkeep", "Reverse a merge, an edit or a deletion."),
    "operations": ("upkeep", "List what can be undone and what was."),
    "embed": ("upkeep", "Make the vectors that are missing, for recall by meaning."),
    "edit": ("edit", "Correct a fact."),
    "delete": ("edit", "Delete a fact."),
    "purge": ("edit", "Forget the facts that meet all criteria."),
    "verify-forgotten": ("edit", "Look whether a text is anywhere in a memory."),
    "secrets": ("secrets", "Find secrets in what is stored, and take them out."),
    "growth": ("edit", "Show what each of the last days brought."),
    "overview": ("edit", "Show in numbers what the memory holds."),
    "entities": ("entities", "Find entities that may be one, merge them or keep them apart."),
    "mirror": ("sessions", "Keep what was said in a session, word for word."),
    "harvest": ("sessions", "Mirror the transcripts of other programs."),
    "sessions": ("sessions", "List the sessions that are mirrored."),
    "history": ("sessions", "Find what was said in sessions."),
    "part": ("sessions", "Show the exact text of a part of a session."),
    "checkpoint": ("sessions", "Digest what is new in a session."),
    "jobs": ("sessions", "List what is to be written, and do it."),
    "consolidate": ("consolidate", "Draw what stays true from many notes."),
    "distill": ("consolidate", "Propose skills and commands for what repeats."),
    "tree": ("tree", "Keep notes as files that people and git can change."),
    "record-failure": ("failures", "Count a failure of a tool."),
    "incidents": ("failures", "List failures of tools that look alike."),
    "import": ("exchange", "Take in what another memory kept."),
    "export": ("exchange", "Write what is known into a file for others."),
    "mcp": ("mcp", "Serve the memory to an agent (Model Context Protocol)."),
    "backup": ("files", "Copy the memory into a new file, also while it is in use."),
    "restore": ("files", "Make the memory anew from a backup."),
    "copy": ("files", "Copy a memory to a server, from one, or to another file."),
    "claude": ("hosts", "Let Claude Code use the memory, or no more."),
    "hook": ("hosts", "Answer an event of Claude Code."),
    "opencode": ("hosts", "Let OpenCode use the memory, or no more."),
    "serve": ("serve", "Serve the memory to programs and pages of this machine."),
    "config": ("config", "Show every setting and where it comes from."),
    "doctor": ("doctor", "Look whether all is well: files, clients, surfaces."),
    "completion": ("completion", "Let a shell complete commands and options."),
    "check": ("files", "Tell whether the memory is sound."),
    "repair": ("files", "Mend what can be made anew from the rest."),
}


def read_input(argument: str) -> str:
    """Return what is piped in, UTF-8 whatever the code page. Raises InvalidInput naming the argument for another."""
    if sys.stdin is None:
        raise InvalidInput(argument, "-", "standard input is closed: pipe the text in")
    try:
        text: str = click.open_file("-", encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise InvalidInput(argument, "-", f"is no UTF-8 text at byte {error.start}") from None
    return text


class FilePath(click.Path):
    """The path of a file or a folder; an address, which names a memory, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path that was typed."""
        if is_server(value):
            told = f"{without_password(value)!r} is an address, and a file or folder is wanted here"
            self.fail(f"{told}: name a memory on a server with --db", param, ctx)
        return super().convert(value, param, ctx)


class _LazyGroup(click.Group):
    """Loads the module of a command when the command is run or its own help is shown."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        home, told = _COMMANDS[cmd_name]
        module = importlib.import_module(f"graphmem.surfaces.cli.{home}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        command.short_help = told
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--db",
    metavar="PATH",
    envvar="GRAPHMEM_DB",
    help="The memory: a file, or the address of a server, best in GRAPHMEM_DB.  [env: GRAPHMEM_DB]",
)
@click.option(
    "--config",
    "config_file",
    type=FilePath(),
    envvar="GRAPHMEM_CONFIG",
    help="A TOML file of settings.  [env: GRAPHMEM_CONFIG; default: graphmem/config.toml in the user's folder of "
    "settings, where there is one]",
)
@click.option(
    "--project",
    metavar="FOLDER",
    envvar="GRAPHMEM_PROJECT",
    help="The current project; '' for none.  [default: the git working tree it is called in; env: GRAPHMEM_PROJECT]",
)
@click.option(
    "--session",
    "session_name",
    metavar="NAME",
    envvar="GRAPHMEM_SESSION",
    default="",
    help="The current session.  [env: GRAPHMEM_SESSION]",
)
@click.option("-v", "--verbose", is_flag=True, help="Log decisions to standard error.")
@click.version_option(package_name="graphmem", prog_name="graphmem")
@click.pass_context
def graphmem(
    ctx: click.Context,
    db: str | None,
    config_file: str | None,
    project: str | None,
    session_name: str,
    verbose: bool,
) -> None:
    """A scene-graph memory for AI agents, in one SQLite file or on a PostgreSQL server.

    Without --db the file lies in the user's data folder; 'graphmem config' tells where. What is read is the user's own,
    and that of the current project and session; --scope names others, --scope all reads everything.

    \b
    Example:
      graphmem --db home.db replay fixtures/week.jsonl
      graphmem --db home.db recall --chan qq --peer laoda

    \b
    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not found, 4 busy,
    130 interrupted, 141 the reader of the output went away.
    """
    if verbose:
        _log_from(logging.DEBUG)
    else:
        log.before_the_first(lambda: _log_from(logging.WARNING))
    ctx.obj = Session(db, config_file, project, session_name)


def _log_from(level: int) -> None:
    logging.basicConfig(level=level, format="%(name)s: %(message)s")


class WholeNumber(click.ParamType[int]):
    """A whole number of at least `low` that a column of SQLite holds."""

    name = "integer"

    def __init__(self, low: int) -> None:
        self._low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number that was typed."""
        number: int = click.INT.convert(value, param, ctx)
        try:
            settings.check_count("", number, low=self._low)
        except InvalidInput as error:
            self.fail(f"{value!r}: {error.reason}", param, ctx)
        return number


class _Source(click.ParamType[str]):
    """Who says so: a class that recall knows, with a colon and more where that helps."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the source that was typed."""
        from graphmem.core.choices import SOURCE_CLASSES

        source = str(value)
        if source.partition(":")[0].strip().casefold() not in SOURCE_CLASSES:
            self.fail(f"{source!r} is none of {', '.join(SOURCE_CLASSES)}; a name goes behind a colon", param, ctx)
        return source


scope_option = click.option(
    "--scope",
    "scopes",
    multiple=True,
    help="What is of this scope and of the user's own: user, project, session, all, or a key that 'graphmem scopes' "
    "shows; may be repeated.  [default: project and session]",
)
at_option = click.option("--at", metavar="TIME", help="What held then, in ISO 8601.  [default: now]")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
scene_option = click.option("--scene", "scenes", multiple=True, metavar="KEY", help="A scene key; may be repeated.")

source_option = click.option(
    "--source",
    type=_Source(),
    default="user",
    help="Who says so: user, agent, tool or import, with a colon and more where that helps.  [default: user]",
)


def situation_options(command: _Command) -> _Command:
    """Add the options that describe a situation; `situation_of` reads them."""
    for option in reversed(
        (
            click.option("--chan", multiple=True, help="The channel."),
            click.option("--peer", multiple=True, help="The person spoken with; may be repeated."),
            click.option("--group", multiple=True, help="The group spoken in."),
            click.option("--tool", multiple=True, help="The tool in use."),
            click.option("--topic", multiple=True, help="A topic; may be repeated."),
            click.option(
                "--part",
                multiple=True,
                type=click.Choice(["night", "morning", "afternoon", "evening"]),
                help="Part of the day.",
            ),
            click.option("--at", metavar="TIME", help="When, in ISO 8601.  [default: now]"),
        )
    ):
        command = option(command)
    return command


def situation_of(options: dict[str, Any], config: "Config") -> "Situation":
    """Take the options of a situation out of a command's keyword arguments."""
    names = {"chan": "chan", "peer": "peer", "group": "peer_group", "tool": "tool", "topic": "topics", "part": "part"}
    given = {name: options.pop(option) for option, name in names.items()}
    return situations.Situation.of(**given, at=options.pop("at"), config=config)
