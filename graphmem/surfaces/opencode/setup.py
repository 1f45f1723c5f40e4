"""Putting graphmem into OpenCode, and taking it out: the plug-in, four commands and the MCP server, nothing else.

Where they lie: https://opencode.ai/docs/plugins, /commands, /config and /mcp-servers. For the user that is
`~/.config/opencode`, for a project its root with the folder `.opencode`. What OpenCode loads from `plugins` is small
and stands on a module in a folder of its own: there it would take every export for a plug-in.
"""

import json
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graphmem.errors import InvalidInput
from graphmem.surfaces import json_files
from graphmem.surfaces.setting_up import (
    SERVER,
    Change,
    Edit,
    Edited,
    content_of,
    ending_of,
    kept,
    options_in,
    options_of,
    options_of_server,
    program_of,
    written,
)

_SOURCES = Path(__file__).parent
_PLUGINS = ("graphmem.js", "graphmem-v2.js")
_COMMANDS = ("mem-checkpoint.md", "mem-distill.md", "mem-dream.md", "mem-search.md")
_CONFIGS = ("opencode.jsonc", "opencode.json")
_BY_USER = ("enabled", "timeout")  # what may be set of a server of ours, and stays
_UNTOLD = {"GRAPHMEM_INJECT": "false"}  # what holds is told by the plug-in, and once is enough
# A line of each file of ours. What has none is somebody else's, whatever it is about.
_MARK = "Written by 'graphmem opencode install', which replaces this file; 'graphmem opencode uninstall' removes it."


class _Places(NamedTuple):
    """folder: of plug-ins and commands. configs: the folder of the settings."""

    folder: Path
    configs: Path


def places_of(project: Path | None) -> _Places:
    """Return where things lie for a project, for the user where there is none."""
    if project is not None:
        return _Places(project / ".opencode", project)
    home = os.environ.get("XDG_CONFIG_HOME", "").strip()
    folder = (Path(home) if home else Path.home() / ".config") / "opencode"
    return _Places(folder, folder)


def install(
    project: Path | None, *, database: str | None, config_file: str | None, writes: bool = False, dry_run: bool
) -> tuple[Change, ...]:
    """Let OpenCode load the plug-in and start the MCP server, for a project or for the user.

    database, config_file: those that both are to use, None for the usual ones. writes: let the model of OpenCode write
    checkpoints, in sessions of their own, where the settings of graphmem name no writer. What is there already is left,
    what is there otherwise is changed, but for a server that somebody else wrote: it is kept, and told of. Raises
    InvalidInput for settings that cannot be read, naming the line, and for a file that has the name of one of ours and
    is none, and StoreFailed for a file that cannot be read or written; then nothing is changed.
    """
    options = options_of(database, config_file)
    shared = project is not None
    command = [*program_of(SERVER, SERVER, shared=shared), *options]
    places = places_of(project)
    own = {tuple(options), *_own_options(places.folder, within=project)}
    files = [(file, _holding(text)) for file, text in _files(places.folder, command, writes=writes).items()]
    return written(
        [
            *files,
            (_config(places.configs), lambda text, place: _with_server(text, place, command, own, shared=shared)),
        ],
        within=project,
        dry_run=dry_run,
    )


def uninstall(project: Path | None, *, dry_run: bool) -> tuple[Change, ...]:
    """Take out what `install` put in, and what was made for it. Raises what it raises."""
    places = places_of(project)
    own = _own_options(places.folder, within=project)
    shared = project is not None
    return written(
        [
            *((file, _gone) for file in _files(places.folder, [], writes=False)),
            (_config(places.configs), lambda text, place: _without_server(text, place, own, shared=shared)),
        ],
        within=project,
        dry_run=dry_run,
    )


@dataclass(frozen=True, slots=True)
class Installed:
    """What of graphmem OpenCode is to use.

    is_there: whether any file of ours is; missing: those that are not, or not as this version has them.
    plugin: the command that the plug-in calls; server: that of the MCP server, () for one that starts no program; None
    where there is none. is_own: whether `install` wrote the server, which else keeps it.
    """

    folder: str
    config: str
    is_there: bool
    missing: tuple[str, ...]
    plugin: tuple[str, ...] | None
    server: tuple[str, ...] | None
    is_own: bool


def installed(project: Path | None) -> Installed:
    """Return what of graphmem is in the files of OpenCode. Raises what `install` raises."""
    places = places_of(project)
    config, settings = _config(places.configs), _settings_of(places.folder)
    text = content_of(config)
    server = json_files.value_at(json_files.parsed(text, str(config), comments=True), *_path(text, str(config)))
    files = {file: one for file, one in _files(places.folder, [], writes=False).items() if file != settings}
    there = {file: content_of(file) for file in files}
    missing = tuple(str(file) for file, one in files.items() if there[file].rstrip("\n") != one.rstrip("\n"))
    command = None if server is None else _command(server)
    is_own = _is_own(server, _own_options(places.folder), shared=project is not None)
    plugin = _called(settings) or None
    is_there = plugin is not None or any(_MARK in text for text in there.values())
    return Installed(str(places.folder), str(config), is_there, missing, plugin, command, is_own)


def _command(calling: Any) -> tuple[str, ...]:
    """Return a program with its arguments; what is no text is left out."""
    words = json_files.value_at(calling, "command")
    return tuple(word for word in words if isinstance(word, str)) if isinstance(words, list) else ()


