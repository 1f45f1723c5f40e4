"""Commands about entities that may be one: review, merge, keep-apart, apart, settle."""

import os
import shlex
from typing import TYPE_CHECKING

import click

from graphmem.errors import InvalidInput
from graphmem.surfaces.cli.group import WholeNumber, dry_run_option, json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, none_of, print_operation, print_remarks, print_table, printable, to_json

if TYPE_CHECKING:
    from graphmem.core.model import EntityMergeReport, EntityPair, EntityReview

_KEY_VARIABLE = "GRAPHMEM_ARBITER_KEY"
# How a person gave what an arbiter is made of.
_TYPED = {
    "argv": "--command",
    "base_url": "--endpoint",
    "model": "--model",
    "timeout": "--timeout",
    "key": _KEY_VARIABLE,
}


@click.group("entities")
def entities_command() -> None:
    """Find entities that may be one, merge them or keep them apart. Each command takes --json.

    \b
    Example:
      graphmem entities review
      graphmem entities keep-apart 小雨 小雨的袜子
    """


@entities_command.command("review", short_help="List pairs that may be one.")
@click.option("--limit", type=WholeNumber(0), default=20, help="How many at the most.  [default: 20]")
@json_option
@click.pass_obj
def review_entities_command(session: Session, /, limit: int, as_json: bool) -> None:
    """List pairs of entities that may be one, best first, with what was said of each.

    'by' tells who may decide a pair: where digits, a version or a suffix differ, only a person.

    \b
    Example:
      graphmem entities review --limit 5
    """
    with session.open(create=False) as memory:
        report = memory.review_entities(limit=limit)
    if as_json:
        click.echo(to_json(report))
        return
    rows = [
        (pair.score, *_told(pair), ", ".join(pair.shared), "anybody" if pair.machine else "a person")
        for pair in report.pairs
    ]
    columns = ["score#", "entity", "times#", "and", "times#", "said of them last~", "both know", "by"]
    print_table(columns, rows, empty=none_of(limit, _nothing_of(report)))
    if report.more:
        click.echo("there are more: --limit shows them", err=True)
    print_remarks(report.remarks)


def _nothing_of(report: "EntityReview") -> str:
    entities = counted(report.entities, "entity", "entities")
    if not report.apart:
        return f"nothing to review: {entities}, no two of them alike"
    apart = "1 pair is" if report.apart == 1 else f"{report.apart} pairs are"
    return f"nothing to review: {entities}; {apart} kept apart, 'graphmem entities apart' lists them"


def _told(pair: "EntityPair") -> tuple[object, ...]:
    said = " | ".join(dict.fromkeys(one.sentence for one in (pair.a, pair.b) if one.sentence))
    return pair.a.name, pair.a.mentions, pair.b.name, pair.b.mentions, said


