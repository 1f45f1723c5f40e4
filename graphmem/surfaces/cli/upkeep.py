"""Commands that keep a memory in order: upkeep, reindex, dedupe, undo, operations, embed."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from graphmem.core.addresses import is_server
from graphmem.errors import Conflict, StoreBusy
from graphmem.surfaces.cli.group import FilePath, WholeNumber, dry_run_option, json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import (
    counted,
    none_of,
    print_operation,
    print_remarks,
    print_table,
    printable,
    progress_bar,
    to_json,
)

if TYPE_CHECKING:
    from graphmem.core.model import DedupeReport, UpkeepReport


@click.command("reindex")
@json_option
@click.pass_obj
def reindex_command(session: Session, /, as_json: bool) -> None:
    """Make the text index anew from what is stored, also where it is damaged.

    \b
    Example:
      graphmem reindex
    """
    with session.open(create=False) as memory, progress_bar("indexing") as progress:
        indexed = memory.reindex(progress=progress)
    click.echo(to_json({"indexed": indexed}) if as_json else f"{counted(indexed, 'text')} indexed")


@click.command("dedupe")
@click.argument("file", required=False, type=FilePath(path_type=Path))
@dry_run_option
@json_option
@click.pass_obj
def dedupe_command(session: Session, /, file: Path | None, dry_run: bool, as_json: bool) -> None:
    """Merge scenes whose keys are one key in canonical form.

    FILE, else the memory of --db. A dry run opens it for reading only and leaves every byte of the file and its folder
    as it is; it works on backup copies of memories and on files of the HomeAgent engine. `graphmem undo` reverses a
    merge.

    \b
    Example:
      graphmem dedupe --dry-run backup.db
    """
    from graphmem.memory import Memory

    if dry_run and not (file is None and is_server(session.path())):
        try:
            report = Memory.preview_dedupe(file or session.path(), copied=file is not None)
        except Conflict:
            if file is not None:
                raise
            # One's own memory, in use: there is no standing copy of it, but it can be asked.
            with session.open(create=False) as memory:
                report = memory.dedupe_scenes(dry_run=True)
    else:
        target = session if file is None else session.of(file)
        with target.open(create=False) as memory:
            report = memory.dedupe_scenes(dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return
    _print_dedupe(report)
    print_remarks(report.remarks)


def _print_dedupe(report: "DedupeReport") -> None:
    rows: list[tuple[object, ...]] = []
    for group in report.groups:
        rows += [
            (f"'{twin.key}'", twin.origin, twin.strength, twin.features, twin.refs, "", "") for twin in group.members
        ]
        sums = (group.origin, group.strength, group.features, group.refs, group.refs_moved, group.refs_folded)
        rows.append((f"-> '{group.key}'", *sums))
    if rows:
        columns = ["scene -> survivor", "origin", "strength#", "features#", "refs#", "refs moved#", "refs both had#"]
        print_table(columns, rows, empty="")
    would = "" if report.applied else "would be "
    for old, new in report.rewritten:
        click.echo(printable(f"{old} {would}rewritten as {new}"))
    if not report.groups and not report.rewritten:
        click.echo(f"nothing to do: {counted(report.scenes_before, 'scene')}, no twins among them")
        return
    became = "became" if report.applied else "would become"
    click.echo(
        f"{counted(len(report.groups), 'group')} {would}merged: "
        f"{counted(report.scenes_before, 'scene')} {became} {report.scenes_after}"
    )
    print_operation(report.operation)


@click.command("undo")
@click.argument("operation", type=WholeNumber(1))
@dry_run_option
@json_option
@click.pass_obj
def undo_command(session: Session, /, operation: int, dry_run: bool, as_json: bool) -> None:
    """Reverse the journaled OPERATION and keep what was written since.

    \b
    Example:
      graphmem undo 3 --dry-run
    """
    with session.open(create=False) as memory:
        report = memory.undo(operation, dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return
    done = "would undo" if dry_run else "undone"
    click.echo(
        f"{done} operation {report.operation} ({report.kind}): {counted(report.restored, 'row')} restored, "
        f"{report.changed} changed back, {report.removed} removed"
    )
    print_remarks(report.remarks)


@click.command("operations")
@click.option("--limit", type=WholeNumber(0), help="How many at the most.  [default: all]")
@json_option
@click.pass_obj
def operations_command(session: Session, /, limit: int | None, as_json: bool) -> None:
    """List what was changed and can be undone, the latest first, and when it was undone.

    \b
    Example:
      graphmem operations --limit 5
    """
    with session.open(create=False) as memory:
        found = memory.operations(limit=limit)
    if as_json:
        click.echo(to_json(found))
        return
    rows = [
        (
            one.id,
            one.kind,
            one.at[:19],
            ", ".join(one.about),
            ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in one.summary.items()),
            (one.undone_at or "")[:19],
        )
        for one in found
    ]
    empty = none_of(limit, "nothing was changed that could be undone")
    print_table(["id#", "operation", "at (UTC)", "of", "in numbers", "undone (UTC)"], rows, empty=empty)


class _Duration(click.ParamType[float]):
    """Seconds, written as 90s, 30m, 2h or 1d."""

    name = "duration"
    _UNITS = MappingProxyType({"s": 1, "m": 60, "h": 3600, "d": 86400})

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"([0-9]{1,5})([smhd])", str(value).strip())
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is no time: write 90s, 30m, 2h or 1d", param, ctx)
        return float(int(found[1]) * self._UNITS[found[2]])


@click.command("upkeep")
@click.option("--every", type=_Duration(), metavar="TIME", help="Go on, a pass each TIME: 90s, 30m, 2h, 1d.")
@click.option("--allow-shrink", is_flag=True, help="Let a step go on that would lose much of what there is.")
@dry_run_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; with --every one a line, each pass.")
@click.pass_obj
def upkeep_command(session: Session, /, every: float | None, allow_shrink: bool, dry_run: bool, as_json: bool) -> int:
    """Merge twins, let fade what is not told again, remove what nothing uses, tidy the memory and check it.

    Each step is short, and `graphmem undo` reverses what it did. A step that would lose more than a fifth of the facts,
    notes, refs or scenes stops before it begins; then the exit code is 1.

    \b
    Example:
      graphmem upkeep --dry-run
    """
    if every is not None and dry_run:
        raise click.UsageError("--every and --dry-run do not go together")
    while True:
        with session.open(create=False) as memory:
            try:
                report = memory.upkeep(dry_run=dry_run, allow_shrink=allow_shrink)
            except StoreBusy as error:
                if every is None:
                    raise
                click.echo(printable(f"graphmem: {error}"), err=True)
            else:
                if as_json:
                    click.echo(to_json(report, one_line=every is not None))
                else:
                    _print_upkeep(report)
                if every is None:
                    return 0 if report.ok else 1
        time.sleep(every)


def _print_upkeep(report: "UpkeepReport") -> None:
    rows = [
        (
            step.name,
            step.state,
            step.told,
            ", ".join(
                f"{kind} {count} -> {step.after[kind]}"
                for kind, count in step.before.items()
                if count != step.after[kind]
            ),
            _ranges(step.operations),
        )
        for step in report.steps
    ]
    print_table(["step", "state", "what", "rows", "operations"], rows, empty="")
    if any(step.name == "review entities" and step.state != "nothing" for step in report.steps):
        click.echo("'graphmem entities review' shows the pairs", err=True)
    if not report.ok:
        shown = "--dry-run shows them, " if report.applied else ""
        click.echo(f"stopped steps change nothing: {shown}--allow-shrink lets them go on", err=True)


def _ranges(numbers: Sequence[int]) -> str:
    """Write numbers that rise as ranges.

    >>> _ranges([2, 3, 4, 7])
    '2-4, 7'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


@click.command("embed")
@json_option
@click.pass_obj
def embed_command(session: Session, /, as_json: bool) -> None:
    """Make the vectors of texts that have none, such as those written before `semantic = true` was set.

    It needs that setting (or GRAPHMEM_SEMANTIC=true) and `pip install 'graphmem[semantic]'`. Broken off, it goes on
    where it was when run again.

    \b
    Example:
      graphmem embed
    """
    with session.open(create=False) as memory, progress_bar("embedding") as progress:
        embedded = memory.embed(progress=progress)
    click.echo(to_json({"embedded": embedded}) if as_json else f"{counted(embedded, 'text')} embedded")
