"""The required check is never skipped, in no workflow: GitHub takes a skipped job for a passed one."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest
from action.composite import BASH
from action.expressions import fill, is_due
from deliveries import make_delivery
from workflow_files import ROOT, WORKFLOWS, is_gate, list_checks, load, name_file

from gate.project.config import make_config
from gate.project.entries import GateFile

REQUIRED = "compile-gate"
CALLED = "compile-gate / check"  # where the workflow is called: GitHub joins the names of the two jobs
RESULTS = ("success", "failure", "cancelled", "skipped")  # of a job, as `needs` tells them


def make_context(name: str, event: dict[str, Any]) -> dict[str, Any]:
    """The context ``github`` of a run that an event started."""
    number = event.get("pull_request", {}).get("number")
    ref = f"refs/pull/{number}/merge" if number else event["merge_group"]["head_ref"]
    return {"github": {"event_name": name, "event": event, "ref": ref, "run_id": "4711"}}


def make_edit(**changes: object) -> dict[str, Any]:
    """An edited pull request: GitHub tells of a title, a text and a base branch in one way."""
    return make_delivery("pull_request", "synchronize") | {"action": "edited", "changes": changes}


PUSH = make_context("pull_request", make_delivery("pull_request", "synchronize"))
QUEUE = make_context("merge_group", make_delivery("merge_group", "checks_requested"))
TITLE = make_context("pull_request", make_edit(title={"from": "Another title"}))
BASE = make_context("pull_request", make_edit(base={"ref": {"from": "release"}, "sha": {"from": "a" * 40}}))
NUMBER = PUSH["github"]["event"]["pull_request"]["number"]


def list_required() -> list[tuple[Path, dict[str, Any]]]:
    """Every job that reports as the required check, with the workflow that an event starts."""
    return [
        (path, job)
        for path in WORKFLOWS
        for name, _, job in list_checks(path)
        if any(fill_name(name, job, context) in (REQUIRED, CALLED) for context in (PUSH, QUEUE, TITLE, BASE))
    ]


def fill_name(name: str, job: dict[str, Any], context: dict[str, Any]) -> str:
    """The name of a job's check; those of a matrix are none of ours."""
    return "" if "strategy" in job else fill(name, context)


ALL = list_required()
MEASURED = [(path, job) for path, job in ALL if any(map(is_gate, job["steps"]))]
every_required = pytest.mark.parametrize(("path", "job"), ALL, ids=[name_file(path) for path, _ in ALL])
every_measured = pytest.mark.parametrize(
    ("path", "job"), MEASURED, ids=[name_file(path) for path, _ in MEASURED]
)


def test_these_are_the_jobs_that_report_as_the_required_check() -> None:
    """A workflow that joins them, by a name given in passing, must be meant to."""
    retargeted = {
        *(".github/compile-gate-respond.yml", "examples/compile-gate-respond.yml"),
        "examples/gate-retarget.yml",
    }

    assert {name_file(path) for path, _ in MEASURED} == {
        ".github/compile-gate.yml",
        "examples/compile-gate.yml",
        "examples/gate.yml",
        "examples/shards.yml",
    }
    assert {name_file(path) for path, _ in ALL} - {name_file(path) for path, _ in MEASURED} == retargeted


