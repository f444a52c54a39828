"""Which commit a change is held against, and its files, read from git's objects.

GitHub's payload names the base branch as it was when the pull request was opened, or at some later
moment; it is not kept up to date, and a change of the base branch or a re-run does not renew it. What
GitHub checks out is a trial merge of the pull request into the base branch of now. Its first parent is
therefore the base. Where something else is checked out, the base is where that left the base branch as the
clone has it; the payload's commit is looked at only where the clone has none.

Whatever asks git may raise MachineError: git cannot be run, or does not answer in time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gate.errors import UsageError
from gate.git import ask_git, is_true, read_git
from gate.github.errors import find_text, find_value
from gate.github.job import is_sha

LIMIT_S = 120.0  # a large repository on a cold disk
_REGULAR = frozenset((b"100644", b"100755"))
_KINDS = {b"120000": "a symbolic link", b"160000": "a submodule"}


class MissingContentError(UsageError):
    """The clone lacks a file of a commit: nothing is known of what that says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A commit of the repository whose checkout lies at ``top``."""

    top: Path
    sha: str

    def to_git(self, path: Path) -> str:
        """Write an absolute path as git does, from the top of the checkout.

        Raises:
            UsageError: It lies outside.
        """
        absolute = Path(os.path.normpath(path))
        if not absolute.is_relative_to(self.top):
            raise UsageError(
                f"{path} lies outside the repository: no commit has it",
                "Move it into the repository, or set `baseline-ref: head`.",
            )
        return absolute.relative_to(self.top).as_posix()


def has_path(tree: Tree, name: str) -> bool:
    """Whether the commit has a file or a directory of that name; raises as :func:`write_files`."""
    return bool(read_git(tree.top, "ls-tree", "-z", "--full-tree", tree.sha, "--", name, limit_s=LIMIT_S))


def write_files(tree: Tree, names: Sequence[str], place: Path) -> None:
    """Write the files at or below ``names`` under ``place``; what the commit does not have is left out.

    Raises:
        UsageError: One of them is no regular file, or the clone lacks its content.
    """
    parents = [str(parent) for name in names for parent in PurePosixPath(name).parents if str(parent) != "."]
    _list_entries(tree, ("ls-tree", "-z"), parents)  # a link on the way would hide what lies behind it
    entries = tuple(_list_entries(tree, ("ls-tree", "-r", "-z"), names))
    content = read_git(
        tree.top,
        *("cat-file", "--batch"),
        given=b"".join(object_id + b"\n" for object_id, _ in entries),
        limit_s=LIMIT_S,
    )
    for (_, path), data in zip(entries, _split_batch(tree, content), strict=True):
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _list_entries(
    tree: Tree, command: tuple[str, ...], names: Sequence[str]
) -> tuple[tuple[bytes, str], ...]:
    if not names:
        return ()
    listed = read_git(tree.top, *command, "--full-tree", tree.sha, "--", *names, limit_s=LIMIT_S)
    return tuple(_parse_entry(tree, entry) for entry in listed.split(b"\0") if entry)


def _parse_entry(tree: Tree, entry: bytes) -> tuple[bytes, str]:
    described, _, name = entry.partition(b"\t")
    mode, kind, object_id = described.split()
    path = os.fsdecode(name)
    if kind != b"tree" and mode not in _REGULAR:
        raise UsageError(
            f"{path} of commit {tree.sha[:12]} is {_KINDS.get(mode, 'no file')}",
            "Put the file itself there: a change is judged by regular files of the base commit only.",
        )
    if ".." in PurePosixPath(path).parts:
        raise UsageError(
            f"{path} of commit {tree.sha[:12]} leads out of it", "Check the repository: `git fsck`."
        )
    return object_id, path


def _split_batch(tree: Tree, content: bytes) -> Iterator[bytes]:
    """Split what ``git cat-file --batch`` wrote: ``ID blob SIZE``, a line end, the content, a line end."""
    position = 0
    while position < len(content):
        end = content.index(b"\n", position)
        header = content[position:end].split()
        if len(header) != 3:  # noqa: PLR2004 - "ID missing"
            raise MissingContentError(
                f"this clone lacks the content of a file of commit {tree.sha[:12]}",
                "Give actions/checkout `fetch-depth: 0` and no `filter:`.",
            )
        size = int(header[2])
        yield content[end + 1 : end + 1 + size]
        position = end + 1 + size + 1


_FETCH_ALL = "Give actions/checkout `fetch-depth: 0`."
_CHECK_OUT = (
    "Let actions/checkout take what the event names: without `ref:`, on `pull_request` or `merge_group`."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseCommit:
    """A commit, and how it was found: a clause for a reader."""

    sha: str
    origin: str


def find_head_sha(event: Mapping[str, object]) -> str:
    """Find the commit under test: a pull request's own head, not its trial merge; empty otherwise."""
    return find_text(event, "pull_request.head.sha") or find_text(event, "merge_group.head_sha")


