"""The memory that a server works on: opened when it is first needed, and anew for another project."""

import contextlib
import os
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from graphmem import log, projects
from graphmem.core.model import Writer
from graphmem.core.situations import Situation
from graphmem.errors import GraphmemError
from graphmem.memory import Memory
from graphmem.surfaces.keeping import Keeping

_RULES = 1500  # characters of the brief in the instructions


class Desk:
    """Opens the memory for the current project, and keeps it open with those of the last ones.

    Any number of threads may ask for it.

    open_memory: opens it for the folder of a project, None for none, with a writer, None for its own. folder: of the
    project that the server was started in. is_fixed: the project was named, and no client changes it.
    """

    def __init__(
        self,
        open_memory: Callable[[str | None, Writer | None], AbstractContextManager[Memory]],
        folder: str | None = None,
        *,
        is_fixed: bool = False,
    ) -> None:
        self._open = open_memory
        self._folder = folder
        self.is_fixed = is_fixed
        self._is_moved = False
        self._keeping: Keeping[str | None] = Keeping(lambda folder: open_memory(folder, None))
        self._lock = threading.Lock()

    def using(self) -> AbstractContextManager[Memory]:
        """Give the memory, opened for the current project. Raises what opening it raises, and tries again then."""
        return self._keeping.using(self._folder)

    @contextlib.contextmanager
    def with_writer(self, writer: Writer | None) -> Iterator[Memory]:
        """Give the memory for one call, opened with a writer where one is given and the settings name none."""
        with self.using() as memory:
            if writer is None or memory.config.writer_command or memory.config.writer_url:
                yield memory
                return
        with self._open(self._folder, writer) as own:
            yield own

    def move(self, roots: Iterable[str]) -> None:
        """Make the first of some roots (URLs of files) that is a folder the current project."""
        for root in roots:
            folder = _folder_of(root)
            if folder is None:
                continue
            with self._lock:
                before, self._folder = self._folder, None if _is_home(folder) else folder
            try:
                with self.using():
                    pass
            except GraphmemError as error:
                log.warning("the root %s is no project: %s", folder, error)
                with self._lock:
                    self._folder = before
                continue
            self._is_moved = folder != before
            return

    def reminder(self) -> str:
        """Return what a model is told beside an answer, '' for nothing.

        That is what binds, once after the project changed, and what the user said and nobody saved, see
        `Memory.remind`.
        """
        try:
            with self.using() as memory:
                with self._lock:
                    is_moved, self._is_moved = self._is_moved, False
                rules = _rules_of(memory) if is_moved else ""
                wish = "" if memory.config.read_only else memory.remind(memory.session)
        except GraphmemError as error:  # the answer is there without
            log.warning("nothing is reminded of: %s", error)
            return ""
        return "\n\n".join(text for text in (rules, wish) if text)

    def rules(self) -> str:
        """Return what a model is told at the beginning of the current project: the brief of it, with what binds."""
        with self.using() as memory:
            return _rules_of(memory)

    def close(self) -> None:
        """Close what was opened."""
        self._keeping.close()


def _rules_of(memory: Memory) -> str:
    return memory.brief(Situation(), budget=_RULES).text


def _folder_of(root: str) -> str | None:
    """Return the folder that a root names, None where it is none."""
    parts = urllib.parse.urlsplit(root)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    folder = urllib.request.url2pathname(parts.path)
    return folder if projects.is_there(folder) else None


def _is_home(folder: str) -> bool:
    return os.path.realpath(folder) == os.path.realpath(os.path.expanduser("~"))
