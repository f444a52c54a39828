#!/usr/bin/env bash
# Job-started hook of a self-hosted runner: refuse every job that a fork's pull request started.
#
# GitHub runs it before any step of a job, outside the reach of the workflow file, which a fork could
# change. Install it where the runner's user cannot write, and name it in the runner's .env:
#     ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/actions/refuse-forks.sh
# Exit 0 lets the job run; anything else fails it. In doubt it refuses.
#
# It is the last fence, not the first: see docs/security.md.
set -euo pipefail

refuse() {
  echo "::error title=refused by this runner::$1"
  exit 1
}

command -v python3 >/dev/null || refuse "python3 is missing, so the event cannot be read"
[[ -r ${GITHUB_EVENT_PATH:-} ]] || refuse "there is no event to look at"

# -I: neither the job's environment nor its directory has a say in what this imports.
python3 -I - "$GITHUB_EVENT_PATH" "${GITHUB_EVENT_NAME:-}" "${GITHUB_REPOSITORY:-}" <<'PYTHON' || refuse "a fork's code does not run here"
import json
import sys

path, name, repository = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    event = json.load(file)


def is_ours(side):
    """Whether one side of a pull request, or of a run, is the repository that this job belongs to."""
    found = (side or {}).get("repo", side) or {}
    return bool(repository) and found.get("full_name", "").lower() == repository.lower()


# Whose code a job of these events runs; a name that is not here is refused.
allowed = {
    "pull_request": lambda: is_ours(event["pull_request"]["head"]),
    "merge_group": lambda: True,  # GitHub makes its branch, of what was approved
    "push": lambda: True,  # so was made by somebody who may write
    "schedule": lambda: True,
    "workflow_dispatch": lambda: True,
    "issue_comment": lambda: True,  # runs the default branch; authorize-command refuses forks
}
sys.exit(0 if name in allowed and allowed[name]() else 1)
PYTHON
