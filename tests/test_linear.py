"""What strangers can write takes time linear in its length: were it quadratic, each test would take a minute."""

import pytest

from graphmem.core import checkpoints, foreign_pages, gist, keys
from graphmem.graph import neighbours
from graphmem.surfaces import tables

_LENGTH = 100_000


def _of(unit, end="!"):
    return unit * (_LENGTH // len(unit)) + end


@pytest.mark.parametrize("unit", [" ", "\t", "a ", "1. ", "1. 2. ", "`", "a_", "Aa", "哈", "- ", "## "])
def test_sentences(unit):
    assert len(gist.sentences_of(_of(unit))) <= _LENGTH


@pytest.mark.parametrize(
    "unit", ["`", "` ", "`` ` ``` ", "[[", "](", "\\[", "[\\[", "![", "~~~\n", "```\n", "[a](b.md"]
)
def test_links(unit):
    assert len(list(foreign_pages.links(_of(unit), "x.md"))) <= _LENGTH


def test_links_beside_runs_of_backticks_that_nothing_closes():
    text = " ".join("`" * length for length in range(1, 2000))
    assert list(foreign_pages.links(text, "x.md")) == []


@pytest.mark.parametrize("unit", [".", "…", ". ", "-", "-.", "/", " ", "\u0301"])
def test_slugs(unit):
    assert len(keys.slug(_of(unit)).encode()) <= 80


@pytest.mark.parametrize(
    "reply",
    [
        "# Checkpoint\n## Facts\n- a\n" + "\n" * _LENGTH + "CHECKPOINT_DONE",
        "# Checkpoint\nCHECKPOINT_DONE" + "\n" * _LENGTH,
        "## a" + " " * _LENGTH + "b",
        "<!-- project-memory-delta\n## Rules" + " " * _LENGTH + "b\n-->",
        "<!-- project-memory-delta\n## Rules\n- a\n" + "b\n" * _LENGTH + "-->",
        "<!-- project-memory-delta\n## Rules\n- a" + ". - b" * _LENGTH + "\n-->",
        "## Facts\n- a\n" + "b\n" * _LENGTH,
    ],
)
def test_replies_of_writers(reply):
    parsed = checkpoints.parse_reply(reply)
    assert len(checkpoints.claims_of(parsed.text)) <= _LENGTH


@pytest.mark.parametrize("unit", [" ", "中", "a ", "a"])
def test_names_in_a_question(unit):
    assert all(len(window) <= keys.MAX_NAME_CHARACTERS for window in neighbours._windows(_of(unit)[-20_000:]))


@pytest.mark.parametrize("unit", [" ", "\n", "a", "a ", "中"])
def test_lines_of_a_table(unit):
    assert "".join(tables.wrapped(_of(unit), 40)).endswith("!")
