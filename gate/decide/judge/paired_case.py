"""One comparison per case and metric by pairs: their own rule for the noisy, the families' for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gate.decide.constants import (
    BLIND_THRESHOLDS,
    COMPILE_PAIR_SD,
    LIVE_PAIR_SD,
    LOOKS,
    MIN_DF_FOR_PAIR_PRIOR,
    MIN_PAIRS,
    PAIR_PRIOR_DF,
    PAIRS_FOR_PRIOR,
    PROCESSOR_PAIR_SD,
    SETTLING_PAIRS,
    SHARED_SHARE,
    SOONER_THRESHOLDS,
    SUSPECT_P,
    TURNS_PAIR_SD,
)
from gate.decide.evidence.finding import Question
from gate.decide.evidence.pairs import Paired
from gate.decide.evidence.proxies import compute_calls_change, compute_processor_change, has_traces
from gate.decide.judge.compare import find_unreadable, follow_leaders, judge_steady, list_comparisons
from gate.decide.judge.confirm import (
    compute_further_pairs,
    compute_pair_detectable,
    decide_pairs,
    is_confirmed,
    is_excluded,
    make_pair_change,
    read_pairs,
)
from gate.decide.judge.controls import Controls, Doubt, find_doubt, has_witness
from gate.decide.judge.noisy import make_finding
from gate.decide.judge.screen import Bar, Reading, is_beyond, is_significant
from gate.decide.judge.sides import CasePairs
from gate.decide.stats.estimate import estimate_log_mean
from gate.decide.stats.moments import Variance, compute_logs, compute_prior, compute_variance
from gate.decide.stats.student import compute_t_quantile
from gate.metrics import COMPILE_TIMES, SPECS, Family
from gate.records import (
    MOVED,
    NOT_WORSE,
    Code,
    Comparison,
    Fact,
    Finding,
    Metric,
    Policy,
    Reason,
    Status,
    Threshold,
)

# What the same blocks time: where few cases are suspect, each tells how noisy the machine is for the other.
_TIMED_BOTH = SPECS[Metric.WARM_SPEEDUP].parts
_TWINS = dict(zip(_TIMED_BOTH, reversed(_TIMED_BOTH), strict=True))
# How often a metric may be falsely confirmed: at each look with so many pairs, and by the ranks at the last.
_CHANCES = sum(look >= MIN_PAIRS for look in LOOKS) + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRules:
    """What judging one case by pairs needs from all the others."""

    alpha: float  # one-sided, of each leading metric at each look
    priors: Mapping[tuple[Metric, bool], Variance]  # of a metric in live pairs, and in others
    processor: Variance  # of CPU times of cold compiles


def make_pair_rules(sides: Sequence[CasePairs], policy: Policy, tests: int) -> PairRules:
    """Divide the error budget over so many metrics and all looks, and learn the noise of pairs."""
    known: dict[tuple[Metric, bool], list[Variance]] = {}
    for paired in (one for side in sides for one in side.paired.values()):
        known.setdefault((paired.metric, paired.is_live), []).append(_measure_first(paired))
    processors = [_measure_first(side.processor) for side in sides if side.processor]
    return PairRules(
        alpha=policy.error_budget / (max(tests, 1) * _CHANCES),
        priors={
            key: _make_prior(found, assume_sd(*key), _find_twins(known, key)) for key, found in known.items()
        },
        processor=_make_prior(processors, PROCESSOR_PAIR_SD, ()),
    )


def compare_paired(side: CasePairs, rules: PairRules) -> tuple[Comparison, ...]:
    """All comparisons of one case with the base's trials beside it."""
    readings = {
        metric: read_metric(side, metric, rules) for metric in side.paired if metric in side.questions
    }
    controls = Controls(
        eager=readings.get(Metric.EAGER_LATENCY),
        speedup=readings.get(Metric.WARM_SPEEDUP),
        calls=compute_calls_change(side.questions),
        processor=compute_processor_change(side.evidence),
        traces=has_traces(side.evidence, side.questions),
    )
    findings = {
        metric: _judge_metric(question, readings.get(metric), rules, controls)
        for metric, question in side.questions.items()
    }
    cold = readings.get(Metric.COLD_COMPILE_TIME)
    if cold is not None and side.processor is not None:
        processor = read_pairs(side.processor, rules.processor)
        bar = Bar(alpha=rules.alpha, threshold=side.questions[cold.metric].threshold)
        findings[cold.metric] = _judge_cold(cold, processor, bar, has_witness=has_witness(controls))
    findings = follow_leaders(
        {
            metric: _show_measured(found, side.questions[metric], readings.get(metric))
            for metric, found in findings.items()
        },
        controls,
    )
    speedup = findings.get(Metric.WARM_SPEEDUP)
    if speedup and speedup.reason is Reason.SUSPECT:  # as its latency, in the words of pairs
        findings[Metric.WARM_SPEEDUP] = replace(speedup, reason=Reason.UNSETTLED)
    return list_comparisons(side.evidence, side.questions, findings)


