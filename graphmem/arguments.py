"""Checks of arguments that many verbs take."""

from collections.abc import Iterable, Sequence

from graphmem.config import check_count
from graphmem.core.keys import clean_text, text_list
from graphmem.core.situations import Situation
from graphmem.errors import InvalidInput
from graphmem.graph import scenes


def checked_situation(value: object) -> Situation:
    """Return a situation; raise InvalidInput for anything else."""
    if not isinstance(value, Situation):
        raise InvalidInput("situation", value, "give a Situation, such as Situation.of(chan='qq', peer='boss')")
    return value


def is_blank(value: object) -> bool:
    """Tell whether a value is a text without anything in it."""
    return isinstance(value, str) and not value.strip()


def checked_limit(limit: int | None, *, default: int = scenes.DEFAULT_LIMIT) -> int:
    """Return how many are wanted at the most; raise InvalidInput for what is no number of things."""
    if limit is None:
        return default
    check_count("limit", limit)
    return limit


def checked_scopes(scopes: Iterable[str] | None) -> Sequence[str] | None:
    """Return the scopes that are read, None for all; raise InvalidInput for what is no list of texts."""
    if scopes is None:
        return None
    names = [clean_text(name) for name in text_list(scopes, "scopes")]
    if len(names) > scenes.KEYS_IN_A_RECALL:
        raise scenes.too_many("scopes", names)
    return names
