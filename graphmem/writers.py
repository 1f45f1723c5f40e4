"""Writers made of a program or of a model's endpoint: they turn sessions into checkpoints and notes.

Both get what was said in a session, so name only what may read the memory.
"""

import datetime as dt
import email.utils
import os
import random
import re
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from graphmem import log
from graphmem.asking import Answer, Endpoint, NoAnswer, ask_model, run_program
from graphmem.config import LONGEST_WAIT, Config, check_count, check_number, check_program
from graphmem.core.model import Writer, WriterTask
from graphmem.core.times import Clock, system_clock
from graphmem.errors import BudgetSpent, GraphmemError, WriterFailed

_LONGEST_TEXT = 1 << 20  # bytes
_OWN_RUN = {"GRAPHMEM_WRITER": "1"}
_KEY_VARIABLE = "GRAPHMEM_WRITER_KEY"
_MOST_RETRIES = 100
_FIRST_PAUSE = 1.0  # seconds
_LONGEST_PAUSE = 60.0


class TokenBudget(Protocol):
    """Counts the tokens of each day, which is told as in 2026-11-30."""

    def used(self, day: str, /) -> int:
        """Return how many tokens a day has had."""
        ...

    def add(self, day: str, tokens: int, /) -> None:
        """Count tokens. Fewer than none takes back what was counted too much: never more than was counted before."""
        ...


