"""Judges one case by pairs: noisy metrics by their own rule, the rest by those of their families.

Both sides ran in the same session. So the lower bound must be above no change, and only the estimate above
the threshold.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gate.decide.constants import (
    COMPILE_PAIR_SD,
    INTERVAL_CONFIDENCE,
    LIVE_PAIR_SD,
    LOOKS,
    MIN_PAIRS,
    OWN_NOISE_P,
    PRIOR_DF,
    PRIOR_SD,
    PROCESSOR_PAIR_SD,
    SETTLING_PAIRS,
)
from gate.decide.evidence.baseline import store_base
from gate.decide.evidence.compiles import Work, compare_work
from gate.decide.evidence.gather import Evidence, Question
from gate.decide.evidence.pairs import Paired, collect_paired, collect_processor, list_pairs
from gate.decide.evidence.values import collect_values
from gate.decide.judge.compare import add_questions, follow_leaders, judge_steady, list_comparisons
from gate.decide.judge.comparison import answer_question
from gate.decide.judge.counted import (
    NO_REPEATS,
    CountRules,
    Repeats,
    count_chances,
    count_needed_pairs,
    count_repeats,
    find_flickering,
)
from gate.decide.judge.interval import (
    BETTER,
    UNCHANGED,
    UNSETTLED,
    WORSE,
    Bar,
    Level,
    Reading,
    Ruling,
    compute_pooled_error,
    read_pairs,
    to_fraction,
)
from gate.decide.judge.machine import explain_open
from gate.decide.stats import Variance, compute_priors, compute_t_quantile, compute_variance
from gate.fingerprint import compares_stacks
from gate.metrics import COMPILE_TIMES, LATENCIES, MEMORY_PEAKS
from gate.records.cases import Metric, Policy, group_cases
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import CANDIDATE_ARM, Pairing, Run
from gate.records.verdict import MOVED, NOT_WORSE, Comparison, Reason, Status

# More pairs than this are not promised: they take too long.
MAX_FURTHER_PAIRS = 99

# The looks at which a metric may be falsely confirmed.
_CONVICTING_LOOKS = sum(look >= SETTLING_PAIRS for look in LOOKS)

ASSUMED_PROCESSOR = Variance(value=PROCESSOR_PAIR_SD**2, df=PRIOR_DF)


@dataclass(frozen=True, kw_only=True, slots=True)
class Screened:
    """What is known of a case before its pairs, from stored values and head's own trials."""

    # Of metrics that only the program moves, what head's own trials show: one pair that agrees is enough.
    seen: Mapping[Metric, Status | float] = field(default_factory=dict)
    is_steady: bool = False  # stored latencies are known, and not of two speeds
    repeats: Mapping[Metric, Repeats] = field(default_factory=dict)  # of all cases, in what is stored
    doubt: float = 0.0  # largest worsening in half widths of its interval; infinite where that has none
    slower: bool = False  # calls, for sure by stored values


NOT_SCREENED = Screened()


@dataclass(frozen=True, kw_only=True, slots=True)
class CasePairs(Evidence):
    """A case with its pairs; ``stored`` holds what the base measured."""

    paired: Mapping[Metric, Paired]
    processor: Paired | None  # of cold compiles
    screened: Screened = NOT_SCREENED

    @property
    def is_alike_in_base(self) -> bool:
        return self.base_case is not None and self.base_case.definition == self.case.definition


def gather_case_pairs(
    run: Run, policy: Policy, screened: Mapping[str, Screened] | None = None
) -> tuple[CasePairs, ...]:
    wanted = dict.fromkeys((case.id for case in run.cases), NOT_SCREENED) if screened is None else screened
    other_stack = compares_stacks(run)
    pairs, bases = list_pairs(run.trials), run.base_cases
    failures = group_cases(failure for failure in run.failures if failure.arm == CANDIDATE_ARM)
    heads = group_cases(
        trial
        for trial in run.trials
        if trial.arm == CANDIDATE_ARM and (screened is None or trial.pairing is not Pairing.ALONE)
    )
    sides = []
    for case in (case for case in run.cases if case.id in wanted):
        case_pairs, base_case = pairs.get(case.id, ()), bases.get(case.id)
        trials = [pair.head for pair in case_pairs] or list(heads.get(case.id, ()))
        is_alike = base_case is not None and base_case.definition == case.definition
        absence = Reason.UNPAIRED if is_alike else Reason.STALE_DEFINITION
        side = CasePairs(
            case=case,
            # The fullest last: causes are read off the last one, and some trials only measure latencies.
            trials=tuple(sorted(trials, key=lambda trial: len(trial.samples))),
            failures=tuple(failures.get(case.id, ())),
            paired=collect_paired(case_pairs),
            processor=collect_processor(case_pairs),
            values=collect_values(trials),
            stored=store_base(run.base, base_case, [pair.base for pair in case_pairs], case.definition),
            absence=absence if base_case else Reason.NO_BASELINE,
            base_case=base_case,
            other_stack=other_stack,
            screened=wanted[case.id],
        )
        sides.append(add_questions(side, policy, in_pairs=True))
    return tuple(sides)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRules:
    alpha: float  # one-sided, of each leading metric at each look
    # Of a metric in live pairs or others, by case.
    priors: Mapping[tuple[Metric, bool], Mapping[str, Variance]]
    processor: Mapping[str, Variance]  # of CPU times of cold compiles, by case
    counts: CountRules


