"""docs/decision.md on counts, on situations and on outcomes: each row is the code's."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.conclude.outcome import decide_outcome
from gate.decide.evidence.gather import Question
from gate.decide.judge.compare import judge_steady
from gate.decide.judge.drift import get_limit
from gate.decide.stats import compute_variance, estimate_metric, pool_variances
from gate.decide.verdict import screen_run
from gate.metrics import SPECS
from gate.records.cases import Case, DType, Metric
from gate.records.verdict import BROKEN, JUDGED, Outcome, Reason, Status
from tests.decision_page import Ruling, read_better, read_constant, read_head, read_rulings, read_table
from tests.hosts import CPU_HOST
from tests.make import (
    POLICY,
    Situation,
    decide,
    make_acceptance,
    make_failure,
    make_measured,
    make_row,
    make_stored,
    state,
)

LATENCY, EAGER, COLD = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.COLD_COMPILE_TIME
SPEEDUP, CALLS, MEMORY = Metric.WARM_SPEEDUP, Metric.COMPILE_CALLS, Metric.PEAK_MEMORY


# --- what is counted ---

COUNTED = [
    "every value above every stored one by more than both thresholds, ",
    "some are above some by more: ",
    "",
]
DRIFTED = [
    (
        "above the threshold and DRIFT_SIGMAS standard errors (SD at least DRIFT_SD_FLOOR); or beyond the"
        " limit, which the baseline is not, by those errors: "
    ),
    "beyond the threshold and not the errors, or errors beyond the threshold: ",
    "",
]
values_of = st.lists(st.sampled_from([100.0, 101.0, 102.0, 104.0, 106.0, 110.0]), min_size=1, max_size=4)


def read_family(row: int) -> tuple[list[str], list[Ruling]]:
    """For each cell of a family: its condition, and whether it ends as worse, open or neither."""
    _, *cells = read_table("family")[row]
    worse, still, otherwise = read_head("family")
    assert otherwise == "else"
    parts = [cell.rstrip("`").rpartition("`") for cell in cells]
    statuses = Status[worse], Status[still], Status.UNCHANGED
    reasons = [Reason(reason) for _, _, reason in parts]
    return [text for text, _, _ in parts], [*zip(statuses, reasons, strict=True)]


def ask(metric: Metric, before: Sequence[float], after: Sequence[float]) -> Question:
    case = Case(id="m/x", model="m", factory="m:f", definition="d1", dtype=DType.FLOAT32)
    return Question(case=case, metric=metric, before=before, after=after, threshold=SPECS[metric].threshold)


@given(metric=st.sampled_from([Metric.GRAPH_BREAKS, Metric.PEAK_MEMORY]), before=values_of, after=values_of)
def test_a_count_is_judged_by_all_of_its_values(
    metric: Metric, before: list[float], after: list[float]
) -> None:
    """Drawn counts end as the table says; memory is drawn in MiB."""
    scale = 1.0 if metric is Metric.GRAPH_BREAKS else 2.0**20
    before, after = [scale * value for value in before], [scale * value for value in after]
    question = ask(metric, before, after)
    texts, (worse, still, otherwise) = read_family(0)
    assert texts == COUNTED
    tolerance = max(question.threshold.relative * median(before), question.threshold.absolute)
    row = judge_steady(question)
    if min(after) - max(before) > tolerance:
        expected = worse
    elif max(after) - min(before) < -tolerance:
        expected = read_better()
    elif max(after) - min(before) > tolerance:
        expected = still
    else:
        expected = otherwise
    assert (row.status, row.reason) == expected


def rule_drift(before: Sequence[float], after: Sequence[float], limit: float, threshold: float) -> Ruling:
    """What the page's cells give for these values."""
    texts, (limited, still, otherwise) = read_family(1)
    assert texts == DRIFTED
    sd = math.sqrt(pool_variances(compute_variance(before), compute_variance(after)).value)
    error = max(sd, read_constant("DRIFT_SD_FLOOR")) * math.sqrt(1 / len(before) + 1 / len(after))
    errors = read_constant("DRIFT_SIGMAS") * error
    change = fmean(after) - fmean(before)
    if change > threshold:
        return (limited[0], Reason.BEYOND_BAR) if change > errors else still
    if fmean(before) <= limit < fmean(after) and change > errors:
        return limited
    if -change > max(threshold, errors):
        return read_better()
    return still if errors > threshold else otherwise


def test_drift_is_judged_by_its_threshold_its_errors_and_its_limit() -> None:
    """2,000 drawn float32 values end as the table says, and each end occurs."""
    rng, used = random.Random(1), set()  # noqa: S311 - repeatable
    for _ in range(2_000):
        before, after = (
            [mean + rng.gauss(0, spread) for _ in range(rng.randint(1, 4))]
            for mean, spread in zip(
                rng.choices((0.0, 0.9, 1.1, 3.0), k=2), rng.choices((0.0, 0.5), k=2), strict=True
            )
        )
        question = ask(Metric.DRIFT, before, after)
        limit, threshold = get_limit(question.case, Metric.DRIFT), question.threshold.absolute
        row = judge_steady(question)
        assert (row.status, row.reason) == rule_drift(before, after, limit, threshold)
        used.add((row.status, row.reason))
    assert used == {(Status.REGRESSED, Reason.BEYOND_BAR), read_better(), *read_family(1)[1]}


