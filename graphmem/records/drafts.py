"""Notes before they are written: what may be, and what it is as its source may write it.

What binds everybody who reads it, a rule, a pin or a note of a slot that is a constraint, is a person's to make, and so
is what becomes a file that agents obey: an agent proposes it, unless it quotes what the user said.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from graphmem.config import KIND_WEIGHTS, Config, check_flags
from graphmem.core.choices import NOTE_KINDS, NOTE_STATUSES, PROCEDURES
from graphmem.core.keys import clean_text, entity_key, feature_key, require_texts, text_list
from graphmem.core.model.notes import LONGEST_TITLE, MOST_TRIGGERS
from graphmem.core.tokens import telling_tokens, tokens_of
from graphmem.core.trust import is_person
from graphmem.errors import InvalidInput

LESSONS = ("lesson", "pitfall")
FACTS = ("fact", "preference", "decision")
OF_WORK = (*LESSONS, "decision", "checkpoint", *PROCEDURES)
LONGEST_SUMMARY = 100  # of the sentence that an index shows of a note
# Why a note is kept where nobody says why, by language and kind.
REASONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": {
            "fact": "a standing fact, worth not telling twice",
            "lesson": "learnt from a problem that was solved",
            "rule": "to be kept at all times",
            "preference": "how somebody wants it",
            "decision": "decided, so that it is not discussed anew",
            "pitfall": "went wrong once and may again",
            "checkpoint": "where the work stood",
            "skill": "done again and again in the same way",
            "agent": "a task that comes again and again",
            "command": "asked for again and again",
        },
        "zh": {
            "fact": "长期有效的事实，免得再说一遍",
            "lesson": "来自一次已解决的问题",
            "rule": "任何时候都要遵守",
            "preference": "有人希望如此",
            "decision": "已经决定，不再重新讨论",
            "pitfall": "曾经出错，可能再犯",
            "checkpoint": "当时工作的进展",
            "skill": "反复以同样的步骤完成",
            "agent": "反复出现的任务",
            "command": "反复执行的命令",
        },
    }
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A note that may be written: texts cleaned, words chosen from the known ones.

    routes: its triggers, each with what it is looked for by, a feature or a word. binds: it is a rule or a procedure,
    or its slot is a constraint, so that a person decides on it. openly: told in no scene, so for everybody. decided: a
    person says so, or is quoted. held_back: why it is proposed though it was to be live, '' where it is as it was
    to be.
    """

    kind: str
    title: str
    body: str
    slot: str
    labels: tuple[str, ...]
    routes: tuple[tuple[str, str], ...]
    summary: str
    highlight: str
    scope: str
    status: str
    pinned: bool
    source: str
    reason: str
    openly: bool
    binds: bool
    remarks: tuple[str, ...]
    decided: bool
    held_back: str = ""

    @property
    def slot_key(self) -> str:
        """The canonical form of the slot, '' for none."""
        return entity_key(self.slot)

    @property
    def remarks_as_written(self) -> tuple[str, ...]:
        """What is to be said of it where it is written with its status."""
        return (*self.remarks, self.held_back) if self.held_back else self.remarks

    @property
    def load_when(self) -> tuple[str, ...]:
        """Its triggers."""
        return tuple(trigger for trigger, _ in self.routes)


