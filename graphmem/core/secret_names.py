"""Secrets that are known by what stands before them: a name and a sign, an address, a header, a phrase.

What a name is given is no secret where it is a placeholder, a reference, a call, a type, a path, or prose.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from graphmem.core.secret_forms import Secret, compiled

REDACTED = "[REDACTED]"


def named_secrets(text: str, low: str) -> Iterator[Secret]:
    """Yield what a name is given: `name = value` in code, settings, JSON and prose. low: the text in small letters.

    >>> [secret.kind for secret in named_secrets("DB_PASSWORD=Tr0ub4dor", "db_password=tr0ub4dor")]
    ['password']
    """
    if not _has_any(low, _NAME_MARKERS):
        return
    # Prose speaks of keys and sessions more than of passwords, and of those without a sign.
    speaks = _has_any(low, _SAID_MARKERS) or ("key" in low and compiled("key" + _IS_KEY).search(low) is not None)
    value_at = _values_of(text)
    for sign in _SIGNS:
        if (sign.said and not speaks) or not _has_any(low, sign.markers):
            continue
        judge, done = _Judge(text, said=sign.said), 0
        # Uniform text has the same few beginnings over and over.
        may_be_named = functools.lru_cache(_REMEMBERED)(functools.partial(_may_be_named, sign))
        name_of = functools.lru_cache(_REMEMBERED)(functools.partial(_name_of, sign))
        for match in compiled(sign.pattern).finditer(low):
            end = match.start()
            if end < done:
                continue
            start, done = max(done, end - _LONGEST_NAME), match.end()
            strong = not sign.names and match[1] is not None
            length = 0
            if sign.names:
                # A name is dear to look for, and signs are few.
                if not may_be_named(low[start:end]):
                    continue
                seen = max(0, end - 2 * _LONGEST_NAME - 1)
                moves = match[0].strip() == "to"
                length, strong = name_of(text[seen:end], low[seen:end], end - start, moves=moves)
                if not length:
                    continue
            name = low[end - length : done]
            value = value_at(done, tight=name.endswith("="))
            if value is None or (sign.loose and not _is_mixed(value.text)):
                continue
            if judge.is_secret(value, name, strong=strong):
                done = _rest_of(text, value)
                yield Secret(_kind_of(name), value.start, done)


def address_secrets(text: str, low: str) -> Iterator[Secret]:
    """Yield credentials in addresses, in headers and in what is given to curl. low: the text in small letters.

    >>> [secret.start for secret in address_secrets("redis://:pw123456@cache", "redis://:pw123456@cache")]
    [9]
    """
    if "://" in text:
        # Uniform text has the same few values over and over; no longer than this call are they kept.
        is_placeholder = functools.cache(_is_placeholder)
        for match in compiled(_USER).finditer(text):
            if not is_placeholder(match[2]):
                yield Secret("address with credentials", *match.span(2))
        for match in compiled(_LONE_USER).finditer(text):
            if _has_digit(match[1]):
                yield Secret("address with credentials", *match.span(1))
    if "=" in text and ("?" in text or "&" in text):
        is_placeholder = functools.cache(_is_placeholder)
        for match in compiled(_PARAMETER).finditer(low):
            start, end = match.span(2)
            inside = text[start:end]
            if not is_placeholder(inside) and inside.lower() not in _WORDS and "(" not in inside:
                yield Secret("query parameter", start, end)
    if "authorization" in low:
        for match in compiled(_AUTHORIZATION).finditer(low):
            if not _is_no_credential(text[match.start(1) : match.end(1)]):
                yield Secret("authorization header", *match.span(1))
    if "bearer " in low:
        for match in compiled(_BEARER).finditer(low):
            inside = text[match.start(1) : match.end(1)]
            if (_has_digit(inside) and not _is_no_credential(inside)) or _is_scrambled(inside):
                yield Secret("authorization header", *match.span(1))
    if "jdbc:oracle:" in low:
        for match in compiled(_ORACLE).finditer(text):
            yield Secret("address with credentials", *match.span(1))
    if "curl" in low:
        for match in compiled(_CURL).finditer(text):
            if not _is_placeholder(match[1]) and not match[1].isdigit() and match[1].lower() not in _WORDS:
                yield Secret("address with credentials", *match.span(1))


def command_secrets(text: str, low: str) -> Iterator[Secret]:
    """Yield passwords in commands, SQL, `.netrc` and secrets of Kubernetes. low: the text in small letters.

    >>> [secret.start for secret in command_secrets("sshpass -p hunter22 ssh", "sshpass -p hunter22 ssh")]
    [11]
    """
    given: list[re.Match[str]] = []
    if _has_any(text, _COMMAND_MARKERS):
        # Small letters would make -P, which is a port, a password.
        given += compiled(_COMMANDS).finditer(text)
    if _has_any(low, _STATEMENT_MARKERS):
        given += compiled(_STATEMENTS).finditer(low)
    judge, value_at = _Judge(text, said=True), _values_of(text)
    for match in given:
        value = value_at(match.end())
        if value is not None and judge.is_secret(value, "password", strong=True):
            yield Secret("password", value.start, _rest_of(text, value))
    if "kind: secret" in low and compiled(r"kind: secret[ \t]*(?:\n|\Z)").search(low):
        for block in compiled(_DATA).finditer(text):
            for match in compiled(r":[ \t]{1,8}[\"']?([^\s\"']{4,})").finditer(text, *block.span(1)):
                if not _is_placeholder(match[1]):
                    yield Secret("secret", *match.span(1))


def said_secrets(text: str, low: str) -> Iterator[Secret]:
    """Yield secrets in Chinese phrasing, and codes that are good for once. low: the text in small letters.

    >>> [secret.kind for secret in said_secrets("数据库密码是Tr0ub4dor", "数据库密码是tr0ub4dor")]
    ['password']
    """
    if not text.isascii():
        value_at, is_said = _values_of(text), functools.lru_cache(_REMEMBERED)(_is_said)
        for match in compiled(_SAID).finditer(text):
            value = value_at(match.end())
            joined = bool(match[2].strip(" \t，"))
            if value is not None and (
                (is_said(value.text, match[1], joined=joined, quoted=value.quoted) and not _is_count(value, text))
                or _is_of_account(value, text, match.start())
            ):
                yield Secret("password" if match[1][-1] in "码碼令" else "key", value.start, _rest_of(text, value))
                continue
            phrase = compiled(_PHRASE).match(text, match.end()) if joined else None
            if phrase and not phrase[0].isascii() and not compiled(_ABOUT).search(phrase[0]):
                yield Secret("password", *phrase.span())
    if _has_any(low, _CODE_MARKERS):
        # Uniform text has the same few beginnings over and over.
        is_named = functools.lru_cache(_REMEMBERED)(_ends_in_name_of_code)
        behind = compiled(_CODE_BEHIND)
        for match in compiled(_CODE).finditer(low):
            start, end = match.span()
            if is_named(low[max(0, start - _LONGEST_NAME - 1) : start]) or behind.match(low, end):
                yield Secret("one-time code", start, end)


def _ends_in_name_of_code(text: str) -> bool:
    """Tell whether a text ends in the name of a code and a sign; its first character only stands before a name."""
    return compiled(_CODE_NAME).search(text, len(text) > _LONGEST_NAME) is not None


def _has_any(text: str, markers: tuple[str, ...]) -> bool:
    for marker in markers:  # noqa: SIM110 (any() with a generator takes twice as long)
        if marker in text:
            return True
    return False


# ---- names

_STRONG = (
    r"pass(?:word|wd|phrase|code)|pwd|(?<![a-z])pw|(?:api|app|access|private|client|encryption|signing|auth|master|service|account"
    r"|storage|shared|license|consumer|webhook|deploy|admin|bot)[ _.-]?(?:access[ _-]?)?(?:key|secret|token)"
    r"|secret(?:[ _.-]?(?:access[ _-]?)?(?:key|token))?|(?:refresh|bearer|id|personal|registration|device)[ _-]?token"
    r"|contrase(?:ñ|n)a|passwort|kennwort|mot de passe|senha|пароль|パスワード|비밀번호"
)
_WEAK = (
    r"token|session(?:[ _-]?(?:id|key))?|phpsessid|jsessionid|sid|cookie|credentials?|auth|pass"
    r"|(?:csrf|xsrf)[ _-]?token"
)
_SUFFIX = r"(?:[_-]?(?:prod|dev|test|staging|live|value|base|hash|[0-9]{1,2}))?"
# Atomic and possessive, so that a name is not looked at again for each way to read it.
_NAMES = f"(?>({_STRONG})|{_WEAK}){_SUFFIX}+"
_NAME_MARKERS = (
    "pass", "pwd", "secret", "token", "key", "sess", "sid", "cookie", "credential", "auth", "pin ", "pw", "contrase",
    "kennwort", "senha", "пароль", "パスワード", "비밀번호",
)  # fmt: skip

_SAID_MARKERS = (
    "passw", "passp", "passc", "pw", "secret", "token", "pin ", "pin:", "contrase", "kennwort", "mot de passe", "senha",
    "пароль", "パスワード", "비밀번호",
)  # fmt: skip
_KEY_OF = "api|app|ess|ate|ent|ion|ing|uth|ter|ice|unt|age|red|nse|mer|ook|loy|min|bot|ret"
_IS_KEY = f"(?:(?<=(?:{_KEY_OF})key)|(?<=(?:{_KEY_OF})[ _.-]key))"
# What a value without quotes is made of; it ends before CJK text.
_BARE = r"[!#-&(-+\--:=?-_a-~\u00c0-\u1fff]"
# Looked at before all else: there is a value, and it is not the next name.
_GIVEN = (
    rf"(?=(?:[bfru]{{1,2}})?\\{{0,3}}[\"'`“‘「『][^\s\"'`]{{3}}|{_BARE}{{3}})(?!\[redacted\])"
    rf"(?![^\w\s]{{0,2}}(?:{_STRONG}|{_WEAK})(?:[ \t]?[:=]|[ \t](?:is|was) ))"
)
# A sign behind what may be the end of a name.
_BOLD = r"(?:\*\*(?!\*)[ \t]{0,4})?+"
_ASSIGNS = r"[=:：＝](?<=[a-z0-9ñьド호\"'`*\] \t].)(?:(?<==)={0,2}>?|(?<=:)=)?[ \t]{0,8}+" + _BOLD + _GIVEN
_SAYS = (
    r"[ \t是为為は는](?:(?<=[^ \t])[ \t:：]{0,3}+|(?<=[ \t])(?:is|was|est|es|ist|lautet)[: \t]{1,4}+)" + _BOLD + _GIVEN
)
# Changed to it, in the next cell, behind an arrow, as the next argument, in the next line.
_WITH_DIGIT = r"(?=[^\s0-9]{0,63}+[0-9])"
_STANDS_BESIDE = (
    r"[ \t,:：](?:(?<=[ \t])"
    r"(?:(?:(?:(?:is|was)[ \t])?(?:now|changed|set|reset|updated)[ \t])?to|→|[-=]>|[-–—|])[ \t]{1,4}+"
    r"|(?<=[\"'`],)[ \t]{0,4}(?=[\"'`])"
    r"|(?<=[:：])[ \t]{0,4}(?:[|>][+-]?[ \t]{0,4})?\r?\n[ \t]{0,16}+(?=[^\s:=]{6,64}[ \t]{0,8}(?:\n|\Z)))"
    + _WITH_DIGIT
    + _GIVEN
)
_VALUE_IS = r"(?:value|default)[\"'`]?[ \t]{0,4}+[:=][ \t]{0,8}+" + _GIVEN
_IN_XML = r">(?=[^<>\s]{3,256}</)" + _GIVEN
_OPTION = rf"--(?:[a-z0-9]{{1,12}}-){{0,2}}?(?:({_STRONG})|token|auth)[ \t]{{1,4}}+(?!-)" + _GIVEN
_BEFORE_SIGN = r"\\{0,3}+[\"'`*]{0,3}+\]?+[ \t]{0,8}+\Z"
_FOR = r"(?:[ \t](?:\([^()\n]{1,20}\)|(?:for|of|on)(?:[ \t][\w.@-]{1,24}){1,3}?))"
_NAME = _NAMES + _BEFORE_SIGN
_SAID_NAME = rf"(?>({_STRONG}|pin)|token)"
_REMEMBERED = 64  # beginnings, for the length of a call
_LONGEST_NAME = 48  # characters, with what stands before the sign
# How names end, so that hardly anything else is looked at.
_STRONG_ENDS = frozenset(
    end[-3:]
    for end in (
        "password", "passwd", "phrase", "code", "pwd", "key", "secret", "token", "contraseña", "contrasena", "passwort",
        "mot de passe", "senha", "пароль", "パスワード", "비밀번호", "pin",
        *(f"{before}pw" for before in ("", *" _-.\"'`*{,($&?<\n")),
    )
)  # fmt: skip
_NAME_ENDS = _STRONG_ENDS.union(
    end[-3:]
    for end in (
        "session", " id", "_id", "-id", "sid", "nid", "cookie", "credential", "credentials", "auth", "pass", "prod",
        "dev", "test", "staging", "live", "value", "base", "hash",
    )
)  # fmt: skip


# More of how these end, which are also the ends of many other words.
_CLOSER = {"key": _IS_KEY, "ion": "(?<=session)"}


class _Sign(NamedTuple):
    """What stands between a name and its value. markers: one of them is in every text with such a sign.

    said: no sign of a program, so that prose is likely. loose: hardly a sign, so that only letters with digits count.
    """

    markers: tuple[str, ...]
    pattern: str
    names: str
    ends: frozenset[str]
    said: bool
    loose: bool = False


_SIGNS = (
    _Sign(("=", ":", "：", "＝"), _ASSIGNS, _NAME, _NAME_ENDS, said=False),
    _Sign((" is ", " was ", "是", "为", "為", " est ", " es ", " ist ", " lautet ", "は", "는"), _SAYS,
          _SAID_NAME + _BEFORE_SIGN, _STRONG_ENDS, said=True),
    _Sign((" for ", " of ", " on ", ")"), r"[ \t:=：](?:(?<=[ \t])is|(?<=[^ \t]))[ \t]{1,4}+" + _WITH_DIGIT + _GIVEN,
          _SAID_NAME + _FOR + _BEFORE_SIGN, frozenset(), said=True, loose=True),
    _Sign((" to ", "→", "->", "=>", " - ", "–", "—", "|", "\",", "',", "`,", "\n"), _STANDS_BESIDE,
          _SAID_NAME + _BEFORE_SIGN, _STRONG_ENDS, said=True, loose=True),
    _Sign(("value", "default"), _VALUE_IS,
          _NAMES + r"(?:[\"'`][\s,{]|\r?\n)[\s,{]{0,40}+[\"'`]?\Z", _NAME_ENDS, said=False),
    _Sign(("</",), _IN_XML, _NAMES + r"\Z", _NAME_ENDS, said=False),
    _Sign(("--",), _OPTION, "", frozenset(), said=True),
)  # fmt: skip


def _may_be_named(sign: _Sign, low: str) -> bool:
    """Tell at little cost whether a text may end in a name; it is what stands before a sign."""
    head = low.rstrip(" \t\n,{\"'`]\\*")
    if not sign.ends:
        return _has_any(head, sign.markers)
    head = head.rstrip("0123456789_-")
    if head[-3:] not in sign.ends:
        return False
    closer = _CLOSER.get(head[-3:])
    return closer is None or compiled(closer).match(head, len(head)) is not None


def _name_of(sign: _Sign, before: str, low: str, room: int, *, moves: bool) -> tuple[int, bool]:
    """Return how long the name is in which a text ends, 0 where there is none; and whether it is a strong one.

    before: what stands before a sign, low: the same in small letters. room: how many characters of it may be the name.
    moves: whether the sign is `to`, before which something has to change.
    """
    end = len(low)
    found = compiled(sign.names).search(low, end - room)
    if found is None:
        return 0, False
    begin, strong = found.start(), found[1] is not None
    if not strong and begin and low[begin - 1].isalpha() and not _begins_word(before, begin):
        return 0, False
    if moves and not compiled(_CHANGING).search(low, max(0, begin - _LONGEST_NAME), begin):
        return 0, False
    return end - begin, strong


_CHANGING = r"(?<![a-z])(?:set|chang(?:e|ed|ing)|reset|updated?|ma[dk]e)(?![a-z])"


def _begins_word(text: str, place: int) -> bool:
    """Tell whether a word begins here within a name, as in dbToken."""
    return text[place].isupper() and not text[place - 1].isupper()


def _kind_of(name: str) -> str:
    for word, kind in (("pass", "password"), ("pw", "password"), ("token", "token"), ("sess", "session")):
        if word in name:
            return kind
    return "key" if "key" in name else "secret"


# ---- values


class _Value(NamedTuple):
    """What a name is given: the text, where it begins and ends, and how it is written."""

    text: str
    start: int
    end: int
    quoted: bool
    tight: bool  # behind an equals sign without a space, as programs write settings


_CLOSING = {"“": "”", "‘": "’", "「": "」", "『": "』"}
_OPENERS = frozenset("bBfFrRuU\\\"'`“‘「『")
_STOPS = ")]}.,;:!?\\|*"
_LOOKED_AT = 256  # characters of a value
_LONGEST_QUOTED = 1000


def _values_of(text: str) -> Callable[..., _Value | None]:
    """Return what gives the value that begins at a place of a text, the first characters of it; None where none does.

    tight: see `_Value`. What it remembers it forgets with the text.
    """
    bare_value = functools.lru_cache(_REMEMBERED)(_bare_value)

    def value_at(place: int, *, tight: bool = False) -> _Value | None:
        if text[place : place + 1] in _OPENERS:
            opened = compiled(r"(?:[bBfFrRuU]{1,2})?\\{0,3}[\"'`“‘「『]").match(text, place)
            if opened is not None:
                place = opened.end()
                if inside := _quoted_value(text, place):
                    return _Value(inside, place, place + len(inside), quoted=True, tight=tight)
        bare = bare_value(text[place : place + _LOOKED_AT])
        return None if bare is None else _Value(bare, place, place + len(bare), quoted=False, tight=tight)

    return value_at


def _quoted_value(text: str, start: int) -> str:
    """Return what stands in quotes, which opened before a place; empty where they do not close in the line."""
    closing = _CLOSING.get(text[start - 1], text[start - 1])
    end = text.find(closing, start, start + _LONGEST_QUOTED)
    while end > start and text[end - 1] == "\\" != text[start - 2 : start - 1]:
        end = text.find(closing, end + 1, start + _LONGEST_QUOTED)
    return text[start:end].rstrip("\\") if end > start and "\n" not in text[start:end] else ""


def _bare_value(text: str) -> str | None:
    """Return the value without quotes with which a text begins, None where it begins with none."""
    last = len(text)
    if "&" in text and (parameter := compiled(r"&[A-Za-z0-9_.-]{1,32}=").search(text)):
        last = parameter.start()
    match = compiled(f"{_BARE}+").match(text, 0, last)
    if match is None:
        return None
    return match[0].rstrip(_STOPS) if len(match[0]) < _LOOKED_AT else match[0]


def _rest_of(text: str, value: _Value) -> int:
    """Return where a value ends of which the beginning was looked at."""
    if value.quoted or len(value.text) < _LOOKED_AT:
        return value.end
    match = compiled(f"{_BARE}*+").match(text, value.end)
    return match.end() if match else value.end


# Values that say what kind of a thing belongs there, or that it is missing.
_WORDS = frozenset(
    """
    required optional string str bytes text none null nil true false yes no on off changed change invalid wrong
    expired missing hidden empty unset enabled disabled default todo tbd undefined object number integer boolean
    bool any char varchar value values val input data raw name field form self this args kwargs config settings env
    var variable hash hashed plain plaintext encoded decoded encrypted result response request prompt getpass
    example placeholder unknown private public internal external bearer basic digest token tokens password passwords
    secret secrets key keys see only ok failed failure success error denied granted accepted rejected valid reset
    updated created revoked rotated redacted masked removed omitted file path url uri uuid json yaml xml jwt oauth
    saml ldap bcrypt argon scrypt pbkdf vault keepass bitwarden keychain keyring type format length count size id
    uid user username login email new old current async await return function const let static final readonly
    override ref getatt importvalue pflichtfeld wachtwoord adgangskode salasana parola geheimnis geheim heslo kodeord
    passord sandi slaptazodis lozinka zaporka geslo sifre clave segreto secreto jeton
    erforderlich vergessen obligatoire oublié requis obligatorio obligatoria requerido requerida olvidada обязателен
    """.split()  # noqa: SIM905 (a list of them would fill a page)
)
_NAMING = (
    r"passw|passphrase|passcode|pwd|secret|token|key|credential|auth|login|user|config|setting|env|session|getpass"
    r"|kennwort"
)
_PLACEHOLDER = (
    r"\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|\$[a-z_]+(?:->|\.).*|\{.*|<.*|\[.*|%[({].*|%[a-z]%?|%[A-Z_]+%"
    r"|@[a-z.]+|[*•.x·_?#-]{3,}|X{3,}|[xX*•]{2,}[A-Za-z0-9]{0,4}|(?:your|YOUR)[-_ ].*|my[-_].*|example.*|dummy.*"
    r"|\.\.\..*|…+|&[a-z]+|[A-Za-z_-]{0,12}(?:[xX]{8,}|[*]{6,})"
    # Rules of a form.
    r"|(?:required|nullable|sometimes|string|min|max|confirmed)(?::\w{1,9})?(?:\|[a-z_]{2,20}(?::[\w,.]{1,20})?)+"
)
# A call, an index, a reference.
_EXPRESSION = (
    r"(?:new |await |!|&|\*)?[A-Za-z_$][\w$]*+(?:(?:\.|->|::|\?\.)[\w$]*+)*+[(\[{].*"
    r"|(?:[A-Za-z_$][A-Za-z_$-]*[0-9]?)(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z_$-]*[0-9]?)+"
)
# Types, algorithms, sizes.
_MEASURE = (
    r"(?:u?int|float|bytes|string|char|varchar|number|decimal)[0-9]{1,3}"
    r"|(?:aes|rsa|sha|md|ed|hs|rs|es|hmac|sha3|utf|base|bcrypt|argon|scrypt|pbkdf|v|tls|ssl|oauth|x|ecdsa|secp|p|k)"
    r"[-_]?[0-9]{1,5}(?:[-_/]?[a-z0-9]{1,8})?"
    r"|[0-9]{1,4}[-_]?(?:digits?|chars?|characters?|bits?|bytes?|days?|hours?|min|minutes?|sec|seconds?|ms|[smhdkx]|kb"
    r"|mb|th)"
)
_PATH = r"(?:/|~/|\.{1,2}/|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{1,12}://).*"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NUMBERS = "[0-9]+(?:[-~][0-9]+)?"
_COUNTED = r"[位年月日天次个個小分秒元字%]|[ \t]{0,2}(?:characters|chars|digits|attempts|seconds|times)"
_SHORTEST_VALUE = 3


class _Judge:
    """Tells what is a secret of what one text gives to names. said: no sign stands between, so that prose is likely."""

    def __init__(self, text: str, *, said: bool) -> None:
        self._text = text
        self._said = said
        # Uniform text has the same few values over and over.
        self._judged: dict[tuple[str, str, bool], bool] = {}

    def is_secret(self, value: _Value, name: str, *, strong: bool) -> bool:
        """Tell whether a value is a secret, and no placeholder, reference, type or prose.

        strong: the name says so by itself, while others are also names of harmless things.
        """
        asked = (name, value.text, value.quoted)
        if asked not in self._judged:
            is_harmless = _is_harmless(value.text, quoted=value.quoted)
            self._judged[asked] = not is_harmless and self._is_secret(value, name, strong)
        if not self._judged[asked]:
            return False
        # What follows tells prose and counts.
        if value.text.isdigit():
            return not compiled(_COUNTED).match(self._text, value.end)
        return value.quoted or value.tight or not value.text.isalpha() or self._ends_here(value)

    def _is_secret(self, value: _Value, name: str, strong: bool) -> bool:
        inside = value.text
        password = "pass" in name or "pw" in name or "contrase" in name or "kennwort" in name or not name.isascii()
        letters, digits = bool(compiled(r"[^\W\d_]").search(inside)), _has_digit(inside)
        if " " in inside:
            # A sentence, which may hold it.
            return any(len(word) > 7 and word.isalnum() and _has_digit(word) for word in inside.split())
        if not digits and not letters:
            return strong and value.quoted and len(inside) > 5
        if compiled("[A-Za-z0-9+/]{6,}={1,2}").fullmatch(inside) and len(inside) % 4 == 0:
            return strong or value.tight
        if letters and digits:
            if self._said:
                return len(inside) >= 6 and bool(compiled("[A-Za-z]").search(inside))
            if strong:
                return len(inside) >= (4 if password else 6)
            if "sess" in name or name.startswith("sid"):
                # Behind a colon it is mostly the name of a session, as in a log or a scope.
                return name.rstrip().endswith("=") and len(inside) >= 20 and not compiled(_UUID).fullmatch(inside)
            return len(inside) >= 8 and not compiled("[a-z_]{2,16}=.*").fullmatch(inside)
        if digits:
            return strong and len(inside) >= (4 if password or "pin" in name else 8)
        return _is_scrambled(inside) or (strong and not self._said and self._is_word(value, password=password))

    def _is_word(self, value: _Value, *, password: bool) -> bool:
        """Tell whether letters alone are a secret: as a setting has it, not as prose or code has it."""
        low = value.text.lower()
        if len(low) < 4 or low.strip("&*?!([") in _WORDS or compiled(_NAMING).search(low):
            return False
        if value.quoted:
            return low.isascii()
        compound = "_" in value.text or compiled("[a-z][A-Z]").search(value.text)
        return (password or value.tight) and not compound

    def _ends_here(self, value: _Value) -> bool:
        """Tell whether a line or a bracket ends behind a word; else it is prose, or the argument of a call."""
        after = compiled(r"[\]}.,;:!?\\|*]*+(?![ \t]*[^\s\"'`}\]])").match(self._text, value.end)
        return _is_scrambled(value.text) or after is not None


def _is_harmless(inside: str, *, quoted: bool) -> bool:
    """Tell whether a value says by itself that it is none."""
    return (
        len(inside) < _SHORTEST_VALUE
        # An address on a chain, where all can read it.
        or compiled("0x[0-9a-fA-F]{40}").fullmatch(inside) is not None
        or inside.startswith(REDACTED)
        or _is_placeholder(inside)
        or (compiled(_PATH).fullmatch(inside) is not None and not _is_key_material(inside))
        or (not quoted and compiled(_EXPRESSION).fullmatch(inside) is not None)
        or compiled(_MEASURE).fullmatch(inside.lower()) is not None
    )


def _is_mixed(text: str) -> bool:
    """Tell whether there are letters and digits, and no word for a secret, as another name would have."""
    return (
        _has_digit(text)
        and compiled("[A-Za-z]").search(text) is not None
        and not compiled(_NAMING).search(text.lower())
    )


def _is_placeholder(text: str) -> bool:
    return compiled(_PLACEHOLDER).fullmatch(text) is not None


def _has_digit(text: str) -> bool:
    return compiled("[0-9]").search(text) is not None


def _is_key_material(text: str) -> bool:
    """Tell whether what begins like a path is base64 of a key."""
    return compiled("[A-Za-z0-9+/=]{32,}").fullmatch(text) is not None and all(
        compiled(each).search(text) for each in ("[0-9]", "[a-z]", "[A-Z]")
    )


def _is_scrambled(text: str) -> bool:
    """Tell whether letters change their case as no words do.

    >>> _is_scrambled("aXbQzRtYuWpLkJhG"), _is_scrambled("getUserSettings")
    (True, False)
    """
    changes = len(compiled("[a-z](?=[A-Z])|[A-Z](?=[a-z])").findall(text))
    return len(text) >= 12 and text.isascii() and text.isalpha() and changes * 3 >= len(text)


# ---- addresses and headers

_PARAMETER = (
    r"[?&;]([a-z0-9_.-]{0,24}?(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|auth[_-]?key"
    r"|subscription-key|sig|signature|credential))=([^&\s#\"'<>`\\\u3000-\U0010ffff]+)"
)
_USER = r"://([^\s/?#@:\"'<>]{0,128}):([^\s/?\"'<>]{1,256})@"
_LONE_USER = r"://([A-Za-z0-9_-]{20,200})@"
_AUTHORIZATION = (
    r"authorization(?:\\{0,3}[\"'`])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}[\"'`])?"
    r"(?!authorization)(?:(?:basic|bearer|token|digest|negotiate|apikey)[ \t]{1,4})?([a-z0-9+/=._~-]{4,})"
)
_BEARER = r"bearer[ \t]{1,4}([a-z0-9+/=._~-]{12,})"
_ORACLE = r"(?i:jdbc:oracle:[a-z0-9]{2,6}):[^\s/@]{1,64}/([^\s/@]{3,128})@"
# Commands with an option for a password, and what stands before it.
_COMMANDS = (
    r"(?<![A-Za-z0-9_-])(?:(?:mysql|mysqldump|mysqladmin|mariadb)[ \t][^\n|;]{0,100}?(?<=[ \t])-p"
    r"|sshpass[ \t]{1,4}-p[ \t]{0,4}|redis-cli[ \t][^\n|;]{0,100}?(?<=[ \t])-a[ \t]{0,4}"
    r"|(?:docker|podman|registry|nerdctl)[ \t]{1,4}login[ \t][^\n|;]{0,100}?(?<=[ \t])-p[ \t]{0,4}"
    r"|(?:ENV|setx|setenv)[ \t]{1,4}[A-Za-z0-9_]{0,32}(?:PASS|PASSWORD|PASSWD|PWD|SECRET|TOKEN|KEY)[ \t]{1,4})"
    r"(?=[^\s-])"
)
_STATEMENTS = (
    r"(?:identified[ \t]{1,4}(?:with[ \t]{1,4}[\w'\"]{1,40}[ \t]{1,4})?by|(?<![a-z_])password)"
    r"[ \t]{0,4}\(?[ \t]{0,4}(?=['\"])"
    r"|(?:(?<![a-z])(?:login|user)|(?<![^\n])machine)[ \t]{1,8}\S{1,128}\s{1,16}password[ \t]{1,8}"
)
_STATEMENT_MARKERS = (
    "identified ",
    "password '",
    'password "',
    "password(",
    "password (",
    "login ",
    "user ",
    "machine ",
)
_COMMAND_MARKERS = (" -p", " -a", "ENV ", "setx ", "setenv ")
_DATA = r"(?<![^\n])(?:stringData|data):[ \t]{0,8}\n((?:[ \t]{1,16}[^\n]{1,20000}(?:\n|\Z))+)"
_CURL = r"(?:-u|--user)[ =]?[\"']?[^\s:\"'=]{1,64}:([^\s\"'<>]{3,})"


def _is_no_credential(text: str) -> bool:
    """Tell whether what follows `Authorization:` is prose or a reference."""
    words = compiled("[a-z]+[a-z._-]*").fullmatch(text) and ((text.isalpha() and len(text) < 16) or "." in text)
    return bool(words) or text.lower() in _WORDS or _is_placeholder(text)


# ---- as people say it

_SAID = (
    r"(密[ \u3000]?[码碼]|口令|密[钥鑰]|秘[钥鑰]|金鑰|令牌|授权码|私[钥鑰]|通行码|提取码|访问码)"
    r"(?:[（(][^）)\n]{0,20}[）)])?+[\"'`”’」*]{0,3}+"
    r"([ \t]{0,4}+(?:从[!-~]{1,40}+)?+(?:应该|應該|还|還|现在|暂时|默认|统一|仍然?|我?设的|发你|发给你|如下)?+"
    r"(?:(?:改|换|換|变|设|設|更新|设置|設置)(?:成|为|為)了?|就?是|为|為|叫)?+"
    r"[ \t]{0,4}+(?:[:：=＝~，]|—{1,2}|-{0,2}>|→)?+)"
    r"(?:(?<=[:：])[ \t]{0,4}\n[ \t]{0,8}+(?=[!-~]{6,64}[ \t]{0,4}(?:\n|\Z)))?+"
    r"[ \t“‘「『【\"'`*]{0,4}+"
    # Something that may be a value: ASCII, or a phrase with a digit in it; and not the next name.
    r"(?!密[码碼]|口令|令牌)"
    r"(?=[!-~]{3}|[^\s，。；、！？,;!?0-9]{0,31}+[0-9])"
)
_ACCOUNT = r"(?:[账帐]号|[账帐]户|用户名|登录名|管理员|手机号)[ \t]?[:：=是为]?[ \t]?[!-~]{2,30}[ \t，,、;；/]{0,3}\Z"
_LONGEST_ACCOUNT = 40  # characters
_PHRASE = r"[^\s，。；、！？,;!?\"'`“”‘’「」（）()【】《》：:]{3,32}"
# With these in it, it is a sentence about passwords.
_ABOUT = (
    r"[位个個]|字符|字母|数字|长度|至少|必须|需要|不能|包含|[请請]|输入|错误|过期|什么|多少|怎么|[年月日]|^[^0-9]*$"
)
_CODE_NAMES = (
    r"(?:验证码|驗證碼|校验码|动态码|动态密码|动态口令|认证码|激活码|取件码|提取码|인증번호|認証コード|otp|passcode"
    r"|your[ ]code"
    r"|(?:verification|security|login|confirmation|one-time|auth|sign-in|pin|access)[ -](?:code|password)"
    r"|(?<![a-z])pin(?=[ \t]{0,2}(?:is|:|：|=)))"
)
_CODE_NAME = _CODE_NAMES + r"[ \t]{0,4}(?:是|为|為|is|was|は|:|：|=)?[ \t:：]{0,4}[【\[“\"]?(?:g-)?\Z"
_CODE_BEHIND = (
    r"(?:[ \t]?(?:[（(]|(?:是|为|為)[^\s，。,.0-9]{0,4}的)(?:登录|注册|支付|短信)?"
    r"|[ \t](?:is|as)[ \t]your[ \t](?:[a-z]{1,12}[ \t]){0,2}?)" + _CODE_NAMES
)
_CODE = r"[0-9]{3}(?<![0-9].{3})(?:[0-9]{1,5}|[ -][0-9]{3})(?![0-9a-z位个年月])"
_CODE_MARKERS = ("码", "碼", "code", "otp", "pin", "one-time", "动态口令", "인증번호", "コード")


def _is_of_account(value: _Value, text: str, begin: int) -> bool:
    """Tell whether digits after a Chinese name, which begins there, are a password: an account stands before it."""
    if not (value.text.isascii() and value.text.isdigit() and len(value.text) >= 4):
        return False
    account = compiled(_ACCOUNT).search(text, max(0, begin - _LONGEST_ACCOUNT), begin)
    return account is not None and not _is_count(value, text)


def _is_count(value: _Value, text: str) -> bool:
    """Tell whether a number, or two, say how many of something there are."""
    return (
        compiled(_COUNTED).match(text, value.end) is not None and compiled(_NUMBERS).fullmatch(value.text) is not None
    )


def _is_said(inside: str, name: str, *, joined: bool, quoted: bool) -> bool:
    """Tell whether ASCII text after a Chinese name is its value. joined: `是` or a colon stands between."""
    if not inside.isascii() or _is_harmless(inside, quoted=quoted):
        return False
    password = name[-1] in "码碼令" and name != "授权码"
    letters = compiled("[A-Za-z]").search(inside)
    if not joined:
        return len(inside) >= 6 and _has_digit(inside) and letters is not None
    if _has_digit(inside):
        return len(inside) >= (4 if password else 8 if compiled(_NUMBERS).fullmatch(inside) else 6)
    word = inside.lower()
    if word in _WORDS or compiled(_NAMING).search(word):
        return False
    return _is_scrambled(inside) or (password and len(inside) >= 5 and not inside.isupper())
