"""Commands about sessions: mirror, harvest, sessions, history, part, checkpoint, jobs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmem.core.model.writing import JOB_STATES
from graphmem.errors import Conflict, InvalidInput, NotFound
from graphmem.surfaces.cli.group import FilePath, WholeNumber, json_option, read_input, scope_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, none_of, print_remarks, print_table, printable, progress_bar, to_json
from graphmem.surfaces.wire import whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmem.core.model import CheckpointReport, Job, PastHit, SessionInfo, StoredPart
    from graphmem.memory import Memory

_KINDS = ["claude-code", "opencode", "turns", "chatgpt", "claude"]

_raw_option = click.option(
    "--raw/--redact",
    "raw",
    default=None,
    help="Keep secrets, or replace them.  [default: redact_mirror of the settings]",
)
_limit_option = click.option("--limit", type=WholeNumber(0), help="How many at the most.")


def _redact(raw: bool | None) -> bool | None:
    return None if raw is None else not raw


@click.command("mirror")
@click.argument("name", metavar="SESSION")
@click.argument("file", required=False, type=FilePath(path_type=Path))
@click.option("--scope", help="Whose session it is: user, project, session or the key of a scope.")
@_raw_option
@click.option("--delete", "parts", multiple=True, metavar="PART", help="Remove this part; may be repeated.")
@click.option("--delete-message", "messages", multiple=True, metavar="ID", help="Remove all parts of this message.")
@click.option("--delete-session", "everything", is_flag=True, help="Remove the session with all its parts.")
@json_option
@click.pass_obj
def mirror_command(
    session: Session,
    /,
    name: str,
    file: Path | None,
    scope: str | None,
    raw: bool | None,
    parts: tuple[str, ...],
    messages: tuple[str, ...],
    everything: bool,
    as_json: bool,
) -> None:
    """Keep what was said in SESSION, word for word, so that it can be found.

    FILE, else standard input, holds a JSON object a line with role and text and, where known, id, author, at, message,
    tool and outcome. The same lines again add nothing. A damaged line is skipped, and said so. With --delete… parts
    are removed for good, as their host does; what was made of them stays.

    \b
    Example:
      graphmem mirror panel-deploy fixtures/talk.jsonl
      graphmem mirror panel-deploy --delete t10
    """
    if parts or messages or everything:
        if file is not None or ((parts or messages) and everything):
            raise click.UsageError("--delete, --delete-message and --delete-session go with no FILE, and not together")
        with session.open(create=False) as memory:
            gone = memory.delete_session(name) if everything else memory.delete_parts(name, parts, messages=messages)
        click.echo(to_json(gone) if as_json else f"{counted(gone.removed, 'part')} removed")
        return
    text, place = _read(file)

    def mirror(memory: "Memory") -> "tuple[Any, tuple[str, ...]]":
        told, remarks = memory.read_turns(text, place)
        return memory.mirror(name, told, scope=scope, redact=_redact(raw)), remarks

    report, skipped = session.run(mirror)
    if skipped and not report.added + report.changed + report.known:
        print_remarks(skipped[:3])
        raise InvalidInput("FILE", place, "holds no turn; 'graphmem harvest' reads transcripts of other programs")
    print_remarks((*skipped, *report.remarks))
    if as_json:
        click.echo(to_json(report))
    else:
        click.echo(printable(f"session {report.session}: {_numbers(report)}"))


def _read(file: Path | None) -> tuple[str, str]:
    if file is None or str(file) == "-":
        if file is None and (sys.stdin is None or sys.stdin.isatty()):
            raise click.UsageError("give FILE, or pipe turns into standard input")
        return read_input("FILE"), "standard input"
    try:
        return file.read_text("utf-8-sig"), str(file)
    except OSError as error:
        raise InvalidInput("FILE", str(file), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput("FILE", str(file), f"is no UTF-8 text at byte {error.start}") from None


def _numbers(report: Any) -> str:
    return f"{report.added} new, {report.changed} changed, {report.known} known"


@click.command("harvest")
@click.argument("path", required=False, type=FilePath(path_type=Path))
@click.option("--kind", type=click.Choice(_KINDS), help="What wrote it.  [default: seen from what it holds]")
@_raw_option
@json_option
@click.pass_obj
def harvest_command(session: Session, /, path: Path | None, kind: str | None, raw: bool | None, as_json: bool) -> int:
    """Mirror the transcripts of Claude Code and OpenCode, exports of ChatGPT and Claude, and JSON Lines of turns.

    PATH is a file or a folder, without it the usual places of Claude Code and OpenCode. Only what is new since the last
    harvest is read; it can be interrupted and goes on where it was.

    \b
    Example:
      graphmem harvest fixtures/talk.jsonl
    """

    from graphmem.memory import Memory

    Memory.find_transcripts(path, kind=kind)  # what is refused makes no file
    with session.open(create=True) as memory, progress_bar("reading") as progress:
        report = memory.harvest(path, kind=kind, redact=_redact(raw), progress=progress)
    print_remarks((*report.remarks, *report.failed))
    if as_json:
        click.echo(to_json(report))
    else:
        own = f"; {counted(report.own, 'session')} of a writer left out" if report.own else ""
        told = f"{counted(report.sources, 'source')}, {counted(report.sessions, 'session')} with something new"
        click.echo(f"{told}: {_numbers(report)}{own}")
    return 1 if report.failed else 0


@click.command("sessions")
@scope_option
@_limit_option
@json_option
@click.pass_obj
def sessions_command(session: Session, /, scopes: tuple[str, ...], limit: int | None, as_json: bool) -> None:
    """List the sessions that are mirrored.

    \b
    Example:
      graphmem sessions --scope all
    """
    with session.open(create=False) as memory:
        found = memory.sessions(scopes=scopes or None, limit=limit)
    if as_json:
        click.echo(to_json(found))
        return
    rows = [
        (one.name, one.scope or "user", one.parts, one.undigested, one.first_at[:16], one.last_at[:16], _marks(one))
        for one in found
    ]
    columns = ["session~", "scope", "parts#", "not digested#", "first (UTC)", "last (UTC)", ""]
    empty = "no session is mirrored here; 'graphmem harvest' and 'graphmem mirror' do that, --scope all shows all"
    print_table(columns, rows, empty=none_of(limit, empty))


def _marks(one: "SessionInfo") -> str:
    return "of a writer" if one.own else f"failed {counted(one.failures, 'time')}" if one.failures else ""


@click.command("history")
@click.argument("words", nargs=-1, required=True)
@click.option("--session", "name", default="", metavar="NAME", help="Only this session.")
@scope_option
@click.option("--since", metavar="TIME", help="What was said from this time on.")
@click.option("--until", metavar="TIME", help="What was said before this time.")
@click.option("--floor", type=float, help="Share of the best score that is shown.  [default: 0.15]")
@click.option("--limit", type=WholeNumber(0), help="How many at the most.  [default: 10]")
@json_option
@click.pass_obj
def history_command(
    session: Session, /, words: tuple[str, ...], name: str, scopes: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Find what was said in sessions of the current project, with the place of the words.

    'graphmem part ID' shows the exact text.

    \b
    Example:
      graphmem history pnpm lock file
    """
    with session.open(create=False) as memory:
        found = memory.history(" ".join(words), session=name, scopes=scopes or None, **options)
    if as_json:
        click.echo(to_json({"hits": found}))
        return
    rows = [_row(hit) for hit in found]
    empty = "nobody said so here; try rarer words, or --scope all for other projects"
    print_table(["id#", "score#", "session", "who", "when (UTC)", "said"], rows, empty=none_of(options["limit"], empty))


