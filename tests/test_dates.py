"""Times that a question names, in English and Chinese."""

import calendar
import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem.core.dates import MOST_NAMED, _phrase, _phrases, named_times

# A Wednesday; the week is 4 to 10 May, the weekend before it 2 and 3 May.
NOW = dt.datetime.fromisoformat("2026-05-06T15:30")

ENGLISH_MONTHS = calendar.month_name
CHINESE_DIGITS = "〇一二三四五六七八九"
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def span(text, now=NOW):
    """First day and last day of the only time that a text names, in ISO form; None where it names none."""
    found = named_times(text, now)
    if not found:
        return None
    (only,) = found
    assert (only.month, only.day, only.weekday) == (None, None, None), only
    return f"{only.start}/{only.end - dt.timedelta(days=1)}"


def phrases(text):
    return [named.text for named in named_times(text, NOW)]


def chinese_number(number):
    tens, units = divmod(number, 10)
    head = "" if tens == 0 else "十" if tens == 1 else CHINESE_DIGITS[tens] + "十"
    return head + (CHINESE_DIGITS[units] if units else "")


def chinese_year(year):
    return "".join(CHINESE_DIGITS[int(digit)] for digit in f"{year:04}")


def ordinal(day):
    ending = "th" if 4 <= day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def day_forms(d):
    """Ways to write the day and the month."""
    name = ENGLISH_MONTHS[d.month]
    short = name[:3] if name == "May" else name[:3] + "."
    for month in (name, name[:3], short, name.upper()):
        if month not in ("MAY", "MARCH"):
            yield f"{d.day} {month}"
        yield f"{month} {d.day}"
        yield f"{ordinal(d.day)} of {month}"
        yield f"{month} {ordinal(d.day)}"
    yield f"{name.lower()} {d.day}"
    yield f"{ordinal(d.day)} {name.lower()}"
    yield f"{d.month}月{d.day}日"
    yield f"{d.month:02} 月 {d.day:02} 号"
    yield f"{chinese_number(d.month)}月{chinese_number(d.day)}日"


def date_forms(d):
    """Ways to write a whole date."""
    year, name = f"{d.year:04}", ENGLISH_MONTHS[d.month]
    yield d.isoformat()
    for mark in "-/.":
        yield f"{year}{mark}{d.month}{mark}{d.day}"
    for form in (f"{d.day} {name}", f"{name} {ordinal(d.day)}", f"{ordinal(d.day)} of {name.lower()}"):
        yield f"{form} {year}"
        yield f"{form}, {year}"
        yield f"{form},{year}"
        yield f"{calendar.day_name[d.weekday()]}, {form}, {year}"
    yield f"{year}年{d.month}月{d.day}日"
    yield f"{year}年{d.month}月{d.day}号星期{'一二三四五六日'[d.weekday()]}"
    yield f"{year} 年 {d.month} 月 {d.day} 日"
    yield f"{year}年{d.month}月{d.day}日".translate(FULL_WIDTH)
    yield f"{chinese_year(d.year)}年{chinese_number(d.month)}月{chinese_number(d.day)}日"


def noon(d):
    return dt.datetime.combine(d, dt.time(12))


# ---- dates of the calendar


FRAMES = ("{}", "What happened on {}?", "我想问{}发生了什么", "({})", "she said: {}, then left")


@given(d=st.dates(), frame=st.sampled_from(FRAMES))
def test_every_way_to_write_a_date_names_that_day_alone(d, frame):
    for form in date_forms(d):
        (named,) = named_times(frame.format(form), NOW)

        assert named.text == form
        assert named.holds(noon(d))
        assert d == dt.date.max or not named.holds(noon(d + dt.timedelta(days=1)))
        assert d == dt.date.min or not named.holds(noon(d - dt.timedelta(days=1)))


@given(d=st.dates(min_value=dt.date(1, 1, 2), max_value=dt.date(9999, 12, 30)), frame=st.sampled_from(FRAMES))
def test_a_day_without_a_year_is_that_day_of_any_year(d, frame):
    for form in day_forms(d):
        (named,) = named_times(frame.format(form), NOW)

        assert (named.text, named.month, named.day, named.start) == (form, d.month, d.day, None)
        assert named.holds(noon(d))
        assert not named.holds(noon(d + dt.timedelta(days=1)))


