"""Programs that use the memory: what they call is there, starts, and is this installation with this memory."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join, quote

from graphmem.core.addresses import without_passwords
from graphmem.errors import GraphmemError
from graphmem.surfaces import claude_setup
from graphmem.surfaces.claude_code import EVENTS
from graphmem.surfaces.doctor.findings import Finding, good, note, problem, reason_of
from graphmem.surfaces.opencode import setup as opencode_setup
from graphmem.surfaces.opening import Session
from graphmem.surfaces.own_programs import words_of
from graphmem.surfaces.setting_up import SERVER

_PATIENCE = 10  # seconds for a program to start


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who calls. what: which of its calls. install: what puts it right. is_own: whether its file is the user's own."""

    what: str
    install: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class _Called:
    """What is called. module: its name for Python. asked: what it is asked that changes nothing."""

    script: str
    module: str
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Client:
    """A program that may use the memory. command: of ours, that sets it up. project: None for the user's settings."""

    name: str
    command: str
    project: Path | None

    @property
    def _what(self) -> str:
        return self.name if self.project is None else f"{self.name}, project"

    @property
    def _install(self) -> str:
        return f"graphmem {self.command} install{'' if self.project is None else ' --project'}"

    def caller(self, call: str) -> _Caller:
        """Return one of its calls."""
        return _Caller(f"{self._what}, {call}", self._install, self.project is None)

    def unreadable(self, error: GraphmemError) -> Finding:
        """Tell that its files cannot be read."""
        return problem(self._what, reason_of(error), "correct the file; it is JSON")

    def unused(self) -> Iterator[Finding]:
        """Tell that the user's settings name nothing of ours; those of a project need not."""
        if self.project is None:
            yield note(self._what, "does not use the memory", self._install)


# With GRAPHMEM_WRITER set a hook answers nothing and looks at nothing.
_HOOK = _Called("graphmem-hook", "graphmem.surfaces.hook", ())
_PLUGIN = _Called("graphmem", "graphmem", ("--version",))
_SERVER = _Called("graphmem", "graphmem", ("mcp",))  # which ends at once, since nobody asks anything
_INSTALLS = re.compile(r"pip install 'graphmem\[\w+\]'")


def look(session: Session, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what there is to say of the settings of clients. environ: of programs that are tried."""
    try:
        memory = os.path.realpath(os.path.expanduser(session.path()))
    except GraphmemError:  # as the settings cannot be read, which is told already
        memory = ""
    project = session.project()
    for place in (None, *([] if project is None else [Path(project)])):
        yield from _claude(place, memory, environ)
        yield from _opencode(place, memory, environ)


def _claude(project: Path | None, memory: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    client = _Client("Claude Code", "claude", project)
    try:
        found = claude_setup.installed(project)
    except GraphmemError as error:
        yield client.unreadable(error)
        return
    if not found.hooks and found.server is None:
        yield from client.unused()
        return
    hooks = client.caller("hooks")
    if not found.hooks:
        yield note(hooks.what, f"none in {found.settings}", hooks.install)
    elif missing := [event for event in EVENTS if event not in found.hooks]:
        yield problem(hooks.what, f"none for {', '.join(missing)} in {found.settings}", hooks.install)
    for hook in dict.fromkeys(hook[:-1] if hook[-1:] == (event,) else hook for event, hook in found.hooks.items()):
        yield _call(hooks, _HOOK, hook, memory, environ)
    yield _server(client, found.server, found.servers, memory, environ, is_own=found.is_own)


def _opencode(project: Path | None, memory: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    client = _Client("OpenCode", "opencode", project)
    try:
        found = opencode_setup.installed(project)
    except GraphmemError as error:
        yield client.unreadable(error)
        return
    if not found.is_there and found.server is None:
        yield from client.unused()
        return
    plugin = client.caller("plug-in")
    if not found.is_there:
        yield note(plugin.what, f"none in {found.folder}", plugin.install)
    elif found.plugin is None or found.missing:
        missing = found.missing or (found.folder,)
        yield problem(plugin.what, f"not there, or of another version: {', '.join(missing)}", plugin.install)
    if found.plugin is not None:
        yield _call(plugin, _PLUGIN, found.plugin, memory, environ)
    yield _server(client, found.server, found.config, memory, environ, is_own=found.is_own)


def _server(
    client: _Client,
    command: Sequence[str] | None,
    file: str,
    memory: str,
    environ: Mapping[str, str],
    *,
    is_own: bool,
) -> Finding:
    caller = client.caller("MCP")
    if command is None:
        return note(caller.what, f"no server in {file}", caller.install)
    if not is_own:  # which `install` keeps
        caller = replace(caller, install=f"remove {SERVER} from the MCP servers in {file}, then {caller.install}")
    if not command:
        return note(caller.what, f"{SERVER} in {file} starts no program, and was not tried", caller.install)
    return _call(caller, _SERVER, command, memory, environ)


def _call(caller: _Caller, called: _Called, command: Sequence[str], memory: str, environ: Mapping[str, str]) -> Finding:
    """Return whether what is called is there, starts, and means the same memory."""
    shown = without_passwords(join(command))
    program = shutil.which(command[0]) if command else None
    if program is None:
        return problem(caller.what, f"{shown}: the program is not there, or cannot be run", caller.install)
    words = _start(called, program, command[1:], trusted=caller.is_own)
    if words is None:  # whoever wrote the project's files would have it run
        told = f"{shown}: is not of this installation, and was not tried"
        return note(caller.what, told, caller.install)
    if failure := _failure(words, environ):
        needed = _INSTALLS.search(failure)
        return problem(caller.what, f"{shown}: does not start: {failure}", needed[0] if needed else caller.install)
    named = _option(command, "--db")
    if named and os.path.realpath(named) != os.path.realpath(memory):
        other = without_passwords(named)
        return note(caller.what, f"uses another memory, {other}", f"graphmem --db {quote(other)} doctor")
    settings = _option(command, "--config")
    if settings and not os.path.exists(settings):
        return problem(caller.what, f"{settings} of --config is not there", caller.install)
    return good(caller.what, shown)


def _start(called: _Called, program: str, arguments: Sequence[str], *, trusted: bool) -> list[str] | None:
    """Return what starts a program and changes nothing, None where it must not be tried."""
    own = os.path.realpath(Path(sys.executable).parent)
    is_script = Path(program).name.removesuffix(".exe") == called.script
    by_module = words_of(called.module)[1:]
    is_module = list(arguments[: len(by_module)]) == by_module
    is_ours = os.path.realpath(Path(program).parent) == own and (
        is_script or (is_module and os.path.realpath(program) == os.path.realpath(sys.executable))
    )
    if not is_ours and not (trusted and (is_script or is_module)):
        return None
    return [program, *(by_module if is_module else ()), *called.asked]


def _failure(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return why a program does not start, '' where it does."""
    try:
        ran = subprocess.run(  # noqa: S603 (one of this installation, or one that the user's own settings name)
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            env={**environ, "GRAPHMEM_WRITER": "doctor"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_PATIENCE} s"
    except OSError as error:
        return reason_of(error)
    told = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if ran.returncode == 0 else f"exit code {ran.returncode}{': ' + told[-1][:300] if told else ''}"


def _option(command: Sequence[str], name: str) -> str:
    """Return the value of an option, '' where it is not given.

    >>> _option(["graphmem", "--db", "a.db", "mcp"], "--db")
    'a.db'
    """
    place = list(command).index(name) + 1 if name in command else len(command)
    return command[place] if place < len(command) else ""
