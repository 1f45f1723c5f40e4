"""A writer that is the model of a host: what is to be written waits here until the host's plug-in fetches it."""

import secrets
import threading
from collections import deque
from dataclasses import dataclass, field

from graphmem.core.model import WriterTask
from graphmem.errors import WriterFailed, WriterUnavailable

# Seconds until somebody has to fetch what is to be written; the job waits for the next time then.
_UNFETCHED = 20.0
_ENDS = "the server ends"


@dataclass(slots=True)
class _Asked:
    """What is to be written. told: set when there is a text, or a reason why there is none."""

    prompt: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    text: str = ""
    error: str = ""
    fetched: threading.Event = field(default_factory=threading.Event)
    told: threading.Event = field(default_factory=threading.Event)


class HostWriter:
    """A writer, called in one thread, whose replies another one brings. patience: seconds for a reply."""

    def __init__(self, patience: float, unfetched: float = _UNFETCHED) -> None:
        self._patience = patience
        self._unfetched = unfetched
        self._lock = threading.Lock()
        self._waiting: deque[_Asked] = deque()
        self._fetched: dict[str, _Asked] = {}
        self._closed = False

    def __call__(self, task: WriterTask, /) -> str:
        """Return what the model wrote.

        Raises WriterUnavailable where no host fetches it or its model fails, WriterFailed where that takes too long.
        """
        asked = _Asked(task.prompt)
        with self._lock:
            if self._closed:
                raise WriterUnavailable(_ENDS)
            self._waiting.append(asked)
        try:
            if not asked.fetched.wait(self._unfetched):
                raise WriterUnavailable("no host fetched what is to be written")
            if not asked.told.wait(self._patience):
                raise WriterFailed(f"the host's model gave no answer within {self._patience:g} seconds")
        finally:
            with self._lock:
                if asked in self._waiting:
                    self._waiting.remove(asked)
                self._fetched.pop(asked.id, None)
        if asked.error:
            raise WriterUnavailable(f"the host's model gave no answer: {asked.error}")
        return asked.text

    def fetch(self) -> tuple[str, str]:
        """Return the id and the prompt of what is to be written, '' and '' where nothing is."""
        with self._lock:
            if not self._waiting:
                return "", ""
            asked = self._waiting.popleft()
            self._fetched[asked.id] = asked
        asked.fetched.set()
        return asked.id, asked.prompt

    def bring(self, name: str, text: str, error: str) -> bool:
        """Take a reply, or why there is none; tell whether it was still waited for."""
        with self._lock:
            asked = self._fetched.pop(name, None)
        if asked is None:
            return False
        asked.text, asked.error = text, error
        asked.told.set()
        return True

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._lock:
            self._closed = True
            left = [*self._waiting, *self._fetched.values()]
        for asked in left:
            asked.error = _ENDS
            asked.fetched.set()
            asked.told.set()
