"""Exact symbols, questions without a record, and statements that replace earlier ones. Nothing here knows a store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.core import arbitration
from graphmem.core.arbitration import Statement, abstains, superseded
from graphmem.core.keys import fold

# ---- symbols


def symbols(text):
    """What a text names exactly: numbers, versions, Latin words of three letters or more."""
    folded = fold(text)
    return arbitration._numbers(folded) | arbitration._latin_words(folded)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("用pnpm而不是npm", {"pnpm", "npm"}),
        ("端口13010，备用８０８０", {"13010", "8080"}),
        ("v1.2.3 and V2", {"1.2.3", "2", "and"}),
        ("build-x7后", {"build"}),
        ("GOALS.md", {"goals.md", "goals"}),
        ("9router", {"9router"}),
        ("8GB of 16 GB", {"8", "16"}),
        ("2nd and 3rd", {"2nd", "3rd", "and"}),
        ("192.168.1.1", {"192.168.1.1"}),
        ("12:27 on 2026-09-04", {"12", "27", "2026", "09", "04"}),
        ("1,234,567", {"1234567", "1", "234", "567"}),
        ("Straße CAFÉ", {"strasse", "café"}),
        ("十三号楼，二〇二六年，一万三千零一十", {"13", "2026", "13010"}),
        ("万一一下子十分千万别", set()),
        ("a bc", set()),
        ("", set()),
    ],
)
def test_symbols_are_numbers_versions_and_latin_words(text, expected):
    assert symbols(text) == expected


@given(st.text())
def test_symbols_of_any_text_are_found_again_in_it(text):
    found = symbols(text)

    assert symbols(text + " ") == found
    assert not found or not abstains(text, [text])


# ---- abstention (B7)


@pytest.mark.parametrize(
    ("query", "texts", "expected"),
    [
        ("端口 13010", ["网关端口是 4379"], True),
        ("端口13010是谁的", ["13010 是面板的端口"], False),
        ("端口 13010", ["编号 130100"], True),
        ("端口 13010", [], True),
        ("那个端口 13010", ["网关端口是 4379"], False),
        ("之前说的 13010", ["网关端口是 4379"], False),
        ("這個 13010", ["網關"], False),
        ("who uses port 13010", ["the gateway uses 4379"], True),
        ("the earlier port 13010", ["the gateway uses 4379"], False),
        ("is v1.2 out", ["version 1.2 is out"], False),
        ("is v1.3 out", ["version 1.2 is out"], True),
        ("13010 or 4379", ["the gateway uses 4379"], False),
        ("who keeps the gateway", ["nothing of it"], False),
        ("端口１３０１０", ["端口 13010"], False),
        ("budget of 1000", ["it is 1,000"], False),
        ("disk of 8 GB", ["8gb disk"], False),
        ("3号门", ["三号门是仓库"], False),
        ("十三号楼住着谁", ["13号楼住着奶奶"], False),
        ("十三号楼住着谁", ["十二号楼住着奶奶"], True),
    ],
)
def test_a_question_for_numbers_that_no_text_has_is_held_back(query, texts, expected):
    assert abstains(query, texts) is expected


@pytest.mark.parametrize(
    ("query", "texts", "expected"),
    [
        ("孙悟空住哪里", ["老大偏好纯文本"], True),
        ("老大的偏好", ["老大偏好纯文本"], False),
        ("排班", ["周末排班表"], False),
        ("刚才说的排期", ["老大偏好纯文本"], False),
        ("是什么", ["老大偏好纯文本"], False),
        ("", [], False),
        ("？！", [], False),
    ],
)
def test_a_question_without_symbols_is_held_back_when_nothing_of_it_is_known(query, texts, expected):
    assert abstains(query, texts) is expected


# ---- succession (B8)


def statements(*rows):
    return [Statement(number, text, f"2026-01-{number:02}", **more) for number, text, more in rows]


def replaced(*texts):
    return superseded(statements(*((number, text, {}) for number, text in enumerate(texts, 1))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("网关端口是 4379", "网关端口从 4379 改成 8328"),
        ("网关端口 4379", "网关端口 8328（之前是 4379）"),
        ("网关端口：4379", "网关端口：8328，4379 停用"),
        ("网关端口 4379", "网关端口 4379 已停用"),
        ("the gateway port is 4379", "The gateway port was 4379, now 8328."),
        ("老大的偏好是Markdown", "老大的偏好是纯文本，不要Markdown"),
        ("package manager: npm", "package manager: pnpm, not npm"),
        ("node = v18.2", "node = v20 (18.2 is no longer supported)"),
    ],
)
def test_a_later_statement_that_names_the_old_value_replaces_it(old, new):
    assert replaced(old, new) == {1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("网关端口是 4379", "网关端口是 8328"),
        ("网关端口是 4379", "网关端口是 4379"),
        ("网关端口 4379", "网关端口 4379 于 2026-09-04 重启"),
        ("网关端口是 4379", "面板端口从 4379 改成 8328"),
        ("网关端口是 4379", "网关端口从 43790 改成 8328"),
        ("package manager: npm", "package manager: pnpm"),
        ("http://example.com/a", "see http://example.com/a, it changed"),
        ("老大喜欢安静", "老大喜欢安静，改天再说"),
        ("4379", "4379 改成 8328"),
    ],
)
def test_another_subject_another_value_or_a_repetition_replaces_nothing(old, new):
    assert replaced(old, new) == set()


def test_the_order_of_time_decides_and_not_that_of_the_list():
    rows = statements((1, "网关端口是 4379", {}), (2, "网关端口从 4379 改成 8328", {}))

    assert superseded(rows[::-1]) == {1}
    assert superseded([Statement(1, rows[1].text, "2026-01-01"), Statement(2, rows[0].text, "2026-01-02")]) == set()


def test_a_chain_leaves_the_last():
    assert replaced("端口配置是 4379", "端口配置从 4379 改成 8328", "端口配置从 8328 改成 9000") == {1, 2}


def test_siblings_of_one_sentence_never_replace_each_other():
    told = {"sentence": "网关端口从 4379 改成 8328"}

    assert superseded(statements((1, "网关端口 4379", told), (2, "网关端口 8328，原 4379", told))) == set()


def test_a_retired_field_with_a_sibling_replaces_nothing_of_other_sentences():
    told = {"sentence": "网关端口换了：旧 4379，新 8328"}
    old, retired = (1, "网关端口 4379", {}), (2, "网关端口 4379 停用", told)

    assert superseded(statements(old, retired)) == {1}
    assert superseded(statements(old, retired, (3, "新网关端口 8328", told))) == set()


def test_a_statement_without_time_is_kept_and_replaces_nothing():
    old, new = "网关端口是 4379", "网关端口从 4379 改成 8328"

    assert superseded([Statement(1, old, ""), Statement(2, new, "2026-01-01")]) == set()
    assert superseded([Statement(1, old, "2026-01-01"), Statement(2, new, "")]) == set()


def test_a_subject_that_is_given_must_be_the_same():
    def row(number, subject, value, text):
        return number, text, {"subject": subject, "value": value}

    old = row(1, "网关端口", "4379", "网关端口是 4379")

    assert superseded(statements(old, row(2, "网关端口", "8328", "8328，原 4379"))) == {1}
    assert superseded(statements(old, row(2, "面板端口", "8328", "网关端口不用 4379 了"))) == set()


@given(st.lists(st.tuples(st.text(max_size=30), st.sampled_from(["", "2026-01-01", "2026-01-02"])), max_size=6))
def test_only_what_was_given_is_replaced_and_never_the_last(rows):
    given_rows = [Statement(number, text, at) for number, (text, at) in enumerate(rows)]

    found = superseded(given_rows)

    last = max((at for _, at in rows), default="")
    assert found <= {row.id for row in given_rows if row.at and row.at < last}


@pytest.mark.parametrize("text", ["1" * 100_000, "a." * 50_000, "1,000" * 20_000, "一" * 100_000, "是" * 100_000])
def test_long_uniform_texts_do_not_hang(text):
    symbols(text)

    assert not abstains(text, [text])
    assert superseded([Statement(1, text, "1"), Statement(2, text, "2")]) == set()
