"""`graphmem-hook EVENT`: one event of Claude Code on standard input, its answer on standard output.

Nothing that happens here is a matter of the host: the exit code is 0, standard output holds one JSON document or
nothing, and what went wrong stands in `hook.log` in the user's folder of state. Only what an answer needs is loaded.
"""

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from graphmem.late import late

if TYPE_CHECKING:
    import datetime as dt
    import json
    import subprocess

    from graphmem.core import redaction
    from graphmem.surfaces import claude_code, opening
else:
    claude_code = late("graphmem.surfaces.claude_code")
    dt = late("datetime")
    json = late("json")
    opening = late("graphmem.surfaces.opening")
    redaction = late("graphmem.core.redaction")
    subprocess = late("subprocess")

_LARGEST_LOG = 1 << 20
_DIGEST = "--digest"


def main() -> NoReturn:
    """Answer the event that the command line names, and end the process."""
    _end(answer(sys.argv[1:]))


def answer(arguments: list[str]) -> bytes:
    """Return what is to be printed for arguments and standard input; never raises."""
    try:
        return _run(arguments)
    except BaseException as error:  # noqa: BLE001 (no failure of ours is one of the host)
        _log(arguments, [f"{type(error).__name__}: {error}"])
        return b""


def _run(arguments: list[str]) -> bytes:
    """Do what the arguments say, and return what is to be printed."""
    options, event, cause = _parsed(arguments)
    raw = sys.stdin.buffer.read() if sys.stdin is not None else b""
    if os.environ.get("GRAPHMEM_WRITER"):  # a writer of this memory is at work here, and no person
        return b""
    given = json.loads(raw) if raw.strip() else {}
    if cause:
        _log(arguments, claude_code.digest(cause, given, **options).failed)
        return b""
    event = event or (given.get("hook_event_name", "") if isinstance(given, dict) else "")
    done = claude_code.answered(event, given, **options)
    if event in claude_code.DIGESTED:
        _go_on(claude_code.DIGESTED[event], raw, options)
    _log(arguments, done.failed)
    return b"" if done.answer is None else json.dumps(done.answer).encode("ascii") + b"\n"


def _parsed(arguments: list[str]) -> tuple[dict[str, Any], str, str]:
    """Return the options, the name of the event, and for what cause a digest is to be made."""
    named = {"--db": os.environ.get("GRAPHMEM_DB"), "--config": os.environ.get("GRAPHMEM_CONFIG"), _DIGEST: ""}
    left = list(arguments)
    while left and left[0] in named:
        named[left[0]] = left[1] if len(left) > 1 else ""
        del left[:2]
    event = left[0] if left else ""
    return {"database": named["--db"] or None, "config_file": named["--config"] or None}, event, named[_DIGEST] or ""


def _go_on(cause: str, raw: bytes, options: dict[str, Any]) -> None:
    """Start a process that digests the session, and do not wait for it."""
    words = [sys.executable, "-m", "graphmem.surfaces.hook", _DIGEST, cause]
    for option, name in (("--db", "database"), ("--config", "config_file")):
        if options[name]:
            words += [option, options[name]]
    given = json.loads(raw)
    given = given if isinstance(given, dict) else {}
    small = {name: given[name] for name in ("session_id", "transcript_path", "cwd") if name in given}
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **apart
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(small).encode("ascii"))
    process.stdin.close()


def _log(arguments: list[str], lines: Any) -> None:
    """Note what went wrong; a log that cannot be written is no reason to fail either."""
    if not lines:
        return
    try:
        folder = opening.user_folder("state")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = f"{folder}{os.sep}hook.log"
        if os.path.exists(path) and os.path.getsize(path) > _LARGEST_LOG:
            os.replace(path, f"{path}.1")
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            for line in lines:
                told = redaction.redact(" ".join(f"{now} {' '.join(arguments)}: {line}".split()))
                file.write(told.encode("utf-8", "backslashreplace") + b"\n")
    except Exception:  # noqa: BLE001, S110 (there is nobody left to tell)
        pass


def _end(told: bytes) -> NoReturn:
    """Print an answer and end the process at once: all is written, and to take the interpreter down takes longer."""
    try:
        while told:
            told = told[os.write(1, told) :]
    except OSError:  # nobody reads it
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
