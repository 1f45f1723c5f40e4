"""Blocks and documents: idempotent by content, brought back with their scenes, payloads that are never lost or left."""

import hashlib
import os
import pathlib
import stat
import threading

import pytest
from conftest import FakeClock
from hypothesis import given
from hypothesis import strategies as st
from support import another_process, dump, sql

from graphmem import Config, InvalidInput, Memory, NotFound, Situation, StoreCorrupt, StoreFailed, Triple
from graphmem.graph.scenes import sweep_refs
from graphmem.store import blobs

SMALL = b"\x89PNG" + b"s" * 100
LARGE = b"\x89PNG" + b"l" * (64 * 1024)
FACT = Triple("老大", "偏好", "纯文本", sentence="老大偏好纯文本。")
HERE = Situation.of(chan="qq", peer="boss")


def files(path):
    """The files of payloads, with what they hold."""
    folder = path.with_name(path.name + ".blobs")
    return {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()} if folder.exists() else {}


def digest(payload):
    return hashlib.sha256(payload).hexdigest()


def recalled(memory, keys="", **options):
    found = memory.recall_by_scene(keys, **options)
    return [block.id for block in found.blocks], [document.id for document in found.documents]


def refs(path):
    return sql(path, "SELECT kind, ref_text FROM scene_refs WHERE ref_text <> '' ORDER BY kind, ref_text")


# ---- blocks


def test_a_block_is_brought_back_by_its_scene(memory):
    block = memory.put_block("周末排班表", scenes=["chan:QQ"], source="qq", semantic_type="table")

    (found,) = memory.recall_by_scene("chan:qq").blocks

    assert (found.id, found.text, found.weight, found.created_at) == (block.id, "周末排班表", 1.0, block.created_at)
    assert (found.modality, found.source, found.semantic_type) == ("text", "qq", "table")
    assert block.scenes == ("chan:qq",)
    assert memory.block(block.id) == block
    assert bool(memory.recall_by_scene("chan:qq"))


def test_two_blocks_in_one_scene_are_both_recalled(memory):  # B1, B4
    ids = {memory.put_block(text, scenes="chan:qq").id for text in ("一号", "二号")}

    assert set(recalled(memory, "chan:qq")[0]) == ids


def test_the_same_content_is_the_same_block(memory, path):
    first = memory.put_block(" 排班表\n")

    assert memory.put_block("排班表") == first
    assert first.id.startswith("blk_")
    assert len(first.id) == 28
    assert sql(path, "SELECT COUNT(*) FROM blocks") == [(1,)]


@given(st.lists(st.tuples(st.sampled_from(["image", "audio"]), st.binary(min_size=1, max_size=3)), max_size=8))
def test_every_content_has_its_own_id(contents):
    with Memory.open(":memory:") as memory:
        ids = {content: memory.put_block(modality=content[0], payload=content[1]).id for content in contents}

    assert len(set(ids.values())) == len(ids)


def test_writing_a_block_again_clears_nothing(memory, clock):  # B2
    told = {"mime": "image/png", "source": "qq", "tool": "camera", "semantic_type": "photo", "width": 4, "height": 3}
    first = memory.put_block("一只猫", modality="image", payload=SMALL, scenes="chan:qq", **told)
    clock.advance(hours=1)

    again = memory.put_block("一只猫", modality="image", payload=SMALL)

    assert {name: getattr(again, name) for name in told} == told
    assert (again.text, again.scenes, again.created_at) == ("一只猫", ("chan:qq",), first.created_at)
    assert again.updated_at == "2026-09-07T09:00:00.000Z"


def test_nobody_reads_what_another_said_about_the_same_picture(memory, path):
    for peer, text in (("boss", "奶奶的猫"), ("aunt", "一只猫")):
        memory.put_block(text, modality="image", payload=LARGE, scenes=f"chan:qq/peer:{peer}")

    assert [block.text for block in memory.recall_by_scene("chan:qq/peer:aunt").blocks] == ["一只猫"]
    assert files(path) == {digest(LARGE): LARGE}


