"""Times that a text names, in English and Chinese: dates, months, years, days of the week, and times relative to now.

One expression finds the phrases, the longest at each place. Its named groups say what a phrase is made of, the tables
say what the words mean. What is not sure to be a time names nothing:

- "may" and "march" in small letters are verbs unless a day, a year or a preposition (in, of, since, ...) stands by.
  With a capital they are months inside a sentence, not at its start. Short names (Dec) always need such a neighbour.
- A number is a year only from 1900 to 2100, and only by a month, before 年 or after a word like "in"; not where things
  are counted ("in 2022 items"). Whole dates may lie in any year.
- 07/05/2023 is read in two ways in the world, and so in none here.
"""

import calendar
import datetime as dt
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

MOST_NAMED = 16

_Parts = Mapping[str, str]


def _numbered(words: str, *, first: int = 0) -> dict[str, int]:
    return {word: n for n, word in enumerate(words.split(), first)}


_CHINESE_DIGITS = str.maketrans("〇零○一二两三四五六七八九", "0001223456789")
_COUNTS = {"a": 1, "an": 1, "a couple of": 2, "couple of": 2}
_COUNTS |= _numbered("one two three four five six seven eight nine ten eleven twelve", first=1)
_MONTHS = _numbered("jan feb mar apr may jun jul aug sep oct nov dec", first=1)
# The northern seasons, by their first month.
_SEASONS = {"spr": 3, "sum": 6, "aut": 9, "fal": 9, "win": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}
_WEEKDAYS = _numbered("mon tue wed thu fri sat sun") | _numbered("一 二 三 四 五 六 日") | {"天": 6}
_UNITS = {"天": "day", "周": "week", "星期": "week", "礼拜": "week", "周末": "weekend", "月": "month", "年": "year"}
_CHINESE_STEPS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_STEPS = _CHINESE_STEPS | {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}
_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
_DAYS = {
    word: days
    for days, words in {
        -3: "大前天",
        -2: "day before yesterday,前天",
        -1: "yesterday,last night,昨天,昨日,昨晚,昨夜",
        0: "today,tonight,this morning,this afternoon,this evening,今天,今日,今早,今晨,今晚",
        1: "tomorrow,明天,明日,明早,明晚",
        2: "day after tomorrow,后天",
        3: "大后天",
    }.items()
    for word in words.split(",")
}


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A phrase and the days that it names: those from `start` until before `end`, of that month, day and weekday.

    What is None does not matter: "May 7" has a month and a day of any year. `weekday` counts from Monday, 0.
    """

    text: str
    start: dt.date | None = None
    end: dt.date | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None

    def holds(self, moment: dt.datetime) -> bool:
        """Tell whether the date of a moment, as its own clock shows it, is named."""
        date = moment.date()
        return (
            (self.start is None or self.start <= date)
            and (self.end is None or date < self.end)
            and self.month in (None, date.month)
            and self.day in (None, date.day)
            and self.weekday in (None, date.weekday())
        )


def named_times(text: str, now: dt.datetime) -> tuple[NamedTime, ...]:
    """Return the times that a text names, in its order, each phrase once, at most MOST_NAMED.

    `now` is the local time of whoever speaks; weeks start on Monday. "Since May" and "before May" name May. What is
    told roughly is a whole: "two weeks ago" the week of that day, "a year ago" last year. "The weekend" is the last
    that has begun, "last Friday" the latest before today, "next Friday" the first after it; 上周五 is Friday of last
    week. Impossible dates name nothing. Never raises.

    >>> [named.text for named in named_times("Was it last Friday, in May or on 2023-05-07?", dt.datetime(2026, 5, 6))]
    ['last Friday', 'in May', '2023-05-07']
    """
    today = now.date()
    found: dict[str, NamedTime] = {}
    refused: set[str] = set()
    for match in _phrases(text):
        phrase = text[match.start() : match.end()]
        if match[0] in found or phrase in refused:
            continue
        parts = {n.rstrip("0123456789"): " ".join(p.split()) for n, p in match.groupdict().items() if p is not None}
        if "bare_year" in parts and _COUNTED.match(text, match.end()):
            continue
        try:
            found[match[0]] = _read(phrase, parts, today)
        except (ValueError, OverflowError):  # OverflowError: outside of the years 1 to 9999
            refused.add(phrase)
        if len(found) == MOST_NAMED:
            break
    return tuple(found.values())


def _phrases(text: str) -> Iterator[re.Match[str]]:
    """Yield what may be a time, in small letters."""
    small = text.replace("İ", "I").lower()  # the one character whose small form is two; positions have to stay
    end = 0
    for start in _START.finditer(small):
        word = start[0]
        if word == "the":  # stands before some of the others
            word = found[1] if (found := _AFTER_THE.match(small, start.end())) else word
        if start.start() < end or (word[0].islower() and word not in _FIRST_WORDS):
            continue
        if match := _phrase().match(small, start.start()):
            end = match.end()
            yield match


def _read(phrase: str, parts: _Parts, today: dt.date) -> NamedTime:
    """Return the time, or raise ValueError where the phrase is none."""
    if "capital" in parts and "May" not in phrase and "March" not in phrase:
        raise ValueError("a verb")
    read = next(_READERS[name] for name in parts if name in _READERS)
    return read(phrase, parts, today)


def _read_date(phrase: str, parts: _Parts, today: dt.date) -> NamedTime:
    month, months = _months_meant(parts, today)
    day = _number(parts["day"]) if "day" in parts else None
    year = _year_meant(parts, today, month, months)
    if year is None:
        dt.date(2000, month, 1 if day is None else day)  # a leap year: refuses the 30th of February and no other
        return NamedTime(phrase, month=month, day=day)
    if day is not None:
        return _days(phrase, dt.date(year, month, day), 1)
    if not 1900 <= year <= 2100:
        raise ValueError("more likely a number than a year")
    return _months(phrase, year, month, months)


def _months_meant(parts: _Parts, today: dt.date) -> tuple[int, int]:
    """Return the first month and the number of months."""
    if "month_step" in parts:
        return (today.month - 1 + _STEPS[parts["month_step"]]) % 12 + 1, 1
    if "season" in parts:
        return _SEASONS[parts["season"][:3]], 3
    if "month" in parts:
        return _MONTHS.get(parts["month"][:3]) or _number(parts["month"]), 1
    return 1, 12


def _year_meant(parts: _Parts, today: dt.date, month: int, months: int) -> int | None:
    if "year" in parts:
        return _number(parts["year"])
    if "year_step" in parts:
        return today.year + _YEARS[parts["year_step"]]
    if "month_step" in parts:
        return today.year + (today.month - 1 + _STEPS[parts["month_step"]]) // 12
    if "step" not in parts:
        return None
    step = _STEPS[parts["step"]]
    if step > 0:
        return today.year + (month <= today.month)
    # Months that run into the next year (winter) may have begun in the last one.
    over = month + months - today.month
    return today.year - (over > 12 if step == 0 else (over > 0) + (over > 12))


def _read_day(phrase: str, parts: _Parts, today: dt.date) -> NamedTime:
    return _days(phrase, today + dt.timedelta(days=_DAYS[parts["day_name"].removeprefix("the ")]), 1)


def _read_ago(phrase: str, parts: _Parts, today: dt.date) -> NamedTime:
    return _span(phrase, parts["unit"], -_number(parts["count"]), today)


def _read_step(phrase: str, parts: _Parts, today: dt.date) -> NamedTime:
    step = _STEPS[parts["step"]]
    if "unit" in parts:
        return _span(phrase, parts["unit"], step, today)
    weekday = _WEEKDAYS[parts["weekday_name"][:3]]
    ahead = weekday - today.weekday()
    if parts["step"] not in _CHINESE_STEPS and step:
        ahead = (ahead - 1) % 7 + 1 if step > 0 else -((-ahead - 1) % 7 + 1)
    else:
        ahead += 7 * step
    return _days(phrase, today + dt.timedelta(days=ahead), 1)


def _read_weekend(phrase: str, _parts: _Parts, today: dt.date) -> NamedTime:
    return _span(phrase, "weekend", 0 if today.weekday() >= 5 else -1, today)


def _read_weekday(phrase: str, parts: _Parts, _today: dt.date) -> NamedTime:
    return NamedTime(phrase, weekday=_WEEKDAYS[parts["weekday_name"][:3]])


def _span(phrase: str, unit: str, step: int, today: dt.date) -> NamedTime:
    """Return the day, week, weekend, month or year that is `step` of them after the present one."""
    unit = _UNITS.get(unit, unit)
    monday = dt.timedelta(days=7 * step - today.weekday())
    if unit == "day":
        return _days(phrase, today + dt.timedelta(days=step), 1)
    if unit == "week":
        return _days(phrase, today + monday, 7)
    if unit == "weekend":
        return _days(phrase, today + monday + dt.timedelta(days=5), 2)
    if unit == "month":
        years, month = divmod(today.month - 1 + step, 12)
        return _months(phrase, today.year + years, month + 1, 1)
    return _months(phrase, today.year + step, 1, 12)


def _months(phrase: str, year: int, month: int, count: int) -> NamedTime:
    lengths = (calendar.monthrange(year + m // 12, m % 12 + 1)[1] for m in range(month - 1, month - 1 + count))
    return _days(phrase, dt.date(year, month, 1), sum(lengths))


def _days(phrase: str, start: dt.date, count: int) -> NamedTime:
    end = start.toordinal() + count
    return NamedTime(phrase, start, dt.date.fromordinal(end) if end <= dt.date.max.toordinal() else None)


def _number(word: str) -> int:
    """Return the value of digits, of an English count or of a Chinese number below 100 or read digit by digit."""
    if word in _COUNTS:
        return _COUNTS[word]
    tens, ten, units = word.rpartition("十")
    value = int(units.translate(_CHINESE_DIGITS) or 0)
    return value + 10 * int(tens.translate(_CHINESE_DIGITS) or 1) if ten else value


_READERS: dict[str, Callable[[str, _Parts, dt.date], NamedTime]] = {
    "date": _read_date,
    "named_day": _read_day,
    "ago": _read_ago,
    "stepped": _read_step,
    "weekend": _read_weekend,
    "weekday": _read_weekday,
}


def _one_of(words: Iterable[str]) -> str:
    return "|".join(word.replace(" ", _GAP) for word in sorted(words, key=len, reverse=True))


# Every repetition is bounded, so that the time is linear in the text. All of it is matched with text in small letters.
_GAP = r"[\s\xa0]{1,3}"
_DIGIT = "[0-9０-９]"
_NUMERALS = "0-9０-９〇零○一二两三四五六七八九十"
_CHINESE_FIRST = "上下这本周星礼今昨明前后去大"

_MONTH_NAMES = "january|february|april|june|july|august|september|october|november|december"
_MORE_MONTH_NAMES = "may|march|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
_MONTH = rf"""
    (?P<month@>{_MONTH_NAMES}|{_MORE_MONTH_NAMES}) \b
    (?: (?: (?<=sept) | (?<![a-z]{{4}}) (?<!may) ) \. )?
