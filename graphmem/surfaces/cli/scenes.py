"""Commands about scenes: enter, match, scenes, evidence, tag."""

from typing import Any

import click

from graphmem.surfaces.cli.group import (
    Session,
    dry_run_option,
    json_option,
    situation_of,
    situation_options,
)
from graphmem.surfaces.output import print_table, printable, to_json


@click.command("enter", short_help="Enter the scene of a turn.")
@situation_options
@click.option("--declare", "declared", multiple=True, metavar="KEY", help="A scene key to declare; may be repeated.")
@json_option
@click.pass_obj
def enter_command(session: Session, /, declared: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Enter the scene of a turn. It grows at the second turn of its kind.

    \b
    Example:
      graphmem enter --chan qq --peer boss --topic 排班 --declare chan:qq
    """
    from graphmem.core.keys import key_list
    from graphmem.core.model import Visit

    situation = situation_of(options, session.config())
    key_list(declared, "--declare")  # a key that is refused makes no file
    visit = Visit()
    if situation or declared:
        with session.open(create=True) as memory:
            visit = memory.enter_scene(situation, declared=declared or situation.derived_key)
    if as_json:
        click.echo(to_json(visit))
        return
    if not situation:
        click.echo("no scene: nothing is known of this turn")
    elif visit.created:
        click.echo(f"grew     {printable(visit.key)}")
    elif visit.key:
        click.echo(f"joined   {printable(visit.key)}  (similarity {visit.similarity:.3f}, strength {visit.strength})")
    else:
        click.echo("no scene yet: it grows when such a turn comes again")
    for name, keys in (("read", visit.keys), ("write to", visit.write_keys)):
        if keys:
            click.echo(f"{name:8} {printable(', '.join(keys))}")


@click.command("match", short_help="Show which scenes answer a situation.")
@situation_options
@json_option
@click.pass_obj
def match_command(session: Session, /, as_json: bool, **options: Any) -> None:
    """Show which scenes answer a situation, by which features and how strongly. Writes nothing.

    \b
    Example:
      graphmem match --chan qq --peer boss --topic 排班
    """
    situation = situation_of(options, session.config())
    with session.open(create=False) as memory:
        matches = memory.match_scenes(situation)
    if as_json:
        click.echo(to_json(matches))
        return
    rows = [
        (
            match.key,
            match.score,
            match.strength,
            "join" if match.joins else "recall",
            match.ground,
            ", ".join(f"{one.feature} {one.here:.2g}/{one.there:.2g}" for one in match.shared),
        )
        for match in matches
    ]
    columns = ["scene", "score#", "strength#", "would", "by", "shared features (here/there)"]
    print_table(columns, rows, empty="no scene answers this situation")


@click.command("scenes", short_help="List scenes at and below a key.")
@click.argument("prefix", default="")
@click.option("--origin", type=click.Choice(["declared", "emergent"]), help="Only scenes of this origin.")
@json_option
@click.pass_obj
def scenes_command(session: Session, /, prefix: str, origin: str | None, as_json: bool) -> None:
    """List scenes at and below PREFIX, those that hold most first; all of them without PREFIX.

    \b
    Example:
      graphmem scenes chan:qq
    """
    with session.open(create=False) as memory:
        found = memory.scenes(prefix, origin=origin)
    if as_json:
        click.echo(to_json(found))
        return
    rows = [
        (scene.key, scene.origin, scene.strength, scene.features, scene.refs, scene.updated_at[:16]) for scene in found
    ]
    columns = ["scene", "origin", "strength#", "features#", "refs#", "last visit (UTC)"]
    print_table(columns, rows, empty=f"no scenes{' here' if prefix or origin else ''}")


@click.command("evidence", short_help="List situations without a scene yet.")
@json_option
@click.pass_obj
def evidence_command(session: Session, /, as_json: bool) -> None:
    """List situations that were met and have no scene yet.

    \b
    Example:
      graphmem evidence
    """
    with session.open(create=False) as memory:
        buckets = memory.evidence()
    if as_json:
        click.echo(to_json(buckets))
        return
    rows = [(one.label, one.count, one.updated_at[:16]) for one in buckets]
    print_table(["label", "visits#", "last (UTC)"], rows, empty="no situation waits for its scene")


@click.command("tag", short_help="Attach known facts to a scene.")
@click.argument("key")
@click.option("--relation", "relations", type=click.IntRange(min=1), multiple=True, help="The id of a fact.")
@click.option("--glob", help="Facts with an end whose name matches: * ? [...], case-sensitive.")
@dry_run_option
@json_option
@click.pass_obj
def tag_command(
    session: Session, /, key: str, relations: tuple[int, ...], glob: str | None, dry_run: bool, as_json: bool
) -> None:
    """Attach known facts to the scene KEY.

    \b
    Example:
      graphmem tag chan:qq --glob '*QQ*' --dry-run
    """
    if bool(relations) == (glob is not None):
        raise click.UsageError("say which facts: --relation ID, or --glob PATTERN")
    with session.open(create=False) as memory:
        report = memory.tag_scene(key, relations, glob=glob, dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return
    done = "would attach" if dry_run else "attached"
    click.echo(f"{done} {len(report.attached)} facts to {printable(report.key)}; {len(report.known)} were there")
    if report.unknown:
        click.echo(f"unknown: {', '.join(map(str, report.unknown))}", err=True)
