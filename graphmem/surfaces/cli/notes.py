"""Commands about notes: remember, forget, restore-note, approve, reject, notes, rules."""

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from graphmem.core.choices import NOTE_KINDS, NOTE_STATUSES
from graphmem.surfaces.cli.group import (
    WholeNumber,
    json_option,
    read_input,
    scene_option,
    scope_option,
    situation_of,
    situation_options,
    source_option,
)
from graphmem.surfaces.opening import Session, current_folder
from graphmem.surfaces.output import counted, none_of, print_operation, print_remarks, print_table, printable, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmem.core.model import Inspection, Note, NoteDetail, Project, RecalledNote, RememberReport
    from graphmem.memory import Memory

_id_argument = click.argument("note_id", metavar="ID", type=WholeNumber(1))
_reason_option = click.option("--reason", default="", help="Why.")


@click.command("remember")
@click.argument("title")
@click.option("--body", default="", help="More than the title says; '-' reads it from standard input.")
@click.option("--kind", type=click.Choice(NOTE_KINDS), default="fact", help="What it is.  [default: fact]")
@click.option("--slot", default="", help="What it is about: a new note takes the slot of the one before.")
@click.option("--label", "labels", multiple=True, help="Another name it is found by; may be repeated.")
@click.option(
    "--when",
    "load_when",
    multiple=True,
    metavar="TRIGGER",
    help="What calls it to mind: words, or a feature such as tool:shell; may be repeated.",
)
@scene_option
@click.option("--scope", help="The scope it belongs to.")
@click.option("--pin", "pinned", is_flag=True, help="Put it into every prompt.")
@click.option("--summary", default="", help="One sentence of at most 100 characters.")
@_reason_option
@click.option("--quote", default="", help="What the user said that backs it.")
@click.option("--session", "conversation", default="", metavar="NAME", help="The session in which it was said.")
@source_option
@click.option("--at", metavar="TIME", help="Since when it holds.  [default: now]")
@json_option
@click.pass_obj
def remember_command(
    session: Session, /, title: str, body: str, conversation: str, as_json: bool, **options: Any
) -> None:
    """Write a note: a fact, a lesson, a rule, in one line and as much body as is needed.

    What another source than the user says binds nobody: a rule of an agent is proposed until 'graphmem approve'. The
    same note again is seen once more.

    \b
    Example:
      graphmem remember "Deploy with pnpm" --kind lesson --slot deploy --when 发布
      graphmem remember "Never force push" --kind rule --label git
    """
    told = _read(body)

    def remember(memory: "Memory") -> "tuple[RememberReport, Project | None]":
        report = memory.remember(title, body=told, session=conversation, place=current_folder(), **options)
        return report, memory.project

    report, project = session.run(remember)
    if as_json:
        click.echo(to_json(report))
        return
    scope = report.note.scope
    home = f"project {project.label}" if project is not None and scope == project.key else scope or "user"
    click.echo(printable(f"{_told(report)}; scope: {home}"))
    print_remarks(report.remarks)


def _read(body: str) -> str:
    """Return a text that was typed, or for '-' what is piped in."""
    return read_input("--body") if body == "-" else body


def _told(report: "RememberReport") -> str:
    note = report.note
    if not report.created:
        return f"note {note.id} was known: {note.title} (told {counted(note.seen, 'time')}, {note.status})"
    resolved = f"; resolves {counted(len(report.resolved), 'incident')}" if report.resolved else ""
    return f"note {note.id}: {note.kind}, {note.status}{_taken(report)}{resolved}"


def _taken(report: "RememberReport") -> str:
    return f", in the place of {', '.join(map(str, report.superseded))}" if report.superseded else ""


@click.command("forget")
@_id_argument
@click.option("--hard", is_flag=True, help="Remove it for good, with all that tells of it.")
@_reason_option
@source_option
@json_option
@click.pass_obj
def forget_command(session: Session, /, note_id: int, hard: bool, as_json: bool, **options: Any) -> None:
    """Archive a note: it is found no more, and 'graphmem restore-note' brings it back.

    \b
    Example:
      graphmem forget 1 --reason "no longer true"
    """
    with session.open(create=False) as memory:
        report = memory.forget(note_id, hard=hard, place=current_folder(), **options)
    if as_json:
        click.echo(to_json(report))
        return
    done = "removed for good" if report.hard else f"archived; 'graphmem restore-note {report.id}' brings it back"
    click.echo(printable(f"note {report.id}, {report.title}: {done}"))
    print_remarks(report.remarks)


@click.command("restore-note")
@_id_argument
@_reason_option
@source_option
@json_option
@click.pass_obj
def restore_note_command(session: Session, /, note_id: int, as_json: bool, **options: Any) -> None:
    """Bring an archived note back.

    \b
    Example:
      graphmem restore-note 4
    """
    with session.open(create=False) as memory:
        note = memory.restore_note(note_id, place=current_folder(), **options)
    _print_decided(note, as_json=as_json)


