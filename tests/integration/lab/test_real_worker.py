"""The lab with the gate's own worker: one real compile, one real crash."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

from gate.check.schedule import compute_trial_s
from gate.files.codec import load_run, save_run
from gate.lab.host import lock as lock_module
from gate.lab.trials.lane import make_measurer
from gate.lab.trials.opening import open_lab
from gate.lab.trials.runs import make_run, measure_plan
from gate.lab.trials.trials import LabSettings
from gate.records import Arm, Case, FailureKind, Metric, Run
from gate.records.protocol import Sampling
from gate.report.words.failures import describe_failure

FACTORIES = """
import os, signal, torch
from gate.workload import Workload

def chain(numbers: int) -> Workload:
    def forward(x):
        return torch.sin(x) * 2 + torch.exp(-x * x)
    return Workload(forward=forward, inputs=(torch.randn(numbers),))

def crash() -> Workload:
    os.kill(os.getpid(), signal.SIGSEGV)

def raise_error() -> Workload:
    raise ValueError("no such layer")
"""

QUICK = Sampling(super_blocks=3, block_s=0.005, warmup_s=0.05, max_rounds_s=2.0, drift_seeds=1)


def make_case(factory: str, **arguments: object) -> Case:
    """Make a case of one of the factories above."""
    return Case(
        id=f"{factory}/inference-float32-smoke-default",
        model=factory,
        factory=f"shop:{factory}",
        arguments=arguments,
        definition="0" * 16,
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the one run that all tests here look at."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def run(out: Path) -> Run:
    """A run of a case that works, one that crashes and one that raises, as read back from disk."""
    (out / "tree").mkdir()
    (out / "tree" / "shop.py").write_text(FACTORIES, encoding="utf-8")
    (out / "temporary").mkdir()
    settings = LabSettings(
        out=out / "out",
        threads=1,
        sampling=QUICK,
        trial_timeout_s=240.0,
    )
    arm = Arm(name="head", python=sys.executable, directory=str(out / "tree"))
    cases = (make_case("crash"), make_case("raise_error"), make_case("chain", numbers=4096))
    path = out / "out" / "run.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(out / "temporary"))
        patch.setattr(lock_module, "make_lock_directory", lambda: out)
        with open_lab(arm, settings) as lab:
            measurer = make_measurer(lab, lambda run: save_run(run, path))
            measure_plan(measurer, make_run(lab, cases, "all", 1))
    return load_run(path)


@pytest.mark.slow
def test_real_trial(run: Run, out: Path) -> None:
    """A real case comes back with both compile times, latencies, a full cache and pytest-benchmark's file."""
    assert run.finished
    (trial,) = run.trials
    assert trial.case_id == "chain/inference-float32-smoke-default"
    cold, warm = (trial.samples[name][0] for name in (Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME))
    assert 0.0 < warm < cold
    assert len(trial.samples[Metric.EAGER_LATENCY]) == len(trial.samples[Metric.COMPILED_LATENCY]) >= 6
    assert trial.samples[Metric.CACHE_MISSES] == (0.0,)
    assert trial.identity.digest
    benchmark = out / "out" / "benchmark" / f"{trial.case_id}-1.json"
    assert json.loads(benchmark.read_text(encoding="utf-8"))["benchmarks"]


@pytest.mark.slow
def test_real_failures(run: Run) -> None:
    """A factory that crashes and one that raises are told apart, with where it happened."""
    found = {failure.case_id.partition("/")[0]: failure for failure in run.failures}
    assert {name: failure.kind for name, failure in found.items()} == {
        "crash": FailureKind.CRASH,
        "raise_error": FailureKind.ERROR,
    }
    assert {"build"} == {failure.stage for failure in found.values()}
    assert "SIGSEGV" in describe_failure(found["crash"])
    assert "ValueError: no such layer" in describe_failure(found["raise_error"])
    assert " in crash" in found["crash"].log_tail
    assert "shop.py" in found["raise_error"].log_tail


@pytest.mark.slow
def test_real_environment_and_time(run: Run, out: Path) -> None:
    """The primer told the environment; a trial's time is explained; nothing is left behind."""
    assert run.environment.torch
    assert run.environment.threads == 1
    (trial,) = run.trials
    assert 0.0 < trial.overhead_s < compute_trial_s(trial)
    assert 0.0 < run.toolchain_s < run.wall_s
    assert list((out / "temporary").iterdir()) == []
    assert {"shop.py", "__pycache__"} >= {path.name for path in (out / "tree").iterdir()}
