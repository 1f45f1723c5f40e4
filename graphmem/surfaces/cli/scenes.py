"""Commands about scenes: enter, match, scenes, scene, evidence, tag, untag, rename, drop."""

from typing import TYPE_CHECKING, Any

import click

from graphmem.core.choices import SCENE_ORDERS, SCENE_ORIGINS
from graphmem.late import late
from graphmem.surfaces.cli.group import (
    FilePath,
    WholeNumber,
    dry_run_option,
    json_option,
    situation_of,
    situation_options,
)
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, none_of, print_operation, print_remarks, print_table, printable, to_json

if TYPE_CHECKING:
    import dataclasses

    from graphmem.core.model import DropReport, ResetReport, SceneHealth
else:
    dataclasses = late("dataclasses")

_relations_option = click.option(
    "--relation", "relations", type=WholeNumber(1), multiple=True, help="The id of a fact."
)
_glob_option = click.option("--glob", help="Facts with an end whose name matches: * ? [...], case-sensitive.")


@click.command("enter")
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
    from graphmem.core.model import Visit

    situation = situation_of(options, session.config())
    visit = Visit()
    if situation or declared:
        visit = session.run(lambda memory: memory.enter_scene(situation, declared=declared or situation.derived_key))
    if as_json:
        click.echo(to_json(visit))
        return
    if not situation:
        click.echo("no scene: nothing is known of this turn")
    elif visit.created:
        click.echo(f"grew     {printable(visit.key)}")
    elif visit.key:
        click.echo(f"joined   {printable(visit.key)}  (similarity {visit.similarity:.3f}, strength {visit.strength})")
    elif situation.label():
        click.echo("no scene yet: it grows when such a turn comes again")
    else:
        click.echo("no scene: a part of the day makes none; give --chan, --peer, --tool or --topic too")
    for name, keys in (("read", visit.keys), ("write to", visit.write_keys)):
        if keys:
            click.echo(f"{name:8} {printable(', '.join(keys))}")


@click.command("match")
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


class _Prefix(click.Argument):
    """An argument that the usage of its group, and of the commands in it, tells elsewhere."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return []


class _Scenes(click.Group):
    """A command that takes a key, and has a sub-command; a word that is no sub-command is a key."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        word = next((word for word in args if not word.startswith("-")), "")
        if word in self.commands:
            place = args.index(word)
            args = ["", word, *args[:place], *args[place + 1 :]]  # '' for the key, and all options are its own
        else:
            ctx.allow_interspersed_args = True
        return super().parse_args(ctx, args)


@click.group(
    "scenes",
    cls=_Scenes,
    invoke_without_command=True,
    subcommand_metavar="[PREFIX | reset --emergent]",
)
@click.argument("prefix", default="", cls=_Prefix)
@click.option("--origin", type=click.Choice(SCENE_ORIGINS), help="Only scenes of this origin.")
@click.option("--contains", default="", metavar="TEXT", help="Only scenes with this in their key.")
@click.option(
    "--sort",
    type=click.Choice(SCENE_ORDERS),
    default="refs",
    help="What comes first: what holds most, is strongest, was visited last.  [default: refs]",
)
@click.option("--limit", type=WholeNumber(0), help="How many at the most.  [default: all]")
@click.option("--health", is_flag=True, help="Show instead how well all scenes do their work.")
@json_option
@click.pass_context
def scenes_command(
    ctx: click.Context, /, prefix: str, origin: str | None, health: bool, as_json: bool, **options: Any
) -> None:
    """List scenes at and below PREFIX; all of them without PREFIX.

    \b
    Example:
      graphmem scenes chan:qq
    """
    if ctx.invoked_subcommand is not None:
        return
    if health and (prefix or origin or options["contains"]):
        raise click.UsageError("--health is about all scenes: leave out PREFIX, --origin and --contains")
    with ctx.obj.open(create=False) as memory:
        if health:
            _print_health(memory.scene_health(), as_json=as_json)
            return
        found = memory.scenes(prefix, origin=origin, **options)
    if as_json:
        click.echo(to_json(found))
        return
    rows = [
        (scene.key, scene.origin, scene.strength, scene.features, scene.refs, scene.updated_at[:16]) for scene in found
    ]
    columns = ["scene", "origin", "strength#", "features#", "refs#", "last visit (UTC)"]
    wanted = prefix or origin or options["contains"]
    print_table(columns, rows, empty=none_of(options["limit"], f"no scenes{' here' if wanted else ''}"))


