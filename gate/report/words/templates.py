"""Fills a sentence's template with what a fact holds.

Places for numbers say how they are written: ``{cases:case}`` counts things, ``{days}`` is a whole number,
``{limit:.2f}`` has digits, ``{change:percent}`` and ``{change:slower}`` have units. A list of names is
joined: ``{reasons}`` all of them, ``{reasons:some}`` the first.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gate.records import Fact, Metric
from gate.report.words.terms import describe_change, name_metric
from gate.units import count_noun, join_some, render_bytes, render_log2, render_percent, render_seconds


def fill(template: str, fact: Fact, **more: str) -> str:
    """Fill the places of a template; ``{case_list}`` and ``{metric_list}`` are the fact's own."""
    places: defaultdict[str, object] = defaultdict(_Nothing)
    places |= {name: _Names(words) for name, words in fact.names.items()}
    places |= {name: _Number(value) for name, value in fact.numbers.items()}
    places |= {"case_list": _Names(fact.cases), "metric_list": _Names([*map(name_metric, fact.metrics)])}
    return template.format_map(places | more)


class _Nothing:
    """What may not be told, or is not known: empty, however its place is written."""

    def __format__(self, spec: str) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class _Names:
    """A list of words."""

    words: Sequence[str]

    def __format__(self, spec: str) -> str:
        return join_some(self.words) if spec == "some" else ", ".join(self.words)


class _Number(float):
    """A number that is written as its place asks."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        if spec in _UNITS:
            return _UNITS[spec](float(self))
        if not spec or not spec[0].isalpha():
            return float.__format__(self, spec or ".0f")
        return count_noun(round(self), spec)


def sign_seconds(seconds: float) -> str:
    """A difference of times with its sign: ``+1.20 s``."""
    return f"{'+' if seconds >= 0 else '-'}{render_seconds(abs(seconds))}"


def describe_slower(change: float) -> str:
    """The change of a time: ``+30.6 % (slower)``."""
    return describe_change(Metric.EAGER_LATENCY, change)


MACHINE_CHANGED = "The machine changed since the baselines were recorded: {shifts}."


def tell_shifts(fact: Fact) -> dict[str, str]:
    """What of the machine changed by how much, for :data:`MACHINE_CHANGED`."""
    known = [(name, fact.numbers[key]) for key, name in _SHIFTS.items() if key in fact.numbers]
    return {"shifts": ", ".join(f"{name} {describe_slower(shift)}" for name, shift in known)}


_SHIFTS: Mapping[str, str] = {
    "canary": "fixed test programs",
    "suite": "eager over all cases",
    "case": "fixed test programs beside this case",
}


def name_status(status: float) -> str:
    """How a process ended: ``exit status 3``, or the signal: ``SIGSEGV``."""
    if status >= 0:
        return f"exit status {status:.0f}"
    try:
        return signal.Signals(round(-status)).name
    except ValueError:  # real-time signals have no name
        return f"signal {-status:.0f}"


_UNITS: Mapping[str, Callable[[float], str]] = {
    "percent": render_percent,
    "part": lambda share: render_percent(share, signed=False),
    "share": lambda share: f"{100 * share:.0f} %",
    "digit": lambda share: f"{100 * share:.1f} %",
    "signed_digit": lambda share: f"{100 * share:+.1f} %",
    "slower": describe_slower,
    "bytes": render_bytes,
    "log2": render_log2,
    "signed_seconds": sign_seconds,
    "status": name_status,
}
