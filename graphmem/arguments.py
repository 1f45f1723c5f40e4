"""Checks of arguments that many verbs take."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from graphmem.config import Config, check_count
from graphmem.core.keys import FEATURE_KINDS, key_list, require_key, text_list
from graphmem.core.situations import Situation
from graphmem.errors import InvalidInput
from graphmem.graph import scenes
from graphmem.late import late

if TYPE_CHECKING:
    from graphmem.core import redaction
else:
    redaction = late("graphmem.core.redaction")

# What a name has to have for a secret to be in it. Names are in every turn, and the patterns of secrets take 15 ms to
# load, so most names are passed by this.
_SUSPECT = r"[=:@：＝是为]|密码|口令|密钥|令牌|验证码|[\w-]{16}"


@functools.cache
def _suspect() -> Callable[[str], re.Match[str] | None]:
    return re.compile(_SUSPECT).search


def checked_situation(value: object) -> Situation:
    """Return a situation; raise InvalidInput for anything else."""
    if not isinstance(value, Situation):
        raise InvalidInput("situation", value, "give a Situation, such as Situation.of(chan='qq', peer='boss')")
    return value


def check_config(value: object) -> None:
    """Raise InvalidInput for what are no settings."""
    if not isinstance(value, Config):
        raise InvalidInput("config", value, "give a Config, such as Config(language='zh')")


def is_blank(value: object) -> bool:
    """Tell whether a value is a text without anything in it."""
    return isinstance(value, str) and not value.strip()


def checked_limit(limit: int | None, *, default: int = scenes.DEFAULT_LIMIT) -> int:
    """Return how many are wanted at the most; raise InvalidInput for what is no number of things."""
    if limit is None:
        return default
    check_count("limit", limit)
    return limit


def checked_ids(argument: str, ids: object) -> list[int]:
    """Return the ids of rows as a list; raise InvalidInput for what is none."""
    if not isinstance(ids, Iterable) or isinstance(ids, str | bytes | Mapping):
        raise InvalidInput(argument, ids, "give a list of ids")
    found = list(ids)
    for each in found:
        check_count(argument, each, low=1)
    return found


def new_keys(keys: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """Return the keys of scenes that may be made; raise SecretRefused for a secret among them."""
    given = [keys] if isinstance(keys, str) else text_list(keys, argument)
    for key in given:
        refuse_secret_names(argument, [named(*part.partition(":")) for part in key.split("/")], key)
    return key_list(given, argument)


def new_key(key: str, argument: str = "key") -> str:
    """Return the key of a scene that may be made; raise InvalidInput where nothing is left of it, SecretRefused."""
    new_keys(key, argument)
    return require_key(key, argument)


def named(kind: str, colon: str, value: str) -> str:
    """Return what a feature may tell of a secret: its value, and a kind that could be the name of one.

    >>> named("chan", ":", "qq"), named("password", ":", "qq")
    ('qq', 'password:qq')
    """
    return value if kind in FEATURE_KINDS else kind + colon + value


def refuse_secret_names(argument: str, names: Iterable[str], whole: str = "") -> None:
    """Raise SecretRefused for the first name with a secret in it. whole: what the names are parts of, told apart."""
    given = list(names)
    if _suspect()("\n".join(given)):
        redaction.refuse_secrets(**{argument: [whole] if whole else given})
