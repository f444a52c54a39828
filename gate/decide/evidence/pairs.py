"""Pairs: which trials belong together, and by how much head differs from base in each."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from gate.decide.constants import ALIKE_ERRORS
from gate.decide.evidence.compiles import sum_processor_s
from gate.decide.evidence.values import PAIRS_IN_SUPER_BLOCK, compute_speedup, compute_values
from gate.decide.stats import compute_hodges_lehmann
from gate.metrics import INTERLEAVED, LATENCIES, SPECS, Family, MetricSpec
from gate.records.cases import Metric
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Pairing, Trial


def compare_latency(base: Trial, head: Trial, metric: Metric, *, leaves_out: bool = True) -> float | None:
    """Log change of a latency, block by block, estimated by Hodges and Lehmann; ``None`` where there is none.

    With ``leaves_out``, only of calls during which no thread waited for a processor, where both sides were
    watched: other programs belong to neither side.
    """
    whole = base.samples.get(metric, ()), head.samples.get(metric, ())
    # Blocks that a recompile spoilt are left out of one arm only: what is left is no pairs then.
    if len(whole[0]) != len(whole[1]):
        return None
    # A difference of logarithms, since a ratio of what somebody has edited may be no number.
    changes = [
        math.log(after) - math.log(before)
        for _, _, before, after in (_list_watched(base, head, metric) if leaves_out else ())
        if before > 0 and after > 0
    ]
    if changes:
        return compute_hodges_lehmann(changes)
    ratio = compute_speedup(*whole)
    return -math.log(ratio) if ratio is not None and 0 < ratio < math.inf else None


def are_disturbed_alike(pairs: Iterable[tuple[Trial, Trial]], metric: Metric) -> bool:
    """Whether base and head lost as many blocks, at the same cost, over all pairs.

    If not, a side may be disturbed by its own threads. Neighbouring blocks are no independent draws;
    super-blocks, which outlast what other programs do, are.
    """
    lost: list[float] = []  # so many more blocks of base than of head, in each super-block
    costs: list[float] = []  # by how much more they cost head, as a logarithm
    for blocks in (_list_watched(base, head, metric) for base, head in pairs):
        for start in range(0, len(blocks), PAIRS_IN_SUPER_BLOCK):
            part = blocks[start : start + PAIRS_IN_SUPER_BLOCK]
            lost.append(sum((base == 0) - (head == 0) for _, _, base, head in part))
            block_costs = [
                math.log(all_head) - math.log(head) - math.log(all_base) + math.log(base)
                for all_base, all_head, base, head in part
                if min(all_base, all_head, base, head) > 0
            ]
            costs += [fmean(block_costs)] if block_costs else []
    return _is_about_nothing(lost) and _is_about_nothing(costs)


def _list_watched(base: Trial, head: Trial, metric: Metric) -> list[tuple[float, ...]]:
    """Seconds of a call in each block: base's and head's, of all calls and of undisturbed ones.

    Empty where a block is not known by all four.
    """
    sides = (base.samples, head.samples, base.undisturbed_s, head.undisturbed_s)
    times = [side.get(metric, ()) for side in sides]
    return list(zip(*times, strict=True)) if len(set(map(len, times))) == 1 else []


def _is_about_nothing(values: Sequence[float]) -> bool:
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return False
    return abs(fmean(values)) <= ALIKE_ERRORS * stdev(values) / math.sqrt(len(values))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    base: Trial
    head: Trial

    @property
    def is_live(self) -> bool:
        return self.base.pairing is Pairing.LIVE and self.head.pairing is Pairing.LIVE


@dataclass(frozen=True, kw_only=True, slots=True)
class Paired:
    """One noisy metric of one case over its pairs."""

    metric: Metric
    changes: Sequence[float]  # natural logarithm of head over base in each pair, + is worse
    base: Sequence[float]  # the base's values, in the metric's unit
    head: Sequence[float]
    is_live: bool


def list_pairs(trials: Iterable[Trial]) -> Mapping[str, tuple[Pair, ...]]:
    arms: dict[tuple[str, int], dict[str, Trial]] = {}
    for trial in trials:
        if trial.pairing is not Pairing.ALONE:
            arms.setdefault((trial.case_id, trial.index), {})[trial.arm] = trial
    pairs: dict[str, list[Pair]] = {}
    for case_id, index in sorted(arms):
        both = arms[case_id, index]
        if BASE_ARM in both and CANDIDATE_ARM in both:
            pairs.setdefault(case_id, []).append(Pair(base=both[BASE_ARM], head=both[CANDIDATE_ARM]))
    return {case_id: tuple(case_pairs) for case_id, case_pairs in pairs.items()}


def collect_paired(pairs: Sequence[Pair]) -> Mapping[Metric, Paired]:
    """Log changes of every noisy metric, one a pair, + is worse.

    Latencies of a live pair are compared block by block, and the speedup is their difference; all else is
    compared by the values of the two trials.
    """
    live = [(pair.base, pair.head) for pair in pairs if pair.is_live]
    alike = [metric for metric in LATENCIES if are_disturbed_alike(live, metric)]
    values: dict[Metric, list[tuple[float, float, float]]] = {}
    turns: set[Metric] = set()  # metrics of which a pair was not live
    for pair in pairs:
        base, head = compute_values(pair.base), compute_values(pair.head)
        changes = {
            metric: _compare_values(spec, base[metric], head[metric])
            for metric, spec in SPECS.items()
            if spec.family is Family.NOISY and base.get(metric, 0.0) > 0 and head.get(metric, 0.0) > 0
        }
        changes |= _compare_blocks(pair, alike) if pair.is_live else {}
        for metric, change in changes.items():
            values.setdefault(metric, []).append((change, base[metric], head[metric]))
        turns |= set() if pair.is_live else changes.keys()
    return {
        metric: _make_paired(metric, values, is_live=metric in INTERLEAVED and metric not in turns)
        for metric, values in values.items()
    }


def _compare_values(spec: MetricSpec, base: float, head: float) -> float:
    change = math.log(head / base)
    return -change if spec.higher_is_better else change


def collect_processor(pairs: Iterable[Pair]) -> Paired | None:
    """Processor seconds of cold compiles; ``None`` where no pair knows both."""
    times = [(sum_processor_s(pair.base.phases_s), sum_processor_s(pair.head.phases_s)) for pair in pairs]
    positive = [(math.log(head / base), base, head) for base, head in times if min(base, head) > 0]
    return _make_paired(Metric.COLD_COMPILE_TIME, positive, is_live=False) if positive else None


def _make_paired(metric: Metric, values: Sequence[tuple[float, float, float]], *, is_live: bool) -> Paired:
    changes, base, head = zip(*values, strict=True)
    return Paired(metric=metric, changes=changes, base=base, head=head, is_live=is_live)


def _compare_blocks(pair: Pair, alike: Collection[Metric]) -> dict[Metric, float]:
    changes: dict[Metric, float] = {}
    for metric in LATENCIES:
        change = compare_latency(pair.base, pair.head, metric, leaves_out=metric in alike)
        if change is not None:
            changes[metric] = change
    eager, compiled = SPECS[Metric.WARM_SPEEDUP].parts
    if eager in changes and compiled in changes:
        changes[Metric.WARM_SPEEDUP] = changes[compiled] - changes[eager]
    return changes
