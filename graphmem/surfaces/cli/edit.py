"""Commands that correct and remove facts, and tell what there is: edit, delete, purge, verify-forgotten, overview and
growth.
"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphmem.surfaces.cli.group import FilePath, WholeNumber, dry_run_option, json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_operation, print_remarks, print_table, printable, to_json

if TYPE_CHECKING:
    from graphmem.core.model import PurgeReport

_id_argument = click.argument("relation_id", metavar="ID", type=WholeNumber(1))
_hard_option = click.option("--hard", is_flag=True, help="Remove for good, with all that told of nothing else.")


@click.command("edit")
@_id_argument
@click.option("--subject", help="What it is about.")
@click.option("--relation", help="What is said of it.")
@click.option("--object", "object_", help="The value.")
@click.option("--sentence", help="The sentence that said it; '' for none.")
@click.option("--confidence", type=float, help="Above 0, at most 1.")
@json_option
@click.pass_obj
def edit_command(
    session: Session,
    /,
    relation_id: int,
    subject: str | None,
    relation: str | None,
    object_: str | None,
    sentence: str | None,
    confidence: float | None,
    as_json: bool,
) -> None:
    """Correct the fact ID, as recall shows it, and no other; what is not given is kept.

    \b
    Example:
      graphmem edit 1 --object pnpm
    """
    if all(value is None for value in (subject, relation, object_, sentence, confidence)):
        raise click.UsageError("give --subject, --relation, --object, --sentence or --confidence")
    with session.open(create=False) as memory:
        report = memory.edit_relation(
            relation_id, subject=subject, relation=relation, object=object_, sentence=sentence, confidence=confidence
        )
    if as_json:
        click.echo(to_json(report))
    elif report.operation is None:
        click.echo(f"nothing to do: fact {report.old} is so already")
    else:
        into = f" in {', '.join(report.scenes)}" if report.scenes else ""
        click.echo(printable(f"fact {report.old} is now fact {report.new}{into}"))
        print_operation(report.operation)


@click.command("delete")
@_id_argument
@_hard_option
@json_option
@click.pass_obj
def delete_command(session: Session, /, relation_id: int, hard: bool, as_json: bool) -> None:
    """Delete the fact ID, as recall shows it.

    \b
    Example:
      graphmem delete 1 --hard
    """
    with session.open(create=False) as memory:
        report = memory.delete_relation(relation_id, hard=hard)
    _print_purge(report, as_json=as_json)


@click.command("purge")
@click.option("--subject-contains", default="", metavar="TEXT", help="A part of the subject; no wildcards.")
@click.option("--object-contains", default="", metavar="TEXT", help="A part of the object; no wildcards.")
@click.option("--relation", default="", help="The whole name of the relation.")
@click.option("--entity", default="", metavar="NAME", help="The whole name, or an alias, of what is at either end.")
@click.option("--session", "session_name", default="", help="What was told in this session, and in no other.")
@click.option("--scope", default="", help="What is of exactly this scope.")
@click.option("--scene", default="", metavar="KEY", help="What was told in scenes at and below it, and nowhere else.")
@_hard_option
@dry_run_option
@json_option
@click.pass_obj
def purge_command(
    session: Session,
    /,
    subject_contains: str,
    object_contains: str,
    relation: str,
    entity: str,
    session_name: str,
    scope: str,
    scene: str,
    hard: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Forget the facts that meet all criteria, at least one of which is given.

    --scope alone takes its notes along; --session and --scope the sessions with what was said in them; --scene alone,
    with --hard, the scenes. --hard writes the file anew, so that nothing is left in it: see verify-forgotten.

    Facts that were told in another session or scene too, or openly, are spared by --session and --scene; with --hard,
    what the session told of them goes. To take these too, purge by --entity or, with --hard, one after the other by
    each session or scene that tells them.

    \b
    Example:
      graphmem purge --subject-contains panel --relation port --dry-run
    """
    if not (subject_contains or object_contains or relation or entity or session_name or scope or scene):
        raise click.UsageError(
            "give --subject-contains, --object-contains, --relation, --entity, --session, --scope or --scene"
        )
    with session.open(create=False) as memory:
        report = memory.purge(
            subject_contains=subject_contains,
            object_contains=object_contains,
            relation=relation,
            entity=entity,
            session=session_name,
            scope=scope,
            scene=scene,
            hard=hard,
            dry_run=dry_run,
        )
    _print_purge(report, as_json=as_json)


