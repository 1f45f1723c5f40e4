"""Markdown with frontmatter: every scalar is text, and what nobody changes keeps its bytes."""

import string

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from graphmem import InvalidInput
from graphmem.core import frontmatter

TEXTS = st.text(
    st.one_of(st.sampled_from(":#-?[]{}!|>&*%@`'\"\\,~=<\t\n\r\u2028\x85\ufeff \x07"), st.characters(codec="utf-8")),
    max_size=30,
)
KEYS = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8)
VALUES = st.dictionaries(KEYS, st.one_of(TEXTS, st.lists(TEXTS, min_size=1, max_size=3).map(tuple)), max_size=5)
BODIES = TEXTS.map(str.strip)
FILES = st.one_of(
    TEXTS,
    st.tuples(st.sampled_from(["", "\ufeff", "\n", " \n\n"]), st.lists(TEXTS, max_size=4), TEXTS).map(
        lambda parts: f"{parts[0]}---\n" + "".join(f"{line}\n" for line in parts[1]) + f"---\n{parts[2]}"
    ),
)


@given(VALUES, BODIES)
def test_what_is_written_is_read_as_it_was(values, body):
    text = frontmatter.compose(values, body)
    document = frontmatter.parse(text)

    assert document.values() == values
    assert list(document.remarks()) == []
    assert document.body == body
    assert document.text() == text


@given(VALUES)
@example({"no": "0"})
def test_other_programs_read_text_too(values):
    front = frontmatter.compose(values, "").removeprefix("---\n").removesuffix("---\n")
    assert (yaml.safe_load(front) or {}) == {
        key: value if isinstance(value, str) else [*value] for key, value in values.items()
    }


@given(FILES, st.booleans())
def test_what_is_read_is_written_as_it_was(text, crlf):
    text = text.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else text
    try:
        document = frontmatter.parse(text)
    except InvalidInput:
        return
    assert document.text() == text
    told = {key: value for key, value in document.values().items() if value is not None}
    same = frontmatter.changed(document, {}, document.body)
    assert same.text() == text
    assert frontmatter.parse(frontmatter.compose(told, document.body)).values() == told


@given(VALUES, VALUES, BODIES, BODIES, st.booleans())
def test_what_is_changed_is_changed_and_nothing_else(values, others, body, new, crlf):
    text = frontmatter.compose(values, body)
    text = text.replace("\n", "\r\n") if crlf and "\r" not in text else text
    document = frontmatter.parse(text)
    gone = dict.fromkeys(list(values)[:1])
    made = frontmatter.parse(frontmatter.changed(document, gone | others, new).text())
    left = {key: value for key, value in values.items() if key not in gone}

    assert made.values() == left | others
    assert made.body == new or made.body.replace("\n", "\r\n") == new
    kept = [entry.raw for entry in document.entries if entry.key in left and entry.key not in others]
    assert [entry.raw for entry in made.entries if entry.raw in kept] == kept


FRONT = (
    "country: no\nid: 0123\nclock: 12:30\nversion: 1.10\nwhen: 2026-03-01\non: yes\nbig: 1e3\ntab:\tx\ncolon: a: b\n"
)


@pytest.mark.parametrize(
    ("head", "end"), [("", "\n"), ("\ufeff", "\n"), ("", "\r\n"), ("\n", "\n"), ("\ufeff", "\r\n")]
)
def test_a_mark_other_line_ends_and_a_blank_line_hide_nothing(head, end):  # MD-01
    text = f"{head}---\n{FRONT}---\nText: a\n\nb\n".replace("\n", end)
    document = frontmatter.parse(text)

    assert document.values() == {
        "country": "no",
        "id": "0123",
        "clock": "12:30",
        "version": "1.10",
        "when": "2026-03-01",
        "on": "yes",
        "big": "1e3",
        "tab": "x",
        "colon": "a: b",
    }
    assert document.body == "Text: a\n\nb"
    assert document.text() == text


def test_a_key_that_comes_twice_is_told_of():  # MD-03
    document = frontmatter.parse("---\na: 1\na: 2\n---\n")
    assert document.values() == {"a": "2"}
    assert list(document.remarks()) == ["the key 'a' comes twice; the last one counts"]
    assert frontmatter.changed(document, {"a": None}, "").text() == "---\n---\n"
    assert frontmatter.changed(document, {"a": "3"}, "").values() == {"a": "3"}


HARMLESS = st.text(st.one_of(st.sampled_from("abyn019 _.,;()/+@-:#?!&*'"), st.characters(codec="utf-8")), max_size=8)
WORDS = st.sampled_from(
    ["y", "No", "ON", "null", "~", "true", "1e3", "a b", "0x1", "2026-01-01", "a-", "- a", "a #b", "-", "+"]
)


@given(st.one_of(HARMLESS, WORDS, st.lists(st.one_of(HARMLESS, WORDS), min_size=1, max_size=3).map(tuple)))
def test_what_is_written_without_yaml_is_what_yaml_writes(value):
    assert frontmatter._written_simply("key", value) in ("", frontmatter._written_as_yaml("key", value))


@given(
    st.one_of(HARMLESS, WORDS),
    st.sampled_from(["key: {}\n", "key: '{}'\n", "key:\n- {}\n", "key:\n- 'a'\n- '{}'\n", "key:  {}\n"]),
)
def test_what_is_read_without_yaml_is_what_yaml_reads(text, form):
    raw = form.format(text)
    if frontmatter._SIMPLE.fullmatch(raw):
        (_, value), *_ = frontmatter._node(raw).value
        assert frontmatter._entry(raw) == frontmatter.Entry("key", frontmatter._value(value), raw)
