"""Numbers for people: three significant digits, a unit, and a sign that is never lost.

Everything is pure and monotone: a larger number never reads as a smaller one. Only what rounds to zero loses
its sign.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from gate.metrics import COMPILE_TIMES, SPECS, Family, Unit
from gate.records.cases import Metric, Threshold
from gate.sizes import KIB

DIGITS = 3  # significant digits: a reader compares two numbers, and noise is in the third
FACTOR_DIGITS = 2  # of a drift's factor: the log2 value next to it has the rest
MAX_PLACES = 4  # decimal places of the smallest numbers; below that a value reads as zero
MAX_NAMED = 3  # of a list, the rest are counted
MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86400
MICRO = "\N{MICRO SIGN}"
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_MAX_LOG2 = 60.0  # beyond it nothing is rounding: an integer, a shape or a type is another one


def format_number(value: float, digits: int = DIGITS) -> str:
    """Whole once it has ``digits`` digits; 0 near zero."""
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    rounded = float(f"{value:.{digits}g}")
    if not rounded:
        return "0"
    magnitude = math.floor(math.log10(abs(rounded)))
    places = min(max(digits - 1 - magnitude, 0), MAX_PLACES)
    text = f"{rounded:.{places}f}"
    return text if float(text) else "0"


def format_seconds(value: float) -> str:
    """``12.3 ms``."""
    rounded = abs(float(f"{value:.{DIGITS}g}"))
    if rounded >= 1 or not rounded:
        return f"{format_number(value)} s"
    if rounded >= 1e-3:  # noqa: PLR2004 - the definition of a millisecond
        return f"{format_number(value * 1e3)} ms"
    return f"{format_number(value * 1e6)} {MICRO}s"


def format_bytes(value: float) -> str:
    """``1.50 GiB``."""
    text = _render_whole(value)
    unit, *larger = _BYTE_UNITS
    while larger and abs(float(text.replace(",", ""))) >= KIB:
        unit, *larger = larger
        value /= KIB
        text = format_number(value)
    return f"{text} {unit}"


def format_joules(value: float) -> str:
    """``12.3 mJ``."""
    if abs(float(f"{value:.{DIGITS}g}")) >= 1 or not value:
        return f"{format_number(value)} J"
    return f"{format_number(value * 1e3)} mJ"


def format_ratio(value: float) -> str:
    """``1.42x``."""
    return f"{format_number(value)}x"


def format_count(value: float) -> str:
    """A fraction (trials that disagree) keeps its digits."""
    return _render_whole(value) if value == int(value) else format_number(value)


def format_log2(value: float) -> str:
    """A log2 ratio with its factor: ``+1.12 (2.2x)``."""
    text = _drop_negative_zero(f"{value:+.2f}")
    if abs(value) > _MAX_LOG2:
        return "another answer" if value > 0 else "no other answer any more"
    return f"{text} ({format_factor(float(text))})"


def is_another_answer(metric: Metric, value: float) -> bool:
    """Whether a drift, or its change, is beyond any ratio of errors."""
    return SPECS[metric].family is Family.LOG2 and abs(value) > _MAX_LOG2


def format_factor(value: float) -> str:
    """Of a log2 ratio: ``2.2x``."""
    return f"{format_number(2.0 ** max(min(value, _MAX_LOG2), -_MAX_LOG2), FACTOR_DIGITS)}x"


def format_percent(fraction: float, *, signed: bool = True) -> str:
    """``+12.3 %``, with two places below one percent."""
    return f"{_render_percent_number(fraction, signed=signed)} %"


def format_duration(seconds: float) -> str:
    """``41 s``, ``5 min 12 s``, ``1 h 05 min``."""
    if seconds < 9.95:  # noqa: PLR2004 - one decimal while it means something
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S:02d} s"
    minutes = round(seconds / MINUTE_S)
    return f"{minutes // MINUTE_S} h {minutes % MINUTE_S:02d} min"


def format_age(created: str, now: str) -> str:
    """How long before or after ``now`` (ISO 8601) it was ``created``; "" when unknown."""
    try:
        age_s = (_parse_time(now) - _parse_time(created)).total_seconds()
    except ValueError:
        return ""
    if age_s < -HOUR_S:  # more than clocks of two machines differ
        return f"dated {_render_days(-age_s)} ahead"
    if age_s < HOUR_S:
        return "less than an hour old"
    return f"{_render_days(age_s)} old"


def _render_days(seconds: float) -> str:
    hours = int(seconds // HOUR_S)
    return f"{hours} h" if seconds < 2 * DAY_S else f"{int(seconds // DAY_S):,} days"


def format_value(metric: Metric, value: float) -> str:
    """A compile time is what exceeds a later call: where that is nothing, calls vary by more."""
    if metric in COMPILE_TIMES and not value:
        return "under 1 call"
    return _RENDERERS[SPECS[metric].unit](value)


def format_change(metric: Metric, value: float) -> str:
    """+ is worse: percent, ``+2`` or ``+64.0 KiB`` where exact, log2 and factor."""
    family = SPECS[metric].family
    if family is Family.LOG2:
        return format_log2(value)
    if family is Family.EXACT:
        text = format_value(metric, abs(value))
        return text if text.partition(" ")[0] == "0" else f"{'+' if value > 0 else '-'}{text}"
    return format_percent(value)


def format_interval(metric: Metric, low: float, high: float) -> str:
    """``+9.8 to +14.9 %``."""
    family = SPECS[metric].family
    if family is Family.LOG2:
        if is_another_answer(metric, high):
            return format_log2(high)
        return f"{_drop_negative_zero(f'{low:+.2f}')} to {_drop_negative_zero(f'{high:+.2f}')}"
    if family is Family.EXACT:
        return f"{format_change(metric, low)} to {format_change(metric, high)}"
    return f"{_render_percent_number(low, signed=True)} to {format_percent(high)}"


def format_threshold(metric: Metric, threshold: Threshold, before: float | None = None) -> str:
    """``5 % and 500 ms``, or ``any change``; with ``before`` only the larger part, which is in force."""
    spec = SPECS[metric]
    if before is not None and spec.is_ratio and threshold.relative and threshold.absolute:
        is_absolute = threshold.absolute > threshold.relative * before
        threshold = replace(threshold, **{"relative" if is_absolute else "absolute": 0.0})
    parts = []
    if threshold.relative:
        parts.append(f"{threshold.relative * 100:.{DIGITS}g} %")
    if threshold.absolute:
        text = format_log2(threshold.absolute) if spec.family is Family.LOG2 else ""
        parts.append(text or _drop_zeros(format_value(metric, threshold.absolute)))
    return " and ".join(parts) or "any change"


def format_allowance(metric: Metric, allowance: float) -> str:
    """``33 %``; counts and log2 units as they are."""
    if not SPECS[metric].is_ratio:
        return f"{allowance:g}"
    return f"{100 * allowance:g} %"


def _render_percent_number(fraction: float, *, signed: bool) -> str:
    percent = fraction * 100
    places = 2 if abs(percent) < 1 else 1 if abs(percent) < 100 else 0  # noqa: PLR2004 - percent
    sign = "+" if signed else ""
    text = f"{percent:{sign},.{places}f}"
    return text if float(text.replace(",", "")) else "0.0"


def _render_whole(value: float) -> str:
    text = f"{value:,.0f}"
    return "0" if text == "-0" else text


def _drop_negative_zero(text: str) -> str:
    return text if float(text) else text.lstrip("+-")


def _drop_zeros(text: str) -> str:
    number, space, unit = text.partition(" ")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + space + unit


def _parse_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_RENDERERS: Mapping[Unit, Callable[[float], str]] = {
    Unit.SECONDS: format_seconds,
    Unit.BYTES: format_bytes,
    Unit.COUNT: format_count,
    Unit.RATIO: format_ratio,
    Unit.LOG2: format_log2,
    Unit.FRACTION: partial(format_percent, signed=False),
    Unit.JOULES: format_joules,
}


def format_noun(number: int, noun: str) -> str:
    """``1 case``, ``1,200 cases``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_some(names: Sequence[str], most: int = MAX_NAMED, comma: str = ", ") -> str:
    """``a, b, c and 2 more``."""
    return comma.join(names[:most]) + format_rest(len(names) - most)


def format_rest(number: float) -> str:
    """`` and 2 more``; empty where nothing is left."""
    return f" and {number:.0f} more" if number > 0 else ""
