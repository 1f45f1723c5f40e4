"""The scan of what is stored: what it finds, what it takes out, and that nothing of it stays in the file."""

import hashlib
import sys

import pytest
from secret_corpus import TOKENS
from support import sql, text_index_of

from graphmem import Feature, Memory, Part, Situation, Triple
from graphmem.core import redaction
from graphmem.core.redaction import REDACTED
from graphmem.store import text_index
from graphmem.upkeep import detectors, screening

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
ID = "AKIA" + "0A1B2C3D4E5F6G7H"
PASSWORD = "Tr0ub4dor"  # noqa: S105 (made up)
HERE = Situation([Feature("chan", "qq"), Feature("peer", TOKEN)])


@pytest.fixture
def unscreened(monkeypatch):
    """Let a memory be written as one was before there was a gate."""
    with monkeypatch.context() as patched:
        # The one whose names the others take comes last.
        for module in (
            "graph.relations",
            "graph.blocks",
            "graph.documents",
            "records.history",
            "core.failures",
            "core.redaction",
        ):
            for name, stand_in in {
                "find_secrets": lambda text: (), "redact": lambda text: text, "refuse_secrets": lambda **texts: None,
            }.items():  # fmt: skip
                patched.setattr(f"graphmem.{module}.{name}", stand_in, raising=False)
        yield patched


def filled(path, unscreened):
    with Memory.open(path) as memory:
        memory.commit(
            [
                Triple("Ann", "has", TOKEN, sentence=f"Ann has {TOKEN} here"),
                Triple("Bob", "has", ID),
                Triple("Bob", "had", f"{ID} "),
                Triple("Bob", "sold", f"the {ID}"),
                Triple("数据库", "密码", PASSWORD),
                Triple("Ann", "likes", "tea"),
            ],
            scenes=f"chan:{TOKEN}",
            session=f"talk {TOKEN}",
        )
        memory.merge_entities(f"the {ID}", ID)
        memory.edit_relation(6, object="coffee", sentence=f"密码是{PASSWORD}，她喝咖啡")
        memory.remember(f"Deploy with {TOKEN}", body=f"密码：{PASSWORD}", labels=[TOKEN, "deploy"], slot=TOKEN)
        memory.mirror(f"talk {TOKEN}", [Part("1", author=ID, text=f"用{TOKEN}登录"), Part("2", text="ordinary words")])
        memory.put_document(f"a text with {TOKEN}", tags=[TOKEN], summary=f"of {ID}", entities=[ID])
        memory.put_block(f"a block with {TOKEN}")
        memory.enter_scene(HERE)
        memory.enter_scene(HERE)
        memory.drop_scene(f"chan:{TOKEN}")
    unscreened.undo()


def test_a_scan_tells_what_holds_secrets_and_nothing_of_them(tmp_path, unscreened):
    path = tmp_path / "m.db"
    filled(path, unscreened)
    with Memory.open(path) as memory:
        report = memory.scan_secrets()
    tables = {one.table for one in report.found}

    assert {"entities", "sentences", "notes", "note_labels", "parts", "sessions", "documents", "blocks"} <= tables
    assert {"evidence", "scenes", "scene_features", "operation_rows"} <= tables
    assert (report.redacted, report.applied) == (0, False)
    assert not any(secret[:8] in repr(report) for secret in (TOKEN, ID, PASSWORD))


def test_what_is_taken_out_is_nowhere_and_the_rest_is_sound(tmp_path, unscreened):
    path = tmp_path / "m.db"
    filled(path, unscreened)
    with Memory.open(path) as memory:
        report = memory.scan_secrets(redact=True)
        assert report.applied
        assert report.redacted
        assert memory.scan_secrets().found == ()
        assert memory.check().ok, memory.check()
        assert memory.recall("ordinary words", kinds="part")
        assert memory.recall("登录")[0].text == f"用{REDACTED}登录"
        names = {hit.text for hit in memory.recall("Bob", kinds="relation")}
        assert any(REDACTED in name for name in names), names
        assert memory.recall("deploy", kinds="note")[0].text.startswith(f"Deploy with {REDACTED}")
    for secret in (TOKEN, ID, PASSWORD):
        assert Memory.verify_forgotten(path, secret).found == ()


def test_the_names_that_relations_make_secrets_are_looked_for_once(memory, unscreened):
    memory.commit([Triple("数据库", "密码", PASSWORD)])
    unscreened.undo()
    asked = []
    memory._store._writer.set_trace_callback(asked.append)
    assert memory.scan_secrets(redact=True).redacted
    memory._store._writer.set_trace_callback(None)
    assert sum(one.startswith("SELECT r.relation_type, e.name") for one in asked) == 1


