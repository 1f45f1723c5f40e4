"""Times: aware datetimes inside, UTC text of one fixed width (`2026-09-04T05:59:00.000Z`) in the store."""

import contextlib
import datetime as dt
import functools
import re
from collections.abc import Callable

from graphmem.errors import InvalidInput

_FIRST_OF_MILLISECONDS = 1e11  # as seconds that is the year 5138

Clock = Callable[[], dt.datetime]


def system_clock() -> dt.datetime:
    """Return the present instant."""
    return dt.datetime.now(dt.UTC)


def read_time(value: dt.datetime | str, zone: dt.tzinfo, *, argument: str = "at") -> dt.datetime:
    """Return an aware datetime in UTC.

    A time without offset is read in `zone`. A bare date stays that date: it is midnight UTC of it.

    >>> read_time("2026-03-01T09:00:00+08:00", dt.UTC).isoformat()
    '2026-03-01T01:00:00+00:00'
    """
    moment = value
    if isinstance(moment, str):
        with contextlib.suppress(ValueError):
            return dt.datetime.combine(dt.date.fromisoformat(moment.strip()), dt.time(), dt.UTC)
        try:
            moment = dt.datetime.fromisoformat(moment.strip())
        except ValueError:
            raise InvalidInput(argument, value, "no ISO 8601 time; write 2026-03-01T09:00:00+08:00") from None
    if not isinstance(moment, dt.datetime):
        raise InvalidInput(argument, value, "give a datetime or an ISO 8601 text")
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(dt.UTC)
    except OverflowError:
        raise InvalidInput(argument, value, "outside of the years 1 to 9999") from None


def utc_text(moment: dt.datetime) -> str:
    """Return the stored form of an aware datetime.

    >>> utc_text(dt.datetime(2026, 9, 4, 5, 59, tzinfo=dt.UTC))
    '2026-09-04T05:59:00.000Z'
    """
    there = moment if moment.tzinfo is dt.UTC else moment.astimezone(dt.UTC)
    return there.isoformat("T", "milliseconds")[:23] + "Z"


_FOREIGN = r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\d*\s*(Z|[+-]\d\d:?\d\d)?"


def foreign_time(value: object) -> str:
    """Return the stored form of a time as another program wrote it, '' for what is none.

    That is ISO 8601 with a space or a T, UTC where no offset follows, or milliseconds (also seconds) since 1970.

    >>> foreign_time("2026-09-21 03:04:05"), foreign_time("2026-09-21 03:04:05.123456789 +0800 CST")
    ('2026-09-21T03:04:05.000Z', '2026-09-20T19:04:05.123Z')
    >>> foreign_time(1790000000000), foreign_time("2026-09-21"), foreign_time("soon")
    ('2026-09-21T14:13:20.000Z', '2026-09-21T00:00:00.000Z', '')
    """
    is_one = isinstance(value, int | float | str | dt.datetime) and not isinstance(value, bool)
    return _foreign_time(value) if is_one else ""


@functools.lru_cache(maxsize=1 << 12)
def _foreign_time(value: float | str | dt.datetime) -> str:
    with contextlib.suppress(InvalidInput, ValueError, OverflowError, OSError):
        if isinstance(value, int | float) and value > 0:
            seconds = value / 1000 if value >= _FIRST_OF_MILLISECONDS else value
            return utc_text(dt.datetime.fromtimestamp(seconds, dt.UTC))
        if isinstance(value, dt.datetime):
            return utc_text(value if value.tzinfo else value.replace(tzinfo=dt.UTC))
        if isinstance(value, str):
            match = re.match(_FOREIGN, value.strip())
            return utc_text(read_time("".join(part or "" for part in match.groups()) if match else value, dt.UTC))
    return ""


def days_before(at: str, days: float) -> str:
    """Return the stored time so many days before another; '' when it is before the year 1, so that nothing is earlier.

    >>> days_before("2026-09-04T05:59:00.000Z", 1.5), days_before("2026-09-04T05:59:00.000Z", 1e6)
    ('2026-09-02T17:59:00.000Z', '')
    """
    try:
        return utc_text(dt.datetime.fromisoformat(at) - dt.timedelta(days=days))
    except OverflowError:
        return ""


def part_of_day(moment: dt.datetime) -> str:
    """Return night, morning, afternoon or evening: from 0, 6, 12 and 18 o'clock on.

    >>> part_of_day(dt.datetime(2026, 9, 4, 5, 59))
    'night'
    """
    return ("night", "morning", "afternoon", "evening")[moment.hour // 6]
