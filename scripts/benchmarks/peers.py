"""--against peers: one write and one search at 10 000 items, each peer's own work done by it and by graphmem.

The drivers are those of the folder of peers and run as they are; graphmem is given the same items in the same run.
"""

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from benchmarks.measure import SCRIPTS, Finding, Must, Row, in_blocks, median, say
from benchmarks.seeds import SEED, bulk, fill_scenes, key_of, plain_scene, situation
from graphmem import Memory, Situation, Triple

ITEMS = 10_000
TURNS = 200
_MCP_TIMES_AS_FAST = 20.0
_REFERENCE_TURNS = 40
_BATCH = 1000
_SERVER = Path("node_modules/@modelcontextprotocol/server-memory/dist/index.js")
_MEM0 = Path("mem0/bin/python")


@dataclass(frozen=True, slots=True)
class Places:
    """Where peers are: the folder of their drivers, and the folder they are installed in."""

    drivers: Path
    installed: Path

    def how_to_install(self) -> Mapping[str, str]:
        """What to type for each, from any folder."""
        return {
            "reference": f"give the folder of scenebench.py and peers/ by --peers (looked for: {self.drivers})",
            "mcp": f"install node, then: npm install --prefix {self.installed} @modelcontextprotocol/server-memory",
            "mem0": f"python3 -m venv {self.installed / 'mem0'} && "
            f"{self.installed / 'mem0/bin/pip'} install mem0ai faiss-cpu langchain-core",
        }


def default_places() -> Places:
    drivers = SCRIPTS.parent.parent / "shared" / "bench" / "peers"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Places(drivers, cache / "graphmem-bench")


@dataclass(slots=True)
class _Race:
    """What one peer and graphmem took for the same work, medians in microseconds."""

    peer: str
    items: int
    theirs: tuple[float, float]
    ours: tuple[float, float]
    rss_mib: float | str = ""

    def row(self) -> Row:
        (write, search), (our_write, our_search) = self.theirs, self.ours
        return {
            "peer": self.peer, "items": self.items,
            "write_us": round(write, 1), "search_us": round(search, 1),
            "graphmem_write_us": our_write, "graphmem_search_us": our_search,
            "write_times": round(write / our_write, 2), "search_times": round(search / our_search, 2),
            "peer_rss_mib": self.rss_mib,
        }  # fmt: skip


@dataclass(slots=True)
class _Peers:
    places: Places
    items: int
    turns: int
    finding: Finding = field(default_factory=Finding)

    def missing(self, what: str, why: str) -> None:
        self.finding.notes.append(f"{what} skipped: {why}: {self.places.how_to_install()[what]}")


def run(places: Places, items: int, turns: int) -> Finding:
    """Race every peer that is installed."""
    peers = _Peers(places, items, turns)
    races: dict[str, _Race] = {}
    for name, race in (("reference", _reference), ("mcp", _mcp), ("mem0", _mem0)):
        for found in race(peers):
            races[found.peer] = found
            peers.finding.rows.append(found.row())
        if name == "reference" and not races:
            return peers.finding  # without the folder there are no drivers either
    musts = peers.finding.musts
    if (mcp := races.get("mcp")) is not None:
        for verb, theirs, ours in zip(("write", "search"), mcp.theirs, mcp.ours, strict=True):
            what = f"one {verb} at {mcp.items} items, times as fast as the MCP server"
            musts.append(Must(what, theirs / ours, _MCP_TIMES_AS_FAST, at_most=False))
    backends = [race for name, race in races.items() if name.startswith("mem0")]
    for place, verb in enumerate(("write", "search")):
        if backends:
            best = _best(backends, place)
            what = f"one {verb} at {best.items} items, times as fast as the better of {_names(backends)}, {best.peer}"
            musts.append(Must(what, best.theirs[place] / best.ours[place], 1.0, at_most=False))
    peers.finding.notes.append(
        "what they do differs: the reference keeps nothing on disk, mem0 has a hash for a model, the server no index; "
        "each row is one kind of items, done by the peer and by graphmem"
    )
    return peers.finding


def _best(races: Sequence[_Race], place: int) -> _Race:
    return min(races, key=lambda race: race.theirs[place])


def _names(races: Sequence[_Race]) -> str:
    return " and ".join(race.peer for race in races)


