"""What a model proposes to remember: read out of its reply, compared with what is known, screened."""

import dataclasses
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphmem.core import candidates
from graphmem.core.candidates import (
    DUPLICATE,
    MOST_CANDIDATES,
    Candidate,
    likeness,
    note_text,
    parse_candidates,
    screen,
)
from graphmem.core.keys import slug

LONG = (
    "The service is deployed by the release script, which builds the web app, uploads the image to the registry, "
    "waits for the health check and then moves the traffic; the script writes its log below the work folder, keeps "
    "the newest images and tells the channel of the team when the traffic has moved. {} Whoever releases looks at "
    "the dashboard for a quarter of an hour and rolls back at the first alarm, since a late roll back loses orders."
)
LONG_ZH = (
    "服务由发布脚本部署，脚本先构建网页应用，把镜像上传到仓库，等待健康检查通过，再切换流量；日志写在工作目录下面，"
    "保留最近的镜像，流量切换完成时通知团队频道。{}发布的人要看着仪表盘，一有警报就回滚，因为回滚晚了会丢订单。"
)


def long(a, b):
    """A pair of long texts that differ in one sentence."""
    return LONG.format(a), LONG.format(b)


def long_zh(a, b):
    return LONG_ZH.format(a), LONG_ZH.format(b)


