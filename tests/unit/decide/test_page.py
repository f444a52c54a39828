"""The tables of docs/decision.md: each row is tried on drawn values, and ends as the page says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gate.decide.conclude.outcome import decide_outcome
from gate.decide.evidence.pairs import Paired
from gate.decide.evidence.programs import Work
from gate.decide.evidence.values import Question
from gate.decide.judge.compare import get_limit, judge_steady
from gate.decide.judge.interval import Bar, Reading, compute_edge, read_pairs, read_stored
from gate.decide.judge.machine import SESSION
from gate.decide.judge.pairs import assume_noise, decide_pairs
from gate.decide.judge.stored import Times, judge_time
from gate.decide.stats import (
    NOTHING_KNOWN,
    Variance,
    compute_t_quantile,
    compute_variance,
    estimate_metric,
    pool_variances,
    summarize_logs,
)
from gate.decide.verdict import screen_run
from gate.metrics import SPECS
from gate.records.cases import Acceptance, Case, DType, Metric, Threshold
from gate.records.run import BaseArm, Provenance
from gate.records.verdict import BROKEN, JUDGED, Outcome, Reason, Status
from tests import decision_page
from tests.decision_page import Ruling, holds, read_constant, read_ruling, read_rulings, read_table
from tests.hosts import CPU_HOST
from tests.make import make_failure, make_row

from .conftest import TODAY, Situation, decide, make_baselines, make_policy, make_run

LATENCY, EAGER, RATIO = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD = Metric.COLD_COMPILE_TIME
THRESHOLD = Threshold(relative=0.05, absolute=0.0)
EDGE = math.log1p(THRESHOLD.relative)
WORSE, BETTER = (Status.REGRESSED, Reason.BEYOND_BAR), (Status.IMPROVED, Reason.BEYOND_BAR)


def choose(rows: Sequence[tuple[str, str]], conditions: Mapping[str, bool]) -> Ruling:
    """The status of the first row whose condition holds; the page has these conditions, and no other."""
    assert [condition for condition, _ in rows] == [*conditions]
    return next(read_ruling(cell) for condition, cell in rows if conditions[condition])


# --- stored values ---


@given(
    factor=st.floats(0.8, 1.4),
    spread=st.floats(0.001, 0.03),
    has_base=st.booleans(),
)
def test_a_stored_time_is_judged_by_its_interval(factor: float, spread: float, has_base: bool) -> None:
    """One cold compile of which nothing but the clock is known, against five stored ones."""
    stored = tuple(10.0 * math.exp(spread * step) for step in (-1.0, -0.5, 0.0, 0.5, 1.0))
    one = Situation(before={COLD: stored}, after={COLD: (10.0 * factor,)})
    run = make_run(one)
    base = BaseArm(label="main", environment=CPU_HOST, provenance=Provenance(commit="abc"), cases=run.cases)
    run = replace(run, base=base) if has_base else run
    (row,) = screen_run(run, make_baselines(one), make_policy()).comparisons

    arms = summarize_logs(stored, (10.0 * factor,))
    assert arms is not None
    reading = read_stored(COLD, arms, NOTHING_KNOWN, SESSION, 0.0)
    (beyond, low, worse), (clear, high, unchanged), (still, otherwise, unsettled) = read_table("reading")
    assert (beyond, clear, still, otherwise) == ("beyond", "clear", "open", "else")
    assert worse == "worse, unless a rule below says otherwise"
    formula, with_base, alone = re.fullmatch(r"(.+); k is (\w+) with a base, else (\w+)", high).groups()  # type: ignore[union-attr] # it matches
    threshold = SPECS[COLD].threshold
    values = {"d": reading.change, "e": math.log1p(compute_edge(threshold, reading.baseline))}
    values["k"] = read_constant(with_base if has_base else alone)
    values["high"] = reading.compute_bound(read_constant("CLEAR_CONFIDENCE"))
    values["low"] = reading.compute_bound(0.01)  # of one comparison, one look
    mirrored = values | {"d": -reading.change, "low": -reading.change - reading.change + values["low"]}
    if holds(low, **values):
        assert (row.status, row.reason) == WORSE
    elif holds(low, **mirrored):
        assert (row.status, row.reason) == BETTER
    else:
        assert (row.status, row.reason) == read_ruling(unchanged if holds(formula, **values) else unsettled)


@dataclass(frozen=True)
class Calls:
    """Readings of compiled calls by the clock, by the ratio and of eager."""

    clock: Reading
    ratio: Reading
    eager: Reading
    suite: float
    stored_code: bool

    def mirror(self) -> Calls:
        return replace(self, clock=self.clock.mirror(), ratio=self.ratio.mirror(), eager=self.eager.mirror())


def make_reading(change: float, error: float) -> Reading:
    return Reading(
        change=change,
        error=error,
        df=20.0,
        noise=Variance(value=error**2, df=20.0),
        baseline=1.0,
        candidate=math.exp(change),
        trials=3,
        baseline_trials=5,
    )


readings = st.builds(make_reading, st.floats(-0.2, 0.2), st.sampled_from([0.001, 0.01, 0.03]))
calls = st.builds(Calls, readings, readings, readings, st.sampled_from([-0.05, 0.0, 0.06]), st.booleans())
ALPHA = 0.001


def is_beyond(reading: Reading) -> bool:
    return holds("low > e", low=reading.compute_bound(ALPHA), e=EDGE)


def is_clear(reading: Reading) -> bool:
    formula = read_table("reading")[1][1].partition(";")[0]
    high = reading.compute_bound(read_constant("CLEAR_CONFIDENCE"))
    return holds(formula, d=reading.change, e=EDGE, high=high, k=1.0)


def is_estimated_beyond(reading: Reading) -> bool:
    return reading.change > EDGE


def is_eager_faster(one: Calls) -> bool:
    """It fell by that share of what the ratio fell; that may be nothing."""
    return -one.eager.change >= read_constant("SHARED_SHARE") * one.ratio.change


def is_worse(one: Calls) -> bool:
    both = is_estimated_beyond(one.clock) and is_estimated_beyond(one.ratio)
    return both and (is_beyond(one.clock) or (is_beyond(one.ratio) and not is_eager_faster(one)))


def is_above_suite(one: Calls) -> bool:
    low = one.clock.compute_bound(1 - read_constant("CLEAR_CONFIDENCE"))
    return is_estimated_beyond(one.clock) and low > max(one.suite, 0.0)


# What the cells of the clock and of the ratio say, as the page has it.
CLOCK: Mapping[str, Callable[[Calls], bool]] = {
    (
        "both estimates beyond e, and the clock is beyond, or the ratio is and not because eager got faster"
    ): is_worse,
    "beyond": lambda one: is_beyond(one.clock),
    "the mirror image of worse": lambda one: is_worse(one.mirror()),
    "clear": lambda one: is_clear(one.clock),
    "not clear; d > e, and surely above the suite (above 0 with fewer cases)": lambda one: (
        not is_clear(one.clock) and is_above_suite(one)
    ),
    "not clear; a call runs only the stored code": lambda one: not is_clear(one.clock) and one.stored_code,
    "else": lambda _: True,
}
RATIO_SAYS: Mapping[str, Callable[[Calls], bool]] = {
    "": lambda _: True,
    "not estimated beyond e": lambda one: not is_estimated_beyond(one.ratio),
    "clear, or eager got faster by SHARED_SHARE of what it fell, as it did if that is nothing": lambda one: (
        is_clear(one.ratio) or is_eager_faster(one)
    ),
    "clear": lambda one: is_clear(one.ratio),
}


@given(one=calls)
def test_a_latency_is_judged_by_the_clock_and_by_its_ratio(one: Calls) -> None:
    """The first row that holds."""
    rows = read_table("clock")
    assert [clock for clock, _, _ in rows] == [*CLOCK]
    assert {ratio for _, ratio, _ in rows} == {*RATIO_SAYS}
    bar = Bar(alpha=ALPHA, threshold=THRESHOLD)
    metrics = {LATENCY: one.clock, RATIO: one.ratio, EAGER: one.eager}
    times = Times(
        readings=metrics,
        bars=dict.fromkeys(metrics, bar),
        work=Work(),
        stored_code=one.stored_code,
        suite=one.suite,
    )
    expected = next(cell for clock, ratio, cell in rows if CLOCK[clock](one) and RATIO_SAYS[ratio](one))
    assert judge_time(LATENCY, times) == read_ruling(expected)


compiles = st.builds(
    Work,
    calls=st.sampled_from([None, 0.0, 0.019, 0.021, -0.05]),
    processor=st.sampled_from([None, 0.0, 0.13, 0.15]),
    counts=st.booleans(),
)


def has_sign(metric: Metric, work: Work) -> bool:
    """Whether anything beside the clock shows more work, or nothing is known to show it."""
    has_more_calls = work.calls is not None and work.calls > math.log1p(read_constant("MORE_WORK"))
    if metric is COLD and work.processor is not None:
        return has_more_calls or work.processor > math.log1p(read_constant("MORE_PROCESSOR"))
    return has_more_calls or work.counts or work.calls is None


def is_no_longer(metric: Metric, reading: Reading, work: Work, *, has_base: bool) -> bool:
    """Whether the compile is one of those that may have done no more work."""
    if metric is not COLD:
        return not is_estimated_beyond(reading)
    is_longer = work.processor is None or work.processor > EDGE
    return not (has_base and is_longer and is_estimated_beyond(reading))


@given(
    metric=st.sampled_from([COLD, Metric.WARM_COMPILE_TIME]),
    reading=readings,
    work=compiles,
    has_base=st.booleans(),
)
def test_a_compile_time_needs_a_second_sign(
    metric: Metric, reading: Reading, work: Work, has_base: bool
) -> None:
    """The first of the three rules that holds."""
    lines = [
        line for line in decision_page.TEXT.splitlines() if re.match(r"[123]\. (?:Beyond|Clear|Calls)", line)
    ]
    assert [line.split()[1].strip(",:") for line in lines] == ["Beyond", "Clear", "Calls"]
    (proven, alone), (clear,), (same,) = map(read_rulings, lines)
    bar = Bar(alpha=ALPHA, threshold=THRESHOLD)
    times = Times(readings={metric: reading}, bars={metric: bar}, work=work, has_base=has_base)
    no_more = (
        work.calls is not None
        and work.calls <= math.log1p(read_constant("MORE_WORK"))
        and not work.counts
        and not has_sign(metric, work)
    )
    if is_beyond(reading):
        expected = proven if has_sign(metric, work) else alone
    elif is_beyond(reading.mirror()) and has_sign(metric, work.mirror()):
        expected = BETTER
    elif is_clear(reading):
        expected = clear
    elif no_more and is_no_longer(metric, reading, work, has_base=has_base):
        expected = same
    else:
        expected = read_ruling(read_table("reading")[2][2])
    assert judge_time(metric, times) == expected


# --- pairs ---


@given(
    changes=st.lists(st.floats(-0.1, 0.2), min_size=1, max_size=12),
    base=st.sampled_from([0.0, 0.04, 0.1]),
    shrink=st.sampled_from([0.01, 0.1, 1.0]),
)
def test_pairs_are_judged_by_their_interval(changes: list[float], base: float, shrink: float) -> None:
    """A latency in live pairs; its own noise, which may be larger, has to show a change as well."""
    logs = [base + shrink * change for change in changes]
    paired = Paired(
        metric=LATENCY, changes=tuple(logs), base=(1.0,) * len(logs), head=(1.0,) * len(logs), is_live=True
    )
    reading = read_pairs(paired, assume_noise(LATENCY, is_live=True))
    bar = Bar(alpha=ALPHA, threshold=THRESHOLD)
    rows = [(where, cell) for cell, where in read_table("verdict")]
    slower, _, clear, _ = (where for where, _ in rows)
    formula, first = re.fullmatch(r"(.+), from (\w+) on; also by its own noise, below", slower).groups()  # type: ignore[union-attr] # it matches
    edges, least, settling = re.fullmatch(
        r"clear, with k = (\d+), from (\w+) on; a latency of two speeds from (\w+) on", clear
    ).groups()  # type: ignore[union-attr] # it matches
    own_p = max(ALPHA, read_constant("OWN_NOISE_P"))
    assert settling == "SETTLING_PAIRS"
    assert holds(f"k < {edges}.5, k > 0.5", k=bar.edges)

    def is_confirmed(one: Reading) -> bool:
        lows = [one.compute_bound(ALPHA)]
        if one.own is not None:
            error = math.sqrt(one.own.value * read_constant("POOLING_LOSS") / one.trials)
            lows.append(one.change + compute_t_quantile(own_p, one.own.df) * error)
        values = {"d": one.change, "e": EDGE, "low": min(lows)}
        return one.trials >= read_constant(first) and holds(formula.replace(" and ", ", "), **values)

    assert decide_pairs(reading, bar) == choose(
        rows,
        {
            slower: is_confirmed(reading),
            "the mirror image": is_confirmed(reading.mirror()),
            clear: len(logs) >= read_constant(least) and is_clear(reading),
            "else; it gets pairs up to the next of LOOKS": True,
        },
    )


# --- what is counted ---

COUNTED = "every value above every stored one by more than both thresholds, `beyond_bar`"
DRIFTED = (
    "above the threshold and DRIFT_SIGMAS standard errors (SD at least DRIFT_SD_FLOOR); or beyond the limit,"
    " which the baseline is not, by those errors: `limit_exceeded"
)
values_of = st.lists(st.sampled_from([100.0, 101.0, 102.0, 104.0, 106.0, 110.0]), min_size=1, max_size=4)


def ask(metric: Metric, before: Sequence[float], after: Sequence[float]) -> Question:
    case = Case(id="m/x", model="m", factory="m:f", definition="d1", dtype=DType.FLOAT32)
    return Question(case=case, metric=metric, before=before, after=after, threshold=SPECS[metric].threshold)


@given(metric=st.sampled_from([Metric.GRAPH_BREAKS, Metric.PEAK_MEMORY]), before=values_of, after=values_of)
def test_a_count_is_judged_by_all_of_its_values(
    metric: Metric, before: list[float], after: list[float]
) -> None:
    """Of memory the larger of 5 % and 1 MiB counts, so it is drawn in MiB."""
    scale = 1.0 if metric is Metric.GRAPH_BREAKS else 2.0**20
    before, after = [scale * value for value in before], [scale * value for value in after]
    question = ask(metric, before, after)
    _, regressed, inconclusive, otherwise = read_table("family")[0]
    assert regressed.rstrip("`") == COUNTED.rstrip("`")
    assert inconclusive == "some are above some by more: `unsettled"
    tolerance = max(question.threshold.relative * median(before), question.threshold.absolute)
    row = judge_steady(question)
    if min(after) - max(before) > tolerance:
        expected = Status.REGRESSED, Reason(regressed.rpartition("`")[2])
    elif max(after) - min(before) < -tolerance:
        expected = BETTER
    elif max(after) - min(before) > tolerance:
        expected = Status.INCONCLUSIVE, Reason(inconclusive.rpartition("`")[2])
    else:
        expected = Status.UNCHANGED, Reason(otherwise)
    assert (row.status, row.reason) == expected


drifts = st.lists(
    st.sampled_from([-0.2, 0.0, 0.1, 0.9, 0.95, 1.0, 1.05, 1.2, 2.5, 4.0]), min_size=1, max_size=4
)


@given(before=drifts, after=drifts)
def test_drift_is_judged_by_its_threshold_its_errors_and_its_limit(
    before: list[float], after: list[float]
) -> None:
    """Log2 units of one case in float32."""
    question = ask(Metric.DRIFT, before, after)
    _, regressed, inconclusive, otherwise = read_table("family")[1]
    assert regressed == DRIFTED
    assert (
        inconclusive == "beyond the threshold and not the errors, or errors beyond the threshold: `unsettled"
    )
    sd = math.sqrt(pool_variances(compute_variance(before), compute_variance(after)).value)
    error = max(sd, read_constant("DRIFT_SD_FLOOR")) * math.sqrt(1 / len(before) + 1 / len(after))
    errors = read_constant("DRIFT_SIGMAS") * error
    change, threshold = fmean(after) - fmean(before), question.threshold.absolute
    limit = get_limit(question.case, Metric.DRIFT)
    if change > threshold and change > errors:
        expected = WORSE
    elif change > threshold:
        expected = Status.INCONCLUSIVE, Reason(inconclusive.rpartition("`")[2])
    elif fmean(before) <= limit < fmean(after) and change > errors:
        expected = Status.REGRESSED, Reason(regressed.rpartition("`")[2])
    elif -change > threshold and -change > errors:
        expected = BETTER
    elif errors > threshold:
        expected = Status.INCONCLUSIVE, Reason(inconclusive.rpartition("`")[2])
    else:
        expected = Status.UNCHANGED, Reason(otherwise)
    row = judge_steady(question)
    assert (row.status, row.reason) == expected


# --- what is compared with what ---

BREAKS, RECOMPILES = Metric.GRAPH_BREAKS, Metric.RECOMPILES
ZERO, ONE, NINE_MS = {BREAKS: (0.0,)}, {BREAKS: (1.0,)}, {LATENCY: (0.009,) * 3}
CASE = Situation.case_id
FAILED = Situation(before=ZERO, after=ZERO, failures=(make_failure(CASE),))


def find_states(*situations: Situation, **policy: Any) -> list[Ruling]:
    return [(row.status, row.reason) for row in decide(*situations, **policy).comparisons]


def remove() -> list[Ruling]:
    """What is found of a case that the change's gate.yml no longer has, and that cannot be run."""
    run = make_run(Situation(before=ZERO, failures=(make_failure(CASE),)))
    run = replace(run, cases=tuple(replace(case, is_removed=True) for case in run.cases))
    screening = screen_run(run, (), make_policy())
    return [(row.status, row.reason) for row in screening.comparisons]


