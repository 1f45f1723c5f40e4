"""Putting graphmem into the settings of Claude Code, and taking it out: hooks and the MCP server, nothing else.

Where they lie: https://code.claude.com/docs/en/settings and https://code.claude.com/docs/en/mcp. For the user they are
in `~/.claude/settings.json` and `~/.claude.json` (in CLAUDE_CONFIG_DIR, where that is set), for a project in
`.claude/settings.json` and `.mcp.json`. Programs are started without a shell, so a path may hold blanks.
"""

import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.surfaces import hook_helper, json_files
from graphmem.surfaces.claude_code import EVENTS
from graphmem.surfaces.setting_up import (
    SERVER,
    Change,
    Edited,
    content_of,
    kept,
    options_in,
    options_of,
    options_of_server,
    program_of,
    written,
)

_HOOK = "graphmem-hook"
_HOOK_MODULE = "graphmem.surfaces.hook"
_SECONDS = 10  # until Claude Code gives up on a hook; none takes as long


@dataclass(frozen=True, slots=True)
class _Files:
    settings: Path
    servers: Path


def files_of(project: Path | None) -> _Files:
    """Return the files for a project, for the user where there is none."""
    if project is not None:
        return _Files(project / ".claude" / "settings.json", project / ".mcp.json")
    own = os.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    if own:
        return _Files(Path(own) / "settings.json", Path(own) / ".claude.json")
    home = Path.home()
    return _Files(home / ".claude" / "settings.json", home / ".claude.json")


def install(
    project: Path | None, *, database: str | None, config_file: str | None, dry_run: bool
) -> tuple[Change, ...]:
    """Let Claude Code call the hooks and start the MCP server, for a project or for the user.

    database, config_file: those that both are to use, None for the usual ones. What is there already is left, what is
    there otherwise is changed, but for a server that somebody else wrote: it is kept, and told of. Raises InvalidInput
    for a file that is no JSON, naming the line, and StoreFailed for one that cannot be read or written; then no file is
    changed.
    """
    options = options_of(database, config_file)
    files = files_of(project)
    shared = project is not None
    own = {tuple(options), *_own_options(content_of(files.settings, within=project), str(files.settings))}
    return written(
        [
            (files.settings, lambda text, place: _with_hooks(text, place, options, shared=shared)),
            (files.servers, lambda text, place: _with_server(text, place, options, own, shared=shared)),
        ],
        within=project,
        dry_run=dry_run,
    )


def uninstall(project: Path | None, *, dry_run: bool) -> tuple[Change, ...]:
    """Take out what `install` put in, and what was made for it; helpers of hooks end. Raises what it raises."""
    files = files_of(project)
    own = _own_options(content_of(files.settings, within=project), str(files.settings))
    changes = written(
        [
            (files.settings, _without_hooks),
            (files.servers, lambda text, place: _without_server(text, place, own, shared=project is not None)),
        ],
        within=project,
        dry_run=dry_run,
    )
    if not dry_run:
        hook_helper.end_all()
    return changes


@dataclass(frozen=True, slots=True)
class Installed:
    """What Claude Code is to call, in which files.

    hooks: the command by event. server: that of MCP, () for one that starts no program, None where there is none;
    is_own: whether `install` wrote it, which else keeps it.
    """

    settings: str
    servers: str
    hooks: Mapping[str, tuple[str, ...]]
    server: tuple[str, ...] | None
    is_own: bool


def installed(project: Path | None) -> Installed:
    """Return what of graphmem is in the files of Claude Code. Raises what `install` raises."""
    files = files_of(project)
    settings, servers = (content_of(file) for file in (files.settings, files.servers))
    hooks = {
        event: _command(hook)
        for event in EVENTS
        for group in _groups(settings, str(files.settings), event)
        if _is_ours(group)
        for hook in group["hooks"]
    }
    found = _servers(servers, str(files.servers))
    server = found.get(SERVER)
    is_own = _is_own(server, _own_options(settings, str(files.settings)), shared=project is not None)
    command = _command(server) if SERVER in found else None
    return Installed(str(files.settings), str(files.servers), hooks, command, is_own)


def _command(called: Any) -> tuple[str, ...]:
    """Return a program with its arguments; what is no text is left out."""
    program = json_files.value_at(called, "command")
    arguments = json_files.value_at(called, "args")
    words = [program, *(arguments if isinstance(arguments, list) else [])]
    return tuple(word for word in words if isinstance(word, str))


# ---- hooks


def _with_hooks(text: str | None, place: str, options: Sequence[str], *, shared: bool) -> Edited:
    changes: list[str] = []
    for event in EVENTS:
        groups = _groups(text, place, event)
        own = [n for n, group in enumerate(groups) if _is_ours(group)]
        wanted = {"hooks": [_hook(event, options, shared=shared)]}
        if own and groups[own[0]] == wanted:
            continue
        text = json_files.with_value(text, ["hooks", event, own[0] if own else len(groups)], wanted)
        changes.append(f"hook {event} {'changed' if own else 'added'}")
    return Edited(text, changes)


