"""The loop guard: what this memory put into a prompt is not told to it again as something that was said."""

import re

# With this each request to a writer begins, so that its own session is told from one to learn from.
WRITER_MARK = "<!-- graphmem:writer -->"
# The marks of `compose/brief.py` and `compose/reminding.py` stand alone on their lines, and no stored text between them
# holds a `<`.
_MARK = "memory|recalled-memory|memory-reminder"
_WHOLE = re.compile(rf"<({_MARK})>\r?\n[^<]*</\1>")
# Cut short it runs to the end, and is ours only where a line of ours follows: a point, or a heading and a point.
_CUT = re.compile(rf"<(?:{_MARK})>\r?\n(?:[^<\n]*\n)?- [^<]*(?:<[/a-z-]{{0,17}})?\Z")


def is_for_a_writer(text: str) -> bool:
    """Tell whether a text is what this memory asked a writer, so that its session is that of a writer at work.

    >>> is_for_a_writer(f"{WRITER_MARK}\\nSum up"), is_for_a_writer(f"What does {WRITER_MARK} mean?")
    (True, False)
    """
    return text.lstrip().startswith(WRITER_MARK)


def without_injected(text: str) -> str:
    """Return a text without what this memory injected into it, '' where blanks alone are left.

    A text that has nothing of it is returned as the same object, also where it only speaks of the marks.

    >>> without_injected("Hello\\n<memory>\\n- tea\\n</memory>\\nDear Ann")
    'Hello\\n\\nDear Ann'
    >>> without_injected("<recalled-memory>\\nFound:\\n- tea is")
    ''
    >>> without_injected("The tag <memory>\\nopens it")
    'The tag <memory>\\nopens it'
    """
    if "memory>" not in text and "memory-" not in text:
        return text
    own = _CUT.sub("", _WHOLE.sub("", text))
    if own == text:
        return text
    return own if own.strip() else ""