# Nearly all of them were written before the measure; the last of each were chosen afterwards, to try it on new ones.
SAME = {
    "equal": ("Redis listens on 6380", "Redis listens on 6380"),
    "case": ("Redis listens on 6380", "redis LISTENS on 6380"),
    "spacing": ("Redis listens on 6380", "  Redis   listens\non 6380 "),
    "width": ("Redis listens on 6380", "Ｒｅｄｉｓ　listens on ６３８０"),
    "an invisible character": ("Redis listens on 6380", "Re\u200bdis listens on 6380"),
    "a full stop": ("Redis listens on 6380", "Redis listens on 6380."),
    "articles": ("Restart the server after a deploy", "Restart server after deploy"),
    "the and this": ("Use pnpm for installs in the monorepo", "Use pnpm for installs in this monorepo"),
    "word forms": ("Always use pnpm to install dependencies", "Always use pnpm for installing dependencies"),
    "contractions": ("Don't use npm here", "Do not use npm here"),
    "can not": ("The worker can't reach the database", "The worker cannot reach the database"),
    "courtesy": ("Please answer in Chinese", "Answer in Chinese"),
    "punctuation of Chinese": ("部署脚本必须使用 pnpm，不要用 npm", "部署脚本必须使用pnpm, 不要用npm。"),
    "particles of Chinese": ("部署脚本的端口是 6380", "部署脚本端口 6380"),
    "Chinese, equal": ("以后都用中文回答", "以后都用中文回答"),
    "courtesy in Chinese": ("请用中文回答", "用中文回答"),
    "long, case": long("The log is kept.", "the LOG is kept"),
    "long, two more plain words": long("The log is kept.", "The whole log is simply kept quietly."),
    "long, Chinese particle": long_zh("日志保留。", "日志保留了。"),
    "long, quoted": long("Keep `pnpm` here.", "Keep 'pnpm' here."),
    "a title that the body repeats": (
        note_text("Redis listens on 6380", ""),
        note_text("Redis listens on 6380", "Redis listens on 6380."),
    ),
    "a clitic": ("It's slow", "It is slow"),
    "a possessive": ("Alice's laptop has no camera", "Alice’s laptop has no camera."),
    "a bullet": ("- use ruff\n- use mypy", "* use ruff\n* use mypy"),
    "Chinese, spacing and marks": ("用户叫小明，住在北京。", "用户叫小明,住在 北京"),
    "an equals sign": ("port=6380", "port = 6380"),
}
APART = {
    "a digit": ("Redis listens on 6380", "Redis listens on 6381"),
    "a version": ("Pin react to v1.2", "Pin react to v1.20"),
    "a number more": ("Retry the upload", "Retry the upload 3 times"),
    "two swapped": ("use pnpm, not npm", "use npm, not pnpm"),
    "must and must not in Chinese": ("部署前必须备份数据库", "部署前禁止备份数据库"),
    "not in Chinese": ("测试可以连接生产库", "测试不可以连接生产库"),
    "not": ("The tests may use the network", "The tests may not use the network"),
    "never": ("Always squash commits on merge", "Never squash commits on merge"),
    "contracted not": ("Squash commits on merge", "Don't squash commits on merge"),
    "before and after": ("Run the migration before the deploy", "Run the migration after the deploy"),
    "from and to": ("Copy from staging to production", "Copy to staging from production"),
    "direction": ("Copy staging to production", "Copy production to staging"),
    "a name": ("Alice approves the releases", "Bob approves the releases"),
    "a name in small letters": ("The cache is redis", "The cache is valkey"),
    "a name that is a form of another": ("Ask Adams about the keys", "Ask Adam about the keys"),
    "a Chinese name": ("小王负责发布", "小李负责发布"),
    "Chinese numerals": ("发布后等三分钟", "发布后等五分钟"),
    "Chinese, how titles end": ("部署脚本必须使用固定版本", "部署脚本必须使用最新镜像"),
    "a suffix of a model": ("The camera is cam-a1", "The camera is cam-a1r"),
    "C and C++": ("The plug-in is written in C", "The plug-in is written in C++"),
    "a comparison": ("Python >= 3.11 is needed", "Python < 3.11 is needed"),
    "a sign": ("The offset is -5", "The offset is 5"),
    "a range of versions": ("Pin it to ^1.2", "Pin it to ~1.2"),
    "only marks": ("!!!", "???"),
    "currency": ("The plan costs $5", "The plan costs €5"),
    "per cent": ("Keep 5 % free", "Keep 5 free"),
    "only": ("Deploy on Mondays", "Deploy only on Mondays"),
    "and, or": ("Ask Ann and Bo", "Ask Ann or Bo"),
    "unrelated": ("Redis listens on 6380", "以后都用中文回答"),
    "nothing and something": ("", "Redis listens on 6380"),
    "steps in another order": ("Stop nginx. Restart redis.", "Restart redis. Stop nginx."),
    "long, a digit": long("The port is 6380.", "The port is 6381."),
    "long, a version": long("It needs node 20.1.", "It needs node 20.10."),
    "long, swapped": long("Use pnpm, not npm.", "Use npm, not pnpm."),
    "long, not": long("Old images are removed.", "Old images are not removed."),
    "long, n't": long("It removes old images.", "It doesn't remove old images."),
    "long, a name": long("Ask Alice.", "Ask Bob."),
    "long, a name in small letters": long("The registry is harbor.", "The registry is quay."),
    "long, one more name": long("The log is kept.", "The log is kept by Alice."),
    "long, one more number": long("The log is kept.", "The log is kept for 30 days."),
    "long, one more identifier": long("The log is kept.", "The log is kept in app.log."),
    "long, on and off": long("The debug flag is on.", "The debug flag is off."),
    "long, an exception": long("The log is kept.", "The log is kept except there."),
    "long, not in German": long("Das Log wird gelöscht.", "Das Log wird nicht gelöscht."),
    "long Chinese, must and must not": long_zh("发布前必须备份。", "发布前禁止备份。"),
    "long Chinese, not": long_zh("旧镜像要删除。", "旧镜像不要删除。"),
    "long Chinese, a digit": long_zh("端口是6380。", "端口是6381。"),
    "long Chinese, a numeral": long_zh("等三分钟。", "等五分钟。"),
    "long Chinese, one more numeral": long_zh("等几分钟。", "等几十分钟。"),
    "long Chinese, a name": long_zh("小王批准。", "小李批准。"),
    "long Chinese, one more Latin name": long_zh("日志保留。", "日志保留loki。"),
    "long Chinese, swapped": long_zh("用甲库不用乙库。", "用乙库不用甲库。"),
    "long, one more sentence": long("The log is kept.", "The log is kept. Restart the workers."),
    "long, one more phrase": long("The log is kept.", "The log is kept by alice."),
    "long, in turn": long("Tests run in parallel.", "Tests run sequentially."),
    "long, on and off in a word": long("The cache is enabled.", "The cache is disabled."),
    "long Chinese, one more sentence": long_zh("日志保留。", "日志保留。重启工作进程。"),
    "long Chinese, a day": long_zh("周一发布。", "周二发布。"),
    "long Chinese, one more name": long_zh("王明批准。", "王明李雷批准。"),
    "numbered groups": ("机器人在群1", "机器人在群11"),
    "like and dislike in Chinese": ("用户喜欢香菜", "用户不喜欢香菜"),
    "a point in a number": ("It takes 1.5 hours", "It takes 15 hours"),
    "an option and its opposite": ("Run it with --verify", "Run it with --no-verify"),
    "who reports to whom": ("Tom reports to Jerry", "Jerry reports to Tom"),
    "ports in turn": ("Try port 80, then 443", "Try port 443, then 80"),
    "equal and not equal": ("Fail when x == y", "Fail when x != y"),
}
HALF = {
    "English": (
        "Deploy with pnpm: npm breaks the lock file of the monorepo",
        "The monorepo is installed with pnpm because the lock file of npm is not read",
    ),
    "Chinese": ("部署脚本用 pnpm 而不是 npm，因为锁文件会被破坏", "锁文件只有 pnpm 能读，所以安装依赖时选它"),
    "mixed": ("用pnpm部署前端服务", "前端服务的依赖由 pnpm 管理，部署另有脚本"),
    "half of it": ("Redis listens on 6380. Postgres listens on 5432.", "Redis listens on 6380. Celery has two queues."),
}