def _load(path: Path) -> ModuleType | None:
    """Return a module of the folder of peers; it is imported where it lies."""
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location(f"peer_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


# ---- the reference's own algorithm


def _reference(peers: _Peers) -> Iterator[_Race]:
    """Enter and recall at so many scenes: the full scan in memory, and graphmem on its file."""
    scenebench = _load(peers.places.drivers.parent / "scenebench.py")
    if scenebench is None:
        peers.missing("reference", "no scenebench.py")
        return
    say(f"peers: the reference's full scan at {peers.items} scenes")
    rng = random.Random(SEED)
    engine = scenebench.UnionEngine()
    for i in range(peers.items):
        engine.scenes[key_of(i)] = engine._weights([*plain_scene(i).items(), *_words(i)])
        engine.rules[key_of(i)].append(f"rule {i}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        with bulk(path) as db:
            fill_scenes(db, peers.items)
        with Memory.open(path) as memory:

            def theirs(act: Callable[[list[tuple[str, str]]], object]) -> Callable[[], Callable[[], object]]:
                def ready() -> Callable[[], object]:
                    given = situation(rng, rng.randrange(peers.items)).given
                    features = [(feature.kind, feature.value) for feature in given]
                    return lambda: act(features)

                return ready

            def ours(act: Callable[[Situation], object]) -> Callable[[], Callable[[], object]]:
                def ready() -> Callable[[], object]:
                    here = situation(rng, rng.randrange(peers.items))
                    return lambda: act(here)

                return ready

            slow = {"enter": theirs(engine.enter), "recall": theirs(lambda features: engine.recall(features, 8))}
            fast = {"enter": ours(memory.enter_scene), "recall": ours(lambda here: memory.recall_by_situation(here))}
            times = in_blocks(
                {**{f"their {name}": work for name, work in slow.items()}, **fast},
                measured=min(peers.turns, _REFERENCE_TURNS), warm_up=2,
            )  # fmt: skip
    yield _Race(
        "reference", peers.items,
        (median(times["their enter"]), median(times["their recall"])),
        (median(times["enter"]), median(times["recall"])),
    )  # fmt: skip


def _words(i: int) -> list[tuple[str, str]]:
    return [(feature.kind, feature.value) for feature in situation(random.Random(i), i).given][-4:]


# ---- drivers


def _told(peers: _Peers, command: Sequence[str], **environment: str) -> list[dict[str, object]]:
    """Run a driver as it is; return what it printed, one document a line. What it leaves behind is removed."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder,
            env={**os.environ, "TMPDIR": folder, **environment},
        )  # fmt: skip
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
        peers.finding.notes.append(f"{Path(command[1]).name} failed: {''.join(last)[:300]}")
        return []
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def _mcp(peers: _Peers) -> Iterator[_Race]:
    """One entity with an observation, and one word looked for, among entities with two relations each."""
    node, server = shutil.which("node"), peers.places.installed / _SERVER
    if node is None or not server.exists():
        peers.missing("mcp", "no node" if node is None else f"no {server}")
        return
    say(f"peers: the MCP knowledge-graph server at {peers.items} items")
    driver = str(peers.places.drivers / "mcp_server_memory.py")
    told = _told(peers, [sys.executable, driver, str(peers.items)], SERVER_MEMORY=str(server))
    found = next((one for one in told if one["bench"] == "1.ops"), None)
    if found is None:
        return
    say("peers: the same by graphmem")
    ours = _mcp_work(peers, _words_of(peers))
    theirs = (found["create_entity"]["p50"] * 1000, found["search"]["p50"] * 1000)
    yield _Race("mcp", peers.items, theirs, ours, found["rss_mb"])


def _words_of(peers: _Peers) -> list[str]:
    common = _load(peers.places.drivers / "common.py")
    assert common is not None
    found: list[str] = common.words()
    return found


def _mcp_work(peers: _Peers, words: Sequence[str]) -> tuple[float, float]:
    """The driver's entities, observations and relations as facts: one more written, one of its words looked for."""
    rng = random.Random(1)
    kinds = ("person", "project", "tool", "topic")
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "bench.db") as memory:
        told = [
            Triple(f"ent_{i}", "is", kinds[i % 4], sentence=" ".join(rng.choice(words) for _ in range(8)))
            for i in range(peers.items)
        ]
        told += [
            Triple(f"ent_{i}", relation, f"ent_{rng.randrange(peers.items)}")
            for i in range(peers.items)
            for relation in ("uses", "knows")
        ]
        for start in range(0, len(told), _BATCH):
            memory.commit(told[start : start + _BATCH], scenes="chan:bench")
        numbers = iter(range(10**9))

        def writing() -> Callable[[], object]:
            fact = Triple(f"new_{next(numbers)}", "is", "t", sentence="hello world obs")
            return lambda: memory.commit([fact], scenes="chan:bench")

        def searching() -> Callable[[], object]:
            word = rng.choice(words[:5000])
            return lambda: memory.recall(word)

        times = in_blocks({"write": writing, "search": searching}, measured=peers.turns)
        assert memory.recall(told[0].sentence), "nothing is found"
    return median(times["write"]), median(times["search"])


def _mem0(peers: _Peers) -> Iterator[_Race]:
    """One text of ten words, and three words looked for, among texts that were added one by one."""
    python = peers.places.installed / _MEM0
    if not python.exists():
        peers.missing("mem0", f"no {python}")
        return
    words = _words_of(peers)[:5000]
    driver = str(peers.places.drivers / "mem0_floor.py")
    for store in ("qdrant", "faiss"):
        say(f"peers: mem0 over {store} at {peers.items} items, a few minutes")
        told = _told(peers, [str(python), driver, store, str(peers.items)])
        by_name = {str(one["bench"]): one for one in told}
        if not {"3.add", "3.search"} <= by_name.keys():
            continue
        items = int(str(by_name["3.search"]["N"]))
        if items < peers.items:
            peers.finding.notes.append(f"mem0 over {store}: {items} items, all that it added in the time of its driver")
        say(f"peers: the same {items} by graphmem")
        theirs = (by_name["3.add"]["last200_p50"] * 1000, by_name["3.search"]["p50"] * 1000)
        yield _Race(f"mem0 {store}", items, theirs, _mem0_work(peers, items, words), by_name["3.search"]["rss_mb"])


def _mem0_work(peers: _Peers, items: int, words: Sequence[str]) -> tuple[float, float]:
    """The driver's texts as notes, one by one; the last ones count, as they do there."""
    rng = random.Random(5)
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "bench.db") as memory:

        def text(length: int) -> str:
            return " ".join(rng.choice(words) for _ in range(length))

        for _ in range(items - peers.turns):
            memory.remember(text(10))

        def writing() -> Callable[[], object]:
            line = text(10)
            return lambda: memory.remember(line)

        def searching() -> Callable[[], object]:
            query = text(3)
            return lambda: memory.recall(query)

        write = in_blocks({"write": writing}, measured=peers.turns, warm_up=0)["write"]
        search = in_blocks({"search": searching}, measured=peers.turns)["search"]
    return median(write), median(search)
