"""The text index says what is stored, whatever was written, failed, damaged or removed in between."""

import contextlib
import itertools
import shutil
import sqlite3

import pytest
from conftest import FakeClock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import sql

from graphmem import InvalidInput, Memory, NotFound, Part, Situation, StoreCorrupt, StoreFailed, Triple
from graphmem.records import standing
from graphmem.store import text_index
from graphmem.store.connection import Connection
from graphmem.store.database import SqliteStore as Store

pytestmark = pytest.mark.sqlite  # what FTS5 holds

EVERYTHING = ["note", "relation", "part", "document", "block", "entity", "scene"]
TABLES = ["notes", "relations", "sentences", "parts", "documents", "blocks", "entities", "scenes"]


def index_of(path):
    """Every row of the index; of labels, which are a set, the tokens without their order."""
    rows = sql(path, "SELECT rowid, title, labels, body FROM text_index ORDER BY rowid")
    sizes = sql(path, "SELECT kind, texts, tokens FROM text_sizes WHERE texts <> 0 OR tokens <> 0 ORDER BY kind")
    terms = sql(path, "SELECT term, doc, cnt FROM text_terms ORDER BY term")
    return [(row, title, sorted(labels.split()), body) for row, title, labels, body in rows], sizes, terms


def found(memory, query, **options):
    return [(hit.kind, hit.text) for hit in memory.recall(query, kinds=EVERYTHING, limit=50, **options)]


def assert_equal_to_a_rebuild(memory):
    kept = index_of(memory.path)
    memory.reindex()
    assert index_of(memory.path) == kept


def fill(memory):
    """One text of every kind, each with the word pelican, in places that differ."""
    memory.declare_scene("chan:pelican")
    memory.commit([Triple("pelican", "eats", "fish", sentence="The pelican eats fish.")], scenes="chan:qq")
    memory.remember("pelican rule", body="one. " * 400 + "albatross", labels=["bird", "大鸟"], slot="birds")
    memory.mirror("s1", [Part(id="m1", author="老大", text="看见一只pelican")])
    memory.put_block("pelican on a stone", scenes="chan:qq")
    memory.put_document("first. " * 300 + "the pelican", summary="birds", tags=["sea"], entities=["Pelican"])


# ---- in the transaction of the row


def test_every_kind_of_text_is_found_as_soon_as_it_is_written(memory):
    fill(memory)
    assert {kind for kind, _ in found(memory, "pelican")} == set(EVERYTHING)


def test_the_number_of_texts_is_told_and_progress_never_falls(memory, path):
    fill(memory)
    told = []
    number = memory.reindex(progress=lambda done, texts: told.append((done, texts)))
    assert told == sorted(told)
    rows = sum(len(sql(path, f"SELECT 1 FROM {table}")) for table in TABLES)
    assert told[-1] == (number, rows)
    assert number == rows


WRITES = {
    "commit": lambda m: m.commit([Triple("a heron", "eats", "frogs", sentence="Herons!")], scenes="chan:new"),
    "remember": lambda m: m.remember("a heron", slot="birds"),
    "mirror": lambda m: m.mirror("s1", [Part(id="m1", text="a heron"), Part(id="m2", text="two herons")]),
    "put_block": lambda m: m.put_block("a heron", scenes="chan:new"),
    "put_document": lambda m: m.put_document("a heron", scenes="chan:new"),
    "declare_scene": lambda m: m.declare_scene("chan:heron"),
    "enter_scene": lambda m: m.enter_scene(Situation.of(chan="heron"), declared=["chan:heron"]),
}


@pytest.mark.parametrize("verb", WRITES)
def test_a_verb_that_is_rolled_back_leaves_the_index_as_it_was(memory, path, monkeypatch, verb):
    fill(memory)
    before = index_of(path)

    def fail(*_):
        raise RuntimeError("the plug was pulled")

    with monkeypatch.context() as patch:
        memory._last_day = ""
        patch.setattr(Memory, "_mark_day", fail)  # the last step of a day's first write, within its transaction
        with pytest.raises(RuntimeError, match="plug"):
            WRITES[verb](memory)

    assert index_of(path) == before
    assert found(memory, "heron") == []
    WRITES[verb](memory)
    assert found(memory, "heron")


