"""The sample hook of a self-hosted runner refuses forks and everything unknown."""

import json
import os
import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).resolve().parents[2] / "examples" / "runner" / "refuse-forks.sh"
OURS = {"repo": {"full_name": "octo-org/models"}}
FORK = {"repo": {"full_name": "mallory/models"}}


def run_hook(tmp_path: Path, name: str, event: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the hook as the runner does, in a directory that the job's code could have prepared."""
    (tmp_path / "event.json").write_text(event if isinstance(event, str) else json.dumps(event))
    (tmp_path / "json.py").write_text("raise SystemExit(0)\n")
    given = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path),
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_EVENT_NAME": name,
        "GITHUB_REPOSITORY": "octo-org/models",
        **environ,
    }
    return subprocess.run(
        ["bash", "-e", str(HOOK)], env=given, cwd=tmp_path, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("pull_request", {"pull_request": {"head": OURS}}),
        ("pull_request", {"pull_request": {"head": {"repo": {"full_name": "Octo-Org/Models"}}}}),
        ("merge_group", {"merge_group": {}}),
        ("push", {}),
        ("schedule", {}),
        ("workflow_dispatch", {}),
        ("issue_comment", {}),
    ],
)
def test_what_is_the_repositorys_own_runs(tmp_path: Path, name: str, event: object) -> None:
    """Branches of the repository, merge queues, schedules, and runs by users who may write."""
    done = run_hook(tmp_path, name, event)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("pull_request", {"pull_request": {"head": FORK}}),
        ("pull_request", {"pull_request": {"head": {"repo": None}}}),
        ("pull_request", {"pull_request": {}}),
        ("pull_request", {}),
        ("pull_request", "not JSON"),
        ("pull_request", "[]"),
        ("pull_request_target", {"pull_request": {"head": OURS}}),
        ("workflow_run", {}),
        ("pull_request_review", {"pull_request": {"head": FORK}}),
        ("", {}),
        ("new_event_of_next_year", {}),
    ],
)
def test_what_is_foreign_or_unknown_does_not_run(tmp_path: Path, name: str, event: object) -> None:
    """Forks, a deleted fork, unlisted events, and anything that cannot be read."""
    done = run_hook(tmp_path, name, event)

    assert done.returncode == 1
    assert "::error title=refused by this runner::" in done.stdout


def test_without_an_event_or_a_repository_nothing_runs(tmp_path: Path) -> None:
    """In doubt the hook refuses."""
    event = {"pull_request": {"head": {"repo": {"full_name": ""}}}}

    assert run_hook(tmp_path, "push", {}, GITHUB_EVENT_PATH="/nowhere").returncode == 1
    assert run_hook(tmp_path, "pull_request", event, GITHUB_REPOSITORY="").returncode == 1
