"""scenes: turns of every kind, also those that say little, as the number of scenes grows."""

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import Finding, Row, Work, in_blocks, median, say, summary
from benchmarks.seeds import AT, SEED, VOCABULARY, fill, plain_scene, turn_topics
from graphmem import Memory, Situation

TURNS = 240
SECONDS = 20.0
_ENTER_SLOPE, _RECALL_SLOPE = 0.1, 0.25


def _people(rng: random.Random, scenes: int) -> Situation:
    i = 3 * rng.randrange(max(scenes // 3, 1)) + 1
    return Situation.of(**plain_scene(i), topics=turn_topics(rng, i), part="morning", at=AT)


def _channel(rng: random.Random, scenes: int) -> Situation:
    return Situation.of(chan=f"room{3 * rng.randrange(max(scenes // 3, 1))}", at=AT)


def _tool(rng: random.Random, _: int) -> Situation:
    return Situation.of(tool=f"t{rng.randrange(20)}", at=AT)


def _topics(rng: random.Random, _: int) -> Situation:
    return Situation.of(topics=[f"w{word}" for word in rng.sample(range(VOCABULARY), 3)], at=AT)


TURNS_THAT_NAME = {"people": _people, "a channel": _channel, "a tool": _tool, "topics": _topics}


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure enter, match and recall for turns that name people, a channel alone, a tool alone, topics alone."""
    finding = Finding()
    for scenes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            say(f"scenes: filling {scenes} scenes")
            fill(path, scenes)
            say(f"scenes: among {scenes} scenes")
            with Memory.open(path) as memory:
                for named in TURNS_THAT_NAME:
                    finding.rows.append({"scenes": scenes, "turn_names": named, **_turns(memory, named, scenes, turns)})
    for named in TURNS_THAT_NAME:
        for verb, column, allowed in (
            ("enter", "enter_us", _ENTER_SLOPE),
            ("recall_by_situation", "recall_us", _RECALL_SLOPE),
        ):
            what = f"{verb}, a turn that names {named}"
            finding.growth_of(what, "scenes", column, allowed, turn_names=named)
    finding.notes.append("answering: how many scenes a recall found; what more scenes answer, more has to be read")
    return finding


def _turns(memory: Memory, named: str, scenes: int, turns: int) -> Row:
    rng = random.Random(f"{SEED} {named}")
    answered: list[int] = []

    def turn(act: Callable[[Situation], object]) -> Work:
        def ready() -> Callable[[], object]:
            here = TURNS_THAT_NAME[named](rng, scenes)
            return lambda: act(here)

        return ready

    def recalling(here: Situation) -> None:
        answered.append(len(memory.recall_by_situation(here, limit=8).scenes))

    works = {"enter": turn(memory.enter_scene), "match": turn(memory.match_scenes), "recall": turn(recalling)}
    times = in_blocks(works, measured=turns, seconds=SECONDS)
    return {
        "enter_us": median(times["enter"]),
        "enter_p99_us": summary(times["enter"])["p99_us"],
        "match_us": median(times["match"]),
        "recall_us": median(times["recall"]),
        "recall_p99_us": summary(times["recall"])["p99_us"],
        "answering": round(sum(answered) / len(answered), 1),
    }
