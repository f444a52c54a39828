"""A real check through the shipped action: real torch, a real compile, a change that tries to cheat."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from action.composite import Job, run_composite
from action.samples import ACTION, commit, make_job

from gate.files.codec import VERDICT
from gate.lab.host import ownership
from gate.records.cases import Metric
from gate.records.verdict import Reason, Status

CONFIG = """\
version: 1
device: cpu
reference_models: false
threads: 1 # leaves a core to other tests, which then disturb no trial
trials: 1
max_trials: 1
sampling: {super_blocks: 2, block_s: 0.01, warmup_s: 0.01}
models:
  - name: tiny
    factory: tiny:make
    cases:
      - {size: smoke, tags: [smoke]}
"""
# The factory tells what of the job the code under test can see, in a file beside it.
MODEL = """\
import json, os, pathlib, torch
from gate.workload import Workload

def make():
    pathlib.Path(__file__).with_name("seen.json").write_text(json.dumps(dict(os.environ)))
    print("::set-output name=verdict::PASS")
    return Workload(forward=model, inputs=(torch.randn(64, 64),))

def model(x):
    return torch.relu(x @ x) + 1
"""
# Compiled, it says something else than eager: beyond a limit that needs no baseline.
DRIFTING = MODEL.replace("+ 1", "+ (2 if torch.compiler.is_compiling() else 1)")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A clone with a model and a configuration, not yet committed."""
    # No space in these paths: Inductor hands them to the C++ compiler unquoted.
    made = make_job(tmp_path, workspace_name="work")
    made.limit_s = 540.0
    made.environ[ownership.VARIABLE] = os.environ[ownership.VARIABLE]  # waits for no gate but this test's
    (made.workspace / "gate.yml").write_text(CONFIG)
    (made.workspace / "tiny.py").write_text(MODEL)
    return made


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_change_that_drifts_and_moves_its_own_bar_is_red(job: Job) -> None:
    """Judged by the base's rules, which the change edits; what is measured sees nothing of its job."""
    base = commit(job.workspace, "base")
    (job.workspace / "tiny.py").write_text(DRIFTING)
    (job.workspace / "gate.yml").write_text(CONFIG.replace("name: tiny", "name: other"))
    head = commit(job.workspace, "head")
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": head}}}
    Path(job.environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))

    run = run_composite(ACTION, job, {"python": sys.executable, "lock-timeout": "480", "confirm": "false"})

    assert run.steps[0].code == 10, run.log
    assert run.outputs["verdict"] == "REGRESSION"
    assert (run.outputs["baseline-sha"], run.outputs["head-sha"]) == (base, head)
    verdict = VERDICT.load(Path(run.outputs["result-path"]).with_name("verdict.json"))
    assert [case.id for case in verdict.cases] == ["tiny/inference-float32-smoke-default"]
    worse = {one.metric: one.reason for one in verdict.comparisons if one.status is Status.REGRESSED}
    assert worse[Metric.DRIFT] is Reason.LIMIT_EXCEEDED
    assert "::warning title=compile-gate::This change touches what it is judged by (gate.yml)" in run.log
    assert "REGRESSION" in run.summary
    assert f"thresholds and baselines are those of commit {base}." in run.summary
    _check_what_was_seen(job)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_shard_is_measured_beside_the_base_and_judged_without_baselines(job: Job) -> None:
    """The job that judges has the pairs of the one that measured, so nothing needs to be recorded first."""
    base = commit(job.workspace, "base")
    (job.workspace / "tiny.py").write_text(MODEL.replace("+ 1", "+ 2"))
    (job.workspace / ".gitignore").write_text("out/\nshards/\nseen.json\n")
    head = commit(job.workspace, "head")
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": head}}}
    Path(job.environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    shared = {"python": sys.executable}

    measured = run_composite(ACTION, job, shared | {"mode": "measure", "shard": "1/1", "lock-timeout": "480"})
    assert measured.succeeded, measured.log
    place = job.workspace / "shards" / "compile-gate-shard-1"
    place.mkdir(parents=True)
    Path(measured.outputs["result-path"]).rename(place / "run.json")
    judged = run_composite(ACTION, job, shared | {"mode": "judge"})

    assert judged.outputs["verdict"] not in {"", "NOTHING_COMPARED"}, judged.log
    verdict = VERDICT.load(Path(judged.outputs["result-path"]).with_name("verdict.json"))
    assert verdict.base is not None
    assert verdict.base.commit == base
    assert verdict.tally.pairs > 0


def _check_what_was_seen(job: Job) -> None:
    """The worker had neither the tokens of the job nor the files that steer the runner."""
    seen = json.loads((job.workspace / "seen.json").read_text())
    hidden = [name for name in seen if name.startswith(("INPUT_", "ACTIONS_", "GH_")) or "TOKEN" in name]
    assert hidden == []
    assert not {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} & set(seen)
    assert not {"GITHUB_EVENT_PATH", "RUNNER_TEMP"} & set(seen)
