"""commit: one fact into three scenes. ingest: facts and texts by the thousand. Against the bare inserts of the same."""

import hashlib
import itertools
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Finding, Must, Row, in_blocks, mebibytes, median, ratio, resident, say, summary
from benchmarks.seeds import AT, KINDS, SEED, SESSION, Speech, bare, line_of, passage, put_session, sizes_of_sessions
from graphmem import Memory, Part, Triple
from graphmem.core.tokens import tokens_of

TURNS = 2000
BATCH = 1000
SCENES = ("chan:desk", "chan:desk/peer:boss", "chan:desk/peer:guest")
_PEOPLE = 200
_RELATIONS = 20


def facts(seed: str, count: int, speech: Speech) -> Iterator[Triple]:
    """Yield facts that are all different: known people, things of which half were named before, a sentence each."""
    rng = random.Random(f"{SEED} {seed}")
    for n, sentence in enumerate(itertools.islice(_sentences(seed, speech), count)):
        thing = f"thing {seed} {n}" if n % 2 == 0 else f"thing {seed} {n - 1}"
        told = f"likes {n % 2} {rng.randrange(_RELATIONS)}"
        yield Triple(f"person {rng.randrange(_PEOPLE)}", told, thing, sentence=f"{sentence} {n}", confidence=0.8)


def _sentences(seed: str, speech: Speech) -> Iterator[str]:
    for batch in itertools.count():
        yield from speech.lines(int(hashlib.sha256(f"{seed} {batch}".encode()).hexdigest()[:12], 16))