@pytest.mark.parametrize("verb", WRITES)
def test_a_fault_at_any_statement_leaves_rows_and_index_together(tmp_path, monkeypatch, verb):
    """Whatever statement that writes fails, those within FTS5 too, the index afterwards is that of the rows."""
    connect = Store._connect
    left = 0

    def connect_failing(store):
        connection = connect(store)

        def authorize(action, *_):
            nonlocal left
            if action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE):
                left -= 1
                if left == 0:
                    return sqlite3.SQLITE_DENY
            return sqlite3.SQLITE_OK

        connection.set_authorizer(authorize)
        return connection

    with Memory.open(tmp_path / "filled.db", clock=FakeClock()) as memory:
        fill(memory)
    faults = 0
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_connect", connect_failing)
        for number in itertools.count(1):
            path = shutil.copy(tmp_path / "filled.db", tmp_path / f"{number}.db")
            # Statements are refused when they are prepared: a connection of its own for each fault.
            with Memory.open(path, clock=FakeClock()) as memory:
                left = number
                try:
                    WRITES[verb](memory)
                except (StoreFailed, StoreCorrupt):
                    faults += 1
                    left = 0
                    assert found(memory, "heron") == []
                else:
                    assert left > 0, f"fault {number} was swallowed"
                    break
                assert_equal_to_a_rebuild(memory)
    assert faults > 3


def test_a_process_that_dies_before_its_commit_leaves_no_words(path):
    with Memory.open(path, clock=FakeClock()) as memory:
        fill(memory)
        before = index_of(path)
        writer = sqlite3.connect(path, isolation_level=None, factory=Connection)
        writer.execute("BEGIN IMMEDIATE")
        text_index.put(writer, "note", [(77, text_index.tokens(title="heron"))])
        writer.close()
        assert index_of(path) == before
        assert found(memory, "heron") == []


# ---- what is gone is gone


def remove_block(memory):
    block = memory.put_block("pelican-42", scenes="chan:qq")
    memory.delete_block(block.id)


def consume(memory):
    document = memory.put_document("pelican-42", scenes="chan:qq")
    memory.consume_document(document.id)


def archive(memory):
    document = memory.put_document("pelican-42", scenes="chan:qq", summary="pelican-42")
    assert memory.archive_document(document.id, [Triple("a bird", "is", "gone")]).removed


def rewrite(memory):
    memory.mirror("s1", [Part(id="m1", text="pelican-42")])
    memory.mirror("s1", [Part(id="m1", text="nothing of it")])


def forget(memory):
    memory.remember("pelican-42", status="forgotten")


def propose(memory):
    memory.remember("pelican-42", status="proposed")


def undo_nothing(memory):
    memory.remember("pelican-42", status="archived")


@pytest.mark.parametrize("removal", [remove_block, consume, archive, rewrite, forget, propose, undo_nothing])
def test_removed_text_is_not_found_and_no_later_row_inherits_its_words(memory, path, removal):  # FTS-08
    removal(memory)
    assert found(memory, "pelican") == []

    memory.remember("plain note")
    memory.put_block("plain block")
    memory.put_document("plain document")
    memory.mirror("s2", [Part(id="m1", text="plain part")])
    assert found(memory, "pelican") == []

    memory.reindex()
    assert found(memory, "pelican") == []
    assert not [row for row in sql(path, "SELECT c0, c1, c2 FROM text_index_content") if "pelican" in " ".join(row)]
    assert sql(path, "SELECT * FROM text_terms WHERE term LIKE 'pelican%'") == []


def test_a_superseded_note_is_found_by_a_question_about_the_past_alone(memory):
    memory.remember("Deploy with pelican", slot="deploy")
    memory.remember("Deploy with heron", slot="deploy")
    for _ in range(2):
        assert found(memory, "pelican") == []
        assert ("note", "Deploy with pelican") in found(memory, "what did heron replace")
        memory.reindex()


