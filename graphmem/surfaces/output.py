"""What commands print: tables for people, one JSON document for machines."""

import contextlib
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from graphmem.late import late

if TYPE_CHECKING:
    import dataclasses
    import json

    from rich.console import JustifyMethod, RenderableType
else:
    dataclasses = late("dataclasses")
    json = late("json")

_WIDTH_OF_A_PIPE = 160
_UNBOUNDED = 1 << 30
_BIDI_CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def to_json(value: object, *, one_line: bool = False) -> str:
    """Return a value as JSON; ASCII alone where the output is not UTF-8."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, default=_plain, ensure_ascii=not utf8, allow_nan=False, indent=None if one_line else 2)


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


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        properties = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        fields = [field.name for field in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in (*fields, *properties)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far something has come; yield what is to be told, how much is done and how much of all."""
    with click.progressbar(length=0, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:

        def advance(done: int, whole: int) -> None:
            bar.length = whole
            bar.update(done - bar.pos)

        yield advance


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print rows as a table, or what is said when there are none.

    Columns whose name ends in `#` hold numbers; on a terminal, one that ends in `~` is cut to what is left of a line.
    """
    if not rows:
        click.echo(empty)
        return
    # rich takes 60 ms to import: only what prints a table pays it.
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cut = [column.endswith("~") and sys.stdout.isatty() for column in columns]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        justify: JustifyMethod = "right" if column.endswith("#") else "left"
        # rich takes room from columns that may wrap; so where one is cut, the others may not.
        keeps = any(cut) and not column.endswith("~")
        table.add_column(column.rstrip("#~"), justify=justify, overflow="fold", no_wrap=keeps)
    for row in rows:
        cells = zip(map(_cell, row), cut, strict=True)
        table.add_row(
            *(Text(text, no_wrap=True, overflow="ellipsis") if short else Text(text) for text, short in cells)
        )
    _print(table)


def print_operation(operation: int | None) -> None:
    """Print how an operation is reversed; nothing where there was none."""
    if operation is not None:
        click.echo(f"operation {operation}: 'graphmem undo {operation}' reverses it")


def print_tree(branches: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Print lines, each with the lines below it; on a terminal they are cut to its width."""
    from rich.text import Text
    from rich.tree import Tree

    def line(text: str) -> Text:
        return Text(printable(text), no_wrap=True, overflow="ellipsis")

    for head, below in branches:
        tree = Tree(line(head))
        for text in below:
            tree.add(line(text))
        _print(tree, width_of_a_pipe=_UNBOUNDED)


def _print(shown: "RenderableType", *, width_of_a_pipe: int = _WIDTH_OF_A_PIPE) -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else width_of_a_pipe
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(shown)
    click.echo("\n".join(line.rstrip() for line in capture.get().split("\n") if line.strip()))


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