def test_a_time_that_is_given_replaces_the_known_one(memory):
    memory.put_block("排班表")

    assert memory.put_block("排班表", at="2026-01-01").created_at == "2026-01-01T00:00:00.000Z"
    assert memory.put_block("排班表").created_at == "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": 3}, "text"),
        ({"text": "a", "modality": "smell"}, "modality"),
        ({"text": "a", "payload": b"a"}, "payload"),
        ({"modality": "image", "payload": b""}, "payload"),
        ({"modality": "image", "payload": "a"}, "payload"),
        ({"modality": "image"}, "text"),
        ({"text": "a", "width": 0}, "width"),
        ({"text": "a", "height": 1.5}, "height"),
        ({"text": "a", "mime": None}, "mime"),
        ({"text": "a", "scenes": ["///"]}, "scenes"),
        ({"text": "a", "at": "soon"}, "at"),
    ],
)
def test_a_block_that_cannot_be_kept_is_refused_and_changes_nothing(memory, path, arguments, argument):
    before = dump(path)

    with pytest.raises(InvalidInput) as caught:
        memory.put_block(**arguments)

    assert caught.value.argument == argument
    assert dump(path) == before


def test_characters_that_cannot_be_stored_are_replaced(memory):
    assert memory.put_block("a\0b\ud83d").text == "a\ufffdb\ufffd"


def test_a_deleted_block_is_gone_from_scenes_and_documents(memory, path):  # B3
    block = memory.put_block("排班表", scenes=["chan:qq", "chan:webui"])
    document = memory.put_document("一段对话", blocks=[block.id])

    memory.delete_block(block.id)

    assert refs(path) == []
    assert recalled(memory) == ([], [])
    assert memory.put_document("一段对话").blocks == ()
    assert memory.consume_document(document.id).blocks == ()
    with pytest.raises(NotFound):
        memory.block(block.id)
    with pytest.raises(NotFound):
        memory.delete_block(block.id)


def test_a_sweep_removes_the_refs_to_what_is_gone_and_no_others(memory, path):  # B3
    memory.commit([FACT], scenes="chan:qq")
    kept = memory.put_block("排班表", scenes="chan:qq")
    gone = memory.put_block("旧排班表", scenes="chan:qq")
    document = memory.put_document("一段对话", scenes="chan:qq")
    sql(path, "DELETE FROM blocks WHERE id = ?", gone.id)

    with memory._store.write() as tx:
        swept = [sweep_refs(tx), sweep_refs(tx)]

    assert swept == [1, 0]
    assert refs(path) == [("block", kept.id), ("document", document.id)]
    assert len(memory.recall_by_scene("chan:qq").relations) == 1


# ---- what scenes bring back


def test_recall_orders_by_weight_then_by_time_and_has_a_limit_for_each_list(memory, path):
    ids = [memory.put_block(f"第{n}块", scenes="chan:qq", at=f"2026-01-0{n}").id for n in (1, 2, 3)]
    documents = [memory.put_document(f"第{n}段", scenes="chan:qq", at=f"2026-01-0{n}").id for n in (1, 2, 3)]
    memory.commit([FACT], scenes="chan:qq")
    sql(path, "UPDATE scene_refs SET weight = 0.5 WHERE ref_text IN (?, ?)", ids[2], documents[2])

    assert recalled(memory) == ([ids[1], ids[0], ids[2]], [documents[1], documents[0], documents[2]])
    assert recalled(memory, limit=2) == ([ids[1], ids[0]], [documents[1], documents[0]])
    assert recalled(memory, limit=0) == ([], [])
    assert len(memory.recall_by_scene("chan:qq", limit=1).relations) == 1


def test_what_is_in_several_scenes_comes_once_with_the_greatest_weight(memory, path):
    block = memory.put_block("排班表", scenes=["chan:qq", "chan:qq/peer:boss"])
    sql(path, "UPDATE scene_refs SET weight = 0.2 WHERE id = (SELECT MIN(id) FROM scene_refs)")

    assert [(found.id, found.weight) for found in memory.recall_by_scene("chan:qq").blocks] == [(block.id, 1.0)]
    assert recalled(memory, "chan:qq/peer:boss", exact=True)[0] == [block.id]
    assert recalled(memory, "chan:webui")[0] == []


