"""What goes into a prompt: what binds, what is known, the rules of the scene, what the words of the turn found.

Stored text is data. Each stored value stays within one line of the brief, shows every character that it has, and can
spell no mark; the marks around the brief are always both there.
"""

import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from graphmem.config import Config, check_count
from graphmem.core.keys import fold
from graphmem.core.model import (
    Brief,
    Hit,
    Incident,
    Ledger,
    Note,
    RecalledBlock,
    RecalledNote,
    RecalledRelation,
    Recollection,
)
from graphmem.core.situations import Situation
from graphmem.core.tokens import query_words
from graphmem.errors import InvalidInput
from graphmem.late import late
from graphmem.records.notes import binds

if TYPE_CHECKING:
    from graphmem.core import checkpoints
else:
    checkpoints = late("graphmem.core.checkpoints")

Item = tuple[str, int | str]  # kind and id

MEMORY_MARK = "memory"
RECALL_MARK = "recalled-memory"

_RELATIONS = 8
_BLOCKS = 3
_MOST_MENTIONED = 3
_FIRST_NAMES = 5
_SENTENCE_CHARACTERS = 60
_TEXT_CHARACTERS = 200
_SHORT_TEXT_CHARACTERS = 60  # of what was found, where the budget has no room for more
_SECTION_CHARACTERS = 600  # of a checkpoint
_KEYS_NAMED = 3
_WHO_CHARACTERS = 60
_RECALLED = 40  # enough to tell how much there is besides
_TITLE_CHARACTERS = 120
# Shares of the room of the ledger that failures and lessons may take before the facts do.
_SHARE_OF_INCIDENTS = 0.25
_SHARE_OF_LESSONS = 0.5

_ANNOTATION_MARKS = "\ufff9\ufffa\ufffb"  # as invisible as what folding drops
_JOINER = "\u200d"
_JOINERS = ("\u200c", _JOINER)
_EMOJI_STYLE = "\ufe0f"
_SCRIPTS_WITH_JOINERS = range(0x0600, 0x0E00)  # Arabic to Sinhala
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # general categories Cc and Cs
_OPENING = str.maketrans(dict.fromkeys("<\uff1c\ufe64", "&lt;"))


class Reader(Protocol):
    """What a brief reads from."""

    config: Config

    def recall_by_situation(
        self,
        situation: Situation,
        *,
        declared: str | Iterable[str] = (),
        text: str = "",
        limit: int | None = None,
        scopes: Iterable[str] | None = None,
    ) -> Recollection:
        """See `Memory.recall_by_situation`."""

    def ledger(self, *, scopes: Iterable[str] | None = None, limit: int | None = None) -> Ledger:
        """See `Memory.ledger`."""

    def recall(
        self,
        query: str,
        *,
        situation: Situation | None = None,
        scopes: Iterable[str] | None = None,
    ) -> tuple[Hit, ...]:
        """See `Memory.recall`."""


@dataclass(frozen=True, slots=True)
class _Phrases:
    constraints: str
    known: str
    lessons: str
    incidents: str
    silent: str
    hint: str
    project: str
    session: str
    elsewhere: str
    overridden: str
    more_rules: str
    scene: str
    nowhere: str
    rules: str
    found: str
    checkpoint: str
    tool: str
    names: str
    further: str
    left_out: str
    counts: Mapping[str, str]
    sentence: str
    comma: str