@given(d=st.dates(min_value=dt.date(1900, 1, 1), max_value=dt.date(2100, 12, 31)))
def test_months_and_years_hold_their_days_alone(d):
    name = ENGLISH_MONTHS[d.month]
    last = d.replace(day=calendar.monthrange(d.year, d.month)[1])
    for form in (f"{name} {d.year}", f"{name[:3]} of {d.year}", f"{d.year}年{d.month}月", f"{d.year}年{d.month}月份"):
        assert span(f"x {form}") == f"{d.replace(day=1)}/{last}", form
    for form in (f"in {d.year}", f"early {d.year}", f"the year {d.year}", f"{d.year}年", f"{chinese_year(d.year)}年"):
        assert span(f"x {form}") == f"{d.year}-01-01/{d.year}-12-31", form


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("What did we do in May?", 5),
        ("in may", 5),
        ("since March", 3),
        ("the best of Dec", 12),
        ("during jan.", 1),
        ("was it april", 4),
        ("When did Melanie go camping in June?", 6),
        ("and May was warm", 5),
        ("五月去了哪里", 5),
        ("和我一样是五月份出生的", 5),
        ("十二月", 12),
    ],
)
def test_a_month_alone_is_that_month_of_any_year(text, month):
    (named,) = named_times(text, NOW)

    assert (named.month, named.day, named.start, named.end) == (month, None, None, None)
    assert named.holds(noon(dt.date(1999, month, 3)))
    assert not named.holds(noon(dt.date(1999, month % 12 + 1, 3)))


@pytest.mark.parametrize(
    "text",
    [
        "may I ask",
        "May I ask? May we?",
        "and how May I help",
        "You may go. May you live long!",
        "this may be wrong, the last may differ, what is next may surprise",
        "THIS MAY BE IT AND MAY FAIL",
        "these 2 may fail",
        "THESE 2 MAY FAIL",
        "they march on",
        "March on!",
        "Jan said it, mar the sep",
        "decide on marching with Mayor Augustus in Mayfair",
        "maybe",
    ],
)
def test_words_that_look_like_months_are_none(text):
    assert phrases(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-30",
        "2023-13-01",
        "2023-00-10",
        "0000-01-01",
        "February 30",
        "31 June 2023",
        "May 0",
        "May 32",
        "2023年2月30日",
        "13月",
        "2月30号",
        "零月",
        "9999 years ago",
        "99999 days ago",
    ],
)
def test_impossible_dates_name_nothing(text):
    assert phrases(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "port 2022",
        "localhost:2022",
        "2022 items",
        "in 2022 items",
        "of 2000 tests",
        "in 1899 and by 2101",
        "in 20221",
        "in 2022.5 seconds",
        "in 2022kg",
        "version 1.2023.5.7",
        "10.2023.5.7.1",
        "192.168.1.20",
        "3个月",
        "两月",
        "上个",
        "１２３４５月",
        "1,000 days ago",
        "2.5 weeks ago",
        "两三天前后",
        "this",
        "1990年代",
        "the weekend of the wedding",
        "一周一次",
        "2周一次，每周一次",
        "登上月球",
        "下周期",
        "目前年龄",
        "以前天天下雨",
        "the sun sat on mon",
        "summer",
        "fall over",
        "in 5 days",
        "a few days ago",
    ],
)
def test_numbers_and_words_that_are_no_times_name_nothing(text):
    assert phrases(text) == []


def test_a_year_before_a_verb_is_a_year():
    assert phrases("Where in 2022 was he, and in 2021 does he") == ["in 2022", "in 2021"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("summer 2021", "2021-06-01/2021-08-31"),
        ("winter of 2023", "2023-12-01/2024-02-29"),
        ("last summer", "2025-06-01/2025-08-31"),
        ("last spring", "2025-03-01/2025-05-31"),
        ("this fall", "2026-09-01/2026-11-30"),
        ("2021年夏天", "2021-06-01/2021-08-31"),
        ("去年秋天", "2025-09-01/2025-11-30"),
    ],
)
def test_seasons_are_those_of_the_north_in_whole_months(text, expected):
    assert span(text) == expected