@click.command("approve")
@_id_argument
@_reason_option
@source_option
@json_option
@click.pass_obj
def approve_command(session: Session, /, note_id: int, as_json: bool, **options: Any) -> None:
    """Let a proposal come into force, as a person's decision, also one that was rejected.

    'graphmem rules' lists what is proposed, 'graphmem notes --status forgotten' what was rejected.

    \b
    Example:
      graphmem approve 2
    """
    with session.open(create=False) as memory:
        report = memory.approve(note_id, place=current_folder(), **options)
    if as_json:
        click.echo(to_json(report))
        return
    click.echo(printable(f"note {report.note.id}, {report.note.title}: in force{_taken(report)}"))


@click.command("reject")
@_id_argument
@_reason_option
@source_option
@json_option
@click.pass_obj
def reject_command(session: Session, /, note_id: int, as_json: bool, **options: Any) -> None:
    """Put a proposal away, as a person's decision: the same is not proposed again.

    \b
    Example:
      graphmem reject 3 --reason "only for this project"
    """
    with session.open(create=False) as memory:
        note = memory.reject(note_id, place=current_folder(), **options)
    _print_decided(note, as_json=as_json)


def _print_decided(note: "Note", *, as_json: bool) -> None:
    click.echo(to_json(note) if as_json else printable(f"note {note.id}, {note.title}: {note.status}"))


@click.group("notes", invoke_without_command=True)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(NOTE_KINDS), help="Of this kind; may be repeated.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(NOTE_STATUSES),
    default=["live"],
    help="Of this status; may be repeated.  [default: live]",
)
@scope_option
@click.option("--limit", type=WholeNumber(0), default=50, help="How many at the most.  [default: 50]")
@json_option
@click.pass_context
def notes_command(ctx: click.Context, /, limit: int, as_json: bool, **options: Any) -> None:
    """List notes, those told last first; search, show or edit them.

    \b
    Example:
      graphmem notes --kind lesson
      graphmem notes search pnpm
      graphmem notes show 1
      graphmem notes edit 1 --pin
    """
    if ctx.invoked_subcommand is not None:
        given = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if given:
            raise click.UsageError(f"options go behind '{ctx.invoked_subcommand}', where it has them")
        return
    session: Session = ctx.obj
    options["scopes"] = options["scopes"] or None
    with session.open(create=False) as memory:
        found = memory.notes(limit=limit, **options)
    if as_json:
        click.echo(to_json({"notes": found}))
    else:
        _print_notes(found, empty=none_of(limit, "no such notes"))


def _print_notes(found: "Sequence[Note]", *, empty: str) -> None:
    rows = [
        (
            one.id,
            one.kind,
            one.status,
            one.scope or "user",
            one.slot,
            "pinned" * one.pinned,
            one.seen,
            one.title,
            one.reason,
        )
        for one in found
    ]
    columns = ["id#", "kind", "status", "scope", "slot", "", "told#", "title~", "reason~"]
    print_table(columns, rows, empty=empty)


@notes_command.command("search", short_help="Find notes by words.")
@click.argument("words", nargs=-1, required=True)
@scope_option
@click.option("--limit", type=WholeNumber(0), help="How many at the most.  [default: 10]")
@json_option
@click.pass_obj
def search_notes_command(
    session: Session, /, words: tuple[str, ...], scopes: tuple[str, ...], limit: int | None, as_json: bool
) -> None:
    """Find live notes by words, with their reasons and where they were told first.

    \b
    Example:
      graphmem notes search deploy pnpm
    """
    with session.open(create=False) as memory:
        hits = memory.recall(" ".join(words), kinds="note", scopes=scopes or None, limit=limit)
    if as_json:
        click.echo(to_json({"hits": hits}))
        return
    rows = [(hit.id, hit.score, " ".join(hit.text.split()), hit.reason, hit.place) for hit in hits]
    print_table(["id#", "score#", "text~", "reason~", "told first in"], rows, empty=none_of(limit, "no note answers"))


@notes_command.command("show", short_help="Show everything about one note.")
@_id_argument
@json_option
@click.pass_obj
def show_note_command(session: Session, /, note_id: int, as_json: bool) -> None:
    """Show everything about one note: where it comes from, what was done to it, what had its slot before.

    \b
    Example:
      graphmem notes show 1
    """
    with session.open(create=False) as memory:
        detail = memory.inspect(note_id)
    if as_json:
        click.echo(to_json(detail))
    else:
        _print_detail(detail)


