"""Where a run comes from: commit, time, author, link."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from gate.records import Provenance

_GIT_LIMIT_S = 10.0  # `git status` of a large tree on a slow disk; longer means that git hangs


def load_provenance(directory: Path, environ: Mapping[str, str] = os.environ) -> Provenance:
    """Describe the checkout at ``directory``, now. Outside git, commit and author may be empty.

    ``dirty`` speaks of tracked files only: outputs and new baselines do not change what is measured.
    """
    commit = run_git(directory, "rev-parse", "HEAD")
    status = run_git(directory, "status", "--porcelain", "--untracked-files=no") if commit else ""
    return Provenance(
        commit=commit,
        dirty=bool(status),
        created=format_time(datetime.now(UTC)),
        author=environ.get("GITHUB_ACTOR", "") or run_git(directory, "config", "user.name"),
        run_url=make_run_url(environ),
        gate_version=metadata.version("compile-gate"),
    )


def run_git(directory: Path, *arguments: str) -> str:
    """Run git in ``directory`` and return its output; empty where git, or a repository, is missing."""
    # A hook that calls us sets GIT_DIR and the like, which would point git at another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), "--no-optional-locks", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def make_run_url(environ: Mapping[str, str]) -> str:
    """Make the link to this run of GitHub Actions; empty elsewhere."""
    server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    run_id = environ.get("GITHUB_RUN_ID", "")
    if not (server and repository and run_id):
        return ""
    url = f"{server}/{repository}/actions/runs/{run_id}"
    attempt = environ.get("GITHUB_RUN_ATTEMPT", "1")
    return url if attempt == "1" else f"{url}/attempts/{attempt}"


def format_time(moment: datetime) -> str:
    """Format a moment as ISO 8601 in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
