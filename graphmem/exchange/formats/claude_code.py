"""Transcripts of Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, a subagent's beside or below it.

The format is described nowhere by who makes it. Facts: collected descriptions of versions 1.0 to 2.1 (record types,
blocks, flags, `queued_command`), which agree.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from graphmem.core.model import Part
from graphmem.core.turns import moment_of
from graphmem.exchange.formats.blocks import SILENT, answered, asked, blocks_of, is_answer, is_call, with_answer
from graphmem.exchange.formats.heard import (
    Batch,
    Call,
    Damaged,
    Source,
    Telling,
    folder_of,
    object_of,
    text_of,
)
from graphmem.exchange.formats.lines import Line, read_lines

_SPEECH = ("user", "assistant")
_SILENT_LINES = frozenset(
    {"summary", "system", "progress", "attachment", "queue-operation", "file-history-snapshot", "custom-title",
     "ai-title", "agent-name", "agent-color", "agent-setting", "last-prompt", "tag", "mode", "permission-mode",
     "pr-link", "worktree-state", "content-replacement", "checkpoint", "atis-latch", "cost-state", "api-request",
     "api-request-blob", "api-request-shape"}
)  # fmt: skip
# What the program says in the user's place: its own notes, a summary made by a model, an error.
_NOT_SAID = ("isMeta", "isCompactSummary", "isApiErrorMessage")
_NOT_TYPED = (
    "<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "<system-reminder>",
    "<teammate-message", "<user-prompt-submit-hook>", "<tick>", "[Request interrupted by user",
)  # fmt: skip


def read(source: Source, cursor: str) -> Iterator[Batch]:
    """Yield what is new in a transcript.

    A subagent is a session of its own, `<session>/<agent>`; what it is asked is said by an assistant, not by the user.
    What the program itself puts in the user's place is kept with the role system, so that nobody takes it for a wish.
    """
    return read_lines(source, cursor, partial(_hear, name=Path(source.path).stem))


def is_one(found: dict[str, Any]) -> bool:
    """Tell whether an object looks like a line of a transcript.

    >>> is_one({"type": "user", "sessionId": "s1", "message": {}}), is_one({"type": "user"})
    (True, False)
    """
    kind = text_of(found.get("type"))
    if kind in _SPEECH:
        return isinstance(found.get("message"), dict)
    return kind in _SILENT_LINES and any(name in found for name in ("sessionId", "leafUuid", "messageId"))


def _hear(line: Line, telling: Telling, *, name: str) -> None:
    found = line.found
    kind = text_of(found.get("type"))
    if kind == "attachment" and object_of(found.get("attachment")).get("type") == "queued_command":
        queued = found["attachment"]  # what was typed while the assistant worked
        mode = queued.get("commandMode") or "prompt"
        content, role = queued.get("prompt"), "user"
        origin = queued.get("origin") or {"kind": "human" if mode == "prompt" else mode}
    elif kind in _SPEECH:
        if any(found.get(flag) is True for flag in _NOT_SAID):
            return
        if not isinstance(found.get("message"), dict):
            raise Damaged(f"a line of type {kind} without a message")
        content, origin, role = found["message"].get("content"), found.get("origin"), kind
    else:
        if kind not in _SILENT_LINES:
            telling.leave_out(f"lines of type {kind[:40]!r}")
        return
    session = text_of(found.get("sessionId")).strip() or name
    sidechain = found.get("isSidechain") is True
    if sidechain:
        session = f"{session}/{text_of(found.get('agentId')).strip() or 'sidechain'}"
    blocks = blocks_of(content)
    if telling.session(session, folder_of(found.get("cwd"))).own:
        return
    message = text_of(found.get("uuid")).strip() or line.digest
    at = moment_of(found.get("timestamp"))
    for number, block in enumerate(blocks):
        part_of = partial(Part, message if len(blocks) == 1 else f"{message}/{number}", message=message, at=at)
        if is_call(block):
            part = part_of(role="tool", tool=text_of(block.get("name")), text=asked(block.get("input")))
            telling.add_call(text_of(block.get("id")), Call(session, part, line.offset, line.number))
        elif is_answer(block):
            _answer(block, session, part_of, telling)
        elif block.get("type") == "text":
            if (text := text_of(block.get("text"))).strip():
                said_by = role if role == "assistant" else _speaker(text, origin, sidechain=sidechain)
                telling.add(session, part_of(role=said_by, text=text))
        elif (unknown := text_of(block.get("type"))) not in SILENT:
            telling.leave_out(f"blocks of type {unknown[:40]!r}")


def _answer(block: dict[str, object], session: str, part_of: Callable[..., Part], telling: Telling) -> None:
    """Take what a tool answered: the call is told again with it, or it stands alone where nobody knows the call."""
    call = telling.calls.pop(text_of(block.get("tool_use_id")), None)
    answer = answered(block.get("content"))
    outcome = "failed" if block.get("is_error") is True else "done"
    if call is None:
        telling.add(session, part_of(role="tool", outcome=outcome, text=answer))
    else:
        whole = replace(call.part, outcome=outcome, text=with_answer(call.part.text, answer))
        telling.tell_again(call.session, whole)


def _speaker(text: str, origin: object, *, sidechain: bool) -> str:
    """Return who said what stands in the user's place.

    >>> _speaker("Hi", None, sidechain=False), _speaker("<bash-stdout>x</bash-stdout>", None, sidechain=False)
    ('user', 'system')
    >>> _speaker("Done", {"kind": "task-notification"}, sidechain=False)
    'system'
    """
    if sidechain:
        return "assistant"
    typed = object_of(origin).get("kind", "human") == "human" and not text.lstrip().startswith(_NOT_TYPED)
    return "user" if typed else "system"
