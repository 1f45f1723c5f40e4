"""Markdown files with frontmatter, as text that can be changed in one place and stays as it is in all others.

A file is taken apart into pieces of its own text, so that what nobody changes keeps its bytes: quotes, comments, keys
that mean nothing here, line ends, a byte order mark. YAML is read by PyYAML, key by key, and every scalar stays the
text that was written: `no`, `0123`, `12:30`, a date. Values of letters, digits and harmless marks, nearly all there
are, are the same text in YAML as here, and do without it: it takes a millisecond for what takes microseconds.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    import yaml
else:
    yaml = late("yaml")

Value = str | tuple[str, ...]

LONGEST_FRONTMATTER = 1 << 16  # characters
_MOST_NESTED = 20
_OPENING = re.compile(r"\A(?P<head>\ufeff?(?:[ \t\r]*\n)*)---[ \t\r]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_KEY_LINE = re.compile(r"""^(?P<key>[^\s#\-?:,\[\]{}&*!|>'"%@`][^\n:]*|"[^"\n]*"|'[^'\n]*'):(?=[ \t\r\n]|\Z)""")
# What other programs would read as something else than text, beyond what YAML 1.1 says.
_NO_TEXT = re.compile(r"[0-9.+\-~].*|[yn]", re.IGNORECASE | re.DOTALL)

_BREAK = re.compile(r"[\n\r\x85\u2028\u2029]")  # outside of double quotes YAML reads these as spaces

_HARMLESS = r"[\w .,;()/+@-]"
_PLAIN = rf"\w(?:{_HARMLESS}*[\w.,;()/+@-])?"
_ITEM = rf"(?:{_PLAIN}|'(?:{_HARMLESS}|[:#?!&*])*')"
_SIMPLE = re.compile(rf"(?P<key>[A-Za-z_]+):(?: (?P<text>{_ITEM})|(?P<list>(?:\n- {_ITEM})+))\n")
_BARE = re.compile(rf"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[^\W\d_](?:{_HARMLESS}*[\w.,;()/+@-])?", re.IGNORECASE)
_QUOTED = re.compile(rf"[\d+-](?:{_HARMLESS}|[:#?!&*])*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of the frontmatter. value: None where it is neither a text nor a list of texts. raw: its lines as written,
    with the comments and blank lines behind it. remark: how it was read, '' where it is plain YAML.
    """

    key: str
    value: Value | None
    raw: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A file, taken apart; the pieces joined are its text.

    head: what comes before the frontmatter, such as a byte order mark. opening, closing: the fences, '' where there is
    no frontmatter. lead: comments before the first key. before, after: white space around the body.
    """

    head: str
    opening: str
    lead: str
    entries: tuple[Entry, ...]
    closing: str
    before: str
    body: str
    after: str
    newline: str

    def values(self) -> dict[str, Value | None]:
        """Return what the frontmatter says; of a key that comes twice the last one counts."""
        return {entry.key: entry.value for entry in self.entries}

    def remarks(self) -> Iterator[str]:
        """Yield what is odd about the frontmatter."""
        seen: set[str] = set()
        for entry in self.entries:
            if entry.key in seen:
                yield f"the key {entry.key!r} comes twice; the last one counts"
            seen.add(entry.key)
            if entry.remark:
                yield entry.remark

    def text(self) -> str:
        """Return the text of the file."""
        front = self.opening + self.lead + "".join(entry.raw for entry in self.entries) + self.closing
        whole = self.head + front + self.before + self.body + self.after
        return whole if self.newline == "\n" else whole.replace("\n", self.newline)


def parse(text: str) -> Document:
    r"""Take a file apart; raise InvalidInput naming what cannot be read.

    Blank lines before the frontmatter count for nothing, and stay. Where every line ends in CRLF values hold LF alone.

    >>> parse("---\ntitle: no\nlabels: [a, 0123]\n---\n\nText.\n").values()
    {'title': 'no', 'labels': ('a', '0123')}
    """
    newline = "\n"
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):
        text, newline = text.replace("\r\n", "\n"), "\r\n"
    opened = _OPENING.match(text)
    if opened is None:
        head = "\ufeff" if text.startswith("\ufeff") else ""
        return Document(head, "", "", (), "", *_around(text[len(head) :]), newline)
    closed = _CLOSING.search(text, opened.end())
    if closed is None:
        raise InvalidInput("frontmatter", text[opened.end() :], "it is not closed: write --- on a line of its own")
    lead, entries = _entries(text[opened.end() : closed.start()])
    opening, rest = text[opened.end("head") : opened.end()], text[closed.end() :]
    return Document(opened["head"], opening, lead, entries, closed[0], *_around(rest), newline)


def compose(values: Mapping[str, Value], body: str) -> str:
    r"""Return the text of a new file.

    >>> compose({"title": "no", "labels": ("a", "b")}, "Text.")
    "---\ntitle: 'no'\nlabels:\n- a\n- b\n---\n\nText.\n"
    """
    return f"---\n{_written(values)}---\n" + (f"\n{body}\n" if body else "")


def changed(document: Document, values: Mapping[str, Value | None], body: str) -> Document:
    r"""Return a document that says something else, and keeps the bytes of all else. None takes a key away.

    >>> old = parse("---\ntitle:  'Old' # mine\ncountry: no\n---\nText.")
    >>> changed(old, {"title": "New"}, "Text!").text()
    '---\ntitle: New\ncountry: no\n---\nText!'
    """
    entries = [entry for entry in document.entries if values.get(entry.key, "") is not None]
    last = {entry.key: place for place, entry in enumerate(entries)}
    for key, value in values.items():
        if value is None:
            continue
        entry = Entry(key, value, _written({key: value}))
        if key in last:
            entries[last[key]] = entry
        else:
            entries.append(entry)
    made = replace(document, entries=tuple(entries), body=body)
    if entries and not document.opening:
        made = replace(made, opening="---\n", closing="---\n", before=document.before or "\n")
    if body and not document.body:
        made = replace(made, before=made.before or "\n", after=made.after or "\n")
    return made


def _around(text: str) -> tuple[str, str, str]:
    """Return the white space before a text, the text, and the white space behind it."""
    body = text.strip()
    if not body:
        return text, "", ""
    start = text.index(body)
    return text[:start], body, text[start + len(body) :]


def _entries(text: str) -> tuple[str, tuple[Entry, ...]]:
    if len(text) > LONGEST_FRONTMATTER:
        raise InvalidInput("frontmatter", f"{text[:40]}…", f"it has more than {LONGEST_FRONTMATTER} characters")
    lead, raws = "", list[str]()
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):  # and not at what else Unicode calls the end of a line
        if _KEY_LINE.match(line):
            raws.append(line)
        elif raws:
            raws[-1] += line
        elif line.strip() and not line.lstrip().startswith("#"):
            raise InvalidInput("frontmatter", line.strip(), "no key: write 'key: value', one a line")
        else:
            lead += line
    return lead, tuple(map(_entry, raws))


def _entry(raw: str) -> Entry:
    if (simple := _SIMPLE.fullmatch(raw)) is not None:
        if simple["text"] is not None:
            return Entry(simple["key"], _unquoted(simple["text"]), raw)
        return Entry(simple["key"], tuple(map(_unquoted, simple["list"].split("\n- ")[1:])), raw)
    match = _KEY_LINE.match(raw)
    assert match is not None
    written = raw[match.end() :].strip()
    try:
        node = _node(raw)
    except (yaml.YAMLError, RecursionError, ValueError):
        # A colon or a tab in a plain text is no YAML, and is what people write.
        key = match["key"].strip().strip("\"'")
        if "\n" in raw.strip() or not written or written[0] in "\"'[]{}|>&*!%@`#":
            raise InvalidInput(key, written, "no YAML that can be read: put the value into quotes") from None
        return Entry(key, written, raw, f"the value of {key!r} was read as it stands; YAML wants quotes around it")
    (key_node, value), *_ = node.value
    return Entry(str(key_node.value), _value(value), raw)


def _unquoted(item: str) -> str:
    return item[1:-1] if item[0] == "'" else item


def _node(raw: str) -> Any:
    if max(raw.count("["), raw.count("{"), raw.count("- -")) > _MOST_NESTED:
        raise ValueError("nested too deep")
    node = yaml.compose(raw, Loader=yaml.BaseLoader)
    if not isinstance(node, yaml.MappingNode) or len(node.value) != 1:
        raise ValueError("more than one key")
    return node


def _value(node: Any) -> Value | None:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode) and all(isinstance(one, yaml.ScalarNode) for one in node.value):
        return tuple(str(one.value) for one in node.value)
    return None


def _written(values: Mapping[str, Value]) -> str:
    return "".join(_written_simply(key, value) or _written_as_yaml(key, value) for key, value in values.items())


def _written_simply(key: str, value: Value) -> str:
    """Return the lines of a key as YAML has them, '' where they take more than letters and harmless marks."""
    if not _BARE.fullmatch(key):  # such as 'no', which others read as false
        return ""
    if isinstance(value, str):
        item = _item(value)
        return f"{key}: {item}\n" if item else ""
    items = list(map(_item, value))
    return f"{key}:\n" + "".join(f"- {item}\n" for item in items) if items and all(items) else ""


def _item(text: str) -> str:
    if _BARE.fullmatch(text):
        return text
    return f"'{text}'" if _QUOTED.fullmatch(text) else ""


def _written_as_yaml(key: str, value: Value) -> str:
    told = {key: value if isinstance(value, str) else list(value)}
    text: str = yaml.dump(told, Dumper=_dumper(), allow_unicode=True, width=math.inf)
    return text


@functools.cache
def _dumper() -> Any:
    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    def represent(dumper: Any, text: str) -> Any:
        style = '"' if _BREAK.search(text) else "'" if _NO_TEXT.fullmatch(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return Dumper
