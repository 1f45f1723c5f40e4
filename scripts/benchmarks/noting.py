"""notes: remember, brief, rules_for and recall among so many notes, against the bare statements of the same."""

import contextlib
import datetime as dt
import heapq
import itertools
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Finding, Must, Row, Work, in_blocks, median, ratio, say, summary
from benchmarks.recalling import HOST, fill_hall
from benchmarks.seeds import AT, KINDS, SEED, SESSION, Speech, bare, bulk, line_of, passage, put_refs
from graphmem import Config, Memory
from graphmem.compose.brief import _RECALLED
from graphmem.core.keys import entity_key, title_key
from graphmem.core.times import utc_text
from graphmem.core.tokens import tokens_of
from graphmem.records.drafts import FACTS, LESSONS, REASONS, token_of

TURNS = 400
SECONDS = 30.0
OTHER = "project:elsewhere"
_GUESTS = 8
_OF_LOBBY = 6  # notes that come back with the scene
_BINDING = 10  # rules and pins
_KINDS = {"fact": 9, "preference": 2, "decision": 2, "lesson": 3, "pitfall": 2, "checkpoint": 2}
_COLUMNS = "n.id, n.kind, n.title, n.body, n.slot, n.scope, n.pinned, n.source, n.reason, n.updated_at"


@dataclass(frozen=True, slots=True)
class Told:
    """A note as it is told. at: for when."""

    title: str
    body: str = ""
    kind: str = "fact"
    slot: str = ""
    labels: tuple[str, ...] = ()
    load_when: tuple[str, ...] = ()
    scope: str = ""
    pinned: bool = False
    at: str = AT


def told(count: int, speech: Speech, project: str) -> Iterator[Told]:
    """Yield notes of all kinds in three scopes: a tenth with a slot, a quarter with labels, few that bind."""
    rng = random.Random(SEED)
    started = dt.datetime.fromisoformat(AT) - dt.timedelta(days=30)
    words = (line.split() for session in itertools.count(1) for line in speech.lines(session))
    for n, said in enumerate(itertools.islice(words, count)):
        kind = rng.choices([*_KINDS], weights=[*_KINDS.values()])[0]
        yield Told(
            f"{' '.join(said[:6])} {n}",
            " ".join(said[6:]) * (n % 2),
            "rule" if n < _BINDING // 2 else kind,
            slot=f"slot {n}" if n % 10 == 3 else "",
            labels=(said[6], said[7]) if n % 4 == 1 and said[6] != said[7] else (),
            load_when=(said[8], f"tool:tool{n}") if n % 20 == 5 else (),
            scope=("", project, OTHER, "", project, "")[n % 6],
            pinned=_BINDING // 2 <= n < _BINDING,
            at=utc_text(started + dt.timedelta(seconds=n)),
        )


