"""``calibrate`` end to end on a user's project: real trials, a real pair with itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gate.files.codec import CALIBRATION, load_run
from gate.records import Metric, Pairing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

CONFIG = """\
version: 1
reference_models: false
select: mlp/*
threads: 1
lock_timeout_s: 600
sampling: {super_blocks: 3, warmup_s: 0.05}
models:
  - name: mlp
    factory: project_model:build
    cases:
      - {size: smoke, backend: eager, expected_s: 15}
    sizes: {smoke: {width: 64}}
"""
MODEL = """\
import torch
from torch import nn

from gate import Workload


def build(width):
    return Workload(forward=nn.Linear(width, width), inputs=(torch.randn(8, width),))
"""


def test_a_machine_is_calibrated(tmp_path: Path) -> None:
    """Two trials and a pair with itself: noise of both, too few to replay, and a run that can be reused."""
    (tmp_path / "gate.yml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "project_model.py").write_text(MODEL, encoding="utf-8")
    few = ("--trials", "2", "--pairs", "1", "--requests", "5", "--anyway")
    command = [sys.executable, "-m", "gate", "calibrate", *few]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    calibration = CALIBRATION.load(tmp_path / "out" / "calibration.json")
    assert (calibration.trials, calibration.pairs, calibration.replays) == (2, 1, ())
    cold = next(one for one in calibration.noise if one.metric is Metric.COLD_COMPILE_TIME)
    assert (cold.trials, cold.side_by_side is not None) == (2, True)
    run = load_run(tmp_path / "out" / "run.json")
    assert sorted((trial.pairing, trial.arm, trial.index) for trial in run.trials) == [
        (Pairing.ALONE, "head", 1),
        (Pairing.ALONE, "head", 2),
        (Pairing.LIVE, "base", 1),
        (Pairing.LIVE, "head", 1),
    ]
    assert all(trial.conditions.free_bytes > 0 for trial in run.trials)
