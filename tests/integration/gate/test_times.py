"""Verdicts on times: pairs with the commit confirm a slower head, unchanged code is never red."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.git import run_git

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(2400)]

CONFIG = """\
version: 1
reference_models: false
select: tag:pr
threads: 2
lock_timeout_s: 600
# Latencies are judged here; compile times would take a compile for each pair.
thresholds: {cold_compile_time: {absolute: 60}, warm_compile_time: {absolute: 60}}
models:
  - name: mlp
    factory: project_model:build
    cases:
      - {size: smoke, tags: [pr], expected_s: 15}
    sizes: {smoke: {batch: 64, width: 256}}
"""
MODEL = """\
import torch
from torch import nn

from gate import Workload


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.layer(x))


def build(batch, width):
    return Workload(forward=Mlp(width), inputs=(torch.randn(ROWS * batch, width),))
"""
CASE = "mlp/inference-float32-smoke-default"


def write_model(directory: Path, rows: int) -> None:
    """Write a model whose work is proportional to ``rows``, in eager and compiled alike."""
    (directory / "project_model.py").write_text(MODEL.replace("ROWS", str(rows)))


def run_command(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the project."""
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def run_gate(directory: Path, *arguments: str) -> tuple[int, str, dict[str, dict[str, Any]]]:
    """Run the gate; return its exit code, its output, and the deciding rows by metric."""
    done = run_command(directory, sys.executable, "-m", "gate", *arguments)
    verdict = json.loads((directory / "out" / "verdict.json").read_text())
    rows = {row["metric"]: row for row in verdict["comparisons"] if row["case_id"] == CASE}
    return done.returncode, done.stdout + done.stderr, rows


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit; its model has 20 rows to an element of the batch."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "gate.yml").write_text(CONFIG)
    (directory / ".gitignore").write_text("out/\n__pycache__/\n")
    write_model(directory, 20)
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Add a model")):
        run_git(directory, *arguments)
    return directory


def test_slower_head_is_confirmed_by_pairs(project: Path) -> None:
    """Half as much work again, in eager too, so that no ratio shows it: pairs with the commit do.

    Nothing is stored, so every case is suspect.
    """
    write_model(project, 30)
    code, printed, rows = run_gate(project, "check", "--base", "HEAD")
    latency = rows["compiled_latency"]
    assert (10, "REGRESSED", "beyond_bar") == (code, latency["status"], latency["reason"]), printed
    assert latency["pairs"] >= 2
    assert 0.25 < latency["change"]["centre"] < 0.75
    measured = json.loads((project / "out" / "run.json").read_text())
    assert measured["base"]["other_changes"] == []
    assert ["project_model.py"] in [trial.get("changed_imports") for trial in measured["trials"]]
    assert CASE in (project / "out" / "report.md").read_text()
    assert len(run_git(project, "worktree", "list").splitlines()) == 1


def test_unchanged_tree_is_never_convicted(project: Path) -> None:
    """Pairs never convict the base's own code, nor does one pair, or none, on a busy machine.

    There the first pair may take longer than the whole budget: more time makes the two that can convict.
    """
    write_model(project, 20)
    for minutes in ("1.5", "4", "10"):
        code, printed, rows = run_gate(project, "ab", "HEAD", "--minutes", minutes)
        assert code in {0, 11}, printed
        assert rows["compiled_latency"]["status"] in {"UNCHANGED", "INCONCLUSIVE"}
        assert "REGRESSED" not in {row["status"] for row in rows.values()}
        if rows["compiled_latency"].get("pairs", 0) >= 2:
            break
    assert rows["compiled_latency"].get("pairs", 0) >= 2, printed


def test_unchanged_code_is_never_red(project: Path) -> None:
    """Against fresh baselines it passes, or is inconclusive."""
    write_model(project, 20)
    refresh = ("baseline", "refresh", "--trials", "3", "--anyway")
    recorded = run_command(project, sys.executable, "-m", "gate", *refresh)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    code, printed, rows = run_gate(project, "check")
    assert code in {0, 11}, printed
    assert "REGRESSED" not in {row["status"] for row in rows.values() if row["decides"]}
