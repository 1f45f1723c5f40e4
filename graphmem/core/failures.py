"""Failures as signatures: what is left of an error message without the names and numbers in it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from graphmem.core.keys import clean_text, entity_key, require_texts
from graphmem.core.redaction import redact, refuse_secrets
from graphmem.core.telling import telling_lines
from graphmem.errors import InvalidInput

SIGNATURE_CHARACTERS = 160
SAMPLE_CHARACTERS = 500
_TOOL_CHARACTERS = 100
# A message of many short names comes to few characters; a signature needs no more of it than this.
_MOST_PIECES = 2_000

# Han, kana, hangul and their punctuation: written without spaces, so a name may stand right beside them.
_WIDE = "\u2e80-\uffef"
_MARKS = "，。；：、！？（）【】《》“”‘’「」『』«»…"
_LETTER = rf"[^\W{_WIDE}]"  # of a script that parts words by spaces
_OTHER = rf"[^\x00-\x7f\s{_MARKS}]"
_IN_NAME = r"[-!#$%&+.=@^_~0-9a-z]"
_IN_ADDRESS = r"[!#-&(-;=?-_a-~]"
_PLACE = r"(?:(?::\d+){1,2}+(?![0-9a-z])|\(\d+(?:,\d+)?\))?+"  # line and column behind a file

# The last name of a path ends where the script changes: the file is named, and then the message goes on.
_LAST = rf"{_OTHER}*+(?:{_IN_NAME}*[-#$%&+=@^_~0-9a-z])?"
_SEGMENT = rf"[^\s/\\'\"`<>|:;,(){{}}\[\]{_MARKS}]"
_WINDOWS = rf"[^\s/\\'\"`<>|:;,*?{_MARKS}]"
_FOLDERS = rf"(?:{_SEGMENT}++/++)"
_ALONE = r"(?<![-0-9a-z_./\\+@$])"
FILE_ENDINGS = (
    "astro bak bat bin bmp c cc cfg class cjs cmd conf cpp cs css csv db dll doc docx dylib env exe gif go gz h hpp "
    "htm html ico ini ipynb jar java jpeg jpg js json jsonl jsx kt less lock log lua m4a map md mjs mp3 mp4 o pdf php "
    "pkl png ppt pptx ps1 py pyc pyi r rar rb rs rst scss sh so sql sqlite svelte svg swift tar tex tgz tmp toml ts "
    "tsv tsx ttf txt vue wasm wav whl xls xlsx xml yaml yml zip zst"
)

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?)"
)
_UNIT = (
    r"(?:[bdghkms%]|\s?(?:ns|us|µs|μs|ms|secs?|seconds?|mins?|minutes?|hours?|days?|(?:milli|micro|nano)seconds?|"
    r"[kmgt]i?b|bytes?|am|pm|毫秒|微秒|秒钟|秒|分钟|分|小时|天))(?![a-z])"
)

# In the order in which they are tried; each begins where the one before ended.
_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<p>
        (?<![0-9a-z])[a-z][-a-z0-9+.]{{0,20}}://{_IN_ADDRESS}*(?:(?<=/){_OTHER}+{_IN_ADDRESS}*)*(?<![]).,;:!?}}])
      | (?:(?<![0-9a-z])[a-z]:[\\/]|(?<![\\\w])\\\\(?={_WINDOWS}))[\\/]*+
        (?:{_WINDOWS}++(?:[ ]{_WINDOWS}++){{0,3}}+[\\/]++)*+{_LAST}{_PLACE}
      | (?<![0-9a-z<*])(?:~|\.\.?)?+/(?={_SEGMENT}){_FOLDERS}*+{_LAST}{_PLACE}
      | {_ALONE}(?!\d{{1,9}}/)[-0-9a-z_.@$%{{}}]{{1,255}}+/
        (?:{_FOLDERS}++{_LAST}|{_IN_NAME}*\.[a-z][a-z0-9]{{0,7}}(?![0-9a-z])){_PLACE}
      | {_ALONE}[0-9a-z_][-0-9a-z_.+]{{0,255}}\.(?:{FILE_ENDINGS.replace(" ", "|")})(?![0-9a-z]){_PLACE}
      )
    | (?P<x>(?<![0-9a-z])(?:
        0x[0-9a-f]++
      | [0-9a-f]{{8}}-(?:[0-9a-f]{{4}}-){{3}}[0-9a-f]{{12}}
      | (?:[0-9a-f]{{2}}[:-]){{5}}[0-9a-f]{{2}}
      | (?=[0-9a-f:]{{0,40}}[a-f])(?=[0-9a-f:]{{0,40}}\d)(?:[0-9a-f]{{1,4}}::?){{2,7}}[0-9a-f]{{1,4}}
      | (?=\d*+[a-f])(?=[a-f]*+\d)[0-9a-f]{{7,}}+
      | (?!(?:\d{{1,9}}(?:[mun]s|[smhd]))+(?![0-9a-z]))(?=[a-z]*+\d++[a-z]++\d)[0-9a-z]{{8,}}+
      | tmp(?:[0-9a-z_]{{8}}|\.[0-9a-z]{{6,10}})
      )(?![0-9a-z]))
    | (?P<n>
        (?<![0-9a-z])(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s+)?+
        (?:\d{{1,2}}[\s/-]\s*+)?+{_MONTH}[\s/-]\s*+\d++(?:[\s:,./-]++\d++)*+(?:\s(?:utc|gmt|cet|cest|[bceijmp][sd]t))?+
        (?:\s?[+-]\d{{4}}|\s\d{{4}})?+(?![0-9a-z])
      | (?:(?<![\w)\].])[-+])?\d++(?:(?:[.,:/_-]|,\s|t(?=\d\d:)|\s(?=\d\d?:\d))\d++)*+
        (?:z(?![0-9a-z])|\s?[+-]\d\d:?\d\d(?!\d)|e[-+]?\d++|{_UNIT})?+
      )
    | (?P<fence>`{{3,}}+)
    | (?P<says>"(?P<key>errors?|message|msg|code|type|reason|details?|status|title|description|cause)"\s*+:\s*+(?="))
    | (?P<quote>(?<![0-9a-z_])[bfru]{{1,2}}["']|["`“‘„「『«‹《]|(?<!{_LETTER})'(?=\S))
    | (?P<word>[a-z]{{1,{SIGNATURE_CHARACTERS}}}+|[^\W\d_a-z]{{1,{SIGNATURE_CHARACTERS}}}+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {
    '"': re.compile(r'(?<!\\)"|\n'),
    "'": re.compile(rf"(?<!\\)'(?!{_LETTER})|\n"),
    "`": re.compile(rf"`|'(?!{_LETTER})|\n"),
    "‘": re.compile(rf"’(?!{_LETTER})|\n"),
    "„": re.compile("[“”]|\n"),
    **{opening: re.compile(f"{closing}|\n") for opening, closing in ("“”", "「」", "『』", "«»", "‹›", "《》")},
}
_CLOSING_MARKS = frozenset("”’」』»›》")
_PLACEHOLDERS = ("<p>", "<x>", "<n>", "<q>")

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]?|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[ -/]*+[0-~]?)")
# Where it happened says less than what happened, and changes with every edit of the code.
_FRAMES = re.compile(
    r"""
      ^[ \t]*+Traceback[ ]\(most[ ]recent[ ]call[ ]last\):\n(?:[ \t]++.*\n?)*+
    | ^[ \t]++at[ ].*\n?
    | ^[ \t]++\.\.\.[ ]\d+[ ](?:more|common[ ]frames).*\n?
    | ^goroutine[ ]\d+[ ]\[[^\n\]]*+\]:\n(?:\S.*\n\t.*\n?)*+
    """,
    re.VERBOSE | re.MULTILINE,
)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure that may be recorded."""

    tool: str
    signature: str
    sample: str
    remarks: tuple[str, ...]


