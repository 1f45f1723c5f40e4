"""What a host tells at each moment of a session, and what it is answered; see `surfaces/hosts.py`.

A telling names the host, the session and the folder of its project; the answer is a small object whose texts belong in
front of the model.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from graphmem.core.model import Part
from graphmem.errors import InvalidInput
from graphmem.exchange.formats import opencode
from graphmem.exchange.formats.blocks import asked as call_of
from graphmem.memory import Memory
from graphmem.surfaces import hosts
from graphmem.surfaces.hosts import Moment, Seat


class Told:
    """What a request tells, of which each value is looked at when it is used."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def text(self, name: str, *, needed: bool = False) -> str:
        """Return a text, '' where none is told. Raises InvalidInput for what is none, or is needed and empty."""
        value = self._given.get(name)
        if value is None:
            value = ""
        if not isinstance(value, str):
            raise InvalidInput(name, value, "give a text")
        if needed and not value.strip():
            raise InvalidInput(name, value, "give one that is not empty")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        value = self._given.get(name) or []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InvalidInput(name, value, "give a list of texts")
        return value

    def parts(self) -> list[Part]:
        """Return what was said: `said` is a list of objects, each with a message and a part as the host has them."""
        said = self._given.get("said") or []
        if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
            raise InvalidInput("said", said, "give a list of objects with message and part")
        child = self._given.get("child") is True
        found = (opencode.part_of(each.get("message"), each.get("part"), child=child) for each in said)
        return [part for part in found if part is not None]

    @property
    def writes(self) -> bool:
        """Whether the host lets its model write checkpoints, see `HostWriter`."""
        return self._given.get("writes") is True

    @property
    def call(self) -> str:
        """What a tool was given, as a text."""
        return call_of(self._given.get("input"))

    @functools.cached_property
    def seat(self) -> Seat:
        """Who works where."""
        user = hosts.user_of(self.text("folder"))
        return Seat(self.text("host", needed=True), self.text("session", needed=True), user)


# ---- what each moment is answered

Answer = dict[str, Any]


def _start(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.session_started(memory, given.seat))


def _prompt(memory: Memory, given: Told) -> Answer:
    """Answer what a user said. The reminder is of the turn before, so it comes ahead of what this one mirrors."""
    reminder = hosts.reminded(memory, given.seat)
    prompted = hosts.prompted(memory, given.seat, given.text("text"))
    mirrored = hosts.told(memory, given.seat, given.parts())
    wish = hosts.wish_of(given.text("text"), memory.config)
    answer = {**asdict(prompted), "wish": wish, "reminder": reminder.text}
    return {**answer, "failed": [*reminder.failed, *prompted.failed, *mirrored.failed]}


def _tool(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.tool_called(memory, given.seat, given.text("tool", needed=True), given.call))


def _failure(memory: Memory, given: Told) -> Answer:
    tool, error = given.text("tool", needed=True), given.text("error", needed=True)
    return _answer(hosts.tool_failed(memory, given.seat, tool, given.call, error))


def _said(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.told(memory, given.seat, given.parts()))


def _removed(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.removed(memory, given.seat, messages=given.texts("messages"), parts=given.texts("parts")))


def _deleted(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.session_deleted(memory, given.seat))


def _compact(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.compacting(memory, given.seat))


def _stop(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.stopped(memory, given.seat, wish=given.text("wish"), since=given.text("since") or None))


def _end(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.session_ended(memory, given.seat))


def _search(memory: Memory, given: Told) -> Answer:
    return _answer(hosts.asked(memory, given.seat, given.text("text")))


def _nothing(memory: Memory, given: Told) -> Answer:
    return {}


def _answer(moment: Moment) -> Answer:
    return asdict(moment)


MOMENTS: Mapping[str, Callable[[Memory, Told], Answer]] = {
    "start": _start,
    "prompt": _prompt,
    "tool": _tool,
    "failure": _failure,
    "said": _said,
    "removed": _removed,
    "deleted": _deleted,
    "compact": _compact,
    "stop": _stop,
    "end": _end,
    "idle": _nothing,
    "search": _search,
}
# After these the checkpoints that wait are made, behind the answer.
DIGESTED = ("compact", "end", "idle")
