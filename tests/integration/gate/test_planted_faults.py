"""The gate end to end on a user's project: calibrated on it, and red for each planted fault.

The real commands run in real processes with real compiles. A fault is planted in the source of the project's
own model; a less exact compiled program could come from the compiler, so that one changes the compiled side
alone. Times are judged in ``test_times.py``.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gate.decide.evidence.baseline import make_baselines
from gate.files.codec import CALIBRATION, RUN
from gate.records.cases import Metric, Policy
from gate.records.run import Pairing
from gate.store.baselines import propose_baselines, save_baselines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

CONFIG = """\
version: 1
reference_models: false
select: tag:pr
threads: 1 # leaves a core to other tests, which then disturb no trial
lock_timeout_s: 600
max_trials: 1 # one trial settles what is exact
sampling: {super_blocks: 2, warmup_s: 0.05}
models:
  - name: mlp
    factory: project_model:build
    cases:
      - {size: smoke, tags: [pr], expected_s: 15}
    sizes: {smoke: {batch: 64, width: 512}}
"""
MODEL = """\
import torch
from torch import nn

from gate import Workload


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.calls = 0

    def block(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))

    def forward(self, x):
        for _ in range(2):
            x = self.block(x)
        # FAULT
        return x


def build(batch, width):
    return Workload(forward=Mlp(width), inputs=(torch.randn(batch, width),))
"""

GRAPH_BREAK = "torch._dynamo.graph_break(); x = x * 1.5"
# Once, at the second call: beyond its limit of recompiles a frame runs in eager mode, where no downcast is.
RECOMPILE = "self.calls = 1 - self.calls; x = x * (1.0 + 0.001 * self.calls)"
# 64 x 65536 floats (16 MiB) that a matrix product needs in memory, where the model takes 9 MiB.
MEMORY = "wide = x.repeat(1, 128); x = x + 1e-9 * (wide @ wide.t()).mean()"
# Through a matrix product: a cast there and back alone would be fused away.
DOWNCAST = (
    "half = x.to(torch.bfloat16); unit = torch.eye(x.shape[1], dtype=torch.bfloat16); "
    "x = (half @ unit).to(x.dtype) if torch.compiler.is_compiling() else x"
)
PLANTED = ("graph_breaks", "recompiles", "peak_memory", "drift")


@dataclass(frozen=True)
class Project:
    """A user's repository with a configuration, a model and baselines."""

    directory: Path

    def plant(self, *faults: str) -> None:
        """Write a model with ``faults`` in its forward."""
        (self.directory / "project_model.py").write_text(MODEL.replace("# FAULT", "; ".join(faults)))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command of the gate in the project."""
        command = [sys.executable, "-m", "gate", *arguments]
        return subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)

    def load_verdict(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "out" / "verdict.json").read_text()))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that was calibrated here, with baselines of the calibration's trials."""
    project = Project(tmp_path_factory.mktemp("project"))
    (project.directory / "gate.yml").write_text(CONFIG)
    project.plant()
    few = ("--trials", "2", "--pairs", "1", "--requests", "5", "--anyway")
    calibrated = project.run("calibrate", *few, "--out", "calibrated")
    assert calibrated.returncode == 0, calibrated.stdout + calibrated.stderr
    run = RUN.load(project.directory / "calibrated" / "run.json")
    baselines = make_baselines(run, run.provenance)
    save_baselines(project.directory / "baselines", propose_baselines(baselines, {}, Policy(thresholds={})))
    return project


def test_a_machine_is_calibrated(project: Project) -> None:
    """Two trials and a pair with itself: noise of both, too few to replay, and a run that can be reused."""
    calibration = CALIBRATION.load(project.directory / "calibrated" / "calibration.json")
    assert (calibration.trials, calibration.pairs, calibration.replays) == (2, 1, ())
    cold = next(row for row in calibration.noise if row.metric is Metric.COLD_COMPILE_TIME)
    assert (cold.trials, cold.side_by_side is not None) == (2, True)
    run = RUN.load(project.directory / "calibrated" / "run.json")
    assert sorted((trial.pairing, trial.arm, trial.index) for trial in run.trials) == [
        (Pairing.ALONE, "head", 1),
        (Pairing.ALONE, "head", 2),
        (Pairing.LIVE, "base", 1),
        (Pairing.LIVE, "head", 1),
    ]
    assert all(trial.conditions.free_bytes > 0 for trial in run.trials)


def test_planted_faults_are_regressions(project: Project) -> None:
    """Four planted faults, of a kind each, end in exit 10; the report names the case and all four metrics."""
    project.plant(GRAPH_BREAK, RECOMPILE, MEMORY, DOWNCAST)
    checked = project.run("check")
    assert checked.returncode == 10, checked.stdout + checked.stderr
    rows = {row["metric"]: row for row in project.load_verdict()["comparisons"]}
    decisions = {metric: (rows[metric]["status"], rows[metric]["decides"]) for metric in PLANTED}
    assert decisions == dict.fromkeys(PLANTED, ("REGRESSED", True))
    report = (project.directory / "out" / "report.md").read_text()
    named = ("mlp/inference-float32-smoke-default", *(metric.replace("_", " ") for metric in PLANTED))
    assert [word for word in named if word not in report] == []
