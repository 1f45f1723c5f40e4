"""One turn of an agent: its policies, its scene, what it reads, where it writes."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from graphmem import log
from graphmem.compose.brief import RECALL_MARK, Item, Reader, brief_of
from graphmem.config import Config, check_count
from graphmem.core.events import Event
from graphmem.core.keys import tool_key
from graphmem.core.model import (
    Brief,
    CommitReport,
    DeclaredScene,
    Document,
    Hit,
    RecalledNote,
    RememberReport,
    Triple,
    Visit,
)
from graphmem.core.policies import ChannelPolicy, effective_policy, payload_scenes
from graphmem.core.ranking import cosine, inverse_frequency
from graphmem.core.situations import Situation
from graphmem.core.tokens import tokens_of
from graphmem.errors import Conflict, GraphmemError, InvalidInput

LAST_KEPT = 10


class Verbs(Reader, Protocol):
    """The verbs of `Memory` that a turn uses."""

    def observe(self, *, source: str, payload: Any, text: str, tool: str, at: Any) -> Situation:
        """See `Memory.observe`."""

    def enter_scene(self, situation: Situation, *, declared: str | Iterable[str]) -> Visit:
        """See `Memory.enter_scene`."""

    def declare_scene(self, key: str) -> DeclaredScene:
        """See `Memory.declare_scene`."""

    def commit(
        self,
        triples: Iterable[Triple],
        *,
        scenes: str | Iterable[str],
        session: str,
        turn: int,
        scope: str | None,
        at: Any,
        source: str,
    ) -> CommitReport:
        """See `Memory.commit`."""

    @property
    def remember(self) -> Callable[..., RememberReport]:
        """See `Memory.remember`."""

    def rules_for(
        self,
        situation: Situation,
        *,
        tool: str,
        text: str,
        declared: str | Iterable[str],
        scopes: Iterable[str] | None,
    ) -> tuple[RecalledNote, ...]:
        """See `Memory.rules_for`."""

    def remind(self, session: str, said: str, *, saved: bool, at: Any) -> str:
        """See `Memory.remind`."""

    def put_document(self, text: str, *, summary: str, scenes: str | Iterable[str], source: str, at: Any) -> Document:
        """See `Memory.put_document`."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a context came to: the events that stay in it, in their order, and those that were archived as one document.

    document: its id, '' when nothing was archived.
    """

    events: tuple[Event, ...]
    archived: tuple[Event, ...] = ()
    document: str = ""


class Turn:
    """One turn, made by `Memory.turn`. Its scene is entered once: when the turn first asks for it, else at its end.

    Until then tools that are named belong to the situation that is entered. Reading alone enters nothing. Its methods
    may be called from several threads.
    """

    def __init__(
        self, memory: Verbs, event: Event, channel: ChannelPolicy, *, scopes: Sequence[str] | None = None
    ) -> None:
        self.event = event
        self.policy = effective_policy(event.payload, channel)
        self._memory = memory
        self._scopes = scopes
        self._lock = threading.RLock()
        self._visit: Visit | None = None
        self._told = Brief()
        self._recalled: frozenset[Item] = frozenset()
        self._recall_text = ""
        self._saved = False
        if self.policy.scene_policy == "none":
            self._situation = Situation(config=memory.config)
            self._declared: tuple[str, ...] = ()
        else:
            self._situation = memory.observe(
                source=event.source, payload=event.payload, text=event.text, tool=event.tool, at=event.at
            )
            keys = (*payload_scenes(event.payload), *self._situation.declared_keys)
            self._declared = tuple(dict.fromkeys(keys))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._enter()

    # ---- where the turn stands

    @property
    def situation(self) -> Situation:
        """What is known of the turn by now; empty where its scene policy is none."""
        return self._situation

    @property
    def visit(self) -> Visit:
        """What entering the scene came to; asking for it enters. Where that fails, the declared keys alone."""
        return self._enter()

    @property
    def read_keys(self) -> tuple[str, ...]:
        """The keys that the turn reads exactly: those of its payload, channel, person, tools, and the visited scene."""
        self._enter()
        return self._known_keys()

    @property
    def write_keys(self) -> tuple[str, ...]:
        """The keys for what is learnt in this turn: the visited scene, and keys that nobody reads but who is here."""
        return tuple(dict.fromkeys((*self._enter().write_keys, *self._own_keys())))

    def _own_keys(self) -> tuple[str, ...]:
        return tuple(key for key in self._declared if self._situation.may_write_to(key))

    def _known_keys(self) -> tuple[str, ...]:
        """The keys that are read exactly, as far as they are known without entering."""
        visited = "" if self._visit is None else self._visit.key
        return (*self._declared, visited) if visited else self._declared

    def _enter(self) -> Visit:
        with self._lock:
            if self._visit is None:
                try:
                    self._visit = self._memory.enter_scene(self._situation, declared=self._declared)
                except GraphmemError as error:
                    # What is read and told in this turn matters more than that it is counted.
                    log.warning("the turn goes on without its scene: %s", error)
                    self._visit = Visit(keys=self._declared, write_keys=self._own_keys())
            return self._visit

    def tool(self, name: str) -> Situation:
        """Say that the turn uses a tool, and return its situation with it. The scene is not counted again."""
        key = tool_key(name)
        if not key:
            raise InvalidInput("name", name, "give the name of the tool")
        with self._lock:
            if self.policy.scene_policy != "none" and key not in self._declared:
                here = self._situation.with_tool(name)
                if self._visit is not None and not self._memory.config.read_only:
                    self._declare(key)
                self._declared, self._situation = (*self._declared, key), here
            return self._situation

    def _declare(self, key: str) -> None:
        try:
            self._memory.declare_scene(key)
        except GraphmemError as error:
            log.warning("the turn goes on without the scene of its tool: %s", error)

    # ---- reading

    def brief(self, query: str | None = None, *, budget: int = 2000, measure: Callable[[str], int] = len) -> Brief:
        """Return what belongs into the prompt of this turn, see `Memory.brief`; empty where its recall policy is none.

        query: the words to look for, those of the event unless given. What `recall` returned in this turn is in the
        prompt already and is not found again; the rules of the scene always come.
        """
        self._told = self._brief_of(query, budget=budget, measure=measure, already=self._recalled)
        return self._told

    def recall(self, query: str, /, **options: Any) -> tuple[Hit, ...]:
        """Recall by words in the situation of this turn, as the agent asks; options are those of `Memory.recall`."""
        hits = self._memory.recall(query, **{"situation": self._situation, "scopes": self._scopes, **options})
        with self._lock:
            self._recalled |= {(hit.kind, hit.id) for hit in hits}
        return hits

    def recall_message(
        self, query: str, *, budget: int = 1000, measure: Callable[[str], int] = len, told: Brief | None = None
    ) -> Brief:
        """Return what the output of a tool calls to mind and the prompt does not hold yet, marked as `recalled-memory`.

        told: the brief that the prompt holds, the last one of this turn unless given. The message takes the place of
        the one before it, see `recall_text`; empty where the recall policy is none.
        """
        before = self._told if told is None else told
        shown, left_out = before.shown, before.left_out
        message = self._brief_of(
            query,
            budget=budget,
            measure=measure,
            already=self._recalled.union(shown),
            passed=frozenset((*shown, *left_out)),
            mark=RECALL_MARK,
        )
        self._recall_text = message.text
        return message

    @property
    def recall_text(self) -> str:
        """The one recall message that stands at the end of the prompt: that of the last `recall_message`."""
        return self._recall_text

    def _brief_of(self, query: str | None, **options: Any) -> Brief:
        if self.policy.recall_policy == "none":
            return Brief()
        return brief_of(
            self._memory,
            self._situation,
            query=self.event.text if query is None else query,
            declared=self._known_keys(),
            scopes=self._scopes,
            session=self.event.session,
            **options,
        )

    # ---- writing

    def commit(
        self,
        triples: Iterable[Triple],
        scenes: str | Iterable[str] | None = None,
        *,
        session: str | None = None,
        turn: int = 0,
        scope: str | None = None,
        source: str = "agent",
    ) -> CommitReport:
        """Remember facts in the scenes of this turn, or only in those given; session and time are the event's.

        `report.written == 0` means that nothing was remembered. Raises Conflict where the turn keeps no memory.
        """
        self._require_memory()
        report = self._memory.commit(
            triples,
            scenes=self.write_keys if scenes is None else scenes,
            session=self.event.session if session is None else session,
            turn=turn,
            scope=scope,
            at=self.event.at,
            source=source,
        )
        if report.written:
            self._saved = True
        return report

    def remember(self, title: str, /, **options: Any) -> RememberReport:
        """Write a note in this turn; options are those of `Memory.remember`, session and time are the event's.

        Where people are named it is for them: its scenes are those that the turn writes to, unless `scenes` says
        otherwise, `()` for everybody. What the user says in this turn may be quoted. Raises Conflict where the turn
        keeps no memory.
        """
        self._require_memory()
        said = "" if self.event.tool else self.event.text
        scenes = self.write_keys if self._situation.people and "scenes" not in options else ()
        given = {"session": self.event.session, "said": said, "at": self.event.at, "scenes": scenes, **options}
        report = self._memory.remember(title, **given)
        self._saved = True
        return report

    def _require_memory(self) -> None:
        if self.policy.no_memory:
            raise Conflict("this turn keeps no memory (no_memory is set); tell it in a turn that does")

    def rules_for(self, tool: str = "", *, text: str = "") -> tuple[RecalledNote, ...]:
        """Return the rules for what is about to be done in this turn, see `Memory.rules_for`; text: the command."""
        return self._memory.rules_for(
            self._situation, tool=tool, text=text, declared=self._known_keys(), scopes=self._scopes
        )

    def reminder(self) -> str:
        """Return what to tell the agent at the end of the turn, see `Memory.remind`; '' where the turn saved something.

        '' also where the turn keeps no memory, and for the words of a tool.
        """
        if self.policy.no_memory or self.event.tool:
            return ""
        return self._memory.remind(self.event.session, self.event.text, saved=self._saved, at=self.event.at)

    def prune(self, events: Sequence[Event], *, query: str | None = None, keep: int = 20) -> Pruned:
        """Keep the `keep` events of a context closest to the query and the last 10, and archive the others.

        query: the words of the event unless given. Those archived make one document of the turn's scenes. Nothing is
        archived, and all events stay, unless the context policy is 'prune' and the turn keeps a memory.
        """
        check_count("keep", keep)
        events = tuple(events)
        for event in events:
            if not isinstance(event, Event):
                raise InvalidInput("events", event, "give a list of Event objects")
        old = events[:-LAST_KEPT]
        scores = closeness(self.event.text if query is None else query, [event.text for event in old])
        best = set(sorted(range(len(old)), key=lambda place: (-scores[place], -place))[:keep])
        archived = tuple(event for place, event in enumerate(old) if place not in best)
        if not archived or self.policy.context_policy != "prune" or self.policy.no_memory:
            return Pruned(events)
        lines = [_line_of(event, self._memory.config) for event in archived]
        document = self._memory.put_document(
            "\n".join(lines), summary="", scenes=self.write_keys, source="context_archived", at=self.event.at
        )
        kept = (*(old[place] for place in sorted(best)), *events[-LAST_KEPT:])
        return Pruned(kept, archived, document.id)


def _line_of(event: Event, config: Config) -> str:
    said = " ".join(part for part in (event.at or "", event.source, *event.situation(config).people) if part)
    return f"{said}: {event.text}" if said else event.text


def closeness(query: str, texts: Sequence[str]) -> list[float]:
    """Return how close each text is to a query, 0 to 1: the cosine of their words, weighed by rarity.

    >>> [round(score, 1) for score in closeness("deploy with pnpm", ["we deploy by pnpm", "good morning"])]
    [0.2, 0.0]
    """
    counted = [Counter(tokens_of(text)) for text in (query, *texts)]
    spread = Counter(token for tokens in counted for token in tokens)
    asked, *told = (
        {token: count * inverse_frequency(len(counted), spread[token]) for token, count in tokens.items()}
        for tokens in counted
    )
    return [cosine(asked, words) for words in told]