def check_failure(tool: str, text: str) -> Failure:
    """Return a failure that may be recorded; raise InvalidInput naming the argument for one that may not.

    A text may be empty: some tools fail in silence. Its secrets are redacted; one in the name raises SecretRefused.
    """
    refuse_secrets(tool=tool)
    require_texts(tool=tool, text=text)
    name, message = clean_text(tool).strip(), clean_text(text)
    if not entity_key(name):
        raise InvalidInput("tool", tool, "give the name of the tool that failed")
    if len(name) > _TOOL_CHARACTERS:
        raise InvalidInput("tool", f"{tool[:40]}…", f"a name has at most {_TOOL_CHARACTERS} characters")
    replaced = message != text or name != tool.strip()
    remarks = ("characters that cannot be stored were replaced by U+FFFD",) if replaced else ()
    # Before anything of it is cut: a part of a secret is not seen.
    told, others = parted(redact(message))
    return Failure(name, signature(name, told), sample(told, others), remarks)


def parted(text: str) -> tuple[str, str]:
    """Return the lines of a failing text that tell what failed, and the others, without stack frames and colours.

    >>> parted("\\x1b[31mError:\\x1b[0m no such table\\n    at run (db.js:3)")
    ('Error: no such table', '')
    """
    if "\x1b" in text:
        text = _TERMINAL.sub("", text)
    told, others = telling_lines(_FRAMES.sub("", text))
    return "\n".join(told), "\n".join(others)


