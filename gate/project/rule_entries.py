"""The shapes of what gate.yml says of judging: thresholds, limits, quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from gate.files.entry import (
    Date,
    Entry,
    MetricUnits,
    Share,
    Text,
)
from gate.project.contradictions import (
    check_limit,
    check_override,
    check_threshold,
)
from gate.records import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdEntry(Entry):
    """The smallest change of a metric that counts: it must exceed both parts.

    A part that is left out keeps its default.
    """

    relative: Share | None = None
    """The part relative to the baseline.

    Example: 8%
    """
    absolute: MetricUnits | None = None
    """The part in the metric's unit: seconds, bytes, calls, or log2 units for drift. It keeps a large
    percentage of a tiny value from counting.

    Example: 0.00005
    """

    find_contradictions = staticmethod(check_threshold)


@dataclass(frozen=True, kw_only=True, slots=True)
class OverrideEntry(Entry):
    """Another threshold for some cases and one metric.

    A part that is left out is as for the other cases. Of several overrides that fit, the last counts.
    """

    case: Text
    """The cases, named as in `select`. Each part must match at least one.

    Example: "bert/*"
    """
    metric: Metric
    """The metric whose threshold differs for these cases.

    Example: compiled_latency
    """
    reason: Text
    """Why these cases need another threshold.

    Example: "its loop depends on the data: two speeds"
    """
    relative: Share | None = None
    """The part of the threshold relative to the baseline.

    Example: 12%
    """
    absolute: MetricUnits | None = None
    """The part of the threshold in the metric's unit.

    Example: 0.0001
    """

    find_contradictions = staticmethod(check_override)


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitEntry(Entry):
    """An absolute limit of a metric, held to whatever is stored.

    It decides even where nothing is. Of several limits that fit a case and a metric, the last counts.
    """

    metric: Metric
    """The metric that is limited.

    Example: cold_compile_time
    """
    case: Text = "*"
    """The cases, named as in `select`. Each part must match at least one.

    Example: "llama/*"
    """
    at_most: MetricUnits | None = None
    """The largest allowed value, in the metric's unit: seconds, bytes, calls, or log2 units for drift.

    Example: 60
    """
    at_least: MetricUnits | None = None
    """The smallest allowed value, for metrics where more is better.

    Example: 1.2
    """

    find_contradictions = staticmethod(check_limit)


@dataclass(frozen=True, kw_only=True, slots=True)
class QuarantineEntry(Entry):
    """An unstable case, or one metric of it: still measured, still shown, not deciding until a date."""

    case: Text
    """The cases, named as in `select`. Each part must match at least one.

    Example: "bert/*"
    """
    metric: Metric | None = None
    """The metric that does not decide. Without it the whole case does not, its failures included.

    Example: compiled_latency
    """
    owner: Text
    """Who looks after it.

    Example: compiler-team
    """
    reason: Text
    """Why it cannot decide. `compile-gate calibrate` names cases that are unstable on your machine.

    Example: "two speeds, see #12"
    """
    expires: Date
    """The last day of the quarantine.

    Example: 2027-03-31
    """
