"""Every exception that graphmem raises. Each also subclasses the builtin that a caller would catch."""


class GraphmemError(Exception):
    """Base of all errors raised on purpose by graphmem."""


class InvalidInput(GraphmemError, ValueError):
    """An argument cannot be used. The message names the argument, its value and the remedy; nothing was changed."""

    def __init__(self, argument: str, value: object, reason: str) -> None:
        super().__init__(argument, value, reason)
        self.argument = argument
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        try:
            shown = repr(self.value)
        except ValueError:  # Python writes no number of more than 4300 digits
            shown = "a number of too many digits"
        if len(shown) > 120:
            shown = shown[:117] + "..."
        return f"{self.argument} = {shown}: {self.reason}"


class SecretRefused(GraphmemError, ValueError):
    """An argument holds a secret. The message names the argument and what kind of secret, and no character of it."""

    def __init__(self, argument: str, kind: str) -> None:
        super().__init__(argument, kind)
        self.argument = argument
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.argument}: it holds a secret ({self.kind}); tell it without, and say where the secret is kept"


class NotFound(GraphmemError, LookupError):
    """What was named does not exist in this memory."""


class Conflict(GraphmemError):
    """The request contradicts the present state of the memory; nothing was changed."""


class WriterFailed(GraphmemError):
    """A model or a program that was asked failed, or its answer cannot be used; nothing of it is kept."""


class WriterUnavailable(WriterFailed):
    """Nobody answers: a program that cannot be run, an endpoint that cannot be reached or refuses. It may later."""


class BudgetSpent(WriterUnavailable):
    """The tokens of the day are used up: the same can be asked again tomorrow (UTC)."""


class StoreFailed(GraphmemError, OSError):
    """The file could not be opened, read or written (missing folder, permission, full disk, I/O error)."""


class StoreBusy(GraphmemError, TimeoutError):
    """Another process or thread held the write lock for longer than the busy timeout."""


class StoreCorrupt(GraphmemError):
    """The file is damaged, or is no SQLite database at all."""


class SchemaTooNew(GraphmemError):
    """The file was written by a newer graphmem. It was left untouched."""
