"""What actions/checkout does with ``fetch-depth: 0`` on a pull request, by its own source (v7).

``getRefSpecForAllHistory`` and ``fetch``: all branches and tags of ``origin`` and the trial merge, with
``--prune``; then the merge is checked out, detached. ``origin`` is the repository that the workflow runs in,
for a fork's pull request too.
"""

from pathlib import Path

from tests.git import run_git

FETCH = ("-c", "protocol.version=2", "fetch", "--no-tags", "--prune", "--no-recurse-submodules", "origin")


def make_clone(path: Path, url: str) -> Path:
    """Make the directory that a runner keeps from one job to the next."""
    path.mkdir(parents=True)
    run_git(path, "init", "--quiet")
    run_git(path, "remote", "add", "origin", url)
    return path


def check_out(clone: Path, commit: str, *, is_on_branch: bool = False) -> None:
    """Fetch everything, the trial merge by its id where it is on no branch, and check the commit out."""
    trial = () if is_on_branch else (f"+{commit}:refs/remotes/pull/7/merge",)
    run_git(clone, *FETCH, "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*", *trial)
    run_git(clone, "checkout", "--quiet", "--force", "--detach", commit)
