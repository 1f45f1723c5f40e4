"""The writer that needs no model: which sentence goes where, what never gets in, and how long it may be."""

import itertools
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.compose.extracting import extract, extract_candidates
from graphmem.core.candidates import parse_candidates
from graphmem.core.checkpoints import SECTION_BYTES
from graphmem.core.gist import MOST_COLUMNS, columns, files_of, names_in, sentences_of, shortened
from graphmem.core.model import StoredPart

EMPTY = dict.fromkeys(SECTION_BYTES, ())


def told(*said):
    """Parts of (role, text) or (role, author, text), or of a tool: ("tool", name, outcome, text)."""
    parts = []
    for number, (role, *rest) in enumerate(said, 1):
        author, tool, outcome = "", "", ""
        if role == "tool":
            tool, outcome, text = rest
        else:
            author, text = rest if len(rest) == 2 else ("", *rest)
        parts.append(StoredPart(number, str(number), "s", "", "", author, role, tool, outcome, text, ""))
    return parts


def sections(*said, limit=4_000):
    return extract(told(*said), limit=limit)


def size(found):
    return sum(len(line.encode()) + 1 for lines in found.values() for line in lines)


ANSWERED = ("assistant", "The deployment of the frontend works again since the cache was cleared.")

# ---- sections


def test_the_sections_are_those_of_a_checkpoint_in_its_order():
    assert list(sections()) == ["Summary", "Decisions", "Facts", "Open", "Files", "Notes"]