def accept_all() -> list[Ruling]:
    entry = Acceptance(
        case=CASE, metric=BREAKS, allowance=1.0, reason="a print.", author="ada", expires=TODAY
    )
    return find_states(Situation(before=ZERO, after=ONE), acceptances=(entry,))


OTHER = replace(CPU_HOST, cpu="another"), replace(CPU_HOST, torch="2.14.0")
# What comes of each situation, as the page has them; in the order of the reasons where a row has several.
SITUATIONS: Mapping[str, Callable[[], list[Ruling]]] = {
    "a trial failed": lambda: find_states(FAILED)[:1],
    "the change's own gate.yml no longer has the case": remove,
    "no trial came back; fewer than planned; the other run of `compare` has it, and this one's selection"
    " names it": (lambda: find_states(Situation(before=ZERO))),
    "the baseline has the metric, the run does not": lambda: [
        state
        for state in find_states(Situation(before={**ZERO, RECOMPILES: (0.0,)}, after=ZERO))
        if state[0] is not Status.UNCHANGED
    ],
    "nothing is stored": lambda: find_states(Situation(after=ZERO)),
    "stored by other hosts (times, but see above) or stacks (the rest); of times, also where only one side's"
    " workers were forked": lambda: [
        *find_states(Situation(before=NINE_MS, after=NINE_MS, host=OTHER[0])),
        *find_states(Situation(before=ZERO, after=ZERO, host=OTHER[1])),
        *find_states(Situation(before=NINE_MS, after=NINE_MS, host=replace(CPU_HOST, workers="forked"))),
    ],
    "stored for another definition; without the metric": lambda: [
        *find_states(Situation(before=ZERO, after=ZERO, definition_before="d0")),
        *(
            state
            for state in find_states(Situation(before=ZERO, after={**ZERO, RECOMPILES: (0.0,)}))
            if state[0] is not Status.UNCHANGED
        ),
    ],
    "worse, and accepted by a person": accept_all,
}


