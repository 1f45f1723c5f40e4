"""Files that hold many notes, and how they are taken apart and put together again.

A file is a row of pieces. Those that are notes are compared and changed one by one; all others are people's, and keep
their bytes.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file. key: what names it there, '' for what is no note. where: for people, such as 'line 3'.

    page: what it says, with the heading that it stands below. raw: its text as it stands in the file.
    """

    key: str
    where: str
    page: str
    raw: str


@dataclass(frozen=True, slots=True)
class Parting:
    """How the files of a form are taken apart.

    is_file: tells whether a path is one of them. part: returns the pieces of a text. joined: returns a text in which
    pages are other ones, by key, None for those that are to go. Both are told the path too.
    """

    is_file: Callable[[str], bool]
    part: Callable[[str, str], list[Piece]]
    joined: Callable[[str, str, Mapping[str, str | None]], str]


def digest_of(page: str) -> str:
    """Return what names a page that names itself by nothing."""
    return hashlib.sha256(page.encode()).hexdigest()


def named(pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces with a key of its own each.

    >>> [piece.key for piece in named([Piece("a", "", "", ""), Piece("", "", "", ""), Piece("a", "", "", "")])]
    ['a', '', 'a~2']
    """
    seen: dict[str, int] = {}
    found = []
    for piece in pieces:
        count = seen[piece.key] = seen.get(piece.key, 0) + 1
        found.append(replace(piece, key=f"{piece.key}~{count}") if piece.key and count > 1 else piece)
    return found