def test_what_stands_beside_notes_is_cleaned_too(tmp_path, unscreened):
    path = tmp_path / "m.db"
    other = TOKEN[:-1] + "z"
    with Memory.open(path) as memory:
        for secret in (TOKEN, other):
            memory.remember("the port", slot="port", scope=secret, load_when=f"密码 {PASSWORD}",
                            source=f"user:{secret}", reason=f"of {secret}", highlight=secret,
                            quote=f"use {secret}", said=f"use {secret}", session=f"talk {secret}",
                            place=f"/{secret}")  # fmt: skip
            memory.record_failure("bash", f"refused: {secret}", scope=secret)
            memory.commit([Triple("Ann", "likes", secret[-4:])], scope=secret)
            memory.mirror(f"talk {secret}", [Part("1", text="ordinary words")], scope=secret)
        memory.purge(scope=other)
    unscreened.undo()

    with Memory.open(path) as memory:
        memory.scan_secrets(redact=True)
        again = memory.scan_secrets(redact=True)
        assert (again.found, again.redacted) == ((), 0)
        assert memory.check().problems == ()
        before = text_index_of(path)
        memory.reindex()
        assert text_index_of(path) == before
        one, two = (scope.key for scope in memory.scopes() if scope.key)
        assert {one, two} == {REDACTED, f"{REDACTED} 1"}  # what was apart stays apart
        for key in (one, two):
            assert len(memory.recall("words", kinds="part", scopes=[key])) == (key == one)
            assert len(memory.notes(scopes=[key], statuses=())) == 1
    for secret in (TOKEN, other, PASSWORD):
        assert Memory.verify_forgotten(path, secret).found == ()


def purged_sentences(memory, path, *texts):
    """Let upkeep remove sentences that nothing tells any more; return its operation."""
    memory.commit([Triple(f"thing {place}", "is", "told", sentence=text) for place, text in enumerate(texts)])
    for table in ("relations", "evidence", "scene_refs"):
        sql(path, f"UPDATE {table} SET sentence_id = NULL")
    (operation,) = next(step.operations for step in memory.upkeep().steps if step.name == "purge sentences")
    return operation


def test_journaled_sentences_that_begin_like_a_secret_are_left_as_they_are(memory, path, unscreened):
    begins = f"of {TOKEN.lower()[:8]} and more"
    operation = purged_sentences(memory, path, begins)
    memory.commit([Triple("Ann", "has", "it", sentence=f"Ann has {TOKEN}")])
    unscreened.undo()

    assert memory.scan_secrets(redact=True).redacted == 1
    memory.undo(operation)
    digest = hashlib.sha256(begins.encode()).digest()
    assert sql(path, "SELECT hash FROM sentences WHERE text = ?", begins) == [(digest,)]


def test_sentences_that_are_one_without_their_secrets_come_back_as_one(memory, path, unscreened):
    operation = purged_sentences(memory, path, f"the token is {TOKEN}", f"the token is {ID}")
    memory.commit([Triple("Ann", "has", "it", sentence=f"the token is {TOKEN[::-1]}{TOKEN}")])
    unscreened.undo()

    memory.scan_secrets(redact=True)
    memory.undo(operation)
    (text,) = {text for (text,) in sql(path, "SELECT text FROM sentences")}
    assert REDACTED in text
    assert memory.check().problems == ()


def test_what_an_undo_brings_back_after_redaction_tells_nothing_of_the_secret(memory, path, unscreened):
    said = f"the token is {TOKEN} of Ann"
    sentences = purged_sentences(memory, path, said)
    parts = [Part("1", text=f"we use password={PASSWORD}-of-Ann then"), Part("2", text="words")]
    for session in ("gone", "kept"):
        memory.mirror(session, parts, redact=False, scope=session)
    purge = memory.purge(scope="gone").operation
    unscreened.undo()

    memory.scan_secrets(redact=True)
    kept = "".join(image for row in sql(path, "SELECT before, after FROM operation_rows") for image in row if image)
    assert hashlib.sha256(said.encode()).hexdigest() not in kept
    for operation in (purge, sentences):
        memory.undo(operation)
    ((text, digest),) = sql(path, "SELECT text, hash FROM sentences")
    assert (text, digest) == (said.replace(TOKEN, REDACTED), hashlib.sha256(text.encode()).digest())
    told = sql(path, "SELECT text, length FROM parts ORDER BY id")
    assert [length for _, length in told] == [text_index.tokens(body=text).length for text, _ in told]
    assert REDACTED in told[0][0]
    assert told[:2] == told[2:]
    assert sql(path, "SELECT length FROM sessions") == [(told[0][1] + told[1][1],)] * 2
    assert memory.check().problems == ()
    before = text_index_of(path)
    memory.reindex()
    assert text_index_of(path) == before