def test_the_words_of_a_scene_that_was_merged_away_are_gone(memory, path):
    memory.declare_scene("chan:pelican")
    sql(path, "UPDATE scenes SET key = 'chan:Pelican+Heron'")
    memory.dedupe_scenes()
    assert found(memory, "chan:pelican_heron", exact=False)[0][1] == "chan:pelican_heron"
    assert_equal_to_a_rebuild(memory)
    (operation,) = memory.operations()
    memory.undo(operation.id)
    assert_equal_to_a_rebuild(memory)


# ---- equal to a rebuild

WORDS = st.sampled_from(["alpha", "Beta-7", "部署网关", "café", "v1.2", "x", "🎉", "是", "one. two. " * 90])
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
SHORT = st.sampled_from(["alpha", "Beta-7", "部署", "café", "老大"])
KEYS = st.sampled_from(["chan:qq", "chan:qq/peer:boss", "chan:web"])
STATUSES = st.sampled_from(["live", "live", "live", "proposed", "archived", "forgotten", "superseded"])
ACTS = st.one_of(
    st.tuples(st.just("commit"), SHORT, SHORT, SHORT, TEXTS, KEYS, st.booleans()),
    st.tuples(
        st.just("remember"), SHORT, TEXTS, st.sampled_from(["", "a", "b"]), st.lists(SHORT, max_size=3), STATUSES
    ),
    st.tuples(st.just("mirror"), st.lists(st.tuples(st.sampled_from("abcd"), TEXTS), max_size=4)),
    st.tuples(st.just("block"), TEXTS, KEYS),
    st.tuples(st.just("unblock"), TEXTS),
    st.tuples(st.just("document"), TEXTS, st.lists(SHORT, max_size=2)),
    st.tuples(st.just("consume"), TEXTS),
    st.tuples(st.just("enter"), KEYS),
    st.tuples(st.just("dedupe")),
)


def act(memory, verb, *given):
    if verb == "commit":
        subject, relation, other, sentence, key, functional = given
        memory.commit([Triple(subject, relation, other, sentence=sentence, functional=functional)], scenes=key)
    elif verb == "remember":
        title, body, slot, labels, status = given
        memory.remember(title, body=body, slot=slot, labels=labels, status=status)
    elif verb == "mirror":
        memory.mirror("s1", [Part(id=name, text=text) for name, text in given[0]])
    elif verb == "block":
        memory.put_block(given[0], scenes=given[1])
    elif verb == "document":
        memory.put_document(given[0], tags=given[1], summary=given[1][0] if given[1] else "")
    elif verb == "unblock":
        memory.delete_block(memory.put_block(given[0]).id)
    elif verb == "consume":
        memory.consume_document(memory.put_document(given[0]).id)
    elif verb == "enter":
        memory.enter_scene(Situation.of(chan=given[0]), declared=given)
    else:
        report = memory.dedupe_scenes()
        if report.operation:
            memory.undo(report.operation)


@given(acts=st.lists(ACTS, min_size=1, max_size=12))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_verbs_the_index_is_that_of_a_rebuild(tmp_path_factory, acts):
    path = tmp_path_factory.mktemp("index") / "memory.db"
    clock = FakeClock()
    with Memory.open(path, clock=clock) as memory:
        for each in acts:
            act(memory, *each)
            clock.advance(hours=1)
        assert_equal_to_a_rebuild(memory)


def test_a_rebuild_keeps_the_order_of_labels(memory, path):
    memory.remember("a note", labels=["zulu", "alpha"])
    before = sql(path, "SELECT labels FROM text_index")
    memory.reindex()
    assert sql(path, "SELECT labels FROM text_index") == before


def test_a_text_longer_than_its_passages_is_found_to_its_end(memory):
    text = "word " * 200_000 + "zebra"
    memory.put_document(text, summary="long")
    assert [kind for kind, _ in found(memory, "zebra")] == ["document"]
    assert_equal_to_a_rebuild(memory)


