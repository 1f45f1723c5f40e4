"""recall: what scenes bring back, below a prefix and as the store grows around it. brief: against its recalls."""

import random
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import Finding, Must, Row, Work, in_blocks, median, ratio, say, summary
from benchmarks.seeds import (
    AT,
    SEED,
    SESSION,
    VISITS,
    Speech,
    bare,
    bulk,
    fill_refs,
    fill_scenes,
    fill_texts,
    put_facts,
    put_names,
    put_refs,
    words,
)
from graphmem import Memory, Situation
from graphmem.compose.brief import _RECALLED
from graphmem.core.keys import kind_of
from graphmem.store.postings import posting

TURNS = 160
LIMIT = 8
HALL = "chan:hall"
GUESTS = 1000
FACTS = 50  # of a guest; with the names at their ends a hundred refs
SECONDS = 40.0
BRIEF_SECONDS = 30.0
HOST = Situation.of(chan="lobby", peer="host", topics=words(1)[:3], at=AT)

# As many rows of each kind as a recall returns: the keys, the heaviest facts with names and sentences, the names.
_KEYS = "SELECT key FROM scenes WHERE key = ? OR (key >= ? AND key < ?) ORDER BY key"
_FACTS = """
    SELECT r.id, a.name, r.relation_type, b.name, t.text, r.confidence, ref.weight, r.updated_at,
           r.valid_from, r.valid_to
    FROM scenes s CROSS JOIN scene_refs ref JOIN relations r ON r.id = ref.ref_id
    JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
    LEFT JOIN sentences t ON t.id = ref.sentence_id
    WHERE (s.key = ? OR (s.key >= ? AND s.key < ?)) AND ref.scene_id = s.id AND ref.kind = 'relation'
        AND r.status = 'active'
    ORDER BY ref.weight DESC, r.updated_at DESC, r.id DESC LIMIT ?
"""
_NAMES = """
    SELECT e.id, e.name, e.type, e.mention_count, MAX(ref.weight)
    FROM scenes s CROSS JOIN scene_refs ref JOIN entities e ON e.id = ref.ref_id
    WHERE (s.key = ? OR (s.key >= ? AND s.key < ?)) AND ref.scene_id = s.id AND ref.kind = 'entity'
    GROUP BY e.id ORDER BY 5 DESC, 4 DESC, 1 DESC LIMIT ?
"""


def floor(db: sqlite3.Connection, key: str, limit: int) -> tuple[list[str], list[tuple], list[tuple]]:
    """Fetch what recall_by_scene returns of a key by bare joins: the keys, the heaviest facts, the heaviest names."""
    below = (key, key + "/", key + "0")
    return (
        [found for (found,) in db.execute(_KEYS, below)],
        db.execute(_FACTS, (*below, limit)).fetchall(),
        db.execute(_NAMES, (*below, limit)).fetchall(),
    )


def guest(n: int) -> str:
    return f"{HALL}/peer:guest{n}"


def fill_hall(db: sqlite3.Connection, guests: int) -> None:
    """Write declared scenes below one prefix, each with a hundred refs, and a grown one with as many."""
    rng = random.Random(SEED)
    pool = 5 * FACTS
    (scene, entity, fact) = (
        db.execute(f"SELECT COALESCE(MAX(id), 0) + 1 FROM {table}").fetchone()[0]
        for table in ("scenes", "entities", "relations")
    )
    put_names(db, entity, [*(f"guest {n}" for n in range(guests + 1)), *(f"thing {n}" for n in range(pool))])
    db.executemany(
        "INSERT INTO scenes(id, key, origin, created_at, updated_at) VALUES (?, ?, 'declared', ?, ?)",
        ((scene + n, guest(n), AT, AT) for n in range(guests)),
    )
    db.executemany(
        "INSERT INTO scene_features(scene_id, feature, weight, posted) VALUES (?, ?, ?, NULL)",
        (
            (scene + n, feature, weight)
            for n in range(guests)
            for feature, weight in (("chan:hall", 1.0), (f"peer:guest{n}", 1.2))
        ),
    )
    lobby = scene + guests
    db.execute(
        """INSERT INTO scenes(id, key, strength, visits, origin, created_at, updated_at)
           VALUES (?, 'auto:peer:host_chan:lobby', ?, ?, 'emergent', ?, ?)""",
        (lobby, VISITS, VISITS, AT, AT),
    )
    db.executemany(
        "INSERT INTO scene_features(scene_id, feature, weight, mass, touched, posted) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (lobby, feature, weight, weight * VISITS, VISITS, posting(kind_of(feature), people=1, channels=1.0))
            for feature, weight in sorted(HOST.weights.items())
        ),
    )

    def things(n: int) -> list[int]:
        """The targets of a guest's facts: one is named twice, so a guest and its facts make a hundred refs."""
        return [entity + guests + 1 + (n * 31 + min(k, FACTS - 2)) % pool for k in range(FACTS)]

    put_facts(
        db,
        fact,
        (
            (entity + n, f"likes {k}", thing, f"guest {n} said something about thing {thing} and {k} others")
            for n in range(guests + 1)
            for k, thing in enumerate(things(n))
        ),
    )
    put_refs(
        db,
        (
            (scene + n, kind, ref, rng.randint(100, 1000) / 1000)
            for n in range(guests + 1)
            for kind, refs in (
                ("relation", range(fact + n * FACTS, fact + (n + 1) * FACTS)),
                ("entity", [entity + n, *things(n)[:-1]]),
            )
            for ref in refs
        ),
    )