"""
# The empty group `capital` marks a phrase that is a time only if its month begins with a capital.
_MONTH_OR_CAPITAL = rf"(?: (?! (?:may|march) \b ) | (?P<capital@>) ) {_MONTH}"
_WEEKDAY_NAMES = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_WEEKDAY = f"(?:{_WEEKDAY_NAMES})"
_STEP = f"(?P<step@>{_one_of(filter(str.isascii, _STEPS))})"
_PREPOSITIONS = "in|of|during|since|until|till|before|after|by|from|through"
_PREPOSITION = f"(?:{_PREPOSITIONS})"
_YEAR = rf"(?: ,?{_GAP} | , ) (?P<year@>{_DIGIT}{{4}}) (?![0-9a-z])"
_DAY_FIRST = rf"""
    (?P<day@>{_DIGIT}{{1,2}})
    (?: (?:st|nd|rd|th) (?:{_GAP}of)? {_GAP} {_MONTH} (?:{_YEAR})?
      | {_GAP} (?: of{_GAP} {_MONTH} (?:{_YEAR})? | (?=[a-z]) (?: {_MONTH} {_YEAR} | {_MONTH_OR_CAPITAL} ) ) )
"""
_AFTER_MONTH = rf"""
    (?: {_GAP} (?:the{_GAP})? (?P<day@>{_DIGIT}{{1,2}}) (?:st|nd|rd|th)? \b (?! [.:]?[0-9] | % ) (?:{_YEAR})?
      | (?:{_GAP}of)? {_YEAR} )
