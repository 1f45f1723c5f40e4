"""What answers the events of Claude Code: in the process of a hook, or in a helper that several hooks ask.

A helper keeps nothing but modules: it opens the memory for each event anew, so a memory may be restored or removed and
settings may change at any time. It answers one event after the other, ends when nobody has asked for an hour, and
when its socket is gone or another helper's.
"""

import contextlib
import datetime as dt
import functools
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from graphmem.core import redaction
from graphmem.core.addresses import without_passwords
from graphmem.surfaces import claude_code, hook, places
from graphmem.surfaces.own_programs import words_of

IDLE_MINUTES = 60  # a person thinks, reads and eats
_LOOKS_EVERY = 20.0  # seconds, whether its socket is still its own
_LARGEST_LOG = 1 << 20
_LARGEST_EVENT = 1 << 26
_DIGEST = "--digest"
_OF_A_DIGEST = ("session_id", "agent_id", "transcript_path", "cwd", "prompt")  # what it needs of an event


# ---- events


Next = Callable[[], object]


def answer(shared: bytes, wanted: bytes, raw: bytes, *, stays: bool = False) -> tuple[bytes, Next]:
    """Return what is to be printed for an event, b'' for nothing, and what is to be done when it is printed.

    shared, wanted, raw: see `hook.request`. stays: whether this process stays to read on in a transcript by itself.
    Never raises; what went wrong is logged.
    """
    started, *arguments = wanted.decode("utf-8", "surrogateescape").split("\0")
    try:
        return _answered(started, arguments, raw, stays=stays)
    except BaseException as error:  # noqa: BLE001 (no failure of ours is one of the host)
        log(arguments, [f"{type(error).__name__}: {error}"])
        return b"", _nothing


def _answered(started: str, arguments: list[str], raw: bytes, *, stays: bool) -> tuple[bytes, Next]:
    options, event, cause = _parsed(arguments)
    given = json.loads(raw) if raw.strip() else {}
    if cause:
        log(arguments, claude_code.digest(cause, given, started=started, **options).failed)
        return b"", _nothing
    event = event or (given.get("hook_event_name", "") if isinstance(given, dict) else "")
    since = dt.datetime.now(dt.UTC).isoformat()
    done = claude_code.answered(event, given, started=started, **options)
    log(arguments, done.failed)
    told = b"" if done.answer is None else json.dumps(done.answer).encode("ascii") + b"\n"
    cause = claude_code.DIGESTED.get(event, "")
    if not cause or not isinstance(given, dict) or (cause == "wish" and not done.looks):
        return told, _nothing
    small = {name: given[name] for name in _OF_A_DIGEST if name in given} | {"since": since}
    raw, words = json.dumps(small).encode("ascii"), _joined(started, [_DIGEST, cause, *arguments])
    if cause == "wish" and stays:  # is done before the next event is looked at, which may be the end of this turn
        return told, functools.partial(answer, b"", words, raw)
    if cause == "turn" and stays:  # as quick as an answer, but for a long transcript that is read for the first time
        return told, threading.Thread(target=answer, args=(b"", words, raw)).start
    return told, functools.partial(_go_on, cause, raw, started, options)


def _nothing() -> None:
    pass


def _joined(started: str, arguments: Sequence[str]) -> bytes:
    return "\0".join((started, *arguments)).encode("utf-8", "surrogateescape")


def _parsed(arguments: list[str]) -> tuple[dict[str, Any], str, str]:
    """Return the options, the name of the event, and for what cause a digest is to be made."""
    named = {"--db": os.environ.get("GRAPHMEM_DB"), "--config": os.environ.get("GRAPHMEM_CONFIG"), _DIGEST: ""}
    left = list(arguments)
    while left and left[0] in named:
        named[left[0]] = left[1] if len(left) > 1 else ""
        del left[:2]
    event = left[0] if left else ""
    return {"database": named["--db"] or None, "config_file": named["--config"] or None}, event, named[_DIGEST] or ""


def _go_on(cause: str, raw: bytes, started: str, options: dict[str, Any]) -> None:
    """Start a process that goes on with an event, and do not wait for it."""
    environ = {**os.environ, "CLAUDE_PROJECT_DIR": started, "GRAPHMEM_HOOK_ALONE": "1"}
    # Arguments are read by all users of a machine, and an address may have a password in it.
    for variable, name in (("GRAPHMEM_DB", "database"), ("GRAPHMEM_CONFIG", "config_file")):
        if options[name]:
            environ[variable] = options[name]
    _apart([*words_of("graphmem.surfaces.hook"), _DIGEST, cause], environ, raw)


