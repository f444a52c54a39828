"""Fills a sentence's template with what a fact holds, in one set of words for metrics and changes; pure.

A number's place has its form: ``{cases:case}`` counts things, ``{days}`` is whole, ``{limit:.2f}`` has
digits, ``{change:percent}`` and ``{change:slower}`` have units. Of a list of names ``{reasons}`` joins
all, ``{reasons:some}`` the first, ``{files:named}`` those that stand under the name of their number. A
part in brackets is left out where one of its places is empty or 0: ``[ at {location}]``, ``[{in_pairs:?},
as the base]``; its alternative stands behind a bar: ``[{crowd}|other work]``.

Words are those of CI: *slower*, *larger*, *threshold*, *inconclusive*.
"""

import re
import signal
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from configparser import ConfigParser
from pathlib import Path
from string import Formatter

from gate.metrics import SPECS, Family, Unit
from gate.records.cases import Metric
from gate.records.facts import Fact
from gate.records.verdict import Comparison, PairBase, Status
from gate.units import (
    format_bytes,
    format_change,
    format_factor,
    format_interval,
    format_log2,
    format_noun,
    format_percent,
    format_rest,
    format_seconds,
    format_value,
    is_another_answer,
    join_some,
)

_FILE = ConfigParser(interpolation=None, delimiters=("=",))
_FILE.read_string(Path(__file__).with_name("sentences.ini").read_text(encoding="utf-8"))
# All sentences that are made of codes: table -> code -> template. A writer needs no code to mend one.
SENTENCES: Mapping[str, Mapping[str, str]] = {name: dict(table) for name, table in _FILE.items()}
PHRASES = SENTENCES["phrases"]
# As many characters of a commit as no repository has two of.
COMMIT_CHARS = 12

_NAMES: Mapping[Metric, str] = {
    Metric.DRIFT_FLOAT32: "drift in float32",
    Metric.DRIFT_STEPS: "drift after 10 steps",
}
_LEAST_TIME = 1e-3  # as a part of what it was: a file may have any number
_PART = re.compile(r"\[([^][|]*)(?:\|([^][]*))?\]")
_STATUSES: Mapping[Status, str] = {
    Status.NOT_COMPARABLE: "not judged",
    Status.NEW: "not judged",
}


def name_metric(metric: Metric) -> str:
    return _NAMES.get(metric, metric.value.replace("_", " "))


def name_status(status: Status) -> str:
    """In a count: ``regressed``, ``not judged``."""
    return _STATUSES.get(status, status.value.lower())


def name_direction(metric: Metric, change: float) -> str:
    """What a change (+ is worse) is: ``slower``; ``""`` where there is none."""
    if not change:
        return ""
    return SPECS[metric].worse if change > 0 else SPECS[metric].better


def describe_change(metric: Metric, change: float, word: str = "") -> str:
    """``+30.6 % (slower)``, ``+2 (more)``.

    ``word`` replaces a direction that is not known: ``+6.0 % (inconclusive)``.
    """
    if is_another_answer(metric, change):
        return f"{format_change(metric, change)}{f' ({word})' if word else ''}"
    if SPECS[metric].family is Family.LOG2 and change:
        what = f", {word}" if word else ""
        return f"{format_change(metric, change).partition(' ')[0]} ({format_factor(change)} the error{what})"
    return _qualify(format_change(metric, change), word or name_direction(metric, change))


def describe_range(metric: Metric, changes: Sequence[float], word: str = "") -> str:
    """The changes of several cases as one: ``+29.0 to +32.1 % (slower)``."""
    low, high = min(changes), max(changes)
    if format_change(metric, low) == format_change(metric, high):
        return describe_change(metric, high, word)
    wrong = [change for change in (high, low) if is_another_answer(metric, change)]
    if wrong:  # of some cases, and not of all
        rest = format_change(metric, low if wrong[0] == high else high).partition(" ")[0]
        return f"{rest} to {format_change(metric, wrong[0])}{f' ({word})' if word else ''}"
    one_way = high if low > 0 or high < 0 else 0.0
    return _qualify(format_interval(metric, low, high), word or name_direction(metric, one_way))


def _qualify(text: str, word: str) -> str:
    """Add the word, unless the change reads as none."""
    return f"{text} ({word})" if word and any(digit in text for digit in "123456789") else text


def describe_values(metric: Metric, old: float, new: float | None) -> str:
    """``12.1 ms -> 15.8 ms``."""
    return f"{format_value(metric, old)} -> {'not measured' if new is None else format_value(metric, new)}"


def is_shown_as_values(comparison: Comparison) -> bool:
    return bool(SPECS[comparison.metric].unit is Unit.RATIO and comparison.baseline and comparison.candidate)


def describe_move(comparison: Comparison) -> str:
    """``+30.6 % (slower)``, or ``0.830x -> 0.501x (slower)``; ``""`` without a change."""
    if comparison.change is None:
        return ""
    if not (is_shown_as_values(comparison) and comparison.baseline and comparison.candidate):
        return describe_change(comparison.metric, comparison.change.centre)
    word = name_direction(comparison.metric, comparison.change.centre)
    values = describe_values(comparison.metric, comparison.baseline.centre, comparison.candidate.centre)
    return f"{values} ({word})" if word else values