"""
_SEASON_NAMES = "spring|summer|autumn|fall|winter"
_SEASON = rf"(?P<season@>{_SEASON_NAMES}) \b"
_BEFORE_YEAR = "to|year|early|late|mid"
_BARE_YEAR = rf"(?P<year@>{_DIGIT}{{4}}) (?! \w | [-/.:,][0-9] ) (?P<bare_year@>)"
_FROM_NOW = rf"\b (?! {_GAP} (?:of|before|after) \b )"  # "the weekend before 4 October" is reckoned from another day

_LETTERS = rf"""
    (?P<date@> {_PREPOSITION}{_GAP} (?: {_MONTH} (?:{_AFTER_MONTH})? | {_BARE_YEAR} )
             | {_WEEKDAY},?{_GAP} {_DAY_FIRST}
             | (?: (?:{_STEP}|{_WEEKDAY},?) {_GAP} )? {_MONTH} {_AFTER_MONTH}
             | {_STEP}{_GAP} (?: {_MONTH_OR_CAPITAL} | {_SEASON} )
             | {_SEASON} (?:{_GAP}of)? {_YEAR}
             | (?P<month@>{_MONTH_NAMES}) \b
             | (?<=[0-9a-z,][ ]) (?P<month@>may|march) \b (?! {_GAP} (?:i|you|he|she|it|we|they) \b ) (?P<capital@>)
             | (?:{_BEFORE_YEAR}) (?:{_GAP}|-) {_BARE_YEAR} )
    | (?P<named_day@> (?:the{_GAP})? (?P<day_name@>{_one_of(filter(str.isascii, _DAYS))}) \b )
    | (?P<ago@> (?P<count@>{_one_of(_COUNTS)}) {_GAP} (?P<unit@>day|week|month|year)s? {_GAP}ago \b )
    | (?P<stepped@>
        {_STEP}{_GAP} (?: (?P<unit@>week|weekend|month|year) | (?P<weekday_name@>{_WEEKDAY}) ) {_FROM_NOW} )
    | (?P<weekend@> (?:the{_GAP})? weekends? {_FROM_NOW} )
    | (?P<weekday@> (?P<weekday_name@>{_WEEKDAY}) s? \b )
