"""Lines of markdown: which are code between fences, and how others are kept from beginning something."""

import re
from bisect import bisect

# What names a note in a file of many.
MARK = re.compile(r"<!-- graphmem: (?P<uid>[0-9A-Za-z_-]{1,64}) -->[ \t\r]*")
_FENCE = re.compile(r"[ ]{0,3}(?P<fence>`{3,}|~{3,})(?P<info>.*)")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)  # and not at what else Unicode calls the end of a line


def in_fences(lines: list[str]) -> list[bool]:
    """Tell of each line whether it is code between fences, or one of them. A fence that is not closed is none.

    No fence reaches beyond the name of a note, so one that somebody is about to close hides no other note.
    """
    found = [False] * len(lines)
    fences = [_FENCE.match(line.rstrip("\n")) for line in lines]
    marks = [
        number for number, line in enumerate(lines) if line.startswith("<!--") and MARK.fullmatch(line.rstrip("\n"))
    ]
    failed: dict[str, tuple[int, int]] = {}  # how long a fence was that was not closed, and before which line
    number = 0
    while number < len(lines):
        opened = fences[number]
        if opened is not None and "`" not in opened["info"]:
            fence = opened["fence"]
            length, before = failed.get(fence[0], (0, 0))
            if number >= before or len(fence) < length:
                before = next(iter(marks[bisect(marks, number) :]), len(lines))
                closes = (
                    place for place in range(number + 1, before)
                    if (closed := fences[place]) and closed["fence"].startswith(fence) and not closed["info"].strip()
                )  # fmt: skip
                end = next(closes, None)
                if end is None:
                    failed[fence[0]] = (len(fence), before)
                else:
                    found[number : end + 1] = [True] * (end + 1 - number)
                    number = end
        number += 1
    return found


def escaped(body: str, begins: re.Pattern[str]) -> str:
    """Return a text with a backslash before each line that would begin something, and is no code."""
    lines = lines_of(body)
    return "".join(
        f"\\{line}" if not is_code and begins.match(line.removesuffix("\n")) else line
        for line, is_code in zip(lines, in_fences(lines), strict=True)
    )


def unescaped(body: str, begins: re.Pattern[str]) -> str:
    r"""Return a text without these backslashes.

    >>> begins = re.compile(r"\\*## ")
    >>> unescaped(escaped("## a\n```\n## b\n```", begins), begins)
    '## a\n```\n## b\n```'
    """
    lines = lines_of(body)
    return "".join(
        line[1:] if not is_code and line[0] == "\\" and begins.match(line.removesuffix("\n")) else line
        for line, is_code in zip(lines, in_fences(lines), strict=True)
    )
