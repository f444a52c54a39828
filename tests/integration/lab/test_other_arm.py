"""A base that differs in everything: another commit, another interpreter; scratch in an awkward place."""

import re
import sys
import tempfile
import venv
from importlib import metadata
from pathlib import Path

import pytest

from gate.lab.arms.arms import ArmOptions, open_arms
from gate.lab.host import device_lock
from gate.lab.trials.bench import LabSettings, make_job
from gate.lab.trials.opening import open_lab
from gate.lab.workers.worker import run_worker
from gate.records.cases import Case, Metric
from gate.records.protocol import Sampling, WorkerResult, WorkerRole
from tests.git import run_git


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


QUICK = Sampling(super_blocks=3, block_s=0.005, warmup_s=0.05, max_rounds_s=2.0, drift_seeds=1)
BASE = """
import torch
from gate.workload import Workload

def build() -> Workload:
    return Workload(forward=lambda x: torch.sin(x) * 2, inputs=(torch.randn(4096),))
"""
HEAD = BASE.replace("return", "raise ValueError('this is head')\n    return")
INSTALLED = {_normalize(distribution.name) for distribution in metadata.distributions()}
CASE = Case(id="shop/x", model="shop", factory="shop:build", definition="0" * 16)


def make_repository(top: Path) -> None:
    """Make a repository whose branch main has a working model, and whose head has a broken one."""
    top.mkdir()
    run_git(top, "init", "--quiet", "--initial-branch=main")
    for source in (BASE, HEAD):
        (top / "shop.py").write_text(source, encoding="utf-8")
        run_git(top, "add", "shop.py")
        run_git(top, "commit", "--quiet", "--message", "model")
        run_git(top, "checkout", "--quiet", "-B", "feature")


def make_interpreter(path: Path) -> Path:
    """Make an interpreter that has torch and its dependencies, and none of the gate's; return it."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(path)
    (site,) = path.glob("lib/python*/site-packages")
    waiting, seen = ["torch", "numpy", "setuptools"], set()
    while waiting:
        name = _normalize(waiting.pop())
        if name in seen or name not in INSTALLED:
            continue
        seen.add(name)
        distribution = metadata.distribution(name)
        lines = [line for line in distribution.requires or () if "extra ==" not in line]
        waiting += [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines]
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return path / "bin" / "python"


@pytest.mark.slow
def test_base_of_another_commit_and_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base's model is measured by the base's torch, with pytest lent, and nothing is left of it."""
    make_repository(tmp_path / "project")
    python = make_interpreter(tmp_path / "other")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(device_lock, "make_lock_directory", lambda: tmp_path)
    options = ArmOptions(
        directory=tmp_path / "project", base="main", base_python=str(python), head_python=sys.executable
    )
    settings = LabSettings(out=tmp_path / "out", sampling=QUICK, trial_timeout_s=240.0)
    with open_arms(options) as arms, open_lab(arms.base.arm, settings) as lab:
        lent = {path.name for path in Path(arms.base.arm.variables["COMPILE_GATE_PACKAGES"]).iterdir()}
        result = run_worker(make_job(lab.bench, WorkerRole.COLD, CASE, 1))
    assert isinstance(result, WorkerResult), result
    assert len(result.samples[Metric.COMPILED_LATENCY]) >= 6
    assert {"pytest", "pytest_benchmark"} <= lent
    assert lab.environment.torch == metadata.version("torch")
    assert list((tmp_path / "temporary").iterdir()) == []