# ---- files of ours


def _files(folder: Path, command: Sequence[str], *, writes: bool) -> dict[Path, str]:
    """Return what each file of ours holds."""
    files = {folder / "plugins" / name: _source(name) for name in _PLUGINS}
    files[folder / "graphmem" / "bridge.js"] = _source("bridge.js")
    files[_settings_of(folder)] = _settings(command, writes=writes)
    return {**files, **{folder / "commands" / name: _source(f"commands/{name}") for name in _COMMANDS}}


def _settings(command: Sequence[str], *, writes: bool) -> str:
    return json.dumps({"//": _MARK, "command": command, "writes": writes}, ensure_ascii=False) + "\n"


def _settings_of(folder: Path) -> Path:
    return folder / "graphmem" / "settings.json"


def _called(settings: Path, *, within: Path | None = None) -> tuple[str, ...]:
    """Return the command that the plug-in calls, () where there are no settings of ours. within: see `written`."""
    told = content_of(settings, within=within)
    return _command(json_files.parsed(told, str(settings))) if _MARK in told else ()


def _own_options(folder: Path, *, within: Path | None = None) -> set[tuple[str, ...]]:
    """Return the options with which `install` may have written the server: those of the plug-in, or none."""
    called = _called(_settings_of(folder), within=within)
    found = options_in(called, SERVER, SERVER, by_name=True) if called else None
    return {()} if found is None else {(), found}


def _source(name: str) -> str:
    """Return a file of the package with our mark in it: before all else, in Markdown as a comment in its head."""
    text = (_SOURCES / name).read_text("utf-8")
    head, line = ("---\n", f"# {_MARK}\n") if name.endswith(".md") else ("", f"// {_MARK}\n")
    return head + line + text.removeprefix(head)


def _holding(text: str) -> Edit:
    def edit(before: str | None, place: str) -> Edited:
        if before is None:
            return Edited(text, ["added"])
        if _MARK not in before:
            raise InvalidInput("file", place, "is there already and not graphmem's; move it away, nothing was changed")
        wanted = text.rstrip("\n") + ending_of(before)
        return Edited(wanted, [] if before == wanted else ["changed"])

    return edit


def _gone(before: str | None, place: str) -> Edited:
    return Edited(None, ["removed"]) if before and _MARK in before else Edited(before)


# ---- the MCP server


def _config(folder: Path) -> Path:
    """Return the file of settings: the one that names our server, else one that is there."""
    there = [folder / name for name in _CONFIGS if (folder / name).exists()]
    named = [file for file in there if SERVER in file.read_text("utf-8", "replace")]
    return next(iter([*named, *there]), folder / _CONFIGS[-1])


def _with_server(
    text: str | None, place: str, command: Sequence[str], own: Container[tuple[str, ...]], *, shared: bool
) -> Edited:
    path = _path(text, place)
    before = json_files.value_at(json_files.parsed(text, place, comments=True), *path)
    wanted = _server([*command, "mcp"])
    if before is not None and not _is_own(before, own, shared=shared):
        return Edited(text, kept="" if _is_as_good(before, wanted) else kept(".".join(path), installs=True))
    by_user = before or ({} if len(path) > len(_V1) else {"enabled": True})
    wanted |= {name: value for name, value in by_user.items() if name in _BY_USER}
    if before == wanted:
        return Edited(text)
    done = "added" if before is None else "changed"
    return Edited(json_files.with_value(text, path, wanted), [f"MCP server {SERVER} {done}"])


def _without_server(text: str | None, place: str, own: Container[tuple[str, ...]], *, shared: bool) -> Edited:
    path = _path(text, place)
    server = json_files.value_at(json_files.parsed(text, place, comments=True), *path)
    if text is None or server is None:
        return Edited(text)
    if not _is_own(server, own, shared=shared):
        return Edited(text, kept=kept(".".join(path), installs=False))
    return Edited(json_files.without_value(text, path), [f"MCP server {SERVER} removed"])


def _server(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": list(command), "environment": _UNTOLD}


def _is_own(server: Any, own: Container[tuple[str, ...]], *, shared: bool) -> bool:
    """Tell whether a server is one as `install` writes it. own: the options that it may have."""
    command = _command(server)
    if not command or options_of_server(command, by_name=shared) not in own:
        return False
    return _told(server) == _server(command)


def _is_as_good(server: Any, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a server, perhaps written by hand, starts what another one does, and no more is told of it."""
    command = _command(server)
    options = options_of_server(command, by_name=True)
    if options is None or options != options_of_server(wanted["command"], by_name=True):
        return False
    return {"environment": _UNTOLD, **_told(server)} == _server(command)


def _told(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a server but for what users may set, and for an environment that is empty."""
    return {
        name: value for name, value in server.items() if name not in _BY_USER and (name, value) != ("environment", {})
    }


_V1 = ("mcp", SERVER)


def _path(text: str | None, place: str) -> tuple[str, ...]:
    """Return where the server stands. Version 2 of OpenCode has an object `servers` there, which is no server."""
    found = json_files.parsed(text, place, comments=True).get("mcp", {})
    servers = found.get("servers") if isinstance(found, dict) else None
    if not isinstance(found, dict) or (servers is not None and not isinstance(servers, dict)):
        raise InvalidInput("file", place, "mcp is not an object of servers; mend it, nothing was changed")
    return _V1 if servers is None or "type" in servers else ("mcp", "servers", SERVER)