@entities_command.command("merge", short_help="Let an entity be one with another.")
@click.argument("source", metavar="A")
@click.argument("target", metavar="B")
@dry_run_option
@json_option
@click.pass_obj
def merge_entities_command(session: Session, /, source: str, target: str, dry_run: bool, as_json: bool) -> None:
    """Merge the entity A into B: what names A names B from now on, and A stays as another name of B.

    \b
    Example:
      graphmem entities merge panel日志 panel --dry-run
    """
    with session.open(create=False) as memory:
        report = memory.merge_entities(source, target, dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
    else:
        _print_merge(report)


def _print_merge(report: "EntityMergeReport") -> None:
    done = "merged" if report.applied else "would be merged"
    click.echo(printable(f"{report.source} {done} into {report.target}: {counted(report.mentions, 'mention')}"))
    click.echo(
        f"facts: {len(report.moved)} moved, {len(report.folded)} that both had folded, {len(report.loops)} between the "
        f"two deleted; places in scenes: {report.refs_moved} moved, {report.refs_folded} that both had"
    )
    print_operation(report.operation)


@entities_command.command("keep-apart", short_help="Say that two entities are not one.")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--rounds", type=WholeNumber(1), help="For how many passes of upkeep.  [default: for good]")
@click.option("--off", is_flag=True, help="Take it back: they may be one.")
@json_option
@click.pass_obj
def keep_apart_command(session: Session, /, a: str, b: str, rounds: int | None, off: bool, as_json: bool) -> None:
    """Say that A and B are not one: no review offers them, no merge joins them.

    \b
    Example:
      graphmem entities keep-apart 小雨 小雨的袜子 --rounds 10
    """
    if off and rounds is not None:
        raise click.UsageError("--rounds and --off exclude each other")
    with session.open(create=False) as memory:
        report = memory.keep_apart(a, b, rounds=rounds, apart=not off)
    if as_json:
        click.echo(to_json(report))
        return
    how = (
        "no longer kept apart"
        if off
        else "kept apart"
        if rounds is None
        else f"kept apart for {counted(rounds, 'round')}"
    )
    already = "" if report.operation else " already"
    click.echo(printable(f"{report.a} and {report.b} are {how}{already}"))
    print_operation(report.operation)


@entities_command.command("apart", short_help="List pairs that are kept apart.")
@json_option
@click.pass_obj
def apart_entities_command(session: Session, /, as_json: bool) -> None:
    """List the pairs that are kept apart, since when and for how many passes of upkeep yet.

    \b
    Example:
      graphmem entities apart
    """
    with session.open(create=False) as memory:
        pairs = memory.kept_apart()
    if as_json:
        click.echo(to_json(pairs))
        return
    rows = [(pair.a, pair.b, pair.since[:19], "for good" if pair.rounds is None else pair.rounds) for pair in pairs]
    print_table(["entity", "and", "since (UTC)", "rounds"], rows, empty="no two entities are kept apart")


@entities_command.command("settle", short_help="Let a program or a model decide pairs.")
@click.option("--command", metavar="COMMAND", help="A program: reads a pair as JSON, prints merge, apart or leave.")
@click.option("--endpoint", metavar="URL", help="An OpenAI-compatible endpoint, such as http://localhost:11434/v1.")
@click.option("--model", help="The model to ask there.")
@click.option("--timeout", type=float, default=60.0, help="Seconds to wait for each answer.  [default: 60]")
@click.option("--limit", type=WholeNumber(0), default=5, help="How many pairs at the most.  [default: 5]")
@json_option
@click.pass_obj
def settle_entities_command(
    session: Session,
    /,
    command: str | None,
    endpoint: str | None,
    model: str | None,
    timeout: float,
    limit: int,
    as_json: bool,
) -> None:
    """Ask a program or a model about the best pairs that a machine may decide, and do what it says.

    It is told names and sentences of the memory. The key of an endpoint is read from GRAPHMEM_ARBITER_KEY. A program
    is read up to 16 KiB, and killed when it prints more or takes longer.

    \b
    Example:
      graphmem entities settle --command "python3 arbiter.py"
    """
    from graphmem.arbiters import command_arbiter, endpoint_arbiter

    try:
        if command is not None and endpoint is None and model is None:
            arbiter = command_arbiter(_words(command), timeout=timeout)
        elif command is None and endpoint is not None and model is not None:
            arbiter = endpoint_arbiter(endpoint, model, key=os.environ.get(_KEY_VARIABLE), timeout=timeout)
        else:
            raise click.UsageError("give --command, or --endpoint and --model")
    except InvalidInput as error:
        raise InvalidInput(_TYPED.get(error.argument, error.argument), error.value, error.reason) from None
    with session.open(create=False) as memory:
        report = memory.settle_entities(arbiter, limit=limit)
    if as_json:
        click.echo(to_json(report))
        return
    rows = [(pair.a, pair.b, pair.outcome, pair.operation or "") for pair in report.pairs]
    print_table(["entity", "and", "outcome", "operation#"], rows, empty=none_of(limit, "nothing to settle"))


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidInput("--command", command, f"cannot be read: {error}") from None
    if not words:
        raise InvalidInput("--command", command, "give a program, with its arguments")
    return words
