"""How pairs of one program with itself vary, and whether they are centred on no change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from gate.decide.constants import LOOKS
from gate.decide.evidence.pairs import Paired
from gate.decide.judge.confirm import compute_pair_detectable, extend_reading
from gate.decide.judge.paired_case import PairRules, make_pair_rules, read_metric
from gate.decide.judge.rules import find_pair_threshold
from gate.decide.judge.screen import Bar, Reading, compute_edge, is_too_noisy
from gate.decide.judge.sides import CasePairs, gather_case_pairs
from gate.decide.stats.moments import compute_variance
from gate.decide.stats.student import compute_t_quantile
from gate.metrics import LEADING, SPECS, Role
from gate.records import Code, Fact, Metric, Policy, Run
from gate.records.calibration import Flaw, Instability, PairNoise

# Two-sided p below which pairs of one program with itself are off centre: seldom by chance, since
# some tens of metrics are looked at.
BIAS_P = 0.001
# A bias below this share of the threshold leaves the verdict as it is.
BIAS_SHARE = 1 / 3


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSeries:
    """The pairs of one metric of one case, and how they are judged."""

    case_id: str
    paired: Paired
    reading: Reading
    bar: Bar

    @property
    def edge(self) -> float:
        """The smallest fraction that matters."""
        return compute_edge(self.bar.threshold, self.reading.baseline)


def gather_pair_series(run: Run, policy: Policy) -> tuple[PairSeries, ...]:
    """All noisy metrics that the pairs of a run measured, as if one case were suspect."""
    sides = gather_case_pairs(run, policy)
    rules = make_pair_rules(sides, policy, len(LEADING))
    return tuple(_make_series(side, metric, rules, policy) for side in sides for metric in side.paired)


def measure_pair_noise(series: PairSeries) -> PairNoise:
    """Describe the pairs; what they would settle is that of the last look."""
    changes = series.paired.changes
    return PairNoise(
        pairs=len(changes),
        noise=math.sqrt(compute_variance(changes).value),
        bias=math.expm1(fmean(changes)),
        detectable=compute_pair_detectable(_imagine_last_look(series.reading), series.bar),
    )


def list_pair_instabilities(series: PairSeries) -> Iterator[Instability]:
    """Name what the pairs of a deciding metric cannot be trusted for."""
    metric, reading = series.paired.metric, series.reading
    if SPECS[metric].role is not Role.DECIDES:
        return
    certain = abs(reading.change) > -compute_t_quantile(BIAS_P / 2, reading.df) * reading.error
    if certain and abs(math.expm1(reading.change)) > BIAS_SHARE * series.edge:
        numbers = {"pairs": float(reading.trials), "change": math.expm1(reading.change)}
        told = Fact(code=Code.PAIRS_BIASED, numbers=numbers)
        yield Instability(case_id=series.case_id, metric=metric, flaw=Flaw.BIASED_PAIRS, told=told)
    detectable = compute_pair_detectable(_imagine_last_look(reading), series.bar)
    if is_too_noisy(detectable, series.bar.threshold, reading.baseline):
        numbers = {"unseen": detectable, "pairs": LOOKS[-1]}
        told = Fact(code=Code.PAIRS_VARY, numbers=numbers)
        yield Instability(case_id=series.case_id, metric=metric, flaw=Flaw.TOO_NOISY, told=told)


def _make_series(side: CasePairs, metric: Metric, rules: PairRules, policy: Policy) -> PairSeries:
    case_id = side.evidence.case.id
    return PairSeries(
        case_id=case_id,
        paired=side.paired[metric],
        reading=read_metric(side, metric, rules),
        bar=Bar(alpha=rules.alpha, threshold=find_pair_threshold(policy, case_id, metric)),
    )


def _imagine_last_look(reading: Reading) -> Reading:
    """The same noise and no change, with as many pairs as the last look has."""
    return replace(extend_reading(reading, LOOKS[-1]), change=0.0)