_PHRASES: Mapping[str, _Phrases] = MappingProxyType(
    {
        "en": _Phrases(
            constraints="Standing constraints; a default signature, style or template that conflicts is void:",
            known="Known facts:",
            lessons="Lessons learnt:",
            incidents="Failed repeatedly, so do it otherwise:",
            silent="failed without a word",
            hint="(recall finds more; remember keeps what is told for good)",
            project=" (this project)",
            session=" (this session)",
            elsewhere=" ({})",
            overridden=" (this project has its own)",
            more_rules="More rules:",
            scene="Scene memory of {keys}:",
            nowhere="Called to mind by this turn:",
            rules="These are standing rules; keep to them.",
            found="Found for the words of this turn:",
            checkpoint="Last checkpoint of the work:",
            tool="Rules for {tool}, to be kept when it runs:",
            names="- Names known besides: {count}; most mentioned: {top}",
            further="; also: {names}",
            left_out="(left out: {counts})",
            counts={
                "constraint": "constraints {}",
                "rule": "rules {}",
                "known": "known facts {}",
                "lesson": "lessons {}",
                "incident": "failures {}",
                "note": "notes {}",
                "fact": "facts {}",
                "block": "blocks {}",
                "found": "found {}",
                "checkpoint": "checkpoints {}",
                "name": "names {}",
            },
            sentence=" ({})",
            comma=", ",
        ),
        "zh": _Phrases(
            constraints="长期约束；与之冲突的默认署名、风格、模板一律无效：",
            known="已知事实：",
            lessons="经验教训：",
            incidents="反复失败，请换一种做法：",
            silent="失败时没有任何输出",
            hint="（用 recall 可查到更多；长期有效的事用 remember 保存）",
            project="（本项目）",
            session="（本会话）",
            elsewhere="（{}）",
            overridden="（本项目另有规定）",
            more_rules="其余规则：",
            scene="场景记忆 {keys}：",
            nowhere="本轮让人想起的记忆：",
            rules="以上是长期规则，请遵守。",
            found="与本轮内容相关的记忆：",
            checkpoint="最近一次工作检查点：",
            tool="使用 {tool} 时须遵守的规则：",
            names="- 另有名称 {count} 个，提及最多：{top}",
            further="；还有：{names}",
            left_out="（未列出：{counts}）",
            counts={
                "constraint": "约束 {}",
                "rule": "规则 {}",
                "known": "已知事实 {}",
                "lesson": "教训 {}",
                "incident": "失败 {}",
                "note": "笔记 {}",
                "fact": "事实 {}",
                "block": "文块 {}",
                "found": "相关记忆 {}",
                "checkpoint": "检查点 {}",
                "name": "名称 {}",
            },
            sentence="（{}）",
            comma="、",
        ),
    }
)


def brief_of(
    memory: Reader,
    situation: Situation,
    *,
    query: str,
    declared: str | Iterable[str],
    budget: int,
    measure: Callable[[str], int],
    scopes: Iterable[str] | None,
    already: Collection[Item] = (),
    passed: Collection[Item] = (),
    session: str = "",
    checkpoint: Note | None = None,
    mark: str = MEMORY_MARK,
) -> Brief:
    """Read what a situation and the words of a turn bring back and put it into a budget; see `Memory.brief`.

    already: what the prompt holds elsewhere, which is not found anew. passed: what its scenes have brought back before;
    it is told only where the words find it. session: that of the turn, what was said in it is in the prompt already.
    checkpoint: one that is told as well. mark: the name of the marks around the text; what else the scenes know is
    told in the memory of a turn (MEMORY_MARK), not in a message behind it.
    """
    check_count("budget", budget)
    if not callable(measure):
        raise InvalidInput("measure", measure, "give a function from a text to its length, such as len")
    if not isinstance(query, str):
        raise InvalidInput("query", query, "give the words of the turn as text")
    if not memory.config.inject:
        return Brief()
    found = memory.recall_by_situation(situation, declared=declared, text=query, limit=_RECALLED, scopes=scopes)
    hits = _answers(memory, query, situation, scopes)
    if session:
        hits = tuple(hit for hit in hits if (hit.kind, hit.session) != ("part", session))
    phrases = _PHRASES[memory.config.language]
    binding, own = _parted(found.notes, memory.config, passed)
    standing: list[_Entry] = []
    if mark == MEMORY_MARK:
        ledger = memory.ledger(scopes=scopes, limit=_RECALLED)
        constraints = _constraints(binding, memory.config, phrases)
        first = [*constraints, *_of_scene(own, phrases)]
        # Of what binds a title tells all, unless there is more to it.
        whole = [note.id for note in binding if not note.body.strip()]
        standing = _of_ledger(ledger, [*whole, *(note.id for note in own)], memory.config, phrases)
        if checkpoint is not None:
            standing += _of_checkpoint(checkpoint)
    else:
        first = _of_scene(own, phrases)
    entries = _entries(
        first,
        [one for one in found.relations if ("relation", one.id) not in passed],
        [one for one in found.blocks if ("block", one.id) not in passed],
        hits,
        [(one.id, one.name, one.mentions) for one in found.entities if mark == MEMORY_MARK],
        standing,
        already=frozenset(already),
        phrases=phrases,
    )
    heading = phrases.scene.format(keys=_named(found.scenes, phrases)) if found.scenes else phrases.nowhere
    page = _Page(entries, heading, phrases, mark, hint=memory.config.include_usage_hint)
    return _filled(page, budget, measure, found.scenes)


