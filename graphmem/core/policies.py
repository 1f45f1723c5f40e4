"""What a channel, or a single event, may ask of a turn: to keep no memory, to recall nothing, to leave scenes alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from graphmem.core.keys import key_list
from graphmem.errors import InvalidInput

# The words that each policy knows besides '', which leaves it open; the first is the default.
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"context_policy": ("none", "prune"), "recall_policy": ("auto", "none"), "scene_policy": ("auto", "none")}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPolicy:
    """How turns on a channel go. Raises InvalidInput naming the field for a word that it does not know.

    no_memory: nothing is committed or archived; scenes go on.
    context_policy: 'prune' lets a turn archive what its context has no room for; 'none' (the default) does not.
    recall_policy: 'auto' (the default), or 'none': the brief is empty.
    scene_policy: 'auto' (the default), or 'none': the turn leaves no trace in scenes and reads none.
    """

    no_memory: bool = False
    context_policy: str = ""
    recall_policy: str = ""
    scene_policy: str = ""

    def __post_init__(self) -> None:
        for name in ("no_memory", *_WORDS):
            _check(name, getattr(self, name), name)


def effective_policy(payload: Mapping[str, Any] | None, channel: ChannelPolicy) -> ChannelPolicy:
    """Return the policy of one turn, every word said: that of its payload, else of its channel, else the default.

    no_memory is the exception: where the channel keeps no memory, no payload makes it keep one.

    >>> effective_policy({"recall_policy": "auto"}, ChannelPolicy(recall_policy="none", no_memory=True))
    ChannelPolicy(no_memory=True, context_policy='none', recall_policy='auto', scene_policy='auto')
    """
    if payload is not None and not isinstance(payload, Mapping):
        raise InvalidInput("payload", payload, "give a mapping such as {'user_id': 'boss'}")
    given = {name: value for name in ("no_memory", *_WORDS) if (value := (payload or {}).get(name)) is not None}
    for name, value in given.items():
        _check(name, value, f"payload[{name}]")
    words = {name: given.get(name) or getattr(channel, name) or default for name, (default, _) in _WORDS.items()}
    return replace(channel, no_memory=channel.no_memory or given.get("no_memory", False), **words)


def payload_scenes(payload: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the scene keys that a payload names in `scene`, a text or a list of texts.

    >>> payload_scenes({"scene": ["Proj:X", "", "proj:x"]})
    ('proj:x',)
    """
    found = (payload or {}).get("scene")
    return () if found is None else key_list(found, "payload[scene]")


def _check(name: str, value: object, argument: str) -> None:
    if name == "no_memory":
        if not isinstance(value, bool):
            raise InvalidInput(argument, value, "give true or false")
    elif value not in ("", *_WORDS[name]):
        raise InvalidInput(argument, value, f"give {' or '.join(map(repr, _WORDS[name]))}, or leave it empty")