# ---- damage

DAMAGE = {
    "blocks of garbage": "UPDATE text_index_data SET block = X'00112233'",
    "no data": "DELETE FROM text_index_data",
    "no content": "DELETE FROM text_index_content",
    "no sizes": "DELETE FROM text_index_docsize",
    "another format": "UPDATE text_index_config SET v = 99 WHERE k = 'version'",
    "no configuration": "DROP TABLE text_index_config",
    "no table of data": "DROP TABLE text_index_data",
    "no table of content": "DROP TABLE text_index_content",
    "no table of terms": "DROP TABLE text_index_idx",
    "no index": "DROP TABLE text_index",
    "no vocabulary": "DROP TABLE text_terms",
    "no counts": "DELETE FROM text_sizes",
}


def damage(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_index_hides_no_facts_and_is_made_anew(path, name):
    with Memory.open(path, clock=FakeClock()) as memory:
        fill(memory)
    whole = index_of(path)
    damage(path, DAMAGE[name])

    with Memory.open(path, clock=FakeClock()) as memory:
        facts = memory.recall_by_scene("chan:qq").relations
        assert [(fact.subject, fact.sentence) for fact in facts] == [("pelican", "The pelican eats fish.")]
        assert memory.neighbours("pelican")
        assert memory.block(memory.recall_by_scene("chan:qq").blocks[0].id).text == "pelican on a stone"

        memory.reindex()
        assert {kind for kind, _ in found(memory, "pelican")} == set(EVERYTHING)
    assert index_of(path) == whole
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert sql(path, "INSERT INTO text_index(text_index) VALUES ('integrity-check')") == []
    with Memory.open(path, clock=FakeClock()) as memory:
        memory.remember("a heron")
        assert found(memory, "heron")


@pytest.mark.parametrize("name", DAMAGE)
def test_another_open_memory_sees_the_index_that_was_made_anew(path, name):
    with Memory.open(path, clock=FakeClock()) as other, Memory.open(path, clock=FakeClock()) as memory:
        fill(memory)
        assert found(other, "pelican")
        damage(path, DAMAGE[name])
        memory.reindex()
        assert {kind for kind, _ in found(other, "pelican")} == set(EVERYTHING)


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_index_is_told_and_never_an_empty_answer(path, name):  # FTS-01
    with Memory.open(path, clock=FakeClock()) as memory:
        fill(memory)
    damage(path, DAMAGE[name])
    with Memory.open(path, clock=FakeClock()) as memory, pytest.raises((StoreCorrupt, StoreFailed)):
        memory.recall("pelican")


def test_the_error_of_a_damaged_index_names_the_cure(path):
    with Memory.open(path, clock=FakeClock()) as memory:
        fill(memory)
    damage(path, DAMAGE["no content"])
    with Memory.open(path, clock=FakeClock()) as memory, pytest.raises(StoreCorrupt, match="reindex"):
        memory.recall("pelican")


# ---- upgrade


def as_first_schema(old, path):
    """Write what a memory holds into a file of the first schema, as the graphmem of that time left it."""
    from sqlite_utils import Database

    from graphmem.store import schema

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema._migrations().apply(Database(connection), stop_before="m002_text")
        connection.execute("ATTACH ? AS old", (str(old),))
        tables = connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if not table.startswith(("sqlite_", "_sqlite")) and table != "scene_changes":  # which is no more
                connection.execute(f"DELETE FROM main.{table}")
                columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
                connection.execute(f"INSERT INTO main.{table}({columns}) SELECT {columns} FROM old.{table}")
        connection.execute("DELETE FROM main.counters WHERE name LIKE 'vectors%'")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")


def test_an_upgrade_of_the_first_schema_fills_the_index(tmp_path):
    with Memory.open(tmp_path / "new.db", clock=FakeClock()) as memory:
        memory.declare_scene("chan:pelican")
        memory.commit([Triple("老大", "偏好", "pelican", sentence="回复禁用Markdown格式")], scenes="chan:qq")
        expected = index_of(memory.path)
    as_first_schema(tmp_path / "new.db", tmp_path / "old.db")
    assert sql(tmp_path / "old.db", "SELECT name FROM sqlite_master WHERE name LIKE 'text_%'") == []

    with Memory.open(tmp_path / "old.db", clock=FakeClock()) as memory:
        assert {kind for kind, _ in found(memory, "pelican")} == {"relation", "entity", "scene"}
        assert found(memory, "禁用Markdown")[0][0] == "relation"
        assert_equal_to_a_rebuild(memory)
        fill(memory)
        assert {kind for kind, _ in found(memory, "pelican")} == set(EVERYTHING)
    assert expected[0] == [row for row in index_of(tmp_path / "old.db")[0] if row in expected[0]]


def test_refused_input_writes_no_words(memory, path):
    memory.put_block("a heron")
    before = index_of(path)
    for refused in (
        lambda: memory.remember("\u200b"),
        lambda: memory.mirror("", [Part(id="a", text="pelican")]),
        lambda: memory.put_document("pelican", blocks=["blk_none"]),
        lambda: memory.reindex(progress=lambda done, texts: 1 / 0),
    ):
        with pytest.raises((InvalidInput, NotFound, ZeroDivisionError)):
            refused()
        memory.remember("a note", status="forgotten")
    assert index_of(path) == before


def test_many_texts_leave_the_index_in_few_statements(memory):
    memory.commit([Triple(f"boss {n}", "wants", f"plain text {n}") for n in range(600)])
    statements = []
    with memory._store.write() as tx:
        facts = [fact for (fact,) in tx.execute("SELECT id FROM relations")]
        tx.set_trace_callback(statements.append)
        text_index.drop(tx, "relation", facts)
        tx.set_trace_callback(None)
        left = tx.execute("SELECT texts FROM text_sizes WHERE kind = ?", (text_index.CODES["relation"],)).fetchone()

    assert left == (0,)
    # FTS5 tells of each statement of its own, which removes one passage.
    own = [line for line in statements if not line.startswith(("--", "DELETE FROM text_index"))]
    assert len(own) < 20


# ---- few and cheap statements


def counted_anew(tx, tokens):
    return text_index.Vocabulary().frequencies(tx, tokens)


@pytest.mark.parametrize("where", ["file", ":memory:"])
def test_what_is_remembered_of_words_is_what_is_stored_after_every_write(path, clock, where):
    words = ["pelican", "fish", "heron"]
    vocabulary = text_index.Vocabulary()
    with Memory.open(path if where == "file" else where, clock=clock) as memory:

        def check():
            with memory._store.read() as tx:
                vocabulary.frequencies(tx, words)
                assert vocabulary.frequencies(tx, words) == counted_anew(tx, words)

        check()
        # Nobody asks between a rollback and the next block, where the connection is as it was before the rollback.
        with memory._store.write(keep=False) as tx:
            memory.remember("a pelican and a fish")
            vocabulary.frequencies(tx, words)
        with memory._store.write() as tx:
            assert vocabulary.frequencies(tx, words) == counted_anew(tx, words)
        block = memory.put_block("a pelican")
        check()
        memory.remember("a heron")
        check()
        with memory._store.write(keep=False) as tx:
            memory.remember("a pelican and a fish")
            assert vocabulary.frequencies(tx, words) == counted_anew(tx, words)
        check()
        memory.delete_block(block.id)
        check()
        memory.reindex()
        check()
        if where == "file":
            with Memory.open(path, clock=clock) as other:
                other.remember("another heron")
            check()


def test_a_second_query_with_the_same_words_counts_none_of_them(memory):
    for number in range(20):
        memory.remember(f"pelican {number}", body=f"fish heron{number % 7}")
    statements = []
    with memory._store.read() as tx:
        memory.recall("pelican fish 3")
        tx.set_trace_callback(statements.append)
        memory.recall("pelican fish 3")
        tx.set_trace_callback(None)
    own = [line for line in statements if not line.startswith("--")]
    assert not [line for line in own if "text_terms" in line]
    assert sum("MATCH" in line for line in own) == 2  # what holds the words, and what shares rare words with the best
    assert len(own) <= 10


def test_words_of_many_texts_are_not_counted_to_the_end(memory):
    memory.mirror("s", [Part(id=f"p{n}", text=f'pelican fish{n % 90} heron{n % 7} "{n}') for n in range(180)])
    words = ["pelican", "fish3", "heron3", "heron", "nowhere"]
    vocabulary = text_index.Vocabulary()
    statements = []
    with memory._store.read() as tx:
        exact = counted_anew(tx, words)
        for most in (1, 2, 30, 100, 200):
            rare = {word: number for word, number in exact.items() if number <= most}
            for _ in range(2):
                assert vocabulary.rare(tx, words, most) == rare
            tx.set_trace_callback(statements.append)
            assert vocabulary.rare(tx, words, most) == rare
            tx.set_trace_callback(None)
        assert vocabulary.frequencies(tx, words) == exact
    assert not [line for line in statements if "MATCH" in line or "text_terms" in line]


def test_what_is_remembered_of_rare_words_is_what_is_stored_after_every_write(memory):
    vocabulary = text_index.Vocabulary()
    for number in range(8):
        memory.remember(f"pelican {number}")
        with memory._store.read() as tx:
            for most in (3, 5):
                assert vocabulary.rare(tx, ["pelican"], most) == ({"pelican": number + 1} if number < most else {})


@pytest.mark.parametrize("wanted", [1, 7, 60])
def test_few_matches_come_in_the_order_of_many(memory, monkeypatch, wanted):
    """What is ordered here is in the order that FTS5 gives: first what holds all words, then by its own score."""
    words = ["pelican", "heron", "fish", "stone", "sea"]
    for number, chosen in enumerate(itertools.product(words, repeat=3)):
        memory.remember(" ".join(chosen[:2]) + f" {number}", body=" ".join(chosen) * (number % 4), labels=chosen[2:])
        memory.put_block(" ".join(chosen[::-1]) + f" {number}")
    with memory._store.read() as tx:
        known = counted_anew(tx, [*words, "heron"])
        for tokens in ({"heron": False, "fish": False}, {"pelican": False, "se": True, "fish": False}):
            known["se"] = text_index.prefix_frequency(tx, "se")
            for kinds in (["note"], ["note", "block"]):
                few = first_of(tx, tokens, known, kinds, wanted)
                with monkeypatch.context() as patch:
                    patch.setattr(text_index, "_READ_WHOLE", 0)
                    assert few == first_of(tx, tokens, known, kinds, wanted)
                assert len(few) == wanted


def first_of(tx, tokens, known, kinds, wanted):
    return next(text_index.candidates(tx, tokens, known, kinds, wanted))


def test_texts_written_one_by_one_are_in_few_segments(memory, path):
    for number in range(200):
        memory.remember(f"pelican {number}")
    assert sql(path, "SELECT COUNT(DISTINCT segid) FROM text_index_idx")[0][0] <= 8
    memory.reindex()
    kept = dict(sql(path, "SELECT k, v FROM text_index_config"))
    assert (kept["automerge"], kept["crisismerge"]) == (2, 4)


def test_whether_notes_are_live_is_looked_up_among_those_that_are_not(memory):
    memory.remember("a pelican", slot="bird")
    memory.remember("a heron", slot="bird")
    with memory._store.read() as tx:
        asked = []
        tx.set_trace_callback(asked.append)
        assert standing.withdrawn(tx, [1, 2, 3]) == {1}
        tx.set_trace_callback(None)
        plan = [row[3] for row in tx.execute(f"EXPLAIN QUERY PLAN {asked[0]}")]
    assert plan == ["SEARCH notes USING INDEX notes_withdrawn (id=? AND rowid=?)"]
