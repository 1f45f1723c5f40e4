"""Secrets in text: the corpus, the cases that others got wrong, and what holds of every text."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from secret_corpus import harmless, secrets

from graphmem.core.redaction import REDACTED, find_secrets, redact, refuse_secrets
from graphmem.errors import SecretRefused

MADE_UP = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
HASH = "0123456789abcdef0123456789abcdef01234567"


def is_left(secret, text):
    return any(secret[place : place + 6] in text for place in range(max(1, len(secret) - 5)))


def test_of_generated_secrets_nothing_is_left():
    lines = list(secrets())
    missed = [line for line in lines if is_left(line.secret, redact(line.text))]

    assert len(lines) >= 400
    assert len({line.kind for line in lines}) >= 25
    assert len(missed) <= len(lines) * 0.01, missed


def test_of_generated_harmless_lines_hardly_any_is_redacted():
    lines = list(harmless())
    wrong = [line for line in lines if find_secrets(line)]

    assert len(lines) == 2000
    assert len(wrong) <= len(lines) * 0.005, wrong


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # SEC-01
        (f"我的密钥是sk-proj-{MADE_UP}请记住", f"我的密钥是{REDACTED}请记住"),
        (f"令牌ghp_{MADE_UP[:36]}用完删", f"令牌{REDACTED}用完删"),
        ("AKIA0A1B2C3D4E5F6G7H是旧的", f"{REDACTED}是旧的"),
        # SEC-03
        (f"SESSION={HASH}", f"SESSION={REDACTED}"),
        # SEC-05
        ("redis://:pw123456@cache:6379", f"redis://:{REDACTED}@cache:6379"),
        ("postgres://u:p%40ss@h/db?sslpassword=zz", f"postgres://u:{REDACTED}@h/db?sslpassword={REDACTED}"),
        ("https://h/x?api_key=abc123def456&lang=en", f"https://h/x?api_key={REDACTED}&lang=en"),
        ("Authorization: Basic dTpw", f"Authorization: Basic {REDACTED}"),
        # SEC-07
        ("数据库密码是Tr0ub4dor", f"数据库密码是{REDACTED}"),
        ("密码：夏天2026", f"密码：{REDACTED}"),
        ("验证码482913", f"验证码{REDACTED}"),
        ("身份证11010519491231002X。", f"身份证{REDACTED}。"),
        # Other spellings of one token.
        ("ＡＫＩＡ0A1B2C3D4E5F6G7H", REDACTED),
        (f"sk-proj-{MADE_UP[:20]}\u200b{MADE_UP[20:]}", REDACTED),
        (f"a\u200bb sk-{MADE_UP} \u200bc", f"a\u200bb {REDACTED} \u200bc"),
        # Cut short, escaped, nested.
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcdef0123456789", REDACTED),
        ('"{\\"token\\": \\"abc123def4\\"}"', f'"{{\\"token\\": \\"{REDACTED}\\"}}"'),
        ("the password is Tr0ub4dor, keep it", f"the password is {REDACTED}, keep it"),
        ("mysql --password hunter22 -e 1", f"mysql --password {REDACTED} -e 1"),
        ("password=hunter22&next=1", f"password={REDACTED}&next=1"),
    ],
)
def test_a_secret_goes_and_what_stands_around_it_stays(text, kept):
    assert redact(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "task-management-and-planning",
        f"COMMIT={HASH}",
        "550e8400-e29b-41d4-a716-446655440000",
        "密码学",
        "忘记密码怎么办",
        "the password is required",
        "password: <placeholder>",
        "password=${VAR}",
        "password = os.environ['X']",
        "password: ****",
        f"password={REDACTED}",
        "token = get_token()",
        "11010519491231002A 110105194912310021",
        'START = b"-----BEGIN OPENSSH PRIVATE KEY-----"',
        "-----END PRIVATE KEY-----",
        ":param passphrase: (optional) of the file",
        "session:ses_0a1b2c3d4e5f6a7b8c9d0e1f2a3b",
        "session_id=550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_harmless_text_is_the_same_object(text):
    assert redact(text) is text


@pytest.mark.parametrize("around", ["{}", "密钥{}", "{}请记住", "密钥{}请记住"])
def test_every_form_is_seen_beside_text_without_spaces(around):
    for line in secrets(seed=7, each=1):
        if line.text == line.secret:
            assert not is_left(line.secret, redact(around.format(line.secret))), line


@pytest.mark.parametrize(
    "uniform",
    ["A", "a.b.", "{", "-sk-", "中", "1", "\n", "://", "password=", "eyJ", "-----BEGIN", "-----BEGIN PRIVATE KEY-----",
     "-----END PRIVATE KEY-----", "密码是", "?token=", "a\u200b", REDACTED, "password='", "1234 5678 "],
)  # fmt: skip
def test_long_uniform_text_comes_to_an_end(uniform):
    # Were it not linear, the suite would stand still here.
    text = uniform * (200_000 // len(uniform))
    cleaned = redact(text)
    assert redact(cleaned) is cleaned


TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.one_of(
            st.sampled_from(
                ["password", "密码", "是", "：", "=", ": ", '"', "'", REDACTED, "[", "]", "\u200b", "://", "@",
                 "sk-", "?", "&", "token", "api_key", "ghp_", "AKIA", "eyJ", ".", "-----BEGIN PRIVATE KEY-----", "\n",
                 "Bearer ", "-----END PRIVATE KEY-----", "Authorization", " is ", "--", "Ａ", "İ", MADE_UP, HASH,
                 "验证码", "123456"]
            ),
            st.text(max_size=8),
        ),
        max_size=14,
    ).map("".join),
)  # fmt: skip


@given(TEXTS)
@settings(max_examples=60)
@example(f"password={REDACTED}Tr0ub4dor1")
@example("İpassword=Tr0ub4dor")
def test_redacting_is_done_once_and_leaves_no_secret(text):
    found = find_secrets(text)
    cleaned = redact(text)

    assert all(0 <= secret.start < secret.end <= len(text) for secret in found)
    assert all(one.end < other.start for one, other in itertools.pairwise(found))
    assert find_secrets(cleaned) == ()
    assert redact(cleaned) is cleaned
    assert (cleaned is text) == (not found)


def test_a_refusal_names_the_argument_and_the_kind_alone():
    refuse_secrets(title="Deploy", labels=["a", "b"], turn=1, scope=None)
    with pytest.raises(SecretRefused) as caught:
        refuse_secrets(title="Deploy", load_when=("发布", f"ghp_{MADE_UP}"))
    assert (caught.value.argument, caught.value.kind) == ("load_when", "GitHub token")
    assert not is_left(MADE_UP, f"{caught.value} {caught.value!r}")
