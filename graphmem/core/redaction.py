"""Secrets in text: where they stand, and the text without them. Without a state: the same text gets the same answer.

- By form (`secret_forms`): tokens of known services, keys in PEM, identity and card numbers with right check digits.
- By name (`secret_names`): `password = ...`, `SESSION=<hex>`, `数据库密码是...`; credentials in addresses and headers.
- Invisible characters do not count, and letters and digits that NFKC makes ASCII count as those. Letters that only look
  alike, such as Cyrillic ones, are other letters.
- Hashes, UUIDs and base64 without a name are content, and no secrets.
"""

import bisect
import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from graphmem.core.keys import INVISIBLE, visible
from graphmem.core.secret_forms import Secret, compiled, key_secrets, number_secrets, token_secrets
from graphmem.core.secret_names import REDACTED as REDACTED
from graphmem.core.secret_names import address_secrets, command_secrets, named_secrets, said_secrets
from graphmem.errors import SecretRefused

_SHORTEST = 5  # characters of a text with a secret in it
_LEAST = 6  # characters beside a mark that are a secret of their own


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Return the secrets of a text in order; none overlaps another.

    >>> [secret.kind for secret in find_secrets("https://h/x?api_key=abc123def456 密码：夏天2026")]
    ['query parameter', 'password']
    >>> find_secrets("忘记密码怎么办")
    ()
    """
    plain = _folded(text)
    found = list(_candidates(plain))
    if not found:
        return ()
    secrets = _without_marks(plain, joined(found))
    return tuple(secrets if len(plain) == len(text) else _moved(text, secrets))


def secrets_of(name: str, value: str, find: Callable[[str], Iterable[Secret]] = find_secrets) -> tuple[Secret, ...]:
    """Return the secrets of a value that are ones by what it is called too: its relation is the name of an object.

    >>> secrets_of("密码", "Tr0ub4dor"), secrets_of("likes", "Tr0ub4dor")
    ((Secret(kind='password', start=0, end=9),), ())
    """
    before = f"{name}: "
    return tuple(
        Secret(kind, start - len(before), end - len(before))
        for kind, start, end in find(before + value)
        if start >= len(before)
    )


def redact(text: str) -> str:
    """Return a text with each secret replaced by `[REDACTED]`; the same object where there is none.

    >>> redact("redis://:pw123456@cache:6379")
    'redis://:[REDACTED]@cache:6379'
    """
    # What stood beside a secret may be one once that is gone; each round leaves less, so this ends.
    while secrets := find_secrets(text):
        text = replaced(text, secrets)
    return text


def replaced(text: str, secrets: Iterable[Secret]) -> str:
    """Return a text with these secrets of it replaced.

    >>> replaced("a secret b", [Secret("API key", 2, 8)])
    'a [REDACTED] b'
    """
    pieces: list[str] = []
    done = 0
    for secret in secrets:
        pieces += (text[done : secret.start], REDACTED)
        done = secret.end
    return "".join((*pieces, text[done:]))


def refuse_secrets(**texts: object) -> None:
    """Raise SecretRefused for the first argument with a secret in it: a text, or a list of texts; others pass.

    >>> refuse_secrets(title="Deploy with pnpm", labels=["deploy"], turn=3)
    """
    given = [
        (argument, text)
        for argument, value in texts.items()
        for text in (value if isinstance(value, list | tuple | set | frozenset) else (value,))
        if isinstance(text, str) and text
    ]
    # Many short texts are looked at as one, since each look has its price.
    if len(given) > 1 and not find_secrets("\n".join(text for _, text in given)):
        return
    for argument, text in given:
        if secrets := find_secrets(text):
            raise SecretRefused(argument, secrets[0].kind)


def _candidates(text: str) -> Iterator[Secret]:
    if len(text) < _SHORTEST:
        return
    yield from token_secrets(text)
    yield from key_secrets(text)
    yield from number_secrets(text)
    # Only this letter grows when it is made small, and places must stay.
    low = text.replace("İ", "i").lower()
    yield from address_secrets(text, low)
    yield from named_secrets(text, low)
    yield from command_secrets(text, low)
    yield from said_secrets(text, low)


def joined(found: Iterable[Secret]) -> list[Secret]:
    """Return secrets in order, those that overlap or touch as one, under the kind of the first.

    >>> joined([Secret("token", 3, 9), Secret("password", 1, 5)])
    [Secret(kind='password', start=1, end=9)]
    """
    whole: list[Secret] = []
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        if not whole or each.start > whole[-1].end:
            whole.append(each)
        elif each.end > whole[-1].end:
            whole[-1] = whole[-1]._replace(end=each.end)
    return whole


def _without_marks(text: str, found: list[Secret]) -> list[Secret]:
    """Return secrets without what was redacted before, so that redacting again changes nothing."""
    if REDACTED not in text:
        return found
    marks = [match.span() for match in re.finditer(re.escape(REDACTED), text)]
    ends = [end for _, end in marks]
    kept: list[Secret] = []
    for each in found:
        pieces: list[Secret] = []
        start = each.start
        for begin, end in marks[bisect.bisect_right(ends, start) : bisect.bisect_left(marks, (each.end, 0))]:
            pieces.append(Secret(each.kind, start, max(begin, start)))
            start = end
        pieces.append(Secret(each.kind, start, each.end))
        # A few signs beside a mark are no rest of a secret.
        kept += pieces if len(pieces) == 1 else [one for one in pieces if one.end - one.start >= _LEAST]
    return kept


_STYLED = "\u2070-\u209c\u2100-\u214f\u2460-\u24ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff"
_WIDE = "\uff01-\uff5e"
# What ranges beyond U+FFFF lie in: a look at a character costs as many steps as there are such ranges.
_BEYOND = "\U0001bca0-\U0001d7ff\U000e0000-\U000e0fff"


def _folded(text: str) -> str:
    """Return a text without invisible characters, and with styled ASCII made plain.

    >>> _folded("ＡＫＩＡ\u200b")
    'AKIA'
    """
    if text.isascii() or not _odd().search(text):
        return text
    return compiled(f"[{_STYLED}{_WIDE}]+").sub(lambda run: run[0].translate(_plain_letters()), visible(text))


@functools.cache
def _odd() -> re.Pattern[str]:
    """Return what finds whether a text may hold characters that are folded."""
    near = re.sub("[\U00010000-\U0010ffff](?:-.)?", "", INVISIBLE + _STYLED)
    return re.compile(f"[{near}{_BEYOND}]")


@functools.cache
def _plain_letters() -> dict[int, str]:
    """Return what characters become that NFKC makes one of ASCII."""
    letters = {code: unicodedata.normalize("NFKC", chr(code)) for code in _codes(_STYLED + _WIDE)}
    return {code: plain for code, plain in letters.items() if len(plain) == 1 and plain.isascii()}


def _codes(characters: str) -> Iterator[int]:
    """Yield the code points of a class as regular expressions write it."""
    for first, last in re.findall("(.)(?:-(.))?", characters):
        yield from range(ord(first), ord(last or first) + 1)


def _moved(text: str, secrets: list[Secret]) -> Iterator[Secret]:
    """Yield secrets at their places in the text that was folded."""
    places, by, gone = [0], [0], 0
    for match in compiled(f"[{INVISIBLE}]+").finditer(text):
        places.append(match.start() - gone)
        gone += match.end() - match.start()
        by.append(gone)
    for kind, start, end in secrets:
        first, last = (place + by[bisect.bisect_right(places, place) - 1] for place in (start, end - 1))
        yield Secret(kind, first, last + 1)