class OwnBudget:
    """Counts the tokens that this object was told of, for as long as it lives."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._lock = threading.Lock()

    def used(self, day: str, /) -> int:
        """Return how many tokens a day has had."""
        return self._tokens[day]

    def add(self, day: str, tokens: int, /) -> None:
        """Count tokens, or take some back."""
        with self._lock:
            self._tokens[day] += tokens


def writer_of(
    config: Config, budget: TokenBudget, environ: Mapping[str, str] = os.environ, *, clock: Clock = system_clock
) -> Writer | None:
    """Return the writer that the settings name, None where they name none.

    The key of an endpoint is read from GRAPHMEM_WRITER_KEY, else, for https://api.openai.com alone, from
    OPENAI_API_KEY. budget: where its tokens are counted. Raises InvalidInput.
    """
    if config.writer_command:
        return command_writer(config.writer_command, timeout=config.writer_timeout)
    if not config.writer_url:
        return None
    return endpoint_writer(
        config.writer_url,
        config.writer_model,
        key=_key_of(config.writer_url, environ),
        timeout=config.writer_timeout,
        retries=config.writer_max_retries,
        tokens_per_day=config.writer_tokens_per_day,
        budget=budget,
        clock=clock,
    )


def _key_of(url: str, environ: Mapping[str, str]) -> str | None:
    own = environ.get(_KEY_VARIABLE, "").strip()
    parts = urllib.parse.urlsplit(url)
    # Another endpoint, or who listens on the way, must not get a key that was made for this one.
    if own or (parts.scheme, parts.hostname) != ("https", "api.openai.com"):
        return own or None
    return environ.get("OPENAI_API_KEY", "").strip() or None


def command_writer(argv: Sequence[str], *, timeout: float = 120.0) -> Writer:
    """Return a writer that runs a program: the prompt on its standard input, the text on its standard output, in UTF-8.

    argv: the program and its arguments; no shell reads them. timeout: seconds. A program that takes longer, or prints
    more than 1 MiB, is killed with all that it started. It runs with the variable GRAPHMEM_WRITER=1: hooks of an agent
    that see it know that this run is none of a person, and leave it alone. Raises InvalidInput for no program; the
    writer raises WriterFailed when the program fails or prints no text.
    """
    check_program("argv", argv)
    check_number("timeout", timeout, low=0.001, high=LONGEST_WAIT)
    words = tuple(argv)

    def write(task: WriterTask, /) -> str:
        said = run_program(words, task.prompt, timeout=timeout, longest=_LONGEST_TEXT, environment=_OWN_RUN)
        try:
            text = said.decode()
        except UnicodeDecodeError:
            raise WriterFailed(f"{words[0]} printed what is no UTF-8; have it print UTF-8") from None
        if not text.strip():
            raise WriterFailed(f"{words[0]} printed no text; it is to read the prompt from its standard input")
        return text

    return write


def endpoint_writer(
    base_url: str,
    model: str,
    *,
    key: str | None = None,
    timeout: float = 120.0,
    retries: int = 3,
    tokens_per_day: int = 0,
    budget: TokenBudget | None = None,
    clock: Clock = system_clock,
    sleep: Callable[[float], object] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> Writer:
    """Return a writer that asks a model behind an OpenAI-compatible endpoint (`/chat/completions`).

    base_url: such as `http://localhost:11434/v1`. key: sent as a bearer token, to that address alone: redirections are
    not followed. timeout: seconds for one answer. retries: how often it is asked again after a failure that may pass:
    no connection, no answer in time, or 408, 409, 429 and 5xx. Pauses between are 1, 2, 4 and so on to 60 s, less up to
    a half by chance, and not shorter than the endpoint asks for; who asks for more than 60 s is not asked again.

    tokens_per_day: of question and answer, in a day of UTC; 0 for no limit, and nothing is counted. Each question is
    counted before it is asked, at what it is estimated to cost, and set right afterwards; one answer may so exceed the
    limit. budget: where they are counted, None for a count of this writer's own. Where that fails afterwards, the
    estimate stands and the log tells why: the answer is paid.

    Raises InvalidInput; the writer raises WriterFailed when there is no answer or one that is cut off or empty, and
    when the tokens of the day do not suffice.
    """
    endpoint = Endpoint(base_url, model, key, timeout)
    check_count("retries", retries, high=_MOST_RETRIES)
    check_count("tokens_per_day", tokens_per_day)
    counted = OwnBudget() if budget is None else budget

    def write(task: WriterTask, /) -> str:
        turn = 0
        while True:
            turn += 1
            try:
                return _ask_within(endpoint, task, tokens_per_day, counted, _day(clock)).text
            except NoAnswer as failed:
                if not failed.again:
                    raise
                told = failed
            wanted = _seconds_until(told.after, clock())
            if turn > retries or wanted > _LONGEST_PAUSE:
                rest = f"; it asks for {wanted:.0f} s of rest" if wanted > _LONGEST_PAUSE else ""
                often = f"; it was asked {turn} times" if turn > 1 else ""
                raise WriterFailed(f"{told}{rest}{often}") from None
            sleep(max(wanted, _pause(turn, chance())))

    return write


def _ask_within(endpoint: Endpoint, task: WriterTask, limit: int, budget: TokenBudget, day: str) -> Answer:
    """Ask once, and count what it costs where that is limited."""
    if not limit:
        return ask_model(endpoint, task.instructions, task.text)
    need = estimated_tokens(task.instructions) + estimated_tokens(task.text)
    _require_room(limit, budget.used(day), need, day)
    # Before, since it costs as much when this process is killed meanwhile.
    budget.add(day, need)
    try:
        answer = ask_model(endpoint, task.instructions, task.text)
    except NoAnswer as failed:
        if failed.tokens is not None:
            budget.add(day, failed.tokens - need)
        raise
    cost = need + estimated_tokens(answer.text) if answer.tokens is None else answer.tokens
    try:
        budget.add(day, cost - need)
    except GraphmemError as error:
        log.warning("of the %d tokens of an answer %d are counted, as it was estimated: %s", cost, need, error)
    return answer


def _day(clock: Clock) -> str:
    return clock().astimezone(dt.UTC).date().isoformat()


def _require_room(limit: int, used: int, need: int, day: str) -> None:
    if need > limit:
        raise WriterFailed(
            f"this needs about {need} tokens, more than the budget of {limit} a day: raise writer_tokens_per_day"
        )
    if used + need > limit:
        raise BudgetSpent(
            f"the budget of {limit} tokens for {day} is used up ({used}, and this needs about {need}): "
            "it is free again tomorrow (UTC), or raise writer_tokens_per_day"
        )


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter for each character of ASCII, one for each other.

    Measured with the vocabularies o200k_base and cl100k_base of OpenAI: English of LoCoMo 4.5 and 4.3 characters a
    token, Python 4.2; Chinese of MADial-Bench 0.85 and 1.3 tokens a character besides ASCII. Digits and punctuation
    without words have up to twice as many tokens as estimated.

    >>> estimated_tokens("We deploy with pnpm."), estimated_tokens("用pnpm部署")
    (5, 4)
    """
    plain = len(text.encode("ascii", "ignore"))
    return len(text) - plain + -(-plain // 4)


def _pause(turn: int, chance: float) -> float:
    """Return seconds to wait after the first, second, ... failure. chance: 0 to 1, so that many do not come at once.

    >>> [_pause(turn, 0.0) for turn in (1, 2, 3, 7, 100)], _pause(3, 1.0)
    ([1.0, 2.0, 4.0, 60.0, 60.0], 2.0)
    """
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (turn - 1)) * (1 - chance / 2)


def _seconds_until(after: str, now: dt.datetime) -> float:
    """Return the seconds that a header Retry-After asks for (RFC 9110, 10.2.3), 0 where it says nothing readable.

    >>> now = dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC)
    >>> [_seconds_until(after, now) for after in ("2", "Mon, 30 Nov 2026 08:00:30 GMT", "-1", "soon", "")]
    [2.0, 30.0, 0.0, 0.0, 0.0]
    """
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", after.strip()):
        return float(after)
    try:
        moment = email.utils.parsedate_to_datetime(after)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return max(0.0, (moment - now).total_seconds())