@click.command("scene")
@click.argument("key")
@json_option
@click.pass_obj
def scene_command(session: Session, /, key: str, as_json: bool) -> None:
    """Show one scene: its features, the other keys that lead to it, how strong it was by day as upkeep noted it.

    'graphmem recall --scene KEY --exact' shows what it holds.

    \b
    Example:
      graphmem scene auto:peer:laoda_chan:qq
    """
    with session.open(create=False) as memory:
        found = memory.scene(key)
    if as_json:
        click.echo(to_json(found))
        return
    scene = found.scene
    times = f"since {scene.created_at[:10]}, last visit {scene.updated_at[:16]} (UTC)"
    click.echo(
        printable(f"{scene.key}: {scene.origin}, strength {scene.strength}, {counted(scene.refs, 'ref')}, {times}")
    )
    if found.aliases:
        click.echo(printable(f"also {', '.join(found.aliases)}"))
    rows = [(each.feature, each.weight, each.share) for each in found.features]
    print_table(["feature", "greatest weight#", "at a visit#"], rows, empty="no features: it is found by its key alone")
    if found.strengths:
        click.echo(f"strength by day: {', '.join(f'{each.day} {each.strength}' for each in found.strengths)}")


def _print_health(health: "SceneHealth", *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(health))
        return
    told = dataclasses.asdict(health)
    kinds, featureless = told.pop("kinds"), told.pop("some_without_features")
    for name in ("oldest_visit", "newest_visit"):
        told[name] = (told[name] or "none")[:16]
    print_table(["scenes", "found#"], [(name.replace("_", " "), value) for name, value in told.items()], empty="")
    shares = [(kind or "none", keys, f"{keys / health.scenes:.0%}") for kind, keys in kinds]
    print_table(["first kind of the key", "keys#", "share#"], shares, empty="there are no keys yet")
    if featureless:
        click.echo(printable(f"without features: {', '.join(featureless)}"))


@scenes_command.command("reset", short_help="Let the scenes that grew grow anew.")
@click.option("--emergent", is_flag=True, help="Needed: says that it is about these alone.")
@click.option("--backup", type=FilePath(), metavar="PATH", help="Where the backup before it goes.")
@dry_run_option
@json_option
@click.pass_obj
def reset_scenes_command(session: Session, /, emergent: bool, backup: str | None, dry_run: bool, as_json: bool) -> None:
    """Remove all scenes that grew by themselves, so that they grow anew, and what waits for a scene.

    Declared scenes and facts stay. A backup is made before, beside the memory or at PATH; `graphmem undo` reverses it.
    Of a memory on a server no backup is made: `graphmem copy` or pg_dump makes one before.

    \b
    Example:
      graphmem scenes reset --emergent --dry-run
    """
    if not emergent:
        raise click.UsageError("say --emergent: declared scenes are never reset, `graphmem drop` removes one")
    with session.open(create=False) as memory:
        report = memory.reset_scenes(dry_run=dry_run, backup=backup)
    if as_json:
        click.echo(to_json(report))
        return
    would = "" if report.applied else "would be "
    click.echo(
        f"{counted(report.scenes, 'emergent scene')} {would}removed, with {_parts(report)}, and "
        f"{counted(report.labels, 'label')} without a scene yet"
    )
    _print_unplaced(report.unplaced, would)
    if report.backup:
        click.echo(f"backup: {printable(report.backup)}")
    print_operation(report.operation)
    print_remarks(report.remarks)


@click.command("evidence")
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