def test_a_situation_brings_back_blocks_and_documents_declared_ones_first(memory, path):
    for _ in range(2):
        visit = memory.enter_scene(HERE)
    grown = memory.put_block("长出来的", scenes=visit.key)
    declared = memory.put_block("说好的", scenes="chan:qq")
    document = memory.put_document("一段对话", scenes=visit.key)
    sql(path, "UPDATE scene_refs SET weight = 0.1 WHERE ref_text = ?", declared.id)

    found = memory.recall_by_situation(HERE, declared="chan:qq")

    assert [block.id for block in found.blocks] == [declared.id, grown.id]
    assert [one.id for one in found.documents] == [document.id]
    assert not memory.recall_by_situation(Situation.of(chan="qq", peer="other"))


def test_a_recollection_of_documents_alone_is_true(memory):
    memory.put_document("一段对话", scenes="chan:qq")

    assert bool(memory.recall_by_scene("chan:qq"))
    assert not memory.recall_by_scene("chan:webui")


@pytest.mark.parametrize("kind", ["block", "document", "relation"])
def test_recall_reads_the_refs_of_its_scenes_and_no_others(memory, kind):
    def put(text, *, scenes):
        if kind == "relation":
            memory.commit([Triple("x", "is", text)], scenes=scenes)
        else:
            (memory.put_block if kind == "block" else memory.put_document)(text, scenes=scenes)

    for number in range(300):
        put(f"text {number}", scenes=f"chan:x{number % 100}")
    steps = []
    with memory._store.read() as tx:
        tx.set_progress_handler(lambda: steps.append(1), 10)
        found = memory.recall_by_scene("chan:x1")
        tx.set_progress_handler(None, 0)

    assert len(found.blocks or found.documents or found.relations) == 3
    assert len(steps) < 300


# ---- payloads


@pytest.mark.parametrize("payload", [SMALL, LARGE], ids=["small", "large"])
def test_a_payload_comes_back_as_it_was(memory, path, payload):
    block = memory.put_block(modality="image", payload=payload)

    assert (block.size, block.digest) == (len(payload), digest(payload))
    assert memory.block(block.id) == block
    assert block.payload == payload
    assert memory.block(block.id, payload=False).payload is None
    assert files(path) == ({digest(payload): payload} if payload is LARGE else {})


@pytest.mark.parametrize(("size", "in_row"), [(64 * 1024, True), (64 * 1024 + 1, False)])
def test_a_payload_of_up_to_64_kib_lies_in_the_row(memory, path, size, in_row):
    memory.put_block(modality="video", payload=b"v" * size)

    assert sql(path, "SELECT payload IS NOT NULL FROM blocks") == [(in_row,)]
    assert bool(files(path)) is not in_row


def test_a_memory_without_file_keeps_payloads_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Memory.open(":memory:") as memory:
        block = memory.put_block(modality="image", payload=LARGE)
        assert memory.block(block.id).payload == LARGE
        memory.delete_block(block.id)

    assert list(tmp_path.iterdir()) == []


def test_payload_files_are_the_owners_alone(memory, path):
    umask = os.umask(0)
    try:
        memory.put_block(modality="image", payload=LARGE)
    finally:
        os.umask(umask)

    found = [path.with_name("memory.db.blobs"), *path.with_name("memory.db.blobs").rglob("*")]
    assert [oct(stat.S_IMODE(each.stat().st_mode)) for each in found] == ["0o700", "0o700", "0o600"]


def test_the_file_goes_with_the_last_block_that_has_it(memory, path):
    image = memory.put_block(modality="image", payload=LARGE)
    video = memory.put_block(modality="video", payload=LARGE)

    memory.delete_block(image.id)
    assert memory.block(video.id).payload == LARGE
    memory.delete_block(video.id)

    assert files(path) == {}
    assert not path.with_name("memory.db.blobs").exists()


