"""The blocks that messages of Claude are made of, and how the call of a tool is written as a text."""

import json
from collections.abc import Mapping

from graphmem.exchange.formats.heard import Damaged, object_of, text_of

# Blocks that are no speech: what was thought, pictures and files.
SILENT = frozenset(
    {"thinking", "redacted_thinking", "image", "document", "file", "container_upload", "tool_reference", "fallback",
     "token_budget", "flag"}
)  # fmt: skip


def blocks_of(content: object) -> list[dict[str, object]]:
    """Return the blocks of a message; a text is one block. Raises Damaged for what is neither text nor list."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Damaged("its content is neither a text nor a list of blocks")
    return [{"type": "text", "text": block} if isinstance(block, str) else object_of(block) for block in content]


def is_call(block: Mapping[str, object]) -> bool:
    """Tell whether a block calls a tool, the client's or one of the server.

    >>> is_call({"type": "server_tool_use"}), is_call({"type": "text"})
    (True, False)
    """
    return text_of(block.get("type")).endswith("tool_use")


def is_answer(block: Mapping[str, object]) -> bool:
    """Tell whether a block is what a tool answered.

    >>> is_answer({"type": "web_search_tool_result"}), is_answer({"type": "tool_use"})
    (True, False)
    """
    return text_of(block.get("type")).endswith("tool_result")


def asked(given: object) -> str:
    r"""Return what a tool was given, a line for each name. Texts stay as they are, so that their words are found.

    >>> asked({"command": "ls -l", "timeout": 5})
    'command: ls -l\ntimeout: 5'
    """
    if isinstance(given, dict):
        return "\n".join(f"{name}: {_plain(value)}" for name, value in given.items())
    return "" if given is None else _plain(given)


def answered(content: object) -> str:
    r"""Return what a tool answered, as a text.

    >>> answered([{"type": "text", "text": "done"}, {"type": "image", "source": {}}])
    'done\n[image]'
    """
    if isinstance(content, list):
        return "\n".join(_answer(one) for one in content)
    return "" if content is None else _answer(content)


def with_answer(call: str, answer: str) -> str:
    r"""Return the text of a call and its answer.

    >>> with_answer("command: ls", "a.txt"), with_answer("", "a.txt")
    ('command: ls\n\na.txt', 'a.txt')
    """
    return "\n\n".join(each for each in (call, answer) if each)


def _answer(one: object) -> str:
    if not isinstance(one, dict):
        return _plain(one)
    for names in (("text",), ("title", "url"), ("content",)):
        if said := " ".join(text_of(one.get(name)) for name in names if text_of(one.get(name))):
            return said
    return f"[{one['type']}]" if text_of(one.get("type")) else _plain(one)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