def _show_measured(found: Finding, question: Question, reading: Reading | None) -> Finding:
    """Show what head measured: the change of pairs is of blocks side by side, and not of these values."""
    if reading is None or found.candidate is None or min(question.after) <= 0:
        return found
    centre = fmean(compute_logs(question.after))
    return replace(found, candidate=estimate_log_mean(centre, reading.noise, reading.trials))


def read_metric(side: CasePairs, metric: Metric, rules: PairRules) -> Reading:
    """Pool the pairs of one metric, with what the same blocks timed of the other program beside them."""
    paired, twin = side.paired[metric], side.paired.get(_TWINS.get(metric, metric))
    shared = twin is not paired and twin is not None and twin.is_live == paired.is_live
    return read_pairs(paired, rules.priors[metric, paired.is_live], twin if shared else None)


def _measure_first(paired: Paired) -> Variance:
    return compute_variance(paired.changes[:PAIRS_FOR_PRIOR])


def assume_sd(metric: Metric, is_live: bool) -> float:
    """What a metric's log changes are taken to vary by from pair to pair, before any says so."""
    if metric in COMPILE_TIMES:
        return COMPILE_PAIR_SD
    return LIVE_PAIR_SD if is_live else TURNS_PAIR_SD


def _make_prior(variances: Sequence[Variance], assumed_sd: float, twins: Sequence[Variance]) -> Variance:
    """What the cases teach; of too few what is assumed, or more where they and their twins vary more."""
    assumed = Variance(value=assumed_sd**2, df=PAIR_PRIOR_DF)
    is_learned = _count_df(variances) >= MIN_DF_FOR_PAIR_PRIOR
    taught = variances if is_learned else (*variances, *twins)
    if _count_df(taught) < MIN_DF_FOR_PAIR_PRIOR:
        return assumed
    learned = compute_prior(taught, assumed)
    if not is_learned and learned.value < assumed.value:
        return assumed
    return replace(learned, df=min(learned.df, PAIR_PRIOR_DF))


def _find_twins(
    known: Mapping[tuple[Metric, bool], Sequence[Variance]], key: tuple[Metric, bool]
) -> Sequence[Variance]:
    metric, is_live = key
    return known.get((_TWINS[metric], is_live), ()) if metric in _TWINS else ()


def _count_df(variances: Sequence[Variance]) -> float:
    return sum(one.df for one in variances)


def _judge_metric(
    question: Question, reading: Reading | None, rules: PairRules, controls: Controls
) -> Finding:
    if question.spec.family is not Family.NOISY:
        return _demand_repeat(question, judge_steady(question))
    if reading is None:
        return replace(find_unreadable(question), pairs=min(len(question.before), len(question.after)))
    return _judge_reading(reading, Bar(alpha=rules.alpha, threshold=question.threshold), controls)


def _demand_repeat(question: Question, finding: Finding) -> Finding:
    """A change of a counter, of memory or of drift stands once it was seen again."""
    pairs = min(len(question.before), len(question.after))
    if finding.status not in MOVED or pairs >= MIN_PAIRS:
        return replace(finding, pairs=pairs)
    return replace(finding, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED, pairs=pairs, more_pairs=1)


