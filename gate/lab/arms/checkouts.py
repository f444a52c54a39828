"""What git knows of a checkout."""

import os
from pathlib import Path

from gate.files.disk import read_written_ns
from gate.git import ask_git
from gate.records.protocol import WorkingTree

STATUS_LIMIT_S = 120.0  # a large tree on a cold disk
NEW_FILES = ("ls-files", "--others", "--exclude-standard", "-z")
TOP = ("rev-parse", "--show-cdup")


def list_hidden(top: Path) -> list[bytes]:
    """List changed files that git was asked to assume unchanged: `git status` and `git diff` omit them."""
    entries = ask_git(top, "ls-files", "-v", "--stage", "-z", limit_s=STATUS_LIMIT_S).output.split(b"\0")
    flagged = [entry for entry in entries if entry[:1].islower() or entry[:1] == b"S"]
    committed = {name: stage.split()[2] for stage, _, name in (entry.partition(b"\t") for entry in flagged)}
    names = [name for name in committed if (top / os.fsdecode(name)).is_file()]  # a sparse checkout has none
    written = b"".join(name + b"\n" for name in names)
    hashes = ask_git(top, "hash-object", "--stdin-paths", given=written).output.split() if names else []
    if len(hashes) != len(names):  # one cannot be read, or has a line break in its name
        return names
    return [name for name, content in zip(names, hashes, strict=True) if committed[name] != content]


def read_working_tree(directory: Path) -> WorkingTree | None:
    """``None`` outside of git. The time is that of the newest Python file."""
    top = Path(run_git(directory, "rev-parse", "--show-toplevel"))
    if not top.is_absolute():
        return None
    listed = ask_git(
        top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", limit_s=STATUS_LIMIT_S
    )
    if not listed.is_good:
        return None
    names = (name for name in listed.output.split(b"\0") if name.endswith(b".py"))
    written = [read_written_ns(top / os.fsdecode(name)) for name in names]
    return WorkingTree(top=str(top), newest_ns=max(written, default=0))


def run_git(directory: Path, *arguments: str) -> str:
    """Empty where git, or a repository, is missing."""
    answer = ask_git(directory, *arguments)
    # Provenance is for people and files in UTF-8: a byte that is no text becomes a question mark.
    return answer.said.encode(errors="replace").decode() if answer.is_good else ""