@pytest.mark.parametrize(("a", "b"), SAME.values(), ids=SAME)
def test_the_same_in_other_clothes_is_a_duplicate(a, b):
    assert likeness(a, b) >= DUPLICATE


@pytest.mark.parametrize(("a", "b"), APART.values(), ids=APART)
def test_what_says_something_else_is_no_duplicate(a, b):
    assert likeness(a, b) < DUPLICATE
    assert likeness(b, a) < DUPLICATE


@pytest.mark.parametrize(("a", "b"), HALF.values(), ids=HALF)
def test_a_paraphrase_that_overlaps_by_half_is_clearly_below(a, b):
    assert 0 < likeness(a, b) < 0.7


@pytest.mark.parametrize("name", ["equal", "case", "spacing", "width", "Chinese, equal"])
def test_texts_that_are_equal_but_for_case_spacing_and_width_are_wholly_alike(name):
    assert likeness(*SAME[name]) == 1.0


PIECES = [*"ab1. ,-'>", "不", "的", "王", "not ", "the ", "Bob ", "don't ", "ß", "\ud83d"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


@given(TEXTS, TEXTS)
def test_likeness_is_symmetric_and_within_0_and_1(a, b):
    assert 0 <= likeness(a, b) <= 1
    assert likeness(a, b) == likeness(b, a)
    assert likeness(a, a) == 1
    assert likeness(a, f"  {a} ") == 1


@given(st.text(max_size=30))
@example("İ")
def test_any_text_is_like_itself(text):
    assert likeness(text, text) == 1


@given(st.lists(st.sampled_from(["deploy", "image", "镜像", "流", "log", "the"]), max_size=30), st.integers(0, 9999))
def test_another_number_is_never_a_duplicate(words, number):
    a, b = " ".join([*words, str(number)]), " ".join([*words, str(number + 1)])

    assert likeness(a, b) < DUPLICATE


# ---- the reply

PLAIN = {"title": "Use pnpm", "body": "npm breaks the lock file"}
FOUND = Candidate("facts", "Use pnpm", "npm breaks the lock file", "Use pnpm", "", (), "fact")
ONE = json.dumps([PLAIN])

READ = {
    "an array": ONE,
    "a fence": f"```json\n{ONE}\n```",
    "a fence in prose": f"Here is what I found:\n\n```json\n{ONE}\n```\nThat is [all].",
    "a fence on one line": f"So: ```json {ONE} ```",
    "a fence without language": f"```\n{ONE}\n```",
    "a fence that never ends": f"```json\n{ONE}",
    "the first fence that parses": f"```sh\npnpm i [a]\n```\n```json\n{ONE}\n```",
    "a fence within a string": "```json\n" + ONE.replace("npm breaks", "npm\\n```breaks```").strip() + "\n```",
    "prose around": f"I keep one: {ONE} and no more",
    "brackets in prose": f"I found [1] thing (see [a][b]): {ONE} as of [2].",
    "an open bracket in prose": f"An interval [0, 1): {ONE}",
    "inside an object": f'{{"candidates": {ONE}}}',
    "a trailing comma": ONE[:-1] + ",\n]",
    "a trailing comma inside": f"[{ONE[1:-2]},}},]",
    "other values": ONE[:-1] + ', 5, null, "x", [1], {}, {"title": "no body"}]',
    "NaN": ONE[:-2] + ', "confidence": NaN}]',
    "text": {"text": ONE},
    "content": {"content": ONE},
    "output": {"output": ONE},
    "result": {"result": ONE},
    "pieces": {"content": [{"type": "text", "text": ONE[:20]}, {"type": "text", "text": ONE[20:]}]},
    "pieces of text": {"content": [ONE[:20], ONE[20:]]},
    "an array of what it found": {"result": [PLAIN]},
    "the array itself": [PLAIN],
    "nested": {"output": {"content": [{"text": ONE}]}},
    "another array before": f'[{{"role": "user"}}] gave {ONE}',
    "the key that holds something": {"text": "", "content": None, "output": 5, "result": ONE},
}


@pytest.mark.parametrize("reply", READ.values(), ids=READ)
def test_a_reply_is_read_whatever_stands_around(reply):
    (found,) = parse_candidates(reply)

    assert (found.title, found.category, found.kind, found.status) == ("Use pnpm", "facts", "fact", "live")


def test_a_candidate_has_what_was_left_out():
    assert parse_candidates(ONE) == (FOUND,)


@pytest.mark.parametrize(
    "reply",
    [
        "", "[]", "nothing", "no brackets here", "[", "]", "][", "[{", "```json\n[]\n```", '[{"title": "a"', "{}",
        "[1, 2]", '["a"]', "[[[]]]", "null", "NaN", None, 5, 5.0, True, b"[]", [], {}, {"text": 5}, [None], {"a": ONE},
        '[{"title": "a", "body": 5}]', '[{"title": 5, "body": "b"}]', '[{"title": " ", "body": "b"}]',
        '[{"title": "a", "body": "\\u200b"}]', '[{"title": "a"}]', '[{"body": "b"}]', '[{"title": NaN, "body": "b"}]',
        '[{"title": "a", "body": "b"', f'Like {ONE} it would be.\n```json\n[]\n```', "[" * 100_000,
        '[{"a":' * 50_000, '[{"title": ' + "9" * 10_000 + ', "body": "b"}]',
    ],
)  # fmt: skip
def test_what_holds_no_candidate_gives_none(reply):
    assert parse_candidates(reply) == ()


def test_an_object_that_holds_itself_gives_none():
    reply = {}
    reply["content"] = [reply, reply]

    assert parse_candidates(reply) == ()


def test_a_comma_within_a_text_stays():
    (found,) = parse_candidates('[{"title": "a", "body": "x[1,] and {2, }",},]')

    assert found.body == "x[1,] and {2, }"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Preferences", "preferences"), ("pitfalls", "pitfalls"), ("ＤＥＣＩＳＩＯＮＳ", "decisions"), ("a b!", "ab"),
        ("v1.2_x-y", "v1.2_x-y"), *((bad, "facts") for bad in (
            "", " ", ".", "..", "...", "../x", "..\\x", "x/..", "/etc/x", "a/b", "C:\\x", "c:", ".git", "x.", "-",
            "偏好",
            "con", "NUL", "aux.", "com1", "con.x", "rules", "Rules", "proposals", "root.md", "ROOT.md", "x" * 100,
            None, 5, ["x"], {"x": 1}, "．．", "‥/x",
        )),
    ],
)  # fmt: skip
def test_a_category_is_never_a_path_nor_a_place_of_rules(given, expected):
    (found,) = parse_candidates([PLAIN | {"category": given}])

    assert found.category == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "fact"), ({"category": "preferences"}, "preference"), ({"category": "decisions"}, "decision"),
        ({"category": "pitfalls"}, "pitfall"), ({"category": "other"}, "fact"), ({"kind": "lesson"}, "lesson"),
        ({"kind": "Lesson "}, "lesson"), ({"kind": "rule"}, "fact"), ({"kind": "rule-proposal"}, "fact"),
        ({"kind": "checkpoint"}, "fact"), ({"kind": 5}, "fact"), ({"kind": "rule", "proposeRule": True}, "rule"),
        ({"kind": "fact", "proposeRule": True}, "rule"),
    ],
)  # fmt: skip
def test_a_model_chooses_the_kind_but_makes_no_rule(given, expected):
    (found,) = parse_candidates([PLAIN | given])

    assert found.kind == expected


