"""What a file of Markdown lists: its bullets and paragraphs, each with the heading that it stands below."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*")
_BULLET = re.compile(r"[-*+•][ \t]+(.*)")


class Item(NamedTuple):
    """A bullet or a paragraph, and the heading that it stands below, '' for none."""

    heading: str
    text: str


def items(lines: Iterable[str]) -> Iterator[Item]:
    """Yield what a file lists, with the lines that go on below each bullet; comments are left out.

    >>> list(items(["## Rules", "- never push", "  to main", "", "Plain text."]))
    [Item(heading='Rules', text='never push\\nto main'), Item(heading='Rules', text='Plain text.')]
    """
    heading, told = "", list[str]()
    for line in [*lines, "# "]:
        own = line.strip()
        title, bullet = HEADING.fullmatch(line), _BULLET.fullmatch(line)  # an indented bullet goes on
        if (title or bullet or not own or line == "# ") and told:
            yield Item(heading, "\n".join(told))
            told = []
        if title:
            heading = title[2]
        elif own and own != "#" and not own.startswith("<!--"):
            told.append(bullet[1].strip() if bullet else own)
