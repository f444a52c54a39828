"""What a checkout holds that differs from a commit."""

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gate.git import DIFF, GitAnswer, ask_git
from gate.lab.arms.checkouts import NEW_FILES, STATUS_LIMIT_S, TOP, list_hidden, run_git
from gate.lab.arms.outputs import find_outputs
from gate.lab.arms.submodules import list_links
from gate.records.protocol import BUILD_SCRIPTS

# However many objects a clone has, and whatever a user has set.
_ALIKE = (
    "--binary", "--full-index", "--no-prefix", "--unified=3", "--inter-hunk-context=0",
    "--indent-heuristic", "--diff-algorithm=myers", "--submodule=short",
)  # fmt: skip
_CHANGED = (*DIFF, *_ALIKE, "HEAD")
_DIGITS = 16  # of a hash
_UNCHANGED = hashlib.sha256().hexdigest()[:_DIGITS]
# Results are new files as well, and change as a run goes on.
CODE = (b".py", b".c", b".cc", b".cpp", b".cu", b".cuh", b".h", b".hpp", b".hip", b".pyx", b".rs")
READ_BY_CODE = (*CODE, b".json", b".yaml", b".yml", b".toml", b".ini", b".cfg")
_DIFF = (*DIFF, "--name-status", "-z")
# Each worker gets the list. A change of more files is no small one, and gets pairs.
MAX_CHANGED = 2000
# Python that was changed or added shows where it is imported. Without a file that is gone, an import may find
# another one.
_SHOWN_BY_IMPORTS = frozenset({"A", "M"})
# Written for people, or for GitHub.
_TEXTS = frozenset({".md", ".rst"})
_COMPILED = "__pycache__"  # made of the sources next to it
_OF_GITHUB = ".github"


def hash_changes(directory: Path, suffixes: tuple[bytes, ...] = CODE) -> str:
    """Hash what differs from HEAD, in submodules too, and new files with these ``suffixes``.

    Empty outside of git, and where git does not answer.
    """
    top = directory / run_git(directory, *TOP)  # new files are listed from there
    changed = ask_git(top, *_CHANGED, limit_s=STATUS_LIMIT_S)
    untracked = ask_git(top, *NEW_FILES, limit_s=STATUS_LIMIT_S)
    if not (changed.is_good and untracked.is_good):
        return ""
    digest = hashlib.sha256(changed.output)
    added = [name for name in untracked.output.split(b"\0") if name.endswith(suffixes)]
    for name in (*added, *list_hidden(top)):
        digest.update(name + b"\0" + _read_new(top, os.fsdecode(name)))
    for path, _ in list_links(top):
        if (top / path / ".git").exists():  # else it is empty, and git would answer for this checkout
            within = hash_changes(top / path, suffixes)
            if not within:
                return ""
            if within != _UNCHANGED:
                digest.update(os.fsencode(path) + b"\0" + within.encode())
    return digest.hexdigest()[:_DIGITS]


def _read_new(directory: Path, name: str) -> bytes:
    try:
        return (directory / name).read_bytes()
    except OSError:  # gone since, or not ours to read: its name counts
        return b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    python: tuple[str, ...] = ()  # changed or new: imports show who uses it
    other: tuple[str, ...] = ()  # what any case may read unseen


def read_changes(top: Path, commit: str, ours: Collection[Path]) -> Changes | None:
    """List what differs from ``commit`` and measured code may read.

    Not what git ignores: the base would not have it. ``None`` where git does not answer, and beyond
    MAX_CHANGED files.
    """
    changed = ask_git(top, *_DIFF, commit, limit_s=STATUS_LIMIT_S)
    added = ask_git(top, *NEW_FILES, limit_s=STATUS_LIMIT_S)
    if not (changed.is_good and added.is_good):
        return None
    fields, new = _split(changed), _split(added)
    hidden = [name.decode(errors="replace") for name in list_hidden(top)]
    states = [*zip(fields[1::2], fields[::2], strict=True), *((name, "M") for name in hidden)]
    states += [(name, "A") for name in new]
    if len(states) > MAX_CHANGED:
        return None
    our_directories = [str(directory.resolve()) for directory in ours]
    python = tuple(name for name, state in states if _is_shown(name) and state in _SHOWN_BY_IMPORTS)
    outputs = find_outputs([top / name for name in new])
    left = (name for name, _ in states if name not in python and top / name not in outputs)
    other = (name for name in left if not _is_unread(top / name, top, our_directories))
    return Changes(python=python, other=tuple(other))


def _split(answer: GitAnswer) -> list[str]:
    return answer.output.decode(errors="replace").split("\0")[:-1]


def _is_shown(name: str) -> bool:
    return name.endswith(".py") and Path(name).name not in BUILD_SCRIPTS


def _is_unread(path: Path, top: Path, ours: Collection[str]) -> bool:
    within = path.relative_to(top)
    if within.suffix in _TEXTS or within.parts[0] == _OF_GITHUB or _COMPILED in within.parts:
        return True
    return any(path.is_relative_to(directory) for directory in ours)