@pytest.mark.parametrize("given", ["yes", "true", 1, 1.0, [True], None, False, {}])
def test_only_true_proposes_a_rule(given):
    (found,) = parse_candidates([PLAIN | {"proposeRule": given}])

    assert (found.kind, found.status) == ("fact", "live")


def test_a_proposed_rule_is_of_the_rules():
    (found,) = parse_candidates([PLAIN | {"proposeRule": True, "category": "facts"}])

    assert (found.status, found.category, found.kind) == ("proposed", "rules", "rule")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([f"w{i}" for i in range(12)], tuple(f"w{i}" for i in range(8))), ("发布", ("发布",)), (None, ()), (5, ()),
        (["a", 5, None, "", " ", "b "], ("a", "b")), (["Redis", "redis", "b"], ("Redis", "b")), ({"a": 1}, ()),
    ],
)  # fmt: skip
def test_triggers_are_texts_and_at_most_eight(given, expected):
    (found,) = parse_candidates([PLAIN | {"loadWhen": given}])

    assert found.load_when == expected


def test_halves_of_pairs_are_replaced():
    (found,) = parse_candidates('[{"title": "ok \\ud83d", "body": "b \\u0000", "loadWhen": ["\\udc00"]}]')

    assert (found.title, found.body, found.load_when) == ("ok \ufffd", "b \ufffd", ("\ufffd",))


