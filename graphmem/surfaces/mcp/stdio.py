"""Standard input and output as the way to a client: nothing but the protocol is on it, and it ends with the client."""

import contextlib
import json
import os
import re
import select
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.from_thread

from graphmem.core.keys import clean_text

_PATIENCE = 0.8  # seconds for what is at work when the client goes, and again for the process to end
_LOOK_EVERY = 0.25
_CHUNK = 1 << 16
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


class Wire:
    """The descriptors of the protocol. What the process prints from now on goes to standard error.

    Input and output have the form that `mcp.server.stdio.stdio_server` takes.
    """

    def __init__(self) -> None:
        self._in, self._out = _taken(0, os.O_RDONLY), _taken(1, os.O_WRONLY)
        self._asked: set[object] = set()  # the ids of requests without an answer
        self._ended = threading.Event()
        self._parent = os.getppid()

    def watch(self, end: Callable[[], object]) -> None:
        """Call `end` when the client has gone, and end the process soon after, whatever it is at then."""
        threading.Thread(target=self._watch, args=(end,), daemon=True, name="graphmem-mcp-watch").start()

    def _watch(self, end: Callable[[], object]) -> None:
        while not self._ended.wait(_LOOK_EVERY) and not self._is_gone():
            pass
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            end()
        time.sleep(_PATIENCE)
        os._exit(0)  # threads that are at work would hold it up; SQLite takes back what they had not committed

    def _is_gone(self) -> bool:
        if os.getppid() != self._parent:
            return True
        if not hasattr(select, "poll"):
            return False
        looked = select.poll()
        looked.register(self._out, 0)  # that nobody reads any more is told always
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in looked.poll(0))

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that come in, until there are no more and what was asked is answered."""
        send, receive = anyio.create_memory_object_stream[bytes](16)
        token = anyio.lowlevel.current_token()

        def read() -> None:
            with contextlib.suppress(RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while chunk := os.read(self._in, _CHUNK):
                    anyio.from_thread.run(send.send, chunk, token=token)
            with contextlib.suppress(RuntimeError):
                anyio.from_thread.run_sync(send.close, token=token)

        # A thread of ours, since one of anyio's that waits for input would hold up the end of the process.
        threading.Thread(target=read, daemon=True, name="graphmem-mcp-input").start()
        rest = b""
        async with receive:
            async for chunk in receive:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield self._noted(line)
        if rest.strip():
            yield self._noted(rest)
        with anyio.move_on_after(_PATIENCE):
            while self._asked:
                await anyio.sleep(0.01)
        self._ended.set()

    def _noted(self, line: bytes) -> str:
        message = _message(line)
        if "method" in message and "id" in message:
            self._asked.add(message["id"])
        if message and _HALF_PAIR.search(line):  # the SDK answers nothing to what UTF-8 cannot hold
            return clean_text(json.dumps(message, ensure_ascii=False))
        return line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        """Write a message to the client, and note what it answers."""
        data = text.encode()
        try:
            await anyio.to_thread.run_sync(self._write, data, abandon_on_cancel=True)
        except OSError:  # nobody reads any more
            self._ended.set()
        message = _message(data)
        if "method" not in message:
            self._asked.discard(message.get("id"))

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._out, data) :]

    async def flush(self) -> None:
        """Do nothing: what is written is written."""


def _taken(descriptor: int, mode: int) -> int:
    """Return what a standard descriptor is for, and let it be nothing, or standard error for what is printed."""
    private = os.dup(descriptor)
    while private <= 2:  # one of the three was closed
        private = os.dup(descriptor)
    try:
        other = os.dup(2) if mode == os.O_WRONLY else os.open(os.devnull, mode)
    except OSError:
        other = os.open(os.devnull, mode)
    os.dup2(other, descriptor)
    os.close(other)
    return private


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
