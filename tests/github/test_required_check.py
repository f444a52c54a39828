"""The required check is never skipped in any workflow: GitHub takes a skipped job for a passed one.

These tests read the workflows; those in ``act`` run them.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from action.step import BASH
from workflow_files import ROOT, WORKFLOWS, is_gate, list_checks, load, name_file

from gate.project.config import make_config
from gate.project.entries import GateFile

REQUIRED = "compile-gate"
CALLED = "compile-gate / check"  # where the workflow is called: GitHub joins the names of the two jobs


def list_names(name: str) -> list[str]:
    """The names that a check may have: each text of an expression in its name."""
    if (expression := re.search(r"\$\{\{(.*)\}\}", name)) is None:
        return [name]
    return [name.replace(expression[0], text) for text in re.findall("'([^']*)'", expression[1])]


# Every job that reports as the required check, with the workflow that an event starts and its names.
ALL = [
    (path, job, names)
    for path in WORKFLOWS
    for name, _, job in list_checks(path)
    if {REQUIRED, CALLED}.intersection(names := list_names(name))
]
MEASURED = [(path, job) for path, job, _ in ALL if any(map(is_gate, job["steps"]))]
RETARGETING = [check for check in ALL if check[:2] not in MEASURED]
every_required = pytest.mark.parametrize(
    ("path", "job"), [check[:2] for check in ALL], ids=[name_file(path) for path, *_ in ALL]
)
every_measured = pytest.mark.parametrize(
    ("path", "job"), MEASURED, ids=[name_file(path) for path, _ in MEASURED]
)


def test_these_are_the_jobs_that_report_as_the_required_check() -> None:
    """A workflow must not join them by accident of a name."""
    assert {name_file(path) for path, _ in MEASURED} == {
        ".github/compile-gate.yml",
        "examples/compile-gate.yml",
        "examples/gate.yml",
        "examples/shards.yml",
    }
    assert {name_file(path) for path, *_ in RETARGETING} == {
        ".github/compile-gate-respond.yml",
        "examples/compile-gate-respond.yml",
        "examples/gate-retarget.yml",
    }


@every_required
def test_it_is_skipped_for_no_result_of_the_jobs_before(path: Path, job: dict[str, Any]) -> None:
    """The job runs, and so can fail, however those ended, and after a cancellation."""
    # Any other condition is false for some event; a called job may ask for the one event that it is for.
    wanted = "${{ github.event_name == 'pull_request' }}" if path.name == "compile-gate-respond.yml" else None
    assert job.get("if") == ("${{ always() }}" if "needs" in job else wanted)


@every_required
def test_nothing_in_it_is_forgiven_or_left_out(path: Path, job: dict[str, Any]) -> None:
    """No failure becomes success, and up to the gate's own step no step has a condition."""
    steps = job["steps"]
    last = next((index for index, step in enumerate(steps) if is_gate(step)), len(steps) - 1)

    assert "continue-on-error" not in job, path
    assert not any("continue-on-error" in step for step in steps)
    assert not any("if" in step for step in steps[: last + 1])


@every_measured
def test_every_pull_request_and_every_merge_group_is_measured(path: Path, job: dict[str, Any]) -> None:
    """Nothing waits for a check that never comes; a push supersedes, a merge queue does not."""
    assert load(path)["on"] == {"pull_request": None, "merge_group": None}
    called = next(file for _, file, calling in list_checks(path) if calling is job)
    group, cancels = load(called)["concurrency"].values()
    assert cancels == "${{ github.event_name == 'pull_request' }}"
    assert group.endswith("-${{ github.event.pull_request.number || github.ref }}")
    # Several gates may call the same file: each has a group of its own.
    keys = ("inputs.working-directory", "inputs.config")
    assert [key for key in keys if f"${{{{ {key} }}}}" in group] == [*keys] * (called != path)


@pytest.mark.parametrize(
    ("ended", "code"),
    [("success", 0), ("failure", 0), ("cancelled", 0), ("skipped", 1), ("", 1)],
)
def test_shards_are_judged_only_after_measuring(ended: str, code: int) -> None:
    """The job's first step runs for every conclusion of the job before it."""
    (job,) = (job for path, job in MEASURED if path.name == "shards.yml")

    done = run_first(job, {"needs.measure.result": ended})

    assert done.returncode == code
    annotation = f"::error title=compile-gate::Nothing was judged: measuring ended with {ended or 'nothing'}."
    assert done.stdout.startswith(annotation) is bool(code)


def run_first(job: dict[str, Any], values: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the first step of a job as the runner does, with these values of its variables."""
    step = job["steps"][0]
    assert step["shell"] == "bash"
    environ = {
        name: values[value.removeprefix("${{ ").removesuffix(" }}")] for name, value in step["env"].items()
    }
    return subprocess.run([*BASH, step["run"]], env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("repository", "code"), [("", 2), ("octo-org/compile-gate", 0)])
@pytest.mark.parametrize(("file", "name"), [("check.yml", "check"), ("respond.yml", "measure")])
def test_a_runner_that_is_too_old_is_reported_before_anything_is_cloned(
    file: str, name: str, repository: str, code: int
) -> None:
    """It does not name the workflow's repository: checkout would clone the caller's instead."""
    job = load(ROOT / ".github" / "workflows" / file)["jobs"][name]

    done = run_first(job, {"job.workflow_repository": repository})

    assert done.returncode == code
    assert ("This runner is too old for a called workflow" in done.stdout) is bool(code)


@pytest.mark.parametrize(
    ("path", "job", "names"), RETARGETING, ids=[name_file(check[0]) for check in RETARGETING]
)
def test_a_changed_base_takes_the_check_back_and_an_edited_title_does_not(
    path: Path, job: dict[str, Any], names: list[str]
) -> None:
    """A new base fails the required name and stops runs; a title passes under another name."""
    required = CALLED if "/" in names[0] else REQUIRED
    measured = ROOT / (".github/workflows/check.yml" if "/" in names[0] else "examples/workflows/gate.yml")
    group = load(measured)["concurrency"]["group"].replace(
        "github.event.pull_request.number || github.ref",
        "github.event.changes.base && github.event.pull_request.number || github.run_id",
    )
    base, title = (run_first(job, {"github.event.changes.base.ref.from": name}) for name in ("release", ""))

    assert load(path)["on"]["pull_request"] == {"types": ["edited"]}
    assert names == [required, f"{required} (same base)"]
    assert "${{ github.event.changes.base && " in job["name"]
    assert (job.get("concurrency") or load(path)["concurrency"]) == {
        "group": group,
        "cancel-in-progress": True,
    }
    assert (base.returncode, title.returncode, title.stdout) == (1, 0, "")
    assert "Push a commit" in base.stdout


def test_no_status_has_the_name_of_the_check() -> None:
    """GitHub requires both of one name: trouble in publishing would block a good change."""
    assert make_config(GateFile(version=1)).status == "compile-gate/report" != REQUIRED
