import math
import typing
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.files.schema import list_invalid
from gate.records.bounds import (
    EXPIRY,
    MAX_COUNT,
    MOMENT,
    Amount,
    Count,
    Fraction,
    Natural,
    NotNegative,
    Pattern,
    Range,
    Seconds,
    compute_last_day,
    is_sha,
    parse_percent,
    read_amount,
    write_percent,
)


def list_fixes(key: str, written: object) -> list[str]:
    """The fixes of gate.yml's schema for a fraction; none if it is valid."""
    is_relative = key == "relative"
    plain = {"thresholds": {"drift": {key: written}}} if is_relative else {key: written}
    return [item.fix for item in list_invalid("config", {"version": 1, **plain})]


@pytest.mark.parametrize(
    ("written", "fraction"),
    [
        ("5%", 0.05),
        ("5 %", 0.05),
        ("0.5%", 0.005),
        ("7%", 0.07),  # 7 * 0.01 is a little more
        ("100%", 1.0),
        ("150%", 1.5),
        ("1000%", 10.0),
        ("0%", 0.0),
        (0.05, 0.05),
        (0, 0.0),
        (0.99, 0.99),
    ],
)
def test_a_fraction_is_written_as_percent_or_as_a_number(written: object, fraction: float) -> None:
    """Both forms are the same number, to the last bit."""
    assert not list_fixes("relative", written)
    assert Fraction().read(written) == fraction


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        (5, "Write 5% or 0.05."),
        (1, "Write 1% or 0.01."),
        (1.0, "Write 1% or 0.01."),
        (12.5, "Write 12.5% or 0.125."),
        (100, "Write 100%."),
        (150, "Write 150%."),
        (5000, ""),
        (-1, ""),
        (True, ""),
        (float("nan"), ""),
        (float("inf"), ""),
        ("5", ""),
        ("-5%", ""),
        ("+5%", ""),
        ("5%%", ""),
        ("1001%", ""),
        ("1e2%", ""),
        (" 5%", ""),
        ("%", ""),
    ],
)
def test_what_could_be_misread_is_refused(written: object, advice: str) -> None:
    """A bare 5 means 5 %, and a bare 1 may be either: the fix shows both forms."""
    example = "Write, for example, `relative: 8%`."
    assert list_fixes("relative", written) == [advice or example]


@pytest.mark.parametrize("written", ["0%", "0.0 %", "00%", "51%", "50.1%", "100%", 0, 0.51, 1, 5])
def test_an_error_budget_is_neither_nothing_nor_more_than_half(written: object) -> None:
    """Without a budget nothing could be judged; beyond half a verdict means nothing."""
    assert list_fixes("error_budget", written)


@pytest.mark.parametrize(("written", "fraction"), [("1%", 0.01), ("50%", 0.5), ("0.05%", 0.0005), (0.5, 0.5)])
def test_an_error_budget_is_a_fraction(written: object, fraction: float) -> None:
    """Up to one half."""
    assert not list_fixes("error_budget", written)
    assert Fraction().read(written) == fraction


@given(fraction=st.floats(0, 10))
def test_what_is_rendered_as_percent_reads_the_same(fraction: float) -> None:
    """A value without such a form is printed as a number."""
    text = write_percent(fraction)
    assert text == "" or Fraction().read(text) == fraction
    assert text or Fraction().read(fraction) == fraction


@given(percent=st.decimals(0, 60, places=2))
def test_the_bound_in_the_pattern_is_the_bound_of_the_number(percent: object) -> None:
    """The regular expression of percentages and the range of numbers agree."""
    text = f"{percent}%"
    fraction = parse_percent(text)
    assert fraction is not None
    assert bool(list_fixes("error_budget", text)) != (0 < fraction <= 0.5)


def test_an_amount_is_kept_as_it_is_written() -> None:
    """The metric decides whether percent fit."""
    assert [Amount().read(written) for written in ("8%", 2, 0.3, "8", -1, None)] == [
        "8%",
        2.0,
        0.3,
        None,
        None,
        None,
    ]
    assert [Amount().read(written) for written in (0, True, math.inf, math.nan)] == [0.0, None, None, None]
    assert [read_amount("8%"), read_amount("0%"), read_amount(2.0), read_amount("8")] == [0.08, 0.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0a" * 20, True),
        ("0a" * 32, True),
        ("0a" * 19, False),
        ("0A" * 20, False),
        ("main", False),
        (7, False),
    ],
)
def test_a_commit_id_is_whole(text: object, *, expected: bool) -> None:
    """Forty or 64 small hexadecimal digits."""
    assert is_sha(text) is expected


