"""What each metric is: one complete row a metric, and every grouping of metrics that follows from the rows.

A new metric is a row in :mod:`gate.metrics.rows` and the place that measures it: docs/dev/adding-a-metric.md.
docs/metrics.md is generated from the rows. :mod:`gate.kinds` knows which kinds of case have a metric.
"""

from collections.abc import Callable, Mapping

from gate.metrics.rows import ROWS
from gate.metrics.spec import Family, MetricSpec, Role, Scope, Source, Timing, Unit
from gate.records.cases import Metric
from gate.records.studies import FaultKind
from gate.records.verdict import CauseKind

_ROWS = {row.metric: row for row in ROWS}
SPECS: Mapping[Metric, MetricSpec] = {metric: _ROWS[metric] for metric in Metric}


def select_metrics(fits: Callable[[MetricSpec], bool]) -> tuple[Metric, ...]:
    return tuple(metric for metric, spec in SPECS.items() if fits(spec))


# What a live pair times block by block, and so what every pair carries; of it, what the clock measures.
INTERLEAVED = select_metrics(lambda spec: spec.timing is Timing.BLOCKS)
LATENCIES = select_metrics(lambda spec: spec.timing is Timing.BLOCKS and spec.source is not Source.DERIVED)
COMPILE_TIMES = select_metrics(lambda spec: spec.timing is Timing.FIRST_CALL)
# What only a second process on full caches knows.
OF_WARM = select_metrics(lambda spec: spec.source is Source.WARM)
# Compile times, and what stands for them.
OF_COMPILES = frozenset({*COMPILE_TIMES, Metric.COMPILE_CALLS, Metric.CACHE_MISSES})
# What torch counts of its graphs: a process counts each of them anew, from nothing.
GRAPH_COUNTERS = frozenset(
    {Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.UNIQUE_GRAPHS, Metric.EAGER_FALLBACKS}
)
# What a process holds at most; an allocator happens to hold more in some.
MEMORY_PEAKS = (Metric.PEAK_MEMORY, Metric.MEMORY_RATIO)
# Counters of what was captured, generated, guarded and fetched from caches.
COMPILE_SIGNATURES = select_metrics(lambda spec: spec.is_compile_signature)
# The metrics that can fail a verdict; of the noisy ones, those that do so by themselves lead.
DECIDING = select_metrics(lambda spec: spec.role is Role.DECIDES)
NOISY_DECIDING = select_metrics(lambda spec: spec.role is Role.DECIDES and spec.family is Family.NOISY)
LEADING = tuple(metric for metric in NOISY_DECIDING if SPECS[metric].follows is None)


def explained_by(cause: CauseKind) -> frozenset[Metric]:
    """The metrics whose changes this cause may explain."""
    return frozenset(select_metrics(lambda spec: cause in spec.causes))


def find_planted(kind: FaultKind) -> Metric | None:
    """The metric that a fault is measured in; ``None`` where the case fails or nothing changes."""
    return next(iter(select_metrics(lambda spec: kind in spec.planted)), None)


def list_watching(metric: Metric) -> tuple[Metric, ...]:
    """The noisy metrics that decide over ``metric``: itself, those computed from it, and what leads these."""
    near = {metric, *select_metrics(lambda spec: metric in spec.parts)}
    near |= {SPECS[watched].follows or watched for watched in near}
    return tuple(watched for watched in NOISY_DECIDING if watched in near)
