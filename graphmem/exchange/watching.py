"""Waiting for changes of files, by the package watchfiles of the extra `graphmem[tree]`."""

import os
import threading
from collections.abc import Iterator

from graphmem.errors import InvalidInput
from graphmem.store.database import file_identity

_DEBOUNCE = 200  # milliseconds: an editor writes a file in several steps
_STEP = 50
_IDLE = 10_000  # milliseconds after which it is looked without a change of files
_POLLED = 300  # milliseconds between two looks where the system tells nothing
_AWAY = 0.5  # seconds between two looks for a folder that is not there


def require() -> None:
    """Raise InvalidInput where the package is not installed."""
    try:
        import watchfiles as watchfiles
    except ImportError:
        raise InvalidInput(
            "root", "watch", "watching needs the package watchfiles: pip install 'graphmem[tree]'"
        ) from None


def changes(root: str, stop: threading.Event) -> Iterator[None]:
    """Yield when files below a folder are watched, whenever they changed, and every ten seconds, until `stop` is set.

    A folder that is away is waited for, and one that takes its place is watched instead. The watcher itself is used,
    and not `watchfiles.watch` around it, since that does not tell when it has begun: what changes until then is lost.
    """
    from watchfiles._rust_notify import RustNotify  # documented under "Rust backend direct usage"

    is_polled = os.environ.get("WATCHFILES_FORCE_POLLING", "").casefold() not in ("", "false", "disable", "disabled")
    while not stop.is_set():
        watched = file_identity(root)
        if watched is None:
            stop.wait(_AWAY)
            continue
        try:
            begun = RustNotify([root], False, is_polled, _POLLED, True, True)
        except FileNotFoundError:  # it went since
            continue
        with begun as watcher:
            while not stop.is_set() and file_identity(root) == watched:
                yield
                if watcher.watch(_DEBOUNCE, _STEP, _IDLE, stop) == "signal":
                    raise KeyboardInterrupt
