"""The workflow that holds the default branch against a release, run step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from action.composite import ActionRun, run_job
from action.samples import make_job, record_gate
from workflow_files import ROOT, load

JOBS: dict[str, Any] = load(ROOT / "examples/workflows/anchor.yml")["jobs"]


def compare(place: Path, *, has_anchor: bool) -> tuple[ActionRun, dict[str, str]]:
    """Run the job; return what came of it, and what it gave to the action."""
    job = make_job(place)
    if has_anchor:
        (job.workspace / "baselines").mkdir(exist_ok=True)
        (job.workspace / "baselines" / "anchor.yml").write_text("version: 1\n")
    given = record_gate(job)
    return run_job(JOBS["compare"], job, {"inputs": {"select": "bert"}}), given


def test_the_branch_is_held_against_the_anchor(tmp_path: Path) -> None:
    """The action is given its mode, the selection, and to fail on a regression."""
    run, given = compare(tmp_path / "host", has_anchor=True)

    assert run.succeeded, run.log
    assert (given["mode"], given["select"], "fail-on" in given) == ("anchor", "bert", False)


def test_without_an_anchor_nothing_is_measured_and_that_is_said(tmp_path: Path) -> None:
    """A notice names the command that records one; the job is green, since it was asked for nothing."""
    run, given = compare(tmp_path / "host", has_anchor=False)

    assert run.succeeded, run.log
    assert given == {}
    assert "::notice title=anchor::There is no baselines/anchor.yml, so nothing was measured." in run.log
    assert "compile-gate baseline anchor REF --reason TEXT" in run.log


def test_the_whole_history_is_cloned() -> None:
    """The anchor is an old commit: a shallow clone would not have it."""
    assert JOBS["compare"]["steps"][0]["with"]["fetch-depth"] == 0