def _judge_reading(reading: Reading, bar: Bar, controls: Controls) -> Finding:
    found = decide_pairs(reading, bar)
    doubt = find_doubt(reading, controls) if reading.metric in COMPILE_TIMES else None
    if doubt is not None:
        found = _doubt_compile(reading, bar, found, doubt)
    eager = _name_eager(reading, controls.eager) if found[0] is Status.REGRESSED else ()
    return _find_beside(reading, reading, bar, found, eager)


def _find_beside(
    shown: Reading, judged: Reading, bar: Bar, found: tuple[Status, Reason], remarks: tuple[Fact, ...]
) -> Finding:
    """What pairs found by one reading, in the values of another, and how many more would settle it."""
    change = make_pair_change(shown, bar, compute_pair_detectable(judged, bar))
    return replace(
        make_finding(shown, found, change, remarks),
        pairs=judged.trials,
        more_pairs=(compute_further_pairs(judged, bar) or 0) if found[1] is Reason.UNSETTLED else None,
    )


def _judge_cold(clock: Reading, processor: Reading, bar: Bar, *, has_witness: bool) -> Finding:
    """Judge a cold compile by its CPU time; what the clock alone convicts waited, and nobody knows why.

    Where nothing that can be counted has moved, an estimate below the threshold clears it. The clock's
    values are shown: they are what a user waits for, and vary twice as much. What takes more CPU time and
    seems sooner done, as by compiling on more cores, is neither worse nor better.
    """
    status, reason = decide_pairs(processor, bar)
    is_small = processor.change <= math.log1p(bar.threshold.relative) and processor.trials >= SETTLING_PAIRS
    if status is Status.INCONCLUSIVE and is_small and not has_witness:
        status, reason = Status.UNCHANGED, Reason.ACQUITTED
    if status is Status.REGRESSED and _seems_sooner(clock, bar):
        status, reason = Status.INCONCLUSIVE, Reason.SOONER_DONE
    elif status in NOT_WORSE and is_confirmed(clock, bar):
        status, reason = Status.INCONCLUSIVE, Reason.UNCORROBORATED
    by = Fact(code=Code.PROCESSOR_TIME, numbers={"change": math.expm1(processor.change)})
    return _find_beside(clock, processor, bar, (status, reason), (by,))


def _seems_sooner(clock: Reading, bar: Bar) -> bool:
    """Whether it took less by the clock: by SOONER_THRESHOLDS, and with a one-sided p below SUSPECT_P."""
    chance = compute_t_quantile(1 - SUSPECT_P, clock.df) * clock.error
    return -clock.change > max(chance, SOONER_THRESHOLDS * math.log1p(bar.threshold.relative))


def _doubt_compile(
    reading: Reading, bar: Bar, found: tuple[Status, Reason], doubt: Doubt
) -> tuple[Status, Reason]:
    """A longer compile that did no more work that can be counted, as against a stored baseline."""
    status, _ = found
    lifted = doubt.liftable and is_beyond(reading, bar, 0.0, doubt.thresholds)
    if status is Status.REGRESSED and not lifted:
        return Status.INCONCLUSIVE, doubt.reason
    is_small = reading.change <= math.log1p(bar.threshold.relative) and reading.trials >= SETTLING_PAIRS
    if status is Status.INCONCLUSIVE and is_small and not _hides_more(reading, bar):
        return Status.UNCHANGED, Reason.ACQUITTED
    return found


def _hides_more(reading: Reading, bar: Bar) -> bool:
    """Whether a warm compile may take longer by more than no counter shows: its calls are counted cold."""
    limit = bar.threshold
    scaled = Threshold(relative=BLIND_THRESHOLDS * limit.relative, absolute=BLIND_THRESHOLDS * limit.absolute)
    blind = replace(bar, threshold=scaled)
    return reading.metric is Metric.WARM_COMPILE_TIME and not is_excluded(reading, blind)


def _name_eager(latency: Reading, eager: Reading | None) -> tuple[Fact, ...]:
    """Whether eager changed too: side by side that is no machine, but something both share."""
    if eager is None or latency.metric is not Metric.COMPILED_LATENCY:
        return ()
    is_shared = is_significant(eager) and eager.change >= SHARED_SHARE * latency.change
    numbers = {"change": math.expm1(eager.change), **({"shared": 1.0} if is_shared else {})}
    return (Fact(code=Code.EAGER_CHANGED, numbers=numbers),)