def find_base(event: Mapping[str, object], directory: Path) -> BaseCommit | None:
    """Find the commit that the checked-out change is held against; ``None`` for a push or a dispatch.

    Raises:
        UsageError: It is not in this clone, or what is checked out is not the event's change.
    """
    if not any(isinstance(find_value(event, name), Mapping) for name in ("pull_request", "merge_group")):
        return None
    top, head = load_top(directory), find_head_sha(event)
    if is_sha(find_text(event, "merge_group.base_sha")):
        return _find_group_base(top, find_text(event, "merge_group.base_sha"), head)
    parents = list_parents(top)
    if len(parents) == 2 and parents[1] == head:  # noqa: PLR2004 - a merge of two, as GitHub's trial merge is
        check_commit(top, parents[0])
        return BaseCommit(sha=parents[0], origin="what GitHub merged this change into, to try it")
    named, branch = find_text(event, "pull_request.base.sha"), find_text(event, "pull_request.base.ref")
    if not (is_sha(named) and is_sha(head)):
        raise UsageError("the event's pull request names no base and head commit", _CHECK_OUT)
    _check_contains(top, head, "the pull request's commit")
    return _find_left(top, named, branch)


def load_top(directory: Path) -> Path:
    """Load the top of the checkout that ``directory`` lies in.

    Raises:
        UsageError: It lies in none, or git does not read it; the reason is git's own.
    """
    return Path(os.fsdecode(read_git(directory, "rev-parse", "--show-toplevel").rstrip(b"\n")))


def load_head(top: Path) -> str:
    """Load the commit that is checked out."""
    return read_git(top, "rev-parse", "HEAD").decode().strip()


def list_parents(top: Path, commit: str = "HEAD") -> tuple[str, ...]:
    """List a commit's parents as it names them itself: in a shallow clone they need not be there."""
    text = read_git(top, "cat-file", "commit", commit, limit_s=LIMIT_S)
    header = text.decode(errors="replace").partition("\n\n")[0]
    return tuple(line.partition(" ")[2] for line in header.splitlines() if line.startswith("parent "))


def check_commit(top: Path, sha: str) -> None:
    """Check that the clone has a commit.

    Raises:
        UsageError: It does not.
    """
    if not is_true(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{sha}^{{commit}}"):
        raise UsageError(f"the base commit {sha} is not in this clone", _FETCH_ALL)


def _find_group_base(top: Path, base: str, head: str) -> BaseCommit:
    _check_contains(top, head, "the merge group's commit")
    check_commit(top, base)
    _check_contains(top, base, "the merge group's base commit")
    return BaseCommit(sha=base, origin="what the merge queue puts this group on")


def _find_left(top: Path, named: str, branch: str) -> BaseCommit:
    """Find where what is checked out, which is no trial merge, left the base.

    That is the base ``branch`` of the clone, since the commit that the event ``named`` may be older than
    what the change has merged of it. Once the branch has all that is checked out, it no longer shows that.
    """
    here = load_head(top)
    name = f"origin/{branch}"
    tip = ask_git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/remotes/{name}^{{commit}}"
    )
    if branch and tip.is_good:
        found = _find_common(top, tip.said, f"the base branch {name}")
        if found != here:
            return BaseCommit(sha=found, origin=f"where this change left the base branch {name}")
    check_commit(top, named)
    what = f"the base commit {named[:12]}"
    origin = f"where this change left {what} that the event names"
    return BaseCommit(sha=_find_common(top, named, what), origin=origin)


def _find_common(top: Path, other: str, what: str) -> str:
    _check_whole(top, f"where this change left {what}")
    if not is_true(top, "merge-base", other, "HEAD", limit_s=LIMIT_S):
        raise UsageError(f"HEAD and {what} have no commit in common", _CHECK_OUT)
    return read_git(top, "merge-base", other, "HEAD", limit_s=LIMIT_S).decode().splitlines()[0]


def _check_contains(top: Path, commit: str, what: str) -> None:
    """Check that what is checked out has a commit: else something else would be measured."""
    found = load_head(top)
    if found == commit:
        return
    if not is_true(top, "merge-base", "--is-ancestor", commit, "HEAD", limit_s=LIMIT_S):
        _check_whole(top, f"whether HEAD has {what} {commit[:12]}")
        raise UsageError(f"HEAD, {found[:12]}, does not have {what} {commit[:12]}", _CHECK_OUT)


def _check_whole(top: Path, what: str) -> None:
    """Check that history is there: with a part of it git's answer may be another one."""
    if read_git(top, "rev-parse", "--is-shallow-repository").strip() != b"false":
        raise UsageError(f"this clone is shallow: it does not show {what}", _FETCH_ALL)
