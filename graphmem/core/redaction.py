"""Secrets in text: where they stand, and the text without them.

How a secret is known, one rule a line:

- By its form: tokens of known services, keys in PEM (also cut short), JWT, credentials in addresses and in headers.
- By its name: `password = ...`, `SESSION=<hex>`, `数据库密码是...`. A value that is a placeholder, a reference or a call
  (`${VAR}`, `config.token`, `get_token()`), a type, or plain prose is none.
- By its check digits: Chinese identity numbers, and bank cards that are written in groups or named a card.
- Edges are ASCII letters and digits, since CJK text stands beside a token without a space.
- Zero-width and other invisible characters do not count, and letters and digits that NFKC makes ASCII count as those.
  Letters that only look alike, such as Cyrillic ones, are other letters.
- Hashes, UUIDs and base64 without a name are none: most of them are content.

Every look-up is linear: what begins a pattern is found first, repeats are bounded or end the pattern.
"""

import bisect
import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from graphmem.errors import SecretRefused

REDACTED = "[REDACTED]"


def find_secrets(text: str) -> tuple["Secret", ...]:
    """Return the secrets of a text in order; none overlaps another.

    >>> [secret.kind for secret in find_secrets("https://h/x?api_key=abc123def456 密码：夏天2026")]
    ['query parameter', 'password']
    >>> find_secrets("忘记密码怎么办")
    ()
    """
    plain, shifts = _folded(text)
    found = sorted(_candidates(plain), key=lambda each: (each.start, -each.end)) if plain else []
    if not found:
        return ()
    return tuple(_joined(_without_marks(plain, found), shifts))


def redact(text: str) -> str:
    """Return a text with each secret replaced by `[REDACTED]`; the same object where there is none.

    >>> redact("redis://:pw123456@cache:6379")
    'redis://:[REDACTED]@cache:6379'
    """
    # What stood beside a secret may be one once that is gone; each round leaves less text, so this ends.
    while secrets := find_secrets(text):
        pieces, done = [], 0
        for secret in secrets:
            pieces += (text[done : secret.start], REDACTED)
            done = secret.end
        text = "".join((*pieces, text[done:]))
    return text


