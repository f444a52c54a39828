"""One value per metric and trial, from the trial's raw samples, and what is asked of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_high, median_low

from gate.decide.stats import LogArms, estimate_metric
from gate.metrics import SPECS, Family, MetricSpec, Role
from gate.records import (
    Case,
    Change,
    Code,
    Comparison,
    Fact,
    Metric,
    Reason,
    Status,
    Threshold,
    Trial,
    name_words,
)
from gate.records.cases import collect_columns
from gate.records.facts import MISMATCH_CODES

# A super-block is ECCE or CEEC: two neighbouring pairs, over which a steady drift cancels.
PAIRS_IN_SUPER_BLOCK = 2


def compute_values(trial: Trial) -> Mapping[Metric, float]:
    """Reduce a trial to one value a metric, in the metric's unit.

    Latencies, times, memory and counters are the median of their samples, drift is the mean over
    seeds. ``warm_speedup`` and ``break_even_calls`` are derived where their parts are there.
    """
    values = {
        metric: fmean(samples) if SPECS[metric].family is Family.LOG2 else median(samples)
        for metric, samples in trial.samples.items()
        if samples
    }
    eager = trial.samples.get(Metric.EAGER_LATENCY, ())
    compiled = trial.samples.get(Metric.COMPILED_LATENCY, ())
    speedup = compute_speedup(eager, compiled)
    if speedup is not None:
        values[Metric.WARM_SPEEDUP] = speedup
    break_even = find_break_even(values)
    if break_even is not None:
        values[Metric.BREAK_EVEN_CALLS] = break_even
    return values


def collect_values(trials: Iterable[Trial]) -> Mapping[Metric, tuple[float, ...]]:
    """One value per trial for every metric that any of the trials measured."""
    return collect_columns(map(compute_values, trials))


def collect_medians(tables: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Median of each name over the tables that have any; one that a table lacks took no time."""
    filled = [table for table in tables if table]
    names = {name: None for table in filled for name in table}
    return {name: median([table.get(name, 0.0) for table in filled]) for name in names}


def compute_speedup(eager_s: Sequence[float], compiled_s: Sequence[float]) -> float | None:
    """Eager over compiled latency: exp(median over super-blocks of the mean log ratio of their pairs).

    Sample ``i`` of both arms belongs to one pair. ``None`` when there is no pair of positive times.
    """
    ratios = [
        eager / compiled
        for eager, compiled in zip(eager_s, compiled_s, strict=False)
        if eager > 0 and compiled > 0
    ]
    # A mean of logarithms is a root of a product, which spares the logarithms.
    blocks = [math.sqrt(first * second) for first, second in zip(ratios[::2], ratios[1::2], strict=False)]
    if len(ratios) % PAIRS_IN_SUPER_BLOCK:
        blocks.append(ratios[-1])
    # Of the two in the middle the mean of the logarithms, likewise.
    return math.sqrt(median_low(blocks) * median_high(blocks)) if blocks else None


def find_break_even(values: Mapping[Metric, float]) -> float | None:
    """Calls after which the cold compile has paid; ``None`` where it never does, or is unknown."""
    parts = SPECS[Metric.BREAK_EVEN_CALLS].parts
    if any(part not in values for part in parts):
        return None
    return compute_break_even(*(values[part] for part in parts))


def compute_break_even(compile_s: float, before_s: float, after_s: float) -> float | None:
    """Calls after which ``compile_s`` seconds have paid; ``None`` where a call saves nothing to speak of."""
    calls = max(compile_s, 0.0) / (before_s - after_s) if before_s > after_s else math.inf
    return calls if math.isfinite(calls) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One metric of one case: its values, one per trial, and what counts as relevant."""

    case: Case
    metric: Metric
    before: Sequence[float]
    after: Sequence[float]
    threshold: Threshold
    logs: LogArms | None = None  # of noisy metrics, where every value is positive

    @property
    def spec(self) -> MetricSpec:
        """The metric's fixed properties."""
        return SPECS[self.metric]

    def find(
        self, status: Status, reason: Reason, change: Change | None = None, remarks: tuple[Fact, ...] = ()
    ) -> Comparison:
        """What was found of it, with both values as they are."""
        return Comparison(
            case_id=self.case.id,
            metric=self.metric,
            decides=self.spec.role is Role.DECIDES,
            threshold=self.threshold,
            status=status,
            reason=reason,
            baseline=estimate_metric(self.metric, self.before),
            candidate=estimate_metric(self.metric, self.after),
            change=change,
            remarks=remarks,
        )


def find_worst(trials: Iterable[Trial], metric: Metric) -> Fact | None:
    """Find it in the trial that drifted most, of those that measured it; ``None`` where unknown."""
    known = (trial for trial in trials if trial.samples.get(metric))
    trial = max(known, key=lambda one: max(one.samples[metric]))
    worst = trial.worst.get(metric)
    if worst is None or not worst.output:
        return None
    warnings = (one for one in trial.warnings if one.code in MISMATCH_CODES)
    alone = Fact(code=Code.DRIFT_OF, numbers={"steps": worst.steps}, names=name_words(output=worst.output))
    return next((one for one in warnings if one.name("output") == worst.output), alone)