def mention_move(comparison: Comparison) -> str:
    """``compiled latency 12.1 ms -> 15.8 ms (+30.6 %)``."""
    name, spec, change = name_metric(comparison.metric), SPECS[comparison.metric], comparison.change
    if change is None:
        return name
    moved = format_change(comparison.metric, change.centre)
    if is_another_answer(comparison.metric, change.centre):
        return f"{name}, {moved}"
    if spec.family is Family.LOG2:
        return f"{name} {format_factor(change.centre)} the error"
    if not (comparison.baseline and comparison.candidate):
        return f"{name} {moved}"
    values = describe_values(comparison.metric, comparison.baseline.centre, comparison.candidate.centre)
    return (
        f"{name} {values} ({moved})"
        if spec.is_ratio and not is_shown_as_values(comparison)
        else f"{name} {values}"
    )


def name_base(base: PairBase | None) -> str:
    if base is None or not (base.label or base.commit):
        return "the base"
    return base.label or fill(PHRASES["base_commit"], commit=base.commit[:COMMIT_CHARS])


def fill(template: str, fact: Fact | None = None, **more: str) -> str:
    """``{case_list}`` and ``{metric_list}`` are the fact's; ``{metric_keys}`` are as gate.yml spells them."""
    values: defaultdict[str, object] = defaultdict(_Names)
    if fact:
        names, metrics = fact.names, _Names(map(name_metric, fact.metrics))
        values |= {name: _Names(words) for name, words in names.items()}
        values |= {name: _make_number(value, names.get(name, ())) for name, value in fact.numbers.items()}
        values |= {
            "case_list": _Names(fact.cases),
            "metric_list": metrics,
            "metric_keys": _Names(fact.metrics),
        }
    values |= {name: _Names((text,)) for name, text in more.items()}

    def choose(part: re.Match[str]) -> str:
        fields = [(name, spec) for _, name, spec, _ in Formatter().parse(part[1]) if name]
        return part[1] if all(_is_filled(values[name], spec) for name, spec in fields) else part[2] or ""

    count = 1
    while count:  # the innermost first
        template, count = _PART.subn(choose, template)
    return template.format_map(values)


def _is_filled(value: object, spec: str | None) -> bool:
    return bool(value.words if isinstance(value, _Number) and spec == "named" else value)


def upper_first(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


class _Names(tuple[str, ...]):
    """What may not be shown is empty, in whichever form it is asked for."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return any(self)

    def __format__(self, spec: str) -> str:
        if not self or spec == "?":
            return ""
        if spec == "some":
            return join_some(self)
        # Where a number is meant that a file does not have, the words of its name stand there.
        return format(", ".join(self), spec if spec.startswith(".") else "")


class _Number(float):
    words: Sequence[str] = ()  # some of what it counts

    def __format__(self, spec: str) -> str:
        if spec == "named":
            return f"{', '.join(self.words)}{format_rest(self - len(self.words))}" if self.words else ""
        if spec in _UNITS:
            return _UNITS[spec](float(self))
        if not spec or not spec[0].isalpha():
            return float.__format__(self, spec or ".0f")
        return format_noun(round(self), spec)


def _make_number(value: float, words: Sequence[str]) -> _Number:
    number = _Number(value)
    number.words = words
    return number


def describe_error_factor(drift: float) -> str:
    """``off by 300x eager's own error``."""
    if is_another_answer(Metric.DRIFT, drift):
        return PHRASES["another_answer"]
    return fill(PHRASES["off_by"], factor=format_factor(drift))


def describe_speed(shift: float) -> str:
    """Of fixed test programs, whose times changed by ``shift``: ``47 % faster``."""
    share = 1 / max(1 + shift, _LEAST_TIME) - 1 if shift < 0 else shift
    return f"{100 * share:,.0f} % {'faster' if shift < 0 else 'slower'}"


def name_end(status: float) -> str:
    """``exit status 3``, or the signal: ``SIGSEGV``."""
    if status >= 0:
        return f"exit status {status:.0f}"
    try:
        return signal.Signals(round(-status)).name
    except ValueError:  # real-time signals have no name
        return f"signal {-status:.0f}"


_UNITS: Mapping[str, Callable[[float], str]] = {
    "percent": format_percent,
    "part": lambda share: format_percent(share, signed=False),
    "share": lambda share: f"{100 * share:.0f} %",
    "slower": lambda change: describe_change(Metric.EAGER_LATENCY, change),  # any time
    "speed": describe_speed,
    "bytes": format_bytes,
    "seconds": format_seconds,
    "log2": format_log2,
    "off": describe_error_factor,
    "status": name_end,
    "is": lambda number: "is" if number == 1 else "are",
    "has": lambda number: "has" if number == 1 else "have",
    "?": lambda _: "",  # for a part that is shown where it is not 0
}