def refuse_secrets(**texts: object) -> None:
    """Raise SecretRefused for the first argument with a secret in it: a text, or a list of texts; others pass.

    >>> refuse_secrets(title="Deploy with pnpm", labels=["deploy", None])
    """
    for argument, value in texts.items():
        for text in value if isinstance(value, list | tuple | set | frozenset) else (value,):
            if isinstance(text, str) and (secrets := find_secrets(text)):
                raise SecretRefused(argument, secrets[0].kind)


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret within a text: what it is, and where it begins and ends, in characters."""

    kind: str
    start: int
    end: int


def _candidates(text: str) -> Iterator[Secret]:
    yield from _tokens(text)
    yield from _private_keys(text)
    yield from _numbers(text)
    if "=" in text or ":" in text or not text.isascii() or "--" in text or " is " in text:
        # Only this letter grows when it is made small, and places must stay.
        low = text.replace("İ", "i").lower()
        yield from _addresses(text, low)
        yield from _named(text, low)
        yield from _said(text, low)


def _joined(found: list[Secret], shifts: "_Shifts") -> Iterator[Secret]:
    """Yield secrets that overlap or touch as one, at their places in the text as it was given."""
    kind, start, end = "", 0, 0
    for each in (*found, Secret("", len(REDACTED) + found[-1].end + 1, 0)) if found else ():
        if kind and each.kind and each.start <= end:
            end = max(end, each.end)
            continue
        if kind:
            yield Secret(kind, shifts.place(start), shifts.place(end - 1) + 1)
        kind, start, end = each.kind, each.start, each.end


def _without_marks(text: str, found: list[Secret]) -> list[Secret]:
    """Return secrets without what was redacted before, so that redacting again changes nothing."""
    if REDACTED not in text:
        return found
    marks = [match.span() for match in re.finditer(re.escape(REDACTED), text)]
    ends = [end for _, end in marks]
    kept = []
    for each in found:
        start = each.start
        for begin, end in marks[bisect.bisect_right(ends, start) :]:
            if begin >= each.end:
                break
            if begin > start:
                kept.append(Secret(each.kind, start, begin))
            start = end
        if start < each.end:
            kept.append(Secret(each.kind, start, each.end))
    # A stroke or a bracket beside a mark is no rest of a secret.
    return [each for each in kept if each.end - each.start >= _LEAST or _is_whole(text, each)]


_LEAST = 6


def _is_whole(text: str, each: Secret) -> bool:
    return not text.startswith(REDACTED, each.end) and not text.endswith(REDACTED, 0, each.start)


# ---- what is compared


@dataclass(frozen=True, slots=True)
class _Shifts:
    """How far places move for invisible characters: from each place on (ascending), by how many characters."""

    places: tuple[int, ...] = ()
    by: tuple[int, ...] = ()

    def place(self, index: int) -> int:
        at = bisect.bisect_right(self.places, index)
        return index + (self.by[at - 1] if at else 0)


_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef"
)
_STYLED = "\u2070-\u209c\u2100-\u214f\u2460-\u24ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff"


def _folded(text: str) -> tuple[str, _Shifts]:
    """Return a text without invisible characters, styled ASCII made plain; and how places move."""
    if text.isascii() or not _compiled(f"[{_INVISIBLE}{_STYLED}]").search(text):
        return text, _Shifts()
    places, by, gone = [], [], 0
    for match in _compiled(f"[{_INVISIBLE}]+").finditer(text):
        places.append(match.start() - gone)
        gone += match.end() - match.start()
        by.append(gone)
    return text.translate(_plain_letters()), _Shifts(tuple(places), tuple(by))


@functools.cache
def _plain_letters() -> dict[int, str | None]:
    """Return what characters become: those that NFKC makes one of ASCII, and None for those that nobody sees."""
    table: dict[int, str | None] = {}
    for characters in (_STYLED, "\uff01-\uff5e"):
        for code in _codes(characters):
            plain = unicodedata.normalize("NFKC", chr(code))
            if len(plain) == 1 and plain.isascii():
                table[code] = plain
    return table | dict.fromkeys(_codes(_INVISIBLE))


def _codes(characters: str) -> Iterator[int]:
    """Yield the code points of a class as regular expressions write it."""
    for first, last in re.findall("(.)(?:-(.))?", characters, re.DOTALL):
        yield from range(ord(first), ord(last or first) + 1)


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


# ---- by form


@dataclass(frozen=True, slots=True)
class _Rule:
    """Tokens of one kind. markers: one of them is in every such token. The first group, if any, is the secret."""

    kind: str
    markers: tuple[str, ...]
    pattern: str
    accepts: Callable[[str], bool] | None = None


def _is_random(text: str) -> bool:
    """Tell whether a token is no compound of words: it has digits, capitals inside, or a run that no word is as long as.

    >>> _is_random("management-and-planning"), _is_random("abcdefghijklmnopqrstuvwx"), _is_random("a1b2c3d4")
    (False, True, True)
    """
    if _compiled("[0-9]").search(text) or _compiled("[a-z][A-Z]").search(text):
        return True
    return max(map(len, _compiled("[-_]").split(text))) >= 16


def _is_mixed(text: str) -> bool:
    """Tell whether a text has letters as well as digits, or capitals in its midst."""
    return bool(_compiled("[0-9]").search(text) and _compiled("[A-Za-z]").search(text)) or _is_random(text)


_B, _E = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_U = r"(?<![A-Za-z0-9_])"

_RULES = (
    _Rule("API key", ("sk-", "pk-", "rk-"), _B + r"[spr]k-[A-Za-z0-9_-]{16,}", _is_random),
    _Rule("Stripe key", ("k_live_", "k_test_"), _B + r"[spr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    _Rule("webhook secret", ("whsec_",), _B + r"whsec_[A-Za-z0-9+/=]{16,}"),
    _Rule("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _B + r"gh[pousr]_[A-Za-z0-9]{16,}"),
    _Rule("GitHub token", ("github_pat_",), _B + r"github_pat_[A-Za-z0-9_]{20,}"),
    _Rule(
        "GitLab token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "glft-", "glimt-", "glagent-"),
        _B + r"gl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent)-[A-Za-z0-9_.-]{16,}",
        _is_random,
    ),
    _Rule("AWS key id", ("AKIA", "ASIA", "ABIA", "ACCA"), _B + r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}" + _E),
    _Rule("Google key", ("AIza",), _B + r"AIza[A-Za-z0-9_-]{30,}"),
    _Rule("Google secret", ("GOCSPX-",), _B + r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _Rule("Google token", ("ya29.",), _B + r"ya29\.[A-Za-z0-9_-]{20,}"),
    _Rule("Slack token", ("xox",), _B + r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}", _is_random),
    _Rule("Slack token", ("xapp-", "xwfp-"), _B + r"x(?:app|wfp)-[A-Za-z0-9-]{10,}", _is_random),
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
        _is_mixed,
    ),
    _Rule(
        "JWT",
        ("ey",),
        r"(?<![A-Za-z0-9_-])ey[A-Z][A-Za-z0-9_-]{7,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){1,3}",
    ),
    _Rule("JWT", ("eyJ",), r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{7,}+\.eyJ[A-Za-z0-9_-]{7,}+"),
    _Rule("npm token", ("npm_",), _U + r"npm_[A-Za-z0-9]{30,}"),
    _Rule("PyPI token", ("pypi-",), _B + r"pypi-[A-Za-z0-9_-]{32,}", _is_random),
    _Rule("Hugging Face token", ("hf_", "api_org_"), _U + r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _Rule("SendGrid key", ("SG.",), _B + r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}"),
    _Rule("Twilio key", ("SK", "AC"), _B + r"(?:SK|AC)[0-9a-f]{32}" + _E),
    _Rule("Shopify token", ("shp",), _U + r"shp(?:at|ca|pa|ss|tka|ua)_[A-Za-z0-9]{30,}"),
    _Rule("DigitalOcean token", ("_v1_",), _U + r"do[por]_v1_[a-f0-9]{40,}"),
    _Rule("Databricks token", ("dapi",), _B + r"dapi[a-f0-9]{32}(?:-[0-9])?" + _E),
    _Rule("Azure key", ("ey=",), r"(?:Account|Access)Key=([A-Za-z0-9+/]{20,}={0,2})"),
    _Rule("age key", ("AGE-SECRET-KEY-",), _B + r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Za-z]{20,}"),
    _Rule("Linear key", ("lin_api_", "lin_oauth_"), _U + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    _Rule("Notion token", ("ntn_",), _U + r"ntn_[A-Za-z0-9]{30,}"),
    _Rule("Mailgun key", ("key-",), _B + r"key-[0-9a-f]{32}" + _E),
    _Rule("Mailchimp key", ("-us",), _B + r"[0-9a-f]{32}-us[0-9]{1,2}" + _E),
    _Rule("Postman key", ("PMAK-",), _B + r"PMAK-[A-Za-z0-9-]{24,}"),
    _Rule("PlanetScale token", ("pscale_",), _U + r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}"),
    _Rule("Doppler token", ("dp.",), _B + r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}"),
    _Rule("Vault token", ("hvs.", "hvb.", "hvr."), _B + r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    _Rule("Atlassian token", ("ATATT3", "ATCTT3"), _B + r"AT[AC]TT3[A-Za-z0-9_=-]{20,}"),
    _Rule("Square token", ("sq0", "EAAA"), _B + r"(?:sq0[a-z]{3}-|EAAA)[A-Za-z0-9_-]{22,}", _is_mixed),
    _Rule("Figma token", ("figd_", "figo_"), _U + r"fig[do]_[A-Za-z0-9_-]{20,}"),
    _Rule("Grafana token", ("glc_", "glsa_"), _U + r"gl(?:c|sa)_[A-Za-z0-9_=+/]{20,}"),
    _Rule("Supabase token", ("sbp_", "sb_secret_"), _U + r"sb(?:p|_secret)_[A-Za-z0-9_-]{20,}", _is_random),
    _Rule("Replicate token", ("r8_",), _U + r"r8_[A-Za-z0-9]{30,}"),
    _Rule("Groq key", ("gsk_",), _U + r"gsk_[A-Za-z0-9]{30,}"),
    _Rule("Perplexity key", ("pplx-",), _B + r"pplx-[A-Za-z0-9]{30,}"),
    _Rule("xAI key", ("xai-",), _B + r"xai-[A-Za-z0-9]{40,}"),
    _Rule("Sentry token", ("sntry",), _U + r"sntry[su]_[A-Za-z0-9_=+/-]{30,}"),
    _Rule("New Relic key", ("NRAK-", "NRJS-", "NRII-"), _B + r"NR(?:AK|JS|II)-[A-Za-z0-9_-]{19,}"),
    _Rule("RubyGems key", ("rubygems_",), _U + r"rubygems_[a-f0-9]{40,}"),
    _Rule("Docker token", ("dckr_",), _U + r"dckr_[a-z]{2,4}_[A-Za-z0-9_-]{20,}"),
    _Rule("Alibaba key id", ("LTAI",), _B + r"LTAI[A-Za-z0-9]{12,26}" + _E, _is_mixed),
    _Rule("Tencent key id", ("AKID",), _B + r"AKID[A-Za-z0-9]{28,}", _is_mixed),
    _Rule("Tailscale key", ("tskey-",), _B + r"tskey-[A-Za-z0-9-]{16,}", _is_random),
    _Rule("Terraform token", (".atlasv1.",), _B + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
)  # fmt: skip


@functools.cache
def _by_marker() -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the markers, each with the places of its rules; those that hold another one fall to that."""
    rules: dict[str, set[int]] = {}
    for place, rule in enumerate(_RULES):
        for marker in rule.markers:
            rules.setdefault(marker, set()).add(place)
    return tuple((marker, tuple(sorted(places))) for marker, places in rules.items())


