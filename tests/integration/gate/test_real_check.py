"""One real check: a case that works, and cases that crash, raise or compute nonsense, in real workers."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from gate.check.schedule import compute_trial_s
from gate.errors import ExitCode
from gate.files.codec import RUN, VERDICT
from gate.records.cases import Metric
from gate.records.run import CaseFailure, Run
from gate.report.words.facts import describe_failure

pytestmark = pytest.mark.slow

CONFIG = """\
version: 1
reference_models: false
lock_timeout_s: 600
threads: 1
max_trials: 1
sampling: {super_blocks: 3, block_s: 0.005, warmup_s: 0.05, max_rounds_s: 2, drift_seeds: 1}
models:
"""
MODEL = "  - {name: NAME, factory: 'NAME_model:build', cases: [{backend: BACKEND}]}\n"
BUILD = """\
import os, signal, torch
from gate import Workload

def build():
    return Workload(forward=lambda x: BODY, inputs=(torch.randn(4096),))
"""
WORKING = "chain"
# The source of a model, the kind of its failure, and its message or the signal's status.
BROKEN_MODELS = {
    "bad_import": ("import nowhere_to_be_found", "error", "nowhere_to_be_found"),
    "no_function": ("built = 1", "error", "build"),
    "no_workload": ("def build(): return 42", "error", "Workload"),
    "raises": ("def build(): raise ValueError('no such layer')", "error", "no such layer"),
    "segfault": (BUILD.replace("return", "os.kill(os.getpid(), signal.SIGSEGV)\n    return"), "crash", "-11"),
    "crash": (BUILD.replace("BODY", "os.abort()"), "crash", "-6"),
    "nan": (BUILD.replace("BODY", "x / (x - x)"), "not_finite", "output"),
}


@dataclass(frozen=True)
class Checked:
    """A project, and the result of its check."""

    top: Path
    code: int
    printed: str

    @property
    def run(self) -> Run:
        return RUN.load(self.top / "out" / "run.json")

    @property
    def failures(self) -> dict[str, CaseFailure]:
        """The verdict's failures, by model."""
        failures = VERDICT.load(self.top / "out" / "verdict.json").failures
        return {failure.case_id.partition("/")[0]: failure for failure in failures}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """The one check of all tests here; failing cases generate no code."""
    directory = tmp_path_factory.mktemp("real")
    top, temporary = directory / "project", directory / "temporary"
    top.mkdir()
    temporary.mkdir()
    sources = {name: source for name, (source, _, _) in BROKEN_MODELS.items()}
    sources[WORKING] = BUILD.replace("BODY", "torch.sin(x) * 2 + torch.exp(-x * x)")
    models = [
        MODEL.replace("NAME", name).replace("BACKEND", "inductor" if name == WORKING else "eager")
        for name in sources
    ]
    (top / "gate.yml").write_text(CONFIG + "".join(models))
    for name, source in sources.items():
        (top / f"{name}_model.py").write_text(source + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "gate", "check", "--quiet"],
        cwd=top,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Checked(top, done.returncode, done.stdout + done.stderr)


def test_models_that_cannot_be_measured_are_failed_cases(checked: Checked) -> None:
    """FAILED with kind, stage and message, be it for the import, the factory or the call: exit 12."""
    assert checked.code == ExitCode.INCOMPLETE, checked.printed
    failures = checked.failures
    assert {name: str(failure.kind) for name, failure in failures.items()} == {
        name: kind for name, (_, kind, _) in BROKEN_MODELS.items()
    }
    assert all(failure.stage for failure in failures.values())
    messages = {name: str(failure.fact) for name, failure in failures.items()}
    assert [name for name, (_, _, words) in BROKEN_MODELS.items() if words not in messages[name]] == []


def test_real_failures(checked: Checked) -> None:
    """A factory that crashes and one that raises are different failures, with their line."""
    crashed, raised = (checked.failures[name] for name in ("segfault", "raises"))
    assert {"build"} == {crashed.stage, raised.stage}
    assert "SIGSEGV" in describe_failure(crashed)
    assert "ValueError: no such layer" in describe_failure(raised)
    assert " in build" in crashed.log_tail
    assert "raises_model.py" in raised.log_tail


def test_real_trial(checked: Checked) -> None:
    """A real case comes back with both compile times, latencies, a full cache and pytest-benchmark's file."""
    assert checked.run.finished
    (trial,) = checked.run.trials
    assert trial.case_id == f"{WORKING}/inference-float32-smoke-default"
    cold, warm = (trial.samples[name][0] for name in (Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME))
    assert 0.0 < warm < cold
    assert len(trial.samples[Metric.EAGER_LATENCY]) == len(trial.samples[Metric.COMPILED_LATENCY]) >= 6
    assert trial.samples[Metric.CACHE_MISSES] == (0.0,)
    assert trial.identity.digest
    benchmark = checked.top / "out" / "benchmark" / f"{trial.case_id}-1.json"
    assert json.loads(benchmark.read_text(encoding="utf-8"))["benchmarks"]


def test_real_environment_and_time(checked: Checked) -> None:
    """The primer found the environment; a trial's time is explained; nothing is left behind."""
    run = checked.run
    assert run.environment.torch
    assert run.environment.threads == 1
    (trial,) = run.trials
    assert 0.0 < trial.overhead_s < compute_trial_s(trial)
    assert 0.0 < run.toolchain_s < run.wall_s
    assert list((checked.top.parent / "temporary").iterdir()) == []
    sources = {f"{name}_model.py" for name in (*BROKEN_MODELS, WORKING)}
    assert {path.name for path in checked.top.iterdir()} <= {"gate.yml", "out", "__pycache__", *sources}
