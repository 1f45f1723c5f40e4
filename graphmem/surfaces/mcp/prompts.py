"""The prompts that a client may show its user: a brief of what is known, and a checkpoint of the session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphmem.core.situations import Situation
from graphmem.errors import InvalidInput
from graphmem.memory import Memory

_BUDGET = 4000


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. arguments: name -> what is told of it; all may be left out."""

    name: str
    told: str
    arguments: Mapping[str, str]
    text: Callable[[Memory, Mapping[str, str], str], str]

    def __call__(self, memory: Memory, given: Mapping[str, str], prefix: str) -> str:
        """Return the text of the prompt. prefix: of the names of tools. Raises InvalidInput."""
        for name in given:
            if name not in self.arguments:
                raise InvalidInput(name, given[name], f"{self.name} takes {', '.join(self.arguments)}")
        return self.text(memory, given, prefix)


def _brief(memory: Memory, given: Mapping[str, str], prefix: str) -> str:
    situation = Situation.of(chan=given.get("chan"), peer=given.get("peer"), config=memory.config)
    brief = memory.brief(situation, query=given.get("query", ""), declared=situation.declared_keys, budget=_BUDGET)
    return brief.text or f"Nothing is known of this yet. Call {prefix}remember when something is told that stays true."


def _checkpoint(memory: Memory, given: Mapping[str, str], prefix: str) -> str:
    session = given.get("session") or memory.session
    named = f" with session {session!r}" if session else ""
    return (
        f"Keep what this session came to. Call {prefix}checkpoint{named}. Where it answers that the session is not "
        f"known, call {prefix}remember instead, once for each thing that stays true beyond this conversation: what was "
        "decided and why, what was found out, what is left open; exact values word for word, and no secrets. Then say "
        "in one sentence what was kept."
    )


PROMPTS = {
    each.name: each
    for each in (
        Prompt(
            "brief",
            "What is known and what binds here",
            {"query": "the words of the turn", "chan": "the channel", "peer": "the person spoken with"},
            _brief,
        ),
        Prompt("checkpoint", "Keep what this session came to", {"session": "the name of the session"}, _checkpoint),
    )
}