def check_note(
    title: str,
    *,
    body: str,
    kind: str,
    slot: str,
    labels: Iterable[str],
    load_when: Iterable[str],
    summary: str,
    highlight: str,
    scope: str,
    pinned: bool,
    status: str,
    source: str,
    reason: str,
    config: Config,
) -> Draft:
    """Return a note that may be written; raise InvalidInput naming the argument for one that may not."""
    given = {
        "title": title,
        "body": body,
        "slot": slot,
        "summary": summary,
        "highlight": highlight,
        "scope": scope,
        "source": source,
        "reason": reason,
    }
    require_texts(**given)
    names = [label for label in text_list(labels, "labels") if entity_key(label)]
    triggers = [trigger for trigger in text_list(load_when, "load_when") if entity_key(trigger)]
    cleaned = {name: clean_text(value) for name, value in given.items()}
    # A scope is compared as it is given, here as everywhere.
    texts = {name: text if name == "scope" else text.strip() for name, text in cleaned.items()}
    marks = by_key(clean_text(label).strip() for label in names)
    if not entity_key(texts["title"]):
        raise InvalidInput("title", title, "nothing that can be seen is left of it; say in one line what to remember")
    if len(texts["title"]) > LONGEST_TITLE:
        at_most = f"a title has at most {LONGEST_TITLE} characters; put the rest into the body"
        raise InvalidInput("title", f"{title[:40]}…", at_most)
    if len(texts["summary"]) > LONGEST_SUMMARY:
        at_most = f"a summary has at most {LONGEST_SUMMARY} characters; put the rest into the body"
        raise InvalidInput("summary", f"{summary[:40]}…", at_most)
    if kind not in NOTE_KINDS:
        raise InvalidInput("kind", kind, f"give one of {', '.join(NOTE_KINDS)}")
    if status not in NOTE_STATUSES:
        raise InvalidInput("status", status, f"give one of {', '.join(NOTE_STATUSES)}")
    check_flags(pinned=pinned)
    texts["reason"] = texts["reason"] or REASONS[config.language][kind]
    replaced = cleaned != given or any(clean_text(text) != text for text in (*names, *triggers))
    remarks = ("characters that cannot be stored were replaced by U+FFFD",) if replaced else ()
    return Draft(
        kind, labels=tuple(marks.values()), routes=_checked_routes(triggers, config), status=status, pinned=pinned,
        binds=needs_a_person(kind, texts["slot"], config), remarks=remarks, openly=True, decided=False,
        **texts,
    )  # fmt: skip


def needs_a_person(kind: str, slot: str, config: Config) -> bool:
    """Tell whether a note of this kind and slot is in force only where a person wants it so."""
    key = entity_key(slot)
    return kind in ("rule", *PROCEDURES) or (key != "" and key in map(entity_key, config.constraint_keys))


def by_key(labels: Iterable[str]) -> dict[str, str]:
    """Return labels by their canonical form, the first spelling of each.

    >>> by_key(["Redis", "redis", "缓存"])
    {'redis': 'Redis', '缓存': '缓存'}
    """
    found: dict[str, str] = {}
    for label in labels:
        found.setdefault(entity_key(label), label)
    return found


def _checked_routes(given: Iterable[str], config: Config) -> tuple[tuple[str, str], ...]:
    """Return triggers, features in their canonical form, each once; raise InvalidInput for what can call nothing."""
    found: dict[str, tuple[str, str]] = {}
    for text in map(clean_text, given):
        trigger = _feature(text, config.weights) or text.strip()
        token = token_of(trigger, config.weights)
        if not token:
            raise InvalidInput("load_when", text, "no word to look for; give words, or a feature such as tool:shell")
        found.setdefault(entity_key(trigger), (trigger, token))
    if len(found) > MOST_TRIGGERS:
        raise InvalidInput("load_when", len(found), f"a note has at most {MOST_TRIGGERS} triggers; choose the best")
    return tuple(found.values())


def token_of(trigger: str, kinds: Container[str] = KIND_WEIGHTS) -> str:
    """Return what a trigger is looked for by: the feature of one of some kinds, else its longest word; '' for neither.

    >>> token_of("tool:shell"), token_of("deploy to production")
    ('tool:shell', 'product')
    """
    return _feature(trigger, kinds) or max(telling_tokens(tokens_of(trigger)), key=len, default="")


def _feature(trigger: str, kinds: Container[str]) -> str:
    """Return the key of the feature that a trigger names, '' where it is words.

    >>> _feature(" Tool:Shell ", {"tool"}), _feature("note: this", {"tool"})
    ('tool:shell', '')
    """
    kind, separator, value = trigger.strip().partition(":")
    return feature_key(kind, value) if separator and kind.strip().casefold() in kinds else ""


def ruled(draft: Draft, *, backed: bool) -> Draft:
    """Return a note as its source may write it. backed: a quoted statement of the user backs it."""
    if backed or is_person(draft.source):
        return replace(draft, decided=True)
    if draft.pinned:
        draft = replace(draft, pinned=False, remarks=(*draft.remarks, "not pinned: that is for a person to do"))
    if draft.status == "live" and draft.binds:
        draft = as_proposal(draft, "in force once a person approves it")
    return draft


def as_proposal(draft: Draft, reason: str) -> Draft:
    """Return a note as something that is proposed, and why."""
    return replace(draft, status="proposed", held_back=f"proposed: {reason}")