def _print_detail(detail: "NoteDetail") -> None:
    note = detail.note
    click.echo(printable(f"note {note.id}: {note.title}"))
    if note.body:
        click.echo("\n".join(f"  {printable(line)}" for line in note.body.splitlines()))
    lines = {
        "kind": f"{note.kind}, {note.status}{', pinned' * note.pinned}",
        "scope": note.scope or "user",
        "slot": note.slot,
        "labels": ", ".join(note.labels),
        "comes at": ", ".join(note.load_when),
        "scenes": ", ".join(detail.scenes),
        "summary": note.summary,
        "highlight": note.highlight,
        "reason": note.reason,
        "told": f"{counted(note.seen, 'time')}, last {note.updated_at[:16]}",
        "used": f"{counted(detail.uses, 'time')}, last {detail.last_used[:16]}" if detail.last_used else "never",
        "replaced by": "" if note.superseded_by is None else str(note.superseded_by),
        "in projects": "" if detail.overridden_by is None else f"note {detail.overridden_by} goes before it",
        "made of": ", ".join(f"note {source_id}" for source_id in detail.sources),
        "its session": "removed since" * detail.source_gone,
    }
    for name, value in lines.items():
        if value:
            click.echo(printable(f"  {name:<12}{value}"))
    columns = ["#", "act", "by", "when (UTC)", "where", "session", "quote~", "reason~"]
    rows = [
        (act.seq, act.act, act.actor, act.at[:16], act.place, act.session, act.quote, act.reason) for act in detail.acts
    ]
    print_table(columns, rows, empty="")
    if detail.versions:
        click.echo("before it:")
        _print_notes(detail.versions, empty="")


@notes_command.command("edit", short_help="Change a note.")
@_id_argument
@click.option("--title", help="The new title.")
@click.option("--body", help="The new body; '-' reads it from standard input.")
@click.option("--kind", type=click.Choice(NOTE_KINDS), help="The new kind.")
@click.option("--slot", help="The new slot, '' for none.")
@click.option(
    "--label", "labels", multiple=True, help="Its labels, in the place of all before, '' for none; may be repeated."
)
@click.option("--when", "load_when", multiple=True, metavar="TRIGGER", help="Its triggers, likewise.")
@click.option("--summary", help="The new summary.")
@click.option("--pin/--unpin", "pinned", default=None, help="Whether it is in every prompt.")
@click.option("--reason", help="Why it is kept.")
@source_option
@json_option
@click.pass_obj
def edit_note_command(session: Session, /, note_id: int, source: str, as_json: bool, **options: Any) -> None:
    """Change a note; what is not given is kept, so is where it comes from.

    \b
    Example:
      graphmem notes edit 1 --title "Deploy with pnpm" --pin
    """
    changes = {name: value for name, value in options.items() if value not in (None, ())}
    if not changes:
        raise click.UsageError("nothing to change: give --title, --body, --pin or another option")
    if "body" in changes:
        changes["body"] = _read(changes["body"])
    with session.open(create=False) as memory:
        report = memory.edit_note(note_id, source=source, place=current_folder(), **changes)
    if as_json:
        click.echo(to_json(report))
        return
    told = "is so already" if report.operation is None else "changed"
    click.echo(printable(f"note {report.note.id}, {report.note.title}: {told}"))
    print_operation(report.operation)


@click.command("rules")
@situation_options
@click.option("--text", default="", help="The words of the turn, or the command that will run.")
@scene_option
@scope_option
@json_option
@click.pass_obj
def rules_command(
    session: Session,
    /,
    text: str,
    scenes: tuple[str, ...],
    scopes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """List the rules in force and what is proposed; with a situation, the rules that govern it.

    A rule governs by a scene that holds it, by a trigger in the situation or in --text, or by its tool.

    \b
    Example:
      graphmem rules
      graphmem rules --chan qq --tool shell --text "rm -rf build"
    """
    config = session.config()
    tools = options["tool"]
    if len(tools) > 1:
        raise click.UsageError("--tool: one at a time, the one that is about to run")
    situation = situation_of(options, config)
    with session.open(create=False) as memory:
        if situation or text or scenes:
            found = memory.rules_for(
                situation, tool=tools[0] if tools else "", text=text, declared=scenes, scopes=scopes or None
            )
            _print_governing(found, as_json=as_json)
            return
        state = memory.inspect(scopes=scopes or None)
    if as_json:
        click.echo(to_json({"rules": state.rules, "proposals": state.proposals}))
    else:
        _print_rules(state)


def _print_governing(found: "Sequence[RecalledNote]", *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json({"rules": found}))
        return
    rows = [
        (one.id, one.title, f"{one.ground} {one.load_when}".strip(), "yes" * one.overridden, one.reason)
        for one in found
    ]
    empty = "no rule is for just this; those in force everywhere are in 'graphmem rules' and in every brief"
    print_table(["id#", "rule~", "fits by", "overridden", "reason~"], rows, empty=empty)


def _print_rules(state: "Inspection") -> None:
    rows = [
        (one.id, one.scope or "user", one.title, ", ".join((*one.labels, *one.load_when)), one.reason)
        for one in state.rules
    ]
    print_table(["id#", "scope", "rule~", "labels and triggers", "reason~"], rows, empty="no rules are in force")
    if state.proposals:
        click.echo("proposed; 'graphmem approve ID' or 'graphmem reject ID' decides:")
        _print_notes(state.proposals, empty="")