def _without_hooks(text: str | None, place: str) -> Edited:
    changes: list[str] = []
    for event in json_files.value_at(json_files.parsed(text, place), "hooks") or {}:
        while text and (own := [n for n, group in enumerate(_groups(text, place, event)) if _is_ours(group)]):
            text = json_files.without_value(text, ["hooks", event, own[-1]])
            changes.append(f"hook {event} removed")
    return Edited(text, changes)


def _own_options(text: str, place: str) -> set[tuple[str, ...]]:
    """Return the options with which `install` may have written the server: those of the hooks of a file, or none."""
    hooks = [
        _command(hook)[:-1]
        for event in EVENTS
        for group in _groups(text, place, event)
        if _is_ours(group)
        for hook in group["hooks"]
    ]
    found = (options_in(hook, _HOOK, _HOOK_MODULE, by_name=True) for hook in hooks if hook)
    return {(), *(options for options in found if options is not None)}


def _groups(text: str | None, place: str, event: str) -> list[Any]:
    found = json_files.parsed(text, place)
    for path, kind, name in ((("hooks",), dict, "an object"), (("hooks", event), list, "a list")):
        value = json_files.value_at(found, *path)
        if value is not None and not isinstance(value, kind):
            raise InvalidInput("file", place, f"{'.'.join(path)} is not {name}; mend it, nothing was changed")
    return json_files.value_at(found, "hooks", event) or []


def _is_ours(group: object) -> bool:
    """Tell whether a group of hooks calls graphmem and nothing else."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and bool(hooks) and all(map(_calls_us, hooks))


def _calls_us(hook: object) -> bool:
    if not isinstance(hook, dict) or not isinstance(hook.get("command"), str):
        return False
    program = hook["command"].replace("\\", "/").rpartition("/")[2]
    arguments = hook.get("args") if isinstance(hook.get("args"), list) else []
    return program.removesuffix(".exe") == _HOOK or _HOOK_MODULE in (arguments or ())


def _hook(event: str, options: Sequence[str], *, shared: bool) -> dict[str, Any]:
    program, *arguments = program_of(_HOOK, _HOOK_MODULE, shared=shared)
    return {"type": "command", "command": program, "args": [*arguments, *options, event], "timeout": _SECONDS}


# ---- the MCP server


def _with_server(
    text: str | None, place: str, options: Sequence[str], own: Container[tuple[str, ...]], *, shared: bool
) -> Edited:
    wanted = _server([*program_of(SERVER, SERVER, shared=shared), *options, "mcp"])
    servers = _servers(text, place)
    server = servers.get(SERVER)
    if SERVER in servers and not _is_own(server, own, shared=shared):
        return Edited(text, kept="" if _is_as_good(server, wanted) else kept(f"mcpServers.{SERVER}", installs=True))
    if server == wanted:
        return Edited(text)
    done = "changed" if SERVER in servers else "added"
    return Edited(json_files.with_value(text, ["mcpServers", SERVER], wanted), [f"MCP server {SERVER} {done}"])


def _without_server(text: str | None, place: str, own: Container[tuple[str, ...]], *, shared: bool) -> Edited:
    servers = _servers(text, place)
    if text is None or SERVER not in servers:
        return Edited(text)
    if not _is_own(servers[SERVER], own, shared=shared):
        return Edited(text, kept=kept(f"mcpServers.{SERVER}", installs=False))
    return Edited(json_files.without_value(text, ["mcpServers", SERVER]), [f"MCP server {SERVER} removed"])


def _server(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", "command": command[0], "args": list(command[1:])}


def _is_own(server: Any, own: Container[tuple[str, ...]], *, shared: bool) -> bool:
    """Tell whether a server is one as `install` writes it. own: the options that it may have."""
    command = _command(server)
    return bool(command) and server == _server(command) and options_of_server(command, by_name=shared) in own


def _is_as_good(server: Any, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a server, perhaps of 'claude mcp add', starts what another one does, and no more is told of it."""
    command = _command(server)
    options = options_of_server(command, by_name=True)
    if options is None or options != options_of_server(_command(wanted), by_name=True):
        return False
    told = {name: value for name, value in server.items() if (name, value) != ("env", {})}
    return {"type": "stdio", **told} == _server(command)


def _servers(text: str | None, place: str) -> dict[str, Any]:
    servers = json_files.parsed(text, place).get("mcpServers", {})
    if not isinstance(servers, dict):
        raise InvalidInput("file", place, "mcpServers is not an object; mend it, nothing was changed")
    return servers