def _print_purge(report: "PurgeReport", *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(report))
        return
    would = "" if report.applied else "would be "
    finally_ = " for good" if report.hard else ""
    click.echo(f"{counted(len(report.relations), 'fact')} {would}deleted{finally_}")
    if report.notes:
        click.echo(f"{counted(len(report.notes), 'note')} {would}forgotten{finally_}")
    if report.incidents:
        click.echo(f"{counted(report.incidents, 'incident')} {would}forgotten{finally_}")
    if report.parts:
        parts = counted(report.parts, "part of a session", "parts of sessions")
        click.echo(f"{parts} {would}forgotten{finally_}")
    if report.spared:
        click.echo(f"{counted(len(report.spared), 'fact')} {would}spared, told elsewhere too")
    if report.spared_in:
        click.echo(printable(f"scenes that hold them too: {', '.join(report.spared_in)}"))
    if report.sayings:
        click.echo(f"{counted(report.sayings, 'saying')} of spared facts {would}removed{finally_}")
    for names, what in ((report.scenes, "scenes"), (report.entities, "entities")):
        if names:
            click.echo(printable(f"{len(names)} {what} {would}removed: {', '.join(names)}"))
    if report.orphaned:
        click.echo(printable(f"{would}left without a fact: {', '.join(report.orphaned)}"))
    stays = "stays" if report.applied else "would stay"
    for kind, each in report.left:
        click.echo(f"note: {kind} {each} tells of it too and {stays}", err=True)
    print_remarks(report.remarks)
    if not report.hard:
        print_operation(report.operation)


@click.command("verify-forgotten")
@click.argument("text")
@click.argument("file", required=False, type=FilePath(path_type=Path))
@json_option
@click.pass_obj
def verify_forgotten_command(session: Session, /, text: str, file: Path | None, as_json: bool) -> int:
    """Look for TEXT in every row, the text index and all bytes of a memory, its -wal and its payloads.

    FILE, else the memory of --db, and the copies left beside it: those kept before a reset or a restore, and drafts of
    backups. Nothing is written. Exit code 0 when nothing is left, 1 when something is.

    \b
    Example:
      graphmem verify-forgotten pelican-42 backup.db
    """
    from graphmem.memory import Memory

    report = Memory.verify_forgotten(file or session.path(), text, copied=file is not None)
    if as_json:
        click.echo(to_json(report))
    else:
        rows = [(trace.where, trace.count, "" if trace.offset is None else trace.offset) for trace in report.found]
        print_table(["where", "how often#", "first at byte#"], rows, empty="nothing is left of it")
        print_remarks(report.remarks)
    return 0 if report.ok else 1


@click.command("growth")
@click.option("--days", type=WholeNumber(1), default=30, help="How many, today included.  [default: 30]")
@json_option
@click.pass_obj
def growth_command(session: Session, /, days: int, as_json: bool) -> None:
    """Show what each of the last days brought: facts, notes, scenes, parts of sessions.

    \b
    Example:
      graphmem growth --days 7
    """
    with session.open(create=False) as memory:
        found = memory.growth(days=days)
    if as_json:
        click.echo(to_json(found))
        return
    rows = [(each.day, each.relations, each.notes, each.scenes, each.parts) for each in found]
    print_table(["day (UTC)", "facts#", "notes#", "scenes#", "parts#"], rows, empty="")


@click.command("overview")
@json_option
@click.pass_obj
def overview_command(session: Session, /, as_json: bool) -> None:
    """Show how many things of each kind there are, and what is mentioned most.

    \b
    Example:
      graphmem overview
    """
    with session.open(create=False) as memory:
        report = memory.overview()
    if as_json:
        click.echo(to_json(report))
        return
    counts = dataclasses.asdict(report)
    del counts["most_mentioned"]
    print_table(["kind", "number#"], [(name.replace("_", " "), count) for name, count in counts.items()], empty="")
    print_table(["mentioned most", "times#"], report.most_mentioned, empty="nothing is mentioned yet")