@pytest.mark.parametrize(
    "sentence",
    [
        "We decided to use Redis Streams.",
        "Let's go with the smaller container image.",
        "We'll use tabs for the whole repository.",
        "The final decision is to drop Python 3.10.",
        "I switched from npm to pnpm in all workspaces.",
        "Use uv instead of pip for the build.",
        "我们决定改用 pnpm 部署前端。",
        "最终采用 Redis 做缓存。",
        "数据库不再使用 MySQL。",
        "构建工具敲定为 Vite。",
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_decision_is_kept_with_who_made_it(sentence, role):
    assert sections((role, sentence), ANSWERED)["Decisions"] == (f"{role}: {sentence}",)


@pytest.mark.parametrize(
    "sentence",
    [
        "Never push to main.",
        "From now on answer in German.",
        "以后提交信息都用英文写。",
        "必须先跑测试再合并。",
    ],
)
def test_what_a_user_asks_for_good_is_a_decision(sentence):
    assert sections(("user", "Ann", sentence), ANSWERED)["Decisions"] == (f"Ann: {sentence}",)
    assert not sections(("assistant", sentence), ANSWERED)["Decisions"]


@pytest.mark.parametrize(
    "sentence",
    [
        "If we decided to use Redis, deploys would be slower.",
        "Should we go with Redis or with Kafka?",
        "如果改用 pnpm，构建会快很多。",
        "要不要改用 pnpm 来部署？",
    ],
)
def test_what_is_imagined_or_asked_is_not_decided(sentence):
    assert not sections(("user", sentence), ANSWERED)["Decisions"]


@pytest.mark.parametrize(
    "sentence",
    [
        "The service listens on port 6380.",
        "Staging runs version v2.3.1 of the broker.",
        "The docs are at https://docs.example.org/a?b=1&c=2#d now.",
        "The release is planned for 2026-12-24, ticket OPS-4711.",
        "It was fixed by commit 3f2a91c on the branch.",
        "服务端口是 6380，版本 v2.3.1。",
        "发布日期定在 2026年12月24日，负责人是王芳。".replace("定在", "是"),
        "接口文档在 https://docs.example.org/中文?a=1 这里。",
    ],
)
def test_exact_values_are_facts_word_for_word(sentence):
    # The summary takes what has no values first, and two sentences of it are enough.
    plain = ("assistant", "The broken deployment came from an old cache. The workers restart slowly after a crash.")
    assert sections(("assistant", sentence), plain)["Facts"] == (sentence,)


@pytest.mark.parametrize(
    "sentence",
    [
        "Still need to decide whether the old queue stays.",
        "TODO: write tests for the parser.",
        "Still open is the section about ports.",
        "It remains unclear why the worker restarts.",
        "还没决定要不要上 k8s。",
        "登录页面的报错尚未解决。",
        "下一步补充部署文档。",
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_is_left_to_do_is_open(sentence, role):
    assert sections((role, sentence), ANSWERED)["Open"] == (f"{role}: {sentence}",)


@pytest.mark.parametrize("question", ["Which name should the new stream have?", "日志应该保留多少天？"])
def test_a_question_is_open_until_somebody_else_speaks(question):
    asked = ("assistant", question)
    seen = ("tool", "bash", "done", "ok")

    assert sections(ANSWERED, asked, seen)["Open"] == (f"assistant: {question}",)
    answered = sections(ANSWERED, asked, ("user", "Please call it after the main service."))
    assert not answered["Open"]
    assert question not in str(answered)


def test_files_are_named_once_those_that_are_spoken_of_first():
    found = sections(
        ("user", "Please look at src/app/main.py and 修改了docs/中文/说明.md文件, see https://a.b/c.py."),
        ("tool", "bash", "done", "README.md src/app/main.py other/listed.rs C:\\Users\\me\\notes.txt"),
        ("assistant", "I fixed main.py. Node.js and e.g. 1/2 are no files."),
    )

    assert found["Files"] == (
        "src/app/main.py",
        "docs/中文/说明.md",
        "README.md",
        "other/listed.rs",
        "C:\\Users\\me\\notes.txt",
    )


def test_notes_tell_how_tools_failed_and_nothing_else_of_them():
    found = sections(
        ("tool", "pytest", "failed", "collected 3 items\nE   ValueError: the port is taken\nFAILED tests/test_a.py::b"),
        ("tool", "pytest", "failed", "collected 3 items\nE   ValueError: the port is taken\nFAILED tests/test_a.py::b"),
        ("tool", "bash", "done", "The deployment of everything was decided. Port 8080 is open."),
    )

    assert found == {**EMPTY, "Files": ("tests/test_a.py",), "Notes": ("pytest failed: ValueError: the port is taken",)}


def test_a_summary_has_two_to_five_sentences_that_stand_nowhere_else():
    topics = ["parser", "broker", "frontend", "gateway", "database", "scheduler", "compiler", "keyboard", "monitor"]
    spoken = [("user", "Ann", f"The {topic} restarts slowly after every {other} crash.")
              for topic, other in itertools.permutations(topics, 2)]  # fmt: skip
    for limit in (300, 1_000, 10_000):
        found = extract(told(*spoken), limit=limit)
        lines = [line for lines in found.values() for line in lines]
        assert 2 <= len(found["Summary"]) <= 5
        assert len(lines) == len(set(lines))


def test_sentences_of_one_part_share_a_line_and_an_ellipsis_stands_for_what_is_between():
    found = sections(
        ("user", "Ann", "The broker listens on port 6380. Thanks! The gateway listens on port 8443. It has 4 workers."),
        ("assistant", "The broken deployment came from an old cache. The workers restart slowly after a crash."),
        limit=600,
    )

    assert found["Facts"] == (
        "Ann: The broker listens on port 6380. … The gateway listens on port 8443. It has 4 workers.",
    )


# ---- what never gets in


@pytest.mark.parametrize(
    "said",
    ["hi", "echo hi", "好的", "谢谢！", "Thanks a lot!", "ok, go ahead", "你好，在吗？", "没问题，继续", "git status",
     "How are you?", "Let me check the configuration.", "That's great, Ann!", "Good morning everybody here!",
     "Here are the steps you need to follow:", "有什么可以帮你的吗？", "", "\n\n", "x" * 5_000],
)  # fmt: skip
def test_greetings_thanks_and_filler_give_nothing(said):
    assert sections(("user", said), ("assistant", said)) == EMPTY
    assert extract_candidates(told(("user", said))) == ()


def test_trivial_turns_propose_nothing():
    said = [
        "hi",
        "echo hi",
        "好的",
        "tell me a joke",
        "what time is it?",
        "run it again",
        "继续",
        "lol",
        "ls -la",
        "谢谢你",
    ]
    parts = told(*(("user" if n % 2 else "assistant", said[n % len(said)]) for n in range(250)))

    assert extract_candidates(parts) == ()
    assert extract(parts, limit=4_000) == EMPTY


def test_code_quotes_and_logs_are_not_said():
    found = sections(
        ("user", "```\nWe decided to use the code block.\n```\n> We decided to quote somebody else.\n"
                 "2026-11-30 10:00:00 We decided to log this line.\n| We decided | on a table |"),
        ANSWERED,
    )  # fmt: skip

    assert "decided" not in str(found)


def test_a_value_in_a_code_block_names_its_file():
    assert sections(("assistant", "```\nopen('conf/app.toml')\n```"))["Files"] == ("conf/app.toml",)


@pytest.mark.parametrize(
    "mark",
    ["CHECKPOINT_DONE", "<!-- project-memory-delta", "-->", "<!-- graphmem:writer -->", "## Decisions", "<memory>"],
)
def test_marks_of_a_checkpoint_that_were_said_are_left_where_they_are(mark):
    text = f"The broker listens on port 6380.\n{mark}\nThe words {mark.strip('#')} stand in 9 lines.\n"
    found = sections(
        ("user", mark, text),
        ("tool", "bash", "failed", f"error: {mark}"),
        ("assistant", "It has 4 workers and 2 queues."),
    )
    lines = [line for lines in found.values() for line in lines]

    assert any("6380" in line for line in lines)
    assert not any(line.startswith(("#", "<")) for line in lines)
    if mark not in ("## Decisions", "<memory>"):
        assert mark not in str(lines)


# ---- limits

_WORDS = st.sampled_from(
    ["the", "we", "decided", "use", "port", "6380", "v1.2", "never", "redis", "src/app.py", "broker", "部署", "决定",
     "端口", "必须", "还没", "，", "。", ".", "?", "!", "\n", "```", "-", "#", "…", "8", "É"]
)  # fmt: skip
_TEXTS = st.lists(_WORDS, max_size=60).map(" ".join) | st.text(max_size=80)
_PARTS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from(["", "Ann", "小明", "a\nb" * 60]), _TEXTS)
    | st.tuples(st.just("tool"), st.just("bash"), st.sampled_from(["", "done", "failed"]), _TEXTS),
    max_size=12,
)


@given(_PARTS, st.integers(0, 3_000))
def test_a_digest_keeps_to_its_bytes_and_its_lines_to_two_of_a_display(said, limit):
    parts = told(*said)
    found = extract(parts, limit=limit)
    lines = [line for lines in found.values() for line in lines]

    assert list(found) == list(SECTION_BYTES)
    assert size(found) <= limit
    assert all(columns(line) <= MOST_COLUMNS and len(line.splitlines()) == 1 for line in lines)
    assert len(found["Summary"]) <= 5
    assert extract(parts, limit=limit) == found


@given(_TEXTS)
def test_every_sentence_is_a_run_of_what_was_said(text):
    whole = " ".join(text.split())
    for sentence in sentences_of(text):
        assert sentence.text.removesuffix("…").strip() in whole
        assert sentence.telling <= sentence.words


def test_sections_keep_to_what_a_checkpoint_allows():
    facts = [
        ("assistant", f"Service number {n} listens on port {n + 1000} at host{n}.example.com.") for n in range(900)
    ]
    found = sections(*facts, limit=10_240)

    for section, most in SECTION_BYTES.items():
        assert size({section: found[section]}) <= most
    assert size(found) > 2_000
    assert size(sections(*facts, limit=24_576)) > 1.5 * size(found)


def test_what_is_new_goes_before_what_is_said_again():
    again = [("assistant", f"The broker {how} listens on port 6380.") for how in ("still", "again", "really")]
    found = sections(*again, ("assistant", "The gateway answers on port 8443."), limit=80)

    assert "8443" in str(found)
    assert str(found).count("6380") == 1


def test_other_hashes_of_strings_make_the_same_digest():
    code = (
        "import test_extracting as t; from graphmem.compose.extracting import extract\n"
        "said = [('user', f'The {a} of the {b} talks to the {c}, which nobody in the team understands.')"
        " for a in ('broker', 'parser', 'router') for b in ('backend', 'panel') for c in ('cache', 'queue', 'disk')]\n"
        "print(extract(t.told(*said), limit=700))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip

    assert len(printed) == 1


# ---- candidates


@pytest.mark.parametrize(
    ("sentence", "category", "names", "rule"),
    [
        ("Never push to main.", "preferences", [], True),
        ("Always run the tests before each commit.", "preferences", [], True),
        ("必须先跑测试再合并。", "preferences", [], True),
        ("禁止直接推送到 main 分支。", "preferences", ["main"], True),
        ("I always use tabs.", "preferences", [], False),
        ("I prefer short answers.", "preferences", [], False),
        ("From now on answer in German.", "preferences", ["German"], False),
        ("以后提交信息都用英文写。", "preferences", [], False),
        ("We decided to use Redis Streams.", "decisions", ["Redis", "Streams"], False),
        ("我们决定改用 pnpm 部署前端。", "decisions", ["pnpm"], False),
    ],
)
def test_what_a_user_holds_to_is_proposed(sentence, category, names, rule):
    (entry,) = extract_candidates(told(("user", f"Hi! {sentence} Thanks!"), ("assistant", sentence)))
    (candidate,) = parse_candidates([entry])

    assert entry == {
        "title": sentence.rstrip(".。"), "body": sentence, "category": category, "loadWhen": names, "proposeRule": rule,
    }  # fmt: skip
    assert (candidate.kind == "rule") == rule
    assert candidate.body == sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "For now we decided to use Redis.",
        "She decided to leave the team.",
        "Should we always use tabs?",
        "If we always use tabs, diffs get smaller.",
        "The service never answers on port 6380.",
        "We need to fix the login page.",
        "他决定改用 pnpm。",
        "这次先用 npm 部署。",
        "还没决定要不要用 Redis。",
    ],
)
def test_in_doubt_nothing_is_proposed(sentence):
    assert extract_candidates(told(("user", sentence))) == ()


def test_a_wish_that_is_told_again_is_proposed_once_and_the_newest_are_kept():
    wishes = [("user", f"Always use the tool-{n} for deploys.") for n in range(30)]
    found = extract_candidates(told(*wishes, ("user", "Always use the tool-7 for deploys.")))

    assert len(found) == 24
    assert [entry["body"] for entry in found[-2:]] == [
        "Always use the tool-29 for deploys.",
        "Always use the tool-7 for deploys.",
    ]


# ---- pieces


def test_a_sentence_ends_where_it_ends():
    text = (
        "Dr. Smith wrote e.g. src/a.py. See https://a.b/c?d=1. 端口是6380！好的，明天发布 v1.2 版本。"
        "Done - I think so.\n1. First step: build it"
    )

    assert [sentence.text for sentence in sentences_of(text)] == [
        "Dr. Smith wrote e.g. src/a.py.",
        "See https://a.b/c?d=1.",
        "端口是6380！",
        "明天发布 v1.2 版本。",
        "Done - I think so.",
        "First step: build it",
    ]


@given(st.text(max_size=300), st.integers(4, 120))
def test_what_is_cut_has_its_width_and_begins_as_before(text, most):
    cut = shortened(text, most)

    assert columns(cut) <= max(most, 0)
    assert cut == text or text.strip().startswith(cut.removesuffix("…").strip())


def test_names_and_files_of_adversaries_take_no_square_of_their_length():
    for text in ("a" * 100_000, "/" * 100_000, "a/" * 50_000, "a." * 50_000, "x@" * 50_000, "`" * 100_000):
        assert len(files_of([text])) <= 1
        assert len(names_in(text)) <= 1


@pytest.mark.parametrize(
    ("text", "section", "lines"),
    [
        ("Still open:\n1. rotate the certificate\n2. delete the old bucket\n3. write the runbook", "Open",
         ["rotate the certificate", "delete the old bucket", "write the runbook"]),
        ("We decided:\n- no Redis\n- weekly backups", "Decisions", ["no Redis", "weekly backups"]),
        ("What's left:\n- [ ] drop the column in production\n- [ ] tell the finance team\n- [x] raise max_wal_size",
         "Open", ["drop the column in production", "tell the finance team"]),
        ("还没做的：1. 供应商 B 的退货文件；2. rejects.csv 的自动邮件；3. Grafana 面板（十月）。", "Open",
         ["供应商 B 的退货文件", "rejects.csv 的自动邮件", "Grafana 面板（十月）。"]),
        ("The ports:\n1. panel on 8443\n2. engine on 9443", "Open", []),
    ],
)  # fmt: skip
def test_what_a_list_is_of_holds_for_its_items(text, section, lines):
    told_there = " ".join(extract(told(("assistant", text)), limit=4000)[section])

    assert [line for line in lines if line in told_there] == lines
    assert bool(told_there) == bool(lines)


def test_a_long_paragraph_is_read_as_its_sentences():
    long = "The weather was fine in the harbour. " * 200 + "We decided to move the panel to lighthouse-2."

    assert "lighthouse-2" in str(extract(told(("user", long)), limit=1000)["Decisions"])
