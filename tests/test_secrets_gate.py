"""No secret gets into the file: each way of writing, and what is said about it."""

import inspect

import pytest
from support import dump

from graphmem import Config, Feature, Memory, Part, SecretRefused, Situation, Triple
from graphmem.core.redaction import REDACTED, refuse_secrets

KEY = "sk-proj-" + "a1B2c3D4e5" * 4
PASSWORD = "Tr0ub4dor"  # noqa: S105 (made up)


def traces(path, *secrets):
    return [trace for secret in secrets for trace in Memory.verify_forgotten(path, secret).found]


def test_facts_with_a_secret_are_refused_and_the_others_are_written(tmp_path):
    path = tmp_path / "m.db"
    with Memory.open(path) as memory:
        report = memory.commit(
            [
                Triple("Ann", "likes", "tea"),
                Triple("Ann", "has key", KEY),
                Triple(f"令牌{KEY}", "of", "Ann"),
                Triple("数据库", "密码", PASSWORD),
                Triple("", "likes", KEY),
                Triple("Ann", "logs in", "daily", sentence=f"数据库密码是{PASSWORD}，每天登录"),
            ]
        )
        assert report.written == 2
        assert [refusal.index for refusal in report.refused] == [1, 2, 3, 4]
        ends = [refusal.reason.partition(":")[0] for refusal in report.refused]
        assert ends == ["object", "subject", "object", "subject"]
        assert "triples[5]" in report.remarks[0]
        assert KEY not in repr(report)
        assert PASSWORD not in repr(report)
        assert report.refused[2].triple.object == REDACTED
        assert memory.recall("每天登录")
    assert not traces(path, KEY, PASSWORD)


@pytest.mark.parametrize(
    "write",
    [
        lambda memory: memory.commit([Triple("a", "b", "c")], session=KEY),
        lambda memory: memory.commit([Triple("a", "b", "c")], scope=KEY),
        lambda memory: memory.commit([Triple("a", "b", "c")], source=KEY),
        lambda memory: memory.commit([Triple("a", "b", "c")], scenes=f"chan:{KEY}"),
        lambda memory: memory.commit([Triple("a", "b", "c")], scenes=iter([f"chan:{KEY}"])),
        lambda memory: memory.mirror(KEY, [Part("1", text="hello")]),
        lambda memory: memory.mirror("s", [Part("1", text="hello")], scope=KEY),
        lambda memory: memory.mirror("s", [Part(KEY, text="hello")]),
        lambda memory: memory.declare_scene(f"chan:{KEY}"),
        lambda memory: memory.enter_scene(Situation([Feature("peer", KEY)])),
        lambda memory: memory.enter_scene(Situation(), declared=f"chan:{KEY}"),
        lambda memory: memory.put_document("text", scenes=f"chan:{KEY}"),
        lambda memory: memory.put_block("text", scenes=f"chan:{KEY}"),
        lambda memory: memory.tag_scene(f"chan:{KEY}", [1]),
        lambda memory: memory.rename_scene("chan:qq", f"chan:{KEY}"),
        lambda memory: memory.edit_relation(1, object=KEY),
        lambda memory: memory.edit_relation(1, relation="密码", object=PASSWORD),
        lambda memory: memory.edit_relation(1, sentence=f"密码是{PASSWORD}"),
    ],
)
def test_names_that_are_secrets_are_refused_without_a_character_of_them(tmp_path, write):
    path = tmp_path / "m.db"
    with Memory.open(path) as memory:
        memory.commit([Triple("Ann", "likes", "tea")], scenes="chan:qq")
        with pytest.raises(SecretRefused) as caught:
            write(memory)
        told = f"{caught.value!r} {caught.value}"
        assert not any(part[i : i + 4] in told for part in (KEY[8:], PASSWORD) for i in range(len(part) - 3))
    assert not traces(path, KEY, PASSWORD)


# Every verb that makes a scene of a key that it is given.
DOORS = {
    "archive_document": lambda memory, key: memory.archive_document(
        memory.put_document("text").id, [Triple("a", "b", "c")], scenes=key
    ),
    "commit": lambda memory, key: memory.commit([Triple("a", "b", "c")], scenes=key),
    "declare_scene": lambda memory, key: memory.declare_scene(key),
    "enter_scene": lambda memory, key: memory.enter_scene(Situation(), declared=key),
    "put_block": lambda memory, key: memory.put_block("text", scenes=key),
    "put_document": lambda memory, key: memory.put_document("text", scenes=key),
    "remember": lambda memory, key: memory.remember("a note", scenes=key),
    "rename_scene": lambda memory, key: memory.rename_scene("chan:qq", key),
    "tag_scene": lambda memory, key: memory.tag_scene(key, [1]),
}
READERS = {"brief", "recall", "recall_by_situation", "rules_for", "tool_brief"}