"""
_DIGITS = rf"""
    (?P<date@> (?P<year@>{_DIGIT}{{4}}) (?P<mark>[-/.]) (?P<month@>{_DIGIT}{{1,2}}) (?P=mark)
                 (?P<day@>{_DIGIT}{{1,2}}) (?! \.?{_DIGIT} )
             | {_DAY_FIRST} )
    | (?P<ago@> (?P<count@>{_DIGIT}{{1,4}}) {_GAP} (?P<unit@>day|week|month|year)s? {_GAP}ago \b )
"""

_CHINESE_NUMBER = f"{_DIGIT}{{1,4}} | [一二三四五六七八九]?十[一二三四五六七八九]? | [一二三四五六七八九]"
_CHINESE_WEEKDAY = "(?:周|星期|礼拜) (?P<weekday_name@>[一二三四五六日天])"
_CHINESE_STEP = f"(?<![早晚]) (?P<step@>{_one_of(_CHINESE_STEPS)}) 个?"
_CHINESE_YEAR = rf"""
    (?: (?P<year@>{_DIGIT}{{4}} | [〇零○一二三四五六七八九]{{4}}) \s? 年 (?!代)
      | (?<![目以之当从此]) (?P<year_step@>{_one_of(_YEARS)}) (?![龄轻度份纪限]) )
