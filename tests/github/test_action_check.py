"""A real check through the shipped action: real torch, a real compile, a change that tries to cheat."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from action.composite import ActionRun, Job, run_composite
from action.samples import ACTION, commit, make_job

from gate.baseline import make_baselines, propose_baselines, save_baselines
from gate.codec import load_run, load_verdict
from gate.records import Metric, Policy, Status

CONFIG = """\
version: 1
device: cpu
reference_models: false
trials: 1
max_trials: 1
refresh_trials: 1
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
BREAKING = MODEL.replace(
    "    return torch.relu(x @ x) + 1",
    "    y = x @ x\n    torch._dynamo.graph_break()\n    return torch.relu(y) + 1",
)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A clone whose base commit has a model and its baseline, recorded through the action."""
    # No space in these paths: Inductor hands them to the C++ compiler unquoted.
    made = make_job(tmp_path_factory.mktemp("job"), workspace_name="work")
    made.limit_s = 540.0
    (made.workspace / "gate.yml").write_text(CONFIG)
    (made.workspace / "tiny.py").write_text(MODEL)
    return made


def run(job: Job, **inputs: str) -> ActionRun:
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    return run_composite(ACTION, job, {"python": sys.executable, "lock-timeout": "480", **given})


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(1200)
def test_refresh_then_a_regression_that_edits_its_own_baseline(job: Job) -> None:
    """A change adds a graph break and moves its own bar; the check is red all the same."""
    first = run(job, mode="refresh")
    assert first.succeeded, first.log
    measured = load_run(Path(first.outputs["result-path"]))
    assert [trial.case_id for trial in measured.trials] == ["tiny/inference-float32-smoke-default"]
    _check_what_was_seen(job)
    _store_baselines(job)
    base = commit(job.workspace, "base")

    (job.workspace / "tiny.py").write_text(BREAKING)
    (job.workspace / "gate.yml").write_text(CONFIG + "thresholds: {compiled_latency: {relative: 99}}\n")
    for stored in (job.workspace / "baselines").rglob("*.json"):
        stored.unlink()
    head = commit(job.workspace, "head")
    event = {"pull_request": {"base": {"sha": base}, "head": {"sha": head}}}
    Path(job.environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    second = run(job)

    assert second.steps[0].code == 10, second.log
    assert second.outputs["verdict"] == "REGRESSION"
    assert (second.outputs["baseline-sha"], second.outputs["head-sha"]) == (base, head)
    verdict = load_verdict(Path(second.outputs["result-path"]))
    broken = {item.metric for item in verdict.comparisons if item.status is Status.REGRESSED}
    assert Metric.GRAPH_BREAKS in broken
    assert "::warning title=compile-gate::This change touches what it is judged by" in second.log
    assert ",file=tiny.py,line=" in second.log
    assert "REGRESSION" in second.summary


def _check_what_was_seen(job: Job) -> None:
    """The worker had neither the tokens of the job nor the files that steer the runner."""
    seen = json.loads((job.workspace / "seen.json").read_text())
    (job.workspace / "seen.json").unlink()
    hidden = [name for name in seen if name.startswith(("INPUT_", "ACTIONS_", "GH_")) or "TOKEN" in name]
    assert hidden == []
    assert not {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} & set(seen)


def _store_baselines(job: Job) -> None:
    """Store the run as baselines, as a merged proposal would."""
    measured = load_run(job.workspace / "out" / "run.json")
    proposals = propose_baselines(make_baselines(measured, measured.provenance), (), Policy(thresholds={}))
    save_baselines(job.workspace / "baselines", proposals)
