"""The branches that the gate writes: approvals, one file a commit, and proposals of baselines.

A clone with all branches has the approvals, so that the check reads them without any token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gate.errors import FileError
from gate.github.errors import RejectedError
from gate.github.git_data import GitData, Tip
from gate.publish.commands import CommandRefusedError
from gate.records import Approval
from gate.store.approvals import (
    BRANCH,
    DIRECTORY,
    MAX_ACCEPTED,
    MAX_APPROVAL_BYTES,
    decode_approval,
    merge_approvals,
    name_approval,
    render_approval,
)

MAX_TRIES = 5  # each loses to another comment that was accepted within the same second or two


def find_approval(data: GitData, commit: str, ref: str = BRANCH) -> Approval | None:
    """Find what was approved for a commit; None where nothing was.

    Raises:
        FileError: The file cannot be used.
        GitHubError: GitHub does not tell.
    """
    name = name_approval(commit)
    content = data.load_file(name, ref, MAX_APPROVAL_BYTES)
    return None if content is None else decode_approval(content, name, commit)


def store_approval(data: GitData, approval: Approval, message: str) -> str:
    """Add an approval to what is stored for its commit, and return the branch's commit.

    Raises:
        CommandRefusedError: What is stored cannot be added to.
        GitHubError: GitHub, or a rule of the repository, does not let it be stored.
    """
    for _ in range(MAX_TRIES):
        tip_sha = data.find_branch(BRANCH)
        tree = data.load_tip(tip_sha).tree if tip_sha else ""
        text = render_approval(_add_stored(data, approval, tip_sha))
        changed = data.write_tree(tree, DIRECTORY, {name_approval(approval.commit): text})
        if changed == tree:
            return tip_sha
        commit = data.write_commit(changed, tip_sha, message)
        if data.advance_branch(BRANCH, tip_sha, commit):
            return commit
    raise RejectedError(f"the branch {BRANCH} moved on {MAX_TRIES} times meanwhile", "Comment again.")


def _add_stored(data: GitData, approval: Approval, tip_sha: str) -> Approval:
    try:
        old = find_approval(data, approval.commit, tip_sha) if tip_sha else None
    except FileError:
        raise CommandRefusedError(
            "what is stored for this commit cannot be read, and is not written over",
            f"Remove {name_approval(approval.commit)} from the branch {BRANCH}, and comment again.",
        ) from None
    merged = merge_approvals(old, approval) if old else approval
    if len(merged.accepted) > MAX_ACCEPTED:
        raise CommandRefusedError(
            f"more than {MAX_ACCEPTED} regressions of one commit would be accepted", "Fix what they share."
        )
    return merged


_MAX_PROPOSALS = 50  # of one commit: selections, directories and machines
_DIRECTORY = re.compile(r"^Directory: (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What the branch holds: the commit at its tip, empty without one, and what a proposal is added to.

    ``directories`` are of the proposals that it already has for the measured commit; of another commit it
    has none that count, and is written over.
    """

    sha: str
    tree: str
    directories: tuple[str, ...] = ()


def mark_directory(message: str, directory: str) -> str:
    """Note in a commit's message which directory a proposal is for."""
    return f"{message}\nDirectory: {directory}\n"


def find_standing(data: GitData, branch: str, head: Tip) -> Standing:
    """Find what proposals for the commit ``head`` have put on the branch, one commit each."""
    tip = data.find_branch(branch)
    commits: list[Tip] = []
    directories: list[str] = []
    sha = tip
    while sha and sha != head.sha and len(commits) < _MAX_PROPOSALS:
        commit = data.load_tip(sha)
        marks = _DIRECTORY.findall(commit.message)
        if not marks:
            break
        commits.append(commit)
        directories.append(marks[-1])
        sha = commit.parent
    if not commits or sha != head.sha:
        return Standing(sha=tip, tree=head.tree)
    return Standing(sha=tip, tree=commits[0].tree, directories=tuple(dict.fromkeys(directories)))


def list_proposed(data: GitData, standing: Standing, head: Tip) -> dict[str, dict[str, str]]:
    """List what the branch has otherwise than the measured commit: directory -> path -> blob."""
    found = {}
    for directory in standing.directories:
        stored = data.list_files(head.tree, directory)
        there = data.list_files(standing.tree, directory)
        found[directory] = {path: blob for path, blob in there.items() if stored.get(path) != blob}
    return found


def move_branch(data: GitData, branch: str, standing: Standing, commit: str) -> bool:
    """Point the branch to a commit that was made for what it was found to hold.

    False where another proposal was faster: it must not be lost. GitHub moves a branch to a child only if
    nothing came between; where proposals of an older commit are written over, the tip is looked at again.

    Raises:
        GitHubError: The rules of the repository, or the token's rights, forbid it.
    """
    if not standing.sha or standing.directories:
        return data.advance_branch(branch, standing.sha, commit)
    if data.find_branch(branch) != standing.sha:
        return False
    data.force_branch(branch, commit)
    return True
