"""A trip through each surface on a memory that is gone afterwards: what goes in comes out, within some seconds."""

import contextlib
import http.client
import json
import os
import site
import subprocess
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmem.core.model import Triple
from graphmem.core.situations import Situation
from graphmem.errors import InvalidInput
from graphmem.memory import Memory
from graphmem.surfaces import extras
from graphmem.surfaces.doctor.findings import Finding, good, note, problem, reason_of
from graphmem.surfaces.http.starting import health
from graphmem.surfaces.own_programs import words_of

SECONDS = 10  # for each trip
_WORD = "pelican"
_TITLE = "The pelican lives in the harbour"
_GRAPHMEM = tuple(words_of("graphmem"))
_HOOK = tuple(words_of("graphmem.surfaces.hook"))
_REINSTALL = "pip install --force-reinstall graphmem"


class TripFailed(Exception):
    """Something did not come back as it should."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trip goes. folder: one that is gone afterwards. environ: of processes, so that they keep to it."""

    folder: Path
    environ: Mapping[str, str]

    def memory(self, name: str) -> Path:
        """Return the path of a memory of this trip alone."""
        return self.folder / f"{name}.db"


def place_in(folder: Path) -> Place:
    """Return a place for trips: nothing that is started there reads or writes what is the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "XDG_", "CLAUDE_"))}
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return Place(
        folder,
        {
            **kept,
            **homes,
            "HOME": str(folder),
            "PYTHONUSERBASE": site.getuserbase(),  # else it would be looked for in that home
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONIOENCODING": "utf-8",
            "GRAPHMEM_HOOK_ALONE": "1",  # no helper is left behind
        },
    )


def look(place: Place) -> Iterator[Finding]:
    """Yield how each trip went."""
    yield _trip("Python", _python, place)
    yield _trip("command line", _command_line, place)
    yield _trip("MCP", _mcp, place, extra="mcp", packages=("mcp", "pydantic"))
    yield _trip("HTTP", _http, place, extra="http", packages=("jinja2", "pydantic", "starlette", "uvicorn"))
    yield _trip("hook", _hook, place)


def _trip(
    name: str, act: Callable[[Place], str], place: Place, *, extra: str = "", packages: tuple[str, ...] = ()
) -> Finding:
    what = f"round trip, {name}"
    try:
        for package in packages:
            extras.require(package, name, extra)
    except InvalidInput as error:
        return note(what, error.reason.partition(":")[0], f"pip install 'graphmem[{extra}]'")
    told: list[str] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            told.append(act(place))
        except Exception as error:  # noqa: BLE001 (what went wrong is what is to be told)
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name=f"graphmem-doctor-{name}")
    thread.start()
    thread.join(SECONDS + 2)  # processes are ended after SECONDS, and are to be told of first
    if told:
        return good(what, told[0])
    reason = reason_of(failed[0]) if failed else f"no end within {SECONDS} s"
    return problem(what, reason, f"pip install --upgrade 'graphmem[{extra}]'" if extra else _REINSTALL)


# ---- trips


def _python(place: Place) -> str:
    with Memory.open(place.memory("python")) as memory:
        memory.commit([Triple("pelican", "lives in", "the harbour")])
        here = Situation.of(chan="doctor", peer="doctor")
        memory.enter_scene(here)
        if not memory.enter_scene(here).created:
            raise TripFailed("no scene grew at the second visit")
        if not memory.recall(_WORD):
            raise TripFailed("a fact that was committed was not recalled")
    return "a fact came back, a scene grew at the second visit"


def _command_line(place: Place) -> str:
    words = (*_GRAPHMEM, "--db", str(place.memory("command-line")))
    _run((*words, "remember", _TITLE, "--json"), place)
    if _TITLE not in _run((*words, "recall", _WORD, "--json"), place):
        raise TripFailed("a note that was remembered was not recalled")
    return "a note came back"


def _mcp(place: Place) -> str:
    with _started((*_GRAPHMEM, "--db", str(place.memory("mcp")), "mcp"), place) as process:
        client = {"name": "graphmem doctor", "version": "1"}
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        _asked(process, 1, "initialize", begin)
        _send(process, {"method": "notifications/initialized"})
        tools = [tool["name"] for tool in _asked(process, 2, "tools/list", {})["tools"]]
        answer = _asked(process, 3, "tools/call", {"name": "recall", "arguments": {"query": _WORD}})
        if answer.get("isError"):
            raise TripFailed(f"recall was refused: {json.dumps(answer.get('content'))}")
    return f"{len(tools)} tools, recall answers"


def _http(place: Place) -> str:
    words = (*_GRAPHMEM, "--db", str(place.memory("http")), "serve", "--port", "0", "--json")
    with _started(words, place) as process:
        served = json.loads(_line(process))
        health(served["url"], patience=SECONDS)
        body = json.dumps({"title": _TITLE})
        refused = _posted(served["url"], body, {})
        if refused != 401:
            raise TripFailed(f"writing without the token was answered with {refused}, and not refused")
        done = _posted(served["url"], body, {"Authorization": f"Bearer {served['token']}"})
        if done != 200:
            raise TripFailed(f"writing with the token was answered with {done}")
    return "healthy, writes with the token and not without"


def _hook(place: Place) -> str:
    database = place.memory("hook")
    with Memory.open(database) as memory:
        memory.remember(_TITLE, kind="rule", source="user", pinned=True)
    event = {"session_id": "doctor", "hook_event_name": "SessionStart", "source": "startup", "cwd": str(place.folder)}
    out = _run((*_HOOK, "--db", str(database), "SessionStart"), place, json.dumps(event))
    if _TITLE not in out:
        log = place.folder / "state" / "graphmem" / "hook.log"
        reason = log.read_text("utf-8", "replace").strip().splitlines()[-1] if log.exists() else "it answered nothing"
        raise TripFailed(f"a rule was not told at the start of a session: {reason}")
    return "a rule is told at the start of a session"


# ---- processes


def _run(words: tuple[str, ...], place: Place, given: str = "") -> str:
    """Return what a program printed; raise TripFailed where it failed."""
    try:
        ran = subprocess.run(  # noqa: S603 (this interpreter)
            words,
            input=given.encode(),
            capture_output=True,
            timeout=SECONDS,
            env=place.environ,
            cwd=place.folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TripFailed(f"no end within {SECONDS} s") from None
    if ran.returncode:
        raise TripFailed(f"exit code {ran.returncode}: {_last_line(ran.stderr + ran.stdout)}")
    return ran.stdout.decode("utf-8", "replace")


@contextlib.contextmanager
def _started(words: tuple[str, ...], place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that serves, and end it, at the latest after some seconds."""
    with open(place.folder / "errors.txt", "w+b") as errors:  # noqa: PTH123 (it is read again below)
        process = subprocess.Popen(  # noqa: S603 (this interpreter)
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=place.environ,
            cwd=place.folder,
        )
        late = threading.Timer(SECONDS, process.kill)
        late.daemon = True
        late.start()
        try:
            with process:
                try:
                    yield process
                finally:
                    process.terminate()
        except (TripFailed, OSError, ValueError, KeyError, http.client.HTTPException) as error:
            errors.seek(0)
            said = _last_line(errors.read())
            raise TripFailed(f"{reason_of(error)}{': ' + said if said else ''}") from None
        finally:
            late.cancel()


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def _line(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise TripFailed(f"the server ended, or did not answer within {SECONDS} s")
    return line


def _send(process: "subprocess.Popen[bytes]", message: Mapping[str, object]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def _asked(process: "subprocess.Popen[bytes]", number: int, method: str, params: Mapping[str, object]) -> Any:
    """Return the result of a request; what the server sends besides is passed over."""
    _send(process, {"id": number, "method": method, "params": params})
    while True:
        answer = json.loads(_line(process))
        if answer.get("id") == number and "method" not in answer:
            break
    if "result" not in answer:
        raise TripFailed(f"{method} was refused: {json.dumps(answer.get('error'))}")
    return answer["result"]


def _posted(url: str, body: str, headers: Mapping[str, str]) -> int:
    """Return the status of the answer to a note that is to be remembered. No proxy is asked."""
    address = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=SECONDS)
    try:
        line.request("POST", "/api/remember", body, {"Content-Type": "application/json", **headers})
        return line.getresponse().status
    finally:
        line.close()
