"""Memories that are kept open: a few of those that were used last, each for what it was opened for."""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from graphmem.memory import Memory

# More than there are threads that use one: each has two files for each thread that reads with it.
MOST = 16

_Key = TypeVar("_Key", bound=Hashable)


class Keeping(Generic[_Key]):
    """Opens a memory for each key when it is first used, and keeps it open. Any number of threads may use it.

    opened: opens the one of a key. One that is in use is not closed, so there may be more than `MOST` for a while.
    """

    def __init__(self, opened: Callable[[_Key], AbstractContextManager[Memory]]) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()  # the one used last at the end

    @contextlib.contextmanager
    def using(self, key: _Key) -> Iterator[Memory]:
        """Give the memory of a key. Raises what opening it raises, and tries again the next time."""
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            kept.users += 1
        try:
            with kept.opening:
                if kept.memory is None:
                    kept.memory = kept.closing.enter_context(self._opened(key))
            yield kept.memory
        finally:
            with self._lock:
                kept.users -= 1
                dropped = self._unneeded()
            for each in dropped:
                each.closing.close()

    def _unneeded(self) -> "list[_Kept]":
        """Forget those that could not be opened and the oldest ones that nobody uses; return what is to be closed."""
        dropped = []
        for key, kept in list(self._kept.items()):
            if not kept.users and (kept.memory is None or len(self._kept) > MOST):
                dropped.append(self._kept.pop(key))
        return dropped

    def close(self) -> None:
        """Close all of them, after what is being done with them."""
        with self._lock:
            kept, self._kept = self._kept, OrderedDict()
        for each in kept.values():
            each.closing.close()


class _Kept:
    """A memory that is kept open. opening: held while it is opened. users: how many use it just now."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.closing = contextlib.ExitStack()
        self.memory: Memory | None = None
        self.users = 0
