"""torch's own trace, by an extra process that changes nothing of the trial."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gate.check.schedule import want_whole
from gate.lab.trials import traces
from gate.lab.trials.bench import Bench, LabSettings
from gate.lab.trials.opening import open_lab
from gate.lab.trials.pairs import make_sides, measure_pair, plan_pair
from gate.lab.trials.runs import make_measurer, make_run
from gate.lab.trials.traces import add_trace
from gate.lab.workers.worker import JobOutcome, WorkerJob, run_worker
from gate.records.cases import Case, Metric
from gate.records.protocol import Stage, WorkerResult, WorkerRole
from gate.records.run import Arm, FailureKind, Pairing, Trial
from gate.report.words.facts import describe_measuring
from tests.make import make_failure

from .conftest import make_case

RunWorker = Callable[[WorkerJob], JobOutcome]
TRIAL = Trial(case_id="actor/inference-float32-smoke-default", index=2)


def write_trace(job: WorkerJob) -> JobOutcome:
    """Write torch's files: the worker's own, and a small one of a child process."""
    if job.request.role is not WorkerRole.TRACE:
        return run_worker(job)
    written = Path(job.environment["TORCH_TRACE"])
    written.mkdir()
    (written / "dedicated_log_torch_trace_b.log").write_text("graphs")
    (written / "dedicated_log_torch_trace_a.log").write_text("-")
    return WorkerResult(role=WorkerRole.TRACE, stage=Stage.DONE)


def write_nothing(job: WorkerJob) -> JobOutcome:
    return WorkerResult(role=job.request.role, stage=Stage.DONE)


def write_half(job: WorkerJob) -> JobOutcome:
    write_trace(job)
    return make_failure("", "timed out after 30 s", trial=2, kind=FailureKind.HANG)


@pytest.fixture(autouse=True)
def torch_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers write a trace."""
    monkeypatch.setattr(traces, "run_worker", write_trace)


def test_trace_lies_below_the_out_directory(bench: Bench) -> None:
    """The larger file is the worker's; only its path and its seconds are added."""
    traced = add_trace(bench, make_case(), TRIAL)
    assert traced.trace == "traces/actor/inference-float32-smoke-default-2.log"
    assert (bench.settings.out / traced.trace).read_text() == "graphs"
    assert replace(traced, trace="", stages_s={}) == TRIAL
    assert traced.stages_s.keys() == {Stage.TRACE}
    assert not (bench.scratch / "traces").exists()


@pytest.mark.parametrize(
    ("run", "kept", "message"),
    [
        (write_nothing, False, "this torch leaves no structured trace"),
        (write_half, True, "its trace is incomplete: timed out after 30 s"),
    ],
    ids=["none", "half"],
)
def test_trace_that_is_not_there_fails_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, run: RunWorker, kept: bool, message: str
) -> None:
    """A note reports it, and no earlier run's file is left."""
    monkeypatch.setattr(traces, "run_worker", run)
    case = Case(id=TRIAL.case_id, model="actor")
    old = bench.settings.out / "traces" / "actor" / "inference-float32-smoke-default-2.log"
    old.parent.mkdir(parents=True)
    old.write_text("of last week")
    traced = add_trace(bench, case, TRIAL)
    assert (bool(traced.trace), old.exists()) == (kept, kept)
    assert tuple(map(describe_measuring, traced.unknown)) == (message,)


@pytest.mark.parametrize("traces", [True, False])
def test_each_trial_is_traced_on_request(arm: Arm, settings: LabSettings, traces: bool) -> None:
    """Its samples are those of a trial without one."""
    settings = replace(settings, traces=traces)
    with open_lab(arm, settings) as lab:
        case = make_case()
        run = make_measurer(lab, lambda _: None).add_trials(
            make_run(lab, [case], "", 1), want_whole([case.id]), 1
        )
    (trial,) = run.trials
    assert bool(trial.trace) is traces
    assert trial.samples[Metric.COLD_COMPILE_TIME] == (2.0,)


def test_first_pair_is_traced_in_both_arms(bench: Bench) -> None:
    """Later ones compile the same, if at all."""
    settings = replace(bench.settings, traces=True)
    bench = replace(bench, settings=settings)
    base = replace(bench, arm=replace(bench.arm, name="base"))
    sides = make_sides(base, bench, make_case(), make_case())
    metrics = {Metric.COLD_COMPILE_TIME}
    first, second = (
        measure_pair(sides, plan_pair(metrics, index, "cpu", Pairing.TURNS)).trials for index in (1, 2)
    )
    name = "actor/inference-float32-smoke-default-1.log"
    assert sorted(trial.trace for trial in first) == [
        f"traces/pairs/{arm}/{name}" for arm in ("base", "head")
    ]
    assert [trial.trace for trial in second] == ["", ""]
