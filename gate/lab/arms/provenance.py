"""Which commit a run is of, who ran it, when and where."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from gate.git import ALL_SUBMODULES, read_git
from gate.lab.arms.checkouts import STATUS_LIMIT_S, TOP, list_hidden, run_git
from gate.records.run import Provenance
from gate.revisions import find_repository
from gate.version import __version__


def load_provenance(directory: Path, environ: Mapping[str, str] = os.environ) -> Provenance:
    """Outside git, commit and author may be empty.

    ``dirty`` is about tracked files only: outputs and new baselines do not change what is measured.

    Raises:
        UsageError: git knows the commit, but not what was changed since.
        MachineError: git did not answer in time.
    """
    commit = run_git(directory, "rev-parse", "HEAD")
    tracked = ("status", "--porcelain", "--untracked-files=no", ALL_SUBMODULES)
    status = read_git(directory, *tracked, limit_s=STATUS_LIMIT_S) if commit else b""
    return Provenance(
        commit=commit,
        dirty=bool(status) or bool(commit and list_hidden(Path(directory, run_git(directory, *TOP)))),
        created=read_time(),
        author=environ.get("GITHUB_ACTOR", "") or run_git(directory, "config", "user.name"),
        run_url=make_run_url(environ),
        repository=environ.get("GITHUB_REPOSITORY", "") or find_repository(directory),
        branch=environ.get("GITHUB_HEAD_REF", "") or run_git(directory, "branch", "--show-current"),
        gate_version=__version__,
    )


def make_run_url(environ: Mapping[str, str]) -> str:
    server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    run_id = environ.get("GITHUB_RUN_ID", "")
    if not (server and repository and run_id):
        return ""
    url = f"{server}/{repository}/actions/runs/{run_id}"
    attempt = environ.get("GITHUB_RUN_ATTEMPT", "1")
    return url if attempt == "1" else f"{url}/attempts/{attempt}"


def read_time() -> str:
    """ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
