"""What commands print: tables for people, one JSON document for machines."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WIDTH_OF_A_PIPE = 160


def to_json(value: object) -> str:
    """Return a value as JSON; ASCII alone where the output is not UTF-8."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, default=_plain, ensure_ascii=not utf8, allow_nan=False, indent=2)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        properties = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        fields = [field.name for field in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in (*fields, *properties)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Print rows as a table; columns whose name ends in `#` hold numbers. Prints nothing but the title for no rows."""
    # rich takes 60 ms to import: only what prints a table pays it.
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(
        width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE, highlight=False, markup=False, emoji=False
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.removesuffix("#"), justify="right" if column.endswith("#") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console.print(table)


def _cell(value: object) -> Any:
    from rich.text import Text

    return Text(f"{value:.3g}" if isinstance(value, float) else printable(str(value)))


def printable(text: str) -> str:
    """Return a text in which control characters, which could drive the terminal, are shown as escapes.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode() for c in text)
