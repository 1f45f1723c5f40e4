"""mirror: long chats word for word, against bare inserts of the same rows and tokens, and what screening costs.

The chats of LoCoMo (../shared/data/README.md), each a session. Mirrored without looking for secrets, as the floor does
not either, and with it; each time into a fresh file. What comes back is compared byte for byte, and told again it is to
add nothing.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.digesting import CHATS, turns_of
from benchmarks.measure import Finding, Must, say
from benchmarks.seeds import AT, bare, put_session
from graphmem import Memory, Part
from graphmem.core.tokens import tokens_of

ROUNDS = 3


def run(sizes: Sequence[int], rounds: int) -> Finding:
    """Measure so many of the chats, each round into files of its own."""
    finding = Finding()
    if not CHATS.exists():
        finding.notes.append(f"mirror skipped: no {CHATS}: give the chats of LoCoMo there")
        return finding
    for size in sizes:
        chats = [[Part(part.part, author=part.author, role="user", text=part.text) for part in chat]
                 for chat in turns_of(CHATS)[:size]]  # fmt: skip
        # What the stemmer remembers of the words then serves all alike.
        for chat in chats:
            for part in chat:
                tokens_of(part.text)
        spent: dict[str, list[float]] = {"raw": [], "floor": [], "screened": []}
        exact = added_again = 0
        for number in range(rounds + 1):
            say(f"mirror: {len(chats)} chats, round {number} of {rounds}")
            with tempfile.TemporaryDirectory() as folder:
                for name, act in _acts(Path(folder), chats).items():
                    started = time.perf_counter()
                    act()
                    if number:  # the first round loads what the verb needs
                        spent[name].append(time.perf_counter() - started)
                exact, added_again = _checked(Path(folder) / "raw.db", chats)
        raw, floor, screened = (statistics.median(spent[name]) for name in ("raw", "floor", "screened"))
        parts = sum(map(len, chats))
        finding.rows.append(
            {
                "chats": len(chats),
                "parts": parts,
                "parts_a_second": round(parts / raw),
                "floor_a_second": round(parts / floor),
                "of_floor": round(floor / raw, 2),
                "screened_a_second": round(parts / screened),
                "exact": exact,
                "added_again": added_again,
            }
        )
        finding.musts += [
            Must(f"mirror of {len(chats)} chats, rate as a share of the floor", floor / raw, 0.5, at_most=False),
            Must(f"share of {parts} parts that come back byte for byte", exact / parts, 1.0, at_most=False),
            Must("parts that a second run adds", added_again, 0),
        ]
    return finding


def _acts(folder: Path, chats: Sequence[Sequence[Part]]) -> dict[str, Callable[[], None]]:
    def mirrored(name: str, *, redact: bool) -> Callable[[], None]:
        Memory.open(folder / name).close()

        def act() -> None:
            with Memory.open(folder / name) as memory:
                for number, chat in enumerate(chats, 1):
                    memory.mirror(f"session {number}", chat, at=AT, redact=redact)

        return act

    def floor() -> None:
        with bare(folder / "floor.db") as db:
            for number, chat in enumerate(chats, 1):
                put_session(db, number, [part.text for part in chat])

    Memory.open(folder / "floor.db").close()
    return {
        "raw": mirrored("raw.db", redact=False),
        "floor": floor,
        "screened": mirrored("screened.db", redact=True),
    }


def _checked(path: Path, chats: Sequence[Sequence[Part]]) -> tuple[int, int]:
    """Return how many parts come back as they were, and how many are new when all is told again."""
    with Memory.open(path) as memory:
        exact = sum(
            memory.part(part.id, session=f"session {number}").text == part.text
            for number, chat in enumerate(chats, 1)
            for part in chat
        )
        added = sum(
            memory.mirror(f"session {number}", chat, redact=False).added for number, chat in enumerate(chats, 1)
        )
    return exact, added
