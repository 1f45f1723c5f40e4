"""Commands about the graph: neighbours, path, graph."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphmem.core.choices import PICTURE_FORMS
from graphmem.surfaces.cli.group import FilePath, WholeNumber, at_option, json_option, scope_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, printable, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmem.core.model import FactPath, Neighbourhood, RecalledRelation


@click.command("neighbours")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--depth", type=WholeNumber(0), default=2, help="How many facts away at the most.  [default: 2]")
@click.option(
    "--sort",
    type=click.Choice(["relevance", "recent", "time", "newest"], case_sensitive=False),
    default="relevance",
    help="The best first, or the latest (recent, time and newest are one).  [default: relevance]",
)
@at_option
@scope_option
@click.option("--limit", type=WholeNumber(0), default=20, help="Entities, and facts, at the most.  [default: 20]")
@json_option
@click.pass_obj
def neighbours_command(
    session: Session,
    /,
    names: tuple[str, ...],
    depth: int,
    sort: str,
    at: str | None,
    scopes: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> None:
    """Show the facts around what NAME finds: a name, a part of one, or a question; several NAMEs are several words.

    \b
    Example:
      graphmem neighbours 老大 --depth 1
      graphmem neighbours metrics服务的端口是多少
    """
    with session.open(create=False) as memory:
        found = memory.neighbours(
            names[0] if len(names) == 1 else names, depth=depth, sort=sort, at=at, limit=limit, scopes=scopes or None
        )
    if as_json:
        click.echo(to_json(found))
    elif found:
        for line in _tree(found):
            click.echo(printable(line))
    else:
        click.echo(printable(f"nothing is known of {', '.join(found.keywords)}"))


def _tree(found: "Neighbourhood") -> "Iterator[str]":
    """Yield a line for each entity that was found by name, and below it one for each fact that leads on from there."""
    hops = {entity.name: entity.hops for entity in found.entities}
    facts: dict[str, list[RecalledRelation]] = {}
    for fact in found.relations:
        near = min((fact.subject, fact.object), key=lambda name: hops.get(name, len(hops)))
        facts.setdefault(near, []).append(fact)

    def below(name: str, depth: int) -> "Iterator[str]":
        for fact in facts.pop(name, ()):
            other = fact.object if fact.subject == name else fact.subject
            way = f"- {fact.relation} -> {other}" if fact.subject == name else f"<- {fact.relation} - {other}"
            yield f"{'  ' * depth}{way}{_time_of(fact)}"
            yield from below(other, depth + 1)

    for entity in found.entities:
        if not entity.hops:
            yield f"{entity.name} ({entity.tier})"
        yield from below(entity.name, 1 + entity.hops)


def _time_of(fact: "RecalledRelation") -> str:
    if fact.valid_from is None and fact.valid_to is None:
        return ""
    return f"  [{(fact.valid_from or '')[:16]} .. {(fact.valid_to or '')[:16]}]"


@click.command("path")
@click.argument("start", metavar="A")
@click.argument("end", metavar="B")
@at_option
@scope_option
@json_option
@click.pass_obj
def path_command(
    session: Session, /, start: str, end: str, at: str | None, scopes: tuple[str, ...], as_json: bool
) -> None:
    """Show the shortest way of facts from A to B, each followed in either direction.

    \b
    Example:
      graphmem path 老大 小团
    """
    with session.open(create=False) as memory:
        found = memory.shortest_path(start, end, at=at, scopes=scopes or None)
    if as_json:
        click.echo(to_json(found))
    else:
        _print_path(found)


def _print_path(found: "FactPath") -> None:
    if not found.connected:
        click.echo(printable(f"no facts connect {found.start} and {found.end}"))
        return
    click.echo(printable(f"{found.start} to {found.end}: {counted(len(found.steps), 'fact')}"))
    for fact in found.steps:
        click.echo(printable(f"  {fact.subject} - {fact.relation} -> {fact.object}{_time_of(fact)}"))


@click.command("graph")
@click.option("--scene", metavar="KEY", help="Facts of this scene and of those below it.")
@click.option("--entity", metavar="NAME", help="Facts around this name.")
@click.option("--depth", type=WholeNumber(0), default=1, help="How far around the name.  [default: 1]")
@at_option
@scope_option
@click.option(
    "--format",
    "form",
    type=click.Choice(PICTURE_FORMS),
    help="How to write it.  [default: mermaid]",
)
@click.option("--output", type=FilePath(path_type=Path), help="Write into this file.  [default: standard output]")
@json_option
@click.pass_obj
def graph_command(
    session: Session,
    /,
    scene: str | None,
    entity: str | None,
    depth: int,
    at: str | None,
    scopes: tuple[str, ...],
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Draw facts as a graph: all of them, those of a scene, or those around a name.

    \b
    Example:
      graphmem graph --scene chan:qq --format dot
      graphmem graph --entity 老大 --format graphml --output boss.graphml
    """
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"give --json or --format {form}, not both")
    form = "json" if as_json else form or "mermaid"
    with session.open(create=False) as memory:
        if output is not None:
            memory.export_to(
                form, output, scene=scene, entity=entity, depth=depth, at=at, scopes=scopes or None, force=True
            )
            return
        text = memory.draw(form, scene=scene, entity=entity, depth=depth, at=at, scopes=scopes or None)
    for line in text.split("\n"):
        click.echo(printable(line))
