"""The branches that the gate writes: acceptances, one file a commit, and proposals of baselines.

A clone with all branches has the acceptances, so that the check reads them without any token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gate.errors import FileError
from gate.github.errors import RejectedError
from gate.github.git_data import GitData, Tip
from gate.publish.commands import CommandRefusedError
from gate.records import Acceptance
from gate.store.policy import (
    BRANCH,
    DIRECTORY,
    MAX_ACCEPTED,
    MAX_COMMIT_BYTES,
    decode_commit_file,
    merge_acceptances,
    name_commit_file,
    render_commit_file,
)

MAX_TRIES = 5  # each loses to another comment that was accepted within the same second or two


def find_acceptances(data: GitData, commit: str, ref: str = BRANCH) -> tuple[Acceptance, ...]:
    """Find what was accepted of a commit.

    Raises:
        FileError: The file cannot be used.
        GitHubError: GitHub does not tell.
    """
    name = name_commit_file(commit)
    content = data.load_file(name, ref, MAX_COMMIT_BYTES)
    return () if content is None else decode_commit_file(content, name, commit).acceptances


def store_acceptances(data: GitData, acceptances: Sequence[Acceptance], message: str) -> str:
    """Add acceptances to what is stored for their commit, and return the branch's commit.

    Raises:
        CommandRefusedError: What is stored cannot be added to.
        GitHubError: GitHub, or a rule of the repository, does not let it be stored.
    """
    accepted = acceptances[0].commit
    for _ in range(MAX_TRIES):
        tip_sha = data.find_branch(BRANCH)
        tree = data.load_tip(tip_sha).tree if tip_sha else ""
        text = _render_merged(data, accepted, acceptances, tip_sha)
        changed = data.write_tree(tree, DIRECTORY, {name_commit_file(accepted): text})
        if changed == tree:
            return tip_sha
        commit = data.write_commit(changed, tip_sha, message)
        if data.advance_branch(BRANCH, tip_sha, commit):
            return commit
    raise RejectedError(f"the branch {BRANCH} moved on {MAX_TRIES} times meanwhile", "Comment again.")


def _render_merged(data: GitData, commit: str, acceptances: Sequence[Acceptance], tip_sha: str) -> str:
    try:
        old = find_acceptances(data, commit, tip_sha) if tip_sha else ()
    except FileError:
        raise CommandRefusedError(
            "what is stored for this commit cannot be read, and is not written over",
            f"Remove {name_commit_file(commit)} from the branch {BRANCH}, and comment again.",
        ) from None
    merged = merge_acceptances(old, acceptances)
    text = render_commit_file(commit, merged)
    if len(merged) > MAX_ACCEPTED or len(text.encode()) > MAX_COMMIT_BYTES:
        raise CommandRefusedError(
            f"more than {MAX_ACCEPTED} changes of one commit would be accepted", "Fix what they share."
        )
    return text


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
