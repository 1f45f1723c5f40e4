"""Putting graphmem into OpenCode, and taking it out: the plug-in, four commands and the MCP server, nothing else.

Where they lie: https://opencode.ai/docs/plugins, /commands, /config and /mcp-servers. For the user that is
`~/.config/opencode`, for a project its root with the folder `.opencode`. What OpenCode loads from `plugins` is small
and stands on a module in a folder of its own: there it would take every export for a plug-in.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graphmem.errors import InvalidInput
from graphmem.surfaces import json_files
from graphmem.surfaces.setting_up import Change, Edit, content_of, ending_of, options_of, program_of, written

SERVER = "graphmem"
_SOURCES = Path(__file__).parent
_PLUGINS = ("graphmem.js", "graphmem-v2.js")
_COMMANDS = ("mem-checkpoint.md", "mem-distill.md", "mem-dream.md", "mem-search.md")
_CONFIGS = ("opencode.jsonc", "opencode.json")
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
    what is there otherwise is changed. Raises InvalidInput for settings that cannot be read, naming the line, and for a
    file that has the name of one of ours and is none, and StoreFailed for a file that cannot be read or written; then
    nothing is changed.
    """
    command = [*program_of("graphmem", "graphmem", shared=project is not None), *options_of(database, config_file)]
    places = places_of(project)
    files = [(file, _holding(text)) for file, text in _files(places.folder, command, writes=writes).items()]
    return written(
        [*files, (_config(places.configs), lambda text, place: _with_server(text, place, command))],
        within=project,
        dry_run=dry_run,
    )


def uninstall(project: Path | None, *, dry_run: bool) -> tuple[Change, ...]:
    """Take out what `install` put in, and files that hold nothing else. Raises what it raises."""
    places = places_of(project)
    return written(
        [
            *((file, _gone) for file in _files(places.folder, [], writes=False)),
            (_config(places.configs), _without_server),
        ],
        within=project,
        dry_run=dry_run,
    )


@dataclass(frozen=True, slots=True)
class Installed:
    """What of graphmem OpenCode is to use. missing: files of ours that are not there, or not as this version has them.

    plugin: the command that the plug-in calls; server: that of the MCP server; None where there is none.
    """

    folder: str
    config: str
    missing: tuple[str, ...]
    plugin: tuple[str, ...] | None
    server: tuple[str, ...] | None


def installed(project: Path | None) -> Installed:
    """Return what of graphmem is in the files of OpenCode. Raises what `install` raises."""
    places = places_of(project)
    config, settings = _config(places.configs), places.folder / "graphmem" / "settings.json"
    text = content_of(config)
    server = json_files.value_at(json_files.parsed(text, str(config), comments=True), *_path(text, str(config)))
    told = content_of(settings)
    plugin = json_files.value_at(json_files.parsed(told, str(settings)), "command") if told else None
    files = {file: one for file, one in _files(places.folder, [], writes=False).items() if file != settings}
    missing = tuple(str(file) for file, one in files.items() if content_of(file).rstrip("\n") != one.rstrip("\n"))
    command = json_files.value_at(server, "command")
    return Installed(str(places.folder), str(config), missing, _words(plugin), _words(command))


def _words(command: object) -> tuple[str, ...] | None:
    return tuple(word for word in command if isinstance(word, str)) if isinstance(command, list) else None


# ---- files of ours


def _files(folder: Path, command: Sequence[str], *, writes: bool) -> dict[Path, str]:
    """Return what each file of ours holds."""
    files = {folder / "plugins" / name: _source(name) for name in _PLUGINS}
    files[folder / "graphmem" / "bridge.js"] = _source("bridge.js")
    files[folder / "graphmem" / "settings.json"] = _settings(command, writes=writes)
    return {**files, **{folder / "commands" / name: _source(f"commands/{name}") for name in _COMMANDS}}


def _settings(command: Sequence[str], *, writes: bool) -> str:
    return json.dumps({"//": _MARK, "command": command, "writes": writes}, ensure_ascii=False) + "\n"


def _source(name: str) -> str:
    """Return a file of the package with our mark in it: before all else, in Markdown as a comment in its head."""
    text = (_SOURCES / name).read_text("utf-8")
    head, line = ("---\n", f"# {_MARK}\n") if name.endswith(".md") else ("", f"// {_MARK}\n")
    return head + line + text.removeprefix(head)


def _holding(text: str) -> Edit:
    def edit(before: str | None, place: str) -> tuple[str | None, list[str]]:
        if before is None:
            return text, ["added"]
        if _MARK not in before:
            raise InvalidInput("file", place, "is there already and not graphmem's; move it away, nothing was changed")
        wanted = text.rstrip("\n") + ending_of(before)
        return wanted, [] if before == wanted else ["changed"]

    return edit


def _gone(before: str | None, place: str) -> tuple[str | None, list[str]]:
    return (None, ["removed"]) if before and _MARK in before else (before, [])


# ---- the MCP server


def _config(folder: Path) -> Path:
    """Return the file of settings: the one that names our server, else one that is there."""
    there = [folder / name for name in _CONFIGS if (folder / name).exists()]
    named = [file for file in there if SERVER in file.read_text("utf-8", "replace")]
    return next(iter([*named, *there]), folder / _CONFIGS[-1])


def _with_server(text: str | None, place: str, command: Sequence[str]) -> tuple[str | None, list[str]]:
    path = _path(text, place)
    before = json_files.value_at(json_files.parsed(text, place, comments=True), *path)
    wanted: dict[str, Any] = {"type": "local", "command": [*command, "mcp"], "environment": _UNTOLD}
    if isinstance(before, dict) and {**before, **wanted} == before:
        return text, []
    kept = before if isinstance(before, dict) else {} if len(path) > len(_V1) else {"enabled": True}
    done = "added" if before is None else "changed"
    return json_files.with_value(text, path, {**wanted, **kept, **wanted}), [f"MCP server {SERVER} {done}"]


def _without_server(text: str | None, place: str) -> tuple[str | None, list[str]]:
    path = _path(text, place)
    if text is None or json_files.value_at(json_files.parsed(text, place, comments=True), *path) is None:
        return text, []
    return json_files.without_value(text, path), [f"MCP server {SERVER} removed"]


_V1 = ("mcp", SERVER)


def _path(text: str | None, place: str) -> tuple[str, ...]:
    """Return where the server stands. Version 2 of OpenCode has an object `servers` there, which is no server."""
    found = json_files.parsed(text, place, comments=True).get("mcp", {})
    servers = found.get("servers") if isinstance(found, dict) else None
    if not isinstance(found, dict) or (servers is not None and not isinstance(servers, dict)):
        raise InvalidInput("file", place, "mcp is not an object of servers; mend it, nothing was changed")
    return _V1 if servers is None or "type" in servers else ("mcp", "servers", SERVER)
