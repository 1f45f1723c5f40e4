"""Pages as HTML. Whatever comes of a memory is text in them: escaped, with what turns lines around shown as escapes."""

import datetime as dt
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from markupsafe import Markup, escape

from graphmem.surfaces.output import printable
from graphmem.surfaces.panel import charts
from graphmem.surfaces.panel.texts import LANGUAGES, TEXTS


def render(template: str, language: str, zone: dt.tzinfo, told: Mapping[str, Any]) -> str:
    """Return a page. zone: in which times are told. told: what its template names."""

    def say(key: str, **values: object) -> str:
        return text_of(key, language, **values)

    def when(moment: str | None) -> str:
        return "" if moment is None else _when(moment, zone)

    return _PAGES.get_template(template).render(t=say, when=when, language=language, languages=LANGUAGES, **told)


def text_of(key: str, language: str, **values: object) -> str:
    """Return a text of the catalogue.

    >>> text_of("outcome.archived", "en", number=5)
    'Note 5 is archived.'
    """
    return TEXTS[key][LANGUAGES.index(language)].format(**values)


def _when(moment: str, zone: dt.tzinfo) -> str:
    """Return a time as people read it.

    >>> _when("2026-09-07T08:00:30+00:00", dt.UTC)
    '2026-09-07 08:00'
    """
    return dt.datetime.fromisoformat(moment).astimezone(zone).strftime("%Y-%m-%d %H:%M")


def _plain(value: object) -> object:
    """Return what a template shows of a value: of a text, no character that drives how others are shown."""
    return printable(value) if type(value) is str else value


def _lines(text: str) -> str:
    """Return a text of several lines as it is shown."""
    return Markup("\n").join(escape(printable(line)) for line in text.splitlines())


def _in_brief(text: str, most: int) -> str:
    """Return the beginning of a text, in one line.

    >>> _in_brief("one\\n two three", 10)
    'one two…'
    """
    return textwrap.shorten(text[: 4 * most], most, placeholder="…") if " " in text[:most] else text[:most]


def _verbatim(text: str) -> str:
    """Return a text for a field in which it is edited: it has to come back as it is.

    The first line break of a text area is no part of its text; it is doubled.
    """
    return escape("\n" + text if text.startswith("\n") else text)


def _number(value: float) -> str:
    """Return a number as people read it.

    >>> _number(12345), _number(0.12345)
    ('12,345', '0.12')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


_FILTERS: dict[str, Callable[..., Any]] = {"lines": _lines, "verbatim": _verbatim, "brief": _in_brief, "n": _number}

_PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("graphmem.surfaces.panel"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    finalize=_plain,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters |= _FILTERS
_PAGES.globals |= {"columns": charts.columns, "points": charts.points}
