"""The branch of a proposal: what earlier ones of the same commit have put there, and adding to it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gate.github.git_data import GitData, Tip

MAX_TRIES = 5  # each loses to another proposal that was made within the same second or two
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