def make_pair_rules(
    sides: Sequence[CasePairs], policy: Policy, repeats: Mapping[Metric, Repeats], *, times: int, cases: int
) -> PairRules:
    """For tests of so many ``times``, and of the counts of so many ``cases``."""
    variances: dict[tuple[Metric, bool], dict[str, Variance]] = {}
    for side in sides:
        for paired in side.paired.values():
            variances.setdefault((paired.metric, paired.is_live), {})[side.case.id] = _measure_first(paired)
    processors = {side.case.id: _measure_first(side.processor) for side in sides if side.processor}
    paired_repeats = count_repeats(question for side in sides for question in side.questions.values())
    both = {
        metric: repeats.get(metric, NO_REPEATS).join(paired_repeats.get(metric, NO_REPEATS))
        for metric in (*repeats, *paired_repeats)
    }
    flickering = find_flickering(both, MEMORY_PEAKS)
    budget = policy.error_budget / max(times + cases * count_chances(flickering), 1)
    return PairRules(
        alpha=budget / _CONVICTING_LOOKS,
        priors={key: compute_priors(of_cases, assume_noise(*key)) for key, of_cases in variances.items()},
        processor=compute_priors(processors, ASSUMED_PROCESSOR),
        counts=CountRules(alpha=budget, flickering=flickering, varied=find_flickering(both)),
    )


def compare_paired(side: CasePairs, rules: PairRules) -> tuple[Comparison, ...]:
    questions = side.questions
    readings = {metric: read_metric(side, metric, rules) for metric in side.paired if metric in questions}
    work = Work() if side.other_stack else compare_work(side)
    findings = {}
    for metric, question in questions.items():
        if metric in readings:
            findings[metric] = _judge_reading(side, readings, metric, rules, work)
        else:
            findings[metric] = _demand_repeat(question, side.screened.seen.get(metric), rules.counts)
    return list_comparisons(side, follow_leaders(findings))


def read_metric(side: CasePairs, metric: Metric, rules: PairRules) -> Reading:
    """Compiled latency has eager, timed by the same blocks, as its twin."""
    paired, eager = side.paired[metric], side.paired.get(Metric.EAGER_LATENCY)
    is_twin = metric is Metric.COMPILED_LATENCY and eager is not None and eager.is_live == paired.is_live
    return read_pairs(paired, rules.priors[metric, paired.is_live][side.case.id], eager if is_twin else None)


def assume_noise(metric: Metric, is_live: bool) -> Variance:
    """From pair to pair, as a variance of logarithms."""
    of_calls = LIVE_PAIR_SD if is_live else PRIOR_SD
    sd = COMPILE_PAIR_SD if metric in COMPILE_TIMES else of_calls
    return Variance(value=sd**2, df=PRIOR_DF)


def decide_pairs(reading: Reading, bar: Bar) -> Ruling:
    """Before the last look, UNSETTLED asks for more pairs; one pair does not show its own noise."""
    if reading.trials < MIN_PAIRS:
        return UNSETTLED
    if is_confirmed(reading, bar):
        return WORSE
    if is_confirmed(reading.mirror(), bar):
        return BETTER
    return UNCHANGED if bar.classify(reading) is Level.CLEAR else UNSETTLED


def is_confirmed(reading: Reading, bar: Bar) -> bool:
    """Sure within the error budget, and estimated beyond the threshold."""
    enough = reading.trials >= SETTLING_PAIRS
    return enough and bar.is_exceeded_by(reading) and _compute_low(reading, bar) > 0