@pytest.mark.parametrize(
    ("bounded", "within", "outside"),
    [
        (Count, (1, 10_000), (0, 10_001)),
        (Natural, (0, 10**9), (-1,)),
        (NotNegative, (0.0, 1e-9), (-1e-9,)),
        (Seconds, (1e-9, 1e9), (0.0, -1.0)),
    ],
)
def test_a_bounded_number_takes_its_bounds_and_nothing_beyond(
    bounded: object, within: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    """A count begins at one, a time above zero."""
    (_, rule) = typing.get_args(bounded)
    assert all(map(rule.holds, within))
    assert not any(map(rule.holds, outside))
    assert MAX_COUNT == 10_000


@pytest.mark.parametrize(
    ("rule", "described"),
    [
        (Range(minimum=1, maximum=8), "a number from 1 to 8"),
        (Range(noun="a count", minimum=2, maximum=2), "the number 2"),
        (Range(minimum=0), "a number of at least 0"),
        (Range(above=0), "a number above 0"),
        (Range(maximum=8), "a number of at most 8"),
        (Range(above=0, maximum=0.5), "a number above 0 and of at most 0.5"),
    ],
)
def test_a_range_is_described_by_the_bounds_that_it_has(rule: Range, described: str) -> None:
    """As a reader of gate.yml finds them in a message."""
    assert rule.describe() == described


@pytest.mark.parametrize(
    ("rule", "within", "outside"),
    [
        (Range(minimum=-1, maximum=8), (-1, 0, 8), (-1.5, 8.5)),
        (Range(above=0), (0.1,), (0, -1)),
        (Range(maximum=2), (-5, 2), (2.5,)),
        (Range(least=0.5), (0, 0.5, 1.0, -0.3), (0.4, 1e-9)),
        (Range(whole=True), (0, 2.0, -3), (0.5, 2.25)),
    ],
)
def test_a_range_holds_what_lies_within_each_of_its_bounds(
    rule: Range, within: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    """Nothing between 0 and the least; a number that counts is whole, though a median of it need not be."""
    assert all(map(rule.holds, within))
    assert not any(map(rule.holds, outside))
    assert [rule.spans(value) for value in outside] == [rule.whole] * len(outside)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("2026-03-04", True),
        ("2026-03-04T05:06:07Z", True),
        ("2026-02-30", False),
        ("2026-03-04 at noon", False),
        ("at noon", False),
    ],
)
def test_a_moment_is_one_of_the_calendar_or_not_known(text: str, *, holds: bool) -> None:
    """What only looks like one is refused."""
    assert MOMENT.holds(text) is holds


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        (Pattern(regex="[0-9-]+", what="digits"), True),
        (Pattern(regex="[0-9-]+", what="a day", format="date"), False),
        (Pattern(regex="[a-z]+", what="letters"), False),
    ],
)
def test_a_pattern_needs_its_format_as_well(rule: Pattern, *, holds: bool) -> None:
    """If it has one."""
    assert rule.holds("2026-02-30") is holds


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        (Range(minimum=0, maximum=8), {"minimum": 0, "maximum": 8}),
        (Range(above=0), {"exclusiveMinimum": 0}),
        (Range(minimum=0, whole=True), {"minimum": 0, "multipleOf": 1}),
        (Pattern(regex="a|b", what="a or b"), {"pattern": "^(?:a|b)$"}),
        (Pattern(regex="a", what="a", format="date"), {"format": "date", "pattern": "^(?:a)$"}),
    ],
)
def test_a_rule_is_stated_in_json_schema(rule: Range | Pattern, schema: dict[str, object]) -> None:
    """Only with the bounds that it has."""
    assert rule.to_schema() == schema


def test_something_counts_for_a_year_at_most() -> None:
    """The last day is a year from today, and it still counts."""
    assert compute_last_day(date(2026, 3, 1)) == date(2027, 3, 2)
    today = datetime.now(UTC).date()
    before, last, after = (str(compute_last_day(today) + timedelta(days=days)) for days in (-1, 0, 3))
    assert EXPIRY.holds(before)
    assert EXPIRY.holds(last)
    assert not EXPIRY.holds(after)
    assert not EXPIRY.holds("2026-02-30")
