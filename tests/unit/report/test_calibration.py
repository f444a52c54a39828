"""The report of a calibration, as a person would see it."""

from __future__ import annotations

from dataclasses import replace

from gate.records import Code, Fact, Metric, Provenance, Threshold
from gate.records.studies import (
    Calibration,
    Effort,
    Flaw,
    Instability,
    MetricNoise,
    PairNoise,
    Rate,
    Replay,
    ThresholdCost,
)
from gate.report.calibration import study_calibration
from gate.report.tables import render_study
from tests.golden_files import check_golden
from tests.hosts import CPU_HOST

CASE = "bert/inference-float32-smoke-default"
LATENCY = MetricNoise(
    case_id=CASE,
    metric=Metric.COMPILED_LATENCY,
    trials=8,
    centre=0.01234,
    within=0.021,
    between=0.0123,
    detectable=0.0567,
    threshold=Threshold(relative=0.05, absolute=20e-6),
    side_by_side=PairNoise(pairs=8, noise=0.0112, bias=-0.002),
)
COLD = replace(
    LATENCY,
    metric=Metric.COLD_COMPILE_TIME,
    centre=11.5,
    within=0.0,
    between=0.03,
    detectable=0.112,
    threshold=Threshold(relative=0.10, absolute=0.5),
    side_by_side=None,
)
CALIBRATION = Calibration(
    environment=replace(CPU_HOST, torch="2.13.0"),
    provenance=Provenance(commit="abc"),
    case_ids=(CASE,),
    trials=8,
    pairs=8,
    effort=Effort(baseline_trials=5, trials=1, max_trials=3, requests=1000),
    noise=(LATENCY, COLD, replace(LATENCY, metric=Metric.GRAPH_BREAKS, centre=1.0, between=0.0)),
    unstable=(
        Instability(
            case_id=CASE,
            metric=Metric.COMPILED_LATENCY,
            flaw=Flaw.TWO_MODES,
            fact=Fact(code=Code.TWO_GROUPS, numbers={"apart": 0.08}),
        ),
    ),
    costs=(
        ThresholdCost(
            metric=Metric.COMPILED_LATENCY,
            relative=0.02,
            suspected=0.25,
            unjudged=0.0,
            below_floor=1,
            in_force=False,
        ),
        ThresholdCost(
            metric=Metric.COMPILED_LATENCY,
            relative=0.05,
            suspected=0.031,
            unjudged=0.0,
            below_floor=0,
            in_force=True,
        ),
    ),
    replays=(
        Replay(
            planted=0.0,
            regressed=Rate(hits=2, of=1000, low=0.0002, high=0.0072),
            inconclusive=Rate(hits=50, of=1000, low=0.0373, high=0.0654),
            trials=8.5,
            pairs=1.25,
        ),
        Replay(
            planted=0.05,
            regressed=Rate(hits=200, of=250, low=0.745, high=0.848),
            inconclusive=Rate(hits=50, of=250, low=0.152, high=0.255),
            trials=9.1,
        ),
    ),
    notes=(Fact(code=Code.STOPPED),),
    wall_s=1234.0,
)


def render_calibration(calibration: Calibration) -> str:
    return render_study(study_calibration(calibration))


def test_calibration_reads_as_stored() -> None:
    """Noise, an unstable case, thresholds, replays and notes."""
    check_golden("calibration/unstable.txt", render_calibration(CALIBRATION))


def test_what_a_single_trial_hides_is_told() -> None:
    """Trials of two speeds within, by their largest share; and how many cases no threshold can judge."""
    within = (replace(LATENCY, split_trials=2), replace(COLD, case_id="gpt\x1b[1m/x", split_trials=3))
    other, ours = CALIBRATION.costs
    cold = replace(ours, metric=Metric.COLD_COMPILE_TIME, relative=0.1, unjudged=0.125)
    costs = (replace(other, unjudged=0.5), replace(ours, unjudged=0.25), cold)
    text = render_calibration(replace(CALIBRATION, noise=within, costs=costs))
    assert (
        "\nThe blocks of one trial fall into two groups in 3 of 8 trials of gpt/x cold_compile_time,"
        " and in 1 more row.\n"
    ) in text
    assert (
        "\nToo noisy to be judged with the current thresholds: compiled_latency at 5 % in 25.0 % of the"
        " cases,"
        " cold_compile_time at 10 % in 12.5 % of the cases.\n"
    ) in text


def test_what_is_nowhere_is_not_told() -> None:
    """A line about nothing is one too many."""
    text = render_calibration(replace(CALIBRATION, noise=(replace(LATENCY, split_trials=1),)))
    assert "in 1 of 8 trials of bert/inference-float32-smoke-default compiled_latency.\n" in text
    text = render_calibration(CALIBRATION)
    assert "blocks of one trial" not in text
    assert "judged at all" not in text


def test_little_measured_is_little_said() -> None:
    """Without figures there are no empty tables, and no case is called unstable."""
    bare = replace(CALIBRATION, noise=(), unstable=(), costs=(), replays=(), notes=())
    text = render_calibration(bare)
    assert "Unstable cases: none" in text
    assert "Noise" not in text
    assert "replayed" not in text