def signature(tool: str, told: str) -> str:
    """Return what failures of one kind have in common: `tool|message`, the message of at most 160 characters.

    told: what tells what failed, in lines. Quoted text becomes `<q>`, paths and addresses `<p>`, hex and random names
    `<x>`, numbers with times and units `<n>`, several of a kind in a row one. A line that is a quotation from end to
    end, or what JSON says under `error`, `message` and the like, is read as if no quotes were around it. Takes time
    linear in the text.

    >>> signature("bash", "rm: cannot remove '/tmp/a1/b.txt': No such file or directory (exit 1)")
    'bash|rm: cannot remove <q>: no such file or directory (exit <n>)'
    """
    name = entity_key(tool).replace("|", "_")[:_TOOL_CHARACTERS]
    lines = told.splitlines()
    body = _masked_lines(lines, quotes=True)
    if not _has_words(body):
        body = _masked_lines(lines, quotes=False)
    return f"{name}|{body}"


def sample(told: str, others: str) -> str:
    """Return a failing text in one line of at most 500 characters, what tells what failed first.

    >>> sample("Error:  no such table", "see\\n the log")
    'Error: no such table … see the log'
    """
    first, rest = (" ".join(text.split()) for text in (told, others))
    line = _CONTROLS.sub("\ufffd", f"{first} … {rest}" if rest else first)
    return line if len(line) <= SAMPLE_CHARACTERS else line[: SAMPLE_CHARACTERS - 1] + "…"


def _has_words(body: str) -> bool:
    for placeholder in _PLACEHOLDERS:
        body = body.replace(placeholder, "")
    return any(map(str.isalpha, body))


def _masked_lines(lines: Iterable[str], *, quotes: bool) -> str:
    """Return lines with placeholders in one, those that are then alike once."""
    masked = dict.fromkeys(_masked(line.lower(), quotes=quotes) for line in lines)
    return " ".join(filter(None, masked))[:SIGNATURE_CHARACTERS].strip()


def _masked(message: str, *, quotes: bool) -> str:
    """Return the beginning of a message with placeholders; without `quotes` what is quoted stays, and the marks go."""
    pieces: list[str] = []
    length = position = 0
    closings = _Closings(message)
    unwrapped: set[int] = set()  # closing marks of what is read on as text
    for _ in range(_MOST_PIECES):
        token = _TOKEN.match(message, position)
        if token is None or length >= SIGNATURE_CHARACTERS:
            break
        kind, piece = token.lastgroup, token.group()
        start, position = position, token.end()
        if start in unwrapped or kind == "fence":
            continue
        if kind == "quote":
            mark = piece[-1]
            closing = closings.after(mark, position)
            if not quotes:
                continue
            if closing is not None:
                kind, position = "q", closing + 1
        elif kind == "says":
            piece = f"{token['key']}: "
            closing = closings.after('"', position + 1)
            if closing is not None:
                position += 1
                unwrapped.add(closing)
        elif kind == "other" and not quotes and (piece in _CLOSING_MARKS or (piece == "'" and _ends(message, start))):
            continue
        elif kind == "space":
            piece = "" if not pieces or pieces[-1].endswith(" ") else " "
        if kind in ("p", "x", "n", "q"):
            piece = f"<{kind}>"
            length -= _drop_row(pieces, piece)
        if piece:
            pieces.append(piece)
            length += len(piece)
    return "".join(pieces)[:SIGNATURE_CHARACTERS].strip()


def _drop_row(pieces: list[str], placeholder: str) -> int:
    """Take the same placeholder off the end, with what parts a row of them; return how many characters went."""
    kept = len(pieces)
    while kept and pieces[kept - 1] in (" ", ",", "、"):
        kept -= 1
    if not kept or pieces[kept - 1] != placeholder:
        return 0
    gone = sum(map(len, pieces[kept - 1 :]))
    del pieces[kept - 1 :]
    return gone


def _ends(message: str, place: int) -> bool:
    return not message[place + 1 : place + 2].isalnum()


class _Closings:
    """Where quotations end, each line of the message searched once for each kind of mark."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._next: dict[str, tuple[int, int, bool]] = {}

    def after(self, mark: str, position: int) -> int | None:
        """Return the place of the closing mark on the line at a position, None where there is none."""
        first, place, closes = self._next.get(mark, (1, 0, False))
        if not first <= position <= place:
            found = _CLOSING[mark].search(self._message, position)
            place = found.start() if found else len(self._message)
            closes = found is not None and found.group() != "\n"
            self._next[mark] = position, place, closes
        return place if closes else None
