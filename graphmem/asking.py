"""Asking a program, or a model behind an endpoint: once, until a deadline, for an answer of bounded length.

What is made of the answer is the business of who asks. A failure is one line that says what to do and holds no key.
"""

import http.client
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from graphmem.config import LONGEST_WAIT, check_address, check_number
from graphmem.errors import InvalidInput, WriterFailed, WriterUnavailable

_LONGEST_ANSWER = 1 << 20  # bytes
_READ = 1 << 14  # bytes at a time
_SHOWN = 160
# What to do about a refusal, by its status.
_REMEDIES = {
    400: "check the name of the model, and that the text is not too long for it",
    401: "check the key",
    403: "check the key, and what it may use",
    404: "check the address and the name of the model",
    413: "the text is too long for it",
    429: "ask it less often, or raise the limits of the key",
}
# What may be another answer the next time, besides 5xx. The same are asked again by the clients of OpenAI.
_PASSING = frozenset({408, 409, 429})


# ---- a program


def run_program(
    argv: Sequence[str],
    told: str,
    *,
    timeout: float,
    longest: int,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Run a program with a text on its standard input; return what it printed on its standard output.

    timeout: seconds. longest: bytes that it may print, on either output. environment: variables it gets besides those
    of this process. It has a process group of its own, all of which is killed when it does not come to an end by
    itself. Raises WriterFailed where it cannot be run, takes or prints too much, or fails.
    """
    try:
        code, said, complained = _run(argv, told, timeout, longest, environment or {})
    except (TimeoutError, subprocess.TimeoutExpired):
        raise WriterFailed(f"{argv[0]} did not answer within {timeout:g} s; give it more time") from None
    except OSError as error:
        raise WriterUnavailable(f"{argv[0]} cannot be run: {error.strerror}; check the command") from error
    if code:
        reason = _last_words(complained.decode("utf-8", "replace"))
        raise WriterFailed(f"{argv[0]} failed with exit code {code}{': ' if reason else ''}{reason}")
    return said


def _run(
    argv: Sequence[str], told: str, timeout: float, longest: int, environment: Mapping[str, str]
) -> tuple[int, bytes, bytes]:
    deadline = time.monotonic() + timeout
    with subprocess.Popen(  # noqa: S603 (the program is the caller's own)
        list(argv),
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, **environment},
    ) as program:
        try:
            said, complained = _talk(program, argv[0], told, deadline, longest)
            return program.wait(max(0.0, deadline - time.monotonic())), said, complained
        except BaseException:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(program.pid, signal.SIGKILL)
            raise


def _talk(program: subprocess.Popen[bytes], name: str, told: str, deadline: float, longest: int) -> tuple[bytes, bytes]:
    """Write to a program and read what it prints until it closes both outputs."""
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stderr is not None
    rest = memoryview(told.encode("utf-8", "replace"))
    printed = {program.stdout.fileno(): bytearray(), program.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        selector.register(program.stdin, selectors.EVENT_WRITE)
        for output in printed:
            selector.register(output, selectors.EVENT_READ)
        while not printed.keys().isdisjoint(selector.get_map()):
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if key.fileobj is program.stdin:
                    rest = _written(key.fd, rest)
                    if not rest:
                        selector.unregister(program.stdin)
                        program.stdin.close()
                    continue
                part = os.read(key.fd, _READ)
                printed[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                if len(printed[key.fd]) > longest:
                    raise WriterFailed(f"{name} printed more than {longest} bytes; have it print less")
    said, complained = map(bytes, printed.values())
    return said, complained


def _written(pipe: int, text: memoryview) -> memoryview:
    """Write the beginning of a text; return the rest, none when nobody reads it."""
    try:
        return text[os.write(pipe, text[: select.PIPE_BUF]) :]
    except BrokenPipeError:
        return text[:0]


# ---- a model behind an endpoint


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind an OpenAI-compatible address (`/chat/completions`). Raises InvalidInput for what is none.

    base_url: such as `http://localhost:11434/v1`. key: sent as a bearer token, to that address alone, None for none.
    timeout: seconds.
    """

    base_url: str
    model: str
    key: str | None = field(repr=False)
    timeout: float

    def __post_init__(self) -> None:
        check_address("base_url", self.base_url)
        if not isinstance(self.model, str) or not self.model.strip():
            raise InvalidInput("model", self.model, "give the name of a model")
        if self.key is not None and not (isinstance(self.key, str) and self.key.isascii() and self.key.isprintable()):
            raise InvalidInput("key", "(hidden)", "give a key of printable ASCII characters")
        check_number("timeout", self.timeout, low=0.001, high=LONGEST_WAIT)

    @property
    def address(self) -> str:
        """Where it is asked."""
        return f"{self.base_url.rstrip('/')}/chat/completions"


class Answer(NamedTuple):
    """What a model said. tokens: what this cost, question and answer, None where the endpoint does not tell."""

    text: str
    tokens: int | None


_OF_THE_QUESTION = frozenset({400, 413, 422})


class NoAnswer(WriterFailed):
    """A model gave no answer, or none that can be used.

    again: to ask again may help. after: what the endpoint says of when, in the form of the header Retry-After, '' for
    nothing. tokens: what this cost, None where it may have cost something that nobody tells. unheard: the question
    itself is not at fault.
    """

    def __init__(
        self, reason: str, *, again: bool = False, after: str = "", tokens: int | None = None, unheard: bool = False
    ) -> None:
        super().__init__(reason)
        self.unheard = unheard or again
        self.again = again
        self.after = after
        self.tokens = tokens


def ask_model(endpoint: Endpoint, instructions: str, text: str, **options: object) -> Answer:
    """Ask a model once. options: fields of the request besides model and messages, such as temperature.

    Raises NoAnswer. An answer that was cut off is none.
    """
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
    body = json.dumps({"model": endpoint.model, "messages": messages, **options}, ensure_ascii=False)
    said = _post(endpoint, body.encode("utf-8", "replace"))
    none = f"{endpoint.address} gave no answer of a model: "
    try:
        answer = json.loads(said)
        choice = answer["choices"][0]
        content = choice["message"]["content"]
        finish = choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoAnswer(none + _told_by(endpoint, said.decode("utf-8", "replace"))) from None
    tokens = _tokens_told(answer)
    if finish == "length":
        raise NoAnswer(f"{endpoint.model} was cut off before its end: let it say more, or tell it less", tokens=tokens)
    if finish == "content_filter":
        raise NoAnswer(f"{endpoint.model} left something out: a filter of the endpoint refused it", tokens=tokens)
    if isinstance(content, list):
        content = "".join(str(piece["text"]) for piece in content if isinstance(piece, dict) and "text" in piece)
    if not isinstance(content, str) or not content.strip():
        raise NoAnswer(f"{none}its text is empty", tokens=tokens)
    # JSON can hold half a character, which no file can.
    return Answer(content.encode("utf-8", "replace").decode(), tokens)


def _tokens_told(answer: Mapping[str, Any]) -> int | None:
    usage = answer.get("usage")
    told = usage.get("total_tokens") if isinstance(usage, dict) else None
    believable = isinstance(told, int) and not isinstance(told, bool) and 0 <= told < 1 << 40
    return told if believable else None


def _post(endpoint: Endpoint, body: bytes) -> bytes:
    headers = {"Content-Type": "application/json"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    address, timeout = endpoint.address, endpoint.timeout
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 (its scheme is checked)
    late = f"{address} did not answer within {timeout:g} s; give it more time"
    deadline = time.monotonic() + timeout
    opener = urllib.request.build_opener(_NoRedirection, _Plain(deadline), _Secure(deadline))
    answer = bytearray()
    try:
        with opener.open(request, timeout=timeout) as response:
            while part := response.read1(_READ):
                answer += part
                if len(answer) > _LONGEST_ANSWER:
                    raise NoAnswer(f"{address} answered more than {_LONGEST_ANSWER} bytes; check the address")
            # Who closes within the head has said nothing; `length` is what is missing of what was announced.
            broken = not answer or bool(response.length)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(endpoint, error) from None
    except urllib.error.URLError as error:
        told = f"{address} cannot be reached: {_told_by(endpoint, str(error.reason))}; check the address"
        raise NoAnswer(late if isinstance(error.reason, TimeoutError) else told, again=True, tokens=0) from None
    except TimeoutError:
        raise NoAnswer(late, again=True) from None
    except http.client.IncompleteRead:
        broken = True
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = _told_by(endpoint, str(error)) or type(error).__name__
        again = not isinstance(error, ValueError)
        raise NoAnswer(f"{address} cannot be reached: {reason}; check the address", again=again) from None
    if broken:
        raise NoAnswer(f"{address} gave no answer of a model: it broke off half way", again=True)
    return bytes(answer)


def _refusal(endpoint: Endpoint, error: urllib.error.HTTPError) -> NoAnswer:
    said = ""
    with suppress(OSError, http.client.HTTPException):
        said = error.read(_READ).decode("utf-8", "replace")
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        said = str(json.loads(said)["error"]["message"])
    remedy = _REMEDIES.get(error.code, "try again later" if error.code >= 500 else "check address, model and key")
    if 300 <= error.code < 400:
        # It may be anybody's, and the key is for who was named.
        remedy = f"give the address to which it sends: {_told_by(endpoint, error.headers.get('Location', ''))}"
    reason = _told_by(endpoint, f"{error.reason}: {said}" if said else str(error.reason))
    return NoAnswer(
        f"{endpoint.address} refused: {error.code} {reason}; {remedy}",
        again=error.code >= 500 or error.code in _PASSING,
        after=error.headers.get("Retry-After", ""),
        tokens=0,
        unheard=error.code not in _OF_THE_QUESTION,
    )


def _told_by(endpoint: Endpoint, text: str) -> str:
    """Return the beginning of what an endpoint told, which may be as long as it likes and hold the key."""
    return shown(text.replace(endpoint.key, "(hidden)") if endpoint.key else text)


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Timed(urllib.request.AbstractHTTPHandler):
    """Reads answers until a deadline: the timeout of a socket is that of one read, and who drips would never end."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._response = type("_Response", (_TimedResponse,), {"deadline": deadline})

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> http.client.HTTPResponse:
        def connection(host: str, /, **more: Any) -> http.client.HTTPConnection:
            made: http.client.HTTPConnection = http_class(host, **more)
            made.response_class = self._response
            return made

        return super().do_open(connection, req, **options)


class _Plain(_Timed, urllib.request.HTTPHandler):
    pass


class _Secure(_Timed, urllib.request.HTTPSHandler):
    pass


class _TimedResponse(http.client.HTTPResponse):
    deadline: ClassVar[float]

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(_TimedReads(self.fp.detach(), sock, self.deadline))


class _TimedReads(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float) -> None:
        self._raw, self._socket, self._deadline = raw, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


# ---- what is shown of what they said


def shown(said: str) -> str:
    """Return the beginning of what was said, in one line.

    >>> shown("<html>\\n  <body>"), len(shown("x" * 1000))
    ('<html> <body>', 160)
    """
    text = " ".join(said.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _last_words(said: str) -> str:
    """Return the end of what was said, in one line: who fails says last why.

    >>> _last_words("Traceback:\\n  KeyError: 'model'\\n")
    "Traceback: KeyError: 'model'"
    """
    text = " ".join(said.split())
    return text if len(text) <= _SHOWN else f"...{text[3 - _SHOWN :]}"