def brief_of_tool(
    tool: str,
    rules: Iterable[RecalledNote],
    incidents: Iterable[Incident],
    *,
    config: Config,
    budget: int,
    measure: Callable[[str], int],
) -> Brief:
    """Put what governs a tool, and how it failed again and again, into a budget; see `Memory.tool_brief`."""
    check_count("budget", budget)
    phrases = _PHRASES[config.language]
    entries = [
        *_of_scene(rules, phrases),
        *(_Entry("incident", (("incident", one.id),), (_line_of_incident(one, phrases),)) for one in incidents),
    ]
    heading = phrases.tool.format(tool=shown(tool, _WHO_CHARACTERS))
    return _filled(_Page(entries, heading, phrases, RECALL_MARK, hint=False), budget, measure)


def _filled(page: "_Page", budget: int, measure: Callable[[str], int], scenes: tuple[str, ...] = ()) -> Brief:
    """Return the brief of a page with the lines that fit."""
    chosen = _fitting(page, budget, measure)
    return Brief(page.text(chosen), tuple(page.told(chosen)), tuple(page.left_out(chosen)), scenes)


def _answers(memory: Reader, query: str, situation: Situation, scopes: Iterable[str] | None) -> tuple[Hit, ...]:
    """Return what the words of a turn find; nothing for a turn without words."""
    return memory.recall(query, situation=situation, scopes=scopes) if query_words(query) else ()


