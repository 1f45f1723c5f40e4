"""Files of notes that other programs wrote, or people: what one says as a note, and what it points at.

Obsidian, basic-memory, the durable markdown layer, bundles of the Open Knowledge Format and our own trees write the
same things under other names. Of a key that means nothing here the lines go to the end of the body: they are found by
their words, and nothing is lost. Links stay in the text.

Formats: https://docs.basicmemory.com/concepts/knowledge-format, https://help.obsidian.md/links,
https://github.com/GoogleCloudPlatform/knowledge-catalog/blob/main/okf/SPEC.md.
"""

import posixpath
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from graphmem.core import frontmatter, pages
from graphmem.core.bullets import HEADING, items
from graphmem.core.choices import SOURCE_CLASSES
from graphmem.core.frontmatter import Entry, Value
from graphmem.core.keys import title_key
from graphmem.core.times import foreign_time
from graphmem.errors import InvalidInput

SUFFIXES = (".md", ".markdown")
# What a key of the frontmatter is here, by its name in small letters with '_'.
_FIELDS = {
    **{name: name for name in ("id", "title", "kind", "type", "slot", "labels", "aliases", "load_when", "summary")},
    **{name: name for name in ("highlight", "pinned", "archived", "status", "reason", "source", "scope", "permalink")},
    **dict.fromkeys(("tags", "tag"), "labels"),
    **dict.fromkeys(("alias",), "aliases"),
    **dict.fromkeys(("loadwhen",), "load_when"),
    **dict.fromkeys(("description",), "summary"),
    **dict.fromkeys(("created_at", "date"), "created"),
    **dict.fromkeys(("updated_at", "modified", "timestamp", "generated"), "updated"),
    "created": "created",
    "updated": "updated",
}
_LISTS = {"labels", "aliases", "load_when"}
_FLAGS = {"pinned", "archived"}
_TIMES = {"created", "updated"}
_STATUSES = {"live": "", "stable": "", "archived": "archived", "deprecated": "archived", "proposed": "proposed"}
_KINDS = {"rule-proposal": "rule", "memory": "fact"}
_NO_LABELS = {"note", "concept"}  # kinds that say nothing
_AT = re.compile(r"\bat[\"']?:\s*[\"']?([0-9T:.+Z-]+)")
_FENCED = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TICKS = re.compile(r"`+|\n")
_WIKI = re.compile(r"\[\[(?P<target>[^\[\]\n|#^\\]+)(?:[#^][^\[\]\n|\\]*)?(?:\\?\|[^\[\]\n]*)?\]\]")
_LINK = re.compile(r"(?<!\\)(?:\\\\)*+\[(?:\\.|[^\[\]\\])*\]\(<?(?P<target>[^()\s<>]+)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_RELATION = re.compile(
    r"(?:\"(?P<quoted>[^\"\n]+)\"|'(?P<single>[^'\n]+)'|(?P<word>[^\s\[\]\"']+)) "
    r"\[\[(?P<target>[^\[\]\n|#^]+)[^\[\]\n]*\]\][ \t]*(?P<context>\([^()\n]*\))?"
)
_LISTED = re.compile(r"[-*+][ \t]+(?:\[\[|\[)[^\n]*")
_RULES = {"hard rules", "rules", "硬规则", "铁律"}
_OF_ROOT = {"hard rules", "硬规则", "goals", "目标"}


class Link(NamedTuple):
    """What a text points at. target: a name, or a path from the root without '/' before it where is_path."""

    target: str
    is_path: bool


class Related(NamedTuple):
    """A relation that a line of a file tells. sentence: the line, where it says more."""

    relation: str
    target: Link
    sentence: str


@dataclass(frozen=True, slots=True)
class ForeignPage:
    """What a file says. uid, permalink: names of it, '' for none. created, updated: as stored, '' where not told.

    type: what sort of thing it is said to be. status: '', 'archived' or 'proposed'. labels: with the aliases. odd: what
    is odd about it.
    """

    uid: str
    permalink: str
    title: str
    body: str
    kind: str
    type: str
    slot: str
    labels: tuple[str, ...]
    aliases: tuple[str, ...]
    load_when: tuple[str, ...]
    summary: str
    highlight: str
    pinned: bool
    status: str
    reason: str
    scope: str
    created: str
    updated: str
    related: tuple[Related, ...]
    odd: tuple[str, ...]


