"""Payloads in what was said: what nobody reads word for word is kept as a reference to it."""

import hashlib
import re

LONGEST_OUTPUT = 20_000  # characters of what a tool printed: some 300 lines at either end
_SMALLEST_PAYLOAD = 1024
# https://www.rfc-editor.org/rfc/rfc2397: a type, parameters, and the bytes in base64. White space may break lines.
_DATA = re.compile(
    rf"(data:[\w.+-]{{1,64}}/[\w.+-]{{1,64}}(?:;[\w.=+-]{{1,64}}){{0,4}};base64,)([A-Za-z0-9+/_-]{{{_SMALLEST_PAYLOAD},}}={{0,2}})"
)


def without_payloads(text: str) -> str:
    """Return a text in which payloads of at least 1 KiB in base64 are replaced by their size and SHA-256.

    >>> without_payloads("see data:image/png;base64," + "QUJD" * 400 + ".")
    'see data:image/png;base64,[1600 characters, sha256 b7b794808bef005a].'
    """
    return _DATA.sub(lambda found: f"{found[1]}[{_reference(found[2])}]", text) if ";base64," in text else text


def without_the_middle(text: str, most: int = LONGEST_OUTPUT) -> str:
    """Return the beginning and the end of a text, of `most` characters together, and between them what was left out.

    >>> without_the_middle("0123456789" * 3, 10)
    '01234\\n[… 20 characters left out of 30 characters, sha256 276fadfc9edc49f5 …]\\n56789'
    """
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out of {_reference(text)} …]\n{text[-half:]}"


def _reference(text: str) -> str:
    return f"{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"