# ---- lines


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of a brief, in the forms it may take, the longest first; without a form it is only counted."""

    noun: str
    items: tuple[Item, ...]
    forms: tuple[str, ...] = ()


def _parted(
    recalled: Iterable[RecalledNote], config: Config, passed: Collection[Item]
) -> tuple[list[RecalledNote], list[RecalledNote]]:
    """Return the notes that bind everybody, and those of this situation that were not brought back before."""
    binding: list[RecalledNote] = []
    own: list[RecalledNote] = []
    for note in recalled:
        if binds(note, config):
            binding.append(note)
        elif ("note", note.id) not in passed:
            own.append(note)
    return binding, own


def _constraints(binding: Iterable[RecalledNote], config: Config, phrases: _Phrases) -> list[_Entry]:
    """Return what binds everybody, in the imperative: titles alone. What finds no room there is told below."""
    lines = [
        (("note", note.id), f"- {shown(note.title, _TITLE_CHARACTERS)}{phrases.overridden * note.overridden}")
        for note in binding
    ]
    entries, _ = _within("constraint", phrases.constraints, lines, config.max_constraint_chars)
    return [
        entry if entry.forms else _Entry("rule", entry.items, (line,))
        for entry, (_, line) in zip(entries, lines, strict=True)
    ]


def _of_scene(own: Iterable[RecalledNote], phrases: _Phrases) -> list[_Entry]:
    """Return the notes of this situation."""
    return [
        _Entry("note", (("note", note.id),), (_line_of_note(note, phrases), _title_of(note, phrases))) for note in own
    ]


def _of_ledger(ledger: Ledger, told: Collection[int], config: Config, phrases: _Phrases) -> list[_Entry]:
    """Return what is known for good, within the room of the ledger: failures, then lessons, then facts."""
    room = config.max_prompt_chars - (len(phrases.hint) + 1) * config.include_usage_hint
    failures, used = _within(
        "incident",
        phrases.incidents,
        ((("incident", one.id), _line_of_incident(one, phrases)) for one in ledger.incidents),
        int(room * _SHARE_OF_INCIDENTS),
    )
    lessons, taken = _within(
        "lesson",
        phrases.lessons,
        [(("note", one.id), _line_of_note(one, phrases)) for one in ledger.lessons if one.id not in told],
        int(room * _SHARE_OF_LESSONS),
        most=config.max_lessons_in_prompt,
    )
    facts, _ = _within(
        "known",
        phrases.known,
        ((("note", one.id), _line_of_note(one, phrases)) for one in ledger.facts if one.id not in told),
        room - used - taken,
    )
    return [*failures, *lessons, *facts]


def _of_checkpoint(note: Note) -> list[_Entry]:
    """Return the sections of a checkpoint that say something, each in a line."""
    entries: list[_Entry] = []
    nothing = checkpoints.NOTHING.values()
    for heading, lines in checkpoints.sections_of(note.body).items():
        said = "; ".join(told for line in lines if (told := line.strip(" -*\t")) and told not in nothing)
        if said:
            rooms = (_SECTION_CHARACTERS, _TEXT_CHARACTERS)
            forms = dict.fromkeys(f"- {heading}: {shown(said, room)}" for room in rooms)
            entries.append(_Entry("checkpoint", (("note", note.id),), tuple(forms)))
    return entries


def _within(
    noun: str, heading: str, lines: Iterable[tuple[Item, str]], room: int, *, most: int | None = None
) -> tuple[list[_Entry], int]:
    """Return lines as entries, and the characters they take with their heading; what finds no room has no form."""
    used, told = len(heading) + 1, 0
    entries: list[_Entry] = []
    for item, line in lines:
        fits = used + len(line) + 1 <= room and (most is None or told < most)
        entries.append(_Entry(noun, (item,), (line,) if fits else ()))
        if fits:
            used, told = used + len(line) + 1, told + 1
    return entries, used if told else 0


def _title_of(note: RecalledNote, phrases: _Phrases) -> str:
    return f"- {shown(note.title, _TITLE_CHARACTERS)}{_home_of(note.scope, phrases)}"


def _home_of(scope: str, phrases: _Phrases) -> str:
    kind = scope.partition(":")[0]
    if kind in ("project", "session"):
        return phrases.project if kind == "project" else phrases.session
    return phrases.elsewhere.format(shown(scope, _WHO_CHARACTERS)) if scope else ""


def _line_of_note(note: RecalledNote, phrases: _Phrases) -> str:
    title = _title_of(note, phrases)
    return f"{title}: {shown(note.body, _TEXT_CHARACTERS)}" if note.body.strip() else title


def _line_of_incident(incident: Incident, phrases: _Phrases) -> str:
    said = shown(incident.sample, _TITLE_CHARACTERS) or phrases.silent
    return f"- {shown(incident.tool, _WHO_CHARACTERS)} ×{incident.count}: {said}"


def _entries(
    first: Sequence[_Entry],
    relations: Sequence[RecalledRelation],
    blocks: Sequence[RecalledBlock],
    hits: Iterable[Hit],
    names: Iterable[tuple[int | str, str, int]],
    standing: Sequence[_Entry],
    *,
    already: frozenset[Item],
    phrases: _Phrases,
) -> list[_Entry]:
    """Return everything that may be told, what matters most first; what is beyond the caps has no form."""
    entries = [
        *first,
        *(
            _Entry("fact", (("relation", one.id),), _forms_of_fact(one, phrases) if place < _RELATIONS else ())
            for place, one in enumerate(relations)
        ),
    ]
    # A picture without words has nothing to say here.
    ordered = sorted(blocks, key=lambda one: not one.text.strip())
    entries += [
        _Entry("block", (("block", one.id),), _forms_of_block(one) if place < _BLOCKS else ())
        for place, one in enumerate(ordered)
    ]
    told = already.union(*(entry.items for entry in entries if entry.forms))
    fresh: list[Hit] = []
    for hit in hits:  # the same words said again are told once
        if (hit.kind, hit.id) not in told and all((hit.kind, hit.text) != (one.kind, one.text) for one in fresh):
            fresh.append(hit)
    found = [hit for hit in fresh if hit.kind != "entity"]
    elsewhere = {(hit.kind, hit.id) for hit in found}
    entries = [entry for entry in entries if entry.forms or elsewhere.isdisjoint(entry.items)]
    entries += [
        _Entry(
            "found",
            ((hit.kind, hit.id),),
            tuple(_line_of(hit, room) for room in (_TEXT_CHARACTERS, _SHORT_TEXT_CHARACTERS)),
        )
        for hit in found
    ]
    entries += [entry for entry in standing if elsewhere.isdisjoint(entry.items)]
    ends = {end for one in relations[:_RELATIONS] for end in (one.subject, one.object)}
    known = {name: (item, mentions) for item, name, mentions in names}
    for hit in fresh:
        if hit.kind == "entity":
            known.setdefault(hit.text, (hit.id, 0))
    index = [
        (("entity", item), name, mentions)
        for name, (item, mentions) in known.items()
        if name not in ends and ("entity", item) not in already
    ]
    return [*entries, *_index(index, phrases)]


def _forms_of_fact(fact: RecalledRelation, phrases: _Phrases) -> tuple[str, ...]:
    plain = f"- {shown(fact.subject)} --{shown(fact.relation)}--> {shown(fact.object)}"
    if not fact.sentence.strip():
        return (plain,)
    return plain + phrases.sentence.format(shown(fact.sentence, _SENTENCE_CHARACTERS)), plain


def _forms_of_block(block: RecalledBlock) -> tuple[str, ...]:
    return (f"- {shown(block.text, _TEXT_CHARACTERS)}",) if block.text.strip() else ()


def _line_of(hit: Hit, room: int) -> str:
    said = ", ".join(filter(None, (hit.source, hit.at[:10]))) if hit.kind == "part" else ""
    return f"- [{shown(hit.kind)}{' ' + shown(said, _WHO_CHARACTERS) if said else ''}] {shown(hit.text, room)}"


def _index(names: Sequence[tuple[Item, str, int]], phrases: _Phrases) -> Iterator[_Entry]:
    """Yield the names that are known besides: their number, those most mentioned, then the first of the others."""
    if not names:
        return
    top = sorted(names, key=lambda one: -one[2])[:_MOST_MENTIONED]
    others = [one for one in names if one not in top]
    first, rest = others[:_FIRST_NAMES], others[_FIRST_NAMES:]
    line = phrases.names.format(count=len(names), top=phrases.comma.join(shown(name) for _, name, _ in top))
    if first:
        line += phrases.further.format(names=phrases.comma.join(shown(name) for _, name, _ in first))
    yield _Entry("name", tuple(item for item, *_ in (*top, *first)), (line,))
    if rest:
        yield _Entry("name", tuple(item for item, *_ in rest))


# ---- the page


class _Page:
    """A brief that is made again and again, with ever more lines, until its budget is full."""

    def __init__(self, entries: Sequence[_Entry], heading: str, phrases: _Phrases, mark: str, *, hint: bool) -> None:
        self.entries = entries
        self.phrases = phrases
        self.mark = mark
        self.hint = hint
        self._heading = heading
        self._items = dict.fromkeys(phrases.counts, 0)  # in all entries, by noun
        places: dict[Item, list[int]] = {}
        for place, entry in enumerate(entries):
            self._items[entry.noun] += len(entry.items)
            for item in entry.items:
                places.setdefault(item, []).append(place)
        self._repeated = [each for each in places.values() if len(each) > 1]

    def told(self, chosen: Mapping[int, str]) -> dict[Item, None]:
        """Return what the chosen lines tell, each thing once: a pin may stand among the facts as well."""
        return dict.fromkeys(item for place in chosen for item in self.entries[place].items)

    def left_out(self, chosen: Mapping[int, str]) -> dict[Item, None]:
        """Return what no line tells, each thing once."""
        told = self.told(chosen)
        return dict.fromkeys(item for entry in self.entries for item in entry.items if item not in told)

    def text(self, chosen: Mapping[int, str]) -> str:
        """Return the brief with the chosen lines, by their places; '' for none."""
        if not chosen:
            return ""
        told: dict[str, list[str]] = {}
        left = self._items.copy()
        for place, line in chosen.items():
            entry = self.entries[place]
            told.setdefault(entry.noun, []).append(line)
            left[entry.noun] -= len(entry.items)
        for places in self._repeated:  # told once it is told, and left out it is so once
            spare = [place for place in places if place not in chosen]
            for place in spare[len(spare) == len(places) :]:
                left[self.entries[place].noun] -= 1
        scene = [line for noun in ("note", "fact", "block") for line in told.get(noun, ())]
        lines = [f"<{self.mark}>"]
        for noun, heading in (
            ("constraint", self.phrases.constraints),
            ("rule", self.phrases.more_rules),
            ("known", self.phrases.known),
            ("lesson", self.phrases.lessons),
            ("incident", self.phrases.incidents),
        ):
            if noun in told:
                lines += [heading, *told[noun]]
        if self.hint and not told.keys().isdisjoint(("known", "lesson")):
            lines.append(self.phrases.hint)
        if scene:
            lines += [self._heading, *scene]
            if not told.keys().isdisjoint(("fact", "block")):
                lines.append(self.phrases.rules)
        if "found" in told:
            lines += [self.phrases.found, *told["found"]]
        if "checkpoint" in told:
            lines += [self.phrases.checkpoint, *told["checkpoint"]]
        lines += told.get("name", ())
        counts = [form.format(left[noun]) for noun, form in self.phrases.counts.items() if left[noun]]
        if counts:
            lines.append(self.phrases.left_out.format(counts=self.phrases.comma.join(counts)))
        return "\n".join([*lines, f"</{self.mark}>"])


def _named(scenes: Sequence[str], phrases: _Phrases) -> str:
    more = len(scenes) - _KEYS_NAMED
    named = phrases.comma.join(shown(key) for key in scenes[:_KEYS_NAMED])
    return f"{named} (+{more})" if more > 0 else named


def _fitting(page: _Page, budget: int, measure: Callable[[str], int]) -> dict[int, str]:
    """Return the lines that fit, by their places: each in its longest form that leaves the whole within the budget."""
    everything = {place: entry.forms[0] for place, entry in enumerate(page.entries) if entry.forms}
    if measure(page.text(everything)) <= budget:
        return everything
    chosen: dict[int, str] = {}
    for place, entry in enumerate(page.entries):
        for form in entry.forms:
            more = {**chosen, place: form}
            if measure(page.text(more)) <= budget:
                chosen = more
                break
    return chosen


# ---- stored text


def shown(text: str, room: int | None = None) -> str:
    """Return stored text as it stands in a brief: one line, nothing hidden, no mark, and cut where there is no room."""
    line = one_line(text)
    line = line if room is None else cut(line, room)
    return line if line.isascii() and "<" not in line else line.translate(_OPENING)


def one_line(text: str) -> str:
    """Return a text in one line, without what cannot be seen; control characters become U+FFFD.

    >>> one_line("a\\u202eb\\n\\n# c\\x1b[2J")
    'ab # c\\ufffd[2J'
    """
    line = " ".join(text.split())
    if line.isascii() and line.isprintable():
        return line
    if any(map(_is_hidden, set(line))):
        line = " ".join(_visible(line).split())
    return _CONTROLS.sub("\ufffd", line)


def _visible(line: str) -> str:
    runs = [(hidden, "".join(run)) for hidden, run in itertools.groupby(line, _is_hidden)]
    pieces = ["", *(run for _, run in runs), ""]
    for place, (hidden, run) in enumerate(runs, 1):
        if hidden and not _joins(pieces[place - 1][-1:], run, pieces[place + 1][:1]):
            pieces[place] = ""
    return "".join(pieces)


@functools.lru_cache(maxsize=1 << 12)
def _is_hidden(character: str) -> bool:
    return not character.isspace() and (not fold(character) or character in _ANNOTATION_MARKS)


def _joins(before: str, hidden: str, after: str) -> bool:
    """Tell whether hidden characters hold a word or an emoji together."""
    if not before:
        return False
    if hidden in _JOINERS:
        if after and all(ord(c) in _SCRIPTS_WITH_JOINERS for c in (before, after)):
            return True
    elif hidden not in (_EMOJI_STYLE, _EMOJI_STYLE + _JOINER):
        return False
    emoji = unicodedata.category(before) in ("So", "Sk")
    return emoji and (
        hidden == _EMOJI_STYLE or (hidden.endswith(_JOINER) and unicodedata.category(after or " ") == "So")
    )


def cut(text: str, room: int) -> str:
    """Return the first `room` characters of a text and an ellipsis, never a part of a letter or of an emoji.

    >>> cut("abcd", 3), cut("abc", 3), cut("ab\\U0001f468\\u200d\\U0001f469", 3)
    ('abc…', 'abc', 'ab…')
    """
    if len(text) <= room:
        return text
    border = room
    while border and _belong_together(text, border):
        border -= 1
    return text[: border or room] + "…"


def _belong_together(text: str, border: int) -> bool:
    before, after = text[border - 1], text[border]
    if before == _JOINER or after in _JOINERS or unicodedata.category(after).startswith("M"):
        return True
    if ord(after) in _SKIN_TONES or "\udc00" <= after <= "\udfff":
        return True
    letters = 0
    while letters < border and ord(text[border - 1 - letters]) in _FLAG_LETTERS:
        letters += 1
    return ord(after) in _FLAG_LETTERS and letters % 2 == 1