def read(text: str, path: str, *, kinds: Container[str], is_bundle: bool) -> ForeignPage:
    r"""Return what a file says; raise InvalidInput for frontmatter that cannot be read.

    kinds: of notes. is_bundle: it is a concept of the Open Knowledge Format.

    >>> page = read("---\ntags: [a]\ndue: soon\n---\n# Deploy\n\nText.", "x/d.md", kinds={"fact"}, is_bundle=False)
    >>> page.title, page.labels, page.body
    ('Deploy', ('a',), 'Text.\n\ndue: soon')
    """
    document = frontmatter.parse(text)
    told: dict[str, Value] = {}
    kept: list[str] = []
    last = {entry.key: entry for entry in document.entries}
    for entry in last.values():
        name = entry.key.casefold().replace("-", "_")
        field = _FIELDS.get(name, "")
        value = _understood(field, entry, is_bundle=is_bundle) if field and field not in told else None
        if value is None:
            kept.append(entry.raw.strip())
        elif value:
            told[field] = value
    body, title = document.body, str(told.get("title", ""))
    heading = HEADING.fullmatch(body.partition("\n")[0])
    # In a bundle headings are parts of a concept.
    title = title or (heading[2] if heading and not is_bundle else posixpath.splitext(posixpath.basename(path))[0])
    if heading and title_key(heading[2]) == title_key(title):
        body = body.partition("\n")[2].strip()
    if body == title:
        body = ""
    kind, sort = _kind_of(told, path, kinds)
    aliases = _list(told.get("aliases"))
    permalink = str(told.get("permalink", ""))
    return ForeignPage(
        uid=str(told.get("id", "")), permalink=permalink, title=title, body="\n\n".join(filter(None, [body, *kept])),
        kind=kind, type=str(told.get("type", "")), slot=str(told.get("slot", "")),
        labels=(*_list(told.get("labels")), *sort, *aliases),
        aliases=aliases, load_when=_list(told.get("load_when")), summary=str(told.get("summary", "")),
        highlight=str(told.get("highlight", "")), pinned="pinned" in told,
        status="archived" if "archived" in told else str(told.get("status", "")), reason=str(told.get("reason", "")),
        scope=str(told.get("scope", "")), created=str(told.get("created", "")), updated=str(told.get("updated", "")),
        related=tuple(_related(body, path, everywhere=bool(permalink))), odd=tuple(document.remarks()),
    )  # fmt: skip


def _understood(field: str, entry: Entry, *, is_bundle: bool) -> Value | None:
    """Return what a key says of a field, '' for nothing, None where that is not understood."""
    value = entry.value
    if field in _LISTS and value is not None:
        # In one text of tags commas part them, and nothing else does: a tag may have spaces here.
        several = value if isinstance(value, tuple) else value.split(",") if field == "labels" else (value,)
        return tuple(one for each in several if (one := each.strip().removeprefix("#")))
    if field in _TIMES:
        at = _AT.search(entry.raw) if value is None else None
        return foreign_time(at[1] if at else value) or (None if value or value is None else "")
    if not isinstance(value, str):
        return None
    word = value.strip().casefold()
    if field in _FLAGS:
        flag = pages.flag_of(word)
        return None if flag is None else "true" if flag else ""
    if field == "status":
        return "proposed" if is_bundle and word == "draft" else _STATUSES.get(word, None if word else "")
    if field == "source":  # one of ours says who told it there; anything else is what the note is about
        return "" if word.partition(":")[0] in SOURCE_CLASSES else None
    return value.strip()


def _kind_of(told: dict[str, Value], path: str, kinds: Container[str]) -> tuple[str, list[str]]:
    """Return the kind of a note, and the labels that it has by what sort of thing it is said to be."""
    kind, sort = "", list[str]()
    for said in (str(told[field]) for field in ("kind", "type") if field in told):
        known = _KINDS.get(said.casefold(), said.casefold())
        if known in kinds:
            kind = kind or known
        elif known not in _NO_LABELS:
            sort.append(said)
    return kind or pages.kind_of_folder(path), sort


