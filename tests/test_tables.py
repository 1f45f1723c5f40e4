"""Tables and trees: nothing is wider than its room, and nothing gets lost where nothing is cut."""

from hypothesis import given
from hypothesis import strategies as st

from graphmem.surfaces import tables as module
from graphmem.surfaces.tables import cut, table_lines, width_of, wrapped

words = st.text("ab老大e\u0301 .-", max_size=60)
tables = st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(words, min_size=n, max_size=n), min_size=2, max_size=5))


@given(words, st.integers(2, 40))
def test_wrapping_loses_nothing_and_keeps_the_width(text, width):
    lines = wrapped(text, width)

    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(width_of(line) <= width for line in lines)


@given(words, st.integers(2, 40))
def test_what_is_cut_says_so_and_keeps_the_width(text, width):
    shown = cut(text, width)

    assert width_of(shown) <= width
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


@given(tables, st.integers(60, 160), st.booleans())
def test_a_table_keeps_to_its_room(table, room, cutting):
    names, *rows = table
    cuts = [cutting and place == 0 for place in range(len(names))]

    lines = table_lines(names, rows, room=room, right=[False] * len(names), cuts=cuts)

    assert all(width_of(line) <= room for line in lines)
    assert [line for line in lines if {*line} == {" ", "─"}]


def test_a_table_that_has_room_shows_each_row_on_one_line():
    lines = table_lines(
        ["id", "fact"], [["7", "老大 - 偏好 - 纯文本"], ["12", ""]], room=40, right=[True, False], cuts=[False] * 2
    )

    assert lines == [" id   fact", " ─────────────────────────", "  7   老大 - 偏好 - 纯文本", " 12"]


def test_a_text_without_spaces_is_read_few_times(monkeypatch):
    read = []
    places = module._places
    monkeypatch.setattr(module, "_places", lambda character: read.append(character) or places(character))

    assert len(wrapped("字" * 5_000, 10)) == 1_000
    assert len(read) <= 20_000


def test_what_is_wider_than_its_column_leaves_no_empty_line():
    assert wrapped("老大", 1) == ["老", "大"]
