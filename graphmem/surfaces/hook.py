"""`graphmem-hook EVENT`: one event of Claude Code on standard input, its answer on standard output.

Nothing that happens here is a matter of the host: the exit code is 0, standard output holds one JSON document or
nothing, and what went wrong stands in `hook.log` in the user's folder of state.

To load what an answer needs takes longer than the answer and longer than a host should wait. So the first event is
answered by its own process, which leaves a helper behind (`surfaces/hook_helper.py`): one that has everything loaded,
answers the next ones over a socket of the user's own, and ends when nobody asks any more. This module therefore loads
next to nothing. Where there is no such socket, as on Windows, GRAPHMEM_HOOK_ALONE is set or an option names a relative
path, each event is answered by its own process.
"""

import os
import sys

from graphmem.late import late
from graphmem.surfaces import places

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all else here
if TYPE_CHECKING:
    import _socket
    from typing import NoReturn

    from graphmem.core import addresses
    from graphmem.surfaces import hook_helper
else:
    addresses = late("graphmem.core.addresses")
    _socket = late("_socket")
    hook_helper = late("graphmem.surfaces.hook_helper")

_PATIENCE = 1.0  # seconds for an answer of the helper, which is busy with another one at the worst
_PIECE = 1 << 16


def main() -> "NoReturn":
    """Answer the event that the command line names, and end the process."""
    _end(answer(sys.argv[1:]))


def answer(arguments: list[str]) -> bytes:
    """Return what is to be printed for arguments and standard input; never raises."""
    try:
        raw = sys.stdin.buffer.read() if sys.stdin is not None else b""
        if os.environ.get("GRAPHMEM_WRITER"):  # a writer of this memory is at work here, and no person
            return b""
        asked = request(arguments, raw)
        alone = os.environ.get("GRAPHMEM_HOOK_ALONE") or not all(map(_is_anchored, arguments[1:-1:2]))
        place = "" if alone else socket_of(asked[0])
        told = _of_helper(place, asked) if place else None
        if told is None:
            told, then = hook_helper.answer(*asked)
            then()
            if place:
                hook_helper.start(place)
        return told
    except BaseException as error:  # noqa: BLE001 (no failure of ours is one of the host)
        hook_helper.log(arguments, [f"{type(error).__name__}: {error}"])
        return b""


def request(arguments: list[str], raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what a helper is asked: what it has to share with who asks, what it is asked for, and the event."""
    shared = [
        sys.executable,
        __file__,
        *(f"{name}={value}" for name, value in sorted(os.environ.items()) if _is_ours(name)),
    ]
    given = [value for name, value in os.environ.items() if name.startswith("GRAPHMEM_")]
    if not all(map(_is_anchored, given)):  # perhaps a path, and a helper may be in another folder
        shared.append(_current_folder())
    wanted = [os.environ.get("CLAUDE_PROJECT_DIR", ""), *arguments]
    return _joined(shared), _joined(wanted), raw


def _is_anchored(given: str) -> bool:
    """Tell whether a value means the same in every folder."""
    return os.path.isabs(given) or addresses.is_server(given)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it is gone
        return ""


def _is_ours(name: str) -> bool:
    return name.startswith(("GRAPHMEM_", "XDG_")) or name in ("HOME", "TZ", "USER", "LOGNAME")


def _joined(words: list[str]) -> bytes:
    return "\0".join(words).encode("utf-8", "surrogateescape")


def socket_of(shared: bytes) -> str:
    """Return the path of the socket of a helper, in a folder of the user's own; '' where there can be none."""
    if sys.platform == "win32":
        return ""
    folder = folders_of_sockets()[0]
    name = 0
    for byte in shared:  # the helper compares the whole of it
        name = (name * 31 + byte) % (1 << 48)
    path = f"{folder}/hook-{name:x}"
    return path if len(os.fsencode(path)) < 100 and os.path.isabs(path) else ""


def folders_of_sockets() -> list[str]:
    """Return the folders where sockets of helpers may lie: the one of this environment first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "").strip()
    return [*([f"{runtime}/graphmem"] if runtime else []), places.state_folder()]


def _of_helper(place: str, asked: tuple[bytes, bytes, bytes]) -> bytes | None:
    """Return what the helper answers; None where there is none, or it cannot be asked for this."""
    try:
        folder = os.stat(os.path.dirname(place))
    except OSError:
        return None
    if folder.st_uid != os.getuid() or folder.st_mode & 0o22:
        return None
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        line.settimeout(_PATIENCE)
        line.connect(place)
        line.sendall(b"%d %d\n%b%b%b" % (len(asked[0]), len(asked[1]), *asked))
        line.shutdown(_socket.SHUT_WR)
        told = b""
        while piece := line.recv(_PIECE):
            told += piece
    except TimeoutError:
        hook_helper.log(asked[1].decode("utf-8", "replace").split("\0")[1:], ["the helper did not answer in time"])
        return b""
    except OSError:
        return None
    finally:
        line.close()
    return told[1:] if told[:1] == b"+" else None


def _end(told: bytes) -> "NoReturn":
    """Print an answer and end the process at once: all is written, and to take the interpreter down takes longer."""
    try:
        while told:
            told = told[os.write(1, told) :]
    except OSError:  # nobody reads it
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