# ---- times relative to now


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today tonight", None),
        ("today", "2026-05-06/2026-05-06"),
        ("Yesterday's plan", "2026-05-05/2026-05-05"),
        ("last night", "2026-05-05/2026-05-05"),
        ("the day before yesterday", "2026-05-04/2026-05-04"),
        ("tomorrow", "2026-05-07/2026-05-07"),
        ("the day after tomorrow", "2026-05-08/2026-05-08"),
        ("3 days ago", "2026-05-03/2026-05-03"),
        ("a day ago", "2026-05-05/2026-05-05"),
        ("a couple of days ago", "2026-05-04/2026-05-04"),
        ("two weeks ago", "2026-04-20/2026-04-26"),
        ("a week ago", "2026-04-27/2026-05-03"),
        ("12 months ago", "2025-05-01/2025-05-31"),
        ("one year ago", "2025-01-01/2025-12-31"),
        ("last week", "2026-04-27/2026-05-03"),
        ("this week", "2026-05-04/2026-05-10"),
        ("next  week", "2026-05-11/2026-05-17"),
        ("last month", "2026-04-01/2026-04-30"),
        ("this month", "2026-05-01/2026-05-31"),
        ("next month", "2026-06-01/2026-06-30"),
        ("Last year", "2025-01-01/2025-12-31"),
        ("this year", "2026-01-01/2026-12-31"),
        ("next year", "2027-01-01/2027-12-31"),
        ("last weekend", "2026-05-02/2026-05-03"),
        ("this weekend", "2026-05-09/2026-05-10"),
        ("next weekend", "2026-05-16/2026-05-17"),
        ("over the weekend", "2026-05-02/2026-05-03"),
        ("last Friday", "2026-05-01/2026-05-01"),
        ("last Monday", "2026-05-04/2026-05-04"),
        ("last wednesday", "2026-04-29/2026-04-29"),
        ("this Monday", "2026-05-04/2026-05-04"),
        ("next Wednesday", "2026-05-13/2026-05-13"),
        ("next Friday", "2026-05-08/2026-05-08"),
        ("last May", "2025-05-01/2025-05-31"),
        ("last April", "2026-04-01/2026-04-30"),
        ("last December 25", "2025-12-25/2025-12-25"),
        ("next May", "2027-05-01/2027-05-31"),
        ("next June", "2026-06-01/2026-06-30"),
        ("this March", "2026-03-01/2026-03-31"),
        ("今天天气真好", "2026-05-06/2026-05-06"),
        ("昨天", "2026-05-05/2026-05-05"),
        ("昨晚", "2026-05-05/2026-05-05"),
        ("前天", "2026-05-04/2026-05-04"),
        ("大前天", "2026-05-03/2026-05-03"),
        ("他说明天来", "2026-05-07/2026-05-07"),
        ("后天", "2026-05-08/2026-05-08"),
        ("大后天", "2026-05-09/2026-05-09"),
        ("3天前", "2026-05-03/2026-05-03"),
        ("三天前天气", "2026-05-03/2026-05-03"),
        ("十二天以前", "2026-04-24/2026-04-24"),
        ("两周前", "2026-04-20/2026-04-26"),
        ("两个星期之前", "2026-04-20/2026-04-26"),
        ("3个月前", "2026-02-01/2026-02-28"),
        ("两年前", "2024-01-01/2024-12-31"),
        ("2022年前", "2022-01-01/2022-12-31"),
        ("上周", "2026-04-27/2026-05-03"),
        ("上个星期", "2026-04-27/2026-05-03"),
        ("上上周", "2026-04-20/2026-04-26"),
        ("上周五", "2026-05-01/2026-05-01"),
        ("上个礼拜天", "2026-05-03/2026-05-03"),
        ("这周", "2026-05-04/2026-05-10"),
        ("本周五", "2026-05-08/2026-05-08"),
        ("那个时间是下周一上午九点的活动", "2026-05-11/2026-05-11"),
        ("下下周六下午两点", "2026-05-23/2026-05-23"),
        ("上个月", "2026-04-01/2026-04-30"),
        ("上月3号", "2026-04-03/2026-04-03"),
        ("这个月", "2026-05-01/2026-05-31"),
        ("本月十五日", "2026-05-15/2026-05-15"),
        ("下个月", "2026-06-01/2026-06-30"),
        ("去年", "2025-01-01/2025-12-31"),
        ("去年五月", "2025-05-01/2025-05-31"),
        ("今年5月7日", "2026-05-07/2026-05-07"),
        ("前年", "2024-01-01/2024-12-31"),
        ("今年", "2026-01-01/2026-12-31"),
        ("明年", "2027-01-01/2027-12-31"),
        ("周末", "2026-05-02/2026-05-03"),
        ("上周末", "2026-05-02/2026-05-03"),
        ("这个周末", "2026-05-09/2026-05-10"),
    ],
)
def test_relative_times_are_reckoned_from_now_in_weeks_from_monday(text, expected):
    if expected is None:
        assert phrases(text) == text.split()
    else:
        assert span(text) == expected


