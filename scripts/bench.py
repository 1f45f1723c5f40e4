#!/usr/bin/env python3
"""Benchmarks of graphmem: medians with spread, as ratios to a named floor measured in the same run.

{subjects}
all       everything above at moderate sizes; about {minutes} minutes on two cores.

A floor is bare SQLite that does the least which the verb must do, on the same file or on a twin of it. Verb and floor
are measured in alternating blocks; each block starts with acts that are not measured. All data is seeded. A line that
starts with 'must:' is what is asked of a figure, and whether it holds. Progress goes to stderr.

--store postgres measures on a server, that of the URL GRAPHMEM_POSTGRES or else one that scripts/postgres starts:
{on_server}

--against peers does the same work, at 10 000 items, with what is installed of what a user would take instead:
{peers}
Their drivers are looked for in ../shared/bench/peers beside this repository; --peers names another folder, --installed
the folder to install into. What is missing is skipped with a line that says how to install it. About 10 minutes, most
of which is what mem0 takes to add texts; its driver ends that after 330 s.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    digesting,
    entering,
    hooking,
    matching,
    mirroring,
    noting,
    peers,
    plots,
    recalling,
    searching,
    starting,
    tenants,
    tidying,
    trees,
    writers,
    writing,
)
from benchmarks.measure import Finding, machine, mebibytes, resident, say, table


@dataclass(frozen=True, slots=True)
class Subject:
    """A benchmark: what runs it, its sizes by itself and among all, what is measured at each, and how long it takes."""

    run: Callable[[Sequence[int], int], Finding]
    about: str
    sizes: Sequence[int]
    moderate: Sequence[int]
    turns: int
    minutes: float


THOUSANDS = (1_000, 10_000, 100_000)
FROM_100 = (100, *THOUSANDS)
SUBJECTS: Mapping[str, Subject] = {
    "enter": Subject(
        entering.run,
        "one enter_scene that joins, among so many scenes. Floor: the statements of a join on the same file, prepared, "
        "in one transaction. Anchor: an upsert of six rows and a commit in a file of its own.",
        (100, 10_000, 100_000, 1_000_000), FROM_100, entering.TURNS, 5,
    ),
    "recall": Subject(
        recalling.run,
        "recall_by_scene, limit 8, of a prefix with 1 000 scenes and 100 000 refs below it, of one of its keys, and "
        "recall_by_situation, in a store of so many scenes. Floor: bare joins that fetch the same rows.",
        (*THOUSANDS, 1_000_000), THOUSANDS, recalling.TURNS, 8,
    ),
    "search": Subject(
        searching.run,
        "one recall of three words among so many short texts. Floor: the bare FTS5 query for the first 200.",
        (*THOUSANDS, 1_000_000), THOUSANDS, searching.TURNS, 6,
    ),
    "commit": Subject(
        writing.run_commit,
        "one fact with its sentence into three scenes, beside so many facts. Floor: the same rows by bare statements "
        "and a commit in a twin of the file; hashes and tokens are made before.",
        FROM_100, FROM_100, writing.TURNS, 2,
    ),
    "ingest": Subject(
        writing.run_ingest,
        "so many facts by commit in batches of 1 000, and texts by mirror. Floors: executemany into the same tables "
        "and indexes, the text index too; for mirror the making of the tokens as well.",
        (10_000, 100_000), (10_000,), 0, 2,
    ),
    "start": Subject(
        starting.run,
        "graphmem --help, recall --scene and enter as processes, on a file of so many scenes. Floor: python that "
        "imports click, and sqlite3 where a file is read.",
        (100_000,), (100_000,), starting.TURNS, 1,
    ),
    "hook": Subject(
        hooking.run,
        "the events of Claude Code, each answered by a process of its own that asks the helper, on a file of so many "
        "scenes; and without a helper. Floor: python -c pass.",
        (100_000,), (100_000,), hooking.TURNS, 1,
    ),
    "dedupe": Subject(
        tidying.run_dedupe,
        "so many scenes, one in a hundred with a twin: dry run with its memory, real run and undo. Floor: one scan of "
        "the three tables.",
        (1_000_000,), (100_000,), 0, 6,
    ),
    "brief": Subject(
        recalling.run_brief,
        "a brief among so many scenes and texts. Floor: the two recalls inside it.",
        FROM_100, (100, 1_000, 10_000), recalling.TURNS, 2,
    ),
    "notes": Subject(
        noting.run,
        "remember of a fact, and of a lesson with slot and labels, brief with and without a query, rules_for and "
        "recall of notes, among so many notes in three scopes. Floors: the bare inserts of the note, its labels, its "
        "origin and its index row with tokens made before, and a commit, in a twin of the file; of brief the SELECTs "
        "that it needs, prepared, which read the scene, the notes and the failures that it tells or counts; of brief "
        "with a query these and the verb recall of the same words.",
        THOUSANDS, (1_000, 10_000), noting.TURNS, 4,
    ),
    "scenes": Subject(
        matching.run,
        "enter, match and recall of turns that name people, a channel alone, a tool alone, topics alone, among so many "
        "scenes: the less a turn says, the more scenes share it.",
        (*THOUSANDS, 1_000_000), FROM_100, matching.TURNS, 8,
    ),
    "tenants": Subject(
        tenants.run,
        "so many files, each opened, entered, committed to, recalled from and closed in turn, and 200 at once: time, "
        "handles, memory.",
        (10_000,), (500,), 0, 6,
    ),
    "writers": Subject(
        writers.run,
        "eight processes that enter turns on one file of so many scenes, against one. Floor: the bare statements in as "
        "many processes.",
        (10_000,), (10_000,), writers.TURNS, 2,
    ),
    "fresh": Subject(
        entering.run_fresh,
        "so many turns on six channels, each with three topics never met before, in tenths.",
        (100_000,), (20_000,), 0, 1,
    ),
    "entities": Subject(
        tidying.run_entities,
        "so many entities: how long a review looks for those that may be one, and what memory it takes.",
        (100_000,), (20_000,), 0, 1,
    ),
    "upkeep": Subject(
        tidying.run_upkeep,
        "commits of one process while another keeps upkeep of so many scenes with twins, all of whose refs fade.",
        (100_000,), (5_000,), 500, 3,
    ),
    "mirror": Subject(
        mirroring.run,
        "so many long chats (LoCoMo) word for word: byte for byte back, nothing new the second time, and the rate, "
        "with and without looking for secrets. Floor: the making of the tokens and executemany into the same tables.",
        (10,), (10,), mirroring.ROUNDS, 1,
    ),
    "digest": Subject(
        digesting.run,
        "the writer that needs no model, on so many chats of LoCoMo: the share of the content words of evidence turns "
        "that its digests keep within a tenth of the text. Floors: first sentences, the first of turns, random ones.",
        (10,), (10,), digesting.SEEDS, 0.5,
    ),
    "tree": Subject(
        trees.run,
        "so many notes as files: a sync that finds nothing to do, one after an edit, one that reads every file, the "
        "first export, and the first sync of another memory. Floor: a walk that looks at every file, and one SELECT.",
        (1_000, 10_000), (1_000,), trees.TURNS, 2,
    ),
}  # fmt: skip
ALL_MINUTES = 18


def _on_server(what: str) -> Callable[[Sequence[int], int], Finding]:
    def run(sizes: Sequence[int], turns: int) -> Finding:
        from benchmarks import postgres

        finding: Finding = getattr(postgres, f"run_{what}")(sizes, turns)
        return finding

    return run


# What --store postgres measures.
ON_SERVER: Mapping[str, Subject] = {
    "enter": Subject(
        _on_server("enter"),
        "one enter_scene that joins, among so many scenes. Floor: a bare pipeline of the same statements.",
        (100, 10_000, 100_000), (100, 10_000), 2000, 2,
    ),
    "writers": Subject(
        _on_server("writers"),
        "eight processes on eight tenants of so many scenes, against one. Floor: bare pipelines.",
        (1_000,), (1_000,), writers.TURNS, 2,
    ),
    "tenants": Subject(
        _on_server("tenants"),
        "so many tenants: what one takes empty and after 1 000 turns with facts, and what a connection pays to change "
        "from one to another.",
        (200,), (20,), 1_000, 5,
    ),
}  # fmt: skip


def _help() -> str:
    import textwrap

    def lines(subjects: Mapping[str, Subject]) -> str:
        told = []
        for name, subject in subjects.items():
            sizes = " ".join(map(str, subject.sizes))
            text = f"{subject.about} [{sizes}; about {subject.minutes:g} min]"
            told.append(textwrap.fill(text, 118, initial_indent=f"{name:<10}", subsequent_indent=" " * 10))
        return "\n".join(told)

    how = peers.default_places().how_to_install()
    install = "\n".join(f"  {name}: {text}" for name, text in how.items())
    return (__doc__ or "").format(
        subjects=lines(SUBJECTS), on_server=lines(ON_SERVER), minutes=ALL_MINUTES, peers=install
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    places = peers.default_places()
    parser = argparse.ArgumentParser(description=_help(), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="SUBJECT",
                        help=f"{', '.join(SUBJECTS)}, all  [enter, or nothing with --against]")  # fmt: skip
    parser.add_argument("--scale", type=int, nargs="+", metavar="N", help="sizes, in place of those above")
    parser.add_argument("--turns", type=int, metavar="N", help="measured acts at each size")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--plot", type=Path, metavar="OUT.svg", help="draw growth and ratios (needs matplotlib)")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite",
                        help=f"postgres: {', '.join(ON_SERVER)}, on a server")  # fmt: skip
    parser.add_argument("--against", choices=["peers"], help="race what is installed of other memories")
    parser.add_argument("--peers", type=Path, default=places.drivers, metavar="FOLDER", help=f"[{places.drivers}]")
    parser.add_argument("--installed", type=Path, default=places.installed, metavar="FOLDER",
                        help=f"where peers are installed  [{places.installed}]")  # fmt: skip
    args = parser.parse_args(arguments)
    subjects = ON_SERVER if args.store == "postgres" else SUBJECTS
    if unknown := [name for name in args.what if name not in (*subjects, "all")]:
        parser.error(f"no subject {unknown[0]!r}: choose from {', '.join(subjects)}, all")
    if any(n < 1 for n in [*(args.scale or []), *([] if args.turns is None else [args.turns])]):
        parser.error("--scale and --turns: give numbers from 1 on")
    if args.plot and not plots.is_installed():
        parser.error(f"--plot: matplotlib is missing: {plots.INSTALL}")
    return args


def chosen(args: argparse.Namespace) -> dict[str, Callable[[], Finding]]:
    """Return what is to be run, by name."""
    everything = "all" in args.what
    subjects = ON_SERVER if args.store == "postgres" else SUBJECTS
    names = list(subjects) if everything else args.what or ([] if args.against else ["enter"])
    works: dict[str, Callable[[], Finding]] = {}
    for name in names:
        subject = subjects[name]
        sizes = args.scale or (subject.moderate if everything else subject.sizes)
        works[name] = lambda subject=subject, sizes=sizes: subject.run(sizes, args.turns or subject.turns)
    if args.against:
        items = (args.scale or [peers.ITEMS])[0]
        places = peers.Places(args.peers.absolute(), args.installed.absolute())
        works["peers"] = lambda: peers.run(places, items, args.turns or peers.TURNS)
    return works


def show(name: str, finding: Finding, seconds: float) -> None:
    print(f"\n{name} ({seconds:.0f} s, at most {mebibytes(resident('VmHWM')):.0f} MiB so far)")
    if finding.rows:
        print(table(finding.rows))
    for growth in finding.growths:
        print(f"growth: {growth.what}: slope {growth.slope:.3f}")
    for note in finding.notes:
        print(f"note: {note}")
    for must in finding.musts:
        print(must.line)


def main() -> None:
    args = parse()
    told = machine()
    findings: dict[str, Finding] = {}
    took: dict[str, dict[str, float]] = {}
    if not args.json:
        print(", ".join(f"{name} {value}" for name, value in told.items()))
    for name, work in chosen(args).items():
        started = time.perf_counter()
        findings[name] = work()
        took[name] = {
            "seconds": round(time.perf_counter() - started, 1), "peak_mib_so_far": mebibytes(resident("VmHWM")),
        }  # fmt: skip
        if not args.json:
            show(name, findings[name], took[name]["seconds"])
            sys.stdout.flush()
    musts = [must for finding in findings.values() for must in finding.musts]
    if args.json:
        document = {name: {**one.document(), **took[name]} for name, one in findings.items()}
        print(json.dumps({**told, "benchmarks": document}, indent=1, ensure_ascii=False))
    elif len(findings) > 1:
        print(f"\n{sum(must.holds for must in musts)} of {len(musts)} musts hold")
    if args.plot:
        plots.draw(args.plot, findings, told)
        say(f"drawn: {args.plot}")


if __name__ == "__main__":
    main()