def _tokens(text: str) -> Iterator[Secret]:
    if len(text) < _SHORTEST_TOKEN:
        return
    places = {place for marker, places in _by_marker() if marker in text for place in places}
    for place in sorted(places):
        rule = _RULES[place]
        pattern = _compiled(rule.pattern)
        for match in pattern.finditer(text):
            start, end = match.span(1 if pattern.groups else 0)
            if rule.accepts is None or rule.accepts(text[start:end]):
                yield Secret(rule.kind, start, end)


_SHORTEST_TOKEN = 17

_BEGIN, _FOOT = "-----BEGIN", "-----END"
# What stands between the marks of a key, also where it is quoted or its lines are written in one.
_KEY_BODY = (
    r"(?:[A-Za-z0-9+/=]{4,}+|\\[nrt]|[\s\"'`+,>|#*]|(?:Proc-Type|DEK-Info|Comment|Version|Hash):[^\n\\]{0,120}"
    r"|[A-Za-z0-9+/=]{1,3}(?![A-Za-z0-9]))*+"
)
_LONGEST_KEY = 20_000  # characters


def _private_keys(text: str) -> Iterator[Secret]:
    if "PRIVATE KEY" not in text:
        return
    done = 0
    for match in _compiled(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?:-----)?").finditer(text):
        following = text.find(_BEGIN, match.end())
        last = min(len(text) if following < 0 else following, match.end() + _LONGEST_KEY)
        foot = text.find(_FOOT, match.end(), last)
        if foot >= 0:
            mark = _compiled(r"-----END [A-Z0-9 ]{0,60}(?:-----)?").match(text, foot)
            done = mark.end() if mark else foot
        else:
            body = _compiled(_KEY_BODY).match(text, match.end(), last)
            assert body is not None
            done = body.end()
        # White space behind it belongs to what follows.
        done = match.start() + len(text[match.start() : done].rstrip())
        yield Secret("private key", match.start(), done)
    for match in _compiled(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----").finditer(text):
        # A key whose beginning was cut off.
        begin = max(done, match.start() - _LONGEST_KEY)
        if match.start() < done:
            continue
        lines = text[begin : match.start()].replace("\\n", "\n ")
        size = 0
        for line in reversed(lines.split("\n")):
            if line.strip() and not _compiled(r"[\s\"'>|#]*[A-Za-z0-9+/=]+[\s\"']*").fullmatch(line):
                break
            size += len(line) + 1
        yield Secret("private key", max(begin, match.start() - size + 1) if size else match.start(), match.end())
        done = match.end()


# ---- numbers with check digits

_BIRTH = r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
_IDENTITY = r"(?<![0-9A-Za-z])[1-9][0-9]{5}" + _BIRTH + r"[0-9]{3}[0-9Xx](?![0-9A-Za-z])"
_GROUPED_CARD = r"(?<![0-9A-Za-z.-])[2-6][0-9]{3}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?(?![0-9A-Za-z]|[.-][0-9])"
_NAMED_CARD = r"(?:[Cc][Aa][Rr][Dd]|卡|VISA|[Vv]isa)[^0-9\n]{0,24}([2-6][0-9]{14,18})(?![0-9A-Za-z])"


def _numbers(text: str) -> Iterator[Secret]:
    if _compiled("[0-9]{15}").search(text):
        for match in _compiled(_IDENTITY).finditer(text):
            if _is_identity(match[0]):
                yield Secret("identity number", *match.span())
        for match in _compiled(_NAMED_CARD).finditer(text):
            if _is_card(match[1]):
                yield Secret("card number", *match.span(1))
    if _compiled("[0-9]{4}[ -][0-9]{4}[ -]").search(text):
        for match in _compiled(_GROUPED_CARD).finditer(text):
            if _is_card(match[0].replace(match[1], "")):
                yield Secret("card number", *match.span())


def _is_identity(number: str) -> bool:
    """Tell whether the last character of a Chinese identity number is right: ISO 7064 MOD 11-2, as GB 11643 has it.

    >>> _is_identity("11010519491231002X"), _is_identity("110105194912310021")
    (True, False)
    """
    total = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(number[:17]))
    return "10X98765432"[total % 11] == number[17].upper()


