"""digest: how much of what matters the digest without a model keeps, against first sentences and random ones.

Ten long chats (LoCoMo, Maharana et al. 2024; ../shared/data/README.md) are cut into increments of 24 000 bytes, whole
messages in order, as checkpoints are. Of each increment a digest is written within a tenth of its bytes. The turns that
the questions about a chat name as evidence are what matters. Kept of such a turn is the share of its distinct content
words (`core.tokens` without stop words and without the names of the two speakers, which label the lines) that the
digest of its increment holds; the figure is the mean over the evidence turns. The baselines have the same bytes, and
spend none of them on who said it: the first sentences of the increment, the first sentence of each turn, and sentences
drawn at random (mean of several seeds); what no longer fits is passed over.

The settings of the writer were chosen by the chats 0 to 4. The figures of 5 to 9 stood beside them all the while, so
they tell that the settings hold elsewhere, and are no blind test. Tried on 0 to 4, with the sentences alone and no
sections, where random ones keep 0.444: PageRank of sentences linked by the cosine of tf-idf (LexRank) 0.356, since what
is central is short and repeats; with a penalty for what is said already (MMR, lambda 0.7 and 0.3) 0.409 and 0.517;
greedy coverage, new words for each byte, with all words alike 0.588, by their number 0.595, by tf-idf 0.599, by the
ranks of their sentences 0.582, by their PageRank 0.600, its square root 0.604, its cube root 0.606; its square root
with names and numbers twice as heavy 0.614. Rewards for what is covered already, another power of the bytes, sentences
with "!" at a discount and one line for each author change less than 0.01, or make it worse. Sections, labels and a
summary of full sentences cost 0.02 of it; a summary of a quarter of the digest, and not of 15 in a hundred, 0.01 more.
"""

import json
import random
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import SCRIPTS, Finding, Must, Row, say
from graphmem.compose.extracting import extract
from graphmem.config import DEFAULT
from graphmem.core.checkpoints import increment_of
from graphmem.core.model import StoredPart
from graphmem.core.tokens import is_stop_token, tokens_of

CHATS = SCRIPTS.parent.parent / "shared" / "data" / "locomo" / "locomo10.json"
TUNED_ON = 5
SEEDS = 10
SHARE = 10  # of which a digest has one part
FACTOR = 1.3
_SENTENCE_END = re.compile(r"(?<=[.!?\n])\s+")
_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")


@dataclass(frozen=True, slots=True)
class Increment:
    """Turns that make one digest. evidence: the places of those that questions name. names: of the two who speak."""

    parts: tuple[StoredPart, ...]
    evidence: tuple[int, ...]
    names: frozenset[str]

    @property
    def size(self) -> int:
        return sum(len(part.text.encode()) for part in self.parts)

    @property
    def limit(self) -> int:
        return self.size // SHARE


