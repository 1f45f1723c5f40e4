"""Commands about facts: commit, replay."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmem.errors import InvalidInput
from graphmem.surfaces.cli.group import FilePath, WholeNumber, json_option, scene_option, source_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import counted, print_remarks, print_table, printable, progress_bar, to_json

if TYPE_CHECKING:
    from graphmem.core.model import CommitReport, ReplayReport, Triple

_SHOWN_FACTS = 3


@click.command("commit")
@click.argument("words", nargs=-1, metavar="[SUBJECT RELATION OBJECT]")
@click.option("--sentence", default="", help="The sentence that said it.")
@click.option("--confidence", type=float, default=1.0, help="Above 0, at most 1.  [default: 1]")
@click.option("--facts", type=click.File("r", encoding="utf-8-sig"), help="A JSON list of facts; - for standard input.")
@scene_option
@click.option("--scope", help="Whose it is: user, project, session or the key of a scope.  [default: user]")
@click.option("--session", "session_name", default="", help="The session it was said in.")
@click.option("--turn", type=WholeNumber(0), default=0, help="The turn of the session.")
@source_option
@json_option
@click.pass_obj
def commit_command(
    session: Session,
    /,
    words: tuple[str, ...],
    sentence: str,
    confidence: float,
    facts: Any,
    scenes: tuple[str, ...],
    scope: str | None,
    session_name: str,
    turn: int,
    source: str,
    as_json: bool,
) -> int:
    """Remember a fact, or the facts of a JSON list, and attach them to scenes.

    \b
    Example:
      graphmem commit 老大 偏好 纯文本 --sentence "老大说用纯文本" --scene chan:qq/peer:boss
    """
    from graphmem.core.keys import key_list
    from graphmem.core.model import Triple, triple_problem
    from graphmem.memory import Memory

    if (len(words) == 3) == (facts is not None) or len(words) not in (0, 3):
        raise click.UsageError("give SUBJECT RELATION OBJECT, or --facts FILE")
    if facts and (sentence or confidence != 1.0):
        raise click.UsageError("--sentence and --confidence go with SUBJECT RELATION OBJECT; --facts has its own")
    triples = _facts(facts) if facts else [Triple(*words, sentence=sentence, confidence=confidence)]
    key_list(scenes, "--scene")
    # What is refused makes no file.
    refused = all(triple_problem(triple) for triple in triples)
    with Memory.open(":memory:") if refused and not session.exists() else session.open(create=True) as memory:
        report = memory.commit(triples, scenes=scenes, session=session_name, turn=turn, scope=scope, source=source)
    if as_json:
        click.echo(to_json(report))
    else:
        _print_commit(report)
    return 0 if report.written else 1


def _facts(stream: Any) -> "list[Triple]":
    from graphmem.core.events import parse_json, triple_of

    name = getattr(stream, "name", "-")
    try:
        found = parse_json(stream.read(), name)
    except UnicodeDecodeError as error:
        raise InvalidInput("--facts", name, f"is no UTF-8 text: {error.reason} at byte {error.start}") from None
    if not isinstance(found, list) or not found:
        raise InvalidInput("--facts", name, "give a JSON list with at least one fact")
    return [triple_of(fact, f"{name}: facts[{place}]") for place, fact in enumerate(found)]


def _print_commit(report: "CommitReport") -> None:
    from graphmem.core.keys import MAX_NAME_CHARACTERS
    from graphmem.surfaces.tables import cut

    if report.written:
        into = f" in {', '.join(report.scenes)}" if report.scenes else ""
        click.echo(printable(f"remembered {report.created} new and {report.repeated} known facts{into}"))
    else:
        click.echo("nothing was remembered", err=True)
    for refusal in report.refused:
        names = (refusal.triple.subject, refusal.triple.relation, refusal.triple.object)
        told = " - ".join(cut(name, MAX_NAME_CHARACTERS) for name in names)
        click.echo(printable(f"refused {told}: {refusal.reason}"), err=True)
    print_remarks(report.remarks)


@click.command("replay")
@click.argument("file", type=FilePath(path_type=Path))
@json_option
@click.pass_obj
def replay_command(session: Session, /, file: Path, as_json: bool) -> None:
    """Run a log of turns through the memory and show what it learnt.

    FILE holds a JSON object a line with at, source, payload, text, tool, session and facts, or is a LoCoMo file.

    \b
    Example:
      graphmem --db week.db replay fixtures/week.jsonl
    """
    from graphmem.memory import Memory

    log = Memory.read_log(file, config=session.config())
    with session.open(create=True) as memory, progress_bar("replaying") as progress:
        report = memory.replay(log, progress=progress)
    if as_json:
        click.echo(to_json(report))
    else:
        _print_replay(report)


def _print_replay(report: "ReplayReport") -> None:
    click.echo(f"{counted(report.turns, 'turn')} in {report.seconds:.2f} s, {counted(report.facts, 'fact')}")
    click.echo(f"{counted(len(report.learnt), 'scene')} visited; {counted(report.unplaced, 'turn')} met no scene yet")
    for remark in report.remarks:
        click.echo(printable(remark), err=True)
    rows = [
        (
            one.scene.key,
            one.scene.strength,
            one.scene.features,
            one.scene.refs,
            "; ".join(f"{fact.subject} {fact.relation} {fact.object}" for fact in one.relations[:_SHOWN_FACTS]),
        )
        for one in report.learnt
    ]
    columns = ["scene that grew", "strength#", "features#", "refs#", "what it brings back first"]
    print_table(columns, rows, empty="no scene has grown yet: it does at the second turn of its kind")
