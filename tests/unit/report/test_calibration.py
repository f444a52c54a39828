"""The report of a calibration, as a golden file."""

from dataclasses import replace

from gate.records.cases import Metric, Threshold
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Provenance
from gate.records.studies import Calibration, Effort, Flaw, Instability, MetricNoise, PairNoise, Rate, Replay
from gate.report.studies import render_calibration
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
            flaw=Flaw.TOO_NOISY,
            fact=Fact(code=Code.TRIALS_VARY, numbers={"unseen": 0.08, "trials": 3}),
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


def test_calibration_reads_as_stored() -> None:
    """It has noise, an unstable case, replays and notes."""
    check_golden("calibration/unstable.txt", render_calibration(CALIBRATION))


def test_missing_figures_have_no_table() -> None:
    """Without figures there is no table, and no case is called unstable."""
    bare = replace(CALIBRATION, noise=(), unstable=(), replays=(), notes=())
    text = render_calibration(bare)
    assert "Unstable cases: none" in text
    assert "Noise" not in text
    assert "replayed" not in text