@given(st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from([ONE, "[{", "```"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["text", "content", "output", "result", "title", "body", "category", "loadWhen"]), inner
    ),
    max_leaves=12,
))  # fmt: skip
def test_no_reply_is_an_error(reply):
    for found in parse_candidates(reply):
        assert all((found.title, found.body, found.summary))
        assert slug(found.category) == found.category


@given(st.lists(st.sampled_from([*'[]{}",:\\`\n ', ONE, "```json\n", '"a"', "x"]), max_size=40).map("".join))
def test_no_text_is_an_error(text):
    assert all(found.title for found in parse_candidates(text))


@given(st.lists(st.fixed_dictionaries({"title": st.text(min_size=1), "body": st.text(min_size=1)}), max_size=5))
def test_the_same_entries_are_found_in_a_fence_and_alone(entries):
    text = json.dumps(entries)

    assert parse_candidates(f"Found:\n```json\n{text}\n```\n") == parse_candidates(text) == parse_candidates(entries)


@pytest.mark.parametrize("piece", ["[", "[{", '[{"', '"\\"', "```\n", "[ ", "[[],", '[{"a":[', "\t", ",]", "[1]"])
def test_a_huge_reply_is_looked_at_a_bounded_number_of_times(piece, monkeypatch):
    calls = []
    decode = json.JSONDecoder.raw_decode
    monkeypatch.setattr(
        json.JSONDecoder, "raw_decode", lambda self, text, at=0: calls.append(at) or decode(self, text, at)
    )

    assert parse_candidates(piece * 20_000) == ()
    assert len(calls) <= 400


# ---- screening

SECRET = "sk-proj-4711" + "a1B2c3D4e5" * 4


@dataclasses.dataclass(frozen=True)
class Stored:
    id: int
    title: str
    body: str
    status: str


def candidate(title, body="", **given):
    return dataclasses.replace(FOUND, **{"title": title, "body": body or title, "summary": title, **given})


def stored_note(note_id, title, body="", status="live"):
    return Stored(note_id, title, body, status)


def screened(*proposed, stored=()):
    return screen(proposed, lambda _: stored)


def test_titles_of_marks_alone_are_told_apart():
    (one,) = screened(candidate("!!!", "???"), stored=[stored_note(1, "???", "")])

    assert one.outcome == "accepted"


def test_what_is_new_is_accepted():
    (one,) = screened(candidate("Redis listens on 6380"), stored=[stored_note(7, "Redis listens on 6381")])

    assert (one.outcome, one.candidate.status, one.reason, one.same_id) == ("accepted", "live", "", None)
    assert one.score < DUPLICATE


def test_a_proposed_rule_is_accepted_as_a_proposal():
    (one,) = screened(candidate("Never push to main", kind="rule", category="rules"))

    assert (one.outcome, one.candidate.status) == ("accepted", "proposed")