def _is_card(number: str) -> bool:
    """Tell whether digits begin as issuers number their cards, and pass the check of Luhn (ISO/IEC 7812-1)."""
    issuer = r"4[0-9]{15}|5[1-5][0-9]{14}|2[2-7][0-9]{14}|3[47][0-9]{13}|6(?:011|5[0-9]{2})[0-9]{12}|62[0-9]{14,17}"
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return bool(_compiled(issuer).fullmatch(number)) and (doubled + sum(map(int, number[-1::-2]))) % 10 == 0


# ---- by name

_STRONG = (
    r"pass(?:word|wd|phrase|code)|pwd|(?:api|app|access|private|client|encryption|signing|auth|master|service|account"
    r"|storage|shared|license|consumer|webhook|deploy|admin|bot)[ _.-]?(?:access[ _-]?)?(?:key|secret|token)"
    r"|secret(?:[ _.-]?(?:access[ _-]?)?(?:key|token))?|(?:refresh|bearer|id|personal|registration|device)[ _-]?token"
    r"|contrase(?:ñ|n)a|passwort|kennwort|mot de passe|senha|пароль|パスワード|비밀번호"
)
_WEAK = (
    r"token|session(?:[ _-]?(?:id|key))?|phpsessid|jsessionid|sid|cookie|credentials?|auth|pass|(?:csrf|xsrf)[ _-]?token"
)
_SUFFIX = r"(?:[_-]?(?:prod|dev|test|staging|live|value|base|hash|[0-9]{1,2}))?"
_NAMES = f"(?:({_STRONG})|(?:{_WEAK})){_SUFFIX}"
_ASSIGNED = _NAMES + r"(?:\\{0,3}[\"'`]\]?)?[ \t]{0,8}(={1,3}>?|:=|[:：＝])[ \t]{0,8}"
_IS = rf"(?:({_STRONG}|pin)|token)(?:[ \t]{{1,4}}(?:is|was|to|ist|es|est)[: \t]{{1,4}})"
_OPTION = rf"--(?:[a-z0-9]{{1,12}}-){{0,2}}?(?:({_STRONG})|token|auth)[ \t]{{1,4}}"

