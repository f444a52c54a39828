"""The gate end to end on a user's project: green when nothing changed, red for each planted fault.

Every test runs the real command in real processes with real compiles. A fault is planted where a
user's change would be: in the source of the project's own model. A less exact compiled program could
as well have come from the compiler, so that one changes the compiled side alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(1200)]

CONFIG = """\
version: 1
reference_models: false
select: tag:pr
threads: 2
lock_timeout_s: 600
max_trials: 1 # one trial settles what is exact; slowdowns are for test_side_by_side
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
RECOMPILE = "self.calls += 1; x = x * (1.0 + 0.001 * self.calls)"
# 64 x 65536 floats (16 MiB) that a matrix product needs in memory, where the model takes 9 MiB.
MEMORY = "wide = x.repeat(1, 128); x = x + 1e-9 * (wide @ wide.t()).mean()"
# Through a matrix product: a cast there and back alone would be fused away.
DOWNCAST = (
    "half = x.to(torch.bfloat16); unit = torch.eye(x.shape[1], dtype=torch.bfloat16); "
    "x = (half @ unit).to(x.dtype) if torch.compiler.is_compiling() else x"
)
CRASH = "import os, torch as t; t.compiler.is_compiling() or os.abort()"
NOT_A_NUMBER = "x = x / (x - x)"


@dataclass(frozen=True)
class Project:
    """A user's repository with one model, a configuration and recorded baselines."""

    directory: Path

    def plant(self, fault: str) -> None:
        """Write the model with ``fault`` in its forward."""
        (self.directory / "project_model.py").write_text(MODEL.replace("# FAULT", fault))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command of the gate in the project."""
        command = [sys.executable, "-m", "gate", *arguments]
        return subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)

    def list_statuses(self) -> Mapping[str, str]:
        """Return metric -> status of the last verdict."""
        verdict = json.loads((self.directory / "out" / "verdict.json").read_text())
        return {row["metric"]: row["status"] for row in verdict["comparisons"] if row["decides"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose baselines were recorded here, by the command a user would run."""
    made = Project(tmp_path_factory.mktemp("project"))
    (made.directory / "gate.yml").write_text(CONFIG)
    made.plant("")
    refreshed = made.run("baseline", "refresh", "--trials", "3")
    assert refreshed.returncode == 0, refreshed.stdout + refreshed.stderr
    return made


def test_unchanged_code_is_never_red(project: Project) -> None:
    """Without a fault the gate passes or says that it cannot know; it never claims a regression."""
    project.plant("")
    checked = project.run("check")
    assert checked.returncode in {0, 11}, checked.stdout
    assert "REGRESSED" not in project.list_statuses().values()


@pytest.mark.parametrize(
    ("fault", "metric"),
    [
        pytest.param(GRAPH_BREAK, "graph_breaks", id="graph_break"),
        pytest.param(RECOMPILE, "recompiles", id="recompile"),
        pytest.param(MEMORY, "peak_memory", id="memory"),
        pytest.param(DOWNCAST, "drift", id="downcast"),
    ],
)
def test_planted_fault_is_a_regression(project: Project, fault: str, metric: str) -> None:
    """A planted fault ends in exit 10, and the report names the case and the metric."""
    project.plant(fault)
    checked = project.run("check")
    assert checked.returncode == 10, checked.stdout + checked.stderr
    assert project.list_statuses()[metric] == "REGRESSED"
    report = (project.directory / "out" / "report.md").read_text()
    assert "mlp/inference-float32-smoke-default" in report
    assert metric in report


@pytest.mark.parametrize(
    ("fault", "kind"),
    [pytest.param(CRASH, "crash", id="crash"), pytest.param(NOT_A_NUMBER, "not_finite", id="nan")],
)
def test_broken_case_is_incomplete(project: Project, fault: str, kind: str) -> None:
    """A case that crashes or returns NaN is FAILED with its kind and stage, and the exit code is 12."""
    project.plant(fault)
    checked = project.run("check")
    assert checked.returncode == 12, checked.stdout + checked.stderr
    verdict = json.loads((project.directory / "out" / "verdict.json").read_text())
    assert [failure["kind"] for failure in verdict["failures"]] == [kind]
    assert verdict["failures"][0]["stage"]
