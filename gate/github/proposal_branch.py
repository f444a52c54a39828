"""The branch of a proposal and its pull request: what stands on it already, commits, and asking to merge it.

Refreshes of one commit add up: each is a commit of its own, whose message names the directory it is for.
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

BRANCH_PREFIX = "compile-gate/baselines/"
_MAX_TRIES = 5  # each loses to another proposal within the same second or two
_MAX_PROPOSALS = 50  # of one commit: selections, directories and machines
# The one refusal of a branch that no permission of the job could lift; GitHub does not tell it from others.
_WORKFLOWS_FIX = (
    " If the branch's .github/workflows differ from the default branch's, github.token may not write it:"
    " merge that change first, or give the mode propose-baselines an app's token that may write workflows."
)
_DIRECTORY = re.compile(r"^Directory: (.+)$", re.MULTILINE)


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
        """The branch that the proposal is made on; one a pull request, or one a branch."""
        return BRANCH_PREFIX + (f"pr-{self.pr_number}" if self.pr_number else self.head_ref)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """What came of it. ``url`` is the pull request, or where to open it; empty when nothing changed.

    ``trouble`` says why it is not open, in words that are GitHub's too.
    """

    commit: str = ""
    url: str = ""
    trouble: str = ""
    setbacks: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What the branch holds: the commit at its tip, empty without one, and what a proposal is added to.

    ``directories`` are of the proposals that it already has for the measured commit; of another commit it
    has none that count, and is written over.
    """

    sha: str
    tree: str
    directories: tuple[str, ...] = ()


def find_standing(data: GitData, branch: str, head: Tip) -> Standing:
    """Find what proposals for the commit ``head`` have put on the branch, one commit each."""
    sha = tip = data.find_branch(branch)
    tree = ""
    directories: list[str] = []
    while sha and sha != head.sha and len(directories) < _MAX_PROPOSALS:
        commit = data.load_tip(sha)
        marks = _DIRECTORY.findall(commit.message)
        if not marks:
            break
        tree = tree or commit.tree
        directories.append(marks[-1])
        sha = commit.parent
    if not directories or sha != head.sha:
        return Standing(sha=tip, tree=head.tree)
    return Standing(sha=tip, tree=tree, directories=tuple(dict.fromkeys(directories)))


def _move_branch(data: GitData, branch: str, standing: Standing, commit: str) -> bool:
    """Point the branch to a commit that was made for what it was found to hold.

    False where another proposal was faster: it must not be lost. GitHub moves a branch to a child only if
    nothing came between; where proposals of an older commit are written over, the tip is looked at again.
    """
    if not standing.sha or standing.directories:
        return data.advance_branch(branch, standing.sha, commit)
    if data.find_branch(branch) != standing.sha:
        return False
    data.force_branch(branch, commit)
    return True


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


def commit_files(data: GitData, request: RefreshRequest, files: Mapping[str, str], message: str) -> str:
    """Commit files on the proposal's branch, unless all is there already; return the commit.

    Empty where there is nothing to propose.

    Raises:
        UsageError: The branch that the proposal is for has moved on.
    """
    head = data.load_tip(request.head_sha)
    message = f"{message}\nDirectory: {request.directory}\n"
    for _ in range(_MAX_TRIES):
        standing = find_standing(data, request.branch, head)
        tree = data.write_tree(standing.tree, request.directory, files) if files else head.tree
        if tree == head.tree:
            return ""
        if tree == standing.tree:
            return standing.sha
        parent = standing.sha if standing.directories else request.head_sha
        commit = data.write_commit(tree, parent, message)
        check_tip(data, request)  # again: measuring is long past, and writing takes its time
        try:
            if _move_branch(data, request.branch, standing, commit):
                return commit
        except (DeniedError, MissingError, RejectedError) as error:
            error.fix += _WORKFLOWS_FIX
            raise
    raise RejectedError(
        f"the branch {request.branch} moved on {_MAX_TRIES} times meanwhile", "Ask for the refresh again."
    )


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
