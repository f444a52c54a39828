"""A project whose workers are actors, and runs of it by hand: commands are real, nothing compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from gate.codec import save_run
from gate.records import Case, Metric, Provenance, Run, Trial
from tests.hosts import CPU_HOST

ACTING_GATE = Path(__file__).with_name("acting_gate.py")
CASE_ID = "actor/inference-float32-smoke-default"
CONFIG = """\
version: 1
reference_models: false
sampling: {super_blocks: 3}
models:
  - name: actor
    factory: actor:build
    cases: [{tags: [smoke], expected_s: 1}]
"""

RunGate = Callable[..., "subprocess.CompletedProcess[str]"]
MakeRun = Callable[..., Run]


def make_run(latency_s: float = 0.010, breaks: float = 0.0, trials: int = 5) -> Run:
    """A run of one case: five trials that vary by 0.1 %."""
    samples = [
        {Metric.COMPILED_LATENCY: (latency_s * (1 + 0.001 * index),), Metric.GRAPH_BREAKS: (breaks,)}
        for index in range(trials)
    ]
    return Run(
        cases=(Case(id=CASE_ID, model="actor", factory="actor:build", definition="d1"),),
        environment=CPU_HOST,
        provenance=Provenance(commit="abc"),
        trials=tuple(
            Trial(case_id=CASE_ID, index=index, samples=values)
            for index, values in enumerate(samples, start=1)
        ),
        trials_planned=trials,
        finished=True,
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one model, in the current directory, with ``old.json`` and a slower ``slow.json``."""
    top = tmp_path / "project"
    top.mkdir()
    (top / "gate.yml").write_text(CONFIG, encoding="utf-8")
    save_run(make_run(), top / "old.json")
    save_run(make_run(latency_s=0.013, breaks=1.0), top / "slow.json")
    monkeypatch.chdir(top)
    return top


@pytest.fixture
def run_gate(project: Path, tmp_path: Path) -> RunGate:
    """Run the command line in a process of its own, in the project."""
    own = tmp_path / "own"
    own.mkdir()

    def run(
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        starter: Sequence[str] = (),
        **settings: object,
    ) -> subprocess.CompletedProcess[str]:
        defaults = {"cwd": project, "capture_output": True, "text": True, "timeout": 120}
        command = [*starter, sys.executable, str(ACTING_GATE), str(own), *arguments]
        settings = defaults | {"env": {**os.environ, **(environment or {})}} | settings
        return subprocess.run(command, check=False, **settings)  # type: ignore[call-overload] # the test's

    return run
