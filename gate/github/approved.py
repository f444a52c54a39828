"""Who accepted what for the commit of a run: told beside its verdict, from the branch of approvals.

The check read the same file by itself. Here it decides nothing but whether a check that is green although
nothing was compared may be told so.
"""

from __future__ import annotations

from gate.errors import FileError
from gate.github.approval_branch import find_approval
from gate.github.client import GitHubClient
from gate.github.git_data import GitData
from gate.publish.approved import NOTHING_APPROVED, Approved, describe_approval, needs_approval
from gate.publish.ci_run import CiRun
from gate.records import Code, Fact, Policy, Verdict


def find_approved(
    client: GitHubClient, repository: str, run: CiRun, verdict: Verdict, policy: Policy
) -> Approved:
    """Find who accepted what the verdict calls accepted, or did not compare.

    Raises:
        GitHubError: GitHub does not tell.
    """
    if not run.is_of_pull_request or not needs_approval(verdict):
        return NOTHING_APPROVED
    try:
        approval = find_approval(GitData(client, f"/repos/{repository}"), run.head_sha)
    except FileError:
        return Approved(notes=(Fact(code=Code.APPROVAL_UNREADABLE),))
    return NOTHING_APPROVED if approval is None else describe_approval(approval, run, verdict, policy)
