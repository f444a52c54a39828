"""One metric of one case in pairs: what is read off them, and what is said of it."""

import math
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.constants import LIVE_PAIR_SD, PRIOR_DF
from gate.decide.judge.interval import Bar, read_pairs
from gate.decide.judge.pairs import (
    NOT_SCREENED,
    CasePairs,
    PairRules,
    Screened,
    compare_paired,
    compute_further_pairs,
    compute_pair_detectable,
    decide_pairs,
    gather_case_pairs,
    make_pair_rules,
    read_metric,
)
from gate.decide.stats import Variance, compute_t_quantile
from gate.records.cases import Metric, Threshold
from gate.records.codes import Code
from gate.records.verdict import Comparison, Reason, Status
from tests.make import POLICY, PairedCase, make_paired, pair_up

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD, WARM = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME
PRIOR = Variance(value=LIVE_PAIR_SD**2, df=PRIOR_DF)
BAR = Bar(alpha=0.01 / 12, threshold=Threshold(relative=0.03, absolute=0.0))
WORSE, OPEN = (Status.REGRESSED, Reason.BEYOND_BAR), (Status.INCONCLUSIVE, Reason.UNSETTLED)
CLEAR = (Status.UNCHANGED, Reason.BELOW_THRESHOLD)


def gather(screened: Screened = NOT_SCREENED, **fields: Any) -> CasePairs:
    (side,) = gather_case_pairs(pair_up(PairedCase(**fields)), POLICY, {"mlp/x": screened})
    return side


def rule(side: CasePairs) -> PairRules:
    return make_pair_rules((side,), POLICY, {}, times=4, cases=1)


def compare(side: CasePairs, rules: PairRules | None = None) -> dict[Metric, Comparison]:
    return {row.metric: row for row in compare_paired(side, rules or rule(side))}


def pair_metrics(side: CasePairs, **changes: list[float]) -> CasePairs:
    """The side with these changes in its pairs, by metric."""
    paired = {Metric(name): make_paired(values, Metric(name)) for name, values in changes.items()}
    return replace(side, paired={**side.paired, **paired})


# --- readings ---


def test_eager_of_the_same_blocks_shows_how_compiled_latency_varies() -> None:
    """Not a speedup, nor where the blocks were others, nor where eager was not timed."""
    quiet, noisy = [0.0, 0.001, -0.001], [0.0, 0.05, -0.05]
    side = pair_metrics(gather(), compiled_latency=quiet, eager_latency=noisy, warm_speedup=quiet)
    apart = replace(side, paired={**side.paired, EAGER: replace(side.paired[EAGER], is_live=False)})
    alone = replace(side, paired={LATENCY: side.paired[LATENCY]})
    for case_pairs, metric, varies in (
        (side, LATENCY, True),
        (side, SPEEDUP, False),
        (apart, LATENCY, False),
        (alone, LATENCY, False),
    ):
        own_noise = read_metric(case_pairs, metric, rule(case_pairs)).own_noise
        assert own_noise is not None
        assert (own_noise.value > 0.001) == varies


def test_two_pairs_convict_nothing() -> None:
    """However large the change: a machine of two speeds gives two alike."""
    readings = [read_pairs(make_paired([1.0] * count), PRIOR) for count in (1, 2, 3)]
    assert [decide_pairs(reading, BAR) for reading in readings] == [OPEN, OPEN, WORSE]
    assert compute_further_pairs(readings[1], BAR) == 1
    assert compute_further_pairs(readings[0], BAR) == 2


def test_what_could_be_seen_follows_from_the_noise_and_not_from_the_change() -> None:
    """One pair shows nothing of its noise. From two on the own noise counts if it is more than usual."""
    noisy = read_pairs(make_paired([0.0, 0.1, 0.2]), PRIOR)
    shifted = replace(noisy, change=noisy.change + 0.1)
    needed = -compute_t_quantile(0.001, 2.0) * 0.1 * math.sqrt(1.08 / 3)  # SD 0.1 of two degrees of freedom
    expected = math.expm1(needed + noisy.compute_margin(0.95))
    assert compute_pair_detectable(noisy, BAR) == pytest.approx(expected)
    assert compute_pair_detectable(shifted, BAR) == pytest.approx(expected)
    one, two = (read_pairs(make_paired([0.0] * count), PRIOR) for count in (1, 2))
    assert compute_pair_detectable(one, BAR) == pytest.approx(999_999)
    assert compute_pair_detectable(two, BAR) < 1


# --- times ---


@pytest.mark.parametrize(
    ("pairs", "is_steady", "latency", "compiling"),
    [(2, False, OPEN, CLEAR), (2, True, CLEAR, CLEAR), (3, False, CLEAR, CLEAR)],
)
def test_two_pairs_clear_a_call_only_if_its_stored_times_are_steady(
    pairs: int, *, is_steady: bool, latency: tuple[Status, Reason], compiling: tuple[Status, Reason]
) -> None:
    """Two pairs of a case with two speeds agree by luck; a compile, here with a limit of 500 %, has one."""
    side = gather(Screened(is_steady=is_steady), pairs=pairs, spread=(0.0,) * 3)
    threshold = Threshold(relative=5.0, absolute=0.0)
    questions = {**side.questions, COLD: replace(side.questions[COLD], threshold=threshold)}
    rows = compare(replace(side, questions=questions))
    assert (rows[LATENCY].status, rows[LATENCY].reason) == latency
    assert (rows[COLD].status, rows[COLD].reason) == compiling


def test_the_interval_of_one_pair_is_its_value() -> None:
    """Two pairs have a width."""
    widths = []
    for pairs in (1, 2):
        change = compare(gather(pairs=pairs))[LATENCY].change
        assert change is not None
        widths.append(change.high - change.low)
    assert widths[0] == 0.0 < widths[1]


def test_a_call_that_regressed_is_shown_with_eager() -> None:
    """Where eager was timed; what did not regress is shown without it."""
    slower = gather(head={LATENCY: 0.02})
    alone = replace(slower, paired={LATENCY: slower.paired[LATENCY]})
    for side, status, shown in (
        (slower, Status.REGRESSED, 1),
        (alone, Status.REGRESSED, 0),
        (gather(), Status.UNCHANGED, 0),
    ):
        row = compare(side)[LATENCY]
        assert row.status is status
        assert sum(fact.code is Code.EAGER_CHANGED for fact in row.remarks) == shown


def test_only_a_cold_compile_is_judged_by_its_cpu_time() -> None:
    """It convicts, though the clock is calm; a warm compile has the clock alone."""
    side = gather(head={Metric.COMPILE_CALLS: 8e6})
    processor = replace(make_paired([0.5] * 6, COLD), base=(10.0,) * 6)
    rows = compare(replace(side, processor=processor))
    by_processor = {metric for metric, row in rows.items() if row.has_remark(Code.PROCESSOR_TIME)}
    assert by_processor == {COLD}
    assert (rows[COLD].status, rows[WARM].status) == (Status.REGRESSED, Status.UNCHANGED)
    assert (rows[COLD].pairs, rows[COLD].more_pairs) == (6, None)


def test_what_no_number_of_pairs_settles_is_promised_none() -> None:
    """Its threshold is its very change; what is settled needs no number."""
    edge = math.log(1.03) - 1e-5
    row = compare(pair_metrics(gather(), compiled_latency=[edge] * 6))[LATENCY]
    assert (row.status, row.more_pairs) == (Status.INCONCLUSIVE, 0)
