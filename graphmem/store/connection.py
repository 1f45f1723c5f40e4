"""The connection to a SQLite file, as the transaction that all code above the store gets."""

import sqlite3
from typing import TYPE_CHECKING, Any

from graphmem.late import late

if TYPE_CHECKING:
    from graphmem.store.transaction import Engine, Words


class Connection(sqlite3.Connection):
    """A connection of sqlite3 that knows what is SQLite's own."""

    words: "Words" = late("graphmem.store.fts5")
    engine: "Engine" = late("graphmem.store.sqlite")
    indexed: dict[str, set[int]] | None = None


class NotingConnection(Connection):
    """A connection that notes what is indexed in its transaction, for who embeds it before the end."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.indexed = {}