def _apart(words: Sequence[str], environ: dict[str, str], told: bytes) -> None:
    """Start a program of ours for something that nobody waits for, and tell it what it is about."""
    process = subprocess.Popen(  # noqa: S603 (this interpreter)
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
        start_new_session=True,
        creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),  # the same on Windows
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(told)
        process.stdin.close()
    process.returncode = 0  # who ends first is of no interest, and not to be warned of


def log(arguments: Sequence[str], lines: Sequence[str]) -> None:
    """Note what went wrong; a log that cannot be written is no reason to fail either."""
    if not lines:
        return
    try:
        folder = places.state_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = f"{folder}{os.sep}hook.log"
        if os.path.exists(path) and os.path.getsize(path) > _LARGEST_LOG:
            os.replace(path, f"{path}.1")
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            for line in lines:
                told = redaction.redact(without_passwords(" ".join(f"{now} {' '.join(arguments)}: {line}".split())))
                file.write(told.encode("utf-8", "backslashreplace") + b"\n")
    except Exception:  # noqa: BLE001, S110 (there is nobody left to tell)
        pass


# ---- the helper


def start(place: str) -> None:
    """Start a helper behind a socket, and do not wait for it."""
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    _apart([*words_of("graphmem.surfaces.hook_helper"), place], dict(os.environ), b"")


def serve(place: str, *, idle: float = IDLE_MINUTES * 60.0) -> None:
    """Answer what is asked at a socket, in a folder that is there, until nobody has asked for `idle` seconds."""
    with contextlib.suppress(BaseException):  # to have loaded it; what fails here is told when somebody asks
        _warm_up()
    shared = hook.request([], b"")[0]
    if _is_answered(place):  # another one was faster
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
        before = os.umask(0o177)
        try:
            door.bind(place)
        finally:
            os.umask(before)
        own = os.stat(place).st_ino
        door.listen(64)
        door.settimeout(min(_LOOKS_EVERY, idle))
        last = dt.datetime.now(dt.UTC)
        while _inode(place) == own and (dt.datetime.now(dt.UTC) - last).total_seconds() < idle:
            try:
                line, _ = door.accept()
            except TimeoutError:
                continue
            last = dt.datetime.now(dt.UTC)
            with line, contextlib.suppress(OSError, ValueError):
                line.settimeout(_LOOKS_EVERY)
                _converse(line, shared)
        if _inode(place) == own:
            os.unlink(place)


def end_all() -> None:
    """End the helpers of this user. Each looks whether its socket is there when somebody has spoken to it."""
    if sys.platform == "win32":
        return
    for folder in hook.folders_of_sockets():
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("hook-") and stat.S_ISSOCK(entry.stat().st_mode):
                    _end(entry.path)


def _end(place: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        with contextlib.suppress(OSError):  # nobody is there any more
            line.connect(place)
        os.unlink(place)


def _converse(line: socket.socket, shared: bytes) -> None:
    """Answer one hook: what it asks, or that it has to do it by itself."""
    with line.makefile("rb") as stream:
        first, second = map(int, stream.readline(100).split())
        if not (0 <= first <= _LARGEST_EVENT and 0 <= second <= _LARGEST_EVENT):
            return
        theirs, wanted = stream.read(first), stream.read(second)
        raw = stream.read(_LARGEST_EVENT)
    if theirs != shared:
        line.sendall(b"-")
        return
    told, then = answer(theirs, wanted, raw, stays=True)
    line.sendall(b"+" + told)
    line.close()  # it waits no longer
    then()


def _is_answered(place: str) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(1.0)
        line.connect(place)
        return True
    return False


def _inode(place: str) -> int:
    try:
        return os.stat(place).st_ino
    except OSError:
        return 0


def _warm_up() -> None:
    """Load what answers need, by answering."""
    from graphmem.memory import Memory
    from graphmem.surfaces import hosts

    seat = hosts.Seat("", "")
    with Memory.open(":memory:") as memory:
        memory.remember("Load what is needed", kind="rule", labels=["warm-up"])
        hosts.prompted(memory, seat, "Load what is needed to answer, always.", part="p1")
        hosts.tool_answered(memory, seat, "warm-up", "", error="no")
        hosts.tool_called(memory, seat, "warm-up", "")
        hosts.wish_of("Always load.", memory.config)
        hosts.stopped(memory, seat, wish="Always load.")


if __name__ == "__main__":
    serve(sys.argv[1])
