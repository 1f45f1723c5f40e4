"""Which memory is meant, with which settings and for which project, and opening it: what every surface begins with."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from graphmem.core.addresses import is_server, without_password
from graphmem.errors import StoreFailed
from graphmem.late import late
from graphmem.surfaces import places

if TYPE_CHECKING:
    import dataclasses
    import pathlib

    from graphmem import config as settings
    from graphmem import memory as memories
    from graphmem import projects
    from graphmem.config import Config, Given
    from graphmem.core.model import Writer
    from graphmem.memory import Memory
else:
    dataclasses = late("dataclasses")
    memories = late("graphmem.memory")
    pathlib = late("pathlib")
    projects = late("graphmem.projects")
    settings = late("graphmem.config")

_Result = TypeVar("_Result")

_DATABASE = "memory.db"
_SETTINGS = "config.toml"
_READING = (
    "these need only to read it: 'graphmem check FILE', 'graphmem dedupe --dry-run FILE', "
    "'graphmem verify-forgotten TEXT FILE', 'graphmem backup DEST'"
)


class Session:
    """Which memory is meant. database: its file, config_file: of settings, project: a folder; None for the usual ones.

    name: of the current session. patience: seconds that a busy memory is waited for at the most, None for as long as
    its settings say.
    """

    def __init__(
        self,
        database: str | None,
        config_file: str | None,
        project: str | None = None,
        name: str = "",
        *,
        patience: float | None = None,
    ) -> None:
        self.database = database
        self.config_file = config_file
        self._project = project
        self._name = name
        self._patience = patience

    def of(self, database: object) -> "Session":
        """Return the same options for another memory."""
        return Session(str(database), self.config_file, self._project, self._name, patience=self._patience)

    def within(self, project: str | None) -> "Session":
        """Return the same options for another current project, None for none."""
        return Session(self.database, self.config_file, project or "", self._name, patience=self._patience)

    @property
    def names_project(self) -> bool:
        """Whether a current project was named, or that there is none."""
        return self._project is not None

    def path(self) -> str:
        """Return the path of the memory: the one that was named, else one in the folder of the settings or the user."""
        if self.database is not None:
            return self.database
        if folder := self.config().data_dir:
            return os.path.join(os.path.expanduser(folder), _DATABASE)  # noqa: PTH118 (see current_folder)
        return f"{places.data_folder()}{os.sep}{_DATABASE}"

    @functools.cached_property
    def settings_file(self) -> str | None:
        """The file of settings that is read: the one that was named, else that of the user, where there is one."""
        if self.config_file is not None:
            return self.config_file
        file = default_settings_file()
        return file if os.path.exists(file) else None

    @functools.cached_property
    def given(self) -> "dict[str, Given]":
        """What the file of settings and the environment set, and which of them."""
        return settings.read_settings(self.settings_file)

    def config(self) -> "Config":
        """Return the settings: defaults, file, environment."""
        given = {name: given.value for name, given in self.given.items()}
        if self._patience is not None:
            given["busy_timeout"] = min(self._patience, given.get("busy_timeout", self._patience))
        return settings.Config(**given)

    def require_writing(self) -> None:
        """Raise Conflict where the settings say that nothing is to be written."""
        settings.require_writing(self.config(), without_password(self.path()))

    def project(self) -> str | None:
        """Return the folder of the current project: the one that was named, else the working tree it is called in.

        Outside of any it is none: a folder such as Downloads is no project. Nor is a home that is kept in git.
        """
        if self._project is not None:
            return self._project or None
        tree = projects.working_tree(current_folder())
        return None if tree is None or tree == os.path.realpath(os.path.expanduser("~")) else tree

    def exists(self) -> bool:
        """Tell whether there is a memory; of one on a server only opening it can tell."""
        return is_server(self.path()) or os.path.exists(os.path.expanduser(self.path()))

    def run(self, verb: "Callable[[Memory], _Result]") -> "_Result":
        """Run a verb that may make the memory, and return what it does. What is refused makes no file."""
        if not self.exists():
            with memories.Memory.open(":memory:", config=dataclasses.replace(self.config(), read_only=False)) as trial:
                verb(trial)
        with self.open(create=True) as memory:
            return verb(memory)

    @contextlib.contextmanager
    def rehearsing(self) -> "Iterator[Memory]":
        """Open the memory for a verb that changes nothing; where there is none yet, an empty one."""
        if self.exists():
            with self.open(create=False) as memory:
                yield memory
        else:
            with memories.Memory.open(":memory:", config=dataclasses.replace(self.config(), read_only=False)) as trial:
                yield trial

    @contextlib.contextmanager
    def open(self, *, create: bool, writer: "Writer | None" = None) -> "Iterator[Memory]":
        """Open the memory. A file that was named and is missing is made by commands that write, and by no other.

        writer: None for that of the settings.

        The refusal of one that cannot be written names the commands that need no more than to read it.
        """
        config = self.config()
        try:
            with memories.Memory.open(
                self.ready_path(),
                config=config,
                create=create or self.database is None,
                project=self.project(),
                session=self._name,
                writer=writer,
            ) as memory:
                yield memory
        except StoreFailed as error:
            if not self.is_unwritable():
                raise
            raise StoreFailed(f"{error}; {_READING}") from error

    def is_unwritable(self) -> bool:
        """Tell whether the memory can be read, and it or its folder cannot be written."""
        if is_server(self.path()):
            return False
        file = pathlib.Path(self.path()).expanduser()
        return os.access(file, os.R_OK) and not all(os.access(each, os.W_OK) for each in (file, file.resolve().parent))

    def ready_path(self) -> str:
        """Return the path of the memory; the folder in the user's data folder is made."""
        path = self.path()
        if self.database is None and not self.config().read_only:
            folder = os.path.dirname(path)  # noqa: PTH120 (see current_folder)
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
            except OSError as error:
                raise StoreFailed(f"{folder} cannot be made: {error.strerror}; name a file with --db") from error
        return path


def default_settings_file() -> str:
    """Return the path of the user's own file of settings, whether or not there is one."""
    return f"{places.settings_folder()}{os.sep}{_SETTINGS}"


def current_folder() -> str:
    """Return the folder in which the command was called, '' where it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 (pathlib takes longer to load than a command may take)
    except OSError:
        return ""