def compute_pair_detectable(reading: Reading, bar: Bar) -> float:
    """Smallest true change, as a fraction, that is surely confirmed, at INTERVAL_CONFIDENCE."""
    if reading.trials < MIN_PAIRS:
        return to_fraction(math.inf)
    needed = reading.change - _compute_low(reading, bar)
    margin = reading.compute_margin(INTERVAL_CONFIDENCE)
    return to_fraction(max(bar.compute_log_edge(reading), needed) + margin)


def compute_further_pairs(reading: Reading, bar: Bar) -> int | None:
    """The fewest that would settle it with this estimate and noise; ``None`` beyond MAX_FURTHER_PAIRS."""
    for more in range(1, MAX_FURTHER_PAIRS + 1):
        if decide_pairs(reading.extend(reading.trials + more), bar) != UNSETTLED:
            return more
    return None


def _compute_low(reading: Reading, bar: Bar) -> float:
    """By the moderated noise, and by the case's own alone."""
    low = reading.compute_bound(bar.alpha)
    if reading.own_noise is None:
        return low
    error = compute_pooled_error(reading.own_noise, reading.trials)
    return min(
        low, reading.change + compute_t_quantile(max(bar.alpha, OWN_NOISE_P), reading.own_noise.df) * error
    )


def _measure_first(paired: Paired) -> Variance:
    return compute_variance(paired.changes[:SETTLING_PAIRS])


def _judge_reading(
    side: CasePairs, readings: Mapping[Metric, Reading], metric: Metric, rules: PairRules, work: Work
) -> Comparison:
    """A cold compile is judged by its CPU time, where that is known.

    The report shows the clock: a user waits for it, but it varies twice as much. What is slower by it alone
    is uncorroborated.
    """
    clock = judged = readings[metric]
    remarks: tuple[Fact, ...] = ()
    if metric is Metric.COLD_COMPILE_TIME and side.processor is not None:
        judged = read_pairs(side.processor, rules.processor[side.case.id])
        remarks = (Fact(code=Code.PROCESSOR_TIME, numbers={"change": math.expm1(judged.change)}),)
    bar = Bar(alpha=rules.alpha, threshold=side.questions[metric].threshold)
    ruling, detectable = decide_pairs(judged, bar), compute_pair_detectable(judged, bar)
    if metric in LATENCIES and judged.trials < SETTLING_PAIRS and not side.screened.is_steady:
        ruling = UNSETTLED  # two pairs convict nothing, and of a case with two speeds agree by luck
    is_same = metric in COMPILE_TIMES and not work.is_other and judged.trials >= SETTLING_PAIRS
    if ruling == UNSETTLED and is_same and not bar.is_exceeded_by(judged):
        ruling = UNCHANGED
    if ruling[0] in NOT_WORSE and is_confirmed(clock, bar):
        ruling = Status.INCONCLUSIVE, Reason.UNCORROBORATED
    change = clock.make_change(detectable)
    if clock.trials < MIN_PAIRS:
        change = replace(change, low=change.centre, high=change.centre)
    eager = readings.get(Metric.EAGER_LATENCY)
    if eager and ruling[0] is Status.REGRESSED and metric is Metric.COMPILED_LATENCY:
        remarks = (Fact(code=Code.EAGER_CHANGED, numbers={"change": math.expm1(eager.change)}),)
    if ruling == UNSETTLED:
        remarks += explain_open(side, metric)
    return replace(
        answer_question(side.questions[metric], ruling, *remarks, change=change, reading=clock),
        pairs=judged.trials,
        more_pairs=(compute_further_pairs(judged, bar) or 0) if ruling == UNSETTLED else None,
    )


def _demand_repeat(question: Question, seen: Status | float | None, rules: CountRules) -> Comparison:
    """A change of a counter, memory or drift stands once it was seen again."""
    finding = judge_steady(question, rules)
    is_again = finding.status is seen or (finding.status is Status.REGRESSED and {seen} == {*question.after})
    pairs = min(len(question.before), len(question.after))
    if question.metric in rules.flickering and finding.status is Status.INCONCLUSIVE:
        return replace(finding, pairs=pairs, more_pairs=max(count_needed_pairs(rules.alpha) - pairs, 1))
    if finding.status not in MOVED or is_again or pairs >= MIN_PAIRS:
        return replace(finding, pairs=pairs)
    return replace(finding, status=Status.INCONCLUSIVE, reason=Reason.UNSETTLED, pairs=pairs, more_pairs=1)