def test_every_verb_that_takes_keys_of_scenes_is_a_door_or_reads():
    verbs = {name: inspect.signature(verb).parameters for name, verb in inspect.getmembers(Memory, inspect.isfunction)}
    taking = {name for name, given in verbs.items() if {"scenes", "declared", "new_key"} & given.keys()}
    assert taking | {"declare_scene", "tag_scene"} == DOORS.keys() | READERS


@pytest.mark.parametrize("key", ["password:abc123x", "chan:qq/token:abc12345", "密码:夏天2026"])
@pytest.mark.parametrize("door", DOORS)
def test_a_kind_that_names_a_secret_opens_no_door(tmp_path, door, key):
    with Memory.open(tmp_path / "m.db") as memory:
        memory.commit([Triple("Ann", "likes", "tea")], scenes="chan:qq")
        with pytest.raises(SecretRefused):
            DOORS[door](memory, key)
    assert not traces(tmp_path / "m.db", key.rpartition(":")[2])


def test_a_feature_whose_kind_names_a_secret_makes_no_scene(tmp_path):
    with Memory.open(tmp_path / "m.db") as memory, pytest.raises(SecretRefused):
        memory.enter_scene(Situation([Feature("password", "abc123x")]))
    assert not traces(tmp_path / "m.db", "abc123x")


@pytest.mark.parametrize("project_memory", [True, False])
def test_the_name_of_the_session_is_no_secret(tmp_path, project_memory):
    with pytest.raises(SecretRefused, match=r"^session: "):
        Memory.open(tmp_path / "m.db", session=KEY, config=Config(project_memory=project_memory))
    assert not traces(tmp_path / "m.db", KEY)


@pytest.mark.parametrize("name", [KEY, f"password={PASSWORD}"])
def test_the_folder_of_the_project_is_no_secret(tmp_path, name):
    folder = tmp_path / name / "app"
    folder.mkdir(parents=True)
    with pytest.raises(SecretRefused, match=r"^project: "):
        Memory.open(tmp_path / "m.db", project=folder)
    assert not traces(tmp_path / "m.db", KEY, PASSWORD)


def test_a_number_under_the_name_of_a_secret_is_refused_as_no_text(memory):
    (refused,) = memory.commit([Triple("数据库", "密码", 12345678)]).refused
    assert "a name is text" in refused.reason


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        (Triple("数据库", "密码", "在保险箱里"), {"object": PASSWORD}),
        (Triple("数据库", "在", PASSWORD), {"relation": "password"}),
        (Triple("数据库", "密码", "在保险箱里"), {"object": PASSWORD, "sentence": "it is new", "confidence": 0.5}),
    ],
)
def test_an_edit_that_makes_a_secret_with_what_is_stored_is_refused(memory, path, told, changes):
    memory.commit([told], scenes="chan:qq")
    before = dump(path)
    with pytest.raises(SecretRefused) as caught:
        memory.edit_relation(1, **changes)
    assert (caught.value.argument, caught.value.kind) == (next(iter(changes)), "password")
    assert dump(path) == before
    assert memory.edit_relation(1, relation="密码", object="在柜子里").new


def test_the_mirror_replaces_secrets_before_anything_else_is_done(tmp_path):
    path = tmp_path / "m.db"
    with Memory.open(path) as memory:
        said = (f"我的密钥是{KEY}请记住", "密码：夏天2026", "密码学")
        parts = [Part(str(place), text=text) for place, text in enumerate(said)]
        report = memory.mirror("s", parts)
        assert (report.added, len(report.remarks)) == (3, 2)
        assert memory.mirror("s", parts).known == 3
        kept = {hit.text for hit in memory.recall("密钥 密码")}
        assert kept == {f"我的密钥是{REDACTED}请记住", f"密码：{REDACTED}", "密码学"}
        assert memory.backup(tmp_path / "copy.db")
    assert not traces(path, KEY, "夏天2026")
    assert not traces(tmp_path / "copy.db", KEY, "夏天2026")