def test_every_situation_ends_as_the_page_says() -> None:
    """What is stored and what came back do not fit each other, in one way a row."""
    rows = read_table("situation")
    assert [situation for situation, _ in rows] == [*SITUATIONS]
    for situation, cell in rows:
        expected, found = read_rulings(cell), SITUATIONS[situation]()
        assert list(dict.fromkeys(found)) == expected, situation


# --- the outcome ---


@given(statuses=st.lists(st.sampled_from(Status), max_size=3), finished=st.booleans())
def test_the_outcome_is_the_first_that_holds(statuses: list[Status], finished: bool) -> None:
    """Of a run in which each comparison decides."""
    when = {
        "a deciding comparison is FAILED or MISSING, or the run was stopped": bool(BROKEN & {*statuses})
        or not finished,
        "one is REGRESSED": Status.REGRESSED in statuses,
        "one is INCONCLUSIVE": Status.INCONCLUSIVE in statuses,
        "none was judged": JUDGED.isdisjoint(statuses),
        "otherwise": True,
    }
    rows = [row[:2] for row in read_table("outcome")]
    assert [condition for _, condition in rows] == [*when]
    expected = next(outcome for outcome, condition in rows if when[condition])
    stored = estimate_metric(BREAKS, (0.0,))
    comparisons = [
        make_row(f"m/{index}", BREAKS, status, baseline=stored) for index, status in enumerate(statuses)
    ]
    assert decide_outcome(comparisons, finished=finished) is Outcome[expected]
