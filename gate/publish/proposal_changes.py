"""What a proposal of baselines changes: values that moved, noise that grew, and all else; pure.

A baseline can be made useless without moving a median: values that scatter let every later regression
pass as noise, and a case that is defined anew has nothing to be held against. So all of it is listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median, stdev

from gate.metrics import SPECS, Family, Role
from gate.records import Baseline, Metric
from gate.store.baselines import Proposal, ProposalKind
from gate.units import join_some

SMALLEST_MOVE = 0.005  # changes below half a percent are not worth a row
# Noise of a few trials doubles by chance; below these it hides nothing that a threshold would show.
NOISE_FACTOR = 2.0
SMALLEST_NOISE = {Family.NOISY: 0.01, Family.NEARLY_EXACT: 0.005, Family.LOG2: 0.1, Family.EXACT: 0.0}
_NAMED = 6  # metrics named of one case


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A deciding metric whose median moved, or whose noise grew."""

    case_id: str
    metric: Metric
    old: float
    new: float

    @property
    def is_worse(self) -> bool:
        """Whether a median moved the wrong way."""
        return (self.new < self.old) is SPECS[self.metric].higher_is_better


@dataclass(frozen=True, kw_only=True, slots=True)
class Replacement:
    """What is proposed, and the stored baseline that it would replace."""

    old: Baseline
    new: Baseline


def list_replacements(
    proposals: Iterable[Proposal], old: Iterable[Baseline], kind: ProposalKind
) -> list[Replacement]:
    """List the proposals of a kind beside what they would replace."""
    before = {item.case_id: item for item in old}
    proposed = (proposal.baseline for proposal in proposals if proposal.kind is kind)
    return [Replacement(old=before[new.case_id], new=new) for new in proposed]


def list_moves(pairs: Iterable[Replacement]) -> list[Move]:
    """List the deciding metrics whose median moved."""
    return [
        move
        for pair in pairs
        for move in _compare(pair, lambda _, values: median(values))
        if abs(move.new - move.old) > SMALLEST_MOVE * abs(move.old)
    ]


def list_growths(pairs: Iterable[Replacement]) -> list[Move]:
    """List the deciding metrics that scatter at least twice as much as before."""
    return [
        growth
        for pair in pairs
        for growth in _compare(pair, compute_scatter)
        if growth.new > SMALLEST_NOISE[SPECS[growth.metric].family]
        and growth.new >= NOISE_FACTOR * growth.old
    ]


def _compare(pair: Replacement, compute: Callable[[Metric, Sequence[float]], float]) -> Iterator[Move]:
    """Compare what is computed of the deciding metrics' values."""
    for metric in Metric:
        old, new = pair.old.trials.get(metric), pair.new.trials.get(metric)
        if SPECS[metric].role is Role.DECIDES and old and new:
            values = {"old": compute(metric, old), "new": compute(metric, new)}
            yield Move(case_id=pair.new.case_id, metric=metric, **values)


def compute_scatter(metric: Metric, values: Sequence[float]) -> float:
    """Compute how much the trials of a metric scatter.

    It is a standard deviation: a fraction of the value, of log2 values in their unit; of counters it is the
    difference between the largest and the smallest.
    """
    family = SPECS[metric].family
    if family is Family.EXACT or len(values) < 2:  # noqa: PLR2004 - one value does not scatter
        return max(values) - min(values)
    if family is Family.LOG2:
        return stdev(values)
    if min(values) > 0:
        return stdev(map(math.log, values))
    return stdev(values) / abs(median(values)) if median(values) else math.inf


def describe_rest(pair: Replacement) -> str:
    """Describe what else changed in a case: everything but the medians that decide."""
    old, new = pair.old, pair.new
    moved = {move.metric for move in list_moves([pair])}
    values = [one for one in Metric if one in old.trials and one in new.trials and one not in moved]
    parts = (
        _count_trials(old, new),
        _name("values of", [one for one in values if old.trials[one] != new.trials[one]]),
        _name("newly measured:", [one for one in Metric if one in new.trials.keys() - old.trials.keys()]),
        _name("no longer measured:", [one for one in Metric if one in old.trials.keys() - new.trials.keys()]),
        "generated code" if old.identity != new.identity else "",
        "graph breaks" if old.graph_breaks != new.graph_breaks else "",
        "the workload's own description" if old.workload != new.workload else "",
        "compile phases" if old.phases_s != new.phases_s else "",
        "times of kernels" if old.kernels_s != new.kernels_s else "",
        "times of a call's parts" if old.parts_s != new.parts_s else "",
        "speed of the machine" if old.canaries_s != new.canaries_s else "",
    )
    return "; ".join(part for part in parts if part)


def _count_trials(old: Baseline, new: Baseline) -> str:
    before, after = (max(map(len, one.trials.values()), default=0) for one in (old, new))
    return f"{after} trials instead of {before}" if before != after else ""


def _name(label: str, metrics: Sequence[Metric]) -> str:
    return f"{label} {join_some(metrics, _NAMED)}" if metrics else ""
