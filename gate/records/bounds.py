"""Bounds of a value's type, as ``Annotated[int, Range(minimum=1)]``: for the decoder and the JSON Schemas."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol

MOST_ALLOWED = 10.0  # eleven times the baseline: to accept that is not to judge the metric at all
MOST_DAYS = 366  # a year: by then its author should have looked again
_NUMBER = r"[0-9]{1,20}(\.[0-9]{1,20})?"
_PERCENT = re.compile(rf"({_NUMBER}) ?%")


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """``above`` excludes the bound itself."""

    noun: str = "a number"
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    least: float = 0.0  # of what is not 0
    whole: bool = False  # of a number that is written as a float and counts something

    def describe(self) -> str:
        if self.minimum is not None and self.minimum == self.maximum:
            return f"the number {self.minimum:g}"
        if self.minimum is not None and self.maximum is not None:
            return f"{self.noun} from {self.minimum:g} to {self.maximum:g}"
        bounds = (
            ("of at least", self.minimum),
            ("above", self.above),
            ("of at most", self.maximum),
        )
        text = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return f"{self.noun} {text}"

    def holds(self, value: Any) -> bool:  # noqa: ANN401 -- applied to whatever type it annotates
        """Whether it is within the bounds, and whole where it must be."""
        return self.spans(value) and (not self.whole or float(value).is_integer())

    def spans(self, value: float) -> bool:
        """Whether it is within the bounds, whole or not."""
        return (
            (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.maximum is None or value <= self.maximum)
            and not 0 < value < self.least
        )

    def to_schema(self) -> dict[str, object]:
        names = {
            "minimum": self.minimum,
            "exclusiveMinimum": self.above,
            "maximum": self.maximum,
        }
        stated: dict[str, object] = {name: bound for name, bound in names.items() if bound is not None}
        return {**stated, "multipleOf": 1} if self.whole else stated


@dataclass(frozen=True, kw_only=True, slots=True)
class Fraction:
    """Written as percent (``5%``) or as a number (``0.05``), and read as the latter."""

    def describe(self) -> str:
        return "a percentage or a fraction"

    def read(self, value: object) -> float | None:
        """``None`` if it is neither form."""
        return parse_percent(value) if isinstance(value, str) else _read_number(value)


def _read_number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def parse_percent(text: str) -> float | None:
    """``5%``, to the float that ``0.05`` is as well; ``None`` if it is no percentage."""
    match = _PERCENT.fullmatch(text)
    return float(Decimal(match[1]) / 100) if match else None


def read_amount(written: float | str) -> float:
    """A percentage becomes a fraction."""
    return parse_percent(written) or 0.0 if isinstance(written, str) else written


def write_percent(fraction: float) -> str:
    """So that :func:`parse_percent` reads the same; "" where that is impossible."""
    text = f"{(Decimal(repr(fraction)) * 100).normalize():f}%"
    return text if parse_percent(text) == fraction else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """Not negative, or a percentage; kept as it is written."""

    def describe(self) -> str:
        return "a percentage such as 8%, or a number of at least 0"

    def read(self, value: object) -> float | str | None:
        """``None`` if it is neither form."""
        if isinstance(value, str):
            return value if _PERCENT.fullmatch(value) else None
        number = _read_number(value)
        return number if number is not None and 0 <= number < float("inf") else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """The regular expression matches the whole text, which has the format, if any."""

    regex: str
    what: str  # in words
    format: Literal["", "date", "moment"] = ""  # a key of ``FORMATS``

    def describe(self) -> str:
        return self.what

    def holds(self, value: Any) -> bool:  # noqa: ANN401 -- applied to whatever type it annotates
        is_match = re.fullmatch(self.regex, value) is not None
        return is_match and (not self.format or FORMATS[self.format](value))

    def to_schema(self) -> dict[str, object]:
        """Its patterns are not anchored by themselves."""
        named = {"format": self.format} if self.format else {}
        return {**named, "pattern": f"^(?:{self.regex})$"}


SHA = "[0-9a-f]{40}([0-9a-f]{24})?"  # SHA-1, or SHA-256
Sha = Annotated[str, Pattern(regex=SHA, what="a whole commit id")]
# A slug of its device, its torch and a hash.
EnvironmentId = Annotated[str, Pattern(regex=r"[a-z0-9.-]{1,200}", what="the id of an environment")]
CaseId = Annotated[str, Pattern(regex=r"((?![*?\[])[!-~]){1,300}", what="a case id, and no pattern")]


def is_sha(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(SHA, text) is not None


def compute_last_day(today: date) -> date:
    """The last day until which something that is written today may count."""
    return today + timedelta(days=MOST_DAYS)


def _is_near(day: str) -> bool:
    try:
        return date.fromisoformat(day) <= compute_last_day(datetime.now(UTC).date())
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    try:
        return not text or bool(datetime.fromisoformat(text))
    except ValueError:
        return False


# What a regular expression cannot express.
FORMATS: Mapping[str, Callable[[str], bool]] = {"date": _is_near, "moment": _is_moment}
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
# The last day on which something counts; it may be past.
_LIMIT = f"at most {MOST_DAYS} days from now, by the clock of this machine"
EXPIRY = Pattern(regex=_DAY, what=f"a day {_LIMIT}: YYYY-MM-DD", format="date")
# In ISO 8601, or a day alone; empty where it is not known.
MOMENT = Pattern(
    regex=f"({_DAY}.*)?", what="a time such as 2027-03-31T12:00:00Z, or an empty text", format="moment"
)


class Bound(Protocol):
    """Bounds a value that was decoded by its type."""

    def describe(self) -> str:
        """Say what is expected."""

    def holds(self, value: Any) -> bool:  # noqa: ANN401 -- of whatever type it annotates
        """Whether the value is within."""

    def to_schema(self) -> dict[str, object]:
        """State it in JSON Schema."""


Format = Fraction | Amount  # decodes the value itself: it can be written in several ways

MAX_COUNT = 10_000  # of trials, calls, seeds: more is a slip of the finger
Count = Annotated[int, Range(noun="a whole number", minimum=1, maximum=MAX_COUNT)]
Natural = Annotated[int, Range(noun="a whole number", minimum=0)]
Seconds = Annotated[float, Range(above=0)]
NotNegative = Annotated[float, Range(minimum=0)]
Time = Annotated[str, MOMENT]  # ISO 8601, UTC
Date = Annotated[str, EXPIRY]
Text = Annotated[str, Pattern(regex=r"[\s\S]*\S[\s\S]*", what="a text that is not empty")]