def list_needs(job: dict[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else needs


@every_required
def test_it_is_skipped_for_no_result_of_the_jobs_before(path: Path, job: dict[str, Any]) -> None:
    """However those ended, and also where the run was cancelled meanwhile: the job runs, and so can fail."""
    needs = list_needs(job)
    # Any other condition is false for some event; a called job may ask for the one event that it is for.
    own = "${{ github.event_name == 'pull_request' }}" if path.name == "compile-gate-respond.yml" else None
    assert job.get("if") == ("${{ always() }}" if needs else own)
    for results in itertools.product(RESULTS, repeat=len(needs)):
        for is_cancelled in (False, True) if needs else (False,):
            status = {
                "always": True,
                "cancelled": is_cancelled,
                "failure": "failure" in results,
                "success": set(results) <= {"success"} and not is_cancelled,
            }
            contexts = PUSH | {
                "needs": {name: {"result": result} for name, result in zip(needs, results, strict=True)}
            }
            assert is_due(job.get("if"), contexts, status), (path, results, is_cancelled)


@every_required
def test_nothing_in_it_is_forgiven_or_left_out(path: Path, job: dict[str, Any]) -> None:
    """No failure is turned into success, and up to the gate's own step no step has a condition."""
    steps = job["steps"]
    last = next((index for index, step in enumerate(steps) if is_gate(step)), len(steps) - 1)

    assert "continue-on-error" not in job, path
    assert not any("continue-on-error" in step for step in steps)
    assert not any("if" in step for step in steps[: last + 1])


@every_measured
def test_no_filter_keeps_the_workflow_away(path: Path, job: dict[str, Any]) -> None:
    """It starts for every pull request and every merge group: nothing waits for a check that never comes."""
    assert job
    assert load(path)["on"] == {"pull_request": None, "merge_group": None}


def test_shards_are_judged_only_after_measuring() -> None:
    """The first step of the job, run for every way in which the job before it can have ended."""
    (job,) = (job for path, job in MEASURED if path.name == "shards.yml")
    ended = {one: run_first(job, {"needs": {"measure": {"result": one}}}) for one in (*RESULTS, "")}

    assert {one for one, (code, _) in ended.items() if code == 0} == {"success", "failure", "cancelled"}
    assert ended["skipped"][0] == 1
    assert ended["skipped"][1].startswith(
        "::error title=compile-gate::Nothing was judged: measuring ended with skipped."
    )


def run_first(job: dict[str, Any], contexts: dict[str, Any]) -> tuple[int, str]:
    """Run the first step of a job as the runner does; return its exit code and what it printed."""
    step = job["steps"][0]
    assert step["shell"] == "bash"
    environ = {name: fill(value, contexts) for name, value in step["env"].items()}
    command = [*BASH, "-c", step["run"]]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(("repository", "code"), [("", 2), ("octo-org/compile-gate", 0)])
@pytest.mark.parametrize(("file", "name"), [("check.yml", "check"), ("respond.yml", "measure")])
def test_a_runner_that_is_too_old_is_told_before_anything_is_cloned(
    file: str, name: str, repository: str, code: int
) -> None:
    """It does not know which repository the workflow is of: checkout would clone the caller's own for it."""
    job = load(ROOT / ".github" / "workflows" / file)["jobs"][name]

    ended, printed = run_first(job, {"job": {"workflow_repository": repository}})

    assert ended == code
    assert ("This runner is too old for a called workflow" in printed) is bool(code)


def find_group(path: Path, context: dict[str, Any]) -> tuple[str, str]:
    """The workflow's concurrency group for an event, and whether it cancels what runs in it."""
    files = dict.fromkeys([path, *(file for _, file, _ in list_checks(path))])
    held = [load(file).get("concurrency") for file in files]
    held += [job.get("concurrency") for name, _, job in list_checks(path) if "same base" in name]
    (group,) = filter(None, held)
    assert set(group) == {"group", "cancel-in-progress"}  # GitHub refuses `queue` beside it
    return fill(group["group"], context), fill(str(group["cancel-in-progress"]), context).lower()


@every_measured
def test_a_push_supersedes_and_a_merge_queue_does_not(path: Path, job: dict[str, Any]) -> None:
    """Ten pushes are one measurement; each merge group has a branch, and so a group, of its own."""
    assert job
    ref = QUEUE["github"]["event"]["merge_group"]["head_ref"]

    assert find_group(path, PUSH) == (f"gate-{NUMBER}", "true")
    assert find_group(path, QUEUE) == (f"gate-{ref}", "false")


RETARGETING = [path for path, _ in ALL if path not in {path for path, _ in MEASURED}]


@pytest.mark.parametrize("path", RETARGETING, ids=name_file)
def test_a_changed_base_takes_the_check_back_and_an_edited_title_does_not(path: Path) -> None:
    """It fails under the required name and stops what runs; for a title it passes under another name."""
    ((check, job),) = ((name, job) for name, _, job in list_checks(path) if "same base" in name)
    required = CALLED if "/" in check.partition("$")[0] else REQUIRED

    assert load(path)["on"]["pull_request"] == {"types": ["edited"]}
    assert (fill_name(check, job, BASE), run_first(job, BASE)[0]) == (required, 1)
    assert find_group(path, BASE) == (f"gate-{NUMBER}", "true")
    assert "Push a commit" in run_first(job, BASE)[1]
    assert (fill_name(check, job, TITLE), run_first(job, TITLE)) == (
        f"{required} (same base)",
        (0, ""),
    )
    assert find_group(path, TITLE)[0] == "gate-4711"


def test_no_status_has_the_name_of_the_check() -> None:
    """GitHub requires both of one name: trouble in reporting would then keep a good change from merging."""
    assert make_config(GateFile(version=1)).status == "compile-gate/report"
    assert REQUIRED != "compile-gate/report"