def _list(value: Value | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


# ---- what a text points at


def links(body: str, path: str) -> Iterator[Link]:
    """Yield what a text points at, outside of code: wiki links, and links to files below the root.

    >>> text = "[[Ann|she]], ![[a/b.md#x]], [c](../c%20d.md), `[[no]]` and [web](https://x.y/z.md)"
    >>> [link.target for link in links(text, "x/n.md")]
    ['Ann', 'a/b.md', 'c d.md']
    """
    plain = _without_code(body)
    for match in _WIKI.finditer(plain):
        if target := match["target"].strip():
            yield Link(target, is_path=False)
    for match in _LINK.finditer(plain):
        if target := _place(match["target"], path):
            yield Link(target, is_path=True)


def _place(address: str, path: str) -> str:
    """Return the path from the root that a link in a file leads to, '' where it leads elsewhere.

    >>> _place("../b.md", "a/x.md"), _place("/c.md#d", "a/x.md"), _place("../../e.md", "a/x.md"), _place("d:e", "a")
    ('b.md', 'c.md', '', '')
    """
    target = unquote(address.partition("#")[0])
    if not target.lower().endswith(SUFFIXES) or ":" in address.partition("/")[0] or address.startswith("//"):
        return ""
    place = posixpath.normpath(posixpath.join("/" if target.startswith("/") else posixpath.dirname(path), target))
    return "" if place.startswith("..") else place.lstrip("/")


def _related(body: str, path: str, *, everywhere: bool) -> Iterator[Related]:
    """Yield the relations of a file of basic-memory: `- relation [[Target]] (more)`, the relation quoted where it has
    spaces. everywhere: also in lists that do not stand below a heading 'Relations'.
    """
    for item in items(_without_code(body).split("\n")):
        match = _RELATION.fullmatch(item.text)
        if match and (everywhere or item.heading.casefold() == "relations"):
            relation = match["quoted"] or match["single"] or match["word"]
            yield Related(relation, Link(match["target"].strip(), False), item.text if match["context"] else "")


def _without_code(text: str) -> str:
    """Return a text without its fenced blocks and what stands between as many backticks in one line.

    >>> _without_code("a `b` c ``d ` e`` f ` g")
    'a  c  f ` g'
    """
    if "`" not in text and "~~~" not in text:
        return text
    text = _FENCED.sub("", text)
    runs = list(_TICKS.finditer(text))
    closing: list[int | None] = []  # by run, from the last on: which one behind it is as long
    last: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        if runs[place][0] == "\n":
            last = {}
            closing.append(None)
        else:
            closing.append(last.get(len(runs[place][0])))
            last[len(runs[place][0])] = place
    closing.reverse()
    kept: list[str] = []
    start = place = 0
    while place < len(runs):
        if (end := closing[place]) is not None:
            kept.append(text[start : runs[place].start()])
            start, place = runs[end].end(), end
        place += 1
    return "".join([*kept, text[start:]])


# ---- files that are no notes


def is_listing(text: str) -> bool:
    r"""Tell whether a file lists others and says nothing else, or was compiled by us.

    >>> is_listing("# Facts\n\n- [a](a.md): about a\n"), is_listing("# Facts\n\nI think that\n- [a](a.md)\n")
    (True, False)
    """
    if pages.is_compiled(text):
        return True
    lines = [line.strip() for line in frontmatter.parse(text).body.split("\n") if line.strip()]
    return any(map(_LISTED.fullmatch, lines)) and all(HEADING.fullmatch(one) or _LISTED.fullmatch(one) for one in lines)


def is_bundle(text: str) -> bool:
    """Tell whether the first list of a folder says that it is a bundle of the Open Knowledge Format."""
    try:
        return "okf_version" in frontmatter.parse(text).values()
    except InvalidInput:  # then it says nothing
        return False


def rules_of(text: str) -> list[str] | None:
    r"""Return the hard rules of the first page of a tree, None for a page that is none.

    >>> rules_of("# Memory\n\n## Goals\n\n- ship\n\n## Hard rules\n\n- never push\n  to main\n")
    ['never push\nto main']
    """
    found = list(items(text.splitlines()))
    heads = {match[2].casefold() for line in text.splitlines() if (match := HEADING.fullmatch(line))}
    if not pages.is_compiled(text) and not heads & _OF_ROOT:
        return None
    return [item.text for item in found if item.heading.casefold() in _RULES]
