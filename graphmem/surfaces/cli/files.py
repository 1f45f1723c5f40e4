"""Commands about where a memory lies: backup, restore, copy, check, repair."""

from collections.abc import Mapping
from pathlib import Path

import click

from graphmem.surfaces.cli.group import FilePath, dry_run_option, json_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import (
    counted,
    print_operation,
    print_remarks,
    print_table,
    printable,
    progress_bar,
    to_json,
)


@click.command("backup")
@click.argument("dest", type=FilePath(path_type=Path))
@json_option
@click.pass_obj
def backup_command(session: Session, /, dest: Path, as_json: bool) -> None:
    """Copy the memory into the new file DEST, also while it is read and written.

    The copy is one file, checked before it gets its name; large payloads lie in the folder DEST.blobs beside it. A
    memory that cannot be written, as on a read-only medium, is copied too.

    \b
    Example:
      graphmem backup memory-2026-11-30.db
    """
    if session.is_unwritable():
        from graphmem.memory import Memory

        report = Memory.backup_copy(session.path(), dest)
    else:
        with session.open(create=False) as memory, progress_bar("copying") as progress:
            report = memory.backup(dest, progress=progress)
    if as_json:
        click.echo(to_json(report))
        return
    click.echo(printable(f"{report.path}: {counted(report.bytes, 'byte')}, {_told(report.counts, report.payloads)}"))
    print_remarks(report.remarks)


@click.command("restore")
@click.argument("src", type=FilePath(path_type=Path))
@click.option("--without-payloads", is_flag=True, help="Also where payload files of SRC are missing or damaged.")
@json_option
@click.pass_obj
def restore_command(session: Session, /, src: Path, without_payloads: bool, as_json: bool) -> None:
    """Make the memory of --db anew from the backup SRC; no program may have it open.

    The memory as it was is kept beside it, and the command tells where. A backup whose folder SRC.blobs is missing is
    refused, since its pictures would be lost.

    \b
    Example:
      graphmem restore memory-2026-11-30.db
    """
    from graphmem.memory import Memory

    session.require_writing()
    report = Memory.restore(src, session.ready_path(), without_payloads=without_payloads)
    if as_json:
        click.echo(to_json(report))
        return
    click.echo(printable(f"{report.path}: restored, {_told(report.counts, report.payloads)}"))
    if report.kept:
        click.echo(printable(f"the memory as it was: {report.kept}"))
    print_remarks(report.remarks)


@click.command("copy")
@click.argument("source", metavar="SRC")
@click.argument("dest")
@click.option("--all-tenants", is_flag=True, help="Every tenant of a server, into files of a folder or back.")
@click.option(
    "--anew", is_flag=True, help="Also where DEST is an unfinished copy of another SRC, of which nothing stays."
)
@json_option
@click.pass_obj
def copy_command(session: Session, /, source: str, dest: str, all_tenants: bool, anew: bool, as_json: bool) -> None:
    """Copy the memory SRC into DEST, where there is none yet: files, and tenants of PostgreSQL servers, either way.

    A file is named by its path, a tenant by an address, postgresql://user@host/database?tenant=NAME; a password is best
    left to PGPASSWORD or ~/.pgpass. SRC is not changed and may be in use; what is written there meanwhile does not
    come. A copy that was broken off goes on where it was when it is begun again, and can be used when it is finished;
    at the end both are compared.

    \b
    Example:
      graphmem copy memory.db copy.db
    """
    from graphmem.memory import Memory

    with progress_bar("copying") as progress:
        if all_tenants:
            reports = Memory.copy_tenants(source, dest, anew=anew, config=session.config(), progress=progress)
        else:
            reports = (Memory.copy(source, dest, anew=anew, config=session.config(), progress=progress),)
    if as_json:
        click.echo(to_json(list(reports) if all_tenants else reports[0]))
        return
    for report in reports:
        click.echo(printable(f"{report.path}: copied, {_told(report.counts, report.payloads, of='payloads')}"))
        if report.resumed:
            click.echo(f"{counted(report.resumed, 'row')} had come before")
        print_remarks(report.remarks)
    if not reports:
        click.echo("nothing to copy: there is no tenant")


def _told(counts: Mapping[str, int], payloads: int, *, of: str = "payload files") -> str:
    told = [f"{count} {table.replace('_', ' ')}" for table, count in {**counts, of: payloads}.items() if count]
    return ", ".join(told) or "nothing in it"


@click.command("check")
@click.argument("file", required=False, type=FilePath(path_type=Path))
@json_option
@click.pass_obj
def check_command(session: Session, /, file: Path | None, as_json: bool) -> int:
    """Look for damage: the memory itself, the text index, keys, references, the journal, payloads. Nothing is changed.

    FILE: a backup, of which no byte is touched; else the memory of --db. The exit code is 1 when something is wrong.

    \b
    Example:
      graphmem check
    """
    if file is None:
        with session.open(create=False) as memory:
            report = memory.check()
    else:
        from graphmem.memory import Memory

        report = Memory.check_copy(file)
    if as_json:
        click.echo(to_json(report))
        return int(not report.ok)
    for problem in report.problems:
        click.echo(printable(problem))
    print_table(["part of it", "bytes#"], list(report.sizes.items()), empty="")
    click.echo(counted(len(report.problems), "problem") if report.problems else "sound")
    print_remarks(report.remarks)
    return int(not report.ok)


@click.command("repair")
@dry_run_option
@json_option
@click.pass_obj
def repair_command(session: Session, /, dry_run: bool, as_json: bool) -> int:
    """Mend what `check` finds, where it follows from the rest: indexes, counts, keys, references to nothing.

    The exit code is 1 when something is left, which only a backup or a person can mend.

    \b
    Example:
      graphmem repair --dry-run
    """
    with session.open(create=False) as memory:
        report = memory.repair(dry_run=dry_run)
    if as_json:
        click.echo(to_json(report))
        return int(bool(report.left))
    done = "would mend" if dry_run else "mended"
    for line in report.mended:
        click.echo(printable(f"{done}: {line}"))
    for line in report.left:
        click.echo(printable(f"left: {line}"))
    if not report.mended and not report.left:
        click.echo("nothing to do: the memory is sound")
    for operation in report.operations if report.applied else ():
        print_operation(operation)
    return int(bool(report.left))