class BareFacts:
    """Writes what `commit` writes of facts, by bare statements; tokens, hashes and ids are made beforehand."""

    def __init__(self, db: sqlite3.Connection, scenes: Sequence[str]) -> None:
        self._db = db
        self._scenes = [db.execute("SELECT id FROM scenes WHERE key = ?", (key,)).fetchone()[0] for key in scenes]
        self._keys = json.dumps(scenes)
        self._entities = dict(db.execute("SELECT key, id FROM entities"))
        self._fact, self._sentence, self._entity = (
            db.execute(f"SELECT COALESCE(MAX(id), 0) FROM {table}").fetchone()[0]
            for table in ("relations", "sentences", "entities")
        )

    def ready(self, told: Sequence[Triple]) -> Callable[[], None]:
        """Return the act that writes facts, none of which is known, in one transaction."""
        entities, sentences, relations, evidence, refs, index = [], [], [], [], [], []
        sizes: dict[str, list[int]] = {}

        def indexed(kind: str, ref_id: int, *, title: str = "", body: str = "") -> None:
            head, text = tokens_of(title), tokens_of(body)
            index.append((passage(kind, ref_id), line_of(head), line_of(text)))
            size = sizes.setdefault(kind, [0, 0])
            size[0] += 1
            size[1] += len(head) + len(text)

        for fact in told:
            ends = []
            for name in (fact.subject, fact.object):
                if name not in self._entities:
                    self._entity += 1
                    self._entities[name] = self._entity
                    indexed("entity", self._entity, title=name)
                ends.append(self._entities[name])
                entities.append((ends[-1], name, name, AT, AT))
            self._sentence += 1
            self._fact += 1
            digest = hashlib.sha256(fact.sentence.encode()).digest()
            sentences.append((self._sentence, digest, fact.sentence, AT))
            indexed("sentence", self._sentence, body=fact.sentence)
            relations.append((self._fact, *ends, fact.relation, fact.relation, fact.confidence, self._sentence, AT, AT))
            indexed("relation", self._fact, title=f"{fact.subject} {fact.relation} {fact.object}")
            evidence.append(
                (self._fact, self._sentence, "agent", fact.subject, fact.object, AT, fact.confidence, self._keys)
            )
            refs += [
                (scene, kind, ref, sentence, fact.confidence, AT, AT)
                for scene in self._scenes
                for kind, ref, sentence in (
                    ("relation", self._fact, self._sentence), ("entity", ends[0], None), ("entity", ends[1], None),
                )
            ]  # fmt: skip
        counted = [(KINDS[kind], *size) for kind, size in sizes.items()]
        return lambda: self._write(entities, sentences, relations, evidence, refs, index, counted)

    def _write(self, *rows: Sequence[tuple[object, ...]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for statement, some in zip(_STATEMENTS, rows, strict=True):
            self._db.executemany(statement, some)
        self._db.execute("COMMIT")


_STATEMENTS = (
    """INSERT INTO entities(id, name, key, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET mention_count = mention_count + 1, updated_at = excluded.updated_at""",
    "INSERT INTO sentences(id, hash, text, created_at) VALUES (?, ?, ?, ?)",
    """INSERT INTO relations(id, source_id, target_id, relation_type, relation_key, confidence, sentence_id,
                             recorded_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
    """INSERT INTO evidence(relation_id, sentence_id, source, source_key, target_key, at, confidence, scenes,
                            functional)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)""",
    """INSERT INTO scene_refs(scene_id, kind, ref_id, sentence_id, weight, decayed_at, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (scene_id, kind, ref_id, ref_text) DO UPDATE SET
           weight = MAX(weight, excluded.weight), decayed_at = excluded.decayed_at""",
    "INSERT INTO text_index(rowid, title, labels, body) VALUES (?, ?, '', ?)",
    """INSERT INTO text_sizes(kind, texts, tokens) VALUES (?, ?, ?)
       ON CONFLICT (kind) DO UPDATE SET texts = texts + excluded.texts, tokens = tokens + excluded.tokens""",
)


def twins(folder: Path, scenes: Sequence[str], known: int, speech: Speech) -> tuple[Path, Path]:
    """Make two memories that hold the same scenes and facts."""
    paths = folder / "bench.db", folder / "floor.db"
    for path in paths:
        with Memory.open(path) as memory:
            for key in scenes:
                memory.declare_scene(key)
        with bare(path) as db:
            writer = BareFacts(db, scenes)
            before = facts("known", known, speech)
            while batch := list(itertools.islice(before, BATCH)):
                writer.ready(batch)()
    return paths


def run_commit(sizes: Sequence[int], turns: int) -> Finding:
    """Measure the commit of one fact with its sentence into three scenes, and the bare inserts of it into a twin."""
    finding = Finding()
    speech = Speech()
    for known in sizes:
        with tempfile.TemporaryDirectory() as folder:
            say(f"commit: filling {known} facts")
            path, twin = twins(Path(folder), SCENES, known, speech)
            say(f"commit: beside {known} facts")
            times = _one_by_one(path, twin, turns, speech)
        row: Row = {
            "facts": known,
            **summary(times["commit"]),
            "floor_us": median(times["floor"]),
            "to_floor": ratio(times["commit"], times["floor"]),
        }
        finding.rows.append(row)
        what = f"commit of a fact into three scenes beside {known} facts, times the bare inserts"
        finding.musts.append(Must(what, float(row["to_floor"]), 4.0, to_floor=True))
    finding.growth_of("commit", "facts", "median_us")
    finding.growth_of("floor", "facts", "floor_us", is_floor=True)
    return finding


def _one_by_one(path: Path, twin: Path, turns: int, speech: Speech) -> dict[str, list[float]]:
    for_memory, for_floor = (facts("new", 10**9, speech) for _ in range(2))
    with Memory.open(path) as memory, bare(twin) as db:
        writer = BareFacts(db, SCENES)

        def committing() -> Callable[[], object]:
            fact = next(for_memory)
            return lambda: memory.commit([fact], scenes=SCENES, at=AT)

        def inserting() -> Callable[[], object]:
            return writer.ready([next(for_floor)])

        return in_blocks({"commit": committing, "floor": inserting}, measured=turns)


def run_ingest(sizes: Sequence[int], _: int) -> Finding:
    """Measure commit in batches of a thousand facts, and mirror in sessions of a thousand texts, and their floors."""
    finding = Finding()
    speech = Speech()
    for items in sizes:
        for what, ingest in (("commit", _facts_by_batch), ("mirror", _texts_by_session)):
            say(f"ingest: {what} of {items}")
            with tempfile.TemporaryDirectory() as folder:
                before = resident()
                spent, bare_spent, tokens_spent, size = ingest(Path(folder), items, speech)
            rate = items / spent
            row: Row = {
                "verb": what,
                "items": items,
                "items_a_second": round(rate),
                "floor_a_second": round(items / bare_spent),
                "of_floor": round(bare_spent / spent, 2),
                "tokens_share": round(tokens_spent / spent, 2),
                "file_bytes_an_item": round(size / items),
                "grown_mib": mebibytes(resident() - before),
            }
            finding.rows.append(row)
            if what == "commit":
                name = f"commit of {items} facts in batches of {BATCH}, rate as a share of executemany"
                finding.musts.append(Must(name, bare_spent / spent, 0.25, at_most=False))
    finding.notes += [
        "the floor of commit is executemany of ready rows and tokens; that of mirror makes the tokens as well",
        "tokens_share: the time that making the tokens alone takes, of the time of the verb",
    ]
    return finding


def _facts_by_batch(folder: Path, items: int, speech: Speech) -> tuple[float, float, float, int]:
    """Return seconds of commit, of its floor and of making the tokens, and the bytes of the file."""
    spent = [0.0, 0.0, 0.0]
    path, twin = twins(folder, SCENES[:1], 0, speech)
    told = facts("bulk", items, speech)
    with Memory.open(path) as memory, bare(twin) as db:
        writer = BareFacts(db, SCENES[:1])
        while batch := list(itertools.islice(told, BATCH)):
            # The tokens first: what the stemmer remembers of the words then serves all three alike.
            act = writer.ready(batch)
            acts = [
                lambda batch=batch: memory.commit(batch, scenes=SCENES[:1], at=AT),
                act,
                lambda batch=batch: [tokens_of(text) for fact in batch for text in _texts_of(fact)],
            ]
            for place, one in enumerate(acts):
                started = time.perf_counter()
                one()
                spent[place] += time.perf_counter() - started
    return (*spent, path.stat().st_size)


def _texts_of(fact: Triple) -> tuple[str, str, str]:
    return fact.sentence, f"{fact.subject} {fact.relation} {fact.object}", fact.object


def _texts_by_session(folder: Path, items: int, speech: Speech) -> tuple[float, float, float, int]:
    spent = [0.0, 0.0, 0.0]
    path, twin = folder / "bench.db", folder / "floor.db"
    Memory.open(twin).close()
    with Memory.open(path) as memory, bare(twin) as db:
        for session, size in sizes_of_sessions(items):
            lines = speech.lines(session, size)
            first = (session - 1) * SESSION + 1
            parts = [Part(str(first + n), text=line) for n, line in enumerate(lines)]
            acts = [
                lambda lines=lines: [tokens_of(line) for line in lines],
                lambda session=session, parts=parts: memory.mirror(f"session {session}", parts, at=AT),
                lambda session=session, lines=lines: put_session(db, session, lines),
            ]
            for place, act in zip((2, 0, 1), acts, strict=True):
                started = time.perf_counter()
                act()
                spent[place] += time.perf_counter() - started
    return (*spent, path.stat().st_size)