def test_a_file_is_removed_only_after_the_row_is_gone_for_good(memory, path, monkeypatch):
    block = memory.put_block(modality="image", payload=LARGE)
    seen, statements = [], []
    monkeypatch.setattr("graphmem.memory.remove_blob", lambda *_: seen.append(sql(path, "SELECT COUNT(*) FROM blocks")))
    memory._store._writer.set_trace_callback(statements.append)

    memory.delete_block(block.id)

    assert seen == [[(0,)]]
    ends = [one for one in statements if one.startswith(("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA wal"))]
    synced = "PRAGMA wal_checkpoint(PASSIVE)"  # else a power cut could bring the row back
    assert ends == ["BEGIN IMMEDIATE", "COMMIT", synced, "BEGIN IMMEDIATE", "ROLLBACK"]


def test_a_file_stays_when_another_process_keeps_the_lock(path, clock, monkeypatch, caplog):
    with Memory.open(path, clock=clock, config=Config(busy_timeout=0.02)) as memory:
        block = memory.put_block(modality="image", payload=LARGE)
        forget = Memory._forget_payload

        def locked(*arguments):
            with another_process(path, "BEGIN IMMEDIATE"):
                forget(*arguments)

        monkeypatch.setattr(Memory, "_forget_payload", locked)
        memory.delete_block(block.id)

        assert files(path) == {digest(LARGE): LARGE}
        assert "is locked" in caplog.text


def test_a_block_put_anew_before_the_file_is_removed_keeps_it(path, clock, monkeypatch):
    with Memory.open(path, clock=clock) as one, Memory.open(path, clock=clock) as two:
        block = one.put_block(modality="image", payload=LARGE)
        forget = Memory._forget_payload

        def put_first(memory, name):
            two.put_block(modality="image", payload=LARGE)
            forget(memory, name)

        monkeypatch.setattr(Memory, "_forget_payload", put_first)
        one.delete_block(block.id)

        assert two.block(block.id).payload == LARGE


def test_a_file_that_cannot_be_removed_is_told_and_the_block_is_gone(memory, path, monkeypatch, caplog):
    block = memory.put_block(modality="image", payload=LARGE)

    def refuse(*_):
        raise StoreFailed("x cannot be removed")

    monkeypatch.setattr("graphmem.memory.remove_blob", refuse)
    memory.delete_block(block.id)

    assert "cannot be removed" in caplog.text
    with pytest.raises(NotFound):
        memory.block(block.id)