def fill(path: Path, scenes: int, guests: int) -> None:
    with bulk(path) as db:
        fill_scenes(db, scenes)
        fill_refs(db, range(1, scenes + 1), max(scenes // 5, 1))
        fill_hall(db, guests)


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure recalls by scene below a prefix, of one key and by situation, in a store that grows around them."""
    finding = Finding()
    for scenes in sizes:
        guests = min(GUESTS, max(scenes, 8))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            say(f"recall: filling {scenes} scenes")
            fill(path, scenes, guests)
            say(f"recall: among {scenes} scenes")
            row = {"scenes": scenes, "below": guests, "refs_below": refs_below(path), **_recalls(path, guests, turns)}
        finding.rows.append(row)
        if guests == GUESTS:
            below = f"{guests} scenes and {row['refs_below']} refs below"
            what = f"recall_by_scene, {below}, among {scenes} scenes, times the bare joins"
            finding.musts.append(Must(what, float(row["to_floor"]), 4.0, to_floor=True))
    if all(row["below"] == GUESTS for row in finding.rows):  # else the prefix has grown with the store
        finding.growth_of("recall_by_scene, a prefix", "scenes", "prefix_us", 0.25)
        finding.growth_of("bare joins of the prefix", "scenes", "floor_us", is_floor=True)
    finding.growth_of("recall_by_scene, one key", "scenes", "key_us", 0.25)
    finding.growth_of("recall_by_situation", "scenes", "situation_us", 0.25)
    return finding


def refs_below(path: Path) -> int:
    with bare(path) as db:
        below = "SELECT id FROM scenes WHERE key >= ? AND key < ?"
        (refs,) = db.execute(
            f"SELECT COUNT(*) FROM scene_refs WHERE scene_id IN ({below})", (HALL + "/", HALL + "0")
        ).fetchone()
    return int(refs)


def _recalls(path: Path, guests: int, turns: int) -> Row:
    rng = random.Random(SEED)
    with bare(path) as db, Memory.open(path) as memory:

        def one_of(act: Callable[[str], object]) -> Work:
            def ready() -> Callable[[], object]:
                key = guest(rng.randrange(guests))
                return lambda: act(key)

            return ready

        works: dict[str, Work] = {
            "prefix": lambda: lambda: memory.recall_by_scene(HALL, limit=LIMIT),
            "prefix floor": lambda: lambda: floor(db, HALL, LIMIT),
            "key": one_of(lambda key: memory.recall_by_scene(key, limit=LIMIT)),
            "key floor": one_of(lambda key: floor(db, key, LIMIT)),
            "situation": lambda: lambda: memory.recall_by_situation(HOST, limit=LIMIT),
        }
        times = in_blocks(works, measured=turns, warm_up=4, seconds=SECONDS)
        assert memory.recall_by_situation(HOST, limit=LIMIT).relations, "the situation found nothing"
    return {
        **{name.replace("median", "prefix"): value for name, value in summary(times["prefix"]).items()},
        "floor_us": median(times["prefix floor"]),
        "to_floor": ratio(times["prefix"], times["prefix floor"]),
        "key_us": median(times["key"]),
        "key_floor_us": median(times["key floor"]),
        "key_to_floor": ratio(times["key"], times["key floor"]),
        "situation_us": median(times["situation"]),
    }


def run_brief(sizes: Sequence[int], turns: int) -> Finding:
    """Measure a brief, and the two recalls that are made inside it, in a store of so many scenes and texts."""
    finding = Finding()
    speech = Speech()
    for size in sizes:
        guests = min(GUESTS // 10, size)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            say(f"brief: filling {size} scenes and texts")
            fill(path, size, guests)
            fill_texts(path, size, speech)
            say(f"brief: among {size} scenes and texts")
            times = _briefs(path, guests, speech.lines(1, min(size, SESSION)), turns)
        row: Row = {
            "size": size,
            **summary(times["brief"]),
            "recalls_us": median(times["recalls"]),
            "to_recalls": ratio(times["brief"], times["recalls"]),
        }
        finding.rows.append(row)
        what = f"brief among {size} scenes and texts, times the recalls inside it"
        finding.musts.append(Must(what, float(row["to_recalls"]), 1.5, to_floor=True))
    finding.growth_of("brief", "size", "median_us")
    finding.growth_of("the recalls inside it", "size", "recalls_us", is_floor=True)
    return finding


def _briefs(path: Path, guests: int, known: Sequence[str], turns: int) -> dict[str, list[float]]:
    with Memory.open(path) as memory:

        def asking(act: Callable[[str, str], object]) -> Work:
            rng = random.Random(SEED)  # each asks the same

            def ready() -> Callable[[], object]:
                query = " ".join(rng.sample(rng.choice(known).split(), 3))
                key = guest(rng.randrange(guests))
                return lambda: act(query, key)

            return ready

        def recalls(query: str, key: str) -> None:
            memory.recall_by_situation(HOST, declared=[key], limit=_RECALLED)
            memory.recall(query, situation=HOST)

        def brief(query: str, key: str) -> None:
            assert memory.brief(HOST, query=query, declared=[key]).text

        works = {"brief": asking(brief), "recalls": asking(recalls)}
        return in_blocks(works, measured=turns, warm_up=8, seconds=BRIEF_SECONDS)
