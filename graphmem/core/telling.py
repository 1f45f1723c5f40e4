"""Which lines of a tool's long output tell what failed: a failed test, the first error of a compiler, an exception."""

import re
from collections.abc import Sequence

_MOST_LINES = 3
# A line is looked at this far, so that one endless line costs no more than others.
_LOOKED_AT = 1_000
# A text this short has no headers to lose.
_SHORT_TEXT = 3

# A line without any of these words tells of no failure.
_TELLING = re.compile(
    r"error|exception|failure|panic|\b(?:fail(?:s|ed|ing)?|fatal|err!|denied|refused|rejected|forbidden|"
    r"unauthorized|not found|not recognized|no such|cannot|can't|could not|couldn't|unable to|timed out|timeout|"
    r"abort\w*|killed|segmentation fault|core dumped|out of memory|invalid|unknown|unexpected|undefined|missing|"
    r"conflict)\b|^e {2,}|●|^\S+:\d+:\d+:? |^[a-z]{1,4}\d{3,4} |\*\*\*|"
    r"错误|失败|无法|异常|拒绝|找不到|未找到|不存在|超时|中止|崩溃",
    re.IGNORECASE,
)
# Separators, headers, progress, advice, what went well, and what only counts or repeats the failures told above it.
_NOISE = re.compile(
    r"""
      [\W_]*$
    | \s*([=_~*\#-])\1{2,}\s.*\1{3}\s*$
    | \s*(?:compiling|downloading|downloaded|collecting|installing|fetching|building|checking|running|using|unpacking|
        preparing|get:\d+|pulling|extracting|added|up\sto\sdate|finished)\b(?!.*(?:failed|error:|denied))
    | \s*(?:\S+:\s)?(?:hint|note|help|warn(?:ing)?|info|debug|tip|trace|usage|see|try|提示|警告|注意)\b[:\]]?\s
    | .*\b(?:passed|ok|skipped|done|xfail(?:ed)?)\W*(?:\[\s*\d+%\])?\s*$
    | .*\d%\s?[|\]]
    | \[\*\]\s\d+\sfixable
    | .*\b(?:0|no)\s(?:errors?|failures?|failed|problems)\b
    | .*(?:complete\slog\sof\sthis\srun|for\smore\s(?:information|details)|for\sdetails,|aborting\sdue\sto|
        could\snot\scompile|to\srerun\spass|originates\sin|test\sresult:)
    | found\s\d+\serrors?|[✖x]\s\d+\sproblems?|\d+\s(?:errors?|failures?|failed)\b
    | failed\s\((?:failures|errors)=
    | (?:fail|failed|exit\sstatus\s\d+)\s*$
    | npm\s(?:err!|error)\s(?:a\scomplete|path|cwd|\s*$|command|code\s(?:elifecycle|1)\b|errno\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PYTEST = re.compile(r"E {2,}(?=\S)")
_LAST_RESORT = re.compile(r"\w*make(?:\[\d+\])?: \*\*\* ", re.IGNORECASE)

# The first kind of which there is a line tells. Of compilers the first error is the one that others follow from; of
# chained exceptions the last one is the cause in Java, and what was raised in Python.
_FIRST, _LAST = slice(_MOST_LINES), slice(-1, None)
_KINDS = (
    # pytest: what was raised, then which test failed, then what was compared
    (
        re.compile(
            r"E {2,}(?!AssertionError)(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Warning|Interrupt|Timeout)\b"
        ),
        _FIRST,
    ),
    (re.compile(r"(?:FAILED|ERROR) \S+(?:::| - |\.py)"), _FIRST),
    (re.compile(r"E {2,}\S"), _FIRST),
    # unittest, go, cargo, jest, vitest: the test that failed
    (re.compile(r"(?:FAIL|ERROR): \w+ \(|\s*--- FAIL: |panic: |test \S+ \.\.\. FAILED|\s*● \S"), _FIRST),
    # exceptions: in Java and its kin the root cause, elsewhere what was raised last
    (re.compile(r"Caused by: "), _LAST),
    (
        re.compile(
            r"(?:Exception in thread \S+ |Uncaught |Unhandled )?"
            r"(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b"
        ),
        _LAST,
    ),
    # compilers, linters, git and others that say so in front of the message
    (
        re.compile(
            r"\s*(?:error(?:\[\w+\])?|fatal(?: error)?|remote: (?:error|fatal)):? |"
            r"\S[^\n]{0,400}?: (?:fatal )?error(?: \w+)?: |"
            r"\S[^\n]{0,400}? error TS\d+: |\s*\d+:\d+ +error +|\S+:\d+:\d+:? [A-Z]+\d+ |"
            r"[A-Z]{1,4}\d{3,4} (?:\[\*\] )?\w",
            re.IGNORECASE,
        ),
        _FIRST,
    ),
    (re.compile(r"npm (?:ERR!|error) "), _FIRST),
)


def telling_lines(text: str) -> tuple[list[str], list[str]]:
    """Return the lines of a tool's output that tell what failed, and its other lines; blank ones are left out.

    A text of few lines that says of none that it failed tells with all of them, a long one with its last line. Takes
    time linear in the text.

    >>> telling_lines("cc -c a.c\\na.c:1:2: error: bad type\\nmake: *** [all] Error 1")
    (['a.c:1:2: error: bad type'], ['cc -c a.c', 'make: *** [all] Error 1'])
    """
    lines = [line for line in text.splitlines() if line and not line.isspace()]
    if len(lines) < 2:
        return lines, []
    places = _places(lines)
    told = [_PYTEST.sub("", lines[place]) for place in places]
    taken = set(places)
    return told, [line for place, line in enumerate(lines) if place not in taken]


def _places(lines: Sequence[str]) -> list[int]:
    """Return where the telling lines are."""
    heads = {
        place: head
        for place, line in enumerate(lines)
        if _TELLING.search(head := line[:_LOOKED_AT]) and not _NOISE.match(head)
    }
    for kind, part in _KINDS:
        found = [place for place, head in heads.items() if kind.match(head)]
        if found:
            return _with_what_follows(lines, _distinct(lines, found)[part])
    spoken = [place for place, head in heads.items() if not _LAST_RESORT.match(head)] or list(heads)
    if spoken:
        return _with_what_follows(lines, _distinct(lines, spoken)[-2:])
    if len(lines) <= _SHORT_TEXT:
        return list(range(len(lines)))
    said = [place for place, line in enumerate(lines) if not _NOISE.match(line[:_LOOKED_AT])]
    return (said or [len(lines) - 1])[-1:]


def _distinct(lines: Sequence[str], places: Sequence[int]) -> list[int]:
    """Return the first place of each line."""
    return sorted({lines[place]: place for place in reversed(places)}.values())


def _with_what_follows(lines: Sequence[str], places: Sequence[int]) -> list[int]:
    """Return places with the line behind each that ends in a colon: it only announces what failed."""
    announced = (
        place + 1 for place in places if lines[place].rstrip().endswith((":", "：")) and place + 1 < len(lines)
    )
    return sorted({*places, *announced})
