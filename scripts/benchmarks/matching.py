"""scenes: turns of every kind, also those that say little, as the number of scenes grows."""

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from graphmem import Memory, Situation

from benchmarks.measure import Finding, Row, in_blocks, median, say, summary
from benchmarks.seeds import AT, SEED, VOCABULARY, fill, plain_scene, turn_topics

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
                for named, make in TURNS_THAT_NAME.items():
                    rng = random.Random(f"{SEED} {named}")
                    answered: list[int] = []

                    def ready(act: Callable[[Situation], object]) -> Callable[[], Callable[[], object]]:
                        def prepare() -> Callable[[], object]:
                            here = make(rng, scenes)  # noqa: B023: used in this turn of the loop
                            return lambda: act(here)

                        return prepare

                    def recalling(here: Situation) -> None:
                        answered.append(len(memory.recall_by_situation(here, limit=8).scenes))  # noqa: B023

                    works = {
                        "enter": ready(memory.enter_scene),
                        "match": ready(memory.match_scenes),
                        "recall": ready(recalling),
                    }
                    times = in_blocks(works, measured=turns, seconds=SECONDS)
                    row: Row = {
                        "scenes": scenes,
                        "turn_names": named,
                        "enter_us": median(times["enter"]),
                        "enter_p99_us": summary(times["enter"])["p99_us"],
                        "match_us": median(times["match"]),
                        "recall_us": median(times["recall"]),
                        "answering": round(sum(answered) / len(answered), 1),
                    }
                    finding.rows.append(row)
    for named in TURNS_THAT_NAME:
        where = {"turn_names": named}
        finding.growth_of(f"enter, a turn that names {named}", "scenes", "enter_us", _ENTER_SLOPE, **where)
        finding.growth_of(
            f"recall_by_situation, a turn that names {named}", "scenes", "recall_us", _RECALL_SLOPE, **where
        )
    finding.notes.append("answering: how many scenes a recall found; what more scenes answer, more has to be read")
    return finding
