"""Where approvals are kept: a branch of the repository that holds nothing else, one file a commit.

A clone with all branches has it, so that the check reads it without any token.
"""

from __future__ import annotations

from gate.errors import FileError
from gate.github.errors import RejectedError
from gate.github.git_data import GitData
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