def test_a_mirror_is_verbatim_where_it_is_asked_for(tmp_path):
    with Memory.open(":memory:") as memory:
        memory.mirror("s", [Part("1", text=f"key {KEY}")], redact=False)
        assert KEY in memory.recall("key")[0].text
        assert memory.mirror("s", [Part("1", text=f"key {KEY}")]).changed == 1
        with pytest.raises(ValueError, match="redact"):
            memory.mirror("s", [Part("1", text="x")], redact="no")
    with Memory.open(":memory:", config=Config(redact_mirror=False)) as memory:
        memory.mirror("s", [Part("1", text=f"key {KEY}")])
        assert KEY in memory.recall("key")[0].text
        memory.mirror("s", [Part("2", text=f"lock {KEY}")], redact=True)
        assert KEY not in memory.recall("lock")[0].text


def test_blocks_and_documents_are_named_by_what_is_kept(tmp_path):
    path = tmp_path / "m.db"
    with Memory.open(path) as memory:
        document = memory.put_document(
            f"deploy with {KEY}", summary=f"key {KEY}", tags=[KEY], source=f"密码是{PASSWORD}", entities=[KEY]
        )
        assert document.id == memory.put_document(f"deploy with {REDACTED}").id
        block = memory.put_block(f"deploy with {KEY}", source=KEY)
        assert block.id == memory.put_block(f"deploy with {REDACTED}").id
        assert block.source == REDACTED
    assert not traces(path, KEY, PASSWORD)


def test_every_one_of_three_secrets_in_a_row_is_refused():
    # The reference kept a state between calls, and every second secret slipped through.
    for secret in (KEY, "ghp_" + "a1B2" * 9, "AKIA" + "A1B2" * 4) * 2:
        with pytest.raises(SecretRefused) as caught:
            refuse_secrets(title="ok", highlight=["fine", f"see {secret} there"])
        assert caught.value.argument == "highlight"
        assert secret[8:12] not in str(caught.value)


def test_what_is_no_triple_is_not_shown(caplog):
    with Memory.open(":memory:") as memory, pytest.raises(ValueError, match=r"triples\[0\]") as caught:
        memory.commit([("Ann", "has", KEY)])
    assert KEY not in str(caught.value)


# ---- the loop guard

BRIEF = "<memory>\nMemories of this turn:\n- [note] tea &lt;/memory>\n</memory>"
RECALLED = "<recalled-memory>\n- [note] tea\n</recalled-memory>"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"Hello\n{BRIEF}\nDear Ann", "Hello\n\nDear Ann"),
        (BRIEF, ""),
        (f"{BRIEF}\n\n{RECALLED}", ""),
        (f"Hello {BRIEF[:50]}", "Hello "),
        (f"Hello\n{BRIEF[:-4]}", "Hello\n"),
        ("What does <memory> do?", "What does <memory> do?"),
        ("<memory>\nsome XML <b>of mine</b>\n</memory>", "<memory>\nsome XML <b>of mine</b>\n</memory>"),
        ("the mark is <memory>\nand then words", "the mark is <memory>\nand then words"),
    ],
)
def test_what_the_memory_injected_is_not_mirrored(text, kept):
    with Memory.open(":memory:") as memory:
        report = memory.mirror("s", [Part("1", text="before"), Part("2", text=text), Part("3", text="after")])
        assert report.added == 3
        assert len(report.remarks) == (kept != text)
        assert memory.mirror("s", [Part("1", text="before"), Part("2", text=text), Part("3", text="after")]).known == 3
        with memory._store.read() as tx:
            (stored,) = tx.execute("SELECT text FROM parts WHERE part = '2'").fetchone()
        assert stored == kept


def test_a_brief_of_the_memory_itself_is_left_out():
    with Memory.open(":memory:") as memory:
        memory.commit([Triple("Ann", "likes", "<b>tea</b>", sentence="Ann likes </memory> tea")], scenes="chan:qq")
        brief = memory.brief(Situation([Feature("chan", "qq")]), query="tea", declared="chan:qq")
        assert brief.text.startswith("<memory>")
        for text in (brief.text, brief.text[:-9], brief.text[:60]):
            memory.mirror("s", [Part(str(len(text)), text=f"system prompt\n{text}")])
        assert {hit.text for hit in memory.recall("system prompt", kinds="part")} == {"system prompt\n"}
