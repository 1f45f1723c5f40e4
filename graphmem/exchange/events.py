"""Read logs of events from files."""

import os
from pathlib import Path

from graphmem.core.events import Event, parse_events
from graphmem.errors import InvalidInput, StoreFailed
from graphmem.store.database import is_open_here


def read_events(path: str | os.PathLike[str]) -> list[Event]:
    """Return the events of a log file, see `parse_events`. Raises StoreFailed when the file cannot be read."""
    file = Path(path)
    if is_open_here(str(file)):  # reading it would drop SQLite's locks on it
        raise InvalidInput("log", str(file), "is a memory that is open in this process, not a log")
    try:
        text = file.read_text("utf-8-sig")
    except OSError as error:
        raise StoreFailed(f"{file} cannot be read: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise InvalidInput("file", str(file), f"is no UTF-8 text: {error.reason} at byte {error.start}") from error
    return parse_events(text, file.name)
