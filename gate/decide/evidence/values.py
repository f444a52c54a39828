"""The values of trials: one a metric and trial, and what follows from several."""

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import mul
from statistics import fmean, median

from gate.metrics import SPECS, Family
from gate.records.cases import Metric, collect_columns
from gate.records.codes import Code
from gate.records.facts import MISMATCH_CODES, Fact, name_words
from gate.records.run import Trial

# A super-block is ECCE or CEEC: two neighbouring pairs, over which a steady drift cancels.
PAIRS_IN_SUPER_BLOCK = 2


def compute_values(trial: Trial) -> Mapping[Metric, float]:
    """One value a metric, in the metric's unit.

    Latencies, times, memory and counters are the median of their samples, drift is the mean over seeds.
    ``warm_speedup`` and ``break_even_calls`` are derived where their parts are there.
    """
    values = {
        metric: samples[0] if len(samples) == 1 else _find_middle(metric, samples)
        for metric, samples in trial.samples.items()
        if samples
    }
    eager = trial.samples.get(Metric.EAGER_LATENCY, ())
    compiled = trial.samples.get(Metric.COMPILED_LATENCY, ())
    speedup = compute_speedup(eager, compiled)
    if speedup is not None:
        values[Metric.WARM_SPEEDUP] = speedup
    break_even = compute_break_even(values)
    if break_even is not None:
        values[Metric.BREAK_EVEN_CALLS] = break_even
    return values


def _find_middle(metric: Metric, samples: Sequence[float]) -> float:
    return fmean(samples) if SPECS[metric].family is Family.LOG2 else median(samples)


def collect_values(trials: Iterable[Trial]) -> Mapping[Metric, tuple[float, ...]]:
    return collect_columns(map(compute_values, trials))


def collect_medians(tables: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Median of each name over the tables that have any; a name that a table lacks counts as 0."""
    filled = [table for table in tables if table]
    names = {name: None for table in filled for name in table}
    return {name: median([table.get(name, 0.0) for table in filled]) for name in names}


def compute_speedup(eager_s: Sequence[float], compiled_s: Sequence[float]) -> float | None:
    """Eager over compiled latency: exp(median over super-blocks of the mean log ratio of their pairs).

    Sample ``i`` of both is a pair. ``None`` where no pair has positive times.
    """
    pairs = zip(eager_s, compiled_s, strict=False)
    ratios = [eager / compiled for eager, compiled in pairs if eager > 0 and compiled > 0]
    # A mean of logarithms is a root of a product, which spares the logarithms.
    blocks = list(map(math.sqrt, map(mul, ratios[::2], ratios[1::2])))
    if len(ratios) % PAIRS_IN_SUPER_BLOCK:
        blocks.append(ratios[-1])
    blocks.sort()
    # Of the two in the middle the mean of the logarithms, likewise.
    return math.sqrt(blocks[(len(blocks) - 1) // 2] * blocks[len(blocks) // 2]) if blocks else None


def compute_break_even(values: Mapping[Metric, float]) -> float | None:
    """Calls after which the cold compile has paid; ``None`` where it never does, or is unknown."""
    parts = SPECS[Metric.BREAK_EVEN_CALLS].parts
    if any(part not in values for part in parts):
        return None
    return compute_paying_calls(*(values[part] for part in parts))


def compute_paying_calls(compile_s: float, before_s: float, after_s: float) -> float | None:
    """Calls after which ``compile_s`` seconds have paid; ``None`` where a call saves nothing."""
    calls = max(compile_s, 0.0) / (before_s - after_s) if before_s > after_s else math.inf
    return calls if math.isfinite(calls) else None


def find_worst_output(trials: Iterable[Trial], metric: Metric) -> Fact | None:
    """The output that drifted most, of the trials that measured it; ``None`` where unknown."""
    measured = (trial for trial in trials if trial.samples.get(metric))
    trial = max(measured, key=lambda trial: max(trial.samples[metric]), default=None)
    worst = trial.worst.get(metric) if trial else None
    if not (trial and worst and worst.output):
        return None
    warnings = (fact for fact in trial.warnings if fact.code in MISMATCH_CODES)
    alone = Fact(code=Code.DRIFT_OF, numbers={"steps": worst.steps}, names=name_words(output=worst.output))
    return next((fact for fact in warnings if fact.name("output") == worst.output), alone)
