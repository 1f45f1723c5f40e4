"""Starting the server of a memory as a process of its own, unless one runs; it loads no server itself."""

import contextlib
import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from graphmem.errors import StoreFailed
from graphmem.surfaces.http import running
from graphmem.surfaces.opening import Session
from graphmem.surfaces.own_programs import words_of

_PATIENCE = 30.0  # seconds until a server has to be there
_PAUSE = 0.05
_SECONDS_OF_A_LOOK = 1.0


def started(session: Session, options: Sequence[str]) -> running.Running:
    """Return the server of a memory, which is started with these options where none answers.

    It works for no project of its own: who asks says which. Raises StoreFailed where none comes up.
    """
    path = session.ready_path()
    found = running.alive(path)
    if found is not None and answers(found):
        return found
    command = [*words_of("graphmem"), "--db", path, "--project", ""]
    if session.config_file is not None:
        command += ["--config", session.config_file]
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(  # noqa: S603 (our own interpreter)
            [*command, "serve", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=told,
            cwd=Path(path).expanduser().resolve().parent,
            **apart,
        )
        return _come_up(path, process, told)


def answers(server: running.Running) -> bool:
    """Tell whether a server that is told of is there."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=_SECONDS_OF_A_LOOK)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def _come_up(path: str, process: subprocess.Popen[bytes], told: IO[bytes]) -> running.Running:
    """Wait until a server answers: the one that was started, or one that somebody else started at the same time."""
    last = time.monotonic() + _PATIENCE
    while time.monotonic() < last:
        ended = process.poll() is not None
        found = running.alive(path)
        if found is not None and answers(found):
            process.returncode = 0  # it lives on, which Python would complain of
            return found
        if ended:
            break
        time.sleep(_PAUSE)
    told.seek(0)
    reason = told.read().decode("utf-8", "replace").strip() or f"it did not answer within {_PATIENCE:g} seconds"
    raise StoreFailed(f"no server for {path} came up: {reason}")