# What a value without quotes is made of; it ends before CJK text.
_BARE = r"[!#-&(-+\--:=?-_a-~À-῿]"
_STOPS = ")]}.,;:!?\\|*"


@dataclass(frozen=True, slots=True)
class _Value:
    """What a name is given: the text, where it begins and ends, and how it is written."""

    text: str
    start: int
    end: int
    quoted: bool
    tight: bool  # with an equals sign and no space: as programs write settings


def _named(text: str, low: str) -> Iterator[Secret]:
    """Yield the secrets that a name is given: `name = value` in code, settings, JSON and prose."""
    if not _compiled("[:=：＝]").search(text) and "--" not in text and " is " not in low:
        return
    if not any(name in low for name in _NAME_MARKERS):
        return
    for pattern in (_ASSIGNED, _OPTION, _IS):
        compiled = _compiled(pattern)
        place = 0
        while match := compiled.search(low, place):
            place = match.end()
            first = match.start()
            if match[1] is None and first and low[first - 1].isalpha() and not _begins_word(text, first):
                continue
            tight = pattern == _ASSIGNED and low[match.start(2) - 1 : match.end()].strip(" \t").endswith("=")
            tight = tight and match.end() == match.end(2)
            value = _value_at(text, match.end(), tight=tight)
            if value is None:
                continue
            name = match[0]
            secret = _is_secret(value, text, strong=match[1] is not None, name=name, said=pattern != _ASSIGNED)
            if secret:
                end = _rest_of(text, value)
                yield Secret(_kind_of(name), value.start, end)
                place = end


_NAME_MARKERS = (
    "pass", "pwd", "secret", "token", "key", "sess", "sid", "cookie", "credential", "auth", "pin ", "contrase",
    "kennwort", "senha", "пароль", "パスワード", "비밀번호",
)  # fmt: skip


def _begins_word(text: str, place: int) -> bool:
    """Tell whether a word begins here within a name, as in dbToken."""
    return text[place].isupper() and not text[place - 1].isupper()


def _kind_of(name: str) -> str:
    for word, kind in (("pass", "password"), ("pwd", "password"), ("token", "token"), ("sess", "session")):
        if word in name:
            return kind
    return "key" if "key" in name else "secret"


def _value_at(text: str, place: int, *, tight: bool) -> _Value | None:
    """Return the value that begins at a place, at most 256 characters of it; None where there is none."""
    opened = _compiled(r"(?:[bBfFrRuU]{1,2})?\\{0,3}[\"'`“‘「『]").match(text, place)
    if opened:
        start = opened.end()
        mark = text[start - 1]
        end = text.find(_CLOSING.get(mark, mark), start, start + 1000)
        line = text.find("\n", start, end if end >= 0 else start)
        if end > start and line < 0:
            inside = text[start:end].rstrip("\\")
            return _Value(inside, start, start + len(inside), quoted=True, tight=tight)
        place = start
    match = _compiled(_BARE + "{1,256}").match(text, place)
    if match is None:
        return None
    inside = match[0]
    parameter = _compiled(r"&[A-Za-z0-9_.-]{1,32}=").search(inside)
    if parameter:
        inside = inside[: parameter.start()]
    if len(inside) < _LONGEST_VALUE:
        inside = inside.rstrip(_STOPS)
    return _Value(inside, place, place + len(inside), quoted=False, tight=tight)