@click.command("tag")
@click.argument("key")
@_relations_option
@_glob_option
@dry_run_option
@json_option
@click.pass_obj
def tag_command(
    session: Session, /, key: str, relations: tuple[int, ...], glob: str | None, dry_run: bool, as_json: bool
) -> None:
    """Attach known facts to the scene KEY, which is made when there is none. Facts that it has begin to fade anew.

    \b
    Example:
      graphmem tag chan:qq --glob '*QQ*' --dry-run
    """
    _require_choice(relations, glob)
    with session.open(create=False) as memory:
        report = memory.tag_scene(key, relations, glob=glob, dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return
    done = "would attach" if dry_run else "attached"
    scene = f"{'the new scene ' if report.created else ''}{printable(report.key)}"
    facts = counted(len(report.attached), "fact")
    anew = ", which begin to fade anew" if report.known and report.operation is not None else ""
    click.echo(f"{done} {facts} to {scene}; there already: {len(report.known)}{anew}")
    if report.unknown:
        click.echo(f"unknown: {', '.join(map(str, report.unknown))}", err=True)
    print_operation(report.operation)


@click.command("untag")
@click.argument("key")
@_relations_option
@_glob_option
@dry_run_option
@json_option
@click.pass_obj
def untag_command(
    session: Session, /, key: str, relations: tuple[int, ...], glob: str | None, dry_run: bool, as_json: bool
) -> None:
    """Take facts out of the scene KEY, with the names that no other fact there needs. They stay in the memory.

    \b
    Example:
      graphmem untag chan:qq --glob '*QQ*' --dry-run
    """
    _require_choice(relations, glob)
    with session.open(create=False) as memory:
        report = memory.untag_scene(key, relations, glob=glob, dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return
    done = "would take" if dry_run else "took"
    click.echo(
        f"{done} {counted(len(report.removed), 'fact')} and {counted(report.entities, 'name')} out of "
        f"{printable(report.key)}; not there: {len(report.absent)}"
    )
    if report.unknown:
        click.echo(f"unknown: {', '.join(map(str, report.unknown))}", err=True)
    print_operation(report.operation)


def _require_choice(relations: tuple[int, ...], glob: str | None) -> None:
    if bool(relations) == (glob is not None):
        raise click.UsageError("say which facts: --relation ID, or --glob PATTERN")


@click.command("rename")
@click.argument("key")
@click.argument("new_key")
@dry_run_option
@json_option
@click.pass_obj
def rename_command(session: Session, /, key: str, new_key: str, dry_run: bool, as_json: bool) -> None:
    """Give the scene KEY the key NEW_KEY; KEY goes on leading to it. Scenes below it keep their keys.

    A scene that grew and gets a key without `auto:` is declared from then on: it is found by its keys alone.

    \b
    Example:
      graphmem rename chan:qq/peer:laoda chan:qq/peer:ann --dry-run
    """
    with session.open(create=False) as memory:
        report = memory.rename_scene(key, new_key, dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return
    if report.old == report.new:
        click.echo(printable(f"nothing to do: {report.new} is its key already"))
        return
    would = "is" if report.applied else "would be"
    click.echo(printable(f"{report.old} {would} now {report.new}"))
    if report.origin != report.old_origin:
        click.echo(f"it {would} {report.origin}, and was {report.old_origin}")
    print_operation(report.operation)


@click.command("drop")
@click.argument("key")
@click.option("--below", is_flag=True, help="All scenes below KEY too.")
@dry_run_option
@json_option
@click.pass_obj
def drop_command(session: Session, /, key: str, below: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the scene KEY with its features, refs and aliases. Its facts stay in the memory.

    \b
    Example:
      graphmem drop chan:qq --below --dry-run
    """
    with session.open(create=False) as memory:
        report = memory.drop_scene(key, below=below, dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return
    would = "" if report.applied else "would be "
    for name in report.scenes:
        click.echo(printable(f"{name} {would}dropped"))
    click.echo(f"{_parts(report)} {would}removed with them")
    _print_unplaced(report.unplaced, would)
    print_operation(report.operation)


def _parts(report: "DropReport | ResetReport") -> str:
    features, refs = counted(report.features, "feature"), counted(report.refs, "ref")
    return f"{features}, {refs} and {counted(report.aliases, 'alias', 'aliases')}"


def _print_unplaced(facts: int, would: str) -> None:
    if facts:
        click.echo(f"{counted(facts, 'fact')} {would}left in no scene: recalled only without a situation")