def test_what_is_stored_is_refused_with_its_id_and_score():
    known = [stored_note(6, "Unrelated"), stored_note(7, "Redis listens on 6380", "redis listens on 6380.")]
    (one,) = screened(candidate("Redis listens on 6380"), stored=known)

    assert (one.outcome, one.same_id, one.same_place) == ("duplicate", 7, None)
    assert one.score >= DUPLICATE
    assert "7" in one.reason
    assert f"{one.score:.2f}" in one.reason


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("live", "duplicate"), ("proposed", "duplicate"), ("archived", "duplicate"), ("forgotten", "duplicate"),
     ("superseded", "accepted")],
)  # fmt: skip
def test_what_was_put_away_does_not_come_back_but_what_was_replaced_may(status, outcome):
    (one,) = screened(candidate("My pen name is 墨白"), stored=[stored_note(1, "My pen name is 墨白", status=status)])

    assert one.outcome == outcome
    assert (status in one.reason) == (outcome == "duplicate")


def test_two_that_are_alike_in_one_reply_are_one():
    first, second, third = screened(
        candidate("Use pnpm in the monorepo"), candidate("Use pnpm in this monorepo."), candidate("Use npm elsewhere")
    )

    assert [one.outcome for one in (first, second, third)] == ["accepted", "duplicate", "accepted"]
    assert (second.same_id, second.same_place) == (None, 0)


def test_what_is_like_one_that_was_refused_is_not_refused_for_it():
    first, second = screened(candidate("Use pnpm", highlight=SECRET), candidate("Use pnpm"))

    assert [first.outcome, second.outcome] == ["refused", "accepted"]


def test_a_repeat_of_a_stored_duplicate_names_the_stored_one():
    _, second = screened(candidate("Use pnpm"), candidate("use pnpm."), stored=[stored_note(3, "Use pnpm")])

    assert (second.outcome, second.same_id) == ("duplicate", 3)


@pytest.mark.parametrize("field", ["title", "body", "summary", "highlight", "load_when", "category", "kind"])
def test_a_secret_is_refused_in_every_field(field):
    given = {"title": "Key of the shop", field: (SECRET,) if field == "load_when" else SECRET}
    (one,) = screened(candidate(**given))

    assert (one.outcome, one.same_id, one.score) == ("refused", None, 0.0)
    assert "secret" in one.reason
    assert "4711" not in repr(one)


@pytest.mark.parametrize(
    "hidden",
    [
        SECRET.replace("sk-", "sk-\u200b"),
        SECRET.replace("sk-", "ｓｋ－"),
        SECRET.replace("sk-", "sk\u00ad-"),
        SECRET.replace("-", "－"),
    ],
)
def test_a_secret_is_found_in_other_clothes(hidden):
    (one,) = screened(candidate("Key", f"it is {hidden}"))

    assert one.outcome == "refused"


def test_several_secrets_in_a_row_are_all_refused_and_nobody_is_asked_what_is_stored():
    asked = []
    found = screen([candidate(f"{SECRET}{i}") for i in range(3)], asked.append)

    assert [one.outcome for one in found] == ["refused"] * 3
    assert asked == []


def test_each_is_looked_up_once():
    asked = []
    screen([candidate("a"), candidate("b"), candidate("c")], lambda one: asked.append(one.title) or [])

    assert asked == ["a", "b", "c"]


def test_a_stored_note_is_read_once_however_many_candidates_there_are(monkeypatch):
    read = []
    said = candidates._said
    monkeypatch.setattr(candidates, "_said", lambda text: read.append(text) or said(text))
    proposed = [candidate(f"fact number {number}") for number in range(5)]
    known = [stored_note(number, f"Unlike note {number}") for number in range(7)]

    screened(*proposed, stored=known)

    assert len(read) == len(proposed) + len(known)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"title": "x" * 501}, "title"), ({"title": "x", "body": "y" * 10_001}, "body"),
     ({"title": "x", "summary": "y" * 501}, "summary"), ({"title": "x", "highlight": "y" * 501}, "highlight"),
     ({"title": "x", "load_when": ("y" * 501,)}, "load_when")],
)  # fmt: skip
def test_what_is_too_long_is_refused_and_not_cut(given, named):
    (one,) = screened(candidate(**given))

    assert one.outcome == "refused"
    assert named in one.reason


def test_a_flood_is_refused_from_a_number_on():
    found = screened(*(candidate(f"fact number {i}") for i in range(MOST_CANDIDATES + 2)))

    assert [one.outcome for one in found] == ["accepted"] * MOST_CANDIDATES + ["refused"] * 2


def test_very_long_texts_are_compared_like_short_ones():
    text = "deploy the web app with pnpm and wait for the health check " * 200

    assert likeness(text, text + "quietly") >= DUPLICATE
    assert likeness(text, text.replace("pnpm", "npm")) < DUPLICATE
