"""Starting the server of a memory as a process of its own, unless one runs; it loads no server itself."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from graphmem.core.addresses import is_server, without_password
from graphmem.errors import StoreFailed
from graphmem.surfaces.http import running
from graphmem.surfaces.opening import Session
from graphmem.surfaces.own_programs import absolute, words_of

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
    # Arguments are read by all users of a machine, and an address may have a password in it.
    environ = {**os.environ, "GRAPHMEM_DB": absolute(path)}
    if session.config_file is not None:
        environ["GRAPHMEM_CONFIG"] = absolute(session.config_file)
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(  # noqa: S603 (our own interpreter)
            [*words_of("graphmem"), "--project", "", "serve", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=told,
            env=environ,
            cwd=Path.home() if is_server(path) else Path(path).expanduser().resolve().parent,
            **apart,
        )
        return _come_up(path, process, told)


def answers(server: running.Running) -> bool:
    """Tell whether a server that is told of is there."""
    try:
        health(server.url, pid=server.pid, patience=_SECONDS_OF_A_LOOK)
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return True


def health(url: str, *, pid: int | None = None, patience: float) -> dict[str, Any]:
    """Return what a server of this machine says of itself. Raises OSError, HTTPException and ValueError.

    pid: its process, None for any. One that was killed may still be told of when another has its port.
    """
    address = urllib.parse.urlsplit(url)
    if address.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError("it is not one of this machine")
    connection = http.client.HTTPConnection(address.hostname, address.port or 80, timeout=patience)
    with contextlib.closing(connection):
        connection.request("GET", "/health")
        answer = json.loads(connection.getresponse().read())
    if not isinstance(answer, dict) or answer.get("status") != "ok" or pid not in (None, answer.get("pid")):
        raise ValueError("something else answers there")
    return answer


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
    raise StoreFailed(f"no server for {without_password(path)} came up: {reason}")
