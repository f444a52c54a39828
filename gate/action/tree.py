"""Files of a commit, read from git's objects: no checkout, no archive, no attributes, no links."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gate.errors import UsageError
from gate.git import read_git

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
        MachineError: git cannot be run, or does not answer in time.
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
    """List the id of the object and the path of each entry."""
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
