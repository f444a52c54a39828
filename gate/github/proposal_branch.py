"""The branch of a proposal and its pull request: what stands on it already, commits, and asking to merge it.

Refreshes of one commit add up: each is a commit of its own, whose message names what was measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gate.errors import UsageError
from gate.github.client import GitHubClient
from gate.github.errors import (
    DeniedError,
    MissingError,
    RejectedError,
    UncertainWriteError,
    find_text,
)
from gate.github.events import parse_pull
from gate.github.git_data import GitData, Tip, quote_branch
from gate.github.job import JobContext
from gate.publish.proposal_text import name_measured

_ODD = re.compile(r"[^A-Za-z0-9_/-]")  # in a directory; a branch must not have all of it
# The one refusal of a branch that no permission of the job could lift; GitHub does not tell it from others.
_WORKFLOWS_FIX = (
    " If the branch's .github/workflows differ from the default branch's, github.token may not write it:"
    " merge that change first, or give the mode propose-baselines an app's token that may write workflows."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshRequest:
    """What was authorised: the commit that was measured and the branch that the baselines are for."""

    head_sha: str
    head_ref: str
    directory: str  # of the baselines, from the top of the repository
    config: str = "gate.yml"  # whose registry makes the cases, from the top of the repository
    reason: str = ""
    author: str = ""
    pr_number: int = 0

    @property
    def branch(self) -> str:
        """The branch that the proposal is made on; one a pull request, or one a branch, and a directory."""
        what = f"pr-{self.pr_number}" if self.pr_number else self.head_ref
        return f"compile-gate/{_ODD.sub('-', self.directory)}/{what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """What came of it. ``url`` is the pull request, or where to open it; empty when nothing changed.

    ``trouble`` says why it is not open, in words that are GitHub's too.
    """

    url: str = ""
    trouble: str = ""
    setbacks: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What the branch holds: the commit at its tip, empty without one, and the tree a proposal is added to.

    ``is_kept`` is whether that is a proposal for the measured commit; of another commit it is written over.
    """

    sha: str
    tree: str
    is_kept: bool = False


def find_standing(data: GitData, branch: str, head: Tip) -> Standing:
    """Find what proposals for the commit ``head`` have put on the branch."""
    sha = data.find_branch(branch)
    tip = data.load_tip(sha) if sha else head
    is_kept = name_measured(head.sha) in tip.message
    return Standing(sha=sha, tree=tip.tree if is_kept else head.tree, is_kept=is_kept)


def _move_branch(data: GitData, branch: str, standing: Standing, commit: str) -> None:
    """Point the branch to a commit that was made for what it was found to hold.

    Raises:
        RejectedError: Another proposal was faster: it must not be lost. The workflow makes one at a time.
    """
    if not standing.sha or standing.is_kept:
        is_moved = data.advance_branch(branch, standing.sha, commit)
    elif is_moved := data.find_branch(branch) == standing.sha:
        data.force_branch(branch, commit)
    if not is_moved:
        raise RejectedError(f"the branch {branch} moved on meanwhile", "Ask for the refresh again.")


def check_tip(data: GitData, request: RefreshRequest) -> None:
    """Check that the branch still is where it was measured.

    A proposal is made on the measured commit, so merging it would bring that commit back.

    Raises:
        UsageError: Somebody pushed meanwhile, or the branch is gone.
    """
    if data.find_branch(request.head_ref) != request.head_sha:
        raise UsageError(
            f"the branch is not at {request.head_sha[:12]} any more, which was measured: it was pushed to",
            "Ask for the refresh again: it then measures the branch as it is now.",
        )


def commit_files(data: GitData, request: RefreshRequest, files: Mapping[str, str], message: str) -> bool:
    """Commit files on the proposal's branch, unless all is there already; whether there is a proposal.

    Raises:
        UsageError: The branch that the proposal is for has moved on.
    """
    head = data.load_tip(request.head_sha)
    standing = find_standing(data, request.branch, head)
    tree = data.write_tree(standing.tree, request.directory, files) if files else head.tree
    if tree in {head.tree, standing.tree}:
        return tree != head.tree
    commit = data.write_commit(tree, standing.sha if standing.is_kept else request.head_sha, message)
    check_tip(data, request)  # again: measuring is long past, and writing takes its time
    try:
        _move_branch(data, request.branch, standing, commit)
    except (DeniedError, MissingError, RejectedError) as error:
        error.fix += _WORKFLOWS_FIX
        raise
    return True


def ask_for_merge(
    client: GitHubClient, context: JobContext, request: RefreshRequest, title: str, body: str
) -> ProposalOutcome:
    """Open the pull request, or bring the open one up to date; without the right to, say where to open it."""
    fields = {"title": title, "body": body}
    try:
        url = _open_pull(client, request, fields)
    except DeniedError as error:
        between = f"{quote_branch(request.head_ref)}...{quote_branch(request.branch)}"
        url = f"{context.server_url}/{context.repository}/compare/{between}?expand=1"
        return ProposalOutcome(url=url, trouble=error.what)
    return ProposalOutcome(url=url)


def _open_pull(client: GitHubClient, request: RefreshRequest, fields: Mapping[str, str]) -> str:
    number = _find_pull(client, request)
    if not number:
        body = {**fields, "head": request.branch, "base": request.head_ref}
        try:
            return find_text(client.post("pulls", body), "html_url")
        except (UncertainWriteError, RejectedError):
            # It may be there after all: by this request, or by one that ran at the same time.
            number = _find_pull(client, request)
            if not number:
                raise
    return find_text(client.patch(f"pulls/{number}", fields), "html_url")


def _find_pull(client: GitHubClient, request: RefreshRequest) -> int:
    head = f"{client.repository.partition('/')[0]}:{request.branch}"
    query = {"state": "open", "head": head, "base": request.head_ref}
    for pull in map(parse_pull, client.paginate("pulls", query)):
        if (pull.head_branch, pull.base_branch) == (request.branch, request.head_ref):
            return pull.number
    return 0
