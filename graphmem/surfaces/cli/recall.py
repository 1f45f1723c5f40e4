"""The command recall: by words, by a situation, by scenes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from graphmem.core.choices import RECALL_KINDS, RECALL_MODES, SOURCE_CLASSES
from graphmem.surfaces.cli.group import (
    WholeNumber,
    json_option,
    scene_option,
    scope_option,
    situation_of,
    situation_options,
)
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import none_of, print_table, print_tree, printable, to_json

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.core.model import Hit, Reason, Recollection

# Options that say how words are looked for, and their defaults.
_OF_WORDS = {"trust": None, "kinds": (), "since": None, "until": None, "mode": None, "precise": False, "explain": False}
_TIMES = {"since": "--since", "until": "--until", "as_of": "--as-of"}


@click.command("recall")
@click.argument("words", nargs=-1)
@scene_option
@click.option("--exact", is_flag=True, help="Only the named scenes, not those below them.")
@situation_options
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(RECALL_KINDS),
    help="What to look for; may be repeated.  [default: all but entity and scene]",
)
@scope_option
@click.option("--since", metavar="TIME", help="What was said from this time on.")
@click.option("--until", metavar="TIME", help="What was said before this time.")
@click.option("--as-of", metavar="TIME", help="What held then.  [default: now]")
@click.option(
    "--mode",
    type=click.Choice(RECALL_MODES),
    help="hybrid weighs all evidence; keyword wants every word; vector compares texts as TF-IDF vectors; graph brings "
    "back what is linked to what is named; scene what the situation does.  [default: search_mode of the settings]",
)
@click.option("--precise", is_flag=True, help="Only what clearly answers, nothing when nothing does.")
@click.option(
    "--trust",
    type=click.Choice(SOURCE_CLASSES),
    help="Only what somebody told who is trusted as much, in this order.",
)
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@click.option("--limit", type=WholeNumber(0), help="How many at the most.  [default: 10 for words, else 8 of a kind]")
@json_option
@click.pass_obj
def recall_command(
    session: Session,
    /,
    words: tuple[str, ...],
    scenes: tuple[str, ...],
    exact: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Bring back what is known: by words, by a situation, by scenes. A situation needs no words at all.

    With words, the situation says who asks: what its scenes hold ranks higher, what others alone were told is left out;
    --scene looks in these scenes only. --explain shows what is added up and scaled to 0..1 for each score.

    \b
    Example:
      graphmem recall --chan qq --peer boss
      graphmem recall --scene chan:qq --as-of 2026-09-01
      graphmem recall Markdown --kind relation --explain
    """
    config = session.config()
    situation = situation_of(options, config)
    query = " ".join(words).strip()
    within = scenes[0] if len(scenes) == 1 else scenes  # a single empty key means all scenes
    _check(query, bool(situation), scenes, exact, options)
    _check_times(options, config)
    options["scopes"] = options["scopes"] or None
    with session.open(create=False) as memory:
        if query:
            kinds = options.pop("kinds") or None
            hits = memory.recall(
                query, situation=situation or None, scenes=within or "", exact=exact, kinds=kinds, **options
            )
            _print_hits(hits, as_json=as_json, explain=options["explain"], limit=options["limit"])
            return
        common = {name: options[name] for name in ("limit", "scopes", "as_of")}
        if situation:
            found = memory.recall_by_situation(situation, declared=scenes or situation.derived_key, **common)
        else:
            found = memory.recall_by_scene(within, exact=exact, **common)
    if as_json:
        click.echo(to_json(found))
    else:
        _print_recollection(found, options["limit"])


def _check(query: str, situation: bool, scenes: tuple[str, ...], exact: bool, options: dict[str, Any]) -> None:
    """Refuse options that would have no meaning together."""
    if exact and (not scenes or (situation and not query)):
        raise click.UsageError("--exact goes with --scene; a situation reads its scenes exactly anyway")
    if not (query or situation or scenes):
        raise click.UsageError("nothing to search for: give words, --scene KEY, or a situation such as --chan qq")
    given = [f"--{name.removesuffix('s')}" for name, default in _OF_WORDS.items() if options[name] != default]
    if given and not query:
        raise click.UsageError(f"{given[0]} goes with words; give some to look for")
    if options["mode"] == "scene" and not situation:
        raise click.UsageError("--mode scene brings back what a situation does; give one, such as --chan qq")


def _check_times(options: dict[str, Any], config: "Config") -> None:
    """Raise InvalidInput naming the option for a time that cannot be read in the zone of the settings."""
    from graphmem.core.times import read_time

    for name, option in _TIMES.items():
        if options[name] is not None:
            read_time(options[name], config.zone, argument=option)


def _print_hits(hits: "Sequence[Hit]", *, as_json: bool, explain: bool, limit: int | None) -> None:
    if as_json:
        click.echo(to_json({"hits": hits}))
    elif explain and hits:
        print_tree((_line(hit), map(_part, hit.why)) for hit in hits)
    else:
        rows = [(hit.id, hit.kind, hit.score, _when(hit), _one_line(hit.text)) for hit in hits]
        print_table(["id", "kind", "score#", "when (UTC)", "text~"], rows, empty=none_of(limit, "nothing answers this"))


def _when(hit: "Hit") -> str:
    return (hit.at or "")[:16]


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _line(hit: "Hit") -> str:
    marks = ("pinned" if hit.pinned else "", _when(hit), hit.source, *hit.scenes)
    told = ", ".join(mark for mark in marks if mark)
    return f"{hit.score:.3g}  {hit.kind} {hit.id}: {_one_line(hit.text)}{f' ({told})' if told else ''}"


def _part(reason: "Reason") -> str:
    return f"{reason.part} {reason.value:.3g} x {reason.weight:.3g} = {reason.value * reason.weight:.3g}: {reason.told}"


def _print_recollection(found: "Recollection", limit: int | None) -> None:
    if found.scenes:
        click.echo(printable(f"from {', '.join(found.scenes)}"))
    columns = ["id#", "weight#", "fact", "sentence"]
    rows = [
        (one.id, one.weight, f"{one.subject} - {one.relation} - {one.object}", one.sentence) for one in found.relations
    ]
    if rows or not found:
        print_table(columns, rows, empty=none_of(limit, "nothing is known here"))
    if found.notes:
        told = [
            (
                one.id,
                one.weight,
                one.kind,
                one.load_when or one.ground,
                _one_line(f"{one.title}: {one.body}" if one.body else one.title),
            )
            for one in found.notes
        ]
        print_table(["note#", "weight#", "kind", "fits by", "text~"], told, empty="")
    if found.blocks:
        shown = [(one.id, one.weight, one.modality, one.text) for one in found.blocks]
        print_table(["block", "weight#", "modality", "text"], shown, empty="")
    if found.documents:
        shown = [(one.id, one.weight, one.source, one.summary) for one in found.documents]
        print_table(["document", "weight#", "source", "summary"], shown, empty="")
