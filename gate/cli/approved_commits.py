"""Whose the approvals are that ``--approvals`` names: of which commits, and which gate counts them."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from gate.git import ask_git, find_checkout
from gate.project.config import Config
from gate.store.approvals import load_approval, name_gate

_SHORT = 12
_COMMIT = re.compile(r"[0-9a-f]{40}")  # a run may come from elsewhere


def tell_other_commits(approvals: Sequence[str], judged: str, directory: Path) -> None:
    """Say on standard error which of these files are of another commit than the one that is judged.

    They count all the same: a merge queue judges commits that it made itself of those that were approved,
    and only who names the files knows of which. What a merge of two adds is not called another commit.
    ``judged`` is no commit where that is not known, and ``directory`` lies in its repository.

    Raises:
        FileError: A file cannot be used.
    """
    if not approvals or not _COMMIT.fullmatch(judged):
        return
    added = find_commit(directory, f"{judged}^2")
    for name in approvals:
        commit = load_approval(Path(name)).commit
        if commit not in {judged, added}:
            told = f"{name} is of commit {commit[:_SHORT]}, and {judged[:_SHORT]} is judged"
            print(f"note: --approvals: {told}; it counts, whatever else that contains", file=sys.stderr)


def find_gate(options: Namespace, config: Config) -> str:
    """Find which gate judges, as approvals name it; empty where the configuration is in no repository."""
    source = Path(config.source)
    top = find_checkout(source.parent)
    return options.gate or (name_gate(source, top) if top else "")


def find_commit(directory: Path, name: str) -> str:
    """The commit of that name; empty where there is none."""
    return ask_git(directory, "rev-parse", "--verify", "--quiet", name).said