def test_a_weekend_that_has_begun_is_the_weekend():
    sunday = dt.datetime.fromisoformat("2026-05-10T08:00")

    assert span("周末", sunday) == span("the weekend", sunday) == "2026-05-09/2026-05-10"


@pytest.mark.parametrize(
    ("text", "weekday"),
    [("on Monday", 0), ("Tuesdays", 1), ("星期三", 2), ("礼拜四", 3), ("每周五", 4), ("sunday", 6), ("周日", 6)],
)
def test_a_weekday_alone_is_that_day_of_any_week(text, weekday):
    (named,) = named_times(text, NOW)
    monday = noon(dt.date(2020, 6, 1))

    assert (named.weekday, named.start, named.month, named.day) == (weekday, None, None, None)
    assert [i for i in range(7) if named.holds(monday + dt.timedelta(days=i))] == [weekday]


@given(now=st.datetimes())
def test_the_ends_of_the_calendar_stop_nobody(now):
    text = (
        "last year next year 2 weeks ago tomorrow 前年 下下周 next May last winter this weekend 周末 大后天 last Friday"
    )
    for named in named_times(text, now):
        assert named.start is not None
        assert named.end is None or named.start < named.end
        assert named.holds(noon(named.start))


def test_the_date_of_a_moment_is_that_of_its_own_zone():
    east = dt.timezone(dt.timedelta(hours=8))
    (named,) = named_times("today", dt.datetime(2026, 5, 6, 1, tzinfo=east))

    assert named.holds(dt.datetime(2026, 5, 6, 23, 59, tzinfo=east))
    assert not named.holds(dt.datetime(2026, 5, 5, 23, 59, tzinfo=dt.UTC))


# ---- whole texts


def test_times_come_in_the_order_of_the_text_each_phrase_once():
    text = "Was it yesterday or on 7 May 2023, a Monday? Yesterday, 上周五 or 2023-05-07; not yesterday."

    assert phrases(text) == ["yesterday", "7 May 2023", "Monday", "上周五", "2023-05-07"]
    assert phrases("2023-05-07今天周五周六上周一昨天") == ["2023-05-07", "今天", "周五", "周六", "上周一", "昨天"]


@pytest.mark.parametrize(
    "piece", ["may ", "in 2022 items ", "2023-02-30 ", "上", "two weeks ago " * 2, "1 ", " ", "七月"]
)
def test_a_text_of_100_kb_is_read_to_its_end(piece):
    text = piece * (100_000 // len(piece)) + "; 2023-05-07"

    assert phrases(text)[-1] == "2023-05-07"
    assert len(phrases(text)) <= 2


def test_at_most_sixteen_times_are_named():
    text = " ".join(f"2023-05-{day:02}" for day in range(1, 32))

    assert phrases(text) == text.split()[:MOST_NAMED]
    assert MOST_NAMED == 16


PIECES = """
    last this next in of may May march 2023 7 7th 31 , - / . : week Friday Fridays ago days two a couple the day before
    after yesterday weekend early to Dec sept 年 月 日 号 上 下 个 周 星期 末 五 十 〇 前 后 大 今 去年 天 的 春天
    ſ İ K ² ٣ ３ fall Fri Frİday Auguſt \ud800 \0
"""


@given(
    pieces=st.lists(st.sampled_from(PIECES.split()) | st.text(max_size=3), max_size=25),
    gap=st.sampled_from(["", " "]),
    now=st.datetimes(),
)
@settings(max_examples=500)
def test_no_text_raises_and_every_phrase_is_in_it(pieces, gap, now):
    text = gap.join(pieces)

    found = named_times(text, now)

    assert len(found) <= MOST_NAMED
    assert len({named.text for named in found}) == len(found)
    for named in found:
        assert named.text in text
        assert isinstance(named.holds(now), bool)


@given(pieces=st.lists(st.sampled_from(PIECES.split()), max_size=15), gap=st.sampled_from(["", " "]))
@settings(max_examples=500)
def test_looking_only_where_a_phrase_may_begin_misses_none(pieces, gap):
    text = gap.join(pieces)

    everywhere = _phrase().finditer(text.replace("İ", "I").lower())

    assert [match.span() for match in everywhere] == [match.span() for match in _phrases(text)]


def test_small_letters_keep_their_places():
    """The module finds phrases in small letters and cuts them from the text as it stands."""
    assert [c for c in map(chr, range(0x110000)) if len(c.lower()) != 1] == ["İ"]
    assert phrases("İİ Yesterday İ, May 7") == ["Yesterday", "May 7"]
