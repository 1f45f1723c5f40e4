"""Exports of ChatGPT and of Claude: `conversations.json`, a list of conversations, by itself or in the ZIP it came in.

An export can be larger than memory, a conversation hardly: the list is decoded one conversation at a time with
`json.JSONDecoder.raw_decode`, which needs no further package and is as fast as `json.load`.

Facts: descriptions of exports of 2023 to 2026 (the tree `mapping` and `current_node`, kinds of content, hidden
messages, exports in several files `conversations-000.json`; `chat_messages` and their blocks).
"""

import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from graphmem.core.model import Part
from graphmem.core.turns import moment_of
from graphmem.errors import InvalidInput
from graphmem.exchange.formats.blocks import SILENT, answered, asked, blocks_of, is_answer, is_call, with_answer
from graphmem.exchange.formats.heard import (
    FAULTS,
    Batch,
    Damaged,
    Source,
    Telling,
    named_errors,
    object_of,
    read_cursor,
    refuse_memory,
    text_of,
    told_of,
)
from graphmem.late import late

if TYPE_CHECKING:
    import hashlib
    import zipfile
    import zlib
else:
    hashlib = late("hashlib")
    zipfile = late("zipfile")
    zlib = late("zlib")

LONGEST = 1 << 28  # letters of one conversation
NAMES = re.compile(r"conversations(?:[-_]\d+)?\.json")
_AT_ONCE = 1 << 16
_HEAD = 4096
_BETWEEN = re.compile(r"[\s,]*")
_KINDS = {"mapping": "chatgpt", "chat_messages": "claude"}  # what holds the messages of a conversation
_THOUGHTS = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})

Reader = Callable[[dict[str, Any], Telling], tuple[str, list[Part]]]


@dataclass(frozen=True, slots=True)
class _File:
    """A list of conversations: how to open it, and its size in bytes."""

    open: Callable[[], IO[bytes]]
    size: int


def read_chatgpt(source: Source, cursor: str) -> Iterator[Batch]:
    """Yield the conversations of an export of ChatGPT: of each the branch that was current."""
    return _read(source, cursor, _chatgpt)


def read_claude(source: Source, cursor: str) -> Iterator[Batch]:
    """Yield the conversations of an export of Claude."""
    return _read(source, cursor, _claude)


def kind_of(path: str) -> str:
    """Return whose export a file is, '' for none: what its first conversation calls its messages."""
    with named_errors(path), _files(path) as files:
        for file in files:
            with _zip_errors(path), file.open() as stream:
                head = stream.read(_AT_ONCE).decode("utf-8", "replace")
            if head.lstrip("\ufeff \t\r\n").startswith("[") and (
                found := re.search(r'"(mapping|chat_messages)"\s*:\s*[\[{]', head)
            ):
                return _KINDS[found[1]]
    return ""


def _read(source: Source, cursor: str, reader: Reader) -> Iterator[Batch]:
    """Yield batches. A cursor says which file it is of, and how many conversations and parts of the next are read.

    A file that is another than before is read as a whole: telling a part again changes nothing.
    """
    path = source.path
    kept = read_cursor(cursor)
    with named_errors(path), _files(path) as files:
        mark = _mark(path)
        read, begun = (kept.get("read", 0), kept.get("parts", 0)) if kept.get("file") == mark else (0, 0)
        if not isinstance(read, int) or not isinstance(begun, int):
            raise InvalidInput("cursor", cursor, "is none of an export; give '' to read from the beginning")
        if kept.get("file") == mark and kept.get("end") is True:
            return
        telling = Telling()
        whole, done, number, parts = sum(file.size for file in files), 0, 0, 0
        try:
            for number, (found, done) in enumerate(_conversations(files, path), 1):
                if number <= read:
                    continue
                session, told = _heard(found, number, reader, telling, path)
                parts = begun if number == read + 1 else 0
                if parts:  # its user has spoken, and was no writer
                    telling.session(session).own = False
                for part in told[parts:]:
                    parts += telling.add(session, part)
                    if telling.full:
                        yield telling.batch(path, _cursor(mark, number - 1, parts), done, whole)
                if telling.full:
                    yield telling.batch(path, _cursor(mark, number, 0), done, whole)
        except InvalidInput:
            if telling.parts:  # what stands before the damage is kept
                yield telling.batch(path, _cursor(mark, number, 0), done, whole)
            raise
        yield telling.batch(path, {**_cursor(mark, number, 0), "end": True}, whole, whole)