def test_a_write_that_fails_leaves_no_row_and_the_next_one_uses_the_file(memory, path, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("graphmem.graph.blocks.put", fail)
        with pytest.raises(KeyboardInterrupt):
            memory.put_block(modality="image", payload=LARGE)
    assert sql(path, "SELECT COUNT(*) FROM blocks") == [(0,)]
    assert files(path) == {digest(LARGE): LARGE}

    assert memory.block(memory.put_block(modality="image", payload=LARGE).id).payload == LARGE


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_disk_that_fails_leaves_no_row_and_no_half_file(memory, path, monkeypatch, step):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(blobs.os if step == "fsync" else pathlib.Path, step, fail)
        with pytest.raises(StoreFailed, match="No space left"):
            memory.put_block(modality="image", payload=LARGE, scenes="chan:qq")

    assert files(path) == {}
    assert memory.scenes() == ()
    assert sql(path, "SELECT COUNT(*) FROM blocks") == [(0,)]


def test_a_half_file_of_a_crash_is_written_anew(memory, path):
    file = blobs.blob_path(str(path), digest(LARGE))
    file.parent.mkdir(parents=True)
    file.write_bytes(LARGE[:10])

    block = memory.put_block(modality="image", payload=LARGE)

    assert memory.block(block.id).payload == LARGE


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_payload_that_was_lost_is_told_and_its_block_can_still_be_read(memory, path, damage):
    block = memory.put_block("一只猫", modality="image", payload=LARGE)
    file = blobs.blob_path(str(path), block.digest)
    file.unlink() if damage == "missing" else file.write_bytes(b"x" * len(LARGE))

    with pytest.raises(StoreCorrupt, match="backup"):
        memory.block(block.id)

    assert memory.block(block.id, payload=False).text == "一只猫"
    memory.delete_block(block.id)
    assert files(path) == {}


def test_a_block_deleted_while_its_file_is_read_is_not_found(memory, monkeypatch):
    block = memory.put_block(modality="image", payload=LARGE)

    def gone(*_):
        thread = threading.Thread(target=memory.delete_block, args=(block.id,))
        thread.start()
        thread.join()

    monkeypatch.setattr("graphmem.memory.read_blob", gone)

    with pytest.raises(NotFound):
        memory.block(block.id)


def test_a_payload_that_may_not_be_read_is_one_clear_error(path):
    with Memory.open(path) as memory:
        block = memory.put_block(modality="image", payload=LARGE)
        with pytest.MonkeyPatch.context() as patch:

            def refuse(*_):
                raise PermissionError(13, "Permission denied")

            patch.setattr(pathlib.Path, "read_bytes", refuse)
            with pytest.raises(StoreFailed, match="permissions"):
                memory.block(block.id)


# ---- documents


def test_a_document_is_kept_with_what_it_is_about(memory):
    block = memory.put_block("截图")
    document = memory.put_document(
        "老大说每周五排班。\n小团负责。",
        summary="排班",
        scenes="chan:qq",
        source="qq",
        tags=["排班", "排班", ""],
        entities="小团",
        blocks=[block.id],
    )

    assert (document.summary, document.tags, document.entities) == ("排班", ("排班",), ("小团",))
    assert (document.blocks, document.scenes, document.access_count) == ((block.id,), ("chan:qq",), 0)
    assert document.id.startswith("doc_")
    (found,) = memory.recall_by_scene("chan:qq").documents
    assert (found.id, found.summary, found.source, found.weight) == (document.id, "排班", "qq", 1.0)
    assert found.created_at == document.created_at


def test_the_same_text_is_the_same_document_and_takes_in_what_is_new(memory, clock):
    first = memory.put_document("一段对话", source="qq", tags=["a"], entities=["b"], scenes="chan:qq")
    clock.advance(hours=1)

    again = memory.put_document("一段对话", tags=["c", "a"], scenes="chan:webui")

    assert (again.id, again.created_at, again.summary) == (first.id, first.created_at, first.summary)
    assert (again.source, again.tags, again.entities) == ("qq", ("a", "c"), ("b",))
    assert again.scenes == ("chan:qq", "chan:webui")
    changed = memory.put_document("一段对话", summary="新", at="2026-01-01")
    assert (changed.summary, changed.created_at) == ("新", "2026-01-01T00:00:00.000Z")


def test_blocks_that_come_later_stand_behind_those_that_are_left(memory):
    blocks = [memory.put_block(f"b{number}").id for number in range(6)]
    memory.put_document("text", blocks=blocks[:3])
    for gone in blocks[:2]:
        memory.delete_block(gone)

    assert memory.put_document("text", blocks=blocks[3:5]).blocks == tuple(blocks[2:5])
    assert memory.put_document("text", blocks=[blocks[5], blocks[2]]).blocks == tuple(blocks[2:])


def test_ten_tags_and_twenty_entities_are_kept(memory):
    many = [f"n{number}" for number in range(30)]

    document = memory.put_document("text", tags=many, entities=many)

    assert document.tags == tuple(many[:10])
    assert document.entities == tuple(many[:20])


@pytest.mark.parametrize(
    ("source", "entities", "expected"),
    [
        ("qq", ["小团"], "qq (2): 小团, nginx, restart, caddy"),
        ("", [], "(2): nginx, restart, caddy"),
        ("qq", ["a", "b", "c", "d", "e", "f"], "qq (2): a, b, c, d, e"),
    ],
)
def test_a_summary_is_made_where_none_is_given(memory, source, entities, expected):
    document = memory.put_document("nginx restart\n\nthen caddy", source=source, entities=entities)

    assert document.summary == expected


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"text": ""}, InvalidInput),
        ({"text": None}, InvalidInput),
        ({"text": "a", "tags": [1]}, InvalidInput),
        ({"text": "a", "summary": 1}, InvalidInput),
        ({"text": "a", "scenes": "///"}, InvalidInput),
        ({"text": "a", "scenes": "chan:qq", "blocks": ["blk_none"]}, NotFound),
    ],
)
def test_a_document_that_cannot_be_kept_changes_nothing(memory, path, arguments, error):
    before = dump(path)

    with pytest.raises(error):
        memory.put_document(**arguments)

    assert dump(path) == before


