"""A thread that runs something again and again until it is stopped."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from graphmem import log
from graphmem.errors import GraphmemError

_T = TypeVar("_T")


class Repeating(Generic[_T]):
    """Calls `act` at once and then every so many seconds, and hands on what it returns."""

    def __init__(self, act: Callable[[], _T], every: float, report: Callable[[_T], None]) -> None:
        self._act = act
        self._every = every
        self._report = report
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphmem-upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let a call that is at work end, and make no other."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._report(self._act())
            except GraphmemError as error:
                if not self._stopped.is_set():
                    log.warning("upkeep: %s", error)
            except Exception:  # noqa: BLE001 (told in the log; a thread that dies of it would keep nothing in order)
                log.exception("upkeep failed; it is tried again in %g s", self._every)
            self._stopped.wait(self._every)
