"""Secrets that are known by their form: tokens of services, private keys, numbers with check digits.

Edges are ASCII letters and digits, since CJK text stands beside a token without a space. Repeats are bounded, or end
their pattern, so that each look-up is linear.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple


def token_secrets(text: str) -> Iterator["Secret"]:
    """Yield the tokens of known services.

    >>> [secret.kind for secret in token_secrets("令牌ghp_0123456789abcdefghij用完删")]
    ['GitHub token']
    """
    if len(text) < _SHORTEST_TOKEN:
        return
    looked_for = set()
    for sign, following, rules in _by_sign():
        if sign in text and compiled(following).search(text):
            for marker, rule in rules:
                if marker in text and rule.pattern not in looked_for:
                    looked_for.add(rule.pattern)
                    yield from _of_rule(rule, text)


def key_secrets(text: str) -> Iterator["Secret"]:
    """Yield private keys in PEM, also such as were cut short at either end.

    >>> [secret.kind for secret in key_secrets("-----BEGIN PRIVATE KEY-----\\nMIIBVQIBADANBgkqhkiG")]
    ['private key']
    """
    if "PRIVATE KEY" not in text:
        return
    done = 0
    for match in compiled(f"(?:-----BEGIN {_OF_KEY})+").finditer(text):
        following = text.find("-----BEGIN", match.end())
        last = min(len(text) if following < 0 else following, match.end() + _LONGEST_KEY)
        foot = compiled(r"-----END [A-Z0-9 ]{0,60}(?:-----)?").search(text, match.end(), last)
        body = foot or compiled(_KEY_BODY).match(text, match.end(), last)
        assert body is not None
        # White space behind it belongs to what follows.
        done = match.start() + len(text[match.start() : body.end()].rstrip())
        # The marks alone are no key.
        if (foot.start() if foot else done) - match.end() >= _SHORTEST_KEY:
            yield Secret("private key", match.start(), done)
    for match in compiled(f"(?:-----END {_OF_KEY})+").finditer(text):
        if match.start() >= done:
            begin = _key_begins(text, max(done, match.start() - _LONGEST_KEY), match.start())
            if match.start() - begin >= _SHORTEST_KEY:
                yield Secret("private key", begin, match.end())
            done = match.end()


def number_secrets(text: str) -> Iterator["Secret"]:
    """Yield Chinese identity numbers, and bank cards that are written in groups or named a card.

    >>> [secret.kind for secret in number_secrets("11010519491231002X, 4111 1111 1111 1111, 4111111111111111")]
    ['identity number', 'card number']
    """
    if not ("2" in text or "3" in text or "4" in text or "5" in text or "6" in text or "19" in text):
        return
    if compiled("[0-9]{6}(?:[0-9]{9}|[ -][0-9]{8})").search(text):
        for match in compiled(_IDENTITY).finditer(text):
            if _is_identity(match[0].replace(" ", "").replace("-", "")):
                yield Secret("identity number", *match.span())
        for match in compiled(_NAMED_CARD).finditer(text):
            if _is_card(match[1]):
                yield Secret("card number", *match.span(1))
    if compiled("[0-9]{4}[ -][0-9]{4}[ -]").search(text):
        for match in compiled(_GROUPED_CARD).finditer(text):
            if _is_card(match[0].replace(match[1], "")):
                yield Secret("card number", *match.span())


class Secret(NamedTuple):
    """A secret within a text: what it is, and where it begins and ends, in characters."""

    kind: str
    start: int
    end: int


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern, made when it is first needed: most texts need few of them."""
    return re.compile(pattern)


def is_random(text: str) -> bool:
    """Tell whether a token is no compound of words: it has digits, capitals inside, or a run too long for a word.

    >>> is_random("management-and-planning"), is_random("abcdefghijklmnopqrstuvwx"), is_random("a1b2c3d4")
    (False, True, True)
    """
    text = text[:_LOOKED_AT]
    if compiled("[xX*.-]{12}").search(text):
        return False
    if compiled("[0-9]|[a-z][A-Z]").search(text):
        return True
    return max(map(len, compiled("[-_]").split(text))) >= _LONGEST_WORD


