"""Seeded data: scenes, turns, facts and texts that are the same in every run, written in bulk as graphmem would."""

import contextlib
import functools
import hashlib
import itertools
import random
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from graphmem import Config, Memory, Situation
from graphmem.core.keys import kind_of
from graphmem.core.tokens import tokens_of
from graphmem.store.postings import posting

AT = "2026-09-07T08:00:00.000Z"
SEED = 20260907
VOCABULARY = 2000
VISITS = 10
CONFIG = Config()
# What a line of the text index is numbered by, as graphmem.store.text_index has it.
KINDS = {"scene": 0, "relation": 1, "sentence": 2, "entity": 3, "note": 4, "part": 5}
_CACHE_KIB = 256 << 10


def passage(kind: str, ref_id: int) -> int:
    """Return the number of the first passage of a text in the text index."""
    return KINDS[kind] << 60 | ref_id << 10


def line_of(tokens: Iterable[str]) -> str:
    """Return tokens as the text index holds them."""
    return "".join(f" {token} " for token in tokens)


@contextlib.contextmanager
def bulk(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that fills a new memory: no journal, no syncs, and indexes made after all rows."""
    Memory.open(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "ignore_check_constraints = ON"):
            db.execute(f"PRAGMA {setting}").fetchall()
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
        for name, _ in indexes:
            db.execute(f"DROP INDEX {name}")
        db.execute("BEGIN")
        yield db
        db.execute("COMMIT")
        for _, sql in indexes:
            db.execute(sql)
        db.execute("PRAGMA journal_mode = WAL").fetchall()


@contextlib.contextmanager
def bare(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection with the settings of graphmem's own and nothing around it, as floors use it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, cached_statements=256)) as db:
        # On a shared file who copies the -wal sooner does it for the other as well.
        settings = "journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"
        for setting in (*settings, "wal_autocheckpoint = 4000", "cache_size = -8000"):
            db.execute(f"PRAGMA {setting}").fetchall()
        yield db


# ---- scenes


def plain_scene(i: int) -> dict[str, str]:
    """The identity of one scene: two in three name a person, half of all have a tool, of which there are twenty."""
    if i % 3:
        named = {"peer": f"p{i}", "chan": f"c{i % 200}"}
        return named | {"tool": f"t{i % 20}"} if i % 2 else named
    return {"chan": f"room{i}", "tool": f"t{i % 20}"} if i % 2 else {"chan": f"room{i}"}


def words(i: int) -> list[str]:
    return [f"w{(i * 977 + word * 131) % VOCABULARY}" for word in range(12)]


def turn_topics(rng: random.Random, i: int) -> list[str]:
    """Three of the dozen words that a scene is about; one turn in ten brings a word from elsewhere."""
    topics = rng.sample(words(i), 3)
    if rng.random() < 0.1:
        topics[0] = f"w{rng.randrange(VOCABULARY)}"
    return topics


def situation(rng: random.Random, i: int) -> Situation:
    """One turn of a scene."""
    return Situation.of(**plain_scene(i), topics=turn_topics(rng, i), part=rng.choice(["morning", "evening"]), at=AT)


def key_of(i: int) -> str:
    """The key of the scene that grows of such turns."""
    first, second = itertools.islice(itertools.chain(plain_scene(i).items(), [("", "")]), 2)
    return f"auto:{first[0]}:{first[1]}" + (f"_{second[0]}:{second[1]}" if second[0] else "")


@functools.cache
def _words_of(start: int) -> list[tuple[str, float, float]]:
    topic, part = CONFIG.weight_of("topic"), CONFIG.weight_of("part")
    own = [(f"topic:{word}", topic / 3, topic * VISITS / 12) for word in words(start)]
    return own + [(f"part:{name}", part, part * VISITS / 2) for name in ("morning", "evening")]


def _features(i: int) -> list[tuple[str, float, float]]:
    """Feature, weight and mass of a scene after ten visits, in which each of its words was met two or three times."""
    weigh = CONFIG.weight_of
    own = [(f"{kind}:{value}", weigh(kind), weigh(kind) * VISITS) for kind, value in plain_scene(i).items()]
    return sorted(own + _words_of(i % VOCABULARY))  # in the order of the table, which is then only appended to


def scene_rows(scenes: int) -> Iterator[tuple[object, ...]]:
    """Rows of grown scenes of ten visits each: id, key, strength, visits, origin, created_at, updated_at."""
    return ((i + 1, key_of(i), VISITS, VISITS, "emergent", AT, AT) for i in range(scenes))


def feature_rows(scenes: int) -> Iterator[tuple[object, ...]]:
    """Rows of their features: scene_id, feature, weight, mass, touched, posted."""
    channel = CONFIG.weight_of("chan")
    return (
        (i + 1, feature, weight, mass, VISITS, posting(kind_of(feature), people=min(i % 3, 1), channels=channel))
        for i in range(scenes)
        for feature, weight, mass in _features(i)
    )


def fill_scenes(db: sqlite3.Connection, scenes: int) -> None:
    """Write grown scenes. The text index does not get their keys, which no turn looks at."""
    db.executemany(
        """INSERT INTO scenes(id, key, strength, visits, origin, created_at, updated_at)
           VALUES (?, ?, ?, ?, ?, ?, ?)""",
        scene_rows(scenes),
    )
    db.executemany(
        "INSERT INTO scene_features(scene_id, feature, weight, mass, touched, posted) VALUES (?, ?, ?, ?, ?, ?)",
        feature_rows(scenes),
    )


def fill(path: Path, scenes: int) -> None:
    """Make a memory of grown scenes."""
    with bulk(path) as db:
        fill_scenes(db, scenes)


# ---- facts


def put_names(db: sqlite3.Connection, first: int, names: Iterable[str]) -> None:
    db.executemany(
        "INSERT INTO entities(id, name, key, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
        ((i, name, name, AT, AT) for i, name in enumerate(names, first)),
    )


def put_facts(db: sqlite3.Connection, first: int, facts: Iterable[tuple[int, str, int, str]]) -> None:
    """Write facts, each a source, a relation, a target and the sentence that told it; ids count from `first`."""
    told = list(facts)
    db.executemany(
        "INSERT INTO sentences(id, hash, text, created_at) VALUES (?, ?, ?, ?)",
        ((i, hashlib.sha256(text.encode()).digest(), text, AT) for i, (*_, text) in enumerate(told, first)),
    )
    db.executemany(
        """INSERT INTO relations(id, source_id, relation_type, relation_key, target_id, confidence, sentence_id,
                                 recorded_at, updated_at) VALUES (?, ?, ?, ?, ?, 0.8, ?, ?, ?)""",
        ((i, source, name, name, target, i, AT, AT) for i, (source, name, target, _) in enumerate(told, first)),
    )
    db.executemany(
        "INSERT INTO evidence(relation_id, sentence_id, source_key, target_key, at) VALUES (?, ?, ?, ?, ?)",
        ((i, i, f"source {source}", f"target {target}", AT) for i, (source, _, target, _) in enumerate(told, first)),
    )


def put_refs(db: sqlite3.Connection, refs: Iterable[tuple[int, str, int, float]]) -> None:
    """Attach by scene, kind, id and weight; the sentence of a fact has its number."""
    db.executemany(
        """INSERT OR IGNORE INTO scene_refs(scene_id, kind, ref_id, sentence_id, weight, decayed_at, created_at)
           VALUES (?, ?, ?, ?, ?, ?, ?)""",
        ((scene, kind, ref, ref if kind == "relation" else None, weight, AT, AT) for scene, kind, ref, weight in refs),
    )


def fill_refs(db: sqlite3.Connection, scenes: Sequence[int], facts: int) -> None:
    """Attach one of a number of new facts, with the names at its ends, to each scene."""
    put_names(db, 1, (f"name {i}" for i in range(2 * facts)))
    put_facts(db, 1, ((2 * i + 1, "uses", 2 * i + 2, f"name {2 * i} uses name {2 * i + 1}") for i in range(facts)))
    put_refs(
        db,
        (
            (scene, kind, ref, 1.0)
            for scene in scenes
            for fact in [scene % facts]
            for kind, ref in (("relation", fact + 1), ("entity", 2 * fact + 1), ("entity", 2 * fact + 2))
        ),
    )


# ---- texts

SESSION = 1000


class Speech:
    """Short texts of a dozen words as often as words are in a language; text n is the same in every run."""

    def __init__(self) -> None:
        rng = random.Random(SEED)
        self.vocabulary = ["".join(rng.choices("abdegiklmnoprstuv", k=rng.randint(4, 9))) for _ in range(30_000)]
        self._weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.vocabulary))))

    def lines(self, session: int, texts: int = SESSION) -> list[str]:
        """The texts of one session."""
        rng = random.Random(f"{SEED} {session}")
        return [" ".join(rng.choices(self.vocabulary, cum_weights=self._weights, k=12)) for _ in range(texts)]


def sizes_of_sessions(texts: int) -> Iterator[tuple[int, int]]:
    """Yield number and size of the sessions that hold so many texts."""
    for session, start in enumerate(range(0, texts, SESSION), 1):
        yield session, min(SESSION, texts - start)


def put_session(db: sqlite3.Connection, session: int, lines: Sequence[str]) -> None:
    """Make the tokens of a session's texts and write its rows, in one transaction: the floor of `mirror`."""
    first = (session - 1) * SESSION + 1
    parts, index = [], []
    for place, line in enumerate(lines):
        tokens = tokens_of(line)
        parts.append((first + place, session, place, str(first + place), line, len(tokens), AT))
        index.append((passage("part", first + place), line_of(tokens)))
    length = sum(part[5] for part in parts)
    db.execute("BEGIN IMMEDIATE")
    db.execute(
        "INSERT INTO sessions(id, name, parts, length, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)",
        (session, f"session {session}", len(lines), length, AT, AT),
    )
    db.executemany(
        "INSERT INTO parts(id, session_id, seq, part, text, length, recorded_at) VALUES (?, ?, ?, ?, ?, ?, ?)", parts
    )
    db.executemany("INSERT INTO text_index(rowid, title, labels, body) VALUES (?, '', '', ?)", index)
    db.execute(
        """INSERT INTO text_sizes(kind, texts, tokens) VALUES (?, ?, ?)
           ON CONFLICT (kind) DO UPDATE SET texts = texts + excluded.texts, tokens = tokens + excluded.tokens""",
        (KINDS["part"], len(lines), length),
    )
    db.execute("COMMIT")


def fill_texts(path: Path, texts: int, speech: Speech) -> None:
    """Write sessions into a memory that is there."""
    with bare(path) as db:
        for session, size in sizes_of_sessions(texts):
            put_session(db, session, speech.lines(session, size))