def _heard(found: object, number: int, reader: Reader, telling: Telling, path: str) -> tuple[str, list[Part]]:
    try:
        if not isinstance(found, dict):
            raise Damaged("no JSON object")
        return reader(found, telling)
    except FAULTS as error:
        telling.remark(f"{path} conversation {number}: {told_of(error)}, passed over")
        return "", []


def _cursor(mark: list[object], read: int, parts: int) -> dict[str, Any]:
    return {"file": mark, "read": read, "parts": parts}


def _mark(path: str) -> list[object]:
    with Path(path).open("rb") as stream:
        found = os.fstat(stream.fileno())
        return [found.st_size, found.st_mtime_ns, hashlib.sha256(stream.read(_HEAD)).hexdigest()[:16]]


@contextlib.contextmanager
def _files(path: str) -> Iterator[list[_File]]:
    """Give the lists of conversations in a file: itself, or those in a ZIP."""
    refuse_memory(path)
    file = Path(path)
    if file.suffix.lower() != ".zip":
        yield [_File(lambda: file.open("rb"), file.stat().st_size)]
        return
    with contextlib.ExitStack() as stack:
        with _zip_errors(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
        named = (one for one in archive.infolist() if NAMES.fullmatch(one.filename.rpartition("/")[2]))
        found = sorted((one for one in named if "__MACOSX" not in one.filename), key=lambda one: one.filename)
        yield [_File(partial(archive.open, one), one.file_size) for one in found]


@contextlib.contextmanager
def _zip_errors(path: str) -> Iterator[None]:
    """Say that a ZIP is damaged, enciphered, or packed in a way that Python does not know."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise InvalidInput("path", path, f"is a ZIP that cannot be read: {error}") from error


def _conversations(files: list[_File], path: str) -> Iterator[tuple[object, int]]:
    """Yield each conversation and the bytes read up to it."""
    before = 0
    for file in files:
        with _zip_errors(path), file.open() as raw, io.TextIOWrapper(raw, "utf-8-sig") as stream:
            for found in _elements(stream.read, path):
                yield found, before + min(raw.tell(), file.size)
        before += file.size


def _elements(read: Callable[[int], str], path: str) -> Iterator[object]:
    """Yield the elements of a JSON list, of which no more than one is in memory.

    >>> list(_elements(io.StringIO(' [{"a": 1}, {"b": [2]}] ').read, "x.json"))
    [{'a': 1}, {'b': [2]}]
    """
    decoder = json.JSONDecoder()
    number, place = 0, 0
    try:
        text = read(_AT_ONCE).lstrip()
        if not text.startswith("["):
            raise InvalidInput("path", path, "is no export: it holds no list of conversations")
        text = text[1:]
        while True:
            between = _BETWEEN.match(text, place)
            assert between is not None
            place = between.end()
            if text[place : place + 1] == "]":
                return
            try:
                found, place = decoder.raw_decode(text, place)
            except ValueError as error:
                more = read(max(_AT_ONCE, len(text) - place))
                if not more or len(text) - place > LONGEST:
                    reason = f"is damaged or breaks off in its conversation {number + 1}: {error}"
                    raise InvalidInput("path", path, reason) from None
                text, place = text[place:] + more, 0
                continue
            number += 1
            yield found
    except UnicodeDecodeError as error:
        raise InvalidInput("path", path, f"is no UTF-8 text in its conversation {number + 1}: {error.reason}") from None
    except RecursionError:
        raise InvalidInput("path", path, f"is nested too deeply in its conversation {number + 1}") from None


def _chatgpt(found: dict[str, Any], telling: Telling) -> tuple[str, list[Part]]:
    mapping = found.get("mapping")
    if not isinstance(mapping, dict):
        raise Damaged("no mapping of messages, so none of ChatGPT")
    session = (text_of(found.get("conversation_id")) or text_of(found.get("id"))).strip()
    if not session:
        raise Damaged("no id")
    parts = []
    for node in _branch(mapping, text_of(found.get("current_node"))):
        message = object_of(object_of(mapping[node]).get("message"))
        author, content, known = (object_of(message.get(name)) for name in ("author", "content", "metadata"))
        role, recipient = text_of(author.get("role")), text_of(message.get("recipient"))
        hidden = message.get("weight") == 0 or known.get("is_visually_hidden_from_conversation") is True
        if role not in ("user", "assistant", "tool") or hidden or text_of(content.get("content_type")) in _THOUGHTS:
            continue
        tool, outcome = "", ""
        if role == "tool":
            tool, outcome = text_of(author.get("name")), _outcome(known)
        elif role == "assistant" and recipient not in ("", "all"):
            role, tool = "tool", recipient
        text = _said(content, telling)
        if text.strip():
            name = text_of(message.get("id")).strip() or node
            at = moment_of(message.get("create_time"))
            parts.append(Part(name, role=role, text=text, at=at, tool=tool, outcome=outcome))
    return session, parts


def _branch(mapping: dict[str, Any], current: str) -> list[str]:
    """Return the ids of the nodes that lead to the current one, which is the last leaf where none is named.

    >>> tree = {"a": {"parent": None}, "b": {"parent": "a"}, "c": {"parent": "a"}}
    >>> _branch(tree, "b"), _branch(tree, "")
    (['a', 'b'], ['a', 'c'])
    """
    if current not in mapping:
        inner = {text_of(object_of(node).get("parent")) for node in mapping.values()}
        current = next((name for name in reversed(mapping) if name not in inner), "")
    branch: dict[str, None] = {}
    while current in mapping and current not in branch:
        branch[current] = None
        current = text_of(object_of(mapping[current]).get("parent"))
    return [name for name in reversed(branch) if name.strip()]


def _said(content: dict[str, Any], telling: Telling) -> str:
    """Return the text of a message; pictures and sounds leave the name of their kind."""
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n".join(one if isinstance(one, str) else _shown(object_of(one)) for one in parts)
    for name in ("text", "result", "content"):
        if text := text_of(content.get(name)):
            return text
    if content and content.get("content_type") not in ("text", "code", "execution_output"):
        telling.leave_out(f"messages of type {text_of(content.get('content_type'))[:40]!r}")
    return ""


def _shown(one: dict[str, Any]) -> str:
    """Return what stands for a picture or a sound, its text where it has one.

    >>> _shown({"content_type": "audio_transcription", "text": "Hi"}), _shown({"content_type": "image_asset_pointer"})
    ('Hi', '[image_asset_pointer]')
    """
    return text_of(one.get("text")) or f"[{text_of(one.get('content_type'))}]"


def _outcome(known: dict[str, Any]) -> str:
    """Return how running a program ended, '' where nothing says so.

    >>> _outcome({"aggregate_result": {"status": "failed_with_in_kernel_exception"}}), _outcome({})
    ('failed', '')
    """
    status = text_of(object_of(known.get("aggregate_result")).get("status"))
    return "done" if status == "success" else "failed" if status.startswith(("failed", "cancelled")) else ""


def _claude(found: dict[str, Any], telling: Telling) -> tuple[str, list[Part]]:
    messages = found.get("chat_messages")
    if not isinstance(messages, list):
        raise Damaged("no chat_messages, so none of Claude")
    session = text_of(found.get("uuid")).strip()
    if not session:
        raise Damaged("no uuid")
    parts: list[Part] = []
    calls: dict[str, int] = {}
    for number, one in enumerate(messages):
        message = object_of(one)
        name = text_of(message.get("uuid")).strip() or f"{session}/{number}"
        sender = text_of(message.get("sender"))
        role = "user" if sender == "human" else sender
        part_of = partial(Part, role=role, at=moment_of(message.get("created_at")))
        content = message.get("content")
        told = _blocks(content, name, part_of, parts, calls, telling) if isinstance(content, list) else False
        if not told and (text := text_of(message.get("text"))).strip():
            parts.append(part_of(name, text=text))
    return session, parts


def _blocks(
    content: list[Any],
    message: str,
    part_of: Callable[..., Part],
    parts: list[Part],
    calls: dict[str, int],
    telling: Telling,
) -> bool:
    """Append the parts of one message; return whether it had any. An answer goes to its call."""
    told = False
    blocks = blocks_of(content)
    for number, block in enumerate(blocks):
        name, tool = message if len(blocks) == 1 else f"{message}/{number}", text_of(block.get("name"))
        if is_call(block):
            calls[text_of(block.get("id"))] = len(parts)
            part = part_of(name, message=message, role="tool", tool=tool, text=asked(block.get("input")))
        elif is_answer(block):
            answer = answered(block.get("content"))
            place = calls.pop(text_of(block.get("tool_use_id")), None)
            outcome = "failed" if block.get("is_error") is True else "done"
            if place is not None:
                call = parts[place]
                parts[place] = replace(call, outcome=outcome, text=with_answer(call.text, answer))
                told = True
                continue
            part = part_of(name, message=message, role="tool", tool=tool, outcome=outcome, text=answer)
        elif block.get("type") == "text" and text_of(block.get("text")).strip():
            part = part_of(name, message=message, text=text_of(block.get("text")))
        else:
            if (unknown := text_of(block.get("type"))) not in SILENT | {"text"}:
                telling.leave_out(f"blocks of type {unknown[:40]!r}")
            continue
        parts.append(part)
        told = True
    return told