_CLOSING = {"“": "”", "‘": "’", "「": "」", "『": "』"}
_LONGEST_VALUE = 256


def _rest_of(text: str, value: _Value) -> int:
    """Return where a value ends whose beginning was looked at."""
    if value.quoted or len(value.text) < _LONGEST_VALUE:
        return value.end
    match = _compiled(_BARE + "*+").match(text, value.end)
    return match.end() if match else value.end


# Values that say what kind of a thing belongs there, or that it is missing.
_WORDS = frozenset(
    """
    required optional string str bytes text none null nil true false yes no on off changed change invalid wrong
    expired missing hidden empty unset enabled disabled default todo tbd undefined object number integer boolean bool
    any char varchar value values val input data raw name field form self this args kwargs config settings env var
    variable hash hashed plain plaintext encoded decoded encrypted result response request prompt getpass example
    placeholder unknown private public internal external bearer basic digest token tokens password passwords secret
    secrets key keys see only ok failed failure success error denied granted accepted rejected valid reset updated
    created revoked rotated redacted masked removed omitted file path url uri uuid json yaml xml jwt oauth saml ldap
    bcrypt argon scrypt pbkdf vault keepass bitwarden keychain keyring type format length count size id uid user
    username login email new old current async await return function const let static final readonly override
    """.split()
)
_NAMING = r"passw|passphrase|passcode|pwd|secret|token|key|credential|auth|login|user|config|setting|env|session|getpass"
_PLACEHOLDER = (
    r"\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|\$[a-z_]+(?:->|\.).*|\{.*|<.*|\[.*|%[({].*|%[a-z]%?|%[A-Z_]+%|@[a-z.]+"
    r"|[*•.x·_?#-]{3,}|X{3,}|[xX*•]{2,}[A-Za-z0-9]{0,4}|your[-_ ].*|YOUR[-_ ].*|my[-_].*|example.*|dummy.*|\.\.\..*|…+|&[a-z]+"
)
_CODE = (
    r"(?:new |await |!|&|\*)?[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$]?[\w$]*)*[(\[{].*"  # a call, an index
    r"|(?:[A-Za-z_$][A-Za-z_$-]*[0-9]?)(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z_$-]*[0-9]?)+"  # a reference
    r"|(?:u?int|float|bytes|string|char|varchar|number|decimal)[0-9]{1,3}"
    r"|(?:aes|rsa|sha|md|ed|hs|rs|es|hmac|sha3|utf|base|bcrypt|argon|scrypt|pbkdf|v|tls|ssl|oauth|x|ecdsa|secp|p|k)"
    r"[-_]?[0-9]{1,5}(?:[-_/]?[a-z0-9]{1,8})?"
    r"|[0-9]{1,4}[-_]?(?:digits?|chars?|characters?|bits?|bytes?|days?|hours?|min|minutes?|sec|seconds?|ms|s|m|h|d|kb|mb|k|th|x)"
)
_PATH = r"(?:/|~/|\.{1,2}/|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{1,12}://).*"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def _is_secret(value: _Value, text: str, *, strong: bool, name: str, said: bool) -> bool:
    """Tell whether the value of a name is a secret, and no placeholder, reference, type or prose.

    strong: the name says so by itself, while others are also names of harmless things. said: there is no sign between
    name and value, so that prose is likely.
    """
    inside = value.text
    password = "pass" in name or "pwd" in name or "contrase" in name or not name.isascii() or "kennwort" in name
    if len(inside) < _SHORTEST_VALUE or inside.startswith("//") or "://" in inside[:16]:
        return False
    if _compiled(_PLACEHOLDER).fullmatch(inside) or REDACTED in inside[: len(REDACTED)]:
        return False
    if _compiled(_PATH).fullmatch(inside) and not _is_key_material(inside):
        return False
    if not value.quoted and _compiled(_CODE).fullmatch(inside):
        return False
    if _compiled(_CODE.rpartition("|(?:aes")[2].join(("(?:aes", ""))).fullmatch(inside.lower()):
        return False
    if " " in inside:
        # A passphrase, or a sentence about one.
        words = inside.split()
        return "phrase" in name and len(words) > 3 or any(len(word) > 7 and _is_mixed(word) and word.isalnum() and _has_digit(word) for word in words)
    letters, digits = bool(_compiled(r"[^\W\d_]").search(inside)), _has_digit(inside)
    if not digits and not letters:
        return strong and value.quoted and len(inside) > 5
    if letters and digits:
        if said:
            return len(inside) >= 6 and bool(_compiled(r"[A-Za-z]").search(inside))
        if strong:
            return len(inside) >= (4 if password else 6)
        if "sess" in name or name.startswith("sid"):
            return len(inside) >= 20 and not _compiled(_UUID).fullmatch(inside)
        return len(inside) >= 8
    if digits:
        return strong and len(inside) >= (4 if password or "pin" in name else 8) and not _is_year_or_count(text, value)
    return strong and _is_secret_word(value, text, password=password, said=said) or _is_scrambled(inside)


