"""What commands print: tables for people, one JSON document for machines."""

import contextlib
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from graphmem.late import late
from graphmem.surfaces import wire

if TYPE_CHECKING:
    import shutil

    from graphmem.surfaces import tables
else:
    shutil = late("shutil")
    tables = late("graphmem.surfaces.tables")

_WIDTH_OF_A_PIPE = 160
_BIDI_CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def to_json(value: object, *, one_line: bool = False) -> str:
    """Return a value as JSON; ASCII alone where the output is not UTF-8."""
    return wire.to_json(value, ascii_only=not _is_utf8(), indent=None if one_line else 2)


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with what it counts.

    >>> counted(1, "fact"), counted(2, "fact"), counted(0, "entity", "entities")
    ('1 fact', '2 facts', '0 entities')
    """
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def none_of(limit: int | None, told: str) -> str:
    """Return what is said where no rows are: what is told of it, unless none were asked for.

    >>> none_of(5, "no scenes"), none_of(0, "no scenes")
    ('no scenes', '--limit 0 shows none')
    """
    return "--limit 0 shows none" if limit == 0 else told


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far something has come; yield what is to be told, how much is done and how much of all."""
    with click.progressbar(length=0, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:

        def advance(done: int, whole: int) -> None:
            bar.length = whole
            bar.update(done - bar.pos)

        yield advance


def print_remarks(remarks: Iterable[str]) -> None:
    """Print what a report says beside its numbers, on standard error."""
    for remark in remarks:
        click.echo(printable(f"note: {remark}"), err=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print rows as a table, or what is said when there are none.

    Columns whose name ends in `#` hold numbers; on a terminal, one that ends in `~` is cut to what is left of a line.
    """
    if not rows:
        click.echo(empty)
        return
    head, *lines = tables.table_lines(
        [column.rstrip("#~") for column in columns],
        [[_cell(value) for value in row] for row in rows],
        room=_room() or _WIDTH_OF_A_PIPE,
        right=[column.endswith("#") for column in columns],
        cuts=[column.endswith("~") and sys.stdout.isatty() for column in columns],
        rule="─" if _is_utf8() else "-",
        mark="…" if _is_utf8() else "...",
    )
    click.echo("\n".join([click.style(head, bold=True), *lines]))


def print_operation(operation: int | None) -> None:
    """Print how an operation is reversed; nothing where there was none."""
    if operation is not None:
        click.echo(f"operation {operation}: 'graphmem undo {operation}' reverses it")


def print_tree(branches: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Print lines, each with the lines below it; on a terminal they are cut to its width."""
    room = _room()
    guides = ("├── ", "└── ") if _is_utf8() else ("+-- ", "`-- ")
    for head, below in branches:
        for line in tables.tree_lines(printable(head), map(printable, below), guides):
            click.echo(tables.cut(line, room) if room else line)


def _room() -> int | None:
    """Return how many places a line of the terminal has, None where the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else printable(str(value))


def printable(text: str) -> str:
    """Return a text in which characters that could drive the terminal, or reverse the line, are shown as escapes.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(c.encode("unicode_escape", "surrogatepass").decode() if _drives(c) else c for c in text)


def _drives(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in _BIDI_CONTROLS
