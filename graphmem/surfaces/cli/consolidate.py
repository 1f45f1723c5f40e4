"""Commands that work on what is remembered: consolidate, distill."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphmem.surfaces.cli.group import dry_run_option, json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_operation, print_remarks, print_table, printable, to_json

if TYPE_CHECKING:
    from graphmem.core.model import Conclusion, ConsolidationReport

_Command = TypeVar("_Command", bound=Callable[..., Any])

_NOT_DONE = ("failed", "waiting", "stopped", "suppressed")


def _options(command: _Command) -> _Command:
    for option in (
        json_option,
        dry_run_option,
        click.option("--force", is_flag=True, help="Also when it is not due, or failed three times in a row."),
        click.option(
            "--scope",
            help="Whose: user, project, session or the key of a scope.  [default: the current project, else user]",
        ),
    ):
        command = option(command)
    return command


@click.command("consolidate")
@_options
@click.option("--allow-shrink", is_flag=True, help="Let it supersede a greater share of the notes than shrink_limit.")
@click.pass_obj
def consolidate_command(session: Session, /, as_json: bool, **options: Any) -> int:
    """Draw what stays true from notes and checkpoints. What it replaces is superseded, nothing is deleted.

    The writer of the settings does it, and is asked for a dry run too; without one, rules work on repeats and likeness
    alone. It is due every dream_interval_days, counted from the last success. `graphmem undo` reverses it.

    \b
    Example:
      graphmem consolidate --dry-run
    """
    with session.open(create=False) as memory:
        return _print(memory.consolidate(**options), memory.config.dream_interval_days, as_json=as_json)


@click.command("distill")
@_options
@click.pass_obj
def distill_command(session: Session, /, as_json: bool, **options: Any) -> int:
    """Propose skills, agents and commands for what was done again and again in the last distill_interval_days.

    Nothing of it is in force before 'graphmem approve'. It is due every so many days too, counted from the last
    success.

    \b
    Example:
      graphmem distill --force
    """
    with session.open(create=False) as memory:
        return _print(memory.distill(**options), memory.config.distill_interval_days, as_json=as_json)


def _print(report: "ConsolidationReport", interval: float, *, as_json: bool) -> int:
    code = 1 if report.state in _NOT_DONE else 0
    if as_json:
        click.echo(to_json(report))
        return code
    if report.conclusions:
        columns = ["note#", "what", "kind", "title~", "in the place of", "sources", "why~"]
        print_table(columns, [_row(one) for one in report.conclusions], empty="")
    click.echo(printable(_told(report, interval)))
    print_operation(report.operation)
    print_remarks(report.remarks)
    return code


def _row(one: "Conclusion") -> tuple[object, ...]:
    ids = (", ".join(map(str, each)) for each in (one.supersedes, one.sources))
    return "" if one.note_id is None else one.note_id, one.outcome, one.kind, one.title, *ids, one.reason


def _told(report: "ConsolidationReport", interval: float) -> str:
    done = "consolidated" if report.kind == "consolidate" else "distilled"
    if report.state in ("revised", "appended", "unchanged"):
        counts = [
            f"{number} {outcome}"
            for outcome in ("written", "proposed", "merged", "confirmed")
            if (number := sum(one.outcome == outcome for one in report.conclusions))
        ]
        superseded = [f"{counted(len(report.superseded), 'note')} superseded"] if report.superseded else []
        numbers = ", ".join((*counts, *superseded)) or "nothing to change"
        would = done if report.applied else f"would be {done}"
        by = "" if report.by == "writer" else " by rules, without a model"
        asks = ": 'graphmem approve' lets a proposal come into force" if "proposed" in numbers else ""
        return f"{would}{by}: {numbers}{asks}"
    if report.state == "early":
        ago = int(interval - report.days_left)
        when = f"{counted(ago, 'day')} ago" if ago > 0 else "less than a day ago"
        return f"{done} {when}; due in about {counted(report.days_left, 'day')}; --force does it now"
    return {
        "nothing": "there is nothing to read in this scope",
        "busy": "another process is at work on it",
        "suppressed": "it failed three times in a row; --force tries again",
        "stopped": f"{report.error}; --allow-shrink lets it go on",
        "failed": f"failed: {report.error}",
        "waiting": f"it waits, since {report.error}",
    }[report.state]
