"""Commands about the prompt: brief, turn."""

import sys
from typing import TYPE_CHECKING, Any

import click

from graphmem.late import late
from graphmem.surfaces.cli.group import (
    WholeNumber,
    json_option,
    read_input,
    scene_option,
    scope_option,
    situation_of,
    situation_options,
)
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, printable, to_json

if TYPE_CHECKING:
    from graphmem.core.events import Event
    from graphmem.core.model import Brief
    from graphmem.surfaces import verbs
else:
    verbs = late("graphmem.surfaces.verbs")

budget_option = click.option(
    "--budget", type=WholeNumber(0), default=2000, help="Its length in characters.  [default: 2000]"
)


@click.command("brief")
@click.argument("words", nargs=-1, metavar="[QUERY]")
@scene_option
@situation_options
@scope_option
@budget_option
@json_option
@click.pass_obj
def brief_command(
    session: Session,
    /,
    words: tuple[str, ...],
    scenes: tuple[str, ...],
    scopes: tuple[str, ...],
    budget: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what belongs into a prompt: the rules of the situation, what QUERY finds, what else is known.

    Only the use of its notes is counted. Without --scene the keys are read that a turn of this situation declares.

    \b
    Example:
      graphmem brief --chan qq --peer laoda 回复格式 --budget 500
    """
    situation = situation_of(options, session.config())
    with session.open(create=False) as memory:
        declared = scenes or situation.declared_keys
        brief = memory.brief(situation, query=" ".join(words), declared=declared, budget=budget, scopes=scopes or None)
    if as_json:
        click.echo(to_json(brief))
    else:
        _print_brief(brief, budget)


@click.command("turn")
@click.argument("event", required=False)
@scope_option
@budget_option
@json_option
@click.pass_obj
def turn_command(session: Session, /, event: str | None, scopes: tuple[str, ...], budget: int, as_json: bool) -> int:
    """Run one turn: enter the scene of EVENT, remember its facts, and show what belongs into the prompt.

    EVENT is a JSON object with some of at, source, payload, text, tool, session and facts, a list of objects with
    subject, relation and object; without it, it is read from standard input. Its payload may hold scene, a key or a
    list of keys, and the policies no_memory, recall_policy and scene_policy.

    \b
    Example:
      graphmem turn '{"source": "qq", "payload": {"user_id": "laoda"}, "text": "早上好"}'
    """
    told = _event(event)
    report = session.run(lambda memory: verbs.run_turn(memory, told, scopes=scopes or None, budget=budget))
    if as_json:
        click.echo(to_json(report))
    else:
        _print_brief(report.brief, budget)
        for refusal in report.commit.refused if report.commit else ():
            click.echo(printable(f"refused: {refusal.reason}"), err=True)
    return 0 if report.commit is None or report.commit.written else 1


def _print_brief(brief: "Brief", budget: int) -> None:
    if brief.text:
        click.echo(brief.text)
    elif brief.left_out:
        click.echo(f"--budget {budget} has no room: {counted(len(brief.left_out), 'item')} left out", err=True)


def _event(text: str | None) -> "Event":
    """Return the event that was given."""
    from graphmem.core.events import event_of, parse_json

    place = "standard input" if text is None else "event"
    if text is None:
        if sys.stdin is None or sys.stdin.isatty():  # closed, or nobody pipes anything in
            raise click.UsageError("give EVENT, or pipe it into standard input")
        text = read_input(place)
    return event_of(parse_json(text, place), place)