def _row(hit: "PastHit") -> tuple[object, ...]:
    part = hit.part
    return (part.id, hit.score, part.session, part.author or part.tool or part.role, part.at[:16], hit.snippet)


@click.command("part")
@click.argument("part", metavar="ID")
@click.option("--session", "name", default="", metavar="NAME", help="The session it is in.")
@scope_option
@json_option
@click.pass_obj
def part_command(session: Session, /, part: str, name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Show the exact text of the part ID, a number that history shows, or the id that its host gave it.

    \b
    Example:
      graphmem part 2
    """
    with session.open(create=False) as memory:
        found = _part(memory, part, session=name, scopes=scopes or None)
    if as_json:
        click.echo(to_json(found))
    elif sys.stdout.isatty():
        click.echo("\n".join(map(printable, found.text.split("\n"))))
    else:
        click.echo(found.text, nl=False, color=True)  # else click takes out what drives a terminal


def _part(memory: "Memory", part: str, **options: Any) -> "StoredPart":
    """Return the part of a number, else the one whose host calls it so."""
    number = whole_number(part)
    if number is None:
        return memory.part(part, **options)
    try:
        return memory.part(number, **options)
    except (NotFound, Conflict, InvalidInput) as error:
        try:
            return memory.part(part, **options)
        except NotFound:
            raise error from None


@click.command("checkpoint")
@click.argument("name", metavar="[SESSION]", required=False)
@click.option("--idle", is_flag=True, help="All sessions in which nothing was said for a while, and what is queued.")
@click.option("--queue", is_flag=True, help="Leave it to 'graphmem jobs --run'.")
@click.option("--force", is_flag=True, help="Also where it failed three times in a row.")
@json_option
@click.pass_obj
def checkpoint_command(
    session: Session, /, name: str | None, idle: bool, queue: bool, force: bool, as_json: bool
) -> int:
    """Digest what is new in SESSION: what was done, decided, found out and left open, and what to remember of it.

    The writer of the settings does it (writer_command, or writer_url and writer_model), without one rules that need no
    model. It can be interrupted: what was not kept is read again.

    \b
    Example:
      graphmem checkpoint panel-deploy
    """
    if (name is None) != idle or (idle and (queue or force)):
        raise click.UsageError("give SESSION, or --idle alone")
    with session.open(create=False) as memory, progress_bar("digesting") as progress:
        if name is None:
            reports = memory.run_jobs(idle=True, progress=progress)
        else:
            reports = (memory.checkpoint(name, wait=not queue, force=force, progress=progress),)
    return _print_reports(reports, as_json=as_json)


def _print_reports(reports: "Sequence[CheckpointReport]", *, as_json: bool) -> int:
    if as_json:
        click.echo(to_json({"checkpoints": reports}))
    else:
        for report in reports:
            click.echo(printable(f"session {report.session}: {_told(report)}"))
            print_remarks(report.remarks)
        if not reports:
            click.echo(
                "nothing to do: no job waits, and no idle session has enough new turns of its user "
                "(extract_min_turns); 'graphmem sessions' shows what is not digested"
            )
    return 1 if any(report.state in ("failed", "suppressed", "waiting") for report in reports) else 0


def _told(report: "CheckpointReport") -> str:
    if report.state == "written":
        ids = ", ".join(str(note.id) for note in report.notes)
        accepted = [one for one in report.proposed if one.outcome == "accepted"]
        waiting = sum(one.note is not None and one.note.status == "proposed" for one in accepted)
        learnt = f"; {counted(len(accepted), 'note')} learnt" if accepted else ""
        asks = f", {waiting} of them wait for 'graphmem approve'" if waiting else ""
        left = f"; {counted(report.left, 'part')} left for the next" if report.left else ""
        return f"checkpoint in note {ids}{learnt}{asks}{left}; 'graphmem notes show {report.notes[0].id}' shows it"
    return {
        "nothing": "nothing new was said",
        "empty": "what is new says nothing that is worth keeping",
        "short": "too little was said yet",
        "waiting": f"it waits in the queue, since {report.error}",
        "queued": "queued; 'graphmem jobs --run' does it",
        "busy": "another process is at work on it",
        "suppressed": "it failed three times in a row; --force tries again",
        "gone": "it was removed meanwhile",
        "own": "it is the session of a writer of this memory, and is not digested",
        "failed": f"failed: {report.error}",
    }[report.state]


@click.command("jobs")
@click.option("--session", "name", default="", metavar="NAME", help="Only this session.")
@click.option("--state", "states", multiple=True, type=click.Choice(JOB_STATES), help="Only these; may be repeated.")
@scope_option
@click.option("--run", "running", is_flag=True, help="Make the checkpoints that wait.")
@_limit_option
@json_option
@click.pass_obj
def jobs_command(
    session: Session,
    /,
    name: str,
    states: tuple[str, ...],
    scopes: tuple[str, ...],
    running: bool,
    limit: int | None,
    as_json: bool,
) -> int:
    """List what is to be written, is being written, and was.

    \b
    Example:
      graphmem jobs --state failed
    """
    if running and (name or states or scopes or limit is not None):
        raise click.UsageError("--run does all that waits, and goes with no other option")
    if running:
        with session.open(create=False) as memory, progress_bar("digesting") as progress:
            reports = memory.run_jobs(progress=progress)
        return _print_reports(reports, as_json=as_json)
    with session.open(create=False) as memory:
        found = memory.jobs(session=name, states=states, scopes=scopes or None, limit=limit)
    if as_json:
        click.echo(to_json(found))
    else:
        _print_jobs(found, limit)
    return 0


def _print_jobs(found: "Sequence[Job]", limit: int | None) -> None:
    rows = [
        (
            one.id,
            one.kind,
            one.session or one.scope or "user",
            one.cause,
            one.state,
            one.parts,
            one.updated_at[:16],
            f"note {one.note_id}" if one.note_id else one.error,
        )
        for one in found
    ]
    columns = ["id#", "kind", "of", "cause", "state", "parts#", "when (UTC)", "came to~"]
    print_table(columns, rows, empty=none_of(limit, "no jobs"))