def test_a_query_finds_by_words_counts_the_access_and_removes_nothing(memory, clock):  # B10
    both = memory.put_document("Nginx needs a restart")
    one = memory.put_document("nothing to do with it", entities=["NGINX"])
    memory.put_document("caddy")
    clock.advance(hours=1)

    found = memory.query_documents("restart nginx")

    assert [document.id for document in found] == [both.id, one.id]
    assert [(each.access_count, each.last_access) for each in found] == [(1, "2026-09-07T09:00:00.000Z")] * 2
    assert memory.query_documents("nginx restart", limit=1)[0].access_count == 2
    assert memory.query_documents("restart", limit=0) == ()
    assert memory.query_documents("nobody") == ()
    assert memory.put_document("caddy").access_count == 0


@pytest.mark.parametrize(("query", "limit"), [("", 3), (" ", 3), (None, 3), ("a", -1), ("a", None)])
def test_a_query_that_makes_no_sense_is_refused(memory, query, limit):
    with pytest.raises(InvalidInput):
        memory.query_documents(query, limit=limit)


def test_consuming_returns_the_document_and_removes_it(memory, path):  # B10
    block = memory.put_block("截图", scenes="chan:qq")
    document = memory.put_document("一段对话", scenes="chan:qq", blocks=[block.id])

    assert memory.consume_document(document.id) == document

    assert recalled(memory) == ([block.id], [])
    assert refs(path) == [("block", block.id)]
    assert memory.query_documents("一段对话") == ()
    with pytest.raises(NotFound):
        memory.consume_document(document.id)


# ---- turning a document into facts (B9)


def test_an_archived_document_is_removed_when_facts_are_written_and_blocks_bound(memory):
    loose, placed = memory.put_block("截图"), memory.put_block("录音", scenes="chan:webui")
    document = memory.put_document("老大偏好纯文本。", source="QQ", blocks=[loose.id, placed.id])

    report = memory.archive_document(document.id, [FACT])

    assert (report.removed, report.bound, report.unbound) == (True, (loose.id,), ())
    assert (report.facts.written, report.facts.scenes) == (1, ("chan:qq",))
    assert memory.block(loose.id).scenes == ("chan:qq",)
    assert memory.block(placed.id).scenes == ("chan:webui",)
    with pytest.raises(NotFound):
        memory.archive_document(document.id, [FACT])


@pytest.mark.parametrize("triples", [[], [Triple("", "偏好", "纯文本")]], ids=["none", "refused"])
def test_a_document_of_which_nothing_was_written_is_kept(memory, path, triples):
    block = memory.put_block("截图")
    document = memory.put_document("一段对话", source="qq", blocks=[block.id])

    report = memory.archive_document(document.id, triples)

    assert (report.removed, report.facts.written, report.bound) == (False, 0, ())
    assert memory.block(block.id).scenes == ()
    assert memory.consume_document(document.id) == document


def test_a_document_with_a_block_in_no_scene_is_kept_and_archived_later(memory):
    block = memory.put_block("截图")
    document = memory.put_document("老大偏好纯文本。", blocks=[block.id])

    report = memory.archive_document(document.id, [FACT])
    assert (report.removed, report.unbound, report.facts.created) == (False, (block.id,), 1)
    report = memory.archive_document(document.id, [FACT], scenes="chan:qq")

    assert (report.removed, report.bound, report.facts.created) == (True, (block.id,), 0)


def test_facts_go_to_the_scenes_that_are_given_else_to_those_of_the_document(memory):
    one = memory.put_document("一", source="qq", scenes="chan:webui")
    two = memory.put_document("二", source="qq", scenes="chan:webui")

    assert memory.archive_document(one.id, [FACT]).facts.scenes == ("chan:webui",)
    assert memory.archive_document(two.id, [FACT], scenes="chan:mail").facts.scenes == ("chan:mail",)


