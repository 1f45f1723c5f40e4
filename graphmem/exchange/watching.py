"""Waiting for changes of files, by the package watchfiles of the extra `graphmem[tree]`."""

import threading
from collections.abc import Iterator

from graphmem.errors import InvalidInput

_DEBOUNCE = 200  # milliseconds: an editor writes a file in several steps
_STEP = 50
_IDLE = 10_000  # milliseconds after which it is looked without a change of files


def require() -> None:
    """Raise InvalidInput where the package is not installed."""
    try:
        import watchfiles as watchfiles
    except ImportError:
        raise InvalidInput(
            "root", "watch", "watching needs the package watchfiles: pip install 'graphmem[tree]'"
        ) from None


def changes(root: str, stop: threading.Event) -> Iterator[None]:
    """Yield whenever files below a folder changed, and every ten seconds, until `stop` is set."""
    import watchfiles

    for _ in watchfiles.watch(
        root, watch_filter=None, debounce=_DEBOUNCE, step=_STEP, stop_event=stop, rust_timeout=_IDLE,
        yield_on_timeout=True, raise_interrupt=True, ignore_permission_denied=True,
    ):  # fmt: skip
        if stop.is_set():
            return
        yield