# Columns of text that hold nothing from outside: words of graphmem's own, times, digests.
HARMLESS = {
    ("scenes", "origin"), ("relations", "status"), ("scene_refs", "kind"), ("operations", "kind"), ("scopes", "kind"),
    ("blocks", "modality"), ("blocks", "payload_digest"), ("notes", "kind"), ("notes", "status"),
    ("provenance", "kind"), ("vectors", "fingerprint"), ("counters", "name"), ("active_days", "day"),
    ("leases", "name"), ("leases", "owner"), ("leases", "until"),
    ("jobs", "kind"), ("transcripts", "kind"),
}  # fmt: skip
TIMES = ("at", "valid_from", "valid_to")


def test_every_column_of_text_is_scanned_or_known_to_be_harmless(memory, path):
    memory.remember("one")
    columns = {
        (table, column)
        for table, column in sql(
            path,
            """SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c
               WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND c.type = 'TEXT'
                   AND t.name <> '_sqlite_migrations'""",
        )
        if column not in TIMES and not column.endswith("_at")
    }
    with memory._store.read() as tx:
        scanned = {(table.name, column) for table in screening._tables(tx) for column in table.texts}

    assert columns - scanned == HARMLESS
    assert not scanned & HARMLESS


def test_transcripts_with_a_secret_are_followed_no_longer(memory, path, tmp_path):
    token = "ghp_" + "a1B2" * 9
    for name in ("talk", "other"):
        (tmp_path / f"{name}.jsonl").write_text('{"role": "user", "text": "Hello."}\n')
    memory.harvest(tmp_path)
    sql(path, "UPDATE transcripts SET path = ? WHERE path LIKE '%talk.jsonl'", f"/a/{token}/talk.jsonl")

    report = memory.scan_secrets(redact=True)

    assert [found.table for found in report.found] == ["transcripts"]
    assert any("transcripts" in remark and "harvest" in remark for remark in report.remarks)
    assert sql(path, "SELECT path FROM transcripts") == [(str(tmp_path / "other.jsonl"),)]
    assert memory.history("hello")


def test_a_sound_memory_is_left_as_it_is(tmp_path):
    with Memory.open(tmp_path / "m.db") as memory:
        memory.commit([Triple("Ann", "likes", "tea")], scenes="chan:qq")
        report = memory.scan_secrets(redact=True)
        assert (report.found, report.redacted) == ((), 0)
        with pytest.raises(ValueError, match="redact"):
            memory.scan_secrets(redact="yes")


def test_without_the_extra_the_scan_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "detect_secrets", None)
    with Memory.open(tmp_path / "m.db") as memory:
        assert any("graphmem[secrets]" in remark for remark in memory.scan_secrets().remarks)


def test_other_detectors_see_what_ours_do_not():
    found = [redaction.Secret("other", 4, 9)]
    find = screening.finder(lambda text: found if "other" in text else [])
    assert [(one.kind, one.start) for one in find("the other password=Tr0ub4dor")] == [("other", 4), ("password", 19)]


def test_the_extra_finds_tokens_in_long_texts():
    pytest.importorskip("detect_secrets")
    import random

    token = TOKENS["github"](random.Random(7))
    text = "words " * 2000 + token + " more words" * 10
    with detectors.detecting() as more:
        (found,) = set(more(text))
    assert text[found.start : found.end] in token


def test_the_plug_ins_of_the_extra_are_chosen_once_for_a_scan(tmp_path, monkeypatch):
    settings = pytest.importorskip("detect_secrets.settings")
    chosen = []
    choose = settings.transient_settings
    monkeypatch.setattr(settings, "transient_settings", lambda wanted: chosen.append(wanted) or choose(wanted))
    with Memory.open(tmp_path / "m.db") as memory:
        memory.commit([Triple("Ann", "likes", "tea"), Triple("Ann", "likes", "coffee")])
        memory.scan_secrets()
    assert len(chosen) == 1