"""
_CHINESE = rf"""
    (?P<date@> (?: {_CHINESE_YEAR} 的? \s? )?
               (?: (?P<month@>{_CHINESE_NUMBER}) \s? | {_CHINESE_STEP.replace("step", "month_step")} ) 月 (?![球亮台饼])
               (?: 份 | \s? (?P<day@>{_CHINESE_NUMBER}) \s? [日号]
                        (?: \s? (?: {_CHINESE_WEEKDAY} | [(（]{_CHINESE_WEEKDAY}[)）] ) )? )?
             | {_CHINESE_YEAR} (?: 的? (?P<season@>[春夏秋冬]) [天季] )? )
    | (?P<named_day@> (?<![目以之当从此]) (?P<day_name@>{_one_of(word for word in _DAYS if not word.isascii())}) )
    | (?P<ago@> (?P<count@>{_CHINESE_NUMBER}|两) (?: 个? (?P<unit@>周|星期|礼拜|天|年) | 个 (?P<unit@>月) ) [之以]? 前 )
    | (?P<stepped@> {_CHINESE_STEP}
        (?: (?P<unit@>周末) | {_CHINESE_WEEKDAY} | (?P<unit@>周|星期|礼拜) (?![期围边转]) ) )
    | (?P<weekend@> 周末 )
    | (?P<weekday@> (?: (?<![{_NUMERALS}几半个]) | (?<=[周期拜][一二三四五六]) ) {_CHINESE_WEEKDAY} (?![次个遍回趟]) )
"""


@functools.cache
def _phrase() -> re.Pattern[str]:
    """Return the expression; a group is written several times, and `@` becomes a number of its own."""
    numbers = itertools.count()
    by_first_character = rf"""
        \b (?=[a-z]) (?: {_LETTERS} )
        | (?={_DIGIT}) (?<!{_DIGIT}) (?<![a-z]) (?<![0-9][.,:/]) (?: {_DIGITS} )
        | (?: (?=[{_NUMERALS}]) (?<![{_NUMERALS}]) | (?=[{_CHINESE_FIRST}]) ) (?: {_CHINESE} )
    """
    return re.compile(re.sub("@", lambda _: str(next(numbers)), by_first_character), re.ASCII | re.VERBOSE)


# Words and characters that begin a phrase. Most words of a text do not, and to look them up is quick.
_START = re.compile(f"[a-z]+|[{_NUMERALS}{_CHINESE_FIRST}]")
_FIRST_WORDS = {
    *"|".join((_PREPOSITIONS, _WEEKDAY_NAMES, _MONTH_NAMES, _MORE_MONTH_NAMES, _SEASON_NAMES, _BEFORE_YEAR)).split("|"),
    *(word.split()[0] for word in (*_STEPS, *_DAYS, *_COUNTS)),
    *(f"{word}s" for word in _WEEKDAY_NAMES.split("|")),
    *("weekend", "weekends"),
}
_AFTER_THE = re.compile(f"{_GAP}([a-z]+)")
# Things that are counted end in s, as do some words that are none.
_COUNTED = re.compile(
    rf"{_GAP}(?!(?:was|is|his|has|does|as|its|this|us|vs|always|perhaps|plus)\b)(?:people|[a-z]{{1,20}}s)\b", re.ASCII
)