class BareNotes:
    """Writes what `remember` writes of notes, by bare statements; tokens, keys and ids are made beforehand."""

    def __init__(self, db: sqlite3.Connection, place: str = "") -> None:
        self._db = db
        self._place = place
        (self._last,) = db.execute("SELECT COALESCE(MAX(id), 0) FROM notes").fetchone()

    def ready(self, notes: Sequence[Told]) -> Callable[[], None]:
        """Return the act that writes notes, none of which is known, in one transaction."""
        rows, origins, labels, triggers, index, length = [], [], [], [], [], 0
        for one in notes:
            self._last += 1
            reason = REASONS["en"][one.kind]
            head, named, body = (
                tokens_of(text) for text in (f"{one.title} {one.slot}", " ".join(sorted(one.labels)), one.body)
            )
            rows.append(
                (self._last, one.scope, one.kind, one.slot, entity_key(one.slot), one.title, title_key(one.title),
                 one.body, one.pinned, reason, one.at, one.at)
            )  # fmt: skip
            origins.append((self._last, self._place, reason, one.at))
            labels += [(self._last, label) for label in one.labels]
            triggers += [(self._last, trigger, token_of(trigger)) for trigger in one.load_when]
            index.append((passage("note", self._last), line_of(head), line_of(named), line_of(body)))
            length += len(head) + len(named) + len(body)
        sizes = [(KINDS["note"], len(rows), length)]
        return lambda: self._write(rows, origins, labels, triggers, index, sizes)

    def _write(self, *rows: Sequence[tuple[object, ...]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for statement, some in zip(_WRITTEN, rows, strict=True):
            self._db.executemany(statement, some)
        self._db.execute("COMMIT")


_WRITTEN = (
    """INSERT INTO notes(id, scope, kind, slot, slot_key, title, title_key, body, summary, highlight, status, pinned,
                         source, reason, superseded_by, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '', 'live', ?, 'agent', ?, NULL, ?, ?)""",
    """INSERT INTO provenance(kind, ref_id, seq, act, actor, place, reason, at)
       VALUES ('note', ?, 0, 'remember', 'agent', ?, ?, ?)""",
    "INSERT INTO note_labels(note_id, label) VALUES (?, ?)",
    "INSERT INTO note_triggers(note_id, load_when, token) VALUES (?, ?, ?)",
    "INSERT INTO text_index(rowid, title, labels, body) VALUES (?, ?, ?, ?)",
    """INSERT INTO text_sizes(kind, texts, tokens) VALUES (?, ?, ?)
       ON CONFLICT (kind) DO UPDATE SET texts = texts + excluded.texts, tokens = tokens + excluded.tokens""",
)


def fill(path: Path, notes: int, speech: Speech, folder: Path) -> None:
    """Make a memory with notes of a project in a folder and of others; one in twenty is in a scene."""
    with bulk(path) as db:
        fill_hall(db, _GUESTS)
    with Memory.open(path, project=folder) as memory:
        assert memory.project is not None
        project = memory.project.key
    with bare(path) as db:
        writer = BareNotes(db)
        every = told(notes, speech, project)
        while batch := list(itertools.islice(every, SESSION)):
            writer.ready(batch)()
        lobby = _GUESTS + 1
        held = [*range(_BINDING + 1, _BINDING + 1 + _OF_LOBBY), *range(40, notes + 1, 20)]
        db.execute("BEGIN")
        put_refs(db, ((lobby if n <= _BINDING + _OF_LOBBY else n % _GUESTS + 1, "note", n, 1.0) for n in held))
        db.execute("COMMIT")


# ---- the floor of a brief

_ANSWERING = """
    SELECT s.id, s.key, s.visits, own.feature, own.mass FROM scenes s JOIN scene_features own ON own.scene_id = s.id
    WHERE s.id IN (SELECT scene_id FROM scene_features WHERE feature IN ({marks}) AND posted IS NOT NULL)
"""
_FACTS_OF = """
    SELECT r.id, a.name, r.relation_type, b.name, t.text FROM scene_refs ref JOIN relations r ON r.id = ref.ref_id
    JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
    LEFT JOIN sentences t ON t.id = ref.sentence_id
    WHERE ref.scene_id = ? AND ref.kind = 'relation' AND r.status = 'active' AND r.scope IN (?, ?)
    ORDER BY ref.weight DESC, r.updated_at DESC, r.id DESC LIMIT ?
"""
_NAMES_OF = """
    SELECT e.id, e.name, e.mention_count FROM scene_refs ref JOIN entities e ON e.id = ref.ref_id
    WHERE ref.scene_id = ? AND ref.kind = 'entity' ORDER BY ref.weight DESC, e.mention_count DESC, e.id DESC LIMIT ?
"""
_TEXTS_OF = """
    SELECT t.id, t.{column} FROM scene_refs ref JOIN {table} t ON t.id = ref.ref_text
    WHERE ref.scene_id = ? AND ref.kind = ? ORDER BY ref.weight DESC LIMIT ?
"""
_BINDING_NOTES = f"""
    SELECT {_COLUMNS} FROM notes n INDEXED BY notes_resident
        WHERE n.status = 'live' AND (n.pinned = 1 OR n.kind = 'rule') AND n.scope IN (?, ?)
    UNION ALL SELECT {_COLUMNS} FROM notes n WHERE n.status = 'live' AND n.slot_key <> '' AND n.slot_key IN ({{marks}})
        AND n.scope IN (?, ?)
"""
_CALLED = "SELECT note_id, load_when, token FROM note_triggers WHERE token IN ({marks})"
_HELD = "SELECT ref_id, weight FROM scene_refs WHERE scene_id = ? AND kind = 'note'"
_HOLDERS = "SELECT ref_id, scene_id FROM scene_refs WHERE kind = 'note' AND ref_id IN ({marks})"
_OF_PROJECT = "SELECT 1 FROM notes own WHERE own.scope = ? AND own.status = 'live' AND own.slot_key = n.slot_key"
_NOT_OVERRIDDEN = f"""
    (n.scope <> '' OR CASE n.slot_key
        WHEN '' THEN NOT EXISTS ({_OF_PROJECT} AND own.title_key = n.title_key AND own.body <> n.body)
        ELSE NOT EXISTS ({_OF_PROJECT} AND own.slot_key <> '') END)
"""
_ROWS = f"""SELECT {_COLUMNS} FROM notes n
            WHERE n.id IN ({{marks}}) AND n.status = 'live' AND +n.scope IN (?, ?) AND {_NOT_OVERRIDDEN}"""
_OF_KIND = f"""
    SELECT {_COLUMNS} FROM notes n WHERE n.scope = ? AND n.kind = ? AND n.status = 'live' AND n.openly = 1
        AND {_NOT_OVERRIDDEN} ORDER BY n.updated_at DESC, n.id DESC -- {{place}}
"""
_FAILING = """SELECT id, tool, count, sample FROM incidents WHERE resolved_at IS NULL AND count >= ? AND last_at >= ?
              AND scope IN (?, ?) ORDER BY count DESC, last_at DESC"""


def floor(db: sqlite3.Connection, project: str, words: Sequence[str]) -> set[int]:
    """Fetch what a brief tells of notes, scenes and failures by bare statements; return the ids of the notes."""
    config = Config()
    scopes = ("", project)
    features = sorted(HOST.weights)
    candidates: dict[int, float] = {}
    for scene, _, _, feature, mass in db.execute(_ANSWERING.format(marks=_marks(features)), features).fetchall():
        candidates[scene] = candidates.get(scene, 0.0) + mass * HOST.weights.get(feature, 0.0)
    lobby = max(candidates, key=candidates.__getitem__)
    db.execute(_FACTS_OF, (lobby, *scopes, _RECALLED)).fetchall()
    db.execute(_NAMES_OF, (lobby, _RECALLED)).fetchall()
    for kind, table, column in (("block", "blocks", "text"), ("document", "documents", "summary")):
        db.execute(_TEXTS_OF.format(table=table, column=column), (lobby, kind, _RECALLED)).fetchall()
    slots = [entity_key(slot) for slot in config.constraint_keys]
    rows = db.execute(_BINDING_NOTES.format(marks=_marks(slots)), (*scopes, *slots, *scopes)).fetchall()
    said = [*features, *words]
    called = [note for note, *_ in db.execute(_CALLED.format(marks=_marks(said)), said).fetchall()]
    held = [note for note, _ in db.execute(_HELD, (lobby,)).fetchall()]
    db.execute(_HOLDERS.format(marks=_marks(called)), called).fetchall()
    wanted = [*called, *held]
    rows += db.execute(_ROWS.format(marks=_marks(wanted)), (*wanted, *scopes, project, project)).fetchall()
    for kinds in (FACTS, LESSONS):
        # In order from each scope and kind, so that no row is read in vain: half the time of one statement for all.
        places = enumerate(itertools.product(scopes, kinds))
        each = [db.execute(_OF_KIND.format(place=place), (*what, project, project)) for place, what in places]
        rows += itertools.islice(heapq.merge(*each, key=lambda row: row[-1], reverse=True), _RECALLED)
        for cursor in each:
            cursor.close()
    db.execute(_FAILING, (config.incident_threshold, AT, *scopes)).fetchall()
    return {row[0] for row in rows}


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


# ---- measuring


def run(sizes: Sequence[int], turns: int) -> Finding:
    """Measure remember, brief, rules_for and recall among so many notes."""
    finding = Finding()
    speech = Speech()
    for notes in sizes:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            path, twin = folder / "bench.db", folder / "floor.db"
            say(f"notes: filling {notes} notes")
            fill(path, notes, speech, folder)
            shutil.copyfile(path, twin)
            say(f"notes: among {notes} notes")
            times = _measured(path, twin, folder, speech, min(notes, SESSION), turns)
        row: Row = {
            "notes": notes,
            **{name.replace("median", "remember"): value for name, value in summary(times["remember"]).items()},
            "remember_floor_us": median(times["remember floor"]),
            "remember_to_floor": ratio(times["remember"], times["remember floor"]),
            "lesson_us": median(times["lesson"]),
            "lesson_to_floor": ratio(times["lesson"], times["lesson floor"]),
            "brief_us": median(times["brief"]),
            "brief_floor_us": median(times["brief floor"]),
            "brief_to_floor": ratio(times["brief"], times["brief floor"]),
            "asked_us": median(times["asked"]),
            "asked_to_floor": ratio(times["asked"], times["asked floor"]),
            "rules_us": median(times["rules"]),
            "recall_us": median(times["recall"]),
        }
        finding.rows.append(row)
        for what, share in (
            (f"remember of a fact beside {notes} notes, times the bare inserts", "remember_to_floor"),
            (f"remember of a lesson with slot and labels beside {notes} notes, times the bare inserts",
             "lesson_to_floor"),
            (f"brief among {notes} notes, times its SELECTs", "brief_to_floor"),
            (f"brief of a query among {notes} notes, times its SELECTs and the recall", "asked_to_floor"),
        ):  # fmt: skip
            finding.musts.append(Must(what, float(row[share]), 3.0, to_floor=True))
    for what, column in (("remember", "remember_us"), ("brief", "brief_us"), ("rules_for", "rules_us")):
        finding.growth_of(what, "notes", column, 0.25)
    finding.growth_of("bare inserts of a note", "notes", "remember_floor_us", is_floor=True)
    finding.growth_of("the SELECTs of a brief", "notes", "brief_floor_us", is_floor=True)
    finding.growth_of("recall of notes", "notes", "recall_us")
    finding.notes += [
        "remember makes tokens of words that were stemmed before, as most words were; its floor has them ready",
        "asked: a brief of three words of a note; its floor is that of the brief and the verb recall of these words",
    ]
    return finding


def _measured(path: Path, twin: Path, folder: Path, speech: Speech, known: int, turns: int) -> dict[str, list[float]]:
    lines = speech.lines(1, known)
    with contextlib.ExitStack() as opened:
        memory = opened.enter_context(Memory.open(path, project=folder))
        db, reader = opened.enter_context(bare(twin)), opened.enter_context(bare(path))
        assert memory.project is not None
        project = memory.project.key
        writer = BareNotes(db, memory.project.place)

        def remembering(name: str) -> Work:
            notes = fresh(name, speech, project)

            def ready() -> Callable[[], object]:
                one = next(notes)
                for text in (one.title, one.body, one.slot, *one.labels):
                    tokens_of(text)  # else whoever comes first stems the words for both
                return lambda: memory.remember(
                    one.title, body=one.body, kind=one.kind, slot=one.slot, labels=one.labels
                )

            return ready

        def inserting(name: str) -> Work:
            notes = fresh(name, speech, project)
            return lambda: writer.ready([next(notes)])

        def asking(act: Callable[[str], object]) -> Work:
            rng = random.Random(SEED)  # each asks the same

            def ready() -> Callable[[], object]:
                query = " ".join(rng.sample(rng.choice(lines).split(), 3))
                return lambda: act(query)

            return ready

        topics = [token for one in HOST.features if one.kind == "topic" for token in tokens_of(one.value)]

        def asked_floor(query: str) -> None:
            floor(reader, project, [*topics, *tokens_of(query)])
            memory.recall(query, situation=HOST)

        def brief(query: str = "") -> None:
            assert memory.brief(HOST, query=query).text

        works: dict[str, Work] = {
            "remember": remembering("fact"),
            "remember floor": inserting("fact"),
            "lesson": remembering("lesson"),
            "lesson floor": inserting("lesson"),
            "brief": lambda: brief,
            "brief floor": lambda: lambda: floor(reader, project, topics),
            "asked": asking(brief),
            "asked floor": asking(asked_floor),
            "rules": asking(lambda query: memory.rules_for(HOST, tool="shell", text=query)),
            "recall": asking(lambda query: memory.recall(query, kinds="note")),
        }
        return in_blocks(works, measured=turns, seconds=SECONDS)


def fresh(name: str, speech: Speech, project: str) -> Iterator[Told]:
    """Yield notes that no store holds yet: facts of the user, or lessons of a project with a slot and labels."""
    words = (line.split() for session in itertools.count(100_001) for line in speech.lines(session))
    for n, said in enumerate(words):
        title, body = f"{' '.join(said[:6])} {name} {n}", " ".join(said[6:])
        if name == "fact":
            yield Told(title, body)
        else:
            yield Told(
                title, body, "lesson", slot=f"{name} {n}", labels=(f"{said[6]} 1", f"{said[7]} 2"), scope=project
            )