_SHORTEST_VALUE = 3


def _has_digit(text: str) -> bool:
    return bool(_compiled("[0-9]").search(text))


def _is_key_material(text: str) -> bool:
    """Tell whether what begins like a path is base64 of a key."""
    return bool(_compiled("[A-Za-z0-9+/=]{32,}").fullmatch(text)) and all(
        _compiled(each).search(text) for each in ("[0-9]", "[a-z]", "[A-Z]")
    )


def _is_scrambled(text: str) -> bool:
    """Tell whether letters change their case as no words do.

    >>> _is_scrambled("aXbQzRtYuWpLkJhG"), _is_scrambled("getUserSettings")
    (True, False)
    """
    changes = len(_compiled("[a-z](?=[A-Z])|[A-Z](?=[a-z])").findall(text))
    return len(text) >= 12 and text.isascii() and text.isalpha() and changes * 3 >= len(text)


def _is_year_or_count(text: str, value: _Value) -> bool:
    return bool(_compiled(r"[位年月日天次个個小分秒元字%]|[ \t]{0,2}(?:characters|chars|digits|attempts|seconds|times)").match(text, value.end))


def _is_secret_word(value: _Value, text: str, *, password: bool, said: bool) -> bool:
    """Tell whether letters alone are a secret: as a setting has it, not as prose or code has it."""
    inside = value.text
    low = inside.lower()
    if _is_scrambled(inside):
        return True
    if said or low.strip("&*?!") in _WORDS or _compiled(_NAMING).search(low):
        return False
    if value.quoted:
        return len(inside) >= 4
    if not password and not value.tight:
        return False
    # What goes on is prose, or the arguments of a call.
    after = _compiled(r"[\])}.,;:!?\\|*]*").match(text, value.end)
    assert after is not None
    if ")" in after[0] or _compiled(r"[ \t]*[^\s\"'`}\]]").match(text, after.end()) and not value.tight:
        return False
    compound = "_" in inside or _compiled("[a-z][A-Z]").search(inside)
    return len(inside) >= 4 and not compound


# ---- addresses and headers

_PARAMETER = (
    r"[?&;]([a-z0-9_.-]{0,24}?(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|auth[_-]?key"
    r"|subscription-key|sig|signature|credential|security-token))=([^&\s#\"'<>`\\\u3000-\U0010ffff]+)"
)
_USER = r"://([^\s/?#@:\"'<>]{0,128}):([^\s/?#\"'<>]{1,256})@"
_LONE_USER = r"://([A-Za-z0-9_-]{20,200})@"
_SCHEME = r"(?:basic|bearer|token|digest|negotiate|apikey)"
_AUTHORIZATION = (
    rf"authorization(?:\\{{0,3}}[\"'`])?[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:\\{{0,3}}[\"'`])?(?:{_SCHEME}[ \t]{{1,4}})?"
    r"([a-z0-9+/=._~-]{4,})"
)
_BEARER = r"bearer[ \t]{1,4}([a-z0-9+/=._~-]{12,})"
_CURL = r"(?:-u|--user)[ =]?[\"']?[^\s:\"'=]{1,64}:([^\s\"'<>]{3,})"