@pytest.mark.parametrize(
    ("metric", "before", "after", "status"),
    [
        (Metric.COLD_COMPILE_TIME, (0.2, 9.0), (0.0, 0.7), Status.UNCHANGED),
        (Metric.COLD_COMPILE_TIME, (0.2, 9.0), (0.0, 0.71), Status.INCONCLUSIVE),
        (Metric.COMPILED_LATENCY, (0.0,), (0.0,), Status.INCONCLUSIVE),
    ],
)
def test_a_compile_as_long_as_a_call_is_unchanged_unless_some_were_half_a_second_longer(
    metric: Metric, before: Sequence[float], after: Sequence[float], status: Status
) -> None:
    """A time of zero has no ratio: the longest of head is compared with the shortest that is stored."""
    assert judge_steady(ask(metric, before, after)).status is status


# --- what is compared with what ---

BREAKS, RECOMPILES = Metric.GRAPH_BREAKS, Metric.RECOMPILES
ZERO, ONE, NINE_MS = {BREAKS: (0.0,)}, {BREAKS: (1.0,)}, {LATENCY: (0.009,) * 3}
CASE = Situation.case_id
FAILED = Situation(before=ZERO, after=ZERO, failures=(make_failure(CASE),))


def list_rulings(*situations: Situation, **policy: Any) -> list[Ruling]:
    return list(map(state, decide(*situations, **policy).comparisons))


def judge_removed() -> list[Ruling]:
    """The state of a case that the change removed from gate.yml and that cannot be run."""
    run = make_measured(Situation(before=ZERO, failures=(make_failure(CASE),)))
    run = replace(run, cases=tuple(replace(case, is_removed=True) for case in run.cases))
    screening = screen_run(run, (), POLICY)
    return list(map(state, screening.comparisons))


def accept_all() -> list[Ruling]:
    entry = make_acceptance(BREAKS, 1.0, case=CASE, reason="a print.")
    return list_rulings(Situation(before=ZERO, after=ONE), acceptances=(entry,))


def judge_remeasured() -> list[Ruling]:
    """The state of drift whose stored definition is another."""
    drift = {Metric.DRIFT: (0.0,)}
    situation = Situation(before=drift, after=drift)
    stored = [replace(baseline, drift_definition=2) for baseline in make_stored(situation)]
    rows = screen_run(make_measured(situation), stored, POLICY).comparisons
    return list(map(state, rows))


OTHER = replace(CPU_HOST, cpu="another"), replace(CPU_HOST, torch="2.14.0")
# What comes of each situation, as the page has them; in the order of the reasons where a row has several.
SITUATIONS: Mapping[str, Callable[[], list[Ruling]]] = {
    "a trial failed": lambda: list_rulings(FAILED)[:1],
    "the change's own gate.yml no longer has the case": judge_removed,
    "no trial came back; fewer than planned; the other run of `compare` has it, and this one's selection"
    " names it": (lambda: list_rulings(Situation(before=ZERO))),
    "the baseline has the metric, the run does not": lambda: [
        state
        for state in list_rulings(Situation(before={**ZERO, RECOMPILES: (0.0,)}, after=ZERO))
        if state[0] is not Status.UNCHANGED
    ],
    "nothing is stored": lambda: list_rulings(Situation(after=ZERO)),
    "stored by other hosts (times, but see above) or stacks (the rest); of times, also where only one side's"
    " workers were forked": lambda: [
        *list_rulings(Situation(before=NINE_MS, after=NINE_MS, host=OTHER[0])),
        *list_rulings(Situation(before=ZERO, after=ZERO, host=OTHER[1])),
        *list_rulings(Situation(before=NINE_MS, after=NINE_MS, host=replace(CPU_HOST, workers="forked"))),
    ],
    "stored for another definition; without the metric; drift that another version measured in another"
    " way": lambda: [
        *list_rulings(Situation(before=ZERO, after=ZERO, definition_before="d0")),
        *(
            state
            for state in list_rulings(Situation(before=ZERO, after={**ZERO, RECOMPILES: (0.0,)}))
            if state[0] is not Status.UNCHANGED
        ),
        *judge_remeasured(),
    ],
    "worse, and accepted by a person": accept_all,
}


def test_every_situation_ends_as_the_page_says() -> None:
    rows = read_table("situation")
    assert [situation for situation, _ in rows] == [*SITUATIONS]
    for situation, cell in rows:
        expected, rulings = read_rulings(cell), SITUATIONS[situation]()
        assert list(dict.fromkeys(rulings)) == expected, situation


# --- the outcome ---


@given(statuses=st.lists(st.sampled_from(Status), max_size=3), finished=st.booleans())
def test_the_outcome_is_the_first_that_holds(statuses: list[Status], finished: bool) -> None:
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
