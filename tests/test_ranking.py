"""The settings of ranking: where they come from, and which are refused."""

import pytest

from graphmem import Config, InvalidInput, Memory, Ranking


def test_a_file_sets_some_weights_and_leaves_the_others(tmp_path):
    (tmp_path / "graphmem.toml").write_text("[ranking]\nspeaker = 0.1\ncandidates = 50\n")

    config = Config.load(tmp_path / "graphmem.toml", {})

    assert config.ranking == Ranking(speaker=0.1, candidates=50)


@pytest.mark.parametrize(
    ("name", "value"),
    [("speaker", -0.1), ("k1", "1"), ("b", 1.5), ("candidates", 0), ("words", float("nan")), ("unknown", 1)],
)
def test_a_weight_that_cannot_be_used_is_refused_by_name(name, value):
    with pytest.raises(InvalidInput, match=name):
        Config.load(None, {}, ranking={name: value})


def test_ranking_is_a_table():
    with pytest.raises(InvalidInput, match="ranking"):
        Config(ranking=3)


def test_the_environment_does_not_set_it(caplog):
    Config.load(None, {"GRAPHMEM_RANKING": "1"})

    assert "GRAPHMEM_RANKING" in caplog.text


def test_words_may_count_for_nothing(path):
    with Memory.open(path, config=Config(ranking=Ranking(k1=0.0, title=0.0, labels=0.0))) as memory:
        memory.remember("Deploy with pnpm", body="The panel needs it.", labels=["panel"])

        assert [hit.text for hit in memory.recall("deploy")] == []
        assert len(memory.recall("panel")) == 1