def _addresses(text: str, low: str) -> Iterator[Secret]:
    """Yield credentials in addresses, in headers and in what is given to curl."""
    if "://" in text:
        for match in _compiled(_USER).finditer(text):
            if not _compiled(_PLACEHOLDER).fullmatch(match[2]):
                yield Secret("address with credentials", *match.span(2))
        for match in _compiled(_LONE_USER).finditer(text):
            if _is_mixed(match[1]):
                yield Secret("address with credentials", *match.span(1))
    if "=" in text and ("?" in text or "&" in text):
        for match in _compiled(_PARAMETER).finditer(low):
            start, end = match.span(2)
            inside = text[start:end]
            if not _compiled(_PLACEHOLDER).fullmatch(inside) and inside.lower() not in _WORDS and "(" not in inside:
                yield Secret("query parameter", start, end)
    if "authorization" in low:
        for match in _compiled(_AUTHORIZATION).finditer(low):
            if not _is_no_credential(text[match.start(1) : match.end(1)]):
                yield Secret("authorization header", *match.span(1))
    if "bearer " in low:
        for match in _compiled(_BEARER).finditer(low):
            inside = text[match.start(1) : match.end(1)]
            if _has_digit(inside) and not _is_no_credential(inside) or _is_scrambled(inside):
                yield Secret("authorization header", *match.span(1))
    if "curl" in low:
        for match in _compiled(_CURL).finditer(text):
            if not _compiled(_PLACEHOLDER).fullmatch(match[1]) and not match[1].isdigit():
                yield Secret("address with credentials", *match.span(1))


def _is_no_credential(text: str) -> bool:
    """Tell whether what follows `Authorization:` is prose or a reference."""
    words = _compiled(r"[a-z]+[a-z._-]*").fullmatch(text) and (text.isalpha() and len(text) < 16 or "." in text)
    return bool(words) or text.lower() in _WORDS or bool(_compiled(_PLACEHOLDER).fullmatch(text))


# ---- as people say it

_SAID = (
    r"(密[码碼]|口令|密[钥鑰]|秘[钥鑰]|金鑰|令牌|授权码|私[钥鑰]|通行码)(?:[（(][^）)\n]{0,20}[）)])?"
    r"([ \t]{0,4}(?:设置为|设置成|更新为|设为|設為|设成|改为|改成|换成|就是|是|为|為|叫)?[ \t]{0,4}[:：=＝]?)[ \t“‘「『【\"'`]{0,4}"
)
_PHRASE = r"[^\s，。；、！？,;!?\"'`“”‘’「」（）()【】《》：:]{3,32}"
# A value in Chinese with these in it is a sentence about passwords.
_ABOUT = r"[位个個]|字符|字母|数字|长度|至少|必须|需要|不能|包含|[请請]|输入|错误|过期|什么|多少|怎么|[年月日]"
_CODE_SAID = (
    r"(?:验证码|驗證碼|校验码|动态码|动态密码|动态口令|认证码|激活码|取件码|提取码|(?:verification|security|login|confirmation|one-time|auth"
    r"|sign-in|pin|access)[ -](?:code|password)|otp|passcode|인증번호|認証コード)[ \t]{0,4}(?:是|为|為|is|was|は|:|：|=)?[ \t:：]{0,4}[【\[“\"]?"
    r"([0-9]{3}[ -][0-9]{3}|[0-9]{4,8})(?![0-9A-Za-z位个年月])"
)


def _said(text: str, low: str) -> Iterator[Secret]:
    """Yield secrets in Chinese phrasing, and codes that are good for once."""
    if not text.isascii():
        for match in _compiled(_SAID).finditer(text):
            value = _value_at(text, match.end(), tight=False)
            joined = bool(match[2].strip())
            if value is not None and _is_said(value, text, name=match[1], joined=joined):
                yield Secret("password" if match[1][1] in "码碼令" else "key", value.start, _rest_of(text, value))
                continue
            phrase = _compiled(_PHRASE).match(text, match.end()) if joined else None
            if phrase and _has_digit(phrase[0]) and not phrase[0].isascii() and not _compiled(_ABOUT).search(phrase[0]):
                yield Secret("password", *phrase.span())
    if _compiled("[0-9]{3}").search(text) and any(word in low for word in _CODE_MARKERS):
        for match in _compiled(_CODE_SAID).finditer(low):
            yield Secret("one-time code", *match.span(1))


_CODE_MARKERS = ("码", "碼", "code", "otp", "one-time", "动态口令", "인증번호", "コード")


def _is_said(value: _Value, text: str, *, name: str, joined: bool) -> bool:
    """Tell whether ASCII text after a Chinese name is its value. joined: `是` or a colon stands between."""
    if _compiled(_PLACEHOLDER).fullmatch(value.text) or _compiled(_CODE).fullmatch(value.text.lower()):
        return False
    password = name[1] in "码碼令" and name != "令牌"
    if not joined:
        return len(value.text) >= 6 and _has_digit(value.text) and _is_mixed(value.text)
    if value.text.isdigit():
        return len(value.text) >= (4 if password else 8) and not _is_year_or_count(text, value)
    if _has_digit(value.text):
        return len(value.text) >= (4 if password else 6)
    word = value.text.lower()
    if word in _WORDS or _compiled(_NAMING).search(word):
        return False
    return _is_scrambled(value.text) or password and len(value.text) >= 6 and not value.text.isupper()