def test_an_archive_that_fails_changes_nothing(memory, path, monkeypatch):
    document = memory.put_document("一段对话", scenes="chan:qq")
    before = dump(path)

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("graphmem.graph.documents.delete", fail)
    with pytest.raises(KeyboardInterrupt):
        memory.archive_document(document.id, [FACT], at="2026-01-01")
    assert dump(path) == before

    memory.commit([FACT], at="2026-01-01")
    assert ("2026-01-01",) in sql(path, "SELECT day FROM active_days")


# ---- with the rest of the memory


def plant_twin(memory, key):
    with memory._store.write() as tx:
        tx.execute(
            """INSERT INTO scenes(key, origin, created_at, updated_at)
               VALUES (?, 'declared', '2026-09-01T00:00:00.000Z', '2026-09-01T00:00:00.000Z')""",
            (key,),
        )


def test_dedupe_moves_blocks_and_documents_and_undo_brings_them_back(memory, path):
    block, other = memory.put_block("排班表", scenes="chan:qq"), memory.put_block("截图", scenes="chan:x")
    document = memory.put_document("一段对话", scenes="chan:x")
    plant_twin(memory, "chan:QQ")
    sql(
        path,
        """INSERT INTO scene_refs(scene_id, kind, ref_text, weight, decayed_at, created_at)
           SELECT (SELECT id FROM scenes WHERE key = 'chan:QQ'), kind, ref_text, 0.5, decayed_at, created_at
           FROM scene_refs""",
    )
    before = sql(path, "SELECT * FROM scene_refs ORDER BY id")

    report = memory.dedupe_scenes()
    blocks, documents = recalled(memory, "chan:qq")
    assert (set(blocks), documents) == ({block.id, other.id}, [document.id])
    assert (report.groups[0].refs_moved, report.groups[0].refs_folded) == (2, 1)
    memory.undo(report.operation)

    assert sql(path, "SELECT * FROM scene_refs ORDER BY id") == before


def test_undo_brings_back_no_ref_to_a_block_deleted_since(memory, path):
    plant_twin(memory, "chan:QQ")
    block, kept = memory.put_block("排班表", scenes="chan:qq"), memory.put_block("截图", scenes="chan:qq")
    operation = memory.dedupe_scenes().operation

    memory.delete_block(block.id)
    memory.undo(operation)

    assert refs(path) == [("block", kept.id)]


def test_blocks_and_documents_count_as_refs_of_their_scene(memory):
    memory.put_block("排班表", scenes="chan:qq")
    document = memory.put_document("一段对话", scenes="chan:qq")

    assert memory.scenes()[0].refs == 2
    memory.consume_document(document.id)
    assert memory.scenes()[0].refs == 1


def test_a_file_of_the_first_schema_is_brought_up_to_date(path):
    with Memory.open(path) as memory:
        memory.commit([FACT], scenes="chan:qq")
    for name in ("document_blocks", "documents", "blocks"):
        sql(path, f"DROP TABLE {name}")
    sql(path, "DROP INDEX scene_refs_text")
    sql(path, "DELETE FROM _sqlite_migrations WHERE name = 'm003_blocks_and_documents'")
    sql(path, "PRAGMA user_version = 1")

    with Memory.open(path) as memory:
        memory.put_block("排班表", scenes="chan:qq")
        found = memory.recall_by_scene("chan:qq")

    assert (len(found.relations), len(found.blocks)) == (1, 1)


def test_a_payload_in_a_folder_that_cannot_be_made_is_refused():
    with pytest.raises(StoreFailed, match=r"memory\.db\.blobs"):
        blobs.write_blob("/proc/memory.db", digest(LARGE), LARGE)


def test_many_threads_put_and_delete_one_payload(path):
    with Memory.open(path, config=Config(busy_timeout=30), clock=FakeClock()) as memory:
        errors = []

        def work():
            for _ in range(10):
                block = memory.put_block(modality="image", payload=LARGE)
                try:
                    assert memory.block(block.id).payload == LARGE
                    memory.delete_block(block.id)
                except NotFound:
                    pass  # another thread was first
                except Exception as error:  # noqa: BLE001
                    errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert errors == []
        assert len(files(path)) == sql(path, "SELECT COUNT(*) FROM blocks")[0][0]