Digest = Callable[[Increment], Iterable[str]]


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure so many of the chats, and of these the ones that the writer was tuned on apart from the others."""
    finding = Finding()
    if not CHATS.exists():
        finding.notes.append(f"digest skipped: no {CHATS}: give the chats of LoCoMo there")
        return finding
    chats = list(read(CHATS))
    for size in sizes:
        last = min(size, len(chats))
        for what, of in (
            ("tuned on", range(min(TUNED_ON, last))),
            ("others", range(TUNED_ON, last)),
            ("all", range(last)),
        ):
            if of:
                say(f"digest: chats {of[0]} to {of[-1]}")
                finding.rows.append({"chats": what, "from": of[0], "to": of[-1], **measured(chats, of, turns)})
        for other in ("first", "random"):
            what = f"digests of {last} chats, times what {other} sentences keep"
            finding.musts.append(Must(what, float(finding.rows[-1][f"to_{other}"]), FACTOR, at_most=False))
    return finding


def measured(chats: Sequence[Sequence[Increment]], of: Iterable[int], seeds: int) -> Row:
    increments = [increment for chat in of for increment in chats[chat]]
    times: list[float] = []

    def timed(increment: Increment) -> list[str]:
        started = time.perf_counter()
        lines = extracted(increment)
        times.append(time.perf_counter() - started)
        return lines

    share = kept(increments, timed)
    others = {
        "first": kept(increments, first_sentences),
        "first_of_turns": kept(increments, first_of_turns),
        "random": statistics.mean(kept(increments, random_sentences(seed)) for seed in range(seeds)),
    }
    return {
        "increments": len(increments),
        "text_bytes": sum(increment.size for increment in increments),
        "evidence_turns": sum(len(increment.evidence) for increment in increments),
        "kept": round(share, 4),
        **{name: round(other, 4) for name, other in others.items()},
        **{f"to_{name}": round(share / other, 3) for name, other in others.items()},
        "digest_ms": round(1000 * statistics.median(times), 1),
    }


# ---- chats


def read(path: Path) -> Iterator[list[Increment]]:
    """Yield the increments of each chat; the caption of a shared picture is part of what was said."""
    chats = json.loads(path.read_text("utf-8"))
    for chat, parts in zip(chats, turns_of(path), strict=True):
        told = " ".join(str(piece) for question in chat["qa"] for piece in question.get("evidence") or ())
        evidence = {f"D{session}:{turn}" for session, turn in _EVIDENCE.findall(told)}
        names = frozenset(token for part in parts for token in tokens_of(part.author))
        yield [
            Increment(tuple(increment), tuple(n for n, part in enumerate(increment) if part.part in evidence), names)
            for increment in increments_of(parts)
        ]


def turns_of(path: Path) -> list[list[StoredPart]]:
    """Return what was said in each chat, in order."""
    found = []
    for chat in json.loads(path.read_text("utf-8")):
        talk = chat["conversation"]
        turns = [turn for number in range(1, 60) for turn in talk.get(f"session_{number}") or ()]
        found.append([
            StoredPart(
                number, turn["dia_id"], chat["sample_id"], "", "", turn["speaker"], "user", "", "", said(turn), ""
            )
            for number, turn in enumerate(turns, 1)
        ])  # fmt: skip
    return found


def said(turn: Mapping[str, str]) -> str:
    caption = turn.get("blip_caption")
    return turn.get("text", "") + (f" [shares {caption}]" if caption else "")


def increments_of(parts: Sequence[StoredPart]) -> Iterator[Sequence[StoredPart]]:
    """Yield parts in runs, as a checkpoint reads them."""
    while parts:
        increment = increment_of(parts, DEFAULT.checkpoint_input_bytes, DEFAULT.extract_max_messages)
        yield increment.parts
        parts = parts[len(increment.parts) :]


# ---- digests


def extracted(increment: Increment) -> list[str]:
    return [line for lines in extract(increment.parts, limit=increment.limit).values() for line in lines]


def first_sentences(increment: Increment) -> list[str]:
    return fitting(sentences(increment), increment.limit)


def first_of_turns(increment: Increment) -> list[str]:
    return fitting((_SENTENCE_END.split(part.text.strip())[0] for part in increment.parts), increment.limit)


def random_sentences(seed: int) -> Digest:
    def draw(increment: Increment) -> list[str]:
        drawn = sentences(increment)
        random.Random(seed).shuffle(drawn)
        return fitting(drawn, increment.limit)

    return draw


def sentences(increment: Increment) -> list[str]:
    return [one for part in increment.parts for one in _SENTENCE_END.split(part.text.strip()) if one]


def fitting(lines: Iterable[str], limit: int) -> list[str]:
    """Return the lines that still have room, in order, within so many bytes with their line ends."""
    found: list[str] = []
    for line in lines:
        size = len(line.encode()) + 1
        if size <= limit:
            limit -= size
            found.append(line)
    return found


# ---- what is kept


def content_words(text: str) -> frozenset[str]:
    return frozenset(token for token in tokens_of(text) if not is_stop_token(token))


def kept(increments: Iterable[Increment], digest: Digest) -> float:
    """Return the share of the content words of evidence turns that digests keep, the mean over these turns."""
    shares = []
    for increment in increments:
        lines = "".join(f"{line}\n" for line in digest(increment))
        assert len(lines.encode()) <= increment.limit, "a digest is longer than its share"
        held = content_words(lines)
        for place in increment.evidence:
            wanted = content_words(increment.parts[place].text) - increment.names
            if wanted:
                shares.append(len(wanted & held) / len(wanted))
    return statistics.mean(shares) if shares else 0.0