_LONGEST_WORD = 16
_LOOKED_AT = 256  # characters of a token


class _Rule(NamedTuple):
    """Tokens of one kind. markers: one of them is in every such token. The first group, if any, is the secret."""

    kind: str
    markers: tuple[str, ...]
    pattern: str
    accepts: Callable[[str], bool] | None = None


_B, _E = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_U = r"(?<![A-Za-z0-9_])"
_IN_QR = r"(?:\\.|[^;\\\n])"

_RULES = (
    _Rule("API key", ("sk-", "pk-", "rk-"), _B + r"[spr]k-[A-Za-z0-9_-]{16,}", is_random),
    _Rule("Stripe key", ("k_live_", "k_test_"), _B + r"[spr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    _Rule("webhook secret", ("whsec_",), _B + r"whsec_[A-Za-z0-9+/=]{16,}"),
    _Rule("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _B + r"gh[pousr]_[A-Za-z0-9]{16,}"),
    _Rule("GitHub token", ("github_pat_",), _B + r"github_pat_[A-Za-z0-9_]{20,}"),
    _Rule(
        "GitLab token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "glft-", "glimt-", "glagent-"),
        _B + r"gl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent)-[A-Za-z0-9_.-]{16,}",
        is_random,
    ),
    _Rule("AWS key id", ("AKIA", "ASIA", "ABIA", "ACCA"), _B + r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}" + _E),
    _Rule("Google key", ("AIza",), _B + r"AIza[A-Za-z0-9_-]{30,}"),
    _Rule("Google secret", ("GOCSPX-",), _B + r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _Rule("Google token", ("ya29.",), _B + r"ya29\.[A-Za-z0-9_-]{20,}"),
    _Rule("Slack token", ("xox",), _B + r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}", is_random),
    _Rule("Slack token", ("xapp-", "xwfp-"), _B + r"x(?:app|wfp)-[A-Za-z0-9-]{10,}", is_random),
    _Rule("webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/[a-z]{1,12}/([A-Za-z0-9_/+-]{16,})"),
    _Rule("webhook", ("/api/webhooks/",), r"/api/webhooks/[0-9]{5,25}/([A-Za-z0-9_-]{20,})"),
    _Rule("webhook", ("/bot/v2/hook/", "/bot/hook/"), r"/bot/(?:v2/)?hook/([A-Za-z0-9-]{16,})"),
    _Rule("webhook", ("/webhook/send?key=",), r"/webhook/send\?key=([A-Za-z0-9-]{16,})"),
    _Rule("webhook", ("webhook.office.com/",), r"webhook\.office\.com/([A-Za-z0-9@/_-]{32,})"),
    _Rule("Telegram token", (":AA",), r"(?:(?<=bot)|(?<![A-Za-z0-9]))[0-9]{7,11}:AA[A-Za-z0-9_-]{30,}"),
    _Rule(
        "Discord token",
        (".",),
        r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{25,}",
        is_random,
    ),
    _Rule(
        "JWT",
        ("eyJ", "eyA"),
        r"(?<![A-Za-z0-9_-])ey[A-Z][A-Za-z0-9_-]{7,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){1,3}",
    ),
    _Rule("JWT", ("eyJ",), r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{7,}+\.eyJ[A-Za-z0-9_-]{7,}+"),
    _Rule("npm token", ("npm_",), _U + r"npm_[A-Za-z0-9]{30,}"),
    _Rule("PyPI token", ("pypi-",), _B + r"pypi-[A-Za-z0-9_-]{32,}", is_random),
    _Rule("Hugging Face token", ("hf_", "api_org_"), _U + r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _Rule("SendGrid key", ("SG.",), _B + r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}"),
    _Rule("Twilio key", ("SK", "AC"), _B + r"(?:SK|AC)[0-9a-f]{32}" + _E),
    _Rule("Shopify token", tuple(f"shp{each}_" for each in ("at", "ca", "pa", "ss", "tka", "ua")),
          _U + r"shp(?:at|ca|pa|ss|tka|ua)_[A-Za-z0-9]{30,}"),
    _Rule("DigitalOcean token", ("_v1_",), _U + r"do[por]_v1_[a-f0-9]{40,}"),
    _Rule("Databricks token", ("dapi",), _B + r"dapi[a-f0-9]{32}(?:-[0-9])?" + _E),
    _Rule("Azure key", ("ey=",), r"(?:Account|Access)Key=([A-Za-z0-9+/]{20,}={0,2})"),
    _Rule("age key", ("AGE-SECRET-KEY-",), _B + r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Za-z]{20,}"),
    _Rule("Linear key", ("lin_api_", "lin_oauth_"), _U + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    _Rule("Notion token", ("ntn_", "secret_"), _U + r"(?:ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{43})" + _E, is_random),
    _Rule("Mailgun key", ("key-",), _B + r"key-[0-9a-f]{32}" + _E),
    _Rule("Mailchimp key", ("-us",), _B + r"[0-9a-f]{32}-us[0-9]{1,2}" + _E),
    _Rule("Postman key", ("PMAK-",), _B + r"PMAK-[A-Za-z0-9-]{24,}"),
    _Rule("PlanetScale token", ("pscale_",), _U + r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}"),
    _Rule("Doppler token", ("dp.",), _B + r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}"),
    _Rule("Vault token", ("hvs.", "hvb.", "hvr."), _B + r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    _Rule("Atlassian token", ("ATATT3", "ATCTT3"), _B + r"AT[AC]TT3[A-Za-z0-9_=-]{20,}"),
    _Rule("Square token", ("sq0", "EAAA"), _B + r"(?:sq0[a-z]{3}-|EAAA)[A-Za-z0-9_-]{22,}", is_random),
    _Rule("Figma token", ("figd_", "figo_"), _U + r"fig[do]_[A-Za-z0-9_-]{20,}"),
    _Rule("Grafana token", ("glc_", "glsa_"), _U + r"gl(?:c|sa)_[A-Za-z0-9_=+/]{20,}"),
    _Rule("Supabase token", ("sbp_", "sb_secret_"), _U + r"sb(?:p|_secret)_[A-Za-z0-9_-]{20,}", is_random),
    _Rule("Replicate token", ("r8_",), _U + r"r8_[A-Za-z0-9]{30,}"),
    _Rule("Groq key", ("gsk_",), _U + r"gsk_[A-Za-z0-9]{30,}"),
    _Rule("Perplexity key", ("pplx-",), _B + r"pplx-[A-Za-z0-9]{30,}"),
    _Rule("Tavily key", ("tvly-",), _B + r"tvly-[A-Za-z0-9-]{20,}", is_random),
    _Rule("xAI key", ("xai-",), _B + r"xai-[A-Za-z0-9]{40,}"),
    _Rule("Sentry token", ("sntrys_", "sntryu_"), _U + r"sntry[su]_[A-Za-z0-9_=+/-]{30,}"),
    _Rule("New Relic key", ("NRAK-", "NRJS-", "NRII-"), _B + r"NR(?:AK|JS|II)-[A-Za-z0-9_-]{19,}"),
    _Rule("RubyGems key", ("rubygems_",), _U + r"rubygems_[a-f0-9]{40,}"),
    _Rule("Docker token", ("dckr_",), _U + r"dckr_[a-z]{2,4}_[A-Za-z0-9_-]{20,}"),
    _Rule("Alibaba key id", ("LTAI",), _B + r"LTAI[A-Za-z0-9]{12,26}" + _E, is_random),
    _Rule("Volcengine key id", ("AKLT",), _B + r"AKLT[A-Za-z0-9]{30,}", is_random),
    _Rule("Tencent key id", ("AKID",), _B + r"AKID[A-Za-z0-9]{28,}", is_random),
    _Rule("Tailscale key", ("tskey-",), _B + r"tskey-[A-Za-z0-9-]{16,}", is_random),
    # As a QR code has it: https://github.com/zxing/zxing/wiki/Barcode-Contents
    _Rule("Wi-Fi password", ("WIFI",), rf"WIFI:(?:[A-OQ-Z]\w?:{_IN_QR}{{0,64}}+;){{0,6}}+P:({_IN_QR}{{3,64}}+);"),
    _Rule("Terraform token", (".atlasv1.",), _B + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
)  # fmt: skip

_SHORTEST_TOKEN = 17
# A sign of a marker, and what stands behind one of these signs in every token with such a marker.
_SIGNS = {
    "_": "_[A-Za-z0-9_+/=.-]{14}",
    "-": "-(?:[A-Za-z0-9_.-]{10}|us[0-9])",
    "/": "/[A-Za-z0-9@_?=.-]",
    ":": ":AA",
    "=": "=[A-Za-z0-9+/-]{16}",
    ".": r"\.[A-Za-z0-9_=-]{16}",
}


@functools.cache
def _by_sign() -> tuple[tuple[str, str, tuple[tuple[str, _Rule], ...]], ...]:
    """Return rules with their markers, by a sign that is in the marker: most texts have few of the signs."""
    signs: dict[str, list[tuple[str, _Rule]]] = {}
    for rule in _RULES:
        for marker in rule.markers:
            sign = next((each for each in _SIGNS if each in marker), "")
            signs.setdefault(sign, []).append((marker, rule))
    return tuple((sign, _SIGNS.get(sign, ""), tuple(rules)) for sign, rules in signs.items())


def _of_rule(rule: _Rule, text: str) -> Iterator[Secret]:
    pattern = compiled(rule.pattern)
    group = min(pattern.groups, 1)
    for match in pattern.finditer(text):
        start, end = match.span(group)
        if rule.accepts is None or rule.accepts(text[start:end]):
            yield Secret(rule.kind, start, end)


_OF_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?:-----)?"
# What stands between the marks of a key, also where it is quoted, or its lines are written in one.
_KEY_BODY = (
    r"(?:[A-Za-z0-9+/=]{4,}+|\\[nrt]|[\s\"'`+,>|#*]|(?:Proc-Type|DEK-Info|Comment|Version|Hash):[^\n\\]{0,120}"
    r"|[A-Za-z0-9+/=]{1,3}(?![A-Za-z0-9]))*+"
)
_SHORTEST_KEY, _LONGEST_KEY = 16, 20_000  # characters


def _key_begins(text: str, begin: int, end: int) -> int:
    """Return where the lines of a key begin of which only the end is there."""
    start = end
    for line in reversed(text[begin:end].replace("\\n", "\n ").split("\n")):
        if line.strip() and not compiled(r"[\s\"'>|#]*[A-Za-z0-9+/=]+[\s\"']*").fullmatch(line):
            break
        start -= len(line) + (start < end)
    return max(begin, start)


_BIRTH = r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
_IDENTITY = r"(?<![0-9A-Za-z])[1-9][0-9]{5}[ -]?" + _BIRTH + r"[ -]?[0-9]{3}[0-9Xx](?![0-9A-Za-z])"
_GROUPED_CARD = (
    r"(?<![0-9A-Za-z.-])[2-6][0-9]{3}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?(?![0-9A-Za-z]|[.-][0-9])"
)
_NAMED_CARD = r"(?:[Cc][Aa][Rr][Dd]|卡|VISA|[Vv]isa)[^0-9\n]{0,24}([2-6][0-9]{14,18})(?![0-9A-Za-z])"


def _is_identity(number: str) -> bool:
    """Tell whether the last character of a Chinese identity number is right: ISO 7064 MOD 11-2, as GB 11643 has it.

    >>> _is_identity("11010519491231002X"), _is_identity("110105194912310021")
    (True, False)
    """
    total = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(number[:17]))
    return "10X98765432"[total % 11] == number[17].upper()


def _is_card(number: str) -> bool:
    """Tell whether digits begin as issuers number their cards, and pass the check of Luhn (ISO/IEC 7812-1).

    >>> _is_card("4111111111111111"), _is_card("4111111111111112"), _is_card("1111111111111117")
    (True, False, False)
    """
    issuer = r"4[0-9]{15}|5[1-5][0-9]{14}|2[2-7][0-9]{14}|3[47][0-9]{13}|6(?:011|5[0-9]{2})[0-9]{12}|62[0-9]{14,17}"
    if not compiled(issuer).fullmatch(number):
        return False
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return (doubled + sum(map(int, number[-1::-2]))) % 10 == 0
